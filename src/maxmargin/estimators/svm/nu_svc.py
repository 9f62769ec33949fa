"""The support vector classifier with a share ν of margin errors instead of a cost C."""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.formulations import NuSVCForm
from maxmargin.estimators.svm.base import KernelClassifier
from maxmargin.problems.problem import Status
from maxmargin.problems.rounding import EPS
from maxmargin.solve import Callback, Result, recertified, with_certificate
from maxmargin.validation.parameters import check_number


class NuSVC(KernelClassifier):
    """Support vector classifier whose C is chosen by a share ν of margin errors.

    Minimises ½‖w‖² + Σ max(0, ρ − y f(x)) − ν n ρ with f(x) = w·φ(x) + b, for every pair of
    classes, and divides everything by ρ: then the margins are at f = ±1. At most a share ν of the
    rows of a pair lies inside the margin, and at least that share are support vectors. Parameters
    and attributes are those of ``sklearn.svm.NuSVC``, and more; ``tol`` is a relative duality gap
    here, and ``max_iter`` is finite.

    Parameters
    ----------
    nu : float, default=0.5
        Share of margin errors, in (0, 1]; for each pair of classes of weights W₊ and W₋ at most
        2·min(W₊, W₋)/(W₊ + W₋), or it is refused before anything is computed.
    kernel : str, Kernel or callable, default="rbf"
        As in SVC: a name, any object of ``mm.kernels``, "precomputed", or a function of two blocks.
    degree : int, default=3
        For "poly", ≥ 0.
    gamma : float, "scale" or "auto", default="scale"
        For kernels given by name: γ ≥ 0, or 1/(d·Var X), or 1/d. A Kernel object has its own.
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    shrinking : bool, default=True
        Accepted for compatibility with scikit-learn; it has no effect.
    probability : bool, default=False
        Whether to have ``predict_proba``, as in SVC.
    tol : float, default=1e-4
        Relative duality gap at which the answer is good enough, ≥ 0.
    cache_size : float or None, default=None
        Megabytes for kernel values, > 0; used if memory="auto". None: free memory decides.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of rows, by class; ν must be feasible with them.
    verbose : int or bool, default=False
        Write a line per iteration.
    max_iter : int, default=10000
        Iterations allowed for each pair of classes; -1 stands for the default.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With more than two classes, what ``decision_function`` returns: a score for each class, or
        for each pair. It has no effect on ``predict``.
    break_ties : bool, default=False
        Has no effect, as ties between classes are always broken by the sums of their scores;
        ``predict`` refuses True with decision_function_shape="ovo", as scikit-learn does.
    random_state : int, Generator, RandomState or None, default=None
        Has no effect: nothing is random here.
    memory : int or "auto", default="auto"
        Bytes that kept kernel values may take; "auto": cache_size, or half of what is free.
        The model does not depend on it, only the time. Up to 3,000 rows of two classes all are
        kept (72 MB).
    max_time : float or None, default=None
        Seconds allowed for the fit; the best answer so far is kept, with its gap.
    warm_start : bool, default=False
        Start from the last solution: the duals of the rows that are the same as then.
    callback : callable or None, default=None
        As in SVC.
    trace : bool, default=False
        Keep seconds and gap of each iteration in ``trace_``.
    n_jobs : int or None, default=None
        Threads; None or -1: as many as BLAS uses. The answer does not depend on it.

    Attributes
    ----------
    classes_, class_weight_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ :
        As in SVC; duals and intercepts after division by ρ.
    certificate_ : Certificate
        Bounds on the optimum before that division. Where the convex hulls of two classes meet, even
        reduced as ``nu`` asks, the optimum is 0, ``status_`` is NO_MARGIN, nothing is divided, and
        predictions carry no information: raise ``nu``, or take another kernel.
    status_, stop_reason_, solver_, n_iter_, fit_status_, kernel_, trace_, shape_fit_ :
        As in SVC; so is ``calibration_``.
    alpha_, slack_, support_kind_, margin_ : ndarray
        As in SVC, after division by ρ.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(200, random_state=0)
    >>> model = mm.NuSVC(nu=0.1).fit(X, y)
    >>> model.certificate_.holds(1e-4)
    True
    >>> len(model.support_) >= 0.1 * len(X)
    True
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-4,
        cache_size: float | None = None,
        class_weight: Any = None,
        verbose: int | bool = False,
        max_iter: int = 10_000,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        memory: int | str = "auto",
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        trace: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.memory = memory
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.trace = trace
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; float32 stays float32, sparse stays sparse. With kernel="precomputed" the square
            matrix of kernel values; with a function, whatever it takes.
        y : array-like of shape (n_samples,)
            Labels of any kind; two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            How many times each row counts; a row of weight 0 is absent.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        super().check_parameters()
        check_number(self, "nu", above=0, at_most=1)

    def _form(self) -> NuSVCForm:
        return NuSVCForm(float(self.nu))

    def _as_stored(self, problems: list[Any], results: list[Result]) -> tuple[list[Result], str]:
        tol = float(self.tol)
        # Where nothing was divided, b is not what it was.
        stored = [
            _divided(problem, result, tol)
            if self._scales[k] > 0
            else recertified(problem, result, np.repeat(self.intercept_[k], 2), tol)
            for problem, result, k in zip(problems, results, self._solved, strict=True)
        ]
        ended = any(result.status is Status.MAX_TIME for result in stored)
        if (self._scales > 0).all() or ended:
            return stored, ""
        return stored, (
            f" The convex hulls of the classes meet, even reduced as nu={self.nu!r} asks: the "
            "margin is 0 and predictions say nothing. Raise nu, or take another kernel."
        )


def _divided(problem: Any, result: Result, tol: float) -> Result:
    """Return a result whose certificate allows for the rounding of b/ρ, which moves all scores."""
    found = result.certificate
    if not (np.isfinite(found.primal) and found.size > 0):
        return result
    largest = float(np.abs(found.intercepts).sum())
    error = 4 * EPS * largest * float((problem.loss.high - problem.loss.low).sum())
    return with_certificate(
        result, replace(found, rounding=found.rounding + error / found.size), tol
    )
