"""Available memory, from files as Linux and containers have them."""

import pytest

from countveil.privacy import _memory
from countveil.privacy._memory import available_memory, in_words

KB = 1024
MEMINFO = "MemTotal:  4000 kB\nMemFree:  10 kB\nMemAvailable:  1000 kB\nSwapTotal:  500 kB\nSwapFree:  200 kB\n"
SYSTEM = 1200 * KB


def group(limit, used, cached, version=2):
    """The files of one control group."""
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    return {names[0]: str(limit), names[1]: str(used), "memory.stat": f"anon 5\n{names[2]} {cached}\nfile 3\n"}


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("", {}, SYSTEM),
        ("0::/\n", {}, SYSTEM),
        ("0::/\n", {"": group("max", 5, 0)}, SYSTEM),
        ("0::/\n", {"": group(900_000, 600_000, 100_000)}, 400_000),
        ("0::/job/one\n", {"job/one": group(900_000, 600_000, 0)}, 300_000),
        ("0::/job\n", {"": group(800_000, 600_000, 0), "job": group(900_000, 600_000, 0)}, 200_000),
        ("0::/\n", {"": group(900_000, 950_000, 0)}, 0),
        ("5:memory:/box\n1:cpu:/\n", {"memory/box": group(900_000, 600_000, 50_000, 1)}, 350_000),
        ("5:memory:/box\n", {"memory": group(2**63 - 4096, 600_000, 0, 1)}, SYSTEM),
    ],
)
def test_the_smallest_of_what_the_system_and_its_groups_leave(tmp_path, monkeypatch, groups, files, expected):
    monkeypatch.setattr(_memory, "SYSTEM", tmp_path)
    contents = {"proc/meminfo": MEMINFO, "proc/self/cgroup": groups}
    for folder, written in files.items():
        contents |= {f"sys/fs/cgroup/{folder}/{name}": text for name, text in written.items()}
    for name, text in contents.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert available_memory() == expected


def test_other_systems_have_all_their_memory_or_say_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory, "SYSTEM", tmp_path)
    monkeypatch.setattr(_memory.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__)
    assert available_memory() == 4_096_000
    monkeypatch.delattr(_memory.os, "sysconf")
    assert available_memory() is None


def test_this_machine_has_some():
    assert available_memory() > 10**6


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(999, "999 bytes"), (999_999, "999,999 bytes"), (1_500_000, "1.5 MB"), (98_765_432_100, "98.8 GB")],
)
def test_sizes_in_words(n_bytes, words):
    assert in_words(n_bytes) == words
