"""Rows on disk: the same bits as in memory, within a bound of memory, whatever goes wrong."""

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import data
from maxmargin.errors import DataFileError
from maxmargin.loops.records import Loss
from maxmargin.rows import checkpoint
from maxmargin.rows.blocks import Block, RowsInMemory, join
from maxmargin.rows.on_dask import RowsOnDask
from maxmargin.rows.on_disk import Budget, RowsOnDisk, VectorOnDisk
from maxmargin.rows.request import BlockOptions
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.survey import Survey, merge_surveys, survey, survey_part
from maxmargin.runtime import clock
from maxmargin.runtime.atomic_write import write_atomically

N, D = 12_000, 47  # eight leaves
SMALL = 2_100_000  # bytes: a block is one leaf, and vectors go to files


class Cut(RowSource):
    """Rows of arrays in parts with given edges, each read as a copy."""

    kind = "cut"

    def __init__(
        self, X: Any, y: Any, weight: Any = None, parts: int = 3, memory: Any = None
    ) -> None:
        self.X, self.y, self.weight = X, y, weight
        self.edges = np.linspace(0, X.shape[0], parts + 1).astype(int).tolist()
        self.n_columns, self.dtype = X.shape[1], X.dtype
        self.sparse, self.labelled = bool(sp.issparse(X)), y is not None
        self.weighted = weight is not None
        self.options = BlockOptions(memory=memory)

    def __len__(self) -> int:
        return len(self.edges) - 1

    def describe(self, part: int) -> str:
        return f"part {part} (cut)"

    def read(self, part: int) -> Part:
        rows = slice(self.edges[part], self.edges[part + 1])
        weight = None if self.weight is None else self.weight[rows].copy()
        return Part(self.X[rows].copy(), self.y[rows], weight)


def rows_of(kind: str, n: int = N) -> Any:
    rng = np.random.default_rng(5)
    if kind == "csr":
        X = sp.random(n, 3 * D, density=0.3, format="csr", rng=rng, dtype=np.float64)
        return sp.csr_array(X)
    return rng.standard_normal((n, D)).astype(kind)


def labels_of(n: int = N) -> Any:
    return np.random.default_rng(6).choice([-3, 2, 9], n)


def opened(kind: str, parts: int, memory: Any = SMALL, weighted: bool = True) -> RowsOnDisk:
    X = rows_of(kind)
    weight = np.random.default_rng(7).uniform(0.5, 2.0, N) if weighted else None
    source = Cut(X, labels_of(), weight, parts, memory)
    return RowsOnDisk(source, survey(source), threads=2)


def in_memory(kind: str, loss: Loss | None = None) -> RowsInMemory:
    rows = RowsInMemory(rows_of(kind), loss, threads=2)
    rows.put("labels", np.searchsorted([-3, 2, 9], labels_of()))
    rows.put("weight", np.random.default_rng(7).uniform(0.5, 2.0, N))
    return rows


# Steps.


def score(block: Block, w: Any) -> tuple[float, Any, int]:
    at = slice(block.begin, block.end)
    found = block.X[at] @ w[: block.X.shape[1]]
    block.vectors["scores"][at] = found * block.vectors["weight"][at]
    labels = block.vectors["labels"]
    assert labels.dtype == np.int64
    assert block.vectors["weight"].dtype == np.float64
    return float(np.sin(found).sum()), block.X[at].T @ found, int(labels[at].sum())


def again(block: Block) -> tuple[float, float]:
    assert block.X is None or block.X.shape[0] >= block.end
    scores = block.vectors["scores"][block.begin : block.end]
    scores *= 1.1
    return float(scores.sum()), float(np.square(scores).sum())


def extent(block: Block) -> list[tuple[int, int]]:
    return [(block.first, block.end - block.begin)]


def compose(block: Block, state: Any) -> Any:
    for i in range(block.begin, block.end, 97):
        row = block.X[i : i + 1]
        first = row.toarray().ravel() if sp.issparse(row) else row[0]
        state = 0.9 * state + first * block.vectors["labels"][i]
        block.vectors["seen"][i] = state[0]
    return state


def hinge(labels: Any, weight: Any) -> Loss:
    sign = np.where(labels == 1, 1.0, -1.0)
    zero = np.zeros(len(sign))
    return Loss(sign, np.minimum(sign * weight, 0), np.maximum(sign * weight, 0), zero, 0.0)


def loss_sums(block: Block) -> tuple[float, float]:
    assert block.loss is not None
    at = slice(block.begin, block.end)
    return float(block.loss.high[at].sum()), float(block.loss.target[at].sum())


def put_high(block: Block) -> None:
    assert block.loss is not None
    at = slice(block.begin, block.end)
    block.vectors["scores"][at] = block.loss.high[at]


# ------------------------------------------------------------------- surveys


@pytest.mark.parametrize("parts", [1, 3, 7, 50])
@pytest.mark.parametrize("kind", ["float32", "float64", "csr"])
def test_a_survey_knows_what_numpy_knows_of_all_rows(kind: str, parts: int) -> None:
    X, y = rows_of(kind), labels_of()
    weight = np.random.default_rng(7).uniform(0.5, 2.0, N)
    source = Cut(X, y, weight, parts)
    found = survey(source)
    dense = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    assert found.n == N
    assert found.rows.tolist() == np.diff(source.edges).tolist()
    assert found.size == (X.nnz if sp.issparse(X) else X.size)
    assert found.classes.tolist() == [-3, 2, 9]
    assert found.counts.tolist() == [int((y == label).sum()) for label in (-3, 2, 9)]
    np.testing.assert_allclose(found.weights, [weight[y == c].sum() for c in (-3, 2, 9)])
    np.testing.assert_allclose(found.total_weight, weight.sum(), rtol=1e-14)
    np.testing.assert_allclose(N * found.columns.means, dense.sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(found.columns.variances, dense.var(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.largest_square, np.square(dense).sum(axis=1).max())
    assert found.columns.largest_value == np.abs(dense[np.square(dense).sum(axis=1).argmax()]).max()
    assert found.first_row.tolist() == dense[0].tolist()
    assert len(pickle.dumps(found)) < 20_000
    merged = merge_surveys(source, (survey_part(source, *each) for each in enumerate(source)))
    assert pickle.dumps(merged) == pickle.dumps(found)


def test_a_survey_of_targets_knows_their_range() -> None:
    y = np.random.default_rng(0).standard_normal(N) * 3 + 1e6
    found = survey(Cut(rows_of("float32"), y, parts=7), targets=True).targets
    assert found is not None
    assert (found.low, found.high) == (y.min(), y.max())
    np.testing.assert_allclose([found.mean, found.std], [y.mean(), y.std()], rtol=1e-11)


@pytest.mark.parametrize(
    "labels",
    [
        np.where(np.arange(50) == 49, "z" * 9, "a"),
        np.where(np.arange(50) == 49, 7, -1),
        np.arange(50) == 49,
        np.where(np.arange(50) == 49, 2.0, 1.0),
    ],
)
def test_a_class_of_the_last_part_alone_is_found(labels: Any) -> None:
    found = survey(Cut(np.ones((50, 2)), labels, parts=10))
    expected = np.unique(labels)
    assert found.classes.tolist() == expected.tolist()
    assert found.classes.dtype == expected.dtype
    assert sorted(found.counts.tolist()) == [1, 49]


def spoil_x(value: float) -> Callable[[Cut], None]:
    def spoil(source: Cut) -> None:
        source.X[31, 1] = value

    return spoil


def spoil_y(value: Any) -> Callable[[Cut], None]:
    def spoil(source: Cut) -> None:
        source.y = source.y.astype(float)
        source.y[31] = value

    return spoil


def spoil_weight(value: float) -> Callable[[Cut], None]:
    def spoil(source: Cut) -> None:
        source.weight[31] = value

    return spoil


def change(how: Callable[[Part], Part]) -> Callable[[Cut], None]:
    def spoil(source: Cut) -> None:
        read = source.read
        source.read = lambda part: how(read(part)) if part == 3 else read(part)  # type: ignore

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_x(np.nan), r"column 1 has nan in row 1"),
        (spoil_x(np.inf), r"column 1 has inf in row 1"),
        (spoil_y(np.nan), r"the label is nan in row 1"),
        (spoil_y(0.5), r"y \(row 1: 0.5\) holds fractions"),
        (spoil_weight(np.nan), r"the weight in row 1 is nan"),
        (spoil_weight(-1), r"the weight in row 1 is -1"),
        (spoil_weight(1e200), r"weight contains 1e\+200 \(row 1\)"),
        (change(lambda part: part._replace(X=part.X[:, :1])), r"1 columns, but others have 2"),
        (
            change(lambda part: part._replace(y=part.y.astype(str))),
            r"labels are strings, but those of part 0 \(cut\) are numbers",
        ),
        (change(lambda part: part._replace(y=None)), r"it has no labels, but others have"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused_and_the_part_is_named(
    spoil: Callable[[Cut], None], message: str
) -> None:
    source = Cut(np.ones((50, 2)), np.arange(50) % 2, np.ones(50), parts=5)
    spoil(source)
    with pytest.raises(ValueError, match=rf"^part 3 \(cut\): .*{message}"):
        survey(source)
    assert only_this_thread()


def test_sparse_nan_is_named_by_row_and_column() -> None:
    X = sp.csr_array(np.eye(20))
    X.data[13] = np.nan
    with pytest.raises(ValueError, match=r"^part 1 \(cut\): column 13 has nan in row 3"):
        survey(Cut(X, np.arange(20) % 2, parts=2))


def test_rows_that_overflow_are_measured_not_refused() -> None:
    X = np.ones((50, 2))
    X[17, 1] = 1e200
    found = survey(Cut(X, np.arange(50) % 2))
    assert found.largest_square == np.inf
    assert (found.columns.largest_value, found.columns.largest_column) == (1e200, 1)


def test_parts_without_rows_do_not_count() -> None:
    source = Cut(np.ones((4, 2)), np.array([1, 2, 1, 2]), parts=11)
    found = survey(source)
    assert found.n == 4
    assert found.classes.tolist() == [1, 2]
    assert RowsOnDisk(source, found).map(extent, merge=join) == [(0, 4)]
    with pytest.raises(ValueError, match="no rows"):
        survey(Cut(np.ones((0, 2)), np.ones(0)))


# ------------------------------------------------------------------- passes


@pytest.mark.parametrize("memory", [SMALL, 4_000_000, None])
@pytest.mark.parametrize("parts", [1, 3, 7, 50])
@pytest.mark.parametrize("kind", ["float32", "float64", "csr"])
def test_passes_give_the_bits_of_memory(kind: str, parts: int, memory: int | None) -> None:
    here, there = in_memory(kind), opened(kind, parts, memory)
    w = np.random.default_rng(1).standard_normal(3 * D)
    for expected, found in zip(
        here.map(score, w, writes=("scores",)),
        there.map(score, w, writes=("scores",)),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    rows_unread = there.map(again, writes=("scores",), reads_rows=False, numbers=N)
    assert rows_unread == here.map(again, writes=("scores",))
    np.testing.assert_array_equal(there.vector("scores").array(), here.vector("scores"))
    assert there.map(extent, merge=join) == here.map(extent, merge=join)
    start = np.zeros(here.d)
    np.testing.assert_array_equal(
        there.fold(compose, start, writes=("seen",)), here.fold(compose, start, writes=("seen",))
    )
    assert there.vector("seen").array()[::97][0] == here.vector("seen")[::97][0]
    assert (there.n, there.d, there.numbers) == (here.n, here.d, here.numbers)
    assert only_this_thread()


def test_blocks_are_aligned_runs_of_leaves_of_at_most_a_quarter_of_the_memory() -> None:
    small, large = opened("float64", 7, SMALL), opened("float64", 7, 10_000_000)
    leaves = [first for first, _ in small.map(extent, merge=join)]
    assert len(small.edges) - 1 == len(leaves) == 8
    assert large.edges.tolist() == [*leaves[::2], N]
    assert large.block_bytes <= 10_000_000 / 4
    assert not large.keeps_rows


def test_too_little_memory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"memory=1050000 bytes is too little.*Set memory to"):
        opened("float64", 3, 1_050_000)


def test_rows_that_fit_are_read_once() -> None:
    rows = opened("float64", 7, None)
    assert rows.keeps_rows
    assert rows.bytes_read == 0
    rows.map(extent, merge=join)
    once = rows.bytes_read
    assert once == N * (8 * D + 8 + 8)
    rows.map(extent, merge=join)
    rows.with_loss(hinge).map(loss_sums)
    assert rows.bytes_read == once
    assert rows.passes == 3


def test_rows_that_do_not_fit_are_read_in_every_pass() -> None:
    rows = opened("float64", 7)
    for times in (1, 2, 3):
        rows.map(extent, merge=join)
        assert rows.bytes_read == times * N * (8 * D + 8 + 8)


@pytest.mark.parametrize("kind", ["array", "npy"])
@pytest.mark.parametrize("memory", [SMALL, None])
def test_labels_are_known_in_the_first_pass(kind: str, memory: Any, tmp_path: Path) -> None:
    X, y = rows_of("float64"), labels_of()
    given: Any = (X, y)
    if kind == "npy":
        given = (tmp_path / "X.npy", tmp_path / "y.npy")
        np.save(given[0], X)
        np.save(given[1], y)
    source = mm.data.open(*given, memory=memory, rows=1700)
    w = np.random.default_rng(3).standard_normal(3 * D)
    found = RowsOnDisk(source, survey(source)).map(score, w, writes=("scores",))
    assert found[2] == np.searchsorted([-3, 2, 9], y).sum()


@pytest.mark.parametrize("kind", ["float32", "float64", "csr"])
def test_what_is_slow_to_read_is_read_once(kind: str) -> None:
    rows = opened(kind, 7)
    w = np.random.default_rng(3).standard_normal(3 * D)
    expected = rows.map(score, w, writes=("scores",))
    rows.source.slow = True
    spooled = RowsOnDisk(rows.source, rows.survey)
    read = []
    for _ in range(3):
        found = spooled.map(score, w, writes=("scores",))
        assert found[0] == expected[0]
        assert np.array_equal(found[1], expected[1])
        read.append(spooled.bytes_read)
    assert read[0] == read[2] > 0


@pytest.mark.parametrize("parts", [1, 3, 50])
def test_rows_of_one_array_are_not_copied(parts: int) -> None:
    X = rows_of("float64")
    source = mm.data.open(X, labels_of(), rows=-(-N // parts))

    def same(block: Block, X: Any) -> list[bool]:
        rows = X[block.first : block.first + block.end - block.begin]
        at = slice(block.begin, block.end)
        return [np.shares_memory(block.X, X) and np.array_equal(block.X[at], rows)]

    assert all(RowsOnDisk(source, survey(source)).map(same, X, merge=join))


def test_wide_indices_become_narrow() -> None:
    X = rows_of("csr")
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for parts in (1, 7):
        source = Cut(X, labels_of(), parts=parts)
        rows = RowsOnDisk(source, survey(source))
        found = rows.map(lambda block: [block.X.indices.dtype], merge=join)
        assert set(found) == {np.dtype(np.int32)}
        assert X.indices.dtype == np.int64


def test_targets_are_labels_of_regression() -> None:
    y = np.random.default_rng(0).standard_normal(N)
    source = Cut(rows_of("float32"), y, parts=7, memory=SMALL)
    rows = RowsOnDisk(source, survey(source, targets=True), regression=True)
    np.testing.assert_array_equal(rows.vector("labels").array(), y)
    np.testing.assert_array_equal(rows.vector("weight").array(), np.ones(N))


def test_many_classes_have_their_numbers() -> None:
    y = np.array([f"class {i % 1000:04}" for i in range(N)])
    source = Cut(rows_of("float32"), y, parts=7, memory=SMALL)
    found = RowsOnDisk(source, survey(source)).vector("labels").array()
    np.testing.assert_array_equal(found, np.arange(N) % 1000)
    assert found.dtype == np.int64


@pytest.mark.parametrize("memory", [SMALL, None])
def test_sources_of_all_kinds_give_the_bits_of_memory(tmp_path: Path, memory: int | None) -> None:
    X, y = rows_of("float64"), labels_of()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    chunks = [(X[i : i + 700], y[i : i + 700]) for i in range(0, N, 700)]
    w = np.random.default_rng(1).standard_normal(D)
    expected = RowsInMemory(X).map(dot, w, writes=("scores",))
    for source in (
        data.open(X, y, rows=999, memory=memory),
        data.open(tmp_path / "X.npy", tmp_path / "y.npy", rows=1001, memory=memory),
        data.open(lambda: iter(chunks), memory=memory),
    ):
        rows = RowsOnDisk(source, survey(source))
        for _ in range(2):
            found = rows.map(dot, w, writes=("scores",))
            assert found[0] == expected[0]
            np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_array_equal(rows.vector("labels").array(), np.searchsorted([-3, 2, 9], y))


# ------------------------------------------------------------------- vectors


@pytest.mark.parametrize("memory", [SMALL, None])
def test_old_vectors_live_on_in_handles(memory: int | None) -> None:
    rows = opened("float64", 7, memory)
    w = np.ones(3 * D)
    rows.map(score, w, writes=("scores",))
    old = rows.vector("scores")
    before = old.array().copy()
    rows.renew("scores")
    rows.map(score, 2 * w, writes=("scores",))
    np.testing.assert_array_equal(old.array(), before)
    np.testing.assert_array_equal(rows.vector("scores").array(), 2 * before)
    rows.put("scores", old)
    np.testing.assert_array_equal(rows.vector("scores").array(), before)
    assert len(old) == N
    rows.put("scores", before + 1)
    total = rows.map(again, writes=("scores",), reads_rows=False)[0]
    np.testing.assert_allclose(total, 1.1 * (before + 1).sum())
    with pytest.raises(ValueError, match="3 numbers, but there are 12000 rows"):
        rows.put("scores", np.zeros(3))


def test_vectors_beyond_the_memory_are_in_files_that_vanish(tmp_path: Path) -> None:
    rows = opened("float64", 7)
    budget = rows._read.budget
    budget.folder = tmp_path / "scratch"
    rows.map(extent, merge=join)
    names, held = tuple(f"v{i}" for i in range(9)), budget.used

    def fill(block: Block) -> None:
        for i, name in enumerate(names):
            block.vectors[name][block.begin : block.end] = i

    rows.map(fill, writes=names, reads_rows=False)
    in_files = [name for name in names if rows.vector(name)._array is None]
    assert len(in_files) > 3
    assert budget.used <= budget.limit
    assert [float(rows.vector(name).array().mean()) for name in names] == list(range(9))
    rows.put("flags", np.arange(3 * N).reshape(N, 3) % 2 == 0)
    assert rows.vector("flags").rows(5, 7).tolist() == [[False, True, False], [True, False, True]]
    assert list((tmp_path / "scratch").iterdir()) == []  # they have no name
    rows.renew(*names, "flags")
    gc.collect()
    assert budget.used == held


def test_a_full_disk_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="set checkpoint= to a folder with enough space"):
        VectorOnDisk((9,), np.float64, Budget(0, None))


@pytest.mark.parametrize("memory", [SMALL, 4_000_000, None])
def test_each_loss_has_vectors_of_its_own(memory: int | None) -> None:
    rows = opened("float64", 7, memory)
    labels, weight = rows.vector("labels").array(), rows.vector("weight").array()
    one, other = rows.with_loss(hinge), rows.with_loss(lambda y, w: hinge(2 - y, w))
    for view, loss in ((one, hinge(labels, weight)), (other, hinge(2 - labels, weight))):
        here = in_memory("float64", loss)
        for _ in range(2):
            assert view.map(loss_sums, reads_rows=False) == here.map(loss_sums)
        view.map(put_high, writes=("scores",))
        np.testing.assert_array_equal(view.vector("scores").array(), loss.high)
    np.testing.assert_array_equal(one.vector("scores").array(), hinge(labels, weight).high)
    assert "scores" not in rows.vectors


# ------------------------------------------------------------------- checkpoints


def test_vectors_are_restored_whatever_the_blocks(tmp_path: Path) -> None:
    rows = opened("float64", 7)
    w = np.random.default_rng(1).standard_normal(3 * D)
    rows.map(score, w, writes=("scores",))
    rows.put("flags", np.arange(N) % 3 == 0)
    rows.save(tmp_path / "saved", ("scores", "flags"), {"w": w, "step": 3})
    for memory in (SMALL, 4_000_000, None):
        later = opened("float64", 3, memory)
        later.restore(tmp_path / "saved")
        state: Any = later.saved_state(tmp_path / "saved")
        np.testing.assert_array_equal(state["w"], w)
        assert int(state["step"]) == 3
        for name in ("scores", "flags"):
            expected = rows.vector(name).array()
            np.testing.assert_array_equal(later.vector(name).array(), expected)
            assert later.vector(name).array().dtype == expected.dtype
        later.save(tmp_path / "saved", ("scores",), {"step": 4})
        rows.save(tmp_path / "saved", ("scores", "flags"), {"w": w, "step": 3})
    left = later.saved_state(tmp_path / "saved")
    assert left is not None
    assert int(left["step"]) == 3
    assert later.saved_state(tmp_path / "none") is None
    # Of each set but the last all files are gone.
    assert len(list((tmp_path / "saved").iterdir())) == len(rows.edges) - 1 + 2


def test_a_fit_on_disk_and_one_on_a_cluster_go_on_from_each_other(
    cluster: Any, tmp_path: Path
) -> None:
    source = mm.data.open(rows_of("float64"), labels_of(), rows=700, memory=SMALL)
    disk = RowsOnDisk(source, survey(source))
    remote = RowsOnDask(source, disk.survey, cluster.ready())
    for one, other in ((disk, remote), (remote, disk)):
        one.put("v", np.random.default_rng(1).normal(size=N))
        one.save(tmp_path, ("v",), {"step": 7})
        other.restore(tmp_path)
        np.testing.assert_array_equal(other.vector("v").array(), one.vector("v").array())
        assert int((other.saved_state(tmp_path) or {})["step"]) == 7


def test_a_set_that_was_not_finished_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = opened("float64", 7)
    write = write_atomically
    for number in range(6):
        rows.put("v", np.full(N, float(number)))
        rows.save(tmp_path, ("v",), {"number": number})
        left = 1 + number

        def interrupted(path: Any, writer: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            write(path, writer)

        monkeypatch.setattr(checkpoint, "write_atomically", interrupted)
        rows.put("v", np.full(N, -1.0))
        with pytest.raises(KeyboardInterrupt):
            rows.save(tmp_path, ("v",), {"number": -1})
        monkeypatch.setattr(checkpoint, "write_atomically", write)
        later = opened("float64", 7)
        later.restore(tmp_path)
        assert int(later.saved_state(tmp_path)["number"]) == number  # type: ignore[index]
        assert (later.vector("v").array() == number).all()


def test_a_killed_process_leaves_a_complete_set(tmp_path: Path) -> None:
    run_in_child(
        f"""
        import itertools, os, signal
        rows = opened("float64", 3)
        for number in range(2):
            rows.put("v", np.full(N, float(number)))
            rows.save({str(tmp_path)!r}, ("v",), {{"number": number}})
        replace, count = os.replace, itertools.count()
        def killed(*paths):
            if next(count) == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            replace(*paths)
        os.replace = killed
        rows.put("v", np.full(N, 2.0))
        rows.save({str(tmp_path)!r}, ("v",), {{"number": 2}})
        """,
        expected=-signal.SIGKILL,
    )
    later = opened("float64", 7)
    later.restore(tmp_path)
    assert int(later.saved_state(tmp_path)["number"]) == 1  # type: ignore[index]
    assert (later.vector("v").array() == 1).all()


def test_damaged_and_foreign_sets_are_refused(tmp_path: Path) -> None:
    rows = opened("float64", 7)
    with pytest.raises(FileNotFoundError, match="holds no vectors"):
        rows.restore(tmp_path / "none")
    rows.put("v", np.ones(N))
    rows.save(tmp_path, ("v",))
    listed = tmp_path / "vectors.json"
    complete = listed.read_text()
    listed.write_text(json.dumps({**json.loads(complete), "firsts": [0, 5]}))
    with pytest.raises(DataFileError, match="saved for 5 rows, but there are 12000"):
        rows.restore(tmp_path)
    listed.write_text(complete[:40])
    with pytest.raises(DataFileError, match="damaged"):
        rows.restore(tmp_path)
    listed.write_text(complete)
    (file,) = tmp_path.glob("vectors-*-4500.npz")
    file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(DataFileError, match=r"-4500.npz: this file of a checkpoint"):
        rows.restore(tmp_path)


# ------------------------------------------------------------------- what goes wrong


def only_this_thread() -> bool:
    return not any(each.name.startswith("maxmargin-read-ahead") for each in threading.enumerate())


def test_an_error_while_reading_reaches_the_caller() -> None:
    rows = opened("float64", 7)
    rows.map(extent, merge=join)
    read = rows.source.read

    def broken(part: int) -> Part:
        if part == 5:
            raise DataFileError("part 5 (cut): the file is gone")
        found: Part = read(part)
        return found

    rows.source.read = broken
    with pytest.raises(DataFileError, match=r"^part 5 \(cut\): the file is gone"):
        rows.map(extent, merge=join)
    with pytest.raises(DataFileError, match=r"^part 5 \(cut\): the file is gone"):
        rows.fold(compose, np.zeros(D), writes=("seen",))
    assert only_this_thread()
    rows.source.read = read
    assert len(rows.map(extent, merge=join)) == 8


def test_rows_that_changed_are_refused() -> None:
    rows = opened("float64", 7)
    rows.map(extent, merge=join)
    rows.source.edges[3] += 1
    with pytest.raises(DataFileError, match=r"^part 2 \(cut\): it has 1715 rows .* had 1714"):
        rows.map(extent, merge=join)


def test_labels_that_changed_are_refused() -> None:
    rows = opened("float64", 7)
    rows.source.y[-1] = 5
    with pytest.raises(DataFileError, match=r"^part 6 \(cut\): y contains 5"):
        rows.map(extent, merge=join)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_in_a_step_ends_the_pass_and_its_thread(error: type[BaseException]) -> None:
    rows = opened("float64", 7)

    def failing(block: Block) -> None:
        if block.first > N // 2:
            raise error

    with pytest.raises(error):
        rows.map(failing)
    assert only_this_thread()


def test_a_time_limit_ends_reading_too() -> None:
    rows = opened("float64", 7)
    read, asked = rows.source.read, threading.Event()

    def endless(part: int) -> Part:
        asked.set()
        while part == 3:
            clock.check()
        found: Part = read(part)
        return found

    rows.source.read = endless
    with pytest.raises(clock.OutOfTimeError), clock.limited(0.3):
        rows.map(extent, merge=join)
    assert asked.is_set()
    assert only_this_thread()


def test_ctrl_c_ends_a_pass_that_waits_for_rows() -> None:
    rows = opened("float64", 7)
    read = rows.source.read

    def interrupting(part: int) -> Part:
        if part == 3:
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                clock.check()
        found: Part = read(part)
        return found

    rows.source.read = interrupting
    with pytest.raises(KeyboardInterrupt):
        rows.map(extent, merge=join)
    assert only_this_thread()


# ------------------------------------------------------------------- memory


class Generated(RowSource):
    """Rows made when they are asked for, of which there may be more than any disk holds."""

    kind = "generated"

    def __init__(self, size: int, memory: Any, d: int = 50, part_bytes: int = 2_000_000) -> None:
        self.n_columns = d
        self.each = part_bytes // (8 * d)
        self.count = max(1, size // part_bytes)
        self.options = BlockOptions(memory=memory)
        self.labelled = True
        self.normal = np.random.default_rng(0).standard_normal((self.each, d))

    def __len__(self) -> int:
        return self.count

    def read(self, part: int) -> Part:
        X = self.normal * (1.0 + 1e-3 * (part % 89))
        labels = (self.normal[:, 0] + 0.5 * self.normal[:, part % 7 + 1] > 0).astype(np.int64)
        return Part(X, labels, None)


def dot(block: Block, w: Any) -> tuple[float, Any]:
    at = slice(block.begin, block.end)
    block.vectors["scores"][at] = block.X[at] @ w
    return float(block.vectors["scores"][at].sum()), block.X[at].T @ block.vectors["scores"][at]


def run_in_child(code: str, expected: int = 0) -> str:
    """Run code after the names of this module, alone in a process with two threads."""
    names = "import numpy as np\nfrom tests.rows.test_on_disk import *\n"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "2"}
    done = subprocess.run(
        [sys.executable, "-c", names + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.returncode == expected, done.stderr
    return done.stdout


def go_over(source: RowSource, passes: int = 2) -> tuple[Survey, RowsOnDisk]:
    """Survey rows and multiply them, as fits do."""
    known = survey(source)
    rows = RowsOnDisk(source, known, threads=2)
    for _ in range(passes):
        rows.map(dot, np.ones(source.n_columns), writes=("scores",))
    return known, rows


def peak() -> int:
    """Return the most bytes of memory that this process ever had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux does")
def test_memory_is_bounded_by_three_blocks() -> None:
    out = run_in_child(
        """
        go_over(Generated(8_000_000, "64MB"))  # imports and compiled loops
        before = peak()
        source = Generated(20 * 64_000_000, "64MB")
        known, rows = go_over(source, passes=1)
        print(known.n * 50 * 8, peak() - before, rows.block_bytes, rows.bytes_read)
        """
    )
    size, grown, block, read = map(int, out.split())
    assert size >= 1_279_000_000
    assert read > size
    assert grown <= 3 * block
    assert grown <= 64_000_000
