"""What a fit says about a network: communities of actors, and the expected counts between them."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from countveil.estimators.component_counts import component_counts
from countveil.inference.mixture import mean_over_draws
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout, Part, normalised


class Network(NamedTuple):
    """Communities of the actors of a square matrix of counts."""

    part: Part  # what a community is called
    actors: np.ndarray  # (actors,) names, or numbers
    memberships: np.ndarray  # (actors, C) posterior mean of each actor's share of a community
    block_draws: np.ndarray  # (C S, C, C) expected counts from community to community in every draw
    blocks: np.ndarray  # (C, C) their posterior mean
    directed: bool
    self_loops: bool  # whether counts of actors with themselves are part of the data


def network_of(
    tree: xr.DataTree, model: Factorization, layout: Layout, parts: tuple[Part, ...]
) -> Network | None:
    """The network that was fitted; None unless one factor of actors is used on both sides of one factor of communities.

    The rate of (i, j) is sum_cd theta_ic pi_cd theta_jd, and theta's components sum to one.
    """
    spec, shared = model.spec, model.shared_factor
    if shared is None or model.shared not in normalised(model) or len(spec.output) != 2:
        return None
    others = [factor for factor in model.factors if factor is not shared]
    if len(others) != 1 or len(spec.latent) != 2 or set(others[0].axes) != set(spec.latent):
        return None
    first, second = (
        next(term for term in spec.terms if axis in term).replace(axis, "") for axis in spec.output
    )
    draws = tree["posterior"].dataset
    actor, community = layout.dims_of_factor(shared.name, spec.output[0] + first, shared=True)
    theta = draws[shared.name].transpose("chain", "draw", actor, community)
    blocks = component_counts(tree, model, layout, first + second)
    return Network(
        parts[0],
        draws[actor].to_numpy(),
        mean_over_draws(tree, theta).to_numpy(),
        blocks,
        blocks.mean(axis=0),
        directed=not others[0].symmetric,
        self_loops=model.self_loops,
    )
