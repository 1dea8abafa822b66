"""The page about who may be hostile: every rule names tests that hold it, and every test that it names exists."""

import ast
import re

import pytest

from tests.fuzz.readers import KINDS, kind_of
from tests.pages import DOCS, ROOT

PARTIES = [
    "The analyst",
    "A participant",
    "Readers of results",
    "The server",
    "Senders of files",
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
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_rule_names_a_test():
    assert len(NAMED) > 60
    without = {tries for _, (tries, stops, _, held) in rows() if "::" not in held and stops != "Nothing"}
    assert not without
    for _, (tries, stops, rest, held) in rows():
        assert stops, tries
        assert held == "–" or "::" in held, tries
        assert rest or stops != "Nothing", tries


def test_the_page_says_what_was_tried():
    assert "\n## Attacks tried\n" in TEXT


def default_of_mutations(path):
    """How many mutations a test file tries where nobody asks for another number."""
    found = re.findall(r'"COUNTVEIL_MUTATIONS", "(\d+)"', (ROOT / "tests" / path).read_text(encoding="utf-8"))
    assert len(found) == 1
    return int(found[0])


@pytest.mark.long
def test_the_numbers_of_what_was_tried_are_those_of_the_tests():
    tried = " ".join(TEXT.partition("\n## Attacks tried\n")[2].split())
    number = default_of_mutations("privacy/test_report.py")
    pages = default_of_mutations("study/page/test_app_script.py")
    assert f"mutates {number} reports, {number} studies, 3,000 JSON files and {pages:,} inputs of the page" in tried
    assert "range(3000)" in (ROOT / "tests/study/page/test_counting_script.py").read_text(encoding="utf-8")
    weights = {name: kind_of(name).weight for name in KINDS}
    shares = {name: 10_000 * weight // sum(weights.values()) for name, weight in weights.items()}
    assert sum(shares.values()) > 9_990
    assert f"about 10,000 releases, fits ({shares['fit'] + shares['hdf5']}), reports" in tried
