"""What samplers ask of a prior, and that they ask it."""

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.models.priors import PRIORS, Conditional, GammaPrior, LearnedShapePrior
from tests.joint import run_chain, shaped_model

COLLAPSED = {"gamma-of-learned-shape", "gamma-with-covariates", "gamma-with-seeds"}
NOT_INDEPENDENT = {"dirichlet", "gamma-chain", "gamma-with-dates", "gamma-with-layers", "levels"}


@pytest.mark.parametrize("kind", PRIORS)
def test_every_prior_states_how_it_is_drawn(kind):
    assert PRIORS[kind].collapsed is (kind in COLLAPSED)
    assert PRIORS[kind].independent is not (kind in NOT_INDEPENDENT)


def test_a_prior_of_independent_gammas_draws_them_and_leaves_its_hyperparameters():
    rng, hypers = np.random.default_rng(1), np.ones((1, 2))
    given = Conditional(2.0, np.ones((4000, 2)), np.full((4000, 2), 3.0), np.full((4000, 2), 0.5))
    drawn, left = GammaPrior(0.5, 1.0, True).draw(None, hypers, given, rng)
    assert left is hypers
    assert drawn.mean() == pytest.approx(3.5 / 2.5, rel=0.03)


def test_a_sweep_draws_the_shape_of_each_factor_with_its_entries_summed_out(monkeypatch):
    """Without that, chains have the same law and hardly move, which no test of laws sees."""
    asked, draw = [], LearnedShapePrior.draw_hypers_given_counts

    def noted(self, factor, *arguments):
        asked.append(factor.shape)
        return draw(self, factor, *arguments)

    monkeypatch.setattr(LearnedShapePrior, "draw_hypers_given_counts", noted)
    data = PrivatizedCounts(np.random.default_rng(1).poisson(1.0, (7, 4)), 0.4)
    list(run_chain(data, shaped_model((7, 4)), 3, seed=1))
    assert sorted(asked) == [(4, 2)] * 3 + [(7, 2)] * 3


@pytest.mark.parametrize(
    ("mean", "rate", "message"),
    [(5.0, 1.0, "with mean None, got 5.0"), (None, 2.0, "with rate 1.0, got 2.0"), (5.0, None, "with rate 1.0")],
)  # fmt: skip
def test_a_file_cannot_say_which_parameters_are_compared(mean, rate, message):
    with pytest.raises(ValueError, match=message):
        LearnedShapePrior(mean, rate).check_file("must be alike", LearnedShapePrior(None, 1.0))
