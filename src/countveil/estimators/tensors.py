"""TensorModel: components of counts with any number of axes, only ever seen through noise."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from countveil.estimators.base import FactorizationEstimator
from countveil.estimators.checks import check_integer
from countveil.estimators.projection import RowProjection
from countveil.estimators.topics import check_interval
from countveil.inference import posterior as posteriors
from countveil.models.layout import RESERVED, Layout
from countveil.models.spec import Spec, parse_spec

AXES = "abcdefghij"


class TensorModel(RowProjection, FactorizationEstimator):
    """Components of a tensor of counts that was only ever seen through noise.

    Counts are y_ijt.. ~ Poisson(sum_k f_ik g_jk h_tk ..) with gamma priors: a CP factorization (Schein et al. 2015). In
    the posterior every component's factors sum to one over their mode, but for the first mode's, which hold the
    component's expected counts. For a Tucker tensor see ``PoissonFactorization``.

    Args:
        n_components: number of components K.
        modes: names of the data's axes; mode0, mode1, ... by default.
        all others: as for every model, see ``FactorizationEstimator``.

    Attributes, beside those of every model:
        posterior: one variable a mode, "factor_<mode>", with dims (<mode>, component).
    """

    rows_are_new_data: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int = 10,
        *,
        modes: Sequence[str] | None = None,
        method: str = "gibbs",
        draws: int = 500,
        tune: int = 500,
        chains: int = 4,
        thin: int = 1,
        start: str = "least-squares",
        max_iter: int = 500,
        tolerance: float = 2e-3,
        expectation: str | None = None,
        center: str = "mode",
        passes: int = 5,
        batch_rows: int = 256,
        prior_shape: float = 0.1,
        prior_rate: float | None = None,
        alpha: float | None = None,
        seed: int | None = None,
        threads: int | None = None,
        engine: str | None = None,
        progress: bool | None = None,
    ) -> None:
        self._remember(locals())

    def _spec(self, n_modes: int) -> Spec:
        if n_modes > len(AXES):
            raise ValueError(f"data must have at most {len(AXES)} axes, got {n_modes}")
        axes = AXES[:n_modes]
        text = ",".join(f"{a}k" for a in axes) + f"->{axes}"
        return parse_spec(text, names=[f"factor_{mode}" for mode in self._modes(n_modes)])

    def _modes(self, n_modes: int) -> list[str]:
        if self.modes is None:
            return [f"mode{i}" for i in range(n_modes)]
        names = [str(mode) for mode in self.modes]
        if len(names) != n_modes or len(set(names)) != n_modes:
            raise ValueError(f"modes must name each of the {n_modes} axes of the data once, got {names}")
        rates = [f"{name}_rate" for name in names]
        reserved = {*RESERVED, "component", *rates, *(f"factor_{name}" for name in names + rates)}
        if reserved.intersection(names):
            raise ValueError(
                f"modes must not be called {sorted(reserved.intersection(names))}, which the posterior uses itself"
            )
        return names

    def _ranks(self, spec: Spec) -> dict[str, int]:
        return {"k": self.n_components}

    def _layout(self, spec: Spec) -> Layout:
        dims = dict(zip(spec.output, self._modes(len(spec.output)), strict=True)) | {"k": "component"}
        return Layout(dims, dict(zip(spec.names, spec.factor_axes, strict=True)))

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        super()._check_parameters()

    def top_entries(self, mode: str, n: int = 10, interval: float = 0.9) -> pd.DataFrame:
        """The n largest entries of each component along one mode, largest component first, with intervals.

        Columns: component, prevalence (its share of all expected counts), rank, the mode, probability, lower, upper.
        """
        check_integer("n", n, 1)
        check_interval(interval)
        tree, model, layout = self._fitted()
        modes = layout.dims_of(model.spec.output)
        if mode not in modes:
            raise ValueError(f"mode must be one of {list(modes)}, got {mode!r}")
        sizes = self._sizes()
        if mode == modes[0]:
            name = model.factors[0].name
            shares = tree["posterior"][name] / tree["posterior"][name].sum(mode)
            tree = tree.copy()
            tree["posterior"] = tree["posterior"].dataset.assign({name: shares})
        return posteriors.top_entries(tree, f"factor_{mode}", "component", n, interval, sizes)

    def prevalence(self, interval: float = 0.9) -> pd.DataFrame:
        """Each component's share of all expected counts, with intervals.

        Columns: component, prevalence, lower, upper.
        """
        check_interval(interval)
        return posteriors.shares_table(self._sizes(), "component", interval)

    def _sizes(self) -> np.ndarray:
        """(C S, K) expected counts of each component."""
        return posteriors.flat_draws(self.posterior, self.model_.factors[0].name).sum(
            axis=1, dtype=np.float64
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of ``transform``'s columns: component0, component1, ..."""
        return np.array(
            [f"component{k}" for k in range(self.posterior["posterior"].sizes["component"])], dtype=object
        )
