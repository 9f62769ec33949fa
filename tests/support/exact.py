"""An oracle in exact arithmetic: what a fitted model claims about itself, recomputed and judged.

It reads the training data as they were given and public attributes only, and knows the objectives
as their documentation states them. A number is an integer times 2^-BITS, so that sums are exact and
products are cut off after some 230 decimals; exponentials come from mpmath with 90 digits.

    for violation in violations(model, X, y, sample_weight):
        print(violation)
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise
from math import isqrt
from typing import Any, NamedTuple

import mpmath
import numpy as np
import scipy.sparse as sp

from maxmargin.problems.problem import Status

BITS = 768
ONE = 1 << BITS

Exact = Any  # an integer that stands for itself times 2^-BITS, or an object array of such

DIGITS = mpmath.MPContext()
DIGITS.dps = 90

# ------------------------------------------------------------------- numbers


def exact(values: Any) -> Exact:
    """Return floats or integers as they are, to the last bit."""
    given = np.asarray(values)
    numbers = np.array([_exact(value) for value in given.ravel().tolist()], dtype=object)
    return numbers[0] if given.ndim == 0 else numbers.reshape(given.shape)


def _exact(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return (numerator << BITS) // denominator


def times(a: Exact, b: Exact) -> Exact:
    """Return the product, number by number."""
    return (a * b) >> BITS


def dot(a: Exact, b: Exact) -> Exact:
    """Return the product of matrices or vectors."""
    return (a @ b) >> BITS


def over(a: Exact, b: Exact) -> Exact:
    """Return the quotient."""
    return (a << BITS) // b


def positive(a: Exact) -> Exact:
    """Return max(0, a)."""
    return np.maximum(a, 0)


def rounded(a: int) -> float:
    """Return the nearest float."""
    return a / ONE if abs(a) < ONE << 1000 else float("inf")


# ------------------------------------------------------------------- kernels


def gram(kernel: Any, X: Any) -> Exact:
    """Return the Gram matrix of rows, which for a precomputed kernel is what is given as rows."""
    name = type(kernel).__name__
    if name == "Precomputed":
        return exact(X)
    if name == "FromFunction":
        return exact(kernel.function(X, X))
    return _gram(kernel, exact(_dense(X)))


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def _gram(kernel: Any, X: Exact) -> Exact:
    name = type(kernel).__name__
    if name == "Columns":
        return _gram(kernel.kernel, X[:, kernel.columns])
    if name in ("Sum", "Product"):
        members = kernel.terms if name == "Sum" else kernel.factors
        total, *others = (_gram(member, X) for member in members)
        for other in others:
            total = total + other if name == "Sum" else times(total, other)
        return total
    if name == "Scaled":
        return times(exact(float(kernel.factor)), _gram(kernel.kernel, X))
    if name == "Power":
        return _power(_gram(kernel.kernel, X), kernel.exponent)
    return _KERNELS[name](kernel, X)


def _power(K: Exact, exponent: int) -> Exact:
    out = np.full(K.shape, ONE, dtype=object)
    for _ in range(exponent):
        out = times(out, K)
    return out


def _polynomial(kernel: Any, X: Exact) -> Exact:
    inner = times(exact(float(kernel.gamma)), dot(X, X.T)) + exact(float(kernel.coef0))
    return _power(inner, kernel.degree)


def _cosine(_kernel: Any, X: Exact) -> Exact:
    products = dot(X, X.T)
    lengths = [isqrt(square << BITS) or ONE for square in products.diagonal()]
    return over(products, times(np.array(lengths)[:, None], np.array(lengths)))


def _by_distance(distance: Callable[[Exact, Exact], Exact]) -> Callable[[Any, Exact], Exact]:
    def values(kernel: Any, X: Exact) -> Exact:
        exponents = times(exact(float(kernel.gamma)), distance(X[:, None], X).sum(axis=2))
        out = np.full(exponents.shape, ONE, dtype=object)
        for i, j in combinations(range(len(X)), 2):
            out[i, j] = out[j, i] = _exponential(-exponents[i, j])
        return out

    return values


def _exponential(exponent: int) -> int:
    value = DIGITS.exp(DIGITS.ldexp(DIGITS.mpf(exponent), -BITS))
    return int(DIGITS.ldexp(value, BITS))


def _chi(x: Exact, z: Exact) -> Exact:
    return over(times(x - z, x - z), np.maximum(x + z, 1))  # 0/0 is 0


_KERNELS: dict[str, Callable[[Any, Exact], Exact]] = {
    "Linear": lambda _, X: dot(X, X.T),
    "Polynomial": _polynomial,
    "Cosine": _cosine,
    "Intersection": lambda _, X: np.minimum(X[:, None], X).sum(axis=2),
    "RBF": _by_distance(lambda x, z: times(x - z, x - z)),
    "Laplacian": _by_distance(lambda x, z: abs(x - z)),
    "ChiSquared": _by_distance(_chi),
    "Constant": lambda kernel, X: np.full((len(X), len(X)), exact(float(kernel.value))),
}


class LinearSpace:
    """Rows as they are, and weights w."""

    def __init__(self, X: Exact, w: Exact) -> None:
        self.X, self.w = X, w
        self.scores, self.square = dot(X, w), dot(w, w)

    def combined(self, beta: Exact) -> Exact:
        """Return Σβx."""
        return dot(self.X.T, beta)

    def square_of(self, beta: Exact) -> int:
        """Return ‖Σβx‖²."""
        v = self.combined(beta)
        return int(dot(v, v))


class KernelSpace:
    """Rows in the feature space of a kernel, and weights w = Σaφ(x)."""

    def __init__(self, K: Exact, a: Exact) -> None:
        self.K = K
        self.scores = dot(K, a)
        self.square = dot(a, self.scores)

    def square_of(self, beta: Exact) -> int:
        """Return ‖Σβφ(x)‖²."""
        return int(dot(beta, dot(self.K, beta)))


Space = Any  # LinearSpace or KernelSpace

# ------------------------------------------------------------------- objectives


@dataclass
class Part:
    """One of the problems of a machine, at the point that the model stores.

    Attributes
    ----------
    primal : int or None
        The objective at (w, b); None is infinite.
    dual : int
        The dual objective at the dual variables, made feasible.
    least : callable or None
        Returns the objective with the best of all intercepts.
    convexity : int
        μ of the penalty's term ½μ‖w‖².
    unused : int or None
        Σ(C − α)ξ.
    faults : list of Violation
        What is wrong with the dual variables themselves.
    """

    primal: int | None
    dual: int
    least: Callable[[], int | None] | None = None
    convexity: int = ONE
    unused: int | None = None
    faults: list["Violation"] = field(default_factory=list)


class Violation(NamedTuple):
    """A claim that does not hold: which one, and by how much."""

    claim: str
    detail: str

    def __str__(self) -> str:
        return f"{self.claim}: {self.detail}"


class Form(NamedTuple):
    """Which of the objectives penalty + Σ C·loss it is."""

    regression: bool = False
    squared: bool = False
    epsilon: int = 0
    intercept: str = "free"
    lift: int = ONE
    l1: int = 0

    def penalty(self, w: Exact) -> int:
        """Return l1·‖w‖₁ + (1 − l1)·½‖w‖²."""
        return int(times(self.l1, abs(w).sum()) + times(ONE - self.l1, dot(w, w)) // 2)

    def conjugate(self, v: Exact) -> int:
        """Return the penalty's conjugate at v; where that may be infinite, |v| ≤ l1."""
        excess = positive(abs(v) - self.l1)
        return int(over(dot(excess, excess), 2 * (ONE - self.l1))) if self.l1 < ONE else 0


_ROUNDING = ONE >> 40  # of sums of dual variables, relative
_RESOLUTION = Fraction(1 << 64, ONE)  # what sums of numbers with this many bits may be off by


def soft(space: Space, b: int, target: Exact, cost: Exact, beta: Exact, form: Form) -> Part:
    """Return the problem min penalty + Σ cost·loss(w·φ(x) + b) at a point with duals β.

    Costs may be two rows: those of targets above f, and those of targets below it.
    """

    def slacks(b: int) -> Exact:
        residual = target - space.scores - b
        if form.regression:
            return positive(abs(residual) - form.epsilon)
        return positive(times(target, residual))

    def primal_at(b: int) -> int:
        xi = slacks(b)
        own_cost = np.where(target > space.scores + b, *_sides(cost))
        loss = dot(own_cost, times(xi, xi) if form.squared else xi)
        own = over(b, form.lift) if form.intercept == "penalized" else 0
        if form.l1:
            weights = np.append(space.w, own) if form.intercept == "penalized" else space.w
            return int(form.penalty(weights) + loss)
        return int((space.square + times(own, own)) // 2 + loss)

    faults = list(_faults(target, cost, beta, form))
    if form.intercept == "none" and b:
        faults.append(Violation("intercept", f"there is none, but it is {rounded(b):.3g}"))
    feasible = _feasible(target, cost, beta, form)
    dual = int(dot(target, feasible) - times(form.epsilon, abs(feasible).sum()))
    if form.squared:
        dual -= int(over(times(feasible, feasible), 4 * cost).sum())
    lifted = times(form.lift, feasible.sum()) if form.intercept == "penalized" else 0
    if form.l1:
        dual = _sparse_dual(space, feasible, lifted, dual, target, cost, form)
    else:
        dual -= (space.square_of(feasible) + times(lifted, lifted)) // 2
    above, (upper, lower) = target > space.scores + b, _sides(cost)
    left = np.where(above, upper - beta, lower + beta)
    unused = None if form.squared else int(dot(left, slacks(b)))
    kinks = np.concatenate([target - space.scores + side for side in (form.epsilon, -form.epsilon)])
    least = partial(lowest, primal_at, kinks) if form.intercept == "free" else None
    return Part(primal_at(b), dual, least, ONE - form.l1, unused, faults)


def _sides(cost: Exact) -> tuple[Exact, Exact]:
    """Return the costs above f and below it."""
    return (cost[0], cost[1]) if cost.ndim == 2 else (cost, cost)


def lowest(objective: Callable[[int], int], kinks: Exact) -> int:
    """Return the minimum of a convex function that is linear or quadratic between its kinks."""
    points = sorted(set(kinks.tolist()))
    best = min(range(len(points)), key=lambda k: objective(points[k]))
    values = [objective(points[best])]
    for left, right in pairwise(points[max(best - 1, 0) : best + 2]):
        middle = (left + right) // 2
        low, between, high = (objective(b) for b in (left, middle, right))
        curvature, slope = low - 2 * between + high, high - low
        if curvature > 0:  # a parabola through three points
            at = middle - (right - left) * slope // (4 * curvature)
            values.append(objective(min(max(at, left), right)))
    return min(values)


def _faults(target: Exact, cost: Exact, beta: Exact, form: Form) -> Iterator[Violation]:
    if not form.regression and (wrong := (times(target, beta) < 0)).any():
        yield Violation("sign", f"{wrong.sum()} duals have the sign of the other class")
    bound = np.where(beta > 0, *_sides(cost))
    if not form.squared and (above := (abs(beta) > bound)).any():
        ratio = max(abs(x) / c for x, c in zip(beta[above], bound[above], strict=True))
        yield Violation("box", f"{above.sum()} duals above C·weight, at most {ratio:.17g} of it")
    if form.intercept == "free":
        yield from _unequal(int(beta.sum()), 0, int(abs(beta).sum()))


def _unequal(total: int, due: int, size: int) -> Iterator[Violation]:
    if abs(total - due) > times(_ROUNDING, size):
        yield Violation("sum", f"duals sum to {rounded(total):.9g}, not to {rounded(due):.9g}")


def _feasible(target: Exact, cost: Exact, beta: Exact, form: Form) -> Exact:
    """Return β in its box, and the heavier side scaled down if they must sum to 0."""
    if not form.squared:
        upper, lower = _sides(cost)
        beta = np.minimum(np.maximum(beta, -lower), upper)
    if not form.regression:
        beta = times(target, positive(times(target, beta)))
    return balanced(beta) if form.intercept == "free" else beta


def balanced(beta: Exact) -> Exact:
    """Return β with the heavier side scaled down to a sum of 0."""
    up, down = int(positive(beta).sum()), int(positive(-beta).sum())
    if up == down:
        return beta
    heavier = beta > 0 if up > down else beta < 0
    return np.where(heavier, beta * min(up, down) // max(up, down), beta)


def _sparse_dual(
    space: Space, beta: Exact, lifted: int, value: int, target: Exact, cost: Exact, form: Form
) -> int:
    """Return the dual objective with ‖w‖₁ in the penalty: scaled down where v is out of range."""
    v = space.combined(beta)
    if form.intercept == "penalized":
        v = np.append(v, lifted)
    largest = int(abs(v).max())
    if form.l1 < ONE or largest <= ONE:
        return value - form.conjugate(v)
    down = over(ONE, largest)
    beta = times(down, beta)
    squares = over(times(beta, beta), 4 * cost).sum() if form.squared else 0
    return int(dot(target, beta) - squares)


def hard(space: Space, b: int, signs: Exact, beta: Exact, free: bool) -> Part:
    """Return the problem min ½‖w‖² such that y f ≥ 1: planes and duals in their best scale."""

    def primal(margin: int) -> int | None:
        return int(over(over(space.square, 2 * margin), margin)) if margin > 0 else None

    def least() -> int | None:
        apart = space.scores[signs > 0].min() - space.scores[signs < 0].max()
        return primal(int(apart) // 2)

    form = Form(squared=True, intercept="free" if free else "none")
    faults = list(_faults(signs, signs, beta, form))
    feasible = _feasible(signs, signs, beta, form)
    length2, total = space.square_of(feasible), int(abs(feasible).sum())
    dual = over(times(total, total), 2 * length2) if length2 > 0 else 0
    margin = int(times(signs, space.scores + b).min())
    return Part(primal(margin), int(dual), least if free else None, faults=faults)


def joint(spaces: list[Space], b: Exact, labels: Any, cost: Exact, beta: Exact, form: Form) -> Part:
    """Return the problem of Crammer and Singer: a space and b for each class, and β of (n, K)."""
    own = np.arange(len(labels)), labels
    claims = np.stack([space.scores for space in spaces], axis=1) + b + ONE
    claims[own] -= ONE
    xi = claims.max(axis=1) - claims[own]
    penalty = int(sum(space.square for space in spaces))
    due = np.zeros(beta.shape, dtype=object)
    due[own] = cost
    mass = positive(due - beta)
    mass = over(times(mass, cost[:, None]), mass.sum(axis=1)[:, None])
    if form.intercept == "free":
        mass = _shared_out(mass, due.sum(axis=0))
    feasible = due - mass
    square = sum(space.square_of(part) for space, part in zip(spaces, feasible.T, strict=True))
    if form.intercept == "penalized":
        penalty += int(times(over(b, form.lift), over(b, form.lift)).sum())
        lifted = times(form.lift, feasible.sum(axis=0))
        square += int(dot(lifted, lifted))
    faults = list(_joint_faults(cost, beta, own, form))
    if form.intercept == "none" and b.any():
        faults.append(Violation("intercept", "there is none, but some are not 0"))
    primal, unused = penalty // 2 + int(dot(cost, xi)), int(dot(cost - beta[own], xi))
    return Part(primal, int(feasible[own].sum()) - square // 2, unused=unused, faults=faults)


def _shared_out(mass: Exact, due: Exact) -> Exact:
    """Return masses of which each class has its due: those with more give to those with less."""
    held = mass.sum(axis=0)
    lack = positive(due - held)
    if not lack.any():
        return mass
    rich = held > due
    kept = np.where(rich, mass * np.where(rich, due, 1) // np.where(rich, held, 1), mass)
    released = (mass - kept).sum(axis=1)[:, None]
    return kept + released * lack // lack.sum()


def _joint_faults(cost: Exact, beta: Exact, own: Any, form: Form) -> Iterator[Violation]:
    others = beta.copy()
    others[own] = 0
    if (others > 0).any() or (beta[own] < 0).any():
        yield Violation("sign", "a dual is above 0 for another class, or below for the own")
    if (beta[own] > cost + times(_ROUNDING, cost)).any():
        yield Violation("box", "a dual is above C·weight")
    if (abs(beta.sum(axis=1)) > times(_ROUNDING, cost)).any():
        yield Violation("sum", "the duals of a row do not sum to 0")
    if form.intercept == "free":
        for k in range(beta.shape[1]):
            yield from _unequal(int(beta[:, k].sum()), 0, int(abs(beta).sum()))


def summing_to(total: int, alpha: Exact, cost: Exact) -> Exact:
    """Return 0 ≤ α ≤ cost with a given sum: scaled, or raised by a share of what is left."""
    alpha = np.minimum(positive(alpha), cost)
    held = int(alpha.sum())
    scaled = alpha * total // max(held, 1)
    if held >= total or (held and (scaled <= cost).all()):
        return scaled
    left = cost - alpha
    return alpha + left * (total - held) // int(left.sum())


# ------------------------------------------------------------------- reading models


class Data(NamedTuple):
    """The rows that have a weight, what is to be learnt of them, and their costs."""

    X: Any
    y: Any
    weight: Any  # floats
    kept: Any  # their numbers among the rows given


def read(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[Part]:
    """Return the problems of a fitted model in the order of its certificate's parts."""
    data = _data(model, X, y, sample_weight)
    return _READERS[type(model).__name__](model, data)


def _data(model: Any, X: Any, y: Any, sample_weight: Any) -> Data:
    n = X.shape[0]
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if hasattr(model, "classes_"):
        y = np.searchsorted(model.classes_, y)
        if type(model).__name__ != "HardMarginSVC":
            weight = weight * _class_factors(model, y, weight)[y]
    kept = np.flatnonzero(weight > 0)
    gram_given = type(getattr(model, "kernel_", None)).__name__ == "Precomputed"
    X = X[np.ix_(kept, kept)] if gram_given else X[kept]
    return Data(X, None if y is None else np.asarray(y)[kept], weight[kept], kept)


def _class_factors(model: Any, labels: Any, weight: Any) -> Any:
    n_classes = len(model.classes_)
    if model.class_weight == "balanced":
        totals = np.bincount(labels, weights=weight, minlength=n_classes)
        present = totals > 0
        ratios = totals.sum() / (present.sum() * np.where(present, totals, 1.0))
        return np.where(present, ratios, 0.0)
    given = model.class_weight or {}
    return np.array([given.get(label, 1.0) for label in model.classes_.tolist()], dtype=float)


class Planes(NamedTuple):
    """The weights and duals of a model, a row for each of its problems and one entry a row of X."""

    space: Callable[[int, Any], Space]  # of problem k, restricted to rows
    duals: Exact


def _planes(model: Any, data: Data, duals: Any) -> Planes:
    """Return planes, where duals (problems, support) belong to ``support_``."""
    place = np.full(max(data.kept.max(), model.support_.max(initial=0)) + 1, -1)
    place[data.kept] = np.arange(len(data.kept))
    full = np.full((len(duals), len(data.kept)), 0, dtype=object)
    full[:, place[model.support_]] = exact(duals)
    kernel = getattr(model, "kernel_", None)
    if kernel is None or type(kernel).__name__ == "Linear":
        rows, weights = exact(_dense(data.X)), exact(np.atleast_2d(model.coef_))
        return Planes(lambda k, part: LinearSpace(rows[part], weights[k]), full)
    K = gram(kernel, data.X)
    return Planes(lambda k, part: KernelSpace(K[np.ix_(part, part)], full[k, part]), full)


def _costs(model: Any, data: Data) -> Exact:
    return exact(float(model.C) * data.weight)


class Task(NamedTuple):
    """A binary problem: its rows, their signs, and where the model keeps its plane."""

    rows: Any
    signs: Exact
    plane: int


def _tasks(labels: Any, n_classes: int, scheme: str, every: bool) -> list[Task]:
    """Return the binary problems; ``every``: classes without rows have planes too."""
    everything = np.arange(len(labels))
    if n_classes == 2:
        return [Task(everything, _signs(labels == 1), 0)]
    present = np.unique(labels).tolist()
    if scheme == "ovr":
        places = present if every else range(len(present))
        return [
            Task(everything, _signs(labels == c), k) for k, c in zip(places, present, strict=True)
        ]
    listed = list(combinations(range(n_classes) if every else present, 2))
    tasks = []
    for k, (i, j) in enumerate(listed):
        rows = np.flatnonzero((labels == i) | (labels == j))
        if {i, j} <= set(present):
            tasks.append(Task(rows, _signs(labels[rows] == i), k))
    return tasks


def _signs(first: Any) -> Exact:
    return np.where(first, 1, -1).astype(object) * ONE


def _pairwise_duals(model: Any) -> Any:
    """Return ``dual_coef_`` of SVC and NuSVC by (pair, support vector)."""
    n_classes = len(model.classes_)
    labels = np.repeat(np.arange(n_classes), model.n_support_)
    pairs = list(combinations(range(n_classes), 2))
    out = np.zeros((len(pairs), len(labels)))
    for k, (i, j) in enumerate(pairs):
        out[k, labels == i] = model.dual_coef_[j - 1, labels == i]
        out[k, labels == j] = model.dual_coef_[i, labels == j]
    return out


def _svc(model: Any, data: Data) -> list[Part]:
    by_pair = model.multi_class == "ovo" or len(model.classes_) == 2
    planes = _planes(model, data, _pairwise_duals(model) if by_pair else model.dual_coef_)
    form = Form(intercept="free" if model.fit_intercept else "none")
    return _classes(model, data, planes, form, True)


def _linear_svc(model: Any, data: Data) -> list[Part]:
    l1 = {"l2": 0.0, "l1": 1.0, "elasticnet": float(model.l1_ratio)}[model.penalty]
    form = Form(
        squared=model.loss == "squared_hinge",
        intercept=model.intercept,
        lift=exact(float(model.intercept_scaling)),
        l1=exact(l1),
    )
    return _classes(model, data, _planes(model, data, model.dual_coef_), form, False)


def _classes(model: Any, data: Data, planes: Planes, form: Form, every: bool) -> list[Part]:
    """Return the problems of SVC or LinearSVC; ``every``: classes without rows have planes too."""
    cost, b, n_classes = _costs(model, data), exact(model.intercept_), len(model.classes_)
    if model.multi_class == "crammer_singer":
        if n_classes > 2:
            present, labels = np.unique(data.y, return_inverse=True)
            spaces = [planes.space(k, np.arange(len(labels))) for k in present]
            return [joint(spaces, b[present], labels, cost, planes.duals[present].T, form)]
        cost = 2 * cost  # as ½‖w₁‖² + ½‖w₂‖² is half of ½‖w‖² for w = w₁ − w₂
    return [
        soft(planes.space(k, rows), b[k], signs, cost[rows], planes.duals[k, rows], form)
        for rows, signs, k in _tasks(data.y, n_classes, model.multi_class, every)
    ]


def _regression(model: Any, data: Data) -> list[Part]:
    linear = type(model).__name__ == "LinearSVR"
    free = "free" if linear or model.fit_intercept else "none"
    form = Form(
        regression=True,
        squared=linear and model.loss == "squared_epsilon_insensitive",
        epsilon=exact(float(getattr(model, "epsilon", 0.0))),
        intercept=model.intercept if linear else free,
        lift=exact(float(model.intercept_scaling)) if linear else ONE,
    )
    planes = _planes(model, data, model.dual_coef_)
    everything, b = np.arange(len(data.kept)), exact(model.intercept_)[0]
    space, cost = planes.space(0, everything), _costs(model, data)
    if hasattr(model, "quantile"):
        each, q = float(model.C) * data.weight, float(model.quantile)
        cost = exact(np.array([q * each, (1.0 - q) * each]))
    return [soft(space, b, exact(data.y.astype(float)), cost, planes.duals[0], form)]


def _hard(model: Any, data: Data) -> list[Part]:
    planes, b = _planes(model, data, model.dual_coef_), exact(model.intercept_)
    tasks = _tasks(data.y, len(model.classes_), model.multi_class, False)
    free = model.intercept == "free"
    return [
        hard(planes.space(k, rows), b[k], signs, planes.duals[k, rows], free)
        for rows, signs, k in tasks
    ]


def _nu_svc(model: Any, data: Data) -> list[Part]:
    planes, b = _planes(model, data, _pairwise_duals(model)), exact(model.intercept_)
    weight = exact(data.weight)
    own = model.certificate_.parts or (model.certificate_,)
    tasks = _tasks(data.y, len(model.classes_), "ovo", True)
    return [
        _nu_pair(
            planes.space(k, rows), b[k], signs, weight[rows],
            planes.duals[k, rows], exact(float(model.nu)), own[i].primal,
        )
        for i, (rows, signs, k) in enumerate(tasks)
    ]  # fmt: skip


def _nu_pair(
    space: Space, b: int, signs: Exact, cost: Exact, beta: Exact, nu: int, claimed: float
) -> Part:
    """Return min ½‖w‖² + Σ cost·max(0, ρ − y f) − νWρ, where the model has w/ρ and b/ρ.

    The duals of each class sum to νW/2, which tells ρ. Where ρ = 0 nothing was divided.
    """
    total = min(
        int(times(nu, cost.sum())) // 2, *(int(cost[signs == s].sum()) for s in (ONE, -ONE))
    )
    size = int(abs(beta).sum())
    rho = over(2 * total, size) if size else 0

    def objective(rho: int) -> int:
        scale = rho or ONE
        xi = positive(rho - times(scale, times(signs, space.scores + b)))
        square = times(times(scale, scale), space.square) // 2
        return int(square + dot(cost, xi) - times(2 * total, rho))

    if abs(rho - ONE) < _ROUNDING and np.isfinite(claimed):  # nothing was divided, or by 1
        rho = min((rho, 0), key=lambda rho: abs(objective(rho) - exact(claimed)))
    scale, primal = rho or ONE, objective(rho)
    alpha = times(scale, times(signs, beta))
    reach = times(scale, times(signs, space.scores))

    def least() -> int:
        # ρ − b is the best for the positive class, ρ + b for the negative one.
        sides = (_best_share(total, reach[signs == s], cost[signs == s]) for s in (ONE, -ONE))
        return int(times(times(scale, scale), space.square)) // 2 + sum(sides)

    feasible = np.zeros(len(cost), dtype=object)
    faults = list(_nu_faults(alpha, cost))
    for s in (ONE, -ONE):
        side = signs == s
        faults += _unequal(int(alpha[side].sum()), total, total)
        feasible[side] = summing_to(total, alpha[side], cost[side])
    return Part(primal, -space.square_of(times(signs, feasible)) // 2, least, faults=faults)


def _best_share(total: int, reach: Exact, cost: Exact) -> int:
    """Return the least Σ cost·max(0, u − reach) − total·u over all u."""
    return lowest(lambda u: int(dot(cost, positive(u - reach)) - times(total, u)), reach)


def _nu_faults(alpha: Exact, cost: Exact) -> Iterator[Violation]:
    if (alpha < 0).any():
        yield Violation("sign", f"{(alpha < 0).sum()} duals have the sign of the other class")
    if (alpha > cost + times(_ROUNDING, cost)).any():
        yield Violation("box", "a dual is above its weight")


def _nu_svr(model: Any, data: Data) -> list[Part]:
    planes, cost = _planes(model, data, model.dual_coef_), _costs(model, data)
    space, beta = planes.space(0, np.arange(len(cost))), planes.duals[0]
    epsilon, nu = exact(float(model.epsilon_)), exact(float(model.nu))
    allowed = int(times(nu, cost.sum()))
    residual = exact(data.y.astype(float)) - space.scores - exact(model.intercept_)[0]
    xi = positive(residual - epsilon) + positive(-residual - epsilon)
    primal = space.square // 2 + dot(cost, xi) + times(allowed, epsilon)
    faults = list(_faults(cost, cost, beta, Form(regression=True, intercept="none")))
    faults += _unequal(int(beta.sum()), 0, allowed)
    if (size := int(abs(beta).sum())) > allowed + times(_ROUNDING, allowed):
        faults.append(Violation("sum", f"Σ|β| is {size / allowed:.9g} of what nu allows"))
    feasible = _feasible(cost, cost, beta, Form(regression=True))
    if (size := int(abs(feasible).sum())) > allowed:
        feasible = feasible * allowed // size
    dual = dot(exact(data.y.astype(float)), feasible) - space.square_of(feasible) // 2

    def least() -> int:
        # b + ε is the best for rows above the tube, b − ε for those below.
        rest = exact(data.y.astype(float)) - space.scores
        sides = (_best_share(allowed // 2, side, cost) for side in (rest, -rest))
        return int(space.square) // 2 + int(sum(sides))

    return [Part(int(primal), int(dual), least, faults=faults)]


def _one_class(model: Any, data: Data) -> list[Part]:
    planes, cost = _planes(model, data, model.dual_coef_), exact(data.weight)
    space, alpha = planes.space(0, np.arange(len(cost))), planes.duals[0]
    total = int(times(exact(float(model.nu)), cost.sum()))

    def primal_at(b: int) -> int:
        xi = positive(-space.scores - b)
        return int(space.square // 2 + dot(cost, xi) + times(total, b))

    b = exact(model.intercept_)[0]
    faults = [*_nu_faults(alpha, cost), *_unequal(int(alpha.sum()), total, total)]
    dual = -space.square_of(summing_to(total, alpha, cost)) // 2
    unused = int(dot(cost - alpha, positive(-space.scores - b)))
    least = partial(lowest, primal_at, -space.scores)
    return [Part(primal_at(b), dual, least, unused=unused, faults=faults)]


_READERS: dict[str, Callable[[Any, Data], list[Part]]] = {
    "SVC": _svc,
    "NuSVC": _nu_svc,
    "SVR": _regression,
    "NuSVR": _nu_svr,
    "QuantileSVR": _regression,
    "OneClassSVM": _one_class,
    "LinearSVC": _linear_svc,
    "LinearSVR": _regression,
    "HardMarginSVC": _hard,
}

# ------------------------------------------------------------------- claims

_TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13)
_SENTENCE = re.compile(r"within (\S+) \(relative (\S+)\)")


def violations(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[Violation]:
    """Return which claims of a fitted model do not hold in exact arithmetic."""
    return judged(model, read(model, X, y, sample_weight), model.certificate_)


def judged(model: Any, parts: list[Part], certificate: Any) -> list[Violation]:
    """Return which claims of a certificate, and of the model's status, do not hold."""
    found = [fault for part in parts for fault in part.faults]
    found += _false_status(model, parts)
    certificates = certificate.parts or (certificate,)
    if len(parts) != len(certificates):
        return [*found, Violation("parts", f"{len(certificates)} certificates, {len(parts)} parts")]
    for part, own in zip(parts, certificates, strict=True):
        found += _false_claims(part, own)
        found += _false_distance(part, own)
        found += _false_slacks(part, own)
    if certificate.parts:
        found += _false_claims(_together(parts), certificate)
    found += _different_duals(model)
    return list(dict.fromkeys(found))


def _together(parts: list[Part]) -> Part:
    primals = [part.primal for part in parts]
    whole = None if None in primals else sum(primal or 0 for primal in primals)
    return Part(whole, sum(part.dual for part in parts))


def relative_gap(part: Part) -> Fraction | None:
    """Return (P − D)/max(|P|, |D|), 0 for 0/0, or None if it is infinite."""
    if part.primal is None:
        return None
    size = max(abs(part.primal), abs(part.dual))
    return Fraction(part.primal - part.dual, size) if size else Fraction(0)


def _false_status(model: Any, parts: list[Part]) -> Iterator[Violation]:
    if model.status_ is not Status.OPTIMAL:
        return
    for part in parts:
        gap = relative_gap(part)
        if gap is None or gap > Fraction(float(model.tol)):
            yield Violation("optimal", f"status_ is OPTIMAL, tol={model.tol:g}, {_shown(part)}")


def _shown(part: Part) -> str:
    if part.primal is None:
        return f"but the primal is infinite and the dual {rounded(part.dual):.9g}"
    gap = relative_gap(part) or 0
    return (
        f"but the relative gap is {float(gap):.3g} (primal {rounded(part.primal):.17g}, dual "
        f"{rounded(part.dual):.17g})"
    )


def _false_claims(part: Part, own: Any) -> Iterator[Violation]:
    gap = relative_gap(part)
    for tol in _TOLERANCES:
        if own.holds(tol) and (gap is None or gap > Fraction(tol)):
            yield Violation("holds", f"certificate_.holds({tol:g}), {_shown(part)}")
            break
    if not np.isfinite([own.primal, own.dual]).all():
        return
    scale = Fraction(max(abs(own.primal), abs(own.dual)))
    for name, value, claimed in (
        ("primal", part.primal, own.primal),
        ("dual", part.dual, own.dual),
    ):
        yield from _off(name, value, claimed, own.rounding, scale)
    printed = _SENTENCE.search(str(own))
    if printed and gap is not None and part.primal is not None:
        bounds = [Fraction(number) * Fraction(106, 100) for number in printed.groups()]
        if Fraction(part.primal - part.dual, ONE) > bounds[0] or gap > bounds[1]:
            said = printed.group(0)
            yield Violation("sentence", f"it says {said!r}, {_shown(part)}")


def _off(
    name: str, value: int | None, claimed: float, rounding: float, scale: Fraction
) -> Iterator[Violation]:
    if value is None:
        yield Violation(name, f"certificate_.{name} is {claimed:.17g}, but it is infinite")
        return
    away = abs(Fraction(value, ONE) - Fraction(claimed))
    if away > Fraction(rounding) * scale + _RESOLUTION:
        relative = float(away / scale) if scale else float("inf")
        yield Violation(
            name,
            f"certificate_.{name} is {claimed:.17g}, but it is {rounded(value):.17g}: away by "
            f"{relative:.3g} relative, and rounding is {rounding:.3g}",
        )


def _false_distance(part: Part, own: Any) -> Iterator[Violation]:
    """‖w − w*‖ ≤ √(2(P − D)/μ), with P at the best intercept of all."""
    if part.primal is None or not np.isfinite(own.distance_bound) or not part.convexity:
        return
    gap = Fraction(part.primal - part.dual, ONE)
    claimed = Fraction(own.distance_bound) ** 2 * Fraction(part.convexity, 2 * ONE)
    if gap > claimed and part.least is not None:
        gap = Fraction((part.least() or part.primal) - part.dual, ONE)
    elif gap > claimed:
        gap -= Fraction(own.intercept_cost)  # no exact arithmetic finds intercepts of all classes
    if gap > claimed * (1 + Fraction(1, 10**12)):
        yield Violation(
            "distance",
            f"distance_bound is {own.distance_bound:.3g}, but the gap of {float(gap):.3g} implies "
            f"no less than {float(2 * gap * Fraction(ONE, part.convexity)) ** 0.5:.3g}",
        )


def _false_slacks(part: Part, own: Any) -> Iterator[Violation]:
    """Σ(C − α)ξ is a part of the gap: a row with slack has α near C."""
    if part.unused is None or not np.isfinite(own.gap):
        return
    scale = max(abs(own.primal), abs(own.dual))
    allowed = Fraction(own.gap) + 2 * Fraction(own.rounding) * Fraction(scale)
    if Fraction(part.unused, ONE) > allowed:
        yield Violation(
            "slacks",
            f"Σ(C − α)ξ is {rounded(part.unused):.3g}, more than the certified gap {own.gap:.3g}",
        )


def _different_duals(model: Any) -> Iterator[Violation]:
    """alpha_ is |dual_coef_|."""
    alpha = np.atleast_2d(model.alpha_)
    by_pair = hasattr(model, "break_ties") and len(model.dual_coef_) < len(model.classes_)
    duals = abs(_pairwise_duals(model) if by_pair else model.dual_coef_)
    spread = np.zeros_like(alpha)
    spread[:, model.support_] = duals
    if not np.array_equal(alpha, spread):
        yield Violation("alpha_", "it is not |dual_coef_| at support_")
