import json
from pathlib import Path

import pytest

from countveil.privacy import PrivacyLevel, report, study
from countveil.study.page import page
from countveil.study.receive.store import Store
from tests.commands import ASKED, fails, run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a vocabulary and two axes in it."""
    (tmp_path / "word.txt").write_text("surprise\nparty\nfive\ntimes\n")
    (tmp_path / "receiver.txt").write_text("Ann\nBob\n")
    (tmp_path / "day.txt").write_text("Mon\nTue\nWed\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_of_words(here):
    said = run("study", "new", "word.txt", "-o", "s.json", *ASKED, "--level", "2.5:0.1").stdout
    made = study.load("s.json")
    assert made.axes == (("word", ("surprise", "party", "five", "times")),)
    assert made.levels == (PrivacyLevel(1, 10), PrivacyLevel("0.1", "2.5"))
    assert made.truncated
    assert f"Wrote s.json: study {made.id}, word: 4." in said
    assert (
        "Level 1: Strong protection: whether you added or left out up to 10 words can be guessed "
        "right in at most 69.7% of cases (50% without the report). (N = 10," in said
    )
    shown = run("study", "show", "s.json").stdout
    assert made.levels[1].describe() in shown
    assert "To find topics." in shown


def test_a_study_of_categories_with_two_axes(here):
    run("study", "new", "receiver.txt", "day.txt", "-o", "s.json", *ASKED, "--categories", "--signed")
    made = study.load("s.json")
    assert (made.kind, made.shape, made.truncated) == ("categories", (2, 3), False)
    assert [name for name, _ in made.axes] == ["receiver", "day"]


def test_what_is_no_study_is_refused_in_one_line(here):
    new = ["study", "new", "word.txt", "-o", "s.json"]
    assert "level must be N:EPSILON, such as 10:1, or rho:RHO, such as rho:0.125, got '10'" in fails(
        *new, *ASKED, "--level", "10"
    )
    assert "levels must differ" in fails(*new, *ASKED, "--level", "10:1")
    assert "must be a different file from" in fails("study", "new", "word.txt", "-o", "word.txt", *ASKED, "--force")
    assert "schema.axes must number 1 to 1, got 2" in fails(*new, "day.txt", *ASKED)
    assert "got 2 that it never makes, such as 'Ann', 'Bob'" in fails(
        "study", "new", "receiver.txt", "-o", "s.json", *ASKED
    )
    assert not (here / "s.json").exists()
    run(*new, *ASKED)
    assert "exists already" in fails(*new, *ASKED)
    described = json.loads((here / "s.json").read_text())
    (here / "s.json").write_text(json.dumps(described | {"title": "Post"}))
    assert "s.json: id must be the SHA-256 of all other fields" in fails("study", "show", "s.json")


def test_the_page_of_a_study(here):
    run("study", "new", "word.txt", "-o", "s.json", *ASKED)
    made = study.load("s.json")
    assert f"the page of study {made.id}" in run("study", "page", "s.json", "-o", "s.html").stdout
    assert (here / "s.html").read_text(encoding="utf-8") == page(made)
    assert "exists already" in fails("study", "page", "s.json", "-o", "s.html")
    (here / "en.json").write_text(run("study", "strings").stdout)
    run("study", "page", "s.json", "-o", "s.html", "--force", "--strings", "en.json")
    assert (here / "s.html").read_text(encoding="utf-8") == page(made)
    assert "must be a different file from" in fails("study", "page", "s.json", "-o", "s.json", "--force")


def test_how_many_reports_there_are(here):
    run("study", "new", "word.txt", "-o", "s.json", *ASKED)
    made = study.load("s.json")
    kept = Store("reports.sqlite", made)  # as a receiver has it open
    said = run("study", "status", "s.json", "--db", "reports.sqlite").stdout
    assert said == f"Study {made.id}: 0 reports in reports.sqlite.\n"
    for number in range(3):
        noisy = report.privatized([0] * 4, made, made.levels[0], f"{number:032x}")
        kept.put(noisy.participant, report.encode(noisy, made)).result(10)
    said = run("study", "status", "s.json", "--db", "reports.sqlite", "--target", "4").stdout
    assert said == f"Study {made.id}: 3 of 4 reports (75%) in reports.sqlite.\n"
    kept.close()


def test_the_reports_of_another_study_or_of_none_are_not_counted(here):
    run("study", "new", "word.txt", "-o", "s.json", *ASKED)
    run("study", "new", "word.txt", "-o", "t.json", *ASKED, "--signed")
    Store("reports.sqlite", study.load("s.json")).close()
    assert "got the store of another" in fails("study", "status", "t.json", "--db", "reports.sqlite")
    assert "must be a store of reports" in fails("study", "status", "s.json", "--db", "word.txt")
    assert "db must be a file that" in fails("study", "status", "s.json", "--db", "none.sqlite")
    assert not (here / "none.sqlite").exists()


def test_a_study_states_what_is_handed_over_in_the_clear(here):
    new = ["study", "new", "word.txt", "-o", "s.json", *ASKED]
    asked = "--covariate", "party=D, R", "--covariate", "age=number:18:120.0", "--covariate", "year=number"
    said = run(*new, *asked, "--covariate", "size=number:0:").stdout
    assert study.load("s.json").covariates == (
        ("party", ("D", "R"), None, None),
        ("age", (), "18", "120"),
        ("year", (), None, None),
        ("size", (), "0", None),
    )
    assert "party: one of D, R. Unprotected" in said
    assert "age: a number from 18 to 120. Unprotected" in run("study", "show", "s.json").stdout
    run("study", "page", "s.json", "-o", "s.html")
    assert "Unprotected, sent without noise" in Path("s.html").read_text(encoding="utf-8")
    new[new.index("s.json")] = "t.json"
    assert "must be NAME=VALUES" in fails(*new, "--covariate", "party")
    assert "must have two bounds" in fails(*new, "--covariate", "age=number:18")
    assert "lowest must be a number" in fails(*new, "--covariate", "age=number:x:")
    assert "must number 2 to 1000" in fails(*new, "--covariate", "party=D")
