"""``countveil demo`` and ``countveil demo communities``: all of it on real data whose truth is known."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.errors import plain_errors
from countveil.cli.options import Threads

Folder = Annotated[Path, typer.Option("--output", "-o", help="Directory for the files.")]
Seed = Annotated[int, typer.Option(min=0, help="For the samplers; the noise is never seeded.")]

FOLDER = Path("countveil-demo")

demo_app = typer.Typer(invoke_without_command=True)


@demo_app.callback()
@plain_errors
def demo(
    context: typer.Context,
    levels: Annotated[
        str,
        typer.Option("--epsilon-per-unit", help="Levels epsilon/N in nats per count, separated by commas."),
    ] = "1,2,3",
    noise_draws: Annotated[
        int | None, typer.Option(min=1, help="Noise draws per level [default: 5].")
    ] = None,
    topics: Annotated[int, typer.Option(min=1, help="Number of topics K.")] = 20,
    output: Folder = FOLDER,
    threads: Threads = None,
    seed: Seed = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two noise draws per level, to look around.")
    ] = False,
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
@plain_errors
def communities(
    level: Annotated[
        str,
        typer.Option("--epsilon-per-unit", help="Level epsilon/N in nats per meeting, a positive decimal."),
    ] = "1",
    n_communities: Annotated[int, typer.Option("--communities", min=1, help="Number of communities C.")] = 6,
    output: Folder = FOLDER,
    threads: Threads = None,
    seed: Seed = 1,
) -> None:
    """Privatize who meets whom in Les Misérables, find the communities in the noise, and show them as heat maps.

    Writes network.npz, communities.csv and communities.png, replacing those of an earlier demo. Under half a minute.
    """
    from countveil.engines.threads import available_threads
    from countveil.experiments.communities import Plan, present

    plan = Plan(level=level, n_communities=n_communities, seed=seed, threads=threads or available_threads())
    present(plan, output)
