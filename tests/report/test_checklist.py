"""A checklist for a paper, filled in from a fit."""

from copy import copy

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.fit.parts import Parts
from countveil.inference.diagnostics import Diagnostics, State, Totals, verdict_of
from countveil.report import checklist_of
from countveil.report.checklist import Files, priors_of
from tests.joint import short_choices
from tests.report.conftest import QUICK, WORDS, release_of

pytestmark = pytest.mark.long

COUNTS = np.random.default_rng(1).poisson(2.0, (6, 5))


def items(fit, release=None, files=None):
    return {item.name: item for item in checklist_of(fit, release, files).items}


def test_what_the_fit_knows_is_said_and_the_rest_is_an_open_box_with_its_command(topic_fit):
    found = items(topic_fit)
    assert found["Size"].said == "12 documents × 8 words: 96 cells."
    assert found["Masked cells"].said.startswith("0 of 96 cells")
    assert found["Seed and version"].said.startswith("Seed 1, countveil ")
    assert found["Method"].said == "gibbs: 2 chains of 10 draws after 10 sweeps of tuning."
    assert found["Simulated releases"].command == "countveil checklist fit.nc --release release.npz"
    assert found["Number of components"].command == "countveil compare release.npz --topics 1,3,6 --seed 1"
    command = "countveil fit topics release.npz -o other.nc --topics 3 --draws 10 --tune 10 --chains 2 --seed 1 "
    assert found["Priors"].command.startswith(f"{command}--prior-shape 0.1\n")
    assert found["Expected sum of counts"].said == f"{topic_fit.totals()}."
    for name in ("Simulated releases", "Number of components", "Priors", "Prior predictive check"):
        assert not found[name].done
    state = topic_fit.diagnostics().state
    assert not found[f"Verdict: {state.value}"].done, "ten draws do not make a fit"


def test_a_likelihood_that_was_chosen_is_an_option_of_the_command_to_fit_again(topic_fit):
    fit = copy(topic_fit)
    fit.n_topics, fit.likelihood_ = "auto", {"likelihood": "poisson", "dispersion": None}
    assert " --topics 3 --draws 10 --tune 10 --chains 2 --likelihood poisson " in items(fit)["Priors"].command
    fit.likelihood_ = {"likelihood": "negative-binomial", "dispersion": "global"}
    assert " --likelihood negative-binomial --dispersion global " in items(fit)["Priors"].command


def test_every_quantity_of_the_diagnostics_and_every_support_is_listed(topic_fit):
    found, table = items(topic_fit), topic_fit.diagnostics().table
    for name, row in table.iterrows():
        assert f"R-hat {row['r_hat']:.3f}, " in found[f"Chains: {name}"].said
        assert f"effective draws (bulk) {row['ess_bulk']:.0f}," in found[f"Chains: {name}"].said


def test_components_that_some_chains_lack_are_listed_with_their_support(topic_fit, monkeypatch):
    table = pd.DataFrame({"component": [0, 1, 2], "support": [1.0, 0.5, 0.25]})
    monkeypatch.setattr(Parts, "support", lambda *_, **__: table)
    said = items(topic_fit)["Support of the topics"].said
    assert said.startswith("1 of 3 that chains found are in all chains. Others, ")
    assert "1 (50%), 2 (25%)" in said


def test_a_release_fills_in_its_level_and_the_predictive_checks(topic_fit, release):
    found = items(topic_fit, release)
    assert "N = 1, epsilon = 2" in found["Statement"].said
    assert "Simulated releases" not in found
    positive = (np.asarray(release.reports) > 0).mean()
    assert found["Share of positive reports"].said.startswith(f"{positive:.2%} in the reports; ")
    with pytest.raises(ValueError, match="release must be the one that was fitted"):
        checklist_of(topic_fit, release_of(COUNTS))


def test_who_vouches_for_the_noise_is_said():
    level = cv.PrivacyLevel(1, 2)
    owner = cv.privatize(COUNTS, level)
    fit = cv.TopicModel(2, **QUICK).fit(owner)
    assert not items(fit)["Who vouches for it"].done
    assert not items(fit)["Level as it was stated"].done
    found = items(fit, owner)
    assert found["Who vouches for it"].said.startswith("The owners of the counts")
    assert "epsilon = 1" in found["Statement"].said
    assert found["Level as it was stated"].done
    assert "by 2: at most 69.7%" in found["How well counts can be told apart"].said
    imported = cv.import_reports(COUNTS, cv.mechanisms.TwoSidedGeometric(0.37), "Others *2020*")
    found = checklist_of(cv.TopicModel(2, **QUICK).fit(imported))
    assert "They are from: Others \\*2020\\*." in str(found)
    assert "Level as it was stated" not in {item.name for item in found.items}


def test_a_release_that_keeps_no_level_is_not_said_to_have_stated_one():
    rounded = cv.round_randomly(COUNTS, 3)
    found = items(cv.TopicModel(2, **QUICK).fit(rounded), rounded)
    assert found["Level as it was stated"].said == "There is none: random rounding (base 3) states no level of privacy."
    assert "not differential privacy" in found["Statement"].said


def test_a_masked_cell_and_a_release_of_a_mechanism_that_keeps_no_level_are_told():
    mask = np.zeros(COUNTS.shape, dtype=bool)
    mask[0, :3] = True
    data = cv.Reports(3 * (COUNTS // 3), cv.mechanisms.RandomRounding(3), mask=mask)
    found = items(cv.TopicModel(2, **QUICK).fit(data))
    assert found["Masked cells"].said.startswith("3 of 30 cells (10.0%) were masked")
    assert "This is not differential privacy" in found["Statement"].said


def test_no_true_count_is_printed():
    counts = COUNTS.copy()
    counts[2, 3] = 987_654
    said = str(checklist_of(cv.TopicModel(2, **QUICK).fit(cv.ExactCounts(counts))))
    assert "Nobody has to: these are true counts." in said
    assert f"{counts.sum():,}" not in said
    assert "987,654" not in said
    assert str(counts.sum()) not in said


def test_a_fit_without_calibrated_intervals_has_none_and_no_check(release):
    fit = cv.TopicModel(2, method=cv.CAVI(max_iter=5), seed=1, progress=False).fit(release)
    found = items(fit, release)
    assert found["Intervals"].said == "None: those of method 'cavi' are not calibrated."
    assert found["Simulated releases"].said.startswith("No check: ")
    assert not found["Support of the topics"].done
    assert found["Convergence"].name


def test_the_comparison_that_chose_the_number_of_topics_is_said(monkeypatch):
    short_choices(monkeypatch)
    fit = cv.TopicModel("auto", **QUICK).fit(cv.PrivatizedCounts(COUNTS, 0.3))
    found = items(fit)["Number of components"]
    assert found.done
    assert fit.selection_.verdict in found.said


def test_it_is_markdown_without_a_label_of_the_data(topic_fit, block_fit, tensor_fit):
    for fit, option in ((topic_fit, "--topics"), (block_fit, "--communities"), (tensor_fit, "--components")):
        made = checklist_of(fit, files=Files("'my fit.nc'"))
        said = str(made)
        assert said.startswith(f"# Checklist for a paper\n\n{len(made.open)} of {len(made.items)} boxes are open.")
        assert said.count("\n- [ ] ") == len(made.open)
        assert said.count("\n- [x] ") == len(made.items) - len(made.open)
        assert option in said
        assert "checklist 'my fit.nc' --release" in said
        assert not any(word in said for word in (*WORDS, "script"))
        assert made.table["done"].sum() == len(made.items) - len(made.open)


def test_any_model_has_one(chronicle):
    assert "Chronicle: rates " in str(checklist_of(chronicle))


@pytest.mark.parametrize(
    ("r_hat", "nested", "ess", "state"),
    [(1.05, 1.02, 90.0, State.SAFE), (1.4, 1.04, 20.0, State.WITH_SUPPORT), (1.4, 1.08, 900.0, State.UNSAFE)],
)
def test_no_box_contradicts_the_verdict(topic_fit, monkeypatch, r_hat, nested, ess, state):
    """A box of a quantity is open only if it is a reason against the fit; that chains differ is what support is for."""
    table = topic_fit.diagnostics().table.assign(r_hat=r_hat, ess_bulk=ess, ess_tail=ess, r_hat_nested=nested)
    table.loc["log-likelihood", "r_hat_nested"] = 1.5  # which nobody reports
    judged = Diagnostics(table, *verdict_of(table, 2))
    assert judged.state == state
    monkeypatch.setattr(type(topic_fit), "diagnostics", lambda self: judged)
    boxes = {name: item for name, item in items(topic_fit).items() if name.startswith(("Chains", "Verdict"))}
    assert len(boxes) > 4
    left_open = {name for name, item in boxes.items() if not item.done}
    assert (left_open == set()) is (state != State.UNSAFE)
    assert "Chains: log-likelihood" not in left_open
    assert ("Chains: total rate" in left_open) is (state == State.UNSAFE)


def test_the_box_of_the_sum_is_that_of_the_verdict(topic_fit, monkeypatch):
    """What is outside of the interval by chance is ticked and said; what a verdict speaks against is open."""
    for fitted, done, said in (
        ((100.0, 95.0, 105.0), True, False), ((120.0, 112.0, 128.0), True, True), ((200.0, 190.0, 210.0), False, True)
    ):  # fmt: skip
        monkeypatch.setattr(type(topic_fit), "totals", lambda self, f=fitted: Totals(100.0, 10.0, f[0], f[1], f[2]))
        item = items(topic_fit)["Expected sum of counts"]
        assert (item.done, "which the fit lies outside of: report the interval" in item.said) == (done, said)


def test_a_check_that_fails_is_in_the_verdict_of_the_list(topic_fit, release, monkeypatch):
    assert checklist_of(topic_fit, release).judged.verdict == topic_fit.diagnostics().verdict
    monkeypatch.setattr("countveil.fit.predictive_checks.failed", lambda found, exact: ["The check fails."])
    judged = checklist_of(topic_fit, release).judged
    assert judged.verdict.startswith("The check fails. ")
    assert (judged.state, "afe to report" in judged.verdict) == (State.UNSAFE, False)


COUNTS_OF_PRIORS = np.random.default_rng(1).poisson(2.0, (6, 5))
DATA = cv.PrivatizedCounts(COUNTS_OF_PRIORS, 0.3)


@pytest.fixture(scope="module")
def fit():
    return cv.TopicModel(2, **QUICK).fit(DATA)


def test_a_learned_shape_has_its_prior_and_its_posterior(fit):
    found = dict(priors_of(fit))
    assert list(found) == ["theta", "phi"]
    draws = fit.posterior["posterior"]["phi_shape"].to_numpy()
    low, high = np.quantile(draws, [0.05, 0.95])
    assert "log-normal of median 0.1 and log standard deviation 1" in found["phi"]
    assert f"Posterior mean of the shape: {draws.mean():.2g} (90% interval {low:.2g} to {high:.2g})." in found["phi"]


def test_a_known_shape_and_rates_that_are_learned_or_known():
    learned = dict(priors_of(cv.TopicModel(2, prior_shape=0.5, **QUICK).fit(DATA)))
    assert learned["phi"].startswith("Independent gammas of shape 0.5, and learned rates, a component's own")
    known = cv.TopicModel(2, method="em", prior_shape=1.0, prior_rate=2.0, seed=1, progress=False).fit(DATA)
    assert dict(priors_of(known))["theta"] == "Independent gammas of shape 1, and rate 2."


def test_other_priors_are_said_in_their_own_words():
    frame = pd.DataFrame({"x": np.arange(6.0)})
    topics = cv.TopicModel(2, prevalence="~ x", **QUICK).fit(DATA, covariates=frame)
    assert (
        "Coefficients of standardised columns are Normal(0, 1^2), those of shapes Normal(0, 0.5^2)"
        in dict(priors_of(topics))["theta"]
    )
    assert "Posterior means of the shapes: " in dict(priors_of(topics))["theta"]
    named = cv.PrivatizedCounts(pd.DataFrame(COUNTS_OF_PRIORS, columns=list("abcde")), 0.3)
    seeded = dict(priors_of(cv.TopicModel(2, seeds={"one": ["a", "b"]}, **QUICK).fit(named)))
    assert "Seeded topics: 1; 5 is added to the shape of every seeded word in its topic." in seeded["phi"]
    assert "Posterior mean of the shape: " in seeded["phi"]
    dated = dict(priors_of(cv.TopicModel(2, **QUICK).fit(DATA, time=[1, 1, 2, 2, 3, 3])))
    assert "whose shapes are a gamma chain over 3 steps of time" in dated["theta"]
    found = " ".join(said for _, said in priors_of(cv.DynamicModel(2, background=True, **QUICK).fit(DATA)))
    assert "A gamma chain: each step depends on the step before" in found
    assert "Each component is Dirichlet with a learned concentration" in found
    assert "; one is spread out, with concentration 1." in found
