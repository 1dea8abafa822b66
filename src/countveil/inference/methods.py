"""All methods by name: an algorithm is a module with a ``METHOD`` record, and a line in this table."""

from typing import Any

from countveil.data.observations import Observations
from countveil.data.release_files import ReleaseFiles
from countveil.engines.threads import one_blas_thread
from countveil.inference import augmented_gibbs, bessel_cavi, cavi, em, gibbs, svi
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.draws import check_factors
from countveil.laws.counts import Likelihood
from countveil.laws.noise import Noise
from countveil.models.factorization import Factorization
from countveil.models.priors import (
    LEARNED,
    DatedRowsPrior,
    RegressionPrior,
    SeededPrior,
    VariationalPrior,
    learns_shape,
)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        gibbs.METHOD,
        augmented_gibbs.METHOD,
        cavi.METHOD,
        bessel_cavi.METHOD,
        svi.METHOD,
        em.METHOD,
    )
}
"""By name, in the order of listings."""


@one_blas_thread()
def fit(name: str, data: Data, model: Factorization, settings: Settings) -> Fitted:
    """Run one of ``METHODS``.

    BLAS is limited to one thread, since with more it adds up in another order.

    Raises:
        ValueError: the method does not accept the data, their mechanism, the likelihood or a prior.
    """
    method = METHODS[name]
    if isinstance(data, ReleaseFiles) and not method.batches:
        raise ValueError(f"data on disk goes with {those('batches')}, got method {name!r}")
    check_model(method, model, data.noise)
    check_totals(method, data)
    check_exposure(method, data)
    return method.fit(method, data, model, settings)


@one_blas_thread()
def go_on(
    name: str,
    data: Data,
    model: Factorization,
    settings: Settings,
    before: tuple[Any, int] | None,
    total_rows: int,
) -> Fitted:
    """Go on with rows that come after others, as ``Method.go_on`` says, by a method that learns from batches.

    Raises:
        ValueError: the method does not accept the data's mechanism, the likelihood or a prior.
    """
    method = METHODS[name]
    assert method.go_on is not None
    check_model(method, model, data.noise)
    check_totals(method, data)
    check_exposure(method, data)
    return method.go_on(data, model, settings, before, total_rows)


def check_model(method: Method, model: Factorization, noise: Noise) -> None:
    """Refuse a model, or the noise on its data, that the method cannot treat, or that does not fit in memory.

    Raises:
        ValueError: names the mechanism, likelihood or prior.
        MemoryError: names the sizes of the latent axes.
    """
    check_factors(model)
    if method.mechanisms is not None and noise.mechanism not in method.mechanisms:
        raise ValueError(
            f"mechanism must be one of {list(method.mechanisms)} for method {method.name!r}, "
            f"got {noise.mechanism!r:.120}"
        )
    check_likelihood(method, model.likelihood)
    for f, factor in enumerate(model.factors):
        got = f"got one of kind {factor.prior.kind!r} for {factor.name!r}"
        check_learned_shapes(method, learns_shape(factor.prior), f"shape of {factor.name!r}")
        if isinstance(factor.prior, SeededPrior):
            check_seeds(method, f"prior of {factor.name!r}")
        if isinstance(factor.prior, RegressionPrior):
            check_covariates(method, f"prior of {factor.name!r}")
            if factor.symmetric:
                raise ValueError(f"covariates must be of a factor with rows, {got}")
        if isinstance(factor.prior, DatedRowsPrior):
            check_dates(method, f"prior of {factor.name!r}")
        coupled = factor.fixed is None and not factor.prior.independent
        if coupled and not method.any_prior:
            raise ValueError(
                f"priors must be of independent gammas for method {method.name!r}, {got}: use {those('any_prior')}"
            )
        if coupled and (f == model.shared or factor.symmetric):
            raise ValueError(
                f"priors must be of independent gammas for factors that are shared or symmetric, {got}"
            )
        if not method.any_prior and not isinstance(factor.prior, VariationalPrior):
            raise ValueError(
                f"priors must have the methods of VariationalPrior for method {method.name!r}, {got}: "
                f"use {those('any_prior')}"
            )


def check_totals(method: Method, data: Data) -> None:
    """Refuse known totals where the method cannot use them; raises ValueError."""
    if isinstance(data, Observations) and data.totals is not None and not method.known_totals:
        raise ValueError(
            f"totals must be None for method {method.name!r}, got {data.totals.size}: use {those('known_totals')}"
        )


def check_exposure(method: Method, data: Data) -> None:
    """Refuse exposures by cell where the method cannot use them; raises ValueError."""
    if isinstance(data, Observations) and data.exposure is not None and not method.exposures:
        raise ValueError(
            f"exposure must be one of rows (D, 1) or of columns (1, V) for method {method.name!r}, got one by cell: "
            f"use {those('exposures')}"
        )


def check_likelihood(method: Method, likelihood: Likelihood) -> None:
    """Refuse a likelihood that the method cannot treat; raises ValueError."""
    if likelihood.name not in method.likelihoods:
        raise ValueError(
            f"likelihood must be one of {list(method.likelihoods)} for method {method.name!r}, "
            f"got {likelihood.name!r}"
        )


def check_learned_shapes(method: Method, learned: bool, name: str) -> None:
    """Refuse a shape that is to be learned by a method that cannot; raises ValueError."""
    if learned and not method.learned_shapes:
        raise ValueError(
            f"{name} must be a number for method {method.name!r}, got {LEARNED!r}: use {those('learned_shapes')}"
        )


def check_covariates(method: Method, name: str) -> None:
    """Refuse covariates of the rows for a method that cannot treat them; raises ValueError, which says their name."""
    if not method.covariates:
        raise ValueError(
            f"{name} goes with {those('covariates')}, which treats covariates, got method {method.name!r}"
        )


def check_seeds(method: Method, name: str) -> None:
    """Refuse seeded words for a method that cannot treat them; raises ValueError, which says their name."""
    if not method.seeds:
        raise ValueError(
            f"{name} goes with {those('seeds')}, which keep seeded topics in place, got method {method.name!r}"
        )


def check_dates(method: Method, name: str) -> None:
    """Refuse dates of the rows for a method that cannot treat them; raises ValueError, which says their name."""
    if not method.covariates:
        raise ValueError(
            f"{name} goes with {those('covariates')}, which treats dates of rows, got method {method.name!r}"
        )


def in_words() -> str:
    """What each method does, as its record says."""
    return " ".join(f'"{name}" {method.says}' for name, method in METHODS.items())


def those(ability: str) -> str:
    """Methods with a flag of their record set, in words."""
    names = [f"method {name!r}" for name, method in METHODS.items() if getattr(method, ability)]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
