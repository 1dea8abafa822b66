"""True counts of all cells of a block of rows by proposing tokens: the cost grows with the counts, not with the cells.

By equation 4.5 of the mathematics, tokens drawn at rate mu / alpha in every cell have the right law up to a factor of
alpha^2 for each token beyond the report. Where the report is not positive this is every token, and each is kept with
probability alpha^2. A cell with y > r > 0 tokens keeps all of them with probability alpha^(2 (y - r)). Otherwise its
count is drawn anew from its own law, and that many tokens are kept: their topics do not depend on their number. A token
is drawn together with its topic and its column, so no rate is computed, and nothing is left to allocate.

Suffixes are shapes, as in ``gibbs``; t is a token.
"""

import math

import numpy as np

from countveil.kernels.batches import BATCH, new_batch
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.gibbs import inner
from countveil.kernels.law import draw_counts
from countveil.kernels.uniforms import fill_uniforms, new_source
from countveil.laws.noise.two_sided_geometric.law import TwoSidedGeometricPoisson

LAW = TwoSidedGeometricPoisson()
NOT_POSITIVE = np.int32(2**31 - 1)
LARGEST_SEARCHED = 12.0
TOKENS_AT_ONCE = 1024
ROWS_AT_ONCE = 256  # a topic's table stays in the cache while it serves them
HALF, LOWER, PARTS = np.uint64(32), np.uint64(2**32 - 1), 2.0**32  # of a table's word


@kernel
def fill_aliases(weight_kv, alias_kv):
    """Alias tables, for draws of a column v in proportion to weight_kv[k] in time that does not grow with n_columns.

    A uniform column is kept with some probability, and else replaced by its alias (Walker 1977, set up as by Vose
    1991). The lower half of a word is the probability, to 32 bits, the upper half the alias. Topics without weight have
    no tokens, and their tables are not filled.
    """
    n_topics, n_columns = weight_kv.shape
    # Columns below the mean from the front, the others from the back.
    todo_v, other_v = np.empty(n_columns, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    stay_v = np.empty(n_columns)
    for k in range(n_topics):
        total = 0.0
        for v in range(n_columns):
            total += weight_kv[k, v]
        if not total > 0.0:
            continue
        below, above = 0, n_columns
        for v in range(n_columns):
            stay_v[v], other_v[v] = weight_kv[k, v] / total * n_columns, v
            if stay_v[v] < 1.0:
                todo_v[below] = v
                below += 1
            else:
                above -= 1
                todo_v[above] = v
        while below > 0 and above < n_columns:
            below -= 1
            small, large = todo_v[below], todo_v[above]
            other_v[small] = large
            stay_v[large] -= 1.0 - stay_v[small]
            if stay_v[large] < 1.0:
                above += 1
                todo_v[below] = large
                below += 1
        # A column that is left over, by rounding, is its own alias.
        for v in range(n_columns):
            chance = np.uint64(min(max(stay_v[v], 0.0) * PARTS + 0.5, PARTS - 1.0))
            alias_kv[k, v] = np.uint64(other_v[v]) << HALF | chance


@subroutine
def poisson(rate, uniform, rng):
    """A Poisson draw: by search from zero with the uniform where the rate is small, else by the generator."""
    if rate > LARGEST_SEARCHED:
        return rng.poisson(rate)
    y = 0
    term = math.exp(-rate)
    while uniform >= term and term > 0.0:
        uniform -= term
        y += 1
        term *= rate / y
    return y


@subroutine
def list_positive(entries, d, report_v):
    """report_v = row d's stored reports, which are positive, and NOT_POSITIVE elsewhere."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    report_v[:] = NOT_POSITIVE
    for e in range(indptr[d], indptr[d + 1]):
        report_v[columns[e]] = min(np.int64(reports[e]), np.int64(NOT_POSITIVE) - 1)


@subroutine
def draw_numbers(rate_k, factor, source, uniform_t, number_k, rng):
    """number_k ~ Poisson(factor rate_k); returns their sum."""
    fill_uniforms(source, rate_k.size, uniform_t)
    total = 0
    for k in range(rate_k.size):
        number_k[k] = poisson(factor * rate_k[k], uniform_t[k], rng)
        total += number_k[k]
    return total


@subroutine
def column_of(uniform, k, alias_kv):
    """A column in proportion to topic k's weights, without branches that the processor could mispredict."""
    place = uniform * alias_kv.shape[1]
    v = np.uint64(place)
    word = alias_kv[k, v]
    goes = np.uint64(np.uint64((place - np.float64(v)) * PARTS) >= word & LOWER)
    return v + goes * ((word >> HALF) - v)


@subroutine
def draw_columns(number_ik, alias_kv, source, uniform_t, column_s, next_k):
    """Columns of the tokens of all rows i, topic by topic; next_k is where the first row's begin in column_s."""
    first = 0
    for k in range(next_k.size):
        next_k[k] = first
        last = first + number_ik[:, k].sum()
        while first < last:
            n = min(last - first, TOKENS_AT_ONCE)
            fill_uniforms(source, n, uniform_t)
            for t in range(n):
                column_s[first + t] = column_of(uniform_t[t], k, alias_kv)
            first += n


@subroutine
def new_tokens(size):
    """Space for tokens: (column_t, topic_t, uniform_t)."""
    return np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.uint32), np.empty(size)


@subroutine
def list_tokens(number_k, column_s, next_k, chance, report_v, tokens):
    """List a row's tokens, all on positive reports and others with probability ``chance``; returns how many.

    uniform_t has a uniform for each token. next_k moves on to the next row.
    """
    column_t, topic_t, uniform_t = tokens
    n, t = 0, 0
    for k in range(number_k.size):
        first, next_k[k] = next_k[k], next_k[k] + number_k[k]
        for s in range(first, next_k[k]):
            v = column_s[s]
            column_t[n] = v
            topic_t[n] = k
            n += np.int64(report_v[v] != NOT_POSITIVE) | np.int64(uniform_t[t] < chance)
            t += 1
    return n


@kernel
def propose_rows(entries, theta_dk, phi_vk, phi_total_k, alias_kv, count_dk, count_vk, rng):
    """Add the true counts of all cells to both sums, given theta and phi. All stored reports are positive."""
    alpha_d = entries.level_d
    n_rows, n_topics = theta_dk.shape
    n_columns = phi_vk.shape[0]
    source, batch, tokens = new_source(rng), new_batch(), new_tokens(0)
    uniform_t, column_s = np.empty(max(n_topics, TOKENS_AT_ONCE)), np.empty(0, dtype=np.uint32)
    report_v, seen_v = np.empty(n_columns, dtype=np.int32), np.zeros(n_columns, dtype=np.int32)
    number_ik = np.empty((min(n_rows, ROWS_AT_ONCE), n_topics), dtype=np.int64)
    number_i, next_k = np.empty(len(number_ik), dtype=np.int64), np.empty(n_topics, dtype=np.int64)
    for first in range(0, n_rows, ROWS_AT_ONCE):
        rows = min(n_rows - first, ROWS_AT_ONCE)
        for i in range(rows):
            d = first + i
            rate_k = theta_dk[d] * phi_total_k
            number_i[i] = draw_numbers(rate_k, 1.0 / alpha_d[d], source, uniform_t, number_ik[i], rng)
        if number_i[:rows].sum() > column_s.size:
            column_s = np.empty(2 * number_i[:rows].sum(), dtype=np.uint32)
        if number_i[:rows].max() > tokens[0].size:
            tokens = new_tokens(2 * number_i[:rows].max())
        draw_columns(number_ik[:rows], alias_kv, source, uniform_t, column_s, next_k)
        for i in range(rows):
            d = first + i
            list_positive(entries, d, report_v)
            fill_uniforms(source, number_i[i], tokens[2])
            n = list_tokens(number_ik[i], column_s, next_k, alpha_d[d] ** 2, report_v, tokens)
            for t in range(n):
                seen_v[tokens[0][t]] += 1
            fill_uniforms(source, n, tokens[2])
            factors, cells, counts = (theta_dk, d, phi_vk), (report_v, seen_v), (count_dk, count_vk)
            settle(n, tokens, alpha_d[d], factors, cells, counts, batch, source, rng)
            fill_uniforms(source, n, tokens[2])
            keep(n, tokens, d, cells, counts)


@subroutine
def settle(n, tokens, alpha, factors, cells, counts, batch, source, rng):
    """For each cell with more tokens than its report, keep them all at random or draw the count anew.

    seen_v is how many tokens a cell has. report_v becomes NOT_POSITIVE where all are kept, and minus the number to keep
    where the count is drawn anew.
    """
    column_t, _, uniform_t = tokens
    theta_dk, d, phi_vk = factors
    report_v, seen_v = cells
    column_i, report_i, rate_i, alpha_i, _, _ = batch
    m = 0
    for t in range(n):
        v = column_t[t]
        report, seen = report_v[v], seen_v[v]
        if seen <= report or report <= 0:
            continue
        if uniform_t[t] < (alpha * alpha) ** (seen - report):
            report_v[v] = NOT_POSITIVE
            continue
        report_v[v] = 0
        column_i[m] = v
        report_i[m] = report
        rate_i[m] = inner(theta_dk, d, phi_vk, v)
        alpha_i[m] = alpha
        m += 1
        if m == BATCH:
            draw_anew(m, batch, factors, cells, counts, source, rng)
            m = 0
    draw_anew(m, batch, factors, cells, counts, source, rng)


@subroutine
def draw_anew(n, batch, factors, cells, counts, source, rng):
    """Draw the counts of a batch of cells from their own laws. Tokens that a cell lacks are drawn and counted here."""
    report_v, seen_v = cells
    column_i, report_i, rate_i, _, count_i, _ = batch
    draw_counts(LAW, 0, n, batch, report_i[:0], source, rng)  # the same law in all rows
    for i in range(n):
        v = column_i[i]
        seen = np.int64(seen_v[v])
        report_v[v] = -min(count_i[i], seen)
        for _ in range(seen, count_i[i]):
            give(factors, v, rng.random() * rate_i[i], counts)


@subroutine
def give(factors, v, left, counts):
    """Count a token of the topic at which the running sum of theta_dk phi_vk passes ``left``."""
    theta_dk, d, phi_vk = factors
    count_dk, count_vk = counts
    chosen = 0
    for k in range(theta_dk.shape[1]):
        weight = theta_dk[d, k] * phi_vk[v, k]
        if weight > 0.0:
            chosen = k
            if left < weight:
                break
            left -= weight
    count_dk[d, chosen] += 1.0
    count_vk[v, chosen] += 1.0


@subroutine
def keep(n, tokens, d, cells, counts):
    """Count the tokens: all of a cell's, or a random subset of the size to keep. seen_v is zero afterwards."""
    column_t, topic_t, uniform_t = tokens
    report_v, seen_v = cells
    count_dk, count_vk = counts
    for t in range(n):
        v, k = column_t[t], topic_t[t]
        report, seen = report_v[v], seen_v[v]
        seen_v[v] = seen - 1
        if report <= 0:
            if uniform_t[t] * seen >= -report:
                continue
            report_v[v] = report + 1
        count_dk[d, k] += 1.0
        count_vk[v, k] += 1.0


@kernel
def propose_rest(entries, theta_dk, phi_total_k, alias_kv, count_dk, count_vk, rng):
    """Add the true counts of only the cells that are not stored, given theta and phi."""
    alpha_d = entries.level_d
    n_rows, n_topics = theta_dk.shape
    source, uniform_t = new_source(rng), np.empty(max(n_topics, TOKENS_AT_ONCE))
    report_v, number_k = np.empty(count_vk.shape[0], dtype=np.int32), np.empty(n_topics, dtype=np.int64)
    for d in range(n_rows):
        if draw_numbers(theta_dk[d] * phi_total_k, alpha_d[d], source, uniform_t, number_k, rng) == 0:
            continue
        list_positive(entries, d, report_v)
        for k in range(n_topics):
            for first in range(0, number_k[k], TOKENS_AT_ONCE):
                n = min(number_k[k] - first, TOKENS_AT_ONCE)
                fill_uniforms(source, n, uniform_t)
                for t in range(n):
                    v = column_of(uniform_t[t], k, alias_kv)
                    if report_v[v] == NOT_POSITIVE:
                        count_dk[d, k] += 1.0
                        count_vk[v, k] += 1.0
