"""Covariates of participants: what a study file declares, a report carries in the clear, and a release holds by row.

Values are text everywhere: one of the study's categories, or a decimal in its shortest spelling, which files hold
exactly and every program writes alike. Nothing protects them.
"""

import keyword
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

from countveil.privacy import _fields
from countveil.privacy._text import first_wrong, shown
from countveil.privacy.errors import RefusedError, ReleaseError
from countveil.privacy.wording import BOTH

CATEGORY, NUMBER = "category", "number"
_MOST, _MOST_VALUES, _MAX_NAME, _MAX_VALUE = 32, 1000, 40, 200
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_CONSTANT = "Intercept"  # what formulas call their own
_MOST_LISTED, _LONGEST_LIST = 12, 200  # values, and characters of them, that a refusal lists
_WRITTEN = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]*))?", re.ASCII)
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{0,5}[1-9])?", re.ASCII)
_KINDS = {"name": str, "kind": str, "meaning": str}


class Covariate(NamedTuple):
    """What a study asks of a person and no noise protects: one of some values, or a number where there are none."""

    name: str
    values: tuple[str, ...] = ()
    lowest: str | None = None  # of a number, if it has a bound
    highest: str | None = None

    @property
    def allowed(self) -> str:
        """What it may be, in words."""
        if self.values:
            return BOTH["one_of"].format(values=", ".join(self.values))
        ends = (self.lowest is not None, self.highest is not None)
        key = {(True, True): "number_between", (True, False): "number_from", (False, True): "number_to"}
        return BOTH[key.get(ends, "number")].format(lowest=self.lowest, highest=self.highest)

    @property
    def briefly(self) -> str:
        """The same for a refusal, where what is long is not listed to its end."""
        if len(self.values) <= _MOST_LISTED and len(", ".join(self.values)) <= _LONGEST_LIST:
            return self.allowed
        lengths = accumulate(len(value) for value in self.values[:_MOST_LISTED])
        some = [value for value, length in zip(self.values, lengths, strict=False) if length <= _LONGEST_LIST]
        return BOTH["one_of_many"].format(number=len(self.values), values=", ".join(some))

    @property
    def meaning(self) -> str:
        """What it may be and that it is handed over in the clear."""
        return BOTH["clear_each"].format(name=self.name, allowed=self.allowed)

    def broken(self, value: Any) -> str | None:
        """The rule that a value breaks, if it does."""
        if self.values:
            fits = value in self.values
        else:
            fits = type(value) is str and bool(_DECIMAL.fullmatch(value)) and value != "-0" and self._within(value)
        if fits:
            return None
        rule = BOTH["must_be" if self.values else "must_be_decimal"].format(allowed=self.briefly)
        return f"{rule}, got {shown(value)}"

    def _within(self, value: str) -> bool:
        low, high = self.lowest, self.highest
        number = Fraction(value)
        return (low is None or number >= Fraction(low)) and (high is None or number <= Fraction(high))

    def to_json(self) -> dict[str, Any]:
        """As files hold it, without its meaning."""
        values = {"values": list(self.values)} if self.values else {}
        ends = {"lowest": self.lowest, "highest": self.highest}
        stated = {name: end for name, end in ends.items() if end is not None}
        return {"name": self.name, "kind": CATEGORY if self.values else NUMBER, **values, **stated}


class RowCovariates(NamedTuple):
    """Covariates that stand beside the rows of a release, and the values of every row, in the order of both."""

    covariates: tuple[Covariate, ...]
    of_row: tuple[tuple[str, ...], ...]


def spelt(text: str) -> str:
    """A decimal in its shortest spelling, such as 42 for +042.0; other text as it is."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        return text
    sign, whole, part = found[1], found[2].lstrip("0") or "0", (found[3] or "").rstrip("0")
    number = f"{whole}.{part}" if part else whole
    return f"-{number}" if sign == "-" and number != "0" else number


def given(covariates: Sequence[Covariate], asked: Sequence[str]) -> tuple[str, ...]:
    """Values in the order of a study's covariates, from name=value as a person writes them; raises ValueError."""
    found: dict[str, str] = {}
    for each in asked:
        name, sign, value = each.partition("=")
        if not sign or name.strip() in found:
            raise ValueError(f"covariate must be NAME=VALUE, each name once, got {shown(each)}")
        found[name.strip()] = value.strip()
    known = [each.name for each in covariates]
    unknown = next((name for name in found if name not in known), None)
    if unknown is not None:
        wanted = f"one of {', '.join(known)}" if known else "left out in a study without covariates"
        raise ValueError(f"covariate must be {wanted}, got {shown(unknown)}")
    for one in covariates:
        if one.name not in found:
            remedy = f"--covariate {one.name}=.."
            raise ValueError(f"covariate {one.name} must be given, {one.briefly}, got none: {remedy}")
        if not one.values:
            found[one.name] = spelt(found[one.name])
        rule = one.broken(found[one.name])
        if rule is not None:
            raise ValueError(f"covariate {one.name} {rule}")
    return tuple(found[name] for name in known)


def of_report(covariates: Sequence[Covariate], value: Any, name: str) -> tuple[str, ...]:
    """The values that a report states, in the study's order; raises RefusedError."""
    _fields.check(value, {each.name: str for each in covariates}, name, "covariates")
    for each in covariates:
        rule = each.broken(value[each.name])
        if rule is not None:
            raise RefusedError(name, f"covariates.{each.name}", rule)
    return tuple(value[each.name] for each in covariates)


def declared(entries: Sequence[Any], name: str) -> tuple[Covariate, ...]:
    """The covariates of a study file; raises RefusedError."""
    _check_number(entries, name)
    found = []
    for place, entry in enumerate(entries):
        field = f"covariates[{place}]"
        one = _one(entry, name, field, _KINDS)
        if entry["meaning"] != one.meaning:
            rule = f"must be what it means, {one.meaning!r}, got {shown(entry['meaning'])}"
            raise RefusedError(name, f"{field}.meaning", rule)
        found.append(one)
    _check_names(found, name)
    return tuple(found)


def _check_number(entries: Sequence[Any], name: str) -> None:
    if not 1 <= len(entries) <= _MOST:
        raise RefusedError(name, "covariates", f"must number 1 to {_MOST}, got {len(entries)}")


def _one(entry: Any, name: str, field: str, kinds: Mapping[str, type]) -> Covariate:
    kind = entry.get("kind") if type(entry) is dict else None
    own: dict[str, type] = {"values": list} if kind == CATEGORY else {}
    if kind == NUMBER:
        own = {end: str for end in ("lowest", "highest") if end in entry}
    _fields.check(entry, {**kinds, **own}, name, field)
    if kind not in (CATEGORY, NUMBER):
        raise RefusedError(name, f"{field}.kind", f"must be {CATEGORY!r} or {NUMBER!r}, got {shown(kind)}")
    title = entry["name"]
    if not _NAME.fullmatch(title) or len(title) > _MAX_NAME or keyword.iskeyword(title) or title == _CONSTANT:
        rule = f"must be at most {_MAX_NAME} letters and digits of ASCII and _, a letter first, that formulas can name"
        raise RefusedError(name, f"{field}.name", f"{rule}, got {shown(title)}")
    if kind == CATEGORY:
        if not 2 <= len(entry["values"]) <= _MOST_VALUES:
            rule = f"must number 2 to {_MOST_VALUES}, got {len(entry['values'])}"
            raise RefusedError(name, f"{field}.values", rule)
        _fields.different(entry["values"], name, f"{field}.values", _MAX_VALUE)
        return Covariate(title, tuple(entry["values"]))
    for end in own:
        broken = Covariate(title).broken(entry[end])
        if broken is not None:
            raise RefusedError(name, f"{field}.{end}", broken)
    low, high = entry.get("lowest"), entry.get("highest")
    if low is not None and high is not None and not Fraction(low) < Fraction(high):
        raise RefusedError(name, f"{field}.highest", f"must be above the lowest, {low}, got {high}")
    return Covariate(title, (), low, high)


def _check_names(found: Sequence[Covariate], name: str) -> None:
    twice = _fields.repeated([each.name for each in found])
    if twice is not None:
        rule = f"must differ from those before, got {found[twice].name!r} again"
        raise RefusedError(name, f"covariates[{twice}].name", rule)


def checked(stated: RowCovariates | None, rows: int) -> RowCovariates | None:
    """The covariates of a release's rows as tuples; raises ReleaseError where they are none, or do not fit the rows."""
    if stated is None:
        return None
    if wrong := first_wrong(stated[0], lambda each: isinstance(each, Covariate)):
        raise ReleaseError(f"covariates must each be a Covariate, got {wrong}")
    try:
        _check_number(stated[0], "covariates")
        kinds = {key: kind for key, kind in _KINDS.items() if key != "meaning"}
        known = tuple(_one(each.to_json(), "covariates", f"[{place}]", kinds) for place, each in enumerate(stated[0]))
        _check_names(known, "covariates")
    except RefusedError as error:
        raise ReleaseError(f"covariates must be those that a study can have: {error.field} {error.rule}") from None
    of_row = tuple(map(tuple, stated[1]))
    if len(of_row) != rows:
        raise ReleaseError(f"covariates must have values in {rows} rows, got {len(of_row)} rows")
    for number, row in enumerate(of_row):
        if len(row) != len(known):
            raise ReleaseError(
                f"covariates must have a value of each of {len(known)} in every row, got {len(row)} in row {number}"
            )
        if wrong := first_wrong(row, lambda value: type(value) is str):
            raise ReleaseError(f"covariates must have values that are text, such as '42', got {wrong} of row {number}")
    for place, each in enumerate(known):
        for value in dict.fromkeys(row[place] for row in of_row):
            rule = each.broken(value)
            if rule is not None:
                raise ReleaseError(f"covariate {each.name} {rule}")
    return RowCovariates(known, of_row)


def encoded(stated: RowCovariates) -> list[dict[str, Any]]:
    """What a release's description says of them."""
    columns = zip(*stated.of_row, strict=True)
    pairs = zip(stated.covariates, columns, strict=True)
    return [{**each.to_json(), "of_row": list(column)} for each, column in pairs]


def decoded(entries: list[Any]) -> RowCovariates:
    """The covariates of a release's description; raises ReleaseError for what is none."""
    kinds = {"name": str, "kind": str, "of_row": list}
    try:
        _check_number(entries, "covariates")
        known = tuple(_one(each, "covariates", f"[{place}]", kinds) for place, each in enumerate(entries))
    except RefusedError as error:
        raise ReleaseError(f"must hold covariates that a study can have: {error.field} {error.rule}") from None
    rule, n_rows = "must hold a value as text of each covariate in each row", len(entries[0]["of_row"])
    for each, entry in zip(known, entries, strict=True):
        if len(entry["of_row"]) != n_rows:
            got = f"{n_rows} of {known[0].name} and {len(entry['of_row'])} of {each.name}"
            raise ReleaseError(f"{rule}, got {got}")
        if wrong := first_wrong(entry["of_row"], lambda value: type(value) is str):
            raise ReleaseError(f"{rule}, got {wrong} of {each.name}")
    return RowCovariates(known, tuple(zip(*(entry["of_row"] for entry in entries), strict=True)))


def in_words(stated: RowCovariates | None) -> str:
    """What a release says of them; empty where there are none."""
    if stated is None:
        return ""
    names = ", ".join(each.name for each in stated.covariates)
    return (
        f" Beside each row stands in the clear, without noise: {names}. Together with what else is known, that may "
        "tell whose row it is."
    )
