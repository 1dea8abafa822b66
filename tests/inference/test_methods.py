"""The records of methods: what estimators offer of them, and what they refuse in words."""

import json
from dataclasses import KW_ONLY

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

import countveil as cv
from countveil.common.parameters import check_rules, declared
from countveil.data.observations import ExactCounts, Observations
from countveil.inference import methods
from countveil.inference.algorithm import Method
from countveil.inference.methods import METHODS, check_model, from_file, in_file, made, method_of, options_of, those
from countveil.inference.run import Sampler
from countveil.laws.counts import Poisson
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.models.priors import GammaPrior, RegressionPrior
from tests.factorizations import CASES, model_of
from tests.joint import fit_settings, small_model

ESTIMATORS = [
    cv.TopicModel(2), cv.BlockModel(2), cv.TensorModel(2), cv.PoissonFactorization("dk,vk->dv", {"k": 2}),
]  # fmt: skip
OPTIMISERS = [name for name, method in METHODS.items() if not method.any_prior]


class Coupled(GammaPrior):
    """A prior whose entries are not independent."""

    independent = False


class Bursts(Poisson):
    """Another likelihood, by name."""

    name = "bursts"


def with_prior(model, name, prior):
    f = model.spec.names.index(name)
    factors = list(model.factors)
    factors[f] = factors[f]._replace(prior=prior)
    return model._replace(factors=tuple(factors))


def test_methods_go_by_the_names_that_users_write():
    assert {"gibbs", "augmented-gibbs", "cavi", "bessel-cavi", "svi", "em"} <= set(METHODS)
    assert all(name == method.name for name, method in METHODS.items())
    assert all(method.says.endswith(".") for method in METHODS.values())


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_methods_with_batches_need_models_whose_rows_come_in_batches(estimator):
    if not estimator._rows_are_new_data:
        with pytest.raises(ValueError, match="method 'svi' needs rows that come in batches"):
            clone(estimator).set_params(method=cv.SVI()).fit(ExactCounts([[0, 1], [2, 0]]))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_name_stands_for_the_method_with_its_defaults(method):
    assert method_of(method.name) == method() == made(method.name, {})
    check_rules(method())
    assert getattr(cv, method.__name__) is method
    assert method.__doc__.count("\n    ") >= len(options_of(method))
    for option in options_of(method):
        assert f"\n    {option} (" in method.__doc__


@pytest.mark.parametrize(("value", "got"), [("magic", "'magic'"), (None, "None"), (cv.SVI, "<class"), ([], r"\[\]")])
def test_what_is_no_method_is_refused(value, got):
    with pytest.raises(ValueError, match=rf"^method must be one of .*, or a method such as cv.Gibbs.*, got {got}"):
        cv.TopicModel(2, method=value).fit(ExactCounts([[0, 1], [2, 0]]))


def test_options_of_a_method_are_checked_by_fit():
    for method, said in (
        (cv.Gibbs(thin=0), "thin must be a whole number of at least 1, got 0"),
        (cv.Gibbs(moves=-1), "moves must be a whole number of at least 0, got -1"),
        (cv.AugmentedGibbs(weights="best"), r"weights must be one of \['equal', 'stacked'\], got 'best'"),
        (cv.CAVI(tolerance=0.0), "tolerance must be a positive number, got 0.0"),
        (cv.BesselCAVI(center="median"), r"center must be one of \['mode', 'mean'\], got 'median'"),
        (cv.EM(max_iter=0), "max_iter must be a whole number of at least 1, got 0"),
        (cv.SVI(batch_rows=0), "batch_rows must be a whole number of at least 1, got 0"),
        (cv.SVI(keep="all"), r"keep must be one of \['draws', 'summary'\], got 'all'"),
    ):
        with pytest.raises(ValueError, match=f"^{said}$"):
            cv.TopicModel(2, method=method).fit(ExactCounts([[0, 1], [2, 0]]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_iter": 5}, "max_iter is now method=cv.CAVI(max_iter=...); cv.BesselCAVI and cv.EM have it too"),
        ({"max_iter": 5, "method": "em"}, "max_iter is now method=cv.EM(max_iter=...)"),
        ({"passes": 5}, "passes is now method=cv.SVI(passes=...)"),
        ({"passes": 5, "method": "gibbs"}, "passes is now method=cv.SVI(passes=...)"),
        ({"thin": 2}, "thin is now method=cv.Gibbs(thin=...); cv.AugmentedGibbs has it too"),
    ],
)
def test_a_model_says_where_an_option_of_a_method_goes(given, said):
    for model in (cv.TopicModel, cv.BlockModel, cv.TensorModel, cv.DynamicModel, cv.PoissonFactorization):
        with pytest.raises(TypeError) as error:
            model(**given)
        assert str(error.value) == said


def test_options_of_a_method_that_is_given_by_its_name_can_be_set():
    assert cv.TopicModel(2).set_params(method__thin=3).method == cv.Gibbs(thin=3)
    model = cv.TopicModel(2, method=cv.Gibbs(thin=3))
    assert model.set_params(method="svi", method__passes=2).method == cv.SVI(passes=2)
    assert clone(model).set_params(method__batch_rows=9).method == cv.SVI(passes=2, batch_rows=9)
    assert model.method == cv.SVI(passes=2)
    assert cv.TopicModel(2).set_params(n_topics=3).method == "gibbs"
    with pytest.raises(ValueError, match="Invalid parameter 'passes' for estimator Gibbs"):
        cv.TopicModel(2).set_params(method__passes=2)


def test_a_parameter_that_a_model_has_itself_is_no_option_of_a_method():
    @declared
    class Weighted(cv.TopicModel):
        """Topics with weights of their own."""

        _: KW_ONLY
        weights: float = 1.0

    assert Weighted(3, weights=2.0).weights == 2.0


@pytest.mark.parametrize("method", ["gibbs", cv.Gibbs(), cv.SVI(passes=2, total_rows=9), cv.EM(max_iter=4)])
def test_a_method_comes_back_from_a_file(method):
    assert from_file(json.loads(json.dumps(in_file(method)))) == method


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"passes": 3}, "must state the name of its method, got"),
        ({"name": 3}, "must state the name of its method, got"),
        ({"name": "magic"}, "method must be one of .*, got 'magic'"),
        ({"name": "em", "passes": 3}, "passes requires method 'svi', got method 'em'"),
        ({"name": "em", "depth": 3}, "depth is an option of no method, got method 'em'"),
    ],
)
def test_a_method_that_there_is_not_is_refused_from_a_file(found, said):
    with pytest.raises(ValueError, match=said):
        from_file(found)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_method_says_what_its_algorithm_can_do(method):
    assert callable(method.algorithm.init)
    assert callable(method.algorithm.step)
    assert method.samples == issubclass(method, Sampler)
    assert method.samples or method.starved
    assert method.batches == (method.go_on is not Method.go_on)
    assert "poisson" in method.likelihoods


@pytest.mark.parametrize(
    ("ability", "words"),
    [
        ("batches", "method 'svi'"),
        ("samples", "method 'gibbs' or method 'augmented-gibbs'"),
        ("any_prior", "method 'gibbs', method 'augmented-gibbs' or method 'em'"),
    ],
)
def test_those_with_an_ability_are_named_in_words(ability, words):
    assert those(ability) == words


@pytest.mark.parametrize("name", METHODS)
def test_a_likelihood_that_a_method_does_not_take_is_refused(name):
    model = small_model((4, 3))._replace(likelihood=Bursts())
    with pytest.raises(ValueError) as error:
        methods.fit(METHODS[name](), ExactCounts(np.ones((4, 3), dtype=int)), model, fit_settings())
    takes = list(METHODS[name].likelihoods)
    assert str(error.value) == f"likelihood must be one of {takes} for method '{name}', got 'bursts'"


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_prior_that_a_method_cannot_treat_is_refused(name):
    model = with_prior(small_model((4, 3)), "theta", Coupled(0.5, 1.0, False))
    with pytest.raises(ValueError) as error:
        check_model(METHODS[name](), model, TWO_SIDED_GEOMETRIC)
    assert str(error.value) == (
        f"priors must be of independent gammas for method '{name}', got one of kind 'gamma' for 'theta': use "
        "method 'gibbs', method 'augmented-gibbs' or method 'em'"
    )


@pytest.mark.parametrize(("case", "name"), [("directed", "theta"), ("undirected", "pi")])
def test_shared_and_symmetric_factors_have_independent_entries_whatever_the_method(case, name):
    model = with_prior(model_of(CASES[case]), name, Coupled(0.5, 1.0, False))
    with pytest.raises(ValueError, match=f"for factors that are shared or symmetric, got .* for '{name}'"):
        check_model(METHODS["gibbs"](), model, TWO_SIDED_GEOMETRIC)


def test_a_symmetric_factor_has_no_rows_that_covariates_are_of():
    model = with_prior(model_of(CASES["undirected"]), "pi", RegressionPrior(1.0, None, np.ones((2, 1))))
    with pytest.raises(ValueError, match=r"covariates must be of a factor with rows, got .* for 'pi'"):
        check_model(METHODS["gibbs"](), model, TWO_SIDED_GEOMETRIC)


def test_what_every_method_can_treat_is_let_through():
    fixed = small_model((4, 3))
    known = fixed.factors[0]._replace(prior=Coupled(0.5, 1.0, False), fixed=np.ones((4, 2)))
    for method in METHODS.values():
        check_model(method(), fixed, TWO_SIDED_GEOMETRIC)
        check_model(method(), fixed._replace(factors=(known, fixed.factors[1])), TWO_SIDED_GEOMETRIC)
    check_model(METHODS["gibbs"](), with_prior(fixed, "theta", Coupled(0.5, 1.0, False)), TWO_SIDED_GEOMETRIC)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.batches])
def test_data_on_disk_go_with_batches(name, tmp_path):
    path = tmp_path / "release.npz"
    cv.simulate_release([[1, 2], [0, 3]], cv.PrivacyLevel(1, 1), np.random.default_rng(1)).save(path)
    files = cv.ReleaseFiles([path])
    with pytest.raises(ValueError, match=rf"^data on disk requires method 'svi', got method '{name}'$"):
        methods.fit(METHODS[name](), files, small_model((2, 2)), fit_settings())


def test_blas_has_one_thread_while_a_method_runs(monkeypatch):
    seen = []

    def run(*arguments):
        seen.append({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})

    monkeypatch.setattr(cv.Gibbs, "run", run)
    with threadpool_limits(2, user_api="blas"):
        methods.fit(cv.Gibbs(), ExactCounts(np.ones((4, 3), dtype=int)), small_model((4, 3)), fit_settings())
    assert seen == [{1}]


class Geometric:
    """The library's noise under another mechanism's name."""

    mechanism = "other"

    def __getattr__(self, name):
        return getattr(TWO_SIDED_GEOMETRIC, name)


AUXILIARY = ["augmented-gibbs", "bessel-cavi"]  # their variables are those of two-sided geometric noise


@pytest.mark.parametrize("name", METHODS)
def test_a_mechanism_that_a_method_does_not_take_is_refused(name):
    data = Observations(np.ones((4, 3), dtype=int), 0.5, noise=Geometric())
    model, settings = small_model((4, 3)), fit_settings()
    if name not in AUXILIARY:
        methods.fit(METHODS[name](), data, model, settings)
        return
    rule = rf"mechanism must be one of \['two-sided geometric'\] for method '{name}', got 'other'"
    with pytest.raises(ValueError, match=f"{rule}: use method 'gibbs', method 'cavi', method 'svi' or method 'em'"):
        methods.fit(METHODS[name](), data, model, settings)


class Plain(GammaPrior):
    """A gamma prior that samplers alone can treat."""

    kind, variational = "plain", False


@pytest.mark.parametrize("fixed", [None, np.ones((4, 2))])
@pytest.mark.parametrize("name", METHODS)
def test_variational_methods_need_variational_priors(name, fixed):
    model = with_prior(small_model((4, 3)), "theta", Plain(0.5, 1.0, False))
    model = model._replace(factors=(model.factors[0]._replace(fixed=fixed), model.factors[1]))
    if METHODS[name].any_prior:
        check_model(METHODS[name](), model, TWO_SIDED_GEOMETRIC)
        return
    with pytest.raises(ValueError) as error:
        check_model(METHODS[name](), model, TWO_SIDED_GEOMETRIC)
    assert str(error.value) == (
        f"priors must be variational for method '{name}', got one of kind 'plain' for "
        "'theta': use method 'gibbs', method 'augmented-gibbs' or method 'em'"
    )


def test_rows_that_come_later_are_checked_as_a_fit_is(monkeypatch):
    data = ExactCounts(np.ones((4, 3), dtype=int))
    with pytest.raises(ValueError, match="variational for method 'svi', got one of kind 'plain'"):
        methods.go_on(
            cv.SVI(), data, with_prior(small_model((4, 3)), "theta", Plain(0.5, 1.0, False)), fit_settings(), None, 4
        )
    monkeypatch.setattr(cv.SVI, "mechanisms", ())
    with pytest.raises(ValueError, match=r"mechanism must be one of \[\] for method 'svi'"):
        methods.go_on(cv.SVI(), data, small_model((4, 3)), fit_settings(), None, 4)
