"""Optimisation problems, points and iterates of their solvers, and why a run stopped."""

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import (
    SNAPPED,
    best_intercept,
    feasible_start,
    snapped,
    within_groups,
)
from maxmargin.problems.features import Features, KernelFeatures, LinearFeatures, drawn_rows
from maxmargin.problems.gram import Gram
from maxmargin.problems.rounding import EPS
from maxmargin.runtime import clock

AnyFeatures = TypeVar("AnyFeatures", bound=Features)


class Status(Enum):
    """Why a run stopped, as a sentence."""

    OPTIMAL = "the duality gap is below tol"
    MAX_ITER = "stopped at max_iter before the gap closed; raise max_iter or loosen tol"
    STALLED = "the gap stopped shrinking before it reached tol; scale the columns or loosen tol"
    ROUNDING = (
        "rounding in float64 keeps a gap of tol from being proved; scale the columns, lower C (or "
        "raise nu) or loosen tol"
    )
    NO_MARGIN = (
        "the optimum is 0 as far as float64 can tell: w = 0 is as good as any other weights, so "
        "that scores carry no information"
    )
    STATIONARY = "stationary, not certified: an indefinite kernel has no dual bound"
    INEXACT = "nothing more was found to gain, but how far the best possible is remains unknown"
    ALL_CORRECT = "every training row was passed without an update"
    EPOCHS = "all the epochs allowed were made"
    ONE_PASS = "one pass over the rows was made, as asked"
    SMALL_CHANGE = "the weights changed by less than change_tol over an epoch"
    HELD_OUT = "the held-out score stopped improving"
    MAX_EPOCHS = (
        "stopped at max_epochs while still making mistakes; the classes may overlap, in which case "
        "no number of epochs is enough"
    )
    NEAREST = "the nearest points were found"
    MEETING = "the convex hulls meet"
    PRECISE = "the standard error at every probe point is below tol"
    DRAWN = "all the draws that were asked for were made"
    MAX_SAMPLES = (
        "stopped at max_samples before the standard errors fell below tol; raise max_samples or "
        "loosen tol"
    )
    MAX_TIME = "stopped at max_time; raise it, or continue with warm_start=True"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard; the weights reached so far are kept"
    STREAM = "the rows of each chunk were visited once, in order"
    READ = "read from a file that proves nothing; mm.certify(model, X, y) says how good it is"

    def __reduce__(self) -> Any:  # by its value, for skops, which does not know enums
        return type(self), (self.value,)


class Intercept(Enum):
    """How the offset b of f(x) = w·x + b enters the objective."""

    FREE = "free"  # it costs nothing: the textbook's
    PENALIZED = "penalized"  # it is the weight of a constant feature
    NONE = "none"  # it is 0

    def __reduce__(self) -> Any:
        return type(self), (self.value,)


@dataclass(frozen=True)
class Point:
    """Weights, intercepts and signed duals; where a solver is to start, any of them may be missing.

    In the feature space of a kernel, weights are coefficients of rows: w = Σ wᵢ φ(xᵢ).
    """

    w: Any = None
    b: Any = (
        0.0  # a number; one per class in a MulticlassProblem, one per group of a kernel machine
    )
    beta: Any = None  # with the sign of the label: w = Σβx at the optimum


class Finishable(Protocol):
    """One step of a solver, short enough that a clock can be read and Ctrl-C felt in between."""

    @property
    def finished(self) -> bool:
        """Whether a whole iteration (an epoch, a round) is complete: only then are rules asked."""
        ...


@dataclass(frozen=True)
class Iterate:
    """Where a solver stands: the best lower and upper bound of the optimum so far.

    ``w, b`` attain ``primal`` and ``beta`` (made feasible) attains ``dual``.
    """

    primal: float
    dual: float
    w: Floats
    b: Any
    beta: Any
    finished: bool = True
    converged: bool = False  # nothing more to gain: the optimality conditions hold to rounding
    settled: bool = False  # not finished, but the solution for some of the rows

    @property
    def relative_gap(self) -> float:
        """(P − D) / max(|P|, |D|), and 0 where both are 0."""
        return relative_gap(self.primal, self.dual)

    def unfinished(self) -> "Iterate":
        """Return the same in the middle of an iteration."""
        return replace(self, finished=False)

    def improved(self, other: "Iterate") -> "Iterate":
        """Return the better of both bounds, and what attains it."""
        point = self if self.primal <= other.primal else other
        duals = self if self.dual >= other.dual else other
        return Iterate(point.primal, duals.dual, point.w, point.b, duals.beta)

    def __str__(self) -> str:
        return f"objective {self.primal:.6g}, relative gap {self.relative_gap:.2g}"


def relative_gap(primal: float, dual: float) -> float:
    """Return (P − D) / max(|P|, |D|), and 0 where both are 0."""
    if primal == dual:
        return 0.0
    gap = (primal - dual) / max(abs(primal), abs(dual))
    return float(gap) if np.isfinite(gap) else np.inf  # what is not a number proves nothing


@dataclass(frozen=True)
class Progress:
    """What a callback receives after each iteration."""

    iteration: int
    seconds: float
    iterate: Any


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    status: Status
    iterations: int
    seconds: float


@dataclass(frozen=True)
class Problem(Generic[AnyFeatures]):
    """A machine by its rows in some feature space and its dual variables.

        min  penalty(w) + Σᵥ ℓᵥ(w·φ(xᵥ) + b[g(v)]) + Σ totals·b

    with the losses of ``Loss``, where xᵥ is the row of variable v and g(v) its group (−1: it has
    no intercept). The penalty is ½‖w‖², or l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖². Its dual is, for
    ½‖w‖²,

        max  Σ tβ − ε|β| − ½ quadratic β²  −  ½‖w‖²,    w = Σ βᵥ φ(xᵥ)
        s.t. low ≤ β ≤ high,  and Σβ = totals[g] within each group g.

    One group with total 0 is a free intercept, none is no intercept, or one that is the weight of
    a constant feature; the ν-forms have two groups.
    """

    features: AnyFeatures
    loss: Loss
    row: Ints  # of each variable, among the features
    groups: Ints
    totals: Floats
    l1_ratio: float = 0.0

    @classmethod
    def linear(
        cls,
        X: Any,
        loss: Loss,
        intercept: Intercept = Intercept.FREE,
        constant: float = 1.0,
        l1_ratio: float = 0.0,
    ) -> "LinearProblem":
        """State a linear machine: one variable per row, and one intercept or none.

        A penalised intercept is the weight of a feature of value ``constant``.
        """
        n, free = X.shape[0], intercept is Intercept.FREE
        features = LinearFeatures(X, constant if intercept is Intercept.PENALIZED else 0.0)
        groups = np.full(n, 0 if free else -1)
        return Problem(features, loss, np.arange(n), groups, np.zeros(int(free)), l1_ratio)

    @classmethod
    def kernel(
        cls, gram: Gram, loss: Loss, rows: Ints, groups: Ints, totals: Floats
    ) -> "KernelProblem":
        """State a kernel machine whose variables belong to these rows of a Gram matrix."""
        used, row = np.unique(rows, return_inverse=True)
        return Problem(KernelFeatures(gram, used), loss, row, groups, totals)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def variables(self) -> int:
        """How many dual variables there are."""
        return len(self.row)

    @property
    def intercept(self) -> Intercept:
        """Whether there is a free intercept, a penalised one, or none."""
        if len(self.totals):
            return Intercept.FREE
        return Intercept.PENALIZED if self.features.constant else Intercept.NONE

    @property
    def constant(self) -> float:
        """The value of a constant feature, whose weight is the penalised intercept; 0: none."""
        return self.features.constant

    def by_row(self, beta: Floats) -> Floats:
        """Return the sum of the variables of each row."""
        if len(self.row) == len(self) and (self.row[1:] > self.row[:-1]).all():
            return beta
        return np.bincount(self.row, beta, minlength=len(self)).astype(np.float64, copy=False)

    def products(self, w: Floats) -> Floats:
        """Return w·φ(x) of each variable's row, without any intercept."""
        return self.features.scores(self.features.join(w, 0.0))[self.row]

    @property
    def is_hinge(self) -> bool:
        """Whether this is ½‖w‖² and the hinge loss of labels ±1."""
        loss = self.loss
        one_sided = (np.minimum(-loss.low, loss.high) == 0).all() and loss.epsilon == 0
        signs = np.where(loss.high > 0, 1.0, -1.0)
        plain = self.l1_ratio == 0 and not loss.quadratic.any()
        return bool(plain and one_sided and np.array_equal(signs, loss.target))

    def lengths(self) -> Floats | None:
        """Return the lengths of rows that Σβφ adds up; None if its optimum cannot be 0 at β ≠ 0.

        Where Σβ = 0 no point is special, so that rows are measured from one of them.
        """
        if self.loss.target.any() or not self.totals.any():
            return None
        features: Any = self.features
        with suppress(clock.OutOfTimeError):
            return np.asarray(features.lengths(not self.totals.sum()))
        return None

    def scaled(self, ratio: float) -> Self:
        """Return the problem with C times ``ratio``."""
        return replace(self, loss=self.loss.scaled(ratio))

    def grown(self, point: Point, ratio: float) -> Point:
        """Return a point from which to start if C is ``ratio`` times that of the point.

        So duals at their bounds stay there, and sums stay as they are. But where the dual objective
        is largest before that (no dual is at its bound, say), the duals of a linear machine grow no
        further.
        """
        coef, beta, loss = self.features.coef(point.w), point.beta, self.loss
        if coef is not None and ratio > 1:
            gained = float((loss.target * beta - loss.epsilon * np.abs(beta)).sum())
            square = float(coef @ coef) + float((loss.quadratic * beta * beta).sum())
            ratio = float(np.clip(gained / square, 1.0, ratio)) if square > 0 else ratio
        beta, _ = within_groups(loss, beta * ratio, self.groups, self.totals)
        return Point(point.w, point.b, snapped(beta, self.loss.low, self.loss.high))

    def take(self, rows: Ints) -> Self:
        """Return the problem of some of its rows."""
        features: Any = self.features
        every = self.loss.target
        if self.by_row(every) is every and (rows[1:] > rows[:-1]).all():  # a variable for each row
            kept, row = rows, np.arange(len(rows))
        else:
            place = np.full(len(self), -1)
            place[rows] = np.arange(len(rows))
            kept = np.flatnonzero(place[self.row] >= 0)
            row = place[self.row[kept]]
        return replace(
            self,
            features=features.take(rows),
            loss=self.loss.take(kept),
            row=row,
            groups=self.groups[kept],
        )

    def certificate_work(self, beta: Floats | None) -> float:
        """Return how much the certificate of duals has to do; of any, at least."""
        return self.features.certificate_work(beta)

    def without_duals(self, point: Point) -> Point:
        """Return the point with duals that need no proof."""
        return replace(point, beta=np.zeros(point.beta.shape))

    def full_point(self) -> Point:
        """Return a point at which most rows have a dual: to see how long things take."""
        duals = losses.best_duals(self.loss, np.zeros(len(self.row)))
        beta, _ = within_groups(self.loss, duals, self.groups, self.totals)
        return self.implied(beta, 0.0)

    def settled(self, beta: Floats) -> Floats:
        """Return duals within all constraints, with 0 for those that are rounding of the others.

        What that takes from the sums goes back through free duals.
        """
        beta, _ = within_groups(self.loss, beta, self.groups, self.totals)
        kept = _without_rounding(self.features, self.row, beta, self.loss.low, self.loss.high)
        if kept is beta:
            return beta
        mended, _ = within_groups(self.loss, kept, self.groups, self.totals, by_free=True)
        return mended if (mended == kept)[kept != beta].all() else beta

    def implied(self, beta: Floats, b: float) -> Point:
        """Return the point with the weights that duals imply, and b as its free intercept."""
        w = self.features.combine(self.by_row(beta))
        if constant := self.features.constant:
            return Point(w[:-1], constant * float(w[-1]), beta)
        return Point(w, b, beta)

    def guess(self, start: Point) -> Point:
        """Return a point that takes no time to find: the start, or a guess from some rows."""
        beta = start.beta
        if beta is None:
            beta = feasible_start(self.loss, self.groups, self.totals)
        if start.w is not None:
            return Point(start.w, start.b, beta)
        w, b, beta = self.features.guess(self.loss, beta, self.row)
        beta, _ = within_groups(self.loss, beta, self.groups, self.totals)
        b = b if self.intercept is not Intercept.NONE else 0.0
        return Point(w, b if len(self.totals) < 2 else np.full(len(self.totals), b), beta)

    def best_of(self, points: list[Point]) -> Point:
        """Return the point of a kernel machine with the smallest loss on rows drawn by lot."""
        rows, losses_of = drawn_rows(len(self)), list[float]()
        few = self.take(rows)
        for each in points:
            used, scores = np.flatnonzero(each.w), np.zeros(len(rows))
            if len(used):
                scores = self.features.scores_by(each.w[used], used, rows)
            scores = scores[few.row]
            b = best_intercept(few.loss, scores, 0.0) if len(self.totals) else 0.0
            losses_of.append(float(losses.values(few.loss, scores + b).sum()))
        return points[int(np.argmin(losses_of))]


LinearProblem = Problem[LinearFeatures]
KernelProblem = Problem[KernelFeatures]


def _without_rounding(features: Any, row: Ints, beta: Floats, low: Any, high: Any) -> Floats:
    """Return duals with 0 for those that are rounding of the largest.

    Those at a bound of their own, and those of rows that are longer by as much, count.
    """
    # Sums of so many duals are rounded by no more than this part of the largest.
    part, size = min(4 * EPS * len(row), SNAPPED), np.abs(beta).ravel()
    largest = int(size.argmax()) if len(size) else 0
    small = np.flatnonzero((size > 0.0) & (size <= part * size[largest : largest + 1]))
    if not len(small):
        return beta
    bound = np.broadcast_to(np.where(beta > 0, high, low), beta.shape).ravel()[small]
    squares = features.take(row[np.append(small, largest)]).squared_norms()
    lengths = np.sqrt(np.maximum(squares, 0.0))
    inside = size[small] <= part * np.abs(bound)
    short = size[small] * lengths[:-1] <= part * size[largest] * lengths[-1]
    kept = beta.copy()
    kept.flat[small[inside & short]] = 0.0
    return kept


@dataclass(frozen=True)
class MulticlassProblem:
    """The machine of Crammer and Singer: one weight vector per class, one loss per row.

        min  ½Σₖ‖wₖ‖² + Σᵢ Cᵢ · (maxₖ (1 − δ(k, yᵢ) + fₖ(xᵢ)) − f_yᵢ(xᵢ)),    fₖ = wₖ·x + bₖ

    plus ½‖b/constant‖² if the intercepts are weights of a constant feature. Its dual is, in β of
    shape (n, K),

        max  Σᵢ βᵢ[yᵢ] − ½Σₖ‖wₖ‖²    (− ½(constant‖Σβᵢ‖)²),     wₖ = Σᵢ βᵢ[k] xᵢ
        s.t. βᵢ[k] ≤ Cᵢδ(k, yᵢ),  Σₖ βᵢ[k] = 0,  and Σᵢ βᵢ = 0 if the intercepts are free.
    """

    features: Any  # LinearFeatures
    labels: npt.NDArray[np.int64]  # 0 … n_classes − 1
    n_classes: int
    cost: Floats
    free: bool = True  # whether intercepts cost nothing

    @classmethod
    def linear(
        cls,
        X: Any,
        labels: Ints,
        n_classes: int,
        cost: Floats,
        intercept: Intercept = Intercept.FREE,
        constant: float = 1.0,
    ) -> Self:
        """State the problem; penalised intercepts are weights of a feature of that value."""
        features = LinearFeatures(X, constant if intercept is Intercept.PENALIZED else 0.0)
        return cls(features, labels, n_classes, cost, intercept is Intercept.FREE)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def variables(self) -> int:
        """How many rows of duals there are."""
        return len(self)

    @property
    def intercept(self) -> Intercept:
        """Whether intercepts are free, penalised, or 0."""
        if self.free:
            return Intercept.FREE
        return Intercept.PENALIZED if self.features.constant else Intercept.NONE

    def scaled(self, ratio: float) -> Self:
        """Return the problem with C times ``ratio``."""
        return replace(self, cost=self.cost * ratio)

    def settled(self, beta: Floats) -> Floats:
        """Return duals with 0 for those that are rounding of the others."""
        row, cost = np.repeat(np.arange(len(self)), self.n_classes), self.cost[:, np.newaxis]
        return _without_rounding(self.features, row, beta, -cost, cost)

    is_hinge = False

    def products(self, w: Floats) -> Floats:
        """Return w·x of each row, a column for each class."""
        return np.asarray(self.features.columns(w))

    def grown(self, point: Point, ratio: float) -> Point:
        """Return a point from which to start at another C."""
        return Point(None, point.b, point.beta)

    def take(self, rows: Ints) -> Self:
        """Return the problem of some of its rows."""
        labels, cost = self.labels[rows], self.cost[rows]
        return replace(self, features=self.features.take(rows), labels=labels, cost=cost)

    def certificate_work(self, beta: Floats | None) -> float:
        """Return how much the certificate of duals has to do; of any, at least."""
        return float(self.features.certificate_work(beta))

    def without_duals(self, point: Point) -> Point:
        """Return the point with duals that need no proof."""
        return replace(point, beta=np.zeros(point.beta.shape))

    def full_point(self) -> Point:
        """Return a point: to see how long things take."""
        return self.guess(Point())

    def guess(self, start: Point) -> Point:
        """Return a point that takes no time to find: the start, or planes between class means."""
        beta = np.zeros((len(self), self.n_classes)) if start.beta is None else start.beta
        if start.w is not None:
            return Point(start.w, np.broadcast_to(start.b, (self.n_classes,)), beta)
        w, b = self.features.between_means(self.labels, self.n_classes)
        return Point(w, b if self.intercept is not Intercept.NONE else np.zeros(len(b)), beta)


AnyProblem = Problem[Any] | MulticlassProblem
