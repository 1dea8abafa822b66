"""Small input that once took hours or gigabytes is refused, or done, within a second and 200 MB more."""

import json
import sys
import time
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone

import countveil as cv
from countveil import mechanisms as m
from countveil.privacy import Release, _archive, _format
from tests import effects, hostile
from tests.limited import ROOM, SECONDS, limited

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="the limits need /proc")]
QUICK = {"draws": 4, "tune": 4, "chains": 1, "seed": 1, "threads": 1, "progress": False}
SHAPE = (100, 30)


def release_with_a_table(path, digits):
    """A release of one count by a table of 800 fractions, the sum of which has 800 times as many digits."""
    members = _format.members(Release([[1]], m.Table([[0.5, 0.5]]), False, source="a test"))
    meta = json.loads(members["meta.json"])
    denominators = [10 ** (digits - 1) + k for k in range(1, 1600, 2)]
    row = [str(Fraction(each // 800, each)) for each in denominators]
    meta["mechanisms"][0]["parameters"]["probabilities"] = [row]
    _archive.write(path, members | {"meta.json": _format.canonical(meta)})
    return path


def fit_with_formula(path, formula):
    """A saved fit whose covariates have this formula."""
    fit = effects.the_fit()
    tree, broken = fit.posterior.copy(deep=True), clone(fit)
    old = json.dumps("~ party + age")
    assert old in tree.attrs["parameters"]
    tree.attrs["parameters"] = tree.attrs["parameters"].replace(old, json.dumps(formula))
    broken.posterior_ = tree
    broken.save(path)
    return path


def fit_with_draw(path, number):
    """A saved fit with this number among its draws."""
    valid = hostile.small_fit(path.with_name("valid.nc"))
    return hostile.changed(valid, path, hostile.value_at("posterior/theta", number))


def reports_with(largest):
    values = np.random.default_rng(1).poisson(3.0, SHAPE)
    values[4, 7] = largest
    return values


def model(**options):
    return cv.TopicModel(2, **(QUICK | options))


def checkpoint_with(path, number):
    """A checkpoint with this number in the state of a chain."""
    model().fit(cv.PrivatizedCounts(reports_with(1000), 0.5), checkpoint=path)
    with np.load(path) as stored:
        content = dict(stored)
    content["chain0_state.0.0"].flat[-1] = number
    np.savez(path, **content)
    return path


def resumed(path):
    model().fit(cv.PrivatizedCounts(reports_with(1000), 0.5), checkpoint=path, resume=True)


BROKEN = {
    "a table of long fractions": (release_with_a_table, 1200, Release.load, "at most 400 digits"),
    "a formula of many products": (
        fit_with_formula, "~ " + "*".join("abcdefghijklmnopqrst"), cv.TopicModel.load, "at most 200 terms, got 1048575",
    ),
    "a formula with a long text": (
        fit_with_formula, "~ party + I('a'*3000000000)", cv.TopicModel.load, "and covariates in arithmetic",
    ),
    "a formula with a long tuple": (
        fit_with_formula, "~ C(party, (1,)*300000000)", cv.TopicModel.load, "and covariates in arithmetic",
    ),
    "a checkpoint with NaN": (checkpoint_with, np.nan, resumed, "must hold finite numbers"),
    "a checkpoint with infinity": (checkpoint_with, np.inf, resumed, "must hold finite numbers"),
    "draws with NaN": (fit_with_draw, np.nan, cv.TopicModel.load, "must hold finite numbers"),
    "draws with infinity": (fit_with_draw, np.inf, cv.TopicModel.load, "must hold finite numbers"),
}  # fmt: skip
"""(what makes the file, of what, what reads it, and words of the refusal)."""


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_within_a_second_and_200_megabytes(name, tmp_path):
    make, of, read, said = BROKEN[name]
    path = make(tmp_path / "broken.npz", of)
    assert path.stat().st_size < 3e6
    ended = limited(lambda: read(path))
    assert ended.how.startswith("refused: "), ended
    assert said in ended.how, ended
    assert ended.seconds < SECONDS, ended
    assert ended.memory < ROOM, ended


@pytest.mark.parametrize(
    "observed",
    [
        lambda values: cv.PrivatizedCounts(values, 0.5),
        lambda values: cv.Reports(values - 1, m.DiscreteGaussian(2.0)),
        lambda values: cv.Reports(np.where(values == 1, np.nan, values), m.Suppression(2)),
        cv.ExactCounts,
    ],
    ids=["two-sided geometric", "discrete Gaussian", "suppression", "exact"],
)
@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
def test_a_report_of_a_billion_takes_no_longer_than_one_of_a_thousand(observed, likelihood):
    def fit(largest):
        return lambda: model(likelihood=likelihood).fit(observed(reports_with(largest)))

    fit(1000)()  # compiles
    usual, large = (limited(fit(largest)) for largest in (1000, 10**9))
    assert (usual.how, large.how) == ("done", "done")
    assert large.seconds < usual.seconds + SECONDS, (usual, large)
    assert large.memory < ROOM, large


def test_the_limits_notice_what_takes_longer_or_more():
    """The negative control; small work is within them."""

    def busy():
        begun = time.process_time()
        while time.process_time() < begun + SECONDS:
            pass

    small, slow = limited(lambda: np.ones(1000)), limited(busy)
    assert small.how == slow.how == "done"
    assert (small.seconds < 0.1 * SECONDS, small.memory < 0.1 * ROOM, slow.seconds >= SECONDS) == (True,) * 3
    assert limited(lambda: np.ones(ROOM // 4)).how.startswith(("MemoryError", "_ArrayMemoryError"))
    assert limited(lambda: np.ones(ROOM // 7), 2 * ROOM).memory >= ROOM
