"""What kernel machines share: from rows to problems, solving them, and what was found.

A machine is one problem or several (``Part``) over the same rows, with the same Gram matrix. Its
duals lie in an array (sides, rows): see ``Part``.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import together
from maxmargin.estimators.reductions import (
    ScoresOnly,
    Task,
    best_classes,
    binary_tasks,
    combined_scores,
)
from maxmargin.estimators.svm.parts import Found, Pairs, Part, Training, matches
from maxmargin.estimators.svm.prediction import KernelExpansion
from maxmargin.kernels import Kernel, Linear
from maxmargin.loops.records import Loss
from maxmargin.problems.duality import within_groups
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, KernelProblem, Point, Problem, Status
from maxmargin.solve import Budget, Result, gap_left, ill_scaled, solve_all
from maxmargin.validation.data import (
    check_classes,
    check_labels,
    check_targets,
    check_weights,
    class_factors,
    class_indices,
    regression_weights,
    row_weights,
)

# ------------------------------------------------------------------- kernel starts
#
# Warm starts of kernel machines: the duals of the rows that were there before.


class Last(NamedTuple):
    """What the last fit leaves to a warm start."""

    vectors: Any
    labels: Ints
    support: Ints
    duals: Floats  # by (side, support vector)
    n_rows: int
    classes: list[Any]
    planes: tuple[Floats, Floats] | None  # of the linear kernel


def known_duals(data: Training, labels: Ints, last: Last) -> Floats | None:
    """Return the duals of the last fit by (side, row), 0 for new rows; None if none is known.

    Rows are the same if their numbers and labels are; if none is, and there are as many rows as
    before, they go by position. (Kernel values and objects always do.)
    """
    old, new = _same_rows(data, labels, last)
    if not len(old) and last.n_rows == data.n_rows:
        place = np.full(data.n_rows, -1)
        place[data.kept] = np.arange(len(data))
        old = np.flatnonzero(place[last.support] >= 0)
        new = place[last.support[old]]
    if not len(old):
        return None
    duals = np.zeros((len(last.duals), len(data)))
    duals[:, new] = last.duals[:, old]
    return duals


def _same_rows(data: Training, labels: Ints, last: Last) -> tuple[Ints, Ints]:
    X, vectors = data.X, last.vectors
    comparable = (
        not (data.kernel.takes_gram or data.kernel.takes_objects)
        and sp.issparse(vectors) == sp.issparse(X)
        and vectors.dtype == X.dtype
    )
    if not comparable:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return matches(vectors, last.labels, X, labels)


# -------------------------------------------------------------------


class KernelMachine(KernelExpansion):
    """Base of SVC, NuSVC, SVR, NuSVR and OneClassSVM."""

    warm_start: bool

    # ------------------------------------------------------------ for subclasses

    def _check_answers(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[Any, Floats, Any]:
        """Return labels or targets, weights, and the factors that classes put on these."""
        raise NotImplementedError

    def _parts(self, data: Training) -> list[Part]:
        """Return the problems."""
        raise NotImplementedError

    def _adopt(self, data: Training, found: Found) -> None:
        """Set what the solutions say about the model."""
        raise NotImplementedError

    def _sides(self) -> int:
        """Return how many duals a row has."""
        return 1

    def _point(self, plane: int) -> tuple[float, Any]:
        """Return by what a problem's solution was divided, and the intercepts of its groups."""
        return 1.0, self.intercept_[plane]

    def _support_labels(self) -> Ints:
        return np.zeros(len(self.support_), dtype=np.int64)

    def _training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        """Check everything, and leave out the rows without weight."""
        X = self._check_input(X, reset=reset)
        n_rows = X.shape[0]
        answers, weight, factors = self._check_answers(y, n_rows, sample_weight, reset)
        present = np.flatnonzero(weight > 0)
        if reset:
            self.shape_fit_ = tuple(X.shape)
            kernel = self._settled(X, weight, present)
        else:
            kernel = self.kernel_
        weight = weight * factors
        kept = present[weight[present] > 0]
        if len(getattr(self, "classes_", ())) > 2 and not kernel.takes_gram:
            # Then the columns of a pair of classes are two runs.
            kept = kept[np.argsort(answers[kept], kind="stable")]
        answers = None if answers is None else answers[kept]
        return Training(_taken(X, kept, kernel), answers, weight[kept], kept, n_rows, kernel)

    def _settled(self, X: Any, weight: Floats, present: Ints) -> Kernel:
        """Return the kernel with numbers for all its parameters: weights are repetitions."""
        kernel = self._named_kernel(self._of_objects(X))
        if kernel.takes_gram or kernel.takes_objects:
            return kernel
        weight = weight[present]
        rows = X if len(present) == X.shape[0] else X[present]
        return kernel.resolved(rows, None if (weight == weight[0]).all() else weight)

    # ------------------------------------------------------------ fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_parameters()
        budget = Budget(self.max_time)
        last = self._last() if self.warm_start and hasattr(self, "status_") else None
        self._forget()  # whatever fails from here on leaves it unfitted
        data = self._training(X, y, sample_weight, reset=True)
        parts = self._parts(data)
        problems = self._stated(data, parts)
        results = self._solve(problems, self._starts(data, parts, last), budget)
        self.kernel_ = data.kernel
        self._gamma = float(getattr(data.kernel, "gamma", 0.0))
        found = self._found(data, parts, problems, results)
        self._adopt(data, found)
        self._keep_weights(data, found)
        self._report(self._as_stored(problems, results), data)

    def _found(
        self, data: Training, parts: list[Part], problems: list[Any], results: list[Result]
    ) -> Found:
        duals = np.zeros((self._sides(), len(data)))
        for part, result in zip(parts, results, strict=True):
            duals[part.sides, part.rows] = self._by_variable(part, result.point.beta)
        return Found(problems, results, duals)

    def _stated(self, data: Training, parts: list[Part]) -> list[Any]:
        """Return the parts as problems that can be solved; they share one Gram matrix."""
        if self._by_linear_machine(data.kernel):
            return [self._linear_problem(data, part) for part in parts]
        gram = Gram(data.kernel, data.X, memory=self._bytes(), threads=self._threads())
        return [
            KernelProblem(gram, part.loss, part.rows, part.groups, part.totals) for part in parts
        ]

    def _linear_problem(self, data: Training, part: Part) -> Problem:
        X = data.X if len(part.rows) == len(data) else data.X[part.rows]
        return Problem(X, part.loss, Intercept.FREE if len(part.totals) else Intercept.NONE)

    def _by_variable(self, _part: Part, beta: Floats) -> Floats:
        """Return the duals of a solution, of which the linear machine may have fewer."""
        return beta

    def _for_linear(self, beta: Floats) -> Floats:
        """Return the duals of a part as the linear machine has them."""
        return beta

    def _solve(self, problems: list[Any], starts: list[Point], budget: Budget) -> list[Result]:
        return solve_all(problems, starts, self._settings(), budget)

    def _as_stored(self, _problems: list[Any], results: list[Result]) -> list[Result]:
        """Return the results certified with the intercepts that the model has."""
        return results

    def _forget(self) -> None:
        for name in ("status_", "trace_"):
            self.__dict__.pop(name, None)

    # ------------------------------------------------------------ going on from the last fit

    def _last(self) -> Last:
        linear = type(self.kernel_) is Linear
        return Last(
            self.support_vectors_,
            self._support_labels(),
            self.support_,
            self._duals,
            self.shape_fit_[0],
            self._class_list(),
            (self.coef_, self.intercept_) if linear else None,
        )

    def _class_list(self) -> list[Any]:
        return list(np.asarray(getattr(self, "classes_", [])).tolist())

    def _labels(self, data: Training) -> Ints:
        """Return the classes of rows, which are all of one where there are none."""
        if hasattr(self, "classes_"):
            return np.asarray(data.answers)
        return np.zeros(len(data), dtype=np.int64)

    def _starts(self, data: Training, parts: list[Part], last: Last | None) -> list[Point]:
        """Return where to start each problem: at the last solution, as far as rows are the same."""
        if last is None or last.classes != self._class_list():
            return [Point() for _ in parts]
        duals = known_duals(data, self._labels(data), last)
        if duals is None:
            return [Point() for _ in parts]
        return [self._start(data, part, duals, last, k) for k, part in enumerate(parts)]

    def _start(self, data: Training, part: Part, duals: Floats, last: Last, plane: int) -> Point:
        beta = duals[part.sides, part.rows]
        # Rows that came, went or changed their weight leave duals that are not feasible.
        beta, _ = within_groups(part.loss, beta, part.groups, part.totals)
        if not self._by_linear_machine(data.kernel):
            return Point(beta=beta)
        beta = self._for_linear(beta)
        if last.planes is None or last.planes[0].shape[1] != data.X.shape[1]:
            return Point(beta=beta)
        return Point(np.array(last.planes[0][plane]), float(last.planes[1][plane]), beta)

    # ------------------------------------------------------------ what was found

    def _keep_support(self, data: Training, duals: Floats, coefficients: Floats) -> Ints:
        """Keep the rows that have a part in f or in the bound, by class; return their classes."""
        used = np.flatnonzero((duals != 0).any(axis=0) | (coefficients != 0).any(axis=0))
        labels = self._labels(data)
        used = used[np.lexsort((data.kept[used], labels[used]))]
        self.support_ = data.kept[used]
        self._duals, self.dual_coef_ = duals[:, used], coefficients[:, used]
        self.support_vectors_ = data.X[:0] if data.kernel.takes_gram else data.X[used]
        self._places = used
        return np.asarray(labels[used])

    def _keep_weights(self, data: Training, found: Found) -> None:
        """Keep what support vectors and duals do not give back."""
        used = self.__dict__.pop("_places")
        self.__dict__.pop("_weights", None)
        a = self._coefficients()
        if self._by_linear_machine(data.kernel):
            # The weights that were certified; the duals give them back up to the gap.
            self._weights = np.zeros((a.shape[1], data.X.shape[1]))
            self._weights[self._planes_solved()] = [one.point.w for one in found.results]
            self._weights_of = self.dual_coef_.copy()
        elif data.kernel.takes_gram or not len(used):
            support = found.problems[0].gram.exact[used]
            self._given_products = data.kernel.dot(support, support, a)
        self._keep_answers(data, used)

    def _planes_solved(self) -> Any:
        return slice(None)

    def _keep_answers(self, data: Training, used: Ints) -> None:
        """Keep what else is asked about support vectors later."""

    def _report(self, results: list[Result], data: Training) -> None:
        """Set what is said about solving, and warn when it ended without what was asked for."""
        self.certificate_ = together([result.certificate for result in results])
        statuses = [each.status for each in results if each.status is not Status.OPTIMAL]
        # What stopped the fit early says more than that a kernel is indefinite.
        statuses.sort(key=lambda status: status is Status.STATIONARY)
        self.status_ = statuses[0] if statuses else Status.OPTIMAL
        self.fit_status_ = int(bool(statuses))
        self.n_iter_ = self._iterations([result.iterations for result in results])
        self.solver_ = ", ".join(dict.fromkeys(result.solver for result in results))
        if self.trace:
            traces = [result.trace for result in results]
            self.trace_ = traces[0] if len(traces) == 1 else traces
        most = int(np.max(self.n_iter_))
        self.stop_reason_ = (
            f"After {most} iteration{'' if most == 1 else 's'} ({self.solver_}): "
            f"{self.status_.value}."
        )
        self.stop_reason_ += self._remark()
        if self.status_ is not Status.OPTIMAL:
            self._warn(data)
        elif self._remark():
            warnings.warn(self.stop_reason_, ConvergenceWarning, stacklevel=5)

    def _remark(self) -> str:
        """Return a sentence on what is wrong with the optimum itself, or nothing."""
        return ""

    def _iterations(self, counts: list[int]) -> Any:
        return counts[0]

    def _warn(self, data: Training) -> None:
        if self.status_ is Status.STATIONARY:
            self.stop_reason_ += f" {self.certificate_.caveat}."
            warnings.warn(self.stop_reason_, UserWarning, stacklevel=6)
            return
        self.stop_reason_ += gap_left(self.certificate_, self.tol)
        vectors = not (data.kernel.takes_gram or data.kernel.takes_objects)
        if vectors and self.status_ in (Status.STALLED, Status.ROUNDING, Status.MAX_ITER):
            self.stop_reason_ += ill_scaled(data.X, getattr(self, "feature_names_in_", None))
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        if self.status_ is not Status.CALLBACK:
            warnings.warn(self.stop_reason_, ConvergenceWarning, stacklevel=6)

    # ------------------------------------------------------------ certifying

    def _problems(self, X: Any, y: Any, sample_weight: Any = None) -> list[tuple[Any, Point]]:
        """Return what was solved, and the solution: for ``mm.certify``."""
        check_is_fitted(self)
        self._refuse_altered()
        data = self._training(X, y, sample_weight, reset=False)
        place = np.full(max(data.n_rows, int(self.support_.max(initial=0)) + 1), -1)
        place[data.kept] = np.arange(len(data))
        places = place[self.support_]
        if data.n_rows != self.shape_fit_[0] or (places < 0).any():
            raise ValueError(
                f"{type(self).__name__} was trained on {self.shape_fit_[0]} rows, but X has "
                f"{data.n_rows}, or some of its support vectors have no weight: certify needs the "
                "training rows, all of them, and their weights."
            )
        parts = self._parts(data)
        duals = np.zeros((self._sides(), len(data)))
        duals[:, places] = self._duals
        planes = np.arange(len(self.intercept_))[self._planes_solved()]
        points = [
            self._solution(data, part, places, duals, k)
            for part, k in zip(parts, planes, strict=True)
        ]
        return list(zip(self._stated(data, parts), points, strict=True))

    def _solution(
        self, data: Training, part: Part, places: Ints, duals: Floats, plane: int
    ) -> Point:
        """Return a solution as the model has it: weights and intercepts as it predicts."""
        scale, b = self._point(plane)
        beta = duals[part.sides, part.rows]
        if self._by_linear_machine(data.kernel):
            return Point(self.coef_[plane], float(np.ravel(b)[0]), self._for_linear(beta))
        by_row = np.zeros(len(data))
        by_row[places] = scale * self._coefficients()[:, plane]
        # A row may have two variables here; the first carries its coefficient.
        rows, first = np.unique(part.rows, return_index=True)
        w = np.zeros(len(part.rows))
        w[first] = by_row[rows]
        return Point(w, np.atleast_1d(b)[: len(part.totals)], beta)


def _taken(X: Any, kept: Ints, kernel: Kernel) -> Any:
    if np.array_equal(kept, np.arange(X.shape[0])):
        return X
    return X[np.ix_(kept, kept)] if kernel.takes_gram else X[kept]


# ------------------------------------------------------------------- kernel classifier
#
# What kernel machines that classify share: pairs of classes, votes, and how duals are laid out.


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
        pairs = zip(self._planes_solved(), found.problems, found.results, strict=True)
        for plane, problem, result in pairs:
            self._scales[plane], self.intercept_[plane] = self._placed(problem, result)
        divisors = np.where(self._scales > 0, self._scales, 1.0)
        per_side = divisors[layout.number[data.answers]].T
        labels = self._keep_support(data, found.duals, found.duals / per_side)
        self.n_support_ = np.bincount(labels, minlength=len(self.classes_)).astype(np.int32)

    def _placed(self, _problem: Any, result: Result) -> tuple[float, float]:
        """Return by what to divide a solution (0: by nothing), and its intercept afterwards."""
        return 1.0, result.certificate.intercept

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


# ------------------------------------------------------------------- kernel regressor
#
# What kernel machines that predict numbers share: two duals a row, one for each side of a tube.


_ON_TUBE = 1e-5  # error beyond ε, in spreads of y, up to which a row counts as lying on the tube


class KernelRegressor(RegressorMixin, KernelMachine):
    """Base of SVR and NuSVR."""

    def _check_answers(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[Floats, Floats, Any]:
        return check_targets(y, n_rows), regression_weights(sample_weight, n_rows), 1.0

    def _sides(self) -> int:
        return 2

    def _half_width(self) -> float:
        """Return ε."""
        raise NotImplementedError

    def _keep(self, data: Training, found: Found) -> None:
        self._keep_support(data, found.duals, found.duals.sum(axis=0, keepdims=True))
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)

    def _keep_answers(self, data: Training, used: Ints) -> None:
        self._support_targets = data.answers[used]
        self._spread = float(data.answers.std()) or 1.0

    @property
    def _slacks(self) -> Floats:
        check_is_fitted(self)
        errors = np.abs(self._support_targets - self._products()[:, 0] - self.intercept_[0])
        return np.asarray(np.maximum(0.0, errors - self._half_width()))

    @property
    def support_kind_(self) -> npt.NDArray[np.str_]:
        """What kind of support vector each is."""
        return np.where(self._slacks <= _ON_TUBE * self._spread, "on the tube", "outside")

    @property
    def margin_(self) -> float:
        """1/‖w‖ in feature space."""
        return float(self._margins()[0])

    @property
    def alpha_(self) -> Floats:
        """Dual variables |β| of all rows."""
        check_is_fitted(self)
        return self._among_rows(np.abs(self.dual_coef_[0]))

    @property
    def slack_(self) -> Floats:
        """Errors beyond ε of the support vectors, 0 for other rows."""
        return self._among_rows(self._slacks)

    def predict(self, X: Any) -> Floats:
        """Return f(x) of each row; with kernel="precomputed", as in ``SVC.decision_function``."""
        return self._plane_scores(X)[:, 0]


def two_sided(above: Floats, below: Floats, cost: Floats) -> Loss:
    """Return the losses of two variables a row: one pulls f up to a target, one pulls it down."""
    none = np.zeros(len(cost))
    return Loss(
        np.concatenate([above, below]),
        np.concatenate([none, -cost]),
        np.concatenate([cost, none]),
        np.zeros(2 * len(cost)),
        0.0,
    )
