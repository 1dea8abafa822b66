import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference.starts.alternating import least_squares_start
from countveil.inference.starts.rotating import rotated_start, singular_vectors, varimax
from tests.inference.test_facts import dense_target, some_observations
from tests.joint import SERIAL, assert_same_bits, draw_reports


def test_vectors_are_the_leading_singular_ones_of_the_debiased_reports():
    rng = np.random.default_rng(1)
    rates = rng.gamma(0.3, 1.0, (300, 3)) @ rng.gamma(0.3, 30.0, (3, 40))
    observations = PrivatizedCounts(draw_reports(rates, np.asarray(0.5), rng), 0.5)
    rows, columns = singular_vectors(observations, 3, np.random.default_rng(2), SERIAL)
    left, values, right = np.linalg.svd(dense_target(observations), full_matrices=False)
    np.testing.assert_allclose(rows.T @ rows, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(rows @ columns.T, (left[:, :3] * values[:3]) @ right[:3], atol=0.01 * values[2])


@pytest.mark.parametrize("kind", ["scalar", "row", "cell"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("positive", [0.5, 0.03])
def test_all_vectors_together_are_the_debiased_reports(kind, masked, positive):
    observations = some_observations(kind, masked, positive)
    target = dense_target(observations)
    rows, columns = singular_vectors(observations, 17, np.random.default_rng(3), SERIAL)
    np.testing.assert_allclose(rows @ columns.T, target, atol=1e-5 * np.abs(target).max())


def test_varimax_turns_vectors_back_to_those_of_groups():
    rng = np.random.default_rng(4)
    groups = np.eye(5)[rng.integers(0, 5, 200)] * rng.gamma(3.0, 1.0, (200, 1))
    mixed = groups @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    rotation = varimax(mixed)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(5), atol=1e-9)
    ours, planted = (x / np.linalg.norm(x, axis=0) for x in (mixed @ rotation, groups))
    np.testing.assert_allclose(np.abs(planted.T @ ours).max(axis=1), 1.0, atol=0.01)


def test_planted_topics_are_found_under_noise():
    rng = np.random.default_rng(7)
    theta, phi = rng.dirichlet(np.full(5, 0.1), 500), rng.dirichlet(np.full(150, 0.05), 5)
    observations = PrivatizedCounts(draw_reports(theta @ phi * 60.0, np.asarray(0.5), rng), 0.5)
    found = least_squares_start(observations, 5, rng, SERIAL, rotated_start)
    for ours, planted in zip(found, (theta, phi.T), strict=True):
        best = np.corrcoef(planted.T, ours.T)[:5, 5:].max(axis=1)
        assert best.min() > 0.8


def test_every_number_of_threads_gives_the_same_bits():
    observations = some_observations("row", True)
    with ThreadEngine(3) as engine:
        several = rotated_start(observations, 4, np.random.default_rng(5), engine)
    assert_same_bits(several, rotated_start(observations, 4, np.random.default_rng(5), SERIAL))


ALIKE = np.outer(np.arange(1, 9), np.arange(1, 6))
SMALL = {"none": np.zeros((6, 5), dtype=int), "few": np.eye(6, 5, dtype=int), "alike": ALIKE, "few rows": ALIKE[:2]}


@pytest.mark.parametrize("reports", SMALL.values(), ids=SMALL)
def test_data_with_few_reports_or_none_or_of_a_small_rank_have_a_start(reports):
    for factor in least_squares_start(
        PrivatizedCounts(reports, 0.4), 4, np.random.default_rng(6), SERIAL, rotated_start
    ):
        assert np.isfinite(factor).all()
        assert (factor > 0.0).all()
