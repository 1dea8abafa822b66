"""Levels of several reports, row by row."""

import numpy as np

import countveil as cv
from countveil.data.promised import both, levels_by_row

ONE, RHO = cv.PrivacyLevel(epsilon=1, precision=2), cv.PrivacyLevel.zcdp("0.5")


def test_a_row_has_a_level_if_one_mechanism_that_keeps_it_made_all_of_it():
    mixed = np.array([[ONE.mechanism, RHO.mechanism], [RHO.mechanism, RHO.mechanism]], dtype=object)
    assert levels_by_row(mixed, (2, 2)) == [None, RHO]
    assert levels_by_row(ONE.mechanism, (2, 2)) == [ONE, ONE]
    assert levels_by_row(cv.mechanisms.TwoSidedGeometric(0.5), (2, 2)) == [None, None]


def test_two_levels_add_up_and_nothing_is_promised_beside_none():
    assert both(RHO, RHO) == cv.PrivacyLevel.zcdp(1)
    assert both(ONE, None) is both(None, ONE) is None
