"""Rows that arrive over time: learning goes on, in one piece or saved in between."""

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import countveil as cv
from countveil.evaluation.topics import topic_error
from countveil.inference import ascent, svi
from countveil.inference.methods import METHODS
from tests.joint import planted

N_WORDS = 60


def model(**changes):
    options = {"method": "svi", "draws": 20, "passes": 1, "batch_rows": 64, "seed": 3, "threads": 1} | changes
    return cv.TopicModel(4, **options)


@pytest.fixture(scope="module")
def data():
    _, topics, _, reports = planted(1200, N_WORDS, 4, 0.5, seed=2)
    return topics, reports


def part(reports, first, last, **options):
    return cv.PrivatizedCounts(reports[first:last], 0.5, **options)


def topics_of(fit):
    return fit.components_ / fit.components_.sum(axis=1, keepdims=True)


def test_rows_in_parts_teach_what_all_rows_at_once_do(data):
    topics, reports = data
    grown = model()
    errors = []
    for first in range(0, 1200, 400):
        assert grown.partial_fit(part(reports, first, first + 400)) is grown
        errors.append(topic_error(topics, topics_of(grown)))
    whole = topic_error(topics, topics_of(model().fit(part(reports, 0, 1200))))
    assert errors[2] < errors[0]
    assert errors[2] < 1.3 * whole < 0.13


def test_rows_of_the_last_call_are_what_the_posterior_is_about(data):
    _, reports = data
    fit = model()
    fit.partial_fit(part(reports, 0, 400)).partial_fit(part(reports, 400, 500))
    assert fit.rate().shape == (100, N_WORDS)
    assert fit.transform(part(reports, 0, 7)).shape == (7, 4)
    assert fit.posterior["posterior"].sizes["draw"] == 20


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_do_not_change_a_bit(data, threads):
    _, reports = data
    found = []
    for n in (1, threads):
        fit = model(threads=n).partial_fit(part(reports, 0, 300)).partial_fit(part(reports, 300, 500))
        found.append(fit.posterior["posterior"]["phi"].to_numpy())
    np.testing.assert_array_equal(*found)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_every_pass_has_one_thread_of_blas_as_another_number_rounds_otherwise(data, method, monkeypatch):
    seen, real = [], ascent.update_block
    monkeypatch.setattr(ascent, "update_block", lambda *a: (seen.append(blas_threads()), real(*a))[1])
    with threadpool_limits(limits=2, user_api="blas"):
        getattr(model(draws=1), method)(part(data[1], 0, 100))
        assert blas_threads() != {1} or os.cpu_count() == 1
    assert seen == [{1}] * len(seen)
    assert len(seen) > 3


def test_saved_and_loaded_in_between_is_the_same(data, tmp_path):
    _, reports = data
    straight = model().partial_fit(part(reports, 0, 300))
    straight.save(tmp_path / "fit.nc")
    loaded = cv.TopicModel.load(tmp_path / "fit.nc")
    for fit in (straight, loaded):
        fit.partial_fit(part(reports, 300, 500))
    np.testing.assert_array_equal(
        straight.posterior["posterior"]["phi"], loaded.posterior["posterior"]["phi"]
    )


def test_it_goes_on_from_a_fit(data):
    topics, reports = data
    fit = model().fit(part(reports, 0, 400))
    before = topic_error(topics, topics_of(fit))
    fit.partial_fit(part(reports, 400, 1200))
    assert topic_error(topics, topics_of(fit)) < before


def test_masked_cells_teach_nothing(data):
    _, reports = data
    mask = np.zeros((300, N_WORDS), dtype=bool)
    mask[::7, ::5] = True
    other = np.where(mask, 99, reports[:300])
    found = [
        model().partial_fit(cv.PrivatizedCounts(seen, 0.5, mask)).posterior["posterior"]["phi"].to_numpy()
        for seen in (reports[:300], other)
    ]
    np.testing.assert_array_equal(*found)


def test_what_does_not_go_on_is_refused(data):
    _, reports = data
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as found:
        model(method="gibbs").partial_fit(part(reports, 0, 50))
    assert "goes with method 'svi', got method 'gibbs'" in str(found.value.__cause__)
    words = [f"w{v}" for v in range(N_WORDS)]
    fit = model().partial_fit(part(reports, 0, 300, column_labels=words))
    with pytest.raises(ValueError, match="X has 59 features, but TopicModel is expecting 60"):
        fit.partial_fit(cv.PrivatizedCounts(reports[:50, :59], 0.5))
    with pytest.raises(ValueError, match="columns of the fit in their order, got 'other' for 'w0'"):
        fit.partial_fit(part(reports, 0, 50, column_labels=["other", *words[1:]]))
    with pytest.raises(
        ValueError, match="must name its columns if and only if the first rows did, got no names"
    ):
        fit.partial_fit(part(reports, 0, 50))
    with pytest.raises(ValueError, match="column_offset of the first rows"):
        fit.partial_fit(part(reports, 0, 50, column_labels=words, column_offset=np.full(N_WORDS, 2.0)))
    fit.set_params(n_topics=5)
    with pytest.raises(ValueError, match="n_topics must be the 4 of the first rows, got 5"):
        fit.partial_fit(part(reports, 0, 50, column_labels=words))
    with pytest.raises(ValueError, match="total_rows must be a whole number of at least 1, got 0"):
        model(total_rows=0).partial_fit(part(reports, 0, 50))
    with pytest.raises(ValueError, match="'trimmed' goes with method 'svi', got method 'cavi'"):
        model(method="cavi", expectation="trimmed").fit(part(reports, 0, 50))


def test_rows_speak_for_all_that_were_seen_or_for_as_many_as_was_said(data):
    _, reports = data
    fit = model().partial_fit(part(reports, 0, 300)).partial_fit(part(reports, 300, 500))
    told = fit.posterior["stream"].attrs
    assert (told["rows_seen"], told["total_rows"]) == (500, 500)
    many = model(total_rows=5000).partial_fit(part(reports, 0, 300)).partial_fit(part(reports, 300, 500))
    told = many.posterior["stream"].attrs
    assert (told["rows_seen"], told["total_rows"]) == (500, 5000)
    weight = [one.posterior["stream"]["phi_shapes"].to_numpy().sum() for one in (fit, many)]
    assert weight[1] / weight[0] == pytest.approx(10.0, rel=0.05)


def test_methods_that_learn_from_batches_take_rows_that_come_later(data, monkeypatch):
    _, reports = data
    rows = part(reports, 0, 60)
    seen = []

    def go_on(*arguments):
        seen.append(arguments)
        return svi.go_on(*arguments)

    monkeypatch.setitem(METHODS, "toy", METHODS["svi"]._replace(name="toy", go_on=go_on))
    fit = model(method="toy").partial_fit(rows)
    assert len(seen) == 1
    np.testing.assert_array_equal(fit.components_, model().partial_fit(rows).components_)
    monkeypatch.setitem(METHODS, "toy", METHODS["toy"]._replace(go_on=None))
    assert not hasattr(fit, "partial_fit")
    assert not hasattr(model(method="unheard of"), "partial_fit")


def test_rows_are_refused_that_the_method_cannot_treat(data, monkeypatch):
    _, reports = data
    monkeypatch.setitem(METHODS, "svi", METHODS["svi"]._replace(mechanisms=("other",)))
    with pytest.raises(ValueError, match=r"mechanism must be one of \['other'\] for method 'svi', got 'two-"):
        model().partial_fit(part(reports, 0, 60))
