"""Expected counts of components, summed over all or some of the observed axes, in every draw."""

import numpy as np
import xarray as xr

from countveil.inference import posterior as posteriors
from countveil.inference.row_gammas import summarised
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout, normalised


def component_counts(tree: xr.DataTree, model: Factorization, layout: Layout, axes: str) -> np.ndarray:
    """(C S, *sizes of the axes) expected counts of components, along observed axes if there are some among ``axes``.

    This is the einsum with these axes as its output, and with the mean size of the parts that counts come in as another
    factor. A factor whose components sum to one over observed axes of its own drops out. Exposures by cell are a factor
    of all observed axes, beside which no factor drops out or is summed by itself.
    """
    spec, ones = model.spec, normalised(model)
    varies = posteriors.axes_of_parts(model)
    terms, operands = ["..." + varies], [posteriors.sizes_of_parts(tree, model)]
    exposure = posteriors.exposure_of(tree, (model.rows.shape[0], model.columns.shape[0]))
    if exposure is not None:
        sides, sizes = model.rows.observed + model.columns.observed, model.rows.sizes | model.columns.sizes
        terms.append(sides)
        operands.append(exposure.reshape([sizes[a] for a in sides]))
    for term, f in zip(spec.terms, spec.factor_of_term, strict=True):
        factor, order = model.factors[f], layout.axes[model.factors[f].name]
        each = [term[factor.axes.index(a)] for a in order]
        free = [a for a in each if a in spec.output and a not in axes + varies]
        own = [a for a in free if sum(a in other for other in spec.terms) == 1 and exposure is None]
        if f in ones and exposure is None and own == [a for a in each if a in spec.output]:
            continue
        summed = tuple(1 + each.index(a) for a in own)
        if own and summarised(tree, factor.name):
            operands.append(posteriors.flat_draws(tree, f"{factor.name}_total").astype(np.float64))
        else:
            operands.append(posteriors.flat_draws(tree, factor.name).sum(axis=summed, dtype=np.float64))
        terms.append("..." + "".join(a for a in each if a not in own))
    return np.asarray(np.einsum(f"{','.join(terms)}->...{axes}", *operands, optimize="greedy"))
