"""Files of arrays that declare more than they hold."""

import io
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from countveil.data.array_files import check_matrix_market, check_npy, check_npz
from countveil.data.io import read_counts

HEAD = b"\x93NUMPY\x01\x00\x76\x00{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }"


def head(shape, descr=b"<f8"):
    return (HEAD % (descr, shape)).ljust(127) + b"\n"


def test_whole_files_pass(tmp_path):
    counts = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "a.npy", counts)
    check_npy(tmp_path / "a.npy")
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(counts))
    check_npz(tmp_path / "a.npz")
    for name, matrix in (
        ("a", sp.csr_array(counts)),
        ("b", counts),
        ("c", sp.csr_array(np.eye(3, dtype=int))),
    ):
        scipy.io.mmwrite(tmp_path / f"{name}.mtx", matrix)
        check_matrix_market(tmp_path / f"{name}.mtx")
        assert read_counts(tmp_path / f"{name}.mtx").values.shape == matrix.shape


@pytest.mark.parametrize(
    "content", [head(b"20000000000"), head(b"2") + bytes(15), head(b"2") + bytes(17), head(b"1", b"|O")]
)
def test_an_array_must_be_as_long_as_it_says(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("data.npy", content)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=rf"{name} must hold .*, got ValueError: must hold "):
            read_counts(tmp_path / name)


@pytest.mark.parametrize(
    "values", [np.array([[b"12345678"]]), np.array([["a"]]), np.array([["1990"]], "M8[Y]")]
)
def test_an_array_of_something_else_than_numbers_is_refused(tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(ValueError, match=r"a\.npy must hold an array written .*counts must be numbers, got "):
        read_counts(tmp_path / "a.npy")


def test_an_archive_of_zeros_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", data=np.zeros(20_000_000))
    with pytest.raises(ValueError, match="bytes that declare 160000128"):
        check_npz(tmp_path / "a.npz")


def test_a_sparse_matrix_points_nowhere_outside(tmp_path):
    held = {"format": b"csr", "shape": (2, 3), "data": [1, 2], "indices": [0, 99], "indptr": [0, 1, 2]}
    np.savez(tmp_path / "a.npz", **held)
    with pytest.raises(ValueError, match=r"a\.npz must hold a matrix written by"):
        read_counts(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", [(2**49, 3), (2, 2**57), (2**30, 2**30)])
def test_a_sparse_matrix_is_no_larger_than_its_bytes_can_be(tmp_path, shape):
    held = {"format": b"coo", "shape": shape, "data": [1, 2], "row": [0, 1], "col": [0, 1]}
    np.savez(tmp_path / "a.npz", **held)
    with pytest.raises(ValueError, match=r"a\.npz must hold a matrix written by .* bytes that declare"):
        read_counts(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "text",
    [
        "%%MatrixMarket matrix coordinate integer general\n3 3 1000000000000\n1 1 1\n",
        "%%MatrixMarket matrix array integer general\n1000000 1000000\n1\n",
        "%%MatrixMarket matrix coordinate integer general\n%\n1000000000000 3 1\n1 1 1\n",
        "%%MatrixMarket matrix coordinate integer general\n3 3\n",
        "%%MatrixMarket matrix array integer general\n0 3\n0\n2\n",
        "%%MatrixMarket matrix coordinate integer general\n3 0 0\n",
        "%%MatrixMarket matrix array integer general\n2 1\n0\n\x01\n",
        "%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 7\x08",
        "something else\n",
    ],
)
def test_a_matrix_market_file_must_hold_what_it_declares(tmp_path, text):
    (tmp_path / "a.mtx").write_text(text)
    with pytest.raises(ValueError, match=r"a\.mtx must hold a MatrixMarket matrix, got ValueError: must "):
        read_counts(tmp_path / "a.mtx")


def test_a_bag_of_words_without_end_is_refused(tmp_path):
    (tmp_path / "docword.txt").write_text("1000000000000\n3\n1\n1 1 1\n")
    with pytest.raises(ValueError, match=r"docword\.txt must hold a UCI bag of words"):
        read_counts(tmp_path / "docword.txt")


def test_no_file_makes_memory_grow(tmp_path):
    """A header of Python expressions is read as one, and is not run."""
    stream = io.BytesIO(head(b"10**9"))
    (tmp_path / "a.npy").write_bytes(stream.getvalue())
    with pytest.raises(ValueError, match=r"a\.npy must hold an array"):
        read_counts(tmp_path / "a.npy")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_may_unpack_to_more_than_it_declares_is_refused(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("data.npy", head(b"2") + bytes(16))
    with pytest.raises(ValueError, match=f"must be packed by deflate or not at all, got method {method}"):
        check_npz(tmp_path / "a.npz")
