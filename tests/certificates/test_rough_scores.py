"""Scores in float32 are within their bounds, and certificates that rest on them claim the truth."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin as mm
from maxmargin import kernels
from maxmargin._typing import Floats
from maxmargin.budget import Budget
from maxmargin.certificates import certify, quadratic
from maxmargin.certificates.quadratic import rough_scores
from maxmargin.kernels import Kernel
from maxmargin.problems import gram as gram_module
from maxmargin.problems.features import KernelFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Point, Status
from maxmargin.problems.rounding import Bounded
from maxmargin.solve import Settings, solve
from tests.support import exact_fits


@pytest.fixture
def always_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a pass in float32 for the smallest problems, too."""
    monkeypatch.setattr(gram_module, "SMALL", 0)
    monkeypatch.setattr(quadratic, "_WORTH", 0)


# ------------------------------------------------------------------- kernel values and sums
#
# The reference computes each value by itself, in extended precision and from the rows as given.


def values(kernel: Any, X: Any, Z: Any) -> Any:
    """Return K(X, Z), right to far more digits than float32 has."""
    X, Z = (np.asarray(rows, dtype=np.longdouble)[:, np.newaxis, :] for rows in (X, Z))
    Z = Z.transpose(1, 0, 2)
    if isinstance(kernel, kernels.RBF):
        return np.exp(-np.longdouble(kernel.gamma) * ((X - Z) ** 2).sum(axis=2))
    if isinstance(kernel, kernels.Laplacian):
        return np.exp(-np.longdouble(kernel.gamma) * abs(X - Z).sum(axis=2))
    products = (X * Z).sum(axis=2)
    if isinstance(kernel, kernels.Polynomial):
        return (np.longdouble(kernel.gamma) * products + kernel.coef0) ** kernel.degree
    assert type(kernel) is kernels.Linear
    return products


ROWS = 24
SHAPES: dict[str, Any] = {
    "gaussian": lambda rng, X: X,
    "far from 0": lambda rng, X: X + 1e4,
    "columns of all sizes": lambda rng, X: X * 10.0 ** rng.uniform(-6, 3, X.shape[1]),
    "rows of all sizes": lambda rng, X: X * 10.0 ** rng.uniform(-4, 2, (len(X), 1)),
    "large": lambda rng, X: 1e12 * X,
    "small": lambda rng, X: 1e-8 * X,
    "tiny": lambda rng, X: 1e-14 * X,
    "equal rows": lambda rng, X: X[rng.integers(0, 5, len(X))],
    "all in one direction": lambda rng, X: np.abs(X) @ np.ones((X.shape[1], X.shape[1])),
    "zeros": lambda rng, X: X * (rng.random(X.shape) < 0.3) * (np.arange(ROWS) > 4)[:, None],
}  # fmt: skip


def kernels_for(rng: Any, X: Floats) -> list[Kernel]:
    """Return kernels whose scale fits the rows, or is far too wide or narrow for them."""
    spread = float(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()) or 1.0
    gammas = 10.0 ** rng.uniform(-12, 2.8, 2) / spread
    return [
        *(kernels.RBF(float(gamma)) for gamma in gammas),
        *(kernels.Laplacian(float(g) ** 0.5) for g in gammas),
        kernels.Linear(),
        kernels.Polynomial(int(rng.integers(1, 6)), float(1 / spread), float(rng.choice([0, 1]))),
        kernels.Polynomial(2, float(gammas[0]), 1.0),
    ]


def narrowable(kernel: Kernel, X: Any) -> Gram | None:
    """Return the Gram matrix if it has rows in float32."""
    gram = Gram(kernel, X)
    if not np.abs(gram.diagonal).max() < 1e30:
        return None
    return gram if gram.tiles.dtype == np.float32 else None


def draw(name: str, columns: int) -> tuple[Any, Floats]:
    rng = np.random.default_rng([17, columns, *name.encode()])
    return rng, SHAPES[name](rng, rng.normal(size=(ROWS, columns)))


def as_given(X: Floats, kind: str) -> Any:
    X = X.astype(np.float32) if "float32" in kind else X
    return sp.csr_array(X) if "sparse" in kind else X


KINDS = "dense", "dense float32", "sparse", "sparse float32"


@pytest.mark.usefixtures("always_float32")
@pytest.mark.parametrize("columns", [1, 3, 30, 1000])
@pytest.mark.parametrize("name", SHAPES)
def test_bounds_cover_the_errors_of_values_and_of_scores(name: str, columns: int) -> None:
    rng, X = draw(name, columns)
    made = 0
    for kernel in kernels_for(rng, X):
        for kind in KINDS:
            given = as_given(X, kind)
            gram = narrowable(kernel, given)
            if gram is None or (bounds := kernel.float32_rounding(gram.tiles)) is None:
                continue
            made += 1
            rows = as_given(X, kind.replace("sparse", "")).astype(np.float64)
            true = values(kernel, rows, rows)
            (t, s), narrow = bounds, gram.tiles
            found = kernel.block(narrow, narrow[:]).astype(np.longdouble)
            lengths = np.sqrt(np.abs(true.diagonal()))
            off = np.expm1(t[:, None] + t) * abs(found) + (s[:, None] + s) * np.outer(
                lengths, lengths
            )
            assert (abs(found - true) <= off + 1e-37).all(), (kernel, kind)

            size = 10.0 ** rng.uniform(-20, 20)
            a = size * rng.normal(size=(ROWS, 2)) * 10.0 ** rng.uniform(-3, 3, (ROWS, 1))
            a[rng.random(ROWS) < 0.3] = 0.0
            scores = rough_scores(KernelFeatures(gram, np.arange(ROWS)), a, np.arange(ROWS))
            if scores is None:
                assert (t[:, None] + t).max() > 0.05
                continue
            errors = abs(scores.value - true @ a.astype(np.longdouble))
            assert (errors <= scores.error).all(), (kernel, kind)
            assert (scores.error <= 0.2 * np.outer(lengths, lengths @ abs(a)) + 1e-30 * size).all()
    assert made or name == "large"


def test_the_exponential_is_as_exact_as_its_bound_says() -> None:
    """Every fifth multiple of 2⁻²³ from −1 to 0, and a sample of all numbers down to −126."""
    from maxmargin import loops

    rng = np.random.default_rng(0)
    dense = np.arange(-(2**23), 0, 5, dtype=np.float32) * np.float32(2.0**-23)
    wide = -rng.uniform(0, 126, 2**19).astype(np.float32)
    small = -(2.0 ** -rng.uniform(0, 60, 2**18)).astype(np.float32)
    for x in (dense, wide, small):
        tile = x[np.newaxis].copy()
        loops.kernel_tiles.exponential(tile, np.float32(1.0))
        true = np.exp2(x.astype(np.float64))
        assert (abs(tile[0] - true) <= 4 * 2.0**-24 * true).all()
    below = np.array([[-126.3, -126.9, -130.0, -1e30]], np.float32)
    tile = below.copy()
    loops.kernel_tiles.exponential(tile, np.float32(1.0))
    assert (abs(tile - np.exp2(below.astype(np.float64))) <= 1e-37).all()


@pytest.mark.usefixtures("always_float32")
def test_a_kernel_with_new_values_has_no_bound() -> None:
    class Halved(kernels.RBF):
        def fill_tile(self, a: Any, b: Any, out: Any) -> None:
            super().fill_tile(a, b, out)
            out *= 0.5

    class Shifted(kernels.Linear):
        def fill_tile(self, a: Any, b: Any, out: Any) -> None:
            super().fill_tile(a, b, out)
            out += 1.0

    X = np.random.default_rng(0).normal(size=(20, 3))
    every = np.arange(20)
    for kernel in (Halved(), Shifted(), kernels.RBF() + 1.0, 2 * kernels.RBF(), kernels.Cosine()):
        features = KernelFeatures(Gram(kernel, X), every)
        assert rough_scores(features, np.ones((20, 1)), every) is None
    assert not Halved().nonnegative


# ------------------------------------------------------------------- what certificates claim


def fits(first: int, count: int) -> list[int]:
    """Return seeds of fits of kernel machines; the linear kernel may go to the linear machine."""
    names = "SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "QuantileSVR"
    seeds = []
    for seed in range(first, first + 6 * count):
        if exact_fits.ESTIMATORS[seed % len(exact_fits.ESTIMATORS)] in names:
            seeds += [seed] if exact_fits.draw(seed).model.kernel != "linear" else []
    return seeds[:count]


@pytest.mark.usefixtures("always_float32")
def test_claims_of_random_fits_are_true_in_exact_arithmetic() -> None:
    assert not (false := [line for *_, line in exact_fits.lines(fits(50_000, 80))]), "\n".join(
        false
    )


@pytest.mark.full
@pytest.mark.usefixtures("always_float32")
def test_claims_of_many_random_fits_are_true_in_exact_arithmetic() -> None:
    false = [line for *_, line in exact_fits.lines(fits(100_000, 3000))]
    assert not false, "\n".join(false)


MACHINES: dict[str, Any] = {
    "SVC": mm.SVC(C=10.0, gamma=0.1),
    "without intercept": mm.SVC(C=1.0, fit_intercept=False, gamma=0.1),
    "Laplacian": mm.SVC(kernel=kernels.Laplacian(0.1), C=1.0),
    "polynomial": mm.SVC(kernel="poly", degree=2, coef0=1.0, C=0.1),
    "NuSVC": mm.NuSVC(nu=0.2, gamma=0.1),
    "OneClassSVM": mm.OneClassSVM(nu=0.1, gamma=0.1),
    "SVR": mm.SVR(C=1.0, gamma=0.1, epsilon=0.5),
    "NuSVR": mm.NuSVR(nu=0.3, gamma=0.1),
    "QuantileSVR": mm.QuantileSVR(quantile=0.7, gamma=0.1, C=0.1),
    "four classes": mm.SVC(C=1.0, gamma=0.1, multi_class="ovr"),
}


def rows_and_targets(name: str, n: int = 2600) -> tuple[Floats, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 6))
    f = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.2 * rng.normal(size=n)
    if name == "four classes":
        return X, np.digitize(f, [-0.7, 0.0, 0.7])
    return X, f if name.endswith("SVR") else np.sign(f)


@pytest.mark.parametrize("name", MACHINES)
def test_the_certificate_is_that_of_float64(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds, violations and intercepts are the same; rounding is no larger."""
    X, y = rows_and_targets(name)
    model = clone(MACHINES[name]).fit(X, y)
    assert model.status_ is Status.OPTIMAL
    monkeypatch.setattr(quadratic, "_WORTH", 1 << 10)
    ours: Any = mm.certify(model, X, y)
    monkeypatch.setattr(quadratic, "rough_scores", lambda *_, **__: None)
    plain: Any = mm.certify(model, X, y)
    for one, other in zip(ours.parts or [ours], plain.parts or [plain], strict=True):
        assert one.primal == pytest.approx(other.primal, rel=1e-13)
        assert one.dual == pytest.approx(other.dual, rel=1e-13)
        assert one.rounding <= other.rounding * (1 + 1e-6)
        assert one.max_kkt_violation == pytest.approx(other.max_kkt_violation, rel=1e-9)
        assert one.intercept == pytest.approx(other.intercept, rel=1e-6, abs=1e-9)
        assert one.distance_bound == pytest.approx(other.distance_bound, rel=1e-9)
        assert one.intercept_cost == pytest.approx(other.intercept_cost, abs=1e-12 * one.primal)


def test_most_rows_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows_and_targets("SVC", 6000)
    model = mm.SVC(C=10.0, gamma=0.1).fit(X, y)
    counts = {np.dtype(np.float32): 0, np.dtype(np.float64): 0}
    fill = kernels.RBF.fill_tile

    def counted(self: Any, a: Any, b: Any, out: Any) -> None:
        counts[out.dtype] += out.size
        fill(self, a, b, out)

    monkeypatch.setattr(kernels.RBF, "fill_tile", counted)
    certificate: Any = mm.certify(model, X, y)
    monkeypatch.undo()
    used = len(model.support_)
    assert certificate.holds(model.tol)
    assert counts[np.dtype(np.float32)] <= 1.1 * (len(X) - used) * used
    assert counts[np.dtype(np.float64)] <= 0.6 * used**2 + 0.2 * (len(X) - used) * used


# ------------------------------------------------------------------- the pass of the last check


def solved(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the problem of a fit and its solution, with the pass that its solver made last."""
    problem = model.formulate(X, y).problems[0]
    return problem, solve(problem, Settings(tol=1e-3), Budget(None), Point())


def test_the_last_check_and_the_certificate_share_a_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = rows_and_targets("SVC", 8000)
    passes: list[tuple[int, int]] = []
    rough = quadratic.rough_scores

    def counted(features: Any, a: Any, at: Any, *options: Any) -> Any:
        passes.append((len(at), int(np.count_nonzero(a))))
        return rough(features, a, at, *options)

    monkeypatch.setattr(quadratic, "rough_scores", counted)
    problem, result = solved(mm.SVC(C=10.0, gamma=0.1), X, y)
    used = int(np.count_nonzero(result.point.w))
    assert result.status is Status.OPTIMAL
    assert passes.count((len(X) - used, used)) == 1
    again = certify(problem, result.point)
    assert len(passes) == 1
    problem.features.passes.clear()
    assert certify(problem, result.point) == again  # the same bits, computed anew
    assert len(passes) > 1


def test_a_pass_for_other_coefficients_is_not_used() -> None:
    X, y = rows_and_targets("SVC", 8000)
    problem, result = solved(mm.SVC(C=10.0, gamma=0.1), X, y)
    passes, plain = problem.features.passes, certify(problem, result.point)
    [(coefficients, found)] = passes
    wrong = Bounded(np.where(found.value > 0, -1e6, 1e6), found.error)
    passes[:] = [(np.nextafter(coefficients, np.inf), wrong)]
    assert certify(problem, result.point) == plain
    passes[:] = [(coefficients, wrong)]  # as the certificate's own code would never leave it
    assert certify(problem, result.point) != plain
