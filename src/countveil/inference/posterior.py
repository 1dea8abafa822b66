"""From raw draws to results: labelled, identified, matched across chains, and summarised."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import xarray as xr

from countveil.data.mechanism_checks import MechanismCheck
from countveil.data.observations import ExactCounts, Observations
from countveil.data.release_files import ReleaseFiles
from countveil.inference import row_gammas, tuning
from countveil.inference.algorithm import Fitted
from countveil.inference.diagnostics import LOG_LIKELIHOOD, Share, Totals, nested
from countveil.inference.draws import Draws
from countveil.inference.identify import identify
from countveil.inference.matching import members_of, pooled, unweighted
from countveil.kernels.report_kernels import LEAST, MOST
from countveil.laws.counts import Parameters
from countveil.laws.counts.given_reports import Draw
from countveil.laws.counts.protocol import in_counts
from countveil.laws.noise import TWO_SIDED_GEOMETRIC, AnyMechanismNoise, Noise, noise_called
from countveil.models.factorization import Factorization
from countveil.models.layout import Layout
from countveil.models.priors.dated_rows import OVER_TIME
from countveil.models.priors.layered_rows import ALIKE
from countveil.models.priors.levels import PERSISTENCE, SMOOTHNESS, mean_log

DRAWS_AT_ONCE = 32
EXPOSURE = "exposure"
OBJECTIVE = "objective"
NEARLY_POISSON = 0.05  # chains need not agree on dispersions below: the variance is within 5% of the mean


def data_tree(
    found: Fitted,
    observations: Observations | ReleaseFiles,
    model: Factorization,
    layout: Layout,
    labels: Sequence[Sequence[str] | None],
    facts: dict[str, Any],
) -> xr.DataTree:
    """The draws in ArviZ's layout: groups posterior, sample_stats, constant_data.

    labels name the entries of each output axis. An optimiser's draws have no log-likelihood: scoring them would take
    longer than the fit. It adds the group optimisation: its objective before each iteration, whether it converged, and
    the exact means of its factors, which give the rate (with components in no particular order).
    """
    draws, spec = found.draws, model.spec
    lead = ("chain", "draw")
    sizes = model.rows.sizes | model.columns.sizes
    coordinates: dict[str, np.ndarray] = {
        "chain": np.arange(draws.log_likelihood.shape[0]),
        "draw": np.arange(draws.log_likelihood.shape[1]),
    }
    for axis, names in zip(spec.output, labels, strict=True):
        coordinates[layout.dims[axis]] = labels_or_numbers(names, sizes[axis])
        if layout.dims[axis] in layout.aliases:
            coordinates[layout.aliases[layout.dims[axis]]] = coordinates[layout.dims[axis]]
    for axis in spec.latent:
        coordinates[layout.dims[axis]] = np.arange(sizes[axis])
    scales = None if found.rows is None else row_gammas.scales_of(draws, model)
    drawn = model if found.rows is None else model.with_rows(1)
    factors, rates, reported = identify(draws, drawn, matched=found.means is not None)
    variables: dict[str, Any] = {}
    for f, factor in enumerate(model.factors):
        if scales is not None and f == model.row_factor:
            totals = factors[factor.name][:, :, 0]
            variables[f"{factor.name}_total"] = ((*lead, *layout.dims_of(factor.axes[1])), totals)
            continue
        wanted = layout.axes[factor.name]
        order = [2 + factor.axes.index(a) for a in wanted]
        dims = layout.dims_of_factor(factor.name, wanted, factor is model.shared_factor)
        variables[factor.name] = ((*lead, *dims), factors[factor.name].transpose(0, 1, *order))
    for factor in model.factors:
        if factor.name in rates:
            latent = [a for a in factor.axes if a in spec.latent]
            kept = latent if rates[factor.name].ndim == 2 + len(latent) else []
            variables[f"{factor.name}_rate"] = ((*lead, *layout.dims_of("".join(kept))), rates[factor.name])
    for name, (axes, values) in reported.items():
        variables[name] = ((*lead, *layout.dims_reported(axes)), values)
    variables |= parameter_variables(draws, model, layout)
    posterior = xr.Dataset(variables, coords=coordinates)
    scores = {"total_rate": (lead, draws.total_rate)}
    if found.means is None:
        scores["log_likelihood"] = (lead, draws.log_likelihood)
    stats = xr.Dataset(scores, coords={name: coordinates[name] for name in lead})
    tree = xr.DataTree.from_dict(
        {
            "posterior": posterior,
            "sample_stats": stats,
            "constant_data": constants(observations, model, layout, coordinates),
        }
    )
    if found.means is not None:
        tree["optimisation"] = optimisation(found, model, layout, scales)
    if found.tuning:
        tuning.store(tree, found.tuning)
    tree.attrs.update(
        {
            **facts,
            "observations": observations.kind,
            "mechanism": observations.noise.mechanism,
            "simulated_noise": int(observations.provenance.simulated),
        }
    )
    provenance = observations.provenance
    if provenance.source is not None:
        tree.attrs["source"] = provenance.source
    if provenance.promise is not None:
        tree.attrs["promised_together"] = provenance.promise
    elif not getattr(observations.noise, "one_report", True):
        tree.attrs["promised_together"] = ""  # several reports of a count, and nobody says what they promise
    if observations.totals is not None:
        tree.attrs.update(observations.totals.facts)
    return tree


def parameter_variables(draws: Draws, model: Factorization, layout: Layout) -> dict[str, Any]:
    """The likelihood's own parameters as variables, by the names and over the axes that it says."""
    sides, found = {"all": "", "row": model.rows.observed, "column": model.columns.observed}, {}
    sizes = model.rows.sizes | model.columns.sizes
    for (name, kind), values in zip(model.likelihood.parameter_axes.items(), draws.parameters, strict=True):
        axes = sides[kind]
        dims = ("chain", "draw", *layout.dims_of(axes))
        found[name] = (dims, values.reshape(*values.shape[:2], *(sizes[a] for a in axes)))
    return found


def parameter_draws(tree: xr.DataTree, model: Factorization, chosen: np.ndarray | None = None) -> Iterator[Parameters]:
    """The likelihood's parameters in every draw of ``factor_draws``; endless where it has none."""
    names = model.likelihood.parameter_axes
    if not names:
        return repeat(())
    every = [flat_draws(tree, name).reshape(n_draws(tree), -1) for name in names]
    return zip(*(every if chosen is None else [values[chosen] for values in every]), strict=True)


def matrix_draws(
    tree: xr.DataTree, model: Factorization, layout: Layout, chosen: np.ndarray | None = None
) -> Iterator[Draw]:
    """``factor_draws`` in the matrix form of the model, beside ``parameter_draws``."""
    factors = (model.matrices(each) for each in factor_draws(tree, model, layout, chosen))
    return zip(factors, parameter_draws(tree, model, chosen), strict=False)


def axes_of_parts(model: Factorization) -> str:
    """Observed axes along which the mean size of the parts of counts varies (see ``laws.counts.protocol``)."""
    kinds = set(model.likelihood.parameter_axes.values()) - {"all"}
    return "".join(getattr(model, f"{kind}s").observed for kind in kinds)


def sizes_of_parts(tree: xr.DataTree, model: Factorization) -> np.ndarray:
    """(C S, *sizes of ``axes_of_parts``) the mean count of one part in every draw; (1,) where that is known."""
    likelihood, axes = model.likelihood, axes_of_parts(model)
    if not likelihood.parameter_axes:
        return np.array([float(likelihood.mean(1.0))])
    values = [np.ravel(likelihood.mean(1.0, own)) for own in parameter_draws(tree, model)]
    sizes = model.rows.sizes | model.columns.sizes
    return np.reshape(values, (len(values), *(sizes[a] for a in axes)))


def n_draws(tree: xr.DataTree) -> int:
    """How many draws all chains have together."""
    sizes = tree["posterior"].sizes
    return int(sizes["chain"] * sizes["draw"])


def noise_of(tree: xr.DataTree) -> tuple[Noise, np.ndarray]:
    """The noise on a fit's data, and its level per row or per cell, over the data's own axes."""
    noise = noise_called(str(tree.attrs.get("mechanism", TWO_SIDED_GEOMETRIC.mechanism)))
    return noise, tree["constant_data"][noise.level].to_numpy()


def constants(
    observations: Observations | ReleaseFiles, model: Factorization, layout: Layout, coordinates: dict[str, np.ndarray]
) -> xr.Dataset:
    """The noise level of each row or cell, and the exposures of cells if there are any by cell."""
    axes = model.rows.observed + model.columns.observed
    level, dims = observations.level_d, layout.dims_of(model.rows.observed)
    if observations.level_e.size:
        level, dims = observations.level_e, layout.dims_of(axes)
    shape = [len(coordinates[name]) for name in dims]
    variables = {observations.noise.level: (dims, level.reshape(shape))}
    exposure = getattr(observations, "exposure", None)
    if exposure is not None:  # every cell is stored, and has a level
        variables[EXPOSURE] = dims, exposure.reshape(shape).copy()
    return xr.Dataset(variables, coords={name: coordinates[name] for name in dims})


def exposure_of(tree: xr.DataTree, shape: tuple[int, int]) -> np.ndarray | None:
    """The exposures of cells in a model's matrix form, if there are any by cell."""
    if "constant_data" not in tree or EXPOSURE not in tree["constant_data"]:
        return None
    return tree["constant_data"][EXPOSURE].to_numpy().reshape(shape)


def optimisation(
    found: Fitted, model: Factorization, layout: Layout, scales: tuple[np.ndarray, np.ndarray] | None = None
) -> xr.Dataset:
    """What an optimiser found, with factors as it left them: not identified. ``scales`` as ``row_gammas`` has them."""
    assert found.means is not None
    variables: dict[str, Any] = {OBJECTIVE: ("iteration", found.objective)}
    for factor, mean in zip(model.factors, found.means, strict=True):
        dims = [layout.dims[a] if a in model.spec.output else f"component_{a}" for a in factor.axes]
        if scales is not None and found.rows is not None and factor is model.factors[model.row_factor or 0]:
            variables |= row_gammas.stored(factor.name, found.rows, scales, dims)
            continue
        variables[f"{factor.name}_mean"] = (dims, mean)
    return xr.Dataset(variables, attrs={"converged": int(bool(found.converged))})


def labels_or_numbers(labels: Sequence[str] | None, size: int) -> np.ndarray:
    """Coordinates: the user's labels, or 0, 1, 2, ... where there are none."""
    return np.arange(size) if labels is None else np.array(labels, dtype=object)


def flat_draws(tree: xr.DataTree, name: str) -> np.ndarray:
    """A variable's draws with chains run together: (C S, ...), as many of each as its weight says (``matching``).

    Raises:
        ValueError: a factor of which a summary was kept.
    """
    row_gammas.check_draws(tree, name)
    return pooled(tree, tree["posterior"][name].to_numpy())


def factor_draws(
    tree: xr.DataTree, model: Factorization, layout: Layout, chosen: np.ndarray | None = None
) -> Iterator[list[np.ndarray]]:
    """Every draw's factors in the model's own order of axes, chain after chain; of each as many as its weight says.

    ``chosen`` are the numbers of those that are wanted. Draws of a factor of which a summary was kept are made again.
    """
    draws = tree["posterior"]
    arrays: list[np.ndarray | None] = []
    for factor in model.factors:
        if row_gammas.summarised(tree, factor.name):
            arrays.append(None)
            continue
        wanted = layout.axes[factor.name]
        values = draws[factor.name].to_numpy()
        arrays.append(values.transpose(0, 1, *(2 + wanted.index(a) for a in factor.axes)))
    numbers, size = members_of(tree), draws.sizes["draw"]
    every = np.arange(n_draws(tree)) if numbers is None else numbers
    for number in every if chosen is None else every[chosen]:
        c, s = divmod(int(number), size)
        yield [
            (row_gammas.draw_of(tree, factor.name, s) if values is None else values[c, s]).astype(np.float64)
            for factor, values in zip(model.factors, arrays, strict=True)
        ]


def mean_rate(tree: xr.DataTree, model: Factorization, layout: Layout) -> xr.DataArray:
    """Posterior mean of the expected counts: exact for an optimiser, the mean over draws for a sampler."""
    shape = model.rows.shape[0], model.columns.shape[0]
    total, n = np.zeros(shape), 0
    if "optimisation" in tree.children:
        found = tree["optimisation"]
        means = [
            row_gammas.mean_of(tree, factor.name)
            if row_gammas.summarised(tree, factor.name)
            else found[f"{factor.name}_mean"].to_numpy()
            for factor in model.factors
        ]
        theta, phi = model.matrices(means)
        parameters = next(iter(parameter_draws(tree, model)))  # the same in all draws
        theta, phi = in_counts(model.likelihood, theta, phi, parameters)
        total, n = theta @ phi.T, 1
    else:
        waiting: list[tuple[np.ndarray, np.ndarray]] = []
        for matrices, parameters in matrix_draws(tree, model, layout):
            waiting.append(in_counts(model.likelihood, *matrices, parameters))
            n += 1
            if len(waiting) == DRAWS_AT_ONCE:
                total += product_sum(waiting)
                waiting = []
        if waiting:
            total += product_sum(waiting)
    exposure = exposure_of(tree, shape)
    mean = total / n if exposure is None else total / n * exposure
    return rate_array(mean, tree, model, layout)


def product_sum(pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Sum of theta phi^T over pairs, in one matrix product."""
    return np.hstack([theta for theta, _ in pairs]) @ np.hstack([phi for _, phi in pairs]).T


def rate_array(
    matrix: np.ndarray, tree: xr.DataTree, model: Factorization, layout: Layout, name: str = "rate"
) -> xr.DataArray:
    """A matrix of cells as an array over the output's axes, labelled."""
    dims, draws = layout.dims_of(model.spec.output), tree["posterior"]
    return xr.DataArray(over_output(matrix, model), dims=dims, coords={d: draws[d].to_numpy() for d in dims}, name=name)


def over_output(matrix: np.ndarray, model: Factorization) -> np.ndarray:
    """A matrix of cells over the output's axes."""
    axes, sizes = model.rows.observed + model.columns.observed, model.rows.sizes | model.columns.sizes
    folded = matrix.reshape([sizes[a] for a in axes])
    return np.ascontiguousarray(folded.transpose([axes.index(a) for a in model.spec.output]))


def spread(draws: np.ndarray) -> np.ndarray:
    """(K,) mean total variation between draws of one half of a chain and the mean of its other half.

    draws is (C, S, K, n); every component of every draw is scaled to sum to one. NaN for fewer than two draws. Means of
    the same half would lie too near, since neighbouring draws are alike.
    """
    n_chains, n_draws, n_components, _ = draws.shape
    if n_draws < 2:
        return np.full(n_components, np.nan)
    found = np.zeros(n_components)
    for chain in draws:
        halves = chain[: n_draws // 2], chain[n_draws // 2 :]
        means = [sum(shares(draw) for draw in half) / len(half) for half in halves]
        for half, mean in zip(halves, reversed(means), strict=True):
            found += sum(np.abs(shares(draw) - mean).sum(axis=1) for draw in half) / len(half)
    return found / (4.0 * n_chains)


def shares(components: np.ndarray) -> np.ndarray:
    """(K, n) float64 rows scaled to sum to one; a row of zeros stays."""
    values = components.astype(np.float64)
    return np.asarray(values / np.maximum(values.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny))


def label_free(tree: xr.DataTree, model: Factorization, layout: Layout) -> dict[str, np.ndarray]:
    """Quantities that do not depend on the order of components, each (C, S) or (C, S, members).

    Besides the log-likelihood and the total rate, these are the rates of the entries of each observed axis, the
    likelihood's own parameters, learned shapes of priors, sums of chains over dates, and of layers, and how fast
    levels move. Of many, 200 are taken, evenly spread. Chains count alike, whatever their weights.
    """
    tree = unweighted(tree)
    stats = tree["sample_stats"]
    shape = stats["log_likelihood"].shape
    draws = matrix_draws(tree, model, layout)
    rates = rates_along(draws, model, exposure_of(tree, (model.rows.shape[0], model.columns.shape[0])))
    found = {LOG_LIKELIHOOD: stats["log_likelihood"].to_numpy(), "total rate": stats["total_rate"].to_numpy()}
    found |= {f"rate of each {layout.dims[a]}": values.reshape(*shape, -1) for a, values in rates.items()}
    for name in model.likelihood.parameter_axes:
        found[name] = dispersions(tree["posterior"][name].to_numpy())
    for factor in model.factors:
        if f"{factor.name}_shape" in tree["posterior"]:
            shapes = tree["posterior"][f"{factor.name}_shape"].to_numpy()
            found[f"shape of {factor.name}"] = shapes.reshape(*shapes.shape[:2], -1).mean(axis=2)
        if f"{factor.name}{OVER_TIME}" in tree["posterior"]:
            chains = tree["posterior"][f"{factor.name}{OVER_TIME}"].to_numpy().sum(axis=3)
            found[f"{factor.name} over time"] = chains[..., evenly(chains.shape[2])]
        if f"{factor.name}{ALIKE}" in tree["posterior"]:
            found[f"layers of {factor.name}"] = tree["posterior"][f"{factor.name}{ALIKE}"].to_numpy()
        if f"{factor.name}{PERSISTENCE}" in tree["posterior"]:
            found[f"persistence of {factor.name}"] = tree["posterior"][f"{factor.name}{PERSISTENCE}"].to_numpy()
            smoothness = tree["posterior"][f"{factor.name}{SMOOTHNESS}"].to_numpy()
            found[f"smoothness of {factor.name}"] = mean_log(smoothness)
    return found


def unsteadiness(draws: Draws, observations: Observations, model: Factorization) -> float:
    """The largest nested R-hat of raw draws: of all quantities of ``label_free`` but the log-likelihood."""
    shape = draws.log_likelihood.shape
    flat = draws.mapped(lambda values: values.reshape(-1, *values.shape[2:]))
    numbers = range(len(flat.log_likelihood))
    pairs = ((model.matrices([f[s] for f in flat.factors]), tuple(p[s] for p in flat.parameters)) for s in numbers)
    found = [draws.total_rate, *map(dispersions, draws.parameters)]
    found += [values.reshape(*shape, -1) for values in rates_along(pairs, model, observations.exposure).values()]
    for f in model.free:
        for values in model.factors[f].prior.summaries(model.factors[f], draws.hypers[f]):
            found.append(values if values.ndim == 2 else values[..., evenly(values.shape[2])])
    equal = np.full(shape[0], 1.0 / shape[0])
    return float(np.fmax.reduce([nested(np.asarray(values, dtype=np.float64), equal) for values in found]))


def dispersions(values: np.ndarray) -> np.ndarray:
    """(C, S, members) of (C, S, ...) those evenly spread, where below ``NEARLY_POISSON`` all are one."""
    flat = values.reshape(*values.shape[:2], -1)
    return np.maximum(flat[..., evenly(flat.shape[-1])], NEARLY_POISSON)


def rates_along(draws: Iterable[Draw], model: Factorization, exposure: np.ndarray | None) -> dict[str, np.ndarray]:
    """(draws, members) the expected counts of entries of each observed axis, of those evenly spread."""
    rates: dict[str, list[np.ndarray]] = {axis: [] for axis in model.spec.output}
    for matrices, parameters in draws:
        theta, phi = in_counts(model.likelihood, *matrices, parameters)
        of_rows, of_columns = theta @ phi.sum(axis=0), phi @ theta.sum(axis=0)
        if exposure is not None:
            of_rows, of_columns = ((theta * (exposure @ phi)).sum(axis=1), (phi * (exposure.T @ theta)).sum(axis=1))
        for side, totals in ((model.rows, of_rows), (model.columns, of_columns)):
            folded = totals.reshape([side.sizes[a] for a in side.observed])
            for i, axis in enumerate(side.observed):
                rest = tuple(j for j in range(folded.ndim) if j != i)
                along = folded.sum(axis=rest)
                rates[axis].append(along[evenly(along.size)])
    return {axis: np.array(values) for axis, values in rates.items()}


def evenly(size: int, most: int = 200) -> np.ndarray:
    """Up to ``most`` of the numbers below ``size``, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(int))


# Numbers about a fit that its tree keeps as attributes, so that a verdict needs no data.

SHARE = "signal_share", "signal_error"
TOTALS = "total_reported", "total_error", "total_fitted", "total_lower", "total_upper", "total_by_totals"
MASKED = ("masked_cells",)
MECHANISM = "mechanism_check"
REPORTS = "reports"
ENTRIES_AT_ONCE = 65_536  # in memory, for a digest
LONGEST = 20_000  # characters of what is said of a mechanism


def kept_share(share: Share) -> dict[str, Any]:
    """A fit's share of the positive reports, by name."""
    return dict(zip(SHARE, share, strict=True))


def share_kept(tree: xr.DataTree) -> Share | None:
    """The share of a fit that has one."""
    return Share(*(tree.attrs[name] for name in SHARE)) if SHARE[0] in tree.attrs else None


def kept_totals(totals: Totals) -> dict[str, Any]:
    """Totals by name, without an interval that is none."""
    return {name: value for name, value in zip(TOTALS, totals, strict=False) if value is not None}


def totals_kept(tree: xr.DataTree) -> Totals | None:
    """The totals of a fit; None where the data were not in memory."""
    if TOTALS[0] not in tree.attrs:
        return None
    values: list[Any] = [tree.attrs.get(name) for name in TOTALS]
    return Totals(*values)._replace(by_totals=values[-1] or 0, exact=tree.attrs.get("observations") == "exact")


def kept_mechanism(found: MechanismCheck | None) -> dict[str, Any]:
    """What the reports say of their mechanism, by name; nothing where that was not asked."""
    return {} if found is None else {MECHANISM: json.dumps(found._asdict())}


def mechanism_kept(tree: xr.DataTree) -> MechanismCheck | None:
    """What the reports of a fit say of their mechanism; None where that was not asked."""
    found = tree.attrs.get(MECHANISM)
    return None if found is None else MechanismCheck(*map(tuple, json.loads(found).values()))


def kept_data(data: Observations) -> dict[str, Any]:
    """How many cells of the data were masked, by name, and a digest of reports; true counts leave none."""
    found: dict[str, Any] = {MASKED[0]: data.n_masked}
    return found if isinstance(data, ExactCounts) else found | {REPORTS: digest_of(data)}


def digest_of(data: Observations) -> str:
    """A SHA-256 of which reports are where, in the matrix form of a model; those below zero count as zero."""
    digest = hashlib.sha256()
    if isinstance(data.noise, AnyMechanismNoise):  # reports are codes, of these values and bounds of counts
        digest.update(np.where(np.isnan(data.noise.value_c), np.nan, data.noise.value_c + 0.0).tobytes())
        digest.update(data.noise.kernel.whole_cj[:, [LEAST, MOST]].astype(np.int64).tobytes())
    for values in (data.indptr, data.columns, data.reports):
        for begin in range(0, values.size, ENTRIES_AT_ONCE):  # they may be views of a file
            digest.update(values[begin : begin + ENTRIES_AT_ONCE].astype(np.int64).tobytes())
    return digest.hexdigest()


def reports_kept(tree: xr.DataTree) -> str | None:
    """The digest of the reports; None of true counts, and where the data were not in memory."""
    found: str | None = tree.attrs.get(REPORTS)
    return found


def masked_kept(tree: xr.DataTree) -> int | None:
    """How many cells were masked; None where the data were not in memory."""
    found = tree.attrs.get(MASKED[0])
    return None if found is None else int(found)


def check_kept(tree: xr.DataTree) -> None:
    """Refuse what is no number, or no digest, or is kept only in part; raises ValueError."""
    digest = tree.attrs.get(REPORTS, "0" * 64)
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"must state {REPORTS} by a SHA-256 in hexadecimal digits, got {digest!r:.80}")
    check_mechanism_kept(tree.attrs.get(MECHANISM))
    for names, least in ((SHARE, 2), (TOTALS, 3), (MASKED, 1)):
        values = [tree.attrs[name] for name in names if name in tree.attrs]
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
                raise ValueError(f"must state {names[0]} in numbers, got {type(value).__name__}")
        missing = [name for name in names[:least] if name not in tree.attrs]
        if values and missing:
            raise ValueError(f"must state all of {', '.join(names[:least])} or none, got no {missing[0]}")


def check_mechanism_kept(text: Any) -> None:
    """Refuse anything but the sentences of a ``MechanismCheck``, in JSON; raises ValueError."""
    if text is None:
        return
    try:
        found = json.loads(text) if isinstance(text, str) and len(text) <= LONGEST else None
    except json.JSONDecodeError:
        found = None
    lists = list(found.values()) if isinstance(found, dict) and list(found) == list(MechanismCheck._fields) else [0]
    if not all(isinstance(each, list) and all(isinstance(said, str) for said in each) for each in lists):
        raise ValueError(f"must state {MECHANISM} by lists of sentences, in JSON, got {text!r:.80}")
