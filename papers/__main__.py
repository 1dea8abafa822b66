"""``python -m papers``: the papers' experiments again, and which of their claims hold."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.output import check_folder, plain_errors
from papers import NAMES
from papers.runner import present

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@plain_errors
def reproduce(
    name: Annotated[str, typer.Argument(help="A case study, or all: see below for the names.", show_default=False)],
    data: Annotated[
        Path | None, typer.Option(help="Folder of Enron's counts or raw mails; the synthetic case studies need none.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller data and shorter chains: minutes, not hours.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for the files.")] = Path(
        "countveil-reproduction"
    ),
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Noise draws or data sets at most; a later run with more goes on from there."),
    ] = None,
    sweeps: Annotated[
        int | None,
        typer.Option(min=2, help="Sweeps per chain at most; fewer than the papers' are faster and less certain."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For the samplers and the simulated noise.")] = 1,
) -> None:
    """Run an experiment of the papers again, and say whether what they claim holds.

    Names: theorems, skellam, true-counts, theta-given-phi, topics-synthetic, blocks-synthetic, communities-enron,
    links-enron, variational, topics-enron, blocks-semisynthetic, topics-semisynthetic, sensitivity; or all.

    Writes NAME.png, NAME.svg, NAME.csv (the numbers) and NAME-verdicts.csv, replacing those of an earlier run. Every
    fit is kept in the folder fits as soon as it is done: a run that was interrupted goes on from there. Exit status 0
    whatever the verdicts are.

    Example: `python -m papers all --quick --data enron`
    """
    check_folder(output)
    if data is not None and not data.is_dir():
        raise NotADirectoryError(f"--data must be a folder of counts, got {data}, which is no folder: check the path")
    present(NAMES if name == "all" else (name,), output, data, quick, seed, repeats, sweeps)


if __name__ == "__main__":
    app(prog_name="python -m papers")
