"""``countveil fit blocks`` and ``countveil fit tensor``; what all fits share is tested with topics in test_cli."""

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import countveil as cv
from countveil.cli.app import app

ACTORS = [f"actor{i}" for i in range(7)]
QUICK = ["--draws", "20", "--tune", "10", "--chains", "2", "--seed", "1", "--threads", "1"]
LEVEL = cv.PrivacyLevel(1, 1)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = pd.DataFrame(np.random.default_rng(2).poisson(2.0, (7, 7)), index=ACTORS, columns=ACTORS)
    cv.privatize(counts, LEVEL).save(tmp_path / "network.npz")
    return tmp_path


def run(*arguments, status=0):
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == status, found.output
    return found.stdout if status == 0 else found.stderr


def words(said):
    """What a table says, without its lines."""
    return " ".join(re.findall(r"[^\s\u2500-\u257f]+", said))


def test_blocks_of_a_directed_network(here):
    said = run("fit", "blocks", "network.npz", "-o", "fit.nc", "--communities", "2", "--self-loops", *QUICK)
    fit = cv.BlockModel.load("fit.nc")
    assert (fit.n_communities, fit.directed, fit.self_loops) == (2, True, True)
    assert list(fit.posterior["posterior"]["actor"].to_numpy()) == ACTORS
    assert "Communities by share of all expected messages " in said
    assert "community share strongest actors: share of the community in % (90% interval)" in words(said)
    for row in fit.top_actors(1).itertuples():
        assert f"{row.actor} {100 * row.probability:.1f} ({100 * row.lower:.1f} to" in said
        assert f"{row.prevalence:.1%}" in said
    assert "Wrote fit.nc: seed 1," in said


def test_blocks_of_an_undirected_network(here):
    asked = ["fit", "blocks", "network.npz", "-o", "fit.nc", "--undirected", *QUICK]
    assert "must report each pair once, above the diagonal" in run(*asked, status=1)
    from countveil.data.networks import above_diagonal

    above_diagonal(cv.Release.load("network.npz")).save("network.npz")
    run(*asked, "--communities", "3")
    pi = cv.BlockModel.load("fit.nc").blocks_
    np.testing.assert_allclose(pi, pi.T, rtol=1e-6)


def test_components_of_a_tensor(here):
    events = pd.DataFrame({"who": ["a", "b", "c"] * 8, "what": ["x", "y"] * 12, "year": [1, 2, 3, 4] * 6})
    categories = {"who": ["a", "b", "c"], "what": ["x", "y"], "year": [1, 2, 3, 4]}
    table = cv.count_table(events, list(categories), categories=categories)
    cv.privatize(table, LEVEL).save("events.npz")
    asked = ["fit", "tensor", "events.npz", "-o", "fit.nc", "--components", "2", *QUICK]
    said = run(*asked, "--modes", "who, what, year")
    fit = cv.TensorModel.load("fit.nc")
    assert fit.posterior["posterior"]["factor_year"].shape == (2, 20, 4, 2)
    assert list(fit.posterior["posterior"]["what"].to_numpy()) == ["x", "y"]
    for mode in ("who", "what", "year"):
        assert f"Components by share of all expected counts: {mode} " in said
    assert "component share largest entries: share of the component in % (90% interval)" in words(said)
    run(*asked, "--shape", "3,4,2", "--force")
    assert cv.TensorModel.load("fit.nc").posterior["posterior"]["factor_mode1"].shape[2] == 4
    assert "whole numbers separated by commas, got '3,x'" in run(
        *asked, "--shape", "3,x", "--force", status=1
    )
    assert "modes must name each of the 3 axes" in run(*asked, "--modes", "a,b", "--force", status=1)


def test_what_is_not_square_is_no_network(here):
    cv.privatize(np.ones((3, 4), dtype=int), LEVEL).save("other.npz")
    said = run("fit", "blocks", "other.npz", "-o", "fit.nc", *QUICK, status=1)
    assert "X must be square, one row and one column per actor, got 3 x 4" in said
    assert not (here / "fit.nc").exists()
