"""certify: the bracket holds the optimum of a model's own objective, and forgeries are refused."""

import warnings
from fractions import Fraction
from typing import Any

import clarabel  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.certificates import Certificate, together
from maxmargin.certificates import quadratic as kernel_certificates
from maxmargin.inspection.foreign import PerceptronFacts

TIGHT: dict[str, Any] = {"tol": 1e-9, "max_iter": 1_000_000}
SGD: dict[str, Any] = {
    "learning_rate": "invscaling", "eta0": 0.02, "power_t": 0.3, "average": True, "tol": None,
    "random_state": 0,
}  # fmt: skip


def proof(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    found = mm.certify(model, X, y, sample_weight)
    assert isinstance(found, Certificate)
    return found


def fitted(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit without being told that the optimum was not reached: that is for certify to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=sample_weight)


# ------------------------------------------------------------------- the reference


def optimum(
    X: Floats,
    y: Floats,
    cost: Floats,
    *,
    loss: str = "hinge",
    epsilon: float = 0.0,
    intercept: str = "free",
    lift: float = 1.0,
    l1_ratio: float = 0.0,
) -> float:
    """Ask Clarabel for the least penalty + Σ loss; unknowns are w, b, the slacks ξ and u ≥ |w|."""
    n, d = X.shape
    squared = "squared" in loss
    size = d + 1 + n + d
    w, b = np.eye(d, size), np.eye(1, size, d)
    slack, u = np.eye(n, size, d + 1), np.eye(d, size, d + 1 + n)
    f = X @ w + b
    on_b = 1 / lift**2 if intercept == "penalized" else 0.0
    quadratic = (1 - l1_ratio) * w.sum(axis=0) + on_b * b[0] + 2 * squared * cost @ slack
    linear = l1_ratio * u.sum(axis=0) + (not squared) * cost @ slack
    above, least = [slack], [np.zeros(n)]
    if "hinge" in loss:
        above.append(y[:, np.newaxis] * f + slack)
        least.append(np.ones(n))
    else:
        above += [slack - f, slack + f]
        least += [-y - epsilon, y - epsilon]
    if l1_ratio:
        above += [u - w, u + w]
        least.append(np.zeros(2 * d))
    # What does not matter is fixed at 0, lest it wander.
    fixed = np.vstack([b] * (intercept == "none") + [u] * (l1_ratio == 0) + [np.zeros((0, size))])
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    rows = sum(map(len, above))
    found = clarabel.DefaultSolver(
        sp.csc_matrix(np.diag(quadratic)),
        linear,
        sp.csc_matrix(np.vstack([*(-part for part in above), fixed])),
        np.concatenate([*(-part for part in least), np.zeros(len(fixed))]),
        [clarabel.NonnegativeConeT(rows), clarabel.ZeroConeT(len(fixed))],
        options,
    ).solve()
    assert "Solved" in str(found.status)
    return float(found.obj_val)


def features(K: Floats) -> Floats:
    """Return rows whose products are K."""
    values, vectors = np.linalg.eigh(K)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def assert_brackets(certificate: Certificate, best: float, within: float) -> None:
    slack = 1e-7 * max(abs(best), 1.0)
    assert certificate.dual <= best + slack
    assert certificate.primal >= best - slack
    assert certificate.gap >= -slack
    assert certificate.relative_gap <= within


# ------------------------------------------------------------------- data

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3)) + 0.5
Y = np.where(X @ [1.0, -2.0, 0.5] + RNG.normal(size=40) > 0, 1.0, -1.0)
T = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=40) + 4
WEIGHT = RNG.integers(0, 4, 40).astype(float)
iris, species = (part[::3] for part in load_iris(return_X_y=True))


# ------------------------------------------------------------------- kernel machines

KERNELS: dict[str, tuple[dict[str, Any], Any]] = {
    "linear": ({"kernel": "linear"}, lambda X: X @ X.T),
    "rbf": (
        {"gamma": 0.7},
        lambda X: np.exp(-0.7 * ((X[:, np.newaxis] - X) ** 2).sum(axis=2)),
    ),
    "poly": (
        {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
        lambda X: (0.5 * X @ X.T + 1) ** 2,
    ),
    "callable": ({"kernel": lambda A, B: (A @ B.T + 1) ** 2}, lambda X: (X @ X.T + 1) ** 2),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_svc_is_bracketed(kernel: str, C: float) -> None:
    parameters, gram = KERNELS[kernel]
    best = optimum(features(gram(X)), Y, np.full(40, C))
    for tol, within in ((1e-1, 1.0), (1e-8, 1e-4)):
        assert_brackets(proof(SVC(C=C, tol=tol, **parameters).fit(X, Y), X, Y), best, within)


@pytest.mark.parametrize("kernel", KERNELS)
def test_svr_is_bracketed(kernel: str) -> None:
    parameters, gram = KERNELS[kernel]
    best = optimum(features(gram(X)), T, 2.0 * WEIGHT, loss="epsilon_insensitive", epsilon=0.2)
    if kernel == "callable":  # scikit-learn forgets which rows these are: see below
        return
    model = SVR(C=2.0, epsilon=0.2, tol=1e-8, **parameters).fit(X, T, WEIGHT)
    assert_brackets(proof(model, X, T, WEIGHT), best, 1e-4)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0, 2: 0.5}])
def test_every_pair_of_classes_is_bracketed(kernel: str, class_weight: Any) -> None:
    parameters, gram = KERNELS[kernel]
    weight = np.random.default_rng(1).integers(1, 4, len(species)).astype(float)
    model = SVC(class_weight=class_weight, tol=1e-8, **parameters).fit(iris, species, weight)
    found = proof(model, iris, species, weight)
    assert_allclose(found.primal, sum(part.primal for part in found.parts))
    pairs = [(0, 1), (0, 2), (1, 2)]
    for part, (i, j) in zip(found.parts, pairs, strict=True):
        rows = (species == i) | (species == j)
        cost = (model.class_weight_[species] * weight)[rows]
        sign = np.where(species[rows] == i, 1.0, -1.0)
        assert_brackets(part, optimum(features(gram(iris[rows])), sign, cost), 1e-4)


def test_precomputed_is_the_same_as_computed() -> None:
    K = X @ X.T
    given_matrix = proof(SVC(kernel="precomputed", tol=1e-8).fit(K, Y), K, Y)
    computed = proof(SVC(kernel="linear", tol=1e-8).fit(X, Y), X, Y)
    assert_allclose(given_matrix.primal, computed.primal, rtol=1e-7)
    assert given_matrix.holds(1e-4)
    single = K.astype(np.float32)
    assert proof(SVC(kernel="precomputed").fit(single, Y), single, Y).holds(1e-2)


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        SVC(kernel="linear"),
        SVC(kernel="precomputed"),
        LinearSVC(C=0.01, fit_intercept=False),
        LinearSVC(C=10.0, intercept_scaling=2.0),
        SGDClassifier(loss="squared_hinge", max_iter=2, tol=None),
    ],
    ids=repr,
)
def test_the_primal_is_that_of_the_model_as_it_predicts(model: Any) -> None:
    """In scikit-learn 1.9, weights of 0 make a precomputed kernel predict from the wrong rows."""
    rows = X @ X.T if getattr(model, "kernel", "") == "precomputed" else X
    fitted(model, rows, Y, WEIGHT)
    found = proof(model, rows, Y, WEIGHT)
    slack = np.maximum(0, 1 - Y * model.decision_function(rows))
    if isinstance(model, SVC):
        total = model.C * WEIGHT @ slack
        K = X @ X.T if model.kernel != "rbf" else mm.kernels.RBF(model._gamma).gram(X)
        if model.kernel == "precomputed":
            K = K[np.ix_(model.support_, model.support_)]
        else:
            chosen = np.flatnonzero(WEIGHT > 0)[model.support_]
            K = K[np.ix_(chosen, chosen)]
        norm2 = model.dual_coef_[0] @ K @ model.dual_coef_[0]
    else:
        C = model.C if isinstance(model, LinearSVC) else 1 / (len(Y) * model.alpha)
        total = C * WEIGHT @ slack**2
        norm2 = (model.coef_**2).sum()
        if isinstance(model, LinearSVC):
            norm2 += np.sum(model.intercept_**2) / model.intercept_scaling**2
    assert_allclose(found.primal, 0.5 * norm2 + total, rtol=1e-9)


# ------------------------------------------------------------------- linear machines


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept_scaling", [0.0, 1.0, 5.0])
def test_linear_svc_is_bracketed(loss: str, intercept_scaling: float) -> None:
    parameters: dict[str, Any] = {"loss": loss, "C": 3.0, "class_weight": "balanced"}
    if intercept_scaling:
        parameters["intercept_scaling"] = intercept_scaling
    else:
        parameters["fit_intercept"] = False
    totals = np.array([WEIGHT[Y < 0].sum(), WEIGHT[Y > 0].sum()])
    cost = 3.0 * WEIGHT * (WEIGHT.sum() / (2 * totals))[(Y > 0).astype(int)]
    kept = cost > 0
    best = optimum(
        X[kept],
        Y[kept],
        cost[kept],
        loss=loss,
        intercept="penalized" if intercept_scaling else "none",
        lift=intercept_scaling or 1.0,
    )
    for settings_, within in (({"max_iter": 2}, 1.0), (TIGHT, 1e-5)):
        model = fitted(LinearSVC(**parameters, **settings_), X, Y, WEIGHT)
        assert_brackets(proof(model, X, Y, WEIGHT), best, within)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("make", ["liblinear", "sgd"])
def test_every_class_against_the_rest_is_bracketed(loss: str, make: str) -> None:
    """The weight of a class counts where it is the positive one."""
    factors = {0: 2.0, 1: 1.0, 2: 0.5}
    model: Any = LinearSVC(loss=loss, class_weight=factors, **TIGHT)
    C = 1.0
    if make == "sgd":
        model = SGDClassifier(loss=loss, alpha=0.01, class_weight=factors, max_iter=3000, **SGD)
        C = 1 / (0.01 * len(species))
    scaled = (iris - iris.mean(axis=0)) / iris.std(axis=0)
    found = proof(fitted(model, scaled, species), scaled, species)
    assert len(found.parts) == 3
    for k, part in enumerate(found.parts):
        sign = np.where(species == k, 1.0, -1.0)
        cost = C * np.where(species == k, factors[k], 1.0)
        intercept = "penalized" if make == "liblinear" else "free"
        best = optimum(scaled, sign, cost, loss=loss, intercept=intercept)
        assert_brackets(part, best, 1e-5 if make == "liblinear" else 0.2)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_svr_is_bracketed(loss: str, fit_intercept: bool) -> None:
    parameters: dict[str, Any] = {"loss": loss, "epsilon": 0.1, "C": 2.0}
    kept = WEIGHT > 0
    best = optimum(
        X[kept],
        T[kept],
        2.0 * WEIGHT[kept],
        loss=loss,
        epsilon=0.1,
        intercept="penalized" if fit_intercept else "none",
    )
    for settings_, within in (({"max_iter": 1}, 1.0), (TIGHT, 1e-5)):
        model = LinearSVR(fit_intercept=fit_intercept, **parameters, **settings_)
        assert_brackets(proof(fitted(model, X, T, WEIGHT), X, T, WEIGHT), best, within)


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        ("hinge", "l2"),
        ("squared_hinge", "l2"),
        ("squared_hinge", "l1"),
        ("hinge", "l1"),
        ("hinge", "elasticnet"),
        ("squared_hinge", "elasticnet"),
    ],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sgd_is_bracketed(loss: str, penalty: str, fit_intercept: bool) -> None:
    parameters: dict[str, Any] = {"loss": loss, "penalty": penalty, "alpha": 0.02, "l1_ratio": 0.3}
    ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": 0.3}[penalty]
    kept = WEIGHT > 0
    best = optimum(
        X[kept],
        Y[kept],
        WEIGHT[kept] / (0.02 * len(Y)),
        loss=loss,
        intercept="free" if fit_intercept else "none",
        l1_ratio=ratio,
    )
    for steps, within in ((2, 1.0), (3000, 0.05)):
        model = SGDClassifier(fit_intercept=fit_intercept, max_iter=steps, **parameters, **SGD)
        found = proof(fitted(model, X, Y, WEIGHT), X, Y, WEIGHT)
        # With an ℓ1 part more steps of SGD can be worse: the bracket holds, but not any width.
        assert_brackets(found, best, within if ratio == 0 else np.inf)
        assert_allclose(found.dual, best, rtol=1e-4)


@pytest.mark.parametrize("intercept_scaling", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_l1_is_bracketed_with_its_penalized_intercept(
    intercept_scaling: float, sparse: bool
) -> None:
    """LIBLINEAR weighs the constant column by |b/scaling|, like all others."""
    fit_intercept = intercept_scaling > 0
    column = np.full((len(X), int(fit_intercept)), intercept_scaling)
    best = optimum(
        np.hstack([X, column]), Y, np.full(40, 0.5), loss="squared_hinge", intercept="none",
        l1_ratio=1.0,
    )  # fmt: skip
    model = LinearSVC(
        penalty="l1", C=0.5, dual=False, fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling or 1.0, **TIGHT,
    )  # fmt: skip
    rows = sp.csr_array(X) if sparse else X
    assert_brackets(proof(model.fit(rows, Y), rows, Y), best, 1e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_joint_machine_of_all_classes_is_certified(fit_intercept: bool, n_classes: int) -> None:
    rows = iris[species < n_classes]
    labels, weight = species[species < n_classes], 1.0 + np.arange(len(rows)) % 3
    joint: dict[str, Any] = {
        "multi_class": "crammer_singer",
        "class_weight": {k: 1.0 + k for k in range(n_classes)},
        "fit_intercept": fit_intercept,
        "intercept_scaling": 3.0,
        "random_state": 0,
    }
    loose = fitted(LinearSVC(**joint, max_iter=1), rows, labels, weight)
    tight = fitted(LinearSVC(**joint, **TIGHT), rows, labels, weight)
    assert proof(tight, rows, labels, weight).holds(1e-5)
    assert proof(loose, rows, labels, weight).gap > 2 * proof(tight, rows, labels, weight).gap
    tight.coef_[0, 1] += 0.5
    assert not proof(tight, rows, labels, weight).holds(1e-3)


# ------------------------------------------------------------------- exact arithmetic


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("tol", [1e-1, 1e-6])
def test_bounds_agree_with_rational_arithmetic(kernel: str, tol: float) -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(-3, 4, (12, 2))
    signs = np.where(rows.sum(axis=1) + rng.integers(-2, 3, 12) > 0, 1, -1)
    model = SVC(kernel=kernel, degree=2, gamma=1.0, coef0=1.0, C=0.5, tol=tol).fit(rows, signs)
    found = proof(model, rows, signs)

    K = rows @ rows.T if kernel == "linear" else (rows @ rows.T + 1) ** 2
    beta = [Fraction(0)] * 12
    for i, value in zip(model.support_, model.dual_coef_[0], strict=True):
        beta[i] = Fraction(value)
    primal = _form(beta, K) / 2
    b = Fraction(model.intercept_[0])
    for i in range(12):
        f = sum((beta[j] * int(K[i, j]) for j in range(12)), b)
        primal += Fraction(1, 2) * max(Fraction(0), 1 - int(signs[i]) * f)
    beta = [min(max(v * int(s), Fraction(0)), Fraction(1, 2)) * int(s)
            for v, s in zip(beta, signs, strict=True)]  # fmt: skip
    gain = sum((v for v in beta if v > 0), Fraction(0))
    loss = -sum((v for v in beta if v < 0), Fraction(0))
    shrink = min(gain, loss)
    beta = [v * shrink / (gain if v > 0 else loss) if v else v for v in beta]
    dual = sum(map(abs, beta), Fraction(0)) - _form(beta, K) / 2
    assert sum(beta) == 0
    assert dual <= primal
    assert_allclose([found.primal, found.dual], [float(primal), float(dual)], rtol=1e-13)


def _form(beta: list[Fraction], K: Any) -> Fraction:
    n = len(beta)
    terms = (beta[i] * beta[j] * int(K[i, j]) for i in range(n) for j in range(n))
    return sum(terms, Fraction(0))


# ------------------------------------------------------------------- forgeries


def test_a_changed_dual_coefficient_is_seen() -> None:
    for parameters, _ in KERNELS.values():
        model = SVC(tol=1e-6, **parameters).fit(X, Y)
        before = proof(model, X, Y)
        for factor in (0.5, 3.0, -1.0):
            altered = SVC(tol=1e-6, **parameters).fit(X, Y)
            altered.dual_coef_[0, 3] *= factor
            after = proof(altered, X, Y)
            assert after.gap > 100 * before.gap
            assert not after.holds(1e-4)


def test_a_changed_weight_is_seen() -> None:
    for model in (LinearSVC(**TIGHT), LinearSVC(loss="hinge", **TIGHT)):
        fitted(model, X, Y)
        before = proof(model, X, Y)
        assert before.holds(1e-5)
        model.coef_[0, 1] *= 1.1
        assert proof(model, X, Y).gap > 10 * before.gap
        assert not proof(model, X, Y).holds(1e-5)


def test_a_changed_intercept_is_seen_and_named() -> None:
    for parameters, _ in KERNELS.values():
        model = SVC(tol=1e-8, **parameters).fit(X, Y)
        before = proof(model, X, Y)
        model.intercept_ = model.intercept_ + 0.5
        after = proof(model, X, Y)
        assert after.gap > 1e3 * before.gap
        assert_allclose(after.intercept_cost, after.gap, rtol=1e-3)
        assert_allclose(after.distance_bound, before.distance_bound, rtol=1e-3)
        assert_allclose(after.intercept, before.intercept)
        assert "by the choice of intercept" in str(after)


def test_flipped_labels_are_seen() -> None:
    flipped = Y.copy()
    flipped[::9] *= -1
    for model in (SVC(tol=1e-8), SVC(tol=1e-8, kernel="linear"), LinearSVC(**TIGHT)):
        fitted(model, X, Y)
        assert proof(model, X, flipped).gap > 1e3 * proof(model, X, Y).gap
    other = species.copy()
    other[0] = 2  # a support vector of another pair still belongs to the weights
    model = SVC(tol=1e-8).fit(iris, species)
    assert proof(model, iris, other).gap > 1e3 * proof(model, iris, species).gap


def test_an_indefinite_kernel_is_never_certified() -> None:
    indefinite = np.where(np.eye(40) > 0, -1.0, X @ X.T)
    for model, rows in (
        (SVC(kernel="sigmoid"), X),
        (SVC(kernel="poly", coef0=-1.0), X),
        (SVC(kernel=lambda A, B: np.tanh(A @ B.T - 1)), X),
        (SVC(kernel=lambda A, B: A @ B.T + A[:, :1]), X),
        (SVC(kernel="precomputed"), indefinite),
        (SVR(kernel="sigmoid"), X),
    ):
        found = proof(model.fit(rows, Y), rows, Y)
        assert found.dual == -np.inf
        assert found.gap == found.relative_gap == found.distance_bound == np.inf
        assert not found.holds(1e6)
        assert "is not certified" in str(found)
        assert "not positive semidefinite" in str(found)
    three = proof(SVC(kernel="sigmoid").fit(iris, species), iris, species)
    assert not three.holds(1e6)
    assert "not positive semidefinite" in str(three)


def test_a_kernel_seen_on_some_rows_only_is_an_assumption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_certificates, "_MOST_TESTED", 10)
    found = proof(SVC(kernel=lambda A, B: A @ B.T).fit(X, Y), X, Y)
    assert "as tested on 10 rows" in str(found)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("dual_coef_", np.zeros((1, 2))),
        ("intercept_", np.empty(0)),
        ("intercept_", np.array([np.nan])),
        ("support_", np.arange(2)),
        ("support_", np.arange(1000)),
    ],
)
def test_altered_models_are_refused(attribute: str, value: Any) -> None:
    model = SVC().fit(X, Y)
    setattr(model, attribute, value)
    with pytest.raises(ValueError, match="belong together"):
        mm.certify(model, X, Y)


# ------------------------------------------------------------------- what is refused


def test_what_cannot_be_certified_says_why() -> None:
    with pytest.raises(NotFittedError):
        mm.certify(SVC(), X, Y)
    with pytest.raises(NotFittedError):
        mm.certify(LinearSVC(), X, Y)
    model = SVC().fit(X, Y)
    for unknown in (LogisticRegression().fit(X, Y), 3, None,
                    make_pipeline(LogisticRegression()).fit(X, Y)):  # fmt: skip
        with pytest.raises(TypeError, match="OneClassSVM, LinearSVC, LinearSVR, SGDClassifier"):
            mm.certify(unknown, X, Y)
    for rows, labels, words in (
        (X[:, :2], Y, "2 features, but SVC is expecting 3"),
        (X, np.where(Y > 0, 2, 1), "not among the classes"),
        (X, np.where(Y > 0, "a", "b"), "the model's classes"),
        (X[1:], Y[1:], "trained on 40 rows"),
        (X[::-1], Y[::-1], "in the order in which they were fitted"),
        (X, Y[1:], "inconsistent numbers"),
        (X, None, "requires y"),
    ):
        with pytest.raises(ValueError, match=words):
            mm.certify(model, rows, labels)
    with pytest.raises(ValueError, match="nothing is left"):
        mm.certify(model, X, Y, np.zeros(40))
    with pytest.raises(ValueError, match="contains NaN"):
        mm.certify(SVR().fit(X, T), X, np.full(40, np.nan))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SGDClassifier(loss="log_loss"), "large-margin losses"),
        (SGDClassifier(penalty=None), "no objective"),
        (SGDClassifier(alpha=0.0, learning_rate="constant", eta0=1.0), "no objective"),
    ],
    ids=repr,
)
def test_objectives_without_a_certificate_are_named(model: Any, words: str) -> None:
    fitted(model, X, Y)
    with pytest.raises(ValueError, match=words):
        mm.certify(model, X, Y)


# ------------------------------------------------------------------- who is recognised


def test_models_are_known_by_module_and_name() -> None:
    model = SVC(tol=1e-6).fit(X, Y)
    expected = proof(model, X, Y)

    class MyOwn(SVC):
        pass

    twin: Any = type("SVC", (BaseEstimator,), {"__module__": "sklearnex.svm", "fit": None})()
    twin.__dict__.update(model.__dict__, n_support_=model.n_support_)
    del twin._gamma  # not there: it is computed from gamma="scale"
    assert_allclose(proof(twin, X, Y).primal, expected.primal, rtol=1e-12)
    assert_allclose(proof(MyOwn(tol=1e-6).fit(X, Y), X, Y).primal, expected.primal)


# ------------------------------------------------------------------- perceptrons


def facts(model: Any, X: Any, y: Any, sample_weight: Any = None) -> PerceptronFacts:
    found = mm.certify(model, X, y, sample_weight)
    assert isinstance(found, PerceptronFacts)
    return found


@pytest.mark.parametrize(
    "model", [Perceptron(), mm.Perceptron(), mm.AveragedPerceptron()], ids=repr
)
def test_a_perceptron_has_facts(model: Any) -> None:
    rows, labels = mm.datasets.separable(60, margin=0.3, random_state=0)
    found = facts(model.fit(rows, labels), rows, labels)
    assert found.mistakes == (model.predict(rows) != labels).sum()
    plane = mm.geometry.hyperplane(model)
    assert_allclose(found.margin, plane.geometric_margin(rows, labels).min())
    assert found.separation.separable
    assert found.margin <= found.separation.margin * (1 + 1e-9)
    assert "separable" in str(found)


def test_perceptrons_of_several_classes_and_of_overlapping_ones() -> None:
    for model in (Perceptron(), mm.Perceptron(max_epochs=20, stop="epochs")):
        found = facts(fitted(model, iris, species), iris, species)
        assert found.rows == len(species)
        assert found.mistakes == (model.predict(iris) != species).sum()
        assert (found.margin > 0) == (found.mistakes == 0)
    model = Perceptron().fit(X, Y)
    found = facts(model, X, Y, WEIGHT)
    assert found.rows == (WEIGHT > 0).sum()
    assert found.separation.separable is False
    assert "on the wrong side" in str(found)


# ------------------------------------------------------------------- the arithmetic


def test_together_adds_up() -> None:
    parts = [Certificate(3.0, 1.0, 0.1, 0.2, 0.3, 3.0), Certificate(1.0, 1.0, 0.0, 0.0, 0.0, 4.0)]
    whole = together(parts)
    assert (whole.primal, whole.dual, whole.distance_bound) == (4.0, 2.0, 5.0)
    assert not whole.holds(0.6)  # the first part does not
    assert together(parts[:1]) is parts[0]
