"""
Communities behind a private network
====================================

Who meets whom in *Les Misérables*, seen only through noise on every count.
"""

# %%
# Each pair of characters has a count of the chapters in which they meet. Noise is added to every count, zeros too. The
# noise of this page is simulated and seeded; a real release comes from ``cv.privatize``, which cannot be seeded.

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import countveil as cv

graph = nx.les_miserables_graph()
counts = nx.to_pandas_adjacency(graph, dtype=int)
level = cv.PrivacyLevel(epsilon=2, precision=1)
release = cv.simulate_release(counts, level, np.random.default_rng(1))

# %%
# A block model of five communities sees only the noisy counts.

fit = cv.BlockModel(n_communities=5, tune=200, draws=100, seed=1, progress=False).fit(release)

names = ["true counts", "noisy reports", "expected counts"]
fig, axes = plt.subplots(1, 3, figsize=(11, 4))
order = np.argsort(fit.memberships_.argmax(axis=1), kind="stable")
shown = [counts.to_numpy(), release.reports, fit.rate().to_numpy()]
for ax, values, title in zip(axes, shown, names, strict=True):
    ax.imshow(np.sqrt(np.maximum(values, 0))[np.ix_(order, order)], cmap="Greys", vmax=3)
    ax.set(title=title, xticks=[], yticks=[])
fig.tight_layout()
