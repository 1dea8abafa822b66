"""The participant's command, in processes in which nothing but the standard library can be imported."""

import io
import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from countveil.privacy import PrivacyLevel, report, study, wording
from countveil.privacy.__main__ import main
from countveil.privacy._covariates import Covariate
from countveil.privacy.ledger import Ledger

SOURCE = Path(__file__).parents[2] / "src"
LEVELS = [PrivacyLevel(1, 10), PrivacyLevel(4, 1)]
WORDS = ["surprise", "party", "five", "times", "it's"]
TEXT = "It\u2019s a surprise party! SURPRISE party, says Zebulon. Zebulon says party."
COUNTS = [2, 3, 0, 0, 1]


def planned(**changes):
    parts = {"levels": LEVELS, "axes": [("word", WORDS)]} | changes
    return study.new("Surprises", "To learn.", "a@b.org", **parts)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a study and a text in it, and a ledger of its own."""
    (tmp_path / "study.json").write_text(planned().to_json())
    (tmp_path / "mail.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COUNTVEIL_LEDGER", str(tmp_path / "ledger"))
    return tmp_path


def alone(*arguments, said="", status=0):
    """The command as a device runs it on which nothing is installed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [sys.executable, "-S", "-s", "-W", "error", "-m", "countveil.privacy", *arguments]
    environment |= {"PYTHONPATH": str(SOURCE), "PYTHONUTF8": "1"}
    done = subprocess.run(command, env=environment, input=said, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def fails(capsys, *arguments):
    """The one line on stderr of a command that is refused."""
    assert main(list(arguments)) == 1
    found = capsys.readouterr().err.strip().splitlines()
    assert len(found) == 1
    assert found[0].startswith("refused: ")
    return found[0]


def test_nothing_else_is_importable_there():
    code = "import sys\ntry:\n import numpy\nexcept ImportError:\n print('alone', sys.prefix)"
    environment = {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-S", "-s", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("alone")


def test_the_whole_journey_of_one_participant(here):
    shown = alone("show", "study.json").stdout
    assert (
        "1. Strong protection: whether you added or left out up to 10 words can be guessed "
        "right in at most 69.7% of cases (50% without the report). (N = 10," in shown
    )
    assert all(line in shown for line in wording.statements("word"))
    assert LEVELS[1].describe() in shown

    first = alone("report", "study.json", "mail.txt", "-o", "r.json", said="1\nyes\n").stdout
    assert "Not in the study, ignored, and never leaving this device: 5 words (3 different)" in first
    assert LEVELS[0].describe() in first
    assert "What would leave: 5 noisy counts" in first
    assert first.index("What would leave") < first.index("Write it to r.json?") < first.index("Wrote r.json")
    assert "adds up to epsilon 1 at N = 10" in first
    made = report.load("r.json", planned())
    assert made.level == LEVELS[0]

    (here / "mail.txt").unlink()
    again = alone("report", "study.json", "mail.txt", "-o", "again.json", "--level", "1", "--yes").stdout
    assert "is given again" in again
    assert (here / "again.json").read_bytes() == (here / "r.json").read_bytes()
    assert re.search(r"1\. Surprises .* epsilon 1 at N = 10, left 20", alone("ledger").stdout)


def test_a_ledger_that_is_begun_is_said_to_be(here, capsys):
    """Somebody whose ledger is elsewhere would draw the noise of a record twice."""
    asked = ["report", "study.json", "mail.txt", "-o", "r.json", "--level", "1", "--yes", "--ledger"]
    for name, begun in (("a", True), ("a", False), ("moved", True)):
        assert main([*asked, name]) == 0
        said = capsys.readouterr().out
        assert (f"A new ledger was begun: {name}. If you have taken part before, stop here" in said) == begun
    assert main(["ledger", "--ledger", "b"]) == 0
    assert "A new ledger was begun: b." in capsys.readouterr().out


def test_which_study_is_said_before_anything_leaves(here):
    """An analyst who gives everybody a study of their own knows whose report is whose."""
    said = alone("report", "study.json", "mail.txt", "-o", "r.json", said="1\nyes\n").stdout
    assert said.index(f"Study {planned().id}. ") < said.index("Write it to r.json?")


def test_the_counts_of_the_text_are_what_is_reported(here):
    """At a level that hides nothing, the noise is zero but for once in e^499."""
    quiet = planned(levels=[PrivacyLevel(500, 1)])
    (here / "study.json").write_text(quiet.to_json())
    assert main(["report", "study.json", "mail.txt", "-o", "r.json", "--yes"]) == 0
    assert report.load("r.json", quiet).values == COUNTS
    (here / "c.csv").write_text("word,count\nparty,7\nzebra,1\n")
    assert main(["report", "study.json", "c.csv", "-o", "c.json", "--yes", "--name", "table"]) == 0
    assert report.load("c.json", quiet).values == [0, 7, 0, 0, 0]


def test_no_name_and_no_word_of_the_text_leaves(here):
    alone("report", "study.json", "mail.txt", "-o", "r.json", "--level", "1", "--yes", "--name", "diary")
    said = (here / "r.json").read_text().lower()
    assert not re.search("zebulon|says|party|mail|diary|ledger", said)


@pytest.mark.parametrize("text", ["", " \n", "nothing of it"])
def test_a_record_without_a_word_of_the_study_warns_before_anything_is_made(here, text):
    (here / "mail.txt").write_text(text)
    command = ["report", "study.json", "mail.txt", "-o", "r.json", "--level", "1"]
    declined = alone(*command, said="no\n", status=3)
    assert "warning: Nothing that the study counts was found: all 5 counts are zero." in declined.stderr
    assert declined.stdout.endswith("Nothing was made.\n")
    assert alone("ledger").stdout == "Nothing was released.\n"
    alone(*command, said="yes\nyes\n")
    assert report.load("r.json", planned()).level == LEVELS[0]
    assert "warning" in alone(*command, "--yes", "--name", "other").stderr


def test_a_record_with_a_word_of_the_study_warns_of_nothing(here):
    assert alone("report", "study.json", "mail.txt", "-o", "r.json", "--level", "1", "--yes").stderr == ""


FILES = json.loads((Path(__file__).parents[1] / "study" / "page" / "cases" / "files.json").read_text())


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]["said"]])
def test_a_file_that_is_no_plain_text_gets_the_remedy(here, capsys, name):
    (here / name).write_bytes(bytes.fromhex(FILES[name]["bytes"]))
    said = fails(capsys, "report", "study.json", name, "-o", "r.json", "--level", "1", "--yes")
    assert wording.BOTH[FILES[name]["said"]] in said
    with Ledger("ledger") as ledger:
        assert ledger.entries() == []


@pytest.mark.parametrize("answers", ["1\nno\n", "1\n", "1\n\n"])
def test_nothing_leaves_without_a_yes(here, answers):
    said = alone("report", "study.json", "mail.txt", "-o", "r.json", said=answers, status=3).stdout
    assert "Nothing was written" in said
    assert not (here / "r.json").exists()
    assert "did not leave" in alone("ledger", "--name", "me").stdout
    with Ledger("ledger") as ledger:
        assert ledger.spent("me") is None
        (kept,) = ledger.entries()
    alone("report", "study.json", "mail.txt", "-o", "r.json", "--level", "1", "--yes")
    assert (here / "r.json").read_bytes() == kept.report


def test_a_record_from_standard_input(here):
    alone("report", "study.json", "-", "-o", "r.json", "--level", "1", said=TEXT, status=3)
    alone("report", "study.json", "-", "-o", "r.json", "--level", "1", "--yes", said=TEXT)
    assert report.load("r.json", planned()).level == LEVELS[0]


def test_fresh_noise_is_had_on_purpose_and_within_the_limit(here, capsys):
    command = ["report", "study.json", "mail.txt", "--level", "1", "--yes"]
    assert main([*command, "-o", "a.json"]) == 0
    assert main(["limit"]) == 0
    assert "No limit is set" in capsys.readouterr().out
    assert "a limit must be set" in fails(capsys, *command, "-o", "b.json", "--anew")
    assert "must be released only once" in fails(
        capsys, "report", "study.json", "mail.txt", "--level", "2", "--yes", "-o", "b.json"
    )
    assert "must have an epsilon and a precision" in fails(capsys, "limit", "--epsilon", "2")
    assert main(["limit", "--epsilon", "2", "--precision", "10"]) == 0
    assert main([*command, "-o", "b.json", "--anew"]) == 0
    said = capsys.readouterr().out
    assert "adds up to epsilon 2 at N = 10" in said
    first, second = (report.load(name, planned()) for name in ("a.json", "b.json"))
    assert first.participant == second.participant
    assert (here / "a.json").read_bytes() != (here / "b.json").read_bytes() or first == second
    assert "epsilon 2 at N = 10, got 3 with this one" in fails(capsys, *command, "-o", "c.json", "--anew")
    assert not (here / "c.json").exists()


def test_a_report_that_was_declined_can_still_leave_beside_another(here, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
    assert main(["report", "study.json", "mail.txt", "-o", "a.json", "--level", "1"]) == 3
    (here / "mail.txt").rename(here / "gone.txt")
    assert main(["report", "study.json", "gone.txt", "-o", "b.json", "--level", "2", "--yes"]) == 0
    again = ["report", "study.json", "mail.txt", "-o", "a.json", "--level", "1", "--yes"]
    capsys.readouterr()
    assert "must be released only once" in fails(capsys, *again)
    assert main(["limit", "--epsilon", "50", "--precision", "10"]) == 0
    assert main([*again, "--anew"]) == 0
    assert "is given again" in capsys.readouterr().out


def test_the_preview_can_show_the_whole_file(here, capsys):
    assert main(["report", "study.json", "mail.txt", "-o", "r.json", "--level", "1", "--yes", "--full"]) == 0
    assert (here / "r.json").read_text() in capsys.readouterr().out


def test_a_level_can_be_told_as_the_study_was_made(here, capsys):
    """N:EPSILON of a level on offer is that level, however its numbers are written."""
    for place, asked in enumerate(["1:4", "1.0:4", "10:1", "1"]):
        name = f"record{place}"
        said = ["--level", asked, "--name", name, "--yes", "-o", f"{name}.json"]
        assert main(["report", "study.json", "mail.txt", *said]) == 0
        made = report.load(f"{name}.json", planned())
        assert made.level == (LEVELS[1] if place < 2 else LEVELS[0])
    odd = planned(levels=[PrivacyLevel(1, 7), PrivacyLevel(Fraction(1, 3), Fraction(7, 3))])
    (here / "odd.json").write_text(odd.to_json())
    assert "1 (7:1), 2 (7/3:1/3); got none" in fails(capsys, "report", "odd.json", "mail.txt", "--yes")
    assert (
        main(["report", "odd.json", "mail.txt", "--level", "7/3:1/3", "--yes", "-o", "odd-r.json", "--name", "o"]) == 0
    )
    assert report.load("odd-r.json", odd).level == odd.levels[1]


def test_the_file_is_named_after_its_token(here):
    alone("report", "study.json", "mail.txt", "--level", "1", "--yes")
    (found,) = here.glob("report-*.json")
    assert report.load(found, planned()).participant.startswith(found.stem.removeprefix("report-"))


def test_labels_of_several_axes_are_shown(here, capsys):
    axes = [("receiver", ["ann", "bob"]), ("day", ["Mon", "Tue"])]
    quiet = planned(levels=[PrivacyLevel(500, 1)], axes=axes, kind="categories")
    (here / "study.json").write_text(quiet.to_json())
    (here / "c.json").write_text('{"bob": {"Mon": 9}}')
    assert main(["report", "study.json", "c.json", "-o", "r.json", "--yes"]) == 0
    assert "bob/Mon 9" in capsys.readouterr().out
    assert "the study counts no words" in fails(
        capsys, "report", "study.json", "mail.txt", "-o", "x.json", "--yes", "--name", "other"
    )


def test_an_output_that_cannot_be_written_costs_nothing(here, capsys, monkeypatch):
    """It is refused before noise is drawn, and does not count as a release."""
    make = ["report", "study.json", "mail.txt", "--level", "1", "--yes"]
    os.mkfifo(here / "pipe")
    assert "pipe must be a file or a new name" in fails(capsys, *make, "-o", "pipe")
    for other in (b"my diary", b"{}"):
        (here / "diary.txt").write_bytes(other)
        assert "must be a new name or a report, got a file that" in fails(capsys, *make, "-o", "diary.txt")
        assert (here / "diary.txt").read_bytes() == other
    (here / "empty").touch()
    assert main([*make, "-o", "empty", "--ledger", "other"]) == 0
    assert main([*make, "-o", "empty", "--ledger", "other"]) == 0
    capsys.readouterr()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "must be in a writable directory" in fails(capsys, *make, "-o", "r.json")
    with Ledger("ledger") as ledger:
        assert ledger.entries() == []


def test_closed_standard_input_is_no_answer_and_no_record(here, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert "from standard input, got none" in fails(capsys, "report", "study.json", "-", "--level", "1", "--yes")
    assert main(["report", "study.json", "mail.txt", "--level", "1", "-o", "r.json"]) == 3
    assert not (here / "r.json").exists()


def test_files_that_cannot_be_read_are_named(here, capsys, monkeypatch):
    os.mkfifo(here / "pipe")
    for command in (["show", "pipe"], ["report", "study.json", "pipe", "--level", "1", "--yes"]):
        assert "pipe: the file must be a regular file" in fails(capsys, *command)
    assert "pipe: the ledger must be a regular file" in fails(capsys, "ledger", "--ledger", "pipe")
    if os.path.exists("/proc/self/mem"):
        assert "mem: the file must be readable, got Input/output error" in fails(capsys, "show", "/proc/self/mem")


def test_what_cannot_be_is_refused_in_one_line(here, capsys, monkeypatch):
    make = ["report", "study.json", "mail.txt", "--yes"]
    offered = "level must be one that the study offers, by its number: 1 (10:1), 2 (1:4); got "
    assert offered + "none" in fails(capsys, *make)
    for wrong in ("3", "0", "-1", "01", "10:2", "1:10", "10", "10:", ":1", "x:y", "\u0661", "1e999999999:1", "9" * 99):
        assert offered + ascii(wrong)[:30] in fails(capsys, *make, f"--level={wrong}")
    monkeypatch.setattr("sys.stdin", io.StringIO("many\n"))
    assert offered + "'many'" in fails(capsys, "report", "study.json", "mail.txt")
    assert not list(here.glob("report-*"))
    make += ["--level", "1"]
    for taken in ("study.json", "mail.txt", "ledger"):
        before = (here / taken).read_bytes() if taken != "ledger" else b""
        assert f"{taken} must be a separate file" in fails(capsys, *make, "-o", taken)
        assert taken == "ledger" or (here / taken).read_bytes() == before
    assert "must be in a directory that exists, got no directory nowhere" in fails(
        capsys, *make, "-o", "nowhere/r.json"
    )
    assert "must be a file, got a directory: add a file name" in fails(capsys, *make, "-o", ".")
    assert "No such file" in fails(capsys, "report", "none.json", "mail.txt")
    assert "No such file" in fails(capsys, "report", "study.json", "none.txt", "--level", "1")
    (here / "broken.json").write_text((here / "study.json").read_text().replace("learn", "spy!!"))
    assert "broken.json: id must be the SHA-256" in fails(capsys, "show", "broken.json")
    assert "must be a ledger that" in fails(capsys, *make, "--ledger", "mail.txt").replace("readable", "a ledger that")


def test_help_has_the_worked_example(capsys):
    for command in (["--help"], ["report", "--help"]):
        with pytest.raises(SystemExit):
            main(command)
        said = " ".join(capsys.readouterr().out.split())
        assert '"surprise party" five times' in said
        assert "5 x 2 = 10" in said
        assert "alpha = exp(-1/10), about 0.9" in said
    assert "A word is a longest run of letters" in said


def test_a_study_of_rho(here):
    levels = [PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp(2)]
    (here / "rho.json").write_text(planned(levels=levels, truncated=False).to_json())
    assert "counts as twice the rho" in alone("show", "rho.json").stdout
    made = ("report", "rho.json", "mail.txt", "--yes")
    said = alone(*made, "-o", "r.json", "--level", "rho:0.125").stdout
    assert levels[0].describe() in said
    assert "adds up to rho 0.125 for one unit in one cell." in said
    assert json.loads((here / "r.json").read_text())["level"] == {"rho": "1/8"}
    assert "must be set before a record is released again" in alone(*made, "--level", "2", "--anew", status=1).stderr
    assert "may come to rho 3." in alone("limit", "--rho", "3").stdout
    said = alone(*made, "-o", "r2.json", "--level", "2", "--anew").stdout
    assert "adds up to rho 2.125 for one unit in one cell." in said
    said = alone("report", "study.json", "mail.txt", "--yes", "-o", "r3.json", "--level", "1").stdout
    assert "adds up to rho 2.13 for one unit in one cell, in which reports at epsilon and N count as" in said
    listed = alone("ledger", "--name", "me").stdout
    assert "rho 0.125, left" in listed
    assert "epsilon 1 at N = 10, left" in listed
    assert "What left about it adds up to rho 2.13 for one unit in one cell." in listed
    refused = alone("limit", "--rho", "3", "--epsilon", "1", "--precision", "1", status=1).stderr
    assert "must be stated in epsilon at an N or in rho, got both" in refused
    refused = alone(*made, "--level", "rho:7", status=1).stderr
    assert "by its number: 1 (rho:0.125), 2 (rho:2); got 'rho:7'" in refused


def test_a_study_in_waves_asks_once_in_each(here):
    (here / "waves.json").write_text(planned(waves=("spring", "summer")).to_json())
    shown = alone("show", "waves.json").stdout
    assert "Waves: spring, summer." in shown
    assert LEVELS[0].repeated(2).in_numbers() in shown
    made = ("report", "waves.json", "mail.txt", "--yes", "--level", "1", "--name", "me")
    assert "must be one of spring, summer, got none" in alone(*made, status=1).stderr
    assert "without waves" in alone("report", "study.json", "mail.txt", "--yes", "--wave", "spring", status=1).stderr
    alone(*made, "--wave", "spring", "-o", "a.json")
    assert "must be set before" in alone(*made, "--wave", "summer", status=1).stderr
    alone("limit", "--epsilon", str(2 * LEVELS[0].epsilon), "--precision", str(LEVELS[0].precision))
    alone(*made, "--wave", "summer")
    alone(*made, "--wave", "spring", "-o", "again.json")
    assert (here / "again.json").read_bytes() == (here / "a.json").read_bytes()
    (second,) = here.glob("report-*-2.json")
    first, later = (json.loads(path.read_text()) for path in (here / "a.json", second))
    assert (first["wave"], later["wave"]) == ("spring", "summer")
    assert first["participant"] == later["participant"]
    assert "adds up to epsilon/N = 0.2 per count." in alone("ledger", "--name", "me").stdout


def test_covariates_are_said_to_be_in_the_clear_and_may_change_until_the_report_leaves(here, capsys):
    asked = Covariate("party", ("D", "R")), Covariate("age", (), "18", "120")
    (here / "public.json").write_text(planned(covariates=asked).to_json())
    made = ("report", "public.json", "mail.txt", "--level", "1", "-o", "r.json")
    assert "covariate age must be given" in fails(capsys, *made, "--yes", "--covariate", "party=D")
    assert "must be one of D, R" in fails(capsys, *made, "--covariate", "party=X", "--covariate", "age=20")
    assert "without covariates" in fails(capsys, "report", "study.json", "mail.txt", "--covariate", "a=1")
    assert not (here / "ledger").exists()
    done = alone(*made, "--covariate", "party=R", "--covariate", "age=42.0", said="no\n", status=3).stdout
    assert "Unprotected, sent without noise: party=R, age=42. Anybody" in done
    assert done.index("party=R") < done.index("Write it to")
    assert not (here / "r.json").exists()
    with Ledger(here / "ledger") as ledger:
        before = report.decode(ledger.entries()[0].report, planned(covariates=asked), "r")
    alone(*made, "--yes", "--covariate", "party=D", "--covariate", "age=42")
    left = report.load(here / "r.json", planned(covariates=asked))
    assert left == before._replace(covariates=("D", "42"))  # the noise was drawn once
    said = fails(capsys, *made, "--yes", "--covariate", "party=R", "--covariate", "age=42")
    assert "covariates must be those of the report that was sent, party=D, age=42, got party=R, age=42" in said
    kept = (here / "r.json").read_bytes()
    alone(*made, "--yes", "--covariate", "age=42", "--covariate", "party=D")  # over the report that is there
    assert (here / "r.json").read_bytes() == kept
    (here / "r.json").write_text('{"covariates":{}, "mine": 1}')
    assert "a file that is something else" in fails(
        capsys, *made, "--yes", "--covariate", "party=D", "--covariate", "age=42"
    )
