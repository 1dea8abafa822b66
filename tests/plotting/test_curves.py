import numpy as np
import pandas as pd
import pytest

from countveil import plotting

DEMO = pd.DataFrame(
    [
        ("none", "true counts", 0.1, 0.1, 0.1),
        ("2", "countveil", 0.2, 0.1, 0.4),
        ("1", "countveil", 0.3, 0.2, 0.5),
        ("1", "naive", 0.9, 0.8, 1.0),
    ],
    columns=["level", "method", "mae_mean", "mae_min", "mae_max"],
)
PLAN = pd.DataFrame(
    {
        "level": ["no noise", "2:1", "1:3", "2:1"],
        "rows": [100, 100, 100, 50],
        "method": ["true counts", "countveil", "countveil", "countveil"],
        "topic_error": [0.1, 0.4, 0.2, 0.6],
        "topic_error_error": [0.0, 0.05, 0.01, 0.1],
    }
)


def curves(ax):
    return {each.get_label(): each for each in ax.containers}


def test_the_demo_s_table_is_drawn_by_level(tmp_path):
    DEMO.to_csv(tmp_path / "scores.csv", index=False)
    for table in (DEMO, tmp_path / "scores.csv"):
        ax = plotting.privacy_utility(table)
        assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "2"]
        middle, _, (bars,) = curves(ax)["countveil"].lines
        np.testing.assert_allclose(middle.get_ydata(), [0.3, 0.2])
        np.testing.assert_allclose([s[:, 1] for s in bars.get_segments()], [[0.2, 0.5], [0.1, 0.4]])
        assert list(curves(ax)) == ["countveil", "naive"]
        assert [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [0.1]
        assert "more noise to the left" in ax.get_xlabel()


def test_a_plan_is_drawn_at_its_largest_number_of_participants_or_another():
    ax = plotting.privacy_utility(PLAN, "topic_error")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.5", "3"]
    middle, _, (bars,) = curves(ax)["countveil"].lines
    np.testing.assert_allclose(middle.get_ydata(), [0.4, 0.2])
    np.testing.assert_allclose(bars.get_segments()[0][:, 1], [0.3, 0.5])
    fewer = plotting.privacy_utility(PLAN, "topic_error", rows=50)
    np.testing.assert_allclose(curves(fewer)["countveil"].lines[0].get_ydata(), [0.6])


def test_what_is_not_in_the_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must have the columns .*, got none called npmi_mean"):
        plotting.privacy_utility(DEMO, "npmi")
    with pytest.raises(ValueError, match=r"rows must be one of \[50, 100\], got 7"):
        plotting.privacy_utility(PLAN, "topic_error", rows=7)
    with pytest.raises(ValueError, match="rows requires the table of a plan, got 7"):
        plotting.privacy_utility(DEMO, rows=7)
    with pytest.raises(FileNotFoundError):
        plotting.privacy_utility(tmp_path / "none.csv")
