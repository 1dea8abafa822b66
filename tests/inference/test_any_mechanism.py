"""Gibbs sampling given reports of any mechanism: the joint law is kept, and true values rank uniformly."""

import numpy as np
import pytest

import countveil as cv
from countveil.data.numbering import in_rows
from countveil.laws.counts import POISSON, NegativeBinomial
from tests.inference.test_calibration_of_bursts import DRAWS, RUNS, ranks
from tests.joint import FALSE_ALARM, bound, rank_p_values
from tests.laws.counts.test_negative_binomial import joint_scores

pytestmark = pytest.mark.long

m = cv.mechanisms
RESPONSE = m.Table([[0.7, 0.2, 0.1]] + [[0.1, 0.6, 0.3]] * 3 + [[0.2, 0.1, 0.7]] * 96)  # not log-concave
SWEEPS, MORE_SWEEPS, BATCHES = 200, 350, 20  # the planted faults below are seen with the fewer ones

ROWS = {  # a mechanism for each of four rows
    "noise": [m.DiscreteGaussian(1), m.Gaussian(2), m.Laplace(1), m.Skellam(2, 0.5)],
    "coarse": [m.RandomRounding(3), m.Rounding(2), m.Suppression(3), m.TopCoding(2)],
    "cut": [
        m.Thresholded(m.TwoSidedGeometric(0.5), 1),
        m.Thresholded(m.Gaussian(1), "0.5"),
        m.Suppression(4, False),
        m.TwoSidedGeometric(0.6),
    ],
}


def reported(counts, mechanisms, rng):
    return np.stack(
        [
            np.asarray(cv.simulate_reports(row, each, rng), dtype=float)
            for row, each in zip(counts, mechanisms, strict=True)
        ]
    )


def by_row(mechanisms):
    return lambda counts, mask, rng: cv.Reports(
        reported(counts, mechanisms, rng), in_rows(mechanisms, counts.ndim), mask
    )


def twice(first, second):
    """Two reports of every count; the second is missing in one cell."""

    def read(counts, mask, rng):
        missing = np.zeros(counts.shape, dtype=bool)
        missing[1, 1] = True
        once = cv.Reports(reported(counts, first, rng), in_rows(first, counts.ndim), mask)
        return once.also(reported(counts, second, rng), in_rows(second, counts.ndim), mask | missing)

    return read


CASES = [
    ("topics", NegativeBinomial("global"), by_row(ROWS["noise"])),
    ("topics", POISSON, by_row(ROWS["coarse"])),
    ("blocks", POISSON, by_row(ROWS["cut"])),
    ("topics", NegativeBinomial("row"), by_row(ROWS["cut"])),
    ("topics", POISSON, by_row([RESPONSE] * 4)),
    ("blocks", NegativeBinomial("global"), twice(ROWS["noise"], ROWS["cut"])),
]


@pytest.mark.parametrize(("kind", "likelihood", "read"), CASES)
def test_sweeps_leave_the_joint_law_as_it_is(kind, likelihood, read):
    sweeps = SWEEPS if likelihood is POISSON else MORE_SWEEPS  # dispersions change slowly
    z = joint_scores(likelihood, kind, read, sweeps=sweeps, batches=BATCHES)
    assert z.max() < bound(len(z), BATCHES)


def untrue(mechanisms, others):
    """Counts protected by some mechanisms, and read as if they were protected by others."""
    return lambda counts, mask, rng: cv.Reports(reported(counts, mechanisms, rng), others, mask)


@pytest.mark.parametrize(
    ("likelihood", "read"),
    [
        (POISSON, untrue([m.DiscreteGaussian(3)] * 4, [m.DiscreteGaussian(1)] * 4)),
        (POISSON, untrue([m.Suppression(3, False)] * 4, [m.Suppression(2, False)] * 4)),
        (NegativeBinomial("global"), untrue([m.TopCoding(2)] * 4, [m.TopCoding(9)] * 4)),
    ],
    ids=["noise", "suppression", "top-coding"],
)
def test_the_joint_law_shows_another_mechanism(likelihood, read):
    z = joint_scores(likelihood, "topics", read, sweeps=SWEEPS, batches=BATCHES)
    assert z.max() > bound(len(z), BATCHES)


def test_true_values_rank_uniformly_among_posterior_draws():
    """With a row of each kind; the joint law above has all of them."""
    mechanisms = [ROWS["noise"][0], ROWS["coarse"][0], *ROWS["cut"][1:3]]
    p = rank_p_values(ranks(NegativeBinomial("global"), by_row(mechanisms), RUNS), DRAWS)
    assert p.min() > FALSE_ALARM / p.size
