"""Tables as people have them: small files that must be read as they are meant, or refused."""

import contextlib
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.data import read_labelled, read_rows, read_table, tables
from maxmargin.data import text as source
from maxmargin.errors import DataFileError

N = 24
NAN = float("nan")


def table(header: str, row: Any, end: str = "\n", rows: int = N) -> str:
    return end.join(([header] if header else []) + [row(i) for i in range(rows)]) + end


def wave(i: int) -> float:
    return round(float(np.sin(7 * i + 1)), 4)


LEVELS = [f"L{i % 60}" for i in range(180)]
# What a file holds; what the first two rows of X are, y of these, and words that are noted.
FILES: dict[str, tuple[str | bytes, Any, list[Any], str]] = {
    "quoted newlines and separators": (
        table("note,b,label", lambda i: f'"{"pq"[i % 2]},\n{"pq"[i % 2]}",{wave(i)},{i % 2}'),
        [[0.8415, "p,\np"], [0.9894, "q,\nq"]], [0, 1], "words of column 'note' become 2 columns",
    ),
    "decimal commas": (
        table("a;b;label", lambda i: f"{i % 7},5;{wave(i)};{'uv'[i % 2]}"),
        [[0.5, 0.8415], [1.5, 0.9894]], ["u", "v"], "Commas in column 'a' are decimal commas",
    ),
    "thousands": (
        table("a,b,label", lambda i: f'"{i % 9 + 1},{i:03}",{wave(i)},{i % 2}'),
        [[1000.0, 0.8415], [2001.0, 0.9894]], [0, 1], "Commas in column 'a' separate thousands",
    ),
    "currency": (
        table("a,b,label", lambda i: f"${i * i % 7}.50,{wave(i)},{i % 2}"),
        [[0.5, 0.8415], [1.5, 0.9894]], [0, 1], "Currency signs in column 'a' are dropped",
    ),
    "dates": (
        table("a,b,label", lambda i: f"1970-01-{i * 5 % 7 + 1:02},{wave(i)},{i % 2}"),
        [[0.0, 0.8415], [5.0, 0.9894]], [0, 1], "Dates in column 'a' become days",
    ),
    "UTF-16": (
        table("größe,b,label", lambda i: f"{wave(i)},{i % 5},{'äö'[i % 2]}").encode("utf-16"),
        [[0.8415, 0.0], [0.9894, 1.0]], ["ä", "ö"], "",
    ),
    "UTF-8 with a mark": (
        table("a,b,label", lambda i: f"{wave(i)},{i % 5},{'äö'[i % 2]}").encode("utf-8-sig"),
        [[0.8415, 0.0], [0.9894, 1.0]], ["ä", "ö"], "",
    ),
    "Latin-1": (
        table("a,b,label", lambda i: f"{wave(i)},{i % 5},{'äö'[i % 2]}").encode("latin-1"),
        [[0.8415, 0.0], [0.9894, 1.0]], ["ä", "ö"], "read as Windows-1252",
    ),
    "no header": (
        table("", lambda i: f"{wave(i)},{i % 5},{'uv'[i % 2]}"),
        [[0.8415, 0.0], [0.9894, 1.0]], ["u", "v"], "",
    ),
    "label first": (
        table("class,a,b", lambda i: f"{'uv'[i % 2]},{wave(i)},{i % 5}"),
        [[0.8415, 0.0], [0.9894, 1.0]], ["u", "v"], "",
    ),
    "names twice": (
        table("a,a,label", lambda i: f"{wave(i)},{i % 5},{i % 2}"),
        [[0.8415, 0.0], [0.9894, 1.0]], [0, 1], "Column 2 is called 'a (2)'",
    ),
    "names of rows": (
        table("a,b,label", lambda i: f"r{i},{wave(i)},{i % 5},{i % 2}"),
        [[0.8415, 0.0], [0.9894, 1.0]], [0, 1], "Left out column 1: values that differ",
    ),
    "60 levels": (
        table("a,b,label", lambda i: f"{LEVELS[i]},{wave(i)},{i % 2}", rows=180),
        [[0.8415, "L0"], [0.9894, "L1"]], [0, 1], "become 60 columns",
    ),
    "ids and constants": (
        table("id,one,a,b,label", lambda i: f"{i + 7},x,{wave(i)},{i % 5},{i % 2}"),
        [[0.8415, 0.0], [0.9894, 1.0]], [0, 1], "Left out column 'one': one value only",
    ),
    "words after 5,000 integers": (
        table("a,b,label", lambda i: f"{i % 9 if i < 5000 else 'x'},{wave(i)},{i % 2}", rows=5010),
        [[0.8415, "0"], [0.9894, "1"]], [0, 1], "words of column 'a' become 10 columns",
    ),
    "comments and blank lines": (
        "# from there\n\n" + table("a,b,label", lambda i: f"\n{wave(i)},{i % 5},{i % 2}"),
        [[0.8415, 0.0], [0.9894, 1.0]], [0, 1], "marked with # are left out",
    ),
    "old line ends": (
        table("a,b,label", lambda i: f"{wave(i)},{i % 5},{i % 2}", "\r"),
        [[0.8415, 0.0], [0.9894, 1.0]], [0, 1], "",
    ),
    "Windows line ends": (
        table("a,b,label", lambda i: f"{wave(i)},{i % 5},{i % 2}", "\r\n"),
        [[0.8415, 0.0], [0.9894, 1.0]], [0, 1], "",
    ),
    "inches": (
        table("a,b,label", lambda i: f'{i % 3} 1/2" pipe,{wave(i)},{i % 2}'),
        [[0.8415, '0 1/2" pipe'], [0.9894, '1 1/2" pipe']], [0, 1], "",
    ),
    "a huge cell": (
        table("a,b,label", lambda i: f"{'xy'[i % 2] * 10**5},{wave(i)},{i % 2}"),
        [[0.8415, "x" * 10**5], [0.9894, "y" * 10**5]], [0, 1], "",
    ),
    "spaces between": (
        table("", lambda i: f"  {wave(i)}{chr(32 if i % 2 else 9)}  {i % 5}  {'uv'[i % 2]} "),
        [[0.8415, 0.0], [0.9894, 1.0]], ["u", "v"], "",
    ),
}  # fmt: skip


def in_runs(size: int, patch: pytest.MonkeyPatch) -> None:
    for module, name in ((source, "CHUNK"), (tables, "CHUNK")):
        patch.setattr(module, name, size)


@pytest.mark.parametrize("size", [1 << 9, 1 << 22])
@pytest.mark.parametrize("kind", FILES)
def test_files_are_read_as_they_are_meant(
    tmp_path: Path, kind: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, X, y, note = FILES[kind]
    in_runs(size, monkeypatch)
    path = tmp_path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    data = read_labelled(path)
    assert data.X[:2].tolist() == X
    assert data.y[:2].tolist() == y
    assert note in " ".join(data.remarks)
    assert data.layout is not None
    later = [row for block in read_rows(path, data.layout, rows=7) for row in block.X.tolist()]
    assert repr(later) == repr(data.X.tolist())


MISSING = ["", "NA", "n/a", "NaN", "nan", "null", "None", "?", "-", ".", " ", "#N/A", "<NA>", "N/A"]


def test_all_spellings_of_missing_cells_are_gaps(tmp_path: Path) -> None:
    cells = [*MISSING, *(str(i % 5) for i in range(40))]
    text = "a,b,label\n" + "".join(f"{c},{wave(i)},{i % 2}\n" for i, c in enumerate(cells))
    (tmp_path / "a.csv").write_text(text)
    data = read_labelled(tmp_path / "a.csv")
    assert np.isnan(data.X[:, 0]).tolist() == [i < len(MISSING) for i in range(len(cells))]
    assert "Empty cells of column 'a' (14 in all) are filled with the median" in data.remarks[0]
    assert data.prepare.fit_transform(data.X)[:14, 0].tolist() == [2.0] * 14


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "a ragged line": (table("a,b,y", lambda i: "1,2,3" if i != 20 else "1,2"), r":22: 2 cells"),
    "a ragged line, late": (
        table("a,b,y", lambda i: "1,2,3" if i != 5000 else "1,2,3,4", rows=5010), r":5002: 4 cells",
    ),
    "nothing": ("", "empty"),
    "blank lines": ("\n\n", "empty"),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\x00", "a document or picture"),
    "bytes 0": (b"a,b,y\n1,\x00,2\n", "not text"),
    "a byte 0, late": (("a,b,y\n" + "1,2,0\n" * 10**6).encode() + b"1,\0,2\n", "not text"),
    "a header": ("a,b,y\n", "a header but no rows"),
    "one column": ("a\n1\n2\n", "only one column"),
    "day or month first": (table("a,y", lambda i: f"0{i % 9 + 1}/05/2020,{i % 2}"),
                           r"column 1 \(a\): no date tells whether .* write the dates as"),
    "an open quotation mark at the end": ('a,b,y\n1,2,0\n1,2,"1\n', r":3: .* quotation marks"),
    "an open quotation mark": ('a,b,y\n' + "1,2,3\n" * 3000 + '1,"2,4\n', "quotation marks"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_other_files_are_refused(tmp_path: Path, kind: str) -> None:
    content, words = REFUSED[kind]
    path = tmp_path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataFileError, match=rf"a\.csv.*{words}"):
        read_labelled(path)


@pytest.mark.parametrize("seed", range(8))
def test_quotation_marks_are_read_as_by_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    signs = ['"', "a", "1", ",", ",", "\n", " ", '""', 'b"', '"x"', ',"', '",']
    for _ in range(60):
        cells = "".join(rng.choice(signs, rng.integers(2, 12)))
        text = f"g,h\nu,v\nu,v\nu,v\n{cells}\nu,v\n"
        lines = csv.reader(io.StringIO(text, newline="\n"), skipinitialspace=True, strict=True)
        wanted = None
        with contextlib.suppress(csv.Error):
            wanted = [row for row in lines if len(row) > 1 or (row and row[0].strip())][1:]
        if wanted is None or any(len(row) != 2 for row in wanted):
            with pytest.raises(DataFileError):
                read_table(io.BytesIO(text.encode()))
            continue
        read = read_table(io.BytesIO(text.encode()))
        found = zip(*(read.column(j).cells().tolist() for j in range(2)), strict=True)
        assert [[cell or "" for cell in row] for row in found] == [
            [cell.strip() for cell in row] for row in wanted
        ]


def test_words_in_a_later_part_are_named_by_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,y\n" + "1,0\n2,1\n" * 2500 + "x,1\n")
    with pytest.raises(DataFileError, match=r"a\.csv:5002: column 1 \(a\): 'x' is not a number"):
        mm.data.open(tmp_path / "a.csv", label="y", rows=1000)


def test_another_label_and_another_order_of_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(table("a,b,c", lambda i: f"{wave(i)},{i % 2},{i % 5}"))
    data = read_labelled(tmp_path / "a.csv", label="b")
    assert (data.label_name, data.feature_names) == ("b", ["a", "c"])
    assert data.layout is not None
    block = next(iter(read_rows(io.BytesIO(b"c;new;a\n4;0;0.5\n"), data.layout)))
    assert block.X.tolist() == [[0.5, 4.0]]
    assert len(block.remarks) == 2


def test_read_table_gives_names_and_columns() -> None:
    found = read_table(io.BytesIO(b"a,b,c\n1,x,03/04/2020\n,y,05/04/2020\n"))
    assert (found.names, found.width, found.numbers.tolist()) == (["a", "b", "c"], 3, [2, 3])
    assert repr(found.column(0).cells().tolist()) == "[1.0, nan]"
    assert found.column(1).cells().tolist() == ["x", "y"]
    with pytest.raises(DataFileError, match="no date tells"):
        found.column(2)
    labels, rows = found.labels(2)
    assert labels.tolist() == ["03/04/2020", "05/04/2020"]
    assert rows.all()
    with pytest.raises(DataFileError, match="svmlight text"):
        read_table(io.BytesIO(b"1 1:2\n"))


def test_svmlight_and_arrays_need_no_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "a.svm").write_text("1 1:2\n0 2:3\n")
    np.save(tmp_path / "X.npy", np.eye(3))
    assert read_labelled(tmp_path / "a.svm").X.shape == (2, 2)
    assert mm.data.open(tmp_path / "a.svm").shape == (2, 2)
    assert mm.data.open(tmp_path / "X.npy").shape == (3, 3)
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,1\n")
    for read in (read_labelled, mm.data.open, read_table):
        with pytest.raises(ImportError, match=r"pip install pyarrow"):
            read(tmp_path / "a.csv")
