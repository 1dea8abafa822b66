"""What the tests of levels share: levels run forwards, and the slow, obvious version of a sweep over them."""

import numpy as np
from scipy import stats

from countveil.models.priors import levels
from tests.dynamics import draw_tables


def moderate(monkeypatch):
    """Levels vary, and their hyperparameters have moderate moments; half of the items have their turn in a sweep."""
    monkeypatch.setattr(levels, "MIDDLE", 1.5)
    monkeypatch.setattr(levels, "SPREAD", 0.5)
    monkeypatch.setattr(levels, "BETWEEN", 0.5)
    monkeypatch.setattr(levels, "FEW_CELLS", 0)
    monkeypatch.setattr(levels, "SHARES", 2)


def draw_hypers(n_items, rng):
    """Persistence, b and log(s - 1) from their prior."""
    middle = rng.normal(levels.MIDDLE, levels.SPREAD)
    logs = rng.normal(middle, levels.BETWEEN, n_items)
    return np.concatenate([[levels.MOST * rng.random(), middle], logs])


def draw_levels(hypers, n_steps, rng):
    """(T, items) levels run forwards."""
    rho, s, mean, found = hypers[0], 1.0 + np.exp(hypers[2:]), 1.0, []
    for _ in range(n_steps):
        found.append(rng.gamma(s * mean) / s)
        mean = rho * found[-1] + 1.0 - rho
    return np.array(found)


def means_of(level, rho):
    """(T, items) the means of levels given those before."""
    return np.vstack([np.ones((1, level.shape[1])), rho * level[:-1] + 1.0 - rho])


def log_density(level, s, rho):
    """Of the logarithms of levels (T, items), by item."""
    return (stats.gamma.logpdf(level, s * means_of(level, rho), scale=1.0 / s) + np.log(level)).sum(axis=0)


def slow_draw(count, exposure, s, rho, level, rng):
    """Levels given counts and exposures, table by table."""
    found, total, zeta = level.copy(), count.copy(), np.zeros(count.shape)
    steps, items = count.shape
    rate = np.ones(count.shape)
    for n in range(items):
        later = 0.0
        for t in range(steps - 1, -1, -1):
            rate[t, n] += exposure[t, n] / s[n] + rho * later
            later = zeta[t, n] = np.log(rate[t, n])
            if t > 0:
                before, source = s[n] * rho * level[t - 1, n], s[n] * (1.0 - rho)
                for _ in range(draw_tables(int(total[t, n]), before + source, rng)):
                    total[t - 1, n] += rng.random() < before / (before + source)
        for t in range(steps):
            mean = 1.0 if t == 0 else rho * found[t - 1, n] + 1.0 - rho
            found[t, n] = rng.gamma(s[n] * mean + total[t, n]) / rate[t, n] / s[n]
    return found
