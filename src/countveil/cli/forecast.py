"""``countveil forecast``: the time steps after those of a fit, as a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countveil.cli.options import Force
from countveil.cli.output import check_ending, check_free, plain_errors, say
from countveil.cli.releases import loaded
from countveil.cli.results import Result, warning_of, with_result

if TYPE_CHECKING:
    from countveil.fit.forecasts import ForecastCheck


@plain_errors
@with_result
def forecast(
    fit: Annotated[Path, typer.Argument(help="A fit written by `countveil fit dynamic` (.nc).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table to write (.csv).")],
    steps: Annotated[int, typer.Option(min=1, help="Number of time steps to forecast.")] = 1,
    interval: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    draws: Annotated[int, typer.Option(min=1, help="Number of posterior draws to forecast from.")] = 500,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed of the random numbers: the same seed gives the same result [default: the seed of the fit].",
        ),
    ] = None,
    check: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Check this many of the last steps: forecast each from the steps before it, and compare with simple "
            "forecasts: the last value, the same step of the last season and the mean of the last three. Fits the "
            "model once per step; needs --release.",
        ),
    ] = None,
    release: Annotated[Path | None, typer.Option(help="The release that was fitted, for --check.")] = None,
    force: Force = False,
) -> Result:
    """Forecast the true counts of the next time steps: mean, median and interval of each cell.

    New steps continue labels that are evenly spaced numbers or dates; otherwise they are called t+1, t+2 and so on.

    Example: `countveil forecast months.nc -o next.csv --steps 3`
    """
    check_ending(output, ".csv")
    check_free(output, force, fit, release)
    if (check is None) != (release is None):
        raise ValueError("check must come with the release that was fitted: --check 12 --release months.npz")
    from countveil.common import fit_files

    fit_files.check(fit)  # before the models are imported
    import numpy as np

    from countveil.common.files import write_csv
    from countveil.data.tables.text import amount
    from countveil.fit import DynamicModel

    model = DynamicModel.load(fit)
    rng = None if seed is None else np.random.default_rng(seed)
    found = model.forecast(steps, rng, draws=draws)
    table = found.table(interval)
    judged = model.diagnostics()
    result: Result = {"output": str(output), "forecast": table, "state": str(judged.state)}
    if check is not None and release is not None:
        from countveil.report.loading import observed

        checked = model.check_forecasts(observed(model, loaded(release)), check, draws=draws)
        print_check(checked)
        result |= {"check": checked.table, "verdict": checked.verdict}
    write_csv(table, output)
    if model._reader.why_no_intervals:
        say(f"No intervals: {model._reader.why_no_intervals}.")
    if warning := warning_of(judged, "forecasts"):
        say(warning, err=True)
    say(f"Wrote {output}: {amount(len(table), 'cell')} in {amount(steps, 'time step')}.")
    return result


def print_check(check: "ForecastCheck") -> None:
    """Errors of all forecasts, and which to use."""
    from rich.table import Table
    from rich.text import Text

    from countveil.common.console import console

    title = f"One step ahead, {check.steps} steps: root mean squared error of single counts"
    table = Table(title=Text(title), title_justify="left", header_style="")
    table.add_column("forecast")
    table.add_column("error", justify="right")
    for row in check.table.to_dict("records"):
        table.add_row(row["forecast"], f"{row['error']:.3g}" if row["error"] == row["error"] else "about 0")
    console().print(table)
    say(check.verdict)
