"""Planes and margins: theorems of plane geometry, and the proof behind the mistake bound."""

import dataclasses
import math
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model, svm
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import datasets, geometry
from maxmargin.geometry import Hyperplane, KernelHyperplane, inputs
from maxmargin.kernels import RBF, FromFunction, FromMap, FromSklearn, Linear, Polynomial
from tests.support.kernel_suite import CASES, Case

Matrix = npt.NDArray[np.float64]
seeds = st.integers(0, 2**32 - 1)
BITS = [[0, 0], [0, 1], [1, 0], [1, 1]]


def problem(seed: int) -> tuple[Hyperplane, Matrix, Matrix]:
    """Return a random plane with points of both classes that it separates."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    plane = Hyperplane(rng.normal(size=d) * 10 ** rng.uniform(-3, 3), float(rng.normal()))
    X, y = datasets.separable(
        int(rng.integers(4, 30)), margin=0.1, w=plane.w, b=plane.b, random_state=rng
    )
    return plane, X, y.astype(np.float64)


def kernel_problem(seed: int) -> tuple[KernelHyperplane, Matrix, Matrix]:
    """Return a plane in feature space and points labelled by their side of it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    plane = KernelHyperplane(RBF(gamma=0.5), rng.normal(size=(5, 3)), rng.normal(size=5), 0.0)
    f = plane.decision_function(X)
    plane = plane.parallel(-float(np.median(f)))
    return plane, X, plane.predict(X).astype(np.float64)


@st.composite
def either_problem(draw: st.DrawFn) -> tuple[Any, Matrix, Matrix]:
    make: Any = draw(st.sampled_from([problem, kernel_problem]))
    plane, X, y = make(draw(seeds))
    return plane, X, y


class TestRule:
    @given(either_problem())
    def test_flipping_swaps_the_classes(self, case: Any) -> None:
        plane, X, _ = case
        assert_array_equal(plane.flipped().predict(X), -plane.predict(X))
        assert_array_equal(plane.flipped().signed_distance(X), -plane.signed_distance(X))

    @given(either_problem(), st.floats(1e-6, 1e6))
    def test_scale_changes_nothing_geometric(self, case: Any, c: float) -> None:
        plane, X, y = case
        other = plane.scaled(c)
        assert_allclose(other.geometric_margin(X, y), plane.geometric_margin(X, y), atol=1e-9)
        assert_allclose(other.functional_margin(X, y), c * plane.functional_margin(X, y))
        assert_allclose(other.total_margin(X, y), plane.total_margin(X, y), atol=1e-9)
        assert_array_equal(other.predict(X), plane.predict(X))

    @given(either_problem())
    def test_four_margins_agree_with_each_other(self, case: Any) -> None:
        plane, X, y = case
        signed = plane.signed_distance(X)
        assert_array_equal(plane.absolute_distance(X), np.abs(signed))
        assert_allclose(plane.geometric_margin(X, y), y * signed)
        assert_allclose(plane.functional_margin(X, y), y * signed * plane.norm)
        assert plane.set_margin(X) == np.abs(signed).min()
        assert plane.set_margin(X) == min(plane.class_margins(X, y))

    def test_zero_is_not_positive_but_the_neuron_fires(self) -> None:
        plane = Hyperplane([1.0, -1.0])
        assert_array_equal(plane.predict([[2, 2]]), [-1])
        assert_array_equal(plane.step([[2, 2]]), [1])
        for kind in (Hyperplane, KernelHyperplane):
            for method in (kind.predict, kind.step):
                assert "at f = 0, it is" in str(method.__doc__)

    @given(seeds, st.booleans())
    def test_step_and_predict_differ_exactly_on_the_plane(self, seed: int, kernel: bool) -> None:
        rng = np.random.default_rng(seed)
        X, w = rng.integers(-2, 3, size=(20, 2)), rng.integers(-2, 3, size=2)
        plane: Any = Hyperplane(w, float(rng.integers(-1, 2)))
        if kernel:
            plane = KernelHyperplane(Linear(), np.eye(2), w, plane.b)
        f = plane.decision_function(X)  # whole numbers: exact
        on = f == 0
        assert_array_equal(plane.step(X)[~on], (plane.predict(X)[~on] + 1) // 2)
        assert (plane.step(X)[on] == 1).all()
        assert (plane.predict(X)[on] == -1).all()
        assert_array_equal(plane.flipped().step(X)[on], plane.step(X)[on])  # a side has no tie

    @pytest.mark.parametrize(("b", "gate"), [(-1.5, [0, 0, 0, 1]), (-0.5, [0, 1, 1, 1])])
    def test_and_and_or_neurons(self, b: float, gate: list[int]) -> None:
        assert_array_equal(Hyperplane([1, 1], b).step(BITS), gate)


class TestHyperplane:
    @given(seeds)
    def test_margin_is_the_distance_to_the_projection(self, seed: int) -> None:
        plane, X, _ = problem(seed)
        feet = plane.project(X)
        assert_allclose(plane.signed_distance(feet), 0, atol=1e-9)
        assert_allclose(np.linalg.norm(X - feet, axis=1), plane.absolute_distance(X), atol=1e-9)

    @given(seeds)
    def test_normal_and_offset(self, seed: int) -> None:
        plane, _, _ = problem(seed)
        assert_allclose(np.linalg.norm(plane.normal), 1)
        assert plane.decision_function([plane.normal])[0] - plane.b > 0
        assert_allclose(plane.signed_distance([plane.offset * plane.normal]), 0, atol=1e-9)

    @given(seeds)
    def test_the_line_lies_on_the_plane(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        plane = Hyperplane(rng.normal(size=2), float(rng.normal()))
        x1 = rng.normal(size=5)
        points = np.column_stack([x1, plane.line(x1)])
        assert_allclose(plane.decision_function(points), 0, atol=1e-9)

    def test_lines_that_cannot_be_drawn(self) -> None:
        with pytest.raises(ValueError, match="3 weights"):
            Hyperplane([1, 2, 3]).line(0)
        with pytest.raises(ValueError, match=r"vertical, x₁ = -0\.5"):
            Hyperplane([2, 0], 1).line(0)
        with pytest.raises(ValueError, match="w is zero"):
            Hyperplane([0, 0], 1).line(0)

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_extreme_weights_keep_their_norm(self, scale: float) -> None:
        plane = Hyperplane([3 * scale, 4 * scale])
        assert_allclose(plane.norm, 5 * scale)
        assert_allclose(plane.signed_distance([[3, 4]]), [5])

    def test_zero_weights_have_scores_but_no_distances(self) -> None:
        plane = Hyperplane([0, 0], 1)
        assert_array_equal(plane.predict([[1, 2]]), [1])
        for undefined in (plane.signed_distance, plane.set_margin, plane.project):
            with pytest.raises(ValueError, match="w is zero"):
                undefined([[1, 2]])
        with pytest.raises(ValueError, match="w is zero"):
            _ = plane.normal

    def test_it_is_a_frozen_value(self) -> None:
        weights = np.array([1.0, 2.0])
        plane = Hyperplane(weights, 3)
        weights[0] = 9
        assert plane == Hyperplane([1, 2], 3.0) != Hyperplane([1, 2], 4)
        assert hash(plane) == hash(pickle.loads(pickle.dumps(plane)))
        with pytest.raises(dataclasses.FrozenInstanceError):
            plane.b = 0.0  # type: ignore[misc]
        with pytest.raises(ValueError, match="read-only"):
            plane.w[0] = 0

    @pytest.mark.parametrize("w", [[[1, 2]], [], [1, np.nan], 3])
    def test_weights_are_one_finite_vector(self, w: Any) -> None:
        with pytest.raises(ValueError, match=r"w (must be one vector|contains NaN)"):
            Hyperplane(w)

    def test_other_arguments_are_checked(self) -> None:
        with pytest.raises(ValueError, match="b must be a finite number, got inf"):
            Hyperplane([1], math.inf)
        for c in (0, -1):
            with pytest.raises(ValueError, match=f"c must be above 0, got {c}"):
                Hyperplane([1]).scaled(c)


DERIVABLE = [
    case for case in CASES if type(case.kernel) not in (FromFunction, FromMap, FromSklearn)
]


@pytest.mark.parametrize("case", DERIVABLE, ids=lambda case: case.name)
def test_gradients_are_slopes(case: Case) -> None:
    """Against differences of f over a small step in each column."""
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    if case.histograms:
        Z, X = np.abs(Z) + 0.1, np.abs(X) + 0.1
    plane = KernelHyperplane(case.kernel, Z, rng.normal(size=6), 0.3)
    step = 1e-6
    slopes = np.column_stack(
        [
            (plane.decision_function(X + e) - plane.decision_function(X - e)) / (2 * step)
            for e in step * np.eye(4)
        ]
    )
    assert_allclose(plane.gradient(X), slopes, rtol=1e-5, atol=1e-6 * (1 + np.abs(slopes).max()))


def test_gradients_of_distances_do_not_feel_the_origin() -> None:
    plane, X, _ = kernel_problem(0)
    far = KernelHyperplane(plane.kernel, plane.vectors + 1e6, plane.coefficients)
    assert_allclose(far.gradient(X + 1e6), plane.gradient(X), atol=1e-8)


def test_gradients_of_fitted_models() -> None:
    X, y = datasets.gaussians(60, random_state=0)
    kernel, linear = svm.SVC(kernel="linear").fit(X, y), svm.LinearSVC().fit(X, y)
    for model in (kernel, linear):
        gradient = geometry.hyperplane(model).gradient(X)
        assert_allclose(gradient, np.tile(model.coef_, (len(X), 1)), rtol=1e-9)


def test_gradients_of_unknown_kernels_are_refused() -> None:
    plane = KernelHyperplane(FromFunction(lambda A, B: A @ B.T), [[1.0, 0.0]], [1.0])
    with pytest.raises(TypeError, match=r"derivative of .* is not known; it is for ChiSquared"):
        plane.gradient([[1.0, 2.0]])
    square = SimpleNamespace(gram=lambda A, B: (A @ B.T) ** 2)
    with pytest.raises(TypeError, match="not known"):
        KernelHyperplane(square, [[1.0]], [1.0]).gradient([[1.0]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_contributions_add_up_to_the_score(form: Any) -> None:
    X, y = datasets.circles(80, random_state=0)
    plane = geometry.hyperplane(svm.SVC(gamma=0.5).fit(X, y))
    assert isinstance(plane, KernelHyperplane)
    parts = plane.contributions(form(X))
    assert parts.shape == (len(X), len(plane.coefficients))
    assert_allclose(parts.sum(axis=1) + plane.b, plane.decision_function(X), rtol=1e-12)
    assert_allclose(plane.gradient(form(X)), plane.gradient(X))


class TestKernelHyperplane:
    @given(seeds)
    def test_distances_equal_the_linear_ones_for_the_linear_kernel(self, seed: int) -> None:
        _, X, y = problem(seed)
        rng = np.random.default_rng(seed)
        vectors, a = rng.normal(size=(6, X.shape[1])), rng.normal(size=6)
        implicit = KernelHyperplane(Linear(), vectors, a, 0.3)
        explicit = Hyperplane(vectors.T @ a, 0.3)
        assert_allclose(implicit.norm, explicit.norm)
        assert_allclose(implicit.geometric_margin(X, y), explicit.geometric_margin(X, y), atol=1e-9)

    @given(seeds)
    def test_distances_equal_those_of_the_explicit_map(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X, vectors, a = rng.normal(size=(7, 2)), rng.normal(size=(4, 2)), rng.normal(size=4)

        def phi(x: Matrix) -> Matrix:
            return np.column_stack([x[:, 0] ** 2, math.sqrt(2) * x[:, 0] * x[:, 1], x[:, 1] ** 2])

        kernel = Polynomial(degree=2, gamma=1.0, coef0=0.0)
        implicit = KernelHyperplane(kernel, vectors, a, -1)
        explicit = Hyperplane(phi(vectors).T @ a, -1)
        assert_allclose(
            implicit.signed_distance(X), explicit.signed_distance(phi(X)), rtol=1e-6, atol=1e-9
        )

    def test_a_zero_sum_has_no_distances(self) -> None:
        plane = KernelHyperplane(RBF(gamma=1.0), [[1, 2], [1, 2]], [1, -1])
        assert plane.norm == 0
        with pytest.raises(ValueError, match="w is zero"):
            plane.signed_distance([[0, 0]])

    def test_an_indefinite_kernel_has_no_norm(self) -> None:
        negative = SimpleNamespace(gram=lambda A, B: -(A @ B.T))
        plane = KernelHyperplane(negative, [[1.0]], [1.0])
        with pytest.raises(ValueError, match="not positive semidefinite"):
            _ = plane.norm
        with pytest.raises(ValueError, match="not positive semidefinite"):
            geometry.kernel_radius(negative, [[1.0]])

    def test_arguments_are_checked(self) -> None:
        with pytest.raises(ValueError, match="coefficients has 1 entries for 2 vectors"):
            KernelHyperplane(Linear(), [[1], [2]], [1])
        with pytest.raises(ValueError, match="vectors contains NaN"):
            KernelHyperplane(Linear(), [[np.nan]], [1])
        with pytest.raises(ValueError, match="X has 2 columns, but the plane has 1"):
            KernelHyperplane(Linear(), [[1]], [1]).predict([[1, 2]])


class TestInputs:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
    @pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.coo_array, np.asfortranarray])
    def test_every_kind_of_data_gives_the_same_numbers(
        self, make: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inputs, "BLOCK_SIZE", 30)  # several blocks even for small data
        rng = np.random.default_rng(0)
        dense = rng.integers(-3, 4, size=(50, 7)) * (rng.random((50, 7)) < 0.4)
        y = np.where(rng.random(50) < 0.5, -1, 1)
        X = make(dense.astype(dtype))
        vectors = make(dense[:9].astype(dtype))
        pairs: list[tuple[Any, Any]] = [
            (Hyperplane(np.arange(1, 8) / 7, 0.4),) * 2,
            (
                KernelHyperplane(RBF(gamma=0.1), vectors, np.arange(9.0) - 3),
                KernelHyperplane(RBF(gamma=0.1), dense[:9].tolist(), np.arange(9.0) - 3),
            ),
        ]
        for plane, reference in pairs:
            expected = reference.geometric_margin(dense.tolist(), y)
            margins = plane.geometric_margin(X, y.tolist())
            assert margins.dtype == np.float64
            assert_allclose(margins, expected, rtol=1e-12, atol=1e-13)
        assert_allclose(pairs[0][0].project(X), pairs[0][0].project(dense), atol=1e-12)
        assert_allclose(geometry.radius(X), geometry.radius(dense))
        assert_allclose(geometry.kernel_radius(Linear(), X), geometry.radius(dense))

    def test_float32_is_summed_in_float64(self) -> None:
        X = np.full((1, 10_000), 0.1, dtype=np.float32)
        exact = float(X[0, 0]) * 10_000
        assert_allclose(Hyperplane(np.ones(10_000)).decision_function(X), exact, rtol=1e-13)
        assert_allclose(geometry.radius(X) ** 2, float(X[0, 0]) ** 2 * 10_000, rtol=1e-13)

    def test_entries_listed_twice_are_added(self) -> None:
        X = sp.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
        assert geometry.radius(X) == 3
        assert X.nnz == 2
        assert Hyperplane([1, 1]).decision_function(X) == 3

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_data_are_neither_changed_nor_copied_whole(self, dtype: Any) -> None:
        X = np.arange(6, dtype=dtype).reshape(3, 2)
        X.flags.writeable = False
        Hyperplane([1, 2]).geometric_margin(X, [-1, 1, 1])
        assert inputs.check_rows(X) is X

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_data_must_be_finite(self, bad: float) -> None:
        for X in (np.array([[1.0, bad]]), sp.csr_array([[0, bad]])):
            with pytest.raises(ValueError, match="X contains"):
                Hyperplane([1, 1]).decision_function(X)
            with pytest.raises(ValueError, match="X contains"):
                geometry.radius(X)

    def test_data_must_fit_the_plane(self) -> None:
        with pytest.raises(ValueError, match="X has 3 columns, but the plane has 2 weights"):
            Hyperplane([1, 1]).predict([[1, 2, 3]])

    @pytest.mark.parametrize("labels", [[-1, 1], [0, 1], [3.5, 7], ["a", "b"], [False, True]])
    def test_of_two_labels_the_larger_is_positive(self, labels: list[Any]) -> None:
        y = [labels[1], labels[0], labels[1]]
        margins = Hyperplane([1.0]).functional_margin([[1], [2], [-3]], y)
        assert_array_equal(margins, [1, -2, -3])

    def test_one_class_is_enough_if_its_sign_is_known(self) -> None:
        plane, X = Hyperplane([1.0]), [[1], [2]]
        assert_array_equal(plane.functional_margin(X, [-1, -1]), [-1, -2])
        with pytest.raises(ValueError, match="y has the single value"):
            plane.functional_margin(X, [0, 0])
        with pytest.raises(ValueError, match="y has one class only"):
            plane.class_margins(X, [1, 1])
        with pytest.raises(ValueError, match="y has one class only"):
            geometry.best_offset([1], X, [1, 1])

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([1, 2, 3], "3 classes, but a plane has two sides"),
            ([1, -1], "one label for each of the 3 rows"),
            ([[1], [1], [-1]], "one label for each"),
            ([1, np.nan, 1], "NaN"),
            (None, "one label for each"),
        ],
    )
    def test_labels_are_checked(self, y: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Hyperplane([1.0]).functional_margin([[1], [2], [3]], y)


class TestPlacing:
    @given(seeds, st.lists(st.floats(0.01, 0.99), min_size=2, max_size=2))
    def test_total_margin_is_constant_over_parallel_separators(
        self, seed: int, shares: list[float]
    ) -> None:
        plane, X, y = problem(seed)
        negative, positive = geometry.marginal_classifiers(plane, X, y)
        totals = [
            plane.parallel(negative.b + share * (positive.b - negative.b)).total_margin(X, y)
            for share in shares
        ]
        assert_allclose(totals, 0.2, rtol=1e-6)  # the data were made with margin 0.1 a side

    @given(either_problem())
    def test_marginal_classifiers_touch_and_do_not_cut(self, case: Any) -> None:
        plane, X, y = case
        negative, positive = geometry.marginal_classifiers(plane, X, y)
        assert type(negative) is type(plane)
        tiny = 1e-9
        assert_allclose(positive.signed_distance(X)[y > 0].min(), 0, atol=tiny)
        assert_allclose(negative.signed_distance(X)[y < 0].max(), 0, atol=tiny)
        # What lies between them is the total margin, whichever separator they came from.
        width = (negative.b - positive.b) / plane.norm
        assert_allclose(width, plane.total_margin(X, y), rtol=1e-6, atol=tiny)

    @given(either_problem())
    def test_canonical_planes_are_two_over_norm_apart(self, case: Any) -> None:
        plane, X, y = case
        best = plane.parallel(geometry.best_offset(plane, X, y))
        best = geometry.canonical(best, X, y)
        assert type(best) is type(plane)
        assert_allclose(best.functional_margin(X, y).min(), 1)
        assert_allclose(best.set_margin(X), 1 / best.norm)
        negative, positive = geometry.marginal_classifiers(best, X, y)
        assert_allclose(negative.b, best.b + 1, atol=1e-6)
        assert_allclose(positive.b, best.b - 1, atol=1e-6)
        assert_allclose(best.total_margin(X, y), 2 / best.norm)

    @given(either_problem(), st.floats(0, 1))
    def test_best_offset_maximises_the_margin(self, case: Any, share: float) -> None:
        plane, X, y = case
        negative, positive = geometry.marginal_classifiers(plane, X, y)
        best = plane.parallel(geometry.best_offset(plane, X, y))
        other = plane.parallel(share * negative.b + (1 - share) * positive.b)
        assert best.set_margin(X) >= other.set_margin(X) - 1e-9
        below, above = best.class_margins(X, y)
        assert_allclose(below, above, rtol=1e-6, atol=1e-9)

    @given(seeds, st.floats(-3, 3))
    def test_best_offset_maximises_the_smallest_margin_of_any_data(
        self, seed: int, b: float
    ) -> None:
        X, y = datasets.noise(20, 3, random_state=seed)
        w = np.array([1.0, -2.0, 0.5])
        best = Hyperplane(w, geometry.best_offset(w, X, y))
        other = Hyperplane(w, b)
        assert best.functional_margin(X, y).min() >= other.functional_margin(X, y).min() - 1e-9

    def test_planes_that_do_not_separate_are_refused(self) -> None:
        X, y = [[-1], [1], [2], [0]], [1, 1, -1, -1]
        with pytest.raises(ValueError, match="3 of 4 points are on the wrong side or on"):
            geometry.canonical(Hyperplane([1.0]), X, y)
        with pytest.raises(ValueError, match="reaches 2 in the negative and -1 in the positive"):
            geometry.marginal_classifiers([1.0], X, y)


MODELS = {
    "LinearSVC": svm.LinearSVC(),
    "LinearSVC without intercept": svm.LinearSVC(fit_intercept=False),
    "LogisticRegression": linear_model.LogisticRegression(),
    "SGD sparsified": linear_model.SGDClassifier(random_state=0),
    "RidgeClassifier": linear_model.RidgeClassifier(),
    "SVC linear": svm.SVC(kernel="linear"),
    "SVC rbf": svm.SVC(),
    "SVC rbf auto": svm.SVC(gamma="auto"),
    "SVC poly": svm.SVC(kernel="poly", degree=2, coef0=1.5, gamma=0.3),
    "SVC sigmoid": svm.SVC(kernel="sigmoid", gamma=0.1, coef0=0.2),
    "NuSVC": svm.NuSVC(nu=0.3),
    "OneClassSVM": svm.OneClassSVM(),
}


class TestModels:
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("name", MODELS)
    def test_the_plane_scores_as_the_model_does(self, name: str, sparse: bool) -> None:
        X, y = datasets.gaussians(60, ((1, 1, 0), (0, 0, 1)), variance=0.5)
        data = sp.csr_array(X) if sparse else X
        model = MODELS[name].fit(data, np.where(y > 0, "yes", "no"))
        if name.endswith("sparsified"):
            model.sparsify()
        plane = geometry.hyperplane(model)
        linear = "rbf" not in name and hasattr(model, "coef_")
        assert isinstance(plane, Hyperplane if linear else KernelHyperplane)
        assert_allclose(plane.decision_function(data), model.decision_function(data), atol=1e-8)

    def test_anything_with_the_attributes_will_do(self) -> None:
        linear = SimpleNamespace(coef_=np.array([1.0, 2.0]), intercept_=3)
        assert geometry.hyperplane(linear) == Hyperplane([1, 2], 3)
        kernel = SimpleNamespace(
            dual_coef_=[[1.0]], support_vectors_=[[2.0]], intercept_=[0.5], kernel_=Linear()
        )
        assert geometry.hyperplane(kernel).decision_function([[1]]) == 2.5

    @pytest.mark.parametrize("model", [svm.SVC(), svm.LinearSVC(), linear_model.Perceptron()])
    def test_unfitted_models_are_refused(self, model: Any) -> None:
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            geometry.hyperplane(model)

    @pytest.mark.parametrize("model", [svm.SVC(), svm.SVC(kernel="linear"), svm.LinearSVC()])
    def test_several_classes_are_refused(self, model: Any) -> None:
        model.fit([[0.0], [1.0], [2.0]], [0, 1, 2])
        with pytest.raises(ValueError, match="3 classes, so several planes"):
            geometry.hyperplane(model)

    def test_models_without_a_plane_are_refused(self) -> None:
        X, y = datasets.gaussians(20)
        with pytest.raises(ValueError, match="for a pipeline, give its last step"):
            geometry.hyperplane(make_pipeline(StandardScaler(), svm.LinearSVC()).fit(X, y))
        with pytest.raises(ValueError, match="kernel='precomputed'"):
            geometry.hyperplane(svm.SVC(kernel="precomputed").fit(X @ X.T, y))
        with pytest.raises(ValueError, match="no intercept_"):
            geometry.hyperplane(SimpleNamespace(coef_=[1.0]))
        with pytest.raises(ValueError, match=r"coef_ has shape \(2, 1\)"):
            geometry.hyperplane(SimpleNamespace(coef_=[[1.0], [2.0]], intercept_=[0.0]))
        with pytest.raises(ValueError, match="intercept_ has 2 entries"):
            geometry.hyperplane(SimpleNamespace(coef_=[1.0], intercept_=[0.0, 1.0]))


def perceptron_updates(
    X: Matrix, y: Matrix, w: Matrix, theta: float = 0.0, eta: float = 1.0
) -> int:
    """Run a perceptron through the origin until a whole pass is right; count its updates."""
    updates, clean = 0, 0
    while clean < len(X):
        for x, label in zip(X, y, strict=True):
            if label * (w @ x) <= theta:
                w, updates, clean = w + eta * label * x, updates + 1, 0
            else:
                clean += 1
    return updates


def lift(X: Matrix) -> Matrix:
    return np.column_stack([X, np.ones(len(X))])


class TestMistakeBound:
    @settings(max_examples=60)
    @given(
        seeds,
        st.sampled_from([0.0, 0.5, 3.0]),
        st.sampled_from([0.1, 1.0, 4.0]),
        st.sampled_from([0.0, 2.0]),
    )
    def test_no_perceptron_exceeds_it(
        self, seed: int, theta: float, eta: float, start: float
    ) -> None:
        rng = np.random.default_rng(seed)
        w, b = rng.normal(size=2), float(rng.normal())
        X, labels = datasets.separable(20, margin=0.3, w=w, b=b, random_state=rng)
        y = labels.astype(np.float64)
        w0 = rng.normal(size=3)
        w0 *= start / np.linalg.norm(w0)
        updates = perceptron_updates(lift(X), y, w0, theta, eta)
        bound = geometry.mistake_bound(
            Hyperplane(w, b), X, y, margin=theta, eta=eta, start_norm=start
        )
        assert updates <= bound < math.inf
        scaled = geometry.mistake_bound(
            Hyperplane(w, b).scaled(7), X, y, margin=theta, eta=eta, start_norm=start
        )
        assert_allclose(scaled, bound)

    @given(seeds)
    def test_it_holds_without_an_intercept(self, seed: int) -> None:
        X, labels = datasets.separable(20, 3, margin=0.3, random_state=seed)
        y, plane = labels.astype(np.float64), Hyperplane(np.ones(3))
        bound = geometry.mistake_bound(plane, X, y, fit_intercept=False)
        assert_allclose(bound, (geometry.radius(X) / 0.3) ** 2)
        assert perceptron_updates(X, y, np.zeros(3)) <= bound
        with pytest.raises(ValueError, match="give a plane with b = 0"):
            geometry.mistake_bound(plane.parallel(1.0), X, y, fit_intercept=False)

    @settings(max_examples=30)
    @given(seeds)
    def test_it_holds_for_kernels(self, seed: int) -> None:
        plane, X, y = kernel_problem(seed)
        f = plane.decision_function(X)
        clear = (f > np.median(f[y > 0])) | (f < np.median(f[y < 0]))
        X, y = X[clear], y[clear]
        plane = plane.parallel(geometry.best_offset(plane, X, y))
        # Points of the kernel's feature space, as rows of a root of K + 1.
        values, vectors = np.linalg.eigh(RBF(gamma=0.5).gram(X, X) + 1.0)
        points = vectors * np.sqrt(np.maximum(values, 0))
        bound = geometry.mistake_bound(plane, X, y)
        assert_allclose(
            bound, 2 * (plane.norm**2 + plane.b**2) / plane.functional_margin(X, y).min() ** 2
        )
        assert perceptron_updates(points, y, np.zeros(len(X))) <= bound

    @given(seeds)
    def test_rounding_does_not_break_a_bound_that_is_attained(self, seed: int) -> None:
        X = np.random.default_rng(seed).normal(size=(1, 5))
        best = Hyperplane(X[0], 1.0)  # one point, one update
        assert 1.0 <= geometry.mistake_bound(best, X, [1]) <= 1.0 + 1e-9

    def test_planes_that_do_not_separate_promise_nothing(self) -> None:
        assert geometry.mistake_bound(Hyperplane([1.0]), [[1], [-1]], [-1, 1]) == math.inf
        assert geometry.mistake_bound(Hyperplane([0.0]), [[1], [-1]], [-1, 1]) == math.inf

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ({"margin": -1}, "margin must be a finite number of at least 0, got -1"),
            ({"eta": 0}, "eta must be above 0, got 0"),
            ({"start_norm": np.nan}, "start_norm must be a finite number"),
        ],
    )
    def test_settings_are_checked(self, setting: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            geometry.mistake_bound(Hyperplane([1.0]), [[1]], [1], **setting)


def multiclass_updates(
    X: Matrix, y: npt.NDArray[np.int64], W: Matrix, theta: float, eta: float
) -> int:
    updates, clean = 0, 0
    while clean < len(X):
        for x, right in zip(X, y, strict=True):
            scores = W @ x
            others = np.where(np.arange(len(W)) == right, -np.inf, scores)
            rival = int(others.argmax())
            if scores[right] - scores[rival] <= theta:
                W = W.copy()
                W[right] += eta * x
                W[rival] -= eta * x
                updates, clean = updates + 1, 0
            else:
                clean += 1
    return updates


class TestMulticlassMistakeBound:
    @settings(max_examples=40)
    @given(
        seeds,
        st.sampled_from([0.0, 1.0]),
        st.sampled_from([0.2, 1.0, 3.0]),
        st.sampled_from([0.0, 2.0]),
        st.booleans(),
    )
    def test_no_perceptron_exceeds_it(
        self, seed: int, theta: float, eta: float, start: float, fit_intercept: bool
    ) -> None:
        rng = np.random.default_rng(seed)
        W, b = rng.normal(size=(4, 2)), rng.normal(size=4) * fit_intercept
        X = 2 * rng.normal(size=(60, 2))
        scores = np.sort(X @ W.T + b, axis=1)
        X = X[scores[:, -1] - scores[:, -2] > 0.5]  # keep the points with a clear winner
        y = (X @ W.T + b).argmax(axis=1)
        points = lift(X) if fit_intercept else X
        W0 = rng.normal(size=(4, points.shape[1]))
        W0 *= start / np.linalg.norm(W0)
        bound = geometry.multiclass_mistake_bound(
            W, b, X, y, margin=theta, eta=eta, start_norm=start, fit_intercept=fit_intercept
        )
        assert multiclass_updates(points, y, W0, theta, eta) <= bound < math.inf

    @given(seeds)
    def test_two_opposite_classes_are_the_binary_problem(self, seed: int) -> None:
        plane, X, y = problem(seed)
        W, b = np.array([-plane.w, plane.w]), [-plane.b, plane.b]
        # s₊ − s₋ = 2f and ‖W‖² = 2‖w‖²: γ̃² doubles, as R̃² does.
        assert_allclose(
            geometry.multiclass_mistake_bound(W, b, X, (y > 0).astype(int)),
            geometry.mistake_bound(plane, X, y),
        )

    def test_arguments_are_checked(self) -> None:
        bound, W, X = geometry.multiclass_mistake_bound, [[1.0], [-1.0]], [[1.0], [-2.0]]
        assert bound(W, [0, 0], X, [1, 0]) == math.inf
        with pytest.raises(ValueError, match="y_index must lie from 0 to 1, got 1 to 2"):
            bound(W, [0, 0], X, [1, 2])
        with pytest.raises(ValueError, match="y_index must be 2 whole numbers"):
            bound(W, [0, 0], X, [0.0, 1.0])
        with pytest.raises(ValueError, match="W has 2 rows and b 1 entries"):
            bound(W, [0], X, [0, 1])
        with pytest.raises(ValueError, match="b is not zero"):
            bound(W, [0, 1], X, [0, 1], fit_intercept=False)


class TestRadius:
    @given(seeds)
    def test_every_point_lies_within_and_one_on_the_sphere(self, seed: int) -> None:
        X = np.random.default_rng(seed).normal(size=(9, 3))
        lengths = np.linalg.norm(X, axis=1)
        assert_allclose(geometry.radius(X), lengths.max())
        assert_allclose(geometry.kernel_radius(Linear(), X), lengths.max())
        assert_allclose(geometry.kernel_radius(RBF(gamma=3.0), X), 1.0)

    def test_a_kernel_without_a_diagonal_will_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inputs, "BLOCK_SIZE", 128)
        X = np.random.default_rng(0).normal(size=(300, 3))
        plain = SimpleNamespace(gram=lambda A, B: A @ B.T)
        assert_allclose(geometry.kernel_radius(plain, X), geometry.radius(X))
