"""Every reader of files from others reads what was broken on purpose, or refuses it in one short line."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import main
from tests.fuzz.readers import KINDS, Kind, kind_of
from tests.fuzz.run import MEMORY, attempt, mutated, run

FAILED = (Path(__file__).parent / "failed.txt").read_text(encoding="ascii").split()
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited by way of /proc"),
    pytest.mark.long,
]


@pytest.fixture
def fuzz(monkeypatch, capsys):
    """The command in this process, by its arguments: what it printed."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["fuzz", *map(str, arguments)])
        status, said = main(), capsys.readouterr().out
        assert status == 0, said
        return said

    return command


def test_ten_thousand_mutations_and_none_is_a_crash(fuzz):
    *kinds, last = fuzz("--mutations", 10000, "--seed", 1).splitlines()
    assert "0 failures" in last
    assert {line.partition(":")[0] for line in kinds} == set(KINDS)


def test_a_run_that_was_stopped_goes_on(fuzz):
    whole, rest = (fuzz("study", "--mutations", 400, *more) for more in ((), ("--first", 300)))
    assert "study: 400 mutations, 0 failures" in whole
    assert "study: 100 mutations, 0 failures" in rest


def test_what_once_failed_does_not_again(fuzz):
    assert f"{len(FAILED)} mutations, 0 failures" in fuzz("--replay", *FAILED)


def test_a_seed_is_always_the_same_mutation(tmp_path):
    kind = kind_of("study")
    assert mutated(kind, "study:1:7") == mutated(kind_of("study"), "study:1:7")
    assert len({mutated(kind, f"study:1:{i}") for i in range(50)}) > 45
    for name in ("release", "report", "study", "tables"):
        kind = kind_of(name)
        for each, content in kind.files.items():  # the valid ones are read
            (tmp_path / each).write_bytes(content)
            kind.read(tmp_path / each)


def faulty(read):
    """A kind of file with a reader that does something else with every file."""
    return Kind({"a.txt": b"some text" * 20}, (lambda content, rng: content + bytes([rng.randrange(9)]),), read, 1)


def raising(error):
    def read(path):
        raise error(path)

    return read


def hungry(path):
    bytes(2 * MEMORY)


def dying(path):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (raising(lambda path: KeyError("a")), "KeyError"),
        (raising(lambda path: ValueError(f"{path} {'x' * 1000}")), "a refusal of 1"),
        (raising(lambda path: ValueError("nothing")), "does not name the file"),
        (raising(lambda path: ValueError(f"{path} first\nsecond")), "several lines"),
        (hungry, "MemoryError"),
        (dying, "died of SIGKILL"),
        (raising(SystemExit), "ended the process"),
        (lambda path: os._exit(0), "ended the process"),
    ],
)
def test_what_a_reader_must_not_do_is_seen(read, said):
    """The control: each of these readers fails, at every seed, and the run goes on behind it."""
    found = list(run("faulty", ["a:1", "a:2", "a:3"], faulty(read)))
    assert [failure.seed for failure in found] == ["a:1", "a:2", "a:3"]
    assert all(said in failure.what for failure in found)


def test_a_good_reader_has_no_failures(tmp_path):
    refusing = faulty(raising(lambda path: ValueError(f"{path} must be another file, got this one")))
    assert attempt(refusing, "a:1", tmp_path) is None
    assert list(run("good", ["a:1", "a:2"], faulty(lambda path: None))) == []
