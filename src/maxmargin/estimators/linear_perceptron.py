"""Perceptrons with explicit weights."""

from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.estimators.inputs import refuse_overflow
from maxmargin.estimators.mistake_driven import Evidence, MistakeDriven
from maxmargin.estimators.parameters import check_choice
from maxmargin.estimators.perceptron_rules import LinearTrace
from maxmargin.solve import Callback
from maxmargin.solvers.perceptron import LinearLearner, linear_scores

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

    def _begin(self, X: Any, rng: np.random.Generator) -> LinearLearner:
        n_classes = len(self.classes_)
        shape = (X.shape[1],) if n_classes == 2 else (X.shape[1], n_classes)
        if self.warm_start and hasattr(self, "_learner"):
            start = self._last_weights(shape)
        elif not isinstance(self.init, str):
            start = given_start(self.init, shape, self.fit_intercept)
        elif self.init == "zeros":
            start = np.zeros(shape), np.zeros(shape[1:] or 1)
        else:
            start = rng.random(shape), rng.random(shape[1:] or 1) * self.fit_intercept
        return LinearLearner(*start, self._settings())

    def _check_scale(self, learner: LinearLearner) -> None:
        refuse_overflow(self, learner.X, learner.squared_radius)

    def _last_weights(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        last: tuple[Floats, Floats] = self._learner.snapshot()
        if last[0].shape != shape:
            raise ValueError(
                f"warm_start=True, but the weights of the last fit have shape {last[0].shape} and "
                f"these data need {shape}: fit a new estimator instead."
            )
        return last

    def _resume(self) -> LinearLearner:
        learner: LinearLearner = deepcopy(self._learner)  # if this chunk fails, nothing is lost
        learner.settings, learner.resumed = self._settings(), True
        return learner

    def _model(self, learner: LinearLearner) -> tuple[Floats, Floats]:
        """Return the weights and intercept that ``coef_`` and ``intercept_`` will hold."""
        return learner.snapshot()

    def _scores(self, X: Any) -> Floats:
        return linear_scores(X, self.coef_.T, self.intercept_)

    def _scores_of(self, learner: LinearLearner, rows: Ints) -> Floats:
        return learner.scores_of(*self._model(learner))[rows]

    def _adopt(self, learner: LinearLearner) -> None:
        weights, intercept = self._model(learner)
        if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
            raise ValueError(f"The weights overflow with eta={self.eta}: choose a smaller one.")
        self.coef_ = weights.reshape(len(weights), -1).T.copy()
        self.intercept_ = intercept.copy()
        if self.trace:
            self.trace_ = linear_trace(learner, *self._history)
        self._learner = learner.without_rows()

    def _evidence(self, learner: LinearLearner) -> list[Evidence]:
        vectors = [self._model(learner)]
        if self._averaged:
            vectors.append(learner.snapshot())
        return [
            Evidence(
                learner.scores_of(weights, intercept),
                float(np.linalg.norm(weights)),
                float(np.linalg.norm(intercept)),
            )
            for weights, intercept in vectors
        ]


def given_start(init: Any, shape: tuple[int, ...], fit_intercept: bool) -> tuple[Floats, Floats]:
    """Return weights and intercept from an array of weights, or a pair of weights and intercept."""
    d, outputs = shape[0], 1 if len(shape) == 1 else shape[1]
    weights, intercept = init if isinstance(init, tuple) else (init, np.zeros(outputs))
    weights = np.array(weights, dtype=np.float64)
    intercept = np.array(intercept, dtype=np.float64).reshape(-1)
    if weights.size != d * outputs or intercept.shape != (outputs,):
        raise ValueError(
            f"init must be an array of weights of shape ({outputs}, {d}), or a pair of such "
            f"weights and {outputs} intercept(s); got shapes {weights.shape} and {intercept.shape}."
        )
    if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
        raise ValueError("init contains NaN or infinity.")
    if intercept.any() and not fit_intercept:
        raise ValueError("init gives an intercept, but fit_intercept=False: leave one of them out.")
    return np.ascontiguousarray(weights.reshape(outputs, d).T).reshape(shape), intercept


def linear_trace(learner: LinearLearner, mistakes: list[float], counts: list[float]) -> LinearTrace:
    """Return the course of a fit, with the weights after each update rebuilt from the rows."""
    updates = learner.updates()
    moved = learner.X[updates.row].astype(np.float64)
    moved = moved.toarray() if hasattr(moved, "toarray") else moved
    weights, intercept = learner.began
    outputs = len(intercept)
    steps = np.zeros((len(updates.row), outputs))
    if outputs == 1:
        steps[:, 0] = updates.step
    else:
        each = np.arange(len(updates.row))
        steps[each, updates.label] += updates.step
        steps[each, updates.rival] -= updates.step
    first = weights.reshape(moved.shape[1], outputs).T[np.newaxis]
    path = np.concatenate([first, steps[:, :, np.newaxis] * moved[:, np.newaxis, :]])
    lifts = steps * learner.settings.fit_intercept
    return LinearTrace(
        mistakes,
        counts,
        *(updates.row, updates.step, updates.label, updates.rival),
        np.cumsum(path, axis=0),
        np.cumsum(np.concatenate([intercept[np.newaxis], lifts]), axis=0),
    )
