"""What linear machines share: parameters, solving, and what is said about the answer."""

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import together
from maxmargin.estimators.callbacks import TakesCallbacks, announced
from maxmargin.geometry.inputs import row_products
from maxmargin.problems.problem import Intercept, Point, Status
from maxmargin.solve import Budget, Result, Settings, gap_left, ill_scaled, solve_all
from maxmargin.validation.data import check_rows, generator
from maxmargin.validation.parameters import (
    NamedParameters,
    check_choice,
    check_cost,
    check_flag,
    check_number,
    check_progress,
    check_threads,
)

SOLVERS = ("auto", "newton", "dual_cd", "subgradient")
_KEPT_BYTES = 1 << 24  # support vectors beyond this are not copied into the model


class LinearMachine(TakesCallbacks, NamedParameters, BaseEstimator):
    """Base of LinearSVC and LinearSVR: f(x) = w·x + b with a certificate."""

    _losses: ClassVar[tuple[str, ...]]

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
            raise AttributeError("A model learnt by partial_fit has no support vectors.")
        if self._support_rows is None:
            raise AttributeError(
                f"The {len(self.support_)} support vectors take more than "
                f"{_KEPT_BYTES >> 20} MB and were not copied: X[model.support_] are the rows."
            )
        return self._support_rows

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "status_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _forget(self) -> None:
        for name in ("status_", "trace_", "_learners"):
            self.__dict__.pop(name, None)

    def _raw_scores(self, X: Any) -> Floats:
        X = check_rows(self, X, reset=False)
        coef = np.atleast_2d(self.coef_)
        scores: Floats = row_products(X, np.ascontiguousarray(coef.T)) + self.intercept_
        return scores[:, 0] if self.coef_.ndim == 1 or len(self.coef_) == 1 else scores

    def _check_parameters(self) -> None:
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
        check_number(self, "tol", at_least=0)
        check_number(self, "max_iter", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_flag(self, "warm_start")
        check_flag(self, "trace")
        check_threads(self)
        check_progress(self)

    def _settings(self) -> Settings:
        threads = None if self.n_jobs in (None, -1) else int(self.n_jobs)
        return Settings(
            self.solver,
            float(self.tol),
            int(self.max_iter),
            self.max_time,
            announced(self, self.callback),
            bool(self.verbose),
            bool(self.trace),
            threads,
            int(generator(self.random_state).integers(2**31)),
        )

    def _solve(self, problems: list[Any], starts: list[Point], budget: Budget) -> list[Result]:
        return solve_all(problems, starts, self._settings(), budget)

    def _intercept(self) -> Intercept:
        return Intercept(self.intercept) if self.fit_intercept else Intercept.NONE

    def _lift(self) -> float:
        return float(self.intercept_scaling)

    def _report(self, results: list[Result], X: Any) -> None:
        """Set what is said about solving, and warn when it ended without what was asked for."""
        statuses = [result.status for result in results]
        self.certificate_ = together([result.certificate for result in results])
        self.status_ = next((s for s in statuses if s is not Status.OPTIMAL), Status.OPTIMAL)
        self.n_iter_ = max(result.iterations for result in results)
        self.solver_ = ", ".join(dict.fromkeys(result.solver for result in results))
        if self.trace:
            traces = [result.trace for result in results]
            self.trace_ = traces[0] if len(traces) == 1 else traces
        self.stop_reason_ = (
            f"After {self.n_iter_} iteration{'' if self.n_iter_ == 1 else 's'} "
            f"({self.solver_}): {self.status_.value}."
        )
        if self.status_ is Status.OPTIMAL:
            return
        self.stop_reason_ += gap_left(self.certificate_, self.tol)
        if self.status_ in (Status.STALLED, Status.ROUNDING, Status.MAX_ITER):
            self.stop_reason_ += ill_scaled(X, getattr(self, "feature_names_in_", None))
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        if self.status_ is not Status.CALLBACK:
            warnings.warn(self.stop_reason_, ConvergenceWarning, stacklevel=4)

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
