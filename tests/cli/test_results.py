"""``--json`` and ``--quiet``: what was found, as one object; or nothing but errors."""

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import countveil as cv
from countveil.cli.app import app
from countveil.cli.results import Failed, as_text, silent, with_quiet, with_result
from countveil.privacy import PrivacyLevel
from countveil.study.audit import Finding
from tests.commands import ASKED, SHORT, fails, privatized, run

RESULTS = {
    "audit", "checklist", "collect", "compare", "counts", "fit blocks", "fit dynamic", "fit tensor", "fit topics",
    "forecast", "join", "look", "plan", "plan-trend", "show", "study new", "study show", "study status",
}  # fmt: skip
NEITHER = {"demo", "demo communities", "receive", "study strings"}


def commands(command, name=""):
    """(name, command) of every command that does something."""
    children = getattr(command, "commands", {})
    if name and (not children or command.invoke_without_command):
        yield name, command
    for key, each in children.items():
        yield from commands(each, f"{name} {key}".strip())


def test_every_command_that_finds_something_has_both():
    for name, command in commands(typer.main.get_command(app)):
        options = {text for each in command.params for text in each.opts}
        assert ("--json" in options) == (name in RESULTS), name
        assert ({"--quiet", "-q"} <= options) == (name not in NEITHER), name


@pytest.mark.long
def test_a_fit_is_printed_as_json_and_all_else_goes_to_stderr(here):
    privatized()
    done = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "--members", "3", "--json")
    found, fit = json.loads(done.stdout), cv.TopicModel.load("f.nc")
    assert [row["word"] for row in found["topics by word"]] == fit.topics(3)["word"].tolist()
    assert (found["verdict"], found["seed"], found["output"]) == (fit.diagnostics().verdict, 1, "f.nc")
    assert "Wrote f.nc" in done.stderr
    found = json.loads(
        run("compare", "r.npz", "--topics", "1,2", *SHORT[2:8], "--folds", "2", "--seed", "1", "--json").stdout
    )
    assert [row["n_topics"] for row in found["models"]] == [1, 2]
    assert found["verdict"]


def test_quiet_commands_print_errors_and_warnings_alone(here):
    assert privatized("--quiet").stdout == ""
    done = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "-q")
    assert (done.stdout, done.stderr) == ("", "")
    assert cv.TopicModel.load("f.nc").seed_ == 1
    assert json.loads(run("show", "f.nc", "--json", "--quiet").stdout)["verdict"]
    assert "f.nc exists already" in fails("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "-q")
    assert "no fit at none.nc" in fails("show", "none.nc", "--json")


def test_a_study_is_printed_as_json(here):
    (here / "word.txt").write_text("surprise\nparty\n")
    made = json.loads(run("study", "new", "word.txt", "-o", "s.json", *ASKED, "--json").stdout)
    shown = json.loads(run("study", "show", "s.json", "--json").stdout)
    assert shown == json.loads((here / "s.json").read_text())
    assert made["id"] == cv.privacy.study.load("s.json").id
    assert len(made["levels"]) == 1


def test_an_audit_that_fails_prints_its_findings_and_exits_with_1(monkeypatch):
    level = PrivacyLevel(1, 10)

    def audit(levels):
        yield Finding("arrays", "law", level, True, "p = 0.5", "a deviation of 0.001")
        yield Finding("arrays", "alpha", level, False, "p = 0", "alpha wrong by 1%")

    monkeypatch.setattr("countveil.study.audit.audit", audit)
    done = run("audit", "--level", "10:1", "--json", status=1)
    found = json.loads(done.stdout)
    assert [each["passed"] for each in found["checks"]] == [True, False]
    assert found["failed"] == 1
    assert "FAIL" in done.stderr
    assert run("audit", "--level", "10:1", "--quiet", status=1).stdout == ""


def test_tables_are_lists_of_rows_and_what_is_no_number_is_null():
    table = pd.DataFrame({"word": ["é", "b"], "share": [0.25, float("nan")]})
    assert json.loads(as_text({"words": table, "n": 2})) == {
        "words": [{"word": "é", "share": 0.25}, {"word": "b", "share": None}],
        "n": 2,
    }
    assert as_text({"words": table}).isascii()


def test_a_silent_command_sees_no_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with silent():
        print("nothing")
        assert not sys.stderr.isatty()
        sys.stderr.write("a warning")
    assert sys.stderr.getvalue() == "a warning"


def test_options_of_the_command_stay_where_they_are():
    def command(n: int = 3):
        """What it does."""
        print(f"n is {n}")
        if n > 3:
            raise Failed({"n": n})
        return {"n": n}

    for wrapped in (with_result(command), with_quiet(command)):
        one = typer.Typer()
        one.command()(wrapped)
        assert CliRunner().invoke(one, ["--n", "2"]).stdout == "n is 2\n"
        assert CliRunner().invoke(one, ["--n", "2", "-q"]).stdout == ""
        assert "What it does." in CliRunner().invoke(one, ["--help"]).stdout
        assert CliRunner().invoke(one, ["--n", "4"]).exit_code == 1


def test_what_is_not_a_number_is_null():
    found = {
        "a": [np.int64(3), float("nan")],
        "b": {"c": np.float64("inf")},
        "d": "text",
        "e": pd.DataFrame({"x": [np.nan]}),
    }
    assert json.loads(as_text(found)) == {"a": [3, None], "b": {"c": None}, "d": "text", "e": [{"x": None}]}
