"""``countveil fit``: topics, communities or components behind a release."""

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from countveil.cli.fit_options import Rows, Seeding, Times, print_effects, print_over_time, say_left_out
from countveil.cli.options import (
    FILES,
    SAMPLER,
    Dispersion,
    Force,
    LikelihoodName,
    Members,
    MethodName,
    PriorShape,
    Seed,
    SelfLoops,
    Shape,
    Threads,
    Undirected,
    Weights,
    number_or_auto,
    number_or_word,
    sizes_or_auto,
    whole_numbers,
    with_option_groups,
)
from countveil.cli.output import check_free, plain_errors, say, tell_of_start
from countveil.cli.releases import Data, ReleaseFile, read_release
from countveil.cli.results import Result, fit_tables, with_result
from countveil.common.names import names_in
from countveil.privacy._text import plain

if TYPE_CHECKING:
    import pandas as pd

    from countveil.data.observations import Observations
    from countveil.fit.base import FactorizationEstimator
    from countveil.models.layout import Part


fit_app = typer.Typer(help="Fit a model to a release.", no_args_is_help=True)

Output = Annotated[Path, typer.Option("--output", "-o", help="The fit to write (netCDF, .nc).")]


LONGEST_NAME = 60  # of an axis by the header of a table; a longer one does not fit into tables
EQUAL = "equal"
AUTO = '"auto" to choose it by held-out reports'
CHECKPOINT = "File in which running chains are saved, with method gibbs or augmented-gibbs."


class Sampling(NamedTuple):
    """Options of every fit: how to fit, and with what."""

    method: MethodName = "gibbs"
    likelihood: LikelihoodName = None
    dispersion: Dispersion = None
    prior_shape: PriorShape = None
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=SAMPLER,
            help="Posterior draws from each chain [default: 50; 500 from an approximation].",
        ),
    ] = None
    tune: Annotated[
        int, typer.Option(min=0, rich_help_panel=SAMPLER, help="Tuning sweeps of each chain, which are discarded.")
    ] = 200
    chains: Annotated[
        str,
        typer.Option(
            rich_help_panel=SAMPLER,
            help="Number of independent chains, or auto to add chains until averages over them are steady.",
            callback=lambda text: str(number_or_auto("chains", text)),
        ),
    ] = "auto"
    weights: Weights = EQUAL
    seed: Seed = None
    threads: Threads = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=SAMPLER,
            help="Compute on the workers of this Dask scheduler, such as tcp://10.0.0.1:8786; the result does not "
            "depend on it. Needs the extra `dask`.",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """What the constructor of a model takes.

        Raises:
            ValueError: the scheduler is not an address.
        """
        named = self._asdict() | {name: number_or_word(getattr(self, name)) for name in ("dispersion", "prior_shape")}
        named["chains"] = number_or_auto("chains", self.chains)
        weights = named.pop("weights")
        if weights != EQUAL:
            from countveil.inference.methods import made

            named["method"] = made(self.method, {"weights": weights})
        scheduler = named.pop("scheduler")
        if scheduler is not None and "://" not in scheduler:
            raise ValueError(f"scheduler must be an address such as tcp://10.0.0.1:8786, got {scheduler!r}")
        return {**named, "engine": scheduler}


class Saving(NamedTuple):
    """Options of every fit: where chains are saved as they run, and what may be replaced."""

    checkpoint: Annotated[Path | None, typer.Option(help=CHECKPOINT, rich_help_panel=FILES)] = None
    checkpoint_minutes: Annotated[float, typer.Option(help="Minutes between saves.", rich_help_panel=FILES)] = 5.0
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint.", rich_help_panel=FILES)] = (
        False
    )
    force: Force = False


@fit_app.command("topics")
@plain_errors
@with_result
@with_option_groups
def fit_topics(
    release: ReleaseFile,
    output: Output,
    *,
    topics: Annotated[
        str,
        typer.Option(
            help=f"Number of topics K, or {AUTO}; 50,20,5 for layers: 20 upper topics above the 50, and 5 above the 20."
        ),
    ] = "10",
    rows: Rows,
    times: Times,
    seeding: Seeding,
    sampling: Sampling,
    members: Members = 8,
    saving: Saving,
) -> Result:
    """Fit a topic model to a release and write the fit.

    Prints each topic's share of all expected words and its most probable words, with 90% intervals, and whether the
    results are safe to report. Ctrl-C stops early: draws so far are kept and written, but tuning is lost without a
    checkpoint. With `--checkpoint`, a later run with `--resume` continues to the same draws.

    Example: `countveil fit topics survey.npz -o survey.nc --topics 5 --seed 1`
    """
    number, people, dates = sizes_or_auto("topics", topics), rows.read(), times.read()
    seeds = seeding.read()
    data = ready(release, output, saving)
    about = {"covariates": rows.beside(data, people), "time": dates}
    from countveil.fit import TopicModel

    model = TopicModel(number, prevalence=rows.prevalence, seeds=seeds, **sampling.arguments())
    fit_to(model, data, saving, about)
    say_left_out(model)
    print_parts(model, members)
    print_rows(model)
    print_totals(model)
    return finish(model, output, members)


@fit_app.command("blocks")
@plain_errors
@with_result
@with_option_groups
def fit_blocks(
    release: ReleaseFile,
    output: Output,
    *,
    communities: Annotated[str, typer.Option(help=f"Number of communities C, or {AUTO}.")] = "5",
    undirected: Undirected = False,
    self_loops: SelfLoops = False,
    rows: Rows,
    sampling: Sampling,
    members: Members = 8,
    saving: Saving,
) -> Result:
    """Fit communities to a release of a network (a square matrix, senders by receivers) and write the fit.

    Prints each community's share of all expected messages and its strongest actors, with 90% intervals, and whether the
    results are safe to report. Ctrl-C, `--checkpoint` and `--resume` work as in `countveil fit topics`.

    Example: `countveil fit blocks network.npz -o network.nc --communities 5 --seed 1`
    """
    number, people = number_or_auto("communities", communities), rows.read()
    data = ready(release, output, saving)
    about = {"covariates": rows.beside(data, people)}
    from countveil.fit import BlockModel

    network = {"directed": not undirected, "self_loops": self_loops}
    model = BlockModel(number, prevalence=rows.prevalence, **network | sampling.arguments())
    fit_to(model, data, saving, about)
    print_parts(model, members)
    print_rows(model)
    print_totals(model)
    return finish(model, output, members)


@fit_app.command("tensor")
@plain_errors
@with_result
@with_option_groups
def fit_tensor(
    release: ReleaseFile,
    output: Output,
    *,
    components: Annotated[str, typer.Option(help=f"Number of components K, or {AUTO}.")] = "10",
    modes: Annotated[
        str | None,
        typer.Option(
            help="Names of the axes (modes), separated by commas [default: those of the table that was imported, or "
            "else mode0,mode1,...]."
        ),
    ] = None,
    shape: Shape = None,
    rows: Rows,
    sampling: Sampling,
    members: Members = 5,
    saving: Saving,
) -> Result:
    """Fit a CP tensor factorization to a release and write the fit.

    The columns of the release are the cells along all axes but the first. Prints each component's share of all expected
    counts and its largest entries along each axis, with 90% intervals, and whether the results are safe to report.
    Ctrl-C, `--checkpoint` and `--resume` work as in `countveil fit topics`.

    Example: `countveil fit tensor events.npz -o events.nc --components 25 --modes source,target,year`
    """
    number, people = number_or_auto("components", components), rows.read()
    data = ready(release, output, saving)
    about = {"covariates": rows.beside(data, people)}
    from countveil.fit import TensorModel

    tensor = folded(data, shape)
    names = names_of_axes(tensor, "component", "term") if modes is None else names_in(modes)
    model = TensorModel(number, modes=names, prevalence=rows.prevalence, **sampling.arguments())
    fit_to(model, tensor, saving, about)
    print_parts(model, members)
    print_rows(model)
    print_totals(model)
    return finish(model, output, members)


def names_of_axes(data: Any, *taken: str) -> list[str] | None:
    """What data call their axes, as names of modes; None if they do not name all, or in ways that modes cannot have.

    ``taken``: names that a model has for other arrays.
    """
    from countveil.models.layout import checked_modes

    about = data.extras if hasattr(data, "extras") else getattr(data, "provenance", None)  # files of a folder have none
    given = getattr(about, "axis_names", None) or ()
    names = [re.sub(r"\W+", "_", name or "").strip("_") for name in given]
    try:
        usable = names and all(0 < len(name) <= LONGEST_NAME for name in names)
        return checked_modes(names, len(names), *taken) if usable else None
    except ValueError:
        return None


def folded(data: "Data", shape: str | None) -> "Observations":
    """A release of a matrix as the tensor that it stands for; one of a tensor as it is."""
    from countveil.data.release_files import ReleaseFiles
    from countveil.data.reports import observations_of

    whole = data.unpacked() if isinstance(data, ReleaseFiles) else observations_of(data)
    if len(whole.mode_shape) > 2 and shape is None:
        return whole
    return whole.folded(None if shape is None else whole_numbers("shape", shape))


def ready(release: Path, output: Path, saving: Saving) -> "Data":
    """The release, or those of a folder, once every file that the command names has been checked."""
    if output.suffix.lower() != ".nc":
        raise ValueError(f"output must end in .nc (netCDF), got {output.name}")
    check_free(output, saving.force, release, saving.checkpoint)
    if saving.resume and saving.checkpoint is None:
        raise ValueError("--resume must come with --checkpoint, the file to continue from, got none")
    if saving.checkpoint is not None:
        check_free(saving.checkpoint, True, release)  # fit decides whether it may exist
        tell_of_start(saving.checkpoint, saving.resume)
    return read_release(release)


def fit_to(model: "FactorizationEstimator", data: Any, saving: Saving, about: dict[str, Any] | None = None) -> None:
    """Fit, given what ``about`` says of the rows; what it warns of is printed at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(
            data,
            **{name: given for name, given in (about or {}).items() if given is not None},
            checkpoint=saving.checkpoint,
            checkpoint_minutes=saving.checkpoint_minutes,
            resume=saving.resume,
        )
    found = getattr(model, "selection_", None)
    if found is not None:
        say(found.verdict)


def print_rows(model: Any) -> None:
    """Topics of topics, what covariates do to topics, or how topics change over time, if the fit has any of these."""
    if model._n_upper:
        print_tree(model)
    if model.covariates_ is not None:
        print_effects(model)
    if model.dates_ is not None:
        print_over_time(model)


def print_tree(model: Any) -> None:
    """Topics of topics, each with its largest ones of the layer below, indented."""
    from countveil.fit.layers import tree_of

    def print_nodes(nodes: Any, depth: int) -> None:
        for node in nodes:
            say(f"{'  ' * depth}{plain(node.said)}")
            print_nodes(node.below, depth + 1)

    found = tree_of(model)
    shares = "shares with 90% intervals, or undetermined where these are wider than 50 points"
    if model._reader.why_no_intervals:
        shares = "shares"
    none = "at most half of the chains have any of them."
    say(f"Topics of topics: {f'{shares}.' if found else none}")
    print_nodes(found, 1)


def finish(model: "FactorizationEstimator", output: Path, members: int) -> Result:
    """Say whether to trust the fit, then write it: last, so that a failure to write loses nothing that was printed.

    Returns what the fit says.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if model.interrupted_:
            say("The fit was interrupted: it has only the draws made until then.")
        say(model.diagnostics().line)
        model.save(output)
    say(f"Wrote {output}: seed {model.seed_}, {model.fit_seconds_:.1f} s.")
    facts = {"output": str(output), "seed": model.seed_, "seconds": model.fit_seconds_}
    return fit_tables(model, members) | facts


def print_parts(model: "FactorizationEstimator", n: int) -> None:
    """The components of a fit with their n strongest members, one table for each kind and axis."""
    from countveil.fit.naming import merged_in_words
    from countveil.fit.reading import weights_in_words

    weights, merged = weights_in_words(model), merged_in_words(model)
    if weights:
        say(f"Weights of the chains: {weights}.")
    if merged:
        say(merged)
    for part in model._reader.kinds:
        for axis in part.axes:
            title = f"{part.many.capitalize()} by share of {part.whole}"
            title = title if len(part.axes) == 1 else f"{title}: {axis}"
            print_members(title, part, model.parts.supported(axis, n), weighted=bool(weights))
    if model._reader.kinds and model._reader.why_no_intervals:
        say(f"No intervals: {model._reader.why_no_intervals}.")


def print_totals(model: "FactorizationEstimator") -> None:
    """How bursty the counts are, if they are; and their sum by the fit and by the reports, if these were in memory."""
    from countveil.report.sections import bursts_of

    bursts = bursts_of(model)
    if bursts is not None:
        say(bursts.said)
        for name, p, ratio in bursts.rows:
            say(f"  {plain(name)}: p {p}, variance over mean {ratio}")
    totals = model.totals()
    if totals is not None:
        say(f"Expected sum of counts: {totals}.")
    print_totals_used(model)


def print_members(title: str, part: "Part", members: "pd.DataFrame", *, weighted: bool) -> None:
    """One row per component: its share of everything, and its largest members, with intervals if the table has any.

    Of several chains, only what more than half of them have.
    """
    from rich.table import Table
    from rich.text import Text

    from countveil.common.console import console
    from countveil.inference.matching import STABLE

    table = Table(title=Text(plain(title)), title_justify="left", header_style="")
    table.add_column(part.one, justify="right")
    alone = bool(members["support"].isna().all())
    if not alone:
        table.add_column("support", justify="right")
    table.add_column("share", justify="right")
    intervals = "lower" in members
    stable = members if alone else members[members["support"] > STABLE]
    table.add_column(f"{part.heading} in %{' (90% interval)' if intervals else ''}")
    for number, rows in stable.groupby("component", sort=False):
        listed = ", ".join(
            f"{plain(str(row.member))} {100 * row.probability:.1f}"
            + (f" ({100 * row.lower:.1f} to {100 * row.upper:.1f})" if intervals else "")
            for row in rows.itertuples()
        )
        support = [] if alone else [f"{rows['support'].iloc[0]:.0%}"]
        name = f" {rows['name'].iloc[0]}" if "name" in rows else ""
        table.add_row(Text(plain(f"{number}{name}")), *support, f"{rows['prevalence'].iloc[0]:.1%}", Text(listed))
    console().print(table)
    others = members["component"].nunique() - stable["component"].nunique()
    if others:
        found = f"{others} {part.many if others > 1 else part.one}"
        say(f"Not listed: {found} that at most half of the chains found{' by weight' if weighted else ''}.")


def print_totals_used(model: "FactorizationEstimator") -> None:
    """How many totals beside the reports were exact and how many were not, and which families they are of."""
    facts = model.posterior.attrs
    if "exact_totals" in facts:
        say(f"{facts['exact_totals']:,} exact totals, all met.")
    if "noisy_totals" in facts:
        say(f"{facts['noisy_totals']:,} noisy totals.")
    if "totals_used" in facts:
        say(f"Totals used: {facts['totals_used']}.")
