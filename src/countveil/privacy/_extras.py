"""What few releases have besides reports: covariates, waves, totals, a mask, exposures, and names of axes.

Exposures are what counts are expected to be proportional to, such as a population. They are public numbers that whoever
imports reports states alongside them.
"""

from collections.abc import Mapping
from math import isfinite, prod
from typing import Any, NamedTuple

from countveil.privacy import _cells, _covariates, _npy, _totals, _waves
from countveil.privacy._covariates import RowCovariates
from countveil.privacy._reports import checked_names
from countveil.privacy._text import first_wrong
from countveil.privacy._totals import ReleasedTotals
from countveil.privacy._waves import Waves
from countveil.privacy.errors import ReleaseError
from countveil.privacy.level import Level


class ReleasedExposure(NamedTuple):
    """Exposures over axes that are 1 where all along one have the same.

    ``values`` has those of every cell of ``shape``, which broadcasts to that of the reports, in row-major order: a
    read-only array of floats, or a tuple where NumPy is not installed.
    """

    values: Any
    shape: tuple[int, ...]


class Extras(NamedTuple):
    """Optional parts of a release.

    Attributes:
        covariates: what participants stated in the clear, which ``countveil.covariates_of`` makes a table of.
        waves: where the same people were asked in several periods, the names of these, in order, and the place among
            them of each row. Rows with the same label are then one person's, and ``countveil.by_wave`` gives them an
            axis of time.
        totals: families of sums of the counts that were imported too, each a ``ReleasedTotals`` of the axes that are
            summed over, or of groups of cells, with the sums and the mechanism that they were reported by, None where
            they are exact.
        mask: booleans, True where a cell was never reported, whose report is 0.
        exposure: known exposures of the cells, such as populations, that were imported too.
        axis_names: what a table that was imported calls its axes, None for an axis without a name.
    """

    covariates: RowCovariates | None = None
    waves: Waves | None = None
    totals: tuple[ReleasedTotals, ...] | None = None
    mask: Any = None
    exposure: ReleasedExposure | None = None
    axis_names: tuple[str | None, ...] | None = None

    def checked(
        self,
        reports: Any,
        shape: tuple[int, ...],
        row_labels: tuple[str, ...] | None,
        directed: bool | None,
        source: str | None,
    ) -> "Extras":
        """The same parts, unchangeable; raises ReleaseError where they do not fit the reports or each other."""
        mask = _cells.checked_mask(self.mask, reports, shape, source)
        waves = _waves.checked(self.waves, row_labels, shape[0], directed)
        if source is None and self.totals is not None:
            raise ReleaseError(
                "totals must come with imported reports, because exact ones break the promise of noise, got totals "
                "without a source: leave them out"
            )
        if source is None and self.exposure is not None:
            raise ReleaseError(
                "exposure must come with imported reports, got one without a source: pass it with the release to "
                "countveil.Reports.from_release"
            )
        if directed is not None or waves is not None:
            parts = {"masks": mask, "totals": self.totals, "an exposure": self.exposure}
            for name, part in parts.items():
                if part is not None:
                    raise ReleaseError(f"releases of networks and of studies in waves cannot have {name}")
        return Extras(
            _covariates.checked(self.covariates, shape[0]),
            waves,
            None if self.totals is None else _totals.checked(self.totals, shape),
            mask,
            None if self.exposure is None else checked_exposure(self.exposure, shape),
            None if self.axis_names is None else checked_names(self.axis_names, len(shape)),
        )

    def cells_in_words(self, n_axes: int) -> str:
        """Which cells were not reported, and what else is known of them; empty where nothing is."""
        masked, totals = _cells.in_words(self.mask, n_axes), _totals.in_words(self.totals)
        return masked + totals + exposure_in_words(self.exposure)

    def rows_in_words(self, row_labels: tuple[str, ...] | None, levels: Level | tuple[Level, ...] | None) -> str:
        """Whose reports the rows are, and what is known of these people; empty where nothing is."""
        return _waves.in_words(self.waves, row_labels, levels) + _covariates.in_words(self.covariates)

    def described(self, n_axes: int) -> dict[str, Any]:
        """The entries of these parts in a file's description."""
        found: dict[str, Any] = {}
        if self.covariates is not None:
            found["covariates"] = _covariates.encoded(self.covariates)
        if self.waves is not None:
            found["waves"] = list(self.waves.names)
        if self.totals is not None:
            found["totals"] = _totals.described(self.totals)
        if self.mask is not None:
            found["masked"] = len(_cells.encoded_mask(self.mask, n_axes))
        if self.exposure is not None:
            found["exposure_shape"] = list(self.exposure.shape)
        if self.axis_names is not None:
            found["axis_names"] = list(self.axis_names)
        return found

    def arrays(self, n_axes: int) -> dict[str, Any]:
        """The arrays of these parts in a file, by name."""
        found = {} if self.totals is None else _totals.arrays(self.totals)
        if self.waves is not None:
            found["wave_of_row"] = self.waves.of_row
        if self.mask is not None:
            found["masked_cells"] = _cells.encoded_mask(self.mask, n_axes)
        if self.exposure is not None:
            found["exposure"] = self.exposure.values
        return found

    @classmethod
    def decoded(cls, meta: Mapping[str, Any], values: Mapping[str, Any]) -> "Extras":
        """The parts that a file's description and arrays hold; raises ReleaseError for what are none."""
        waves, shape = meta.get("waves"), meta.get("exposure_shape")
        return cls(
            _covariates.decoded(meta["covariates"]) if "covariates" in meta else None,
            None if waves is None else Waves(tuple(waves), tuple(int(each) for each in values["wave_of_row"])),
            _totals.decoded(meta, values),
            _cells.decoded_mask(values["masked_cells"], tuple(meta["shape"])) if "masked" in meta else None,
            None if shape is None else ReleasedExposure(values["exposure"], tuple(shape)),
            tuple(meta["axis_names"]) if "axis_names" in meta else None,
        )


NO_EXTRAS = Extras()


def checked_exposure(given: ReleasedExposure, shape: tuple[int, ...]) -> ReleasedExposure:
    """The same with values that cannot be changed; raises ReleaseError where they do not fit the reports."""
    values, own = given[0], tuple(given[1])
    if not exposure_fits(own, shape):
        raise ReleaseError(f"exposure must have a shape that broadcasts to {shape}, got {str(own)[:80]}")
    numpy = _npy.optional("numpy")
    if numpy is None:
        listed = tuple(float(value) for value in values)
        positive = all(isfinite(value) and value > 0.0 for value in listed)
    else:
        listed = numpy.array(values, dtype=numpy.float64).reshape(-1)
        positive = bool((numpy.isfinite(listed) & (listed > 0.0)).all())
        listed.flags.writeable = False
    if len(listed) != prod(own):
        raise ReleaseError(f"exposure must be {prod(own)} numbers, one for each of {own}, got {len(listed)}")
    if not positive:
        wrong = first_wrong(map(float, listed), lambda value: isfinite(value) and value > 0.0)
        raise ReleaseError(f"exposure must be positive and finite, got {wrong}")
    return ReleasedExposure(listed, own)


def exposure_fits(own: Any, shape: tuple[int, ...]) -> bool:
    """Whether a shape, of whole numbers, is that of the reports or 1 along each axis."""
    return len(own) == len(shape) and all(
        type(n) is int and n in (1, length) for n, length in zip(own, shape, strict=True)
    )


def exposure_in_words(exposure: ReleasedExposure | None) -> str:
    """That there are exposures, and of what; empty where there are none."""
    if exposure is None:
        return ""
    axes = [str(axis) for axis, length in enumerate(exposure.shape) if length > 1]
    if len(axes) == len(exposure.shape):
        return "Expected counts are proportional to a known exposure of each cell, such as its population. "
    axis = "axis" if len(axes) == 1 else "axes"
    where = f"which varies along {axis} {' and '.join(axes)}" if axes else "the same for all cells"
    return f"Expected counts are proportional to a known exposure, such as a population, {where}. "
