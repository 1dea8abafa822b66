import numpy as np
import pandas as pd
import pytest

from countveil.planning import Target, misleads, participants, summary
from countveil.planning.answers import read_target
from countveil.planning.simulate import MEASURES


def fits(**errors):
    """Two replicates, around the given errors of the rates, by method and then rows."""
    rows = []
    for method, by_rows in errors.items():
        for n, value in by_rows.items():
            for replicate, shift in ((1, -0.01), (2, 0.01)):
                measured = dict.fromkeys(MEASURES, value + shift) | {"total": 1.0, "coverage": 0.9, "seconds": 1.0}
                measured["log_score"] = -value - shift
                rows.append({"level": "1:1", "precision": "1", "epsilon": "1", "rows": n, "replicate": replicate,
                             "method": method.replace("_", " "), **measured})  # fmt: skip
    return pd.DataFrame(rows)


def test_the_summary_is_of_means_and_standard_errors():
    found = summary(fits(countveil={50: 0.4, 20: 0.6}))
    assert found["rows"].tolist() == [20, 50]
    assert found["mae"].tolist() == pytest.approx([0.6, 0.4])
    assert found["mae_error"].tolist() == pytest.approx([0.01, 0.01])
    assert found["replicates"].tolist() == [2, 2]


def test_participants_are_found_between_the_sizes():
    found = summary(fits(countveil={100: 0.6, 400: 0.2}))
    assert participants(found, Target("mae", 0.4)) == ["1:1: about 200 participants (simulation error: 187 to 214)"]
    assert participants(found, Target("mae", 0.7)) == ["1:1: 100 participants are enough, and maybe fewer"]
    assert participants(found, Target("mae", 0.1)) == ["1:1: not reached with 400 participants"]
    (line,) = participants(found, Target("mae", 0.195))
    assert line == "1:1: not reached with 400 participants (simulation error: 380 to more than 400)"
    (line,) = participants(found, Target("log_score", -0.4))
    assert "about 200 participants" in line
    assert participants(found.assign(mae=np.nan), Target("mae", 0.4)) == ["1:1: not measured in this simulation"]


def test_a_curve_that_comes_back_up_is_reached_where_it_stays_below():
    found = summary(fits(countveil={10: 0.3, 100: 0.5, 1000: 0.3}))
    (line,) = participants(found, Target("mae", 0.4))
    assert "about 316 participants" in line


RIVALS = {"least_squares": {50: 0.4}, "column_means": {50: 0.9}}


def test_the_naive_way_is_judged_by_its_error():
    (line,) = misleads(summary(fits(countveil={50: 0.3}, naive={50: 0.6}, **RIVALS)))
    assert line.startswith("1:1, 50 rows: NAIVE MISLEADS, worse than ours and than least squares: its error of the ")
    assert "rates is 0.6 per cell against 0.3 (least squares 0.4)." in line
    (line,) = misleads(summary(fits(countveil={50: 0.3}, naive={50: 0.4}, **RIVALS)))
    assert "NAIVE MISLEADS, worse than ours:" in line
    (line,) = misleads(summary(fits(countveil={50: 0.3}, naive={50: 0.305}, **RIVALS)))
    assert "naive does about as well" in line
    (line,) = misleads(summary(fits(countveil={50: 0.9}, naive={50: 0.6}, **RIVALS)))
    assert "NAIVE MISLEADS, worse than least squares:" in line


def test_wrong_totals_and_intervals_are_told_also_where_the_error_is_not():
    told = fits(countveil={50: 0.3}, naive={50: 0.3}, **RIVALS)
    told.loc[told["method"] == "naive", ["total", "coverage"]] = 1.5, 0.4
    (line,) = misleads(summary(told))
    assert "naive is no worse on the mean error, but do not trust it: " in line
    assert "it sees 1.5 times the true number of counts; " in line
    assert "the middle 90% of its draws covers 40% of the true rates (ours 90%)" in line


def test_too_much_noise_is_said():
    (line,) = misleads(summary(fits(countveil={50: 0.9}, naive={50: 1.6}, **RIVALS)))
    assert "means over all rows: too much noise, or too few rows." in line


def test_topics_that_will_not_be_found_are_said():
    (line,) = misleads(summary(fits(countveil={50: 0.6}, naive={50: 1.6}, **RIVALS)))
    assert line.endswith("Do not expect ours to find the topics: more than half of a topic is wrong (topic error 0.6).")
    (line,) = misleads(summary(fits(countveil={50: 0.45}, naive={50: 1.6}, **RIVALS)))
    assert "find the topics" not in line
    unknown = fits(countveil={50: 0.6}, naive={50: 1.6}, **RIVALS).assign(topic_error=np.nan)
    (line,) = misleads(summary(unknown))
    assert "find the topics" not in line


def test_targets():
    assert read_target("topic_error:0.25") == Target("topic_error", 0.25)
    for text in ("mae", "seconds:1", "mae:low", "mae:nan", "coverage:0.9"):
        with pytest.raises(ValueError, match="target must"):
            read_target(text)
