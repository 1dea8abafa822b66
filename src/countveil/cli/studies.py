"""Commands of a study: write its file, collect its reports, and audit the promise that it makes."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from countveil.cli.shell import Force, check_free, plainly

if TYPE_CHECKING:
    from countveil.privacy import PrivacyLevel

Report = TypeVar("Report")

study_app = typer.Typer(help="Write and read the file that a study publishes.", no_args_is_help=True)


def add_studies(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.add_typer(study_app, name="study")
    app.command("collect")(collect_reports)
    app.command("audit")(audit_noise)


@study_app.command("new")
@plainly
def new_study(
    labels: Annotated[
        list[Path],
        typer.Argument(help="What is counted: a text file, one word a line; one file for each axis."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The study file to write (.json).")],
    title: Annotated[str, typer.Option(help="What the study is called, in one line.")],
    purpose: Annotated[str, typer.Option(help="What the reports are for, as participants read it.")],
    contact: Annotated[str, typer.Option(help="Whom to send reports to and whom to ask.")],
    level: Annotated[
        list[str],
        typer.Option(metavar="N:EPSILON", help="A level on offer: hide up to N at epsilon. Repeatable."),
    ],
    categories: Annotated[
        bool,
        typer.Option("--categories", help="Lines are categories that participants count, not words of text."),
    ] = False,
    signed: Annotated[
        bool, typer.Option("--signed", help="Reports keep their sign; the models here do not need it.")
    ] = False,
    address: Annotated[
        str | None,
        typer.Option(help="Where the participant's page may send a report (https://...) [default: nowhere]."),
    ] = None,
    force: Force = False,
) -> None:
    """Write a study file: what is asked, over which words, at which levels; fixed before any data is seen.

    An axis is named by its file, `receiver.txt` being the axis `receiver`. Prints the study's id and what its
    levels mean.

    Example: `countveil study new word.txt -o study.json --title "Mail" --purpose "To find topics."
    --contact me@example.org --level 10:1 --level 10:5`
    """
    from countveil.data.io import read_vocabulary
    from countveil.privacy import study

    check_free(output, force, *labels)
    axes = [(path.stem, read_vocabulary(path)) for path in labels]
    made = study.new(
        title,
        purpose,
        contact,
        [read_level(text) for text in level],
        axes,
        kind=study.CATEGORIES if categories else study.WORDS,
        truncated=not signed,
        address=address,
    )
    write_text(output, made.to_json())
    sizes = ", ".join(f"{name}: {len(names)}" for name, names in made.axes)
    typer.echo(f"Wrote {output}: study {made.id}, {sizes}.")
    for place, meaning in enumerate(made.meanings(), start=1):
        typer.echo(f"Level {place}: {meaning}")


@study_app.command("show")
@plainly
def show_study(file: Annotated[Path, typer.Argument(help="A study file.")]) -> None:
    """Check a study file, and show it as participants see it."""
    from countveil.privacy.study import load

    typer.echo(load(file).describe())


@study_app.command("page")
@plainly
def study_page(
    file: Annotated[Path, typer.Argument(help="A study file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write (.html).")],
    strings: Annotated[
        Path | None,
        typer.Option(help="What the page says, in another language: a .json as `study strings` prints it."),
    ] = None,
    force: Force = False,
) -> None:
    """Write the participant's page: one HTML file that does in a browser what the participant's command does.

    It counts, adds exact noise, shows the report and saves it; it loads nothing, and sends nothing unless the
    study names an address and the person presses the button. Publish it where the study file is, or hand it out.

    Example: `countveil study page study.json -o study.html`
    """
    from countveil.page import page
    from countveil.page import strings as read_strings
    from countveil.privacy.study import load

    check_free(output, force, file, strings)
    made = load(file)
    write_text(output, page(made, read_strings(strings)))
    typer.echo(f"Wrote {output}: the page of study {made.id}, {output.stat().st_size} bytes.")


@study_app.command("strings")
@plainly
def page_strings() -> None:
    """Print everything that the participant's page says, as JSON to translate for `study page --strings`."""
    import json

    from countveil.page import strings

    typer.echo(json.dumps(strings(), indent=1, ensure_ascii=False))


@plainly
def collect_reports(
    study: Annotated[Path, typer.Argument(help="The study file.")],
    reports: Annotated[
        list[str],
        typer.Argument(
            help="Report files, directories full of them, or what `receive` stored: a file or a URL."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write (.npz).")],
    table: Annotated[
        Path | None,
        typer.Option(help="What became of every file, and why [default: the output with the ending .csv]."),
    ] = None,
    force: Force = False,
) -> None:
    """Merge the reports of a study into one release.

    Files that are no report of this study, were changed, hold impossible values or come from a participant who
    was there before are refused one by one; the table says why. Rows keep their own noise level and are labelled
    with the participants' random tokens.

    Example: `countveil collect study.json reports/ -o release.npz`
    """
    from itertools import chain, starmap

    from countveil.collect import Held, collect, report_files
    from countveil.privacy.study import load
    from countveil.receive import store
    from countveil.receive.database import is_url

    table = output.with_suffix(".csv") if table is None else table
    paths = [Path(where) for where in reports if not is_url(where)]
    check_free(output, force, study, *paths)
    check_free(table, force, study, output, *paths)
    for written in (output, table):
        if any(path.is_dir() and written.parent.samefile(path) for path in paths):
            raise ValueError(
                f"{written} must be outside the directories of reports, got one in {written.parent}"
            )
    stores = [where for where in reports if store.is_store(where)]
    found = report_files(path for path in paths if not store.is_store(path))
    held = starmap(Held, chain.from_iterable(map(store.contents, stores)))
    expected = len(found) + sum(map(store.size, stores))
    done = collect(load(study), counted(chain(found, held), expected), output, table)
    typer.echo(f"Accepted {done.accepted} of {done.accepted + done.refused} reports.")
    for field, times in done.fields.most_common():
        typer.echo(f"Refused for {field}: {times}")
    typer.echo(f"Wrote {output}, and {table} with what became of every file.")


@plainly
def audit_noise(
    level: Annotated[
        list[str] | None,
        typer.Option(metavar="N:EPSILON", help="A level to audit [default: 10:1, 1:1 and 1:4]. Repeatable."),
    ] = None,
    study: Annotated[Path | None, typer.Option(help="Audit the levels of this study file.")] = None,
) -> None:
    """Check the promise: the shipped noise against its exact law, and what a report file gives away.

    On every route from counts to reports (arrays, sparse matrices, a participant's report file): alpha, both
    signs, the whole law, counts of 2^53, 2^60 and 2^62, zeros, reuse, lower confidence bounds on epsilon between
    neighbouring counts, and that a file's bytes are determined by its noisy counts. Says what each check would
    have detected, with 99% probability. Exit status 1 if one fails; a false alarm has a probability below 1 in
    100,000. About half a minute.

    Example: `countveil audit --level 10:1`
    """
    from countveil.audit import audit
    from countveil.audit.checks import LEVELS
    from countveil.privacy.level import short
    from countveil.privacy.study import load

    levels = [read_level(text) for text in level or []]
    levels += load(study).levels if study is not None else ()
    failed = total = 0
    for finding in audit(levels or LEVELS):
        total, failed = total + 1, failed + (not finding.passed)
        said = f"N={short(finding.level.precision)}, epsilon={short(finding.level.epsilon)}"
        typer.echo(
            f"{'PASS' if finding.passed else 'FAIL'}  {finding.route}, {finding.check} ({said}): {finding.seen}; "
            f"detects {finding.power}"
        )
    typer.echo(f"{total - failed} of {total} checks passed.")
    if failed:
        raise typer.Exit(1)


def counted(files: Iterable[Report], total: int) -> Iterable[Report]:
    """The files, with a progress bar on a terminal where there are many."""
    from rich.progress import track

    from countveil.console import console

    return track(files, "Collecting", total=total, console=console(), transient=True, disable=total < 1000)


def read_level(text: str) -> "PrivacyLevel":
    """A level from N:EPSILON."""
    from countveil.privacy import PrivacyLevel

    precision, separator, epsilon = text.partition(":")
    if not separator:
        raise ValueError(f"level must be N:EPSILON, such as 10:1, got {text!r}")
    return PrivacyLevel(epsilon, precision)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    from countveil.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
