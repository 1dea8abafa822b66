import numpy as np
from scipy import stats

from countveil.engines.threads import ThreadEngine
from countveil.inference import tokens
from countveil.inference.ascent import expect_counts
from countveil.inference.moves import drawing
from countveil.inference.streams import Streams
from countveil.laws.counts import NegativeBinomial
from countveil.laws.counts.laws import law_of
from tests.joint import FALSE_ALARM, LAW, SERIAL, planted

STREAMS = Streams.of_chain(2, 0)


def test_means_of_draws_are_the_expected_counts(monkeypatch):
    observations = planted(40, 30, 3, 0.5, seed=1, tokens=60.0)[2]
    rng = np.random.default_rng(2)
    theta, phi = rng.gamma(1.0, 1.0, (40, 3)), rng.gamma(1.0, 1.0, (30, 3))
    monkeypatch.setattr(drawing, "DRAWS", 400)
    found = drawing.drawn_counts(observations, LAW, theta, phi, 0, STREAMS, 10, SERIAL)
    row_ratio, ratio, _ = expect_counts(observations, LAW, theta, phi, SERIAL)
    absent = np.ones((40, 30))
    for d in range(40):
        absent[d, observations.columns[observations.indptr[d] : observations.indptr[d + 1]]] = 0.0
    expected = theta * (row_ratio + 0.5 * absent @ phi), phi * (ratio + 0.5 * absent.T @ theta)
    for ours, exact in zip(found, expected, strict=True):
        z = (ours.T - exact) / np.sqrt(exact / 400)  # sums of counts have at most a Poisson variance
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / exact.size)


def test_bursts_are_drawn_by_their_own_sweeps(monkeypatch):
    monkeypatch.setattr(tokens, "pays", lambda *_: True)
    observations, likelihood = planted(40, 30, 3, 0.5, seed=1, tokens=60.0)[2], NegativeBinomial(0.5)
    law = law_of(observations.noise, likelihood, likelihood.start((40, 30)))
    rng = np.random.default_rng(3)
    theta, phi = rng.gamma(1.0, 1.0, (40, 3)), rng.gamma(1.0, 1.0, (30, 3))
    size = likelihood.tally_size((40, 30))
    found = drawing.drawn_counts(observations, law, theta, phi, size, STREAMS, 10, SERIAL)
    assert [counts.shape for counts in found] == [(3, 40), (3, 30)]
    np.testing.assert_allclose(found.rows.sum(axis=1), found.columns.sum(axis=1))


def test_draws_are_those_of_no_sweep_and_the_same_for_every_number_of_threads():
    observations = planted(300, 30, 3, 0.5, seed=1, tokens=60.0)[2]
    theta, phi = np.ones((300, 3)), np.ones((30, 3))
    found = drawing.drawn_counts(observations, LAW, theta, phi, 0, STREAMS, 10, SERIAL)
    with ThreadEngine(2) as engine:
        again = drawing.drawn_counts(observations, LAW, theta, phi, 0, STREAMS, 10, engine)
    np.testing.assert_array_equal(found.rows, again.rows)
    later = drawing.drawn_counts(observations, LAW, theta, phi, 0, STREAMS, 20, SERIAL)
    assert (later.rows != found.rows).any()
