import io
import re
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import countveil as cv
from countveil.data.io import check_matrix_market, check_npy, check_npz, read_counts, read_vocabulary

COUNTS = np.array([[0, 2, 1], [4, 0, 3]])


@pytest.fixture
def csv_file(tmp_path):
    def write(text, name="counts.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_npy(tmp_path):
    np.save(tmp_path / "counts.npy", COUNTS)
    table = read_counts(tmp_path / "counts.npy")
    assert np.array_equal(table.values, COUNTS)
    assert table.row_labels is None
    assert table.column_labels is None


def test_sparse_npz(tmp_path):
    sp.save_npz(tmp_path / "counts.npz", sp.csr_array(COUNTS))
    table = read_counts(str(tmp_path / "counts.npz"))
    assert sp.issparse(table.values)
    assert np.array_equal(table.values.toarray(), COUNTS)


@pytest.mark.parametrize("container", [np.asarray, sp.coo_array])
def test_matrix_market(tmp_path, container):
    scipy.io.mmwrite(tmp_path / "counts.mtx", container(COUNTS))
    values = read_counts(tmp_path / "counts.mtx").values
    assert np.array_equal(values.toarray() if sp.issparse(values) else values, COUNTS)


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("country,week,deaths\nA,w1,5\nA,w2,7\nB,w1,5\n", "a row for each 'country' and a column for each 'week'"),
        ("year,month,births\n2000,1,51\n2000,2,62\n2001,1,51\n2001,2,70\n", "'year' and a column for each 'month'"),
    ],
)
def test_a_row_for_each_cell_is_refused_and_no_count_is_shown(csv_file, text, axes):
    path = csv_file(text)
    with pytest.raises(ValueError, match="must have a row for each record, got what looks like a row for") as refused:
        read_counts(path)
    assert axes in str(refused.value)
    assert not re.search("51|62|70|5|7", str(refused.value).replace(str(path), ""))
    header, *rows = text.splitlines()
    if "year" in header:  # as the message says
        counts = read_counts(csv_file("\n".join(["record," + header, *(f"r{n},{row}" for n, row in enumerate(rows))])))
        assert counts.column_labels == ["year", "month", "births"]


def test_columns_that_are_counts_are_read_if_row_labels_are_named(csv_file):
    path = csv_file("place,week,deaths\nA,1,5\nA,2,7\nB,1,5\n")
    assert read_counts(path, row_labels="place").column_labels == ["week", "deaths"]


@pytest.mark.parametrize(
    "text",
    [",a,b,c\nx,0,2,1\ny,4,0,3\n", "name,a,b,c\r\nx,0,2,1\r\ny,4,0,3\r\n", '﻿"", a ,b,c\n\nx,0,2.0,1\ny ,4,0,3e0'],
)
def test_csv_with_row_labels(csv_file, text):
    table = read_counts(csv_file(text))
    assert np.array_equal(table.values, COUNTS)
    assert table.values.dtype == np.int64
    assert table.row_labels == ["x", "y"]
    assert table.column_labels == ["a", "b", "c"]


def test_csv_without_row_labels(csv_file):
    table = read_counts(csv_file("a,b,c\n0,2,1\n4,0,3\n"))
    assert np.array_equal(table.values, COUNTS)
    assert table.row_labels is None
    assert table.column_labels == ["a", "b", "c"]


def test_numbers_under_an_empty_header_cell_are_row_labels(csv_file):
    table = read_counts(csv_file(",a\n17,0\n18,1\n"))
    assert table.row_labels == ["17", "18"]
    assert table.values.tolist() == [[0], [1]]


def test_csv_keeps_large_counts_exact(csv_file):
    assert read_counts(csv_file(f"a\n{2**62 - 1}\n")).values[0, 0] == 2**62 - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header row and at least one row of counts, got 0 rows"),
        ("a,b\n", "header row and at least one row of counts, got 1 rows"),
        ("a,b\n1,2\n3\n", "2 cells in every row, got 1 in row 2"),
        ("a,b\n1,\n", "got an empty cell in row 1, column 'b'"),
        ("a,b\n1,1.5\n", "got a value that is not whole in row 1, column 'b'"),
        ("a,b\n1,nan\n", "got a value that is not whole"),
        ("a,b\n1,secret\n", "got something that is not a number in row 1, column 'b'"),
        ("a,b\n1,1e300\n", "above 2\\*\\*53"),
        (f"a,b\n1,{2**63}\n", "above 2\\*\\*63"),
        (",\n", "got 1 rows"),
        ("x\nname\n", "at least one column of counts"),
        ("a,b\n1,2\n,3\n", "got 1 numbers in 2 rows; if they are labels"),
        ("a,b\n1,2\nNA,3\n", "row labels or counts in its first column"),
        ("name;a;b\nsecret;1;2\n", "separate its cells by commas, got semicolons; save it again"),
        ("a;b\n1,0;2,0\n", "by commas, got semicolons"),
        ("name\ta\nsecret\t1\n", "by commas, got tabs"),
        ("x,,b\nsecret,1,2\n", "must name every column of counts in its header row"),
    ],
)
def test_csv_faults_name_the_place_and_no_value(csv_file, text, message):
    path = csv_file(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_counts(path)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


ROWS = range(1, 13)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("number,a\n" + "".join(f"{i},{i % 3}\n" for i in ROWS), {}, "the first column increases"),
        ("a,number\n" + "".join(f"{i % 3},{i}.0\n" for i in ROWS), {}, "column 1 holds consecutive numbers"),
        (",doc_id,a\n" + "".join(f"x,{i * i % 13},{i}{i}\n" for i in ROWS[:4]), {}, "column 'doc_id' has another"),
        (
            "".join(f"{i % 3},{i}\n" for i in ROWS),
            {"header": False},
            "column 1 holds.*, once the file has a header row",
        ),
    ],
)
def test_a_column_of_a_csv_that_looks_like_an_index_is_warned_of(csv_file, text, options, message):
    path = csv_file(text)
    rule = f"if it names the rows of the counts in {re.escape(str(path))}, name it with --row-labels"
    with pytest.warns(UserWarning, match=rule) as caught:
        read_counts(path, **options)
    assert re.search(message, str(caught[0].message))


def test_a_saved_index_in_a_csv_is_refused_except_as_row_labels(csv_file):
    path = csv_file(",Unnamed: 0,a\n0,0,2\n1,1,0\n")
    message = f"counts in {path} must not include the index, got a column called 'Unnamed: 0': name it"
    with pytest.raises(ValueError, match=re.escape(message)):
        read_counts(path)
    path = csv_file("a,index\n2,7\n0,5\n1,3\n")
    with pytest.raises(ValueError, match="got a column called 'index'"):
        read_counts(path)
    assert read_counts(path, row_labels="index").row_labels == ["7", "5", "3"]


@pytest.mark.parametrize(
    "text",
    [
        "70007,70009\n1,2\n",
        "word,70009\n1,2\n",
        "someone,70007,70009\nother,1,2\n",
        ",70007\n,1\n",
        " 70007 ,7.0e4\n1,2\n",
        '"70,007","70 007"\n1,2\n',
        "-70007,a\n1,2\n",
    ],
)
def test_a_header_that_may_be_a_record_is_refused_and_not_shown(csv_file, text):
    path = csv_file(text)
    with pytest.raises(ValueError, match="must have names, not numbers, in its header row") as caught:
        read_counts(path)
    assert str(path) in str(caught.value)
    assert "--no-header" in str(caught.value)
    said = str(caught.value).replace(str(path), "")
    assert not re.search("7000|7.0|70,|70 |someone|word", said)


def test_words_that_python_takes_for_numbers_are_names(csv_file):
    assert read_counts(csv_file("nan,inf,infinity\n1,2,3\n")).column_labels == ["nan", "inf", "infinity"]


def test_csv_without_a_header(csv_file):
    table = read_counts(csv_file("5,6\n7,8\n"), header=False)
    assert (table.values.tolist(), table.row_labels, table.column_labels) == ([[5, 6], [7, 8]], None, None)
    table = read_counts(csv_file("x,6\ny,8\n"), header=False)
    assert (table.values.tolist(), table.row_labels, table.column_labels) == ([[6], [8]], ["x", "y"], None)
    with pytest.raises(ValueError, match="got something that is not a number in row 1, column 2"):
        read_counts(csv_file("5,secret\n7,8\n"), header=False)
    with pytest.raises(ValueError, match="at least one row of counts, got 0 rows"):
        read_counts(csv_file(""), header=False)
    with pytest.raises(ValueError, match="row labels must be named by a header cell"):
        read_counts(csv_file("5,6\n"), header=False, row_labels="a")


def test_csv_with_a_named_column_of_row_labels(csv_file):
    path = csv_file("a,id,b\n1,17,2\n3,18,4\n")
    table = read_counts(path, row_labels="id")
    assert table.values.tolist() == [[1, 2], [3, 4]]
    assert table.row_labels == ["17", "18"]
    assert table.column_labels == ["a", "b"]
    with pytest.raises(ValueError, match="must have one column 'ID', got 0"):
        read_counts(path, row_labels="ID")
    with pytest.raises(ValueError, match="must have one column 'x', got 2"):
        read_counts(csv_file("x,x\n1,2\n"), row_labels="x")


def test_only_a_csv_has_a_header(tmp_path):
    np.save(tmp_path / "counts.npy", COUNTS)
    for told in ({"header": False}, {"row_labels": "id"}):
        with pytest.raises(
            ValueError, match=r"header \(--no-header\) and row labels \(--row-labels\) apply only to a \.csv"
        ):
            read_counts(tmp_path / "counts.npy", **told)


def test_text_in_another_encoding(csv_file):
    with pytest.raises(ValueError, match="must be UTF-8 text, got bytes that are not at 0"):
        read_counts(csv_file("é,b\n1,2\n", encoding="latin-1"))


@pytest.mark.parametrize("name", ["counts.npz", "counts.npy", "counts.mtx"])
def test_a_file_of_another_kind(csv_file, name):
    with pytest.raises(ValueError, match=f"{name} must hold a"):
        read_counts(csv_file("a,b\n1,2\n", name))


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "counts.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="must hold numbers and text, got objects"):
        read_counts(tmp_path / "counts.npy")


def test_a_release_is_not_counts(tmp_path):
    release = cv.privatize(COUNTS, cv.PrivacyLevel(1, 1))
    release.save(tmp_path / "release.npz")
    with pytest.raises(ValueError, match="got a release, which is privatized already"):
        read_counts(tmp_path / "release.npz")


def test_an_archive_of_arrays_is_not_a_matrix(tmp_path):
    np.savez(tmp_path / "counts.npz", counts=COUNTS)
    with pytest.raises(ValueError, match=r"written by scipy.sparse.save_npz"):
        read_counts(tmp_path / "counts.npz")


def test_other_dimensions(tmp_path):
    np.save(tmp_path / "counts.npy", np.arange(3))
    with pytest.raises(ValueError, match="must hold a matrix \\(2 dimensions\\), got 1"):
        read_counts(tmp_path / "counts.npy")


def test_missing_files_and_unknown_kinds(tmp_path):
    with pytest.raises(FileNotFoundError, match="no counts at"):
        read_counts(tmp_path / "counts.csv")
    with pytest.raises(
        ValueError,
        match=r"must end in one of .npz, .npy, .mtx, .txt, .*, .h5ad, .csv, got '.xlsx': save a table as .csv",
    ):
        read_counts(tmp_path / "counts.xlsx")
    with pytest.raises(ValueError, match=r"got '.zip': unpack it"):
        read_counts(tmp_path / "counts.zip")
    with pytest.raises(FileNotFoundError, match="no vocabulary at"):
        read_vocabulary(tmp_path / "words.txt")


def test_vocabulary(csv_file):
    assert read_vocabulary(csv_file("one\n two \r\ndrei\n", "words.txt")) == ["one", "two", "drei"]
    with pytest.raises(ValueError, match="got an empty file"):
        read_vocabulary(csv_file("", "words.txt"))
    with pytest.raises(ValueError, match="got an empty line 2"):
        read_vocabulary(csv_file("one\n\ntwo\n", "words.txt"))


SPARSE_COUNTS = np.array([[1, 0, 0, 0, 2, 0, 0, 1], [0, 1, 0, 0, 1, 0, 0, 0]])
FILES = {
    "ap.dat": "3 0:1 4:2 7:1\n2 1:1 4:1\n",
    "unsorted.ldac": "3 7:1 0:1 4:2\n2 4:1 1:1\n\n",
    "a.svmlight": "1 1:1 5:2 8:1\n0 2:1 5:1\n",
    "b.libsvm": "+1 0:1 4:2 7:1 # a comment\n-1 1:1 4:1\n",
    "triplets.txt": "2 8 5\n1 1 1\n1 5 2\n1 8 1\n2 2 1\n2 5 1\n",
    "cluto.txt": "2 8 5\n1 1 5 2 8 1\n2 1 5 1\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "vocab.txt").write_text("".join(f"w{v}\n" for v in range(8)))
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_the_same_counts_from_every_format(here, name):
    found = read_counts(name, vocabulary="vocab.txt")
    np.testing.assert_array_equal(found.values.toarray(), SPARSE_COUNTS)
    assert found.column_labels == [f"w{v}" for v in range(8)]


@pytest.mark.parametrize("name", ["ap.dat", "b.libsvm"])
def test_a_width_that_the_file_does_not_state(here, name):
    (here / "vocab.txt").write_text("".join(f"w{v}\n" for v in range(10)))
    wide = read_counts(name, vocabulary="vocab.txt").values.toarray()
    np.testing.assert_array_equal(wide, np.pad(SPARSE_COUNTS, ((0, 0), (0, 2))))
    with pytest.warns(UserWarning, match="8 were read, up to the last one with a count"):
        assert read_counts(name).values.shape == (2, 8)
    (here / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match="must name the 8 columns"):
        read_counts(name, vocabulary="vocab.txt")


def test_the_first_number_of_svmlight_is_shown_or_stated(here):
    (here / "a.svmlight").write_text("1 1:1 5:2\n0 2:1 5:1\n")
    with pytest.raises(ValueError, match=r"from 0 or from 1, and nothing in it shows which.*--numbered-from"):
        read_counts("a.svmlight", vocabulary="vocab.txt")
    first = read_counts("a.svmlight", vocabulary="vocab.txt", numbered_from=1).values.toarray()
    zeroth = read_counts("a.svmlight", vocabulary="vocab.txt", numbered_from=0).values.toarray()
    np.testing.assert_array_equal(first[:, :5], [[1, 0, 0, 0, 2], [0, 1, 0, 0, 1]])
    np.testing.assert_array_equal(zeroth[:, 1:], first[:, :-1])
    with pytest.raises(ValueError, match=r"must be 0 for b.libsvm"):
        read_counts("b.libsvm", vocabulary="vocab.txt", numbered_from=1)
    with pytest.raises(ValueError, match="for an SVMlight file only"):
        read_counts("ap.dat", numbered_from=0)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("ap.dat", "2 0:1 4:2 7:1\n", "a different number of entries in line 1 than it declares"),
        ("ap.dat", "2 0:1 0:2\n", "must"),
        ("ap.dat", "1 -1:1\n", "must"),
        ("ap.dat", "1 0:x\n", "must hold LDA-C"),
        ("ap.dat", "1 999999999999:1\n", "declare"),
        ("a.svmlight", "1 5:1 2:1\n", "must hold SVMlight"),
        ("a.svmlight", "1 999999999:1\n", "declare"),
        ("cluto.txt", "2 8 5\n1 1 5 2 8 1\n", "must hold 5 lines of three numbers, or 2 lines of pairs"),
        ("cluto.txt", "2 8 4\n1 1 5 2 8 1\n2 1 5 1\n", "the 4 entries"),
        ("cluto.txt", "1 8 1\n9 1\n", "from 0 to 7"),
    ],
)
def test_other_files_are_refused(here, name, text, rule):
    (here / name).write_text(text)
    with pytest.raises(ValueError, match=rule):
        read_counts(name, vocabulary="vocab.txt")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ap.dat", "1 0:1\n1 31:4711x\n"), ("ap.dat", "4711:31\n"), ("ap.dat", "4711 31:1\n"),
        ("ap.dat", "1 31:4711:1\n"),
        ("a.svmlight", "1 31:4711x\n"), ("a.svmlight", "1 4711:1 31:1\n"), ("a.svmlight", "1 31;4711\n"),
    ],
)  # fmt: skip
def test_no_error_shows_a_line_of_private_counts(here, name, text):
    (here / name).write_text(text)
    with pytest.raises(ValueError, match="not shown: ") as refused:
        read_counts(name, vocabulary="vocab.txt")
    assert not re.search("31|4711", str(refused.value))


def test_an_empty_document_has_a_line_of_its_own(here):
    (here / "ap.dat").write_text("3 0:1 4:2 7:1\n0\n2 1:1 4:1\n")
    assert read_counts("ap.dat", vocabulary="vocab.txt").values.sum(axis=1).tolist() == [4, 0, 2]


def test_words_in_rows_are_refused_until_stated(here):
    scipy.io.mmwrite("tdm.mtx", sp.coo_array(SPARSE_COUNTS.T))
    scipy.io.mmwrite("dtm.mtx", sp.coo_array(SPARSE_COUNTS))
    with pytest.raises(ValueError, match=r"has words in rows; pass transpose=True \(--transpose\)"):
        read_counts("tdm.mtx", vocabulary="vocab.txt")
    with pytest.raises(ValueError, match=r"leave out transpose=True \(--transpose\)"):
        read_counts("dtm.mtx", vocabulary="vocab.txt", transpose=True)
    for name, turned in (("tdm.mtx", True), ("dtm.mtx", False)):
        found = read_counts(name, vocabulary="vocab.txt", transpose=turned)
        np.testing.assert_array_equal(found.values.toarray(), SPARSE_COUNTS)


@pytest.mark.parametrize("container", [sp.coo_array, np.asarray])
def test_empty_rows_at_the_end_are_stated(here, container):
    scipy.io.mmwrite("short.mtx", container(SPARSE_COUNTS))
    found = read_counts("short.mtx", n_rows=4).values
    np.testing.assert_array_equal(
        found.toarray() if sp.issparse(found) else found, np.pad(SPARSE_COUNTS, ((0, 2), (0, 0)))
    )
    with pytest.raises(ValueError, match=r"at least the 2 rows of short.mtx, got 1"):
        read_counts("short.mtx", n_rows=1)


def test_rows_with_labels_are_all_there(here):
    (here / "c.csv").write_text(",a,b\nx,1,2\n")
    assert read_counts("c.csv", n_rows=1).row_labels == ["x"]
    with pytest.raises(ValueError, match=r"must be 1, as c.csv has labels for that many rows"):
        read_counts("c.csv", n_rows=2)


def test_annotated_data_has_its_names(here):
    import anndata

    data = anndata.AnnData(np.log1p(SPARSE_COUNTS.astype(float)), layers={"counts": sp.csr_matrix(SPARSE_COUNTS)})
    data.obs_names, data.var_names = ["c0", "c1"], [f"g{v}" for v in range(8)]
    data.write_h5ad("a.h5ad")
    found = read_counts("a.h5ad", layer="counts")
    np.testing.assert_array_equal(found.values.toarray(), SPARSE_COUNTS)
    assert found.row_labels == ["c0", "c1"]
    assert found.column_labels[7] == "g7"
    np.testing.assert_allclose(read_counts("a.h5ad").values, np.log1p(SPARSE_COUNTS))
    with pytest.raises(ValueError, match=r"layer must be one of \['counts'\], got 'raw'"):
        read_counts("a.h5ad", layer="raw")
    with pytest.raises(ValueError, match=r"for an .h5ad only"):
        read_counts("ap.dat", layer="counts")
    (here / "a.h5ad").write_bytes(b"\x89HDF\r\n\x1a\nx")
    with pytest.raises(ValueError, match=r"a.h5ad must hold an AnnData object"):
        read_counts("a.h5ad")


HEAD = b"\x93NUMPY\x01\x00\x76\x00{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }"


def head(shape, descr=b"<f8"):
    return (HEAD % (descr, shape)).ljust(127) + b"\n"


def test_whole_files_pass(tmp_path):
    counts = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "a.npy", counts)
    check_npy(tmp_path / "a.npy")
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(counts))
    check_npz(tmp_path / "a.npz")
    for name, matrix in (("a", sp.csr_array(counts)), ("b", counts), ("c", sp.csr_array(np.eye(3, dtype=int)))):
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


@pytest.mark.parametrize("values", [np.array([[b"12345678"]]), np.array([["a"]]), np.array([["1990"]], "M8[Y]")])
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
    ("text", "got"),
    [
        ("%%MatrixMarket matrix coordinate integer general\n3 3 1000000000000\n1 1 1\n", "fewer bytes"),
        ("%%MatrixMarket matrix array integer general\n1000000 1000000\n1\n", "fewer bytes"),
        ("%%MatrixMarket matrix coordinate integer general\n%\n1000000000000 3 1\n1 1 1\n", "75 bytes"),
        ("%%MatrixMarket matrix coordinate integer general\n3 3\n", r"three sizes in one line, got \[3, 3\]"),
        ("%%MatrixMarket matrix array integer general\n0 3\n0\n2\n", "0 x 3"),
        ("%%MatrixMarket matrix coordinate integer general\n3 0 0\n", "3 x 0"),
        ("%%MatrixMarket matrix array integer general\n2 1\n0\n\x01\n", "other characters"),
        ("%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 1 7\x08", "other characters"),
        ("something else\n", "a different first line"),
    ],
)
def test_a_matrix_market_file_must_hold_what_it_declares(tmp_path, text, got):
    (tmp_path / "a.mtx").write_text(text)
    with pytest.raises(ValueError, match=r"a\.mtx must hold a MatrixMarket matrix, got ValueError: must .*") as refused:
        read_counts(tmp_path / "a.mtx")
    assert re.search(got, str(refused.value))


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
