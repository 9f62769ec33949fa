"""A million rows by feature maps: certified linear machines beside scikit-learn's maps with SGD.

Everybody may use any width (number of features) and each run is a fresh process. What counts is the
accuracy on held-out rows that can be had within a time: map, features of all rows and learning, all
counted. SGD makes several numbers of epochs, and the best counts, chosen by the very rows that
judge it: that favours it.
"""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contest, datasets, pictures
from benchmarks.children import call, peak_megabytes
from benchmarks.contest import Contest, Outcome
from benchmarks.measure import timed
from benchmarks.options import Options
from benchmarks.pictures import Curve, Panel
from benchmarks.report import Cell, Check, Report

ROWS, QUICK_ROWS, TESTS = 1_000_000, 5000, 20_000
WIDTHS, QUICK_WIDTHS = (128, 256, 512), (32, 64)
GAMMA, C, TOL = 2.0, 10.0, 1e-2
JITTER = 0.01  # of a column's range
NUMERIC = 10  # columns of covtype that are measurements; the others are indicators
CASES = {
    "covtype-jitter": (
        "rows of covtype (class 2 against the rest) drawn with replacement, columns scaled to "
        f"[0, 1], noise of {JITTER:g} added to the {NUMERIC} measurements; judged by other rows, "
        "without noise"
    ),
    "synthetic": (
        "54 Gaussian columns; the 6 widest decide, by products and sines; 5 % of labels flipped"
    ),
}
OURS = ("Nystroem", "Nystroem kmeans", "RandomFourier")
THEIRS = ("sklearn Nystroem", "sklearn RBFSampler")
EPOCHS = (1, 5, 20)  # of SGD


def run(options: Options) -> Report:
    """Measure every case that can be had."""
    panels: list[Panel] = []
    with tempfile.TemporaryDirectory() as folder:
        report, outcomes = contest.run("maps", _contests(Path(folder), options), options)
    for outcome in outcomes:
        report.checks += _checks(outcome)
        curves = [_frontier(outcome, [name]) for name in OURS + THEIRS]
        panels.append(Panel(outcome.contest.name, curves, "held-out accuracy", log=False))
        report.notes.append(f"{outcome.contest.name}: {CASES[outcome.contest.name]}")
    report.notes.append(f"RBF with gamma={GAMMA:g}, C={C:g}, tol={TOL:g}")
    if panels:
        report.draw = lambda: pictures.courses(panels)
    return report


def _contests(folder: Path, options: Options) -> Iterator[Contest]:
    rows = options.at_most(ROWS, QUICK_ROWS)
    widths = QUICK_WIDTHS if options.quick else WIDTHS
    for case in options.chosen(CASES):
        try:
            prepare(case, rows, options.data, folder)
        except datasets.UnavailableError as reason:
            print(f"skipped {case}: {reason}")
            continue
        calls = {
            f"{name}, {width} features{f', {epochs} epochs' if epochs else ''}": partial(
                call, work, options.threads, folder=folder, name=name, width=width, epochs=epochs
            )
            for name in OURS + THEIRS
            for width in widths
            for epochs in (EPOCHS if name in THEIRS else (0,))
        }
        base = next(iter(calls))
        yield Contest(case, f"{rows:,} rows, float32", calls, base, facts=_facts)


# ------------------------------------------------------------------- data


def prepare(case: str, rows: int, data: Path | None, folder: Path) -> None:
    """Write rows and labels, to learn from and to be judged by."""
    rng = np.random.default_rng(datasets.SEED)
    parts = _covtype(rows, data, rng) if case == "covtype-jitter" else _synthetic(rows, rng)
    for name, values in zip(("X", "y", "X_test", "y_test"), parts, strict=True):
        np.save(folder / f"{name}.npy", values)


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


def work(folder: Path, name: str, width: int, epochs: int) -> dict[str, Any]:
    """Make features of all rows, learn, and be judged."""
    parts = ("X", "y", "X_test", "y_test")
    X, y, X_test, y_test = (np.load(folder / f"{part}.npy") for part in parts)
    few = _map(name, 8).fit_transform(X[:500])
    _machine(epochs, len(y)).fit(few, y[:500])  # compiles
    before = peak_megabytes()
    made: dict[str, Any] = {}

    def learn() -> None:
        made["map"] = _map(name, width).fit(X)
        made["machine"] = _machine(epochs, len(y)).fit(made["map"].transform(X), y)

    sample = timed(learn)()
    accuracy = made["machine"].score(made["map"].transform(X_test), y_test)
    proof = getattr(made["machine"], "certificate_", None)
    return {
        **sample._asdict(),
        "name": name,
        "accuracy": float(accuracy),
        "gap": None if proof is None else float(proof.relative_gap),
        "above": peak_megabytes() - before,
    }


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


def _machine(epochs: int, rows: int) -> Any:
    from sklearn.linear_model import SGDClassifier

    import maxmargin as mm

    if not epochs:
        return mm.LinearSVC(C=C, tol=TOL)
    return SGDClassifier(alpha=1 / (C * rows), max_iter=epochs, tol=None, random_state=0)


# ------------------------------------------------------------------- what was found


def _facts(name: str, said: Any) -> dict[str, Cell]:
    return {"accuracy": said["accuracy"], "gap": said["gap"], "MB beyond the data": said["above"]}


def _frontier(outcome: Outcome, names: Sequence[str]) -> Curve:
    """Return when any of these maps, of any width, was better than ever before."""
    points = sorted(
        (outcome.timings.seconds(key).median, said["accuracy"])
        for key, said in outcome.results.items()
        if said["name"] in names
    )
    best = np.maximum.accumulate([score for _, score in points])
    return Curve(", ".join(names), [seconds for seconds, _ in points], best.tolist())


def _checks(outcome: Outcome) -> list[Check]:
    case = outcome.contest.name
    largest = max(s["gap"] for s in outcome.results.values() if s["gap"] is not None)
    claim = f"{case}: every linear solve of ours is certified to tol"
    checks = [Check("same problem", claim, largest <= TOL, f"largest gap {largest:.1g}")]
    ours, theirs = (_frontier(outcome, names) for names in (OURS, THEIRS))
    for seconds, score in zip(ours.seconds, ours.values, strict=True):
        reached = [v for s, v in zip(theirs.seconds, theirs.values, strict=True) if s <= seconds]
        best = max(reached, default=0.0)
        claim = f"{case}: within {seconds:.1f} s, the best of ours is as good as scikit-learn's"
        checks.append(Check("target", claim, score >= best, f"{score:.4f} against {best:.4f}"))
    return checks
