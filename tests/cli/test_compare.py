"""``countveil compare``."""

import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from tests.commands import fails, privatized, run

pytestmark = pytest.mark.long

SHORT = ["--draws", "3", "--tune", "2", "--folds", "2", "--seed", "1", "--threads", "1"]


def test_topics_are_compared_and_the_table_and_the_picture_written(here):
    privatized()
    said = run("compare", "r.npz", "--topics", "1,2", *SHORT, "--out", "t.csv", "--plot", "p.png").stdout
    release = cv.Release.load("r.npz")
    found = cv.compare(release, [cv.TopicModel(1), cv.TopicModel(2)], 2, 1, draws=3, tune=2, threads=1)
    assert found.verdict in said.replace("\n", " ")
    assert "standard error" in said
    for name, score in found.table[["model", "score"]].itertuples(index=False):
        assert name in said
        assert f"{score:.2f}" in said
    table = pd.read_csv("t.csv")
    np.testing.assert_allclose(table["difference"], found.table["difference"])
    assert table["n_topics"].tolist() == [1, 2]
    assert (here / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "t.csv exists already" in fails("compare", "r.npz", "--topics", "1,2", *SHORT, "--out", "t.csv")
    assert "p.png exists already" in fails("compare", "r.npz", "--topics", "1,2", "--plot", "p.png")


def test_help_states_the_defaults_of_compare(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    said = " ".join(run("compare", "--help").stdout.split())
    for name, sort in (("draws", "Draws kept"), ("tune", "Tuning sweeps"), ("chains", "Chains")):
        default = inspect.signature(cv.compare).parameters[name].default
        assert re.search(rf"{sort} [^\[]*\[default: {default}\]", said), name


def test_communities_and_components_have_the_options_of_fits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    counts = np.triu(rng.poisson(2.0, (6, 6)), 1)
    cv.privatize(counts, cv.PrivacyLevel(1, 1), directed=False).save("n.npz")
    said = run("compare", "n.npz", "--communities", "1,2", "--undirected", *SHORT).stdout
    assert "n_communities=2" in said
    assert "set directed=False" in fails("compare", "n.npz", "--communities", "1,2", *SHORT)
    cv.privatize(rng.poisson(2.0, (4, 6)), cv.PrivacyLevel(1, 1)).save("t.npz")
    more = ["--shape", "4,3,2", "--likelihood", "poisson", "--method", "em"]
    assert "n_components=2" in run("compare", "t.npz", "--components", "1,2", *SHORT, *more).stdout
    refused = fails("compare", "t.npz", "--components", "1,2", *SHORT, *more, "--prior-shape", "learned")
    assert "prior_shape" in refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of --topics, --communities and --components must be given, such as --topics 5,10,20, got 0"),
        (["--topics", "2", "--communities", "3"], "--topics 5,10,20, got 2"),
        (["--topics", "2,many"], "topics must be whole numbers separated by commas, got '2,many'"),
        (["--topics", "2,2"], "models must differ from each other"),
        (["--topics", "2,3", "--out", "t.txt"], "output must end in .csv, got t.txt"),
        (["--topics", "2,3", "--plot", "t.txt"], "plot must end in one of .png, .svg, .pdf, got t.txt"),
        (["--topics", "2,3", "--resume"], "must come with checkpoint (--checkpoint)"),
        (["--topics", "2,3", "--checkpoint", "c.npz"], "checkpoint must come with a seed"),
    ],
)
def test_what_makes_no_sense_is_refused(here, arguments, message):
    privatized()
    assert message in fails("compare", "r.npz", *arguments)


def test_it_goes_on_from_a_checkpoint(here):
    privatized()
    asked = ["compare", "r.npz", "--topics", "1,2", *SHORT, "--checkpoint", "c.npz"]
    first = run(*asked).stdout
    assert run(*asked, "--resume").stdout == first
    Path("c.npz").unlink()
    told, rest = run(*asked, "--resume").stdout.split("\n", 1)
    assert told == "There is no checkpoint c.npz yet: starting from the beginning."
    assert rest.splitlines()[-1] == first.splitlines()[-1]
    assert "got c.npz, which exists" in fails(*asked)


def test_a_release_that_is_not_there_is_named(here):
    assert "no release at r.npz" in fails("compare", "r.npz", "--topics", "1,2")
