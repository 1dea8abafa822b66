"""Correlations of topics, as their table has them."""

import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil import plotting

QUICK = {"draws": 20, "tune": 20, "chains": 2, "seed": 1, "threads": 1, "progress": False}


def test_cells_are_those_of_the_table():
    rng = np.random.default_rng(1)
    counts = pd.DataFrame(rng.poisson(30 * rng.dirichlet([0.3] * 3, 30) @ rng.dirichlet([0.2] * 8, 3)))
    fit = cv.TopicModel(3, **QUICK).fit(cv.PrivatizedCounts(counts, 0.2))
    fit.relabel({1: "trade"})
    table, ax = fit.topic_correlations(), plotting.correlations(fit)
    drawn = np.ma.filled(ax.images[0].get_array(), np.nan)
    for row in table.itertuples():
        assert drawn[row.topic, row.other] == drawn[row.other, row.topic] == row.correlation
    assert np.isnan(np.diag(drawn)).all()
    assert "trade" in ax.get_yticklabels()[1].get_text()
    said = {(text.get_position(), text.get_text()): text.get_fontweight() for text in ax.texts}
    assert len(said) == 2 * len(table)
    first = table.iloc[0]
    sure = not first["lower"] <= 0.0 <= first["upper"]
    place = (first["topic"], first["other"])
    assert said[place, f"{first['correlation']:.2f}"] == ("bold" if sure else "normal")


def test_others_are_refused():
    with pytest.raises(TypeError, match="fit must be a TopicModel"):
        plotting.correlations("topics")
    one = cv.TopicModel(1, **QUICK).fit(cv.PrivatizedCounts(np.ones((4, 3), dtype=int), 0.2))
    with pytest.raises(ValueError, match="two topics or more"):
        plotting.correlations(one)
