"""Every case study at a tiny size, and its verdicts on numbers made up to go either way."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from papers import (
    NAMES,
    blocks_synthetic,
    case_module,
    communities_enron,
    enron_network,
    links_enron,
    semisynthetic,
    sensitivity,
    skellam,
    style,
    theorems,
    theta_given_phi,
    true_counts,
    variational,
)
from papers.bench import Bench
from papers.claims import FAILS, HOLDS, UNTESTED
from papers.fits import Sampling
from papers.style import BURSTY, EXACT_VI, LEAST_SQUARES, NAIVE, OURS, TRUE_COUNTS, ZERO

pytestmark = pytest.mark.long

SHORT = Sampling(1, 4, 4)
PLANS = {
    "theorems": theorems.Plan(20, 12),
    "skellam": skellam.Plan(5000),
    "true-counts": true_counts.Plan(8, 7, 2, SHORT),
    "theta-given-phi": theta_given_phi.Plan(8, 7, 2, 8),
    "topics-synthetic": case_module("topics-synthetic").Plan(1, SHORT, (60,)),
    "blocks-synthetic": blocks_synthetic.Plan(1, SHORT),
    "communities-enron": enron_network.Plan((2,), 1, SHORT),
    "links-enron": enron_network.Plan((2,), 1, SHORT),
    "variational": variational.Extent(15, 2, 4, 4, 1),
    "topics-enron": case_module("topics-enron").QUICK._replace(
        n_topics=2, noise_draws=1, sampling=SHORT, shape=(30, 25)
    ),
    "blocks-semisynthetic": semisynthetic.Plan(2, (0.1, 0.5), 1, SHORT),
    "topics-semisynthetic": semisynthetic.Plan(2, (0.1, 0.5), 1, SHORT),
    "sensitivity": sensitivity.Plan(SHORT, SHORT, (2,), (1.0,), 2, (30, 25), variational.Extent(15, 2, 4, 4, 1)),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Two levels of the network's three, few simulated tables, and small pictures."""
    monkeypatch.setattr(enron_network, "LEVELS", (3.0, 1.0))
    monkeypatch.setattr(enron_network, "TABLES", 20)
    monkeypatch.setattr(style, "DPI", 40)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a network of 55 actors and a corpus, as a user may have them."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(1)
    rate = rng.gamma(0.5, 1.0, (55, 2))
    (folder / "enron_network").mkdir()
    np.savez(folder / "enron_network" / "enron161.npz", Y=rng.poisson(rate @ rng.gamma(0.5, 4.0, (2, 2)) @ rate.T))
    words = rng.poisson(rng.gamma(0.5, 1.0, (40, 2)) @ rng.dirichlet(np.full(30, 0.5), 2) * 80)
    (folder / "enron_text").mkdir()
    sp.save_npz(folder / "enron_text" / "enron_ham_1000x1400.npz", sp.csr_array(words))
    return folder


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """A folder with the fits that were made."""
    return tmp_path_factory.mktemp("fits")


@pytest.mark.parametrize("name", NAMES)
def test_a_case_study_at_a_tiny_size(name, data, fits, tmp_path):
    bench = Bench(name, fits, data)
    found = case_module(name).run(bench, PLANS[name])
    assert len(found.numbers) > 0
    assert {each.outcome for each in found.verdicts} <= {HOLDS, FAILS, UNTESTED}
    style.save(found.figure, [tmp_path / "f.png"])  # and as SVG by tests/papers/test_main.py
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    again = case_module(name).run(bench, PLANS[name])
    pd.testing.assert_frame_equal(found.numbers, again.numbers)


@pytest.mark.parametrize("name", [name for name in NAMES if case_module(name).NEEDS])
def test_real_counts_are_asked_for(name):
    with pytest.raises(FileNotFoundError, match=r"needs Enron's .*--data"):
        case_module(name).run(Bench(name), PLANS[name])


def test_an_unknown_name():
    with pytest.raises(ValueError, match=r"name must be one of all, theorems, .*, got 'nothing'"):
        case_module("nothing")


def test_true_theorems_hold_and_misprints_do_not():
    study = theorems.run(Bench("theorems"), theorems.Plan(200, 20))
    for each in study.verdicts:
        assert each.outcome == (FAILS if each.claim.startswith("As printed") else HOLDS), each


def test_a_broken_privacy_bound_is_noticed():
    losses = theorems.privacy_losses(np.random.default_rng(1), 50)
    assert theorems.privacy_bound(losses).holds
    assert not theorems.privacy_bound(losses.assign(loss=losses["loss"] * 1.001)).holds
    assert not theorems.privacy_is_tight(losses.assign(loss=losses["loss"] * 0.999)).holds


@pytest.mark.parametrize(("mode", "holds"), [(3, (True, True)), (2, (False, False)), (4, (True, False))])
def test_planted_distances_of_mean_and_mode(mode, holds):
    mean, modes = np.array([3.3]), np.array([mode])
    assert (theorems.mean_near_mode(mean, modes).holds, theorems.tight_bounds(mean, modes).holds) == holds


def test_noise_of_another_level_fails_the_chi_square_test():
    rng = np.random.default_rng(1)
    noise = rng.geometric(0.4, 50_000) - rng.geometric(0.4, 50_000)
    assert skellam.fit_p_value(noise, 0.6) > 1e-4
    assert skellam.fit_p_value(noise, 0.62) < 1e-6


def test_true_counts_verdicts_both_ways():
    truth = np.arange(100) % 5
    good = pd.DataFrame({"true_count": truth, "report": truth + 3, "mean": truth + 0.2, "sd": 1.0,
                         "low": truth - 1, "high": truth + 1, "near": 0.9,
                         LEAST_SQUARES: truth + 0.5, EXACT_VI: truth - 0.4})  # fmt: skip
    bad = good.assign(near=np.where(truth > 0, 0.2, 0.9), mean=truth + 4.0, low=truth + 1)
    assert [each.outcome for each in true_counts.verdicts(good)] == [HOLDS] * 5
    assert [each.outcome for each in true_counts.verdicts(bad)] == [FAILS] * 5


@pytest.mark.parametrize(("ours", "outcome"), [(1.4, HOLDS), (1.6, FAILS)])
def test_theta_is_recovered_if_a_tenth_of_the_way_is_left(ours, outcome):
    rows = [{"p": p, "method": OURS, "divergence": ours} for p in theta_given_phi.LEVELS]
    rivals = (NAIVE, LEAST_SQUARES, EXACT_VI)
    rows += [{"p": p, "method": m, "divergence": 1.5} for p in theta_given_phi.LEVELS for m in rivals]
    rows.append({"p": np.nan, "method": TRUE_COUNTS, "divergence": 0.5})
    table = pd.DataFrame(rows).assign(draw=0, coverage=0.9 if outcome == HOLDS else 0.7, flat=10.5, n_theta=500)
    assert [each.outcome for each in theta_given_phi.verdicts(table)] == [outcome] * 5


def test_held_out_links_are_predicted_by_draws(data, fits):
    table = links_enron.run(Bench("links-enron", fits, data), PLANS["links-enron"]).numbers
    drawn = table["method"].isin(enron_network.METHODS) & (table["method"] != LEAST_SQUARES)
    assert table.loc[drawn, ["median_mae", "log_predictive"]].notna().all(axis=None)
    assert (table.loc[drawn, "log_predictive"] < 0.0).all()
    assert table.loc[table["method"] == LEAST_SQUARES, "median_mae"].isna().all()
    zero = table[table["method"] == ZERO]
    assert (zero["median_mae"] == zero["mae"]).all()
    other = communities_enron.run(Bench("communities-enron", fits, data), PLANS["communities-enron"]).numbers
    assert "median_mae" not in other
    assert BURSTY in set(other["method"])


def test_links_verdicts_both_ways():
    def table(ours):
        errors = {OURS: ours, BURSTY: ours**2, NAIVE: 3.0, LEAST_SQUARES: 3.0, EXACT_VI: 3.0}
        rows = [{"C": 5, "level": level, "method": m, "mae": e, "log_score": -e}
                for m, e in errors.items() for level in (1.0, 2.0)]  # fmt: skip
        rows += [{"C": 5, "level": np.nan, "method": m, "mae": e, "log_score": -e}
                 for m, e in ((TRUE_COUNTS, 2.0), (ZERO, 2.5))]  # fmt: skip
        found = pd.DataFrame(rows).assign(draw=0)
        return found.assign(median_mae=found["mae"], log_predictive=found["log_score"])

    assert {each.outcome for each in links_enron.verdicts(table(0.9))} == {HOLDS}
    lost = [each.outcome for each in links_enron.verdicts(table(4.0))]
    assert lost == [FAILS] * 10 + [HOLDS]
    assert {each.outcome for each in communities_enron.verdicts(table(0.9))} == {HOLDS}
    assert {each.outcome for each in communities_enron.verdicts(table(4.0))} == {FAILS}


@pytest.mark.parametrize(("slow", "outcome"), [(30.0, HOLDS), (10.0, FAILS)])
def test_the_speed_of_variational_inference(slow, outcome):
    """Published VI: 100 iterations of a second each. MCMC: 7,500 sweeps of slow / 75 seconds each."""
    rows = [("10 x 10", name, i, 1.0 * i, 0.5) for name in variational.ALGORITHMS for i in (1, 2)]
    rows += [("20 x 20, 0", style.PUBLISHED_VI, 100, np.nan, 0.5), ("10 x 10", TRUE_COUNTS, 2, 1.0, 0.1)]
    rows += [("10 x 10", m, 2, 1.0, 0.6 if outcome == HOLDS else 0.4) for m in (NAIVE, LEAST_SQUARES)]
    table = pd.DataFrame(rows, columns=["data", "method", "iteration", "seconds", "error"])
    table.loc[table["method"] == style.PUBLISHED_MCMC, "seconds"] *= slow / 75.0
    table = table.assign(error_of_reports=0.6, error_of_flat=0.4 if outcome == FAILS else 0.7, mean_rate=1.0)
    found = variational.verdicts(table)
    assert found[0].outcome == outcome
    assert found[1].outcome == outcome
    assert found[-1].outcome == outcome


@pytest.mark.parametrize(("worst", "outcome"), [(0.9, HOLDS), (1.1, FAILS)])
def test_a_claim_holds_whatever_the_prior_if_it_does_under_every_one(worst, outcome):
    question = sensitivity.Question("case", "a claim", 0.6, lambda bench, plan: iter(()))
    rows = [("one", "a", 0.5), ("one", "b", 0.5), ("one", "c", 2.0), ("two", "a", 0.5), ("two", "b", worst)]
    found = sensitivity.answered(question, pd.DataFrame(rows, columns=["variant", "setting", "ratio"]))
    assert found.outcome == outcome
    assert "one: holds, in 2 of 3 settings, ratios 0.5 to 2" in found.measured
    assert f"two: {'holds' if outcome == HOLDS else 'does not'}, in" in found.measured


def test_networks_of_the_published_prior_are_empty():
    assert blocks_synthetic.emptiness(np.random.default_rng(1), 200).outcome == FAILS


@pytest.mark.parametrize(("worse", "outcome"), [(4.0, HOLDS), (0.25, FAILS)])
def test_semisynthetic_verdicts_both_ways(worse, outcome):
    """The naive way ``worse`` times as far from the truth at high noise, and little noise telling ever less."""
    rows = []
    for e0, over in ((1.0, 1.5), (2.0, 1.1 if outcome == HOLDS else 2.0)):
        rows += [(e0, a, OURS, over) for a in (0.1, 0.9)]
        rows += [(e0, a, EXACT_VI, over * worse) for a in (0.1, 0.9)]
        rows += [(e0, 0.1, NAIVE, over * worse**0.5), (e0, 0.9, NAIVE, over * worse), (e0, np.nan, TRUE_COUNTS, 1.0)]
    table = pd.DataFrame(rows, columns=["e0", "alpha", "method", "divergence"]).assign(draw=0)
    assert [each.outcome for each in semisynthetic.verdicts(table)] == [outcome] * 3 + [UNTESTED, outcome]
