"""What has one place in the sources is written out there alone."""

import io
import re
import tokenize
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SOURCE = Path(__file__).parents[1] / "src" / "countveil"


def code_of(path):
    """The lines of a source without strings and comments, by number."""
    lines = {}
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type not in (tokenize.STRING, tokenize.COMMENT):
            lines.setdefault(token.start[0], []).append(token.string)
    return {number: " ".join(parts) for number, parts in lines.items()}


WRITTEN_OUT = re.compile(r"(?<![\w.])[12](\.0)? [-+] (self \. )?alpha\b|log1p \( -? ?alpha|alpha / \( 1")


def test_the_formulas_are_written_out_here_alone():
    """Elsewhere they are called; the data owner's side, without NumPy, has its own in ``mechanisms``."""
    assert WRITTEN_OUT.search("x = alpha / ( 1.0 - alpha )")
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(WRITTEN_OUT.search(line) for line in code_of(path).values())
    }
    home = {path for path in found if path.startswith("laws/noise/two_sided_geometric/")}
    assert "laws/noise/two_sided_geometric/formulas.py" in home
    assert found - home == {"privacy/mechanisms/two_sided_geometric.py"}
