"""New rows given the fitted columns: under the prior of the fit, or refused."""

import numpy as np
import pytest

import countveil as cv
from countveil.models.factorization import factorization
from countveil.models.priors import GammaPrior
from tests.joint import draw_reports
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
    message = "methods of RowPrior, got one of kind 'log-normal' for 'theta'"
    with pytest.raises(ValueError, match=message):
        fit.transform(data)


def test_priors_that_vary_by_row_are_refused():
    data = cv.ExactCounts(np.random.default_rng(1).poisson(2.0, (6, 5)))
    each = np.linspace(0.5, 2.0, 6)[:, None]
    with pytest.raises(ValueError, match="shape must be one number for new rows, got 6 of them"):
        topics(GammaPrior(each, 1.0, True)).fit(data).transform(data)
    with pytest.raises(ValueError, match="needs a prior that reports rates"):
        topics(GammaPrior(1.0, each, False)).fit(data).transform(data)


@pytest.mark.long
@pytest.mark.parametrize("method", ["em", "gibbs"])
@pytest.mark.parametrize("offset", [1e-3, 1.0, 1e3])
def test_known_offsets_do_not_change_the_total_of_a_projection(method, offset):
    rng = np.random.default_rng(0)
    counts = rng.poisson(8.0 * rng.gamma(0.5, 1.0, (60, 1)) * rng.gamma(0.5, 1.0, (1, 20)))
    reports = counts + draw_reports(np.zeros((60, 20)), 0.5, rng)
    data = cv.PrivatizedCounts(reports, 0.5, row_offset=np.full(60, offset))
    fit = cv.TopicModel(2, method=method, **SHORT).fit(data)
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
