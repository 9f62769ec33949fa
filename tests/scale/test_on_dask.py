"""Rows on Dask: the bits of rows in memory, whatever the workers do."""

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.data.blocks import Block, RowsInMemory, join
from maxmargin.data.on_dask import RowsOnDask, connect, load_parts, survey_on_dask
from maxmargin.data.row_source import BlockOptions, Part
from maxmargin.data.survey import survey
from maxmargin.errors import DataFileError, DistributedFitError
from maxmargin.loops.records import Loss
from tests.scale.conftest import ROOT, Cluster, KillAtFile

pytest.importorskip("distributed")


@dataclass(frozen=True)
class Made:
    """A source of rows made by their numbers: parts of uneven lengths."""

    rows: tuple[int, ...]
    n_columns: int = 30
    sparse: bool = False
    wrong: int = -1  # the part that cannot be read
    error: type[Exception] = DataFileError
    deadly: int = -1  # the part that ends the process which reads it
    dtype: Any = np.dtype(np.float64)
    feature_names: Any = None
    options: BlockOptions = BlockOptions()

    def __len__(self) -> int:
        return len(self.rows)

    def load(self, part: int) -> Part:
        if part == self.wrong:
            raise self.error(f"{self.describe(part)}: it is broken")
        if part == self.deadly:
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

    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:32]


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


def score(block: Block, w: Any) -> tuple[float, Any]:
    own = slice(block.begin, block.end)
    block["scores"][own] = block.X[own] @ w
    hinge = np.maximum(0, 1 - block.loss.target[own] * block["scores"][own]) * block["weight"][own]
    return float(hinge.sum()), block.X[own].T @ hinge


def move(block: Block, step: float) -> Any:
    own = slice(block.begin, block.end)
    assert block.X is None or block.X.shape[0] >= block.end
    block["scores"][own] *= 1 + step
    block["duals"][own] = block.loss.high[own] * step + block["scores"][own]
    return np.array([block["duals"][own].sum(), block["labels"][own].sum()])


def look(block: Block) -> Any:
    own = slice(block.begin, block.end)
    return block["scores"][own].sum(), block["weight"][own].sum()


def name_rows(block: Block) -> list[tuple[int, int]]:
    return [(block.first, block.first + block.end - block.begin)]


def walk(block: Block, state: Any, rate: float) -> Any:
    own = slice(block.begin, block.end)
    state *= 0.9  # in place: a state that travels is the step's own
    state += (
        rate
        * np.asarray(block.X[own].sum(axis=0)).ravel()
        * (block["weight"][own].sum() * state[-1])
    )
    block["seen"][own] = state[0]
    return state


def signal_row(block: Block, w: Any, row: int, path: str) -> tuple[float, Any]:
    """Like score, but where a row is the process asks to be killed, once."""
    if block.first <= row < block.first + block.end - block.begin and not _was_killed(path):
        Path(path).with_suffix(".new").write_text(str(os.getpid()))
        Path(path).with_suffix(".new").rename(path)
        time.sleep(60)
    return score(block, w)


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
    return vector.whole() if hasattr(vector, "whole") else vector.copy()


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


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("kind", SOURCES)
def test_gives_the_bits_of_rows_in_memory(cluster: Cluster, kind: str, workers: int) -> None:
    source = SOURCES[kind]
    rule = HalfRule(0.5)
    blocks = on_dask(source, cluster.ready(2)).with_loss(rule)
    assert_same_bits(passes(blocks), passes(in_memory(source, rule)))
