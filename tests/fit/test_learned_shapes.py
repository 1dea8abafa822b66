"""Learned shapes, from the option to posterior, diagnostics, new rows, files and starts of every model."""

import numpy as np
import pytest

import countveil as cv
from countveil.fit.projection import row_prior
from countveil.inference.methods import METHODS
from countveil.models.priors import GammaPrior, LearnedShapePrior
from tests.joint import method_with

QUICK = {"draws": 20, "tune": 22, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTS = np.random.default_rng(1).poisson(np.random.default_rng(2).gamma(0.4, 3.0, (14, 9)))
ABLE = [name for name, method in METHODS.items() if method.learned_shapes]


@pytest.fixture(scope="module")
def release():
    return cv.PrivatizedCounts(COUNTS + np.random.default_rng(3).integers(-2, 3, COUNTS.shape), 0.4)


@pytest.fixture(scope="module")
def fit(release):
    """With a move while it is tuned."""
    return cv.TopicModel(3, **QUICK).fit(release)


def priors_of(fit):
    return {factor.name: factor.prior for factor in fit.model_.factors}


def test_samplers_learn_shapes_and_other_methods_keep_the_usual_one(release):
    assert ABLE == ["gibbs", "augmented-gibbs"]
    for method in METHODS:
        model = cv.TopicModel(
            2, method=method_with(method, max_iter=3), likelihood="poisson", **QUICK | {"draws": 2, "tune": 1}
        )
        kinds = {type(prior) for prior in priors_of(model.fit(release)).values()}
        assert kinds == {LearnedShapePrior if method in ABLE else GammaPrior}
        if method not in ABLE:
            assert all(prior.shape == 0.1 for prior in priors_of(model).values())
            wrong = f"prior_shape must be a number for method '{method}', got 'learned': use method 'gibbs' or method"
            with pytest.raises(ValueError, match=wrong):
                model.set_params(prior_shape="learned").fit(release)


def test_a_shape_that_is_given_is_kept(release):
    found = cv.TopicModel(2, prior_shape=0.3, **QUICK).fit(release)
    assert priors_of(found)["theta"].shape == 0.3
    assert "theta_shape" not in found.posterior["posterior"]


def test_the_posterior_has_a_shape_in_every_draw(fit):
    for name in ("theta_shape", "phi_shape"):
        values = fit.posterior["posterior"][name]
        assert values.dims == ("chain", "draw")
        assert len(np.unique(values)) == values.size
        assert (values > 0).all()
    assert {"shape of theta", "shape of phi"} <= set(fit.diagnostics().table.index)


@pytest.mark.long
def test_networks_and_tensors_have_one_for_each_factor(release):
    square = cv.PrivatizedCounts(np.maximum(COUNTS[:9], 0), 0.4)
    for directed in (True, False):
        data = square if directed else cv.PrivatizedCounts(np.triu(COUNTS[:9]), 0.4)
        found = cv.BlockModel(2, directed=directed, **QUICK).fit(data).posterior["posterior"]
        assert {"theta_shape", "pi_shape"} <= set(found)
    tensor = cv.PrivatizedCounts(COUNTS[:, :8].reshape(14, 4, 2), 0.4)
    found = cv.TensorModel(2, **QUICK).fit(tensor).posterior["posterior"]
    assert {f"factor_mode{i}_shape" for i in range(3)} <= set(found)
    with pytest.raises(ValueError, match="modes must differ from the names of the posterior's own arrays"):
        cv.TensorModel(2, modes=["a", "factor_a_shape", "c"], **QUICK).fit(tensor)


def test_priors_may_have_learned_shapes_one_by_one(release):
    def einsum(**priors):
        return cv.PoissonFactorization(
            "dk,vk->dv", {"k": 2}, names=["theta", "phi"], priors=priors, prior_shape=0.2, **QUICK
        )

    found = priors_of(einsum(theta=("learned", None), phi=("learned", 2.0)).fit(release))
    scale = (priors_of(einsum().fit(release))["theta"].rate / 0.2) ** -1
    assert found["theta"].mean == pytest.approx(scale)
    assert found["phi"] == LearnedShapePrior(None, 2.0)
    with pytest.raises(ValueError, match="prior of 'theta' must be a number or an array of them, got 'big'"):
        einsum(theta=("big", None)).fit(release)
    with pytest.raises(ValueError, match="shape of 'phi' must be a number for method 'em', got 'learned'"):
        einsum(phi=("learned", None)).set_params(method="em").fit(release)


@pytest.mark.parametrize("threads", [2])
def test_threads_change_nothing(fit, release, threads):
    again = cv.TopicModel(3, **QUICK | {"threads": threads}).fit(release)
    assert fit.posterior["posterior"].dataset.identical(again.posterior["posterior"].dataset)


def test_a_checkpoint_has_the_shapes(release, fit, tmp_path):
    path = tmp_path / "chains.npz"
    cv.TopicModel(3, **QUICK).fit(release, checkpoint=path)
    again = cv.TopicModel(3, **QUICK).fit(release, checkpoint=path, resume=True)
    assert fit.posterior["posterior"].dataset.identical(again.posterior["posterior"].dataset)


def test_a_fit_is_kept_in_a_file(fit, release, tmp_path):
    fit.save(tmp_path / "fit.nc")
    found = cv.TopicModel.load(tmp_path / "fit.nc")
    assert priors_of(found) == priors_of(fit)
    np.testing.assert_array_equal(found.posterior["posterior"]["phi_shape"], fit.posterior["posterior"]["phi_shape"])
    np.testing.assert_array_equal(found.transform(release), fit.transform(release))


def test_chains_may_begin_at_a_fit_of_other_priors(fit, release):
    fixed = cv.TopicModel(2, prior_shape=0.3, **QUICK).fit(release)
    for start, shape in ((fit, 0.3), (fixed, "learned")):
        assert np.isfinite(cv.TopicModel(3, prior_shape=shape, start=start, **QUICK).fit(release).rate()).all()


def test_new_rows_have_the_shape_of_each_draw(fit):
    draws = fit.posterior["posterior"]
    found = row_prior(fit.posterior, fit.model_.factors[0])
    np.testing.assert_array_equal(found.shapes, draws["theta_shape"].to_numpy().ravel())
    np.testing.assert_array_equal(found.rates, draws["theta_rate"].to_numpy().reshape(-1, 3))
    shape, rate = found.gamma(3, 2.0)
    assert shape.tolist() == [found.shapes[3]]
    np.testing.assert_array_equal(rate, 2.0 * found.rates[3])
    order = np.array([2, 0, 1])
    some = found.of_draws([(3, order), (1, order[::-1])])
    np.testing.assert_array_equal(some.rates, [found.rates[3, order], found.rates[1, order[::-1]]])
    assert some.shapes.tolist() == found.shapes[[3, 1]].tolist()
