"""
Overdispersed counts
====================

E-mails come in threads, words in clusters. The model learns how overdispersed each column is.
"""

# %%
# Half of these columns are simulated as Poisson counts, half as overdispersed counts.

import matplotlib.pyplot as plt
import numpy as np

import countveil as cv

rng = np.random.default_rng(5)
rate = rng.gamma(2, 1, (200, 1)) * rng.gamma(2, 0.5, 20)
counts = rng.poisson(rate)
p = 0.8
counts[:, 10:] = rng.negative_binomial(rate[:, 10:] * (1 - p) / p, 1 - p)
names = [f"Poisson {i}" for i in range(10)] + [f"overdispersed {i}" for i in range(10)]
release = cv.simulate_release(counts, cv.PrivacyLevel(epsilon=1, precision=1), rng, column_labels=names)

# %%
# ``dispersion="column"`` learns a dispersion p for each column from noisy counts.

model = cv.TopicModel(1, dispersion="column", tune=100, draws=200, seed=1, progress=False)
table = model.fit(release).dispersions()
print(table.head(3).to_string())

# %%
# The variance of a count is 1 / (1 - p) times its mean.

fig, ax = plt.subplots(figsize=(6, 4))
y = np.arange(len(table))
ax.errorbar(table["p"], y, xerr=[table["p"] - table["lower"], table["upper"] - table["p"]], fmt="o", ms=4)
ax.set_yticks(y, names, fontsize=7)
ax.axvline(p, color="0.6", lw=1)
ax.set(xlabel="dispersion p, with 90% intervals", title="Overdispersed and Poisson columns")
fig.tight_layout()
