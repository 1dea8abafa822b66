import os
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.privacy.test_privatize import CRITICAL, law_p_value

from countveil.data.release_files import ReleaseFiles
from countveil.privacy import PrivacyLevel, Release, ReleaseError, privatize_to_files

LEVEL = PrivacyLevel(1, 2)
SILENT = PrivacyLevel(1000, 1)
COUNTS = np.arange(35).reshape(7, 5) % 4


def whole(paths) -> np.ndarray:
    found = [Release.load(path).reports for path in paths]
    return np.concatenate([part.toarray() if sp.issparse(part) else part for part in found])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("container", [np.array, sp.csr_array, sp.coo_array, np.ndarray.tolist, pd.DataFrame])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_every_row_is_in_one_file_and_in_its_place(tmp_path, container, size, threads):
    paths = privatize_to_files(container(COUNTS), SILENT, tmp_path / "out", rows_per_file=size, threads=threads)
    assert paths == sorted((tmp_path / "out").iterdir())
    assert len(paths) == -(-7 // size)
    assert (whole(paths) == COUNTS).all()
    sparse = container in (sp.csr_array, sp.coo_array)
    assert {Release.load(path).truncated for path in paths} == {sparse}


def test_labels_and_levels_go_with_their_rows(tmp_path):
    levels, words = [LEVEL, LEVEL, SILENT, SILENT, LEVEL, LEVEL, SILENT], tuple("abcde")
    frame = pd.DataFrame(COUNTS, index=[f"d{i}" for i in range(7)], columns=list(words))
    paths = privatize_to_files(frame, levels, tmp_path / "out", True, rows_per_file=2)
    releases = [Release.load(path) for path in paths]
    assert [each.levels for each in releases] == [(LEVEL,) * 2, (SILENT,) * 2, (LEVEL,) * 2, (SILENT,)]
    assert [each.row_labels for each in releases] == [("d0", "d1"), ("d2", "d3"), ("d4", "d5"), ("d6",)]
    assert {each.column_labels for each in releases} == {words}
    assert len({each.schema_hash for each in releases}) == 1
    assert all(each.truncated for each in releases)


def test_axes_keep_their_names(tmp_path):
    frame = pd.DataFrame(COUNTS, pd.Index(list("abcdefg"), name="county"), pd.Index(list("vwxyz"), name="cause"))
    paths = privatize_to_files(frame, LEVEL, tmp_path / "out", rows_per_file=4)
    assert [Release.load(path).extras.axis_names for path in paths] == [("county", "cause")] * 2
    assert ReleaseFiles(paths).provenance.axis_names == ("county", "cause")
    Release.load(paths[1]).with_axis_names(("region", "cause")).save(paths[1])
    assert ReleaseFiles(paths).provenance.axis_names == ()


def test_parts_come_one_after_another(tmp_path):
    """No more of them are alive than there are threads, and one that is being made."""
    alive, most = 0, 0
    lock = threading.Lock()

    class Part(sp.csr_array):
        def __del__(self):
            nonlocal alive
            with lock:
                alive -= 1

    def parts():
        nonlocal alive, most
        for i in range(20):
            with lock:
                alive += 1
                most = max(most, alive)
            yield Part(sp.csr_array(COUNTS[i % 7 : i % 7 + 1]))

    paths = privatize_to_files(parts(), SILENT, tmp_path / "out", column_labels=list("abcde"))
    assert len(paths) == 20
    assert most <= 4
    assert (whole(paths) == np.concatenate([COUNTS[i % 7 : i % 7 + 1] for i in range(20)])).all()
    assert Release.load(paths[19]).column_labels == tuple("abcde")


def test_every_cell_of_every_file_gets_noise_of_its_own(tmp_path):
    paths = privatize_to_files(np.full((400, 300), 50), LEVEL, tmp_path / "out", rows_per_file=100, threads=2)
    moved = whole(paths) - 50
    assert law_p_value(moved.ravel(), 0.5) > CRITICAL
    parts = moved.reshape(4, -1)
    assert max((parts[i] == parts[j]).mean() for i in range(4) for j in range(i)) < 0.2


def failing_parts():
    yield sp.csr_array(COUNTS)
    raise RuntimeError("no more")


def other_columns():
    yield sp.csr_array(COUNTS)
    yield sp.csr_array(COUNTS[:, :4])


def other_names():
    for names in ("abcde", "abcdf"):
        yield pd.DataFrame(COUNTS, columns=list(names))


@pytest.mark.parametrize(
    ("counts", "error", "rule"),
    [
        (failing_parts(), RuntimeError, "no more"),
        (
            other_columns(),
            ValueError,
            r"columns of the first part, in the same order, got shape \(4,\) after the rows and not \(5,\) in part 1",
        ),
        (
            other_names(),
            ValueError,
            "columns of the first part, in the same order, got 'f' and not 'e' along axis 1 in part 1",
        ),
        (iter([]), ValueError, "counts must have at least one part, got none"),
        (iter([COUNTS, -COUNTS]), ValueError, "counts must be non-negative whole numbers, got a negative"),
        (-COUNTS, ValueError, "counts must be non-negative whole numbers, got a negative"),
    ],
)
def test_an_error_leaves_nothing(tmp_path, counts, error, rule):
    with pytest.raises(error, match=rule):
        privatize_to_files(counts, LEVEL, tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        privatize_to_files(COUNTS, LEVEL, tmp_path / "out", rows_per_file=2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_there_is_not_replaced(tmp_path, kind):
    {
        "folder": lambda: (tmp_path / "out").mkdir(),
        "file": lambda: (tmp_path / "out").write_text("mine"),
        "link": lambda: (tmp_path / "out").symlink_to(tmp_path / "nowhere"),
    }[kind]()
    with pytest.raises(FileExistsError, match="out must be a new folder, got an existing folder"):
        privatize_to_files(COUNTS, LEVEL, tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"rows_per_file": 0}, "rows_per_file must be a whole number of at least 1, got 0"),
        ({"rows_per_file": True}, "rows_per_file must be a whole number of at least 1, got True"),
        ({"threads": 1.5}, "threads must be a whole number of at least 1, got 1.5"),
        (
            {"counts": iter([COUNTS]), "row_labels": list("abcdefg")},
            "an iterator of counts must come with one level .* got row_labels",
        ),
        (
            {"counts": iter([COUNTS]), "level": [LEVEL] * 7},
            r"an iterator of counts must come with one level .* got level \[PrivacyLevel",
        ),
        ({"level": [LEVEL] * 6}, "level must be one, or one for each of 7 rows, got 6"),
    ],
)
def test_bad_arguments(tmp_path, options, rule):
    given = {"counts": COUNTS, "level": LEVEL} | options
    with pytest.raises(ValueError, match=rule):
        privatize_to_files(given.pop("counts"), given.pop("level"), tmp_path / "out", **given)
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        privatize_to_files(COUNTS, LEVEL, tmp_path / "none" / "out")


def test_a_changed_file_is_refused(tmp_path):
    path = privatize_to_files(COUNTS, LEVEL, tmp_path / "out", rows_per_file=4)[1]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ReleaseError, match=r"part-000001\.npz must match its SHA-256 seal"):
        Release.load(path)
