"""Covariates on the page: the rules and words of the command, and what a person sees of them."""

import random

import axe_core_python
import pytest

from countveil.privacy import PrivacyLevel, report
from countveil.privacy._covariates import Covariate, given, spelt
from countveil.study.page import page, strings
from tests.study.page import browser as b
from tests.study.page.fuzzing import HOSTILE
from tests.study.page.offices import TEXT, planned
from tests.study.page.scripts import TWINS, node
from tests.study.page.test_browser import looked_at

pytestmark = pytest.mark.long

ASKED = [
    Covariate("party", ("D", "R", 'no "party", so far')),
    Covariate("age", (), "18", "120"),
    Covariate("participant", (), "-0.5"),
    Covariate("reports", (), None, "0"),
    Covariate("constructor"),
    Covariate("many", tuple(f"value {n}" for n in range(1000))),
    Covariate("long", tuple(f"{n}{'é' * 150}" for n in range(3))),
]
WRITTEN = [
    *("", " ", "0", "-0", "-0.0", "+042.0", "007", "5.", ".5", "-.5", "18", "17.999999", "120.0000001", "120", "1e2"),
    *("0x12", "-0.5", "-0.500001", "123456789", "1234567890", "0.000001", "0.0000001", "4,5", "½", "٣", "4 2", "+"),
    *("\u00a042\u2003", "D", "d", " R ", 'no "party", so far', "value 999", "value 1000", "--1", "1.2.3"),
    *("0" * 5000 + "1", "1." + "0" * 5000, "1." + "0" * 5000 + "1"),
]  # fmt: skip
SAY = """const say = (key, values = {}) =>
  given.strings[key].replace(/\\{([a-z]+)\\}/g, (whole, place) => String(values[place] ?? whole));"""


def texts():
    generator = random.Random(4)
    digits = ["".join(generator.choices("0123456789.-+", k=generator.randrange(9))) for _ in range(1500)]
    return [*WRITTEN, *HOSTILE, *digits]


def own(covariate, text):
    """What the command makes of it: the value, or None and the rule without what it got."""
    try:
        return [given((covariate,), [f"{covariate.name}={text}"])[0], None]
    except ValueError as error:
        return [None, str(error).rpartition(", got ")[0]]


def test_values_are_read_and_refused_as_by_the_command():
    code = """const rules = (one, { key, values }) =>
        key === "covariate_missing" ? "" : `covariate ${one.name} ${values.rule}`;
      return given.covariates.map((one) => given.texts.map((text) => {
        try { return [statedAs([one], [text])[0], null]; } catch (error) { return [null, rules(one, error)]; }
      }));"""
    told = {"covariates": [each.to_json() for each in ASKED], "texts": texts(), "strings": strings()}
    for covariate, found in zip(ASKED, node(code, told, TWINS + SAY), strict=True):
        for text, got in zip(texts(), found, strict=True):
            wanted = own(covariate, text)
            if got[1] == "":  # where nothing was entered, the page says that something must be
                assert not text.strip()
                assert wanted[0] is None
            else:
                assert got == wanted, (covariate.name, ascii(text))
    assert node("return given.texts.map(spelt);", told, TWINS + SAY) == [spelt(text) for text in texts()]


@pytest.mark.parametrize(
    "fault",
    [
        ("number >= millionths(lowest)", "number > millionths(lowest)"),
        ('part.padEnd(6, "0")', "part"),
        ("values.includes(value)", "value in values"),
        ("(total += length(value))", "(total += 2 * length(value))"),
    ],
)
def test_planted_faults_are_found(fault, monkeypatch):
    assert TWINS.count(fault[0]) == 1
    monkeypatch.setattr("tests.study.page.test_covariates_script.TWINS", TWINS.replace(*fault))
    with pytest.raises(AssertionError):
        test_values_are_read_and_refused_as_by_the_command()


STATED = """const fields = document.querySelectorAll("#stated select, #stated input");
  arguments[0].forEach((value, i) => {
    fields[i].value = value;
    fields[i].dispatchEvent(new Event("input", { bubbles: true }));
  });"""


def make(driver):
    """Makes the report, and returns its bytes, or None with what the page says instead."""
    driver.execute_script("document.getElementById('made').replaceChildren()")
    b.press(driver, "make")
    return b.shown_report(driver)


def test_a_person_states_covariates_and_sees_that_they_are_handed_over(tmp_path):
    made = planned("Asked", covariates=ASKED[:3], levels=[PrivacyLevel(1, 10)])
    path = tmp_path / "asked.html"
    path.write_text(page(made), encoding="utf-8")
    with b.browser(tmp_path) as driver:
        b.opened(driver, path)
        main = driver.find_element("tag name", "main").text
        assert "Unprotected, sent without noise" in main
        assert "age: a number from 18 to 120. Unprotected: the report contains it as you state it." in main
        b.entered(driver, "record", TEXT)
        b.press(driver, "count")
        assert make(driver) is None
        assert b.said(driver) == 'party: please state one of D, R, no "party", so far.'
        driver.execute_script(STATED, ["R", "17", "+2.50"])
        assert make(driver) is None
        assert b.said(driver).startswith("age: must be a number from 18 to 120, a decimal of at most 9")
        assert b.stored(driver) == []
        driver.execute_script(STATED, ["R", "042", "+2.50"])
        first = make(driver)
        found = report.decode(first, made, "shown")
        assert found.covariates == ("R", "42", "2.5")
        assert report.encode(found, made) == first
        said = b.at(driver, "made").text
        assert "Unprotected, sent without noise: party=R, age=42, participant=2.5." in said
        assert f"random token {found.participant}" in said
        driver.execute_script(STATED, ["D", "42", "2.5"])
        assert b.at(driver, "made").text == ""
        second = make(driver)
        assert second == report.encode(found._replace(covariates=("D", "42", "2.5")), made)
        assert b.stored(driver) == [second.decode()]
        assert b.downloaded(driver, tmp_path) == second
        assert driver.execute_script("return document.getElementById('stated').childElementCount") == 0
        b.opened(driver, path)
        b.entered(driver, "record", TEXT)
        b.press(driver, "count")
        driver.execute_script(STATED, ["R", "42", "2.5"])
        assert make(driver) is None
        assert "was sent with party=D, age=42, participant=2.5. State the same" in b.said(driver)
        driver.execute_script(STATED, ["D", "42.0", "2.5"])
        assert make(driver) == second


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_nothing_serious_for_a_screen_reader_with_covariates_and_a_rho(tmp_path, width, dark):
    source = next(iter(axe_core_python.__path__)) + "/axe.min.js"
    levels = [PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp("50")]
    made = planned("Squares", covariates=ASKED, levels=levels, truncated=False)
    path = tmp_path / "squares.html"
    path.write_text(page(made), encoding="utf-8")
    with b.browser(tmp_path, width, dark) as driver:
        b.opened(driver, path)
        driver.execute_script(STATED, ["R", "42", "0", "0", "1", "value 7", ASKED[6].values[0]])
        b.report_of(driver, TEXT)
        driver.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
        looked_at(driver, source, f"rho-{width}-{'dark' if dark else 'light'}", width)
