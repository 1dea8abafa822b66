import numpy as np
import pytest

from countveil.data.tables.looking import Lattice, lattice_of

COUNTS = np.random.default_rng(3).poisson(30.0, 40).astype(float)


@pytest.mark.parametrize(
    ("values", "base", "found"),
    [
        (COUNTS, 1, None),
        (5 * np.round(COUNTS / 5), 1, Lattice(5, 0)),
        (np.append(5 * np.round(COUNTS / 5), np.nan), 1, Lattice(5, 0)),
        (5 * np.round(COUNTS / 5), 5, None),
        (10 * np.round(COUNTS / 10), 5, Lattice(10, 0)),
        (6 * np.floor(COUNTS / 6) + 3, 1, Lattice(6, 3)),
        (6 * np.floor(COUNTS / 6) + 3, 3, Lattice(6, 3)),
        (np.array([10.0, 15, 20]), 1, None),  # too few to tell
        (COUNTS + 0.5, 1, None),
        (19 * COUNTS + 6, 1, None),  # no rounding has such numbers
        (6 * np.floor(COUNTS / 6) + 2, 1, Lattice(6, 2)),
        (np.array([]), 1, None),
    ],
)
def test_common_steps_are_found_where_they_are_no_coincidence(values, base, found):
    assert lattice_of(values, base) == found


def test_they_are_described():
    assert str(Lattice(5, 0)) == "multiples of 5"
    assert str(Lattice(6, 3)) == "3 above multiples of 6"
