"""No number is given out as a 90% interval unless such intervals hold the truth."""

import inspect

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil import fit as models
from countveil import plotting
from countveil.fit.base import FactorizationEstimator
from countveil.fit.documents import Documents
from countveil.fit.effects import Effects
from countveil.fit.parts import Parts
from countveil.fit.reading import why_none
from countveil.inference.methods import METHODS
from countveil.report import render
from tests.chronicle import Chronicle
from tests.joint import method_with

pytestmark = pytest.mark.long

QUICK = {"draws": 10, "tune": 10, "chains": 2, "seed": 1, "threads": 1, "progress": False}
LEAST = 0.85  # of the truth in intervals of 90%: what may be called one
MODELS = {
    "topics": lambda **more: cv.TopicModel(2, **more),
    "blocks": lambda **more: cv.BlockModel(2, **more),
    "tensor": lambda **more: cv.TensorModel(2, **more),
    "dynamic": lambda **more: cv.DynamicModel(2, **more),
    "einsum": lambda **more: cv.PoissonFactorization("dk,vk->dv", {"k": 2}, **more),
    "chronicle": lambda **more: Chronicle(2, **more),
    "bursty": lambda **more: cv.TopicModel(2, likelihood="negative-binomial", dispersion="column", **more),
}
NETWORK = {"blocks"}
ASKED = {"topic": 0, "document": 0, "word": 0}  # of methods that must be told which
OPTIMISED = {"blocks": ("cavi", "private"), "tensor": ("em", "exact"), "einsum": ("bessel-cavi", "private"),
             "chronicle": ("augmented-gibbs", "exact"), "bursty": ("em", "private")}  # fmt: skip
"""For each model but one, a method besides Gibbs sampling."""
CASES = [
    (model, method, kind)
    for model, build in MODELS.items()
    for method, record in METHODS.items()
    for kind in ("private", "exact", "naive")
    if build()._rows_are_new_data or not record.batches
    if build().likelihood in (None, *record.likelihoods)
    if model != "dynamic" or record.samples
    # whether there are intervals goes by the method and the kind, and which tables there are by the model
    if (model == "topics" and (kind == "private" or method in {"gibbs", "cavi"}))
    or (method, kind) in {("gibbs", "private"), ("gibbs", "naive"), OPTIMISED.get(model)}
]


def data_of(model, kind):
    """Small data of a kind for a model."""
    if model == "chronicle":
        reports = np.random.default_rng(8).poisson(3.0, (6, 4, 3))
    else:
        reports = np.random.default_rng(8).poisson(3.0, (6, 6))
    makers = {"private": lambda r: cv.PrivatizedCounts(r, 0.3), "exact": cv.ExactCounts, "naive": cv.NaiveCounts}
    return makers[kind](reports)


@pytest.fixture(scope="module")
def fits():
    """Fits by (model, method, kind), made when they are asked for."""
    made = {}

    def fit(model, method, kind):
        case = (model, method, kind)
        if case not in made:
            made[case] = MODELS[model](method=method, **QUICK).fit(data_of(model, kind))
        return made[case]

    return fit


def methods_of(kind):
    """The public methods of a class, by name."""
    return [each for each in inspect.getmembers(kind, inspect.isfunction) if not each[0].startswith("_")]


def returns_a_table(method):
    """Whether a method says that it returns a table."""
    return inspect.signature(method).return_annotation in (pd.DataFrame, "pd.DataFrame")


def tables_of(fit, **more):
    """What every public method of a fit that returns a table gives, for every axis that it can be asked about.

    Effects are of fits with covariates or dates, for which tests/fit/test_effects.py and test_topics.py ask.
    """
    found = {}
    owners = [fit, fit.parts, *([fit.documents] if hasattr(fit, "documents") else [])]
    asking = [(owner, *each) for owner in owners for each in methods_of(type(owner))]
    for owner, name, method in asking:
        if not returns_a_table(method):
            continue
        if name == "dispersions" and fit.model_.likelihood.name == "poisson":
            continue
        if name == "seasons" and fit.season_ is None:
            continue
        if name in ("counts_table", "upper_topics"):  # of data, and of layers: tests of their own
            continue
        asked = inspect.signature(method).parameters
        axis = next((each for each in ("axis", "mode") if each in asked), None)
        given = {key: value for key, value in (ASKED | more).items() if key in asked}
        for value in fit._reader.axes if axis == "mode" else fit._reader.member_axes:
            found[name, value] = method(owner, **({axis: value} if axis else {}), **given)
    return found


def test_every_method_with_an_interval_is_a_table_that_can_leave_it_out():
    kinds = {each for each in vars(models).values() if inspect.isclass(each)}
    kinds = {each for each in kinds if issubclass(each, FactorizationEstimator)}
    assert len(kinds) >= 4
    for kind in kinds | {Parts, Documents, Effects}:
        for name, method in methods_of(kind):
            if "interval" in inspect.signature(method).parameters:
                assert returns_a_table(method) or name == "count_intervals", name  # an array for each
                assert inspect.signature(method).parameters["uncalibrated"].default is False, name


@pytest.mark.filterwarnings("ignore:The fit:UserWarning", "ignore::countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize(("model", "method", "kind"), CASES)
def test_tables_have_intervals_only_where_they_are_calibrated(fits, model, method, kind, tmp_path):
    made = fits(model, method, kind)
    calibrated = METHODS[method].calibrated and kind != "naive"
    fits_of_it = [made]
    if model == "topics" and method in {"gibbs", "cavi"}:  # files state methods and observations alike for all
        made.save(tmp_path / "fit.nc")
        fits_of_it.append(cv.TopicModel.load(tmp_path / "fit.nc"))
    for fit in fits_of_it:
        assert bool(fit._reader.why_no_intervals) is not calibrated
        plain, asked = tables_of(fit), tables_of(fit, uncalibrated=True)
        assert len(plain) >= 3
        for name, table in plain.items():
            ends = [each for each in table.columns if "lower" in each or "upper" in each]
            assert ends == (["lower", "upper"] if calibrated else []), name
        for name, table in asked.items():
            ends = [each for each in table.columns if "lower" in each or "upper" in each]
            assert ends == (["lower", "upper"] if calibrated else ["uncalibrated_lower", "uncalibrated_upper"]), name
            pd.testing.assert_frame_equal(table.drop(columns=ends), plain[name][table.columns.drop(ends)])


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize(("method", "kind", "why"), [
    ("cavi", "private", "those of method 'cavi' are not calibrated"),
    ("em", "exact", "those of method 'em' are not calibrated"),
    ("gibbs", "naive", "those of a naive fit do not hold the truth"),
    ("gibbs", "private", ""),
])  # fmt: skip
def test_figures_and_pages_say_why_they_have_none(fits, method, kind, why):
    mpl.use("Agg")
    for model in ("topics", "blocks"):
        fit = fits(model, method, kind)
        for draw in (plotting.topics, plotting.prevalence):
            ax = draw(fit, ax=plotting.style.new_figure(6, 4).subplots())
            bars = [each for each in ax.containers if getattr(each, "has_xerr", False)]
            assert bool(bars) is not bool(why)
            assert ax.get_xlabel().endswith(f"(no intervals: {why})" if why else ", with 90% intervals")
        page = render(fit)
        assert ("90%" in page) is not bool(why)
        assert ('class="range"' in page) is not bool(why)
        if why:
            assert f"There are no intervals: {why.replace(chr(39), '&#39;')}." in page


def test_a_method_that_is_not_known_has_no_intervals(fits):
    fit = fits("topics", "gibbs", "private")
    facts = dict(fit.posterior.attrs) | {"method": "of another library"}
    assert why_none(facts) == "those of method 'of another library' are not calibrated"


def coverage(method, kind, alpha, runs):
    """The share of true rates, drawn from the prior, that lie within intervals of 90%."""
    hits = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        mu = rng.gamma(0.5, 1.0, (20, 2)) @ rng.gamma(0.5, 1.0, (2, 15))
        noise = rng.geometric(1 - alpha, mu.shape) - rng.geometric(1 - alpha, mu.shape)
        reports = rng.poisson(mu) + noise
        data = cv.NaiveCounts(reports) if kind == "naive" else cv.PrivatizedCounts(reports, alpha)
        lengths = (
            {"tune": 60, "draws": 120, "chains": 1, "likelihood": "poisson"}
            if METHODS[method].samples
            else {"draws": 400}
        )
        model = cv.TopicModel(
            2,
            method=method_with(method, thin=3),
            prior_shape=0.5,
            prior_rate=1.0,
            seed=run,
            threads=1,
            progress=False,
            **lengths,
        )
        draws = model.fit(data).posterior["posterior"]
        rates = np.einsum("csdk,cskv->csdv", draws["theta"].to_numpy(), draws["phi"].to_numpy())
        low, high = np.quantile(rates.reshape(-1, *mu.shape), [0.05, 0.95], axis=0)
        hits.append(float(((low <= mu) & (mu <= high)).mean()))
    return float(np.mean(hits))


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize("kind", ["private", "naive"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_called_calibrated_holds_the_truth_and_nothing_else_does(method, kind):
    calibrated = METHODS[method].calibrated and kind != "naive"
    found = coverage(method, kind, alpha=0.6, runs=6 if calibrated else 2)
    assert (found >= LEAST) is calibrated, found
