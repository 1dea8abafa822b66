"""Where the commands run."""

import pytest

from tests.commands import write_counts


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with counts.csv in it."""
    write_counts(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
