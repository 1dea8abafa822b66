import numpy as np
import pytest

from countveil import plotting
from countveil.plotting.networks import circle, communities_of, nice_ticks, rate_matrix


def test_the_heat_map_holds_the_rates_in_the_order_of_communities(block_fit):
    ax = plotting.block_matrix(block_fit)
    order, home, strength = communities_of(block_fit._reader.network)
    expected = block_fit.rate().to_numpy()[np.ix_(order, order)]
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(ax.images[0].get_array(), expected)
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"actor{i}" for i in order]
    assert len(ax.lines) == 2 * np.count_nonzero(np.diff(home[order]))
    assert np.count_nonzero(np.diff(home[order])) == len(np.unique(home)) - 1
    sizes = [strength[home == c].sum() for c in home[order]]
    assert (np.diff(sizes) <= 0.0).all()


@pytest.mark.parametrize("layout", ["spring", "circle"])
def test_the_network_draws_the_strongest_pairs_and_every_name(block_fit, layout):
    ax = plotting.network(block_fit, layout=layout, edges=5)
    (lines,) = (c for c in ax.collections if type(c).__name__ == "PathCollection" and not c.get_sizes().size)
    both = rate_matrix(block_fit, block_fit._reader.network) + rate_matrix(block_fit, block_fit._reader.network).T
    strongest = np.sort(both[np.triu_indices(8, 1)])[-5:]
    widths = np.asarray(lines.get_linewidths())
    np.testing.assert_allclose(((widths - 0.3) / 2.2) ** 2 * strongest[-1], strongest, rtol=1e-9)
    assert {t.get_text() for t in ax.texts} == {f"actor{i}" for i in range(8)}
    assert len(ax.get_legend().get_texts()) == len(np.unique(communities_of(block_fit._reader.network)[1]))
    few = plotting.network(block_fit, layout=layout, names=2)
    strongest_two = np.argsort(-communities_of(block_fit._reader.network)[2])[:2]
    assert {t.get_text() for t in few.texts} == {f"actor{i}" for i in strongest_two}


def test_places_on_the_circle_differ_and_are_the_same_every_time(block_fit):
    order, home, _ = communities_of(block_fit._reader.network)
    places = circle(order, home)
    np.testing.assert_allclose((places**2).sum(axis=1), 1.0)
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2) + 9.0 * np.eye(8)
    assert gaps.min() > 0.3
    first, second = (plotting.network(block_fit, layout="spring").collections[1].get_offsets() for _ in "ab")
    np.testing.assert_array_equal(first, second)


def test_without_networkx_the_circle_is_drawn_and_the_spring_says_what_to_install(block_fit, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "networkx", None)
    monkeypatch.setattr("countveil.plotting.networks.has_networkx", lambda: False)
    plotting.network(block_fit)
    with pytest.raises(
        ModuleNotFoundError, match=r"pip install '\.\[plots\]' in a clone of countveil, or use layout 'circle'"
    ):
        plotting.network(block_fit, layout="spring")


def test_what_is_no_network_is_refused(topic_fit, block_fit):
    for draw in (plotting.network, plotting.block_matrix):
        with pytest.raises(TypeError, match="fit must be a model of a network, such as BlockModel, got TopicModel"):
            draw(topic_fit)
        with pytest.raises(TypeError, match="such as BlockModel, got dict"):
            draw({})
    with pytest.raises(ValueError, match="layout must be one of spring, circle, got 'star'"):
        plotting.network(block_fit, layout="star")
    with pytest.raises(ValueError, match="edges and names must not be negative, got -1"):
        plotting.network(block_fit, edges=-1)


def test_ticks_are_round_and_within_the_scale():
    assert nice_ticks(24.0, 0.05) == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert nice_ticks(0.0, 1.0) == []
