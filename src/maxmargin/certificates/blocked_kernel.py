"""Certificates of kernel machines whose rows live in blocks: on disk, or on a cluster.

The rows that have a dual are brought together, and all that duals prove is computed from these, by
the code for rows in memory (``quadratic``). What is left are the losses of all rows: one pass over
the blocks, in each of which kernel values with those few rows are computed: in float64, but for
rows that float32, with a bound on its errors, shows to be beyond the margin.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.certificates.blocked import best_intercept_of, bound_losses_of
from maxmargin.certificates.certificate import Certificate
from maxmargin.certificates.quadratic import (
    Claim,
    KernelEvaluation,
    certified,
    evaluate,
    rough_scores,
    sum_rounding,
)
from maxmargin.loops.records import Loss
from maxmargin.problems.blocked import take_rows
from maxmargin.problems.blocked_kernel import (
    BlockedKernelProblem,
    SupportDuals,
    Terms,
    compared,
    costly_rows,
)
from maxmargin.problems.duality import imbalances, within_groups
from maxmargin.problems.features import KernelFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Point
from maxmargin.problems.rounding import EPS, SCORES, Bounded
from maxmargin.rows.blocks import Block, Blocks


def certify_blocked_kernel(
    problem: BlockedKernelProblem, point: Point, *, keep_intercept: bool = False
) -> tuple[Certificate, SupportDuals]:
    """Return the certificate of the function that duals imply, and these duals as feasible ones.

    Afterwards the vector "score" of the blocks is w·φ(x) of each row that costs anything.
    """
    rows, values = point.beta
    if not len(rows):  # f = 0, of which any row is witness
        rows, values = np.zeros(1, np.int64), np.zeros(1)
    X, loss = take_rows(problem.blocks, rows)
    support = problem.of_rows(X, loss)
    beta, infeasibility = within_groups(loss, values, support.groups, support.totals)
    [own] = evaluate(support.features, [Claim(support, Point(beta, point.b, beta), beta)])
    used = np.flatnonzero(beta)
    terms = Terms(problem.kernel, X[used], beta[used])
    b = float(np.ravel(point.b)[0]) if len(support.totals) else 0.0
    _set_scores(problem.blocks, terms, rows[used], b)
    evaluated = BlockedKernelEvaluation(own, problem.blocks)
    off = imbalances(loss, beta, support.groups, support.totals)
    certificate = certified(evaluated, infeasibility, off, keep_intercept=keep_intercept)
    problem.blocks.renew("certified", "score_error")
    return certificate, SupportDuals(rows[used], beta[used])


class BlockedKernelEvaluation(NamedTuple):
    """A point of a kernel problem whose rows live in blocks: those with a dual are in memory."""

    own: KernelEvaluation  # of the rows with a dual
    blocks: Blocks

    @property
    def penalised(self) -> float:
        """0: the intercept is free, or there is none."""
        return 0.0

    @property
    def incomplete(self) -> bool:
        """Whether there was no time for some of the scores: then there is no certificate."""
        return False

    @property
    def norm2(self) -> Bounded:
        """‖w‖²."""
        return self.own.norm2

    @property
    def b(self) -> Floats:
        """The intercept; empty if there is none."""
        return self.own.b

    def implied_norm2(self, off: float = 0.0) -> Bounded:
        """Return ‖Σβφ‖²: sums are mended by duals that are not 0."""
        return self.own.implied_norm2(off)

    def apart(self, p: float, q: float) -> float:
        """Return ‖p·w − q·Σβφ‖."""
        return self.own.apart(p, q)

    def imbalance_cost(self, off: Floats) -> float:
        """Return what D loses at most while duals that are not 0 move by ``off`` in all."""
        return self.own.imbalance_cost(off)

    def bound_gains(self) -> tuple[Bounded, float]:
        """Return Σ tβ − ε|β| − ½ quadratic β², and the largest |β|."""
        return self.own.bound_gains()

    def best_intercepts(self) -> Floats:
        """Return the free intercept that makes the objective smallest."""
        return np.array([best_intercept_of(self.blocks, float(self.b[0]))])

    def bound_losses(self, b: Floats, near: float) -> tuple[Bounded, float]:
        """Return Σ ℓ(w·φ + b), and the worst violation of KKT."""
        return bound_losses_of(self.blocks, b, near)

    def store(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the intercepts, which are stored as they are."""
        return b, b

    def with_caveats(self, certificate: Certificate) -> Certificate:
        """Return the certificate with what is known against the kernel."""
        found = self.own.with_caveats(certificate)
        kernel = self.own.problem.features.kernel
        if kernel.psd is None and not found.caveat:
            count = len(self.own.problem)
            caveat = f"this takes {kernel!r} for positive semidefinite, as tested on {count} rows"
            found = dataclasses.replace(found, caveat=caveat)
        return found


# ------------------------------------------------------------------- scores


_NEAR = 0.01  # of a margin of 1, by which the best intercept may be elsewhere: looked at twice


def _set_scores(blocks: Blocks, terms: Terms, rows: Ints, b: float) -> None:
    """Set the vector "certified" to duals, and scores with bounds on their errors."""
    names = (*SCORES, "certified")
    blocks.renew(*names)
    work = float(blocks.n) * max(1, len(rows))
    blocks.map(_score, terms, rows, b, writes=names, numbers=work)


def _score(block: Block, terms: Terms, rows: Ints, b: float) -> None:
    own, size = slice(block.begin, block.end), block.end - block.begin
    value, error, beta = (block.vectors[name][own] for name in (*SCORES, "certified"))
    value[:], error[:], beta[:] = 0.0, 0.0, 0.0
    begin, end = np.searchsorted(rows, [block.first, block.first + size])
    beta[rows[begin:end] - block.first] = terms.coefficients[begin:end]
    loss, at = costly_rows(block)
    for some, both in compared(block, at, terms) if len(rows) else ():
        value[some], error[some] = _bounded_scores(terms, both, loss.take(some), b)


def _bounded_scores(terms: Terms, both: Any, loss: Loss, b: float) -> Bounded:
    """Return the scores of rows that come after those with coefficients.

    Those that certainly cost nothing if b is the intercept are computed in float32. Errors are
    those of ``quadratic``: of kernel values, and of their sums.
    """
    kernel, a, gram = terms.kernel, terms.coefficients, Gram(terms.kernel, both)
    count, n = len(a), len(gram) - len(a)
    features, column = KernelFeatures(gram, np.arange(len(gram))), np.zeros((len(gram), 1))
    column[:count, 0] = a
    rough = rough_scores(features, column, np.arange(count, count + n))
    value, error, at = np.zeros(n), np.zeros(n), np.arange(n)
    if rough is not None:
        value, error = rough.value[:, 0], rough.error[:, 0]
        residual, off = loss.target - (value + b), error + _NEAR
        pulled, pushed = (loss.high > 0) & (residual > -off), (loss.low < 0) & (residual < off)
        at = np.flatnonzero(pulled | pushed)
        if not len(at):
            return Bounded(value, error)
    exact = kernel.sharpened(gram.exact)
    rounding = np.asarray(kernel.rounding(exact), dtype=np.float64)
    right, left = exact[:count], exact[count + at]
    found, size = kernel.dot_with_magnitudes(left, right, a[:, np.newaxis])
    long = np.abs(a) * gram.lengths[:count]
    own = rounding[count + at] * long.sum() + rounding[:count] @ long
    value[at] = found[:, 0]
    error[at] = EPS * (sum_rounding(count) * size[:, 0] + own * gram.lengths[count + at])
    return Bounded(value, error)
