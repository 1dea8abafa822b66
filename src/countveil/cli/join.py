"""``countveil join``: releases of the same counts in one file."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.errors import plain_errors
from countveil.cli.options import Force
from countveil.cli.outputs import check_ending, check_free
from countveil.cli.releases import check_release, repeated_rows, say_of
from countveil.cli.results import Result, with_result
from countveil.cli.say import say


@plain_errors
@with_result
def join_releases(
    releases: Annotated[
        list[Path], typer.Argument(help="Two or more releases of the same counts, or files of joined ones.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of all of them to write (.npz).")],
    force: Force = False,
) -> Result:
    """Put releases of the same counts into one file, so that fit, compare, report and checklist read all reports.

    Every release must have noise of its own. Rows and columns find each other by label; a row that a release lacks is
    known by the others. Participants have other tokens in every study, so releases of two studies have no row in
    common, and are refused. Prints what all reports of one record promise together, which is less than what each
    promises: epsilon/N adds up, and so does rho. Counts of two times are not the same counts: those of a study in waves
    go to `countveil fit dynamic`.

    Example: `countveil join spring.npz autumn.npz -o both.npz`
    """
    check_free(output, force, *releases)
    check_ending(output, ".npz")
    for path in releases:
        check_release(path)
        if path.is_dir():
            raise ValueError(f"{path} must be a file of a release, got a folder")
    from countveil.data.joining import join

    found = join(releases)
    say_of(found)
    found.save(output)
    say(f"Wrote {output}.")
    return {
        "output": str(output),
        "releases": len(found.releases or ()),
        "shape": list(found.mode_shape),
        "repeated_rows": repeated_rows(found),
        "masked": found.n_masked,
        "simulated": found.simulated,
        "source": found.source,
        "promise": found.promise,
    }
