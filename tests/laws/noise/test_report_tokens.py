"""Counts by proposed tokens have the law that sums over all counts give them, whatever the report."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from countveil.inference import report_tokens
from countveil.kernels.entries import Entries
from countveil.kernels.report_kernels import RATIO
from countveil.kernels.window_law import WindowLaw
from countveil.laws.counts import POISSON, NegativeBinomial
from countveil.laws.noise import report_tokens as kernels
from tests import reference
from tests.laws.noise.codes import kernels_of_reports
from tests.laws.noise.laws import CASES, log_mass

pytestmark = pytest.mark.long

NAN, REPEATS, ALL = math.nan, 1000, 1e9
REPORTS = {
    "discrete": 0,
    "random rounding": 0,
    "rounding": 0,
    "suppression of zeros": NAN,
    "cut geometric": NAN,
    "Laplace": -3.5,
}
THETA, PHI = np.array([[0.7, 0.3]]), np.array([[2.0, 1.0], [1.0, 1.0], [5.0, 0.0]])
ZERO, MASKED = 0, -1


def draws(name, rate, p=None, dispersion="global", worth=ALL, looked_up=False, given=None, repeats=REPEATS):
    """(counts, parts, parts of the first topic) of a cell; beside it are one that is zero and one that is masked."""
    noise = kernels_of_reports(CASES[name][0], [REPORTS[name] if given is None else given])
    likelihood = POISSON if p is None else NegativeBinomial(dispersion)
    parameters = () if p is None else (np.full(3 if dispersion == "column" else 1, p),)
    law = WindowLaw(noise, likelihood.counts if p is None else likelihood.counts_given(parameters))
    code, ratio = np.array([1]), noise.real_cj[1:, RATIO]
    keep = np.empty((1, 8))
    kernels.fill_keeping(noise, code, ratio, keep)
    place = np.zeros(3, dtype=np.int64)
    codes = report_tokens.Codes(code, ratio, keep, np.empty(0, np.int64) if dispersion == "row" else place)
    phi = PHI * rate / (PHI[0] @ THETA[0])
    found = report_tokens.with_proposals(map, law, phi, (likelihood, parameters), codes)
    proposals = found[3]._replace(few=worth, many=worth)
    columns, reports = (
        ([0, 1, 2], [kernels.LOOKED_UP, ZERO, MASKED]) if looked_up else ([1, 2], [ZERO, MASKED])
    )
    one = np.ones(1)
    entries = Entries(np.array([0, len(columns)]), np.array(columns, np.int32), np.array(reports, np.int32),
                      np.empty(0), one, one)  # fmt: skip
    rng, rows = np.random.default_rng([5, int(100 * rate)]), []
    unstored = np.full(1, kernels.NOT_PROPOSED if looked_up else 0)
    for _ in range(repeats):
        count_dk, count_vk, tally = (
            np.zeros((1, 2)),
            np.zeros((3, 2)),
            np.zeros(2 * len(parameters[0]) if p else 0),
        )
        sums = count_dk, count_vk, tally
        kernels.propose_rows(law, entries, (THETA, phi, phi.sum(axis=0)), proposals, unstored, sums, rng)
        assert count_dk[0].tolist() == count_vk[0].tolist()  # of this cell alone
        rows.append((tally[0] if p else count_dk.sum(), count_dk.sum(), count_dk[0, 0]))
    return np.array(rows, dtype=np.int64).T


def law_of_counts(name, rate, p):
    y = np.arange(3000)
    both = log_mass(y, rate, p)[0] + CASES[name][1](REPORTS[name], y)
    return np.exp(both - logsumexp(both))


WAYS = [
    (None, "global", ALL, False),
    (None, "global", ALL, True),
    (None, "global", 0.0, False),  # cells are visited
    (0.6, "global", ALL, False),
    (0.9, "column", ALL, False),
    (0.6, "row", ALL, False),
    (0.6, "row", 0.0, False),
]


@pytest.mark.parametrize(("p", "dispersion", "worth", "looked_up"), WAYS)
def test_counts_have_their_law(p, dispersion, worth, looked_up):
    p_values, wrong = [], []
    for name in REPORTS:
        for rate in (0.5, 4.0):
            law = law_of_counts(name, rate, p)
            counts, parts, first = draws(name, rate, p, dispersion, worth, looked_up)
            p_values.append(reference.chi_square_p_value(counts, 0, law))
            p_values.append(stats.binomtest(int(first.sum()), int(parts.sum()), 1.4 / 1.7).pvalue)
            if p is not None:
                p_values.append(parts_p_value(counts, parts, rate / -math.log1p(-p)))
            free = np.exp(log_mass(np.arange(3000), rate, p)[0])  # the negative control: without a report
            wrong.append(reference.chi_square_p_value(counts, 0, free))
    assert min(p_values) > 1e-5
    assert min(wrong) < 1e-9


def parts_p_value(counts, parts, s):
    """Of the mean number of bursts given counts, which is a sum of Bernoulli(s / (s + i)) each."""
    chances = [s / (s + np.arange(y)) for y in counts]
    mean = sum(c.sum() for c in chances)
    variance = sum((c * (1 - c)).sum() for c in chances)
    return 2 * stats.norm.sf(abs(parts.sum() - mean) / math.sqrt(variance))


@pytest.mark.parametrize(
    ("kept", "name", "rate", "repeats"),
    [(slice(None), "rounding", 4.0, REPEATS), (2, "random rounding", 1.5, 6000)],
    ids=["whatever the count", "of two"],
)
def test_the_law_shows_a_proposal_that_is_always_kept(kept, name, rate, repeats, monkeypatch):
    right, law = kernels.fill_keeping, law_of_counts(name, rate, None)

    def always(noise, code, ratio, keep):
        right(noise, code, ratio, keep)
        keep[:, kept] = 1.0

    counts, _, _ = draws(name, rate, repeats=repeats)
    assert reference.chi_square_p_value(counts, 0, law) > 1e-5
    monkeypatch.setattr(kernels, "fill_keeping", always)
    counts, _, _ = draws(name, rate, repeats=repeats)
    assert reference.chi_square_p_value(counts, 0, law) < 1e-9


def test_chances_are_those_of_the_kernel():
    for name, report in REPORTS.items():
        mechanism, kernel, _ = CASES[name]
        noise = kernels_of_reports(mechanism, [report])
        ratio, keep, y = noise.real_cj[1:, RATIO], np.empty((1, 30)), np.arange(30)
        kernels.fill_keeping(noise, np.array([1]), ratio, keep)
        logs = kernel(report, y)
        wanted = np.exp(logs - logs[0] - y * (logs[1] - logs[0]))
        np.testing.assert_allclose(keep[0], wanted, rtol=1e-9, atol=1e-300)
        assert (keep <= 1.0).all()
