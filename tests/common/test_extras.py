"""What messages say about installing: from a clone, since no package index has the library."""

import re
import tomllib
from pathlib import Path

import pytest

from countveil.common.extras import install

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
FROM_AN_INDEX = re.compile(r"\b(?:install|add)(?:\s+-\S+)*\s+['\"]?countveil\b")


def texts():
    """Every file that says something to readers, from help and error messages to pages, by its path."""
    files = [*ROOT.glob("*.md"), ROOT / "Makefile"]
    for folder, endings in (("docs", ("*.md",)), ("src", ("*.py", "*.html", "*.js")), ("benchmarks", ("*.py",))):
        for ending in endings:
            files += (ROOT / folder).rglob(ending)
    return {path: path.read_text(encoding="utf-8") for path in files}


@pytest.mark.parametrize("told", [
    "pip install countveil", "pip install 'countveil[demo]'", "uv add countveil", 'pip install -q "countveil[receive]"',
])  # fmt: skip
def test_the_search_finds_what_it_is_for(told):
    assert FROM_AN_INDEX.search(told)


def test_nothing_says_to_install_from_a_package_index():
    found = texts()
    assert len(found) > 200
    assert [path for path, text in found.items() if FROM_AN_INDEX.search(text)] == []


def test_every_extra_that_is_named_exists():
    named = re.compile(r"\binstall\(['\"](\w+)['\"]\)|pip install[^\n]*'\.\[(\w+)\]'")
    found = {m[1] or m[2] for text in texts().values() for m in named.finditer(text)}
    assert {"dask", "demo", "plots", "receive", "report"} <= found <= set(EXTRAS)


def test_the_message_is_a_command_and_where_to_run_it():
    assert install("demo") == "pip install '.[demo]' in a clone of countveil"
