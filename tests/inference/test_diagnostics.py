from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

from countveil.inference.diagnostics import (
    Diagnostics,
    Share,
    State,
    diagnose,
    diagnose_optimiser,
    nested,
    quantity_of,
    undetermined_in_words,
    upwards,
    withdrawn,
)


def traces(chains=4, draws=1000, shift=0.0, correlation=0.0, seed=1):
    """Autoregressive traces of unit variance, the chains' means spread by ``shift``."""
    rng = np.random.default_rng(seed)
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    for s in range(1, draws):
        x[:, s] = correlation * x[:, s - 1] + np.sqrt(1 - correlation**2) * rng.normal(size=chains)
    return x + shift * np.arange(chains)[:, None]


def test_independent_draws_of_agreeing_chains_suffice():
    found = diagnose({"a": traces()})
    assert found.verdict.startswith("Safe to report: the chains agree (R-hat up to 1.00)")
    assert found.state == State.SAFE
    assert found.table.columns.tolist() == ["r_hat", "ess_bulk", "ess_tail", "r_hat_nested"]
    assert found.table.loc["a", "ess_bulk"] == pytest.approx(4000, rel=0.15)


@pytest.mark.parametrize(
    ("name", "r_hat", "nested", "ess", "said", "fine"),
    [
        ("a", 1.0, 1.0, 900, "chains agree; at least 400 effective draws", True),
        ("a", np.nan, 1.0, 900, "chains agree; at least 400 effective draws", True),  # nothing moves
        ("a", 1.05, 1.01, 90, "chains agree roughly; fewer than 400 effective draws", True),
        ("a", 1.3, 1.05, 90, "chains differ; averages over all of them are steady; fewer than 400", True),
        ("a", 1.3, 1.06, 900, "chains differ; averages over all of them are not steady; at least 400", False),
        ("log-likelihood", 1.3, 1.5, 900, "chains differ, which is no result to report; at least 400", True),
        ("a", np.nan, np.nan, 900, "one chain, so agreement is unknown; at least 400", False),
        ("a", 1.0, 1.0, np.nan, "too few draws to say", False),
    ],
)
def test_a_quantity_in_words_and_whether_it_speaks_against_the_fit(name, r_hat, nested, ess, said, fine):
    row = pd.Series({"r_hat": r_hat, "r_hat_nested": nested, "ess_bulk": ess, "ess_tail": 950.0})
    found = quantity_of(name, row)
    assert (found[0].startswith(said), found[1]) == (True, fine)


def test_a_line_begins_with_the_state():
    for verdict, state, line in (
        ("Safe to report: they agree.", State.SAFE, "Safe to report: they agree."),
        ("Safe to report with support: so.", State.WITH_SUPPORT, "Safe to report with support: so."),
        ("The sum is off. They agree.", State.UNSAFE, "Not safe yet. The sum is off. They agree."),
        ("One chain only.", State.UNCHECKED, "Not checked. One chain only."),
    ):
        assert Diagnostics(pd.DataFrame(), verdict, state).line == line


def test_a_verdict_says_once_that_a_fit_is_not_safe():
    found = Diagnostics(pd.DataFrame(), "Not safe yet: the chains differ. Run 9.", State.UNSAFE)
    assert found.doubted(["The sum is off."]).line == "Not safe yet. The sum is off. The chains differ. Run 9."
    assert found.doubted([]).line == found.verdict, "without another reason, it is the reason"


@pytest.mark.parametrize(
    ("verdict", "state", "reason"),
    [
        ("The chains agree (R-hat up to 1.00). No topic is found. Go.", State.UNSAFE, "No topic is found."),
        ("The chains agree.", State.UNSAFE, "The chains agree."),
        ("Not safe yet: the chains differ. Run 9.", State.UNSAFE, "Not safe yet: the chains differ."),
        ("Safe to report: so. The chains agree.", State.SAFE, "Safe to report: so."),
    ],
)
def test_the_reason_of_a_verdict_is_not_that_chains_agree(verdict, state, reason):
    assert Diagnostics(pd.DataFrame(), verdict, state).reason == reason


def test_slow_chains_agree_only_roughly():
    found = diagnose({"a": traces(correlation=0.97)})
    assert found.verdict.startswith("Safe to report: the chains agree roughly")
    assert found.state == State.SAFE
    # of n draws with correlation c between neighbours, n (1 - c) / (1 + c) count
    assert found.table.loc["a", "ess_bulk"] == pytest.approx(4000 * 0.03 / 1.97, rel=0.6)


@pytest.mark.parametrize("shift", [1.0, 30.0])
def test_chains_in_other_places_disagree(shift):
    found = diagnose({"fine": traces(), "apart": traces(shift=shift)})
    assert found.verdict.startswith("Not safe yet: the chains differ (R-hat up to")
    assert found.state == State.UNSAFE
    assert found.table.loc["apart", "r_hat"] > 1.1 > found.table.loc["fine", "r_hat"]


def test_averages_over_many_chains_that_differ_are_steady():
    """Chains with nothing in common have a nested R-hat of sqrt(1 + 1 / C): ten are enough."""
    apart = np.random.default_rng(1).permutation(20) * 30.0
    for chains, state in ((4, State.UNSAFE), (8, State.UNSAFE), (11, State.WITH_SUPPORT)):
        values = traces(chains=chains, draws=50) + apart[:chains, None]
        found = diagnose({"apart": values, "log-likelihood": traces(chains=chains, draws=50)})
        assert found.table.loc["apart", "r_hat_nested"] == pytest.approx(np.sqrt(1.0 + 1.0 / chains), abs=0.015)
        assert found.state == state
    found = diagnose({"apart": traces(shift=30.0)})
    assert "averages over 4 chains are not steady" in found.verdict
    assert "Run about 10 chains" in found.verdict


def test_nested_r_hat_against_a_slow_version():
    values = np.random.default_rng(2).gamma(2.0, size=(3, 20)) + np.array([0.0, 0.3, 1.0])[:, None]
    order = np.argsort(np.argsort(values.ravel())).reshape(values.shape) + 1
    scores = NormalDist().inv_cdf
    z = np.array([[scores((rank - 0.375) / 60.25) for rank in chain] for chain in order])
    among = np.var([chain.mean() for chain in z], ddof=1)
    within = among + np.mean([np.var(chain, ddof=1) for chain in z])
    weights = np.array([0.5, 0.3, 0.2])
    expected = np.sqrt(1.0 + 0.38 * among / within)
    assert nested(values, weights) == pytest.approx(expected)
    other = np.stack([values, np.zeros_like(values)], axis=2)
    assert nested(other, weights) == pytest.approx(expected)
    assert nested(np.zeros((2, 5)), np.full(2, 0.5)) == 1.0


def test_a_log_likelihood_that_differs_does_not_speak_against_averages():
    found = diagnose({"rates": traces(shift=0.3), "log-likelihood": traces(shift=30.0)})
    assert found.state == State.WITH_SUPPORT
    assert "components with their support" in found.verdict


@pytest.mark.parametrize(
    ("quantities", "state"),
    [
        ({"a": traces()}, State.WITH_SUPPORT),
        ({"a": traces(correlation=0.97)}, State.WITH_SUPPORT),
        ({"rates": traces(shift=0.3), "log-likelihood": traces(shift=30.0)}, State.WITH_SUPPORT),
        ({"a": traces(shift=30.0)}, State.UNSAFE),
    ],
    ids=["agree", "roughly", "steady", "apart"],
)
def test_chains_that_share_no_component_are_promised_none(quantities, state):
    shared, none = (diagnose(quantities, None, each) for each in (True, False))
    assert none.state == state
    assert none.verdict.startswith(("Safe to report with support:", "Not safe yet:"))
    assert "components" not in none.verdict
    assert ("components" in shared.verdict) is (shared.state != State.SAFE)
    assert none.verdict.endswith(".")
    assert ".." not in none.verdict


@pytest.mark.parametrize(
    ("quantities", "said"),
    [
        ({"a": traces()}, "The chains agree (R-hat up to 1.0"),
        ({"a": traces(chains=11, draws=50) + 30.0 * np.arange(11)[:, None]}, "The chains differ"),
        ({"a": traces(shift=2.0)}, None),
    ],
)
def test_a_fit_that_is_wrong_for_another_reason_is_not_called_safe(quantities, said):
    verdict = diagnose(quantities).verdict
    left = withdrawn(f"{verdict} 1 of 4 topics is largely undetermined.")
    assert "afe to report" not in left
    assert "Report rates" not in left
    assert left.endswith(" 1 of 4 topics is largely undetermined.")
    assert left.startswith(said or verdict)


@pytest.mark.parametrize(("value", "said"), [(1.1, "1.10"), (1.1001, "1.11"), (1.0999, "1.10"), (1.0, "1.00")])
def test_a_number_above_its_bound_is_not_written_as_the_bound(value, said):
    assert upwards(value) == said


def test_the_worst_member_counts():
    members = np.stack([traces(seed=2), traces(shift=2.0), traces(seed=3)], axis=2)
    found = diagnose({"many": members}).table.loc["many"]
    alone = diagnose({"one": traces(shift=2.0)}).table.loc["one"]
    np.testing.assert_allclose(found, alone)


def test_one_chain_cannot_agree_with_itself():
    found = diagnose({"a": traces(chains=1)})
    assert found.verdict.startswith("One chain only")
    assert found.state == State.UNCHECKED
    assert np.isnan(found.table.loc["a", "r_hat_nested"])
    assert np.isnan(found.table.loc["a", "r_hat"])
    assert found.table.loc["a", "ess_bulk"] == pytest.approx(1000, rel=0.2)


@pytest.mark.parametrize("chains", [1, 4])
def test_a_few_draws_say_nothing(chains):
    assert diagnose({"a": traces(chains=chains, draws=3)}).verdict.startswith("Too few draws")


@pytest.mark.parametrize(
    ("converged", "iterations", "said"),
    [(True, 1, "Converged after 1 iteration;"), (False, 2, "Stopped after 2 iterations;")],
)
@pytest.mark.parametrize("share", [1.0, np.nan])
def test_an_optimiser_says_after_how_many_iterations_it_ended(converged, iterations, said, share):
    found = diagnose_optimiser("", converged, iterations, Share(share, 0.01))
    assert found.verdict.startswith(said)
    assert found.table.loc["fit", "signal_error"] == 0.01


@pytest.mark.parametrize(
    ("reports", "total", "said"),
    [
        (Share(0.7, 0.01), None, "Not safe yet: the fit expects only 70% (standard error 1%) of the positive"),
        (Share(0.7, 0.06), None, "Converged after 3 iterations; the fit explains the positive reports"),
        (Share(1.0, 0.01), Share(0.61, 0.02), "Not safe yet: the fit expects only 61% (standard error 2%) of the sum"),
        (Share(1.0, 0.01), Share(0.79, 0.02), "Converged after 3 iterations; the fit explains the positive reports"),
        (Share(np.nan, np.nan), Share(0.2, 0.01), "Converged after 3 iterations; the data hold no more"),
    ],
)
def test_an_optimiser_that_leaves_counts_out_is_not_to_be_trusted(reports, total, said):
    """In their number, or in their sum, by more than two standard errors."""
    assert diagnose_optimiser("Advice.", True, 3, reports, total).verdict.startswith(said)


def test_components_that_cannot_be_found_are_said_in_words():
    every = undetermined_in_words("community", "communities", 3, 3)
    assert every.startswith("The communities cannot be found: more than half of each differs from draw to draw.")
    one = undetermined_in_words("topic", "topics", 1, 30)
    assert one.startswith("1 of 30 topics is largely undetermined: more than half of such a topic differs")


def test_what_never_moves_is_no_disagreement():
    found = diagnose({"b": np.full((2, 200), 3.0)})
    assert "nan" not in found.verdict
    assert found.state is State.SAFE
