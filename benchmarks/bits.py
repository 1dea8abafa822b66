"""A digest of the draws of every method on three real data sets: two checkouts give the same lines or other draws.

Run by ``python benchmarks/bits.py``, and with PYTHONPATH at another checkout's ``src`` to compare with that one. The
noise is simulated with a seed, so that both see the same reports.
"""

import hashlib
import sys
import warnings

import lda.datasets
import networkx as nx
import numpy as np
from sklearn.datasets import load_digits

import countveil as cv

METHODS = (
    cv.Gibbs(), cv.AugmentedGibbs(), cv.CAVI(max_iter=15), cv.BesselCAVI(max_iter=15), cv.EM(max_iter=15), cv.SVI(),
)  # fmt: skip
SHORT = {"draws": 5, "tune": 10, "chains": 2, "seed": 1, "threads": 2, "progress": False}


def simulated(counts, rate):
    """A release with seeded noise."""
    rng = np.random.default_rng(20260101)
    return cv.simulate_release(counts, cv.PrivacyLevel(rate, 1), rng, truncate=True)


def cases():
    """(name, model, its parameters, data): topics, topics that go by tokens, blocks, a tensor."""
    words = lda.datasets.load_reuters().astype(np.int64)
    meetings = nx.to_numpy_array(nx.les_miserables_graph()).astype(np.int64)
    digits = load_digits().images[:200].astype(np.int64)
    yield "topics", cv.TopicModel, {"n_topics": 10}, simulated(words[:, :1000], 2)
    yield "topics, many", cv.TopicModel, {"n_topics": 10}, simulated(words, 1)
    yield "blocks", cv.BlockModel, {"n_communities": 5}, simulated(meetings, 1)
    tensor = cv.PrivatizedCounts(simulated(digits.reshape(200, -1), 1).reports.reshape(digits.shape), np.exp(-1.0))
    yield "tensor", cv.TensorModel, {"n_components": 5}, tensor


def digest(fit):
    """SHA-256 of all draws, in the order of their names."""
    found = hashlib.sha256()
    for group in ("posterior", "sample_stats"):
        values = fit.posterior[group].dataset
        for name in sorted(values.data_vars):
            found.update(np.ascontiguousarray(values[name].to_numpy()).tobytes())
    return found.hexdigest()[:16]


def main(wanted):
    """Print a line for each data set and method."""
    warnings.simplefilter("ignore")
    for name, model, parameters, data in cases():
        for method in METHODS:
            if (model is cv.BlockModel and method.batches) or (name == "topics, many" and method != cv.Gibbs()):
                continue
            if wanted and method.name not in wanted:
                continue
            fit = model(**parameters, method=method, **SHORT).fit(data)
            print(f"{name:14} {method.name:16} {digest(fit)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
