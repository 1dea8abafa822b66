"""What people take away from a fit: all its tables at once, in memory or as files, and its card in a notebook."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countveil.common.files import write_csv
from countveil.fit.dispersions import HasDispersions
from countveil.fit.results import Results
from countveil.inference.posterior import noise_of
from countveil.laws.counts import NegativeBinomial
from countveil.laws.noise import Noise
from countveil.models.layout import Part
from countveil.privacy._text import card

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator


FACTS = "library", "estimator", "method", "seed", "observations", "mechanism", "source"


class Exports(Results, HasDispersions):
    """Adds ``tables``, ``to_frame`` and ``to_csv`` to a fit."""

    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table that the fit has, by name: what ``to_csv`` writes.

        ``topics`` (for other models ``communities``, ``components``: their numbers, names, support and prevalence),
        ``topics_by_word`` and so on (all entries of each along an axis), ``dispersions`` (of bursty counts),
        ``totals``, ``effects`` and ``contrasts`` (of covariates), ``prevalence_over`` (of dates), ``documents`` and
        ``topic_correlations`` (of topics), ``diagnostics``, ``chains``, ``starts`` and ``moves`` (see ``diagnostics``;
        those that there are), and ``fit`` (what made it, and its verdict). Intervals are of 90%, where they are
        calibrated.
        """
        return {name: make() for name, make in self._makers().items()} | self._tables_of_the_fit()

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """One table of ``tables``, without making the others; by default the first: topics, communities, components.

        Raises:
            ValueError: a table that the fit does not have.
        """
        makers = self._makers()
        table = next(iter(makers), "fit") if table is None else table
        if table in makers:
            return makers[table]()
        others = self._tables_of_the_fit()
        if table not in others:
            raise ValueError(f"table must be one of {[*makers, *others]}, got {table!r}")
        return others[table]

    def _makers(self) -> dict[str, Callable[[], pd.DataFrame]]:
        """What makes each table of what was found."""
        found: dict[str, Callable[[], pd.DataFrame]] = {}
        for part in self.parts:
            many = part.many.replace(" ", "_")
            found[many] = partial(self._sizes_of, part)
            for axis in part.axes:
                found[f"{many}_by_{axis}"] = partial(self._members_of, part, axis)
        if self.model_.likelihood.name == NegativeBinomial.name:
            found["dispersions"] = self.dispersions
        totals = self.totals()
        if totals is not None:
            found["totals"] = partial(pd.DataFrame, [totals.facts])
        return found

    def _sizes_of(self, part: Part) -> pd.DataFrame:
        """A kind of components, with support and prevalence."""
        return self.support(axis=part.axes[0]).rename(columns={"component": part.one})

    def _members_of(self, part: Part, axis: str) -> pd.DataFrame:
        """All entries of a kind of components along an axis."""
        every = self.supported(axis, len(self._names_along(axis)))
        return every.rename(columns={"component": part.one, "member": axis})

    def to_csv(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write every table of ``tables`` as a .csv of its name, in a folder made if need be; returns the files.

        Each file appears whole or not at all. Text that a spreadsheet would compute gets an apostrophe. The tables hold
        the labels of the data, documents among them: share them as you would share the fit.

        Raises:
            FileExistsError: one of the files exists, and ``force`` is not set; then none is written.
            NotADirectoryError: the folder is something else.
            OSError: a file cannot be written.
        """
        place, tables = Path(folder), self.tables()
        check_writable(place, tables, force)
        place.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            write_csv(table, place / f"{name}.csv")
        return [place / f"{name}.csv" for name in tables]

    def _tables_of_the_fit(self) -> dict[str, pd.DataFrame]:
        """How far to trust the fit, and what made it."""
        judged = self.diagnostics()
        facts = {name: self.posterior.attrs[name] for name in FACTS if name in self.posterior.attrs}
        facts |= {"state": judged.state.value, "verdict": judged.verdict}
        if judged.mechanism is not None:
            facts["mechanism"] = judged.mechanism.state.value
        if self.why_no_intervals:
            facts["no intervals"] = self.why_no_intervals
        stated = pd.DataFrame({"fact": list(facts), "value": [str(value) for value in facts.values()]})
        table = judged.table.rename_axis("quantity").reset_index()
        found = {"diagnostics": table} if len(table) else {}
        return found | judged.of_chains() | {"fit": stated}


def check_writable(folder: Path, tables: Mapping[str, pd.DataFrame], force: bool) -> None:
    """Refuse a folder that is something else, or that holds one of the files, unless forced."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a directory for the tables, got something else")
    there = [f"{name}.csv" for name in tables if (folder / f"{name}.csv").exists()]
    if there and not force:
        raise FileExistsError(
            f"{folder} holds {there[0]} already; choose another folder, or force to replace what it holds"
        )


NOT_PRIVATE = {"exact": "true counts, without noise", "naive": "noisy reports, taken for true counts"}


class ShownInNotebooks:
    """A table of facts once there is a fit; scikit-learn's own picture of the model before."""

    def _repr_html_inner(self) -> str:
        found: Any = self
        if hasattr(self, "posterior_"):
            return fit_card(found)
        return str(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


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
        (
            "draws",
            f"{draws.sizes['chain']} × {draws.sizes['draw']}, method {facts['method']}, seed {fit.seed_}",
        ),
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
