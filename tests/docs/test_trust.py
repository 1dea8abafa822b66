"""The page on trusting a fit: every state and every sentence of a verdict is on it, with the bounds of the code."""

import re
from pathlib import Path

import pytest

from countveil.data.mechanism_checks import MechanismState
from countveil.inference import diagnostics
from countveil.inference.diagnostics import State
from tests.pages import DOCS, ROOT

TEXT = (DOCS / "trust.md").read_text(encoding="utf-8")
BEGINNINGS = {
    "src/countveil/inference/diagnostics.py": [
        "Too few draws", "One chain only", "the chains agree (", "the chains agree roughly",
        "Safe to report with support: ",
        "Not safe yet", "largely undetermined", "The {many} cannot be found",
        "Not safe yet: the fit expects", "no more positive reports than noise alone makes", "Converged", "Stopped",
    ],
    "src/countveil/data/mechanism_checks.py": [
        "The reports contradict ", "have the same reports in all", "The stated totals contradict the reports",
        "is consistent with the reports", "cannot be checked",
    ],
    "src/countveil/fit/predictive_checks.py": [
        "Simulated releases differ", "Simulated tables differ",
        "The fit does not explain how far the reports are spread", "The fit does not explain the sums of its reports",
        " does not fit: its reports add up to ", "Sums of many counts are slightly off: ",
    ],
    "src/countveil/fit/results.py": [
        "This fit treats the reports as true counts", "This verdict does not compare the fit with its reports",
    ],
    "src/countveil/fit/totals.py": [
        "The sum of the true counts is too high", "The sum of the true counts falls short",
        "Too little data: ",
    ],
}  # fmt: skip
ON_PAGE = {
    "the chains agree (": "the chains agree |",
    "The {many} cannot be found": "The topics cannot be found",
    "is consistent with the reports": "consistent with the reports",
    "have the same reports in all": "have the same reports",
    "Simulated releases differ": "Simulated releases differ from the real one in",
    "Simulated tables differ": "Simulated tables differ from the real one in",
    " does not fit: its reports add up to ": "does not fit: its reports add up to ...",
    "The sum of the true counts is too high": "The sum of the true counts falls short, or is too high",
}


@pytest.mark.parametrize("path", BEGINNINGS)
def test_every_sentence_of_a_verdict_is_explained(path):
    source = Path(ROOT / path).read_text(encoding="utf-8")
    for words in BEGINNINGS[path]:
        assert words in source, words
        assert ON_PAGE.get(words, words.strip(" :")) in TEXT, words


@pytest.mark.parametrize("state", [*State, *MechanismState], ids=lambda state: state.name)
def test_every_state_has_a_row(state):
    assert re.search(rf"^\| {re.escape(state.value)}\b", TEXT, re.MULTILINE), state.value


def test_the_bounds_are_those_of_the_code():
    assert f"R-hat of rates, totals and dispersions is at most {diagnostics.R_HAT_FAIR} |" in TEXT
    assert f"nested R-hat at most {diagnostics.R_HAT_NESTED})" in TEXT
    assert f"R-hat at most {diagnostics.R_HAT_GOOD} and at least {diagnostics.ESS_GOOD} effective draws" in TEXT
    assert f"less than {diagnostics.ERRORS_OF_SIGNAL:g} standard errors above zero" in " ".join(TEXT.split())
    assert diagnostics.MIN_DRAWS == 4
    assert "fewer than four draws" in TEXT
