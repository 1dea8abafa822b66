"""``countveil compare``: how many topics, communities or components, by held-out reports."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from countveil.cli.fit import folded
from countveil.cli.options import (
    Dispersion,
    Force,
    LikelihoodName,
    MethodName,
    PriorShape,
    Seed,
    SelfLoops,
    Shape,
    Threads,
    Undirected,
    number_or_word,
    whole_numbers,
    with_option_groups,
)
from countveil.cli.output import check_ending, check_free, plain_errors, say, tell_of_start
from countveil.cli.releases import ReleaseFile, read_release
from countveil.cli.results import Result, with_result

if TYPE_CHECKING:
    from countveil.fit.base import FactorizationEstimator
    from countveil.selection import Comparison

PICTURES = (".png", ".svg", ".pdf")
NUMBERS = "separated by commas, such as 5,10,20,50."


class Models(NamedTuple):
    """Options of what to compare: one of the three numbers, and what the models have in common."""

    topics: Annotated[str | None, typer.Option(help=f"Numbers of topics, {NUMBERS}")] = None
    communities: Annotated[str | None, typer.Option(help=f"Numbers of communities of a network, {NUMBERS}")] = None
    components: Annotated[str | None, typer.Option(help=f"Numbers of components of a tensor, {NUMBERS}")] = None
    method: MethodName = "gibbs"
    likelihood: LikelihoodName = None
    dispersion: Dispersion = None
    prior_shape: PriorShape = None
    undirected: Undirected = False
    self_loops: SelfLoops = False
    shape: Shape = None

    def made(self, data: Any) -> tuple[Any, list["FactorizationEstimator"]]:
        """(The data in the models' form, the models); raises ValueError unless one option says their numbers."""
        from countveil.fit import BlockModel, TensorModel, TopicModel

        given = {name: getattr(self, name) for name in ("topics", "communities", "components")}
        asked = [name for name, text in given.items() if text is not None]
        if len(asked) != 1:
            raise ValueError(
                "exactly one of --topics, --communities and --components must be given, such as --topics 5,10,20, got "
                f"{len(asked)}"
            )
        numbers = whole_numbers(asked[0], given[asked[0]])
        common: dict[str, Any] = {
            "method": self.method,
            "likelihood": self.likelihood,
            "dispersion": number_or_word(self.dispersion),
            "prior_shape": number_or_word(self.prior_shape),
        }
        if asked == ["topics"]:
            return data, [TopicModel(k, **common) for k in numbers]
        if asked == ["components"]:
            return folded(data, self.shape), [TensorModel(k, **common) for k in numbers]
        common |= {"directed": not self.undirected, "self_loops": self.self_loops}
        return data, [BlockModel(k, **common) for k in numbers]


class Length(NamedTuple):
    """Options of how much work to spend."""

    folds: Annotated[
        int, typer.Option(min=2, help="Number of folds of the cells; every model is fitted once per fold.")
    ] = 5
    draws: Annotated[int | None, typer.Option(min=1, help="Draws kept from each chain [default: 25].")] = None
    tune: Annotated[
        int | None, typer.Option(min=0, help="Tuning sweeps of each chain, which are discarded [default: 100].")
    ] = None
    chains: Annotated[int | None, typer.Option(min=1, help="Chains of each fit [default: 2].")] = None
    seed: Seed = None
    threads: Threads = None
    checkpoint: Annotated[
        Path | None, typer.Option(help="File in which the scores of finished fits are saved; needs --seed.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint.")] = False

    def arguments(self) -> dict[str, Any]:
        """What ``compare`` takes."""
        given = self._asdict()
        return {name: value for name, value in given.items() if value is not None}


@plain_errors
@with_result
@with_option_groups
def compare_models(
    release: ReleaseFile,
    *,
    models: Models,
    length: Length,
    output: Annotated[Path | None, typer.Option("--output", "--out", "-o", help="The table to write (.csv).")] = None,
    plot: Annotated[Path | None, typer.Option(help="The figure to write (.png, .svg or .pdf).")] = None,
    force: Force = False,
) -> Result:
    """Compare numbers of topics, communities or components by how well they predict held-out reports.

    Cross-validates over the cells, by default with five folds. Prints the log predictive probability of the held-out
    reports, per 1,000 cells, differences from the best model with standard errors, and the models within two standard
    errors of the best.

    Example: `countveil compare survey.npz --topics 5,10,20,50 --seed 1`
    """
    if output is not None:
        check_ending(output, ".csv")
        check_free(output, force, release, length.checkpoint, plot)
    if plot is not None:
        if plot.suffix.lower() not in PICTURES:
            raise ValueError(f"plot must end in one of {', '.join(PICTURES)}, got {plot.name}")
        check_free(plot, force, release, length.checkpoint)
    if length.checkpoint is not None:
        tell_of_start(length.checkpoint, length.resume)
    data, candidates = models.made(without_totals(read_release(release)))
    from countveil.common.files import write_csv
    from countveil.selection import compare

    found = compare(data, candidates, **length.arguments())
    print_table(found)
    say(found.verdict)
    if output is not None:
        write_csv(found.table, output)
        say(f"Wrote {output}.")
    if plot is not None:
        write_plot(found, plot)
        say(f"Wrote {plot}.")
    return {"models": found.table, "verdict": found.verdict}


def without_totals(data: Any) -> Any:
    """A release with totals as reports without them, and says so; anything else as it is."""
    from countveil.data.reports import Reports
    from countveil.privacy import Release

    if not isinstance(data, Release) or data.extras.totals is None:
        return data
    say("Compared without the totals of the release, which would reveal held-out cells.")
    return Reports.from_release(data, totals=False)


def print_table(found: "Comparison") -> None:
    """One row per model."""
    from rich.table import Table
    from rich.text import Text

    from countveil.common.console import console

    title = "Log predictive probability of 1,000 held-out reports"
    table = Table(title=Text(title), title_justify="left", header_style="")
    for heading in ("model", "score", "difference", "standard error", "seconds"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    columns = found.table[["model", "score", "difference", "standard_error", "seconds"]]
    for name, score, difference, error, seconds in columns.itertuples(index=False):
        table.add_row(Text(name), f"{score:.2f}", f"{difference:+.2f}", f"{error:.2f}", f"{seconds:.1f}")
    console().print(table)


def write_plot(found: "Comparison", path: Path) -> None:
    """Write the differences as a picture, in one step."""
    from countveil.plotting import style
    from countveil.privacy._archive import replacing

    figure = style.new_figure(7.0, 1.0 + 0.28 * len(found.names))
    found.plot(ax=figure.subplots())
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)
