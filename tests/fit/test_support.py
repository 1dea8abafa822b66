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
    found._adopt(found.posterior)
    return found


@pytest.mark.parametrize("chains", [2, CHAINS])
def test_chains_without_a_topic_in_common_say_that_topics_cannot_be_found(chains, monkeypatch):
    rng = np.random.default_rng(1)
    data = cv.PrivatizedCounts(rng.poisson(2.0, SIZE), 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cv.TopicModel(3, likelihood="poisson", **QUICK | {"chains": chains}).fit(data)
    draws = found.posterior["posterior"]
    draws["theta"][:] = rng.gamma(2.0, 1.0, draws["theta"].shape)
    for chain in range(chains):  # every topic is a word of its own
        draws["phi"][chain] = 0.01 / SIZE[1] + 0.99 * np.eye(SIZE[1])[3 * chain : 3 * chain + 3]
    found._adopt(found.posterior)
    assert found.support()["support"].tolist() == [1 / chains] * (3 * chains)
    said, lost = (
        found.diagnostics(),
        "The topics cannot be found: no topic is one that more than half of the chains",
    )
    assert said.verdict.count(lost) == 1
    assert "components" not in said.verdict
    assert said.state != "safe to report"
    monkeypatch.setattr(type(found), "undetermined", lambda fit: {fit.parts[0]: (3, 3)})
    assert found.diagnostics().verdict.count("cannot be found") == 1
    monkeypatch.undo()
    draws["phi"][:, :, 0] = draws["phi"][0, :, 0].to_numpy()  # all chains have this one
    found._adopt(found.posterior)
    assert "cannot be found" not in found.diagnostics().verdict


def of_topic(fit, topic):
    """(the draws (n, 3) of a planted topic's own words, its sizes (n,), the share of the chains that have it)."""
    phi, theta = (fit.posterior["posterior"][name].to_numpy() for name in ("phi", "theta"))
    shares = theta.sum(axis=2) / theta.sum(axis=(2, 3))[..., None]
    own = phi[:, :, :, 3 * topic : 3 * topic + 3]
    has = np.argwhere(own.mean(axis=1).sum(axis=2) > 0.5)  # (chain, K)
    values = np.concatenate([own[c, :, k] for c, k in has])
    return values, np.concatenate([shares[c, :, k] for c, k in has]), len(has) / CHAINS


def check_rows(fit, rows):
    """Refuse rows of one topic that are not those of the chains that have it."""
    topic = WORDS.index(rows["word"].iloc[0]) // 3
    assert rows["word"].tolist() == WORDS[3 * topic : 3 * topic + 3]
    values, size, support = of_topic(fit, topic)
    np.testing.assert_allclose(rows["probability"], values.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(rows["lower"], np.quantile(values, 0.05, axis=0), rtol=1e-6)
    np.testing.assert_allclose(rows["upper"], np.quantile(values, 0.95, axis=0), rtol=1e-6)
    np.testing.assert_allclose(rows["prevalence"], size.mean(), rtol=1e-6)
    return support


def test_topics_have_the_words_and_the_intervals_of_the_chains_that_have_them(fit):
    table = fit.topics(3)
    assert table.columns.tolist() == [
        *("topic", "support", "prevalence", "rank", "word", "probability", "lower", "upper"),
    ]
    assert table["support"].iloc[::3].tolist() == [1.0, 1.0, 0.75, 0.25]
    for _, rows in table.groupby("topic"):
        assert check_rows(fit, rows) == rows["support"].iloc[0]


def test_every_table_numbers_topics_as_the_first_chain_does(fit):
    every, own = fit.topics(3), fit.top_words(3)
    phi = fit.posterior["posterior"]["phi"].to_numpy()[0].mean(axis=0)
    assert own["topic"].unique().tolist() == [0, 1, 2]
    assert sorted(every["topic"].unique()) == [0, 1, 2, 3]
    shares = fit.prevalences()
    for topic, rows in own.groupby("topic"):
        assert rows["word"].iloc[0] == WORDS[phi[topic].argmax()]
        check_rows(fit, rows)
        same = every[every["topic"] == topic].drop(columns="support").reset_index(drop=True)
        np.testing.assert_array_equal(same.to_numpy(), rows.to_numpy())
        assert shares["prevalence"][topic] == rows["prevalence"].iloc[0]
        values = of_topic(fit, WORDS.index(rows["word"].iloc[0]) // 3)
        np.testing.assert_allclose(shares["lower"][topic], np.quantile(values[1], 0.05), rtol=1e-6)
        centre = fit.components_[topic, phi[topic].argmax()]
        np.testing.assert_allclose(centre, values[0][:, 0].mean(), rtol=1e-5)
    support = fit.support()
    assert support["component"].tolist() == every["topic"].iloc[::3].tolist()
    assert support["support"].tolist() == [1.0, 1.0, 0.75, 0.25]
    np.testing.assert_array_equal(support["prevalence"], every["prevalence"].iloc[::3])


def test_new_rows_are_of_the_topics_of_the_chains_that_have_them_all(fit):
    """Chain 3 has another topic, so that its draws stay out; those of the others are numbered as in the first."""
    orders = fit._draws_alike()
    assert [s for s, _ in orders] == list(range(3 * DRAWS))
    phi = fit.posterior["posterior"]["phi"].to_numpy().reshape(-1, 3, SIZE[1])
    peaks = {tuple(phi[s][order].argmax(axis=1)) for s, order in orders}
    assert len(peaks) == 1
    data = cv.PrivatizedCounts(np.eye(SIZE[1], dtype=int)[[0, 3, 6]] * 40, 0.3, column_labels=WORDS)
    found = fit.transform(data)
    np.testing.assert_array_equal(
        np.array(WORDS)[list(peaks.pop())][found.argmax(axis=1)], ["w0", "w3", "w6"]
    )


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


def test_a_network_is_of_the_chains_that_have_all_communities():
    """In chain 1 communities have other numbers, in chain 2 one is another: it would blur means and blocks."""
    square = cv.PrivatizedCounts(np.random.default_rng(2).poisson(2.0, (6, 6)), 0.3)
    found = cv.BlockModel(2, **QUICK | {"chains": 3}).fit(square)
    draws, rng = found.posterior["posterior"], np.random.default_rng(3)
    groups = np.eye(3).repeat(2, axis=0)  # (actor, group)
    blocks = np.array([[9.0, 2.0], [1.0, 4.0]])
    for chain, own in enumerate(([0, 1], [1, 0], [0, 2])):
        draws["theta"][chain] = groups[:, own] / 2.0 + rng.uniform(0.0, 0.01, (DRAWS, 6, 2))
        draws["pi"][chain] = blocks[own][:, own] if chain < 2 else 50.0
    found._adopt(found.posterior)
    network = found.network
    np.testing.assert_allclose(network.memberships, groups[:, :2] / 2.0, atol=0.01)
    assert len(network.block_draws) == 2 * DRAWS
    np.testing.assert_allclose(network.blocks / network.blocks.sum(), blocks / 16.0, atol=0.02)
    np.testing.assert_array_equal(found.memberships_, network.memberships)
    np.testing.assert_array_equal(found.blocks_, network.blocks)


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
