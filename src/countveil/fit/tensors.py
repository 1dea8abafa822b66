"""TensorModel: components of counts with any number of axes, only ever seen through noise."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from countveil.common.parameters import WholeOrAuto, declared
from countveil.fit import projection
from countveil.fit.base import FactorizationEstimator
from countveil.fit.choosing import size_of
from countveil.fit.effects import Effects
from countveil.fit.rows import Formula, with_covariates
from countveil.models.einsum import Spec, parse_spec
from countveil.models.layout import Layout, checked_modes

AXES = "abcdefghij"


@declared
class TensorModel(projection.TransformerMixin, FactorizationEstimator):
    """Components of a tensor of counts that was only ever seen through noise.

    Counts have the rates sum_k f_ik g_jk h_tk .., with gamma priors: a CP factorization (Schein et al. 2015). They are
    Poisson counts, or come in bursts at that rate (``likelihood``). In the posterior every component's factors sum to
    one over their mode, except those of the first mode, which hold the component's expected counts, or bursts. For a
    Tucker tensor see ``PoissonFactorization``.

    Args:
        n_components: number of components K, or "auto", as for ``TopicModel``.
        modes: names of the data's axes; mode0, mode1, ... by default.
        prevalence: a formula of covariates of the first mode's entries, such as "~ region", which ``fit`` takes as
            ``covariates``: how much of an entry's counts is expected from each component then depends on them
            (``effects``).
        **options: the options of all models, listed by the reference and ``help``.

    Attributes:
        posterior: one variable per mode, "factor_<mode>", with dims (<mode>, component).
    """

    n_components: Annotated[int | str, WholeOrAuto()] = 10
    _: KW_ONLY
    modes: Sequence[str] | None = None
    prevalence: Annotated[str | None, Formula()] = None

    _rows_are_new_data: ClassVar[bool] = True
    _sized_by: ClassVar[tuple[str, str] | None] = "n_components", "k"

    def _spec(self, n_modes: int) -> Spec:
        if n_modes > len(AXES):
            raise ValueError(f"data must have at most {len(AXES)} axes, got {n_modes}")
        axes = AXES[:n_modes]
        text = ",".join(f"{a}k" for a in axes) + f"->{axes}"
        return parse_spec(text, names=[f"factor_{mode}" for mode in self._modes(n_modes)])

    def _bursty_by_column(self) -> bool:
        return True  # a column is a combination of entries of all axes but the first

    def _priors(self, spec: Spec, sizes: dict[str, int], mean_count: float) -> dict[str, Any]:
        priors = super()._priors(spec, sizes, mean_count)
        return priors if self.covariates_ is None else with_covariates(self, priors, spec.names[0])

    def _modes(self, n_modes: int) -> list[str]:
        if self.modes is None:
            return [f"mode{i}" for i in range(n_modes)]
        return checked_modes(self.modes, n_modes, "component", "term")

    def _ranks(self, spec: Spec) -> dict[str, int]:
        return {"k": size_of(self)}

    def _layout(self, spec: Spec) -> Layout:
        dims = dict(zip(spec.output, self._modes(len(spec.output)), strict=True)) | {"k": "component"}
        return Layout(dims, dict(zip(spec.names, spec.factor_axes, strict=True)))

    @property
    def effects(self) -> Effects:
        """Tables of what covariates and dates do to components."""
        return Effects(self)

    def top_entries(self, mode: str, n: int = 10, interval: float = 0.9, *, uncalibrated: bool = False) -> pd.DataFrame:
        """The n largest entries of each component along one mode, by their numbers, with intervals.

        Columns: component, prevalence (its share of all expected counts), rank, the mode, probability, lower, upper.
        Where intervals are not calibrated: as in ``parts.members``.
        """
        modes = list(self._reader.axes)
        if mode not in modes:
            raise ValueError(f"mode must be one of {modes}, got {mode!r}")
        found = self.parts.members(mode, n, interval, uncalibrated=uncalibrated)
        return found.rename(columns={"member": mode})

    transform = projection.transform
    fit_transform = projection.fit_transform

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of ``transform``'s columns: component0, component1, ..."""
        return np.array([f"component{k}" for k in range(self.posterior["posterior"].sizes["component"])], dtype=object)
