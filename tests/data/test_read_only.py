"""What users pass in stays as it is: sparse arrays that are read-only, out of order, or with zeros stored."""

import numpy as np
import pytest
import scipy.sparse as sp

import countveil as cv

GAUSSIAN, GEOMETRIC = cv.mechanisms.DiscreteGaussian(1.5), cv.mechanisms.TwoSidedGeometric(0.4)
MASK = np.eye(4, dtype=bool)
TAKES = {
    "import_reports": lambda x: cv.import_reports(x, GAUSSIAN, "here").reports,
    "import_reports of truncated ones": lambda x: cv.import_reports(x, GEOMETRIC, "here").reports,
    "import_reports with a mask": lambda x: cv.import_reports(x, GAUSSIAN, "here", mask=MASK).reports,
    "Reports": lambda x: cv.Reports(x, GAUSSIAN).reports,
    "Reports with a mask": lambda x: cv.Reports(x, GAUSSIAN, mask=MASK).reports,
    "PrivatizedCounts": lambda x: cv.PrivatizedCounts(x, 0.4).reports,
    "PrivatizedCounts with a mask": lambda x: cv.PrivatizedCounts(x, 0.4, mask=MASK).reports,
    "ExactCounts": lambda x: cv.ExactCounts(x).reports,
    "NaiveCounts": lambda x: cv.NaiveCounts(x).reports,
    "npmi": lambda x: cv.evaluation.npmi([[0, 1]], x),
    "umass": lambda x: cv.evaluation.umass([[0, 1]], x),
    "log_likelihood": lambda x: cv.log_likelihood(x, 1.0, 0.4),
    "sample_true_counts": lambda x: cv.sample_true_counts(x, 1.0, 0.4, np.random.default_rng(1)),
    "privatize": lambda x: cv.privatize(x, cv.PrivacyLevel(1, 2)).reports.shape,
}
OF_COUNTS = ("import_reports of truncated ones", "ExactCounts", "npmi", "umass", "privatize")


def untidy(kind, name, writeable):
    """(a sparse array, its arrays), as a reader may leave it."""
    data, places = np.array([4, 0, 2 if name in OF_COUNTS else -2, 7, 1, 3]), np.array([2, 0, 1, 3, 0, 2])
    rows, ends = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 3, 5, 6, 6])
    for part in (data, places, rows, ends):
        part.flags.writeable = writeable
    if kind == "coo":
        found = sp.coo_array((data, (rows, places)), shape=(4, 4))
        return found, (found.data, *found.coords)
    found = (sp.csr_array if kind == "csr" else sp.csc_array)((data, places, ends), shape=(4, 4))
    return found, (found.data, found.indices, found.indptr)


def plain(found):
    return found.toarray() if sp.issparse(found) else found


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("name", TAKES)
def test_sparse_arrays_may_be_read_only(name, kind):
    values, _ = untidy(kind, name, writeable=False)
    found, wanted = TAKES[name](values), TAKES[name](values.toarray())
    for one, other in zip(np.atleast_1d(plain(found)), np.atleast_1d(plain(wanted)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("name", TAKES)
def test_sparse_arrays_stay_as_they_are(name, kind):
    values, parts = untidy(kind, name, writeable=True)
    before = [part.copy() for part in parts]
    TAKES[name](values)
    for part, was in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, was)
