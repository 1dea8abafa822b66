"""``countveil study``: the file that a study publishes, and the page that its participants open."""

import json
from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.options import Force, read_any_level
from countveil.cli.output import check_free, plain_errors, say, write_text
from countveil.cli.results import Result, with_quiet, with_result
from countveil.privacy import study
from countveil.privacy._covariates import Covariate, spelt
from countveil.study import page

StudyFile = Annotated[Path, typer.Argument(help="A study file.")]

study_app = typer.Typer(help="Write the study file and the participant's page, and check them.", no_args_is_help=True)


@study_app.command("new")
@plain_errors
@with_result
def new_study(
    labels: Annotated[
        list[Path],
        typer.Argument(help="The words or categories to count: a text file, one per line; one file for each axis."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The study file to write (.json).")],
    title: Annotated[str, typer.Option(help="Title of the study, in one line.")],
    purpose: Annotated[str, typer.Option(help="Purpose of the study, as participants will read it.")],
    contact: Annotated[str, typer.Option(help="Where participants send reports and questions.")],
    level: Annotated[
        list[str],
        typer.Option(
            metavar="N:EPSILON",
            help="A level that participants may choose: privacy loss EPSILON for a total change of N in the counts; or "
            "rho:RHO, which needs --signed. All levels must be of one kind. Repeatable.",
        ),
    ],
    categories: Annotated[
        bool,
        typer.Option(
            "--categories", help="Lines are categories that participants count themselves, not words in a text."
        ),
    ] = False,
    signed: Annotated[
        bool, typer.Option("--signed", help="Allow negative reports. Levels of rho need them; other levels do not.")
    ] = False,
    address: Annotated[
        str | None,
        typer.Option(help="Address to which the participant's page may send a report (https://...) [default: none]."),
    ] = None,
    wave: Annotated[
        list[str] | None, typer.Option(help="A period in which the same people report again. Repeatable, in order.")
    ] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="A fact that participants state without noise, unprotected: party=D,R,other for one of these values, "
            "age=number or age=number:18:120 for a number. Repeatable.",
        ),
    ] = None,
    force: Force = False,
) -> Result:
    """Write a study file: the words, the levels and the purpose, fixed before any data are seen.

    An axis is named after its file: `receiver.txt` is the axis `receiver`. Prints the study's id and the meaning of its
    levels.

    With `--wave 2026-01 --wave 2026-02` people report once in each wave. With `--covariate party=D,R` they also state
    their party, which no noise protects.

    Example: `countveil study new word.txt -o study.json --title "Mail" --purpose "To find topics."
    --contact me@example.org --level 10:1 --level 10:5`
    """
    from countveil.data.io import read_vocabulary

    check_free(output, force, *labels)
    axes = [(path.stem, read_vocabulary(path)) for path in labels]
    made = study.new(
        title,
        purpose,
        contact,
        [read_any_level(text) for text in level],
        axes,
        kind=study.CATEGORIES if categories else study.WORDS,
        truncated=not signed,
        address=address,
        waves=wave or (),
        covariates=[read_covariate(text) for text in covariate or ()],
    )
    write_text(output, made.to_json())
    sizes = ", ".join(f"{name}: {len(names)}" for name, names in made.axes)
    say(f"Wrote {output}: study {made.id}, {sizes}.")
    for place, meaning in enumerate(made.meanings(), start=1):
        say(f"Level {place}: {meaning}")
    for each in made.covariates:
        say(each.meaning)
    if made.waves:
        summed = ", ".join(level.repeated(len(made.waves)).in_numbers() for level in made.levels)
        say(f"Reports at one level in all {len(made.waves)} waves add up to: {summed}.")
    return {"output": str(output), "id": made.id, "levels": list(made.meanings())}


def read_covariate(text: str) -> Covariate:
    """A covariate as the option states it; what it may be is checked with the study. Raises ValueError."""
    name, sign, allowed = text.partition("=")
    if not sign:
        raise ValueError(f"--covariate must be NAME=VALUES, such as party=D,R or age=number:18:120, got {text!r:.60}")
    kind, *ends = allowed.split(":")
    if kind != "number":
        return Covariate(name, tuple(part.strip() for part in allowed.split(",")))
    if len(ends) not in (0, 2):
        raise ValueError(
            f"--covariate must have two bounds, either of which may be empty, such as {name}=number:18:120 or "
            f"{name}=number:0:, got {text!r:.60}"
        )
    low, high = (spelt(end) if end else None for end in ends) if ends else (None, None)
    return Covariate(name, (), low, high)


@study_app.command("show")
@plain_errors
@with_result
def show_study(file: StudyFile) -> Result:
    """Check a study file, and show it as participants see it."""
    made = study.load(file)
    say(made.describe())
    return dict(json.loads(made.to_json()))


@study_app.command("status")
@plain_errors
@with_result
def study_status(
    file: StudyFile,
    database: Annotated[
        str, typer.Option("--db", help="The database that `receive` writes: the SQLite file, or a URL.")
    ],
    target: Annotated[int | None, typer.Option(min=1, help="Number of reports wanted.")] = None,
) -> Result:
    """Count the reports that `countveil receive` has accepted so far, whether or not it is running.

    Times are not stored, so there are no daily counts. Refusals are not stored either: the receiver shows them while it
    runs and when it ends.

    Example: `countveil study status study.json --db reports.sqlite --target 1000`
    """
    from countveil.study.receive import store
    from countveil.study.receive.database import is_url
    from countveil.study.receive.tally import progress

    made = study.load(file)
    if not is_url(database) and not Path(database).is_file():
        raise FileNotFoundError(f"db must be a file that `countveil receive` has made, or a URL, got {database}")
    accepted = store.size(database, made)
    say(f"Study {made.id}: {progress(accepted, target)} in {store.name_of(database)}.")
    return {"study": made.id, "accepted": accepted, "target": target}


@study_app.command("page")
@plain_errors
@with_quiet
def study_page(
    file: StudyFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write (.html).")],
    strings: Annotated[
        Path | None, typer.Option(help="Translated texts of the page: a .json in the form that `study strings` prints.")
    ] = None,
    force: Force = False,
) -> None:
    """Write the participant's page: one HTML file that counts, adds exact noise and saves the report.

    The page loads nothing, and sends nothing unless the study names an address and the participant presses the button.
    Publish it alongside the study file, or hand it out.

    Example: `countveil study page study.json -o study.html`
    """
    check_free(output, force, file, strings)
    made = study.load(file)
    write_text(output, page.page(made, page.strings(strings)))
    say(f"Wrote {output}: the page of study {made.id}, {output.stat().st_size} bytes.")


@study_app.command("strings")
@plain_errors
def page_strings() -> None:
    """Print all texts of the participant's page as JSON, to be translated for `study page --strings`."""
    say(json.dumps(page.strings(), indent=1, ensure_ascii=False))
