"""Reports of several waves with an axis of time: every report in its place, absent ones masked."""

import numpy as np
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data.covariates import in_rows_of
from countveil.privacy._covariates import Covariate, RowCovariates

STRONG, WEAK = cv.PrivacyLevel(1, 2), cv.PrivacyLevel(2, 1)
NAMES = ("spring", "summer")
PEOPLE, OF_ROW = ("bob", "bob", "ann", "cy"), (0, 1, 1, 0)
VALUES = np.array([[3, 0, 1], [0, 2, 5], [7, 1, 0], [2, 2, 2]])


def made(levels=STRONG, values=VALUES, labels=(PEOPLE, ("a", "b", "c")), waves=(NAMES, OF_ROW)):
    return cv.Release(values, levels, True, labels, waves=waves)


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
        VALUES, STRONG, True, (("bob", "Bob ", "ann", "cy"), None), waves=(NAMES, OF_ROW), covariates=stated
    )
    data = cv.by_wave(release)
    same = cv.by_wave(made())
    assert list(data.labels[0]) == ["bob", "ann", "cy"]
    assert data.levels == same.levels == (cv.PrivacyLevel(2, 2), STRONG, STRONG)
    assert data.promise == same.promise
    np.testing.assert_array_equal(data.reports, same.reports)
    assert data.covariates["age"].to_dict() == {"bob": 20.0, "ann": 30.0, "cy": 40.0}


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


PARTY, AGE = Covariate("party", ("D", "R", "I")), Covariate("age")
STATED = RowCovariates((PARTY, AGE), (("D", "41"), ("D", "42"), ("R", "30"), ("I", "7.5")))


def test_covariates_that_stay_are_of_the_person_and_those_that_change_are_left_out_by_name(tmp_path):
    cv.Release(
        VALUES, STRONG, True, (PEOPLE, ("a", "b", "c")), waves=(NAMES, OF_ROW), covariates=STATED
    ).save(tmp_path / "r.npz")
    data = cv.by_wave(tmp_path / "r.npz")
    people = cv.covariates_of(data)
    assert list(people.columns) == ["party"]
    assert dict(people["party"]) == {"bob": "D", "ann": "R", "cy": "I"}
    assert list(people["party"].cat.categories) == ["D", "R", "I"]
    assert data.differing == {"age": 1}
    assert dict(in_rows_of(data, "~ party")["party"]) == {"bob": "D", "ann": "R", "cy": "I"}
    with pytest.raises(
        ValueError, match=r"'age' must be the same in all waves of a person .* got others of 1 people"
    ):
        cv.TensorModel(2, prevalence="~ party + age").fit(data)
    assert cv.covariates_of(cv.by_wave(made())) is None


def test_a_fit_reads_what_people_stated():
    rng = np.random.default_rng(3)
    people = tuple(f"p{d}" for d in range(20) for _ in NAMES)
    stated = RowCovariates((PARTY,), tuple(("DR"[d % 2],) for d in range(20) for _ in NAMES))
    values = rng.poisson(3.0, (40, 3))
    release = cv.Release(
        values, STRONG, True, (people, ("a", "b", "c")), waves=(NAMES, (0, 1) * 20), covariates=stated
    )
    model = cv.TensorModel(2, prevalence="~ party", draws=4, tune=4, chains=1, seed=1, progress=False)
    model.fit(cv.by_wave(release))
    assert list(model.covariates_.frame["party"])[:3] == ["D", "R", "D"]
    assert model.covariates_.terms == ("party[T.R]",)
