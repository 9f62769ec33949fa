"""What kernel machines that classify share: pairs of classes, votes, and how duals are laid out."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.inputs import (
    check_classes,
    check_labels,
    check_weights,
    class_factors,
    class_indices,
    row_weights,
)
from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.estimators.kernel_models import Found, Pairs, Part, Training
from maxmargin.estimators.reductions import (
    ScoresOnly,
    Task,
    best_classes,
    binary_tasks,
    combined_scores,
)
from maxmargin.estimators.solving import Outcome

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ON_MARGIN = 1e-5  # slack up to which a support vector counts as lying on the margin


class KernelClassifier(ScoresOnly, ClassifierMixin, KernelMachine):
    """Base of SVC and NuSVC."""

    class_weight: Any
    decision_function_shape: str
    break_ties: bool

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_classifier()

    def _check_answers(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[Ints, Floats, Floats]:
        y = check_labels(y, n_rows)
        if reset:
            self.classes_ = check_classes(self, y)
        weight = check_weights(sample_weight, self.class_weight, self.classes_, y)
        check_classes(self, y[weight > 0])
        plain = row_weights(sample_weight, None, self.classes_, y)
        factors = class_factors(self.class_weight, self.classes_, y, plain)
        if reset:
            self.class_weight_ = factors
        labels = class_indices(self.classes_, y)
        return labels, plain, factors[labels]

    # ------------------------------------------------------------ pairs

    def _sides(self) -> int:
        return len(self.classes_) - 1

    def _layout(self) -> Pairs:
        return Pairs(len(self.classes_))

    def _parts(self, data: Training) -> list[Part]:
        tasks = binary_tasks(data.answers, len(self.classes_), "ovo")
        return [self._part(data, task) for task in tasks]

    def _part(self, data: Training, task: Task) -> Part:
        rows = np.arange(len(data)) if task.rows is None else task.rows
        first, second = sorted((task.positive, task.negative))
        sides = np.where(data.answers[rows] == first, second - 1, first)
        return self._binary(task, data.weight[rows], rows, sides)

    def _binary(self, task: Task, weight: Floats, rows: Ints, sides: Ints) -> Part:
        """Return the problem of two classes."""
        raise NotImplementedError

    def _planes_solved(self) -> Ints:
        number = self._layout().number
        return np.array([number[i, j - 1] for i, j in self._solved_pairs])

    # ------------------------------------------------------------ what was found

    def _adopt(self, data: Training, found: Found) -> None:
        layout = self._layout()
        # Against a class without weight any other wins; scores of classes leave it out.
        present = np.bincount(data.answers, minlength=len(self.classes_)) > 0
        fillers = [float(present[i]) - float(present[j]) for i, j in layout.pairs]
        self.intercept_, self._scales = np.array(fillers), np.ones(len(fillers))
        self._solved_pairs = [pair for pair in layout.pairs if present[list(pair)].all()]
        pairs = zip(self._planes_solved(), found.problems, found.outcomes, strict=True)
        for plane, problem, outcome in pairs:
            self._scales[plane], self.intercept_[plane] = self._placed(problem, outcome)
        divisors = np.where(self._scales > 0, self._scales, 1.0)
        per_side = divisors[layout.number[data.answers]].T
        labels = self._keep_support(data, found.duals, found.duals / per_side)
        self.n_support_ = np.bincount(labels, minlength=len(self.classes_)).astype(np.int32)

    def _placed(self, _problem: Any, outcome: Outcome) -> tuple[float, float]:
        """Return by what to divide a solution (0: by nothing), and its intercept afterwards."""
        return 1.0, outcome.certificate.intercept

    def _support_labels(self) -> Ints:
        return np.repeat(np.arange(len(self.classes_)), self.n_support_)

    def _coefficients(self) -> Floats:
        coefficients = np.asarray(self.dual_coef_, dtype=np.float64)
        return self._layout().spread(coefficients, self._support_labels()).T

    @property
    def _slacks(self) -> Floats:
        """ξ by (side, support vector)."""
        layout, labels = self._layout(), self._support_labels()
        by_side = layout.gathered((self._products() + self.intercept_).T, labels)
        return np.asarray(np.maximum(0.0, 1 - layout.sign[labels].T * by_side))

    def _iterations(self, counts: list[int]) -> Any:
        iterations = np.zeros(len(self.intercept_), dtype=np.int64)
        iterations[self._planes_solved()] = counts
        return iterations

    def _by_pair(self, values: Any) -> Any:
        """Return values by (side, support vector) by pair of classes; of two there is one."""
        pairs = self._layout().spread(values, self._support_labels())
        return pairs[0] if len(self.classes_) == 2 else pairs

    @property
    def alpha_(self) -> Floats:
        """Dual variables ≥ 0 of all rows, in each problem."""
        check_is_fitted(self)
        return self._among_rows(self._by_pair(np.abs(self.dual_coef_)))

    @property
    def slack_(self) -> Floats:
        """Slacks ξ of the support vectors, 0 for other rows, in each problem."""
        check_is_fitted(self)
        return self._among_rows(self._by_pair(self._slacks))

    @property
    def support_kind_(self) -> npt.NDArray[np.str_]:
        """What kind of support vector each is, in each problem."""
        check_is_fitted(self)
        slacks = self._slacks
        kinds = np.select(
            [self.dual_coef_ == 0, slacks <= _ON_MARGIN, slacks <= 1.0],
            ["", "margin", "inside"],
            "wrong side",
        )
        return np.asarray(self._by_pair(kinds))

    @property
    def margin_(self) -> Any:
        """1/‖w‖ in feature space, in each problem."""
        check_is_fitted(self)
        return float(self._margins()[0]) if len(self.classes_) == 2 else self._margins()

    # ------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of rows: neither distances (see ``distance``) nor probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with kernel="precomputed" their kernel values with all training rows, or with
            the support vectors only.

        Returns
        -------
        ndarray
            For two classes f, of shape (n_samples,). For more, with decision_function_shape="ovr",
            the number of pairs that each class wins, plus less than a half for the sum of its
            scores, which breaks ties: of shape (n_samples, n_classes). With "ovo" the scores of the
            pairs (0, 1), (0, 2), … (1, 2), …, positive for the first class of a pair.
        """
        scores = self._plane_scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return scores if self.decision_function_shape == "ovo" else self._votes(scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row: the best score; with two classes the second iff f > 0.

        Scores are those of decision_function_shape="ovr", whatever that parameter is; of classes
        with the very same score the first is taken.
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
        scores = self._plane_scores(X)
        best = scores[:, 0] if len(self.classes_) == 2 else self._votes(scores)
        return best_classes(best, self.classes_)

    def _votes(self, scores: Floats) -> Floats:
        pairs = self._solved_pairs
        return combined_scores(scores[:, self._planes_solved()], pairs, len(self.classes_))
