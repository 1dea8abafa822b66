"""``countveil checklist``: what a paper should say of a fit, and what is still to be done."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from countveil.cli import releases
from countveil.cli.options import Force
from countveil.cli.output import check_ending, check_free, plain_errors, say, write_text
from countveil.cli.results import Result, mechanism_of, with_result
from countveil.cli.show import FitFile, loaded


@plain_errors
@with_result
def checklist(
    fit: FitFile,
    release: Annotated[
        Path | None, typer.Option(help="The release that was fitted: adds its level and posterior predictive checks.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the checklist to this file (.md) instead of printing it."),
    ] = None,
    force: Force = False,
) -> Result:
    """Print a checklist for a paper, in Markdown: data, privacy, model, priors, diagnostics, checks, software.

    Filled in from the fit. Questions that the fit cannot answer are left open, with the command that answers them.

    Example: `countveil checklist survey.nc --release survey.npz -o checklist.md`
    """
    if output is not None:
        check_ending(output, ".md")
        check_free(output, force, fit, release)
    if release is not None:
        releases.check_release(release)
    found = loaded(fit)
    from countveil.report.checklist import Files, checklist_of

    data = None if release is None else releases.loaded(release)
    usual = Files()
    names = Files(shlex.quote(str(fit)), usual.release if release is None else shlex.quote(str(release)))
    made = checklist_of(found, data, names)
    if output is not None:
        write_text(output, f"{made}\n")
    if output is None:
        say(str(made))
    else:
        say(f"Wrote {output}: {len(made.open)} of {len(made.items)} boxes are open.")
    judged = made.judged
    table = judged.table.rename_axis("quantity").reset_index()
    said = {"state": str(judged.state), "verdict": judged.verdict}
    return {"checklist": made.table, "diagnostics": table} | said | mechanism_of(judged)
