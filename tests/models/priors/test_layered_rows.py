"""Rows with layers: the joint law of layers, loadings, rates, rows and counts, against the model run forwards."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from countveil.models.factorization import Factor
from countveil.models.priors import Conditional, LayeredRowsPrior, layered_rows
from countveil.models.priors.layered_rows import packed, peaked
from tests.joint import FALSE_ALARM
from tests.layers import draw_layers, moderate

pytestmark = pytest.mark.long

SHAPE = 5, 3
SIZES = {1: (), 2: (2,), 3: (2, 2)}  # of the layers above, by the number of all layers
EXPOSURE = np.array([[1.0, 0.7, 0.2], [2.0, 0.5, 1.0], [0.0, 0.0, 0.0], [0.6, 1.5, 1.0], [3.0, 3.0, 2.0]])
SCALE = np.array([[1.0], [0.5], [2.0], [1.0], [1.0]])
SWEEPS = 4
RESTARTS = {1: 500, 2: 800, 3: 500}  # by the number of layers; faults that are seen sooner have fewer


def prior_of(n_layers):
    """Rows of three components with moderate shapes."""
    return LayeredRowsPrior(1.5, 4.0, SIZES[n_layers])


def factor_of(prior):
    """(5, 3), of row and component."""
    return Factor("theta", "dk", SHAPE, (1, SHAPE[1]), prior)


def statistics(layers, value, count):
    """Functions of everything with moderate moments."""
    log_value, log_b = np.log(np.maximum(value, 1e-3)), np.log(layers.rates)
    seen, log_top = np.log1p(count), np.log(layers.top)
    found = [*log_value.mean(axis=1), (log_value**2).mean(), *seen.sum(axis=1), (seen * log_value).mean()]
    found += [
        *log_b.ravel(),
        *(log_b**2).mean(axis=1),
        *np.log(layers.levels),
        *np.log(layers.steadiness),
        *log_top,
        (log_top**2).mean(),
    ]
    found += [*(np.log(layers.steadiness) * (log_b**2).mean(axis=1))]
    found += [(log_value * log_b[0][:, None]).mean(), *(log_b.mean(axis=1) * log_top.sum())]
    below = log_value
    for t, (upper, loadings) in enumerate(zip(layers.upper, layers.loadings, strict=True)):
        log_upper, shape = np.log(np.maximum(upper, 1e-3)), np.log(np.maximum(upper @ loadings.T, 1e-3))
        found += [*log_upper.mean(axis=1), (log_upper**2).mean(), (below * shape).mean()]
        found += [(log_upper * log_b[t][:, None]).mean(), (log_upper * log_b[t + 1][:, None]).mean()]
        found += [*(loadings**2).sum(axis=0), *loadings[0], (loadings[0] * seen[:, 0].mean()).sum()]
        found += [np.log(layers.concentrations[t]), np.log(layers.concentrations[t]) * (loadings**2).sum()]
        if t == 0:
            found += [(seen * shape).mean(), *(seen * (shape - shape.mean(axis=1, keepdims=True))).mean(axis=0)]
        below = log_upper
    return np.array(found)


def z_scores(n_layers, restarts, seed=1):
    """Differences of statistics after some sweeps with new counts from those at draws of the prior."""
    rng, differences, prior = np.random.default_rng(seed), [], prior_of(n_layers)
    for _ in range(restarts):
        layers, value = draw_layers(prior, SHAPE, SCALE[:, 0], rng)
        count, hypers = rng.poisson(EXPOSURE * value).astype(float), packed(layers)
        before = statistics(layers, value, count)
        for _ in range(SWEEPS):
            given = Conditional(SCALE, value, count, EXPOSURE)
            value, hypers = prior.draw(factor_of(prior), hypers, given, rng)
            count = rng.poisson(EXPOSURE * value).astype(float)
        differences.append(statistics(prior.layers_of(hypers, SHAPE), value, count) - before)
    d = np.array(differences)
    d = d[:, d.std(axis=0) > 0.0]
    return d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(restarts))


def most(z):
    """How large |z| may be."""
    return stats.norm.isf(FALSE_ALARM / 2 / z.size)


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_a_sweep_leaves_the_joint_law_as_it_is(n_layers, monkeypatch):
    moderate(monkeypatch)
    z = z_scores(n_layers, RESTARTS[n_layers])
    assert np.abs(z).max() < most(z)


def counts_for_tables(right):
    """Every customer sits at a table of its own."""
    wrong = lambda count, phi, upper, *rest: right(count, phi, np.full_like(upper, 1e9), *rest)  # noqa: E731
    return {"pass_upwards": wrong}


def tables_of_the_wrong_rate(right):
    """Tables are seated by one component above all others."""
    wrong = lambda count, phi, upper, *rest: right(count, phi, np.roll(upper, 1, axis=1), *rest)  # noqa: E731
    return {"pass_upwards": wrong}


@pytest.mark.parametrize(
    ("n_layers", "fault", "restarts"),
    [
        (2, counts_for_tables, 80),
        (3, counts_for_tables, 80),
        (2, tables_of_the_wrong_rate, 800),
        (3, tables_of_the_wrong_rate, 400),
    ],
)
def test_the_joint_law_shows_planted_faults_of_tables(n_layers, fault, restarts, monkeypatch):
    moderate(monkeypatch)
    for name, wrong in fault(layered_rows.pass_upwards).items():
        monkeypatch.setattr(layered_rows, name, wrong)
    z = z_scores(n_layers, restarts)
    assert np.abs(z).max() > most(z)


@pytest.mark.parametrize(("n_layers", "restarts"), [(1, 500), (2, 250), (3, 250)])
def test_the_joint_law_shows_exposures_that_ignore_rates(n_layers, restarts, monkeypatch):
    moderate(monkeypatch)
    monkeypatch.setattr(layered_rows, "lost", lambda exposure, rate: np.log1p(exposure))
    z = z_scores(n_layers, restarts)
    assert np.abs(z).max() > most(z)


@pytest.mark.parametrize("n_layers", [2, 3])
def test_the_joint_law_shows_counts_that_were_not_completed(n_layers, monkeypatch):
    moderate(monkeypatch)
    monkeypatch.setattr(layered_rows, "completed", lambda value, count, exposure, rng: (count, exposure.max(axis=1)))
    z = z_scores(n_layers, 100)
    assert np.abs(z).max() > most(z)


def test_the_joint_law_shows_rates_that_forget_the_layer_above(monkeypatch):
    moderate(monkeypatch)
    right = LayeredRowsPrior.draw_rates

    def wrong(self, layers, *rest):
        half = layers._replace(upper=tuple(0.5 * each for each in layers.upper))
        return right(self, half, *rest)._replace(upper=layers.upper)

    monkeypatch.setattr(LayeredRowsPrior, "draw_rates", wrong)
    z = z_scores(2, 60)
    assert np.abs(z).max() > most(z)


def test_hyperparameters_by_name_are_those_that_were_packed():
    for n_layers in SIZES:
        prior = prior_of(n_layers)
        layers, _ = draw_layers(prior, SHAPE, SCALE[:, 0], np.random.default_rng(4))
        hypers = packed(layers)
        for one, other in zip(layers, prior.layers_of(hypers, SHAPE), strict=True):
            for a, b in zip(
                np.atleast_1d(one) if not isinstance(one, tuple) else one,
                np.atleast_1d(other) if not isinstance(other, tuple) else other,
                strict=True,
            ):
                np.testing.assert_array_equal(a, b)
        assert prior.start(factor_of(prior)).shape == hypers.shape


def test_rows_begin_with_their_size_and_shapes_with_their_mean():
    prior = prior_of(3)
    start = prior.layers_of(prior.start(factor_of(prior)), SHAPE)
    for upper, loadings in zip(start.upper, start.loadings, strict=True):
        np.testing.assert_allclose(loadings.sum(axis=0), 1.0)
        np.testing.assert_allclose(upper.sum(axis=1), 1.5 * SHAPE[1])
    np.testing.assert_allclose(start.top.sum(), 1.5 * SHAPE[1])
    np.testing.assert_allclose(start.upper[0].sum(axis=1) / start.rates[0], 4.0)
    np.testing.assert_allclose(start.rates[1:], 1.0)


@pytest.mark.parametrize(("below", "own"), [(6, 3), (5, 2), (2, 5)])
def test_the_start_has_a_peak_for_every_component(below, own):
    found = peaked(below, own)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    assert (found.max(axis=0) > 1.2 / below).all()
    assert own > below or len(set(map(tuple, found.T))) == own


def test_what_is_reported_are_loadings_shares_and_sums():
    prior, rng = prior_of(3), np.random.default_rng(5)
    drawn = [draw_layers(prior, SHAPE, SCALE[:, 0], rng) for _ in range(4)]
    hypers = np.array([packed(layers) for layers, _ in drawn]).reshape(2, 2, -1)
    found = prior.reported(factor_of(prior), hypers)
    assert {name: axes for name, (axes, _) in found.items()} == {
        "_layer2": ((1, "layer2")), "_layer2_share": (("layer2",)),
        "_layer3": (("layer2", "layer3")), "_layer3_share": (("layer3",)), "_layer_sum": (("layer",)),
    }  # fmt: skip
    for i, (layers, value) in enumerate(drawn):
        place = divmod(i, 2)
        np.testing.assert_array_equal(found["_layer2"][1][place], layers.loadings[0])
        np.testing.assert_array_equal(found["_layer3"][1][place], layers.loadings[1])
        for t, upper in enumerate(layers.upper):
            words = sum(value[d].sum() * upper[d] / upper[d].sum() for d in range(SHAPE[0]))
            np.testing.assert_allclose(found[f"_layer{t + 2}_share"][1][place], words / value.sum())
        sums = [*(each.sum() / SHAPE[0] for each in layers.upper), layers.top.sum()]
        np.testing.assert_allclose(found["_layer_sum"][1][place], sums)
    np.testing.assert_array_equal(prior.summaries(factor_of(prior), hypers)[0], found["_layer_sum"][1])
    for name, (_, values) in found.items():
        prior.check_reported(f"theta{name}", values)
        with pytest.raises(ValueError, match=f"0 or more, at theta{name}, got -1"):
            prior.check_reported(f"theta{name}", np.full_like(values, -1.0))
    with pytest.raises(ValueError, match=r"theta_layer2 with sums of 1 over each component, got (2|1.99)"):
        prior.check_reported("theta_layer2", 2.0 * found["_layer2"][1])


def test_facts_come_back():
    for n_layers in SIZES:
        prior = prior_of(n_layers)
        assert LayeredRowsPrior.from_facts(prior.facts()) == prior
    rule = "must have the prior"
    with pytest.raises(ValueError, match=r"^must have the prior, with n_upper \(2,\), got \(2, 2\)$"):
        prior_of(3).check_file(rule, prior_of(2))
    replace(prior_of(3), size=9.0).check_file(rule, prior_of(3))
    assert prior_of(2).describe().startswith("Gammas whose shapes are mixtures of 2 components above, with")
    assert "layers of 2 and 2 components above" in prior_of(3).describe()
