"""The perceptron for structured outputs: decode, and move towards what should have come out.

    visit examples in order;   ŷ = decode(x, w);   if ŷ ≠ y:   w += ψ(x, y) − ψ(x, ŷ)

With a margin θ > 0 it is ŷ = decode(x, w/θ, truth=y): of all outputs the one that exceeds
⟨w, ψ(x, y)⟩ − θ·loss(y, ŷ) most, so an update also follows where a wrong output is beaten, but by
less than θ times its loss. For θ → 0 the loss does no more than break ties, against the truth.
With w = 0 all outputs are level, and ŷ is the one with the largest loss, with a margin or without:
a decoder that breaks ties in favour of the truth would otherwise never begin to learn.

Let d be the difference that an update adds. Since ŷ came out, ⟨w, d⟩ ≤ θ·loss(y, ŷ), so ‖w‖² grows
by at most ‖d‖² + 2θ·loss. Let a unit vector u separate the examples: ⟨u, d⟩ ≥ δ > 0 for all d
there are. After k updates from w = 0

    kδ  ≤  ⟨w, u⟩  ≤  ‖w‖  ≤  √(k(R² + 2θ·max loss)),      R = max ‖d‖,

hence k ≤ (R² + 2θ·max loss)/δ². The decoder need not be exact for that, but what it returns must
score as much as the truth, or more. Collins (2002); Crammer & Singer (2003) for several classes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators.perceptron.base import OnlineLearner
from maxmargin.geometry.bounds import update_bound
from maxmargin.loops.records import read_only
from maxmargin.problems.problem import Status
from maxmargin.solve import Callback
from maxmargin.solvers.perceptron import Counts, Epoch
from maxmargin.structured.model import Cuts, joined_cuts
from maxmargin.structured.svc import StructuredOutputs
from maxmargin.validation.data import LARGEST_SQUARE, generator
from maxmargin.validation.parameters import check_flag, check_scale

_MOST_VISITS = 1e9  # of one example at its turn
_ROUNDING = 1e-6  # of the terms of a score: what is less may be rounding in a model's own sums


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


# ------------------------------------------------------------------- visits


@dataclass
class StructuredState:
    """What a structured perceptron has learnt so far.

    ``lag`` is Σ t·(the update made after t visits), so that the mean of w after each visit is
    w − lag/visits; it is empty if no mean is wanted.
    """

    weights: Floats
    lag: Floats
    counters: Floats  # visits, mistakes, updates, in units of weight

    def mean(self) -> Floats:
        """Return the mean of w after each visit, or w itself if no mean is kept."""
        if len(self.lag) == 0 or self.counters[0] == 0.0:
            return self.weights.copy()
        return np.asarray(self.weights - self.lag / self.counters[0])


class StructuredLearner:
    """A structured perceptron at work on given examples: it changes ``state``.

    Each example is visited as often at its turn as its weight says; the rest of a fraction is a
    shorter step. ``margin`` is θ.
    """

    def __init__(
        self, state: StructuredState, examples: Any, weight: Floats, margin: float, logged: bool
    ) -> None:
        self.state = state
        self.examples = examples
        self.squared_radius = 0.0  # the largest ‖d‖² of the updates made
        self.largest_loss = 0.0
        self.search_errors = 0  # times the decoder returned an output worse than the truth
        self.log: list[tuple[int, float, Cuts]] = []  # example, step, what came out
        self._weight, self._margin, self._logged = weight, margin, logged
        self._scaled = state.weights / margin if margin > 0 else np.zeros(0)
        self._blank = not state.weights.any()

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return Counts(*self.state.counters.tolist())

    def visit(self, order: Ints) -> Iterator[bool]:
        """Visit examples in the given order; yield after each visit whether all are done."""
        for k, i in enumerate(order):
            left = float(self._weight[i])
            while left > 0.0:
                left -= self._visit(i, left)
                yield left <= 0.0 and k == len(order) - 1

    def _visit(self, i: int, left: float) -> float:
        """Visit an example once, or as often as nothing changes; return how many visits it was."""
        w = self._scaled if self._margin > 0 else self.state.weights
        augmented = self._margin > 0 or self._blank
        cuts = self.examples.decode(np.array([i]), w, augmented)
        indices, values = cuts.at(0)
        if not values.any():  # also where another output has the same features
            self.state.counters[0] += left
            return left
        share, loss = min(left, 1.0), float(cuts.loss[0])
        terms = w[indices] * values
        lead, size = float(terms.sum()), float(np.abs(terms).sum())
        if not np.isfinite(size) or not values @ values < LARGEST_SQUARE:
            instead = f", or choose a margin above {self._margin:g}" if self._margin > 0 else ""
            raise ValueError(
                f"Example {i}: sums of products of its features overflow: scale them{instead}."
            )
        excess = lead - (loss if self._margin > 0 else 0.0)
        if excess > _ROUNDING * (size + loss):
            self.search_errors += excess > float(self.examples.errors(np.array([i]), w)[0])
        self.squared_radius = max(self.squared_radius, float(values @ values))
        self.largest_loss = max(self.largest_loss, loss)
        if self._logged:
            self.log.append((int(i), share, cuts))
        loops.perceptron.move_by(
            _as_row(indices, values), share, lead <= 0.0, self._margin, self.state.weights,
            self._scaled, self.state.lag, self.state.counters,
        )  # fmt: skip
        self._blank = False
        return share


def _as_row(indices: Any, values: Floats) -> Any:
    """Return a difference as the loops take a sparse row."""
    ends = np.array([0, len(values)])
    return loops.rows.Csr(read_only(values), read_only(indices), read_only(ends))


# ------------------------------------------------------------------- the estimator


class StructuredPerceptron(StructuredOutputs, OnlineLearner):
    """The perceptron over outputs with structure: decode, and where ŷ ≠ y, w += ψ(x,y) − ψ(x,ŷ).

    The model says what ψ is and how to find the output with the highest score ⟨w, ψ(x, y)⟩. On
    examples that some w gets all right it makes a bounded number of updates, whatever their order,
    and then stops by itself; see ``mistake_bound``. On others it never converges, and the mean of
    all its vectors (``averaged=True``, the default) is what to use.

    Parameters
    ----------
    model : mm.structured.Model
        What inputs and outputs are, and how they are scored: ``Multiclass`` or ``Chain`` of
        ``mm.structured``, or a class of your own derived from ``mm.structured.Model``.
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
    status_, stop_reason_, epochs_, n_iter_ :
        Why it stopped (an enum and a sentence), and after how many epochs.
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
    _stops = ("all_correct", "epochs", "one_pass")
    _advice = "use averaged=True, or raise max_epochs"
    _auto_visits = 2e4
    _most_epochs = 100

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

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self.check_parameters()
        last = self._state.weights if self.warm_start and hasattr(self, "status_") else None
        self._forget("status_", "trace_")  # if anything fails from here on, it is unfitted
        data = self._examples(X, y, sample_weight, reset=True)
        k = int(data.weight.argmax())
        if data.weight[k] > _MOST_VISITS:
            raise ValueError(
                f"sample_weight contains {data.weight[k]:g} (example {data.kept[k]}), which may be "
                "as many visits at one turn: divide all weights by a number that makes them "
                f"{_MOST_VISITS:g} at most."
            )
        start = np.zeros(data.examples.size) if last is None else last
        if len(start) != data.examples.size:
            raise ValueError(
                f"warm_start=True, but the last fit has {len(start)} weights and these data need "
                f"{data.examples.size}: fit a new estimator instead."
            )
        lag = np.zeros(len(start) if self.averaged else 0)
        state = StructuredState(start.copy(), lag, np.zeros(3))
        learner = StructuredLearner(
            state, data.examples, data.weight, float(self.margin), bool(self.trace)
        )
        epochs: list[Epoch] = []

        def all_correct(epoch: Epoch) -> Status | None:
            epochs.append(epoch)
            done = self.stop == "all_correct" and epoch.updates == 0.0
            return Status.ALL_CORRECT if done else None

        rng = generator(self.random_state) if self.shuffle else None
        run = self._run(learner, np.arange(len(data.kept)), all_correct, rng)
        self._adopt_model(data.model)
        self._adopt(learner, float(np.linalg.norm(start)))
        if self.trace:
            self.trace_ = _traced(learner, data.kept, start, epochs)
        self._report(run, learner.counts)
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

    @property
    def _stable(self) -> bool:
        return bool(self.averaged)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        self._check_model()
        super().check_parameters()
        if self.margin > 0:
            check_scale(self, "margin")  # w is divided by it
        check_flag(self, "averaged")

    def _adopt(self, learner: StructuredLearner, start_norm: float) -> None:
        """Set what was learnt; warn if the decoder missed what it claims to find."""
        self._state, self._start_norm = learner.state, start_norm
        self._fitted_margin = float(self.margin)  # the parameter may change
        self.coef_ = learner.state.mean()
        self.radius_ = math.sqrt(learner.squared_radius)
        self.largest_loss_ = learner.largest_loss
        self.search_errors_ = learner.search_errors
        if self.search_errors_ and self.model_.exact:
            warn(
                f"{type(self.model).__name__} claims to be exact, but at {self.search_errors_} "
                "updates the true output had a higher score than what decode returned: set "
                "exact = False, or correct decode.",
                UserWarning,
            )


def _traced(
    learner: StructuredLearner, rows: Ints, start: Floats, epochs: list[Epoch]
) -> StructuredTrace:
    made = joined_cuts([cuts for _, _, cuts in learner.log])
    return StructuredTrace(
        [epoch.mistakes for epoch in epochs],
        [epoch.updates for epoch in epochs],
        rows[[example for example, _, _ in learner.log]],
        np.array([step for _, step, _ in learner.log]),
        made.loss,
        made.outputs,
        sp.csr_array(made.matrix(len(start))),
        start,
    )
