"""A posterior from a file: whether its model is that of its parameters, and its arrays those of its model."""

import warnings

import numpy as np
import pytest

import countveil as cv
from countveil.common import fit_files
from tests import hostile

pytestmark = pytest.mark.long

QUICK = {"draws": 3, "tune": 2, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTS = np.random.default_rng(1).poisson(1.0, (9, 9))
HUGE = 10**400


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Files of small fits of several models."""
    folder = tmp_path_factory.mktemp("fits")
    release = cv.privatize(COUNTS, cv.PrivacyLevel(1, 1))
    tensor = cv.privatize(COUNTS.reshape(9, 3, 3), cv.PrivacyLevel(1, 1))
    fixed = {"phi": np.arange(1.0, 19.0).reshape(9, 2)}
    einsum = {"names": ["theta", "phi"], "fixed": fixed, "priors": {"theta": (2.0, 3.0)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = {
            "svi": cv.TopicModel(3, **QUICK | {"method": "svi"}).partial_fit(release),
            "fixed": cv.TopicModel(3, prior_shape=0.1, **QUICK).fit(release),
            "cavi": cv.TopicModel(3, **QUICK | {"method": "cavi"}).fit(release),
            "blocks": cv.BlockModel(2, **QUICK).fit(release),
            "tensor": cv.TensorModel(2, **QUICK).fit(tensor),
            "einsum": cv.PoissonFactorization("dk,vk->dv", {"k": 2}, **einsum, **QUICK).fit(release),
            "stacked": cv.TopicModel(2, **QUICK | {"method": cv.Gibbs(weights="stacked")}).fit(release),
            "dynamic": cv.DynamicModel(2, steady=True, **QUICK).fit(release),
            "moving": cv.DynamicModel(2, prior_shape=0.5, **QUICK).fit(tensor),
            "moved": cv.TopicModel(3, **QUICK | {"tune": 20}).fit(release),
            "true": cv.TopicModel(2, **QUICK).fit(cv.ExactCounts(COUNTS)),
        }
    for name, each in made.items():
        each.save(folder / f"{name}.nc")
    hostile.small_fit(folder / "topics.nc")
    return folder


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Files are inspected without a process of their own."""
    monkeypatch.setattr(fit_files, "_inspected", lambda _, path: fit_files.inspect(path))


@pytest.fixture
def refusal(fits, tmp_path):
    """What loading a changed fit raises, in one line that names the file."""

    def refused(kind, change):
        bad = hostile.changed(fits / f"{kind}.nc", tmp_path / "bad.nc", change)
        with pytest.raises(ValueError, match=r"bad\.nc") as error:
            LOADS[kind].load(bad)
        said = str(error.value)
        assert "\n" not in said
        assert len(said) < 500
        return said

    return refused


LOADS = {
    "topics": cv.TopicModel,
    "fixed": cv.TopicModel,
    "svi": cv.TopicModel,
    "cavi": cv.TopicModel,
    "stacked": cv.TopicModel,
    "moved": cv.TopicModel,
    "true": cv.TopicModel,
    "blocks": cv.BlockModel,
    "tensor": cv.TensorModel,
    "dynamic": cv.DynamicModel,
    "moving": cv.DynamicModel,
    "einsum": cv.PoissonFactorization,
}


def parameter(**values):
    """A change of parameters of the fit."""
    return hostile.stated("parameters", lambda p: p.update(values))


def of_model(edit):
    """A change of the model."""
    return hostile.stated("model", edit)


def prior(**values):
    """A change of the prior of the first factor."""
    return of_model(lambda m: m["factors"][0]["prior"].update(values))


def fixed_at_first(value):
    """A change of the first entry of a fixed factor."""
    return of_model(lambda m: m["factors"][1]["fixed"][0].__setitem__(0, value))


def array(path):
    """One array more."""
    return lambda file: file.create_dataset(path, data=np.ones(3))


@pytest.mark.parametrize("kind", LOADS)
def test_whole_fits_are_loaded(kind, fits):
    fit = LOADS[kind].load(fits / f"{kind}.nc")
    assert (fit.rate().to_numpy() > 0).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (hostile.fact("method", "magic"), "must state one method"),
        (hostile.fact("method", "cavi"), "must state one method, got 'gibbs' and 'cavi'"),
        (hostile.fact("estimator", "Other"), "must hold a fit of TopicModel, got one of Other"),
        (hostile.fact("mechanism", "magic"), "mechanism must be one of"),
        (hostile.stated("parameters", lambda p: p.update(unknown=1)), "unknown"),
        (hostile.stated("parameters", lambda p: p.update(n_topics=-3)), "n_topics must be"),
        (hostile.stated("model", lambda m: m["spec"].update(text="kd,vk->dv")), "must be of the model"),
        (hostile.stated("model", lambda m: m.update(likelihood="magic")), "magic"),
        (hostile.value_at("constant_data/alpha", 1.5), "alpha from 0 to below 1"),
        (hostile.without("sample_stats/total_rate"), "must hold total_rate"),
        (hostile.without("sample_stats/log_likelihood"), "must hold log_likelihood"),
    ],
)  # fmt: skip
def test_what_the_model_does_not_fit_is_refused_when_it_is_loaded(change, said, refusal):
    assert said in refusal("topics", change)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("topics", "posterior/more"), ("topics", "sample_stats/energy"), ("topics", "constant_data/counts"),
        ("topics", "more"), ("topics", "other/more"), ("topics", "stream/more"), ("topics", "posterior/deep/more"),
        ("stacked", "chains/more"), ("cavi", "chains/weight"),
        ("moved", "tuning/more"), ("cavi", "tuning/started"),
        ("cavi", "optimisation/more"), ("svi", "stream/more"), ("blocks", "posterior/theta_to"),
    ],
)  # fmt: skip
def test_an_array_that_no_fit_of_the_model_has_is_refused(kind, path, refusal):
    said = refusal(kind, array(path))
    assert "must hold the arrays of its model alone, got" in said or "must hold groups among" in said


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("topics", parameter(n_topics=7), "with sizes {'d': 12, 'v': 9, 'k': 7}, got {'d': 12, 'v': 9, 'k': 3}"),
        ("svi", parameter(n_topics=7), "'k': 7}, got"),
        ("stacked", hostile.value_at("chains/weight", 0.99), "weights of chains from 0 to 1 with sum one"),
        ("stacked", hostile.value_at("chains/weight", -0.5), "must hold finite numbers of at least 0 at chains/weight"),
        ("stacked", hostile.without("chains/weight"), "must hold weight"),
        ("moved", hostile.value_at("tuning/started", np.nan), "finite numbers from -inf to inf at started"),
        ("moved", hostile.value_at("tuning/tuned", np.inf), "finite numbers from -inf to inf at tuned"),
        ("moved", hostile.value_at("tuning/components", 0.5), "whole numbers from 0 to 2147483647 at components"),
        ("moved", hostile.value_at("tuning/move_sweep", -1.0), "whole numbers from 1 to 2147483647 at move_sweep"),
        ("moved", hostile.value_at("tuning/move_before", 1e300), "whole numbers from 1 to 2147483647 at move_before"),
        ("moved", hostile.value_at("tuning/move_log_likelihood", np.inf), "finite numbers from -inf to inf at move"),
        ("moved", hostile.without("tuning/move_after"), "must hold move_after in the group"),
        ("moved", hostile.without("tuning/started"), "must hold started in the group"),
        ("blocks", hostile.value_at("tuning/candidate_score", np.inf), "finite numbers from -inf to inf at candid"),
        ("blocks", hostile.value_at("tuning/candidate_taken", 2.0), "whole numbers from 0 to 1 at candidate_taken"),
        ("blocks", hostile.filled("tuning/candidate_taken", 1.0), "one of each chain's last starts"),
        ("blocks", hostile.value_at("tuning/candidate_number", 0.0), "whole numbers from 1 to 2147483647 at cand"),
        ("blocks", hostile.value_at("tuning/candidate_race", "=magic"), "candidate_race among ['embeddings', 'group"),
        ("blocks", hostile.without("tuning/candidate_race"), "candidate_race"),
        ("tensor", parameter(n_components=5), "'k': 5}, got"),
        ("blocks", parameter(n_communities=5), "'c': 5, 'd': 5}, got"),
        ("blocks", parameter(self_loops=True), "with self_loops True, got False"),
        ("blocks", parameter(directed=False), "must be of the model ic,jd,cd->ij"),
        ("topics", of_model(lambda m: m.update(self_loops=5)), "with self_loops False, got 5"),
        ("topics", of_model(lambda m: m["sizes"].update(z=4)), "'z': 4}"),
        ("fixed", parameter(prior_shape=0.7), "the prior of theta that its parameters give, with shape 0.7, got 0.1"),
        ("fixed", prior(shape=-1.0), "with shape 0.1, got -1.0"),
        ("fixed", prior(learned=False), "with learned True, got False"),
        ("fixed", prior(rate=float("nan")), "with a positive rate, got nan"),
        ("fixed", prior(rate=float("inf")), "with a positive rate, got inf"),
        ("fixed", prior(shape="x"), "could not convert"),
        ("fixed", prior(rate=HUGE), "too large"),
        ("topics", parameter(prior_shape=0.7), "of kind gamma, got gamma-of-learned-shape"),
        ("topics", hostile.value_at("posterior/theta_shape", 1e300), "shapes between 0.0001 and 10000 at theta_shape"),
        ("topics", hostile.value_at("posterior/phi_shape", 1e-6), "shapes between 0.0001 and 10000 at phi_shape"),
        ("topics", prior(mean=-1.0), "with a positive mean, got -1.0"),
        ("topics", prior(mean=None), "got None"),
        ("topics", prior(rate=2.0), "with rate None, got 2.0"),
        ("topics", hostile.without("posterior/theta_shape"), "must hold theta_shape in the group"),
        (
            "dynamic", hostile.without("posterior/immigration"),
            "; a fit of a version that did not learn it has to be made again from its release and seed",
        ),
        ("fixed", array("posterior/theta_shape"), "must hold the arrays of its model alone, got 'theta_shape'"),
        ("einsum", prior(rate=4.0), "got 4.0"),
        ("einsum", fixed_at_first(float("inf")), "must fix phi as its parameters do"),
        ("einsum", fixed_at_first(-3.0), "must fix phi as its parameters do"),
        ("einsum", fixed_at_first(77.0), "must fix phi as its parameters do"),
        ("einsum", fixed_at_first(HUGE), "too large"),
        ("einsum", parameter(fixed=None), "must fix phi as its parameters do"),
        ("einsum", parameter(fixed={"phi": [[float("inf")] * 2] * 9}), "must be finite and not negative, got inf"),
        ("true", hostile.value_at("constant_data/alpha", 0.5), "must have no noise on exact counts"),
        ("cavi", hostile.whole_numbers("optimisation/objective"), "must hold objective as floating-point numbers"),
    ],
)  # fmt: skip
def test_facts_that_are_not_those_of_the_parameters_are_refused(kind, change, said, refusal):
    assert said in refusal(kind, change)


@pytest.mark.parametrize(
    ("name", "given"),
    [(name, {name: HUGE}) for name in ("tune", "draws", "threads", "seed", "n_topics")]
    + [
        ("thin", {"method": {"name": "gibbs", "thin": HUGE}}),
        ("max_iter", {"method": {"name": "em", "max_iter": HUGE}}),
        ("total_rows", {"method": {"name": "svi", "total_rows": HUGE}}),
    ],
)
def test_numbers_that_nothing_can_count_to_are_refused(name, given, refusal):
    assert f"{name} must be a whole number of at most " in refusal("topics", parameter(**given))


def test_parameters_that_make_no_sense_are_refused(refusal):
    assert "prior_shape must be a positive number of at most 1.79" in refusal("topics", parameter(prior_shape=HUGE))
    assert "tolerance must be a positive number, got nan" in refusal(
        "topics", parameter(method={"name": "cavi", "tolerance": float("nan")})
    )
    assert "passes requires method 'svi', got method 'gibbs'" in refusal(
        "topics", parameter(method={"name": "gibbs", "passes": 3})
    )
    assert "must state one method, got 'em' and 'gibbs'" in refusal("topics", parameter(method="em"))
    assert "max_iter is now method=cv.CAVI(max_iter=...)" in refusal("topics", parameter(max_iter=500))
    assert "must not say where to compute" in refusal("topics", parameter(engine="tcp://192.0.2.1:8786"))


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("dynamic", hostile.value_at("posterior/transition", 7.0), "transition with columns that sum to 1, got "),
        ("dynamic", hostile.value_at("posterior/importance", -1.0), "importance of finite numbers, 0 or more, got"),
        ("dynamic", hostile.value_at("posterior/volume", 0.0), "positive volume, got 0.0"),
        ("dynamic", hostile.without("posterior/transition"), "must hold transition"),
        ("moving", hostile.value_at("posterior/volume", 0.0), "positive volume, got 0.0"),
        ("moving", hostile.without("posterior/steadiness"), "must hold steadiness"),
        ("dynamic", array("posterior/steadiness"), "the arrays of its model alone"),
        ("dynamic", hostile.stated("parameters", lambda p: p.update(steady=False)), "with steady False, got True"),
        ("dynamic", of_model(lambda m: m["factors"][0]["prior"].update(mean=-1.0)), "with a positive mean, got -1.0"),
        ("moving", of_model(lambda m: m["factors"][1]["prior"].update(concentration=2.0)), "0.5, got 2.0"),
        ("dynamic", hostile.value_at("posterior/factor_item_shape", 1e-9), "shapes between"),
    ],
)  # fmt: skip
def test_a_chain_in_time_that_makes_no_sense_is_refused(kind, change, said, refusal):
    assert said in refusal(kind, change)
