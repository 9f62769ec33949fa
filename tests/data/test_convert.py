"""Conversion: svmlight text to a table and back, to the bit, or a refusal with the way out."""

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.data import convert, read_labelled, read_svmlight
from maxmargin.errors import DataFileError

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

ROWS = "1 1:0.1 3:-2e-300\n-1\n2 2:5e-324 3:123456789.25\n"
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def bits(values: Any) -> list[bytes]:
    return [struct.pack("<d", value) for value in np.asarray(values, dtype=float).ravel()]


def dense(X: Any) -> Any:
    """Return an array without adding -0 to 0."""
    made = np.zeros(X.shape)
    made[X.tocoo().coords] = X.tocoo().data
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.svm").write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize("table", ["b.csv", "b.parquet"])
def test_tables_lead_back(folder: Path, table: str) -> None:
    assert convert(folder / "a.svm", folder / table) == 3
    assert convert(folder / table, folder / "c.svm") == 3
    before, after = read_svmlight(folder / "a.svm"), read_svmlight(folder / "c.svm")
    assert bits(dense(before.X)) == bits(dense(after.X))
    assert before.y.tolist() == after.y.tolist()
    data = read_labelled(folder / table)
    assert (data.label_name, data.feature_names) == ("label", ["f1", "f2", "f3"])


def test_csv_has_the_fewest_digits(folder: Path) -> None:
    convert(folder / "a.svm", folder / "a.csv")
    assert (folder / "a.csv").read_text().splitlines() == [
        "label,f1,f2,f3", "1,0.1,0,-2e-300", "-1,0,0,0", "2,0,5e-324,123456789.25",
    ]  # fmt: skip


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
    convert(here / "a.csv", here / "a.svm", zero_based=zero_based)
    ours = read_svmlight(here / "a.svm", zero_based=zero_based, n_features=3)
    assert bits(dense(ours.X)[:, :2]) == bits([row[:2] for row in rows])
    assert [float(v) for v in ours.y] == [float(row[2]) for row in rows]
    convert(here / "a.svm", here / "b.parquet", zero_based=zero_based)
    table = pq.read_table(here / "b.parquet")
    assert bits(table["f1"].to_numpy()) == bits([row[0] for row in rows])


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("a.csv", "a,y\n1,x\n", {}, "y has texts, .* number the classes"),
        ("a.csv", "a,y\nw,1\nx,1\n", {}, r"a\.csv: column 'a' holds words \('w'\)"),
        ("a.csv", "a,y\n1,1\n,1\n", {}, r"a\.csv, .*column 'a' has nan in line 3"),
        ("a.csv", "a,y\n1,1\n", {"label": "z"}, "no column is named 'z'"),
        ("a.csv", "a,y\n1,1\n2\n", {}, r"a\.csv:3: 1 cell where the first row has 2"),
        ("a.csv", "a\n1\n", {}, "only one column"),
        ("a.svm", "1 1:1\n", {}, r"is svmlight text, .* must end with \.csv or \.parquet"),
        ("a.xlsx", "x", {}, "spreadsheet"),
    ],
)
def test_what_svmlight_cannot_hold_is_named(
    tmp_path: Path, name: str, content: str, options: dict[str, Any], words: str
) -> None:
    (tmp_path / name).write_text(content)
    target = tmp_path / "kept.svm"
    target.write_text("as before")
    with pytest.raises(ValueError, match=words):
        convert(tmp_path / name, target, **options)
    assert target.read_text() == "as before"
    assert {path.name for path in tmp_path.iterdir()} == {name, "kept.svm"}


def test_absurd_widths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 200000:1\n")
    with pytest.raises(DataFileError, match=r"200,000 columns .* keep it as svmlight text"):
        convert(tmp_path / "a.svm", tmp_path / "a.csv")
    (tmp_path / "a.svm").write_text("1 90000:1\n" * 1200)
    with pytest.raises(DataFileError, match="108,000,000 cells"):
        convert(tmp_path / "a.svm", tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a", "a.tsv", "a.csv.gz"])
def test_targets_of_other_names_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(DataFileError, match=r"must end with .* use pandas, polars or pyarrow"):
        convert(folder / "a.svm", folder / name)
    with pytest.raises(DataFileError, match="leave out label='y'"):
        convert(folder / "a.svm", folder / "a.csv", label="y")


def test_without_pyarrow_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install pyarrow"):
        convert(folder / "a.svm", folder / "a.parquet")
    assert not (folder / "a.parquet").exists()
