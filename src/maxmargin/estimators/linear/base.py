"""Base of the linear machines: parameters, features, warm starts, support vectors."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.budget import Budget
from maxmargin.estimators.formulations import Training
from maxmargin.estimators.kernel_input import count_threads
from maxmargin.estimators.linear.blocked import (
    KEPT_NUMBERS,
    Opened,
    RowNumbers,
    as_source,
    by_parts,
    is_source,
    put_duals,
    remove_checkpoints,
)
from maxmargin.estimators.machine import (
    OF_THE_LAST_FIT,
    Formulated,
    Machine,
    Solved,
    solver_settings,
)
from maxmargin.estimators.row_marks import Marks, mark_rows, pair_up
from maxmargin.geometry.inputs import row_products
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.blocked import BlockedProblem, LossRule
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.problem import Intercept, LinearProblem, Point
from maxmargin.rows.blocks import Block, RowsInMemory, join
from maxmargin.rows.row_source import RowSource
from maxmargin.rows.survey import Survey
from maxmargin.runtime import clock
from maxmargin.solve import Result, solve_all
from maxmargin.validation.data import check_rows
from maxmargin.validation.parameters import (
    check_choice,
    check_cost,
    check_flag,
    check_number,
)

OF_ROWS = (
    "alpha_", "slack_", "support_", "dual_coef_", "n_support_", "_signed_duals", "_known_duals",
    "_support_rows", "_row_labels", "_row_costs",
)  # fmt: skip
SOLVERS = ("auto", "newton", "dual_cd", "subgradient")
_SURELY = 1.01  # times the reach, within which rows are looked for: scores are rounded
_IMPLIED = 1e-3  # of the distance of its bounds, by which a dual may miss what scores imply
_ARRAYS = 6  # about as many numbers are read of each row where duals are compared
_KEPT_SHARE = 192  # bytes of the memory for blocks, for each row and problem that is kept
_KEPT_BYTES = 1 << 24  # support vectors beyond this are not copied into the model


class OfRows:
    """An attribute with numbers of all rows, which a model fitted to very many does not keep."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        if "certificate_" not in vars(model):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        raise AttributeError(
            f"This {owner.__name__} was fitted to more rows than it keeps {self.name} of: "
            "scores of rows follow from predict and decision_function, and mm.certify(model, "
            "source) proves again how good the model is."
        )


class LinearMachine(Machine):
    """Base of LinearSVC and LinearSVR: f(x) = w·x + b with a certificate."""

    alpha_ = OfRows()
    slack_ = OfRows()
    support_ = OfRows()
    dual_coef_ = OfRows()
    n_support_ = OfRows()

    _losses: ClassVar[tuple[str, ...]]
    _known_duals: "list[KnownDuals]"  # by problem; none if the classes were learnt jointly
    _forgotten = (*OF_THE_LAST_FIT, "_learners")

    def distance(self, X: Any) -> Floats:
        """Return the signed distance f/‖w‖ of each row from the plane(s); 0/0 is 0."""
        check_is_fitted(self)
        norms = np.linalg.norm(self.coef_, axis=-1)
        return np.asarray(self._raw_scores(X) / np.where(norms > 0, norms, 1.0))

    @property
    def support_vectors_(self) -> Any:
        """The rows with a positive dual variable, in the order of ``support_``.

        They are kept up to 16 MB; beyond that take them from your data: ``X[model.support_]``.
        """
        check_is_fitted(self)
        if not hasattr(self, "_support_rows"):
            if hasattr(self, "certificate_"):
                raise AttributeError(
                    f"This {type(self).__name__} was fitted to so many rows that it keeps no "
                    "support vectors."
                )
            raise AttributeError("A model learnt by partial_fit has no support vectors.")
        if self._support_rows is None:
            raise AttributeError(
                f"The {len(self.support_)} support vectors take more than "
                f"{_KEPT_BYTES >> 20} MB and were not copied: X[model.support_] are the rows."
            )
        return self._support_rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _raw_scores(self, X: Any) -> Floats:
        if is_source(X):
            return np.asarray(by_parts(as_source(X, None), self._raw_scores))
        X = check_rows(self, X, reset=False)
        coef = np.atleast_2d(self.coef_)
        scores: Floats = row_products(X, np.ascontiguousarray(coef.T)) + self.intercept_
        return scores[:, 0] if self.coef_.ndim == 1 or len(self.coef_) == 1 else scores

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        check_choice(self, "loss", self._losses)
        check_cost(self)
        check_choice(self, "intercept", [kind.value for kind in Intercept])
        check_flag(self, "fit_intercept")
        if self.intercept == "penalized" and not self.fit_intercept:
            raise ValueError(
                "intercept='penalized' and fit_intercept=False contradict each other: leave one of "
                "them out."
            )
        check_number(self, "intercept_scaling", above=0)
        check_choice(self, "dual", ("auto", True, False))
        check_choice(self, "solver", SOLVERS)
        check_choice(self, "order", ("random", "cyclic"))
        if self.order == "cyclic" and self.solver not in ("auto", "dual_cd"):
            raise ValueError(
                f"order='cyclic' is for coordinate descent, but solver={self.solver!r}: choose "
                "solver='dual_cd', or leave order='random'."
            )
        check_number(self, "max_iter", at_least=1, integer=True)
        super().check_parameters()

    def _intercept(self) -> Intercept:
        return Intercept(self.intercept) if self.fit_intercept else Intercept.NONE

    def _features(self, data: Training) -> LinearFeatures:
        penalised = self._intercept() is Intercept.PENALIZED
        return LinearFeatures(data.X, float(self.intercept_scaling) if penalised else 0.0)

    # Rows in blocks.

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if not is_source(X):
            return super()._fit(X, y, sample_weight)
        began = clock.now()
        self.check_parameters()
        source = as_source(X, y, sample_weight)
        last = self._last_planes() if self.warm_start else None
        for name in self._forgotten:
            self.__dict__.pop(name, None)
        opened, problems = self._open(source, reset=True)
        starts = [Point()] * len(problems)
        if last is not None and last[0].shape == (len(problems), opened.survey.d):
            starts = [Point(w, float(b)) for w, b in zip(*last, strict=True)]
        budget = Budget(self.max_time and self._time_to_solve(), began)
        results = solve_all(problems, starts, solver_settings(self), budget)
        self._adopt_blocks(opened, problems, results)
        remove_checkpoints(problems, results)
        self._report(opened, results)
        return self

    def _last_planes(self) -> tuple[Floats, Floats] | None:
        if not hasattr(self, "status_"):
            return None
        return np.atleast_2d(self.coef_), self.intercept_

    def _open(self, source: RowSource, *, reset: bool) -> tuple[Opened, list[BlockedProblem]]:
        """Return rows in blocks, and the problems that they are part of."""
        self._refuse_in_blocks()
        regression = not hasattr(self, "class_weight")
        opened = Opened.of(source, targets=regression, threads=count_threads(self.n_jobs))
        opened.check(self, reset=reset)
        rules = self._loss_rules(opened.survey, reset=reset)
        penalised = self._intercept() is Intercept.PENALIZED
        constant = float(self.intercept_scaling) if penalised else 0.0
        told = f"{self.tol!r} {self.solver}"
        return opened, opened.problems(rules, self._intercept(), constant, told)

    def _refuse_in_blocks(self) -> None:
        """Raise if a parameter asks for what needs all rows in memory."""
        if self.solver not in ("auto", "newton", "dual_cd"):
            raise ValueError(
                f"solver={self.solver!r} needs all rows in memory, but these are read in blocks: "
                "leave solver='auto', or fit to arrays."
            )

    def _loss_rules(self, found: Survey, *, reset: bool) -> list[LossRule]:
        """Return the loss of each problem, as it follows from labels and weights."""
        raise NotImplementedError

    def _adopt_blocks(
        self, opened: Opened, problems: list[BlockedProblem], results: list[Result]
    ) -> None:
        """Become the model that solutions of the problems stand for."""
        raise NotImplementedError

    def _keep_rows_of_blocks(
        self, opened: Opened, problems: list[BlockedProblem], results: list[Result]
    ) -> list[RowNumbers] | None:
        """Return what belongs to rows and problems, and keep the duals; None if it is too much."""
        n, memory = len(problems[0]), opened.source.options.memory
        most = KEPT_NUMBERS if memory is None else min(KEPT_NUMBERS, memory // _KEPT_SHARE)
        if n * len(problems) > most:
            for name in OF_ROWS:
                self.__dict__.pop(name, None)
            return None
        found = list(map(RowNumbers.of, problems, results))
        beta = np.array([each.beta for each in found])
        self._signed_duals = [each.beta[each.bound > 0] for each in found]
        self._known_duals = []
        used = np.flatnonzero((beta != 0).any(axis=0))
        self.support_, self.dual_coef_ = used, beta[:, used]
        small = len(used) / n * problems[0].blocks.numbers * 8 <= _KEPT_BYTES
        self._support_rows = problems[0].take(used).features.X if small and len(used) else None
        self.alpha_ = np.abs(beta)
        return found

    def _ill_scaled(self, data: Any) -> str:
        if isinstance(data, Opened):
            return data.describe_scales()
        return super()._ill_scaled(data)

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problems of these rows, and the model as their solutions.

        The points have duals if these are the rows that the model was fitted to.
        """
        check_is_fitted(self)
        self._refuse_unknown_rows()
        if is_source(X):
            source = as_source(X, y, sample_weight).with_options(checkpoint=None)
            opened, problems = self._open(source, reset=False)
            points = list(map(put_duals, problems, self._points(len(problems))))
            return list(map(Solved, problems, points, [np.arange(opened.survey.n)] * len(points)))
        stated = self._state(X, y, sample_weight, reset=False)
        points = self._points(len(stated.problems))
        return list(map(Solved, stated.problems, points, stated.rows))

    def _points(self, count: int) -> list[Point]:
        """Return the model as the solutions of its problems."""
        duals = getattr(self, "_signed_duals", [None] * count)
        planes = zip(np.atleast_2d(self.coef_), self.intercept_, duals, strict=True)
        return [Point(w, float(b), beta) for w, b, beta in planes]

    def _last(self) -> "list[tuple[Point, KnownDuals | None]]":
        if not hasattr(self, "_signed_duals"):
            return []
        points = self._points(len(self.intercept_))
        unknown: list[KnownDuals | None] = [None] * len(points)
        return list(zip(points, self._known_duals or unknown, strict=True))

    def _starts(
        self, formulated: Formulated, last: "list[tuple[Point, KnownDuals | None]]"
    ) -> list[Point] | None:
        """Return the last solution, if shapes agree, with the duals that it says rows have."""
        problems, width = formulated.problems, formulated.data.X.shape[1]
        if len(last) != len(problems) or len(last[0][0].w) != width:
            return None
        return [start_again(problem, *each) for problem, each in zip(problems, last, strict=True)]

    def _keep_support(self, X: Any, kept: Ints, beta: Floats) -> None:
        """Set ``support_``, ``dual_coef_`` and the support vectors from duals (problems, rows)."""
        used = np.flatnonzero((beta != 0).any(axis=0))
        self.support_ = kept[used]
        self.dual_coef_ = beta[:, used]
        numbers = X.nnz if hasattr(X, "nnz") else X.size
        share = len(used) / X.shape[0]
        self._support_rows = X[used] if share * numbers * 8 <= _KEPT_BYTES else None

    def _spread_out(self, values: Floats, kept: Ints, n_rows: int) -> Floats:
        """Return values of the rows that took part as values of all rows, 0 for the others."""
        if values.shape[-1] == n_rows:
            return values
        out = np.zeros((*values.shape[:-1], n_rows))
        out[..., kept] = values
        return out


# ------------------------------------------------------------------- warm starts
#
# Where rows are many, weights say what the dual of a row is, whether it was there before or not,
# unless the row is about on the margin (or on an edge of the tube). Duals that they do not say are
# kept by the content of the row; all of them, where these are most (columns are many, then).


class KnownDuals(NamedTuple):
    """The duals of a solved problem that its weights do not imply."""

    marks: Marks  # of their rows
    shares: Floats  # of the bound in their direction
    reach: float  # how far these rows are from the kink of their loss, at most; infinite: any

    @classmethod
    def of(cls, problem: LinearProblem, scores: Floats, beta: Floats) -> Self:
        """Note where duals are not what the scores imply."""
        loss = problem.loss

        def find_free(block: Block) -> list[Ints]:
            begin, end = block.begin, block.end
            part = loss.take(slice(begin, end))
            apart = np.abs(beta[begin:end] - losses.best_duals(part, scores[begin:end]))
            apart[~np.isfinite(apart)] = 0.0
            return [begin + np.flatnonzero(apart > _IMPLIED * (part.high - part.low))]

        found = RowsInMemory(scores).map(find_free, numbers=_ARRAYS * len(scores), merge=join)
        free = np.concatenate(found)
        reach = float(_from_kink(loss.take(free), scores[free]).max(initial=0.0))
        support = np.flatnonzero(beta)
        if 2 * len(free) > len(support):
            free, reach = support, np.inf
        own = beta[free]
        bound = np.where(own > 0, loss.high[free], -loss.low[free])
        shares = np.divide(own, bound, out=np.zeros(len(own)), where=own != 0)
        return cls(mark_rows(problem.features.X[free]), shares, reach)


def start_again(problem: LinearProblem, point: Point, known: KnownDuals | None) -> Point:
    """Return where to start a problem after another one with some of its rows, or all of them."""
    loss, X = problem.loss, problem.features.X
    scores = row_products(X, point.w[:, np.newaxis])[:, 0] + point.b
    beta = losses.best_duals(loss, scores)
    if known is not None and len(known.marks):
        near = np.flatnonzero(_from_kink(loss, scores) <= _SURELY * known.reach)
        if np.isinf(known.reach):
            beta[:] = 0.0
        old, new = pair_up(known.marks, mark_rows(X[near]))
        rows, shares = near[new], known.shares[old]
        beta[rows] = shares * np.where(shares > 0, loss.high[rows], -loss.low[rows])
    return Point(point.w, point.b, beta)


def _from_kink(loss: Loss, scores: Floats) -> Floats:
    return np.abs(np.abs(loss.target - scores) - loss.epsilon)
