"""What all perceptrons share: parameters, the run, and what is said about it."""

import warnings
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.inputs import (
    check_classes,
    check_labels,
    check_rows,
    check_weights,
    class_indices,
    generator,
    held_out_split,
    row_weights,
    stream_classes,
)
from maxmargin.estimators.parameters import (
    NamedParameters,
    check_choice,
    check_flag,
    check_number,
    check_progress,
    check_scale,
)
from maxmargin.estimators.reductions import ScoresOnly, best_classes
from maxmargin.estimators.traces import accuracy, labelled_margins
from maxmargin.geometry.bounds import update_bound
from maxmargin.loops.records import Rule
from maxmargin.problems.problem import Run, Status
from maxmargin.solve import StopRule, drive
from maxmargin.solvers.epochs import (
    AllCorrect,
    BestKept,
    Epoch,
    Learner,
    NoBetter,
    SmallChange,
    epochs,
    orders,
)

STOPS = ("all_correct", "epochs", "one_pass", "small_change", "held_out")


class Evidence(NamedTuple):
    """What the mistake bound needs to know of a vector on the training rows."""

    scores: Floats
    norm: float
    intercept_norm: float


class MistakeDriven(ScoresOnly, ClassifierMixin, NamedParameters, BaseEstimator):
    """Base of the perceptrons.

    A subclass says how to check rows (``_check_input``), which learner to begin or go on with
    (``_begin``, ``_resume``), what to take over from it (``_adopt``), which separators it found
    (``_evidence``, the model itself first), and how to score rows (``_scores`` when fitted,
    ``_scores_of`` while learning).
    """

    _instead: ClassVar = {
        "eta0": "It is called eta here.",
        "max_iter": "It is called max_epochs here.",
        "tol": "It is called change_tol here, and counts with stop='small_change'.",
        "early_stopping": "Use stop='held_out'.",
        "penalty": "Perceptrons have no penalty here: LinearSVC has.",
        "alpha": "Perceptrons have no penalty here: LinearSVC has.",
        "l1_ratio": "Perceptrons have no penalty here: LinearSVC has.",
        "n_jobs": "A perceptron visits one row after the other, in one thread.",
    }
    _advice = "use keep='best' or AveragedPerceptron, or raise max_epochs"

    _averaged = False
    _logged = False
    _settles = False  # whether the answer makes sense even if mistakes never cease
    _auto_visits = 1e7  # how many visits max_epochs="auto" allows

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; float32 stays float32, CSR stays sparse. A kernel perceptron also takes an (n, n)
            Gram matrix with ``kernel="precomputed"``, or any objects its kernel understands.
        y : array-like of shape (n_samples,)
            Labels of any kind; two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            How many times in a row each row is visited (a fraction is a shorter last step).

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget("status_", "trace_")  # whatever fails from here on leaves it unfitted
        X = self._check_input(X, reset=True)
        y = check_labels(y, X.shape[0])
        self.classes_ = check_classes(self, y)
        weight = check_weights(sample_weight, self.class_weight, self.classes_, y)
        kept = np.flatnonzero(weight > 0)  # a row of weight 0 is no row
        if len(kept) < len(y):
            X, y, weight = self._selected(X, kept), y[kept], weight[kept]
            check_classes(self, y)
        labels = class_indices(self.classes_, y)
        rng = generator(self.random_state)
        rows = judges = np.arange(len(y))
        if self.stop == "held_out":
            rows, judges = held_out_split(labels, self.validation_fraction, rng)
        learner = self._begin(X, labels, weight, rng)
        pocket, rules = self._rules(learner, labels, weight, judges)
        run, history = self._run(learner, rows, rules, rng)
        if pocket:
            pocket.look()  # the run may have ended within an epoch
            learner.restore(pocket.snapshot)
        self._seen = np.bincount(labels, minlength=len(self.classes_)) > 0
        self._adopt(learner, kept, resumed=False)
        if self.trace:
            self.trace_ = self._trace(learner, kept, history)
        self._prove(learner, labels, rows)
        self._report(run, learner)
        if run.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Visit the rows of one chunk once, in the order given, and go on from there.

        Chunk by chunk is the same as one unshuffled pass over all rows, however they are cut
        (but a kernel's ``gamma="scale"`` is settled by the first chunk);
        ``stop``, ``max_epochs`` and ``shuffle`` are for ``fit``. ``margin_`` and ``mistake_bound_``
        need all rows, so they are NaN and infinite here.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like, optional
            All labels that will ever occur; needed on the first call only.
        sample_weight : array-like of shape (n_samples,), optional
            As in ``fit``.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._refuse_in_streams()
        first = not hasattr(self, "status_")
        X = self._check_input(X, reset=first)
        self.classes_ = stream_classes(self, classes, first)
        y = check_labels(y, X.shape[0])
        labels = class_indices(self.classes_, y)
        weight = row_weights(sample_weight, self.class_weight, self.classes_, y)
        kept = np.flatnonzero(weight > 0)
        if len(kept) == 0:
            if first:
                raise ValueError("The first chunk has no row with a weight above 0: start later.")
            return self
        if len(kept) < len(y):
            X, labels, weight = X[kept], labels[kept], weight[kept]
        if first:
            learner = self._begin(X, labels, weight, generator(self.random_state))
        else:
            learner = self._resume(X, labels, weight)
        for _ in learner.visit(np.arange(len(labels))):
            pass
        self._adopt(learner, kept, resumed=not first)
        seen = np.bincount(labels, minlength=len(self.classes_)) > 0
        self._seen = seen if first else seen | self._seen
        self.margin_, self.mistake_bound_ = np.nan, np.inf
        self._report(Run(Status.STREAM, 1, 0.0), learner)
        return self

    def fit_chunks(self, chunks: Iterable[Any], classes: Any) -> Self:
        """Make a single pass over chunks that need never be in memory together.

        Parameters
        ----------
        chunks : iterable of (X, y) or (X, y, sample_weight)
            Each is used once and let go.
        classes : array-like
            All labels that may occur.

        Returns
        -------
        self

        Examples
        --------
        >>> import maxmargin as mm
        >>> X, y = mm.datasets.separable(1000, margin=0.2, random_state=0)
        >>> model = mm.Perceptron().fit_chunks(mm.data.chunks(X, y, rows=100), classes=[-1, 1])
        >>> model.stop_reason_
        'After 1000 visits: the rows of each chunk were visited once, in order.'
        """
        self._forget(*(set(vars(self)) - set(self.get_params(deep=False))))
        for X, y, *weight in chunks:
            self.partial_fit(X, y, classes=classes, sample_weight=weight[0] if weight else None)
        if not hasattr(self, "status_"):
            raise ValueError("chunks is empty: at least one (X, y) is needed.")
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the score f of each row: (n,) for two classes, (n, K) for more.

        Scores are neither distances nor probabilities; ``mm.geometry`` has distances.
        """
        check_is_fitted(self)
        scores: Floats = self._scores(self._check_input(X, reset=False))
        if len(self.classes_) == 2:
            return scores.ravel()
        if not self._seen.all():  # a class without rows must not win by default
            scores[:, ~self._seen] = scores[:, self._seen].min(axis=1, keepdims=True) - 1.0
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row: the best score; with two classes the second iff f > 0."""
        return best_classes(self.decision_function(X), self.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        check_scale(self, "eta")
        check_number(self, "margin", at_least=0)
        check_flag(self, "fit_intercept")
        check_choice(self, "stop", STOPS)
        if not (isinstance(self.max_epochs, str) and self.max_epochs == "auto"):
            check_number(self, "max_epochs", at_least=1, integer=True)
        check_flag(self, "shuffle")
        check_number(self, "change_tol", at_least=0)
        check_number(self, "validation_fraction", above=0, below=1)
        check_number(self, "n_iter_no_change", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_flag(self, "warm_start")
        check_flag(self, "trace")
        check_progress(self)

    def _check_input(self, X: Any, reset: bool) -> Any:
        return check_rows(self, X, reset=reset)

    def _forget(self, *names: str) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    def _selected(self, X: Any, rows: Ints) -> Any:
        return X[rows]

    def _rule(self) -> Rule:
        return Rule(
            float(self.eta),
            float(self.margin),
            bool(self.fit_intercept),
            self._averaged,
            self._logged or bool(self.trace),
        )

    def _rules(
        self, learner: Learner, labels: Ints, weight: Floats, judges: Ints
    ) -> tuple[BestKept | None, list[StopRule[Epoch]]]:
        """Return the pocket, if any, and all that is asked after each epoch."""

        def held_out_score() -> float:
            return accuracy(self._scores_of(learner, judges), labels[judges], weight[judges])

        def last_vector_score() -> float:
            return accuracy(learner.training_scores()[judges], labels[judges], weight[judges])

        rules: list[StopRule[Epoch]] = []
        pocket = None
        if getattr(self, "keep", "last") == "best":
            pocket = BestKept(learner, last_vector_score)
            rules.append(pocket)
        if self.stop == "held_out":
            rules.append(NoBetter(held_out_score, self.n_iter_no_change))
        if self.stop not in ("epochs", "one_pass"):
            rules.append(AllCorrect())
        if self.stop == "small_change":
            rules.append(SmallChange(learner, self.change_tol))
        return pocket, rules

    def _run(
        self, learner: Learner, rows: Ints, rules: list[StopRule[Epoch]], rng: np.random.Generator
    ) -> tuple[Run, list[Epoch]]:
        """Let the learner make epochs over the rows until a rule or a budget ends it."""
        history: list[Epoch] = []
        at_max_iter = Status.EPOCHS if self._settles or self.stop == "epochs" else Status.MAX_EPOCHS
        if self.stop == "one_pass":
            at_max_iter = Status.ONE_PASS
        run = drive(
            epochs(learner, orders(rows, self.shuffle, rng)),
            rules=[history.append, *rules],
            max_iter=self._epochs_allowed(len(rows)),
            at_max_iter=at_max_iter,
            max_time=self.max_time,
            callback=self.callback,
            verbose=bool(self.verbose),
        )
        return run, history

    def _epochs_allowed(self, n_rows: int) -> int:
        if self.stop == "one_pass":
            return 1
        if self.max_epochs == "auto":
            return int(np.clip(self._auto_visits / n_rows, 10, 1000))
        return int(self.max_epochs)

    def _prove(self, learner: Any, labels: Ints, rows: Ints) -> None:
        """Set ``margin_`` and, if a separator was found, ``mistake_bound_``."""
        evidence: list[Evidence] = self._evidence(learner)
        evidence += self._separators(learner, labels, rows)
        smallest = [float(labelled_margins(e.scores, labels)[rows].min()) for e in evidence]
        self.margin_ = smallest[0] / evidence[0].norm if evidence[0].norm > 0 else np.nan
        vectors_moved = min(2, len(self.intercept_))
        self.mistake_bound_ = min(
            update_bound(
                margin,
                float(np.hypot(e.norm, e.intercept_norm)),
                vectors_moved * (learner.squared_radius + self.fit_intercept),
                self.margin,
                self.eta,
                learner.start_norm,
            )
            for margin, e in zip(smallest, evidence, strict=True)
        )

    def _separators(self, learner: Any, labels: Ints, rows: Ints) -> list[Evidence]:
        """Return separators other than the model's own vectors, for a lower bound."""
        return []

    def _report(self, run: Run, learner: Learner) -> None:
        """Set what is said about a run, and warn when it ended without what was asked for."""
        self.status_ = run.status
        self.epochs_ = self.n_iter_ = run.iterations
        self.mistakes_ = _count(learner.counts.mistakes)
        self.updates_ = _count(learner.counts.updates)
        done = f"{run.iterations} epoch{'' if run.iterations == 1 else 's'}"
        if run.status is Status.STREAM:
            done = f"{learner.counts.visits:.15g} visits"
        advice = ""
        if run.status is Status.MAX_EPOCHS:
            kept = getattr(self, "keep", "last") == "best"
            advice = ": the best weights seen are kept" if kept else f": {self._advice}"
        self.stop_reason_ = f"After {done}: {run.status.value}{advice}."
        if run.status is Status.MAX_EPOCHS:
            warnings.warn(self.stop_reason_, ConvergenceWarning, stacklevel=3)

    def _refuse_in_streams(self) -> None:
        """Raise on a wish that needs all rows at once, rather than ignore it."""
        wishes = {
            "class_weight": isinstance(self.class_weight, str),
            "keep": getattr(self, "keep", "last") == "best",
            "trace": self.trace,
        }
        for name, wished in wishes.items():
            if wished:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs all rows at once, which partial_fit "
                    "does not have: use fit, or leave it out."
                )


def _count(total: float) -> float:
    """Return a count of visits: an int unless fractional weights made it otherwise."""
    return int(total) if float(total).is_integer() else float(total)
