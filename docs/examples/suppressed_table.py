"""
A table with hidden small counts
================================

A health agency hides every count from 1 to 9. The model estimates the hidden counts, with intervals.
"""

# %%
# Simulated deaths in 40 counties and 8 age groups; because they are simulated, the truth is known.

import matplotlib.pyplot as plt
import numpy as np

import countveil as cv

rng = np.random.default_rng(2)
expected = 40 * rng.gamma(2, 0.5, (40, 1)) * np.exp(np.linspace(-4, 0.5, 8))
counts = rng.poisson(expected)
hides = cv.mechanisms.Suppression(below=10)
published = cv.simulate_reports(counts, hides, rng)
print(f"{np.isnan(published).mean():.0%} of the counts are hidden")

# %%
# Hidden counts are NaN. The mechanism defines their meaning: a count from 1 to 9, not a missing one.

data = cv.Reports(published, hides)
model = cv.PoissonFactorization("dk,vk->dv", {"k": 1}, tune=100, draws=100, seed=1, progress=False)
fit = model.fit(data)

# %%
# Draws of each hidden count, given all published counts.

draws = fit.predict_counts(200, rng).to_numpy()
hidden = np.isnan(published)
values = range(1, 10)
found = np.array([(draws[:, hidden] == y).mean() for y in values])
true = np.array([(counts[hidden] == y).mean() for y in values])
fig, ax = plt.subplots(figsize=(6, 3.5))
ax.bar(np.array(values) - 0.2, true, 0.4, label="true counts", color="0.7")
ax.bar(np.array(values) + 0.2, found, 0.4, label="draws given the table")
ax.set(xlabel="hidden count", ylabel="share of hidden cells", title="What hidden counts may have been")
ax.legend(frameon=False)
fig.tight_layout()
