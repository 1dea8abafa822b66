"""Sums of counts given their reports: those of a right fit are hardly ever doubted, those of a wrong one are."""

from types import SimpleNamespace

import numpy as np
import pytest

import countveil as cv
from countveil import mechanisms as m
from countveil.data.observations import PrivatizedCounts
from countveil.data.reports import observations_of
from countveil.fit import predictive_checks as module
from countveil.fit.predictive_checks import of_counts
from countveil.laws.counts import POISSON, NegativeBinomial

LIKELIHOODS = {"poisson": POISSON, "row": NegativeBinomial("row")}


def geometric(alpha):
    """Data of counts under two-sided geometric noise."""

    def observe(counts, rng):
        noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
        return PrivatizedCounts(counts + noise[0] - noise[1], alpha)

    return observe


def gaussian(counts, rng):
    """Data of counts under Gaussian noise."""
    return observations_of(cv.Reports(counts + rng.normal(0.0, 3.0, counts.shape), m.Gaussian(3.0)))


def stub(theta, phi, parameters, likelihood):
    """A fit whose draws are all the same."""
    return SimpleNamespace(
        seed_=1,
        model_=SimpleNamespace(likelihood=likelihood),
        even_draws=lambda n: iter([((theta, phi), parameters)] * n),
    )


def case(rng, kind, observe, shape=(30, 20), sizes=1.0):
    """(a fit that has the true rates, the data)."""
    likelihood = LIKELIHOODS[kind]
    theta, phi = rng.gamma(0.5, 1.0, (shape[0], 3)), rng.gamma(0.5, 1.0, (shape[1], 3))
    theta *= np.reshape(sizes, (-1, 1))
    parameters = likelihood.start(shape)
    own = (parameters[0][:, None],) if kind == "row" else parameters[:1]
    counts = likelihood.sample(theta @ phi.T, rng, own).astype(np.int64)
    return stub(theta, phi, parameters, likelihood), observe(counts, rng)


@pytest.mark.parametrize("kind", LIKELIHOODS)
@pytest.mark.parametrize("observe", [geometric(0.3), geometric(0.9), gaussian])
def test_true_rates_are_hardly_ever_doubted(kind, observe):
    found = [
        of_counts(*case(np.random.default_rng(seed), kind, observe), np.arange(30)) for seed in range(20)
    ]
    assert not any(found)


def test_a_row_of_one_report_has_the_tail_of_the_noise(monkeypatch):
    def doubted():
        cases = (case(np.random.default_rng(s), "poisson", geometric(0.95), (2000, 1)) for s in range(20))
        return sum(bool(of_counts(*each, np.arange(2000))) for each in cases)

    assert doubted() == 0
    monkeypatch.setattr(module, "LAPLACE", 0.0)  # as if the tails of all sums were those of a Gaussian
    assert doubted() > 2


@pytest.mark.parametrize(
    ("kind", "remedy"), [("poisson", 'likelihood="negative-binomial"'), ("row", 'dispersion="column"')]
)
@pytest.mark.parametrize("observe", [geometric(0.3), gaussian])
def test_a_fit_that_takes_counts_for_noise_is_told_what_to_try(kind, remedy, observe):
    fit, data = case(np.random.default_rng(1), kind, observe, (200, 100))
    (theta, phi), parameters = next(fit.even_draws(1))
    wrong = stub(0.2 * theta, phi, parameters, LIKELIHOODS[kind])
    assert not of_counts(fit, data, np.arange(200))
    (said,) = of_counts(wrong, data, np.arange(200))
    assert said.startswith(
        "The fit does not explain the sums of its reports: the true counts of all reports add up"
    )
    assert f"Try {remedy}" in said


def test_masked_cells_and_rows_that_were_chosen_count():
    rng = np.random.default_rng(3)
    fit, data = case(rng, "row", geometric(0.5), (40, 30), sizes=np.where(np.arange(40) < 20, 10.0, 0.1))
    rows = np.arange(0, 40, 2)
    hidden = data.hide(np.array([0, 2]), np.array([1, 1]))
    assert not of_counts(fit, hidden.take(rows), rows)
    assert of_counts(fit, data, np.arange(40)[::-1]), "rates of other rows"


def test_nothing_is_said_where_reports_are_no_unbiased_estimates():
    rng = np.random.default_rng(4)
    fit, _ = case(rng, "poisson", geometric(0.5))
    rounded = observations_of(cv.Reports(5.0 * rng.poisson(3.0, (30, 20)), m.Rounding(5)))
    assert not of_counts(fit, rounded, np.arange(30))
