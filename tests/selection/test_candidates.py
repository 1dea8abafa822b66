"""Names of models, and which models cannot be compared."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import LatentDirichletAllocation

import countveil as cv
from countveil.selection.candidates import candidates_of, named_models

REPORTS = np.random.default_rng(1).poisson(2.0, (6, 6))
DATA = cv.PrivatizedCounts(REPORTS, 0.4)


def test_names_are_what_differs_in_the_order_of_the_constructor():
    given = [cv.TopicModel(k, likelihood=name) for k in (5, 20) for name in ("poisson", None)]
    assert list(named_models(given)) == [
        "n_topics=5, likelihood=poisson",
        "n_topics=5, likelihood=negative-binomial",
        "n_topics=20, likelihood=poisson",
        "n_topics=20, likelihood=negative-binomial",
    ]
    assert list(named_models([cv.TopicModel(5, seed=1)])) == ["TopicModel"]
    methods = ("em", cv.CAVI(), cv.CAVI(tolerance=0.01))
    assert list(named_models([cv.TopicModel(5, method=method) for method in methods])) == [
        "method=em",
        "method=cavi",
        "method=CAVI(tolerance=0.01)",
    ]
    with pytest.raises(ValueError, match="models must differ from each other, got 2 that are alike"):
        named_models([cv.TopicModel(5), cv.TopicModel(5, method=cv.Gibbs())])
    found = candidates_of(DATA, [cv.TopicModel(5), cv.BlockModel(2)], {})
    assert [each.name for each in found] == ["model=TopicModel, n_topics=5", "model=BlockModel, n_communities=2"]
    assert found[0].differs == {"model": "TopicModel", "n_topics": 5}


def test_given_names_stay_and_what_differs_is_still_known():
    method = cv.Gibbs(moves=0, thin=9)
    (found,) = candidates_of(DATA, [cv.TopicModel(2, method=method)], {"draws": 7, "thin": 3})
    assert found.model.method == cv.Gibbs(moves=0, thin=3)
    assert method.thin == 9
    (found,) = candidates_of(DATA, [cv.TopicModel(2, method="em")], {"draws": 7, "thin": 3})
    assert found.model.method == "em"
    found = candidates_of(DATA, {"few": cv.TopicModel(2), "many": cv.TopicModel(4)}, {"draws": 7})
    assert [each.name for each in found] == ["few", "many"]
    assert [each.differs for each in found] == [{"n_topics": 2}, {"n_topics": 4}]
    assert [each.size for each in found] == [24, 48]
    assert [each.model.draws for each in found] == [7, 7]


def test_numbers_of_layers_are_part_of_names():
    found = named_models([cv.TopicModel([4, 2]), cv.TopicModel((4, 3)), cv.TopicModel(4)])
    assert list(found) == ["n_topics=[4, 2]", "n_topics=[4, 3]", "n_topics=4"]


def test_starts_and_fixed_factors_are_told_apart_by_their_values():
    start = np.ones((6, 2))
    one, other = (candidates_of(DATA, [cv.TopicModel(2, start={"theta": x})], {})[0] for x in (start, 2 * start))
    assert one.facts != other.facts
    spec = ("dk,vk->dv", {"k": 2})
    named = {str(scale): cv.PoissonFactorization(*spec, fixed={"vk": scale * start}, method="em") for scale in (1, 2)}
    one, other = candidates_of(DATA, named, {})
    assert one.facts != other.facts
    with pytest.raises(ValueError, match="names that differ, got 'fixed=dict' twice: pass a dict"):
        named_models(list(named.values()))


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([], ValueError, "models must hold at least one model, got none"),
        ({}, ValueError, "models must hold at least one model, got none"),
        (cv.TopicModel(2), TypeError, "a list of models or a dict of them by name, got TopicModel"),
        ("TopicModel", TypeError, "models must be models of countveil, such as TopicModel, got str"),
        ([LatentDirichletAllocation()], TypeError, "models of countveil, .* got LatentDirichletAllocation"),
        ([cv.TopicModel], TypeError, "models of countveil, such as TopicModel, got type|ABCMeta"),
        ({"a": 3}, TypeError, "models of countveil, such as TopicModel, got int"),
        ({3: cv.TopicModel(2)}, ValueError, "models must have names that are text, got 3"),
        ({" ": cv.TopicModel(2)}, ValueError, "models must have names that are text, got ' '"),
        ([cv.TopicModel(2), cv.TopicModel(2, seed=4)], ValueError, "must differ from each other, got 2 that are"),
        ([cv.TopicModel(2), cv.TopicModel(2), cv.TopicModel(3)], ValueError, "got 'n_topics=2' twice"),
        ([cv.TopicModel(0), cv.TopicModel(2)], ValueError, "'n_topics=0' is not: n_topics must be a whole number"),
        ([cv.TensorModel(2, modes="abc")], ValueError, "'TensorModel' is not: modes must name each of the 2 axes"),
        ([cv.BlockModel(2, directed=False)], ValueError, "'BlockModel' is not: an undirected network must report"),
    ],
)
def test_what_cannot_be_compared_is_refused(models, error, message):
    with pytest.raises(error, match=message):
        candidates_of(DATA, models, {})


def test_data_of_other_kinds_and_noise_are_refused():
    with pytest.raises(TypeError, match=r"models must be for these data, but 'TopicModel' is not: data must carry"):
        candidates_of(REPORTS, [cv.TopicModel(2)], {})
    given = [cv.TopicModel(2, alpha=alpha) for alpha in (0.3, 0.4)]
    with pytest.raises(ValueError, match=r"must see the same reports under the same noise, got 'alpha=0.3' with"):
        candidates_of(REPORTS, given, {})
    tensor = cv.PrivatizedCounts(REPORTS.reshape(6, 3, 2), 0.4)
    with pytest.raises(ValueError, match="'n_topics=2' is not: "):
        candidates_of(tensor, [cv.TopicModel(2), cv.TopicModel(3)], {})


def test_releases_on_disk_are_unpacked(tmp_path):
    cv.privatize(REPORTS, cv.PrivacyLevel(1, 1)).save(tmp_path / "part-0.npz")
    found = candidates_of(cv.ReleaseFiles(tmp_path), [cv.TopicModel(2, method="svi")], {})
    assert found[0].observed.shape == (6, 6)


def test_models_see_time_steps_in_one_order():
    frame = pd.DataFrame(REPORTS[:3], index=["Jan 2020", "Nov 2019", "Feb 2020"])
    data = cv.PrivatizedCounts(frame, 0.4)
    found = candidates_of(data, {"static": cv.TensorModel(1), "dynamic": cv.DynamicModel(1)}, {})
    for each in found:
        assert each.observed.row_labels == ["Nov 2019", "Dec 2019", "Jan 2020", "Feb 2020"]
        np.testing.assert_array_equal(each.observed.reports, found[0].observed.reports)
