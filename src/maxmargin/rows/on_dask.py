"""Rows on the workers of a Dask cluster: they stay there, and only sums travel.

A part is a future of a pure function that reads it, and a block (an aligned run of 2ᵏ leaves) is a
future of what the parts that cover it have of it. A pass is one task for each block. Vectors of a
block are what some pass wrote, and are never changed: a step that writes gets copies. So Dask can
compute again whatever a lost worker had, and the sums are the same to the last bit, because they
are merged in the tree of the leaves.
"""

import asyncio
import ipaddress
import json
import math
import pickle
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Self, cast
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.errors import DataFileError, DistributedFitError
from maxmargin.loops.records import Loss
from maxmargin.rows.blocks import Block, Merge, Step, Tree, add, cut_leaves
from maxmargin.rows.dask_source import DaskSource
from maxmargin.rows.row_source import Part
from maxmargin.rows.survey import Survey, load_part, merge_surveys, survey_part
from maxmargin.runtime import clock
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.validation.data import class_indices

_BLOCK_NUMBERS = 1 << 26  # in a block, about, if that makes …
_MOST_BLOCKS = 8  # … no more for each thread of the workers, and at least one
_SMALL = 1 << 16  # bytes that may travel with every task, or back with the sums
_LOOKS, _BETWEEN_LOOKS = 100, 0.1  # for workers: how often, and seconds in between
_FEW_SUMS = 16  # that the driver merges; if there are more blocks, workers merge runs of …
_RUN = 8
_LOOK = 0.5  # seconds after which the driver looks up from waiting
_NO_WORKERS = 300.0  # seconds after which a cluster without workers is given up
_MANIFEST = "vectors.json"


# ------------------------------------------------------------------- what workers do


# Arrays that travelled may begin anywhere in memory. Those that do not begin where numbers do are
# not given to BLAS by numpy, and its own sums have other bits: so what travels is put in order.


class HeldRows(NamedTuple):
    """A block on its worker."""

    X: Any
    vectors: dict[str, Any]  # labels and weight
    edges: Ints  # of its leaves, among all rows

    def __reduce__(self) -> Any:
        return _arrived, (HeldRows, *self)


class HeldLoss(NamedTuple):
    """The losses of the rows of a block."""

    loss: Loss | None

    def __reduce__(self) -> Any:
        return _arrived, (HeldLoss, *self)


class Written(NamedTuple):
    """What a step wrote beside the rows of a block, and what it gave, pickled."""

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
    """What all blocks are told in a pass."""

    step: Step
    args: tuple[Any, ...]
    merge: Merge
    writes: tuple[str, ...]
    reads_rows: bool
    names: tuple[tuple[str, int], ...]  # of vectors, each with the place of what holds it


class _Loaded:
    """A source one part of which is there already."""

    def __init__(self, source: Any, part: Part) -> None:
        self.source, self.part = source, part

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def load(self, part: int) -> Part:
        del part
        return self.part


def _same(value: Any) -> Any:
    return value


def _read(source: Any, part: int) -> Part:
    try:
        return cast(Part, load_part(source, part, again=True))
    except (MemoryError, ImportError, ValueError):
        raise
    except Exception as failed:
        name = f"{source.describe(part)}: {type(failed).__name__}"
        raise DataFileError(f"{name}: {failed}") from failed


def _look_at(source: Any, part: int, loaded: Part, targets: bool) -> Survey:
    return survey_part(_Loaded(source, loaded), part, targets=targets)


def _cut(part: Part, begin: int, end: int) -> Part:
    """Return some rows of a part, which need not keep the others in memory."""
    y = None if part.y is None else part.y[begin:end].copy()
    weight = None if part.weight is None else part.weight[begin:end].copy()
    return Part(_stack([part.X[begin:end]]), y, weight)


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
    X = _aligned(parts[0].X) if len(parts) == 1 else _stack([part.X for part in parts])
    named = zip(expected, parts, strict=True)
    labels = np.concatenate([_labels(part, classes, regression, name) for (name, _), part in named])
    weight = np.concatenate([_weight(part) for part in parts])
    return HeldRows(X, {"labels": labels, "weight": weight}, edges)


def _labels(part: Part, classes: Any, regression: bool, name: str) -> Any:
    if part.y is None or (classes is None and not regression):
        return np.zeros(part.X.shape[0], dtype=np.int64)
    if regression:
        return np.asarray(part.y, dtype=np.float64)
    try:
        return class_indices(classes, np.asarray(part.y)).astype(np.int64, copy=False)
    except ValueError as unknown:
        raise DataFileError(
            f"{name}: its labels are not those that were found when it was read before "
            f"({unknown}); data must not change during a fit"
        ) from unknown


def _weight(part: Part) -> Floats:
    if part.weight is None:
        return np.ones(part.X.shape[0])
    return np.asarray(part.weight, dtype=np.float64)


def _stack(parts: list[Any]) -> Any:
    if not sp.issparse(parts[0]):
        return np.concatenate(parts)
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate([np.zeros(1, counts.dtype), np.cumsum(counts, dtype=np.int64)])
    data = np.concatenate([part.data for part in parts])
    indices = np.concatenate([part.indices for part in parts])
    return type(parts[0])((data, indices, indptr), shape=(len(counts), parts[0].shape[1]))


def _loss_of(rule: bytes, held: HeldRows) -> HeldLoss:
    return HeldLoss(pickle.loads(rule)(held.vectors["labels"], held.vectors["weight"]))


def _leaves(
    told: Pass, held: HeldRows, loss: Loss | None, written: Sequence[Any]
) -> Iterator[Block]:
    """Iterate over the leaves of a block; the vectors to be written are new, or copies."""
    vectors = {name: (held, *written)[at].vectors[name] for name, at in told.names}
    first, end = int(held.edges[0]), int(held.edges[-1])
    for name in told.writes:
        vectors[name] = vectors[name].copy() if name in vectors else np.zeros(end - first)
    X = held.X if told.reads_rows else None
    rows = loops.rows.rows(X) if X is not None else None
    for begin, end in zip(held.edges[:-1].tolist(), held.edges[1:].tolist(), strict=True):
        yield Block(X, rows, begin - first, end - first, begin, loss, vectors)


def _run(message: bytes, held: HeldRows, beside: HeldLoss, *written: Any) -> Written:
    """Run a step for the leaves of a block, in their order."""
    told: Pass = pickle.loads(message)
    tree, vectors = Tree(told.merge), {}
    with one_blas_thread():
        for number, leaf in enumerate(_leaves(told, held, beside.loss, written)):
            tree.put(number, told.step(leaf, *told.args))
            vectors = leaf.vectors
    return Written({name: vectors[name] for name in told.writes}, _packed(tree.result()))


def _carry(
    message: bytes, state: bytes | Written, held: HeldRows, beside: HeldLoss, *written: Any
) -> Written:
    """Let a step change a state, leaf after leaf of a block."""
    told: Pass = pickle.loads(message)
    state, vectors = pickle.loads(_found(state)), {}
    with one_blas_thread():
        for leaf in _leaves(told, held, beside.loss, written):
            state = told.step(leaf, state, *told.args)
            vectors = leaf.vectors
    return Written({name: vectors[name] for name in told.writes}, _packed(state))


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


def _save(folder: str, token: str, held: HeldRows, names: tuple[str, ...], *written: Any) -> None:
    """Write vectors of a block to a file."""
    vectors = {name: each.vectors[name] for name, each in zip(names, written, strict=True)}
    _write_arrays(_file(folder, token, int(held.edges[0])), vectors)


def _restore(
    folder: str, token: str, names: tuple[str, ...], firsts: Ints, held: HeldRows
) -> Written:
    """Read the vectors of a block from the files that have its rows, whatever blocks were then."""
    begin, end = int(held.edges[0]), int(held.edges[-1])
    pieces: dict[str, list[Any]] = {name: [] for name in names}
    for at in range(int(np.searchsorted(firsts, begin, side="right")) - 1, len(firsts) - 1):
        first = int(firsts[at])
        if first >= end:
            break
        with _reading(_file(folder, token, first)) as saved:
            for name in names:
                pieces[name].append(saved[name][max(begin - first, 0) : end - first])
    return Written({name: np.concatenate(pieces[name]) for name in names}, _packed(None))


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    try:
        with np.load(path, allow_pickle=False) as saved:
            yield saved
    except (OSError, KeyError, ValueError, EOFError) as failed:
        raise DataFileError(
            f"{path}: the vectors of a checkpoint cannot be read ({failed}); its folder must be "
            "one that all workers share"
        ) from failed


def _write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    def write(draft: Path) -> None:
        with draft.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    write_atomically(path, write)


def _state_file(folder: Path, token: str) -> Path:
    return folder / f"state-{token}.npz"


def _file(folder: str, token: str, first: int) -> Path:
    return Path(folder) / f"vectors-{token}-{first}.npz"


# ------------------------------------------------------------------- the cluster


def connect(cluster: Any, *, insecure: bool = False) -> Any:
    """Return a client of a Dask cluster.

    Parameters
    ----------
    cluster : distributed.Client or str
        A client, which is returned as it is, or the address of a scheduler: "tls://host:8786", or
        "tcp://127.0.0.1:8786". Whoever asks for a client closes it.
    insecure : bool, default=False
        Whether the address may be one of another machine without TLS. Dask then authenticates
        nobody, and runs whatever functions it is sent.

    Returns
    -------
    distributed.Client

    Raises
    ------
    ValueError
        If the address is that of another machine and is not protected by TLS.
    DistributedFitError
        If there is no scheduler at this address.

    Examples
    --------
    >>> from maxmargin.rows.on_dask import connect
    >>> connect("tcp://192.0.2.1:8786")
    Traceback (most recent call last):
    ...
    ValueError: cluster='tcp://192.0.2.1:8786' is another machine without TLS, ...
    """
    if not isinstance(cluster, str):
        if not hasattr(cluster, "submit") or getattr(cluster, "asynchronous", False):
            raise TypeError(
                "the cluster must be a distributed.Client (not an asynchronous one) or the address "
                f"of a scheduler, got {cluster!r}"
            )
        return cluster
    if not insecure and not _is_safe(cluster):
        raise ValueError(
            f"cluster={cluster!r} is another machine without TLS, where everybody can read the "
            "data and run functions; give the scheduler and the workers certificates and use "
            "tls://. If the network is trusted, connect a distributed.Client and pass that (on the "
            "command line, --insecure)"
        )
    try:
        return _distributed().Client(cluster, set_as_default=False)
    except (OSError, TimeoutError) as failed:
        raise DistributedFitError(
            f"there is no scheduler at cluster={cluster!r} ({failed}); start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from failed


def _is_safe(address: str) -> bool:
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme in ("tls", "wss", "inproc"):
        return True
    try:
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def shares_files(client: Any) -> bool:
    """Return whether the scheduler and all workers are on this machine, and so have its files."""
    told = client.scheduler_info(n_workers=-1)
    return all(_is_here(address) for address in (told["address"], *told["workers"]))


def _is_here(address: str) -> bool:
    parts = urlsplit(address)
    try:
        return parts.scheme == "inproc" or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError as missing:
        raise ImportError(
            "rows on a cluster need Dask, which is not installed: pip install dask distributed"
        ) from missing


class _Cluster:
    """A client, with tasks in lists and errors that say what to do."""

    def __init__(self, client: Any, timeout: float | None) -> None:
        self.client = connect(client)
        self.timeout = timeout
        self.places = self._find_places()

    def _find_places(self) -> list[str]:
        """Return the address of the worker of each thread."""
        with self._blaming("the cluster"):
            for _ in range(_LOOKS):  # a worker that was counted may be gone by now
                self.client.wait_for_workers(1, timeout=_NO_WORKERS)
                workers = self.client.scheduler_info(n_workers=-1)["workers"]
                if workers:
                    break
                time.sleep(_BETWEEN_LOOKS)
        if not workers:
            raise DistributedFitError(
                "the cluster has no workers: start some with `dask worker ADDRESS`, then fit again"
            )
        return [name for name in sorted(workers) for _ in range(workers[name]["nthreads"])]

    def place(self, number: int, count: int) -> str:
        """Return where one of so many items in a row had best be."""
        return self.places[number * len(self.places) // count]

    def map(self, name: str, work: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Return futures of ``work`` for items of the columns; the name makes their keys."""
        keys = [f"{name}-{number}" for number in range(len(columns[0]))]
        with self._blaming("the cluster"), _large_graphs():
            found: list[Any] = self.client.map(work, *columns, key=keys, pure=False)
        return found

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Return futures of what Dask collections are made of."""
        with self._blaming("the cluster"), _large_graphs():
            return cast(list[Any], self.client.compute(delayed))

    def map_in_places(
        self, name: str, work: Callable[..., Any], *columns: Sequence[Any]
    ) -> list[Any]:
        """Like ``map``, but neighbours go to the same worker if that one is there."""
        count, found = len(columns[0]), []
        places = [self.place(number, count) for number in range(count)]
        for place in dict.fromkeys(places):
            own = [number for number in range(count) if places[number] == place]
            parts = [[column[number] for number in own] for column in columns]
            keys = [f"{name}-{number}" for number in own]
            with self._blaming("the cluster"), _large_graphs():
                found += self.client.map(
                    *(work, *parts), key=keys, workers=[place], allow_other_workers=True
                )
        return found

    def told(self, message: Any, size: int) -> Any:
        """Return what all tasks are told: itself, or a future of it if it is large."""
        if size <= _SMALL:
            return message
        return self.map(f"mm-told-{_token()}", _same, [message])[0]

    def fetch(self, futures: list[Any], name: Callable[[int], str]) -> list[Any]:
        """Return the values of futures; ``name`` names one of them in errors."""
        client = self.client
        with self._blaming("the cluster"):
            gathering = client.gather(futures, asynchronous=True)
            waiting = asyncio.run_coroutine_threadsafe(gathering, client.loop.asyncio_loop)
        begin = seen = monotonic()
        try:
            while not _done(waiting):
                clock.check()
                now = monotonic()
                seen = now if self._has_workers() else seen
                self._give_up(now - begin, now - seen, self._last(futures, name))
            return cast(list[Any], waiting.result())
        except Exception as failed:
            explained = self._explained(failed, futures, name)
            new = explained is not failed and isinstance(explained, DistributedFitError)
            raise explained from (failed if new else None)
        finally:
            waiting.cancel()

    def _has_workers(self) -> bool:
        """Return whether there are workers; raise if there is no scheduler."""
        if self.client.status != "running":  # futures do not survive a lost connection
            raise ConnectionError("the connection to the scheduler is closed")
        try:
            told = self.client.sync(self.client.scheduler.identity, n_workers=1, callback_timeout=5)
            return bool(told["workers"])
        except (OSError, TimeoutError):  # it is busy, or gone: the next look will tell
            return True

    def _give_up(self, waited: float, alone: float, name: str) -> None:
        """Raise if a pass takes too long, or if there has been no worker for long."""
        if self.timeout is not None and waited > self.timeout:
            raise DistributedFitError(
                f"{name}: its worker did not answer in timeout={self.timeout:g} seconds; end "
                f"workers that hang and start others, or allow more time. {_GOES_ON}"
            )
        if alone > _NO_WORKERS:
            raise DistributedFitError(
                f"{name}: there has been no worker for {_NO_WORKERS:g} seconds; start some with "
                f"`dask worker ADDRESS`. {_GOES_ON}"
            )

    def _last(self, futures: list[Any], name: Callable[[int], str]) -> str:
        late = [number for number, each in enumerate(futures) if each.status == "pending"]
        return name(late[0]) if late else "the cluster"

    def _explained(
        self, failed: Exception, futures: list[Any], name: Callable[[int], str]
    ) -> BaseException:
        """Return the error for users: steps and sources raise their own, clusters ours."""
        wrong = [number for number, each in enumerate(futures) if each.status == "error"]
        if not wrong:
            return failed if isinstance(failed, _OURS) else _lost(failed, "the cluster")
        error: Any = failed if isinstance(failed, _OURS) else futures[wrong[0]].exception()
        if type(error).__name__ == "KilledWorker":
            return DistributedFitError(
                f"{name(wrong[0])}: {error.allowed_failures + 1} workers died while they computed "
                f"it (task {error.task}); give workers more memory (--memory-limit), or look in "
                f"the log of the last one for the reason. {_GOES_ON}"
            )
        if isinstance(error, asyncio.CancelledError) or type(error).__name__ in _LOST:
            return _lost(error, name(wrong[0]))
        return cast(BaseException, error)

    @contextmanager
    def _blaming(self, name: str) -> Iterator[None]:
        try:
            yield
        except _OURS:
            raise
        except (OSError, TimeoutError, RuntimeError, asyncio.CancelledError) as failed:
            raise _lost(failed, name) from failed


_OURS = (DistributedFitError, clock.OutOfTimeError)
_LOST = ("CommClosedError", "FutureCancelledError", "FuturesCancelledError", "CancelledError")
_GOES_ON = "A fit with checkpoint=… goes on from its last checkpoint"


@contextmanager
def _large_graphs() -> Iterator[None]:
    """Let arrays in memory travel with the tasks that need them: these can be done again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield


def _done(waiting: Any) -> bool:
    try:
        waiting.exception(timeout=_LOOK)
    except TimeoutError:
        return bool(waiting.done())
    except (asyncio.CancelledError, Exception):
        return True
    return True


def _lost(failed: BaseException, name: str) -> DistributedFitError:
    return DistributedFitError(
        f"{name}: the scheduler or what it held is lost ({type(failed).__name__}: {failed}); see "
        "that scheduler and workers run (`dask scheduler`, `dask worker ADDRESS`), connect a new "
        f"client and fit again. {_GOES_ON}"
    )


def _token() -> str:
    return uuid.uuid4().hex


# ------------------------------------------------------------------- parts and their survey


def load_parts(source: Any, client: Any, *, timeout: float | None = None) -> list[Any]:
    """Let workers read all parts of a source; return their futures."""
    return _load_parts(source, _Cluster(client, timeout))


def _load_parts(source: Any, cluster: _Cluster) -> list[Any]:
    count = len(source)
    if not _made_by_dask(source):
        # Not by the fingerprint, of which chunks and iterables know the first part alone: rows of
        # another source would be taken for these as long as they are there.
        known, name = _known_to_workers(source, cluster), f"mm-part-{_token()}"
        return cluster.map_in_places(name, _read, [known] * count, list(range(count)))
    return cluster.compute([source.delayed(part) for part in range(count)])


def _made_by_dask(source: Any) -> bool:
    while hasattr(source, "source"):  # a view
        source = source.source
    return isinstance(source, DaskSource)


def _known_to_workers(source: Any, cluster: _Cluster) -> Any:
    """Return a source, or a future of it if it is large (it may have arrays)."""
    return cluster.told(source, len(_packed(source)))


def survey_on_dask(
    source: Any,
    client: Any,
    *,
    targets: bool = False,
    parts: list[Any] | None = None,
    timeout: float | None = None,
) -> Survey:
    """Return the survey of a source, each part of which is looked at by a worker.

    Parameters
    ----------
    source : RowSource
        The rows.
    client : distributed.Client
        The cluster.
    targets : bool, default=False
        Whether y holds numbers to be predicted, instead of labels of classes.
    parts : list of futures, optional
        What ``load_parts`` returned. By default parts are read, and not kept.
    timeout : float, optional
        Seconds after which workers are given up.
    """
    cluster = _Cluster(client, timeout)
    loaded = _load_parts(source, cluster) if parts is None else parts
    known, count = _known_to_workers(source, cluster), len(loaded)
    name = f"mm-survey-{_token()}"
    columns = ([known] * count, list(range(count)), loaded, [targets] * count)
    futures = cluster.map(name, _look_at, *columns)
    del loaded, columns
    return merge_surveys(source, cluster.fetch(futures, source.describe))


# ------------------------------------------------------------------- blocks


class _Generation:
    """Vectors that were saved: their files stay while something could be computed from them."""

    def __init__(self, folder: str, token: str) -> None:
        self.folder, self.token = folder, token


class _Kept(NamedTuple):
    """What holds a vector: a future for each block, and the files they are computed from."""

    futures: list[Any]
    files: frozenset[_Generation]


class VectorOnDask:
    """A vector of rows in blocks on Dask, as it was when it was asked for."""

    def __init__(self, blocks: "RowsOnDask", name: str, kept: _Kept) -> None:
        self.blocks, self.name, self.kept = blocks, name, kept

    def __len__(self) -> int:
        return self.blocks.n

    def whole(self) -> Any:
        """Return it as an array of all rows."""
        return self.blocks.fetch_vector(self.name, self.kept)


@dataclass
class _Counts:
    """What was read, for all losses of the same rows."""

    passes: int = 0
    bytes_read: int = 0


class RowsOnDask:
    """Rows on the workers of a cluster, as ``Blocks``: equal to ``RowsInMemory`` to the last bit.

    Parameters
    ----------
    source : RowSource
        The rows.
    survey : Survey
        What is known of them.
    client : distributed.Client
        The cluster.
    regression : bool, default=False
        Whether "labels" are targets instead of the numbers of classes.
    timeout : float, optional
        Seconds that a pass may take before workers are given up as hanging. By default the
        ``timeout`` of the options of the source, if these have one, or no limit.
    parts : list of futures, optional
        What ``load_parts`` returned, so that parts that were surveyed are not read again.
    """

    def __init__(
        self,
        source: Any,
        survey: Survey,
        client: Any,
        *,
        regression: bool = False,
        timeout: float | None = None,
        parts: list[Any] | None = None,
    ) -> None:
        if timeout is None:
            timeout = getattr(getattr(source, "options", None), "timeout", None)
        self.source, self.survey, self.regression = source, survey, regression
        self.n, self.d, self.numbers = survey.n, int(survey.d), float(survey.size)
        self.sparse = bool(survey.sparse)
        self._counts = _Counts()
        self._cluster = _Cluster(client, timeout)
        self._edges = _block_edges(
            cut_leaves(self.n, self.d, self.numbers), self.numbers, len(self._cluster.places)
        )
        self._held = self._assembled(
            _load_parts(source, self._cluster) if parts is None else list(parts)
        )
        self._losses: list[Any] = [HeldLoss(None)] * len(self._edges)
        self._start()

    def _start(self) -> None:
        held = _Kept(self._held, frozenset())
        self._vectors: dict[str, _Kept] = {"labels": held, "weight": held}
        self._live: weakref.WeakSet[_Generation] = weakref.WeakSet()
        self._recent: list[Any] = []

    @property
    def bytes_read(self) -> int:
        """About how many bytes of rows workers went through so far, whatever the loss."""
        return self._counts.bytes_read

    @property
    def passes(self) -> int:
        """How often the rows, or their numbers, were gone through."""
        return self._counts.passes

    def with_loss(self, rule: Any) -> Self:
        """Return the same rows with the loss ``rule(labels, weight)``, and vectors of their own."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        told = self._cluster.told(packed := _packed(rule), len(packed))
        count = len(self._edges)
        name = f"mm-loss-{_token()}"
        other._losses = self._cluster.map(name, _loss_of, [told] * count, self._held)
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
        name = f"mm-{getattr(step, '__name__', 'step').strip('_<>')}-{_token()}"
        told, kept = self._told(step, args, merge, writes, reads_rows)
        columns = [each.futures for each in kept]
        futures = self._cluster.map(name, _run, told, self._held, self._losses, *columns)
        found = futures
        if writes and self._row_bytes(len(writes)) > _SMALL:
            found = self._cluster.map(f"mm-found-{_token()}", _found, futures)
        found = self._merged_on_workers(found, merge)
        values = self._fetch(found)
        self._adopt(writes, futures, kept)
        # A client that has just released futures sends nothing else for 10 ms, so these are
        # released after the tasks of the next pass are sent.
        self._recent = [futures, found, columns]
        return _merged(merge, values)

    def _told(
        self, step: Step, args: Any, merge: Merge, writes: tuple[str, ...], reads_rows: bool
    ) -> tuple[list[Any], list[_Kept]]:
        """Return what each block is told in a pass, and what holds the vectors, each once."""
        holders: dict[int, _Kept] = {id(self._held): _Kept(self._held, frozenset())}
        for each in self._vectors.values():
            holders.setdefault(id(each.futures), each)
        order = list(holders)
        names = tuple((name, order.index(id(at.futures))) for name, at in self._vectors.items())
        message = _packed(Pass(step, args, merge, writes, reads_rows, names))
        self._counts.passes += 1
        self._counts.bytes_read += self._bytes if reads_rows else 0
        told = self._cluster.told(message, len(message))
        return [told] * len(self._edges), list(holders.values())[1:]

    def _merged_on_workers(self, found: list[Any], merge: Merge) -> list[Any]:
        """Return futures of aligned runs of blocks, so that few sums travel to the driver."""
        packed = _packed(merge)
        while len(found) > _FEW_SUMS:
            runs = [found[at : at + _RUN] for at in range(0, len(found), _RUN)]
            name = f"mm-merge-{_token()}"
            found = self._cluster.map(name, _merge_run, [packed] * len(runs), runs)
        return found

    def fold(self, step: Step, state: Any, *args: Any, writes: tuple[str, ...] = ()) -> Any:
        """Return what becomes of a state as a step changes it, leaf after leaf."""
        name = f"mm-{getattr(step, '__name__', 'step').strip('_<>')}-{_token()}"
        told, kept = self._told(step, args, add, writes, True)
        columns = [each.futures for each in kept]
        message = _packed(state)
        travelling = self._cluster.told(message, len(message))
        futures = []
        for at in range(len(self._edges)):
            beside = [self._held[at], self._losses[at], *(column[at] for column in columns)]
            single = [[each] for each in (told[at], travelling, *beside)]
            futures += self._cluster.map(f"{name}-{at}", _carry, *single)
            travelling = futures[-1]
            if writes:
                travelling = self._cluster.map(f"mm-found-{_token()}", _found, futures[-1:])[0]
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
        files = frozenset[_Generation]().union(*(each.files for each in kept))
        for name in writes:
            self._vectors[name] = _Kept(futures, files)

    def _fetch(self, futures: list[Any]) -> list[Any]:
        ratio = math.ceil(len(self._edges) / len(futures))
        return self._cluster.fetch(futures, lambda number: self.describe(number * ratio))

    def describe(self, block: int) -> str:
        """Return the number of a block, its rows and the parts they come from, for messages."""
        first, end = int(self._edges[block][0]), int(self._edges[block][-1])
        parts = [part for part, _, _ in _covering(self._offsets, first, end)]
        names = self.source.describe(parts[0]) if parts else "no part"
        if len(parts) > 1:
            names += f" to {self.source.describe(parts[-1])}"
        return f"block {block} of {len(self._edges)} (rows {first} to {end - 1}, {names})"

    # ------------------------------------------------------------------- vectors

    def first_row(self) -> Floats:
        """Return the first row, in float64."""
        return self.survey.first_row

    def renew(self, *names: str) -> None:
        """Let the next step that writes these vectors write to new ones."""
        for name in names:
            self._vectors.pop(name, None)

    def vector(self, name: str) -> VectorOnDask:
        """Return a handle of a vector as it is now; its ``whole()`` is an array of all rows."""
        return VectorOnDask(self, name, self._vectors[name])

    def put(self, name: str, vector: Any) -> None:
        """Set a vector: to an array of all rows, or to what ``vector`` returned."""
        if isinstance(vector, VectorOnDask) and vector.name == name:
            self._vectors[name] = vector.kept
            return
        if isinstance(vector, VectorOnDask):
            count = len(self._edges)
            names = ([vector.name] * count, [name] * count)
            futures = self._cluster.map(f"mm-put-{_token()}", _renamed, *names, vector.kept.futures)
            self._vectors[name] = _Kept(futures, vector.kept.files)
            return
        array = np.asarray(vector)
        if array.shape[0] != self.n:
            raise ValueError(f"{name} has {array.shape[0]} numbers for {self.n} rows")
        pieces = [array[edges[0] : edges[-1]].copy() for edges in self._edges]
        columns = ([name] * len(pieces), pieces, self._held)
        futures = self._cluster.map(f"mm-put-{_token()}", _holding, *columns)
        self._vectors[name] = _Kept(futures, frozenset())

    def fetch_vector(self, name: str, kept: _Kept) -> Any:
        """Return a vector that something holds as an array of all rows."""
        names = [name] * len(kept.futures)
        futures = self._cluster.map(f"mm-pick-{_token()}", _pick, names, kept.futures)
        return np.concatenate(self._fetch(futures))

    def saved_state(self, folder: str | Path) -> dict[str, Any] | None:
        """Return the state that ``save`` wrote last with its vectors; None if there is none."""
        path = Path(folder).absolute() / _MANIFEST
        if not path.exists():
            return None
        try:
            token = json.loads(path.read_text(encoding="utf-8"))["token"]
        except (ValueError, KeyError, TypeError) as wrong:
            raise DataFileError(
                f"{path}: these are not vectors that a fit on a cluster saved: go on without a "
                "cluster if they were saved so, or name another folder as checkpoint"
            ) from wrong
        with _reading(_state_file(path.parent, token)) as saved:
            return dict(saved)

    def save(
        self, folder: str | Path, names: Sequence[str], state: dict[str, Any] | None = None
    ) -> None:
        """Let workers write vectors to a folder that all of them share, a file for each block.

        ``state`` is what belongs to them and is small: it is written with them. What is lost from
        now on is computed from these files. Files of a former ``save`` are removed unless a vector
        that was kept could still need them.
        """
        folder, token, names = Path(folder).absolute(), _token(), tuple(names)
        folder.mkdir(parents=True, exist_ok=True)
        count = len(self._edges)
        common = [[each] * count for each in (str(folder), token)]
        kept = [self._vectors[name].futures for name in names]
        work = f"mm-save-{_token()}"
        columns = (*common, self._held, [names] * count, *kept)
        self._fetch(self._cluster.map(work, _save, *columns))
        _write_arrays(_state_file(folder, token), state or {})
        manifest = {
            "token": token,
            "names": names,
            "firsts": [int(edges[0]) for edges in self._edges] + [self.n],
            "rows": self.source.fingerprint(),
        }
        text = json.dumps(manifest)
        write_atomically(folder / _MANIFEST, lambda path: path.write_text(text, encoding="utf-8"))
        self._take_saved(folder, manifest)
        self._remove_older(folder)

    def restore(self, folder: str | Path) -> None:
        """Take the vectors that ``save`` wrote, by whatever number of workers."""
        path = Path(folder).absolute() / _MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            same = manifest["rows"] == self.source.fingerprint()
        except (OSError, ValueError, KeyError, TypeError) as failed:
            raise DataFileError(f"{path}: no vectors can be read from it ({failed})") from failed
        if not same or manifest["firsts"][-1] != self.n:
            raise DataFileError(
                f"{path}: these vectors belong to other rows; name another folder as checkpoint"
            )
        self._take_saved(path.parent, manifest)

    def _take_saved(self, folder: Path, manifest: dict[str, Any]) -> None:
        count, names = len(self._edges), tuple(manifest["names"])
        generation = _Generation(str(folder), manifest["token"])
        self._live.add(generation)
        firsts = np.array(manifest["firsts"], dtype=np.int64)
        told = [str(folder), manifest["token"], names, firsts]
        common = [[each] * count for each in told]
        futures = self._cluster.map(f"mm-restore-{_token()}", _restore, *common, self._held)
        self._fetch(self._cluster.map(f"mm-found-{_token()}", _found, futures))
        for name in names:
            self._vectors[name] = _Kept(futures, frozenset({generation}))
        self._recent = []  # else what was before would be computed again as well, if it is lost

    def _remove_older(self, folder: Path) -> None:
        needed = {each.token for each in self._live if each.folder == str(folder)}
        for path in [*folder.glob("vectors-*-*.npz"), *folder.glob("state-*.npz")]:
            if path.stem.split("-")[1] not in needed:
                path.unlink(missing_ok=True)

    # ------------------------------------------------------------------- assembly

    @property
    def _bytes(self) -> int:
        """How many bytes a pass over the rows reads."""
        itemsize = int(np.dtype(self.survey.dtype).itemsize)
        return int(self.numbers) * (itemsize + 4 * self.sparse) + 8 * self.n * self.sparse

    def _row_bytes(self, vectors: int) -> int:
        return 8 * vectors * max(int(edges[-1] - edges[0]) for edges in self._edges)

    def _assembled(self, parts: list[Any]) -> list[Any]:
        """Return futures of the blocks; parts are let go of once these are there."""
        self._offsets = np.concatenate([[0], np.cumsum(self.survey.rows)]).astype(np.int64)
        covers = [
            list(_covering(self._offsets, int(edges[0]), int(edges[-1]))) for edges in self._edges
        ]
        cuts = [cut for cover in covers for cut in cover if cut[2] - cut[1] < self._rows_of(cut[0])]
        columns = ([parts[part] for part, _, _ in cuts], *list(zip(*cuts, strict=True))[1:])
        cut_off = self._cluster.map(f"mm-cut-{_token()}", _cut, *columns) if cuts else []
        piece = dict(zip(cuts, cut_off, strict=True))
        pieces = [[piece.get(cut, parts[cut[0]]) for cut in cover] for cover in covers]
        expected = [
            [(self.source.describe(part), end - begin) for part, begin, end in cover]
            for cover in covers
        ]
        count = len(self._edges)
        labelled = self.survey.labels is not None and not self.regression
        classes = self.survey.classes if labelled else None
        common = [[each] * count for each in (classes, self.regression)]
        name = f"mm-block-{_token()}"
        found = self._cluster.map_in_places(name, _assemble, self._edges, *common, expected, pieces)
        self._counts.bytes_read += sum(self.source.bytes_of(part) for part in range(len(parts)))
        return found

    def _rows_of(self, part: int) -> int:
        return int(self.survey.rows[part])


def _holding(name: str, vector: Any, held: HeldRows) -> Written:
    del held  # it is there so that the vector goes where the rows are
    return Written({name: vector}, _packed(None))


def _renamed(old: str, new: str, written: Any) -> Written:
    return Written({new: written.vectors[old]}, _packed(None))


def _block_edges(leaves: Ints, numbers: float, threads: int) -> list[Ints]:
    """Return the edges of the leaves of each block, an aligned run of 2ᵏ leaves."""
    count = len(leaves) - 1
    wanted = min(max(threads, numbers / _BLOCK_NUMBERS), _MOST_BLOCKS * threads, count)
    run = 1 << int(math.log2(count / wanted))
    return [leaves[at : at + run + 1] for at in range(0, count, run)]


def _covering(offsets: Ints, first: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Iterate over parts with some of these rows: number, first and end of these in the part."""
    for part in range(int(np.searchsorted(offsets, first, side="right")) - 1, len(offsets) - 1):
        begin, stop = int(offsets[part]), int(offsets[part + 1])
        if begin >= end:
            return
        if min(stop, end) > max(begin, first):
            yield part, max(first - begin, 0), min(stop, end) - begin
