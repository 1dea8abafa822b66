"""Files of joined releases: what is saved is read, and whatever is missing, changed or too large is refused."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data import joined_files
from countveil.privacy import ReleaseError, _archive, _format, _npy
from countveil.privacy._archive import SMALL
from countveil.privacy._covariates import Covariate, RowCovariates
from countveil.privacy._extras import Extras

LEVEL, RNG = cv.PrivacyLevel(epsilon=1, precision=1), np.random.default_rng(1)
COUNTS = pd.DataFrame(RNG.poisson(3.0, (4, 3)), index=list("abcd"), columns=["tea", "milk", "jam"])
SAMPLED = {"draws": 5, "tune": 5, "chains": 2, "seed": 1, "progress": False, "threads": 1}


def simulated(rows="abcd", seed=1, level=LEVEL, counts=COUNTS, **options):
    return cv.simulate_release(counts.loc[list(rows)], level, np.random.default_rng(seed), **options)


def with_covariates(seed):
    noisy = simulated(seed=seed)
    beside = RowCovariates((Covariate("party", ("D", "R")),), tuple((p,) for p in "DRDR"))
    return cv.Release(noisy.reports, noisy.mechanism, noisy.truncated, noisy.labels, extras=Extras(covariates=beside))


def masked():
    values, mask = COUNTS // 3 * 3, np.zeros(COUNTS.shape, dtype=bool)
    mask[1, 2] = True
    return cv.import_reports(values, cv.mechanisms.Rounding(3), "Others, 2020", mask=mask)


def network(seed):
    counts = pd.DataFrame([[0, 5, 9], [5, 0, 7], [9, 7, 0]], index=list("abc"), columns=list("abc"))
    return simulated("abc", seed, counts=counts, directed=False)


def unnamed(shape, seed):
    rng = np.random.default_rng(seed)
    return cv.simulate_release(rng.poisson(2.0, shape), LEVEL, rng)


MADE = {
    "rows in another order, and fewer": lambda: [simulated(), simulated("dca", 2)],
    "levels by row": lambda: [simulated("ab", 1, [LEVEL, cv.PrivacyLevel(2, 1)]), simulated("ba", 2)],
    "three, one of rho": lambda: [
        simulated(), simulated("ab", 2), simulated("cd", 3, cv.PrivacyLevel.zcdp("0.5"), truncate=False)
    ],
    "covariates": lambda: [with_covariates(1), with_covariates(2)],
    "a mask and a source": lambda: [simulated(), masked()],
    "sparse": lambda: [cv.Release(sp.csr_array([[0, 5, 0], [7, i, 2]]), LEVEL, True) for i in (1, 3)],
    "networks": lambda: [network(1), network(2)],
    "tensors": lambda: [unnamed((2, 3, 4), seed) for seed in (1, 2)],
}  # fmt: skip


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_is_saved_is_read(tmp_path, make):
    releases, path = make(), tmp_path / "both.npz"
    joined = cv.join(releases)
    joined.save(path)
    found = cv.join(path)
    for name in ("reports", "columns", "indptr", "level_d"):
        np.testing.assert_array_equal(getattr(found, name), getattr(joined, name))
    assert (found.mode_shape, found.labels) == (joined.mode_shape, joined.labels)
    for name in ("levels", "promise", "simulated", "directed", "source"):
        assert getattr(found.provenance, name) == getattr(joined.provenance, name), name
    assert found.noise.mechanism == joined.noise.mechanism
    for one, other in zip(found.noise.kernel, joined.noise.kernel, strict=True):
        np.testing.assert_array_equal(one, other)
    if joined.provenance.covariates is not None:
        pd.testing.assert_frame_equal(cv.covariates_of(found), cv.covariates_of(joined))
    found.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_fits_of_the_file_are_the_same_bits(tmp_path):
    joined = cv.join([simulated(), simulated("dca", 2)])
    joined.save(tmp_path / "both.npz")
    one, other = (cv.TopicModel(2, **SAMPLED).fit(each) for each in (joined, cv.join(tmp_path / "both.npz")))
    for name in ("theta", "phi"):
        np.testing.assert_array_equal(*(each.posterior["posterior"][name] for each in (one, other)))


def test_every_release_in_the_file_is_a_release_file(tmp_path):
    paths = [tmp_path / f"{name}.npz" for name in ("spring", "autumn")]
    for seed, path in enumerate(paths):
        simulated(seed=seed).save(path)
    cv.join(paths).save(tmp_path / "both.npz")
    with zipfile.ZipFile(tmp_path / "both.npz") as archive:
        assert archive.namelist() == ["meta.json", "1.npz", "2.npz"]
        for path, name in zip(paths, ("1.npz", "2.npz"), strict=True):
            assert archive.read(name) == path.read_bytes()


def test_a_file_stands_for_its_releases_among_others(tmp_path):
    releases = [unnamed((10, 10), seed) for seed in range(3)]
    cv.join(releases[:2]).save(tmp_path / "both.npz")
    found, wanted = cv.join([tmp_path / "both.npz", releases[2]]), cv.join(releases)
    np.testing.assert_array_equal(found.reports, wanted.reports)
    assert found.levels == wanted.levels
    with pytest.raises(ValueError, match="the same reports in releases 1 and 3"):
        cv.join([tmp_path / "both.npz", releases[0]])


def test_only_what_was_joined_is_saved(tmp_path):
    joined = cv.join([simulated(), simulated(seed=2)])
    changed = [
        cv.Reports(COUNTS, LEVEL.mechanism),
        joined.also(COUNTS, LEVEL.mechanism),
        joined.take(np.array([0, 1])),
        joined.hide(np.array([0]), np.array([0])),
    ]
    for each in changed:
        with pytest.raises(
            ValueError, match=r"^save must be called on an unchanged result of join, got changed or other reports"
        ):
            each.save(tmp_path / "other.npz")
    assert not list(tmp_path.iterdir())
    for n in (1, joined_files.MOST_RELEASES + 1):
        with pytest.raises(ValueError, match=rf"^releases must be 2 to 100 to be in one file, got {n}$"):
            joined_files.write(tmp_path / "other.npz", [simulated()] * n)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "both.npz"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(_archive.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        cv.join([simulated(), simulated(seed=2)]).save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_release_and_a_file_of_several_are_told_apart(tmp_path):
    simulated().save(tmp_path / "one.npz")
    cv.join([simulated(), simulated(seed=2)]).save(tmp_path / "both.npz")
    assert [each.shape for each in joined_files.read(tmp_path / "one.npz")] == [(4, 3)]
    with pytest.raises(ReleaseError, match="must have format 'countveil-release', got 'countveil-joined-release"):
        cv.Release.load(tmp_path / "both.npz")
    with pytest.raises(ValueError, match=r"releases must be two or more to be joined, got 1$"):
        cv.join(tmp_path / "one.npz")
    with pytest.raises(ValueError, match="must hold counts, got a release"):
        cv.read_counts(tmp_path / "both.npz")
    with pytest.raises(FileNotFoundError):
        cv.join(tmp_path / "none.npz")
    with pytest.raises(IsADirectoryError, match="must be a file of releases, got a folder"):
        cv.join(tmp_path)


def test_every_flipped_byte_and_every_truncation_is_refused(tmp_path):
    path = tmp_path / "both.npz"
    cv.join([simulated("a"), simulated("a", 2)]).save(path)
    content = path.read_bytes()
    for i in range(len(content)):
        path.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        with pytest.raises(ReleaseError, match="seal"):
            joined_files.read(path)
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(ReleaseError, match="seal"):
            joined_files.read(path)


def contents(*seeds):
    return [_archive.packed(_format.members(simulated(seed=seed))) for seed in seeds]


def described(members, **changes):
    meta = json.loads(members["meta.json"]) | changes
    return members | {"meta.json": _format.canonical(meta)}


def damaged(members):
    """A release in it whose own seal is broken, under a description that knows the broken one."""
    one, two = members["1.npz"], members["2.npz"]
    return joined_files.members_of([one[:40] + bytes([one[40] ^ 1]) + one[41:], two])


def swapped(members):
    return members | {"1.npz": members["2.npz"], "2.npz": members["1.npz"]}


STATED = "must describe itself as 'countveil-joined-releases', version 1, with the seals"
HELD = "must hold meta.json and 2 to 100 releases from 1.npz on"
FORGED = {
    "one missing": (lambda m: {name: m[name] for name in ("meta.json", "1.npz")}, HELD),
    "a gap": (lambda m: {name: m[name] for name in ("meta.json", "1.npz", "3.npz")}, HELD),
    "one left out": (lambda m: {name: m[name] for name in ("meta.json", "1.npz", "2.npz")}, STATED),
    "something else": (lambda m: m | {"notes.txt": b"x"}, HELD),
    "no description": (lambda m: {name: m[name] for name in ("1.npz", "2.npz", "3.npz")}, HELD),
    "swapped": (swapped, STATED),
    "another release": (lambda m: m | {"2.npz": contents(9)[0]}, STATED),
    "another version": (lambda m: described(m, format_version=2), STATED),
    "another format": (lambda m: described(m, format="countveil-release"), STATED),
    "one more key": (lambda m: described(m, promise="none"), STATED),
    "another spelling": (lambda m: m | {"meta.json": m["meta.json"] + b" "}, STATED),
    "a damaged release": (damaged, r"both.npz/1.npz must match its SHA-256 seal"),
    "no release": (lambda m: m | {"2.npz": b"x" * 200}, r"both.npz/2.npz must end with its SHA-256 seal"),
    "one in another": (
        lambda m: joined_files.members_of([_archive.packed(m, zipfile.ZIP_STORED), m["2.npz"]]),
        r"both.npz/1.npz must have format 'countveil-release'",
    ),
    "too many": (lambda m: joined_files.members_of([m["1.npz"]] * 101), HELD),
}


@pytest.mark.parametrize(("change", "rule"), FORGED.values(), ids=FORGED)
def test_what_was_put_together_otherwise_is_refused(tmp_path, change, rule):
    members = joined_files.members_of(contents(1, 2, 3))
    _archive.write(tmp_path / "both.npz", members, zipfile.ZIP_STORED)
    assert len(joined_files.read(tmp_path / "both.npz")) == 3
    _archive.write(tmp_path / "both.npz", change(members), zipfile.ZIP_STORED)
    with pytest.raises(ReleaseError, match=rule) as refused:
        joined_files.read(tmp_path / "both.npz")
    assert "both.npz" in str(refused.value)


def test_releases_that_are_packed_again_are_refused(tmp_path):
    """They could ask for three hundred times three hundred times their bytes."""
    _archive.write(tmp_path / "both.npz", joined_files.members_of([contents(1)[0], bytes(10**6)]))
    with pytest.raises(ReleaseError, match=r"releases that are not packed again, got \d+ bytes that declare 10"):
        joined_files.read(tmp_path / "both.npz")


def huge(size):
    """A sealed release file of few bytes whose reports are zeros of this many bytes."""
    meta = json.loads(_format.members(simulated())["meta.json"])
    shape = (size // 8 // 4, 4)
    meta |= {"shape": list(shape), "stored": size // 8 // 4 * 4, "labels": [None, None]}
    meta["schema_hash"] = _format.schema_hash(shape, (None, None))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(zipfile.ZipInfo("meta.json"), _format.canonical(meta))
        with archive.open("reports.npy", "w", force_zip64=True) as member:
            member.write(_npy.header(shape))
            for _ in range(size // 2**20):
                member.write(bytes(2**20))
        archive.comment = b" " * _archive.SEAL_LENGTH
    content = file.getvalue()[: -_archive.SEAL_LENGTH]
    return content + _archive.seal(io.BytesIO(content), len(content))


def test_releases_that_ask_for_much_memory_together_are_refused_before_they_are_read(tmp_path, monkeypatch):
    each = huge(SMALL * 3 // 4)
    (tmp_path / "one.npz").write_bytes(each)
    _archive.Reader(tmp_path / "one.npz")  # alone it asks for no more than any file may
    _archive.write(tmp_path / "both.npz", joined_files.members_of([each] * 5), zipfile.ZIP_STORED)
    monkeypatch.setattr(_format, "read", None)
    with pytest.raises(ReleaseError, match=r"must hold what it declares, got \d+ bytes that declare 25"):
        joined_files.read(tmp_path / "both.npz")
