"""What a person calls a record, brought to one form: what looks the same to a person names the same record."""

import re
import unicodedata
from collections.abc import Iterable

from countveil.privacy.errors import RefusedError
from countveil.privacy.wording import BOTH

_INVISIBLE = re.compile(  # Default_Ignorable_Code_Point of Unicode, and the marks around interlinear annotations
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANK = re.compile("[\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000]+")


def normalised(name: str) -> str:
    """A record's name in Unicode form NFC, without invisible characters, case, and all but single spaces.

    Case goes character by character, by way of capitals ("ß" is "ss"), so that a browser does the same: its twin is
    in study/page/ledger.js. Raises RefusedError if nothing is left, or the name is not text.
    """
    seen = _BLANK.sub(" ", _INVISIBLE.sub("", name)).strip(" ")
    if not seen or any(unicodedata.category(character) == "Cs" for character in seen):
        raise RefusedError("the ledger", "name", f"must name a record, got {ascii(name)[:40]}. {BOTH['no_name']}")
    folded = "".join(c.lower().upper().lower() for c in unicodedata.normalize("NFC", seen))
    return unicodedata.normalize("NFC", folded)


def identity(label: str) -> str:
    """What labels of one record have in common: its name as ``normalised``, or the label where it is no name."""
    if label.isascii() and label.isalnum():
        return label.lower()
    try:
        return normalised(label)
    except RefusedError:
        return label


def spelt_alike(labels: Iterable[str]) -> tuple[str, ...]:
    """Each label as the first of those spells it that name the same record."""
    first: dict[str, str] = {}
    return tuple(first.setdefault(identity(label), label) for label in labels)


def clash(labels: Iterable[str]) -> tuple[str, str] | None:
    """The first two labels that name the same record, which may be spelt alike; None if there are none."""
    first: dict[str, str] = {}
    for label in labels:
        key = identity(label)
        if key in first:
            return first[key], label
        first[key] = label
    return None
