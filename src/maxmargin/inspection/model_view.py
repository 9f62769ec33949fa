"""The one reader of fitted models: what plots, reports and certificates need of them.

``view_model`` takes a model apart: a search, a pipeline and the machine at its end. ``Boundary``
reads the decision function of a classifier and its support vectors, ``score_rows`` what a model
says about rows, and ``read_trace`` the updates of a perceptron.
"""

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats
from maxmargin.estimators import HardMarginSVC, LinearSVC, VotedPerceptron
from maxmargin.geometry import Hyperplane, KernelHyperplane, hyperplane
from maxmargin.geometry.planes import read_kernel
from maxmargin.problems.losses import ON_EDGE, support_kinds
from maxmargin.rows.row_source import RowSource
from maxmargin.validation.sklearn_private import count_rows
from maxmargin.validation.sklearn_private import take_rows as take_rows

_COMPARED = 200  # rows on which a plane must agree with the model
_EXPONENTIAL = 30  # operations for one kernel value, apart from those for its columns


class ModelView(NamedTuple):
    """A fitted model, taken apart.

    ``model`` is what predicts, ``steps`` are the transformers that rows pass through first,
    ``machine`` is the last step, and ``search`` is the outermost search that chose the model, or
    None.
    """

    model: Any
    steps: tuple[Any, ...]
    machine: Any
    search: Any

    def transform(self, X: Any) -> Any:
        """Return rows as the machine sees them; of a source, a view."""
        for step in self.steps:
            X = X.mapped(step) if isinstance(X, RowSource) else step.transform(X)
        return X

    @property
    def detects_outliers(self) -> bool:
        """Whether the machine separates outliers from inliers."""
        return not hasattr(self.machine, "classes_") and hasattr(self.machine, "offset_")

    def count_training_rows(self) -> int | None:
        """Return how many rows the machine was fitted to, or None if it does not know."""
        if hasattr(self.machine, "origin_"):  # read from a file that does not say so
            return None
        if hasattr(self.machine, "alpha_"):
            return int(np.shape(self.machine.alpha_)[-1])
        shape = getattr(self.machine, "shape_fit_", None)
        return None if shape is None else int(shape[0])

    def is_training(self, X: Any) -> bool:
        """Return whether X are the rows that the machine was fitted to, as far as it knows them.

        It knows their number, and its support vectors; nothing if it was read from a text file.
        """
        if hasattr(self.machine, "origin_"):
            return False
        if self.count_training_rows() not in (None, count_rows(X)):
            return False
        vectors = getattr(self.machine, "support_vectors_", None)
        if vectors is None or not vectors.shape[0]:
            return True
        rows = self.transform(take_rows(X, self.machine.support_))
        if sp.issparse(rows) or sp.issparse(vectors):
            return rows.shape == vectors.shape and float(abs(rows - vectors).max()) == 0.0
        return bool(np.array_equal(np.asarray(rows), vectors))

    def count_operations(self) -> float | None:
        """Return the operations of one prediction, feature maps included; None if unknown.

        A plane counts as nothing: for sparse rows its cost does not depend on the columns.
        """
        cost = sum(
            step.n_components_ * (step.n_features_in_ + step.n_components_)
            for step in self.steps
            if hasattr(step, "n_components_") and hasattr(step, "n_features_in_")
        )
        if hasattr(self.machine, "coef_"):
            return float(cost)
        if not hasattr(self.machine, "dual_coef_"):
            return None
        width = max(1, int(getattr(self.machine, "n_features_in_", 1)))
        vectors = max(1, np.shape(self.machine.dual_coef_)[-1])
        return float(cost + vectors * (width + _EXPONENTIAL))


def view_model(model: Any) -> ModelView:
    """Take searches and pipelines apart, however they are nested.

    The last step need not be fitted; a search must be.
    """
    steps: list[Any] = []
    outer, machine, search = model, model, None
    while True:
        if _is_search(machine):
            check_is_fitted(machine)
            if not hasattr(machine, "best_estimator_"):
                raise ValueError(
                    f"{type(machine).__name__}(refit=False) has no fitted model: fit one with its "
                    "best_params_."
                )
            search = machine if search is None else search
            outer = machine.best_estimator_ if machine is outer else outer
            machine = machine.best_estimator_
        elif hasattr(machine, "steps") and not isinstance(machine, type):
            steps += [step for _, step in machine.steps[:-1] if hasattr(step, "transform")]
            machine = machine.steps[-1][1]
        else:
            return ModelView(outer, tuple(steps), machine, search)


def _is_search(model: Any) -> bool:
    if isinstance(model, type):
        return False
    if hasattr(model, "param_grid") or hasattr(model, "param_distributions"):
        return True
    # RidgeClassifierCV and others have cv_results_ as well, but search for no model.
    return hasattr(model, "cv_results_") and hasattr(model, "best_params_")


def to_dense(values: Any) -> Floats:
    """Return numbers as an array; those of models fitted to sparse rows may be sparse."""
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)


# ------------------------------------------------------------------- the boundary of a classifier


@dataclass(frozen=True)
class SupportRows:
    """Support vectors: their rows in X, the kind of each, and their slacks."""

    rows: npt.NDArray[np.intp]
    kinds: npt.NDArray[np.str_]
    slacks: Floats


@dataclass(frozen=True)
class Boundary:
    """The decision function f = w·φ(x) + b of a fitted classifier, positive for the second class.

    A machine with more than two classes has one f for each pair: ``pair`` is the number of the
    chosen one. If no pair is chosen, only the predicted classes are known. ``plane`` is f in the
    machine's own space, or None if f is not one plane.

    A support vector with slack ξ = max(0, 1 − y f) is on the margin (ξ ≤ τ), inside it (ξ ≤ 1) or
    on the wrong side (ξ > 1). Our own models say so themselves; for scikit-learn's, the kinds
    follow from y f, with their tolerance as τ.
    """

    view: ModelView
    classes: npt.NDArray[Any]
    pair: int | None = None
    plane: Hyperplane | KernelHyperplane | None = None

    @property
    def machine(self) -> Any:
        """The last step of the model."""
        return self.view.machine

    @property
    def binary(self) -> bool:
        """Whether there is one f."""
        return len(self.classes) == 2

    @property
    def has_margins(self) -> bool:
        """Whether f = ±1 are the margins of the machine."""
        if not self.binary or self.view.detects_outliers:
            return False
        return _has_margins(self.machine)

    @property
    def straight(self) -> bool:
        """Whether f is w·x + b in the coordinates of the data themselves."""
        return not self.view.steps and isinstance(self.plane, Hyperplane)

    @property
    def precomputed(self) -> bool:
        """Whether X holds kernel values instead of coordinates."""
        return getattr(self.machine, "kernel", None) == "precomputed"

    @property
    def norm(self) -> float | None:
        """‖w‖ in feature space, or None if it is unknown."""
        if self.plane is not None:
            return self.plane.norm
        if self.precomputed and hasattr(self.machine, "support_kind_"):
            return 1.0 / float(self.machine.margin_)
        return None

    def transform(self, X: Any) -> Any:
        """Return rows as the machine sees them, as an array or a sparse matrix."""
        X = self.view.transform(X)
        return X if sp.issparse(X) else np.asarray(X)

    def scores(self, X: Any) -> Floats:
        """Return f of each row."""
        if self.pair is None:
            return np.asarray(self.view.model.decision_function(X), dtype=np.float64)
        assert self.plane is not None
        return self.plane.decision_function(self.transform(X))

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the number of the class predicted for each row."""
        return np.asarray(np.searchsorted(self.classes, self.view.model.predict(X)))

    def products(self, A: Any, B: Any, rows: npt.NDArray[np.intp]) -> Floats:
        """Return K(a, b) of transformed rows; ``rows`` are the numbers of B in the data."""
        if self.precomputed:
            return np.asarray(A[:, rows], dtype=np.float64)
        if isinstance(self.plane, KernelHyperplane):
            return np.asarray(self.plane.kernel.gram(A, B), dtype=np.float64)
        return to_dense(A @ B.T)

    def support(self, X: Any, signs: Floats) -> SupportRows | None:
        """Return the support vectors among the rows X, or None if they are unknown.

        ``signs`` are ±1, and 0 for rows of neither class.
        """
        if not self.binary or not _has_margins(self.machine):
            return None
        if not hasattr(self.machine, "support_"):  # scikit-learn's LinearSVC remembers nothing
            known = type(self.machine).__module__.startswith("sklearn")
        else:
            known = self.view.is_training(X)
        if not known:
            return None
        if hasattr(self.machine, "support_kind_"):
            return self._own_support()
        rows = getattr(self.machine, "support_", np.arange(X.shape[0]))
        rows = rows[signs[rows] != 0]
        slack = 1.0 - signs[rows] * self.scores(take_rows(X, rows))
        tau = max(ON_EDGE, 2.0 * float(self.machine.tol))  # accuracy of scikit-learn's optimum
        # By the optimality conditions, rows with y f > 1 do not contribute to w.
        rows, slack = rows[slack >= -tau], slack[slack >= -tau]
        return SupportRows(rows, support_kinds(slack, tau), np.maximum(0.0, slack))

    def _own_support(self) -> SupportRows:
        machine, k = self.machine, self.pair or 0
        kinds, alpha = np.asarray(machine.support_kind_), np.atleast_2d(machine.alpha_)
        slack = np.atleast_2d(getattr(machine, "slack_", np.zeros_like(alpha)))
        used = alpha[k, machine.support_] > 0
        rows = np.asarray(machine.support_)[used]
        return SupportRows(rows, (kinds[k] if kinds.ndim == 2 else kinds)[used], slack[k, rows])


def read_boundary(estimator: Any, X: Any, pair: tuple[Any, Any] | None) -> Boundary:
    """Return the boundary of a fitted classifier or outlier detector, or of a pair of its classes.

    X are rows on which a plane must agree with the model's own scores.
    """
    view = view_model(estimator)
    machine = view.machine
    if isinstance(machine, type) or not hasattr(machine, "fit"):
        raise TypeError(f"estimator must be a fitted classifier, got {estimator!r:.80}")
    check_is_fitted(machine)
    outliers = view.detects_outliers
    if not hasattr(machine, "decision_function") or not (outliers or hasattr(machine, "classes_")):
        raise TypeError(
            f"estimator must be a classifier with a decision_function, got {type(machine).__name__}"
        )
    classes = np.array(["outlier", "inlier"]) if outliers else np.asarray(machine.classes_)
    i, j = _check_pair(pair, classes)
    if pair is None or len(classes) == 2:
        boundary = Boundary(view, classes)
        return Boundary(view, classes, None, _find_plane(boundary, X))
    k, plane = _pair_plane(machine, len(classes), i, j)
    # For a pair the model's f is positive for the first class; here the second is, as always.
    return Boundary(view, classes[[i, j]], k, plane.flipped())


def _check_pair(pair: Any, classes: npt.NDArray[Any]) -> tuple[int, int]:
    if pair is None:
        return 0, 1
    places = {label: k for k, label in enumerate(classes.tolist())}
    wrong = not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] == pair[1]
    if wrong or any(label not in places for label in pair):
        names = ", ".join(f"{label!r:.40}" for label in classes.tolist()[:10])
        raise ValueError(f"pair must be two of the classes {names}, got {pair!r:.80}")
    i, j = sorted(places[label] for label in pair)
    return i, j


def _find_plane(boundary: Boundary, X: Any) -> Hyperplane | KernelHyperplane | None:
    """Return the plane of a machine with two classes, if its scores are those of one plane."""
    machine = boundary.machine
    readable = hasattr(machine, "coef_") or hasattr(machine, "dual_coef_")
    if not boundary.binary or boundary.precomputed or not readable:
        return None
    try:
        plane = hyperplane(machine)
    except (ValueError, AttributeError):  # a kernel that cannot be read
        return None
    some = take_rows(X, np.arange(min(_COMPARED, X.shape[0])))
    f, g = boundary.scores(some), plane.decision_function(boundary.transform(some))
    # A vote of many planes is not a plane.
    same = np.allclose(f, g, rtol=1e-3, atol=1e-3 * float(np.abs(f).max()))
    return plane if same else None


def _pair_plane(
    machine: Any, n_classes: int, i: int, j: int
) -> tuple[int, Hyperplane | KernelHyperplane]:
    """Return the number of the pair (i, j) of classes, and its plane."""
    readable = getattr(machine, "multi_class", "ovo") == "ovo" and hasattr(machine, "n_support_")
    if not readable or getattr(machine, "kernel", None) == "precomputed":
        raise ValueError(
            f"pair: {type(machine).__name__} has no plane for each pair of classes that can be "
            "read; take SVC or LinearSVC with multi_class='ovo', or pair=None for regions"
        )
    k = i * n_classes - i * (i + 1) // 2 + j - i - 1
    b = float(machine.intercept_[k])
    if hasattr(machine, "coef_"):
        return k, Hyperplane(machine.coef_[k], b)
    # HardMarginSVC has a row of duals for each pair, the others one for each rival class.
    by_pair = isinstance(machine, HardMarginSVC)
    a = machine.dual_coef_[k] if by_pair else read_pair_duals(machine, i, j)
    return k, KernelHyperplane(read_kernel(machine), machine.support_vectors_, a, b)


def read_pair_duals(machine: Any, i: int, j: int) -> Floats:
    """Return the duals of all support vectors between classes i < j, as LIBSVM lays them out."""
    duals = to_dense(machine.dual_coef_)
    own = np.repeat(np.arange(len(machine.n_support_)), machine.n_support_)
    # Those of class i against class j are in row j − 1, those of j against i in row i.
    return np.select([own == i, own == j], [duals[j - 1], duals[i]], 0.0)


def _has_margins(machine: Any) -> bool:
    from sklearn import svm

    # After partial_fit, our LinearSVC has no support_kind_.
    machines = LinearSVC, svm.SVC, svm.NuSVC, svm.LinearSVC
    return hasattr(machine, "support_kind_") or isinstance(machine, machines)


# ----------------------------------------------------------------- what a model says about rows


@dataclass(frozen=True)
class Scores:
    """Predictions, which of them are right, and by how much.

    ``values`` are positive where the model is right: y f/‖w‖ for two classes, the lead of a row's
    own class for more, f/‖w‖ for outlier detectors; for regression they are the residuals y − f.
    ``raw`` is f, with a column for each of several classes. ``unit`` is the unit of the values.
    """

    predicted: npt.NDArray[Any]
    right: npt.NDArray[np.bool_]
    values: Floats
    raw: Floats
    unit: str


def score_rows(machine: Any, rows: Any, y: Any) -> Scores:
    """Return what a machine says about rows, given as it sees them, with targets y."""
    if is_classifier(machine) and hasattr(machine, "dual_coef_") and len(machine.classes_) == 2:
        # Kernel values are expensive: the signs of the scores are the predictions.
        raw, unit = raw_scores(machine, rows, machine.classes_)
        predicted = np.asarray(machine.classes_)[(raw > 0).astype(int)]
        return _score_two(predicted, raw, unit, machine.classes_, y)
    predicted = np.asarray(machine.predict(rows))
    if is_regressor(machine):
        f = predicted.astype(np.float64).reshape(len(predicted), -1)
        off = np.asarray(y, dtype=np.float64) - f[:, 0]
        return Scores(predicted, np.ones(len(off), dtype=bool), off, f, "residual")
    if not is_classifier(machine):
        f, unit = _distances(machine, rows)
        return Scores(predicted, predicted > 0, f, f[:, np.newaxis], unit)
    classes = np.asarray(machine.classes_)
    raw, unit = raw_scores(machine, rows, classes)
    if raw.ndim == 1:
        return _score_two(predicted, raw, unit, classes, y)
    return Scores(predicted, predicted == y, _leads(raw, y, classes), raw, f"lead, in {unit}")


def _score_two(predicted: Any, raw: Floats, unit: str, classes: Any, y: Any) -> Scores:
    values = np.where(y == classes[1], raw, np.where(y == classes[0], -raw, np.nan))
    return Scores(predicted, predicted == y, values, raw[:, np.newaxis], unit)


def raw_scores(machine: Any, rows: Any, classes: npt.NDArray[Any]) -> tuple[Floats, str]:
    """Return one number for each row (two classes), or for each row and class, and their unit."""
    if len(classes) == 2 and hasattr(machine, "decision_function"):
        return _distances(machine, rows)
    if hasattr(machine, "decision_function"):
        if getattr(machine, "decision_function_shape", "ovr") == "ovo":
            machine = copy.copy(machine).set_params(decision_function_shape="ovr")
        f = np.asarray(machine.decision_function(rows), dtype=np.float64)
        if f.ndim == 2 and f.shape[1] == len(classes):
            return f, "units of the score"
    if hasattr(machine, "predict_proba"):
        p = np.asarray(machine.predict_proba(rows), dtype=np.float64)
        if len(classes) == 2:
            return p[:, 1] - p[:, 0], "difference in probability"
        return p, "probability"
    predicted = np.asarray(machine.predict(rows))
    return (predicted[:, np.newaxis] == classes).astype(np.float64), "votes"


def _distances(machine: Any, rows: Any) -> tuple[Floats, str]:
    if hasattr(machine, "distance"):
        return np.asarray(machine.distance(rows), dtype=np.float64), "distance"
    f = np.asarray(machine.decision_function(rows), dtype=np.float64)
    if isinstance(machine, VotedPerceptron):  # many planes have no common ‖w‖
        return f, "score"
    try:
        norm = hyperplane(machine).norm
    except (ValueError, TypeError):
        return f, "score"
    return (f / norm, "distance") if norm > 0 else (f, "score")


def _leads(raw: Floats, y: Any, classes: npt.NDArray[Any]) -> Floats:
    """Return by how much a row's own class leads; NaN for labels that the model does not know."""
    own = np.asarray(y)[:, np.newaxis] == classes
    best = np.where(own, -np.inf, raw).max(axis=1)
    mine = np.where(own, raw, -np.inf).max(axis=1)
    return np.where(own.any(axis=1), mine - best, np.nan)


# --------------------------------------------------------------------- the updates of a perceptron


def read_trace(estimator: Any) -> Any:
    """Return the trace of a fitted linear perceptron with two features and two classes."""
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if not hasattr(estimator, "classes_"):
        raise TypeError(f"{name} is no classifier, so no line: use Perceptron with trace=True")
    if len(estimator.classes_) != 2:
        raise ValueError(
            f"{name} has {len(estimator.classes_)} classes, but a line has two sides: fit 2 of them"
        )
    if not hasattr(estimator, "coef_"):
        raise TypeError(f"{name} has no weights, so no line: use Perceptron with trace=True")
    if not hasattr(estimator, "trace_"):
        raise ValueError(f"{name} kept no trace: fit it with trace=True")
    if estimator.coef_.shape[1] != 2:
        raise ValueError(
            f"{name} has {estimator.coef_.shape[1]} features, but a line is drawn in a plane: "
            "fit 2 of them"
        )
    return estimator.trace_
