"""Counts in every form that a user may have them, by themselves and through a whole case study."""

import gzip

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from papers import communities_enron, enron_network, real_counts, topics_enron
from papers.bench import Bench
from papers.fits import Sampling
from tests.papers.commands import refused, reproduce
from tests.papers.mailbox import OWNERS, enron

RNG = np.random.default_rng(1)
COUNTS = RNG.poisson(RNG.gamma(0.5, 1.0, (40, 2)) @ RNG.dirichlet(np.full(30, 0.5), 2) * 80)
NETWORK = RNG.poisson(3.0, (12, 12))
FORMS = ("docword.enron.txt", "docword.enron.txt.gz", "enron_text.mtx")


def bag_of_words(counts):
    rows, columns = np.nonzero(counts)
    body = "".join(f"{i + 1} {j + 1} {counts[i, j]}\n" for i, j in zip(rows, columns, strict=True))
    return f"{counts.shape[0]}\n{counts.shape[1]}\n{len(rows)}\n{body}".encode()


def write_texts(folder, form):
    if form.endswith(".mtx"):
        scipy.io.mmwrite(folder / form, sp.coo_array(COUNTS))
    else:
        data = bag_of_words(COUNTS)
        (folder / form).write_bytes(gzip.compress(data) if form.endswith(".gz") else data)
        (folder / "vocab.enron.txt").write_text("".join(f"word{v}\n" for v in range(COUNTS.shape[1])))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, and quick settings that take a moment."""
    monkeypatch.chdir(tmp_path)
    short = Sampling(1, 4, 4)
    tiny = topics_enron.QUICK._replace(n_topics=2, noise_draws=1, sampling=short, shape=(30, 25))
    monkeypatch.setattr(topics_enron, "QUICK", tiny)
    monkeypatch.setattr(communities_enron, "QUICK", enron_network.Plan((2,), 1, short))
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.mark.parametrize("form", FORMS)
def test_texts_in_every_form(here, form):
    write_texts(here / "data", form)
    bench = Bench("case", data=here / "data")
    found = real_counts.texts(bench, real_counts.TEXT_LARGE, (100, 100))
    np.testing.assert_array_equal(found.toarray(), COUNTS)
    few = real_counts.texts(bench, real_counts.TEXT_SMALL, (7, 5)).toarray()
    words = np.sort(np.argsort(-COUNTS.sum(axis=0), kind="stable")[:5])
    rows = np.sort(np.argsort(-COUNTS[:, words].sum(axis=1), kind="stable")[:7])
    np.testing.assert_array_equal(few, COUNTS[np.ix_(rows, words)])


def test_topics_of_texts(here):
    write_texts(here / "data", "docword.enron.txt.gz")
    said = reproduce("topics-enron", "--quick", "--data", "data", "-o", "out").stdout
    assert "topics-enron" in said
    table = pd.read_csv("out/topics-enron.csv")
    chosen = real_counts.texts(Bench("case", data=here / "data"), real_counts.TEXT_SMALL, (30, 25))
    assert table.loc[table["method"] == "zero", "mae"].item() == pytest.approx(chosen.toarray().mean())


def test_a_vocabulary_of_another_length_is_refused(here):
    write_texts(here / "data", "docword.enron.txt")
    (here / "data" / "vocab.enron.txt").write_text("one\n")
    assert "must name the 30 columns" in refused("topics-enron", "--quick", "--data", "data")


@pytest.mark.parametrize("form", ["enron_network.mtx", "enron_network.csv", "enron161.npz"])
def test_a_network_in_every_form(here, form):
    path = here / "data" / form
    if form.endswith(".mtx"):
        scipy.io.mmwrite(path, sp.coo_array(NETWORK))
    elif form.endswith(".csv"):
        pd.DataFrame(NETWORK, columns=[f"actor{i}" for i in range(12)]).to_csv(path, index=False)
    else:
        np.savez(path, Y=NETWORK)
    off = ~np.eye(12, dtype=bool)
    np.testing.assert_array_equal(real_counts.network(Bench("case", data=here / "data")), NETWORK * off)


def test_a_network_from_the_command_line(here):
    np.savez(here / "data" / "enron161.npz", Y=NETWORK)
    off = ~np.eye(12, dtype=bool)
    reproduce("communities-enron", "--quick", "--data", "data", "-o", "out")
    table = pd.read_csv("out/communities-enron.csv")
    assert table.loc[table["method"] == "zero", "mae"].item() == pytest.approx(NETWORK[off].mean())


def test_a_network_must_be_square(here):
    np.savez(here / "data" / "enron161.npz", Y=NETWORK[:5])
    assert r"must be square, one row and one column per actor, got (5, 12)" in refused(
        "communities-enron", "--data", "data"
    )


@pytest.mark.parametrize("value", [0.5, -1, np.nan, np.inf, 1e300, "a", None])
def test_a_network_is_of_counts(here, value):
    counts = NETWORK.astype(type(value) if isinstance(value, str) else float)
    counts[3, 4] = value
    np.savez(here / "data" / "enron161.npz", Y=counts if value is not None else counts > 0)
    said = refused("communities-enron", "--data", "data")
    got = value if isinstance(value, float | int) else "values of type"
    assert f"enron161.npz must hold whole numbers, 0 or more, got {got}" in said


@pytest.mark.parametrize("data", ["none", "text", "array", "objects", "cut"])
def test_a_network_has_its_name(here, data):
    path = here / "data" / "enron161.npz"
    if data == "text":
        path.write_text("no archive")
    elif data == "array":
        with path.open("wb") as file:
            np.save(file, NETWORK)
    else:
        np.savez(path, **{"Z" if data == "none" else "Y": NETWORK.astype(object if data == "objects" else int)})
        path.write_bytes(path.read_bytes()[: 200 if data == "cut" else None])
    said = refused("communities-enron", "--data", "data")
    assert "enron161.npz must be an .npz file with an array 'Y' of counts, got no such array" in said


@pytest.mark.parametrize("below", ["maildir", "."])
def test_raw_mails(here, below):
    """360 mails of 60 words and more."""
    enron(here / "data" / below)
    bench = Bench("case", here / "out", here / "data")
    assert real_counts.texts(bench, real_counts.TEXT_LARGE, (999, 999)).shape[0] == 360


@pytest.mark.long
def test_raw_mails_from_the_command_line(here):
    """Each owner sends 60 of them and gets about 120; copies count once."""
    enron(here / "data" / "maildir")
    reproduce("communities-enron", "--quick", "--data", "data", "-o", "out")
    table = pd.read_csv("out/communities-enron.csv")
    pairs = len(OWNERS) * (len(OWNERS) - 1)
    assert table.loc[table["method"] == "zero", "mae"].item() == pytest.approx(2 * 360 / pairs)
    kept = list((here / "out" / "fits").glob("maildir-*"))
    reproduce("topics-enron", "--quick", "--data", "data", "-o", "out")
    assert list((here / "out" / "fits").glob("maildir-*")) == kept
    assert len(kept) == 1
    words = real_counts.texts(Bench("case", here / "out" / "fits", here / "data"), real_counts.TEXT_LARGE, (999, 999))
    assert words.shape[0] == 360
    assert words.sum(axis=1).min() > 0


def test_nothing_to_be_found(here):
    assert "or mail folders (maildir/OWNER/FOLDER/MAIL)" in refused("topics-enron", "--data", "data")
