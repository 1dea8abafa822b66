"""Tables of components, each from the draws of the chains that have it, and their expected counts in every draw."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from countveil.inference import posterior as posteriors
from countveil.inference.matching import Matched, places
from countveil.inference.row_gammas import summarised
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout, normalised


class Chain(NamedTuple):
    """One chain's draws of its components."""

    shares: np.ndarray  # (S, K, n) of each component's expected counts along an axis; empty where only sizes matter
    sizes: np.ndarray  # (S, K) shares of all expected counts
    weight: float


def mixture(chains: Sequence[Chain]) -> list[Chain]:
    """Of each chain as many draws as its weight says."""
    kept = places(weights_of_chains(chains), [len(chain.sizes) for chain in chains])
    return [taken(chain, draws) for chain, draws in zip(chains, kept, strict=True)]


def weights_of_chains(chains: Sequence[Chain]) -> np.ndarray:
    """(C,) weights with sum one."""
    return np.array([chain.weight for chain in chains])


def taken(chain: Chain, draws: np.ndarray) -> Chain:
    """These draws of a chain, as often as they are listed."""
    if np.array_equal(draws, np.arange(len(chain.sizes))):
        return chain
    return Chain(chain.shares[draws], chain.sizes[draws], chain.weight)


def shares_of(chains: Sequence[Chain], found: Matched) -> np.ndarray:
    """(draws, n) one component's shares of its expected counts, in the chains that have it."""
    return np.concatenate([chains[c].shares[:, k] for c, k in zip(found.chains, found.components, strict=True)])


def sizes_of(chains: Sequence[Chain], found: Matched) -> np.ndarray:
    """(draws,) one component's share of all expected counts, in the chains that have it."""
    return np.concatenate([chains[c].sizes[:, k] for c, k in zip(found.chains, found.components, strict=True)])


def entries_table(
    chains: Sequence[Chain], names: np.ndarray, components: Sequence[tuple[int, Matched]], n: int, interval: float
) -> pd.DataFrame:
    """The n largest entries of numbered components, with equal-tailed intervals.

    Columns: component, support, prevalence, rank, member, probability, lower, upper.
    """
    rows: list[tuple[Any, ...]] = []
    for number, found in components:
        shares, size = shares_of(chains, found), sizes_of(chains, found).mean()
        mean = shares.mean(axis=0, dtype=np.float64)
        top = np.argsort(-mean, kind="stable")[:n]
        lower, upper = np.quantile(shares[:, top], tails(interval), axis=0)
        rows += [
            (number, found.support, size, rank + 1, names[v], mean[v], lower[rank], upper[rank])
            for rank, v in enumerate(top)
        ]
    columns = ["component", "support", "prevalence", "rank", "member", "probability", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def sizes_table(chains: Sequence[Chain], components: Sequence[tuple[int, Matched]], interval: float) -> pd.DataFrame:
    """Shares of all expected counts of numbered components; columns component, support, prevalence, lower, upper."""
    rows = []
    for number, found in components:
        own = sizes_of(chains, found)
        rows.append((number, found.support, own.mean(), *np.quantile(own, tails(interval))))
    return pd.DataFrame(rows, columns=["component", "support", "prevalence", "lower", "upper"])


def by_support(chains: Sequence[Chain], found: Sequence[Matched]) -> list[tuple[int, Matched]]:
    """Components of a mixture with their numbers, the best supported first, within the same support the largest."""
    drawn = [(i, one) for i, one in enumerate(found) if any(len(chains[c].sizes) for c in one.chains)]
    return sorted(drawn, key=lambda each: (-round(each[1].support, 9), -sizes_of(chains, each[1]).mean()))


def tails(interval: float) -> list[float]:
    """Probabilities of the ends of an equal-tailed interval."""
    return [(1.0 - interval) / 2.0, 1.0 - (1.0 - interval) / 2.0]


def component_counts(tree: xr.DataTree, model: Factorization, layout: Layout, axes: str) -> np.ndarray:
    """(C S, *sizes of the axes) expected counts of components, along observed axes if there are some among ``axes``.

    This is the einsum with these axes as its output, and with the mean size of the parts that counts come in as another
    factor. A factor whose components sum to one over observed axes of its own drops out. Exposures by cell are a factor
    of all observed axes, beside which no factor drops out or is summed by itself.
    """
    spec, ones = model.spec, normalised(model)
    varies = posteriors.axes_of_parts(model)
    terms, operands = ["..." + varies], [posteriors.sizes_of_parts(tree, model)]
    exposure = posteriors.exposure_of(tree, (model.rows.shape[0], model.columns.shape[0]))
    if exposure is not None:
        sides, sizes = model.rows.observed + model.columns.observed, model.rows.sizes | model.columns.sizes
        terms.append(sides)
        operands.append(exposure.reshape([sizes[a] for a in sides]))
    for term, f in zip(spec.terms, spec.factor_of_term, strict=True):
        factor, order = model.factors[f], layout.axes[model.factors[f].name]
        each = [term[factor.axes.index(a)] for a in order]
        free = [a for a in each if a in spec.output and a not in axes + varies]
        own = [a for a in free if sum(a in other for other in spec.terms) == 1 and exposure is None]
        if f in ones and exposure is None and own == [a for a in each if a in spec.output]:
            continue
        summed = tuple(1 + each.index(a) for a in own)
        if own and summarised(tree, factor.name):
            operands.append(posteriors.flat_draws(tree, f"{factor.name}_total").astype(np.float64))
        else:
            operands.append(posteriors.flat_draws(tree, factor.name).sum(axis=summed, dtype=np.float64))
        terms.append("..." + "".join(a for a in each if a not in own))
    return np.asarray(np.einsum(f"{','.join(terms)}->...{axes}", *operands, optimize="greedy"))
