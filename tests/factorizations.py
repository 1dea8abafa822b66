"""Small factorizations of every kind, with noise levels and masks, and what the tests say of them the slow way."""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from countveil.data.observations import Observations, PrivatizedCounts
from countveil.models.einsum import axis_sizes, parse_spec
from countveil.models.factorization import Factorization, factorization
from countveil.models.priors import GammaPrior, LearnedShapePrior, Prior, typical_scale

NETWORK = {"names": ("theta", "theta_to", "pi"), "shared": {"theta_to": "theta"}}
LEVELS = (0.0, 0.3, 0.6, 0.6, 0.8, 0.3)  # of the first rows: exact ones beside private ones
FIXED, LEARNED = GammaPrior(1.5, 1.5, False), GammaPrior(1.5, 3.0, True)  # in units of ``typical_scale``
MEAN_COUNT = 2.0
RANK = 2


class Case(NamedTuple):
    """A model over data of this shape, and how they are seen."""

    text: str
    shape: tuple[int, ...]
    priors: dict[str, Prior]  # of the factors that are not ``FIXED``
    options: Mapping[str, Any] = MappingProxyType({})  # of the spec
    loops: bool = True  # whether the cells with equal first and second index are seen
    below: bool = True  # whether the cells below that diagonal are
    each: bool = False  # whether every cell has a noise level of its own
    known: tuple[str, ...] = ()  # factors to condition on


CASES = {
    "topics": Case("dk,vk->dv", (6, 5), {"vk": LEARNED}, each=True),
    "directed": Case("ic,jd,cd->ij", (6, 6), {"theta": LEARNED}, NETWORK, loops=False),
    "directed, loops": Case("ic,jd,cd->ij", (5, 5), {"pi": LEARNED}, NETWORK, each=True),
    "undirected": Case(
        "ic,jd,cd->ij", (6, 6), {"theta": LEARNED}, NETWORK | {"symmetric": ("pi",)}, loops=False, below=False
    ),
    "undirected, loops": Case(
        "ic,jd,cd->ij", (5, 5), {"pi": LEARNED}, NETWORK | {"symmetric": ("pi",)}, below=False, each=True
    ),
    "CP 3": Case("ak,bk,ck->abc", (4, 3, 3), {"bk": LEARNED}),
    "CP 4": Case("ak,bk,ck,dk->abcd", (3, 3, 2, 2), {"ak": LEARNED}, each=True),
    "Tucker": Case("ic,jd,ak,tr,cdkr->ijat", (4, 3, 2, 2), {"cdkr": LEARNED}),
    "dynamic network": Case(
        "ic,jd,cdk,tk->ijt", (4, 4, 2), {"cdk": LEARNED}, {"shared": {"jd": "ic"}}, loops=False
    ),
    "shapes and known": Case(
        "ic,jd,cd,dv->ijv", (4, 3, 2), {"ic": GammaPrior(np.array([[0.7], [2.0], [1.0], [3.0]]), 2.0, True),
        "jd": GammaPrior(np.array([0.8, 2.5]), np.array([[0.5], [1.0], [2.0]]), False)}, known=("dv",),
    ),
}  # fmt: skip


def model_of(case: Case, **sizes: int) -> Factorization:
    """The case's model; another rank for a latent axis by name."""
    spec = parse_spec(case.text, **case.options)
    lengths = axis_sizes(spec, case.shape, {a: sizes.get(a, RANK) for a in spec.latent})
    scale = typical_scale(MEAN_COUNT, math.prod(lengths[a] for a in spec.latent), len(spec.terms))
    priors = {name: case.priors.get(name, FIXED) for name in spec.names}
    priors = {name: scaled(prior, scale) for name, prior in priors.items()}
    shapes = {name: [lengths[a] for a in axes] for name, axes in zip(spec.names, spec.factor_axes, strict=True)}
    known = {name: np.random.default_rng(1).gamma(2.0, 0.5 * scale, shapes[name]) for name in case.known}
    return factorization(spec, lengths, priors, fixed=known, self_loops=case.loops)


def scaled(prior: Prior, scale: float) -> Prior:
    """A prior of entries this many times as large."""
    if isinstance(prior, LearnedShapePrior) and prior.mean is not None:
        return replace(prior, mean=prior.mean * scale)
    return replace(prior, rate=prior.rate / scale)


def alpha_of(case: Case) -> np.ndarray:
    """Noise levels of all cells."""
    if case.each:
        return np.random.default_rng(2).choice([0.0, 0.3, 0.6, 0.8], case.shape)
    levels = np.resize(LEVELS, case.shape[0])
    return np.broadcast_to(levels.reshape(-1, *[1] * (len(case.shape) - 1)), case.shape)


def mask_of(case: Case, share: float = 0.1) -> np.ndarray:
    """A few cells at random, and those that a network does not count."""
    mask = np.random.default_rng(3).random(case.shape) < share
    i, j = np.indices(case.shape)[:2]
    return mask | ((i == j) & (not case.loops)) | ((i > j) & (not case.below))


def rates_of(model: Factorization, factors: Any) -> np.ndarray:
    """Rates of all cells, in the output's shape: one einsum over every index at once."""
    terms = [factors[f] for f in model.spec.factor_of_term]
    return np.einsum(model.spec.text, *terms)


def as_matrix(model: Factorization, array: np.ndarray) -> np.ndarray:
    """An array of the output's shape in the matrix form's."""
    rows, columns = model.matrix_axes
    return array.transpose(*rows, *columns).reshape(model.rows.shape[0], model.columns.shape[0])


def observe(model: Factorization, case: Case, reports: np.ndarray, mask: np.ndarray) -> Observations:
    """The reports as inference sees them."""
    alpha = alpha_of(case)
    levels = alpha if case.each else alpha.reshape(len(alpha), -1)[:, 0]
    return PrivatizedCounts(reports, levels, mask).matricized(*model.matrix_axes)
