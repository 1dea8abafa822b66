import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from countveil.experiments.exhibits import score_table, summary, words_table


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
