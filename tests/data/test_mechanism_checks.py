"""What reports say of their mechanism: in words, and of counts of zero, which doubt right noise first."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import countveil as cv
from countveil import mechanisms as m
from countveil.data import mechanism_checks as module
from countveil.data import observations
from countveil.data.mechanism_checks import (
    MechanismCheck,
    MechanismState,
    check_mechanism,
    contradiction_in_words,
    contradiction_of,
    hidden_as_zero,
    tallied,
    untested,
)
from countveil.fit.totals import error_of
from countveil.inference.diagnostics import FitWarning, State
from countveil.laws.noise.protocol import Contradiction
from tests.joint import two_sided_geometric

pytestmark = pytest.mark.long

SIZE = (20, 30)
DRAWN = {
    "Gaussian": (m.Gaussian(3.0), lambda rng: rng.normal(0.0, 3.0, SIZE)),
    "Laplace": (m.Laplace(3.0), lambda rng: rng.laplace(0.0, 3.0, SIZE)),
    "geometric": (m.TwoSidedGeometric(0.1), lambda rng: rng.geometric(0.9, SIZE) - rng.geometric(0.9, SIZE)),
    "Skellam": (m.Skellam(0.5, 0.5), lambda rng: rng.poisson(0.5, SIZE) - rng.poisson(0.5, SIZE)),
}


def test_a_contradicted_level_is_said_with_both_numbers():
    said = contradiction_in_words("alpha", Contradiction(0.5, 0.41234, True))
    assert said.startswith(
        "The reports contradict their alpha: 0.5 is stated, but their noise looks like alpha at most 0.412."
    )


@pytest.mark.parametrize("kind", DRAWN)
def test_right_noise_on_counts_of_zero_is_hardly_ever_doubted(kind):
    mechanism, draw = DRAWN[kind]
    found = [check_mechanism(cv.Reports(draw(np.random.default_rng(seed)), mechanism)).found for seed in range(200)]
    assert sum(map(bool, found)) < 2


def test_each_state_in_words():
    assert str(MechanismCheck()) == "The stated mechanism is consistent with the reports."
    assert str(MechanismCheck((), ("Why.",))) == "The stated mechanism cannot be checked. Why."
    assert str(MechanismCheck(("No.",), ("Why.",))) == "No."
    assert MechanismCheck(("No.",), (), ("Nor that.",)).wrong == ("No.", "Nor that.")


def test_masked_cells_prove_nothing():
    rng = np.random.default_rng(1)
    reports = rng.geometric(0.5, SIZE) - rng.geometric(0.5, SIZE)
    reports[3, 4] = -99
    hidden = np.zeros(SIZE, dtype=bool)
    hidden[3, 4] = True
    assert not check_mechanism(cv.PrivatizedCounts(reports, 0.5, hidden)).found
    assert check_mechanism(cv.PrivatizedCounts(reports, 0.5)).found


def test_true_counts_have_no_mechanism():
    assert check_mechanism(cv.ExactCounts(np.ones((3, 3), dtype=int))) is None


LARGE = np.arange(100.0, 700.0).reshape(SIZE)
MANY, FEW = np.array([[0.0, 5.0, 10.0, 15.0]]), np.array([[0.0, 5.0, 10.0, 10.0]])
ALONE = {  # (mechanism, reports of which it is tested without a fit, reports of which it is not)
    "Gaussian": (m.Gaussian(3.0), LARGE - 110.0, LARGE),
    "Laplace": (m.Laplace(3.0), LARGE - 105.5, LARGE),
    "Skellam": (m.Skellam(2.0, 2.0), LARGE - 105.0, LARGE),
    "shifted noise": (m.Skellam(2.0, 3.0), None, LARGE - 101.0),
    "rounding": (m.Rounding(5), MANY, FEW),
    "random rounding": (m.RandomRounding(5), MANY, FEW),
    "midpoints": (m.Rounding(6, "midpoint"), np.array([[0.0, 3.0, 9.0, 15.0]]), np.array([[0.0, 3.0, 9.0, 9.0]])),
    "hidden and rounded": (m.Composed(m.Suppression(8), m.Rounding(5)), MANY + 10.0, np.minimum(FEW + 10.0, 15.0)),
    "suppression": (m.Suppression(5), None, LARGE),
    "top-coding": (m.TopCoding(50), None, np.minimum(LARGE, 50.0)),
}


@pytest.mark.parametrize("kind", ALONE)
def test_what_was_not_tested_without_a_fit_is_named(kind):
    mechanism, tested, not_tested = ALONE[kind]
    assert untested(cv.Reports(not_tested, mechanism)) == [mechanism]
    if tested is not None:
        assert untested(cv.Reports(tested, mechanism)) == []


def test_known_totals_test_noise_that_is_never_below_zero():
    reports, mechanism = cv.Reports, m.Gaussian(3.0)
    assert untested(reports(LARGE, mechanism, totals=[(1, LARGE.sum(axis=1))])) == []
    hidden = np.where(LARGE < 105, np.nan, LARGE)
    suppressed = m.Suppression(105)
    assert untested(reports(hidden, suppressed, totals=[(1, LARGE.sum(axis=1))])) == [suppressed]


@pytest.mark.parametrize("noisy_first", [True, False])
def test_each_of_two_reports_of_a_count_is_checked_by_its_own_mechanism(noisy_first):
    rng, rounding, noise = np.random.default_rng(1), m.Rounding(5), m.Gaussian(3.0)
    true = rng.poisson(40.0, SIZE)
    true[0] = 0
    rounded, noisy = 5.0 * np.rint(true / 5), true + rng.normal(0.0, 3.0, SIZE)

    def both(noisy):
        reports = [(noisy, noise), (rounded, rounding)]
        first, second = reports if noisy_first else reports[::-1]
        return cv.Reports(*first).also(*second)

    assert check_mechanism(both(noisy)).found == ()
    assert untested(both(np.maximum(noisy, 0.0))) == [noise]
    assert untested(both(noisy)) == []
    noisy[0, :3] = -30.0
    (said,) = check_mechanism(both(noisy)).found
    assert said.startswith(f"The reports contradict {noise.in_words}: ")
    assert "down to -30" in said


def test_ranges_are_never_called_consistent():
    data = cv.Reports.between([[0, 10]], [[9, 12]])
    assert untested(data) == []
    found = check_mechanism(data)
    assert found.state == MechanismState.UNCHECKED
    assert str(found).endswith("Counts that are given as ranges cannot show whether the ranges are right.")


def test_flips_are_never_called_consistent():
    data = cv.Reports([[0, 1], [1, 1]], m.RandomisedResponse(0.1))
    assert untested(data) == []
    assert str(check_mechanism(data)).endswith("cannot show how often they were flipped.")


@pytest.mark.parametrize("draws", [10, 100])
def test_a_fit_without_settled_chains_is_no_test(draws):
    few = {"draws": draws, "tune": 20, "chains": 2 if draws == 10 else 1, "threads": 1, "progress": False}
    data = cv.Reports(np.random.default_rng(1).poisson(60.0, SIZE) + 0.5, m.Gaussian(3.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = cv.TopicModel(1, likelihood="poisson", seed=1, **few).fit(data).diagnostics().mechanism
    assert found.state == MechanismState.UNCHECKED
    assert str(found) == (
        "The stated mechanism cannot be checked. "
        "Whether Gaussian noise (sigma 3) is right shows only in a fit by method gibbs whose chains have settled."
    )


SHAPE = (100, 100)  # ten thousand cells
RIGHT = 200  # releases, of which less than one in a hundred may be doubted
LEVELS = {
    "all": 0.4,
    "row": np.linspace(0.2, 0.7, SHAPE[0]),
    "cell": np.linspace(0.05, 0.8, SHAPE[0] * SHAPE[1]).reshape(SHAPE),
}


def counts(mean, rng):
    return rng.poisson(rng.gamma(0.3, mean / 0.3, SHAPE))


def reported(true, level, rng):
    full = level[:, None] if np.ndim(level) == 1 else np.broadcast_to(level, SHAPE)
    return true + two_sided_geometric(np.broadcast_to(full, SHAPE), rng)


@pytest.mark.parametrize("factor", [0.8, 1.2])
@pytest.mark.parametrize("stated", [0.1, 0.4, 0.75])
@pytest.mark.parametrize("mean", [0.3, 3.0])
def test_a_level_that_is_wrong_by_a_fifth_is_seen_in_signed_reports(mean, stated, factor):
    rng, true = np.random.default_rng(3), stated * factor
    for _ in range(5):
        data = cv.PrivatizedCounts(reported(counts(mean, rng), true, rng), stated)
        found = contradiction_of(data)
        assert (round(found.stated, 12), found.at_most) == (stated, False)
        assert found.found == pytest.approx(true, rel=0.12)


def test_signed_reports_of_large_counts_are_not_said_to_be_truncated():
    for reports in (np.full((20, 5), 400), np.arange(100).reshape(20, 5)):
        said = str(check_mechanism(cv.PrivatizedCounts(reports, 0.4)))
        assert "No report is below zero, so the reports cannot show whether alpha is as stated." in said
        assert "truncated" not in said


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("truncated", [False, True])
def test_right_levels_are_hardly_ever_doubted(levels, truncated):
    """Counts that are all zero are the hardest case of truncated reports: there the bounds hold exactly."""
    rng, doubted = np.random.default_rng(4), 0
    for i in range(RIGHT):
        true = counts(0.5, rng) if i % 2 else np.zeros(SHAPE, dtype=int)
        reports = reported(true, LEVELS[levels], rng)
        data = cv.PrivatizedCounts(np.maximum(reports, 0) if truncated else reports, LEVELS[levels])
        doubted += contradiction_of(data) is not None
    assert doubted < RIGHT / 100


@pytest.mark.parametrize(("true", "stated", "mean"), [(0.4, 0.5, 1e-3), (0.0, 0.3, 1e-3), (0.04, 0.3, 0.1)])
def test_too_much_stated_noise_is_seen_in_truncated_reports_of_few_counts(true, stated, mean):
    rng = np.random.default_rng(5)
    data = cv.PrivatizedCounts(np.maximum(reported(counts(mean, rng), true, rng), 0), stated)
    found = contradiction_of(data)
    assert found.at_most
    assert true - 0.02 <= found.found < stated == pytest.approx(found.stated)


def test_fewer_twos_than_noise_makes_are_seen_where_counts_hide_the_zeros():
    rng = np.random.default_rng(6)
    true = (rng.random(SHAPE) < 0.5).astype(int)
    data = cv.PrivatizedCounts(np.maximum(reported(true, 0.2, rng), 0), 0.4)
    found = contradiction_of(data)
    assert found.at_most
    assert found.found == pytest.approx(0.2, abs=0.03)
    assert found.stated == pytest.approx(0.4)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("signed", [True, False])
def test_cells_are_tallied_as_they_are_seen(levels, form, signed):
    rng = np.random.default_rng(7)
    reports = rng.integers(-300 if signed else 0, 4, SHAPE) * (rng.random(SHAPE) < 0.6)
    mask, more = rng.random(SHAPE) < 0.1, rng.random(SHAPE) < 0.1
    data = cv.PrivatizedCounts(form(reports), LEVELS[levels], mask).hide(*np.nonzero(more))
    seen, rows = ~(mask | more), np.r_[5:20, 3]
    for each, chosen in ((data, slice(None)), (data.take(rows), rows)):
        found, visible, values = tallied(each), seen[chosen], reports[chosen]
        kinds = visible, visible & (values <= 0), visible & (values == 1), visible & (values == 2)
        sizes = (*kinds, np.maximum(-values, 0) * visible)
        expected = [kind.ravel() if levels == "cell" else kind.sum(axis=1) for kind in sizes]
        for name, got, wanted in zip(found._fields[1:], found[1:], expected, strict=True):
            if name == "below_zero" and not signed:
                assert got is None
            else:
                np.testing.assert_array_equal(got, wanted, err_msg=name)


def test_large_data_are_tallied_in_runs_of_rows(monkeypatch):
    rng = np.random.default_rng(7)
    data = cv.PrivatizedCounts(rng.integers(-3, 4, SHAPE), 0.5, rng.random(SHAPE) < 0.1)
    whole, error = tallied(data), error_of(data)
    monkeypatch.setattr(observations, "ENTRIES_AT_ONCE", 200)
    assert [run.stop - run.start for run in observations.runs_of(data)] != [SHAPE[0]]
    for got, wanted in zip(tallied(data), whole, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert error_of(data) == pytest.approx(error, rel=1e-12)


REPEATED = {
    "all": lambda reports: cv.PrivatizedCounts(reports, 0.4),
    "row": lambda reports: cv.PrivatizedCounts(reports, LEVELS["row"]),
    "cell": lambda reports: cv.PrivatizedCounts(reports, LEVELS["cell"]),
    "codes": lambda reports: cv.Reports(reports, m.Skellam(0.5, 0.5)),
    "positive": lambda reports: cv.PrivatizedCounts(np.maximum(reports, 0), 0.4),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_rows_that_repeat_are_named_wherever_they_are(kind, monkeypatch):
    reports = np.random.default_rng(7).integers(-3, 4, SHAPE)
    monkeypatch.setattr(observations, "ENTRIES_AT_ONCE", 1_000)
    assert module.of_rows(REPEATED[kind](reports)) == []
    for first, second in ((50, 51), (40, 70), (98, 99)):
        again = reports.copy()
        again[second] = again[first]
        data = REPEATED[kind](again)
        assert len(list(observations.runs_of(data))) > 3
        (said,) = module.of_rows(data)
        assert said.startswith(f"Rows {first} and {second}, counted from 0, have the same reports in all ")
        cells = "100 cells." if kind == "codes" else f"{(again[first] > 0).sum()} cells that are positive."
        assert f" in all {cells} Fresh noise " in said


@pytest.mark.parametrize(("positive", "repeats"), [(20, False), (21, True)])
def test_rows_that_noise_may_well_repeat_are_none(positive, repeats):
    """With alpha .5 the most probable report has probability a third: 100^2 pairs of rows, less than 1e-6 in all."""
    least = (-np.log(1e-6) + 2 * np.log(SHAPE[0])) / np.log(3.0)
    assert (positive > least) == repeats
    reports = np.zeros(SHAPE, dtype=int)
    reports[[4, 9], :positive] = 2
    assert bool(module.of_rows(cv.PrivatizedCounts(reports, 0.5))) == repeats


def test_a_fit_says_both_levels_and_so_does_its_file(tmp_path):
    rng = np.random.default_rng(8)
    data = cv.PrivatizedCounts(reported(counts(1.0, rng), 0.6, rng), 0.5)
    model = cv.TopicModel(2, draws=4, tune=2, chains=1, seed=1, threads=1, progress=False)
    with pytest.warns(FitWarning, match=r"0\.5 is stated, but their noise looks like alpha 0\.[56]"):
        fit = model.fit(data)
    assert fit.diagnostics().verdict.startswith("The reports contradict their alpha")
    fit.save(tmp_path / "fit.nc")
    again = cv.TopicModel.load(tmp_path / "fit.nc")
    assert again.diagnostics().verdict == fit.diagnostics().verdict
    assert again.totals() == fit.totals()
    with pytest.warns(FitWarning):
        longer = model.set_params(draws=60, tune=60, chains=2).fit(data).diagnostics()
    assert longer.state == State.UNSAFE
    assert "rintable" not in longer.verdict


def test_pairs_below_the_diagonal_of_an_undirected_network_prove_nothing():
    """They are no reports, whether they are zero or the same as above."""
    rng = np.random.default_rng(9)
    above = np.triu(reported(counts(0.5, rng), 0.5, rng), 1)
    model = cv.BlockModel(2, directed=False, draws=4, tune=2, chains=1, seed=1, threads=1, progress=False)
    for reports in (above, above + above.T):
        fit = model.fit(cv.PrivatizedCounts(reports, 0.5))
        assert "contradict" not in fit.diagnostics().verdict


def test_many_totals_that_are_each_a_little_off_contradict_together(monkeypatch):
    """By the gamma law with the mean and variance of the sum of squares, whatever the squares' own variances are."""
    wide, found, expected = np.full(40, 2.6), [], []
    for size in np.linspace(1.0, 2.2, 25):
        gaps = np.full(40, size)
        monkeypatch.setattr(module, "sums_of_totals", lambda _, gaps=gaps: [(gaps, np.ones(40), wide)])
        monkeypatch.setattr(module, "totals_out_of_reach", lambda _: [])
        found.append(bool(module.of_totals(None)))
        law = stats.gamma(40**2 / wide.sum(), scale=wide.sum() / 40)
        expected.append(bool(law.sf((gaps**2).sum()) < 0.5 * module.SURPRISE))
    assert found == expected
    assert 0 < sum(found) < len(found)


def test_noisy_totals_are_compared_with_the_sums_that_their_reports_allow():
    """A cell that was never reported allows any sum that is large enough; without it, every hidden one allows four."""
    rng = np.random.default_rng(11)
    table = rng.poisson(np.where(np.arange(12) < 3, 2.0, 50.0), (30, 12))
    noise = m.Gaussian(4.0)
    values = np.where((table > 0) & (table < 5), np.nan, table)

    def found(factor, mask):
        totals = np.rint(factor * table.sum(axis=1)) + np.rint(rng.normal(0.0, 4.0, 30))
        return check_mechanism(cv.Reports(values, m.Suppression(5), mask, totals=[(1, totals, noise)])).state.name

    unseen = np.broadcast_to(np.arange(12) == 11, table.shape)
    cases = [(factor, mask) for mask in (None, unseen) for factor in (0.8, 1.0, 1.2)]
    states = [found(*case) for case in cases]
    assert states == ["CONTRADICTED", "CONSISTENT", "CONTRADICTED", "CONTRADICTED", "CONSISTENT", "CONSISTENT"]


def test_zeros_that_probably_stand_for_hidden_counts():
    values = np.array([0.0] * 12 + [5, 6, 7, 8, 9] * 3 + [30])
    doubt = hidden_as_zero(m.Suppression(5), values)
    assert "no count of 1 to 4 is hidden, and 12 are 0" in doubt
    assert "--hides-zero --absent 0" in doubt
    assert hidden_as_zero(m.Suppression(5), values[12:], 12) == doubt
    assert hidden_as_zero(m.Suppression(5, shows_zero=False), values[12:]) is None
    assert hidden_as_zero(m.Suppression(5), np.append(values, np.nan)) is None
    assert hidden_as_zero(m.Suppression(5), values[3:]) is None  # nine zeros
    assert hidden_as_zero(m.Suppression(5), np.repeat([0.0, 50.0], 40)) is None  # nothing near 5
    assert hidden_as_zero(m.Rounding(5), values) is None
