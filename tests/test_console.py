"""One console, wide enough for tables wherever they go."""

import ast
from pathlib import Path

import pytest

import countveil
from countveil.console import console, error_console

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


def test_nobody_else_makes_a_console():
    """Except the progress bars of a fit, which a notebook shows too."""
    makers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Console"
    }
    assert makers == {"console.py", "inference/progress.py"}
