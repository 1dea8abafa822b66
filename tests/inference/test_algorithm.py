"""Settings of a fit, records of methods, and the engine of each part of a fit."""

import threading
import time
from dataclasses import KW_ONLY
from types import SimpleNamespace
from typing import Annotated, NamedTuple

import pytest
from sklearn.base import clone

import countveil as cv
from countveil.common.parameters import OneOf, Option, check_rules, declared
from countveil.engines.threads import ThreadEngine
from countveil.inference.algorithm import Method, bind, engine_or_threads
from countveil.inference.run import name_of
from tests.joint import fit_settings


@declared
class Slow(Method):
    """Does nothing."""

    name = "slow"

    _: KW_ONLY
    way: Annotated[str, Option(OneOf(("first", "second")), "the way.")] = "first"


def test_methods_are_equal_where_their_options_are():
    assert Slow() == Slow(way="first")
    assert Slow() != Slow(way="second")
    assert Slow() != Method()
    assert Slow() != "slow"


def test_a_method_has_its_own_options_alone():
    with pytest.raises(TypeError, match="unexpected keyword argument 'center'"):
        Slow(center=1)
    with pytest.raises(ValueError, match=r"way must be one of \['first', 'second'\], got 'third'"):
        check_rules(Slow(way="third"))


def test_scikit_learn_knows_methods_as_parameters_with_parameters():
    model = cv.TopicModel(2, method=Slow(way="second"))
    assert model.get_params()["method__way"] == "second"
    other = clone(model).set_params(method__way="first")
    assert (model.method.way, other.method.way) == ("second", "first")
    assert repr(model) == "TopicModel(method=Slow(way='second'), n_topics=2)"


class Toy(SimpleNamespace):
    """An algorithm of which ``step`` reads one option and ``init`` another."""

    __name__ = "toy"

    class State(NamedTuple):
        sweep: int = 0

    def init(self, start=0):
        return self.State(start)

    def step(self, state, by=1):
        return self.State(state.sweep + by)


def test_functions_are_bound_to_the_options_that_they_read():
    toy = Toy()
    bound = bind(toy, by=3, start=10)
    assert bound.step(bound.init()).sweep == 13
    assert bound.State is toy.State
    assert cv.Gibbs().bound() is cv.Gibbs.algorithm


def test_an_option_that_nothing_reads_is_refused():
    with pytest.raises(TypeError, match=r"^options of toy must be parameters of its init or step, got \['bye'\]"):
        bind(Toy(), bye=3, start=10)


def test_a_fit_does_not_resume_with_other_options():
    names = {name_of(bind(Toy(), by=by)) for by in (1, 2, 2)}
    assert names == {"toy(by=1)", "toy(by=2)"}


def test_methods_are_cautious_where_they_say_nothing():
    plain = Method()
    assert not any((plain.samples, plain.calibrated, plain.self_loops, plain.batches, plain.any_prior))
    assert plain.likelihoods == ("poisson",)
    assert plain.mechanisms is None
    with pytest.raises(NotImplementedError):
        plain.run(None, None, fit_settings())
    with pytest.raises(NotImplementedError):
        plain.go_on(None, None, fit_settings(), None, 1)


def test_threads_are_there_for_as_long_as_they_are_needed():
    before = threading.active_count()
    with engine_or_threads(None, 3) as engine:
        assert isinstance(engine, ThreadEngine)
        list(engine.map(time.sleep, [0.01] * 3))
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_an_engine_that_was_given_is_left_open():
    with ThreadEngine(2) as engine:
        for _ in range(2):
            with fit_settings()._replace(engine=engine).opened_engine() as found:
                assert found is engine
                assert list(found.map(abs, [-1, 2])) == [1, 2]


def test_settings_have_as_many_threads_as_they_say():
    with fit_settings()._replace(threads=3).opened_engine() as engine:
        assert engine.threads == 3
