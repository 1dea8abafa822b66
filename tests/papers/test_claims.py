import numpy as np
import pandas as pd
import pytest

from papers.claims import FAILS, HOLDS, UNTESTED, Comparison, compared

LOWER = Comparison("mae", "ours", "naive")


def table(ours, naive, levels=(1, 2), draws=1):
    rows = [
        {"level": level, "draw": d, "method": method, "mae": values[i]}
        for method, values in (("ours", ours), ("naive", naive))
        for i, level in enumerate(levels)
        for d in range(draws)
    ]
    return pd.DataFrame(rows)


def test_a_planted_lead_holds_and_a_planted_loss_does_not():
    assert compared("c", table([1, 2], [3, 4]), ["level"], LOWER).outcome == HOLDS
    lost = compared("c", table([1, 5], [3, 4]), ["level"], LOWER)
    assert lost.outcome == FAILS
    assert lost.measured == "in 1 of 2 settings. level 1: 1 against 3; level 2: 5 against 4 NO"


def test_higher_is_better_turns_it_round():
    higher = Comparison("mae", "ours", "naive", higher=True)
    assert compared("c", table([3, 4], [1, 2]), ["level"], higher).outcome == HOLDS
    assert compared("c", table([1, 2], [3, 4]), ["level"], higher).outcome == FAILS


def test_a_tie_is_no_lead():
    assert compared("c", table([1], [1], (1,)), ["level"], LOWER).outcome == FAILS


@pytest.mark.parametrize(("share", "outcome"), [(0.5, HOLDS), (0.51, FAILS)])
def test_a_share_of_settings(share, outcome):
    half = table([1, 5], [3, 4])
    assert compared("c", half, ["level"], LOWER._replace(share=share)).outcome == outcome


def test_draws_are_averaged():
    rows = pd.DataFrame(
        [(1, d, "ours", m) for d, m in enumerate((1.0, 6.0))] + [(1, d, "naive", 3.0) for d in range(2)],
        columns=["level", "draw", "method", "mae"],
    )
    assert compared("c", rows, ["level"], LOWER).outcome == FAILS


def test_a_method_without_noise_is_compared_at_every_level():
    rows = table([1, 2], [3, 4])
    rows.loc[rows["method"] == "naive", "level"] = np.nan
    found = compared("c", rows, ["level"], LOWER)
    assert found.outcome == HOLDS
    assert "level 2.0: 2 against 3.5" in found.measured


def test_without_numbers_a_claim_is_not_tested():
    assert compared("c", table([1], [2], (1,)).query("method == 'naive'"), ["level"], LOWER).outcome == UNTESTED
    assert compared("c", table([1], [np.nan], (1,)), ["level"], LOWER).outcome == UNTESTED
