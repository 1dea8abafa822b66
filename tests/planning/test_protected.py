"""Simulated reports of a plan: by a promise or by any mechanism, and what those see who do not know it."""

import numpy as np
import pytest

import countveil as cv
from countveil.planning import FromPrior, Grid, simulate
from countveil.planning.protected import heading, numbers, protected, said
from countveil.privacy import PrivacyLevel
from tests.silent import Silent

m = cv.mechanisms
COUNTS = np.random.default_rng(1).poisson(np.random.default_rng(2).gamma(0.5, 20.0, (30, 8)))
KINDS = [m.DiscreteGaussian(2), m.RandomRounding(5), m.Suppression(10), m.Thresholded(m.Gaussian(3), 4)]


@pytest.mark.parametrize("mechanism", KINDS, ids=repr)
def test_absent_reports_are_zeros_to_those_who_do_not_know(mechanism):
    found = protected(COUNTS, mechanism, np.random.default_rng(3))
    values = np.asarray(cv.simulate_reports(COUNTS, mechanism, np.random.default_rng(3)), dtype=float)
    assert found.known.simulated
    assert found.known.noise.mechanisms == (mechanism,)
    np.testing.assert_array_equal(found.known.made.report(0).values, values)
    np.testing.assert_array_equal(found.plain.reports, np.nan_to_num(values))
    np.testing.assert_array_equal(found.naive, np.rint(np.nan_to_num(values).clip(0)))
    assert found.plain.shape == COUNTS.shape


def test_promises_make_simulated_releases():
    for level in (PrivacyLevel(1, 2), PrivacyLevel.zcdp("0.125")):
        found = protected(COUNTS, level, np.random.default_rng(3))
        assert found.known is found.naive is found.plain
        assert found.known.simulated
        assert not found.known.truncated
        assert found.known.levels == level


def test_names():
    assert [said(each) for each in (PrivacyLevel(1, 2), PrivacyLevel.zcdp("0.125"), m.Rounding(5))] == [
        "2:1",
        "rho:0.125",
        "Rounding(5)",
    ]
    assert [heading(each) for each in ("2:1", "rho:0.125", "Rounding(5)")] == [
        "N:epsilon = 2:1",
        "rho:0.125",
        "Rounding(5)",
    ]
    assert numbers(PrivacyLevel(1, 2)) == {"precision": "2", "epsilon": "1"}
    assert numbers(m.Rounding(5)) == numbers(PrivacyLevel.zcdp(1)) == numbers(None)


@pytest.mark.long
def test_who_knows_the_mechanism_is_nearer_to_the_rates():
    levels = [m.Suppression(10), m.DiscreteGaussian(4), PrivacyLevel.zcdp(2)]
    fits = simulate(Grid(levels, [40], 2), FromPrior(2, 12, 60.0), Silent(), tune=20, draws=20)
    mean = fits.groupby(["level", "method"])["mae_of_rates"].mean()
    for level in levels[:2]:
        assert mean[repr(level), "countveil"] < 0.8 * mean[repr(level), "naive"]
    assert mean["no noise", "true counts"] < mean["rho:2", "countveil"] < mean[repr(levels[1]), "countveil"]
    naive = fits[(fits["level"] == repr(levels[0])) & (fits["method"] == "naive")]
    assert (naive["total"] < 0.97).all()
