"""Components of every model in one layout, against what their draws say."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import countveil as cv
from countveil.fit.parts import Parts
from countveil.fit.projection import draws_alike
from countveil.inference import posterior
from countveil.models.layout import Part
from countveil.selection import Stack
from tests.chronicle import WORDS, YEARS, Chronicle, chronicled

QUICK = {"draws": 8, "tune": 4, "chains": 1, "seed": 1, "threads": 1, "progress": False}
TENSOR = np.random.default_rng(3).poisson(2.0, (5, 4, 3))
SQUARE = np.random.default_rng(4).poisson(2.0, (6, 6))
COLUMNS = ["component", "prevalence", "rank", "member", "probability", "lower", "upper"]


def einsum(spec, ranks, data, **options):
    return cv.PoissonFactorization(spec, ranks, alpha=0.3, **QUICK, **options).fit(data)


@pytest.fixture(scope="module")
def topics():
    return cv.TopicModel(3, alpha=0.3, likelihood="poisson", **QUICK).fit(TENSOR[:, :, 0])


@pytest.fixture(scope="module")
def blocks():
    return cv.BlockModel(2, alpha=0.3, **QUICK).fit(SQUARE)


@pytest.fixture(scope="module")
def tensor():
    return cv.TensorModel(2, modes=["who", "what", "year"], alpha=0.3, **QUICK).fit(TENSOR)


@pytest.fixture(scope="module")
def tucker():
    dims = {"i": "sender", "j": "receiver", "t": "year", "c": "community", "r": "regime"}
    return einsum(
        "ic,jd,tr,cdr->ijt",
        {"c": 2, "d": 2, "r": 2},
        np.random.default_rng(5).poisson(2.0, (4, 4, 3)),
        shared={"jd": "ic"},
        dims=dims,
    )


def by_hand(fit, out, parts=""):
    """(C S, ...) the model's einsum with another output, from its draws in double precision.

    ``parts`` are the axes along which the mean size of bursts varies.
    """
    spec = fit.model_.spec
    operands = []
    if parts:
        p = fit.posterior["posterior"]["p"].to_numpy()
        sizes = p / (-np.log1p(-p) * (1.0 - p))
        operands += [sizes.reshape(-1, *sizes.shape[2:]), "Z" + parts]
    for term, f in zip(spec.terms, spec.factor_of_term, strict=True):
        factor = fit.model_.factors[f]
        values = fit.posterior["posterior"][factor.name].to_numpy().astype(float)
        order = [term[factor.axes.index(a)] for a in fit._layout(spec).axes[factor.name]]
        operands += [values.reshape(-1, *values.shape[2:]), "Z" + "".join(order)]
    letters = {a: i for i, a in enumerate(dict.fromkeys("Z" + "".join(spec.terms)))}
    indexed = [[letters[a] for a in o] if isinstance(o, str) else o for o in operands]
    return np.einsum(*indexed, [letters[a] for a in "Z" + out])


def test_the_models_say_what_their_parts_are_called(topics, blocks, tensor, chronicle):
    (part,) = topics._reader.kinds
    assert part == Part(
        "topic",
        "topics",
        "all expected words",
        "probability of the word in the topic",
        "most probable words: probability",
        ("word",),
    )
    (part,) = blocks._reader.kinds
    assert (part.one, part.many, part.whole) == ("community", "communities", "all expected messages")
    assert part.axes == ("actor",)
    (part,) = tensor._reader.kinds
    assert (part.one, part.many, part.whole) == ("component", "components", "all expected counts")
    assert part.axes == ("who", "what", "year")
    (part,) = chronicle._reader.kinds
    assert (part.many, part.axes) == ("stories", ("word", "year"))
    assert chronicle._reader.member_axes == ("doc", "word", "year")
    assert topics._reader.member_axes == ("doc", "word")


def test_data_in_words(topics, blocks, tensor, chronicle):
    assert topics._reader.data_in_words() == "5 documents × 4 words"
    assert blocks._reader.data_in_words() == "6 actors and their directed contacts"
    assert tensor._reader.data_in_words() == "5 who × 4 what × 3 year"
    assert chronicle._reader.data_in_words() == "6 documents × 4 words × 3 year"


def test_members_have_one_layout_for_all_models(topics, blocks, tensor):
    for fit, axis, named in (
        (topics, "word", topics.top_words(3, 0.5)),
        (blocks, "actor", blocks.top_actors(3, 0.5)),
        (tensor, "who", tensor.top_entries("who", 3, 0.5)),
        (tensor, "year", tensor.top_entries("year", 3, 0.5)),
    ):
        found = fit.parts.members(axis, 3, 0.5)
        assert found.columns.tolist() == COLUMNS
        assert named.columns[[0, 3]].tolist() == [fit._reader.kinds[0].one, axis]
        assert named.set_axis(COLUMNS, axis=1).equals(found)


@pytest.mark.parametrize("axis", ["sender", "year"])
def test_members_are_the_shares_of_the_component_s_expected_counts(tucker, axis):
    """Every draw's share by the whole einsum; communities send and receive alike."""
    letter, latent = {"sender": ("i", "c"), "year": ("t", "r")}[axis]
    counts = by_hand(tucker, latent + letter)
    shares = counts / counts.sum(axis=2, keepdims=True)
    low, high = np.quantile(shares, [0.1, 0.9], axis=0)
    found = tucker.parts.members(axis, 9, 0.8)
    assert len(found) == shares[0].size
    for row in found.itertuples():
        k, member = row.component, row.member
        assert row.probability == pytest.approx(shares[:, k, member].mean(), rel=1e-5)
        assert (row.lower, row.upper) == pytest.approx((low[k, member], high[k, member]), rel=1e-5)
    mean = tucker._reader.member_means(axis)
    np.testing.assert_allclose(mean, shares.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(mean.sum(axis=1), 1.0, rtol=1e-12)


def test_members_along_the_axis_that_holds_the_sizes_are_shares_too(topics):
    counts = by_hand(topics, "kd")
    shares = (counts / counts.sum(axis=2, keepdims=True)).mean(axis=0)
    found = topics.parts.members("doc", 5).sort_values(["component", "member"])
    np.testing.assert_allclose(found["probability"], shares.ravel(), rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "ranks", "options", "axes"),
    [
        ("dk,vk,yk->dvy", {"k": 2}, {}, {"d": "k"}),
        ("dk,vk,yk->dvy", {"k": 2}, {"fixed": {"vk": np.arange(1.0, 9.0).reshape(4, 2)}}, {"v": "k"}),
        ("dk,vkt,yt->dvy", {"k": 2, "t": 3}, {}, {"d": "k", "y": "t"}),
        ("dk,vk,dt,yt->dvy", {"k": 2, "t": 2}, {}, {"v": "k", "y": "t"}),
        ("dk,vk,vt,yt->dvy", {"k": 2, "t": 2}, {}, {"d": "k", "y": "t"}),
        ("ik,jd,tr,kdr->ijt", {"k": 2, "d": 3, "r": 2}, {}, {"i": "k", "j": "d", "t": "r"}),
    ],
)
def test_prevalence_is_the_share_of_expected_counts_by_the_whole_einsum(spec, ranks, options, axes):
    fit = einsum(spec, ranks, TENSOR, **options)
    assert set(axes) <= set(fit._reader.member_axes)
    for axis, latent in axes.items():
        sizes = by_hand(fit, latent)
        shares = sizes / sizes.sum(axis=1, keepdims=True)
        found = fit.parts.prevalences(0.6, axis=axis)
        np.testing.assert_allclose(found["prevalence"], shares.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(found["lower"], np.quantile(shares, 0.2, axis=0), rtol=1e-5)
        np.testing.assert_allclose(found["upper"], np.quantile(shares, 0.8, axis=0), rtol=1e-5)


BURSTY = {"likelihood": "negative-binomial"}


@pytest.mark.parametrize(
    ("spec", "dispersion", "parts", "axes"),
    [
        ("dk,vk->dv", "column", "v", {"d": "k", "v": "k"}),
        ("dk,vk->dv", "row", "d", {"d": "k", "v": "k"}),
        ("dk,vk->dv", "global", "", {"d": "k", "v": "k"}),
        ("dk,vk,yk->dvy", "column", "vy", {"d": "k", "v": "k", "y": "k"}),
        ("dk,kv,yr,kr->dvy", "column", "vy", {"d": "k", "y": "r"}),
    ],
)
def test_bursty_components_are_listed_by_their_expected_counts(spec, dispersion, parts, axes, monkeypatch):
    monkeypatch.setattr("countveil.fit.reading.DRAWS_AT_ONCE", 3)
    data = TENSOR if spec.endswith("y") else TENSOR[:, :, 0]
    fit = einsum(spec, {"k": 2, "r": 2} if "r" in spec else {"k": 2}, data, dispersion=dispersion, **BURSTY)
    assert set(axes) <= set(fit._reader.member_axes)
    for axis, latent in axes.items():
        sizes = by_hand(fit, latent, parts)
        prevalence = fit.parts.prevalences(axis=axis)["prevalence"]
        np.testing.assert_allclose(prevalence, (sizes / sizes.sum(axis=1, keepdims=True)).mean(axis=0), rtol=1e-5)
        counts = by_hand(fit, latent + axis, parts)
        shares = counts / counts.sum(axis=2, keepdims=True)
        found = fit.parts.members(axis, 9).sort_values(["component", "member"])
        np.testing.assert_allclose(found["probability"], shares.mean(axis=0).ravel(), rtol=1e-5)
        np.testing.assert_allclose(found["upper"], np.quantile(shares, 0.95, axis=0).ravel(), rtol=1e-5)
        np.testing.assert_allclose(fit._reader.member_means(axis), shares.mean(axis=0), rtol=1e-5)
        assert (fit._reader.member_spread(axis) > 0.0).all()


def test_what_communities_send_and_receive_counts(blocks, tucker):
    pi = by_hand(blocks, "cd", "j")
    sizes = pi.sum(axis=1) + pi.sum(axis=2)
    shares = sizes / sizes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(blocks.parts.prevalences()["prevalence"], shares.mean(axis=0), rtol=1e-5)
    sizes = by_hand(tucker, "c") + by_hand(tucker, "d")
    shares = sizes / sizes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tucker.parts.prevalences()["prevalence"], shares.mean(axis=0), rtol=1e-5)


def test_an_einsum_may_have_several_kinds_of_components(tucker):
    assert [part.many for part in tucker._reader.kinds] == ["communities", "regimes"]
    assert [part.axes for part in tucker._reader.kinds] == [("sender",), ("year",)]
    assert tucker.parts.prevalences().columns[0] == "community"
    assert tucker.parts.prevalences(axis="year").columns[0] == "regime"
    bare = einsum("ik,jd,kd->ij", {"k": 2, "d": 2}, SQUARE)
    assert [part.one for part in bare._reader.kinds] == ["component k", "component d"]
    assert einsum("dk,vk->dv", {"k": 2}, SQUARE)._reader.kinds[0].one == "component"


def test_members_of_a_fixed_factor_are_listed_without_doubt():
    known = np.array([[3.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    fit = einsum("dk,vk->dv", {"k": 2}, TENSOR[:, :, 0], fixed={"vk": known})
    found = fit.parts.members("v", 2)
    assert found["member"].tolist() == [0, 1, 3, 0]
    np.testing.assert_allclose(found[["probability", "lower", "upper"]].T, [[0.75, 0.25, 1.0, 0.0]] * 3)


def test_components_of_a_fixed_factor_are_the_same_by_their_numbers_in_all_chains():
    """Two that nearly overlap, whose documents chains may divide either way; data that hardly say anything."""
    known = np.zeros((12, 2))
    known[:8, 0] = known[2:10, 1] = 0.125
    rng = np.random.default_rng(3)
    counts = rng.poisson(rng.gamma(0.1, 4.0, (20, 2)) @ known.T)
    reports = counts + rng.geometric(0.3, counts.shape) - rng.geometric(0.3, counts.shape)
    options = QUICK | {"chains": 6}
    fit = cv.PoissonFactorization("dk,vk->dv", {"k": 2}, alpha=0.7, fixed={"vk": known}, **options).fit(reports)
    for axis in ("d", "v"):
        found = fit.parts.supported(axis, 1)
        assert sorted(found["component"]) == [0, 1]
        np.testing.assert_allclose(found["support"], 1.0)
    np.testing.assert_allclose(fit.parts.support()["support"], 1.0)
    found = fit.parts.members("v", 12).set_index(["component", "member"])["probability"]
    np.testing.assert_allclose(found[0][found[0] > 0], 0.125, rtol=1e-5)
    assert found[0].loc[8:11].max() == found[1].loc[[0, 1]].max() == 0.0
    stacked = Stack((fit, fit), ("one", "two"), np.array([0.5, 0.5]), np.zeros((1, 2)))
    np.testing.assert_allclose(stacked.supported("v", 1)["support"], 1.0)


def test_components_that_no_single_axis_holds_are_not_listed():
    fit = einsum("dkt,vkt->dv", {"k": 2, "t": 2}, SQUARE)
    assert (fit._reader.kinds, fit._reader.member_axes) == ((), ())
    with pytest.raises(ValueError, match=r"components whose members can be listed, got 'dkt,vkt->dv'"):
        fit.parts.prevalences()
    with pytest.raises(ValueError, match=r"axis must be one of \[\], got 'd'"):
        fit.parts.members("d")
    double = einsum("dk,vk,dt,vt->dv", {"k": 2, "t": 2}, SQUARE)
    assert double._reader.member_axes == ()


def test_what_cannot_be_listed_is_refused(topics):
    for call, message in (
        (lambda: topics.parts.members("topic"), "axis must be one of ['doc', 'word'], got 'topic'"),
        (lambda: topics._reader.member_means("topic"), "axis must be one of ['doc', 'word'], got 'topic'"),
        (lambda: topics.parts.prevalences(axis="topic"), "axis must be one of ['doc', 'word'], got 'topic'"),
        (lambda: topics.parts.members("word", 0), "n must be a whole number of at least 1, got 0"),
        (lambda: topics.parts.members("word", 2, 1.0), "interval must be between 0 and 1, got 1.0"),
        (lambda: topics.parts.prevalences(0.0), "interval must be between 0 and 1, got 0.0"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()
    for call in (
        lambda f: f._reader.kinds,
        lambda f: f.parts.members("word"),
        lambda f: f._reader.network,
        lambda f: f.effects.table(),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(cv.TopicModel(2))


def test_a_model_of_one_s_own_has_all_of_it(chronicle, tmp_path):
    assert set(chronicle.parts.members("word", 4)["member"]) == set(WORDS)
    assert set(chronicle.parts.members("year", 3)["member"]) == set(YEARS)
    assert chronicle.parts.prevalences().columns[0] == "story"
    assert chronicle.parts.prevalences()["prevalence"].sum() == pytest.approx(1.0)
    chronicle.save(tmp_path / "fit.nc")
    again = Chronicle.load(tmp_path / "fit.nc").parts.members("word")
    pd.testing.assert_frame_equal(again, chronicle.parts.members("word"), check_dtype=False)
    assert Chronicle(2, **QUICK).fit(chronicled())._reader.network is None


@pytest.mark.parametrize("axis", ["doc", "word"])
def test_the_spread_of_a_component_compares_draws_with_the_mean_of_the_other_half(topics, axis):
    factor = topics.posterior["posterior"]["theta" if axis == "doc" else "phi"]
    values = factor.transpose("chain", "draw", "topic", axis).to_numpy().astype(float)
    values /= values.sum(axis=3, keepdims=True)
    found = []
    for chain in values:
        for s in range(8):
            other = chain[4:] if s < 4 else chain[:4]
            found.append(0.5 * np.abs(chain[s] - other.mean(axis=0)).sum(axis=1))
    np.testing.assert_allclose(topics._reader.member_spread(axis), np.mean(found, axis=0), rtol=1e-5)


def test_of_many_draws_some_are_compared(topics, monkeypatch):
    monkeypatch.setattr(posterior, "evenly", lambda size: np.array([0, size - 1]))
    values = topics.posterior["posterior"]["phi"].to_numpy().astype(float)[:, [0, -1]]
    between = 0.5 * np.abs(values[:, 0] - values[:, 1]).sum(axis=-1).mean(axis=0)
    np.testing.assert_allclose(topics._reader.member_spread("word"), between, rtol=1e-5)


def planted(level, tokens, seed=1):
    """A fit of planted topics, and the errors of its topics."""
    rng, alpha = np.random.default_rng(seed), np.exp(-level)
    truth = rng.dirichlet(np.full(60, 0.1), 4)
    counts = rng.poisson(rng.dirichlet(np.full(4, 0.1), 80) @ truth * tokens)
    noise = rng.geometric(1.0 - alpha, (2, *counts.shape))
    data = cv.PrivatizedCounts(counts + noise[0] - noise[1], alpha)
    options = {"draws": 60, "tune": 100, "chains": 1, "seed": 1, "threads": 1, "progress": False}
    return cv.TopicModel(4, likelihood="poisson", **options).fit(data), truth


def test_topics_under_the_noise_are_said_not_to_be_found():
    strong, truth = planted(0.5, 5, seed=4)
    order = cv.evaluation.match_topics(truth, strong.components_)
    errors = 0.5 * np.abs(strong.components_[order] - truth).sum(axis=1)
    assert errors.min() > 0.5
    assert list(strong.parts.undetermined().values()) == [(3, 4)]
    assert "3 of 4 topics are largely undetermined" in strong.diagnostics().verdict


def test_topics_above_the_noise_are_found():
    weak, truth = planted(3.0, 200)
    order = cv.evaluation.match_topics(truth, weak.components_)
    errors = 0.5 * np.abs(weak.components_[order] - truth).sum(axis=1)
    spread = weak._reader.member_spread("word")[order]
    assert errors.max() < 0.3
    np.testing.assert_allclose(spread, errors, rtol=0.5)
    assert list(weak.parts.undetermined().values()) == [(0, 4)]
    assert "undetermined" not in weak.diagnostics().verdict
    assert weak._reader.unshared() == []


def test_a_single_draw_determines_nothing_that_could_be_said():
    fit = cv.TopicModel(2, alpha=0.3, **QUICK | {"draws": 1, "chains": 1}).fit(TENSOR[:, :, 0])
    assert np.isnan(fit._reader.member_spread("word")).all()
    assert list(fit.parts.undetermined().values()) == [(0, 2)]


SIZE, CHAINS, DRAWS = (9, 12), 4, 20
TERMS = [f"w{v}" for v in range(SIZE[1])]
BRIEF = {"chains": CHAINS, "draws": DRAWS, "tune": 1, "seed": 1, "threads": 1, "progress": False}


@pytest.fixture(scope="module")
def fit():
    """A fit whose first two topics are the same in all chains, in another order, and whose third is chain 3's own."""
    rng = np.random.default_rng(1)
    data = cv.PrivatizedCounts(rng.poisson(2.0, SIZE), 0.3, column_labels=TERMS)
    found = cv.TopicModel(3, likelihood="poisson", **BRIEF).fit(data)
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
        found = cv.TopicModel(3, likelihood="poisson", **BRIEF | {"chains": chains}).fit(data)
    draws = found.posterior["posterior"]
    draws["theta"][:] = rng.gamma(2.0, 1.0, draws["theta"].shape)
    for chain in range(chains):  # every topic is a word of its own
        draws["phi"][chain] = 0.01 / SIZE[1] + 0.99 * np.eye(SIZE[1])[3 * chain : 3 * chain + 3]
    found._adopt(found.posterior)
    assert found.parts.support()["support"].tolist() == [1 / chains] * (3 * chains)
    said, lost = (found.diagnostics(), "The topics cannot be found: no topic was found by more than half of the chains")
    assert said.verdict.count(lost) == 1
    assert "components" not in said.verdict
    assert said.state != "safe to report"
    monkeypatch.setattr(Parts, "undetermined", lambda parts: {parts.kinds[0]: (3, 3)})
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
    topic = TERMS.index(rows["word"].iloc[0]) // 3
    assert rows["word"].tolist() == TERMS[3 * topic : 3 * topic + 3]
    values, size, support = of_topic(fit, topic)
    np.testing.assert_allclose(rows["probability"], values.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(rows["lower"], np.quantile(values, 0.05, axis=0), rtol=1e-6)
    np.testing.assert_allclose(rows["upper"], np.quantile(values, 0.95, axis=0), rtol=1e-6)
    np.testing.assert_allclose(rows["prevalence"], size.mean(), rtol=1e-6)
    return support


def test_topics_have_the_words_and_the_intervals_of_the_chains_that_have_them(fit):
    table = fit.topics(3)
    assert table.columns.tolist() == [
        *("topic", "support", "prevalence", "rank", "word", "probability", "lower", "upper")
    ]
    assert table["support"].iloc[::3].tolist() == [1.0, 1.0, 0.75, 0.25]
    for _, rows in table.groupby("topic"):
        assert check_rows(fit, rows) == rows["support"].iloc[0]


def test_every_table_numbers_topics_as_the_first_chain_does(fit):
    every, own = fit.topics(3), fit.top_words(3)
    phi = fit.posterior["posterior"]["phi"].to_numpy()[0].mean(axis=0)
    assert own["topic"].unique().tolist() == [0, 1, 2]
    assert sorted(every["topic"].unique()) == [0, 1, 2, 3]
    shares = fit.parts.prevalences()
    for topic, rows in own.groupby("topic"):
        assert rows["word"].iloc[0] == TERMS[phi[topic].argmax()]
        check_rows(fit, rows)
        same = every[every["topic"] == topic].drop(columns="support").reset_index(drop=True)
        np.testing.assert_array_equal(same.to_numpy(), rows.to_numpy())
        assert shares["prevalence"][topic] == rows["prevalence"].iloc[0]
        values = of_topic(fit, TERMS.index(rows["word"].iloc[0]) // 3)
        np.testing.assert_allclose(shares["lower"][topic], np.quantile(values[1], 0.05), rtol=1e-6)
        centre = fit.components_[topic, phi[topic].argmax()]
        np.testing.assert_allclose(centre, values[0][:, 0].mean(), rtol=1e-5)
    support = fit.parts.support()
    assert support["component"].tolist() == every["topic"].iloc[::3].tolist()
    assert support["support"].tolist() == [1.0, 1.0, 0.75, 0.25]
    np.testing.assert_array_equal(support["prevalence"], every["prevalence"].iloc[::3])


def test_new_rows_are_of_the_topics_of_the_chains_that_have_them_all(fit):
    """Chain 3 has another topic, so that its draws stay out; those of the others are numbered as in the first."""
    orders = draws_alike(fit)
    assert [s for s, _ in orders] == list(range(3 * DRAWS))
    phi = fit.posterior["posterior"]["phi"].to_numpy().reshape(-1, 3, SIZE[1])
    peaks = {tuple(phi[s][order].argmax(axis=1)) for s, order in orders}
    assert len(peaks) == 1
    data = cv.PrivatizedCounts(np.eye(SIZE[1], dtype=int)[[0, 3, 6]] * 40, 0.3, column_labels=TERMS)
    found = fit.transform(data)
    np.testing.assert_array_equal(np.array(TERMS)[list(peaks.pop())][found.argmax(axis=1)], ["w0", "w3", "w6"])


def test_topics_of_the_same_support_go_by_their_size(fit):
    first = fit.topics(1)
    assert first["prevalence"].iloc[0] > first["prevalence"].iloc[1]
    assert first["word"].tolist() == ["w0", "w3", "w6", "w9"]


def test_every_kind_of_component_has_support():
    square = cv.PrivatizedCounts(np.random.default_rng(2).poisson(2.0, (6, 6)), 0.3)
    found = cv.BlockModel(2, **BRIEF).fit(square).communities(2)
    assert found.columns[0] == "community"
    assert (found["actor"] < 6).all()
    tensor = cv.PrivatizedCounts(np.random.default_rng(2).poisson(2.0, (4, 3, 2)), 0.3)
    table = cv.TensorModel(2, **BRIEF).fit(tensor).parts.supported("mode1", 1)
    assert ((table["support"] > 0.0) & (table["support"] <= 1.0)).all()


def test_a_network_is_of_the_chains_that_have_all_communities():
    """In chain 1 communities have other numbers, in chain 2 one is another: it would blur means and blocks."""
    square = cv.PrivatizedCounts(np.random.default_rng(2).poisson(2.0, (6, 6)), 0.3)
    found = cv.BlockModel(2, **BRIEF | {"chains": 3}).fit(square)
    draws, rng = found.posterior["posterior"], np.random.default_rng(3)
    groups = np.eye(3).repeat(2, axis=0)  # (actor, group)
    blocks = np.array([[9.0, 2.0], [1.0, 4.0]])
    for chain, own in enumerate(([0, 1], [1, 0], [0, 2])):
        draws["theta"][chain] = groups[:, own] / 2.0 + rng.uniform(0.0, 0.01, (DRAWS, 6, 2))
        draws["pi"][chain] = blocks[own][:, own] if chain < 2 else 50.0
    found._adopt(found.posterior)
    network = found._reader.network
    np.testing.assert_allclose(network.memberships, groups[:, :2] / 2.0, atol=0.01)
    assert len(network.block_draws) == 2 * DRAWS
    np.testing.assert_allclose(network.blocks / network.blocks.sum(), blocks / 16.0, atol=0.02)
    np.testing.assert_array_equal(found.memberships_, network.memberships)
    np.testing.assert_array_equal(found.blocks_, network.blocks)


def test_a_fit_of_one_chain_has_topics_and_cannot_say_their_support(fit):
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, SIZE), 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        point = cv.TopicModel(2, method=cv.EM(max_iter=3), seed=1, threads=1, progress=False).fit(data)
        one = cv.TopicModel(2, **BRIEF | {"chains": 1}).fit(data)
    for single in (point, one):
        assert single.topics()["support"].isna().all()
        assert single.topics()["word"].tolist() == single.top_words(8)["word"].tolist()
    assert "lower" not in point.topics()
    assert "uncalibrated_lower" in point.topics(uncalibrated=True)
    for arguments, message in (((0,), "n must be"), ((3, 1.5), "interval must be")):
        with pytest.raises(ValueError, match=message):
            fit.topics(*arguments)
    with pytest.raises(ValueError, match="axis must be one of"):
        fit.parts.supported("sentence")
