"""Tables of documents, words and pairs of topics, against loops over draws."""

import itertools

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit.documents import correlations
from countveil.inference.matching import keep_weights, places

SIZE, CHAINS, DRAWS = (9, 12), 4, 20
WORDS = [f"w{v}" for v in range(SIZE[1])]
TITLES = [f"doc {d}" for d in range(SIZE[0])]
QUICK = {"chains": CHAINS, "draws": DRAWS, "tune": 1, "seed": 1, "threads": 1, "progress": False}
WEIGHTS = {"equal": np.full(CHAINS, 0.25), "unequal": np.array([0.4, 0.1, 0.3, 0.2])}


@pytest.fixture(scope="module", params=["poisson", "bursts"])
def planted(request):
    """A fit whose first two topics are the same in all chains, in another order, and whose third is chain 3's own."""
    rng = np.random.default_rng(1)
    data = cv.PrivatizedCounts(rng.poisson(2.0, SIZE), 0.3, row_labels=TITLES, column_labels=WORDS)
    bursty = {"likelihood": "negative-binomial", "dispersion": "column"}
    chosen = {"likelihood": "poisson"} if request.param == "poisson" else bursty
    found = cv.TopicModel(3, **chosen, **QUICK).fit(data)
    draws = found.posterior["posterior"]
    for chain in range(CHAINS):
        order = rng.permutation([0, 1, 3 if chain == 3 else 2])
        topics = np.zeros((4, SIZE[1]))
        for k in range(4):
            topics[k, 3 * k : 3 * k + 3] = 0.5, 0.3, 0.2
        near = 0.9 * topics[order] + 0.1 * rng.dirichlet(np.ones(SIZE[1]), (DRAWS, 3))
        draws["phi"][chain] = near
        draws["theta"][chain] = rng.gamma(1.0, [[10.0, 5.0, 1.0, 1.0][k] for k in order], (DRAWS, SIZE[0], 3))
    found._adopt(found.posterior)
    return found


@pytest.fixture(params=WEIGHTS)
def fit(planted, request):
    keep_weights(planted.posterior, WEIGHTS[request.param])
    planted._matched = {}
    return planted


def counts_of(fit):
    """[(k by the number that tables use, expected counts (D, K, V))] of every draw that the mixture has."""
    draws = fit.posterior["posterior"]
    theta, phi = (draws[name].to_numpy().astype(float) for name in ("theta", "phi"))
    means = np.ones((CHAINS, DRAWS, SIZE[1]))
    if "p" in draws:
        p = draws["p"].to_numpy().astype(float)
        means = np.array([[fit.model_.likelihood.mean(1.0, (own,)) for own in chain] for chain in p])
    numbers = {
        (c, k): number
        for number, one in enumerate(fit._reader.matches("k"))
        for c, k in zip(one.chains, one.components, strict=True)
    }
    kept = places(fit.weights_, [DRAWS] * CHAINS)
    found = []
    for c in range(CHAINS):
        for s in kept[c]:
            counts = theta[c, s][:, :, None] * phi[c, s][None] * means[c, s]
            found.append(([numbers[c, k] for k in range(3)], counts))
    return found


def check(row, values, name):
    wanted = [np.mean(values), *np.quantile(values, [0.05, 0.95])]
    np.testing.assert_allclose([getattr(row, name), row.lower, row.upper], wanted, rtol=2e-5, atol=1e-7)


def shares_of(fit, d):
    """{number: shares of document d in the draws that have the topic}, and all of them draw by draw."""
    found, every = {}, []
    for numbers, counts in counts_of(fit):
        own = counts[d].sum(axis=1) / counts[d].sum()
        every.append(own)
        for number, share in zip(numbers, own, strict=True):
            found.setdefault(number, []).append(share)
    return found, np.array(every)


def test_shares_of_documents_against_a_loop(fit):
    table = fit.documents.shares()
    assert table.columns.tolist() == ["document", "topic", "support", "share", "lower", "upper"]
    assert table["document"].unique().tolist() == TITLES
    assert table["topic"].tolist()[:4] == fit.topics(1)["topic"].tolist()
    np.testing.assert_array_equal(table["support"][:4], fit.topics(1)["support"])
    for d, title in enumerate(TITLES):
        values, _ = shares_of(fit, d)
        for row in table[table["document"] == title].itertuples():
            check(row, values[row.topic], "share")
    wide = table.pivot(index="document", columns="topic", values="share")
    assert wide.shape == (SIZE[0], 4)


def test_some_documents_are_those_of_the_whole_table(fit):
    some, every = fit.documents.shares(["doc 7", 2]), fit.documents.shares()
    assert some["document"].unique().tolist() == ["doc 7", "doc 2"]
    for title, rows in some.groupby("document"):
        np.testing.assert_array_equal(rows["share"].to_numpy(), every[every["document"] == title]["share"].to_numpy())


def test_top_documents_are_those_with_the_largest_shares(fit):
    every = fit.documents.shares()
    for topic in fit.topics(1)["topic"]:
        found = fit.documents.top(topic, 4)
        own = every[every["topic"] == topic].sort_values("share", ascending=False, kind="stable").head(4)
        assert found["document"].tolist() == own["document"].tolist()
        assert found["rank"].tolist() == [1, 2, 3, 4]
        assert (found["topic"] == topic).all()
        for name in ("support", "share", "lower", "upper"):
            np.testing.assert_allclose(found[name], own[name])


def test_similar_documents_overlap_most_in_every_draw(fit):
    found = fit.documents.similar("doc 3", 8)
    own = shares_of(fit, 3)[1]
    for row in found.itertuples():
        check(row, np.minimum(own, shares_of(fit, TITLES.index(row.document))[1]).sum(axis=1), "overlap")
    assert found["overlap"].is_monotonic_decreasing
    assert sorted(found["document"]) == sorted(set(TITLES) - {"doc 3"})
    assert fit.documents.similar(3, 2)["document"].tolist() == found["document"].tolist()[:2]


def test_a_label_that_several_documents_have_is_refused_and_their_numbers_are_not():
    titles = ["one", "two", "two", "three"]
    data = cv.PrivatizedCounts(np.arange(12).reshape(4, 3), 0.3, row_labels=titles)
    fit = cv.TopicModel(2, **QUICK).fit(data)
    with pytest.raises(ValueError, match="document must name one, got 'two', the label of 2"):
        fit.documents.shares(["one", "two"])
    assert fit.documents.shares([2])["document"].tolist() == ["two"] * len(fit.documents.shares(["one"]))
    assert fit.documents.similar("three", 3)["document"].tolist().count("two") == 2


def test_words_of_a_document_are_of_all_topics(fit):
    found = fit.documents.words("doc 4", SIZE[1])
    words = np.array([counts[4].sum(axis=0) / counts[4].sum() for _, counts in counts_of(fit)])
    for row in found.itertuples():
        check(row, words[:, WORDS.index(row.word)], "probability")
    assert found["rank"].tolist() == list(range(1, SIZE[1] + 1))
    assert found["probability"].is_monotonic_decreasing
    pd.testing.assert_frame_equal(fit.documents.words(4, 2), found.head(2))


def test_a_word_is_found_in_every_topic(fit):
    found, listed = fit.documents.find_word("w4"), fit.topics(SIZE[1])
    values = {}
    for numbers, counts in counts_of(fit):
        for number, share in zip(numbers, counts[:, :, 4].sum(axis=0) / counts[:, :, 4].sum(), strict=True):
            values.setdefault(number, []).append(share)
    assert found["topic"].nunique() == 4
    assert found["probability"].is_monotonic_decreasing
    for row in found.itertuples():
        np.testing.assert_allclose(row.share, np.mean(values[row.topic]), rtol=1e-5)
        (same,) = listed[(listed["topic"] == row.topic) & (listed["word"] == "w4")].itertuples()
        for name in ("support", "prevalence", "rank", "probability", "lower", "upper"):
            np.testing.assert_allclose(getattr(row, name), getattr(same, name), rtol=1e-6)


def test_correlations_against_numpy(fit):
    found = fit.documents.correlations()
    values = {}
    for numbers, counts in counts_of(fit):
        shares = counts.sum(axis=2) / counts.sum(axis=(1, 2))[:, None]
        every = np.corrcoef(shares.T)
        for i, j in itertools.permutations(range(3), 2):
            values.setdefault((numbers[i], numbers[j]), []).append(every[i, j])
    assert len(found) == 5  # no chain has both the third and the fourth
    for row in found.itertuples():
        check(row, values[row.topic, row.other], "correlation")
        assert min(abs(row.support - np.array([1.0, 1.0 - fit.weights_[3], fit.weights_[3]]))) < 1e-9


def test_what_is_not_there_is_refused_with_what_is_near(planted):
    for call, message in (
        (
            lambda: planted.documents.find_word("w44"),
            r"word must be a label of the fit or its number, got 'w44'; near it: w4",
        ),
        (lambda: planted.documents.similar(9), "document must be a number from 0 to 8 or a label, got 9"),
        (lambda: planted.documents.shares(["no such"]), "document must be a label"),
        (lambda: planted.documents.top(4), r"topic must be one of \[0, 1, 2, 3\], got 4"),
        (lambda: planted.documents.top(0, 0), "n must be"),
        (lambda: planted.documents.words("doc 4", 0), "n must be"),
        (lambda: planted.documents.correlations(1.0), "interval must be"),
        (lambda: planted.documents.shares([True]), "document must be a number from 0 to 8 or a label, got True"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_one_chain_and_a_point_have_tables_without_support(planted):
    data = cv.PrivatizedCounts(np.random.default_rng(1).poisson(2.0, SIZE), 0.3)
    point = cv.TopicModel(2, method=cv.EM(max_iter=3), seed=1, threads=1, progress=False).fit(data)
    shares = point.documents.shares()
    assert shares.columns.tolist() == ["document", "topic", "support", "share"]
    assert shares["support"].isna().all()
    np.testing.assert_allclose(shares.groupby("document")["share"].sum(), 1.0, rtol=1e-6)
    assert shares["document"].tolist() == np.repeat(np.arange(SIZE[0]), 2).tolist()
    assert len(point.documents.find_word(3)) == 2


def test_numbers_that_are_labels_are_labels():
    counts = np.random.default_rng(1).poisson(3.0, (5, 4))
    data = cv.ExactCounts(counts, row_labels=[str(i) for i in range(1, 6)], column_labels=["1", "a", "b", "c"])
    fit = cv.TopicModel(2, draws=4, tune=4, chains=1, seed=1, threads=1, progress=False).fit(data)
    assert set(fit.documents.shares([5, "1"])["document"]) == {"5", "1"}
    assert fit.documents.find_word(1)["word"].tolist() == ["1", "1"]
    assert fit.documents.find_word(2)["word"].tolist() == ["b", "b"]
    with pytest.raises(ValueError, match="document must be one of the labels, which are all numbers, got 0"):
        fit.documents.shares([0])


@pytest.mark.parametrize("documents", ["doc 3", 3])
def test_documents_are_a_sequence(planted, documents):
    with pytest.raises(TypeError, match="documents must be a sequence of labels or numbers"):
        planted.documents.shares(documents)


def test_shares_that_do_not_vary_are_not_correlated():
    shares = np.array([[[0.1, 0.1, 0.1], [0.2, 0.3, 0.4], [0.7, 0.7, 0.7]]])
    for some in ([[shares]], [[shares[:, :, :1]], [shares[:, :, 1:]]]):
        np.testing.assert_allclose(correlations(some)[0][0], np.diag([0.0, 1.0, 0.0]), atol=1e-12)


def test_what_varies_by_rounding_alone_does_not_vary():
    shares = np.array([[[0.1, np.nextafter(0.1, 1.0), 0.1, 0.1], [0.9, 0.2, 0.4, 0.3]]])
    np.testing.assert_array_equal(correlations([[shares]])[0][0][0], [0.0, 0.0])


def test_parts_make_the_correlations_of_the_whole():
    shares = np.random.default_rng(1).dirichlet(np.ones(4), (3, 50)).transpose(0, 2, 1) + 100.0
    for sizes in ([50], [1, 20, 29]):
        parts = np.split(shares, np.cumsum(sizes)[:-1], axis=2)
        (found,) = correlations([part] for part in parts)
        np.testing.assert_allclose(found, [np.corrcoef(draw) for draw in shares], atol=1e-10)
