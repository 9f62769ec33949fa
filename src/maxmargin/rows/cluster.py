"""A Dask cluster: pure tasks on its workers, and errors that say what to do if it fails.

Nothing is scattered and nothing is an actor: what workers hold is the result of a task, so that a
lost worker costs the time to run its tasks again, on another one, and nothing else. Data that many
tasks need are one such task, too. Its specification carries the arrays and stays with the
scheduler, from which a worker gets them whenever it needs them (again). That suits data of some
hundred megabytes. Larger arrays belong into files that all workers can read: of a ``numpy.memmap``
only the path travels.
"""

import asyncio
import ipaddress
import time
import uuid
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any, cast
from urllib.parse import urlsplit

import numpy as np

from maxmargin.errors import DistributedFitError
from maxmargin.rows.stored_files import NpyFile, file_of_memmap
from maxmargin.runtime import clock

MOST_BYTES = 512 << 20  # that the data of tasks may take
_SMALL = 1 << 16  # bytes that may travel with every task
_POLL = 0.5  # seconds after which clock and workers are checked while results are awaited
_NO_WORKERS = 300.0  # seconds after which a cluster without workers is given up
_TRIES, _BETWEEN_TRIES = 100, 0.1  # to find workers, and seconds in between
_LOST = ("CommClosedError", "FutureCancelledError", "FuturesCancelledError", "CancelledError")
_REPEAT = "Repeat the call then: nothing in this process has changed"


# ------------------------------------------------------------------- clients


def connect(cluster: Any, *, insecure: bool = False, name: str = "cluster") -> Any:
    """Return a client of a Dask cluster: the given one, or one of the scheduler at an address.

    Whoever gives an address ("tls://host:8786") closes the client. ``insecure`` allows addresses of
    other machines without TLS, where Dask authenticates nobody and runs whatever functions it is
    sent. ``name`` is what the argument is called in errors.
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
            f"{name}={cluster!r} is another machine without TLS, where everybody can read the "
            "data and run functions; give the scheduler and the workers certificates and use "
            "tls://. If the network is trusted, connect a distributed.Client and pass that (on the "
            "command line, --insecure)"
        )
    try:
        distributed: Any = import_module("distributed")
        return distributed.Client(cluster, set_as_default=False)
    except ImportError as missing:
        raise ImportError(
            "rows on a cluster need Dask, which is not installed: pip install dask distributed"
        ) from missing
    except (OSError, TimeoutError) as failed:
        raise DistributedFitError(
            f"there is no scheduler at {name}={cluster!r} ({failed}); start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from failed


def _is_safe(address: str) -> bool:
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    return parts.scheme in ("tls", "wss") or _is_here(parts.geturl())


def _is_here(address: str) -> bool:
    parts = urlsplit(address)
    try:
        return parts.scheme == "inproc" or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


@contextmanager
def cluster_of(client: Any) -> Iterator[Any]:
    """Yield the client that a ``client=`` stands for; one made of an address is closed at the end.

    None stays None: then work is done in this process.
    """
    if client is None:
        yield None
        return
    connected = connect(client, name="client")
    try:
        yield connected
    finally:
        if connected is not client:
            connected.close()


def compute(work: list[Any], client: Any) -> list[Any]:
    """Return what delayed work computes to: by the client if there is one, else in this process."""
    with cluster_of(client) as connected:
        if connected is not None:
            return list(connected.gather(connected.compute(work)))
    dask: Any = import_module("dask")
    return list(dask.compute(*work, scheduler="sync"))


def _same(value: Any) -> Any:
    return value


# ------------------------------------------------------------------- tasks and their results


class Cluster:
    """A client, with tasks in lists and errors that say what to do.

    Parameters
    ----------
    client : distributed.Client
        What ``connect`` returned.
    way_out : str
        What errors say last: how to go on once the cluster is there again.
    """

    def __init__(self, client: Any, *, way_out: str = _REPEAT) -> None:
        self.client, self.way_out = client, way_out

    # Workers.

    def workers(self) -> dict[str, Any]:
        """Return what the scheduler knows of each worker, by its address."""
        with self._explaining("the cluster"):
            found = self.client.scheduler_info(n_workers=-1)["workers"]
        return cast(dict[str, Any], found)

    def threads(self) -> list[str]:
        """Return the address of the worker of each thread, once there are workers."""
        for _ in range(_TRIES):  # a worker that was counted may be gone by now
            with self._explaining("the cluster"):
                self.client.wait_for_workers(1, timeout=_NO_WORKERS)
            if workers := self.workers():
                return [name for name in sorted(workers) for _ in range(workers[name]["nthreads"])]
            time.sleep(_BETWEEN_TRIES)
        raise DistributedFitError(
            "the cluster has no workers: start some with `dask worker ADDRESS`, then fit again"
        )

    def shares_files(self) -> bool:
        """Return whether scheduler and workers are on this machine, and so have its files."""
        found = self.client.scheduler_info(n_workers=-1)
        return all(_is_here(address) for address in (found["address"], *found["workers"]))

    # Tasks.

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a future of what a function returns."""
        with self._explaining(getattr(function, "__name__", "a task")), _large_graphs():
            return self.client.submit(function, *arguments, pure=False)

    def map(
        self, name: str, work: Callable[..., Any], *columns: Sequence[Any], places: Any = None
    ) -> list[Any]:
        """Return futures of ``work`` for items of the columns; the name makes their keys.

        ``places``: the worker on which each had best be, if that one is there.
        """
        token, count, found = uuid.uuid4().hex, len(columns[0]), []
        for place in [None] if places is None else list(dict.fromkeys(places)):
            own = [k for k in range(count) if places is None or places[k] == place]
            items = [[column[k] for k in own] for column in columns]
            keys = [f"mm-{name}-{token}-{k}" for k in own]
            more = {} if place is None else {"workers": [place], "allow_other_workers": True}
            with self._explaining("the cluster"), _large_graphs():
                found += self.client.map(work, *items, key=keys, pure=False, **more)
        return found

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Return futures of what Dask collections are made of."""
        with self._explaining("the cluster"), _large_graphs():
            return cast(list[Any], self.client.compute(delayed))

    def known_to_all(self, value: Any, size: int | None = None) -> Any:
        """Return what all tasks are given: bytes or another value, or a future of it if large."""
        small = (len(value) if size is None else size) <= _SMALL
        return value if small else self.map("value", _same, [value])[0]

    def share(self, make: Callable[..., Any], *values: Any) -> Any:
        """Return ``make(*values)`` as a future that all tasks can take: it can be made again."""
        travelling = [_to_travel(value) for value in values]
        size = sum(map(_bytes_of, travelling))
        if size > MOST_BYTES:
            raise ValueError(
                f"The data take {size / 2**20:.0f} MB, and tasks on a cluster carry at most "
                f"{MOST_BYTES >> 20} MB. Save large arrays with np.save where all workers can read "
                "them, and give np.load(path, mmap_mode='r') instead; or search on some of the "
                "rows."
            )
        return self.submit(_make, make, *travelling)

    # Results.

    def fetch(self, futures: list[Any], name: Callable[[int], str]) -> list[Any]:
        """Return the values of futures; ``name`` names one of them in errors."""
        with self._explaining("the cluster"):
            gathering = self.client.gather(futures, asynchronous=True)
            waiting = asyncio.run_coroutine_threadsafe(gathering, self.client.loop.asyncio_loop)
        seen = monotonic()
        try:
            while True:
                try:
                    return cast(list[Any], waiting.result(_POLL))
                except TimeoutError:
                    if waiting.done():  # then it is the task's own
                        raise
                clock.check()
                seen = monotonic() if self._has_workers() else seen
                if monotonic() - seen > _NO_WORKERS:
                    raise DistributedFitError(
                        f"{self._late(futures, name)}: there has been no worker for "
                        f"{_NO_WORKERS:g} seconds; start some with `dask worker ADDRESS`. "
                        f"{self.way_out}"
                    )
        except (DistributedFitError, clock.OutOfTimeError):
            raise
        except (Exception, asyncio.CancelledError) as failed:
            raise self._explained(failed, futures, name) from failed.__cause__
        finally:
            waiting.cancel()

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], what: str
    ) -> Generator[Any, None, None]:
        """Yield what a function returns for the arguments of each task, in the order of the tasks.

        Futures among the arguments arrive as their results. What a task raises is raised here, and
        the tasks that are left are cancelled; so they are after Ctrl-C. ``what`` names the tasks in
        errors.
        """
        futures = [self.submit(function, *task) for task in tasks]
        try:
            for k, future in enumerate(futures):
                name = f"{what}, task {k + 1} of {len(futures)}"
                yield self.fetch([future], [name].__getitem__)[0]
        finally:
            left = [future for future in futures if not future.done()]
            if left and self.client.status == "running":  # else there is nobody to ask
                with suppress(Exception):
                    self.client.cancel(left)

    def _has_workers(self) -> bool:
        """Return whether there are workers; raise if there is no scheduler."""
        if self.client.status != "running":  # futures do not survive a lost connection
            raise ConnectionError("the connection to the scheduler is closed")
        try:
            found = self.client.sync(
                self.client.scheduler.identity, n_workers=1, callback_timeout=5
            )
            return bool(found["workers"])
        except (OSError, TimeoutError):  # it is busy, or gone: the next check will show
            return True

    def _late(self, futures: list[Any], name: Callable[[int], str]) -> str:
        late = [number for number, each in enumerate(futures) if each.status == "pending"]
        return name(late[0]) if late else "the cluster"

    # Errors.

    def _explained(
        self, failed: BaseException, futures: list[Any], name: Callable[[int], str]
    ) -> BaseException:
        """Return the error for users: tasks raise their own, clusters ours."""
        wrong = [number for number, each in enumerate(futures) if each.status == "error"]
        if not wrong:
            return self._lost(failed, "the cluster")
        error = futures[wrong[0]].exception()
        if type(error).__name__ == "KilledWorker":
            return DistributedFitError(
                f"{name(wrong[0])}: {error.allowed_failures + 1} workers died while they computed "
                f"it (task {error.task}), most likely for want of memory; give workers more memory "
                "(--memory-limit) or fewer threads (--nthreads 1), or read the log of the last "
                f"one. {self.way_out}"
            )
        if isinstance(error, asyncio.CancelledError) or type(error).__name__ in _LOST:
            return self._lost(error, name(wrong[0]))
        return cast(BaseException, error)

    def _lost(self, failed: BaseException, name: str) -> DistributedFitError:
        return DistributedFitError(
            f"{name}: the scheduler or what it held is lost ({type(failed).__name__}: {failed}); "
            "see that scheduler and workers run (`dask scheduler`, `dask worker ADDRESS`), and "
            f"connect a new client. {self.way_out}"
        )

    @contextmanager
    def _explaining(self, name: str) -> Iterator[None]:
        """Turn errors of the connection into one that says what to do."""
        try:
            yield
        except (DistributedFitError, clock.OutOfTimeError):
            raise
        except (OSError, TimeoutError, RuntimeError, asyncio.CancelledError) as failed:
            raise self._lost(failed, name) from failed


@contextmanager
def _large_graphs() -> Iterator[None]:
    """Let arrays in memory travel with the tasks that need them: these can be done again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield


def _make(make: Callable[..., Any], *values: Any) -> Any:
    return make(*(_arrived(value) if isinstance(value, NpyFile) else value for value in values))


def _arrived(file: NpyFile) -> Any:
    if not Path(file.stamp.path).exists():
        raise FileNotFoundError(
            f"{file.stamp.path} holds the rows of this call, but a worker cannot see it. The file "
            "must have the same path on all machines; or give the rows as an array in memory."
        )
    return file.map(0, len(file))


def _to_travel(value: Any) -> Any:
    """Return an array that is in a file as its path, and anything else as it is."""
    file = file_of_memmap(value) if isinstance(value, np.memmap) else None
    return value if file is None else file


def _bytes_of(value: Any) -> int:
    """Return about how many bytes of data a value carries."""
    if isinstance(value, NpyFile):
        return 0
    if hasattr(value, "memory_usage"):  # a frame, or one of its columns
        return int(np.sum(value.memory_usage(deep=True)))
    if hasattr(value, "indptr"):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    return int(getattr(value, "nbytes", 0))
