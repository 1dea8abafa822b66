"""``countveil join``: releases of the same counts in one file."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.options import Force
from countveil.cli.output import check_ending, check_free, plain_errors, say
from countveil.cli.releases import check_release, repeated_rows, say_of
from countveil.cli.results import Result, with_result


@plain_errors
@with_result
def join_releases(
    releases: Annotated[list[Path], typer.Argument(help="Two or more releases of the same counts.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The joined release to write (.npz).")],
    force: Force = False,
) -> Result:
    """Combine several releases of the same counts, so that one fit uses all their reports.

    The noise of each release must be independent. Rows and columns are matched by label; a row may be absent from
    some releases. Participants get new tokens in every study, so releases of two studies have no rows in common and
    are refused. Prints the protection that remains when all reports of a record are combined: epsilon/N adds up, and
    so does rho. Counts of different times are not the same counts: use `countveil fit dynamic` for a study in waves.

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
        "releases": len(found.provenance.releases or ()),
        "shape": list(found.mode_shape),
        "repeated_rows": repeated_rows(found),
        "masked": found.n_masked,
        "simulated": found.provenance.simulated,
        "source": found.provenance.source,
        "promise": found.promise,
    }
