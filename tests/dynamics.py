"""What the tests of gamma chains share: chains run forwards, and the slow, obvious version of a sweep."""

import numpy as np

from countveil.models.priors import gamma_chain
from countveil.models.priors.gamma_chain import Chain

LEAST = 1e-150


def moderate(monkeypatch):
    """Priors of a chain's hyperparameters have moderate moments, and nothing underflows."""
    monkeypatch.setattr(gamma_chain, "EPSILON", 3.0)
    monkeypatch.setattr(gamma_chain, "TOTAL", 6.0)
    monkeypatch.setattr(gamma_chain, "STEADINESS", 0.5)
    monkeypatch.setattr(gamma_chain, "SPREAD", 0.5)
    monkeypatch.setattr(gamma_chain, "IMMIGRATION", 0.3)


def draw_chain(prior, shape, rng):
    """Hyperparameters from their prior, by name."""
    steps, k = shape
    e, total = gamma_chain.EPSILON, gamma_chain.TOTAL
    rate, stay = rng.gamma(e, 1.0 / e, 2)
    sizes = rng.gamma(total / k, 1.0 / rate, k)
    transition = np.empty((k, k))
    for j in range(k):
        own = [(stay if i == j else sizes[i]) * sizes[j] for i in range(k)]
        transition[:, j] = rng.dirichlet(own)
    steadiness = np.exp(gamma_chain.STEADINESS * rng.standard_normal())
    volume = np.ones(1)
    if not prior.steady:
        volume = rng.gamma(steadiness, 1.0 / steadiness, steps)
    immigration = rng.exponential(gamma_chain.IMMIGRATION)
    scale = rng.gamma(e, prior.mean / e)
    chain = Chain(transition, sizes, stay, rate, scale, volume, steadiness, immigration=immigration)
    if prior.season is None:
        return chain
    c = gamma_chain.CONCENTRATION * np.exp(gamma_chain.SPREAD * rng.standard_normal())
    return chain._replace(seasons=rng.gamma(c, 1.0 / c, (prior.season, k)), concentration=c)


def draw_theta(chain, shape, rng):
    """A chain run forwards."""
    theta = np.empty(shape)
    for t in range(shape[0]):
        mean = chain.sizes if t == 0 else chain.transition @ theta[t - 1] + chain.immigration
        theta[t] = np.maximum(rng.gamma(mean), LEAST)
    return theta


def draw_value(chain, shape, offset, rng):
    """(T, K) x = m g theta times known offsets, and times psi of the season."""
    found = draw_theta(chain, shape, rng) * (chain.scale * chain.volume * offset)[:, None]
    for t in range(0 if chain.seasons is None else shape[0]):
        found[t] *= chain.seasons[t % len(chain.seasons)]
    return found


def draw_tables(n, r, rng):
    """CRT(n, r), customer by customer."""
    return sum(int(rng.random() < r / (r + i)) for i in range(n))
