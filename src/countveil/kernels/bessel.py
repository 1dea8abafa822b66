"""Draws from the Bessel distribution, exact and at a cost bounded over all orders and arguments.

With x the real mode, x (x + order) = (argument/2)^2, and u = n + 1/2 - x, Stirling's series about n + 1/2 gives

    log P(n) = constant - bend(u, x) - bend(u, x + order) + e(n + 1/2) + e(n + order + 1/2),
    bend(u, c) = (c + u) log(1 + u/c) - u = u^2/2c - u^3/6c^2 + u^4/12c^3 - ...,   0 < e(w) < 1/24w    (1)

which is nearly normal, with variance s^2 = x (x + order) / (2x + order). If the mode is small, draws are by inversion;
otherwise by rejection from a normal with an exponential right tail, nearly always without a logarithm.
"""

import math

from countveil.kernels.compiled import subroutine
from countveil.kernels.random import standard_exponential, standard_normal

INVERT_BELOW = 8.0
SERIES_TOLERANCE = 1e-17
TAIL_WEIGHT = 1.0 / 128.0
LOG_TAIL_ODDS = math.log(TAIL_WEIGHT / (1.0 - TAIL_WEIGHT) * 1.5 * math.sqrt(2.0 * math.pi))


@subroutine
def stirling_excess(w):
    """e(w) = w log w - w + log(2 pi)/2 - log Gamma(w + 1/2) for w = 1/2, 3/2, ..., to about 1e-15."""
    if w < 12.0:
        return w * math.log(w) - w + 0.9189385332046727 - math.lgamma(w + 0.5)
    i = 1.0 / (w * w)
    return (1 / 24 - (7 / 2880 - (31 / 40320 - (127 / 215040 - 511 / 608256 * i) * i) * i) * i) / w


@subroutine
def log_mass(n, order, x):
    """log P(n) up to a constant, from equation (1); n >= 0, x the real mode."""
    w = n + 0.5
    y = x + order
    u = w - x
    bends = (w * math.log1p(u / x) - u) + ((w + order) * math.log1p(u / y) - u)
    return stirling_excess(w) + stirling_excess(w + order) - bends


@subroutine
def invert(order, square, rng):
    """A draw by adding up the masses square^n / (n! (order + 1) ... (order + n)) up to a uniform part of their sum."""
    u = rng.random()
    if (1.0 - u) * (order + 1.0) >= square:  # the total is at most exp(square / (order + 1))
        return 0
    total = 1.0
    term = 1.0
    last = 0.0
    while term > SERIES_TOLERANCE * total:
        last += 1.0
        term *= square / (last * (last + order))
        total += term
    left = u * total - 1.0
    term = 1.0
    n = 0.0
    while left >= 0.0 and n < last:
        n += 1.0
        term *= square / (n * (n + order))
        left -= term
    return int(n)


@subroutine
def hat(order, square):
    """(x, r, lift, c2, c3, c4): the rejection's hat, and the sum of the bends, c2 u^2 - c3 u^3 + c4 u^4 - ...

    With r^2 = s^2 (1 + r/x) and u <= 3r, bend(u, x) + bend(u, x + order) >= u^2 / 2r^2 (Bernstein's inequality),
    and e + e <= 1/12s^2 wherever the bends do not make up for more. Proposals n = floor(x + v) have
    |u - v| <= 1/2, and (|u| + 1/2)^2 / 2(r + 1/4)^2 <= u^2 / 2r^2 + 1/(4r + 1/2), so that on the scale of (1)

        P(n) <= exp(lift - v^2 / 2(r + 1/4)^2),   lift = 1/12s^2 + 1/(4r + 1/2)

    Beyond 3r the bends are convex and P(n) <= exp(1/12s^2 - (v - 1/2) 1.5/r). An exponential of that slope, proposed
    with probability TAIL_WEIGHT, adds more than this to the hat. All of it holds for x >= INVERT_BELOW, so r >= 2.
    """
    root = math.sqrt(order * order + 4.0 * square)
    x = 2.0 * square / (root + order)
    i = 1.0 / x
    j = 1.0 / (x + order)
    variance = square / root
    excess = variance * i
    r = 0.5 * (excess + math.sqrt(excess * excess + 4.0 * variance))
    lift = (i + j) / 12.0 + 1.0 / (4.0 * r + 0.5)
    return x, r, lift, 0.5 * (i + j), (i * i + j * j) / 6.0, (i * i * i + j * j * j) / 12.0


@subroutine
def bracket(u, ratio, c2, c3, c4):
    """Bounds on log P(n) on the scale of (1), from the truncated series of the bends; for ratio = |u|/x <= 1/2.

    The next term, c5 |u|^5 <= 0.6 c4 u^4 ratio, bounds the rest for u > 0, where signs alternate; twice that
    bounds it for u < 0, where they do not. 0 < e + e < (1/x + 1/(x + order)) / 12.
    """
    u2 = u * u
    series = -u2 * (c2 - u * (c3 - u * c4))
    rest = 0.6 * c4 * u2 * u2 * ratio
    return series - 2.0 * rest, series + rest + c2 / 6.0


@subroutine
def reject(order, square, rng):
    """A draw by rejection from a normal with an exponential right tail; for a real mode of at least INVERT_BELOW.

    exp(d) is at least 1 + d + d^2/2 + d^3/6 and, for d < 0, at most 1 + d + d^2/2. Where these bounds at the ends of
    the bracket do not decide, logarithms are computed.
    """
    x, r, lift, c2, c3, c4 = hat(order, square)
    width = r + 0.25
    i = 1.0 / x
    while True:
        chance = rng.random()
        z = standard_normal(rng)
        v = width * z
        if chance < TAIL_WEIGHT or v >= 3.0 * r - 0.5:
            n = propose_tail(chance, v, order, x, r, lift, rng)
            if n >= 0:
                return n
            continue
        chance = (chance - TAIL_WEIGHT) * (1.0 / (1.0 - TAIL_WEIGHT))
        n = math.floor(x + v)
        u = n + 0.5 - x
        ratio = abs(u) * i
        log_hat = lift - 0.5 * z * z
        if ratio <= 0.5:
            low, high = bracket(u, ratio, c2, c3, c4)
            d = low - log_hat
            if chance <= 1.0 + d * (1.0 + d * (0.5 + d * (1.0 / 6.0))):
                return int(n)
            d = high - log_hat
            if d < 0.0 and chance >= 1.0 + d * (1.0 + 0.5 * d):
                continue
        if n >= 0.0 and math.log(chance) <= log_mass(n, order, x) - log_hat:
            return int(n)


@subroutine
def log_tail(v, r):
    """log of what the exponential adds to the hat at v >= 3r - 1/2, less lift."""
    return LOG_TAIL_ODDS + math.log((r + 0.25) / r) - (v - 3.0 * r + 0.5) * 1.5 / r


@subroutine
def propose_tail(chance, v, order, x, r, lift, rng):
    """The rest of a trial in the right tail, v >= 3r - 1/2, where normal and exponential propose; -1 if rejected."""
    if chance < TAIL_WEIGHT:
        v = 3.0 * r - 0.5 + standard_exponential(rng) * r / 1.5
    above = math.exp(-0.5 * (v / (r + 0.25)) ** 2) + math.exp(log_tail(v, r))
    n = math.floor(x + v)
    if rng.random() * above <= math.exp(log_mass(n, order, x) - lift):
        return int(n)
    return -1


@subroutine
def sample_bessel(order, argument, rng):
    """n with P(n) = (argument/2)^(2n + order) / (n! (n + order)! I_order(argument)); order >= 0, argument >= 0.

    Exact, in a time bounded over all orders and arguments. Source of the distribution: Yuan and Kalbfleisch (2000); of
    rejection in bounded time: Devroye (2002).
    """
    nu = float(order)
    square = 0.25 * argument * argument
    if square < INVERT_BELOW * (INVERT_BELOW + nu):
        return invert(nu, square, rng)
    return reject(nu, square, rng)


@subroutine
def bessel_mode(order, argument):
    """The most probable value, floor((sqrt(argument^2 + order^2) - order) / 2); order, argument >= 0."""
    if argument <= 0.0:
        return 0
    return int(0.5 * argument * argument / (order + math.sqrt(float(order) * order + argument * argument)))


@subroutine
def bessel_mean(order, argument):
    """(argument/2) I_(order+1)(argument) / I_order(argument), by masses about the mode; in time of the mode's root.

    |mean - mode| <= 1. Source: Yuan and Kalbfleisch (2000).
    """
    mode = bessel_mode(order, argument)
    square = 0.25 * argument * argument
    total = 1.0
    first = 0.0
    term = 1.0
    n = float(mode)
    while term * (n - mode + 1.0) > SERIES_TOLERANCE * total:
        n += 1.0
        term *= square / (n * (n + order))
        total += term
        first += (n - mode) * term
    term = 1.0
    n = float(mode)
    while n > 0.0 and term * (mode - n + 1.0) > SERIES_TOLERANCE * total:
        term *= n * (n + order) / square
        n -= 1.0
        total += term
        first -= (mode - n) * term
    return mode + first / total
