"""The mathematics of each machine: from training data to problems, and from solutions to planes.

    formulation     what a row may cost                           sum of duals, by group
    CSVCForm        C·max(0, 1 − y f), or its square              Σβ = 0
    NuSVCForm       max(0, ρ − y f), and −ν n ρ for the margin    ν n/2 in either class
    EpsilonSVRForm  C·max(0, |t − f| − ε), or its square          Σβ = 0
    NuSVRForm       the same with ε to be found, at the cost ν    C ν n/2 above, −C ν n/2 below
    QuantileForm    C·q·(t − f) above f, C·(1 − q)·(f − t) below  Σβ = 0
    OneClassForm    max(0, ρ − f), and −ν n ρ                     ν n

Weights of rows multiply their costs. Paths, searches, leave-one-out and ``mm.certify`` use the same
problems and points.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.reductions import Subproblem, binary_subproblems
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import NOTHING, size_of_terms
from maxmargin.problems.features import Features
from maxmargin.problems.problem import Intercept, MulticlassProblem, Point, Problem
from maxmargin.solve import Result


@dataclass(frozen=True)
class Training:
    """The rows that take part in a fit."""

    X: Any
    y: Any  # labels 0 … K − 1, targets, or None
    weight: Floats
    kept: Ints  # their numbers among the rows given
    n_rows: int  # given
    classes: Any = None
    _subproblems: dict[str, list[Subproblem]] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(self.kept)

    def subproblems(self, scheme: str) -> list[Subproblem]:
        """Return the binary problems of the classes, listed once for each scheme."""
        if scheme not in self._subproblems:
            self._subproblems[scheme] = binary_subproblems(self.y, len(self.classes), scheme)
        return self._subproblems[scheme]


class SolvedPlane(NamedTuple):
    """A function f = w·φ + b as a model has it, and the duals of the problem it solves."""

    w: Floats  # as in ``Point``
    b: Any  # a number; one for each class if they are learnt jointly
    beta: Floats
    scale: float = 1.0  # by which the solution was divided; 0: there is no margin to divide by
    epsilon: float = 0.0  # half the width of a tube that was found


class Formulation(Protocol):
    """What is solved, and what a solution says."""

    def problems(self, data: Training, features: Any) -> list[Any]:
        """Return what is solved."""
        ...

    def rows(self, data: Training) -> list[Ints]:
        """Return the rows of the training data that take part in each problem."""
        ...

    def plane(self, problem: Any, result: Result) -> SolvedPlane:
        """Return the function that a solution stands for."""
        ...

    def point(self, plane: SolvedPlane) -> Point:
        """Return the solution that a function stands for."""
        ...


class _OneProblem:
    """What formulations share that have one problem, of all rows, and nothing to divide by."""

    def rows(self, data: Training) -> list[Ints]:
        """Return all rows."""
        return [np.arange(len(data))]

    def plane(self, problem: Any, result: Result) -> SolvedPlane:
        """Return the solution with the intercepts that are best for its weights."""
        b: Any = result.certificate.intercept
        if isinstance(problem, MulticlassProblem):
            b = np.asarray(result.certificate.intercepts)
        return SolvedPlane(result.point.w, b, result.point.beta)

    def point(self, plane: SolvedPlane) -> Point:
        """Return the solution itself."""
        return Point(plane.w, plane.b, plane.beta)


@dataclass(frozen=True)
class CSVCForm(_OneProblem):
    """min ½‖w‖² + C Σ max(0, 1 − y f), for every two classes or each against the rest.

    The hinge may be squared, ½‖w‖² may be l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖², and the classes may
    be learnt together as one problem (Crammer and Singer).
    """

    C: float
    intercept: Intercept = Intercept.FREE
    name: str = "hinge"  # of the loss
    l1_ratio: float = 0.0
    scheme: str = "ovo"

    def problems(self, data: Training, features: Features) -> list[Any]:
        """Return a problem for each subproblem, or the joint one."""
        cost, free = self.cost(data), self.intercept is Intercept.FREE
        subproblems = data.subproblems(self.scheme)
        if not subproblems:
            present, index = np.unique(data.y, return_inverse=True)
            return [MulticlassProblem(features, index.astype(np.int64), len(present), cost, free)]
        found = []
        for subproblem in subproblems:
            some = features if subproblem.rows is None else features.take(subproblem.rows)
            loss = self.loss(
                subproblem.signs, cost if subproblem.rows is None else cost[subproblem.rows]
            )
            found.append(one_variable_per_row(some, loss, free, self.l1_ratio))
        return found

    def cost(self, data: Training) -> Floats:
        """Return what a unit of slack costs in each row."""
        # The joint problem of two classes has ½‖w/2‖² twice, half of ½‖w‖².
        joint = self.scheme == "crammer_singer" and len(data.classes) == 2
        return (2 * self.C if joint else self.C) * data.weight

    def loss(self, signs: Floats, cost: Floats) -> Loss:
        """Return the losses of rows with labels ±1."""
        return losses.CLASSIFYING[self.name](signs, cost)

    def rows(self, data: Training) -> list[Ints]:
        """Return the rows of each subproblem."""
        every = np.arange(len(data))
        return [every if t.rows is None else t.rows for t in data.subproblems(self.scheme)] or [
            every
        ]

    def as_soft_margin(self, problem: Any, plane: SolvedPlane) -> tuple[Problem[Any], Point]:
        """Return the problem with a given C, and the plane as its solution."""
        return problem, self.point(plane)


@dataclass(frozen=True)
class NuSVCForm:
    """min ½‖w‖² + Σ max(0, ρ − y f) − ν n ρ for every two classes, divided by ρ."""

    nu: float
    scheme: ClassVar[str] = "ovo"

    def problems(self, data: Training, features: Features) -> list[Any]:
        """Return a problem for each pair of classes, or raise if ν is more than it allows."""
        found = []
        for subproblem, rows in zip(data.subproblems("ovo"), self.rows(data), strict=True):
            weight, positive = data.weight[rows], subproblem.signs > 0
            weights = float(weight[positive].sum()), float(weight[~positive].sum())
            total = 0.5 * self.nu * sum(weights)
            if total > min(weights) * (1 + 1e-12):
                self._refuse(data, subproblem, weights)
            total, none = min(total, *weights), np.zeros(len(rows))
            low, high = np.where(positive, 0.0, -weight), np.where(positive, weight, 0.0)
            some = features if subproblem.rows is None else features.take(rows)
            loss, totals = Loss(none, low, high, none, 0.0), np.array([total, -total])
            found.append(
                Problem(some, loss, np.arange(len(rows)), np.where(positive, 0, 1), totals)
            )
        return found

    def rows(self, data: Training) -> list[Ints]:
        """Return the rows of each pair of classes."""
        every = np.arange(len(data))
        return [
            every if subproblem.rows is None else subproblem.rows
            for subproblem in data.subproblems("ovo")
        ]

    def _refuse(self, data: Training, subproblem: Subproblem, weights: tuple[float, float]) -> None:
        names = [repr(data.classes.tolist()[k]) for k in (subproblem.positive, subproblem.negative)]
        raise ValueError(
            f"nu={self.nu!r}: the specified nu is infeasible. Classes {names[0]} and {names[1]} "
            f"of weights {weights[0]:g} and {weights[1]:g} allow 0 < nu <= "
            f"{2 * min(weights) / sum(weights):.6g}: lower nu, or balance the classes."
        )

    def plane(self, problem: Any, result: Result) -> SolvedPlane:
        """Return the solution divided by its margin ρ; by nothing if that is 0."""
        above, below = result.certificate.intercepts
        b, rho = 0.5 * (above + below), 0.5 * (below - above)
        size = np.abs(result.point.beta)
        least = 2 * NOTHING * size_of_terms(size, problem.lengths())  # as ‖w‖² ≤ ν n ρ
        margin = rho * float(size.sum()) > least and not result.certificate.terms
        scale = rho if margin else 1.0
        return SolvedPlane(
            result.point.w / scale, b / scale, result.point.beta, rho if margin else 0.0
        )

    def point(self, plane: SolvedPlane) -> Point:
        """Return the solution before it was divided: w, and b ∓ ρ."""
        scale = plane.scale or 1.0
        b = scale * plane.b
        return Point(scale * plane.w, np.array([b - plane.scale, b + plane.scale]), plane.beta)

    def as_soft_margin(self, problem: Any, plane: SolvedPlane) -> tuple[Problem[Any], Point]:
        """Return the problem whose C makes it an equal one, and the plane as its solution.

        Divided by ρ, it solves that of C = 1/ρ.
        """
        scale, loss = plane.scale or 1.0, problem.loss
        cost = np.maximum(loss.high, -loss.low) / scale
        signs = np.where(problem.groups == 0, 1.0, -1.0)
        equal = one_variable_per_row(problem.features, losses.hinge(signs, cost), free=True)
        return equal, Point(plane.w, plane.b, plane.beta / scale)


class _Regression(_OneProblem):
    """What formulations share that have one dual for each target."""

    C: float
    intercept: Intercept

    def problems(self, data: Training, features: Features) -> list[Any]:
        """Return the one problem."""
        loss = self.loss(data.y, self.C * data.weight)
        return [one_variable_per_row(features, loss, self.intercept is Intercept.FREE)]

    def loss(self, target: Floats, cost: Floats) -> Loss:
        """Return the losses of rows with these targets."""
        raise NotImplementedError


@dataclass(frozen=True)
class EpsilonSVRForm(_Regression):
    """min ½‖w‖² + C Σ max(0, |t − f| − ε), or its square."""

    C: float
    epsilon: float
    intercept: Intercept = Intercept.FREE
    name: str = "epsilon_insensitive"  # of the loss

    def loss(self, target: Floats, cost: Floats) -> Loss:
        """Return the losses of rows with these targets."""
        return losses.REGRESSING[self.name](target, cost, self.epsilon)


@dataclass(frozen=True)
class QuantileForm(_Regression):
    """min ½‖w‖² + C Σ max(q (t − f), (1 − q)(f − t))."""

    C: float
    quantile: float
    intercept: Intercept = Intercept.FREE

    def loss(self, target: Floats, cost: Floats) -> Loss:
        """Return the losses of rows with these targets."""
        return losses.pinball(target, cost, self.quantile)


@dataclass(frozen=True)
class NuSVRForm(_OneProblem):
    """min ½‖w‖² + C (Σ max(0, |t − f| − ε) + ν n ε): the tube is as wide as ν says."""

    nu: float
    C: float

    def problems(self, data: Training, features: Features) -> list[Any]:
        """Return the one problem; a row has two duals, one for each side of the tube."""
        cost, side = self.C * data.weight, np.repeat([0, 1], len(data))
        total = 0.5 * self.nu * float(cost.sum())
        tube = losses.split_tube(losses.epsilon_insensitive(data.y, cost, 0.0))
        row = np.tile(np.arange(len(data)), 2)
        return [Problem(features, tube, row, side, np.array([total, -total]))]

    def plane(self, problem: Any, result: Result) -> SolvedPlane:
        """Return the function in the middle of the tube."""
        # At the upper edge of the tube y = f + ε, at the lower one y = f − ε.
        upper, lower = result.certificate.intercepts
        width = 0.5 * (upper - lower)
        return SolvedPlane(result.point.w, 0.5 * (upper + lower), result.point.beta, epsilon=width)

    def point(self, plane: SolvedPlane) -> Point:
        """Return the solution: an intercept for each edge of the tube."""
        return Point(plane.w, plane.b + plane.epsilon * np.array([1.0, -1.0]), plane.beta)


@dataclass(frozen=True)
class OneClassForm(_OneProblem):
    """min ½‖w‖² + Σ max(0, ρ − w·φ) − ν n ρ; the intercept is −ρ."""

    nu: float

    def problems(self, data: Training, features: Features) -> list[Any]:
        """Return the one problem."""
        none, group = np.zeros(len(data)), np.zeros(len(data), dtype=np.int64)
        total = np.array([self.nu * float(data.weight.sum())])
        loss = Loss(none, none, data.weight, none, 0.0)
        return [Problem(features, loss, np.arange(len(data)), group, total)]


def one_variable_per_row(
    features: Features, loss: Loss, free: bool, l1_ratio: float = 0.0
) -> Problem[Any]:
    """Return the problem of rows with a dual each, and a free intercept or none."""
    n = len(features)
    groups, totals = np.full(n, 0 if free else -1), np.zeros(int(free))
    return Problem(features, loss, np.arange(n), groups, totals, l1_ratio)
