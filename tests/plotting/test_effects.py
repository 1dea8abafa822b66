"""Effects of covariates, as tables have them."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

import countveil as cv
from countveil import plotting
from tests.effects import FRAME, counts, model, the_fit


def test_contrasts_are_those_of_the_table_in_their_order():
    fit, (a, b) = the_fit(), ({"party": "R"}, {"party": "D"})
    ax = plotting.effects(fit, a, b, 0.8)
    table = fit.effects.contrast(a, b, 0.8).sort_values("estimate", ascending=False)
    (dots,) = ax.containers
    np.testing.assert_allclose(dots.lines[0].get_xdata(), table["estimate"])
    ends = np.array([line[:, 0] for line in dots.lines[2][0].get_segments()])
    np.testing.assert_allclose(ends, table[["lower", "upper"]], atol=1e-12)
    assert [each.get_text() for each in ax.get_yticklabels()] == [f"topic {k}" for k in table["topic"]]
    assert ax.get_title() == "To the right: more where party = R than where party = D"


def test_numbers_make_curves_with_bands_and_other_rows_dots():
    fit, frame = the_fit(), pd.DataFrame({"age": [50.0, 30.0, 40.0]})
    ax = plotting.expected_prevalence(fit, frame)
    table = fit.effects.prevalence(frame)
    for k, line in zip(table["topic"].unique(), ax.get_lines(), strict=True):
        rows = table[table["topic"] == k].set_index("row")
        np.testing.assert_allclose(line.get_xdata(), [30.0, 40.0, 50.0])
        np.testing.assert_allclose(line.get_ydata(), rows.loc[[30.0, 40.0, 50.0], "estimate"])
    assert len([each for each in ax.collections if isinstance(each, PolyCollection)]) == 3
    ax = plotting.expected_prevalence(fit, pd.DataFrame({"party": ["D", "R"]}, index=["x", "y"]))
    assert [each.get_text() for each in ax.get_xticklabels()] == ["party = D", "party = R"]
    assert len(ax.containers) == 3


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_what_has_no_intervals_is_drawn_without():
    naive = model().fit(
        cv.NaiveCounts(np.maximum(np.asarray(counts().reports), 0)), covariates=FRAME.reset_index(drop=True)
    )
    ax = plotting.effects(naive, {"party": "R"}, {"party": "D"})
    assert "no intervals: those of a naive fit" in ax.get_xlabel()
    assert not ax.containers[0].has_xerr


def test_others_are_refused():
    with pytest.raises(TypeError, match="fit must be a TopicModel, a TensorModel or a BlockModel, got str"):
        plotting.effects("fit", {}, {})
    with pytest.raises(ValueError, match="frame must have at least one row"):
        plotting.expected_prevalence(the_fit(), FRAME.iloc[:0])
