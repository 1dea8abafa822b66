import itertools

import numpy as np
import pytest

from countveil.engines import blocks
from countveil.engines.threads import ThreadEngine
from countveil.inference import starts
from countveil.inference.starts import tensors
from tests.factorizations import CASES, Case, alpha_of, mask_of, model_of, observe, rates_of
from tests.inference.test_facts import dense_target
from tests.joint import SERIAL, assert_same_bits, draw_reports


def scene(name, seed=3, shape=None, **sizes):
    """(model, true factors, observations) of a case."""
    case, rng = CASES[name], np.random.default_rng(seed)
    case = case if shape is None else case._replace(shape=shape)
    model = model_of(case, **sizes)
    factors = [rng.gamma(0.5, 3.0, f.shape) if f.fixed is None else f.fixed for f in model.factors]
    reports = draw_reports(rates_of(model, factors), alpha_of(case), rng)
    return model, factors, observe(model, case, reports, mask_of(case))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("topics", True), ("CP 3", True), ("Tucker", True), ("directed", False), ("dynamic network", False)],
)
def test_factors_that_are_used_once_alternate(name, expected):
    assert tensors.alternates(model_of(CASES[name])) == expected


@pytest.mark.parametrize("name", ["topics", "CP 3", "CP 4", "Tucker"])
def test_normal_equations_are_those_of_the_dense_tensor(name):
    """The error is quadratic in one factor: compare it along lines, over all cells of the filled target."""
    model, factors, observations = scene(name)
    target = dense_target(observations)

    def error(values):
        theta, phi = model.matrices(values)
        return ((target - theta @ phi.T) ** 2).sum()

    rng, flat = np.random.default_rng(4), list(factors)
    for side in (model.rows, model.columns):
        product = tensors.times_data(observations, model, flat, side is model.rows, SERIAL)
        for u, use in enumerate(side.uses):
            moved = [list(flat), list(flat)]
            direction = rng.standard_normal(flat[use.factor].shape)
            moved[0][use.factor] = flat[use.factor] + 1e-4 * direction
            moved[1][use.factor] = flat[use.factor] - 1e-4 * direction
            slope = (error(moved[0]) - error(moved[1])) / 2e-4
            target_f = side.gradient(u, side.forward(flat), product)
            gram = tensors.gram_of(model, use.factor, flat)
            axes = model.factors[use.factor].axes
            seen = [i for i, a in enumerate(axes) if a in model.spec.output]
            order = seen + [i for i in range(len(axes)) if i not in seen]
            value, wanted, step = (
                x.transpose(order).reshape(-1, len(gram)) for x in (flat[use.factor], target_f, direction)
            )
            assert (2.0 * (value @ gram - wanted) * step).sum() == pytest.approx(slope, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("name", ["CP 3", "Tucker", "shapes and known"])
def test_the_squared_error_never_increases_and_is_the_one_that_is_returned(name):
    model, _, observations = scene(name)
    target = dense_target(observations)
    factors = [np.random.default_rng(5).random(f.shape) if f.fixed is None else f.fixed for f in model.factors]
    path = []
    for _ in range(6):
        found = tensors.improve(observations, model, factors, 1, SERIAL)
        theta, phi = model.matrices(factors)
        path.append(((target - theta @ phi.T) ** 2).sum())
        assert found == pytest.approx(path[-1] - (target**2).sum(), rel=1e-9)
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(path))
    assert path[-1] < path[0]


@pytest.mark.parametrize(("name", "sizes"), [("CP 3", {"k": 3}), ("Tucker", {"c": 2, "d": 2})])
def test_planted_tensors_are_found(name, sizes):
    shape = (20, 15, 12) if name == "CP 3" else (15, 12, 6, 8)
    model, factors, observations = scene(name, shape=shape, **sizes)
    truth = rates_of(model, factors)
    for seed in range(3):
        rates = rates_of(model, starts.automatic(observations, model, np.random.default_rng(seed), SERIAL))
        assert np.corrcoef(rates.ravel(), truth.ravel())[0, 1] > 0.95


def test_no_bit_hangs_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(blocks, "MIN_CELLS_PER_BLOCK", 1)
    found = []
    for threads in (1, 3):
        model, _, observations = scene("CP 3", shape=(200, 5, 4))
        with ThreadEngine(threads) as engine:
            found.append(tensors.tensor_start(observations, model, np.random.default_rng(1), engine))
    assert_same_bits(*found)


def test_starts_are_positive_and_finite_even_without_data_for_them():
    case = CASES["Tucker"]
    model = model_of(case)
    for value in (0, -3):
        observations = observe(model, case, np.where(alpha_of(case) > 0.0, value, 0), mask_of(case))
        for factor in tensors.tensor_start(observations, model, np.random.default_rng(1), SERIAL):
            assert np.isfinite(factor).all()
            assert factor.min() > 0.0


@pytest.mark.parametrize(
    ("name", "expected"), [("CP 3", True), ("CP 4", True), ("Tucker", False), ("shapes and known", False)]
)
def test_products_of_free_vectors_are_mergeable(name, expected):
    assert tensors.mergeable(model_of(CASES[name])) == expected


def test_the_worse_beginnings_drop_out_on_the_way(monkeypatch):
    """Ten beginnings of three iterations; the best three go on for four, and the best of these for sixteen."""
    model, _, observations = scene("Tucker")
    first = [7.0, 3.0, 9.0, 1.0, 8.0, 6.0, 2.0, 5.0, 4.0, 0.0]  # squared errors; 9, 3 and 6 are the best
    errors = {3: first, 4: {9: 2.0, 3: 1.0, 6: 0.0}, 16: {6: 0.0}}
    ran, seen = [], []

    def improve(observations, model, factors, iterations, engine):
        place = next((i for i, each in enumerate(seen) if each is factors), len(seen))
        if place == len(seen):
            seen.append(factors)
        ran.append((place, iterations))
        return errors[iterations][place]

    monkeypatch.setattr(tensors, "improve", improve)
    found = tensors.tensor_start(observations, model, np.random.default_rng(1), SERIAL)
    assert ran == [*((i, 3) for i in range(10)), (9, 4), (3, 4), (6, 4), (6, 16)]
    assert_same_bits(tensors.floored(model, seen[6]), found)


def test_components_that_can_be_merged_are_twice_as_many_at_first(monkeypatch):
    model, _, observations = scene("CP 3", k=2)
    ran, improve, maximise = [], tensors.improve, tensors.maximise

    def improved(observations, model, factors, iterations, engine):
        ran.append((model.n_components, iterations))
        return improve(observations, model, factors, iterations, engine)

    def maximised(plan, model, *others):
        ran.append((model.n_components, "likelier"))
        return maximise(plan, model, *others)

    monkeypatch.setattr(tensors, "improve", improved)
    monkeypatch.setattr(tensors, "maximise", maximised)
    found = tensors.tensor_start(observations, model, np.random.default_rng(1), SERIAL)
    assert ran == [(4, 3)] * (5 + 2 + 1) + [(4, "likelier")] * 5
    assert [factor.shape for factor in found] == [factor.shape for factor in model.factors]


def test_merged_factors_keep_the_places_of_their_axes():
    """A factor of two observed axes, and one whose latent axis comes first."""
    model = model_of(Case("ijk,kt->ijt", (4, 3, 5), {}))
    rng = np.random.default_rng(2)
    factors = [rng.random(factor.shape) for factor in model.factors]
    doubled = [np.concatenate([factors[0]] * 2, axis=2), np.concatenate([factors[1], 2.0 * factors[1]])]
    found = tensors.merged_factors(model, doubled)
    assert [factor.shape for factor in found] == [(4, 3, 2), (2, 5)]
    expected = 3.0 * np.einsum("ijk,kt->ijt", *factors)
    np.testing.assert_allclose(np.einsum("ijk,kt->ijt", *found), expected, rtol=1e-9)


def test_no_component_stays_with_two_true_ones():
    """From beginnings with as many components as in the model the errors differ by up to 5%."""
    rng, shape, k = np.random.default_rng(1), (16, 16, 8), 8
    case = Case("ak,bk,ck->abc", shape, {})
    model = model_of(case, k=k)
    blocks_of = [np.eye(k)[np.arange(n) % k] * rng.gamma(3.0, 1.0, (n, 1)) + 0.01 for n in shape]
    factors = [*blocks_of[:2], rng.gamma(0.5, 1.0, (shape[2], k))]
    reports = draw_reports(rates_of(model, factors), alpha_of(case), rng)
    observations = observe(model, case, reports, np.zeros(shape, dtype=bool))
    errors = []
    for seed in range(4):
        found = list(tensors.tensor_start(observations, model, np.random.default_rng(seed), SERIAL))
        errors.append(tensors.improve(observations, model, found, 1, SERIAL))
    assert np.ptp(errors) < 0.005 * abs(min(errors))


def test_a_weak_component_is_found_beside_strong_ones():
    """It has a hundredth of the counts; by squared errors alone two strong ones share its place."""
    rng, shape, k = np.random.default_rng(2), (20, 20, 10), 5
    case = Case("ak,bk,ck->abc", shape, {})
    model = model_of(case, k=k)
    factors = [rng.gamma(0.3, 1.0, (n, k)) for n in shape]
    factors = [factor / factor.sum(axis=0) for factor in factors]
    factors[0] *= np.array([400.0, *[10_000.0] * (k - 1)])
    reports = draw_reports(rates_of(model, factors), alpha_of(case), rng)
    observations = observe(model, case, reports, np.zeros(shape, dtype=bool))
    for seed in range(2):
        found = tensors.tensor_start(observations, model, np.random.default_rng(seed), SERIAL)
        alike = np.prod([unit(true).T @ unit(ours) for true, ours in zip(factors, found, strict=True)], axis=0)
        assert alike.max(axis=1).min() > 0.8


def unit(factor):
    """The factor with columns of length one."""
    return factor / np.linalg.norm(factor, axis=0)


def test_a_product_with_the_data_serves_two_rounds_of_each_side(monkeypatch):
    model, factors, observations = scene("CP 3")
    calls = []
    monkeypatch.setattr(tensors, "times_data", lambda *given: calls.append(given[-2]))
    monkeypatch.setattr(tensors, "descend", lambda model, side, u, *_: calls.append((side is model.rows, u)) or 0.0)
    tensors.improve(observations, model, factors, 2, SERIAL)
    rows, columns = [True, (True, 0), (True, 0)], [False, (False, 0), (False, 1), (False, 0), (False, 1)]
    assert calls == 2 * [*rows, *columns]
