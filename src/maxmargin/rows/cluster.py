"""Independent pure tasks on the workers of a Dask cluster: submitted together, gathered in order.

Nothing is scattered and nothing is an actor: what workers hold is the result of a task, so that a
lost worker costs the time to run its tasks again, on another one, and nothing else. The data of all
tasks are one such task, too. Its specification carries the arrays and stays with the scheduler,
from which a worker gets them whenever it needs them (again). That suits data of some hundred
megabytes. Larger arrays belong into files that all workers can read: of a ``numpy.memmap`` only the
path travels.
"""

import mmap
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.errors import DistributedFitError

MOST_BYTES = 512 << 20  # that the data of tasks may take
_POLL = 5.0  # seconds between two looks at whether there are workers at all
_PATIENCE = 12  # such looks without any worker, after which nobody waits any longer
_AGAIN = "Start the cluster again, connect a new Client to it, and repeat the call"


@contextmanager
def cluster_of(client: Any) -> Iterator[Any]:
    """Yield the client that a ``client=`` stands for; one made of an address is closed at the end.

    None stays None: then work is done in this process.
    """
    from maxmargin.rows.on_dask import connect

    if client is None:
        yield None
        return
    try:
        connected = connect(client)
    except ValueError:
        raise ValueError(
            f"client={client!r} is another machine without TLS, where everybody can read the data "
            "and run functions: use tls://. If the network is trusted, connect a "
            "distributed.Client to it, and give that."
        ) from None
    try:
        yield connected
    finally:
        if connected is not client:
            connected.close()


# ------------------------------------------------------------------- the data of tasks


class _Mapped(NamedTuple):
    """An array in a file, which every worker opens by itself."""

    path: str
    dtype: Any
    offset: int
    shape: tuple[int, ...]
    fortran: bool

    def open(self) -> Any:
        order: Any = "F" if self.fortran else "C"
        if not Path(self.path).exists():
            raise FileNotFoundError(
                f"{self.path} holds the rows of this call, but a worker cannot see it. The file "
                "must have the same path on all machines; or give the rows as an array in memory."
            )
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)


def share(client: Any, make: Callable[..., Any], *values: Any) -> Any:
    """Return ``make(*values)`` as a future that all tasks can take: a task that can be run again.

    Raises ``ValueError`` for more bytes than a task should carry.
    """
    size = sum(map(_bytes_of, values))
    if size > MOST_BYTES:
        raise ValueError(
            f"The data take {size / 2**20:.0f} MB, and tasks on a cluster carry at most "
            f"{MOST_BYTES >> 20} MB. Save large arrays with np.save where all workers can read "
            "them, and give np.load(path, mmap_mode='r') instead; or search on some of the rows."
        )
    with warnings.catch_warnings(), _explained(client, "the data"):
        # The data are meant to be in the task: see above.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return client.submit(_make, make, *map(_to_travel, values), pure=False)


def _make(make: Callable[..., Any], *values: Any) -> Any:
    return make(*(value.open() if isinstance(value, _Mapped) else value for value in values))


def _to_travel(value: Any) -> Any:
    """Return an array that is a whole file as its path, and anything else as it is."""
    if not isinstance(value, np.memmap) or not isinstance(value.base, mmap.mmap):
        return value
    path = getattr(value, "filename", None)
    if path is None:
        return value
    fortran = value.flags.f_contiguous and not value.flags.c_contiguous
    return _Mapped(str(Path(path).resolve()), value.dtype, value.offset, value.shape, fortran)


def _bytes_of(value: Any) -> int:
    """Return about how many bytes of data a value carries."""
    if isinstance(_to_travel(value), _Mapped):
        return 0
    if hasattr(value, "memory_usage"):  # a frame, or one of its columns
        return int(np.sum(value.memory_usage(deep=True)))
    if hasattr(value, "indptr"):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    return int(getattr(value, "nbytes", 0))


# ------------------------------------------------------------------- tasks


def threads_of(client: Any) -> int:
    """Return how many tasks the cluster runs at a time."""
    with _explained(client, "the number of workers"):
        return int(max(1, sum(client.nthreads().values())))


def scheduler_info(client: Any) -> Any:
    """Return what the scheduler knows of its workers."""
    with _explained(client, "the workers"):
        return client.scheduler_info()


def submit(client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a future of what a function returns, for tasks that take it as an argument."""
    with _explained(client, getattr(function, "__name__", "a task")):
        return client.submit(function, *arguments, pure=False)


def run_tasks(
    client: Any, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], what: str
) -> Generator[Any, None, None]:
    """Yield what a function returns for the arguments of each task, in the order of the tasks.

    Futures among the arguments arrive as their results. What a task raises is raised here, and the
    tasks that are left are cancelled; so they are after Ctrl-C. ``what`` names the tasks in errors.
    """
    with _explained(client, what):
        futures = [client.submit(function, *task, pure=False) for task in tasks]
    try:
        for k, future in enumerate(futures):
            with _explained(client, f"{what}, task {k + 1} of {len(futures)}"):
                found = _wait_for(client, future)
            yield found
    finally:
        left = [future for future in futures if not future.done()]
        if left and getattr(client, "status", "") == "running":  # else there is nobody to ask
            with suppress(Exception):
                client.cancel(left)


def _wait_for(client: Any, future: Any) -> Any:
    alone = 0
    while True:
        try:
            return future.result(timeout=_POLL)
        except TimeoutError:
            if future.done():  # then it is the task's own
                raise
        alone = 0 if client.nthreads() else alone + 1
        if alone >= _PATIENCE:
            raise DistributedFitError(
                f"The cluster at {_address(client)} has had no worker for "
                f"{_POLL * _PATIENCE:.0f} seconds. Start workers there (dask worker ADDRESS), and "
                "repeat the call."
            )


@contextmanager
def _explained(client: Any, what: str) -> Iterator[None]:
    """Turn the errors of a cluster into one that says what to do; others are the task's own."""
    try:
        yield
    except DistributedFitError:
        raise
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        ours = not type(error).__module__.startswith("distributed")
        if ours and getattr(client, "status", "running") == "running":
            raise
        if "KilledWorker" in kinds:
            raise DistributedFitError(
                f"Every worker that ran {what} died of it, most likely for want of memory. Give "
                "workers more memory or fewer threads each (dask worker --nthreads 1), or set a "
                "smaller memory=."
            ) from error
        raise DistributedFitError(
            f"The cluster at {_address(client)} was lost during {what} ({type(error).__name__}). "
            f"{_AGAIN}; nothing in this process has changed."
        ) from error


def _address(client: Any) -> str:
    return str(getattr(getattr(client, "scheduler", None), "address", "an unknown address"))
