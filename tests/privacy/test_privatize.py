import io
import itertools
import json
import math
import re
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

import countveil.privacy._counts as reading
from countveil.data.simulation import simulate_release
from countveil.privacy import (
    PrivacyLevel,
    Release,
    ReleaseError,
    _archive,
    _format,
    noise,
    privatize,
    privatize_to_files,
    round_randomly,
)
from countveil.privacy._counts import Counts

CRITICAL = 1e-8
LEVEL = PrivacyLevel(1, 2)
SILENT = PrivacyLevel(1000, 1)
"""Noise of zero, but for a probability of 2 e^-1000: shows what was done to the counts themselves."""
COUNTS = [[0, 3, 1], [2, 0, 0]]
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


def law_p_value(draws: np.ndarray, rate: float) -> float:
    """p-value of integers against the noise law."""
    edge = int(5 / rate) + 1
    observed = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=2 * edge + 1)
    weights = math.tanh(rate / 2) * np.exp(-rate * np.abs(np.arange(-edge, edge + 1)))
    weights[[0, -1]] = math.exp(-rate * edge) / (1 + math.exp(-rate))
    return float(stats.chisquare(observed, draws.size * weights).pvalue)


def dense(reports) -> np.ndarray:
    return reports.toarray() if sp.issparse(reports) else np.asarray(reports)


CONTAINERS = {
    "int64": np.array(COUNTS),
    "int8": np.array(COUNTS, dtype=np.int8),
    "uint64": np.array(COUNTS, dtype=np.uint64),
    "float": np.array(COUNTS, dtype=float),
    "float16": np.array(COUNTS, dtype=np.float16),
    "longdouble": np.array(COUNTS, dtype=np.longdouble),
    "object": np.array(COUNTS, dtype=object),
    "fortran": np.asfortranarray(COUNTS),
    "unmasked": np.ma.MaskedArray(COUNTS),
    "lists": COUNTS,
    "tuples": tuple(map(tuple, COUNTS)),
    "arrays in a list": [np.array(row) for row in COUNTS],
    "frame": pd.DataFrame(COUNTS),
    "mixed frame": pd.DataFrame(COUNTS).astype({0: float, 1: "Int64", 2: object}),
    **{name: sp.coo_array(COUNTS).asformat(name) for name in FORMATS},
    "old sparse matrix": sp.csr_matrix(COUNTS),
    "float sparse": sp.csr_array(np.array(COUNTS, dtype=float)),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_gives_its_own_counts(name):
    release = privatize(CONTAINERS[name], SILENT)
    assert isinstance(release, Release)
    assert dense(release.reports).tolist() == COUNTS
    assert release.reports.dtype == (np.int16 if sp.issparse(release.reports) else np.int64)
    assert release.shape == (2, 3)
    assert release.truncated is sp.issparse(CONTAINERS[name]) is sp.issparse(release.reports)
    assert release.levels == SILENT
    assert not release.simulated


def test_any_number_of_axes():
    for shape in ((5,), (5, 2), (2, 3, 4), (2, 1, 2, 3)):
        counts = np.arange(math.prod(shape)).reshape(shape)
        assert (privatize(counts, SILENT).reports == counts).all()
        assert (privatize(counts.tolist(), SILENT).reports == counts).all()


def test_the_counts_themselves_are_left_alone():
    for counts in (np.array(COUNTS), sp.csr_array(COUNTS)):
        before = counts.copy()
        privatize(counts, LEVEL, truncate=True)
        assert (before != counts).sum() == 0


@pytest.mark.parametrize("container", [np.array, sp.csr_array, sp.coo_array, list, pd.DataFrame])
@pytest.mark.parametrize("truncate", [True, False])
def test_every_cell_gets_the_noise(container, truncate):
    counts = np.zeros((400, 300), dtype=int)
    counts[::2] = 1000
    release = privatize(container(counts.tolist() if container is list else counts), LEVEL, truncate)
    assert release.truncated is truncate
    assert sp.issparse(release.reports) is (truncate and container in (sp.csr_array, sp.coo_array))
    reports = dense(release.reports)
    assert law_p_value((reports - counts)[::2].ravel(), 0.5) > CRITICAL
    if truncate:
        zeros = reports[1::2].ravel()
        assert stats.binomtest(int((zeros > 0).sum()), zeros.size, LEVEL.false_positive_rate).pvalue > CRITICAL
        assert zeros.min() == 0
        positive = zeros[zeros > 0] - 1
        assert stats.binomtest(int((positive == 0).sum()), positive.size, 1 - LEVEL.alpha).pvalue > CRITICAL
    else:
        assert law_p_value(reports[1::2].ravel(), 0.5) > CRITICAL
    # the control: the same statistics reject half and twice the rate
    assert law_p_value((reports - counts)[::2].ravel(), 0.55) < CRITICAL


def test_sparse_counts_are_never_dense_as_a_whole(monkeypatch):
    sizes = []
    real = noise.draw_narrow
    monkeypatch.setattr(noise, "draw_narrow", lambda rate, size: sizes.append(size) or real(rate, size))
    counts = sp.random_array((2_500, 1_000), density=0.01, rng=np.random.default_rng(1)).astype(bool).astype(int)
    counts = sp.csr_array(counts) * 500
    release = privatize(counts, LEVEL)
    assert max(sizes) <= 2**20
    assert sum(sizes) == 2_500_000
    assert release.reports.has_canonical_format
    assert release.reports.data.min() > 0
    reports = release.reports.toarray()
    there = counts.toarray() > 0
    assert law_p_value(reports[there] - 500, 0.5) > CRITICAL
    for rows in (slice(0, 1048), slice(1048, 2096), slice(2096, None)):
        zeros = reports[rows][~there[rows]]
        assert stats.binomtest(int((zeros > 0).sum()), zeros.size, LEVEL.false_positive_rate).pvalue > CRITICAL


def test_memory_is_for_the_positive_reports_alone():
    """Twice what is released at the most: its pieces and itself. In 64 bits, or densely, it would be far more."""
    counts = sp.csr_array(sp.random_array((4000, 4000), density=0.001, rng=1).astype(bool).astype(int))
    privatize(counts[:10], PrivacyLevel(1, 1))
    tracemalloc.start()
    release = privatize(counts, PrivacyLevel(1, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.2 * 6 * release.reports.nnz


def test_very_wide_sparse_counts_go_row_by_row():
    counts = sp.coo_array(([7], ([1], [2**20])), shape=(2, 2**20 + 2))
    assert privatize(counts, SILENT).reports.toarray()[1, 2**20] == 7


def test_explicit_zeros_and_duplicates():
    counts = sp.coo_array(([1, 2, 0, 100, 100], ([0, 0, 1, 1, 1], [0, 0, 0, 1, 1])), dtype=np.int8)
    release = privatize(counts, SILENT)
    assert release.reports.toarray().tolist() == [[3, 0], [0, 200]]
    assert release.reports.nnz == 2


@pytest.mark.parametrize("base", [120, 32_760, 2**31 - 8])
def test_counts_at_the_end_of_a_narrow_type_do_not_wrap(base):
    """Noise comes in 8 bits, counts are at the end of 8, 16 and 32, and their sum is beyond."""
    for levels in (PrivacyLevel(1, 2), [PrivacyLevel(1, 2)] * 200):
        release = privatize(sp.csr_array(np.full((200, 100), base)), levels)
        reports = release.reports.toarray().astype(np.int64)
        assert (reports > base).any()
        assert law_p_value((reports - base).ravel(), 0.5) > CRITICAL
        assert release.reports.data.dtype == {120: np.int16, 32_760: np.int32}.get(base, np.int64)


@pytest.mark.parametrize("base", [2**60, 2**62])
@pytest.mark.parametrize("truncate", [True, False])
def test_large_counts_lose_nothing(base, truncate):
    counts = np.full((200, 100), base)
    for given in (counts, counts.astype(float), sp.csr_array(counts), counts.tolist()):
        reports = dense(privatize(given, PrivacyLevel(1, 10), truncate).reports)
        assert law_p_value((reports - base).ravel(), 0.1) > CRITICAL
    as_floats = (np.float64(base) + (reports - base)).astype(np.int64) - base
    assert law_p_value(as_floats.ravel(), 0.1) < CRITICAL
    table = Counts(counts.tolist(), counts.shape, (None, None), False)
    pure = np.array(privatize_lists(table, PrivacyLevel(1, 10), truncate))
    assert law_p_value((pure - base).ravel(), 0.1) > CRITICAL


def privatize_lists(table: Counts, level: PrivacyLevel, truncate: bool):
    from importlib import import_module

    return import_module("countveil.privacy.privatize")._noisy_lists(table, level, truncate)


OTHER_ORDERS = {
    "labels": (list("abc"), list("cba"), 0),
    "one other": (list("abc"), list("abd"), 2),
    "numbers of the table": ([2, 0, 1], None, 0),
    "numbers of the levels": (None, [0, 2, 1], 1),
}


@pytest.mark.parametrize(("rows", "index", "row"), OTHER_ORDERS.values(), ids=OTHER_ORDERS)
def test_levels_of_other_rows_are_refused(rows, index, row, tmp_path):
    counts = pd.DataFrame(np.arange(6).reshape(3, 2), index=rows, columns=["x", "y"])
    levels = [PrivacyLevel(1, n) for n in (1, 2, 3)]
    series = pd.Series(levels, index=index)
    calls = {
        "one": lambda level: privatize(counts, level),
        "files": lambda level: privatize_to_files(counts, level, tmp_path / "parts"),
        "simulated": lambda level: simulate_release(counts, level, np.random.default_rng(1)),
    }
    for call in calls.values():
        with pytest.raises(
            ValueError, match=f"level must have the same row labels as counts, .* a different label at row {row}"
        ):
            call(series)
    assert privatize(counts, series.tolist()).levels == tuple(levels)
    ordered = pd.Series(levels, index=counts.index)
    assert privatize(counts, ordered).levels == tuple(levels)
    assert privatize(counts.to_numpy(), pd.Series(levels, index=list("abc"))).levels == tuple(levels)
    if rows is None or isinstance(rows[0], str):
        assert privatize(counts, pd.Series(levels)).levels == tuple(levels)


def test_each_row_has_the_level_its_author_chose():
    levels = [PrivacyLevel(1, 1) if i % 3 else PrivacyLevel(1, 20) for i in range(600)]
    counts = np.full((600, 250), 10**6)
    coarse = np.arange(600) % 3 == 0
    for given in (counts, sp.csr_array(counts), pd.DataFrame(counts)):
        release = privatize(given, levels)
        assert release.levels == tuple(levels)
        assert release.alpha.tolist() == [level.alpha for level in levels]
        moved = dense(release.reports) - counts
        assert law_p_value(moved[coarse].ravel(), 0.05) > CRITICAL
        assert law_p_value(moved[~coarse].ravel(), 1.0) > CRITICAL
        assert law_p_value(moved.ravel(), 0.05) < CRITICAL
    pure = np.array(privatize_lists(Counts(counts.tolist(), counts.shape, (None, None), False), tuple(levels), False))
    assert law_p_value((pure - counts)[coarse].ravel(), 0.05) > CRITICAL
    assert law_p_value((pure - counts)[~coarse].ravel(), 1.0) > CRITICAL


def test_rows_of_zeros_work():
    for counts in (np.zeros((3, 90)), sp.csr_array((3, 90)), [[0] * 90] * 3):
        release = privatize(counts, PrivacyLevel(1, 100))
        assert release.shape == (3, 90)
        assert dense(release.reports).any()


def test_a_mapping_is_one_record_over_its_vocabulary():
    release = privatize({"veil": 3, "count": 1}, SILENT, vocabulary=["count", "noise", "veil"], row_labels=["me"])
    assert release.reports.tolist() == [[1, 0, 3]]
    assert release.column_labels == ("count", "noise", "veil")
    assert release.row_labels == ("me",)
    assert privatize({}, SILENT, vocabulary=["a"]).reports.tolist() == [[0]]


def test_labels_are_kept():
    frame = pd.DataFrame(COUNTS, index=["ann", "bo"], columns=["x", 2, ("y", 1)])
    release = privatize(frame, LEVEL)
    assert release.labels == (("ann", "bo"), ("x", "2", "('y', 1)"))
    assert privatize(pd.DataFrame(COUNTS), LEVEL).labels == (None, None)
    assert privatize(frame, LEVEL, row_labels=[7, 8]).row_labels == ("7", "8")
    assert privatize(sp.csr_array(COUNTS), LEVEL, column_labels=["a", "b", "c"]).column_labels == ("a", "b", "c")
    assert privatize(np.zeros((2, 2, 2)), LEVEL, column_labels=["a", "b"]).labels == (None, ("a", "b"), None)
    series = privatize(pd.Series([1, 2], index=["a", "b"]), SILENT)
    assert (series.labels, series.reports.tolist()) == ((("a", "b"),), [1, 2])


# --- what is refused, without showing what is private ---


@pytest.mark.parametrize(
    "text", ["70007,70009\n1,2\n", "70007,70007\n1,2\n", '"70,007","70 009"\n1,2\n', "70007,,7e4\n1,2,3\n"]
)
def test_a_record_read_as_column_labels_is_refused_and_not_shown(text):
    frame = pd.read_csv(io.StringIO(text))
    with pytest.raises(ValueError, match=r"^column labels must be names, got text that reads as") as caught:
        privatize(frame, LEVEL)
    assert not re.search("7000|70,0|70 0|7e4", str(caught.value))
    with pytest.raises(ValueError, match=r"^column labels must be names"):
        privatize(pd.read_csv(io.StringIO("me,70007,70009\nyou,1,2"), index_col=0), LEVEL)
    names = ["a", "b", "c"][: frame.shape[1]]
    assert privatize(frame, LEVEL, column_labels=names).column_labels == tuple(names)


def test_column_labels_with_some_numbers_or_of_integers_are_kept():
    frame = pd.DataFrame([[1, 2]], columns=["1984", "nan"])
    assert privatize(frame, LEVEL).column_labels == ("1984", "nan")
    frame = pd.DataFrame([[1, 2]], columns=[1984, 1985])
    assert privatize(frame, LEVEL).column_labels == ("1984", "1985")
    assert privatize(pd.DataFrame([[1], [2]], index=["17", "18"]), LEVEL).row_labels == ("17", "18")


@pytest.mark.parametrize("bad", ["a\0b", "\0", "\ud800", "x\udfff"])
def test_labels_that_cannot_be_written_are_refused(bad):
    for axis, counts in (("row", [[1], [1]]), ("column", [[1, 1]])):
        with pytest.raises(
            ValueError, match=f"^{axis}_labels must be Unicode text .* got (a NUL|a lone surrogate) in entry 1$"
        ):
            privatize(counts, LEVEL, **{f"{axis}_labels": ["fine", bad]})
    with pytest.raises(ValueError, match=r"^column_labels must be Unicode text"):
        privatize({}, LEVEL, vocabulary=["fine", bad])


BAD = {
    "negative": (-70007, "a negative value"),
    "fractional": (70007.5, "a fractional value"),
    "missing": (math.nan, "a missing value (NaN)"),
    "infinite": (math.inf, "an infinite value"),
    "too large": (2**62 + 70007, "a value above 2**62"),
}


def test_names_of_axes_are_those_of_a_table_or_of_labels():
    def names(counts, **labels):
        made = [privatize(counts, LEVEL, **labels), round_randomly(counts, 3, **labels)]
        made.append(simulate_release(counts, LEVEL, np.random.default_rng(1), **labels))
        assert len({each.extras.axis_names for each in made}) == 1
        return made[0].extras.axis_names

    rows, columns = pd.Index(["ann", "bo"], name="county"), pd.Index([7, 8, 9], name=0)
    frame = pd.DataFrame(COUNTS, rows, columns)
    assert names(frame) == ("county", "0")
    assert names(frame[8]) == ("county",)
    assert names(frame, row_labels=["x", "y"]) == (None, "0")
    assert names(frame, row_labels=pd.Series(["x", "y"], name="person")) == ("person", "0")
    assert names(COUNTS, row_labels=rows) == ("county", None)
    assert names(sp.csr_array(COUNTS), column_labels=columns) == (None, "0")
    assert names(np.ones((2, 3, 4), int), row_labels=rows) == ("county", None, None)
    for nameless in (frame.rename_axis(index="", columns=None), pd.DataFrame(COUNTS).rename_axis(index="not shown")):
        assert names(nameless) is None
    assert "2 labels of county and 3 labels of 0 are published as they are" in privatize(frame, LEVEL).describe()
    square = pd.DataFrame(SYMMETRIC, pd.Index(list("abc"), name="actor"), list("abc"))
    for directed in (True, False):
        assert privatize(square, LEVEL, directed=directed).extras.axis_names == ("actor", None)


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("container", ["list", "array", "object", "sparse", "frame", "mapping"])
def test_counts_must_be_non_negative_whole_numbers(kind, container):
    bad, what = BAD[kind]
    rows = [[0, 0, 0], [0, 0, bad]]
    array = np.array(rows)
    if kind == "too large" and container in ("array", "sparse", "frame"):
        array = array.astype(np.int64)
    counts = {
        "list": rows,
        "array": array,
        "object": np.array(rows, dtype=object),
        "sparse": sp.coo_array(array),
        "frame": pd.DataFrame(array),
        "mapping": {"a": bad},
    }[container]
    place = "(0, 0)" if container == "mapping" else "(1, 2)"
    vocabulary = ["a"] if container == "mapping" else None
    with pytest.raises(ValueError) as caught:
        privatize(counts, LEVEL, vocabulary=vocabulary)
    remedy = "; put 0 where nothing was counted, and leave out rows that were not observed"
    assert str(caught.value) == (
        f"counts must be non-negative whole numbers, got {what} at index {place}"
        + (remedy if kind == "missing" else "")
    )
    assert "70007" not in str(caught.value)


@pytest.mark.parametrize(
    ("counts", "what"),
    [
        ([[True]], "a boolean at index (0, 0)"),
        ([["3"]], "something that is not a number at index (0, 0)"),
        ([[None]], "something that is not a number at index (0, 0)"),
        (np.array([[True]]), "an array of bool"),
        (sp.csr_array(np.array([[True]])), "an array of bool"),
        (np.array([["3"]]), "an array of <U1"),
        (np.array([1j]), "an array of complex128"),
        (np.array([[True]], dtype=object), "a boolean at index (0, 0)"),
        (np.ma.MaskedArray([1, 2], mask=[0, 1]), "masked values; fill them, or leave their rows out"),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), "a missing value (NaN) at index (1, 0)"),
        (np.array([2**63], dtype=np.uint64), "a value above 2**62 at index (0,)"),
        (np.array([1, np.nan], dtype=np.float16), "a missing value (NaN) at index (1,)"),
        (sp.coo_array(([2**62] * 4, ([0] * 4, [0] * 4))), "repeated cells whose sum may exceed 2**62; sum them first"),
    ],
)
def test_other_things_are_no_counts(counts, what):
    with pytest.raises(ValueError, match="^" + re.escape(f"counts must be non-negative whole numbers, got {what}")):
        privatize(counts, LEVEL)


@pytest.mark.parametrize(
    ("counts", "shape"),
    [
        (np.zeros((0, 5)), "(0, 5)"),
        (np.zeros((5, 0)), "(5, 0)"),
        (np.zeros((2, 0, 3)), "(2, 0, 3)"),
        (np.array(3), "()"),
        ([], "(0,)"),
        ([[], []], "(2, 0)"),
        (sp.csr_array((0, 5)), "(0, 5)"),
        (sp.csr_array((5, 0)), "(5, 0)"),
        (pd.DataFrame(columns=["a"]), "(0, 1)"),
        (pd.DataFrame(index=["a"]), "(1, 0)"),
        (pd.Series([], dtype=int), "(0,)"),
    ],
)
def test_an_empty_matrix_says_so(counts, shape):
    rule = f"counts must have at least one row and one column, got shape {shape}"
    with pytest.raises(ValueError, match="^" + re.escape(rule) + "$"):
        privatize(counts, LEVEL)


def test_an_empty_vocabulary_says_so():
    with pytest.raises(ValueError, match=r"^counts must have at least one row and one column, got shape \(1, 0\)$"):
        privatize({}, LEVEL, vocabulary=[])


@pytest.mark.parametrize("ragged", [[[1, 2], [3]], [[1], 2], [1, [2]], [[[1]], [2]], [[1], [[2]]]])
def test_lists_must_be_rectangular(ragged):
    with pytest.raises(ValueError, match=r"^counts must be (rectangular|non-negative whole numbers), got "):
        privatize(ragged, LEVEL)


def test_deep_lists_are_refused():
    endless: list = []
    endless.append(endless)
    with pytest.raises(ValueError, match=r"^counts must have at most 32 axes, got more$"):
        privatize(endless, LEVEL)


@pytest.mark.parametrize("bad", [3, "counts", {1, 2}, iter([1]), None, object()])
def test_other_containers_are_refused(bad):
    with pytest.raises(TypeError, match=r"^counts must be an array, a table, lists or a mapping, got "):
        privatize(bad, LEVEL)


def test_words_outside_the_vocabulary_are_refused_and_not_shown():
    with pytest.raises(ValueError, match=r"^counts must have only words of the vocabulary, got 2 outside it") as caught:
        privatize({"a": 1, "secret": 1, "other": 0}, LEVEL, vocabulary=["a"])
    assert "to drop them, pass {word: n for " in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("vocabulary", "error", "text"),
    [
        (None, ValueError, "vocabulary must be given for a mapping"),
        ({"a"}, TypeError, "vocabulary must be words in a fixed order, got set"),
        ({"a": 0}, TypeError, "vocabulary must be words in a fixed order, got dict"),
        ("abc", TypeError, "vocabulary must be words in a fixed order, got str"),
        ([1], TypeError, "vocabulary must hold strings, got 1 in entry 0"),
        (["a", "b", "a"], ValueError, "vocabulary must name each word once, got 'a' 2 times"),
    ],
)
def test_vocabulary_rules(vocabulary, error, text):
    with pytest.raises(error, match="^" + text):
        privatize({"a": 1}, LEVEL, vocabulary=vocabulary)


def test_vocabulary_belongs_to_mappings():
    with pytest.raises(TypeError, match=r"^counts must be a mapping if a vocabulary is given, got list$"):
        privatize([[1]], LEVEL, vocabulary=["a"])
    with pytest.raises(ValueError, match=r"^column_labels must be left out if a vocabulary names the columns"):
        privatize({"a": 1}, LEVEL, vocabulary=["a"], column_labels=["a"])


@pytest.mark.parametrize(
    ("level", "error", "text"),
    [
        (0.5, TypeError, "level must be a PrivacyLevel or a sequence of them, got float"),
        ("1", TypeError, "level must be a PrivacyLevel or a sequence of them, got str"),
        (None, TypeError, "level must be a PrivacyLevel or a sequence of them, got NoneType"),
        ([LEVEL, 0.5], TypeError, "level must hold PrivacyLevels, got float at index 1"),
        ([LEVEL], ValueError, "level must be one, or one for each of 2 rows, got 1"),
        ([LEVEL] * 3, ValueError, "level must be one, or one for each of 2 rows, got 3"),
        ([], ValueError, "level must be one, or one for each of 2 rows, got 0"),
        (PrivacyLevel(1, 2**41), ValueError, "level must have a rate of at least 2**-40, got 4.54747e-13"),
    ],
)
def test_level_rules(level, error, text):
    for counts in (COUNTS, np.array(COUNTS), sp.csr_array(COUNTS)):
        with pytest.raises(error, match="^" + re.escape(text)):
            privatize(counts, level)


@pytest.mark.parametrize(
    ("labels", "error", "text"),
    [
        ({"row_labels": ["a"]}, ValueError, "row_labels must have 2 entries, got 1"),
        ({"column_labels": ["a"]}, ValueError, "column_labels must have 3 entries, got 1"),
        (
            {"column_labels": ["a", "b", "a"]},
            ValueError,
            "column_labels must differ from each other, got a duplicate, in entries 0 and 2",
        ),
        ({"column_labels": "abc"}, TypeError, "column_labels must be a sequence of names, got str"),
        ({"column_labels": {"a", "b", "c"}}, TypeError, "column_labels must be a sequence of names, got set"),
    ],
)
def test_label_rules(labels, error, text):
    with pytest.raises(error, match=f"^{text}$"):
        privatize(COUNTS, LEVEL, **labels)
    with pytest.raises(ValueError, match=r"^column_labels must be left out if there are no columns"):
        privatize([1, 2], LEVEL, column_labels=["a"])


def test_no_seed_and_no_other_truncation():
    for name in ("seed", "rng", "random_state"):
        with pytest.raises(TypeError):
            privatize(COUNTS, LEVEL, **{name: 1})
    with pytest.raises(TypeError, match=r"^truncate must be True, False or None, got 1$"):
        privatize(COUNTS, LEVEL, truncate=1)
    with pytest.raises(ValueError, match=r"^sparse counts must have two axes, got 1$"):
        privatize(sp.coo_array([1, 2]), LEVEL)


def test_limits_leave_room_in_64_bits():
    assert reading.MAX_COUNT + noise.MAX_NOISE - 1 <= 2**63 - 1
    for count, tau in itertools.product((0, reading.MAX_COUNT), (1 - noise.MAX_NOISE, noise.MAX_NOISE - 1)):
        assert -(2**63) <= count + tau < 2**63
    assert Fraction(noise.MAX_NOISE) * noise.MIN_RATE > 2**21


# --- levels of rho ---


def test_discrete_gaussian_noise_reaches_every_cell():
    level = PrivacyLevel.zcdp("0.001")
    counts = np.full((40, 250), 5)
    for given in (counts, sp.csr_array(counts), counts.tolist()):
        release = privatize(given, level)
        noise = np.asarray(release.reports) - 5
        assert release.levels == level
        assert not release.truncated
        assert 18 < noise.std() < 27  # sigma = 22.4
        assert (noise != 0).mean() > 0.95


def test_rows_may_have_levels_of_rho_of_their_own(tmp_path):
    levels = [PrivacyLevel.zcdp("0.00001"), PrivacyLevel.zcdp(1000)] * 2
    release = privatize(np.ones((4, 30), dtype=int), levels)
    assert (release.reports[1::2] == 1).all()
    assert (release.reports[::2] != 1).any()
    release.save(tmp_path / "r.npz")
    again = Release.load(tmp_path / "r.npz")
    assert again.levels == tuple(levels)
    assert "Every row has its own level, rho from 1e-05 to 1000;" in again.describe()
    assert "sigma 0.02236 to 223.6, by row" in again._repr_html_()
    files = privatize_to_files(np.ones((4, 3), dtype=int), levels, tmp_path / "parts", rows_per_file=2)
    assert [Release.load(path).levels for path in files] == [tuple(levels[:2])] * 2


def test_no_release_cuts_discrete_gaussian_reports():
    level = PrivacyLevel.zcdp(1)
    with pytest.raises(ValueError, match="truncate must be False or None with discrete Gaussian noise, got True"):
        privatize([[1, 2]], level, truncate=True)
    with pytest.raises(ValueError, match="truncated must be False with discrete Gaussian noise, got True"):
        Release([[1, 2]], level, True)


def test_levels_of_both_kinds_do_not_mix_in_a_release():
    with pytest.raises(ValueError, match="all rows must have levels of one kind"):
        privatize([[1], [2]], [PrivacyLevel.zcdp(1), PrivacyLevel(1, 1)])
    with pytest.raises(ValueError, match=r"level must have a rho of at least 2\*\*-81"):
        privatize([[1]], PrivacyLevel.zcdp("1e-30"))


@pytest.mark.parametrize("name", ["alpha", "epsilon", "precision"])
def test_a_release_of_rho_states_no_epsilon(name):
    release = privatize([[1, 2]], PrivacyLevel.zcdp("0.125"))
    with pytest.raises(ValueError, match=f"{name} must be stated by the mechanism, got discrete Gaussian"):
        getattr(release, name)
    assert repr(release) == "<Release: 1 x 2 reports, signed, rho=0.125>"


LEVEL_OF_NETWORKS = PrivacyLevel(1, 1)
QUIET = PrivacyLevel(1000, 1)  # whose noise is always 0
SYMMETRIC = np.array([[1, 3, 0], [3, 0, 5], [0, 5, 2]])
KINDS = {"array": lambda a: a, "sparse": sp.csr_array, "lists": lambda a: a.tolist()}


def dense_of_networks(reports):
    return reports.toarray() if sp.issparse(reports) else np.asarray(reports)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [SYMMETRIC, np.triu(SYMMETRIC)], ids=["both sides", "above"])
def test_undirected_pairs_are_reported_once(kind, counts, tmp_path):
    release = privatize(KINDS[kind](counts), QUIET, directed=False)
    np.testing.assert_array_equal(dense_of_networks(release.reports), np.triu(SYMMETRIC))
    assert release.directed is False
    release.save(tmp_path / "network.npz")
    assert Release.load(tmp_path / "network.npz").directed is False
    assert "each pair is reported once, above the diagonal" in release.describe()


@pytest.mark.parametrize("kind", KINDS)
def test_directed_networks_keep_both_sides(kind, tmp_path):
    release = privatize(KINDS[kind](SYMMETRIC), QUIET, directed=True)
    np.testing.assert_array_equal(dense_of_networks(release.reports), SYMMETRIC)
    release.save(tmp_path / "network.npz")
    assert Release.load(tmp_path / "network.npz").directed is True
    assert "the two directions of a pair" in release.describe()


@pytest.mark.parametrize("directed", [True, False])
def test_rows_and_columns_are_the_same_actors(directed):
    frame = pd.DataFrame(SYMMETRIC, list("abc"), list("abc"))
    assert privatize(frame, LEVEL_OF_NETWORKS, directed=directed).directed is directed
    for columns, said in (("abd", "'c' and 'd' at 2"), ("cba", "'a' and 'c' at 0")):
        with pytest.raises(ValueError, match=f"the same actors as rows and columns.* got {said}"):
            privatize(frame.set_axis(list(columns), axis=1), LEVEL_OF_NETWORKS, directed=directed)


def test_what_is_no_network_says_nothing_of_it(tmp_path):
    release = privatize(SYMMETRIC, LEVEL_OF_NETWORKS)
    assert release.directed is None
    assert b"directed" not in _format.members(release)[_format.META]
    release.save(tmp_path / "counts.npz")
    assert Release.load(tmp_path / "counts.npz").directed is None
    assert "actors" not in release.describe()


@pytest.mark.parametrize("kind", KINDS)
def test_counts_of_another_kind_are_refused_without_a_count(kind):
    for wrong in (np.array([[0, 71], [72, 0]]), np.array([[0, 0], [72, 0]])):
        with pytest.raises(
            ValueError,
            match=r"each pair once, .* different counts at index \(0, 1\) and \(1, 0\) .* give directed=True",
        ) as refused:
            privatize(KINDS[kind](wrong), LEVEL_OF_NETWORKS, directed=False)
        assert "7" not in str(refused.value)
        assert privatize(KINDS[kind](wrong), LEVEL_OF_NETWORKS, directed=True).directed is True
    for directed in (True, False):
        with pytest.raises(ValueError, match=r"must be square, one row and one column per actor, got 2 x 3"):
            privatize(KINDS[kind](np.ones((2, 3), dtype=int)), LEVEL_OF_NETWORKS, directed=directed)
    with pytest.raises(TypeError, match="directed must be True, False or None, got 'no'"):
        privatize(KINDS[kind](SYMMETRIC), LEVEL_OF_NETWORKS, directed="no")


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_what_it_says(kind):
    below = KINDS[kind](np.tril(SYMMETRIC))
    with pytest.raises(
        ReleaseError, match=r"undirected network must be 0 below the diagonal, got a nonzero report at index \(\d, \d\)"
    ):
        Release(below, LEVEL_OF_NETWORKS, True, directed=False)
    for shape in ((2, 3), (2,), (2, 2, 2)):
        with pytest.raises(ReleaseError, match="reports of a network must be square"):
            Release(np.zeros(shape, dtype=int), LEVEL_OF_NETWORKS, True, directed=True)
    with pytest.raises(ReleaseError, match="directed must be True, False or None, got 1"):
        Release(KINDS[kind](SYMMETRIC), LEVEL_OF_NETWORKS, True, directed=1)


@pytest.mark.parametrize(
    ("stated", "said"),
    [(None, "directed of type bool"), (0, "directed of type bool"), (False, "must be 0 below the diagonal")],
)
def test_a_file_that_says_something_else_is_refused(stated, said, tmp_path):
    members = _format.members(privatize(SYMMETRIC, QUIET, directed=True))
    members[_format.META] = _format.canonical(json.loads(members[_format.META]) | {"directed": stated})
    _archive.write(tmp_path / "bad.npz", members)
    with pytest.raises(ReleaseError, match=said):
        Release.load(tmp_path / "bad.npz")
