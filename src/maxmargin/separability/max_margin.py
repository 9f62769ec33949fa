"""The separating plane of largest margin, from the nearest points of the hulls.

    min ½‖w‖²    s.t. y(w·φ(x) + b) ≥ 1

The nearest points p, q of the classes' hulls give it: w is a multiple of p − q, and b puts the
plane midway. Their convex weights are the dual variables, up to a factor. Nothing but a common
power of two is divided out: other scales of columns would make it another plane.

In the feature space of a kernel the search is among vectors Z with the same products as the rows;
w = Σαyφ(x), its margin and its certificate are then computed from kernel values. These are rounded:
hulls nearer to each other than rounding can tell, √(nε) of their size, count as meeting, and the
witness says how near they are.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.certificates import Certificate
from maxmargin.certificates.hard import Placed, certify_hard, placed, placed_scores
from maxmargin.errors import NotSeparableError
from maxmargin.geometry import Hyperplane
from maxmargin.kernels import Kernel, Precomputed
from maxmargin.kernels.precomputed import asymmetry
from maxmargin.problems import losses
from maxmargin.problems.features import KernelFeatures, LinearFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, Point, Problem, Run, Status
from maxmargin.runtime import clock
from maxmargin.separability.decide import decide
from maxmargin.separability.overlap import conflict, fewest
from maxmargin.separability.result import Overlap
from maxmargin.separability.search import common_scale, origin, rescaled, search
from maxmargin.solve import Callback
from maxmargin.solvers.factor_newton import factor_with_pivots
from maxmargin.solvers.min_norm_point import Hulls, Nearest

MATRICES = 5  # of n² doubles that are held at a time: K, its factor, and parts of both
_ACCURACY = 1e-12  # how much lower than the nearest points the hulls may reach, relative
_LEAST = 100  # rows from which on rounding grows with their number
_DOUBT = 100  # times the rounding: more than that left of K is not rounding
_BLOCK = 1 << 22  # numbers in a block of K − ZZᵀ
_UNDECIDED = {
    Status.MAX_TIME: "max_time ran out before a plane or a proof that there is none was found",
    Status.MAX_ITER: "max_iter was reached before a plane or a proof that there is none was found",
    Status.CALLBACK: "the callback ended the search before it found a plane or a proof that there "
    "is none",
}


@dataclass(frozen=True)
class Widest:
    """A plane with min y f = 1 and its duals, what they prove, and how the search ended."""

    point: Point
    certificate: Certificate
    run: Run


@dataclass(frozen=True)
class NoPlane:
    """Why there is no plane: the rows that prove it, or what kept the search from an answer."""

    witness: Overlap | None
    reason: str
    run: Run


def find_widest(
    rows: "LinearRows | FeatureSpaceRows",
    signs: Floats,
    intercept: Intercept,
    *,
    tol: float,
    max_iter: int,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    in_any_case: bool = False,
) -> Widest | NoPlane:
    """Return the plane of largest margin to a relative gap of ``tol``, or why there is none.

    ``signs`` are labels ±1, and the intercept is free or none. The rest is as in ``drive``; an
    iteration ends when all rows were searched. After Ctrl-C, or ``in_any_case``, the plane that was
    reached is returned even if it does not separate: its certificate says so.
    """
    began = clock.now()
    positive, free = signs > 0, intercept is Intercept.FREE
    overlap = rows.conflict(positive, free)
    if overlap is not None:
        return NoPlane(overlap, "", Run(Status.MEETING, 0, 0.0))
    vectors = rows.vectors(free)
    scale = common_scale(vectors)
    hulls = Hulls.of(vectors / scale, positive, free)
    found, run = search(
        hulls,
        accuracy=min(_ACCURACY, 0.1 * tol),
        max_iter=max_iter,
        max_time=None if max_time is None else max(max_time - (clock.now() - began), 0.0),
        callback=callback,
        verbose=verbose,
    )
    point = rows.place(found, scale, signs, intercept)
    plane = _certify(rows, point, signs, intercept, tol, run)
    if plane is not None:
        return plane
    if run.status is Status.INTERRUPTED or in_any_case:
        return _reached(rows, hulls, found, scale, signs, intercept, run)
    if run.status in _UNDECIDED:
        return NoPlane(None, f"undecided: {_UNDECIDED[run.status]}", run)
    if isinstance(rows, FeatureSpaceRows):
        return _meeting(found, rows, positive, free, run)
    left = None if max_time is None else max(max_time - (clock.now() - began), 0.01)
    answer = decide(rows.X, positive, (-1, 1), np.arange(len(signs)), free, left)
    if isinstance(answer.witness, Overlap):
        return NoPlane(answer.witness, "", run)
    if isinstance(answer.witness, Hyperplane):  # it may scale columns: a plane, if not the widest
        point = rows.place(found, scale, signs, intercept, along=answer.witness.w)
        plane = _certify(rows, point, signs, intercept, tol, run)
    return plane or NoPlane(None, "undecided at this precision", run)


def _reached(
    rows: "LinearRows | FeatureSpaceRows",
    hulls: Hulls,
    found: Nearest,
    scale: float,
    signs: Floats,
    intercept: Intercept,
    run: Run,
) -> Widest:
    """Return a plane that need not separate: that of the points found, or that of class means.

    The first points found are rows that face each other, which may have passed each other, too.
    """
    shares = 1.0 / np.bincount(hulls.group)[hulls.group]
    means = replace(
        found, point=hulls.means().sum(axis=0), rows=np.arange(len(signs)), weights=shares
    )
    problem = hard_problem(rows.features, signs, intercept)
    tried = [rows.place(each, scale, signs, intercept, in_any_case=True) for each in (found, means)]
    points = [point for point in tried if point is not None]
    if not points:
        raise KeyboardInterrupt("interrupted before there was anything to keep")
    right = [float((signs * (problem.products(p.w) + p.b) > 0).sum()) for p in points]
    best = points[int(np.argmax(right))]
    return Widest(best, certify_hard(problem, best), replace(run, status=Status.INTERRUPTED))


def hard_problem(
    features: LinearFeatures | KernelFeatures, signs: Floats, intercept: Intercept
) -> Problem[Any]:
    """Return what is solved."""
    n, free = len(signs), int(intercept is Intercept.FREE)
    loss = losses.hard_margin(signs)
    return Problem(features, loss, np.arange(n), np.full(n, free - 1), np.zeros(free))


def _certify(
    rows: "LinearRows | FeatureSpaceRows",
    point: Point | None,
    signs: Floats,
    intercept: Intercept,
    tol: float,
    run: Run,
) -> Widest | None:
    """Return the plane with its certificate; None if rounding keeps it from separating."""
    if point is None:
        return None
    problem = hard_problem(rows.features, signs, intercept)
    certificate = certify_hard(problem, point, keep_intercept=True)
    if not (np.isfinite(certificate.primal) and np.isfinite(point.w).all()):
        return None
    if certificate.refuted and isinstance(rows, FeatureSpaceRows):  # only now it shows
        raise indefinite(rows.kernel)
    status = run.status
    if status not in (*_UNDECIDED, Status.INTERRUPTED):
        status = Status.ROUNDING if certificate.is_rounding(tol) else Status.STALLED
    if certificate.holds(tol) and status is not Status.INTERRUPTED:
        status = Status.OPTIMAL
    return Widest(point, certificate, replace(run, status=status))


# ------------------------------------------------------------------- rows of numbers


@dataclass(frozen=True)
class LinearRows:
    """Rows as they are."""

    X: Any

    def __getitem__(self, rows: Ints) -> "LinearRows":
        return LinearRows(self.X[rows])

    @property
    def features(self) -> LinearFeatures:
        """The rows as problems see them."""
        return LinearFeatures(self.X)

    def conflict(self, positive: Flags, free: bool) -> Overlap | None:
        """Return two equal rows of different classes, if there are any."""
        return conflict(self.X, positive, free)

    def vectors(self, free: bool) -> Any:
        """Return the vectors to search among."""
        return rescaled(self.X, 1.0, origin(self.X) if free else np.zeros(self.X.shape[1]))

    def place(
        self,
        found: Nearest,
        scale: float,
        signs: Floats,
        intercept: Intercept,
        along: Floats | None = None,
        in_any_case: bool = False,
    ) -> Point | None:
        """Return the plane along w, by default the point; None if it does not separate."""
        w = found.point if along is None else along
        placing, alpha = placed(self.X, signs, w, intercept), found.all_weights(len(signs))
        if in_any_case:
            placing = _scaled_anyhow(placing, alpha)
        if not placing.smallest > 0:
            return None
        norm = float(np.linalg.norm(found.point)) * scale
        if norm > 0:
            alpha *= alpha.sum() / norm / norm  # so that Σαyx = w
        return Point(w / placing.smallest, placing.intercept / placing.smallest, alpha * signs)


# ------------------------------------------------------------------- rows in feature space


@dataclass(frozen=True)
class FeatureSpaceRows:
    """Rows of a Gram matrix: kernel values K in float64, and vectors Z with ZZᵀ = K.

    Z is the Cholesky factor with pivoting of K, its diagonal scaled to 1. It stops where what is
    left of every row is rounding: at max(n, 100)·ε of its ‖φ(x)‖². What such a factor cannot give
    back, K − ZZᵀ, is then rounding too; where it is not, K is not positive semidefinite, and there
    is no feature space.
    """

    features: KernelFeatures
    K: Floats
    eps: float  # rounding of the kernel values
    kernel: Kernel
    given: Any  # what shows that two rows are equal

    @classmethod
    def of(
        cls,
        gram: Gram,
        X: Any,
        who: str = "HardMarginSVC",
        instead: str = "use SVC with a large C, which holds only parts of it",
    ) -> "FeatureSpaceRows":
        """Return all rows, with all their kernel values; refuse more than fit into memory.

        ``who`` asks for them, and ``instead`` says what else to do if they are too many.
        """
        kernel, prepared = gram.kernel, gram.exact
        if kernel.psd is False:
            raise ValueError(
                f"kernel={kernel!r} is not positive semidefinite: there is no feature space in "
                "which a plane could separate. SVC takes such kernels, without a certificate."
            )
        n, most = len(gram), int((gram.memory / (8 * MATRICES)) ** 0.5)
        if n > most:
            raise ValueError(
                f"{who} with a kernel holds {MATRICES} matrices as large as the Gram "
                f"matrix: {n} rows would take {8e-9 * MATRICES * n * n:.3g} GB, and "
                f"{1e-9 * gram.memory:.3g} GB are allowed, for {most} rows. Raise memory (in "
                f"bytes), take fewer rows, or {instead}."
            )
        # Half of the matrix is enough of a kernel, but a user's function may be none.
        other = prepared if kernel.psd else prepared[:]
        values = kernel.block(prepared, other, threads=gram.threads)
        given = gram.prepared.dtype
        if not kernel.psd and asymmetry(values) > np.sqrt(np.finfo(given).eps):
            raise ValueError(
                f"{kernel!r} is not symmetric, by {asymmetry(values):.2g} of its largest value, so "
                "it is not a kernel."
            )
        K = values.astype(np.float64, copy=False)
        if not kernel.psd:
            K = 0.5 * (K + K.T)
            # A user's function is asked for its values only once.
            gram = Gram(Precomputed(), K.astype(given), memory=gram.memory)
        features = KernelFeatures(gram, np.arange(len(K)))
        shown = K if kernel.takes_gram or kernel.takes_objects else X
        return cls(features, K, float(np.finfo(given).eps), kernel, shown)

    def __getitem__(self, rows: Ints) -> "FeatureSpaceRows":
        part, given = self.K[np.ix_(rows, rows)], self.given[rows]
        return FeatureSpaceRows(self.features.take(rows), part, self.eps, self.kernel, given)

    @property
    def sizes(self) -> Floats:
        """‖φ(x)‖ of each row."""
        return np.asarray(np.sqrt(np.maximum(self.K.diagonal(), 0.0)))

    @property
    def precision(self) -> float:
        """The part of ‖φ(x)‖² up to which directions are dropped."""
        return max(len(self.K), _LEAST) * self.eps

    @property
    def factor(self) -> Floats:
        """Z."""
        return self.factored[0]

    @cached_property
    def factored(self) -> tuple[Floats, Ints]:
        """Z, and the rows in which it is a lower triangle."""
        Z, pivots = factor_with_pivots(self.K, self.precision)
        if not self.kernel.psd:
            self._refuse_indefinite(Z)
        return Z, pivots

    def with_constant(self, constant: float) -> "FeatureSpaceRows":
        """Return the rows with one more feature, which is constant: K + constant²."""
        K = self.K + constant**2
        gram = Gram(Precomputed(), K, memory=self.features.gram.memory)
        return replace(self, features=KernelFeatures(gram, np.arange(len(K))), K=K)

    def _refuse_indefinite(self, Z: Floats) -> None:
        n, unit = len(self.K), np.where(self.sizes > 0, self.sizes, 1.0)
        worst = 0.0
        step = max(1, _BLOCK // n)
        for start in range(0, n, step):
            part = slice(start, start + step)
            left = (self.K[part] - Z[part] @ Z.T) / unit / unit[part, np.newaxis]
            worst = max(worst, float(np.abs(left).max()))
        if worst > _DOUBT * self.precision:
            raise indefinite(self.kernel, f" (by {worst:.2g} of its diagonal)")

    def conflict(self, positive: Flags, free: bool) -> Overlap | None:
        """Return two equal rows of different classes, if there are any."""
        pair = conflict(self.given, positive, free)
        if pair is None:
            return None
        one = pair.rows[positive[pair.rows]][0]
        return replace(pair, point=self.K[pair.rows, one] if free else np.zeros(2))

    def vectors(self, free: bool) -> Floats:
        """Return the vectors to search among."""
        return self.factor

    def place(
        self,
        found: Nearest,
        scale: float,
        signs: Floats,
        intercept: Intercept,
        in_any_case: bool = False,
    ) -> Point | None:
        """Return the plane of these weights; None if it separates by rounding only."""
        beta = found.all_weights(len(signs)) * signs
        scores = self.K[:, found.rows] @ beta[found.rows]
        placing = placed_scores(scores, signs, intercept)
        if in_any_case:
            placing = _scaled_anyhow(placing, beta * signs)
        if not placing.smallest > 0:
            return None
        beta /= placing.smallest
        return Point(beta, placing.intercept / placing.smallest, beta)


def _scaled_anyhow(placing: Placed, alpha: Floats) -> Placed:
    """Return the placing with y f = 1 at the nearest points found, if the plane does not separate.

    Its margin is then above that of any plane that does.
    """
    if placing.smallest > 0:
        return placing
    return placing._replace(smallest=0.5 * float(alpha @ placing.scores))


def refusal(answer: NoPlane, who: tuple[Any, Any], rows: Ints, advice: str) -> NotSeparableError:
    """Return the error that says which classes no plane separates, with the rows that prove it.

    ``rows`` are the numbers to call the rows by, and ``advice`` is a sentence on the way out.
    """
    first, second = who
    if answer.witness is None:
        return NotSeparableError(
            f"Whether a plane separates {first} from {second} is {answer.reason}."
        )
    witness = replace(answer.witness, rows=rows[answer.witness.rows])
    above, where = "", "in one point"
    if answer.reason:
        above = f" with a margin above {answer.reason}"
        where = "as nearly as kernel values tell"
    proof = f"{len(witness.rows)} rows of both meet {where}"
    if len(witness.rows) == 1 and not answer.reason:
        proof = f"row {witness.rows[0]} is zero, and a plane through the origin has it on no side"
    return NotSeparableError(
        f"No plane separates {first} from {second}{above}: {proof} (see the witness). {advice}",
        witness,
    )


def indefinite(kernel: Kernel, how: str = "") -> ValueError:
    """Return the error for kernel values that are not those of a kernel."""
    return ValueError(
        f"{kernel!r} is not positive semidefinite on these rows{how}, so there is no feature space "
        "to find a plane in: mm.check_kernel tells more and can repair a matrix. SVC takes such "
        "kernels, without a certificate."
    )


def _meeting(
    found: Nearest, rows: FeatureSpaceRows, positive: Flags, free: bool, run: Run
) -> NoPlane:
    """Return the rows that meet, as nearly as kernel values can tell."""
    met, weights = fewest(found.rows, found.weights, rows.factor, positive, free)
    K, sizes = rows.K[np.ix_(met, met)], rows.sizes[met]
    beta = np.where(positive[met], weights, -weights)
    size = float(weights @ sizes)
    apart = float(beta @ K @ beta)
    if apart > 4 * rows.precision * size**2:
        return NoPlane(None, "undecided at this precision", run)
    # No nearer than what may be rounding, which also makes squares negative.
    apart = float(np.sqrt(max(apart, 0.0) + 4 * rows.eps * size**2))
    point = K @ np.maximum(beta, 0.0) if free else np.zeros(len(met))
    witness = Overlap(met, weights, point, apart / max(float(sizes.max()), 1e-300), False)
    return NoPlane(witness, f"{apart / (1 + free):.2g}", run)
