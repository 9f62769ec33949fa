"""Linear machines: ours and others', each told how hard to try by one number.

What the number means is everybody's own affair (a tolerance, or epochs): nobody's is believed, the
objective of what comes out is computed by ``benchmarks.objective``. Where an intercept is penalised
and a candidate has none of that kind, it is given a column of ones.
"""

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.datasets import Dataset
from benchmarks.machine import package_version
from benchmarks.objective import LinearObjective

TOLERANCES = tuple(10.0**-k for k in range(1, 10))
LIBSVM_ROWS = 10_000  # its time grows with the square of the rows


class Weights(NamedTuple):
    """A plane: f(x) = w·x + b."""

    w: npt.NDArray[np.float64]
    b: float


class Linear(Protocol):
    """Someone who fits a linear machine."""

    @property
    def name(self) -> str:
        """The library, and which of its solvers."""
        ...

    @property
    def package(self) -> str:
        """What it is distributed as."""
        ...

    @property
    def unit(self) -> str:
        """What the number that says how hard to try is called there."""
        ...

    @property
    def settings(self) -> Sequence[float]:
        """How hard to try: from loose to tight."""
        ...

    def refusal(self, dataset: Dataset, objective: LinearObjective) -> str | None:
        """Say why it cannot take part, if so."""
        ...

    def rows(self, dataset: Dataset) -> Any:
        """Return X as it is given to ``fit``; not timed."""
        ...

    def fit(self, X: Any, y: Any, objective: LinearObjective, setting: float) -> Any:
        """Fit from scratch; this is what is timed."""
        ...

    def weights(self, model: Any) -> Weights:
        """Return what was found; not timed."""
        ...


@dataclass(frozen=True)
class Ours:
    """``maxmargin.LinearSVC`` and ``LinearSVR``, told the relative duality gap."""

    name: str = "maxmargin"
    package: str = "maxmargin"
    unit: str = "tol"
    settings: Sequence[float] = TOLERANCES
    max_time: float | None = None
    trace: bool = False

    def refusal(self, dataset: Dataset, objective: LinearObjective) -> str | None:
        """Take part always."""
        return None

    def rows(self, dataset: Dataset) -> Any:
        """Return X as it is."""
        return dataset.X

    def fit(self, X: Any, y: Any, objective: LinearObjective, setting: float) -> Any:
        """Fit to a relative duality gap."""
        import maxmargin as mm

        said: dict[str, Any] = {
            "C": objective.C,
            "intercept": objective.intercept,
            "tol": setting,
            "max_time": self.max_time,
            "trace": self.trace,
        }
        if objective.epsilon is None:
            model: Any = mm.LinearSVC(**said)
        else:
            model = mm.LinearSVR(epsilon=objective.epsilon, **said)
        return _quietly(model, X, y)

    def weights(self, model: Any) -> Weights:
        """Return w and b."""
        return _plane(model)


@dataclass(frozen=True)
class Liblinear:
    """scikit-learn's ``LinearSVC`` and ``LinearSVR``: dual coordinate descent, own tolerance."""

    name: str = "LIBLINEAR"
    package: str = "scikit-learn"
    unit: str = "tol"
    settings: Sequence[float] = TOLERANCES

    def refusal(self, dataset: Dataset, objective: LinearObjective) -> str | None:
        """Take part where the intercept is penalised."""
        return None if objective.intercept == "penalized" else "its intercept is penalised"

    def rows(self, dataset: Dataset) -> Any:
        """Return X as it is; a float32 copy to float64 is part of the fit."""
        return dataset.X

    def fit(self, X: Any, y: Any, objective: LinearObjective, setting: float) -> Any:
        """Fit until its own tolerance is met, however many epochs that takes."""
        from sklearn.svm import LinearSVC, LinearSVR

        said: dict[str, Any] = {
            "C": objective.C,
            "tol": setting,
            "max_iter": 10**8,
            "dual": True,
            "random_state": 0,
        }
        if objective.epsilon is None:
            return _quietly(LinearSVC(loss="hinge", **said), X, y)
        return _quietly(LinearSVR(epsilon=objective.epsilon, **said), X, y)

    def weights(self, model: Any) -> Weights:
        """Return w and b."""
        return _plane(model)


@dataclass(frozen=True)
class Skglm:
    """skglm's hinge SVM: datafit QuadraticSVC and penalty IndicatorBox in the dual.

    It has no intercept (what its ``fit_intercept`` says is not looked at): a column of ones is.
    """

    name: str = "skglm"
    package: str = "skglm"
    unit: str = "tol"
    settings: Sequence[float] = TOLERANCES

    def refusal(self, dataset: Dataset, objective: LinearObjective) -> str | None:
        """Take part where it is installed, in classification with a penalised intercept."""
        if importlib.util.find_spec("skglm") is None:
            return "skglm is not installed"
        return _needs_ones(objective)

    def rows(self, dataset: Dataset) -> Any:
        """Return X with a column of ones."""
        return with_ones(dataset.X)

    def fit(self, X: Any, y: Any, objective: LinearObjective, setting: float) -> Any:
        """Fit until its own tolerance is met, however many working sets that takes."""
        skglm = importlib.import_module("skglm")
        model = skglm.LinearSVC(objective.C, max_iter=10**6, tol=setting, fit_intercept=False)
        return _quietly(model, X, y)

    def weights(self, model: Any) -> Weights:
        """Return w and b, the weight of the ones."""
        return _split(model)


@dataclass(frozen=True)
class Sgd:
    """scikit-learn's ``SGDClassifier``: so many epochs, with a column of ones."""

    name: str = "SGD"
    package: str = "scikit-learn"
    unit: str = "epochs"
    settings: Sequence[float] = tuple(2.0**k for k in range(20))

    def refusal(self, dataset: Dataset, objective: LinearObjective) -> str | None:
        """Take part in classification with a penalised intercept."""
        return _needs_ones(objective)

    def rows(self, dataset: Dataset) -> Any:
        """Return X with a column of ones."""
        return with_ones(dataset.X)

    def fit(self, X: Any, y: Any, objective: LinearObjective, setting: float) -> Any:
        """Make so many epochs with the step sizes it chooses itself."""
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(
            alpha=1 / (len(y) * objective.C),
            fit_intercept=False,
            max_iter=int(setting),
            tol=None,
            random_state=0,
        )
        return _quietly(model, X, y)

    def weights(self, model: Any) -> Weights:
        """Return w and b, the weight of the ones."""
        return _split(model)


@dataclass(frozen=True)
class Libsvm:
    """scikit-learn's ``SVC(kernel="linear")``, on few rows only."""

    name: str = "LIBSVM"
    package: str = "scikit-learn"
    unit: str = "tol"
    settings: Sequence[float] = TOLERANCES

    def refusal(self, dataset: Dataset, objective: LinearObjective) -> str | None:
        """Take part in classification with a free intercept on few rows."""
        if objective.intercept != "free":
            return "its intercept is free"
        if dataset.X.shape[0] > LIBSVM_ROWS:
            return f"more than {LIBSVM_ROWS} rows"
        return None if objective.epsilon is None else "regression"

    def rows(self, dataset: Dataset) -> Any:
        """Return X as it is."""
        return dataset.X

    def fit(self, X: Any, y: Any, objective: LinearObjective, setting: float) -> Any:
        """Fit until its own tolerance is met, with room for the whole matrix of products."""
        from sklearn.svm import SVC

        return _quietly(SVC(C=objective.C, kernel="linear", tol=setting, cache_size=1000), X, y)

    def weights(self, model: Any) -> Weights:
        """Return w and b."""
        return _plane(model)


CANDIDATES: dict[str, Linear] = {
    candidate.name: candidate for candidate in (Ours(), Liblinear(), Skglm(), Sgd(), Libsvm())
}


def described(candidate: Linear) -> str:
    """Return the candidate's name with its package and version."""
    return f"{candidate.name} ({candidate.package} {package_version(candidate.package)})"


def warm_up(candidate: Linear, dataset: Dataset, objective: LinearObjective) -> None:
    """Fit a few rows of the same kind: whatever is compiled or imported is so afterwards."""
    few = np.arange(min(100, len(dataset.y)))
    if objective.epsilon is None:
        of_each = [np.flatnonzero(dataset.y == label)[:50] for label in np.unique(dataset.y)]
        few = np.sort(np.concatenate(of_each))
    part = Dataset(dataset.name, dataset.X[few], dataset.y[few])
    candidate.fit(candidate.rows(part), part.y, objective, candidate.settings[0])


def with_ones(X: Any) -> Any:
    """Return X with a last column of ones, of the same kind."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    if not sp.issparse(X):
        return np.hstack([X, ones])
    joined = sp.hstack([X, ones], format="csr")
    # Some peers refuse 64-bit indices.
    joined.indices, joined.indptr = joined.indices.astype("i4"), joined.indptr.astype("i4")
    return joined


def _needs_ones(objective: LinearObjective) -> str | None:
    if objective.epsilon is not None:
        return "regression"
    return None if objective.intercept == "penalized" else "its intercept is a column of ones"


def _quietly(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():  # not converging is what is measured
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def _plane(model: Any) -> Weights:
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
    return Weights(coef.ravel().astype(np.float64), float(np.ravel(model.intercept_)[0]))


def _split(model: Any) -> Weights:
    coef = np.ravel(model.coef_).astype(np.float64)
    return Weights(coef[:-1], float(coef[-1]))
