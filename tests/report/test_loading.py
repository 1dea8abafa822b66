"""The release of a page is the one that its fit was made of."""

import numpy as np
import pytest

import countveil as cv
from countveil.data.reports import observations_of
from countveil.report.checklist import checklist_of
from countveil.report.loading import in_shape_of, observed
from countveil.report.page import render
from tests.report.conftest import QUICK, release_of

COUNTS = np.random.default_rng(1).poisson(2.0, (6, 5))
LEVELS = [cv.PrivacyLevel(1, 1), cv.PrivacyLevel(2, 1), cv.PrivacyLevel(3, 1)] * 2


@pytest.fixture(scope="module")
def fit():
    return cv.TopicModel(2, **QUICK).fit(release_of(COUNTS, LEVELS))


def test_a_release_with_the_noise_levels_of_the_fit_is_taken(fit):
    data = observed(fit, release_of(COUNTS, LEVELS))
    np.testing.assert_array_equal(data.level_d, [level.alpha for level in LEVELS])


@pytest.mark.parametrize(
    ("levels", "row"),
    [
        ([LEVELS[1], LEVELS[0], *LEVELS[2:]], 0),
        ([*LEVELS[:4], LEVELS[5], LEVELS[4]], 4),
        (LEVELS[:2] * 3, 2),
        (cv.PrivacyLevel(1, 1), 1),
    ],
    ids=["first rows swapped", "last rows swapped", "fewer levels", "one level"],
)
def test_other_noise_levels_are_refused_row_by_row(fit, levels, row):
    message = rf"^release must be the one that was fitted, with alpha [.0-9]+ in row {row}, got [.0-9]+ in row {row}$"
    with pytest.raises(ValueError, match=message):
        observed(fit, release_of(COUNTS, levels))


def test_a_fit_of_levels_that_vary_within_rows_is_of_no_release():
    alpha = np.random.default_rng(2).uniform(0.1, 0.8, COUNTS.shape)
    alpha[:2] = cv.PrivacyLevel(1, 1).alpha
    fit = cv.TopicModel(2, **QUICK).fit(cv.PrivatizedCounts(COUNTS, alpha))
    with pytest.raises(ValueError, match=r"got [.0-9]+ in row 2"):
        observed(fit, release_of(COUNTS, cv.PrivacyLevel(1, 1)))


def test_a_network_and_a_tensor_are_compared_in_their_matrix_form(block_fit, network, tensor_fit, events):
    assert observed(block_fit, network).shape == (8, 8)
    assert observed(tensor_fit, events).mode_shape == (5, 4, 3)
    reports = network.reports
    other = cv.Release(reports, [cv.PrivacyLevel(2, 1)] * 7 + [cv.PrivacyLevel(1, 1)], False, network.labels)
    with pytest.raises(ValueError, match=r"with alpha 0.135335 in row 7, got 0.367879"):
        observed(block_fit, other)


@pytest.mark.long
def test_a_release_of_rho_is_that_of_its_fit():
    release = release_of(COUNTS, cv.PrivacyLevel.zcdp(1))
    fit = cv.TopicModel(2, **QUICK).fit(release)
    assert observed(fit, release).shape == COUNTS.shape
    with pytest.raises(ValueError, match=r"with the mechanism discrete Gaussian noise \(rho 1\), got discrete"):
        observed(fit, release_of(COUNTS, cv.PrivacyLevel.zcdp(2)))
    assert "Every count" not in render(fit)
    assert "simulated" in render(fit, release)
    with pytest.raises(ValueError, match="naive needs a fit with two-sided geometric noise"):
        render(fit, release, naive=True)


def test_a_page_and_a_checklist_take_observations_which_state_no_level():
    data = cv.PrivatizedCounts(COUNTS, 0.4)
    fit = cv.TopicModel(2, **QUICK).fit(data)
    page = render(fit, data)
    assert "The fit keeps the strength of the noise, not the level" in page
    assert "without the release" not in page
    assert "The fit keeps only the strength of the noise." in str(checklist_of(fit, data))
    with pytest.raises(ValueError, match="the release that was fitted, got PrivatizedCounts"):
        render(fit, data, naive=True)
    for make in (render, checklist_of):
        with pytest.raises(TypeError, match="data must carry its noise level"):
            make(fit, COUNTS)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_release_of_dates_is_seen_as_the_fit_sees_it(axis):
    months, others = ("Dec 2019", "Nov 2019", "Feb 2020"), ("a", "b")
    labels = [months, others, ("x", "y")] if axis == 0 else [others, months, ("x", "y")]
    shape = tuple(map(len, labels))
    reports = np.arange(12).reshape(shape[0], -1)
    columns = tuple(f"{one} | {other}" for one in labels[1] for other in labels[2])
    release = cv.Release(reports, cv.PrivacyLevel(1, 1), True, (labels[0], columns))
    data = observations_of(release).folded()
    quick = {"draws": 4, "tune": 4, "chains": 1, "seed": 1, "progress": False}
    with pytest.warns(UserWarning, match="1 of 4 months has no data: Jan 2020"):
        fit = cv.DynamicModel(1, time=axis, **quick).fit(data)
    found = observed(fit, release)
    assert found.n_masked == 4
    assert in_shape_of(fit, cv.NaiveCounts(release)).mode_shape == shape
