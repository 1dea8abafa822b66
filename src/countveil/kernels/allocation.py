"""One count allocated to its terms in proportion to their products, for loops that need all products.

Batches of a row's entries are allocated by ``topics``, which computes only the products that it needs. Counts are split
in the same way at a contraction out_bmn = sum_k left_bmk right_bnk. Suffixes are shapes, as in ``gibbs``.
"""

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.random import binomial

LANES = 8
TOKENS_ONE_BY_ONE = 24


@subroutine
def multiply(theta_dk, d, phi_vk, v, product_k, lane_l):
    """product_k = theta_dk phi_vk; returns the sum of the products.

    The sum runs in LANES interleaved parts, kept in lane_l for ``allocate`` to search: topic k is in lane
    k mod LANES. Arrays are passed whole, with the row's number, since slicing a row costs more than the arithmetic.
    The code fixes the order of the sum.
    """
    n_topics = product_k.shape[0]
    for k in range(n_topics):
        product_k[k] = theta_dk[d, k] * phi_vk[v, k]
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    rounds = n_topics // LANES
    for i in range(rounds):
        k = LANES * i
        s0 += product_k[k]
        s1 += product_k[k + 1]
        s2 += product_k[k + 2]
        s3 += product_k[k + 3]
        s4 += product_k[k + 4]
        s5 += product_k[k + 5]
        s6 += product_k[k + 6]
        s7 += product_k[k + 7]
    lane_l[0] = s0
    lane_l[1] = s1
    lane_l[2] = s2
    lane_l[3] = s3
    lane_l[4] = s4
    lane_l[5] = s5
    lane_l[6] = s6
    lane_l[7] = s7
    for k in range(LANES * rounds, n_topics):
        lane_l[k - LANES * rounds] += product_k[k]
    return ((lane_l[0] + lane_l[1]) + (lane_l[2] + lane_l[3])) + ((lane_l[4] + lane_l[5]) + (lane_l[6] + lane_l[7]))


@subroutine
def allocate(count, weight_k, lane_l, total, row_count_k, count_vk, v, rng):
    """Add (count_k) ~ Multinomial(count, weight_k / total) to row_count_k and to count_vk[v].

    A few tokens are allocated one by one, each where the running sum of weights passes a uniform part of the total.
    Larger counts are split by conditional binomials, at a cost that does not grow with the count.
    """
    last = weight_k.shape[0] - 1
    if count <= TOKENS_ONE_BY_ONE:
        last_lane = min(LANES - 1, last)
        for _ in range(count):
            left = rng.random() * total
            k = 0
            while left >= lane_l[k] and k < last_lane:
                left -= lane_l[k]
                k += 1
            left -= weight_k[k]
            while left >= 0.0 and k + LANES <= last:
                k += LANES
                left -= weight_k[k]
            row_count_k[k] += 1.0
            count_vk[v, k] += 1.0
        return
    left_count = count
    left_weight = total
    for k in range(last):
        share = weight_k[k] / left_weight
        drawn = left_count if share >= 1.0 else binomial(left_count, share, rng)
        row_count_k[k] += drawn
        count_vk[v, k] += drawn
        left_count -= drawn
        left_weight -= weight_k[k]
        if left_count == 0:
            return
    row_count_k[last] += left_count
    count_vk[v, last] += left_count


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
