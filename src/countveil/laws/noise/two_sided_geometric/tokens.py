"""What sweeps by tokens ask of two-sided geometric noise (``kernels.tokens``).

Up to a constant, k(y) is alpha^-g(y) with g(y) = min(y, 2 r - y), where r = 0 stands for all reports that are not
positive: there g(y) = -y, and a cell always keeps its tokens.

Suffixes are shapes: g a group of rows of one level, r a report, n a p.
"""

import math

from countveil.kernels import tokens
from countveil.kernels.compiled import kernel, subroutine
from countveil.kernels.law import provides
from countveil.laws.noise.two_sided_geometric.noise import TwoSidedGeometricKernel

NEGLIGIBLE = 1e-17  # size's weight over that of size 1


@provides(tokens.gain_of, TwoSidedGeometricKernel)
def gain_of(noise, codes, place, y):
    """g(y): how many powers of alpha the count y gains over the count 0."""
    return float(min(y, 2 * (place - 1) - y))


@provides(tokens.burst_size, TwoSidedGeometricKernel)
def burst_size(noise, p, place, level, chance, uniform, left, codes, rng):
    """By search, from size 1 on."""
    return size_of(left, place - 1, p, level)


@subroutine
def size_of(left, r, p, alpha):
    """The size at which the running sum of p^n / n alpha^-g(n) passes ``left``."""
    lower, upper = p / alpha, p * alpha
    size, weight = 1, lower if r > 0 else upper
    least = NEGLIGIBLE * weight
    while left >= weight and (size <= r or weight > least):
        left -= weight
        size += 1
        weight *= (lower if size <= r else upper) * (size - 1) / size
    return size


@kernel
def fill_masses(alpha_g, p_n, mass_grn):
    """mass_grn = sum over j > 0 of p^j / j alpha^-g(j) for every report r from 0 on."""
    n_reports = mass_grn.shape[1]
    for g in range(alpha_g.size):
        for n in range(p_n.size):
            lower, upper = p_n[n] / alpha_g[g], p_n[n] * alpha_g[g]
            tail = tail_of_sizes(n_reports - 1, upper)
            for r in range(n_reports - 1, -1, -1):  # sums of what is positive
                mass_grn[g, r, n] = tail * (1.0 / alpha_g[g]) ** (2 * r)
                if r > 0:
                    tail += upper**r / r
            head = 0.0
            for r in range(1, n_reports):
                head += lower**r / r
                mass_grn[g, r, n] += head


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
