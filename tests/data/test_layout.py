"""Layouts: a later file is read as the training file was, or refused."""

import bz2
import contextlib
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.data import Labelled, Layout, read_labelled, read_rows, tables
from maxmargin.data import text as source
from maxmargin.data.later import RowBlock
from maxmargin.errors import DataFileError

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}


def write(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def train(
    folder: Path, content: str | bytes, name: str = "train.csv", **options: Any
) -> tuple[Labelled, Layout]:
    data = read_labelled(write(folder, content, name), **options)
    assert data.layout is not None
    return data, data.layout


def joined(blocks: list[RowBlock]) -> tuple[Any, Any, Any]:
    stack = sp.vstack if sp.issparse(blocks[0].X) else np.concatenate
    y = None if blocks[0].y is None else np.concatenate([block.y for block in blocks])
    return stack([block.X for block in blocks]), y, np.concatenate([b.numbers for b in blocks])


def later(folder: Path, content: str | bytes, layout: Layout, **options: Any) -> list[RowBlock]:
    return list(
        read_rows(write(folder, content, options.pop("name", "later.csv")), layout, **options)
    )


def cells(X: Any) -> Any:
    """Return values that compare equal where NaN meets NaN."""
    X = X.toarray() if sp.issparse(X) else X
    return [["missing" if v != v else v for v in row] for row in X.tolist()]


def assert_read_alike(path: Path, data: Labelled, rows: int) -> None:
    """Check the theorem: the blocks of the training file are what was read for training."""
    assert data.layout is not None
    layout = Layout.from_json(json.loads(json.dumps(data.layout.to_json())))
    assert layout == data.layout
    blocks = list(read_rows(path, layout, rows=rows))
    assert all(0 < block.X.shape[0] <= rows for block in blocks)
    X, y, numbers = joined(blocks)
    assert X.dtype == data.X.dtype
    assert X.shape == data.X.shape
    assert cells(X) == cells(data.X)
    assert y.dtype.kind == data.y.dtype.kind
    assert y.tolist() == data.y.tolist()
    assert numbers.tolist() == data.numbers.tolist()


def cut_small(patch: pytest.MonkeyPatch, size: int) -> None:
    """Let text come in chunks of a few bytes, and be parsed in runs that are no longer."""
    patch.setattr(source, "CHUNK", size)
    patch.setattr(tables, "CHUNK", size)


# What was read for training is what is read later.

N = 40


def column(name: str, cell: Callable[[int], str]) -> str:
    """Return a table with one column of interest."""
    rows = (f'"{cell(i)}",{i * i % 7},{"uv"[i % 2]}' for i in range(N))
    return "\n".join([f"{name},b,label", *rows]) + "\n"


def sep(i: int) -> str:
    return " \t"[i % 2]


def day(i: int) -> tuple[int, int]:
    return i % 28 + 1, i % 12 + 1


TABLES = {
    "numbers": column("a", lambda i: repr(i / 7)),
    "powers": column("a", lambda i: f"{i}e{i - 20}"),
    "percent": column("a", lambda i: f"{i / 8} %"),
    "currency": column("a", lambda i: f"${i}" if i % 3 else str(i)),
    "euros": column("a", lambda i: f"{i},5 €"),
    "groups": column("a", lambda i: f"{i % 9 + 1},{i:03},{i:03}.5"),
    "spaces": column("a", lambda i: f"{i % 9 + 1} {i:03},25"),
    "dots": column("a", lambda i: f"{i % 9 + 1}.{i:03},{i:02}"),
    "dots alone": column("a", lambda i: f"{i % 9 + 1}.{i:03}.{i:03}"),
    "iso dates": column("a", lambda i: f"2020-{day(i)[1]:02}-{day(i)[0]:02}"),
    "day first": column("a", lambda i: "{}/{}/2021".format(*day(i))),
    "month first": column("a", lambda i: "{1}/{0}/2021 18:30".format(*day(i))),
    "dots in dates": column("a", lambda i: f"{i % 9 + 1}.{i % 12 + 1}.2021"),
    "same day and month": column("a", lambda i: f"{i % 12 + 1}/{i % 12 + 1}/2021"),
    "months": column("a", lambda i: f"{day(i)[0]} {('May', 'June')[i % 2]} 2020"),
    "times": column("a", lambda i: f"{i % 24}:{i:02}"),
    "codes": column("a", lambda i: ("7", "007", "x", "")[i % 4]),
    "missing numbers": column("a", lambda i: ("", "NA", " ? ", "-nan", str(i / 3))[min(i % 9, 4)]),
    "mixed": "id,size,city,day,label,price\n"
    + "".join(
        f"{i},{i % 5},{('Rome', 'Oslo', '')[i % 3]},2020-01-{i % 28 + 1:02},{i % 3},{i}%\n"
        for i in range(N)
    ),
    "labels missing": "a,label\n"
    + "".join(f"{i / 9},{('x', 'y', 'NA')[i % 3]}\n" for i in range(N)),
    "labels 1.0": "a,label\n" + "".join(f"{i / 9},{i % 3}.0\n" for i in range(N)),
    "labels 1.5": "a,label\n" + "".join(f"{i / 9},{i % 3}.5\n" for i in range(N)),
    "no header": "".join(f"{i / 9},{i % 4},{i % 3}\n" for i in range(N)),
    "semicolons": "a;b;label\n" + "".join(f"{i},{i % 10};{i / 9};{i % 2}\n" for i in range(N)),
    "blanks": "".join(f"  {i / 9}   {i % 7}{sep(i)}{i % 2} \n" for i in range(N)),
    "trailing": "a,b,label,\n" + "".join(f"{i / 9},{i % 7},{i % 2},\n" for i in range(N)),
    "sep line": "sep=;\na;b;label\n" + "".join(f"{i / 9};{i % 7};{i % 2}\n" for i in range(N)),
    "names of numbers": ",0,1,2\n" + "".join(f"{i},{i / 9},{i % 7},{i % 2}\n" for i in range(N)),
}


@pytest.mark.parametrize("rows", [3, 1000])
@pytest.mark.parametrize("kind", TABLES)
def test_training_tables_are_read_alike(
    tmp_path: Path, kind: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_small(monkeypatch, 100)
    data, _ = train(tmp_path, TABLES[kind])
    assert_read_alike(tmp_path / "train.csv", data, rows)


def test_long_tables_are_read_alike_across_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mix what Arrow reads with what it leaves to Python."""

    def row(i: int) -> str:
        cells = [repr(i / 7), str(i % 5), f"{i % 9}.5%", "uv"[i % 2]]
        if i > 1100 and i % 97 == 0:
            cells[0] = ("NA", "\u22121.5", " 2.5 ", "0." + "1" * 40, "1e-400")[i % 5]
        if i > 1100 and i % 211 == 0:
            cells[1] = ""
        if i > 2200 and i % 131 == 0:
            cells[3] = f'"{cells[3]}"'
        return ",".join(cells) + ("\n\n" if i % 173 == 0 else "\r\n" if i % 7 == 0 else "\n")

    cut_small(monkeypatch, 1000)
    data, _ = train(tmp_path, "a,b,c,label\n" + "".join(map(row, range(3000))))
    assert_read_alike(tmp_path / "train.csv", data, 64)


CELLS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(
        ["", "NA", " 1", "1 ", "+1", ".5", "5.", "1E5", "0x1", "1_0", "inf", "1,5", "x"]
    ),
    st.text("0123456789+-.eE ", max_size=12),
)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS, st.sampled_from("uv")), min_size=2, max_size=12),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
@settings(deadline=None, max_examples=150)
def test_random_tables_are_read_alike(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    delimiter: str,
    end: str,
) -> None:
    text = end.join(delimiter.join(row) for row in [("a", "b", "label"), *rows])
    path = write(tmp_path_factory.mktemp("random"), text, "a.csv")
    try:
        data = read_labelled(path)
    except DataFileError:
        return
    for rows_per_block in (1, 5):
        assert_read_alike(path, data, rows_per_block)


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("zero_based", [False, True])
def test_training_svmlight_is_read_alike(tmp_path: Path, rows: int, zero_based: bool) -> None:
    text = "# rows\n1 1:0.5 3:2\n\n-1 2:1e-3\n2.5 4:1 # last\n-1\n"
    data, _ = train(tmp_path, text, "train.svm", zero_based=zero_based)
    assert_read_alike(tmp_path / "train.svm", data, rows)


@pytest.mark.parametrize("name", ["train.arff", "train.jsonl"])
def test_training_tables_of_other_formats_are_read_alike(tmp_path: Path, name: str) -> None:
    if name.endswith("arff"):
        text = "@relation x\n@attribute a real\n@attribute b {p,q}\n"
        text += "@attribute class {u,v}\n@data\n"
        text += "".join(f"{i / 9},{'pq'[i % 2]},{'uv'[i % 2]}\n" for i in range(N))
    else:
        rows = [{"a": i / 9, "b": "pq"[i % 2], "label": i % 3 == 0} for i in range(N)]
        text = "\n".join(map(json.dumps, rows))
    data, _ = train(tmp_path, text, name)
    assert_read_alike(tmp_path / name, data, 7)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
@pytest.mark.parametrize("ending", PACKERS)
def test_encodings_and_packings_are_read_alike(
    tmp_path: Path, encoding: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_small(monkeypatch, 7)  # bytes, so that characters are cut
    text = "größe,ort,label\n" + "".join(f"{i},{'äö'[i % 2]},{i % 2}\n" for i in range(N))
    data, layout = train(tmp_path, PACKERS[ending](text.encode(encoding)), f"a.csv{ending}")
    assert data.feature_names == ["größe", "ort"] or data.feature_names == ["ort"]
    assert_read_alike(tmp_path / f"a.csv{ending}", data, 7)
    stream = io.BytesIO(PACKERS[ending](text.encode(encoding)))
    X, _, _ = joined(list(read_rows(stream, layout)))
    assert X.tolist() == data.X.tolist()
    assert not stream.closed


def test_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, layout = train(tmp_path, TABLES["numbers"])
    stdin = io.TextIOWrapper(io.BytesIO(TABLES["numbers"].encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert joined(list(read_rows("-", layout)))[0].tolist() == data.X.tolist()


# Columns are found again, or named if they are not there.

THREE = "a,b,c,label\n" + "".join(f"{i / 9},{'xyz'[i % 3]},{i}%,{i % 2}\n" for i in range(N))


def test_columns_are_found_by_name_in_any_order_and_remarked_once(tmp_path: Path) -> None:
    _, layout = train(tmp_path, THREE)
    blocks = later(tmp_path, "new,c,b,a\n0,5%,x,1\n0,6%,,2\n", layout, rows=1)
    assert [block.X.tolist() for block in blocks] == [[[1.0, 5.0, "x"]], [[2.0, 6.0, None]]]
    assert [block.y for block in blocks] == [None, None]
    assert [block.numbers.tolist() for block in blocks] == [[2], [3]]
    assert blocks[0].remarks == (
        "Column 'new' was not there in training and is left out.",
        "The columns stand in another order than in training; names decide.",
    )
    assert blocks[1].remarks == ()


def test_other_delimiters_and_formats_are_read_by_the_same_layout(tmp_path: Path) -> None:
    _, layout = train(tmp_path, THREE)
    wanted = [[1.5, 5.0, "x"]]
    for name, text in [
        ("b.csv", "a;b;c\n1.5;x;5%\n"),
        ("b.tsv", "a\tb\tc\n1.5\tx\t5%\n"),
        ("b.txt", "a|c|b\n1.5|5%|x\n"),
        ("b.jsonl", '{"b": "x", "a": 1.5, "c": "5%"}\n'),
        ("b.csv", "1.5,x,5%\n"),
        ("c.csv", "1.5,x,5%,0\n"),
    ]:
        assert joined(later(tmp_path, text, layout, name=name))[0].tolist() == wanted, name


def test_one_column_is_enough_without_a_label(tmp_path: Path) -> None:
    _, layout = train(tmp_path, "city,label\n" + "Rome,0\nNew York,1\n" * N)
    X, y, _ = joined(later(tmp_path, "city\nNew York\nLos Angeles\n", layout))
    assert X.tolist() == [["New York"], ["Los Angeles"]]
    assert y is None


def test_rows_without_a_label_are_left_out_only_if_labels_are_read(tmp_path: Path) -> None:
    _, layout = train(tmp_path, THREE)
    text = "a,b,c,label\n1,x,1%,0\n2,x,2%,\n3,x,3%,1\n"
    X, y, numbers = joined(later(tmp_path, text, layout))
    assert (X[:, 0].tolist(), y.tolist(), numbers.tolist()) == ([1.0, 3.0], [0, 1], [2, 4])
    X, y, numbers = joined(later(tmp_path, text, layout, label=False))
    assert (X[:, 0].tolist(), y, numbers.tolist()) == ([1.0, 2.0, 3.0], None, [2, 3, 4])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,label\n1,x,0\n", r"later\.csv: no column 'c', which the model was trained on"),
        ("a,b,C,label\n1,x,5%,0\n", r"no column 'c'.*Did you mean 'C'\?"),
        ("a,b,c,a,label\n1,x,5%,2,0\n", "more columns are named 'a' than in training"),
        ("p,q,r\n1,2,3\n", r"later\.csv:1: column 1 \(a\): 'p' is not a number"),
        ("p,q\n1,2\n", r"later\.csv:1: none of the columns' names is in this line"),
        ("a,b,c\nx,x,5%\n", r"later\.csv:2: column 1 \(a\): 'x' is not a number with a decimal"),
        ("a,b,c\n1,x,5%\n1,x,5\n", r"later\.csv:3: column 3 \(c\): '5' is not .* a percent sign"),
        ('a,b,c\n"1,5",x,5%\n', r"later\.csv:2: column 1 \(a\): '1,5' is not a number"),
        ("a,b,c\n1e999,x,5%\n", r"later\.csv:2: column 1 \(a\): '1e999' is not a finite number"),
        ("a,b,c\n1,x,5%\n1,x\n", r"later\.csv:3: 2 cells where the first row has 3"),
        ("a,b,c\n1,x,5%\n1,x,5%,7\n", r"later\.csv:3: 4 cells where the first row has 3"),
        ("a,b,c,label\n1,x,5%,0.5\n", r"later\.csv:2: column 4 \(label\): the label '0\.5'"),
        ("a,b,c,label\n1,x,5%,no\n", r"later\.csv:2: column 4 \(label\): the label 'no'"),
        ("a,b,c\n", "a header but no rows"),
        ("\n \n", "the file is empty"),
        ("# a\n# b\n", "only comments|none of the columns"),
    ],
)
def test_what_differs_from_training_is_named(tmp_path: Path, text: str, words: str) -> None:
    _, layout = train(tmp_path, THREE)
    with pytest.raises(DataFileError, match=words):
        later(tmp_path, text, layout)


@pytest.mark.parametrize(
    ("kind", "cell", "words"),
    [
        ("iso dates", "3/4/2020", "is not known from training; write the dates as 2020-12-31"),
        ("iso dates", "18:30", "is not a date"),
        ("day first", "12/31/2021", "there is no date '12/31/2021' with the day first"),
        ("month first", "31/12/2021", "there is no date '31/12/2021' with the month first"),
        ("times", "2020-12-31", "is not a time of day"),
        ("times", "25:00", "is not a time of day"),
        ("currency", "5€", r"is not a number with the sign \$"),
        ("euros", "5.5 €", "with the sign € and decimal commas"),
        ("groups", "1,23", "commas between thousands"),
        ("spaces", "1 23", "spaces between thousands and decimal commas"),
        ("dots", "1.23", "dots between thousands and decimal commas"),
        ("dots alone", "1,5", "dots between thousands"),
        ("numbers", "1,234", "a decimal point"),
        ("numbers", "5%", "a decimal point"),
        ("numbers", "1 234", "a decimal point"),
        ("percent", "5", "a percent sign"),
    ],
)
def test_numbers_in_another_notation_are_refused(
    tmp_path: Path, kind: str, cell: str, words: str
) -> None:
    _, layout = train(tmp_path, TABLES[kind])
    with pytest.raises(DataFileError, match=rf"later\.csv:2: column 1 \(a\): .*{words}"):
        later(tmp_path, f'a,b\n"{cell}",1\n', layout)


def test_a_header_where_training_had_none_is_refused(tmp_path: Path) -> None:
    _, layout = train(tmp_path, TABLES["no header"])
    with pytest.raises(DataFileError, match=r"later\.csv:1: column 1: 'a' is not a number"):
        later(tmp_path, "a,b,c\n1,2,3\n", layout)
    with pytest.raises(DataFileError, match=r"5 columns where the training file had 3 \(2 without"):
        later(tmp_path, "1,2,3,4,5\n", layout)


def test_words_alone_need_the_header_they_had(tmp_path: Path) -> None:
    _, layout = train(tmp_path, "a,b,label\n" + "p,q,0\nr,s,1\n" * N)
    with pytest.raises(DataFileError, match="this may be a header or a row"):
        later(tmp_path, "p,q\nr,s\n", layout)


def test_svmlight_and_tables_are_not_mixed_up(tmp_path: Path) -> None:
    _, layout = train(tmp_path, THREE)
    with pytest.raises(DataFileError, match="svmlight text, but the model was trained on a table"):
        later(tmp_path, "1 1:1\n", layout, name="a.svm")
    rows = list(read_rows(io.BytesIO(b"1 2:5\n"), Layout("svmlight", 2, "regression")))
    assert rows[0].y.dtype == np.float64
    with pytest.raises(DataFileError, match="index 3 is beyond"):
        list(read_rows(io.BytesIO(b"1 3:5\n"), Layout("svmlight", 2)))
    with pytest.raises(DataFileError, match="takes rows of svmlight text"):
        later(tmp_path, "a,b\n1,2\n", Layout("svmlight", 2))


# Regression.


@pytest.mark.parametrize(
    ("cell", "first"),
    [(str, 0.0), (lambda i: f"{i / 4}", 0.0), (lambda i: f"{i + 1} %", 1.0),
     (lambda i: f"${i + 1},000", 1000.0), (lambda i: f"2020-01-{i % 28 + 1:02}", 18262.0)],
)  # fmt: skip
def test_regression_targets_are_numbers_in_any_notation(
    tmp_path: Path, cell: Callable[[int], str], first: float
) -> None:
    text = "a,price\n" + "".join(f'{i * i % 7},"{cell(i)}"\n' for i in range(N))
    data, layout = train(tmp_path, text, task="regression")
    assert data.y.dtype == np.float64
    assert data.y[0] == first
    assert layout.task == "regression"
    assert any("'price', is taken as the label" in remark for remark in data.remarks)
    assert_read_alike(tmp_path / "train.csv", data, 7)


def test_regression_leaves_out_rows_without_a_target_and_refuses_words(tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{i * i % 7},{'-' if i == 3 else i}\n" for i in range(N))
    data, _ = train(tmp_path, text, task="regression")
    assert len(data.y) == N - 1
    assert_read_alike(tmp_path / "train.csv", data, 7)
    with pytest.raises(DataFileError, match=r"train\.csv:5: column 2 \(y\).*'cheap'"):
        train(tmp_path, text.replace("-", "cheap"), task="regression")
    with pytest.raises(
        DataFileError, match=r":2: .* label of a regression, .* 'u' is not a number"
    ):
        train(tmp_path, "a,y\n" + "1,u\n2,v\n" * N, task="regression")
    with pytest.raises(DataFileError, match="they are not all written in one way"):
        train(tmp_path, "a,y\n" + "1,5%\n2,7\n" * N, task="regression")
    with pytest.raises(ValueError, match="task must be one of"):
        train(tmp_path, text, task="ranking")


# Layouts from hostile files.


def test_arguments_are_checked_at_once() -> None:
    layout = Layout("svmlight", 2)
    for rows in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="rows must be a whole number"):
            read_rows("a.svm", layout, rows=rows)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="layout must be a Layout"):
        read_rows("a.svm", {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="binary mode"):
        list(read_rows(io.StringIO("1 1:1\n"), layout))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        list(read_rows("no such file.svm", layout))


TABLE_JSON = {
    "kind": "table", "task": None, "n_features": 2, "width": 3, "names": ["a", "b", "y"],
    "delimiter": ",", "label": {"position": 2, "kind": "integers", "notation": []},
    "columns": [
        {"position": 0, "words": False, "notation": ["percent"]},
        {"position": 1, "words": True, "notation": []},
    ],
}  # fmt: skip


def changed(path: str, value: Any) -> Any:
    made = json.loads(json.dumps(TABLE_JSON))
    *way, last = path.split(".")
    at = made
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if value is ...:
        del at[last]
    elif isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return made


@pytest.mark.parametrize(
    "found",
    [
        None, [], {},
        changed("kind", "csv"), changed("kind", ...), changed("task", "ranking"),
        changed("extra", 1), changed("n_features", 3), changed("n_features", True),
        changed("width", 2), changed("names", ["a"]), changed("names", []),
        changed("delimiter", "::"), changed("delimiter", ",\n"), changed("label.position", 0),
        changed("label.position", 3), changed("label.position", -1), changed("label.kind", "float"),
        changed("label.more", 1), changed("label.notation", ["percent"]), changed("columns", []),
        changed("columns.0.position", 1), changed("columns.0.notation", "percent"),
        changed("columns.0.notation", ["percents"]), changed("columns.0.notation", ["$", "€"]),
        changed("columns.0.notation", ["dates", "day first", "month first"]),
        changed("columns.0.notation", ["comma groups", "decimal comma"]),
        changed("columns.0.notation", ["dates", "percent"]),
        changed("columns.1.notation", ["percent"]),
        {"kind": "svmlight", "task": None, "n_features": 0, "zero_based": False},
        {"kind": "svmlight", "task": None, "n_features": 2**60, "zero_based": False},
        {"kind": "svmlight", "task": None, "n_features": 2},
        {**TABLE_JSON, "kind": "svmlight"},
        {**TABLE_JSON, "zero_based": False},
    ],
    ids=lambda found: json.dumps(found)[-60:],
)  # fmt: skip
def test_wrong_layouts_are_refused(found: Any) -> None:
    assert Layout.from_json(TABLE_JSON).to_json() == TABLE_JSON
    with pytest.raises(ValueError, match=r"\w"):
        Layout.from_json(found)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner)
    ),
    max_leaves=5,
)


@given(path=st.sampled_from([
    "kind", "task", "n_features", "width", "names", "names.0", "delimiter", "label",
    "label.position", "label.kind", "label.notation", "columns", "columns.0",
    "columns.1.position", "columns.1.words", "columns.0.notation", "columns.0.notation.0",
]), value=JSON)  # fmt: skip
@settings(deadline=None, max_examples=300)
def test_any_layout_is_read_or_refused(path: str, value: Any) -> None:
    try:
        layout = Layout.from_json(changed(path, value))
    except ValueError:
        return
    try:
        list(read_rows(io.BytesIO(b"a,b,y\n5%,x,1\n"), layout))
    except DataFileError:
        return


@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
@settings(deadline=None, max_examples=200)
def test_any_content_is_read_or_refused(content: bytes) -> None:
    read_or_refused(content)


@given(data=st.data())
@settings(deadline=None, max_examples=200)
def test_damaged_tables_are_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(b'y,b,a,z\r\n1,x,5%,2\n0,,7 %,\n1,"x\ny",NA,x\n' * 2)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        cut_small(patch, data.draw(st.sampled_from([1, 5, 10**6])))
        read_or_refused(bytes(content))


def read_or_refused(content: bytes) -> None:
    for layout in (Layout.from_json(TABLE_JSON), Layout.from_json(changed("names", None))):
        with contextlib.suppress(DataFileError):
            for block in read_rows(io.BytesIO(content), layout, rows=2):
                assert block.X.shape == (len(block.numbers), 2)
                assert all(isinstance(value, float) for value in block.X[:, 0])
