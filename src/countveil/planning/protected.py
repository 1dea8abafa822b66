"""What a plan may put between true counts and whoever fits them: a promise, or any mechanism."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from countveil.bridges.protected_counts import simulate_reports
from countveil.data.reports import Reports
from countveil.data.simulation import simulate_release
from countveil.privacy import PrivacyLevel
from countveil.privacy.any_level import Level
from countveil.privacy.level import short
from countveil.privacy.mechanisms import Mechanism

Protection: TypeAlias = Level | Mechanism
"""A level, whose noise keeps a promise, or what was done to the counts, which need not keep any."""
LONGEST = 60


class Plain(NamedTuple):
    """Reports as those take them who do not know the mechanism: an absent one is a zero."""

    reports: np.ndarray  # (D, V)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the reports."""
        return tuple(self.reports.shape)


class Protected(NamedTuple):
    """Simulated reports: for fits that know the mechanism, as if they were true counts, and for sums of them."""

    known: Any  # a Release or Reports
    naive: Any  # a Release or whole numbers
    plain: Any  # a Release or Plain


def protected(counts: np.ndarray, protection: Protection, rng: np.random.Generator) -> Protected:
    """Seeded reports of true counts, which protect nobody.

    Raises:
        ValueError: counts that the mechanism has no report for.
    """
    if isinstance(protection, Level):
        release = simulate_release(counts, protection, rng, truncate=False)
        return Protected(release, release, release)
    values = np.asarray(simulate_reports(counts, protection, rng), dtype=np.float64)
    plain = np.nan_to_num(values)
    naive = np.rint(np.maximum(plain, 0.0)).astype(np.int64)
    return Protected(Reports(values, protection, simulated=True), naive, Plain(plain))


def said(protection: Protection) -> str:
    """A level as the command line takes it, N:EPSILON or rho:RHO; a mechanism as it is written."""
    if isinstance(protection, PrivacyLevel):
        return f"{short(protection.precision)}:{short(protection.epsilon)}"
    return protection.spelt() if isinstance(protection, Level) else repr(protection)[:LONGEST]


def numbers(protection: Protection | None) -> dict[str, object]:
    """N and epsilon, for the table; empty where there are none."""
    if isinstance(protection, PrivacyLevel):
        return {"precision": str(protection.precision), "epsilon": str(protection.epsilon)}
    return {"precision": "", "epsilon": ""}


def heading(level: str) -> str:
    """What a level is called in a figure."""
    return level if level.startswith("rho:") or "(" in level else f"N:epsilon = {level}"
