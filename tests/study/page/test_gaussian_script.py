"""The page's discrete Gaussian noise: the same from the same bytes as the package's, and its exact law.

Tests of the system's entropy may raise a false alarm, with probability ``statistics.CRITICAL`` for each statistic.
"""

import base64
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from countveil.privacy import PrivacyLevel, gaussian_noise, report, study
from countveil.privacy.mechanisms import DiscreteGaussian
from countveil.study.audit import statistics
from countveil.study.audit.statistics import GaussianLaw
from countveil.study.page import page
from tests.study.page import browser as b
from tests.study.page.offices import TEXT, planned
from tests.study.page.scripts import TWINS, node

pytestmark = pytest.mark.long

VARIANCES = [
    *(Fraction(1, 400), Fraction(9, 100), Fraction(1), Fraction(4), Fraction(2500)),
    *(Fraction(10**39 + 7, 3 * 10**38 + 1), Fraction(2**80)),
]
RHOS = [Fraction(2), Fraction(1, 8), Fraction(1, 1000)]
DRAWS = 50_000
DRAWN = """
  const own = (size) => { const bytes = new Uint8Array(size); globalThis.crypto.getRandomValues(bytes); return bytes; };
  return new GaussianSampler(fraction(given.variance)).draw(given.size, own).map(String);
"""


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_the_same_bytes_give_the_same_noise(variance):
    content, place = random.Random(7).randbytes(400_000), 0

    def entropy(size):
        nonlocal place
        place += size
        return content[place - size : place]

    own = [gaussian_noise.sample(variance, entropy) for _ in range(1000)]
    assert len(content) > place + 8192  # the page takes bytes ahead
    code = "return new GaussianSampler(fraction(given.variance)).draw(1000, stream(given.bytes));"
    told = {"variance": str(variance), "bytes": base64.b64encode(content).decode()}
    assert [int(value) for value in node(code, told)] == own


def test_whole_numbers_below_a_bound_and_roots():
    bounds = [1, 2, 3, 7, 255, 256, 257, 2**31, 2**32 + 1, 10**30]
    content = random.Random(8).randbytes(65536)
    code = """const bytes = few(stream(given.bytes));
      return given.bounds.map((below) => Array.from({ length: 50 }, () => uniform(BigInt(below), bytes)));"""
    place = 0

    def entropy(size):
        nonlocal place
        place += size
        return content[place - size : place]

    own = [[gaussian_noise.uniform(below, entropy) for _ in range(50)] for below in bounds]
    told = {"bounds": [str(below) for below in bounds], "bytes": base64.b64encode(content).decode()}
    assert [[int(x) for x in some] for some in node(code, told)] == own
    squares = [n * n + d for n in (1, 2, 3, 10**9, 2**40, 3**60) for d in (-1, 0, 1)]
    roots = node("return given.map((value) => rootOf(BigInt(value)));", [str(n) for n in squares])
    assert [int(root) for root in roots] == [*map(math.isqrt, squares)]
    lengths = node("return given.map((value) => bitLength(BigInt(value)));", [str(n) for n in squares])
    assert lengths == [n.bit_length() for n in squares]


def answers(draws, rho):
    """p-values: the whole law, the mean size of noise, and its two sides."""
    law = GaussianLaw(DiscreteGaussian.keeping(rho))
    seen = statistics.histogram([draws], law, len(draws))
    return {
        "law": statistics.chi_square(seen, law),
        "size": statistics.magnitude(seen, law),
        "sides": statistics.one_sidedness(seen),
    }


def drawn(rho, code=TWINS, variance=None):
    told = {"variance": str(variance or 1 / (2 * rho)), "size": DRAWS}
    return np.array([int(value) for value in node(DRAWN, told, code)])


@pytest.mark.parametrize("rho", RHOS, ids=str)
def test_draws_follow_the_law(rho):
    found = answers(drawn(rho), rho)
    assert min(found.values()) > statistics.CRITICAL, found


FAULTS = {
    "numbers by their remainder": ("    if (found < below) return found;", "    return found % below;"),
    "zero with two signs": ("if (magnitude || !negative) return", "return"),
    "nothing rejected": ("if (!bernoulliExp(reduced(distance", "if (false && !bernoulliExp(reduced(distance"),
    "Laplace noise without its rest": ("if (!bernoulliExp(reduced(rest, scale), bytes)) continue;", ""),
    "runs of odd length": ("return tries % 2n === 1n;", "return tries % 2n === 0n;"),
    "a sign that is lost": ("return negative ? -magnitude : magnitude;", "return magnitude;"),
}


@pytest.mark.parametrize("name", [*FAULTS, "the noise of a rho 10% away"])
def test_planted_faults_are_found(name):
    rho = Fraction(1, 8)
    right, wrong = FAULTS.get(name, ("", ""))
    assert TWINS.count(right) == 1 or not right
    scale = 1 if right else Fraction(10, 11)
    code = TWINS.replace(right, wrong) if right else TWINS
    if name == "runs of odd length":  # draws nearly no end of it: a few are enough
        code = code.replace(
            "draw(size, entropy) {\n    const bytes", "draw(size, entropy) {\n    size /= 20;\n    const bytes"
        )
    found = answers(drawn(rho, code, scale / (2 * rho)), rho)
    assert min(found.values()) < statistics.CRITICAL, found


COUNTING = """
  window.asked = { chance: 0, bytes: 0 };
  const chance = Math.random, values = crypto.getRandomValues.bind(crypto);
  Math.random = () => { window.asked.chance++; return chance(); };
  Crypto.prototype.getRandomValues = (bytes) => { window.asked.bytes += bytes.byteLength; return values(bytes); };
"""


def test_the_page_of_a_study_of_rho_draws_from_the_system_and_makes_the_package_s_reports(tmp_path):
    levels = [PrivacyLevel.zcdp("0.125"), PrivacyLevel.zcdp("200")]
    made = planned("Squares", levels=levels, truncated=False)
    path = tmp_path / "rho.html"
    path.write_text(page(made), encoding="utf-8")
    with b.browser(tmp_path) as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTING})
        b.opened(driver, path)
        before = b.evaluated(driver, "window.asked.bytes")
        shown = b.report_of(driver, TEXT, "noisy")
        found = report.decode(shown, made, "shown")
        assert found.level == levels[0]
        assert report.encode(found, made) == shown
        assert b.evaluated(driver, "window.asked.bytes") - before == 4096
        assert b.evaluated(driver, "window.asked.chance") == 0
        b.chosen(driver, 1)
        exact = report.decode(b.report_of(driver, TEXT, "quiet"), made, "quiet")
        assert exact.values == study.counting.count_text(TEXT, made.labels[0]).values
        assert "adds up to rho 200 for one unit in one cell" in b.at(driver, "made").text
