"""Kernel machines written out plainly, and as quadratic programs solved by Clarabel.

All of them are, in dual variables β of which a row has one or two,

    max  tᵀβ − ½ βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = total within each group

and, in w = Σ aᵢφ(xᵢ) and the intercepts b of the groups,

    min  ½ aᵀKa + Σᵥ max(high·r, low·r, 0) + Σ total·b,    r = t − Ka − b.

Nothing here is the library's: kernels are computed from differences and products of rows, in more
digits than float64 has where the machine offers them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import clarabel  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import maxmargin as mm

Floats = npt.NDArray[np.float64]
Long = npt.NDArray[np.longdouble]
Ints = npt.NDArray[np.int64]
GramOf = Callable[[Long, Long], Long]

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "QuantileSVR")
CLASSIFIERS = ("SVC", "NuSVC")
REGRESSORS = ("SVR", "NuSVR", "QuantileSVR")


# ------------------------------------------------------------------- kernels


class Spec(NamedTuple):
    """A kernel as the library has it, and as its formula."""

    kernel: Any
    formula: GramOf

    def gram(self, X: Any, Z: Any = None) -> Long:
        """Return K by the formula."""
        left = np.asarray(X, dtype=np.longdouble)
        return self.formula(left, left if Z is None else np.asarray(Z, dtype=np.longdouble))


def rbf(gamma: float) -> Spec:
    """Return exp(−γ‖x − x′‖²)."""

    def formula(X: Long, Z: Long) -> Long:
        squares = (X[:, None, :] - Z[None, :, :]) ** 2
        return np.asarray(np.exp(-gamma * squares.sum(axis=2)))

    return Spec(mm.kernels.RBF(gamma), formula)


def laplacian(gamma: float) -> Spec:
    """Return exp(−γ‖x − x′‖₁)."""

    def formula(X: Long, Z: Long) -> Long:
        return np.asarray(np.exp(-gamma * np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2)))

    return Spec(mm.kernels.Laplacian(gamma), formula)


def poly(degree: int, gamma: float = 1.0, coef0: float = 1.0) -> Spec:
    """Return (γx·x′ + coef0)^degree."""

    def formula(X: Long, Z: Long) -> Long:
        return np.asarray((gamma * (X @ Z.T) + coef0) ** degree)

    return Spec(mm.kernels.Polynomial(degree, gamma=gamma, coef0=coef0), formula)


def linear() -> Spec:
    """Return x·x′, in a form that is solved as a kernel machine."""
    return Spec(1.0 * mm.kernels.Linear(), lambda X, Z: X @ Z.T)


def plus(one: Spec, other: Spec, a: float = 1.0) -> Spec:
    """Return K + aK′."""
    return Spec(
        one.kernel + a * other.kernel, lambda X, Z: one.formula(X, Z) + a * other.formula(X, Z)
    )


# ------------------------------------------------------------------- machines


class Machine(NamedTuple):
    """What is minimised: one variable a row, or two, each with its target, box and group."""

    K: Long
    target: Long
    low: Long
    high: Long
    rows: Ints
    groups: Ints  # −1: no intercept
    totals: Long

    def scores(self, a: Any) -> Long:
        """Return Ka of each variable, given one coefficient a row."""
        return np.asarray((self.K @ np.asarray(a, np.longdouble))[self.rows])

    def objective(self, a: Any, b: Any) -> float:
        """Return the primal objective at coefficients a (one a row) and intercepts b."""
        a, b = np.asarray(a, np.longdouble), np.asarray(b, np.longdouble)
        r = self.target - self.scores(a) - np.append(b, 0)[self.groups]
        losses = np.maximum(np.maximum(self.high * r, self.low * r), 0)
        return float((a @ self.K @ a) / 2 + losses.sum() + self.totals @ b)

    def best_intercepts(self, a: Any) -> Floats:
        """Return the intercepts that are best for a: kinks of the losses, all of them tried."""
        r = self.target - self.scores(a)
        best = np.zeros(len(self.totals))
        for g, total in enumerate(self.totals):
            mine = self.groups == g
            kinks, low, high = r[mine], self.low[mine], self.high[mine]
            left = kinks[None, :] - kinks[:, None]  # a row for each choice of b
            sums = np.maximum(np.maximum(high * left, low * left), 0).sum(axis=1) + total * kinks
            best[g] = float(kinks[sums.argmin()])
        return best

    def lower_bound(self, beta: Any) -> float:
        """Return the dual objective at β (one a variable), made feasible in the better way."""
        beta = np.clip(np.asarray(beta, np.longdouble), self.low, self.high)
        return max(self._dual(self._feasible(beta, way)) for way in (_shifted, _scaled))

    def _feasible(self, beta: Long, way: Any) -> Long:
        out = beta.copy()
        for g, total in enumerate(self.totals):
            mine = np.flatnonzero(self.groups == g)
            out[mine] = way(beta[mine], self.low[mine], self.high[mine], total)
        return out

    def _dual(self, beta: Long) -> float:
        a = np.zeros(len(self.K), np.longdouble)
        np.add.at(a, self.rows, beta)
        return float(self.target @ beta - (a @ self.K @ a) / 2)

    def worth(self) -> float:
        """Return what the objective is measured in where it is 0: that of no weights, or of any."""
        nothing = np.zeros(len(self.K))
        weights = float(np.abs(self.totals).sum()) ** 2 * float(np.diag(self.K).max())
        return max(abs(self.objective(nothing, self.best_intercepts(nothing))), weights)

    def rounding(self, a: Any, b: Any) -> float:
        """Return by how much float64 may be off in the objective at a point."""
        a, b = np.abs(np.asarray(a, float)), np.abs(np.asarray(b, float))
        K = np.abs(self.K).astype(float)
        size = (K @ a)[self.rows] + np.abs(self.target).astype(float) + b.max(initial=0.0)
        cost = np.maximum(np.abs(self.low), np.abs(self.high)).astype(float)
        each = float(cost @ size + a @ K @ a + np.abs(self.totals).astype(float) @ b)
        return 4e-16 * (8 + len(self.K)) * each


def _shifted(beta: Long, low: Long, high: Long, total: Any) -> Long:
    """Return β with the right sum: moved towards one end of the box, by the same part each."""
    lacking = total - beta.sum()
    room = high - beta if lacking > 0 else beta - low
    if lacking == 0 or room.sum() == 0:
        return beta
    return np.asarray(beta + room * min(1, abs(lacking) / room.sum()) * np.sign(lacking))


def _scaled(beta: Long, low: Long, high: Long, total: Any) -> Long:
    """Return β with the right sum: those that make it too large, or too small, scaled down."""
    excess = beta.sum() - total
    heavier = beta * np.sign(excess) > 0
    size = np.abs(beta[heavier]).sum()
    if size <= abs(excess):
        return _shifted(beta, low, high, total)
    return np.where(heavier, beta * (1 - abs(excess) / max(size, np.longdouble(1e-300))), beta)


def _repeated(n: int) -> tuple[Ints, Ints]:
    return np.tile(np.arange(n), 2), np.repeat([0, 1], n)


def stated(
    name: str,
    K: Any,
    y: Any,
    weight: Any = None,
    *,
    C: float = 1.0,
    nu: float = 0.5,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    fit_intercept: bool = True,
) -> Machine:
    """Return what a machine minimises; y holds ±1 for classifiers, targets for regressors."""
    K = np.asarray(K, np.longdouble)
    n = len(K)
    cost = np.ones(n, np.longdouble) if weight is None else np.asarray(weight, np.longdouble)
    y = np.zeros(n, np.longdouble) if name == "OneClassSVM" else np.asarray(y, np.longdouble)
    halves = np.array([1, -1], np.longdouble) * nu * cost.sum() / 2
    none, each = np.zeros(n, np.longdouble), np.arange(n)
    free = 0 if fit_intercept else -1
    zero = np.zeros(int(fit_intercept), np.longdouble)
    match name:
        case "SVC":
            low, high = np.minimum(0, y * C * cost), np.maximum(0, y * C * cost)
            return Machine(K, y, low, high, each, np.full(n, free), zero)
        case "NuSVC":
            low, high = np.minimum(0, y * cost), np.maximum(0, y * cost)
            groups = np.where(y > 0, 0, 1)
            return Machine(K, none, low, high, each, groups, halves)
        case "OneClassSVM":
            return Machine(K, none, none, cost, each, np.zeros(n, np.int64), 2 * halves[:1])
    rows, sides = _repeated(n)
    low, high = np.append(none, -C * cost), np.append(C * cost, none)
    if name == "NuSVR":
        return Machine(K, np.append(y, y), low, high, rows, sides, C * halves)
    if name == "QuantileSVR":
        above, below = np.longdouble(quantile), 1 - np.longdouble(quantile)
        low, high, epsilon = below * low, above * high, 0.0
    target = np.append(y - epsilon, y + epsilon)
    return Machine(K, target, low, high, rows, np.full(2 * n, free), zero)


# ------------------------------------------------------------------- models


class Claim(NamedTuple):
    """A fitted model as a point of its machine."""

    a: Floats  # coefficients, one a row
    b: Floats  # intercepts, one a group
    beta: Floats  # duals, one a variable


def claimed(model: Any, machine: Machine) -> Claim:
    """Return the point that a model of two classes, or of one function, stands for."""
    name, n = type(model).__name__, len(machine.K)
    a = np.zeros(n)
    a[model.support_] = model.dual_coef_[0]
    b = float(model.intercept_[0])
    intercepts = np.array([b])[: len(machine.totals)]
    if name == "NuSVC":  # it is divided by ρ, unless that is 0
        rho = float(model._scales[0])
        a, intercepts = (rho or 1.0) * a, rho * np.array([b - 1, b + 1])
        if rho == 0:
            intercepts = machine.best_intercepts(a)
    if name == "NuSVR":
        intercepts = np.array([b + model.epsilon_, b - model.epsilon_])
    duals = np.zeros((len(model._duals), n))
    duals[:, model.support_] = model._duals
    if name in ("SVR", "QuantileSVR"):  # one dual a row, with the sign of its side
        duals = np.vstack([np.maximum(duals, 0.0), np.minimum(duals, 0.0)])
    return Claim(a, intercepts, duals.ravel())


class Gap(NamedTuple):
    """Both bounds recomputed, the relative gap, and how much of it float64 cannot settle."""

    primal: float
    dual: float
    relative: float
    unsure: float
    nothing: float  # an objective that is as good as 0

    def within(self, tol: float) -> bool:
        """Return whether the gap is at most tol, or both bounds are as good as 0."""
        size = max(abs(self.primal), abs(self.dual))
        return self.primal - self.dual <= max(tol * size, self.nothing)


def recomputed(model: Any, machine: Machine, *, own_intercept: bool = True) -> Gap:
    """Return the certificate of a model, by the formulas above."""
    a, b, beta = claimed(model, machine)
    if not own_intercept:
        b = machine.best_intercepts(a)
    primal, dual = machine.objective(a, b), machine.lower_bound(beta)
    size = max(abs(primal), abs(dual))
    unsure = machine.rounding(a, b) / size if size else 0.0
    relative = (primal - dual) / size if size else 0.0
    return Gap(primal, dual, relative, unsure, 1e-12 * machine.worth())


# ------------------------------------------------------------------- Clarabel


def optimum(machine: Machine) -> tuple[float, float]:
    """Return two bounds of the optimal objective, as Clarabel finds them.

    What it claims is not believed either: both bounds are recomputed at its points, those of the
    dual program and, where they are apart, those of the primal program in feature space.
    """
    below, above = _bounds(machine, _dual_program(machine))
    if above - below > 1e-10 * max(abs(above), abs(below)):
        least, most = _bounds(machine, _primal_program(machine))
        below, above = max(below, least), min(above, most)
    return below, above


def _bounds(machine: Machine, beta: Floats) -> tuple[float, float]:
    a = np.zeros(len(machine.K))
    np.add.at(a, machine.rows, beta)
    return machine.lower_bound(beta), machine.objective(a, machine.best_intercepts(a))


def _solved(P: Any, q: Any, A: Any, sides: Any, cones: Any) -> Any:
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.max_iter = 500
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-13
    parts = sp.csc_matrix(P), np.asarray(q, float), sp.csc_matrix(A), np.asarray(sides, float)
    return clarabel.DefaultSolver(*parts, cones, options).solve()


def _dual_program(machine: Machine) -> Floats:
    K, target, low, high, rows, groups, totals = machine
    # Each variable is counted in units of its box, else the program is badly scaled.
    unit = np.maximum(high, -low).astype(float)
    P = (unit[:, None] * K[np.ix_(rows, rows)] * unit).astype(float)
    v = len(rows)
    eye = sp.eye_array(v, format="csc")
    member = (groups == np.arange(len(totals))[:, None]) * unit
    scale = max(float(np.abs(P).max()), float(np.abs(target * unit).max()))
    found = _solved(
        np.triu(P / scale),
        -target * unit / scale,
        sp.vstack([eye, -eye, sp.csc_array(member)]),
        np.concatenate([high / unit, -low / unit, totals]),
        [clarabel.NonnegativeConeT(2 * v), clarabel.ZeroConeT(len(totals))],
    )
    return np.asarray(np.array(found.x) * unit)


def _primal_program(machine: Machine) -> Floats:
    """Solve for v (K = ΦΦᵀ), b and what each variable costs, in units of its box."""
    K, target, low, high, rows, groups, totals = machine
    values, vectors = np.linalg.eigh(K.astype(float))
    kept = values > 1e-15 * values.max()
    features = (vectors[:, kept] * np.sqrt(values[kept]))[rows]
    unit, sign = np.maximum(high, -low).astype(float), np.where(high > 0, 1.0, -1.0)
    v, r, g = len(rows), features.shape[1], len(totals)
    member = (groups[:, None] == np.arange(g)).astype(float)
    # ξ ≥ ±(t − Φv − b), ξ ≥ 0
    signed = -sign[:, None] * np.hstack([features, member])
    found = _solved(
        sp.diags_array(np.concatenate([np.ones(r), np.zeros(g + v)])),
        np.concatenate([np.zeros(r), totals, unit]),
        sp.block_array([[signed, -sp.eye_array(v)], [None, -sp.eye_array(v)]]),
        np.concatenate([-sign * target, np.zeros(v)]),
        [clarabel.NonnegativeConeT(2 * v)],
    )
    return np.asarray(sign * np.array(found.z)[:v])
