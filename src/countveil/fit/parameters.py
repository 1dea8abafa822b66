"""Parameters of fits: the options that models share, each declared once, and checks of what is passed to a fit.

A new option is one entry of ``Options``: it reaches the signature, ``help``, scikit-learn's ``get_params``,
``set_params`` and ``clone``, the check of its values, and the reference of every model that takes these options.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, fields
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_array

from countveil.common.parameters import OneOf, Option, Positive, PositiveOr, Whole, WholeOrAuto, declared
from countveil.data.matrices import unwrap
from countveil.fit.starting import Beginning
from countveil.inference.algorithm import Method
from countveil.inference.draws import ROUNDS
from countveil.inference.methods import MethodOrName, check_of_models, in_words
from countveil.models.priors import LEARNED, USUAL_SHAPE


class Level(NamedTuple):
    """A number, which the data check together with the reports."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else; raises ValueError."""
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise ValueError(
                f"{name} must be a number in [0, 1) or None, got {type(value).__name__}: levels of rows, columns or "
                "cells go with the data, PrivatizedCounts(X, alpha)"
            )


FORMATS = ("csr", "csc", "coo")  # sparse ones in which scikit-learn can find values that are not finite


def check_interval(interval: float) -> None:
    """Refuse what is not a probability strictly between 0 and 1."""
    number = isinstance(interval, int | float | np.number) and not isinstance(interval, bool)
    if not number or not 0.0 < interval < 1.0:
        raise ValueError(f"interval must be between 0 and 1, got {interval!r:.60}")


def check_labels_of_fit(rule: str, axes: Mapping[str, np.ndarray], labels: Sequence[Sequence[str] | None]) -> None:
    """Refuse labels that differ from the fit's along an axis, or are in another order; axes without labels pass.

    Raises:
        ValueError: the rule, and the first label that differs.
    """
    for (dim, known), names in zip(axes.items(), labels, strict=True):
        if names is None or known.dtype.kind not in "OUT":
            continue
        for i, (fitted, given) in enumerate(zip(known.tolist(), names, strict=True)):
            if fitted != given:
                raise ValueError(f"{rule}, got {given!r} for {fitted!r} at {dim} {i}")


def check_plain(X: Any, estimator: Any) -> dict[str, Any]:
    """Reports in a plain array, and the mask and labels they came with, by the rules of scikit-learn.

    Raises:
        TypeError, ValueError: as ``sklearn.utils.check_array``.
    """
    reports, mask, rows, columns = unwrap(X, None, None, None)
    if isinstance(X, pd.DataFrame) and X.isna().to_numpy().any():
        raise ValueError(
            "X must have no missing values, got NaN: mask cells without a report, "
            "PrivatizedCounts(X, alpha, mask=X.isna())"
        )
    if not (sp.issparse(reports) and reports.ndim != 2):
        reports = check_array(
            reports,
            accept_sparse=FORMATS,
            allow_nd=True,
            ensure_non_negative=estimator.__sklearn_tags__().input_tags.positive_only,
            estimator=estimator,
            input_name="X",
        )
    return {"reports": reports, "mask": mask, "row_labels": rows, "column_labels": columns}


WAYS = f"a name, for the method with its defaults, or a method with options, such as ``cv.SVI(passes=2)``: {in_words()}"
MOVED = {"seed_weight": "in seeds: seeds={'economy': {'tax': 20.0, 'jobs': 20.0}}"}
SAMPLED, APPROXIMATED = 50, 500  # draws from each chain, and from an approximation


@declared
class Options:
    """What every model takes."""

    # fmt: off
    _: KW_ONLY
    method: Annotated[str | Method, Option(MethodOrName(), WAYS)] = "gibbs"
    draws: Annotated[int | None, Option(Whole(1),
        f"draws kept from each chain, or from the approximation. None is {SAMPLED} from each of the chains, and "
        f'{APPROXIMATED} from an approximation ("em" has one).')] = None
    tune: Annotated[int, Option(Whole(0), "tuning sweeps of each chain, which are discarded (samplers).")] = 200
    chains: Annotated[int | str, Option(WholeOrAuto(),
        'chains, each from its own start (samplers), or "auto": '
        f"{ROUNDS[0]}, and {ROUNDS[1] - ROUNDS[0]} more at a time until averages over them are steady, up to "
        f"{ROUNDS[-1]}. Many short chains find more modes than a few long ones.")] = "auto"
    start: Annotated[str | Mapping[str, Any] | Any, Option(Beginning(),
        'starting point: "spectral" (communities of actors), "least-squares", "em" (ten iterations from "auto"), '
        '"auto" (the first for models of communities, the second for others), an earlier fit, also one of fewer '
        "components, or a mapping from names of the posterior's factors to arrays.")] = "auto"
    likelihood: Annotated[str | None, Option(OneOf((None, "poisson", "negative-binomial")),
        'distribution of counts given their rates: "poisson", or "negative-binomial" for overdispersed counts, such '
        "as words and messages; factors then refer to bursts, and ``rate`` to counts. None is the "
        'latter with method "gibbs" or a ``dispersion``, else "poisson", as for ``PoissonFactorization``.')] = None
    dispersion: Annotated[str | float | None, Option(None,
        'which cells share a dispersion p in "negative-binomial": "global" (all of them), those of a "column" or of a '
        '"row"; or the number p itself, if it is known. None is "column" with "gibbs" for directed networks, '
        'tensors and topics that are not known, else "global".')] = None
    prior_shape: Annotated[float | str | None, Option(PositiveOr((LEARNED, None)),
        'gamma shape of the factors; below 1 favours few components for each entry. "learned" finds one for each '
        'factor ("gibbs", "augmented-gibbs"). None is "learned" with these methods, '
        f"{USUAL_SHAPE} with the others.")] = None
    prior_rate: Annotated[float | None, Option(Positive(),
        "gamma rate of the factors; None learns one per component, and is right when the size of the counts is not "
        "known beforehand (mathematics, section 11).")] = None
    alpha: Annotated[float | None, Option(Level(),
        "alpha of the two-sided geometric noise in data given as a plain array; None requires data "
        "that state their noise.")] = None
    seed: Annotated[int | None, Option(Whole(0, most=10**40 - 1),
        "whole number of at most 40 digits; the same seed gives the same draws with any number of threads. None takes "
        "one from the operating system and keeps it in ``seed_``.")] = None
    threads: Annotated[int | None, Option(Whole(1),
        "how many cores to use; None takes all that are available, or one where the data are small. Does not change "
        "the result.")] = None
    engine: Annotated[str | None, Option(None,
        'who computes: None or "threads", "dask" (the client made last, else ``threads`` workers in this process), or '
        'the address of a Dask scheduler. Does not change the result, and is not saved. Not for "svi".')] = None
    progress: Annotated[bool | None, Option(None,
        "show a progress bar; None shows it in a terminal or notebook only.")] = None
    # fmt: on

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Says where options of methods go, which are no parameters of models, and what took a parameter's place."""
        unknown = set(named) - {field.name for field in fields(cls)}
        check_of_models(unknown, named.get("method"))
        for name in unknown & MOVED.keys():
            raise TypeError(f"{name} is now {MOVED[name]}")
        return super().__new__(cls)
