"""One thread of BLAS while anything is fitted, and afterwards as many as before."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import countveil as cv
from countveil.engines import blas
from countveil.engines.blas import libraries, one_blas_thread
from countveil.inference import gibbs


def threads():
    """The threads of BLAS libraries in this process."""
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads before each test, on a machine of any size."""
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        yield


def test_contexts_may_be_nested():
    with one_blas_thread():
        with one_blas_thread():
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {2}


def test_an_error_sets_the_number_back():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        print(1 / 0)
    assert threads() == {2}


def test_a_function_may_be_limited_again_and_again():
    limited = one_blas_thread()(threads)
    assert (limited(), limited(), threads()) == ({1}, {1}, {2})


@pytest.mark.parametrize("first_ends", [0, 1])
def test_of_contexts_that_overlap_the_last_one_to_end_sets_the_number_back(first_ends):
    contexts = [one_blas_thread(), one_blas_thread()]
    for context in contexts:
        context.__enter__()
    contexts[first_ends].__exit__(None, None, None)
    assert threads() == {1}
    contexts[1 - first_ends].__exit__(None, None, None)
    assert threads() == {2}


def model():
    return cv.TopicModel(2, draws=1, tune=0, chains=1, threads=1, seed=1, progress=False)


DATA = cv.ExactCounts(np.arange(60).reshape(10, 6))


def overlapping(monkeypatch):
    """Run a fit, and in another thread one that begins within it and ends after it; the threads that this one sees."""
    begun, ended, seen = threading.Event(), threading.Event(), []

    def step(*arguments, real=gibbs.step):
        if not second.is_alive():
            second.start()
            assert begun.wait(60)
        else:
            begun.set()
            assert ended.wait(60)
            seen.append(threads())
        return real(*arguments)

    monkeypatch.setattr(gibbs, "step", step)
    second = threading.Thread(target=lambda: model().fit(DATA))
    model().fit(DATA)
    ended.set()
    second.join(60)
    return seen


def test_fits_that_overlap_leave_the_number_as_it_was(monkeypatch):
    assert overlapping(monkeypatch) == [{1}]
    assert threads() == {2}


def test_a_fit_that_raises_leaves_the_number_as_it_was(monkeypatch):
    def step(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(gibbs, "step", step)
    with pytest.raises(MemoryError, match="no room"):
        model().fit(DATA)
    assert threads() == {2}


def test_libraries_are_looked_for_once_and_the_one_that_numba_loads_is_among_them(monkeypatch):
    found = libraries()
    assert {library.filepath for library in found} == {
        pool["filepath"] for pool in threadpool_info() if pool["user_api"] == "blas"
    }
    monkeypatch.setattr(blas, "ThreadpoolController", None)
    with one_blas_thread():
        assert [library.num_threads for library in found] == [1] * len(found)
