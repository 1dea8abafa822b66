"""``countveil browse``: a page on which a fit, or two, are looked through."""

import os
from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.options import Force
from countveil.cli.output import check_ending, check_free, plain_errors, say
from countveil.cli.results import with_quiet
from countveil.cli.show import FitFile


def distinct_names(first: Path, second: Path) -> tuple[str, str]:
    """What two files are called beside each other: as little of their paths as tells them apart, from the end."""
    one, other = (Path(os.path.abspath(path)) for path in (first, second))
    if one == other:
        return first.stem, f"{first.stem} (again)"
    if one.with_suffix("") != other.with_suffix(""):
        one, other = one.with_suffix(""), other.with_suffix("")
    ours, theirs = one.parts[1:], other.parts[1:]  # without the root
    n = next(n for n in range(1, len(ours) + len(theirs)) if ours[-n:] != theirs[-n:])
    return "/".join(ours[-n:]), "/".join(theirs[-n:])


@plain_errors
@with_quiet
def browse(
    fit: FitFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write (.html).")],
    other: Annotated[
        Path | None, typer.Argument(help="A second fit of the same kind, to compare with the first.")
    ] = None,
    members: Annotated[
        int, typer.Option("--members", min=1, help="Number of words (actors, entries) to list for each topic.")
    ] = 20,
    rows: Annotated[
        str,
        typer.Option(
            help='Estimates for single documents (rows): "hidden" for none, "numbers" to list rows by number, "labels" '
            "by name. Rows are often people."
        ),
    ] = "hidden",
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    force: Force = False,
) -> None:
    """Write an interactive page for exploring a fit, or for comparing two.

    One self-contained HTML file for a browser or a phone. Topics are ordered by support and size; words can be
    searched; everything has its interval and can be saved as CSV. The page contains labels and aggregate results:
    share it as you would share the fit. With --rows it also shows estimates for single rows.

    Example: `countveil browse survey.nc -o topics.html`
    """
    check_ending(output, ".html", ".htm")
    check_free(output, force, fit, other)
    from countveil.common import fit_files

    for path in filter(None, (fit, other)):
        fit_files.check(path)  # before the models are imported
    from countveil.fit import load
    from countveil.report.browse import write_browser

    found = load(fit)
    second = None if other is None else load(other)
    names = (fit.stem, "") if other is None else distinct_names(fit, other)
    write_browser(found, output, second, members=members, rows=rows, title=title, names=names)
    say(f"Wrote {output}: {output.stat().st_size / 1000:.0f} kB.")
