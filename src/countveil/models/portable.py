"""A model as plain values that a file can hold, and back."""

from typing import Any

import numpy as np

from countveil.laws.counts import likelihood_called
from countveil.models.factorization import Factorization, factorization
from countveil.models.priors import prior_of
from countveil.models.spec import Spec

DIGESTS = {"dates": "dates of rows", "added": "seeds"}  # of what priors take from the data, to the last bit


def model_facts(model: Factorization) -> dict[str, Any]:
    """Plain values from which ``model_of`` makes the model again."""
    settings = dict(model.likelihood.settings)
    return {
        "spec": model.spec._asdict(),
        "sizes": model.rows.sizes | model.columns.sizes,
        "self_loops": model.self_loops,
        "likelihood": model.likelihood.name,
        "factors": [
            {
                "prior": f.prior.facts(),
                "fixed": None if f.fixed is None else f.fixed.tolist(),
            }
            for f in model.factors
        ],
    } | ({"likelihood_settings": settings} if settings else {})


def model_of(facts: dict[str, Any]) -> Factorization:
    """The model that ``model_facts`` described."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts["spec"].items()
    }
    spec = Spec(**fields)
    priors, fixed = {}, {}
    for name, each in zip(spec.names, facts["factors"], strict=True):
        found = each["prior"]
        if isinstance(found, list):  # as files before version 0.2 have it
            found = dict(zip(("shape", "rate", "learned"), found, strict=True)) | {"kind": "gamma"}
        priors[name] = prior_of(found)
        if each["fixed"] is not None:
            fixed[name] = np.array(each["fixed"], dtype=float)
    likelihood = likelihood_called(facts.get("likelihood", "poisson"), facts.get("likelihood_settings", {}))
    return factorization(
        spec, facts["sizes"], priors, fixed=fixed, self_loops=facts["self_loops"], likelihood=likelihood
    )


def check_digests(facts: dict[str, Any], model: Factorization) -> None:
    """Refuse a model whose priors have other dates or seeds than ``facts`` say; raises ValueError."""
    for stated, factor in zip(facts["factors"], model.factors, strict=True):
        own = factor.prior.facts()
        for name, called in DIGESTS.items():
            if name in own and own[name] != stated["prior"][name]:
                raise ValueError(f"must hold the {called} that its model was fitted with, got others")
