"""The reports that a fit was made of, as it sees them."""

from typing import TypeVar

import numpy as np

from countveil.data.joining import by_wave
from countveil.data.observations import Observations
from countveil.data.reports import observations_of
from countveil.fit.base import FactorizationEstimator
from countveil.fit.dynamics import DynamicModel
from countveil.fit.parameters import check_labels_of_fit
from countveil.inference.posterior import digest_of, noise_of, reports_kept
from countveil.laws.noise import AnyMechanismNoise
from countveil.laws.noise.protocol import Noise
from countveil.privacy import Release

Data = TypeVar("Data", bound=Observations)


def stating(release: Release | Observations | None) -> tuple[Release, ...]:
    """What states what was promised: a release, or those that were joined; none of others, which state noise alone."""
    if isinstance(release, Release):
        return (release,)
    return (release.provenance.releases or ()) if isinstance(release, Observations) else ()


def observed(fit: FactorizationEstimator, release: Release | Observations) -> Observations:
    """The release as the fit sees it, in the matrix form of its model.

    Raises:
        ValueError: a release of another shape, other labels, another mechanism, other noise levels or other reports
            than the fit's.
    """
    return both_forms(fit, release)[1]


def over_axes(fit: FactorizationEstimator, release: Release | Observations) -> Observations:
    """The release over the axes of the fit's data; raises ValueError as ``observed``."""
    return both_forms(fit, release)[0]


def both_forms(fit: FactorizationEstimator, release: Release | Observations) -> tuple[Observations, Observations]:
    """The release over the axes of the fit's data, and as ``observed``, whose errors it raises."""
    axes = fit._reader.axes
    shape = tuple(len(known) for known in axes.values())
    waves = by_wave(release) if isinstance(release, Release) and release.extras.waves is not None else None
    steps_added = isinstance(fit, DynamicModel)  # so that its axis of time may be longer
    if waves is not None and (waves.mode_shape == shape or (steps_added and len(waves.mode_shape) == len(shape))):
        data: Observations = waves
    else:
        data = in_shape_of(fit, observations_of(release))
    if isinstance(fit, DynamicModel):  # before shapes are compared: it masks time steps that have no data
        data = fit._observed(data)
    said, kept = data.provenance.promise, fit.posterior.attrs.get("promised_together")
    if said and kept and said.strip() != str(kept).strip():
        raise ValueError(
            f"release must be the one that was fitted, got reports that promise something else together: {said}"
        )
    if data.mode_shape != shape:
        raise ValueError(
            f"release must be the one that was fitted, {' x '.join(axes)} = {shape}, got {data.mode_shape}"
        )
    check_labels_of_fit("release must be the one that was fitted", axes, data.labels)
    found = fit._reader.data_matrix(fit._reader.exposed("data", fit._observed(data)))
    if fit.posterior.attrs["observations"] == "private":
        check_noise(fit, found)
        if reports_kept(fit.posterior) not in (None, digest_of(found)):
            raise ValueError(
                "release must be the one that was fitted, got reports that differ from those of the fit in some cell"
            )
    return data, found


def check_noise(fit: FactorizationEstimator, data: Observations) -> None:
    """Refuse data, in the matrix form of the model, whose noise differs from the fit's in any row or cell.

    Raises:
        ValueError: another mechanism, or other noise levels.
    """
    rule = "release must be the one that was fitted"
    noise, level = noise_of(fit.posterior)
    if data.noise.mechanism != noise.mechanism:
        raise ValueError(f"{rule}, with the mechanism {named(noise)}, got {named(data.noise)}")
    kept = level.reshape((data.shape[0], -1))
    differs = ~np.isclose(kept, data.cell_level, rtol=1e-9, atol=0.0).all(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        own, given = (np.broadcast_to(each, data.shape)[row] for each in (kept, data.cell_level))
        cell = int(np.argmax(~np.isclose(own, given, rtol=1e-9, atol=0.0)))
        raise ValueError(f"{rule}, with {noise.level} {own[cell]:.6g} in row {row}, got {given[cell]:.6g} in row {row}")


def in_shape_of(fit: FactorizationEstimator, data: Data, labels: list[list[str] | None] | None = None) -> Data:
    """The reports of a release, folded into a tensor, with labels for its axes, where the fit is of one.

    Raises:
        ValueError: a matrix that cannot be folded into the fit's shape.
    """
    shape = tuple(len(known) for known in fit._reader.axes.values())
    if len(shape) == 2 or len(data.mode_shape) == len(shape):
        return data
    if data.shape == (shape[0], int(np.prod(shape[1:]))):
        return data.folded(shape, labels)
    if isinstance(fit, DynamicModel):  # which may have added time steps
        if data.shape[1] == int(np.prod(shape[1:])):
            return data.folded((data.shape[0], *shape[1:]), None if labels is None else [None, *labels[1:]])
        return data.folded()
    raise ValueError(f"release must be the one that was fitted, {shape} in all, got {data.shape}")


def named(noise: Noise) -> str:
    """A mechanism, or all that made the reports."""
    return noise.in_words(np.ones(1)) if isinstance(noise, AnyMechanismNoise) else noise.mechanism
