"""The figures and statements of the page about what is protected."""

import random
import re
from fractions import Fraction

import numpy as np
import pytest

import countveil as cv
from countveil.privacy import gaussian_noise, promise
from tests.pages import DOCS

TEXT = " ".join((DOCS / "explanation.md").read_text(encoding="utf-8").split())
LEVEL = cv.PrivacyLevel(epsilon=1, precision=1)


@pytest.mark.parametrize(
    "subject",
    ["Totals of a text", "Repeated releases", "A choice among several reports", "The level", "The order of rows"],
)
def test_what_is_not_covered_has_a_paragraph(subject):
    assert TEXT.count(f"**{subject}.**") == 1


def test_replacing_a_word_costs_two():
    before, after = np.array([5, 0]), np.array([0, 5])
    assert np.abs(before - after).sum() == 2 * 5
    assert cv.PrivacyLevel(epsilon=1, precision=10).epsilon_at(10) == 1
    assert "replacing a word by another costs 2" in TEXT
    assert 'To hide that "budget" was written five times in place of "party" takes N = 10.' in TEXT


def test_the_noise_on_the_length_of_a_text():
    one = LEVEL.mechanism.standard_deviation
    assert f"a standard deviation of {one:.1f}; on the sum of 1,000 counts it has one of {one * 1000**0.5:.0f}." in TEXT
    assert (900 - 300) / (one * 1000**0.5) > 10  # told apart nearly always
    assert 50 / (one * 1000**0.5) < 1.2  # hard to see
    assert LEVEL.epsilon_at(600) == 600


def test_the_chance_of_a_count_that_comes_out_unchanged():
    unchanged = (1 - LEVEL.alpha) / (1 + LEVEL.alpha)
    assert f"unchanged in {unchanged:.0%} of all draws" in TEXT
    assert f"at least once in ten draws in {1 - (1 - unchanged) ** 10:.1%} of cases" in TEXT


def test_guesses_between_two_sets_of_counts():
    chances = [np.exp(e) / (1 + np.exp(e)) for e in (1, 2, 3, 5)]
    one, *others = (f"{chance:.0%}" for chance in chances)
    assert "{} for epsilon = 1, {} for 2, {} for 3, {} for 5".format(one, *others) in TEXT
    at_ten = 1 - promise.wrong_guesses(Fraction(1, 10), 10)
    assert f"{at_ten:.0%} for epsilon = 1 at N = 10" in TEXT
    shares = [1 - promise.wrong_guesses_of_rho(rho) for rho in (Fraction(1, 8), Fraction(1, 2))]
    assert "is right in {:.0%} of cases for rho = 1/8, and in {:.0%} for 1/2".format(*shares) in TEXT


@pytest.mark.parametrize("column", [2, 3, 4])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_up_to_which_numbers_a_level_has_its_name(row, column):
    """The number in the table is the last of two digits after the point that has the name."""
    name = ("strong", "moderate", "weak")[row]
    line = re.search(rf"\| {name} \|[^\n]*", (DOCS / "explanation.md").read_text(encoding="utf-8"))[0]
    stated = Fraction(line.strip("| ").split(" | ")[column].removeprefix("up to "))
    strength = {
        2: lambda epsilon: promise.strength(epsilon, Fraction(1)),
        3: lambda epsilon: promise.strength(epsilon, Fraction(10)),
        4: promise.strength_of_rho,
    }[column]
    assert strength(stated) == name != strength(stated + Fraction(1, 100))


def test_how_much_the_random_bytes_of_gaussian_noise_show():
    """The page draws as ``gaussian_noise.sample`` does, bit for bit."""
    rng, used = random.Random(1), 0

    def entropy(size):
        nonlocal used
        used += size
        return rng.randbytes(size)

    found = []
    for _ in range(20_000):
        used = 0
        found.append((abs(gaussian_noise.sample(Fraction(4), entropy)), used))
    noise, taken = np.array(found).T
    correlation = float(re.search(r"a correlation of (0\.\d+) at sigma = 2", TEXT)[1])
    assert taken[noise == 6].mean() > taken[noise == 0].mean() + 10
    assert abs(np.corrcoef(noise, taken)[0, 1] - correlation) < 0.03


def test_privatize_keeps_the_order_of_rows():
    counts = np.diag([10**6, 2 * 10**6, 3 * 10**6])
    reports = np.asarray(cv.privatize(counts, LEVEL).reports)
    assert reports.argmax(axis=1).tolist() == [0, 1, 2]
    assert (np.diff(reports.max(axis=1)) > 0).all()
