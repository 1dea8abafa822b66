"""Loops find the functions of a law by its class when they are compiled, and Python when it calls them."""

from inspect import signature
from typing import NamedTuple

import pytest
from numba import config, njit
from numba.core.errors import TypingError

from countveil.kernels import law as stubs
from countveil.kernels.law import provides

STUBS = ["law_at", "draw_counts", "expect_counts", "expected_ratio", "report_score", "unseen_score",
         "unseen_constant", "unseen_exposure", "debiased", "bias", "unbiased"]  # fmt: skip


class Halved(NamedTuple):
    parameters: tuple[()] = ()


class Doubled(NamedTuple):
    parameters: tuple[()] = ()


class Empty(NamedTuple):
    parameters: tuple[()] = ()


@provides(stubs.unseen_exposure, Halved)
def half(law, level):
    return 0.5 * level


@provides(stubs.unseen_exposure, Doubled)
def double(law, level):
    return 2.0 * level


@njit
def total_exposure(law, levels):
    total = 0.0
    for level in levels:
        total += stubs.unseen_exposure(law, level)
    return total


def test_one_loop_calls_the_functions_of_the_law_that_it_is_given():
    assert total_exposure(Halved(), (1.0, 3.0)) == 2.0
    assert total_exposure(Doubled(), (1.0, 3.0)) == 8.0
    assert total_exposure(Halved(), (1.0, 3.0)) == 2.0


def test_what_is_decorated_stays_a_function():
    assert half(Halved(), 3.0) == 1.5


@pytest.mark.parametrize("law", [Empty(), (), 1.0])
def test_a_law_without_the_function_does_not_compile(law):
    with pytest.raises(NotImplementedError if config.DISABLE_JIT else TypingError):
        total_exposure(law, (1.0,))


def test_python_calls_the_functions_of_the_law_that_it_is_given():
    assert stubs.unseen_exposure(Halved(), 3.0) == 1.5
    assert stubs.unseen_exposure(Doubled(), 3.0) == 6.0


@pytest.mark.parametrize("name", STUBS)
def test_what_is_no_law_has_none_of_the_functions(name):
    stub = getattr(stubs, name)
    with pytest.raises(NotImplementedError):
        stub(*[None] * len(signature(stub).parameters))
