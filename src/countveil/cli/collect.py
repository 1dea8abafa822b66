"""``countveil collect``: the reports of a study as one release."""

from collections.abc import Iterable
from itertools import chain, starmap
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from countveil.cli.options import Force
from countveil.cli.output import check_ending, check_free, plain_errors, say
from countveil.cli.results import Result, with_result
from countveil.privacy.study import load

Report = TypeVar("Report")


@plain_errors
@with_result
def collect_reports(
    study: Annotated[Path, typer.Argument(help="The study file.")],
    reports: Annotated[
        list[str],
        typer.Argument(
            help="Report files, folders of report files, or the database that `receive` writes: a file or a URL."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write (.npz).")],
    table: Annotated[
        Path | None,
        typer.Option(
            help="A table of accepted and refused files, with reasons [default: the output with the ending .csv]."
        ),
    ] = None,
    force: Force = False,
) -> Result:
    """Merge the reports of a study into one release.

    A file is refused if it is not a report of this study, was altered, has impossible values, or comes from a
    participant whose report was already accepted; the table gives the reason. Each row keeps its noise level and is
    labelled with its participant's random token.

    Example: `countveil collect study.json reports/ -o release.npz`
    """
    from countveil.study.collect import Held, collect, is_description, report_files
    from countveil.study.receive import store
    from countveil.study.receive.database import is_url

    table = output.with_suffix(".csv") if table is None else table
    paths = [Path(where) for where in reports if not is_url(where)]
    check_free(output, force, study, *paths)
    check_free(table, force, study, output, *paths)
    check_outside(output, paths)
    check_outside(table, paths)
    check_ending(output, ".npz")
    stores = [where for where in reports if store.is_store(where)]
    found = []
    for file in report_files(path for path in paths if not store.is_store(path)):
        if is_description(file):
            say(f"Skipped {file}: it is the description of a study, not a report.")
        else:
            found.append(file)
    held = starmap(Held, chain.from_iterable(map(store.contents, stores)))
    expected = len(found) + sum(map(store.size, stores))
    done = collect(load(study), counted(chain(found, held), expected), output, table)
    say(f"Accepted {done.accepted} of {done.accepted + done.refused} reports.")
    for field, times in done.fields.most_common():
        say(f"Refused for {field}: {times}")
    say(f"Wrote {output}, and {table} with what became of every file.")
    told = {"accepted": done.accepted, "refused": done.refused, "refused_for": dict(done.fields)}
    return {**told, "output": str(output), "table": str(table)}


def check_outside(output: Path, reports: Iterable[Path]) -> None:
    """Refuse an output among the reports, where a later run would take it for one of them."""
    if any(path.is_dir() and output.parent.samefile(path) for path in reports):
        raise ValueError(f"{output} must be outside the directories of reports, got one in {output.parent}")


def counted(files: Iterable[Report], total: int) -> Iterable[Report]:
    """The files, with a progress bar on a terminal where there are many."""
    from rich.progress import track

    from countveil.common.console import console

    return track(files, "Collecting", total=total, console=console(), transient=True, disable=total < 1000)
