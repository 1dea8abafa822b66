import json

import pytest

from countveil.audit import Finding
from countveil.audit.checks import LEVELS
from countveil.privacy import PrivacyLevel, study
from tests.commands import fails, run

ASKED = ["--title", "Mail", "--purpose", "To find topics.", "--contact", "me@example.org", "--level", "10:1"]


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
    assert "Level 1: hide up to 10 words at epsilon 1 (alpha 0.905;" in said
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
    assert "level must be N:EPSILON, such as 10:1, got '10'" in fails(*new, *ASKED, "--level", "10")
    assert "levels must differ" in fails(*new, *ASKED, "--level", "10:1")
    assert "must be a file of its own" in fails(
        "study", "new", "word.txt", "-o", "word.txt", *ASKED, "--force"
    )
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


def test_the_audit_tells_every_check_and_fails_if_one_does(here, monkeypatch):
    level = PrivacyLevel(1, 10)
    asked = []

    def audit(levels):
        asked.append(list(levels))
        yield Finding("arrays", "law", level, True, "p = 0.5", "a deviation of 0.001")
        yield Finding("arrays", "alpha", level, len(asked) == 1, "p = 0", "alpha wrong by 1%")

    monkeypatch.setattr("countveil.audit.audit", audit)
    said = run("audit", "--level", "10:1").stdout
    assert "PASS  arrays, law (N=10, epsilon=1): p = 0.5; detects a deviation of 0.001" in said
    assert said.endswith("2 of 2 checks passed.\n")
    run("study", "new", "word.txt", "-o", "s.json", *ASKED)
    said = run("audit", "--study", "s.json", status=1).stdout
    assert "FAIL  arrays, alpha (N=10, epsilon=1): p = 0; detects alpha wrong by 1%" in said
    run("audit", status=1)
    assert asked == [[level], [level], list(LEVELS)]
    assert "level must be N:EPSILON" in fails("audit", "--level", "strong")
