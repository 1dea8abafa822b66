"""What networks and tensors count, and what they leave out: self-loops, the lower triangle, masks, held-out links."""

from functools import partial

import numpy as np
import pytest

import countveil as cv
from countveil.data.networks import links_among
from countveil.data.observations import PrivatizedCounts
from countveil.inference import start
from tests.joint import draw_reports

SHORT = {"seed": 3, "threads": 1, "draws": 3, "tune": 3, "chains": 2, "max_iter": 3}
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


def arrays(fit):
    """Everything that a fit holds, by name."""
    return {
        f"{group}/{name}": values.to_numpy()
        for group, node in fit.posterior.children.items()
        for name, values in node.dataset.data_vars.items()
    }


@pytest.mark.filterwarnings("ignore:Not to be trusted:countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize(
    ("method", "each"),
    [("gibbs", False), ("gibbs", True), ("cavi", True), ("em", False), ("bessel-cavi", False)],
)
@pytest.mark.parametrize("name", estimators())
def test_what_is_not_seen_changes_nothing(name, method, each, monkeypatch):
    monkeypatch.setattr(start, "multiplicative_start", partial(start.multiplicative_start, iterations=3))
    model, shape, uncounted = estimators()[name]
    rng = np.random.default_rng(11)
    alpha = rng.choice([0.0, 0.3, 0.6], shape) if each else np.resize([0.0, 0.3, 0.6], shape[0])
    counts = rng.poisson(2.0, shape)
    if name == "undirected":
        counts = np.triu(counts)
    mask = rng.random(shape) < 0.15
    mask[0, 1] = False

    def fitted(values):
        return arrays(model.set_params(method=method).fit(PrivatizedCounts(values, alpha, mask)))

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
    with pytest.raises(ValueError, match="self_loops goes with one of"):
        model.fit(np.ones((5, 5), dtype=int))


def test_self_loops_count_where_they_are_asked_for():
    counts = np.random.default_rng(1).poisson(2.0, (6, 6))
    more = counts + 40 * np.eye(6, dtype=int)
    for directed in (True, False):
        model = cv.BlockModel(2, self_loops=True, directed=directed, alpha=0.4, **SHORT)
        one, other = (model.fit(np.triu(each)).rate().to_numpy() for each in (counts, more))
        assert np.diagonal(other).mean() > 3.0 * np.diagonal(one).mean()


def test_links_among_are_those_from_senders_to_receivers():
    names = ["a", "b", "c", "d"]
    np.testing.assert_array_equal(np.argwhere(links_among(names, ["b", "d"], ["a"])), [[1, 0], [3, 0]])
    np.testing.assert_array_equal(links_among(4, [1, 3], [0]), links_among(names, ["b", "d"], ["a"]))
    both = links_among(names, ["b", "d"], ["a"], directed=False)
    np.testing.assert_array_equal(both, both.T)
    assert both.sum() == 4
    assert links_among(names, ["a", "c"]).sum() == 4
    with pytest.raises(ValueError, match="receivers must be among the 4 actors, got 'e'"):
        links_among(names, ["a"], ["e"])
    with pytest.raises(ValueError, match="actors must differ from each other"):
        links_among(["a", "a"], ["a"])


def test_held_out_links_are_predicted():
    """Two communities that write to themselves: links among some actors are found from all others."""
    rng, group = np.random.default_rng(3), np.arange(30) % 2
    rates = np.where(group[:, None] == group, 6.0, 0.5)
    reports = draw_reports(rates, np.array(0.4), rng)
    mask = links_among(30, range(8))
    model = cv.BlockModel(2, seed=1, threads=1, draws=60, tune=60, chains=1)
    found = model.fit(PrivatizedCounts(reports, 0.4, mask)).rate().to_numpy()
    hidden = mask & ~np.eye(30, dtype=bool)
    error = np.abs(found - rates)[hidden].mean()
    guess = np.abs(rates[~mask].mean() - rates)[hidden].mean()
    assert error < 0.5 * guess
    assert np.corrcoef(found[hidden], rates[hidden])[0, 1] > 0.9


def test_a_tensor_of_two_modes_is_learned_from_batches_as_topics_are():
    counts = np.random.default_rng(4).poisson(40.0, (30, 6))
    options = {
        "method": "svi",
        "passes": 2,
        "batch_rows": 7,
        "draws": 3,
        "seed": 1,
        "alpha": 0.4,
        "threads": 1,
    }
    tensor, topics = cv.TensorModel(2, **options).fit(counts), cv.TopicModel(2, **options).fit(counts)
    np.testing.assert_array_equal(tensor.rate().to_numpy(), topics.rate().to_numpy())
    assert tensor.n_iter_ == 2 * 5
    with pytest.raises(ValueError, match="passes must be a whole number of at least 1, got 0"):
        tensor.set_params(passes=0).fit(counts)


def test_an_undirected_pair_masked_on_one_side_only_is_refused_as_that():
    counts = np.full((4, 4), 2)
    model = cv.BlockModel(2, directed=False, **SHORT)
    with pytest.raises(
        ValueError, match=r"must mask each pair on both sides .* got \(0, 2\) masked and \(2, 0\)"
    ):
        model.fit(cv.ExactCounts(counts, cv.links_among(4, [0], [2])))
    assert model.fit(cv.ExactCounts(counts, cv.links_among(4, [0], [2], directed=False))).rate().shape == (
        4,
        4,
    )
