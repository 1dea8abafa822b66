"""One console, wide enough for tables wherever they go."""

import ast
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

import countveil
from countveil.common.console import ProgressWatcher, console, error_console

SOURCE = Path(countveil.__file__).parent
LINE = " ".join(["word"] * 22)  # 109 characters


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_file_or_a_pipe_is_wide_enough_for_the_tables(capsys):
    console().print(LINE)
    assert capsys.readouterr().out == f"{LINE}\n"


def test_what_is_wider_stays_as_wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    assert console().width == 150


def test_a_terminal_has_its_own_width(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "70")
    assert console().is_terminal
    assert console().width == 70


def test_progress_stays_out_of_the_output(capsys):
    error_console().print("[1/2]", markup=False)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "[1/2]\n")


def test_labels_move_no_cursor_whatever_they_are_printed_in(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    table = Table()
    table.add_column(Text("a\x1b]0;title\x07"), style="bold")
    table.add_row(Text("b\u202ec\x9b2Jd"))
    console().print(table)
    error_console().print(Text("\x1b]52;c;Zm9v\x07"))
    said = capsys.readouterr()
    assert "a\\x1b]0;" in said.out
    assert "b\\u202ec" in said.out
    assert "\x1b[1m" in said.out  # its own style
    assert said.err == "\\x1b]52;c;Zm9v\n"
    assert not {"\u202e", "\x9b", "\x07"} & set(said.out)


def test_nobody_else_makes_a_console():
    """Except the progress bars of a fit, which a notebook shows too."""
    makers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Console"
    }
    assert makers == {"inference/progress.py"}


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_with_and_without_a_terminal(terminal, capsys):
    with ProgressWatcher(Console(stderr=True, force_terminal=terminal, width=100)) as watcher:
        watcher.stage("privatizing")
        watcher.begin(2)
        watcher.started("ours")
        watcher.finished("ours", 1.25)
    said = capsys.readouterr().err
    assert "privatizing" in said
    assert ("all fits" in said) if terminal else ("[1/2] ours: 1.2 s" in said)
