import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import countveil as cv
from countveil.cli.app import app
from countveil.inference.methods import METHODS
from tests.commands import run

SOURCE = Path(cv.__file__).parent
COMMANDS = typer.main.get_command(app).commands
HEAVY = ("numpy", "scipy", "numba", "pandas", "xarray", "sklearn", "matplotlib", "dask")


def test_version_and_help():
    assert run("--version").stdout == f"countveil {cv.__version__}\n"
    for command in (["privatize"], ["fit", "topics"], ["demo"]):
        assert f"countveil {' '.join(command)}" in run(*command, "--help").stdout


def test_help_names_the_methods_and_the_rules_of_a_csv(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    said = " ".join(run("fit", "topics", "--help").stdout.split())
    for method in METHODS:
        assert re.search(rf"\b{method}\b", said)
    assert "tuning is lost without a checkpoint" in said
    said = " ".join(run("privatize", "--help").stdout.split())
    assert "Rules for a .csv" in said
    assert "--no-header" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["privatize", "counts.csv", "-o", "r.npz"],
        ["fit", "topics", "r.npz", "-o", "f.nc", "--chains", "0"],
        ["fit", "topics", "r.npz", "-o", "f.nc", "--draws", "many"],
        ["demo", "--noise-draws", "0"],
        ["unheard-of"],
    ],
)
def test_misuse_exits_with_2(here, arguments):
    run(*arguments, status=2)


@pytest.mark.long
def test_the_real_command_in_a_process_of_its_own(here):
    """As a shell runs it: errors without a traceback, and help without the heavy imports."""
    command = [sys.executable, "-W", "error", "-m", "countveil"]
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1", "NO_COLOR": "1"}
    helped = subprocess.run([*command, "--help"], env=environment, capture_output=True, text=True, check=True)
    assert "privatize" in helped.stdout
    assert not re.search(r"\| +(numpy|numba|scipy|xarray)$", helped.stderr, re.MULTILINE)

    level = ["--epsilon", "1", "--precision", "1"]
    subprocess.run([*command, "privatize", "counts.csv", "-o", "r.npz", *level], check=True, capture_output=True)
    again = subprocess.run([*command, "privatize", "counts.csv", "-o", "r.npz", *level], capture_output=True, text=True)
    assert again.returncode == 1
    assert again.stderr.startswith("error: r.npz exists already")
    assert "Traceback" not in again.stderr


def test_every_command_has_a_file_and_a_test_file():
    """Both named as it is, except where Python has the name for itself."""
    for command in COMMANDS:
        name = {"import": "import_reports"}.get(command, command).replace("-", "_")
        assert (SOURCE / "cli" / f"{name}.py").is_file()
        assert (Path(__file__).parent / f"test_{name}.py").is_file()


@pytest.mark.long
def test_no_help_waits_for_what_takes_long_to_import():
    """Not even that of a command that needs it as soon as it runs."""
    code = f"""
import sys
import typer
from countveil.cli.app import app

def show(command):
    command.main(["--help"], standalone_mode=False)
    for each in getattr(command, "commands", {{}}).values():
        show(each)

show(typer.main.get_command(app))
print("loaded:", [name for name in {HEAVY} if name in sys.modules])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.count("Usage:") == 32
    assert said.endswith("loaded: []\n")


@pytest.mark.long
def test_a_command_ends_without_another_look_for_garbage():
    code = """
import atexit
import gc
atexit.register(lambda: print("frozen:", gc.get_freeze_count() > 10_000))
from countveil.cli.app import app
app(["--version"])
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.endswith("frozen: True\n")


@pytest.mark.long
def test_nothing_else_imports_the_command_line():
    for path in SOURCE.rglob("*.py"):
        if path.parent.name == "cli" or path == SOURCE / "__main__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            assert not any(name.startswith("countveil.cli") for name in names), path


@pytest.mark.parametrize("command", [[], ["show"], ["fit", "topics"], ["study", "new"]])
def test_every_command_has_short_help(command):
    assert "Usage:" in run(*command, "-h").stdout


def every(command, name=""):
    yield name, command
    for key, each in getattr(command, "commands", {}).items():
        yield from every(each, f"{name} {key}".strip())


def test_no_word_of_help_is_cut_at_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name, _ in every(typer.main.get_command(app)):
        cut = [line for line in run(*name.split(), "--help").stdout.splitlines() if "…" in line]
        assert all("--members" in line for line in cut), (name, cut)  # it has three names


def test_the_same_thing_has_the_same_name_in_every_command():
    """``-o`` is always ``--output``, and what is listed of each component is ``--members``."""
    for name, command in every(typer.main.get_command(app)):
        for option in command.params:
            names = {*option.opts}
            assert ("-o" in names) <= ("--output" in names), (name, names)
            if name != "plan":  # its words are those of the people asked
                listed = bool(names & {"--words", "--actors", "--entries"})
                assert listed <= ("--members" in names), (name, names)
            assert ("--force" in names) == (option.name == "force"), (name, names)
