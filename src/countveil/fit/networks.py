"""What a fit says about a network: communities of actors, and the expected counts between them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from countveil.fit.component_tables import component_counts
from countveil.inference.matching import places, unweighted, weights_of
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout, Part, normalised


class Network(NamedTuple):
    """Communities of the actors of a square matrix of counts."""

    part: Part  # what a community is called
    actors: np.ndarray  # (actors,) names, or numbers
    memberships: np.ndarray  # (actors, C) posterior mean of each actor's share of a community
    block_draws: np.ndarray  # (n, C, C) expected counts from community to community in every draw
    blocks: np.ndarray  # (C, C) their posterior mean
    directed: bool
    self_loops: bool  # whether counts of actors with themselves are part of the data


def network_of(
    tree: xr.DataTree,
    model: Factorization,
    layout: Layout,
    parts: tuple[Part, ...],
    chains: Sequence[tuple[int, np.ndarray]],
) -> Network | None:
    """The network that was fitted; None unless one factor of actors is used on both sides of one factor of communities.

    The rate of (i, j) is sum_cd theta_ic pi_cd theta_jd, and theta's components sum to one. ``chains`` are those that
    have the same communities, each with the order (C,) that numbers them alike.
    """
    spec, shared = model.spec, model.shared_factor
    if shared is None or model.shared not in normalised(model) or len(spec.output) != 2:
        return None
    others = [factor for factor in model.factors if factor is not shared]
    if len(others) != 1 or len(spec.latent) != 2 or set(others[0].axes) != set(spec.latent):
        return None
    first, second = (next(term for term in spec.terms if axis in term).replace(axis, "") for axis in spec.output)
    draws = tree["posterior"].dataset
    actor, community = layout.dims_of_factor(shared.name, spec.output[0] + first, shared=True)
    theta = draws[shared.name].transpose("chain", "draw", actor, community).to_numpy()
    counts = component_counts(unweighted(tree), model, layout, first + second)
    counts = counts.reshape(*theta.shape[:2], *counts.shape[1:])
    weights = weights_of(tree)[[c for c, _ in chains]]
    kept = places(weights / weights.sum(), [theta.shape[1]] * len(chains))
    taken = [(c, order, own) for (c, order), own in zip(chains, kept, strict=True) if own.size]
    blocks = np.concatenate([counts[c][own][:, order][:, :, order] for c, order, own in taken])
    totals = [theta[c][own].sum(axis=0, dtype=np.float64)[:, order] for c, order, own in taken]
    return Network(
        parts[0],
        draws[actor].to_numpy(),
        np.sum(totals, axis=0) / len(blocks),
        blocks,
        blocks.mean(axis=0),
        directed=not others[0].symmetric,
        self_loops=model.self_loops,
    )
