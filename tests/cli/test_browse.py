"""``countveil browse``: what the page holds is tested in tests/report/browse."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.cli.browse import distinct_names
from tests.commands import fails, run


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"person {i}" for i in range(8)]
    counts = pd.DataFrame(np.random.default_rng(1).poisson(2.0, (8, 5)), index=rows, columns=list("abcde"))
    release = cv.privatize(counts, cv.PrivacyLevel(1, 1))
    for name, seed in (("one", 1), ("two", 2)):
        cv.TopicModel(2, draws=8, tune=8, chains=2, seed=seed, threads=1).fit(release).save(f"{name}.nc")
    return tmp_path


@pytest.mark.long
def test_a_page_of_one_fit_or_two_is_written(here):
    assert "Wrote one.html: " in run("browse", "one.nc", "-o", "one.html", "--title", "My <b>survey").stdout
    page = (here / "one.html").read_text(encoding="utf-8")
    assert "<h1>My &lt;b&gt;survey</h1>" in page
    assert "person 3" not in page
    assert "exists already" in fails("browse", "one.nc", "-o", "one.html")
    run("browse", "one.nc", "two.nc", "-o", "one.html", "--rows", "labels", "--members", "3", "--force")
    page = (here / "one.html").read_text(encoding="utf-8")
    assert "person 3" in page
    assert '"name":"two"' in page


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (("one.nc", "two.nc"), ("one", "two")),
        (("/home/ada/a/fit.nc", "/home/ada/b/fit.nc"), ("a/fit", "b/fit")),
        (("/home/ada/a/run/fit.nc", "/home/ada/b/run/fit.nc"), ("a/run/fit", "b/run/fit")),
        (("/fit.nc", "/a/fit.nc"), ("fit", "a/fit")),
        (("/a/fit.nc", "/fit.nc"), ("a/fit", "fit")),
        (("/a/fit.nc", "/a/fit.h5"), ("fit.nc", "fit.h5")),
        (("fit.nc", "./fit.nc"), ("fit", "fit (again)")),
    ],
)
def test_two_files_are_called_by_as_little_as_tells_them_apart(files, names):
    assert distinct_names(*map(Path, files)) == names


def test_no_path_of_this_machine_is_on_the_page(here):
    (here / "again").mkdir()
    (here / "again" / "one.nc").write_bytes((here / "two.nc").read_bytes())
    run("browse", str(here / "one.nc"), str(here / "again" / "one.nc"), "-o", "both.html")
    page = (here / "both.html").read_text(encoding="utf-8")
    assert str(here) not in page
    assert str(here.parent) not in page
    assert '"name":"again/one"' in page


def test_what_cannot_be_browsed_is_refused_in_one_line(here):
    assert "output must end in .html or .htm, got a.pdf" in fails("browse", "one.nc", "-o", "a.pdf")
    assert "no fit at none.nc" in fails("browse", "one.nc", "none.nc", "-o", "a.html")
    assert "rows must be one of hidden, numbers, labels" in fails("browse", "one.nc", "-o", "a.html", "--rows", "all")
    (here / "text.nc").write_text("hello")
    assert "is not a fit saved by countveil" in fails("browse", "text.nc", "-o", "a.html")
    assert not (here / "a.html").exists()
