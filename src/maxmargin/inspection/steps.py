"""How a model is found, step by step: the iterates of solvers, and the updates of a perceptron.

Steps are for watching. A slow method comes first, whose steps can be told apart, and then a fast
one, which goes on from there to the gap that the estimator asks for.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate, certify_with_duals
from maxmargin.loops.records import Rule
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.problem import Point, Status
from maxmargin.solve import Result
from maxmargin.solvers.decomposition import ON_MATRIX, Decomposition
from maxmargin.solvers.dual_cd import DualCD
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.perceptron import Counts, DualFunction, KernelLearner
from maxmargin.validation.data import generator

_MOST_STEPS = 60  # of either method
_BLOCKS = 25  # of rows, that the small working sets of a kernel machine make up


@dataclass(frozen=True, eq=False)
class SolverStep:
    """Where a solver stood.

    Attributes
    ----------
    method : str
        "coordinate descent" and "Newton" for linear machines, "small working sets" and "large
        working sets" for machines with a kernel.
    number : int
        Which step of the method it is, from 0, where the first method starts.
    block : int
        Rows in a small working set; 0 for linear machines.
    certificate : Certificate
        Bounds on the optimum that this step proves.
    """

    method: str
    number: int
    block: int
    certificate: Certificate
    point: Any
    machine: Any
    formulated: Any

    def model(self) -> Any:
        """Return the model that stopping at this step would give; it warns if that is too early."""
        done = self.certificate.relative_gap <= self.machine.tol
        status = Status.OPTIMAL if done else Status.MAX_ITER
        result = Result(self.point, self.certificate, status, self.number, 0.0, self.method)
        return copy(self.machine).adopt(self.formulated, [result])


def solver_steps(estimator: Any, X: Any, y: Any = None) -> Iterator[SolverStep]:
    """Solve the problem of a machine, and yield every step until its gap is reached.

    Parameters
    ----------
    estimator : LinearSVC, SVC, NuSVC, OneClassSVM or SVR
        The machine, with its ``tol``; of several classes, only the first problem is solved.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), optional
        Labels, or numbers for a regression.

    Yields
    ------
    SolverStep
        With its certificate, and the model at this step.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(40, random_state=0)
    >>> *_, last = solver_steps(mm.LinearSVC(), X, y)
    >>> last.certificate.relative_gap <= 1e-3, last.model().score(X, y) > 0.9
    (True, True)
    """
    machine = clone(estimator)
    formulated = machine.formulate(X, y)
    problem, tol, point = formulated.problems[0], float(estimator.tol), Point()
    linear = isinstance(problem.features, LinearFeatures)
    block = 0 if linear else max(2, len(problem) // _BLOCKS)
    ways = (_descend, _newton) if linear else (_take_small_sets, _take_large_sets)
    for way in ways:
        for method, number, at in way(problem, point, tol, block):
            certificate, beta = certify_with_duals(problem, at)
            point = replace(at, beta=beta)
            yield SolverStep(method, number, block, certificate, point, machine, formulated)
            if certificate.relative_gap <= tol:
                return


Visits = Iterator[tuple[str, int, Point]]


def _descend(problem: Any, start: Point, tol: float, block: int) -> Visits:
    # A round ends as soon as no row is worse than before, mostly after a single sweep.
    steps = DualCD(first=1e6, factor=1.0).steps(problem, start)
    for k, (at, _) in enumerate(islice(steps, _MOST_STEPS)):
        b = float(np.ravel(at.b)[0])
        yield "coordinate descent", k, Point(at.w.copy(), b, at.beta.copy())


def _newton(problem: Any, start: Point, tol: float, block: int) -> Visits:
    for k, at in enumerate(islice(Newton().iterates(problem, start), _MOST_STEPS)):
        yield "Newton", k + 1, Point(at.w.copy(), at.b, at.beta.copy())


def _take_small_sets(problem: Any, start: Point, tol: float, block: int) -> Visits:
    # Active-set steps would solve a small problem at once.
    pace = replace(ON_MATRIX, first_fresh=block, fresh=block, rounds=1)
    method = Decomposition(0.1 * tol, precise=True, most_free=0, pace=pace)
    for k, at in enumerate(islice(method.iterates(problem, start), _MOST_STEPS)):
        yield "small working sets", k, Point(at.w, at.b, at.beta)


def _take_large_sets(problem: Any, start: Point, tol: float, block: int) -> Visits:
    method = Decomposition(0.1 * tol, precise=True)
    again = method.iterates(problem, Point(None, 0.0, start.beta))
    for k, at in enumerate(islice(again, 1, _MOST_STEPS)):
        yield "large working sets", k + 1, Point(at.w, at.b, at.beta)


def update_rows(model: Any, X: Floats, y: npt.NDArray[Any]) -> Ints:
    """Return the row of each update of a fitted KernelPerceptron, by running it once more.

    Parameters
    ----------
    model : KernelPerceptron
        Fitted to these rows, of two classes, without ``warm_start``.
    X : ndarray of shape (n_samples, n_features)
        Rows.
    y : ndarray of shape (n_samples,)
        Labels.

    Returns
    -------
    ndarray of shape (n_updates,)
        Numbers of rows, in the order of updates.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(40, random_state=0)
    >>> model = mm.KernelPerceptron().fit(X, y)
    >>> len(update_rows(model, X, y)) == model.updates_
    True
    """
    n = len(y)
    learner = KernelLearner(
        DualFunction.zero(model.kernel_, 1),
        Rule(float(model.eta), float(model.margin), bool(model.fit_intercept)),
        X,
        (y == model.classes_[1]).astype(np.int64),
        np.ones(n),
        Counts(),
    )
    rng, rows = generator(model.random_state), np.arange(n)
    made = [rows[:0]]
    for _ in range(model.epochs_):
        order, before = rng.permutation(rows) if model.shuffle else rows, learner.now.coefficients
        for _ in learner.visit(order):
            pass
        # A row is visited once in an epoch, so that the change of its coefficient is its update.
        changed = (learner.now.coefficients != before).any(axis=1)
        made.append(order[changed[order]])
    return np.concatenate(made)
