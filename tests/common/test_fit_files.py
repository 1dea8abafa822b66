"""Files of fits: their seals, and what is checked before anything in them is used."""

import os
import shutil
import subprocess
import sys
import warnings
import zlib

import h5py
import numpy as np
import pytest
import xarray as xr

import countveil as cv
from countveil.common import fit_files
from countveil.common.fit_files import Checked
from countveil.fit import load
from countveil.privacy import _archive
from tests import hostile


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """A small fit with labelled words, as a file."""
    return hostile.small_fit(tmp_path_factory.mktemp("valid") / "fit.nc")


@pytest.fixture
def victim(tmp_path, valid):
    """A file of the reader's own: one with a posterior, whose labels are a secret."""
    (tmp_path / "victim").write_text(hostile.VICTIM)
    return tmp_path / "victim"


@pytest.mark.long
@pytest.mark.usefixtures("checked_apart")
def test_a_whole_fit_passes_and_says_its_model(valid):
    assert fit_files.check(valid) == "TopicModel"
    assert load(valid).n_topics == 3


@pytest.mark.long
def test_every_changed_byte_is_refused(valid, tmp_path):
    content = valid.read_bytes()
    path = tmp_path / "fit.nc"
    for place in np.random.default_rng(2).choice(len(content), 200, replace=False):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(ValueError, match=r"fit\.nc is not a fit saved by countveil: it must .* seal"):
            fit_files.check(path)
    for other in (content[:-1], content + b"x", content[: len(content) // 2], b""):
        path.write_bytes(other)
        with pytest.raises(ValueError, match="seal"):
            fit_files.check(path)


@pytest.mark.long
def test_a_fit_without_a_seal_says_how_to_make_it_anew(valid, tmp_path):
    (tmp_path / "old.nc").write_bytes(valid.read_bytes()[: -_archive.SEAL_LENGTH])
    with pytest.raises(ValueError, match="made again from its release and seed"):
        fit_files.check(tmp_path / "old.nc")


@pytest.mark.long
def test_the_state_of_a_stream_is_sealed_too(tmp_path):
    counts = np.random.default_rng(1).poisson(1.0, (12, 9))
    model = cv.TopicModel(2, method="svi", seed=1, draws=5, threads=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.partial_fit(cv.privatize(counts, cv.PrivacyLevel(1, 1))).save(tmp_path / "fit.nc")
    with h5py.File(tmp_path / "fit.nc") as file:
        offset = file["stream/phi_shapes"].id.get_offset()
    assert load(tmp_path / "fit.nc").n_topics == 2
    content = bytearray((tmp_path / "fit.nc").read_bytes())
    content[offset] ^= 1
    (tmp_path / "bad.nc").write_bytes(content)
    with pytest.raises(ValueError, match="different bytes"):
        cv.TopicModel.load(tmp_path / "bad.nc")
    bad = hostile.changed(tmp_path / "fit.nc", tmp_path / "bad.nc", hostile.value_at("stream/phi_shapes", np.nan))
    with pytest.raises(ValueError, match=r"finite numbers of at least 0 at stream/phi_shapes"):
        cv.TopicModel.load(bad)


def assert_refused_unread(path, said, read, monkeypatch):
    """``read`` raises one line about the file, and nothing has opened it for its draws."""
    monkeypatch.setattr("xarray.open_datatree", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ValueError, match=r"bad\.nc is not a fit saved by countveil: it must ") as refused:
        read(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert hostile.VICTIM[:8] not in str(refused.value)


@pytest.mark.long
@pytest.mark.parametrize("name", hostile.changes("victim"))
def test_a_hostile_fit_is_refused_in_one_line_before_it_is_read(name, valid, victim, tmp_path, monkeypatch):
    """Here by a model; tests of the command that makes reports meet them in processes of their own."""
    change, said = hostile.changes(victim)[name]
    path = hostile.changed(valid, tmp_path / "bad.nc", change)
    assert_refused_unread(path, said, cv.TopicModel.load, monkeypatch)


@pytest.mark.long
@pytest.mark.usefixtures("checked_apart")
@pytest.mark.parametrize("read", [fit_files.check, load])
def test_every_reader_refuses_a_hostile_fit(read, valid, victim, tmp_path, monkeypatch):
    change, said = hostile.changes(victim)["external storage"]
    path = hostile.changed(valid, tmp_path / "bad.nc", change)
    assert_refused_unread(path, said, read, monkeypatch)


@pytest.mark.long
def test_draws_that_do_not_fit_into_memory_are_refused(valid, tmp_path, monkeypatch):
    monkeypatch.setattr("countveil.privacy._archive.SMALL", 1000)
    monkeypatch.setattr("countveil.privacy._archive.available_memory", lambda: 5000)
    with pytest.raises(ValueError, match="must fit into the 5000 bytes of memory that are free"):
        fit_files.inspect(valid)


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="pipes with names are POSIX")
def test_what_is_no_file_is_refused(tmp_path, valid):
    os.mkfifo(tmp_path / "pipe.nc")
    with pytest.raises(ValueError, match="must be a regular file"):
        fit_files.check(tmp_path / "pipe.nc")
    with pytest.raises(FileNotFoundError, match="no fit at"):
        fit_files.check(tmp_path / "none.nc")


def swapped(reader, monkeypatch, swap):
    """Runs ``swap`` when a fit was checked and is about to be read, in place of nothing."""
    read = reader.open_datatree

    def late(*given, **options):
        swap()
        return read(*given, **options)

    monkeypatch.setattr(reader, "open_datatree", late)


@pytest.mark.long
def test_a_release_is_no_fit(tmp_path):
    release = cv.simulate_release(np.ones((2, 2), int), cv.PrivacyLevel(1, 1), np.random.default_rng(1))
    release.save(tmp_path / "r.npz")
    with pytest.raises(ValueError, match=r"it must be a fit, got a release or another archive: countveil fit makes"):
        cv.TopicModel.load(tmp_path / "r.npz")


@pytest.mark.long
@pytest.mark.usefixtures("checked_apart")
def test_a_file_that_takes_the_place_of_a_checked_one_is_not_read(valid, tmp_path, monkeypatch):
    path, other = tmp_path / "fit.nc", tmp_path / "other.nc"
    shutil.copyfile(valid, path)
    hostile.changed(valid, other, hostile.value_at("posterior/theta", 12345.0))
    swapped(xr, monkeypatch, lambda: os.replace(other, path))
    fit = cv.TopicModel.load(path)
    assert fit.posterior["posterior"]["theta"].to_numpy().flat[0] != 12345.0
    monkeypatch.undo()
    assert cv.TopicModel.load(path).posterior["posterior"]["theta"].to_numpy().flat[0] == 12345.0


@pytest.mark.long
@pytest.mark.usefixtures("checked_apart")
def test_a_file_that_changes_after_it_was_checked_is_refused(valid, tmp_path, monkeypatch):
    path, other = tmp_path / "fit.nc", tmp_path / "other.nc"
    shutil.copyfile(valid, path)
    hostile.changed(valid, other, hostile.value_at("posterior/theta", 12345.0))
    swapped(xr, monkeypatch, lambda: path.write_bytes(other.read_bytes()))  # the same file, another fit
    with pytest.raises(ValueError, match="must stay as it was while it is read, got a change: load it again"):
        cv.TopicModel.load(path)


@pytest.mark.long
def test_too_little_memory_is_no_fault_of_the_file(valid, monkeypatch):
    def none_left(*_, **__):
        raise MemoryError

    monkeypatch.setattr("xarray.open_datatree", none_left)
    with pytest.raises(MemoryError):
        cv.TopicModel.load(valid)


@pytest.mark.long
def test_values_are_looked_at_in_pieces(valid, tmp_path, monkeypatch):
    """The last value of a large array is seen, whatever the size of the pieces."""
    from countveil.common import fit_files

    bad = tmp_path / "bad.nc"
    shutil.copyfile(valid, bad)

    def change(file):
        file["posterior/theta"][-1, -1, -1, -1] = -2.0

    hostile.changed(valid, bad, change)
    for piece in (4, 40, 400, 4000):
        monkeypatch.setattr(fit_files, "_PIECE", piece)
        assert fit_files.inspect(valid) == "TopicModel"
        with pytest.raises(ValueError, match=r"posterior/theta, got -2\.0"):
            fit_files.inspect(bad)


RNG = np.random.default_rng(5)
NUMBERS = RNG.random(64)
SHUFFLED = np.ascontiguousarray(NUMBERS.view(np.uint8).reshape(64, 8).T).tobytes()
CHUNKS = {  # (filters skipped, a bit for each in the order shuffle, deflate; content; whether it is 64 numbers)
    "no filter skipped": (0b00, zlib.compress(SHUFFLED), True),
    "no shuffle": (0b01, zlib.compress(NUMBERS.tobytes()), True),
    "no deflate": (0b10, SHUFFLED, True),
    "neither": (0b11, NUMBERS.tobytes(), True),
    "more, no filter skipped": (0b00, zlib.compress(bytes(100_000)), False),
    "more, no shuffle": (0b01, zlib.compress(bytes(100_000)), False),
    "more, no deflate": (0b10, bytes(600), False),
    "more, neither": (0b11, bytes(600), False),
}


@pytest.mark.long
@pytest.mark.parametrize(("skipped", "content", "whole"), CHUNKS.values(), ids=CHUNKS)
def test_a_chunk_is_unpacked_where_deflate_was_not_skipped(skipped, content, whole, tmp_path):
    """HDF5 leaves a chunk as it is where a filter would not make it smaller, and notes so beside it."""
    with h5py.File(tmp_path / "a.nc", "w") as file:
        made = file.create_dataset("a", shape=(64,), dtype="f8", chunks=(64,), shuffle=True, compression="gzip")
        made.id.write_direct_chunk((0,), content, filter_mask=skipped)
    with (tmp_path / "a.nc").open("rb") as source, h5py.File(source) as file:
        if whole:
            np.testing.assert_array_equal(Checked(file, source).datasets["a"][()], NUMBERS)
        else:
            with pytest.raises(ValueError, match="got a chunk that unpacks to more at a"):
                Checked(file, source)


def put_growing(file):
    file.create_dataset("a", shape=(2,), maxshape=(None,), dtype="f8", chunks=(2,))


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (put_growing, r"arrays of fixed sizes, got \(2,\) that may grow to \(.*\) at a"),
        (lambda file: file.create_dataset("a", data=h5py.Empty("f8")), "fixed sizes, got no array at a"),
        (
            lambda file: file.create_dataset("a", data=np.ones(9), chunks=(9,), compression="lzf"),
            r"by deflate or not at all, got HDF5 filters \[.*32000\] at a",
        ),
        (
            lambda file: file.create_dataset("a", data=np.zeros(2, [("x", "f8")])),
            "must hold numbers and text, got HDF5 type class 6 at a",
        ),
        (
            lambda file: file.create_dataset("a", data=["x", "y"], dtype=h5py.string_dtype(), chunks=(1,)),
            "text in one piece, got text in chunks at a",
        ),
    ],
)
def test_arrays_that_no_fit_has_are_refused_with_what_they_are(put, said, tmp_path):
    with h5py.File(tmp_path / "a.nc", "w") as file:
        put(file)
    with (tmp_path / "a.nc").open("rb") as source, h5py.File(source) as file, pytest.raises(ValueError, match=said):
        Checked(file, source)


@pytest.fixture(scope="module")
def read_first(tmp_path_factory):
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


@pytest.mark.usefixtures("checked_apart")
@pytest.mark.skipif(sys.platform == "win32", reason="programs by their first line are POSIX")
def test_a_file_that_makes_the_hdf5_library_hang_or_crash_is_refused(read_first, tmp_path, python, monkeypatch):
    shutil.copyfile(read_first, tmp_path / "a.nc")
    python("echo ready", "kill -SEGV $$")
    with pytest.raises(ValueError, match=r"a\.nc .* got a crash of the HDF5 library \(signal 11\)"):
        fit_files.check(tmp_path / "a.nc")
    python("echo ready", "echo broken within >&2", "exit 1")
    with pytest.raises(ValueError, match=r"a\.nc .* must be readable, got broken within"):
        fit_files.check(tmp_path / "a.nc")
    monkeypatch.setattr(fit_files, "LEAST_SECONDS", 0.5)
    python("echo ready", "exec sleep 60")
    with pytest.raises(ValueError, match=r"a\.nc is not a fit saved by countveil: it must be readable, got no end"):
        fit_files.check(tmp_path / "a.nc")


@pytest.mark.usefixtures("checked_apart")
@pytest.mark.skipif(sys.platform == "win32", reason="programs by their first line are POSIX")
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["echo 'cannot allocate memory' >&2", "exit 127"], "cannot allocate memory"),
        (["kill -KILL $$"], "it said nothing"),
        (["exec sleep 60"], "no sign of it in 0 s"),
    ],
)
def test_a_process_that_does_not_start_is_no_fault_of_the_file(lines, said, read_first, python, monkeypatch):
    monkeypatch.setattr(fit_files, "LEAST_SECONDS", 0.4)
    python(*lines)
    for read in (fit_files.check, cv.TopicModel.load):
        with pytest.raises(OSError, match=r"fit\.nc was not read: a fit is checked by a Python process") as raised:
            read(read_first)
        assert said in str(raised.value)
        assert "is not a fit" not in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("checked_apart")
@pytest.mark.parametrize("error", [OSError(12, "Cannot allocate memory"), OSError("no processes on this system")])
def test_a_system_that_starts_no_processes_is_named(error, read_first, monkeypatch):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(OSError, match=r"which did not start: .*(Cannot allocate memory|no processes)"):
        fit_files.check(read_first)
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", None)
    with pytest.raises(OSError, match="which did not start"):
        fit_files.check(read_first)


@pytest.mark.usefixtures("checked_apart")
def test_it_imports_nothing_from_the_current_folder(read_first, tmp_path, monkeypatch):
    (tmp_path / "h5py.py").write_text("open('it-ran', 'w').close()\nraise SystemExit('planted')\n")
    (tmp_path / "countveil.py").write_text("open('it-ran', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert fit_files.check(read_first) == "TopicModel"
    assert not (tmp_path / "it-ran").exists()


def large_chunk(file):
    """An array in one piece, which takes 60 MB to read."""
    values = np.zeros(7_500_000)
    values[:200_000] = np.random.default_rng(1).random(200_000)
    file.create_dataset("posterior/more", data=values, chunks=values.shape, compression="gzip")


@pytest.mark.usefixtures("checked_apart")
@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the limit needs /proc")
def test_its_memory_is_limited(read_first, tmp_path, monkeypatch):
    bad = hostile.changed(read_first, tmp_path / "bad.nc", large_chunk)
    assert fit_files.check(bad) == "TopicModel"
    monkeypatch.setattr(fit_files, "ROOM", 20_000_000)
    assert fit_files.check(read_first) == "TopicModel"
    with pytest.raises(ValueError, match=r"bad\.nc .* must be readable in \d+ bytes of memory"):
        fit_files.check(bad)


@pytest.mark.usefixtures("checked_apart")
def test_its_limit_is_its_own(read_first):
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    fit_files.check(read_first)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.usefixtures("checked_apart")
def test_the_place_in_the_file_is_its_own(read_first):
    """The process and its parent read the same open file, one after the other."""
    with fit_files.opened(read_first) as (kind, file):
        assert kind == "TopicModel"
        assert file.tell() == 0
        with h5py.File(file, "r") as again:
            assert again["posterior/theta"].shape == (2, 10, 12, 3)


@pytest.mark.usefixtures("checked_apart")
@pytest.mark.parametrize("relative", [True, False])
def test_no_code_of_a_folder_on_the_path_runs_when_it_starts(read_first, tmp_path, monkeypatch, relative):
    """``site`` would run these files of any folder from which modules are imported, a relative one included."""
    for name in ("sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    if relative:
        (tmp_path / "h5py.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
        monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("." if relative else str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert fit_files.check(read_first) == "TopicModel"
    assert not (tmp_path / "ran").exists()
