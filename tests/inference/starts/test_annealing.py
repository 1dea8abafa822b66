import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

import countveil as cv
from countveil.engines import blocks
from countveil.engines.threads import ThreadEngine
from countveil.inference.starts import annealing
from countveil.inference.starts.annealing import annealed, debiased, scaled
from tests.factorizations import CASES, alpha_of, model_of, observe
from tests.joint import SERIAL

C, N = 4, 80


def core_and_periphery(seed, level=3.0):
    """(data in matrix form, sizes, groups) of an undirected network whose first group is in touch with all."""
    rng = np.random.default_rng(seed)
    rates = np.full((C, C), 0.2) + 0.8 * np.eye(C)
    rates[0] = rates[:, 0] = 1.0
    rates[0, 0] = 2.0
    group, degree = np.arange(N) % C, rng.gamma(2.0, 0.5, N)
    counts = rng.poisson(degree[:, None] * degree * rates[group][:, group])
    noise = rng.geometric(1.0 - np.exp(-level), (2, N, N))
    mask = np.tril(np.ones((N, N), dtype=bool))
    data = cv.PrivatizedCounts(counts + noise[0] - noise[1], np.exp(-level), mask)
    given = cv.BlockModel(C, directed=False)._given(data).data
    cells = debiased(given, False, SERIAL)
    return given, np.maximum(cells.sum(axis=1), 0.1 * cells.sum() / N), group


def memberships(group, size):
    return (group[:, None] == np.arange(C)) * size[:, None]


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
    exact = (noise * np.outer(weight, weight)).sum(where=off) ** 2 / np.outer(weight**2, weight**2).sum(
        where=off
    )
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
    for best in range(annealing.RUNS + 1):
        seen = []

        def run(sent, received, square, n_groups, group, temperatures, uniforms, seen=seen, best=best):
            group[:] = len(seen) % n_groups
            seen.append(temperatures)
            return float(len(seen) == best + 1)

        monkeypatch.setattr(annealing, "run", run)
        found = annealed(data, memberships(group, size), False, np.random.default_rng(1), SERIAL)
        assert (found.argmax(axis=1) == best % C).all()
        assert [t[0] for t in seen] == [annealing.COLD] + [annealing.HOT] * annealing.RUNS


def test_what_is_given_is_kept_where_there_is_nothing_to_anneal(monkeypatch):
    data, size, group = core_and_periphery(1)
    alone = size[:, None]
    assert annealed(data, alone, False, np.random.default_rng(1), SERIAL) is alone
    monkeypatch.setattr(annealing, "VISITS", 100)
    theta = memberships(group, size)
    assert annealed(data, theta, False, np.random.default_rng(1), SERIAL) is theta


def test_no_bit_hangs_on_the_number_of_threads():
    data, size, group = core_and_periphery(2)
    found = []
    for threads in (1, 3):
        with ThreadEngine(threads) as engine:
            found.append(annealed(data, memberships(group, size), False, np.random.default_rng(1), engine))
    np.testing.assert_array_equal(*found)
