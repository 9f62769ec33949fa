"""Those who are compared, ours and others': each is told how hard to try by one number.

What the number means is everybody's own affair (a tolerance, or epochs). Nobody's claim is
believed: what comes out is certified, or its objective computed.
"""

import importlib
import importlib.util
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from benchmarks.datasets import Dataset
from benchmarks.machine import package_version
from benchmarks.objective import Objective

TOLERANCES = tuple(10.0**-k for k in range(1, 10))


class Weights(NamedTuple):
    """A plane: f(x) = w·x + b."""

    w: npt.NDArray[np.float64]
    b: float


@dataclass(frozen=True)
class Tool:
    """Someone who fits machines; the methods say how, and subclasses override what differs."""

    name: str  # of the library at work
    package: str  # what it is distributed as
    module: str  # what must be importable for it to take part
    knob: str = "tol"  # what the number that says how hard to try is called there
    settings: tuple[float, ...] = TOLERANCES  # its values, from loose to tight
    default: float | None = 1e-3  # the value it comes with, if that can be compared

    def refusal(self, dataset: Dataset, objective: Objective) -> str | None:
        """Say why it cannot take part, if so."""
        missing = importlib.util.find_spec(self.module.partition(".")[0]) is None
        return f"{self.package} is not installed" if missing else self.unfit(dataset, objective)

    def unfit(self, dataset: Dataset, objective: Objective) -> str | None:
        """Say why it cannot minimise this, if so."""
        raise NotImplementedError

    def limit(self, threads: int) -> None:
        """Allow this process so many threads, beyond what its environment says."""

    def rows(self, dataset: Dataset, objective: Objective) -> Any:
        """Return the rows it is given."""
        return dataset.X

    def model(
        self, dataset: Dataset, objective: Objective, setting: float, threads: int, **more: Any
    ) -> Any:
        """Return an estimator that is not fitted yet."""
        raise NotImplementedError

    def weights(self, model: Any) -> Weights:
        """Return the plane of a fitted linear machine."""
        coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
        return Weights(coef.ravel().astype(np.float64), float(np.ravel(model.intercept_)[0]))

    @property
    def described(self) -> str:
        """The name, with package and version."""
        return f"{self.name} ({self.package} {package_version(self.package)})"


class WithOnes(Tool):
    """A linear classifier without an intercept: it is given a column of ones."""

    def unfit(self, dataset: Dataset, objective: Objective) -> str | None:
        """Take part in classification with a penalised intercept."""
        if not objective.linear or objective.regression:
            return "it is a linear classifier"
        return None if objective.intercept == "penalized" else "its intercept is a column of ones"

    def rows(self, dataset: Dataset, objective: Objective) -> Any:
        """Return X with a last column of ones, of the same kind."""
        ones = np.ones((dataset.X.shape[0], 1), dtype=dataset.X.dtype)
        if not dataset.sparse:
            return np.hstack([dataset.X, ones])
        joined = sp.hstack([dataset.X, ones], format="csr")
        # Some peers refuse 64-bit indices.
        joined.indices, joined.indptr = joined.indices.astype("i4"), joined.indptr.astype("i4")
        return joined

    def weights(self, model: Any) -> Weights:
        """Return w and b, the weight of the ones."""
        coef = np.ravel(model.coef_).astype(np.float64)
        return Weights(coef[:-1], float(coef[-1]))


def fitted(model: Any, X: Any, y: Any) -> Any:
    """Fit without warnings: whether a fit converges is what is measured."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


# ------------------------------------------------------------ ours


class Ours(Tool):
    """``SVC``, ``SVR``, ``LinearSVC`` and ``LinearSVR``."""

    def unfit(self, dataset: Dataset, objective: Objective) -> str | None:
        """Take part always."""
        return None

    def model(
        self, dataset: Dataset, objective: Objective, setting: float, threads: int, **more: Any
    ) -> Any:
        """Return an estimator; its time limit and the like are in ``more``."""
        import maxmargin as mm

        said: dict[str, Any] = {"tol": setting, "n_jobs": threads, **more}
        if not objective.linear:
            kind = mm.SVR if objective.regression else mm.SVC
            return kind(**objective.parameters, **said)
        said |= {"C": objective.C, "intercept": objective.intercept}
        if objective.epsilon is not None:
            return mm.LinearSVR(epsilon=objective.epsilon, **said)
        return mm.LinearSVC(**said)


# Twice as many settings as the others have: what is compared is the loosest that is good enough.
OURS = Ours(
    "maxmargin",
    "maxmargin",
    "maxmargin",
    settings=tuple(round(10.0 ** (-k / 2), 12) for k in range(2, 17)),
    default=1e-4,
)


# ------------------------------------------------------------ LIBSVM and oneDAL

LINEAR_ROWS = 10_000  # without a kernel, time that grows with the square of the rows is no rival


class Libsvm(Tool):
    """``SVC`` and ``SVR`` of a module, with all settings but the tolerance as they come."""

    def unfit(self, dataset: Dataset, objective: Objective) -> str | None:
        """Take part where the intercept is free, without a kernel on few rows only."""
        if objective.intercept != "free":
            return "its intercept is free"
        if objective.linear and dataset.X.shape[0] > LINEAR_ROWS:
            return f"there is no kernel and there are more than {LINEAR_ROWS} rows"
        return None

    def model(
        self, dataset: Dataset, objective: Objective, setting: float, threads: int, **more: Any
    ) -> Any:
        """Return an estimator."""
        kind = "SVR" if objective.regression else "SVC"
        estimator = getattr(importlib.import_module(self.module), kind)
        return estimator(**objective.parameters, tol=setting, **more)


class OneDal(Libsvm):
    """Intel's, with threads of its own; dense rows and kernels only, where it is good."""

    def unfit(self, dataset: Dataset, objective: Objective) -> str | None:
        """Take part where there is a kernel."""
        return "there is no kernel" if objective.linear else super().unfit(dataset, objective)

    def limit(self, threads: int) -> None:
        """Tell oneDAL, which looks at no environment variable."""
        importlib.import_module("daal4py").daalinit(threads)


LIBSVM = Libsvm("LIBSVM", "scikit-learn", "sklearn.svm")
ONEDAL = OneDal("oneDAL", "scikit-learn-intelex", "sklearnex.svm")


# ------------------------------------------------------------ linear machines


class Liblinear(Tool):
    """scikit-learn's ``LinearSVC`` and ``LinearSVR``: dual coordinate descent."""

    def unfit(self, dataset: Dataset, objective: Objective) -> str | None:
        """Take part where there is no kernel and the intercept is penalised."""
        if not objective.linear:
            return "it has no kernels"
        return None if objective.intercept == "penalized" else "its intercept is penalised"

    def model(
        self, dataset: Dataset, objective: Objective, setting: float, threads: int, **more: Any
    ) -> Any:
        """Return an estimator that makes as many epochs as its tolerance takes."""
        from sklearn.svm import LinearSVC, LinearSVR

        said: dict[str, Any] = {
            "C": objective.C,
            "tol": setting,
            "max_iter": 10**8,
            "dual": True,
            "random_state": 0,
            **more,
        }
        if objective.regression:
            return LinearSVR(epsilon=objective.epsilon, **said)
        return LinearSVC(loss="hinge", **said)


class Skglm(WithOnes):
    """skglm's hinge SVM in the dual; what its ``fit_intercept`` says has no effect."""

    def model(
        self, dataset: Dataset, objective: Objective, setting: float, threads: int, **more: Any
    ) -> Any:
        """Return an estimator that makes as many working sets as its tolerance takes."""
        skglm = importlib.import_module("skglm")
        return skglm.LinearSVC(
            objective.C, max_iter=10**6, tol=setting, fit_intercept=False, **more
        )


class Sgd(WithOnes):
    """scikit-learn's ``SGDClassifier``: so many epochs, with the step sizes it chooses itself."""

    def model(
        self, dataset: Dataset, objective: Objective, setting: float, threads: int, **more: Any
    ) -> Any:
        """Return an estimator; its penalty is 1/(nC)."""
        from sklearn.linear_model import SGDClassifier

        return SGDClassifier(
            alpha=1 / (len(dataset.y) * objective.C),
            fit_intercept=False,
            max_iter=int(setting),
            tol=None,
            random_state=0,
            **more,
        )


LIBLINEAR = Liblinear("LIBLINEAR", "scikit-learn", "sklearn.svm", default=1e-4)
SKGLM = Skglm("skglm", "skglm", "skglm", default=None)
SGD = Sgd(
    "SGD",
    "scikit-learn",
    "sklearn.linear_model",
    knob="epochs",
    settings=tuple(2.0**k for k in range(20)),
    default=None,
)


TOOLS = {tool.name: tool for tool in (OURS, ONEDAL, LIBSVM, LIBLINEAR, SKGLM, SGD)}
PEERS = [name for name in TOOLS if name != OURS.name]
