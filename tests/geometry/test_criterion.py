"""The perceptron criterion: what the updates descend."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.geometry import (
    Hyperplane,
    KernelHyperplane,
    multiclass_perceptron_criterion,
    perceptron_criterion,
)

seeds = st.integers(0, 2**32 - 1)


def gradient(E: Any, at: Floats) -> Floats:
    """Return the derivative of a piecewise linear function, by differences small enough."""
    steps = 1e-6 * np.eye(len(at))
    return np.array([(E(at + h) - E(at - h)) / 2e-6 for h in steps])


def binary(seed: int) -> tuple[Floats, Any, Floats]:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    return X, y, rng.normal(size=d + 1)


class TestTwoClasses:
    @settings(max_examples=30)
    @given(seeds)
    def test_it_sums_the_wrong_scores(self, seed: int) -> None:
        X, y, v = binary(seed)
        f = X @ v[:-1] + v[-1]
        expected = -sum(float(t * s) for s, t in zip(f, y, strict=True) if t * s <= 0)
        assert_allclose(perceptron_criterion(Hyperplane(v[:-1], v[-1]), X, y), expected, atol=1e-14)

    @settings(max_examples=20, deadline=None)
    @given(seeds, st.sampled_from([0.3, 1.0]))
    def test_an_update_is_a_step_down_its_gradient(self, seed: int, eta: float) -> None:
        X, y, v = binary(seed)
        f = X @ v[:-1] + v[-1]
        if np.abs(f).min() < 1e-4:
            return  # on a kink there is no gradient

        def criterion(rows: Any) -> Any:
            return lambda u: perceptron_criterion(Hyperplane(u[:-1], u[-1]), X[rows], y[rows])

        total = gradient(criterion(np.arange(len(X))), v)
        lifted = np.column_stack([X, np.ones(len(X))])
        wrong = y * f < 0
        assert_allclose(total, -(y[wrong, None] * lifted[wrong]).sum(axis=0), atol=1e-8)
        for i in range(len(X)):
            model = mm.Perceptron(eta=eta, init=(v[:-1], v[-1:]), stop="one_pass", shuffle=False)
            model.partial_fit(X[[i]], y[[i]], classes=[-1, 1])
            step = np.append(model.coef_[0], model.intercept_) - v
            assert_allclose(step, -eta * gradient(criterion([i]), v), atol=1e-8)

    @settings(max_examples=30)
    @given(seeds)
    def test_zero_exactly_if_no_row_is_strictly_wrong(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (6, 2)).astype(float)  # points on the plane are frequent
        y = np.array([1, -1, 1, -1, 1, -1])
        plane = Hyperplane(rng.integers(-1, 2, 2), float(rng.integers(-1, 2)))
        E = perceptron_criterion(plane, X, y)
        assert E >= 0
        assert (E == 0) == (plane.functional_margin(X, y) >= 0).all()

    def test_the_zero_vector_and_small_ones(self) -> None:
        X, y, v = binary(1)
        E = perceptron_criterion(Hyperplane([0.0] * X.shape[1]), X, y)
        assert E == 0
        assert not np.signbit(E)
        plane = Hyperplane(v[:-1], v[-1])
        assert_allclose(
            perceptron_criterion(plane.scaled(0.01), X, y),
            0.01 * perceptron_criterion(plane, X, y),
        )

    def test_weights_are_repetitions(self) -> None:
        X, y, v = binary(4)
        plane = Hyperplane(v[:-1], v[-1])
        weight = np.arange(len(y)) % 3
        repeated = perceptron_criterion(plane, np.repeat(X, weight, axis=0), np.repeat(y, weight))
        assert_allclose(perceptron_criterion(plane, X, y, sample_weight=weight), repeated)
        assert perceptron_criterion(plane, X, y, np.full(len(y), 0.5)) == pytest.approx(
            perceptron_criterion(plane, X, y) / 2
        )

    def test_in_feature_space(self) -> None:
        """The kernel perceptron's step is one down the gradient in the coefficients' plane."""
        rng = np.random.default_rng(0)
        X, y, a = rng.normal(size=(8, 2)), np.tile([1, -1], 4), rng.normal(size=8)
        kernel = mm.kernels.RBF(gamma=0.7)
        K = kernel.gram(X, X)
        f = K @ a + 0.1
        E = perceptron_criterion(KernelHyperplane(kernel, X, a, 0.1), X, y)
        assert_allclose(E, -(y * f)[y * f < 0].sum())
        slope = gradient(
            lambda c: perceptron_criterion(KernelHyperplane(kernel, X, c, 0.1), X, y), a
        )
        # ∂E/∂a = Kg, where g is the gradient in feature space: −Σ y φ(x) over the mistakes.
        assert_allclose(slope, -K @ np.where(y * f < 0, y, 0), atol=1e-8)

    def test_of_fitted_models(self) -> None:
        X, y = mm.datasets.separable(60, margin=0.2, random_state=0)
        plane = mm.geometry.hyperplane(mm.Perceptron().fit(X, y))
        assert perceptron_criterion(plane, X, y) == 0
        with pytest.raises(TypeError, match=r"geometry\.hyperplane\(model\)"):
            perceptron_criterion(mm.Perceptron().fit(X, y), X, y)

    def test_arguments_are_checked(self) -> None:
        plane = Hyperplane([1.0, 0.0])
        with pytest.raises(ValueError, match=r"sample_weight\.shape"):
            perceptron_criterion(plane, [[1, 2]], [1], sample_weight=[1, 2])
        with pytest.raises(ValueError, match="3 classes"):
            perceptron_criterion(plane, np.ones((3, 2)), [0, 1, 2])


class TestSeveralClasses:
    @settings(max_examples=10, deadline=None)
    @given(seeds)
    def test_an_update_is_a_step_down_its_gradient(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        K, d, n = 3, 2, 6
        X, y = rng.normal(size=(n, d)), np.arange(n) % K
        W, b = rng.normal(size=(K, d)), rng.normal(size=K)
        scores = np.sort(X @ W.T + b, axis=1)
        if np.diff(scores, axis=1).min() < 1e-4:
            return  # on a kink there is no gradient

        def criterion(v: Floats) -> float:
            M = v.reshape(K, d + 1)
            return multiclass_perceptron_criterion(M[:, :d], M[:, d], X[[i]], y[[i]])

        v = np.column_stack([W, b]).ravel()
        for i in range(n):
            model = mm.Perceptron(init=(W, b)).partial_fit(X[[i]], y[[i]], classes=range(K))
            step = np.column_stack([model.coef_, model.intercept_]).ravel() - v
            assert_allclose(step, -gradient(criterion, v), atol=1e-8)

    def test_two_opposite_classes_are_the_binary_criterion(self) -> None:
        X, y, v = binary(3)
        W, b = np.array([-v[:-1], v[:-1]]) / 2, np.array([-v[-1], v[-1]]) / 2
        both = multiclass_perceptron_criterion(W, b, X, (y > 0).astype(int))
        assert_allclose(both, perceptron_criterion(Hyperplane(v[:-1], v[-1]), X, y))


class TestTraces:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize(
        "learner", [mm.Perceptron, mm.AveragedPerceptron, mm.VotedPerceptron, mm.KernelPerceptron]
    )
    def test_the_criterion_after_each_epoch(self, learner: Any, n_classes: int) -> None:
        rng = np.random.default_rng(5)
        X, y = rng.normal(size=(40, 3)), np.arange(40) % n_classes
        weight = rng.integers(0, 4, 40)
        linear = {"kernel": "linear"} if learner is mm.KernelPerceptron else {}
        model = learner(trace=True, stop="epochs", max_epochs=4, **linear)
        trace = model.fit(X, y, sample_weight=weight).trace_
        assert len(trace.criterion) == len(trace.mistakes) == 4
        # The running weights after k epochs, by the updates of an equal perceptron.
        told = mm.Perceptron(trace=True, stop="epochs", max_epochs=4)
        path = told.fit(X, y, sample_weight=weight).trace_
        for k in range(4):
            short = mm.Perceptron(stop="epochs", max_epochs=k + 1).fit(X, y, sample_weight=weight)
            if n_classes == 2:
                plane = Hyperplane(short.coef_[0], short.intercept_[0])
                E = perceptron_criterion(plane, X, y, sample_weight=weight)
            else:
                E = multiclass_perceptron_criterion(
                    short.coef_, short.intercept_, X, y, sample_weight=weight
                )
            assert E > 0
            assert_allclose(trace.criterion[k], E, rtol=1e-9)
        assert_array_equal(trace.updates, path.updates)

    def test_it_ends_at_zero_where_all_is_right(self) -> None:
        X, y = mm.datasets.separable(60, margin=0.2, random_state=0)
        assert mm.Perceptron(trace=True).fit(X, y).trace_.criterion[-1] == 0

    def test_held_out_rows_do_not_count(self) -> None:
        X, y = mm.datasets.gaussians(60, variance=0.5, random_state=1)
        model = mm.Perceptron(trace=True, stop="held_out", max_epochs=3, shuffle=False)
        with pytest.warns(ConvergenceWarning):
            trace = model.fit(X, y).trace_
        plane = Hyperplane(model.coef_[0], model.intercept_[0])
        margins = plane.functional_margin(X, y)
        assert trace.criterion[-1] < -margins[margins < 0].sum()
