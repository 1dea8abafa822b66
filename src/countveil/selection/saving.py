"""The fits that a comparison has finished, on disk: their scores, in one .npz file, written atomically."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from countveil.common.files import replacing
from countveil.data.io import check_npz

FORMAT = 2


class Scored(NamedTuple):
    """What became of one fit: the score of every cell of its fold, or why there is none."""

    scores: np.ndarray
    seconds: float
    failure: str = ""


Place = tuple[int, int]  # of a fit: numbers of its model and of its fold


def write(path: Path, mark: str, done: dict[Place, Scored]) -> None:
    """Write all fits that did not fail, in one step."""
    content: dict[str, Any] = {"format": np.array(FORMAT), "fingerprint": np.array(mark)}
    for (model, fold), scored in done.items():
        if not scored.failure:
            content[f"scores_{model}_{fold}"] = scored.scores
            content[f"seconds_{model}_{fold}"] = np.array(scored.seconds)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **content)


def read(path: Path, mark: str, sizes: dict[Place, int]) -> dict[Place, Scored]:
    """The fits in a file that ``write`` wrote; ``sizes`` are the numbers of cells of all fits.

    Raises:
        ValueError: the file is not such a file, is damaged, or belongs to another comparison.
    """
    try:
        check_npz(path)
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            content = {name: stored[name] for name in stored.files}
        version, found = int(content["format"]), str(content["fingerprint"])
        if version != FORMAT:
            raise ValueError(f"format {version}, not {FORMAT}")
    except Exception as error:
        raise ValueError(
            f"checkpoint {path} must be a file that compare wrote, got: {error!s:.300}"
        ) from error
    if found != mark:
        raise ValueError(
            f"checkpoint {path} must be of the same data, models and seed, got that of another comparison"
        )
    done = {}
    for (model, fold), size in sizes.items():
        scores = content.get(f"scores_{model}_{fold}")
        if scores is None:
            continue
        seconds = content.get(f"seconds_{model}_{fold}", np.array(np.nan))
        if (
            scores.shape != (size,)
            or scores.dtype != np.float64
            or not np.isfinite(scores).all()
            or seconds.shape
        ):
            raise ValueError(f"checkpoint {path} must hold the scores of whole folds, got others")
        done[model, fold] = Scored(scores, float(seconds))
    return done
