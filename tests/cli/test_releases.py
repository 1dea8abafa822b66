"""Releases as commands read them: by themselves, joined in a file, or in a folder."""

import numpy as np
import pytest

import countveil as cv
from countveil.cli import releases
from countveil.data.joined_files import write
from countveil.data.release_files import ReleaseFiles

LEVEL = cv.PrivacyLevel(1, 1)
COUNTS = np.random.default_rng(1).poisson(3.0, (6, 4))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        cv.privatize(COUNTS, LEVEL).save(f"{name}.npz")
    cv.join(["one.npz", "two.npz"]).save("both.npz")
    return tmp_path


def test_each_kind_is_read_and_said(here, capsys):
    assert isinstance(releases.read_release(here / "one.npz"), cv.Release)
    assert capsys.readouterr().out == ""
    found = releases.read_release(here / "both.npz")
    assert isinstance(found, cv.Reports)
    assert capsys.readouterr().out == f"2 releases of 6 x 4 counts: 6 of 6 rows are in more than one. {found.promise}\n"
    assert releases.loaded(here / "both.npz").levels == found.levels
    assert capsys.readouterr().out == ""
    (here / "folder").mkdir()
    for name in ("one", "two"):
        (here / f"{name}.npz").rename(here / "folder" / f"{name}.npz")
    assert isinstance(releases.read_release(here / "folder"), ReleaseFiles)
    (here / "both.npz").rename(here / "folder" / "both.npz")
    with pytest.raises(ValueError, match=r"both.npz must have format 'countveil-release', got 'countveil-joined"):
        releases.read_release(here / "folder")


def test_releases_that_do_not_fit_each_other_are_refused_with_the_file(here):
    write(here / "odd.npz", [cv.privatize(COUNTS, LEVEL), cv.privatize(COUNTS[:, :3], LEVEL)])
    with pytest.raises(ValueError, match=r"odd.npz must hold releases that can be joined: releases without column"):
        releases.loaded(here / "odd.npz")


def test_what_is_no_release_is_refused(here):
    with pytest.raises(FileNotFoundError, match=r"no release at none\.npz"):
        releases.read_release(here.joinpath("none.npz").relative_to(here))
    (here / "counts.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"counts.csv must be a release, got a table: `countveil import`"):
        releases.read_release(here / "counts.csv")


def test_imported_reports_that_cannot_be_are_refused_with_the_file(here):
    values = np.array([[3, 1], [6, 0]])
    with pytest.raises(ValueError, match=r"one.npz must hold reports that its mechanism can produce"):
        releases.check_imported(here / "one.npz", cv.Release(values, cv.mechanisms.Rounding(3), False, source="Others"))
