"""Linear support vector regression."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats
from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.formulations import EpsilonSVRForm, Training
from maxmargin.estimators.linear.base import KnownDuals, LinearMachine
from maxmargin.estimators.linear.blocked import Opened
from maxmargin.estimators.linear.partial_fit import RegressorStream
from maxmargin.estimators.machine import Formulated
from maxmargin.geometry.inputs import largest_squared_norm, row_products
from maxmargin.problems.blocked import BlockedProblem, LossRule, TubeRule
from maxmargin.problems.losses import ON_EDGE
from maxmargin.rows.survey import Survey
from maxmargin.solve import Callback, Result
from maxmargin.validation.data import (
    LARGEST_PRODUCT,
    check_rows,
    check_targets,
    refuse_overflow,
    regression_weights,
)
from maxmargin.validation.parameters import check_number


class LinearSVR(RegressorMixin, RegressorStream, LinearMachine):
    """Linear support vector regression with a proof.

    Minimises ½‖w‖² + C Σ max(0, |t − w·x − b| − ε), or its square, over w and an intercept b that
    costs nothing.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        What an error beyond ε costs: itself or its square.
    epsilon : float, default=0.0
        Half the width of the tube in which errors cost nothing, in the units of y.
    dual : bool or "auto", default="auto"
        As in LinearSVC; False is refused with loss="epsilon_insensitive".
    C : float, default=1.0
        Cost of errors, > 0.
    intercept : {"free", "penalized", "none"}, default="free"
        As in LinearSVC.
    fit_intercept : bool, default=True
        False is the same as intercept="none".
    intercept_scaling : float, default=1.0
        As in LinearSVC.
    solver : {"auto", "newton", "dual_cd", "subgradient"}, default="auto"
        As in LinearSVC.
    order : {"random", "cyclic"}, default="random"
        How coordinate descent (solver="dual_cd", or "auto" where it chooses that) visits rows in
        each sweep: in a new random order, which no order of the rows can slow down, or in the
        order given, without ``random_state``. "cyclic" is refused where another solver is certain.
    tol : float, default=1e-4
        Relative duality gap at which the answer is good enough.
    max_iter : int, default=1000
        Iterations allowed.
    max_time : float or None, default=None
        Seconds allowed; the best answer so far is kept, with its gap.
    warm_start : bool, default=False
        Start from the last solution. Rows may have come, gone or changed places since: duals are
        kept by the content of rows, or follow from the weights. The certificate is that of any fit.
    callback : callable or None, default=None
        As in LinearSVC.
    verbose : int, default=0
        Write a line per iteration.
    trace : bool, default=False
        Keep seconds and gap of each iteration in ``trace_``.
    n_jobs : int or None, default=None
        Threads; None or -1: as many as BLAS uses. The answer does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
        For the order in which coordinate descent and subgradient steps visit rows.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), (1,)
        Weights and intercept.
    certificate_, status_, stop_reason_, solver_, n_iter_ :
        As in LinearSVC.
    alpha_ : ndarray of shape (n_samples,)
        Dual variables |β|; the sign of ``dual_coef_`` says on which side of the tube a row lies.
    slack_ : ndarray of shape (n_samples,)
        Errors beyond ε.
    support_, support_vectors_, dual_coef_ :
        Rows with a dual other than 0, the rows themselves, and β: w = dual_coef_ @
        support_vectors_.
    support_kind_ : ndarray of str, of shape (n_support,)
        "on the tube" or "outside".

    Examples
    --------
    >>> import numpy as np, maxmargin as mm
    >>> X = np.arange(10.0)[:, np.newaxis]
    >>> model = mm.LinearSVR(C=10, epsilon=0.1).fit(X, 2 * X[:, 0] + 1)
    >>> model.predict([[20.0]]).round(1)
    array([40.7])
    """

    _losses = ("epsilon_insensitive", "squared_epsilon_insensitive")

    def __init__(
        self,
        *,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.0,
        dual: bool | str = "auto",
        C: float = 1.0,
        intercept: str = "free",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        solver: str = "auto",
        order: str = "random",
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        verbose: int = 0,
        trace: bool = False,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.dual = dual
        self.C = C
        self.intercept = intercept
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.order = order
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.trace = trace
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X with targets y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            Rows; float32 stays float32, CSR stays sparse. What ``mm.data.open`` returns, and
            collections of Dask, are read block by block, or by the workers of a cluster: the model
            is that of the same rows in memory, within tol, and mostly to the last bit.
        y : array-like of shape (n_samples,)
            Numbers. A source has its own.
        sample_weight : array-like of shape (n_samples,), optional
            How many times each row counts; a row of weight 0 is absent.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def adopt(self, formulated: Formulated, results: list[Result]) -> Self:
        """Become the model that a solution of the problem stands for."""
        data, solution = formulated.data, results[0].point
        self.coef_, self.intercept_ = solution.w, np.array([results[0].certificate.intercept])
        self._signed_duals = [solution.beta]
        scores = row_products(data.X, self.coef_[:, np.newaxis])[:, 0] + self.intercept_[0]
        self._known_duals = [KnownDuals.of(formulated.problems[0], scores, solution.beta)]
        excess = np.maximum(0.0, np.abs(data.y - scores) - float(self.epsilon))
        self._keep_support(data.X, data.kept, solution.beta[np.newaxis])
        on_tube = excess[solution.beta != 0] <= ON_EDGE * (float(data.y.std()) or 1.0)
        self.support_kind_ = np.where(on_tube, "on the tube", "outside")
        self.alpha_ = self._spread_out(np.abs(solution.beta), data.kept, data.n_rows)
        self.slack_ = self._spread_out(excess, data.kept, data.n_rows)
        return self._report(data, results)

    def _loss_rules(self, found: Survey, *, reset: bool) -> list[LossRule]:
        if found.targets is None:
            raise ValueError("This estimator requires y to be passed, but the rows have no y.")
        if not found.total_weight > 0:
            raise ValueError("All weights are 0: there is nothing to learn from.")
        return [TubeRule(float(self.C), self.loss, float(self.epsilon))]

    def _adopt_blocks(
        self, opened: Opened, problems: list[BlockedProblem], results: list[Result]
    ) -> None:
        self.coef_ = results[0].point.w
        self.intercept_ = np.array([results[0].certificate.intercept])
        numbers = self._keep_rows_of_blocks(opened, problems, results)
        if numbers is None:
            self.__dict__.pop("support_kind_", None)
            return
        [each] = numbers
        excess = np.maximum(0.0, np.abs(each.target - each.scores) - float(self.epsilon))
        part = each.bound > 0
        unit = float(each.target[part].std()) or 1.0
        on_tube = excess[self.support_] <= ON_EDGE * unit
        self.support_kind_ = np.where(on_tube, "on the tube", "outside")
        self.alpha_, self.slack_ = self.alpha_[0], excess * part

    def predict(self, X: Any) -> Floats:
        """Return f(x) = w·x + b of each row."""
        check_is_fitted(self)
        return self._raw_scores(X)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        super().check_parameters()
        check_number(self, "epsilon", at_least=0)
        if self.dual != "auto" and not self.dual and self.loss == "epsilon_insensitive":
            raise ValueError(
                f"Unsupported set of arguments: loss={self.loss!r} and dual=False do not go "
                "together. Leave dual='auto'."
            )

    def _form(self) -> EpsilonSVRForm:
        return EpsilonSVRForm(float(self.C), float(self.epsilon), self._intercept(), self.loss)

    def _training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        X = check_rows(self, X, reset=reset)
        target = check_targets(y, X.shape[0])
        weight = regression_weights(sample_weight, len(target))
        if reset:
            refuse_overflow(self, X, largest_squared_norm(X), LARGEST_PRODUCT)
        kept = np.flatnonzero(weight > 0)
        if len(kept) < len(weight):
            X, target = X[kept], target[kept]
        return Training(X, target, weight[kept], kept, len(weight))
