"""Bursts of all cells of a block of rows by proposing tokens, where counts are negative binomial.

Beside a report r > 0 a count y has the weight NB(y; s, p) alpha^-g(y), up to a constant, with g(y) = min(y, 2r - y).
As g is concave and g(0) = 0, g of a sum is at most the sum of g: tokens drawn at rate mu c / q with sizes j in
proportion to p^j / j alpha^-g(j), where c is the sum of these weights, have the right law up to a factor of alpha^(sum
of g - g of the sum) for each cell (mathematics, equation 13.10). This also holds of r <= 0, with g(y) = -y and without
such a factor. Tokens are proposed at the rate of the report ``most``, and kept with the probability c(r) / c(most). A
cell is kept with that factor as its probability. The cells that are not, and those with reports above ``most``, where c
would be large, are drawn one by one by their own law.

Suffixes are shapes, as in ``gibbs``; t is a token, l a level of the rows, r a report, n a p: of all cells, or of a
column.
"""

import math
from typing import NamedTuple

import numpy as np

from countveil.kernels.batches import BATCH, new_batch
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.gibbs import inner
from countveil.kernels.law import draw_counts
from countveil.kernels.topics import give_to_topics, new_order, order_topics
from countveil.kernels.topics import new_tokens as new_topic_tokens
from countveil.kernels.uniforms import fill_uniforms, new_source
from countveil.laws.noise.two_sided_geometric.tokens import (
    ROWS_AT_ONCE,
    TOKENS_AT_ONCE,
    column_of,
    draw_columns,
    draw_numbers,
)

NEGLIGIBLE = 1e-17  # size's weight over that of size 1
LARGEST_REPORT = 2**31 - 1


class Proposals(NamedTuple):
    """How tokens are proposed: topic k at the rate theta_dk total_k scale_l in a row of level l.

    A token of the column with p's place n is kept beside the report r with probability chance_lrn; r = 0 stands for
    reports that are not positive, and the last r for those that are drawn one by one, where it is 0.
    """

    alias_kv: np.ndarray  # columns (see ``tokens.fill_aliases``)
    total_k: np.ndarray
    bound_n: np.ndarray  # scale_l times this is at least the mass of every r
    scale_l: np.ndarray
    chance_lrn: np.ndarray


@kernel
def fill_masses(alpha_l, p_n, mass_lrn):
    """mass_lrn = sum over j > 0 of p^j / j alpha^-g(j) for every report r from 0 on."""
    n_reports = mass_lrn.shape[1]
    for l in range(alpha_l.size):  # noqa: E741
        for n in range(p_n.size):
            lower, upper = p_n[n] / alpha_l[l], p_n[n] * alpha_l[l]
            tail = tail_of_sizes(n_reports - 1, upper)
            for r in range(n_reports - 1, -1, -1):  # sums of what is positive
                mass_lrn[l, r, n] = tail * (1.0 / alpha_l[l]) ** (2 * r)
                if r > 0:
                    tail += upper**r / r
            head = 0.0
            for r in range(1, n_reports):
                head += lower**r / r
                mass_lrn[l, r, n] += head


@subroutine
def tail_of_sizes(first, x):
    """The sum over j > first of x^j / j."""
    if x > 0.5:
        total = -math.log1p(-x)
        for j in range(1, first + 1):
            total -= x**j / j
        return total
    term, total, j = x ** (first + 1), 0.0, first + 1
    while True:
        total += term / j
        term *= x
        j += 1
        if term <= NEGLIGIBLE * total:
            return total


@subroutine
def new_cells(n_columns):
    """Space for a row's cells: (report_v, the number, sum and sum of g of their tokens, all 0)."""
    report_v, seen_v = np.empty(n_columns, dtype=np.int32), np.zeros(n_columns, dtype=np.int32)
    return report_v, seen_v, np.zeros(n_columns, dtype=np.int64), np.zeros(n_columns, dtype=np.int64)


@subroutine
def new_tokens(size):
    """Space for tokens: (column_t, topic_t, uniform_t, size_t)."""
    columns, topics = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.uint32)
    return columns, topics, np.empty(size), np.empty(size, dtype=np.int64)


@subroutine
def size_of(left, r, p, alpha):
    """The size at which the running sum of p^j / j alpha^-g(j) passes ``left``."""
    lower, upper = p / alpha, p * alpha
    size, weight = 1, lower if r > 0 else upper
    least = NEGLIGIBLE * weight
    while left >= weight and (size <= r or weight > least):
        left -= weight
        size += 1
        weight *= (lower if size <= r else upper) * (size - 1) / size
    return size


@subroutine
def gain(y, r):
    """g(y): how many powers of alpha the count y gains over the count 0."""
    return min(y, 2 * r - y)


@subroutine
def list_reports(entries, d, report_v):
    """report_v = row d's stored reports, which are positive, and 0 elsewhere."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    report_v[:] = 0
    for e in range(indptr[d], indptr[d + 1]):
        report_v[columns[e]] = min(np.int64(reports[e]), LARGEST_REPORT)


@subroutine
def list_large(entries, d, most, column_m):
    """List the columns of reports above ``most``; returns how many there are."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    m = 0
    for e in range(indptr[d], indptr[d + 1]):
        column_m[m] = columns[e]
        m += np.int64(np.int64(reports[e]) > most)
    return m


@subroutine
def list_kept(number_k, column_s, next_k, report_v, chance_rn, tokens):
    """List a row's tokens that are kept; returns how many. next_k moves on to the next row.

    uniform_t has a uniform for each token, and then that of each token in the list.
    """
    column_t, topic_t, uniform_t, _ = tokens
    last, by_column = chance_rn.shape[0] - 1, chance_rn.shape[1] > 1
    n, t = 0, 0
    for k in range(number_k.size):
        first, next_k[k] = next_k[k], next_k[k] + number_k[k]
        for s in range(first, next_k[k]):
            v = column_s[s]
            column_t[n] = v
            topic_t[n] = k
            uniform_t[n] = uniform_t[t]
            n += np.int64(uniform_t[t] < chance_rn[min(report_v[v], last), v if by_column else 0])
            t += 1
    return n


@subroutine
def add_up(n, tokens, scale, bound_n, alpha, p_n, cells):
    """Sizes of the first n tokens; and of each cell beside a positive report the number, the sum and the sum of g."""
    column_t, _, uniform_t, size_t = tokens
    report_v, seen_v, sum_v, gain_v = cells
    by_column = p_n.size > 1
    for t in range(n):
        v = column_t[t]
        place, r = v if by_column else 0, report_v[v]
        size = size_of(uniform_t[t] * scale * bound_n[place], np.int64(r), p_n[place], alpha)
        size_t[t] = size
        if r > 0:
            seen_v[v] += 1
            sum_v[v] += size
            gain_v[v] += gain(size, np.int64(r))


@subroutine
def settle(law, entries, d, l, n, proposals, tokens, cells, column_m, source):  # noqa: E741
    """Sizes of a row's n tokens, and the cells to draw one by one in column_m: returns how many."""
    p_n, level, most = law.likelihood.parameters[0], entries.level_d[d], proposals.chance_lrn.shape[1] - 2
    add_up(n, tokens, proposals.scale_l[l], proposals.bound_n, level, p_n, cells)
    fill_uniforms(source, n, tokens[2])
    return decide(n, tokens, level, cells, column_m, list_large(entries, d, most, column_m))


@subroutine
def decide(n, tokens, alpha, cells, column_m, m):
    """Keep each cell with several tokens, whose seen_v becomes 1, or list it in column_m: then it becomes 0.

    Returns how many cells are listed. uniform_t has a uniform for each token.
    """
    column_t, _, uniform_t, _ = tokens
    report_v, seen_v, sum_v, gain_v = cells
    for t in range(n):
        v = column_t[t]
        if seen_v[v] > 1:
            excess = gain_v[v] - gain(sum_v[v], np.int64(report_v[v]))
            seen_v[v] = np.int64(uniform_t[t] < alpha**excess)
            if seen_v[v] == 0:
                column_m[m] = v
                m += 1
    return m


@subroutine
def count_bursts(n, tokens, d, cells, sums):
    """Count the tokens of the cells that are kept. What ``add_up`` added is 0 afterwards."""
    column_t, topic_t, _, size_t = tokens
    report_v, seen_v, sum_v, gain_v = cells
    count_dk, count_vk, tally = sums
    n_ps = tally.size // 2
    for t in range(n):
        v, k = column_t[t], topic_t[t]
        if report_v[v] > 0 and seen_v[v] == 0:
            continue
        count_dk[d, k] += 1.0
        count_vk[v, k] += 1.0
        if n_ps > 0:
            place = v if n_ps > 1 else 0
            tally[place] += size_t[t]
            tally[n_ps + place] += 1.0
    for t in range(n):
        v = column_t[t]
        seen_v[v] = sum_v[v] = gain_v[v] = 0


@subroutine
def visit(m, column_m, law, d, level, factors, report_v, sums, space, source, rng):
    """Draw the bursts of the listed cells of a row one by one."""
    theta_dk, phi_vk, phi_total_k = factors
    count_dk, count_vk, tally = sums
    batch, tokens, order = space
    column_i, report_i, rate_i, level_i, count_i, _ = batch
    order_j, theta_j, place_h = order
    if m > 0:
        order_topics(theta_dk, d, phi_total_k, order_j, theta_j, place_h)
    for first in range(0, m, BATCH):
        n = min(m - first, BATCH)
        for i in range(n):
            v = column_m[first + i]
            column_i[i], report_i[i], level_i[i], count_i[i] = v, report_v[v], level, report_v[v]
            rate_i[i] = inner(theta_dk, d, phi_vk, v)
        draw_counts(law, d, n, batch, tally, source, rng)
        give_to_topics(n, batch, tokens, order, phi_vk.T, count_dk[d], count_vk.T, source, rng)


@kernel
def propose_rows(law, entries, factors, proposals, place_d, sums, rng):
    """Add the bursts of all cells to the sums (count_dk, count_vk, tally), given theta and phi.

    factors is (theta_dk, phi_vk, phi_total_k), place_d the place of each row's level. All stored reports are positive.
    """
    theta_dk, phi_vk, _ = factors
    (n_rows, n_topics), n_columns = theta_dk.shape, phi_vk.shape[0]
    source, space = new_source(rng), (new_batch(), new_topic_tokens(), new_order(n_topics))
    tokens, cells, column_m = new_tokens(0), new_cells(n_columns), np.empty(n_columns + 1, dtype=np.uint32)
    uniform_t, column_s = np.empty(max(n_topics, TOKENS_AT_ONCE)), np.empty(0, dtype=np.uint32)
    number_ik = np.empty((min(n_rows, ROWS_AT_ONCE), n_topics), dtype=np.int64)
    number_i, next_k = np.empty(len(number_ik), dtype=np.int64), np.empty(n_topics, dtype=np.int64)
    for first in range(0, n_rows, ROWS_AT_ONCE):
        rows = min(n_rows - first, ROWS_AT_ONCE)
        for i in range(rows):
            rate_k, scale = theta_dk[first + i] * proposals.total_k, proposals.scale_l[place_d[first + i]]
            number_i[i] = draw_numbers(rate_k, scale, source, uniform_t, number_ik[i], rng)
        if number_i[:rows].sum() > column_s.size:
            column_s = np.empty(2 * number_i[:rows].sum(), dtype=np.uint32)
        if number_i[:rows].max() > tokens[0].size:
            tokens = new_tokens(2 * number_i[:rows].max())
        draw_columns(number_ik[:rows], proposals.alias_kv, source, uniform_t, column_s, next_k)
        for i in range(rows):
            d = first + i
            list_reports(entries, d, cells[0])
            fill_uniforms(source, number_i[i], tokens[2])
            n = list_kept(number_ik[i], column_s, next_k, cells[0], proposals.chance_lrn[place_d[d]], tokens)
            m = settle(law, entries, d, place_d[d], n, proposals, tokens, cells, column_m, source)
            count_bursts(n, tokens, d, cells, sums)
            visit(m, column_m, law, d, entries.level_d[d], factors, cells[0], sums, space, source, rng)


@kernel
def propose_rest(law, entries, theta_dk, proposals, place_d, sums, rng):
    """Add the bursts of only the cells that are not stored, given theta and phi."""
    alias_kv, total_k, bound_n, scale_l, chance_lrn = proposals
    count_dk, count_vk, tally = sums
    p_n, n_ps = law.likelihood.parameters[0], tally.size // 2
    n_rows, n_topics = theta_dk.shape
    source, uniform_t = new_source(rng), np.empty(max(n_topics, TOKENS_AT_ONCE))
    kept_t = np.empty(TOKENS_AT_ONCE)
    report_v, number_k = np.empty(count_vk.shape[0], dtype=np.int32), np.empty(n_topics, dtype=np.int64)
    for d in range(n_rows):
        l, level = place_d[d], entries.level_d[d]  # noqa: E741
        if draw_numbers(theta_dk[d] * total_k, scale_l[l], source, uniform_t, number_k, rng) == 0:
            continue
        list_reports(entries, d, report_v)
        for k in range(n_topics):
            for first in range(0, number_k[k], TOKENS_AT_ONCE):
                n = min(number_k[k] - first, TOKENS_AT_ONCE)
                fill_uniforms(source, n, uniform_t)
                fill_uniforms(source, n, kept_t)
                for t in range(n):
                    v = np.int64(column_of(uniform_t[t], k, alias_kv))
                    place = v if p_n.size > 1 else 0
                    if report_v[v] > 0 or kept_t[t] >= chance_lrn[l, 0, place]:
                        continue
                    count_dk[d, k] += 1.0
                    count_vk[v, k] += 1.0
                    if n_ps > 0:
                        tally[place] += size_of(kept_t[t] * scale_l[l] * bound_n[place], 0, p_n[place], level)
                        tally[n_ps + place] += 1.0
