"""Numbers about a fit that its tree keeps as attributes, so that a verdict needs no data."""

import hashlib
import json
import re
from typing import Any

import numpy as np
import xarray as xr

from countveil.data.mechanism_checks import MechanismCheck
from countveil.data.observations import ExactCounts, Observations
from countveil.inference.diagnostics import Share, Totals
from countveil.kernels.report_kernels import LEAST, MOST
from countveil.laws.noise import AnyMechanismNoise

SHARE = "signal_share", "signal_error"
TOTALS = "total_reported", "total_error", "total_fitted", "total_lower", "total_upper", "total_by_totals"
MASKED = ("masked_cells",)
MECHANISM = "mechanism_check"
REPORTS = "reports"
ENTRIES_AT_ONCE = 65_536  # in memory, for a digest
LONGEST = 20_000  # characters of what is said of a mechanism


def kept_share(share: Share) -> dict[str, Any]:
    """A fit's share of the positive reports, by name."""
    return dict(zip(SHARE, share, strict=True))


def share_kept(tree: xr.DataTree) -> Share | None:
    """The share of a fit that has one."""
    return Share(*(tree.attrs[name] for name in SHARE)) if SHARE[0] in tree.attrs else None


def kept_totals(totals: Totals) -> dict[str, Any]:
    """Totals by name, without an interval that is none."""
    return {name: value for name, value in zip(TOTALS, totals, strict=True) if value is not None}


def totals_kept(tree: xr.DataTree) -> Totals | None:
    """The totals of a fit; None where the data were not in memory."""
    if TOTALS[0] not in tree.attrs:
        return None
    values: list[Any] = [tree.attrs.get(name) for name in TOTALS]
    return Totals(*values)._replace(by_totals=values[-1] or 0)


def kept_mechanism(found: MechanismCheck | None) -> dict[str, Any]:
    """What the reports say of their mechanism, by name; nothing where that was not asked."""
    return {} if found is None else {MECHANISM: json.dumps(found._asdict())}


def mechanism_kept(tree: xr.DataTree) -> MechanismCheck | None:
    """What the reports of a fit say of their mechanism; None where that was not asked."""
    found = tree.attrs.get(MECHANISM)
    return None if found is None else MechanismCheck(*map(tuple, json.loads(found).values()))


def kept_data(data: Observations) -> dict[str, Any]:
    """How many cells of the data were masked, by name, and a digest of reports; true counts leave none."""
    found: dict[str, Any] = {MASKED[0]: data.n_masked}
    return found if isinstance(data, ExactCounts) else found | {REPORTS: digest_of(data)}


def digest_of(data: Observations) -> str:
    """A SHA-256 of which reports are where, in the matrix form of a model; those below zero count as zero."""
    digest = hashlib.sha256()
    if isinstance(data.noise, AnyMechanismNoise):  # reports are codes, of these values and bounds of counts
        digest.update(np.where(np.isnan(data.noise.value_c), np.nan, data.noise.value_c + 0.0).tobytes())
        digest.update(data.noise.kernel.whole_cj[:, [LEAST, MOST]].astype(np.int64).tobytes())
    for values in (data.indptr, data.columns, data.reports):
        for begin in range(0, values.size, ENTRIES_AT_ONCE):  # they may be views of a file
            digest.update(values[begin : begin + ENTRIES_AT_ONCE].astype(np.int64).tobytes())
    return digest.hexdigest()


def reports_kept(tree: xr.DataTree) -> str | None:
    """The digest of the reports; None of true counts, and where the data were not in memory."""
    found: str | None = tree.attrs.get(REPORTS)
    return found


def masked_kept(tree: xr.DataTree) -> int | None:
    """How many cells were masked; None where the data were not in memory."""
    found = tree.attrs.get(MASKED[0])
    return None if found is None else int(found)


def check_kept(tree: xr.DataTree) -> None:
    """Refuse what is no number, or no digest, or is kept only in part; raises ValueError."""
    digest = tree.attrs.get(REPORTS, "0" * 64)
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"must state {REPORTS} by a SHA-256 in hexadecimal digits, got {digest!r:.80}")
    check_mechanism_kept(tree.attrs.get(MECHANISM))
    for names, least in ((SHARE, 2), (TOTALS, 3), (MASKED, 1)):
        values = [tree.attrs[name] for name in names if name in tree.attrs]
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
                raise ValueError(f"must state {names[0]} in numbers, got {type(value).__name__}")
        missing = [name for name in names[:least] if name not in tree.attrs]
        if values and missing:
            raise ValueError(f"must state all of {', '.join(names[:least])} or none, got no {missing[0]}")


def check_mechanism_kept(text: Any) -> None:
    """Refuse anything but the sentences of a ``MechanismCheck``, in JSON; raises ValueError."""
    if text is None:
        return
    try:
        found = json.loads(text) if isinstance(text, str) and len(text) <= LONGEST else None
    except json.JSONDecodeError:
        found = None
    lists = list(found.values()) if isinstance(found, dict) and list(found) == list(MechanismCheck._fields) else [0]
    if not all(isinstance(each, list) and all(isinstance(said, str) for said in each) for each in lists):
        raise ValueError(f"must state {MECHANISM} by lists of sentences, in JSON, got {text!r:.80}")
