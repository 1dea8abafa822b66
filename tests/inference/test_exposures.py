"""Exposures by cell, in every method: the joint law, recovery, offsets that say the same, and hidden counts."""

import numpy as np
import pytest

import countveil as cv
from countveil.inference import dispersion as moves
from countveil.inference.methods import METHODS
from countveil.inference.streams import Streams
from countveil.kernels import exposed_law
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.privacy.mechanisms import Suppression
from tests.joint import SERIAL, batch_error, bound, mu_of, run_chain, small_model, two_sided_geometric
from tests.laws.counts.test_negative_binomial import ROWS, SIZE, SPECS, joint_scores

pytestmark = pytest.mark.long

EXPOSURE = {
    kind: np.exp(np.random.default_rng(4).normal(0.0, 1.2, size)) for kind, (*_, size) in SPECS.items()
}


def noisy(exposure):
    """How counts are reported and read: with two-sided geometric noise by row."""

    def read(counts, mask, rng):
        noise = two_sided_geometric(np.broadcast_to(ROWS[:, None], counts.shape), rng)
        return cv.PrivatizedCounts(counts + noise, ROWS[:, None], mask, exposure=exposure)

    return read


def hidden(exposure, totals=False):
    """The same: with small counts hidden, and the exact sums of rows besides."""

    def read(counts, mask, rng):
        values = np.where((counts > 0) & (counts < 4), np.nan, counts)
        known = [(1, counts.sum(axis=1))] if totals else None
        return cv.Reports(values, Suppression(4), mask, totals=known, exposure=exposure)

    return read


LIKELIHOODS = {
    "poisson": POISSON,
    **{name: NegativeBinomial(name) for name in ("global", "column", "row")},
}


@pytest.mark.parametrize(
    ("name", "kind", "read"),
    [
        ("poisson", "topics", noisy),
        ("poisson", "blocks", noisy),
        ("global", "topics", noisy),
        ("column", "topics", hidden),
        ("row", "topics", noisy),
        ("column", "blocks", noisy),
    ],
)
def test_sweeps_leave_the_joint_law_as_it_is(name, kind, read):
    exposure = EXPOSURE[kind]
    z = joint_scores(LIKELIHOODS[name], kind, read(exposure), exposure=exposure)
    assert z.max() < bound(len(z))


def test_sweeps_beside_known_totals_leave_it_too():
    exposure = EXPOSURE["topics"]
    z = joint_scores(POISSON, "topics", hidden(exposure, True), exposure=exposure, masked=False)
    assert z.max() < bound(len(z))


@pytest.mark.parametrize("name", ["poisson", "column"])
def test_the_joint_law_shows_an_exposure_that_conditional_rates_forget(name, monkeypatch):
    from countveil.inference import factors, gibbs

    def without(exposure):
        return lambda data, law, *given: exposure(data, getattr(law, "plain", law), *given)

    monkeypatch.setattr(moves, "learns_p", lambda model: False)
    monkeypatch.setattr(gibbs, "sweep_rows", forgetful(gibbs.sweep_rows))
    exposure = EXPOSURE["topics"]
    z = joint_scores(LIKELIHOODS[name], "topics", noisy(exposure), exposure=exposure)
    assert z.max() > bound(len(z))


def forgetful(sweep_rows):
    """A sweep that draws rows as if every exposure by cell were 1, given counts that know them."""

    def sweep(data, model, law, *given):
        return sweep_rows(data, model, law._replace(exposure_dv=np.ones_like(law.exposure_dv)), *given)

    return sweep
