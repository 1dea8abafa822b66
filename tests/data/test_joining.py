"""Releases of the same counts, joined: rows find each other by label, and promises add up."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

import countveil as cv
from countveil.bridges import protected_counts
from countveil.data import joining
from countveil.data.provenance import Layer
from countveil.data.reports import in_rows_of
from countveil.privacy._covariates import Covariate, RowCovariates
from countveil.privacy._extras import Extras
from countveil.privacy.level import ConcentratedLevel

LEVEL = cv.PrivacyLevel(epsilon=1, precision=1)
CASES = {
    "geometric": lambda r, y: np.abs(r - y) * np.log(0.6),
    "discrete": lambda r, y: -((r - y) ** 2) / 8.0,
    "random rounding": lambda r, y: np.log(np.maximum(1.0 - np.abs(r - y) / 3.0, 1e-300)),
    "suppression": lambda r, y: np.where((y >= 1) & (y < 5), 0.0, -np.inf),
}
"""log P(report | counts) up to a constant."""
COUNTS = pd.DataFrame(np.arange(12).reshape(4, 3), index=["ann", "bob", "cy", "di"], columns=["tea", "milk", "jam"])


def wave(rows, seed, level=LEVEL, columns=("tea", "milk", "jam"), **options):
    table = COUNTS.loc[list(rows), list(columns)]
    return cv.simulate_release(table, level, np.random.default_rng(seed), **options)


def log_kernels(data):
    """log P(reports | y) of every cell, over y = 0 .. 29, less its largest; 0 throughout where masked."""
    y, shape = np.arange(30), data.mode_shape
    codes = np.zeros(shape, dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    found = data.noise.log_kernel(np.maximum(codes, 0)[..., None], y, 1.0)
    found = np.where(codes[..., None] < 0, 0.0, found)
    return found - found.max(axis=-1, keepdims=True)


@pytest.mark.long
def test_rows_and_columns_find_each_other_by_label():
    one, two = wave(["ann", "bob", "cy"], 1), wave(["cy", "di", "ann"], 2, columns=["jam", "tea", "milk"])
    data = cv.join([one, two])
    assert data.labels == (["ann", "bob", "cy", "di"], ["tea", "milk", "jam"])
    y, alpha, by_hand = np.arange(30), np.exp(-1.0), np.zeros((4, 3, 30))
    for release in (one, two):
        for d, name in enumerate(release.row_labels):
            for v, word in enumerate(release.column_labels):
                place = COUNTS.index.get_loc(name), COUNTS.columns.get_loc(word)
                report = np.asarray(
                    release.reports.todense() if hasattr(release.reports, "todense") else release.reports
                )[d, v]
                by_hand[place] += np.abs(max(report, 0) - y) * np.log(alpha)
    by_hand -= by_hand.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(log_kernels(data), by_hand, atol=1e-9)


@pytest.mark.long
def test_promises_add_up_for_every_row():
    strong, rho = cv.PrivacyLevel(epsilon=1, precision=4), cv.PrivacyLevel.zcdp("0.1")
    data = cv.join(
        [wave(["ann", "bob"], 1), wave(["bob", "cy"], 2, strong), wave(["cy", "di"], 3, rho, truncate=False)]
    )
    ann, bob, cy, di = data.levels
    assert (ann.epsilon, ann.precision) == (1, 1)
    assert (bob.epsilon, bob.precision) == (Fraction(5, 4), 1)
    assert isinstance(cy, ConcentratedLevel)
    assert cy.kept_rho == Fraction(1, 10) + Fraction(1, 32)
    assert di.kept_rho == Fraction(1, 10)
    assert "All reports of one record together" in data.promise
    weakest = max(data.levels, key=lambda each: each.kept_rho)
    assert weakest.describe(together=True) in data.promise


SPELLINGS = [
    ("ada", "Ada"),
    ("zo\u00eb", "zoe\u0308"),
    ("ada", "ada "),
    ("a b", "A\u00a0\u2009b"),
    ("STRASSE", "stra\u00dfe"),
]


@pytest.mark.long
@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_one_record_in_two_spellings_is_one_row(one, other):
    """The ledger takes both for one name; as two rows, the privacy that was spent would be understated."""

    def named(name, seed, **stated):
        release = wave(["bob", "ann"], seed)
        labels = (("bob", name), release.column_labels)
        return cv.Release(release.reports, LEVEL, release.truncated, labels, simulated=True, extras=Extras(**stated))

    asked = (Covariate("age"),)
    first = named(one, 1, covariates=RowCovariates(asked, (("20",), ("30",))))
    second = named(other, 2, covariates=RowCovariates(asked, (("20",), ("30",))))
    data = cv.join([first, second])
    assert data.labels[0] == ["bob", one]
    assert [each.epsilon for each in data.levels] == [2, 2]
    assert data.n_masked == 0
    assert [each.row_labels[1] for each in data.provenance.releases] == [one, other]
    assert joining.together(data.provenance.releases, ("bob", one), 2) == data.levels
    np.testing.assert_array_equal(log_kernels(data), log_kernels(cv.join([first, named(one, 2)])))
    assert data.provenance.covariates.loc[[one, "bob"], "age"].tolist() == [30.0, 20.0]
    in_waves = [
        named(one, 1, waves=(("spring", "autumn"), (0, 0))),
        named(other, 2, waves=(("spring", "autumn"), (0, 1))),
    ]
    with pytest.raises(ValueError, match="in the waves 'spring' and 'autumn'"):
        cv.join(in_waves)


@pytest.mark.long
def test_two_spellings_in_one_release_are_refused_with_what_to_do():
    release = wave(["ann", "bob"], 1)
    both = cv.Release(
        release.reports, LEVEL, release.truncated, (("ada", "Ada"), release.column_labels), simulated=True
    )
    rule = r"name each row once, got 'ada' and 'Ada' in one of them, .*: rename one of them if they are two records"
    with pytest.raises(ValueError, match=rule):
        cv.join([both, wave(["ann", "bob"], 2)])


@pytest.mark.long
def test_the_sum_is_stated_at_the_precision_of_the_first_report():
    level = cv.PrivacyLevel(epsilon=1, precision=10)
    joined = cv.join([wave(["ann"], 1, level), wave(["ann"], 2, cv.PrivacyLevel(epsilon=1, precision=5))])
    (ann,) = joined.levels
    assert (ann.epsilon, ann.precision) == (3, 10)
    (more,) = joined.also(np.full((1, 3), 4), level.mechanism).levels
    assert (more.epsilon, more.precision) == (4, 10)
    assert "differ by at most 10 in total" in joined.promise


@pytest.mark.long
def test_a_further_report_keeps_what_is_promised():
    data, values = cv.join([wave(["ann", "bob"], 1), wave(["bob", "ann"], 2)]), np.full((2, 3), 4)
    more = data.also(values, cv.PrivacyLevel(epsilon=1, precision=4).mechanism)
    assert [each.epsilon for each in more.levels] == [Fraction(9, 4)] * 2
    assert more.levels[0].describe() in more.promise
    assert more.provenance.simulated
    without = data.also(values, cv.mechanisms.Rounding(4))
    assert without.levels == (None, None)
    assert "no level of privacy" in without.promise


@pytest.mark.long
def test_sparse_releases_are_joined_up_to_a_size():
    narrow, wide = (
        [cv.Release(sp.csr_array((3, n), dtype=np.int64), LEVEL, True) for _ in range(2)] for n in (2, 7_000_000)
    )
    assert cv.join(narrow).mode_shape == (3, 2)
    with pytest.raises(ValueError, match=r"at most 20,000,000 cells together .*, got 21,000,000"):
        cv.join(wide)


@pytest.mark.long
def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    each = [wave(["ann", "bob"], 1), wave(["bob", "cy", "di"], 2)]
    monkeypatch.setattr(joining, "available_memory", lambda: 8 * 4 * 3 * 2 - 1)
    with pytest.raises(ValueError, match=r"fit into the 191 bytes .* got 12 cells with 2 reports each"):
        cv.join(each)
    monkeypatch.setattr(joining, "available_memory", lambda: 8 * 4 * 3 * 2)
    assert cv.join(each).mode_shape == (4, 3)


@pytest.mark.long
def test_reports_without_a_level_promise_nothing_together():
    values = pd.DataFrame([[np.nan, 12.0, 0.0]], index=["ann"], columns=list(COUNTS.columns))
    published = cv.import_reports(values, cv.mechanisms.Suppression(10), "Others, 2020")
    data = cv.join([wave(["ann", "bob"], 1), published])
    assert data.levels[0] is None
    assert data.levels[1] == LEVEL
    assert "no level of privacy" in data.promise
    assert data.provenance.source == "Others, 2020"


@pytest.mark.long
def test_two_reports_say_more_than_one():
    rng = np.random.default_rng(5)
    counts = pd.DataFrame(rng.poisson(6.0, (60, 8)), index=[f"p{d}" for d in range(60)], columns=list("abcdefgh"))
    first, second = (cv.simulate_release(counts, LEVEL, np.random.default_rng(s)) for s in (1, 2))
    settings = {"likelihood": "poisson", "draws": 60, "tune": 60, "chains": 1, "seed": 1, "progress": False}
    widths, errors = [], []
    for data in (first, cv.join([first, second])):
        found = cv.TopicModel(1, **settings).fit(data).count_intervals(data)
        widths.append(float((found["upper"] - found["lower"]).mean()))
        errors.append(float(np.abs(found["median"] - counts.to_numpy()).mean()))
        inside = (found["lower"] <= counts.to_numpy()) & (counts.to_numpy() <= found["upper"])
        assert float(inside.mean()) > 0.88
    assert widths[1] < 0.9 * widths[0]
    assert errors[1] < errors[0]


@pytest.mark.long
def test_levels_by_row_files_and_tensors_are_joined(tmp_path):
    levels = [LEVEL, cv.PrivacyLevel(epsilon=2, precision=1)]
    one, two = wave(["ann", "bob"], 1, levels), wave(["bob", "ann"], 2, levels)
    one.save(tmp_path / "one.npz")
    data = cv.join([tmp_path / "one.npz", two])
    assert [each.epsilon for each in data.levels] == [3, 3]
    assert data.provenance.simulated
    rng = np.random.default_rng(1)
    tensors = [cv.simulate_release(rng.poisson(2.0, (2, 3, 4)), LEVEL, rng) for _ in range(2)]
    assert cv.join(tensors).mode_shape == (2, 3, 4)


MECHANISMS = (
    cv.mechanisms.TwoSidedGeometric(0.6),
    cv.mechanisms.DiscreteGaussian(2),
    cv.mechanisms.RandomRounding(3),
    cv.mechanisms.Suppression(5),
)


@pytest.mark.long
@pytest.mark.parametrize("p", [None, 0.7])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_counts_given_up_to_four_reports_have_their_exact_law(n, p):
    """Against sums over all counts, with and without bursts, by chi-square."""
    reports, rate, draws, y = (5.0, 3.0, 3.0, np.nan), 4.0, 20_000, np.arange(60)
    data = cv.Reports(np.full((1, draws), reports[0]), MECHANISMS[0])
    log_law = stats.poisson.logpmf(y, rate)
    if p is not None:
        log_law = stats.nbinom.logpmf(y, rate / -np.log1p(-p), 1.0 - p)
    for i, (report, mechanism) in enumerate(zip(reports[:n], MECHANISMS, strict=False)):
        data = data.also(np.full((1, draws), report), mechanism) if i else data
        log_law = log_law + CASES[("geometric", "discrete", "random rounding", "suppression")[i]](report, y)
    law = np.exp(log_law - log_law.max())
    law /= law.sum()
    found = np.empty(draws, dtype=np.int64)
    ps = np.empty(0) if p is None else np.full(draws, p)
    protected_counts.draw_each(
        data.noise.kernel, data.reports, np.full(draws, rate), ps, np.random.default_rng(n), found
    )
    seen = np.bincount(found, minlength=y.size)
    often = law * draws >= 5.0
    observed, expected = (np.append(seen[often], seen[~often].sum()), np.append(law[often], law[~often].sum()) * draws)
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1e-9))[expected > 1.0].sum()
    assert stats.chi2.sf(statistic, (expected > 1.0).sum() - 1) > 1e-4
    assert seen[law == 0.0].sum() == 0


REFUSED = {
    "one": (lambda: [wave(["ann"], 1)], "two or more"),
    "twice": (lambda: [wave(["ann", "bob"], 1)] * 2, "the same reports in releases 1 and 2"),
    "columns": (lambda: [wave(["ann"], 1), wave(["ann"], 2, columns=["tea", "milk"])], "got 'jam' in some of them"),
    "sizes": (
        lambda: [cv.simulate_release(np.ones((n, 2), dtype=int), LEVEL, np.random.default_rng(n)) for n in (2, 3)],
        r"same number of them, got \[2, 3\]",
    ),
    "labels": (
        lambda: [wave(["ann"], 1), cv.simulate_release(np.ones((1, 3), dtype=int), LEVEL, np.random.default_rng(1))],
        "must all have row labels, or none",
    ),
    "no row in common": (
        lambda: [wave(["ann", "bob"], 1), wave(["cy"], 2)],
        "rows in common to be of the same counts, got 3 labels, each in only one of them",
    ),
    "axes": (
        lambda: [wave(["ann"], 1), cv.simulate_release(np.ones((1, 3, 2), dtype=int), LEVEL, np.random.default_rng(1))],
        "as many axes as the first, 2, got one with 3",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("make", "rule"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_joined_is_refused(make, rule):
    with pytest.raises(ValueError, match=rule):
        cv.join(make())


@pytest.mark.long
def test_a_row_in_two_waves_is_refused_and_one_in_the_same_wave_twice_is_not():
    def in_waves(seed, *of_row):
        release = wave(["ann", "bob"], seed)
        waves = Extras(waves=(("spring", "autumn"), of_row))
        return cv.Release(release.reports, LEVEL, release.truncated, release.labels, True, extras=waves)

    assert cv.join([in_waves(1, 0, 1), in_waves(2, 0, 1), wave(["bob"], 3)]).mode_shape == (2, 3)
    with pytest.raises(ValueError, match="got row 'bob' in the waves 'autumn' and 'spring': collect the waves"):
        cv.join([in_waves(1, 0, 1), in_waves(2, 0, 0)])


@pytest.mark.long
def test_what_is_no_release_is_refused():
    with pytest.raises(TypeError, match="a sequence of them, or a path, got Release"):
        cv.join(wave(["ann"], 1))
    for other in (5, None, {"ann": wave(["ann"], 1)}):
        with pytest.raises(TypeError, match=f"a sequence of them, or a path, got {type(other).__name__}"):
            cv.join(other)
    with pytest.raises(TypeError, match="Release objects or paths of files, got ndarray"):
        cv.join([wave(["ann"], 1), np.ones((1, 3))])


@pytest.mark.long
def test_the_same_row_twice_is_refused():
    with pytest.raises(ValueError, match="name each row once, got 'ann' twice"):
        joining.joint_axis([wave(["ann", "ann"], 1), wave(["ann"], 2)], 0)


@pytest.mark.long
def test_nodes_of_an_undirected_network_find_each_other_in_another_order():
    counts = pd.DataFrame([[0, 50, 9], [50, 0, 70], [9, 70, 3]], index=list("abc"), columns=list("abc"))
    rng = np.random.default_rng(1)
    one, two = (
        cv.simulate_release(each, LEVEL, rng, directed=False) for each in (counts, counts.loc[list("cab"), list("cab")])
    )
    values, _, mask, _ = joining.placed(two, (one.row_labels, one.row_labels))
    own = np.asarray(two.reports.todense() if hasattr(two.reports, "todense") else two.reports)
    for a in range(3):
        for b in range(3):
            assert mask[a, b] == (a > b)
            if a <= b:
                x, y = sorted((two.row_labels.index("abc"[a]), two.row_labels.index("abc"[b])))
                assert values[a, b] == own[x, y]
    assert cv.join([one, two]).provenance.directed is False


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [1, 5])
def test_fresh_noise_that_agrees_by_chance_is_taken(epsilon):
    counts = pd.DataFrame([[4]], index=["ann"], columns=["tea"])
    for _ in range(20):
        each = [cv.privatize(counts, cv.PrivacyLevel(epsilon=epsilon, precision=1)) for _ in range(2)]
        cv.join(each)


@pytest.mark.long
@pytest.mark.parametrize("truncate", [True, False])
def test_rows_with_the_same_noise_are_refused(truncate):
    counts = pd.DataFrame(np.random.default_rng(1).poisson(3.0, (5, 60)), index=list("abcde"))
    one, two = (cv.simulate_release(counts, LEVEL, np.random.default_rng(seed), truncate=truncate) for seed in (1, 2))
    cv.join([one, two])
    values = np.asarray(two.reports.todense() if hasattr(two.reports, "todense") else two.reports).copy()
    first = np.asarray(one.reports.todense() if hasattr(one.reports, "todense") else one.reports)
    values[3] = first[3]
    stated = one.mechanism
    with pytest.raises(ValueError, match="the same reports in some rows in releases 1 and 2"):
        joining.refuse_same_twice([Layer(each, stated, None, 0.0) for each in (first, values)])
    with pytest.raises(ValueError, match="the same reports in releases 1 and 2"):
        cv.join([one, one])


PARTY = (Covariate("party", ("D", "R")),)


def stated(rows, values, covariates=PARTY, seed=0):
    noisy = wave(rows, seed)
    beside = RowCovariates(tuple(covariates), tuple(values))
    return cv.Release(noisy.reports, noisy.mechanism, noisy.truncated, noisy.labels, extras=Extras(covariates=beside))


@pytest.mark.long
def test_covariates_of_joined_rows_are_kept():
    other = (Covariate("party", ("I", "D", "R")), Covariate("age"))
    spring = stated(["ann", "bob"], [("D",), ("R",)], seed=1)
    autumn = stated(["bob", "cy"], [("R", "40"), ("I", "50.5")], other, seed=2)
    both = cv.covariates_of(cv.join([spring, autumn, wave(["ann", "di"], 3)]))
    assert list(both.index) == ["ann", "bob", "cy", "di"]
    assert list(both["party"].cat.categories) == ["D", "R", "I"]
    assert both["party"].astype(object).fillna("-").tolist() == ["D", "R", "I", "-"]
    assert both["age"].fillna(-1).tolist() == [-1, 40, 50.5, -1]
    with pytest.raises(ValueError, match="covariate 'age' must have no missing values, got 1, the first in row ann"):
        cv.TopicModel(2, prevalence="~ age").fit(cv.join([spring, autumn]))
    assert cv.covariates_of(cv.join([wave(["ann"], 4), wave(["ann"], 5)])) is None
    more = cv.join([spring, stated(["ann", "bob"], [("D",), ("R",)], seed=6)])
    again = more.also(wave(["ann", "bob"], 7).reports, LEVEL.mechanism)
    assert list(cv.covariates_of(again)["party"]) == ["D", "R"]


@pytest.mark.long
def test_covariates_that_differ_are_refused_by_name():
    spring = stated(["ann", "bob"], [("D",), ("R",)], seed=1)
    with pytest.raises(ValueError, match="agree on covariate 'party' of a row, got 'R' and 'D' of 'bob'"):
        cv.join([spring, stated(["bob"], [("D",)], seed=2)])
    with pytest.raises(ValueError, match="one kind of covariate 'party', got numbers in some"):
        cv.join([spring, stated(["bob"], [("1",)], [Covariate("party")], seed=2)])


STRONG, WEAK = cv.PrivacyLevel(1, 2), cv.PrivacyLevel(2, 1)
NAMES = ("spring", "summer")
PEOPLE, OF_ROW = ("bob", "bob", "ann", "cy"), (0, 1, 1, 0)
VALUES = np.array([[3, 0, 1], [0, 2, 5], [7, 1, 0], [2, 2, 2]])


def made(levels=STRONG, values=VALUES, labels=(PEOPLE, ("a", "b", "c")), waves=(NAMES, OF_ROW)):
    return cv.Release(values, levels, True, labels, extras=Extras(waves=waves))


def seen(data):
    found = np.zeros(data.mode_shape, dtype=bool)
    found[np.unravel_index(data.row_numbers * 6 + data.columns, data.mode_shape)] = True
    return found


@pytest.mark.parametrize("values", [VALUES, sp.csr_array(VALUES)])
def test_every_report_is_in_its_place_and_absent_ones_are_masked(tmp_path, values):
    made(values=values).save(tmp_path / "r.npz")
    data = cv.by_wave(tmp_path / "r.npz")
    assert data.mode_shape == (3, 2, 3)
    assert [list(names) for names in data.labels] == [["bob", "ann", "cy"], list(NAMES), ["a", "b", "c"]]
    assert data.n_masked == 6
    place = {"bob": 0, "ann": 1, "cy": 2}
    spread = np.zeros((3, 2, 3))
    mask = np.ones((3, 2, 3), dtype=bool)
    for who, wave, row in zip(PEOPLE, OF_ROW, VALUES, strict=True):
        spread[place[who], wave], mask[place[who], wave] = row, False
    same = cv.PrivatizedCounts(spread, STRONG.alpha, mask)
    for name in ("reports", "columns", "indptr"):
        np.testing.assert_array_equal(getattr(data, name), getattr(same, name))
    assert data.levels == (cv.PrivacyLevel(2, 2), STRONG, STRONG)
    assert "come to at most epsilon 2 at N = 2." in data.promise


def test_a_person_in_two_spellings_is_one_person():
    asked = (Covariate("age"),)
    stated = RowCovariates(asked, (("20",), ("20",), ("30",), ("40",)))
    release = cv.Release(
        VALUES,
        STRONG,
        True,
        (("bob", "Bob ", "ann", "cy"), None),
        extras=Extras(waves=(NAMES, OF_ROW), covariates=stated),
    )
    data = cv.by_wave(release)
    same = cv.by_wave(made())
    assert list(data.labels[0]) == ["bob", "ann", "cy"]
    assert data.levels == same.levels == (cv.PrivacyLevel(2, 2), STRONG, STRONG)
    assert data.promise == same.promise
    np.testing.assert_array_equal(data.reports, same.reports)
    assert data.provenance.covariates["age"].to_dict() == {"bob": 20.0, "ann": 30.0, "cy": 40.0}


def test_a_person_may_have_another_level_in_every_wave():
    levels = (STRONG, WEAK, WEAK, STRONG)
    data = cv.by_wave(made(levels))
    assert data.levels == (cv.PrivacyLevel(5, 2), WEAK, STRONG)
    y, by_hand = np.arange(30), np.zeros((3, 2, 3, 30))
    for who, wave, row, level in zip((0, 0, 1, 2), OF_ROW, VALUES, levels, strict=True):
        by_hand[who, wave] = np.abs(row[:, None] - y) * np.log(level.alpha)
    by_hand -= by_hand.max(axis=-1, keepdims=True)
    codes = np.zeros((3, 6), dtype=np.int64)
    codes[data.row_numbers, data.columns] = data.reports
    found = data.noise.log_kernel(np.maximum(codes, 0)[..., None], y, 1.0)
    found = np.where(codes[..., None] < 0, 0.0, found)
    found -= found.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(found.reshape(by_hand.shape), by_hand, atol=1e-9)


def test_counts_of_several_axes():
    values = np.arange(16).reshape(4, 2, 2)
    data = cv.by_wave(made(values=values, labels=(PEOPLE, ("x", "y"), None)))
    assert data.mode_shape == (3, 2, 2, 2)
    assert data.n_masked == 8


def test_a_release_without_waves_is_refused_and_one_with_waves_has_no_rows_in_time(tmp_path):
    with pytest.raises(ValueError, match="must come from a study in waves"):
        cv.by_wave(made(waves=None))
    with pytest.raises(TypeError, match="Release objects or paths"):
        cv.by_wave(VALUES)
    with pytest.raises(ValueError, match="by_wave"):
        cv.DynamicModel(2).fit(made())
    made().save(tmp_path / "r.npz")
    with pytest.raises(ValueError, match="without waves"):
        cv.ReleaseFiles(tmp_path)


PARTIES, AGE = Covariate("party", ("D", "R", "I")), Covariate("age")
STATED = RowCovariates((PARTIES, AGE), (("D", "41"), ("D", "42"), ("R", "30"), ("I", "7.5")))


def test_covariates_that_stay_are_of_the_person_and_those_that_change_are_left_out_by_name(tmp_path):
    cv.Release(
        VALUES, STRONG, True, (PEOPLE, ("a", "b", "c")), extras=Extras(waves=(NAMES, OF_ROW), covariates=STATED)
    ).save(tmp_path / "r.npz")
    data = cv.by_wave(tmp_path / "r.npz")
    people = cv.covariates_of(data)
    assert list(people.columns) == ["party"]
    assert dict(people["party"]) == {"bob": "D", "ann": "R", "cy": "I"}
    assert list(people["party"].cat.categories) == ["D", "R", "I"]
    assert data.provenance.differing == {"age": 1}
    assert dict(in_rows_of(data, "~ party")["party"]) == {"bob": "D", "ann": "R", "cy": "I"}
    with pytest.raises(
        ValueError,
        match=r"'age' must be the same in all waves .* got values that differ between waves for 1 of the people",
    ):
        cv.TensorModel(2, prevalence="~ party + age").fit(data)
    assert cv.covariates_of(cv.by_wave(made())) is None


def test_a_fit_reads_what_people_stated():
    rng = np.random.default_rng(3)
    people = tuple(f"p{d}" for d in range(20) for _ in NAMES)
    stated = RowCovariates((PARTIES,), tuple(("DR"[d % 2],) for d in range(20) for _ in NAMES))
    values = rng.poisson(3.0, (40, 3))
    release = cv.Release(
        values, STRONG, True, (people, ("a", "b", "c")), extras=Extras(waves=(NAMES, (0, 1) * 20), covariates=stated)
    )
    model = cv.TensorModel(2, prevalence="~ party", draws=4, tune=4, chains=1, seed=1, progress=False)
    model.fit(cv.by_wave(release))
    assert list(model.covariates_.frame["party"])[:3] == ["D", "R", "D"]
    assert model.covariates_.terms == ("party[T.R]",)
