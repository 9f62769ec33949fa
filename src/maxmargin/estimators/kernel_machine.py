"""What kernel machines share: from rows to problems, solving them, and what was found.

A machine is one problem or several (``Part``) over the same rows, with the same Gram matrix. Its
duals lie in an array (sides, rows): see ``Part``.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import together
from maxmargin.certificates.arithmetic import within_groups
from maxmargin.estimators.kernel_expansion import KernelExpansion
from maxmargin.estimators.kernel_models import Found, Part, Training
from maxmargin.estimators.kernel_starts import Last, known_duals
from maxmargin.estimators.solving import Budget, Outcome, all_solved, gap_left, ill_scaled
from maxmargin.kernels import Kernel, Linear
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, KernelProblem, Problem, Start, Status


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
        outcomes = self._solve(problems, self._starts(data, parts, last), budget)
        self.kernel_ = data.kernel
        self._gamma = float(getattr(data.kernel, "gamma", 0.0))
        found = self._found(data, parts, problems, outcomes)
        self._adopt(data, found)
        self._keep_weights(data, found)
        self._report(self._as_stored(problems, outcomes), data)

    def _found(
        self, data: Training, parts: list[Part], problems: list[Any], outcomes: list[Outcome]
    ) -> Found:
        duals = np.zeros((self._sides(), len(data)))
        for part, outcome in zip(parts, outcomes, strict=True):
            duals[part.sides, part.rows] = self._by_variable(part, outcome.solution.beta)
        return Found(problems, outcomes, duals)

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

    def _solve(self, problems: list[Any], starts: list[Start], budget: Budget) -> list[Outcome]:
        return all_solved(problems, starts, self._settings(), budget)

    def _as_stored(self, _problems: list[Any], outcomes: list[Outcome]) -> list[Outcome]:
        """Return the outcomes certified with the intercepts that the model has."""
        return outcomes

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

    def _starts(self, data: Training, parts: list[Part], last: Last | None) -> list[Start]:
        """Return where to start each problem: at the last solution, as far as rows are the same."""
        if last is None or last.classes != self._class_list():
            return [Start() for _ in parts]
        duals = known_duals(data, self._labels(data), last)
        if duals is None:
            return [Start() for _ in parts]
        return [self._start(data, part, duals, last, k) for k, part in enumerate(parts)]

    def _start(self, data: Training, part: Part, duals: Floats, last: Last, plane: int) -> Start:
        beta = duals[part.sides, part.rows]
        # Rows that came, went or changed their weight leave duals that are not feasible.
        beta, _ = within_groups(part.loss, beta, part.groups, part.totals)
        if not self._by_linear_machine(data.kernel):
            return Start(beta=beta)
        beta = self._for_linear(beta)
        if last.planes is None or last.planes[0].shape[1] != data.X.shape[1]:
            return Start(beta=beta)
        return Start(np.array(last.planes[0][plane]), float(last.planes[1][plane]), beta)

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
            self._weights[self._planes_solved()] = [one.solution.w for one in found.outcomes]
            self._weights_of = self.dual_coef_.copy()
        elif data.kernel.takes_gram or not len(used):
            support = found.problems[0].gram.exact[used]
            self._given_products = data.kernel.dot(support, support, a)
        self._keep_answers(data, used)

    def _planes_solved(self) -> Any:
        return slice(None)

    def _keep_answers(self, data: Training, used: Ints) -> None:
        """Keep what else is asked about support vectors later."""

    def _report(self, outcomes: list[Outcome], data: Training) -> None:
        """Set what is said about solving, and warn when it ended without what was asked for."""
        runs = [outcome.solution.run for outcome in outcomes]
        self.certificate_ = together([outcome.certificate for outcome in outcomes])
        statuses = [run.status for run in runs if run.status is not Status.OPTIMAL]
        # What stopped the fit early says more than that a kernel is indefinite.
        statuses.sort(key=lambda status: status is Status.STATIONARY)
        self.status_ = statuses[0] if statuses else Status.OPTIMAL
        self.fit_status_ = int(bool(statuses))
        self.n_iter_ = self._iterations([run.iterations for run in runs])
        self.solver_ = ", ".join(dict.fromkeys(outcome.solver for outcome in outcomes))
        if self.trace:
            traces = [outcome.solution.trace for outcome in outcomes]
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

    def _problems(self, X: Any, y: Any, sample_weight: Any = None) -> list[tuple[Any, Start]]:
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
    ) -> Start:
        """Return a solution as the model has it: weights and intercepts as it predicts."""
        scale, b = self._point(plane)
        beta = duals[part.sides, part.rows]
        if self._by_linear_machine(data.kernel):
            return Start(self.coef_[plane], float(np.ravel(b)[0]), self._for_linear(beta))
        by_row = np.zeros(len(data))
        by_row[places] = scale * self._coefficients()[:, plane]
        # A row may have two variables here; the first carries its coefficient.
        rows, first = np.unique(part.rows, return_index=True)
        w = np.zeros(len(part.rows))
        w[first] = by_row[rows]
        return Start(w, np.atleast_1d(b)[: len(part.totals)], beta)


def _taken(X: Any, kept: Ints, kernel: Kernel) -> Any:
    if np.array_equal(kept, np.arange(X.shape[0])):
        return X
    return X[np.ix_(kept, kept)] if kernel.takes_gram else X[kept]
