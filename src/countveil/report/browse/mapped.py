"""Where components stand on the map of the page: similar ones near each other."""

from typing import Any

import numpy as np

from countveil.report.browse.listings import Along, short

LEAST = 3  # components of which there is a map
NEAREST = 3  # that are named for each component


def distances(along: list[Along]) -> np.ndarray:
    """(K, K) square roots of Jensen-Shannon divergences in bits, a metric from 0 to 1; the mean over several axes."""
    found = []
    for each in along:
        p = each.mean / np.maximum(each.mean.sum(axis=1, keepdims=True), 1e-300)
        middle = [entropy((p + own) / 2.0) - (entropy(p) + entropy(own)) / 2.0 for own in p]
        found.append(np.sqrt(np.clip(middle, 0.0, 1.0)))
    wanted = np.mean(found, axis=0)
    np.fill_diagonal(wanted, 0.0)
    return np.asarray(wanted)


def entropy(p: np.ndarray) -> np.ndarray:
    """(...,) of the distributions along the last axis, in bits."""
    return np.asarray(-(p * np.log2(np.maximum(p, 1e-300))).sum(axis=-1))


def on_a_plane(distance: np.ndarray) -> tuple[np.ndarray, float]:
    """((K, 2) places by classical scaling, the share of the squared distances from the centre that they keep).

    The sign of each axis is that which gives the first component a place at its negative end.
    """
    n = len(distance)
    centring = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ distance**2 @ centring)
    values = np.maximum(values[::-1], 0.0)
    places = vectors[:, ::-1][:, :2] * np.sqrt(values[:2])
    places *= np.where(places[:1] > 0.0, -1.0, 1.0)
    return places, float(values[:2].sum() / max(values.sum(), 1e-300))


def mapped(along: list[Along]) -> dict[str, Any] | None:
    """The map as the page has it: places from 0 to 1 by one scale, the share kept, and each component's nearest ones.

    None for fewer than three components.
    """
    if not along or len(along[0].mean) < LEAST:
        return None
    distance = distances(along)
    places, share = on_a_plane(distance)
    places -= places.min(axis=0)
    places /= max(float(places.max()), 1e-300)
    order = np.argsort(distance + np.diag(np.full(len(distance), np.inf)), axis=1, kind="stable")
    return {
        "places": [short(place) for place in places],
        "share": short(share)[0],
        "nearest": order[:, :NEAREST].tolist(),
    }
