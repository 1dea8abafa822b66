"""Sweeps by tokens of negative binomial counts leave the joint law as it is; the data alone decide about them."""

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.engines.threads import ThreadEngine
from countveil.inference import burst_tokens, gibbs, tokens
from countveil.inference.plan import Plan
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial, Unseen
from countveil.laws.counts.laws import law_of
from countveil.laws.noise import TWO_SIDED_GEOMETRIC
from countveil.laws.noise.two_sided_geometric import burst_tokens as proposals
from tests.joint import SERIAL, assert_same_bits, bound, planted, small_model
from tests.laws.counts import test_negative_binomial as joint
from tests.laws.counts.test_negative_binomial import private

pytestmark = pytest.mark.long

LEVEL = np.array([0.3, 0.3, 0.5, 0.7])[:, None]


def by_tokens(monkeypatch, proposed):
    """All sweeps draw all bursts, in one of the two ways."""
    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    monkeypatch.setattr(burst_tokens, "most_proposed", lambda *_: 2)
    monkeypatch.setattr(burst_tokens, "proposes_beside_reports", lambda *_: proposed)


@pytest.mark.parametrize(
    ("dispersion", "proposed", "sweeps"),
    [("global", True, 2000), ("column", True, 1000), ("column", False, 1000)],
)
def test_sweeps_leave_the_joint_law_as_it_is(dispersion, proposed, sweeps, monkeypatch):
    by_tokens(monkeypatch, proposed)
    z = joint.joint_scores(NegativeBinomial(dispersion), "topics", private(LEVEL), sweeps, masked=False)
    assert z.max() < bound(len(z))


@pytest.mark.parametrize(("fault", "sweeps"), [("no gain", 500), ("unseen cells count twice", 2000)])
def test_the_joint_law_shows_a_planted_fault(fault, sweeps, monkeypatch):
    right = proposals.propose_rows

    def no_report(law, entries, *rest):
        right(law, entries._replace(reports=np.ones_like(entries.reports)), *rest)

    by_tokens(monkeypatch, True)
    if fault == "no gain":
        monkeypatch.setattr(proposals, "propose_rows", no_report)
    else:
        monkeypatch.setattr(burst_tokens, "NONE_UNSEEN", Unseen(np.array([0.3]), np.array([[10.0]])))
    z = joint.joint_scores(NegativeBinomial("global"), "topics", private(LEVEL), sweeps, masked=False)
    assert z.max() > bound(len(z))


def law_at(dispersion, n=0):
    """The law of reports with p = 1/2."""
    likelihood = NegativeBinomial(dispersion)
    return law_of(TWO_SIDED_GEOMETRIC, likelihood, likelihood.start((n, n)))


def sparse(alpha=0.6, size=(40, 60)):
    """Few counts under noise."""
    rng = np.random.default_rng(4)
    noise = rng.geometric(1.0 - alpha, size) - rng.geometric(1.0 - alpha, size)
    return PrivatizedCounts(rng.poisson(0.02, size) + noise, alpha)


def test_which_laws_are_swept_by_tokens(monkeypatch):
    monkeypatch.setattr(tokens, "MIN_REPORTS", 0)
    assert tokens.pays(sparse(), law_at("global"))
    assert tokens.pays(sparse(), law_at("column", 60))
    assert tokens.pays(sparse(), law_at(0.3))
    assert not tokens.pays(sparse(), law_at("row", 40))
    levels = np.linspace(0.5, 0.6, tokens.MAX_LEVELS)
    for many, pays in ((levels, True), (np.append(levels, 0.61), False)):
        assert tokens.pays(sparse(np.resize(many, 40)[:, None]), law_at("global")) == pays


@pytest.mark.parametrize("dispersion", ["global", "column", 0.6])
@pytest.mark.parametrize("rows", [300, 8 * tokens.ROWS_PER_BLOCK])
def test_threads_change_nothing(rows, dispersion, monkeypatch):
    monkeypatch.setattr(tokens, "MIN_REPORTS", 0)
    _, _, observations, _ = planted(rows, 30, 3, 0.6, seed=6, tokens=1.0)
    model = small_model(observations.shape, 3)._replace(likelihood=NegativeBinomial(dispersion))
    assert tokens.pays(observations, law_of(observations.noise, model.likelihood, model.initial_parameters()))
    found = []
    plan = Plan(observations, model)
    for threads in (1, 3):
        streams = Streams.of_chain(7, 0)
        state = gibbs.init(plan, model, streams, SERIAL)
        with ThreadEngine(threads) as engine:
            for _ in range(2):
                state, _ = gibbs.step(state, plan, model, streams, engine)
        found.append((*state.factors, *state.parameters))
    assert_same_bits(*found)


def test_bursts_are_proposed_where_that_is_cheapest():
    """One by one where counts are large, and tokens beside reports as large as noise makes them where they are few."""
    data, law = sparse(0.3), law_at("global")
    above = burst_tokens.reports_above(data)
    levels, theta, phi = np.array([0.3]), np.ones((40, 1)), np.ones((60, 1))
    large, few = (burst_tokens.most_proposed(above, law, levels, scale * theta, phi) for scale in (1e3, 1e-6))
    assert (large, few) == (0, data.reports.max())
    between = [
        burst_tokens.most_proposed(above, law, levels, s * theta, phi) for s in np.geomspace(1e-2, 1e2, 80)
    ]
    assert between == sorted(between, reverse=True)
    assert len(set(between)) > 3


def test_reports_above_each_bound():
    reports = np.array([[0, 1, 2, 2, 8, 9, 300, 70_000, -4]])
    above = burst_tokens.reports_above(PrivatizedCounts(reports, 0.5))
    assert above.tolist() == [(reports > most).sum() for most in range(burst_tokens.MOST_REPORT + 1)]


@pytest.mark.parametrize("dispersion", ["global", "column"])
def test_how_tokens_are_proposed(dispersion):
    """The rate of what is kept beside a report is that of its mass, at every level and in every column."""
    rng, levels, most = np.random.default_rng(3), np.array([0.2, 0.5, 0.9]), 4
    law, phi = law_at(dispersion, 7), rng.gamma(1.0, 1.0, (7, 2))
    law.likelihood.parameters[0][:] = rng.uniform(0.1, 0.9, law.likelihood.parameters[0].shape)
    law = law._replace(likelihood=law.likelihood._replace(q=-np.log1p(-law.likelihood.parameters[0])))
    *_, found, kept = burst_tokens.with_proposals(map, law, phi, levels, most, "kept")
    assert kept == "kept"
    assert found.chance_lrn.max() <= 1.0 + 1e-15
    assert not found.chance_lrn[:, -1].any()
    rate = found.scale_l[:, None, None] * found.bound_n * found.chance_lrn
    np.testing.assert_allclose(rate[:, :-1], burst_tokens.masses(law, levels, most), rtol=1e-12)
    np.testing.assert_allclose(found.total_k, (phi.T * (found.bound_n / law.likelihood.q)).sum(axis=1))


def test_weak_noise_leaves_masses_numbers():
    """A column without rate may not hide how dear the others are."""
    law, levels, phi = law_at("global"), np.array([1e-60]), np.ones((60, 1))
    phi[3] = 0.0
    found = burst_tokens.masses(law, levels, burst_tokens.MOST_REPORT)
    assert found.max() == burst_tokens.LARGEST_MASS
    assert found[0, 0, 0] == pytest.approx(0.5e-60)
    data = PrivatizedCounts(np.full((1, 60), 20), 1e-60)
    above = burst_tokens.reports_above(data)
    assert burst_tokens.most_proposed(above, law, levels, np.ones((1, 1)), phi) == 0
