"""Linear SVMs beside LIBLINEAR, skglm, SGD and LIBSVM: gap against seconds.

The intercept is penalised where LIBLINEAR takes part; LIBSVM, on few rows, has a race of
its own with a free one.
"""

from dataclasses import replace

import numpy as np

from benchmarks import datasets
from benchmarks.beside import races
from benchmarks.beside.objective import Objective
from benchmarks.beside.race import Case
from benchmarks.beside.solvers import LINEAR_ROWS
from benchmarks.datasets import REGRESSION, Dataset, sampled
from benchmarks.options import Options
from benchmarks.report import Report

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


def run(options: Options) -> Report:
    """Race on all sets."""
    return races.run("linear", NAMES, _cases, options)
