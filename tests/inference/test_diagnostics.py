import numpy as np
import pytest

from countveil.inference.diagnostics import (
    Share,
    contradiction_in_words,
    diagnose,
    diagnose_optimiser,
    undetermined_in_words,
)
from countveil.noise.protocol import Contradiction


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
    assert found.verdict.startswith("The chains agree (R-hat up to 1.00)")
    assert found.table.columns.tolist() == ["r_hat", "ess_bulk", "ess_tail"]
    assert found.table.loc["a", "ess_bulk"] == pytest.approx(4000, rel=0.15)


def test_slow_chains_agree_only_roughly():
    found = diagnose({"a": traces(correlation=0.97)})
    assert found.verdict.startswith("The chains agree roughly")
    # of n draws with correlation c between neighbours, n (1 - c) / (1 + c) count
    assert found.table.loc["a", "ess_bulk"] == pytest.approx(4000 * 0.03 / 1.97, rel=0.6)


@pytest.mark.parametrize("shift", [1.0, 30.0])
def test_chains_in_other_places_disagree(shift):
    found = diagnose({"fine": traces(), "apart": traces(shift=shift)})
    assert found.verdict.startswith("The chains disagree (R-hat up to")
    assert found.table.loc["apart", "r_hat"] > 1.1 > found.table.loc["fine", "r_hat"]


def test_the_worst_member_counts():
    members = np.stack([traces(seed=2), traces(shift=2.0), traces(seed=3)], axis=2)
    found = diagnose({"many": members}).table.loc["many"]
    alone = diagnose({"one": traces(shift=2.0)}).table.loc["one"]
    assert found.tolist() == alone.tolist()


def test_one_chain_cannot_agree_with_itself():
    found = diagnose({"a": traces(chains=1)})
    assert found.verdict.startswith("One chain only")
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
        (
            Share(0.7, 0.01),
            None,
            "Not to be trusted: the fit expects only 70% (standard error 1%) of the positive",
        ),
        (Share(0.7, 0.06), None, "Converged after 3 iterations; the fit explains the positive reports"),
        (
            Share(1.0, 0.01),
            Share(0.61, 0.02),
            "Not to be trusted: the fit expects only 61% (standard error 2%) of the sum",
        ),
        (
            Share(1.0, 0.01),
            Share(0.79, 0.02),
            "Converged after 3 iterations; the fit explains the positive reports",
        ),
        (Share(np.nan, np.nan), Share(0.2, 0.01), "Converged after 3 iterations; the data hold no more"),
    ],
)
def test_an_optimiser_that_leaves_counts_out_is_not_to_be_trusted(reports, total, said):
    """In their number, or in their sum, by more than two standard errors."""
    assert diagnose_optimiser("Advice.", True, 3, reports, total).verdict.startswith(said)


def test_a_contradicted_level_is_said_with_both_numbers():
    said = contradiction_in_words("alpha", Contradiction(0.5, 0.41234, True))
    assert said.startswith(
        "The reports contradict their alpha: 0.5 is stated, but their noise looks like alpha at most 0.412."
    )


def test_components_that_cannot_be_found_are_said_in_words():
    every = undetermined_in_words("community", "communities", 3, 3)
    assert every.startswith(
        "The communities cannot be found: more than half of each differs from draw to draw."
    )
    one = undetermined_in_words("topic", "topics", 1, 30)
    assert one.startswith("1 of 30 topics are largely undetermined: more than half of such a topic differs")
