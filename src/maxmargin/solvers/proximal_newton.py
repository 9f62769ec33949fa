"""Newton's method by coordinate descent on working sets, for ℓ1 and elastic-net penalties.

    min_{w,b}  ratio·‖w‖₁ + (1 − ratio)/2·‖w‖² + Σ ℓᵢ(w·xᵢ + b),    0 < ratio ≤ 1, ℓᵢ smooth

    max_β  Σ tβ − ε|β| − ½ quadratic β² − Σⱼ max(|vⱼ| − ratio, 0)²/(2(1 − ratio)),    v = Xᵀβ

(for ratio = 1 the last sum is the constraint |vⱼ| ≤ ratio), and Σβ = 0 if the intercept is free.
Of all columns only those whose weight is not 0, and as many of those that violate optimality most,
enter a quadratic model of the losses (the rows inside the margin count, the others do not); its
minimiser, found by coordinate descent, gives the direction of a line search. Free intercepts are
eliminated exactly. Johnson & Guestrin (2015), "Blitz"; Massias et al. (2018), "Celer"; Yuan et al.
(2012), "An improved GLMNET", for the quadratic model.

Unless rows are many, few of them decide, and Newton's method would long guess which. The losses are
then smoothed around anchors a: − ½ smoothing (β − a)² is added to each, which only changes target
and shift. The duals reached become the next anchor and smoothing shrinks: the method of
multipliers, so that the gap closes before smoothing is gone. Rockafellar (1976).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.solvers.conjugate_gradients import solve_by_products
from maxmargin.threads import one_blas_thread

# ------------------------------------------------------------------- columns
#
# The matrix of a linear machine as solvers by columns see it, dense or sparse.
#
# A penalized intercept is one more column, of ones; a free one lets dense rows be taken from their
# mean. Dense rows are never copied for that, sparse ones are kept by rows and by columns.


_BLOCK = 1 << 20  # numbers copied at a time


class Design:
    """A matrix X (its rows taken from ``centre``) and the sums a solver by columns asks for."""

    def __init__(self, X: Any, centre: Floats) -> None:
        self.centre = centre
        self.shape: tuple[int, int] = X.shape
        self._rows = loops.rows.rows(X)

    def scores(self, w: Floats) -> Floats:
        """Return Xw."""
        out = np.empty(self.shape[0])
        loops.columns.scores(self._rows, self.centre, w, out)
        return out

    def gradients(self, beta: Floats) -> Floats:
        """Return Xᵀβ."""
        out = np.zeros(self.shape[1])
        loops.columns.gradients(self._rows, self.centre, beta, out)
        return out

    @abstractmethod
    def change(self, picked: Ints, steps: Floats) -> Floats:
        """Return Xw for w = steps in the picked columns and 0 elsewhere."""

    @abstractmethod
    def masses(self, weight: Floats) -> Floats:
        """Return Σᵢ weightᵢ xᵢⱼ² for each column."""

    @abstractmethod
    def entries(self, width: int) -> float:
        """Return about how many entries of a row are in so many columns."""

    @abstractmethod
    def add_products(self, gram: Floats, picked: Ints, rows: Ints, change: Floats) -> None:
        """Add Σ changeᵢ xᵢxᵢᵀ over some rows, in the picked columns, to gram."""

    @abstractmethod
    def restricted(self, picked: Ints, rows: Ints, scale: Floats) -> Any:
        """Return the picked columns, of some rows (renumbered) times their scale."""


class _Dense(Design):
    def change(self, picked: Ints, steps: Floats) -> Floats:
        w = np.zeros(self.shape[1])
        w[picked] = steps
        return self.scores(w)

    def masses(self, weight: Floats) -> Floats:
        out = np.zeros(self.shape[1])
        loops.columns.dense_masses(self._rows.values, self.centre, weight, out)
        return out

    def entries(self, width: int) -> float:
        return float(width)

    def add_products(self, gram: Floats, picked: Ints, rows: Ints, change: Floats) -> None:
        step = max(1, _BLOCK // self.shape[1])
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            block = self._block(some, picked)
            gram += block.T @ (block * change[some, np.newaxis])

    def restricted(self, picked: Ints, rows: Ints, scale: Floats) -> Any:
        A = sp.csc_array(self._block(rows, picked) * scale[rows, np.newaxis])
        return _columns(A, np.float64)

    def _block(self, rows: Ints, picked: Ints) -> Floats:
        block = self._rows.values[rows]
        if len(picked) < self.shape[1]:
            block = block[:, picked]
        return np.asarray(block - self.centre[picked])


class _Sparse(Design):
    def __init__(self, X: Any, centre: Floats) -> None:
        super().__init__(X, centre)
        self._columns = _columns(X.tocsc(), X.dtype)
        self._entries_per_row = X.nnz / max(1, X.shape[0])

    def change(self, picked: Ints, steps: Floats) -> Floats:
        out = np.zeros(self.shape[0])
        loops.columns.add_columns(self._columns, picked, steps, out)
        return out

    def masses(self, weight: Floats) -> Floats:
        out = np.empty(self.shape[1])
        loops.columns.sparse_masses(self._columns, weight, out)
        return out

    def entries(self, width: int) -> float:
        return float(min(width, self._entries_per_row))

    def add_products(self, gram: Floats, picked: Ints, rows: Ints, change: Floats) -> None:
        place = _places(picked, self.shape[1])
        loops.columns.add_products(self._rows, rows, change, place, gram)

    def restricted(self, picked: Ints, rows: Ints, scale: Floats) -> Any:
        place = _places(rows, self.shape[0])
        indptr = np.empty(len(picked) + 1, np.int64)
        loops.columns.count_entries(self._columns, picked, place, indptr)
        data, indices = np.empty(indptr[-1]), np.empty(indptr[-1], np.int32)
        loops.columns.fill_entries(self._columns, picked, place, scale, data, indices)
        return loops.columns.SparseColumns(data, indices, indptr)


def design_of(problem: LinearProblem) -> Design:
    """Return the matrix of a problem, with a column of ones if the intercept is penalized."""
    X = problem.features.X
    penalized = problem.intercept is Intercept.PENALIZED
    if sp.issparse(X):
        if penalized:
            X = _with_ones(X)
        return _Sparse(X, np.zeros(X.shape[1]))
    if penalized:
        X = np.hstack([X, np.ones((X.shape[0], 1), X.dtype)])
    return _Dense(X, _mean(X) if problem.intercept is Intercept.FREE else np.zeros(X.shape[1]))


def _with_ones(X: Any) -> Any:
    """Return a sparse matrix with one more column, of ones."""
    n_rows, width = X.shape
    data = np.insert(X.data, X.indptr[1:], 1.0)
    indices = np.insert(X.indices, X.indptr[1:], width)
    indptr = X.indptr + np.arange(n_rows + 1, dtype=X.indptr.dtype)
    return sp.csr_array((data, indices, indptr), shape=(n_rows, width + 1))


def _mean(X: Any) -> Floats:
    """Return the mean of each column, and of a constant one exactly its value."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64))
    first = np.asarray(X[0], dtype=np.float64)
    return np.where(X.max(axis=0) == X.min(axis=0), first, mean)


def _columns(X: Any, dtype: Any) -> Any:
    return loops.columns.SparseColumns(
        X.data.astype(dtype, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.indptr.astype(np.int64, copy=False),
    )


def _places(members: Ints, size: int) -> npt.NDArray[np.int32]:
    """Return for each of so many numbers its place among the members, −1 if it is none."""
    place = np.full(size, -1, np.int32)
    place[members] = np.arange(len(members))
    return place


# ------------------------------------------------------------------- sparse duals
#
# Penalties column by column, and the best dual bound that some duals can give.
#
# A penalized intercept is the weight of a column of ones, and has its own strengths. The dual is
#
#     max_β  Σ tβ − ε|β| − ½ quadratic β² − Σⱼ max(|vⱼ| − l1ⱼ, 0)²/2l2ⱼ,    v = Xᵀβ
#
# (where l2ⱼ = 0: subject to |vⱼ| ≤ l1ⱼ), and Σβ = 0 if the intercept is free.


def penalties(problem: LinearProblem, width: int) -> tuple[Floats, Floats]:
    """Return the ℓ1 and ℓ2 strength of each column; b is lift times the weight penalized."""
    scale = np.ones(width)
    if problem.intercept is Intercept.PENALIZED:
        scale[-1] = 1 / problem.features.constant
    return problem.l1_ratio * scale, (1 - problem.l1_ratio) * scale**2


def balanced(beta: Floats, intercept: Intercept) -> Floats:
    """Return β with the heavier side scaled down so that Σβ = 0, if the intercept is free."""
    if intercept is not Intercept.FREE:
        return beta
    gain, loss = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
    if gain > loss:
        return np.where(beta > 0, beta * (loss / gain), beta)
    return np.where(beta < 0, beta * (gain / loss), beta) if loss > gain else beta


def best_scale(terms: Loss, beta: Floats, v: Floats, l1: Floats, l2: Floats) -> tuple[float, float]:
    """Return the t ≥ 0 for which tβ has the highest dual objective, and that.

    The objective is t·gain − ½t²·curve − Σ max(t|v| − l1, 0)²/2l2: Newton's method comes down to
    the maximiser from above in finitely many steps. For l2 = 0 the sum is the limit t|v| ≤ l1.
    """
    gain = losses.dual_value(terms._replace(quadratic=np.zeros(len(beta))), beta)
    curve = float(terms.quadratic @ beta**2)
    if gain <= 0 or curve <= 0:
        return 0.0, 0.0
    t = gain / curve
    if np.isfinite(terms.high - terms.low).any():
        t = min(t, 1.0)
    size = np.abs(v)
    hard = l2 == 0
    t = min(t, float(np.min(l1[hard] / np.maximum(size[hard], 1e-300), initial=np.inf)))
    size, l1, l2 = size[~hard], l1[~hard], l2[~hard]
    for _ in range(60):
        over = t * size > l1
        down = float(size[over] @ ((t * size - l1) / l2)[over])
        slope = gain - t * curve - down
        if slope >= 0:
            break
        t += slope / (curve + float((size[over] ** 2 / l2[over]).sum()))
    lost = np.maximum(t * size - l1, 0.0)
    return t, t * gain - 0.5 * t * t * curve - 0.5 * float((lost**2 / l2).sum())


# ------------------------------------------------------------------- quadratic models
#
# A machine near a point as a quadratic with an ℓ1 penalty, minimised by coordinate descent.
#
#     min_x  slope·(x − w) + ½(x − w)ᵀH(x − w)  +  Σⱼ l1ⱼ|xⱼ| + ½ l2ⱼ xⱼ²
#
# H = XᵀDX + damping over the working set of columns, D being the curvature of each row's loss; if
# the intercept is free it moves along, which takes μμᵀ/ΣD away (μ = XᵀD1). ``gram_models`` has H
# as a matrix, ``column_models`` the columns of √D X: which is cheaper depends on their number.


_WORK = 2.0**24  # multiplications between two looks at the clock
_SWEEPS = 20  # before the coordinates that are not 0 are solved for together


@dataclass(frozen=True)
class Local:
    """The working set where the model is made: weights, slope of the losses, and penalties."""

    w: Floats
    slope: Floats
    damping: Floats
    l1: Floats
    l2: Floats


class Model(Protocol):
    """A quadratic model with its current minimiser."""

    x: Floats

    @property
    def offset(self) -> float:
        """By how much the intercept moves along."""
        ...

    def sweep(self, order: Ints, sweeps: int, aim: float) -> tuple[float, int]:
        """Visit coordinates until none moves by more than aim; return the last move, and sweeps."""
        ...

    def sweep_work(self, count: int) -> float:
        """Return about how many multiplications it takes to visit so many coordinates."""
        ...

    def polish(self) -> None:
        """Minimise over the coordinates that are not 0, as far as that is worth it."""
        ...


def minimised(model: Model, accuracy: float, patience: int) -> Iterator[None]:
    """Improve a model's minimiser until moves are a small part of the first, pausing in between."""
    everything = np.arange(len(model.x))
    first, _ = model.sweep(everything, 1, 0.0)
    largest = first
    for _ in range(patience):
        if largest <= accuracy * first:
            return
        live = np.flatnonzero(model.x)
        if len(live):
            sweeps = 1 + min(_SWEEPS, int(_WORK / model.sweep_work(len(live))))
            aim = 0.3 * accuracy * first
            if model.sweep(live, sweeps, aim)[0] > aim:
                model.polish()
        largest, _ = model.sweep(everything, 1, 0.0)
        yield


def landing(
    x: Floats, step: Floats, slope: Floats, product: Callable[[Floats], Floats]
) -> tuple[Floats, bool]:
    """Return where a step from x leads if no sign may change, and whether any would.

    Either all that would change sign stop at 0, or everything stops where the first does: the
    better by slope·m + ½ m·product(m).
    """
    flips = x * (x + step) < 0
    if not flips.any():
        return x + step, False
    reach = -x[flips] / step[flips]
    first = x + float(reach.min()) * step
    first[np.flatnonzero(flips)[reach.argmin()]] = 0.0
    bold = np.where(flips, 0.0, x + step)

    def gain(to: Floats) -> float:
        moved = to - x
        return float(slope @ moved + 0.5 * moved @ product(moved))

    return min(first, bold, key=gain), True


# ------------------------------------------------------------------- column models
#
# Quadratic models whose Hessian is given by columns, too many for a matrix of products.


_SOLVES = 2  # sign changes followed before coordinates are visited again
_CG_STEPS = 30
_CG_ENOUGH = 1e-4  # of the residual


class ByColumns:
    """The model with H in columns."""

    def __init__(self, A: Any, root: Floats, free: bool, local: Local) -> None:
        width = len(local.w)
        self._A, self._local = A, local
        self._csc = sp.csc_array((A.data, A.indices, A.indptr), shape=(len(root), width))
        self._means, squares = np.empty(width), np.empty(width)
        loops.working_sets.column_sums(A, root, self._means, squares)
        self._total = float(root @ root) if free else 0.0
        if self._total == 0.0:
            self._means[:], self._total = 0.0, 1.0
        self._diagonal = squares - self._means**2 / self._total + local.damping
        self._z, self._offset = np.zeros(len(root)), np.zeros(1)
        self._moved = np.zeros(width)
        self.x = local.w.copy()

    @property
    def offset(self) -> float:
        """By how much the intercept moves along."""
        return float(self._offset[0])

    def sweep(self, order: Ints, sweeps: int, aim: float) -> tuple[float, int]:
        """Visit coordinates until none moves by more than aim; return the last move, and sweeps."""
        local = self._local
        found: tuple[float, int] = loops.working_sets.column_sweeps(
            self._A, self._means, self._total, local.slope, self._diagonal, local.damping,
            local.l1, local.l2, order, sweeps, aim, self.x, self._moved, self._z, self._offset,
        )  # fmt: skip
        return found

    def sweep_work(self, count: int) -> float:
        """Return about how many multiplications it takes to visit so many coordinates."""
        return 2.0 * len(self._A.data) * count / len(self.x) + count

    def polish(self) -> None:
        """Minimise over the coordinates that are not 0, by conjugate gradients."""
        for _ in range(_SOLVES):
            live = np.flatnonzero(self.x)
            if not len(live) or self._solve(live):
                return

    def _solve(self, live: Ints) -> bool:
        """Go towards the minimiser with the same signs; return whether no sign stood in the way."""
        local, x = self._local, self.x[live]
        A, means = self._csc[:, live], self._means[live]
        flat = local.damping[live] + local.l2[live]

        def product(moved: Floats) -> Floats:
            down = means * (float(means @ moved) / self._total)
            return np.asarray(A.T @ (A @ moved) + flat * moved - down)

        slope = local.slope[live] + A.T @ self._z + self.offset * means
        slope += local.damping[live] * self._moved[live]
        slope += local.l1[live] * np.sign(x) + local.l2[live] * x
        diagonal = self._diagonal[live] + local.l2[live]
        step = solve_by_products(product, -slope, diagonal, steps=_CG_STEPS, enough=_CG_ENOUGH)
        to, stopped = landing(x, step, slope, product)
        moved = to - x
        self._z += A @ moved
        self._offset[0] -= float(means @ moved) / self._total
        self._moved[live] += moved
        self.x[live] = to
        return not stopped


# ------------------------------------------------------------------- gram models
#
# Quadratic models whose Hessian is a matrix, and the sums of products it is made of.


_RIDGE = 1e-13  # part of the diagonal added before factorising: columns may repeat each other
_GRAM_SOLVES = 8  # sign changes followed before coordinates are visited again
_PIECE = 2.0**26  # multiplications between two looks at the clock
_CANCELLED = 1e-8  # what is left of a sum after subtracting the rest is not to be relied on


class GramModel:
    """The model with H as a matrix."""

    def __init__(self, products: Floats, means: Floats, total: float, local: Local) -> None:
        self._local = local
        self._means = means / total if total > 0 else np.zeros(len(means))
        self._H = products - np.outer(self._means, means)
        self._H[np.diag_indices(len(means))] += local.damping
        self._gradient = local.slope.copy()
        self.x = local.w.copy()

    @property
    def offset(self) -> float:
        """By how much the intercept moves along."""
        return -float(self._means @ (self.x - self._local.w))

    def sweep(self, order: Ints, sweeps: int, aim: float) -> tuple[float, int]:
        """Visit coordinates until none moves by more than aim; return the last move, and sweeps."""
        local = self._local
        found: tuple[float, int] = loops.working_sets.gram_sweeps(
            self._H, local.l1, local.l2, order, sweeps, aim, self.x, self._gradient
        )
        return found

    def sweep_work(self, count: int) -> float:
        """Return about how many multiplications it takes to visit so many coordinates."""
        return float(count * len(self.x))

    def polish(self) -> None:
        """Minimise over the coordinates that are not 0, dropping those that would change sign."""
        for _ in range(_GRAM_SOLVES):
            live = np.flatnonzero(self.x)
            if not len(live) or self._solve(live):
                return

    def _solve(self, live: Ints) -> bool:
        """Go to the minimiser with the same signs, or as far as signs allow; return whether so."""
        local, x = self._local, self.x[live]
        l1, l2 = local.l1[live], local.l2[live]
        H = self._H.take(live, axis=0).take(live, axis=1)
        H[np.diag_indices(len(live))] += l2 + _RIDGE * np.abs(np.diag(H))
        scale = 1 / np.sqrt(np.maximum(np.diag(H), 1e-300))
        slope = self._gradient[live] + l1 * np.sign(x) + l2 * x
        try:
            factor = scipy.linalg.cho_factor(H * scale * scale[:, np.newaxis], overwrite_a=True)
        except np.linalg.LinAlgError:
            return True
        step = -scale * scipy.linalg.cho_solve(factor, scale * slope)
        to, stopped = landing(x, step, slope, lambda moved: np.asarray(H @ moved))
        self._gradient += (to - x) @ self._H[live]
        self.x[live] = to
        return not stopped


class GramProducts:
    """XᵀDX on a working set, following D by the rows where it changes."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._picked = np.empty(0, np.int64)
        self._curvature = np.zeros(design.shape[0])
        self._peak = np.empty(0)
        self.gram = np.empty((0, 0))

    def follow(self, picked: Ints, curvature: Floats) -> Iterator[None]:
        """Bring the products up to date, pausing in between."""
        changed = np.count_nonzero(curvature != self._curvature)
        if changed > np.count_nonzero(curvature) or not np.array_equal(picked, self._picked):
            self._forget(picked)
        yield from self._add(curvature)
        if (np.diag(self.gram) < _CANCELLED * self._peak).any():
            self._forget(picked)
            yield from self._add(curvature)

    def _forget(self, picked: Ints) -> None:
        self._picked = picked
        self._curvature = np.zeros(len(self._curvature))
        self._peak = np.zeros(len(picked))
        self.gram = np.zeros((len(picked), len(picked)))

    def _add(self, curvature: Floats) -> Iterator[None]:
        change = curvature - self._curvature
        rows = np.flatnonzero(change)
        self._curvature = curvature.copy()
        step = 1 + int(_PIECE / max(1.0, self._design.entries(len(self._picked))) ** 2)
        for start in range(0, len(rows), step):
            if start:
                yield
            self._design.add_products(self.gram, self._picked, rows[start : start + step], change)
        self._peak = np.maximum(self._peak, np.diag(self.gram))


# ------------------------------------------------------------------- the method


_ALL = 200  # so many columns are not worth choosing from
_WIDEST_GRAM = 1500
_REFRESH = 16  # steps after which scores are computed afresh: updates accumulate rounding
_DAMPING = 1e-6  # first part of a column's full curvature added to the model
_LEAST = 1e-14
_MANY_ROWS = 10  # times as many rows as columns: no smoothing
_SMOOTH = 0.1  # first smoothing, as part of what would keep all weights at 0
_FAST, _SLOW = 0.03, 0.2  # smoothing after a stage of one or two steps, and after a longer one
_PATIENCE = 10  # rounds of descent on one model
_UNTOLD = 10  # steps on smoothed losses that may count as one iteration
_GIVE_UP = 8  # steps without any gain


@dataclass(frozen=True)
class WorkingSets:
    """Settings of the method.

    Parameters
    ----------
    growth : float, default 1.0
        How many columns join the working set, for each one whose weight is not 0.
    least : int, default 64
        How many join at least.
    accuracy : float, default 0.1
        At what part of its first size a move of the model's minimiser is small enough.
    """

    growth: float = 1.0
    least: int = 64
    accuracy: float = 0.1

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each Newton step, and unfinished ones on the way."""
        with one_blas_thread():
            run = _Run(self, problem, start)
        yield run.iterate()
        while run.goes_on():
            for _ in _with_one_thread(run.advance()):
                yield run.iterate(finished=False)
            yield run.iterate(run.tells())


def _with_one_thread(pieces: Iterator[None]) -> Iterator[None]:
    """Yield as the pieces do, BLAS kept to one thread while they work: vectors are short."""
    while True:
        with one_blas_thread():
            try:
                next(pieces)
            except StopIteration:
                return
        yield


class _Run:
    """Where the method stands, and the best bounds so far."""

    def __init__(self, settings: WorkingSets, problem: LinearProblem, start: Point) -> None:
        self.settings = settings
        self.loss = problem.loss
        self.intercept = problem.intercept
        self.design = design_of(problem)
        self.l1, self.l2 = penalties(problem, self.design.shape[1])
        self.masses = self.design.masses(1 / problem.loss.quadratic)
        self.w = _start_weights(problem, start, self.masses > 0)
        free = problem.intercept is Intercept.FREE
        self.b = start.b + float(self.design.centre @ self.w) if free else 0.0
        self.beta, self.curvature = np.empty((2, self.design.shape[0]))
        self.primal, self.dual = np.inf, -np.inf
        self.stage_primal, self.stage_gap, self.least_gap = np.inf, np.inf, np.inf
        self.damping, self.steps, self.idle = _DAMPING, 0, 0
        self.untold, self.told_gap = 0, np.inf
        self.picked = np.empty(0, np.int64)
        self.products = GramProducts(self.design)
        self.scores = self.design.scores(self.w)
        self.stage, self.smoothing, self.stage_steps = self.loss, 0.0, 0
        if start.beta is not None:
            beta = balanced(np.clip(start.beta, self.loss.low, self.loss.high), self.intercept)
            self._offer(beta, self.design.gradients(beta))
        self.look()
        if (smoothing := self._smoothing_at_first()) > 0:
            self._begin_stage(np.zeros(len(self.beta)), smoothing)

    def _smoothing_at_first(self) -> float:
        """Return how much to smooth where all weights are 0: just enough that few would leave it.

        With many more rows than columns the rows inside the margin are soon found without.
        """
        n_rows, width = self.design.shape
        if width * _MANY_ROWS < n_rows or self.w.any():
            return 0.0
        residuals = self.design.gradients(self.beta * self.loss.quadratic)
        smoothing = _SMOOTH * float(np.max(np.abs(residuals) / self.l1, initial=0.0))
        return smoothing if smoothing > 10 * self.loss.quadratic.min() else 0.0

    def _begin_stage(self, anchor: Floats, smoothing: float) -> None:
        """Smooth the losses around an anchor, and see where that leaves us."""
        self.smoothing, self.stage_steps, self.least_gap = smoothing, 0, np.inf
        self.stage = self.loss._replace(
            target=self.loss.target + smoothing * anchor, quadratic=self.loss.quadratic + smoothing
        )
        self.masses = self.design.masses(1 / self.stage.quadratic)
        self.look()

    def _stage_done(self) -> bool:
        """Return whether smoothing, rather than what is left to do in this stage, makes the gap."""
        enough = min(0.1 * (self.primal - self.dual), 0.3 * self.stage_primal)
        return self.smoothing > 0 and (self.stage_gap < enough or self.idle >= _GIVE_UP // 2)

    def look(self) -> None:
        """Evaluate losses, duals and slopes where we are, and keep what is best."""
        before = self.primal, self.dual, self.least_gap
        norm = float(self.l1 @ np.abs(self.w) + 0.5 * self.l2 @ self.w**2)
        if self.smoothing:
            b, loss = self._losses(self.loss)
            self._keep(norm + loss, b)
        self.b, loss = self._losses(self.stage)
        if not self.smoothing:
            self._keep(norm + loss, self.b)
        self.beta = balanced(self.beta, self.intercept)
        self.v = self.design.gradients(self.beta)
        self._offer(self.beta, self.v)
        if self.smoothing:
            self.stage_primal = norm + loss
            bound = best_scale(self.stage, self.beta, self.v, self.l1, self.l2)[1]
            self.stage_gap = self.stage_primal - bound
            self.least_gap = min(self.least_gap, self.stage_gap)
        after = self.primal, self.dual, self.least_gap
        self.idle = self.idle + 1 if before == after else 0

    def _losses(self, terms: Loss) -> tuple[float, float]:
        """Return the best intercept and the sum of losses, and fill β and curvature."""
        b = self.b
        if self.intercept is Intercept.FREE:
            b = loops.working_sets.best_offset(terms, self.scores, b)
        return b, loops.working_sets.losses_at(terms, self.scores, b, self.beta, self.curvature)

    def _keep(self, primal: float, b: float) -> None:
        if primal < self.primal:
            w = self.w.copy()
            if self.intercept is Intercept.PENALIZED:
                w, b = w[:-1], float(w[-1])
            elif self.intercept is Intercept.FREE:
                b -= float(self.design.centre @ w)
            self.primal, self.best_w, self.best_b = primal, w, b

    def _offer(self, beta: Floats, v: Floats) -> None:
        scale, dual = best_scale(self.loss, beta, v, self.l1, self.l2)
        if dual > self.dual:
            self.dual, self.best_beta = dual, scale * beta

    def goes_on(self) -> bool:
        """Return whether there is anything to gain."""
        return self.idle < _GIVE_UP and self.primal > self.dual

    def tells(self) -> bool:
        """Return whether the gap says how things go: while losses are smoothed it may not."""
        gap = self.primal - self.dual
        self.untold += 1
        smoothed = self.smoothing > 0 and self.goes_on()
        if smoothed and self.untold < _UNTOLD and gap > 0.5 * self.told_gap:
            return False
        self.untold, self.told_gap = 0, gap
        return True

    def iterate(self, finished: bool = True) -> Iterate:
        """Return the best so far."""
        settled = finished and not self.goes_on()
        return Iterate(
            self.primal, self.dual, self.best_w, self.best_b, self.best_beta, finished, settled
        )

    def advance(self) -> Iterator[None]:
        """Make a Newton step, pausing in between."""
        if self._stage_done():
            smoothing = self.smoothing * (_FAST if self.stage_steps <= 2 else _SLOW)
            negligible = smoothing < 0.1 * self.loss.quadratic.min()
            self._begin_stage(self.beta, 0.0 if negligible else smoothing)
        self.stage_steps += 1
        self.picked = self._working_set()
        local = Local(
            self.w[self.picked],
            -self.v[self.picked],
            self.damping * self.masses[self.picked],
            self.l1[self.picked],
            self.l2[self.picked],
        )
        rows = np.flatnonzero(self.curvature)
        if self._prefers_gram(rows):
            yield from self.products.follow(self.picked, self.curvature)
            model = self._gram(local)
        else:
            model = self._by_columns(local, rows)
        yield from minimised(model, self.settings.accuracy, _PATIENCE)
        self._move(local, model.x - local.w, model.offset)

    def _gram(self, local: Local) -> Model:
        if self.intercept is not Intercept.FREE:
            return GramModel(self.products.gram, np.zeros(len(local.w)), 0.0, local)
        means = self.design.gradients(self.curvature)[self.picked]
        return GramModel(self.products.gram, means, float(self.curvature.sum()), local)

    def _by_columns(self, local: Local, rows: Ints) -> Model:
        root = np.sqrt(self.curvature)
        A = self.design.restricted(self.picked, rows, root)
        return ByColumns(A, root[rows], self.intercept is Intercept.FREE, local)

    def _prefers_gram(self, rows: Ints) -> bool:
        width = len(self.picked)
        return width <= _WIDEST_GRAM and width <= len(rows) * self.design.entries(width) / 4

    def _working_set(self) -> Ints:
        """Return the columns whose weight is not 0, and those that violate optimality most."""
        usable = self.masses > 0
        if np.count_nonzero(usable) <= _ALL:
            return np.flatnonzero(usable)
        live = self.w != 0
        wanted = int(max(self.settings.least, self.settings.growth * np.count_nonzero(live)))
        outside = np.flatnonzero(usable & ~live & (np.abs(self.v) > self.l1))
        if len(outside) > wanted:
            excess = (np.abs(self.v[outside]) - self.l1[outside]) ** 2 / self.masses[outside]
            outside = outside[np.argpartition(excess, -wanted)[-wanted:]]
        chosen = live.copy()
        chosen[outside] = True
        # A set that still has all of these, and not much else, keeps its products of columns.
        size = np.count_nonzero(chosen)
        small = len(self.picked) <= 2 * size + self.settings.least
        if small and np.count_nonzero(chosen[self.picked]) == size:
            return self.picked
        return np.flatnonzero(chosen)

    def _move(self, local: Local, moved: Floats, offset: float) -> None:
        """Go along a direction to where the objective is least."""
        change = self.design.change(self.picked, moved) + offset
        t = self._step_length(local, moved, change)
        if t == 1.0:
            self.damping = max(0.1 * self.damping, _LEAST)
        elif t < 0.3:
            self.damping = min(max(10 * self.damping, 1e-4), 1.0)
        self.steps += 1
        self.w[self.picked] = local.w + (moved if t == 1.0 else t * moved)
        self.b += t * offset
        if self.steps % _REFRESH:
            self.scores += t * (change - offset)
        else:
            self.scores = self.design.scores(self.w)
        self.look()

    def _step_length(self, local: Local, moved: Floats, change: Floats) -> float:
        """Return a t ≤ 1 near which the objective stops falling along the direction."""

        def slope(t: float) -> float:
            at = local.w + t * moved
            sign = np.where(at == 0, np.sign(moved if t == 0 else -moved), np.sign(at))
            loss: float = loops.working_sets.slope_along(self.stage, self.scores, self.b, change, t)
            return loss + float((local.l1 * sign + local.l2 * at) @ moved)

        first, last = slope(0.0), slope(1.0)
        if first >= 0:
            return 0.0
        if last <= 0 or (last <= -0.1 * first and slope(0.5) <= 0.2 * first):
            return 1.0
        left, right, at_left, at_right = 0.0, 1.0, first, last
        for _ in range(40):
            middle = left + (right - left) * min(max(at_left / (at_left - at_right), 0.1), 0.9)
            value = slope(middle)
            if value > 0:
                right, at_right = middle, value
            else:
                left, at_left = middle, value
                if value >= 0.1 * first:
                    break
        return left


def _start_weights(problem: LinearProblem, start: Point, usable: npt.NDArray[np.bool_]) -> Floats:
    w = np.zeros(len(usable))
    if start.w is not None:
        w[: len(start.w)] = start.w
    if problem.intercept is Intercept.PENALIZED:
        w[-1] = start.b
    return np.where(usable, w, 0.0)
