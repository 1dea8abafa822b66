import re

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.data.observations import ExactCounts, NaiveCounts, PrivatizedCounts
from countveil.privacy import PrivacyLevel, Release, privatize

TENSOR = np.zeros((2, 3, 2, 2), dtype=int)
TENSOR[0, 1, 0, 1], TENSOR[1, 2, 1, 0], TENSOR[1, 0, 0, 0] = 4, 7, 1
WHERE = np.array(np.nonzero(TENSOR))
VALUES = TENSOR[tuple(WHERE)]
LABELS = [["kenya", "peru"], ["aid", "talk", "war"], ["jan", "feb"], None]
BRIEF = {"draws": 2, "tune": 1, "chains": 1, "seed": 1, "progress": False}

EVENTS = pd.DataFrame(
    {
        "sender": ["peru", "kenya", "peru", "kenya", "peru"],
        "action": ["talk", "aid", "talk", "war", "aid"],
        "year": [1991, 1990, 1991, 1990, 1990],
    }
)
SENDERS, ACTIONS, YEARS = ["chad", "kenya", "peru"], ["aid", "talk", "war"], [1990, 1991]
KNOWN = {"sender": SENDERS, "action": ACTIONS, "year": YEARS}
OF_TWO = {"sender": SENDERS, "action": ACTIONS}
COUNTED = np.zeros((3, 3, 2), dtype=int)
COUNTED[2, 1, 1], COUNTED[1, 0, 0], COUNTED[1, 2, 0], COUNTED[2, 0, 0] = 2, 1, 1, 1
CELLS = EVENTS.value_counts().rename("report").reset_index()


def assert_same_cells(one, other):
    assert one.mode_shape == other.mode_shape
    for name in ("indptr", "columns", "reports", "level_e", "level_d", "exposure_d"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("form", ["vectors", "array", "floats", "shuffled"])
def test_coordinates_are_the_array_that_they_list(form):
    where, values = {
        "vectors": (tuple(WHERE.tolist()), VALUES.tolist()),
        "array": (WHERE, VALUES),
        "floats": (WHERE.astype(float), VALUES.astype(float)),
        "shuffled": (WHERE[:, ::-1], VALUES[::-1]),
    }[form]
    shape = TENSOR.shape
    assert_same_cells(
        PrivatizedCounts.from_coordinates(where, values, 0.5, shape=shape, labels=LABELS), PrivatizedCounts(TENSOR, 0.5)
    )
    assert_same_cells(ExactCounts.from_coordinates(where, values, shape=shape), ExactCounts(TENSOR))
    assert_same_cells(NaiveCounts.from_coordinates(where, values, shape=shape), NaiveCounts(TENSOR))


def test_the_shape_comes_from_labels_or_coordinates():
    found = PrivatizedCounts.from_coordinates(WHERE, VALUES, 0.5, labels=[["a", "b", "c"], None, None, None])
    assert found.mode_shape == (3, 3, 2, 2)
    assert ExactCounts.from_coordinates([[4], [1]], [2]).mode_shape == (5, 2)
    empty = [np.empty(0, dtype=int)] * 2
    assert ExactCounts.from_coordinates(empty, [], shape=(2, 2)).reports.size == 0
    with pytest.raises(ValueError, match="shape must be given"):
        ExactCounts.from_coordinates(empty, [])


def test_reports_that_are_not_positive_may_be_listed_or_left_out():
    listed = PrivatizedCounts.from_coordinates([[0, 1, 1], [0, 0, 1]], [3, -2, 0], 0.5, shape=(2, 2))
    assert_same_cells(listed, PrivatizedCounts.from_coordinates([[0], [0]], [3], 0.5, shape=(2, 2)))


@pytest.mark.parametrize(
    ("where", "shape", "labels", "message"),
    [
        ([[0, 2], [0, 1]], (2, 2), None, "along axis 0 must be from 0 to 1, got 2 in entry 1"),
        ([[0, 1], [-1, 1]], None, None, "along axis 1 must be from 0 to 1, got -1 in entry 0"),
        ([[0, 1], [0, 1]], (2, 2, 2), None, "shape must have one entry for each of the 2 axes"),
        ([[0, 1], [0, 1]], None, [None] * 3, "labels must have one entry for each of the 2 axes"),
        ([[0, 1]], None, None, "2 axes or more, got 1"),
        ([[0, 1], [0]], None, None, "all of one length"),
        ([[0, 1, 1], [0, 1, 0]], None, None, re.escape("one entry for each cell of coordinates, (3,)")),
        ([[0, 0.5], [0, 1]], None, None, "whole numbers, got 0.5 in entry 1 of axis 0"),
        ([[0, np.nan], [0, 1]], None, None, "whole numbers, got nan in entry 1 of axis 0"),
        ([["a", "b"], [0, 1]], None, None, "whole numbers, got a in entry 0 of axis 0"),
        ([[1, 1], [0, 0]], None, None, re.escape("each cell once, got cell (1, 0) again in entry 1")),
        ([[0, 1], [0, 1]], (2, 2**31), None, "at most 2147483647 cells"),
        ([[0, 1], [0, 1]], (2, 0), None, "at least one entry along every axis"),
        ([[0, 1], [0, 1]], None, [["a"], None], "along axis 0 must be from 0 to 0, got 1"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(where, shape, labels, message):
    with pytest.raises(ValueError, match=message):
        PrivatizedCounts.from_coordinates(where, [3, 1], 0.5, shape=shape, labels=labels)
    with pytest.raises(ValueError, match=message.replace("reports", "counts")):
        ExactCounts.from_coordinates(where, [3, 1], shape=shape, labels=labels)


def test_duplicates_are_summed_for_true_counts_only():
    found = ExactCounts.from_coordinates([[1, 0, 1], [0, 1, 0]], [2, 3, 4], sum_duplicates=True)
    assert_same_cells(found, ExactCounts([[0, 3], [6, 0]]))
    for make in (lambda **o: PrivatizedCounts.from_coordinates([[0], [0]], [1], 0.5, **o),
                 lambda **o: NaiveCounts.from_coordinates([[0], [0]], [1], **o),
                 lambda **o: PrivatizedCounts.from_frame(CELLS, ["sender", "action"], "report", 0.5, **o)):  # fmt: skip
        with pytest.raises(ValueError, match="carries the noise of each"):
            make(sum_duplicates=True)


def test_fractions_are_refused_and_shown_only_if_they_are_reports():
    with pytest.raises(ValueError, match=r"reports must be whole numbers, got 2\.5"):
        PrivatizedCounts.from_coordinates([[0], [0]], [2.5], 0.5)
    with pytest.raises(ValueError, match="counts must be whole numbers") as caught:
        ExactCounts.from_coordinates([[0], [0]], [2.5])
    assert "2.5" not in str(caught.value)
    with pytest.raises(ValueError, match="counts must be whole numbers") as caught:
        ExactCounts.from_frame(CELLS.assign(report=0.25), ["sender", "action", "year"], "report")
    assert "0.25" not in str(caught.value)


def test_labels_of_coordinates_reach_the_posterior():
    data = PrivatizedCounts.from_coordinates(WHERE, VALUES, 0.5, shape=TENSOR.shape, labels=LABELS)
    modes = ["sender", "action", "month", "kind"]
    draws = cv.TensorModel(1, modes=modes, **BRIEF).fit(data).posterior["posterior"]
    for mode, names in zip(modes[:3], LABELS, strict=False):
        assert draws[mode].to_numpy().tolist() == names
    assert draws["kind"].to_numpy().tolist() == [0, 1]


def test_events_are_counted_along_sorted_axes():
    found = ExactCounts.from_frame(EVENTS, ["sender", "action", "year"])
    assert found.labels == (["kenya", "peru"], ACTIONS, ["1990", "1991"])
    assert_same_cells(found, ExactCounts(COUNTED[1:]))


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_categories_may_be_told_beforehand_or_by_the_column(dtype):
    frame = EVENTS.astype({"sender": dtype})
    found = ExactCounts.from_frame(frame, ["sender", "action", "year"], categories={"sender": SENDERS})
    assert_same_cells(found, ExactCounts(COUNTED))
    order = ["peru", "chad", "kenya"]
    frame["sender"] = pd.Categorical(EVENTS["sender"], order)
    found = ExactCounts.from_frame(frame, ["sender", "action", "year"])
    assert found.labels[0] == order
    assert_same_cells(found, ExactCounts(COUNTED[[2, 0, 1]]))


@pytest.mark.parametrize("dtype", [int, float, "Int64"])
def test_a_column_of_values(dtype):
    cells, axes = CELLS.astype({"report": dtype}), ["sender", "action", "year"]
    assert_same_cells(
        PrivatizedCounts.from_frame(cells, axes, "report", 0.5, categories=KNOWN), PrivatizedCounts(COUNTED, 0.5)
    )
    assert_same_cells(PrivatizedCounts.from_frame(cells, axes, value="report", alpha=[0.5, 0.1, 0.2], categories=KNOWN),
                      PrivatizedCounts(COUNTED, [0.5, 0.1, 0.2]))  # fmt: skip
    assert_same_cells(ExactCounts.from_frame(cells, axes, "report", categories=KNOWN), ExactCounts(COUNTED))
    assert_same_cells(NaiveCounts.from_frame(cells, axes, "report", categories=KNOWN), NaiveCounts(COUNTED))
    twice = pd.concat([cells, cells])
    total = ExactCounts.from_frame(twice, axes, "report", categories=KNOWN, sum_duplicates=True)
    assert_same_cells(total, ExactCounts(2 * COUNTED))
    with pytest.raises(ValueError, match="each cell once"):
        ExactCounts.from_frame(twice, axes, "report", categories=KNOWN)


def test_labels_of_a_frame_reach_the_posterior():
    data = PrivatizedCounts.from_frame(CELLS, ["sender", "action", "year"], "report", 0.5, categories=KNOWN)
    fit = cv.TensorModel(1, modes=["sender", "action", "year"], **BRIEF).fit(data)
    rate = fit.rate()
    assert rate.coords["sender"].to_numpy().tolist() == SENDERS
    assert rate.coords["year"].to_numpy().tolist() == ["1990", "1991"]
    topics = cv.TopicModel(1, **BRIEF).fit(ExactCounts.from_frame(EVENTS, ["sender", "action"]))
    assert topics.posterior["posterior"]["word"].to_numpy().tolist() == ACTIONS
    assert topics.posterior["posterior"]["doc"].to_numpy().tolist() == ["kenya", "peru"]


@pytest.mark.parametrize(
    ("change", "axes", "value", "message"),
    [
        ({}, ["sender", "place"], None, "one column 'place'"),
        ({}, ["sender", "action"], "size", "one column 'size'"),
        ({}, ["sender"], None, "two columns or more"),
        ({}, "sender", None, "two columns or more"),
        ({}, ["sender", "sender"], None, "each once"),
        ({"sender": "oz"}, ["sender", "action"], None, "its categories only, got a value outside them"),
        ({"sender": None}, ["sender", "action"], None, "column 'sender' must have no missing entries, got 5"),
        ({"action": [1, "1", 1, 1, 1]}, ["sender", "action"], None, "can be sorted"),
        ({"size": "many"}, ["sender", "action", "year"], "size", "whole numbers"),
        ({"size": np.nan}, ["sender", "action"], "size", "whole numbers"),
    ],
)  # fmt: skip
def test_frames_that_do_not_fit_are_refused(change, axes, value, message):
    with pytest.raises(ValueError, match=message):
        ExactCounts.from_frame(EVENTS.assign(**change), axes, value, categories={"sender": SENDERS})


def test_an_unknown_category_of_reports_is_shown():
    with pytest.raises(ValueError, match="categories only, got 'peru' in row"):
        PrivatizedCounts.from_frame(
            CELLS, ["sender", "action", "year"], "report", 0.5, categories={"sender": ["kenya", "chad"]}
        )


def test_what_is_no_frame_no_value_and_no_axis_is_refused():
    with pytest.raises(TypeError, match="frame must be a pandas DataFrame, got list"):
        ExactCounts.from_frame([1], ["a", "b"])
    with pytest.raises(ValueError, match="value must name the column of reports"):
        NaiveCounts.from_frame(EVENTS, ["sender", "action"])
    with pytest.raises(ValueError, match="categories must be for axes among"):
        ExactCounts.from_frame(EVENTS, ["sender", "action"], categories={"year": YEARS})
    with pytest.raises(ValueError, match="as text"):
        ExactCounts.from_frame(EVENTS, ["sender", "year"], categories={"year": [1990, "1990", 1991]})


def test_an_owner_counts_events_and_the_analyst_folds_the_release(tmp_path):
    table = cv.count_table(EVENTS, ["sender", "action", "year"], KNOWN)
    np.testing.assert_array_equal(table.to_numpy(), COUNTED.reshape(3, 6))
    assert table.columns[:2].tolist() == ["aid | 1990", "aid | 1991"]
    privatize(table, PrivacyLevel(1, 1)).save(tmp_path / "r.npz")
    release = Release.load(tmp_path / "r.npz")
    data = PrivatizedCounts.from_release(release).folded()
    assert data.labels == (SENDERS, ACTIONS, ["1990", "1991"])
    assert_same_cells(data, PrivatizedCounts(release.reports.reshape(3, 3, 2), release.alpha))
    fit = cv.TensorModel(1, modes=["sender", "action", "year"], **BRIEF).fit(data)
    assert fit.rate().coords["action"].to_numpy().tolist() == ACTIONS


def test_an_owner_adds_up_values_and_two_axes_keep_their_names():
    weighed = EVENTS.assign(n=[5, 1, 2, 0, 1])
    table = cv.count_table(weighed, ["sender", "action"], OF_TWO, "n")
    assert table.loc["peru", "talk"] == 7
    assert table.columns.tolist() == ACTIONS
    assert privatize(table, PrivacyLevel(1, 1)).labels == (tuple(SENDERS), tuple(ACTIONS))


@pytest.mark.parametrize(
    ("frame", "known", "value", "message"),
    [
        (EVENTS, {"sender": SENDERS, "action": ACTIONS}, None, "got none for 'year'"),
        (EVENTS, KNOWN | {"action": ["aid", "talk | war", "war"]}, None, "must hold its categories only"),
        (EVENTS, KNOWN | {"action": [*ACTIONS, "a | b"]}, None, "must not hold ' | '"),
        (
            EVENTS.assign(n=[-9, 1, 1, 1, 1]),
            KNOWN,
            "n",
            "must be non-negative, got a negative count in row 0 of column 'n'",
        ),
        (EVENTS.assign(n=[9.5, 1, 1, 1, 1]), KNOWN, "n", "counts must be whole numbers"),
        (EVENTS.assign(action="secret"), KNOWN, None, "not shown: it may be private"),
    ],
)
def test_an_owners_errors_show_nothing_private(frame, known, value, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        cv.count_table(frame, ["sender", "action", "year"], known, value)
    assert not re.search(r"secret|9\.5|-9", str(caught.value))


def test_a_matrix_is_folded_by_a_shape():
    flat = PrivatizedCounts(TENSOR.reshape(2, -1), [0.5, 0.2], row_labels=["a", "b"])
    found = flat.folded(TENSOR.shape, [None, *LABELS[1:]])
    assert_same_cells(found, PrivatizedCounts(TENSOR, [0.5, 0.2]))
    assert found.labels == (["a", "b"], *LABELS[1:])
    assert flat.folded(TENSOR.shape, LABELS).labels == tuple(LABELS)
    assert flat.mode_shape == (2, 12)
    assert found.take(np.array([1])).labels[0] == ["b"]
    cells = PrivatizedCounts(TENSOR.reshape(2, -1), np.linspace(0, 0.9, 24).reshape(2, 12)).folded(TENSOR.shape)
    assert_same_cells(cells, PrivatizedCounts(TENSOR, np.linspace(0, 0.9, 24).reshape(TENSOR.shape)))


def test_what_cannot_be_folded_is_refused():
    flat = ExactCounts(TENSOR.reshape(2, -1))
    with pytest.raises(ValueError, match=r"the 2 rows .* the 12 columns, got \(2, 3, 3\)"):
        flat.folded((2, 3, 3))
    with pytest.raises(ValueError, match="the 2 rows"):
        flat.folded((3, 4, 2))
    with pytest.raises(ValueError, match="only a matrix can be folded, got 4 axes"):
        ExactCounts(TENSOR).folded((2, 12))
    with pytest.raises(ValueError, match="got no names; give the shape"):
        flat.folded()
    for names in (["a | 1", "b | 1", "a | 2", "b | 2"], ["a | 1", "a", "b | 1", "b"], list("abcd")):
        with pytest.raises(ValueError, match="in C order, got"):
            ExactCounts(np.ones((1, 4), dtype=int), column_labels=names).folded()


def test_labels_of_a_release_with_many_axes_reach_the_posterior():
    plain = privatize(TENSOR, PrivacyLevel(1, 1))
    labels = (*[tuple(names) for names in LABELS[:3]], None)
    release = Release(plain.reports, plain.levels, plain.truncated, labels)
    fit = cv.TensorModel(1, **BRIEF).fit(release)
    assert fit.posterior["posterior"]["mode2"].to_numpy().tolist() == ["jan", "feb"]
    assert PrivatizedCounts.from_release(release).labels == tuple(LABELS)
    with pytest.raises(TypeError, match="release must be a Release, got ndarray"):
        PrivatizedCounts.from_release(TENSOR)


@pytest.mark.parametrize("reader", [PrivatizedCounts, cv.Reports])
def test_other_labels_than_those_of_a_release_are_not_dropped_in_silence(reader):
    release = privatize(TENSOR[:, :, 0, 0], PrivacyLevel(1, 1), row_labels=LABELS[0])
    with pytest.raises(TypeError, match="multiple values for keyword argument 'row_labels'"):
        reader.from_release(release, row_labels=LABELS[0][::-1])
    with pytest.raises(TypeError, match="multiple values for keyword argument 'labels'"):
        reader.from_release(release, labels=[LABELS[0][::-1], None])
    with pytest.raises(TypeError, match="multiple values for keyword argument 'row_labels'"):
        reader.from_release(privatize(TENSOR, PrivacyLevel(1, 1)), row_labels=LABELS[0])


def test_naive_tensors_keep_their_labels():
    found = NaiveCounts(TENSOR - 1, labels=LABELS)
    assert found.labels == tuple(LABELS)
    assert found.row_labels == LABELS[0]
    assert found.mode_shape == TENSOR.shape


def test_counts_without_noise_have_no_protection():
    with pytest.raises(ValueError, match=r"protection must be None for ExactCounts, got tuple: pass"):
        ExactCounts.from_coordinates([[0], [0]], [1], (2, 2))
    with pytest.raises(ValueError, match=r"protection must be None for NaiveCounts, got float"):
        NaiveCounts.from_frame(CELLS, ["sender", "action", "year"], "report", 0.5)


def test_true_counts_in_the_wrong_place_are_not_shown():
    with pytest.raises(ValueError, match="protection must be None for ExactCounts") as caught:
        ExactCounts.from_coordinates([[0], [0]], [1], np.array([[31, 47]]))
    assert "31" not in str(caught.value)
    assert "got ndarray" in str(caught.value)
