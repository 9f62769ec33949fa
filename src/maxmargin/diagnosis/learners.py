"""Learners with their settings as values, and functions that fit many of them to parts of a sample.

A ``Candidate`` is what is recommended in the end. A ``FoldLearner`` fits candidates of one family
to some rows of a sample and returns scores of the classes for others; the best score is what is
predicted.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from maxmargin._typing import Floats, Ints
from maxmargin.diagnosis.inputs import Sample, scaler
from maxmargin.estimators.reductions import binary_subproblems, combined_scores
from maxmargin.kernels import RBF, Kernel, Linear
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.gram import Gram
from maxmargin.runtime.clock import OutOfTimeError
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.solvers.decomposition import OnMatrix, Workspace


@dataclass(frozen=True)
class Candidate:
    """A kind of learner, its settings, and whether columns are scaled before it."""

    kind: str
    settings: tuple[tuple[str, Any], ...] = ()
    scaled: bool = False
    sparse: bool = field(default=False, compare=False)  # the rows, and stay so if wide
    wide: bool = field(default=False, compare=False)

    def get(self, name: str) -> Any:
        """Return a setting, or None."""
        return dict(self.settings).get(name)

    @property
    def shared(self) -> tuple[Any, ...]:
        """What settings have in common that can share work, such as a kernel matrix."""
        distinct = ("gamma", "multi_class", "epsilon")
        return self.kind, self.scaled, *(self.get(name) for name in distinct)

    def learner(self) -> Any:
        """Return the learner itself, unfitted."""
        return resolve_name(_KINDS[self.kind])(**dict(self.settings))

    def estimator(self) -> Any:
        """Return the learner, or a pipeline that prepares the rows first as it needs them."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        steps: list[Any] = []
        if self.sparse and not self.wide and self.dense:
            steps.append(FunctionTransformer(written_out, accept_sparse=True))
        if self.scaled:
            steps.append(scaler(self.sparse and not self.dense, self.wide))
        return make_pipeline(*steps, self.learner()) if steps else self.learner()

    @property
    def dense(self) -> bool:
        """Whether the learner needs dense rows (with the mean taken off, if scaled)."""
        return self.kind in ("network", "gradient boosting", "boosted regression")

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {"kind": self.kind, "settings": dict(self.settings), "scaled": self.scaled}


def written_out(X: Any) -> Any:
    """Return sparse rows as an array."""
    return X.toarray() if hasattr(X, "toarray") else X


_KINDS = {  # named, since most of them are seldom imported
    "perceptron": "maxmargin.estimators:Perceptron",
    "averaged perceptron": "maxmargin.estimators:AveragedPerceptron",
    "hard margin": "maxmargin.estimators:HardMarginSVC",
    "linear": "maxmargin.estimators:LinearSVC",
    "kernel": "maxmargin.estimators:SVC",
    "k-NN": "sklearn.neighbors:KNeighborsClassifier",
    "network": "sklearn.neural_network:MLPClassifier",
    "gradient boosting": "sklearn.ensemble:HistGradientBoostingClassifier",
    "majority": "sklearn.dummy:DummyClassifier",
    "constant": "sklearn.dummy:DummyRegressor",
    "linear regression": "maxmargin.estimators:LinearSVR",
    "kernel regression": "maxmargin.estimators:SVR",
    "boosted regression": "sklearn.ensemble:HistGradientBoostingRegressor",
}


# ------------------------------------------------------------------- fits to some of the rows

# Takes a sample, settings, training rows and test rows; returns for each setting the scores of all
# classes (columns) for the test rows.
FoldLearner = Callable[[Sample, Sequence[Candidate], Ints, Ints], list[Floats]]


def learn_fold(
    learn: FoldLearner,
    sample: Sample,
    settings: Sequence[Candidate],
    left_out: tuple[int, ...],
    share: float = 1.0,
) -> list[Floats]:
    """Fit settings to all folds but some, or to a share of their rows; return scores of these.

    Raises ``OutOfTimeError`` if the time has run out.
    """
    if sample.over():
        raise OutOfTimeError
    out = np.isin(sample.folds, left_out)
    some = True if share == 1 else sample.turn < share
    return learn(sample, settings, np.flatnonzero(~out & some), np.flatnonzero(out))


def fit_settings(
    sample: Sample, settings: Sequence[Candidate], train: Ints, test: Ints
) -> list[Floats]:
    """Fit settings that share work: on one matrix if that is faster, else each by itself."""
    first, found = settings[0], []
    # Planes in wide rows that a free intercept goes with are found sooner by their kernel matrix.
    by_matrix = first.kind.startswith("kernel") or first.get("multi_class") == "ovo"
    if by_matrix or (sample.wide and first.kind == "linear regression"):
        return _fit_on_matrix(sample, settings, train, test)
    for setting in settings:
        X = sample.form(setting.scaled)
        learner = setting.learner()
        if sample.wide and setting.kind == "linear":
            # LIBLINEAR, whose objective is that of the settings, and which is fast on wide rows.
            from sklearn.svm import LinearSVC as Liblinear

            weight = setting.get("class_weight")
            learner = Liblinear(C=setting.get("C"), tol=1e-3, random_state=0, class_weight=weight)
        found.append(fit_and_score(learner, X[train], sample.y[train], X[test], sample.n_classes))
    return found


def fit_and_score(learner: Any, X: Any, y: Ints, test: Any, n_classes: int) -> Floats:
    """Fit a learner and return the scores of all classes; −∞ for those without rows.

    A regressor has one column: what it predicts.
    """
    if is_regressor(learner):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(learner.fit(X, y).predict(test)).reshape(-1, 1)
    classes = np.unique(y)
    if len(classes) == 1:
        return _spread(np.zeros((test.shape[0], 1)), classes, n_classes)
    if hasattr(learner, "n_neighbors"):
        learner.set_params(n_neighbors=min(learner.n_neighbors, len(y)))
    balance = "max_leaf_nodes" in learner.get_params() and learner.class_weight is not None
    if balance:
        # After the fit, not by weights: for their percentiles, boosting takes ten times as long.
        learner.set_params(class_weight=None)
    with warnings.catch_warnings():
        # Bounded iterations are intended here, and the score says what they are worth.
        warnings.simplefilter("ignore")
        learner.fit(X, y)
        if hasattr(learner, "decision_function"):
            found = np.asarray(learner.decision_function(test), dtype=np.float64)
            found = np.column_stack([-found, found]) if found.ndim == 1 else found
        else:
            found = learner.predict_proba(test)
    if balance:
        # Raw scores are log-probabilities; of two classes, half of the difference and its negative.
        shares = np.unique(y, return_counts=True)[1] / len(y)
        found = found - (2 if len(classes) == 2 else 1) * np.log(shares)
    return _spread(found, classes, n_classes)


def _spread(found: Floats, classes: Ints, n_classes: int) -> Floats:
    """Return scores of some classes as scores of all; −∞ for the others."""
    scores = np.full((len(found), n_classes), -np.inf)
    scores[:, classes] = found
    return scores


# ------------------------------------------------------------------- kernel machines

_KERNEL_GAP = 1e-3  # relative: a smaller one would not predict better


def _fit_on_matrix(
    sample: Sample, settings: Sequence[Candidate], train: Ints, test: Ints
) -> list[Floats]:
    """Fit machines that share one kernel matrix for all folds and costs."""
    first = settings[0]
    scaled, gamma = key = first.scaled, first.get("gamma")
    kernel = Linear() if gamma is None else RBF(gamma=gamma)
    matrix: FoldMatrix = sample.share(key, lambda: FoldMatrix(kernel, sample, scaled))
    costs = np.array([setting.get("C") for setting in settings])
    tube = first.get("epsilon")
    if tube is None:
        return matrix.scores(costs, train, test, first.get("class_weight") == "balanced")
    targets = np.asarray(sample.y[train], dtype=np.float64)
    loss = losses.epsilon_insensitive(targets, np.ones(len(train)), tube)
    with one_blas_thread():
        return [one[:, np.newaxis] for one in matrix.follow(loss, costs, train, test)]


class FoldMatrix:
    """The kernel matrix of a sample, any folds of which are learnt from."""

    def __init__(self, kernel: Kernel, sample: Sample, scaled: bool) -> None:
        self._y, self._n_classes = sample.y, sample.n_classes
        # The type that a search takes, too, so that only one is compiled.
        self._K = Gram(kernel, sample.form(scaled)).materialize()
        self._workspace = Workspace.of(len(self._y), self._K.dtype)

    def scores(self, costs: Floats, train: Ints, test: Ints, balanced: bool) -> list[Floats]:
        """Return a score of each class for the test rows, by the machine of each cost.

        With ``balanced``, rows count by the inverse share of their class among the training rows.
        The best score is the class that SVC predicts.
        """
        classes, labels = np.unique(self._y[train], return_inverse=True)
        if len(classes) == 1:
            alone = _spread(np.zeros((len(test), 1)), classes, self._n_classes)
            return [alone for _ in costs]
        weight = np.ones(len(train))
        if balanced:
            weight = len(train) / (len(classes) * np.bincount(labels)[labels])
        subproblems = binary_subproblems(labels, len(classes), "ovo")
        found = np.empty((len(costs), len(test), len(subproblems)))
        with one_blas_thread():
            for k, subproblem in enumerate(subproblems):
                taking_part = slice(None) if subproblem.rows is None else subproblem.rows
                loss = losses.hinge(subproblem.signs, weight[taking_part])
                found[:, :, k] = self.follow(loss, costs, train[taking_part], test)
        if len(classes) == 2:
            combined = [np.column_stack([-one[:, 0], one[:, 0]]) for one in found]
        else:
            pairs = [(subproblem.positive, subproblem.negative) for subproblem in subproblems]
            combined = [combined_scores(one, pairs, len(classes)) for one in found]
        return [_spread(one, classes, self._n_classes) for one in combined]

    def follow(self, loss: Loss, costs: Floats, rows: Ints, test: Ints) -> Floats:
        """Return the scores of the test rows by the machine of each cost, fitted to some rows."""
        rising = np.argsort(costs, kind="stable")
        problem = OnMatrix.stated(loss, True, rows)
        path = problem.solve(self._K, costs[rising], _KERNEL_GAP, self._workspace, test)
        found = np.empty((len(costs), len(test)))
        found[rising] = path.scores
        return found
