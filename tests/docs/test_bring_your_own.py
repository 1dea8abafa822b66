"""The page on bringing one's own sampler: its code runs, is right, and differs from the old by one line."""

import difflib
import re
from pathlib import Path

import numpy as np
import pytest

import countveil as cv
from tests.joint import batch_error, bound, two_sided_geometric

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "bring-your-own.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
ALPHA = 0.6
SHAPE, N_COMPONENTS = (3, 3), 2


@pytest.fixture(scope="module")
def code():
    """What the page defines, with counts so small that a chain of any length takes little time."""
    left = {}
    for block in BLOCKS[:2]:
        exec(block, left)
    left |= {"TAU": 3.0, "SIZE": 2.0, "SPREAD": 1.0}
    return left


def prior_draw(code, rng):
    theta, phi, pi = code["start"](*SHAPE, N_COMPONENTS, rng)
    for t in range(1, SHAPE[0]):
        theta[t] = rng.gamma(code["TAU"] * pi @ theta[t - 1]) / code["TAU"]
    return theta, phi, pi


def reports_of(theta, phi, rng):
    return rng.poisson(theta @ phi) + two_sided_geometric(np.full(SHAPE, ALPHA), rng)


def statistics(theta, phi, pi, reports):
    """Of parameters and reports together, whatever the components are called."""
    rates = theta @ phi
    of_rates = [*rates.sum(axis=1), *rates.sum(axis=0), (rates**2).sum(), (rates[1:] * rates[:-1]).sum()]
    of_factors = [
        np.trace(pi),
        (pi**2).sum(),
        (phi**2).sum(),
        (theta**2).sum(),
        ((pi @ theta[0]) * theta[1]).sum(),
    ]
    return np.array([*of_rates, *of_factors, (np.maximum(reports, 0) * rates).sum(), (reports > 0).sum()])


def joint_z(code, counts_of, sweeps=1500, draws=3000):
    """How far the chain that redraws its reports strays from the model run forwards, in standard errors."""
    rng = np.random.default_rng(3)
    forwards = []
    for _ in range(draws):
        state = prior_draw(code, rng)
        forwards.append(statistics(*state, reports_of(state[0], state[1], rng)))
    state, trace = prior_draw(code, rng), []
    for _ in range(sweeps):
        reports = reports_of(state[0], state[1], rng)
        state = code["sweep"](counts_of(reports, state[0] @ state[1], rng), *state, rng)
        trace.append(statistics(*state, reports_of(state[0], state[1], rng)))
    trace, forwards = np.array(trace), np.array(forwards)
    error = np.sqrt(batch_error(trace) ** 2 + forwards.var(axis=0) / draws)
    return np.abs((trace.mean(axis=0) - forwards.mean(axis=0)) / error)


def test_the_private_sampler_has_the_right_joint_distribution(code):
    z = joint_z(code, lambda reports, rates, rng: cv.sample_true_counts(reports, rates, ALPHA, rng))
    assert z.max() < bound(z.size)


@pytest.mark.parametrize(
    "counts_of",
    [
        lambda reports, rates, rng: np.maximum(reports, 0),
        lambda reports, rates, rng: cv.sample_true_counts(reports, rates, 0.2, rng),
    ],
    ids=["naive", "another noise level"],
)
def test_the_wrong_line_has_another_joint_distribution(code, counts_of):
    z = joint_z(code, counts_of, sweeps=800, draws=2000)
    assert z.max() > bound(z.size)


def test_it_takes_one_line():
    old, new = (re.findall(r"    for _ in .*?\n    return", block, re.DOTALL)[0] for block in BLOCKS[:2])
    changes = [line for line in difflib.ndiff(old.split("\n"), new.split("\n")) if line[0] != " "]
    assert changes == ["+         counts = cv.sample_true_counts(reports, theta @ phi, alpha, rng)"]
    assert "countveil" not in BLOCKS[0]


def test_the_page_runs_and_the_one_line_pays(capsys):
    left = {}
    for block in BLOCKS[:-1]:
        exec(block, left)
    exec(BLOCKS[-1].replace("n_sweeps=1000", "n_sweeps=200"), left)
    printed = dict(re.findall(r"(\S[\w ]*\S) +([\d.]+) ", capsys.readouterr().out))
    error = {name: float(value) for name, value in printed.items()}
    assert error["true counts"] < error["private"] < error["naive"] < error["reports themselves"]
