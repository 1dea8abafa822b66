"""
What more noise costs
=====================

One table of counts under four levels of noise: errors of the expected counts.
"""

# %%
# The same counts are reported under each level.

import matplotlib.pyplot as plt
import numpy as np

import countveil as cv

rng = np.random.default_rng(4)
expected = rng.gamma(0.3, 3, (120, 4)) @ rng.gamma(0.3, 1, (4, 40))
counts = rng.poisson(expected)
levels = [0.5, 1, 2, 4]
errors = {"reports themselves": [], "naive fit": [], "countveil": []}
settings = {"tune": 100, "draws": 40, "chains": 4, "seed": 1, "progress": False}
for epsilon in levels:
    release = cv.simulate_release(counts, cv.PrivacyLevel(epsilon=epsilon, precision=1), rng)
    naive = cv.TopicModel(4, **settings).fit(cv.NaiveCounts(release.reports))
    fit = cv.TopicModel(4, **settings).fit(release)
    for name, values in zip(errors, [release.reports, naive.rate(), fit.rate()], strict=True):
        errors[name].append(np.abs(values - expected).mean())

# %%
# Weak noise is on the right. A naive fit treats reports as counts and fits the noise.

fig, ax = plt.subplots(figsize=(6, 3.5))
for name, values in errors.items():
    ax.plot(levels, values, marker="o", label=name)
ax.set(xscale="log", xlabel="noise level (epsilon/N)", ylabel="mean absolute error")
ax.minorticks_off()
ax.set_xticks(levels, [str(each) for each in levels])
ax.set_title("Error of expected counts")
ax.legend(frameon=False)
fig.tight_layout()
