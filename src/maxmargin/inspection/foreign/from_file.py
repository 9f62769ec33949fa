"""Models read from files of LIBSVM and LIBLINEAR: which training rows the support vectors were.

Such a file does not say so, and LIBSVM writes the numbers of support vectors with 8 digits. A row
is found by a random weighted sum of its columns, which is nearly that of the vector, and then
compared with it number by number. Of equal rows those with the largest targets (or weights) take
the largest duals, as they do at the optimum.
"""

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.row_marks import mark_rows
from maxmargin.inspection.foreign.training import TrainingData, class_codes
from maxmargin.kernels import Linear
from maxmargin.validation.data import check_rows, regression_weights

# Relative errors of numbers: none (17 digits), 8 digits as LIBSVM writes them, 6 as others do.
_ERRORS = (0.0, 5.1e-8, 5.1e-6)
_BLOCK = 1 << 22  # numbers compared at a time
_PARAMETERS = ("C", "epsilon", "nu")


def describe_training(
    machine: Any, X: Any, y: Any, sample_weight: Any, max_time: float | None
) -> tuple[Any, TrainingData]:
    """Return the model as readers of foreign models see it, and the rows it was trained on."""
    _refuse_unknown(machine)
    width = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    if width > machine.n_features_in_:  # the last columns of all vectors, or weights, are 0
        machine = _widened(machine, width)
    elif width < machine.n_features_in_:
        X = _with_zero_columns(X, machine.n_features_in_)
    rows = check_rows(machine, X, reset=False)
    data = TrainingData(rows, y, regression_weights(sample_weight, rows.shape[0]), max_time)
    if not hasattr(machine, "dual_coef_"):
        return machine, data
    return _locate(machine, data), data


def _refuse_unknown(machine: Any) -> None:
    name, loader = type(machine).__name__, f"load_{machine.origin_.split()[0].lower()}"
    for parameter in _PARAMETERS:
        if getattr(machine, parameter, 0.0) is None:
            raise ValueError(
                f"This {name} was read from a {machine.origin_}, which does not hold {parameter}, "
                f"so its objective is unknown: give it, {loader}(path, {parameter}=…) or "
                f"model.set_params({parameter}=…)."
            )


def _widened(machine: Any, width: int) -> Any:
    machine = copy.copy(machine)
    if not hasattr(machine, "kernel_"):
        coef = np.zeros((*machine.coef_.shape[:-1], width))
        coef[..., : machine.n_features_in_] = machine.coef_
        machine.coef_ = coef
    elif machine.kernel_.takes_gram:
        machine.shape_fit_ = width, width
    else:
        machine.support_vectors_ = _with_zero_columns(machine.support_vectors_, width)
    machine.n_features_in_ = width
    return machine


def _with_zero_columns(X: Any, width: int) -> Any:
    if sp.issparse(X):
        X = sp.csr_matrix(X, copy=True)
        X.resize(X.shape[0], width)
        return X
    X = np.asarray(X)
    return np.hstack([X, np.zeros((X.shape[0], width - X.shape[1]), X.dtype)])


# ------------------------------------------------------------------- which rows they are


class _Sought(NamedTuple):
    """Support vectors of one class, or all of them: their numbers, duals, and rows to look among.

    ``ranks`` order rows: those of a higher one have larger duals.
    """

    vectors: Ints
    duals: Floats
    rows: Ints
    ranks: Floats


def _locate(machine: Any, data: TrainingData) -> SimpleNamespace:
    """Return the machine with the rows of its support vectors in ``support_``."""
    n = data.X.shape[0]
    rows = np.full(len(machine.support_), -1)
    if machine.kernel_.takes_gram:
        rows = np.where(machine.support_ < n, machine.support_, -1)
    else:
        for error in _ERRORS:
            rows = np.full(len(rows), -1)
            for sought in _by_class(machine, data):
                rows[sought.vectors] = _find(machine.support_vectors_, data.X, sought, error)
            if (rows >= 0).all():
                break
    return _as_read(machine, data, rows)


def _by_class(machine: Any, data: TrainingData) -> Iterator[_Sought]:
    present = np.flatnonzero(data.weight > 0)
    duals = machine.dual_coef_.sum(axis=0)
    if not hasattr(machine, "classes_"):
        targets = data.weight if data.y is None else np.asarray(data.y, dtype=np.float64)
        ranks = targets if hasattr(machine, "C") else data.weight
        yield _Sought(np.arange(len(duals)), duals, present, ranks[present])
        return
    codes, ends = class_codes(machine, data), np.cumsum(machine.n_support_)
    sizes = np.abs(machine.dual_coef_).sum(axis=0)
    for k, (end, count) in enumerate(zip(ends, machine.n_support_, strict=True)):
        own, rows = np.arange(end - count, end), present[codes[present] == k]
        yield _Sought(own, sizes[own], rows, data.weight[rows])


def _find(vectors: Any, X: Any, sought: _Sought, error: float) -> Ints:
    """Return the row of each vector, −1 if there is none (left); no row is taken twice."""
    Z, R = sp.csr_matrix(vectors[sought.vectors]), sp.csr_matrix(X[sought.rows])
    if not (Z.shape[0] and R.shape[0]):
        return np.full(Z.shape[0], -1)
    _, first, group = np.unique(mark_rows(R), return_index=True, return_inverse=True)
    pairs = _same_pairs(Z, R[first], error)
    chosen = _choose_groups(pairs, Z.shape[0], np.bincount(group))
    rows = _share_out(chosen, sought.duals, group, sought.ranks)
    return np.where(rows < 0, -1, sought.rows[rows])


def _same_pairs(Z: Any, U: Any, error: float) -> tuple[Ints, Ints]:
    """Return which vectors equal which of some different rows, up to an error of their numbers."""
    mix = np.random.default_rng(0).uniform(0.5, 1.0, Z.shape[1])
    sums, others = Z @ mix, U @ mix
    near = (2 * error + 1e-12) * (abs(Z) @ mix)
    order = np.argsort(others, kind="stable")
    begin = np.searchsorted(others[order], sums - near, "left")
    counts = np.searchsorted(others[order], sums + near, "right") - begin
    v = np.repeat(np.arange(len(sums)), counts)
    nth = np.arange(len(v)) - np.repeat(np.cumsum(counts) - counts, counts)
    u = order[np.repeat(begin, counts) + nth]
    same = np.zeros(len(v), dtype=bool)
    step = max(1, _BLOCK * len(sums) // max(Z.nnz, 1))
    for start in range(0, len(v), step):
        some = slice(start, start + step)
        rows = U[u[some]]
        excess = abs(Z[v[some]] - rows) - error * abs(rows)
        same[some] = excess.max(axis=1).toarray()[:, 0] <= 0
    return v[same], u[same]


def _choose_groups(pairs: tuple[Ints, Ints], n_vectors: int, sizes: Ints) -> Ints:
    """Return the group of equal rows that each vector is one of, −1 if there is none."""
    chosen, left = np.full(n_vectors, -1), sizes.copy()
    for v, u in zip(*(each.tolist() for each in pairs), strict=True):
        if chosen[v] < 0 < left[u]:
            chosen[v], left[u] = u, left[u] - 1
    return chosen


def _share_out(chosen: Ints, duals: Floats, group: Ints, ranks: Floats) -> Ints:
    """Return a row of its group for each vector: high duals for high ranks, low ones for low."""
    by_rank = np.lexsort((-ranks, group))
    ends = np.cumsum(np.bincount(group))
    starts = ends - np.bincount(group)
    rows = np.full(len(chosen), -1)
    for above in (True, False):
        own = np.flatnonzero((chosen >= 0) & ((duals >= 0) == above))
        own = own[np.lexsort((-np.abs(duals[own]), chosen[own]))]
        nth = np.arange(len(own)) - np.searchsorted(chosen[own], chosen[own])
        at = starts[chosen[own]] + nth if above else ends[chosen[own]] - 1 - nth
        rows[own] = by_rank[at]
    return rows


def _as_read(machine: Any, data: TrainingData, rows: Ints) -> SimpleNamespace:
    """Return what readers of foreign models need of a machine whose rows were found."""
    lost, linear = np.flatnonzero(rows < 0), type(machine.kernel_) is Linear
    planes = len(machine.intercept_)
    # Weights of a linear machine may have parts that stand in the file as vectors of their own.
    if len(lost) > (2 * planes if linear and hasattr(machine, "C") else 0):
        raise ValueError(
            f"{len(lost)} of the {len(rows)} support vectors of this {type(machine).__name__}, "
            f"number {lost[0] + 1} to begin with, are not among the rows of X with these labels: "
            "certify needs the rows the model was trained on, scaled as they were then, and their "
            "labels."
        )
    kept = np.flatnonzero(rows >= 0)
    found = SimpleNamespace(
        **{name: getattr(machine, name) for name in _SHARED if hasattr(machine, name)},
        support_=rows[kept],
        dual_coef_=machine.dual_coef_[:, kept],
        shape_fit_=data.X.shape,
        support_vectors_=data.X[:0] if machine.kernel_.takes_gram else data.X[rows[kept]],
    )
    if hasattr(machine, "classes_"):
        own = np.repeat(np.arange(len(machine.classes_)), machine.n_support_)
        found.n_support_ = np.bincount(own[kept], minlength=len(machine.classes_))
    if linear:
        found.coef_ = machine.coef_
    return found


_SHARED = (
    "C", "epsilon", "nu", "classes_", "class_weight_", "kernel", "kernel_", "intercept_", "predict",
)  # fmt: skip
