"""Linear SVMs beside LIBLINEAR, skglm, SGD and LIBSVM: gap against seconds, growth, proofs.

``linear`` races all tools on some sets; ``linear-table`` fits every set with many settings. The
intercept is penalised where LIBLINEAR takes part; LIBSVM, on few rows, has a race of its own with
a free one.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks import datasets, table
from benchmarks.datasets import REGRESSION, Dataset, one_against_rest, sampled, scaled
from benchmarks.objective import Objective
from benchmarks.options import Options
from benchmarks.race import Case
from benchmarks.report import Report
from benchmarks.solvers import LINEAR_ROWS
from benchmarks.suite import machines

TARGETS = (1e-3, 1e-4, 1e-6)
NAMES = (
    "dense-float64", "dense-float32", "kddcup99-10pct", "casp", "a9a", "ijcnn1", "news20-binary",
    "reuters-money-fx", "20newsgroups-binary", "word-counts",
)  # fmt: skip
DENSE = ("kddcup99-10pct", "casp")
QUICK_ROWS = 1000


def _epsilon(dataset: Dataset) -> float | None:
    return 0.1 * float(np.std(dataset.y)) if dataset.name in REGRESSION else None


def _cases(name: str, options: Options) -> list[Case]:
    dataset = datasets.load(name, options.data, options.quick)
    dataset = sampled(dataset, options.at_most(len(dataset.y), QUICK_ROWS))
    if name in DENSE:
        dataset = replace(dataset, X=dataset.X.toarray())
    if name not in REGRESSION:
        dataset = replace(dataset, y=np.where(dataset.y == dataset.y.max(), 1.0, -1.0))
    penalised = Objective(epsilon=_epsilon(dataset), intercept="penalized")
    found = [Case(name, dataset, penalised, TARGETS)]
    if dataset.X.shape[0] <= LINEAR_ROWS and name not in REGRESSION:
        found.append(Case(f"{name}, free intercept", dataset, Objective(), TARGETS))
    return found


def _grown(rows: int, options: Options) -> Case:
    dataset = replace(datasets.dense("growth", rows, 20, "f8"), X_test=None, y_test=None)
    return Case("Gaussian rows × 20, float64", dataset, Objective(), TARGETS)


MACHINES = machines.Machines(
    "linear",
    NAMES,
    _cases,
    _grown,
    sizes=(10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000),
    quick_sizes=(300, 1000, 3000),
    studied="dense-float64",
)


def run(options: Options) -> Report:
    """Race, and see how ours grows."""
    return machines.run(MACHINES, options)


# ------------------------------------------------------------ every set, many settings


def versions(dataset: Dataset, options: Options) -> Iterator[tuple[str, Dataset]]:
    """Yield a set as it is and with columns divided by their largest value."""
    dataset = sampled(dataset, options.at_most(len(dataset.y), QUICK_ROWS))
    dataset = replace(dataset, X_test=None, y_test=None)
    if dataset.name not in REGRESSION and len(np.unique(dataset.y)) > 2:
        dataset = one_against_rest(dataset, dataset.name)
    if dataset.X.dtype.kind != "f":  # images in bytes
        dataset = replace(dataset, X=dataset.X.astype(np.float32))
    yield "as it is", dataset
    yield "scaled", scaled(dataset, "/largest")


def objectives(dataset: Dataset) -> dict[str, Objective]:
    """Return every C, with a free intercept."""
    return {f"C={C:g}": Objective(C, epsilon=_epsilon(dataset)) for C in (1e-2, 1.0, 1e2)}


GRID = table.Grid(
    "linear-table",
    "Hinge loss (regression: ε = 0.1 sd(y)), free intercept; several classes: the largest against "
    "the rest; scaled: each column divided by its largest absolute value",
    versions,
    objectives,
    tolerances=(1e-6,),
    max_time=120.0,
)


def run_table(options: Options) -> Report:
    """Fit every set with many settings."""
    return table.run(GRID, options)
