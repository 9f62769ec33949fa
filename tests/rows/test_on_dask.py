"""Rows on Dask: the bits of rows in memory, whatever the workers do."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.errors import DataFileError, DistributedFitError
from maxmargin.loops.records import Loss
from maxmargin.rows.blocks import RowsInMemory, join
from maxmargin.rows.cluster import connect
from maxmargin.rows.on_dask import RowsOnDask, load_parts, survey_on_dask
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.survey import survey
from tests.rows.conftest import ROOT, Cluster, KillAtFile, client_that_forgives_nothing

pytest.importorskip("distributed")


@dataclass(frozen=True)
class Made(RowSource):
    """A source of rows made by their numbers: parts of uneven lengths."""

    rows: tuple[int, ...]
    n_columns: int = 30
    sparse: bool = False
    wrong: int = -1  # the part that cannot be read
    error: type[Exception] = DataFileError
    deadly: int = -1  # the part that ends the process which reads it …
    once: str = ""  # … unless this file is there, which is then made
    labelled, weighted = True, True

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, part: int) -> Part:
        if part == self.wrong:
            raise self.error("it is broken")
        if part == self.deadly and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os._exit(1)
        random = np.random.default_rng([7, part])
        X = random.normal(size=(self.rows[part], self.n_columns))
        if self.sparse:
            X *= random.random(X.shape) < 0.4
        y = np.where(random.random(len(X)) < 0.3, "no", np.where(X[:, 0] > 0, "yes", "maybe"))
        return Part(sp.csr_array(X) if self.sparse else X, y, 1 + random.random(len(X)))

    def describe(self, part: int) -> str:
        return f"part {part} (made)"

    def bytes_of(self, part: int) -> int:
        return 8 * self.rows[part] * self.n_columns

    def identity(self) -> Any:
        return repr(self)


@dataclass(frozen=True)
class Targets(Made):
    """The same with targets, and without weights."""

    weighted = False

    def read(self, part: int) -> Part:
        X = super().read(part).X
        return Part(X, X[:, 0] + 1, None)


SOURCES = {
    "dense": Made((5000, 1, 0, 7000, 4321, 3000)),
    "sparse": Made((9000, 3000, 8000, 2), n_columns=40, sparse=True),
}


class HalfRule(NamedTuple):
    factor: float

    def __call__(self, labels: Any, weight: Any) -> Loss:
        target = np.where(labels == 1, 1.0, -1.0)
        return Loss(target, 0 * weight, self.factor * weight, weight, 0.0)


def in_memory(source: Made, rule: Any = None) -> RowsInMemory:
    parts = [source.load(part) for part in range(len(source.rows))]
    X = [part.X for part in parts]
    rows = RowsInMemory(sp.csr_array(sp.vstack(X)) if source.sparse else np.concatenate(X))
    y, weight = (np.concatenate(found) for found in list(zip(*parts, strict=True))[1:])
    labels = np.searchsorted(np.unique(y), y)
    rows.put("labels", labels)
    rows.put("weight", weight)
    rows.loss = rule(labels, weight) if rule else None
    return rows


# ------------------------------------------------------------------- steps


def score(block: Any, w: Any) -> tuple[float, Any]:
    own = slice(block.begin, block.end)
    block["scores"][own] = block.X[own] @ w
    hinge = np.maximum(0, 1 - block.loss.target[own] * block["scores"][own]) * block["weight"][own]
    return float(hinge.sum()), block.X[own].T @ hinge


def move(block: Any, step: float) -> Any:
    own = slice(block.begin, block.end)
    assert block.X is None or block.X.shape[0] >= block.end
    block["scores"][own] *= 1 + step
    block["duals"][own] = block.loss.high[own] * step + block["scores"][own]
    return np.array([block["duals"][own].sum(), block["labels"][own].sum()])


def look(block: Any) -> Any:
    own = slice(block.begin, block.end)
    return block["scores"][own].sum(), block["weight"][own].sum()


def name_rows(block: Any) -> list[tuple[int, int]]:
    return [(block.first, block.first + block.end - block.begin)]


def walk(block: Any, state: Any, rate: float) -> Any:
    own = slice(block.begin, block.end)
    state *= 0.9  # in place: a state that travels is the step's own
    state += (
        rate
        * np.asarray(block.X[own].sum(axis=0)).ravel()
        * (block["weight"][own].sum() * state[-1])
    )
    block["seen"][own] = state[0]
    return state


def signal_row(block: Any, w: Any, row: int, path: str) -> tuple[float, Any]:
    """Like score, but where a row is the process asks to be killed, once."""
    if block.first <= row < block.first + block.end - block.begin and not _was_killed(path):
        Path(path).with_suffix(".new").write_text(str(os.getpid()))
        Path(path).with_suffix(".new").rename(path)
        time.sleep(60)
    return score(block, w)


def count_calls(block: Any, folder: str) -> float:
    own = slice(block.begin, block.end)
    with (Path(folder) / f"{block.first}.calls").open("a") as file:
        file.write("x")
    block["steps"][own] += 1
    return float(block["steps"][own].sum())


def add_columns(block: Any) -> Any:
    return block.X[block.begin : block.end].sum(axis=0)


def fail(block: Any, *state: Any) -> None:
    raise ZeroDivisionError("of a step")


def _was_killed(path: str) -> bool:
    return Path(path).with_suffix(".done").exists()


def passes(blocks: Any, kill: Any = None) -> list[Any]:
    """Return what a series of all kinds of passes gives; ``kill`` = (pass, row, path)."""
    w, found = np.linspace(-1, 1, blocks.d), []
    for number in range(4):
        if kill and kill[0] == number:
            found.append(blocks.map(signal_row, w, *kill[1:], writes=("scores",)))
        else:
            found.append(blocks.map(score, w, writes=("scores",)))
        w = w - 1e-6 * found[-1][1]
        writes = ("scores", "duals")
        found.append(blocks.map(move, 0.25, writes=writes, reads_rows=False, numbers=10.0))
    kept = blocks.vector("scores")
    blocks.renew("scores")
    found.append(blocks.map(score, -w, writes=("scores",)))
    found.append(_whole(blocks.vector("scores")))
    blocks.put("scores", kept)
    found.append(blocks.map(look, reads_rows=False))
    found.append(blocks.fold(walk, np.ones(blocks.d), 1e-6, writes=("seen",)))
    found.append(blocks.map(name_rows, merge=join))
    blocks.put("scores", np.arange(blocks.n) / 7)
    found.append(blocks.map(look, reads_rows=False))
    return [
        *found,
        *(_whole(blocks.vector(name)) for name in ("scores", "duals", "seen", "labels")),
    ]


def _whole(vector: Any) -> Any:
    return vector.array() if hasattr(vector, "array") else vector.copy()


def assert_same_bits(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_bits(a, b)
    else:
        np.testing.assert_array_equal(one, other)


def on_dask(source: Made, client: Any, **options: Any) -> RowsOnDask:
    return RowsOnDask(source, survey(source), client, **options)


# ------------------------------------------------------------------- equality


@pytest.fixture(scope="module")
def expected() -> dict[str, list[Any]]:
    """Return what passes give over rows in memory."""
    return {kind: passes(in_memory(SOURCES[kind], HalfRule(0.5))) for kind in SOURCES}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_gives_the_bits_of_rows_in_memory(cluster: Cluster, workers: int, expected: Any) -> None:
    client = cluster.ready(workers)
    for kind, source in SOURCES.items():
        blocks = on_dask(source, client).with_loss(HalfRule(0.5))
        assert_same_bits(passes(blocks), expected[kind])
        assert blocks.passes == 13
        assert blocks.bytes_read > 7 * 8 * blocks.numbers


def test_losses_have_vectors_of_their_own(cluster: Cluster) -> None:
    source = SOURCES["dense"]
    rows = on_dask(source, cluster.ready())
    one, other = rows.with_loss(HalfRule(1.0)), rows.with_loss(HalfRule(2.0))
    w = np.ones(rows.d)
    for blocks in (one, other):
        blocks.map(score, w, writes=("scores",))
    one.map(move, 0.5, writes=("scores", "duals"), reads_rows=False)
    kept = other.vector("scores").array()
    assert_same_bits(one.vector("scores").array(), 1.5 * kept)
    with pytest.raises(KeyError):
        other.vector("duals")
    other.put("copy", one.vector("scores"))
    assert_same_bits(other.vector("copy").array(), 1.5 * kept)
    with pytest.raises(ValueError, match="copy has 3 numbers for"):
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
    source = SOURCES["dense"]
    blocks = on_dask(source, cluster.ready()).with_loss(HalfRule(0.5))
    assert "of 71 (rows" in blocks.describe(0)
    assert_same_bits(passes(blocks), passes(in_memory(source, HalfRule(0.5))))


def test_survey_and_parts_of_workers(cluster: Cluster) -> None:
    client, source = cluster.ready(), SOURCES["sparse"]
    parts = load_parts(source, client)
    found, known = survey_on_dask(source, client, parts=parts), survey(source)
    for name in ("rows", "numbers", "classes", "counts", "weights", "first_row"):
        assert_same_bits(getattr(found, name), getattr(known, name))
    assert_same_bits(tuple(found.columns), tuple(known.columns))
    blocks = RowsOnDask(source, found, client, parts=parts)
    assert_same_bits(
        blocks.map(name_rows, merge=join), in_memory(source).map(name_rows, merge=join)
    )


def test_targets_are_labels_of_regression(cluster: Cluster) -> None:
    source = Targets((300, 200))
    client = cluster.ready()
    seen = survey_on_dask(source, client, targets=True)
    blocks = RowsOnDask(source, seen, client, regression=True)
    y = np.concatenate([source.load(0).y, source.load(1).y])
    assert_same_bits(blocks.vector("labels").array(), y)
    assert_same_bits(blocks.vector("weight").array(), np.ones(500))


# ------------------------------------------------------------------- workers that die


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_worker_changes_no_bit(
    cluster: Cluster, tmp_path: Path, expected: Any, seed: int
) -> None:
    random = np.random.default_rng(seed)
    kind = ("dense", "sparse")[seed % 2]
    blocks = on_dask(SOURCES[kind], cluster.ready()).with_loss(HalfRule(0.5))
    moment = int(random.integers(4)), int(random.integers(blocks.n)), str(tmp_path / "kill")
    with KillAtFile(cluster, tmp_path / "kill") as killer:
        found = passes(blocks, moment)
    assert killer.killed == 1
    assert_same_bits(found, expected[kind])


def test_a_worker_lost_while_reading_changes_no_bit(
    cluster: Cluster, tmp_path: Path, expected: Any
) -> None:
    well = SOURCES["dense"]
    source = replace(well, deadly=4, once=str(tmp_path / "died"))
    blocks = RowsOnDask(source, survey(well), cluster.ready()).with_loss(HalfRule(0.5))
    assert_same_bits(passes(blocks), expected["dense"])
    assert (tmp_path / "died").exists()


def test_what_was_saved_is_where_lost_vectors_begin(cluster: Cluster, tmp_path: Path) -> None:
    source, shared = SOURCES["dense"], tmp_path / "checkpoint"
    blocks = on_dask(source, cluster.ready()).with_loss(HalfRule(0.5))
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


def test_other_blocks_restore_what_was_saved(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SOURCES["dense"]
    rows = on_dask(source, cluster.ready())
    numbers = np.random.default_rng(3).normal(size=rows.n)
    rows.put("duals", numbers)
    rows.put("signs", np.sign(numbers).astype(np.int64))
    rows.save(tmp_path, ("duals", "signs"))
    monkeypatch.setattr("maxmargin.rows.on_dask._BLOCK_NUMBERS", 1)
    other = on_dask(source, cluster.client)
    assert other.describe(0) != rows.describe(0)
    other.restore(tmp_path)
    assert_same_bits(other.vector("duals").array(), numbers)
    assert other.vector("signs").array().dtype == np.int64
    with pytest.raises(DataFileError, match="saved for 19322 rows, but there are 50"):
        on_dask(Made((50,)), cluster.client).restore(tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no vectors"):
        other.restore(tmp_path / "elsewhere")


# ------------------------------------------------------------------- errors


@pytest.mark.parametrize("error", [DataFileError, ValueError])
def test_a_part_that_cannot_be_read_is_named(cluster: Cluster, error: type[Exception]) -> None:
    source = Made((500, 600, 700), wrong=1, error=error)
    with pytest.raises(DataFileError, match=r"^part 1 \(made\): it is broken"):
        survey_on_dask(source, cluster.ready())
    well = survey(Made((500, 600, 700)))
    with pytest.raises(DataFileError, match=r"^part 1 \(made\): it is broken"):
        RowsOnDask(source, well, cluster.client).map(name_rows, merge=join)
    unknown = Made((500, 600, 700), wrong=2, error=ZeroDivisionError)
    with pytest.raises(DataFileError, match=r"^part 2 \(made\): ZeroDivisionError: "):
        survey_on_dask(unknown, cluster.client)


def test_a_part_that_changed_is_named(cluster: Cluster) -> None:
    before = survey(Made((500, 600, 700)))
    blocks = RowsOnDask(Made((500, 601, 700)), before, cluster.ready())
    with pytest.raises(DataFileError, match=r"^part 1 \(made\): .*601 rows where there were 600"):
        blocks.map(name_rows, merge=join)


def test_a_part_with_other_labels_is_named(cluster: Cluster) -> None:
    before = survey(Made((500, 600, 700)))
    counts = before.labels._replace(classes=np.array(["maybe", "no", "often"]))  # type: ignore[union-attr]
    blocks = RowsOnDask(Made((500, 600, 700)), replace(before, labels=counts), cluster.ready())
    with pytest.raises(DataFileError, match=r"^part 0 \(made\): y contains .*yes.* It was changed"):
        blocks.map(name_rows, merge=join)


def test_the_error_of_a_step_is_its_own(cluster: Cluster) -> None:
    blocks = on_dask(Made((500,)), cluster.ready())
    with pytest.raises(ZeroDivisionError, match="of a step"):
        blocks.map(fail)
    with pytest.raises(ZeroDivisionError, match="of a step"):
        blocks.fold(fail, 0)
    assert blocks.map(name_rows, merge=join) == [(0, 500)]


def test_a_part_that_kills_every_worker_is_named(cluster: Cluster) -> None:
    sizes = (500, 600, 700)
    client = cluster.ready()
    with client_that_forgives_nothing(client):
        blocks = RowsOnDask(Made(sizes, deadly=1), survey(Made(sizes)), client)
        with pytest.raises(DistributedFitError, match=r"block 0 of 1 \(rows 0 to 1799, part 0"):
            blocks.map(name_rows, merge=join)


@pytest.mark.wide
def test_a_lost_scheduler_ends_with_what_to_do(tmp_path: Path) -> None:
    own = Cluster(tmp_path)
    try:
        blocks = on_dask(Made((500,)), own.ready(1))
        blocks.map(name_rows, merge=join)
        own.scheduler.kill()
        own.scheduler.wait()
        with pytest.raises(DistributedFitError, match="checkpoint=… goes on"):
            blocks.map(name_rows, merge=join)
    finally:
        own.close()


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
def test_nothing_here_needs_dask_to_be_imported() -> None:
    code = """
import sys
class NoDask:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("dask", "distributed"):
            raise ImportError(name)
sys.meta_path.insert(0, NoDask())
import maxmargin, maxmargin.data, maxmargin.rows.on_dask
assert maxmargin.errors.DistributedFitError
try:
    maxmargin.rows.cluster.connect("tcp://127.0.0.1:1")
except ImportError as missing:
    assert "pip install dask distributed" in str(missing)
else:
    raise AssertionError
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
