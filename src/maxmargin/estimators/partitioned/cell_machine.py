"""The machine of one cell: its C and γ chosen inside the cell, then an exact certified fit.

All of it is pure and can be done anywhere: in threads, or by workers of a cluster.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.estimators.reductions import combined_scores
from maxmargin.estimators.row_marks import Marks, mark_labelled
from maxmargin.estimators.svm.svc import SVC
from maxmargin.kernels import Linear
from maxmargin.kernels.names import NAMED_DEFAULTS
from maxmargin.problems.gram import Gram
from maxmargin.runtime import clock
from maxmargin.solvers.decomposition import OnMatrix, Workspace

_ROUGH = 1e-3  # relative duality gap that is enough to compare settings


@dataclass(frozen=True)
class CellCandidates:
    """What a cell may choose from; one of each is no choice."""

    costs: tuple[float, ...]
    gammas: tuple[Any, ...]
    folds: int
    seed: int

    @property
    def count(self) -> int:
        """How many settings there are."""
        return len(self.costs) * len(self.gammas)


@dataclass(frozen=True)
class CellTask:
    """A cell to be trained: rows of two or more classes."""

    X: Any
    y: Any  # labels
    weight: Floats | None  # None: all 1
    factors: dict[Any, float] | None  # of weights by class
    machine: SVC  # with all parameters but those that are chosen


def train_cell(task: CellTask, candidates: CellCandidates, max_time: float | None) -> SVC:
    """Return the machine of a cell, certified; it may take ``max_time`` seconds."""
    began = clock.now()
    machine: SVC = clone(task.machine).set_params(class_weight=task.factors)
    cost, gamma = candidates.costs[0], candidates.gammas[0]
    if candidates.count > 1:
        cost, gamma = choose(task, candidates)
    machine.set_params(C=cost, gamma=gamma)
    if max_time is not None:
        machine.set_params(max_time=max(max_time - (clock.now() - began), 0.01))
    machine.fit(task.X, task.y, task.weight)
    return machine.set_params(max_time=None)


def train_batch(
    tasks: list[CellTask], candidates: CellCandidates, max_time: float | None
) -> list[SVC]:
    """Return the machines of some cells, one after the other: what a worker does."""
    counting = clock.Clock(np.inf if max_time is None else max_time)
    return [
        train_cell(task, candidates, None if max_time is None else counting.left) for task in tasks
    ]


# ------------------------------------------------------------------- choosing


def choose(task: CellTask, candidates: CellCandidates) -> tuple[float, Any]:
    """Return C and γ with the most rows right in cross-validation; of equal ones the smallest C.

    Of those with the same C too, the first γ is taken.
    """
    labels = np.unique(task.y, return_inverse=True)[1]
    folds = split_folds(task.X, labels, candidates.folds, candidates.seed)
    order = np.argsort(candidates.costs, kind="stable")
    costs = np.array(candidates.costs, dtype=np.float64)[order]
    right = np.zeros((len(costs), len(candidates.gammas)))
    for k, gamma in enumerate(candidates.gammas):
        machine = clone(task.machine).set_params(C=1.0, gamma=gamma, class_weight=task.factors)
        machine.set_params(tol=max(machine.tol, _ROUGH))
        on_matrix = named_kernel(machine).psd is True and type(named_kernel(machine)) is not Linear
        judge = _judge_on_matrix if on_matrix else _judge_fits
        right[:, k] = judge(machine, task, costs, folds)
    best = int(np.argmax(right))  # by rows: the smallest C first
    cost, which = divmod(best, right.shape[1])
    return float(costs[cost]), candidates.gammas[which]


def split_folds(X: Any, labels: Ints, folds: int, seed: int) -> Ints:
    """Return the fold of each row, class by class; −1: it is the only one of its class.

    Which fold a row is in depends on what it holds, not on where it stands.
    """
    order = np.lexsort((_shuffle_marks(mark_labelled(X, labels), seed), labels))
    counts = np.bincount(labels)
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.empty(len(labels), dtype=np.int64)
    # Each class goes on where the last one ended, so that folds are of even size.
    shift = (np.cumsum(counts) - counts)[labels[order]]
    found[order] = (rank + shift) % folds
    found[counts[labels] < 2] = -1
    return found


def _weights(task: CellTask) -> Floats:
    weight = np.ones(len(task.y)) if task.weight is None else task.weight
    if task.factors is None:
        return weight
    return np.asarray(weight * np.array([task.factors[label] for label in task.y.tolist()]))


def _judge_on_matrix(machine: SVC, task: CellTask, costs: Floats, folds: Ints) -> Floats:
    """Return the weight of rows that are right, by cost: one Gram matrix serves all fits."""
    y, weight = task.y, _weights(task)
    stated = machine.formulate(task.X, y, task.weight)
    kernel = machine.kernel_
    K = Gram(kernel, task.X, threads=1).materialize()
    machine = clone(machine).set_params(kernel=kernel, **NAMED_DEFAULTS)
    workspace, right = Workspace.of(len(y), K.dtype), np.zeros(len(costs))
    classes = stated.data.classes
    for fold in np.unique(folds[folds >= 0]):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        learnt = machine.formulate(task.X[train], y[train], _taken(task.weight, train))
        known = np.searchsorted(classes, learnt.data.classes)
        scores, pairs = [], []
        for k, problem in enumerate(learnt.problems):
            place = train[learnt.rows[k][problem.row]]
            posed = OnMatrix.stated(problem.loss, len(problem.totals) > 0, place)
            scores.append(posed.solve(K, costs, machine.tol, workspace, test).scores)
            part = learnt.data.subproblems("ovo")[k]
            pairs.append((int(known[part.positive]), int(known[part.negative])))
        for c, by_plane in enumerate(np.stack(scores, axis=2)):
            votes = combined_scores(by_plane, pairs, len(classes))
            right[c] += weight[test] @ (classes[votes.argmax(axis=1)] == y[test])
    return right


def _judge_fits(machine: SVC, task: CellTask, costs: Floats, folds: Ints) -> Floats:
    """Return the weight of rows that are right, by cost: each setting is fitted."""
    y, weight, right = task.y, _weights(task), np.zeros(len(costs))
    for fold in np.unique(folds[folds >= 0]):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        for c, cost in enumerate(costs):
            machine.set_params(C=float(cost))
            machine.fit(task.X[train], y[train], _taken(task.weight, train))
            right[c] += weight[test] @ (machine.predict(task.X[test]) == y[test])
    return right


def _taken(weight: Floats | None, rows: Ints) -> Floats | None:
    return None if weight is None else weight[rows]


def _shuffle_marks(marks: Marks, seed: int) -> Marks:
    """Return marks in another order for each seed."""
    key = np.random.default_rng(seed).integers(2**63, dtype=np.uint64)
    mixed = (marks ^ key) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))
