"""A row is a support vector or it is not: counts agree with LIBSVM's where the dual is unique."""

from typing import Any

import numpy as np
import pytest
from sklearn import svm

import maxmargin as mm
from maxmargin.kernels import RBF, Laplacian, Linear, Polynomial
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Problem

MACHINES = ["SVC", "NuSVC", "SVR", "NuSVR", "QuantileSVR", "OneClassSVM", "HardMarginSVC"]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
_TRUSTED = 1e4  # condition of a Gram matrix up to which float32, LIBSVM's, tells duals from 0


class Fit:
    """Random rows and parameters, fitted by a machine of ours and by LIBSVM's."""

    def __init__(self, name: str, seed: int, kernel: Any = None) -> None:
        rng = np.random.default_rng([MACHINES.index(name), seed])
        while True:
            n, d = int(rng.integers(20, 100)), int(rng.integers(2, 6))
            self.X, gamma = rng.normal(size=(n, d)), float(10 ** rng.uniform(-0.5, 0.7))
            of_rows = kernel or (RBF, Laplacian)[rng.integers(2)](gamma=gamma)
            self.K = of_rows.gram(self.X)
            if kernel or np.linalg.cond(self.K) < _TRUSTED:
                break
        C, nu, epsilon = 10 ** rng.uniform(-2, 3), rng.uniform(0.1, 0.6), 10 ** rng.uniform(-3, -1)
        self.target = np.sin(2 * self.X[:, 0]) + 0.3 * rng.normal(size=n)
        if name.endswith("SVC"):
            self.target = np.where(self.X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1, -1)
            self.target[:4] = 1, 1, -1, -1
            nu = min(nu, 1.8 * np.mean(self.target == 1), 1.8 * np.mean(self.target == -1))
        ours, theirs = {
            "SVC": ({"C": C}, svm.SVC(C=C)),
            "NuSVC": ({"nu": nu}, svm.NuSVC(nu=nu)),
            "SVR": ({"C": C, "epsilon": epsilon}, svm.SVR(C=C, epsilon=epsilon)),
            "NuSVR": ({"C": C, "nu": nu}, svm.NuSVR(C=C, nu=nu)),
            "QuantileSVR": ({"C": C, "quantile": 0.5}, svm.SVR(C=C / 2, epsilon=0.0)),
            "OneClassSVM": ({"nu": nu}, svm.OneClassSVM(nu=nu)),
            "HardMarginSVC": ({}, svm.SVC(C=1e9)),
        }[name]
        self.ours = getattr(mm, name)(kernel=of_rows, tol=1e-10, **ours)
        self.ours.fit(self.X, self.target)
        theirs.set_params(kernel="precomputed", tol=1e-9, max_iter=10**6)
        self.theirs = theirs.fit(self.K, self.target)
        duals = np.abs(theirs.dual_coef_)
        bounded = name in ("SVC", "SVR", "NuSVR", "QuantileSVR")
        self.counted = int((duals > 1e-8 * (C if bounded else duals.max())).sum())

    def w2(self, model: Any) -> float:
        """Return ‖w‖² of a model."""
        beta = np.zeros(len(self.X))
        beta[model.support_] = np.ravel(model.dual_coef_)
        return float(beta @ self.K @ beta)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(3, 43), marks=pytest.mark.full)], ids=["few", "many"]
)
def test_as_many_support_vectors_as_libsvm(name: str, seeds: range) -> None:
    for seed in seeds:
        fit = Fit(name, seed)
        assert abs(len(fit.ours.support_) - fit.counted) <= 2, seed


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, 1.0, 1.0)], ids=["linear", "square"])
@pytest.mark.parametrize("name", ["SVC", "SVR", "NuSVR", "QuantileSVR"])
def test_where_duals_are_not_unique_weights_are(name: str, kernel: Any) -> None:
    fit = Fit(name, 0, kernel)
    assert fit.ours.certificate_.holds(1e-8)  # so that w is known to half of the digits
    assert fit.w2(fit.ours) == pytest.approx(fit.w2(fit.theirs), rel=1e-3)


def test_no_dual_of_a_page_is_rounding() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, 150))
    y = np.sin(x) + 0.2 * rng.standard_normal(150)
    model = mm.NuSVR(nu=0.6, C=10).fit(x[:, np.newaxis], y)
    assert 90 <= len(model.support_) <= 100
    assert abs(model.dual_coef_.sum()) <= 1e-12 * np.abs(model.dual_coef_).sum()
    assert np.abs(model.dual_coef_).sum() == pytest.approx(10 * 0.6 * 150, rel=1e-12)


def test_the_classes_of_crammer_and_singer_have_no_rounding() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [-0.5, 0.5])
    for C in (0.0014437632628468897, 0.0118, 0.49285797653210534):
        duals = np.abs(mm.LinearSVC(C=C, multi_class="crammer_singer").fit(X, y).dual_coef_)
        assert not ((duals > 0) & (duals < 1e-13 * duals.max())).any()


def test_duals_of_rounding_go_back_through_free_ones() -> None:
    y = np.repeat([1.0, -1.0], 3)
    problem = Problem.linear(np.eye(6), losses.hinge(y, np.ones(6)), Intercept.FREE)
    beta = np.array([1.0, 0.5, 1e-15, -1.0, -0.5 - 1e-15, -0.0])
    settled = problem.settled(beta)
    assert settled.tolist()[:1] + settled.tolist()[2:4] == [1.0, 0.0, -1.0]
    assert abs(settled.sum()) <= 1e-15
    long = Problem.linear(np.diag([1, 1, 1e12, 1, 1, 1]), problem.loss, Intercept.FREE)
    assert (long.settled(beta) == beta).all()  # a small dual of a long row counts
