"""The options that models share, each declared once: its type, its default, what it may be, and what it does.

A new one is one entry here: it reaches the signature, ``help``, scikit-learn's ``get_params``, ``set_params`` and
``clone``, the check of its values, and the reference of every model that takes these options.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from countveil.fit.parameters import Level, OneOf, Option, Positive, PositiveOr, Whole, WholeOrAuto
from countveil.fit.starting import Beginning
from countveil.fit.weighting import WEIGHTS
from countveil.inference.draws import ROUNDS
from countveil.inference.methods import in_words
from countveil.models.priors import LEARNED, USUAL_SHAPE

SAMPLED, APPROXIMATED = 50, 500  # draws from each chain, and from an approximation


# fmt: off
class Options(TypedDict, total=False):
    """What every model takes."""

    method: Annotated[str, Option("gibbs", None, in_words())]
    draws: Annotated[int | None, Option(None, Whole(1, or_none=True),
        f"draws kept from each chain, or from the approximation. None is {SAMPLED} from each of the chains, and "
        f'{APPROXIMATED} from an approximation ("em" has one).')]
    tune: Annotated[int, Option(200, Whole(0), "first sweeps of each chain, which are thrown away (samplers).")]
    chains: Annotated[int | str, Option("auto", WholeOrAuto(),
        'chains, each from its own start (samplers), or "auto": '
        f"{ROUNDS[0]}, and {ROUNDS[1] - ROUNDS[0]} more at a time until averages over them are steady, up to "
        f"{ROUNDS[-1]}. Many short ones show more of the modes than few long ones.")]
    weights: Annotated[str, Option("equal", OneOf(WEIGHTS),
        'how chains count in whatever is said of all draws together, such as rates and intervals: "equal", or '
        '"stacked", by how well they predict reports that are left out (samplers); see ``weights_``.')]
    thin: Annotated[int, Option(1, Whole(1),
        "keep every thin-th draw only; memory grows with draws * chains * size of the factors.")]
    start: Annotated[str | Mapping[str, Any] | Any, Option("auto", Beginning(),
        'where fits begin: "spectral" (communities of actors), "least-squares", "em" (ten iterations on from "auto"), '
        '"auto" (the first for models of communities, the second for others), an earlier fit, also one of fewer '
        "components, or a mapping from names of the posterior's factors to arrays.")]
    moves: Annotated[int, Option(2, Whole(0),
        "moves of ten sweeps each while a chain is tuned, at most one for every twenty sweeps of ``tune``: the first "
        "two merge what an automatic start has too many (the first of two or three components), others split some "
        "components and merge pairs "
        '("gibbs", for products of two factors such as topics).')]
    max_iter: Annotated[int, Option(500, Whole(1), 'iterations at most ("cavi", "bessel-cavi", "em").')]
    tolerance: Annotated[float, Option(2e-3, Positive(),
        "stop once an iteration changes the objective by at most this share of its range over all iterations so far "
        '("cavi", "bessel-cavi"); under noise a smaller one tends to fit worse.')]
    expectation: Annotated[str | None, Option(None, None,
        'what counts are split by in "cavi" and "svi": "geometric" (a true bound; best where counts are dense), '
        '"arithmetic" (does not starve components where counts are sparse and noise strong), or, for "svi" alone, '
        '"trimmed" (means with half the prior\'s share left out; between the two). None is "geometric" for "cavi", '
        '"trimmed" for "svi".')]
    likelihood: Annotated[str | None, Option(None, OneOf((None, "poisson", "negative-binomial")),
        'how counts spread around their rates: "poisson", or "negative-binomial" for counts that come in bursts, as '
        "words and messages do; factors are then about bursts, and ``rate`` about counts. None is the "
        'latter with method "gibbs" or a ``dispersion``, else "poisson", as for ``PoissonFactorization``.')]
    dispersion: Annotated[str | float | None, Option(None, None,
        'which cells share a dispersion p in "negative-binomial": "global" (all of them), those of a "column" or of a '
        '"row"; or the number p itself, if it is known. None is "column" for tensors, directed networks and topics '
        'that are not known with "gibbs", else "global".')]
    center: Annotated[str, Option("mode", None, 'the Bessel\'s "mode", as published, or its "mean" ("bessel-cavi").')]
    prior_shape: Annotated[float | str | None, Option(None, PositiveOr((LEARNED, None)),
        'gamma shape of the factors; below 1 favours few components for each entry. "learned" finds one for each '
        f'factor ("gibbs", "augmented-gibbs"). None is "learned" with these methods, {USUAL_SHAPE} with the others.')]
    prior_rate: Annotated[float | None, Option(None, Positive(or_none=True),
        "gamma rate of the factors; None learns one per component, and is right when the size of the counts is not "
        "known beforehand (mathematics, section 11).")]
    alpha: Annotated[float | None, Option(None, Level(),
        "noise level of data that come as a plain array; None asks for data that carry their own.")]
    seed: Annotated[int | None, Option(None, Whole(0, or_none=True, most=10**40 - 1),
        "whole number of at most 40 digits; the same seed gives the same draws with any number of threads. None takes "
        "one from the operating system and keeps it in ``seed_``.")]
    threads: Annotated[int | None, Option(None, Whole(1, or_none=True),
        "how many cores to use; None takes all that are available, or one where the data are small. Does not change "
        "the result.")]
    engine: Annotated[str | None, Option(None, None,
        'who computes: None or "threads", "dask" (the client made last, else ``threads`` workers in this process), or '
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
        "how many rows those that ``partial_fit`` has seen stand for; None takes as many as it has seen "
        '("svi").')]
    keep: Annotated[str, Option("draws", OneOf(("draws", "summary")),
        'what is kept of theta: "draws", or a "summary", the gammas of its approximation, from which its draws are '
        'made again when they are asked for ("svi"). For millions of rows: each draw would take rows * topics * 4 '
        "bytes.")]
# fmt: on
