"""The Poisson likelihood against SciPy's law, and against what is asked of a likelihood."""

import numpy as np
import pytest
from scipy import stats

from countveil.laws.counts import LIKELIHOODS, POISSON, Poisson, Unseen
from tests import reference
from tests.joint import FALSE_ALARM

RATES = np.array([1e-6, 0.3, 2.0, 40.0, 1e5])


def test_it_goes_by_its_name():
    assert LIKELIHOODS["poisson"] is POISSON
    assert isinstance(POISSON, Poisson)
    assert repr(POISSON) == POISSON.name == "poisson"


def test_log_mass_is_scipys():
    counts = np.array([0, 1, 5, 40, 100_000])[:, None]
    np.testing.assert_allclose(
        POISSON.log_mass(counts, RATES), stats.poisson.logpmf(counts, RATES), rtol=1e-9, atol=1e-12
    )


def test_without_a_rate_there_is_no_count():
    assert POISSON.log_mass(0, 0.0) == 0.0
    assert POISSON.log_mass(1, 0.0) < -600.0


def test_the_mean_is_the_rate():
    counts = np.arange(300)
    mass = np.exp(POISSON.log_mass(counts, RATES[:4, None]))
    np.testing.assert_allclose(mass @ counts, POISSON.mean(RATES[:4]), rtol=1e-10)


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.5, 0.95])
def test_the_exposure_is_that_of_a_kernel_geometric_in_the_count(ratio):
    """The sum over counts of mass times ratio^count is e^-(exposure rate)."""
    counts, rates = np.arange(300), RATES[:4, None]
    total = (np.exp(POISSON.log_mass(counts, rates)) * ratio**counts).sum(axis=1)
    np.testing.assert_allclose(total, np.exp(-POISSON.exposure(ratio) * rates[:, 0]), rtol=1e-10)


@pytest.mark.parametrize("rate", [0.3, 40.0])
def test_samples_have_the_law(rate):
    drawn = POISSON.sample(np.full((100, 200), rate), np.random.default_rng(1))
    assert drawn.shape == (100, 200)
    law = stats.poisson.pmf(np.arange(150), rate)
    assert reference.chi_square_p_value(drawn.ravel(), 0, law) > FALSE_ALARM / 2
    wrong = stats.poisson.pmf(np.arange(150), 1.1 * rate)
    assert reference.chi_square_p_value(drawn.ravel(), 0, wrong) < FALSE_ALARM / 2


def test_it_has_no_parameters_to_update():
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    assert POISSON.start((5, 4)) == ()
    assert POISSON.tally_size((5, 4)) == 0
    assert POISSON.update((), np.empty(0), Unseen(np.empty(0), np.empty(0)), rng) == ()
    assert rng.bit_generator.state == before
