"""All methods by name: an algorithm is a module with a class of ``Method``, and a line in this table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from countveil.common.parameters import check_rules
from countveil.data.release_files import ReleaseFiles
from countveil.engines.threads import one_blas_thread
from countveil.inference.algorithm import Data, Fitted, Method, Settings
from countveil.inference.augmented_gibbs import AugmentedGibbs
from countveil.inference.bessel_cavi import BesselCAVI
from countveil.inference.cavi import CAVI
from countveil.inference.draws import check_factors
from countveil.inference.em import EM
from countveil.inference.gibbs import Gibbs
from countveil.inference.svi import SVI
from countveil.laws.counts import Likelihood
from countveil.laws.noise import Noise
from countveil.models.factorization import Factorization
from countveil.models.priors import LEARNED
from countveil.privacy._text import listed

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (Gibbs, AugmentedGibbs, CAVI, BesselCAVI, SVI, EM)
}
"""By name, in the order of listings."""


class MethodOrName:
    """The name of a method, for its defaults, or a method such as ``SVI(passes=2)``."""

    def check(self, name: str, value: Any) -> None:
        """Refuse anything else, and options that break their rules; raises ValueError."""
        if isinstance(value, Method):
            check_rules(value)
        elif not isinstance(value, str) or value not in METHODS:
            raise ValueError(
                f"{name} must be one of {list(METHODS)}, or a method such as cv.Gibbs(moves=0), got {value!r:.80}"
            )


def method_of(value: str | Method) -> Method:
    """The method itself where its name stands for it; raises ValueError for a name that there is not."""
    return value if isinstance(value, Method) else made(value, {})


def made(name: str, options: Mapping[str, Any]) -> Method:
    """The method of this name with these options, whose values are not checked.

    Raises:
        ValueError: a name or an option that there is not.
    """
    if name not in METHODS:
        raise ValueError(f"method must be one of {list(METHODS)}, got {name!r:.80}")
    for option in options:
        if option not in options_of(METHODS[name]):
            able = [f"method {each!r}" for each, method in METHODS.items() if option in options_of(method)]
            rule = f"requires {' or '.join(able)}" if able else "is an option of no method"
            raise ValueError(f"{option} {rule}, got method {name!r}")
    return METHODS[name](**options)


def in_file(method: str | Method) -> str | dict[str, Any]:
    """A method as a file can hold it: its name, with its options if it is given with any."""
    return method if isinstance(method, str) else {"name": method.name, **method.get_params()}


def from_file(found: Any) -> str | Method:
    """The method that a file holds, whose options are not checked; raises ValueError."""
    if not isinstance(found, dict):
        return str(found)
    if not isinstance(found.get("name"), str):
        raise ValueError(f"must state the name of its method, got {found!r:.80}")
    return made(found["name"], {name: value for name, value in found.items() if name != "name"})


def check_of_models(names: Iterable[str], method: Any) -> None:
    """Refuse options of methods among the parameters of a model whose method is this; raises TypeError."""
    for name in names:
        able = [each for each in METHODS.values() if name in options_of(each)]
        own = [each for each in able if isinstance(method, str) and each.name == method]
        if able:
            first, *others = [f"cv.{each.__name__}" for each in own or able]
            more = f"; {' and '.join(others)} {'have' if others[1:] else 'has'} it too" if others else ""
            raise TypeError(f"{name} is now method={first}({name}=...){more}")


def options_of(method: type[Method]) -> list[str]:
    """The names of a method's options."""
    return [field.name for field in fields(method)]


@one_blas_thread()
def fit(method: Method, data: Data, model: Factorization, settings: Settings) -> Fitted:
    """Run a method.

    BLAS is limited to one thread, since with more it adds up in another order.

    Raises:
        ValueError: the method does not accept the data, their mechanism, the likelihood or a prior.
    """
    check_data(method, data)
    check_model(method, model, data.noise)
    return method.run(data, model, settings)


@one_blas_thread()
def go_on(
    method: Method,
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
    check_data(method, data)
    check_model(method, model, data.noise)
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
            f"got {noise.mechanism!r:.120}{use_taking('mechanisms', noise.mechanism)}"
        )
    check_likelihood(method, model.likelihood)
    for f, factor in enumerate(model.factors):
        got = f"got one of kind {factor.prior.kind!r} for {factor.name!r}"
        check_learned_shapes(method, factor.prior.learns_shape, f"shape of {factor.name!r}")
        if factor.prior.needs is not None:
            check_need(method, factor.prior.needs, f"prior of {factor.name!r}")
        if factor.prior.of_rows and factor.symmetric:
            raise ValueError(f"{factor.prior.needs} must be of a factor with rows, {got}")
        coupled = factor.fixed is None and not factor.prior.independent
        if coupled and not method.any_prior:
            raise ValueError(
                f"priors must be of independent gammas for method {method.name!r}, {got}: use {those('any_prior')}"
            )
        if coupled and (f == model.shared or factor.symmetric):
            raise ValueError(f"priors must be of independent gammas for factors that are shared or symmetric, {got}")
        if not method.any_prior and not factor.prior.variational:
            raise ValueError(f"priors must be variational for method {method.name!r}, {got}: use {those('any_prior')}")


def check_data(method: Method, data: Data) -> None:
    """Refuse data on disk, totals, or exposures by cell where the method cannot use them; raises ValueError."""
    if isinstance(data, ReleaseFiles):
        if not method.batches:
            raise ValueError(f"data on disk requires {those('batches')}, got method {method.name!r}")
        return
    if data.totals is not None and not method.totals:
        raise ValueError(
            f"totals must be None for method {method.name!r}, got {data.totals.size}: use {those('totals')}"
        )
    if data.exposure is not None and not method.exposures:
        raise ValueError(
            f"exposure must be one of rows (D, 1) or of columns (1, V) for method {method.name!r}, got one by cell: "
            f"use {those('exposures')}"
        )


def check_likelihood(method: Method, likelihood: Likelihood) -> None:
    """Refuse a likelihood that the method cannot treat; raises ValueError."""
    if likelihood.name not in method.likelihoods:
        raise ValueError(
            f"likelihood must be one of {list(method.likelihoods)} for method {method.name!r}, "
            f"got {likelihood.name!r}{use_taking('likelihoods', likelihood.name)}"
        )


def check_learned_shapes(method: Method, learned: bool, name: str) -> None:
    """Refuse a shape that is to be learned by a method that cannot; raises ValueError."""
    if learned and not method.learned_shapes:
        raise ValueError(
            f"{name} must be a number for method {method.name!r}, got {LEARNED!r}: use {those('learned_shapes')}"
        )


def check_need(method: Method, need: str, name: str) -> None:
    """Refuse what a prior needs for a method that cannot treat it; raises ValueError, which begins with the name."""
    ability, does = NEEDS[need]
    if not getattr(method, ability):
        raise ValueError(f"{name} requires {those(ability)}, which {does}, got method {method.name!r}")


NEEDS: dict[str, tuple[str, str]] = {
    "seeds": ("seeds", "keep seeded topics in place"),
    "covariates": ("covariates", "treats covariates"),
    "dates": ("covariates", "treats dates of rows"),
    "layers": ("covariates", "treats topics of topics"),
}
"""The ability that a method has to have for what a prior needs, and what methods with it do."""


def in_words() -> str:
    """What each method does, as its class says."""
    return " ".join(f'"{name}" {method.says}' for name, method in METHODS.items())


def those(ability: str) -> str:
    """Methods with an ability, in words."""
    return listed_methods([name for name, method in METHODS.items() if getattr(method, ability)])


def use_taking(kinds: str, kind: str) -> str:
    """Which methods take a mechanism or a likelihood, as the end of an error; empty if none does."""
    taken = {name: getattr(method, kinds) for name, method in METHODS.items()}
    names = [name for name, own in taken.items() if own is None or kind in own]
    return f": use {listed_methods(names)}" if names else ""


def listed_methods(names: Sequence[str]) -> str:
    """Methods in words."""
    return listed([f"method {name!r}" for name in names], "or")
