"""The matrix form of fits whose rows are any axes of the data."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import countveil as cv

QUICK = {"draws": 6, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTS = np.random.default_rng(3).poisson(2.0, (5, 4, 3))
LABELS = [None, list("abcd"), ["x", "y", "z"]]


def data(mask=None):
    return cv.PrivatizedCounts(COUNTS, 0.3, mask=mask, labels=LABELS)


@pytest.fixture(scope="module", params=["dyk,vk->dvy", "dk,vk,yk->dvy", "dvk,yk->dvy"])
def fit(request):
    return cv.PoissonFactorization(request.param, {"k": 2}, **QUICK).fit(data())


def test_the_axes_have_the_labels_of_the_data_or_numbers(fit):
    assert list(fit._reader.axes) == ["d", "v", "y"]
    assert [names.tolist() for names in fit._reader.axes.values()] == [list(range(5)), list("abcd"), list("xyz")]


def test_matrices_make_the_rates_of_every_draw(fit):
    rates = [theta @ phi.T for (theta, phi), _ in fit._reader.draws()]
    assert len(rates) == 12
    assert rates[0].shape == fit._reader.matrix_shape
    np.testing.assert_allclose(np.mean(rates, axis=0), fit._reader.as_matrix(fit.rate()), rtol=1e-12)


def test_cells_are_at_their_places_and_back(fit):
    places = np.argwhere(np.ones(COUNTS.shape, dtype=bool))
    rows, columns = fit._reader.matrix_places(places)
    np.testing.assert_array_equal(fit._reader.as_matrix(COUNTS)[rows, columns], COUNTS[tuple(places.T)])
    np.testing.assert_array_equal(fit._reader.places_of(rows, columns), places)


def test_data_are_at_the_places_of_their_rates(fit):
    mask = COUNTS == 3
    seen = fit._reader.data_matrix(fit._observed(data(mask)))
    rows, columns = fit._reader.matrix_places(np.argwhere(np.ones(COUNTS.shape, dtype=bool)))
    values = seen.cells(rows, columns)[0]
    assert seen.shape == fit._reader.matrix_shape
    np.testing.assert_array_equal(values[~mask.ravel()], COUNTS[~mask])
    assert (values[mask.ravel()] < 0).all()


def test_what_is_no_part_of_the_data_is_not_observed(tmp_path):
    counts = COUNTS[:4, :, 0]
    seen = cv.BlockModel(2, alpha=0.3)._observed(counts)
    assert seen.n_masked == 4
    assert cv.BlockModel(2, alpha=0.3, self_loops=True)._observed(counts).n_masked == 0
    with pytest.raises(TypeError, match="alpha"):
        cv.TopicModel(2)._observed(counts)


def test_releases_on_disk_are_observed_in_memory_s_form(tmp_path):
    release = cv.privatize(COUNTS[:, :, 0], cv.PrivacyLevel(1, 1))
    release.save(tmp_path / "part.npz")
    for method in ("gibbs", "svi"):
        seen = cv.TopicModel(2, method=method)._observed(cv.ReleaseFiles([tmp_path / "part.npz"]))
        rows, columns = np.indices((5, 4)).reshape(2, -1)
        expected = np.maximum(np.asarray(release.reports), 0).ravel()
        np.testing.assert_array_equal(np.maximum(seen.cells(rows, columns)[0], 0), expected)


NAMED = {"d": list("pqrst"), "v": list("abcd"), "y": ["x", "y", "z"]}


@pytest.fixture(scope="module")
def named_fit():
    data = cv.PrivatizedCounts(COUNTS, 0.3, labels=list(NAMED.values()))
    return cv.PoissonFactorization("dk,vk,yk->dvy", {"k": 2}, **QUICK).fit(data)


READERS = {
    "log_predictive": lambda fit, data: fit.log_predictive(data),
    "log_likelihood": lambda fit, data: fit.log_likelihood(data),
    "true_counts": lambda fit, data: cv.plotting.true_counts(fit, data, [("q", "b", "y")]),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("axis", range(3))
def test_data_beside_a_fit_have_its_labels_in_their_order(named_fit, read, axis):
    dim = list(NAMED)[axis]
    read(named_fit, cv.PrivatizedCounts(COUNTS, 0.3, labels=list(NAMED.values())))
    read(named_fit, cv.PrivatizedCounts(COUNTS, 0.3))
    labels = list(NAMED.values())
    labels[axis] = [labels[axis][0], *labels[axis][:0:-1]]
    first, other = NAMED[dim][1], NAMED[dim][-1]
    message = f"must have the labels of the fit in their order, got '{other}' for '{first}' at {dim} 1"
    with pytest.raises(ValueError, match=message):
        read(named_fit, cv.PrivatizedCounts(COUNTS, 0.3, labels=labels))


def test_cells_beside_a_fit_have_its_labels_in_their_order():
    frame = pd.DataFrame(COUNTS[:, :, 0], index=NAMED["d"], columns=NAMED["v"])
    data = cv.PrivatizedCounts(frame, 0.3)
    fit = cv.TopicModel(2, **QUICK).fit(data)
    cells = frame > 2
    np.testing.assert_array_equal(fit.log_predictive(data, cells), fit.log_predictive(data, cells.to_numpy()))
    message = "cells must have the word labels of reports in their order, got 'd' for 'a' at word 0"
    with pytest.raises(ValueError, match=message):
        fit.log_predictive(data, cells[list("dcba")])


def test_before_fit_there_is_nothing_to_read():
    model = cv.TopicModel(2)
    for use in (
        lambda: model._reader.axes,
        lambda: model._reader.matrix_shape,
        lambda: model._reader.draws(),
        lambda: model._reader.as_matrix(np.ones((2, 2))),
        lambda: model._reader.matrix_places(np.zeros((1, 2), dtype=int)),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use()


QUICK_OF_NETWORKS = {"draws": 8, "tune": 4, "chains": 2, "seed": 1, "threads": 1, "progress": False}
COUNTS_OF_NETWORKS = np.random.default_rng(4).poisson(2.0, (6, 6))
NAMES = list("abcdef")
DATA = cv.PrivatizedCounts(COUNTS_OF_NETWORKS, 0.3, row_labels=NAMES, column_labels=NAMES)


@pytest.mark.parametrize("directed", [True, False])
def test_a_network_is_what_the_posterior_holds(directed):
    data = DATA if directed else cv.PrivatizedCounts(np.triu(COUNTS_OF_NETWORKS, 1), 0.3)
    fit = cv.BlockModel(2, directed=directed, self_loops=directed, **QUICK_OF_NETWORKS).fit(data)
    found = fit._reader.network
    np.testing.assert_array_equal(found.memberships, fit.memberships_)
    np.testing.assert_array_equal(found.blocks, fit.blocks_)
    np.testing.assert_allclose(found.block_draws.mean(axis=0), fit.blocks_, rtol=1e-5)
    assert found.block_draws.shape == (16, 2, 2)
    assert (found.directed, found.self_loops) == (directed, directed)
    assert found.actors.tolist() == (NAMES if directed else list(range(6)))
    assert found.part.one == "community"


@pytest.mark.parametrize("dispersion", ["global", 0.6])
def test_blocks_are_expected_counts_between_communities_also_of_bursts(dispersion):
    """Memberships sum to one, so that the blocks add up to the rates of all pairs, self-loops included."""
    fit = cv.BlockModel(2, self_loops=True, dispersion=dispersion, **QUICK_OF_NETWORKS).fit(DATA)
    total = float(fit.rate().sum())
    assert fit.blocks_.sum() == pytest.approx(total, rel=1e-5)
    assert fit._reader.network.blocks.sum() == pytest.approx(total, rel=1e-5)
    totals = [theta.sum(axis=0) @ phi.sum(axis=0) for (theta, phi), _ in fit._reader.draws()]
    draws = fit.posterior["posterior"].dataset
    p = draws["p"].to_numpy().ravel() if dispersion == "global" else dispersion
    expected = np.array(totals) * p / ((1.0 - p) * -np.log1p(-p))  # the mean size of a burst
    np.testing.assert_allclose(fit._reader.network.block_draws.sum(axis=(1, 2)), expected, rtol=1e-5)


def test_an_einsum_of_the_same_form_is_a_network_whatever_the_order_of_its_core():
    options = {"shared": {"jd": "ic"}, "dims": {"i": "person", "c": "club"}}
    ranks = {"c": 2, "d": 2}
    fit = cv.PoissonFactorization("ic,jd,dc->ij", ranks, **options, **QUICK_OF_NETWORKS).fit(DATA)
    found, draws = fit._reader.network, fit.posterior["posterior"]
    core = draws["dc"].transpose("chain", "draw", "club", "d").to_numpy().reshape(-1, 2, 2)
    np.testing.assert_array_equal(found.block_draws, core)
    np.testing.assert_allclose(found.memberships.sum(axis=0), 1.0, rtol=1e-5)
    rate = np.einsum("ic,jd,cd->ij", found.memberships, found.memberships, found.blocks)
    np.testing.assert_allclose(rate.sum(), core.sum(axis=(1, 2)).mean(), rtol=1e-5)
    assert found.actors.tolist() == NAMES
    assert found.part.many == "clubs"
    assert fit._reader.data_in_words() == "6 actors and their directed contacts"


@pytest.mark.parametrize(
    ("spec", "ranks", "shared"),
    [
        ("ic,jd,cd->ij", {"c": 2, "d": 2}, None),
        ("ic,jc->ij", {"c": 2}, {"jc": "ic"}),
        ("ic,jc,c->ij", {"c": 2}, {"jc": "ic"}),
        ("dk,vk->dv", {"k": 2}, None),
    ],
)
def test_other_einsums_are_no_networks(spec, ranks, shared):
    names = [f"factor_{term}" for term in spec.split("->")[0].split(",")]
    same = None if shared is None else {f"factor_{a}": f"factor_{b}" for a, b in shared.items()}
    fit = cv.PoissonFactorization(spec, ranks, names=names, shared=same, **QUICK_OF_NETWORKS).fit(DATA)
    assert fit._reader.network is None


def test_memberships_that_are_no_shares_are_no_network():
    """Where what is between communities is known, the sizes stay with the actors."""
    options = {"shared": {"jd": "ic"}, "fixed": {"cd": np.ones((2, 2)) + np.eye(2)}}
    fit = cv.PoissonFactorization("ic,jd,cd->ij", {"c": 2, "d": 2}, **options, **QUICK_OF_NETWORKS).fit(DATA)
    assert fit._reader.network is None
    assert fit._reader.data_in_words() == "6 i × 6 j"
