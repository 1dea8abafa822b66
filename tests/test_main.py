"""``python -m countveil`` is the command line."""

import subprocess
import sys

import countveil as cv


def test_the_package_runs_as_the_command_line():
    command = [sys.executable, "-W", "error", "-m", "countveil"]
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"countveil {cv.__version__}\n"
    wrong = subprocess.run([*command, "unheard-of"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "Usage: countveil [OPTIONS]" in wrong.stderr
