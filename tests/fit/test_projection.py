"""New rows given the fitted columns: under the prior of the fit, or refused."""

import os

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

import countveil as cv
from countveil.data.observations import ExactCounts, PrivatizedCounts
from countveil.evaluation.topics import topic_error
from countveil.fit.projection import MOST_DRAWS, SWEEPS_PER_DRAW, RowPrior, project_rows
from countveil.inference import ascent
from countveil.inference.methods import METHODS
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from tests.joint import FALSE_ALARM, LAW, SERIAL, draw_reports, planted
from tests.recipes.lognormal import LogNormalPrior

SHORT = {"draws": 100, "tune": 20, "chains": 1, "seed": 1, "threads": 1, "progress": False}
PHI = GammaPrior(0.5, 1.0, True)


class Topics(cv.TopicModel):
    """Topics with a prior of the rows' factor that is not the one of ``prior_shape``."""

    prior: object

    def _model(self, spec, sizes, mean_count):
        return factorization(spec, sizes, {"theta": self.prior, "phi": PHI})


def topics(prior, n_topics=1, **options):
    model = Topics(n_topics, **SHORT | options)
    model.prior = prior
    return model


@pytest.mark.parametrize("learned", [False, True])
def test_new_rows_have_the_prior_of_the_rows(learned):
    counts = np.random.default_rng(1).poisson(2.0, (30, 5))
    fit = topics(GammaPrior(50.0, 3.0, learned)).fit(cv.ExactCounts(counts))
    rates = fit.posterior["posterior"]["theta_rate"].to_numpy().ravel()
    new = np.array([[4, 0, 1, 0, 2], [0, 0, 0, 0, 0]])
    expected = (50.0 + new.sum(axis=1)) / (rates[:, None] + 1.0)  # of each draw; columns of phi add up to one
    error = 5.0 / np.sqrt(500 * 50)  # five sweeps for each of a hundred draws
    found = fit.transform(cv.ExactCounts(new))[:, 0]
    np.testing.assert_allclose(found, expected.mean(axis=0), rtol=error)


class LearnedShape(LogNormalPrior):
    """Reports rates, which do not say all about its entries."""

    def reported_rates(self, hypers):
        return hypers[..., :1, None]


@pytest.mark.long
@pytest.mark.parametrize("dispersion", ["global", "column"])
def test_new_rows_are_in_counts_where_those_come_in_bursts(dispersion):
    """Frequent words have small bursts and rare ones large ones, so that their mean size is no plain mean."""
    rng, p = np.random.default_rng(3), np.repeat([0.3, 0.95], 10)
    size = np.repeat([20.0, 0.05], 10) * rng.gamma(5.0, 0.2, (60, 1))
    counts = cv.ExactCounts(rng.negative_binomial(size, 1.0 - p))
    model = cv.TopicModel(1, dispersion=dispersion, **SHORT | {"tune": 60, "draws": 20})
    fit = model.fit(counts)
    np.testing.assert_allclose(fit.transform(counts).sum(), model.fit_transform(counts).sum(), rtol=0.05)
    assert fit.transform(counts).sum() == pytest.approx(float(fit.rate().sum()), rel=0.05)


@pytest.mark.parametrize("prior", [LogNormalPrior(0.0, 1.0), LearnedShape(0.0, 1.0)])
def test_a_prior_that_does_not_say_what_new_rows_are_is_refused(prior):
    data = cv.ExactCounts(np.random.default_rng(1).poisson(2.0, (6, 5)))
    fit = topics(prior).fit(data)
    message = "a prior that applies to new rows, got one of kind 'log-normal' for 'theta'"
    with pytest.raises(ValueError, match=message):
        fit.transform(data)


def test_priors_that_vary_by_row_are_refused():
    data = cv.ExactCounts(np.random.default_rng(1).poisson(2.0, (6, 5)))
    each = np.linspace(0.5, 2.0, 6)[:, None]
    with pytest.raises(ValueError, match="shape must be one number for new rows, got 6 of them"):
        topics(GammaPrior(each, 1.0, True)).fit(data).transform(data)
    with pytest.raises(ValueError, match="a prior that applies to new rows"):
        topics(GammaPrior(1.0, each, False)).fit(data).transform(data)


@pytest.mark.long
@pytest.mark.parametrize("method", ["em", "gibbs"])
@pytest.mark.parametrize("offset", [1e-3, 1.0, 1e3])
def test_known_offsets_do_not_change_the_total_of_a_projection(method, offset):
    rng = np.random.default_rng(0)
    counts = rng.poisson(8.0 * rng.gamma(0.5, 1.0, (60, 1)) * rng.gamma(0.5, 1.0, (1, 20)))
    reports = counts + draw_reports(np.zeros((60, 20)), 0.5, rng)
    data = cv.PrivatizedCounts(reports, 0.5, row_offset=np.full(60, offset))
    fit = cv.TopicModel(2, method=method, **SHORT | {"draws": 40}).fit(data)
    assert fit.transform(data).sum() == pytest.approx(counts.sum(), rel=0.1)


def test_columns_have_the_labels_of_the_fit_along_every_axis():
    counts = np.random.default_rng(1).poisson(2.0, (5, 3, 2))
    labels = [None, ["aid", "talk", "war"], ["one", "two"]]
    fit = cv.TensorModel(2, **SHORT).fit(cv.ExactCounts(counts, labels=labels))
    assert fit.transform(cv.ExactCounts(counts, labels=labels)).shape == (5, 2)
    for axis, message in ((1, "got 'war' for 'aid' at mode1 0"), (2, "got 'two' for 'one' at mode2 0")):
        other = [names if a != axis else names[::-1] for a, names in enumerate(labels)]
        with pytest.raises(ValueError, match=f"X must have the columns of the fit in their order, {message}"):
            fit.transform(cv.ExactCounts(counts, labels=other))


def test_columns_named_by_labels_are_columns_named_by_column_labels():
    counts, names = np.random.default_rng(1).poisson(2.0, (5, 3)), ["aid", "talk", "war"]
    fit = cv.TopicModel(2, **SHORT).fit(cv.ExactCounts(counts, labels=[None, names]))
    with pytest.raises(ValueError, match="in their order, got 'war' for 'aid' at word 0"):
        fit.transform(cv.ExactCounts(counts, labels=[None, names[::-1]]))
    batches = cv.TopicModel(2, **SHORT | {"method": "svi"})
    for _ in range(2):
        batches.partial_fit(cv.ExactCounts(counts, labels=[None, names]))
    with pytest.raises(ValueError, match="in their order, got 'war' for 'aid' at word 0"):
        batches.partial_fit(cv.ExactCounts(counts, labels=[None, names[::-1]]))


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_rows_in_files_are_read_into_memory(tmp_path):
    counts = np.random.default_rng(1).poisson(2.0, (12, 6))
    release = cv.simulate_release(counts, cv.PrivacyLevel(1, 1), np.random.default_rng(2), truncate=True)
    release.save(tmp_path / "part.npz")
    fit = cv.TopicModel(2, method="svi", draws=5, seed=1, threads=1, progress=False).fit(release)
    files = cv.ReleaseFiles([tmp_path / "part.npz"])
    np.testing.assert_array_equal(fit.transform(files), fit.transform(release))


N_WORDS = 60


def model(**changes):
    options = {"method": batches(), "draws": 20, "seed": 3, "threads": 1} | changes
    return cv.TopicModel(4, **options)


def batches(**changes):
    return cv.SVI(**{"passes": 1, "batch_rows": 64} | changes)


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
    np.testing.assert_array_equal(straight.posterior["posterior"]["phi"], loaded.posterior["posterior"]["phi"])


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
    assert "requires method 'svi', got method 'gibbs'" in str(found.value.__cause__)
    words = [f"w{v}" for v in range(N_WORDS)]
    fit = model().partial_fit(part(reports, 0, 300, column_labels=words))
    with pytest.raises(ValueError, match="X has 59 features, but TopicModel is expecting 60"):
        fit.partial_fit(cv.PrivatizedCounts(reports[:50, :59], 0.5))
    with pytest.raises(ValueError, match="columns of the fit in their order, got 'other' for 'w0'"):
        fit.partial_fit(part(reports, 0, 50, column_labels=["other", *words[1:]]))
    with pytest.raises(ValueError, match="must name its columns if and only if the first rows did, got no names"):
        fit.partial_fit(part(reports, 0, 50))
    with pytest.raises(ValueError, match="column_offset of the first rows"):
        fit.partial_fit(part(reports, 0, 50, column_labels=words, column_offset=np.full(N_WORDS, 2.0)))
    fit.set_params(n_topics=5)
    with pytest.raises(ValueError, match="n_topics must stay at 4, as for the first rows, got 5"):
        fit.partial_fit(part(reports, 0, 50, column_labels=words))
    with pytest.raises(ValueError, match="total_rows must be a whole number of at least 1, got 0"):
        model(method=batches(total_rows=0)).partial_fit(part(reports, 0, 50))
    with pytest.raises(ValueError, match=r"expectation must be one of \['geometric', .*, got 'trimmed'"):
        model(method=cv.CAVI(expectation="trimmed")).fit(part(reports, 0, 50))


def test_rows_speak_for_all_that_were_seen_or_for_as_many_as_was_said(data):
    _, reports = data
    fit = model().partial_fit(part(reports, 0, 300)).partial_fit(part(reports, 300, 500))
    told = fit.posterior["stream"].attrs
    assert (told["rows_seen"], told["total_rows"]) == (500, 500)
    many = model(method=batches(total_rows=5000)).partial_fit(part(reports, 0, 300))
    many.partial_fit(part(reports, 300, 500))
    told = many.posterior["stream"].attrs
    assert (told["rows_seen"], told["total_rows"]) == (500, 5000)
    weight = [one.posterior["stream"]["phi_shapes"].to_numpy().sum() for one in (fit, many)]
    assert weight[1] / weight[0] == pytest.approx(10.0, rel=0.05)


def test_methods_that_learn_from_batches_take_rows_that_come_later(data, monkeypatch):
    _, reports = data
    rows = part(reports, 0, 60)
    seen = []

    class Toy(cv.SVI):
        name = "toy"

        def go_on(self, *arguments):
            seen.append(arguments)
            return super().go_on(*arguments)

    monkeypatch.setitem(METHODS, "toy", Toy)
    fit = model(method="toy").partial_fit(rows)
    assert len(seen) == 1
    np.testing.assert_array_equal(fit.components_, model(method="svi").partial_fit(rows).components_)
    monkeypatch.setattr(Toy, "batches", False)
    assert not hasattr(fit, "partial_fit")
    assert not hasattr(model(method=Toy()), "partial_fit")
    assert not hasattr(model(method="unheard of"), "partial_fit")


def test_rows_are_refused_that_the_method_cannot_treat(data, monkeypatch):
    _, reports = data
    monkeypatch.setattr(cv.SVI, "mechanisms", ("other",))
    with pytest.raises(ValueError, match=r"mechanism must be one of \['other'\] for method 'svi', got 'two-"):
        model().partial_fit(part(reports, 0, 60))


def fitted(phi, theta_rate, draws=200):
    """(draws of phi, draws of theta's prior rates), all the same: phi (K, V)."""
    return [np.transpose(phi)] * draws, np.broadcast_to(theta_rate, (draws, len(theta_rate)))


def projected(observations, draws):
    """(D, K) mean theta of the rows, of prior shape 0.4."""
    return project_rows(
        observations,
        draws[0],
        RowPrior(GammaPrior(0.4, 1.0, True), draws[1], None),
        [LAW] * len(draws[0]),
        [1.0] * len(draws[0]),
        1,
        SERIAL,
    )


def test_exact_counts_of_one_topic_give_the_conjugate_mean():
    counts = np.array([[3, 0, 9], [0, 0, 0], [1, 2, 40]])
    draws = fitted([[0.25, 0.25, 0.5]], np.array([0.7]))
    found = projected(ExactCounts(counts), draws)[:, 0]
    shape, rate = 0.4 + counts.sum(axis=1), 0.7 + 1.0
    error = np.sqrt(shape) / rate / np.sqrt(MOST_DRAWS * SWEEPS_PER_DRAW / 2)  # draws are independent here
    z = (found - shape / rate) / error
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / 3)


def test_a_masked_cell_gives_no_exposure():
    mask = np.array([[False, True, False]])
    found = projected(PrivatizedCounts([[-1, 50, -2]], 0.6, mask), fitted([[0.2, 0.5, 0.3]], np.array([0.7])))
    # no positive report is seen: exposures of 1 - 0.6 over the words that are
    mean = 0.4 / (0.7 + 0.4 * 0.5)
    error = mean / np.sqrt(0.4) / np.sqrt(MOST_DRAWS * SWEEPS_PER_DRAW / 2)
    assert abs(found[0, 0] - mean) < stats.norm.isf(FALSE_ALARM / 2) * error


def test_rows_do_not_depend_on_the_rows_after_them():
    rng = np.random.default_rng(2)
    draws = fitted(rng.dirichlet(np.ones(6), 2), np.array([0.1, 0.2]))
    counts = rng.poisson(3.0, (300, 6))
    whole = projected(ExactCounts(counts), draws)
    part = projected(ExactCounts(counts[:260]), draws)
    np.testing.assert_array_equal(whole[:260], part)
    assert whole.sum() == pytest.approx(counts.sum(), rel=0.2)
