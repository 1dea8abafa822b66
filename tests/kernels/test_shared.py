"""A factor on both axes: the tilted gamma against its density, and actors' updates against dense sums."""

import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import PrivatizedCounts
from countveil.inference.factors import make_links
from countveil.kernels import shared as kernels
from tests.joint import FALSE_ALARM, LAW, dense_exposures

DRAWS = 5_000


def tilted_cdf(shape, rate, square):
    """The distribution function of x^(shape - 1) exp(-rate x - square x^2), by adding up on a fine grid of log x."""
    log_x = np.linspace(-60.0 / min(shape, 1.0), np.log((shape + 40.0) / max(rate, np.sqrt(square))) + 2.0, 100_001)
    x = np.exp(log_x)
    log_density = shape * log_x - rate * x - square * x * x
    density = np.exp(log_density - log_density.max())
    steps = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(log_x))])
    return lambda values: np.interp(np.log(values), log_x, steps / steps[-1])


def draws_of(shape, rate, square, seed=1, draws=DRAWS):
    rng = np.random.default_rng(seed)
    return np.array([kernels.sample_tilted_gamma(shape, rate, square, rng) for _ in range(draws)])


PARAMETERS = [
    (0.1, 1.0, 3.0), (0.1, 1e-3, 50.0), (1.0, 2.0, 0.5), (3.5, 0.5, 2.0), (3.5, 1e-6, 1.0), (60.0, 5.0, 4.0),
    (400.0, 1.0, 0.01), (2.0, 300.0, 1.0), (1.5, 1.0, 0.0),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("shape", "rate", "square"), PARAMETERS)
def test_the_tilted_gamma_has_its_density(shape, rate, square):
    drawn = draws_of(shape, rate, square)
    assert stats.kstest(drawn, tilted_cdf(shape, rate, square)).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("shape", "rate", "square"), [p for p in PARAMETERS if p[0] >= 1.0 and p[2] > 0.5 and p[1] < 10]
)
def test_the_tilt_is_seen(shape, rate, square):
    drawn = draws_of(shape, rate, square)
    for other in (tilted_cdf(shape, rate, square / 2), tilted_cdf(shape, rate + square, 0.0)):
        assert stats.kstest(drawn, other).pvalue < FALSE_ALARM


def scene(each, loops, n_rests=2, n_components=3, seed=1):
    """(theta, counts, prior shape, prior rate, middle, exposures (i, j, rest), observations) of a small network."""
    rng, n = np.random.default_rng(seed), 7
    shape = (n, n, n_rests)
    alpha = rng.choice([0.0, 0.3, 0.7], shape) if each else rng.choice([0.0, 0.3, 0.7], (n, 1, 1))
    reports = rng.poisson(1.0, shape)
    mask = rng.random(shape) < 0.15
    mask[np.arange(n), np.arange(n)] = not loops
    exposures = dense_exposures(reports, np.broadcast_to(alpha, shape), mask)
    observations = PrivatizedCounts(reports, alpha if each else alpha.ravel(), mask)
    theta = rng.gamma(1.0, 1.0, (n, n_components)) + 0.05
    counts = rng.poisson(2.0, theta.shape).astype(float)
    prior = rng.gamma(2.0, 1.0, (2, *theta.shape))
    middle = rng.gamma(1.0, 1.0, (n_rests, n_components, n_components))
    return theta, counts, prior[0], prior[1], middle, exposures, observations


def linear_exposures(i, theta, middle, exposures):
    """What multiplies theta_ic in the sum over all cells that join i with others."""
    e, others = exposures, [j for j in range(len(theta)) if j != i]
    sent = np.einsum("jr,rcd,jd->c", e[i, others], middle, theta[others])
    received = np.einsum("jr,rdc,jd->c", e[others, i], middle, theta[others])
    return sent + received


@pytest.mark.parametrize("each", [False, True], ids=["alpha per row", "alpha per cell"])
def test_means_are_those_of_dense_sums_actor_by_actor(each):
    theta, counts, shape, rate, middle, exposures, observations = scene(each, loops=False)
    found, shapes, rates = theta.copy(), counts.copy(), rate.copy()
    links = make_links(observations, LAW, middle.shape[0])
    kernels.update_actors(found, shapes, shape, rates, middle, links, False, np.random.default_rng(1))
    slow = theta.copy()
    for i in range(len(slow)):
        exposure = linear_exposures(i, slow, middle, exposures)
        np.testing.assert_allclose(rates[i], rate[i] + exposure, rtol=1e-11)
        slow[i] = (shape[i] + counts[i]) / (rate[i] + exposure)
    np.testing.assert_array_equal(shapes, shape + counts)
    np.testing.assert_allclose(found, slow, rtol=1e-11)


def test_a_masked_actor_has_its_prior():
    theta, counts, shape, rate, middle, _, observations = scene(False, loops=True)
    everyone = np.arange(7 * 2)
    hidden = observations.hide(np.full(14, 3), everyone)
    hidden = hidden.hide(np.repeat(np.arange(7), 2), np.tile([6, 7], 7))
    rates = rate.copy()
    links = make_links(hidden, LAW, 2)
    kernels.update_actors(theta.copy(), counts, shape, rates, middle, links, False, np.random.default_rng(1))
    np.testing.assert_allclose(rates[3], rate[3], rtol=1e-12)
    assert (rates[[0, 1, 2, 4, 5, 6]] > rate[[0, 1, 2, 4, 5, 6]]).all()


def conditional_cdf(i, c, theta, prior, middle, exposures, square=True):
    """(x, its distribution function) of theta_ic given all others, from the prior and every cell's exposed rate."""

    def exposed(value):
        moved = theta.copy()
        moved[i, c] = value
        return (exposures * np.einsum("ic,jd,rcd->ijr", moved, moved, middle)).sum()

    quadratic = np.polyfit([0.0, 1.0, 2.0], [exposed(v) for v in (0.0, 1.0, 2.0)], 2)
    if not square:
        quadratic[0] = 0.0
    log_x = np.linspace(np.log(1e-8), np.log(50.0), 4000)
    x = np.exp(log_x)
    log_density = prior[0] * log_x - prior[1] * x - np.polyval(quadratic, x)
    density = np.exp(log_density - log_density.max())
    return x, np.cumsum(density) / density.sum()


@pytest.mark.parametrize("loops", [False, True], ids=["no loops", "loops"])
def test_draws_follow_the_conditional_density_of_each_entry(loops):
    """The last component of the last actor is drawn given all others: its place in its conditional is uniform."""
    theta, counts, shape, rate, middle, exposures, observations = scene(True, loops)
    links, rng, places, straight = make_links(observations, LAW, 2), np.random.default_rng(5), [], []
    i, c = len(theta) - 1, theta.shape[1] - 1
    prior = shape[i, c] + counts[i, c], rate[i, c]
    for _ in range(400):
        drawn = theta.copy()
        kernels.update_actors(drawn, counts.copy(), shape, rate.copy(), middle, links, True, rng)
        places.append(np.interp(drawn[i, c], *conditional_cdf(i, c, drawn, prior, middle, exposures)))
        without = conditional_cdf(i, c, drawn, prior, middle, exposures, square=False)
        straight.append(np.interp(drawn[i, c], *without))
    assert stats.kstest(places, "uniform").pvalue > FALSE_ALARM
    assert (stats.kstest(straight, "uniform").pvalue < 1e-6) == loops


def test_the_first_entry_is_drawn_given_the_others_as_they_were():
    theta, counts, shape, rate, middle, exposures, observations = scene(True, loops=True)
    links, rng = make_links(observations, LAW, 2), np.random.default_rng(6)
    cdf = conditional_cdf(0, 0, theta, (shape[0, 0] + counts[0, 0], rate[0, 0]), middle, exposures)
    places = []
    for _ in range(2000):
        drawn = theta.copy()
        kernels.update_actors(drawn, counts.copy(), shape, rate.copy(), middle, links, True, rng)
        places.append(np.interp(drawn[0, 0], *cdf))
    assert stats.kstest(places, "uniform").pvalue > FALSE_ALARM
