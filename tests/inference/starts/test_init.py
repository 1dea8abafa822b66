import numpy as np
import pytest

from countveil.inference import augmented_gibbs, bessel_cavi, cavi, em, gibbs, starts, svi
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from tests.factorizations import CASES, alpha_of, mask_of, model_of, observe, rates_of
from tests.joint import SERIAL, assert_same_bits, draw_reports


@pytest.mark.parametrize("start", [starts.least_squares, starts.spectral])
@pytest.mark.parametrize(("name", "shift"), [("directed", 0), ("directed", 1), ("undirected", 0)])
def test_networks_do_not_start_with_one_community_for_all(name, shift, start):
    """Messages stay within communities (shift 0) or go to the next one."""
    case, group = CASES[name]._replace(shape=(45, 45), priors={}), np.arange(45) % 3
    blocks = np.full((3, 3), 0.5) + 5.5 * np.roll(np.eye(3), shift, axis=1)
    model, seen = model_of(case, c=3, d=3), ~mask_of(case)
    mu = blocks[group][:, group]
    reports = draw_reports(mu, alpha_of(case), np.random.default_rng(5))
    observations = observe(model, case, reports, ~seen)
    flat = np.abs(mu - mu[seen].mean())[seen].mean()
    for seed in range(6):
        rates = rates_of(model, start(observations, model, np.random.default_rng(seed), SERIAL))
        assert np.abs(rates - mu)[seen].mean() < 0.5 * flat


@pytest.mark.parametrize(
    ("name", "expected"),
    [("topics", starts.least_squares), ("directed", starts.spectral), ("CP 3", starts.least_squares)],
)
def test_models_of_communities_start_at_their_spectrum(name, expected):
    case = CASES[name]
    model = model_of(case)
    reports = draw_reports(np.full(case.shape, 2.0), alpha_of(case), np.random.default_rng(5))
    observations = observe(model, case, reports, mask_of(case))
    found, other = (
        start(observations, model, np.random.default_rng(1), SERIAL) for start in (starts.automatic, expected)
    )
    assert_same_bits(found, other)


@pytest.mark.parametrize("algorithm", [augmented_gibbs, bessel_cavi, cavi, em, gibbs, svi])
def test_a_start_that_is_not_finite_is_refused_before_anything_goes_on(algorithm):
    case = CASES["topics"]
    model = model_of(case)
    observations = observe(model, case, np.ones(case.shape, dtype=int), mask_of(case))

    def broken(*arguments):
        factors = [factor.copy() for factor in starts.least_squares(*arguments)]
        factors[1].flat[2] = np.nan
        return tuple(factors)

    given, more = (observations, {"total_rows": 6}) if algorithm is svi else (Plan(observations, model), {})
    with pytest.raises(FloatingPointError, match="start must give finite factors, got vk by 'broken'"):
        algorithm.init(given, model, Streams.of_chain(1, 0), SERIAL, start=broken, **more)


def test_models_without_a_shared_factor_have_no_spectrum():
    case = CASES["topics"]
    model = model_of(case)
    observations = observe(model, case, np.ones(case.shape, dtype=int), np.zeros(case.shape, dtype=bool))
    with pytest.raises(ValueError, match='start "spectral" needs a factor that rows and columns share'):
        starts.spectral(observations, model, np.random.default_rng(1), SERIAL)
