"""Counts split at a contraction out_bmn = sum_k left_bmk right_bnk. Suffixes are shapes, as in ``gibbs``."""

import numpy as np

from countveil.kernels.allocation import LANES, allocate, multiply
from countveil.kernels.compiled import kernel


def split_counts(count_bmn, left_bmk, right_bnk, rng):
    """(count_bmk, count_bnk): each count split over k in proportion to left_bmk right_bnk, summed over n and over m."""
    sums = np.zeros(left_bmk.shape), np.zeros(right_bnk.shape)
    add_split_counts(count_bmn, left_bmk, right_bnk, sums, np.empty(left_bmk.shape[2]), np.empty(LANES), rng)
    return sums


@kernel
def add_split_counts(count_bmn, left_bmk, right_bnk, sums, product_k, lane_l, rng):
    """``split_counts``, added to sums = (count_bmk, count_bnk); arrays made in here would take longer to compile."""
    count_bmk, count_bnk = sums
    n_batches, n_left, n_terms = left_bmk.shape
    for b in range(n_batches):
        left_mk, right_nk, count_nk = left_bmk[b], right_bnk[b], count_bnk[b]
        for m in range(n_left):
            row_k = count_bmk[b, m]
            for n in range(right_bnk.shape[1]):
                count = np.int64(count_bmn[b, m, n])
                if count == 0:
                    continue
                if n_terms == 1:
                    row_k[0] += count
                    count_nk[n, 0] += count
                    continue
                total = multiply(left_mk, m, right_nk, n, product_k, lane_l)
                allocate(count, product_k, lane_l, total, row_k, count_nk, n, rng)
