"""A million rows by feature maps: certified linear machines beside scikit-learn's maps with SGD.

Everybody may use any width (number of features) and each run is a fresh process. What counts is the
accuracy on held-out rows that can be had within a time: map, features of all rows and learning, all
counted. SGD learns by epochs, and is judged after each; it is shown with the best of several
penalties (tried with the fewest features) and epochs, chosen by the very rows that judge it: that
favours it.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import datasets, pictures
from benchmarks.children import peak_megabytes, run_python
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table

ROWS, QUICK_ROWS, TESTS = 1_000_000, 5000, 20_000
WIDTHS, QUICK_WIDTHS = (128, 256, 512), (32, 64)
GAMMA, C, TOL = 2.0, 10.0, 1e-2
JITTER = 0.01  # of a column's range
NUMERIC = 10  # columns of covtype that are measurements; the others are indicators
CASES = ("covtype-jitter", "synthetic")
OURS = ("Nystroem", "Nystroem kmeans", "RandomFourier")
THEIRS = ("sklearn Nystroem", "sklearn RBFSampler")
EPOCHS = 60  # at most
PENALTIES = (1e-6, 1e-5, 1e-4)  # of SGD, beside the one that makes it the same problem


class Run(NamedTuple):
    """What one candidate did: the course is seconds so far and the accuracy then."""

    name: str
    width: int
    map_seconds: float
    course: list[tuple[float, float]]
    megabytes: float  # at the peak, beyond those of the data
    gap: float | None  # certified, relative
    setting: str

    def within(self, seconds: float) -> float:
        """Return the best accuracy reached by then."""
        return max((score for when, score in self.course if when <= seconds), default=0.0)


def run(options: Options) -> Report:
    """Measure every case that can be had."""
    report, panels = Report("maps"), {}
    for case in options.chosen(CASES):
        rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
        with tempfile.TemporaryDirectory() as folder:
            try:
                note = prepare(case, rows, options.data, Path(folder))
            except datasets.UnavailableError as reason:
                print(f"skipped {case}: {reason}")
                continue
            runs = measured(case, rows, Path(folder), options)
        report.tables.append(_table(case, rows, runs))
        report.checks += _checks(case, runs)
        report.notes.append(f"{case}: {note}; RBF with gamma={GAMMA:g}, C={C:g}, tol={TOL:g}")
        panels[case] = [pictures.Curve(name, *_frontier(runs, name)) for name in OURS + THEIRS]
    if panels:
        report.draw = lambda: pictures.against_seconds(panels, "held-out accuracy", False)
    return report


def measured(case: str, rows: int, folder: Path, options: Options) -> list[Run]:
    """Run ours, then theirs with as much time as the longest of ours took."""
    widths = QUICK_WIDTHS if options.quick else WIDTHS
    runs: list[Run] = []
    for names, penalties in ((OURS, (0.0,)), (THEIRS, (1 / (C * rows), *PENALTIES))):
        seconds = max((run.course[-1][0] for run in runs), default=np.inf)
        for name in names:
            alphas = penalties
            for width in widths:
                print(f"maps: {case}, {rows} rows, {name}, {width} features", flush=True)
                tried = [_child(folder, name, width, a, seconds, options.threads) for a in alphas]
                best = int(np.argmax([one.within(seconds) for one in tried]))
                runs.append(tried[best])
                alphas = (alphas[best],)  # as good for the next width
    return runs


def _child(
    folder: Path, name: str, width: int, alpha: float, seconds: float, threads: int | None
) -> Run:
    asked = json.dumps([str(folder), name, width, alpha, min(seconds, 1e9)])
    limits = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = dict.fromkeys(limits, str(threads)) if threads else {}
    printed = run_python(["-m", "benchmarks.suite.maps", asked], environment)
    return Run(*json.loads(printed.splitlines()[-1]))


# ------------------------------------------------------------------- data


def prepare(case: str, rows: int, data: Path | None, folder: Path) -> str:
    """Write rows and labels, to learn from and to be judged by, and say what they are."""
    rng = np.random.default_rng(datasets.SEED)
    parts = _covtype(rows, data, rng) if case == "covtype-jitter" else _synthetic(rows, rng)
    for name, values in zip(("X", "y", "X_test", "y_test"), parts, strict=True):
        np.save(folder / f"{name}.npy", values)
    if case == "synthetic":
        return (
            "54 Gaussian columns; the 6 widest decide, by products and sines; 5 % of labels flipped"
        )
    return (
        "rows of covtype (class 2 against the rest) drawn with replacement, columns scaled to "
        f"[0, 1], noise of {JITTER:g} added to the {NUMERIC} measurements; judged by other rows, "
        "without noise"
    )


def _covtype(rows: int, data: Path | None, rng: np.random.Generator) -> tuple[Any, ...]:
    whole = datasets.load("covtype-binary", data)
    X = np.asarray(whole.X.toarray(), dtype=np.float32)
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1)
    order = rng.permutation(len(X))
    tests, others = order[:TESTS], order[TESTS:]
    drawn = rng.choice(others, rows)
    chosen = X[drawn]
    chosen[:, :NUMERIC] += JITTER * rng.standard_normal((rows, NUMERIC), dtype=np.float32)
    return chosen, whole.y[drawn], X[tests], whole.y[tests]


def _synthetic(rows: int, rng: np.random.Generator) -> tuple[Any, ...]:
    X = 0.03 * rng.standard_normal((rows + TESTS, 54), dtype=np.float32)
    X[:, :6] *= 10
    Z = X[:, :6] / 0.3
    f = Z[:, 0] * Z[:, 1] + np.sin(2 * Z[:, 2]) + Z[:, 3] * np.abs(Z[:, 4]) - 0.5 * Z[:, 5] ** 2
    y = np.where((f > -0.3) ^ (rng.random(len(f)) < 0.05), 1, -1)
    return X[:rows], y[:rows], X[rows:], y[rows:]


# ------------------------------------------------------------------- one run, in its own process


def work(folder: str, name: str, width: int, alpha: float, seconds: float) -> Run:
    """Make features of all rows, learn, and be judged."""
    X, y, X_test, y_test = (
        np.load(Path(folder, f"{part}.npy")) for part in ("X", "y", "X_test", "y_test")
    )
    phi, small = _map(name, width), slice(0, 500)
    machine = _machine(alpha).fit(_map(name, 8).fit_transform(X[small]), y[small])  # compiles
    before = peak_megabytes()
    start = time.perf_counter()
    phi.fit(X)
    features = phi.transform(X)
    mapped = time.perf_counter() - start
    judged = phi.transform(X_test)
    machine = _machine(alpha)
    if name in OURS:
        start = time.perf_counter()
        machine.fit(features, y)
        course = [(mapped + time.perf_counter() - start, float(machine.score(judged, y_test)))]
        gap = float(machine.certificate_.relative_gap)
        setting = f"gap {gap:.1g}, {machine.n_iter_} iterations"
    else:
        course = _epochs(machine, features, y, judged, y_test, mapped, seconds)
        gap, setting = None, f"alpha {alpha:.1g}, {len(course)} epochs"
    return Run(name, width, mapped, course, peak_megabytes() - before, gap, setting)


def _epochs(
    machine: Any, F: Any, y: Any, judged: Any, y_test: Any, spent: float, limit: float
) -> list[tuple[float, float]]:
    """Learn by epochs until the time is over; being judged takes none."""
    course: list[tuple[float, float]] = []
    classes = np.unique(y)
    while len(course) < EPOCHS and (not course or spent < limit):
        start = time.perf_counter()
        machine.partial_fit(F, y, classes=classes)
        spent += time.perf_counter() - start
        course.append((spent, float(machine.score(judged, y_test))))
    return course


def _map(name: str, width: int) -> Any:
    import sklearn.kernel_approximation as theirs

    import maxmargin as mm

    if name == "RandomFourier":
        return mm.RandomFourier(gamma=GAMMA, n_components=width, orthogonal=True)
    if name in OURS:
        landmarks = "kmeans" if name.endswith("kmeans") else "uniform"
        return mm.Nystroem(gamma=GAMMA, n_components=width, landmarks=landmarks)
    made = theirs.Nystroem if name.endswith("Nystroem") else theirs.RBFSampler
    return made(gamma=GAMMA, n_components=width, random_state=0)


def _machine(alpha: float) -> Any:
    from sklearn.linear_model import SGDClassifier

    import maxmargin as mm

    return SGDClassifier(alpha=alpha, random_state=0) if alpha else mm.LinearSVC(C=C, tol=TOL)


# ------------------------------------------------------------------- what was found


def _frontier(runs: list[Run], name: str) -> tuple[list[float], list[float]]:
    """Return when a candidate, of any width, was better than ever before."""
    points = sorted(point for run in runs if run.name == name for point in run.course)
    best = np.maximum.accumulate([score for _, score in points])
    kept = [k for k in range(len(points)) if k == 0 or best[k] > best[k - 1]]
    return [points[k][0] for k in kept], [points[k][1] for k in kept]


def _table(case: str, rows: int, runs: list[Run]) -> Table:
    seconds = max(run.course[-1][0] for run in runs if run.name in OURS)
    cells: list[list[Cell]] = [
        [
            run.name,
            run.width,
            run.map_seconds,
            run.course[-1][0],
            f"{run.within(seconds) or run.course[0][1]:.4f}",
            "yes" if run.gap is not None and run.gap <= TOL else "no",
            run.setting,
            run.megabytes,
        ]
        for run in runs
    ]
    columns = ("map", "features", "map and features, s", "total, s", "accuracy", "certified",
               "machine", "MB beyond the data")  # fmt: skip
    return Table(f"{case}, {rows} rows, float32", columns, cells)


def _checks(case: str, runs: list[Run]) -> list[Check]:
    ours = [run for run in runs if run.name in OURS]
    gaps = [run.gap for run in ours if run.gap is not None]
    checks = [
        Check("same problem", f"{case}: every linear solve of ours is certified to tol",
              max(gaps) <= TOL, f"largest relative gap {max(gaps):.1g}")
    ]  # fmt: skip
    for seconds in sorted(run.course[-1][0] for run in ours):
        best = max(ours, key=lambda run: run.within(seconds))
        theirs = max(run.within(seconds) for run in runs if run.name in THEIRS)
        checks.append(
            Check(
                "target",
                f"{case}: within {seconds:.1f} s, the best of ours is as good as scikit-learn's",
                bool(best.within(seconds) >= theirs),
                f"{best.within(seconds):.4f} ({best.name}, {best.width}) against {theirs:.4f}",
            )
        )
    return checks


if __name__ == "__main__":
    print(json.dumps(work(*json.loads(sys.argv[1]))))
