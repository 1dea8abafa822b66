import numpy as np
import pytest

import countveil as cv
from countveil import plotting
from countveil.laws.counts import POISSON
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.plotting.posterior import laws_of_cells
from tests.count_laws import count_laws


def test_true_counts_are_drawn_as_their_laws(topic_fit, release):
    ax = plotting.true_counts(topic_fit, release, [(0, "word1"), (3, "$x_1$")])
    reports = np.asarray(release.reports)[[0, 3], [1, 8]]
    theta = topic_fit.posterior["posterior"]["theta"].to_numpy().reshape(-1, 12, 3)[:, [0, 3]]
    phi = topic_fit.posterior["posterior"]["phi"].to_numpy().reshape(-1, 3, 9)[:, :, [1, 8]]
    rates = np.einsum("sek,ske->se", theta.astype(float), phi.astype(float))
    laws = count_laws(reports, rates, TWO_SIDED_GEOMETRIC, np.full(2, release.alpha), POISSON)
    curves = [line for line in ax.lines if line.get_linestyle() == "-"]
    for curve, law in zip(curves, laws, strict=True):
        np.testing.assert_allclose(curve.get_ydata(), law[: len(curve.get_xdata())], rtol=1e-5, atol=1e-9)
    said = [t.get_text() for t in ax.get_legend().get_texts()]
    assert said[0].startswith("0, word1 (reported ")
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"] == [max(r, 0) for r in reports]


def test_cells_of_a_tensor(tensor_fit):
    counts = np.random.default_rng(5).poisson(2.0, (5, 4, 3))
    data = cv.PrivatizedCounts(counts, 0.2, labels=[None, list("abcd"), ["x", "y", "z"]])
    found, labels, laws = laws_of_cells(tensor_fit, data, [(2, "c", "y"), (4, "a", "z")])
    assert found.tolist() == [counts[2, 2, 1], counts[4, 0, 2]]
    assert labels == ["2, c, y", "4, a, z"]
    rate = tensor_fit.rate().sel(who=2, what="c", year="y")
    assert len(laws) == 2
    assert float(rate) > 0.0


def test_traces_are_the_chains(topic_fit, release):
    ax = plotting.trace(topic_fit)
    stats = topic_fit.posterior["sample_stats"]
    for line, chain in zip(ax.lines, stats["log_likelihood"].to_numpy(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), chain)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["chain 0", "chain 1"]
    assert plotting.trace(topic_fit, "total_rate").get_ylabel() == "expected sum of all counts"
    em = cv.TopicModel(2, method=cv.EM(max_iter=20), seed=1).fit(release)
    ax = plotting.trace(em)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), em.posterior["optimisation"]["objective"])
    with pytest.raises(ValueError, match="quantity must be one of objective, got 'total_rate'"):
        plotting.trace(em, "total_rate")


def test_cells_that_are_not_there_are_refused(topic_fit, release):
    for cells, said in (
        ([(0, "nothing")], "cells must name a word of the fit, got 'nothing'"),
        ([(99, "word1")], "cells must name a doc of the fit, got 99"),
        ([("word1",)], r"must have 2 parts \(doc, word\)"),
        ([], "cells must name at least one cell, got none"),
    ):
        with pytest.raises(ValueError, match=said):
            plotting.true_counts(topic_fit, release, cells)
    other = cv.PrivatizedCounts(np.ones((2, 2), dtype=int), 0.1)
    with pytest.raises(ValueError, match=r"reports must hold the cells of the fit, doc x word = \(12, 9\)"):
        plotting.true_counts(topic_fit, other, [(0, "word1")])
    masked = cv.PrivatizedCounts(np.asarray(release.reports), release.alpha, np.arange(108).reshape(12, 9) == 1)
    with pytest.raises(ValueError, match="cells must not be masked, got a masked cell"):
        plotting.true_counts(topic_fit, masked, [(0, "word1")])
