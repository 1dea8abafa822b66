"""The whole script of the page in node, with hostile studies and inputs: nothing breaks, and every report is read."""

import json
import os
from pathlib import Path

import pytest

from countveil.privacy import counting, report, study
from countveil.privacy.errors import RefusedError
from countveil.study.page import page
from countveil.study.page.write import SCRIPTS
from tests.study.page import fuzzing
from tests.study.page.scripts import HERE, node_async

pytestmark = pytest.mark.long

HOW_MANY = int(os.environ.get("COUNTVEIL_MUTATIONS", "2000"))
STUDIES = 24
OPENED_AGAIN = 60
"""This many inputs are tried before the page is opened anew, with an empty ledger."""
SEEDS = json.loads((Path(__file__).parent / "cases" / "seeds.json").read_text())
"""Inputs that failed once, and are tried each time: [study, input] and what was wrong."""
DOM = (Path(__file__).parent / "dom.js").read_text()
USED = """
  const wrong = [], answers = [];
  process.on("unhandledRejection", (error) => wrong.push(String(error.stack)));
  process.on("uncaughtException", (error) => wrong.push(String(error.stack)));
  const fetched = async () => ({ ok: true, text: async () => "" });
  for (const { study, inputs } of given.groups) {
    let page = null, left = 0;
    for (const asked of inputs) {
      try {
        if (!left || !page.at("end").hidden) { page = await opened(given.pages[study], fetched); left = given.again; }
        left--;
        answers.push(await used(page, asked));
      } catch (error) {
        answers.push({ said: [], uncaught: String(error.stack) });
        left = 0;
      }
    }
  }
  await idle();
  return { wrong, answers };
"""


@pytest.fixture(scope="module")
def studies():
    found = {number: fuzzing.studied(number) for number in range(STUDIES)}
    kept = {number: made for number, made in found.items() if made is not None}
    assert len(kept) > STUDIES / 2
    return kept


def in_node(studies, pairs, fault=None):
    """What the page did for each (study, input), in one node process; ``fault`` is what to put for what."""
    pages = {}
    for number in sorted({number for number, _ in pairs}):
        tree = fuzzing.tree(page(studies[number]))
        _, script = [node[2][0] for node in walked(tree) if node[0] == "script"]
        pages[number] = {"tree": tree, "script": script.replace(*fault) if fault else script}
    groups = [
        {"study": number, "inputs": [fuzzing.asked(seed, studies[number]) for other, seed in pairs if other == number]}
        for number in pages
    ]
    found = node_async(USED, {"pages": pages, "groups": groups, "again": OPENED_AGAIN}, DOM)
    order = [(number, seed) for number in pages for other, seed in pairs if other == number]
    return found["wrong"], dict(zip(order, found["answers"], strict=True))


def walked(node):
    yield node
    for child in node[2]:
        if not isinstance(child, str):
            yield from walked(child)


def faults(under, answer):
    """What is wrong with what the page did; None if nothing."""
    if "uncaught" in answer:
        return answer["uncaught"]
    if any("Something went wrong" in said for said in answer["said"]):
        return answer["said"]
    own = counted(under, answer)
    if answer["form"] != "cells" and answer["counted"] != (own is not None):
        return f"counted on one side alone: {answer['said']}"
    if answer["report"] is None:
        return None
    try:
        made = report.decode(answer["report"].encode(), under, "fuzz")
    except RefusedError as error:
        return str(error)
    quiet = made.level in (fuzzing.QUIET, fuzzing.QUIET_RHO)
    if quiet and own is not None and not answer["again"] and made.values != own.values:
        return f"counted otherwise: {made.values}, {own.values}"
    return None


def counted(under, answer):
    """What the command counts of the same record, or None where it refuses it, or the page did not read it."""
    text = answer["record"]
    try:
        if answer["form"] == "cells":
            return None
        if answer["form"] == "text":
            text.encode()
            return counting.count_text(text, under.labels[0])
        form = "json" if text.removeprefix("\ufeff").lstrip(" \t\n\r").startswith("{") else "csv"
        return counting.count(text.encode(), form, under.labels, "it")
    except (RefusedError, UnicodeEncodeError):
        return None


def test_hostile_inputs_break_nothing_and_every_report_is_read(studies):
    numbers = [*studies]
    pairs = [(numbers[seed % len(numbers)], seed) for seed in range(HOW_MANY)]
    pairs += [(study_number, seed) for study_number, seed, _ in SEEDS if study_number in studies]
    wrong, answers = in_node(studies, [*dict.fromkeys(pairs)])
    assert not wrong, wrong[:3]
    found = {pair: faults(studies[pair[0]], answer) for pair, answer in answers.items()}
    found = {pair: fault for pair, fault in found.items() if fault}
    assert not found, ascii([*found.items()][:5])
    reports = sum(answer["report"] is not None for answer in answers.values())
    assert reports > 0.2 * len(answers)
    assert sum(answer.get("done", False) for answer in answers.values()) > 0.01 * len(answers)


def test_what_a_study_says_is_text_and_never_markup(studies):
    for made in studies.values():
        options = {"kind": made.kind, "address": made.address, "truncated": made.truncated}
        plain = study.new("Mail", "To learn.", "a@b.org", made.levels, made.axes, **options)
        assert fuzzing.shape(fuzzing.tree(page(made))) == fuzzing.shape(fuzzing.tree(page(plain)))


def test_no_script_makes_markup_of_text():
    scripts = "".join((HERE / name).read_text() for name in SCRIPTS)
    for markup in ("HTML", "srcdoc", "document.write", "DOMParser", "createContextualFragment", "eval(", "Function("):
        assert markup not in scripts


PLANTED = [
    ('return make("p", { className }, text);', 'const p = make("p"); p.innerHTML = text; return p;'),
    ('at("typed").hidden = form === "cells";', 'if (form === "counts") throw new TypeError("planted");'),
    ("const positive = counts", "const positive = counts.first"),
    ("TextEncoder().encode(body))", "TextEncoder().encode(body + 1))"),
    ("const noisy = count + noise[i];", "const noisy = count + noise[i] + (count ? 1n : 0n);"),
    ('file.name) && formOf() === "text";', "file.name) && file.name.missing.length;"),
]


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_found(studies, fault):
    assert fault[0] in "".join((HERE / name).read_text() for name in SCRIPTS)
    number = next(iter(studies))
    wrong, answers = in_node(studies, [(number, seed) for seed in range(0, 3000, 30)], fault)
    assert wrong or any(faults(studies[number], answer) for answer in answers.values())
