"""What a drop-in must take: scikit-learn's parameters, odd values, files, objects, pipelines."""

import copy
import importlib
import io
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as SKLEARN_SVC

import maxmargin as mm
from maxmargin.kernels import RBF, FromFunction, Linear
from tests.support.estimators import ESTIMATORS, SEARCHES, TRANSFORMERS

X, Y = mm.datasets.separable(40, margin=0.2, random_state=0)
THREE = np.digitize(X[:, 0], [-0.2, 0.2])
ours: Any = mm  # whose arguments are wrong on purpose
QUICK = (mm.Perceptron, mm.LinearSVC, mm.SVC, mm.Nystroem)
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# ------------------------------------------------------------------- parameters


@pytest.mark.parametrize("model", ESTIMATORS + TRANSFORMERS, ids=lambda m: type(m).__name__)
def test_unknown_parameters_are_refused_by_name(model: Any) -> None:
    name = type(model).__name__
    with pytest.raises(TypeError, match=f"{name} has no parameter 'qqq'. Valid parameters"):
        type(model)(qqq=1)
    with pytest.raises(ValueError, match=f"{name} has no parameter 'qqq'. Valid parameters"):
        clone(model).set_params(qqq=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ours.SVC(gama=1), "Did you mean 'gamma'"),
        (lambda: ours.Perceptron(eta0=1), "It is called eta here"),
        (lambda: ours.KernelPerceptron(max_iter=1), "It is called max_epochs here"),
        (lambda: ours.HardMarginSVC(C=1), "allows no slack"),
        (lambda: ours.KernelPCA(copy_X=True), "X is never changed"),
        (lambda: ours.Nystroem(kernel_params={}), "Give a Kernel object"),
        (lambda: mm.SVC(kernel="rfb").fit(X, Y), "Did you mean 'rbf'"),
        (lambda: mm.SVC(kernel="Gaussian").fit(X, Y), "Did you mean 'rbf'"),
        (lambda: mm.LinearSVC(loss="hinges").fit(X, Y), "Did you mean 'hinge'"),
        (
            lambda: mm.LinearSVR(loss="epsilon_insensitve").fit(X, Y),
            "Did you mean 'epsilon_insensitive'",
        ),
        (lambda: mm.Perceptron(stop="epoch").fit(X, Y), "Did you mean 'epochs'"),
    ],
)
def test_what_was_meant_is_said(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_strings_of_numpy_are_strings() -> None:
    assert mm.LinearSVC(loss=np.str_("squared_hinge")).fit(X, Y).status_.name == "OPTIMAL"


def test_the_linear_machines_take_scikit_learns_parameters() -> None:
    plane = mm.LinearSVC("l2", "squared_hinge", dual=False, fit_intercept=False).fit(X, Y)
    assert_array_equal(
        plane.coef_, mm.LinearSVC("l2", "squared_hinge", intercept="none").fit(X, Y).coef_
    )
    assert plane.intercept_ == 0.0
    assert mm.LinearSVR(dual=True, fit_intercept=False).fit(X, Y).intercept_ == 0.0
    for wrong in (
        {"loss": "hinge", "dual": False},
        {"penalty": "l1", "loss": "squared_hinge", "dual": True},
    ):
        with pytest.raises(ValueError, match="Unsupported set of arguments"):
            ours.LinearSVC(**wrong).fit(X, Y)
    with pytest.raises(ValueError, match="contradict"):
        mm.LinearSVC(intercept="penalized", fit_intercept=False).fit(X, Y)
    assert ours.LinearSVC(l1_ratio=None).fit(X, Y).status_.name == "OPTIMAL"
    assert mm.LinearSVC(fit_intercept=False).partial_fit(X, Y, classes=[-1, 1]).intercept_ == 0.0


@pytest.mark.parametrize("infinite", [np.inf, np.float32(np.inf), 10**400])
@pytest.mark.parametrize(
    "kind", [mm.SVC, mm.LinearSVC, mm.SVR, mm.LinearSVR, mm.NuSVR, mm.QuantileSVR]
)
def test_an_infinite_cost_is_refused_with_the_way_out(kind: Any, infinite: Any) -> None:
    way_out = "HardMarginSVC" if is_classifier(kind()) else "A large one"
    with pytest.raises(ValueError, match=f"must be a finite number > 0. .*{way_out}"):
        kind(C=infinite).fit(X, Y)


ODD: list[Any] = [
    10**20, 10**400, -(10**400), np.int8(2), np.nan, 5e-324, 1e300, "x", None, np.array([1, 2]),
]  # fmt: skip


@quiet
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=[] if isinstance(model, QUICK) else pytest.mark.full)
        for model in ESTIMATORS + TRANSFORMERS
    ],
    ids=lambda m: type(m).__name__,
)
def test_odd_values_are_taken_or_refused_by_name(model: Any, capsys: Any) -> None:
    rows, labels = X[::2], Y[::2]
    unclear = []
    for name in model.get_params(deep=False):
        for value in ODD:
            try:
                fitted = clone(model).set_params(**{name: value}).fit(rows, labels)
                (fitted.predict if hasattr(fitted, "predict") else fitted.transform)(rows)
            except (TypeError, ValueError) as refused:
                if name not in str(refused) and "overflow" not in str(refused):
                    unclear.append((name, type(value), str(refused)))
    assert unclear == []


# ------------------------------------------------------------------- other holes


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("weight", [1e-320, 1e-300, 1e300])
def test_extreme_weights_are_refused(model: Any, weight: float) -> None:
    weights = np.where(np.arange(len(X)) == 3, weight, 1.0)
    with pytest.raises(ValueError, match=r"sample_weight contains .* \(row 3\)"):
        clone(model).fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ours.Perceptron(init={}).fit(X, Y), ValueError, "init={} is not valid"),
        (lambda: mm.SVC(class_weight={1: 10**400}).fit(X, Y), ValueError, "class_weight="),
        (lambda: ours.geometry.canonical(mm.SVC(), X, Y), TypeError, "geometry.hyperplane"),
        (lambda: ours.geometry.best_offset(mm.SVC(), X, Y), TypeError, "geometry.hyperplane"),
        (lambda: ours.datasets.moons(10**20), ValueError, "n_samples must be at most"),
        (lambda: ours.datasets.xor(10**400), ValueError, "n_samples must be at most"),
        (lambda: ours.datasets.noise(9, 10**20), ValueError, "n_features must be at most"),
        (lambda: ours.report(mm.SVC().fit(X, Y), X, Y, None), TypeError, "path=None is not valid"),
        (lambda: ours.report(X, Y, mm.SVC(), "p.html"), TypeError, r"report\(model, X, y, path\)"),
        (lambda: ours.certify(X, Y, mm.SVC().fit(X, Y)), TypeError, r"certify\(model, X, y\)"),
        (lambda: ours.regularization_path(mm.SVC(), X, Y), TypeError, "X, y, estimator"),
        (lambda: ours.model_selection.leave_one_out(X, Y, mm.SVC()), TypeError, "comes first"),
    ],
)
def test_one_clear_error(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("rows", [[0, 1, 40], [-41, 1], [0.5, 1]])
def test_splits_beyond_the_rows_are_refused(rows: Any) -> None:
    search = mm.SVCSearchCV(mm.SVC(), {"C": [1, 2]}, cv=[(np.arange(40), rows)])
    with pytest.raises(ValueError, match="cv is not valid: it must give numbers of rows"):
        search.fit(X, Y)


def test_steps_too_long_for_a_bound_still_learn() -> None:
    for kind in (mm.Perceptron, mm.AveragedPerceptron, mm.VotedPerceptron, mm.KernelPerceptron):
        for eta in (1e-100, 1e100):
            assert kind(eta=eta).fit(X, Y).score(X, Y) == 1.0
        with pytest.raises(ValueError, match="eta=1e\\+300 is not valid"):
            kind(eta=1e300).fit(X, Y)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_no_support_vectors_of_sparse_rows_are_sparse(container: Any) -> None:
    rows = container(np.eye(4))
    for model in (mm.SVR(kernel="linear"), mm.SVR(), mm.LinearSVR(epsilon=0.1)):
        model.fit(rows, [0.04, 0.04, 0.1, 0.16])
        assert sp.issparse(model.support_vectors_)
        assert model.support_vectors_.shape == (0, 4)


@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_a_limit_on_iterations_is_not_blamed_on_the_columns() -> None:
    for model in (mm.SVC(max_iter=1), mm.LinearSVC(max_iter=1)):
        with pytest.warns(match="stopped at max_iter") as caught:
            model.fit(6 * X, THREE)
        assert not any("scale them" in str(one.message) for one in caught)


def test_several_classes_that_meet() -> None:
    answer = mm.separate([[0.0], [1.0], [2.0], [3.0], [0.5]], [0, 0, 1, 2, 1])
    assert str(answer).startswith("Not all classes are separable: ")


# ------------------------------------------------------------------- files and copies


def through_joblib(model: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def through_skops(model: Any) -> Any:
    return skops.io.loads(skops.io.dumps(model), trusted=mm.files.SKOPS_TRUSTED_TYPES)


def test_every_trusted_type_exists_under_its_name() -> None:
    for path in mm.files.SKOPS_TRUSTED_TYPES:
        module, _, name = path.rpartition(".")
        trusted = getattr(importlib.import_module(module), name)
        if path.startswith("maxmargin"):
            assert f"{trusted.__module__}.{trusted.__qualname__}" == path


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "joblib": through_joblib,
    "cloudpickle": lambda model: cloudpickle.loads(cloudpickle.dumps(model)),
    "skops": through_skops,
    "deepcopy": copy.deepcopy,
}
VARIANTS = [
    mm.SVC(kernel="linear", trace=True),
    mm.SVC(kernel=RBF(1.0) + 2 * Linear() ** 2),
    mm.SVC(kernel="laplacian"),
    mm.SVC(multi_class="ovr"),
    mm.LinearSVC(multi_class="crammer_singer"),
    mm.LinearSVC("l1", "squared_hinge", trace=True),
    mm.Perceptron(trace=True),
    mm.VotedPerceptron(trace=True),
    mm.KernelPCA(kernel="rbf", fit_inverse_transform=True),
]


def same(model: Any, rows: Any) -> None:
    method = "predict" if hasattr(model, "predict") else "transform"

    def answer(fitted: Any) -> Any:
        found = getattr(fitted, method)(rows)
        return found.toarray() if sp.issparse(found) else found

    for name, way in WAYS.items():
        again = way(model)
        assert_array_equal(answer(again), answer(model), err_msg=name)
        for attribute in ("status_", "certificate_"):
            assert str(getattr(again, attribute, "")) == str(getattr(model, attribute, "")), name
        if hasattr(model, "status_"):
            assert again.status_ is model.status_, name


@quiet
@pytest.mark.parametrize(
    "model", [*ESTIMATORS, *SEARCHES, *TRANSFORMERS, *VARIANTS], ids=lambda m: repr(m)[:40]
)
def test_models_survive_files_and_copies(model: Any) -> None:
    same(clone(model).fit(X, Y), X)
    if not isinstance(model, mm.HardMarginSVC | mm.BayesPointClassifier | mm.NuSVC):
        same(clone(model).fit(X, THREE), X)
    if not getattr(model, "fit_inverse_transform", False):
        same(clone(model).fit(sp.csr_array(X), Y), sp.csr_array(X))
    if hasattr(model, "partial_fit") and not getattr(model, "trace", False):
        joint = getattr(model, "multi_class", "") == "crammer_singer"
        if is_classifier(model) and not joint:
            same(clone(model).partial_fit(X, Y, classes=[-1, 1]), X)


# ------------------------------------------------------------------- certify what contains a model


@pytest.mark.parametrize("machine", [mm.SVC(), mm.LinearSVC(), SKLEARN_SVC()], ids=repr)
def test_pipelines_and_searches_are_certified(machine: Any) -> None:
    scaled = StandardScaler().fit_transform(X)
    alone = ours.certify(clone(machine).fit(scaled, Y), scaled, Y)
    pipeline = make_pipeline(StandardScaler(), clone(machine)).fit(X, Y)
    assert ours.certify(pipeline, X, Y).primal == alone.primal
    search = GridSearchCV(make_pipeline(StandardScaler(), machine), {}, cv=2).fit(X, Y)
    assert ours.certify(search, X, Y).primal == alone.primal
    nested = make_pipeline(StandardScaler(), mm.SVCSearchCV(machine, {"C": [1.0]}, cv=2))
    assert ours.certify(nested.fit(X, Y), X, Y).primal == pytest.approx(alone.primal, rel=1e-4)
    with pytest.raises(ValueError, match="refit=False"):
        ours.certify(GridSearchCV(machine, {"C": [1.0]}, refit=False, cv=2).fit(X, Y), X, Y)


# ------------------------------------------------------------------- objects

WORDS = ["aa", "ab", "abb", "bbb", "bb", "bba", "aab", "a", "b", "baa"]
TASTES = np.array([0, 0, 1, 1, 1, 1, 0, 0, 1, 0])
COUNTS = np.array([[word.count("a"), word.count("b")] for word in WORDS], dtype=float)


def letters(block: Any, other: Any) -> Any:
    assert isinstance(block, list)
    assert isinstance(block[0], str)
    return np.array([[a.count("a") * b.count("a") + a.count("b") * b.count("b") for b in other]
                     for a in block], dtype=float)  # fmt: skip


@quiet
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "kernel",
    [
        letters,
        FromFunction(letters),
        FromFunction(letters, on="objects"),
        FromFunction(letters) ** 2,
    ],
    ids=["function", "blocks", "objects", "power"],
)
@pytest.mark.parametrize(
    "kind",
    [
        mm.SVC,
        mm.NuSVC,
        mm.SVR,
        mm.NuSVR,
        mm.OneClassSVM,
        mm.HardMarginSVC,
        mm.BayesPointClassifier,
        mm.KernelPerceptron,
        mm.QuantileSVR,
    ],
)
def test_functions_of_blocks_of_objects(kind: Any, kernel: Any) -> None:
    vectors = Linear() ** 2 if isinstance(kernel, mm.kernels.Power) else Linear()
    more = {"nu": 0.3} if kind is mm.NuSVC else {}
    expected = kind(kernel=FromFunction(vectors.gram), **more).fit(COUNTS, TASTES).predict(COUNTS)
    for words in (WORDS, np.array(WORDS), np.array(WORDS, dtype=object)):
        model = kind(kernel=kernel, **more).fit(words, TASTES)
        found = model.predict(words)
        np.testing.assert_allclose(found, expected, atol=1e-3)
    if kind is mm.KernelPerceptron:
        assert_array_equal(model.partial_fit(WORDS[:4], TASTES[:4]).predict(WORDS[:4]), TASTES[:4])


def test_kernels_of_objects_by_themselves() -> None:
    kernel = FromFunction(letters)
    expected = COUNTS @ COUNTS.T
    assert_array_equal(kernel.gram(WORDS), expected)
    assert_array_equal(kernel.gram(WORDS, WORDS[:3]), expected[:, :3])
    assert_array_equal((2 * kernel + 1.0).diag(WORDS), 2 * expected.diagonal() + 1)
    assert mm.check_kernel(kernel, WORDS).psd
    for model in (mm.KernelPCA(2, kernel=kernel), mm.Nystroem(kernel, n_components=2)):
        assert model.fit(WORDS).transform(WORDS[:3]).shape == (3, 2)
