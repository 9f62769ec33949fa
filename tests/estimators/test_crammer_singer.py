"""Crammer and Singer's machine: the gap closes, and independent solvers agree."""

import warnings
from collections.abc import Iterator
from typing import Any

import clarabel  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from maxmargin._typing import Floats
from maxmargin.certificates import certify, multiclass
from maxmargin.certificates.multiclass import MulticlassCertificate
from maxmargin.problems import losses
from maxmargin.problems.problem import (
    Intercept,
    Iterate,
    MulticlassProblem,
    Point,
    Problem,
    Status,
)
from maxmargin.solve import run_solver
from maxmargin.solvers.crammer_singer import SequentialDual

ALL = list(Intercept)


def certify_multiclass(*given: Any) -> MulticlassCertificate:
    found, _ = multiclass.certify_multiclass(*given)
    assert isinstance(found, MulticlassCertificate)
    return found


def made(
    seed: int, intercept: Intercept, *, n: int = 50, d: int = 5, K: int = 4, **more: Any
) -> MulticlassProblem:
    """Return overlapping classes with costs that differ."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, n)
    labels[:K] = np.arange(K)
    X = rng.standard_normal((n, d)) + rng.standard_normal((K, d))[labels] + 3 * rng.random(d)
    cost = rng.uniform(0.2, 2.0, n) * 10.0 ** rng.uniform(-1, 1)
    return MulticlassProblem.linear(X, labels.astype(np.int64), K, cost, intercept, **more)


def solved(problem: MulticlassProblem, tol: float = 1e-8, polish: int = 100, **more: Any) -> Any:
    """Solve by the loop that all solvers share."""
    anything: Any = problem, SequentialDual()
    found = run_solver(*anything, tol=tol, polish=polish, **more)
    assert found.run.status is Status.OPTIMAL
    return found.point


def certified(problem: MulticlassProblem, at: Any) -> MulticlassCertificate:
    return certify_multiclass(problem, at.w, at.b, at.beta)


def objective(problem: MulticlassProblem, W: Floats, b: Floats) -> float:
    """Return the objective by its definition."""
    f = np.asarray(problem.features.X @ W) + b
    own = f[np.arange(len(f)), problem.labels]
    claims = f + 1.0 - np.eye(problem.n_classes)[problem.labels]
    penalty = 0.5 * (W**2).sum()
    if problem.intercept is Intercept.PENALIZED:
        penalty += 0.5 * (b**2).sum() / problem.features.constant**2
    return float(penalty + problem.cost @ (claims.max(axis=1) - own))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", ALL)
def test_closes_the_gap(intercept: Intercept, dtype: Any, sparse: bool) -> None:
    problem = made(0, intercept, constant=2.0)
    X = problem.features.X.astype(dtype)
    problem = MulticlassProblem.linear(
        sp.csr_array(X * (abs(X) > 0.5)) if sparse else X,
        problem.labels, problem.n_classes, problem.cost, intercept, 2.0,
    )  # fmt: skip
    certificate = certified(problem, solved(problem))
    assert certificate.holds(1e-8)
    assert certificate.infeasibility < 1e-10
    assert certificate.max_kkt_violation < 1e-6
    assert certificate.drift < 1e-6


@pytest.mark.wide
@pytest.mark.parametrize("intercept", ALL)
def test_sweeps_alone_close_the_gap(intercept: Intercept) -> None:
    """More columns than a factorization would take, and many free duals: no Newton steps."""
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 2000), density=0.02, rng=rng, format="csr", dtype=np.float64)
    labels = rng.integers(0, 5, 400)
    problem = MulticlassProblem.linear(X, labels, 5, np.full(400, 1.0), intercept)
    assert certified(problem, solved(problem, tol=1e-6, polish=0)).holds(1e-6)


def reference(problem: MulticlassProblem) -> float:
    """Return the optimum as Clarabel finds it: variables (W, b, ξ), one row a constraint."""
    X = np.asarray(problem.features.X)
    (n, d), K = X.shape, problem.n_classes
    sizes = [d * K, K, n]
    penalised = problem.intercept is Intercept.PENALIZED
    penalty = problem.features.constant**-2 if penalised else 0.0
    P = sp.diags(np.repeat([1.0, penalty, 0.0], sizes)).tocsc()
    q = np.concatenate([np.zeros(d * K + K), problem.cost])
    own = np.eye(K)[problem.labels]
    left, right = [], []
    for k in range(K):  # 1 − δ + f_k − f_y ≤ ξ
        sign = np.eye(K)[k] - own
        weights = (X[:, :, np.newaxis] * sign[:, np.newaxis, :]).reshape(n, d * K)
        left.append(np.hstack([weights, sign, -np.eye(n)]))
        right.append(own[:, k] - 1.0)
    cones = [clarabel.NonnegativeConeT(n * K)]
    if problem.intercept is Intercept.NONE:
        left.append(np.hstack([np.zeros((K, d * K)), np.eye(K), np.zeros((K, n))]))
        right.append(np.zeros(K))
        cones.append(clarabel.ZeroConeT(K))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    found = clarabel.DefaultSolver(
        P, q, sp.csc_matrix(np.vstack(left)), np.concatenate(right), cones, options
    ).solve()
    return float(found.obj_val)


@pytest.mark.parametrize("seed", range(21))
def test_agrees_with_an_interior_point_method(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    n, d, K = (int(rng.integers(*ends)) for ends in ((8, 40), (1, 8), (2, 6)))
    problem = made(seed, ALL[seed % 3], n=n, d=d, K=K, constant=0.5 + seed % 2)
    certificate = certified(problem, solved(problem, tol=1e-10))
    expected = reference(problem)
    assert_allclose(certificate.primal, expected, rtol=1e-8)
    assert_allclose(certificate.dual, expected, rtol=1e-8)


@pytest.mark.parametrize("scaling", [0.5, 1.0, 10.0])
def test_not_worse_than_liblinear(scaling: float) -> None:
    X, y = load_iris(return_X_y=True)
    problem = MulticlassProblem.linear(
        X, y.astype(np.int64), 3, np.ones(len(y)), Intercept.PENALIZED, scaling
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LinearSVC(
            multi_class="crammer_singer", intercept_scaling=scaling, max_iter=100_000, tol=1e-6
        ).fit(X, y)
    ours = solved(problem)
    theirs = objective(problem, peer.coef_.T, peer.intercept_)
    assert objective(problem, ours.w, ours.b) <= theirs * (1 + 1e-9)
    assert_allclose(certified(problem, ours).primal, theirs, rtol=1e-3)


@pytest.mark.parametrize("intercept", ALL)
def test_two_classes_are_the_binary_machine_at_twice_the_cost(intercept: Intercept) -> None:
    """With u = w₁ − w₀, w₁ = −w₀ = u/2: the objective is half of ½‖u‖² + Σ 2C·hinge(y u·x)."""
    problem = made(3, intercept, K=2, constant=1.5)
    at = solved(problem)
    assert_allclose(at.w[:, 0], -at.w[:, 1], atol=1e-12)
    signs = np.where(problem.labels == 1, 1.0, -1.0)
    binary = Problem.linear(
        problem.features.X, losses.hinge(signs, 2 * problem.cost), intercept, 1.5
    )
    u, c = at.w[:, 1] - at.w[:, 0], float(at.b[1] - at.b[0])
    certificate = certify(binary, Point(u, c, 2 * at.beta[:, 1]))
    assert certificate.holds(1e-8)
    assert_allclose(certificate.primal, 2 * certified(problem, at).primal, rtol=1e-8)


@pytest.mark.parametrize("intercept", ALL)
def test_permuting_classes_permutes_weights(intercept: Intercept) -> None:
    problem = made(4, intercept)
    order = np.array([2, 0, 3, 1])
    renamed = MulticlassProblem.linear(
        problem.features.X, order[problem.labels], 4, problem.cost, intercept
    )
    ours, other = solved(problem), solved(renamed)
    assert_allclose(other.w[:, order], ours.w, atol=1e-8)
    assert_allclose(other.b[order], ours.b, atol=1e-7)


@pytest.mark.parametrize("intercept", ALL)
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_repetitions(seed: int, intercept: Intercept) -> None:
    """In any order; a weight of 0 is absence."""
    problem = made(10 + seed, intercept)
    times = np.random.default_rng(seed).integers(0, 4, 50)
    times[:4] = 1
    weighted = MulticlassProblem.linear(
        problem.features.X, problem.labels, 4, problem.cost * times, intercept
    )
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(50), times))
    repeated = MulticlassProblem.linear(
        problem.features.X[rows], problem.labels[rows], 4, problem.cost[rows], intercept
    )
    ours, other = solved(weighted), solved(repeated)
    assert_allclose(other.w, ours.w, atol=1e-8)
    assert_allclose(other.b, ours.b, atol=1e-8)
    assert not ours.beta[times == 0].any()


@pytest.mark.parametrize("intercept", ALL)
def test_forgeries_are_refused(intercept: Intercept) -> None:
    problem = made(6, intercept)
    at = solved(problem)
    rng = np.random.default_rng(0)
    assert certified(problem, at).holds(1e-8)
    noise = 0.05 * rng.standard_normal(at.w.shape)
    assert not certify_multiclass(problem, at.w + noise, at.b, at.beta).holds(1e-6)
    assert certify_multiclass(problem, at.w + noise, at.b, at.beta).drift > 1e-3
    assert not certify_multiclass(problem, at.w, at.b, 0.5 * at.beta).holds(1e-6)
    assert not certify_multiclass(problem, at.w, at.b, at.beta[:, ::-1]).holds(1e-6)
    greedy = certify_multiclass(problem, at.w, at.b, 10 * at.beta)
    assert not greedy.holds(1e-6)
    assert greedy.infeasibility > 0.1
    assert not certify_multiclass(problem, np.full_like(at.w, np.nan), at.b, at.beta).holds(1.0)
    flipped = MulticlassProblem.linear(
        problem.features.X, problem.labels[::-1].copy(), 4, problem.cost, intercept
    )
    assert not certified(flipped, at).holds(1e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("intercept", ALL)
def test_no_duals_certify_too_much(intercept: Intercept, seed: int) -> None:
    """Whatever is claimed, the bounds enclose the optimum."""
    problem = made(seed, intercept)
    optimum = certified(problem, solved(problem)).primal
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1.0, 1e3):
        W, b = rng.standard_normal((5, 4)) * size, rng.standard_normal(4)
        wild = certify_multiclass(problem, W, b, size * rng.standard_normal((50, 4)))
        assert wild.dual <= optimum * (1 + 1e-9)
        assert wild.primal >= optimum * (1 - 1e-9)


def budgeted(problem: MulticlassProblem, steps: int) -> Iterator[Iterate]:
    for count, bracket in enumerate(SequentialDual().iterates(problem)):
        yield bracket
        if count >= steps:
            return


@pytest.mark.parametrize("intercept", ALL)
def test_unscaled_columns_end_honestly(intercept: Intercept) -> None:
    problem = made(7, intercept, d=9)
    X = problem.features.X * 10.0 ** np.arange(-8, 9, 2)
    problem = MulticlassProblem.linear(X, problem.labels, 4, problem.cost, intercept)
    brackets = list(budgeted(problem, 400))
    last = brackets[-1]
    certificate = certified(problem, last)
    assert last.relative_gap < 1e-3
    assert_allclose(certificate.primal, last.primal, rtol=1e-6)
    assert_allclose(certificate.dual, last.dual, rtol=1e-6)
    primals, duals = [at.primal for at in brackets], [at.dual for at in brackets]
    assert max(duals) <= min(primals) * (1 + 1e-9)


@pytest.mark.parametrize("intercept", ALL)
def test_odd_problems(intercept: Intercept) -> None:
    """Rows of zeros, a class without rows, one class alone, no cost at all, one row."""
    problem = made(8, intercept)
    X = problem.features.X.copy()
    X[:10] = 0.0
    cost, labels = problem.cost, problem.labels
    for case in (
        MulticlassProblem.linear(X, labels, 4, cost, intercept),
        MulticlassProblem.linear(X, labels, 6, cost, intercept),
        MulticlassProblem.linear(X, np.zeros(50, np.int64), 3, cost, intercept),
        MulticlassProblem.linear(X, np.zeros(50, np.int64), 1, cost, intercept),
        MulticlassProblem.linear(X, labels, 4, np.zeros(50), intercept),
        MulticlassProblem.linear(X[20:21], labels[20:21], 4, cost[20:21], intercept),
        MulticlassProblem.linear(np.zeros((50, 3)), labels, 4, cost, intercept),
    ):
        at = solved(case)
        certificate = certified(case, at)
        # One class alone costs nothing at a b where others are level with it: rounding decides.
        assert certificate.gap <= 1e-8 * max(1.0, certificate.primal) or certificate.primal == 0


def test_the_middle_of_equally_good_intercepts() -> None:
    """Three classes at a distance: each pair's free interval is halved, as for two classes."""
    X = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    problem = MulticlassProblem.linear(X, np.arange(3), 3, np.full(3, 1e-3), Intercept.FREE)
    at = solved(problem)
    f = X @ at.w + at.b
    assert certified(problem, at).holds(1e-8)
    assert_allclose(f[1, 1] - f[1, 2], f[2, 2] - f[2, 1], rtol=1e-8)
    assert_allclose(at.b.sum() + at.w.sum(), 0.0, atol=1e-9)


@pytest.mark.parametrize("intercept", ALL)
def test_a_start_at_the_answer_ends_at_once(intercept: Intercept) -> None:
    problem = made(9, intercept)
    at = solved(problem)
    start = Point(beta=at.beta, b=at.b)
    first = next(SequentialDual().iterates(problem, start))
    assert first.relative_gap < 1e-6
    assert isinstance(first, Iterate)
