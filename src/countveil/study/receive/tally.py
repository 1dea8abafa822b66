"""How many reports a receiver has accepted, and how many requests it has refused for which reason."""

from countveil.privacy.errors import RefusedError

INVALID = "not a valid report"
OTHER_STUDY = "report of another study"
AGAIN = "participant has another report"
LARGE = "too large"
SLOW = "too slow or cut off"
MANY = "too many from one address"
BUSY = "no room"
ELSEWHERE = "not a POST to the study's address"
NO_HTTP = "not HTTP"
FAILED = "an error of the receiver"
REASONS = (INVALID, OTHER_STUDY, AGAIN, LARGE, SLOW, MANY, BUSY, ELSEWHERE, NO_HTTP, FAILED)
"""What a sender writes is in none of them, so their number does not grow."""


class Tally:
    """Counts since the receiver began; ``stored`` reports were there before, ``target`` are wanted.

    One thread counts; others may read.
    """

    def __init__(self, stored: int = 0, target: int | None = None) -> None:
        self.reports, self.target = stored, target
        self.refused = dict.fromkeys(REASONS, 0)

    def accept(self) -> None:
        """Counts a report that was stored and was not there before."""
        self.reports += 1

    def refuse(self, reason: str) -> None:
        """Counts a refused request; ``reason`` is one of REASONS."""
        self.refused[reason] += 1

    def line(self) -> str:
        """All counts in one line, the most frequent reason first."""
        counts = sorted(((times, reason) for reason, times in self.refused.items() if times), reverse=True)
        listed = ", ".join(f"{times:,} {reason}" for times, reason in counts)
        refused = sum(times for times, _ in counts)
        return f"{progress(self.reports, self.target)}; {refused:,} refused" + (
            f": {listed}" if listed else ""
        )


def progress(reports: int, target: int | None) -> str:
    """How many reports there are, and of how many that are wanted."""
    if target is None:
        return f"{reports:,} reports"
    return f"{reports:,} of {target:,} reports ({reports / target:.0%})"


def reason_of(error: RefusedError) -> str:
    """The reason to count for a report that a check refused."""
    return OTHER_STUDY if error.field in ("study", "schema_hash") else INVALID
