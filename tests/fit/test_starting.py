import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone

import countveil as cv
from countveil.fit.starting import dispersion_of, p_along, start_of
from tests.joint import method_with

SHORT = {"draws": 4, "tune": 0, "chains": 2, "seed": 1, "threads": 1}
METHODS = ("gibbs", "augmented-gibbs", "cavi", "bessel-cavi", "em", "svi")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Not safe yet"),
    pytest.mark.filterwarnings("ignore:Not safe yet"),
    pytest.mark.long,
]


def scene(rows=range(30), words=range(20)):
    """(data with labels, theta, topics)"""
    rng = np.random.default_rng(5)
    theta, topics = rng.gamma(0.3, 20.0, (30, 3)), rng.dirichlet(np.full(20, 0.2), 3)
    counts = rng.poisson(theta @ topics) + rng.geometric(0.9, (30, 20)) - rng.geometric(0.9, (30, 20))
    rows, words = list(rows), list(words)
    labels = {"row_labels": [f"d{i}" for i in rows], "column_labels": [f"w{i}" for i in words]}
    return cv.PrivatizedCounts(counts[np.ix_(rows, words)], 0.1, **labels), theta, topics


def first_scores(model, data):
    return model.fit(data).posterior["sample_stats"]["log_likelihood"].to_numpy()[:, 0]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_starts_at_what_it_is_given(method):
    data, theta, topics = scene()
    options = {**SHORT, "method": method_with(method, max_iter=2, passes=1)}
    named = cv.TopicModel(3, **options).fit(data)
    given = cv.TopicModel(3, start={"theta": theta, "phi": topics}, **options).fit(data)
    other = cv.TopicModel(3, start={"theta": theta, "phi": topics[::-1]}, **options).fit(data)
    draws = [fit.posterior["posterior"]["phi"].to_numpy() for fit in (named, given, other)]
    assert not np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[1], draws[2])


def test_chains_go_on_where_another_fit_ended():
    data, _, _ = scene()
    poisson = SHORT | {"likelihood": "poisson"}  # bursty counts have to find their p again
    earlier = cv.TopicModel(3, **{**poisson, "draws": 60}).fit(data)
    reached = earlier.posterior["sample_stats"]["log_likelihood"].to_numpy()[:, -30:]
    rng = np.random.default_rng(2)
    random = {"theta": rng.random((30, 3)), "phi": rng.random((3, 20))}
    far, near = (first_scores(cv.TopicModel(3, start=s, **poisson), data) for s in (random, earlier))
    assert (near > reached.mean() - 5.0 * reached.std()).all()
    assert near.min() > far.max() + 100.0


def test_more_topics_go_on_from_fewer():
    data, _, _ = scene()
    earlier = cv.TopicModel(3, **{**SHORT, "draws": 60}).fit(data)
    reached = earlier.posterior["sample_stats"]["log_likelihood"].to_numpy()[:, -30:]
    assert (first_scores(cv.TopicModel(6, start=earlier, **SHORT), data) > reached.mean() - 60.0).all()
    with pytest.raises(ValueError, match="start's theta must have 1 to 2 entries along 'topic', got 3"):
        cv.TopicModel(2, start=earlier, **SHORT).fit(data)


def test_labels_say_which_entries_are_meant():
    data, theta, topics = scene()
    shuffled = np.random.default_rng(1).permutation(20)
    word = [f"w{i}" for i in shuffled]
    phi = xr.DataArray(topics[:, shuffled].T, dims=("word", "topic"), coords={"word": word})
    plain, named = (
        cv.TopicModel(3, start={"theta": theta, "phi": value}, **SHORT).fit(data) for value in (topics, phi)
    )
    np.testing.assert_array_equal(
        plain.posterior["posterior"]["phi"].to_numpy(), named.posterior["posterior"]["phi"].to_numpy()
    )


def test_new_documents_and_words_join_an_earlier_fit():
    earlier = cv.TopicModel(3, **{**SHORT, "draws": 40}).fit(scene(range(20), range(15))[0])
    data = scene()[0]
    far, near = (first_scores(cv.TopicModel(3, start=s, **SHORT), data) for s in ("least-squares", earlier))
    assert np.isfinite(near).all()
    assert near.mean() > far.mean() - 100.0


def test_a_block_model_starts_at_another_one():
    rng = np.random.default_rng(1)
    data = cv.PrivatizedCounts(rng.poisson(np.kron(np.eye(2), np.ones((8, 8))) * 4.0 + 0.1), 0.2)
    earlier = cv.BlockModel(2, **{**SHORT, "draws": 40}).fit(data)
    reached = earlier.posterior["sample_stats"]["log_likelihood"].to_numpy()[:, -20:]
    for n, lost in ((2, 30.0), (4, 120.0)):  # four communities have more to learn in their first sweep
        assert (first_scores(cv.BlockModel(n, start=earlier, **SHORT), data) > reached.mean() - lost).all()


def test_a_start_is_resumed_only_with_the_same_factors(tmp_path):
    data, theta, topics = scene()
    path = tmp_path / "chains.npz"
    cv.TopicModel(3, start={"theta": theta, "phi": topics}, **SHORT).fit(data, checkpoint=path)
    with pytest.raises(ValueError, match="must come from the same data and settings"):
        cv.TopicModel(3, start={"theta": 2.0 * theta, "phi": topics}, **SHORT).fit(data, checkpoint=path, resume=True)


def test_rows_that_come_later_have_begun():
    data, theta, topics = scene()
    model = cv.TopicModel(3, method="svi", start={"theta": theta, "phi": topics}, draws=4, seed=1, threads=1)
    model.partial_fit(data)
    model.partial_fit(scene(range(7))[0])
    assert model.posterior["posterior"].sizes["doc"] == 7


def test_a_copy_keeps_the_fit_that_it_starts_at_and_a_file_does_not(tmp_path):
    data, _, _ = scene()
    earlier = cv.TopicModel(3, **SHORT).fit(data)
    later = cv.TopicModel(3, start=earlier, **SHORT)
    assert clone(later).start is earlier
    later.fit(data).save(tmp_path / "fit.nc")
    assert cv.TopicModel.load(tmp_path / "fit.nc").start == "auto"


def held(topics, **options):
    """A model whose topics are fixed."""
    return cv.PoissonFactorization(
        "dk,kv->dv", {"k": 3}, names=("theta", "phi"), fixed={"phi": topics}, **{**SHORT, **options}
    )


@pytest.mark.parametrize("method", ["gibbs", "em"])
def test_values_of_a_fixed_factor_are_refused_except_those_that_it_is_fixed_at(method):
    data, theta, topics = scene()
    topics[:, 0] = 0.0
    other = topics[::-1].copy()
    earlier = held(topics, method=method_with(method, max_iter=3), draws=500 if method == "em" else 4).fit(data)
    given = {"theta": theta, "phi": topics}
    for start in (earlier, given, {"theta": theta}, {"phi": topics}):
        held(topics, start=start).fit(data)
    free = cv.PoissonFactorization("dk,kv->dv", {"k": 3}, names=("theta", "phi"), start=earlier, **SHORT)
    free.fit(data)
    message = "start must leave out factors that are fixed, got 'phi' with values other than the fixed ones"
    for start in (earlier, given, {"phi": topics}, {"theta": theta[:, :2], "phi": other[:2]}, free):
        with pytest.raises(ValueError, match=message):
            held(other, start=start).fit(data)
    held(other, start={"theta": earlier.posterior["posterior"]["theta"].mean(("chain", "draw"))}).fit(data)


def test_tables_are_matched_by_their_labels():
    data, theta, topics = scene()
    rows, words = data.row_labels, data.column_labels
    tables = {
        "theta": pd.DataFrame(theta, index=rows, columns=["x", "y", "z"]),
        "phi": pd.DataFrame(topics, columns=words),
    }
    plain, ordered, shuffled, unlabelled = (
        cv.TopicModel(3, start=start, **SHORT).fit(data).posterior["posterior"]["phi"].to_numpy()
        for start in (
            {"theta": theta, "phi": topics},
            tables,
            {"theta": tables["theta"][::-1], "phi": tables["phi"][words[::-1]]},
            {"theta": pd.DataFrame(theta), "phi": pd.DataFrame(topics)},
        )
    )
    for each in (ordered, shuffled, unlabelled):
        np.testing.assert_array_equal(each, plain)
    with pytest.raises(ValueError, match="start's theta must share labels along 'doc' with the data"):
        cv.TopicModel(3, start={"theta": tables["theta"].set_axis(range(100, 130))}, **SHORT).fit(data)
    with pytest.raises(ValueError, match="start's theta must have 30 entries along 'doc', got 5"):
        cv.TopicModel(3, start={"theta": pd.DataFrame(theta[:5])}, **SHORT).fit(data)


def test_a_model_cannot_start_at_itself():
    data, _, _ = scene()
    first = cv.TopicModel(3, **SHORT).fit(data)
    second = cv.TopicModel(3, start=first, **SHORT).fit(data)
    third = cv.TopicModel(3, start=second, **SHORT).fit(data)
    with pytest.raises(ValueError, match="start must be another fit, got the model itself: make a new model"):
        first.set_params(start=first).fit(data)
    for later in (second, third):
        first.start = later
        with pytest.raises(ValueError, match="got the model itself, where an earlier one starts: make a new"):
            first.fit(data)
    first.start = "auto"
    assert "start=TopicModel(" in repr(third)
    assert third.get_params()["start"] is second
    assert clone(third).start is second


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("warm", "start must be one of .'auto', 'least-squares', 'spectral', 'em'., got 'warm'"),
        (3, "a fit, or a mapping from factors' names to arrays, got int"),
        (cv.TopicModel(3), "got TopicModel that is not fitted"),
        ({}, "start must hold at least one factor, got an empty mapping"),
        ({"psi": np.ones((30, 3))}, r"start's factors must be called \['theta', 'phi'\], got 'psi'"),
        ({"theta": np.ones((5, 3))}, "start's theta must have 30 entries along 'doc', got 5"),
        ({"theta": -np.ones((30, 3))}, "start's theta must be finite and not negative, got -1.0"),
        ({"theta": np.full((30, 3), np.nan)}, "start's theta must be finite and not negative, got nan"),
        ({"theta": np.ones(30)}, r"start's theta must have the axes \['doc', 'topic'\], got an array of shape"),
        ({"theta": np.full((30, 3), 1e200)}, r"start's theta must be at most 1e\+17, got 1e\+200"),
        ({"theta": np.ones((30, 3)) + 1j}, "start's theta must hold real numbers, got complex ones"),
        ({"theta_rate": np.ones(3)}, r"start must hold at least one of \['theta', 'phi'\], got \['theta_rate'\]"),
        (
            {"theta": np.ones((30, 3)), "phi": np.ones((2, 20))},
            "must have the same number along 'topic', got 3 in theta and 2 in phi",
        ),
        (
            {"phi": xr.DataArray(np.ones((3, 1)), dims=("topic", "word"), coords={"word": ["new"]})},
            r"start's phi must share labels along 'word' with the data \('w0', ...\), got 'new'",
        ),
        (
            {"phi": xr.DataArray(np.ones((3, 2)), dims=("topic", "word"), coords={"word": ["w1", "w1"]})},
            "start's phi must have every label along 'word' once, got 'w1' twice",
        ),
        ({"phi": xr.DataArray(np.ones((3, 20)), dims=("k", "v"))}, r"start's phi must have the dimensions"),
    ],
)
def test_what_can_be_no_start_is_refused(start, message):
    with pytest.raises(ValueError, match=message):
        cv.TopicModel(3, start=start, **SHORT).fit(scene()[0])


def test_the_dispersions_of_a_start_go_by_label():
    rng, words = np.random.default_rng(8), ["a", "b", "c", "d", "e"]
    counts = pd.DataFrame(rng.negative_binomial(0.5, [0.9, 0.5, 0.3, 0.2, 0.05], (30, 5)), columns=words)
    model = cv.TopicModel(2, alpha=0.0, draws=2, tune=40, chains=1, seed=1, threads=1, progress=False)
    earlier = model.fit(counts)

    def start(table):
        given = cv.TopicModel(2, alpha=0.0)._given(table)
        layout = earlier._layout(given.model.spec)
        theta, phi = start_of(earlier, given.model, layout, given.labels).sets[0]
        return theta @ phi.T

    expected = start(counts)
    np.testing.assert_allclose(start(counts[words[::-1]]), expected[:, ::-1])
    np.testing.assert_allclose(start(counts[words]), expected)


def test_a_word_that_a_start_did_not_have_gets_the_median_dispersion():
    p = xr.DataArray([0.1, 0.5, 0.7], dims="word", coords={"word": ["a", "b", "c"]})
    found = p_along(p, ["doc", "word"], [None, ["c", "new", "a"]])
    np.testing.assert_array_equal(found, [0.7, 0.5, 0.1])
    np.testing.assert_array_equal(p_along(p, ["doc", "word"], [["x"], None]), p)


def test_each_set_of_a_start_has_the_dispersion_of_its_own_chain():
    data = cv.PrivatizedCounts(np.random.default_rng(3).negative_binomial(0.5, 0.2, (12, 5)), 0.3)
    options = {"draws": 3, "tune": 5, "chains": 2, "seed": 1, "threads": 1, "progress": False}
    earlier = cv.TopicModel(2, **options).fit(data)
    p = earlier.posterior["posterior"]["p"]
    found = dispersion_of(earlier)
    assert not np.array_equal(p[0, -1], p[1, -1])
    for chain in range(2):
        np.testing.assert_array_equal(found[chain], p[chain, -1])
    point = cv.TopicModel(2, method=cv.EM(max_iter=3), dispersion="column", seed=1, progress=False).fit(data)
    (found,) = dispersion_of(point)
    np.testing.assert_array_equal(found, point.posterior["posterior"]["p"][0, 0])
    assert dispersion_of(cv.TopicModel(2, likelihood="poisson", **options).fit(data)) is None
