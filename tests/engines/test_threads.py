import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import countveil as cv
from countveil.data.observations import PrivatizedCounts
from countveil.engines import threads
from countveil.engines.blocks import row_blocks
from countveil.engines.threads import ThreadEngine, available_threads, libraries, one_blas_thread
from countveil.inference import gibbs


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_come_in_the_order_of_the_blocks(threads):
    def slowest_first(number, word):
        time.sleep(0.002 * (8 - number))
        return number, word

    with ThreadEngine(threads) as engine:
        assert list(engine.map(slowest_first, range(8), "abcdefgh")) == list(zip(range(8), "abcdefgh", strict=True))


def test_threads_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=10.0)
    with ThreadEngine(2) as engine:
        assert sorted(engine.map(lambda _: meeting.wait(), range(2))) == [0, 1]


def test_one_thread_is_the_calling_one():
    with ThreadEngine(1) as engine:
        assert set(engine.map(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_block_reaches_the_caller(threads):
    with ThreadEngine(threads) as engine, pytest.raises(ZeroDivisionError):
        list(engine.map(lambda number: 1 / number, [1, 0]))


def test_leaving_an_engine_ends_its_threads():
    before = threading.active_count()
    with ThreadEngine(3) as engine:
        list(engine.map(time.sleep, [0.01] * 3))
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_available_threads_counts_what_the_process_may_use(monkeypatch):
    assert available_threads() >= 1
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert available_threads() == 3
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert available_threads() == 1


def entries_and_halves(block, times, halves):
    """Every report of a block by its row times a number; the number of the block, and how many rows it has."""
    indptr, columns, reports = block.entries.indptr, block.entries.columns, block.entries.reports
    rows = np.zeros((block.n_rows, 5))
    rows[np.repeat(np.arange(block.n_rows), np.diff(indptr)), columns] = times * reports
    return (rows, halves / 2), (np.array([block.number, block.n_rows]),)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block_rows", [None, 7])
def test_a_function_over_rows_gets_blocks_what_is_shared_and_its_own_rows(threads, block_rows):
    reports = np.random.default_rng(1).integers(-2, 4, (150, 5))
    own = np.arange(300.0).reshape(150, 2)
    blocks = row_blocks(150, block_rows, 5)
    with ThreadEngine(threads) as engine:
        (rows, halves), (counts,) = engine.over_rows(
            entries_and_halves, PrivatizedCounts(reports, 0.5), (3,), (own,), blocks
        )
    assert np.array_equal(rows, 3 * np.maximum(reports, 0))
    assert np.array_equal(halves, own / 2)
    assert counts.tolist() == [sum(range(len(blocks))), 150]


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_shared_is_prepared_once(threads):
    reports, asked = np.random.default_rng(1).integers(-2, 4, (150, 5)), []

    def prepare(many, times, one):
        asked.append(1)
        return (sum(many(int, (times, one))),)

    with ThreadEngine(threads) as engine:
        (rows, _), _ = engine.over_rows(
            entries_and_halves, PrivatizedCounts(reports, 0.5), (2, 1), (np.zeros((150, 2)),), prepare=prepare
        )
    assert np.array_equal(rows, 3 * np.maximum(reports, 0))
    assert asked == [1]


def test_few_reports_are_worth_one_thread(monkeypatch):
    few = PrivatizedCounts(np.ones((4, 3), dtype=int), 0.5)
    monkeypatch.setattr(threads, "available_threads", lambda: 5)
    assert threads.threads_worth(few) == 1
    monkeypatch.setattr(threads, "FEW_REPORTS", 12)
    assert threads.threads_worth(few) == 5
    assert threads.threads_worth("files on disk") == 5


def blas_threads():
    """The threads of BLAS libraries in this process."""
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads before each test, on a machine of any size."""
    with threadpool_limits(2, user_api="blas"):
        assert blas_threads() == {2}
        yield


def test_contexts_may_be_nested():
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_error_sets_the_number_back():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        print(1 / 0)
    assert blas_threads() == {2}


def test_a_function_may_be_limited_again_and_again():
    limited = one_blas_thread()(blas_threads)
    assert (limited(), limited(), blas_threads()) == ({1}, {1}, {2})


@pytest.mark.parametrize("first_ends", [0, 1])
def test_of_contexts_that_overlap_the_last_one_to_end_sets_the_number_back(first_ends):
    contexts = [one_blas_thread(), one_blas_thread()]
    for context in contexts:
        context.__enter__()
    contexts[first_ends].__exit__(None, None, None)
    assert blas_threads() == {1}
    contexts[1 - first_ends].__exit__(None, None, None)
    assert blas_threads() == {2}


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
            seen.append(blas_threads())
        return real(*arguments)

    monkeypatch.setattr(gibbs, "step", step)
    second = threading.Thread(target=lambda: model().fit(DATA))
    model().fit(DATA)
    ended.set()
    second.join(60)
    return seen


def test_fits_that_overlap_leave_the_number_as_it_was(monkeypatch):
    assert overlapping(monkeypatch) == [{1}]
    assert blas_threads() == {2}


def test_a_fit_that_raises_leaves_the_number_as_it_was(monkeypatch):
    def step(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(gibbs, "step", step)
    with pytest.raises(MemoryError, match="no room"):
        model().fit(DATA)
    assert blas_threads() == {2}


def test_libraries_are_looked_for_once_and_the_one_that_numba_loads_is_among_them(monkeypatch):
    found = libraries()
    assert {library.filepath for library in found} == {
        pool["filepath"] for pool in threadpool_info() if pool["user_api"] == "blas"
    }
    monkeypatch.setattr(threads, "ThreadpoolController", None)
    with one_blas_thread():
        assert [library.num_threads for library in found] == [1] * len(found)
