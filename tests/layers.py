"""What the tests of priors with layers share: layers run forwards from moderate priors."""

import numpy as np

from countveil.models.priors import dirichlet, gamma_chain, layered_rows
from countveil.models.priors.layered_rows import Layers, sizes_of

LEAST = 1e-150


def moderate(monkeypatch):
    """Priors of hyperparameters have moderate moments, and nothing underflows."""
    monkeypatch.setattr(gamma_chain, "SPREAD", 0.4)
    monkeypatch.setattr(layered_rows, "LEVEL_SHAPE", 5.0)
    monkeypatch.setattr(layered_rows, "TOP_SHAPE", 3.0)
    monkeypatch.setattr(dirichlet, "MEDIAN", 1.0)
    monkeypatch.setattr(dirichlet, "SPREAD", 0.5)


def draw_layers(prior, shape, scale, rng):
    """(hyperparameters by name, rows) from the prior; ``scale`` (D,) multiplies the rates of rows."""
    (n_rows, k), p = shape, layered_rows
    each = (k, *prior.n_upper)
    top = rng.gamma(p.TOP_SHAPE, prior.usual_top(k) / p.TOP_SHAPE, each[-1])
    levels = rng.gamma(p.LEVEL_SHAPE, prior.usual_levels(k) / p.LEVEL_SHAPE)
    steadiness = gamma_chain.CONCENTRATION * np.exp(gamma_chain.SPREAD * rng.standard_normal(len(each)))
    s = steadiness[:, None]
    rates = np.maximum(rng.gamma(s, 1.0 / (s * levels[:, None]), (len(each), n_rows)), LEAST)
    concentrations = dirichlet.MEDIAN * np.exp(dirichlet.SPREAD * rng.standard_normal(len(each) - 1))
    loadings = tuple(
        rng.dirichlet(np.full(below, a), own).T for below, own, a in zip(each, each[1:], concentrations, strict=False)
    )
    found = [np.maximum(rng.gamma(top, 1.0 / rates[-1][:, None]), LEAST)]
    for t in reversed(range(len(loadings))):
        rate = rates[t] * scale if t == 0 else rates[t]
        found.append(np.maximum(rng.gamma(found[-1] @ loadings[t].T) / rate[:, None], LEAST))
    if not loadings:
        found[0] = found[0] / scale[:, None]
    value, *upper = found[::-1]
    layers = Layers(tuple(upper), loadings, concentrations, top, rates, levels, steadiness, ())
    return layers._replace(sizes=sizes_of(layers, value)), value
