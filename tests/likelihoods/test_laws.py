"""Noise times likelihood: which pairs have a closed form, and what rates add to the chance of a positive report."""

import numpy as np
import pytest

from countveil.kernels.general import GeneralLaw
from countveil.likelihoods import LIKELIHOODS, POISSON
from countveil.likelihoods.laws import CLOSED, law_of, positive_beyond_noise
from countveil.likelihoods.poisson import PoissonCounts
from countveil.noise import NOISES, TWO_SIDED_GEOMETRIC
from countveil.noise.two_sided_geometric.law import TwoSidedGeometricKernel, TwoSidedGeometricPoisson
from tests.joint import truncated_logpmf


def test_poisson_counts_under_two_sided_geometric_noise_have_a_closed_form():
    law = law_of(TWO_SIDED_GEOMETRIC, POISSON)
    assert type(law) is TwoSidedGeometricPoisson
    assert law.parameters == ()


def test_any_other_pair_is_general(monkeypatch):
    monkeypatch.setattr("countveil.likelihoods.laws.CLOSED", {})
    law = law_of(TWO_SIDED_GEOMETRIC, POISSON)
    assert type(law) is GeneralLaw
    assert (type(law.noise), type(law.likelihood)) == (TwoSidedGeometricKernel, PoissonCounts)


def test_a_law_takes_the_parameters_of_its_likelihood(monkeypatch):
    parameters = (np.array([1.0, 2.0]),)
    assert law_of(TWO_SIDED_GEOMETRIC, POISSON, parameters).parameters is parameters
    monkeypatch.setattr("countveil.likelihoods.laws.CLOSED", {})
    assert law_of(TWO_SIDED_GEOMETRIC, POISSON, parameters).likelihood.parameters is parameters


def test_closed_forms_are_of_noises_and_likelihoods_that_there_are():
    for mechanism, likelihood in CLOSED:
        assert mechanism in NOISES
        assert likelihood in LIKELIHOODS


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.9])
def test_what_rates_add_to_the_chance_of_a_positive_report(alpha):
    rates = np.array([0.0, 1e-3, 0.4, 5.0, 60.0])
    censored = np.exp(truncated_logpmf(np.zeros(5, dtype=int), rates, np.array(alpha)))
    found = positive_beyond_noise(TWO_SIDED_GEOMETRIC, POISSON, rates, alpha)
    np.testing.assert_allclose(found, censored[0] - censored, rtol=1e-9, atol=1e-15)


def test_of_a_small_rate_it_loses_no_digits():
    found = positive_beyond_noise(TWO_SIDED_GEOMETRIC, POISSON, 1e-12, 0.5)
    assert found == pytest.approx(0.5e-12 / 1.5, rel=1e-11)
