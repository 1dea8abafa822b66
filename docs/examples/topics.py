"""
Topics of private texts
=======================

Words of Reuters stories with noise on every count, and topics whose words have intervals.
"""

# %%
# ``lda`` ships 395 stories. These are the 150 longest ones, and their 300 most frequent words.

import lda.datasets
import numpy as np
import pandas as pd

import countveil as cv
from countveil import plotting

counts = pd.DataFrame(lda.datasets.load_reuters(), columns=lda.datasets.load_reuters_vocab())
counts = counts.loc[counts.sum(axis=1).nlargest(150).index, counts.sum().nlargest(300).index]
level = cv.PrivacyLevel(epsilon=2, precision=1)
release = cv.simulate_release(counts, level, np.random.default_rng(1))

# %%
# Ten topics. Their words come with 90% intervals, and with the share of the chains that found the topic.

fit = cv.TopicModel(10, chains=8, tune=150, draws=60, seed=1, progress=False).fit(release)
print(fit.topics(5).to_string(max_rows=15))

# %%
# The same as a picture.

plotting.topics(fit, n=4)
