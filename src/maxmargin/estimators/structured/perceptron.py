"""The perceptron for structured outputs."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators.perceptron.base import as_count
from maxmargin.estimators.structured.base import StructuredOutputs
from maxmargin.geometry.bounds import update_bound
from maxmargin.problems.problem import Run, Status
from maxmargin.solve import Callback, drive
from maxmargin.solvers.perceptron import Epoch, run_epochs
from maxmargin.solvers.structured_perceptron import StructuredLearner, StructuredState
from maxmargin.validation.data import generator
from maxmargin.validation.parameters import (
    NamedParameters,
    check_choice,
    check_flag,
    check_number,
    check_progress,
    check_scale,
)

_AUTO_VISITS = 20_000  # that max_epochs="auto" allows
_MOST_VISITS = 1e9  # of one example at its turn
_STOPS = ("all_correct", "epochs", "one_pass")


@dataclass(frozen=True)
class StructuredTrace:
    """The course of a fit, update by update.

    Attributes
    ----------
    mistakes, updates : list of float
        Per epoch.
    example : ndarray of shape (n_updates,)
        The training example at which each update was made.
    step : ndarray of shape (n_updates,)
        The factor of its difference: 1, or what is left of a fractional weight.
    loss : ndarray of shape (n_updates,)
        The loss of the output that came out.
    output : list of n_updates outputs
        What came out.
    difference : sparse matrix of shape (n_updates, n_weights)
        ψ(x, y) − ψ(x, ŷ).
    start : ndarray of shape (n_weights,)
        The weights at the beginning.
    """

    mistakes: list[float]
    updates: list[float]
    example: Ints
    step: Floats
    loss: Floats
    output: list[Any]
    difference: Any
    start: Floats

    def after(self, k: int) -> Floats:
        """Return the weights after the first k updates."""
        return np.asarray(self.start + self.difference[:k].T @ self.step[:k])

    @property
    def coef(self) -> Floats:
        """The weights before the first update and after each one: (n_updates + 1, n_weights).

        Dense, and built on demand: for many updates of many weights ask ``after`` instead.
        """
        changes = self.step[:, np.newaxis] * self.difference.toarray()
        return np.cumsum(np.concatenate([self.start[np.newaxis], changes]), axis=0)


class StructuredPerceptron(StructuredOutputs, NamedParameters, BaseEstimator):
    """The perceptron over outputs with structure: decode, and where ŷ ≠ y, w += ψ(x,y) − ψ(x,ŷ).

    The model says what ψ is and how to find the output with the highest score ⟨w, ψ(x, y)⟩. On
    examples that some w gets all right it makes a bounded number of updates, whatever their order,
    and then stops by itself; see ``mistake_bound``. On others it never converges, and the mean of
    all its vectors (``averaged=True``, the default) is what to use.

    Parameters
    ----------
    model : mm.structured.Model
        What inputs and outputs are, and how they are scored: ``Multiclass``, ``Multilabel``,
        ``Chain`` or ``Ranking`` of ``mm.structured``, or a class of your own derived from
        ``mm.structured.Model``.
    averaged : bool, default=True
        Whether the model found is the mean of w after each visit, rather than the last w. The mean
        is updated lazily: an update costs one more pass over its entries, a right answer nothing.
    margin : float ≥ 0, default=0.0
        If it is above 0, an update is also made where a wrong output is beaten, but by less than
        margin times its loss: ŷ is decode(x, w/margin, truth=y). With margin=0 it is decode(x, w),
        and whether a tie is a mistake depends on how the decoder breaks it; with a small margin it
        always is one. As long as w = 0, ŷ is the output with the largest loss either way.
    stop : {"all_correct", "epochs", "one_pass"}, default="all_correct"
        "all_correct": after an epoch without an update. "epochs": after ``max_epochs``.
        "one_pass": after one.
    max_epochs : int or "auto", default="auto"
        Epochs allowed; running out of them while making mistakes is a ConvergenceWarning unless
        ``averaged``. "auto" is twenty thousand visits altogether, but at least 10 epochs and at
        most 100.
    shuffle : bool, default=True
        Visit examples in a new random order each epoch, otherwise in the order given.
    max_time : float or None, default=None
        Seconds allowed.
    warm_start : bool, default=False
        Start from the last (not the mean) weights of the previous fit.
    callback : callable or None, default=None
        Called after each epoch with ``(iteration, seconds, iterate)`` as a Progress object;
        returning True stops.
    verbose : int, default=0
        If positive, print a line per epoch.
    trace : bool, default=False
        Keep ``trace_``: every update, and the running weights after each.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the shuffling.

    Attributes
    ----------
    coef_ : ndarray of shape (n_weights,)
        The mean weights, or the last ones with ``averaged=False``;
        ``model_.named_weights(coef_)`` says what each part is about.
    model_ : mm.structured.Model
        The model with what it learnt from the training data: sizes and labels. The parameter
        ``model`` is left as it is.
    updates_, mistakes_ : int, or float with fractional weights
        Updates made; and those of them where the truth did not score higher than ŷ: with
        ``margin=0`` and a decoder that maximises, all of them. An example of weight c counts c.
    epochs_, n_iter_ : int
        Epochs completed.
    status_ : Status
        Why it stopped.
    stop_reason_ : str
        The same as a sentence.
    radius_, largest_loss_ : float
        The largest ‖ψ(x, y) − ψ(x, ŷ)‖ and loss(y, ŷ) of the updates made.
    search_errors_ : int
        At how many updates the truth itself had a higher score than the output that ``decode``
        returned. A decoder that maximises has none; if a model that claims to be ``exact`` has
        some, there is a warning.
    n_features_in_, feature_names_in_, classes_ :
        As far as the model has them.
    trace_ : StructuredTrace
        With ``trace=True``: mistakes and updates per epoch, and example, output, loss and
        difference per update.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.numbers(200, rows=slice(1200))
    >>> reader = mm.StructuredPerceptron(mm.structured.Chain(n_states=10)).fit(X, y)
    >>> X_test, y_test = mm.datasets.numbers(100, rows=slice(1200, None), random_state=1)
    >>> reader.score(X_test, y_test) > 0.9
    True
    """

    _instead: ClassVar = {
        "eta": "From zero, a step length only rescales the weights: change margin instead.",
        "max_iter": "It is called max_epochs here.",
        "C": "A perceptron has no penalty: StructuredSVC has.",
        "keep": "Use averaged=True.",
    }

    def __init__(
        self,
        model: Any,
        *,
        averaged: bool = True,
        margin: float = 0.0,
        stop: str = "all_correct",
        max_epochs: int | str = "auto",
        shuffle: bool = True,
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
        trace: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.averaged = averaged
        self.margin = margin
        self.stop = stop
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.trace = trace
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from inputs X with outputs y.

        Parameters
        ----------
        X : sequence of n_samples inputs
            As the model takes them: for a chain, an array of shape (length, n_features) each.
        y : sequence of n_samples outputs
            The true outputs.
        sample_weight : array-like of shape (n_samples,), optional
            How many times each example is visited at its turn (a fraction is a shorter last step):
            weight 2 is the example twice in a row, weight 0 its absence.

        Returns
        -------
        self
        """
        self.check_parameters()
        last = self._state.weights if self.warm_start and hasattr(self, "status_") else None
        for name in ("status_", "trace_"):  # if anything fails from here on, it is unfitted
            self.__dict__.pop(name, None)
        data = self._examples(X, y, sample_weight, reset=True)
        _refuse_endless(data.weight, data.kept)
        start = self._start(last, data.examples.size)
        learner = StructuredLearner(
            StructuredState.begin(start, averaged=bool(self.averaged)),
            data.examples,
            data.weight,
            float(self.margin),
            bool(self.trace),
        )
        epochs: list[Epoch] = []
        run = self._run(learner, np.arange(len(data.kept)), epochs)
        self._adopt_model(data.model)
        self._adopt(learner, float(np.linalg.norm(start)))
        if self.trace:
            self.trace_ = _traced(learner, data.kept, start, epochs)
        self._report(run, learner)
        if run.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        return self

    def mistake_bound(
        self, delta: float, *, radius: float | None = None, largest_loss: float | None = None
    ) -> float:
        """Return how many updates there can be if some unit vector u separates by ``delta``.

        That is (R² + 2·margin·L)/δ², where ⟨u, ψ(x, y) − ψ(x, y′)⟩ ≥ δ for all training examples
        and all y′ ≠ y, plus 2‖w₀‖/δ for a warm start from w₀. By default R and L are ``radius_``
        and ``largest_loss_``, and the bound is one on the updates made; with the largest
        ‖ψ(x, y) − ψ(x, y′)‖ and the largest loss of all outputs it is one on the updates of any
        run. It counts updates of the running w, so ``averaged`` does not matter; it is infinite
        after a decoder missed the truth itself (``search_errors_``).

        Parameters
        ----------
        delta : float > 0
            δ. A fit does not yield it, as there are too many outputs to look at; where they can be
            listed, a linear program finds it.
        radius, largest_loss : float or None, default=None
            R and L; None: the largest of the updates made.
        """
        check_is_fitted(self)
        if not (math.isfinite(delta) and delta > 0):
            raise ValueError(f"delta={delta!r} is not valid: it must be a finite number > 0.")
        for name, value in (("radius", radius), ("largest_loss", largest_loss)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name}={value!r} is not valid: it must be a finite number >= 0.")
        if self.search_errors_:
            return math.inf
        R = self.radius_ if radius is None else radius
        L = self.largest_loss_ if largest_loss is None else largest_loss
        return update_bound(delta, 1.0, R * R, self._fitted_margin * L, 1.0, self._start_norm)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        self._check_model()
        check_number(self, "margin", at_least=0)
        if self.margin > 0:
            check_scale(self, "margin")  # w is divided by it
        check_choice(self, "stop", _STOPS)
        if not (isinstance(self.max_epochs, str) and self.max_epochs == "auto"):
            check_number(self, "max_epochs", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        for name in ("averaged", "shuffle", "warm_start", "trace"):
            check_flag(self, name)
        check_progress(self)

    def _start(self, last: Floats | None, size: int) -> Floats:
        if last is None:
            return np.zeros(size)
        if len(last) != size:
            raise ValueError(
                f"warm_start=True, but the last fit has {len(last)} weights and these data need "
                f"{size}: fit a new estimator instead."
            )
        return last

    def _run(self, learner: StructuredLearner, rows: Ints, epochs: list[Epoch]) -> Run:
        """Let the learner make epochs over the examples until a limit or an epoch ends the run."""
        stable = self.averaged or self.stop == "epochs"
        at_max_iter = Status.EPOCHS if stable else Status.MAX_EPOCHS
        max_epochs = self.max_epochs
        if max_epochs == "auto":
            max_epochs = np.clip(_AUTO_VISITS / len(rows), 10, 100)
        if self.stop == "one_pass":
            at_max_iter, max_epochs = Status.ONE_PASS, 1

        def all_correct(epoch: Epoch) -> Status | None:
            epochs.append(epoch)
            done = self.stop == "all_correct" and epoch.updates == 0.0
            return Status.ALL_CORRECT if done else None

        rng = generator(self.random_state)
        return drive(
            run_epochs(learner, rows, rng if self.shuffle else None),
            rules=[all_correct],
            max_iter=int(max_epochs),
            at_max_iter=at_max_iter,
            max_time=self.max_time,
            callback=self.callback,
            verbose=bool(self.verbose),
        )

    def _adopt(self, learner: StructuredLearner, start_norm: float) -> None:
        self._state, self._start_norm = learner.state, start_norm
        self._fitted_margin = float(self.margin)  # the parameter may change
        self.coef_ = learner.state.mean()
        self.radius_ = math.sqrt(learner.squared_radius)
        self.largest_loss_ = learner.largest_loss
        self.search_errors_ = learner.search_errors

    def _report(self, run: Run, learner: StructuredLearner) -> None:
        """Set the attributes that describe a run; warn if it ran out of epochs."""
        self.epochs_ = self.n_iter_ = run.iterations
        self.mistakes_ = as_count(learner.counts.mistakes)
        self.updates_ = as_count(learner.counts.updates)
        done = f"{run.iterations} epoch{'' if run.iterations == 1 else 's'}"
        advice = ": use averaged=True, or raise max_epochs"
        advice = advice if run.status is Status.MAX_EPOCHS else ""
        self.status_ = run.status
        self.stop_reason_ = f"After {done}: {run.status.value}{advice}."
        if run.status is Status.MAX_EPOCHS:
            warn(self.stop_reason_, ConvergenceWarning)
        if self.search_errors_ and self.model_.exact:
            warn(
                f"{type(self.model).__name__} claims to be exact, but at {self.search_errors_} "
                "updates the true output had a higher score than what decode returned: set "
                "exact = False, or correct decode.",
                UserWarning,
            )


def _refuse_endless(weight: Floats, rows: Ints) -> None:
    """Raise if a weight asks for so many visits that they might never end."""
    if weight.max() > _MOST_VISITS:
        k = int(weight.argmax())
        raise ValueError(
            f"sample_weight contains {weight[k]:g} (example {rows[k]}), which may be as many "
            f"visits at one turn: divide all weights by a number that makes them {_MOST_VISITS:g} "
            "at most."
        )


def _traced(
    learner: StructuredLearner, rows: Ints, start: Floats, epochs: list[Epoch]
) -> StructuredTrace:
    log = learner.log
    ends = np.cumsum([0, *(len(update.values) for update in log)])
    parts = ([np.zeros(0), *(u.values for u in log)], [np.zeros(0, int), *(u.indices for u in log)])
    values, indices = (np.concatenate(part) for part in parts)
    return StructuredTrace(
        [epoch.mistakes for epoch in epochs],
        [epoch.updates for epoch in epochs],
        rows[[update.example for update in log]],
        np.array([update.share for update in log]),
        np.array([update.loss for update in log]),
        [update.output for update in log],
        sp.csr_array((values, indices, ends), shape=(len(log), len(start))),
        start,
    )
