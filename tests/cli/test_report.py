"""``countveil report``: what the page holds is tested in tests/report."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import countveil as cv
from countveil.cli.app import app


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = pd.DataFrame(np.random.default_rng(1).poisson(2.0, (8, 5)), columns=list("abcde"))
    release = cv.privatize(counts, cv.PrivacyLevel(1, 1))
    release.save("survey.npz")
    cv.TopicModel(2, draws=8, tune=8, chains=2, seed=1, threads=1).fit(release).save("fit.nc")
    return tmp_path


def run(*arguments, status=0):
    found = CliRunner().invoke(app, ["report", *map(str, arguments)])
    assert found.exit_code == status, found.output
    return found.stdout if status == 0 else found.stderr


def test_a_page_is_written_with_and_without_the_release(here):
    said = run(
        "fit.nc", "-o", "fit.html", "--release", "survey.npz", "--title", "My <b>survey", "--members", "3"
    )
    page = (here / "fit.html").read_text(encoding="utf-8")
    assert "Wrote fit.html: " in said
    assert cv.TopicModel.load("fit.nc").diagnostics().verdict in said.replace("\n", " ")
    assert "<h1>My &lt;b&gt;survey</h1>" in page
    assert page.count('class="bars"') == 2
    assert page.count('<bdi class="name">') == 6
    assert "Simulated releases" in page
    assert "exists already" in run("fit.nc", "-o", "fit.html", status=1)
    run("fit.nc", "-o", "fit.html", "--force")
    assert "Not checked: the release" in (here / "fit.html").read_text(encoding="utf-8")


def test_the_naive_way_is_shown_beside_it_if_asked(here):
    run("fit.nc", "-o", "fit.html", "--release", "survey.npz", "--naive")
    assert "What if the noise were ignored?" in (here / "fit.html").read_text(encoding="utf-8")
    said = run("fit.nc", "-o", "other.html", "--naive", status=1)
    assert "naive must come with the release that was fitted, got no --release" in said


def test_what_cannot_be_reported_is_refused_in_one_line(here):
    assert "output must end in .html, got fit.pdf" in run("fit.nc", "-o", "fit.pdf", status=1)
    assert "no fit at none.nc" in run("none.nc", "-o", "a.html", status=1)
    assert "no release at none.npz" in run("fit.nc", "-o", "a.html", "--release", "none.npz", status=1)
    assert "is not a fit saved by countveil" in run("survey.npz", "-o", "a.html", status=1)
    cv.privatize(np.ones((2, 2), dtype=int), cv.PrivacyLevel(1, 1)).save("other.npz")
    said = run("fit.nc", "-o", "a.html", "--release", "other.npz", status=1)
    assert said.startswith("error: release must be the one that was fitted")
    assert not (here / "a.html").exists()
