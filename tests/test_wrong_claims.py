"""Every wrong claim about the noise gets its verdict, and its right twin is hardly ever doubted."""

import numpy as np
import pytest

import countveil as cv
from countveil.data.mechanism_checks import MechanismState
from countveil.inference.diagnostics import State
from tests import wrong_claims
from tests.wrong_claims import CLAIMS, REFUSED, fitted, verdict_on

pytestmark = pytest.mark.long

RELEASES = 200  # of each right twin, of which less than one in a hundred may be doubted
ALONE = [name for name, claim in CLAIMS.items() if not claim.fitted]
TWINS = {claim.right: name for name, claim in CLAIMS.items()}  # each once, by one of its claims
FITTED = [name for name, claim in CLAIMS.items() if claim.fitted and claim.verdict != REFUSED]


def test_there_are_enough_claims():
    assert len(CLAIMS) >= 15


@pytest.mark.parametrize("name", CLAIMS)
def test_reports_alone_say_it_of_wrong_claims(name):
    claim = CLAIMS[name]
    wanted = MechanismState.CONSISTENT if name in FITTED else claim.verdict
    assert [verdict_on(claim.wrong, np.random.default_rng(seed)) for seed in range(3)] == [wanted] * 3


@pytest.mark.parametrize("name", TWINS.values())
def test_right_twins_are_hardly_ever_doubted_by_reports_alone(name):
    claim = CLAIMS[name]
    found = [verdict_on(claim.right, np.random.default_rng(1000 + seed)) for seed in range(RELEASES)]
    assert sum(state != claim.twin for state in found) < RELEASES / 100


def test_claims_that_share_a_twin_say_the_same_of_it():
    assert len(TWINS) < len(CLAIMS)
    assert {name: CLAIMS[TWINS[claim.right]].twin for name, claim in CLAIMS.items()} == {
        name: claim.twin for name, claim in CLAIMS.items()
    }


def fitted_briefly(make, claim):
    """A fit whose prior is known, so that half of the draws suffice."""
    return fitted(make, 1, claim.fitted // 2, prior_shape=1.0)


@pytest.mark.parametrize("name", FITTED)
def test_a_fit_says_it_of_the_others_and_so_does_its_file(name, tmp_path):
    claim, path = CLAIMS[name], tmp_path / "fit.nc"
    wrong = fitted_briefly(claim.wrong, claim)
    found = wrong.diagnostics()
    assert (found.mechanism.state, found.state) == (claim.verdict, State.UNSAFE)
    assert found.verdict.startswith("The reports contradict")
    assert "rintable" not in found.verdict
    wrong.save(path)
    again = cv.TopicModel.load(path).diagnostics()
    assert (again.mechanism, again.verdict) == (found.mechanism, found.verdict)
    twin = fitted_briefly(claim.right, claim).diagnostics()
    assert not twin.mechanism.wrong
    assert (twin.mechanism.state, twin.state) == (MechanismState.CONSISTENT, State.SAFE)
    assert "consistent with the reports" in twin.verdict


def test_the_verdict_on_reports_that_were_cut_says_that_nothing_is_known_of_alpha():
    found = fitted(CLAIMS["reports cut at zero, of another alpha"].wrong, 1, 60).diagnostics()
    assert found.mechanism.state == MechanismState.UNCHECKED
    assert "cannot be checked. No report is below zero, so the reports cannot show whether alpha is" in found.verdict


def test_a_run_that_was_stopped_goes_on_where_its_file_ends(tmp_path, monkeypatch, capsys):
    """Nothing is fitted twice, every line is in the file before the next one is made, and doubts are counted."""
    path, names = tmp_path / "twins.csv", [name for name, claim in CLAIMS.items() if claim.fitted]
    asked = []

    def made(n, left):
        assert n == 3
        for name, seed in left:
            asked.append((name, seed))
            yield [name, str(seed), "not safe yet" if seed else "safe to report", "", "a doubt" if seed else ""]
            assert f"{name},{seed}," in path.read_text().replace('"', "")

    monkeypatch.setattr(wrong_claims, "in_processes", made)
    for n in (1, 2):
        wrong_claims.main([str(n), "--processes", "3", "--file", str(path)])
    assert asked == [(name, seed) for seed in (0, 1) for name in names]
    said = f"{names[0]}: 1 of 2 right twins are doubted; {{'not safe yet': 1, 'safe to report': 1}}"
    assert said in capsys.readouterr().out.splitlines()
