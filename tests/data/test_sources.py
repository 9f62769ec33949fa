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


def test_small_row_groups_are_joined_and_large_ones_cut(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": np.arange(100.0)}), tmp_path / "a.parquet", row_group_size=10)
    source = mm.data.open(tmp_path / "a.parquet", rows=35)
    assert [len(part.X) for part in source] == [30, 30, 30, 10]
    assert source.describe(1) == "part 1 (a.parquet, row groups 3 to 5)"
    source = mm.data.open(tmp_path / "a.parquet", rows=4)
    assert [len(part.X) for part in source] == [4, 4, 2] * 10
    assert source.describe(4) == "part 4 (a.parquet, row group 1, rows 14 to 17)"


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
    first = {"a": [1.0, 2.0], "a.b": [3.0, 4.0], "y": [0, 1]}  # a dot is nothing special
    cases: list[tuple[dict[str, Any], str]] = [
        ({"a": [1.0], "y": [0]}, "has no column 'a.b'"),
        ({**first, "c": [1.0, 2.0]}, "has a column 'c'"),
        ({**first, "a.b": ["u", "v"]}, "column 'a.b' holds string"),
    ]
    for columns, message in cases:
        pq.write_table(pa.table(first), tmp_path / "1.parquet")
        pq.write_table(pa.table(columns), tmp_path / "2.parquet")
        with pytest.raises(
            DataFileError, match=rf"^part 1 \(2\.parquet, row group 0\): .*{message}"
        ):
            mm.data.open(tmp_path / "*.parquet", label="y")
    pq.write_table(pa.table(dict(reversed(first.items()))), tmp_path / "2.parquet")
    source = mm.data.open(tmp_path / "*.parquet", label="y")
    assert [part.X.tolist() for part in source] == [[[1.0, 3.0], [2.0, 4.0]]] * 2


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7,seven,1", r"column 2 \(b\)"),
        ("7,,1", "column 'b' has nan in line 1501"),
        ("7,1", "2 cells"),
        ("7,1,x", "'x'"),
    ],
)
def test_tables_with_wrong_cells(line: str, message: str, tmp_path: Path) -> None:
    lines = ["a,b,y", *(f"{k},{k / 2},{k % 2}" for k in range(2000))]
    lines[1500] = line
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataFileError, match=rf"^part \d+ \(a\.csv, bytes .*{message}") as raised:
        list(mm.data.open(tmp_path / "a.csv", label="y", rows=100))
    assert "1501" in str(raised.value)


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
