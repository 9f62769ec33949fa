"""What a search is made of: candidates that differ in C alone, rows seen through a pipeline."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from maxmargin._typing import Floats, Ints
from maxmargin.estimators import SVC, SVR, LinearSVC, LinearSVR
from maxmargin.kernels import Kernel

_MACHINES = (SVC, SVR, LinearSVC, LinearSVR)


class NotSharedError(Exception):
    """Says why the fits of a search have no work in common."""


class Split(NamedTuple):
    """A division of rows: its number, which rows to learn from, which to judge by."""

    number: int
    train: Ints
    test: Ints


@dataclass(frozen=True)
class View:
    """Rows as the last step of the estimator sees them in some splits."""

    X: Any
    given: Any  # the same, as ``fit`` gets them; in a pipeline those to learn from only
    y: Any
    weight: Floats | None
    splits: list[Split]

    def taken(self, rows: Ints) -> tuple[Any, Any, Floats | None]:
        """Return some of the rows with their answers and weights."""
        weight = None if self.weight is None else self.weight[rows]
        return _safe_indexing(self.given, rows), _safe_indexing(self.y, rows), weight


@dataclass(frozen=True)
class Family:
    """Candidates that differ in C alone, by rising C; the machine has C = 1."""

    machine: Any
    costs: Floats
    candidates: list[int]


@dataclass(frozen=True)
class Stage:
    """What comes before the machine, and the families of candidates that it is the same for."""

    steps: Any  # a Pipeline, or None
    families: list[Family]


def steps_of(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline; anything else is one step without a name."""
    return list(estimator.steps) if isinstance(estimator, Pipeline) else [("", estimator)]


def last_step(estimator: Any) -> Any:
    """Return the machine at the end of a pipeline, or the estimator itself."""
    return steps_of(estimator)[-1][1]


def weight_name(estimator: Any) -> str:
    """Return by what name the machine's weights are passed to ``fit``."""
    prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    return f"{prefix}sample_weight"


def stages(estimator: Any, candidates: list[dict[str, Any]]) -> list[Stage]:
    """Return the candidates by what comes before the machine, and by all but C."""
    found: list[tuple[list[Any], Any, list[Any]]] = []
    for number, params in enumerate(candidates):
        model = clone(estimator).set_params(**clone(params, safe=False))
        machine = last_step(model)
        _check(machine)
        steps = steps_of(model)[:-1]
        before = Pipeline(steps) if steps else None
        mark = [] if before is None else _marks(before)
        cost = float(machine.C)
        machine.set_params(C=1.0)
        families = next((f for m, _, f in found if _same(m, mark)), None)
        if families is None:
            families = []
            found.append((mark, before, families))
        own = _marks(machine)
        family = next((f for f in families if _same(f[0], own)), None)
        if family is None:
            families.append((own, machine, [(cost, number)]))
        else:
            family[2].append((cost, number))
    return [Stage(before, [_family(*one[1:]) for one in families]) for _, before, families in found]


def _check(machine: Any) -> None:
    """Raise unless a machine is of a kind that can share work, with parameters that are valid."""
    if type(machine) not in _MACHINES:
        raise NotSharedError(
            f"{type(machine).__module__}.{type(machine).__name__} is not maxmargin's SVC, SVR, "
            "LinearSVC or LinearSVR"
        )
    kernel = getattr(machine, "kernel", "rbf")
    if machine.__sklearn_tags__().input_tags.pairwise:
        raise NotSharedError("the kernel is given as a matrix")
    if callable(kernel) and not isinstance(kernel, Kernel):
        raise NotSharedError("the kernel is a function, of whatever X holds")
    for name in ("callback", "max_time"):
        if getattr(machine, name) is not None:
            raise NotSharedError(f"{name} is about each fit by itself")
    machine.check_parameters()
    if 0 < machine.max_iter < type(machine)().max_iter:
        raise NotSharedError("max_iter is about each fit by itself")


def _family(machine: Any, costs: list[tuple[float, int]]) -> Family:
    costs = sorted(costs, key=lambda pair: pair[0])
    return Family(machine, np.array([c for c, _ in costs]), [number for _, number in costs])


def _marks(model: Any) -> list[Any]:
    return sorted(model.get_params().items())


def _same(first: list[Any], second: list[Any]) -> bool:
    """Return whether parameters are the same: whether they are printed so, to the last digit."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return repr(first) == repr(second)


def views(stage: Stage, X: Any, y: Any, weight: Floats | None, splits: list[Split],
          train_scores: bool) -> Iterator[tuple[View, Any]]:  # fmt: skip
    """Yield the rows that the machine sees, and what they came through.

    Without a pipeline that is X itself, for all splits at once.
    """
    if stage.steps is None:
        yield View(_rows(X), X, y, weight, splits), None
        return
    for split in splits:
        before, learnt = clone(stage.steps), _safe_indexing(X, split.train)
        given = before.fit_transform(learnt, _safe_indexing(y, split.train))
        train, test = _rows(given), _rows(before.transform(_safe_indexing(X, split.test)))
        if train_scores:
            _refuse_others(train, _rows(before.transform(learnt)))
        both = np.concatenate([split.train, split.test])
        here = Split(
            split.number, np.arange(len(split.train)), np.arange(len(split.train), len(both))
        )
        joined = sp.vstack([train, test]) if sp.issparse(train) else np.concatenate([train, test])
        there = None if weight is None else weight[both]
        given = train if sp.issparse(train) else given
        yield View(_rows(joined), given, _safe_indexing(y, both), there, [here]), before


def _refuse_others(fitted: Any, transformed: Any) -> None:
    """Raise if rows come out of steps fitted to them otherwise than when transformed again."""
    if abs(fitted - transformed).max() > 1e-9 * abs(fitted).max():
        raise NotSharedError("a step transforms rows otherwise while it is fitted to them")


def _rows(X: Any) -> Any:
    if sp.issparse(X):
        return X.tocsr()
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    return X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
