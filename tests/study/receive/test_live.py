"""The line of counts, on a terminal and elsewhere, and a log that cannot be filled."""

import io
import logging
import time

from rich.console import Console

from countveil.study.receive import live
from countveil.study.receive.live import Sparing, shown


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
    monkeypatch.setattr(live, "console", lambda: screen)
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
