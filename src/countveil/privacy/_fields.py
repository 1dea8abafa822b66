"""Strict reading of JSON files written by others: exactly the known fields, each of its type, or RefusedError.

Every refusal names the file, the field and the rule.
"""

import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from countveil.privacy._text import shown
from countveil.privacy.errors import RefusedError
from countveil.privacy.gaussian_noise import MAX_VARIANCE
from countveil.privacy.level import Level, PrivacyLevel
from countveil.privacy.noise import MIN_RATE

Kinds = Mapping[str, type]

WHOLE_FILE = "the file"
LEAST_RHO = 1 / (2 * MAX_VARIANCE)
_FRACTION = re.compile(r"[1-9][0-9]{0,39}(/[1-9][0-9]{0,39})?", re.ASCII)


def read_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes.

    A pipe or a device is refused, since it might never end. Raises RefusedError; FileNotFoundError if there is none.
    """
    name = os.fspath(path)
    descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise RefusedError(name, WHOLE_FILE, "must be a regular file, got a pipe, a device or a directory")
    with open(descriptor, "rb") as file:
        if status.st_size > limit:
            raise RefusedError(name, WHOLE_FILE, f"must have at most {limit} bytes, got a file of {status.st_size}")
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise RefusedError(name, WHOLE_FILE, f"must be readable, got {error.strerror}") from None
    if len(content) > limit:
        raise RefusedError(name, WHOLE_FILE, f"must have at most {limit} bytes, got more")
    return content


def parse(content: bytes, name: str, private: bool = False) -> dict[str, Any]:
    """A JSON object in UTF-8 with no repeated key and only whole numbers; raises RefusedError.

    ``private`` content is not quoted in the refusal.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = repeated([key for key, _ in pairs])
        if twice is not None:
            key = "a label" if private else shown(pairs[twice][0])
            raise RefusedError(name, key, "must be given once, got it twice")
        return dict(pairs)

    def not_whole(text: str) -> NoReturn:
        raise RefusedError(
            name,
            WHOLE_FILE,
            f"must hold whole numbers and text, got {'a number that is not whole' if private else shown(text)}",
        )

    try:
        value = json.loads(
            content.decode("utf-8"), object_pairs_hook=unique, parse_float=not_whole, parse_constant=not_whole
        )
    except RefusedError:
        raise
    except (ValueError, RecursionError) as error:
        what = " ".join(str(error).split())[:80]
        raise RefusedError(name, WHOLE_FILE, f"must be JSON in UTF-8, got {what}") from None
    if type(value) is not dict:
        raise RefusedError(name, WHOLE_FILE, f"must hold one JSON object, got {type(value).__name__}")
    return value


def check(value: Any, kinds: Kinds, name: str, field: str = "") -> dict[str, Any]:
    """``value`` as an object with exactly these fields, each of exactly this type; raises RefusedError."""
    if type(value) is not dict:
        raise RefusedError(name, field, f"must be an object, got {kind_of(value)}")
    inner = f"{field}." if field else ""
    for key in value:
        if key not in kinds:
            raise RefusedError(
                name, inner + (shown(key)[1:-1] or "''"), f"must be a known field, one of {', '.join(kinds)}"
            )
    for key, kind in kinds.items():
        if key not in value:
            raise RefusedError(name, inner + key, "must be there, got no such field")
        if type(value[key]) is not kind:
            raise RefusedError(name, inner + key, f"must be {_NAMES[kind]}, got {kind_of(value[key])}")
    return value


def fixed(value: dict[str, Any], wanted: Mapping[str, Any], name: str, field: str = "") -> None:
    """Refuses fields that do not have the one value that they may have."""
    for key, want in wanted.items():
        if value[key] != want:
            where = f"{field}.{key}" if field else key
            raise RefusedError(name, where, f"must be {shown(want)}, got {shown(value[key])}")


def text(value: str, name: str, field: str, most: int, lines: bool = False) -> str:
    """Text that a terminal shows as it is: no control characters, no invisible ones, no blank ends."""
    plain = value.replace("\n", "") if lines else value
    if not 1 <= len(value) <= most or value != value.strip() or not plain.isprintable():
        rule = f"must be 1 to {most} printable characters without blank ends"
        got = f"{len(value)} characters" if len(value) > most else shown(value)
        raise RefusedError(name, field, f"{rule}, got {got}")
    return value


def fraction(value: str, name: str, field: str) -> Fraction:
    """A positive reduced fraction such as "1" or "1/10", the one spelling of that number."""
    if not _FRACTION.fullmatch(value) or str(Fraction(value)) != value:
        raise RefusedError(name, field, f"must be a positive reduced fraction, such as 1 or 1/10, got {shown(value)}")
    return Fraction(value)


def level(value: Mapping[str, Any], name: str, field: str) -> Level:
    """The level of an object with epsilon and precision, or rho; raises RefusedError, also where it is not drawn."""
    if "rho" in value:
        concentrated = PrivacyLevel.zcdp(fraction(value["rho"], name, f"{field}.rho"))
        if not LEAST_RHO <= concentrated.rho <= 500_000:
            rule = f"must have a rho from 2^-81 to 500000, got {float(concentrated.rho):.6g}"
            raise RefusedError(name, field, rule)
        return concentrated
    epsilon = fraction(value["epsilon"], name, f"{field}.epsilon")
    found = PrivacyLevel(epsilon, fraction(value["precision"], name, f"{field}.precision"))
    if not MIN_RATE <= found.rate <= 1000:
        raise RefusedError(name, field, f"must have an epsilon/N from 2^-40 to 1000, got {float(found.rate):.6g}")
    return found


def repeated(values: Sequence[Any]) -> int | None:
    """The place of the first value that repeats an earlier one, if there is one."""
    if len(set(values)) == len(values):
        return None
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen:
            return place
        seen.add(value)
    return None


def different(labels: Sequence[Any], name: str, field: str, most: int) -> None:
    """Refuses labels that are no text of one line of at most ``most`` characters, and those that are there twice."""
    for place, label in enumerate(labels):
        if type(label) is not str:
            raise RefusedError(name, f"{field}[{place}]", f"must be text, got {type(label).__name__}")
        text(label, name, f"{field}[{place}]", most)
    twice = repeated(labels)
    if twice is not None:
        got = shown(labels[twice])
        raise RefusedError(name, f"{field}[{twice}]", f"must differ from those before, got {got} again")


_NAMES = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}


def kind_of(value: Any) -> str:
    """What JSON calls a value, for a message that does not show it."""
    return "nothing (null)" if value is None else _NAMES.get(type(value), type(value).__name__)
