"""Names of records on the page: by the same table of cases as the command, and the same for any character."""

import json
import sys
import unicodedata
from pathlib import Path

from countveil.privacy import names
from tests.page.scripts import HERE, TWINS, node

CASES = json.loads((Path(__file__).parent / "cases" / "names.json").read_text())
LEDGER = TWINS + (HERE / "ledger.js").read_text()
NAMED = """return given.map((name) => {
  try { return normalised(name); } catch (error) { if (error.key !== "no_name") throw error; return null; } });"""


def test_names():
    found = node(NAMED, [name for name, _ in CASES], LEDGER)
    assert dict(zip([name for name, _ in CASES], found, strict=True)) == dict(CASES)


def test_names_with_every_character():
    """Those that node may know and this Python does not, or the reverse, are left out."""
    code = r"""const skipped = /\p{Cn}/u; return given.map((name) => skipped.test(name) ? "" : normalised(name));"""
    codes = [c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    asked = [f"a{chr(c)} b" for c in codes]
    wrong = [
        (text, got)
        for text, got in zip(asked, node(code, asked, LEDGER), strict=True)
        if got and got != names.normalised(text)
    ]
    assert not wrong, ascii(wrong[:5])


def test_nothing_that_unicode_lets_programs_ignore_makes_another_name():
    code = r"""const wrong = [], ignored = /\p{Default_Ignorable_Code_Point}/u;
    for (let c = 0; c <= 0x10ffff; c += 1) {
      const each = String.fromCodePoint(c);
      if (ignored.test(each) && normalised("a" + each + "b") !== "ab") wrong.push(c);
    }
    return wrong;"""
    assert node(code, None, LEDGER) == []
    assert all(names.normalised(f"a{chr(c)}b") == "ab" for c in range(0xE0000, 0xE1000))
