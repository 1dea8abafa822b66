import networkx as nx
import numpy as np
import pytest

import countveil as cv
from countveil.data.networks import above_diagonal, links_among
from countveil.data.observations import PrivatizedCounts
from tests.joint import draw_reports

SHORT = {"seed": 3, "threads": 1, "draws": 3, "tune": 3, "chains": 2}


def test_self_loops_count_where_they_are_asked_for():
    counts = np.random.default_rng(1).poisson(2.0, (6, 6))
    more = counts + 40 * np.eye(6, dtype=int)
    for directed in (True, False):
        model = cv.BlockModel(2, self_loops=True, directed=directed, alpha=0.4, **SHORT)
        one, other = (model.fit(np.triu(each)).rate().to_numpy() for each in (counts, more))
        assert np.diagonal(other).mean() > 3.0 * np.diagonal(one).mean()


def test_held_out_links_are_predicted():
    """Two communities that write to themselves: links among some actors are found from all others."""
    rng, group = np.random.default_rng(3), np.arange(30) % 2
    rates = np.where(group[:, None] == group, 6.0, 0.5)
    reports = draw_reports(rates, np.array(0.4), rng)
    mask = links_among(30, range(8))
    model = cv.BlockModel(2, seed=1, threads=1, draws=60, tune=60, chains=1)
    found = model.fit(PrivatizedCounts(reports, 0.4, mask)).rate().to_numpy()
    hidden = mask & ~np.eye(30, dtype=bool)
    error = np.abs(found - rates)[hidden].mean()
    guess = np.abs(rates[~mask].mean() - rates)[hidden].mean()
    assert error < 0.5 * guess
    assert np.corrcoef(found[hidden], rates[hidden])[0, 1] > 0.9


def test_an_undirected_pair_masked_on_one_side_only_is_refused_as_that():
    counts = np.full((4, 4), 2)
    model = cv.BlockModel(2, directed=False, **SHORT)
    with pytest.raises(
        ValueError, match=r"must mask each pair on both sides .* got \(0, 2\) masked and \(2, 0\)"
    ):
        model.fit(cv.ExactCounts(counts, cv.links_among(4, [0], [2])))
    assert model.fit(cv.ExactCounts(counts, cv.links_among(4, [0], [2], directed=False))).rate().shape == (
        4,
        4,
    )


@pytest.mark.parametrize("truncate", [True, False])
def test_a_release_of_undirected_pairs_is_not_fitted_as_directed(truncate):
    counts = np.triu(np.random.default_rng(1).poisson(2.0, (12, 12)), 1)
    release = above_diagonal(cv.privatize(counts, cv.PrivacyLevel(1, 1), truncate))
    with pytest.raises(ValueError, match=r"X must be of directed pairs, got an undirected network"):
        cv.BlockModel(2, **SHORT).fit(release)
    unsaid = cv.Release(release.reports, release.mechanism, release.truncated)
    for data in (unsaid, cv.PrivatizedCounts(release.reports, np.full((12, 12), 0.3))):
        with pytest.raises(ValueError, match=r"reports above the diagonal alone.*--undirected"):
            cv.BlockModel(2, **SHORT).fit(data)
    assert cv.BlockModel(2, directed=False, **SHORT).fit(release).n_features_in_ == 12


LEVELS = {"strong noise": cv.PrivacyLevel(1, 1), "no noise to speak of": cv.PrivacyLevel(1000, 1)}
STATED = {
    "release": lambda graph, level: cv.privatize_graph(graph, level),
    "truncated release": lambda graph, level: cv.privatize_graph(graph, level, truncate=True),
    "table": lambda graph, level: cv.privatize(
        np.triu(nx.to_numpy_array(graph, dtype=int)), level, directed=graph.is_directed()
    ),
    "observations": lambda graph, level: PrivatizedCounts.from_release(cv.privatize_graph(graph, level)),
    "naive": lambda graph, level: cv.NaiveCounts(cv.privatize_graph(graph, level)),
    "reports": lambda graph, level: PrivatizedCounts.from_graph(graph, level.alpha),
    "true": lambda graph, level: cv.ExactCounts.from_graph(graph),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("make", STATED)
@pytest.mark.parametrize("n_actors", [3, 12])
def test_a_network_that_says_its_kind_is_fitted_as_that_kind_alone(make, level, n_actors):
    """However small it is, and however weak its noise."""
    graph = nx.path_graph(n_actors)
    for directed in (False, True):
        data = STATED[make](nx.DiGraph(graph) if directed else graph, LEVELS[level])
        wanted = "undirected pairs, got a directed" if directed else "directed pairs, got an undirected"
        with pytest.raises(ValueError, match=f"^X must be of {wanted} network"):
            cv.BlockModel(2, directed=not directed, **SHORT).fit(data)
        cv.BlockModel(2, directed=directed, self_loops=True, **SHORT).fit(data)


def test_other_models_do_not_take_what_is_below_the_diagonal_for_reports():
    release = cv.privatize_graph(nx.path_graph(5), cv.PrivacyLevel(1, 1))
    for found in (PrivatizedCounts.from_release(release), cv.NaiveCounts(release)):
        assert found.n_masked == 10
        assert (found.cells(*np.tril_indices(5, -1))[0] == -1).all()
    mask = links_among(5, [0], [4], directed=False)
    assert PrivatizedCounts.from_release(release, mask=mask).n_masked == 11
    fit = cv.TopicModel(2, **SHORT).fit(release)
    by_hand = PrivatizedCounts(release.reports, release.alpha, np.tri(5, k=-1, dtype=bool))
    np.testing.assert_array_equal(fit.rate(), cv.TopicModel(2, **SHORT).fit(by_hand).rate())


def test_directed_networks_that_only_look_undirected_are_fitted():
    """Without noise nothing below the diagonal is a fact, and with few actors it may be chance."""
    counts = np.triu(np.random.default_rng(1).poisson(2.0, (12, 12)), 1)
    for data in (
        cv.ExactCounts(counts),
        cv.PrivatizedCounts(counts[:4, :4], 0.4),
        cv.PrivatizedCounts(counts, 1e-12),
    ):
        assert cv.BlockModel(2, **SHORT).fit(data).n_features_in_ == data.shape[1]
