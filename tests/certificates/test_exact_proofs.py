"""What models claim about themselves is true in exact arithmetic; and the oracle can say no."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import maxmargin as mm
from maxmargin import kernels
from maxmargin.problems.problem import Status
from tests.support import exact_fits
from tests.support.exact import (
    ONE,
    exact,
    gram,
    lowest,
    read,
    relative_gap,
    rounded,
    times,
    violations,
)

X, Y = mm.datasets.gaussians(30, variance=0.3, random_state=0)
MANY, CLASSES = np.vstack([X, X + 1.0]), np.append(Y, Y + 2)
TARGETS = X[:, 0] - 0.5 * X[:, 1] ** 2
APART, SIDES = mm.datasets.separable(20, margin=0.2, random_state=0)

# ------------------------------------------------------------------- random fits

CHECKED = 600  # fits, as many as take half a minute
A_BLOCK = 200  # fits for each seed of a full run


@pytest.mark.parametrize("turn", range(len(exact_fits.ESTIMATORS)))
def test_claims_of_random_fits_are_true(turn: int) -> None:
    seeds = range(turn, CHECKED, len(exact_fits.ESTIMATORS))
    assert not (false := [line for *_, line in exact_fits.lines(seeds)]), "\n".join(false)


def test_the_rounding_of_a_division_by_the_margin_counts() -> None:
    """The margin of this NuSVC is 1e-11 of b, and its heaviest row weighs 10,000 × the total."""
    assert not [line for *_, line in exact_fits.lines([182_241])]


@pytest.mark.full
def test_claims_of_twenty_thousand_random_fits_are_true(seeds: range) -> None:
    """A block of fits for each seed: ``pytest -k twenty_thousand --seeds 3:4`` takes one block."""
    fits = range(A_BLOCK * seeds.start, A_BLOCK * seeds.stop)
    assert not (false := [line for *_, line in exact_fits.lines(fits)]), "\n".join(false)


# ------------------------------------------------------------------- the oracle itself


def test_numbers_are_taken_as_they_are() -> None:
    for value in (0.1, -3.7e-9, 2.0**60 + 512.0, 7):
        assert Fraction(exact(value), ONE) == Fraction(value)
    assert Fraction(exact(np.float32(0.1)), ONE) == Fraction(float(np.float32(0.1)))


@pytest.mark.parametrize("power", [1, 2])
def test_the_best_intercept_is_found(power: int) -> None:
    kinks = exact(np.array([-1.0, 0.25, 0.5, 3.0]))
    objective = partial(_distances, kinks=kinks, power=power)
    values = [objective(b) for b in exact(np.linspace(-2, 4, 601))]
    assert min(values) - ONE // 1000 < lowest(objective, kinks) <= min(values)


def _distances(b: int, kinks: Any, power: int) -> int:
    away = abs(kinks - b)
    return int(sum(times(away, away) if power == 2 else away))


KERNELS: list[kernels.Kernel] = [
    kernels.Linear(),
    kernels.Polynomial(3, 0.5, 1.0),
    kernels.RBF(0.7),
    kernels.Laplacian(0.7),
    kernels.ChiSquared(0.7),
    kernels.Intersection(),
    kernels.Cosine(),
    2.0 * kernels.RBF(0.1) * kernels.Linear() ** 2 + 1.0,
    kernels.Columns(kernels.Linear(), [1]),
    kernels.FromFunction(exact_fits.in_common),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: repr(kernel)[:30])
def test_kernel_values_are_those_of_the_kernels(kernel: kernels.Kernel) -> None:
    rows = np.abs(X[:8])
    values = [[rounded(value) for value in row] for row in gram(kernel, rows)]
    assert_allclose(values, kernel.gram(rows), rtol=1e-13, atol=1e-15)


def test_the_hard_margin_of_two_points_is_known_exactly() -> None:
    for model in (mm.HardMarginSVC(), mm.SVC(kernel="linear", C=10), mm.LinearSVC(C=10)):
        (part,) = read(model.fit([[-1.0], [1.0]], [0, 1]), np.array([[-1.0], [1.0]]), [0, 1])
        assert part.primal == part.dual == ONE // 2
        assert relative_gap(part) == 0


EASY: dict[str, tuple[Any, Any, Any]] = {
    "SVC": (mm.SVC(C=2.0), X, Y),
    "SVC of four classes": (mm.SVC(kernel="poly", coef0=1.0, degree=2), MANY, CLASSES),
    "SVC against the rest": (mm.SVC(gamma=0.3, multi_class="ovr"), MANY, CLASSES),
    "SVC by weights": (mm.SVC(kernel="linear", class_weight="balanced"), X, Y),
    "SVR": (mm.SVR(C=2.0, epsilon=0.1), X, TARGETS),
    "SVR by weights": (mm.SVR(kernel="linear", fit_intercept=False), X, TARGETS),
    "NuSVC": (mm.NuSVC(nu=0.4), X, Y),
    "NuSVC of four classes": (mm.NuSVC(nu=0.4, gamma=0.3), MANY, CLASSES),
    "NuSVR": (mm.NuSVR(nu=0.4), X, TARGETS),
    "QuantileSVR": (mm.QuantileSVR(quantile=0.8), X, TARGETS),
    "QuantileSVR by weights": (
        mm.QuantileSVR(quantile=0.3, kernel="linear", C=0.1), X, TARGETS),
    "OneClassSVM": (mm.OneClassSVM(nu=0.3), X, None),
    "LinearSVC": (mm.LinearSVC(), X, Y),
    "one against the rest": (mm.LinearSVC(loss="squared_hinge"), MANY, CLASSES),
    "one against one": (mm.LinearSVC(multi_class="ovo", intercept="none"), MANY, CLASSES),
    "joint": (mm.LinearSVC(multi_class="crammer_singer"), MANY, CLASSES),
    "joint, penalized": (
        mm.LinearSVC(multi_class="crammer_singer", intercept="penalized"), MANY, CLASSES),
    "l1": (mm.LinearSVC(penalty="l1", loss="squared_hinge"), X, Y),
    "l1 and hinge": (mm.LinearSVC(penalty="l1"), X, Y),
    "l1 and hinge, one against one": (
        mm.LinearSVC(penalty="l1", multi_class="ovo", intercept="penalized"), MANY, CLASSES),
    "elastic net and hinge": (
        mm.LinearSVC(penalty="elasticnet", intercept="none"), MANY, CLASSES),
    "elastic net": (
        mm.LinearSVC(penalty="elasticnet", loss="squared_hinge", intercept="penalized"), X, Y),
    "LinearSVR": (mm.LinearSVR(epsilon=0.1), X, TARGETS),
    "squared LinearSVR": (
        mm.LinearSVR(loss="squared_epsilon_insensitive", intercept="penalized"), X, TARGETS),
    "HardMarginSVC": (mm.HardMarginSVC(), APART, SIDES),
    "HardMarginSVC with a kernel": (mm.HardMarginSVC(kernel="rbf"), APART, SIDES),
}  # fmt: skip


@pytest.mark.parametrize("name", EASY)
def test_objectives_agree_with_float64_where_that_is_easy(name: str) -> None:
    model, rows, y = EASY[name]
    weight = np.tile([1.0, 0.0, 2.0, 1.0, 0.5], len(rows) // 5)
    for sample_weight in (None, weight):
        model.set_params(tol=1e-6).fit(rows, y, sample_weight=sample_weight)
        parts = read(model, rows, y, sample_weight)
        certificates = model.certificate_.parts or (model.certificate_,)
        assert len(parts) == len(certificates)
        for part, certificate in zip(parts, certificates, strict=True):
            assert part.primal is not None
            assert_allclose(rounded(part.primal), certificate.primal, rtol=1e-8)
            assert_allclose(rounded(part.dual), certificate.dual, rtol=1e-8)
            assert part.dual <= part.primal
            least = part.least() if part.least else part.primal
            assert least is not None
            assert part.dual <= least <= part.primal


# ------------------------------------------------------------------- it refutes what is false

Forgery = Callable[[Any], None]


def more_dual(model: Any) -> None:
    model.dual_coef_ = model.dual_coef_ * 1.5


def other_signs(model: Any) -> None:
    model.dual_coef_ = -model.dual_coef_


def other_intercept(model: Any) -> None:
    model.intercept_ = model.intercept_ + 0.01


def forged(**changes: Any) -> Forgery:
    def forge(model: Any) -> None:
        claimed = {name: change(model.certificate_) for name, change in changes.items()}
        model.certificate_ = dataclasses.replace(model.certificate_, **claimed)

    return forge


FORGERIES: dict[str, tuple[Forgery, set[str]]] = {
    "duals above their bound": (more_dual, {"box", "dual"}),
    "duals of the other sign": (other_signs, {"sign", "dual", "slacks"}),
    "another intercept": (other_intercept, {"primal", "optimal", "holds", "sentence"}),
    "a dual too high": (forged(dual=lambda own: 1.1 * own.dual), {"dual"}),
    "a primal too low": (forged(primal=lambda own: 0.9 * own.primal), {"primal"}),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_the_oracle_refutes_forgeries(name: str) -> None:
    model = mm.SVC(C=0.5, tol=1e-5).fit(X, Y)
    forge, claims = FORGERIES[name]
    before = {violation.claim for violation in violations(model, X, Y)}
    assert before <= {"primal", "dual", "distance", "sentence"}, before
    forge(model)
    assert claims <= {violation.claim for violation in violations(model, X, Y)}


@pytest.mark.parametrize("name", EASY)
def test_the_oracle_refutes_an_optimum_that_is_none(name: str) -> None:
    model, rows, y = EASY[name]
    model.set_params(tol=1e-6).fit(rows, y)
    model.intercept_ = model.intercept_ + 0.1 * np.arange(1, 1 + len(model.intercept_))
    model.status_ = Status.OPTIMAL
    claims = {violation.claim for violation in violations(model, rows, y)}
    assert claims & {"optimal", "intercept"}, claims


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_oracle_refutes_a_gap_that_is_not_closed() -> None:
    model = mm.SVC(C=100.0, max_iter=1, kernel="precomputed").fit(X @ X.T, Y)
    forged(dual=lambda own: own.primal, distance_bound=lambda own: 0.0)(model)
    model.status_ = Status.OPTIMAL
    claims = {violation.claim for violation in violations(model, X @ X.T, Y)}
    assert claims >= {"optimal", "holds", "dual", "distance", "sentence", "slacks"}


def test_the_oracle_refutes_a_plane_that_does_not_separate() -> None:
    model = mm.HardMarginSVC().fit(APART, SIDES)
    model.intercept_ = model.intercept_ + 10.0
    assert any("infinite" in str(violation) for violation in violations(model, APART, SIDES))
