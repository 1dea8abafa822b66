"""A study's page from its parts: text put in its places, scripts and styles named by their hashes."""

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from countveil.privacy import _fields, counting, report, wording
from countveil.privacy._text import shown
from countveil.privacy.errors import RefusedError
from countveil.privacy.study import WORDS, Study
from countveil.study.page import tables

SCRIPTS = (
    "fractions.js",
    "survival.js",
    "noise.js",
    "gaussian.js",
    "counting.js",
    "covariates.js",
    "report.js",
    "ledger.js",
    "view.js",
    "handing.js",
    "app.js",
)
_HERE = Path(__file__).parent
_MAX_STRINGS_BYTES = 1 << 20
_PLACE = re.compile(r"\{([a-z]+)\}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")


def page(study: Study, said: dict[str, str] | None = None) -> str:
    """The page of a study as one HTML file; ``said`` is a translation, as ``strings`` returns it.

    Raises RefusedError for a study in waves.
    """
    if study.waves:
        rule = (
            f"must be left out to have a page, got {len(study.waves)}: participants make their reports with "
            "python -m countveil.privacy"
        )
        raise RefusedError("the study", "waves", rule)
    said = strings() if said is None else said
    return assembled(_HERE / "page.html", SCRIPTS, _data(study, said), said | _of_study(study), study.address)


def assembled(
    template: Path, scripts: Sequence[str], data: Any, texts: Mapping[str, str], address: str | None = None
) -> str:
    """One file of a template, the .css of its name and the scripts beside it, which alone its own policy lets run.

    ``texts`` are escaped. ``address`` is where the page may send what it makes, if anywhere.
    """
    parts = [(template.parent / name).read_text(encoding="utf-8") for name in scripts]
    script = '"use strict";\n(() => {\n' + "".join(parts) + "})();\n"
    style = template.with_suffix(".css").read_text(encoding="utf-8")
    slots = {
        "policy": policy(script, style, address),
        "style": style,
        "script": script,
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        **{key: html.escape(text) for key, text in texts.items()},
    }
    return _SLOT.sub(lambda found: slots[found[1]], template.read_text(encoding="utf-8"))


def policy(script: str, style: str, address: str | None = None) -> str:
    """The content-security policy of a page: this script, this style, and an address to send to if there is one."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'sha256-{_hash(script)}'",
        "style-src": f"'sha256-{_hash(style)}'",
        "connect-src": address or "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def strings(path: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Everything that the page says, by key; those of ``path``, a translation of strings.json, if given.

    Raises RefusedError if keys are missing or unknown, or a text names other {places} than the original.
    """
    own = json.loads((_HERE / "strings.json").read_text(encoding="utf-8")) | wording.BOTH
    if path is None:
        return own
    name = os.fspath(path)
    other = _fields.parse(_fields.read_bytes(path, _MAX_STRINGS_BYTES), name)
    _fields.check(other, dict.fromkeys(own, str), name)
    for key, text in other.items():
        wanted = set(_PLACE.findall(own[key]))
        if set(_PLACE.findall(text)) != wanted or not text.strip():
            places = ", ".join(f"{{{place}}}" for place in sorted(wanted)) or "no {places}"
            raise RefusedError(name, key, f"must be text with {places}, got {shown(text)}")
    if not _LANGUAGE.fullmatch(other["language"]):
        got = shown(other["language"])
        raise RefusedError(name, "language", f"must be a language tag, such as de or pt-BR, got {got}")
    return other


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _of_study(study: Study) -> dict[str, str]:
    return {
        "study_title": study.title,
        "study_purpose": study.purpose,
        "study_contact": study.contact,
        "study_id": study.id,
    }


def _data(study: Study, said: dict[str, str]) -> dict[str, Any]:
    words = study.kind == WORDS
    return {
        "id": study.id,
        "title": study.title,
        "contact": study.contact,
        "address": study.address,
        "words": words,
        "axes": [{"name": name, "labels": list(labels)} for name, labels in study.axes],
        "truncated": study.truncated,
        "fixed": report.fixed(study),
        "levels": tables.levels(study),
        "before": list(wording.before(study.of_rho)),
        "covariates": [each.to_json() for each in study.covariates],
        "signatures": [[start.decode("latin-1"), key] for start, key in counting.SIGNATURES],
        "unicode": tables.unicode() if words else None,
        "rule": counting.RULE if words else None,
        "strings": said,
    }
