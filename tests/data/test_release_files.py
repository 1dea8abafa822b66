import os
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import countveil as cv
from countveil.data.observations import PrivatizedCounts
from tests.joint import method_with, planted

pytestmark = pytest.mark.long

LEVEL = cv.PrivacyLevel(1, 1)
SHORT = {"draws": 2, "tune": 1, "chains": 2, "seed": 1, "progress": False}


def written(folder, n_rows=700, n_columns=40, rows_per_file=150, level=LEVEL, labels=True):
    """A folder of releases of planted topics, and the same reports in memory."""
    counts = np.random.default_rng(3).poisson(planted(n_rows, n_columns, 3, 0.5, seed=2)[0])
    cv.privatize_to_files(
        sp.csr_array(counts), level, folder, rows_per_file=rows_per_file,
        row_labels=[f"text{d}" for d in range(n_rows)] if labels else None,
        column_labels=[f"word{v}" for v in range(n_columns)] if labels else None,
    )  # fmt: skip
    releases = [cv.Release.load(path) for path in sorted(folder.iterdir())]
    held = PrivatizedCounts(
        sp.vstack([release.reports for release in releases]),
        np.concatenate([np.broadcast_to(release.alpha, release.shape[0]) for release in releases]),
        row_labels=[name for release in releases for name in release.row_labels or ()] or None,
        column_labels=releases[0].column_labels,
    )
    return cv.ReleaseFiles(folder), held


def same_arrays(a, b):
    for name in ("indptr", "columns", "reports", "level_d", "exposure_d", "level_e"):
        one, two = getattr(a, name), getattr(b, name)
        assert one.dtype == two.dtype, name
        np.testing.assert_array_equal(one, two, err_msg=name)


def same_posterior(one, two):
    for group in ("posterior", "sample_stats", "constant_data"):
        assert one.posterior[group].to_dataset().identical(two.posterior[group].to_dataset()), group


def test_unpacked_reports_are_those_in_memory(tmp_path):
    levels = [cv.PrivacyLevel(1, 1 + d % 3) for d in range(700)]
    files, held = written(tmp_path / "parts", level=levels)
    found = files.unpacked()
    same_arrays(found, held)
    assert (found.shape, found.labels, found.provenance.simulated) == (held.shape, held.labels, False)
    assert repr(found) == repr(held)
    for rows in (slice(0, 700), slice(100, 356)):
        for a, b in zip(found.block(rows), held.block(rows), strict=True):
            np.testing.assert_array_equal(a, b)
            assert type(a) is np.ndarray
            assert a.flags.writeable == b.flags.writeable


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
@pytest.mark.parametrize("method", ["gibbs", "augmented-gibbs", "cavi", "em"])
def test_fits_on_disk_and_in_memory_are_the_same_bits(tmp_path, method):
    files, held = written(tmp_path / "parts")
    method = method_with(method, max_iter=3)
    model = cv.TopicModel(3, method=method, threads=2, **SHORT)
    on_disk = cv.TopicModel(3, method=method, threads=1, **SHORT).fit(files)
    same_posterior(on_disk, model.fit(held))
    other = written(tmp_path / "other", rows_per_file=64)[0]  # other noise, so that a difference would show
    with pytest.raises(AssertionError):
        same_posterior(on_disk, model.fit(other))


@pytest.mark.filterwarnings("ignore::countveil.inference.diagnostics.FitWarning")
def test_svi_of_one_file_is_that_of_memory(tmp_path):
    files, held = written(tmp_path / "parts", rows_per_file=700)
    assert files.n_parts == 1
    settings = {"method": cv.SVI(passes=2, batch_rows=100), "draws": 3, "seed": 1, "progress": False}
    same_posterior(cv.TopicModel(3, **settings).fit(files), cv.TopicModel(3, **settings).fit(held))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_how_reports_lie_in_files_does_not_matter(tmp_path):
    files, held = written(tmp_path / "parts", labels=False)
    (tmp_path / "again").mkdir()
    reports = held_reports(held)
    for i, (start, stop) in enumerate([(0, 1), (1, 511), (511, 700)]):
        cv.Release(reports[start:stop], LEVEL, True).save(tmp_path / "again" / f"{i}.npz")
    model = cv.TopicModel(3, method="gibbs", **SHORT)
    one = model.fit(files).posterior["posterior"].to_dataset()
    assert one.identical(model.fit(cv.ReleaseFiles(tmp_path / "again")).posterior["posterior"].to_dataset())


def held_reports(held):
    return sp.csr_array((held.reports, held.columns, held.indptr), shape=held.shape)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_chain_from_files_goes_on_in_memory(tmp_path):
    """A checkpoint knows the data by what is in them, not by where they are."""
    files, held = written(tmp_path / "parts")
    saved = tmp_path / "chains.npz"
    cv.TopicModel(3, **SHORT).fit(files, checkpoint=saved)
    again = cv.TopicModel(3, **SHORT).fit(held, checkpoint=saved, resume=True)
    same_posterior(again, cv.TopicModel(3, **SHORT).fit(held))


def test_a_fit_on_disk_holds_no_reports_in_memory(tmp_path):
    """Blocks of a sweep are views of the file: what is allocated in all is a part of what the reports would need."""
    files, _ = written(tmp_path / "parts", n_rows=3000, n_columns=600, rows_per_file=100, labels=False)
    n_bytes = 6 * int(files.unpacked().indptr[-1])
    assert n_bytes > 3e6
    settings = SHORT | {"draws": 1, "tune": 0, "chains": 1}
    cv.TopicModel(2, threads=1, **settings).fit(files)  # compilation and imports allocate, too
    tracemalloc.start()
    cv.TopicModel(2, threads=1, **settings).fit(files)
    on_disk = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert on_disk < 0.6 * n_bytes
    tracemalloc.start()
    held = PrivatizedCounts(held_reports(files.unpacked()), LEVEL.alpha)
    assert tracemalloc.get_traced_memory()[1] > n_bytes  # the control: reports in memory are seen
    tracemalloc.stop()
    assert held.shape == (3000, 600)


def test_the_scratch_file_has_no_name_and_can_be_elsewhere(tmp_path):
    written(tmp_path / "parts")
    (tmp_path / "scratch").mkdir()
    before = sorted(os.listdir(tmp_path / "parts"))
    files = cv.ReleaseFiles(tmp_path / "parts", scratch=tmp_path / "scratch")
    found = files.unpacked()
    assert os.listdir(tmp_path / "scratch") == []
    assert sorted(os.listdir(tmp_path / "parts")) == before
    assert found.reports.sum() > 0
    files.scratch = tmp_path / "none"
    with pytest.raises(FileNotFoundError):
        files.unpacked()


def test_files_without_a_positive_report(tmp_path):
    for i in range(2):
        cv.Release(sp.csr_array((3, 4), dtype=int), LEVEL, True).save(tmp_path / f"{i}.npz")
    found = cv.ReleaseFiles(tmp_path).unpacked()
    same_arrays(found, PrivatizedCounts(np.zeros((6, 4), dtype=int), LEVEL.alpha))


@pytest.mark.parametrize("largest", [2**15 - 1, 2**15, 2**31])
def test_the_widest_file_decides_the_type(tmp_path, largest):
    for i, value in enumerate((1, largest, 2)):
        cv.Release(sp.csr_array([[0, value, 1]]), LEVEL, True).save(tmp_path / f"{i}.npz")
    held = PrivatizedCounts([[0, 1, 1], [0, largest, 1], [0, 2, 1]], LEVEL.alpha)
    same_arrays(cv.ReleaseFiles(tmp_path).unpacked(), held)


def test_signed_releases_can_be_unpacked(tmp_path):
    cv.Release(np.array([[-3, 2], [0, 5]]), LEVEL, False).save(tmp_path / "a.npz")
    cv.Release(np.array([[-3, -1]]), LEVEL, False).save(tmp_path / "b.npz")
    held = PrivatizedCounts([[-3, 2], [0, 5], [-3, -1]], LEVEL.alpha)
    same_arrays(cv.ReleaseFiles(tmp_path).unpacked(), held)


def test_a_folder_is_its_releases_by_name(tmp_path):
    for name in ("b.npz", "a.npz", ".hidden.npz", "c.txt"):
        cv.Release(np.array([[ord(name[0])]]), LEVEL, True).save(tmp_path / name)
    files = cv.ReleaseFiles(tmp_path)
    assert [path.name for path in files.paths] == ["a.npz", "b.npz"]
    assert files.unpacked().reports.tolist() == [ord("a"), ord("b")]
    assert cv.ReleaseFiles(tmp_path / "b.npz").shape == (1, 1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="paths must name at least one release, got none"):
        cv.ReleaseFiles(tmp_path / "empty")


def test_a_release_that_is_there_twice_is_refused(tmp_path):
    for name, label in (("a.npz", "ann"), ("b.npz", "bob")):
        cv.privatize([[1, 2, 3] * 9], cv.PrivacyLevel(1, 1), row_labels=[label]).save(tmp_path / name)
    assert cv.ReleaseFiles(tmp_path).shape == (2, 27)
    (tmp_path / "c.npz").write_bytes((tmp_path / "a.npz").read_bytes())
    (tmp_path / "d.npz").symlink_to(tmp_path / "b.npz")
    for again, path in (("c.npz", "a.npz"), ("d.npz", "b.npz"), ("a.npz", "a.npz")):
        with pytest.raises(ValueError, match=rf"every release once, got that of .*{path} again in .*{again}$"):
            cv.ReleaseFiles([tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / again])


def test_small_releases_may_be_the_same_by_chance(tmp_path):
    level = cv.PrivacyLevel(1, 1)
    for name, n_columns in (("few.npz", 20), ("many.npz", 40)):
        cv.Release(sp.csr_array([[3] * n_columns]), level, True).save(tmp_path / name)
    assert cv.ReleaseFiles([tmp_path / "few.npz"] * 2).shape == (2, 20)
    with pytest.raises(ValueError, match="every release once"):
        cv.ReleaseFiles([tmp_path / "many.npz"] * 2)


def test_an_undirected_network_is_refused(tmp_path):
    cv.privatize(np.eye(4, dtype=int), cv.PrivacyLevel(1, 1), directed=False).save(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"documents and words, got an undirected network in .*a\.npz"):
        cv.ReleaseFiles(tmp_path)


def test_files_that_change_in_between_are_refused(tmp_path):
    files, _ = written(tmp_path / "parts")
    path = files.paths[2]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(cv.privacy.ReleaseError, match=r"part-000002\.npz must match its SHA-256 seal"):
        files.unpacked()
    with pytest.raises(cv.privacy.ReleaseError, match=r"part-000002\.npz must match its SHA-256 seal"):
        cv.ReleaseFiles(tmp_path / "parts")
    release = cv.Release.load(files.paths[1])
    reports, (rows, columns) = release.reports, release.labels
    wider = sp.csr_array(sp.hstack([reports, reports]))
    whole = cv.Release.load(files.paths[3])
    for other in (
        cv.Release(reports[:10], LEVEL, True, (rows[:10], columns)),
        cv.Release(reports, cv.PrivacyLevel(1, 2), True, release.labels),
        cv.Release(wider, LEVEL, True, (rows, None)),
        cv.Release(40_000 * reports.astype(int), LEVEL, True, release.labels),
        whole,  # the same rows, words and levels, and reports that are no larger
    ):
        other.save(path)
        rule = r"paths must not change during a fit, got .*part-000002\.npz with new content"
        with pytest.raises(ValueError, match=rule):
            files.unpacked()
        with pytest.raises(ValueError, match=rule):
            list(files.parts())


@pytest.mark.parametrize("shape", [(4,), (2, 3, 2)])
def test_releases_of_other_than_two_axes_are_refused(tmp_path, shape):
    cv.Release(np.ones(shape, dtype=int), LEVEL, True).save(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=rf"releases of two axes, documents and words, got {len(shape)} in .*a\.npz"):
        cv.ReleaseFiles(tmp_path)


def test_a_network_is_not_on_disk(tmp_path):
    files, _ = written(tmp_path / "parts", n_rows=40)
    with pytest.raises(ValueError, match="X must be a network in memory, got ReleaseFiles: pass cv"):
        cv.BlockModel(2).fit(files)


def test_a_release_with_discrete_gaussian_noise_is_fitted_by_itself(tmp_path):
    cv.privatize_to_files(np.ones((4, 3), dtype=int), cv.PrivacyLevel.zcdp(1), tmp_path / "parts", rows_per_file=2)
    with pytest.raises(
        ValueError, match=r"got 'discrete Gaussian' in .*part-000000\.npz: fit such a release by itself"
    ):
        cv.ReleaseFiles(tmp_path / "parts")
