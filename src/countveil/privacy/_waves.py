"""Releases of a study in waves: which row is of which wave, and what all rows of one person promise together."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from countveil.privacy._text import first_wrong, shown
from countveil.privacy.errors import ReleaseError
from countveil.privacy.level import Level, PrivacyLevel, total
from countveil.privacy.names import clash, spelt_alike


class Waves(NamedTuple):
    """The periods in which people were asked, in their order, and the place among them of each row."""

    names: tuple[str, ...]
    of_row: tuple[int, ...]


def checked(waves: Waves | None, row_labels: tuple[str, ...] | None, rows: int, directed: bool | None) -> Waves | None:
    """The waves as tuples; raises ReleaseError where they do not fit the rows, or a person is in one twice."""
    if waves is None:
        return None
    names, of_row = tuple(waves[0]), tuple(waves[1])
    rule = "waves must have at least one name, and names that differ from each other"
    wrong = first_wrong(names, lambda name: isinstance(name, str) and bool(name)) if names else "none"
    if not wrong and len(set(names)) < len(names):
        wrong = f"{shown(next(name for name in names if names.count(name) > 1))} twice"
    if wrong:
        raise ReleaseError(f"{rule}, got {wrong}")
    rule = f"waves must number the wave of each of {rows} rows from 0 to {len(names) - 1}"
    if len(of_row) != rows:
        raise ReleaseError(f"{rule}, got {len(of_row)} numbers")
    if wrong := first_wrong(of_row, lambda place: type(place) is int and 0 <= place < len(names)):
        raise ReleaseError(f"{rule}, got {wrong}")
    if row_labels is None:
        raise ReleaseError("waves must come with row labels, which identify whose reports they are, got no row labels")
    if directed is not None:
        raise ReleaseError(f"waves must be None for a network, got waves with directed={directed}")
    people = spelt_alike(row_labels)
    if len(set(zip(people, of_row, strict=True))) < rows:
        raise ReleaseError(
            f"waves must have one row of each person at most, got two {_in_one_wave(row_labels, of_row)}"
        )
    return Waves(names, of_row)


def _in_one_wave(row_labels: tuple[str, ...], of_row: tuple[int, ...]) -> str:
    """What the labels of two rows of one wave are that name the same person."""
    for wave in sorted(set(of_row)):
        found = clash(label for label, place in zip(row_labels, of_row, strict=True) if place == wave)
        if found and found[0] != found[1]:
            return (
                f"called {found[0]!r} and {found[1]!r}, which differ only in case, blanks or Unicode form: "
                "rename one of them if they are two people"
            )
    return "with the same label"


def by_person(row_labels: Iterable[str], levels: Sequence[Level]) -> dict[str, Level]:
    """What all rows of the same person promise together, at the N of the first of them, by their first label.

    Labels name the same person where the ledger takes them for the same name, whatever their case, say.
    """
    own: dict[str, list[Level]] = {}
    for name, level in zip(spelt_alike(row_labels), levels, strict=True):
        own.setdefault(name, []).append(level)
    known = {each: added(each) for each in set(map(tuple, own.values()))}
    return {name: known[tuple(each)] for name, each in own.items()}


def added(levels: Sequence[Level]) -> Level:
    """What releases at these levels, one or more, add up to, at the N of the first where all are of epsilon."""
    summed, first = total(levels), levels[0]
    if summed is None:
        raise ValueError("levels must be one or more to add up, got none")
    if isinstance(summed, PrivacyLevel) and isinstance(first, PrivacyLevel):
        return PrivacyLevel(summed.epsilon_at(first.precision), first.precision)
    return summed


def in_words(waves: Waves | None, row_labels: tuple[str, ...] | None, levels: Level | tuple[Level, ...] | None) -> str:
    """How many people were asked in which waves, and what all reports of one of them promise; empty without waves."""
    if waves is None or row_labels is None:
        return ""
    people, number = len(set(spelt_alike(row_labels))), len(waves.names)
    said = f" Rows are reports of {people} people in {number} waves: rows with the same label are one person's."
    if levels is None:
        return said
    every = levels if isinstance(levels, tuple) else (levels,) * len(row_labels)
    together = promise_of(by_person(row_labels, every).values())
    return f"{said} What is said above is said of the counts of one wave. {together}"


def promise_of(levels: Iterable[Level]) -> str:
    """What all reports of the person with the weakest promise come to, in words."""
    weakest = max(levels, key=lambda level: level.kept_rho)
    return (
        "All reports of one person together, where the counts of every wave may differ by as much, come to at most "
        f"{weakest.in_numbers()}. {weakest.describe(together=True)}"
    )
