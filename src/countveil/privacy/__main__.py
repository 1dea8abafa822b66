"""The participant's command line, for a device with nothing installed but Python.

python -m countveil.privacy show STUDY               what a study asks, and the levels to choose from
python -m countveil.privacy report STUDY RECORD      count, add noise, show, and write the report file
python -m countveil.privacy ledger                   what was released so far
python -m countveil.privacy limit                    what may be released about one record in all
"""

import argparse
import io
import os
import sys
from pathlib import Path

from countveil import __version__
from countveil.privacy import _archive, _covariates, _fields, counting, report
from countveil.privacy._text import plain, shown
from countveil.privacy.counting import Counted
from countveil.privacy.exact import short
from countveil.privacy.ledger import Entry, Ledger, default_path
from countveil.privacy.level import ConcentratedLevel, Level, PrivacyLevel, total
from countveil.privacy.study import WORDS, Study, load
from countveil.privacy.wording import BOTH

MAX_RECORD_BYTES = 1 << 28
_OPENING, _OPENING_STATED = b'{"format":"countveil-report"', b'{"covariates":{'
EXAMPLE = """\
worked example: nobody should be able to tell from your report that you wrote "surprise party" five times.
Without the two words' five uses, your counts differ by 5 x 2 = 10. So choose a level that hides up to N = 10
words; at epsilon = 1 the noise has alpha = exp(-1/10), about 0.9, and no conclusion drawn from the report
becomes more than e (about 2.7) times as likely because you wrote it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns 0, 1 where something is refused, 3 where the person says no."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except (ValueError, TypeError, OSError, OverflowError) as error:
        print("refused: " + plain(" ".join(str(error).split())), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m countveil.privacy",
        description="Take part in a study without handing over your counts: exact random noise is added to "
        "every one of them on this device, and only the noisy report leaves it.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"countveil {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    show = commands.add_parser("show", help="show what a study asks, and the levels to choose from")
    show.add_argument("study", help="the study file")
    show.set_defaults(run=_show)

    make = commands.add_parser(
        "report",
        help="count, add noise, show the report, and write it once you agree",
        description="Counts a record over the study's words or categories, adds noise to every count, shows the "
        "report and writes it once you agree. Asking again gives the same report: its noise is drawn once.",
        epilog=f"{counting.RULE}\n\nA .csv has rows label,count; a .json maps labels to counts. Counts "
        f"that the study does not ask for are dropped on this device.\n\n{EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    make.add_argument("study", help="the study file")
    make.add_argument("record", help="your text (.txt) or counts (.csv, .json); - reads standard input")
    make.add_argument(
        "-o", "--output", help="the report file to write [report-<start of its token>.json; in waves, with a number]"
    )
    make.add_argument("--wave", metavar="WAVE", help="the wave of this report, if the study has waves")
    make.add_argument(
        "--covariate",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a fact that the study asks you to state without noise; repeat for each",
    )
    make.add_argument(
        "--level", metavar="K", help="a level that the study offers, by its number or as N:EPSILON or rho:RHO"
    )
    make.add_argument("--name", default="me", help="what you call this record; stays in your ledger [me]")
    make.add_argument("--as", dest="form", choices=counting.FORMATS, help="format of the record [by its ending]")
    make.add_argument("--anew", action="store_true", help="draw fresh noise: a second report reveals more")
    make.add_argument("--yes", action="store_true", help="write the report without asking")
    make.add_argument("--full", action="store_true", help="show the whole report before it is written")
    _with_ledger(make)
    make.set_defaults(run=_report)

    listed = commands.add_parser("ledger", help="list what was released so far")
    listed.add_argument("--name", help="only this record")
    _with_ledger(listed)
    listed.set_defaults(run=_ledger)

    limit = commands.add_parser("limit", help="show or set the total privacy loss allowed for one record")
    limit.add_argument("--epsilon", help="largest total epsilon of all releases of one record, at N; a decimal")
    limit.add_argument("--precision", metavar="N", help="the N of --epsilon; a decimal")
    limit.add_argument(
        "--rho",
        help="instead of both: largest total rho, a decimal; a release at epsilon and N counts as (epsilon/N)^2/2",
    )
    _with_ledger(limit)
    limit.set_defaults(run=_limit)
    return parser


def _with_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ledger", type=Path, help="your ledger [$COUNTVEIL_LEDGER or ~/.countveil/ledger.sqlite3]")


def _show(options: argparse.Namespace) -> int:
    print(load(options.study).describe())
    return 0


def _report(options: argparse.Namespace) -> int:
    study = load(options.study).at(options.wave)
    stated = _covariates.given(study.covariates, options.covariate)
    level = _level(options, study)
    with _opened(options) as ledger:
        number = "" if study.wave is None else f"-{1 + study.waves.index(study.wave)}"
        output = Path(options.output or f"report-{ledger.participant(study, options.name)[:8]}{number}.json")
        _check_output(output, options)
        entry = _obtained(options, study, level, ledger, stated)
        if entry is None:
            print("Nothing was made.")
            return 3
        _preview(entry, study, ledger, options)
        question = f"Write it to {output}? (yes/no) "
        if not options.yes and _asked(question, options).lower() not in ("y", "yes"):
            again = "asking for fresh noise again" if options.anew else "asking again"
            print(f"Nothing was written. The report stays in your ledger, and {again} gives the same one.")
            return 3
        _archive.put(output, ledger.hand_over(entry))
    print(f"Wrote {output}: this file, and nothing else, is for {study.contact}.")
    return 0


def _opened(options: argparse.Namespace) -> Ledger:
    """The ledger; says so where it is new, since it would draw noise again that an older one may hold."""
    ledger = Ledger(options.ledger or default_path())
    if ledger.begun:
        print(
            f"A new ledger was begun: {ledger.path}. If you have taken part before, stop here and name the ledger "
            "that you used (--ledger): without it, noise would be drawn again, and a second release counted as a first."
        )
    return ledger


def _obtained(
    options: argparse.Namespace, study: Study, level: Level, ledger: Ledger, stated: tuple[str, ...]
) -> Entry | None:
    """The stored report, or one made of the record now and stored; None if the person does not want one of zeros.

    ``stated`` are its covariates: those of a stored report are replaced, unless it left.
    """
    stored = ledger.find(study, options.name, level, options.anew)
    counted = None
    if stored is not None:
        print(
            f"A report about the record {options.name!r} was made on {stored.made} and is given again: the "
            "record is not read, and no noise is drawn. For another record, give another --name."
        )
    else:
        counted = _count(options, study)  # before the ledger is locked
        if not any(counted.values) and not _sure_of_zeros(options, study):
            return None

    def make(token: str) -> bytes:
        counts = (counted or _count(options, study)).values
        return report.encode(report.privatized(counts, study, level, token, stated), study)

    entry = ledger.obtain(study, options.name, level, make, options.anew)
    made = _read(entry, study, ledger)
    if made.covariates == stated:
        return entry
    if entry.gone is None:
        entry = ledger.restate(entry, report.encode(made._replace(covariates=stated), study))
        made = _read(entry, study, ledger)
    if made.covariates != stated:
        left, given = (", ".join(_stated(study, each)) for each in (made, made._replace(covariates=stated)))
        raise ValueError(f"covariates must be those of the report that was sent, {left}, got {given}")
    return entry


def _read(entry: Entry, study: Study, ledger: Ledger) -> report.Report:
    return report.decode(entry.report, study, f"report {entry.number} in {ledger.path}")


def _stated(study: Study, made: report.Report) -> list[str]:
    """A report's covariates, each as it was given."""
    return [f"{each.name}={value}" for each, value in zip(study.covariates, made.covariates, strict=True)]


def _sure_of_zeros(options: argparse.Namespace, study: Study) -> bool:
    """Warns of a record without anything of the study; whether to go on."""
    print("warning: " + BOTH["nothing_counted"].format(cells=study.cells), file=sys.stderr)
    return options.yes or _asked("Go on? (yes/no) ", options).lower() in ("y", "yes")


def _level(options: argparse.Namespace, study: Study) -> Level:
    """The level asked for, the only one, or the one chosen from the list."""
    asked, count = options.level, len(study.levels)
    if asked is None and count == 1:
        asked = "1"
    if asked is None and not options.yes:
        print(f"{study.title}. Choose how much to hide:")
        for number, meaning in enumerate(study.meanings(), start=1):
            print(f"  {number}. {meaning}")
        asked = _asked(f"Level (1 to {count}): ", options)
    place = _place(asked or "", study)
    if place is None:
        offered = ", ".join(f"{number} ({level.spelt()})" for number, level in enumerate(study.levels, start=1))
        got = "none" if not asked else shown(asked)
        raise ValueError(f"level must be one that the study offers, by its number: {offered}; got {got}")
    return study.levels[place]


def _place(asked: str, study: Study) -> int | None:
    """Which of the study's levels is meant by its number, or by an N:EPSILON that is exactly one of them."""
    asked = asked.strip()
    if asked.isascii() and asked.isdecimal():
        return next((place for place in range(len(study.levels)) if str(place + 1) == asked), None)
    precision, _, epsilon = asked.partition(":")
    spelt = [place for place, level in enumerate(study.levels) if level.spelt() == asked]
    if len(spelt) == 1:
        return spelt[0]
    try:
        level = PrivacyLevel.zcdp(epsilon) if precision == "rho" else PrivacyLevel(epsilon, precision)
    except (ValueError, TypeError, OverflowError):
        return None
    return study.levels.index(level) if level in study.levels else None


def _asked(question: str, options: argparse.Namespace) -> str:
    """The answer from standard input; empty where standard input holds the record or has ended."""
    if options.record == "-":
        return ""
    try:
        return input(question).strip()
    except (EOFError, RuntimeError):  # the latter where standard input is closed
        print()
        return ""


def _check_output(output: Path, options: argparse.Namespace) -> None:
    """Refuses an output that cannot or must not be written, before noise is drawn or a report counts as gone."""
    for other in (options.study, options.record, options.ledger or default_path()):
        if output.exists() and os.path.exists(other) and output.samefile(other):
            raise ValueError(f"{output} must be a separate file, got a file that this command needs")
    if output.is_dir():
        raise ValueError(f"{output} must be a file, got a directory: add a file name, such as report.json")
    if not output.parent.is_dir():
        raise ValueError(f"{output} must be in a directory that exists, got no directory {output.parent}")
    _archive.check_replaceable(output)
    if output.exists() and not _is_report(output):
        raise ValueError(f"{output} must be a new name or a report, got a file that is something else")
    if not os.access(output.parent, os.W_OK | os.X_OK):
        raise ValueError(f"{output} must be in a writable directory, got a directory that is not")


def _is_report(path: Path) -> bool:
    with open(path, "rb") as file:
        content = file.read(1 << 17)  # more than covariates can take
    if content.startswith(_OPENING_STATED):
        return b"}," + _OPENING[1:] in content
    return content.startswith(_OPENING) or not content


def _count(options: argparse.Namespace, study: Study) -> Counted:
    """The record's counts, and a line about what they leave out; the line is for this screen alone."""
    name = options.record
    form = options.form or {".csv": "csv", ".json": "json"}.get(Path(name).suffix.lower(), "text")
    if form == "text" and study.kind != WORDS:
        raise ValueError(f"{name} must be a .csv or .json of counts, since the study counts no words, got text")
    if name == "-":
        if sys.stdin is None:
            raise ValueError("the record must come from standard input, got none")
        content = sys.stdin.buffer.read(MAX_RECORD_BYTES + 1)
        if len(content) > MAX_RECORD_BYTES:
            raise ValueError(f"the record must have at most {MAX_RECORD_BYTES} bytes, got more")
    else:
        content = _fields.read_bytes(name, MAX_RECORD_BYTES)
    counted = counting.count(content, form, study.labels, name)
    unit = "words" if form == "text" else "counts"
    print(
        f"Not in the study, ignored, and never leaving this device: {counted.outside} {unit} "
        f"({counted.outside_kinds} different)."
    )
    return counted


def _preview(entry: Entry, study: Study, ledger: Ledger, options: argparse.Namespace) -> None:
    """What would leave: the level in words, the noisy counts, the size, and what it adds up to."""
    made = _read(entry, study, ledger)
    values, level = made.values, made.level
    positive = sorted((place for place in range(study.cells) if values[place] > 0), key=lambda i: -values[i])
    print(f"\n{study.named}. {level.describe()}\n")
    print(f"Study {study.id}. If the published id differs, this is another study, perhaps made for you alone.")
    print(
        f"What would leave: {study.cells} noisy counts, {len(positive)} of them above zero, under the random "
        f"token {made.participant}. The largest, which may be noise alone:"
    )
    print("  " + ", ".join(f"{_label(study, place)} {values[place]}" for place in positive[:8]))
    if study.covariates:
        print(f"{BOTH['clear_heading']}: {', '.join(_stated(study, made))}. {BOTH['clear_known']}")
    if options.full:
        print(f"The whole file, {len(entry.report)} bytes:\n{entry.report.decode('ascii')}", end="")
    else:
        print(f"The whole file has {len(entry.report)} bytes; --full shows it.")
    spent = [each.level for each in ledger.entries(options.name) if each.gone or each.number == entry.number]
    print(
        "With this report, everything released about these data, as far as the ledger knows, adds up to "
        f"{_added_up(spent, level)}."
    )


def _added_up(levels: list[Level], asked: Level) -> str:
    """What releases add up to, at the N of the level asked for where all are of epsilon."""
    spent = total(levels) or asked
    if isinstance(spent, PrivacyLevel) and isinstance(asked, PrivacyLevel):
        return PrivacyLevel(spent.epsilon_at(asked.precision), asked.precision).in_numbers()
    mixed = any(isinstance(level, PrivacyLevel) for level in levels)
    counted = ", in which reports at epsilon and N count as (epsilon/N)^2/2" if mixed else ""
    return f"{spent.in_numbers()} for one unit in one cell{counted}"


def _label(study: Study, place: int) -> str:
    names = []
    for labels in reversed(study.labels):
        place, within = divmod(place, len(labels))
        names.append(labels[within])
    return "/".join(reversed(names))


def _ledger(options: argparse.Namespace) -> int:
    with _opened(options) as ledger:
        known = ledger.entries(options.name)
        for entry in known:
            level = entry.level.in_numbers()
            left = f"left {entry.gone}" if entry.gone else "did not leave"
            print(
                f"{entry.number}. {entry.title} ({entry.study[:8]}), record {entry.record.hex()[:8]}, {level}, {left}"
            )
        if not known:
            print("Nothing was released.")
        if options.name is not None:
            spent = ledger.spent(options.name)
            one = "epsilon/N = 0" if spent is None else f"epsilon/N = {short(spent.loss)}"
            said = f"{one} per count" if not isinstance(spent, ConcentratedLevel) else _added_up([], spent)
            print(f"What left about it adds up to {said}.")
    return 0


def _limit(options: argparse.Namespace) -> int:
    with _opened(options) as ledger:
        if (options.epsilon is None) != (options.precision is None):
            raise ValueError("a limit must have an epsilon and a precision N, got only one of them")
        if options.epsilon is not None and options.rho is not None:
            raise ValueError("a limit must be stated in epsilon at an N or in rho, got both")
        if options.rho is not None:
            ledger.set_limit(PrivacyLevel.zcdp(options.rho))
        if options.epsilon is not None:
            ledger.set_limit(PrivacyLevel(options.epsilon, options.precision))
        limit = ledger.limit()
        if limit is None:
            print("No limit is set: each record can be released once, in one study.")
        else:
            print(f"All releases of one record may come to {limit.in_numbers()}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
