"""Reading svmlight text: beside scikit-learn, in CPU time with one thread; and with more threads.

Real sets are unpacked first; the generated ones have values of 17 digits, and of one. Both readers
must find the same numbers.
"""

import lzma
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks import contest, datasets
from benchmarks.contest import Contest, Outcome, Results
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report
from maxmargin.data import read_svmlight, write_svmlight

TARGET = 4.0  # times as fast as scikit-learn, in CPU time
REAL = ("a9a", "news20", "covtype", "kddcup99-10pct", "usps", "casp", "mnist")
ROWS, QUICK_ROWS = 20_000, 300  # of a generated table
SKLEARN, OURS, THREADS = "scikit-learn", "one thread", "threads"


def run(options: Options) -> Report:
    """Measure every case that can be had."""
    with tempfile.TemporaryDirectory() as folder:
        contests = _contests(options, Path(folder))
        report, outcomes = contest.run("reading", contests, options, warm_ups=1)
    report.checks += [_target(outcome) for outcome in outcomes]
    return report


def _contests(options: Options, folder: Path) -> Iterator[Contest]:
    for name in options.chosen([*REAL, *GENERATED]):
        path = folder / "rows.svm"
        try:
            _write(name, path, options)
        except datasets.UnavailableError as reason:
            print(f"skipped {name}: {reason}")
            continue
        yield _contest(name, path, options)


def _write(name: str, path: Path, options: Options) -> None:
    if name in GENERATED:
        rng = np.random.default_rng(datasets.SEED)
        rows = options.at_most(ROWS, QUICK_ROWS)
        write_svmlight(path, GENERATED[name](rng, rows), rng.integers(0, 2, rows))
        return
    packed = None if options.data is None else options.data / f"{name}.svm.xz"
    if packed is not None and packed.exists():
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        return
    dataset = datasets.real(name, options.data)  # says why there is none, or is of another format
    write_svmlight(path, dataset.X, dataset.y)


def _table_of_doubles(rng: np.random.Generator, rows: int) -> Any:
    return rng.normal(size=(rows, 50))


def _table_of_digits(rng: np.random.Generator, rows: int) -> Any:
    return rng.integers(0, 10, size=(rows, 100))


GENERATED: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "17 digits": _table_of_doubles,
    "one digit": _table_of_digits,
}


def _contest(name: str, path: Path, options: Options) -> Contest:
    return Contest(
        name,
        f"{path.stat().st_size / 1e6:.1f} MB",
        {
            SKLEARN: partial(load_svmlight_file, str(path), zero_based=False),
            OURS: partial(read_svmlight, path, threads=1),
            THREADS: partial(read_svmlight, path, threads=options.threads),
        },
        base=OURS,
        facts=partial(_facts, path.stat().st_size),
        checks=partial(_checks, name),
    )


def _facts(size: int, name: str, rows: Any) -> dict[str, Cell]:
    return {"values": int(rows[0].nnz), "bytes per value": size / max(1, rows[0].nnz)}


def _checks(name: str, results: Results) -> list[Check]:
    X, y = results[SKLEARN]
    found = [results[each] for each in (OURS, THREADS)]
    same = all(
        np.array_equal(rows.X.data, X.data)
        and np.array_equal(rows.X.indices, X.indices)
        and np.array_equal(rows.X.indptr, X.indptr)
        and np.array_equal(rows.y, y)
        for rows in found
    )
    return [Check("same problem", f"{name}: all read the same numbers", same, f"{X.nnz} values")]


def _target(outcome: Outcome) -> Check:
    times = outcome.timings.times(SKLEARN, OURS, "cpu").median
    claim = f"{outcome.contest.name}: at least {TARGET:g} times as fast as scikit-learn (CPU time)"
    return Check("target", claim, bool(times >= TARGET), f"{times:.1f} times")
