"""Native model files: what comes back is the same to the last bit; what cannot go in is named."""

import json
import os
import resource
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from safetensors import safe_open
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

import maxmargin as mm
from maxmargin.files.native import load, load_described, save
from maxmargin.kernels import (
    RBF,
    ChiSquared,
    Columns,
    Cosine,
    FromFunction,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from maxmargin.runtime import clock
from tests.support.estimators import ESTIMATORS, TRANSFORMERS
from tests.support.exact_fits import draw

X, Y = mm.datasets.separable(40, margin=0.2, random_state=0)
THREE = np.array(["low", "middle", "very high"])[np.digitize(X[:, 0], [-0.2, 0.2])]
RNG = np.random.default_rng(0)
METHODS = (
    "predict",
    "decision_function",
    "predict_proba",
    "transform",
    "distance",
    "pairwise_scores",
)
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
pytestmark = [quiet]


def again(model: Any, folder: Path) -> Any:
    """Return a model through a file, whose second copy has the same bytes."""
    one, two = folder / "one.mmg", folder / "two.mmg"
    save(model, one)
    found = load(one)
    save(found, two)
    assert one.read_bytes() == two.read_bytes()
    assert sorted(each.name for each in folder.iterdir()) == ["one.mmg", "two.mmg"]
    return found


def outputs(model: Any, rows: Any) -> dict[str, Any]:
    found = {}
    for name in METHODS:
        if hasattr(model, name):
            values = getattr(model, name)(rows)
            found[name] = values.toarray() if sp.issparse(values) else np.asarray(values)
    return found


def same(model: Any, rows: Any, folder: Path) -> Any:
    """Check that a model comes back as it was, and return it."""
    found = again(model, folder)
    assert type(found) is type(model)
    expected = outputs(model, rows)
    assert expected
    for name, values in outputs(found, rows).items():
        assert values.dtype == expected[name].dtype, name
        assert_array_equal(values, expected[name], err_msg=name)
    assert repr(found) == repr(model)
    assert str(found.get_params()) == str(model.get_params())
    for name in ("certificate_", "status_", "stop_reason_", "feature_names_in_", "trace_"):
        assert str(getattr(found, name, None)) == str(getattr(model, name, None)), name
    return found


# ------------------------------------------------------------------- every estimator

VARIANTS: list[BaseEstimator] = [
    mm.SVC(kernel="linear", trace=True),
    mm.SVC(kernel="laplacian", probability=True, class_weight="balanced"),
    mm.SVC(multi_class="ovr", probability=True),
    mm.SVC(fit_intercept=False, decision_function_shape="ovo"),
    mm.SVC(gamma=0.0),
    mm.SVC(max_iter=1),
    mm.NuSVC(nu=0.2, kernel="linear", probability=True),
    mm.SVR(kernel="linear", epsilon=0.2),
    mm.NuSVR(kernel="poly", coef0=1.0),
    mm.QuantileSVR(quantile=0.9, fit_intercept=False),
    mm.OneClassSVM(nu=0.2, kernel="linear"),
    mm.LinearSVC(multi_class="crammer_singer"),
    mm.LinearSVC(multi_class="ovo", probability=True),
    mm.LinearSVC("l1", "squared_hinge", trace=True),
    mm.LinearSVC("elasticnet", intercept="penalized"),
    mm.LinearSVC(intercept="penalized", intercept_scaling=3.0, probability=True),
    mm.LinearSVC(intercept="none", solver="dual_cd", tol=0.1),
    mm.LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
    mm.HardMarginSVC(kernel="rbf"),
    mm.HardMarginSVC(intercept="none"),
    mm.BayesPointClassifier(kernel="rbf", max_samples=2000, tol=0.5),
    mm.Perceptron(trace=True, keep="best", class_weight="balanced"),
    mm.AveragedPerceptron(stop="epochs", max_epochs=3, trace=True),
    mm.VotedPerceptron(trace=True, max_epochs=3),
    mm.KernelPerceptron(trace=True, keep="best", kernel="poly"),
    mm.StructuredPerceptron(mm.structured.Multiclass(), trace=True, max_epochs=3),
    mm.StructuredSVC(mm.structured.Multiclass(), trace=True),
    mm.KernelPCA(2, kernel="rbf", fit_inverse_transform=True),
    mm.KernelPCA(2, kernel="poly", degree=2),
    mm.KernelPCA(2, kernel="rbf", eigen_solver="nystroem", n_landmarks=10),
    mm.Nystroem(n_components=5, kernel="laplacian"),
]
ALL = [*ESTIMATORS, *TRANSFORMERS, *VARIANTS]
BINARY_ONLY = (mm.BayesPointClassifier, mm.HardMarginSVC, mm.NuSVC)


@pytest.mark.parametrize("model", ALL, ids=lambda model: " ".join(repr(model).split())[:60])
def test_every_estimator_comes_back_the_same(model: Any, tmp_path: Path) -> None:
    found = same(clone(model).fit(X, Y), X, tmp_path)
    if hasattr(found, "certificate_"):
        assert mm.certify(found, X, Y) == mm.certify(clone(model).fit(X, Y), X, Y)
    if is_classifier(model) and not isinstance(model, BINARY_ONLY):
        same(clone(model).fit(X, THREE), X, tmp_path)


def end_after(count: int, answer: Any) -> Any:
    """Return a callback that ends a fit at its ``count``-th call: by True, or by an exception."""
    calls = iter(range(1, 10**6))

    def ended(_: Any) -> bool:
        if next(calls) < count:
            return False
        if answer is not True:
            raise answer
        return True

    return ended


ENDS: list[dict[str, Any]] = [
    *({"max_time": seconds} for seconds in (0.02, 0.1, 0.5, 2.0)),  # at 0.01 for each look at it
    {"max_iter": 1}, {"max_epochs": 1},
    *({"callback": (count, answer)} for count in (1, 3) for answer in (True, KeyboardInterrupt)),
    {"C": 1e12, "tol": 1e-12, "max_iter": 30},
]  # fmt: skip
ENDING = [*ESTIMATORS, mm.SVC(kernel="sigmoid", C=1e3), mm.LinearSVC("l1"),
          mm.LinearSVC(multi_class="crammer_singer"), mm.KernelPCA(),
          mm.HardMarginSVC(kernel="rbf")]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*an indefinite kernel:UserWarning")
@pytest.mark.parametrize("model", ENDING, ids=lambda model: " ".join(repr(model).split())[:60])
def test_whatever_ended_a_fit_its_model_comes_back_the_same(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, known = np.random.default_rng(1), clone(model).get_params()
    classes = 2 if {"nu", "n_samples"} & {*known} else 3
    rows, labels = rng.normal(size=(24, 2)), np.arange(24) % classes
    rows[:, 0] += 20 * labels  # a hard margin, too
    for number, end in enumerate(ENDS):
        if not end.keys() <= known.keys():
            continue
        given = {k: end_after(*v) if k == "callback" else v for k, v in end.items()}
        ended = clone(model).set_params(**given)
        ticks = iter(np.arange(0.0, 1e4, 0.01))
        undecided = mm.NotSeparableError  # there was no time to find out: then there is no model
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt, undecided):
            if "max_time" in end:
                patched.setattr(clock, "now", lambda ticks=ticks: float(next(ticks)))
            ended.fit(rows, labels)
        if "max_time" in end and not hasattr(ended, "status_"):
            continue
        folder = tmp_path / f"{number}"
        folder.mkdir()
        same(ended.set_params(callback=None) if "callback" in end else ended, rows, folder)


@pytest.mark.parametrize("model", [*ESTIMATORS, *TRANSFORMERS], ids=lambda m: type(m).__name__)
def test_rows_of_every_kind(model: Any, tmp_path: Path) -> None:
    single = same(clone(model).fit(X.astype(np.float32), Y), X.astype(np.float32), tmp_path)
    assert single.n_features_in_ == 2
    rows = sp.csr_array(X)
    same(clone(model).fit(rows, Y), rows, tmp_path)
    frame = pd.DataFrame(X, columns=["Größe", "width"])
    found = same(clone(model).fit(frame, Y), frame, tmp_path)
    assert list(found.feature_names_in_) == ["Größe", "width"]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix])
def test_sparse_support_vectors_keep_their_indices(kind: Any, form: Any, tmp_path: Path) -> None:
    rows = form(X)
    rows.indices, rows.indptr = rows.indices.astype(kind), rows.indptr.astype(kind)
    for model in (mm.SVC().fit(rows, Y), mm.LinearSVC().fit(rows, Y)):
        found = same(model, rows, tmp_path)
        for name in ("indices", "indptr", "data"):
            ours, theirs = (getattr(each.support_vectors_, name) for each in (found, model))
            assert ours.dtype == theirs.dtype
            assert_array_equal(ours, theirs)
        assert type(found.support_vectors_) is type(model.support_vectors_)


def test_a_precomputed_matrix_with_rows_without_weight(tmp_path: Path) -> None:
    K, weight = RBF(1.0).gram(X), np.ones(len(X))
    weight[:5] = 0.0
    for model in (mm.SVC(kernel="precomputed"), mm.SVC(kernel="precomputed", multi_class="ovr")):
        same(clone(model).fit(K, Y, sample_weight=weight), K, tmp_path)
        same(clone(model).fit(K, THREE, sample_weight=weight), K, tmp_path)
    same(mm.KernelPCA(2, kernel="precomputed").fit(K), K, tmp_path)
    same(mm.Nystroem(kernel="precomputed", n_components=4).fit(K), K, tmp_path)
    same(mm.KernelPerceptron(kernel="precomputed").fit(K, Y), K, tmp_path)


def test_a_class_without_weight(tmp_path: Path) -> None:
    weight = np.where(THREE == "middle", 0.0, RNG.uniform(0.5, 2, len(X)))
    for model in (
        mm.SVC(probability=True), mm.SVC(multi_class="ovr"), mm.SVC(kernel="linear"),
        mm.LinearSVC(), mm.LinearSVC(multi_class="crammer_singer"),
        mm.LinearSVC(multi_class="ovo", probability=True),
    ):  # fmt: skip
        same(model.fit(X, THREE, sample_weight=weight), X, tmp_path)


@pytest.mark.parametrize(
    "labels",
    [[0, 1], [-1.0, 2.0], [False, True], ["no", "yes"], np.array(["a", "b"], dtype=object)],
    ids=str,
)
def test_labels_keep_their_type(labels: Any, tmp_path: Path) -> None:
    y = np.asarray(labels)[(Y > 0).astype(int)]
    for model in (mm.SVC(), mm.LinearSVC(), mm.Perceptron()):
        found = same(model.fit(X, y), X, tmp_path)
        assert found.classes_.dtype == model.classes_.dtype


KERNELS: list[Kernel] = [
    RBF(0.5) + 2.0 * Linear() ** 2 + 1.0,
    Columns(RBF("scale"), [1]) * Polynomial(2, 0.5) + Columns(Laplacian(1.0), [-1, 0], of=2),
    Cosine() * Cosine(),
    Columns(Columns(RBF(1.0), [0]), np.array([1])) + Sigmoid(0.1, 0.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kernel_trees(kernel: Kernel, tmp_path: Path) -> None:
    found = same(mm.SVC(kernel=kernel).fit(X, Y), X, tmp_path)
    assert found.kernel == kernel
    assert found.kernel_ == mm.SVC(kernel=kernel).fit(X, Y).kernel_


def test_kernels_of_histograms(tmp_path: Path) -> None:
    for kernel in (ChiSquared(0.5), Intersection() + 1.0):
        same(mm.SVC(kernel=kernel).fit(abs(X), Y), abs(X), tmp_path)


def test_structured_outputs(tmp_path: Path) -> None:
    words = [RNG.normal(size=(n, 3)) for n in (3, 5, 4, 6)]
    tags = [(x[:, 0] > 0).astype(int) for x in words]
    names = [np.array(["noun", "verb"])[tag] for tag in tags]
    cases = [
        (mm.structured.Chain(), words, tags),
        (mm.structured.Chain(), words, names),
        (mm.structured.Multiclass(cost=np.ones((3, 3)) - np.eye(3)), X, THREE),
    ]
    for outputs_, inputs, truth in cases:
        for model in (
            mm.StructuredSVC(outputs_, trace=True),
            mm.StructuredPerceptron(outputs_, max_epochs=3, trace=True),
        ):
            model.fit(inputs, truth)
            found = again(model, tmp_path)
            for one, other in zip(found.predict(inputs), model.predict(inputs), strict=True):
                assert_array_equal(one, other)
            assert repr(found) == repr(model)


# ------------------------------------------------------------------- going on after a file


@pytest.mark.parametrize(
    "model",
    [
        mm.SVC(warm_start=True),
        mm.SVC(warm_start=True, kernel="linear"),
        mm.LinearSVC(warm_start=True),
        mm.SVR(warm_start=True),
        mm.Perceptron(warm_start=True, max_epochs=2, stop="epochs"),
        mm.KernelPerceptron(warm_start=True, max_epochs=2, stop="epochs"),
        mm.StructuredSVC(mm.structured.Multiclass(), warm_start=True),
    ],
    ids=repr,
)
def test_warm_starts_go_on(model: Any, tmp_path: Path) -> None:
    model.fit(X[:30], Y[:30])
    found = again(model, tmp_path)
    one, other = model.fit(X, Y), found.fit(X, Y)
    assert one.n_iter_ == other.n_iter_
    assert_array_equal(one.predict(X), other.predict(X))
    assert str(getattr(one, "certificate_", "")) == str(getattr(other, "certificate_", ""))


@pytest.mark.parametrize(
    "model",
    [mm.LinearSVC(), mm.Perceptron(), mm.AveragedPerceptron(), mm.VotedPerceptron(),
     mm.KernelPerceptron()],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("y", [Y, THREE], ids=["two classes", "three classes"])
def test_partial_fit_goes_on(model: Any, y: Any, tmp_path: Path) -> None:
    for start in (
        clone(model).partial_fit(X[:20], y[:20], classes=np.unique(y)),
        clone(model).fit(X[:20], y[:20]),
    ):
        found = same(start, X, tmp_path)
        one, other = (each.partial_fit(X[20:], y[20:]) for each in (start, found))
        assert_array_equal(one.decision_function(X), other.decision_function(X))
        same(other, X, tmp_path)


def test_a_stream_of_kernel_components(tmp_path: Path) -> None:
    model = mm.KernelPCA(2, kernel="rbf", n_landmarks=10).partial_fit(X[:20])
    found = same(model, X, tmp_path)
    assert_array_equal(
        found.partial_fit(X[20:]).transform(X), model.partial_fit(X[20:]).transform(X)
    )


# ------------------------------------------------------------------- steps of scikit-learn

WITH_HOLES = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
FRAME = pd.DataFrame(
    {
        "a": X[:, 0],
        "b": WITH_HOLES[:, 0],
        "c": np.array(list("xyzx"))[np.arange(40) % 4],
        "d": [None, "u", "v", np.nan] * 10,
        "e": np.arange(40) % 5,
    }
)
TEXTS = np.array(["red apple", "green apple and pear", "a pear", "red pear, blue sky"] * 10)
STEPS: list[tuple[list[Any], Any]] = [
    ([StandardScaler()], X),
    ([StandardScaler(with_mean=False)], sp.csr_array(X)),
    ([StandardScaler(), MinMaxScaler((-1, 1), clip=True), MaxAbsScaler()], X.astype(np.float32)),
    ([RobustScaler(), Normalizer("l1"), FunctionTransformer(), "passthrough"], X),
    ([SimpleImputer(add_indicator=True), StandardScaler()], WITH_HOLES),
    ([SimpleImputer(strategy="median"), mm.Nystroem(n_components=4)], WITH_HOLES),
    ([SimpleImputer(strategy="most_frequent"), OneHotEncoder()], FRAME[["c", "d"]]),
    ([SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder()], FRAME[["c"]]),
    ([OneHotEncoder(drop="if_binary", handle_unknown="ignore")], FRAME[["c", "d", "e"]]),
    ([OneHotEncoder(drop="first", dtype=np.float32)], FRAME[["e", "d"]]),
    ([OneHotEncoder(min_frequency=9, handle_unknown="infrequent_if_exist")], FRAME[["c", "e"]]),
    ([OneHotEncoder(max_categories=2, drop="first", sparse_output=False)], FRAME[["c", "e"]]),
    ([OneHotEncoder(categories=[["z", "y", "x"]])], FRAME[["c"]]),
    ([TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)], TEXTS),
    ([TfidfVectorizer(stop_words="english", use_idf=False, dtype=np.float32)], TEXTS),
    ([CountVectorizer(vocabulary=["apple", "pear"], binary=True), TfidfTransformer()], TEXTS),
    ([CountVectorizer(analyzer="char", stop_words=None)], TEXTS),
    ([ColumnTransformer([("n", StandardScaler(), ["a", "e"]), ("c", OneHotEncoder(), ["c"]),
                         ("t", "drop", ["d"])], remainder=SimpleImputer())], FRAME),
    ([ColumnTransformer([("n", make_pipeline(SimpleImputer(), StandardScaler()), [0, -1]),
                         ("none", StandardScaler(), [])], remainder="passthrough")], X),
    ([ColumnTransformer([("n", StandardScaler(), slice(0, 1)),
                         ("m", MinMaxScaler(), np.array([False, True]))])], X),
    ([ColumnTransformer([("n", StandardScaler(), np.array([1]))],
                        verbose_feature_names_out=False, transformer_weights={"n": 2.0})], X),
    ([ColumnTransformer([("w", TfidfVectorizer(), "words"), ("n", StandardScaler(), ["a"])])],
     FRAME.assign(words=TEXTS)),
    ([make_pipeline(StandardScaler(), mm.Nystroem(n_components=6)), MaxAbsScaler()], X),
]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "rows"), STEPS, ids=lambda v: str(v)[:50] if isinstance(v, list) else ""
)
def test_steps_of_scikit_learn(steps: Any, rows: Any, tmp_path: Path) -> None:
    model = make_pipeline(*map(_fresh, steps), mm.LinearSVC())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(rows, THREE)
        same(model, rows, tmp_path)


def _fresh(step: Any) -> Any:
    return step if isinstance(step, str) else clone(step)


def test_frames_come_out_as_frames(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), MinMaxScaler()).set_output(transform="pandas")
    frame = FRAME[["a", "e"]]
    found = again(make_pipeline(model, mm.SVC()).fit(frame, Y), tmp_path)
    assert list(found[:-1].transform(frame).columns) == ["a", "e"]


# ------------------------------------------------------------------- searches


def test_a_search_is_saved_as_its_best_model(tmp_path: Path) -> None:
    grid = {"C": [0.1, 1.0]}
    for search in (
        mm.SVCSearchCV(mm.SVC(), grid, cv=2),
        GridSearchCV(make_pipeline(StandardScaler(), mm.LinearSVC()), {}, cv=2),
        RandomizedSearchCV(mm.SVC(), grid, n_iter=1, cv=2),
    ):
        search.fit(X, Y)
        found = again(search, tmp_path)
        assert repr(found) == repr(search.best_estimator_)
        assert_array_equal(found.predict(X), search.predict(X))
    with pytest.raises(ValueError, match="no best_estimator_ to save: use refit=True"):
        save(GridSearchCV(mm.SVC(), grid, cv=2, refit=False).fit(X, Y), tmp_path / "x.mmg")


# ------------------------------------------------------------------- what is refused


class Custom(mm.structured.Multiclass):
    pass


class OwnKernel(RBF):
    pass


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            mm.SVC(callback=lambda p: None),
            r"callback is the function .*callback=None",
        ),
        (
            mm.SVC(kernel=lambda A, B: A @ B.T),
            "kernel is the function .*mm.kernels",
        ),
        (mm.SVC(kernel=FromFunction(lambda A, B: A @ B.T)), "kernel is of type .*FromFunction"),
        (mm.SVC(kernel=OwnKernel(1.0) + 1.0), "kernel.terms is of type .*OwnKernel"),
        (mm.StructuredSVC(Custom()), "model is of type .*Custom.*mm.structured"),
        (
            mm.LinearSVC(random_state=np.random.RandomState(0)),
            "random_state is of type .*another int",
        ),
        (make_pipeline(PCA(1), mm.SVC()), r"steps\['pca'\] is of type .*PCA.*StandardScaler"),
        (
            make_pipeline(FunctionTransformer(np.abs), mm.SVC()),
            r"steps\['functiontransformer'\].func is",
        ),
        (
            make_pipeline(TfidfVectorizer(tokenizer=str.split, token_pattern=None), mm.SVC()),
            r"steps\['tfidfvectorizer'\].tokenizer is",
        ),
        (
            make_pipeline(
                ColumnTransformer([("n", StandardScaler(), make_column_selector(".*"))]), mm.SVC()
            ),
            r"transformers\['n'\] is",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_what_a_file_cannot_hold_is_named(model: Any, words: str, tmp_path: Path) -> None:
    rows: Any = TEXTS if "tfidf" in repr(model).lower() else pd.DataFrame(X, columns=["a", "b"])
    with pytest.raises(TypeError, match=words):
        save(model.fit(rows, Y), tmp_path / "x.mmg")
    assert not list(tmp_path.iterdir())


def test_only_fitted_estimators_are_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="This SVC is not fitted yet"):
        save(mm.SVC(), tmp_path / "x.mmg")
    with pytest.raises(TypeError, match="save takes a fitted estimator, got dict"):
        save({}, tmp_path / "x.mmg")
    cached = Pipeline([("m", mm.SVC())], memory=str(tmp_path / "cache")).fit(X, Y)
    with pytest.raises(ValueError, match=r"memory is a folder of pickles: set_params\(memory"):
        save(cached, tmp_path / "x.mmg")


# ------------------------------------------------------------------- the file itself


def test_safetensors_alone_reads_it(tmp_path: Path) -> None:
    model = mm.SVC().fit(X, Y)
    save(model, tmp_path / "m.mmg")
    with safe_open(tmp_path / "m.mmg", framework="np") as file:
        document = json.loads(file.metadata()["maxmargin"])
        assert document["format"] == 1
        node = document["model"]["state"]["support_vectors_"]
        assert_array_equal(file.get_tensor(node["array"]), model.support_vectors_)
    header = load_described(tmp_path / "m.mmg").header
    assert header["format"] == 1
    assert header["versions"]["maxmargin"] == document["versions"]["maxmargin"]


def test_names_of_files_may_have_spaces_and_other_letters(tmp_path: Path) -> None:
    path = tmp_path / "ein Ordner ✓" / "модель größer.mmg"
    path.parent.mkdir()
    save(mm.SVC().fit(X, Y), path)
    assert_array_equal(load(str(path)).predict(X), mm.SVC().fit(X, Y).predict(X))


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.mmg"
    save(mm.SVC().fit(X, Y), path)
    before = path.read_bytes()
    larger = mm.Nystroem(n_components=300).fit(RNG.normal(size=(300, 3)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        with pytest.raises(OSError, match=r"m\.mmg"):
            save(larger, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["m.mmg"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_is_named() -> None:
    with pytest.raises(OSError, match="/dev/full"):
        save(mm.SVC().fit(X, Y), "/dev/full")


def test_what_is_not_there_or_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere.mmg")
    with pytest.raises(OSError, match="folder"):
        load(tmp_path)


def test_long_lists_are_no_part_of_the_header(tmp_path: Path) -> None:
    texts = [f"word{i} word{i + 1}" for i in range(3000)]
    labels = np.arange(3000) % 2
    model = make_pipeline(TfidfVectorizer(), mm.LinearSVC(C=0.01)).fit(texts, labels)
    same(model, texts[:50], tmp_path)
    size = int.from_bytes((tmp_path / "one.mmg").read_bytes()[:8], "little")
    assert size < 20_000
    many = np.repeat([f"class {i:05}" for i in range(1200)], 2)
    found = same(mm.Perceptron(max_epochs=1).fit(RNG.normal(size=(2400, 2)), many), X, tmp_path)
    assert found.classes_.dtype == many.dtype


def test_shared_arrays_are_stored_once(tmp_path: Path) -> None:
    model: Any = mm.KernelPCA(2, kernel="rbf").fit(X)
    found = again(model, tmp_path)
    shared = model.X_fit_ is model._projection.support_vectors_
    assert (found.X_fit_ is found._projection.support_vectors_) == shared


def test_random_fits_come_back(tmp_path: Path) -> None:
    round_trip(range(40), tmp_path)


@pytest.mark.full
def test_many_random_fits_come_back(tmp_path: Path) -> None:
    round_trip(range(40, 1500), tmp_path)


def round_trip(seeds: Any, folder: Path) -> None:
    """Fits of odd data, weights and parameters are all saved and loaded: no rule is too strict."""
    for seed in seeds:
        model, rows, y, weight, words = draw(seed)
        if callable(model.get_params().get("kernel")) and not isinstance(model.kernel, Kernel):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(
                    rows, None if isinstance(model, mm.OneClassSVM) else y, sample_weight=weight
                )
            except ValueError:
                continue
            found = again(model, folder)
            assert_array_equal(found.predict(rows), model.predict(rows), err_msg=f"{seed}: {words}")


@pytest.mark.full
def test_a_file_above_two_gigabytes(tmp_path: Path) -> None:
    # Fitted by hand: what has to be large is the file, not the time that a fit takes.
    code = f"""
import numpy as np, maxmargin as mm
from sklearn.preprocessing import StandardScaler
scaler, n = StandardScaler(), 90_000_000
scaler.n_features_in_, scaler.n_samples_seen_ = n, 2
scaler.mean_, scaler.var_, scaler.scale_ = np.zeros(n), np.ones(n), np.ones(n)
scaler.mean_[-1] = 7.0
mm.save(scaler, {str(tmp_path / "big.mmg")!r})
del scaler
found = mm.load({str(tmp_path / "big.mmg")!r})
assert found.mean_[-1] == 7.0 and len(found.scale_) == n
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "big.mmg").stat().st_size > 2**31


def test_a_layout_comes_back(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,kind,y\n1.5,x,no\n2,y,yes\n3,x,yes\n0,y,no\n")
    layout = mm.data.read_labelled(tmp_path / "data.csv").layout
    save(mm.SVC().fit(X, Y), tmp_path / "m.mmg", layout=layout)
    assert load_described(tmp_path / "m.mmg").layout == layout
