"""The noise of the page's own code in a browser: a million draws by the tests of the Python noise, and planted faults.

What asks for draws is told in chance.py, and which question finds which fault.
"""

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel
from countveil.privacy.noise import Sampler
from countveil.study.audit import statistics
from tests.study.page import browser as b
from tests.study.page import chance

pytestmark = pytest.mark.long

LEVELS = [PrivacyLevel(1, 10), PrivacyLevel(5, 10), PrivacyLevel(3, 1)]
MIDDLE = LEVELS[1].rate
SEEDED = ("--js-flags=--random-seed=7",)
"""Lets Math.random of every page begin with the same number."""


@pytest.fixture(scope="module")
def blank(tmp_path_factory):
    path = tmp_path_factory.mktemp("noise") / "blank.html"
    path.write_text("<title>Noise</title>")
    return path


@pytest.fixture(scope="module")
def driver(blank):
    with b.browser(blank.parent, flags=SEEDED) as opened:
        opened.get(blank.as_uri())
        yield opened


def drawn(driver, *told, **more):
    text = b.evaluated(driver, chance.code(*told, **more))
    return np.array([int(value) for value in text.split()], dtype=np.int64)


def answers(driver, blank, rate, fault, size=chance.SIZE):
    """The p-values of all questions; for one of them the page is opened again."""
    found = chance.verdict(drawn(driver, rate, fault, size), rate)
    found["deep"] = chance.deep(drawn(driver, rate, fault, size, deep=True), rate)
    some = []
    for _ in range(2):
        driver.get(blank.as_uri())
        some.append(drawn(driver, MIDDLE, fault, 50_000))
    return found | {"reuse": chance.reuse(np.concatenate(some))}


@pytest.mark.parametrize("level", LEVELS, ids=repr)
def test_a_million_draws_in_the_browser_follow_the_law(driver, blank, level):
    found = answers(driver, blank, level.rate, chance.FAULTS["none"])
    assert min(found.values()) > statistics.CRITICAL, found


@pytest.mark.parametrize("level", LEVELS, ids=repr)
def test_a_million_draws_in_python_pass_the_same(level):
    sampler = Sampler(level.rate)
    for draw, deep_bytes in ((sampler.draw, chance.deep_bytes), (sampler.draw_array, chance.deep_parts())):
        found = chance.verdict(np.array(draw(chance.SIZE, chance.system_bytes)), level.rate)
        found["deep"] = chance.deep(np.array(draw(chance.SIZE, deep_bytes)), level.rate)
        assert min(found.values()) > statistics.CRITICAL, found


@pytest.mark.parametrize("name", [name for name in chance.FAULTS if name != "none"])
def test_each_planted_fault_is_found_by_the_questions_that_can(driver, blank, name):
    fault = chance.FAULTS[name]
    found = answers(driver, blank, MIDDLE, fault, fault.size)
    assert chance.caught(found) == fault.seen, found


def test_every_question_finds_a_fault_and_every_fault_is_found():
    seen = [fault.seen for name, fault in chance.FAULTS.items() if name != "none"]
    assert all(seen)
    assert frozenset.union(*seen) == {"law", "tail", "large", "sides", "deep", "reuse"}


def test_answers_are_right_under_the_law():
    """p-values of deep draws made by NumPy from the law itself are small as seldom as they should be."""
    generator, rate = np.random.default_rng(3), float(MIDDLE)
    values = []
    for _ in range(200):
        words = generator.integers(0, 1 << (63 - chance.DEPTH), 20_000)
        uniform = (words + generator.random(words.size)) * 2.0**-63
        magnitudes = np.floor(np.log(uniform * (1 + np.exp(-rate)) / 2) / -rate).astype(np.int64)
        values.append(chance.deep(magnitudes, MIDDLE))
    assert 60 <= sum(value < 0.5 for value in values) <= 140
    assert min(values) > 1e-5
