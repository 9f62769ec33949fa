"""Files as sources of rows: their parts, and what is wrong with one, with its name."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.errors import DataFileError

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf")])
def test_parquet_names_part_column_and_row_of_what_is_no_number(bad: Any, tmp_path: Path) -> None:
    values = [*np.arange(30.0), bad, *np.arange(19.0)]
    table = pa.table({"a": np.arange(50.0), "b": pa.array(values), "y": np.arange(50) % 2})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20)
    source = mm.data.open(tmp_path / "a.parquet", label="y", rows=20)
    source.load(0)
    found = rf"^part 1 \(a\.parquet, row group 1\): column 'b' has {bad or np.nan} in row 30"
    with pytest.raises(DataFileError, match=found):
        source.load(1)


def test_parquet_files_unlike_the_first(tmp_path: Path) -> None:
    first = {"a": [1.0, 2.0], "b": [1.0, 2.0], "y": [0, 1]}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"a": [1.0], "y": [0]}, "has no column 'b'"),
        ({**first, "b": ["u", "v"]}, "column 'b' holds what is no number"),
    ]
    for columns, message in cases:
        pq.write_table(pa.table(first), tmp_path / "1.parquet")
        pq.write_table(pa.table(columns), tmp_path / "2.parquet")
        with pytest.raises(
            DataFileError, match=rf"^part 1 \(2\.parquet, row group 0\): .*{message}"
        ):
            mm.data.open(tmp_path / "*.parquet", label="y").load(1)
    reordered = {name: first[name] for name in ("y", "b", "a")}
    pq.write_table(pa.table(reordered), tmp_path / "2.parquet")
    assert len(mm.data.open(tmp_path / "*.parquet", label="y")) == 2


def test_parquet_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 this is not so")
    with pytest.raises(DataFileError, match=r"a\.parquet: not a Parquet file, or damaged"):
        mm.data.open(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "a.parquet")
    with pytest.raises(DataFileError, match="no rows"):
        mm.data.open(tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"a": [1.0], "y": pa.array([None], pa.int64())}), tmp_path / "b.parquet"
    )
    with pytest.raises(DataFileError, match=r"^part 0 .*there is no label in row 0"):
        mm.data.open(tmp_path / "b.parquet", label="y").load(0)
    with pytest.raises(ValueError, match="label="):
        mm.data.open(tmp_path / "b.parquet", [1])


def test_columns_with_dots_in_their_names(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1.0, 2.0], "a": [3.0, 4.0], "y": [0, 1], "word": ["u", "v"]})
    pq.write_table(table, tmp_path / "a.parquet")
    source = mm.data.open(tmp_path / "a.parquet", label="y", columns=["a.b", "a"])
    assert source.load(0).X.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_tables_with_wrong_cells(tmp_path: Path) -> None:
    lines = ["a,b,y", *(f"{k},{k / 2},{k % 2}" for k in range(2000))]
    path = tmp_path / "a.csv"
    for row, line, message in [
        (1500, "7,seven,1", r"a\.csv:1501: column 2 \(b\)"),
        (1502, "7,1", r"a\.csv:1503: 2 cells"),
        (1503, "7,1,x", r"a\.csv:1504: .*'x'"),
    ]:
        path.write_text("\n".join([*lines[:row], line, *lines[row + 1 :]]) + "\n")
        with pytest.raises(DataFileError, match=message):
            mm.data.open(path, label="y", rows=100)
    path.write_text("\n".join([*lines[:1501], "", "7,,1", *lines[1502:]]) + "\n")
    source = mm.data.open(path, label="y", rows=100)
    wrong = r"^part 15 \(a\.csv, lines 1503 to 1602\): column 'b' has nan in line 1503"
    with pytest.raises(DataFileError, match=wrong):
        source.load(15)


def test_fractions_among_later_labels_make_all_of_them_floats(tmp_path: Path) -> None:
    lines = ["a,y", *(f"{k},{k % 9}" for k in range(2000))]
    path = tmp_path / "a.csv"
    for last, kind in (("3,4", "i"), ("3,4.5", "f")):
        path.write_text("\n".join([*lines, last]) + "\n")
        parts = list(mm.data.open(path, label="y", rows=900))
        assert {part.y.dtype.kind for part in parts} == {kind}


def test_tables_and_packed_files_are_refused_on_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,kind\n1,2,0\n3,4,1\n")
    with gzip.open(tmp_path / "b.svm.gz", "wt") as file:
        file.write("1 1:1\n0 1:2\n")
    cases: list[tuple[str, dict[str, Any]]] = [("a.csv", {"label": "kind"}), ("b.svm.gz", {})]
    for name, how in cases:
        with pytest.raises(DataFileError, match=rf"{name}: .*cluster .* save it as Parquet"):
            mm.data.open(tmp_path / name, client="tcp://127.0.0.1:8786", **how)
        source = mm.data.open(tmp_path / name, **how)
        with pytest.raises(DataFileError, match="save it as Parquet"):
            source.with_options(client="tcp://127.0.0.1:8786")


def test_tables_with_words(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,city,y\n1,Rome,0\n2,Oslo,1\n")
    with pytest.raises(DataFileError, match="column 'city' holds words"):
        mm.data.open(tmp_path / "a.csv", label="y")
    source = mm.data.open(tmp_path / "a.csv", label="y", columns=["a"])
    assert source.load(0).X.tolist() == [[1.0], [2.0]]


def test_svmlight_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:2\n0 2:x\n")
    with pytest.raises(DataFileError, match=r"^part 0 \(a\.svm"):
        mm.data.open(tmp_path / "a.svm")
    with pytest.raises(DataFileError, match=r"^part 0 \(a\.svm.*a\.svm:2"):
        mm.data.open(tmp_path / "a.svm", n_features=3).load(0)
    with pytest.raises(ValueError, match="label first"):
        mm.data.open(tmp_path / "a.svm", label="y")
    with gzip.open(tmp_path / "b.svm.gz", "wt") as file:
        file.write("1\n0\n")
    with pytest.raises(DataFileError, match="no features"):
        mm.data.open(tmp_path / "b.svm.gz")
