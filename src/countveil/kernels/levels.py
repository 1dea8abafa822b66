"""Levels of items over time, compiled: one chain for each item, all with one persistence (mathematics, section 17).

    l_t ~ Gamma(s m_t, s),   m_t = rho l_(t-1) + 1 - rho,   m_0 = 1

Given counts n_t, each a Poisson variable of mean e_t l_t, the pass backwards draws tables with the levels integrated
out, and the pass forwards draws the levels, as in ``dynamics``, in units of 1 / s.

Suffixes are shapes: t steps, n items.
"""

import math

import numpy as np

from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.negative_binomial import draw_bursts
from countveil.kernels.random import (
    SMALLEST,
    binomial,
    fill_uniforms,
    new_source,
    sample_gamma,
    standard_exponential,
    standard_normal,
)

MANY = 256
LEAST_STEP, MOST_STEP = 0.03, 3.0  # of a logarithm or a logit, whatever the state


@subroutine
def draw_tables(customers, concentration, source, uniform_t, rng):
    """CRT(customers, concentration), with uniforms in bulk unless there are MANY customers."""
    if customers >= MANY:
        return draw_bursts(customers, concentration, rng)
    fill_uniforms(source, customers, uniform_t)
    tables = np.int64(0)
    for i in range(customers):
        tables += np.int64(uniform_t[i] * (concentration + i) < concentration)
    return tables


@kernel
def draw_levels(count_tn, exposure_tn, smoothness_n, rho, item_i, level_tn, rng):
    """Replace the levels of some items by a draw given their counts and exposures."""
    n_steps = count_tn.shape[0]
    total_t, rate_t = np.empty(n_steps), np.empty(n_steps)
    source, uniform_t = new_source(rng), np.empty(MANY)
    for n in item_i:
        s, carried, zeta = smoothness_n[n], np.int64(0), 0.0
        rest = (1.0 - rho) * s
        for t in range(n_steps - 1, -1, -1):
            total = np.int64(count_tn[t, n]) + carried
            above = exposure_tn[t, n] / s + rho * zeta
            total_t[t], rate_t[t] = total, 1.0 + above
            zeta = math.log1p(above)
            carried = np.int64(0)
            if total > 0 and t > 0:
                before = rho * s * level_tn[t - 1, n]
                tables = draw_tables(total, before + rest, source, uniform_t, rng)
                carried = np.int64(binomial(tables, before / (before + rest), rng))
        shape = s
        for t in range(n_steps):
            drawn = sample_gamma(shape + total_t[t], rate_t[t], rng) / s
            level_tn[t, n] = max(drawn, SMALLEST)
            shape = rho * s * level_tn[t, n] + rest


@subroutine
def step_of(rng):
    """A step whose scale is random, so that none has to be tuned."""
    between = math.log(LEAST_STEP) + rng.random() * math.log(MOST_STEP / LEAST_STEP)
    return math.exp(between) * standard_normal(rng)


@subroutine
def log_chain(level_tn, n, s, rho):
    """log p of the logarithms of an item's levels."""
    found, mean, log_s = 0.0, 1.0, math.log(s)
    for t in range(level_tn.shape[0]):
        a, now = s * mean, level_tn[t, n]
        found += a * (log_s + math.log(now)) - s * now - math.lgamma(a)
        mean = rho * now + 1.0 - rho
    return found


@subroutine
def stretch(level_tn, n, rho, new_rho, times, new_tn):
    """Fill new_tn with levels whose log(l_t / m_t) are those of level_tn, ``times`` as large, under the new rho."""
    mean, new_mean = 1.0, 1.0
    for t in range(level_tn.shape[0]):
        new = new_mean * math.exp(times * math.log(level_tn[t, n] / mean))
        new_tn[t, n] = min(max(new, SMALLEST), 1.0 / SMALLEST)
        mean, new_mean = rho * level_tn[t, n] + 1.0 - rho, new_rho * new_tn[t, n] + 1.0 - new_rho


@subroutine
def log_ratio(count_tn, exposure_tn, level_tn, new_tn, n):
    """The logarithm of P(counts of an item at its new levels) over that at the present ones."""
    found = 0.0
    for t in range(level_tn.shape[0]):
        if exposure_tn[t, n] > 0.0 or count_tn[t, n] > 0.0:
            found += count_tn[t, n] * math.log(new_tn[t, n] / level_tn[t, n])
            found -= exposure_tn[t, n] * (new_tn[t, n] - level_tn[t, n])
    return found


@kernel
def move_smoothness(count_tn, exposure_tn, rho, middle, spread, stretched, item_i, log_n, level_tn, rng):
    """A Metropolis step of log_n, log(s - 1), of some items, whose prior is Normal(middle, spread^2).

    Given the levels, or ``stretched``, with them: the logarithms of l_t / m_t are multiplied by sqrt(s / s').
    """
    n_steps, n_items = level_tn.shape
    new_tn = np.empty((n_steps, n_items)) if stretched else level_tn
    for n in item_i:
        now = log_n[n]
        new = now + step_of(rng)
        s, new_s = 1.0 + math.exp(now), 1.0 + math.exp(new)
        change = 0.5 * ((now - middle) ** 2 - (new - middle) ** 2) / spread**2
        if stretched:
            times = math.sqrt(s / new_s)
            stretch(level_tn, n, rho, rho, times, new_tn)
            change += n_steps * math.log(times) + log_ratio(count_tn, exposure_tn, level_tn, new_tn, n)
        change += log_chain(new_tn, n, new_s, rho) - log_chain(level_tn, n, s, rho)
        if change > -standard_exponential(rng):
            log_n[n] = new
            for t in range(n_steps):
                level_tn[t, n] = new_tn[t, n]


@kernel
def move_persistence(count_tn, exposure_tn, smoothness_n, most, stretched, rho, level_tn, rng):
    """The persistence after a Metropolis step of the logit of rho / most, whose prior is uniform; all items share it.

    Given the levels, or ``stretched``, with them: the logarithms of l_t / m_t stay as they are.
    """
    n_steps, n_items = level_tn.shape
    new_tn = np.empty((n_steps, n_items)) if stretched else level_tn
    now = math.log(rho / (most - rho))
    new = now + step_of(rng)
    new_rho = most / (1.0 + math.exp(-new))
    change = abs(now) - abs(new) + 2.0 * (math.log1p(math.exp(-abs(now))) - math.log1p(math.exp(-abs(new))))
    for n in range(n_items):
        if stretched:
            stretch(level_tn, n, rho, new_rho, 1.0, new_tn)
            change += log_ratio(count_tn, exposure_tn, level_tn, new_tn, n)
        s = smoothness_n[n]
        change += log_chain(new_tn, n, s, new_rho) - log_chain(level_tn, n, s, rho)
    if not change > -standard_exponential(rng):
        return rho
    if stretched:
        level_tn[:] = new_tn
    return new_rho
