"""The graph of transitions, as tables have them."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Circle, FancyArrowPatch

import countveil as cv
from countveil import plotting
from countveil.plotting.factors import chosen
from countveil.plotting.transitions import beside, circle_order, clear, largest
from tests.plotting.conftest import QUICK

COUNTS = np.random.default_rng(7).poisson([3.0, 1.0, 9.0, 4.0], (20, 4))
ITEMS = ["ant", "bee", "$x_1$", "cow"]


@pytest.fixture(scope="module")
def fit():
    return cv.DynamicModel(3, **QUICK).fit(cv.PrivatizedCounts(COUNTS, 0.3, labels=[None, ITEMS]))


def drawn(ax, kind):
    return [each for each in ax.patches if isinstance(each, kind)]


def texts(ax):
    return [each.get_text() for each in ax.texts]


def test_arrows_are_as_wide_as_the_shares_of_the_table(fit):
    ax = plotting.transitions(fit, least=0.0)
    table = fit.transitions()
    table = table[table["component"] != table["previous_component"]]
    widths = sorted(arrow.get_linewidth() for arrow in drawn(ax, FancyArrowPatch))
    np.testing.assert_allclose(np.array(widths) / widths[-1], np.sort(table["share"]) / table["share"].max())
    for share in table["share"]:
        assert f"{share:.0%}" in texts(ax)


def test_an_arrow_goes_from_a_component_to_where_its_activity_goes(fit):
    table = fit.transitions()
    most = table[table["component"] != table["previous_component"]].nlargest(1, "share").iloc[0]
    ax = plotting.transitions(fit, least=float(most["share"]))
    (arrow,) = drawn(ax, FancyArrowPatch)
    places = {
        int(text): place
        for text, place in ((each.get_text(), each.get_position()) for each in ax.texts)
        if text.isdigit()
    }
    ends = arrow._posA_posB
    np.testing.assert_allclose(ends[0], places[most["previous_component"]])
    np.testing.assert_allclose(ends[1], places[most["component"]])


def test_circles_grow_with_shares_and_have_names_and_what_stays(fit):
    ax = plotting.transitions(fit)
    known, stays = fit.support(axis="item").set_index("component")["prevalence"], fit.transitions()
    radii = dict(zip(order_of(ax), [circle.get_radius() for circle in drawn(ax, Circle)], strict=True))
    assert sorted(radii, key=radii.get) == known.sort_values().index.tolist()
    for k in known.index:
        (said,) = [text for text in texts(ax) if text.startswith(f"component {k}")]
        own = stays[(stays["component"] == k) & (stays["previous_component"] == k)]["share"].iloc[0]
        assert said.endswith(f"{own:.0%} stays")
        best = fit.supported("item", 3).query("component == @k")["member"]
        assert ", ".join(best).replace("$", r"\$") in said


def order_of(ax):
    return [int(text) for text in texts(ax) if text.isdigit()]


def test_the_same_fit_has_the_same_picture(fit):
    first, again = (plotting.transitions(fit, which=which) for which in ([2, 0], [2, 0]))
    assert [each.get_position() for each in first.texts] == [each.get_position() for each in again.texts]
    assert sorted(order_of(first)) == [0, 2]
    assert drawn(plotting.transitions(fit, which=[1]), FancyArrowPatch) == []


def test_neighbours_on_the_circle_exchange_most():
    shares = np.full((4, 4), 0.01)
    for a, b in ((0, 2), (2, 1), (1, 3)):
        shares[a, b] = 0.5
    shares[3, 0] = np.nan  # no chain has both
    assert circle_order(shares) == [0, 2, 1, 3]


def test_two_arrows_between_the_same_components_are_told_apart():
    a, b = np.array([0.0, 0.0]), np.array([1.0, 0.0])
    assert (beside(a, b)[:, 1] < 0.0).all()
    assert (beside(b, a)[:, 1] > 0.0).all()


def test_numbers_do_not_lie_on_each_other():
    places = np.array([[0.0, 0.0], [0.3, 0.0], [0.6, 0.0]])
    np.testing.assert_array_equal(clear(places, []), places[0])
    np.testing.assert_array_equal(clear(places, [places[0]]), places[1])
    np.testing.assert_array_equal(clear(places, [places[0], places[1] + 0.01]), places[2])


def test_components_that_few_chains_have_are_left_out_unless_asked_for():
    known = pd.DataFrame({"support": [1.0, 0.5, 0.75], "prevalence": [0.2, 0.6, 0.3]})
    assert largest(known) == [2, 0]
    assert chosen(known.index.tolist(), [1, 1]) == [1]
    with pytest.raises(ValueError, match="that more than half of its chains have, got none"):
        largest(known[known["support"] == 0.5])


def test_a_tensor_is_labelled_along_all_its_axes_or_one():
    counts = np.random.default_rng(3).poisson(2.0, (3, 8, 2))
    data = cv.PrivatizedCounts(counts, 0.3, labels=[list("abc"), None, ["x", "y"]])
    fit = cv.DynamicModel(2, modes=["who", "time", "what"], **QUICK).fit(data)
    for mode, n in ((None, 2), ("who", 3)):
        (said,) = [
            text for text in texts(plotting.transitions(fit, mode=mode)) if text.startswith("component 0")
        ]
        assert len(said.split("\n")[1].split(", ")) == n
    with pytest.raises(ValueError, match=r"mode must be one of \['who', 'what'\], got 'time'"):
        plotting.transitions(fit, mode="time")


def test_what_has_no_transitions_or_is_unknown_is_refused(fit, tensor_fit):
    with pytest.raises(TypeError, match="fit must be a DynamicModel, got TensorModel"):
        plotting.transitions(tensor_fit)
    with pytest.raises(ValueError, match="which must be numbers from 0 to 2, got"):
        plotting.transitions(fit, which=[7])
    with pytest.raises(ValueError, match="least must be between 0 and 1, got"):
        plotting.transitions(fit, least=2.0)
