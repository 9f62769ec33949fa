"""Rows are the same however they are opened; what is wrong with a part is said with its name."""

import gzip
import os
import pickle
import threading
from collections import UserList
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import maxmargin as mm
from maxmargin.data import RowSource, read_labelled, read_svmlight
from maxmargin.errors import DataFileError
from maxmargin.rows.request import BlockOptions, parse_memory
from maxmargin.rows.row_source import Part
from maxmargin.rows.stored_files import Cursor

pd: Any = pytest.importorskip("pandas")
pl: Any = pytest.importorskip("polars")
pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

NAMES = list("pqrs")


class Rows(NamedTuple):
    X: Any
    y: Any
    weight: Any


def make_rows(n: int = 103, labels: str = "words") -> Rows:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, len(NAMES)))
    X[rng.random(X.shape) < 0.3] = 0
    X[:, -1] += 1  # svmlight text says by its largest index how many columns there are
    codes = rng.integers(0, 3, n)
    y = {
        "words": np.array(["yes", "no", "perhaps"])[codes],
        "integers": codes,
        "flags": codes > 0,
        "floats": codes / 4,
    }[labels]
    return Rows(X, y, rng.integers(1, 4, n).astype(float))


def frame_of(rows: Rows, weight: bool = False) -> Any:
    frame = pd.DataFrame(rows.X, columns=NAMES)
    frame["kind"] = rows.y
    if weight:
        frame["times"] = rows.weight
    return frame


def together(source: RowSource) -> Rows:
    parts = list(source)
    dense = [part.X.toarray() if sp.issparse(part.X) else part.X for part in parts]

    def joined(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if found[0] is None else np.concatenate(found)

    return Rows(np.vstack(dense), joined("y"), joined("weight"))


def assert_holds(source: RowSource, rows: Rows, weight: bool = False) -> None:
    """Check what a source says about itself, and its rows, here and after a journey."""
    travelled = pickle.loads(pickle.dumps(source))
    for one in (source, travelled):
        found = together(one)
        np.testing.assert_array_equal(found.X, rows.X)
        if rows.y is None:
            assert found.y is None
        else:
            np.testing.assert_array_equal(found.y, rows.y)
            assert found.y.dtype.kind == rows.y.dtype.kind
        if weight:
            np.testing.assert_array_equal(found.weight, rows.weight)
        else:
            assert found.weight is None
    assert travelled.fingerprint() == source.fingerprint()
    assert source.n_columns == rows.X.shape[1]
    assert source.shape[0] in (None, len(rows.X))
    for part in range(len(source)):
        X = source.load(part).X
        assert X.dtype == source.dtype
        assert sp.issparse(X) == source.sparse
        assert source.sparse or X.flags.c_contiguous
        assert source.describe(part).startswith(f"part {part} (")
    backwards = [source.load(part).y for part in reversed(range(len(source)))]
    if rows.y is not None:
        np.testing.assert_array_equal(np.concatenate(backwards[::-1]), rows.y)
    with pytest.raises(IndexError, match="parts, which count from 0"):
        source.load(len(source))


# ------------------------------------------------------------------- equal rows


def open_array(rows: Rows, folder: Path) -> RowSource:
    return mm.data.open(rows.X, rows.y, rows=10)


def open_npy(rows: Rows, folder: Path) -> RowSource:
    np.save(folder / "X.npy", rows.X)
    np.save(folder / "y.npy", rows.y)
    return mm.data.open(folder / "X.npy", folder / "y.npy", rows=10)


def open_saved(form: Callable[[Any], Any], how: Callable[[Path], Any]) -> Any:
    """Return an opener of a form of X that is saved, and opened as what ``how`` makes of a path."""

    def opener(rows: Rows, folder: Path) -> RowSource:
        np.save(folder / "X.npy", form(rows.X))
        return mm.data.open(how(folder / "X.npy"), rows.y, rows=10)

    return opener


def open_npz(rows: Rows, folder: Path) -> RowSource:
    sp.save_npz(folder / "X.npz", sp.csr_matrix(rows.X))
    return mm.data.open(folder / "X.npz", rows.y, rows=10)


def open_pandas(rows: Rows, folder: Path) -> RowSource:
    return mm.data.open(frame_of(rows), label="kind", rows=10)


def open_polars(rows: Rows, folder: Path) -> RowSource:
    return mm.data.open(pl.from_pandas(frame_of(rows)), label="kind", rows=10)


def write_parquet(rows: Rows, folder: Path, groups: int = 13) -> str:
    table = pa.Table.from_pandas(frame_of(rows, weight=True), preserve_index=True)
    pq.write_table(table.slice(0, 50), folder / "part-2.parquet", row_group_size=groups)
    pq.write_table(table.slice(50, 0), folder / "part-3.parquet")
    pq.write_table(table.slice(50), folder / "part-10.parquet", row_group_size=40)
    return str(folder / "part-*.parquet")


def open_parquet(rows: Rows, folder: Path) -> RowSource:
    return mm.data.open(write_parquet(rows, folder), label="kind", columns=NAMES)


def open_table(name: str = "a.csv", label: Any = "kind", index: bool = False, **how: Any) -> Any:
    """Return an opener of a table that pandas writes."""

    def opener(rows: Rows, folder: Path) -> RowSource:
        frame_of(rows).to_csv(folder / name, index=index, **how)
        return mm.data.open(folder / name, label=label, rows=9)

    return opener


open_csv = open_table()


def open_csv_files(rows: Rows, folder: Path) -> RowSource:
    frame_of(rows)[:40].to_csv(folder / "a.csv", index=False)
    frame_of(rows)[40:][["kind", *NAMES]].to_csv(folder / "b.csv", index=False, sep=";")
    return mm.data.open(folder / "*.csv", label="kind", rows=9)


def chunks_of(rows: Rows) -> list[Any]:
    edges = [0, 20, 20, 77, len(rows.X)]
    return [(rows.X[begin:end], rows.y[begin:end]) for begin, end in pairwise(edges)]


class Again:
    """Chunks that can be iterated over again and again; it counts how often that happens."""

    def __init__(self, chunks: list[Any]) -> None:
        self.chunks, self.begun = chunks, 0

    def __iter__(self) -> Iterator[Any]:
        self.begun += 1
        return iter(self.chunks)


class Sequence(UserList[Any]):
    """Chunks by their numbers."""


class Loader(NamedTuple):
    """A callable that loads a chunk."""

    chunk: Any

    def __call__(self) -> Any:
        return self.chunk


def open_iterable(rows: Rows, folder: Path) -> RowSource:
    return mm.data.open(Again(chunks_of(rows)))


def open_iterator(rows: Rows, folder: Path) -> RowSource:
    return mm.data.open(chunk for chunk in chunks_of(rows))


def open_chunks(change: Callable[[list[Any]], Any]) -> Any:
    """Return an opener of what becomes of chunks."""
    return lambda rows, folder: mm.data.open(change(chunks_of(rows)))


def open_frames(pieces: Callable[[Any], Any]) -> Any:
    """Return an opener of pieces of a frame."""
    return lambda rows, folder: mm.data.open(pieces(frame_of(rows)), label="kind")


OPENERS: dict[str, Any] = {
    "array": open_array,
    "list": lambda rows, _: mm.data.open(rows.X.tolist(), rows.y.tolist(), rows=10),
    "csr": lambda rows, _: mm.data.open(sp.csr_array(rows.X), rows.y, rows=10),
    "npz": open_npz,
    "npy": open_npy,
    "fortran": open_saved(np.asfortranarray, str),
    "memmap": open_saved(np.array, lambda path: np.load(path, mmap_mode="r")),
    "piece of memmap": open_saved(
        lambda X: np.vstack([np.full((5, 4), np.nan), X]),
        lambda path: np.load(path, mmap_mode="r")[5:],
    ),
    "chunks": open_chunks(list),
    "sequence": open_chunks(Sequence),
    "loaders": open_chunks(lambda chunks: [Loader(chunk) for chunk in chunks if len(chunk[0])]),
    "iterable": open_iterable,
    "callable": open_chunks(lambda chunks: Again(chunks).__iter__),
    "iterator": open_iterator,
    "sparse iterator": open_chunks(lambda chunks: ((sp.csr_array(X), y) for X, y in chunks)),
    "csv without header": open_table(label=5, header=False),
}
NAMED: dict[str, Any] = {
    "pandas": open_pandas,
    "pandas with y": lambda rows, _: mm.data.open(frame_of(rows)[NAMES], rows.y, rows=10),
    "polars": open_polars,
    "arrow": lambda rows, _: mm.data.open(
        pa.Table.from_pandas(frame_of(rows)), label="kind", rows=10
    ),
    "frames": open_frames(lambda frame: [frame[:40], frame[40:]]),
    "iterator of frames": open_frames(
        lambda frame: (frame[begin : begin + 40] for begin in range(0, len(frame), 40))
    ),
    "parquet": open_parquet,
    "csv": open_csv,
    "csv files": open_csv_files,
    "csv with index": open_table(index=True),
    "csv with quotes": open_table(quoting=1),
    "csv packed": open_table("a.csv.gz"),
    "tsv with commas": open_table("a.tsv", sep="\t", decimal=","),
}


@pytest.mark.parametrize("kind", [*OPENERS, *NAMED])
def test_rows_are_those_in_memory(kind: str, tmp_path: Path) -> None:
    rows = make_rows()
    source = (OPENERS | NAMED)[kind](rows, tmp_path)
    assert_holds(source, rows)
    assert source.feature_names == (tuple(NAMES) if kind in NAMED else None)
    assert repr(source).startswith("<RowSource: ")
    assert "\n" not in repr(source)


@pytest.mark.parametrize("labels", ["integers", "flags", "floats"])
@pytest.mark.parametrize(
    "opener", [open_array, open_npy, open_pandas, open_polars, open_parquet, open_iterator]
)
def test_labels_of_any_kind(
    opener: Callable[[Rows, Path], RowSource], labels: str, tmp_path: Path
) -> None:
    rows = make_rows(labels=labels)
    assert_holds(opener(rows, tmp_path), rows)


@pytest.mark.parametrize("n_features", [None, 4])
@pytest.mark.parametrize("rows_per_part", [None, 7])
@pytest.mark.parametrize("ending", [".svm", ".svm.gz"])
def test_svmlight_files(
    ending: str, rows_per_part: int | None, n_features: int | None, tmp_path: Path
) -> None:
    rows = make_rows(labels="integers")
    path = tmp_path / "a.svm"
    mm.data.write_svmlight(path, rows.X, rows.y)
    if ending == ".svm.gz":
        packed = tmp_path / f"a{ending}"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    source = mm.data.open(path, rows=rows_per_part, n_features=n_features)
    assert_holds(source, rows)
    np.testing.assert_array_equal(together(source).X, read_svmlight(path).X.toarray())
    assert (len(source) > 1) == (rows_per_part is not None)


def test_svmlight_text_is_known_by_its_content_and_may_count_from_0(tmp_path: Path) -> None:
    rows = make_rows(labels="integers")
    for name, part in (("a.1", slice(0, 60)), ("b.1", slice(60, None))):
        mm.data.write_svmlight(tmp_path / name, rows.X[part], rows.y[part], zero_based=True)
    assert_holds(mm.data.open([tmp_path / "a.1", tmp_path / "b.1"], zero_based=True), rows)
    with pytest.raises(DataFileError, match=r"part 0 \(a\.1, bytes 0 to"):
        mm.data.open(tmp_path / "a.1")


def test_a_table_is_read_as_by_read_labelled(tmp_path: Path) -> None:
    open_csv(make_rows(), tmp_path)
    whole = read_labelled(tmp_path / "a.csv", "kind")
    found = together(mm.data.open(tmp_path / "a.csv", label="kind", rows=5))
    np.testing.assert_array_equal(found.X, whole.X)
    np.testing.assert_array_equal(found.y, whole.y)


@pytest.mark.parametrize("kind", ["array", "npy", "frame", "parquet", "csv", "chunks", "iterator"])
def test_weights(kind: str, tmp_path: Path) -> None:
    rows = make_rows()
    X, y, weight = rows
    frame = frame_of(rows, weight=True)
    named: dict[str, Any] = {"label": "kind", "weight": "times", "rows": 10}
    if kind == "array":
        source = mm.data.open(X, y, weight=weight, rows=10)
    elif kind == "npy":
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "w.npy", weight)
        source = mm.data.open(tmp_path / "X.npy", y, weight=tmp_path / "w.npy", rows=10)
    elif kind == "frame":
        source = mm.data.open(frame, **named)
    elif kind == "parquet":
        source = mm.data.open(write_parquet(rows, tmp_path), **named)
    elif kind == "csv":
        frame.to_csv(tmp_path / "a.csv", index=False)
        source = mm.data.open(tmp_path / "a.csv", **named)
    else:
        parts = [(X[:50], y[:50], weight[:50]), (X[50:], y[50:], weight[50:])]
        source = mm.data.open(parts if kind == "chunks" else iter(parts))
    assert_holds(source, rows, weight=True)


@pytest.mark.parametrize("opener", [open_array, open_npy, open_pandas, open_polars, open_parquet])
def test_float32_stays_only_if_all_columns_are(opener: Any, tmp_path: Path) -> None:
    rows = make_rows()
    narrow = rows._replace(X=rows.X.astype(np.float32))
    source = opener(narrow, tmp_path)
    assert source.dtype == np.float32
    assert_holds(source, narrow)
    frame = pd.DataFrame(narrow.X, columns=NAMES)
    frame["q"] = np.arange(len(frame))
    assert mm.data.open(frame).dtype == np.float64


def test_rows_without_labels(tmp_path: Path) -> None:
    rows = make_rows()._replace(y=None)
    frame = pd.DataFrame(rows.X, columns=NAMES)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    for what in (rows.X, frame, tmp_path / "a.parquet", tmp_path / "a.csv", [Loader(rows.X)]):
        assert_holds(mm.data.open(what), rows)


def test_integers_flags_and_missing_values_of_frames() -> None:
    frame = pd.DataFrame({"a": pd.array([1, 2, 3], "Int64"), "b": [True, False, True]})
    for one in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert mm.data.open(one).load(0).X.tolist() == [[1, 1], [2, 0], [3, 1]]
    frame["a"] = pd.array([1, None, 3], "Int64")
    for one in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        with pytest.raises(DataFileError, match=r"part 0 .*column 'a' has nan in row 1"):
            mm.data.open(one).load(0)


def test_categories_as_labels() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": pd.Categorical(["u", "v"])})
    arrow = pa.Table.from_pandas(frame)
    polars = pl.DataFrame({"a": [1.0, 2.0], "y": pl.Series(["u", "v"], dtype=pl.Categorical)})
    for one in (frame, arrow, polars):
        y = mm.data.open(one, label="y").load(0).y
        assert y.dtype.kind == "U"
        assert y.tolist() == ["u", "v"]


# ------------------------------------------------------------------- how parts are read


def test_a_file_is_not_pickled_with_its_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.zeros((100_000, 8)))
    np.save(tmp_path / "y.npy", np.zeros(100_000))
    for what in (tmp_path / "X.npy", np.load(tmp_path / "X.npy", mmap_mode="r")):
        assert len(pickle.dumps(mm.data.open(what, tmp_path / "y.npy"))) < 3000


def test_a_map_that_is_changed_in_memory_alone_is_an_array(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.zeros((5, 2)))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="c")
    mapped[:] = 7
    assert mm.data.open(mapped).load(0).X.min() == 7


def test_iterables_are_read_on_and_not_from_the_beginning() -> None:
    rows = make_rows()
    chunks = Again([(rows.X[k : k + 1], rows.y[k : k + 1]) for k in range(100)])
    source = mm.data.open(chunks)
    assert len(source) == 100
    assert source.shape == (100, 4)
    begun = chunks.begun
    for part in source:
        assert part.X.shape == (1, 4)
    assert chunks.begun == begun + 1
    np.testing.assert_array_equal(source.load(3).X[0], rows.X[3])
    assert chunks.begun == begun + 2


def test_cursors_keep_several_iterators_and_survive_pickling() -> None:
    begun: list[str] = []

    def begin(key: str) -> Iterator[str]:
        begun.append(key)
        return iter([f"{key}{k}" for k in range(5)])

    cursor = pickle.loads(pickle.dumps(Cursor()))
    for k in range(5):
        for key in "ab":
            again = pickle.loads(pickle.dumps(cursor))
            assert again.take(key, k, lambda key=key: begin(key)) == f"{key}{k}"
    assert begun == ["a", "b"]
    with pytest.raises(StopIteration):
        cursor.take("a", 5, lambda: begin("a"))


def test_parts_may_be_read_by_several_threads(tmp_path: Path) -> None:
    rows = make_rows()
    sources = [open_iterable(rows, tmp_path), open_csv(rows, tmp_path)]
    for source in sources:
        wanted = [part.X.sum() for part in source]
        found: list[Any] = []

        def read(source: RowSource = source, found: list[Any] = found) -> None:
            found.append([source.load(part).X.sum() for part in range(len(source))])

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [wanted] * 4


@pytest.mark.parametrize("opener", [open_iterator, open_csv])
def test_spooled_rows_are_removed_with_the_source(opener: Any, tmp_path: Path) -> None:
    source = opener(make_rows(), tmp_path)
    folder = Path(source.items[0].scratch.folder)
    copy = pickle.loads(pickle.dumps(source))
    del copy
    assert any(folder.iterdir())
    del source
    assert not folder.exists()


def test_a_scratch_folder_without_space_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **named: Any) -> None:
        raise OSError("4800 requested and 2484 written")

    monkeypatch.setattr("joblib.dump", fail)
    with pytest.raises(OSError, match=r"written: .* set TMPDIR to one with enough space"):
        open_csv(make_rows(), tmp_path)


def test_text_is_cut_by_the_memory(tmp_path: Path) -> None:
    rows = make_rows(20_000)
    frame_of(rows).to_csv(tmp_path / "a.csv", index=False)
    assert len(mm.data.open(tmp_path / "a.csv", label="kind")) == 1
    small = mm.data.open(tmp_path / "a.csv", label="kind", memory="4MB")
    assert len(small) > 2
    np.testing.assert_array_equal(together(small).X, rows.X)


# ------------------------------------------------------------------- views


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), MaxAbsScaler()], ids=repr)
@pytest.mark.parametrize("opener", [open_array, open_pandas, open_parquet, open_iterable])
def test_scaled_rows(opener: Any, scaler: Any, tmp_path: Path) -> None:
    rows = make_rows()
    fitted = scaler.fit(pd.DataFrame(rows.X, columns=NAMES))
    source = opener(rows, tmp_path)
    view = source.scaled(fitted)
    scaled = fitted.transform(pd.DataFrame(rows.X, columns=NAMES))
    assert_holds(view, rows._replace(X=scaled))
    assert view.feature_names == source.feature_names
    assert view.scaler is fitted
    assert view.fingerprint() != source.fingerprint()
    assert view.n_rows == source.n_rows


def test_mapped_rows_have_other_columns() -> None:
    rows = make_rows()
    fitted = mm.Nystroem(n_components=9, random_state=0).fit(rows.X)
    view = mm.data.open(rows.X, rows.y, rows=10).mapped(fitted)
    mapped = fitted.transform(rows.X)
    assert view.n_columns == mapped.shape[1]
    np.testing.assert_allclose(together(view).X, mapped, rtol=0, atol=1e-12)
    pickle.loads(pickle.dumps(view)).load(0)
    with pytest.raises(ValueError, match="not a scaler"):
        view.source.scaled(fitted)  # type: ignore[attr-defined]
    twice = mm.data.standardize(view).mapped(StandardScaler().fit(mapped))
    assert twice.shape == (103, mapped.shape[1])


def test_views_of_parts_without_rows() -> None:
    X = np.ones((3, 2))
    source = mm.data.open([Loader((X, [1, 2, 1])), Loader((X[:0], []))])
    view = source.scaled(StandardScaler().fit(X))
    assert view.load(1).X.shape == (0, 2)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_standardize_is_the_scaler_in_memory(form: str, dtype: Any, offset: float) -> None:
    rng = np.random.default_rng(5)
    X: Any = (rng.normal(size=(5000, 6)) * 10.0 ** np.arange(-3, 3) + offset).astype(dtype)
    X[:, 2] = 0.1  # constant
    if form == "sparse":
        X[rng.random(X.shape) < 0.5] = 0
        X = sp.csr_array(X)
    exact = np.asarray(X.toarray() if form == "sparse" else X, dtype=np.longdouble)
    view = mm.data.standardize(mm.data.open(X, rows=617))
    scaler = view.scaler
    wanted = StandardScaler(with_mean=form == "dense").fit(X.astype(np.float64))
    spread = exact.std(axis=0).astype(float)
    for mean in (wanted.mean_, exact.mean(axis=0).astype(float)):
        np.testing.assert_array_less(abs(scaler.mean_ - mean), 1e-12 * (abs(mean) + spread))
    if offset == 0:
        np.testing.assert_allclose(scaler.scale_, wanted.scale_, rtol=1e-12)
        np.testing.assert_allclose(scaler.var_, wanted.var_, rtol=1e-12, atol=1e-30)
    constant = scaler.scale_ == 1
    np.testing.assert_allclose(scaler.scale_[~constant], spread[~constant], rtol=1e-9)
    np.testing.assert_array_equal(constant, wanted.scale_ == 1)
    assert scaler.n_samples_seen_ == 5000
    assert scaler.n_features_in_ == 6


def test_transformers_of_other_columns_are_refused() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    scaler = StandardScaler().fit(frame[["b", "a"]])
    with pytest.raises(ValueError, match="other columns"):
        mm.data.open(frame).scaled(scaler)
    with pytest.raises(TypeError, match="transform"):
        mm.data.open(frame).mapped("scaler")
    with pytest.raises(TypeError, match=r"maxmargin\.data\.open"):
        mm.data.standardize(np.zeros((3, 2)))  # type: ignore[arg-type]


# ------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("given", "meant"),
    [("2GB", 2 * 10**9), ("512 MiB", 1 << 29), ("1.5gb", 15 * 10**8), (10**7, 10**7)],
)
def test_memory(given: Any, meant: int) -> None:
    assert mm.data.open(np.ones((2, 2)), memory=given).options.memory == meant


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *((given, "no amount of memory") for given in ("much", "2 XB", "-1GB", "GB", True, [1])),
        *((given, "too little") for given in (0, -5, "1kB", float("nan"))),
    ],
)
def test_memory_that_is_none(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_memory(given)


def test_options(tmp_path: Path) -> None:
    source = mm.data.open(np.ones((2, 2)), memory="1GB", checkpoint=tmp_path / "new")
    assert source.options == BlockOptions(10**9, tmp_path / "new")
    other = source.with_options(memory="2GB", client="tcp://127.0.0.1:8786")
    assert other.options.memory == 2 * 10**9
    assert other.options.checkpoint == tmp_path / "new"
    assert source.options.client is None
    assert pickle.loads(pickle.dumps(other)).options.client is None
    assert mm.data.open(other, memory="3GB").options.client == "tcp://127.0.0.1:8786"
    view = other.scaled(StandardScaler().fit(np.ones((2, 2))))
    assert view.options == other.options
    with pytest.raises(ValueError, match="rows that are open"):
        mm.data.open(source, label="a")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="name a folder"):
        mm.data.open(np.ones((2, 2)), checkpoint=tmp_path / "file")
    with pytest.raises(TypeError, match="checkpoint"):
        mm.data.open(np.ones((2, 2)), checkpoint=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="every"):
        source.with_options(every=0)


def test_fingerprints_tell_rows_apart(tmp_path: Path) -> None:
    rows = make_rows()
    prints = [
        opener(rows, tmp_path).fingerprint() for opener in (open_array, OPENERS["csr"], open_npy)
    ]
    other = mm.data.open(rows.X + 1, rows.y).fingerprint()
    weighted = mm.data.open(rows.X, rows.y, weight=rows.weight).fingerprint()
    assert len({*prints, other, weighted}) == 5
    assert mm.data.open(rows.X, rows.y, rows=3).fingerprint() == prints[0]


# ------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("kind", ["pandas", "parquet", "csv"])
def test_a_label_that_is_not_there(kind: str, tmp_path: Path) -> None:
    frame: Any = frame_of(make_rows())
    if kind == "parquet":
        frame.to_parquet(tmp_path / "a.parquet")
    elif kind == "csv":
        frame.to_csv(tmp_path / "a.csv", index=False)
    what = frame if kind == "pandas" else tmp_path / f"a.{kind}"
    with pytest.raises(DataFileError, match=r"label='kinds' is not one .* Did you mean 'kind'\?"):
        mm.data.open(what, label="kinds")
    with pytest.raises(DataFileError, match="label=9 is not one of its columns"):
        mm.data.open(what, label=9)
    with pytest.raises(DataFileError, match="columns='t' is not one"):
        mm.data.open(what, columns=["p", "t"])
    with pytest.raises(DataFileError, match="weight='w' is not one"):
        mm.data.open(what, weight="w")
    with pytest.raises(ValueError, match="has the label"):
        mm.data.open(what, label="kind", columns=["p", "kind"])
    with pytest.raises(TypeError, match="must be a list"):
        mm.data.open(what, columns="p")
    with pytest.raises(ValueError, match="both given"):
        mm.data.open(what, [1], label="kind")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file matches '.*part-\*\.parquet'"):
        mm.data.open(tmp_path / "part-*.parquet")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*a\.csv"):
        mm.data.open(tmp_path / "a.csv")
    with pytest.raises(FileNotFoundError, match="has no files"):
        mm.data.open(tmp_path)
    (tmp_path / "a.csv").touch()
    with pytest.raises(DataFileError, match="empty"):
        mm.data.open(tmp_path / "a.csv")
    (tmp_path / "b.svm").touch()
    with pytest.raises(ValueError, match="different kinds"):
        mm.data.open(tmp_path)
    (tmp_path / "c.json").write_text("[]")
    with pytest.raises(ValueError, match="not read in parts"):
        mm.data.open(tmp_path / "c.json")


@pytest.mark.parametrize("n", [2, 7])
def test_lengths_that_differ(n: int) -> None:
    X = np.ones((5, 2))
    with pytest.raises(ValueError, match=f"X has 5 rows, but y has {n}"):
        mm.data.open(X, np.ones(n))
    with pytest.raises(ValueError, match=f"X has 5 rows, but weight has {n}"):
        mm.data.open(X, weight=np.ones(n))
    source = mm.data.open([(X, np.ones(5)), (X, np.ones(n))])
    with pytest.raises(DataFileError, match=rf"^part 1 \(.* X has 5 rows, but there are {n} label"):
        source.load(1)


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ((np.array([["a", "b"]], dtype=object), [1]), "X holds what is no number"),
        ((np.ones((2, 2), complex), [1, 2]), "which is no number"),
        ((np.ones((1, 2, 2)), [1]), "X has 3 dimensions"),
        ((np.ones((2, 2)), ["a", None]), "there is no label in row 1"),
        ((np.ones((2, 2)), np.ones((2, 2))), "y has 2 dimensions"),
        ("text", "it must be a tuple"),
        ((np.ones((2, 2)), [1, 2], ["a", "b"]), "weights must be numbers"),
        ((np.ones((2, 2)), [1, 2], np.ones((2, 2))), "weight has 2 dimensions"),
    ],
)
def test_chunks_unlike_the_first(chunk: Any, message: str) -> None:
    source = mm.data.open([Loader((np.ones((2, 2)), [1, 2], [1, 1])), Loader(chunk)])
    with pytest.raises(DataFileError, match=rf"^part 1 \(chunks, number 1\): .*{message}"):
        source.load(1)


def test_narrow_parts_are_widened_and_wide_ones_refused() -> None:
    wide, narrow = np.ones((2, 2)), np.ones((2, 2), np.float32)
    assert mm.data.open([Loader(wide), Loader(narrow)]).load(1).X.dtype == np.float64
    with pytest.raises(DataFileError, match=r"part 1 .* float64, but others hold float32"):
        mm.data.open([Loader(narrow), Loader(wide)]).load(1)


def test_an_error_of_a_loader_is_named() -> None:
    source = mm.data.open(
        [Loader(np.ones((2, 2))), partial(dict[str, Any]().__getitem__, "no such block")]
    )
    with pytest.raises(DataFileError, match=r"^part 1 \(chunks, number 1\): KeyError: .*such bl"):
        source.load(1)


def test_nan_in_a_sparse_part() -> None:
    X = sp.csr_array(np.eye(5))
    X.data[3] = np.nan
    with pytest.raises(DataFileError, match=r"^part 1 .*column 3 has nan in row 3"):
        mm.data.open(X, rows=2).load(1)


def test_numbers_whose_sum_overflows_are_finite() -> None:
    X = np.full((4, 2), 1e308)
    assert mm.data.open(X).load(0).X.max() == 1e308
    narrow = np.full((4, 2), 3e38, np.float32)
    assert mm.data.open(narrow).load(0).X.dtype == np.float32


@pytest.mark.parametrize("opener", [open_npy, open_parquet])
def test_files_that_disappear_or_change(opener: Any, tmp_path: Path) -> None:
    source = opener(make_rows(), tmp_path)
    stamp = source.X.stamp if hasattr(source, "X") else source.stamps[0]
    path = Path(stamp.path)
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(DataFileError, match=r"^part 0 \(.*is not there any more"):
        source.load(0)
    path.write_bytes(content)
    os.utime(path, ns=(stamp.changed, stamp.changed))
    source.load(0)
    path.write_bytes(content[:-1])
    with pytest.raises(DataFileError, match=r"^part 0 \(.*has changed since it was opened"):
        source.load(0)


def test_arrays_in_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"nothing")
    with pytest.raises(DataFileError, match="not an array of numpy"):
        mm.data.open(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.ones((10, 2)))
    (tmp_path / "b.npy").write_bytes((tmp_path / "b.npy").read_bytes()[:-8])
    with pytest.raises(DataFileError, match="cut off"):
        mm.data.open(tmp_path / "b.npy")
    np.save(tmp_path / "c.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(DataFileError, match="Python objects"):
        mm.data.open(tmp_path / "c.npy")
    np.save(tmp_path / "d.npy", np.ones(10))
    with pytest.raises(ValueError, match="two dimensions"):
        mm.data.open(tmp_path / "d.npy")
    with pytest.raises(ValueError, match="label"):
        mm.data.open(np.ones((3, 2)), label="y")
    with pytest.raises(ValueError, match="no rows"):
        mm.data.open(np.ones((0, 2)))
    np.savez(tmp_path / "e.npz", a=np.ones(3))
    with pytest.raises(DataFileError, match="not a sparse matrix"):
        mm.data.open(tmp_path / "e.npz")


def test_iterables_that_change_or_end() -> None:
    X = np.ones((3, 2))
    chunks = Again([(X, [1, 2, 1]), (X, [1, 2, 1])])
    source = mm.data.open(chunks)
    assert len(source) == 2
    chunks.chunks = [(X, [1, 2, 1]), (X[:2], [1, 2])]
    with pytest.raises(DataFileError, match=r"^part 1 .*has 2 rows and had 3 before"):
        source.load(1)
    chunks.chunks = chunks.chunks[:1]
    with pytest.raises(DataFileError, match=r"^part 1 .*ended before it"):
        source.load(1)
    for nothing in (Again([]), iter(()), Again([(X[:0], [])])):
        with pytest.raises(ValueError, match="no chunks with rows"):
            mm.data.open(nothing)
    with pytest.raises(ValueError, match="tuple"):
        mm.data.open(chunks, [1])
    with pytest.raises(ValueError, match="chunks are not frames"):
        mm.data.open(chunks, label="y")
    with pytest.raises(DataFileError, match=r"^part 1 \(iterator\): .*no number"):
        mm.data.open(iter([(X, [1, 2, 1]), (np.array([["a"]]), [1])]))


def test_what_cannot_be_opened() -> None:
    with pytest.raises(TypeError, match="rows cannot be opened in a int"):
        mm.data.open(3)
    with pytest.raises(TypeError, match=r"collect\(\)"):
        mm.data.open(pl.DataFrame({"a": [1.0]}).lazy())
    for rows in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="rows="):
            mm.data.open(np.ones((2, 2)), rows=rows)  # type: ignore[arg-type]
    with pytest.raises(DataFileError, match="two columns are named 'a'"):
        mm.data.open(pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]))
    with pytest.raises(DataFileError, match="no columns are left"):
        mm.data.open(pd.DataFrame({"y": [1]}), label="y")


# ------------------------------------------------------------------- Dask


def make_chunk(X: Any, y: Any) -> tuple[Any, Any]:
    return X, y


def dask_sources(rows: Rows) -> dict[str, RowSource]:
    dask: Any = pytest.importorskip("dask")
    da: Any = pytest.importorskip("dask.array")
    dd: Any = pytest.importorskip("dask.dataframe")
    X, y, _ = rows
    array = da.from_array(X, chunks=(20, 3))
    frame = dd.from_pandas(frame_of(rows), npartitions=4)
    unknown = frame[NAMES].values
    delayed = [dask.delayed(make_chunk)(X[k : k + 30], y[k : k + 30]) for k in range(0, 103, 30)]
    frames = [dask.delayed(frame_of)(Rows(X[k : k + 30], y[k : k + 30], None)) for k in (0, 30, 60)]
    frames.append(dask.delayed(frame_of)(Rows(X[90:], y[90:], None)))
    return {
        "array": mm.data.open(array, da.from_array(y, chunks=31)),
        "array and y in memory": mm.data.open(array, y),
        "unknown sizes": mm.data.open(unknown, frame["kind"]),
        "frame": mm.data.open(frame, label="kind"),
        "frame and series": mm.data.open(frame[NAMES], frame["kind"]),
        "delayed": mm.data.open(delayed),
        "delayed frames": mm.data.open(frames, label="kind"),
    }


def test_dask_collections() -> None:
    rows = make_rows()
    fitted = StandardScaler().fit(rows.X)
    for name, source in dask_sources(rows).items():
        assert_holds(source, rows)
        assert source.on_dask, name
        view = source.scaled(fitted)
        assert_holds(view, rows._replace(X=fitted.transform(rows.X)))
        for one in (source, view):
            computed = one.delayed(1).compute(scheduler="sync")
            assert isinstance(computed, Part)
            np.testing.assert_array_equal(computed.X, one.load(1).X)
            np.testing.assert_array_equal(computed.y, one.load(1).y)
        scaler = mm.data.standardize(source).scaler
        np.testing.assert_allclose(scaler.mean_, fitted.mean_, rtol=1e-12)
        np.testing.assert_allclose(scaler.scale_, fitted.scale_, rtol=1e-12)


def test_dask_weights_sparse_chunks_and_float32() -> None:
    da: Any = pytest.importorskip("dask.array")
    rows = make_rows()
    X, y, weight = rows
    source = mm.data.open(da.from_array(X, chunks=20), da.from_array(y, chunks=20), weight=weight)
    assert_holds(source, rows, weight=True)
    narrow = X.astype(np.float32)
    assert mm.data.open(da.from_array(narrow, chunks=20)).dtype == np.float32
    sparse = da.from_array(X, chunks=(20, 4)).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))
    assert_holds(mm.data.open(sparse, y), rows)


def test_dask_mistakes() -> None:
    da: Any = pytest.importorskip("dask.array")
    dd: Any = pytest.importorskip("dask.dataframe")
    rows = make_rows()
    X = rows.X.copy()
    X[50, 2] = np.nan
    array = da.from_array(X, chunks=(20, 4))
    source = mm.data.open(array, rows.y)
    for read in (source.load, lambda part: source.delayed(part).compute(scheduler="sync")):
        with pytest.raises(
            DataFileError, match=r"^part 2 \(dask Array, partition 2\): column 2 has"
        ):
            read(2)
    with pytest.raises(ValueError, match="X has 103 rows, but y has 5"):
        mm.data.open(array, da.ones(5))
    with pytest.raises(ValueError, match="X has 103 rows, but y has 5"):
        mm.data.open(array, np.ones(5))
    with pytest.raises(ValueError, match="label="):
        mm.data.open(array, label="y")
    with pytest.raises(ValueError, match="two"):
        mm.data.open(array[:, 0])
    frame = dd.from_pandas(frame_of(rows), npartitions=4)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        mm.data.open(frame[NAMES], rows.y)
    with pytest.raises(ValueError, match="4 partitions, but y has 1"):
        mm.data.open(frame[NAMES].values, da.ones(103, chunks=103))
    with pytest.raises(DataFileError, match="Did you mean 'kind'"):
        mm.data.open(frame, label="kinds")
    with pytest.raises(DataFileError, match=r"^part 0 .*column 'kind' holds what is no number"):
        mm.data.open(frame).load(0)


def test_empty_dask_chunks_are_left_out() -> None:
    da: Any = pytest.importorskip("dask.array")
    X = da.ones((5, 2), chunks=((3, 0, 2), (2,)))
    source = mm.data.open(X, np.ones(5))
    assert [len(part.X) for part in source] == [3, 2]
    assert source.describe(1) == "part 1 (dask Array, partition 2)"
