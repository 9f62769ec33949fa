"""The hard margin with kernels: its theorems, its certificate, and the witness where there is none.

``tests/estimators/test_hard_margin.py`` has the linear one.
"""

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

import maxmargin as mm
from maxmargin import kernels
from maxmargin._typing import Floats
from maxmargin.certificates.hard import certify_hard
from maxmargin.errors import NotSeparableError
from maxmargin.problems.features import KernelFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, KernelProblem, Point, Status
from maxmargin.separability import Overlap
from maxmargin.separability.max_margin import FeatureSpaceRows, hard_problem
from tests.estimators.test_hard_margin import quadratic_program

KERNELS: list[Any] = [
    kernels.RBF(0.7),
    kernels.RBF(5.0),
    kernels.Laplacian(0.5),
    kernels.Polynomial(3, 1.0, 1.0),
    kernels.Polynomial(2, 0.3, 2.0) + 0.5 * kernels.RBF(1.0),
    kernels.Cosine() * kernels.RBF(0.2),
]


def rings(n: int, seed: int, gap: float = 0.15) -> tuple[Floats, Floats]:
    """Return rows within a circle of radius 1.2 and outside of it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.where(np.linalg.norm(X, axis=1) > 1.2, 1.0, -1.0)
    y[:2] = [-1.0, 1.0]
    X[:2] = [[0.1, 0.2], [2.0, 0.3]]
    return X * (1 + gap * y[:, np.newaxis]), y


def others(n: int = 50) -> Floats:
    return np.random.default_rng(99).standard_normal((n, 2)) * 1.5


def reference(K: Floats, y: Floats, intercept: bool) -> tuple[float, Floats]:
    """Ask Clarabel for the optimum in coordinates of eigenvectors: ½‖w‖² and f of all rows."""
    values, vectors = np.linalg.eigh(K)
    Z = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b = quadratic_program(Z, y, intercept)
    return 0.5 * float(w @ w), np.asarray(Z @ w + b)


def scores(model: Any, X: Any) -> Floats:
    return np.asarray(model.decision_function(X))


def assert_same_function(one: Any, other: Any, X: Any, rtol: float = 1e-7) -> None:
    expected = scores(other, X)
    assert_allclose(scores(one, X), expected, rtol=0, atol=rtol * np.abs(expected).max())


# ------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_agrees_with_a_quadratic_program(kernel: Any, intercept: str) -> None:
    for n, seed in ((12, 0), (60, 1)):
        X, y = rings(n, seed)
        model = mm.HardMarginSVC(kernel=kernel, intercept=intercept).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        value, f = reference(kernel.gram(X), y, intercept == "free")
        assert_allclose(model.certificate_.primal, value, rtol=1e-9)
        assert_allclose(scores(model, X), f, atol=1e-7 * np.abs(f).max())


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_optimality_conditions_hold(kernel: Any, intercept: str) -> None:
    X, y = rings(120, 3)
    model = mm.HardMarginSVC(kernel=kernel, intercept=intercept).fit(X, y)
    f, K, alpha = scores(model, X), kernel.gram(X), model.alpha_
    assert_allclose((y * f).min(), 1.0, rtol=1e-8)
    assert_allclose(alpha * (1 - y * f), 0.0, atol=1e-7 * alpha.max())
    assert (alpha >= 0).all()
    assert_allclose(K @ (alpha * y) + model.intercept_, f, atol=1e-8 * np.abs(f).max())
    square = (alpha * y) @ K @ (alpha * y)
    assert_allclose(alpha.sum(), square, rtol=1e-7)  # P = D
    assert_allclose(model.margin_, 1 / np.sqrt(square), rtol=1e-7)
    assert_allclose(np.abs(model.distance(X)).min(), model.margin_, rtol=1e-7)
    if intercept == "free":
        assert_allclose(alpha @ y, 0.0, atol=1e-12 * alpha.sum())
    else:
        assert model.intercept_[0] == 0
    certificate = model.certificate_
    assert certificate.holds(1e-8)
    assert certificate.gap >= -1e-12 * certificate.primal
    assert certificate.infeasibility < 1e-12
    assert max(certificate.drift, certificate.max_kkt_violation) < 1e-7
    assert_allclose(certificate.primal, square / 2, rtol=1e-7)
    again = mm.certify(model, X, y)
    assert isinstance(again, mm.Certificate)
    assert again.holds(1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_dropping_all_other_rows_leaves_the_function(kernel: Any) -> None:
    X, y = rings(120, 4)
    model = mm.HardMarginSVC(kernel=kernel).fit(X, y)
    assert len(model.support_) < 120
    again = mm.HardMarginSVC(kernel=kernel).fit(X[model.support_], y[model.support_])
    assert_same_function(again, model, others())
    assert_array_equal(model.support_vectors_, X[model.support_])
    assert_array_equal(model.support_, np.flatnonzero(model.alpha_))
    assert_array_equal(model.dual_coef_[0], (model.alpha_ * y)[model.support_])
    assert_array_equal(model.support_kind_, "margin")
    assert model.n_support_.sum() == len(model.support_)


@pytest.mark.parametrize("kernel", KERNELS[:4], ids=str)
def test_a_factor_of_the_kernel_changes_the_margin_only(kernel: Any) -> None:
    X, y = rings(100, 5)
    model = mm.HardMarginSVC(kernel=kernel).fit(X, y)
    for factor in (1e-6, 0.3, 1e5):
        scaled = mm.HardMarginSVC(kernel=factor * kernel).fit(X, y)
        assert_array_equal(scaled.predict(others()), model.predict(others()))
        assert_same_function(scaled, model, others())
        assert_allclose(scaled.margin_, np.sqrt(factor) * model.margin_, rtol=1e-8)


def linear(n: int, d: int, seed: int) -> tuple[Any, Any]:
    return mm.datasets.separable(n, n_features=d, margin=0.2, random_state=seed)


@pytest.mark.parametrize("shape", [(5, 2), (60, 3), (40, 100)], ids=str)
@pytest.mark.parametrize("intercept", ["free", "none"])
def test_the_linear_kernel_by_its_matrix_is_the_linear_machine(
    shape: tuple[int, int], intercept: str
) -> None:
    X, y = linear(*shape, 0)
    weights: Any
    if intercept == "none":
        y = np.where(X @ np.ones(shape[1]) > 0, 1, -1)
    model = mm.HardMarginSVC(intercept=intercept).fit(X, y)
    rows = np.random.default_rng(1).standard_normal((30, shape[1]))
    product = mm.HardMarginSVC(kernel=lambda A, B: A @ B.T, intercept=intercept).fit(X, y)
    given = mm.HardMarginSVC(kernel="precomputed", intercept=intercept).fit(X @ X.T, y)
    poly = mm.HardMarginSVC(kernel="poly", degree=1, gamma=1.0, intercept=intercept).fit(X, y)
    for other, seen in ((product, rows), (given, rows @ X.T), (poly, rows)):
        assert_allclose(scores(other, seen), scores(model, rows), rtol=1e-6, atol=1e-7)
        assert_allclose(other.margin_, model.margin_, rtol=1e-8)
        assert_allclose(other.distance(seen), model.distance(rows), rtol=1e-6, atol=1e-7)
        assert not hasattr(other, "coef_")
        weights = (other.alpha_ * y) @ X
        assert_allclose(weights, model.coef_[0], atol=1e-7 * np.abs(weights).max())


def test_rbf_separates_any_distinct_rows() -> None:
    rng = np.random.default_rng(8)
    for n, d in ((2, 1), (40, 1), (150, 3), (100, 40)):
        X = rng.permutation(np.linspace(-3, 3, n))[:, np.newaxis] if d == 1 else (
            rng.standard_normal((n, d)))  # fmt: skip
        y = rng.permutation(np.arange(n) % 2)
        model = mm.HardMarginSVC(kernel="rbf", gamma=30.0 if d == 1 else 2.0).fit(X, y)
        assert model.score(X, y) == 1.0
        assert model.certificate_.holds(1e-8)


def test_soft_margins_become_this_one_at_the_largest_dual() -> None:
    X, y = rings(80, 9)
    hard = mm.HardMarginSVC(kernel="rbf", gamma=1.0).fit(X, y)
    soft = mm.SVC(kernel="rbf", gamma=1.0, C=1.01 * hard.alpha_.max(), tol=1e-9).fit(X, y)
    assert_same_function(soft, hard, others(), 1e-3)
    assert_allclose(soft.certificate_.primal, hard.certificate_.primal, rtol=1e-8)
    softer = mm.SVC(kernel="rbf", gamma=1.0, C=0.5 * hard.alpha_.max(), tol=1e-9).fit(X, y)
    assert softer.certificate_.primal < hard.certificate_.dual * (1 - 1e-6)


# ------------------------------------------------------------------- kernels of every kind


@pytest.mark.parametrize(
    "named",
    [
        {"kernel": "rbf"}, {"kernel": "poly", "coef0": 1.0}, {"kernel": "laplacian"},
        {"kernel": "poly", "degree": 2, "gamma": "auto", "coef0": 2}, {"kernel": "chi2"},
        {"kernel": kernels.RBF(1.0) + kernels.Linear()}, {"kernel": kernels.RBF()},
    ],
    ids=str,
)  # fmt: skip
def test_kernels_by_name_and_as_objects(named: dict[str, Any]) -> None:
    X, y = rings(80, 10)
    X = np.abs(X) if named["kernel"] == "chi2" else X
    model = mm.HardMarginSVC(**named).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.certificate_.holds(1e-8)
    assert isinstance(model.kernel_, kernels.Kernel)
    given = mm.HardMarginSVC(kernel="precomputed").fit(model.kernel_.gram(X), y)
    seen = np.abs(others())
    K = model.kernel_.gram(seen, X)
    assert_allclose(scores(given, K), scores(model, seen), rtol=1e-6, atol=1e-7)
    assert_array_equal(given.predict(K[:, given.support_]), model.predict(seen))
    assert given.support_vectors_.shape == (0, 80)
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = model.coef_


# ------------------------------------------------------------------- several classes, weights


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("given", [False, True])
def test_several_classes(scheme: str, given: bool) -> None:
    X, y = make_blobs(90, centers=[[0, 4], [4, 0], [0, 0]], cluster_std=0.7, random_state=0)
    names = np.array(["n", "e", "c"])[y]
    K = kernels.RBF(0.5).gram(X)
    rows, kernel = (K, "precomputed") if given else (X, kernels.RBF(0.5))
    model: Any = mm.HardMarginSVC(kernel=kernel, multi_class=scheme).fit(rows, names)
    assert model.alpha_.shape == (3, 90)
    assert np.shape(model.margin_) == model.intercept_.shape == (3,)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.distance(rows).shape == (90, 3)
    assert len(model.certificate_.parts) == 3
    assert model.certificate_.holds(1e-8)
    assert mm.certify(model, rows, names).holds(1e-8)  # type: ignore[union-attr]
    assert_array_equal(model.classes_[scores(model, rows).argmax(axis=1)], model.predict(rows))
    assert_array_equal(model.predict(rows), names)
    first = names == model.classes_[0]
    part = first | (names == model.classes_[1]) if scheme == "ovo" else np.full(90, True)
    alone = mm.HardMarginSVC(kernel="rbf", gamma=0.5).fit(X[part], first[part])
    assert_allclose(alone.margin_, model.margin_[0], rtol=1e-8)
    assert_allclose(alone.distance(X), model.distance(rows)[:, 0], atol=1e-7)


def test_gamma_counts_rows_by_their_weight() -> None:
    X, y = rings(60, 14)
    counts = np.random.default_rng(0).integers(0, 4, 60)
    weighted: Any = mm.HardMarginSVC(kernel="rbf").fit(X, y, counts)
    twice = np.repeat(np.arange(60), counts)
    repeated: Any = mm.HardMarginSVC(kernel="rbf").fit(X[twice], y[twice])
    assert_allclose(weighted.kernel_.gamma, repeated.kernel_.gamma, rtol=1e-12)
    assert_same_function(weighted, repeated, others())


# ------------------------------------------------------------------- no plane


def verify(error: Any, K: Any, y: Any) -> Overlap:
    """Check a witness with nothing but its definition, by kernel values."""
    meet = error.witness
    assert isinstance(meet, Overlap)
    assert (meet.weights >= 0).all()
    labels = np.asarray(y)[meet.rows]
    positive = labels == labels[0]
    assert_allclose([meet.weights[positive].sum(), meet.weights[~positive].sum()], 1.0)
    beta = np.where(positive, meet.weights, -meet.weights)
    square = beta @ K[np.ix_(meet.rows, meet.rows)] @ beta
    largest = np.sqrt(K.diagonal()[meet.rows].max())
    assert square <= (meet.residual * largest) ** 2 * (1 + 1e-9) + 1e-16 * largest**2
    assert meet.residual < 1e-6
    return meet


def test_classes_that_overlap_are_refused_with_a_witness() -> None:
    rng = np.random.default_rng(15)
    for n, d in ((60, 2), (500, 3)):
        X, y = rng.standard_normal((n, d)), rng.integers(0, 2, n)
        kernel = kernels.Polynomial(2, 1.0, 1.0)
        with pytest.raises(NotSeparableError, match="No plane separates 0 from 1") as raised:
            mm.HardMarginSVC(kernel=kernel).fit(X, y)
        assert "with a margin above" in str(raised.value)
        assert "Use SVC" in str(raised.value)
        meet = verify(raised.value, kernel.gram(X), y)
        assert len(meet.rows) <= (d + 1) * (d + 2) // 2 + 1
        assert not meet.exact
        assert meet.point.shape == meet.rows.shape


def test_without_an_intercept_the_signed_rows_balance_out() -> None:
    X, y = np.random.default_rng(0).standard_normal((50, 2)), np.arange(50) % 2
    with pytest.raises(NotSeparableError) as raised:
        mm.HardMarginSVC(kernel="poly", degree=2, intercept="none").fit(X, y)
    meet = raised.value.witness
    assert isinstance(meet, Overlap)
    assert_allclose(meet.weights.sum(), 1.0)
    assert_array_equal(meet.point, 0.0)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
def test_equal_rows_of_different_classes_are_the_witness(kernel: str) -> None:
    X, y = rings(70, 16)
    X[9], y[7], y[9] = X[7], 1.0, -1.0
    K = kernels.RBF(1.0).gram(X)
    K[9], K[:, 9] = K[7], K[:, 7]
    rows = K if kernel == "precomputed" else X
    with pytest.raises(NotSeparableError, match="2 rows of both meet in one point") as raised:
        mm.HardMarginSVC(kernel=kernel).fit(rows, y)
    meet = verify(raised.value, K, y)
    assert_array_equal(meet.rows, [7, 9])
    assert meet.exact
    assert meet.residual == 0
    model = mm.HardMarginSVC(kernel="rbf", gamma=1.0).fit(X, y, np.arange(70) != 9)
    assert model.score(X, y) == 69 / 70


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_margins_at_the_limit_of_kernel_values_are_certified_or_refused() -> None:
    """Two rows ever nearer to each other, and a third one all but orthogonal to both."""
    for apart in 10.0 ** -np.arange(0.0, 12.0):
        X = [[0.0], [apart], [5.0]]
        refused, model = None, mm.HardMarginSVC(kernel="rbf", gamma=1.0)
        try:
            model.fit(X, [0, 1, 1])
        except NotSeparableError as error:
            refused = error
        if refused is not None:
            assert apart < 1e-6
            bound = float(str(refused).split("margin above ")[1].split(":")[0])
            assert bound >= apart / np.sqrt(2) or apart > 1e-8
            continue
        assert model.score(X, [0, 1, 1]) == 1
        assert (model.status_ is Status.OPTIMAL) == model.certificate_.holds(1e-8)
        assert model.status_ is Status.OPTIMAL or apart < 2e-3
        off = -np.expm1(-(apart**2))
        value = 2 / (2 * off - off**2 / 2)  # ½‖w‖²
        if apart > 1e-7:
            assert 0.95 * model.certificate_.dual <= value <= 1.05 * model.certificate_.primal


# ------------------------------------------------------------------- what is no kernel


def test_indefinite_kernels_are_refused() -> None:
    X, y = rings(40, 17)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        mm.HardMarginSVC(kernel="sigmoid").fit(X, y)
    with pytest.raises(ValueError, match="not positive semidefinite on these rows"):
        mm.HardMarginSVC(kernel=lambda A, B: np.tanh(A @ B.T - 1.0)).fit(X, y)
    K = kernels.RBF(1.0).gram(X)
    values, vectors = np.linalg.eigh(K)
    for least in -(10.0 ** np.arange(-16.0, 2.0)):
        values[0] = least
        bent = (vectors * values) @ vectors.T
        model = mm.HardMarginSVC(kernel="precomputed")
        if least > -1e-11:  # rounding, or not
            with contextlib.suppress(ValueError):
                model.fit(0.5 * (bent + bent.T), y)
        else:
            with pytest.raises(ValueError, match="not positive semidefinite on these rows"):
                model.fit(0.5 * (bent + bent.T), y)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        mm.HardMarginSVC(kernel="precomputed").fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(ValueError, match="not symmetric"):
        mm.HardMarginSVC(kernel=lambda A, B: A @ B.T + A[:, :1]).fit(X, y)
    with pytest.raises(ValueError, match="not symmetric"):
        mm.HardMarginSVC(kernel="precomputed").fit(np.triu(K), y)


def test_singular_matrices_are_kernels() -> None:
    X, y = linear(60, 3, 2)
    for K in (X @ X.T, (X @ X.T).astype(np.float32)):
        model = mm.HardMarginSVC(kernel="precomputed", tol=1e-3).fit(K, y)
        assert model.score(K, y) == 1.0
        assert_allclose(model.margin_, 0.2, rtol=1e-3)
    with pytest.raises(NotSeparableError):
        mm.HardMarginSVC(kernel="precomputed").fit(np.ones((4, 4)), [0, 1, 0, 1])
    with pytest.raises(NotSeparableError):
        mm.HardMarginSVC(kernel="precomputed").fit(np.zeros((4, 4)), [0, 1, 0, 1])
    assert mm.HardMarginSVC(kernel="precomputed").fit(np.diag([1.0, 0.0]), [0, 1]).margin_ == 0.5


# ------------------------------------------------------------------- budgets and bad input


def test_many_rows_are_refused_before_any_work() -> None:
    X, y = rings(200, 18)
    with pytest.raises(ValueError, match=r"200 rows would take .* GB.*50 rows.*use SVC"):
        mm.HardMarginSVC(kernel="rbf", memory=5 * 8 * 50**2).fit(X, y)
    assert mm.HardMarginSVC(kernel="rbf", memory=5 * 8 * 200**2).fit(X, y).score(X, y) == 1
    assert mm.HardMarginSVC(memory=1).fit(*linear(50, 2, 0))  # linear needs no matrix


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"kernel": "rfb"}, ValueError, "rfb"), ({"kernel": 3}, TypeError, "kernel"),
        ({"kernel": "rbf", "gamma": -1.0}, ValueError, "gamma"),
        ({"kernel": "rbf", "gamma": "wide"}, TypeError, "gamma"),
        ({"kernel": "poly", "degree": -1}, ValueError, "degree"),
        ({"kernel": kernels.RBF(), "gamma": 2.0}, ValueError, "gamma"),
        ({"kernel": kernels.Precomputed() + 1.0}, ValueError, "precomputed"),
        ({"kernel": "rbf", "memory": 0}, ValueError, "memory"),
        ({"kernel": "rbf", "memory": "much"}, TypeError, "memory"),
        ({"kernel": "rbf", "n_jobs": 0}, ValueError, "n_jobs"),
    ],
)  # fmt: skip
def test_parameters_are_checked(wrong: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        mm.HardMarginSVC(**wrong).fit([[0.0], [1.0]], [0, 1])


def test_data_are_checked() -> None:
    X, y = rings(20, 0)
    model = mm.HardMarginSVC(kernel="precomputed")
    with pytest.raises(ValueError, match="square"):
        model.fit(X, y)
    with pytest.raises(TypeError, match="Sparse"):
        model.fit(sp.csr_array(np.eye(2)), [0, 1])
    model.fit(kernels.RBF(1.0).gram(X), y)
    with pytest.raises(ValueError, match="20 features"):
        model.predict(np.ones((3, 21)))
    with pytest.raises(ValueError, match="overflow"):
        mm.HardMarginSVC(kernel="poly", degree=9, gamma=1.0).fit([[1e80], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="20 rows, but X has 3"):
        mm.certify(mm.HardMarginSVC(kernel="rbf").fit(X, y), X[:3], y[:3])
    with pytest.raises(NotSeparableError):
        mm.HardMarginSVC(kernel="rbf", gamma=0.0).fit(X, y)


# ------------------------------------------------------------------- the certificate


class TestCertificate:
    X, y = rings(60, 20)
    kernel = kernels.RBF(1.0)

    def problem(self, signs: Any = None, kernel: Any = None) -> KernelProblem:
        signs = self.y if signs is None else signs
        rows = FeatureSpaceRows.of(Gram(self.kernel if kernel is None else kernel, self.X), self.X)
        return hard_problem(rows.features, signs, Intercept.FREE)

    def certified(self, signs: Any = None, kernel: Any = None, **changed: Any) -> Any:
        model = mm.HardMarginSVC(kernel=self.kernel).fit(self.X, self.y)
        a = model.alpha_ * self.y
        given: dict[str, Any] = {"w": a, "b": model.intercept_, "beta": a} | changed
        return certify_hard(self.problem(signs, kernel), Point(**given))

    def test_forgeries_are_refused(self) -> None:
        best = self.certified()
        alpha = mm.HardMarginSVC(kernel=self.kernel).fit(self.X, self.y).alpha_
        for changed in ({"signs": -self.y}, {"w": np.zeros(60)}, {"w": np.eye(60)[0]}):
            found = self.certified(**changed)
            assert found.primal == found.relative_gap == np.inf
            assert "does not separate" in str(found)
        for corrupted in (np.roll(alpha, 1), -alpha, np.zeros(60), alpha * (self.y > 0)):
            found = self.certified(beta=corrupted * self.y)
            assert found.dual < best.dual * (1 - 1e-6)
            assert not found.holds(1e-6)
        assert self.certified(b=[5.0]).intercept_cost == np.inf

    def test_an_indefinite_kernel_is_never_certified(self) -> None:
        rows = Gram(kernels.Sigmoid(1.0, 1.0), self.X)
        problem = self.problem()
        bent = replace(problem, features=KernelFeatures(rows, problem.features.rows))
        rng = np.random.default_rng(0)
        for _ in range(5):
            a = rng.random(60) * self.y
            assert not certify_hard(bent, Point(a, [0.0], a)).holds(1.0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_ctrl_c_keeps_the_planes_that_were_reached(kernel: str, scheme: str) -> None:
    """Planes of the classes after it are those of a moment, and the certificate claims nothing."""

    def interrupted(_: Any) -> bool:
        raise KeyboardInterrupt

    X, y = make_blobs(90, centers=3, cluster_std=2.0, random_state=0)
    model = mm.HardMarginSVC(kernel=kernel, multi_class=scheme, callback=interrupted)
    with pytest.raises(KeyboardInterrupt, match="does not separate all rows yet"):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.intercept_.shape == (3,)
    assert not model.certificate_.holds(1.0)
    assert model.score(X, y) > 0.5
