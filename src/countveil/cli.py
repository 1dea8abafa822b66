"""The command line: privatize counts, fit a release, and see it all on a real corpus.

Heavy imports wait until a command runs, so that ``countveil --help`` answers at once.
"""

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countveil import __version__

if TYPE_CHECKING:
    from countveil.estimators import TopicModel

EXPECTED = (ValueError, TypeError, OSError, ModuleNotFoundError)

app = typer.Typer(
    help="Counts under local privacy: exact noise for their owner, posteriors from the noisy reports for an analyst.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)
fit_app = typer.Typer(help="Fit a model to a release.", no_args_is_help=True)
app.add_typer(fit_app, name="fit")


def plainly(command: Callable[..., None]) -> Callable[..., None]:
    """The command with expected errors as one line on stderr and exit status 1, Ctrl-C as 130."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except EXPECTED as error:
            typer.echo("error: " + " ".join(str(error).split()), err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None

    return wrapped


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"countveil {__version__}")
        raise typer.Exit()


Version = Annotated[
    bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to use [default: all]; the result does not depend on it.")
]


@app.callback()
def main(version: Version = False) -> None:
    """Counts under local privacy: exact noise for their owner, posteriors for an analyst."""


@app.command()
@plainly
def privatize(
    counts: Annotated[
        Path, typer.Argument(help="Matrix of true counts, a record a row: .csv, .npy, .npz or .mtx.")
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
    force: Force = False,
) -> None:
    """Add exact two-sided geometric noise to counts and write the release.

    The noise comes from the operating system's entropy and cannot be seeded or repeated. Only epsilon/N matters
    to it: alpha = exp(-epsilon/N). Prints what is promised, and never a count.

    Example: `countveil privatize survey.csv -o survey.npz --epsilon 1 --precision 2`
    """
    from countveil.io import read_counts, read_vocabulary
    from countveil.privacy import PrivacyLevel
    from countveil.privacy import privatize as privatize_counts

    check_free(output, force)
    level = PrivacyLevel(epsilon, precision)
    table = read_counts(counts)
    words = table.column_labels if vocabulary is None else read_vocabulary(vocabulary)
    release = privatize_counts(
        table.values, level, truncate=truncated, row_labels=table.row_labels, column_labels=words
    )
    release.save(output)
    typer.echo(level.describe())
    kind = "truncated at zero" if release.truncated else "signed"
    typer.echo(f"Wrote {output}: {release.shape[0]} x {release.shape[1]} reports, {kind}.")


@fit_app.command("topics")
@plainly
def fit_topics(
    release: Annotated[Path, typer.Argument(help="A release written by `countveil privatize`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The fit to write (netCDF, .nc).")],
    topics: Annotated[int, typer.Option(min=1, help="Number of topics K.")] = 10,
    method: Annotated[str, typer.Option(help="Algorithm: gibbs samples the posterior.")] = "gibbs",
    draws: Annotated[int, typer.Option(min=1, help="Draws kept of each chain.")] = 500,
    tune: Annotated[int, typer.Option(min=0, help="Sweeps of each chain thrown away first.")] = 500,
    chains: Annotated[int, typer.Option(min=1, help="Independent chains.")] = 4,
    seed: Annotated[
        int | None, typer.Option(min=0, help="For the same draws again [default: a new one].")
    ] = None,
    threads: Threads = None,
    words: Annotated[int, typer.Option(min=1, help="Words to print of each topic.")] = 8,
    force: Force = False,
) -> None:
    """Sample the topics behind a release and write the fit.

    Prints every topic's share of all expected words and its most probable words with 90% intervals, and says
    whether the chains agree. Ctrl-C stops early and keeps the draws so far.

    Example: `countveil fit topics survey.npz -o survey.nc --topics 5 --seed 1`
    """
    check_free(output, force)
    if not release.is_file():
        raise FileNotFoundError(f"no release at {release}")
    from countveil.estimators import TopicModel
    from countveil.privacy import Release

    model = TopicModel(
        topics, method=method, draws=draws, tune=tune, chains=chains, seed=seed, threads=threads
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what they say is printed below
        model.fit(Release.load(release))
        model.save(output)
        print_topics(model, words)
        if model.interrupted_:
            typer.echo("Interrupted: the fit holds the draws made until then.")
        typer.echo(model.diagnostics().verdict)
    typer.echo(f"Wrote {output}: seed {model.seed_}, {model.fit_seconds_:.1f} s.")


@app.command()
@plainly
def demo(
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

    Example: `countveil demo --epsilon-per-unit 0.5,1 --noise-draws 3`
    """
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


def check_free(path: Path, force: bool) -> None:
    """Refuse an output that exists, unless forced, and one whose directory does not."""
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; choose another name, or pass --force to replace it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no directory {path.parent} to write {path.name} in")


def print_topics(model: "TopicModel", n_words: int) -> None:
    """One row a topic: its share of all expected words, and its top words with 90% intervals."""
    from rich.table import Table

    from countveil.experiments.present import console

    table = Table(title="Topics by share of all expected words", title_justify="left", header_style="")
    table.add_column("topic", justify="right")
    table.add_column("share", justify="right")
    table.add_column("most probable words: probability in % (90% interval)")
    for topic, rows in model.top_words(n_words).groupby("topic"):
        listed = ", ".join(
            f"{row.word} {100 * row.probability:.1f} ({100 * row.lower:.1f} to {100 * row.upper:.1f})"
            for row in rows.itertuples()
        )
        table.add_row(str(topic), f"{rows['prevalence'].iloc[0]:.1%}", listed)
    console().print(table)


if __name__ == "__main__":
    app()
