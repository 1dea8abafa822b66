"""Where the commands run."""

import pytest

from tests.commands import COUNTS, WORDS


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with counts.csv in it."""
    rows = [f"doc{d}," + ",".join(str(count) for count in row) for d, row in enumerate(COUNTS)]
    (tmp_path / "counts.csv").write_text("\n".join(["," + ",".join(WORDS), *rows]))
    monkeypatch.chdir(tmp_path)
    return tmp_path
