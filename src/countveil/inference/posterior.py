"""From raw draws to what a person reads: labelled, identified, matched across chains, and summarised."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from countveil.evaluation.alignment import align_draws
from countveil.inference.methods import Fitted
from countveil.inference.run import Draws
from countveil.observations import Observations, ReleaseFiles

DRAWS_AT_ONCE = 32
SMALLEST = np.finfo(np.float32).tiny


def identify(draws: Draws) -> dict[str, np.ndarray]:
    """Draws with every topic a distribution over words, matched across draws and ordered by size.

    The rates are unchanged: what phi_k sums to moves to theta_k, and from the prior rates likewise.
    """
    phi = np.maximum(draws.phi.transpose(0, 1, 3, 2), SMALLEST, order="C")  # (C, S, K, V)
    total = phi.sum(axis=3, dtype=np.float64)  # (C, S, K)
    phi /= total[..., None].astype(np.float32)
    theta = np.maximum(draws.theta * total[:, :, None, :].astype(np.float32), SMALLEST)
    order = align_draws(phi)
    size = np.take_along_axis(theta.sum(axis=2, dtype=np.float64), order, axis=2).mean(axis=(0, 1))
    order = order[:, :, np.argsort(-size, kind="stable")]
    return {
        "theta": np.take_along_axis(theta, order[:, :, None, :], axis=3),
        "phi": np.take_along_axis(phi, order[:, :, :, None], axis=2),
        "theta_rate": np.take_along_axis(draws.theta_rate / total, order, axis=2),
        "phi_rate": np.take_along_axis(draws.phi_rate * total, order, axis=2),
    }


def data_tree(found: Fitted, observations: Observations | ReleaseFiles, facts: dict[str, Any]) -> xr.DataTree:
    """The draws in ArviZ's layout: groups posterior, sample_stats, constant_data.

    An optimiser adds the group optimisation: its objective before each iteration, whether it converged, and
    the exact means of its factors, whose product is the rate (their components in no order).
    """
    draws = found.draws
    lead = ("chain", "draw")
    coordinates = {
        "chain": np.arange(draws.theta.shape[0]),
        "draw": np.arange(draws.theta.shape[1]),
        "doc": labels_or_numbers(observations.row_labels, observations.shape[0]),
        "topic": np.arange(draws.theta.shape[3]),
        "word": labels_or_numbers(observations.column_labels, observations.shape[1]),
    }
    named = identify(draws)
    dims = {
        "theta": ("doc", "topic"),
        "phi": ("topic", "word"),
        "theta_rate": ("topic",),
        "phi_rate": ("topic",),
    }
    posterior = xr.Dataset(
        {name: ((*lead, *dims[name]), values) for name, values in named.items()}, coords=coordinates
    )
    stats = xr.Dataset(
        {"log_likelihood": (lead, draws.log_likelihood), "total_rate": (lead, draws.total_rate)},
        coords={name: coordinates[name] for name in lead},
    )
    per_cell = observations.alpha_e.size > 0
    alpha_dims = ("doc", "word") if per_cell else ("doc",)
    alpha = observations.alpha_e.reshape(observations.shape) if per_cell else observations.alpha_d
    constants = xr.Dataset(
        {"alpha": (alpha_dims, alpha)}, coords={name: coordinates[name] for name in alpha_dims}
    )
    tree = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": stats, "constant_data": constants})
    if found.means is not None:
        theta, phi = found.means
        tree["optimisation"] = xr.Dataset(
            {
                "objective": ("iteration", found.objective),
                "theta_mean": (("doc", "component"), theta),
                "phi_mean": (("word", "component"), phi),
            },
            attrs={"converged": int(bool(found.converged))},
        )
    tree.attrs.update(
        {**facts, "observations": observations.kind, "simulated_noise": int(observations.simulated)}
    )
    return tree


def labels_or_numbers(labels: list[str] | None, size: int) -> np.ndarray:
    """Coordinates: the user's labels, or 0, 1, 2, ... where there are none."""
    return np.arange(size) if labels is None else np.array(labels, dtype=object)


def flat_draws(tree: xr.DataTree, name: str) -> np.ndarray:
    """A variable's draws with chains run together: (C S, ...)."""
    values = tree["posterior"][name].to_numpy()
    return values.reshape(-1, *values.shape[2:])


def mean_rate(tree: xr.DataTree) -> xr.DataArray:
    """Posterior mean of theta phi, (doc, word): exact for an optimiser, the mean over draws for a sampler."""
    draws = tree["posterior"]
    coordinates = {"doc": draws["doc"].to_numpy(), "word": draws["word"].to_numpy()}
    if "optimisation" in tree.children:
        found = tree["optimisation"]
        rate = found["theta_mean"].to_numpy() @ found["phi_mean"].to_numpy().T
        return xr.DataArray(rate, dims=("doc", "word"), coords=coordinates, name="rate")
    theta, phi = flat_draws(tree, "theta"), flat_draws(tree, "phi")
    total = np.zeros((theta.shape[1], phi.shape[2]))
    for start in range(0, len(theta), DRAWS_AT_ONCE):
        rows = theta[start : start + DRAWS_AT_ONCE].transpose(1, 0, 2).reshape(theta.shape[1], -1)
        total += rows @ phi[start : start + DRAWS_AT_ONCE].reshape(-1, phi.shape[2])
    return xr.DataArray(total / len(theta), dims=("doc", "word"), coords=coordinates, name="rate")


def top_words(tree: xr.DataTree, n: int, interval: float) -> pd.DataFrame:
    """The n most probable words of each topic by posterior mean, with equal-tailed intervals."""
    phi = flat_draws(tree, "phi")
    words = tree["posterior"]["word"].to_numpy()
    sizes = flat_draws(tree, "theta").sum(axis=1, dtype=np.float64)
    prevalence = (sizes / sizes.sum(axis=1, keepdims=True)).mean(axis=0)
    mean = phi.mean(axis=0, dtype=np.float64)
    tail = (1.0 - interval) / 2.0
    rows = []
    for k in range(mean.shape[0]):
        best = np.argsort(-mean[k], kind="stable")[:n]
        lower, upper = np.quantile(phi[:, k, best], [tail, 1.0 - tail], axis=0)
        for rank, v in enumerate(best):
            rows.append((k, prevalence[k], rank + 1, words[v], mean[k, v], lower[rank], upper[rank]))
    columns = ["topic", "prevalence", "rank", "word", "probability", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def label_free(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Quantities that do not depend on the order of topics, each (C, S) or (C, S, members).

    Of very many documents or words, 200 are taken, evenly spread.
    """
    stats, draws = tree["sample_stats"], tree["posterior"]
    theta, phi = draws["theta"].to_numpy(), draws["phi"].to_numpy()
    sizes = theta.sum(axis=2)
    return {
        "log-likelihood": stats["log_likelihood"].to_numpy(),
        "total rate": stats["total_rate"].to_numpy(),
        "rate of each document": theta[:, :, evenly(theta.shape[2])].sum(axis=3),
        "rate of each word": np.einsum("csk,cskv->csv", sizes, phi[..., evenly(phi.shape[3])]),
    }


def evenly(size: int, most: int = 200) -> np.ndarray:
    """Up to ``most`` of the numbers below ``size``, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(int))
