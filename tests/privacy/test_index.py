"""A column that is an index: refused by its name, warned of by its values; real counts are left alone."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from countveil.privacy._index import check_columns

RNG = np.random.default_rng(1)
COUNTS = RNG.poisson(3.0, (12, 3))
NAMES = ["aid", "talk", "war"]
FORMS = {"whole": np.asarray, "floats": lambda v: v.astype(float), "sparse": sp.csr_array}
IDS = RNG.choice(10**6, 12, replace=False)


def beside(column, place=1, n_rows=12, name="x"):
    """Counts with another column at this place, and their names."""
    values = np.insert(COUNTS[:n_rows], place, column, axis=1)
    return [*NAMES[:place], name, *NAMES[place:]], values


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(
    "name", ["Unnamed: 0", "Unnamed: 0.1", "Unnamed: 0.1.1", "Unnamed: 0_level_0", ("Unnamed: 0", "x")]
)
def test_the_name_of_a_saved_index_is_refused_anywhere(form, place, name):
    names, values = beside(0, place, name=name)
    top = name[0] if isinstance(name, tuple) else name
    message = rf"counts must not include the index, got a column called '{top}': .*, or leave it out$"
    with pytest.raises(ValueError, match=message):
        check_columns("counts", names, form(values), False)


@pytest.mark.parametrize("name", ["index", "level_0"])
def test_the_name_of_an_index_that_was_reset_is_refused_first_or_where_all_values_differ(name):
    message = rf"got a column called '{name}': .*; if it holds counts, give it another name"
    for column, place in ((0, 0), (range(12), 2), (IDS, 3)):
        with pytest.raises(ValueError, match=message):
            check_columns("counts", *beside(column, place, name=name), False)
    check_columns("counts", *beside(RNG.poisson(3.0, 12), 2, name=name), False)
    check_columns("counts", *beside([0, 1], 2, 2, name=name), False)


RUNS = {"from 0": np.arange(12), "from 1": np.arange(1, 13), "shuffled": RNG.permutation(np.arange(100, 112))}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("place", range(4))
def test_consecutive_numbers_are_warned_of_anywhere(form, numbered, run, place):
    increases = numbered and place == 0 and (np.diff(run) > 0).all()
    said = "the first column increases from row" if increases else f"column {place} holds consecutive numbers"
    with pytest.warns(UserWarning, match=f"^{said}.*: if it names the rows of the counts, read the file") as caught:
        check_columns("counts", *(lambda names, values: (names, form(values)))(*beside(run, place)), numbered)
    assert len(caught) == 1


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_first_column_that_increases_is_warned_of_where_rows_have_no_labels(form):
    names, values = beside([7 * i * i for i in range(12)], 0)
    with pytest.warns(UserWarning, match="the first column increases from row to row, as an index does"):
        check_columns("counts", names, form(values), True)
    check_columns("counts", names, form(values), False)
    check_columns("counts", names, form(values[:9]), True)
    check_columns("counts", names, form(values)[::-1], True)
    check_columns("counts", names[1:] + names[:1], form(np.roll(values, -1, axis=1)), True)


OF_IDS = ["id", "ID", "Id", "doc_id", "doc-id", "doc.id", "doc id", "docId", "DocID", "id_doc", "uuid", "user_uid"]
OF_COUNTS = ["paid", "Madrid", "idea", "ID1", "grid", "identity", "aid"]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("place", [0, 2])
def test_the_name_of_an_id_is_warned_of_where_all_values_differ(form, place):
    for name in OF_IDS:
        for n_rows in (12, 3):
            names, values = beside(IDS[:n_rows], place, n_rows, name=name)
            with pytest.warns(UserWarning, match=f"^column {re.escape(repr(name))} has another value in each row"):
                check_columns("counts", names, form(values), False)
        check_columns("counts", *beside(RNG.poisson(3.0, 12), place, name=name), False)
        check_columns("counts", *beside([0, 1], place, 2, name=name), False)
    for name in (*OF_COUNTS, 3, None):
        check_columns("counts", *beside(IDS, place, name=name), False)


def test_counts_of_small_tables_are_left_alone():
    for n_rows in range(1, 10):
        check_columns("counts", *beside(np.arange(n_rows), 1, n_rows), True)
        check_columns("counts", *beside(np.arange(n_rows)[::-1], 0, n_rows), False)


def test_counts_as_large_as_the_table_is_long_are_left_alone():
    for column in ([0, 11] * 6, [3] * 11 + [14], [0, *range(10), 11]):
        check_columns("counts", *beside(column, 1), True)


def test_numbers_that_are_no_counts_are_left_to_other_checks():
    for column in (np.arange(12) + 0.5, np.full(12, np.inf), np.full(12, np.nan), np.r_[np.arange(11), np.nan]):
        names, values = beside(0)
        values = values.astype(float)
        values[:, 0] = values[:, 1] = column
        check_columns("counts", names, values, True)
    check_columns("counts", NAMES, COUNTS > 0, True)
    check_columns("counts", NAMES, COUNTS.astype(object), True)
    check_columns("counts", NAMES, COUNTS.astype(complex), True)


def test_long_names_are_cut():
    with pytest.raises(ValueError, match="got a column called") as refused:
        check_columns("counts", *beside(0, 1, name="Unnamed: 0" + 10_000 * ".1"), False)
    with pytest.warns(UserWarning, match="has another value") as warned:
        check_columns("counts", *beside(IDS, 1, name=10_000 * "long_" + "id"), False)
    assert max(len(str(refused.value)), len(str(warned[0].message))) < 300


def test_no_value_is_shown():
    names, values = beside(IDS, 0, name="doc_id")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_columns("counts", names, values, False)
        check_columns("counts", *beside(np.arange(7000, 7012), 2), False)
    said = " ".join(str(each.message) for each in caught)
    assert len(caught) == 2
    assert not set(re.findall(r"\d+", said)) & {str(v) for v in (*IDS, *range(7000, 7012))}
