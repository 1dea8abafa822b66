import networkx as nx
import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data.networks import above_diagonal, links_among
from countveil.data.observations import PrivatizedCounts
from tests.joint import draw_reports

pytestmark = pytest.mark.long

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
    with pytest.raises(ValueError, match=r"must mask each pair on both sides .* got \(0, 2\) masked and \(2, 0\)"):
        model.fit(cv.ExactCounts(counts, cv.links_among(4, [0], [2])))
    assert model.fit(cv.ExactCounts(counts, cv.links_among(4, [0], [2], directed=False))).rate().shape == (4, 4)


@pytest.mark.parametrize("truncate", [True, False])
def test_a_release_of_undirected_pairs_is_not_fitted_as_directed(truncate):
    counts = np.triu(np.random.default_rng(1).poisson(2.0, (12, 12)), 1)
    release = above_diagonal(cv.privatize(counts, cv.PrivacyLevel(1, 1), truncate))
    with pytest.raises(ValueError, match=r"X must be a directed network, got an undirected network"):
        cv.BlockModel(2, **SHORT).fit(release)
    unsaid = cv.Release(release.reports, release.mechanism, release.truncated)
    for data in (unsaid, cv.PrivatizedCounts(release.reports, np.full((12, 12), 0.3))):
        with pytest.raises(ValueError, match=r"reports only above the diagonal.*--undirected"):
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


@pytest.mark.parametrize(("n_actors", "level"), [(3, "strong noise"), (12, "no noise to speak of")])
@pytest.mark.parametrize("make", STATED)
def test_a_network_that_says_its_kind_is_fitted_as_that_kind_alone(make, level, n_actors):
    """However small it is, and however weak its noise."""
    graph = nx.path_graph(n_actors)
    nx.set_edge_attributes(graph, 1, "weight")
    for directed in (False, True):
        data = STATED[make](nx.DiGraph(graph) if directed else graph, LEVELS[level])
        wanted = "an undirected network, got a directed" if directed else "a directed network, got an undirected"
        with pytest.raises(ValueError, match=f"^X must be {wanted} network"):
            cv.BlockModel(2, directed=not directed, **SHORT).fit(data)
        cv.BlockModel(2, directed=directed, self_loops=True, **SHORT).fit(data)


def test_other_models_do_not_take_what_is_below_the_diagonal_for_reports():
    release = cv.privatize_graph(nx.path_graph(5), cv.PrivacyLevel(1, 1), weight=None)
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
    for data in (cv.ExactCounts(counts), cv.PrivatizedCounts(counts[:4, :4], 0.4), cv.PrivatizedCounts(counts, 1e-12)):
        assert cv.BlockModel(2, **SHORT).fit(data).n_features_in_ == data.shape[1]


PEOPLE = pd.DataFrame(
    {"group": list("ab" * 15), "age": np.random.default_rng(7).uniform(20.0, 60.0, 30)},
    index=[f"p{i}" for i in range(30)],
)
BY_GROUP = {"seed": 1, "threads": 1, "chains": 2, "likelihood": "poisson", "progress": False}


def of_groups(directed=True, seed=8):
    """Noisy counts of two communities that write to themselves; group b has more of the first, a of the second."""
    rng, group = np.random.default_rng(seed), (PEOPLE.group == "b").to_numpy(float)
    mean = np.exp(np.outer(group - 0.5, [2.0, -2.0]))
    theta = rng.gamma(2.0, mean / 2.0)
    reports = draw_reports(1.5 * theta @ theta.T, np.array(0.4), rng)
    reports = reports if directed else np.triu(reports, 1)
    return PrivatizedCounts(reports, 0.4, row_labels=list(PEOPLE.index))


@pytest.fixture(scope="module", params=[True, False], ids=["directed", "undirected"])
def by_group(request):
    model = cv.BlockModel(2, prevalence="~ group", draws=60, tune=60, directed=request.param, **BY_GROUP)
    return model.fit(of_groups(request.param), covariates=PEOPLE.iloc[::-1])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_communities_depend_on_covariates_of_actors(by_group):
    of_b = PEOPLE.group.to_numpy() == "b"
    first = int(np.argmax(by_group.memberships_[of_b].sum(axis=0)))  # the community of group b
    signs = [1.0, -1.0] if first == 0 else [-1.0, 1.0]
    effects, table = by_group.effects.table(), by_group.effects.contrast({"group": "b"}, {"group": "a"})
    assert list(effects.columns) == ["community", "support", "term", "estimate", "lower", "upper"]
    assert (signs * effects.estimate > 1.0).all()
    assert (signs * table.estimate > 0.4).all()
    assert table.estimate.sum() == pytest.approx(0.0, abs=1e-9)
    assert by_group.tables["effects"].equals(effects)
    draws = by_group.posterior["posterior"]
    assert draws["theta_effect"].dims == ("chain", "draw", "term", "community")
    assert draws["theta_shape"].dims == draws["theta_rate"].dims == ("chain", "draw", "community")
    assert by_group.covariates_.frame.group.tolist() == PEOPLE.group.tolist()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_expected_shares_are_of_what_actors_send_and_receive(by_group):
    """Memberships are drawn, and their shares of all messages counted by adding up rates."""
    table = by_group.effects.prevalence(pd.DataFrame({"group": ["a", "b"]}))
    np.testing.assert_allclose(table.groupby("row").estimate.sum(), 1.0, atol=1e-9)
    rng, x = np.random.default_rng(1), by_group.covariates_.rows(PEOPLE.assign(group="b"))[0]
    names = "theta_shape", "theta_rate", "theta_effect", "theta_shape_effect", "pi", "theta"
    found = np.empty((2, 60, 2))
    for chain, s in np.ndindex(2, 60):
        own = by_group.posterior["posterior"].dataset.isel(chain=chain, draw=s)
        shape, rate, effect, of_shape, pi, members = (own[name].to_numpy() for name in names)
        tilt, others = np.exp(x @ of_shape), members.sum(axis=0)  # one, of each community
        theta = rng.gamma(shape * tilt, np.exp(x @ effect) / tilt / rate, (400, 2))
        messages = theta * (pi @ others) + theta * (others @ pi)
        found[chain, s] = (messages / messages.sum(axis=1, keepdims=True)).mean(axis=0)
    for number, one in by_group._reader.numbered("c"):
        row = table[(table.community == number) & (table.row == "b")].iloc[0]
        own = found.mean(axis=1)[one.chains, one.components]
        expected = np.average(own, weights=by_group.weights_[one.chains])
        assert row.estimate == pytest.approx(expected, abs=0.01)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_network_with_covariates_comes_back_from_its_file(by_group, tmp_path):
    by_group.save(tmp_path / "fit.nc")
    found = cv.BlockModel.load(tmp_path / "fit.nc")
    assert found.effects.table().equals(by_group.effects.table())
    a, b = {"group": "b"}, {"group": "a"}
    pd.testing.assert_frame_equal(found.effects.contrast(a, b), by_group.effects.contrast(a, b))
    assert found.covariates_.frame.equals(by_group.covariates_.frame)
    ax = cv.plotting.effects(found, a, b)
    assert ax.get_xlabel().startswith("difference in the expected share of an actor's messages")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_chains_of_a_network_with_covariates_go_on_from_a_checkpoint(tmp_path):
    path, data, asked = tmp_path / "chains.npz", of_groups(), {"prevalence": "~ group + age", "tune": 4}
    cv.BlockModel(2, draws=4, **asked, **BY_GROUP).fit(data, covariates=PEOPLE, checkpoint=path)
    again = cv.BlockModel(2, draws=4, **asked, **BY_GROUP)
    again.fit(data, covariates=PEOPLE, checkpoint=path, resume=True)
    plain = cv.BlockModel(2, draws=4, **asked, **BY_GROUP).fit(data, covariates=PEOPLE)
    for name in ("theta", "theta_effect", "theta_shape"):
        np.testing.assert_array_equal(again.posterior["posterior"][name], plain.posterior["posterior"][name])
    with pytest.raises(ValueError, match="got data or settings that differ"):
        again.fit(data, covariates=PEOPLE.assign(age=1.0 / PEOPLE.age), checkpoint=path, resume=True)
    without = cv.BlockModel(2, draws=4, tune=4, **BY_GROUP).fit(data)
    assert plain.posterior.attrs["masked_cells"] == without.posterior.attrs["masked_cells"] == 30


def test_a_graph_has_covariates_by_its_nodes():
    graph = nx.gnm_random_graph(12, 30, seed=2, directed=True)
    nx.set_edge_attributes(graph, 1, "weight")
    named = nx.relabel_nodes(graph, {i: f"p{11 - i}" for i in range(12)})
    fit = cv.BlockModel(2, prevalence="~ age", self_loops=True, alpha=0.0, **SHORT)
    fit.fit(named, covariates=PEOPLE[:12])
    np.testing.assert_array_equal(fit.covariates_.frame.age, PEOPLE.age[[*named.nodes]])


@pytest.mark.parametrize(
    ("changes", "covariates", "said"),
    [
        ({"prevalence": None}, PEOPLE, "covariates require prevalence, a formula of .*BlockModel"),
        ({}, None, "covariates must be given with prevalence '~ group', got none"),
        ({}, PEOPLE[1:], "covariates must have a row for every row of the data, got none for 'p0'"),
        ({"method": "augmented-gibbs"}, PEOPLE, "prevalence requires method 'gibbs'"),
        ({"method": "cavi"}, PEOPLE, "prevalence requires method 'gibbs'"),
        ({"n_communities": "auto"}, PEOPLE, "n_communities must be a number with prevalence"),
        ({"prior_rate": 1.0}, PEOPLE, "prior_rate must be None with prevalence"),
    ],
)  # fmt: skip
def test_what_goes_with_covariates_of_actors(changes, covariates, said):
    model = cv.BlockModel(**({"n_communities": 2, "prevalence": "~ group"} | SHORT | changes))
    with pytest.raises(ValueError, match=said):
        model.fit(of_groups(), covariates=covariates)
