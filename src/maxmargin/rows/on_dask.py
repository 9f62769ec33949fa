"""Rows on the workers of a Dask cluster: they stay there, and only sums travel.

A part is a future of a pure function that reads it, and a block (an aligned run of 2ᵏ leaves) is a
future of what the parts that cover it have of it. A pass is one task for each block. Vectors of a
block are what some pass wrote, and are never changed: a step that writes gets copies. So Dask can
compute again whatever a lost worker had, and the sums are the same to the last bit, because they
are merged in the tree of the leaves.
"""

import math
import pickle
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Ints
from maxmargin.errors import DataFileError
from maxmargin.loops.records import Loss
from maxmargin.rows.blocks import (
    Block,
    Merge,
    Step,
    Tree,
    add,
    cut_leaves,
    stack_rows,
)
from maxmargin.rows.checkpoint import KeepsCheckpoints, SavedVectors
from maxmargin.rows.cluster import Cluster, connect
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.survey import Survey, label_numbers, merge_surveys, survey_part
from maxmargin.runtime.threads import one_blas_thread

_BLOCK_NUMBERS = 1 << 26  # about how many numbers a block has, unless that makes too many blocks
_MOST_BLOCKS = 8  # blocks for each thread of the workers at most; one at least
_SMALL = 1 << 16  # bytes of vectors that may travel back with the sums
_FEW_SUMS = 16  # sums that the driver merges; if there are more blocks, workers merge runs
_RUN = 8  # blocks in such a run
_GOES_ON = "A fit with checkpoint=… goes on from its last checkpoint"


# ------------------------------------------------------------------- what workers do


# Unpickled arrays may be unaligned. NumPy does not pass these to BLAS, and its own sums have other
# bits, so they are copied.


class HeldRows(NamedTuple):
    """A block on its worker."""

    X: Any
    vectors: dict[str, Any]  # labels and weight
    edges: Ints  # of its leaves, among all rows

    def __reduce__(self) -> Any:
        return _arrived, (HeldRows, *self)


class Written(NamedTuple):
    """What a step wrote beside the rows of a block, or their losses; what it gave, pickled."""

    vectors: dict[str, Any]
    found: bytes  # whoever reads it gets a copy, which may be changed

    def __reduce__(self) -> Any:
        return _arrived, (Written, *self)


def _arrived(kind: Any, *fields: Any) -> Any:
    return kind(*map(_aligned, fields))


def _aligned(value: Any) -> Any:
    """Return a value with arrays that begin where numbers do, and can be written to."""
    if isinstance(value, np.ndarray):
        return value if value.flags.behaved else value.copy()
    if isinstance(value, dict):
        return {name: _aligned(each) for name, each in value.items()}
    if isinstance(value, Loss):
        return Loss(*map(_aligned, value))
    if sp.issparse(value):
        arrays = (value.data, value.indices, value.indptr)
        return value if all(each.flags.behaved for each in arrays) else value.copy()
    return value


class Pass(NamedTuple):
    """What all blocks are given in a pass."""

    step: Step
    args: tuple[Any, ...]
    merge: Merge
    writes: tuple[str, ...]
    reads_rows: bool
    names: tuple[tuple[str, int], ...]  # of vectors, each with the place of what holds it


def _cut(part: Part, begin: int, end: int) -> Part:
    """Return some rows of a part, which need not keep the others in memory."""
    y = None if part.y is None else part.y[begin:end].copy()
    weight = None if part.weight is None else part.weight[begin:end].copy()
    return Part(part.X[begin:end].copy(), y, weight)


def _assemble(
    edges: Ints, classes: Any, regression: bool, expected: list[tuple[str, int]], parts: list[Part]
) -> HeldRows:
    """Return a block from what parts have of it; without a copy of rows if it is one part."""
    for (name, rows), part in zip(expected, parts, strict=True):
        if part.X.shape[0] != rows:
            raise DataFileError(
                f"{name}: it has {part.X.shape[0]} rows where there were {rows} when it was read "
                "before; data must not change during a fit"
            )
    X = _aligned(parts[0].X)
    if len(parts) > 1:
        shape, most = (int(edges[-1] - edges[0]), X.shape[1]), sum(part.X.size for part in parts)
        X = stack_rows((part.X for part in parts), shape, X.dtype, most)
    named = zip(expected, parts, strict=True)
    labels = np.concatenate([_labels(part, classes, regression, name) for (name, _), part in named])
    ones = (np.ones(part.X.shape[0]) for part in parts)
    weight = [
        one if part.weight is None else part.weight for one, part in zip(ones, parts, strict=True)
    ]
    return HeldRows(X, {"labels": labels, "weight": np.concatenate(weight)}, edges)


def _labels(part: Part, classes: Any, regression: bool, name: str) -> Any:
    if part.y is None or (classes is None and not regression):
        return np.zeros(part.X.shape[0], dtype=np.int64)
    if regression:
        return np.asarray(part.y, dtype=np.float64)
    return label_numbers(classes, part.y, name).astype(np.int64, copy=False)


def _loss_of(rule: bytes, held: HeldRows) -> Written:
    loss = pickle.loads(rule)(held.vectors["labels"], held.vectors["weight"])
    return Written({"loss": loss}, b"")


def _leaves(
    given: Pass, held: HeldRows, loss: Loss | None, written: Sequence[Any]
) -> Iterator[Block]:
    """Iterate over the leaves of a block; the vectors to be written are new, or copies."""
    vectors = {name: (held, *written)[at].vectors[name] for name, at in given.names}
    first, end = int(held.edges[0]), int(held.edges[-1])
    for name in given.writes:
        vectors[name] = vectors[name].copy() if name in vectors else np.zeros(end - first)
    X = held.X if given.reads_rows else None
    rows = loops.rows.rows(X) if X is not None else None
    for begin, end in zip(held.edges[:-1].tolist(), held.edges[1:].tolist(), strict=True):
        yield Block(X, rows, begin - first, end - first, begin, loss, vectors)


def _run(message: bytes, held: HeldRows, beside: Written, *written: Any) -> Written:
    """Run a step for the leaves of a block, in their order."""
    given: Pass = pickle.loads(message)
    tree, vectors = Tree(given.merge), {}
    with one_blas_thread():
        for number, leaf in enumerate(_leaves(given, held, beside.vectors["loss"], written)):
            tree.put(number, given.step(leaf, *given.args))
            vectors = leaf.vectors
    return Written({name: vectors[name] for name in given.writes}, _packed(tree.result()))


def _carry(
    message: bytes, state: bytes | Written, held: HeldRows, beside: Written, *written: Any
) -> Written:
    """Let a step change a state, leaf after leaf of a block."""
    given: Pass = pickle.loads(message)
    state, vectors = pickle.loads(_found(state)), {}
    with one_blas_thread():
        for leaf in _leaves(given, held, beside.vectors["loss"], written):
            state = given.step(leaf, state, *given.args)
            vectors = leaf.vectors
    return Written({name: vectors[name] for name in given.writes}, _packed(state))


def _found(written: bytes | Written) -> bytes:
    return written.found if isinstance(written, Written) else written


def _merge_run(merge: bytes, found: list[bytes | Written]) -> bytes:
    """Merge what an aligned run of blocks gave."""
    return _packed(_merged(pickle.loads(merge), found))


def _merged(merge: Merge, found: Iterable[bytes | Written]) -> Any:
    tree = Tree(merge)
    for number, each in enumerate(found):
        tree.put(number, pickle.loads(_found(each)))
    return tree.result()


def _packed(value: Any) -> bytes:
    """Return a value pickled, functions of notebooks too."""
    try:
        found = pickle.dumps(value, protocol=5)
    except Exception:  # functions inside functions
        found = b"__main__"
    if b"__main__" in found:
        found = import_module("cloudpickle").dumps(value, protocol=5)
    return found


def _pick(name: str, written: Any) -> Any:
    return written.vectors[name]


def _save(saved: SavedVectors, held: HeldRows, *written: Any) -> None:
    """Write vectors of a block to a file."""
    vectors = zip(saved.names, written, strict=True)
    saved.write(int(held.edges[0]), {name: each.vectors[name] for name, each in vectors})


def _restore(saved: SavedVectors, held: HeldRows) -> Written:
    """Read the vectors of a block from the files that have its rows."""
    return Written(saved.read(int(held.edges[0]), int(held.edges[-1])), _packed(None))


def _holding(name: str, vector: Any, held: HeldRows) -> Written:
    del held  # it is there so that the vector goes where the rows are
    return Written({name: vector}, _packed(None))


def _renamed(old: str, new: str, written: Any) -> Written:
    return Written({new: written.vectors[old]}, _packed(None))


# ------------------------------------------------------------------- parts and their survey


def _cluster(client: Any) -> Cluster:
    return Cluster(connect(client), way_out=_GOES_ON)


def load_parts(source: RowSource, client: Any) -> list[Any]:
    """Let workers read all parts of a source; return their futures."""
    cluster, count = _cluster(client), len(source)
    if source.on_dask:
        return cluster.compute([source.delayed(part) for part in range(count)])
    # Keys are new, and not made of the fingerprint, for which chunks and iterables know the first
    # part alone: rows of another source would be taken for these as long as they are there.
    # A source may have arrays, so it travels once.
    known = cluster.known_to_all(source, len(_packed(source)))
    places = _places(cluster.threads(), count)
    return cluster.map("part", _reload, [known] * count, list(range(count)), places=places)


def _reload(source: RowSource, part: int) -> Part:
    return source.reload(part)


def _places(threads: list[str], count: int) -> list[str]:
    """Return the worker on which each of so many items had best be: neighbours are together."""
    return [threads[number * len(threads) // count] for number in range(count)]


def survey_on_dask(
    source: RowSource,
    client: Any,
    *,
    targets: bool = False,
    parts: list[Any] | None = None,
) -> Survey:
    """Return the survey of a source, each part of which is surveyed by a worker.

    ``parts`` are what ``load_parts`` returned; by default parts are read, and not kept.
    """
    cluster = _cluster(client)
    loaded = load_parts(source, client) if parts is None else parts
    plain, count = source.detached(), len(loaded)
    known = cluster.known_to_all(plain, len(_packed(plain)))
    columns = ([known] * count, list(range(count)), loaded, [targets] * count)
    futures = cluster.map("survey", survey_part, *columns)
    del loaded, columns
    return merge_surveys(source, cluster.fetch(futures, source.describe))


# ------------------------------------------------------------------- blocks


class _Kept(NamedTuple):
    """What holds a vector: a future for each block, and the files they are computed from."""

    futures: list[Any]
    files: frozenset[SavedVectors]


class VectorOnDask:
    """A vector of rows in blocks on Dask, as it was when it was asked for."""

    def __init__(self, blocks: "RowsOnDask", name: str, kept: _Kept) -> None:
        self.blocks, self.name, self.kept = blocks, name, kept

    def __len__(self) -> int:
        return self.blocks.n

    def array(self) -> Any:
        """Return it as an array of all rows."""
        return self.blocks.fetch_vector(self.name, self.kept)


class RowsOnDask(KeepsCheckpoints):
    """Rows on the workers of a cluster, as ``Blocks``: equal to ``RowsInMemory`` to the last bit.

    With ``regression``, "labels" are targets instead of the numbers of classes. ``parts`` are what
    ``load_parts`` returned, so that parts that were surveyed are not read again.
    """

    def __init__(
        self,
        source: Any,
        survey: Survey,
        client: Any,
        *,
        regression: bool = False,
        parts: list[Any] | None = None,
    ) -> None:
        self.source, self.survey, self.regression = source, survey, regression
        self.n, self.d, self.numbers = survey.n, int(survey.d), float(survey.size)
        self.sparse = bool(survey.sparse)
        self._counts = Counter[str]()  # of what was read, for all losses of the same rows
        self._cluster = _cluster(client)
        self._threads = self._cluster.threads()
        self._edges = _block_edges(
            cut_leaves(self.n, self.d, self.numbers), self.numbers, len(self._threads)
        )
        self._held = self._assembled(load_parts(source, client) if parts is None else list(parts))
        self._losses: list[Any] = [Written({"loss": None}, b"")] * len(self._edges)
        self._start()

    def _start(self) -> None:
        held = _Kept(self._held, frozenset())
        self._vectors: dict[str, _Kept] = {"labels": held, "weight": held}
        self._live: weakref.WeakSet[SavedVectors] = weakref.WeakSet()
        self._recent: list[Any] = []

    @property
    def bytes_read(self) -> int:
        """About how many bytes of rows workers went through so far, whatever the loss."""
        return self._counts["bytes"]

    @property
    def passes(self) -> int:
        """How often the rows, or their numbers, were gone through."""
        return self._counts["passes"]

    def with_loss(self, rule: Any) -> Self:
        """Return the same rows with the loss ``rule(labels, weight)``, and vectors of their own."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        known = self._cluster.known_to_all(_packed(rule))
        other._losses = self._cluster.map("loss", _loss_of, self._each(known), self._held)
        other._start()
        return other

    # ------------------------------------------------------------------- passes

    def map(
        self,
        step: Step,
        *args: Any,
        writes: tuple[str, ...] = (),
        reads_rows: bool = True,
        merge: Merge = add,
        numbers: float | None = None,
    ) -> Any:
        """Return what a step gives for all leaves, merged in their order."""
        del numbers
        given, kept = self._given(step, args, merge, writes, reads_rows)
        columns = [each.futures for each in kept]
        beside = (self._held, self._losses, *columns)
        futures = self._cluster.map(_name(step), _run, self._each(given), *beside)
        found = futures
        longest = max(int(edges[-1] - edges[0]) for edges in self._edges)
        if 8 * len(writes) * longest > _SMALL:
            found = self._cluster.map("found", _found, futures)
        found = self._merged_on_workers(found, merge)
        values = self._fetch(found)
        self._adopt(writes, futures, kept)
        # A client that has just released futures sends nothing else for 10 ms, so these are
        # released after the tasks of the next pass are sent.
        self._recent = [futures, found, columns]
        return _merged(merge, values)

    def _each(self, value: Any) -> list[Any]:
        return [value] * len(self._edges)

    def _given(
        self, step: Step, args: Any, merge: Merge, writes: tuple[str, ...], reads_rows: bool
    ) -> tuple[Any, list[_Kept]]:
        """Return what all blocks are given in a pass, and what holds the vectors, each once."""
        holders: dict[int, _Kept] = {id(self._held): _Kept(self._held, frozenset())}
        for each in self._vectors.values():
            holders.setdefault(id(each.futures), each)
        order = list(holders)
        names = tuple((name, order.index(id(at.futures))) for name, at in self._vectors.items())
        known = self._cluster.known_to_all(
            _packed(Pass(step, args, merge, writes, reads_rows, names))
        )
        self._counts.update(passes=1, bytes=self._bytes if reads_rows else 0)
        return known, list(holders.values())[1:]

    def _merged_on_workers(self, found: list[Any], merge: Merge) -> list[Any]:
        """Return futures of aligned runs of blocks, so that few sums travel to the driver."""
        packed = _packed(merge)
        while len(found) > _FEW_SUMS:
            runs = [found[at : at + _RUN] for at in range(0, len(found), _RUN)]
            found = self._cluster.map("merge", _merge_run, [packed] * len(runs), runs)
        return found

    def fold(self, step: Step, state: Any, *args: Any, writes: tuple[str, ...] = ()) -> Any:
        """Return what becomes of a state as a step changes it, leaf after leaf."""
        given, kept = self._given(step, args, add, writes, True)
        columns = (self._held, self._losses, *(each.futures for each in kept))
        travelling = self._cluster.known_to_all(_packed(state))
        futures = []
        for at in range(len(self._edges)):
            beside = (column[at] for column in columns)
            single = [[each] for each in (given, travelling, *beside)]
            futures += self._cluster.map(_name(step), _carry, *single)
            travelling = futures[-1]
            if writes:
                travelling = self._cluster.map("found", _found, futures[-1:])[0]
        try:
            (found,) = self._cluster.fetch([travelling], self._name_last(futures))
        finally:
            del travelling
        self._adopt(writes, futures, kept)
        return pickle.loads(_found(found))

    def _name_last(self, futures: list[Any]) -> Callable[[int], str]:
        def name(_: int) -> str:
            unfinished = [at for at, each in enumerate(futures) if each.status != "finished"]
            return self.describe(unfinished[0] if unfinished else len(futures) - 1)

        return name

    def _adopt(self, writes: tuple[str, ...], futures: list[Any], kept: list[_Kept]) -> None:
        files = frozenset[SavedVectors]().union(*(each.files for each in kept))
        for name in writes:
            self._vectors[name] = _Kept(futures, files)

    def _fetch(self, futures: list[Any]) -> list[Any]:
        ratio = math.ceil(len(self._edges) / len(futures))
        return self._cluster.fetch(futures, lambda number: self.describe(number * ratio))

    def describe(self, block: int) -> str:
        """Return the number of a block, its rows and the parts they come from, for messages."""
        first, end = int(self._edges[block][0]), int(self._edges[block][-1])
        parts = [part for part, _, _ in self.survey.parts_between(first, end)]
        names = self.source.describe(parts[0]) if parts else "no part"
        if len(parts) > 1:
            names += f" to {self.source.describe(parts[-1])}"
        return f"block {block} of {len(self._edges)} (rows {first} to {end - 1}, {names})"

    # ------------------------------------------------------------------- vectors

    def renew(self, *names: str) -> None:
        """Let the next step that writes these vectors write to new ones."""
        for name in names:
            self._vectors.pop(name, None)

    def vector(self, name: str) -> VectorOnDask:
        """Return a handle of a vector as it is now; its ``array()`` is an array of all rows."""
        return VectorOnDask(self, name, self._vectors[name])

    def put(self, name: str, vector: Any) -> None:
        """Set a vector: to an array of all rows, or to what ``vector`` returned."""
        if isinstance(vector, VectorOnDask) and vector.name == name:
            self._vectors[name] = vector.kept
            return
        if isinstance(vector, VectorOnDask):
            names = (self._each(vector.name), self._each(name))
            futures = self._cluster.map("put", _renamed, *names, vector.kept.futures)
            self._vectors[name] = _Kept(futures, vector.kept.files)
            return
        array = np.asarray(vector)
        if array.shape[0] != self.n:
            raise ValueError(f"{name} has {array.shape[0]} numbers for {self.n} rows")
        pieces = [array[edges[0] : edges[-1]].copy() for edges in self._edges]
        futures = self._cluster.map("put", _holding, self._each(name), pieces, self._held)
        self._vectors[name] = _Kept(futures, frozenset())

    def fetch_vector(self, name: str, kept: _Kept) -> Any:
        """Return a vector that something holds as an array of all rows."""
        futures = self._cluster.map("pick", _pick, self._each(name), kept.futures)
        return np.concatenate(self._fetch(futures))

    # ------------------------------------------------------------------- checkpoints

    def save(
        self, folder: str | Path, names: Sequence[str], state: dict[str, Any] | None = None
    ) -> None:
        """Let workers write vectors to a folder that all of them share, a file for each block.

        ``state`` is what belongs to them and is small: it is written with them. What is lost from
        now on is computed from these files. Files of a former ``save`` are removed unless a vector
        that was kept could still need them.
        """
        saved = SavedVectors.new(folder, names, [*(edges[0] for edges in self._edges), self.n])
        kept = [self._vectors[name].futures for name in names]
        self._fetch(self._cluster.map("save", _save, self._each(saved), self._held, *kept))
        saved.complete(state)
        self._take(saved)
        saved.remove_others(list(self._live))

    def _take(self, saved: SavedVectors) -> None:
        self._live.add(saved)
        futures = self._cluster.map("restore", _restore, self._each(saved), self._held)
        self._fetch(self._cluster.map("found", _found, futures))
        for name in saved.names:
            self._vectors[name] = _Kept(futures, frozenset({saved}))
        self._recent = []  # else what was before would be computed again as well, if it is lost

    # ------------------------------------------------------------------- assembly

    @property
    def _bytes(self) -> int:
        """How many bytes a pass over the rows reads."""
        itemsize = int(np.dtype(self.survey.dtype).itemsize)
        return int(self.numbers) * (itemsize + 4 * self.sparse) + 8 * self.n * self.sparse

    def _assembled(self, parts: list[Any]) -> list[Any]:
        """Return futures of the blocks; parts are let go of once these are there."""
        covers = [self.survey.parts_between(int(edges[0]), int(edges[-1])) for edges in self._edges]
        rows = self.survey.rows
        cuts = [cut for cover in covers for cut in cover if cut[2] - cut[1] < rows[cut[0]]]
        columns = ([parts[part] for part, _, _ in cuts], *list(zip(*cuts, strict=True))[1:])
        cut_off = self._cluster.map("cut", _cut, *columns) if cuts else []
        piece = dict(zip(cuts, cut_off, strict=True))
        pieces = [[piece.get(cut, parts[cut[0]]) for cut in cover] for cover in covers]
        expected = [
            [(self.source.describe(part), end - begin) for part, begin, end in cover]
            for cover in covers
        ]
        labelled = self.survey.labels is not None and not self.regression
        classes = self.survey.classes if labelled else None
        common = (self._each(classes), self._each(self.regression))
        columns = (self._edges, *common, expected, pieces)
        places = _places(self._threads, len(self._edges))
        found = self._cluster.map("block", _assemble, *columns, places=places)
        self._counts.update(bytes=self._bytes)
        return found


def _name(step: Step) -> str:
    return str(getattr(step, "__name__", "step")).strip("_<>")


def _block_edges(leaves: Ints, numbers: float, threads: int) -> list[Ints]:
    """Return the edges of the leaves of each block, an aligned run of 2ᵏ leaves."""
    count = len(leaves) - 1
    wanted = min(max(threads, numbers / _BLOCK_NUMBERS), _MOST_BLOCKS * threads, count)
    run = 1 << int(math.log2(count / wanted))
    return [leaves[at : at + run + 1] for at in range(0, count, run)]
