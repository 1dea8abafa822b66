"""The Skellam distribution, compiled: log mass and log tails of a Poisson variable less another."""

import math
from typing import Any

from countveil.kernels.compiled import elementwise, kernel
from countveil.kernels.poisson import poisson_logpmf, sum_above
from countveil.kernels.series import balance_point, log_complement, sum_downwards, sum_upwards

NEGLIGIBLE = 1e-22


@elementwise
def skellam_logpmf(k: Any, rate1: Any, rate2: Any) -> Any:
    """log P(N1 - N2 = k)."""
    order, high, low = (k, rate1, rate2) if k >= 0 else (-k, rate2, rate1)
    n = int(balance_point(order, math.sqrt(low) * math.sqrt(high)))
    at_n = poisson_logpmf(n, low) + poisson_logpmf(n + order, high)
    return at_n + math.log1p(sum_upwards(n, order, low, high) + sum_downwards(n, order, low, high))


@kernel
def _upper_tail(k: int, rate1: float, rate2: float) -> float:
    """log P(N1 - N2 > k), for k above the mean less one: the sum over n of P(N2 = n) P(N1 > n + k).

    The summand is log-concave in n. The sum runs downwards, because P(N1 > x - 1) = P(N1 > x) + P(N1 = x)
    only adds. Everything is relative to P(N2 = n) P(N1 = n + k) at the n where that is largest.
    """
    n = int(balance_point(abs(k), math.sqrt(rate1) * math.sqrt(rate2))) + max(0, -k)
    scale = poisson_logpmf(n, rate2) + poisson_logpmf(n + k, rate1)
    mass = 1.0
    while True:
        step = (rate2 / (n + 1.0)) * (rate1 / (n + k + 1.0))
        if mass * step <= NEGLIGIBLE:
            break
        mass *= step
        n += 1
    tail = mass * sum_above(n + k, rate1)
    total = tail
    while n > 0:
        tail = (tail + mass) * (n / rate2)
        mass = mass * (n / rate2) * ((n + k) / rate1) if n + k > 0 else 0.0
        n -= 1
        total += tail
        if tail + mass <= NEGLIGIBLE * total:
            break
    return scale + math.log(total) if total > 0.0 and scale > -math.inf else -math.inf


@elementwise
def skellam_logsf(k: Any, rate1: Any, rate2: Any) -> Any:
    """log P(N1 - N2 > k)."""
    if k > rate1 - rate2 - 1.0:
        return _upper_tail(k, rate1, rate2)
    return log_complement(_upper_tail(-k - 1, rate2, rate1))


@elementwise
def skellam_logcdf(k: Any, rate1: Any, rate2: Any) -> Any:
    """log P(N1 - N2 <= k)."""
    if k < rate1 - rate2:
        return _upper_tail(-k - 1, rate2, rate1)
    return log_complement(_upper_tail(k, rate1, rate2))
