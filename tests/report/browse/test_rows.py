from types import SimpleNamespace

import numpy as np
import pytest

from countveil.fit.component_tables import Chain
from countveil.inference.matching import Matched
from countveil.report.browse import rows
from countveil.report.browse.rows import RowShares, row_shares, rows_axis, rows_of
from tests.report.browse.conftest import PEOPLE

MANY = {"doc": "documents"}


def test_shares_of_a_row_are_those_of_its_expected_counts(column_fit):
    """n_dk is what a rate with topic k alone expects of row d, draw by draw."""
    found = row_shares(column_fit, "doc")
    posterior = column_fit.posterior["posterior"]
    theta, phi, p = (posterior[name].to_numpy()[0] for name in ("theta", "phi", "p"))
    order = column_fit.parts.support()["component"].to_numpy()
    draws = []
    for s in range(len(theta)):
        size = -p[s] / ((1 - p[s]) * np.log1p(-p[s]))
        counts = np.array([[(theta[s, d, k] * phi[s, k] * size).sum() for k in order] for d in range(len(PEOPLE))])
        draws.append(counts)
    shares = np.array([each / each.sum(axis=1, keepdims=True) for each in draws])
    np.testing.assert_allclose(found.values[:, :, 0], shares.mean(axis=0), rtol=1e-5)
    ends = np.quantile(shares, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(np.moveaxis(found.values[:, :, 1:], 2, 0), ends, rtol=1e-4)
    np.testing.assert_allclose(found.size, np.sum(draws, axis=2).mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.size, column_fit.rate().sum("word"), rtol=1e-4)


def test_chains_are_averaged_only_where_they_have_the_component(monkeypatch):
    """Chain 1 numbers its components the other way round; component 1 of chain 0 is its own."""
    rng = np.random.default_rng(5)
    shares, sizes = rng.dirichlet(np.ones(4), (2, 6, 2)), rng.dirichlet(np.ones(2), (2, 6))
    found = [Matched(np.array([0, 1]), np.array([0, 1]), 1.0), Matched(np.array([0]), np.array([1]), 0.5)]
    reader = SimpleNamespace(
        axes={"doc": np.arange(4)}, why_no_intervals="",
        listed_along=lambda axis: SimpleNamespace(group="k"), matches=lambda group: found,
        chains_along=lambda axis: [Chain(s, z, 0.5) for s, z in zip(shares, sizes, strict=True)],
    )  # fmt: skip
    fit = SimpleNamespace(_reader=reader)
    monkeypatch.setattr(rows, "mean_of_rows", lambda fit: np.ones(4))
    monkeypatch.setattr(rows, "AT_ONCE", 3)
    values = row_shares(fit, "doc").values[:, :, 0]
    made = shares * sizes[..., None]
    made /= made.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(values[:, 0], np.concatenate([made[0, :, 0], made[1, :, 1]]).mean(axis=0))
    np.testing.assert_allclose(values[:, 1], made[0, :, 1].mean(axis=0))


def test_rows_are_hidden_numbered_or_named(fit):
    assert rows_of(fit, "hidden", MANY) is None
    assert rows_of(fit, "numbers", MANY)["labels"][:2] == ["doc 0", "doc 1"]
    named = rows_of(fit, "labels", MANY)
    assert named["labels"] == PEOPLE
    assert named["plural"] == "documents"
    mean = row_shares(fit, "doc").values[:, :, 0]
    for k, members in enumerate(named["top"]):
        assert members == np.argsort(-mean[:, k], kind="stable").tolist()
        for d in members:
            assert k in [entry[0] for entry in named["entries"][d]]


def test_of_very_many_rows_those_stay_that_a_component_is_largest_in(fit, monkeypatch):
    monkeypatch.setattr(rows, "MOST_ROWS", 5)
    monkeypatch.setattr(rows, "TOP_ROWS", 1)
    monkeypatch.setattr(rows, "SHARES_OF_A_ROW", 1)
    found, mean = rows_of(fit, "labels", MANY), row_shares(fit, "doc").values[:, :, 0]
    assert set(found["labels"]) == {PEOPLE[d] for d in mean.argmax(axis=0)}
    assert found["left"] == len(PEOPLE) - len(found["labels"])
    assert all(k in [entry[0] for entry in found["entries"][d]] for k, (d,) in enumerate(found["top"]))


def test_a_component_whose_largest_row_has_larger_ones_is_listed_there_once(fit, monkeypatch):
    monkeypatch.setattr(rows, "TOP_ROWS", 1)
    monkeypatch.setattr(rows, "SHARES_OF_A_ROW", 1)
    shares = np.tile([0.6, 0.3, 0.1], (len(PEOPLE), 1))
    shares[4], shares[7] = [0.5, 0.4, 0.1], [0.2, 0.1, 0.7]
    made = RowShares(shares[:, :, None], np.ones(len(PEOPLE)))
    monkeypatch.setattr(rows, "row_shares", lambda fit, axis: made)
    found = rows_of(fit, "labels", MANY)
    assert found["top"] == [[0], [4], [7]]
    listed = [[entry[0] for entry in entries] for entries in found["entries"]]
    assert listed == [[2] if d == 7 else [0, 1] if d == 4 else [0] for d in range(len(PEOPLE))]


@pytest.mark.parametrize(("name", "axis"), [("topic_fit", "doc"), ("block_fit", None), ("tensor_fit", None)])
def test_rows_that_components_list_themselves_have_no_view(request, name, axis):
    assert rows_axis(request.getfixturevalue(name)) == axis
