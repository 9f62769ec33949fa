"""Perceptrons with explicit weights."""

from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.estimators.inputs import refuse_overflow
from maxmargin.estimators.mistake_driven import Evidence, MistakeDriven
from maxmargin.estimators.parameters import check_choice, shown
from maxmargin.estimators.traces import LinearTrace, Trace
from maxmargin.separability.lifted import lifted_separator
from maxmargin.solve import Callback
from maxmargin.solvers.epochs import Epoch
from maxmargin.solvers.perceptron import LinearLearner, LinearState, linear_scores

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.init, str):
            check_choice(self, "init", ("zeros", "random"))

    def _begin(
        self, X: Any, labels: Ints, weight: Floats, rng: np.random.Generator
    ) -> LinearLearner:
        n_classes = len(self.classes_)
        shape = (X.shape[1],) if n_classes == 2 else (X.shape[1], n_classes)
        if self.warm_start and hasattr(self, "_state"):
            start = self._last_weights(shape)
        elif not isinstance(self.init, str):
            start = given_start(self.init, shape, self.fit_intercept)
        elif self.init == "zeros":
            start = np.zeros(shape), np.zeros(shape[1:] or 1)
        else:
            start = rng.random(shape), rng.random(shape[1:] or 1) * self.fit_intercept
        return self._learner(LinearState(*start, averaged=self._averaged), X, labels, weight)

    def _last_weights(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        last: tuple[Floats, Floats] = self._state.vector()
        if last[0].shape != shape:
            raise ValueError(
                f"warm_start=True, but the weights of the last fit have shape {last[0].shape} and "
                f"these data need {shape}: fit a new estimator instead."
            )
        return last

    def _resume(self, X: Any, labels: Ints, weight: Floats) -> LinearLearner:
        state: LinearState = deepcopy(self._state)  # if this chunk fails, nothing is lost
        if not (self._averaged or self._logged):
            # Here the model is the last vector, and whoever edits it expects to go on from that.
            state.weights = np.array(self.coef_.T, order="C").reshape(state.weights.shape)
            state.intercept = np.array(self.intercept_)
        return self._learner(state, X, labels, weight)

    def _learner(self, state: LinearState, X: Any, labels: Ints, weight: Floats) -> LinearLearner:
        learner = LinearLearner(state, self._rule(), X, labels, weight)
        refuse_overflow(self, X, learner.squared_radius)
        return learner

    def _model(self, state: LinearState) -> tuple[Floats, Floats]:
        """Return the weights and intercept that ``coef_`` and ``intercept_`` will hold."""
        return state.vector()

    def _scores(self, X: Any) -> Floats:
        return linear_scores(X, self.coef_.T, self.intercept_)

    def _scores_of(self, learner: LinearLearner, rows: Ints) -> Floats:
        return learner.scores(*self._model(learner.state))[rows]

    def _adopt(self, learner: LinearLearner, _rows: Ints, resumed: bool) -> None:
        weights, intercept = self._model(learner.state)
        if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
            raise ValueError(f"The weights overflow with eta={self.eta}: choose a smaller one.")
        self._state = learner.state
        self.coef_ = weights.reshape(len(weights), -1).T.copy()
        self.intercept_ = intercept.copy()

    def _trace(self, learner: LinearLearner, rows: Ints, history: list[Epoch]) -> LinearTrace:
        lift = float(self.fit_intercept)
        epochs = Trace.of(history)
        return LinearTrace.rebuilt(epochs, learner.updates(), rows, learner.X, learner.began, lift)

    def _evidence(self, learner: LinearLearner) -> list[Evidence]:
        vectors = [self._model(learner.state)]
        if self._averaged:
            vectors.append(learner.state.vector())
        return [_evidence_of(learner, *vector) for vector in vectors]

    def _separators(self, learner: LinearLearner, labels: Ints, rows: Ints) -> list[Evidence]:
        if len(self.classes_) > 2:
            return []
        X = learner.X if len(rows) == len(labels) else learner.X[rows]
        best = lifted_separator(X, labels[rows] == 1, self.fit_intercept)
        return [] if best is None else [_evidence_of(learner, best[0], np.array([best[1]]))]


def _evidence_of(learner: LinearLearner, weights: Floats, intercept: Floats) -> Evidence:
    return Evidence(
        learner.scores(weights, intercept),
        float(np.linalg.norm(weights)),
        float(np.linalg.norm(intercept)),
    )


def given_start(init: Any, shape: tuple[int, ...], fit_intercept: bool) -> tuple[Floats, Floats]:
    """Return weights and intercept from an array of weights, or a pair of weights and intercept."""
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
