"""``countveil demo`` and ``countveil demo communities``: the whole library on real data whose true counts are known."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.options import Threads
from countveil.cli.output import plain_errors

Folder = Annotated[Path, typer.Option("--output", "-o", help="Directory for the files.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the samplers; privacy noise is never seeded.")]

FOLDER = Path("countveil-demo")

demo_app = typer.Typer(invoke_without_command=True)


@demo_app.callback()
@plain_errors
def demo(
    context: typer.Context,
    levels: Annotated[
        str,
        typer.Option(
            "--epsilon-per-unit", help="Noise levels epsilon/N, in nats per unit of a count, separated by commas."
        ),
    ] = "1,2,3",
    noise_draws: Annotated[
        int | None, typer.Option(min=1, help="Number of noise draws per level [default: 5].")
    ] = None,
    topics: Annotated[int, typer.Option(min=1, help="Number of topics K.")] = 20,
    output: Folder = FOLDER,
    threads: Threads = None,
    seed: Seed = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Two noise draws per level, for a quick look.")] = False,
) -> None:
    """Privatize 395 Reuters stories, fit the noisy release, and compare with the truth and with other methods.

    Prints a table of scores and the top words side by side. Writes release.npz, scores.csv, fits.csv and scores.png,
    and replaces those of an earlier demo.

    Example: `countveil demo --epsilon-per-unit 0.5,1 --noise-draws 3`. For a network: `countveil demo communities`.
    """
    if context.invoked_subcommand is not None:
        return
    from countveil.engines.threads import available_threads
    from countveil.experiments.demo import QUICK, Plan, present

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
        str, typer.Option("--epsilon-per-unit", help="Noise level epsilon/N, in nats per meeting, a positive decimal.")
    ] = "1",
    n_communities: Annotated[int, typer.Option("--communities", min=1, help="Number of communities C.")] = 6,
    output: Folder = FOLDER,
    threads: Threads = None,
    seed: Seed = 1,
) -> None:
    """Add noise to the meetings of characters in Les Misérables, and find the communities behind the noise.

    Writes network.npz, communities.csv and communities.png, and replaces those of an earlier demo.
    """
    from countveil.engines.threads import available_threads
    from countveil.experiments.communities import Plan, present

    plan = Plan(level=level, n_communities=n_communities, seed=seed, threads=threads or available_threads())
    present(plan, output)
