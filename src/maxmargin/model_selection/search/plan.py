"""What the fits of a search have in common: the steps before the machine, and all but C."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from maxmargin._typing import Floats, Ints
from maxmargin.estimators import SVC, SVR, LinearSVC, LinearSVR
from maxmargin.kernels import Kernel
from maxmargin.validation.data import stacked
from maxmargin.validation.sklearn_private import take_rows

_MACHINES = (SVC, SVR, LinearSVC, LinearSVR)


class Split(NamedTuple):
    """A division of rows: its number, the rows to learn from, and the rows to score."""

    number: int
    train: Ints
    test: Ints


@dataclass(frozen=True, eq=False)
class Family:
    """Candidates that differ in C alone, in ascending order of C; the machine has C = 1."""

    machine: Any
    costs: Floats
    candidates: Ints

    def take(self, places: list[int]) -> "Family":
        """Return the family with some of its candidates only."""
        return Family(self.machine, self.costs[places], self.candidates[places])


class Stage(NamedTuple):
    """The steps before the machine (a Pipeline, or None), and the families that share them."""

    steps: Any
    families: list[Family]


def steps_of(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline; anything else is one step without a name."""
    return list(estimator.steps) if isinstance(estimator, Pipeline) else [("", estimator)]


def find_obstacle(machine: Any) -> str:
    """Return why the fits of a machine cannot share work, or an empty string if they can."""
    if type(machine) not in _MACHINES:
        return (
            f"{type(machine).__module__}.{type(machine).__name__} is not maxmargin's SVC, SVR, "
            "LinearSVC or LinearSVR"
        )
    if machine.__sklearn_tags__().input_tags.pairwise:
        return "the kernel is given as a matrix"
    kernel = getattr(machine, "kernel", "rbf")
    if callable(kernel) and not isinstance(kernel, Kernel):
        return "the kernel is a function of whatever X holds"
    for name in ("callback", "max_time"):
        if getattr(machine, name) is not None:
            return f"{name} applies to each fit separately"
    try:
        machine.check_parameters()
    except (TypeError, ValueError) as invalid:
        return str(invalid).rstrip(".")
    if 0 < machine.max_iter < type(machine)().max_iter:
        return "max_iter applies to each fit separately"
    return ""


def group(models: list[Any]) -> list[Stage]:
    """Group candidates by what comes before the machine, and then by all parameters but C."""
    found: dict[str, tuple[Any, dict[str, tuple[Any, list[tuple[float, int]]]]]] = {}
    for number, model in enumerate(models):
        *before, (_, last) = steps_of(model)
        steps = Pipeline(before) if before else None
        machine = clone(last).set_params(C=1.0)
        _, families = found.setdefault(identify(steps), (steps, {}))
        _, members = families.setdefault(identify(machine), (machine, []))
        members.append((float(last.C), number))
    return [
        Stage(steps, [_make_family(*each) for each in families.values()])
        for steps, families in found.values()
    ]


def identify(model: Any) -> str:
    """Return the parameters of a model as they are printed, to the last digit."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return "" if model is None else repr(sorted(model.get_params().items()))


def _make_family(machine: Any, members: list[tuple[float, int]]) -> Family:
    costs, candidates = zip(*sorted(members), strict=True)
    return Family(machine, np.array(costs), np.array(candidates))


@dataclass(frozen=True, eq=False)
class View:
    """Rows as the last step of the estimator sees them in some splits."""

    X: Any
    given: Any  # the same as ``fit`` gets them; after steps, only those to learn from
    y: Any
    weight: Floats | None
    splits: list[Split]
    steps: Any = None  # fitted, which the rows came through
    objection: str = ""  # why scores cannot be taken from kernel values of these rows

    def take(self, rows: Ints) -> tuple[Any, Any, Floats | None]:
        """Return some of the rows with their targets and weights."""
        weight = None if self.weight is None else self.weight[rows]
        return take_rows(self.given, rows), take_rows(self.y, rows), weight


def views(
    steps: Any, X: Any, y: Any, weight: Floats | None, splits: list[Split], train_scores: bool
) -> Iterator[View]:
    """Yield the rows that the machine sees: one view of all splits, or after steps one of each."""
    if steps is None:
        yield View(_to_matrix(X), X, y, weight, splits)
        return
    for split in splits:
        fitted, learnt = clone(steps), take_rows(X, split.train)
        given = fitted.fit_transform(learnt, take_rows(y, split.train))
        train = _to_matrix(given)
        test = _to_matrix(fitted.transform(take_rows(X, split.test)))
        objection = ""
        if train_scores and _differ(train, _to_matrix(fitted.transform(learnt))):
            objection = "a step transforms rows otherwise while it is fitted to them"
        both, n = np.concatenate([split.train, split.test]), len(split.train)
        yield View(
            stacked([train, test]),
            train if sp.issparse(train) else given,
            take_rows(y, both),
            None if weight is None else weight[both],
            [Split(split.number, np.arange(n), np.arange(n, len(both)))],
            fitted,
            objection,
        )


def _differ(fitted: Any, transformed: Any) -> bool:
    return bool(abs(fitted - transformed).max() > 1e-9 * abs(fitted).max())


def _to_matrix(X: Any) -> Any:
    if sp.issparse(X):
        return X.tocsr()
    return X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
