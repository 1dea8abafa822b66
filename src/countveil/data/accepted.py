"""What fits accept as data."""

from typing import Any

from countveil.data.observations import Observations, PrivatizedCounts
from countveil.data.reports import Reports
from countveil.data.waves import promised
from countveil.laws.noise import NOISES
from countveil.privacy import Release
from countveil.privacy._cells import ByCell


def observations_of(data: Any) -> Observations:
    """What inference sees of a ``Release`` or of observations; anything else has no noise level and is refused."""
    if isinstance(data, Observations):
        return data
    if isinstance(data, Release):
        by_row = data.totals is None and not isinstance(data.mechanism, ByCell)
        read_by_level = by_row and all(each.name in NOISES for each in data.known_mechanisms)
        found = PrivatizedCounts.from_release(data) if read_by_level else Reports.from_release(data)
        if data.waves is not None:
            found.promise = promised(data, tuple(dict.fromkeys(data.row_labels or ())))[1]
        return found
    raise TypeError(
        "data must carry its noise level: a Release, or PrivatizedCounts(reports, alpha) for noisy reports, "
        "Reports(values, mechanism) for counts protected in another way, or ExactCounts(counts) for true counts; "
        f"got {type(data).__name__} without an alpha"
    )
