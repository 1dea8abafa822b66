"""``countveil show``: what a fit says, once more."""

import json
import shutil
from contextlib import chdir

import pytest

import countveil as cv
from tests.commands import SHORT, fails, privatized, run, write_counts

pytestmark = pytest.mark.long


def words(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with f.nc, and named.nc, whose first topic has a name; what the command printed that made it."""
    folder = tmp_path_factory.mktemp("fitted")
    with chdir(folder):
        write_counts(folder)
        privatized()
        said = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "--members", "3").stdout
        cv.TopicModel.load("f.nc").parts.relabel({0: "trade"}).save("named.nc")
    return folder, said


@pytest.fixture
def fitted(made, tmp_path, monkeypatch):
    """A working directory with these files in it; what the command printed."""
    folder, said = made
    shutil.copytree(folder, tmp_path / "own")
    monkeypatch.chdir(tmp_path / "own")
    return said


def test_a_fit_is_shown_as_it_was_when_it_was_made(fitted):
    found = run("show", "f.nc", "--words", "3").stdout
    assert found.startswith("TopicModel: 20 documents × 8 words, method gibbs.\n")
    made = fitted[: fitted.index("Wrote f.nc")]
    assert words(made) in words(found)
    assert "trade" not in found
    support = cv.TopicModel.load("named.nc").parts.support().set_index("component")["support"]
    assert ("0 trade" in words(run("show", "named.nc").stdout)) == (support[0] > 0.5)  # by the noise


def test_documents_and_a_word_are_shown_if_asked_for(fitted):
    fit = cv.TopicModel.load("named.nc")
    found = run("show", "named.nc", "--documents", "2").stdout
    for topic in fit.parts.support()["component"]:
        best = fit.documents.top(topic, 2).iloc[0]
        start = f"Documents with most of topic {topic}: {best['document']} {100 * best['share']:.1f}% ("
        assert start in found
    found = words(run("show", "named.nc", "--word", "word3").stdout)
    row = fit.documents.find_word("word3").iloc[0]
    assert f"topic {row['topic']}" in found
    assert f"{100 * row['probability']:.1f}% ({100 * row['lower']:.1f} to" in found
    assert "word must be a label of the fit" in fails("show", "f.nc", "--word", "wurd3")


def test_tables_are_printed_as_json(fitted):
    fit = cv.TopicModel.load("named.nc")
    found = json.loads(run("show", "named.nc", "--members", "2", "--documents", "1", "--json").stdout)
    numbers = ["dispersions", "totals", "diagnostics", "chains", "state", "verdict", "mechanism"]
    assert list(found) == ["topics by word", "documents", *numbers]
    assert found["totals"] == pytest.approx(fit.totals().facts)
    assert found["dispersions"][0]["p"] == pytest.approx(fit.dispersions()["p"][0])
    assert found["state"] == fit.diagnostics().state
    r_hat = dict(zip(fit.diagnostics().table.index, fit.diagnostics().table["r_hat"], strict=True))
    assert {row["quantity"]: row["r_hat"] for row in found["diagnostics"]} == pytest.approx(r_hat)
    table = fit.topics(2)
    assert [row["word"] for row in found["topics by word"]] == table["word"].tolist()
    assert found["topics by word"][0].keys() == set(table.columns)
    assert found["verdict"] == fit.diagnostics().verdict
    found = json.loads(run("show", "f.nc", "--word", "word3", "--json").stdout)
    assert len(found["word"]) == len(fit.documents.find_word("word3"))
    assert (found["state"], found["verdict"]) == (fit.diagnostics().state, fit.diagnostics().verdict)


def test_every_view_begins_its_verdict_with_the_state(fitted):
    line = cv.load("f.nc").diagnostics().line
    assert line.startswith(f"{cv.load('f.nc').diagnostics().state.capitalize()}")
    for options in ((), ("--word", "word3"), ("--documents", "2")):
        assert line in " ".join(run("show", "f.nc", *options).stdout.split())
    assert line in " ".join(run("report", "f.nc", "-o", "f.html", "--release", "r.npz").stdout.split())


def test_what_cannot_be_shown_is_refused_in_one_line(fitted):
    assert "no fit at none.nc" in fails("show", "none.nc")
    assert "is not a fit saved by countveil" in fails("show", "r.npz")
    run("show", "f.nc", "--members", "0", status=2)
