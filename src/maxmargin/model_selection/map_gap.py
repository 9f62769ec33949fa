"""How far a feature map with a linear machine is from the exact kernel machine, on a sample.

    P* ≤ P(w) for any w,    D(β) ≤ P* for any feasible β      (objectives of the exact kernel)

The machine on the map has a solution (w, β). Its β is feasible for every kernel, so D(β) bounds the
exact optimum from below. Nyström's and explicit features lie in the kernel's own feature space, so
that w is a point there with the same length and scores: P(w) bounds the optimum from above. Random
Fourier features do not; there the expansion t Σβᵢ K(xᵢ, ·), with the best t, stands for w.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate
from maxmargin.certificates import certify as certify_point
from maxmargin.estimators import SVC, LinearSVC, Nystroem, PolynomialMap, RandomFourier
from maxmargin.estimators.feature_maps.source_rows import SourceRows
from maxmargin.estimators.linear.blocked import Opened, as_source, is_source, vector_of
from maxmargin.kernels import Linear
from maxmargin.problems import losses
from maxmargin.problems.duality import best_intercept
from maxmargin.problems.problem import KernelProblem, Point
from maxmargin.validation.data import check_classes, check_labels, generator
from maxmargin.validation.parameters import shown


@dataclass(frozen=True)
class MapGap:
    """What the exact kernel's problem on a sample says about a map's solution.

    Attributes
    ----------
    primal, dual : float
        The optimum of the exact kernel machine on the sample lies between these.
    map_primal : float
        The exact objective at the map's solution: no less than the optimum.
    map_dual : float
        The exact dual objective at the map's dual variables, times what is best for them: no more
        than the optimum.
    excess, relative_excess : float
        The map's solution is at most this far above the exact optimum: map_primal − dual, and that
        divided by primal.
    least_excess : float
        And it is at least this far above: map_primal − primal, or 0.
    dual_deficit : float
        The map's duals are at most this far below the optimum: primal − map_dual.
    bracket : float
        map_primal − map_dual: what the map alone proves, without the exact machine.
    own_point : bool
        Whether map_primal is about the model itself (Nyström's and polynomial features), or about
        the kernel expansion with its dual variables (random Fourier features).
    agreement : float
        The share of other rows (of the sample itself, if there are none) for which the map's and
        the exact machine, both fitted to the sample, predict the same class.
    n_rows, n_total, C : int, int, float
        Rows in the sample, rows it was taken from, and the cost.
    kernel : Kernel
        The exact kernel.
    """

    primal: float
    dual: float
    map_primal: float
    map_dual: float
    own_point: bool
    agreement: float
    n_rows: int
    n_total: int
    C: float
    kernel: Any

    @property
    def excess(self) -> float:
        """The most by which the map's solution is above the exact optimum."""
        return max(self.map_primal - self.dual, 0.0)

    @property
    def least_excess(self) -> float:
        """The least by which it is."""
        return max(self.map_primal - self.primal, 0.0)

    @property
    def relative_excess(self) -> float:
        """``excess`` relative to the optimum."""
        return self.excess / self.primal if self.primal > 0 else 0.0

    @property
    def dual_deficit(self) -> float:
        """The most by which the map's duals are below the exact optimum."""
        return max(self.primal - self.map_dual, 0.0)

    @property
    def bracket(self) -> float:
        """What the map proves without the exact machine."""
        return max(self.map_primal - self.map_dual, 0.0)  # below 0 it is rounding

    def __str__(self) -> str:
        whose = "The map's solution" if self.own_point else "The expansion with the map's duals"
        return (
            f"On {self.n_rows} of {self.n_total} rows, with C={self.C:g} and {self.kernel!r}, the "
            f"exact optimum lies in [{self.dual:.6g}, {self.primal:.6g}]. {whose} has objective "
            f"{self.map_primal:.6g}: at most {self.relative_excess:.2%} above it. Its duals prove "
            f"{self.map_dual:.6g}. Predictions agree on {self.agreement:.2%} of "
            f"{'other' if self.n_rows < self.n_total else 'the same'} rows."
        )


def map_gap(
    pipeline: Any,
    X: Any,
    y: Any = None,
    *,
    sample: int | None = 2000,
    C: float | None = None,
    tol: float = 1e-4,
    random_state: Any = 0,
) -> MapGap:
    """Measure how far a map with a linear machine is from the exact kernel machine, on a sample.

    Two machines are fitted to a random sample of the rows: the exact kernel machine, with its
    certificate, and the linear machine on the map's features. The solution of the latter is a point
    of the former's problem. Its exact objective is computed, which proves what the map costs.

    Parameters
    ----------
    pipeline : Pipeline
        Any steps, then Nystroem, RandomFourier or PolynomialMap, then LinearSVC (hinge loss, l2
        penalty, intercept "free" or "none"). If it is fitted, its steps and its map are used as
        they are; if not, they are fitted to all of X.
    X, y : array-like of shape (n, d), (n,); or source
        Rows and labels of two classes. What ``mm.data.open`` returns has its own labels; the rows
        of the sample are read from it, the same as if all rows were in memory, and twice as many
        with those that predictions are compared on. Steps before the map must be fitted then.
    sample : int or None, default=2000
        Rows to compare on; None: all. The exact machine has to be fitted to these.
    C : float or None, default=None
        The cost; None: that of the pipeline's machine.
    tol : float, default=1e-4
        Relative duality gap of the two fits.
    random_state : int, Generator, RandomState or None, default=0
        For the sample.

    Returns
    -------
    MapGap
        The bracket of the exact optimum, the map's objective in it, and the excess.

    Notes
    -----
    What is proved holds for the sample, not for all rows: the machine is fitted to the sample
    again, with the map as it is. With the same C, fewer rows make a problem with more
    regularisation, which is easier to approximate; C·n/sample has the trade-off of the whole, and
    overstates what n rows would show. Look at both, and at the trend as the sample grows.

    For Nyström's features ``bracket`` needs no exact machine: one product of the duals with the
    exact kernel matrix gives it, on as many rows as you can afford.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = mm.datasets.circles(1000, random_state=0)
    >>> route = make_pipeline(mm.Nystroem(n_components=50), mm.LinearSVC()).fit(X, y)
    >>> found = mm.model_selection.map_gap(route, X, y, sample=300)
    >>> found.map_dual <= found.primal and found.dual <= found.map_primal
    True
    >>> found.relative_excess < 0.01
    True
    """
    before, phi, machine = _read_steps(pipeline)
    if is_source(X):
        X, y, before, phi = _open_source(X, y, before, phi)
        _refuse_classes(machine, y)
    else:
        y = check_labels(y, _num_samples(X))
        _refuse_classes(machine, y)
        before, phi = _fit_steps(before, phi, X)
    chosen, others = _sample(y, sample, generator(random_state))
    rows, labels = _prepare(before, X, chosen), y[chosen]
    cost = float(machine.C if C is None else C)
    linear = clone(machine).set_params(C=cost, tol=tol, warm_start=False)
    linear.fit(phi.transform(rows), labels)
    exact = SVC(
        C=cost,
        kernel=phi.kernel_,
        tol=tol,
        class_weight=machine.class_weight,
        fit_intercept=machine.fit_intercept and machine.intercept == "free",
    ).fit(rows, labels)
    problem = exact.solution(rows, labels)[0].problem
    beta = np.zeros(len(chosen))
    beta[linear.support_] = linear.dual_coef_[0]
    own = not isinstance(phi, RandomFourier)
    expansion = _certify_expansion(problem, beta)
    asked = _prepare(before, X, others) if len(others) else rows
    same = linear.predict(phi.transform(asked)) == exact.predict(asked)
    return MapGap(
        primal=exact.certificate_.primal,
        dual=exact.certificate_.dual,
        map_primal=_own_primal(problem, phi, linear, rows) if own else expansion.primal,
        map_dual=expansion.dual,
        own_point=own,
        agreement=float(np.mean(same)),
        n_rows=len(chosen),
        n_total=len(y),
        C=cost,
        kernel=phi.kernel_,
    )


def _certify_expansion(problem: KernelProblem, beta: Floats) -> Certificate:
    """Return the exact bounds of the best multiples of w = Σβᵢ K(xᵢ, ·) and of β.

    With βKβ ≠ ‖w‖² of the map, other lengths are better than its own: tβ is feasible for t ≤ 1, and
    tw is a point for every t.
    """
    gram, terms = problem.features.gram, problem.loss
    scores = gram.dot(beta, np.arange(len(gram)))
    square = float(beta @ scores)
    linear = losses.dual_value(terms, beta)
    shorter = min(1.0, linear / square) if square > 0 else 1.0

    def primal(t: float) -> float:
        return _objective(problem, t * t * square, t * scores, 0.0)

    most = 2.0 * max(1.0, float(1 / max(np.abs(scores).max(initial=0.0), 0.1)))
    t = float(minimize_scalar(primal, bounds=(0.0, most), method="bounded").x)
    point: Any = Point(t * beta, np.zeros(len(problem.totals)), shorter * beta)
    return certify_point(problem, point)


def _objective(problem: KernelProblem, norm2: float, scores: Floats, near: float) -> float:
    """Return ½‖w‖² + Σ losses, with the best intercept if there is one."""
    b = best_intercept(problem.loss, scores, near, 0.0) if len(problem.totals) else 0.0
    return 0.5 * norm2 + float(losses.values(problem.loss, scores + b).sum())


def _own_primal(problem: KernelProblem, phi: Any, linear: Any, rows: Any) -> float:
    """Return the exact objective at the map's weights, with the best intercept for them."""
    w = np.asarray(linear.coef_[0], dtype=np.float64)
    if isinstance(phi, Nystroem):  # w = Σ cⱼ K(zⱼ, ·)
        c = phi.root_ @ w
        wide = phi.landmarks_ if phi.kernel_.takes_objects else phi.landmarks_.astype(np.float64)
        scores = phi.kernel_.gram(rows, wide) @ c
        norm2 = float(c @ (phi.kernel_.gram(wide) @ c))
    else:
        scores = phi.transform(rows) @ w
        norm2 = float(w @ w)
    return _objective(problem, norm2, scores, float(linear.intercept_[0]))


# ------------------------------------------------------------------- input


def _read_steps(pipeline: Any) -> tuple[list[Any], Any, Any]:
    """Return what comes before the map, the map, and the machine."""
    if not isinstance(pipeline, Pipeline):
        raise TypeError(
            f"pipeline={shown(pipeline)} is not a Pipeline: pass make_pipeline(…, map, "
            "LinearSVC()) first, then X and y. Its steps may be fitted already."
        )
    steps = [step for _, step in pipeline.steps if step is not None and step != "passthrough"]
    maps = (Nystroem, RandomFourier, PolynomialMap)
    if len(steps) < 2 or not (isinstance(steps[-2], maps) and isinstance(steps[-1], LinearSVC)):
        raise TypeError(
            "pipeline must end with Nystroem, RandomFourier or PolynomialMap, and LinearSVC of "
            f"maxmargin; it has {[type(step).__name__ for step in steps]}."
        )
    machine = steps[-1]
    intercept = machine.intercept if machine.fit_intercept else "none"
    if (machine.loss, machine.penalty) != ("hinge", "l2") or intercept not in ("free", "none"):
        raise ValueError(
            f"loss={machine.loss!r}, penalty={machine.penalty!r}, intercept={intercept!r} has no "
            "kernel machine to compare with: SVC has loss='hinge', penalty='l2', and intercept "
            "'free' or 'none'."
        )
    return steps[:-2], steps[-2], machine


def _refuse_classes(machine: Any, y: Any) -> None:
    classes = check_classes(machine, y)
    if len(classes) > 2:
        raise ValueError(
            f"y has {len(classes)} classes, for which LinearSVC and SVC state different problems: "
            "compare one with the rest, y == label."
        )
    if isinstance(machine.class_weight, dict) and 0 in machine.class_weight.values():
        raise ValueError("class_weight of 0 leaves one class: nothing is left to compare.")


def _fit_steps(before: list[Any], phi: Any, X: Any) -> tuple[list[Any], Any]:
    """Return the steps as they are, or fitted to all rows."""
    try:
        for step in (*before, phi):
            check_is_fitted(step)
    except NotFittedError:
        before, phi = [clone(step) for step in before], clone(phi)
        for step in before:
            X = step.fit_transform(X)
        phi.fit(X)
    _refuse_kernel(phi)
    return before, phi


def _open_source(source: Any, y: Any, before: list[Any], phi: Any) -> tuple[Any, Any, Any, Any]:
    """Return rows of a source by number, all its labels, and the steps, fitted."""
    source = as_source(source, y)
    for step in before:
        try:
            check_is_fitted(step)
        except NotFittedError as unfitted:
            raise ValueError(
                f"{type(step).__name__} is not fitted, and cannot be fitted to a source here: fit "
                "the pipeline first, or use mm.data.standardize(source)."
            ) from unfitted
    try:
        check_is_fitted(phi)
    except NotFittedError:
        mapped = source
        for step in before:
            mapped = mapped.mapped(step)
        phi = clone(phi).fit(mapped)
    _refuse_kernel(phi)
    opened = Opened.of(source, targets=False, threads=None)
    labels = np.asarray(vector_of(opened.blocks.vector("labels")), dtype=np.int64)
    return SourceRows(opened), opened.survey.classes[labels], before, phi


def _refuse_kernel(phi: Any) -> None:
    if type(phi.kernel_) is Linear:
        raise ValueError("kernel='linear' needs no map: LinearSVC on the rows themselves is exact.")
    if phi.kernel_.takes_gram or phi.kernel_.psd is False:
        raise ValueError(
            f"kernel={phi.kernel_!r} cannot be compared here: it must be a function of two rows, "
            "and positive semidefinite."
        )


def _sample(y: Any, size: Any, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the sample, with the classes in their proportion, and as many other rows."""
    every = np.arange(len(y))
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
    if size is not None and not (whole and size >= 4):
        raise ValueError(f"sample={size!r} is not valid: it must be an integer >= 4, or None.")
    if size is None or size >= len(y) - 2:
        return every, every[:0]
    seed = int(rng.integers(2**31))
    try:
        chosen, rest = train_test_split(every, train_size=int(size), stratify=y, random_state=seed)
    except ValueError as wrong:
        raise ValueError(f"sample={size!r} cannot hold both classes: {wrong}") from wrong
    return np.sort(chosen), np.sort(rest[: int(size)])


def _prepare(before: list[Any], X: Any, numbers: Ints) -> Any:
    """Return some rows in float64 as the map sees them."""
    rows = X[numbers] if isinstance(X, SourceRows) else _safe_indexing(X, numbers)
    if getattr(rows, "dtype", None) == np.float32:
        rows = rows.astype(np.float64)
    for step in before:
        rows = step.transform(rows)
    return rows
