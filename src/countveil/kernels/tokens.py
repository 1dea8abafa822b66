"""True counts of the cells of a block of rows by proposing tokens: the cost grows with the counts, not with the cells.

A token is a unit of a Poisson count, or a burst of a negative binomial count with its size. Let k(y) = P(report | y) be
log-concave in the count y, with k(0) > 0. In every cell, tokens of size n are proposed at k(n) / k(0) times the rate
that they have without a report. The l tokens of a cell are kept, all together, with the probability

    k(0)^(l - 1) k(sum of their sizes) / product of k(their sizes)  <=  1        (mathematics, equation 14.5)

and otherwise the cell's count is drawn anew from its own law. A proposal that is kept has the law of the count times
the probability of being kept, and a draw anew fills up the rest. A single token is always kept, so only cells with
several are looked at. A token is drawn together with its topic and its column, so no rate is computed, and nothing is
left to allocate.

A noise provides ``gain_of`` and ``burst_size`` of its k. A cell's *place* is 0 if the cell is not proposed: it is
visited, masked or known to be zero. The place of another cell is one more than the number of its code among those that
are proposed, or one more than the report itself if there are no codes, with 0 for reports that are not positive.

Suffixes are shapes, as in ``gibbs``; t is a token, c a place, g a group of rows with one level, n a p (of all cells, or
of a column), m a cell that is visited.
"""

import math
from typing import NamedTuple

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.entries import BATCH, MASKED, new_batch
from countveil.kernels.general import add_to_tally, likelihood_at
from countveil.kernels.gibbs import inner
from countveil.kernels.law import by_class, draw_counts
from countveil.kernels.random import fill_uniforms, new_source
from countveil.kernels.topics import give_to_topics, new_order, order_topics
from countveil.kernels.topics import new_tokens as new_topic_tokens
from countveil.kernels.windows import mean_count

LARGEST_REPORT = 2**31 - 2
LARGEST_SEARCHED = 12.0
TOKENS_AT_ONCE = 1024
ROWS_AT_ONCE = 256  # a topic's table stays in the cache while it serves them
MOST_TOKENS = 1 << 20  # that are drawn together, unless one row has more
EVEN = 0.5  # chance of a typical count, below which cells of many tokens are visited
MANY_UNITS = 1e9
PER_VISIT, PER_DEVIATION = (10.0, 20.0)  # tokens at the cost of a visit, and of each standard deviation of its count
STORED_SHARE = 8  # places are copied, not looked up, if one in so many cells of a row is stored
HALF, LOWER, PARTS = np.uint64(32), np.uint64(2**32 - 1), 2.0**32  # of a table's word


class Codes(NamedTuple):
    """The codes that are proposed, by place less one; all empty if places are those of reports."""

    code_c: np.ndarray
    ratio_c: np.ndarray  # k(1) / k(0)
    gain_cy: np.ndarray  # log k(y) / k(0) of the first counts
    place_v: np.ndarray  # of the cells of a column that are not stored; empty if places go by row


class Proposals(NamedTuple):
    """How tokens are proposed: topic k at the rate theta_dk total_k scale_g in a row of group g.

    A token on a cell with place c is kept with probability chance_gcn, the last c standing for all places beyond.
    """

    alias_kv: np.ndarray  # columns (see ``fill_aliases``)
    total_k: np.ndarray
    bound_n: np.ndarray  # scale_g bound_n chance_gcn is what a rate is multiplied by beside c
    scale_g: np.ndarray
    chance_gcn: np.ndarray
    unit_g: np.ndarray  # of the logarithms that ``gain_of`` gives
    codes: Codes
    few: float  # tokens for each cell of a row, up to which they are proposed
    many: float  # the same, beyond which cells are visited


@by_class
def gain_of(noise, codes, place, y):
    """log k(y) / k(0) in multiples of unit_g, of the report of a place."""
    raise NotImplementedError


@by_class
def burst_size(noise, p, place, level, chance, uniform, left, codes, rng):
    """A size in proportion to p^n / n k(n) / k(0); 0 for a token that is not kept after all.

    ``uniform`` is uniform from 0 to ``chance``, and ``left`` to the sum of these weights over n.
    """
    raise NotImplementedError


@by_class
def part_size(likelihood, noise, place, level, chance, uniform, left, codes, rng):
    """The size of a token: 1, or ``burst_size``."""
    raise NotImplementedError


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
def place_of(report, most):
    """The place of a stored entry: a report up to ``most``, or a code that is stored as -1 less its place."""
    return report + 1 if 0 < report <= most else max(-1 - report, 0)


@subroutine
def fill_places(codes, unstored, place_v):
    """place_v = the places of a row whose cells are not stored."""
    for v in range(place_v.size):
        place_v[v] = codes.place_v[v] if codes.place_v.size > 0 else unstored


@subroutine
def set_places(entries, d, most, place_v, visits):
    """place_v of row d's stored cells; lists those with positive reports that are visited, and returns their number."""
    indptr, columns, reports = entries.indptr, entries.columns, entries.reports
    column_m, report_m = visits
    m = 0
    if most == LARGEST_REPORT:  # none is visited: their counts do not reach larger reports
        for e in range(indptr[d], indptr[d + 1]):
            place_v[columns[e]] = min(np.int64(reports[e]), LARGEST_REPORT) + 1
        return m
    for e in range(indptr[d], indptr[d + 1]):
        report, v = np.int64(reports[e]), columns[e]
        place_v[v] = place_of(report, most)
        column_m[m], report_m[m] = v, report
        m += np.int64(report > most)
    return m


@subroutine
def reset_places(entries, d, unstored_v, place_v):
    """place_v of row d's stored cells as if they were not stored."""
    indptr, columns = entries.indptr, entries.columns
    if (indptr[d + 1] - indptr[d]) * STORED_SHARE > place_v.size:
        for v in range(place_v.size):
            place_v[v] = unstored_v[v]
        return
    for e in range(indptr[d], indptr[d + 1]):
        place_v[columns[e]] = unstored_v[columns[e]]


@subroutine
def report_of(codes, place):
    """The report of a place, or its code."""
    return codes.code_c[place - 1] if codes.code_c.size > 0 else place - 1


@subroutine
def list_proposed(m, codes, place_v, visits):
    """List all cells that are proposed, from m on; returns how many are listed."""
    column_m, report_m = visits
    for v in range(place_v.size):
        if place_v[v] > 0:
            column_m[m], report_m[m] = v, report_of(codes, np.int64(place_v[v]))
            m += 1
    return m


@subroutine
def new_cells(likelihood, n_columns):
    """Space for a row's cells: (place_v, the number of their tokens, the sums of their sizes and gains), 0."""
    bursts = n_columns if len(likelihood.parameters) > 0 else 0
    return (
        np.zeros(n_columns, dtype=np.int32), np.zeros(n_columns, dtype=np.int32),
        np.zeros(bursts, dtype=np.int64), np.zeros(bursts),
    )  # fmt: skip


@subroutine
def new_tokens(likelihood, size):
    """Space for tokens: (column_t, topic_t, uniform_t, size_t); units have no sizes."""
    columns, topics = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.uint32)
    sizes = np.empty(size if len(likelihood.parameters) > 0 else 0, dtype=np.int64)
    return columns, topics, np.empty(size), sizes


@subroutine
def list_kept(number_k, column_s, next_k, place_v, chance_cn, tokens):
    """List a row's tokens that are kept; returns how many. next_k moves on to the next row.

    uniform_t has a uniform for each token, and then, of bursts, that of each token in the list.
    """
    column_t, topic_t, uniform_t, size_t = tokens
    last, n, t = chance_cn.shape[0] - 1, 0, 0
    if size_t.size == 0:  # units, in a loop of their own: no more than is needed for each
        chance_c = np.ascontiguousarray(chance_cn[:, 0])
        for k in range(number_k.size):
            first, next_k[k] = next_k[k], next_k[k] + number_k[k]
            for s in range(first, next_k[k]):
                v = column_s[s]
                column_t[n] = v
                topic_t[n] = k
                n += np.int64(uniform_t[t] < chance_c[min(np.int64(place_v[v]), last)])
                t += 1
        return n
    by_column = np.int64(chance_cn.shape[1] > 1)
    for k in range(number_k.size):
        first, next_k[k] = next_k[k], next_k[k] + number_k[k]
        for s in range(first, next_k[k]):
            v = column_s[s]
            column_t[n] = v
            topic_t[n] = k
            uniform_t[n] = uniform_t[t]
            n += np.int64(uniform_t[t] < chance_cn[min(np.int64(place_v[v]), last), v * by_column])
            t += 1
    return n


@subroutine
def number_seen(n, column_t, seen_v):
    """Count the first n tokens of each cell."""
    for t in range(n):
        seen_v[column_t[t]] += 1


@subroutine
def add_up(n, pair, d, level, proposals, g, tokens, cells, rng):
    """Sizes of the first n tokens, and of each cell the number, the sizes and the gains of its tokens.

    Returns how many tokens are left in the list.
    """
    column_t, topic_t, uniform_t, size_t = tokens
    place_v, seen_v, sum_v, gain_v = cells
    scale, chance_cn, codes, m = proposals.scale_g[g], proposals.chance_gcn[g], proposals.codes, 0
    last, by_column = chance_cn.shape[0] - 1, chance_cn.shape[1] > 1
    for t in range(n):
        v = np.int64(column_t[t])
        place, column = np.int64(place_v[v]), v if by_column else 0
        chance, left = chance_cn[min(place, last), column], uniform_t[t] * scale * proposals.bound_n[column]
        cell = likelihood_at(pair.likelihood, d, v)
        size = part_size(cell, pair.noise, place, level, chance, uniform_t[t], left, codes, rng)
        if size > 0:
            column_t[m], topic_t[m], size_t[m] = v, topic_t[t], size
            seen_v[v] += 1
            sum_v[v] += size
            gain_v[v] += gain_of(pair.noise, codes, place, size)
            m += 1
    return m


@subroutine
def settle(n, pair, unit, codes, tokens, cells, m, visits):
    """Keep the tokens of each cell with several, or list it from m on; returns how many are listed.

    The place of a cell that is listed becomes minus the number of its tokens. What ``add_up`` added is 0 afterwards.
    uniform_t has a uniform for each token.
    """
    column_t, _, uniform_t, _ = tokens
    place_v, seen_v, sum_v, gain_v = cells
    column_m, report_m = visits
    for t in range(n):
        v = column_t[t]
        seen = np.int64(seen_v[v])
        seen_v[v] = 0  # a cell is settled at its first token
        if seen > 1:
            place = np.int64(place_v[v])
            if sum_v.size == 0:
                y, gains = seen, seen * gain_of(pair.noise, codes, place, 1)
            else:
                y, gains = sum_v[v], gain_v[v]
            excess = gains - gain_of(pair.noise, codes, place, y)
            if excess > 0.0 and uniform_t[t] >= math.exp(-excess * unit):
                column_m[m], report_m[m] = v, report_of(codes, place)
                place_v[v] = -seen
                m += 1
        if sum_v.size > 0:
            sum_v[v], gain_v[v] = 0, 0.0
    return m


@subroutine
def draw_anew(first, last, visits, law, d, level, factors, cells, sums, batch, source, rng):
    """Draw the counts of the listed cells that did not keep their tokens; these become the first of the new parts.

    The topics of parts do not depend on their number or their sizes. seen_v becomes how many tokens a cell has, and its
    place -1 less how many are used; parts beyond its tokens are counted here.
    """
    theta_dk, phi_vk, _ = factors
    place_v, seen_v, _, _ = cells
    count_dk, count_vk, tally = sums
    column_m, report_m = visits
    column_i, report_i, rate_i, level_i, count_i, _ = batch
    for start in range(first, last, BATCH):
        n = min(last - start, BATCH)
        for i in range(n):
            v, report = column_m[start + i], report_m[start + i]
            column_i[i], report_i[i], level_i[i], count_i[i] = v, report, level, report
            rate_i[i] = inner(theta_dk, d, phi_vk, v)
        draw_counts(law, d, n, batch, tally, source, rng)
        for i in range(n):
            v = column_i[i]
            seen = -np.int64(place_v[v])
            seen_v[v], place_v[v] = seen, -1 - min(count_i[i], seen)
            for _ in range(seen, count_i[i]):
                k = topic_at(theta_dk, d, phi_vk, v, rng.random() * inner(theta_dk, d, phi_vk, v))
                count_dk[d, k] += 1.0
                count_vk[v, k] += 1.0


@subroutine
def topic_at(theta_dk, d, phi_vk, v, left):
    """The topic at which the running sum of theta_dk phi_vk passes ``left``."""
    found = 0
    for k in range(theta_dk.shape[1]):
        weight = theta_dk[d, k] * phi_vk[v, k]
        if weight > 0.0:
            found = k
            if left < weight:
                break
            left -= weight
    return found


@subroutine
def count_kept(n, likelihood, d, tokens, cells, sums):
    """Count the tokens of cells that keep theirs, and as many as are used of those whose counts were drawn anew.

    uniform_t has a uniform for each token, if there are such cells.
    """
    column_t, topic_t, uniform_t, size_t = tokens
    place_v, seen_v, _, _ = cells
    count_dk, count_vk, tally = sums
    for t in range(n):
        v, k = np.int64(column_t[t]), topic_t[t]
        place = np.int64(place_v[v])
        if place < 0:  # a random subset, without regard to the order of topics
            left = seen_v[v]
            seen_v[v] = left - 1
            if uniform_t[t] * left >= -1 - place:
                continue
            place_v[v] = place + 1
        elif tally.size > 0:
            add_to_tally(likelihood, d, v, size_t[t], 1, tally)
        count_dk[d, k] += 1.0
        count_vk[v, k] += 1.0


@subroutine
def visit(m, visits, law, d, level, factors, sums, space, source, rng):
    """Draw the counts of the listed cells of a row one by one."""
    theta_dk, phi_vk, phi_total_k = factors
    count_dk, count_vk, tally = sums
    column_m, report_m = visits
    batch, tokens, order = space
    column_i, report_i, rate_i, level_i, count_i, _ = batch
    order_j, theta_j, place_h = order
    order_topics(theta_dk, d, phi_total_k, order_j, theta_j, place_h)
    for first in range(0, m, BATCH):
        n = min(m - first, BATCH)
        for i in range(n):
            v, report = column_m[first + i], report_m[first + i]
            column_i[i], report_i[i], level_i[i], count_i[i] = v, report, level, report
            rate_i[i] = inner(theta_dk, d, phi_vk, v)
        draw_counts(law, d, n, batch, tally, source, rng)
        give_to_topics(n, batch, tokens, order, phi_vk.T, count_dk[d], count_vk.T, source, rng)


@subroutine
def is_visited(pair, entries, d, expected, factors, unstored, proposals, g, most):
    """Whether a row's cells are visited, where some tokens are expected: if that costs less, or most are rejected.

    Tokens on cells that are visited anyway are for nothing. A visit sums over counts around the mode.
    """
    theta_dk, phi_vk, phi_total_k = factors
    first, last, codes = entries.indptr[d], entries.indptr[d + 1], proposals.codes
    rate, cells = 0.0, len(phi_vk) - (last - first)
    for k in range(theta_dk.shape[1]):
        rate += theta_dk[d, k] * phi_total_k[k]
    for e in range(first, last):
        if place_of(np.int64(entries.reports[e]), most) > 0:
            cells += 1
        else:
            rate -= inner(theta_dk, d, phi_vk, entries.columns[e])
    if expected <= proposals.few * cells:
        return False
    if expected > proposals.many * cells:
        return True
    rate, place = max(rate, 0.0) / max(cells, 1), max(np.int64(unstored), 1)
    typical = min(mean_count(likelihood_at(pair.likelihood, d, 0), rate), MANY_UNITS)
    if expected > (PER_VISIT + PER_DEVIATION * math.sqrt(typical)) * cells:
        return True
    y = np.int64(typical)
    excess = y * gain_of(pair.noise, codes, place, 1) - gain_of(pair.noise, codes, place, y)
    return math.exp(-max(excess, 0.0) * proposals.unit_g[g]) < EVEN


@subroutine
def draw_chunk(pair, entries, factors, proposals, places, most, first, space, source, rng):
    """The tokens' numbers by topic of some rows from ``first`` on; -1 for a row that is visited.

    Returns how many rows these are, and how many tokens they have.
    """
    number_ik, number_i, uniform_t = space
    group_d, unstored_d = places
    theta_dk, few, indptr, n_columns = factors[0], proposals.few, entries.indptr, len(factors[1])
    rows, total, n_rows = 0, 0, theta_dk.shape[0]
    while first + rows < n_rows and rows < len(number_i) and total < MOST_TOKENS:
        d = first + rows
        g = group_d[d]
        rate_k, scale = theta_dk[d] * proposals.total_k, proposals.scale_g[g]
        expected, stored = scale * rate_k.sum(), indptr[d + 1] - indptr[d]
        many = expected > few * (n_columns - stored)
        if many and is_visited(pair, entries, d, expected, factors, unstored_d[d], proposals, g, most):
            number_i[rows] = -1
            number_ik[rows] = 0
        else:
            number_i[rows] = draw_numbers(rate_k, scale, source, uniform_t, number_ik[rows], rng)
            total += number_i[rows]
        rows += 1
    return rows, total


@kernel
def propose_rows(law, pair, entries, factors, proposals, places, most, sums, rng):
    """Add the counts of all cells that are proposed or visited to the sums, given theta and phi.

    ``law`` is that of the reports, and ``pair`` the noise and the likelihood side by side. factors is (theta_dk,
    phi_vk, phi_total_k), sums (count_dk, count_vk, tally), places (group_d, unstored_d): of each row, and of its cells
    that are not stored. Positive reports up to ``most`` are proposed, others visited.
    """
    theta_dk, phi_vk, _ = factors
    group_d, unstored_d = places
    codes, (n_rows, n_topics), n_columns = proposals.codes, theta_dk.shape, phi_vk.shape[0]
    source, space = new_source(rng), (new_batch(), new_topic_tokens(), new_order(n_topics))
    tokens, cells = new_tokens(pair.likelihood, np.int64(0)), new_cells(pair.likelihood, n_columns)
    place_v, unstored_v = cells[0], np.empty(n_columns, dtype=np.int32)
    column_m, report_m = np.empty(n_columns + 1, dtype=np.uint32), np.empty(n_columns + 1, dtype=np.int64)
    visits, column_s = (column_m, report_m), np.empty(0, dtype=np.uint32)
    uniform_t = np.empty(max(n_topics, TOKENS_AT_ONCE))
    number_ik = np.empty((min(n_rows, ROWS_AT_ONCE), n_topics), dtype=np.int64)
    number_i, next_k = np.empty(len(number_ik), dtype=np.int64), np.empty(n_topics, dtype=np.int64)
    numbers, unstored, first = (number_ik, number_i, uniform_t), np.int64(-1), np.int64(0)
    while first < n_rows:
        rows, total = draw_chunk(pair, entries, factors, proposals, places, most, first, numbers, source, rng)
        if total > column_s.size:
            column_s = np.empty(2 * total, dtype=np.uint32)
        if number_i[:rows].max() > tokens[0].size:
            tokens = new_tokens(pair.likelihood, 2 * number_i[:rows].max())
        draw_columns(number_ik[:rows], proposals.alias_kv, source, uniform_t, column_s, next_k)
        for i in range(rows):
            d = first + i
            g, level = group_d[d], entries.level_d[d]
            if unstored_d[d] != unstored:
                unstored = np.int64(unstored_d[d])
                fill_places(codes, unstored, unstored_v)
                place_v[:] = unstored_v
            m = set_places(entries, d, most, place_v, visits)
            if number_i[i] < 0:
                m = list_proposed(m, codes, place_v, visits)
            else:
                fill_uniforms(source, number_i[i], tokens[2])
                n = list_kept(number_ik[i], column_s, next_k, place_v, proposals.chance_gcn[g], tokens)
                if cells[2].size == 0:
                    number_seen(n, tokens[0], cells[1])
                else:
                    n = add_up(n, pair, d, level, proposals, g, tokens, cells, rng)
                fill_uniforms(source, n, tokens[2])
                last = settle(n, pair, proposals.unit_g[g], codes, tokens, cells, m, visits)
                if last > m:
                    draw_anew(m, last, visits, law, d, level, factors, cells, sums, space[0], source, rng)
                    fill_uniforms(source, n, tokens[2])
                count_kept(n, pair.likelihood, d, tokens, cells, sums)
                for j in range(m, last):
                    place_v[column_m[j]] = unstored_v[column_m[j]]
            if m > 0:
                visit(m, visits, law, d, level, factors, sums, space, source, rng)
            reset_places(entries, d, unstored_v, place_v)
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
