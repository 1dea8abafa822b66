import ast
import errno
import os
import time
from pathlib import Path

import pandas as pd
import pytest

import countveil
from countveil.common import files
from countveil.common.files import make_room, write_csv, write_table
from countveil.privacy import _archive
from countveil.privacy._archive import replacing


def test_a_file_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "table.csv"
    with replacing(path) as temporary:
        assert temporary.suffix == ".csv"
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def break_off():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        break_off()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def write(path):
    with replacing(path) as temporary:
        temporary.write_text("whole")


@pytest.mark.parametrize("writer", [write, lambda path: _archive.put(path, b"whole")])
def test_a_device_a_pipe_or_a_directory_is_never_renamed_over(tmp_path, writer):
    pipe, folder, link = (tmp_path / name for name in ("pipe", "folder", "link"))
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(pipe)
    before = set(tmp_path.iterdir())
    for path in (pipe, folder, link):
        with pytest.raises(OSError, match="must be a file or a new name"):
            writer(path)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert set(tmp_path.iterdir()) == before
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    writer(dangling)
    assert dangling.read_text() == "whole"


def test_room_is_made_and_left_empty(tmp_path):
    temporary = tmp_path / "new"
    make_room(temporary, 1000, "fit.nc")
    assert temporary.read_bytes() == b""


def test_where_there_is_no_room_the_file_and_its_size_are_named(tmp_path):
    with pytest.raises(OSError, match=r"2,000,000,000,000,000 bytes are needed: 'fit\.nc'"):
        make_room(tmp_path / "new", 2 * 10**15, "fit.nc")
    assert (tmp_path / "new").read_bytes() == b""


def test_a_table_holds_no_formulas_and_its_numbers_stay(tmp_path):
    frame = pd.DataFrame({"=word": ["=1+1", "\x1b[2J", "plain"], "value": [-1.5, 2.0, 3.0], "any": [-1, "-1", None]})
    write_csv(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == ("'=word,value,any\n'=1+1,-1.5,-1\n\\x1b[2J,2.0,'-1\nplain,3.0,\n")
    assert frame.columns[0] == "=word"
    assert frame.iloc[0, 0] == "=1+1"
    write_csv(frame.astype({"=word": "category"}), tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == (tmp_path / "t.csv").read_text()


def test_a_table_holds_no_formulas_where_semicolons_separate_cells(tmp_path):
    write_csv(pd.DataFrame({"a;=1": ["x;=HYPERLINK(A1)"], "value": [-1.5]}), tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines == ["a;'=1,value", "x;'=HYPERLINK(A1),-1.5"]


@pytest.mark.long
def test_nobody_else_writes_tables():
    source = Path(countveil.__file__).parent
    writers = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and (node.attr == "to_csv" or ast.unparse(node) == "csv.writer")
    }
    assert writers == {
        "cli/export.py",
        "study/collect.py",
        "common/files.py",
        "common/names.py",
    }  # the first calls a fit's own method, the last writes one line of names


def written(target):
    with replacing(target) as temporary:
        temporary.write_text("x")


@pytest.mark.parametrize("write", ["replacing", "put"])
def test_what_a_killed_process_left_is_removed_at_the_next_start(tmp_path, write):
    target, old = tmp_path / "a.block.npz", time.time() - 7200
    mine = [tmp_path / f".{'0f' * 6}.a.block.npz", tmp_path / f".a.block.npz.{'0f' * 6}.tmp"]
    others = [tmp_path / f".{'0f' * 6}.b.block.npz", tmp_path / ".notes.a.block.npz"]
    for each in (*mine, *others):
        each.write_text("x")
        os.utime(each, (old, old))
    busy = tmp_path / f".{'1e' * 6}.a.block.npz"
    busy.write_text("x")
    if write == "put":
        _archive.put(target, b"x")
    else:
        written(target)
    assert set(tmp_path.iterdir()) == {target, busy, *others}


@pytest.mark.parametrize("write", ["replacing", "put"])
def test_a_full_disk_names_the_file(tmp_path, write, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    target = tmp_path / "a.nc"
    with pytest.raises(OSError, match=r"No space left on device: '.*/a\.nc'"):
        written(target) if write == "replacing" else _archive.put(target, b"x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".parquet"])
def test_tables_are_written_by_their_ending(tmp_path, ending):
    table = pd.DataFrame({"name": ["=a", "b"], "count": pd.array([1, None], dtype="Int64")})
    path = tmp_path / f"table{ending}"
    write_table(table, path)
    found = {".csv": pd.read_csv, ".xlsx": pd.read_excel, ".parquet": pd.read_parquet}[ending](path)
    assert found["name"].tolist() == ["=a" if ending == ".parquet" else "'=a", "b"]
    assert found["count"].isna().tolist() == [False, True]
    assert list(tmp_path.iterdir()) == [path]


def test_tables_that_cannot_be_written_are_refused(tmp_path, monkeypatch):
    table = pd.DataFrame({"a": [1, 2]})
    with pytest.raises(ValueError, match=r"a table must end in .csv, .xlsx, .parquet, got t.txt"):
        write_table(table, tmp_path / "t.txt")
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"t\.xlsx needs openpyxl, which is missing: pip install openpyxl"):
        write_table(table, tmp_path / "t.xlsx")
    monkeypatch.setattr(files, "find_spec", lambda name: name)
    monkeypatch.setattr(files, "ROWS_OF_A_SHEET", 2)
    with pytest.raises(ValueError, match=r"a \.xlsx must have fewer than 2 rows, got 2"):
        write_table(table, tmp_path / "t.xlsx")
    assert not list(tmp_path.iterdir())
