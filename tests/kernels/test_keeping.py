"""Compiled functions are kept where nobody else can write; where they cannot be kept, everything works."""

import os
import pickle
import re
import stat
from types import SimpleNamespace
from typing import NamedTuple

import numba
import pytest
from numba.core import caching

from countveil.kernels import keeping
from countveil.kernels.compiled import elementwise, kernel, subroutine
from countveil.kernels.general import GeneralLaw
from countveil.laws.counts import POISSON
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from tests.plain import about_compiling
from tests.strangers import BECOME, ROOT, UID, installed, open_folder, own_folder, run

pytestmark = pytest.mark.long

CODE = """
from countveil import distributions
from countveil.kernels.series import balance_point
print(balance_point(2, 3.0) > 0, distributions._mode_of_bessel(2, 3.0), balance_point.stats.cache_hits.total())
"""
WORKS = "True 0 {hits}"
WARNING = "compiled functions cannot be kept, so every process compiles them again"


@pytest.fixture(scope="module")
def machine():
    """A folder with a read-only installation."""
    with open_folder() as folder:
        installed(folder)
        yield folder


def call(machine, *options, **environment):
    """What a process says that compiles two functions: its output, and its errors."""
    found = run(CODE, machine / "src", machine, *options, **environment)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip(), found.stderr


@pytest.mark.parametrize("home", [{}, {"HOME": "/nonexistent"}])
def test_without_any_place_functions_are_compiled_and_the_remedy_is_named_once(machine, home):
    out, errors = call(machine, **home)
    assert out == WORKS.format(hits=0)
    assert errors.count("RuntimeWarning") == 1
    assert WARNING in errors
    assert "set NUMBA_CACHE_DIR to a folder that you can write to and other users cannot, got nothing" in errors
    assert not list(machine.rglob("*.nb?"))
    assert not (machine / "~").exists()


def test_a_folder_without_a_home_is_not_made_where_the_process_runs(machine):
    with open_folder() as folder:
        here = own_folder(folder / "here")
        found = run(CODE, machine / "src", here)
        assert found.stdout.strip() == WORKS.format(hits=0)
        assert list(here.iterdir()) == []


def test_a_folder_of_ones_own_keeps_what_was_compiled(machine):
    with open_folder() as folder:
        mine = own_folder(folder / "mine")
        for hits in (0, 1):
            assert call(machine, NUMBA_CACHE_DIR=str(mine)) == (WORKS.format(hits=hits), "")
        home = own_folder(folder / "home")
        for hits in (0, 1):
            assert call(machine, HOME=str(home)) == (WORKS.format(hits=hits), "")
        assert list(home.rglob("*.nbi"))


def test_what_was_compiled_from_a_source_that_has_changed_is_not_run():
    """The function itself has not changed: another file has, which it may call. Its date and size are as before."""
    with open_folder() as folder:
        source, mine = installed(folder), own_folder(folder / "mine")
        assert call(folder, NUMBA_CACHE_DIR=str(mine)) == (WORKS.format(hits=0), "")
        changed = source / "countveil" / "kernels" / "random.py"
        about, text = changed.stat(), changed.read_text()
        changed.chmod(0o644)
        changed.write_text(text.replace("SMALLEST = 1e-150", "SMALLEST = 1e-151"))
        os.utime(changed, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert changed.stat().st_size == about.st_size
        assert changed.read_text() != text
        assert call(folder, NUMBA_CACHE_DIR=str(mine)) == (WORKS.format(hits=0), "")  # 1 from the same: the test above


def stamp_at(folder, monkeypatch):
    """The stamp of sources that are in another folder."""
    monkeypatch.setattr(keeping, "__file__", str(folder / "kernels" / "keeping.py"))
    return keeping.stamp_of_sources.__wrapped__()


def test_sources_have_the_same_stamp_elsewhere_and_next_to_a_link_that_leads_nowhere(tmp_path, monkeypatch):
    """Emacs locks a file by such a link."""
    here, copy, changed = (tmp_path / name for name in ("here", "copy", "changed"))
    for folder, text in ((here, "a = 1"), (copy, "a = 1"), (changed, "a = 2")):
        (folder / "laws").mkdir(parents=True)
        (folder / "laws" / "a.py").write_text(text)
    (copy / "laws" / ".#a.py").symlink_to("me@here.123")
    assert stamp_at(copy, monkeypatch) == stamp_at(here, monkeypatch) != stamp_at(changed, monkeypatch)


KEPT_BY_NUMBA = re.compile(r"^\s*@(?:numba\.)?n?jit\(.*cache=True", re.MULTILINE)


def test_no_function_is_kept_by_numba_itself():
    """Numba would not notice that a function which it calls has changed."""
    assert KEPT_BY_NUMBA.search("\n@njit(nogil=True, cache=True)\ndef f(x):")
    folders = ("src", "tests", "benchmarks", "papers")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    assert [path.name for path in files if KEPT_BY_NUMBA.search(path.read_text(encoding="utf-8"))] == []


def test_what_others_left_in_an_open_folder_is_not_run(machine):
    with open_folder() as folder:
        shared = folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        own = own_folder(folder / "own")
        call(machine, NUMBA_CACHE_DIR=str(own))
        evil = pickle.dumps(numba.__version__) + pickle.dumps(Evil(str(folder / "own" / "run")))
        for index in own.rglob("*.nbi"):
            target = shared / index.relative_to(own)
            target.parent.mkdir(exist_ok=True)
            target.parent.chmod(0o777)
            target.write_bytes(evil)
            target.chmod(0o644)
            if BECOME:
                os.chown(target.parent, UID + 1, UID + 1)
        out, errors = call(machine, NUMBA_CACHE_DIR=str(shared))
        assert out == WORKS.format(hits=0)
        assert f"got {shared}" in errors
        assert not (own / "run").exists()


class Evil:
    """A pickle that leaves a file behind when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""


def test_a_full_disk_is_told_once_and_changes_nothing_else(machine):
    with open_folder() as folder:
        mine = own_folder(folder / "mine")
        found = run(FULL + CODE, machine / "src", machine, NUMBA_CACHE_DIR=str(mine))
        assert (found.returncode, found.stdout.strip()) == (0, WORKS.format(hits=0)), found.stderr
        assert found.stderr.count("RuntimeWarning") == 1
        assert WARNING in found.stderr
        assert f"({mine}" in found.stderr
        assert "File too large" in found.stderr


ME = os.geteuid()
OTHER = ME + 1
PRIVATE, GROUPS, OPEN, STICKY = 0o700, 0o775, 0o777, 0o777 | stat.S_ISVTX


@pytest.mark.parametrize(
    ("owner", "mode", "owner_above", "mode_above", "expected"),
    [
        (ME, PRIVATE, ME, PRIVATE, False),
        (0, PRIVATE, 0, PRIVATE, False),
        (ME, GROUPS, ME, GROUPS, False),
        (ME, PRIVATE, 0, STICKY, False),  # a folder of one's own in /tmp
        (OTHER, PRIVATE, 0, STICKY, True),  # which another user made first
        (ME, OPEN, ME, PRIVATE, True),
        (ME, STICKY, ME, PRIVATE, True),
        (ME, PRIVATE, ME, OPEN, True),
        (ME, PRIVATE, OTHER, PRIVATE, True),
    ],
)
def test_who_can_write_to_a_folder(monkeypatch, owner, mode, owner_above, mode_above, expected):
    known = {
        "/a/b": SimpleNamespace(st_uid=owner, st_mode=mode),
        "/a": SimpleNamespace(st_uid=owner_above, st_mode=mode_above),
    }
    monkeypatch.setattr(keeping.os, "stat", known.__getitem__)
    assert keeping.others_can_write("/a/b") == expected


@about_compiling
def test_every_decorator_keeps_its_function_in_a_checked_place(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    caches = (kernel(more)._cache, subroutine(more).compiled._cache, elementwise(more)._dispatcher.cache)
    assert {type(cache) for cache in caches} == {keeping.Cache}
    assert all(isinstance(cache._impl.locator, keeping.Named) for cache in caches)


def more(x):
    return x + 1


def full(*given):
    raise OSError("no space left on device")


@about_compiling
def test_an_index_never_leads_to_what_was_compiled_from_other_sources(tmp_path, monkeypatch):
    """The disk is full after the index is written, beside what was compiled from the sources before."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    kernel(more)(1)
    monkeypatch.setattr(keeping, "stamp_of_sources", lambda: "others")
    with monkeypatch.context() as patched:
        patched.setattr(keeping, "told", True)
        patched.setattr(caching.IndexDataCacheFile, "_save_data", full)
        kernel(more)(1)
    for hits in (0, 1):
        again = kernel(more)
        assert again(1) == 2
        assert again.stats.cache_hits.total() == hits


@about_compiling
def test_an_index_never_leads_to_what_was_compiled_for_other_types(tmp_path, monkeypatch):
    """Two processes wrote at once, and both called their file the first."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    kernel(more)(1)
    (index,), (kept,) = tmp_path.rglob("*.nbi"), tmp_path.rglob("*.nbc")
    of_integers = kept.read_bytes()
    index.unlink()
    kernel(more)(1.5)
    kept.write_bytes(of_integers)
    again = kernel(more)
    assert again(1.5) == 2.5
    assert again.stats.cache_hits.total() == 0


class Foreign(NamedTuple):
    """A law or noise of another module."""

    parameters: tuple[()] = ()


@about_compiling
def test_what_another_version_kept_for_a_class_that_is_gone_is_compiled_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(keeping, "is_own", lambda of: True)

    def same(law, x):
        return x

    kernel(same)(Foreign(), 1.0)
    monkeypatch.delitem(globals(), "Foreign")
    law = GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, POISSON.counts)
    assert kernel(same)(law, 1.0) == 1.0
    again = kernel(same)
    again(law, 1.0)
    assert again.stats.cache_hits.total() == 1


@about_compiling
@pytest.mark.parametrize("law", [Foreign(), GeneralLaw(Foreign(), POISSON.counts), (1, (Foreign(), 2.0))])
def test_what_is_compiled_for_classes_from_elsewhere_is_not_kept(tmp_path, monkeypatch, law):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def same(law, x):
        return x

    assert kernel(same)(law, 1.0) == 1.0
    assert not list(tmp_path.rglob("*.nb?"))
    own = kernel(same)
    assert own(GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, POISSON.counts), 1.0) == own(law, 1.0) == 1.0
    (index,), (kept,) = tmp_path.rglob("*.nbi"), tmp_path.rglob("*.nbc")
    for file in (index, kept):
        assert b"Foreign" not in file.read_bytes()
    again = kernel(same)
    again(GeneralLaw(TWO_SIDED_GEOMETRIC.kernel, POISSON.counts), 1.0)
    assert again.stats.cache_hits.total() == 1
