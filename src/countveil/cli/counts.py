"""``countveil counts``: what the hidden counts are, as a table with intervals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countveil.cli import releases
from countveil.cli.options import Force
from countveil.cli.output import check_ending, check_free, plain_errors, say
from countveil.cli.results import Result, warning_of, with_result
from countveil.cli.show import FitFile, loaded
from countveil.common.names import names_in

if TYPE_CHECKING:
    import pandas as pd


@plain_errors
@with_result
def counts(
    fit: FitFile,
    release: Annotated[Path, typer.Option(help="The release that was fitted.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table to write (.csv, .xlsx or .parquet).")],
    every: Annotated[bool, typer.Option("--all", help="Also list the counts that the release shows exactly.")] = False,
    sums: Annotated[
        str | None,
        typer.Option(
            "--sums",
            help="Write sums by these axes instead of single counts: separated by commas, or '' for the sum of all.",
        ),
    ] = None,
    interval: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    draws: Annotated[
        int,
        typer.Option(min=1, help="Number of posterior draws of the table, for sums and for data with known totals."),
    ] = 400,
    force: Force = False,
) -> Result:
    """Estimate the hidden counts of a release, or their sums: mean, median and interval of each.

    Lists counts that are hidden, rounded, top-coded, noisy or masked. The estimates use totals if the release has them.
    Sums get joint intervals: adding up the ends of single intervals would make them too wide.

    Example: `countveil counts deaths.nc --release deaths.npz -o counts.csv`
    """
    check_ending(output, ".csv", ".xlsx", ".parquet")
    check_free(output, force, fit, release)
    if every and sums is not None:
        raise ValueError("--all and --sums cannot be combined: sums already cover all counts")
    releases.check_release(release)
    found = loaded(fit)
    from countveil.common.files import write_table
    from countveil.report.loading import over_axes

    data = over_axes(found, releases.loaded(release))
    by = None if sums is None else names_in(sums) if sums.strip() else []
    table = found.counts_table(data, cells="all" if every else "hidden", by=by, interval=interval, draws=draws)
    for name in table.filter(regex="^report"):
        table[name] = table[name].convert_dtypes()  # whole numbers without a decimal point, and empty cells
    write_table(table, output)
    judged = found.diagnostics()
    if found._reader.why_no_intervals:
        say(f"No intervals: {found._reader.why_no_intervals}.")
    if warning := warning_of(judged, "counts"):
        say(warning, err=True)
    if by is not None and judged.mechanism is not None:
        for said in judged.mechanism.sums:
            say(said)
    if said := given_away(table, interval):
        say(said, err=True)
    say(f"Wrote {output}: {in_words(table, sums)}.")
    return {"output": str(output), "counts": table, "state": str(judged.state), "verdict": judged.verdict}


def given_away(table: "pd.DataFrame", interval: float) -> str:
    """A warning of hidden counts that are known, such as those that follow from totals; else empty."""
    if "kind" not in table or "lower" not in table:
        return ""
    hidden = table["kind"] == "hidden"
    known = int((hidden & (table["lower"] == table["upper"])).sum())
    if not known:
        return ""
    return (
        f"warning: for {known:,} of {hidden.sum():,} hidden counts the {interval:.0%} interval is a single number: "
        "publishing it would undo their protection"
    )


def in_words(table: "pd.DataFrame", sums: str | None) -> str:
    """How many counts or sums a table has, and how many of them are not exact."""
    if sums is not None:
        several = int((table["hidden"] > 0).sum())
        over = f" by {sums}" if sums.strip() else ""
        return f"{len(table):,} sums{over}, {several:,} of them with counts that are not exact"
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in table["kind"].value_counts().items())
    return f"{len(table):,} counts" + (f" ({kinds})" if kinds else "")
