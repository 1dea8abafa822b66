"""What a fit keeps about itself comes back, and is refused where it makes no sense."""

import numpy as np
import pytest
import xarray as xr

from countveil.inference import kept
from countveil.inference.diagnostics import Share, Totals
from countveil.noise.protocol import Contradiction

TOTALS = Totals(5.0, 1.0, 4.0, 3.0, 6.0)
WITHOUT = Totals(5.0, 1.0, 4.0, None, None)
FOUND = Contradiction(0.5, 0.4, True)


@pytest.mark.parametrize("totals", [TOTALS, WITHOUT])
def test_what_is_kept_comes_back(totals):
    tree = xr.DataTree()
    assert (kept.share_kept(tree), kept.totals_kept(tree), kept.contradiction_kept(tree)) == (
        None,
        None,
        None,
    )
    share = Share(0.9, 0.1)
    tree.attrs = kept.kept_share(share) | kept.kept_totals(totals) | kept.kept_contradiction(FOUND)
    kept.check_kept(tree)
    assert (kept.share_kept(tree), kept.totals_kept(tree), kept.contradiction_kept(tree)) == (
        share,
        totals,
        FOUND,
    )


def test_the_number_of_masked_cells_comes_back():
    tree = xr.DataTree()
    assert kept.masked_kept(tree) is None
    tree.attrs = kept.kept_masked(0)
    kept.check_kept(tree)
    assert kept.masked_kept(tree) == 0


def test_files_of_earlier_versions_have_a_share_without_an_error():
    tree = xr.DataTree()
    tree.attrs = {"signal_share": 0.9}
    kept.check_kept(tree)
    assert kept.share_kept(tree) == Share(0.9, 0.0)


@pytest.mark.parametrize(
    "attributes",
    [
        {"signal_share": "0.9"},
        {"total_reported": 1.0, "total_error": 2.0},
        {name: value for name, value in kept.kept_totals(TOTALS).items() if name != "total_error"},
        {"level_stated": 0.5},
        {"masked_cells": "5"},
        {"level_stated": 0.5, "level_found": 0.4, "level_at_most": True},
        kept.kept_totals(TOTALS) | {"total_lower": np.array([1.0, 2.0])},
    ],
)
def test_what_is_no_number_or_not_whole_is_refused(attributes):
    tree = xr.DataTree()
    tree.attrs = attributes
    with pytest.raises(ValueError, match="must state"):
        kept.check_kept(tree)
