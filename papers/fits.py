"""The methods that the case studies compare, on one set of counts and its noisy reports."""

import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from countveil.data.observations import ExactCounts, NaiveCounts, Observations, PrivatizedCounts
from countveil.fit.base import FactorizationEstimator, check_whole
from countveil.inference.methods import made
from countveil.inference.starts.alternating import least_squares
from countveil.models.priors import USUAL_SHAPE
from countveil.planning.contenders import LEAST_SQUARES_ITERATIONS, distributions
from papers.style import (
    BURSTY,
    EXACT_VI,
    KNOWN_PRIOR,
    LEAST_SQUARES,
    NAIVE,
    OURS,
    PUBLISHED_MCMC,
    PUBLISHED_VI,
    TRUE_COUNTS,
)

REFILLS = 10  # of hidden cells by fitted values, for least squares
OPTIONS: dict[str, dict[str, Any]] = {
    BURSTY: {"likelihood": "negative-binomial", "dispersion": "column"},
    EXACT_VI: {"method": "cavi", "draws": 20},
    PUBLISHED_VI: {"method": "bessel-cavi", "draws": 20},
    PUBLISHED_MCMC: {"method": "augmented-gibbs"},
}
SAMPLED = (OURS, BURSTY, KNOWN_PRIOR, NAIVE, TRUE_COUNTS, PUBLISHED_MCMC)


class Sampling(NamedTuple):
    """How long chains are: the same for every method that samples."""

    chains: int
    tune: int
    draws: int
    thin: int = 1

    def at_most(self, sweeps: int) -> "Sampling":
        """Chains of at most this many sweeps: the same share for tuning, as many draws as that leaves room for."""
        whole = self.tune + self.draws * self.thin
        if whole <= sweeps:
            return self
        tune = sweeps * self.tune // whole
        draws = min(self.draws, sweeps - tune)
        return self._replace(tune=tune, draws=draws, thin=(sweeps - tune) // draws)

    def options(self, method: str) -> dict[str, Any]:
        """What a model takes that is fitted by one of ``SAMPLED``."""
        way = made(OPTIONS.get(method, {}).get("method", "gibbs"), {"thin": self.thin})
        return {"chains": self.chains, "tune": self.tune, "draws": self.draws, "method": way}


class Noisy(NamedTuple):
    """True counts, their signed reports, the noise level, and the cells that nobody sees."""

    counts: np.ndarray
    reports: np.ndarray
    alpha: Any
    mask: np.ndarray | None = None


def with_noise(counts: np.ndarray, alpha: Any, rng: np.random.Generator, mask: np.ndarray | None = None) -> Noisy:
    """Counts with simulated noise; alpha broadcasts against them and is below 1."""
    success = np.broadcast_to(1.0 - np.asarray(alpha, dtype=float), counts.shape)
    noise = rng.geometric(success) - rng.geometric(success)
    return Noisy(counts, counts + noise, alpha, mask)


def observed(method: str, data: Noisy) -> Observations:
    """What a method is shown."""
    if method == NAIVE:
        return NaiveCounts(data.reports, data.mask)
    if method == TRUE_COUNTS:
        return ExactCounts(data.counts, data.mask)
    return PrivatizedCounts(data.reports, data.alpha, data.mask)


def fitted(method: str, model: FactorizationEstimator, data: Noisy, sampling: Sampling) -> tuple[Any, float]:
    """(the model, fitted by a method; seconds). Chains that disagree are averaged over all the same.

    Raises:
        KeyboardInterrupt: the fit was interrupted, and what it found until then is no result.
    """
    shape = USUAL_SHAPE if model.prior_shape is None else model.prior_shape  # not learned, as in the papers
    options: dict[str, Any] = {"likelihood": "poisson", "prior_shape": shape, "threads": 1, "progress": False}
    options |= OPTIONS.get(method, {})
    if method in SAMPLED:
        options |= sampling.options(method)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: the table says how good the rates are
        model = model.set_params(**options).fit(observed(method, data))
    check_whole(model)
    return model, time.perf_counter() - started


def signed_least_squares(data: Noisy, n: int, starts: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(rates, components (n, V) of the best start) by nonnegative least squares on the signed reports.

    Hidden cells are filled with fitted values again and again. Rates are means over the starts.
    """
    target = np.array(data.reports, dtype=float)
    hidden = np.zeros(target.shape, dtype=bool) if data.mask is None else data.mask
    seen, zero = ~hidden, np.zeros(len(target))
    total, best, least = np.zeros(target.shape), np.empty(0), np.inf
    for _ in range(starts):
        filled = target.copy()
        filled[hidden] = target[seen].mean()
        for _ in range(REFILLS if hidden.any() else 1):
            theta, phi = least_squares(filled, zero, n, rng, LEAST_SQUARES_ITERATIONS)
            filled[hidden] = (theta @ phi.T)[hidden]
        rate = theta @ phi.T
        error = float(((target - rate)[seen] ** 2).sum())
        total += rate
        if error < least:
            best, least = phi.T, error
    return total / starts, best


def result(
    method: str, model: FactorizationEstimator, n: int, data: Noisy, sampling: Sampling
) -> dict[str, np.ndarray | float]:
    """Rates, components (topics, or nothing) and seconds of one fit, to be kept."""
    if method == LEAST_SQUARES:
        started = time.perf_counter()
        rate, components = signed_least_squares(data, n, sampling.chains, np.random.default_rng(model.seed))
        return {
            "rate": rate.astype(np.float32), "components": distributions(components),
            "seconds": time.perf_counter() - started,
        }  # fmt: skip
    fit, seconds = fitted(method, model, data, sampling)
    rate = fit.rate().to_numpy()
    components = getattr(fit, "components_", np.empty((0, 0)))
    return {"rate": rate.astype(np.float32), "components": components, "seconds": seconds}
