"""Exported graphs, run by onnxruntime, against the models themselves."""

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import maxmargin as mm
from maxmargin.kernels import (
    RBF,
    ChiSquared,
    Columns,
    Constant,
    Cosine,
    FromFunction,
    FromMap,
    Intersection,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

Array = npt.NDArray[Any]
TOL = 1e-10
OFFSETS = [0.0, 1e6]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def load(graph: Any) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # several would wait for each other, on graphs so small
    return ort.InferenceSession(graph.SerializeToString(), options, ["CPUExecutionProvider"])


def run(model: Any, X: Any) -> dict[str, Array]:
    """Return the outputs of the exported model by name."""
    session = load(mm.files.to_onnx(model))
    feed = X if isinstance(X, dict) else {"X": np.asarray(X, np.float64)}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def rows(offset: float = 0.0, seed: int = 0, n: int = 90, d: int = 3) -> Array:
    return np.random.default_rng(seed).normal(size=(n, d)) + offset


def labels(X: Array, offset: float = 0.0, classes: int = 2) -> Array:
    """Return classes that overlap somewhat, all of them present."""
    noise = np.random.default_rng(9).normal(scale=0.2, size=len(X))
    angle = np.arctan2(X[:, 0] - offset, X[:, 1] - offset) + np.pi + noise
    return np.clip(angle / (2 * np.pi) * classes, 0, classes - 1).astype(int)


def sizes(model: Any, X: Array) -> Array:
    """Return Σ|coef·K| + |b| of each row: what rounding is measured by."""
    offset = np.abs(model.intercept_).max()
    if type(getattr(model, "kernel_", Linear())) is Linear:
        weights = np.abs(np.atleast_2d(model.coef_)).max(axis=0)
        return np.asarray(np.abs(X) @ weights + offset)
    if model.kernel_.takes_gram:
        K = X[:, model.support_]
    else:
        K = model.kernel_.gram(X, model.support_vectors_)
    return np.asarray(np.abs(K) @ np.abs(model.dual_coef_).max(axis=0) + offset)


def check_classifier(model: Any, X: Array, size: Any = None) -> None:
    found = run(model, X)
    scale = np.maximum(sizes(model, X) if size is None else size, 1.0)
    check_scores(found, model, X, scale)
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        p = found["probabilities"]
        np.testing.assert_allclose(p, model.predict_proba(X), atol=TOL * np.max(scale), rtol=0)
        best = np.asarray(model.classes_)[p.argmax(axis=1)]
        assert best.tolist() == found["label"].tolist()


def check_scores(found: dict[str, Array], model: Any, X: Any, scale: Any) -> None:
    """Check labels and scores of rows whose scores are sums of this size."""
    expected = model.decision_function(X)
    assert found["decision"].shape == expected.shape
    bound = np.broadcast_to(TOL * scale, len(expected))
    excess = np.abs(found["decision"] - expected).T - bound
    assert excess.max(initial=0.0) <= 0.0
    # Far from the origin, some rows are decided by rounding.
    lead = np.abs(expected) if expected.ndim == 1 else np.ptp(np.sort(expected)[:, -2:], axis=1)
    decided = (lead > bound) | (bound < 1e-7)
    assert (found["label"] == model.predict(X))[decided].all()


# ------------------------------------------------------------------- kernels

KERNELS = [
    Linear(),
    Polynomial(degree=3, gamma=0.5, coef0=1.0),
    Polynomial(degree=2, gamma=0.5, coef0=-0.5),
    RBF(gamma=0.4),
    RBF(gamma=50.0),
    Sigmoid(gamma=0.1, coef0=-0.2),
    Cosine(),
    Laplacian(gamma=0.3),
    Columns(RBF(gamma=1.0), [0, -1]) + 3.5 * Columns(Linear(), [1]),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_kernel(kernel: Any, offset: float) -> None:
    X = rows(offset)
    model = mm.SVC(kernel=kernel, C=3.0, max_iter=200).fit(X, labels(X, offset))
    check_classifier(model, rows(offset, seed=1))
    check_classifier(model, rows(offset + 5.0, seed=2))  # farther out than the training rows


@pytest.mark.parametrize("kernel", [ChiSquared(gamma=0.7), Intersection(), ChiSquared() * RBF()])
def test_kernels_of_histograms(kernel: Any) -> None:
    X, new = np.abs(rows()), np.abs(rows(seed=1))
    X[::3, 0] = new[::4, :2] = 0.0  # 0/0 counts as 0
    new[0] = 0.0
    check_classifier(mm.SVC(kernel=kernel).fit(X, labels(X, 0.5)), new)


def test_cosine_of_a_row_of_zeros_and_of_huge_rows() -> None:
    X = rows()
    new = np.vstack([np.zeros((1, 3)), 1e-200 * rows(seed=1), 1e120 * rows(seed=1)])
    check_classifier(mm.SVC(kernel=Cosine()).fit(X, labels(X)), new)


def test_distances_between_far_clusters_keep_their_digits() -> None:
    X = rows(n=120) + np.repeat([0.0, 1e5, -3e5], 40)[:, np.newaxis]
    new = rows(seed=1, n=120) + np.repeat([0.0, 1e5, -3e5], 40)[:, np.newaxis]
    model = mm.SVC(kernel=RBF(gamma=0.5)).fit(X, labels(rows(n=120)))
    graph = mm.files.to_onnx(model)
    assert "Scan" in {node.op_type for node in graph.graph.node}
    check_classifier(model, new)


@pytest.mark.parametrize("classes", [2, 3])
def test_precomputed_kernel_takes_kernel_values(classes: int) -> None:
    X, new = rows(), rows(seed=1)
    kernel = RBF(gamma=0.5)
    y = labels(X, classes=classes)
    K, K_new = kernel.gram(X), kernel.gram(new, X)
    check_classifier(mm.SVC(kernel="precomputed").fit(K, y), K_new)
    model = mm.KernelPCA(4, kernel="precomputed").fit(K)
    np.testing.assert_allclose(run(model, K_new)["transformed"], model.transform(K_new), atol=TOL)


LEAVES = [
    Linear(), Polynomial(degree=2, gamma=0.3, coef0=0.5), RBF(gamma=0.7), RBF(gamma=300.0),
    Sigmoid(gamma=0.2), Cosine(), Laplacian(gamma=0.4), ChiSquared(), Intersection(),
    Constant(1.5), Columns(RBF(gamma=2.0), [1]), Columns(Laplacian(), [2, 0, 2]),
]  # fmt: skip


def compositions(members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.tuples(members, members)
    return (
        pairs.map(lambda both: both[0] + both[1])
        | pairs.map(lambda both: both[0] * both[1])
        | st.tuples(members, st.floats(0.1, 3.0)).map(lambda both: both[1] * both[0])
        | st.tuples(members, st.integers(1, 3)).map(lambda both: both[0] ** both[1])
    )


@given(st.recursive(st.sampled_from(LEAVES), compositions, max_leaves=4), st.floats(0.0, 100.0))
@settings(max_examples=40, deadline=None)
def test_every_composition(kernel: Any, offset: float) -> None:
    X, new = np.abs(rows(offset, n=25)), np.abs(rows(offset, seed=1, n=25))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # kernels that are not positive semidefinite
        model = mm.SVR(kernel=kernel, max_iter=20).fit(X, X[:, 0] - offset)
    errors = np.abs(run(model, new)["prediction"] - model.predict(new))
    assert (errors / sizes(model, new)).max() <= TOL


# ------------------------------------------------------------------- classifiers

CLASSIFIERS = [
    mm.SVC(probability=True),
    mm.SVC(kernel="linear"),
    mm.SVC(kernel="poly", coef0=1.0, decision_function_shape="ovo"),
    mm.SVC(multi_class="ovr", probability=True),
    mm.SVC(break_ties=True, class_weight="balanced"),
    mm.SVC(fit_intercept=False),
    mm.SVC(gamma=0.0),
    mm.NuSVC(nu=0.2),
    mm.NuSVC(nu=0.2, kernel="linear", probability=True),
    mm.LinearSVC(probability=True),
    mm.LinearSVC(multi_class="ovo", probability=True),
    mm.LinearSVC(multi_class="crammer_singer"),
    mm.LinearSVC(fit_intercept=False),
    mm.HardMarginSVC(kernel="rbf", gamma=1.0),
    mm.HardMarginSVC(kernel="rbf", gamma=1.0, multi_class="ovr", probability=True),
    mm.Perceptron(max_epochs=5),
    mm.AveragedPerceptron(max_epochs=5),
    mm.KernelPerceptron(max_epochs=5),
    mm.KernelPerceptron(kernel="linear", max_epochs=5),
]
LABELS: dict[str, Callable[[Array], Array]] = {
    "int": lambda y: 3 * y - 2,
    "str": lambda y: np.array(["no", "ja", "ünknown", "other"])[y],
}


@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize(
    ("classes", "kind", "offset"), [(2, "str", 0.0), (4, "int", 0.0), (3, "int", 1e6)]
)
def test_every_classifier(model: Any, classes: int, kind: str, offset: float) -> None:
    X = rows(offset)
    y = LABELS[kind](labels(X, offset, classes=classes))
    check_classifier(clone(model).fit(X, y), rows(offset, seed=1))


def test_labels_keep_their_type() -> None:
    X = rows()
    for y in (
        labels(X) > 0,
        labels(X) - 4.0,
        np.array(["ja", "no"], object)[labels(X)],
        labels(X).astype(np.uint8),
    ):
        model = mm.LinearSVC().fit(X, y)
        found = run(model, X)["label"]
        assert found.dtype == (np.int64 if y.dtype.kind == "u" else y.dtype)
        assert found.tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer"])
def test_classes_without_weight_never_win(scheme: str) -> None:
    X = rows()
    y = labels(X, classes=4)
    weight = (y != 1).astype(float)
    models: list[Any] = [mm.LinearSVC(multi_class=scheme, probability=True)]
    if scheme != "crammer_singer":
        models += [mm.SVC(multi_class=scheme, probability=True)]
    for model in models:
        model.fit(X, y, sample_weight=weight)
        check_classifier(model, rows(seed=1))
        assert 1 not in run(model, rows(seed=1))["label"]


def test_rows_on_the_boundary_and_ties() -> None:
    # Whole numbers: all scores are exact, and many are 0 or equal.
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    ties = 0
    grid = np.array([[i, j] for i in range(-2, 3) for j in range(-2, 3)], dtype=float)
    for y in ([0, 0, 1, 1], [0, 1, 2, 3]):
        for model in (
            mm.HardMarginSVC(kernel="linear"),
            mm.Perceptron(),
            mm.SVC(kernel="linear", multi_class="ovo"),
        ):
            model.fit(corners, y)
            expected = model.decision_function(grid)
            found = run(model, grid)
            # A score that should be 0 may be a rounding error, of either sign.
            size = np.abs(expected) if expected.ndim == 1 else np.ones(len(grid))
            certain = (size == 0) | (size > 1e-9)
            assert (found["label"] == model.predict(grid))[certain].all()
            ties += int(certain.sum() - (size > 1e-9).sum())
    assert ties > 0


def test_models_fitted_to_sparse_and_to_single_rows() -> None:
    X = rows()
    y = labels(X, classes=3)
    X[np.abs(X) < 0.3] = 0.0
    check_classifier(mm.SVC().fit(sp.csr_array(X), y), rows(seed=1))
    check_classifier(mm.SVC().fit(X.astype(np.float32), y), rows(seed=1))
    check_classifier(mm.LinearSVC().fit(sp.csr_array(X), y), rows(seed=1))


# ------------------------------------------------------------------- regressors, outliers


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize(
    "model",
    [
        mm.SVR(C=10.0),
        mm.SVR(kernel="linear"),
        mm.SVR(kernel=RBF() + Linear()),
        mm.NuSVR(nu=0.3),
        mm.QuantileSVR(quantile=0.8),
        mm.LinearSVR(),
    ],
    ids=repr,
)
def test_every_regressor(model: Any, offset: float) -> None:
    X, new = rows(offset), rows(offset, seed=1)
    model = clone(model).fit(X, np.sin(X[:, 0] - offset) + 0.1 * (X[:, 1] - offset))
    found = run(model, new)
    assert list(found) == ["prediction"]
    assert found["prediction"].shape == (len(new),)
    assert (np.abs(found["prediction"] - model.predict(new)) <= TOL * sizes(model, new)).all()


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", Laplacian(gamma=0.2)])
def test_one_class(kernel: Any, offset: float) -> None:
    X, new = rows(offset), 2 * rows(seed=1) + offset
    model = mm.OneClassSVM(nu=0.2, kernel=kernel).fit(X)
    found = run(model, new)
    assert found["label"].dtype == np.int64
    assert found["label"].tolist() == model.predict(new).tolist()
    errors = np.abs(found["decision"] - model.decision_function(new))
    assert (errors <= TOL * sizes(model, new)).all()


# ------------------------------------------------------------------- feature maps


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize(
    "model",
    [
        mm.KernelPCA(4, kernel="rbf", eigen_solver="dense"),
        mm.KernelPCA(4, kernel="laplacian", gamma=0.3),
        mm.KernelPCA(3, kernel="linear", eigen_solver="explicit"),
        mm.KernelPCA(3, kernel="poly", degree=2, coef0=1.0, gamma=1.0, eigen_solver="explicit"),
        mm.KernelPCA(3, kernel="cosine", eigen_solver="explicit"),
        mm.KernelPCA(3, kernel="rbf", eigen_solver="nystroem", n_landmarks=30),
        mm.Nystroem(n_components=20),
        mm.Nystroem(kernel="laplacian", n_components=20),
    ],
    ids=repr,
)
def test_every_feature_map(model: Any, offset: float) -> None:
    X, new = rows(offset), rows(offset, seed=1)
    model = clone(model).fit(X)
    found, expected = run(model, new), model.transform(new)
    assert list(found) == ["transformed"]
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found["transformed"], expected, rtol=0, atol=TOL * size)
    pipeline = make_pipeline(clone(model), mm.LinearSVC(max_iter=30)).fit(X, labels(X, offset))
    assert run(pipeline, new)["label"].tolist() == pipeline.predict(new).tolist()
    maps = make_pipeline(StandardScaler(), clone(model)).fit(X)
    np.testing.assert_allclose(run(maps, new)["transformed"], maps.transform(new), atol=1e-9)


# ------------------------------------------------------------------- pipelines

STEPS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    MinMaxScaler(),
    MinMaxScaler(feature_range=(-1, 1), clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    Normalizer(),
    SelectKBest(k=2),
    make_pipeline(StandardScaler(), PCA(2)),
    PolynomialFeatures(2),
    FunctionTransformer(),
    "passthrough",
    make_pipeline(MinMaxScaler(), PolynomialFeatures(3, include_bias=False)),
    make_column_transformer((StandardScaler(), [2, 0]), remainder=MinMaxScaler()),
    make_column_transformer((StandardScaler(), slice(0, 2)), ("drop", [2])),
]


@pytest.mark.parametrize("step", STEPS, ids=repr)
@pytest.mark.parametrize("offset", OFFSETS)
def test_steps_of_pipelines(step: Any, offset: float) -> None:
    X, new = rows(offset), rows(offset, seed=1)
    for last in (mm.SVC(C=3.0), mm.LinearSVC(max_iter=50)):
        pipeline = make_pipeline(step, last)
        if not isinstance(step, str):
            pipeline = clone(pipeline)
        pipeline.fit(X, labels(X, offset))
        seen = pipeline[:-1].transform(new) if not isinstance(step, str) else new
        check_classifier_in(pipeline, new, np.asarray(seen))


def check_classifier_in(pipeline: Any, X: Any, seen: Array) -> None:
    """Check a pipeline whose last step sees these rows."""
    check_scores(run(pipeline, X), pipeline, X, np.maximum(sizes(pipeline[-1], seen), 1.0))


def test_a_single_factor_near_one_is_not_taken_for_one() -> None:
    near = 1 + 1e-9
    X = 30.0 * rows()
    new = 30.0 * rows(seed=1)
    for kernel in (RBF(gamma=near), near * Linear(), RBF() * RBF() + near * Cosine()):
        check_classifier(mm.SVC(kernel=kernel).fit(X, labels(X)), new)


@pytest.mark.parametrize(
    "step",
    [StandardScaler(), RobustScaler(), MinMaxScaler(), MinMaxScaler(clip=True), MaxAbsScaler()],
    ids=repr,
)
def test_factors_of_a_single_column_are_not_rounded(step: Any) -> None:
    # onnxruntime merges a factor with the next matrix product, in float32, if it can.
    X = rows(10.0, d=1)
    pipeline = make_pipeline(step, mm.LinearSVC()).fit(X, (X[:, 0] > 10.1).astype(int))
    new = rows(10.0, seed=1, d=1)
    assert run(pipeline, new)["decision"] == pytest.approx(pipeline.decision_function(new), abs=TOL)


def test_numbers_that_are_missing() -> None:
    X, new = rows(1e6), rows(1e6, seed=1)
    y = labels(X, 1e6)
    X[::7, 1] = new[::5, 0] = new[3] = np.nan
    for imputer in (
        SimpleImputer(),
        SimpleImputer(strategy="median"),
        SimpleImputer(strategy="constant", fill_value=1e6),
    ):
        pipeline = make_pipeline(imputer, StandardScaler(), mm.SVC()).fit(X, y)
        check_classifier_in(pipeline, new, pipeline[:-1].transform(new))
    X[::7, 1] = new[::5, 0] = new[3] = -1.0
    marked = make_pipeline(SimpleImputer(missing_values=-1.0), StandardScaler(), mm.SVC())
    check_classifier_in(marked.fit(X, y), new, marked[:-1].transform(new))


def mixed_table(n: int = 80, seed: int = 0) -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "colour": rng.choice(["red", "grün", "blue", "rare"], n, p=[0.4, 0.3, 0.25, 0.05]),
            "length": rng.normal(1e6, 1.0, n),
            "kind": rng.choice(["x", "y"], n),
            "count": rng.integers(0, 4, n).astype(float),
        }
    )


def feed(table: Any) -> dict[str, Array]:
    """Return the columns of a table as inputs of a graph."""
    return {
        name: table[[name]].to_numpy(object if table[name].dtype.kind in "OU" else np.float64)
        for name in table
    }


ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(drop="first", sparse_output=False),
    OneHotEncoder(drop="if_binary"),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_tables_of_strings_and_numbers(encoder: Any) -> None:
    table, new = mixed_table(), mixed_table(seed=1)
    y = (table["length"] > 1e6) ^ (table["kind"] == "x")
    prepare = ColumnTransformer(
        [
            ("words", encoder, ["colour", "kind"]),
            ("numbers", StandardScaler(), ["length"]),
            ("counts", OneHotEncoder(handle_unknown="ignore"), ["count"]),
        ]
    )
    pipeline = clone(make_pipeline(prepare, mm.SVC(C=3.0))).fit(table, np.where(y, "yes", "no"))
    found = run(pipeline, feed(new))
    assert found["label"].tolist() == pipeline.predict(new).tolist()
    np.testing.assert_allclose(found["decision"], pipeline.decision_function(new), atol=TOL)
    unknown = new.copy()
    unknown.loc[:5, "colour"] = "violet"
    if getattr(encoder, "handle_unknown", "ignore") != "error":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            expected = pipeline.decision_function(unknown)
        np.testing.assert_allclose(run(pipeline, feed(unknown))["decision"], expected, atol=TOL)


def test_pipelines_in_pipelines() -> None:
    X, new = rows(1e6), rows(1e6, seed=1)
    inner = make_pipeline(MinMaxScaler(), mm.SVC())
    search = GridSearchCV(inner, {"svc__C": [1.0, 10.0]}, cv=3)
    for last in (inner, search):
        pipeline = make_pipeline(StandardScaler(), last).fit(X, labels(X, 1e6, classes=3))
        found = run(pipeline, new)
        assert found["label"].tolist() == pipeline.predict(new).tolist()
        np.testing.assert_allclose(found["decision"], pipeline.decision_function(new), atol=TOL)


def test_inputs_of_a_table_are_named_after_its_columns() -> None:
    table = mixed_table()
    prepare = make_column_transformer(
        (OneHotEncoder(), ["colour"]), (StandardScaler(), ["length", "count"])
    )
    pipeline = make_pipeline(prepare, mm.LinearSVC()).fit(table, table["kind"])
    session = load(mm.files.to_onnx(pipeline))
    kinds = {each.name: each.type for each in session.get_inputs()}
    assert kinds == {
        "colour": "tensor(string)",
        "length": "tensor(double)",
        "count": "tensor(double)",
    }
    scale = make_column_transformer((StandardScaler(), ["length", "count"]))
    numbers = make_pipeline(scale, mm.LinearSVC()).fit(table[["count", "length"]], table["kind"])
    new = mixed_table(seed=1)[["count", "length"]]
    assert run(numbers, new.to_numpy())["label"].tolist() == numbers.predict(new).tolist()


def test_missing_strings_are_empty() -> None:
    table = mixed_table()
    y = table["kind"] == "x"
    words = table[["colour"]].astype(object)
    words.iloc[::6] = np.nan
    pipeline = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(), mm.SVC()
    ).fit(words.to_numpy(), y)
    found = run(pipeline, {"x0": words.fillna("").to_numpy(object)})
    np.testing.assert_allclose(
        found["decision"], pipeline.decision_function(words.to_numpy()), atol=TOL
    )


def test_searches_export_what_they_chose() -> None:
    X = rows()
    y = labels(X)
    grid = GridSearchCV(make_pipeline(StandardScaler(), mm.SVC()), {"svc__C": [0.1, 10.0]}, cv=3)
    search = mm.SVCSearchCV(mm.SVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}, cv=3)
    for model in (
        grid.fit(X, y),
        search.fit(X, y),
        make_pipeline(StandardScaler(), search).fit(X, y),
    ):
        found = run(model, rows(seed=1))
        assert found["label"].tolist() == model.predict(rows(seed=1)).tolist()


# ------------------------------------------------------------------- the graph itself


def test_graphs_are_plain_double_and_always_the_same() -> None:
    X = rows()
    model = mm.SVC(probability=True, kernel=RBF() + Laplacian()).fit(X, labels(X, classes=3))
    graph = mm.files.to_onnx(model)
    assert graph.SerializeToString() == mm.files.to_onnx(model).SerializeToString()
    onnx.checker.check_model(graph, full_check=True)
    assert [each.domain for each in graph.opset_import] == [""]
    inferred = onnx.shape_inference.infer_shapes(graph).graph
    kinds = {each.type.tensor_type.elem_type for each in inferred.value_info}
    kinds |= {tensor.data_type for tensor in inferred.initializer}
    assert onnx.TensorProto.FLOAT not in kinds
    assert graph.producer_name == "maxmargin"
    assert graph.producer_version == mm.__version__
    assert graph.doc_string.startswith("model: SVC; certificate gap: ")
    assert {each.key for each in graph.metadata_props} == {"model", "certificate gap"}


def test_any_number_of_rows() -> None:
    X = rows()
    model = mm.SVC(kernel=Laplacian(), probability=True).fit(X, labels(X, classes=3))
    session = load(mm.files.to_onnx(model))
    for n in (0, 1, 7):
        label, decision, p = session.run(None, {"X": X[:n]})
        assert (label.shape, decision.shape, p.shape) == ((n,), (n, 3), (n, 3))


# ------------------------------------------------------------------- skl2onnx


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_converters_work_inside_skl2onnx(dtype: Any) -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="the extra onnx is not installed")
    from maxmargin.files.onnx import register_converters

    register_converters()
    X = rows(1e6 if dtype == np.float64 else 0.0).astype(dtype)
    y = np.array(["a", "b", "c"])[labels(X, float(X.mean()), classes=3)]
    for steps in (
        [StandardScaler(), mm.SVC(probability=True)],
        [StandardScaler(), mm.Nystroem(kernel="laplacian", n_components=10), mm.LinearSVC()],
        [MinMaxScaler(), mm.KernelPCA(2), mm.Perceptron()],
    ):
        pipeline = make_pipeline(*steps).fit(X, y)
        graph = skl2onnx.to_onnx(pipeline, X[:1])
        label, decision = load(graph).run(["label", "decision"], {"X": X})
        assert label.tolist() == pipeline.predict(X).tolist()
        atol = TOL if dtype == np.float64 else 1e-3
        np.testing.assert_allclose(decision, pipeline.decision_function(X), atol=atol)
    regressor = make_pipeline(StandardScaler(), mm.SVR()).fit(X, X[:, 0])
    (found,) = load(skl2onnx.to_onnx(regressor, X[:1])).run(None, {"X": X})
    np.testing.assert_allclose(
        found, regressor.predict(X), atol=TOL if dtype == np.float64 else 1e-3
    )


# ------------------------------------------------------------------- refusals


def test_what_cannot_be_exported_is_refused_by_name() -> None:
    X = rows()
    y = labels(X)
    text = make_pipeline(TfidfVectorizer(), mm.LinearSVC())
    text.fit([f"word{k}" for k in y], y)
    function = FromFunction(lambda A, B: A @ B.T)
    both = FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())])
    marked = SimpleImputer(add_indicator=True)
    refused = [
        (mm.SVC(kernel=function).fit(X, y), "FromFunction"),
        (mm.SVC(kernel=RBF() + FromMap(np.square)).fit(X, y), "FromMap"),
        (mm.KernelPCA(2, kernel=FromMap(np.square)).fit(X), "FromMap"),
        (mm.VotedPerceptron().fit(X, y), "VotedPerceptron.*AveragedPerceptron.*instead"),
        (mm.BayesPointClassifier(n_samples=50), "BayesPointClassifier.*mm.save"),
        (text, "TfidfVectorizer"),
        (make_pipeline(PowerTransformer(), mm.SVC()).fit(X, y), "PowerTransformer"),
        (make_pipeline(both, mm.SVC()).fit(X, y), "FeatureUnion.*use a ColumnTransformer"),
        (make_pipeline(marked, mm.SVC()).fit(X, y), "SimpleImputer.*add_indicator=False"),
        (make_pipeline(FunctionTransformer(np.log1p), mm.SVC()).fit(abs(X), y), "FunctionTransf"),
        (LogisticRegression().fit(X, y), "LogisticRegression is not an estimator of maxmargin"),
        (make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), "LogisticRegression"),
        (mm.StructuredPerceptron(None), "StructuredPerceptron"),
        ("SVC", "not a fitted estimator"),
        (mm.SVC, "not a fitted estimator"),
    ]
    for model, message in refused:
        with pytest.raises(TypeError, match=message):
            mm.files.to_onnx(model)


def test_unfitted_and_contradictory_models_are_refused() -> None:
    X = rows()
    for model in (mm.SVC(), mm.Nystroem(), make_pipeline(StandardScaler(), mm.SVC())):
        with pytest.raises(NotFittedError):
            mm.files.to_onnx(model)
    model = mm.SVC(break_ties=True, decision_function_shape="ovo").fit(X, labels(X, classes=3))
    with pytest.raises(ValueError, match="break_ties"):
        mm.files.to_onnx(model)


@pytest.mark.parametrize(
    ("encoder", "values", "words"),
    [
        (OneHotEncoder(), [["a"], [None], ["b"], ["a"]], "impute missing values before"),
        (OneHotEncoder(), [["a", 1], ["b", 2], ["b", 1], ["a", 2]], "encoders of their own"),
        (OneHotEncoder(max_categories=2), [["a"], ["b"], ["c"], ["a"]], "rare categories"),
        (OrdinalEncoder(min_frequency=2), [["a"], ["b"], ["c"], ["a"]], "rare categories"),
        (OrdinalEncoder(), [["a"], ["b"], [np.nan], ["c"]], "impute missing values before"),
        (OneHotEncoder(), [[0.5], [1.5], [0.5], [1.5]], "int64"),
    ],
)
def test_encoders_that_skl2onnx_cannot_write_are_refused(
    encoder: Any, values: Any, words: str
) -> None:
    steps = [encoder, SimpleImputer(), mm.LinearSVC()]
    pipeline = clone(make_pipeline(*steps)).fit(np.array(values, dtype=object), [0, 1, 0, 1])
    with pytest.raises(TypeError, match=words):
        mm.files.to_onnx(pipeline)


@pytest.mark.parametrize("encoder", [OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder(
    handle_unknown="use_encoded_value", unknown_value=-5)], ids=repr)  # fmt: skip
def test_fractions_are_no_categories(encoder: Any) -> None:
    X = np.random.default_rng(0).integers(-1, 3, (60, 2)).astype(float)
    pipeline = clone(make_pipeline(encoder, mm.SVC())).fit(X, labels(X))
    new = X + np.where(np.arange(60) % 3 == 0, 0.5, 0.0)[:, np.newaxis]
    expected = pipeline.decision_function(new)
    np.testing.assert_allclose(run(pipeline, new)["decision"], expected, atol=TOL)


def test_columns_named_like_outputs_are_refused() -> None:
    table = mixed_table().rename(columns={"length": "label"})
    prepare = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["label"]))
    pipeline = make_pipeline(prepare, mm.LinearSVC()).fit(table, table["kind"])
    with pytest.raises(ValueError, match="'label' cannot be an input"):
        mm.files.to_onnx(pipeline)


def test_the_example_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs" / "onnx.md"
    if not page.exists():
        pytest.skip("the documentation is not there")
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code) >= 2
    names: dict[str, Any] = {}
    for block in code:
        exec(block, names)
    assert (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("package", ["onnx", "skl2onnx"])
def test_missing_packages_are_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.files.onnx import register_converters

    monkeypatch.setitem(sys.modules, package, None)
    export = mm.files.to_onnx if package == "onnx" else lambda model: register_converters()
    with pytest.raises(ImportError, match=r"pip install onnx skl2onnx"):
        export(mm.SVC().fit(rows(), labels(rows())))


def test_ensembles_inside_skl2onnx_get_probabilities() -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="the extra onnx is not installed")
    from sklearn.ensemble import VotingClassifier

    from maxmargin.files.onnx import register_converters

    register_converters()
    X = rows()
    both = [("a", mm.SVC(probability=True)), ("b", mm.LinearSVC(probability=True))]
    model = VotingClassifier(both, voting="soft", flatten_transform=False).fit(X, labels(X))
    graph = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    label, p = load(graph).run(None, {"X": X})
    assert label.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(p, model.predict_proba(X), atol=1e-6)
