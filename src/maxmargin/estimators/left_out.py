"""What a classifier fitted without a row says about that row, from the one fit with all of them.

Let φ(δ) be the best dual objective while the dual of row t is held at δ. It is concave, and

    φ′(0) = 1 − y f⁻ᵗ(x),    φ′(α) = 1 − y f(x)  (minus α/2C with the squared hinge),

where f⁻ᵗ is the solution without the row. Between the two its slope falls by α times the squared
distance from φ(x) to the affine span of other rows that are free to move (to 0 without an
intercept). At the solution that is the span S of Vapnik and Chapelle (Neural Computation 12, 2000):
y f⁻ᵗ = y f − α S², exactly if the free rows stay what they are. A row without a dual changes
nothing when it goes. Where there is no such formula, or rows are few, the rest is fitted again.

A penalised intercept is the weight of a constant feature, so that one set of formulas serves linear
and kernel machines.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.budget import Budget
from maxmargin.certificates import Certificate, certify
from maxmargin.estimators.row_marks import Marks, mark_rows
from maxmargin.kernels import Linear
from maxmargin.loops.records import Loss
from maxmargin.problems.duality import within_groups
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.problem import Intercept, MulticlassProblem, Point, Problem, Status
from maxmargin.runtime import clock
from maxmargin.separability.max_margin import FeatureSpaceRows, LinearRows, Widest, find_widest
from maxmargin.solve import Result, Settings, solve

_AT_BOUND = 1e-9  # of the bound: a dual this near to it is there
_RIDGES = (1e-12, 1e-10, 1e-8)  # of the largest diagonal: dependent rows need one to be inverted
_BLOCK = 1 << 22  # kernel values of rows at their bounds that are held at a time
_WITHIN = 1e-9  # of ‖φ(x)‖²: a row this near to the span of others is in it
MOST_FREE = 6000  # rows with 0 < α < C whose matrix is factorised: 290 MB, and some 10 s on a core
FEW_ROWS = 40  # up to which each row that matters is left out in turn
N_FOLDS = 5
_FOLDS = f"{N_FOLDS} folds"
_MOVED = 0.01  # of the rows: if the scores of more fall by the whole margin, the machine overfits
_FOR_FOLDS = 0.9  # of the time for a machine: what is left is for its sigmoid


@dataclass(frozen=True, eq=False)
class SolvedProblem:
    """A binary problem with its solution, by the rows that take part in it."""

    problem: Problem[Any]
    point: Point
    rows: Ints  # among those given

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def loss(self) -> Loss:
        """The losses."""
        return self.problem.loss

    @property
    def signs(self) -> Floats:
        """Labels ±1."""
        return self.loss.target

    @cached_property
    def alpha(self) -> Floats:
        """Dual variables ≥ 0."""
        return np.abs(np.asarray(self.point.beta, dtype=np.float64))

    @property
    def bound(self) -> Floats:
        """The largest values the duals may have: C of each row, or infinity."""
        return np.maximum(self.loss.high, -self.loss.low)

    @property
    def free(self) -> bool:
        """Whether there is an intercept that costs nothing."""
        return self.problem.intercept is Intercept.FREE

    @property
    def loss_name(self) -> str:
        """Which it is: "hinge", "squared_hinge" or "hard_margin"."""
        if np.isinf(self.bound).all():
            return "squared_hinge" if self.loss.quadratic.any() else "hard_margin"
        return "hinge"

    @cached_property
    def certificate(self) -> Certificate:
        """Bounds on the optimum, recomputed."""
        return certify(self.problem, self.point, keep_intercept=True)

    @cached_property
    def diagonal(self) -> Floats:
        """‖φ(x)‖² of each row."""
        return np.asarray(self.problem.features.squared_norms()[self.problem.row])

    def block(self, left: Ints, right: Ints) -> Floats:
        """Return the products of some rows with some others in feature space."""
        row = self.problem.row
        return np.asarray(self.problem.features.block(row[left], row[right]))

    @cached_property
    def scores(self) -> Floats:
        """The score f of each row, as the model predicts."""
        b = np.ravel(self.point.b)
        return np.asarray(self.problem.products(self.point.w) + (float(b[0]) if len(b) else 0.0))

    @property
    def slack(self) -> Floats:
        """ξ of each row."""
        return np.asarray(np.maximum(0.0, 1.0 - self.signs * self.scores))

    @property
    def between_bounds(self) -> Flags:
        """Which duals are strictly between their bounds."""
        bound = self.bound
        full = np.isfinite(bound) & (self.alpha >= (1 - _AT_BOUND) * bound)
        smallest = _AT_BOUND * self.alpha.max(initial=0.0)
        return np.asarray((self.alpha > smallest) & ~full)

    @property
    def alone(self) -> Flags:
        """Which rows are the only ones of their class."""
        positive = self.signs > 0
        count = np.where(positive, positive.sum(), (~positive).sum())
        return np.asarray(count == 1)

    def merged(self, marks: Marks) -> tuple["SolvedProblem", Ints]:
        """Return the same with equal rows of a class as one, and which one each row became.

        Rows are equal if their marks are. One row that costs what several equal ones do has the
        sum of their duals, so that it is the same problem.
        """
        keys = np.where(self.signs > 0, marks, ~marks)
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        if len(first) == len(self):
            return self, np.arange(len(self))
        order = np.argsort(first)  # rows of features ascend
        first, place = first[order], np.argsort(order)[place]
        count, loss = len(first), self.loss
        low, high = (_sums(place, bound, count) for bound in (loss.low, loss.high))
        quadratic = np.zeros(count)
        if loss.quadratic.any():
            quadratic = 1.0 / _sums(place, 1.0 / loss.quadratic, count)
        fewer = replace(
            self.problem.take(self.problem.row[first]),
            loss=Loss(loss.target[first], low, high, quadratic, loss.epsilon),
        )
        w = self.point.w
        if self.problem.features.coef(w) is None:  # they are coefficients of rows
            w = _sums(place, w, count)
        beta = _sums(place, np.asarray(self.point.beta, dtype=np.float64), count)
        return SolvedProblem(fewer, Point(w, self.point.b, beta), self.rows[first]), place


def _sums(place: Ints, values: Floats, count: int) -> Floats:
    return np.bincount(place, values, minlength=count).astype(np.float64, copy=False)


# ------------------------------------------------------------------- which way


@dataclass(frozen=True, eq=False)
class Contents:
    """Training rows by their content: which are equal, and which are left out in the same fold."""

    X: Any
    labels: Ints
    is_gram: bool = False  # X are kernel values

    @cached_property
    def marks(self) -> Marks:
        """A hash of each row."""
        return mark_rows(self.X)

    @cached_property
    def folds(self) -> Ints:
        """The fold of each row: class after class, they go round in the order of their hashes.

        So equal rows are in the same fold, and neither the order of rows nor whether they are
        repeated or have weights matters.
        """
        marks = mark_rows(_distinct(self.X)) if self.is_gram else self.marks
        order = np.lexsort([marks, self.labels])
        marks, labels = marks[order], self.labels[order]
        new = np.append(False, (np.diff(labels) != 0) | (marks[1:] != marks[:-1]))
        folds = np.empty(len(order), dtype=np.int64)
        folds[order] = np.cumsum(new) % N_FOLDS
        return folds


def _distinct(K: Any) -> Floats:
    """Return the different values of each row of a matrix in ascending order, then zeros."""
    values = np.sort(np.asarray(K, dtype=np.float64), axis=1)
    values[:, 1:][values[:, 1:] == values[:, :-1]] = np.nan  # which are sorted to the end
    values.sort(axis=1)
    return np.nan_to_num(values, nan=0.0, copy=False)


class LeftOut(NamedTuple):
    """The scores that rows have when they are left out, and how these were found."""

    scores: Floats
    rows: Ints  # among those that take part in the fit
    source: str


def leave_out(
    machine: SolvedProblem, contents: Contents, settings: Settings, share: float = 1.0
) -> LeftOut:
    """Return the score of each row by the machine without it and the rows equal to it.

    Few rows are left out in turn, many by the span; where that is not defined, its factor would be
    too large or it shows that the machine overfits, by folds. The only row of its class falls to
    the other one, which alone is left. ``share`` is the part of the time that is left for this
    machine: if it is too short for folds, the span has to do.
    """
    by_span = None
    if machine.problem.l1_ratio == 0:
        merged, place = machine.merged(contents.marks[machine.rows])
        if len(merged) <= FEW_ROWS:
            return LeftOut(_exact_scores(merged, settings)[place], machine.rows, "leave-one-out")
        spans = squared_spans(merged) if _has_span(merged) else None
        if spans is not None and not _is_degenerate(merged, spans):
            scores = np.where(merged.alone, -merged.signs, span_scores(merged, spans))
            by_span = LeftOut(scores[place], machine.rows, "span")
            if not _overfits(merged, scores):
                return by_span
    time = None if by_span is None else _FOR_FOLDS * share * (clock.limit().end - clock.now())
    try:
        with clock.limited(time):
            return LeftOut(_fold_scores(machine, contents, settings), machine.rows, _FOLDS)
    except clock.OutOfTimeError:
        if by_span is None:
            raise
        return by_span


def _overfits(machine: SolvedProblem, left_out: Floats) -> bool:
    """Return whether some scores fall by more than the width of the margin when rows are left out.

    Then other rows would not stay what they are if one of these left, as the span assumes.
    """
    return bool((machine.signs * (machine.scores - left_out) > 2).mean() > _MOVED)


def _fold_scores(machine: SolvedProblem, contents: Contents, settings: Settings) -> Floats:
    folds, scores = contents.folds[machine.rows], np.zeros(len(machine))
    for fold in np.unique(folds):
        left = np.flatnonzero(folds == fold)
        scores[left], _ = refit_without(machine, left, settings)
    return scores


def _has_span(machine: SolvedProblem) -> bool:
    """Return whether the span says what leaving out a row does, and its factor is not too large.

    Of a linear machine with bounded duals it does not: there are nearly as many rows between their
    bounds as columns, and few directions left. The estimate then moves a score by nothing or by far
    too much, as none of these duals could go where it puts them. (On the real sets that the tests
    take log-losses were up to a third larger, those of other machines equal to 5 %.)
    """
    features, free = machine.problem.features, int(np.count_nonzero(machine.between_bounds))
    if isinstance(features, LinearFeatures) or type(features.kernel) is Linear:
        if np.isfinite(machine.bound).any():
            return False
        if _is_curved(machine):
            free = min(free, _columns(machine))
    return free <= MOST_FREE


def _is_degenerate(machine: SolvedProblem, spans: Floats) -> bool:
    """Return whether the rows between their bounds span most of those at theirs.

    Then the estimate says that these change nothing, by duals that would leave their bounds.
    """
    fixed = (machine.alpha > 0) & ~machine.between_bounds
    within = spans[fixed] <= _WITHIN * machine.diagonal[fixed]
    return 2 * int(np.count_nonzero(within)) > max(len(within), 1)


def _exact_scores(machine: SolvedProblem, settings: Settings) -> Floats:
    scores = machine.scores.copy()
    for t in np.flatnonzero((machine.alpha > 0) | machine.alone):
        scores[[t]], _ = refit_without(machine, np.array([t]), settings)
    return scores


def leave_out_jointly(
    problem: MulticlassProblem, point: Point, contents: Contents, *, settings: Settings
) -> list[LeftOut]:
    """Return the scores that rows have in each class when their fold is left out.

    A class of which no row is left scores lower than any other.
    """
    scores, every = np.zeros((len(problem), problem.n_classes)), np.arange(len(problem))
    for fold in np.unique(contents.folds):
        left, rest = (np.flatnonzero((contents.folds == fold) == side) for side in (True, False))
        present, labels = np.unique(problem.labels[rest], return_inverse=True)
        if len(present) < 2:
            scores[left] = np.where(np.arange(problem.n_classes) == present[0], 0.0, -1.0)
            continue
        fewer = replace(problem.take(rest), labels=labels, n_classes=len(present))
        same = len(present) == problem.n_classes
        start = Point(None, point.b, point.beta[rest]) if same else Point()
        result = _solved(fewer, settings, start)
        b = np.asarray(getattr(result.certificate, "intercepts", result.point.b))
        found = problem.features.scores_by(result.point.w, rest, left) + b
        scores[left] = found.min(axis=1, keepdims=True) - 1.0
        scores[np.ix_(left, present)] = found
    return [LeftOut(own, every, _FOLDS) for own in scores.T]


# ------------------------------------------------------------------- by the span


def span_scores(machine: SolvedProblem, spans: Floats) -> Floats:
    """Return the score that each row has, by the span estimate, if it is left out."""
    shifts = machine.alpha * (spans - machine.loss.quadratic)
    return np.asarray(machine.scores - machine.signs * shifts)


def squared_spans(machine: SolvedProblem) -> Floats | None:
    """Return S² of each support vector, 0 for other rows; None if the kernel is indefinite."""
    spans = np.zeros(len(machine))
    moving = np.flatnonzero(machine.between_bounds)
    fixed = np.flatnonzero((machine.alpha > 0) & ~machine.between_bounds)
    if len(moving) <= machine.free:  # without these there is nothing to span
        spans[moving] = _farthest(machine, moving)
    if not len(moving):
        bare = machine.diagonal[fixed] + machine.loss.quadratic[fixed]
        spans[fixed] = _farthest(machine, fixed) if machine.free else bare
        return np.maximum(spans, 0.0)
    if _is_curved(machine) and _columns(machine) < len(moving):
        spans[moving] = _spans_by_columns(machine, moving)
        return np.maximum(spans, 0.0)
    factor = _Factor.of(machine, moving)
    if factor is None:
        return None
    if len(moving) > machine.free:
        spans[moving] = factor.own()
    step = max(1, _BLOCK // len(moving))
    for start in range(0, len(fixed), step):
        clock.check()
        some = fixed[start : start + step]
        spans[some] = factor.others(some)
    return np.maximum(spans, 0.0)


def _farthest(machine: SolvedProblem, rows: Ints) -> Floats:
    """Return the largest squared distance from each of some rows to a support vector."""
    if not len(rows):
        return np.zeros(0)
    support = np.flatnonzero(machine.alpha > 0)
    products = machine.block(rows, support)
    squares = machine.diagonal[rows][:, np.newaxis] - 2 * products + machine.diagonal[support]
    return np.asarray(squares.max(axis=1) + machine.loss.quadratic[rows])


@dataclass(frozen=True, eq=False)
class _Factor:
    """The Cholesky factor L of the products M of the rows between their bounds.

    A free intercept borders M with ones. Then only differences of rows count: M is taken from the
    mean of these rows, and a constant feature is added, which makes M regular and changes nothing.
    """

    machine: SolvedProblem
    moving: Ints
    means: Floats  # of the products of each moving row with all of them; 0 without an intercept
    constant: float
    L: Floats

    @classmethod
    def of(cls, machine: SolvedProblem, moving: Ints) -> "_Factor | None":
        M, means, constant = machine.block(moving, moving), np.zeros(len(moving)), 0.0
        largest = float(np.abs(M.diagonal()).max(initial=0.0))
        if machine.free:
            means = M.mean(axis=0)
            M -= means
            M -= (means - means.mean())[:, np.newaxis]
            constant = float(np.abs(M.diagonal()).mean()) or 1.0
            M += constant
        diagonal = M.diagonal() + machine.loss.quadratic[moving]
        unit = max(float(diagonal.max(initial=0.0)), 1e-3 * largest, np.finfo(float).tiny)
        for ridge in _RIDGES:
            clock.check()
            np.fill_diagonal(M, diagonal + ridge * unit)
            try:
                L = cholesky(M, lower=True, check_finite=False)
            except LinAlgError:
                continue
            return cls(machine, moving, means, constant, L)
        return None

    @cached_property
    def ones(self) -> Floats:
        """L⁻¹1."""
        return self._solve(np.ones(len(self.L)))

    def _solve(self, right: Floats) -> Floats:
        return np.asarray(solve_triangular(self.L, right, lower=True, check_finite=False))

    def own(self) -> Floats:
        """Return S² of the moving rows: 1 over the diagonal of the inverse of the bordered M."""
        inverse, _ = dtrtri(self.L, lower=1)
        diagonal = np.einsum("ij,ij->j", inverse, inverse)
        if self.machine.free:
            diagonal -= (inverse.T @ self.ones) ** 2 / float(self.ones @ self.ones)
        return np.asarray(1.0 / np.maximum(diagonal, np.finfo(float).tiny))

    def others(self, rows: Ints) -> Floats:
        """Return S² of rows at their bounds."""
        products = self.machine.block(self.moving, rows)
        squares = self.machine.diagonal[rows] + self.machine.loss.quadratic[rows]
        if not self.machine.free:
            return np.asarray(squares - (self._solve(products) ** 2).sum(axis=0))
        middle, centre = products.mean(axis=0), float(self.means.mean())
        products += self.constant + centre - middle - self.means[:, np.newaxis]
        squares += self.constant + centre - 2 * middle
        V = self._solve(products)
        beyond = (self.ones @ V - 1.0) ** 2 / float(self.ones @ self.ones)
        return np.asarray(squares - (V**2).sum(axis=0) + beyond)


def _is_curved(machine: SolvedProblem) -> bool:
    """Return whether M is the products of rows of numbers plus a positive diagonal."""
    linear = isinstance(machine.problem.features, LinearFeatures)
    return linear and bool((machine.loss.quadratic > 0).all())


def _columns(machine: SolvedProblem) -> int:
    """Return how many columns the rows of a linear machine have, with one for an intercept."""
    return int(machine.problem.features.X.shape[1]) + 1


def _spans_by_columns(machine: SolvedProblem, moving: Ints) -> Floats:
    """Return S² of the moving rows of a linear machine with a squared loss.

    M = ZZᵀ + Q, Q diagonal, has the inverse Q⁻¹ − Q⁻¹Z(I + ZᵀQ⁻¹Z)⁻¹ZᵀQ⁻¹: what is factorised has a
    row for each column of Z, which are those of X and a constant one.
    """
    features, quadratic = machine.problem.features, machine.loss.quadratic[moving]
    width = _columns(machine)
    rows, step = machine.problem.row[moving], max(1, _BLOCK // width)
    constant = 1.0 if machine.free else features.constant

    def blocks() -> Iterator[tuple[slice, Floats]]:
        for start in range(0, len(rows), step):
            clock.check()
            X = features.X[rows[start : start + step]].astype(np.float64)
            X = X.toarray() if hasattr(X, "toarray") else X
            yield slice(start, start + step), np.column_stack([X, np.full(len(X), constant)])

    G, sums = np.eye(width), np.zeros(width)
    for part, Z in blocks():
        scaled = Z / quadratic[part, np.newaxis]
        G += Z.T @ scaled
        sums += scaled.sum(axis=0)
    L = cholesky(G, lower=True, check_finite=False)
    inner = solve_triangular(L, sums, lower=True, check_finite=False)
    diagonal, ones = np.empty(len(rows)), np.empty(len(rows))
    for part, Z in blocks():
        W = solve_triangular(L, Z.T, lower=True, check_finite=False)
        diagonal[part] = 1 - (W**2).sum(axis=0) / quadratic[part]
        ones[part] = 1 - inner @ W
    diagonal, ones = diagonal / quadratic, ones / quadratic  # of M⁻¹, and M⁻¹1
    if machine.free:
        diagonal -= ones**2 / ones.sum()
    return np.asarray(1.0 / np.maximum(diagonal, np.finfo(float).tiny))


# ------------------------------------------------------------------- by fitting the rest


def refit_without(machine: SolvedProblem, left: Ints, settings: Settings) -> tuple[Floats, bool]:
    """Return the scores of some rows by the machine without them, and whether it is certified.

    If nothing is left of a class, they all fall to the other one.
    """
    keep = np.ones(len(machine), dtype=bool)
    keep[left] = False
    rest = np.flatnonzero(keep)
    signs = np.unique(machine.signs[rest])
    if len(signs) < 2:
        return np.full(len(left), float(signs[0])), True
    problem = machine.problem
    rows = problem.row[rest]
    if machine.loss_name == "hard_margin":
        found = _refit_hard(machine, rest, settings)
        if found is None:
            return machine.scores[left], False
        w, b, certified = found.point.w, float(found.point.b), found.run.status is Status.OPTIMAL
    else:
        fewer = problem.take(rows)
        beta = machine.point.beta
        if beta is not None:
            beta, _ = within_groups(fewer.loss, beta[rest], fewer.groups, fewer.totals)
        start = Point(problem.features.restrict(machine.point.w, rows), machine.point.b, beta)
        result = _solved(fewer, settings, start)
        w, b = result.point.w, result.certificate.intercept
        certified = result.status is Status.OPTIMAL
    scores = problem.features.scores_by(problem.features.join(w, 0.0), rows, problem.row[left])
    return np.asarray(scores + b), certified


def _solved(problem: Any, settings: Settings, start: Point) -> Result:
    result = solve(problem, settings, Budget(None), start)
    clock.check()
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def _refit_hard(machine: SolvedProblem, rest: Ints, settings: Settings) -> Widest | None:
    features = machine.problem.features.take(machine.problem.row[rest])
    every = np.arange(len(rest))
    rows: LinearRows | FeatureSpaceRows
    if isinstance(features, LinearFeatures):
        rows = LinearRows(features.X)
    else:
        K, eps = features.block(every, every), float(np.finfo(features.gram.prepared.dtype).eps)
        rows = FeatureSpaceRows(features, K, eps, features.kernel, K)
    end = clock.limit().end
    found = find_widest(
        rows,
        machine.signs[rest],
        machine.problem.intercept,
        tol=settings.tol,
        max_iter=settings.max_iter,
        max_time=None if np.isinf(end) else max(end - clock.now(), 0.0),
    )
    clock.check()
    if found.run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found if isinstance(found, Widest) else None
