"""The maximal margin classifier: no slack, and an error with a proof where there is no plane."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import together
from maxmargin.errors import warn
from maxmargin.estimators.callbacks import announced, with_callbacks
from maxmargin.estimators.formulations import Training
from maxmargin.estimators.kernel_input import count_threads, named_kernel
from maxmargin.estimators.left_out import SolvedProblem
from maxmargin.estimators.machine import UNASKED, Solved, solver_settings
from maxmargin.estimators.probabilities import Probabilistic
from maxmargin.estimators.reductions import (
    ClassPlanes,
    Subproblem,
    best_classes,
    combined_scores,
    refuse_other_scheme,
)
from maxmargin.estimators.svm.base import KernelMachine
from maxmargin.kernels import Linear
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, Point, Status
from maxmargin.runtime import clock
from maxmargin.separability.max_margin import (
    FeatureSpaceRows,
    LinearRows,
    NoPlane,
    Widest,
    find_widest,
    hard_problem,
    refusal,
)
from maxmargin.solve import Callback, gap_left, ill_scaled
from maxmargin.validation.data import check_classification, refuse_tiny
from maxmargin.validation.parameters import (
    check_choice,
    check_memory,
    check_number,
    check_progress,
    check_threads,
)


class HardMarginSVC(Probabilistic, ClassifierMixin, KernelMachine):
    """The separating plane of largest margin: min ½‖w‖² such that y(w·φ(x) + b) ≥ 1 for every row.

    It is found from the nearest points of the classes' convex hulls, not by a huge C, and certified
    by its dual. If no plane separates the classes, ``fit`` raises ``NotSeparableError``, whose
    ``witness`` proves it: rows of both classes with convex weights that meet in one point.

    With a kernel, φ(x) lies in its feature space, and everything is computed from the Gram matrix
    of all rows. As its values are rounded, a margin below about 1e-7 of the rows' size cannot be
    told from none: then the error says which margin is impossible, and the witness how near the
    classes come to each other (its ``point`` is given by its products with the witness's own rows).

    Parameters
    ----------
    kernel : str, Kernel or callable, default="linear"
        As in ``SVC``. It must be positive semidefinite: others are refused. "linear" needs no Gram
        matrix.
    gamma : float, "scale" or "auto", default="scale"
        For kernels given by name: γ ≥ 0, or 1/(d·Var X), or 1/d.
    degree : int, default=3
        For "poly".
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    intercept : {"free", "none"}, default="free"
        Whether the plane may miss the origin.
    multi_class : {"ovo", "ovr"}, default="ovo"
        With more than two classes: every two of them, or one against the rest; each of these must
        be separable.
    tol : float, default=1e-8
        Relative duality gap at which the answer is optimal. The answer is as near as rounding
        allows in any case; ``tol`` only decides what ``status_`` calls it.
    max_iter : int, default=1000
        How many times all rows may be searched, for each binary problem.
    max_time : float or None, default=None
        Seconds allowed for the fit. If a plane was found by then it is kept, with its gap;
        otherwise NotSeparableError says that it is undecided. (A Gram matrix and its factor, n³/3
        multiplications, are finished once begun.)
    callback : callable or None, default=None
        Called with a Progress (``iteration``, ``seconds``, ``iterate.relative_gap``) after each
        iteration; returning True ends the fit.
    verbose : int, default=0
        Write a line per iteration.
    memory : int or "auto", default="auto"
        Bytes that the Gram matrix and its factor may take, five matrices of its size in all; more
        rows than that are refused. "auto": half of what is free.
    n_jobs : int or None, default=None
        Threads that compute kernel values; None or -1: as many as BLAS uses.
    probability : bool, default=False
        Whether to have ``predict_proba``, as in ``SVC``. Weights of rows, which do not move the
        plane, count for it.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (m, n_features) and (m,)
        Weights (for the linear kernel only) and intercept of each of the m binary problems, scaled
        to min y f = 1. There is one for two classes, and then ``classes_[1]`` is positive; in a
        pair (i, j) class i is.
    margin_ : float or ndarray of shape (m,)
        1/‖w‖, the distance of the nearest rows: half the distance of the hulls (from 0, without an
        intercept).
    certificate_ : Certificate
        Proof of how near ½‖w‖² is to the smallest possible.
    alpha_ : ndarray of shape (n,) or (m, n)
        Dual variables: w = Σ αyφ(x).
    support_, support_vectors_ : ndarray
        The rows with a positive dual variable, by number and as vectors (none for
        kernel="precomputed"). The others could be left out without changing the plane.
    dual_coef_ : ndarray of shape (m, n_support)
        α·y of the support vectors.
    n_support_ : ndarray of shape (n_classes,)
        How many support vectors each class has.
    support_kind_ : ndarray of str
        "margin" for all of them: there is no slack.
    status_, stop_reason_ : Status, str
        Why it stopped, as a word and as a sentence.
    n_iter_ : int
        How many times all rows were searched; the largest number of all binary problems.
    kernel_ : Kernel
        The kernel with numbers for all its parameters.
    shape_fit_ : tuple
        The shape of X.
    classes_ : ndarray
        The labels.
    calibration_ : Calibration
        How scores become probabilities, as in ``SVC``; with probability=True.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(100, margin=0.25, random_state=0)
    >>> model = mm.HardMarginSVC().fit(X, y)
    >>> round(model.margin_, 6), model.certificate_.holds(1e-8)
    (0.25, True)
    >>> mm.HardMarginSVC().fit([[0], [1], [2]], [0, 1, 0])
    Traceback (most recent call last):
    ...
    maxmargin.errors.NotSeparableError: No plane separates 0 from 1: 3 rows of both meet in one \
point (see the witness). Use LinearSVC, which allows slack.
    >>> model = mm.HardMarginSVC(kernel="rbf").fit([[0], [1], [2]], [0, 1, 0])
    >>> model.predict([[0.9], [1.9]])
    array([1, 0])
    """

    _instead: ClassVar = {
        "C": "A hard margin allows no slack: SVC and LinearSVC do, at the cost C.",
        "fit_intercept": "It is called intercept here: 'free' or 'none'.",
    }
    class_weight = None  # a constraint holds or does not, whatever it weighs

    def __init__(
        self,
        *,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        intercept: str = "free",
        multi_class: str = "ovo",
        tol: float = 1e-8,
        max_iter: int = 1000,
        max_time: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
        memory: int | str = "auto",
        n_jobs: int | None = None,
        probability: Any = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.intercept = intercept
        self.multi_class = multi_class
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.callback = callback
        self.verbose = verbose
        self.memory = memory
        self.n_jobs = n_jobs
        self.probability = probability

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the plane(s) of largest margin.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows. With kernel="precomputed" the square matrix of kernel values; with a function,
            whatever it takes.
        y : array-like of shape (n_samples,)
            Labels of any kind; two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 0 is absent. Any other weight changes nothing, as a constraint holds or
            does not, however often it is stated; only gamma="scale" counts rows by it.

        Returns
        -------
        self

        Raises
        ------
        NotSeparableError
            If no plane separates two classes; its ``witness`` proves it. Without a witness, it
            could not be decided: at this precision, or in time.
        """
        self.check_parameters()
        for name in self._forgotten:  # whatever fails from here on leaves it unfitted
            self.__dict__.pop(name, None)
        data = self._training(X, y, sample_weight, reset=True)
        found = self._solve(data)
        self._keep_duals(data, found)
        self._keep_weights(found)
        self._report_search(data, found)
        if self.probability not in UNASKED:
            seconds, machines = sum(each.run.seconds for each in found), self._machines(data)
            settings = solver_settings(self, silent=True)
            self._calibrate_machines(data, self.multi_class, machines, settings, seconds)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the score f of each row: (n,) for two classes, (n, K) for more.

        With ``multi_class="ovo"`` a class scores the number of pairs it wins, plus less than a half
        that breaks ties by the sum of its scores. ``distance`` has distances.
        """
        scores = self.pairwise_scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return combined_scores(scores, self._subproblems, len(self.classes_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row: the best score; with two classes the second iff f > 0."""
        return best_classes(self.decision_function(X), self.classes_)

    def class_planes(self) -> ClassPlanes:
        """Return between which classes the planes are."""
        return ClassPlanes(self._scheme, self._subproblems, np.arange(len(self._subproblems)))

    def distance(self, X: Any) -> Floats:
        """Return the signed distance f/‖w‖ from the plane: (n,), or (n, m) for m of them."""
        scores = self.pairwise_scores(X) / self._lengths
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)

    @property
    def coef_(self) -> Floats:
        """The weights w, which exist for the linear kernel only."""
        return super().coef_

    @coef_.setter
    def coef_(self, w: Any) -> None:
        self._weights, self._weights_of = np.array(w, dtype=np.float64), self.dual_coef_.copy()

    def check_parameters(self) -> None:
        """Raise if a parameter has no value that it may have."""
        named_kernel(self)
        check_choice(self, "intercept", ("free", "none"))
        check_choice(self, "multi_class", ("ovo", "ovr"))
        check_choice(self, "probability", (True, *UNASKED))
        check_number(self, "tol", above=0)
        check_number(self, "max_iter", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_memory(self)
        check_threads(self)
        check_progress(self)

    def _bytes(self) -> int | None:
        return None if isinstance(self.memory, str) else int(self.memory)

    def _check_targets(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[Ints, Floats, Any]:
        labels, weight, _ = check_classification(self, y, n_rows, sample_weight, reset=reset)
        return labels, weight, 1.0

    def _rows(self, X: Any) -> LinearRows | FeatureSpaceRows:
        """Return the rows to search among; refuse more than fit into memory as a Gram matrix."""
        kernel = self.kernel_
        if type(kernel) is Linear:
            refuse_tiny(X)
            return LinearRows(X)
        gram = Gram(kernel, X, memory=self._bytes(), threads=count_threads(self.n_jobs))
        return FeatureSpaceRows.of(gram, X)

    def _solve(self, data: Training) -> list[Widest]:
        """Return the widest plane of each subproblem; raise at the first that has none."""
        most = self.max_time and self._time_to_solve()
        end = None if most is None else clock.now() + most
        callback = announced(self, self.callback)
        rows, subproblems = self._rows(data.X), data.subproblems(self.multi_class)
        found, interrupted = list[Widest](), False
        for k, subproblem in enumerate(subproblems):
            answer = find_widest(
                rows if subproblem.rows is None else rows[subproblem.rows],
                subproblem.signs,
                Intercept(self.intercept),
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=None
                if end is None
                else max(end - clock.now(), 0.0) / (len(subproblems) - k),
                callback=callback,
                verbose=bool(self.verbose),
                in_any_case=interrupted,
            )
            if isinstance(answer, NoPlane):
                self._refuse(subproblem, answer, _rows_of(subproblem, data))
            else:
                found.append(answer)
                if answer.run.status is Status.INTERRUPTED:  # the others have no time any more
                    interrupted, end, callback = True, clock.now(), None
        return found

    def _refuse(self, subproblem: Subproblem, answer: NoPlane, rows: Ints) -> None:
        """Raise what says which classes no plane separates, with the rows that prove it."""
        names = self.classes_.tolist()
        first = names[subproblem.positive]
        second = "the rest" if subproblem.negative < 0 else names[subproblem.negative]
        if len(names) == 2:
            first, second = names
        softer = "LinearSVC" if type(self.kernel_) is Linear else "SVC"
        advice = f"Use {softer}, which allows slack."
        raise refusal(answer, (first, second), rows, advice)

    def _keep_duals(self, data: Training, found: list[Widest]) -> None:
        self._scheme = self.multi_class
        subproblems = data.subproblems(self._scheme)
        self._subproblems = [
            (subproblem.positive, subproblem.negative) for subproblem in subproblems
        ]
        self.intercept_ = np.array([plane.point.b for plane in found])
        beta = np.zeros((len(subproblems), data.n_rows))
        for k, (subproblem, plane) in enumerate(zip(subproblems, found, strict=True)):
            beta[k, _rows_of(subproblem, data)] = plane.point.beta
        alpha = np.abs(beta)
        self.alpha_ = alpha[0] if len(self.classes_) == 2 else alpha
        self.support_ = np.flatnonzero(alpha.any(axis=0))
        self.dual_coef_ = beta[:, self.support_]
        self.support_kind_ = np.full(len(self.support_), "margin")
        by_number = np.argsort(data.kept)
        used = by_number[np.searchsorted(data.kept, self.support_, sorter=by_number)]
        counts: Any = np.bincount(data.y[used], minlength=len(self.classes_))
        self.n_support_ = counts
        self.support_vectors_ = data.X[:0] if self.kernel_.takes_gram else data.X[used]
        if self.kernel_.takes_gram:
            rows = self.kernel_.prepare(data.X)[used]
            self._given_products = self.kernel_.dot(rows, rows[:], self._coefficients())

    def _keep_weights(self, found: list[Widest]) -> None:
        self.__dict__.pop("_weights", None)
        if type(self.kernel_) is Linear:
            self.coef_ = np.array([plane.point.w for plane in found])
        margins = 1.0 / self._lengths
        self.margin_ = float(margins[0]) if len(self.classes_) == 2 else margins

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problems that were solved, and the model as their solutions."""
        self._refuse_altered()
        refuse_other_scheme(self, self._scheme)
        data = self._training(X, y, sample_weight, reset=False)
        if self.shape_fit_[0] != data.n_rows and type(self.kernel_) is not Linear:
            raise ValueError(
                f"HardMarginSVC was trained on {self.shape_fit_[0]} rows, but X has {data.n_rows}: "
                "certify needs the training rows, all of them."
            )
        return [
            Solved(each.problem, each.point, data.kept[each.rows]) for each in self._machines(data)
        ]

    def _machines(self, data: Training) -> list[SolvedProblem]:
        """Return the problems of these rows, and the model as their solutions."""
        linear, n = type(self.kernel_) is Linear, data.n_rows
        beta = np.zeros((len(self.intercept_), n))
        if self.shape_fit_[0] == n:
            beta[:, self.support_] = self.dual_coef_
        features = LinearFeatures(data.X) if linear else self._features(data)
        solved = []
        for k, subproblem in enumerate(data.subproblems(self.multi_class)):
            part = features if subproblem.rows is None else features.take(subproblem.rows)
            problem = hard_problem(part, subproblem.signs, Intercept(self.intercept))
            rows = np.arange(len(data)) if subproblem.rows is None else subproblem.rows
            own = beta[k, data.kept[rows]]
            point = Point(self.coef_[k] if linear else own, float(self.intercept_[k]), own)
            solved.append(SolvedProblem(problem, point, rows))
        return solved

    def _plane_scores(self, X: Any) -> Floats:
        return self.pairwise_scores(X)

    def _report_search(self, data: Training, found: list[Widest]) -> None:
        """Set the attributes that describe the search; warn if it ended early."""
        statuses = [plane.run.status for plane in found]
        self.certificate_ = together([plane.certificate for plane in found])
        self.status_ = next((s for s in statuses if s is not Status.OPTIMAL), Status.OPTIMAL)
        if Status.INTERRUPTED in statuses:
            self.status_ = Status.INTERRUPTED
        self.n_iter_ = max(plane.run.iterations for plane in found)
        times = f"{self.n_iter_} iteration{'' if self.n_iter_ == 1 else 's'}"
        self.stop_reason_ = f"After {times}: {_SENTENCES.get(self.status_, self.status_.value)}."
        if self.status_ is Status.OPTIMAL:
            return
        if np.isinf(self.certificate_.primal):
            self.stop_reason_ += " The plane does not separate all rows yet."
        else:
            self.stop_reason_ += gap_left(self.certificate_, self.tol)
        vectors = not (self.kernel_.takes_gram or self.kernel_.takes_objects)
        if self.status_ in (Status.STALLED, Status.ROUNDING) and vectors:
            self.stop_reason_ += ill_scaled(data.X, getattr(self, "feature_names_in_", None))
        if self.status_ is Status.INTERRUPTED:
            raise KeyboardInterrupt(self.stop_reason_)
        if self.status_ is not Status.CALLBACK:
            warn(self.stop_reason_, ConvergenceWarning)


_SENTENCES = {
    Status.MAX_TIME: "stopped at max_time with a plane that separates, not yet the widest",
    Status.STALLED: "the plane separates, but the search for the widest made no more progress",
    Status.ROUNDING: "the plane separates, but its margin is so small beside the rows that "
    "rounding hides whether it is the widest",
}


def _rows_of(subproblem: Subproblem, data: Training) -> Ints:
    """Return the rows given that take part in a subproblem."""
    return data.kept if subproblem.rows is None else data.kept[subproblem.rows]
