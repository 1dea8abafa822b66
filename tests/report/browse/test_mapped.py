import numpy as np
import pytest
from scipy.spatial.distance import cdist, jensenshannon

from countveil.report.browse.listings import Along
from countveil.report.browse.mapped import distances, mapped, on_a_plane


def along(mean):
    return Along("word", [f"w{v}" for v in range(mean.shape[1])], False, mean[:, :, None])


def test_distances_are_those_of_jensen_and_shannon():
    mean = np.random.default_rng(1).dirichlet(np.full(6, 0.3), 5)
    mean[0, 0], mean[1] = 0.0, np.eye(6)[2]
    other = np.random.default_rng(2).dirichlet(np.full(3, 0.3), 5)
    wanted = [
        cdist(p, p, lambda one, two: jensenshannon(one, two, base=2))
        for p in (mean / mean.sum(1, keepdims=True), other)
    ]
    np.testing.assert_allclose(distances([along(mean)]), wanted[0], atol=1e-7)
    np.testing.assert_allclose(distances([along(mean), along(other)]), np.mean(wanted, axis=0), atol=1e-7)


def test_places_on_a_plane_keep_distances_that_a_plane_can_keep():
    points = np.random.default_rng(3).normal(size=(6, 2)) * [3.0, 1.0]
    found, share = on_a_plane(cdist(points, points))
    np.testing.assert_allclose(cdist(found, found), cdist(points, points), atol=1e-9)
    assert share == pytest.approx(1.0)
    solid = np.random.default_rng(4).normal(size=(30, 3)) * [3.0, 2.0, 1.0]
    spread = np.linalg.eigvalsh(np.cov(solid.T))
    assert on_a_plane(cdist(solid, solid))[1] == pytest.approx(spread[1:].sum() / spread.sum())


def test_components_that_share_members_are_nearest():
    mean = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.6, 0.4], [0.4, 0.6, 0, 0], [0, 0, 0.5, 0.5]])
    found = mapped([along(mean)])
    assert [nearest[0] for nearest in found["nearest"]] == [2, 3, 0, 1]
    assert all(k not in nearest for k, nearest in enumerate(found["nearest"]))
    places = np.array(found["places"])
    assert places.min() == 0.0
    assert places.max() == 1.0
    assert np.linalg.norm(places[0] - places[2]) < 0.3 < np.linalg.norm(places[0] - places[1])


def test_two_components_have_no_map():
    assert mapped([along(np.eye(2))]) is None
    assert mapped([]) is None
    same = mapped([along(np.full((3, 2), 0.5))])
    assert same["places"] == [[0.0, 0.0]] * 3
