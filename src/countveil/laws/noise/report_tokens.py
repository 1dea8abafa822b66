"""Counts of the cells whose reports need no visit, by proposing tokens: the cost grows with the counts.

Of a report with c = k(1) / k(0), where k is log-concave, a proposal is a count drawn as if P(report | count) were c^y:
the tokens of all such cells are drawn at once, each in the cell of a topic and a column. A cell with y units keeps them
with probability a(y) = k(y) / (k(0) c^y) (mathematics, equation 14.1), and otherwise is drawn anew from its own law.
That is the law of its count: a proposal that is kept has the law times the chance that one is kept, and a draw anew
fills up the rest. As a(0) = a(1) = 1, only cells with two units or more are looked at. A cell's topics do not depend on
its count. Where counts are bursty, a token is a burst, whose size has a logarithmic distribution with parameter p c.

Rows in which many tokens are expected, most of them to be rejected, are visited cell by cell, which draws from the same
law.

Suffixes are shapes, as in ``gibbs``; t is a token, c a place among the codes that are proposed, n a p: of all cells, or
of a column; NOT_PROPOSED is the place of cells that are visited, masked or known to be zero.
"""

import math
from typing import NamedTuple

import numpy as np

from countveil.kernels.batches import BATCH, new_batch
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import MASKED
from countveil.kernels.general import add_to_tally, likelihood_at, parts_exposure
from countveil.kernels.gibbs import inner
from countveil.kernels.law import draw_counts
from countveil.kernels.report_kernels import MOST, log_kernel
from countveil.kernels.topics import give_to_topics, new_order, order_topics
from countveil.kernels.topics import new_tokens as new_topic_tokens
from countveil.kernels.uniforms import fill_uniforms, new_source
from countveil.kernels.windows import mean_count, part_size
from countveil.laws.noise.two_sided_geometric.tokens import (
    ROWS_AT_ONCE,
    TOKENS_AT_ONCE,
    draw_columns,
    draw_numbers,
)

NOT_PROPOSED = -1
LOOKED_UP = (
    -2
)  # a stored "report" of this, less its place, is a code that is proposed but is not its row's or column's
MOST_TOKENS = 1 << 20  # that are drawn together, unless one row has more
EVEN = 0.5  # chance of a typical count, below which cells of many tokens are visited
MANY_UNITS = 1e9
PER_VISIT, PER_DEVIATION = (
    10.0,
    20.0,
)  # tokens at the cost of a visit: and of each standard deviation of its count
TABLED = 64  # counts whose chances are in a table
KEPT, REJECTED = np.int8(1), np.int8(-1)


class Proposals(NamedTuple):
    """How tokens are proposed: topic k at the rate theta_dk total_k, and kept with probability chance_cn.

    If chance_cn has no columns, likelihoods vary by row, and it is computed in every row.
    """

    alias_kv: np.ndarray  # columns (see ``tokens.fill_aliases``)
    total_k: np.ndarray
    chance_cn: np.ndarray
    code_c: np.ndarray
    ratio_c: np.ndarray  # k(1) / k(0)
    keep_cy: np.ndarray  # a(y) of the counts up to TABLED
    place_v: np.ndarray  # the code of the cells of a column that are not stored; empty if codes go by row
    few: float  # tokens for each cell of a row, up to which they are proposed
    many: float  # the same, beyond which cells are visited


@kernel
def fill_keeping(noise, code_c, ratio_c, keep_cy):
    """keep_cy = a(y) for every y of the table."""
    for c in range(code_c.size):
        for y in range(keep_cy.shape[1]):
            keep_cy[c, y] = chance_of(noise, code_c[c], ratio_c[c], y)


@subroutine
def chance_of(noise, code, ratio, y):
    """a(y) = k(y) / (k(0) c^y)."""
    if y > noise.whole_cj[code, MOST]:
        return 0.0
    if y < 2:
        return 1.0
    gain = log_kernel(noise, code, y, 1.0) - log_kernel(noise, code, 0, 1.0) - y * math.log(ratio)
    return math.exp(min(gain, 0.0))


@subroutine
def new_cells(place_v, n_columns):
    """Space for a row's cells: (place_v, the units of their tokens, what was decided), the last two 0."""
    found_v = np.empty(n_columns, dtype=np.int32)
    for v in range(n_columns):
        found_v[v] = place_v[v] if place_v.size > 0 else NOT_PROPOSED
    return found_v, np.zeros(n_columns, dtype=np.int64), np.zeros(n_columns, dtype=np.int8)


@subroutine
def new_tokens(size):
    """Space for tokens: (column_t, topic_t, uniform_t, size_t)."""
    columns, topics = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.uint32)
    return columns, topics, np.empty(size), np.empty(size, dtype=np.int64)


@subroutine
def number_proposed(entries, d, n_columns):
    """How many cells of a row are proposed."""
    indptr, reports = entries.indptr, entries.reports
    found = n_columns - (indptr[d + 1] - indptr[d])
    for e in range(indptr[d], indptr[d + 1]):
        found += np.int64(reports[e] <= LOOKED_UP)
    return found


@subroutine
def set_places(entries, d, place_v):
    """place_v of row d's stored cells."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    for e in range(indptr[d], indptr[d + 1]):
        report = np.int64(reports[e])
        place_v[columns[e]] = LOOKED_UP - report if report <= LOOKED_UP else NOT_PROPOSED


@subroutine
def reset_places(entries, d, unstored, unstored_v, place_v):
    """place_v of row d's stored cells as if they were not stored."""
    indptr, columns = entries.indptr, entries.columns
    for e in range(indptr[d], indptr[d + 1]):
        v = columns[e]
        place_v[v] = unstored_v[v] if unstored_v.size > 0 else unstored


@subroutine
def list_kept(number_k, column_s, next_k, place_v, chance_cn, tokens):
    """List a row's tokens that are kept; returns how many. next_k moves on to the next row.

    uniform_t has a uniform for each token, and then one for each token in the list.
    """
    column_t, topic_t, uniform_t, _ = tokens
    by_column = chance_cn.shape[1] > 1
    n, t = 0, 0
    for k in range(number_k.size):
        first, next_k[k] = next_k[k], next_k[k] + number_k[k]
        for s in range(first, next_k[k]):
            v = column_s[s]
            place = place_v[v]
            chance = chance_cn[place, v if by_column else 0] if place >= 0 else 0.0
            if uniform_t[t] < chance:
                column_t[n] = v
                topic_t[n] = k
                uniform_t[n] = uniform_t[t] / chance
                n += 1
            t += 1
    return n


@subroutine
def add_up(n, law, d, tokens, ratio_c, cells, rng):
    """Sizes of the first n tokens, and the sum of each cell's."""
    column_t, _, uniform_t, size_t = tokens
    place_v, sum_v, _ = cells
    for t in range(n):
        v = np.int64(column_t[t])
        size = part_size(likelihood_at(law.likelihood, d, v), ratio_c[place_v[v]], uniform_t[t], rng)
        size_t[t] = size
        sum_v[v] += size


@subroutine
def decide(n, law, tokens, proposals, cells, column_m, rng):
    """Keep each cell's tokens or reject them, and list the cells that are rejected; returns how many these are."""
    place_v, sum_v, decided_v = cells
    m = 0
    for t in range(n):
        v = tokens[0][t]
        y = sum_v[v]
        if y < 2 or decided_v[v] != 0:
            continue
        c = place_v[v]
        if y < proposals.keep_cy.shape[1]:
            chance = proposals.keep_cy[c, y]
        else:
            chance = chance_of(law.noise, proposals.code_c[c], proposals.ratio_c[c], y)
        decided_v[v] = KEPT
        if rng.random() >= chance:
            decided_v[v] = REJECTED
            column_m[m] = v
            m += 1
    return m


@subroutine
def count_kept(n, law, d, tokens, cells, sums):
    """Count the tokens of the cells that keep theirs. What was added up and decided is 0 afterwards."""
    column_t, topic_t, _, size_t = tokens
    _, sum_v, decided_v = cells
    count_dk, count_vk, tally = sums
    for t in range(n):
        v = np.int64(column_t[t])
        k = topic_t[t]
        if decided_v[v] == REJECTED:
            continue
        count_dk[d, k] += 1.0
        count_vk[v, k] += 1.0
        if tally.size > 0:
            add_to_tally(law.likelihood, d, v, size_t[t], 1, tally)
    for t in range(n):
        v = column_t[t]
        sum_v[v] = 0
        decided_v[v] = 0


@subroutine
def list_all(place_v, column_m):
    """List all columns that are proposed; returns how many."""
    m = 0
    for v in range(place_v.size):
        column_m[m] = v
        m += np.int64(place_v[v] >= 0)
    return m


@subroutine
def visit(m, column_m, law, d, factors, code_c, place_v, sums, space, source, rng):
    """Draw the counts of the listed cells of a row one by one."""
    theta_dk, phi_vk, phi_total_k = factors
    count_dk, count_vk, tally = sums
    batch, tokens, order = space
    column_i, report_i, rate_i, level_i, _, _ = batch
    order_j, theta_j, place_h = order
    if m > 0:
        order_topics(theta_dk, d, phi_total_k, order_j, theta_j, place_h)
    for first in range(0, m, BATCH):
        n = min(m - first, BATCH)
        for i in range(n):
            v = column_m[first + i]
            column_i[i], level_i[i] = v, 1.0
            report_i[i] = code_c[place_v[v]]
            rate_i[i] = inner(theta_dk, d, phi_vk, v)
        draw_counts(law, d, n, batch, tally, source, rng)
        give_to_topics(n, batch, tokens, order, phi_vk.T, count_dk[d], count_vk.T, source, rng)


@subroutine
def chances_of_row(law, d, ratio_c):
    """(C, 1) the chances of a row whose likelihood is its own, where tokens are proposed at the rate itself."""
    found = np.empty((ratio_c.size, 1))
    for c in range(ratio_c.size):
        found[c, 0] = 1.0 - parts_exposure(likelihood_at(law.likelihood, d, 0), ratio_c[c])
    return found


@subroutine
def is_visited(law, entries, d, expected, factors, unstored_d, proposals):
    """Whether a row's cells are visited, where some tokens are expected: if that costs less, or most are rejected.

    Tokens on cells that are visited anyway are for nothing. A visit sums over counts around the mode.
    """
    theta_dk, phi_vk, phi_total_k = factors
    cells = number_proposed(entries, d, len(phi_vk))
    if expected <= proposals.few * cells:
        return False
    if expected > proposals.many * cells:
        return True
    rate = 0.0
    for k in range(theta_dk.shape[1]):
        rate += theta_dk[d, k] * phi_total_k[k]
    for e in range(entries.indptr[d], entries.indptr[d + 1]):
        if entries.reports[e] > LOOKED_UP:
            rate -= inner(theta_dk, d, phi_vk, entries.columns[e])
    c = max(np.int64(unstored_d[d]), 0)
    rate = max(rate, 0.0) / max(cells, 1)
    typical = min(mean_count(likelihood_at(law.likelihood, d, 0), rate), MANY_UNITS)
    if expected > (PER_VISIT + PER_DEVIATION * math.sqrt(typical)) * cells:
        return True
    return chance_of(law.noise, proposals.code_c[c], proposals.ratio_c[c], np.int64(typical)) < EVEN


@subroutine
def draw_chunk(law, entries, factors, unstored_d, first, proposals, space, source, rng):
    """The tokens' numbers by topic of some rows from ``first`` on; -1 for a row that is visited. Returns how many."""
    number_ik, number_i, uniform_t = space
    theta_dk = factors[0]
    rows, total, n_rows = 0, 0, theta_dk.shape[0]
    while first + rows < n_rows and rows < len(number_i) and total < MOST_TOKENS:
        rate_k = theta_dk[first + rows] * proposals.total_k
        if is_visited(law, entries, first + rows, rate_k.sum(), factors, unstored_d, proposals):
            number_i[rows] = -1
            number_ik[rows] = 0
        else:
            number_i[rows] = draw_numbers(rate_k, 1.0, source, uniform_t, number_ik[rows], rng)
            total += number_i[rows]
        rows += 1
    return rows, total


@kernel
def propose_rows(law, entries, factors, proposals, unstored_d, sums, rng):
    """Add the counts of all cells that are proposed to the sums (count_dk, count_vk, tally), given theta and phi.

    factors is (theta_dk, phi_vk, phi_total_k), unstored_d the place of the cells of each row that are not stored.
    """
    theta_dk, phi_vk, _ = factors
    (n_rows, n_topics), n_columns = theta_dk.shape, phi_vk.shape[0]
    source, space = new_source(rng), (new_batch(), new_topic_tokens(), new_order(n_topics))
    tokens, cells = new_tokens(np.int64(0)), new_cells(proposals.place_v, n_columns)
    column_m, column_s = np.empty(n_columns + 1, dtype=np.uint32), np.empty(0, dtype=np.uint32)
    uniform_t, next_k = np.empty(max(n_topics, TOKENS_AT_ONCE)), np.empty(n_topics, dtype=np.int64)
    number_ik = np.empty((min(n_rows, ROWS_AT_ONCE), n_topics), dtype=np.int64)
    number_i = np.empty(len(number_ik), dtype=np.int64)
    chance_cn, first = proposals.chance_cn, np.int64(0)
    numbers, unstored = (number_ik, number_i, uniform_t), np.int64(NOT_PROPOSED)
    while first < n_rows:
        rows, total = draw_chunk(law, entries, factors, unstored_d, first, proposals, numbers, source, rng)
        if total > column_s.size:
            column_s = np.empty(2 * total, dtype=np.uint32)
        if number_i[:rows].max() > tokens[0].size:
            tokens = new_tokens(2 * number_i[:rows].max())
        draw_columns(number_ik[:rows], proposals.alias_kv, source, uniform_t, column_s, next_k)
        for i in range(rows):
            d = first + i
            if proposals.place_v.size == 0 and unstored_d[d] != unstored:
                unstored = np.int64(unstored_d[d])
                cells[0][:] = unstored
            set_places(entries, d, cells[0])
            if number_i[i] < 0:
                m = list_all(cells[0], column_m)
            else:
                if proposals.chance_cn.shape[1] == 0:
                    chance_cn = chances_of_row(law, d, proposals.ratio_c)
                fill_uniforms(source, number_i[i], tokens[2])
                n = list_kept(number_ik[i], column_s, next_k, cells[0], chance_cn, tokens)
                add_up(n, law, d, tokens, proposals.ratio_c, cells, rng)
                m = decide(n, law, tokens, proposals, cells, column_m, rng)
                count_kept(n, law, d, tokens, cells, sums)
            visit(m, column_m, law, d, factors, proposals.code_c, cells[0], sums, space, source, rng)
            reset_places(entries, d, unstored, proposals.place_v, cells[0])
        first += rows


@kernel
def subtract_masked(entries, factor, exposure, of_rows):
    """Take the masked cells out of exposures of rows, given phi, or of columns, given theta."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    for d in range(indptr.size - 1):
        for e in range(indptr[d], indptr[d + 1]):
            if reports[e] == MASKED:
                v = columns[e]
                for k in range(factor.shape[1]):
                    if of_rows:
                        exposure[d, k] -= factor[v, k]
                    else:
                        exposure[v, k] -= factor[d, k]
