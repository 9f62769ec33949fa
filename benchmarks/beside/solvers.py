"""Those who are compared, ours and others': each is told how hard to try by one number.

What the number means is everybody's own affair (a tolerance, or epochs). Nobody's claim is
believed: what comes out is certified, or its objective computed.
"""

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.beside.objective import Objective
from benchmarks.datasets import Dataset
from benchmarks.machine import package_version

TOLERANCES = tuple(10.0**-k for k in range(1, 10))
LINEAR_ROWS = 10_000  # without a kernel, time that grows with the square of the rows is no rival


class Weights(NamedTuple):
    """A plane: f(x) = w·x + b."""

    w: npt.NDArray[np.float64]
    b: float


@dataclass(frozen=True)
class Tool:
    """Someone who fits machines."""

    name: str  # of the library at work
    package: str  # what it is distributed as
    module: str  # what must be importable for it to take part
    unfit: Callable[[Dataset, Objective], str | None]  # says why it cannot minimise this, if so
    model: Callable[..., Any]  # an estimator, of a Dataset, an Objective, a setting and threads
    knob: str = "tol"  # what the number that says how hard to try is called there
    settings: tuple[float, ...] = TOLERANCES  # its values, from loose to tight
    default: float | None = 1e-3  # the value it comes with, if that can be compared
    ones: bool = False  # whether it has no intercept and is given a column of ones
    readable: Callable[[Any, Dataset], Any] = lambda model, data: model  # as ``mm.certify`` reads

    def refusal(self, dataset: Dataset, objective: Objective) -> str | None:
        """Say why it cannot take part, if so."""
        # Two packages have a module ``liblinear``.
        known = importlib.util.find_spec(self.module.partition(".")[0]) is not None
        missing = not known or package_version(self.package) is None
        return f"{self.package} is not installed" if missing else self.unfit(dataset, objective)

    def rows(self, dataset: Dataset) -> Any:
        """Return the rows it is given."""
        if not self.ones:
            return dataset.X
        ones = np.ones((dataset.X.shape[0], 1), dtype=dataset.X.dtype)
        if not dataset.sparse:
            return np.hstack([dataset.X, ones])
        joined = sp.hstack([dataset.X, ones], format="csr")
        # Some peers refuse 64-bit indices.
        joined.indices, joined.indptr = joined.indices.astype("i4"), joined.indptr.astype("i4")
        return joined

    def weights(self, model: Any) -> Weights:
        """Return the plane of a fitted linear machine."""
        coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
        coef = np.ravel(coef).astype(np.float64)
        if self.ones:
            return Weights(coef[:-1], float(coef[-1]))
        return Weights(coef, float(np.ravel(model.intercept_)[0]))

    @property
    def described(self) -> str:
        """The name, with package and version."""
        return f"{self.name} ({self.package} {package_version(self.package)})"


def fitted(model: Any, X: Any, y: Any) -> Any:
    """Fit without warnings: whether a fit converges is what is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


# ------------------------------------------------------------ ours


def _ours(data: Dataset, objective: Objective, tol: float, threads: int, **more: Any) -> Any:
    import maxmargin as mm

    said: dict[str, Any] = {"tol": tol, "n_jobs": threads, **more}
    if not objective.linear:
        return (mm.SVR if objective.regression else mm.SVC)(**objective.parameters, **said)
    said |= {"C": objective.C, "intercept": objective.intercept}
    if objective.epsilon is not None:
        return mm.LinearSVR(epsilon=objective.epsilon, **said)
    return mm.LinearSVC(**said)


OURS = Tool(
    "maxmargin",
    "maxmargin",
    "maxmargin",
    unfit=lambda data, objective: None,
    model=_ours,
    # Twice as many as the others have: what is compared is the loosest that is good enough.
    settings=tuple(round(10.0 ** (-k / 2), 12) for k in range(2, 17)),
    default=1e-4,
)


# ------------------------------------------------------------ kernel machines, as they come


def _needs_free_intercept(data: Dataset, objective: Objective) -> str | None:
    if objective.intercept != "free":
        return "its intercept is free"
    few = data.X.shape[0] <= LINEAR_ROWS or not objective.linear
    return None if few else f"there is no kernel and there are more than {LINEAR_ROWS} rows"


def _libsvm(data: Dataset, objective: Objective, tol: float, threads: int, **more: Any) -> Any:
    from sklearn.svm import SVC, SVR

    return (SVR if objective.regression else SVC)(**objective.parameters, tol=tol, **more)


def _onedal(data: Dataset, objective: Objective, tol: float, threads: int, **more: Any) -> Any:
    importlib.import_module("daal4py").daalinit(threads)  # it looks at no other limit
    module = importlib.import_module("sklearnex.svm")
    kind = module.SVR if objective.regression else module.SVC
    return kind(**objective.parameters, tol=tol, **more)


LIBSVM = Tool("LIBSVM", "scikit-learn", "sklearn", _needs_free_intercept, _libsvm)
ONEDAL = Tool(
    "oneDAL",
    "scikit-learn-intelex",
    "sklearnex",
    unfit=lambda data, objective: "there is no kernel" if objective.linear else None,
    model=_onedal,
)


def _needs_one_plane(data: Dataset, objective: Objective) -> str | None:
    if objective.linear:
        return "there is no kernel"
    if objective.regression or len(np.unique(data.y)) == 2:
        return None
    return "only its machines of two classes can be judged"


def _thundersvm(data: Dataset, objective: Objective, tol: float, threads: int) -> Any:
    module = importlib.import_module("thundersvm")
    kind = module.SVR if objective.regression else module.SVC
    return kind(**objective.parameters, tol=tol, n_jobs=threads)


def _as_libsvm(model: Any, data: Dataset) -> Any:
    """Return ThunderSVM's machine as one of scikit-learn's, whose layout certificates know.

    Its labels are in the order of their appearance, and its intercept has the other sign.
    """
    support, duals = np.ravel(model.support_), np.ravel(model.dual_coef_)
    sign, order = 1.0, np.arange(len(support))
    regression = model.__class__.__name__.endswith("R")
    if not regression:
        sign = float(np.sign(duals @ np.where(data.y[support] == data.y.max(), 1.0, -1.0)))
        order = np.lexsort((support, data.y[support]))
    objective = Objective(model.C, model.gamma, model.epsilon if regression else None)
    twin = _libsvm(data, objective, 1e-3, 1)
    twin.support_ = support[order].astype(np.int32)
    twin.dual_coef_, twin.intercept_ = sign * duals[np.newaxis, order], -sign * model.intercept_
    twin.support_vectors_, twin.shape_fit_ = data.X[twin.support_], data.X.shape
    twin.n_features_in_ = data.X.shape[1]
    if not regression:
        twin.classes_, twin.class_weight_ = np.unique(data.y), np.ones(2)
        counts = np.unique(data.y[twin.support_], return_counts=True)[1]
        vars(twin)["_n_support"] = counts.astype(np.int32)
    return twin


THUNDERSVM = Tool(
    "ThunderSVM", "thundersvm-cpu", "thundersvm", _needs_one_plane, _thundersvm,
    readable=_as_libsvm,
)  # fmt: skip


# ------------------------------------------------------------ linear machines


def _needs_penalised_intercept(data: Dataset, objective: Objective) -> str | None:
    if not objective.linear:
        return "it has no kernels"
    return None if objective.intercept == "penalized" else "its intercept is penalised"


def _needs_two_classes(data: Dataset, objective: Objective) -> str | None:
    if objective.regression:
        return "it is a classifier"
    return _needs_penalised_intercept(data, objective)


def _liblinear(data: Dataset, objective: Objective, tol: float, threads: int) -> Any:
    """Make as many epochs as the tolerance takes."""
    from sklearn.svm import LinearSVC, LinearSVR

    said: dict[str, Any] = {"C": objective.C, "tol": tol, "max_iter": 10**8, "dual": True}
    if objective.regression:
        return LinearSVR(epsilon=objective.epsilon, random_state=0, **said)
    return LinearSVC(loss="hinge", random_state=0, **said)


def _skglm(data: Dataset, objective: Objective, tol: float, threads: int) -> Any:
    """Make as many working sets as the tolerance takes; ``fit_intercept`` has no effect there."""
    skglm = importlib.import_module("skglm")
    return skglm.LinearSVC(objective.C, max_iter=10**6, tol=tol, fit_intercept=False)


def _snapml(data: Dataset, objective: Objective, tol: float, threads: int) -> Any:
    machine = importlib.import_module("snapml").SupportVectorMachine
    return machine(
        regularizer=1 / objective.C, fit_intercept=False, tol=tol, max_iter=10**5, n_jobs=threads
    )


class _Multicore:
    """LIBLINEAR's dual coordinate descent on several cores, as an estimator."""

    def __init__(self, C: float, tol: float, threads: int) -> None:
        self.said = f"-s 3 -c {C!r} -e {tol!r} -m {threads} -q"

    def fit(self, X: Any, y: Any) -> Self:
        module = importlib.import_module("liblinear.liblinearutil")
        made = module.train(module.problem(y, sp.csr_matrix(X)), module.parameter(self.said))
        self.coef_ = np.array([made.get_decfun()[0]]) * (1.0 if made.get_labels()[0] == 1 else -1.0)
        return self

    def predict(self, X: Any) -> Any:
        return np.where(np.ravel(X @ self.coef_[0]) > 0, 1.0, -1.0)


def _multicore(data: Dataset, objective: Objective, tol: float, threads: int) -> Any:
    return _Multicore(objective.C, tol, threads)


def _sgd(data: Dataset, objective: Objective, epochs: float, threads: int) -> Any:
    """Make so many epochs, with the step sizes it chooses itself."""
    from sklearn.linear_model import SGDClassifier

    penalty = 1 / (len(data.y) * objective.C)
    common: dict[str, Any] = {"fit_intercept": False, "tol": None, "random_state": 0}
    return SGDClassifier(alpha=penalty, max_iter=int(epochs), **common)


LIBLINEAR = Tool(
    "LIBLINEAR", "scikit-learn", "sklearn", _needs_penalised_intercept, _liblinear, default=1e-4
)
SKGLM = Tool("skglm", "skglm", "skglm", _needs_two_classes, _skglm, default=None, ones=True)
SNAPML = Tool("snapml", "snapml", "snapml", _needs_two_classes, _snapml, ones=True)
MULTICORE = Tool(
    "LIBLINEAR multi-core",
    "liblinear-multicore",
    "liblinear",
    _needs_two_classes,
    _multicore,
    default=None,  # it stops after 1000 epochs
    ones=True,
)
SGD = Tool(
    "SGD",
    "scikit-learn",
    "sklearn",
    _needs_two_classes,
    _sgd,
    knob="epochs",
    settings=tuple(2.0**k for k in range(20)),
    default=None,
    ones=True,
)

_ALL = (OURS, ONEDAL, LIBSVM, THUNDERSVM, LIBLINEAR, MULTICORE, SNAPML, SKGLM, SGD)
TOOLS = {tool.name: tool for tool in _ALL}
PEERS = [name for name in TOOLS if name != OURS.name]
