"""Noise times likelihood: which pairs have a closed form, and what rates add to the chance of a positive report."""

from typing import NamedTuple

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.kernels import general
from countveil.kernels.general import GeneralLaw
from countveil.kernels.law import provides
from countveil.laws.counts import LIKELIHOODS, POISSON
from countveil.laws.counts.laws import CLOSED, exposed, law_of, positive_beyond_noise
from countveil.laws.counts.poisson import PoissonCounts
from countveil.laws.noise import NOISES, TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricKernel, TwoSidedGeometricPoisson
from tests.joint import truncated_logpmf


def test_poisson_counts_under_two_sided_geometric_noise_have_a_closed_form():
    law = law_of(TWO_SIDED_GEOMETRIC, POISSON)
    assert type(law) is TwoSidedGeometricPoisson
    assert law.likelihood == PoissonCounts()


def test_any_other_pair_is_general(monkeypatch):
    monkeypatch.setattr("countveil.laws.counts.laws.CLOSED", {})
    law = law_of(TWO_SIDED_GEOMETRIC, POISSON)
    assert type(law) is GeneralLaw
    assert (type(law.noise), type(law.likelihood)) == (TwoSidedGeometricKernel, PoissonCounts)


def test_a_law_takes_the_parameters_of_its_likelihood(monkeypatch):
    parameters = (np.array([1.0, 2.0]),)
    assert law_of(TWO_SIDED_GEOMETRIC, POISSON, parameters).likelihood.parameters is parameters
    monkeypatch.setattr("countveil.laws.counts.laws.CLOSED", {})
    assert law_of(TWO_SIDED_GEOMETRIC, POISSON, parameters).likelihood.parameters is parameters


class Shares(NamedTuple):
    """A likelihood whose exposures are a share of Poisson counts'."""

    parameters: tuple[np.ndarray, ...]


@provides(general.parts_exposure, Shares)
def parts_exposure(likelihood, ratio):
    return likelihood.parameters[0][0] * (1.0 - ratio)


def test_a_law_gives_the_cells_that_are_not_stored_their_exposures():
    levels, reports = np.array([0.1, 0.3, 0.6]), np.array([[0, 2, -1], [3, 0, 1], [-2, 0, 0]])
    entries = PrivatizedCounts(reports, levels).block(slice(0, 3))
    for share in (0.5, 0.2):
        law = GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, Shares((np.array([share]),)))
        found = exposed(entries, law)
        np.testing.assert_allclose(found.exposure_d, share * (1.0 - levels), rtol=1e-15)
        assert found._replace(exposure_d=entries.exposure_d) == entries


def test_entries_are_as_they_come_for_poisson_counts_and_where_all_cells_are_stored():
    reports, each = np.array([[0, 2], [3, 0]]), np.array([[0.1, 0.2], [0.3, 0.4]])
    entries = PrivatizedCounts(reports, 0.3).block(slice(0, 2))
    for law in (law_of(TWO_SIDED_GEOMETRIC, POISSON), GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, POISSON.counts)):
        assert exposed(entries, law) is entries
    entries = PrivatizedCounts(reports, each).block(slice(0, 2))
    assert exposed(entries, GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, Shares((np.ones(1),)))) is entries


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
