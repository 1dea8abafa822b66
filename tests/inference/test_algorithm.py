"""Settings of a fit, records of methods, and the engine of each part of a fit."""

import threading
import time

import pytest

from countveil.engines.threads import ThreadEngine
from countveil.inference.algorithm import Method, engine_or_threads
from tests.joint import fit_settings

METHOD = Method("slow", "Does nothing.", None, None, options={"way": ("first", "second"), "passes": None})


@pytest.mark.parametrize(("value", "taken"), [(None, "first"), ("first", "first"), ("second", "second")])
def test_none_stands_for_the_first_value_that_is_allowed(value, taken):
    assert METHOD.option(fit_settings(way=value), "way") == taken


def test_an_option_without_a_list_of_values_is_taken_as_it_is():
    assert METHOD.option(fit_settings(passes=7), "passes") == 7
    assert METHOD.option(fit_settings(passes=None), "passes") is None


def test_a_method_reads_its_own_options_alone():
    with pytest.raises(KeyError, match="options of method 'slow' must include 'center', got"):
        METHOD.option(fit_settings(), "center")


def test_records_are_cautious_where_they_say_nothing():
    plain = Method("slow", "Does nothing.", None, None)
    assert not any(
        (plain.samples, plain.calibrated, plain.self_loops, plain.batches, plain.any_prior, plain.options)
    )
    assert plain.likelihoods == ("poisson",)
    assert plain.mechanisms is None


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
