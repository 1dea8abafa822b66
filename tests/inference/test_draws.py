"""Schedules, and the arrays that keep what chains draw."""

import tracemalloc

import numpy as np
import pytest

import countveil as cv
from countveil.inference import draws as draws_module
from countveil.inference.draws import Draws, Point, Schedule
from countveil.inference.methods import METHODS
from countveil.laws.counts import Poisson
from countveil.models.priors import GammaPrior
from tests.joint import small_model

C, S, SIZE = 2, 3, (4, 5)


class WithParameters(Poisson):
    """A likelihood with a number of its own for each column, and one for all."""

    def start(self, shape):
        return np.full(shape[1], 2.0), np.array(0.5)


MODEL = small_model(SIZE, learned=True)._replace(likelihood=WithParameters())


def point(value):
    """A point all of whose numbers are this value."""
    return Point(
        (np.full((4, 2), value), np.full((5, 2), value)),
        (np.full((1, 2), value), np.full((1, 2), value)),
        (np.full(5, value), np.array(value)),
    )


@pytest.mark.parametrize(("schedule", "sweeps"), [((10, 5, 4, 1), 15), ((3, 4, 1, 2), 10), ((1, 0, 1, 7), 7)])
def test_a_chain_sweeps_to_its_last_draw(schedule, sweeps):
    assert Schedule(*schedule).sweeps == sweeps


def test_there_is_room_for_all_that_a_state_has():
    draws = Draws.empty(Schedule(S, 9, C, 1), MODEL)
    shapes = [(C, S, 4, 2), (C, S, 5, 2), (C, S, 1, 2), (C, S, 1, 2), (C, S, 5), (C, S), (C, S), (C, S)]
    assert [values.shape for values in draws.arrays] == shapes
    assert {values.dtype for values in draws.factors} == {np.dtype(np.float32)}
    assert {values.dtype for values in draws.arrays[2:]} == {np.dtype(np.float64)}


def test_hyperparameters_have_the_shape_that_their_prior_gives_them():
    own = GammaPrior(0.5, np.ones((4, 2)), learned=False)
    factors = (MODEL.factors[0]._replace(prior=own), MODEL.factors[1])
    draws = Draws.empty(Schedule(S, 0, C, 1), MODEL._replace(factors=factors))
    assert [values.shape for values in draws.hypers] == [(C, S, 4, 2), (C, S, 1, 2)]


def test_a_chain_keeps_its_draws_in_its_own_part():
    draws = Draws.empty(Schedule(S, 0, C, 1), MODEL)
    for chain in range(C):
        mine = draws.of_chain(chain)
        for s in range(S):
            mine.keep(s, point(10.0 * chain + s), -1.0 * s, 100.0 + chain)
    for values in draws.arrays[:-2]:
        for chain in range(C):
            for s in range(S):
                assert (values[chain, s] == 10.0 * chain + s).all()
    assert draws.log_likelihood.tolist() == [[0.0, -1.0, -2.0]] * C
    assert draws.total_rate.tolist() == [[100.0] * S, [101.0] * S]


def test_what_does_not_fit_is_not_kept():
    mine = Draws.empty(Schedule(S, 0, C, 1), MODEL).of_chain(0)
    with pytest.raises(ValueError, match="zip"):
        mine.keep(0, point(1.0)._replace(parameters=()), 0.0, 0.0)


def test_a_function_goes_over_every_array():
    draws = Draws.empty(Schedule(S, 0, C, 1), MODEL)
    halves = draws.mapped(lambda values: values[:1])
    assert isinstance(halves, Draws)
    assert [values.shape for values in halves.arrays] == [(1, *v.shape[1:]) for v in draws.arrays]
    assert all(np.shares_memory(a, b) for a, b in zip(halves.arrays, draws.arrays, strict=True))


HUGE = Schedule(draws=10**7, tune=0, chains=C, thin=1)
# (4 x 2 + 5 x 2) float32 and (2 + 2 + 5 + 1 + 2) float64 for each draw
SIZE_OF_HUGE = C * 10**7 * (4 * 18 + 8 * 12)
ADVICE = r"smaller draws= \(with method=cv\.Gibbs\(thin=\.\.\.\), to cover as many sweeps\)"


def test_the_size_of_draws_is_that_of_their_arrays():
    plan = Schedule(S, 9, C, 1)
    assert draws_module.bytes_of(plan, MODEL) == sum(values.nbytes for values in Draws.empty(plan, MODEL).arrays)
    assert draws_module.bytes_of(HUGE, MODEL) == SIZE_OF_HUGE


@pytest.mark.parametrize(("available", "fits"), [(SIZE_OF_HUGE - 1, False), (SIZE_OF_HUGE, True), (None, True)])
def test_draws_that_do_not_fit_in_memory_are_refused_before_they_are_made(monkeypatch, available, fits):
    monkeypatch.setattr(draws_module, "available_memory", lambda: available)
    if fits:
        draws_module.check_room(HUGE, MODEL)
        return
    sizes = "10,000,000 draws from 2 chains need 3.4 GB, 3.4 GB are available"
    with pytest.raises(MemoryError, match=f"^draws must fit in memory: {sizes}; take a {ADVICE} or fewer chains=$"):
        Draws.empty(HUGE, MODEL)
    monkeypatch.setattr(draws_module, "available_memory", lambda: 10**9)
    with pytest.raises(MemoryError, match=f"from 1 chain need 1.7 GB, 1.0 GB are available; take a {ADVICE}$"):
        Draws.empty(HUGE._replace(chains=1), MODEL)


@pytest.mark.parametrize("method", ["cavi", "bessel-cavi"])
def test_methods_without_sweeps_are_told_of_fewer_draws_alone(method, monkeypatch):
    monkeypatch.setattr(draws_module, "available_memory", lambda: 10**4)
    data = cv.PrivatizedCounts(np.ones((4, 5), dtype=int), 0.5)
    with pytest.raises(MemoryError, match=r"take a smaller draws=$"):
        cv.TopicModel(2, method=method, likelihood="poisson", progress=False).fit(data)


HUGE_MODELS = {
    "topics": lambda method: cv.TopicModel(10**9, method=method, progress=False),
    "tensor": lambda method: cv.TensorModel(10**12, method=method, progress=False),
    "blocks": lambda method: cv.BlockModel(10**6, method=method, progress=False),
}


@pytest.mark.parametrize(
    ("name", "method"), [(n, m) for n in HUGE_MODELS for m in METHODS if (n, m) != ("blocks", "svi")]
)
def test_more_components_than_fit_in_memory_are_refused_before_anything_is_made(name, method, monkeypatch):
    monkeypatch.setattr("countveil.inference.draws.available_memory", lambda: 10**10)
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=r"^factors must fit in memory: with 1,000,000.* along .* take fewer"):
            HUGE_MODELS[name](method).fit(cv.PrivatizedCounts(np.ones((4, 4), dtype=int), 0.5))
        assert tracemalloc.get_traced_memory()[1] < 10**8
    finally:
        tracemalloc.stop()


def test_draws_that_numpy_cannot_make_are_refused_in_the_same_words(monkeypatch):
    def empty(*arguments, **options):
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr(draws_module.np, "empty", empty)
    with pytest.raises(MemoryError, match=f"2 chains need .*, more than there is; take a {ADVICE}"):
        Draws.empty(Schedule(S, 0, C, 1), MODEL)


@pytest.mark.parametrize("method", ["gibbs", "augmented-gibbs", "cavi", "bessel-cavi", "svi"])
def test_a_fit_whose_draws_do_not_fit_in_memory_does_not_begin(method, monkeypatch):
    def begun(*arguments, **options):
        raise AssertionError

    monkeypatch.setattr(METHODS[method].algorithm, "step", begun)
    model = cv.TopicModel(2, method=method, draws=10**13, seed=1, progress=False)
    with pytest.raises(MemoryError, match="draws must fit in memory: 10,000,000,000,000 draws from"):
        model.fit(cv.ExactCounts(np.ones((4, 3), dtype=int)))
