"""``countveil report``: a page about a fit, for people who read results."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli import releases
from countveil.cli.options import Force, Members
from countveil.cli.output import check_ending, check_free, plain_errors, say
from countveil.cli.results import with_quiet
from countveil.cli.show import FitFile, loaded


@plain_errors
@with_quiet
def report(
    fit: FitFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write (.html).")],
    release: Annotated[
        Path | None,
        typer.Option(
            help="The release that was fitted. It adds predictive checks, and shows how much of the reports is noise."
        ),
    ] = None,
    members: Members = 8,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    naive: Annotated[
        bool,
        typer.Option(
            "--naive",
            help="Compare with a fit that treats the reports as true counts. Takes as long as the fit did; needs "
            "--release.",
        ),
    ] = False,
    forecast: Annotated[
        int, typer.Option(min=0, help="For a fit over time: show a forecast of this many time steps.")
    ] = 0,
    force: Force = False,
) -> None:
    """Write a page about a fit: privacy, data, results, checks, and whether they are safe to report.

    One self-contained HTML file without scripts, for a browser, a phone or a printer. It contains labels and aggregate
    results: share it as you would share the fit.

    Example: `countveil report survey.nc -o survey.html --release survey.npz`
    """
    check_ending(output, ".html", ".htm")
    check_free(output, force, fit, release)
    if release is not None:
        releases.check_release(release)
    if naive and release is None:
        raise ValueError("--naive must come with --release, the release that was fitted, got none")
    found = loaded(fit)
    from countveil.fit import DynamicModel
    from countveil.report import write_report

    ahead = None
    if forecast:
        if not isinstance(found, DynamicModel):
            raise ValueError(
                f"forecast must be 0 for a {type(found).__name__}, which has no time steps, got {forecast}"
            )
        ahead = found.forecast(forecast)
    data = None if release is None else releases.loaded(release)
    judged = write_report(found, output, data, members=members, title=title, naive=naive, forecast=ahead)
    say(judged.line)
    say(f"Wrote {output}: {output.stat().st_size / 1000:.0f} kB.")
