"""The options that models share, each declared once: its type, its default, what it may be, and what it does.

A new one is one entry here: it reaches the signature, ``help``, scikit-learn's ``get_params``, ``set_params`` and
``clone``, the check of its values, and the reference of every model that takes these options.
"""

from typing import Annotated, TypedDict

from countveil.estimators.parameters import OneOf, Option, Positive, Whole
from countveil.inference.chains import STARTS


# fmt: off
class Options(TypedDict, total=False):
    """What every model takes."""

    method: Annotated[str, Option("gibbs", None,
        '"gibbs" samples the posterior, exactly as the draws grow; "augmented-gibbs" does so as published, more '
        'slowly. "cavi" approximates it by independent gammas, fast and good where counts are dense; "bessel-cavi" '
        'does so as published; "svi" learns from batches of rows, for very large data. "em" finds one point estimate, '
        "fast and steady, and says nothing of uncertainty.")]
    draws: Annotated[int, Option(500, Whole(1),
        'draws kept of each chain (of the approximation, for "cavi"; "em" has one).')]
    tune: Annotated[int, Option(500, Whole(0), "sweeps of each chain thrown away first (samplers).")]
    chains: Annotated[int, Option(4, Whole(1), "chains, each from its own start (samplers).")]
    thin: Annotated[int, Option(1, Whole(1),
        "keep every thin-th draw only; memory grows with draws * chains * size of the factors.")]
    start: Annotated[str, Option("least-squares", OneOf(tuple(STARTS)),
        'where chains begin: "least-squares", or "em" (ten iterations on from there).')]
    max_iter: Annotated[int, Option(500, Whole(1), 'iterations at most ("cavi", "bessel-cavi", "em").')]
    tolerance: Annotated[float, Option(1e-5, Positive(),
        "stop once the objective moves by less than this share of itself in one iteration "
        '("cavi", "bessel-cavi").')]
    expectation: Annotated[str | None, Option(None, None,
        'what counts are split by in "cavi" and "svi": "geometric" (a true bound; best where counts are dense), '
        '"arithmetic" (does not starve components where counts are sparse and noise strong), or, for "svi" alone, '
        '"trimmed" (means with half the prior\'s share left out; between the two). None is "geometric" for "cavi", '
        '"trimmed" for "svi".')]
    center: Annotated[str, Option("mode", None, 'the Bessel\'s "mode", as published, or its "mean" ("bessel-cavi").')]
    prior_shape: Annotated[float, Option(0.1, Positive(),
        "gamma shape of the factors; below 1 favours few components for each entry.")]
    prior_rate: Annotated[float | None, Option(None, Positive(or_none=True),
        "gamma rate of the factors; None learns one per component, and is right when the size of the counts is not "
        "known beforehand (mathematics, section 11).")]
    alpha: Annotated[float | None, Option(None, None,
        "noise level of data that come as a plain array; None asks for data that carry their own.")]
    seed: Annotated[int | None, Option(None, Whole(0, or_none=True),
        "whole number; the same seed gives the same draws with any number of threads. None takes one from the "
        "operating system and keeps it in ``seed_``.")]
    threads: Annotated[int | None, Option(None, Whole(1, or_none=True),
        "how many cores to use; None takes all that are available. Does not change the result.")]
    engine: Annotated[str | None, Option(None, None,
        'who computes: None or "threads", "dask" (the client made last, else this many workers in this process), or '
        'the address of a Dask scheduler. Does not change the result, and is not saved. Not for "svi".')]
    progress: Annotated[bool | None, Option(None, None,
        "show a progress bar; None shows it in a terminal or notebook only.")]


class RowOptions(Options, total=False):
    """What models take whose rows may come in batches."""

    passes: Annotated[int, Option(5, Whole(1), 'how often to go through the rows ("svi").')]
    batch_rows: Annotated[int, Option(256, Whole(1), 'how many rows to learn from at once ("svi").')]


class StreamOptions(RowOptions, total=False):
    """What models take whose rows may arrive over time."""

    total_rows: Annotated[int | None, Option(None, Whole(1, or_none=True),
        "how many rows those that ``partial_fit`` has seen are to speak for; None takes as many as it has seen "
        '("svi").')]
# fmt: on
