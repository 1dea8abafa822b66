"""Cells that a network or a tensor does not count: self-loops, the lower triangle, what is masked."""

from functools import partial

import numpy as np
import pytest

import countveil as cv
from countveil.data.observations import PrivatizedCounts
from countveil.inference import starts
from countveil.inference.methods import METHODS
from tests.inference.test_masks import arrays
from tests.joint import method_with

pytestmark = pytest.mark.long

SHORT = {"seed": 3, "threads": 1, "draws": 3, "tune": 3, "chains": 2}
NETWORK_TEXT = "ic,jd,cd->ij"


def estimators():
    """(estimator, shape of its data, cells that it does not count)."""
    n = 7
    i, j = np.indices((n, n))
    shared = {"shared": {"jd": "ic"}, "ranks": {"c": 2, "d": 2}}
    time = np.broadcast_to((i == j)[..., None], (n, n, 3))
    return {
        "directed": (cv.BlockModel(2, **SHORT), (n, n), i == j),
        "undirected": (cv.BlockModel(2, directed=False, **SHORT), (n, n), i == j),
        "einsum": (cv.PoissonFactorization(NETWORK_TEXT, **shared, **SHORT), (n, n), i == j),
        "einsum over time": (
            cv.PoissonFactorization("ic,jd,cdt->ijt", **shared, **SHORT), (n, n, 3), time,
        ),
        "CP": (cv.TensorModel(2, **SHORT), (6, 5, 4), np.zeros((6, 5, 4), dtype=bool)),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Not safe yet:countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize(("method", "each"), [("gibbs", False), ("cavi", True), ("bessel-cavi", False)])
@pytest.mark.parametrize("name", estimators())
def test_what_is_not_seen_changes_nothing(name, method, each, monkeypatch):
    monkeypatch.setattr(starts, "multiplicative_start", partial(starts.multiplicative_start, iterations=3))
    model, shape, uncounted = estimators()[name]
    brief = method if METHODS[method].samples else method_with(method, max_iter=5)
    rng = np.random.default_rng(11)
    alpha = rng.choice([0.0, 0.3, 0.6], shape) if each else np.resize([0.0, 0.3, 0.6], shape[0])
    counts = rng.poisson(2.0, shape)
    if name == "undirected":
        counts = np.triu(counts)
    mask = rng.random(shape) < 0.15
    mask[0, 1] = False

    def fitted(values):
        return arrays(model.set_params(method=brief).fit(PrivatizedCounts(values, alpha, mask)))

    first = fitted(counts)
    other = np.where(mask | uncounted, counts + 50, counts)
    for found_name, found in fitted(other).items():
        np.testing.assert_array_equal(found, first[found_name], err_msg=found_name)
    seen = counts.copy()
    seen[0, 1] += 3
    assert any(not np.array_equal(found, first[n]) for n, found in fitted(seen).items())


@pytest.mark.parametrize("method", ["cavi", "bessel-cavi", "em"])
@pytest.mark.parametrize(
    "model", [cv.BlockModel(2), cv.PoissonFactorization(NETWORK_TEXT, {"c": 2, "d": 2}, shared={"jd": "ic"})]
)
def test_self_loops_are_for_samplers(model, method):
    model.set_params(self_loops=True, method=method, alpha=0.5)
    with pytest.raises(ValueError, match="self_loops requires one of"):
        model.fit(np.ones((5, 5), dtype=int))
