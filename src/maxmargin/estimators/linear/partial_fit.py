"""``partial_fit`` of linear machines: chunks of rows, each seen once."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.estimators.machine import UNASKED
from maxmargin.estimators.reductions import Subproblem, refuse_other_scheme
from maxmargin.loops.records import Loss
from maxmargin.problems.problem import Intercept, Status
from maxmargin.solvers.subgradient import Learner
from maxmargin.validation.data import (
    check_labels,
    check_rows,
    check_targets,
    class_indices,
    regression_weights,
    row_weights,
    stream_classes,
)

_OF_A_FIT = (
    "certificate_", "alpha_", "slack_", "dual_coef_", "support_", "support_kind_", "n_support_",
    "margin_", "_signed_duals", "_support_rows", "_row_costs", "_row_labels", "trace_",
    "calibration_", "_known_duals",
)  # fmt: skip


def labelled_chunk(
    model: Any, y: Any, n_rows: int, classes: Any, sample_weight: Any
) -> tuple[Ints, Floats, Ints]:
    """Return labels by number and weights of the rows that have a weight, and which these are.

    Sets ``classes_``; the first chunk names them.
    """
    first = not hasattr(model, "status_")
    model.classes_ = stream_classes(model, classes, first)
    y = check_labels(y, n_rows)
    labels = class_indices(model.classes_, y)
    weight = row_weights(sample_weight, model.class_weight, model.classes_, y)
    kept = weighted_rows(weight, first)
    return labels[kept], weight[kept], kept


def weighted_rows(weight: Floats, first: bool) -> Ints:
    """Return the rows with a weight above 0, of which the first chunk needs one."""
    kept = np.flatnonzero(weight > 0)
    if first and len(kept) == 0:
        raise ValueError("The first chunk has no row with a weight above 0: start later.")
    return kept


class Stream(BaseEstimator):
    """What ``partial_fit`` of classifiers and regressors shares."""

    def _begin_stream(self, n_features: int, problems: int) -> None:
        """Make one learner per problem, unless an earlier chunk did."""
        if self.trace:
            raise ValueError("trace=True is for fit: partial_fit has no iterations to record.")
        if hasattr(self, "_learners"):
            return
        intercept = self._intercept()
        lift = 1.0 if intercept is Intercept.FREE else float(self.intercept_scaling)
        self._learners = [Learner(n_features, intercept, lift) for _ in range(problems)]
        if hasattr(self, "status_"):
            self._continue_from_fit()

    def _continue_from_fit(self) -> None:
        """Give the learners the weights of a fit, and moments of its support vectors."""
        rows, planes = self._support_rows, np.atleast_2d(self.coef_)
        seen = float(self.alpha_.shape[-1])
        for learner, w, b, beta in zip(
            self._learners, planes, self.intercept_, self.dual_coef_, strict=True
        ):
            lift = learner.lift**2
            squares, moments = np.zeros(len(w) + 1), np.zeros(len(w) + 1)
            if rows is not None and rows.shape[0]:
                squared = rows.multiply(rows) if hasattr(rows, "multiply") else rows * rows
                squares = np.append(squared.T @ beta**2, lift * (beta @ beta))
                mean = np.asarray(squared.mean(axis=0)).ravel()
                moments = seen * np.append(mean, lift)
            learner.adopt(w, float(b), squares, moments, seen)

    def _learn(self, X: Any, loss: list[Loss]) -> tuple[Floats, Floats]:
        """Visit the rows once, in order, for every problem; return mean weights and intercepts."""
        order = np.arange(X.shape[0])
        rows = loops.rows.rows(X)
        for learner, losses in zip(self._learners, loss, strict=True):
            # Not before there are rows again: until then, the mean is what the model is.
            if X.shape[0] and learner.clock >= 2 * max(learner.counted_from, 1000.0):
                learner.forget()
            for _ in learner.visit(rows, losses, order, 1.0, np.zeros(X.shape[0])):
                pass
        means = [learner.mean() for learner in self._learners]
        for name in _OF_A_FIT:
            self.__dict__.pop(name, None)
        self.status_ = Status.STREAM
        self.solver_ = "subgradient"
        self.n_iter_ = 1
        self.stop_reason_ = (
            f"After {self._learners[0].clock:.15g} visits: {Status.STREAM.value}. "
            "mm.certify(model, X, y) says how good the result is on any rows."
        )
        return np.array([w for w, _ in means]), np.array([b for _, b in means])


def _can_stream(model: Any) -> bool:
    """Return True, or raise if a parameter asks for something that needs all rows at once."""
    asked = {
        "penalty": model.penalty != "l2",
        "class_weight": isinstance(model.class_weight, str),
        "multi_class": model.multi_class != "ovr",
        "probability": model.probability not in UNASKED,
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise AttributeError(
                f"{name}={getattr(model, name)!r} needs all rows at once, which partial_fit does "
                "not have: use fit, or leave it out."
            )
    return True


class ClassifierStream(Stream):
    """``partial_fit`` for labels."""

    _scheme: str = "ovr"  # that of the last fit

    @available_if(_can_stream)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Visit the rows of one chunk once, in order, continuing from earlier chunks.

        Each visit is a subgradient step; ``solver`` is for ``fit``. The objective is that of all
        rows seen so far; the weights are means over the later visits, without duals or a
        certificate. Of several classes, each is learnt against the rest.

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
        first = not hasattr(self, "status_")
        X = check_rows(self, X, reset=first)
        if not first:
            refuse_other_scheme(self, self._scheme)
        self._scheme = self.multi_class
        labels, weight, kept = labelled_chunk(self, y, X.shape[0], classes, sample_weight)
        n_classes = len(self.classes_)
        self._begin_stream(X.shape[1], 1 if n_classes == 2 else n_classes)
        sides = [1] if n_classes == 2 else range(n_classes)
        X = X[kept]
        subproblems = [Subproblem(None, np.where(labels == k, 1.0, -1.0), k, -1) for k in sides]
        self._pairs = [(subproblem.positive, subproblem.negative) for subproblem in subproblems]
        form = self._form()
        self.coef_, self.intercept_ = self._learn(
            X, [form.loss(subproblem.signs, form.C * weight) for subproblem in subproblems]
        )
        return self


class RegressorStream(Stream):
    """``partial_fit`` for targets."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Visit the rows of one chunk once, in order, continuing from earlier chunks.

        Each visit is a subgradient step; ``solver`` is for ``fit``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next rows.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            As in ``fit``.

        Returns
        -------
        self
        """
        self.check_parameters()
        first = not hasattr(self, "status_")
        X = check_rows(self, X, reset=first)
        target = check_targets(y, X.shape[0])
        weight = regression_weights(sample_weight, len(target))
        kept = weighted_rows(weight, first)
        self._begin_stream(X.shape[1], 1)
        X = X[kept]
        form = self._form()
        planes, self.intercept_ = self._learn(X, [form.loss(target[kept], form.C * weight[kept])])
        self.coef_ = planes[0]
        return self
