"""``countveil report``: what the page holds is tested in tests/report."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from tests.commands import fails, run


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = pd.DataFrame(np.random.default_rng(1).poisson(2.0, (8, 5)), columns=list("abcde"))
    release = cv.privatize(counts, cv.PrivacyLevel(1, 1))
    release.save("survey.npz")
    cv.TopicModel(2, draws=8, tune=8, chains=2, seed=1, threads=1).fit(release).save("fit.nc")
    return tmp_path


def test_a_page_is_written_with_and_without_the_release(here):
    said = run(
        "report",
        "fit.nc",
        "-o",
        "fit.html",
        "--release",
        "survey.npz",
        "--title",
        "My <b>survey",
        "--members",
        "3",
    ).stdout
    page = (here / "fit.html").read_text(encoding="utf-8")
    assert "Wrote fit.html: " in said
    assert cv.TopicModel.load("fit.nc").diagnostics().verdict in said.replace("\n", " ")
    assert "<h1>My &lt;b&gt;survey</h1>" in page
    assert page.count('class="bars"') == 2
    assert page.count('<bdi class="name">') == 6
    assert "Simulated releases" in page
    assert "exists already" in fails("report", "fit.nc", "-o", "fit.html")
    run("report", "fit.nc", "-o", "fit.html", "--force")
    assert "Not checked: the release" in (here / "fit.html").read_text(encoding="utf-8")


def test_the_naive_way_is_shown_beside_it_if_asked(here):
    run("report", "fit.nc", "-o", "fit.html", "--release", "survey.npz", "--naive")
    assert "What if the noise were ignored?" in (here / "fit.html").read_text(encoding="utf-8")
    said = fails("report", "fit.nc", "-o", "other.html", "--naive")
    assert "naive must come with the release that was fitted, got no --release" in said


def test_what_cannot_be_reported_is_refused_in_one_line(here):
    assert "output must end in .html, got fit.pdf" in fails("report", "fit.nc", "-o", "fit.pdf")
    assert "no fit at none.nc" in fails("report", "none.nc", "-o", "a.html")
    assert "no release at none.npz" in fails("report", "fit.nc", "-o", "a.html", "--release", "none.npz")
    assert "is not a fit saved by countveil" in fails("report", "survey.npz", "-o", "a.html")
    cv.privatize(np.ones((2, 2), dtype=int), cv.PrivacyLevel(1, 1)).save("other.npz")
    said = fails("report", "fit.nc", "-o", "a.html", "--release", "other.npz")
    assert said.startswith("error: release must be the one that was fitted")
    assert not (here / "a.html").exists()
