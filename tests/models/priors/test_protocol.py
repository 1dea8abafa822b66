"""What samplers ask of a prior, and that they ask it."""

import numpy as np
import pytest

from countveil.data.observations import PrivatizedCounts
from countveil.models.priors import (
    PRIORS,
    DirichletPrior,
    GammaPrior,
    LearnedShapePrior,
    SeededPrior,
    draws_jointly,
    is_collapsed,
)
from tests.joint import run_chain, shaped_model

COLLAPSED = {"gamma-of-learned-shape", "gamma-with-covariates", "gamma-with-seeds"}
JOINT = {"dirichlet", "gamma-chain", "gamma-with-dates"}


@pytest.mark.parametrize("kind", PRIORS)
def test_every_prior_is_known_for_what_it_draws(kind):
    assert is_collapsed(PRIORS[kind]) is (kind in COLLAPSED)
    assert draws_jointly(PRIORS[kind]) is (kind in JOINT)


def test_priors_say_it_as_their_classes_do():
    known, learned = GammaPrior(0.3, 2.0, True), LearnedShapePrior(0.4, None)
    said = [(is_collapsed(prior), draws_jointly(prior)) for prior in (known, learned, DirichletPrior(None))]
    assert said == [(False, False), (True, False), (False, True)]
    assert is_collapsed(SeededPrior(learned, np.ones((2, 1))))


def test_a_sweep_draws_the_shape_of_each_factor_with_its_entries_summed_out(monkeypatch):
    """Without that, chains have the same law and hardly move, which no test of laws sees."""
    given, draw = [], LearnedShapePrior.draw_hypers_given_counts

    def noted(self, factor, *arguments):
        given.append(factor.shape)
        return draw(self, factor, *arguments)

    monkeypatch.setattr(LearnedShapePrior, "draw_hypers_given_counts", noted)
    data = PrivatizedCounts(np.random.default_rng(1).poisson(1.0, (7, 4)), 0.4)
    list(run_chain(data, shaped_model((7, 4)), 3, seed=1))
    assert sorted(given) == [(4, 2)] * 3 + [(7, 2)] * 3
