"""Svmlight text: every number is the nearest one, every fault is named, every row is read once."""

import bz2
import gzip
import io
import lzma
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

import maxmargin as mm
from maxmargin.data import iterate_svmlight, read_svmlight, write_svmlight
from maxmargin.data.svmlight import Svmlight
from maxmargin.errors import DataFileError
from tests.support.svmlight_reference import Row, WrongLineError, read_slowly

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}
PIECES = 1 << 18  # bytes that are parsed at a time


def read(text: bytes, **how: Any) -> Svmlight:
    return read_svmlight(io.BytesIO(text), **how)


def same(one: Svmlight, other: Svmlight) -> None:
    """Assert that rows are the same to the bit."""
    assert one.X.shape == other.X.shape
    for name in ("indptr", "indices"):
        assert_array_equal(getattr(one.X, name), getattr(other.X, name))
    assert one.X.data.tobytes() == other.X.data.tobytes()
    assert one.y.dtype == other.y.dtype
    assert_array_equal(one.y, other.y)
    assert_array_equal(one.numbers, other.numbers)


def generated(n_rows: int, seed: int = 0) -> bytes:
    """Return rows of numbers of all lengths, with comments and blank lines in between."""
    rng = np.random.default_rng(seed)
    lines = []
    for row in range(n_rows):
        columns = np.flatnonzero(rng.random(40) < 0.2) + 1
        digits = rng.integers(0, 20, len(columns))
        pairs = [f"{j}:{rng.normal():.{d}g}" for j, d in zip(columns, digits, strict=True)]
        lines.append(" ".join([str(rng.integers(-3, 3)), *pairs]))
        if row % 7 == 0:
            lines.append(["", "# 1:2 3", "\t "][row % 3])
    return "\n".join(lines).encode()


# ------------------------------------------------------------------- numbers


def hard_numbers(seed: int, count: int) -> Iterator[list[str]]:
    """Yield lists of numbers that are hard to round."""
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    any_double = rng.integers(0, 0x7FF0 << 48, count, dtype=np.int64).view(np.float64).tolist()
    tiny = rng.integers(0, 1 << 53, count, dtype=np.int64).view(np.float64).tolist()
    for doubles in (any_double, tiny):
        yield [repr(x) for x in doubles]
        for digits in (15, 16, 17, 18, 24, 39):
            yield [f"-{x:.{digits}e}" for x in doubles]
    mantissas = [choose.randrange(10 ** choose.randrange(1, 22)) for _ in range(count)]
    for width in (25, 400):
        powers = rng.integers(-width, min(width, 280), count).tolist()
        yield [f"{m}e{p}" for m, p in zip(mantissas, powers, strict=True)]
        yield [f"{m}.{m}E{p}" for m, p in zip(mantissas, powers, strict=True)]
    few = count // 10
    usual = (rng.random(few) * 10.0 ** rng.integers(0, 17, few)).tolist()
    yield [text for x in any_double[:few] + tiny[:few] + usual for text in halfway(x)]


def halfway(x: float) -> list[str]:
    """Return what is half-way between a double and the next one, and a little more and less."""
    with localcontext(prec=1200):
        middle = (Decimal(x) + Decimal(float(np.nextafter(x, np.inf)))) / 2
        if not middle.is_finite() or middle > Decimal("1.7e308"):
            return []
        texts = [format(middle, f".{digits}e") for digits in (17, 18, 19, 20, 30)]
        exact = format(middle, "e")
        mantissa, _, power = exact.partition("e")
        power = power or "0"
        if "." not in mantissa:
            mantissa += "."
        return [
            *texts, exact, f"{mantissa}1e{power}", f"{mantissa}{'0' * 30}1e{power}",
            f"{mantissa[:-1]}e{power}",
        ]  # fmt: skip


def check_numbers(texts: list[str]) -> None:
    lines = "".join(f"{text} 1:{text}\n" for text in texts)
    rows = read(lines.encode(), n_features=1)
    expected = np.array([float(text) for text in texts])
    wrong = np.flatnonzero(rows.X.data.view(np.int64) != expected.view(np.int64))
    assert not wrong.size, [(texts[k], rows.X.data[k], expected[k]) for k in wrong[:5]]
    assert_array_equal(rows.y, expected)


def test_numbers_are_rounded_correctly() -> None:
    for texts in hard_numbers(0, 600):
        check_numbers(texts)


@pytest.mark.parametrize(
    "text",
    [
        "0", "-0", "+0", "0.", ".5", "5.", "1e0", "1E+0", "1e-400", "-1e-99999999999999999999",
        "0e999999", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
        "2.2250738585072011e-308", "2.2250738585072014e-308", "1.7976931348623157e308",
        "1.7976931348623158e308", "9007199254740993", "9007199254740993." + "0" * 50 + "1",
        "0." + "0" * 5000 + "1e5000", "1" + "0" * 400 + "e-400", "00000000000000000000000001.5",
        "123456789012345678901234567890", "8.5e22", "1e23", "9007199254740992e22",
        "3.14159265358979323846264338327950288", "1.00000000000000011102230246251565404",
        "179769313486231580793728971405301e276",
    ],
)  # fmt: skip
def test_remarkable_numbers(text: str) -> None:
    check_numbers([text])


@pytest.mark.parametrize("text", ["1e309", "1.7976931348623159e308", "9" * 400, "-1e99999999999"])
def test_what_is_too_large_is_refused(text: str) -> None:
    for line in (f"1 1:1\n{text} 1:1", f"1 1:1\n2 1:{text}"):
        with pytest.raises(DataFileError, match=r":2:\d: .*not a finite number"):
            read(line.encode())


def test_labels_are_integers_where_all_are() -> None:
    assert read(b"9007199254740993\n-9223372036854775807\n+7").y.tolist() == [
        9007199254740993, -9223372036854775807, 7,
    ]  # fmt: skip
    assert read(b"1.0\n2e1").y.dtype == np.int64
    assert read(b"1\n2.5").y.tolist() == [1.0, 2.5]
    assert read(b"1\n1e300").y.dtype == np.float64
    text = b"9007199254740993 1:1\n" * (PIECES // 8) + b"0.5\n"  # known only from a later piece
    assert set(read(text).y.tolist()) == {9007199254740992.0, 0.5}


# ------------------------------------------------------------------- the grammar, by an other way

TOKENS = [
    "1", "-1", "+1", "0", "2.5", "1e3", "1:1", "2:0.5", "3:1e-3", "4:-0", "7:.5", "12:3.", "0:1",
    "qid:3", "qid:", "qid:9223372036854775808", "qid:-1", "Qid:1", "#", "# 1:2", "nan", "1:nan",
    "5:inf", "9:", ":1", "1:1:1", "1,2", "3:0x1", "3:1_0", "3:1e400", "3:1e", "3:+", "3:--1",
    "9223372036854775807:1", "9223372036854775808:1", "99999999999999999999:1", "01:1", "1.0:1",
    "\x00", "é", "٣", "3:٣", "13:0.12345678901234567890123", "14:9007199254740993",
]  # fmt: skip
GAPS = [" ", " ", " ", "\t", "  ", "\n", "\n", "\r\n", "\r", "", "\x0b", "\x0c", "\u00a0", "\n\n"]
TEXTS = st.builds(
    lambda parts: "".join(token + gap for token, gap in parts).encode(),
    st.lists(st.tuples(st.sampled_from(TOKENS), st.sampled_from(GAPS)), max_size=30),
)
HOW = st.fixed_dictionaries(
    {
        "n_features": st.sampled_from([None, None, 4, 2**63 - 1]),
        "zero_based": st.booleans(),
        "query_id": st.sampled_from([False, False, True]),
    }
)


def compare(text: bytes, how: dict[str, Any]) -> None:
    """Assert that both readers agree on the rows of a text, or on the first line that is wrong."""
    try:
        expected = read_slowly(text, **how)
    except WrongLineError as wrong:
        with pytest.raises(DataFileError, match=rf"\Athe stream:{wrong.args[0]}:\d+: "):
            read(text, **how)
        return
    if not expected:
        with pytest.raises(DataFileError, match=r"\Athe stream: no rows"):
            read(text, **how)
        return
    agree(read(text, **how), expected, how)


def agree(found: Svmlight, expected: list[Row], how: dict[str, Any]) -> None:
    columns = [column for row in expected for column in row.columns]
    width = how["n_features"] or max(columns, default=-1) + 1
    values = np.array([value for row in expected for value in row.values], dtype=float)
    assert found.X.shape == (len(expected), width)
    assert found.X.indices.tolist() == columns
    assert found.X.data.tobytes() == values.tobytes()
    assert np.diff(found.X.indptr).tolist() == [len(row.columns) for row in expected]
    assert found.y.tolist() == [float(row.label) for row in expected]
    assert found.numbers.tolist() == [row.number for row in expected]
    queries = [row.query for row in expected]
    assert (found.query_id is None) if not how["query_id"] else found.query_id.tolist() == queries
    found.X.check_format(full_check=True)


@given(text=TEXTS, how=HOW)
@settings(max_examples=600)
def test_agrees_with_a_slow_reader(text: bytes, how: dict[str, Any]) -> None:
    compare(text, how)


# ------------------------------------------------------------------- faults

WRONG = {
    "word": ("1 1:1\nspam 1:1", ":2:1: the label 'spam' is not a finite number", "use CSV"),
    "labels": ("1,2 1:1", ":1:1: '1,2' are several labels", "a file for each"),
    "no label": (" 1:1 2:1", ":1:2: '1:1' where the label should be", "label index:value"),
    "index 0": ("1 1:1\n1\t0:1", ":2:3: index 0", "zero_based=True (--zero-based)"),
    "twice": ("1 3:1  3:2", ":1:8: index 3 occurs twice", "ascending"),
    "descends": ("1 3:1 2:2", ":1:7: index 2 comes after 3", "ascending"),
    "no number": ("1 3:1 4:x", ":1:7: the value of '4:x' is not a finite number", "correct it"),
    "nan": ("1 3:nan", ":1:3: the value of '3:nan'", "correct it"),
    "query": ("1 qid:3 1:1", ":1:3: 'qid:3' marks a ranking query", "query_id=True"),
    "zero byte": ("1 1:1 # \x00", ":1:9: not text", "name a text file"),
    "zero bytes": ("\x00" * 100_000, ":1:1: not text", "name a text file"),
    "return": ("1 1:1\r2 1:1", ":1:3: the value of '1:1\\r2'", "correct it"),
    "huge": (f"1 {10**19}:1", ":1:3: index 10000000000000000000 is too large", "from 1"),
    "long": (f"1 1:{'x' * 10**6}", f":1:3: the value of '1:{'x' * 58}…'", "correct it"),
    "empty": ("", ": no rows", "label index:value"),
    "comments": ("# 1 1:1\n\n", ": no rows", "label index:value"),
    "UTF-16": ("\ufeff1 1:1", ": marked as UTF-16", "save it as UTF-8"),
}


@pytest.mark.parametrize(("text", "what", "way_out"), WRONG.values(), ids=WRONG)
def test_faults_are_named(tmp_path: Path, text: str, what: str, way_out: str) -> None:
    path = tmp_path / "bad file é.svm"
    path.write_bytes(text.encode("utf-16" if "\ufeff" in text else "utf-8"))
    with pytest.raises(DataFileError) as caught:
        read_svmlight(path)
    assert f"{path}{what}" in str(caught.value)
    assert way_out in str(caught.value)


def test_faults_in_later_pieces_and_ranges_have_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    good = b"1 1:0.25 # fine\n" * 100_000
    path.write_bytes(good + b"1 1:1 2:oops\n" + good + b"no")
    for threads in (1, 3):
        with pytest.raises(DataFileError, match=r"a\.svm:100001:7: .*'2:oops'"):
            read_svmlight(path, threads=threads)
    with pytest.raises(DataFileError, match=r"a\.svm:100001:7: .*'2:oops'"):
        list(iterate_svmlight(path, block_bytes=1000))
    source = mm.data.open(path, n_features=2, rows=50_000)
    with pytest.raises(DataFileError, match=r"a\.svm:200002:1: .*'no'"):
        source.load(len(source) - 1)


def test_columns_beyond_those_stated_are_refused() -> None:
    assert read(b"1 2:1", n_features=2).X.shape == (1, 2)
    assert read(b"1 1:1", n_features=2, zero_based=True).X.shape == (1, 2)
    for text, zero_based in ((b"1 1:1\n1 3:1", False), (b"1 1:1\n1 2:1", True)):
        with pytest.raises(DataFileError, match=r":2:3: index . is beyond n_features=2"):
            read(text, n_features=2, zero_based=zero_based)


def test_queries_are_read_if_asked_for() -> None:
    rows = read(b"1 qid:7 1:1\n2 \t qid:9223372036854775807 # x\n", query_id=True)
    assert rows.query_id.tolist() == [7, 2**63 - 1]
    for text in (b"1 1:1", b"1", b"1 qid:x", b"1 1:1 qid:3", b"1 qid:9223372036854775808"):
        with pytest.raises(DataFileError, match=r":2:\d: .*qid:number.*leave out query_id"):
            read(b"1 qid:1 1:1\n" + text, query_id=True)


def test_float32_is_rounded_from_the_double_and_not_to_infinity() -> None:
    rows = read(b"1 1:0.1 2:1e-50 3:3.4028235e38", dtype=np.float32)
    assert rows.X.dtype == np.float32
    assert_array_equal(rows.X.data, np.array([0.1, 1e-50, 3.4028235e38]).astype(np.float32))
    with pytest.raises(DataFileError, match=r":2:7: .*'2:3.5e38' is too large for float32"):
        read(b"1 1:1\n1 1:2 2:3.5e38\n1 1:x", dtype=np.float32)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"n_features": 0}, "n_features=0"),
        ({"dtype": np.int64}, "dtype="),
        ({"threads": 0}, "threads=0"),
    ],
)
def test_parameters_are_checked(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(b"1 1:1", **how)


def test_text_streams_are_refused() -> None:
    with pytest.raises(TypeError, match="binary"):
        read_svmlight(io.StringIO("1 1:1"))


# ------------------------------------------------------------------- blocks, ranges, threads, files


def test_threads_make_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(generated(12_000))
    assert path.stat().st_size > 3 * PIECES
    one = read_svmlight(path, threads=1)
    same(read_svmlight(path, threads=3), one)
    same(read_svmlight(path), one)
    how = {"n_features": None, "zero_based": False, "query_id": False}
    agree(one, read_slowly(path.read_bytes()), how)


@pytest.mark.parametrize("ending", ["", *PACKERS])
def test_files_packed_or_not_and_streams_read_the_same(tmp_path: Path, ending: str) -> None:
    text = generated(2000)
    path = tmp_path / f"a b ü.svm{ending}"
    path.write_bytes(PACKERS[ending](text) if ending else text)
    same(read_svmlight(path), read(text))
    same(read_svmlight(str(path)), read(text))


@pytest.mark.parametrize("ending", PACKERS)
def test_half_a_packed_file_is_refused(tmp_path: Path, ending: str) -> None:
    packed = PACKERS[ending](generated(2000))
    (tmp_path / f"a.svm{ending}").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataFileError, match="not a whole"):
        read_svmlight(tmp_path / f"a.svm{ending}")


def test_zst_is_unpacked_by_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa: Any = pytest.importorskip("pyarrow")
    text, path = generated(2000), tmp_path / "a.svm.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as packed:
        packed.write(text)
    same(read_svmlight(path), read(text))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataFileError, match="not a whole"):
        read_svmlight(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataFileError, match=r"a\.svm\.zst: .*cannot unpack \.zst files"):
        read_svmlight(path)


class Trickle:
    """Gives a few bytes at a time, as a pipe may."""

    def __init__(self, text: bytes) -> None:
        self._stream, self._steps = io.BytesIO(text), 0

    def read(self, size: int) -> bytes:
        self._steps += 1
        return self._stream.read(min(size, 1 + self._steps % 7))


def test_streams_may_come_in_small_pieces() -> None:
    text = b"\xef\xbb\xbf" + generated(60)
    expected = read(text)
    same(read_svmlight(Trickle(text)), expected)
    blocks = list(iterate_svmlight(Trickle(text), block_bytes=100, n_features=40))
    assert len(blocks) > 20
    same(joined(blocks), read(text, n_features=40))


def joined(blocks: list[Svmlight]) -> Svmlight:
    return Svmlight(
        sp.vstack([block.X for block in blocks], format="csr"),
        np.concatenate([block.y for block in blocks]),
        None,
        np.concatenate([block.numbers for block in blocks]),
    )


@pytest.mark.parametrize("block_bytes", [1, 17, 1000, 10**6])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_blocks_hold_every_row_once(block_bytes: int, end: bytes) -> None:
    text = generated(300).replace(b"\n", end or b"\n") + end
    blocks = list(iterate_svmlight(io.BytesIO(text), block_bytes=block_bytes))
    widths = [block.X.shape[1] for block in blocks]
    assert widths == sorted(widths)
    whole = read(text)
    assert widths[-1] == whole.X.shape[1]
    blocks = list(iterate_svmlight(io.BytesIO(text), block_bytes=block_bytes, n_features=40))
    same(joined(blocks), read(text, n_features=40))


def test_lines_longer_than_a_block_are_read(tmp_path: Path) -> None:
    line = b"1 " + b" ".join(b"%d:%d.5" % (j, j) for j in range(1, 60_000))
    assert len(line) > 2 * PIECES
    rows = read(line + b"\n2 1:1\n" + line)
    assert_array_equal(np.diff(rows.X.indptr), [59_999, 1, 59_999])
    assert_array_equal(rows.X.data[:59_999], np.arange(1, 60_000) + 0.5)


def test_wide_columns_have_wide_indices() -> None:
    assert read(b"1 1:1").X.indices.dtype == np.int32
    rows = read(b"1 1:1\n" * (PIECES // 3) + b"1 1:1 9223372036854775807:2")
    assert rows.X.shape[1] == 2**63 - 1
    assert rows.X.indices[-1] == 2**63 - 2
    assert read(b"1 1:1", n_features=2**40).X.indices.dtype == np.int64


MEMORY = """
import resource, sys
from maxmargin.data import iterate_svmlight, read_svmlight
read_svmlight(sys.argv[1])  # loads what has to be loaded
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
n_rows = sum(block.X.shape[0] for block in iterate_svmlight(sys.argv[2], block_bytes=10**6))
in_blocks = peak()
X = read_svmlight(sys.argv[2]).X
assert n_rows == X.shape[0]
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
print(in_blocks - before, peak() - in_blocks, size)
"""


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is counted in other units")
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_memory_is_little_more_than_that_of_the_rows(tmp_path: Path, ending: str) -> None:
    text = b"".join(b"%d %d:0.25 90:1.5 95:-3 99:1e-5\n" % (k % 2, k % 80 + 1) for k in range(1000))
    plain, path = tmp_path / "a.svm", tmp_path / f"b.svm{ending}"
    plain.write_bytes(text)
    packed = [gzip.compress(text * 100, 1)] * 10 if ending else [text] * 1000
    with path.open("wb") as file:
        file.writelines(packed)
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY, str(plain), str(path)], capture_output=True, check=True
    )
    in_blocks, used, rows = map(int, ran.stdout.split())
    assert rows == 52 * 10**6 + 4
    assert in_blocks <= 16e6
    labels = 16 * 10**6
    assert used <= 1.25 * (rows + labels) + 24e6  # for buffers


# ------------------------------------------------------------------- writing

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def written(X: Any, y: Any) -> bytes:
    """Return rows as they are written."""
    with tempfile.TemporaryDirectory() as folder:
        write_svmlight(Path(folder, "a.svm"), X, y)
        return Path(folder, "a.svm").read_bytes()


def again(X: Any, y: Any, **how: Any) -> Svmlight:
    """Return rows that were written and read."""
    return read(written(X, y), n_features=X.shape[1], **how)


@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=FINITE),
    data=st.data(),
)
def test_what_is_written_is_read(X: Any, data: st.DataObject) -> None:
    y = data.draw(hnp.arrays(np.float64, len(X), elements=FINITE))
    rows = again(X, y)
    assert_array_equal(rows.X.toarray(), X)
    assert rows.X.data.tobytes() == X[(X != 0) | np.signbit(X)].tobytes()  # -0 is kept
    assert_array_equal(rows.y, y)


def test_numbers_are_written_in_the_fewest_digits() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(1, 0x7FF0 << 48, 500, dtype=np.int64).view(np.float64)
    values = np.concatenate([values, 2.0 ** np.arange(-1074, 1024), 10.0 ** np.arange(-307, 309)])
    lines = written(values[:, None], np.zeros(len(values), int)).decode().splitlines()
    assert [line[4:] for line in lines] == [repr(x).removesuffix(".0") for x in values.tolist()]


@pytest.mark.parametrize("zero_based", [False, True])
def test_files_are_read_as_they_were(tmp_path: Path, zero_based: bool) -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array((1500, 100), density=0.1, rng=rng, format="csr", data_sampler=rng.normal)
    X.data[::50] = 0.0  # is kept
    X.data[7] = 5e-324
    y, query_id = rng.integers(-3, 3, 1500), rng.integers(0, 9, 1500)
    path = tmp_path / "a.svm"
    write_svmlight(path, X, y, zero_based=zero_based, query_id=query_id, comment="made\nhere é")
    rows = read_svmlight(path, zero_based=zero_based, query_id=True, n_features=100)
    same(rows, Svmlight(X, y, None, np.arange(3, 1503)))
    assert_array_equal(rows.query_id, query_id)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2], [0, 3]],
        np.array([[1, 2], [0, 3]], np.uint8),
        np.array([[True, True], [False, True]]),
        np.array([[1, 2], [0, 3]], np.float16),
        sp.coo_array(([1.0, 1.0, 1.0, 3.0], ([0, 0, 0, 1], [1, 0, 1, 1]))),
        np.asfortranarray(np.array([[1.0, 2], [0, 3]])),
    ],
    ids=["list", "uint8", "bool", "float16", "sums", "columns"],
)
def test_rows_may_have_any_type_of_number(X: Any) -> None:
    expected = X.toarray() if sp.issparse(X) else np.asarray(X)
    text = written(X, [True, False])
    assert_array_equal(read(text).X.toarray(), expected)
    assert read(text).y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [np.nan]], [1, 2], r"X has nan in row 1, column 0"),
        (sp.csr_array([[0, 1.0], [0, np.inf]]), [1, 2], r"X has inf in row 1, column 1"),
        ([[1.0], [2.0]], [1, np.nan], "y has nan in row 1"),
        ([[1.0]], ["spam"], "number the classes"),
        ([["a"]], [1], "encode it as numbers"),
        ([[1.0]], [1, 2], "2 labels for the 1 rows"),
        ([1.0], [1], "rows need two"),
        ([[1.0, 2.0]], [[1, 2]], "a label per row"),
        ([[1j]], [1], "complex"),
    ],
)
def test_what_cannot_be_read_again_is_not_written(
    tmp_path: Path, X: Any, y: Any, message: str
) -> None:
    path = tmp_path / "a.svm"
    path.write_text("as it was")
    with pytest.raises(ValueError, match=message):
        write_svmlight(path, X, y)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


def test_queries_and_comments_are_checked(tmp_path: Path) -> None:
    for query_id in ([-1], [0.5], [1, 2]):
        with pytest.raises(ValueError, match="query_id must have a whole number"):
            write_svmlight(tmp_path / "a.svm", [[1.0]], [1], query_id=query_id)
    with pytest.raises(ValueError, match=r"written unpacked; leave out \.gz"):
        write_svmlight(tmp_path / "a.svm.gz", [[1.0]], [1])
    with pytest.raises(ValueError, match="comment has a character 0"):
        write_svmlight(tmp_path / "a.svm", [[1.0]], [1], comment="a\0b")
