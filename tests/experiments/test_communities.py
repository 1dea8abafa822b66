import sys
import warnings

import networkx
import numpy as np
import pytest
from PIL import Image
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from countveil.cli.app import app
from countveil.experiments import communities
from countveil.experiments.communities import LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, Plan
from countveil.fit import BlockModel
from countveil.inference.diagnostics import FitWarning
from tests.interruption import interrupted

PLAN = Plan(n_communities=3, tune=20, draws=20, chains=2)


@pytest.fixture(scope="module")
def study():
    graph = networkx.karate_club_graph()
    stages = []
    found = communities.run(graph, PLAN, stages.append)
    assert "fitting: naive" in stages
    return graph, found


def test_every_method_is_scored_on_the_pairs(study):
    graph, found = study
    assert set(found.rates) == set(found.scores["method"]) == {OURS, NAIVE, LEAST_SQUARES, TRUE_COUNTS}
    np.testing.assert_array_equal(found.counts, networkx.to_numpy_array(graph, weight="weight"))
    pairs = np.triu_indices(34, 1)
    row = found.scores.set_index("method").loc[OURS]
    expected = np.abs(found.rates[OURS] - found.counts)[pairs].mean()
    assert row["mae"] == pytest.approx(expected)
    assert found.scores.set_index("method").loc[NAIVE, "mae"] > expected


def test_matrices_are_symmetric_and_noise_is_on_every_pair(study):
    _, found = study
    for matrix in (found.counts, found.reports, *found.rates.values()):
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-6, atol=1e-9)  # draws are kept as float32
    pairs = np.triu_indices(34, 1)
    empty = found.counts[pairs] == 0
    positive = (found.reports[pairs][empty] > 0).mean()
    share = np.exp(-1) / (1 + np.exp(-1))
    assert abs(positive - share) < 5 * np.sqrt(share * (1 - share) / empty.sum())


def test_an_interrupted_fit_is_no_result(monkeypatch):
    monkeypatch.setattr(BlockModel, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        communities.run(networkx.karate_club_graph(), PLAN, lambda _: None)


@pytest.mark.parametrize("kind", [FitWarning, ConvergenceWarning])
def test_what_a_fit_warns_of_is_left_to_the_table_of_scores(monkeypatch, kind):
    """Warnings are errors here."""
    monkeypatch.setattr(BlockModel, "fit", lambda self, data: warnings.warn(kind("said"), stacklevel=2))
    monkeypatch.setattr(communities, "check_whole", lambda model: None)
    assert isinstance(communities.fitted(None, PLAN)[0], BlockModel)


def test_actors_of_a_community_are_side_by_side():
    class Fit:
        memberships_ = np.array([[0.6, 0.1], [0.0, 0.5], [0.4, 0.0], [0.0, 0.4]])
        blocks_ = np.array([[1.0, 0.0], [0.0, 5.0]])

    assert list(communities.by_community(Fit())) == [1, 3, 0, 2]


def test_the_figure_shows_what_is_known_and_every_way_but_the_true_counts(study):
    _, found = study
    shown = communities.panels(found)
    assert len(shown) == 5
    assert any("epsilon/N = 1" in title for title in shown)
    for matrix in shown.values():
        assert matrix.shape == (34, 34)
    side_by_side = next(iter(shown.values()))
    assert side_by_side[0, 1] == found.counts[found.order[0], found.order[1]]


@pytest.mark.long
def test_the_command_writes_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(communities, "Plan", lambda **given: PLAN._replace(level=given["level"]))
    ran = CliRunner().invoke(app, ["demo", "communities", "--epsilon-per-unit", "2", "-o", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert "epsilon/N = 2" in ran.output
    assert {path.name for path in tmp_path.iterdir()} == {"network.npz", "communities.csv", "communities.png"}
    with Image.open(tmp_path / "communities.png") as image:
        assert min(image.size) > 500


def test_without_networkx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[demo\]'"):
        communities.load_les_miserables()
