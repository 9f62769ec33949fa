"""Rows in blocks: the bits of rows in memory wherever they live, whatever goes wrong."""

import gc
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.errors import DataFileError, DistributedFitError
from maxmargin.loops.records import Loss
from maxmargin.rows import checkpoint
from maxmargin.rows.blocks import Block, RowsInMemory, join
from maxmargin.rows.cluster import connect
from maxmargin.rows.on_dask import RowsOnDask, load_parts, survey_on_dask
from maxmargin.rows.on_disk import MemoryShares, RowsOnDisk, VectorOnDisk
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.survey import Survey, survey
from maxmargin.runtime import clock
from maxmargin.runtime.atomic_write import write_atomically
from tests.rows.conftest import ROOT, Cluster, client_that_forgives_nothing


@dataclass(eq=False)
class Made(RowSource):
    """Rows made by the numbers of their parts, which are of uneven lengths."""

    rows: tuple[int, ...]
    n_columns: int = 30
    sparse: bool = False
    dtype: Any = np.float64
    targets: bool = False  # instead of labels
    weighted: bool = True
    deadly: int = -1  # the part that ends the process which reads it …
    once: str = ""  # … unless this file is there, which is then made
    labelled = True

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, part: int) -> Part:
        if part == self.deadly and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os._exit(1)
        random = np.random.default_rng([7, part])
        X = random.normal(size=(self.rows[part], self.n_columns)).astype(self.dtype)
        if self.sparse:
            X *= random.random(X.shape) < 0.4
        y = np.where(random.random(len(X)) < 0.3, "no", np.where(X[:, 0] > 0, "yes", "maybe"))
        weight = 1 + random.random(len(X))
        return Part(sp.csr_array(X) if self.sparse else X, X[:, 0] if self.targets else y, weight)

    def describe(self, part: int) -> str:
        return f"part {part} (made)"

    def identity(self) -> Any:
        return repr(self)


UNEVEN = (5000, 1, 0, 7000, 4321, 3000)
SOURCES = {
    "dense": Made(UNEVEN),
    "float32": Made(UNEVEN, dtype=np.float32),
    "sparse": Made((9000, 3000, 8000, 2), n_columns=40, sparse=True),
}
DENSE = SOURCES["dense"]  # eight leaves
N = sum(UNEVEN)
SMALL = 3_000_000  # bytes: a block is one leaf, and vectors go to files
LARGER = 9_000_000  # a block is two leaves of dense rows


def together(source: RowSource) -> tuple[Any, Any, Any]:
    X, y, weight = zip(*source, strict=True)
    rows = sp.vstack(X, format="csr") if source.sparse else np.concatenate(X)
    return rows, np.concatenate(y), np.concatenate(weight)


class HalfRule(NamedTuple):
    factor: float

    def __call__(self, labels: Any, weight: Any) -> Loss:
        target = np.where(labels == 1, 1.0, -1.0)
        return Loss(target, 0 * weight, self.factor * weight, weight, 0.0)


def in_memory(source: Made) -> RowsInMemory:
    X, y, weight = together(source)
    labels = np.searchsorted(np.unique(y), y)
    rows = RowsInMemory(sp.csr_array(X) if source.sparse else X, HalfRule(0.5)(labels, weight))
    rows.put("labels", labels)
    rows.put("weight", weight)
    return rows


def on_disk(source: Any, memory: int | None = SMALL, seen: Survey | None = None) -> Any:
    source = source.with_options(memory=memory)
    targets = getattr(source, "targets", False)
    seen = survey(source, targets=targets) if seen is None else seen
    return RowsOnDisk(source, seen, regression=targets, threads=2)


def on_dask(source: Made, client: Any, seen: Survey | None = None) -> RowsOnDask:
    parts = load_parts(source, client)
    if seen is None:
        seen = survey_on_dask(source, client, targets=source.targets, parts=parts)
    return RowsOnDask(source, seen, client, regression=source.targets, parts=parts)


DISK = {"a leaf at a time": SMALL, "several leaves": LARGER, "kept": None}
WORKERS = [pytest.param(f"{count} workers", marks=pytest.mark.cluster) for count in (1, 2)]


@pytest.fixture(params=[*DISK, *WORKERS])
def place(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return what makes blocks of a source: on disk or on workers."""
    if request.param in DISK:
        return lambda source, seen=None: on_disk(source, DISK[request.param], seen)
    cluster = request.getfixturevalue("cluster")
    client = cluster.ready(int(request.param[0]))
    return lambda source, seen=None: on_dask(source, client, seen)


# ------------------------------------------------------------------- steps


def score(block: Any, w: Any) -> tuple[float, Any]:
    own = slice(block.begin, block.end)
    block["scores"][own] = block.X[own] @ w
    hinge = np.maximum(0, 1 - block.loss.target[own] * block["scores"][own]) * block["weight"][own]
    return float(hinge.sum()), block.X[own].T @ hinge


def move(block: Any, step: float) -> Any:
    own = slice(block.begin, block.end)
    assert block.X is None or block.X.shape[0] >= block.end
    assert (block["labels"].dtype, block["weight"].dtype) == (np.int64, np.float64)
    block["scores"][own] *= 1 + step
    block["duals"][own] = block.loss.high[own] * step + block["scores"][own]
    return np.array([block["duals"][own].sum(), block["labels"][own].sum()])


def add_up(block: Any) -> Any:
    own = slice(block.begin, block.end)
    return block["scores"][own].sum(), block["weight"][own].sum()


def name_rows(block: Any) -> list[tuple[int, int]]:
    return [(block.first, block.first + block.end - block.begin)]


def walk(block: Any, state: Any, rate: float) -> Any:
    own = slice(block.begin, block.end)
    state *= 0.9  # in place: a state that travels is the step's own
    columns = np.asarray(block.X[own].sum(axis=0)).ravel()
    state += rate * columns * (block["weight"][own].sum() * state[-1])
    block["seen"][own] = state[0]
    return state


def count_calls(block: Any, folder: str) -> float:
    own = slice(block.begin, block.end)
    with (Path(folder) / f"{block.first}.calls").open("a") as file:
        file.write("x")
    block["steps"][own] += 1
    return float(block["steps"][own].sum())


def fail(block: Any, *state: Any) -> None:
    if block.first > 10:
        raise ZeroDivisionError("of a step")


def passes(blocks: Any) -> list[Any]:
    """Return what a series of all kinds of passes gives."""
    w, found = np.linspace(-1, 1, blocks.d), []
    for _ in range(4):
        found.append(blocks.map(score, w, writes=("scores",)))
        w = w - 1e-6 * found[-1][1]
        writes = ("scores", "duals")
        found.append(blocks.map(move, 0.25, writes=writes, reads_rows=False, numbers=10.0))
    kept = blocks.vector("scores")
    blocks.renew("scores")
    found.append(blocks.map(score, -w, writes=("scores",)))
    found.append(as_array(blocks.vector("scores")))
    blocks.put("scores", kept)
    found.append(blocks.map(add_up, reads_rows=False))
    found.append(blocks.fold(walk, np.ones(blocks.d), 1e-6, writes=("seen",)))
    found.append(blocks.map(name_rows, merge=join))
    blocks.put("scores", np.arange(blocks.n) / 7)
    found.append(blocks.map(add_up, reads_rows=False))
    names = ("scores", "duals", "seen", "labels")
    return [*found, *(as_array(blocks.vector(name)) for name in names)]


def as_array(vector: Any) -> Any:
    return vector.array() if hasattr(vector, "array") else vector.copy()


def assert_same_bits(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_bits(a, b)
    else:
        np.testing.assert_array_equal(one, other)


def only_this_thread() -> bool:
    return not any(each.name.startswith("maxmargin-read-ahead") for each in threading.enumerate())


# ------------------------------------------------------------------- surveys


@pytest.mark.parametrize("kind", SOURCES)
def test_a_survey_knows_what_numpy_knows_of_all_rows(kind: str) -> None:
    source = SOURCES[kind]
    found, (X, y, weight) = survey(source), together(source)
    dense = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    squares, classes = np.square(dense).sum(axis=1), ["maybe", "no", "yes"]
    assert (found.n, found.rows.tolist()) == (len(y), list(source.rows))
    assert found.size == (X.nnz if sp.issparse(X) else X.size)
    assert found.classes.tolist() == classes
    assert found.counts.tolist() == [int((y == label).sum()) for label in classes]
    np.testing.assert_allclose(found.weights, [weight[y == c].sum() for c in classes])
    np.testing.assert_allclose(found.total_weight, weight.sum(), rtol=1e-14)
    np.testing.assert_allclose(len(y) * found.columns.means, dense.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.columns.variances, dense.var(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.largest_square, squares.max())
    assert found.columns.largest_value == np.abs(dense[squares.argmax()]).max()
    assert found.first_row.tolist() == dense[0].tolist()
    assert len(pickle.dumps(found)) < 20_000


def test_a_survey_of_targets_knows_their_range() -> None:
    y = np.random.default_rng(0).standard_normal(N) * 3 + 1e6
    found = survey(mm.data.open(np.ones((N, 1)), y, rows=999), targets=True).targets
    assert found is not None
    assert (found.low, found.high) == (y.min(), y.max())
    np.testing.assert_allclose([found.mean, found.std], [y.mean(), y.std()], rtol=1e-11)


@pytest.mark.parametrize("pair", [("a", "z" * 9), (-1, 7), (False, True), (1.0, 2.0)])
def test_a_class_of_the_last_part_alone_is_found(pair: Any) -> None:
    labels = np.array([pair[0]] * 49 + [pair[1]])
    parts = [(np.ones((49, 2)), labels[:49]), (np.ones((1, 2)), labels[49:])]
    found = survey(mm.data.open(parts))
    assert (found.classes.tolist(), found.counts.tolist()) == ([*pair], [49, 1])
    assert found.classes.dtype == labels.dtype


# ------------------------------------------------------------------- passes


@pytest.fixture(scope="module")
def expected() -> dict[str, list[Any]]:
    """Return what passes give over rows in memory."""
    return {kind: passes(in_memory(source)) for kind, source in SOURCES.items()}


@pytest.mark.parametrize("kind", SOURCES)
def test_passes_give_the_bits_of_rows_in_memory(place: Any, kind: str, expected: Any) -> None:
    source = SOURCES[kind]
    blocks = place(source).with_loss(HalfRule(0.5))
    known = survey(source)
    for name in ("rows", "numbers", "classes", "counts", "weights", "first_row"):
        assert_same_bits(getattr(blocks.survey, name), getattr(known, name))
    assert_same_bits(tuple(blocks.survey.columns), tuple(known.columns))
    assert_same_bits(passes(blocks), expected[kind])
    assert blocks.passes == (7 if isinstance(blocks, RowsOnDisk) else 13)
    assert (blocks.n, blocks.d, blocks.numbers) == (known.n, known.d, float(known.size))
    assert only_this_thread()


def test_targets_are_labels_of_regression(place: Any) -> None:
    source = Made((300, 200), targets=True, weighted=False)
    blocks = place(source)
    assert_same_bits(blocks.vector("labels").array(), np.concatenate([each.y for each in source]))
    assert_same_bits(blocks.vector("weight").array(), np.ones(500))


def test_losses_have_vectors_of_their_own(place: Any) -> None:
    rows = place(DENSE)
    one, other = rows.with_loss(HalfRule(1.0)), rows.with_loss(HalfRule(2.0))
    for blocks in (one, other):
        blocks.map(score, np.ones(rows.d), writes=("scores",))
    one.map(move, 0.5, writes=("scores", "duals"), reads_rows=False)
    kept = other.vector("scores").array()
    assert_same_bits(one.vector("scores").array(), 1.5 * kept)
    high = one.vector("duals").array() - 1.5 * kept
    np.testing.assert_allclose(high, 0.5 * rows.vector("weight").array(), atol=1e-12)
    with pytest.raises(KeyError):
        other.vector("duals")
    other.put("copy", one.vector("scores"))
    assert_same_bits(other.vector("copy").array(), 1.5 * kept)
    assert len(other.vector("copy")) == N
    with pytest.raises(ValueError, match=rf"copy has 3 numbers.* {N} rows"):
        other.put("copy", np.ones(3))


def test_many_blocks_are_merged_by_workers(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maxmargin.rows.blocks._FEW_NUMBERS", 1 << 10)
    monkeypatch.setattr("maxmargin.rows.blocks._LEAF_NUMBERS", 1 << 12)
    monkeypatch.setattr("maxmargin.rows.on_dask._BLOCK_NUMBERS", 1)
    monkeypatch.setattr("maxmargin.rows.on_dask._MOST_BLOCKS", 20)
    for module in ("on_dask", "cluster"):  # so that nothing is small
        monkeypatch.setattr(f"maxmargin.rows.{module}._SMALL", 1 << 8)
    blocks = on_dask(DENSE, cluster.ready()).with_loss(HalfRule(0.5))
    assert "of 71 (rows" in blocks.describe(0)
    assert_same_bits(passes(blocks), passes(in_memory(DENSE)))


def test_blocks_are_aligned_runs_of_leaves_of_at_most_a_quarter_of_the_memory() -> None:
    small, larger = on_disk(DENSE), on_disk(DENSE, LARGER)
    leaves = [first for first, _ in small.map(name_rows, merge=join)]
    assert len(small.edges) - 1 == len(leaves) == 8
    assert larger.edges.tolist() == [*leaves[::2], N]
    assert larger.block_bytes <= LARGER / 4
    with pytest.raises(ValueError, match=r"memory=1050000 bytes is too little.*Set memory to"):
        on_disk(DENSE, 1_050_000)


@pytest.mark.parametrize("memory", [SMALL, None])
def test_rows_that_fit_are_read_once_and_others_in_every_pass(memory: int | None) -> None:
    rows = on_disk(DENSE, memory)
    assert rows.keeps_rows == (memory is None)
    y = sum(each.y.nbytes for each in DENSE)
    once = N * (8 * DENSE.n_columns + 8) + y
    for times in (1, 2, 3):
        rows.with_loss(HalfRule(0.5)).map(name_rows, merge=join)
        assert rows.bytes_read == (once if memory is None else times * once)
        assert rows.passes == times


@pytest.mark.parametrize("kind", SOURCES)
def test_what_is_slow_to_read_is_read_once(kind: str) -> None:
    source = replace(SOURCES[kind])
    source.slow = True
    spooled, plain = (on_disk(each).with_loss(HalfRule(0.5)) for each in (source, SOURCES[kind]))
    wanted, read = plain.map(score, np.ones(plain.d), writes=("scores",)), []
    for _ in range(3):
        assert_same_bits(spooled.map(score, np.ones(plain.d), writes=("scores",)), wanted)
        read.append(spooled.bytes_read)
    assert read[0] == read[2] > 0


@pytest.mark.parametrize("memory", [SMALL, None])
def test_sources_of_all_kinds_give_the_bits_of_memory(tmp_path: Path, memory: int | None) -> None:
    X, y, weight = together(DENSE)
    for name, array in (("X", X), ("y", y), ("w", weight)):
        np.save(tmp_path / f"{name}.npy", array)
    columns = (X, y, weight)
    chunks = [tuple(each[i : i + 700] for each in columns) for i in range(0, N, 700)]
    wanted = in_memory(DENSE).map(score, np.ones(X.shape[1]), writes=("scores",))
    paths = [tmp_path / f"{name}.npy" for name in "Xyw"]
    for source in (
        mm.data.open(X, y, weight=weight, rows=999),
        mm.data.open(*paths[:2], weight=paths[2], rows=1001),
        mm.data.open(lambda: iter(chunks)),
    ):
        rows = on_disk(source, memory)
        blocks = rows.with_loss(HalfRule(0.5))
        for _ in range(2):  # labels and weights are known in the first pass, too
            assert_same_bits(blocks.map(score, np.ones(X.shape[1]), writes=("scores",)), wanted)
        assert_same_bits(rows.vector("labels").array(), np.searchsorted(np.unique(y), y))


@pytest.mark.parametrize("step", [700, N])
def test_rows_of_one_array_are_not_copied(step: int) -> None:
    X, y, _ = together(DENSE)

    def same(block: Block, X: Any) -> list[bool]:
        rows = X[block.first : block.first + block.end - block.begin]
        at = slice(block.begin, block.end)
        return [np.shares_memory(block.X, X) and np.array_equal(block.X[at], rows)]

    assert all(on_disk(mm.data.open(X, y, rows=step), None).map(same, X, merge=join))


def test_wide_indices_become_narrow() -> None:
    X, y, _ = together(SOURCES["sparse"])
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for step in (1700, len(y)):
        rows = on_disk(mm.data.open(X, y, rows=step), None)
        found = rows.map(lambda block: [block.X.indices.dtype], merge=join)
        assert set(found) == {np.dtype(np.int32)}
        assert X.indices.dtype == np.int64


def test_many_classes_have_their_numbers() -> None:
    y = np.array([f"class {i % 1000:04}" for i in range(N)])
    found = on_disk(mm.data.open(np.ones((N, 30)), y, rows=999)).vector("labels").array()
    assert_same_bits(found, np.arange(N) % 1000)


# ------------------------------------------------------------------- scratch files


def test_vectors_beyond_the_memory_are_in_files_that_vanish(tmp_path: Path) -> None:
    source = replace(DENSE)
    source.options = replace(source.options, checkpoint=tmp_path / "scratch")
    rows = on_disk(source)
    names = tuple(f"v{i}" for i in range(9))

    def fill(block: Block) -> None:
        for i, name in enumerate(names):
            block.vectors[name][block.begin : block.end] = i

    rows.map(fill, writes=names, reads_rows=False)
    budget = rows._read.budget
    assert 0 < budget.used <= budget.limit < 8 * N * 5  # so that at least four are in files
    assert [float(rows.vector(name).array().mean()) for name in names] == list(range(9))
    rows.put("flags", np.arange(3 * N).reshape(N, 3) % 2 == 0)
    assert rows.vector("flags").rows(5, 7).tolist() == [[False, True, False], [True, False, True]]
    assert list((tmp_path / "scratch").iterdir()) == []  # they have no name
    rows.renew(*names, "flags")
    gc.collect()
    assert budget.used < 8 * N * 3  # labels and weights


def test_a_full_disk_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="set checkpoint= to a folder with enough space"):
        VectorOnDisk((9,), np.float64, MemoryShares(0, None))


# ------------------------------------------------------------------- checkpoints


def test_vectors_are_restored_wherever_rows_are(place: Any, tmp_path: Path) -> None:
    here, there = place(DENSE), on_disk(DENSE)
    numbers, w = np.random.default_rng(3).normal(size=N), np.arange(4.0)
    for one, other in ((here, there), (there, here)):
        one.put("duals", numbers)
        one.put("signs", np.sign(numbers).astype(np.int64))
        one.save(tmp_path, ("duals", "signs"), {"w": w, "step": 3})
        other.restore(tmp_path)
        assert_same_bits(other.vector("duals").array(), numbers)
        assert other.vector("signs").array().dtype == np.int64
        state = other.saved_state(tmp_path)
        assert (state["w"].tolist(), int(state["step"])) == (w.tolist(), 3)
        numbers = -numbers
    assert here.saved_state(tmp_path / "none") is None
    # Of each set but the last all files are gone.
    assert len(list(tmp_path.iterdir())) == len(there.edges) - 1 + 2


def test_a_set_that_was_not_finished_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, later = on_disk(DENSE), on_disk(DENSE, LARGER)
    for number in range(6):
        rows.put("v", np.full(N, float(number)))
        rows.save(tmp_path, ("v",), {"number": number})
        left = 1 + number

        def interrupted(path: Any, writer: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            write_atomically(path, writer)

        rows.put("v", np.full(N, -1.0))
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "write_atomically", interrupted)
            with pytest.raises(KeyboardInterrupt):
                rows.save(tmp_path, ("v",), {"number": -1})
        later.restore(tmp_path)
        assert int((later.saved_state(tmp_path) or {})["number"]) == number
        assert (later.vector("v").array() == number).all()


def test_damaged_and_foreign_sets_are_refused(tmp_path: Path) -> None:
    rows = on_disk(DENSE)
    with pytest.raises(FileNotFoundError, match="holds no vectors"):
        rows.restore(tmp_path / "none")
    rows.put("v", np.ones(N))
    rows.save(tmp_path, ("v",))
    listed = tmp_path / "vectors.json"
    complete = listed.read_text()
    listed.write_text(json.dumps({**json.loads(complete), "firsts": [0, 5]}))
    with pytest.raises(DataFileError, match=f"saved for 5 rows, but there are {N}"):
        rows.restore(tmp_path)
    listed.write_text(complete[:40])
    with pytest.raises(DataFileError, match="damaged"):
        rows.restore(tmp_path)
    listed.write_text(complete)
    file = next(tmp_path.glob(f"vectors-*-{rows.edges[3]}.npz"))
    file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(DataFileError, match=rf"{file.name}: this file of a checkpoint"):
        rows.restore(tmp_path)
    state = next(tmp_path.glob("state-*.npz"))
    state.write_bytes(state.read_bytes()[:10])
    with pytest.raises(DataFileError, match=rf"{state.name}: this file of a checkpoint"):
        rows.saved_state(tmp_path)


def test_what_was_saved_is_where_lost_vectors_begin(cluster: Cluster, tmp_path: Path) -> None:
    shared = tmp_path / "checkpoint"
    blocks = on_dask(DENSE, cluster.ready()).with_loss(HalfRule(0.5))
    for _ in range(3):
        blocks.map(count_calls, str(tmp_path), writes=("steps",))
    blocks.save(shared, ["steps"])
    cluster.kill_worker()
    assert blocks.map(count_calls, str(tmp_path), writes=("steps",)) == 4 * blocks.n
    called = [path.read_text().count("x") for path in tmp_path.glob("*.calls")]
    assert called == [4] * len(called)  # nothing from the beginning
    before, files = blocks.vector("steps"), set(shared.iterdir())
    blocks.map(count_calls, str(tmp_path), writes=("steps",))
    blocks.save(shared, ["steps"])
    assert files <= set(shared.iterdir())  # what was kept may need them
    assert before.array().sum() == 4 * blocks.n
    del before
    blocks.save(shared, ["steps"])
    assert len(list(shared.iterdir())) == len(files)


# ------------------------------------------------------------------- what goes wrong


def test_parts_that_changed_are_named(place: Any) -> None:
    before = survey(Made((500, 600, 700)))
    with pytest.raises(DataFileError, match=r"^part 1 \(made\): it has 601 rows.* 600"):
        place(Made((500, 601, 700)), before).map(name_rows, merge=join)
    counts = before.labels._replace(classes=np.array(["maybe", "no", "often"]))  # type: ignore[union-attr]
    with pytest.raises(DataFileError, match=r"^part 0 \(made\): y contains .*yes.* It was changed"):
        place(Made((500, 600, 700)), replace(before, labels=counts)).map(name_rows, merge=join)
    assert only_this_thread()


def test_the_error_of_a_step_is_its_own(place: Any) -> None:
    blocks = place(DENSE)
    with pytest.raises(ZeroDivisionError, match="of a step"):
        blocks.map(fail)
    with pytest.raises(ZeroDivisionError, match="of a step"):
        blocks.fold(fail, 0)
    assert only_this_thread()
    assert blocks.map(name_rows, merge=join)[-1][1] == N


@pytest.mark.parametrize("error", [DataFileError, clock.OutOfTimeError])
def test_an_error_while_reading_ends_the_thread_that_reads(error: type[BaseException]) -> None:
    rows = on_disk(replace(DENSE))
    read = rows.source.read

    def broken(part: int) -> Part:
        while part == 3 and error is clock.OutOfTimeError:
            clock.check()
        if part == 3:
            raise DataFileError("the file is gone")
        found: Part = read(part)
        return found

    rows.source.read = broken
    limit = 0.3 if error is clock.OutOfTimeError else 60
    for work in (rows.map, lambda step: rows.fold(step, 0)):
        with pytest.raises(error), clock.limited(limit):
            work(lambda block, *state: 0)
    assert only_this_thread()
    rows.source.read = read
    assert len(rows.map(name_rows, merge=join)) == 8


def test_a_worker_lost_while_reading_changes_no_bit(
    cluster: Cluster, tmp_path: Path, expected: Any
) -> None:
    source = replace(DENSE, deadly=4, once=str(tmp_path / "died"))
    blocks = on_dask(source, cluster.ready(), survey(DENSE)).with_loss(HalfRule(0.5))
    assert_same_bits(passes(blocks), expected["dense"])
    assert (tmp_path / "died").exists()


def test_a_part_that_kills_every_worker_is_named(cluster: Cluster) -> None:
    client, sizes = cluster.ready(), (500, 600, 700)
    with client_that_forgives_nothing(client):
        blocks = on_dask(Made(sizes, deadly=1), client, survey(Made(sizes)))
        with pytest.raises(DistributedFitError, match=r"block 0 of 1 \(rows 0 to 1799, part 0"):
            blocks.map(name_rows, merge=join)


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:8786", "192.0.2.1:8786", "ucx://far:1"])
def test_another_machine_needs_tls(address: str) -> None:
    with pytest.raises(ValueError, match="without TLS"):
        connect(address)


def test_connects_to_loopback(cluster: Cluster) -> None:
    assert connect(cluster.ready()) is cluster.client
    with connect(cluster.address) as client:
        assert client.nthreads()
    with pytest.raises(TypeError, match="address of a scheduler"):
        connect(7)


@pytest.mark.wide
def test_nothing_needs_dask_to_be_imported() -> None:
    code = """
import sys
class NoDask:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("dask", "distributed"):
            raise ImportError(name)
sys.meta_path.insert(0, NoDask())
import maxmargin, maxmargin.data, maxmargin.rows.on_dask
assert maxmargin.errors.DistributedFitError and maxmargin.SVCSearchCV and maxmargin.diagnose
try:
    maxmargin.rows.cluster.connect("tcp://127.0.0.1:1")
except ImportError as missing:
    assert "pip install dask distributed" in str(missing)
else:
    raise AssertionError
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
