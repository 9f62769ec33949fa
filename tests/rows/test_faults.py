"""Killed workers, schedulers and processes: fits end with the bits of undisturbed ones."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import maxmargin as mm
from maxmargin.errors import DistributedFitError
from maxmargin.rows.cluster import Cluster as RealCluster
from tests.rows.conftest import ROOT, Cluster

N, D = 24_000, 12  # four leaves, and too many numbers to be polished
EVERY = 2  # iterations between two checkpoints


def make_rows(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) + rng.standard_normal(D)
    margin = X @ rng.standard_normal(D) + 2 * rng.standard_normal(N)
    return X, np.where(margin > np.median(margin), "in", "out")


def machine(**more: Any) -> Any:
    return mm.LinearSVC(**{"C": 0.5, "tol": 1e-6, **more})


def opened(folder: Path | None = None, seed: int = 0, **options: Any) -> Any:
    source = mm.data.open(*make_rows(seed), rows=2_500, checkpoint=folder, **options)
    return source.with_options(every=EVERY)


@pytest.fixture(scope="module")
def expected() -> Any:
    return machine().fit(*make_rows())


def assert_same_bits(found: Any, expected: Any) -> None:
    for name in ("coef_", "intercept_", "alpha_", "support_"):
        assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-14)
    assert found.n_iter_ == expected.n_iter_


# ------------------------------------------------------------------- workers


class Killer:
    """Kills a worker when so many lists of tasks have been sent, and starts another."""

    def __init__(self, cluster: Cluster, at: int, which: int, delay: float) -> None:
        self.cluster, self.at, self.which, self.delay = cluster, at, which, delay
        self.sent = 0
        self.timer: threading.Timer | None = None

    def count(self) -> None:
        self.sent += 1
        if self.sent == self.at:
            self.timer = threading.Timer(self.delay, self._kill)
            self.timer.start()

    def _kill(self) -> None:
        self.cluster.kill_worker(self.which)
        self.cluster.start_worker()


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch, killer: Killer) -> Iterator[None]:
    """Tell a killer of all tasks: those that read parts, survey them, pass over blocks and save."""
    send = RealCluster.map

    def counted(*args: Any, **more: Any) -> Any:
        found = send(*args, **more)
        killer.count()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(RealCluster, "map", counted)
        try:
            yield
        finally:
            if killer.timer is not None:
                killer.timer.join()


@pytest.fixture(scope="module")
def lists_of_tasks(cluster: Cluster, expected: Any) -> int:
    """Return how many lists of tasks an undisturbed fit sends."""
    killer = Killer(cluster, 0, 0, 0.0)
    with pytest.MonkeyPatch.context() as patch, counting(patch, killer):
        assert_same_bits(machine().fit(opened(client=cluster.ready(2))), expected)
    return killer.sent


SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(5, 105))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_worker_changes_no_bit(
    cluster: Cluster, seed: int, lists_of_tasks: int, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    at, which = int(rng.integers(1, lists_of_tasks)), int(rng.integers(2))
    client = cluster.ready(2)
    killer = Killer(cluster, at, which, 0.05 * rng.random())
    with counting(monkeypatch, killer):
        found = machine().fit(opened(client=client))
    assert killer.sent >= at
    assert_same_bits(found, expected)


def test_no_more_iterations_than_between_two_checkpoints_are_made_again(
    cluster: Cluster, expected: Any
) -> None:
    client, last = cluster.ready(2), expected.n_iter_ - 1
    assert last >= 3 * EVERY, "the fit is too short to tell"

    def kill(progress: Any) -> None:
        if progress.iteration == last:
            cluster.kill_worker(0)
            cluster.start_worker()

    distributed = pytest.importorskip("distributed")
    with distributed.get_task_stream(client) as stream:
        found = machine(callback=kill).fit(opened(client=client))
    assert_same_bits(found, expected)
    keys = Counter(each["key"] for each in stream.data)
    again = {key.rsplit("-", 1)[0] for key, count in keys.items() if count > 1 and "mm-look" in key}
    assert len({key for key in keys if "mm-look" in key}) >= last
    assert len(again) <= EVERY + 1


def test_nothing_is_left_in_the_folder_for_temporary_files(
    cluster: Cluster, tmp_path: Path, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    saved: list[int] = []

    def look(progress: Any) -> None:
        saved.append(len(list(tmp_path.glob("maxmargin-*/problem-0/*.npz"))))

    assert_same_bits(machine(callback=look).fit(opened(client=cluster.ready(2))), expected)
    assert max(saved) > 0

    def fail(progress: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        machine(callback=fail).fit(opened(client=cluster.ready(2)))
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------- the scheduler


@pytest.mark.cluster
def test_a_fit_goes_on_after_the_scheduler_was_lost(tmp_path: Path, expected: Any) -> None:
    pytest.importorskip("distributed")
    kept = tmp_path / "kept"

    def cluster_in(name: str) -> Cluster:
        (tmp_path / name).mkdir()
        return Cluster(tmp_path / name)

    first = cluster_in("first")
    try:

        def kill(progress: Any) -> None:
            if progress.iteration == 2 * EVERY + 2:
                first.scheduler.kill()

        with pytest.raises(DistributedFitError, match="A fit with checkpoint=… goes on"):
            machine(callback=kill).fit(opened(kept, client=first.ready(2)))
    finally:
        first.close()
    alone = tmp_path / "alone"
    shutil.copytree(kept, alone)  # a fit without a cluster can go on, too
    iterations: list[int] = []

    def note(progress: Any) -> None:
        iterations.append(progress.iteration)

    assert_same_bits(machine(callback=note).fit(opened(alone)), expected)
    second = cluster_in("second")
    try:
        found = machine(callback=note).fit(opened(kept, client=second.ready(1)))
        assert_same_bits(found, expected)
        assert not list(kept.iterdir())
    finally:
        second.close()


# ------------------------------------------------------------------- one process


SCRIPT = """
import json, os, signal, sys
from pathlib import Path

import numpy as np

import maxmargin as mm
from maxmargin.rows import checkpoint
from tests.rows.test_faults import machine, make_rows, opened

folder, *moments = Path(sys.argv[1]), *map(int, sys.argv[2:])
mm.LinearSVC(n_jobs=1).fit(np.eye(4), [0, 1, 0, 1])  # loads what is compiled


def fit(number, moment):
    '''Fit, and be killed when so many files have been written, or when one is about to be.'''
    written, write = [0], checkpoint.write_atomically

    def counted(path, work):
        if written[0] == moment and number % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, work)
        written[0] += 1
        if written[0] == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoint.write_atomically = counted
    model = machine(n_jobs=1).fit(opened(folder / str(number), memory="8MB"))
    told = {
        "coef": model.coef_.tobytes().hex(),
        "intercept": model.intercept_.tobytes().hex(),
        "certificate": repr(model.certificate_),
        "iterations": model.n_iter_,
        "written": written[0],
    }
    (folder / f"{number}.json").write_text(json.dumps(told))


def in_child(number, moment):
    child = os.fork()
    if not child:
        fit(number, moment)
        os._exit(0)
    return os.waitpid(child, 0)[1]


for number, moment in enumerate(moments):
    killed = in_child(number, moment) if moment >= 0 else -1
    ended = in_child(number, -1)
    print(number, moment, killed, ended, flush=True)
"""


def fits_in_a_process(folder: Path, moments: list[int]) -> tuple[list[list[int]], list[Any]]:
    """Return how processes ended that were killed and ran again, and what the latter found."""
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), *map(str, moments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    ends = [[int(word) for word in line.split()] for line in found.stdout.splitlines()]
    paths = sorted(folder.glob("*.json"), key=lambda path: int(path.stem))
    return ends, [json.loads(path.read_text()) for path in paths]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize(
    "kills", [pytest.param(6, marks=pytest.mark.wide), pytest.param(60, marks=pytest.mark.full)]
)
def test_killed_processes_go_on_to_the_same_bits(tmp_path: Path, kills: int, expected: Any) -> None:
    (tmp_path / "first").mkdir()
    _, [undisturbed] = fits_in_a_process(tmp_path / "first", [-1])
    assert undisturbed["coef"] == expected.coef_.tobytes().hex()
    total = undisturbed.pop("written")
    assert total > 4
    moments = np.random.default_rng(0).integers(1, total, kills).tolist()
    (tmp_path / "killed").mkdir()
    ends, found = fits_in_a_process(tmp_path / "killed", moments)
    for (_, moment, killed, ended), model in zip(ends, found, strict=True):
        assert (killed, ended) == (signal.SIGKILL, 0)
        again = model.pop("written")
        assert model == undisturbed
        if moment > total // 2:
            assert again < total  # it did not begin anew
    assert not [path for path in (tmp_path / "killed").glob("*/*") if path.is_file()]


class StopError(Exception):
    """Ends a fit."""


def begin(folder: Path, **options: Any) -> None:
    """Begin a fit that is given up after a few iterations."""

    def stop(progress: Any) -> None:
        if progress.iteration == 2 * EVERY + 2:
            raise StopError

    with pytest.raises(StopError):
        machine(callback=stop).fit(opened(folder, **options))


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


OTHERS: dict[str, dict[str, Any]] = {
    "rows": {},
    "C": {"C": 0.7},
    "loss": {"loss": "squared_hinge"},
    "intercept": {"intercept": "penalized"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_another_fit_saved_is_refused_and_kept(
    tmp_path: Path, expected: Any, what: str
) -> None:
    kept = tmp_path / "kept"
    begin(kept)
    before = contents(kept)
    with pytest.raises(ValueError, match=r"kept.*not finished.*name another folder"):
        machine(**OTHERS[what]).fit(opened(kept, seed=int(what == "rows")))
    assert contents(kept) == before
    assert_same_bits(machine().fit(opened(kept)), expected)
    assert not contents(kept)
