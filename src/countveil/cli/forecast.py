"""``countveil forecast``: the time steps after those of a fit, as a table."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.options import Force
from countveil.cli.output import check_ending, check_free, plain_errors, say
from countveil.cli.results import Result, with_result


@plain_errors
@with_result
def forecast(
    fit: Annotated[Path, typer.Argument(help="A fit written by `countveil fit dynamic` (.nc).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table to write (.csv).")],
    steps: Annotated[int, typer.Option(min=1, help="Number of time steps to forecast.")] = 1,
    interval: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    draws: Annotated[int, typer.Option(min=1, help="Number of posterior draws to continue.")] = 500,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed of the random numbers: the same seed gives the same result [default: the seed of the fit].",
        ),
    ] = None,
    force: Force = False,
) -> Result:
    """Forecast the true counts of the next time steps: mean, median and interval of each cell.

    Steps are labelled by continuing numbers or dates at equal distances, otherwise t+1, t+2 and so on.

    Example: `countveil forecast months.nc -o next.csv --steps 3`
    """
    check_ending(output, ".csv")
    check_free(output, force, fit)
    from countveil.common import fit_files

    fit_files.check(fit)  # before the models are imported
    import numpy as np

    from countveil.common.files import write_csv
    from countveil.fit import DynamicModel

    model = DynamicModel.load(fit)
    rng = None if seed is None else np.random.default_rng(seed)
    found = model.forecast(steps, rng, draws=draws)
    table = found.table(interval)
    write_csv(table, output)
    if model.why_no_intervals:
        say(f"No intervals: {model.why_no_intervals}.")
    say(f"Wrote {output}: {len(table):,} cells in {steps} time steps.")
    return {"output": str(output), "forecast": table}
