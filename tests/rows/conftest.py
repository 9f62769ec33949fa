"""A real cluster for tests: a scheduler and two workers on loopback, which tests may kill."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_LONG = 60.0  # seconds after which a process that does not answer fails the test


class Cluster:
    """A ``dask scheduler`` and ``dask worker`` processes of one thread, without nannies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self.client: Any = None
        found = folder / "scheduler.json"
        quiet = ["--no-dashboard", "--no-show", "--host", "127.0.0.1", "--port", "0"]
        self.scheduler = self._start("scheduler", *quiet, "--scheduler-file", str(found))
        until = time.monotonic() + _LONG
        while not found.exists() or not found.read_text():
            if self.scheduler.poll() is not None or time.monotonic() > until:
                raise RuntimeError((folder / "scheduler.log").read_text())
            time.sleep(0.02)
        self.address = str(json.loads(found.read_text())["address"])

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with (self.folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", kind, *arguments],
                cwd=self.folder,
                env={**os.environ, **single, "PYTHONPATH": paths},
                stdout=log,
                stderr=log,
            )

    def start_worker(self) -> None:
        """Start a worker; it joins when it is ready."""
        quiet = ["--no-dashboard", "--no-nanny", "--host", "127.0.0.1"]
        small = ["--nthreads", "1", "--memory-limit", "0", "--death-timeout", "60"]
        name = ["--name", f"{len(self.workers)}", "--local-directory", str(self.folder)]
        self.workers.append(self._start("worker", self.address, *quiet, *small, *name))

    def ready(self, count: int = 2) -> Any:
        """Return a client of the cluster with so many workers: some are started, or killed."""
        if self.client is None:
            distributed: Any = import_module("distributed")
            self.client = distributed.Client(self.address, set_as_default=False, timeout=_LONG)
        while len(self.alive()) > count:
            self.kill_worker()
        for _ in range(count - len(self.alive())):
            self.start_worker()
        until = time.monotonic() + _LONG
        while len(self.client.nthreads()) != count:
            if time.monotonic() > until:
                raise RuntimeError((self.folder / "worker.log").read_text())
            time.sleep(0.02)
        return self.client

    def alive(self) -> list[int]:
        """Return the process ids of the workers, the oldest first."""
        return [each.pid for each in self.workers if each.poll() is None]

    def kill_worker(self, which: int = 0) -> None:
        """End a worker with SIGKILL."""
        process = next(each for each in self.workers if each.pid == self.alive()[which])
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """End everything, whatever state it is in."""
        if self.client is not None:
            with suppress(Exception):
                self.client.close(timeout=5)
        for process in [*self.workers, self.scheduler]:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster that lives as long as the tests; ``ready()`` gives a client of it."""
    pytest.importorskip("distributed")
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(params=["here", pytest.param("on workers", marks=pytest.mark.cluster)])
def client(request: pytest.FixtureRequest) -> Any:
    """Return no client, or one of two workers."""
    return None if request.param == "here" else request.getfixturevalue("cluster").ready(2)


class KillAtFile:
    """Kills a worker when a step in it says so: by a file that it makes, once for each name."""

    def __init__(self, cluster: Cluster, path: Path) -> None:
        self.cluster, self.path, self.killed = cluster, path, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self.over.wait(0.005):
            with suppress(OSError, ValueError):
                process = int(self.path.read_text())
                os.kill(process, signal.SIGKILL)
                self.path.rename(self.path.with_suffix(".done"))
                self.killed += 1
                self.cluster.start_worker()

    def __enter__(self) -> "KillAtFile":
        """Begin to watch."""
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop watching."""
        self.over.set()
        self.thread.join()


@contextmanager
def client_that_forgives_nothing(client: Any) -> Iterator[None]:
    """Let a task fail with the first worker that it kills."""
    before = client.run_on_scheduler(allow_failures, 0)
    yield
    client.run_on_scheduler(allow_failures, before)


def allow_failures(count: int, dask_scheduler: Any = None) -> int:
    before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, count
    return int(before)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the cluster: ``./check --cluster`` and ``.ci/run`` run it."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)
