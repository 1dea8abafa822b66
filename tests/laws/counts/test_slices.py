"""Slices of many densities at once, against the densities."""

import numpy as np
import pytest
from scipy import stats

from countveil.laws.counts.slices import draw_on_slices, greatest_within
from tests.joint import FALSE_ALARM

MEANS, SPREADS = np.array([-3.0, 0.0, 5.0]), np.array([0.05, 1.0, 7.0])
SWEEPS, THIN = 6_000, 4


def log_density(values):
    return -0.5 * ((values - MEANS) / SPREADS) ** 2


def chain(bounds, density=log_density):
    """(n, 3) thinned draws, from a start inside the bounds."""
    rng, now, found = np.random.default_rng(2), np.clip(MEANS, *bounds), []
    for sweep in range(SWEEPS):
        now = draw_on_slices(density, now, bounds, rng)
        if sweep % THIN == 0:
            found.append(now)
    return np.array(found)


@pytest.mark.long
def test_each_number_has_its_own_density():
    found = chain((-100.0, 100.0))
    for i in range(3):
        right, wrong = (
            stats.kstest(found[:, i], stats.norm(MEANS[i] + shift * SPREADS[i], SPREADS[i]).cdf).pvalue
            for shift in (0.0, 0.2)
        )
        assert right > FALSE_ALARM
        assert wrong < FALSE_ALARM


def test_bounds_cut_a_density_off():
    low, high = -4.0, 6.0
    found = chain((low, high))
    assert ((found >= low) & (found <= high)).all()
    law = stats.truncnorm((low - 5.0) / 7.0, (high - 5.0) / 7.0, 5.0, 7.0)
    assert stats.kstest(found[:, 2], law.cdf).pvalue > FALSE_ALARM


def test_the_first_interval_is_placed_alike_from_everywhere_also_at_a_bound():
    """Uniform on two pieces, one at the bound, that the first interval may or may not both reach."""
    rng = np.random.default_rng(5)
    pieces, n = np.array([[0.0, 0.3], [0.9, 1.2]]), 100_000
    start = np.where(rng.random(n) < 0.5, *(low + (high - low) * rng.random(n) for low, high in pieces))

    def density(x):
        return np.where(((x >= 0.0) & (x <= 0.3)) | ((x >= 0.9) & (x <= 1.2)), 0.0, -50.0)

    moved = draw_on_slices(density, start, (0.0, 3.0), rng)
    halves = [np.histogram(moved, np.linspace(low, high, 7))[0] for low, high in pieces]
    assert stats.chisquare(np.concatenate(halves)).pvalue > FALSE_ALARM


def test_a_number_at_its_bound_can_leave_it():
    rng, now = np.random.default_rng(3), np.full(3, 1.0)
    assert (draw_on_slices(lambda x: -0.5 * x**2, now, (-1.0, 1.0), rng) < 1.0).all()


def test_what_comes_in_stays():
    now = np.zeros(3)
    draw_on_slices(log_density, now, (-100.0, 100.0), np.random.default_rng(4))
    assert (now == 0.0).all()


def test_one_number_alone_moves_as_it_does_in_an_array():
    """Also from bounds, into them, and where nothing is ever taken."""

    def density(x):
        return -0.5 * (x / 3.0) ** 2

    starts = np.concatenate([[-4.0, 5.0, 0.0], np.random.default_rng(6).uniform(-4.0, 5.0, 300)])
    for bounds in ((-4.0, 5.0), (-4.0, 50.0)):
        for seed, start in enumerate(starts):
            one, other = (
                draw_on_slices(density, now, bounds, np.random.default_rng(seed))
                for now in (np.array([start]), np.array([[start]]))  # an axis more
            )
            assert one.shape == (1,)
            assert one[0] == other[0, 0]
    heights = iter([0.0])  # then none
    nowhere = draw_on_slices(
        lambda x: np.full_like(x, next(heights, -np.inf)), np.zeros(1), (0.0, 0.0), np.random.default_rng(1)
    )
    assert nowhere.tolist() == [0.0]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("now", [[2.0], [1.0, 2.0]])
def test_a_density_that_no_slice_is_under_is_an_error(now, value):
    def density(x):
        return np.where(x == 2.0, value, 0.0)

    with pytest.raises(FloatingPointError, match=rf"^the log-density must be a number, got {value} at 2$"):
        draw_on_slices(density, np.array(now), (0.0, 3.0), np.random.default_rng(1))


PEAKS = np.array([-20.0, -19.97, -3.3, 0.0, 7.61, 20.0])


def test_peaks_are_found_inside_and_at_the_bounds():
    beyond = np.array([-25.0, -19.97, -3.3, 0.0, 7.61, 31.0])
    found = greatest_within(lambda x: -((x - beyond) ** 2), np.zeros(6), (-20.0, 20.0))
    np.testing.assert_allclose(found, PEAKS, atol=1e-6)


def test_of_two_peaks_the_higher_one_is_found_wherever_it_begins():
    def function(x):
        return np.maximum(1.0 - (x + 8.0) ** 2, 1.5 - 0.5 * (x - 11.3) ** 2)

    for now in (-8.0, 11.0, 0.0):
        np.testing.assert_allclose(greatest_within(function, np.array([now]), (-20.0, 20.0)), 11.3, atol=1e-6)


def test_no_value_is_less_than_now():
    """A peak between the points of the grid is kept if it is where one is."""

    def function(x):
        return np.where(np.abs(x - 0.123) < 1e-3, 1.0, 0.0)

    assert greatest_within(function, np.array([0.123]), (-20.0, 20.0)) == 0.123
