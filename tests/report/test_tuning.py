import numpy as np
import pandas as pd
import pytest

import countveil as cv
from countveil.report import render
from countveil.report.tuning import MOST_ROWS, Listing, cell, listings
from tests.report.conftest import QUICK


def test_chains_and_moves_are_listed_as_the_diagnostics_have_them(topic_fit):
    found = topic_fit.diagnostics()
    chains = listings(topic_fit)[0]
    assert chains.caption == "Chains"
    assert [row[0] for row in chains.rows] == [str(c) for c in found.chains["chain"]]
    place = chains.heads.index("mean of the draws")
    means = [float(row[place]) for row in chains.rows]
    np.testing.assert_allclose(means, found.chains["log_likelihood_mean"], atol=0.5)


def test_the_page_has_the_tables_folded_away(block_fit, network):
    page = render(block_fit, network)
    assert "<summary>How each chain was started and tuned</summary>" in page
    for listing in listings(block_fit):
        assert f"<caption>{listing.caption}</caption>" in page


def test_tables_of_many_rows_are_left_out(topic_fit, monkeypatch):
    found = topic_fit.diagnostics()
    many = pd.concat([found.chains] * MOST_ROWS)
    monkeypatch.setattr(type(topic_fit), "diagnostics", lambda _: found._replace(chains=many, moves=None))
    assert listings(topic_fit) == []


def test_an_optimiser_has_none(release):
    fit = cv.TopicModel(
        2, method="em", **{k: v for k, v in QUICK.items() if k in ("seed", "progress", "threads")}
    )
    assert listings(fit.fit(release)) == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("chain", 0, "0"), ("log_likelihood_mean", -1234.56, "-1235"), ("gain", 0.4, "0"), ("weight", 0.25, "0.25"),
        ("score", np.nan, "–"), ("taken", np.True_, "yes"), ("race", "embeddings", "embeddings"), ("sweep", 10, "10"),
    ],
)  # fmt: skip
def test_cells_have_the_digits_they_need(name, value, said):
    assert cell(name, value) == said


def test_a_listing_has_a_head_for_every_cell(block_fit):
    for found in listings(block_fit):
        assert isinstance(found, Listing)
        assert {len(row) for row in found.rows} == {len(found.heads)}
