"""Checks of numbers and arrays: an error names the parameter, the rule and the value, and in an array the index."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def refuse(rule: str, broken: NDArray[np.bool_], value: NDArray[Any]) -> None:
    """Raise a ValueError with the first value that breaks the rule; broken and value have one shape."""
    if not broken.any():
        return
    index = tuple(int(i) for i in np.unravel_index(np.argmax(broken), broken.shape))
    where = f" at index {index}" if index else ""
    raise ValueError(f"{rule}, got {value[index]}{where}")


def as_floats(name: str, value: ArrayLike) -> FloatArray:
    """The value as an array of doubles; TypeError where it holds anything but real numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} must be real numbers, got {type(value).__name__} of dtype {array.dtype}")
    return array.astype(np.float64)


def check_positive(name: str, value: ArrayLike) -> FloatArray:
    """The value as doubles, all of them positive and finite."""
    array = as_floats(name, value)
    refuse(f"{name} must be positive", ~(array > 0.0), array)
    refuse(f"{name} must be finite", np.isinf(array), array)
    return array


def check_non_negative(name: str, value: ArrayLike) -> FloatArray:
    """The value as doubles, all of them finite and at least zero."""
    array = as_floats(name, value)
    refuse(f"{name} must be non-negative", ~(array >= 0.0), array)
    refuse(f"{name} must be finite", np.isinf(array), array)
    return array


def check_alpha(value: ArrayLike) -> FloatArray:
    """The noise level as doubles, all of them in [0, 1)."""
    array = as_floats("alpha", value)
    refuse("alpha must be in [0, 1)", ~((array >= 0.0) & (array < 1.0)), array)
    return array


def check_dispersion(value: ArrayLike) -> FloatArray:
    """The dispersion of bursty counts as doubles, all of them in (0, 1)."""
    array = as_floats("dispersion", value)
    refuse("dispersion must be in (0, 1)", ~((array > 0.0) & (array < 1.0)), array)
    return array


def check_whole(name: str, value: ArrayLike) -> NDArray[np.int64]:
    """The value as 64-bit integers; fractions, NaN, infinities and numbers from 2^63 on are refused."""
    array = np.asarray(value)
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} must be whole numbers, got {type(value).__name__} of dtype {array.dtype}")
    if array.dtype.kind == "f":
        refuse(f"{name} must be whole numbers", ~(np.isfinite(array) & (np.floor(array) == array)), array)
    if array.dtype.kind in "uf":
        refuse(f"{name} must be below 2^63 in size", ~((array >= -(2.0**63)) & (array < 2.0**63)), array)
    return array.astype(np.int64)


def check_together(**parameters: NDArray[Any]) -> tuple[int, ...]:
    """The shape that the named arrays broadcast to; ValueError with their shapes where there is none."""
    try:
        return np.broadcast_shapes(*(array.shape for array in parameters.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in parameters.items())
        raise ValueError(f"shapes must broadcast together, got {shapes}") from None


def check_generator(rng: object) -> np.random.Generator:
    """The generator itself; TypeError for anything else."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    return rng
