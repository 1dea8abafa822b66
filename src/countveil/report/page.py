"""The page: everything gathered, and put into one file that needs nothing else."""

import json
import os
import platform
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from countveil import __version__
from countveil.common.extras import install
from countveil.common.parameters import check_integer
from countveil.data.observations import Observations
from countveil.fit.base import FactorizationEstimator
from countveil.fit.forecasts import Forecast
from countveil.fit.layers import tree_of
from countveil.fit.naming import merged_in_words
from countveil.fit.predictive_checks import check, judged_with
from countveil.fit.reading import weights_in_words
from countveil.fit.totals import totals_of
from countveil.inference.diagnostics import ESS_GOOD, R_HAT_GOOD, Diagnostics, Share, State, quantity_of
from countveil.inference.posterior import noise_of
from countveil.laws.noise import AnyMechanismNoise
from countveil.privacy import Release
from countveil.privacy._archive import replacing
from countveil.privacy._text import listed, plain
from countveil.report.baselines import compare, naive_fit, noise_alone
from countveil.report.dynamics import dynamics_of
from countveil.report.loading import both_forms, observed, stating
from countveil.report.pictures import check_picture, network_pictures, over_time_picture, trace_picture
from countveil.report.promise import promise_of
from countveil.report.sections import (
    Kind,
    block_table,
    bursts_of,
    contrast_rows,
    effect_rows,
    hidden_counts,
    kinds,
    number,
    percent,
    tuning_tables,
)

LONGEST_VALUE = 400  # characters of a parameter that a page shows
DISPERSIONS = {
    "p": "dispersion p",
    "p_mean": "mean of the dispersions",
    "p_concentration": "concentration of the dispersions",
}


class Headline(NamedTuple):
    """Whether results can be reported, what that means, and what follows from it, in a sentence each."""

    state: str
    meaning: str
    consequence: str


def write_report(
    fit: FactorizationEstimator,
    path: str | os.PathLike[str],
    release: Release | Observations | None = None,
    *,
    members: int = 8,
    title: str | None = None,
    naive: bool = False,
    forecast: Forecast | None = None,
) -> Diagnostics:
    """Write one page about a fit to an HTML file that needs no network and no script; atomically.

    Args:
        fit: any fitted model.
        path: the file.
        release: what it was fitted to, such as what ``join`` returned; with it the page says how much of the reports
            noise alone explains, and whether releases simulated from the fit look like it. Other observations, such as
            ``PrivatizedCounts``, state no level, so that the page says what it says without a release of what was
            promised.
        members: how many words (actors, entries) to list of each topic (community, component).
        title: heading of the page.
        naive: compare the fit with one that takes the release's reports for true counts. It is fitted for the page,
            and takes about as long as the fit did.
        forecast: of a fit over time, what ``fit.forecast`` returned: the page shows it as fans.

    Returns:
        The fit's diagnostics as the page has them: a check of the release that fails is part of their verdict.

    Raises:
        ModuleNotFoundError: Jinja2 or matplotlib is missing.
        TypeError: a release that is neither a ``Release`` nor observations.
        ValueError: a release or a forecast that is not the fit's, members below one; naive without a ``Release``, or
            for a fit that is not of private counts.
        NotFittedError: before ``fit``.
    """
    page, judged = rendered(fit, release, members, title, naive, forecast)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return judged


def render(
    fit: FactorizationEstimator,
    release: Release | Observations | None = None,
    *,
    members: int = 8,
    title: str | None = None,
    naive: bool = False,
    forecast: Forecast | None = None,
) -> str:
    """The page as text; the same for the same fit and release. Arguments and errors as ``write_report``."""
    return rendered(fit, release, members, title, naive, forecast)[0]


def rendered(
    fit: FactorizationEstimator,
    release: Release | Observations | None,
    members: int,
    title: str | None,
    naive: bool,
    forecast: Forecast | None,
) -> tuple[str, Diagnostics]:
    """The page as text, and the diagnostics that it shows."""
    check_integer("members", members, 1)
    if naive and not isinstance(release, Release):
        got = "none" if release is None else "joined ones" if stating(release) else type(release).__name__
        raise ValueError(f"naive needs the release that was fitted, got {got}")
    template = template_of_page()
    context = gathered(fit, release, members, title, forecast)
    if naive and isinstance(noise_of(fit.posterior)[0], AnyMechanismNoise):
        raise ValueError("naive needs a fit with two-sided geometric noise, got a fit with another mechanism")
    if naive and isinstance(release, Release):
        context["naive"] = compare(fit, naive_fit(fit, release), observed(fit, release), members)
    return plain(template.render(context), lines=True) + "\n", context["judged"]


@cache
def template_of_page() -> Any:
    """The template, which takes as long to compile as a page to fill in; raises ModuleNotFoundError."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"the report needs Jinja2, which is missing: {install('report')}") from error
    environment = Environment(
        loader=PackageLoader("countveil.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(percent=percent, number=number)
    return environment.get_template("report.html")


def gathered(
    fit: FactorizationEstimator,
    release: Release | Observations | None,
    members: int,
    title: str | None,
    forecast: Forecast | None = None,
) -> dict[str, Any]:
    """All that the template shows."""
    given, data = (None, None) if release is None else both_forms(fit, release)
    found, network = kinds(fit, members), fit._reader.network
    diagnostics = fit.diagnostics()
    trace = trace_picture(fit)
    style = files("countveil.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    model, method, seed, *_ = (value for _, value in facts_table(fit))
    context: dict[str, Any] = {
        "title": title or title_of(found),
        "style": style,
        "promise": promise_of(fit, *stating(release)),
        "shape": fit._reader.data_in_words(),
        "noise_table": [*source_table(fit), *noise_table(fit)],
        "noise_ignored": fit.posterior.attrs["observations"] == "naive",
        "kinds": found,
        "chain_weights": weights_in_words(fit),
        "merged": merged_in_words(fit),
        "several": "promised_together" in fit.posterior.attrs,
        "numbers": ", ".join(number_of_parts(kind) for kind in found),
        "network": network,
        "pictures": [] if network is None else network_pictures(fit, network),
        "block_table": [] if network is None else block_table(network, not fit._reader.why_no_intervals),
        "why_no_intervals": fit._reader.why_no_intervals,
        "diagnostics": diagnostic_rows(diagnostics.table, labels_for_readers(fit)),
        "sampled": "optimisation" not in fit.posterior.children,
        "trace": trace,
        "tuning": tuning_tables(diagnostics),
        "bursts": bursts_of(fit),
        "hidden": None if given is None else hidden_counts(fit, given),
        "effects": effect_rows(fit),
        "contrasts": contrast_rows(fit),
        "over_time": over_time_picture(fit),
        "tree": tree_of(fit) if fit._n_upper else [],
        "dynamics": dynamics_of(fit, forecast),
        "facts": facts_table(fit),
        "summary": f"{model}, {method}, seed {seed}",
        "parameters": parameters(fit),
        "release_given": release is not None,
        "noise": None,
        "totals": None,
        "check": None,
        "naive": None,
    }
    if data is not None:
        context |= compared(fit, data)
    judged = judged_with(fit, diagnostics, context["check"])
    words = {"verdict": judged.verdict, "trust": trust(judged), "headline": headline_of(fit, judged)}
    return context | {"judged": judged} | words


def compared(fit: FactorizationEstimator, data: Observations) -> dict[str, Any]:
    """What the template shows of a release beside its fit; no check where the fit's draws are not calibrated."""
    done = None if fit._reader.why_no_intervals else check(fit, data)
    found: dict[str, Any] = {"check": done, "check_picture": None if done is None else check_picture(done)}
    if isinstance(data.noise, AnyMechanismNoise):
        return found
    noise, totals = noise_alone(fit, data), totals_of(fit, data)
    n_rows = data.shape[0]
    if noise.rows == n_rows:
        noise = noise._replace(sum_of_rates=totals.fitted)  # the same, by other draws
    return found | {
        "noise": noise,
        "totals": totals,
        "selection": f"{noise.rows:,} of {n_rows:,}" if noise.rows < n_rows else "",
    }


def title_of(found: list[Kind]) -> str:
    """The page's heading where none is given."""
    names = [kind.part.many for kind in found] or ["components"]
    said = listed(names)
    return f"{said[0].upper()}{said[1:]} behind private counts"


def number_of_parts(kind: Kind) -> str:
    """How many components there are of a kind."""
    n = len(kind.cards)
    said = f"{n} {kind.part.one if n == 1 else kind.part.many}"
    return f"{said} that most chains found, {len(kind.others)} that only some found" if kind.others else said


def source_table(fit: FactorizationEstimator) -> list[tuple[str, str]]:
    """Where imported reports are from, and how many totals are beside them; nothing for others."""
    facts = fit.posterior.attrs
    found = [("source of the reports", str(facts["source"]))] if "source" in facts else []
    met = [("exact totals", f"{facts['exact_totals']:,}, all met")] if "exact_totals" in facts else []
    noisy = [("noisy totals", f"{facts['noisy_totals']:,}")] if "noisy_totals" in facts else []
    used = [("totals used", str(facts["totals_used"]))] if "totals_used" in facts else []
    return found + met + noisy + used


def noise_table(fit: FactorizationEstimator) -> list[tuple[str, str]]:
    """How noisy the data are: name and value."""
    noise, level = noise_of(fit.posterior)
    if not level.any():
        return [("noise", "none")]
    if not noise.counts_positive:
        return [("protection", noise.in_words(level))]
    deviation, false = noise.standard_deviation(level), noise.positive_by_noise(level)
    return [
        ("standard deviation of the noise on one count", spread(deviation, "{:.2f}")),
        ("true zeros with a positive report", spread(100.0 * false, "{:.1f}%")),
        (f"noise parameter {noise.level}", spread(level, "{:.4g}")),
    ]


def spread(values: np.ndarray, form: str) -> str:
    """One value, or from the least to the greatest."""
    low, high = form.format(values.min()), form.format(values.max())
    return low if low == high else f"{low} to {high}"


def trust(found: Diagnostics) -> str:
    """good, fair, bad or unknown: a word for the state, never a colour alone."""
    if found.state == State.SAFE and "r_hat" in found.table:
        ess = found.table[["ess_bulk", "ess_tail"]].min().min()
        return "good" if found.table["r_hat"].max() <= R_HAT_GOOD and ess >= ESS_GOOD else "fair"
    words = {State.SAFE: "good", State.WITH_SUPPORT: "fair", State.UNSAFE: "bad"}
    return words.get(found.state, "unknown")


def headline_of(fit: FactorizationEstimator, judged: Diagnostics) -> Headline:
    """The verdict for somebody who reads nothing else; numbers in brackets are left to the sections below."""
    meaning = re.sub(r" \([^()]*\)", "", judged.reason)
    meaning = re.sub(r"^(Safe to report( with support)?|Not safe yet): ", "", meaning)
    many = fit._reader.kinds[0].many if fit._reader.kinds else "components"
    if judged.state == State.UNSAFE:
        consequence = "Do not report these results."
    elif judged.state == State.UNCHECKED:
        consequence = "Do not report these results before they have been checked."
    elif judged.state == State.WITH_SUPPORT:
        known = fit._reader.kinds and not fit._reader.unshared()
        each = f"and each of the {many} with its support" if known else f"but none of the {many}"
        consequence = f"You can report expected counts and sums over all chains, {each}."
    elif fit._reader.why_no_intervals:
        consequence = "You can report these numbers; they have no intervals."
    else:
        consequence = "You can report these numbers with their intervals."
    return Headline(judged.state.capitalize(), meaning[0].upper() + meaning[1:], consequence)


def labels_for_readers(fit: FactorizationEstimator) -> dict[str, str]:
    """What readers call the quantities of the diagnostics."""
    _, model, layout = fit._fitted()
    singular = {many: many.removesuffix("s") for many in layout.plurals.values()}
    one = {dim: singular[layout.plurals[dim]] if dim in layout.plurals else dim for dim in layout.dims.values()}
    counted = fit._reader.kinds[0].whole.split()[-1] if fit._reader.kinds else "counts"
    found = {"total rate": f"sum of the expected {counted}"}
    for dim in fit._reader.axes:
        expected = "expected count" if f"{one[dim]}s" == counted else f"expected {counted}"
        found[f"rate of each {dim}"] = f"{expected} of each {one[dim]}"
    sides = {"row": model.rows, "column": model.columns}
    for name, axis in model.likelihood.parameter_axes.items():
        each = "" if axis not in sides else " and ".join(one[layout.dims[a]] for a in sides[axis].observed)
        found[name] = DISPERSIONS.get(name, name) + (f" of each {each}" if each else "")
    for factor in model.factors:
        named = " by ".join(one[layout.dims[axis]].removesuffix("_to") for axis in factor.axes)  # community_to
        found[f"shape of {factor.name}"] = f"prior shape, {named}"
        found[f"{factor.name} over time"] = f"sums over time, {named}"
    return found


def diagnostic_rows(
    table: pd.DataFrame, labels: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[str, list[str], str]]:
    """Name, numbers and plain words of each row of the diagnostics."""
    if "converged" in table:
        row = table.iloc[0]
        said = "converged" if row["converged"] else "stopped before it had converged: allow more iterations"
        shares = [
            str(Share(row[f"{name}_share"], row[f"{name}_error"])) if np.isfinite(row[f"{name}_share"]) else "–"
            for name in ("signal", "total")
        ]
        return [("fit", [f"{int(row['iterations'])}", *shares], said)]
    rows = []
    for name, row in table.iterrows():
        values = (
            (row["r_hat"], "{:.3f}"), (row["r_hat_nested"], "{:.3f}"), (row["ess_bulk"], "{:.0f}"),
            (row["ess_tail"], "{:.0f}"),
        )  # fmt: skip
        numbers = [form.format(value) if np.isfinite(value) else "–" for value, form in values]
        rows.append((labels.get(str(name), str(name)), numbers, quantity_of(str(name), row)[0]))
    return rows


def facts_table(fit: FactorizationEstimator) -> list[tuple[str, str]]:
    """What made the fit and this page."""
    facts, sizes = fit.posterior.attrs, fit.posterior["posterior"].sizes
    kept = f"{sizes['chain']} chains of {sizes['draw']} draws" if sizes["draw"] > 1 else "one point estimate"
    return [
        ("model", str(facts["estimator"])),
        ("method", f"{facts['method']}, {kept}"),
        ("seed", str(facts["seed"])),
        ("interrupted", "yes: the draws until then are kept" if fit.interrupted_ else "no"),
        ("seconds", f"{fit.fit_seconds_:.1f}"),
        ("fitted with", str(facts["library"])),
        ("page made with", f"countveil {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"),
    ]


def parameters(fit: FactorizationEstimator) -> str:
    """The model's parameters as they were given; of long ones, such as tables, the beginning."""
    given = json.loads(fit.posterior.attrs["parameters"])
    texts = {name: str(value) for name, value in sorted(given.items())}
    return ", ".join(
        f"{name}={text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + '...'}" for name, text in texts.items()
    )
