"""What the tests of the samplers share: the model run forwards, dense brute force, and Monte Carlo errors."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from scipy import special, stats

from countveil.bridges.true_counts import sample_true_counts
from countveil.data.observations import Observations, PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.fit import choosing
from countveil.inference import gibbs
from countveil.inference.algorithm import Method, Settings
from countveil.inference.draws import Schedule
from countveil.inference.methods import METHODS, options_of
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.kernels.general import GeneralLaw
from countveil.laws.counts import POISSON
from countveil.laws.counts.laws import law_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import Factor, Factorization, factorization, typical_priors
from countveil.models.priors import (
    GammaPrior,
    LearnedShapePrior,
    RegressionPrior,
    SeededPrior,
    learned_shape,
    regression,
)
from countveil.models.priors.regression import OF_SHAPES

SERIAL = ThreadEngine(1)
LAW = law_of(TWO_SIDED_GEOMETRIC, POISSON)  # of reports, as the kernels take it
GENERAL_LAW = GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, POISSON.counts)  # the same, without its closed form
LAWS = {"closed": LAW, "general": GENERAL_LAW}
MOST = 400  # counts enumerated by brute force: 0 .. MOST - 1
FALSE_ALARM = 1e-4  # chance that one whole test goes red by bad luck; the seeds are fixed


def two_sided_geometric(alpha: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Noise of alpha's shape, as a difference of two geometric variables."""
    return rng.geometric(1.0 - alpha) - rng.geometric(1.0 - alpha)


def draw_factors(
    model: Factorization, rng: np.random.Generator
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """(factors, hyperparameters) from the prior, as a sampler's state has them; known factors as they are."""
    hypers = tuple(
        draw_hypers(factor, start, rng) for factor, start in zip(model.factors, model.initial_hypers(), strict=True)
    )
    factors = []
    for factor, own in zip(model.factors, hypers, strict=True):
        shape, rate = factor.prior.gamma(own, 1.0)
        drawn = rng.gamma(shape, 1.0 / rate, factor.shape)
        drawn = np.triu(drawn) + np.triu(drawn, 1).T if factor.symmetric else drawn
        factors.append(drawn if factor.fixed is None else factor.fixed)
    return tuple(factors), hypers


def draw_hypers(factor: Factor, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Hyperparameters from their own prior: rates that are learned, and a shape that is."""
    prior = factor.prior
    prior = prior.usual if isinstance(prior, SeededPrior) else prior
    if isinstance(prior, LearnedShapePrior):
        shape = learned_shape.MEDIAN * np.exp(learned_shape.SPREAD * rng.standard_normal())
        rates = start[1] if prior.mean is None else rng.exponential(shape / prior.mean, start[1].shape)
        return np.stack([np.full_like(rates, shape), rates])
    if isinstance(prior, RegressionPrior):
        new = prior.spread * rng.standard_normal(start.shape)
        new[2 + prior.design.shape[1] :] *= OF_SHAPES
        size = learned_shape.SPREAD * rng.standard_normal(start[0].shape)
        new[0] = start[0] if prior.shape is not None else learned_shape.MEDIAN * np.exp(size)
        new[1] = rng.exponential(new[0] / prior.mean)
        return new
    return rng.exponential(prior.rate, factor.component_shape) if prior.learned else start


def mu_of(factors: Sequence[np.ndarray]) -> np.ndarray:
    """The rates theta phi^T of a matrix model's factors."""
    theta, phi = factors
    return theta @ phi.T


def arrays_of(value: Any) -> list[np.ndarray]:
    """Copies of all arrays and numbers in nested tuples, in order."""
    if isinstance(value, tuple):
        return [array for part in value for array in arrays_of(part)]
    return [np.array(value)]


def assert_same_bits(one: Any, other: Any) -> None:
    """Nested tuples of the same arrays."""
    for a, b in zip(arrays_of(one), arrays_of(other), strict=True):
        np.testing.assert_array_equal(a, b)


def draw_reports(mu: np.ndarray, alpha: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Reports of counts with these rates; alpha broadcasts against them."""
    return rng.poisson(mu) + two_sided_geometric(np.broadcast_to(alpha, mu.shape), rng)


def draw_noise_rates(reports: np.ndarray, mu: np.ndarray, alpha: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """lambda given report and rate, from the collapsed law: the count y, then g_1 and g_2 less their minimum.

    r - y = g_1 - g_2 for geometric g_1 and g_2, whose minimum is geometric of parameter 1 - alpha^2; then
    lambda_l ~ Gamma(1 + g_l, scale alpha). A report that is not positive is one of zero.
    """
    alpha, noise = np.broadcast_to(alpha, reports.shape), np.zeros((*reports.shape, 2))
    noisy = alpha > 0.0
    positive, level = np.maximum(reports, 0)[noisy], alpha[noisy]
    gap = positive - sample_true_counts(positive, mu[noisy], level, rng)
    smaller = rng.geometric(1.0 - level**2) - 1
    counts = np.stack([np.maximum(gap, 0), np.maximum(-gap, 0)], axis=-1) + smaller[:, None]
    noise[noisy] = rng.gamma(1.0 + counts, level[:, None])
    return noise


def run_chain(
    observations: Observations,
    model: Factorization,
    sweeps: int,
    seed: int,
    chain: int = 0,
    step: Callable = gibbs.step,
) -> Iterator[gibbs.State]:
    """The states of a chain after each sweep from its own start."""
    streams = Streams.of_chain(seed, chain)
    plan = Plan(observations, model)
    state = gibbs.init(plan, model, streams, SERIAL)
    for _ in range(sweeps):
        state, _ = step(state, plan, model, streams, SERIAL)
        yield state


def count_weights(reports: np.ndarray, mu: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """mu^y e^-mu / y! alpha^|r - y| over y = 0 .. MOST - 1, along a new last axis; alpha = 0 leaves y = r."""
    reports, mu, alpha = (x[..., None] for x in np.broadcast_arrays(reports, mu, alpha))
    y = np.arange(MOST)
    return stats.poisson.pmf(y, mu) * np.power(alpha, np.abs(reports - y), dtype=float)


def count_moments(reports: np.ndarray, mu: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the true count given its report."""
    weights = count_weights(reports, mu, alpha)
    weights /= weights.sum(axis=-1, keepdims=True)
    y = np.arange(MOST)
    mean = weights @ y
    return mean, weights @ y**2 - mean**2


def truncated_logpmf(reports: np.ndarray, mu: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """log P(max(report, 0) | mu) by adding up; a non-positive report is all noise that does not exceed -y."""
    reports, mu, alpha = np.broadcast_arrays(reports, mu, alpha)
    positive = count_weights(np.maximum(reports, 1), mu, alpha).sum(axis=-1) * (1.0 - alpha) / (1.0 + alpha)
    censored = count_weights(np.zeros_like(reports), mu, alpha).sum(axis=-1) / (1.0 + alpha)
    return np.log(np.where(reports > 0, positive, censored))


def dense_exposures(reports: np.ndarray, alpha: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """e_dv: 1 where the report is positive, 1 - alpha where it is not, 0 where it is masked."""
    exposures = np.where(reports > 0, 1.0, 1.0 - alpha)
    return exposures if mask is None else np.where(mask, 0.0, exposures)


def exposures_of(observations: Observations) -> np.ndarray:
    """The same, read back from observations cell by cell, as the kernels are told to understand them."""
    o = observations
    exposures = np.repeat(o.exposure_d[:, None], o.shape[1], axis=1)
    for d in range(o.shape[0]):
        for e in range(o.indptr[d], o.indptr[d + 1]):
            alpha = o.level_e[e] if o.level_e.size else o.level_d[d]
            report = o.reports[e]
            exposures[d, o.columns[e]] = 1.0 if report > 0 else (0.0 if report < 0 else 1.0 - alpha)
    return exposures


def batch_error(trace: np.ndarray, batches: int = 40) -> np.ndarray:
    """Standard error of the mean of an autocorrelated trace (S, ...), by batch means."""
    length = len(trace) // batches
    means = trace[: batches * length].reshape(batches, length, *trace.shape[1:]).mean(axis=1)
    return means.std(axis=0, ddof=1) / np.sqrt(batches)


def bound(comparisons: int, batches: int = 40) -> float:
    """How large |z| may be over this many comparisons of batch means (Bonferroni, Student's t)."""
    return float(stats.t.isf(FALSE_ALARM / 2 / comparisons, batches - 1))


def rank_p_values(ranks: np.ndarray, draws: int, bins: int = 8) -> np.ndarray:
    """Chi-square p-values of uniform ranks (runs, statistics), each in 0 .. draws."""
    edges = np.linspace(0, draws + 1, bins + 1)
    counts = np.stack([np.histogram(column, edges)[0] for column in ranks.T])
    expected = len(ranks) / bins
    return special.chdtrc(bins - 1, ((counts - expected) ** 2 / expected).sum(axis=1))


SPEC = parse_spec("dk,vk->dv", names=("theta", "phi"))


def small_model(
    size: tuple[int, int], n_components: int = 2, shape: float = 1.5, rate: float = 1.0, learned: bool = False
) -> Factorization:
    """theta (D, K) times phi (V, K), for (D, V) data, with the same prior over both factors."""
    prior = GammaPrior(shape, rate, learned)
    sizes = axis_sizes(SPEC, size, {"k": n_components})
    return factorization(SPEC, sizes, {"theta": prior, "phi": prior})


def matrix_model(
    size: tuple[int, int], n_components: int, shape: float, rate: float | None, mean_count: float
) -> Factorization:
    """The same with the priors that estimators give it."""
    sizes = axis_sizes(SPEC, size, {"k": n_components})
    return factorization(SPEC, sizes, typical_priors(SPEC, sizes, shape, rate, mean_count))


def shaped_model(size: tuple[int, int]) -> Factorization:
    """The same, with shapes that are learned as well as rates; see ``moderate_shapes``."""
    prior = LearnedShapePrior(0.4, None)
    return factorization(SPEC, axis_sizes(SPEC, size, {"k": 2}), {"theta": prior, "phi": prior})


def moderate_shapes(monkeypatch: Any) -> None:
    """Learned shapes are around 1.5 instead of .1, so that logarithms of entries have moderate moments."""
    for module in (learned_shape, regression):
        monkeypatch.setattr(module, "MEDIAN", 1.5)
        monkeypatch.setattr(module, "SPREAD", 0.5)


class DrawsItself(GammaPrior):
    """The same prior as one whose entries are not independent: it draws the whole factor itself."""

    independent = False


class OneEntryFewer(GammaPrior):
    """Rates drawn as if every component had one entry less than it has: a fault that tests must see."""

    def draw_hypers(self, factor, hypers, scale, value, rng):
        """Gamma(1 + the shapes of all entries but one, 1/scale + sum of entries)."""
        size, total = factor.component_sums(self.shape), factor.component_sums(scale * value)
        return rng.standard_gamma(1.0 + size - self.shape) / (1.0 / self.rate + total)


def with_priors(model: Factorization, change: Callable[[GammaPrior], GammaPrior]) -> Factorization:
    """The same model with every factor's prior changed."""
    return model._replace(factors=tuple(factor._replace(prior=change(factor.prior)) for factor in model.factors))


def fitted(model: Any, data: Any, **options: Any) -> Any:
    """The fit of a model, without what it says of itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(data, **options)


def short_choices(patched: Any, numbers: tuple[int, ...] | None = (1, 2)) -> None:
    """Let "auto" choose from these numbers of components, or from its own, by short fits."""
    if numbers is not None:
        patched.setattr(choosing, "CANDIDATES", numbers)
        patched.setattr(choosing, "FEWER", ())
    for name in ("TUNE", "DRAWS"):
        patched.setattr(import_module("countveil.selection.compare"), name, 6)


def fit_settings(draws: int = 1) -> Settings:
    """Short settings for one fit."""
    return Settings(Schedule(draws, 0, 1, 1), seed=3, threads=1, progress=False)


def method_with(name: str, **options: Any) -> Method:
    """A method by name, with those of the options that it has."""
    return METHODS[name](**{key: value for key, value in options.items() if key in options_of(METHODS[name])})


def planted(
    n_rows: int, n_columns: int, n_topics: int, alpha: float, seed: int, tokens: float = 600.0
) -> tuple[np.ndarray, np.ndarray, PrivatizedCounts, np.ndarray]:
    """(mu, topics (K, V), observations, signed reports) of sparse documents over well-separated topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_columns, 0.1), n_topics)
    theta = rng.gamma(0.2, 1.0, (n_rows, n_topics))
    mu = theta @ topics * tokens
    reports = draw_reports(mu, np.asarray(alpha), rng)
    return mu, topics, PrivatizedCounts(reports, alpha), reports
