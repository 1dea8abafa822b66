import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

import countveil as cv
from countveil.engines import blocks
from countveil.engines.threads import ThreadEngine
from countveil.inference import starts
from countveil.inference.starts import embedding
from countveil.inference.starts.embedding import annealed, debiased, scaled
from tests.factorizations import CASES, alpha_of, model_of, observe
from tests.joint import SERIAL, assert_same_bits

C, N = 4, 60


def network(seed, kind, *, level=2.0, directed=True):
    """(data, group of each actor) of communities whose actors differ in degree."""
    rng = np.random.default_rng(seed)
    partner = {"assortative": np.arange(C), "pairs": np.arange(C) ^ 1, "ring": (np.arange(C) + 1) % C}[kind]
    rates = np.full((C, C), 0.2) + 4.0 * np.eye(C)[partner]
    group, degree = np.arange(N) % C, rng.gamma(3.0, 1.0 / 3.0, N)
    counts = rng.poisson(degree[:, None] * degree * (rates if directed else rates + rates.T)[group][:, group])
    noise = rng.geometric(1.0 - np.exp(-level), (2, N, N))
    mask = np.eye(N, dtype=bool) if directed else np.tril(np.ones((N, N), dtype=bool))
    return cv.PrivatizedCounts(counts + noise[0] - noise[1], np.exp(-level), mask), group


@pytest.mark.parametrize(
    ("kind", "directed"), [("assortative", True), ("ring", True), ("assortative", False), ("pairs", False)]
)
def test_planted_communities_are_found(kind, directed):
    agreement = []
    for seed in range(4):
        data, group = network(seed, kind, directed=directed)
        given = cv.BlockModel(C, directed=directed)._given(data)
        factors = starts.spectral(given.data, given.model, np.random.default_rng(seed), SERIAL)
        agreement.append(normalized_mutual_info_score(group, factors[given.model.shared].argmax(axis=1)))
    assert min(agreement) > 0.8
    assert np.mean(agreement) > 0.9


@pytest.mark.parametrize("name", ["directed", "undirected", "directed, loops", "dynamic network"])
def test_products_are_those_with_the_dense_matrix(name, monkeypatch):
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    case, rng = CASES[name], np.random.default_rng(3)
    alpha = alpha_of(case)
    reports, mask = rng.integers(-2, 6, case.shape) * (alpha > 0.0), rng.random(case.shape) < 0.2
    observations = observe(model_of(case), case, reports, mask)
    target = np.where(mask, 0.0, (1.0 + alpha) * np.maximum(reports, 0) - alpha / (1.0 - alpha))
    dense = target.reshape(*case.shape[:2], -1).sum(axis=2)
    x, y = rng.standard_normal((2, case.shape[0], 3))
    sent, received = embedding.products(observations, SERIAL, x, y)
    np.testing.assert_allclose(sent, dense @ x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(received, dense.T @ y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_vectors", [2, 40])
def test_the_embeddings_are_those_of_the_dense_matrix(n_vectors):
    rng = np.random.default_rng(4)
    dense, out_scale, in_scale = rng.random((N, N)) ** 4, rng.random((N, 1)), rng.random((N, 1))

    def times(x, y):
        return dense @ x, dense.T @ y

    both = embedding.of_both_directions(times, out_scale, n_vectors, np.random.default_rng(1))
    values, known = np.linalg.eigh(out_scale * (dense + dense.T) * out_scale.T)
    known = known[:, np.argsort(-np.abs(values))[:n_vectors]]
    np.testing.assert_allclose(both @ both.T, known @ known.T, atol=1e-3)
    each = embedding.of_each_direction(times, out_scale, in_scale, n_vectors, np.random.default_rng(1))
    left, _, right = np.linalg.svd(out_scale * dense * in_scale.T)
    known = np.hstack([left[:, :n_vectors], right[:n_vectors].T]) / np.sqrt(2.0)
    np.testing.assert_allclose(each @ each.T, known @ known.T, atol=2e-3)


def test_blocks_explain_what_least_squares_says():
    rng = np.random.default_rng(5)
    dense, own = rng.random((6, 6)), np.eye(2)[[0, 0, 1, 1, 1, 0]] * rng.random((6, 1))
    basis = np.einsum("ic,jd->ijcd", own, own).reshape(36, 4)
    left = np.linalg.lstsq(basis, dense.ravel(), rcond=None)[1].sum()
    found = embedding.explained_by(lambda x, y: (dense @ x, dense.T @ y), own, True)
    assert found == pytest.approx((dense**2).sum() - left)


def test_blocks_between_pairs_explain_what_least_squares_says_of_both_directions():
    rng = np.random.default_rng(6)
    dense, own = rng.random((6, 6)), np.eye(2)[[0, 0, 1, 1, 1, 0]] * rng.random((6, 1))
    basis = np.einsum("ic,jd->ijcd", own, own).reshape(36, 4)
    both = dense + dense.T
    left = np.linalg.lstsq(basis, both.ravel(), rcond=None)[1].sum()
    found = embedding.explained_by(lambda x, y: (dense @ x, dense.T @ y), own, False)
    assert found == pytest.approx((both**2).sum() - left)


@pytest.mark.parametrize("right", [0, 1])
def test_the_grouping_whose_blocks_explain_more_is_taken(right, monkeypatch):
    data, group = network(0, "assortative")
    wrong = np.random.default_rng(1).permutation(group)
    bases = [np.eye(C)[group if i == right else wrong] for i in range(2)]
    monkeypatch.setattr(embedding, "of_both_directions", lambda *_: bases[0])
    monkeypatch.setattr(embedding, "of_each_direction", lambda *_: bases[1])
    given = cv.BlockModel(C)._given(data)
    found = embedding.grouped(given.data, C, True, np.random.default_rng(2), SERIAL)
    assert normalized_mutual_info_score(group, found.argmax(axis=1)) == pytest.approx(1.0)


def test_the_best_of_several_k_means_is_taken(monkeypatch):
    rows, right, wrong = np.repeat(np.eye(3), 4, axis=0), np.repeat(range(3), 4), np.tile(range(3), 4)
    n_starts = embedding.KMEANS_STARTS
    assert n_starts > 2
    for place in range(n_starts):
        groups = [right if i == place else wrong for i in range(n_starts)]

        def kmeans2(rows, n_clusters, groups=groups, **_):
            group = groups.pop(0)
            return np.stack([rows[group == c].mean(axis=0) for c in range(n_clusters)]), group

        monkeypatch.setattr(embedding, "kmeans2", kmeans2)
        np.testing.assert_array_equal(embedding.clusters(rows, 3, np.random.default_rng(1)), right)
        assert groups == []


def test_no_bit_hangs_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    found = []
    for threads in (1, 3):
        given = cv.BlockModel(C)._given(network(2, "assortative")[0])
        with ThreadEngine(threads) as engine:
            found.append(starts.spectral(given.data, given.model, np.random.default_rng(1), engine))
    assert_same_bits(*found)


@pytest.mark.parametrize("n_communities", [1, 3, 12])
@pytest.mark.parametrize("reports", [np.zeros((5, 5), dtype=int), np.diag([5, 3, 0, 9, 1]), np.full((5, 5), -3)])
def test_starts_are_positive_and_finite_even_without_data_for_them(reports, n_communities):
    given = cv.BlockModel(n_communities, self_loops=True)._given(cv.PrivatizedCounts(reports, 0.5))
    for factor in starts.spectral(given.data, given.model, np.random.default_rng(12), SERIAL):
        assert np.isfinite(factor).all()
        assert factor.min() > 0.0


N_GROUPS, N_ACTORS = 4, 80


def core_and_periphery(seed, level=3.0):
    """(data in matrix form, sizes, groups) of an undirected network whose first group is in touch with all."""
    rng = np.random.default_rng(seed)
    rates = np.full((N_GROUPS, N_GROUPS), 0.2) + 0.8 * np.eye(N_GROUPS)
    rates[0] = rates[:, 0] = 1.0
    rates[0, 0] = 2.0
    group, degree = np.arange(N_ACTORS) % N_GROUPS, rng.gamma(2.0, 0.5, N_ACTORS)
    counts = rng.poisson(degree[:, None] * degree * rates[group][:, group])
    noise = rng.geometric(1.0 - np.exp(-level), (2, N_ACTORS, N_ACTORS))
    mask = np.tril(np.ones((N_ACTORS, N_ACTORS), dtype=bool))
    data = cv.PrivatizedCounts(counts + noise[0] - noise[1], np.exp(-level), mask)
    given = cv.BlockModel(N_GROUPS, directed=False)._given(data).data
    cells = debiased(given, False, SERIAL)
    return given, np.maximum(cells.sum(axis=1), 0.1 * cells.sum() / N_ACTORS), group


def memberships(group, size):
    return (group[:, None] == np.arange(N_GROUPS)) * size[:, None]


@pytest.mark.parametrize("name", ["directed", "undirected", "directed, loops", "dynamic network"])
def test_debiased_reports_are_those_of_the_dense_array(name, monkeypatch):
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    case, rng = CASES[name], np.random.default_rng(3)
    alpha = alpha_of(case)
    reports, mask = rng.integers(-2, 6, case.shape) * (alpha > 0.0), rng.random(case.shape) < 0.2
    observations = observe(model_of(case), case, reports, mask)
    target = np.where(mask, 0.0, (1.0 + alpha) * np.maximum(reports, 0) - alpha / (1.0 - alpha))
    dense = target.reshape(*case.shape[:2], -1).sum(axis=2)
    np.testing.assert_allclose(debiased(observations, True, SERIAL), dense, atol=1e-9)
    np.testing.assert_allclose(debiased(observations, False, SERIAL), dense + dense.T, atol=1e-9)


@pytest.mark.parametrize("directed", [True, False])
def test_what_blocks_explain_is_in_units_of_the_log_likelihood(directed):
    rng = np.random.default_rng(4)
    size = rng.gamma(2.0, 1.0, 300)
    root = np.sqrt(size + size.mean())
    noise = rng.standard_normal((300, 300))
    noise = noise if directed else np.triu(noise, 1) + np.triu(noise, 1).T
    cells, square = scaled(7.0 * noise * np.outer(root, root), size, directed)
    assert square.mean() == pytest.approx(1.0)
    off = ~np.eye(300, dtype=bool)
    explained = cells.sum(where=off) ** 2 / np.outer(square, square).sum(where=off)  # of one block
    weight = size / root
    exact = (noise * np.outer(weight, weight)).sum(where=off) ** 2 / np.outer(weight**2, weight**2).sum(where=off)
    assert explained == pytest.approx(exact if directed else exact / 2.0, rel=0.02)


def test_a_core_and_its_periphery_are_found_from_any_grouping():
    for seed in range(3):
        data, size, group = core_and_periphery(seed)
        rng = np.random.default_rng(seed)
        poor = memberships(rng.permutation(group), size)
        found = annealed(data, poor, False, rng, SERIAL)
        assert normalized_mutual_info_score(group, found.argmax(axis=1)) > 0.6
        np.testing.assert_array_equal(found.sum(axis=1), size)
        assert ((found > 0.0).sum(axis=1) == 1).all()


def test_the_run_that_explains_most_is_taken(monkeypatch):
    data, size, group = core_and_periphery(1)
    for best in range(embedding.RUNS + 1):
        seen = []

        def run(sent, received, square, n_groups, group, temperatures, uniforms, seen=seen, best=best):
            group[:] = len(seen) % n_groups
            seen.append(temperatures)
            return float(len(seen) == best + 1)

        monkeypatch.setattr(embedding, "run", run)
        found = annealed(data, memberships(group, size), False, np.random.default_rng(1), SERIAL)
        assert (found.argmax(axis=1) == best % N_GROUPS).all()
        assert [t[0] for t in seen] == [embedding.COLD] + [embedding.HOT] * embedding.RUNS


def test_what_is_given_is_kept_where_there_is_nothing_to_anneal(monkeypatch):
    data, size, group = core_and_periphery(1)
    alone = size[:, None]
    assert annealed(data, alone, False, np.random.default_rng(1), SERIAL) is alone
    monkeypatch.setattr(embedding, "VISITS", 100)
    theta = memberships(group, size)
    assert annealed(data, theta, False, np.random.default_rng(1), SERIAL) is theta


def test_no_bit_of_annealing_hangs_on_the_number_of_threads():
    data, size, group = core_and_periphery(2)
    found = []
    for threads in (1, 3):
        with ThreadEngine(threads) as engine:
            found.append(annealed(data, memberships(group, size), False, np.random.default_rng(1), engine))
    np.testing.assert_array_equal(*found)
