"""``countveil relabel``: names for the components of a fit, from a file."""

from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.output import plain_errors, say
from countveil.cli.results import with_quiet
from countveil.cli.show import FitFile, loaded


@plain_errors
@with_quiet
def relabel(
    fit: FitFile,
    names: Annotated[Path, typer.Argument(help="Names saved on the page that `countveil browse` writes (.json).")],
) -> None:
    """Name the components of a fit; all commands and pages then show these names.

    Rename components on the page of `countveil browse`, press "Save names", and pass the file here. The names are kept
    in the file of the fit. Names saved from a page of another fit are refused.

    Example: `countveil relabel survey.nc names.json`
    """
    from countveil.fit.naming import relabel_from

    found = loaded(fit)
    relabel_from(found, names)
    found.save(fit)
    for part in found._reader.kinds:
        for number, name in found._reader.names_of(part.axes[0]).items():
            say(f"{part.one} {number}: {name}")
    say(f"Wrote {fit}.")
