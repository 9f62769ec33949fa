"""Labelled files: what is read equals what was written; what is wrong is named, line and all."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from maxmargin.data import Labelled, chunks, read_labelled
from maxmargin.errors import DataFileError

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TABLES = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=FINITE)


def read(folder: Path, content: str | bytes, name: str, label: str | int | None = None) -> Labelled:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_labelled(path, label)


def dense(X: Any) -> Any:
    return np.asarray(X) if isinstance(X, np.ndarray) else X.toarray()


# What was written is what is read.


@given(table=TABLES)
@settings(max_examples=50)
def test_csv_round_trip_is_exact(
    tmp_path_factory: pytest.TempPathFactory, table: np.ndarray
) -> None:
    lines = [",".join(repr(float(value)) for value in row) for row in table]
    data = read(tmp_path_factory.mktemp("csv"), "\n".join(lines), "table.csv")
    assert_array_equal(data.X, table[:, :-1])
    assert_array_equal(data.y, table[:, -1])


@given(table=TABLES)
@settings(max_examples=50)
def test_svmlight_round_trip_is_exact(
    tmp_path_factory: pytest.TempPathFactory, table: np.ndarray
) -> None:
    X, y = table[:, :-1], table[:, -1]
    X[:, -1] = 1.0  # so that the last column is seen
    lines = [
        " ".join([repr(float(label)), *(f"{j + 1}:{float(v)!r}" for j, v in enumerate(row) if v)])
        for row, label in zip(X, y, strict=True)
    ]
    data = read(tmp_path_factory.mktemp("svm"), "\n".join(lines), "rows.svm")
    assert_array_equal(data.X.toarray(), X)
    assert_array_equal(data.y, y)


def test_agrees_with_scikit_learn_across_blocks(tmp_path: Path) -> None:
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    rng = np.random.default_rng(0)
    X = sp.random_array((25_000, 30), density=0.1, rng=rng, format="csr")
    y = rng.integers(0, 3, 25_000)
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    expected, labels = load_svmlight_file(str(tmp_path / "rows.svm"), n_features=30)
    data = read_labelled(tmp_path / "rows.svm")
    assert abs(data.X - expected).max() == 0
    assert_array_equal(data.y, labels)


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize(("name", "text"), [("a.csv", "1,2\n3,4\n"), ("a.svm", "2 1:1\n4 1:3\n")])
def test_packed_files_read_the_same(tmp_path: Path, ending: str, name: str, text: str) -> None:
    data = read(tmp_path, PACKERS[ending](text.encode()), name + ending)
    assert_array_equal(dense(data.X), [[1], [3]])
    assert_array_equal(data.y, [2, 4])


@pytest.mark.parametrize("name", ["rows", "rows.txt", "rows.t", "rows.dat", "ROWS.SVM", "a.scale"])
def test_svmlight_is_recognised(tmp_path: Path, name: str) -> None:
    data = read(tmp_path, "# made by hand\n\n+1 1:0.5 3:-2 # good\n-1 2:1e-3\n", name)
    assert_array_equal(data.X.toarray(), [[0.5, 0, -2], [0, 1e-3, 0]])
    assert data.y.tolist() == [1, -1]
    assert data.y.dtype == np.int64
    assert data.format == "svmlight text, indices from 1"


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_marks_and_line_ends_do_not_matter(tmp_path: Path, start: bytes, end: bytes) -> None:
    table = start + end.join([b"a,label", b"1,x", b"2,y", b""])
    data = read(tmp_path, table, "a.csv")
    assert data.feature_names == ["a"]
    assert data.y.tolist() == ["x", "y"]
    rows = start + end.join([b"1 1:1", b"", b"2 1:2 # \xc3\x85"])
    assert read(tmp_path, rows, "a.svm").X.toarray().tolist() == [[1], [2]]


def test_rows_without_features_are_rows(tmp_path: Path) -> None:
    data = read(tmp_path, "1\n1 2:5\n1 \n", "a.svm")
    assert_array_equal(data.X.toarray(), [[0, 0], [0, 5], [0, 0]])


def test_an_index_zero_means_counting_from_zero(tmp_path: Path) -> None:
    data = read(tmp_path, "1 1:1\n1 0:2 1:3\n", "a.svm")
    assert_array_equal(data.X.toarray(), [[0, 1], [2, 3]])
    assert data.format == "svmlight text, indices from 0"


def test_huge_indices_are_kept(tmp_path: Path) -> None:
    data = read(tmp_path, "1 1:1 5000000000:2\n", "a.svm")
    assert data.X.shape == (1, 5_000_000_000)
    assert data.X.indices.tolist() == [0, 4_999_999_999]


# Tables: header, label, separator.


@pytest.mark.parametrize(
    ("text", "label", "features", "y"),
    [
        ("a,Class,b\n1,u,2\n3,v,4\n", None, ["a", "b"], ["u", "v"]),
        ("a,b,c\n1,2,u\n3,4,v\n", None, ["a", "b"], ["u", "v"]),
        ("a,b,c\nu,2,3\nv,3,4\n", "a", ["b", "c"], ["u", "v"]),
        ("a,b,c\nu,2,3\nv,3,4\n", "1", ["b", "c"], ["u", "v"]),
        ("a,b,c\nu,2,3\nv,3,4\n", -3, ["b", "c"], ["u", "v"]),
        ("0,1,label\n1,2,u\n3,4,v\n", None, ["0", "1"], ["u", "v"]),
        ("2,3,u\n3,4,v\n", None, None, ["u", "v"]),
        ("u;2;3\nv;3;4\n", 1, None, ["u", "v"]),
        ('"a, b"\tb\ty\n1\t2\tu\n3\t4\tv', None, ["a, b", "b"], ["u", "v"]),
        ("a,b,y\n1,2,1.5\n1,2,2\n", None, ["a", "b"], [1.5, 2.0]),
        ("a,b,y\n1,2,1.0\n1,2,2\n", None, ["a", "b"], [1, 2]),
        ("a,b,y\n1,2,9007199254740993\n1,2,2\n", None, ["a", "b"], [9007199254740993, 2]),
    ],
)
def test_header_and_label_are_found(
    tmp_path: Path,
    text: str,
    label: str | int | None,
    features: list[str] | None,
    y: list[str | float],
) -> None:
    data = read(tmp_path, text, "a.csv", label)
    assert data.feature_names == features
    assert data.y.tolist() == y
    assert data.X.shape == (2, 2)


def test_large_values_whose_sum_overflows_are_fine(tmp_path: Path) -> None:
    assert read(tmp_path, "1e308,1e308,1\n", "a.csv").X.tolist() == [[1e308, 1e308]]


# What is wrong is named: file, line, and the way out.

WRONG_SVMLIGHT = {
    "label is no number": ("1 1:1\nspam 1:1\n", ":2:", "'spam'"),
    "several labels": ("1,2 1:1\n", ":1:", "single numbers"),
    "label overflows": ("1 1:1\n1e400 1:1\n", ":2:", "'1e400'"),
    "label is nan": ("nan 1:1\n", ":1:", "'nan'"),
    "no colon": ("1 1:1\n\n1 2\n", ":3:", "'2' is not index:value"),
    "two colons": ("1 1:2:3\n", ":1:", "'1:2:3'"),
    "no value": ("1 1:\n", ":1:", "'1:'"),
    "space after colon": ("1 1: 2\n", ":1:", "'1:'"),
    "nan": ("1 1:nan\n", ":1:", "not a finite number"),
    "inf": ("1 1:1\n1 1:inf\n", ":2:", "not a finite number"),
    "overflow": ("1 1:1\n1 1:1 2:1e400\n", ":2:", "'2:1e400'"),
    "underscore": ("1 1:1_0\n", ":1:", "'1:1_0'"),
    "hexadecimal": ("1 1:0x10\n", ":1:", "'1:0x10'"),
    "negative index": ("1 -1:1\n", ":1:", "positive index"),
    "fractional index": ("1 1.5:1\n", ":1:", "whole"),
    "index too large": ("1 12345678901234567890:1\n", ":1:", "too large"),
    "descending": ("1 1:1\n1 3:1 2:1\n", ":2:", "index 2 comes after 3"),
    "duplicate": ("1 3:1 3:2\n", ":1:", "index 3 occurs twice"),
    "ranking": ("1 qid:7 1:1\n", ":1:", "remove the qid"),
    "only labels": ("1\n2\n", "", "no features"),
    "only comments": ("# nothing\n", "", "no rows"),
}
WRONG_TABLES = {
    "empty": (" \n", "", "empty"),
    "one column": ("a\n1\n", ":1:", "only one column"),
    "ragged": ("a,b,y\n1,2,3\n1,2\n", ":3:", "2 cells where the first row has 3"),
    "word": ("a,b,y\n1,2,3\n1,red,3\n", ":3:", "column 2 (b): 'red' is not a finite number"),
    "word after label": ("y,a,b\nu,2,3\nu,2,red\n", ":3:", "column 3 (b)"),
    "word in line 1": ("1,red,3\n1,2,3\n", ":1:", "if line 1 is a header"),
    "empty cell": ("a,b,y\n1,,3\n", ":2:", "column 2 (b): the cell is empty"),
    "nan": ("a,b,y\n1,nan,3\n", ":2:", "'nan'"),
    "inf": ("a,b,y\n-inf,2,3\n", ":2:", "'-inf'"),
    "overflow": ("a,b,y\n1,1e400,3\n", ":2:", "'1e400'"),
    "underscore": ("a,b,y\n1,1_0,3\n", ":2:", "'1_0'"),
    "foreign digits": ("a,b,y\n1,٣,3\n", ":2:", "'٣'"),
    "decimal comma": ("a;b;y\n1,5;2;3\n", ":2:", "'1,5'"),
    "no label": ("a,b,y\n1,2,\n", ":2:", "no label in column 3 (y)"),
    "header only": ("a,b,y\n", "", "no rows"),
    "row numbers": (",a,y\n0,1,2\n", ":1:", "index=False"),
    "two labels": ("class,a,y\n0,1,2\n", "", "columns 1 and 3"),
    "quotes": ('a,b,y\n1,"2"3,4\n', ":2:", "quotation marks"),
    "latin-1": ("a,b,y\n1,2,\xe9\n".encode("latin-1"), ":2:", "UTF-8"),
    "utf-16": ("a,y\n1,2\n".encode("utf-16"), "", "UTF-16"),
    "binary": (b"PK\x03\x04\x00\x00", "", "not text"),
}


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [pytest.param("bad.svm", *case, id=f"svm: {key}") for key, case in WRONG_SVMLIGHT.items()]
    + [pytest.param("bad.csv", *case, id=f"csv: {key}") for key, case in WRONG_TABLES.items()],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, name: str, content: str | bytes, line: str, words: str
) -> None:
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, content, name)
    assert f"{name}{line}" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("label", ["missing", "0", 4, -4])
def test_unknown_label_columns_are_refused(tmp_path: Path, label: str | int) -> None:
    with pytest.raises(DataFileError, match="no column"):
        read(tmp_path, "a,b,c\n1,2,3\n", "a.csv", label)


def test_ambiguous_label_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="two columns"):
        read(tmp_path, "a,a,c\n1,2,3\n", "a.csv", "a")


def test_a_label_column_means_nothing_in_svmlight(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="label first"):
        read(tmp_path, "1 1:1\n", "a.svm", "a")


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("content", [b"1 1:1\n", b""], ids=["not packed", "empty"])
def test_broken_packing_is_refused(tmp_path: Path, ending: str, content: bytes) -> None:
    with pytest.raises(DataFileError, match=r"a\.svm"):
        read(tmp_path, content, "a.svm" + ending)


@pytest.mark.parametrize("ending", PACKERS)
def test_half_a_packed_file_is_refused(tmp_path: Path, ending: str) -> None:
    packed = PACKERS[ending](b"1 1:1\n" * 1000)
    with pytest.raises(DataFileError, match="not a whole"):
        read(tmp_path, packed[: len(packed) // 2], "a.svm" + ending)


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.csv"):
        read_labelled(tmp_path / "gone.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_labelled(tmp_path)


@given(content=st.text('01:., \n\t#-+eaq_"', max_size=40) | st.binary(max_size=40))
@settings(max_examples=300)
@pytest.mark.parametrize("name", ["a.svm", "a.csv", "a.tsv", "a"])
def test_any_content_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: str | bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        data = read(folder, content, name)
    except DataFileError:
        return
    assert data.X.shape[0] == len(data.y) > 0
    assert np.isfinite(dense(data.X)).all()


# Chunks.


@pytest.mark.parametrize(
    "make", [np.asarray, sp.csr_array, sp.csr_matrix], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_chunks_are_views_of_all_rows_in_order(make: Callable[..., object], rows: int) -> None:
    table = np.arange(21.0).reshape(7, 3)
    X, y = make(table), np.arange(7)
    parts = list(chunks(X, y, rows=rows))
    assert all(len(labels) <= rows for _, labels in parts)
    assert_array_equal(np.concatenate([labels for _, labels in parts]), y)
    assert_array_equal(np.vstack([dense(part) for part, _ in parts]), table)
    for part, labels in parts:
        assert np.shares_memory(labels, y)
        assert type(part) is type(X)
        assert np.shares_memory(getattr(part, "data", part), getattr(X, "data", X))


@pytest.mark.parametrize(
    ("X", "rows", "error"),
    [
        (np.ones((3, 2)), 0, ValueError),
        (np.ones((2, 2)), 1, ValueError),
        (sp.csc_array(np.ones((3, 2))), 1, TypeError),
        ([[1.0], [2.0], [3.0]], 1, TypeError),
    ],
)
def test_bad_chunks_are_refused_at_once(X: object, rows: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        chunks(X, np.ones(3), rows=rows)
