"""Model files of LIBSVM: equal predictions in both directions, and nothing inconsistent is read."""

import warnings
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.files import load_libsvm, save_libsvm
from maxmargin.inspection.model_view import read_pair_duals
from tests.support.official import (
    libsvm_values,
    needs_data,
    needs_libsvm_tools,
    predicted,
    real,
    run,
    write_gram,
    write_rows,
)

certify: Any = mm.certify
KERNELS = ["linear", "poly", "rbf", "sigmoid"]
NUMBERS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}
SHAPE: dict[str, Any] = {"gamma": 0.3, "coef0": 0.5}


def blobs(n_classes: int, n: int = 90, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(n_classes, d))[y], y


def targets(X: Any) -> Any:
    return np.sin(X[:, 0]) + 0.3 * X[:, 1]


MACHINES: dict[str, Callable[[str], Any]] = {
    "SVC": lambda kernel: mm.SVC(kernel=kernel, C=2.0, **SHAPE),
    "NuSVC": lambda kernel: mm.NuSVC(kernel=kernel, nu=0.4, **SHAPE),
    "SVR": lambda kernel: mm.SVR(kernel=kernel, **SHAPE),
    "NuSVR": lambda kernel: mm.NuSVR(kernel=kernel, **SHAPE),
    "QuantileSVR": lambda kernel: mm.QuantileSVR(kernel=kernel, quantile=0.7, **SHAPE),
    "OneClassSVM": lambda kernel: mm.OneClassSVM(kernel=kernel, nu=0.3, **SHAPE),
}


def fitted(name: str, kernel: str, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the sigmoid kernel is not definite
        return MACHINES[name](kernel).fit(X, y)


def bounds(model: Any, X: Any) -> Any:
    """Return 1e-12 (Σ|coef K| + |b|) for each row and plane."""
    K = np.abs(model.kernel_.gram(X, model.support_vectors_))
    if hasattr(model, "classes_"):
        pairs = combinations(range(len(model.classes_)), 2)
        beta = np.array([read_pair_duals(model, i, j) for i, j in pairs]).T
    else:
        beta = model.dual_coef_.T
    return 1e-12 * (K @ np.abs(beta) + np.abs(model.intercept_))


def sure(model: Any, X: Any) -> Any:
    """Return the rows whose label does not depend on rounding."""
    return (np.abs(model.pairwise_scores(X)) > bounds(model, X)).all(axis=1)


# ------------------------------------------------------------------- ours, read by LIBSVM


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("name", "n_classes"), [*((name, 2) for name in MACHINES), ("SVC", 4), ("NuSVC", 4)]
)
def test_libsvm_computes_our_scores(name: str, kernel: str, n_classes: int, tmp_path: Path) -> None:
    X, y = blobs(n_classes)
    if not name.endswith("SVC"):
        y = targets(X)
    model = fitted(name, kernel, X, y)
    new = np.vstack([X[::3], np.zeros((1, X.shape[1])), 3 * X[:10]])
    save_libsvm(model, tmp_path / "model")
    labels, scores = libsvm_values(tmp_path / "model", new, len(model.intercept_))
    assert (np.abs(scores - model.pairwise_scores(new)) <= bounds(model, new)).all()
    again = load_libsvm(tmp_path / "model")
    assert (np.abs(again.pairwise_scores(new) - scores) <= bounds(model, new)).all()
    if kernel != "linear":  # which has its weights from sums in another order
        assert_array_equal(again.pairwise_scores(new), model.pairwise_scores(new))
    if name.endswith("SVC"):
        assert_array_equal(again.predict(new), labels)
    elif name == "OneClassSVM":
        safe = sure(model, new)
        assert_array_equal(model.predict(new)[safe], labels[safe])
        assert_array_equal(again.predict(new)[safe], labels[safe])
    assert type(again) is (mm.SVR if name == "QuantileSVR" else type(model))


@needs_libsvm_tools
@pytest.mark.parametrize("kernel", [*KERNELS, "precomputed"])
def test_svm_predict_gives_our_labels(kernel: str, tmp_path: Path) -> None:
    X, y = blobs(2)
    K = X @ X.T
    model = fitted("SVC", kernel, K if kernel == "precomputed" else X, y)
    save_libsvm(model, tmp_path / "model")
    if kernel == "precomputed":
        rows, new = write_gram(tmp_path / "rows", K, y), K
    else:
        rows, new = write_rows(tmp_path / "rows", X, y), X
    labels = predicted("svm-predict", rows, tmp_path / "model")
    assert_array_equal(labels, model.predict(new))
    again = load_libsvm(tmp_path / "model", n_features=len(y) if kernel == "precomputed" else None)
    assert_array_equal(labels, again.predict(new))


def test_weights_that_the_duals_do_not_give_back_are_added(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(11_000, 20))  # more than are solved to the last digit
    for y in (np.sign(X[:, 0] + rng.normal(size=11_000)), (3 * rng.random(11_000)).astype(int)):
        model = mm.SVC(kernel="linear").fit(X, y)
        some = X[:50]
        save_libsvm(model, tmp_path / "model")
        again = load_libsvm(tmp_path / "model", C=1.0)
        _, scores = libsvm_values(tmp_path / "model", some, len(model.intercept_))
        assert (np.abs(scores - model.pairwise_scores(some)) <= bounds(model, some)).all()
        assert len(again.support_) > len(model.support_)
        gap = certify(again, X, y).relative_gap
        assert gap <= 1.1 * model.certificate_.relative_gap + 1e-9


@needs_libsvm_tools
def test_sparse_rows_empty_rows_and_gaps_in_the_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = sp.random(80, 500, 0.01, "csr", random_state=1)
    y = rng.integers(0, 2, 80)
    assert (np.diff(X.indptr) == 0).any()
    model = mm.SVC(gamma=1.0, C=5.0).fit(X, y)
    save_libsvm(model, tmp_path / "model")
    rows = write_rows(tmp_path / "rows", X, y)
    assert_array_equal(predicted("svm-predict", rows, tmp_path / "model"), model.predict(X))
    again = load_libsvm(tmp_path / "model", n_features=500)
    assert sp.issparse(again.support_vectors_)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_allclose(again.decision_function(X.toarray()), model.decision_function(X), atol=1e-13)


def test_kernel_objects_and_gamma_zero(tmp_path: Path) -> None:
    X, y = blobs(3)
    path = tmp_path / "model"
    for kernel in (mm.kernels.RBF(0.2), mm.kernels.Polynomial(2, 0.5, 1.0), mm.kernels.Linear()):
        model = mm.SVC(kernel=kernel).fit(X, y)
        save_libsvm(model, path)
        assert_allclose(load_libsvm(path).pairwise_scores(X), model.pairwise_scores(X), atol=1e-11)
    for name in ("rbf", "poly", "sigmoid"):
        model = mm.SVR(kernel=name, gamma=0.0, coef0=0.5).fit(X, targets(X))
        save_libsvm(model, path)
        assert "gamma 0\n" in path.read_text()
        assert_allclose(load_libsvm(path).predict(X), model.predict(X), rtol=1e-12)


def test_a_class_without_weight_is_never_predicted(tmp_path: Path) -> None:
    X, y = blobs(4)
    model = mm.SVC().fit(X, y, (y != 2).astype(float))
    save_libsvm(model, tmp_path / "model")
    labels, _ = libsvm_values(tmp_path / "model", X, 6)
    assert 2 not in labels
    assert_array_equal(labels, load_libsvm(tmp_path / "model").predict(X))
    assert (labels != model.predict(X)).mean() < 0.05  # ties of votes


# ------------------------------------------------------------------- LIBSVM's, read by us


FLAGS = ["-c", 2, "-n", 0.3, "-p", 0.1, "-g", 0.3, "-r", 0.5, "-e", 1e-6, "-q"]
GIVEN: list[dict[str, Any]] = [
    {"C": 2.0}, {"nu": 0.3}, {"nu": 0.3}, {"C": 2.0, "epsilon": 0.1}, {"C": 2.0, "nu": 0.3},
]  # fmt: skip


@needs_libsvm_tools
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("svm_type", "labels"),
    [
        *product([0, 1], [[2, 1], [-5, 7], [7, 3, 5, -1]]),
        *product([2, 3, 4], [[0, 1]]),
    ],
)
def test_models_of_svm_train_predict_equally_and_can_be_certified(
    svm_type: int, kernel: str, labels: list[int], tmp_path: Path
) -> None:
    X, codes = blobs(len(labels), n=60)
    y = np.array(labels)[codes] if svm_type < 2 else targets(X)
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    run("svm-train", "-s", svm_type, "-t", NUMBERS[kernel], *FLAGS, rows, path)
    model = load_libsvm(path, **GIVEN[svm_type])
    assert model.origin_ == "LIBSVM file"
    planes = len(model.intercept_)
    found, scores = libsvm_values(path, X, planes)
    ours = model.pairwise_scores(X)
    if planes > 1 or (planes == 1 and svm_type < 2):
        order = [label for label in labels if label in model.classes_.tolist()]
        ours = in_file_order(model, ours, order)
    assert (np.abs(ours - scores) <= bounds(model, X).max(axis=1, keepdims=True)).all()
    if svm_type < 3:
        assert_array_equal(model.predict(X), found)
        assert_array_equal(model.predict(X), predicted("svm-predict", rows, path))
    else:
        assert_allclose(model.predict(X), found, rtol=1e-11)
    certificate = certify(model, X, y)
    if kernel == "sigmoid":
        assert not np.isfinite(certificate.gap)
    elif (svm_type, kernel) != (2, "linear"):
        assert certificate.relative_gap < 1e-3
    # And back: the same labels once more.
    save_libsvm(model, path)
    if svm_type < 2:
        assert_array_equal(libsvm_values(path, X, planes)[0], found)


def in_file_order(model: Any, scores: Any, order: list[int]) -> Any:
    """Return scores by pair as LIBSVM has them: in the order of the file, the first positive."""
    classes = model.classes_.tolist()
    pairs = list(combinations(range(len(classes)), 2))
    columns = []
    for one, other in combinations(order, 2):
        i, j = classes.index(one), classes.index(other)
        column = scores[:, pairs.index((min(i, j), max(i, j)))]
        positive_first = (i < j) == (len(classes) > 2)
        columns.append(column if positive_first else -column)
    return np.array(columns).T


CYCLE = """\
svm_type c_svc
kernel_type linear
nr_class 3
total_sv 3
rho 0 3 0
label {0} {1} {2}
nr_sv 1 1 1
SV
1 1 1:1
-1 1 2:1
-1 -1 3:1
"""


TWO = """\
svm_type c_svc
kernel_type linear
nr_class 2
total_sv 2
rho 0
label {0} {1}
nr_sv 1 1
SV
1 1:1
-1 2:1
"""


@needs_libsvm_tools
@pytest.mark.parametrize("labels", [(1, 2), (2, 1), (1, 2, 3), (3, 1, 2), (2, 3, 1), (3, 2, 1)])
def test_ties_of_votes_and_zero_scores_go_as_in_libsvm(
    labels: tuple[int, ...], tmp_path: Path
) -> None:
    path = tmp_path / "model"
    path.write_text((TWO if len(labels) == 2 else CYCLE).format(*labels))
    grid = np.array(list(product((0.0, 1.0, 2.0), repeat=len(labels))))
    rows = write_rows(tmp_path / "rows", grid, np.ones(len(grid)))
    model = load_libsvm(path)
    labels_found = predicted("svm-predict", rows, path)
    scores = model.decision_function(grid)
    if len(labels) == 2:
        assert (np.abs(scores) < 1e-300).any()  # Ties are broken by the least float.
    else:
        votes = np.sort(np.round(scores), axis=1)
        assert (votes[:, 0] == votes[:, 2]).any()
        assert_array_equal(model.classes_[scores.argmax(axis=1)], labels_found)
    assert_array_equal(model.predict(grid), labels_found)
    save_libsvm(model, path)
    assert_array_equal(load_libsvm(path).predict(grid), model.predict(grid))
    assert_array_equal(predicted("svm-predict", rows, path), labels_found)


@needs_libsvm_tools
def test_precomputed_kernels_of_svm_train(tmp_path: Path) -> None:
    X, y = blobs(3, n=60)
    K = X @ X.T
    rows, path = write_gram(tmp_path / "rows", K, y), tmp_path / "model"
    run("svm-train", "-t", 4, "-c", 2, "-e", 1e-6, "-q", rows, path)
    model = load_libsvm(path, C=2.0, n_features=60)
    labels = predicted("svm-predict", rows, path)
    assert_array_equal(model.predict(K), labels)
    assert_array_equal(model.predict(K[:, model.support_]), labels)
    assert certify(model, K, y).relative_gap < 1e-4
    assert certify(load_libsvm(path, C=2.0), K, y).relative_gap < 1e-4


@needs_libsvm_tools
@needs_data
@pytest.mark.parametrize("name", ["a1a", "heart_scale", "satimage", "pendigits"])
def test_real_sets_both_ways(name: str, tmp_path: Path) -> None:
    X, y = real(name, 400)
    y = np.asarray(y).astype(int)
    X = X / np.maximum(abs(X).max(), 1)
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    run("svm-train", "-g", 0.5, "-c", 4, "-e", 1e-5, "-q", rows, path)
    model = load_libsvm(path, C=4.0, n_features=X.shape[1])
    assert_array_equal(model.predict(X), predicted("svm-predict", rows, path))
    assert certify(load_libsvm(path, C=4.0), X, y).relative_gap < 1e-3
    ours = mm.SVC(gamma=0.5, C=4.0).fit(X, y)
    save_libsvm(ours, path)
    scores = ours.pairwise_scores(X)
    ties = ours.predict(X) != load_libsvm(path, n_features=X.shape[1]).predict(X)
    labels = predicted("svm-predict", rows, path)
    assert_array_equal(labels[~ties], ours.predict(X)[~ties])
    assert ties.mean() < 0.01  # of votes: there LIBSVM has a rule of its own
    assert scores.shape[1] == len(ours.intercept_)


# ------------------------------------------------------------------- probabilities


@needs_libsvm_tools
@pytest.mark.parametrize("labels", [[2, 1], [1, 2], [7, 3, 5]])
def test_probabilities_are_those_of_libsvm(labels: list[int], tmp_path: Path) -> None:
    X, codes = blobs(len(labels))
    y = np.array(labels)[codes]
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    run("svm-train", "-b", 1, "-q", rows, path)
    model = load_libsvm(path)
    run("svm-predict", "-b", 1, rows, path, tmp_path / "out")
    lines = (tmp_path / "out").read_text().splitlines()
    order = [int(word) for word in lines[0].split()[1:]]
    p = np.array([[float(word) for word in line.split()[1:]] for line in lines[1:]])
    ours = model.predict_proba(X)[:, [model.classes_.tolist().index(label) for label in order]]
    agree = model.predict(X) == np.array(order)[p.argmax(axis=1)]
    assert agree.mean() > 0.9
    # LIBSVM couples pairs to an accuracy of 0.005 / classes; ours agree with predict always.
    assert_allclose(ours[agree], p[agree], atol=1e-6 if len(labels) == 2 else 5e-3)
    assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))
    save_libsvm(model, path)
    assert_allclose(load_libsvm(path).predict_proba(X), model.predict_proba(X), atol=1e-12)


@needs_libsvm_tools
def test_our_probabilities_are_read_by_svm_predict(tmp_path: Path) -> None:
    X, y = blobs(2)
    model = mm.SVC(probability=True).fit(X, y)
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    save_libsvm(model, path)
    run("svm-predict", "-b", 1, rows, path, tmp_path / "out")
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[0] == "labels 1 0"
    p = np.array([[float(word) for word in line.split()[1:]] for line in lines[1:]])
    assert_allclose(p[:, ::-1], model.predict_proba(X), atol=1e-5)


# ------------------------------------------------------------------- what a file does not hold


@needs_libsvm_tools
def test_the_cost_is_the_largest_coefficient_unless_it_is_given(tmp_path: Path) -> None:
    X, _ = blobs(2)
    y = np.random.default_rng(0).integers(0, 2, len(X))
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    run("svm-train", "-c", 2, "-w1", 0.25, "-e", 1e-6, "-q", rows, path)
    model = load_libsvm(path, class_weight={1: 0.25})
    assert model.C == load_libsvm(path, C=2.0).C == 2.0
    assert_array_equal(model.class_weight_, [1.0, 0.25])
    assert certify(model, X, y).relative_gap < 1e-4


def test_certify_asks_for_what_the_file_does_not_hold(tmp_path: Path) -> None:
    X, _ = blobs(2)
    path = tmp_path / "model"
    save_libsvm(mm.SVR().fit(X, targets(X)), path)
    with pytest.raises(ValueError, match=r"does not hold epsilon.*load_libsvm\(path, epsilon=…\)"):
        certify(load_libsvm(path), X, targets(X))
    save_libsvm(mm.OneClassSVM().fit(X), path)
    with pytest.raises(ValueError, match="does not hold nu"):
        certify(load_libsvm(path), X, None)
    assert certify(load_libsvm(path, nu=0.5), X, None).holds(1e-4)


def test_certify_finds_repeated_rows_and_says_which_are_missing(tmp_path: Path) -> None:
    X, y = blobs(2)
    X, y = np.vstack([X, X, X[:20]]), np.concatenate([y, y, y[:20]])
    order = np.random.default_rng(0).permutation(len(y))
    path = tmp_path / "model"
    model = mm.SVC(tol=1e-8).fit(X, y)
    save_libsvm(model, path)
    again = load_libsvm(path, C=1.0)
    assert certify(again, X[order], y[order]).relative_gap < 1e-7
    assert certify(again, sp.csr_matrix(X), y).relative_gap < 1e-7
    wide = np.hstack([X, np.zeros((len(X), 2))])
    assert certify(again, wide, y).relative_gap < 1e-7
    with pytest.raises(ValueError, match=r"of the .* support vectors of this SVC"):
        certify(again, X[:50], y[:50])
    with pytest.raises(ValueError, match="scaled as they were"):
        certify(again, 1.01 * X, y)
    with pytest.raises(ValueError, match="are not among the rows of X with these labels"):
        certify(again, X, 1 - y)


@needs_libsvm_tools
def test_equal_rows_with_different_targets(tmp_path: Path) -> None:
    X = np.repeat(np.linspace(0, 1, 10) / 3, 5)[:, np.newaxis]
    y = np.random.default_rng(0).normal(size=50)
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    run("svm-train", "-s", 3, "-g", 5, "-e", 1e-7, "-q", rows, path)
    assert certify(load_libsvm(path, C=1.0, epsilon=0.1), X, y).relative_gap < 1e-5


def test_a_model_from_a_file_can_be_fitted_again_and_started_from(tmp_path: Path) -> None:
    X, y = blobs(3)
    save_libsvm(mm.SVC(tol=1e-8).fit(X, y), tmp_path / "model")
    model = load_libsvm(tmp_path / "model").set_params(warm_start=True, C=1.0)
    with pytest.raises(ValueError, match="read from a LIBSVM file"):
        model.solution(X, y)
    model.fit(X, y)
    assert not hasattr(model, "origin_")
    assert model.certificate_.holds(1e-4)
    assert certify(model, X, y).holds(1e-4)


# ------------------------------------------------------------------- what cannot be written


def test_what_such_a_file_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    X, y = blobs(3)
    path = tmp_path / "model"

    def refuses(model: Any, kind: type[Exception], match: str) -> None:
        with pytest.raises(kind, match=match):
            save_libsvm(model, path)
        assert not path.exists()

    refuses(make_pipeline(StandardScaler(), mm.SVC()).fit(X, y), TypeError, "no other steps")
    refuses(svm.SVC().fit(X, y), TypeError, r"not sklearn\.svm\._classes\.SVC")
    refuses(mm.LinearSVC().fit(X, y), TypeError, "not maxmargin.*LinearSVC.*save_liblinear")
    refuses(mm.SVC(multi_class="ovr").fit(X, y), ValueError, "multi_class='ovr'")
    refuses(mm.SVC(kernel="laplacian").fit(X, y), ValueError, "cannot hold the kernel Laplacian")
    refuses(
        mm.SVC(kernel=mm.kernels.RBF() + 1.0).fit(X, y), ValueError, "cannot hold the kernel RBF"
    )
    refuses(mm.SVC(fit_intercept=False).fit(X, y), ValueError, "fit_intercept=False")
    altered = mm.SVC().fit(X, y)
    altered.dual_coef_ = altered.dual_coef_[:, 1:]
    refuses(altered, ValueError, "do not belong together")
    search = GridSearchCV(mm.SVC(), {"C": [1.0]}).fit(X, y)
    save_libsvm(search, path)
    assert load_libsvm(path).C <= 1.0


def test_arguments_of_another_type_are_refused(tmp_path: Path) -> None:
    X, y = blobs(2)
    path = tmp_path / "model"
    save_libsvm(mm.SVC().fit(X, y), path)
    with pytest.raises(ValueError, match=r"epsilon=0\.1 is no parameter of the SVC"):
        load_libsvm(path, epsilon=0.1)
    with pytest.raises(ValueError, match="class_weight"):
        load_libsvm(path, class_weight={5: 1.0})
    with pytest.raises(ValueError, match="C"):
        load_libsvm(path, C=-1.0)
    with pytest.raises(ValueError, match=r"index 4, but n_features=2"):
        load_libsvm(path, n_features=2)


def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "model"
    rows = b"".join(b"%d %s\n" % (s, b" ".join(b"%d:1" % j for j in range(1, 20001)))
                    for s in [1, -1] * 10)  # fmt: skip
    path.write_bytes(
        b"svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 20\nrho 0\nSV\n" + rows
    )
    del rows
    load_libsvm(path)  # imports and compiles
    tracemalloc.start()
    load_libsvm(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * path.stat().st_size
