"""Kernel PCA against scikit-learn's eigen solvers: seconds, memory, and the angle to the truth.

A fit is compared only with those whose subspace is about as near to the exact one, or nearer. Each
is a process of its own, so that its peak of memory is its own.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import subspace_angles

from benchmarks import contest
from benchmarks.children import call, peak_megabytes
from benchmarks.contest import Contest, Outcome, Results
from benchmarks.measure import Clock
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report

TARGET = 3.0  # times faster than the best of scikit-learn's
MEMORY = 2000.0  # megabytes at the peak, on the largest
SIZES = {"5k": 5_000, "20k": 20_000, "100k": 100_000}
ALONE = ("100k",)  # where a peer would need 80 GB
QUICK = 1_200
COLUMNS, COMPONENTS = 50, 50
AS_GOOD = 3.0  # angles within this factor count as equal
DEFAULT, REFERENCE = "ours, tol=1e-6", "ours, tol=1e-13"
OURS = {DEFAULT: 1e-6, "ours, tol=1e-11": 1e-11, REFERENCE: 1e-13}
PEERS: dict[str, dict[str, Any]] = {
    "randomized": {"eigen_solver": "randomized"},
    "arpack": {"eigen_solver": "arpack"},
    "arpack, tol=1e-6": {"eigen_solver": "arpack", "tol": 1e-6},
    "arpack, tol=1e-2": {"eigen_solver": "arpack", "tol": 1e-2},
}


def run(options: Options) -> Report:
    """Measure every size asked for."""
    report, outcomes = contest.run("kpca", _contests(options), options)
    report.notes.append(f"RBF kernel, {COLUMNS} columns, {COMPONENTS} components")
    report.checks += [check for outcome in outcomes for check in _targets(outcome)]
    return report


def _contests(options: Options) -> Iterator[Contest]:
    for size in options.chosen(SIZES):
        rows = options.at_most(SIZES[size], QUICK)
        names = [DEFAULT] if size in ALONE else [*OURS, *PEERS]
        fits = {name: partial(call, fit, options.threads, name=name, rows=rows) for name in names}
        yield Contest(size, f"{rows:,} rows", fits, base=DEFAULT, facts=_facts)


def fit(name: str, rows: int) -> dict[str, Any]:
    """Be the child: fit once, after a small fit that compiles."""
    X = rows_of(rows)
    model(name).fit(X[: min(1100, len(X))])
    wall, cpu = time.perf_counter(), time.process_time()
    fitted = model(name).fit(X)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "wall": wall,
        "cpu": cpu,
        "peak": peak_megabytes(),
        "residual": float(np.max(getattr(fitted, "residuals_", np.nan))),
        "vectors": fitted.eigenvectors_,
    }


def rows_of(n: int) -> Any:
    """Return ten overlapping clouds."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, COLUMNS))
    return centres[rng.integers(10, size=n)] + rng.normal(size=(n, COLUMNS))


def model(name: str) -> Any:
    """Return a candidate."""
    if name in OURS:
        import maxmargin as mm

        return mm.KernelPCA(
            COMPONENTS, kernel="rbf", eigen_solver="iterative", tol=OURS[name], random_state=0
        )
    from sklearn.decomposition import KernelPCA

    return KernelPCA(COMPONENTS, kernel="rbf", random_state=0, **PEERS[name])


def _facts(name: str, said: Any) -> dict[str, Cell]:
    return {"peak MB": said["peak"], "residual/λ₁": said["residual"]}


def angle(name: str, results: Results) -> float:
    """Return the sine of the largest angle to the reference."""
    vectors = (results[who]["vectors"] for who in (name, REFERENCE))
    return float(np.sin(subspace_angles(*vectors).max()))


def _targets(outcome: Outcome) -> list[Check]:
    size, results = outcome.contest.name, outcome.results
    if REFERENCE not in results:
        peak = results[DEFAULT]["peak"]
        claim = f"{size}: at most {MEMORY:g} MB"
        return [Check("target", claim, bool(peak <= MEMORY), f"{peak:.0f} MB")]
    angles = {name: angle(name, results) for name in results}
    checks = []
    for ours in (name for name in OURS if name != REFERENCE):
        near = [name for name in PEERS if angles[name] <= AS_GOOD * angles[ours]]
        best = min(near, key=lambda name: outcome.timings.seconds(name).median, default=None)
        claim = f"{size}: {ours}: {TARGET:g} times as fast as the best peer as near"
        said = ", ".join(f"{name} {value:.1g}" for name, value in angles.items())
        if best is None:
            checks.append(Check("target", claim, None, f"no peer is as near; angles: {said}"))
            continue
        clocks: tuple[Clock, ...] = ("wall", "cpu")
        wall, cpu = (outcome.timings.times(best, ours, clock).median for clock in clocks)
        found = f"{wall:.1f} times ({cpu:.1f} in CPU time), against {best}; angles: {said}"
        checks.append(Check("target", claim, bool(wall >= TARGET), found))
    return checks
