import io
import json
import math
import os
import stat
import tracemalloc
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.privacy.toy import Divided

from countveil.privacy import PrivacyLevel, Release, ReleaseError, _archive, _format, _npy, privatize
from countveil.privacy.mechanisms import MECHANISMS

LEVEL = PrivacyLevel("0.1", 3)


def same(a: Release, b: Release) -> bool:
    dense = [x.reports.toarray() if sp.issparse(x.reports) else np.asarray(x.reports) for x in (a, b)]
    facts = [(x.shape, x.mechanism, x.truncated, x.simulated, x.labels, x.schema_hash, type(x.reports)) for x in (a, b)]
    return facts[0] == facts[1] and bool((dense[0] == dense[1]).all())


def small() -> Release:
    """A release with everything in it: sparse, labelled, two levels."""
    reports = sp.csr_array(np.array([[0, 5, 0], [7, 0, 2]]))
    return Release(reports, (LEVEL, PrivacyLevel(1, 1)), True, (("ann", "bo"), ("x", "é", "\U0001f512")))


levels = st.builds(
    PrivacyLevel,
    st.one_of(st.floats(1e-6, 1e6), st.fractions(Fraction(1, 999), 50, max_denominator=999)),
    st.one_of(st.integers(1, 10**6), st.decimals("0.001", 1000, places=3)),
)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@st.composite
def releases(draw) -> Release:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    truncated = draw(st.booleans())
    low = 0 if truncated else -(2**63)
    values = st.one_of(st.integers(max(low, -9), 9), st.integers(low, 2**63 - 1))
    size = math.prod(shape)
    reports = np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype=np.int64).reshape(shape)
    sparse = truncated and len(shape) == 2 and draw(st.booleans())
    level = draw(st.one_of(levels, st.lists(levels, min_size=shape[0], max_size=shape[0]).map(tuple)))
    labels = tuple(
        draw(st.none() | st.lists(names, min_size=length, max_size=length, unique=True).map(tuple)) for length in shape
    )
    return Release(sp.csr_array(reports) if sparse else reports, level, truncated, labels, draw(st.booleans()))


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(release=releases())
def test_what_is_saved_is_loaded(tmp_path, release):
    path = tmp_path / "release.npz"
    release.save(path)
    loaded = Release.load(path)
    assert same(release, loaded)
    assert loaded.reports.dtype == release.reports.dtype
    again = tmp_path / "again.npz"
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_numpy_reads_the_file(tmp_path):
    release = privatize(np.zeros((2, 3), dtype=int), LEVEL)
    release.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert (arrays["reports"] == release.reports).all()
        assert arrays["reports"].dtype == np.dtype("<i2")
        assert json.loads(arrays["meta.json"])["mechanisms"] == [LEVEL.mechanism.to_json()]
    small().save(tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"meta.json", "data", "indices", "indptr", "mechanism_of_row"}
        assert arrays["data"].tolist() == [5, 7, 2]


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (1, 1, 4), (10**3, 2)])
def test_members_are_what_numpy_writes(shape):
    values = np.arange(math.prod(shape)).reshape(shape)
    ours = _npy.encode(values, shape)
    assert ours == _npy.encode(values.ravel().tolist(), shape)
    assert (np.load(io.BytesIO(ours), allow_pickle=False) == values).all()
    assert len(_npy.header(shape)) % 64 == 0
    assert (_npy.decode(ours, shape) == values.ravel()).all()


def test_the_file_says_nothing_about_when(tmp_path, monkeypatch):
    small().save(tmp_path / "a.npz")
    monkeypatch.setattr("time.time", lambda: 2e9)
    small().save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_many_rows_with_few_levels_stay_small(tmp_path):
    chosen = tuple(PrivacyLevel(1, 1 + i % 3) for i in range(20_000))
    Release(sp.csr_array((20_000, 10), dtype=int), chosen, True).save(tmp_path / "a.npz")
    assert (tmp_path / "a.npz").stat().st_size < 3000
    assert Release.load(tmp_path / "a.npz").levels == chosen


def test_every_flipped_byte_is_refused(tmp_path):
    path = tmp_path / "release.npz"
    small().save(path)
    content = path.read_bytes()
    for place in range(len(content)):
        for flip in (1, 0x80, 0xFF):
            path.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])
            with pytest.raises(ReleaseError, match=r"^release file .*release\.npz must "):
                Release.load(path)


def test_every_truncation_and_every_appendix_is_refused(tmp_path):
    path = tmp_path / "release.npz"
    small().save(path)
    content = path.read_bytes()
    changed = [content[:length] for length in range(len(content))]
    changed += [content + tail for tail in (b"\0", b"PK", content, content[-81:])]
    changed += [b"x" + content, content[1:]]
    for other in changed:
        path.write_bytes(other)
        with pytest.raises(ReleaseError, match=r"^release file .*release\.npz must "):
            Release.load(path)
    path.write_bytes(content)
    assert same(Release.load(path), small())


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Release.load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError):
        small().save(tmp_path / "none" / "a.npz")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "release.npz"
    small().save(path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="disk full"):
        privatize(np.zeros((50, 50), dtype=int), LEVEL).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["release.npz"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "release.npz"
    small().save(path)
    before = path.read_bytes()
    with pytest.raises(OverflowError):
        _archive.write(path, {"a": b"whole", "b": _archive.Streamed(9, (bytes(n) for n in (3, 10**30)))})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["release.npz"]


def test_streamed_members_may_be_larger_than_a_plain_zip_allows(tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    path = tmp_path / "a.zip"
    _archive.write(path, {"small": b"here", "large": _archive.Streamed(6000, (bytes(1000) for _ in range(6)))})
    reader = _archive.Reader(path)
    assert (reader.read("small"), reader.read("large")) == (b"here", bytes(6000))


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_the_file_has_ordinary_permissions(tmp_path):
    small().save(tmp_path / "a.npz")
    (tmp_path / "b").touch()
    assert stat.S_IMODE((tmp_path / "a.npz").stat().st_mode) == stat.S_IMODE((tmp_path / "b").stat().st_mode)


# --- files with a valid seal and a wrong content ---


def forge(path: Path, change_meta=None, change=None) -> None:
    """Writes ``small()`` with parts changed, and seals it again."""
    small().save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if change_meta is not None:
        meta = json.loads(members["meta.json"])
        change_meta(meta)
        members["meta.json"] = json.dumps(meta, sort_keys=True, separators=(",", ":")).encode()
    for name, content in (change or {}).items():
        if content is None:
            del members[name]
        else:
            members[name] = content
    _archive.write(path, members)


def put(**values):
    return lambda meta: meta.update(values)


FIRST = PrivacyLevel(1, 1).mechanism.to_json()


def stated(**values):
    """A change of what the first mechanism is said to be."""
    return lambda meta: meta["mechanisms"][0].update(values)


def at(**values):
    """A change of the first mechanism's parameters."""
    return lambda meta: meta["mechanisms"][0]["parameters"].update(values)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (put(format="zip"), "format 'countveil-release', got 'zip'"),
        (put(format_version=3), "must have format_version 7, got 3: make the release again with this version"),
        (put(format_version=8), "must have format_version 7, got 8: update countveil"),
        (put(format_version=7.0), "must have format_version 7, got 7.0"),
        (put(format_version=True), "must have format_version 7, got True"),
        (put(format_version="7"), "must have format_version 7, got '7'"),
        (put(totals=[]), "must state at least one family of totals, got none"),
        (
            put(exposure_shape=[2, 2]),
            "must have an exposure whose shape broadcasts to [2, 3], that of its reports, got [2, 2]",
        ),
        (put(mechanisms={}), "mechanisms of type list, got dict"),
        (
            stated(name="laplace"),
            "known mechanisms: mechanism must be one of 'two-sided geometric', 'discrete Gaussian', ",
        ),
        (stated(version=2), "known mechanisms: mechanism 'two-sided geometric' must have version 1, got 2"),
        (stated(version=True), "'two-sided geometric' must have version 1, got True"),
        (stated(seed=3), "mechanism must have a name, a version and parameters, got ['name', "),
        (stated(parameters={"alpha": "1/2"}), "a valid release: mechanism must state its epsilon and precision"),
        (stated(parameters={"epsilon": "1", "precision": str(2**41)}), "rate of at least 2**-40, got 4.5"),
        (put(extra=1), "got an unknown 'extra'"),
        (lambda meta: meta.pop("simulated"), "got no 'simulated'"),
        (put(simulated=0), "simulated of type bool, got int"),
        (put(truncated=None), "truncated of type bool"),
        (put(truncated=False), "truncated or imported reports to be sparse, got signed reports without a source"),
        (put(layout="coo"), "a layout among"),
        (put(layout="dense"), "as many"),
        (put(shape=[2, 0]), "a shape of 1 to 32 positive lengths, got [2, 0]"),
        (put(shape=[2, 3.0]), "a shape of 1 to 32 positive lengths"),
        (put(shape=[]), "a shape of 1 to 32 positive lengths, got []"),
        (put(shape=[2, -3]), "a shape of 1 to 32 positive lengths"),
        (put(shape=[10**15, 3]), "indptr of shape"),
        (put(shape=[3, 3]), "of shape"),
        (put(shape=[2, 2]), "sorted columns within 2, once in each row, got column 2 in row 1"),
        (put(shape=[2, 3, 1]), "two axes to be sparse, got 3"),
        (put(stored=4), "data of shape"),
        (put(stored=-1), "as many reports"),
        (put(stored=7), "as many reports"),
        (put(mechanisms=[]), "one mechanism, or one for each row, got 0"),
        (
            put(mechanisms=[FIRST]),
            "each row one of its mechanisms, different ones in order of first use, got mechanisms [0, 1] of 1",
        ),
        (put(mechanisms=[FIRST] * 2), "in order of first use, got TwoSidedGeometric"),
        (put(mechanisms=[FIRST, 2]), "a name, a version and parameters, got 'int'"),
        (stated(parameters={"epsilon": "1"}), "epsilon and precision, or alpha, got ['epsilon']"),
        (at(epsilon=1), "epsilon must be a reduced fraction in text, such as 1 or 1/10, got 1"),
        (at(epsilon="0"), "epsilon must be positive, got 0"),
        (at(epsilon="-1"), "epsilon must be a reduced fraction in text, such as 1 or 1/10, got '-1'"),
        (at(precision="2/4"), "precision must be a reduced fraction in text, such as 1 or 1/10, got '2/4'"),
        (at(epsilon="1/0"), "epsilon must be a reduced fraction in text"),
        (at(epsilon="1e9"), "epsilon must be a reduced fraction in text"),
        (at(epsilon="9" * 1300), "epsilon must be a fraction of numbers below 2**4096"),
        (put(mechanism_per_row=False), "one mechanism, or one for each row, got 2"),
        (put(mechanism_per_row=1), "mechanism_per_row of type bool, got int"),
        (put(labels=[None]), "labels or null for each of 2 axes"),
        (put(labels=[None, ["x", "y", "z"]]), "schema hash of its axes and labels, "),
        (put(labels=[None, "xyz"]), "labels of axis 1 as strings, got 'xyz'"),
        (put(labels=[["a"], ["x", "é", "\U0001f512"]]), "labels of axis 0 must number 2"),
        (put(labels=[[1, 2], None]), "labels of axis 0 as strings, got 1 in entry 0"),
        (put(schema_hash="0" * 64), ", got '000000"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path, change, rule):
    forge(tmp_path / "a.npz", change)
    with pytest.raises(ReleaseError, match=r"^release file .*a\.npz must ") as caught:
        Release.load(tmp_path / "a.npz")
    assert rule in str(caught.value)


def member(*values: int, n_bytes: int | None = None) -> bytes:
    return _npy.encode(list(values), (len(values),), n_bytes)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"data.npy": member(5, 0, 2)}, "store positive reports only, got 0"),
        ({"data.npy": member(5, -7, 2)}, "store positive reports only, got -7"),
        ({"data.npy": member(5, 7)}, "data of shape (3,) in 134 or 140 or 152 bytes, got 132 bytes"),
        ({"data.npy": member(5, 7, 2, 1)}, "data of shape"),
        ({"data.npy": member(5, 7, 2, n_bytes=8).replace(b"<i8", b"<f8")}, "integers of 16 or 32 or 64 bits"),
        ({"data.npy": member(5, 7, 2).replace(b"<i2", b"<u2")}, "got 134 bytes that begin with b\"{'descr': '<u2'"),
        ({"data.npy": member(5, 7, 2, n_bytes=8).replace(b"<i8", b"|O8")}, "integers of 16 or 32 or 64 bits"),
        ({"indices.npy": member(1, 0, 3)}, "sorted columns within 3, once in each row, got column 3 in row 1"),
        ({"indices.npy": member(1, -1, 2)}, "got column -1 in row 1"),
        ({"indices.npy": member(1, 2, 0)}, "got column 0 in row 1"),
        ({"indices.npy": member(1, 2, 2)}, "got column 2 in row 1"),
        ({"indptr.npy": member(0, 4, 3)}, "row offsets that rise from 0 to 3, got 4 and then 3 in row 1"),
        ({"indptr.npy": member(1, 1, 3)}, "row offsets that rise from 0 to 3, got 1 to 3"),
        ({"indptr.npy": member(0, 1, 2)}, "row offsets"),
        ({"indptr.npy": member(0, -30_000, 3)}, "row offsets"),
        ({"mechanism_of_row.npy": member(0, 2)}, "got mechanisms [0, 2] of 2"),
        ({"mechanism_of_row.npy": member(0, -1)}, "each row one of its mechanisms"),
        ({"mechanism_of_row.npy": member(1, 0)}, "got mechanisms [1, 0] of 2"),
        ({"mechanism_of_row.npy": None}, "must hold ["),
        ({"level_of_row.npy": member(0, 1)}, "must hold ["),
        ({"indptr.npy": None}, "must hold ["),
        ({"more.npy": member(1)}, "must hold ["),
        ({"meta.json": None}, "must hold a meta.json of at most 268435456 bytes, got none"),
        ({"meta.json": b"\xff"}, "valid JSON"),
        ({"meta.json": b"{"}, "valid JSON"),
        ({"meta.json": b"[" * 100_000}, "valid JSON"),
        ({"meta.json": b"1" * 10_000}, "valid JSON"),
        ({"meta.json": b"NaN"}, "valid JSON"),
        ({"meta.json": b"[]"}, "the keys format and format_version, got []"),
        ({"meta.json": b"{}"}, "the keys format and format_version, got no 'format'"),
    ],
)
def test_wrong_members_are_refused(tmp_path, change, rule):
    forge(tmp_path / "a.npz", None, change)
    with pytest.raises(ReleaseError, match=r"^release file .*a\.npz must ") as caught:
        Release.load(tmp_path / "a.npz")
    assert rule in str(caught.value)


@pytest.mark.parametrize("n_bytes", [2, 4, 8])
def test_members_may_be_wider_than_they_need_to_be(tmp_path, n_bytes):
    """Whoever writes such files need not know the largest value beforehand."""
    wide = {"data": (5, 7, 2), "indices": (1, 0, 2), "indptr": (0, 1, 3), "mechanism_of_row": (0, 1)}
    changes = {f"{name}.npy": member(*values, n_bytes=n_bytes) for name, values in wide.items()}
    forge(tmp_path / "a.npz", None, changes)
    assert same(Release.load(tmp_path / "a.npz"), small())
    assert Release.load(tmp_path / "a.npz").reports.dtype == np.int16


@pytest.mark.parametrize(
    ("low", "high", "n_bytes"),
    [
        (0, 0, 2), (-(2**15), 2**15 - 1, 2), (0, 2**15, 4), (-(2**15) - 1, 0, 4), (-(2**31), 2**31 - 1, 4),
        (0, 2**31, 8), (-(2**31) - 1, 0, 8), (-(2**63), 2**63 - 1, 8),
    ],
)  # fmt: skip
def test_an_array_is_as_narrow_as_its_values(low, high, n_bytes):
    values = np.array([low, high, 0])
    assert _npy.width(low, high) == n_bytes
    assert _npy.narrowed(values).dtype == np.dtype(f"i{n_bytes}")
    assert (_npy.narrowed(values) == values).all()
    content = _npy.encode(values, (3,))
    assert content == _npy.encode([low, high, 0], (3,))
    assert len(content) == _npy.size((3,), n_bytes) == len(_npy.header((3,), n_bytes)) + 3 * n_bytes
    assert _npy.decode(content, (3,)).tolist() == [low, high, 0]


def test_two_spellings_of_one_description_are_one_too_many(tmp_path):
    small().save(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        meta = archive.read("meta.json")
    doubled = meta.replace(b'{"format"', b'{"simulated":true,"format"')
    for other, place in ((meta + b" ", f"b' ' at byte {len(meta)}"), (doubled, "at byte 2")):
        forge(tmp_path / "a.npz", None, {"meta.json": other})
        with pytest.raises(ReleaseError, match=rf"canonical JSON .* got .*{place}"):
            Release.load(tmp_path / "a.npz")


def test_negative_reports_cannot_be_called_truncated(tmp_path):
    Release(np.array([[-1, 2]]), LEVEL, False).save(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["meta.json"] = members["meta.json"].replace(b'"truncated":false', b'"truncated":true')
    _archive.write(tmp_path / "a.npz", members)
    with pytest.raises(ReleaseError, match="truncated reports must not be negative, got -1"):
        Release.load(tmp_path / "a.npz")


def test_a_sealed_file_that_is_no_zip_is_refused(tmp_path):
    for body in (b"", b"PK\5\6", b"not a zip" * 9, b"PK\5\6" + b"\0" * 16 + b"\x51\0"):
        (tmp_path / "a.npz").write_bytes(body + _archive.seal(io.BytesIO(body), len(body)))
        with pytest.raises(ReleaseError, match=r"^release file .*a\.npz must "):
            Release.load(tmp_path / "a.npz")


def test_a_fit_is_not_called_a_damaged_release(tmp_path):
    body = b"\x89HDF\r\n\x1a\n and more"
    (tmp_path / "fit.nc").write_bytes(body + _archive.seal(io.BytesIO(body), len(body)))
    with pytest.raises(ReleaseError, match="must be a release, got a fit or another HDF5 file"):
        Release.load(tmp_path / "fit.nc")


@pytest.mark.parametrize("counts", [[[0, 0], [1, 2], [0, 0]], [[0, 3], [0, 0], [0, 0]], [[0, 0]]])
def test_rows_without_a_positive_report_are_read_back(tmp_path, counts):
    written = Release(sp.csr_array(counts), PrivacyLevel(1, 1), True)
    written.save(tmp_path / "release.npz")
    assert Release.load(tmp_path / "release.npz").reports.toarray().tolist() == counts


def bomb(path: Path, shape: tuple[int, ...], method: int = zipfile.ZIP_DEFLATED) -> None:
    """A sealed release of zeros, a thousand to a byte."""
    meta = _format.description(
        shape, (LEVEL.mechanism,), (None,) * len(shape), stored=None, truncated=True, simulated=False,
        per_row=False,
    )  # fmt: skip
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", method, compresslevel=9) as archive:
        archive.writestr("meta.json", _format.canonical(meta))
        with archive.open("reports.npy", "w") as member:
            member.write(_npy.header(shape, 2))
            left = 2 * math.prod(shape)
            while left:
                left -= member.write(bytes(min(left, 1 << 22)))
        archive.comment = b" " * _archive.SEAL_LENGTH
    size = len(body.getvalue()) - _archive.SEAL_LENGTH
    path.write_bytes(body.getvalue()[:size] + _archive.seal(body, size))


def test_a_small_file_that_asks_for_much_memory_is_refused(tmp_path, monkeypatch):
    bomb(tmp_path / "a.npz", (100, 100, 5000))
    tracemalloc.start()
    with pytest.raises(ReleaseError, match=r"a\.npz must hold what it declares, got \d+ bytes that declare 100000"):
        Release.load(tmp_path / "a.npz")
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()
    small().save(tmp_path / "b.npz")
    monkeypatch.setattr("countveil.privacy._archive.SMALL", 100)
    monkeypatch.setattr("countveil.privacy._archive.available_memory", lambda: 2000)
    with pytest.raises(ReleaseError, match=r"b\.npz must fit into the 2000 bytes of memory that are free"):
        Release.load(tmp_path / "b.npz")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_file_that_may_unpack_to_more_than_it_declares_is_refused(tmp_path, method):
    bomb(tmp_path / "a.npz", (10, 10), method)
    with pytest.raises(ReleaseError, match=rf"must be packed by deflate or not at all, got method {method}"):
        Release.load(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("epsilon", "precision"), [("9" * 1200, "1"), ("1", "1/" + "7" * 1200), ("1/" + "9" * 1200, "1")]
)
def test_a_promise_in_a_thousand_digits_is_refused_in_a_short_line(tmp_path, epsilon, precision):
    members = _format.members(Release([[1]], PrivacyLevel(1, 1), True))
    meta = json.loads(members["meta.json"])
    meta["mechanisms"][0]["parameters"] = {"epsilon": epsilon, "precision": precision}
    _archive.write(tmp_path / "a.npz", members | {"meta.json": _format.canonical(meta)})
    with pytest.raises(ReleaseError, match=r"a\.npz must .* at most 100 digits, got 1200$") as refused:
        Release.load(tmp_path / "a.npz")
    assert len(str(refused.value)) < 300 + len(str(tmp_path))


# --- the description in bytes, and mechanisms of others ---


def test_the_description_has_these_bytes(tmp_path):
    small().save(tmp_path / "a.npz")
    text = (
        '{"format":"countveil-release","format_version":7,"labels":[["ann","bo"],["x","\\u00e9","\\ud83d\\udd12"]],'
        '"layout":"csr","mechanism_per_row":true,"mechanisms":[{"name":"two-sided geometric","parameters":'
        '{"epsilon":"1/10","precision":"3"},"version":1},{"name":"two-sided geometric","parameters":'
        '{"epsilon":"1","precision":"1"},"version":1}],"schema_hash":"a13477cdcb6dc8d84087f793b4c4ed8a0a554376d4ad'
        'a992248684773b3f4841","shape":[2,3],"simulated":false,"stored":3,"truncated":true}'
    )
    assert _archive.Reader(tmp_path / "a.npz").read("meta.json") == text.encode("ascii")


@pytest.mark.parametrize("mechanism", [Divided(Fraction(3, 7)), (Divided(Fraction(2)), LEVEL.mechanism)])
def test_a_new_mechanism_takes_one_class_and_one_line(tmp_path, monkeypatch, mechanism):
    path = tmp_path / "a.npz"
    release = Release(np.array([[-3, 2], [0, 5]]), mechanism, False)
    release.save(path)
    with pytest.raises(ReleaseError, match=r"^release file .*a\.npz must state known mechanisms: ") as caught:
        Release.load(path)
    assert "'thresholded noise', 'table', got 'division'" in str(caught.value)
    monkeypatch.setitem(MECHANISMS, Divided.name, Divided)
    loaded = Release.load(path)
    assert same(loaded, release)
    assert loaded.describe() == release.describe()
    again = tmp_path / "again.npz"
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()
    monkeypatch.setattr(Divided, "version", 8)
    with pytest.raises(ReleaseError, match="mechanism 'division' must have version 8, got 7"):
        Release.load(path)
