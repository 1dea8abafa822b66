"""All methods by name: an algorithm is a module with a ``METHOD`` record, and a line in this table."""

from countveil.data.release_files import ReleaseFiles
from countveil.engines.blas import one_blas_thread
from countveil.inference import augmented_gibbs, bessel_cavi, cavi, em, gibbs, svi
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.models.factorization import Factorization

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
        ValueError: the method does not accept the data, the model or a prior.
    """
    method = METHODS[name]
    if isinstance(data, ReleaseFiles) and not method.batches:
        raise ValueError(f"data on disk goes with {those('batches')}, got method {name!r}")
    check_model(method, model)
    return method.fit(method, data, model, settings)


def check_model(method: Method, model: Factorization) -> None:
    """Refuse a model that the method cannot treat.

    Raises:
        ValueError: names the likelihood or prior, and methods that can treat it.
    """
    if model.likelihood.name not in method.likelihoods:
        raise ValueError(
            f"likelihood must be one of {list(method.likelihoods)} for method {method.name!r}, "
            f"got {model.likelihood.name!r}"
        )
    for f, factor in enumerate(model.factors):
        if factor.fixed is not None or factor.prior.independent:
            continue
        if not method.any_prior:
            raise ValueError(
                f"priors must be of independent gammas for method {method.name!r}, got one of kind "
                f"{factor.prior.kind!r} for {factor.name!r}: use {those('any_prior')}"
            )
        if f == model.shared or factor.symmetric:
            raise ValueError(
                f"priors must be of independent gammas for factors that are shared or symmetric, got one of kind "
                f"{factor.prior.kind!r} for {factor.name!r}"
            )


def in_words() -> str:
    """What each method does, as its record says."""
    return " ".join(f'"{name}" {method.says}' for name, method in METHODS.items())


def those(ability: str) -> str:
    """Methods with a flag of their record set, in words."""
    names = [f"method {name!r}" for name, method in METHODS.items() if getattr(method, ability)]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
