"""The command line: privatize counts, fit a release, and see it all on a real corpus.

Heavy imports wait until a command runs, so that ``countveil --help`` answers at once.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from countveil import __version__
from countveil.cli.fit import fit_app
from countveil.cli.plan import plan_study
from countveil.cli.receive import add_receive
from countveil.cli.report import report
from countveil.cli.reproduce import reproduce
from countveil.cli.shell import Force, Threads, check_free, plainly
from countveil.cli.studies import add_studies

app = typer.Typer(
    help="Counts under local privacy: exact noise for their owner, posteriors from the noisy reports for an analyst.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)
app.add_typer(fit_app, name="fit")
add_studies(app)
add_receive(app)
app.command("plan")(plan_study)
app.command("report")(report)
app.command("reproduce")(reproduce)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"countveil {__version__}")
        raise typer.Exit()


Version = Annotated[
    bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
]


@app.callback()
def main(version: Version = False) -> None:
    """Counts under local privacy: exact noise for their owner, posteriors for an analyst."""


@app.command()
@plainly
def privatize(
    counts: Annotated[
        Path,
        typer.Argument(
            help="Matrix of true counts, a record a row: .csv, .npy, .npz, .mtx, or .txt (UCI bag of words)."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write.")],
    epsilon: Annotated[str, typer.Option(help="Privacy loss in nats at distance N, a positive decimal.")],
    precision: Annotated[str, typer.Option(help="N: how many counts may change in all, a positive decimal.")],
    vocabulary: Annotated[
        Path | None, typer.Option(help="Names of the columns: a text file, one a line.")
    ] = None,
    truncated: Annotated[
        bool | None,
        typer.Option(
            "--truncated/--signed", help="Cut reports at zero, or keep their sign [default: cut if sparse]."
        ),
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option("--no-header", help="The first row of the .csv is a record: columns have no names."),
    ] = False,
    row_labels: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of the .csv, by its name, that holds row labels, not counts."
        ),
    ] = None,
    no_row_labels: Annotated[
        bool, typer.Option("--no-row-labels", help="Leave the row labels out of the release.")
    ] = False,
    rows_per_file: Annotated[
        int | None,
        typer.Option(min=1, help="Make the output a new folder of release files with so many rows each."),
    ] = None,
    force: Force = False,
) -> None:
    """Add exact two-sided geometric noise to counts and write the release.

    The noise comes from the operating system's entropy and cannot be seeded or repeated. Only epsilon/N matters
    to it: alpha = exp(-epsilon/N). Prints what is promised, and never a count.

    Rules for a .csv: cells are separated by commas, in UTF-8. The first row is a header of column names, none of
    them a number, unless --no-header is given. The first column holds row labels if its header cell is empty
    or none of its cells is a number; --row-labels names another one, such as a column of numeric ids. All other
    cells are non-negative whole numbers. Row labels and column names are published as they are.

    Example: `countveil privatize survey.csv -o survey.npz --epsilon 1 --precision 2`
    """
    from countveil.data.io import read_counts
    from countveil.privacy import PrivacyLevel, Release, privatize_to_files
    from countveil.privacy import privatize as privatize_counts
    from countveil.privacy.level import hides, short
    from countveil.privacy.release import describe_labels

    if rows_per_file is None:
        check_free(output, force, counts, vocabulary)
    level = PrivacyLevel(epsilon, precision)
    table = read_counts(counts, not no_header, row_labels, vocabulary)
    labels: dict[str, Any] = {
        "row_labels": None if no_row_labels else table.row_labels,
        "column_labels": table.column_labels,
    }
    if rows_per_file is None:
        release = privatize_counts(table.values, level, truncated, **labels)
        release.save(output)
    else:
        paths = privatize_to_files(
            table.values, level, output, truncated, rows_per_file=rows_per_file, **labels
        )
        release = Release.load(paths[0])
    if hidden := hides(level):
        typer.echo(
            f"warning: epsilon {short(level.epsilon)} at N = {short(level.precision)} hides {hidden}; "
            "a smaller epsilon/N hides more",
            err=True,
        )
    typer.echo(level.describe())
    typer.echo(describe_columns(release.shape[1], release.column_labels))
    if published := describe_labels(release.labels):
        typer.echo(published)
    kind = "truncated at zero" if release.truncated else "signed"
    if rows_per_file is None:
        typer.echo(f"Wrote {output}: {release.shape[0]} x {release.shape[1]} reports, {kind}.")
    else:
        size = f"{table.values.shape[0]} x {release.shape[1]}"
        typer.echo(f"Wrote {output}: {size} reports in {len(paths)} files, {kind}.")


demo_app = typer.Typer(invoke_without_command=True)
app.add_typer(demo_app, name="demo")


@demo_app.callback()
@plainly
def demo(
    context: typer.Context,
    levels: Annotated[
        str,
        typer.Option("--epsilon-per-unit", help="Levels epsilon/N in nats per count, separated by commas."),
    ] = "1,2,3",
    noise_draws: Annotated[int | None, typer.Option(min=1, help="Noise draws a level [default: 5].")] = None,
    topics: Annotated[int, typer.Option(min=1, help="Number of topics K.")] = 20,
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for the files.")] = Path(
        "countveil-demo"
    ),
    threads: Threads = None,
    seed: Annotated[int, typer.Option(min=0, help="For the samplers; the noise is never seeded.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Two noise draws a level, to look around.")] = False,
) -> None:
    """Privatize 395 Reuters stories, fit the noisy release, and compare with the truth and with rivals.

    Prints one table of scores and the top words side by side, and writes release.npz, scores.csv, fits.csv and
    scores.png, replacing those of an earlier demo. Under two minutes on two cores.

    Example: `countveil demo --epsilon-per-unit 0.5,1 --noise-draws 3`. For a network: `countveil demo communities`.
    """
    if context.invoked_subcommand is not None:
        return
    from countveil.engines.threads import available_threads
    from countveil.experiments.demo import QUICK, Plan
    from countveil.experiments.present import present

    plan = QUICK if quick else Plan()
    plan = plan._replace(
        levels=tuple(part.strip() for part in levels.split(",") if part.strip()),
        noise_draws=noise_draws or plan.noise_draws,
        sampling=plan.sampling._replace(n_topics=topics),
        seed=seed,
        threads=threads or available_threads(),
    )
    present(plan, output)


@demo_app.command()
@plainly
def communities(
    level: Annotated[
        str,
        typer.Option("--epsilon-per-unit", help="Level epsilon/N in nats per meeting, a positive decimal."),
    ] = "1",
    n_communities: Annotated[int, typer.Option("--communities", min=1, help="Number of communities C.")] = 6,
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for the files.")] = Path(
        "countveil-demo"
    ),
    threads: Threads = None,
    seed: Annotated[int, typer.Option(min=0, help="For the samplers; the noise is never seeded.")] = 1,
) -> None:
    """Privatize who meets whom in Les Misérables, find the communities in the noise, and show them as heat maps.

    Writes network.npz, communities.csv and communities.png, replacing those of an earlier demo. Under half a minute.
    """
    from countveil.engines.threads import available_threads
    from countveil.experiments.communities import Plan, present

    plan = Plan(level=level, n_communities=n_communities, seed=seed, threads=threads or available_threads())
    present(plan, output)


def describe_columns(n_columns: int, names: tuple[str, ...] | None) -> str:
    """How many columns were taken for counts, and which, so that one that holds no counts is noticed."""
    from countveil.privacy._counts import reads_as_number

    said = f"{n_columns} column{'s' if n_columns > 1 else ''} of counts"
    if names is None or reads_as_number(names[0]) or reads_as_number(names[-1]):
        return f"{said}."
    return f"{said}, from {names[0]} to {names[-1]}."
