"""What perceptrons share: parameters, the run and its report; then those with explicit weights."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators.linear.blocked import Opened, as_source, by_parts, is_source
from maxmargin.estimators.linear.partial_fit import labelled_chunk
from maxmargin.estimators.reductions import ClassPlanes, ScoresOnly, best_classes
from maxmargin.geometry.bounds import leads, update_bound
from maxmargin.geometry.criterion import criterion_of_margins
from maxmargin.geometry.inputs import row_products
from maxmargin.loops.records import Rule
from maxmargin.problems.problem import Run, Status
from maxmargin.rows.row_source import RowSource
from maxmargin.runtime import clock
from maxmargin.separability.decide import lifted_separator
from maxmargin.solve import Callback, drive
from maxmargin.solvers.perceptron import (
    BlockLearner,
    Counts,
    Epoch,
    Learner,
    LinearLearner,
    LinearState,
    length,
    run_epochs,
)
from maxmargin.validation.data import (
    check_class_weights,
    check_classes,
    check_labels,
    check_rows,
    check_weighted_classes,
    check_weights,
    class_indices,
    generator,
    held_out_split,
    refuse_infinite,
    refuse_overflow,
)
from maxmargin.validation.parameters import (
    NamedParameters,
    check_choice,
    check_flag,
    check_number,
    check_progress,
    check_scale,
    shown,
)

# ------------------------------------------------------------------- the course of a fit


@dataclass(frozen=True)
class Trace:
    """The course of a fit.

    Attributes
    ----------
    mistakes, updates : list of float
        Per epoch.
    criterion : list of float
        The perceptron criterion E of the running weights after each epoch, on the rows that are
        learnt from: Σ max(0, −y f), with several classes Σ max(0, lead of the best rival).
    """

    mistakes: list[float]
    updates: list[float]
    criterion: list[float]


@dataclass(frozen=True)
class LinearTrace(Trace):
    """The course of a fit, update by update.

    Attributes
    ----------
    row, step : ndarray of shape (n_updates,)
        Which training row, and by how much (signed for two classes).
    label, rival : ndarray of shape (n_updates,)
        With more than two classes: the class that gained and the one that lost.
    start : (weights, intercept)
        Where it began: (1, d) and (1,) for two classes, (K, d) and (K,) for more.
    lift : float
        1 with an intercept, 0 without.
    moved : matrix of shape (n_updates, d)
        The rows that ``row`` names, in float64.
    """

    row: Ints
    step: Floats
    label: Ints
    rival: Ints
    start: tuple[Floats, Floats]
    lift: float
    moved: Any

    @property
    def coef(self) -> Floats:
        """The weights before the first update and after each one: (n_updates + 1, 1 or K, d).

        Dense, and built on demand: for many updates of many columns ask ``after`` instead.
        """
        dense = self.moved.toarray() if hasattr(self.moved, "toarray") else self.moved
        changes = self._steps()[:, :, np.newaxis] * dense[:, np.newaxis, :]
        return np.cumsum(np.concatenate([self.start[0][np.newaxis], changes]), axis=0)

    @property
    def intercept(self) -> Floats:
        """The intercepts that belong to ``coef``: (n_updates + 1, 1 or K)."""
        changes = self._steps() * self.lift
        return np.cumsum(np.concatenate([self.start[1][np.newaxis], changes]), axis=0)

    def after(self, k: int) -> tuple[Floats, Floats]:
        """Return weights and intercept after the first k updates."""
        steps = self._steps()[:k]
        weights = self.start[0] + np.asarray((self.moved[:k].T @ steps).T)
        return weights, self.start[1] + self.lift * steps.sum(axis=0)

    def _steps(self) -> Floats:
        """Return by how much each column of scores moved: (n_updates, 1 or K)."""
        outputs = len(self.start[1])
        if outputs == 1:
            return self.step[:, np.newaxis]
        steps = np.zeros((len(self.step), outputs))
        each = np.arange(len(self.step))
        steps[each, self.label] += self.step
        steps[each, self.rival] -= self.step
        return steps


# ------------------------------------------------------------------- a run of epochs


class OnlineLearner(NamedParameters, BaseEstimator):
    """Base of whoever learns from one row, or example, after the other, epoch by epoch."""

    _stops: tuple[str, ...] = ("all_correct", "epochs", "one_pass", "small_change", "held_out")
    _advice = "use keep='best' or AveragedPerceptron, or raise max_epochs"

    keep = "last"  # a parameter of some
    _stable: Any = False  # whether the model is good even if mistakes never cease
    _auto_visits = 1e7  # that max_epochs="auto" allows, but never fewer than 10 epochs …
    _most_epochs = 1000  # … nor more than these

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        check_number(self, "margin", at_least=0)
        check_choice(self, "stop", self._stops)
        if not (isinstance(self.max_epochs, str) and self.max_epochs == "auto"):
            check_number(self, "max_epochs", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        for name in ("shuffle", "warm_start", "trace"):
            check_flag(self, name)
        check_progress(self)

    def _forget(self, *names: str) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    def _run(self, learner: Any, rows: Any, rule: Any, rng: np.random.Generator | None) -> Run:
        """Let the learner make epochs over the rows until the rule or a limit ends the run."""
        stable = self._stable or self.stop == "epochs"
        at_max_iter = Status.EPOCHS if stable else Status.MAX_EPOCHS
        max_epochs = self.max_epochs
        if max_epochs == "auto":
            max_epochs = np.clip(self._auto_visits / len(rows), 10, self._most_epochs)
        if self.stop == "one_pass":
            at_max_iter, max_epochs = Status.ONE_PASS, 1
        return drive(
            run_epochs(learner, rows, rng),
            rules=[rule],
            max_iter=int(max_epochs),
            at_max_iter=at_max_iter,
            max_time=self.max_time,
            callback=self.callback,
            verbose=bool(self.verbose),
        )

    def _report(self, run: Run, counts: Counts) -> None:
        """Set the attributes that describe a run; warn if it ran out of epochs."""
        self.status_ = run.status
        self.epochs_ = self.n_iter_ = run.iterations
        self.mistakes_ = as_count(counts.mistakes)
        self.updates_ = as_count(counts.updates)
        done = f"{run.iterations} epoch{'' if run.iterations == 1 else 's'}"
        if run.status is Status.STREAM:
            done = f"{counts.visits:.15g} visits"
        advice = "the best weights seen are kept" if self.keep == "best" else self._advice
        advice = f": {advice}" if run.status is Status.MAX_EPOCHS else ""
        self.stop_reason_ = f"After {done}: {run.status.value}{advice}."
        if run.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        if run.status is Status.MAX_EPOCHS:
            warn(self.stop_reason_, ConvergenceWarning)


# ------------------------------------------------------------------- learning from mistakes


class Evidence(NamedTuple):
    """What the mistake bound needs to know about a weight vector on the training rows."""

    smallest: float  # y f, or lead of a row's class over the best other one
    norm: float
    intercept_norm: float


class MistakeDriven(ScoresOnly, ClassifierMixin, OnlineLearner):
    """Base of the perceptrons.

    A subclass checks rows (``_check_input``), makes the learner to begin or to continue with
    (``_begin``, ``_resume``), sets attributes from it (``_adopt``), says which separators there are
    (``_evidence``, the model itself first), and scores rows (``_scores`` when fitted,
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
    _averaged = False
    _logged = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            Rows; float32 stays float32, CSR stays sparse. A kernel perceptron also takes an (n, n)
            Gram matrix with ``kernel="precomputed"``, or any objects its kernel understands. All
            others take what ``mm.data.open`` returns, and collections of Dask: these rows are read
            block by block, or visited on the workers of a cluster one after the other, always in
            their order (whatever ``shuffle`` says), and the weights are those of the same rows in
            memory with ``shuffle=False``. ``mistake_bound_`` is then that of the vectors found. A
            ``checkpoint`` of the source is not used: a fit that was killed begins again.
        y : array-like of shape (n_samples,)
            Labels of any kind; two or more classes. A source has its own.
        sample_weight : array-like of shape (n_samples,), optional
            How many times each row is visited at its turn (a fraction is a shorter last step).

        Returns
        -------
        self
        """
        self.check_parameters()
        self._forget("status_", "trace_")  # if anything fails from here on, it is unfitted
        if is_source(X):
            return self._fit_source(as_source(X, y, sample_weight))
        X = self._check_training_input(X, reset=True)
        y = check_labels(y, X.shape[0])
        self.classes_ = check_classes(self, y)
        weight = check_weights(sample_weight, self.class_weight, self.classes_, y)
        kept = np.flatnonzero(weight > 0)  # a row of weight 0 counts as absent
        if len(kept) < len(y):
            X, y, weight = self._selected(X, kept), y[kept], weight[kept]
            check_weighted_classes(self, y)
        labels = class_indices(self.classes_, y)
        rng = generator(self.random_state)
        rows = validation = np.arange(len(y))
        if self.stop == "held_out":
            rows, validation = held_out_split(labels, self.validation_fraction, rng)
        learner = self._begin(X, labels, weight, rng)
        watch = _Watch(
            self,
            learner,
            _Judged.among(rows, labels, weight),
            _Judged.among(validation, labels, weight),
            lambda: self._scores_of(learner, validation),
        )
        run = self._run(learner, rows, watch, rng if self.shuffle else None)
        if self.keep == "best":
            watch.fill_pocket()  # the run may have ended within an epoch
            learner.restore(watch.pocket)
        self._seen = np.bincount(labels, minlength=len(self.classes_)) > 0
        self._adopt(learner, kept, resumed=False)
        if self.trace:
            made = watch.epochs
            epochs = Trace([e.mistakes for e in made], [e.updates for e in made], watch.criterion)
            self.trace_ = self._trace(learner, kept, epochs)
        self._prove(learner, self._evidence(learner, labels, rows))
        self._report(run, learner.counts)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Visit the rows of one chunk once, in the order given, continuing from earlier chunks.

        The result is that of one unshuffled pass over all rows, however they are cut into chunks
        (but the first chunk determines a kernel's ``gamma="scale"``). ``stop``, ``max_epochs`` and
        ``shuffle`` are for ``fit``. ``margin_`` and ``mistake_bound_`` need all rows, so they are
        NaN and infinite here.

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
        self.check_parameters()
        self._refuse_in_streams()
        first = not hasattr(self, "status_")
        X = self._check_training_input(X, reset=first)
        labels, weight, kept = labelled_chunk(self, y, X.shape[0], classes, sample_weight)
        if len(kept) < X.shape[0]:
            X = self._selected(X, kept)
        if len(kept) == 0:
            return self
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
        self._report(Run(Status.STREAM, 1, 0.0), learner.counts)
        return self

    def fit_chunks(self, chunks: Iterable[Any], classes: Any) -> Self:
        """Make a single pass over chunks that need never be in memory together.

        Parameters
        ----------
        chunks : iterable of (X, y) or (X, y, sample_weight)
            Each is used once and not kept.
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
        if is_source(X):
            return np.asarray(by_parts(as_source(X, None), self.decision_function))
        scores: Floats = self._scores(self._check_input(X, reset=False))
        if len(self.classes_) == 2:
            return scores.ravel()
        if not self._seen.all():  # a class without rows must not win by default
            scores[:, ~self._seen] = scores[:, self._seen].min(axis=1, keepdims=True) - 1.0
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row: the best score; with two classes the second iff f > 0."""
        return best_classes(self.decision_function(X), self.classes_)

    def class_planes(self) -> ClassPlanes:
        """Return which classes have planes: one plane for two, else those that have rows."""
        check_is_fitted(self)
        if len(self.classes_) == 2:
            return ClassPlanes("ovr", [(1, 0)], np.arange(1))
        seen = np.flatnonzero(self._seen)
        return ClassPlanes("ovr", [(k, -1) for k in seen.tolist()], seen)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        check_scale(self, "eta")
        super().check_parameters()
        check_choice(self, "keep", ("last", "best"))
        check_number(self, "change_tol", at_least=0)
        check_number(self, "validation_fraction", above=0, below=1)
        check_number(self, "n_iter_no_change", at_least=1, integer=True)
        check_flag(self, "fit_intercept")

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        return check_rows(self, X, reset=reset)

    def _check_training_input(self, X: Any, *, reset: bool) -> Any:
        return self._check_input(X, reset=reset)

    def _selected(self, X: Any, rows: Ints) -> Any:
        return X[rows]

    def _trace(self, _learner: Any, _rows: Ints, epochs: Trace) -> Any:
        return epochs

    def _rule(self) -> Rule:
        return Rule(
            float(self.eta),
            float(self.margin),
            bool(self.fit_intercept),
            self._averaged,
            self._logged or bool(self.trace),
        )

    def _fit_source(self, source: RowSource) -> Self:
        """Learn from rows in blocks."""
        raise ValueError(
            f"{type(self).__name__} needs all rows in memory, but these are read in blocks: fit it "
            "to arrays, or mm.Perceptron to source.mapped(...) with a feature map."
        )

    def _prove(self, learner: Any, evidence: list[Evidence]) -> None:
        """Set ``margin_`` and, if a separator was found, ``mistake_bound_``."""
        model = evidence[0]
        self.margin_ = model.smallest / model.norm if model.norm > 0 else np.nan
        vectors_moved = min(2, len(self.intercept_))
        self.mistake_bound_ = min(
            update_bound(
                e.smallest,
                float(np.hypot(e.norm, e.intercept_norm)),
                vectors_moved * (learner.squared_radius + self.fit_intercept),
                self.margin,
                self.eta,
                learner.start_norm,
            )
            for e in evidence
        )

    def _refuse_in_streams(self) -> None:
        """Raise if a parameter asks for something that needs all rows at once."""
        asked = {
            "class_weight": isinstance(self.class_weight, str),
            "keep": self.keep == "best",
            "trace": self.trace,
        }
        for name, is_asked in asked.items():
            if is_asked:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs all rows at once, which partial_fit "
                    "does not have: use fit, or leave it out."
                )


class _Judged(NamedTuple):
    """Rows by whose labels a weight vector is judged."""

    rows: Ints
    labels: Ints
    weight: Floats

    @classmethod
    def among(cls, rows: Ints, labels: Ints, weight: Floats) -> Self:
        """Return the judged ones of all rows."""
        if len(rows) == len(labels):
            return cls(rows, labels, weight)  # in their order
        return cls(rows, labels[rows], weight[rows])

    def accuracy(self, scores: Floats) -> float:
        """Return the share of the rows that their scores have right."""
        right = margins_of(scores, self.labels) > 0  # ties are mistakes
        return float(self.weight @ right / self.weight.sum())

    def criterion(self, scores: Floats) -> float:
        """Return by how much the wrong ones of the rows are wrong, all together."""
        return criterion_of_margins(margins_of(scores, self.labels), self.weight)


class _Watch:
    """Asked after each epoch: keeps the best weights seen, and says when to stop."""

    def __init__(
        self,
        model: MistakeDriven,
        learner: Learner,
        training: _Judged,
        validation: _Judged,
        held_out_scores: Callable[[], Floats],
    ) -> None:
        self._model, self._learner, self._held_out_scores = model, learner, held_out_scores
        self._training, self._validation = training, validation
        self.epochs: list[Epoch] = []
        self.criterion: list[float] = []
        self.pocket: Any = None
        self._best, self._idle = -np.inf, 0
        self._pocket_score = -np.inf
        self.fill_pocket()
        self._previous: Any = learner.snapshot() if model.stop == "small_change" else None

    def __call__(self, epoch: Epoch) -> Status | None:
        """Return why the run ends here, or None."""
        self.epochs.append(epoch)
        if self._model.trace and not isinstance(self._learner, BlockLearner):
            scores = self._learner.training_scores()[self._training.rows]
            self.criterion.append(self._training.criterion(scores))
        self.fill_pocket()
        stop = self._model.stop
        if stop == "held_out" and self._has_stopped_improving():
            return Status.HELD_OUT
        if stop in ("epochs", "one_pass"):
            return None
        if epoch.updates == 0.0:  # no further epoch would change anything
            return Status.ALL_CORRECT
        return Status.SMALL_CHANGE if stop == "small_change" and self._changed_little() else None

    def fill_pocket(self) -> None:
        """Keep the weights with ``keep="best"`` if they are better than those kept."""
        if self._model.keep != "best":
            return
        if isinstance(self._learner, BlockLearner):
            score = self._learner.accuracy()
        else:
            scores = self._learner.training_scores()
            score = self._validation.accuracy(scores[self._validation.rows])
        if score > self._pocket_score:
            self._pocket_score, self.pocket = score, self._learner.snapshot()

    def _has_stopped_improving(self) -> bool:
        score = self._validation.accuracy(self._held_out_scores())
        self._idle = 0 if score > self._best else self._idle + 1
        self._best = max(score, self._best)
        return bool(self._idle >= self._model.n_iter_no_change)

    def _changed_little(self) -> bool:
        change, size = self._learner.change(self._previous)
        self._previous = self._learner.snapshot()
        return bool(change < self._model.change_tol * (size or 1.0))


def margins_of(scores: Floats, labels: Ints) -> Floats:
    """Return y f for one column of scores, s_y − max of the others for several."""
    if scores.shape[1] == 1:
        return scores[:, 0] * (2.0 * labels - 1.0)
    return leads(scores, labels)


def as_count(total: float) -> float:
    """Return a count of visits: an int unless fractional weights made it otherwise."""
    return int(total) if float(total).is_integer() else float(total)


# ------------------------------------------------------------------- explicit weights


class LinearPerceptron(MistakeDriven):
    """Base of the perceptrons with weights w and intercept b."""

    def __init__(
        self,
        *,
        eta: float = 1.0,
        margin: float = 0.0,
        fit_intercept: bool = True,
        init: Any = "zeros",
        stop: str = "all_correct",
        max_epochs: int | str = "auto",
        shuffle: bool = True,
        class_weight: Any = None,
        change_tol: float = 1e-3,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
        trace: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.eta = eta
        self.margin = margin
        self.fit_intercept = fit_intercept
        self.init = init
        self.stop = stop
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.change_tol = change_tol
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.trace = trace
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        super().check_parameters()
        if isinstance(self.init, str):
            check_choice(self, "init", ("zeros", "random"))

    def _begin(
        self, X: Any, labels: Ints, weight: Floats, rng: np.random.Generator
    ) -> LinearLearner:
        return self._learner(self._first_state(X.shape[1], rng), X, labels, weight)

    def _first_state(self, d: int, rng: np.random.Generator) -> LinearState:
        n_classes = len(self.classes_)
        shape = (d,) if n_classes == 2 else (d, n_classes)
        if self.warm_start and hasattr(self, "_state"):
            start = self._state.vector()
            if start[0].shape != shape:
                raise ValueError(
                    f"warm_start=True, but the weights of the last fit have shape {start[0].shape} "
                    f"and these data need {shape}: fit a new estimator instead."
                )
        elif not isinstance(self.init, str):
            start = _check_start(self.init, shape, self.fit_intercept)
        elif self.init == "zeros":
            start = np.zeros(shape), np.zeros(shape[1:] or 1)
        else:
            start = rng.random(shape), rng.random(shape[1:] or 1) * self.fit_intercept
        return LinearState(*start, averaged=self._averaged)

    def _fit_source(self, source: RowSource) -> Self:
        for name, asked in (("stop", self.stop == "held_out"), ("trace", self.trace)):
            if asked:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs all rows in memory, but these are read "
                    "in blocks: leave it out, or fit to arrays."
                )
        opened = Opened.of(source, targets=False, threads=None)
        opened.check(self, reset=True)
        self.classes_ = opened.survey.classes
        factors, left = check_class_weights(self, self.classes_, opened.survey.weights)
        state = self._first_state(opened.survey.d, generator(self.random_state))
        learner = BlockLearner(state, self._rule(), opened.blocks, factors)
        nobody = _Judged(np.arange(0), np.arange(0), np.zeros(0))
        watch = _Watch(self, learner, nobody, nobody, lambda: np.zeros(0))
        with clock.limited(self.max_time):
            run = self._run(learner, range(learner.n), watch, None)
        if self.keep == "best":
            learner.restore(watch.pocket)
        self._seen = np.isin(np.arange(len(factors)), left)
        self._adopt(learner, np.arange(0), resumed=False)
        self.margin_, self.mistake_bound_ = np.nan, np.inf
        if run.status not in (Status.MAX_TIME, Status.INTERRUPTED):  # another pass takes time
            self._prove(learner, self._evidence_in_blocks(learner))
        self._report(run, learner.counts)
        return self

    def _evidence_in_blocks(self, learner: BlockLearner) -> list[Evidence]:
        vectors = [self._model(learner.state)]
        if self._averaged:
            vectors.append(learner.state.vector())
        leads = learner.smallest_leads(vectors)
        return [
            Evidence(lead, *map(length, vector))
            for lead, vector in zip(leads, vectors, strict=True)
        ]

    def _resume(self, X: Any, labels: Ints, weight: Floats) -> LinearLearner:
        state: LinearState = deepcopy(self._state)  # if this chunk fails, nothing is lost
        if not (self._averaged or self._logged):
            # The model is the last vector: if it was edited, the stream continues from the edit.
            state.weights = np.array(self.coef_.T, order="C").reshape(state.weights.shape)
            state.intercept = np.array(self.intercept_)
        return self._learner(state, X, labels, weight)

    def _check_training_input(self, X: Any, *, reset: bool) -> Any:
        return check_rows(self, X, reset=reset, finite=False)  # the learner checks that …

    def _selected(self, X: Any, rows: Ints) -> Any:
        refuse_infinite(self, X)  # … of those that it visits
        return super()._selected(X, rows)

    def _learner(self, state: LinearState, X: Any, labels: Ints, weight: Floats) -> LinearLearner:
        def check_radius(squared_radius: float) -> None:
            if not np.isfinite(squared_radius):
                refuse_infinite(self, X)
            refuse_overflow(self, X, squared_radius)

        learner = LinearLearner(state, self._rule(), X, labels, weight, check_radius)
        if self.keep == "best":  # rows are scored before they are visited
            learner.measure()
        return learner

    def _model(self, state: LinearState) -> tuple[Floats, Floats]:
        """Return the weights and intercept that ``coef_`` and ``intercept_`` will hold."""
        return state.vector()

    def _scores(self, X: Any) -> Floats:
        return row_products(X, self.coef_.T) + self.intercept_

    def _scores_of(self, learner: LinearLearner, rows: Ints) -> Floats:
        return learner.scores(*self._model(learner.state))[rows]

    def _adopt(self, learner: LinearLearner | BlockLearner, _rows: Ints, resumed: bool) -> None:
        weights, intercept = self._model(learner.state)
        if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
            raise ValueError(f"The weights overflow with eta={self.eta}: choose a smaller one.")
        self._state = learner.state
        self.coef_ = weights.reshape(len(weights), -1).T.copy()
        self.intercept_ = intercept.copy()

    def _trace(self, learner: LinearLearner, rows: Ints, epochs: Trace) -> LinearTrace:
        made, (weights, intercept) = learner.updates(), learner.began
        return LinearTrace(
            epochs.mistakes,
            epochs.updates,
            epochs.criterion,
            rows[made.row],
            made.step,
            made.label,
            made.rival,
            (weights.reshape(len(weights), -1).T.copy(), intercept),
            float(self.fit_intercept),
            learner.X[made.row].astype(np.float64),
        )

    def _evidence(self, learner: LinearLearner, labels: Ints, rows: Ints) -> list[Evidence]:
        learner.measure()  # the run may have ended within the first epoch
        vectors = [self._model(learner.state)]
        if self._averaged:
            vectors.append(learner.state.vector())
        if len(self.classes_) == 2:
            X = learner.X if len(rows) == len(labels) else learner.X[rows]
            vectors += lifted_separator(X, labels[rows] == 1, self.fit_intercept)
        return [
            Evidence(learner.smallest_lead(*vector, rows), *map(length, vector))
            for vector in vectors
        ]


def _check_start(init: Any, shape: tuple[int, ...], fit_intercept: bool) -> tuple[Floats, Floats]:
    """Return the weights and intercept that ``init`` gives, or raise."""
    d, outputs = shape[0], 1 if len(shape) == 1 else shape[1]
    pair = init if isinstance(init, tuple) and len(init) == 2 else (init, np.zeros(outputs))
    try:
        weights = np.array(pair[0], dtype=np.float64)
        intercept = np.array(pair[1], dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError) as wrong:
        raise ValueError(
            f"init={shown(init)} is not valid: it must be 'zeros', 'random', an array of weights "
            "or a pair of weights and intercept."
        ) from wrong
    shapes = [(outputs, d)] if outputs > 1 else [(d,), (1, d)]
    if weights.shape not in shapes or intercept.shape != (outputs,):
        raise ValueError(
            f"init must be an array of weights of shape ({outputs}, {d}), or a pair of such "
            f"weights and {outputs} intercept(s); got shapes {weights.shape} and {intercept.shape}."
        )
    if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
        raise ValueError("init contains NaN or infinity.")
    if intercept.any() and not fit_intercept:
        raise ValueError("init gives an intercept, but fit_intercept=False: leave one of them out.")
    return np.ascontiguousarray(weights.reshape(outputs, d).T).reshape(shape), intercept
