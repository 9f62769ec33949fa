"""The fits by which two checkouts of the library are compared: of modest size, and of every kind.

Real sets are used where they can be had; synthetic ones always are.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.against import checkouts
from benchmarks.against.checkouts import Trial
from benchmarks.beside.kernel import SETTINGS
from benchmarks.beside.kpca import rows_of
from benchmarks.datasets import (
    REGRESSION,
    Dataset,
    available,
    sampled,
    scaled,
    with_unit_targets,
)
from benchmarks.options import Options
from benchmarks.report import Report

QUICK_ROWS = 300
KERNEL_ROWS, LINEAR_ROWS, SEARCH_ROWS, KPCA_ROWS = 4000, 20_000, 1500, 3000
TIGHT = 1e-6
SYNTHETIC = "dense-float64"
SCORES_APART = 5e-3  # by a few rows on the border
EIGENVALUES_APART = 1e-5


def _kernel(options: Options) -> Iterator[Trial]:
    """Yield machines with an RBF kernel on all sets, and other machines and kernels on one."""
    names = [setting.name for setting in SETTINGS]
    others = ["NuSVC", "OneClassSVM", "polynomial", "tol=1e-6", SYNTHETIC]
    chosen = options.chosen([*names, *others])
    threads = {"n_jobs": options.threads or 1}
    for setting in (setting for setting in SETTINGS if setting.name in chosen):
        for dataset in _sets([setting.name], options, KERNEL_ROWS):
            found, wanted = scaled(dataset, setting.scaling), setting.objective
            found = with_unit_targets(found) if wanted.regression else found
            estimator = "SVR" if wanted.regression else "SVC"
            yield Trial(setting.name, estimator, wanted.parameters | threads, found.X, found.y)
    (dataset,) = _sets([SYNTHETIC], options, KERNEL_ROWS)
    X, y = dataset.X, dataset.y
    further = (
        Trial("NuSVC", "NuSVC", {"nu": 0.2, **threads}, X, y),
        Trial("OneClassSVM", "OneClassSVM", {"nu": 0.1, **threads}, X),
        Trial("polynomial", "SVC", {"kernel": "poly", "coef0": 1.0, **threads}, X, y),
        Trial("tol=1e-6", "SVC", {"C": 10.0, **threads}, X, y, TIGHT),
        Trial(SYNTHETIC, "SVC", threads, X, y),
    )
    yield from (trial for trial in further if trial.name in chosen)


def _linear(options: Options) -> Iterator[Trial]:
    """Yield linear machines: hinge on all sets, then the other losses, penalties and forms."""
    names = [
        "dense-float64", "dense-float32", "sparse-synthetic", "kddcup99-10pct", "a9a", "ijcnn1",
        "news20-binary", "reuters-money-fx", "casp", "cpusmall", "abalone",
    ]  # fmt: skip
    others = [
        "squared hinge", "penalized intercept", "l1", "l1 and hinge", "Crammer-Singer", "tol=1e-6",
    ]  # fmt: skip
    chosen = options.chosen([*names, *others])
    threads = {"n_jobs": options.threads or 1}
    for dataset in _sets([name for name in names if name in chosen], options, LINEAR_ROWS):
        if dataset.name in REGRESSION:
            found = with_unit_targets(dataset)
            yield Trial(dataset.name, "LinearSVR", {"epsilon": 0.1, **threads}, found.X, found.y)
        else:
            yield Trial(dataset.name, "LinearSVC", threads, dataset.X, dataset.y)
    (dataset,) = _sets(["sparse-synthetic"], options, LINEAR_ROWS)
    X, y = dataset.X, dataset.y
    classes = (np.arange(len(y)) % 3 + y) % 3  # three of them, hard to tell apart
    lasso = {"penalty": "l1", "loss": "squared_hinge", **threads}
    further = (
        Trial("squared hinge", "LinearSVC", {"loss": "squared_hinge", **threads}, X, y),
        Trial("penalized intercept", "LinearSVC", {"intercept": "penalized", **threads}, X, y),
        Trial("l1", "LinearSVC", lasso, X, y),
        Trial("l1 and hinge", "LinearSVC", {"penalty": "l1", **threads}, X, y),
        Trial("Crammer-Singer", "LinearSVC", {"multi_class": "crammer_singer", **threads},
              X[:3000], classes[:3000]),
        Trial("tol=1e-6", "LinearSVC", threads, X, y, TIGHT),
    )  # fmt: skip
    yield from (trial for trial in further if trial.name in chosen)


def _search(options: Options) -> Iterator[Trial]:
    """Yield grids of C and γ with three folds."""
    names = options.chosen([SYNTHETIC, "satimage", "usps", "magic04"])
    for dataset in _sets(names, options, SEARCH_ROWS):
        found = scaled(dataset, "standardised")
        grid = {
            "C": np.logspace(-2, 3, 5).tolist(),
            "gamma": (np.logspace(-1.5, 1, 3) / found.X.shape[1]).tolist(),
        }
        settings = {"param_grid": grid, "cv": 3, "refit": False, "n_jobs": options.threads or 1}
        yield Trial(dataset.name, "SVCSearchCV", settings, found.X, found.y, apart=SCORES_APART)


def _kpca(options: Options) -> Iterator[Trial]:
    """Yield kernel PCA by the dense and by the iterative solver."""
    X = rows_of(options.at_most(KPCA_ROWS, QUICK_ROWS))
    common = {"n_components": 20, "kernel": "rbf", "n_jobs": options.threads or 1}
    for name in options.chosen(["iterative", "dense"]):
        some = X if name == "iterative" else X[: len(X) // 2]
        settings = {**common, "eigen_solver": name}
        yield Trial(name, "KernelPCA", settings, some, tol=1e-6, apart=EIGENVALUES_APART)


def _sets(names: list[str], options: Options, rows: int) -> Iterator[Dataset]:
    for dataset in available(names, options.data, options.quick):
        yield sampled(dataset, options.at_most(rows, QUICK_ROWS))


def run(name: str, options: Options) -> Report:
    """Compare two checkouts by the trials of a benchmark."""
    return checkouts.run(name, TRIALS[name](options), options)


TRIALS: dict[str, Callable[[Options], Iterator[Trial]]] = {
    "kernel": _kernel,
    "linear": _linear,
    "search": _search,
    "kpca": _kpca,
}
kernel, linear, search, kpca = (partial(run, name) for name in TRIALS)
