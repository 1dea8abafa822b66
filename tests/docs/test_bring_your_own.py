"""The page on bringing one's own sampler: its code runs, is right, and differs from the old by one line."""

import difflib
import re
from pathlib import Path

import numpy as np
import pytest

from tests.joint import batch_error, bound, two_sided_geometric
from tests.reference import chi_square_p_value

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "bring-your-own.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
ALPHA = 0.5
SHAPE, K = (8, 8), 2


@pytest.fixture(scope="module")
def code():
    """What the page defines."""
    left = {}
    for block in BLOCKS[:2]:
        exec(block, left)
    return left


def reports_of(theta, phi, rng):
    return rng.binomial(2, theta @ phi) + two_sided_geometric(np.full(SHAPE, ALPHA), rng)


def statistics(theta, phi, reports):
    """Of parameters and reports together, whatever the populations are called."""
    probabilities = theta @ phi
    of_probabilities = [
        *probabilities.sum(axis=1),
        *probabilities.sum(axis=0),
        (probabilities**2).sum(),
        (probabilities[1:] * probabilities[:-1]).sum(),
    ]
    of_factors = [
        (phi**2).sum(),
        (theta**2).sum(),
        ((theta @ theta.T) @ probabilities).sum(),
        np.prod(phi, axis=0).sum(),
    ]
    return np.array([*of_probabilities, *of_factors, (reports * probabilities).sum(), (reports > 0).sum()])


@pytest.fixture(scope="module")
def forwards(code):
    """Statistics of the model run forwards."""
    rng, found = np.random.default_rng(3), []
    for _ in range(2000):
        state = code["start"](*SHAPE, K, rng)
        found.append(statistics(*state, reports_of(*state, rng)))
    return np.array(found)


def joint_z(code, forwards, counts_of, sweeps=2000):
    """How far the chain that redraws its reports strays from the model run forwards, in standard errors."""
    rng = np.random.default_rng(4)
    state, trace = code["start"](*SHAPE, K, rng), []
    for _ in range(sweeps):
        reports = reports_of(*state, rng)
        state = code["sweep"](counts_of(reports, state[0] @ state[1], rng), *state, rng)
        trace.append(statistics(*state, reports_of(*state, rng)))
    trace = np.array(trace)
    error = np.sqrt(batch_error(trace) ** 2 + forwards.var(axis=0) / len(forwards))
    return np.abs((trace.mean(axis=0) - forwards.mean(axis=0)) / error)


def test_the_private_sampler_has_the_right_joint_distribution(code, forwards):
    z = joint_z(code, forwards, lambda reports, probability, rng: code["draw_counts"](reports, probability, ALPHA, rng))
    assert z.max() < bound(z.size)


@pytest.mark.parametrize("alpha", [None, 0.05], ids=["naive", "another noise level"])
def test_the_wrong_line_has_another_joint_distribution(code, forwards, alpha):
    def counts_of(reports, probability, rng):
        return np.clip(reports, 0, 2) if alpha is None else code["draw_counts"](reports, probability, alpha, rng)

    z = joint_z(code, forwards, counts_of, sweeps=1000)
    assert z.max() > bound(z.size)


def test_counts_have_their_law_given_reports(code):
    reports, probability = np.repeat([[-4, 0, 1, 2, 7]], 20_000, axis=0), np.array([0.1, 0.9, 0.5, 0.3, 0.02])
    drawn = code["draw_counts"](reports, np.broadcast_to(probability, reports.shape), ALPHA, np.random.default_rng(4))
    for column, (report, q) in enumerate(zip(reports[0], probability, strict=True)):
        law = np.array([(1 - q) ** 2, 2 * q * (1 - q), q**2]) * ALPHA ** np.abs(report - np.arange(3))
        assert chi_square_p_value(drawn[:, column], 0, law / law.sum()) > 1e-5


def test_it_takes_one_line():
    loops = (re.findall(r"    for _ in .*?\n    return", block, re.DOTALL)[0] for block in BLOCKS[:2])
    old, new = (loop.split("\n") for loop in loops)
    changes = [line for line in difflib.ndiff(old, new) if line[0] != " "]
    assert changes == ["+         counts = draw_counts(reports, theta @ phi, alpha, rng)"]
    assert "countveil" not in BLOCKS[0]


def test_the_page_runs_and_the_one_line_pays(capsys):
    left = {}
    for block in BLOCKS[:-1]:
        exec(block, left)
    exec(BLOCKS[-1].replace("n_sweeps=1000", "n_sweeps=200"), left)
    printed = dict(re.findall(r"(\S[\w ]*\S) +([\d.]+) ", capsys.readouterr().out))
    error = {name: float(value) for name, value in printed.items()}
    assert error["true counts"] < error["private"] < error["naive"] < error["reports themselves"]
