"""Nanoseconds per draw of the Bessel sampler, order and argument changing by a few percent from draw to draw."""

import time
from statistics import median

import numpy as np
from numba import njit

from countveil.kernels.bessel import sample_bessel

ORDERS = (0, 1, 5, 50, 10**4, 10**7)
ARGUMENTS = (1e-6, 0.1, 1.0, 10.0, 20.0, 100.0, 1e4, 1e7)
DRAWS = 20_000
REPEATS = 15


@njit
def draw_all(order, argument, rng):
    total = 0
    for i in range(order.size):
        total += sample_bessel(order[i], argument[i], rng)
    return total


def per_draw(order: int, argument: float, rng: np.random.Generator) -> float:
    """Median over repeats; compiled before the clock starts."""
    orders = np.rint(order * rng.uniform(0.95, 1.05, DRAWS)).astype(np.int64)
    arguments = argument * rng.uniform(0.95, 1.05, DRAWS)
    draw_all(orders, arguments, rng)
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        draw_all(orders, arguments, rng)
        seconds.append(time.perf_counter() - start)
    return median(seconds) / DRAWS * 1e9


def main() -> None:
    rng = np.random.default_rng(1)
    print("order \\ argument" + "".join(f"{argument:>8g}" for argument in ARGUMENTS) + "   (ns per draw)")
    for order in ORDERS:
        print(f"{order:>16g}" + "".join(f"{per_draw(order, a, rng):>8.0f}" for a in ARGUMENTS), flush=True)


if __name__ == "__main__":
    main()
