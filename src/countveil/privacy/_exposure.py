"""Known exposures of the cells of a release, such as their population: what a count is expected to be proportional to.

They are public numbers that whoever imports reports states beside them.
"""

from math import isfinite, prod
from typing import Any, NamedTuple

from countveil.privacy import _npy
from countveil.privacy._text import first_wrong
from countveil.privacy.errors import ReleaseError


class ReleasedExposure(NamedTuple):
    """Exposures over axes that are 1 where all along one have the same.

    ``values`` has those of every cell of ``shape``, which broadcasts to that of the reports, in row-major order: a
    read-only array of floats, or a tuple where NumPy is not installed.
    """

    values: Any
    shape: tuple[int, ...]


def checked(
    given: Any, shape: tuple[int, ...], source: str | None, network_or_waves: bool
) -> ReleasedExposure | None:
    """The same with values that cannot be changed; raises ReleaseError where they do not fit the reports."""
    if given is None:
        return None
    if source is None:
        raise ReleaseError(
            "exposure must come with imported reports, got one without a source: pass it with the release to "
            "countveil.Reports.from_release"
        )
    if network_or_waves:
        raise ReleaseError("releases of networks and of studies in waves cannot have an exposure")
    values, own = given[0], tuple(given[1])
    if not fits(own, shape):
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


def fits(own: Any, shape: tuple[int, ...]) -> bool:
    """Whether a shape, of whole numbers, is that of the reports or 1 along each axis."""
    return len(own) == len(shape) and all(
        type(n) is int and n in (1, length) for n, length in zip(own, shape, strict=True)
    )


def in_words(exposure: ReleasedExposure | None) -> str:
    """That there are exposures, and of what; empty where there are none."""
    if exposure is None:
        return ""
    axes = [str(axis) for axis, length in enumerate(exposure.shape) if length > 1]
    where = f"along axis {' and '.join(axes)}" if axes else "the same for all cells"
    return f"Expected counts are proportional to a known exposure, such as a population, {where}. "
