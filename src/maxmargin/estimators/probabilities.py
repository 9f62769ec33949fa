"""Probabilities of classes from the scores of a classifier.

A sigmoid or a softmax of the scores is fitted by its log-loss to what machines fitted without a row
say about that row (``left_out.py``): scores of rows that a machine has learnt would be too sure.

    two classes            p = 1/(1 + exp(−a f − b))                 Platt (1999)
    every two classes      the same for each pair, then coupled      Wu, Lin and Weng (2004)
    one score per class    p proportional to exp(a s + b), with a b for each class

The targets are not 0 and 1: a row of a class whose rows weigh N in all has (N + 1)/(N + 2) for its
own class, and the other classes share what is left. (With 1/(N + K) for each of K others, ten
classes of a hundred rows would aim at 92 %, and log-losses on digits and pendigits are up to twice
as large.) Where the predicted class is not the most probable one, it is made so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators.formulations import Training
from maxmargin.estimators.left_out import (
    Contents,
    LeftOut,
    SolvedProblem,
    leave_out,
    leave_out_jointly,
)
from maxmargin.estimators.machine import UNASKED, Formulated, solver_settings
from maxmargin.estimators.reductions import combined_scores
from maxmargin.problems.problem import MulticlassProblem
from maxmargin.runtime import clock
from maxmargin.solve import Result, Settings

_LEAST = 1e-7  # probabilities of pairs keep this far from 0 and 1
_BLOCK = 1 << 22  # numbers in the systems that are solved at a time
_MOST_STEPS = 100  # of Newton's method, which needs some ten
_SHARE_OF_TIME = 0.2  # of max_time, that is kept for probabilities
_NEAR = 1e-9  # of the loss: if a step gains less, the next ones have all digits
_LAST_STEPS = 3
_RIDGE = 1e-14  # of the trace of second derivatives, which may be singular: equal scores


# ------------------------------------------------------------------- from scores to probabilities


@dataclass(frozen=True, eq=False)
class Calibration:
    """How scores become probabilities.

    Attributes
    ----------
    slope : ndarray of shape (1,) or (n_pairs,)
        a ≥ 0, of each pair of classes.
    offset : ndarray of shape (1,), (n_pairs,) or (n_classes,)
        b, of each pair; or of each class that has rows.
    classes : tuple
        The pairs (i, j) that scores are about, i being positive; j = −1: one score per class.
    n_classes : int
        How many classes there are.
    source : str
        How the scores that they were fitted to were found: "span", "leave-one-out" or "5 folds";
        or "LIBSVM file", which does not say so.
    """

    slope: Floats
    offset: Floats
    classes: tuple[tuple[int, int], ...]
    n_classes: int
    source: str

    def __repr__(self) -> str:
        return f"<Calibration of {self.n_classes} classes by left-out scores ({self.source})>"

    def probabilities(self, scores: Floats, ranks: Ints | None = None) -> Floats:
        """Return probabilities of shape (n, K) from the scores of the planes, a column for each.

        ``ranks`` of classes break ties, as in ``combined_scores``.
        """
        if self.n_classes == 2:
            return _two_sides(self.slope[0] * scores[:, 0] + self.offset[0], scores[:, 0] > 0)
        if all(other >= 0 for _, other in self.classes):
            r = expit(self.slope * scores + self.offset)
            p = couple_pairs(r, list(self.classes), self.n_classes)
        else:
            p = np.zeros((len(scores), self.n_classes))
            own = [one for one, _ in self.classes]
            p[:, own] = softmax(self.slope[0] * scores + self.offset, axis=1)
        best = combined_scores(scores, list(self.classes), self.n_classes, ranks).argmax(axis=1)
        return most_probable(p, best)


def calibrate(
    labels: Ints,
    weight: Floats,
    classes: list[tuple[int, int]],
    n_classes: int,
    left: list[LeftOut],
) -> Calibration:
    """Return the calibration by scores that rows have when they are left out.

    ``left`` has the scores of each plane, which lies between these classes; labels and weights are
    those of all rows.
    """
    source = ", ".join(dict.fromkeys(each.source for each in left))
    if n_classes == 2 or all(other >= 0 for _, other in classes):
        fits = [fit_sigmoid(each.scores, labels[each.rows] == one, weight[each.rows])
                for each, (one, _) in zip(left, classes, strict=True)]  # fmt: skip
        slope, offset = np.array(fits).T
    else:
        scores = np.column_stack([each.scores for each in left])
        place = np.searchsorted([one for one, _ in classes], labels)
        a, offset = fit_softmax(scores, place, weight)
        slope = np.array([a])
    return Calibration(slope, offset, tuple(classes), n_classes, source)


def _two_sides(z: Floats, second: npt.NDArray[np.bool_]) -> Floats:
    """Return the probabilities of two classes, the predicted one not below ½."""
    p = np.column_stack([expit(-z), expit(z)])
    above = np.nextafter(0.5, 1.0)
    p[second & (p[:, 1] <= 0.5)] = 1 - above, above
    p[~second & (p[:, 1] > 0.5)] = 0.5
    return p


def most_probable(p: Floats, best: Ints) -> Floats:
    """Return probabilities among which that of the best class is the largest.

    Where it is not, it and those above it all get their mean, and it the next float.
    """
    out = p.copy()
    for i in np.flatnonzero(p.argmax(axis=1) != best):
        own = p[i, best[i]]
        above = p[i] > own
        above[best[i]] = True
        mean = max(p[i, above].mean(), own)
        out[i, above] = mean
        out[i, best[i]] = np.nextafter(mean, np.inf)
    return out


# ------------------------------------------------------------------- the least log-loss


def fit_sigmoid(scores: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> Floats:
    """Return a ≥ 0 and b of 1/(1 + exp(−a f − b)) with the least log-loss.

    Both classes have rows.
    """
    size = float(np.abs(scores).max()) or 1.0
    S, labels = scores / size, positive.astype(np.intp)
    target = np.where(positive, *_targets(labels, weight, 2)[[1, 0], 1])
    prior = float(weight @ target / weight.sum())
    flat = np.array([0.0, np.log(prior / (1 - prior))])

    def log_loss(x: Floats) -> float:
        z = x[0] * S + x[1]
        return float(weight @ (np.logaddexp(0.0, z) - target * z))

    def derivatives(x: Floats) -> tuple[Floats, Floats]:
        p = expit(x[0] * S + x[1])
        off, curve = weight * (p - target), weight * (p * (1 - p))
        mixed = curve @ S
        H = np.array([[(curve * S) @ S, mixed], [mixed, curve.sum()]])
        return np.array([off @ S, off.sum()]), H

    x = _minimise(flat, log_loss, derivatives)
    return x / [size, 1.0] if x[0] > 0 else flat


def fit_softmax(scores: Floats, labels: Ints, weight: Floats) -> tuple[float, Floats]:
    """Return a ≥ 0 and b, Σb = 0, of the softmax of a s + b with the least log-loss.

    Scores have a column for each class, and each class has rows.
    """
    n_classes = scores.shape[1]
    S = scores - scores.mean(axis=1, keepdims=True)  # nothing but differences counts
    size = float(np.abs(S).max()) or 1.0
    S /= size
    target = _targets(labels, weight, n_classes)[labels]
    flat = np.log(weight @ target)
    flat = np.concatenate([[0.0], flat - flat.mean()])

    def log_loss(x: Floats) -> float:
        return -float(weight @ (target * log_softmax(x[0] * S + x[1:], axis=1)).sum(axis=1))

    def derivatives(x: Floats) -> tuple[Floats, Floats]:
        P = softmax(x[0] * S + x[1:], axis=1)
        off, WP = weight[:, np.newaxis] * (P - target), weight[:, np.newaxis] * P
        away = S - (P * S).sum(axis=1, keepdims=True)
        H = np.empty((len(x), len(x)))
        H[0, 0] = (WP * S * away).sum()
        H[0, 1:] = H[1:, 0] = (WP * away).sum(axis=0)
        H[1:, 1:] = np.diag(WP.sum(axis=0)) - P.T @ WP
        H[1:, 1:] += np.trace(H)  # along equal b, where the loss is constant: Σb stays 0
        return np.concatenate([[(off * S).sum()], off.sum(axis=0)]), H

    x = _minimise(flat, log_loss, derivatives)
    x = x if x[0] > 0 else flat
    return float(x[0]) / size, x[1:] - x[1:].mean()


def _targets(labels: Ints, weight: Floats, n_classes: int) -> Floats:
    """Return what a row of each class should have in each class."""
    totals = np.bincount(labels, weight, minlength=n_classes)[:, np.newaxis]
    own, others = np.eye(n_classes), max(n_classes - 1, 1)
    return np.asarray(np.where(own, totals + 1, 1.0 / others) / (totals + 2))


def _minimise(
    x: Floats,
    loss_of: Callable[[Floats], float],
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
) -> Floats:
    """Return where a smooth convex loss is least, by Newton's method with halved steps."""
    loss, last = loss_of(x), 0
    for _ in range(_MOST_STEPS):
        clock.check()
        gradient, H = derivatives(x)
        H[np.diag_indices(len(x))] += _RIDGE * (np.trace(H) + np.finfo(float).tiny)
        step = -np.linalg.solve(H, gradient)
        promised = -float(gradient @ step)
        if promised <= _NEAR * loss:  # from here on rounding hides what a step gains
            x, last = x + step, last + 1
            if last == _LAST_STEPS:
                break
            continue
        for _ in range(_MOST_STEPS):
            if (found := loss_of(x + step)) <= loss - 1e-4 * promised:
                break
            step, promised = 0.5 * step, 0.5 * promised
        else:  # numbers too large for float64
            break
        x, loss = x + step, found
    return x


# ------------------------------------------------------------------- pairs


def couple_pairs(pairwise: Floats, pairs: list[tuple[int, int]], n_classes: int) -> Floats:
    """Return probabilities of classes, of shape (n, K), from those of pairs, of shape (n, pairs).

    ``pairwise[:, k]`` is r(i, j), the probability of class i if it is either i or j, for the k-th
    pair (i, j). The probabilities p minimise Σ over i ≠ j of (r(j, i) p(i) − r(i, j) p(j))² and
    add up to 1 (Wu, Lin and Weng, JMLR 5, 2004, second method). A class in no pair has p = 0.
    """
    p = np.zeros((len(pairwise), n_classes))
    present = np.unique(np.ravel(pairs)).astype(np.intp)
    place = np.full(n_classes, -1)
    place[present] = np.arange(len(present))
    first, second = place[np.array(pairs).reshape(-1, 2)].T
    rows = max(1, _BLOCK // len(present) ** 2)
    for start in range(0, len(pairwise), rows):
        own = slice(start, start + rows)
        r = np.clip(pairwise[own], _LEAST, 1 - _LEAST)
        p[own, present] = _couple(r, first, second, len(present))
    return p


def _couple(r: Floats, first: Floats, second: Floats, n_classes: int) -> Floats:
    # Qp = λ1 and Σp = 1 at the minimum, with Q(i, i) = Σ r(j, i)², Q(i, j) = −r(j, i) r(i, j);
    # (Q + 11ᵀ)p is a multiple of 1 then, too, and that matrix is positive definite.
    Q = np.ones((len(r), n_classes, n_classes))
    Q[:, first, second] -= r * (1 - r)
    Q[:, second, first] -= r * (1 - r)
    diagonal = np.zeros((len(r), n_classes))
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        diagonal[:, i] += (1 - r[:, k]) ** 2
        diagonal[:, j] += r[:, k] ** 2
    each = np.arange(n_classes)
    Q[:, each, each] += diagonal
    p = np.linalg.solve(Q, np.ones((len(r), n_classes, 1)))[..., 0]
    p = np.maximum(p, 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


# ------------------------------------------------------------------- classifiers


class _OnlyIfAsked:
    """A method that exists only for probability=True; otherwise its absence says so."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method, self.__doc__ = method, method.__doc__

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self._method
        if model.probability not in UNASKED:
            return MethodType(self._method, model)
        raise AttributeError(
            f"This {type(model).__name__} has no {self._method.__name__}: its scores are not "
            f"probabilities. {type(model).__name__}(probability=True) has it once it is fitted; "
            "decision_function ranks rows without it."
        )


class Probabilistic:
    """Gives a classifier ``predict_proba`` if its parameter ``probability`` is True."""

    probability: Any
    max_time: float | None
    classes_: npt.NDArray[Any]
    calibration_: Calibration

    @_OnlyIfAsked
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, in the order of ``classes_``.

        The most probable class is what ``predict`` says.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As in ``predict``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows add up to 1. A class without weight in the training data has probability 0.
        """
        scores = self._plane_scores(X)
        if not hasattr(self, "calibration_"):
            raise self._uncalibrated()
        return self.calibration_.probabilities(scores, getattr(self, "_tie_order", None))

    @_OnlyIfAsked
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):  # a class without weight
            return np.asarray(np.log(self.predict_proba(X)))

    def _plane_scores(self, X: Any) -> Floats:
        """Return the scores of the planes that were solved for, in the order of subproblems."""
        raise NotImplementedError

    def _uncalibrated(self) -> NotFittedError:
        return NotFittedError(
            "predict_proba is not available when fitted with probability=False, or when max_time "
            "or Ctrl-C ended the fit before probabilities were found: fit this "
            f"{type(self).__name__} again."
        )

    def _time_to_solve(self) -> float | None:
        """Return the seconds for solving: some of ``max_time`` is for the probabilities."""
        if self.max_time is None or self.probability in UNASKED:
            return self.max_time
        return (1 - _SHARE_OF_TIME) * self.max_time

    def _calibrate(self, formulated: Formulated, results: list[Result]) -> None:
        """Fit what turns scores into probabilities."""
        form: Any = formulated.form
        data, problems = formulated.data, formulated.problems
        settings = solver_settings(self, silent=True)
        seconds = sum(result.seconds for result in results)
        if isinstance(problems[0], MulticlassProblem):
            point, classes = results[0].point, [(int(k), -1) for k in np.unique(data.y)]
            leave = partial(leave_out_jointly, problems[0], point, settings=settings)
            self._calibrate_by(data, classes, leave, seconds)
            return
        machines = []
        for problem, result, rows in zip(problems, results, form.rows(data), strict=True):
            soft, point = form.as_soft_margin(problem, form.plane(problem, result))
            machines.append(SolvedProblem(soft, point, rows))
        self._calibrate_machines(data, form.scheme, machines, settings, seconds)

    def _calibrate_machines(
        self,
        data: Training,
        scheme: str,
        machines: list[SolvedProblem],
        settings: Settings,
        seconds: float,
    ) -> None:
        """Fit what turns scores into probabilities, by solutions that took these seconds."""

        def leave(contents: Contents) -> list[LeftOut]:
            return [
                leave_out(machine, contents, settings, 1 / (len(machines) - k))
                for k, machine in enumerate(machines)
            ]

        classes = [(each.positive, each.negative) for each in data.subproblems(scheme)]
        self._calibrate_by(data, classes, leave, seconds)

    def _calibrate_by(
        self,
        data: Training,
        classes: list[tuple[int, int]],
        leave: Callable[[Contents], list[LeftOut]],
        seconds: float,
    ) -> None:
        kernel, left = getattr(self, "kernel_", None), None
        if self.max_time is not None:
            left = max(self.max_time - seconds, _SHARE_OF_TIME * self.max_time)
        contents = Contents(data.X, data.y, kernel is not None and kernel.takes_gram)
        try:
            with clock.limited(left):
                self.calibration_ = calibrate(
                    data.y, data.weight, classes, len(self.classes_), leave(contents)
                )
        except clock.OutOfTimeError:
            warn(
                f"max_time={self.max_time!r} ran out before probabilities were found: predict "
                "works, predict_proba does not. Raise max_time.",
                ConvergenceWarning,
            )
