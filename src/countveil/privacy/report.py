"""One participant's report file: the noisy counts, what was done to them, and nothing else.

Canonical JSON in one line, so that its bytes are a function of what it says: neither its length nor its
layout tells more than the noisy counts themselves, and it holds no name and no time. It ends with the SHA-256
of every byte before, which detects damage and casual changes; it is not a signature.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from countveil.privacy import _covariates, _fields, _format
from countveil.privacy._text import shown
from countveil.privacy.errors import RefusedError
from countveil.privacy.level import Level
from countveil.privacy.study import Study

FORMAT = "countveil-report"
FORMAT_VERSION = 1
LOWEST, HIGHEST = -(2**62) + 1, 2**63 - 1
"""Where a count up to 2^62 plus noise below 2^62 in size can lie."""

_TOKEN = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SEAL = b',"sha256":"%s"}\n'
_SEAL_LENGTH = len(_SEAL % (b"0" * 64))
_KINDS = {
    "format": str,
    "format_version": int,
    "study": str,
    "schema_hash": str,
    "mechanism": str,
    "mechanism_version": int,
    "level": dict,
    "truncated": bool,
    "participant": str,
    "reports": list,
    "sha256": str,
}


class Report(NamedTuple):
    """What one participant hands over about one record: a random token, a level, noisy counts."""

    participant: str
    level: Level
    values: list[int]  # in the study's order, the last axis fastest
    wave: str | None = None  # in studies that have waves
    covariates: tuple[str, ...] = ()  # in the study's order; in the clear

    @property
    def key(self) -> str:
        """What differs between the reports of a study: the token, and the wave if there are several."""
        return self.participant if self.wave is None else f"{self.participant} {self.wave}"


def privatized(
    counts: Sequence[int], study: Study, level: Level, participant: str, covariates: tuple[str, ...] = ()
) -> Report:
    """Exact noise on every count, zeros included, cut at zero if the study says so; of the wave that is meant.

    ``covariates`` stay as they are. Raises OverflowError with probability below exp(-2^21) for each count.
    """
    noisy = [count + tau for count, tau in zip(counts, level.draw(study.cells), strict=True)]
    kept = [max(value, 0) for value in noisy] if study.truncated else noisy
    return Report(participant, level, kept, study.wave, covariates)


def encode(report: Report, study: Study) -> bytes:
    """The report file's bytes: the same for the same report under the same study.

    Raises ValueError for a report of no wave, or of one that the study does not have, and for covariates that are not
    the study's.
    """
    study.at(report.wave)
    names = [each.name for each in study.covariates]
    stated = dict(zip(names, report.covariates, strict=True))
    _covariates.of_report(study.covariates, stated, "the report")
    head = _format.canonical(
        {
            **fixed(study),
            "level": {name: str(number) for name, number in report.level.numbers().items()},
            "participant": report.participant,
            "reports": report.values,
            **({} if report.wave is None else {"wave": report.wave}),
            **({"covariates": stated} if stated else {}),
        }
    )
    body = head[:-1]
    return body + _SEAL % hashlib.sha256(body).hexdigest().encode("ascii")


def fixed(study: Study) -> dict[str, Any]:
    """What every report of a study says."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "study": study.id,
        "schema_hash": study.schema_hash,
        "mechanism": study.mechanism["name"],
        "mechanism_version": study.mechanism["version"],
        "truncated": study.truncated,
    }


def most_bytes(study: Study) -> int:
    """A bound on the size of any report of this study."""
    longest = max((len(_format.canonical(wave)) for wave in study.waves), default=0)
    named = [each.name for each in study.covariates]
    stated = [max(map(len, map(_format.canonical, each.values)), default=24) for each in study.covariates]
    return 2048 + 21 * study.cells + longest + sum(map(len, named)) + sum(stated) + 8 * len(named)


def load(path: str | os.PathLike[str], study: Study) -> Report:
    """The report of a file; raises RefusedError (file, field, rule), FileNotFoundError or another OSError."""
    return decode(_fields.read_bytes(path, most_bytes(study)), study, os.fspath(path))


def decode(content: bytes, study: Study, name: str) -> Report:
    """The report that a file's bytes hold, if it is one of this study; raises RefusedError.

    What it claims to be is checked before its seal, so that a report of another study or version is refused as such.
    """
    parsed = _fields.parse(content, name)
    stated = isinstance(parsed, dict) and "wave" in parsed
    more: dict[str, type] = {"wave": str} if stated else {}
    if isinstance(parsed, dict) and "covariates" in parsed:
        more |= {"covariates": dict}
    value = _fields.check(parsed, _KINDS | more, name)
    _fields.fixed(value, fixed(study), name)
    wave = value.get("wave")
    if wave not in (study.waves or (None,)):
        rule = "must be one of the study's" if study.waves else "must be left out in a study without waves"
        raise RefusedError(name, "wave", f"{rule}, got {shown(wave) if stated else 'none'}")
    covariates = _of_study(value, study, name)
    _fields.check(value["level"], dict.fromkeys(study.levels[0].numbers(), str), name, "level")
    level = _fields.level(value["level"], name, "level")
    if level not in study.levels:
        offered = ", ".join(each.spelt() for each in study.levels)
        raise RefusedError(name, "level", f"must be one that the study offers, {offered}, got {level.spelt()}")
    if not _TOKEN.fullmatch(value["participant"]):
        raise RefusedError(name, "participant", f"must be 32 hexadecimal digits, got {shown(value['participant'])}")
    _check_values(value["reports"], study, name)
    body, seal = content[:-_SEAL_LENGTH], content[-_SEAL_LENGTH:]
    if seal != _SEAL % hashlib.sha256(body).hexdigest().encode("ascii"):
        raise RefusedError(
            name, "sha256", f"must be the SHA-256 of all before it, got {shown(value['sha256'])}: the file was changed"
        )
    return Report(value["participant"], level, value["reports"], wave, covariates)


def _of_study(value: dict[str, Any], study: Study, name: str) -> tuple[str, ...]:
    """The covariates that a report states, if the study has any; raises RefusedError."""
    if bool(study.covariates) != ("covariates" in value):
        rule = "must be there, got no such field" if study.covariates else "must be left out in a study without them"
        raise RefusedError(name, "covariates", rule)
    return _covariates.of_report(study.covariates, value.get("covariates", {}), name)


def _check_values(values: list[Any], study: Study, name: str) -> None:
    if len(values) != study.cells:
        raise RefusedError(name, "reports", f"must number {study.cells}, got {len(values)}")
    lowest = 0 if study.truncated else LOWEST
    if set(map(type, values)) == {int} and min(values) >= lowest and max(values) <= HIGHEST:
        return
    for place, value in enumerate(values):
        if type(value) is not int or not lowest <= value <= HIGHEST:
            rule = f"must be a whole number from {lowest} to {HIGHEST}, got {shown(value)}"
            raise RefusedError(name, f"reports[{place}]", rule)
