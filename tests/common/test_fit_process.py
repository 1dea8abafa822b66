"""The Python process of its own that reads a fit from somebody else first."""

import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

import countveil as cv
from countveil.common import fit_files, fit_process
from tests import hostile

pytestmark = pytest.mark.usefixtures("checked_apart")


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """A small fit as a file."""
    return hostile.small_fit(tmp_path_factory.mktemp("valid") / "fit.nc")


@pytest.fixture
def python(tmp_path, monkeypatch):
    """Another program in place of Python, by its lines in the shell."""

    def put(*lines):
        program = tmp_path / "python"
        program.write_text("\n".join(("#!/bin/sh", *lines, "")))
        program.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(program))

    return put


@pytest.mark.skipif(sys.platform == "win32", reason="programs by their first line are POSIX")
def test_a_file_that_makes_the_hdf5_library_hang_or_crash_is_refused(valid, tmp_path, python, monkeypatch):
    shutil.copyfile(valid, tmp_path / "a.nc")
    python("echo ready", "kill -SEGV $$")
    with pytest.raises(ValueError, match=r"a\.nc .* got a crash of the HDF5 library \(signal 11\)"):
        fit_files.check(tmp_path / "a.nc")
    python("echo ready", "echo broken within >&2", "exit 1")
    with pytest.raises(ValueError, match=r"a\.nc .* must be readable, got broken within"):
        fit_files.check(tmp_path / "a.nc")
    monkeypatch.setattr(fit_process, "LEAST_SECONDS", 0.5)
    python("echo ready", "exec sleep 60")
    with pytest.raises(
        ValueError, match=r"a\.nc is not a fit saved by countveil: it must be readable, got no end"
    ):
        fit_files.check(tmp_path / "a.nc")


@pytest.mark.skipif(sys.platform == "win32", reason="programs by their first line are POSIX")
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["echo 'cannot allocate memory' >&2", "exit 127"], "cannot allocate memory"),
        (["kill -KILL $$"], "it said nothing"),
        (["exec sleep 60"], "no sign of it in 0 s"),
    ],
)
def test_a_process_that_does_not_start_is_no_fault_of_the_file(lines, said, valid, python, monkeypatch):
    monkeypatch.setattr(fit_process, "LEAST_SECONDS", 0.4)
    python(*lines)
    for read in (fit_files.check, cv.TopicModel.load):
        with pytest.raises(
            OSError, match=r"fit\.nc was not read: a fit is checked by a Python process"
        ) as raised:
            read(valid)
        assert said in str(raised.value)
        assert "is not a fit" not in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "error", [OSError(12, "Cannot allocate memory"), OSError("no processes on this system")]
)
def test_a_system_that_starts_no_processes_is_named(error, valid, monkeypatch):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(OSError, match=r"which did not start: .*(Cannot allocate memory|no processes)"):
        fit_files.check(valid)
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", None)
    with pytest.raises(OSError, match="which did not start"):
        fit_files.check(valid)


def test_it_imports_nothing_from_the_current_folder(valid, tmp_path, monkeypatch):
    (tmp_path / "h5py.py").write_text("open('it-ran', 'w').close()\nraise SystemExit('planted')\n")
    (tmp_path / "countveil.py").write_text("open('it-ran', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert fit_files.check(valid) == "TopicModel"
    assert not (tmp_path / "it-ran").exists()


def large_chunk(file):
    """An array in one piece, which takes 60 MB to read."""
    values = np.zeros(7_500_000)
    values[:200_000] = np.random.default_rng(1).random(200_000)
    file.create_dataset("posterior/more", data=values, chunks=values.shape, compression="gzip")


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the limit needs /proc")
def test_its_memory_is_limited(valid, tmp_path, monkeypatch):
    bad = hostile.changed(valid, tmp_path / "bad.nc", large_chunk)
    assert fit_files.check(bad) == "TopicModel"
    monkeypatch.setattr(fit_process, "ROOM", 20_000_000)
    assert fit_files.check(valid) == "TopicModel"
    with pytest.raises(ValueError, match=r"bad\.nc .* must be readable in \d+ bytes of memory"):
        fit_files.check(bad)


def test_its_limit_is_its_own(valid):
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    fit_files.check(valid)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_the_place_in_the_file_is_its_own(valid):
    """The process and its parent read the same open file, one after the other."""
    with fit_files.opened(valid) as (kind, file):
        assert kind == "TopicModel"
        assert file.tell() == 0
        with h5py.File(file, "r") as again:
            assert again["posterior/theta"].shape == (2, 10, 12, 3)


@pytest.mark.parametrize("relative", [True, False])
def test_no_code_of_a_folder_on_the_path_runs_when_it_starts(valid, tmp_path, monkeypatch, relative):
    """``site`` would run these files of any folder from which modules are imported, a relative one included."""
    for name in ("sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    if relative:
        (tmp_path / "h5py.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
        monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("." if relative else str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert fit_files.check(valid) == "TopicModel"
    assert not (tmp_path / "ran").exists()
