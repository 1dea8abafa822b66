"""The page about the mathematics: every number that is cited is on it, and every formula on it is checked."""

import re
from pathlib import Path

import pytest

from tests.formulas import CHECKS
from tests.pages import DOCS, PAGES, ROOT

pytestmark = pytest.mark.long

PAGE = DOCS / "mathematics.md"
NUMBERS = r"\d+(?:\.\d+)?(?:(?:,| and| to|, and) \d+(?:\.\d+)?)*"
CITED = re.compile(
    rf"mathematics[,:]? (?:(?:section|equation)s? )?({NUMBERS})"
    rf"|equations? ({NUMBERS}) of the mathematics"
    r"|equations? (\d+\.\d+(?:(?:,| and| to) \d+\.\d+)*)"
    r"|mathematics\.md#(?:section|equation)-(\d+(?:-\d+)?)"
)
BARE = re.compile(r"(?<=\s)\((\d+\.\d+)\)")
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.js"), *(ROOT / "tests").rglob("*.py")])


def printed() -> dict[str, str]:
    """Every formula of the page by its number, in LaTeX, its spaces made single."""
    blocks = re.findall(r"^\$\$(.*?)\$\$$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = {}
    for block in blocks:
        text, number = re.fullmatch(r"(.*\S) \\tag\{(\d+\.\d+)\}", " ".join(block.split())).groups()
        assert number not in found, number
        found[number] = text
    return found


def sections() -> list[str]:
    """Numbers of the sections, in order."""
    return re.findall(r"^## Section (\d+): ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def cited_in(path: Path) -> set[str]:
    """Numbers of sections and formulas that a file cites."""
    text = re.sub(r"\s*\n[ \t#/*]*", " ", path.read_text(encoding="utf-8"))
    groups = [number for match in CITED.findall(text) for number in match if number]
    if path.suffix == ".py" or path == PAGE:
        groups += BARE.findall(text)
    return {number.replace("-", ".") for group in groups for number in re.findall(r"\d+(?:[.-]\d+)?", group)}


@pytest.mark.parametrize("path", [p for p in (*SOURCES, *PAGES) if cited_in(p)], ids=lambda p: p.name)
def test_what_is_cited_is_there(path):
    assert cited_in(path) <= {*sections(), *printed()}


def test_citations_are_found():
    found = {"/".join(p.parts[-2:]): cited_in(p) for p in (*SOURCES, *PAGES)}
    assert found["two_sided_geometric/poisson.py"] >= {"2.1", "2.2", "2.3", "2.4"}
    assert found["inference/em.py"] == {"12", "12.4", "13.9"}
    assert found["two_sided_geometric/noise.py"] == {"2.2", "2.3", "2.5", "2.6", "3.2", "12.5"}
    assert found["data/observations.py"] == {"3.1", "2.5"}
    assert found["docs/mathematics.md"] >= {"2.5", "2.6", "3.3"}


def test_formulas_are_in_order_and_have_an_anchor():
    text = PAGE.read_text(encoding="utf-8")
    found = [tuple(map(int, number.split("."))) for number in printed()]
    assert found == sorted(found)
    for section, part in found:
        assert part == 1 or (section, part - 1) in found
        place = text.index(f"\\tag{{{section}.{part}}}$$\n")
        assert re.findall(r"^## Section (\d+)", text[:place], re.MULTILINE)[-1] == str(section)
        anchors = re.findall(r"^\((equation-.*)\)=$", text[:place], re.MULTILINE)
        assert anchors[-1] == f"equation-{section}-{part}"
    assert len(re.findall(r"^\(.*\)=$", text, re.MULTILINE)) == text.count("$$") / 2 == len(found)


def test_every_formula_has_a_check_and_every_check_a_formula():
    assert set(CHECKS) == set(printed())


@pytest.mark.parametrize("number", CHECKS)
def test_a_check_is_of_the_formula_as_it_is_printed(number):
    assert " ".join((CHECKS[number].__doc__ or "").split()) == printed()[number]


@pytest.mark.parametrize("number", CHECKS)
def test_formula(number):
    CHECKS[number]()
