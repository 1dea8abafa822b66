import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from countveil.experiments.exhibits import score_table, summary, verdicts, words_table


def test_summary_over_draws():
    rows = [("1", 1, "naive", -2.0, 0.5, 0.1, 0.2, 1.0), ("1", 2, "naive", -3.0, 0.7, 0.3, 0.2, 1.0)]
    columns = ["level", "draw", "method", "log_score", "mae", "npmi", "npmi_plain", "seconds"]
    found = summary(pd.DataFrame(rows, columns=columns)).iloc[0]
    assert found["draws"] == 2
    assert found["log_score_mean"] == -2.5
    assert found["mae_sd"] == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert (found["npmi_min"], found["npmi_max"]) == (0.1, 0.3)


def printed(renderable, width=110):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(renderable)
        return console.export_text()


def test_tables_as_they_are_printed(watched, corpus):
    study = watched[0]
    text = printed(score_table(study.fits))
    ours = summary(study.fits).query("method == 'countveil' and level == '2'").iloc[0]
    assert f"{ours['mae_mean']:.3f}±{ours['mae_sd']:.3f}" in text
    assert "-inf" in text
    assert "standard deviation over 2 noise draws" in text
    words = printed(words_table(study, corpus))
    assert "fit of the true counts" in words
    assert sum(word in words for word in corpus.words) > 8


def test_the_table_fits_a_terminal_of_100_columns(watched):
    lines = printed(score_table(watched[0].fits), width=100).splitlines()
    assert any("true counts" in line and line.count(".") >= 4 for line in lines)


GOOD = {"ours": (-2.0, 0.1, 0.30), "naive": (-3.0, 0.3, 0.10), "rival": (-2.5, 0.2, 0.30)}


def made_up(changes=None, levels=("1", "2"), draws=3, wobble=0.01):
    """Fits whose metrics are those of GOOD, with a small spread; changes: {(level, method): metrics}."""
    rows = []
    for level in levels:
        for method, usual in GOOD.items():
            log_score, mae, npmi = (changes or {}).get((level, method), usual)
            for draw in range(1, draws + 1):
                shift = wobble * (draw - (draws + 1) / 2)
                rows.append((level, draw, method, log_score + shift, mae + shift, npmi + shift))
    rows.append(("none", 0, "truth", -1.0, 0.05, 0.4))
    return pd.DataFrame(rows, columns=["level", "draw", "method", "log_score", "mae", "npmi"])


def answers(fits):
    return [verdict.holds for verdict in verdicts(fits, "ours", "naive", "rival")]


def test_all_hold_when_ours_is_better_everywhere():
    found = verdicts(made_up(), "ours", "naive", "rival")
    assert [verdict.holds for verdict in found] == [True] * 6
    assert found[0].claim == "ours ahead of naive on log score at every level"
    assert found[0].numbers == "1: -2.000 against -3.000 (3 of 3); 2: -2.000 against -3.000 (3 of 3)"
    assert found[1].numbers.startswith("1: 0.100 against 0.300 (3 of 3)")


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({("2", "naive"): (-1.9, 0.3, 0.1)}, [0]),
        ({("2", "naive"): (-3.0, 0.09, 0.1)}, [1]),
        ({("1", "naive"): (-3.0, 0.3, 0.31)}, [2]),
        ({("1", "rival"): (-1.5, 0.2, 0.3)}, [3]),
        ({("2", "rival"): (-2.5, 0.05, 0.3)}, [4]),
        ({("2", "rival"): (-2.5, 0.2, 0.35)}, [5]),
        ({("1", "ours"): (-4.0, 0.9, 0.0)}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_one_worse_level_makes_the_claim_fail(changes, failing):
    fits = made_up(changes)
    assert [i for i, holds in enumerate(answers(fits)) if not holds] == failing
    for i in failing:
        assert " NO" in verdicts(fits, "ours", "naive", "rival")[i].numbers


def test_a_tie_is_not_ahead():
    tied = made_up({(level, "naive"): GOOD["ours"] for level in "12"})
    assert answers(tied)[:3] == [False, False, False]


def test_not_behind_allows_for_the_spread_of_the_draws_only():
    """Sample deviations of 0.01 each allow a gap up to 0.0141."""
    assert answers(made_up({("1", "rival"): (-2.5, 0.2, 0.314)}))[5]
    assert not answers(made_up({("1", "rival"): (-2.5, 0.2, 0.315)}))[5]


def test_one_draw_has_no_spread():
    assert answers(made_up(draws=1))[5]
    assert not answers(made_up({("1", "rival"): (-2.5, 0.2, 0.301)}, draws=1))[5]


def test_draws_are_paired_by_number_whatever_the_order_of_the_rows():
    fits = made_up().sample(frac=1.0, random_state=1).sort_values("level", kind="stable")
    assert answers(fits) == [True] * 6


def test_without_our_fits_nothing_holds():
    fits = made_up()
    assert not any(answers(fits[fits["method"] != "ours"]))
