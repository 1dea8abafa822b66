import numpy as np
import pandas as pd
import pytest

import countveil as cv


def test_a_tensor_of_two_modes_is_learned_from_batches_as_topics_are():
    counts = np.random.default_rng(4).poisson(40.0, (30, 6))
    options = {"method": cv.SVI(passes=2, batch_rows=7), "draws": 3, "seed": 1, "alpha": 0.4, "threads": 1}
    tensor, topics = cv.TensorModel(2, **options).fit(counts), cv.TopicModel(2, **options).fit(counts)
    np.testing.assert_array_equal(tensor.rate().to_numpy(), topics.rate().to_numpy())
    assert tensor.n_iter_ == 2 * 5
    with pytest.raises(ValueError, match="passes must be a whole number of at least 1, got 0"):
        tensor.set_params(method__passes=0).fit(counts)


def planted(seed=0, n_rows=60):
    """(data (country, thing, year) with noise, groups of the countries, their true difference of shares)."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(n_rows) % 2)
    theta = rng.gamma(2.0, 10.0 * np.exp((group[:, None] - 0.5) * [1.2, -0.6, 0.0]))
    things = np.kron(np.eye(3), np.full((4, 1), 0.25))
    counts = rng.poisson(np.einsum("ik,jk,tk->ijt", theta, things, rng.dirichlet(np.full(5, 2.0), 3).T))
    noise = rng.geometric(1.0 - np.exp(-1.0), (2, *counts.shape))
    share = theta / theta.sum(axis=1, keepdims=True)
    reports = cv.PrivatizedCounts(counts + noise[0] - noise[1], np.exp(-1.0))
    return reports, group, share[group == 1].mean(axis=0) - share[group == 0].mean(axis=0)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_components_depend_on_covariates_of_the_first_mode(tmp_path):
    data, group, truth = planted()
    settings = {"draws": 60, "tune": 60, "chains": 2, "seed": 1, "likelihood": "poisson", "progress": False}
    model = cv.TensorModel(3, modes=["country", "thing", "year"], prevalence="~ group", **settings)
    fit = model.fit(data, covariates=pd.DataFrame({"group": group}))
    table = fit.effects.contrast({"group": 1}, {"group": 0}, 0.95, uncalibrated=True).set_index("component")
    own = [
        int(mean[4 * k : 4 * k + 4].sum() > 0.5) * (k + 1)
        for mean in fit._reader.member_means("thing")
        for k in range(3)
    ]
    own = [k - 1 for k in own if k]
    assert sorted(own) == [0, 1, 2]
    ends = table[[name for name in table if name.endswith(("lower", "upper"))]].to_numpy()
    assert ((ends[:, 0] < truth[own]) & (truth[own] < ends[:, 1])).all()
    assert set(fit.effects.table().columns) >= {"component", "term", "estimate"}
    assert fit.tables["effects"].equals(fit.effects.table())
    fit.save(tmp_path / "fit.nc")
    found = cv.TensorModel.load(tmp_path / "fit.nc")
    assert found.effects.table().equals(fit.effects.table())
    assert found.covariates_.frame.equals(fit.covariates_.frame)
    ax = cv.plotting.effects(found, {"group": 1}, {"group": 0})
    assert ax.get_xlabel().startswith("difference in the expected share of one country")
    assert cv.plotting.expected_prevalence(found, pd.DataFrame({"group": [0, 1]})).get_legend_handles_labels()[1][0]


def test_covariates_of_a_tensor_are_refused_by_name():
    data, group, _ = planted()
    with pytest.raises(ValueError, match="covariates must be given with prevalence '~ group', got none"):
        cv.TensorModel(3, prevalence="~ group").fit(data)
    with pytest.raises(ValueError, match="covariates require prevalence"):
        cv.TensorModel(3).fit(data, covariates=pd.DataFrame({"group": group}))
    with pytest.raises(ValueError, match="own arrays, got \\['term'\\]"):
        cv.TensorModel(3, modes=["term", "b", "c"]).fit(data)
