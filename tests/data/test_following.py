"""Files that grow, pipes and standard input: whole lines only, in blocks of a fixed size."""

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.data import FollowedRows, Layout, follow
from maxmargin.validation.data import stacked

SVMLIGHT = Layout("svmlight", n_features=3)


def rows_of(stream: FollowedRows) -> tuple[list[list[float]], list[object], list[int]]:
    blocks = list(stream)
    X = stacked([block.X for block in blocks])
    dense = X.toarray() if sp.issparse(X) else X
    y, numbers = (np.concatenate([block[k] for block in blocks]) for k in (1, 2))
    return dense.tolist(), y.tolist(), numbers.tolist()


def table_of(n: int) -> str:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    rows = zip(X, y, strict=True)
    lines = [",".join(f"{v:.5f}" for v in x) + f",{'ab'[k]}" for x, k in rows]
    return "\n".join(["first,second,third,label", *lines, ""])


def svmlight_of(n: int) -> str:
    X = np.random.default_rng(1).normal(size=(n, 3))
    return "".join(f"{1 if a > 0 else -1} 1:{a:.4f} 3:{c:.4f}\n" for a, _, c in X)


# What is read is what read_labelled reads.


@pytest.mark.parametrize("name", ["rows.csv", "rows.svm", "rows.txt"])
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_a_file_is_read_as_read_labelled_does(tmp_path: Path, name: str, rows: int) -> None:
    path = tmp_path / name
    path.write_text(svmlight_of(200) if name == "rows.svm" else table_of(200))
    whole = mm.data.read_labelled(path)
    found = follow(path, rows=rows, head=50, idle=0)
    assert found.layout == whole.layout
    X, y, numbers = rows_of(found)
    expected = whole.X.toarray() if sp.issparse(whole.X) else whole.X
    assert np.array_equal(X, expected)
    assert y == whole.y.tolist()
    assert numbers == whole.numbers.tolist()


def test_blocks_have_as_many_rows_as_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(table_of(50))
    assert [len(block.y) for block in follow(path, rows=16, idle=0)] == [16, 16, 16, 2]


def test_long_texts_go_through_the_compiled_loop(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    text = table_of(60_000)
    path.write_text(text)
    assert len(text) > 1 << 20  # more than one chunk
    whole = mm.data.read_labelled(path)
    stream = follow(path, whole.layout, rows=5000, idle=0)
    blocks = list(stream)
    assert np.array_equal(np.concatenate([block.X for block in blocks]), whole.X)
    assert np.array_equal(np.concatenate([block.numbers for block in blocks]), whole.numbers)


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_cells_with_line_feeds_wait_for_their_end(size: int) -> None:
    text = b'text,number,label\n"two\nlines",1,a\nplain,2,b\n"a ""quote"",\n",3,a\n' * 1
    found = rows_of(follow(_Pieces(text, size), rows=2, head=3))
    whole = rows_of(follow(io.BytesIO(text), rows=10))
    assert found[1:] == whole[1:] == (["a", "b", "a"], [2, 4, 5])


class _Pieces(io.RawIOBase):
    """A stream that gives a few bytes at a time, as a slow writer does."""

    def __init__(self, text: bytes, size: int) -> None:
        self._text, self._size = text, size

    def readable(self) -> bool:
        return True

    def read(self, _size: int = -1) -> bytes:
        taken, self._text = self._text[: self._size], self._text[self._size :]
        return taken


@pytest.mark.parametrize("size", [1, 5, 64])
@pytest.mark.parametrize("kind", ["csv", "svmlight"])
def test_the_pieces_that_come_do_not_matter(size: int, kind: str) -> None:
    text = (table_of(40) if kind == "csv" else svmlight_of(40)).encode()
    blocks = [list(follow(source, rows=9, head=20, format=kind))
              for source in (_Pieces(text, size), io.BytesIO(text))]  # fmt: skip
    for one, other in zip(*blocks, strict=True):
        assert (one.X != other.X).sum() == 0
        assert np.array_equal(one.y, other.y)
        assert np.array_equal(one.numbers, other.numbers)


# Growth.


def test_half_a_line_is_not_read(tmp_path: Path) -> None:
    path, stop = tmp_path / "log.svm", threading.Event()
    path.write_text("1 1:0.5\n-1 2:0.2")
    stream = follow(path, SVMLIGHT, rows=1, stop=stop)
    assert next(stream).X.toarray().tolist() == [[0.5, 0, 0]]
    with path.open("a") as file:
        file.write("5 3:1\n1 1:7")
    assert next(stream).X.toarray().tolist() == [[0, 0.25, 1]]
    stop.set()
    assert list(stream) == []  # the last line may not be complete


def test_a_file_as_it_is_ends_with_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "log.svm"
    path.write_text("1 1:0.5\n\n# nothing\n-1 2:0.25")
    assert rows_of(follow(path, SVMLIGHT, idle=0))[1:] == ([1, -1], [1, 4])


def test_another_process_writes(tmp_path: Path) -> None:
    path, text = tmp_path / "log.csv", table_of(120)
    path.write_text(text[:60])
    writer = (
        "import sys\nname, text = sys.argv[1], sys.stdin.read()\n"
        "with open(name, 'a') as file:\n"
        "    for k in range(0, len(text), 13):\n"
        "        file.write(text[k:k + 13]); file.flush()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-S", "-c", writer, str(path)], stdin=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        process.stdin.write(text[60:])
        process.stdin.close()
        stream = follow(path, rows=10, head=30)
        blocks = [next(stream) for _ in range(12)]
    whole = mm.data.read_labelled(path)
    assert np.array_equal(np.concatenate([block.X for block in blocks]), whole.X)
    assert np.array_equal(np.concatenate([block.y for block in blocks]), whole.y)


def test_idle_ends_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "log.svm"
    path.write_text("1 1:0.5\n-1 2:0.25")
    assert rows_of(follow(path, SVMLIGHT, idle=1e-9))[1] == [1]


def test_an_event_wakes_the_stream(tmp_path: Path) -> None:
    path, stop = tmp_path / "log.svm", threading.Event()
    path.write_text("1 1:0.5\n")
    found: list[object] = []
    reader = threading.Thread(
        target=lambda: found.extend(follow(path, SVMLIGHT, rows=5, stop=stop)), daemon=True
    )
    reader.start()
    stop.set()
    reader.join(30)
    assert not reader.is_alive()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_named_pipe_ends_with_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("1 1:1\n-1 2:2"))
    writer.start()
    assert rows_of(follow(path, SVMLIGHT))[1] == [1, -1]
    writer.join()


# What goes wrong.


def test_a_file_that_becomes_shorter_or_another_one(tmp_path: Path) -> None:
    path = tmp_path / "log.svm"

    def begin() -> FollowedRows:
        path.write_text("1 1:0.5\n-1 2:0.25\n")
        stream = follow(path, SVMLIGHT, rows=2)
        next(stream)
        return stream

    stream = begin()
    path.write_text("1 1:2\n")
    with pytest.raises(mm.DataFileError, match=r"log\.svm: the file has 6 bytes .*written anew"):
        next(stream)
    stream = begin()
    path.rename(tmp_path / "log.1")
    with pytest.raises(mm.DataFileError, match="removed or renamed"):
        next(stream)
    stream = begin()
    (tmp_path / "new").write_text("1 1:0.5\n-1 2:0.25\n1 1:1\n")
    (tmp_path / "new").replace(path)
    with pytest.raises(mm.DataFileError, match="another file has taken the place"):
        next(stream)


def test_wrong_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.svm"
    path.write_text("1 1:0.5\n# x\n-1 2:0.25\n1 3:abc\n")
    stream = follow(path, SVMLIGHT, rows=1, idle=0)
    with pytest.raises(mm.DataFileError, match=r"log\.svm:4:3: the value of '3:abc'"):
        list(stream)
    path = tmp_path / "log.csv"
    path.write_text(table_of(30) + "1,2,x,a\n")
    with pytest.raises(mm.DataFileError, match=r"log\.csv:32: column 3 \(third\): 'x'"):
        list(follow(path, head=20, idle=0))
    path.write_text(table_of(30) + "1,2,a\n")
    with pytest.raises(mm.DataFileError, match=r"log\.csv:32: 3 cells where the first row has 4"):
        list(follow(path, head=20, idle=0))
    with pytest.raises(mm.DataFileError, match=r"log\.svm:2:4: index 9 is beyond n_features=2"):
        list(follow(_named("log.svm", b"1 2:1\n-1 9:1\n"), head=1))


@pytest.mark.parametrize("kind", ["csv", "svmlight"])
@pytest.mark.parametrize("place", [3, 40, 99])
def test_rows_before_a_wrong_line_are_given(kind: str, place: int) -> None:
    text = table_of(100) if kind == "csv" else svmlight_of(100)
    lines = text.splitlines(keepends=True)
    layout = follow(io.BytesIO(text.encode()), format=kind).layout
    lines[place] = "1 1:x\n"
    header = kind == "csv"
    stream = follow(io.BytesIO("".join(lines).encode()), layout, rows=1, format=kind)
    found = [next(stream) for _ in range(place - header)]
    assert [block.numbers[0] for block in found] == list(range(1 + header, place + 1))
    with pytest.raises(mm.DataFileError, match=f"the stream:{place + 1}:"):
        next(stream)


def _named(name: str, text: bytes) -> io.BytesIO:
    stream = io.BytesIO(text)
    stream.name = name
    return stream


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.csv.gz", b"a", "packed files are not read as streams"),
        ("rows.json", b"{}", r"\.json files are not read as streams"),
        ("rows.csv", b"", "the file is empty"),
        ("rows.csv", b"\x1f\x8b\x00", "packed files are not read as streams"),
        ("rows.csv", b"a\0b\n", "not text"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(mm.DataFileError, match=message):
        follow(path, idle=0)


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        follow(tmp_path / "none.csv")
    for wrong in ({"rows": 0}, {"head": True}, {"idle": -1}, {"format": "xml"}, {"task": "x"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            follow(io.BytesIO(b"1 1:1\n"), **wrong)
    with pytest.raises(TypeError, match="layout must be a Layout"):
        follow(io.BytesIO(b"1 1:1\n"), 3)  # type: ignore[arg-type]
