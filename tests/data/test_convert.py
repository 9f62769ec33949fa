"""Conversion: what is read from the target is what the source held, or the source is refused."""

import bz2
import csv
import gzip
import io
import lzma
import math
import struct
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from maxmargin.data import convert, read_labelled, read_svmlight
from maxmargin.errors import DataFileError

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
}
ROWS = "1 1:0.1 3:-2e-300\n-1\n2 2:5e-324 3:123456789.25\n"
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def bits(values: Any) -> list[bytes]:
    return [struct.pack("<d", value) for value in np.asarray(values, dtype=float).ravel()]


def dense(X: Any) -> Any:
    """Return an array without adding -0 to 0."""
    made = np.zeros(X.shape)
    made[X.tocoo().coords] = X.tocoo().data
    return made


def cells(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.svm").write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize(
    "route",
    [
        ["a.svm", "b.csv", "c.svm"],
        ["a.svm", "b.tsv", "c.parquet", "d.svm"],
        ["a.svm", "b.parquet", "c.csv", "d.tsv", "e.svm"],
        ["a.svm", "b.csv.gz", "c.tsv.xz", "d.svm.bz2", "e.parquet", "f.svm"],
        ["a.svm", "b.svm"],
        ["a.svm", "b.parquet", "c.parquet", "d.svm"],
    ],
    ids=" ".join,
)
def test_every_route_leads_back(folder: Path, route: list[str]) -> None:
    for source, target in pairwise(route):
        made = convert(folder / source, folder / target)
        assert (made.rows, made.columns) == (3, 4)
    before, after = read_svmlight(folder / "a.svm"), read_svmlight(folder / route[-1])
    assert bits(dense(before.X)) == bits(dense(after.X))
    assert before.y.tolist() == after.y.tolist()


def test_svmlight_becomes_a_table_with_names(folder: Path) -> None:
    made = convert(folder / "a.svm", folder / "a.csv")
    assert made == (3, 4, "svmlight", "CSV")
    assert cells(folder / "a.csv") == [
        ["label", "f1", "f2", "f3"],
        ["1", "0.1", "0", "-2e-300"],
        ["-1", "0", "0", "0"],
        ["2", "0", "5e-324", "123456789.25"],
    ]
    data = read_labelled(folder / "a.csv")
    assert data.label_name == "label"
    assert data.y.tolist() == [1, -1, 2]


@given(
    rows=st.lists(st.lists(FINITE, min_size=3, max_size=3), min_size=1, max_size=8),
    zero_based=st.booleans(),
)
@settings(deadline=None, max_examples=25)
def test_numbers_are_carried_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[float]], zero_based: bool
) -> None:
    here = tmp_path_factory.mktemp("bits")
    text = "".join(f"{a!r},{b!r},1,{y!r}\n" for a, b, y in rows)
    (here / "a.csv").write_text("p,q,r,y\n" + text)
    convert(here / "a.csv", here / "a.parquet")
    convert(here / "a.parquet", here / "a.svm", zero_based=zero_based)
    X, _ = load_svmlight_file(str(here / "a.svm"), zero_based=zero_based, n_features=3)
    if all(value == 0 or abs(value) > 1e-300 for row in rows for value in row):
        # scikit-learn's reader is not exact; ours is compared with what was written.
        np.testing.assert_allclose(X.toarray()[:, :2], [row[:2] for row in rows], rtol=1e-14)
    ours = read_svmlight(here / "a.svm", zero_based=zero_based, n_features=3)
    assert bits(dense(ours.X)[:, :2]) == bits([row[:2] for row in rows])
    assert [float(v) for v in ours.y] == [float(row[2]) for row in rows]
    convert(here / "a.svm", here / "b.tsv", zero_based=zero_based)
    table = cells(here / "b.tsv", "\t")[1:]
    assert bits([float(v) for row in table for v in row[1:3]]) == bits([r[:2] for r in rows])


TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n,;\t\"'#"), max_size=8
).map(str.strip)


@given(rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
@settings(deadline=None, max_examples=40)
def test_words_are_carried_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    here = tmp_path_factory.mktemp("words")
    table = pa.table({"number": [i / 3 for i in range(len(rows))], **{
        name: [row[k] for row in rows] for k, name in enumerate(("one", "two"))
    }})  # fmt: skip
    pq.write_table(table, here / "a.parquet")
    convert(here / "a.parquet", here / "a.csv")
    found = cells(here / "a.csv")
    assert found[0] == ["number", "one", "two"]
    assert [tuple(row[1:]) for row in found[1:]] == rows


def test_tables_keep_cells_and_header_or_none(folder: Path) -> None:
    (folder / "a.csv").write_text('name,zip,rate\n"O\'Neil, Jr",007,5%\n"say ""hi""",010,NA\n')
    convert(folder / "a.csv", folder / "b.tsv")
    assert cells(folder / "b.tsv", "\t") == cells(folder / "a.csv")
    (folder / "bare.csv").write_text("1,2,x\n3,4,y\n5,6,x\n")
    convert(folder / "bare.csv", folder / "bare.tsv.gz")
    assert gzip.decompress((folder / "bare.tsv.gz").read_bytes()) == b"1\t2\tx\n3\t4\ty\n5\t6\tx\n"


def test_columns_of_parquet_have_the_types_of_all_cells(folder: Path) -> None:
    header = "whole,number,code,word,gaps,empty,large,label\n"
    (folder / "a.csv").write_text(
        header + "1,1,007,x,NA,,12345678901234567890,0\n2,2.5,010,NA,1,,1,1\n-3,1e3,1,y,,,2,0\n"
    )
    convert(folder / "a.csv", folder / "a.parquet")
    table = pq.read_table(folder / "a.parquet")
    kinds = {name: str(table.schema.field(name).type) for name in table.column_names}
    assert kinds == {
        "whole": "int64", "number": "double", "code": "string", "word": "string",
        "gaps": "int64", "empty": "string", "large": "double", "label": "int64",
    }  # fmt: skip
    assert table["code"].to_pylist() == ["007", "010", "1"]
    assert table["word"].to_pylist() == ["x", "NA", "y"]
    assert table["gaps"].to_pylist() == [None, 1, None]


def test_typed_columns_are_read_back_from_text(folder: Path) -> None:
    n = 12
    table = pa.table(
        {
            "day": pa.array([i * 7 % 31 for i in range(n)], pa.int32()).cast(pa.date32()),
            "moment": pa.array([i * 10**9 * 7777 for i in range(n)], pa.int64()).cast(
                pa.timestamp("ns")
            ),
            "price": pa.array([i / 4 for i in range(n)]).cast(pa.decimal128(8, 3)),
            "flag": pa.array([i % 2 == 0 for i in range(n)]),
            "label": pa.array(["u", "v", "w"] * (n // 3)),
        }
    )
    pq.write_table(table, folder / "a.parquet")
    convert(folder / "a.parquet", folder / "a.csv")
    typed, text = read_labelled(folder / "a.parquet"), read_labelled(folder / "a.csv")
    assert typed.feature_names is not None
    assert text.feature_names is not None
    for name in ("day", "moment", "price"):
        a = typed.X[:, typed.feature_names.index(name)].astype(float)
        b = text.X[:, text.feature_names.index(name)].astype(float)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert typed.y.tolist() == text.y.tolist()


def test_json_and_streams_are_sources(folder: Path) -> None:
    (folder / "a.json").write_text('[{"a": 1.5, "y": 1}, {"a": null, "y": 0}]')
    made = convert(folder / "a.json", folder / "a.csv")
    assert made.source_format == "JSON"
    assert cells(folder / "a.csv") == [["a", "y"], ["1.5", "1"], ["", "0"]]
    convert(io.BytesIO(ROWS.encode()), folder / "b.csv")
    convert(io.BytesIO(gzip.compress(ROWS.encode())), folder / "c.csv")
    convert(folder / "a.svm", folder / "d.csv")
    texts = {(folder / name).read_text() for name in ("b.csv", "c.csv", "d.csv")}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("a.csv", "a,y\n1,x\n", {}, r"a\.csv:2: column 2 \(y\): the label 'x' is not a number"),
        ("a.csv", "a,y\n1,1\nx,1\n", {}, r"a\.csv:3: column 1 \(a\): 'x' is not a plain number"),
        ("a.csv", "a,y\n5%,1\n", {}, r"a\.csv:2: column 1 \(a\): '5%' is not a plain number"),
        ("a.csv", "a,y\n1,1\n,1\n", {}, r"a\.csv:3: column 1 \(a\): the cell is empty"),
        (
            "a.csv",
            "a,y\n1,\n2,1\n",
            {},
            r"a\.csv:2: column 2 \(y\): the cell of the label is empty",
        ),
        ("a.csv", "a,y\n1,1\n", {"label": "z"}, "no column is named 'z'"),
        ("a.csv", "a,y\n1,1\n2\n", {}, r"a\.csv:3: 1 cell where the first row has 2"),
        ("a.csv", "a\n1\n", {}, "only one column"),
        ("a.svm", "1 1:x\n", {}, r"a\.svm:1:3"),
        ("a.svm", "1 1:1\n", {"label": "y"}, "leave out label='y'"),
        ("a.svm", "1 0:1\n", {}, "zero_based"),
        ("a.xlsx", "x", {}, "spreadsheet"),
    ],
)
def test_what_svmlight_cannot_hold_is_named(
    tmp_path: Path, name: str, content: str, options: dict[str, Any], words: str
) -> None:
    (tmp_path / name).write_text(content)
    target = tmp_path / "kept.svm"
    target.write_text("as before")
    with pytest.raises(DataFileError, match=words):
        convert(tmp_path / name, target, **options)
    assert target.read_text() == "as before"
    assert {path.name for path in tmp_path.iterdir()} == {name, "kept.svm"}


def test_words_and_gaps_of_parquet_are_refused_for_svmlight(tmp_path: Path) -> None:
    for column, words in [
        (["x", "y"], r"column 1 \(a\): 'string' is not a plain number"),
        ([1.0, None], r"column 1 \(a\): row 1: the cell is empty"),
        ([math.inf, 1.0], r"inf in row 0"),
    ]:
        pq.write_table(pa.table({"a": column, "label": [0, 1]}), tmp_path / "a.parquet")
        with pytest.raises(DataFileError, match=words):
            convert(tmp_path / "a.parquet", tmp_path / "a.svm")


def test_absurd_widths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 200000:1\n")
    with pytest.raises(DataFileError, match=r"200,000 columns .* keep it as svmlight text"):
        convert(tmp_path / "a.svm", tmp_path / "a.csv")
    (tmp_path / "a.svm").write_text("1 90000:1\n" * 1200)
    with pytest.raises(DataFileError, match="108,000,000 cells"):
        convert(tmp_path / "a.svm", tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a", "a.txt", "a.xlsx", "a.parquet.gz"])
def test_targets_of_other_names_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(DataFileError, match="the name must end with"):
        convert(folder / "a.svm", folder / name)


def test_without_pyarrow_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        convert(folder / "a.svm", folder / "a.parquet")
    assert not (folder / "a.parquet").exists()


@pytest.mark.parametrize("ending", UNPACK)
def test_packed_targets_hold_the_same_text(folder: Path, ending: str) -> None:
    convert(folder / "a.svm", folder / "plain.csv")
    convert(folder / "a.svm", folder / f"b.csv{ending}")
    packed = (folder / f"b.csv{ending}").read_bytes()
    assert UNPACK[ending](packed) == (folder / "plain.csv").read_bytes()


def test_a_file_can_be_converted_in_place(folder: Path) -> None:
    (folder / "a.csv").write_text("a;y\n1,5;2\n")
    convert(folder / "a.csv", folder / "a.csv")
    assert (folder / "a.csv").read_text() == 'a,y\n"1,5",2\n'
