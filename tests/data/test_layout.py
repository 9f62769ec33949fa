"""Layouts: a later file is read as the training file was, or refused."""

import bz2
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

from maxmargin.data import Labelled, Layout, RowBlock, read_labelled, read_rows, source, table
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
    "minus": column("a", lambda i: f"\u2212{i}"),
    "iso dates": column("a", lambda i: f"2020-{day(i)[1]:02}-{day(i)[0]:02}"),
    "day first": column("a", lambda i: "{}/{}/2021".format(*day(i))),
    "month first": column("a", lambda i: "{1}/{0}/2021 18:30".format(*day(i))),
    "dots in dates": column("a", lambda i: f"{i % 9 + 1}.{i % 12 + 1}.2021"),
    "same day and month": column("a", lambda i: f"{i % 12 + 1}/{i % 12 + 1}/2021"),
    "months": column("a", lambda i: f"{day(i)[0]} {('May', 'June')[i % 2]} 2020"),
    "times": column("a", lambda i: f"{i % 24}:{i:02}"),
    "words": column("a", lambda i: ("red", "blue", " green ")[i % 3]),
    "codes": column("a", lambda i: ("7", "007", "x", "")[i % 4]),
    "missing numbers": column("a", lambda i: ("", "NA", " ? ", "-nan", str(i / 3))[min(i % 9, 4)]),
    "missing percents": column("a", lambda i: ("n/a", f"{i}%")[min(i % 9, 1)]),
    "missing words": column("a", lambda i: ("None", "missing", "b", "c")[i % 4]),
    "quoted lines": column("a", lambda i: ("one\nline", "another, one", 'a ""b""')[i % 3]),
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
    "no header, words": "".join(f"{i / 9},{'pq'[i % 2]},{i % 4},{i % 3}\n" for i in range(N)),
    "semicolons": "a;b;label\n" + "".join(f"{i},{i % 10};{i / 9};{i % 2}\n" for i in range(N)),
    "bars": "a|b|label\n" + "".join(f"{i / 9}|{i % 7}|{i % 2}\n" for i in range(N)),
    "blanks": "".join(f"  {i / 9}   {i % 7}{sep(i)}{i % 2} \n" for i in range(N)),
    "trailing": "a,b,label,\n" + "".join(f"{i / 9},{i % 7},{i % 2},\n" for i in range(N)),
    "sep line": "sep=;\na;b;label\n" + "".join(f"{i / 9};{i % 7};{i % 2}\n" for i in range(N)),
    "comments": "# from\n# there\na,b,label\n" + "".join(f"{i / 9},1,{i % 2}\n" for i in range(N)),
    "as R": "a,label\n" + "".join(f"r{i},{i / 9},{i % 2}\n" for i in range(N)),
    "one name twice": "a,a,label\n" + "".join(f"{i / 9},{i % 7},{i % 2}\n" for i in range(N)),
    "names of numbers": ",0,1,2\n" + "".join(f"{i},{i / 9},{i % 7},{i % 2}\n" for i in range(N)),
    "blank lines": "a,label\n\n" + "".join(f"{i / 9},{i % 2}\n\n" for i in range(N)),
    "old line ends": "a,label\r" + "".join(f"{i / 9},{i % 2}\r" for i in range(N)),
    "Windows line ends": "a,label\r\n" + "".join(f"{i / 9},{i % 2}\r\n" for i in range(N)),
    "few rows": "a,b,label\n1,x,0\n2,y,1\n",
    "constant": "a,b,label\n" + "".join(f"{i / 9},1,{i % 2}\n" for i in range(N)),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["Python", "compiled"])
@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("kind", TABLES)
def test_training_tables_are_read_alike(
    tmp_path: Path, kind: str, rows: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "LEAST_COMPILED", 0 if compiled else 10**9)
    monkeypatch.setattr(source, "CHUNK", 100)  # bytes, so that tables come in many chunks
    data, _ = train(tmp_path, TABLES[kind])
    assert_read_alike(tmp_path / "train.csv", data, rows)
