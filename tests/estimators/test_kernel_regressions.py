"""Reports of kernel machines that never returned, or returned nonsense: here each has an answer.

Each fit must end by itself, long before its time limit: certified, or with a warning that says how
far it got; and what it says is recomputed by the formulas of ``kernel_reference``.
"""

import warnings
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.problems.problem import Point, Status
from maxmargin.solvers.factor_newton import FactorNewton
from tests.support import kernel_reference as ref

ANSWERS = (Status.OPTIMAL, Status.STALLED, Status.ROUNDING)


def answered(model: Any, X: Any, y: Any, seconds: float = 20.0) -> Any:
    """Fit, and return the model: certified, or with a warning that says why not."""
    model.set_params(max_time=seconds)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert model.status_ in ANSWERS
    certified = model.status_ is Status.OPTIMAL
    assert certified == model.certificate_.holds(model.tol)
    assert certified or any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return model


def confirmed(model: Any, spec: ref.Spec, X: Any, y: Any, **parameters: Any) -> ref.Gap:
    """Return the gap, recomputed; both bounds must be those of the certificate."""
    machine = ref.stated(type(model).__name__, spec.gram(X), y, **parameters)
    found = ref.recomputed(model, machine, own_intercept=False)
    size = max(abs(found.primal), abs(found.dual))
    allowed = max(found.unsure * size, 1e-9 * size, found.nothing)
    assert abs(found.primal - model.certificate_.primal) <= allowed
    assert model.certificate_.dual <= found.primal + allowed
    if model.status_ is Status.OPTIMAL:
        assert found.within(1.1 * model.tol + found.unsure)
    return found


@pytest.mark.parametrize("large", [9999.0, 99999.0])
def test_a_constant_column_that_is_huge_sk4648(large: float) -> None:
    X, y = np.array([[1.0, large], [2.0, large]]), np.array([-1.0, 1.0])
    gamma = 1 / (2 * X.var())
    model = answered(mm.SVC(kernel="poly", degree=2), X, y)
    assert model.status_ is Status.OPTIMAL
    confirmed(model, ref.poly(2, gamma, 0.0), X, y)
    raw = answered(mm.SVC(kernel="poly", degree=2, gamma=1.0), X, y)
    confirmed(raw, ref.poly(2, 1.0, 0.0), X, y)


# The report's rows, of which two are nearly the same.
SIX = np.zeros((6, 13))
SIX[0, [2, 5, 6, 9]] = 0.3, 1.0, 0.625, 0.31865753
SIX[1, [5, 6, 9, 10, 12]] = 0.33333333, 0.61538462, 0.59230137, 1.0, 1.0
SIX[2, [9, 10]] = 0.31778082, 1.0
SIX[3, [0, 3, 4, 5, 7, 8, 9]] = 0.66666667, 0.5, 1.0, 0.8, 1.0, 0.5625, 0.36430137
SIX[4, [9, 10]] = 0.33638356, 1.0
SIX[5, [2, 5, 6, 9]] = 0.3, 1.0, 0.625, 0.31843836
SIX_LABELS = np.array([-1.0, 1.0, 1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_six_rows_of_nu_svc_sk13075(scale: float) -> None:
    X = scale * SIX
    model = answered(mm.NuSVC(kernel="poly", coef0=10.0, gamma="auto", nu=2 / 7), X, SIX_LABELS)
    assert model.status_ is Status.OPTIMAL
    confirmed(model, ref.poly(3, 1 / 13, 10.0), X, SIX_LABELS, nu=2 / 7)
    assert_array_equal(model.predict(X), SIX_LABELS)


@pytest.mark.parametrize(
    ("C", "degree", "gamma"),
    [
        (0.6652997139930452, 7, 4178.386000737241),
        (1.2346990434544882, 7, 4317.581190465473),
        (0.8156943235551155, 8, 864.1583649816441),
    ],
)
def test_iris_with_a_steep_polynomial_sk13557(C: float, degree: int, gamma: float) -> None:
    X, y = load_iris(return_X_y=True)
    model = answered(mm.SVC(C=C, kernel="poly", degree=degree, gamma=gamma), X, y)
    assert np.isfinite(model.decision_function(X)).all()
    # With kernel values up to 1e40, float64 proves nothing of an objective of 1e-32, and says so.
    # But duals of 1e-38 are found, and the classes are told apart.
    assert model.score(X, y) == 1.0
    two = y > 0
    labels = np.where(y[two] == 2, 1.0, -1.0)
    pair = answered(mm.SVC(C=C, kernel="poly", degree=degree, gamma=gamma), X[two], labels)
    confirmed(pair, ref.poly(degree, gamma, 0.0), X[two], labels, C=C)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("C", "degree", "gamma", "n"),
    [
        (100.0, 4, 0.96, 2500),
        (1e5, 9, 1.0, 400),
        (1e5, 15, 1.0, 400),
    ],
)
def test_one_column_and_a_large_c_ls225(C: float, degree: int, gamma: float, n: int) -> None:
    """One scaled column, labels that overlap, and costs for which LIBSVM alternates forever."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 1))
    y = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    model = answered(mm.SVC(C=C, kernel="poly", degree=degree, gamma=gamma), X, y, seconds=60)
    if n <= 400:
        confirmed(model, ref.poly(degree, gamma, 0.0), X, y, C=C)


def noise(scale: float) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    return scale * rng.standard_normal((547, 22)), scale * rng.standard_normal(547)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_nu_svr_on_547_rows_sk11079(scale: float) -> None:
    """The report's data is not public: as many rows and columns, of noise."""
    X, y = noise(scale)
    gamma = 0.01 / scale**2
    model = answered(mm.NuSVR(kernel="rbf", C=1000.0, gamma=gamma), X, y)
    assert model.status_ is Status.OPTIMAL
    confirmed(model, ref.rbf(gamma), X, y, C=1000.0)


def test_linear_nu_svr_on_547_rows_sk11079() -> None:
    X, y = noise(100.0)
    model = answered(mm.NuSVR(kernel="linear", C=1000.0), X, y)
    assert model.status_ is Status.OPTIMAL
    confirmed(model, ref.linear(), X, y, C=1000.0)


@pytest.mark.parametrize("scale", [0.01, 100.0])
@pytest.mark.parametrize("name", ["NuSVC", "NuSVR", "OneClassSVM"])
def test_nu_forms_of_low_rank_are_solved_by_newton(name: str, scale: float) -> None:
    """Pairs hardly get ahead on 300 rows of rank 4; the linear machine in the factor does."""
    rng = np.random.default_rng(3)
    X = scale * (rng.standard_normal((300, 3)) * [1.0, 10.0, 100.0] + 1.0)
    y = X @ [1.0, 0.1, 0.0] + scale * rng.standard_normal(300)
    y = np.where(y > np.median(y), 1.0, -1.0) if name == "NuSVC" else y
    model = getattr(mm, name)(kernel="linear", nu=0.7).fit(X, y)
    problem = model.solution(X, y)[0].problem
    *_, last = islice(FactorNewton().iterates(problem, Point()), 200)
    assert last.converged
    assert last.relative_gap <= 1e-8
    sums = [last.beta[problem.groups == g].sum() for g in range(len(problem.totals))]
    assert_allclose(sums, problem.totals, rtol=1e-12)
    assert (problem.loss.low <= last.beta).all()
    assert (last.beta <= problem.loss.high).all()


@pytest.mark.parametrize("name", ref.NAMES)
def test_a_kernel_that_overflows_says_the_way_out(name: str) -> None:
    rng = np.random.default_rng(0)
    X = 1e5 * rng.standard_normal((20, 3))
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    model = getattr(mm, name)(kernel="poly", degree=40, gamma=1.0)
    with pytest.raises(ValueError, match=r"degree=40.*Scale the columns"):
        model.fit(X, y)
    assert not hasattr(model, "dual_coef_")
