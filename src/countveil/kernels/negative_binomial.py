"""The negative binomial distribution, compiled: log mass, and the bursts that a count comes in.

A count of NB(s, p) comes in bursts: their number is Poisson with mean -s log(1 - p), and each has a logarithmic size
(mathematics, section 13). Given the count, the number of bursts is that of occupied tables in a Chinese restaurant.
"""

import math

import numpy as np

from countveil.kernels.compiled import subroutine
from countveil.kernels.entries import BATCH
from countveil.kernels.poisson import HALF_LOG_TWO_PI, poisson_deviance, stirling_error
from countveil.kernels.random import binomial, digamma, fill_uniforms

FEW = 16
SEVERAL = 16
FIRST_JUMP = 64  # up to here every unit of a count is visited
MANY, OFTEN = 500, 6.0  # counts and shapes above which bursts are drawn in blocks
ALL_BEGIN = 1e100  # shape above which every unit of a count begins a burst
SMALLEST_UNIFORM = 2.0**-54  # below all uniforms but 0


@subroutine
def log_rising(s, n):
    """log of Gamma(s + n) / (Gamma(s) n!), without differences of logarithms that are far larger than it."""
    if n <= FEW:
        product = 1.0
        for i in range(n):
            product *= (s + i) / (i + 1.0)
        return math.log(product)
    if s > n:
        grown = n * math.log(s) + (s + n - 0.5) * math.log1p(n / s) - n
        return grown + stirling_error(s + n) - stirling_error(s) - math.lgamma(n + 1.0)
    beyond = s - 1.0
    grown = beyond * math.log(n + 1.0) + (n + s - 0.5) * math.log1p(beyond / (n + 1.0)) - beyond
    return grown + stirling_error(s + n) - stirling_error(n + 1.0) - math.lgamma(s)


@subroutine
def negative_binomial_logpmf(n, s, p):
    """log of Gamma(s + n) / (Gamma(s) n!) (1 - p)^s p^n (13.1); if both are large by the saddle point (Loader 2000)."""
    if n > FEW and s > FEW:
        x, size = float(n), s + n
        near = stirling_error(size) - stirling_error(s) - stirling_error(x)
        far = poisson_deviance(s, size * (1.0 - p)) + poisson_deviance(x, size * p)
        return 0.5 * math.log(s / (size * x)) - HALF_LOG_TWO_PI + near - far
    return log_rising(s, n) + s * math.log1p(-p) + n * math.log(p)


@subroutine
def expected_bursts(n, s):
    """s (digamma(s + n) - digamma(s)), the mean number of bursts of a count n of NB(s, p) (13.4)."""
    if n == 0:
        return 0.0
    if s < 1.0:  # the first burst is certain
        return 1.0 + s * (digamma(s + n) - digamma(s + 1.0))
    if s < 100.0:
        return s * (digamma(s + n) - digamma(s))
    end = s + n
    square = 1.0 / (s * s) - 1.0 / (end * end)  # of the asymptotic series, difference by difference
    series = n / (2.0 * s * end) + square / 12.0 - square * (1.0 / (s * s) + 1.0 / (end * end)) / 120.0
    return s * (math.log1p(n / s) + series)


@subroutine
def log_none_before(k, s):
    """log Gamma(k) - log Gamma(s + k) for k >= FIRST_JUMP: differences are log P(no burst begins in between)."""
    return s - s * math.log(k) - (k + s - 0.5) * math.log1p(s / k) + stirling_error(float(k)) - stirling_error(s + k)


@subroutine
def next_burst(k, n, s, uniform):
    """The first unit from k on, k >= FIRST_JUMP, at which a burst begins; n if there is none before n.

    It is the greatest j with P(none from k to j - 1) > uniform, found by inversion from a close guess.
    """
    target = math.log(uniform) + log_none_before(k, s)
    if log_none_before(n, s) > target:
        return n
    middle = 0.5 * (s - 1.0)
    log_guess = math.log(k + middle) - math.log(uniform) / s
    j = n - 1
    if log_guess < math.log(n + middle):
        j = min(max(int(math.exp(log_guess) - middle), k), n - 1)
    while j > k and log_none_before(j, s) <= target:
        j -= 1
    while j + 1 < n and log_none_before(j + 1, s) > target:
        j += 1
    return j


@subroutine
def draw_bursts(n, s, rng):
    """The number of bursts of a count n of NB(s, p): sum over i < n of Bernoulli(s / (s + i)) (13.4).

    The work does not grow with the count: rare bursts are found by inversion, frequent ones are drawn in blocks.
    """
    if n > MANY and s > OFTEN:
        return 1 + draw_bursts_in_blocks(n, min(s, ALL_BEGIN), rng)
    one_by_one = min(n, max(FIRST_JUMP, int(min(8.0 * s, float(n)))))
    bursts = min(n, 1)
    for i in range(1, one_by_one):
        if rng.random() * (s + i) < s:
            bursts += 1
    i = one_by_one
    while i < n:
        i = next_burst(i, n, s, 1.0 - rng.random())
        if i < n:
            bursts += 1
            i += 1
    return bursts


@subroutine
def draw_bursts_in_blocks(n, s, rng):
    """Bursts that begin at units 1 to n - 1: an exact draw by about 3 min(s, n)^(1/3) log(n / s) binomials.

    In a block of units a to b - 1, unit i is paired with unit j = a + b - 1 - i. With C = s^2 + s (i + j), which all
    pairs of the block share, no burst begins at either of the two with probability i j / (C + i j); otherwise bursts
    begin at both with probability s / (s + i + j). Since i j hardly changes, the pairs in which a burst begins are a
    binomial number with the least of their probabilities, plus some of the few candidates for the excess over it. The
    length of a block is such that one candidate is expected at most. All products are divided by s^2.
    """
    bursts, a = np.int64(0), np.int64(1)
    while a < n:
        grown = (s + a) ** (2.0 / 3.0) * ((s + a) / s * ((s + a) / (s + 2.0 * a))) ** (1.0 / 3.0)
        pairs = min(np.int64(min(grown, float(n))), (n - a) // 2)
        if pairs == 0:
            bursts += np.int64(rng.random() * (s + a) < s)
            a += 1
            continue
        length = 2.0 * pairs
        end, sum_of_two = a + length - 1.0, 2.0 * a + length - 1.0
        both = s / (s + sum_of_two)
        c = 1.0 + sum_of_two / s
        least, most = (a / s) * (end / s), (0.5 * sum_of_two / s) ** 2
        begun = binomial(pairs, c / (c + most), rng)
        widest = (0.5 * (length - 1.0) / s) ** 2  # most - least
        candidates = binomial(pairs - begun, c / (c + least) * (widest / most), rng)
        place_j = np.empty(candidates, dtype=np.int64)
        for j in range(candidates):
            place_j[j] = another_place(place_j, j, pairs, rng)
            product = ((a + place_j[j]) / s) * ((end - place_j[j]) / s)
            gap = (0.5 * (length - 1.0) - place_j[j]) / s  # most - product is its square
            if rng.random() * widest * (c + product) < gap * gap * (c + least):
                begun += 1
        bursts += begun + binomial(begun, both, rng)
        a += 2 * pairs
    return bursts


@subroutine
def another_place(place_j, known, n, rng):
    """One of n places at random, except the first ``known`` ones of place_j."""
    while True:
        place = min(np.int64(rng.random() * n), n - 1)
        new = True
        for j in range(known):
            new = new and place_j[j] != place
        if new:
            return place


@subroutine
def logarithmic_size(p, uniform, rng):
    """A draw from P(j) = p^j / (-j log(1 - p)), at a cost that does not grow with it (Kemp 1981).

    Given q = 1 - (1 - p)^U for a uniform U, the size is geometric with parameter q: the least j with q^j <= uniform.
    """
    if uniform >= p:  # as q < p
        return np.int64(1)
    rest = (1.0 - p) ** rng.random()
    return np.int64(1.0 + math.log(max(uniform, SMALLEST_UNIFORM)) / math.log1p(-rest))


@subroutine
def draw_bursts_of_all(n, count_i, shape_i, bursts_i, source, rng):
    """bursts_i of count_i with shape_i, by uniforms in bulk where counts are up to SEVERAL."""
    uniform_t, m = np.empty(BATCH * SEVERAL), np.int64(0)
    for i in range(n):
        m += count_i[i] - 1 if 1 < count_i[i] <= SEVERAL else 0
    fill_uniforms(source, m, uniform_t)
    t = np.int64(0)
    for i in range(n):
        count, s = count_i[i], shape_i[i]
        bursts = min(count, 1)
        if count > SEVERAL:
            bursts = draw_bursts(count, s, rng)
        else:
            for before in range(1, count):
                bursts += np.int64(uniform_t[t] * (s + before) < s)
                t += 1
        bursts_i[i] = bursts
