"""What each factor's update is told: its counts and exposures, against sums over every cell and every term."""

import numpy as np
import pytest
from scipy import special, stats

from countveil.data.observations import ExactCounts
from countveil.inference import ascent, factors, gibbs
from countveil.inference.factors import sampled_counts
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.kernels.random import SMALLEST
from tests.factorizations import CASES, alpha_of, as_matrix, mask_of, model_of, observe, rates_of
from tests.joint import FALSE_ALARM, LAW, SERIAL, count_moments, dense_exposures, draw_factors, draw_reports


class Recorder:
    """A rule that gives every factor a new random value, and keeps what it was told and what was there then."""

    def __init__(self, model, found, rng):
        self.model, self.now, self.rng, self.told = model, list(found), rng, {}

    def factor(self, f, value, count, exposure):
        assert value is self.now[f]
        self.told[f] = count, exposure, list(self.now)
        return self.renew(f)

    def shared(self, f, theta, count, middle, links):
        assert theta is self.now[f]
        self.told[f] = count, (middle, links), list(self.now)
        return self.renew(f)

    def renew(self, f):
        new = self.now[f] * self.rng.uniform(0.5, 2.0, self.now[f].shape)
        self.now[f] = np.triu(new) + np.triu(new, 1).T if self.model.factors[f].symmetric else new
        return self.now[f]


def scene(case, seed=6):
    """(model, factors, observations, dense exposures, reports, mask): rates of 3 on average."""
    rng, model = np.random.default_rng(seed), model_of(case)
    found, alpha, mask = draw_factors(model, rng)[0], alpha_of(case), mask_of(case)
    size = (rates_of(model, found).mean() / 3.0) ** (1.0 / len(model.spec.terms))
    found = tuple(factor / size for factor in found)
    reports = draw_reports(rates_of(model, found), alpha, rng)
    return (model, found, observe(model, case, reports, mask), dense_exposures(reports, alpha, mask), reports, mask)


def slope(model, found, exposures, f, entry):
    """Derivative of the exposed rates with respect to a parameter: an entry, and its mirror if that is the same."""
    ends = []
    for change in (1.0, -1.0):
        moved = [np.array(factor) for factor in found]
        for place in {entry, entry[::-1]} if model.factors[f].symmetric else {entry}:
            moved[f][place] += change
        ends.append(float((exposures * rates_of(model, moved)).sum()))
    return (ends[0] - ends[1]) / 2.0


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_exposures_are_derivatives_at_the_newest_values(case):
    model, found, observations, exposures, _, _ = scene(case)
    rule, now = Recorder(model, found, np.random.default_rng(7)), list(found)
    nothing = [
        [np.zeros([side.sizes[a] for a in use.axes]) for use in side.uses] for side in (model.rows, model.columns)
    ]
    links = Plan(observations, model).links(LAW)
    factors.update_after_allocation(model, LAW, now, *nothing, observations, links, rule, SERIAL)
    assert set(rule.told) == set(model.free)
    for f, (count, exposure, then) in rule.told.items():
        assert now[f] is rule.now[f]
        assert not count.any()
        if f == model.shared:
            middle, links = exposure
            exposure = linear_part(then[f], middle, links)
            linear = np.array(exposures)
            linear[np.arange(len(linear)), np.arange(len(linear))] = 0.0
            loops = exposures[np.arange(len(linear)), np.arange(len(linear))].reshape(links.loops.shape)
            np.testing.assert_allclose(links.loops, loops, rtol=1e-12)
            expected = [slope(model, then, linear, f, entry) for entry in np.ndindex(exposure.shape)]
        else:
            expected = [slope(model, then, exposures, f, entry) for entry in np.ndindex(exposure.shape)]
        np.testing.assert_allclose(exposure.ravel(), expected, rtol=1e-9)


def linear_part(theta, middle, links):
    """Exposures of a shared factor without its loops, from what ``update_actors`` is given."""
    n, excess = len(theta), np.zeros((len(middle), len(theta), len(theta)))
    for entries, mine in ((links.out, True), (links.into, False)):
        one = np.zeros_like(excess)
        for i in range(n):
            for e in range(entries[0][i], entries[0][i + 1]):
                j, r = entries[1][e], entries[2][e]
                one[(r, i, j) if mine else (r, j, i)] += entries[3][e]
        assert mine or (one == excess).all()
        excess = one
    full = excess + (links.baseline.exposure_i[:, None] * (1.0 - np.eye(n)))
    return np.einsum("rij,rcd,jd->ic", full, middle, theta) + np.einsum("rji,rdc,jd->ic", full, middle, theta)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_expected_counts_are_sums_over_cells_and_terms(case):
    model, found, observations, _, reports, mask = scene(case)
    rule = Recorder(model, found, np.random.default_rng(8))
    ascent.update_all(Plan(observations, model), model, LAW, found, found, AsMeans(rule), SERIAL)
    spec, every = model.spec, model.spec.output + model.spec.latent
    mu = rates_of(model, found)
    seen = ~mask & (reports > 0)
    mean = np.where(seen, count_moments(np.maximum(reports, 1), mu, alpha_of(case))[0], 0.0)
    terms = np.einsum(spec.text.split("->")[0] + "->" + every, *[found[f] for f in spec.factor_of_term])
    lead = (..., *[None] * len(spec.latent))
    split = terms * (mean / mu)[lead]
    for f in model.free:
        expected = 0.0
        for axes, g in zip(spec.terms, spec.factor_of_term, strict=True):
            if g == f:
                expected = expected + np.einsum(f"{every}->{axes}", split)
        if model.factors[f].symmetric:
            expected = expected + expected.T - np.diag(np.diag(expected))
        np.testing.assert_allclose(rule.told[f][0], expected, rtol=1e-8, atol=1e-12)


class AsMeans:
    """A recorder where a rule of means is wanted; the row factor's counts are its shapes less its prior's."""

    def __init__(self, rule):
        self.rule, model = rule, rule.model
        self.priors = [(np.ones(f.shape), np.ones(f.shape)) for f in model.factors]
        self.factor, self.shared, self.mean = rule.factor, rule.shared, lambda f: rule.now[f]

    def keep(self, f, shape, rate):
        self.rule.told[f] = shape - 1.0, rate - 1.0, None


def test_an_offset_of_a_shared_axis_is_refused():
    case = CASES["directed"]
    model, _, observations, _, _, _ = scene(case)
    observations.prior_scale_d = np.linspace(1.0, 2.0, 6)
    with pytest.raises(ValueError, match="row_offset must be for an axis that has exactly one factor"):
        factors.offset_scales(model, observations)


def draw_gammas(count, exposure, shape, rate, repeats, rng):
    """(repeats, n) draws of Gamma(shape + count, rate + exposure)."""
    flat = [np.broadcast_to(x, np.shape(count)).ravel() for x in (count, exposure, shape, rate)]
    return np.array([factors.sample_gammas(*flat, rng) for _ in range(repeats)])


def test_factors_given_counts_are_gamma():
    rng = np.random.default_rng(5)
    count = np.array([[0.0, 3.0, 40.0], [1.0, 0.0, 7.0]])
    exposure = np.array([2.0, 1.0, 5.0]) + rng.normal(0.0, 0.2, (2, 3))
    shape, rate = np.array([[0.42, 0.63, 0.3], [1.4, 2.1, 1.0]]), np.array([[0.01], [3.0]])
    draws = draw_gammas(count, exposure, shape, rate, 3000, rng)
    u = stats.gamma(shape + count, scale=1.0 / (rate + exposure)).cdf(draws.reshape(-1, 2, 3)).reshape(-1, 6)
    assert all(stats.kstest(column, "uniform").pvalue > FALSE_ALARM / 6 for column in u.T)


def test_exposures_that_rounding_left_below_zero_are_none():
    draws = draw_gammas([2.0], -1e-3, 1.0, 1e-2, 3000, np.random.default_rng(17))[:, 0]
    assert stats.kstest(draws, stats.gamma(3.0, scale=1e2).cdf).pvalue > FALSE_ALARM


def test_gamma_draws_of_tiny_shape_never_reach_zero():
    draws = draw_gammas(np.zeros(3), 0.0, 1e-3, [0.8, 1.3, 0.5], 2000, np.random.default_rng(6))
    assert draws.min() == SMALLEST
    assert (draws**2).min() > 0.0


NAMES = ["topics", "directed", "undirected", "CP 3", "CP 4", "Tucker", "dynamic network"]


def cells_and_factors(name, count, seed=9):
    """(model, factors, cell, observations): one cell holds the count, all others none."""
    model = model_of(CASES[name])
    found = draw_factors(model, np.random.default_rng(seed))[0]
    counts = np.zeros(CASES[name].shape, dtype=int)
    cell = tuple(n - 1 for n in counts.shape)
    cell = (0, *cell[1:]) if model.shared is not None else cell
    counts[cell] = count
    return model, found, cell, ExactCounts(as_matrix(model, counts))


def allocations(model, found, observations, repeats, seed=1):
    """Counts of each use of a factor, rows' uses first, over and over."""
    values, streams = [side.forward(found) for side in (model.rows, model.columns)], Streams.of_chain(seed, 0)
    (theta, phi), plan = model.matrices(found), Plan(observations, model)
    rng = np.random.default_rng(seed)
    for sweep in range(repeats):
        drawn = gibbs.sweep_rows(plan, model, LAW, theta, phi, None, streams, sweep, SERIAL)
        yield [
            count
            for side, value, matrix in zip(
                (model.rows, model.columns), values, (drawn.row_counts, drawn.counts), strict=True
            )
            for count in sampled_counts(side, value, matrix, rng)
        ]


def shares_of(model, found, cell):
    """(one axis for each latent axis) the chance of each term of a cell."""
    spec = model.spec
    terms = np.einsum(
        spec.text.split("->")[0] + "->" + spec.output + spec.latent, *[found[f] for f in spec.factor_of_term]
    )[cell]
    return terms / terms.sum()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_token_goes_to_one_term_with_its_chance(name):
    repeats = 2500
    model, found, cell, observations = cells_and_factors(name, 1)
    uses = model.rows.uses + model.columns.uses
    share = shares_of(model, found, cell)
    tally = np.zeros(share.shape)
    for counts in allocations(model, found, observations, repeats):
        index = dict(zip(model.spec.output, cell, strict=True))
        for use, count in zip(uses, counts, strict=True):
            assert count.sum() == 1
            where = np.argwhere(count)[0]
            for axis, place in zip(use.axes, where, strict=True):
                assert index.setdefault(axis, place) == place
        tally[tuple(index[a] for a in model.spec.latent)] += 1.0
    expected = repeats * share
    common = expected >= 5.0
    pairs = [(tally[common], expected[common])]
    if not common.all():
        pairs.append((tally[~common].sum(keepdims=True).ravel()[:1], expected[~common].sum(keepdims=True).ravel()[:1]))
    got, wanted = (np.concatenate(part) for part in zip(*pairs, strict=True))
    assert special.chdtrc(got.size - 1, ((got - wanted) ** 2 / wanted).sum()) > FALSE_ALARM
    moved = np.roll(expected.ravel(), 1).reshape(expected.shape)[common]
    assert special.chdtrc(common.sum() - 1, ((tally[common] - moved) ** 2 / moved).sum()) < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_many_tokens_spread_as_a_multinomial(name):
    repeats, count = 600, 150
    model, found, cell, observations = cells_and_factors(name, count)
    uses, share = model.rows.uses + model.columns.uses, shares_of(model, found, cell)
    drawn = [[] for _ in uses]
    for counts in allocations(model, found, observations, repeats, seed=2):
        for kept, use, each in zip(drawn, uses, counts, strict=True):
            assert each.sum() == count
            kept.append(
                each[
                    tuple(cell[model.spec.output.index(a)] if a in model.spec.output else slice(None) for a in use.axes)
                ].ravel()
            )
    for use, kept in zip(uses, drawn, strict=True):
        mine = "".join(a for a in use.axes if a not in model.spec.output)
        chance = np.einsum(f"{model.spec.latent}->{mine}", share).ravel()
        n = np.array(kept)
        z = (n.mean(axis=0) - count * chance) / np.sqrt(count * chance * (1.0 - chance) / repeats)
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / z.size)
        spread = ((n - count * chance) ** 2 / (count * chance)).sum(axis=1)
        error = spread.std(ddof=1) / np.sqrt(repeats)
        assert abs(spread.mean() - (chance.size - 1)) < stats.norm.isf(FALSE_ALARM / 2) * error
