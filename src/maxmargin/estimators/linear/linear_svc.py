"""The linear support vector classifier."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.formulations import CSVCForm, Training
from maxmargin.estimators.linear.base import KnownDuals, LinearMachine
from maxmargin.estimators.linear.blocked import Opened, as_source, by_parts, is_source, vector_of
from maxmargin.estimators.linear.partial_fit import ClassifierStream
from maxmargin.estimators.machine import UNASKED, Formulated, Solved
from maxmargin.estimators.probabilities import Probabilistic
from maxmargin.estimators.reductions import (
    ClassPlanes,
    HingeMultipliers,
    Subproblem,
    best_classes,
    class_pairs,
    combined_scores,
    joint_margin,
    joint_slacks,
    refuse_other_scheme,
)
from maxmargin.geometry import Hyperplane
from maxmargin.geometry.inputs import largest_squared_norm, row_products
from maxmargin.problems.blocked import BlockedProblem, HingeRule, LossRule
from maxmargin.problems.losses import support_kinds
from maxmargin.problems.problem import MulticlassProblem, Point
from maxmargin.rows.survey import Survey
from maxmargin.solve import Callback, Result
from maxmargin.validation.data import (
    LARGEST_PRODUCT,
    check_class_weights,
    check_classification,
    check_rows,
    refuse_overflow,
)
from maxmargin.validation.parameters import check_choice, check_number


class LinearSVC(HingeMultipliers, Probabilistic, ClassifierMixin, ClassifierStream, LinearMachine):
    """Linear support vector classifier: the textbook's, at linear cost, with a proof.

    Minimises ½‖w‖² + C Σ ξ with ξ = max(0, 1 − y(w·x + b)) and an intercept b that costs nothing;
    or the same with ξ², with an intercept that is penalised like a weight, or with ‖w‖₁ for ½‖w‖².

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        ½‖w‖²; ‖w‖₁, with which many weights are 0; or l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖². ‖w‖₁
        with the hinge loss is a linear program, so several w may be optimal. With these penalties
        the hinge takes about three times as long as squared_hinge: a second for 20,000 dense rows
        of 200 columns.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a row with slack ξ costs: ξ or ξ².
    dual : bool or "auto", default="auto"
        Accepted for compatibility with scikit-learn: every fit has a primal and a dual solution,
        and ``solver`` says how they are found. Refused as there: True with a penalty other than
        l2, and False with the hinge loss.
    C : float, default=1.0
        Cost of slack, > 0. The same machine in terms of λ: (λ/2)‖w‖² + Σ loss is C = 1/λ, and with
        the mean of the n losses instead of their sum (as SGDClassifier's alpha) C = 1/(nλ).
    l1_ratio : float, default=0.5
        Share of ‖w‖₁ with penalty="elasticnet", between 0 and 1.
    intercept : {"free", "penalized", "none"}, default="free"
        Whether b costs nothing, is the weight of a constant feature of value intercept_scaling and
        penalised with the others (as scikit-learn's LinearSVC has it), or is 0.
    fit_intercept : bool, default=True
        False is the same as intercept="none".
    intercept_scaling : float, default=1.0
        Value of that constant feature; used with intercept="penalized" only.
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        With more than two classes: one against the rest, every two, or one joint problem (hinge
        loss and l2 penalty only).
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class.
    solver : {"auto", "newton", "dual_cd", "subgradient"}, default="auto"
        "auto" chooses by the shape of the data. Newton's method and coordinate descent hand over to
        each other where they stall; ``solver_`` names all that were used. Stochastic subgradient
        steps never do: they end at ``tol`` or at a limit, and rarely reach a ``tol`` below 1e-2
        (``certificate_`` has the gap). Penalties other than l2 and Crammer–Singer have solvers of
        their own.
    order : {"random", "cyclic"}, default="random"
        How coordinate descent (solver="dual_cd", or "auto" where it chooses that) visits rows in
        each sweep: in a new random order, which no order of the rows can slow down, or in the
        order given, without ``random_state``. "cyclic" is refused where another solver is certain.
    tol : float, default=1e-4
        Relative duality gap at which the answer is good enough. With up to 200,000 numbers in X it
        is then polished to as many digits as there are, so that the order of rows does not matter.
    max_iter : int, default=1000
        Iterations allowed for each binary problem.
    max_time : float or None, default=None
        Seconds allowed for the fit; the best answer so far is kept, with its gap.
    warm_start : bool, default=False
        Start from the last solution. Rows may have come, gone or changed places since: duals are
        kept by the content of rows, or follow from the weights. The certificate is that of any fit.
    callback : callable or None, default=None
        Called with a Progress (``iteration``, ``seconds``, ``iterate.relative_gap``) after each
        iteration; returning True ends the fit. scikit-learn's callbacks: ``set_callbacks``.
    verbose : int, default=0
        Write a line per iteration.
    trace : bool, default=False
        Keep seconds and gap of each iteration in ``trace_``.
    n_jobs : int or None, default=None
        Threads; None or -1: as many as BLAS uses. The answer does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
        For the order in which coordinate descent and subgradient steps visit rows.
    probability : bool, default=False
        Whether to have ``predict_proba``, as in ``SVC``. Only loss="squared_hinge" with
        penalty="l2" needs no further fits for it; all others are fitted five more times, each time
        without a fifth of the rows (up to 40 rows with penalty="l2": without each row in turn).

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1 or n_problems, n_features), (1 or n_problems,)
        Weights and intercepts; two classes have one problem, with the second class positive.
    classes_ : ndarray
        The labels.
    certificate_ : Certificate
        Bounds on the optimum, recomputed from the data; with several problems their sums, and the
        single ones in ``certificate_.parts``.
    status_, stop_reason_, solver_, n_iter_ :
        Why the fit stopped (an enum and a sentence), what solved it, in how many iterations.
    alpha_, slack_ : ndarray of shape (n_samples,) or (n_problems, n_samples)
        Dual variables ≥ 0 and slacks ξ of the rows; 0 for rows that take no part. Crammer–Singer
        has |β| for each class, but one slack for each row.
    bound_multiplier_ : ndarray of the shape of slack_
        For the hinge loss, C − α ≥ 0, with the weights of rows and classes in C: the multipliers of
        ξ ≥ 0, whose products with the slacks are 0 at the optimum. 0 for rows that take no part.
        With Crammer–Singer, α is the dual of a row's own class.
    support_, support_vectors_, dual_coef_, n_support_ :
        Rows with a positive dual, the rows themselves, their duals times ±1 (w = dual_coef_ @
        support_vectors_), and how many there are in each class.
    support_kind_ : ndarray of str, of shape (n_support,) or (n_problems, n_support)
        "margin" (ξ ≤ 1e-5), "inside" (ξ ≤ 1) or "wrong side" (ξ > 1); "" where it has no part.
    margin_ : float or ndarray
        1/‖w‖: the distance from the plane to f = ±1.
    calibration_ : Calibration
        How scores become probabilities, as in ``SVC``; with probability=True.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(200, random_state=0)
    >>> model = mm.LinearSVC(C=1.0).fit(X, y)
    >>> model.certificate_.holds(1e-4)
    True
    """

    _losses = ("hinge", "squared_hinge")

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "hinge",
        *,
        dual: bool | str = "auto",
        C: float = 1.0,
        l1_ratio: float = 0.5,
        intercept: str = "free",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        multi_class: str = "ovr",
        class_weight: Any = None,
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
        probability: Any = False,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.C = C
        self.l1_ratio = l1_ratio
        self.intercept = intercept
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.multi_class = multi_class
        self.class_weight = class_weight
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
        self.probability = probability

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            Rows; float32 stays float32, CSR stays sparse. What ``mm.data.open`` returns, and
            collections of Dask, are read block by block, or by the workers of a cluster: the model
            is that of the same rows in memory, within tol, and mostly to the last bit.
        y : array-like of shape (n_samples,)
            Labels of any kind; two or more classes. A source has its own.
        sample_weight : array-like of shape (n_samples,), optional
            How many times each row counts; a row of weight 0 is absent.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def adopt(self, formulated: Formulated, results: list[Result]) -> Self:
        """Become the model that solutions of the problems stand for."""
        data = formulated.data
        self._scheme = self.multi_class
        subproblems = data.subproblems(self._scheme)
        if subproblems:
            self._adopt_subproblems(formulated, subproblems, results)
        else:
            self._adopt_joint(data, formulated.problems[0], results[0])
        self.__dict__.pop("_row_costs", None)
        if self.loss == "hinge":
            self._keep_costs(data.y, self._form().cost(data), data.kept, data.n_rows)
        used = np.isin(data.kept, self.support_)
        self.n_support_ = np.bincount(data.y[used], minlength=len(self.classes_))
        self._report(data, results)
        if self.probability not in UNASKED:
            self._calibrate(formulated, results)
        return self

    def _refuse_in_blocks(self) -> None:
        super()._refuse_in_blocks()
        asked = {
            "penalty": self.penalty != "l2",
            "multi_class": self.multi_class == "crammer_singer",
            "probability": self.probability not in UNASKED,
        }
        for name, is_asked in asked.items():
            if is_asked:
                usual = {"penalty": "l2", "multi_class": "ovr", "probability": False}[name]
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs all rows in memory, but these are read "
                    f"in blocks: set {name}={usual!r}, or fit to arrays."
                )

    def _loss_rules(self, found: Survey, *, reset: bool) -> list[LossRule]:
        if reset:
            self.classes_ = found.classes
        elif not np.array_equal(found.classes, self.classes_):
            raise ValueError(
                f"The labels are {found.classes.tolist()}, but the model was fitted to "
                f"{self.classes_.tolist()}."
            )
        factors, left = check_class_weights(self, found.classes, found.weights)
        self._pairs = class_pairs(left, len(found.classes), self.multi_class)
        shared = float(self.C), self.loss, tuple(factors.tolist())
        return [HingeRule(*shared, *pair) for pair in self._pairs]

    def _adopt_blocks(
        self, opened: Opened, problems: list[BlockedProblem], results: list[Result]
    ) -> None:
        self._scheme = self.multi_class
        self.coef_ = np.array([result.point.w for result in results])
        self.intercept_ = np.array([result.certificate.intercept for result in results])
        self._set_margins()
        numbers = self._keep_rows_of_blocks(opened, problems, results)
        if numbers is None:
            return
        self.slack_ = np.array(
            [np.maximum(0.0, 1 - each.target * each.scores) * (each.bound > 0) for each in numbers]
        )
        if len(self.classes_) == 2:
            self.alpha_, self.slack_ = self.alpha_[0], self.slack_[0]
        labels = np.asarray(vector_of(opened.blocks.vector("labels")), dtype=np.int64)
        self.n_support_ = np.bincount(labels[self.support_], minlength=len(self.classes_))
        self.__dict__.pop("_row_costs", None)
        if self.loss == "hinge":
            cost = np.max([each.bound for each in numbers], axis=0)
            kept = np.flatnonzero(cost > 0)
            self._keep_costs(labels[kept], cost[kept], kept, len(labels))

    def _set_margins(self) -> None:
        norms = np.linalg.norm(self.coef_, axis=1)
        margins = np.divide(1.0, norms, out=np.full(len(norms), np.inf), where=norms > 0)
        self.margin_ = float(margins[0]) if len(self.classes_) == 2 else margins

    def _form(self) -> CSVCForm:
        l1_ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}[self.penalty]
        return CSVCForm(
            float(self.C), self._intercept(), self.loss, float(l1_ratio), self.multi_class
        )

    def _training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        X = check_rows(self, X, reset=reset)
        labels, weight, factors = check_classification(
            self, y, X.shape[0], sample_weight, reset=reset
        )
        if reset:
            refuse_overflow(self, X, largest_squared_norm(X), LARGEST_PRODUCT)
        weight = weight * factors[labels]
        kept = np.flatnonzero(weight > 0)
        if len(kept) < len(weight):
            X, labels = X[kept], labels[kept]
        return Training(X, labels, weight[kept], kept, len(weight), self.classes_)

    def _adopt_joint(self, data: Training, problem: Any, result: Result) -> None:
        """Set what the solution of the joint problem says about the model and the rows."""
        solution, present = result.point, np.unique(data.y)
        b = np.asarray(getattr(result.certificate, "intercepts", solution.b))
        shape = len(self.classes_), solution.w.shape[0]
        self._pairs = [(int(k), -1) for k in present]
        self._joint = solution.w, b
        self.coef_, self.intercept_ = np.zeros(shape), np.zeros(shape[0])
        self.coef_[present], self.intercept_[present] = solution.w.T, b
        self._signed_duals, self._known_duals = [solution.beta], []
        beta = np.zeros((shape[0], len(data)))
        beta[present] = solution.beta.T
        slack = joint_slacks(problem.products(solution.w) + b, problem.labels)
        self._keep_support(data.X, data.kept, beta)
        self.alpha_ = self._spread_out(np.abs(beta), data.kept, data.n_rows)
        self.slack_ = self._spread_out(slack, data.kept, data.n_rows)
        self.margin_ = joint_margin(solution.w.T @ solution.w)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        super().check_parameters()
        check_choice(self, "probability", (True, *UNASKED))
        check_choice(self, "penalty", ("l2", "l1", "elasticnet"))
        check_choice(self, "multi_class", ("ovr", "ovo", "crammer_singer"))
        if self.penalty == "elasticnet":
            check_number(self, "l1_ratio", at_least=0, at_most=1)
        dual = self.dual if isinstance(self.dual, str) else bool(self.dual)
        smooth, sparse = self.loss == "squared_hinge", self.penalty != "l2"
        if (sparse and dual is True) or (dual is False and not smooth):
            raise ValueError(
                f"Unsupported set of arguments: penalty={self.penalty!r}, loss={self.loss!r} and "
                f"dual={dual!r} do not go together. Leave dual='auto': every penalty then goes "
                "with every loss."
            )
        if self.order == "cyclic" and (sparse or self.multi_class == "crammer_singer"):
            raise ValueError(
                f"order='cyclic' is for coordinate descent, but penalty={self.penalty!r} with "
                f"multi_class={self.multi_class!r} has another solver: leave order='random'."
            )
        if self.multi_class == "crammer_singer" and (self.penalty, self.loss) != ("l2", "hinge"):
            raise ValueError(
                f"multi_class='crammer_singer' with penalty={self.penalty!r} and "
                f"loss={self.loss!r} is not supported: choose penalty='l2' with loss='hinge', or "
                "multi_class 'ovr' or 'ovo'."
            )

    _joint: tuple[Floats, Floats]
    _tie_order: Ints | None = None  # the rank of each class among equal scores; None: as sorted
    margin_: Any

    @property
    def _is_joint(self) -> bool:
        """Whether the classes were learnt together (two of them are a binary problem)."""
        return self._scheme == "crammer_singer" and len(self.classes_) > 2

    def _plane_classes(self) -> list[tuple[int, int]]:
        return [] if self._is_joint else self._pairs

    def class_planes(self) -> ClassPlanes:
        """Return between which classes the planes are that were solved for."""
        check_is_fitted(self)
        numbers = np.arange(len(self._pairs))
        if self._is_joint:  # one of the classes may have no rows, but each has weights
            numbers = np.array([one for one, _ in self._pairs])
        return ClassPlanes(self._scheme, self._pairs, numbers, self._tie_order)

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problems of these rows, and the model as their solutions.

        The points have duals if these are the rows that the model was fitted to.
        """
        check_is_fitted(self)
        refuse_other_scheme(self, self._scheme)
        return super().solution(X, y, sample_weight)

    def _points(self, count: int) -> list[Point]:
        if self._is_joint:
            return [Point(*self._joint, self._signed_duals[0])]
        return super()._points(count)

    def _starts(
        self, formulated: Formulated, last: list[tuple[Point, KnownDuals | None]]
    ) -> list[Point] | None:
        problem = formulated.problems[0]
        joint = isinstance(problem, MulticlassProblem)
        if not last or self._scheme != self.multi_class or joint != (last[0][0].w.ndim == 2):
            return None
        if not joint:
            return super()._starts(formulated, last)
        point = last[0][0]
        same = point.beta.shape == (len(problem), problem.n_classes)
        return [Point(None, point.b, point.beta)] if same else None

    def _adopt_subproblems(
        self, formulated: Formulated, subproblems: list[Subproblem], results: list[Result]
    ) -> None:
        """Set what the solutions of the subproblems say about the model and the rows."""
        data, self._known_duals = formulated.data, []
        solutions = [result.point for result in results]
        self._pairs = [(subproblem.positive, subproblem.negative) for subproblem in subproblems]
        self.coef_ = np.array([solution.w for solution in solutions])
        self.intercept_ = np.array([result.certificate.intercept for result in results])
        self._signed_duals = [solution.beta for solution in solutions]
        beta, slack = (
            np.zeros((len(subproblems), len(data))),
            np.zeros((len(subproblems), len(data))),
        )
        for k, subproblem in enumerate(subproblems):
            rows = slice(None) if subproblem.rows is None else subproblem.rows
            X = data.X if subproblem.rows is None else data.X[rows]
            scores = row_products(X, self.coef_[k][:, None])[:, 0] + self.intercept_[k]
            beta[k, rows] = solutions[k].beta
            slack[k, rows] = np.maximum(0.0, 1 - subproblem.signs * scores)
            problem = formulated.problems[k]
            self._known_duals.append(KnownDuals.of(problem, scores, solutions[k].beta))
        self._keep_support(data.X, data.kept, beta)
        # It may be large.
        self.alpha_ = self._spread_out(np.abs(beta, out=beta), data.kept, data.n_rows)
        self.slack_ = self._spread_out(slack, data.kept, data.n_rows)
        self._set_margins()
        if len(self.classes_) == 2:
            self.alpha_, self.slack_ = self.alpha_[0], self.slack_[0]

    @property
    def support_kind_(self) -> npt.NDArray[np.str_]:
        """What kind of support vector each is, in each problem."""
        check_is_fitted(self)
        slack = np.atleast_2d(self.slack_)[:, self.support_]
        joint = len(self.classes_) > 2 and self.slack_.ndim == 1
        beta = np.ones(slack.shape) if joint else self.dual_coef_
        kinds = np.where(beta == 0, "", support_kinds(slack))
        return np.asarray(kinds if self.slack_.ndim == 2 else kinds[0])

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each row: f of shape (n,) for two classes, (n, K) for more.

        Scores are neither distances (see ``distance``) nor probabilities. With multi_class="ovo"
        the score of a class is the number of pairs it wins, ties broken by the sum of its scores.
        """
        scores = self._plane_scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return combined_scores(scores, self._pairs, len(self.classes_))

    def pairwise_scores(self, X: Any) -> Floats:
        """Return the scores of all binary problems: one column for each row of ``coef_``."""
        return self._subproblem_scores(X)

    def _plane_scores(self, X: Any) -> Floats:
        scores = self._subproblem_scores(X)
        if scores.shape[1] == len(self._pairs):
            return scores
        return scores[:, [one for one, _ in self._pairs]]  # classes together, one without rows

    def _subproblem_scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        if is_source(X):
            return np.asarray(by_parts(as_source(X, None), self._subproblem_scores))
        X = check_rows(self, X, reset=False)
        scores: Floats = row_products(X, np.ascontiguousarray(self.coef_.T)) + self.intercept_
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row: the best score; with two classes the second iff f > 0."""
        return best_classes(self.decision_function(X), self.classes_, self._tie_order)

    @property
    def hyperplane_(self) -> Hyperplane:
        """The plane f = 0 of a model with two classes."""
        check_is_fitted(self)
        if len(self.classes_) > 2:
            raise AttributeError(
                f"{len(self.classes_)} classes have {len(self.coef_)} planes: build "
                "mm.geometry.Hyperplane(coef_[k], intercept_[k]) for one of them."
            )
        return Hyperplane(self.coef_[0], float(self.intercept_[0]))
