"""Counts split at a contraction out_bmn = sum_k left_bmk right_bnk. Suffixes are shapes, as in ``gibbs``."""

import numpy as np

from countveil.kernels.allocation import LANES, allocate, multiply
from countveil.kernels.compiled import kernel


@kernel
def split_counts(count_bmn, left_bmk, right_bnk, rng):
    """(count_bmk, count_bnk): each count split over k in proportion to left_bmk right_bnk, summed over n and over m."""
    n_batches, n_left, n_terms = left_bmk.shape
    n_right = right_bnk.shape[1]
    count_bmk = np.zeros((n_batches, n_left, n_terms))
    count_bnk = np.zeros((n_batches, n_right, n_terms))
    product_k = np.empty(n_terms)
    lane_l = np.empty(LANES)
    for b in range(n_batches):
        left_mk, right_nk, count_nk = left_bmk[b], right_bnk[b], count_bnk[b]
        for m in range(n_left):
            row_k = count_bmk[b, m]
            for n in range(n_right):
                count = np.int64(count_bmn[b, m, n])
                if count == 0:
                    continue
                if n_terms == 1:
                    row_k[0] += count
                    count_nk[n, 0] += count
                    continue
                total = multiply(left_mk, m, right_nk, n, product_k, lane_l)
                allocate(count, product_k, lane_l, total, row_k, count_nk, n, rng)
    return count_bmk, count_bnk
