"""``countveil fit dynamic``: components over time behind a release."""

from typing import TYPE_CHECKING, Annotated

import typer

from countveil.cli.errors import plain_errors
from countveil.cli.fit import (
    AUTO,
    Output,
    ReleaseFile,
    Sampling,
    Saving,
    finish,
    fit_to,
    folded,
    print_parts,
    print_totals,
    ready,
)
from countveil.cli.option_groups import with_option_groups
from countveil.cli.options import Members, Shape, number_or_auto
from countveil.cli.say import say
from countveil.privacy._text import plain

if TYPE_CHECKING:
    from countveil.estimators.dynamics import DynamicModel


@plain_errors
@with_option_groups
def fit_dynamic(
    release: ReleaseFile,
    output: Output,
    *,
    components: Annotated[str, typer.Option(help=f"Number of components K at most, or {AUTO}.")] = "10",
    time: Annotated[
        str | None,
        typer.Option(
            help="The axis of time: a name among --modes, or its number from 0 [default: the one called time, "
            "else the first, the rows]."
        ),
    ] = None,
    modes: Annotated[
        str | None,
        typer.Option(
            help="Names of the axes, separated by commas [default: time,item or time,mode1,mode2,...]."
        ),
    ] = None,
    volumes: Annotated[
        bool,
        typer.Option("--volumes", help="Every time step has a volume of its own, unlike its neighbours'."),
    ] = False,
    shape: Shape = None,
    sampling: Sampling,
    members: Members = 5,
    saving: Saving,
) -> None:
    """Sample components over time behind a release whose rows are time steps, in their order, and write the fit.

    Prints every component's share of all expected counts, its largest entries and how much of it stays from one step to
    the next, with 90% intervals, and says whether the chains agree. `countveil forecast` goes on from the fit. Method
    'gibbs' or method 'augmented-gibbs'. Ctrl-C, `--checkpoint` and `--resume`: as for `countveil fit topics`.

    Example: `countveil fit dynamic months.npz -o months.nc --components 10 --seed 1`
    """
    number = number_or_auto("components", components)
    data = ready(release, output, saving)
    from countveil.estimators import DynamicModel

    names = None if modes is None else [part.strip() for part in modes.split(",")]
    axis = int(time) if time is not None and time.isascii() and time.isdigit() else time
    several = shape is not None or (names is not None and len(names) > 2)
    given = folded(data, shape) if several else data
    model = DynamicModel(number, modes=names, time=axis, steady=not volumes, **sampling.arguments())
    fit_to(model, given, saving)
    print_parts(model, members)
    print_stays(model)
    print_totals(model)
    finish(model, output)


def print_stays(model: "DynamicModel") -> None:
    """How much of every component's activity stays in it from one step to the next."""
    table = model.transitions()
    own = table[table["previous_component"] == table["component"]]
    stays = []
    for row in own.itertuples():
        between = f" ({row.lower:.0%} to {row.upper:.0%})" if "lower" in own else ""
        stays.append(f"{plain(str(row.component))}: {row.share:.0%}{between}")
    say(f"Activity that stays in its component from one step to the next: {', '.join(stays)}.")
