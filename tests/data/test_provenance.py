"""Reports as they were published, wherever the axes go and whichever rows are taken."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data.provenance import Provenance, both_levels, levels_by_row

m = cv.mechanisms
RNG = np.random.default_rng(1)
SHAPE = (4, 3, 2)
KNOWN = m.Suppression(3), m.RandomRounding(3)
EACH = np.array(KNOWN, dtype=object).reshape(1, 1, 2)
COUNTS = RNG.poisson(4.0, SHAPE)
MASK = RNG.random(SHAPE) < 0.2
VALUES = np.stack([cv.simulate_reports(COUNTS[:, :, i], KNOWN[i], RNG).astype(float) for i in range(2)], axis=2)


@pytest.fixture
def data():
    return cv.Reports(VALUES, EACH, MASK).also(COUNTS + 0.5, m.Gaussian(1))


def turned(values, rows, columns, size):
    return np.broadcast_to(values, SHAPE).transpose(rows + columns).reshape(size)


@pytest.mark.parametrize(
    ("rows", "columns", "size"), [((0,), (1, 2), (4, 6)), ((2, 0), (1,), (8, 3)), ((0, 1, 2), (), (24, 1))]
)
def test_every_cell_keeps_its_reports_and_what_made_them(data, rows, columns, size):
    chosen = np.array([3, 0, 2])
    for found, kept in (
        (data.matricized(rows, columns), np.arange(size[0])),
        (data.matricized(rows, columns).take(chosen), chosen),
    ):
        first, second = (found.provenance.published.report(place) for place in (0, 1))
        np.testing.assert_array_equal(first.seen, ~turned(MASK, rows, columns, size)[kept])
        np.testing.assert_array_equal(first.values, np.where(first.seen, turned(VALUES, rows, columns, size)[kept], 0))
        wanted = turned(np.arange(2).reshape(1, 1, 2), rows, columns, size)[kept]
        assert [first.mechanisms[i] for i in first.number.ravel()] == [KNOWN[i] for i in wanted.ravel()]
        np.testing.assert_array_equal(second.values, turned(COUNTS + 0.5, rows, columns, size)[kept])
        assert second.mechanisms == (m.Gaussian(1),)
        assert second.seen.all()


def test_folded_and_taken_twice(data):
    flat = cv.Reports(VALUES.reshape(4, 6), np.broadcast_to(EACH, SHAPE).reshape(4, 6), MASK.reshape(4, 6)).folded(
        SHAPE
    )
    parts = (each.take(np.array([2, 1])).take(np.array([1])) for each in (flat, data))
    one, other = (part.provenance.published.report(0) for part in parts)
    np.testing.assert_array_equal(one.values, other.values)
    assert [one.mechanisms[i] for i in one.number.ravel()] == [other.mechanisms[i] for i in other.number.ravel()]


def test_sparse_values_and_objects():
    stored = sp.csr_array(np.array([[0, 3, 0], [6, 0, 0], [0, 0, 9]]))
    rows = np.array([[m.RandomRounding(3)], [m.Rounding(3)], [m.RandomRounding(3)]], dtype=object)
    found = cv.Reports(stored, rows)
    report = found.take(np.array([2, 1])).provenance.published.report(0)
    np.testing.assert_array_equal(report.values, [[0, 0, 9], [6, 0, 0]])
    assert [report.mechanisms[i] for i in report.number[:, 0]] == [rows[2, 0], rows[1, 0]]
    hidden = cv.Reports(np.array([[None, 12], [0, None]], dtype=object), m.Suppression(5))
    np.testing.assert_array_equal(hidden.provenance.published.report(0).values, [[np.nan, 12], [0, np.nan]])


def test_reports_that_are_read_by_level_have_none():
    assert cv.Reports(COUNTS, m.TwoSidedGeometric(0.5)).provenance.published is None
    assert cv.PrivatizedCounts(COUNTS, 0.5).provenance.published is None


def test_a_part_has_what_is_known_of_its_own_rows():
    level, ages = cv.PrivacyLevel(epsilon=1, precision=2), pd.DataFrame({"age": [30, 40, 50]})
    stated = Provenance(
        source="a table", directed=False, levels=(None, level, level), covariates=ages, axis_names=("county", "year")
    )
    data = cv.Reports(COUNTS[:3, :, 0], m.Gaussian(1), provenance=stated)
    part = data.take(np.array([2, 0])).provenance
    assert (part.source, part.directed, part.axis_names) == ("a table", False, ("county", "year"))
    assert part.levels == (level, None)
    assert part.covariates["age"].tolist() == [50, 30]
    assert data.provenance.levels == (None, level, level)
    flat = data.matricized((0, 1), ()).provenance
    assert (flat.levels, flat.covariates) == (None, None)
    moved = data.with_steps(0, np.array([2, -1, 0, 1]), list("abcd")).provenance
    assert moved.levels == (level, level, None, level)
    for each in (part, flat, moved):
        assert (each.inputs, each.releases) == (None, None)


ONE, RHO = cv.PrivacyLevel(epsilon=1, precision=2), cv.PrivacyLevel.zcdp("0.5")


def test_a_row_has_a_level_if_one_mechanism_that_keeps_it_made_all_of_it():
    mixed = np.array([[ONE.mechanism, RHO.mechanism], [RHO.mechanism, RHO.mechanism]], dtype=object)
    assert levels_by_row(mixed, (2, 2)) == [None, RHO]
    assert levels_by_row(ONE.mechanism, (2, 2)) == [ONE, ONE]
    assert levels_by_row(cv.mechanisms.TwoSidedGeometric(0.5), (2, 2)) == [None, None]


def test_two_levels_add_up_and_nothing_is_promised_beside_none():
    assert both_levels(RHO, RHO) == cv.PrivacyLevel.zcdp(1)
    assert both_levels(ONE, None) is both_levels(None, ONE) is None
