"""Text that others wrote, as a terminal and a spreadsheet may have it: the one place where it is made harmless."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from html import escape
from typing import Any

FORMULA = ("=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
           "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip
"""What a cell begins with that a spreadsheet computes."""
_NEXT_CELL = re.compile(rf"(;[\s\"]*)(?=[{re.escape(''.join(FORMULA))}])")
"""What a spreadsheet takes for the end of a cell where semicolons separate them, before what begins a formula."""
JOINERS = "\N{NO-BREAK SPACE}\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{IDEOGRAPHIC SPACE}"
"""Characters that do not print and that words are written with."""
_SHOWN = 40


def shown(value: Any) -> str:
    """A value for a message: short, in ASCII, with nothing that moves a cursor."""
    said = ascii(value.item() if getattr(value, "shape", None) == () else value)
    return said if len(said) <= _SHOWN else said[: _SHOWN - 3] + "..."


def first_wrong(values: Iterable[Any], fits: Callable[[Any], bool]) -> str | None:
    """The first value that breaks a rule, and where, for a message: "-2 in entry 1"; None if all keep it."""
    places = (f"{shown(value)} in entry {place}" for place, value in enumerate(values) if not fits(value))
    return next(places, None)


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names in a sentence: a; a and b; a, b and c."""
    return f"{', '.join(names[:-1])} {word} {names[-1]}" if len(names) > 1 else "".join(names)


def difference(found: Collection[Any], wanted: Collection[Any]) -> str | None:
    """The first name that is missing, or else not known, for a message; None if all are there and no others."""
    missing = sorted(set(wanted) - set(found))
    unknown = sorted(map(str, set(found) - set(wanted)))
    if missing:
        return f"no {shown(missing[0])}"
    return f"an unknown {shown(unknown[0])}" if unknown else None


def plain(text: str, lines: bool = False) -> str:
    """Text without control characters: escape sequences, changes of direction and the like are written out.

    Line ends stay if ``lines``.
    """
    if text.isprintable():
        return text
    kept = JOINERS + "\n" if lines else JOINERS
    return "".join(each if each.isprintable() or each in kept else ascii(each)[1:-1] for each in text)


def cell(text: str) -> str:
    """Text as a cell that moves no cursor and holds no formula, also where semicolons separate cells."""
    shown = plain(text)
    risky = shown.lstrip().startswith(FORMULA) or text.startswith(("\t", "\r", "\n"))
    return ("'" if risky else "") + _NEXT_CELL.sub(r"\1'", shown)


def card(title: str, rows: Sequence[tuple[str, str]], note: str = "") -> str:
    """HTML of a heading, a table of names and values, and a note below, with hardly any style."""
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    below = f'<p style="max-width:46em">{escape(note)}</p>' if note else ""
    return f"<div><strong>{escape(title)}</strong><table><tbody>{body}</tbody></table>{below}</div>"
