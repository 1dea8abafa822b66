"""Scalar laws of one report r of one count y, compiled: score it, expect its count, draw its count.

Given the rate mu and a positive report r, the count has weight w(y) = mu^y/y! alpha^|r - y| (mathematics, sections 2
and 9). Everything here comes from three sums of weights, below r, at r and above r, relative to a scale at which none
of them overflows (see ``weight_sums``). Zero and negative reports need no sums: y ~ Poisson(alpha mu).
"""

import math

from countveil.kernels.compiled import subroutine
from countveil.kernels.poisson import (
    INVERSION_LIMIT,
    RECIPROCALS,
    SERIES_TOLERANCE,
    invert_poisson,
    poisson_logpmf,
    sum_above,
    sum_below,
)
from countveil.laws.noise.two_sided_geometric.formulas import exposure, log_normaliser

STEEPEST = 0.75
LARGEST_MODE = 2.0**62


@subroutine
def weight_sums(r, rate, alpha):
    """(log scale, below, at, above): the sums of w(y) over y < r, y = r, y > r are e^(log scale) times these.

    For r > 0, rate > 0, 0 < alpha < 1; the scale includes e^-rate. Below r the weights are those of a
    Poisson(rate/alpha), above r of a Poisson(rate alpha). Where one of these has its mode on its own side of r,
    that piece holds at least a quarter of its Poisson's mass and sets the scale; otherwise both decrease away
    from r, and w(r) does. No difference of nearly equal numbers is ever taken.
    """
    lower = rate / alpha
    upper = rate * alpha
    if lower < r:
        at = math.exp(poisson_logpmf(r, lower))
        below = 1.0 - at * (1.0 + sum_above(r, lower))
        scale = lower * exposure(alpha) + r * math.log(alpha)
        return scale, below, at, at * sum_above(r, upper)
    if upper > r + 1:
        at = math.exp(poisson_logpmf(r, upper))
        above = 1.0 - at * (1.0 + sum_below(r, upper))
        scale = -rate * exposure(alpha) - r * math.log(alpha)
        return scale, at * sum_below(r, lower), at, above
    return poisson_logpmf(r, rate), sum_below(r, lower), 1.0, sum_above(r, upper)


@subroutine
def report_logpmf(r, rate, alpha):
    """log P(r | rate, alpha): a Poisson count plus two-sided geometric noise (mathematics, equation 2.2)."""
    if alpha <= 0.0:
        return poisson_logpmf(r, rate) if r >= 0 else -math.inf
    log_constant = log_normaliser(alpha)
    if r <= 0 or rate <= 0.0:
        return log_constant + abs(r) * math.log(alpha) - exposure(alpha) * rate
    scale, below, at, above = weight_sums(r, rate, alpha)
    return log_constant + scale + math.log(below + at + above)


@subroutine
def censored_logpmf(rate, alpha):
    """log P(r <= 0 | rate, alpha) = -(1 - alpha) rate - log(1 + alpha): the score of a truncated report (2.6)."""
    return -exposure(alpha) * rate - math.log1p(alpha)


@subroutine
def expected_count_ratio(r, rate, alpha):
    """E[y | r, rate] / rate, r > 0, 0 < alpha < 1 (mathematics, equations 2.3, 9.3); its limit at rate 0 is 1/alpha."""
    if rate <= 0.0:
        return 1.0 / alpha
    _, below, at, above = weight_sums(r, rate, alpha)
    return (below / alpha + alpha * (at + above)) / (below + at + above)


@subroutine
def expected_count(r, rate, alpha):
    """E[y | r, rate, alpha] for any report."""
    if alpha <= 0.0:
        return float(r)
    if r <= 0:
        return alpha * rate
    return rate * expected_count_ratio(r, rate, alpha)


@subroutine
def reject_from_poisson(r, mean, below, alpha, rng):
    """A draw of y by rejection from the Poisson law that w(y) follows on one side of r, ``below`` r or above it.

    On the other side w(y) is smaller than the law's mass by a factor of alpha^2 per step. ``mean`` is rate/alpha or
    rate alpha, and lies on the law's own side of r, so that about half of the trials or more are accepted.
    """
    while True:
        y = invert_poisson(mean, rng)
        over = y - r if below else r - y
        if over <= 0 or rng.random() < alpha ** (2 * over):
            return y


@subroutine
def reject_from_tails(r, left_ratio, right_ratio, rng):
    """A draw of y by rejection from r with a geometric tail on each side; for weights that are largest at r.

    left_ratio = r alpha / rate = w(r-1) / w(r) and right_ratio = rate alpha / (r+1) = w(r+1) / w(r) are below one, and
    bound the ratios of all later steps away from r, which are smaller by (r-j)/r and (r+1)/(r+1+j).
    """
    left_mass = left_ratio / (1.0 - left_ratio)
    right_mass = right_ratio / (1.0 - right_ratio)
    while True:
        rest = rng.random() * (1.0 + left_mass + right_mass) - 1.0
        if rest < 0.0:
            return r
        steps, taken = 1, 1.0
        if rest < left_mass:
            term = left_ratio
            while rest >= term and steps <= r:
                rest -= term
                term *= left_ratio
                taken *= (r - steps) / r
                steps += 1
            if steps <= r and (steps == 1 or rng.random() < taken):
                return r - steps
        else:
            rest -= left_mass
            term = right_ratio
            while rest >= term and term > SERIES_TOLERANCE:
                rest -= term
                term *= right_ratio
                taken *= (r + 1) / (r + 1 + steps)
                steps += 1
            if steps == 1 or rng.random() < taken:
                return r + steps


@subroutine
def invert_from_report(r, lower, upper, u):
    """The count at which the sum of w(y) over r, r - 1, ..., 0, r + 1, r + 2, ... passes u of its total; lower >= r."""
    below = sum_below(r, lower)
    above = 0.0
    term = 1.0
    y = r
    while term > SERIES_TOLERANCE:
        y += 1
        term *= upper * RECIPROCALS[y]
        above += term
    left = u * (1.0 + below + above) - 1.0
    if left < 0.0:
        return r
    term = 1.0
    if left < below:
        y = r
        inverse = 1.0 / lower
        while left >= 0.0 and y > 0:
            term *= y * inverse
            y -= 1
            left -= term
        return y
    left -= below
    y = r
    while left >= 0.0 and term > SERIES_TOLERANCE:
        y += 1
        term *= upper * RECIPROCALS[y]
        left -= term
    return max(y, r + 1)


@subroutine
def log_weight(y, r, rate, log_alpha):
    """log w(y) up to a constant, accurate at any size."""
    return poisson_logpmf(y, rate) + abs(r - y) * log_alpha


@subroutine
def log_step(y, r, rate, log_alpha):
    """log w(y) - log w(y-1) for y >= 1."""
    return math.log(rate) - math.log(y) + (-log_alpha if y <= r else log_alpha)


@subroutine
def reach(slope, mode):
    """How far from the mode a log-concave law with this slope there and Poisson curvature drops by about one."""
    return max(1, int(2.0 / (abs(slope) + math.sqrt(slope * slope + 2.0 / (mode + 1.0)))))


@subroutine
def reject_log_concave(r, rate, alpha, rng):
    """A draw of y by rejection from a flat middle and two geometric tails, which bound any log-concave law.

    The expected number of trials is below about three at any r, rate and alpha (after Devroye 1986, chapter X).
    """
    log_alpha = math.log(alpha)
    lower = rate / alpha
    upper = rate * alpha
    mode = int(lower) if lower < r else (int(min(upper, LARGEST_MODE)) if upper > r else r)
    peak = log_weight(mode, r, rate, log_alpha)

    right = mode + reach(log_step(mode + 1, r, rate, log_alpha), mode)
    right_height = log_weight(right, r, rate, log_alpha) - peak
    right_slope = log_step(right + 1, r, rate, log_alpha)
    right_mass = math.exp(right_height) / -math.expm1(right_slope)

    left = -1
    left_height = left_slope = left_mass = 0.0
    if mode > 0:
        left = mode - reach(log_step(mode, r, rate, log_alpha), mode)
        if left >= 0:
            left_height = log_weight(left, r, rate, log_alpha) - peak
            left_slope = -log_step(left, r, rate, log_alpha) if left > 0 else -math.inf
            left_mass = math.exp(left_height) / -math.expm1(left_slope)
        else:
            left = -1
    middle_mass = float(right - left - 1)

    while True:
        u = rng.random() * (middle_mass + right_mass + left_mass)
        if u < middle_mass:
            y = left + 1 + int(u)
            bound = 0.0
        elif u < middle_mass + right_mass:
            step = int(math.log(1.0 - rng.random()) / right_slope)
            y = right + step
            bound = right_height + step * right_slope
        elif left == 0:
            y = 0
            bound = left_height
        else:
            step = int(math.log(1.0 - rng.random()) / left_slope)
            y = left - step
            if y < 0:
                continue
            bound = left_height + step * left_slope
        if math.log(1.0 - rng.random()) <= log_weight(y, r, rate, log_alpha) - peak - bound:
            return y


@subroutine
def sample_count_given_positive(r, rate, alpha, rng):
    """A draw of the true count given a positive report (mathematics, equation 2.1)."""
    if alpha <= 0.0:
        return r
    if not rate > 0.0:
        return 0
    lower = rate / alpha
    upper = rate * alpha
    if r < INVERSION_LIMIT and upper < INVERSION_LIMIT:
        below = lower < r
        if below or upper > r + 1:
            return reject_from_poisson(r, lower if below else upper, below, alpha, rng)
        left_ratio, right_ratio = r / lower, upper / (r + 1)
        if left_ratio < STEEPEST and right_ratio < STEEPEST:
            return reject_from_tails(r, left_ratio, right_ratio, rng)
        return invert_from_report(r, lower, upper, rng.random())
    return reject_log_concave(r, rate, alpha, rng)


@subroutine
def sample_count(r, rate, alpha, rng):
    """A draw of the true count given any report: Poisson(alpha rate) where the report is not positive (2.4)."""
    if r > 0 or alpha <= 0.0:
        return sample_count_given_positive(r, rate, alpha, rng)
    return rng.poisson(alpha * rate)


# Both tails come from the same three numbers: with A = sum_{y <= k} P(y) alpha^(k - y) and B = sum_{y > k}
# P(y) alpha^(y - k), the noise's own tails summed over the count y give     P(r <= k) = P(y <= k) + (B -
# alpha A) / (1 + alpha),     P(r > k) = P(y > k) + (alpha A - B) / (1 + alpha). A <= P(y <= k) and B <= alpha
# P(y > k), so what is subtracted is never more than half of what it is taken from.


@subroutine
def log_sum(log_a, log_b, factor):
    """log(a + factor b), for a sum known to be positive."""
    top = max(log_a, log_b)
    if top == -math.inf:
        return top
    return top + math.log(math.exp(log_a - top) + factor * math.exp(log_b - top))


@subroutine
def lower_tail(k, rate, alpha):
    """log P(r <= k), for k below the rate."""
    if alpha > 0.0 and k <= 0:
        return censored_logpmf(rate, alpha) - k * math.log(alpha)
    if k < 0:
        return -math.inf
    log_count = poisson_logpmf(k, rate) + math.log1p(sum_below(k, rate))
    if alpha <= 0.0:
        return log_count
    scale, below, at, above = weight_sums(k, rate, alpha)
    return log_sum(log_count, scale, (above - alpha * (below + at)) / (1.0 + alpha))


@subroutine
def upper_tail(k, rate, alpha):
    """log P(r > k), for k >= 0 above the rate less one."""
    log_count = poisson_logpmf(k + 1, rate) + math.log1p(sum_above(k + 1, rate))
    if alpha <= 0.0:
        return log_count
    if k == 0:
        return math.log(alpha - math.expm1(-exposure(alpha) * rate)) - math.log1p(alpha)
    if rate <= 0.0:
        return (k + 1) * math.log(alpha) - math.log1p(alpha)
    scale, below, at, above = weight_sums(k, rate, alpha)
    return log_sum(log_count, scale, (alpha * (below + at) - above) / (1.0 + alpha))
