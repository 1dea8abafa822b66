"""``countveil fit dynamic``: from a release of months, or of a tensor, to a fit."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.privacy._extras import Extras
from countveil.report.loading import observed
from tests.commands import fails, run

QUICK = ["--components", "2", "--draws", "4", "--tune", "4", "--chains", "2", "--seed", "1", "--threads", "1"]
LEVEL = cv.PrivacyLevel(1, 2)
MONTHS = [str(month) for month in pd.period_range("2001-11", periods=12, freq="M")]


@pytest.fixture
def months(tmp_path, monkeypatch):
    """A working directory with a release of months by items."""
    monkeypatch.chdir(tmp_path)
    counts = np.random.default_rng(1).poisson(4.0, (12, 4))
    cv.privatize(pd.DataFrame(counts, index=MONTHS, columns=list("abcd")), LEVEL).save("months.npz")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("month", "<b>county</b>"), ["month", "b_county_b"]),
        (("month", "lower"), ["time", "item"]),  # a column of the table
        (("month", "x" * 61), ["time", "item"]),
        (("month", None), ["time", "item"]),
    ],
)
def test_axes_are_called_as_in_the_release(months, names, expected):
    cv.Release.load("months.npz").with_axis_names(names).save("named.npz")
    run("fit", "dynamic", "named.npz", "-o", "fit.nc", *QUICK)
    fit = cv.DynamicModel.load("fit.nc")
    assert list(fit._reader.axes) == expected
    assert fit.trend().columns[:2].tolist() == expected


def test_components_over_time(months):
    said = run("fit", "dynamic", "months.npz", "-o", "fit.nc", *QUICK).stdout
    fit = cv.DynamicModel.load("fit.nc")
    assert fit.time_axis == "time"
    assert not fit.steady
    assert not fit.background
    assert not fit.levels
    assert list(fit._reader.axes["time"]) == MONTHS
    assert "Components by share of all expected counts: item" in said
    assert "Activity that stays in its component from one step to the next: 0: " in " ".join(said.split())
    assert "Expected sum of counts" in said
    run(
        "fit",
        "dynamic",
        "months.npz",
        "-o",
        "fit.nc",
        *QUICK,
        "--steady",
        "--modes",
        "month,thing",
        "--background",
        "--levels",
        "--force",
    )
    fit = cv.DynamicModel.load("fit.nc")
    assert fit.steady
    assert fit.background
    assert fit.levels
    assert (list(fit._reader.axes), fit.time_axis) == (["month", "thing"], "month")


@pytest.mark.long
def test_a_tensor_with_time_last(months):
    counts = pd.DataFrame(np.random.default_rng(2).poisson(4.0, (3, 8)))
    cv.privatize(counts, LEVEL).save("tensor.npz")
    asked = ["fit", "dynamic", "tensor.npz", "-o", "fit.nc", *QUICK, "--shape", "3,2,4"]
    run(*asked, "--modes", "who,what,year", "--time", "year")
    assert cv.DynamicModel.load("fit.nc").time_axis == "year"
    run(*asked, "--time", "2", "--force")
    assert cv.DynamicModel.load("fit.nc").posterior["posterior"]["activity"].sizes["time"] == 4


def test_what_makes_no_sense_is_refused_in_a_line(months):
    asked = ["fit", "dynamic", "months.npz", "-o", "fit.nc", *QUICK]
    assert "time must be one of modes" in fails(*asked, "--time", "year")
    assert "for a chain in time, got 'em'" in fails(*asked, "--method", "em")
    assert not (months / "fit.nc").exists()


def test_seasons_are_printed_and_saved(months):
    asked = ["fit", "dynamic", "months.npz", "-o", "fit.nc", *QUICK]
    said = " ".join(run(*asked, "--season", "auto").stdout.split())
    assert "Highest and lowest of 12 seasonal factors (mean 1) by component: 0: " in said
    assert "Highest and lowest of 12 seasonal factors" in run("show", "fit.nc").stdout
    fit = cv.DynamicModel.load("fit.nc")
    assert fit.season_ == 12
    assert len(fit.seasons()) == 24
    assert " (mean 1) by component: 0: step " in run(*asked, "--season", "5", "--force").stdout
    for text in ("1", "yearly"):
        said = run(*asked, "--season", text, "--force", status=2).stderr.replace("│", " ")
        assert f"season must be a whole number of at least 2, or auto, got '{text}'" in " ".join(said.split())
    assert "season must be at most the number of time steps, 12, got 13" in fails(*asked, "--season", "13", "--force")


def test_dates_are_in_order_and_a_gap_is_named(months):
    labels = ("Dec 2019", "Nov 2019", "Feb 2020")
    cv.Release(np.ones((3, 2), int), LEVEL, True, (labels, ("tea", "jam"))).save("three.npz")
    said = " ".join(run("fit", "dynamic", "three.npz", "-o", "fit.nc", *QUICK).stdout.split())
    assert "Time steps are put in order, from Nov 2019 to Feb 2020." in said
    assert "1 of 4 months has no data: Jan 2020 is treated as missing." in said
    fit = cv.DynamicModel.load("fit.nc")
    assert fit._reader.axes["time"].tolist() == ["Nov 2019", "Dec 2019", "Jan 2020", "Feb 2020"]
    assert observed(fit, cv.Release.load("three.npz")).row_labels == fit._reader.axes["time"].tolist()


def test_dates_that_could_begin_with_the_day_or_the_month_are_asked_about(months):
    labels = "3/4/2019", "1/5/2019", "2/5/2019"
    cv.Release(np.ones((3, 2), int), LEVEL, True, (labels, ("tea", "jam"))).save("days.npz")
    asked = ["fit", "dynamic", "days.npz", "-o", "fit.nc", *QUICK]
    assert "state day_first=True or day_first=False (--day-first or --month-first)" in fails(*asked)
    for option, order in (("--day-first", [0, 1, 2]), ("--month-first", [1, 2, 0])):
        run(*asked, option, "--force")
        assert cv.DynamicModel.load("fit.nc")._reader.axes["time"].tolist() == [labels[i] for i in order]


def test_a_release_in_waves_has_people_waves_and_items(months):
    values = np.random.default_rng(3).poisson(3.0, (5, 2))
    people, of_row = ("ann", "ann", "bob", "cy", "cy"), (0, 1, 1, 0, 1)
    labels, waves = (people, ("tea", "jam")), (("spring", "summer"), of_row)
    cv.Release(values, LEVEL, True, labels, extras=Extras(waves=waves)).save("waves.npz")
    asked = ["fit", "dynamic", "waves.npz", "-o", "fit.nc", *QUICK]
    said = " ".join(run(*asked).stdout.split())
    fit = cv.DynamicModel.load("fit.nc")
    assert {name: list(found) for name, found in fit._reader.axes.items()} == {
        "person": ["ann", "bob", "cy"],
        "wave": ["spring", "summer"],
        "item": ["tea", "jam"],
    }
    assert fit.time_axis == "wave"
    assert "3 people in 2 waves, 5 reports of 6; what is absent is masked." in said
    assert "come to at most" in said
    assert "Expected counts by wave, with 90% intervals" in said
    assert "--shape must be left out with a release in waves" in fails(*asked, "--shape", "5,2", "--force")


@pytest.mark.parametrize("years", [2, 4])
def test_steps_that_share_a_label_are_steps_of_their_own(months, years):
    values = np.random.default_rng(3).poisson(3.0, (2 * years, 2))
    cv.Release(values, LEVEL, True, (("spring", "autumn") * years, ("tea", "jam"))).save("seasons.npz")
    said = run("fit", "dynamic", "seasons.npz", "-o", "fit.nc", *QUICK).stdout
    _, _, table = said.partition("Expected counts by")
    named = [line for line in table.splitlines() if "spring" in line][:1]
    assert [line.count("spring") for line in named] == ([] if years > 3 else [years])


@pytest.mark.long
def test_from_a_release_to_a_page_with_a_forecast(months):
    run("fit", "dynamic", "months.npz", "-o", "fit.nc", *QUICK)
    run("report", "fit.nc", "-o", "page.html", "--forecast", "2")
    page = (months / "page.html").read_text(encoding="utf-8")
    assert "Where activity goes" in page
    assert "A forecast of 2 steps" in page
    assert "2002-11" in page
