"""``countveil counts``: the hidden counts as a table."""

import json

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.cli import counts as command
from countveil.inference.diagnostics import Diagnostics, State
from tests.commands import fails, run

pytestmark = pytest.mark.long

SHORT = {"draws": 3, "tune": 10, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTS = np.random.default_rng(2).poisson(np.outer(np.arange(1, 8), [1, 1, 2, 3, 6]))
PUBLISHED = np.where((COUNTS > 0) & (COUNTS < 10), np.nan, COUNTS)
N_HIDDEN = int(np.isnan(PUBLISHED).sum())


@pytest.fixture(scope="module")
def deaths(tmp_path_factory):
    """A folder with a release, and a fit of it."""
    folder = tmp_path_factory.mktemp("deaths")
    labels = {"row_labels": [f"=county {d}" for d in range(7)], "column_labels": list("abcde")}
    release = cv.import_reports(PUBLISHED, cv.mechanisms.Suppression(10), "made up", **labels)
    release.save(folder / "deaths.npz")
    cv.PoissonFactorization("dk,vk->dv", {"k": 1}, **SHORT).fit(release).save(folder / "deaths.nc")
    return folder


@pytest.fixture
def here(deaths, tmp_path, monkeypatch):
    """A working directory with links to both."""
    for name in ("deaths.npz", "deaths.nc"):
        (tmp_path / name).symlink_to(deaths / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_hidden_counts_that_are_known_are_warned_of():
    table = pd.DataFrame({"kind": ["hidden"] * 3 + ["noisy"], "lower": [5, 1, 8, 2], "upper": [5, 3, 8, 2]})
    said = "warning: for 2 of 3 hidden counts the 90% interval is a single number"
    assert command.given_away(table, 0.9).startswith(said)
    assert command.given_away(table[1:2], 0.9) == command.given_away(table[["kind"]], 0.9) == ""


def test_totals_that_give_hidden_counts_away_are_warned_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("county,a,b,Total\nx,*,12,15\ny,*,*,9\nz,20,30,50\nTotal,25,49,74\n")
    asked = "--below", "10", "--absent", "*", "--totals-in-table", "use", "--totals-mechanism", "exact"
    run("import", "t.csv", "-o", "t.npz", "--mechanism", "suppression", *asked)
    release = cv.Release.load("t.npz")
    cv.PoissonFactorization("dk,vk->dv", {"k": 1}, **SHORT).fit(release).save("t.nc")
    done = run("counts", "t.nc", "--release", "t.npz", "-o", "c.csv")
    assert "warning: for 3 of 3 hidden counts the 90% interval is a single number" in done.stderr
    assert pd.read_csv("c.csv")["median"].tolist() == [3, 2, 7]


def test_hidden_counts_are_written_with_a_warning_where_the_fit_is_not_trusted(here):
    done = run("counts", "deaths.nc", "--release", "deaths.npz", "-o", "c.csv")
    assert done.stdout == f"Wrote c.csv: {N_HIDDEN} counts ({N_HIDDEN} hidden).\n"
    assert done.stderr.startswith("warning: these counts are not safe to report. Too few draws")
    assert len(done.stderr.splitlines()) == 1
    table = pd.read_csv("c.csv")
    fit = cv.PoissonFactorization.load("deaths.nc")
    expected = fit.counts_table(cv.Release.load("deaths.npz"))
    assert table["d"].tolist() == ["'" + name for name in expected["d"]]  # a spreadsheet would run it
    np.testing.assert_allclose(
        table[["mean", "median", "lower", "upper"]], expected[["mean", "median", "lower", "upper"]]
    )
    run("counts", "deaths.nc", "--release", "deaths.npz", "-o", "c.csv", "--all", "--interval", "0.5", "--force")
    every = pd.read_csv("c.csv", dtype=str)
    assert len(every) == PUBLISHED.size
    shown = every[every["kind"] == "exact"]
    assert shown["report"].tolist() == [str(count) for count in COUNTS[~np.isnan(PUBLISHED)]]


def test_sums_are_those_of_the_fit_in_every_kind_of_file(here):
    fit = cv.PoissonFactorization.load("deaths.nc")
    expected = fit.counts_table(cv.Release.load("deaths.npz"), by="v", draws=50)
    options = ["counts", "deaths.nc", "--release", "deaths.npz", "--sums", "v", "--draws", "50"]
    for name, read in (("s.csv", pd.read_csv), ("s.xlsx", pd.read_excel), ("s.parquet", pd.read_parquet)):
        said = run(*options, "-o", name).stdout
        assert (
            said
            == f"Wrote {name}: 5 sums by v, {(expected['hidden'] > 0).sum()} of them with counts that are not exact.\n"
        )
        pd.testing.assert_frame_equal(read(name), expected, check_dtype=False)
    found = json.loads(run(*options, "-o", "j.csv", "--json").stdout)
    assert [row["upper"] for row in found["counts"]] == expected["upper"].tolist()
    assert found["state"] == "not checked"
    assert run(*options, "-o", "q.csv", "--quiet").stdout == ""
    assert run(*options[:4], "--sums", "", "-o", "one.csv").stdout.startswith("Wrote one.csv: 1 sums, 1 of them")


@pytest.mark.filterwarnings("ignore:The fit:UserWarning", "ignore::UserWarning")
def test_sums_that_are_slightly_off_are_said_to_be_by_the_reports(here):
    release = cv.privatize(np.full((6, 5), 4), cv.PrivacyLevel(1, 1))
    release.save("noisy.npz")
    fit = cv.TopicModel(1, draws=10, tune=10, chains=2, seed=1, threads=1, progress=False).fit(release)
    kept = json.loads(fit.posterior.attrs["mechanism_check"]) | {"sums": ["Sums are slightly off."]}
    fit.posterior.attrs["mechanism_check"] = json.dumps(kept)
    fit.save("noisy.nc")
    asked = ["counts", "noisy.nc", "--release", "noisy.npz", "-o", "noisy.csv", "--force"]
    assert "Sums are slightly off." in run(*asked, "--sums", "doc").stdout
    assert "Sums are slightly off." not in run(*asked).stdout


def test_what_cannot_be_written_is_refused_in_a_line(here):
    given = ["counts", "deaths.nc", "--release", "deaths.npz"]
    assert "output must end in .csv or .xlsx or .parquet, got c.txt" in fails(*given, "-o", "c.txt")
    assert "--all and --sums cannot be combined" in fails(*given, "-o", "c.csv", "--all", "--sums", "v")
    assert "by (--sums) must name axes among d (rows), v (columns), got 'county'" in fails(
        *given, "-o", "c.csv", "--sums", "county"
    )
    assert "no release at no.npz" in fails("counts", "deaths.nc", "--release", "no.npz", "-o", "c.csv")
    other = cv.import_reports(
        np.where(np.isnan(PUBLISHED), np.nan, PUBLISHED + 1), cv.mechanisms.Suppression(1, shows_zero=False), "x"
    )
    other.save("other.npz")
    assert "release must be the one that was fitted" in fails(*given[:2], "--release", "other.npz", "-o", "c.csv")
    (here / "c.csv").write_text("precious")
    assert "--force" in fails(*given, "-o", "c.csv")


@pytest.mark.parametrize(("state", "warned"), [(State.SAFE, False), (State.WITH_SUPPORT, False), (State.UNSAFE, True)])
def test_a_warning_is_the_first_reason_of_a_verdict(state, warned):
    verdict = "The total is off by 4.5 standard errors (R-hat up to 1.02). Run more chains. Or fewer."
    said = command.warning_of(Diagnostics(pd.DataFrame(), verdict, state), "counts")
    assert said == (f"warning: these counts are not safe to report. {verdict.split(' Run')[0]}" if warned else "")
