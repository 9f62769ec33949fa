"""Kernel SVMs beside LIBSVM and oneDAL: gap against seconds, growth, memory, and a proof each.

``kernel`` races all tools on some sets; ``kernel-table`` fits every set with many settings.
The parameters are ours: what is customary for a set, or the best of a small grid.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from benchmarks import table
from benchmarks.datasets import REGRESSION, TEXT, Dataset, load, sampled, scaled, with_unit_targets
from benchmarks.objective import Objective
from benchmarks.options import Options
from benchmarks.race import Case
from benchmarks.report import Report
from benchmarks.suite import machines

TARGETS = (1e-2, 1e-3, 1e-4)
EPSILON = 0.1  # of targets with standard deviation 1
QUICK_ROWS = 400


@dataclass(frozen=True)
class Setting:
    """How a set is learnt from; ``rows`` bounds how many of them are drawn."""

    name: str
    scaling: str
    C: float
    gamma: float
    rows: int = 10**9

    @property
    def objective(self) -> Objective:
        """What is minimised."""
        return Objective(self.C, self.gamma, EPSILON if self.name in REGRESSION else None)


SETTINGS = (
    Setting("a9a", "as published", 1.0, 0.05),
    Setting("ijcnn1", "as published", 32.0, 2.0),
    Setting("usps", "as published", 10.0, 1 / 128),
    Setting("mnist", "/255", 10.0, 0.02, rows=10_000),
    Setting("magic04", "standardised", 10.0, 0.1),
    Setting("satimage", "[-1,1]", 16.0, 1.0),
    Setting("pendigits", "[-1,1]", 8.0, 0.5),
    Setting("letters", "[-1,1]", 8.0, 0.25),
    Setting("shuttle", "[-1,1]", 2048.0, 8.0),
    Setting("higgs-7k", "standardised", 8.0, 1 / 128),
    Setting("mushrooms", "as published", 2.0, 0.125),
    Setting("svmguide1", "[-1,1]", 2.0, 2.0),
    Setting("cpusmall", "[-1,1]", 32.0, 0.125),
    Setting("casp", "standardised", 2.0, 0.5, rows=10_000),
    Setting("abalone", "[-1,1]", 128.0, 0.125),
)
# The race that the documents quote: every real set of at most 10,000 rows and 300 columns.
QUOTED = (
    "usps", "satimage", "pendigits", "higgs-7k", "mushrooms", "svmguide1", "cpusmall", "casp",
    "abalone",
)  # fmt: skip
GROWN = Setting("covtype-binary", "standardised", 32.0, 1 / 128)


def prepared(setting: Setting, options: Options) -> Dataset:
    """Return a set as it is learnt from: rows drawn at random, dense, scaled, in float64."""
    dataset = load(setting.name, options.data)
    dataset = sampled(dataset, options.at_most(setting.rows, QUICK_ROWS))
    dataset = scaled(dataset, setting.scaling)
    return with_unit_targets(dataset) if setting.name in REGRESSION else dataset


def _cases(name: str, options: Options) -> list[Case]:
    (setting,) = (setting for setting in SETTINGS if setting.name == name)
    notes = f"columns {setting.scaling}"
    return [Case(name, prepared(setting, options), setting.objective, TARGETS, notes)]


def _grown(rows: int, options: Options) -> Case:
    dataset = prepared(GROWN, replace(options, rows=rows, quick=False))
    return Case("covtype, class 2 against the rest", dataset, GROWN.objective, TARGETS)


MACHINES = machines.Machines(
    "kernel",
    tuple(setting.name for setting in SETTINGS),
    _cases,
    _grown,
    sizes=(5_000, 10_000, 20_000, 50_000, 100_000, 200_000),
    quick_sizes=(100, 200, 400),
    studied="magic04",
    caps=tuple(2**k for k in range(20, 33)),
)


def run(options: Options) -> Report:
    """Race, and see how ours grows; ``--defaults`` alone races on the sets that are quoted."""
    if options.defaults and not options.only:
        options = replace(options, only=QUOTED)
    return machines.run(MACHINES, options)


# ------------------------------------------------------------ every set, many settings

COSTS = (1e-2, 1.0, 1e3)
FACTORS = (1e-2, 1.0, 1e2)  # of γ = 1/(d · variance), scikit-learn's "scale"
TABLE_ROWS, QUICK_TABLE_ROWS = 20_000, 60


def versions(dataset: Dataset, options: Options) -> Iterator[tuple[str, Dataset]]:
    """Yield a set scaled and, where that makes a difference, as it is; texts by unit rows."""
    dataset = sampled(dataset, options.at_most(TABLE_ROWS, QUICK_TABLE_ROWS))
    dataset = replace(dataset, X_test=None, y_test=None)
    if dataset.name in REGRESSION:
        dataset = with_unit_targets(dataset)
    if dataset.name in TEXT:
        yield "unit rows", scaled(dataset, "unit rows")
        return
    as_it_is = scaled(dataset, "as published")
    if np.abs(as_it_is.X).max() > 1:
        yield "scaled", scaled(dataset, "[-1,1]")
    yield "as it is", as_it_is


def objectives(dataset: Dataset) -> dict[str, Objective]:
    """Return every C with every γ."""
    epsilon = EPSILON if dataset.name in REGRESSION else None
    gamma = default_gamma(dataset)
    return {
        f"C={C:g}, γ×{factor:g}": Objective(C, factor * gamma, epsilon)
        for C in COSTS
        for factor in FACTORS
    }


def default_gamma(dataset: Dataset) -> float:
    """Return 1/(d · variance of all entries)."""
    X = dataset.X
    variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
    return 1.0 / (X.shape[1] * float(variance)) if variance > 0 else 1.0


GRID = table.Grid(
    "kernel-table",
    f"Gaussian kernel, γ as a multiple of 1/(d · variance), at most {TABLE_ROWS:,} rows; "
    f"regression: targets of standard deviation 1, ε = {EPSILON:g}; scaled: columns to [-1,1]",
    versions,
    objectives,
    tolerances=(1e-4, 1e-6),
    max_time=300.0,
)


def run_table(options: Options) -> Report:
    """Fit every set with many settings."""
    return table.run(GRID, options)
