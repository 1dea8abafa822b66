"""What a fit keeps about itself comes back, and is refused where it makes no sense."""

import numpy as np
import pytest
import xarray as xr

from countveil.data.mechanism_checks import MechanismCheck
from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.data.reports import Reports
from countveil.inference import kept
from countveil.inference.diagnostics import Share, Totals
from countveil.privacy.mechanisms import Suppression

TOTALS = Totals(5.0, 1.0, 4.0, 3.0, 6.0)
WITHOUT = Totals(5.0, 1.0, 4.0, None, None)
FOUND = MechanismCheck(("No.",), ("Not that.",), ("Nor that.",))


@pytest.mark.parametrize("totals", [TOTALS, WITHOUT])
def test_what_is_kept_comes_back(totals):
    tree = xr.DataTree()
    assert (kept.share_kept(tree), kept.totals_kept(tree), kept.mechanism_kept(tree)) == (None, None, None)
    share = Share(0.9, 0.1)
    tree.attrs = kept.kept_share(share) | kept.kept_totals(totals) | kept.kept_mechanism(FOUND)
    kept.check_kept(tree)
    assert (kept.share_kept(tree), kept.totals_kept(tree), kept.mechanism_kept(tree)) == (share, totals, FOUND)


def test_the_number_of_masked_cells_and_a_digest_of_the_reports_come_back():
    tree = xr.DataTree()
    assert (kept.masked_kept(tree), kept.reports_kept(tree)) == (None, None)
    reports = np.array([[2, 0, 1], [0, -1, 3]])
    data = PrivatizedCounts(reports, 0.5)
    tree.attrs = kept.kept_data(data)
    kept.check_kept(tree)
    assert (kept.masked_kept(tree), kept.reports_kept(tree)) == (0, kept.digest_of(data))
    assert kept.digest_of(PrivatizedCounts(np.maximum(reports, 0), 0.5)) == kept.digest_of(data)
    rows = [np.array([[2, 0, 1], [0, 0, 0]]), np.array([[2, 0, 0], [0, 0, 1]])]
    assert len({kept.digest_of(PrivatizedCounts(each, 0.5)) for each in rows}) == 2
    for other in (reports[:, ::-1], reports[::-1], reports * [[1, 1, 2], [1, 1, 1]]):
        assert kept.digest_of(PrivatizedCounts(other, 0.5)) != kept.digest_of(data)


def test_a_digest_is_the_same_however_much_is_read_at_once(monkeypatch):
    data = PrivatizedCounts(np.random.default_rng(1).poisson(1.0, (20, 9)), 0.5)
    whole = kept.digest_of(data)
    for entries in (1, 7):
        monkeypatch.setattr(kept, "ENTRIES_AT_ONCE", entries)
        assert kept.digest_of(data) == whole


def test_true_counts_leave_no_digest():
    assert kept.kept_data(ExactCounts(np.ones((2, 2), dtype=int))) == {"masked_cells": 0}


@pytest.mark.parametrize(
    "attributes",
    [
        {"signal_share": "0.9"},
        {"total_reported": 1.0, "total_error": 2.0},
        {name: value for name, value in kept.kept_totals(TOTALS).items() if name != "total_error"},
        {"signal_share": 0.9},
        {"masked_cells": "5"},
        {"reports": 5},
        {"reports": "0" * 63 + "g"},
        kept.kept_totals(TOTALS) | {"total_lower": np.array([1.0, 2.0])},
    ],
)
def test_what_is_no_number_or_not_whole_is_refused(attributes):
    tree = xr.DataTree()
    tree.attrs = attributes
    with pytest.raises(ValueError, match="must state"):
        kept.check_kept(tree)


def test_a_digest_is_of_reports_and_not_of_their_codes():
    reports = np.array([[10, 15, np.nan], [25, np.nan, 40]])
    other = np.where(reports == 40, 35, reports)
    by = [Reports(each, Suppression(10)) for each in (reports, other, reports.copy())]
    assert (by[0].reports == by[1].reports).all()
    first, second, third = map(kept.digest_of, by)
    assert first == third != second
