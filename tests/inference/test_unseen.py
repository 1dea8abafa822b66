"""The rates of cells without a positive report, against sums over all cells."""

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import unseen
from countveil.laws.counts import Poisson
from tests.joint import SERIAL, small_model

SIZE = (150, 7)
ROWS = np.where(np.arange(150) % 3 == 0, 0.2, 0.6)
LEVELS = {
    "one": 0.4,
    "by row": ROWS,
    "by column": np.linspace(0.1, 0.5, 7)[None],
    "by cell": ROWS[:, None] * np.ones(7),
}


class Shares(Poisson):
    """Parameters that are the same for all cells, the cells of a row, or those of a column."""

    def __init__(self, along):
        self.parameter_axes = {"one": "all", "other": along}


@pytest.mark.parametrize("levels", list(LEVELS))
@pytest.mark.parametrize("along", ["all", "row", "column"])
def test_rates_are_added_up_by_level_and_by_what_shares_parameters(levels, along):
    rng = np.random.default_rng(4)
    reports, mask = rng.integers(-2, 4, SIZE), rng.random(SIZE) < 0.2
    factors = [rng.gamma(1.0, 1.0, (n, 2)) for n in SIZE]
    data = PrivatizedCounts(reports, LEVELS[levels], mask)
    model = small_model(SIZE)._replace(likelihood=Shares(along))
    found = unseen.unseen_rates(model, factors, data, SERIAL)
    level = LEVELS[levels][:, None] if levels == "by row" else LEVELS[levels]
    level, rates = np.broadcast_to(level, SIZE), factors[0] @ factors[1].T
    cells = (reports <= 0) & ~mask
    ratios = np.unique(level)
    np.testing.assert_allclose(found.ratio, data.noise.ratio(ratios))
    kept = np.stack([np.where(cells & (level == ratio), rates, 0.0) for ratio in ratios])
    summed = {"all": (1, 2), "row": 2, "column": 1}[along]
    expected = kept.sum(axis=summed).reshape(ratios.size, -1)
    np.testing.assert_allclose(found.rate, expected, rtol=1e-11, atol=1e-13)
    with ThreadEngine(2) as engine:
        other = unseen.unseen_rates(model, factors, data, engine)
    np.testing.assert_array_equal(found.rate, other.rate)


def test_a_stored_report_of_zero_is_not_seen():
    data = PrivatizedCounts(np.array([[0, 2, 1]]), 0.4)
    factors = [np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])]
    assert unseen.unseen_rates(small_model((1, 3)), factors, data, SERIAL).rate == [1.0]
    data.reports = np.array([0, 1], dtype=np.int16)
    assert unseen.unseen_rates(small_model((1, 3)), factors, data, SERIAL).rate == [3.0]
