"""The page's ledger against the command's: names of records, and what may be released under which limit."""

import json
import random
import sys
import unicodedata
from pathlib import Path

import pytest

from countveil.privacy import PrivacyLevel, ledger, names
from countveil.privacy.errors import LimitError
from tests.study.page.offices import planned
from tests.study.page.scripts import HERE, TWINS, node, node_async

CASES = json.loads((Path(__file__).parent / "cases" / "names.json").read_text())
LEDGER = TWINS + (HERE / "ledger.js").read_text()
NAMED = """return given.map((name) => {
  try { return normalised(name); } catch (error) { if (error.key !== "no_name") throw error; return null; } });"""


def test_names():
    found = node(NAMED, [name for name, _ in CASES], LEDGER)
    assert dict(zip([name for name, _ in CASES], found, strict=True)) == dict(CASES)


@pytest.mark.long
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


LEVELS = [PrivacyLevel(1, 10), PrivacyLevel("0.5", 1), PrivacyLevel(2, 10)]
OF_RHO = [PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp("0.5"), PrivacyLevel.zcdp("0.005")]
STUDIES = [
    planned("One", levels=LEVELS),
    planned("Two", levels=LEVELS[:2]),
    planned("Three", levels=OF_RHO, truncated=False),
]
LIMITS = [*LEVELS, PrivacyLevel(8, 10), *OF_RHO, PrivacyLevel.zcdp(2)]
REFUSALS = {
    "released_once": "this record must be released only once",
    "no_limit": "a limit must be set",
    "past_limit": "releases of one record must not exceed your limit, epsilon",
    "past_limit_rho": "releases of one record must not exceed your limit, rho",
    "limit_not_rho": "your limit must be in rho",
}
DOM = (Path(__file__).parent / "dom.js").read_text()
USED = """
  const answers = [], told = (error) => { if (!error.key) throw error; return error.key; };
  const own = (size) => { const bytes = new Uint8Array(size); globalThis.crypto.getRandomValues(bytes); return bytes; };
  const open = await Ledger.open(factory, own);
  let made = 0;
  for (const [kind, record, study, level, anew] of given) {
    try {
      if (kind === "limit") { await open.setLimit(level); answers.push("set"); continue; }
      const make = () => `report ${made++}`;
      const entry = await open.obtain(study, "title", record, level, make, ({ report }) => report, anew);
      answers.push(kind === "hand" ? await open.handOver(entry.number, entry.report) : entry.report);
    } catch (error) { answers.push(told(error)); }
  }
  return answers;
"""


def asked(seed):
    """What a person does, as (kind, record, study, level, anew)."""
    generator = random.Random(seed)
    for _ in range(60):
        if generator.random() < 0.15:
            yield "limit", None, None, generator.choice(LIMITS), False
            continue
        under = generator.choice(STUDIES)
        level = generator.choice(under.levels)
        anew = generator.random() < 0.5
        yield generator.choice(["make", "hand", "hand"]), generator.choice("ab"), under, level, anew


def by_the_command(path, seed):
    """What the command's ledger answers."""
    answers, made = [], iter(range(100))
    with ledger.Ledger(path) as opened:
        for kind, record, under, level, anew in asked(seed):
            try:
                if kind == "limit":
                    opened.set_limit(level)
                    answers.append("set")
                    continue
                entry = opened.obtain(under, record, level, lambda _: f"report {next(made)}".encode(), anew)
                answers.append((opened.hand_over(entry) if kind == "hand" else entry.report).decode())
            except LimitError as error:
                answers.append(next(key for key, said in REFUSALS.items() if str(error).startswith(said)))
    return answers


def by_the_page(seed, code=LEDGER):
    told = [
        (kind, record, under and under.id, {name: str(n) for name, n in level.numbers().items()}, anew)
        for kind, record, under, level, anew in asked(seed)
    ]
    return node_async(USED, told, code + DOM)


@pytest.mark.long
def test_both_ledgers_allow_and_refuse_the_same(tmp_path):
    seen = set()
    for seed in range(8):
        answers = by_the_command(tmp_path / f"{seed}.sqlite3", seed)
        assert by_the_page(seed) == answers, seed
        seen |= set(answers)
    assert set(REFUSALS) <= seen


def test_what_was_restated_is_not_handed_over_unseen():
    code = """const own = (size) => globalThis.crypto.getRandomValues(new Uint8Array(size));
      const open = await Ledger.open(factory, own), level = { epsilon: "1", precision: "10" };
      const make = (mend) => open.obtain("study", "title", "me", level, () => "one", mend, false);
      const first = await make(({ report }) => report), again = await make(() => "two");
      const refused = await open.handOver(first.number, first.report).catch((error) => error.key);
      const left = await open.handOver(again.number, again.report);
      const after = await make(({ report }) => report);
      return [again.report, refused, left, after.report, Boolean(after.gone)];"""
    found = node_async(code, None, LEDGER + DOM)
    assert found == ["two", "report_changed", "two", "two", True]


SUMMED = "if (isOfRho(limit)) return sumOf(levels, rhoOf);"
REFUSED = 'if (levels.some(isOfRho)) throw new Refused("limit_not_rho");'
FAULTS = [
    (SUMMED, SUMMED.replace("levels,", "levels.filter(isOfRho),")),
    (REFUSED, "levels = levels.filter((each) => !isOfRho(each));"),
    ("(anew || !gone.length ? kept : gone).at(-1)", "found.at(-1)"),
    ("{ num: 1n, den: 2n }, times(rateOf", "{ num: 1n, den: 1n }, times(rateOf"),
    ("x.rho === y.rho && ", ""),
]


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(tmp_path, fault):
    assert LEDGER.count(fault[0]) == 1
    wrong = LEDGER.replace(*fault)
    assert any(by_the_page(s, wrong) != by_the_command(tmp_path / f"{s}.sqlite3", s) for s in range(8))
