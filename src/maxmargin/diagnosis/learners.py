"""Learners with their settings as values, and machines that cross-validate many of them at once.

A ``Candidate`` is what is recommended in the end. A machine fits candidates of one family to some
of the rows and returns scores of the classes for others; the best score is what is predicted.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.diagnosis.inputs import Sample, scaler
from maxmargin.estimators import (
    SVC,
    AveragedPerceptron,
    HardMarginSVC,
    LinearSVC,
    Perceptron,
)
from maxmargin.estimators.reductions import binary_tasks, combined_scores
from maxmargin.kernels import RBF, Kernel, Linear
from maxmargin.kernels.blas import one_blas_thread
from maxmargin.kernels.rows import FloatArray
from maxmargin.problems import losses
from maxmargin.solvers.on_matrix import SMALL, OnMatrix, Room

# ------------------------------------------------------------------- fold votes
#
# Scores of classes by kernel machines of many costs, fitted to parts of one set of rows.


class FoldVotes:
    """A kernel matrix of rows with classes 0 … K − 1, any folds of which are learnt from.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters; positive semidefinite.
    X : matrix
        The rows.
    y, folds : ndarray of int
        Their classes and folds; rows of a fold are kept together.
    """

    def __init__(self, kernel: Kernel, X: FloatArray, y: Ints, folds: Ints) -> None:
        self._y = y
        self._n_classes = int(y.max()) + 1
        order = np.lexsort((folds, y))
        self._position = np.empty(len(y), np.int64)
        self._position[order] = np.arange(len(y))
        rows = X[order]
        # The type that a search takes, too, so that only one is compiled.
        prepared = kernel.prepare_float32(rows) if len(y) > SMALL else None
        prepared = prepared or kernel.prepare(rows)
        self._K = kernel.block(prepared, prepared)
        self._room = Room.of(len(y), self._K.dtype)

    def scores(
        self, costs: Floats, train: Ints, test: Ints, tol: float, balanced: bool = False
    ) -> list[Floats]:
        """Return a score of each class for the test rows, by the machine of each cost.

        With ``balanced``, rows count by the inverse share of their class among the training rows.
        The best score is the class that SVC predicts.
        """
        classes, labels = np.unique(self._y[train], return_inverse=True)
        if len(classes) == 1:
            return [_single_class_scores(classes[0], len(test), self._n_classes) for _ in costs]
        weight = np.ones(len(train))
        if balanced:
            weight = len(train) / (len(classes) * np.bincount(labels)[labels])
        rising = np.argsort(costs, kind="stable")
        tested = np.sort(self._position[test])
        tasks = binary_tasks(labels, len(classes), "ovo")
        found = np.empty((len(costs), len(test), len(tasks)))
        with one_blas_thread():
            for k, task in enumerate(tasks):
                taking_part = slice(None) if task.rows is None else task.rows
                loss = losses.hinge(task.signs, weight[taking_part])
                problem = OnMatrix.stated(loss, True, self._position[train[taking_part]])
                path = problem.solve(self._K, costs[rising], tol, self._room, tested)
                found[rising, :, k] = path.scores
        found = found[:, np.searchsorted(tested, self._position[test])]
        pairs = [(task.positive, task.negative) for task in tasks]
        return [self._of_classes(one, pairs, classes) for one in found]

    def _of_classes(self, one: Floats, pairs: list[tuple[int, int]], classes: Ints) -> Floats:
        if len(classes) == 2:
            combined = np.column_stack([-one[:, 0], one[:, 0]])
        else:
            combined = combined_scores(one, pairs, len(classes))
        spread = np.full((len(one), self._n_classes), -np.inf)
        spread[:, classes] = combined
        return spread


def _single_class_scores(label: int, n: int, n_classes: int) -> Floats:
    scores = np.full((n, n_classes), -np.inf)
    scores[:, label] = 0.0
    return scores


# ------------------------------------------------------------------- candidates

_KERNEL_GAP = 1e-3  # relative: a smaller one would not predict better


@dataclass(frozen=True)
class Candidate:
    """A kind of learner, its settings, and whether columns are scaled before it."""

    kind: str
    settings: tuple[tuple[str, Any], ...] = ()
    scaled: bool = False
    sparse: bool = field(default=False, compare=False)

    def get(self, name: str) -> Any:
        """Return a setting, or None."""
        return dict(self.settings).get(name)

    def learner(self) -> Any:
        """Return the learner itself, unfitted."""
        kind = _KINDS[self.kind]
        made = resolve_name(kind) if isinstance(kind, str) else kind
        return made(**dict(self.settings))

    def estimator(self, wide: bool) -> Any:
        """Return the learner, or a pipeline that prepares the rows first as it needs them."""
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        steps: list[Any] = []
        if self.sparse and not wide and self.dense:
            steps.append(FunctionTransformer(written_out, accept_sparse=True))
        if self.scaled:
            steps.append(scaler(self.sparse and not self.dense, wide))
        return make_pipeline(*steps, self.learner()) if steps else self.learner()

    @property
    def dense(self) -> bool:
        """Whether the learner needs dense rows (with the mean taken off, if scaled)."""
        return self.kind in ("network", "Gaussian naive Bayes", "gradient boosting")

    @property
    def linear(self) -> bool:
        """Whether the classes are divided by planes."""
        return self.kind in ("hard margin", "linear", "multinomial naive Bayes")

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {"kind": self.kind, "settings": dict(self.settings), "scaled": self.scaled}


def written_out(X: Any) -> Any:
    """Return sparse rows as an array."""
    return X.toarray() if hasattr(X, "toarray") else X


_KINDS: dict[str, Any] = {  # classes, or the names of those that are imported when needed
    "perceptron": Perceptron,
    "averaged perceptron": AveragedPerceptron,
    "hard margin": HardMarginSVC,
    "linear": LinearSVC,
    "kernel": SVC,
    "k-NN": "sklearn.neighbors:KNeighborsClassifier",
    "Gaussian naive Bayes": "sklearn.naive_bayes:GaussianNB",
    "multinomial naive Bayes": "sklearn.naive_bayes:MultinomialNB",
    "network": "sklearn.neural_network:MLPClassifier",
    "gradient boosting": "sklearn.ensemble:HistGradientBoostingClassifier",
    "majority": "sklearn.dummy:DummyClassifier",
}


class FoldLearner(Protocol):
    """What can be cross-validated: several settings fitted to the same rows."""

    def scores(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Floats]:
        """Return for each setting the scores of all classes (columns) for the test rows."""


class Learners:
    """Fits every setting by itself."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def scores(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Floats]:
        """Return for each setting the scores of all classes (columns) for the test rows."""
        found = []
        for setting in settings:
            X = self._sample.form(setting.scaled, setting.dense)
            y, learner = self._sample.y[train], self._learner(setting)
            found.append(fit_and_score(learner, X[train], y, X[test], self._sample.n_classes))
        return found

    def _learner(self, setting: Candidate) -> Any:
        return setting.learner()


def score_fresh_rows(setting: Candidate, sample: Sample) -> Floats:
    """Return the scores of all classes for the fresh rows, fitted to all others."""
    X, fresh = (form(setting.scaled, setting.dense) for form in (sample.form, sample.fresh_form))
    return fit_and_score(setting.learner(), X, sample.y, fresh, sample.n_classes)


def fit_and_score(learner: Any, X: Any, y: Ints, test: Any, n_classes: int) -> Floats:
    """Fit a learner and return the scores of all classes; −∞ for those without rows."""
    classes = np.unique(y)
    out = np.full((test.shape[0], n_classes), -np.inf)
    if len(classes) == 1:
        out[:, classes] = 0.0
        return out
    if len(classes) < n_classes and getattr(learner, "priors", None):
        learner.set_params(priors=None)  # they were for all classes
    shares = _shares_to_balance(learner, y)
    with warnings.catch_warnings():
        # Bounded iterations are intended here, and the score says what they are worth.
        warnings.simplefilter("ignore")
        learner.fit(X, y)
        if hasattr(learner, "decision_function"):
            f = np.asarray(learner.decision_function(test), dtype=np.float64)
            out[:, classes] = np.column_stack([-f, f]) if f.ndim == 1 else f
        else:
            out[:, classes] = learner.predict_proba(test)
    if shares is not None:
        # Raw scores are log-probabilities; of two classes, half of the difference and its negative.
        out[:, classes] -= (2 if len(classes) == 2 else 1) * np.log(shares)
    return out


def _shares_to_balance(learner: Any, y: Ints) -> Floats | None:
    """Return the shares of classes that are to count alike after the fit, not by weights; or None.

    Gradient boosting with weights takes scikit-learn ten times as long, for its percentiles.
    """
    if "max_leaf_nodes" not in learner.get_params() or learner.class_weight is None:
        return None
    learner.set_params(class_weight=None)
    return np.unique(y, return_counts=True)[1] / len(y)


class WidePlaneLearners(Learners):
    """Fits planes to wide rows by LIBLINEAR, whose objective is that of the settings."""

    def _learner(self, setting: Candidate) -> Any:
        from sklearn.svm import LinearSVC as Liblinear

        weight = setting.get("class_weight")
        return Liblinear(C=setting.get("C"), tol=1e-3, random_state=0, class_weight=weight)


class PlaneLearners:
    """Fits planes: one against one on a shared matrix of products, all others by themselves."""

    def __init__(self, sample: Sample) -> None:
        self._alone, self._pairwise = Learners(sample), KernelMachines(sample)

    def scores(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Floats]:
        """Return for each setting the scores of all classes (columns) for the test rows."""
        pairwise = settings[0].get("multi_class") == "ovo"
        machine: FoldLearner = self._pairwise if pairwise else self._alone
        return machine.scores(settings, train, test)


class KernelMachines:
    """Fits kernel machines that share one matrix of kernel values for all folds and costs."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._key: Any = None
        self._votes: Any = None

    def scores(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Floats]:
        """Return for each setting the scores of all classes (columns) for the test rows."""
        costs = np.array([setting.get("C") for setting in settings])
        balanced = settings[0].get("class_weight") == "balanced"
        votes = self._on(settings[0])
        return list(votes.scores(costs, train, test, _KERNEL_GAP, balanced))

    def _on(self, setting: Candidate) -> Any:
        key = setting.scaled, setting.get("gamma")
        if key != self._key:
            sample = self._sample
            kernel = Linear() if setting.kind == "linear" else RBF(gamma=key[1])
            self._votes = FoldVotes(kernel, sample.form(key[0]), sample.y, sample.folds)
            self._key = key
        return self._votes


class Neighbours:
    """Finds the nearest rows from one matrix of distances, for every number of neighbours."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._key: bool | None = None
        self._distances: Any = None

    def scores(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Floats]:
        """Return for each setting the votes for all classes (columns) of the test rows."""
        far, y = self._matrix(settings[0].scaled)[np.ix_(test, train)], self._sample.y[train]
        wanted = [min(setting.get("n_neighbors"), len(train)) for setting in settings]
        most = max(wanted)
        near = np.argpartition(far, most - 1, axis=1)[:, :most]
        order = np.argsort(np.take_along_axis(far, near, axis=1), axis=1, kind="stable")
        nearest = y[np.take_along_axis(near, order, axis=1)]
        votes = nearest[:, :, np.newaxis] == np.arange(self._sample.n_classes)
        counts = votes.cumsum(axis=1)
        return [counts[:, k - 1] / k for k in wanted]

    def _matrix(self, scaled: bool) -> Any:
        from sklearn.metrics.pairwise import euclidean_distances

        if scaled is not self._key:
            self._distances = euclidean_distances(self._sample.form(scaled), squared=True)
            self._key = scaled
        return self._distances
