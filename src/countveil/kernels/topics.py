"""Counts given to topics in proportion to theta_dk phi_vk, a row's entries a batch at a time.

A row's topics are visited in order of their shares of it, largest first: the running sum of the products then passes a
uniform part of the rate after a few of them, and the rest are never computed. phi and the counts come as (K, V) views.
"""

import math

import numpy as np
from numba import njit

from countveil.kernels.batches import BATCH
from countveil.kernels.uniforms import fill_uniforms

TOKENS_ONE_BY_ONE = 24
AT_ONCE = 4
HALVINGS = 16


@njit(cache=True, nogil=True)
def new_order(n_topics):
    """Space for a row's topics in order: (order_j, theta_j), padded to a multiple of AT_ONCE with no weight."""
    size = -(-n_topics // AT_ONCE) * AT_ONCE
    return np.zeros(size, dtype=np.uint32), np.zeros(size)


@njit(cache=True, nogil=True)
def new_tokens():
    """Space for a batch's tokens: (their entry, their uniform)."""
    size = BATCH * TOKENS_ONE_BY_ONE + AT_ONCE
    return np.empty(size, dtype=np.uint32), np.empty(size)


@njit(cache=True, nogil=True)
def order_topics(theta_dk, d, phi_total_k, order_j, theta_j):
    """order_j = topics by theta_dk phi_total_k, largest first to within a factor of two; theta_j = their theta."""
    n_topics = theta_dk.shape[1]
    largest = 0.0
    for k in range(n_topics):
        largest = max(largest, theta_dk[d, k] * phi_total_k[k])
    top = math.frexp(largest)[1]
    place_h = np.zeros(HALVINGS + 1, dtype=np.int64)
    for k in range(n_topics):
        place_h[1 + halvings(theta_dk[d, k] * phi_total_k[k], top)] += 1
    for h in range(HALVINGS):
        place_h[h + 1] += place_h[h]
    for k in range(n_topics):
        h = halvings(theta_dk[d, k] * phi_total_k[k], top)
        order_j[place_h[h]] = k
        theta_j[place_h[h]] = theta_dk[d, k]
        place_h[h] += 1


@njit(cache=True, nogil=True)
def halvings(weight, top):
    """How many factors of two the weight is below 2^top, HALVINGS - 1 at most."""
    if not weight > 0.0:
        return HALVINGS - 1
    return max(0, min(HALVINGS - 1, top - math.frexp(weight)[1]))


@njit(cache=True, nogil=True)
def list_tokens(n, count_i, token_t):
    """Each entry's number in its batch, as often as its count where that is small; returns how many in all."""
    m = 0
    for i in range(n):
        count = count_i[i]
        if count > TOKENS_ONE_BY_ONE:
            continue
        for t in range(AT_ONCE):  # the same for every count: nothing to predict
            token_t[m + t] = i
        for t in range(AT_ONCE, count):
            token_t[m + t] = i
        m += count
    return m


@njit(cache=True, nogil=True)
def last_with_weight(j, order_j, theta_j, phi_kv, v):
    """The last place up to j whose topic has a positive product."""
    while j > 0 and theta_j[j] * phi_kv[order_j[j], v] <= 0.0:
        j -= 1
    return j


@njit(cache=True, nogil=True)
def walk(n_tokens, token_t, uniform_t, column_i, rate_i, order_j, theta_j, phi_kv, row_count_k, count_kv):
    """Give each token to the topic at which the running sum of theta_j phi passes its uniform part of the rate."""
    for t in range(n_tokens):
        i = token_t[t]
        v = column_i[i]
        left = uniform_t[t] * rate_i[i]
        j = 0
        s0 = theta_j[0] * phi_kv[order_j[0], v]
        s1 = s0 + theta_j[1] * phi_kv[order_j[1], v]
        s2 = s1 + theta_j[2] * phi_kv[order_j[2], v]
        s3 = s2 + theta_j[3] * phi_kv[order_j[3], v]
        while left >= s3 and j + AT_ONCE < order_j.size:
            left -= s3
            j += AT_ONCE
            s0 = theta_j[j] * phi_kv[order_j[j], v]
            s1 = s0 + theta_j[j + 1] * phi_kv[order_j[j + 1], v]
            s2 = s1 + theta_j[j + 2] * phi_kv[order_j[j + 2], v]
            s3 = s2 + theta_j[j + 3] * phi_kv[order_j[j + 3], v]
        j += np.int64(left >= s0) + np.int64(left >= s1) + np.int64(left >= s2)
        if left >= s3:  # beyond the end, by rounding
            j = last_with_weight(j, order_j, theta_j, phi_kv, v)
        k = order_j[j]
        row_count_k[k] += 1.0
        count_kv[k, v] += 1.0


@njit(cache=True, nogil=True)
def split_many(count, rate, order, phi_kv, v, row_count_k, count_kv, rng):
    """Give a large count to topics by conditional binomials, at a cost that does not grow with it."""
    order_j, theta_j = order
    last = last_with_weight(order_j.size - 1, order_j, theta_j, phi_kv, v)
    left = rate
    for j in range(last + 1):
        k = order_j[j]
        weight = theta_j[j] * phi_kv[k, v]
        drawn = count if j == last or weight >= left else rng.binomial(count, weight / left)
        row_count_k[k] += drawn
        count_kv[k, v] += drawn
        count -= drawn
        left -= weight
        if count == 0:
            return


@njit(cache=True, nogil=True)
def give_to_topics(n, batch, tokens, order, phi_kv, row_count_k, count_kv, source, rng):
    """Add (count_k) ~ Multinomial(count_i, theta_dk phi_vk / rate_i) of each entry to both sums of counts."""
    column_i, _, rate_i, _, count_i, _ = batch
    token_t, uniform_t = tokens
    order_j, theta_j = order
    n_tokens = list_tokens(n, count_i, token_t)
    fill_uniforms(source, n_tokens, uniform_t)
    walk(n_tokens, token_t, uniform_t, column_i, rate_i, order_j, theta_j, phi_kv, row_count_k, count_kv)
    for i in range(n):
        if count_i[i] > TOKENS_ONE_BY_ONE:
            split_many(count_i[i], rate_i[i], order, phi_kv, column_i[i], row_count_k, count_kv, rng)
