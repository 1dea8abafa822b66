"""Reports by a table of probabilities."""

from collections.abc import Iterator

import numpy as np

from countveil.kernels.report_kernels import TABLE
from countveil.laws.noise.report_law import Counts, Flags, Floats, Pieces, ReportLaw, log, pieces, whole_numbers

MANY = 63
"""A count that no rate of a yes or no exceeds in practice: kernels that are not log-concave need an end."""


class TableLaw(ReportLaw):
    """P(report = r | count = y) = probabilities[y, r]; counts beyond the last row do not occur."""

    log_concave = False

    def __init__(self, probabilities: Floats) -> None:
        self.probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
        possible = self.probabilities > 0
        self.possible = possible.any(axis=0)
        self.last = len(possible) - 1
        self.least = possible.argmax(axis=0)
        self.most = len(possible) - 1 - possible[::-1].argmax(axis=0)

    def broken(self, reports: Floats) -> Iterator[tuple[str, Flags]]:
        """Reports are columns of the table that some count has."""
        last = self.probabilities.shape[1] - 1
        outside = (reports < 0) | (reports > last)
        yield f"reports must be columns of the table, 0 to {last}", outside
        columns = whole_numbers(np.minimum(reports, last))
        yield "reports must be possible for some count", ~outside & ~self.possible[columns]

    def log_kernel(self, reports: Floats, counts: Counts) -> Floats:
        """log probabilities[count, report]."""
        last = len(self.probabilities) - 1
        found = self.probabilities[np.minimum(counts, last), whole_numbers(reports)]
        return log(np.where(counts > last, 0.0, found))

    def less(self, reports: Floats, counts: Counts) -> Floats:
        """Sums of the probabilities of the columns before."""
        sums = np.cumsum(self.probabilities, axis=1) - self.probabilities
        found = sums[np.minimum(counts, self.last), whole_numbers(reports)]
        return np.where(counts > self.last, 0.0, found)

    def pieces(self, reports: Floats) -> Pieces:
        """By columns of the table."""
        table, n_counts = log(self.probabilities.T), len(self.probabilities)
        begin = whole_numbers(reports) * n_counts
        return pieces(TABLE, reports.size, table=table.ravel(), begin=begin, length=n_counts)

    def support(self, reports: Floats) -> tuple[Counts, Counts]:
        """From the first to the last count that has this report."""
        columns = whole_numbers(reports)
        return self.least[columns], self.most[columns]

    def peak(self, reports: Floats) -> Counts:
        """The count that has this report most often."""
        return np.asarray(self.probabilities.argmax(axis=0)[whole_numbers(reports)])

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """By inversion of the rows' sums.

        Raises:
            ValueError: counts beyond the last row.
        """
        if counts.size and counts.max() >= len(self.probabilities):
            raise ValueError(f"counts must be at most {len(self.probabilities) - 1}, the table's last row, got more")
        sums = self.probabilities.cumsum(axis=1)[:, :-1]
        return (rng.random(counts.shape)[..., None] >= sums[counts]).sum(axis=-1).astype(np.float64)


class ResponseLaw(TableLaw):
    """A yes or no, flipped with a probability: yes if the count is 1 or more (Zhou 2015, the Bernoulli-Poisson link).

    P(yes | rate) = 1 - exp(-rate), so that reports of all rates have probabilities that sum to 1. If counts above 1
    were impossible, the law of a report would lose their mass, and large rates with it.
    """

    def __init__(self, probability: float) -> None:
        rows = np.full((MANY + 1, 2), [probability, 1.0 - probability])
        rows[0] = rows[0, ::-1]
        super().__init__(rows)

    def draw(self, counts: Counts, rng: np.random.Generator) -> Floats:
        """Flipped."""
        return super().draw(np.minimum(counts, MANY), rng)
