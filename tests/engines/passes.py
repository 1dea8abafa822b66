"""Block functions for the tests, in a module that workers import quickly."""

import os
import signal
from pathlib import Path

import numpy as np

observed = []  # what workers of this process see


def reports_by_row(block, phi, theta):
    """Some rows and some sums."""
    indptr, reports_e = block.entries.indptr, block.entries.reports
    totals = np.add.reduceat(np.append(reports_e, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)
    return (totals[:, None] * theta,), (totals.sum() / 3.0 * phi, theta.sum(axis=0))


def dies_once(block, marker, phi, theta):
    """The same; kills the process that computes the second block, if nobody has left the marker."""
    if block.number == 1 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return reports_by_row(block, phi, theta)


def multiplied_elsewhere(many, phi, times, here):
    """To be prepared where the blocks are, in another process than the analyst's."""
    assert os.getpid() != here
    return (np.array(list(many(lambda row: times * row, phi))),)


def reports_of_here(block, phi, theta):
    """``reports_by_row`` of entries that are views of what was observed."""
    assert np.shares_memory(block.entries.reports, observed[0].reports)
    return reports_by_row(block, phi, theta)


def sums_like(block, phi, theta):
    """Sums laid out as the shared array is, with values that hang on the order in which it is added up."""
    sums = np.zeros_like(phi)
    sums += phi.sum() + block.number
    return (theta.copy(),), (sums,)
