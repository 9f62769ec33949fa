"""The separating plane of largest margin in the feature space of a kernel.

    min ½‖w‖²    s.t. y(w·φ(x) + b) ≥ 1

In coordinates Z of the rows (``FeatureRows``) it is the linear problem, and the nearest points of
the hulls give the duals; w = Σαyφ(x) and all that is said of it are then taken from kernel values.
These are rounded: hulls nearer to each other than rounding can tell, √(nε) of their size, count as
meeting, and the witness says how near they are.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from maxmargin import clock
from maxmargin._typing import Floats, Ints
from maxmargin.certificates.hard import certify_hard, placed_scores
from maxmargin.kernels import Kernel, Precomputed
from maxmargin.kernels.precomputed import asymmetry
from maxmargin.problems import losses
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, KernelProblem, Point, Problem, Run, Status
from maxmargin.separability.max_margin import (
    ACCURACY,
    BUDGETS,
    REASONS,
    NoPlane,
    Widest,
    judge_run,
)
from maxmargin.separability.overlap import fewest
from maxmargin.separability.result import Overlap
from maxmargin.separability.search import common_scale, search
from maxmargin.solve import Callback
from maxmargin.solvers.factor_newton import pivoted_factor
from maxmargin.solvers.min_norm_point import Hulls, Nearest

MATRICES = 5  # of n² doubles that are held at a time: K, its factor, and parts of both
_LEAST = 100  # rows from which on rounding grows with their number
_DOUBT = 100  # times the rounding: what is left of K then is no rounding
_BLOCK = 1 << 22  # numbers in a block of K − ZZᵀ


@dataclass(frozen=True)
class FeatureRows:
    """Some rows of a Gram matrix: kernel values K in float64, and vectors Z with ZZᵀ = K.

    Z is the Cholesky factor with pivoting of K, its diagonal scaled to 1. It stops where what is
    left of every row is rounding: at max(n, 100)·ε of its ‖φ(x)‖². What such a factor cannot give
    back, K − ZZᵀ, is then rounding too; where it is not, K is not positive semidefinite, and there
    is no feature space.
    """

    kernel: Kernel
    K: Floats
    eps: float  # rounding of the kernel values
    gram: Gram
    places: Ints  # in ``gram``

    @classmethod
    def of(cls, gram: Gram) -> "FeatureRows":
        """Return all rows, with all their kernel values."""
        kernel, prepared = gram.kernel, gram.exact
        # Half of the matrix is enough of a kernel, but a user's function may be none.
        other = prepared if kernel.psd else prepared[:]
        values = kernel.block(prepared, other, threads=gram.threads)
        if not kernel.psd and asymmetry(values) > np.sqrt(np.finfo(gram.prepared.dtype).eps):
            raise ValueError(
                f"{kernel!r} is not symmetric, by {asymmetry(values):.2g} of its largest value: it "
                "is no kernel."
            )
        K = values.astype(np.float64, copy=False)
        given = gram.prepared.dtype
        if not kernel.psd:
            K = 0.5 * (K + K.T)
            # A user's function is asked for its values only once.
            gram = Gram(Precomputed(), K.astype(given), memory=gram.memory)
        return cls(kernel, K, float(np.finfo(given).eps), gram, np.arange(len(K)))

    def __getitem__(self, rows: Ints) -> "FeatureRows":
        part = self.K[np.ix_(rows, rows)]
        return FeatureRows(self.kernel, part, self.eps, self.gram, self.places[rows])

    def __len__(self) -> int:
        return len(self.K)

    @property
    def sizes(self) -> Floats:
        """‖φ(x)‖ of each row."""
        return np.asarray(np.sqrt(np.maximum(self.K.diagonal(), 0.0)))

    @property
    def precision(self) -> float:
        """The part of ‖φ(x)‖² up to which directions are dropped."""
        return max(len(self), _LEAST) * self.eps

    @cached_property
    def vectors(self) -> Floats:
        """Z."""
        Z = pivoted_factor(self.K, self.precision)
        if not self.kernel.psd:
            self._refuse_indefinite(Z)
        return Z

    def _refuse_indefinite(self, Z: Floats) -> None:
        unit = np.where(self.sizes > 0, self.sizes, 1.0)
        worst = 0.0
        step = max(1, _BLOCK // len(self))
        for start in range(0, len(self), step):
            part = slice(start, start + step)
            left = (self.K[part] - Z[part] @ Z.T) / unit / unit[part, np.newaxis]
            worst = max(worst, float(np.abs(left).max()))
        if worst > _DOUBT * self.precision:
            raise self.indefinite(f" (by {worst:.2g} of its diagonal)")

    def indefinite(self, how: str = "") -> ValueError:
        """Return the error for kernel values that are not those of a kernel."""
        return ValueError(
            f"{self.kernel!r} is not positive semidefinite on these rows{how}, so that there is no "
            "space to find a plane in: mm.check_kernel tells more and can repair a matrix. SVC "
            "takes such kernels, uncertified."
        )


def widest_by_kernel(
    rows: FeatureRows,
    signs: Floats,
    intercept: Intercept,
    *,
    tol: float,
    max_iter: int,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> Widest | NoPlane:
    """Return the plane of largest margin to a relative duality gap, or why there is none.

    The parameters are those of ``widest``; the plane's w are the coefficients of the rows.
    """
    began = clock.now()
    positive, free = signs > 0, intercept is Intercept.FREE
    Z = rows.vectors
    left = None if max_time is None else max(max_time - (clock.now() - began), 0.0)
    found, run = search(
        Hulls.of(Z / common_scale(Z), positive, free),
        accuracy=min(ACCURACY, 0.1 * tol),
        max_iter=max_iter,
        max_time=left,
        callback=callback,
        verbose=verbose,
    )
    plane = _plane(found, rows, signs, intercept, tol, run)
    if plane is not None:
        return plane
    if run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if run.status in BUDGETS:
        return NoPlane(None, f"undecided: {REASONS[run.status]}", run)
    return _overlap(found, rows, Z, positive, intercept, run)


def hard_problem(rows: FeatureRows, signs: Floats, intercept: Intercept) -> KernelProblem:
    """Return what is solved."""
    free = intercept is Intercept.FREE
    groups = np.full(len(signs), 0 if free else -1)
    loss = losses.hard_margin(signs)
    return Problem.kernel(rows.gram, loss, rows.places, groups, np.zeros(int(free)))


def _plane(
    found: Nearest, rows: FeatureRows, signs: Floats, intercept: Intercept, tol: float, run: Run
) -> Widest | None:
    """Return the plane of these weights, certified; None if it separates by rounding only."""
    beta = np.zeros(len(signs))
    beta[found.rows] = found.weights * signs[found.rows]
    placing = placed_scores(rows.K[:, found.rows] @ beta[found.rows], signs, intercept)
    if not placing.smallest > 0:
        return None
    a, b = beta / placing.smallest, placing.intercept / placing.smallest
    problem = hard_problem(rows, signs, intercept)
    point = Point(problem.by_row(a), b, a)
    certificate = certify_hard(problem, point, keep_intercept=True)
    if not (np.isfinite(certificate.primal) and np.isfinite(a).all()):
        return None
    if certificate.refuted:  # looked at more closely, it is no kernel
        raise rows.indefinite()
    return Widest(a, b, np.abs(a), certificate, judge_run(run, certificate, tol))


def _overlap(
    found: Nearest,
    rows: FeatureRows,
    Z: Floats,
    positive: npt.NDArray[np.bool_],
    intercept: Intercept,
    run: Run,
) -> NoPlane:
    """Return the rows that meet, as nearly as kernel values can tell."""
    free = intercept is Intercept.FREE
    met, weights = fewest(found.rows, found.weights, Z, positive, free)
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


def conflicting(overlap: Overlap, rows: FeatureRows, signs: Floats, free: bool) -> NoPlane:
    """Return the pair of equal rows with its point in feature space."""
    i, j = overlap.rows
    one = i if signs[i] > 0 else j
    point = rows.K[overlap.rows, one] if free else np.zeros(2)
    witness = Overlap(overlap.rows, overlap.weights, point, 0.0, True)
    return NoPlane(witness, "", Run(Status.MEETING, 0, 0.0))
