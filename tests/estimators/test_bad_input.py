"""Bad input gets the documented exception and says what to do, for every estimator.

The numbers are those of the classes of bad input that the library promises to handle.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from tests.support.estimators import ESTIMATORS

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0], [3.0, 2.0]])
Y = np.array([0, 1, 0, 1])


def replaced(value: Any, dtype: Any = float) -> Any:
    bad = X.astype(dtype)
    bad[1, 1] = value
    return bad


def sparse_nan() -> Any:
    bad = sp.csr_array(X)
    bad.data[0] = np.nan
    return bad


def broken(index: int) -> Any:
    bad = sp.csr_array(X)
    bad.indices[0] = index
    return bad


FIT: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "1 NaN in X": (lambda m: m.fit(replaced(np.nan), Y), ValueError, "Input X contains NaN"),
    "2 inf in X": (lambda m: m.fit(replaced(np.inf), Y), ValueError, "contains infinity"),
    "3 NaN in y": (lambda m: m.fit(X, [0.0, 1.0, np.nan, 1.0]), ValueError, "contains NaN"),
    "4 empty X": (lambda m: m.fit(X[:0], Y[:0]), ValueError, "0 sample(s)"),
    "5 one sample": (lambda m: m.fit(X[:1], Y[:1]), ValueError, "only one class: 0"),
    "6 zero features": (lambda m: m.fit(X[:, :0], Y), ValueError, "0 feature(s)"),
    "7 1-D X": (lambda m: m.fit(X[0], Y), ValueError, "Expected 2D array, got 1D array"),
    "8 3-D X": (lambda m: m.fit(X[None], Y), ValueError, "dim 3"),
    "9 lengths differ": (lambda m: m.fit(X, Y[:3]), ValueError, "inconsistent numbers of samples"),
    "10 one class": (lambda m: m.fit(X, [7, 7, 7, 7]), ValueError, "only one class: 7"),
    "12 continuous y": (
        lambda m: m.fit(X, [0.1, 0.2, 0.3, 0.4]), ValueError, "Unknown label type: continuous"
    ),
    "13 strings in X": (
        lambda m: m.fit(np.array([["a", "b"]] * 4), Y), ValueError, "could not convert string"
    ),
    "14 ragged X": (lambda m: m.fit([[1.0], [1.0, 2.0], [1.0], [2.0]], Y), ValueError, "inhomog"),
    "15 complex X": (
        lambda m: m.fit(X * 1j, Y), ValueError, "Complex data not supported"
    ),
    "17 sparse NaN": (lambda m: m.fit(sparse_nan(), Y), ValueError, "contains NaN"),
    "18 negative weight": (
        lambda m: m.fit(X, Y, sample_weight=[1, -1, 1, 1]), ValueError, "negative values (row 1"
    ),
    "18 NaN weight": (
        lambda m: m.fit(X, Y, sample_weight=[1, np.nan, 1, 1]), ValueError, "contains NaN"
    ),
    "18 all-zero weight": (
        lambda m: m.fit(X, Y, sample_weight=[0, 0, 0, 0]), ValueError, "zero or negative weights"
    ),
    "18 short weight": (
        lambda m: m.fit(X, Y, sample_weight=[1, 1]), ValueError, "expected (4,)"
    ),
    "18 weight of words": (
        lambda m: m.fit(X, Y, sample_weight=list("abcd")), TypeError, "must hold numbers"
    ),
    "22 other features": (
        lambda m: m.fit(X, Y).predict(X[:, :1]), ValueError, "X has 1 features, but"
    ),
    "23 before fit": (lambda m: m.predict(X), NotFittedError, "is not fitted yet"),
    "3 None in y": (lambda m: m.fit(X, np.array([0, 1, None, 1], object)), ValueError, "(row 2)"),
    "17 index out of range": (lambda m: m.fit(broken(5), Y), ValueError, "ndices must be <"),
    "17 negative index": (lambda m: m.fit(broken(-1), Y), ValueError, "ndices must be >="),
    "18 zero class weights": (
        lambda m: m.set_params(class_weight={0: 0, 1: 0}).fit(X, Y), ValueError, "nothing is left"
    ),
    "scale 1e300": (
        lambda m: m.fit(replaced(1e300), Y), ValueError, "Column 1 of X reaches 1e+300"
    ),
    "bad seed": (lambda m: m.set_params(random_state=-1).fit(X, Y), ValueError, "random_state=-1"),
    "y is None": (lambda m: m.fit(X, None), ValueError, "requires y to be passed"),
    "unknown class weight": (
        lambda m: m.set_params(class_weight="heavy").fit(X, Y), ValueError, "class_weight='heavy'"
    ),
    "negative class weight": (
        lambda m: m.set_params(class_weight={0: -1, 1: 1}).fit(X, Y), ValueError, ">= 0"
    ),
}  # fmt: skip


# What is wrong for classifiers only: regression has no classes, and learns from one row.
OF_CLASSES = {"5 one sample", "10 one class", "12 continuous y"}
# What is wrong with y: an outlier detector does not look at it.
OF_ANSWERS = {"3 NaN in y", "3 None in y", "9 lengths differ", "y is None"}
# Cases of a parameter that not every estimator has.
OF_A_PARAMETER = {
    "18 zero class weights": "class_weight",
    "unknown class weight": "class_weight",
    "negative class weight": "class_weight",
    "bad seed": "random_state",
}


# What structured outputs are learnt from are features of an example, which need not be columns.
OF_COLUMNS = {"scale 1e300"}


def applies(case: str, estimator: Any) -> bool:
    if case in OF_COLUMNS and hasattr(estimator, "model"):
        return False
    if case in OF_CLASSES and not is_classifier(estimator):
        return False
    if case in OF_ANSWERS and is_outlier_detector(estimator):
        return False
    return OF_A_PARAMETER.get(case, "") in ["", *estimator.get_params()]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("estimator", "case"),
    [(estimator, case) for estimator in ESTIMATORS for case in FIT if applies(case, estimator)],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_bad_data(estimator: Any, case: str) -> None:
    act, error, message = FIT[case]
    with pytest.raises(error, match=re.escape(message)):
        act(clone(estimator))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_frames(estimator: Any) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    with pytest.raises(ValueError, match="feature names should match"):
        clone(estimator).fit(frame, Y).predict(frame.rename(columns={"a": "c"}))
    with pytest.raises(TypeError, match=re.escape("pass X.collect()")):
        clone(estimator).fit(polars.DataFrame(X, schema=["a", "b"]).lazy(), Y)


# 19: per estimator and parameter, values that must be refused.
PARAMETERS: list[tuple[type[Any], str, Any, type[Exception]]] = [
    (learner, name, value, error)
    for learner in (mm.Perceptron, mm.AveragedPerceptron, mm.VotedPerceptron, mm.KernelPerceptron)
    for name, value, error in [
        ("eta", 0, ValueError),
        ("eta", -1.0, ValueError),
        ("eta", float("nan"), ValueError),
        ("eta", float("inf"), ValueError),
        ("eta", "1", TypeError),
        ("eta", None, TypeError),
        ("eta", True, TypeError),
        ("margin", -0.1, ValueError),
        ("margin", "0", TypeError),
        ("fit_intercept", "yes", TypeError),
        ("stop", "soon", ValueError),
        ("max_epochs", 0, ValueError),
        ("max_epochs", 1.5, TypeError),
        ("max_epochs", "many", TypeError),
        ("shuffle", 1, TypeError),
        ("change_tol", -1, ValueError),
        ("validation_fraction", 0.0, ValueError),
        ("validation_fraction", 1.0, ValueError),
        ("n_iter_no_change", 0, ValueError),
        ("max_time", 0, ValueError),
        ("max_time", "1 s", TypeError),
        ("warm_start", None, TypeError),
        ("callback", 3, TypeError),
        ("trace", "all", TypeError),
        ("verbose", "yes", TypeError),
    ]
]
PARAMETERS += [
    (mm.Perceptron, "keep", "first", ValueError),
    (mm.Perceptron, "init", "ones", ValueError),
    (mm.Perceptron, "init", [1.0], ValueError),
    (mm.Perceptron, "init", [[1.0], [1.0]], ValueError),
    (mm.Perceptron, "init", (1, 2, 3), ValueError),
    (mm.Perceptron, "init", [np.nan, 0.0], ValueError),
    (mm.KernelPerceptron, "keep", "first", ValueError),
    (mm.KernelPerceptron, "kernel", "rbff", ValueError),
    (mm.KernelPerceptron, "kernel", 3, TypeError),
    (mm.KernelPerceptron, "gamma", 0.0, ValueError),
    (mm.KernelPerceptron, "gamma", "large", TypeError),
    (mm.KernelPerceptron, "keep", None, ValueError),
]


@pytest.mark.parametrize(("learner", "name", "value", "error"), PARAMETERS)
def test_bad_parameters(learner: Any, name: str, value: Any, error: Any) -> None:
    with pytest.raises(error, match=name):
        learner(**{name: value}).fit(X, Y)


def test_no_held_out_rows() -> None:
    with pytest.raises(ValueError, match="needs a class with two rows"):
        mm.Perceptron(stop="held_out").fit(X[:2], Y[:2])


def test_an_intercept_given_but_not_wanted() -> None:
    with pytest.raises(ValueError, match="init gives an intercept, but fit_intercept=False"):
        mm.Perceptron(init=([1.0, 1.0], 2.0), fit_intercept=False).fit(X, Y)


# 20, 21: kernels
with_kernels = pytest.mark.parametrize("kind", [mm.KernelPerceptron, mm.SVC])


@with_kernels
def test_parameters_beside_a_kernel_object_are_not_ignored(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"gamma=5.0 is for kernels given by name"):
        kind(kernel=mm.kernels.RBF(), gamma=5.0).fit(X, Y)


@with_kernels
def test_a_kernel_of_the_wrong_shape_or_not_finite(kind: Any) -> None:
    with pytest.raises(ValueError, match="shape"):
        kind(kernel=lambda A, B: np.zeros(3)).fit(X, Y)
    with pytest.raises(ValueError, match="finite"):
        kind(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, Y)


@with_kernels
def test_bad_gram_matrices(kind: Any) -> None:
    gram = kind(kernel="precomputed")
    with pytest.raises(ValueError, match="must be a square matrix"):
        gram.fit(X, Y)
    with pytest.raises(ValueError, match="not symmetric"):
        gram.fit(np.triu(np.ones((4, 4))), Y)
    with pytest.raises(TypeError, match=r"dense data is required|Sparse precomputed kernels"):
        gram.fit(sp.csr_array(np.eye(4)), Y)
    with pytest.raises(ValueError, match="compute the composed matrix"):
        kind(kernel=2 * mm.kernels.Precomputed()).fit(np.eye(4), Y)
    if kind is mm.KernelPerceptron:
        gram.set_params(stop="epochs", max_epochs=2)
    with pytest.warns(UserWarning, match=r"indefinite|not positive semidefinite"):
        gram.fit(np.ones((4, 4)) - 2 * np.eye(4), Y)


# partial_fit
STREAMING = [estimator for estimator in ESTIMATORS if hasattr(estimator, "fit_chunks")]


@pytest.mark.parametrize("estimator", STREAMING, ids=lambda e: type(e).__name__)
def test_bad_streams(estimator: Any) -> None:
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        clone(estimator).partial_fit(X, Y)
    model = clone(estimator).partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="is not the same as on last call"):
        model.partial_fit(X, Y, classes=[0, 2])
    with pytest.raises(ValueError, match="5, which is not among the classes"):
        model.partial_fit(X, [0, 1, 5, 0])
    with pytest.raises(ValueError, match="X has 1 features, but"):
        model.partial_fit(X[:, :1], Y)
    with pytest.raises(ValueError, match="first chunk has no row with a weight above 0"):
        clone(estimator).partial_fit(X, Y, classes=[0, 1], sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="chunks is empty"):
        clone(estimator).fit_chunks([], classes=[0, 1])
    with pytest.raises(ValueError, match="class_weight='balanced' needs all rows at once"):
        clone(estimator).set_params(class_weight="balanced").partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="trace=True needs all rows at once"):
        clone(estimator).set_params(trace=True).partial_fit(X, Y, classes=[0, 1])


def test_streams_and_gram_matrices_do_not_mix() -> None:
    with pytest.raises(ValueError, match="the kernel values of earlier rows"):
        mm.KernelPerceptron(kernel="precomputed").partial_fit(np.eye(4), Y, classes=[0, 1])


@pytest.mark.parametrize(
    "model", [mm.KernelPCA(2, kernel="rbf"), mm.KernelPerceptron(), mm.Nystroem(n_components=2)]
)
def test_rows_too_large_for_their_squares_are_refused_later_too(model: Any) -> None:
    fitted = clone(model).fit(X, Y)
    act = fitted.decision_function if hasattr(fitted, "classes_") else fitted.transform
    with pytest.raises(ValueError, match="Column 1 of X"):
        act(np.array([[0.0, 1e300]]))
