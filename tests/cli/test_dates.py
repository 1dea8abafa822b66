"""Dates of rows on the command line."""

import pytest

from countveil.cli.dates import Times
from countveil.data.dates import read_dates


@pytest.mark.parametrize(
    ("day_first", "names", "steps"),
    [(True, ["2019-04-03", "2019-04-04", "2019-04-05"], [0, 2]), (False, ["2019Q1", "2019Q2"], [0, 1])],
)
def test_the_order_of_day_and_month_may_be_stated(tmp_path, day_first, names, steps):
    table = tmp_path / "times.csv"
    table.write_text("label,date\na,3/4/2019\nb,5/4/2019\n")
    with pytest.raises(ValueError, match=r"got '3/4/2019': .* \(--day-first or --month-first\)"):
        read_dates(Times(table).read(), ["a", "b"], 2)
    found = read_dates(Times(table, day_first).read(), ["a", "b"], 2)
    assert (list(found.names), found.step.tolist()) == (names, steps)


def test_other_labels_stay_as_they_are(tmp_path):
    table = tmp_path / "times.csv"
    table.write_text("label,date\na,2019-11\nb,\n")
    assert Times(table, True).read().isna().tolist() == [False, True]
    table.write_text("label,date\na,2019-11\nb,2019-12\n")
    assert Times(table, True).read().tolist() == ["2019-11", "2019-12"]
    with pytest.raises(ValueError, match="--day-first and --month-first must come with --time"):
        Times(None, True).read()
