"""The page about who may be hostile: every rule names tests that hold it, and every test that it names exists."""

import ast
import re

import pytest

from tests.pages import DOCS, ROOT

PARTIES = [
    "The analyst",
    "A participant",
    "The server",
    "Who sends a file",
    "The network",
    "Other users of the machine",
]
TEXT = (DOCS / "threat-model.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/.]+::\w+)`", TEXT)))


def rows():
    """(party, cells) of every row of every table."""
    found = []
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        party, _, body = section.partition("\n")
        lines = [line for line in body.splitlines() if line.startswith("|")]
        found += [(party, [cell.strip() for cell in line.strip("|").split("|")]) for line in lines[2:]]
    return found


def test_every_party_has_a_table():
    assert list(dict.fromkeys(party for party, _ in rows())) == PARTIES
    assert {len(cells) for _, cells in rows()} == {4}
    assert len(rows()) > 40


@pytest.mark.parametrize("named", NAMED)
def test_every_test_that_is_named_exists(named):
    path, _, test = named.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    assert test in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_rule_names_a_test():
    assert len(NAMED) > 60
    without = {tries for _, (tries, stops, _, held) in rows() if "::" not in held and stops != "Nothing"}
    assert not without
    for _, (tries, stops, rest, held) in rows():
        assert stops, tries
        assert held == "–" or "::" in held, tries
        assert rest or stops != "Nothing", tries


def test_the_page_says_what_was_tried():
    assert "\n## What was tried\n" in TEXT
