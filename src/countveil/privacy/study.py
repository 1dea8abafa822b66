"""The study file: what an analyst asks of participants, fixed and published before any data is seen.

JSON, described by ``study.schema.json`` beside this module. Its ``id`` is the SHA-256 of everything else in
it: a file that was changed anywhere is another study, or none.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from countveil.privacy import _covariates, _fields, _format, counting, promise, wording
from countveil.privacy._covariates import Covariate
from countveil.privacy._text import shown
from countveil.privacy.errors import RefusedError
from countveil.privacy.level import ConcentratedLevel, Level
from countveil.privacy.mechanisms import DiscreteGaussian, Mechanism, TwoSidedGeometric

FORMAT = "countveil-study"
FORMAT_VERSION = 2
"""Of the fields and of the words about levels, which are part of a study and its id: other words, another version."""
SCHEMA_FILE = Path(__file__).with_name("study.schema.json")
WORDS, CATEGORIES = "words", "categories"

MAX_BYTES = 1 << 26
MAX_CELLS = 1 << 21
_MAX_TEXT, _MAX_LABEL, _MAX_LEVELS, _MAX_AXES, _MAX_WAVES = 4000, 200, 16, 8, 1000

_KINDS = {
    "format": str,
    "format_version": int,
    "id": str,
    "title": str,
    "purpose": str,
    "contact": str,
    "mechanism": dict,
    "levels": list,
    "reports": str,
    "schema": dict,
}
_OPTIONAL = {"address": str, "waves": list, "covariates": list}
_SCHEMA_KINDS = {"kind": str, "axes": list, "hash": str}
_WORD_KINDS = {**_SCHEMA_KINDS, "tokenisation": str, "rule": str}
_ADDRESS = re.compile(
    r"(https://[a-z0-9.-]{1,200}|http://(localhost|127\.0\.0\.1))(:[0-9]{1,5})?(/[A-Za-z0-9._~-]{1,60}){0,8}/?",
    re.ASCII,
)
_NUMBERS: dict[str, tuple[type[Mechanism], tuple[str, ...]]] = {
    TwoSidedGeometric.name: (TwoSidedGeometric, ("epsilon", "precision")),
    DiscreteGaussian.name: (DiscreteGaussian, ("rho",)),
}
"""The mechanisms that a study may have, and the numbers of their levels."""


@dataclass(frozen=True)
class Study:
    """What is asked, whom to contact, over which categories, at which levels.

    ``axes`` holds one (name, labels) for each axis of the counts of one record; with ``kind`` "words" there is
    one axis, and its labels are what text is counted over. ``truncated`` says whether reports are cut at zero
    (max(0, report), which loses nothing for a Poisson model) or keep their sign. ``address`` is where the
    participant's page may send a report, if anywhere. ``waves`` are the periods in which each person is asked again, in
    their order, if there are any; ``wave`` is the one that is meant here, if any, and no part of the study file.
    ``covariates`` are what each person states in the clear, beside the noisy counts. Studies come from ``new`` or
    ``load``, which check them; both raise RefusedError.
    """

    title: str
    purpose: str
    contact: str
    levels: tuple[Level, ...]
    kind: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    truncated: bool = True
    address: str | None = None
    waves: tuple[str, ...] = ()
    wave: str | None = None
    covariates: tuple[Covariate, ...] = ()

    def at(self, wave: str | None) -> "Study":
        """The study in one of its waves; as it is if it has none. Raises ValueError for another wave, or for none."""
        if wave not in (self.waves or (None,)):
            wanted = f"one of {', '.join(self.waves)}" if self.waves else "left out in a study without waves"
            raise ValueError(f"wave must be {wanted}, got {'none' if wave is None else shown(wave)}")
        return replace(self, wave=wave)

    @property
    def asked(self) -> str:
        """What a report answers: the study by its id, or one of its waves."""
        return self.id if self.wave is None else f"{self.id} {self.wave}"

    @property
    def named(self) -> str:
        """The title, and the wave that is meant."""
        return self.title if self.wave is None else f"{self.title}, {self.wave}"

    @property
    def unit(self) -> str:
        """What N counts: "word" or "count"."""
        return "word" if self.kind == WORDS else "count"

    @property
    def mechanism(self) -> dict[str, Any]:
        """Name and version of the noise at all levels."""
        stated = self.levels[0].mechanism
        return {"name": stated.name, "version": stated.version}

    @property
    def of_rho(self) -> bool:
        """Whether levels promise rho, by discrete Gaussian noise, and not epsilon at an N."""
        return isinstance(self.levels[0], ConcentratedLevel)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The labels of every axis."""
        return tuple(labels for _, labels in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes: the shape of one record's counts."""
        return tuple(len(labels) for labels in self.labels)

    @property
    def cells(self) -> int:
        """How many numbers one report holds."""
        return prod(self.shape)

    @cached_property
    def schema_hash(self) -> str:
        """The schema hash of every release that is made of this study's reports."""
        return _format.schema_hash((1, *self.shape), (None, *self.labels))

    @cached_property
    def id(self) -> str:
        """SHA-256 of the canonical JSON of all other fields."""
        return hashlib.sha256(_format.canonical(self._described())).hexdigest()

    def _described(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"kind": self.kind}
        if self.kind == WORDS:
            schema |= {"tokenisation": counting.TOKENISATION, "rule": counting.RULE}
        schema["axes"] = [{"name": name, "labels": list(labels)} for name, labels in self.axes]
        asked = [each.to_json() | {"meaning": each.meaning} for each in self.covariates]
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "title": self.title,
            "purpose": self.purpose,
            "contact": self.contact,
            **({} if self.address is None else {"address": self.address}),
            **({"waves": list(self.waves)} if self.waves else {}),
            **({"covariates": asked} if asked else {}),
            "mechanism": self.mechanism,
            "levels": [
                {name: str(number) for name, number in level.numbers().items()} | {"meaning": level.describe()}
                for level in self.levels
            ],
            "reports": "truncated" if self.truncated else "signed",
            "schema": {**schema, "hash": self.schema_hash},
        }

    def to_json(self) -> str:
        """The study file's text."""
        described = self._described()
        head = {"format": FORMAT, "format_version": FORMAT_VERSION, "id": self.id}
        return json.dumps(head | described, indent=1, ensure_ascii=True) + "\n"

    def meanings(self) -> list[str]:
        """One line for each level: what it protects in a sentence, its numbers, and what they come to."""
        return [
            f"{level.sentence(self.unit)[:-1]}; {level.noise_in_numbers()}; "
            f"{promise.unchanged(2 * level.false_positive_rate)} of counts stay as they are; "
            f"a true zero is reported as positive in {level.false_positive_rate:.0%} of cells)"
            for level in self.levels
        ]

    def describe(self) -> str:
        """What is asked and on offer, as a participant reads it: several lines."""
        sizes = ", ".join(f"{name}: {len(labels)}" for name, labels in self.axes)
        kind = "truncated at zero" if self.truncated else "with their sign"
        rule = [counting.RULE] if self.kind == WORDS else []
        levels = [
            f"  {place}. {meaning}\n     {level.describe()}"
            for place, (level, meaning) in enumerate(zip(self.levels, self.meanings(), strict=True), start=1)
        ]
        holds = (
            f"A report contains {self.cells} noisy counts ({sizes}), {kind}, and a random token that stands for "
            "you; no name and no time."
        )
        holds += "" if not self.covariates else " It also contains the covariates below, without noise."
        head = [self.title, "", self.purpose, "", f"Contact: {self.contact}"]
        head += [] if self.address is None else [f"The page of this study can send reports to {self.address}"]
        head += [f"Study {self.id}", ""]
        offered = [holds, *rule, "", "Levels:", *levels, "", *self._describe_covariates(), *self._describe_waves()]
        return "\n".join([*head, *offered, *wording.statements(self.unit, self.of_rho)])

    def _describe_covariates(self) -> list[str]:
        """What a person states in the clear, and what that means for them."""
        if not self.covariates:
            return []
        listed = [f"  {each.meaning}" for each in self.covariates]
        return [wording.BOTH["clear_heading"] + ":", *listed, wording.BOTH["clear_known"], ""]

    def _describe_waves(self) -> list[str]:
        """What a person must know who is asked in several waves: what all reports of theirs come to."""
        if not self.waves:
            return []
        number = len(self.waves)
        every = [level.repeated(number) for level in self.levels]
        summed = [
            f"  {place}. {each.in_numbers()}. {each.describe(together=True)}"
            for place, each in enumerate(every, start=1)
        ]
        listed = wording.WAVES["state_waves"].format(waves=", ".join(self.waves))
        return [listed, wording.WAVES["state_sum"].format(number=number), *summed, ""]


def new(
    title: str,
    purpose: str,
    contact: str,
    levels: Iterable[Level],
    axes: Sequence[tuple[str, Sequence[str]]],
    *,
    kind: str = WORDS,
    truncated: bool = True,
    address: str | None = None,
    waves: Sequence[str] = (),
    covariates: Sequence[Covariate] = (),
) -> Study:
    """A checked study; words that the tokenisation could never produce are refused. Raises RefusedError.

    ``levels`` are all of epsilon or all of rho; those of rho need ``truncated=False``. ``waves`` are two periods or
    more in which the same people are asked, in their order; none where they are asked once. ``covariates`` are what
    participants state besides, which nothing protects.
    """
    frozen = tuple((name, tuple(labels)) for name, labels in axes)
    kept = tuple(levels)
    _check_number(kept, "the study")
    if len({type(level) for level in kept}) > 1:
        raise RefusedError("the study", "levels", "must be of one kind, got levels of epsilon and levels of rho")
    every = tuple(waves), None, tuple(covariates)
    study = Study(title, purpose, contact, kept, kind, frozen, truncated, address, *every)
    if kind == WORDS and len(frozen) == 1:
        bad = [label for label in frozen[0][1] if list(counting.words(label)) != [label]]
        if bad:
            listed = ", ".join(shown(label) for label in bad[:5])
            raise RefusedError(
                "the study",
                "schema.axes[0].labels",
                f"must be words as the tokenisation makes them, got {len(bad)} that it never makes, such as "
                f"{listed}. {counting.RULE}",
            )
    return read(study.to_json().encode("ascii"), "the study")


def load(path: str | os.PathLike[str]) -> Study:
    """The study of a file; raises RefusedError, which names file, field and rule, or FileNotFoundError."""
    return read(_fields.read_bytes(path, MAX_BYTES), os.fspath(path))


def read(content: bytes, name: str) -> Study:
    """The study that the bytes of a file hold; ``name`` is what refusals call the file."""
    value = _fields.parse(content, name)
    _fields.check(value, _KINDS | {key: kind for key, kind in _OPTIONAL.items() if key in value}, name)
    _fields.fixed(value, {"format": FORMAT}, name)
    if value["format_version"] == 1:
        rule = f"must be {FORMAT_VERSION}, got 1, whose words about levels are no longer used: make the study again "
        raise RefusedError(name, "format_version", rule + "with countveil study new")
    _fields.fixed(value, {"format_version": FORMAT_VERSION}, name)
    _fields.check(value["mechanism"], {"name": str, "version": int}, name, "mechanism")
    mechanism, numbers = _mechanism(value["mechanism"], name)
    if value["reports"] not in ("truncated", "signed"):
        got = shown(value["reports"])
        raise RefusedError(name, "reports", f"must be 'truncated' or 'signed', got {got}")
    if mechanism.signed_only and value["reports"] != "signed":
        raise RefusedError(name, "reports", f"must be 'signed' with {mechanism.title}, got 'truncated'")
    kind, axes = _schema(value["schema"], name)
    study = Study(
        _fields.text(value["title"], name, "title", _MAX_LABEL),
        _fields.text(value["purpose"], name, "purpose", _MAX_TEXT, lines=True),
        _fields.text(value["contact"], name, "contact", _MAX_LABEL),
        _levels(value["levels"], numbers, name),
        kind,
        axes,
        value["reports"] == "truncated",
        _address(value.get("address"), name),
        _waves(value["waves"], name) if "waves" in value else (),
        covariates=_covariates.declared(value["covariates"], name) if "covariates" in value else (),
    )
    if value["schema"]["hash"] != study.schema_hash:
        got = shown(value["schema"]["hash"])
        raise RefusedError(name, "schema.hash", f"must be the hash of the axes, {study.schema_hash}, got {got}")
    _check_id(value, name)
    return study


def _address(value: str | None, name: str) -> str | None:
    """An address that a content-security policy can name as it is; only one on this machine may do without TLS."""
    if value is not None and not _ADDRESS.fullmatch(value):
        rule = "must be an https address of host, port and path alone, or http on localhost"
        raise RefusedError(name, "address", f"{rule}, got {shown(value)}")
    return value


def _check_id(value: dict[str, Any], name: str) -> None:
    """Refuses an id that is not the hash of what the file says, its words about levels included."""
    described = {key: part for key, part in value.items() if key != "id"}
    if value["id"] != hashlib.sha256(_format.canonical(described)).hexdigest():
        rule = f"must be the SHA-256 of all other fields, got {shown(value['id'])}: the file was changed"
        raise RefusedError(name, "id", rule)


def _mechanism(value: dict[str, Any], name: str) -> tuple[type[Mechanism], tuple[str, ...]]:
    """The mechanism that a study names, and the numbers of its levels."""
    if value["name"] not in _NUMBERS:
        known = " or ".join(map(repr, _NUMBERS))
        raise RefusedError(name, "mechanism.name", f"must be {known}, got {shown(value['name'])}")
    mechanism, numbers = _NUMBERS[value["name"]]
    _fields.fixed(value, {"version": mechanism.version}, name, "mechanism")
    return mechanism, numbers


def _check_number(levels: Sequence[Any], name: str) -> None:
    if not 1 <= len(levels) <= _MAX_LEVELS:
        raise RefusedError(name, "levels", f"must number 1 to {_MAX_LEVELS}, got {len(levels)}")


def _levels(entries: list[Any], numbers: tuple[str, ...], name: str) -> tuple[Level, ...]:
    _check_number(entries, name)
    levels: list[Level] = []
    for place, entry in enumerate(entries):
        field = f"levels[{place}]"
        _fields.check(entry, dict.fromkeys((*numbers, "meaning"), str), name, field)
        level = _fields.level(entry, name, field)
        if entry["meaning"] != level.describe():
            rule = f"must be what its numbers mean, {level.describe()!r}, got {shown(entry['meaning'])}"
            raise RefusedError(name, f"{field}.meaning", rule)
        levels.append(level)
    if len(set(levels)) != len(levels):
        raise RefusedError(name, "levels", "must differ from each other, got a duplicate")
    return tuple(levels)


def _schema(value: dict[str, Any], name: str) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    if value.get("kind") not in (WORDS, CATEGORIES):
        got = shown(value.get("kind"))
        raise RefusedError(name, "schema.kind", f"must be '{WORDS}' or '{CATEGORIES}', got {got}")
    of_words = value["kind"] == WORDS
    _fields.check(value, _WORD_KINDS if of_words else _SCHEMA_KINDS, name, "schema")
    if of_words:
        wanted = {"tokenisation": counting.TOKENISATION, "rule": counting.RULE}
        _fields.fixed(value, wanted, name, "schema")
    most = 1 if of_words else _MAX_AXES
    if not 1 <= len(value["axes"]) <= most:
        raise RefusedError(name, "schema.axes", f"must number 1 to {most}, got {len(value['axes'])}")
    axes = tuple(_axis(axis, name, f"schema.axes[{i}]") for i, axis in enumerate(value["axes"]))
    cells = prod(len(labels) for _, labels in axes)
    if cells > MAX_CELLS:
        raise RefusedError(name, "schema.axes", f"must span at most {MAX_CELLS} cells, got {cells}")
    return value["kind"], axes


def _axis(value: Any, name: str, field: str) -> tuple[str, tuple[str, ...]]:
    _fields.check(value, {"name": str, "labels": list}, name, field)
    labels = value["labels"]
    if not labels:
        raise RefusedError(name, f"{field}.labels", "must hold one label or more, got none")
    _fields.different(labels, name, f"{field}.labels", _MAX_LABEL)
    return _fields.text(value["name"], name, f"{field}.name", _MAX_LABEL), tuple(labels)


def _waves(labels: list[Any], name: str) -> tuple[str, ...]:
    if not 2 <= len(labels) <= _MAX_WAVES:
        raise RefusedError(name, "waves", f"must number 2 to {_MAX_WAVES}, got {len(labels)}")
    _fields.different(labels, name, "waves", _MAX_LABEL)
    return tuple(labels)
