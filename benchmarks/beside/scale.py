"""Rows on disk and on a cluster beside rows in memory.

``python -m benchmarks.run scale`` needs 6 GB of disk and memory, and the extras ``tables`` and
``dask``; ``--rows`` makes it smaller. Rows are 50 columns of float64 with classes that overlap.
"""

import importlib
import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import contest
from benchmarks.contest import Contest, Results
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report

ROWS, QUICK_ROWS, COLUMNS = 5_000_000, 20_000, 50
MEMORY = "768MB"  # for blocks of rows on disk, of which there are 2 GB
CHUNK = 100_000  # rows that are made at once, and of a row group
CASES = ("disk", "cluster")
MEMORY_ROWS, NPY, PARQUET = "in memory", ".npy on disk", "Parquet on disk"
ONE, TWO, READ = "one worker", "two workers", "read, then 2 threads"


def run(options: Options) -> Report:
    """Measure every case that can be had."""
    X, y = rows(2000)
    mm.LinearSVC().fit(mm.data.open(X, y, rows=500))  # so that all loops are compiled
    with threadpool_limits(options.threads), tempfile.TemporaryDirectory() as folder:
        return contest.run("scale", _contests(options, Path(folder)), options)[0]


def _contests(options: Options, folder: Path) -> Iterator[Contest]:
    makers = {"disk": _disk, "cluster": _cluster}
    n = options.at_most(ROWS, QUICK_ROWS)
    for name in options.chosen(CASES):
        yield from makers[name](n, options, folder)


def rows(n: int) -> tuple[Any, Any]:
    """Return rows of two classes that overlap, with columns that depend on each other."""
    rng = np.random.default_rng(0)
    X, mixing = np.empty((n, COLUMNS)), np.eye(COLUMNS) + 0.1 * rng.standard_normal((COLUMNS,) * 2)
    plane, y = rng.standard_normal(COLUMNS), np.empty(n, np.int64)
    for start in range(0, n, CHUNK):
        part = rng.standard_normal((min(CHUNK, n - start), COLUMNS)) @ mixing
        noise = 4.0 * rng.standard_normal(len(part))
        X[start : start + len(part)] = part
        y[start : start + len(part)] = np.where(part @ plane + noise > 1.0, 1, -1)
    return X, y


# ------------------------------------------------------------------- disk


def _disk(n: int, options: Options, folder: Path) -> Iterator[Contest]:
    X, y = rows(n)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    model = mm.LinearSVC(n_jobs=options.threads)
    memory = MEMORY if n == ROWS else "16MB"

    def on_disk() -> Any:
        source = mm.data.open(folder / "X.npy", folder / "y.npy", memory=memory)
        return _clone(model).fit(source)

    calls: dict[str, Callable[[], Any]] = {
        MEMORY_ROWS: lambda: _clone(model).fit(X, y),
        NPY: on_disk,
    }
    if importlib.util.find_spec("pyarrow"):
        _write_parquet(folder, X, y)
        calls[PARQUET] = lambda: _clone(model).fit(
            mm.data.open(str(folder / "part-*.parquet"), label="y", memory=memory)
        )
    yield Contest(
        "out of core", f"{n}×{COLUMNS}, memory={memory}", calls, base=MEMORY_ROWS,
        most={name: 1.5 for name in calls if name != MEMORY_ROWS},
        facts=_facts, checks=_same,
    )  # fmt: skip


def _write_parquet(folder: Path, X: Any, y: Any) -> None:
    import pyarrow
    import pyarrow.parquet

    names = [f"x{j}" for j in range(X.shape[1])]
    for k, start in enumerate(range(0, len(y), 10 * CHUNK)):
        part = slice(start, start + 10 * CHUNK)
        columns = {**dict(zip(names, X[part].T, strict=True)), "y": y[part]}
        pyarrow.parquet.write_table(
            pyarrow.table(columns), folder / f"part-{k}.parquet", row_group_size=CHUNK,
            compression="none", use_dictionary=False,
        )  # fmt: skip


# ------------------------------------------------------------------- a cluster on this machine


def _cluster(n: int, options: Options, folder: Path) -> Iterator[Contest]:
    if importlib.util.find_spec("distributed") is None:
        return
    X, y = rows(n)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    calls: dict[str, Callable[[], Any]] = {
        "2 threads": lambda: mm.LinearSVC(n_jobs=2).fit(X, y),
        "1 thread": lambda: mm.LinearSVC(n_jobs=1).fit(X, y),
        READ: lambda: mm.LinearSVC(n_jobs=2).fit(*(np.load(folder / f"{v}.npy") for v in "Xy")),
    }
    with _workers(1) as one, _workers(2) as two:
        for name, client in ((ONE, one), (TWO, two)):
            calls[name] = _fit_on(client, folder)
        yield Contest(
            "Dask", f"{n}×{COLUMNS}", calls, base=TWO,
            least={ONE: 1.5, READ: 1 / 1.2}, facts=_facts, checks=_same,
        )  # fmt: skip


def _fit_on(client: Any, folder: Path) -> Callable[[], Any]:
    def fit() -> Any:
        files = folder / "X.npy", folder / "y.npy"
        return mm.LinearSVC().fit(mm.data.open(*files, client=client))

    return fit


class _workers:  # noqa: N801 (used as a function)
    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> Any:
        distributed: Any = importlib.import_module("distributed")
        self.cluster = distributed.LocalCluster(
            n_workers=self.count, threads_per_worker=1, processes=True, dashboard_address=None
        )
        self.client = distributed.Client(self.cluster)
        return self.client

    def __exit__(self, *error: object) -> None:
        self.client.close()
        self.cluster.close()


# ------------------------------------------------------------------- what is compared


def _clone(model: Any) -> Any:
    from sklearn.base import clone

    return clone(model)


def _facts(name: str, model: Any) -> dict[str, Cell]:
    return {"iterations": int(np.max(model.n_iter_)), "gap": model.certificate_.relative_gap}


def _same(results: Results) -> list[Check]:
    models = list(results.values())
    apart = max(float(np.abs(model.coef_ - models[0].coef_).max()) for model in models)
    claim = "all find the same model, to the bit"
    return [Check("same problem", claim, apart == 0.0, f"weights differ by {apart:.1g}")]
