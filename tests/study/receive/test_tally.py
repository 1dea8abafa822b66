import io
import logging
import time

from rich.console import Console

from countveil.privacy.errors import RefusedError
from countveil.study.receive import tally
from countveil.study.receive.tally import (
    INVALID,
    MANY,
    OTHER_STUDY,
    REASONS,
    Sparing,
    Tally,
    progress,
    reason_of,
    shown,
)


def test_all_counts_are_in_one_line():
    counts = Tally()
    assert counts.line() == "0 reports; 0 refused"
    counts = Tally(1999, 3000)
    counts.accept()
    for reason in (MANY, MANY, INVALID):
        counts.refuse(reason)
    assert counts.line() == (
        "2,000 of 3,000 reports (67%); 3 refused: 2 too many from one address, 1 not a valid report"
    )
    assert progress(12_345, None) == "12,345 reports"


def test_what_a_sender_writes_is_no_reason():
    for field in ("the file", "reports[7]", "a key of the sender's"):
        assert reason_of(RefusedError("the report", field, "must be")) == INVALID
    assert reason_of(RefusedError("the report", "study", "must be")) == OTHER_STUDY
    assert set(Tally().refused) == set(REASONS)


def test_elsewhere_a_line_is_printed_where_it_changed_and_not_often(capsys):
    number = 0
    with shown(lambda: f"{number} reports", seconds=0.2):
        for _ in range(100):
            number += 1
            time.sleep(0.005)
        time.sleep(0.3)
        before = capsys.readouterr().out.splitlines()
        assert 2 <= len(before) <= 6
        assert before[-1] == "100 reports"
        time.sleep(0.5)
        assert not capsys.readouterr().out
        number = 101
    assert capsys.readouterr().out == "101 reports\n"


def test_on_a_terminal_one_line_is_written_over(monkeypatch):
    written = io.StringIO()
    screen = Console(file=written, force_terminal=True, width=30)
    monkeypatch.setattr(tally, "console", lambda: screen)
    number = 0
    with shown(lambda: f"{number} reports; [bold] refused, and so on"):
        number = 7
        time.sleep(1.2)
    assert "7 reports; [bold] refused, an…" in written.getvalue()
    assert written.getvalue().count("\n") <= 2


def test_each_place_that_logs_gets_one_line_in_a_time():
    now = 0.0
    log, stream = logging.Logger("receiver"), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(Sparing(30, lambda: now))
    log.addHandler(handler)
    for number in range(5000):
        now = number / 50
        log.warning("An attacker's %d", number)
    log.warning("Another place")
    said = stream.getvalue().splitlines()
    assert [line.split("'")[0] for line in said] == ["An attacker"] * 4 + ["Another place"]
