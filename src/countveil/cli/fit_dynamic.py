"""``countveil fit dynamic``: components over time behind a release."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from countveil.cli.fit import (
    AUTO,
    Output,
    Sampling,
    Saving,
    finish,
    fit_to,
    folded,
    names_of_axes,
    print_parts,
    print_totals,
    ready,
)
from countveil.cli.fit_options import DayFirst
from countveil.cli.options import MODEL, Members, Shape, number_or_auto, with_option_groups
from countveil.cli.output import plain_errors, say
from countveil.cli.releases import ReleaseFile
from countveil.cli.results import Result, with_result
from countveil.common.names import names_in
from countveil.privacy import Release
from countveil.privacy._text import plain

FEW_STEPS, MOST_ROWS = 6, 20  # of which a terminal can hold the counts

if TYPE_CHECKING:
    from countveil.data.reports import Reports
    from countveil.fit.dynamics import DynamicModel


@plain_errors
@with_result
@with_option_groups
def fit_dynamic(
    release: ReleaseFile,
    output: Output,
    *,
    components: Annotated[
        str | None,
        typer.Option(
            help=f"Upper bound on the number of components K, or {AUTO} [default: 10, or fewer for few series]."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="The time axis: a name in --modes, or its number from 0 [default: the axis called time, otherwise "
            "the rows].",
        ),
    ] = None,
    modes: Annotated[
        str | None,
        typer.Option(
            help="Names of the axes (modes), separated by commas [default: time,item or time,mode1,mode2,...]."
        ),
    ] = None,
    steady: Annotated[
        bool,
        typer.Option(
            "--steady",
            rich_help_panel=MODEL,
            help="Give all time steps the same volume [default: learn how much volumes differ].",
        ),
    ] = False,
    season: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MODEL,
            help='Number of steps in a season, such as 12 for months, or "auto" to find it in '
            "dates [default: no season].",
        ),
    ] = None,
    day_first: DayFirst = None,
    background: Annotated[
        bool,
        typer.Option(
            "--background",
            rich_help_panel=MODEL,
            help="Give one component a flat prior over all items, for items that were never seen before.",
        ),
    ] = False,
    levels: Annotated[
        bool,
        typer.Option(
            "--levels",
            rich_help_panel=MODEL,
            help="Give each item a level that follows its last value, for series that do not all move together "
            "(method gibbs only).",
        ),
    ] = False,
    shape: Shape = None,
    sampling: Sampling,
    members: Members = 5,
    saving: Saving,
) -> Result:
    """Fit components that change over time to a release whose rows are time steps, and write the fit.

    Steps labelled by dates are put in order. Steps missing from a regular series are masked, and their labels are
    printed. Prints each component's share of all expected counts, its largest entries and how much of it persists from
    one step to the next, with 90% intervals, and whether the results are safe to report. `countveil forecast` predicts
    the next steps. Only methods gibbs and augmented-gibbs can fit this model. Ctrl-C, `--checkpoint` and `--resume`
    work as in `countveil fit topics`.

    A release of a study in waves, from `countveil collect`, has the axes person, wave and item. A person's missing
    waves are masked.

    Example: `countveil fit dynamic months.npz -o months.nc --components 10 --seed 1`
    """
    number = None if components is None else number_or_auto("components", components)
    data = ready(release, output, saving)
    from countveil.fit import DynamicModel
    from countveil.fit.dynamics import TAKEN

    names = None if modes is None else names_in(modes)
    axis = int(time) if time is not None and time.isascii() and time.isdigit() else time
    given: Any
    if isinstance(data, Release) and data.extras.waves is not None:
        given, names, axis = waves_of(data, names, axis, shape)
    else:
        several = shape is not None or (names is not None and len(names) > 2)
        given = folded(data, shape) if several else data
        names = names or names_of_axes(given, *TAKEN)
    steps: dict[str, Any] = {"modes": names, "time": axis, "steady": steady}
    steps |= {"day_first": day_first, "season": None if season is None else number_or_auto("season", season, 2)}
    model = DynamicModel(number, **steps, background=background, levels=levels, **sampling.arguments())
    given, note = model.in_time(given)
    if note:
        say(note)
    fit_to(model, given, saving)
    print_parts(model, members)
    print_stays(model)
    print_seasons(model)
    print_trend(model)
    print_totals(model)
    found = {**finish(model, output, members), "trend": model.trend, "transitions": model.transitions}
    return found if model.season_ is None else {**found, "seasons": model.seasons}


def waves_of(
    release: Release, modes: list[str] | None, time: str | int | None, shape: str | None
) -> tuple["Reports", list[str], str | int]:
    """A release in waves with an axis of time, the names of its axes, and which of them is time; says what it has.

    Raises:
        ValueError: another shape is asked for.
    """
    from countveil.data.joining import by_wave

    if shape is not None:
        raise ValueError(f"--shape must be left out with a release in waves, which has its own axes, got {shape}")
    found = by_wave(release)
    n_people, n_waves, *others = found.mode_shape
    things = ["item"] if len(others) == 1 else [f"mode{i}" for i in range(2, len(found.mode_shape))]
    cells = n_people * n_waves
    say(f"{n_people} people in {n_waves} waves, {release.shape[0]} reports of {cells}; what is absent is masked.")
    say(found.promise or "")
    return found, modes or ["person", "wave", *things], 1 if time is None else time


def print_trend(model: "DynamicModel") -> None:
    """Expected counts in each time step of what is counted most, where there are few steps."""
    from rich.table import Table
    from rich.text import Text

    from countveil.common.console import console

    found, time = model.trend(), model.time_axis
    axis = found.columns[1]
    steps = list(model._reader.axes[time])  # several of which may have one label, such as spring
    if len(steps) > FEW_STEPS:
        return
    intervals = ", with 90% intervals" if "lower" in found else ""
    table = Table(title=Text(f"Expected counts by {plain(time)}{intervals}"), title_justify="left", header_style="")
    for name in (axis, *steps):
        table.add_column(Text(plain(str(name))), justify="left" if name == axis else "right")
    largest = found.groupby(axis, sort=False)["rate"].sum().nlargest(MOST_ROWS).index
    for name in largest:
        cells = [
            f"{row['rate']:.1f}" + (f" ({row['lower']:.1f} to {row['upper']:.1f})" if intervals else "")
            for row in found[found[axis] == name].to_dict("records")
        ]
        table.add_row(Text(plain(str(name))), *cells)
    console().print(table)


def print_stays(model: "DynamicModel") -> None:
    """How much of every component's activity stays in it from one step to the next."""
    table = model.transitions()
    own = table[table["previous_component"] == table["component"]]
    stays = []
    for row in own.itertuples():
        between = f" ({row.lower:.0%} to {row.upper:.0%})" if "lower" in own else ""
        stays.append(f"{plain(str(row.component))}: {row.share:.0%}{between}")
    say(f"Activity that stays in its component from one step to the next: {', '.join(stays)}.")


def print_seasons(model: "DynamicModel") -> None:
    """In which step of a season each component is largest and smallest, if there are seasons."""
    if model.season_ is None:
        return
    table, parts = model.seasons(), []
    for number, rows in table.groupby("component", sort=False):
        ends = rows.loc[[rows["factor"].idxmax(), rows["factor"].idxmin()]]
        # Steps without names are numbers, which look like components.
        named = (f"step {row.season}" if row.season.isdigit() else row.season for row in ends.itertuples())
        factors = (f" ({row.factor:.2f}{between(row)})" for row in ends.itertuples())
        most, least = map(str.__add__, named, factors)
        parts.append(f"{plain(str(number))}: {most}, {least}")
    say(f"Highest and lowest of {model.season_} seasonal factors (mean 1) by component: {'; '.join(parts)}.")


def between(row: Any) -> str:
    """The interval of a factor in words, if it has one."""
    return f", {row.lower:.2f} to {row.upper:.2f}" if hasattr(row, "lower") else ""
