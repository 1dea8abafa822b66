"""What scores say: differences, their standard errors, and a verdict in words."""

import numpy as np
import pytest

from countveil.inference.folds import stacking_weights
from countveil.selection.comparison import Comparison, standard_error

ROWS = np.repeat(np.arange(10), 6)
COLUMNS = np.tile(np.arange(6), 10)


def comparison(scores, failures=(), names=("5", "10", "20", "50")):
    return Comparison(
        names[: len(scores)], np.array(scores), ROWS, COLUMNS, COLUMNS % 2, np.arange(1.0, len(scores) + 1),
        tuple({"n_topics": k} for k in (5, 10, 20, 50))[: len(scores)], 1,
        dict(failures),
    )  # fmt: skip


@pytest.fixture
def found():
    """20 is best, 10 is tied with it, 5 and 50 are worse."""
    rng = np.random.default_rng(2)
    base = rng.normal(-1.0, 0.5, 60)
    rows = rng.normal(0.0, 0.3, 10)[ROWS]
    return comparison([base - 1.0 + 0.1 * rng.normal(size=60), base - 0.01 + rows - rows.mean(), base,
                       base - 0.5 + rows - rows.mean()])  # fmt: skip


def test_standard_errors_are_those_of_sums_over_rows_and_columns():
    """Against the definition: every two cells of one row or of one column count with their product."""
    rng = np.random.default_rng(1)
    gaps = rng.normal(size=60) + rng.normal(size=10)[ROWS] + rng.normal(size=6)[COLUMNS]
    gaps -= gaps.mean()

    def sum_where(together, factor):
        return factor * sum(gaps[i] * gaps[j] for i in range(60) for j in range(60) if together(i, j))

    by_row = sum_where(lambda i, j: ROWS[i] == ROWS[j], 10 / 9)
    by_column = sum_where(lambda i, j: COLUMNS[i] == COLUMNS[j], 6 / 5)
    by_cell = sum_where(lambda i, j: i == j, 60 / 59)
    assert standard_error(gaps, ROWS, COLUMNS) == pytest.approx(np.sqrt(by_row + by_column - by_cell) / 60)
    # Without dependence, the usual error of a mean: cells on a diagonal.
    every = np.arange(60)
    assert standard_error(gaps, every, every) == pytest.approx(gaps.std(ddof=1) / np.sqrt(60))
    assert standard_error(np.zeros(60), ROWS, COLUMNS) == 0.0


def test_a_standard_error_is_at_least_that_of_cells():
    gaps = np.where(COLUMNS % 2 == 0, 1.0, -1.0)  # sums over rows are zero
    usual = gaps.std(ddof=1) / np.sqrt(60)
    assert standard_error(gaps, ROWS, np.arange(60)) == pytest.approx(usual)


def test_the_table_has_differences_from_the_best_per_thousand_cells(found):
    table = found.table.set_index("model")
    assert list(table.columns) == ["score", "difference", "standard_error", "seconds", "n_topics"]
    np.testing.assert_allclose(table["score"], 1000 * found.scores.mean(axis=1))
    np.testing.assert_allclose(table["difference"], table["score"] - table.loc["20", "score"])
    error = 1000 * standard_error(found.scores[1] - found.scores[2], ROWS, COLUMNS)
    assert table.loc["10", "standard_error"] == pytest.approx(error)
    assert table.loc["20", ["difference", "standard_error"]].tolist() == [0.0, 0.0]
    assert table["n_topics"].tolist() == [5, 10, 20, 50]


def test_the_verdict_names_the_best_the_level_and_how_much_worse_the_others_are(found):
    assert (found.best, found.level) == ("20", ("10", "20"))
    table = found.table.set_index("model")
    by = [-table.loc[name, "difference"] / table.loc[name, "standard_error"] for name in ("5", "50")]
    assert found.verdict == (
        "20 predicts held-out reports best. 10 is tied with it. "
        f"5 is worse by {by[0]:.1f} standard errors. 50 is worse by {by[1]:.1f} standard errors."
    )
    assert repr(found) == f"{found.table.round(3).to_string(index=False)}\n{found.verdict}"


def test_a_model_that_failed_has_no_score_and_is_never_level():
    base = np.random.default_rng(1).normal(size=60)
    found = comparison([base, np.full(60, np.nan)], {"10": "its fit failed"})
    assert found.best == "5"
    assert found.level == ("5",)
    assert found.table["score"].isna().tolist() == [False, True]
    assert found.verdict == "5 predicts held-out reports best. 10 was not scored: its fit failed."


def test_a_notebook_shows_names_as_text(found):
    base = found.scores[0]
    html = comparison([base, base - 1.0], names=("<b>", "b"))._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "per 1,000 cells" in html


def test_it_cannot_be_changed(found):
    with pytest.raises(AttributeError):
        found.seed = 2


def test_it_is_drawn(found):
    ax = found.plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["5", "10", "20", "50"]


def test_models_have_the_weights_of_stacking():
    scores = np.log(np.random.default_rng(1).dirichlet(np.ones(4), 60)[:, :3]).T
    scores[1] = np.nan
    found = comparison(scores, {"10": "no fit"}, ("5", "10", "20")).weights
    assert found.index.tolist() == ["5", "10", "20"]
    assert found["10"] == 0.0
    np.testing.assert_allclose(found[["5", "20"]], stacking_weights(scores[[0, 2]].T))


def test_one_model_alone_is_not_called_the_best():
    found = comparison(np.log([[0.5, 0.2]]), names=("n_topics=3",))
    assert found.verdict == "There is only one model, n_topics=3: compare it with others."
