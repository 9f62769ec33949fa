"""Parquet and Arrow files: typed columns make the same decisions as text, and exactly so."""

import contextlib
import datetime
import gzip
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.data import Layout, read_labelled, read_rows
from maxmargin.errors import DataFileError
from tests.data.test_layout import assert_read_alike, joined

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

N = 40
DAY = datetime.date(2020, 1, 1)
NOON = datetime.datetime(2020, 1, 1, 12)


def save(folder: Path, columns: dict[str, Any], name: str = "a.parquet", **options: Any) -> Path:
    path, table = folder / name, pa.table(columns)
    if name.endswith(".parquet"):
        pq.write_table(table, path, **options)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=17)
    return path


def everything() -> dict[str, Any]:
    """Return a column of each type."""
    some = [None if i % 5 == 0 else i / 7 for i in range(N)]
    return {
        "float": pa.array([i / 7 for i in range(N)]),
        "narrow": pa.array([i / 8 for i in range(N)], pa.float32()),
        "gaps": pa.array(some),
        "integer": pa.array([i * i % 11 for i in range(N)], pa.int16()),
        "flag": pa.array([i % 3 == 0 for i in range(N)]),
        "price": pa.array([Decimal(i) / 8 for i in range(N)], pa.decimal128(12, 3)),
        "day": pa.array([DAY + datetime.timedelta(i * i % 29) for i in range(N)]),
        "moment": pa.array([NOON + datetime.timedelta(hours=i * 7 % 31) for i in range(N)]),
        "time": pa.array([datetime.time(i % 24, 30) for i in range(N)]),
        "word": pa.array([("red", "blue", None)[i % 3] for i in range(N)]),
        "category": pa.array([("p", "q")[i % 2] for i in range(N)]).dictionary_encode(),
        "percent": pa.array([f"{i * i % 17}%" for i in range(N)]),
        "label": pa.array([("u", "v")[i % 2] for i in range(N)]),
    }


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_typed_tables_are_read_and_read_alike(tmp_path: Path, name: str, rows: int) -> None:
    path = save(tmp_path, everything(), name)
    data = read_labelled(path)
    assert data.feature_names is not None
    by_name = dict(zip(data.feature_names, data.X.T, strict=True))
    assert by_name["float"].tolist() == [i / 7 for i in range(N)]
    assert by_name["narrow"].tolist() == [i / 8 for i in range(N)]
    assert np.isnan(by_name["gaps"].astype(float)).sum() == N / 5
    assert by_name["flag"].tolist() == [float(i % 3 == 0) for i in range(N)]
    assert by_name["price"].tolist() == [i / 8 for i in range(N)]
    assert by_name["day"][0] == (DAY - datetime.date(1970, 1, 1)).days
    assert by_name["moment"][0] == (DAY - datetime.date(1970, 1, 1)).days + 0.5
    assert by_name["time"][3] == 3.5
    assert by_name["word"].tolist()[:3] == ["red", "blue", None]
    assert by_name["percent"][2] == 4.0
    assert data.y.tolist()[:2] == ["u", "v"]
    assert data.numbered == "row"
    assert data.numbers.tolist() == list(range(N))
    assert_read_alike(path, data, rows)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1],
        [0.0, 1.0],
        [0.5, 1.5],
        [True, False],
        [2**60, 2**60 + 1],
        ["a", "b"],
        ["1", "2"],
        [DAY, DAY + datetime.timedelta(1)],
    ],
    ids=str,
)
@pytest.mark.parametrize("gaps", [False, True])
def test_labels_of_all_types_are_kept(tmp_path: Path, labels: list[Any], gaps: bool) -> None:
    y = [None if gaps and i % 4 == 3 else labels[i % 2] for i in range(N)]
    path = save(tmp_path, {"a": [i / 7 for i in range(N)], "label": y})
    data = read_labelled(path)
    assert len(data.y) == N - (N // 4 if gaps else 0)
    if isinstance(labels[0], int | str) and labels != ["1", "2"]:
        assert data.y.tolist()[:2] == labels
    assert_read_alike(path, data, 7)


def test_parquet_and_csv_of_one_table_are_one_table(tmp_path: Path) -> None:
    columns = {
        "a": [i / 7 for i in range(N)],
        "b": ["x", "y"] * (N // 2),
        "label": [1, 0] * (N // 2),
    }
    data = read_labelled(save(tmp_path, columns))
    text = tmp_path / "a.csv"
    rows = zip(*columns.values(), strict=True)
    text.write_text("a,b,label\n" + "".join(f"{a!r},{b},{y}\n" for a, b, y in rows))
    of_text = read_labelled(text)
    assert of_text.X.tolist() == data.X.tolist()
    assert of_text.y.tolist() == data.y.tolist()
    assert of_text.layout is not None
    assert data.layout is not None
    for layout, path in [(of_text.layout, tmp_path / "a.parquet"), (data.layout, text)]:
        X, y, _ = joined(list(read_rows(path, layout, rows=9)))
        assert X.tolist() == data.X.tolist()
        assert y.tolist() == data.y.tolist()


def test_parquet_comes_from_streams_and_packed(tmp_path: Path) -> None:
    path = save(tmp_path, {"a": [i / 7 for i in range(N)], "label": [0, 1] * (N // 2)})
    data = read_labelled(path)
    assert data.layout is not None
    packed = tmp_path / "b.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_labelled(packed).X.tolist() == data.X.tolist()
    for source in (packed, io.BytesIO(path.read_bytes()), io.BytesIO(packed.read_bytes())):
        X, _, _ = joined(list(read_rows(source, data.layout)))
        assert X.tolist() == data.X.tolist()


def test_columns_are_found_by_name_whatever_the_names(tmp_path: Path) -> None:
    values = {"a.b": [i / 7 for i in range(N)], "a": [i % 5 for i in range(N)]}
    label = {"label": [0, 1] * (N // 2)}
    data = read_labelled(save(tmp_path, {**values, **label}))
    assert data.layout is not None
    later = save(tmp_path, {"z": [1] * N, "a": values["a"], "a.b": values["a.b"]}, "b.parquet")
    blocks = list(read_rows(later, data.layout, rows=9))
    assert joined(blocks)[0].tolist() == data.X.tolist()
    assert blocks[0].y is None
    assert "'z'" in blocks[0].remarks[0]
    assert not blocks[1].remarks


def test_the_index_that_pandas_writes_is_no_column(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [i / 7 for i in range(N)], "label": [0, 1] * (N // 2)})
    frame.index = [f"row {i}" for i in range(N)]
    frame.to_parquet(tmp_path / "a.parquet")
    assert read_labelled(tmp_path / "a.parquet").feature_names == ["a"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([[1, 2]] * N), r"column 1 \(a\) holds list<.*leave it out"),
        (pa.array([{"b": 1}] * N), r"column 1 \(a\) holds struct"),
        (pa.array([b"xy"] * N), r"column 1 \(a\) holds binary"),
        (pa.array([1.0, float("inf")] * (N // 2)), r"column 1 \(a\): inf in row 1 is not a finite"),
        (pa.array([datetime.timedelta(1)] * N), r"column 1 \(a\) holds duration"),
    ],
    ids=str,
)
def test_what_cannot_be_learnt_from_is_named(tmp_path: Path, column: Any, words: str) -> None:
    path = save(tmp_path, {"a": column, "label": [0, 1] * (N // 2)})
    with pytest.raises(DataFileError, match=words):
        read_labelled(path)


@pytest.mark.parametrize(
    ("trained", "later", "words"),
    [
        ([i / 7 for i in range(N)], ["x"] * N, r"row 0: column 1 \(a\): 'x' is not a number"),
        (["x", "y"] * (N // 2), [1.0] * N, r"column 1 \(a\) holds double, .* it had words"),
        (["5%", "6%"] * (N // 2), [1.0] * N, "holds double, .* percent sign"),
        ([DAY, NOON.date()] * (N // 2), [1] * N, "holds int64, .* had dates"),
        ([i % 7 for i in range(N)], [DAY] * N, "holds date32.*, .* had numbers"),
    ],
    ids=str,
)
def test_other_types_than_in_training_are_refused(
    tmp_path: Path, trained: list[Any], later: list[Any], words: str
) -> None:
    if isinstance(trained[0], datetime.date):
        trained = [DAY + datetime.timedelta(i % 3) for i in range(N)]
    data = read_labelled(
        save(tmp_path, {"a": trained, "b": [0, 1, 2, 1] * 10, "label": [0, 1] * 20})
    )
    path = save(tmp_path, {"a": later, "b": [0, 1, 2, 1] * 10}, "later.parquet")
    assert data.layout is not None
    with pytest.raises(DataFileError, match=words):
        list(read_rows(path, data.layout))


def test_other_files_of_that_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("a,label\n1,0\n")
    with pytest.raises(DataFileError, match="not a Parquet or Arrow file"):
        read_labelled(tmp_path / "a.parquet")


@given(data=st.data(), name=st.sampled_from(["a.parquet", "a.arrow"]))
@settings(deadline=None, max_examples=60)
def test_damaged_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    path = save(tmp_path_factory.mktemp("damaged"), everything(), name)
    layout = read_labelled(path).layout
    assert layout is not None
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(4, len(content)))]
    with contextlib.suppress(DataFileError, OSError):
        list(read_rows(io.BytesIO(bytes(content)), Layout.from_json(layout.to_json())))


@given(
    columns=st.lists(
        st.lists(st.one_of(st.none(), st.floats(allow_infinity=False)), min_size=12, max_size=12),
        min_size=1,
        max_size=4,
    )
)
@settings(deadline=None, max_examples=30)
def test_numbers_are_kept_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, columns: list[list[float | None]]
) -> None:
    named: dict[str, Any] = {f"c{j}": pa.array(c, pa.float64()) for j, c in enumerate(columns)}
    named |= {"w": [i / 3 for i in range(12)], "label": [0, 1] * 6}
    path = save(tmp_path_factory.mktemp("bits"), named, row_group_size=5)
    data = read_labelled(path)
    assert_read_alike(path, data, 5)
