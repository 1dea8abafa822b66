"""How a fit goes through its data: made once when it starts, and given to everything that visits the data.

All of it is decided by the data and the kind of likelihood alone, since a choice by the state would bias a chain.
A part is found when it is first asked for.
"""

from functools import cached_property
from typing import Any

import numpy as np

from countveil.data.observations import Observations
from countveil.inference import factors, tokens, totals
from countveil.models.factorization import Factorization


class Plan:
    """Which cells a fit visits and which it proposes, in which blocks, and what passes over them need again and again.

    Attributes:
        data: the observations.
        model: as it is fitted; moves sweep with more components, for which the plan is the same.
    """

    def __init__(self, data: Observations, model: Factorization) -> None:
        self.data, self.model = data, model
        self._links: factors.Links | None = None

    @cached_property
    def tokens(self) -> tokens.Tokens | None:
        """How sweeps propose tokens; None if they visit all stored cells."""
        if self.model.level is not None:  # rates vary by cell
            return None
        law = self.data.law(self.model.likelihood, self.model.initial_parameters())
        return tokens.planned(self.data, law, self.model.fused_factor is not None)

    @cached_property
    def scales(self) -> factors.Scales:
        """What each factor's prior rates are multiplied by, for known offsets; raises ValueError."""
        return factors.offset_scales(self.model, self.data)

    @property
    def by_tokens(self) -> bool:
        """Whether sweeps by tokens draw the counts of cells that others sum out."""
        return self.tokens is not None and self.tokens.codes.code_c.size == 0

    @cached_property
    def seen(self) -> "Plan":
        """The plan of the cells that sweeps by tokens store, whose exposures are those of the data."""
        return self if self.tokens is None else Plan(self.tokens.entries, self.model)

    @cached_property
    def open_cells(self) -> totals.OpenCells:
        """The cells in totals whose reports leave them open."""
        return totals.open_cells(self.data)

    def with_counts(self, counts: np.ndarray) -> "Plan":
        """The plan if each open cell's report were its count."""
        return Plan(totals.with_counts(self.data, self.open_cells, counts), self.model)

    @cached_property
    def without_levels(self) -> "Plan":
        """The plan of the model without its level for every cell."""
        return Plan(self.data, self.model.without_level)

    @cached_property
    def cells(self) -> Observations:
        """The data with an exposure for every cell, of one where they have none."""
        return self.data if self.data.exposure is not None else self.data.exposed_as(np.ones(self.data.shape))

    @cached_property
    def fully_exposed(self) -> "Plan":
        """The plan of a chain with auxiliary noise: every cell has exposure 1 unless it is masked."""
        return Plan(self.data.fully_exposed(), self.model)

    def links(self, law: Any) -> factors.Links | None:
        """Exposures between actors if both sides use a free factor; found once, unless parameters change them."""
        f = self.model.shared
        if f is None or self.model.factors[f].fixed is not None:
            return None
        n_actors, n_columns = self.data.shape
        if law.likelihood.parameters:
            return factors.make_links(self.data, law, n_columns // n_actors)
        if self._links is None:
            self._links = factors.make_links(self.data, law, n_columns // n_actors)
        return self._links
