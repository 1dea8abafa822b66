"""Rules one after another against counts that are treated one by one."""

import math
from fractions import Fraction

import numpy as np
import pytest

import countveil as cv
from countveil.laws.noise.laws import law_of

m = cv.mechanisms
COUNTS = range(130)


def treated(value, rule):
    """{report: probability} of a value under one rule, None where it is hidden."""
    if value is None:
        return {None: Fraction(1)}
    if isinstance(rule, m.Suppression):
        return {None if rule.shows_zero <= value < rule.below else value: Fraction(1)}
    if isinstance(rule, m.TopCoding):
        return {min(value, rule.above): Fraction(1)}
    down, rest = divmod(value, rule.base)
    if isinstance(rule, m.RandomRounding):
        chance = Fraction(rest, rule.base)
        return {each: p for each, p in ((down * rule.base, 1 - chance), ((down + 1) * rule.base, chance)) if p}
    ends = {
        "nearest": math.floor(Fraction(value, rule.base) + Fraction(1, 2)) * rule.base,
        "even": round(Fraction(value, rule.base)) * rule.base,
        "down": down * rule.base,
        "up": math.ceil(Fraction(value, rule.base)) * rule.base,
        "midpoint": math.ceil(Fraction(value, rule.base)) * rule.base - rule.base // 2 * (value != 0),
    }
    return {ends[rule.to]: Fraction(1)}


def reports_of(count, rules):
    found = {count: Fraction(1)}
    for rule in rules:
        after = {}
        for value, p in found.items():
            for report, q in treated(value, rule).items():
                after[report] = after.get(report, 0) + p * q
        found = after
    return found


def rules_by_chance(seed):
    rng = np.random.default_rng(seed)
    kinds = [
        lambda: m.Suppression(int(rng.integers(2, 12)), bool(rng.integers(2))),
        lambda: m.Rounding(int(rng.integers(2, 13)), ["nearest", "even", "down", "up", "midpoint"][rng.integers(5)]),
        lambda: m.RandomRounding(int(rng.integers(2, 8))),
        lambda: m.TopCoding(int(rng.integers(3, 60))),
    ]
    return [kinds[rng.integers(4)]() for _ in range(rng.integers(1, 5))]


@pytest.mark.parametrize("seed", range(60))
def test_rules_in_order_are_those_of_counts_treated_one_by_one(seed):
    rules = rules_by_chance(seed)
    law = law_of(m.Composed(*rules) if len(rules) > 1 else rules[0])
    wanted = [reports_of(count, rules) for count in COUNTS]
    possible = set().union(*wanted)
    reports = np.array([math.nan, *range(100)])
    last = COUNTS[-1] - 45  # beyond, sources may be larger than all counts here
    broken = np.any([np.nan_to_num(b) for _, b in law.broken(reports)], axis=0)
    for report, refused in zip(reports, broken, strict=True):
        key = None if math.isnan(report) else int(report)
        has = [count for count in COUNTS if key in wanted[count]]
        if key is not None and key <= last:
            assert refused == (key not in possible)
        if not has or refused or (key is not None and key > last):
            continue
        same = np.full(len(COUNTS), report)
        found = np.exp(law.log_kernel(same, np.array(COUNTS)))
        np.testing.assert_allclose(found, [float(each.get(key, 0)) for each in wanted], atol=1e-12)
        least, most = (int(end[0]) for end in law.support(same[:1]))
        assert (least, min(most, COUNTS[-1])) == (has[0], has[-1])
        smaller = [sum(p for r, p in each.items() if r is None or r < report) for each in wanted]
        below = [0.0 if key is None else float(p) for p in smaller]
        np.testing.assert_allclose(law.less(same, np.array(COUNTS)), below, atol=1e-12)
        top = law.peak(same[:1])
        assert law.log_kernel(same[:1], top)[0] >= np.log(found.max()) - 1e-9
        inside = found[least : min(most, COUNTS[-1]) + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(inside)
            concave = bool(np.isfinite(logs).all() and (np.diff(logs, 2) <= 1e-9).all())
        assert law.concave(same[:1])[0] == concave


def test_tables_that_are_too_large_are_refused():
    law = law_of(m.Composed(m.RandomRounding(100_000), m.Suppression(100_000)))
    with pytest.raises(ValueError, match="rules are too coarse together: their tables of probabilities would need "):
        law.pieces(np.arange(1, 100) * 100_000.0)
