"""A model in plain values that a file can hold, and back."""

from typing import Any

import numpy as np

from countveil.models.factorization import Factorization, factorization
from countveil.models.priors import GammaPrior
from countveil.models.spec import Spec


def model_facts(model: Factorization) -> dict[str, Any]:
    """What a file says of a model: enough to make it again."""

    def plain(value: Any) -> Any:
        return np.asarray(value).tolist()

    return {
        "spec": model.spec._asdict(),
        "sizes": model.rows.sizes | model.columns.sizes,
        "self_loops": model.self_loops,
        "factors": [
            {
                "prior": [plain(f.prior.shape), plain(f.prior.rate), f.prior.learned],
                "fixed": None if f.fixed is None else plain(f.fixed),
            }
            for f in model.factors
        ],
    }


def model_of(facts: dict[str, Any]) -> Factorization:
    """The model that ``model_facts`` described."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts["spec"].items()
    }
    spec = Spec(**fields)
    priors, fixed = {}, {}
    for name, each in zip(spec.names, facts["factors"], strict=True):
        shape, rate, learned = each["prior"]
        shape, rate = (np.array(x) if isinstance(x, list) else x for x in (shape, rate))
        priors[name] = GammaPrior(shape, rate, learned)
        if each["fixed"] is not None:
            fixed[name] = np.array(each["fixed"], dtype=float)
    return factorization(spec, facts["sizes"], priors, fixed=fixed, self_loops=facts["self_loops"])
