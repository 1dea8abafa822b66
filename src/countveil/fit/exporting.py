"""``fit.tables``, all tables of a fit in memory or as files, and its card in a notebook."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from countveil.common.files import write_csv
from countveil.fit.effects import Effects
from countveil.inference.posterior import noise_of
from countveil.laws.counts import NegativeBinomial
from countveil.laws.noise import Noise
from countveil.models.layout import Part
from countveil.privacy._text import card

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator


FACTS = "library", "estimator", "method", "seed", "observations", "mechanism", "source"


class Tables(Mapping[str, pd.DataFrame]):
    """Every table that a fit has, by name, made when it is asked for; ``to_csv`` writes them all.

    ``topics`` (for other models ``communities``, ``components``: their numbers, names, support and prevalence),
    ``topics_by_word`` and so on (all entries of each along an axis), ``dispersions`` (of overdispersed counts),
    ``totals``, ``effects`` and ``contrasts`` (of covariates), ``prevalence_over`` (of dates), ``documents`` and
    ``topic_correlations`` (of topics), ``upper_topics`` (of several layers), ``activity``, ``transitions``,
    ``trend_by_item`` and so on, and ``seasons`` (over time), ``diagnostics``, ``chains``, ``starts`` and ``moves`` (see
    ``diagnostics``; those that there are), and ``fit`` (what made it, and its verdict). Intervals are of 90%, where
    they are calibrated.
    """

    def __init__(self, fit: "FactorizationEstimator") -> None:
        self.fit, self.makers = fit, fit._makers()

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name in self.makers:
            return self.makers[name]()
        others = tables_of_the_fit(self.fit)
        if name not in others:
            raise KeyError(f"table must be one of {[*self.makers, *others]}, got {name!r}")
        return others[name]

    def __contains__(self, name: object) -> bool:
        return name in self.makers or name in tables_of_the_fit(self.fit)

    def __iter__(self) -> Iterator[str]:
        return iter([*self.makers, *tables_of_the_fit(self.fit)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def to_csv(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write every table as a .csv of its name, in a folder made if need be; returns the files.

        Each file appears whole or not at all. Text that a spreadsheet would compute gets an apostrophe. The tables hold
        the labels of the data, documents among them: share them as you would share the fit.

        Raises:
            FileExistsError: one of the files exists, and ``force`` is not set; then none is written.
            NotADirectoryError: the folder is something else.
            OSError: a file cannot be written.
        """
        place = Path(folder)
        tables = {name: make() for name, make in self.makers.items()} | tables_of_the_fit(self.fit)
        check_writable(place, tables, force)
        place.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            write_csv(table, place / f"{name}.csv")
        return [place / f"{name}.csv" for name in tables]


def makers_of_parts(fit: "FactorizationEstimator") -> dict[str, Callable[[], pd.DataFrame]]:
    """What makes each table that every model may have."""
    found: dict[str, Callable[[], pd.DataFrame]] = {}
    for part in fit._reader.kinds:
        many = part.many.replace(" ", "_")
        found[many] = partial(sizes_of, fit, part)
        for axis in part.axes:
            found[f"{many}_by_{axis}"] = partial(members_of, fit, part, axis)
    if fit.model_.likelihood.name == NegativeBinomial.name:
        found["dispersions"] = fit.dispersions
    totals = fit.totals()
    if totals is not None:
        found["totals"] = partial(pd.DataFrame, [totals.facts])
    if fit.covariates_ is not None:
        found |= {"effects": Effects(fit).table, "contrasts": Effects(fit).contrasts}
    if fit.dates_ is not None:
        found["prevalence_over"] = Effects(fit).over_time
    return found


def sizes_of(fit: "FactorizationEstimator", part: Part) -> pd.DataFrame:
    """A kind of components, with support and prevalence."""
    return fit.parts.support(axis=part.axes[0]).rename(columns={"component": part.one})


def members_of(fit: "FactorizationEstimator", part: Part, axis: str) -> pd.DataFrame:
    """All entries of a kind of components along an axis."""
    every = fit.parts.supported(axis, len(fit._reader.names_along(axis)))
    return every.rename(columns={"component": part.one, "member": axis})


def tables_of_the_fit(fit: "FactorizationEstimator") -> dict[str, pd.DataFrame]:
    """How far to trust the fit, and what made it."""
    judged = fit.diagnostics()
    facts = {name: fit.posterior.attrs[name] for name in FACTS if name in fit.posterior.attrs}
    facts |= {"state": judged.state.value, "verdict": judged.verdict}
    if judged.mechanism is not None:
        facts["mechanism"] = judged.mechanism.state.value
    if fit._reader.why_no_intervals:
        facts["no intervals"] = fit._reader.why_no_intervals
    stated = pd.DataFrame({"fact": list(facts), "value": [str(value) for value in facts.values()]})
    table = judged.table.rename_axis("quantity").reset_index()
    found = {"diagnostics": table} if len(table) else {}
    return found | judged.of_chains() | {"fit": stated}


def check_writable(folder: Path, tables: Mapping[str, pd.DataFrame], force: bool) -> None:
    """Refuse a folder that is something else, or that holds one of the files, unless forced."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a directory for the tables, got a file: choose another name")
    there = [f"{name}.csv" for name in tables if (folder / f"{name}.csv").exists()]
    if there and not force:
        raise FileExistsError(
            f"{folder} holds {there[0]} already; choose another folder, or force=True (--force) to replace its tables"
        )


NOT_PRIVATE = {"exact": "true counts, without noise", "naive": "noisy reports, treated as true counts"}


def fit_card(fit: "FactorizationEstimator") -> str:
    """HTML of the facts of a fit; quick, so chains are not judged here."""
    tree, model, layout = fit._fitted()
    draws, facts = tree["posterior"], tree.attrs
    sizes = " × ".join(f"{draws.sizes[d]:,} {d}" for d in layout.dims_of(model.spec.output))
    latent = ", ".join(f"{draws.sizes[d]:,} {d}" for d in layout.dims_of(model.spec.latent))
    rows = [
        ("data", sizes),
        ("noise", in_words(*noise_of(tree), str(facts["observations"]), bool(facts["simulated_noise"]))),
        *([("reports imported from", str(facts["source"]))] if "source" in facts else []),
        ("parts", latent),
        ("draws", f"{draws.sizes['chain']} × {draws.sizes['draw']}, method {facts['method']}, seed {fit.seed_}"),
        ("time", f"{fit.fit_seconds_:.1f} s{', interrupted' if fit.interrupted_ else ''}"),
    ]
    note = "diagnostics().verdict says whether to trust it; posterior has all draws, in ArviZ's layout."
    return card(f"{type(fit).__name__}, fitted", rows, note)


def in_words(noise: Noise, level: np.ndarray, kind: str, simulated: bool) -> str:
    """The noise of the data in words."""
    if kind in NOT_PRIVATE:
        return NOT_PRIVATE[kind]
    said = noise.in_words(level)
    return f"{said}, simulated: protects nobody" if simulated else said
