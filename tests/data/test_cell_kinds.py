from pathlib import Path

import numpy as np
import pytest

from countveil.data.cell_kinds import HIDDEN, MASKED, NO_WORDS, Words, read_cells

PATH = Path("t.csv")


def read(cells, words=NO_WORDS, **options):
    return read_cells(PATH, [cells], ["n"], words, **options)


def test_every_cell_is_accounted_for():
    cells = read(["1", "<5", "X", "", "-", "N/A", "n/a", 2.5], Words(("X",), ("n/a",), ("-",)))
    np.testing.assert_array_equal(cells.values[:, 0], [1, *[np.nan] * 3, 0, np.nan, np.nan, 2.5])
    assert cells.masked[:, 0].tolist() == [False, False, False, True, False, True, True, False]
    assert cells.intervals[1, 0].tolist() == [0, 4]
    assert cells.describe(3) == (
        "11 cells: 3 counts, 1 in intervals (1 '<5'), 1 hidden (1 'X'), 3 masked (1 empty, 1 'N/A', 1 'n/a'), "
        "3 in totals."
    )


@pytest.mark.parametrize(
    ("cells", "words", "kind"),
    [
        (["1", ""], Words(), HIDDEN),  # nothing else can be
        (["1", "X", ""], Words(("X",)), MASKED),
        (["1", ""], Words(("X",)), MASKED),  # also where the word does not occur
        (["1", "<5", ""], Words(), MASKED),
        (["1", "X", ""], Words(("X", "")), HIDDEN),
        (["1", ""], Words(missing=("",)), MASKED),
    ],
)
def test_blanks_are_masked_next_to_words(cells, words, kind):
    found = read(cells, words)
    assert found.kind[found.code[-1, 0]] == kind


@pytest.mark.parametrize(
    ("cells", "rule"),
    [
        (["1", "few"], "got 'few' in row 2, column 'n'"),
        (["1.021", "2"], "t.csv: numbers such as '1.021'"),
        (["9-1"], "t.csv: intervals must begin with the smaller number"),
    ],
)
def test_other_cells_are_refused_by_name(cells, rule):
    with pytest.raises(ValueError, match=rule):
        read(cells)


def test_cells_without_a_row_are_in_the_tally():
    read = read_cells(Path("t.csv"), [["3", ""]], ["n"], NO_WORDS)
    assert read.describe(no_row="2 cells without a row (hidden)") == (
        "2 cells: 1 count, 1 hidden (1 empty), 0 masked, 0 in totals; 2 cells without a row (hidden)."
    )
