import pytest
from rich.console import Console

from countveil.common.watcher import ProgressWatcher


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_with_and_without_a_terminal(terminal, capsys):
    with ProgressWatcher(Console(stderr=True, force_terminal=terminal, width=100)) as watcher:
        watcher.stage("privatizing")
        watcher.begin(2)
        watcher.started("ours")
        watcher.finished("ours", 1.25)
    said = capsys.readouterr().err
    assert "privatizing" in said
    assert ("all fits" in said) if terminal else ("[1/2] ours: 1.2 s" in said)
