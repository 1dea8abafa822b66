"""
How many topics
===============

Held-out noisy reports choose the number of topics, without a single true count.
"""

# %%
# Six topics were used to simulate these counts.

import numpy as np

import countveil as cv
from countveil import plotting

rng = np.random.default_rng(3)
theta, phi = rng.gamma(0.2, 5, (100, 6)), rng.dirichlet(np.full(60, 0.1), 6)
counts = rng.poisson(20 * theta @ phi)
release = cv.simulate_release(counts, cv.PrivacyLevel(epsilon=1, precision=1), rng)

# %%
# Each model is fitted to two thirds of the reports, and scored on the others.

models = [cv.TopicModel(k) for k in (1, 3, 6, 12)]
found = cv.compare(release, models, folds=3, seed=1, progress=False)
print(found.verdict)

# %%
# Differences from the best, with standard errors.

plotting.differences(found.table)
