import dataclasses
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import countveil as cv
from countveil.inference.methods import METHODS
from tests.commands import SHORT, fails, run

RNG = np.random.default_rng(11)
WORDS = [f"word{v}" for v in range(8)]
COUNTS = RNG.poisson(RNG.gamma(0.5, 4.0, (20, 2)) @ RNG.dirichlet(np.full(8, 0.3), 2))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with counts.csv in it."""
    rows = [f"doc{d}," + ",".join(str(count) for count in row) for d, row in enumerate(COUNTS)]
    (tmp_path / "counts.csv").write_text("\n".join(["," + ",".join(WORDS), *rows]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def privatized(*more, status=0):
    return run(
        "privatize", "counts.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "2", *more, status=status
    )


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


def test_privatize_to_a_folder_of_files_then_fit_it(here):
    said = privatized("--rows-per-file", "6", "--truncated").stdout
    assert "Wrote r.npz: 20 x 8 reports in 4 files, truncated at zero." in said
    assert [cv.Release.load(path).shape[0] for path in sorted(Path("r.npz").iterdir())] == [6, 6, 6, 2]
    assert "exists" in fails(
        "privatize", "counts.csv", "-o", "r.npz", "--epsilon", "1", "--precision", "2", "--rows-per-file", "6"
    )
    run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT)
    fit = cv.TopicModel.load("f.nc")
    assert list(fit.feature_names_in_) == WORDS
    assert list(fit.posterior["posterior"]["doc"].to_numpy()) == [f"doc{d}" for d in range(20)]
    run("fit", "tensor", "r.npz", "-o", "t.nc", "--components", "2", "--shape", "20,4,2", *SHORT[2:])
    sizes = cv.TensorModel.load("t.nc").posterior["posterior"].sizes
    assert (sizes["mode0"], sizes["mode1"], sizes["mode2"]) == (20, 4, 2)
    assert "in memory" in fails("fit", "blocks", "r.npz", "-o", "b.nc")


def test_privatize_prints_no_count(here):
    """Every number it prints comes from the level and the shape."""
    (here / "counts.csv").write_text("a,b\n987,654\n321,987\n")
    said = privatized().output
    assert not re.search("987|654|321", said)


@pytest.mark.parametrize("start", ["", "someone,"])
def test_a_file_without_a_header_is_refused_and_nothing_of_it_is_written(here, start):
    (here / "counts.csv").write_text(f"{start}70007,70009\n{start}70021,70027\n")
    before = sorted(here.iterdir())
    arguments = ["privatize", "counts.csv", "-o", "r.npz", "--epsilon", 1, "--precision", 2]
    said = fails(*arguments)
    assert "counts.csv must have names, not numbers, in its header row" in said
    assert "--no-header" in said
    assert not re.search("700|someone", said)
    assert sorted(here.iterdir()) == before

    shown = run(*arguments, "--no-header", "--no-row-labels").output
    assert "2 columns of counts." in shown
    assert not re.search("700|someone", shown)
    release = cv.Release.load("r.npz")
    assert release.labels == (None, None)
    assert release.shape == (2, 2)
    with zipfile.ZipFile("r.npz") as archive:
        for name in archive.namelist():
            assert not re.search(b"7000|7002|someone", archive.read(name))


def test_row_labels_and_columns_are_told(here):
    said = privatized().stdout
    assert "8 columns of counts, from word0 to word7." in said
    assert "20 row labels and 8 column labels are published as they are, without noise." in said
    assert "doc1" not in said
    said = privatized("--no-row-labels", "--force").stdout
    assert "\n8 column labels are published" in said
    assert cv.Release.load("r.npz").row_labels is None
    (here / "counts.csv").write_text("id,a\n17,1\n18,2\n")
    said = privatized("--row-labels", "id", "--force").stdout
    assert "1 column of counts, from a to a." in said
    assert cv.Release.load("r.npz").row_labels == ("17", "18")
    assert cv.Release.load("r.npz").column_labels == ("a",)
    assert "must have one column 'name', got 0" in fails(
        "privatize", "counts.csv", "-o", "s.npz", "--epsilon", 1, "--precision", 1, "--row-labels", "name"
    )
    (here / "counts.csv").write_text("id;a\n17;1\n18;2\n")
    assert "got semicolons" in fails(
        "privatize", "counts.csv", "-o", "s.npz", "--epsilon", 1, "--precision", 1
    )


@pytest.mark.parametrize(
    ("epsilon", "hidden"), [(5, None), ("5.1", "little"), (20, "little"), (21, "practically nothing")]
)
def test_a_weak_level_is_warned_of(here, epsilon, hidden):
    found = run("privatize", "counts.csv", "-o", "r.npz", "--epsilon", epsilon, "--precision", "2")
    if hidden is None:
        assert found.stderr == ""
    else:
        assert found.stderr.startswith(f"warning: epsilon {epsilon} at N = 2 hides {hidden}; ")
        assert len(found.stderr.splitlines()) == 1


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_no_input_is_ever_overwritten(here, force):
    (here / "words.txt").write_text("\n".join(WORDS))
    (here / "link.csv").symlink_to("counts.csv")
    (here / "hard.csv").hardlink_to(here / "counts.csv")
    (here / "folder").mkdir()
    before = {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()}
    level = ["--epsilon", 1, "--precision", 1, "--vocabulary", "words.txt", *force]
    for output in ("counts.csv", "link.csv", "hard.csv", "words.txt", "folder/../counts.csv"):
        said = fails("privatize", "counts.csv", "-o", output, *level)
        assert "must be a file of its own, got" in said
    assert "folder must be a file to write, got a directory" in fails(
        "privatize", "counts.csv", "-o", "folder", *level
    )
    assert {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()} == before
    privatized()
    (here / "same.nc").symlink_to("r.npz")
    release = (here / "r.npz").read_bytes()
    assert "must be a file of its own" in fails("fit", "topics", "r.npz", "-o", "same.nc", *force)
    fit = ["fit", "topics", "r.npz", "-o", "f.nc", *force]
    for taken in ("r.npz", "f.nc"):
        assert "must be a file of its own" in fails(*fit, "--checkpoint", taken)
    assert "no directory nowhere to write" in fails(*fit, "--checkpoint", "nowhere/c")
    assert (here / "r.npz").read_bytes() == release


def test_the_fit_is_a_netcdf_file(here):
    privatized()
    assert "output must end in .nc (netCDF), got f.npz" in fails("fit", "topics", "r.npz", "-o", "f.npz")


def test_topics_are_printed_before_a_save_that_fails(here, monkeypatch):
    privatized()

    def full(self, path):
        raise OSError("no space left")

    monkeypatch.setattr(cv.TopicModel, "save", full)
    found = run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT, status=1)
    assert found.stderr.strip().splitlines()[-1] == "error: no space left"
    assert "Topics by share of all expected words " in found.stdout
    assert "most probable words: probability in % (90% interval)" in found.stdout
    assert "word" in found.stdout
    assert "Wrote" not in found.stdout


def test_checkpoints_are_handed_on(here, monkeypatch):
    privatized()
    seen = {}

    def fit(self, data, **options):
        seen.update(options)
        raise ValueError("enough")

    with monkeypatch.context() as patched:
        patched.setattr(cv.TopicModel, "fit", fit)
        command = ["fit", "topics", "r.npz", "-o", "f.nc", "--checkpoint", "c.npz"]
        fails(*command, "--checkpoint-minutes", "0.5", "--resume")
    assert seen == {"checkpoint": Path("c.npz"), "checkpoint_minutes": 0.5, "resume": True}
    assert "resume must come with" in fails("fit", "topics", "r.npz", "-o", "f.nc", "--resume")
    assert "checkpoint goes with one of" in fails(*command, "--method", "em")
    (here / "c.npz").write_text("precious")
    assert "c.npz" in fails(*command, *SHORT)
    assert (here / "c.npz").read_text() == "precious"
    (here / "c.npz").unlink()
    run(*command, *SHORT)
    assert cv.TopicModel.load("f.nc").seed_ == 1


def test_a_simulated_release_is_called_so(here):
    privatized()
    release = cv.Release.load("r.npz")
    assert "simulated" not in run("fit", "topics", "r.npz", "-o", "f.nc", *SHORT).stdout
    dataclasses.replace(release, simulated=True).save("s.npz")
    assert "This release is simulated" in run("fit", "topics", "s.npz", "-o", "g.nc", *SHORT).stdout


def test_help_names_the_methods_and_the_rules_of_a_csv(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    said = " ".join(run("fit", "topics", "--help").stdout.split())
    for method in METHODS:
        assert re.search(rf"\b{method}\b", said)
    assert "tuning is lost without a checkpoint" in said
    said = " ".join(run("privatize", "--help").stdout.split())
    assert "Rules for a .csv" in said
    assert "--no-header" in said


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
        ({"counts.csv": "bad.dat"}, "bad.dat must end in one of"),
        ({"--vocabulary": "missing.txt"}, "no vocabulary at missing.txt"),
        ({"--vocabulary": "short.txt"}, "short.txt must name the 8 columns of .*counts.csv, got 1 words"),
        ({"-o": "nowhere/r.npz"}, "no directory nowhere to write r.npz in"),
    ],
)
def test_privatize_refuses_in_one_line(here, changed, message):
    (here / "bad.csv").write_text("a,b\n1,-2\n")
    (here / "bad.dat").write_text("a,b\n1,2\n")
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

    def interrupt(self, data, **_):
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
