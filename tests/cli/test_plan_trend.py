import json

from tests.commands import ASKED, fails, run

ASK = ["plan-trend", "--people", "400", "--total", "2", "--change", "0.2"]


def test_a_line_for_each_level_and_what_is_enough():
    said = run(*ASK, "--waves", "3", "--level", "1:1", "--level", "rho:0.125").stdout
    assert "1:1: with 400 people in 3 waves the change from 2 to 2.4 is seen with probability 88%." in said
    assert "rho:0.125: with 400 people in 3 waves the change from 2 to 2.4 is seen with probability 73%." in said
    assert "Seen: the 90% interval for the change in the total excludes zero" in said
    said = run(*ASK, "--waves", "2", "--per-wave", "--counts", "5", "--interval", "0.95", "--power", "0.9").stdout
    assert [line[:4] for line in said.splitlines()[::3]] == ["1:1:", "1:2:", "1:3:", "Seen"]
    assert "Enough for 90%: 1,499 people, or 3 waves" in said
    assert "the 95% interval" in said


def test_levels_and_waves_of_a_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "word.txt").write_text("surprise\nparty\n")
    run("study", "new", "word.txt", "-o", "s.json", *ASKED, "--wave", "spring", "--wave", "summer")
    found = json.loads(run(*ASK, "--study", "s.json", "--json").stdout)
    (row,) = found["plan"]
    assert (row["level"], row["waves"], row["last"]) == ("10:1", 2, 2.4)
    assert row["adds_up_to"] == "epsilon 2 at N = 10"
    run("study", "new", "word.txt", "-o", "once.json", *ASKED)
    assert "waves must be given, by --waves or a study in waves" in fails(*ASK, "--study", "once.json")


def test_what_is_not_enough_is_null_and_errors_take_one_line():
    arguments = [*ASK[:-1], "0.00001", "--waves", "2", "--level", "1:1", "--json"]
    (row,) = json.loads(run(*arguments).stdout)["plan"]
    assert row["enough_waves"] is row["enough_level"] is row["enough_people"] is None
    assert "change must leave at least 0" in fails(*ASK[:-1], "-2", "--waves", "2")
    assert "waves must be from 2 to 1000, got 1" in fails(*ASK, "--waves", "1")
    assert "level must be N:EPSILON" in fails(*ASK, "--waves", "2", "--level", "1")
