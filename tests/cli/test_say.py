"""What commands say is plain text."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.cli.errors import plain_errors
from countveil.cli.fit import print_members
from countveil.cli.say import say
from countveil.fit.topics import TOPICS
from tests.commands import fails, run

SOURCE = Path(cv.__file__).parent
NASTY = "\x1b]0;owned\x07\x1b]52;c;Zm9v\x07\u202e\x9b[/b][link=http://a.b]\u2066"


def is_plain(text):
    return text.replace("\n", "").isprintable()


def test_lines_stay_and_escape_sequences_are_written_out(capsys):
    say(f"a\n{NASTY}")
    say(NASTY, err=True)
    said = capsys.readouterr()
    assert said.out.startswith("a\n\\x1b]0;owned\\x07")
    assert is_plain(said.out + said.err)


def test_errors_are_plain(capsys):
    @plain_errors
    def command():
        raise ValueError(f"label {NASTY}")

    with pytest.raises(BaseException, match="1"):
        command()
    assert is_plain(capsys.readouterr().err)


def test_labels_of_a_fit_are_plain_and_no_markup(capsys):
    members = pd.DataFrame(
        {
            "component": [0],
            "member": [NASTY],
            "probability": 0.5,
            "lower": 0.4,
            "upper": 0.6,
            "prevalence": 1.0,
            "support": np.nan,
        }
    )
    print_members(f"Topics {NASTY}", TOPICS, members, weighted=False)
    said = capsys.readouterr().out
    assert is_plain(said)
    assert "[link=" in said.replace("\n", "")


def test_a_release_with_nasty_labels_is_fitted_and_shown_plainly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = np.random.default_rng(1).poisson(2.0, (8, 4))
    labels = [NASTY, "=1+1", "$x^", "<b>"]
    cv.privatize(counts, cv.PrivacyLevel(1, 1), column_labels=labels).save("r.npz")
    short = ["--topics", "2", "--draws", "4", "--tune", "2", "--chains", "2", "--seed", "1", "--threads", "1"]
    assert is_plain(run("fit", "topics", "r.npz", "-o", "f.nc", *short).output)
    assert is_plain(run("report", "f.nc", "-o", "f.html").output)
    page = (tmp_path / "f.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;" in page
    assert is_plain(page)
    assert is_plain(fails("fit", "blocks", "r.npz", "-o", "g.nc"))


def test_commands_print_in_no_other_way():
    printing = {
        path.name
        for path in (SOURCE / "cli").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"typer.echo", "print", "typer.secho"}
    }
    assert printing == {"say.py"}
