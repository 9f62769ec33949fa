"""Warnings point at the caller's line, and errors name the cause that the caller can change."""

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = RNG.integers(0, 2, 60)


@pytest.mark.parametrize(
    "model",
    [
        mm.SVC(max_iter=1),
        mm.LinearSVC(max_iter=1),
        mm.SVR(max_iter=1),
        mm.OneClassSVM(max_iter=1, tol=1e-12),
        mm.Perceptron(max_epochs=1),
        mm.KernelPerceptron(max_epochs=1),
        mm.PartitionedSVC(max_iter=1),
        make_pipeline(StandardScaler(), mm.SVC(max_iter=1)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_warnings_point_at_the_line_that_called(model: Any) -> None:
    frame = inspect.currentframe()
    assert frame
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    here = [(each.filename, each.lineno) for each in caught]
    assert here
    assert set(here) == {(__file__, frame.f_lineno - 3)}


@pytest.mark.parametrize("model", [mm.SVC(), mm.LinearSVC(), mm.Perceptron()], ids=repr)
def test_weights_are_named_if_they_leave_one_class(model: Any) -> None:
    with pytest.raises(ValueError, match="sample_weight leaves only the class 1"):
        model.fit(X, Y, sample_weight=Y.astype(float))


def test_class_weights_are_named_if_they_leave_one_class() -> None:
    with pytest.raises(ValueError, match="class_weight leaves only the class 1"):
        mm.SVC(class_weight={0: 0, 1: 1}).fit(X, Y)


def test_labels_beyond_64_bits_are_refused_by_that_name() -> None:
    with pytest.raises(ValueError, match="beyond 64 bits, such as 1000000"):
        mm.SVC().fit(X, np.array([10**30, 1], dtype=object)[Y])


def test_geometry_names_what_to_pass_instead_of_a_model() -> None:
    model = mm.SVC().fit(X, Y)
    with pytest.raises(TypeError, match=r"got SVC; .* Hyperplane\(model.coef_"):
        mm.geometry.mistake_bound(model, X, Y)
    with pytest.raises(TypeError, match=r"got SVC; .* pass model.kernel_"):
        mm.geometry.kernel_radius(model, X)


def test_gamma_is_answered_in_the_words_of_the_estimator() -> None:
    with pytest.raises(ValueError, match="got -1; gamma='scale' is a safe start"):
        mm.SVC(gamma=-1).fit(X, Y)


def test_the_package_shows_its_public_names_only() -> None:
    mm.SVC(max_iter=1000).fit(X, Y)  # rooms that were loaded on the way do not appear
    assert {name for name in dir(mm) if not name.startswith("__")} == set(mm.__all__)


def test_a_search_warns_once_for_its_candidates_and_once_for_its_model() -> None:
    search = GridSearchCV(mm.SVC(max_iter=2, tol=1e-12), {"C": [1.0, 2.0, 3.0, 5.0]}, cv=3)
    for _ in range(2):  # another fit of the same search is another matter
        with pytest.warns(ConvergenceWarning) as caught:
            search.fit(X, Y)
        first, last = (str(each.message) for each in caught)
        assert "Only the first such fit" in first
        assert last == search.best_estimator_.stop_reason_


@pytest.mark.parametrize("size", [1e-310, 1e-200])
def test_tiny_columns_are_decided_or_refused_by_their_size(size: float) -> None:
    y = (X[:, 0] > 0).astype(int)
    assert mm.separate(size * X, y).separable
    with pytest.raises(ValueError, match=r"No value of X is larger than .*: multiply X"):
        mm.HardMarginSVC().fit(size * X, y)


def test_kernels_that_hold_a_function_are_not_sent_to_themselves(tmp_path: Path) -> None:
    kernel = mm.kernels.FromFunction(np.dot, on="pairs")
    for each in (kernel, kernel + mm.kernels.RBF(1.0)):
        with pytest.raises(TypeError, match="no functions of yours; use a kernel such as"):
            mm.save(mm.SVC(kernel=each).fit(X, Y), tmp_path / "model.mmg")
