import gc
import weakref

import numpy as np
import pytest
from scipy import stats

from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.engines import blocks
from countveil.engines.threads import ThreadEngine
from countveil.inference import facts
from countveil.inference.facts import facts_of, mean_rate_without_offsets
from tests.joint import FALSE_ALARM, SERIAL, assert_same_bits, draw_reports, two_sided_geometric


def dense_target(observations):
    """T as a dense array."""
    found, every = facts_of(observations), np.eye(observations.shape[1])
    shared, own = (observations.noise.kernel, every, found.fill_v), (found.fill_d,)
    (product,), _ = SERIAL.over_rows(facts.multiply_block, observations, shared, own)
    return product - found.bias_d[:, None]


def slow_target(observations):
    """T cell by cell."""
    o, (n_rows, n_columns) = observations, observations.shape
    every = np.arange(n_rows * n_columns)
    reports, alpha = (x.reshape(o.shape) for x in o.cells(every // n_columns, every % n_columns))
    seen = reports >= 0
    target = np.where(seen, (1 + alpha) * np.maximum(reports, 0) - alpha / (1 - alpha), 0.0)
    rows, columns = (np.maximum(target.sum(axis=a) / np.maximum(seen.sum(axis=a), 1), 0.0) for a in (1, 0))
    return np.where(seen, target, np.outer(rows, columns) / max(rows.mean(), 1e-12))


def some_observations(kind, masked, positive=0.8):
    """300 x 17 reports, of which a share is positive, with noise levels of one kind; a third may be masked."""
    rng = np.random.default_rng(16)
    shape = (300, 17)
    alpha = {"scalar": 0.4, "row": rng.uniform(0, 0.9, 300), "cell": rng.uniform(0, 0.9, shape)}[kind]
    mask = rng.random(shape) < (0.3 * positive) if masked else np.zeros(shape, dtype=bool)
    reports = np.where(rng.random(shape) < positive, rng.integers(1, 6, shape), 0)
    return PrivatizedCounts(reports, alpha, mask)


@pytest.mark.parametrize("kind", ["scalar", "row", "cell"])
def test_debiased_reports_of_empty_cells_have_mean_zero(kind):
    rng = np.random.default_rng(1)
    shape = (40, 5000)
    alpha = {
        "scalar": np.full(shape, 0.6),
        "row": np.repeat(np.linspace(0.1, 0.9, 40)[:, None], 5000, axis=1),
        "cell": rng.uniform(0.1, 0.9, shape),
    }[kind]
    given = {"scalar": 0.6, "row": alpha[:, 0], "cell": alpha}[kind]
    reports = draw_reports(np.zeros(shape), alpha, rng)
    target = dense_target(PrivatizedCounts(reports, given))
    np.testing.assert_allclose(target, (1 + alpha) * (np.maximum(reports, 0) - alpha / (1 - alpha**2)), atol=1e-12)
    z = target.mean(axis=1) / (target.std(axis=1) / np.sqrt(5000))
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / 40)


def test_debiased_reports_of_exact_counts_are_the_counts():
    counts = np.random.default_rng(2).poisson(1.0, (6, 7))
    np.testing.assert_array_equal(dense_target(ExactCounts(counts)), counts)
    assert facts_of(ExactCounts(counts)).mean_count == pytest.approx(counts.mean())
    assert facts_of(ExactCounts(counts)).total_count == counts.sum()


def test_mean_count_of_empty_cells_is_near_zero_and_positive():
    reports = draw_reports(np.zeros((300, 300)), np.array(0.5), np.random.default_rng(3))
    target = dense_target(PrivatizedCounts(reports, 0.5))
    assert 0.0 < facts_of(PrivatizedCounts(reports, 0.5)).mean_count < 5 * target.std() / 300
    assert facts_of(PrivatizedCounts(np.full((4, 5), -3), 0.5)).mean_count > 0.0


@pytest.mark.parametrize("cells", [False, True])
def test_masked_cells_are_filled_from_their_row_and_column(cells):
    rng = np.random.default_rng(4)
    mu = np.outer(rng.uniform(1, 3, 60), rng.uniform(1, 3, 80))
    alpha = np.full((60, 80), 0.3) if not cells else rng.uniform(0.2, 0.4, (60, 80))
    reports = draw_reports(mu, alpha, rng)
    mask = rng.random(mu.shape) < 0.3
    given = alpha if cells else 0.3
    observations = PrivatizedCounts(reports, given, mask)
    other = PrivatizedCounts(np.where(mask, 1000, reports), given, mask)
    target = dense_target(observations)
    np.testing.assert_array_equal(target, dense_target(other))
    full = dense_target(PrivatizedCounts(reports, given))
    np.testing.assert_allclose(target[~mask], full[~mask], atol=1e-12)
    assert np.corrcoef(target[mask], mu[mask])[0, 1] > 0.9
    assert target[mask].mean() == pytest.approx(mu[mask].mean(), rel=0.25)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["scalar", "row", "cell"])
def test_the_debiased_matrix_and_its_sums_are_those_of_its_cells(kind, masked):
    observations = some_observations(kind, masked)
    target, found = slow_target(observations), facts_of(observations)
    np.testing.assert_allclose(dense_target(observations), target, atol=1e-12)
    np.testing.assert_allclose(found.row_totals, target.sum(axis=1), atol=1e-12)
    assert found.mean_count == pytest.approx(target.mean())


@pytest.mark.parametrize("kind", ["row", "cell"])
def test_the_estimate_of_the_total_count_is_unbiased(kind):
    rng = np.random.default_rng(8)
    mu, mask = rng.gamma(0.3, 4.0, (20, 15)), rng.random((20, 15)) < 0.2
    alpha = rng.choice([0.0, 0.4, 0.8], (20, 1) if kind == "row" else (20, 15))
    counts = rng.poisson(mu)
    noises = (two_sided_geometric(np.broadcast_to(alpha, mu.shape), rng) for _ in range(1000))
    found = np.array([facts_of(PrivatizedCounts(counts + noise, alpha, mask)).total_count for noise in noises])
    z = (found.mean() - counts[~mask].sum()) / (found.std() / np.sqrt(found.size))
    assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


def test_the_rate_without_offsets_times_their_means_is_the_mean_count():
    counts = np.random.default_rng(2).poisson(3.0, (6, 7))
    row_offset, column_offset = np.linspace(0.5, 4.0, 6), np.linspace(1.0, 3.0, 7)
    found = mean_rate_without_offsets(ExactCounts(counts, row_offset=row_offset, column_offset=column_offset), SERIAL)
    assert found * row_offset.mean() * column_offset.mean() == pytest.approx(counts.mean())


@pytest.mark.parametrize("masked", [False, True])
def test_no_bit_hangs_on_the_number_of_threads(masked, monkeypatch):
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    assert len(blocks.row_blocks(300, None, 17)) > 3
    with ThreadEngine(3) as engine:
        assert_same_bits(
            facts_of(some_observations("row", masked), SERIAL), facts_of(some_observations("row", masked), engine)
        )


def test_facts_are_found_once_and_go_with_their_observations(monkeypatch):
    asked = []
    real = facts.find_facts
    monkeypatch.setattr(facts, "find_facts", lambda o, engine: asked.append(o.shape) or real(o, engine))
    monkeypatch.setattr(facts, "_facts", weakref.WeakKeyDictionary())  # other tests' data may go at any time
    observations = some_observations("row", True)
    first = facts_of(observations)
    assert facts_of(observations, SERIAL) is first
    hidden = observations.hide(np.array([2]), np.array([3]))
    assert facts_of(hidden).total_count != first.total_count
    assert asked == [(300, 17)] * 2
    assert len(facts._facts) == 2
    del observations, hidden
    gc.collect()
    assert not facts._facts
