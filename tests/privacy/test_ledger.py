import json
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from countveil.privacy import PrivacyLevel, study
from countveil.privacy.errors import LimitError, RefusedError
from countveil.privacy.ledger import Ledger, default_path

SOURCE = Path(__file__).parents[2] / "src"
WEAK, STRONG = PrivacyLevel(1, 2), PrivacyLevel(1, 10)
KILLS = int(os.environ.get("COUNTVEIL_KILLS", "12"))
"""How many processes are killed; in minutes of leisure, COUNTVEIL_KILLS=200."""


def planned(title="Surprises"):
    axes = [("word", ["surprise", "party", "five", "times"])]
    return study.new(title, "To learn.", "a@b.org", [WEAK, STRONG], axes)


STUDY, OTHER = planned(), planned("Other")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "ledger.sqlite3"


class Maker:
    """Makes reports that differ, and remembers how many it made."""

    def __init__(self):
        self.made = 0

    def __call__(self, token):
        self.made += 1
        return f"{token} {self.made}".encode()


def release(ledger, *asked, anew=False, make=None):
    return ledger.hand_over(ledger.obtain(*asked, make or Maker(), anew))


def test_asking_again_gives_the_stored_report(path):
    make = Maker()
    with Ledger(path) as ledger:
        assert ledger.find(STUDY, "me", WEAK) is None
        first = ledger.obtain(STUDY, "me", WEAK, make)
        assert ledger.hand_over(first) == first.report
    with Ledger(path) as ledger:
        assert ledger.find(STUDY, "me", WEAK).report == first.report
        assert release(ledger, STUDY, "me", WEAK, make=make) == first.report
        assert ledger.entries() == ledger.entries("me") == [ledger.find(STUDY, "me", WEAK)]
    assert make.made == 1


def test_a_report_is_on_disk_before_it_can_be_had(path):
    def make(token):
        with sqlite3.connect(path, timeout=0) as other, pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
        return b"report"

    with Ledger(path) as ledger, Ledger(path) as witness:
        entry = ledger.obtain(STUDY, "me", WEAK, make)
        assert witness.find(STUDY, "me", WEAK) == entry
        assert entry.gone is None
        assert ledger.hand_over(entry) == b"report"
        assert witness.find(STUDY, "me", WEAK).gone


def test_a_failure_while_making_leaves_nothing(path):
    with Ledger(path) as ledger:
        with pytest.raises(ZeroDivisionError):
            ledger.obtain(STUDY, "me", WEAK, lambda token: bytes(1 // 0))
        assert ledger.entries() == []
        assert release(ledger, STUDY, "me", WEAK)


def test_tokens_stand_for_a_record_in_a_study(path, tmp_path):
    with Ledger(path) as ledger, Ledger(tmp_path / "another") as another:
        tokens = {
            ledger.participant(STUDY, "me"),
            ledger.participant(OTHER, "me"),
            ledger.participant(STUDY, "you"),
            another.participant(STUDY, "me"),
        }
        assert len(tokens) == 4
        assert ledger.participant(STUDY, "caf\u00e9") == ledger.participant(STUDY, "cafe\u0301")
    with Ledger(path) as ledger:
        assert ledger.participant(STUDY, "me") in tokens


def test_names_and_counts_are_not_in_the_file(path):
    with Ledger(path) as ledger:
        release(ledger, STUDY, "my diary", WEAK, make=lambda token: b"noisy")
    assert b"diary" not in path.read_bytes()
    assert b"noisy" in path.read_bytes()
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_second_release_needs_purpose_and_a_limit(path):
    make = Maker()
    with Ledger(path) as ledger:
        release(ledger, STUDY, "me", WEAK, make=make)
        with pytest.raises(LimitError, match="must be released only once under this study"):
            ledger.obtain(STUDY, "me", STRONG, make)
        for asked in [(STUDY, "me", WEAK), (STUDY, "me", STRONG)]:
            with pytest.raises(LimitError, match="a limit must be set before"):
                ledger.obtain(*asked, make, anew=True)
        with pytest.raises(LimitError, match="a limit must be set before"):
            ledger.obtain(OTHER, "me", WEAK, make)
        assert make.made == 1
        assert release(ledger, OTHER, "you", WEAK, make=make)


def test_releases_add_up_to_the_limit_and_no_further(path):
    """m releases cost m epsilon at the same N."""
    make = Maker()
    with Ledger(path) as ledger:
        ledger.set_limit(PrivacyLevel(3, 2))
        reports = {release(ledger, STUDY, "me", WEAK, anew=True, make=make) for _ in range(3)}
        assert len(reports) == 3
        assert ledger.spent("me").loss == WEAK.repeated(3).rate
        for asked in [(STUDY, "me", WEAK), (STUDY, "me", STRONG), (OTHER, "me", STRONG)]:
            with pytest.raises(LimitError, match=r"your limit, epsilon 3 at N = 2, got (4|3\.2) with this one, 3"):
                ledger.obtain(*asked, make, anew=True)
        assert make.made == 3
        assert release(ledger, STUDY, "me", WEAK, make=make) in reports
        assert release(ledger, STUDY, "you", WEAK, make=make)
        ledger.set_limit(PrivacyLevel("3.2", 2))
        assert release(ledger, OTHER, "me", STRONG, make=make)
        assert ledger.spent("me").loss == Fraction(3, 2) + Fraction(1, 10)
        assert [entry.turn for entry in ledger.entries("me")] == [1, 2, 3, 1]
    with Ledger(path) as ledger:
        assert ledger.limit() == PrivacyLevel("3.2", 2)


def test_a_limit_below_one_release_refuses_it(path):
    with Ledger(path) as ledger:
        ledger.set_limit(PrivacyLevel("0.9", 2))
        with pytest.raises(LimitError, match="got 1 with this one, 0 without"):
            ledger.obtain(STUDY, "me", WEAK, Maker())


def test_what_did_not_leave_costs_nothing_and_is_given_before_anything_new(path):
    make = Maker()
    with Ledger(path) as ledger:
        kept = ledger.obtain(STUDY, "me", WEAK, make)
        assert ledger.spent("me") is None
        assert release(ledger, STUDY, "me", STRONG, make=make)
        with pytest.raises(LimitError, match="must be released only once"):
            ledger.hand_over(kept)
        assert ledger.spent("me").loss == STRONG.rate
        assert ledger.find(STUDY, "me", WEAK).gone is None
        assert ledger.obtain(STUDY, "me", WEAK, make, anew=True).report == kept.report
        with pytest.raises(LimitError, match="a limit must be set"):
            ledger.hand_over(kept)
        ledger.set_limit(PrivacyLevel(2, 2))
        assert ledger.hand_over(kept) == kept.report
        assert ledger.spent("me").loss == STRONG.rate + WEAK.rate


def test_fresh_noise_that_did_not_leave_is_given_only_when_asked_for(path):
    """Somebody who declined a second report, and asks again without ``anew``, pays nothing."""
    make = Maker()
    with Ledger(path) as ledger:
        ledger.set_limit(WEAK.repeated(5))
        first = release(ledger, STUDY, "me", WEAK, make=make)
        declined = ledger.obtain(STUDY, "me", WEAK, make, anew=True)
        assert ledger.find(STUDY, "me", WEAK).report == first
        assert release(ledger, STUDY, "me", WEAK, make=make) == first
        assert ledger.spent("me").loss == WEAK.rate
        assert ledger.find(STUDY, "me", WEAK, anew=True) == declined
        assert release(ledger, STUDY, "me", WEAK, anew=True, make=make) == declined.report
        assert ledger.find(STUDY, "me", WEAK, anew=True) is None
        assert release(ledger, STUDY, "me", WEAK, make=make) == declined.report
    assert make.made == 2


@pytest.mark.parametrize(
    "damage", [b"no ledger at all" * 100, b"SQLite format 3\0" + b"\xff" * 4000, "other table", "other version"]
)
def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path, damage):
    path = tmp_path / "l"
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        with Ledger(path):
            pass
        statement = "PRAGMA user_version = 3"
        if damage == "other table":
            path.unlink()
            statement = "CREATE TABLE mine (x)"
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.close()
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="l: the ledger must be"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_ledger_without_its_key_is_refused(path):
    with Ledger(path) as ledger:
        release(ledger, STUDY, "me", WEAK)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM settings WHERE name = 'secret'")
    connection.commit()
    connection.close()
    with pytest.raises(
        RefusedError, match="secret must be 32 bytes and their hash, got no bytes: the ledger is damaged"
    ):
        Ledger(path)


@pytest.mark.parametrize("kind", ["level", "limit"])
def test_values_that_none_can_be_are_refused(path, kind):
    with Ledger(path) as ledger:
        release(ledger, STUDY, "me", WEAK)
        ledger.set_limit(WEAK)
    connection = sqlite3.connect(path)
    change = "releases SET epsilon = '1/0'" if kind == "level" else "settings SET value = '3' WHERE name = 'limit'"
    connection.execute(f"UPDATE {change}")
    connection.commit()
    connection.close()
    with (
        Ledger(path) as ledger,
        pytest.raises(RefusedError, match=r"a level must be two positive fractions, got '(1/0|3)' and '"),
    ):
        ledger.limit() if kind == "limit" else ledger.entries()


def test_a_byte_that_rots_never_makes_a_second_report(path):
    """It is refused, or the stored report is given, or only words that are not looked at have changed."""
    with Ledger(path) as ledger:
        report = release(ledger, STUDY, "me", WEAK)
    whole = path.read_bytes()
    make = Maker()
    make.made = 7
    for place in random.Random(2).sample(range(len(whole)), 400):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            with Ledger(path) as ledger:
                again = ledger.obtain(STUDY, "me", WEAK, make).report
        except (RefusedError, OSError):
            continue
        assert make.made == 7
        assert len(again) == len(report)


def test_a_ledger_that_stays_locked_is_refused(path, monkeypatch):
    monkeypatch.setattr("countveil.privacy.ledger._WAIT_SECONDS", 0)
    with Ledger(path):
        pass
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(RefusedError, match="must be free within a minute"):
        Ledger(path)
    connection.close()


def test_where_the_ledger_is(monkeypatch, tmp_path):
    monkeypatch.setenv("COUNTVEIL_LEDGER", str(tmp_path / "mine"))
    assert default_path() == tmp_path / "mine"
    monkeypatch.delenv("COUNTVEIL_LEDGER")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert default_path() == tmp_path / ".countveil" / "ledger.sqlite3"


def test_without_a_home_directory_the_remedy_is_named(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("COUNTVEIL_LEDGER", raising=False)
    monkeypatch.setattr(Path, "home", home)
    with pytest.raises(RefusedError, match="without a home directory; name another: --ledger, or COUNTVEIL_LEDGER"):
        default_path()


def test_where_no_ledger_can_be_written_the_remedy_is_named(tmp_path):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "ledger.sqlite3"
    with pytest.raises(RefusedError, match=r"ledger.sqlite3: the ledger cannot be written there \(.*COUNTVEIL_LEDGER"):
        Ledger(path)


# --- processes that are killed ---

DRIVER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from countveil.privacy.__main__ import main
print("ready", flush=True)
sys.stdout = sys.stderr = open(os.devnull, "w")
for number in range(int(sys.argv[2])):
    name = f"r{number}"
    status = main(["report", "study.json", "text.txt", "--name", name, "-o", f"{name}.{sys.argv[3]}.json",
                   "--ledger", "ledger", "--level", "1", "--yes"])
    if status:
        sys.exit(status)
"""


def ready(folder):
    folder.mkdir()
    (folder / "study.json").write_text(STUDY.to_json())
    (folder / "text.txt").write_text("surprise party")
    return folder


def driver(folder, number, mark):
    """A process that reports on the records r0, r1, ..., one after the other."""
    command = [sys.executable, "-I", "-S", "-c", DRIVER, str(SOURCE), str(number), mark]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def finished(process):
    process.stdout.close()
    return process.wait(120)


@pytest.mark.long
def test_processes_killed_at_any_moment_never_make_two_reports_of_one_record(tmp_path):
    """Two at a time begin one ledger and are killed; what they left is whole, and is what is given later."""
    moments, total = random.Random(5), 0
    for pair in range(KILLS // 2):
        folder = ready(tmp_path / str(pair))
        for process in [driver(folder, 10**6, mark) for mark in ("a", "b")]:
            time.sleep(moments.uniform(0, 0.06))
            assert process.poll() is None
            process.send_signal(signal.SIGKILL)
            finished(process)
        written = sorted(folder.glob("r*.json"))
        total += len(written)
        with Ledger(folder / "ledger") as ledger:
            for path in written:
                (entry,) = ledger.entries(path.name.partition(".")[0])
                assert path.read_bytes() == entry.report
                assert entry.gone
            begun = len(ledger.entries())
        assert finished(driver(folder, begun + 2, "later")) == 0
        for number in range(begun + 2):
            assert len({path.read_bytes() for path in folder.glob(f"r{number}.*.json")}) == 1
        with Ledger(folder / "ledger") as ledger:
            tokens = [json.loads(entry.report)["participant"] for entry in ledger.entries()]
        assert len(set(tokens)) == len(tokens) == begun + 2
    assert total > KILLS


def test_processes_at_once_agree_on_one_report(tmp_path):
    folder = ready(tmp_path / "crowd")
    crowd = [driver(folder, 5, str(mark)) for mark in range(4)]
    assert [finished(process) for process in crowd] == [0] * 4
    for number in range(5):
        found = [path.read_bytes() for path in folder.glob(f"r{number}.*.json")]
        assert len(found) == 4
        assert len(set(found)) == 1


# --- levels of rho ---

EIGHTH, HALF = PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp("0.5")


def planned_of_rho(title="Gaussian"):
    axes = [("word", ["surprise", "party"])]
    return study.new(title, "To learn.", "a@b.org", [EIGHTH, HALF], axes, truncated=False)


OF_RHO = planned_of_rho()


def test_rho_adds_up_and_comes_back(path):
    with Ledger(path) as ledger:
        ledger.set_limit(PrivacyLevel.zcdp("0.75"))
        assert ledger.limit() == PrivacyLevel.zcdp("0.75")
        release(ledger, OF_RHO, "me", EIGHTH)
        release(ledger, OF_RHO, "me", HALF, anew=True)
    with Ledger(path) as ledger:
        assert ledger.spent("me") == PrivacyLevel.zcdp("0.625")
        assert [entry.level for entry in ledger.entries("me")] == [EIGHTH, HALF]
        assert ledger.find(OF_RHO, "me", EIGHTH).level == EIGHTH
        with pytest.raises(LimitError, match=r"your limit, rho 0\.75, got 1.125 with this one, 0.625 without"):
            release(ledger, OF_RHO, "me", HALF, anew=True)
        assert ledger.spent("me") == PrivacyLevel.zcdp("0.625")


def test_a_limit_of_rho_counts_reports_at_epsilon_too(path):
    with Ledger(path) as ledger:
        ledger.set_limit(PrivacyLevel.zcdp("0.3"))
        release(ledger, STUDY, "me", WEAK)  # (1/2)^2/2
        release(ledger, OF_RHO, "me", EIGHTH)
        assert ledger.spent("me") == PrivacyLevel.zcdp("0.25")
        with pytest.raises(LimitError, match=r"rho 0\.3, got 0.375 with this one, 0.25 without"):
            release(ledger, OTHER, "me", WEAK)
        release(ledger, OTHER, "me", STRONG)  # (1/10)^2/2
        assert ledger.spent("me").loss == Fraction(255, 1000)


def test_a_limit_of_epsilon_forbids_reports_at_rho_in_words(path):
    with Ledger(path) as ledger:
        ledger.set_limit(PrivacyLevel(100, 1))
        with pytest.raises(LimitError, match=r"your limit must be in rho .* got epsilon 100 at N = 1"):
            release(ledger, OF_RHO, "me", EIGHTH)
        assert ledger.spent("me") is None


def test_only_ledgers_with_a_rho_are_of_the_second_version(path):
    def version():
        with sqlite3.connect(path) as connection:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.close()
        return found

    with Ledger(path) as ledger:
        release(ledger, STUDY, "me", WEAK)
    assert version() == 1
    with Ledger(path) as ledger:
        release(ledger, OF_RHO, "you", EIGHTH)
    assert version() == 2
    with Ledger(path) as ledger:
        assert ledger.spent("me") == PrivacyLevel("0.5", 1)
        assert not ledger.begun


def test_a_study_in_waves_has_one_report_of_each_and_they_add_up(path):
    axes = [("word", ["surprise", "party"])]
    waves = study.new("Waves", "To learn.", "a@b.org", [WEAK, STRONG], axes, waves=("one", "two", "three"))
    make = Maker()
    with Ledger(path) as ledger:
        first = release(ledger, waves.at("one"), "me", WEAK, make=make)
        assert release(ledger, waves.at("one"), "me", WEAK, make=make) == first
        with pytest.raises(LimitError):
            ledger.obtain(waves.at("two"), "me", WEAK, make)  # without a limit there is one release
        ledger.set_limit(WEAK.repeated(2))
        second = release(ledger, waves.at("two"), "me", WEAK, make=make)
        assert second != first
        assert second.split()[0] == first.split()[0]  # the same token
        with pytest.raises(LimitError, match="once in each"):
            ledger.obtain(waves.at("two"), "me", STRONG, make)
        with pytest.raises(LimitError):
            ledger.obtain(waves.at("three"), "me", STRONG, make)
        assert ledger.spent("me").loss == WEAK.repeated(2).rate
    assert make.made == 2


def test_what_stands_beside_the_noise_may_change_until_it_left(path):
    with Ledger(path) as ledger:
        entry = ledger.obtain(STUDY, "me", WEAK, Maker())
        changed = ledger.restate(entry, b"other")
        with pytest.raises(RefusedError, match="must be the one that was shown, got one with other covariates"):
            ledger.hand_over(entry)
        assert ledger.entries()[0].gone is None
        assert changed == entry._replace(report=b"other") == ledger.find(STUDY, "me", WEAK)
        assert ledger.hand_over(changed) == b"other"
        assert ledger.restate(entry, b"third").report == b"other"
        assert ledger.find(STUDY, "me", WEAK).report == b"other"
