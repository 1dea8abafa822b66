"""Components with their support: each from the draws of the chains that have it."""

import warnings

import numpy as np
import pytest

import countveil as cv

SIZE, CHAINS, DRAWS = (9, 12), 4, 20
WORDS = [f"w{v}" for v in range(SIZE[1])]
QUICK = {"chains": CHAINS, "draws": DRAWS, "tune": 1, "seed": 1, "threads": 1, "progress": False}


@pytest.fixture(scope="module")
def fit():
    """A fit whose first two topics are the same in all chains, in another order, and whose third is chain 3's own."""
    rng = np.random.default_rng(1)
    data = cv.PrivatizedCounts(rng.poisson(2.0, SIZE), 0.3, column_labels=WORDS)
    found = cv.TopicModel(3, likelihood="poisson", **QUICK).fit(data)
    topics = np.zeros((4, SIZE[1]))
    for k in range(4):
        topics[k, 3 * k : 3 * k + 3] = 0.5, 0.3, 0.2
    draws = found.posterior["posterior"]
    for chain in range(CHAINS):
        order = rng.permutation([0, 1, 3 if chain == 3 else 2])
        near = 0.9 * topics[order] + 0.1 * rng.dirichlet(np.ones(SIZE[1]), (DRAWS, 3))
        draws["phi"][chain] = near
        draws["theta"][chain] = rng.gamma(2.0, [[10.0, 5.0, 1.0, 1.0][k] for k in order], (DRAWS, SIZE[0], 3))
    return found


def test_topics_have_the_words_and_the_intervals_of_the_chains_that_have_them(fit):
    table = fit.topics(3)
    assert table.columns.tolist() == [
        *("topic", "support", "prevalence", "rank", "word", "probability", "lower", "upper"),
    ]
    assert table.groupby("topic")["support"].first().tolist() == [1.0, 1.0, 0.75, 0.25]
    phi, theta = (fit.posterior["posterior"][name].to_numpy() for name in ("phi", "theta"))
    shares = theta.sum(axis=2) / theta.sum(axis=(2, 3))[..., None]
    for topic, rows in table.groupby("topic"):
        assert rows["word"].tolist() == WORDS[3 * topic : 3 * topic + 3]
        own = phi[:, :, :, 3 * topic : 3 * topic + 3]
        has = own.mean(axis=1).sum(axis=2) > 0.5  # (chain, K)
        assert rows["support"].iloc[0] == has.any(axis=1).mean()
        values = np.concatenate([own[c, :, k] for c, k in np.argwhere(has)])
        np.testing.assert_allclose(rows["probability"], values.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(rows["lower"], np.quantile(values, 0.05, axis=0), rtol=1e-6)
        np.testing.assert_allclose(rows["upper"], np.quantile(values, 0.95, axis=0), rtol=1e-6)
        size = np.concatenate([shares[c, :, k] for c, k in np.argwhere(has)])
        np.testing.assert_allclose(rows["prevalence"], size.mean(), rtol=1e-6)


def test_topics_of_the_same_support_go_by_their_size(fit):
    first = fit.topics(1)
    assert first["prevalence"].iloc[0] > first["prevalence"].iloc[1]
    assert first["word"].tolist() == ["w0", "w3", "w6", "w9"]


def test_every_kind_of_component_has_support():
    square = cv.PrivatizedCounts(np.random.default_rng(2).poisson(2.0, (6, 6)), 0.3)
    found = cv.BlockModel(2, **QUICK).fit(square).communities(2)
    assert found.columns[0] == "community"
    assert (found["actor"] < 6).all()
    tensor = cv.PrivatizedCounts(np.random.default_rng(2).poisson(2.0, (4, 3, 2)), 0.3)
    table = cv.TensorModel(2, **QUICK).fit(tensor).supported("mode1", 1)
    assert ((table["support"] > 0.0) & (table["support"] <= 1.0)).all()


def test_a_fit_of_one_chain_has_topics_and_cannot_say_their_support(fit):
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, SIZE), 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        point = cv.TopicModel(2, method="em", max_iter=3, seed=1, threads=1, progress=False).fit(data)
        one = cv.TopicModel(2, **QUICK | {"chains": 1}).fit(data)
    for single in (point, one):
        assert single.topics()["support"].isna().all()
        assert single.topics()["word"].tolist() == single.top_words(8)["word"].tolist()
    assert "lower" not in point.topics()
    assert "uncalibrated_lower" in point.topics(uncalibrated=True)
    for arguments, message in (((0,), "n must be"), ((3, 1.5), "interval must be")):
        with pytest.raises(ValueError, match=message):
            fit.topics(*arguments)
    with pytest.raises(ValueError, match="axis must be one of"):
        fit.supported("sentence")
