import os
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import countveil as cv
from countveil.cli import app

RNG = np.random.default_rng(11)
WORDS = [f"word{v}" for v in range(8)]
COUNTS = RNG.poisson(RNG.gamma(0.5, 4.0, (20, 2)) @ RNG.dirichlet(np.full(8, 0.3), 2))
SHORT = ["--topics", "2", "--draws", "20", "--tune", "10", "--chains", "2", "--seed", "1", "--threads", "1"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with counts.csv in it."""
    rows = [f"doc{d}," + ",".join(str(count) for count in row) for d, row in enumerate(COUNTS)]
    (tmp_path / "counts.csv").write_text("\n".join(["," + ",".join(WORDS), *rows]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, status=0):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == status, found.output
    assert not isinstance(found.exception, Exception)
    return found


def privatized(*more, status=0):
    return run(
        "privatize", "counts.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "2", *more, status=status
    )


def fails(*arguments, status=1):
    """The one line on stderr of a command that must fail."""
    found = run(*arguments, status=status)
    lines = found.stderr.strip().splitlines()
    assert len(lines) == 1, found.stderr
    assert lines[0].startswith("error: ")
    assert found.stdout == ""
    return lines[0]


def test_privatize_then_fit_keeps_the_labels(here):
    said = privatized().stdout
    release = cv.Release.load("r.npz")
    assert said.startswith(cv.PrivacyLevel(1, 2).describe())
    assert "Wrote r.npz: 20 x 8 reports, signed." in said
    assert release.row_labels == tuple(f"doc{d}" for d in range(20))
    assert release.column_labels == tuple(WORDS)
    assert not release.simulated
    assert release.reports.min() < 0

    said = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT).stdout
    fit = cv.TopicModel.load("f.nc")
    assert list(fit.feature_names_in_) == WORDS
    assert fit.posterior["posterior"].sizes["topic"] == 2
    assert "share" in said
    assert fit.top_words(1)["word"].iloc[0] in said
    assert fit.diagnostics().verdict.split()[0] in said
    assert "Wrote f.nc: seed 1," in said


def test_privatize_prints_no_count(here):
    """Every number it prints comes from the level and the shape."""
    (here / "counts.csv").write_text("a,b\n987,654\n321,987\n")
    said = privatized().output
    assert not re.search("987|654|321", said)


def test_two_runs_differ_since_the_noise_is_real(here):
    privatized()
    first = cv.Release.load("r.npz").reports
    privatized("--force")
    assert not np.array_equal(first, cv.Release.load("r.npz").reports)


def test_decimals_stay_exact(here):
    run("privatize", "counts.csv", "-o", "r.npz", "--epsilon", "0.1", "--precision", "2.5")
    release = cv.Release.load("r.npz")
    assert (str(release.epsilon), str(release.precision)) == ("1/10", "5/2")


def test_truncated_on_request(here):
    assert "truncated at zero" in privatized("--truncated").stdout
    assert cv.Release.load("r.npz").reports.min() == 0


def test_vocabulary_names_the_columns(here):
    np.save("counts.npy", COUNTS)
    (here / "words.txt").write_text("\n".join(reversed(WORDS)))
    run(
        "privatize",
        "counts.npy",
        "-o",
        "r.npz",
        "--epsilon",
        1,
        "--precision",
        1,
        "--vocabulary",
        "words.txt",
    )
    assert cv.Release.load("r.npz").column_labels == tuple(reversed(WORDS))


def test_nothing_is_overwritten_unless_forced(here):
    (here / "r.npz").write_text("precious")
    assert "r.npz exists already" in fails(
        "privatize", "counts.csv", "-o", "r.npz", "--epsilon", 1, "--precision", 1
    )
    assert (here / "r.npz").read_text() == "precious"
    privatized("--force")
    (here / "f.nc").write_text("precious")
    assert "f.nc exists already" in fails("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, "--force")
    assert cv.TopicModel.load("f.nc").seed_ == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--epsilon": "0"}, "epsilon must be positive, got 0"),
        ({"--epsilon": "much"}, "epsilon must be a decimal number, got 'much'"),
        ({"--precision": "-1"}, "precision must be positive, got -1"),
        ({"counts.csv": "other.csv"}, "no counts at other.csv"),
        (
            {"counts.csv": "bad.csv"},
            r"counts must be non-negative whole numbers, got a negative value at index",
        ),
        ({"counts.csv": "bad.txt"}, "bad.txt must end in one of"),
        ({"--vocabulary": "missing.txt"}, "no vocabulary at missing.txt"),
        ({"--vocabulary": "short.txt"}, "column_labels must have 8 entries, got 1"),
        ({"-o": "nowhere/r.npz"}, "no directory nowhere to write r.npz in"),
    ],
)
def test_privatize_refuses_in_one_line(here, changed, message):
    (here / "bad.csv").write_text("a,b\n1,-2\n")
    (here / "bad.txt").write_text("a,b\n1,2\n")
    (here / "short.txt").write_text("one\n")
    options = {"-o": "r.npz", "--epsilon": "1", "--precision": "2"}
    source = changed.pop("counts.csv", "counts.csv")
    options |= changed
    arguments = [part for option in options.items() for part in option]
    assert re.search(message, fails("privatize", source, *arguments))
    assert not (here / "r.npz").exists()


def test_fit_refuses_in_one_line(here):
    assert "no release at r.npz" in fails("fit", "topics", "r.npz", "-o", "f.nc")
    assert "release file counts.csv must" in fails("fit", "topics", "counts.csv", "-o", "f.nc")
    privatized()
    damaged = bytearray((here / "r.npz").read_bytes())
    damaged[40] ^= 1
    (here / "bad.npz").write_bytes(damaged)
    assert "SHA-256" in fails("fit", "topics", "bad.npz", "-o", "f.nc")
    assert "method must be one of" in fails("fit", "topics", "r.npz", "-o", "f.nc", "--method", "magic")
    assert not (here / "f.nc").exists()
    assert sorted(path.name for path in here.iterdir()) == ["bad.npz", "counts.csv", "r.npz"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["privatize", "counts.csv", "-o", "r.npz"],
        ["fit", "topics", "r.npz", "-o", "f.nc", "--topics", "0"],
        ["fit", "topics", "r.npz", "-o", "f.nc", "--draws", "many"],
        ["demo", "--noise-draws", "0"],
        ["unheard-of"],
    ],
)
def test_misuse_exits_with_2(here, arguments):
    run(*arguments, status=2)


def test_demo_refuses_levels_that_are_none(here):
    assert "levels must be positive numbers (epsilon/N), got 'x'" in fails(
        "demo", "--epsilon-per-unit", "1,x"
    )


def test_ctrl_c_exits_with_130(here, monkeypatch):
    privatized()

    def interrupt(self, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(cv.TopicModel, "fit", interrupt)
    assert run("fit", "topics", "r.npz", "-o", "f.nc", status=130).stderr.strip() == "interrupted"


def test_version_and_help():
    assert run("--version").stdout == f"countveil {cv.__version__}\n"
    for command in (["privatize"], ["fit", "topics"], ["demo"]):
        assert f"countveil {' '.join(command)}" in run(*command, "--help").stdout


def test_the_real_command_in_a_process_of_its_own(here):
    """As a shell runs it: errors without a traceback, and help without the heavy imports."""
    command = [sys.executable, "-W", "error", "-m", "countveil.cli"]
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1", "NO_COLOR": "1"}
    helped = subprocess.run([*command, "--help"], env=environment, capture_output=True, text=True, check=True)
    assert "privatize" in helped.stdout
    assert not re.search(r"\| +(numpy|numba|scipy|xarray)$", helped.stderr, re.MULTILINE)

    level = ["--epsilon", "1", "--precision", "1"]
    subprocess.run(
        [*command, "privatize", "counts.csv", "-o", "r.npz", *level], check=True, capture_output=True
    )
    again = subprocess.run(
        [*command, "privatize", "counts.csv", "-o", "r.npz", *level], capture_output=True, text=True
    )
    assert again.returncode == 1
    assert again.stderr.startswith("error: r.npz exists already")
    assert "Traceback" not in again.stderr
