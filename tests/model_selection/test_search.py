"""SVCSearchCV beside GridSearchCV, with the same estimators and with LIBSVM.

Scores of classes jump where a row changes sides, and a row whose score is nearly 0 may do so
within any tolerance. The rule here, with tol=1e-6: of all candidates in all splits at most one
score differs.
"""

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn import svm
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePGroupsOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    StandardScaler,
    TargetEncoder,
)

import maxmargin as mm

N = 72
GRID = {"C": [0.1, 10], "gamma": [0.1, 1]}
COSTS = {"C": [0.1, 10], "gamma": [0.5]}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = (X[:, 0] + X[:, 1] ** 2 - 0.7 + 0.5 * RNG.normal(size=N) > 0).astype(int)
Y3 = np.where(X[:, 0] > 0.5, 2, (X[:, 1] + 0.5 * RNG.normal(size=N) > 0).astype(int))
TARGET = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=N)
WEIGHT = RNG.uniform(0, 2, N) * (RNG.random(N) < 0.7)
GROUPS = np.arange(N) % 5
SPARSE = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
FRAME = pd.DataFrame(X, columns=list("abcd"))
SVC, SVR = mm.SVC(tol=1e-6), mm.SVR(tol=1e-6)
EXTRA = {"max_relative_gap"}


def both(estimator: Any, grid: Any, X: Any = X, y: Any = Y, fit: Any = None, **settings: Any
         ) -> tuple[Any, Any]:  # fmt: skip
    """Return our search and scikit-learn's."""
    searches = mm.SVCSearchCV(estimator, grid, cv=3), GridSearchCV(estimator, grid, cv=3)
    return tuple(
        clone(one).set_params(**copy.deepcopy(settings)).fit(X, y, **(fit or {}))
        for one in searches
    )


def assert_same(ours: Any, theirs: Any, *, atol: float = 1e-9, differing: int = 1) -> None:
    """Assert the same results; of the scores of splits, so many may differ."""
    assert set(theirs.cv_results_) == set(ours.cv_results_) - EXTRA
    scores = []
    for key, expected in theirs.cv_results_.items():
        found = ours.cv_results_[key]
        if key == "params":
            assert repr(found) == repr(expected)
            continue
        assert type(found) is type(expected), key
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), key
        if key.startswith("split"):
            scores.append(np.isclose(found, expected, rtol=0, atol=atol, equal_nan=True))
        if key.startswith("param_"):
            assert_array_equal(found.mask, expected.mask)
    assert (~np.array(scores)).sum() <= differing
    _assert_same_winner(ours, theirs, max(atol, 1e-6) if np.all(scores) else 0.1)


def _assert_same_winner(ours: Any, theirs: Any, atol: float) -> None:
    assert hasattr(ours, "best_estimator_") == hasattr(theirs, "best_estimator_")
    if not hasattr(theirs, "best_index_"):
        assert not hasattr(ours, "best_index_")
        return
    name = theirs.refit if theirs.multimetric_ else "score"
    if not callable(theirs.refit):
        means = theirs.cv_results_[f"mean_test_{name}"]
        assert np.isclose(means[ours.best_index_], theirs.best_score_, atol=atol, equal_nan=True)
        assert np.isclose(ours.best_score_, theirs.best_score_, atol=atol, equal_nan=True)
    assert ours.best_params_ is ours.cv_results_["params"][ours.best_index_]
    public = {name for name in vars(theirs) if not name.startswith("_")}
    assert public <= set(vars(ours))
    assert ours.n_splits_ == theirs.n_splits_


def is_shared(search: Any) -> bool:
    return not search.sharing_.startswith("nothing")


# ------------------------------------------------------------------- machines and grids

KERNELS = mm.kernels
MACHINES: dict[str, tuple[Any, Any, Any]] = {
    "SVC": (SVC, GRID, Y),
    "three classes": (SVC, {**GRID, "decision_function_shape": ["ovo", "ovr"]}, Y3),
    "strings": (SVC, GRID, np.array(["a", "bb", "c"])[Y3]),
    "objects": (SVC, GRID, np.array(["a", "bb"], object)[Y]),
    "gammas": (SVC, {"C": [0.1, 1], "gamma": ["scale", "auto", 0.3]}, Y),
    "class weights": (SVC, {"C": [1, 9], "class_weight": [None, "balanced", {0: 1, 1: 5}]}, Y),
    "no intercept": (mm.SVC(tol=1e-6, fit_intercept=False), GRID, Y),
    "flat": (mm.SVC(gamma=0), {"C": [1, 2]}, Y),
    "dicts": (SVC, [{"C": [1, 2]}, {"kernel": ["poly"], "degree": [2, 3], "coef0": [0, 1]}], Y),
    "empty grid": (SVC, {}, Y),
    "composed": (
        SVC,
        {"C": [1, 2], "kernel": [KERNELS.RBF(0.5) + KERNELS.Polynomial(2), KERNELS.Laplacian()]},
        Y,
    ),
    "nested": (mm.SVC(kernel=KERNELS.RBF(1.0), tol=1e-6), {"kernel__gamma": [0.1, 1.0]}, Y),
    "LinearSVC": (mm.LinearSVC(), {"C": [0.1, 1, 10], "loss": ["hinge", "squared_hinge"]}, Y),
    "Crammer-Singer": (mm.LinearSVC(multi_class="crammer_singer"), {"C": [0.1, 1]}, Y3),
    "linear kernel": (mm.SVC(kernel="linear", tol=1e-6), {"C": [0.1, 1, 10]}, Y),
    "pipeline of one": (Pipeline([("svc", SVC)]), {"svc__C": [0.1, 1]}, Y),
    "pipeline": (
        make_pipeline(StandardScaler(), PCA(), SVC),
        {"svc__C": [0.1, 1], "pca__n_components": [1, 3], "standardscaler": ["passthrough", None]},
        Y,
    ),
    "machines": (
        Pipeline([("s", StandardScaler()), ("m", SVC)]),
        {"m": [SVC, mm.SVC(kernel="poly", tol=1e-6), mm.LinearSVC()], "m__C": [0.1, 1]},
        Y,
    ),
}


@pytest.mark.parametrize("case", MACHINES)
def test_beside_grid_search(case: str) -> None:
    estimator, grid, y = MACHINES[case]
    ours, theirs = both(estimator, grid, X, y, return_train_score=True)
    assert_same(ours, theirs, differing=2)  # one in test and one in training rows
    assert is_shared(ours)
    assert (ours.cv_results_["max_relative_gap"] <= 1e-4).all()


@pytest.mark.parametrize("estimator", [SVR, mm.LinearSVR(tol=1e-6)], ids=["SVR", "LinearSVR"])
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error"])
def test_regression_beside_grid_search(estimator: Any, scoring: Any) -> None:
    grid = {"C": [0.1, 1, 10], "epsilon": [0.0, 0.1]}
    ours, theirs = both(estimator, grid, X, TARGET, scoring=scoring, return_train_score=True)
    assert_same(ours, theirs, atol=1e-3, differing=0)
    assert is_shared(ours)


@pytest.mark.filterwarnings("ignore:.*stationary, not certified")
def test_kernels_that_are_not_convex_start_afresh() -> None:
    ours, theirs = both(SVC, {"C": [0.1, 1, 10], "kernel": ["linear", "rbf", "poly", "sigmoid"]})
    assert_same(ours, theirs)


@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_beside_libsvm(name: str) -> None:
    y = Y if name == "SVC" else TARGET
    # (On polynomials LIBSVM may take minutes to get there.)
    grid = {"C": np.logspace(-2, 2, 5), "gamma": ["scale", 0.1, 1.0]}
    ours = mm.SVCSearchCV(getattr(mm, name)(tol=1e-6), grid).fit(X, y)
    theirs = GridSearchCV(getattr(svm, name)(tol=1e-6), grid).fit(X, y)
    assert_same(ours, theirs, atol=1e-9 if name == "SVC" else 2e-3)


# ------------------------------------------------------------------- splits

SPLITS: dict[str, Any] = {
    "number": 3,
    "shuffled": StratifiedKFold(4, shuffle=True, random_state=0),
    "random": ShuffleSplit(4, test_size=0.3, random_state=1),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "generator": ShuffleSplit(3, random_state=np.random.RandomState(0)),
    "groups": GroupKFold(3),
    "pairs of groups": LeavePGroupsOut(2),
    "predefined": PredefinedSplit(np.arange(N) % 4 - 1),
    "in time": TimeSeriesSplit(4),
    "masks": [(np.arange(N) % 3 != k, np.arange(N) % 3 == k) for k in range(3)],
    "overlapping": [(np.arange(k, 50 + k), np.arange(30, N)) for k in range(4)],
    "with repetition": [(RNG.integers(0, N, N), RNG.integers(0, N, 50)) for _ in range(4)],
    "one": [(np.arange(50), np.arange(-20, 0))],
}


@pytest.mark.parametrize("case", SPLITS)
def test_splits(case: str) -> None:
    fit = {"groups": GROUPS} if "groups" in case else None
    ours, theirs = both(SVC, COSTS, fit=fit, cv=SPLITS[case], return_train_score=True)
    assert_same(ours, theirs)
    assert is_shared(ours)


def test_leave_one_out() -> None:
    ours, theirs = both(SVC, {"C": [0.1, 1]}, X[:16], Y[:16], cv=LeaveOneOut(), refit=False)
    assert_same(ours, theirs)


@pytest.mark.parametrize("C", [1, -1], ids=["shared", "not shared"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_splits_that_can_be_drawn_once(C: float) -> None:
    expected = GridSearchCV(SVC, {"C": [C, 2]}, cv=KFold(3)).fit(X, Y)
    given = (rows for rows in KFold(3).split(X))
    search = mm.SVCSearchCV(SVC, {"C": [C, 2]}, cv=given).fit(X, Y)
    assert_same(search, expected)
    assert search.cv is given


def test_a_class_that_is_missing_in_one_split() -> None:
    y = np.repeat([0, 1, 2], N // 3)
    ours, theirs = both(SVC, {"C": [1, 2], "gamma": [0.1, 1]}, X, y, cv=KFold(3))
    assert_same(ours, theirs)
    assert is_shared(ours)


def test_splits_that_are_not_as_many_as_said() -> None:
    class Wrong(KFold):  # type: ignore[misc, unused-ignore]
        def get_n_splits(self, *args: Any, **named: Any) -> int:
            return 5

    for search in (mm.SVCSearchCV, GridSearchCV):
        with pytest.raises(ValueError, match=r"5 splits, .* 3"):
            search(SVC, GRID, cv=Wrong(3)).fit(X, Y)
        with pytest.raises(ValueError, match="No fits were performed"):
            search(SVC, GRID, cv=[]).fit(X, Y)


# ------------------------------------------------------------------- rows and weights

INPUTS: dict[str, tuple[Any, Any]] = {
    "frame": (FRAME, pd.Series(Y, index=np.arange(N) + 7)),
    "csr": (SPARSE, Y),
    "coo": (SPARSE.tocoo(), Y),
    "float32": (X.astype(np.float32), Y),
    "lists": (X.tolist(), Y.tolist()),
}


@pytest.mark.parametrize("case", INPUTS)
@pytest.mark.parametrize(
    "estimator",
    [mm.SVC(), mm.LinearSVC(), make_pipeline(MaxAbsScaler(), mm.LinearSVC())],
    ids=["SVC", "LinearSVC", "pipeline"],
)
def test_kinds_of_rows(estimator: Any, case: str) -> None:
    prefix = "linearsvc__" if isinstance(estimator, Pipeline) else ""
    assert_same(*both(estimator, {f"{prefix}C": [0.1, 1]}, *INPUTS[case], return_train_score=True))


@pytest.mark.parametrize("machine", [SVC, mm.LinearSVC()], ids=["SVC", "LinearSVC"])
def test_frames_between_the_steps(machine: Any) -> None:
    scaler = StandardScaler().set_output(transform="pandas")
    ours, theirs = both(Pipeline([("s", scaler), ("m", machine)]), {"m__C": [0.1, 1]}, FRAME)
    assert_same(ours, theirs)
    assert_array_equal(ours.feature_names_in_, FRAME.columns)


def test_steps_that_transform_otherwise_while_fitted() -> None:
    rows = RNG.integers(0, 5, (N, 2))
    pipeline = make_pipeline(TargetEncoder(cv=KFold(3)), SVC)
    ours, theirs = both(pipeline, {"svc__C": [0.1, 1]}, rows, return_train_score=True)
    assert_same(ours, theirs)
    assert "chains" in ours.sharing_
    assert "transforms rows otherwise" in ours.sharing_
    ours, theirs = both(pipeline, {"svc__C": [0.1, 1]}, rows)
    assert_same(ours, theirs)
    assert "matrices" in ours.sharing_


def test_long_parameters_that_print_alike() -> None:
    def times(rows: Any, by: Any) -> Any:
        return rows * by[999:1003]

    long = np.ones(3000)
    other = long.copy()
    other[1000] = 50.0
    pipeline = make_pipeline(FunctionTransformer(times), SVC)
    grid = {"functiontransformer__kw_args": [{"by": long}, {"by": other}], "svc__gamma": [0.1]}
    ours, theirs = both(pipeline, grid)
    means = theirs.cv_results_["mean_test_score"]
    assert means[0] != means[1]
    assert_array_equal(ours.cv_results_["mean_test_score"], means)


@pytest.mark.parametrize(
    ("scoring", "weight"),
    [
        (None, WEIGHT),
        ("roc_auc", WEIGHT.tolist()),
        (["accuracy", "roc_auc"], WEIGHT),
        ("accuracy", None),
    ],
)
def test_weights_of_fits_and_of_scores(scoring: Any, weight: Any) -> None:
    refit = "roc_auc" if isinstance(scoring, list) else True
    settings: Any = {"scoring": scoring, "refit": refit, "return_train_score": True}
    ours, theirs = both(SVC, GRID, fit={"sample_weight": weight}, **settings)
    assert_same(ours, theirs, differing=2)
    assert is_shared(ours)


def test_weights_of_the_last_step() -> None:
    pipeline = make_pipeline(StandardScaler(), SVC)
    ours, theirs = both(pipeline, {"svc__C": [0.1, 1]}, fit={"svc__sample_weight": WEIGHT})
    assert_same(ours, theirs)
    assert is_shared(ours)
    ours, theirs = both(SVR, {"C": [0.1, 1]}, X, TARGET, fit={"sample_weight": WEIGHT})
    assert_same(ours, theirs, atol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_where_many_intercepts_are_best_a_search_takes_the_one_a_fit_takes(seed: int) -> None:
    # Balanced weights and a small C: all duals are at their bounds, and a stretch of b is optimal.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(40, 150)), 4))
    y = np.digitize(X[:, 0] + rng.normal(size=len(X)), [-0.5, 0.8])
    machine = mm.SVC(class_weight="balanced", gamma=0.3)
    grid = {"C": [1e-4, 1e-3, 1e-2]}
    cv = StratifiedKFold(4)
    ours = mm.SVCSearchCV(machine, grid, cv=cv, refit=False).fit(X, y)
    theirs = GridSearchCV(machine, grid, cv=cv, refit=False, error_score="raise").fit(X, y)
    for fold in range(4):
        name = f"split{fold}_test_score"
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])
