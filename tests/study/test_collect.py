import csv
import dataclasses
import json
import os
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data.reports import observations_of
from countveil.privacy import PrivacyLevel, report, study
from countveil.privacy.report import Report
from countveil.study.collect import COLUMNS, collect, report_files

LEVELS = [PrivacyLevel(1, 2), PrivacyLevel(1, 10), PrivacyLevel(4, 1)]
WORDS = ["surprise", "party", "five", "times", "veil"]
RNG = np.random.default_rng(3)


def planned(title="Surprises", **changes):
    return study.new(title, "To learn.", "a@b.org", LEVELS, **({"axes": [("word", WORDS)]} | changes))


STUDY = planned()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    return tmp_path


def made(number, level=LEVELS[0], under=STUDY):
    counts = RNG.poisson(1.0, under.cells).tolist()
    return report.privatized(counts, under, level, f"{number:032x}")


def put(folder, name, content, under=STUDY):
    path = folder / "reports" / name
    path.write_bytes(report.encode(content, under) if isinstance(content, Report) else content)
    return path


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_reports_become_the_release_that_the_fits_take(here):
    reports = [made(i, LEVELS[i % 2]) for i in range(30)]
    for i, each in enumerate(reports):
        put(here, f"{i:02}.json", each)
    done = collect(STUDY, report_files([here / "reports"]), "r.npz", "t.csv")
    assert done == (30, 0, {})
    release = cv.Release.load("r.npz")
    assert sp.issparse(release.reports)
    assert release.reports.toarray().tolist() == [each.values for each in reports]
    assert release.levels == tuple(each.level for each in reports)
    assert release.alpha.tolist() == [each.level.alpha for each in reports]
    assert release.labels == (tuple(each.participant for each in reports), tuple(WORDS))
    assert release.schema_hash == STUDY.schema_hash
    assert (release.truncated, release.simulated) == (True, False)
    assert observations_of(release).shape == (30, 5)
    release.save("again.npz")
    assert (here / "again.npz").read_bytes() == (here / "r.npz").read_bytes()
    assert [row["outcome"] for row in rows("t.csv")] == ["accepted"] * 30
    assert rows("t.csv")[1]["precision"] == "10"
    assert sorted(path.name for path in here.iterdir()) == ["again.npz", "r.npz", "reports", "t.csv"]


@pytest.mark.parametrize("truncated", [True, False])
def test_rows_are_ordered_by_token_whatever_the_files_are_called(here, truncated):
    under = planned(truncated=truncated)
    reports = [made(i, LEVELS[i % 3], under) for i in (7, 3, 200, 5, 1, 90)]
    releases = []
    for attempt, names in enumerate((["ann", "bob", "cy", "dan", "eve", "flo"], ["f", "e", "d", "c", "b", "a"])):
        folder = here / f"{attempt}"
        (folder / "reports").mkdir(parents=True)
        for name, each in zip(names, reports, strict=True):
            put(folder, name, each, under)
        collect(under, report_files([folder / "reports"]), folder / "r.npz", folder / "t.csv")
        releases.append((folder / "r.npz").read_bytes())
    assert releases[0] == releases[1]
    release = cv.Release.load(here / "0" / "r.npz")
    wanted = sorted(reports, key=lambda each: each.participant)
    assert release.row_labels == tuple(each.participant for each in wanted)
    assert release.levels == tuple(each.level for each in wanted)
    values = release.reports.toarray() if truncated else release.reports
    assert values.tolist() == [each.values for each in wanted]
    release.save(here / "again.npz")
    assert (here / "again.npz").read_bytes() == releases[0]


@pytest.mark.parametrize(
    "changes",
    [{"truncated": False}, {"axes": [("to", ["ann", "bob"]), ("day", ["Mon", "Tue", "Wed"])], "kind": "categories"}],
)
def test_signed_reports_and_several_axes_stay_dense(here, changes):
    under = planned(**changes)
    reports = [made(i, LEVELS[1], under) for i in range(8)]
    files = [put(here, f"{i}", each, under) for i, each in enumerate(reports)]
    collect(under, files, "r.npz", "t.csv")
    release = cv.Release.load("r.npz")
    assert release.reports.reshape(8, -1).tolist() == [each.values for each in reports]
    assert release.shape == (8, *under.shape)
    assert release.levels == LEVELS[1]
    assert release.truncated == under.truncated
    assert release.schema_hash == under.schema_hash
    release.save("again.npz")
    assert (here / "again.npz").read_bytes() == (here / "r.npz").read_bytes()


def test_what_cannot_be_merged_is_refused_one_by_one_with_the_reason(here):
    other = planned("Other")
    elsewhere = planned(axes=[("word", WORDS[:4])])
    good = made(1)
    content = report.encode(good, STUDY)
    huge = json.dumps(good.values).replace(" ", "").encode()
    files = {
        "01": good,
        "02 same": content,
        "03 again": made(1, LEVELS[1]),
        "04 other study": report.encode(made(4), other),
        "05 other words": report.encode(made(5, under=elsewhere), elsewhere),
        "06 version": content.replace(b'"mechanism_version":1', b'"mechanism_version":2'),
        "07 schema": content.replace(STUDY.schema_hash.encode(), b"0" * 64),
        "08 changed": content.replace(f"{1:032x}".encode(), f"{2:032x}".encode()),
        "09 impossible": content.replace(huge, b"[1,2,3,4,-5]"),
        "10 short": content[:-30],
        "11 empty": b"",
        "12 binary": bytes(range(256)),
        "13": made(2, LEVELS[2]),
        "14 level": content.replace(b'"precision":"2"', b'"precision":"3"'),
    }
    for name, each in files.items():
        put(here, name, each)
    (here / "reports" / "15 folder").mkdir()
    (here / "reports" / ".hidden").write_text("nothing")
    missing = here / "reports" / "16 missing"
    done = collect(STUDY, [*report_files([here / "reports"]), str(missing)], "r.npz", "t.csv")
    assert (done.accepted, done.refused) == (2, 14)
    assert cv.Release.load("r.npz").row_labels == (f"{1:032x}", f"{2:032x}")
    table = rows("t.csv")
    assert tuple(table[0]) == COLUMNS
    told = {os.path.basename(row["file"])[:2]: (row["field"], row["rule"]) for row in table if row["rule"]}
    assert {number: field for number, (field, _) in told.items()} == {
        "02": "participant",
        "03": "participant",
        "04": "study",
        "05": "study",
        "06": "mechanism_version",
        "07": "schema_hash",
        "08": "sha256",
        "09": "reports[4]",
        "10": "the file",
        "11": "the file",
        "12": "the file",
        "14": "level",
        "15": "the file",
        "16": "the file",
    }
    assert told["02"][1] == f"must be new, got the participant of {here}/reports/01 again"
    assert "must be a regular file" in told["15"][1]
    assert told["16"][1] == "must be readable, got No such file or directory"
    assert done.fields["reports"] == 1


def test_a_refused_report_does_not_take_the_place_of_a_good_one(here):
    good = made(1)
    broken = put(here, "a", report.encode(good, STUDY)[:-9])
    assert collect(STUDY, [broken, put(here, "b", good)], "r.npz", "t.csv")[:2] == (1, 1)


def test_no_cell_of_the_table_is_a_formula(here, monkeypatch):
    """Fields are named by whoever wrote the file, and names of files by whoever sent it."""
    monkeypatch.chdir(here / "reports")
    for name, key in (("=1.json", "=1+1"), ("@2.json", "@SUM(1)"), ("-3.json", "-3"), ("+4.json", "+4")):
        put(here, name, json.dumps({key: 1}).encode())
    with pytest.raises(ValueError, match="got none"):
        collect(STUDY, ["=1.json", "@2.json", "-3.json", "+4.json"], "r.npz", "t.csv")
    table = rows("t.csv")
    assert [row["field"] for row in table] == ["'=1+1", "'@SUM(1)", "'-3", "'+4"]
    assert [row["file"] for row in table] == ["'=1.json", "'@2.json", "'-3.json", "'+4.json"]


@pytest.mark.skipif(os.name != "posix", reason="such file names are POSIX")
def test_no_cell_of_the_table_moves_a_cursor(here):
    put(here, "\x1b[31mred\nb.json", made(1))
    put(here, "\x1b[2J.json", made(1))
    collect(STUDY, report_files([here / "reports"]), "r.npz", "t.csv")
    assert (here / "t.csv").read_text().replace("\n", "").isprintable()
    assert len(rows("t.csv")) == 2
    assert rows("t.csv")[0]["file"].endswith("/\\x1b[2J.json")
    assert "participant of" in rows("t.csv")[1]["rule"]


def test_nothing_accepted_is_no_release_but_a_table(here):
    with pytest.raises(ValueError, match=r"at least one report must be accepted, got none; t\.csv gives the reasons"):
        collect(STUDY, [put(here, "a", b"")], "r.npz", "t.csv")
    assert not (here / "r.npz").exists()
    assert len(rows("t.csv")) == 1


def test_a_failure_leaves_nothing_behind(here, monkeypatch):
    monkeypatch.setattr("countveil.privacy._archive.write", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        collect(STUDY, [put(here, "a", made(1))], "r.npz", "t.csv")
    assert [path.name for path in here.iterdir()] == ["reports"]


def test_memory_does_not_grow_with_the_counts(here, monkeypatch):
    """Ten times the reports, the same memory but for tokens, names and lengths."""
    monkeypatch.setattr("countveil.study.collect._PIECE", 4096)
    monkeypatch.setattr("countveil.privacy._archive._PIECE", 4096)
    wide = planned(axes=[("word", [f"w{i}" for i in range(1000)])])
    for i in range(100):
        put(here, f"{i:03}", made(i, LEVELS[1], wide), wide)
    files = report_files([here / "reports"])
    peaks = []
    for number in (10, 10, 100):
        tracemalloc.start()
        collect(wide, files[:number], "r.npz", "t.csv")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < cv.Release.load("r.npz").reports.nnz * 16 / 3


def test_another_release_of_a_study_has_another_id():
    assert dataclasses.replace(STUDY, contact="eve").id != STUDY.id


def test_reports_of_rho_become_a_release(here):
    levels = [PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp(2)]
    asked = study.new("S", "To learn.", "a@b.org", levels, [("word", WORDS)], truncated=False)
    for number in range(4):
        put(here, f"{number}.json", made(number, levels[number % 2], asked), asked)
    put(here, "other.json", made(9))
    collect(asked, report_files([here / "reports"]), "r.npz", "t.csv")
    release = cv.Release.load("r.npz")
    assert release.levels == tuple(levels * 2)
    assert not release.truncated
    release.save("again.npz")
    assert (here / "again.npz").read_bytes() == (here / "r.npz").read_bytes()
    told = rows("t.csv")
    assert [row["rho"] for row in told] == ["1/8", "2", "1/8", "2", ""]
    assert {row["epsilon"] for row in told} == {""}
    assert observations_of(release).shape == (4, len(WORDS))


def test_reports_of_waves_become_one_release_with_the_wave_of_every_row(here):
    under = planned(waves=("spring", "summer"))
    reports = {
        (who, wave): report.privatized([who] * 5, under.at(wave), LEVELS[who % 2], f"{who:032x}")
        for who, wave in [(3, "summer"), (3, "spring"), (1, "summer"), (2, "spring")]
    }
    for (who, wave), each in reports.items():
        put(here, f"{who}-{wave}.json", each, under)
    put(here, "again.json", reports[1, "summer"], under)
    put(here, "other.json", made(9))
    done = collect(under, report_files([here / "reports"]), "r.npz", "t.csv")
    assert (done.accepted, done.refused) == (4, 2)
    release = cv.Release.load("r.npz")
    assert [int(name, 16) for name in release.row_labels] == [1, 2, 3, 3]
    assert release.extras.waves == (("spring", "summer"), (1, 0, 0, 1))
    expected = [reports[key] for key in [(1, "summer"), (2, "spring"), (3, "spring"), (3, "summer")]]
    assert release.reports.toarray().tolist() == [each.values for each in expected]
    assert release.levels == tuple(each.level for each in expected)
    assert "come to at most" in release.describe()
    release.save("again.npz")
    assert (here / "again.npz").read_bytes() == (here / "r.npz").read_bytes()
    said = {row["file"].rpartition("/")[2]: (row["outcome"], row["field"], row["wave"]) for row in rows("t.csv")}
    assert said["3-spring.json"] == ("accepted", "", "spring")
    assert said["other.json"][:2] == ("refused", "study")
    assert sorted(said[name][0] for name in ("1-summer.json", "again.json")) == ["accepted", "refused"]
