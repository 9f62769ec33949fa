"""Models read from files of LIBSVM and LIBLINEAR, kept in native files."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import maxmargin as mm
from maxmargin.files.native import load, save
from tests.files.tampering import Opened

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 3)), 2)
CLASSES = {
    2: np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 7, -3),
    4: np.repeat([5, -2, 9, 1], 15),
}
GRAM = X @ X.T
METHODS = ("predict", "decision_function", "predict_proba", "score_samples")


def given(kernel: str) -> Any:
    return GRAM if kernel == "precomputed" else X


def as_libsvm(model: Any, folder: Path) -> Path:
    path = folder / "text.model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.files.save_libsvm(model, path)
    return path


def as_liblinear(model: Any, folder: Path) -> Path:
    mm.files.save_liblinear(model, folder / "text.model")
    return folder / "text.model"


def kept(model: Any, folder: Path) -> Any:
    save(model, folder / "kept.mmg")
    return load(folder / "kept.mmg")


def same_state(one: Any, other: Any) -> None:
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        found = vars(other)[name]
        if sp.issparse(value):
            value, found = value.toarray(), found.toarray()
        if isinstance(value, np.ndarray):
            assert value.dtype == found.dtype
            assert_array_equal(value, found)
        else:
            assert repr(value) == repr(found)


def certified(model: Any, *data: Any) -> str:
    """Return what certify says, or why it says nothing."""
    try:
        return repr(mm.certify(model, *data))
    except (ValueError, TypeError) as refused:
        return str(refused)


def check_round_trip(
    read: Any, data: tuple[Any, Any], folder: Path, rewrite: Callable[[Any, Path], None]
) -> Any:
    again = kept(read, folder)
    same_state(read, again)
    for method in METHODS:
        if hasattr(read, method):
            assert_array_equal(getattr(again, method)(data[0]), getattr(read, method)(data[0]))
    assert certified(again, *data) == certified(read, *data)
    rewrite(read, folder / "one.model")
    rewrite(again, folder / "other.model")
    assert (folder / "one.model").read_bytes() == (folder / "other.model").read_bytes()
    first = (folder / "kept.mmg").read_bytes()
    save(again, folder / "kept.mmg")
    assert (folder / "kept.mmg").read_bytes() == first
    return again


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "precomputed"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kind", ["SVC 2", "SVC 4", "NuSVC 2", "NuSVC 4", "SVR", "NuSVR",
                                  "OneClassSVM"])  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_libsvm(kind: str, known: bool, kernel: str, tmp_path: Path) -> None:
    name, _, count = kind.partition(" ")
    y = CLASSES[int(count)] if count else X[:, 0] * 2.0
    parameters: dict[str, Any] = {"nu": 0.2} if "Nu" in name or name == "OneClassSVM" else {}
    if name == "SVR":
        parameters["epsilon"] = 0.1
    model = getattr(mm, name)(kernel=kernel, gamma=0.1, **parameters).fit(given(kernel), y)
    path, width = as_libsvm(model, tmp_path), given(kernel).shape[1]
    loaded = mm.files.load_libsvm(path, n_features=width, **(parameters if known else {}))
    again = check_round_trip(loaded, (given(kernel), y), tmp_path, mm.files.save_libsvm)
    assert again.origin_ == "LIBSVM file"
    assert not hasattr(again, "certificate_")


@pytest.mark.parametrize("count", [2, 4])
def test_probabilities(count: int, tmp_path: Path) -> None:
    y = CLASSES[count]
    model = mm.SVC(probability=True).fit(X, y)
    loaded = mm.files.load_libsvm(as_libsvm(model, tmp_path))
    assert_array_equal(kept(loaded, tmp_path).predict_proba(X), loaded.predict_proba(X))
    path = tmp_path / "falling.model"  # scores that make a class less likely, as LIBSVM may find
    text = (tmp_path / "text.model").read_text(encoding="ascii")
    path.write_text(re.sub("(?<=probA )(.*)", lambda m: m[1].replace("-", ""), text), "ascii")
    loaded = mm.files.load_libsvm(path)
    assert loaded.calibration_.slope.min() < 0
    assert_array_equal(kept(loaded, tmp_path).predict_proba(X), loaded.predict_proba(X))


def test_votes_tie_as_in_the_file(tmp_path: Path) -> None:
    """Three planes that agree on nothing: the class that comes first in the file gets all rows."""
    path = tmp_path / "text.model"
    for first, others in ((3, "1 2"), (2, "1 3"), (1, "3 2")):
        path.write_text(
            "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho -1 1 -1\n"
            f"label {first} {others}\nnr_sv 1 1 1\nSV\n1e-9 1e-9 1:1\n-1e-9 1e-9 1:1\n"
            "-1e-9 -1e-9 1:1\n",
            encoding="ascii",
        )
        again = kept(mm.files.load_libsvm(path), tmp_path)
        assert_array_equal(again.predict(np.zeros((2, 1))), [first, first])


LINEAR = [
    (mm.LinearSVC(), 2),
    (mm.LinearSVC(loss="squared_hinge", intercept="penalized"), 4),
    (mm.LinearSVC(penalty="l1", loss="squared_hinge"), 2),
    (mm.LinearSVC(fit_intercept=False), 4),
    (mm.LinearSVC(multi_class="crammer_singer"), 2),
    (mm.LinearSVC(multi_class="crammer_singer"), 4),
    (mm.LinearSVR(), 0),
]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("model", "count"), LINEAR)
def test_liblinear(model: Any, count: int, known: bool, tmp_path: Path) -> None:
    y = CLASSES[count] if count else X[:, 0] * 2.0
    path = as_liblinear(model.fit(X, y), tmp_path)
    parameters = {name: getattr(model, name) for name in ("C", "epsilon")
                  if known and hasattr(model, name)}  # fmt: skip
    loaded = mm.files.load_liblinear(path, **parameters)
    again = check_round_trip(loaded, (X, y), tmp_path, mm.files.save_liblinear)
    assert again.origin_ == "LIBLINEAR file"


def test_edges(tmp_path: Path) -> None:
    """γ = 0, no support vectors, no columns, sparse vectors, other labels."""
    path = tmp_path / "text.model"
    heads = {
        "rbf\ngamma 0": "1 1:2\n-1 1:1\n",
        "polynomial\ndegree 0\ngamma 1\ncoef0 0": "1 1:2\n-1 1:1\n",
        "linear": "",
        "sigmoid\ngamma 0.1\ncoef0 -1": "1 900000:2\n-1 3:1\n",
    }
    for kernel, body in heads.items():
        n = body.count("\n") // 2
        path.write_text(
            f"svm_type c_svc\nkernel_type {kernel}\nnr_class 2\ntotal_sv {2 * n}\nrho 0.5\n"
            f"label 1 0\nnr_sv {n} {n}\nSV\n{body}",
            encoding="ascii",
        )
        loaded = mm.files.load_libsvm(path)
        rows = sp.csr_array((2, loaded.n_features_in_))
        assert_array_equal(kept(loaded, tmp_path).predict(rows), loaded.predict(rows))
    for solver, classes in (("L2R_L1LOSS_SVC_DUAL", "label 1 0\n"), ("L2R_L2LOSS_SVR", "")):
        path.write_text(
            f"solver_type {solver}\nnr_class 2\n{classes}nr_feature 0\nbias 1\nw\n-2 \n",
            encoding="ascii",
        )
        loaded = mm.files.load_liblinear(path)
        assert_array_equal(
            kept(loaded, tmp_path).predict(np.ones((2, 1))), loaded.predict(np.ones((2, 1)))
        )
    with pytest.warns(UserWarning, match="integers of 32 bits"):
        mm.files.save_libsvm(mm.SVC().fit(X, np.where(X[:, 0] > 0, "yes", "no")), path)
    assert_array_equal(kept(mm.files.load_libsvm(path), tmp_path).classes_, ["no", "yes"])


def test_a_read_model_in_a_pipeline(tmp_path: Path) -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(X)
    model = mm.SVC().fit(scaler.transform(X), CLASSES[4])
    whole = make_pipeline(scaler, mm.files.load_libsvm(as_libsvm(model, tmp_path)))
    again = kept(whole, tmp_path)
    assert_array_equal(again.predict(X), whole.predict(X))
    found: Any = mm.certify(again, X, CLASSES[4])
    assert found.holds(1e-4)


def test_costs_may_be_given_later(tmp_path: Path) -> None:
    model = mm.LinearSVR(C=0.5, epsilon=0.2, intercept="penalized").fit(X, X[:, 0])
    again = kept(mm.files.load_liblinear(as_liblinear(model, tmp_path)), tmp_path)
    with pytest.raises(ValueError, match="does not hold C"):
        mm.certify(again, X, X[:, 0])
    again.set_params(C=0.5, epsilon=0.2)
    found: Any = mm.certify(kept(again, tmp_path), X, X[:, 0])
    assert found.holds(1e-4)


# ------------------------------------------------------------------- tampers


def opened(read: Any, folder: Path) -> Opened:
    save(read, folder / "tampered.mmg")
    return Opened(folder / "tampered.mmg")


def read_svc(folder: Path, count: int = 4) -> Any:
    return mm.files.load_libsvm(as_libsvm(mm.SVC().fit(X, CLASSES[count]), folder))


def refuse(file: Opened, words: str) -> None:
    with pytest.raises(mm.errors.ModelFileError, match=words):
        load(file.close())


def test_a_model_has_a_certificate_or_an_origin(tmp_path: Path) -> None:
    file = opened(read_svc(tmp_path), tmp_path)
    del file.state["origin_"]
    refuse(file, "lacks 'certificate_'")
    file = opened(mm.HardMarginSVC().fit([[0.0], [1.0]], [0, 1]), tmp_path)
    file.state["origin_"] = "LIBSVM file"
    refuse(file, "has no attribute 'origin_'")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("_scheme", "ovr", "planes"),
        ("C", -1.0, "C=-1.0"),
    ],
)
def test_values_are_refused(name: str, value: Any, words: str, tmp_path: Path) -> None:
    file = opened(read_svc(tmp_path), tmp_path)
    file.state[name] = value
    refuse(file, words)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("_tie_order", lambda a: a * 0, "twice"),
        ("_tie_order", lambda a: a + 1, "there are 4"),
        ("n_support_", lambda a: a[::-1] * 2, "add up"),
        ("intercept_", lambda a: a[:-1], "planes"),
    ],
)
def test_arrays_are_refused(name: str, change: Any, words: str, tmp_path: Path) -> None:
    file = opened(read_svc(tmp_path), tmp_path)
    array = np.array(file.array(name))
    file.set_array(name, np.ascontiguousarray(change(array)).astype(array.dtype))
    refuse(file, words)


def test_planes_of_liblinear_are_those_of_its_classes(tmp_path: Path) -> None:
    path = as_liblinear(mm.LinearSVC().fit(X, CLASSES[4]), tmp_path)
    file = opened(mm.files.load_liblinear(path), tmp_path)
    file.state["_pairs"][0] = {"tuple": [0, 1]}
    refuse(file, "mix pairs with single classes")
    file.state["_pairs"].pop()
    refuse(file, "3 pairs of classes are not those of 4 planes")
