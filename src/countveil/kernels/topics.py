"""Counts allocated to topics in proportion to theta_dk phi_vk, one batch of a row's entries at a time.

A row's topics are visited in order of their shares of the row, largest first. The running sum of products then passes a
uniform part of the rate after a few topics, and the other products are never computed. phi and counts are (K, V) views.
"""

import numpy as np

from countveil.kernels.compiled import subroutine
from countveil.kernels.entries import BATCH
from countveil.kernels.random import binomial, fill_uniforms

FEW = 4
SEVERAL = 128
AT_ONCE = 4
HALVINGS = 16
EXPONENT = np.int64(52)


@subroutine
def new_order(n_topics):
    """Space for ordered topics: (order_j, theta_j), padded to a multiple of AT_ONCE without weight, and place_h."""
    size = -(-n_topics // AT_ONCE) * AT_ONCE
    order_j, theta_j = np.empty(size, dtype=np.uint32), np.empty(size)
    for j in range(size):
        order_j[j], theta_j[j] = 0, 0.0
    return order_j, theta_j, np.empty(HALVINGS + 1, dtype=np.int64)


@subroutine
def new_tokens():
    """Space for a batch's tokens: (entry and uniform of each token of small counts, uniforms of the others)."""
    size = BATCH * FEW + FEW
    return np.empty(size, dtype=np.uint32), np.empty(size), np.empty(BATCH * SEVERAL)


@subroutine
def order_topics(theta_dk, d, phi_total_k, order_j, theta_j, place_h):
    """order_j = topics by theta_dk phi_total_k, largest first to within a factor of two; theta_j = their theta."""
    n_topics = theta_dk.shape[1]
    top = np.int64(0)
    for k in range(n_topics):
        top = max(top, exponent(theta_dk[d, k] * phi_total_k[k]))
    place_h[:] = 0
    for k in range(n_topics):
        place_h[1 + halvings(theta_dk[d, k] * phi_total_k[k], top)] += 1
    for h in range(HALVINGS):
        place_h[h + 1] += place_h[h]
    for k in range(n_topics):
        h = halvings(theta_dk[d, k] * phi_total_k[k], top)
        order_j[place_h[h]] = k
        theta_j[place_h[h]] = theta_dk[d, k]
        place_h[h] += 1


@subroutine
def exponent(weight):
    """The power of two of a weight that is not negative, from its bits; 0 for none."""
    return np.float64(weight).view(np.int64) >> EXPONENT


@subroutine
def halvings(weight, top):
    """How many factors of two the weight is below one of exponent ``top``, HALVINGS - 1 at most."""
    return min(HALVINGS - 1, top - exponent(weight))


@subroutine
def list_tokens(n, count_i, token_t):
    """List each entry with a small count as often as its count; returns how many tokens are listed."""
    m = 0
    for i in range(n):
        for t in range(FEW):  # for every count alike, so that there is no branch to mispredict
            token_t[m + t] = i
        m += count_i[i] if count_i[i] <= FEW else 0
    return m


@subroutine
def last_with_weight(j, order_j, theta_j, phi_kv, v):
    """The last place up to j whose topic has a positive product."""
    while j > 0 and theta_j[j] * phi_kv[order_j[j], v] <= 0.0:
        j -= 1
    return j


@subroutine
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


@subroutine
def split_several(n, uniform_t, column_i, rate_i, count_i, order_j, theta_j, phi_kv, row_count_k, count_kv):
    """Allocate counts above FEW and up to SEVERAL: all tokens of an entry are compared with its running sums.

    ``uniform_t`` has one uniform per token of these entries, in their order.
    """
    first = 0
    for i in range(n):
        count = count_i[i]
        if count <= FEW or count > SEVERAL:
            continue
        v, rate = column_i[i], rate_i[i]
        last = last_with_weight(row_count_k.size - 1, order_j, theta_j, phi_kv, v)
        total, left, j = 0.0, count, 0
        while left > 0 and j < last:
            k0, k1, k2, k3 = order_j[j], order_j[j + 1], order_j[j + 2], order_j[j + 3]
            s0 = total + theta_j[j] * phi_kv[k0, v]
            s1 = s0 + theta_j[j + 1] * phi_kv[k1, v]
            s2 = s1 + theta_j[j + 2] * phi_kv[k2, v]
            s3 = s2 + theta_j[j + 3] * phi_kv[k3, v]
            n0 = n1 = n2 = n3 = 0
            for t in range(first, first + count):
                part = uniform_t[t] * rate
                n0 += np.int64(part >= s0)
                n1 += np.int64(part >= s1)
                n2 += np.int64(part >= s2)
                n3 += np.int64(part >= s3)
            add_tokens(left - n0, k0, v, row_count_k, count_kv)
            add_tokens(n0 - n1, k1, v, row_count_k, count_kv)
            add_tokens(n1 - n2, k2, v, row_count_k, count_kv)
            add_tokens(n2 - n3, k3, v, row_count_k, count_kv)
            total, left, j = s3, n3, j + AT_ONCE
        if left > 0:  # the last topic's, or beyond the end by rounding
            add_tokens(left, order_j[last], v, row_count_k, count_kv)
        first += count


@subroutine
def add_tokens(count, k, v, row_count_k, count_kv):
    """Add a count to a topic, for its row and for its column."""
    row_count_k[k] += count
    count_kv[k, v] += count


@subroutine
def split_many(count, rate, order, phi_kv, v, row_count_k, count_kv, rng):
    """Allocate a large count by conditional binomials, at a cost that does not grow with the count."""
    order_j, theta_j, _ = order
    last = last_with_weight(order_j.size - 1, order_j, theta_j, phi_kv, v)
    left = rate
    for j in range(last + 1):
        k = order_j[j]
        weight = theta_j[j] * phi_kv[k, v]
        drawn = count if j == last or weight >= left else binomial(count, weight / left, rng)
        row_count_k[k] += drawn
        count_kv[k, v] += drawn
        count -= drawn
        left -= weight
        if count == 0:
            return


@subroutine
def give_to_topics(n, batch, tokens, order, phi_kv, row_count_k, count_kv, source, rng):
    """Add (count_k) ~ Multinomial(count_i, theta_dk phi_vk / rate_i) of each entry to both sums of counts."""
    column_i, _, rate_i, _, count_i, _ = batch
    token_t, uniform_t, uniforms = tokens
    order_j, theta_j, _ = order
    n_tokens = list_tokens(n, count_i, token_t)
    fill_uniforms(source, n_tokens, uniform_t)
    walk(n_tokens, token_t, uniform_t, column_i, rate_i, order_j, theta_j, phi_kv, row_count_k, count_kv)
    several = np.int64(0)  # a literal would be compiled for as well
    for i in range(n):
        several += count_i[i] if FEW < count_i[i] <= SEVERAL else 0
    if several > 0:
        fill_uniforms(source, several, uniforms)
        split_several(n, uniforms, column_i, rate_i, count_i, order_j, theta_j, phi_kv, row_count_k, count_kv)
    for i in range(n):
        if count_i[i] > SEVERAL:
            split_many(count_i[i], rate_i[i], order, phi_kv, column_i[i], row_count_k, count_kv, rng)
