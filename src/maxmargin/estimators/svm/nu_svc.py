"""The support vector classifier that is told a share of margin errors in the place of C."""

from typing import Any, Self

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.reductions import Task
from maxmargin.estimators.svm.base import KernelClassifier
from maxmargin.estimators.svm.parts import Part
from maxmargin.loops.records import Loss
from maxmargin.problems.problem import Status
from maxmargin.solve import Callback, Result, recertified

_NOTHING = 1e-10  # a margin below this part of the sums it comes from is rounding


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
        Taken for the sake of scikit-learn's signature: it has no effect on the answer.
    probability : False, default=False
        True is refused, as in SVC.
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
        The model does not depend on it, only the time.
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
        Bounds on the optimum before that division.
    status_, stop_reason_, solver_, n_iter_, fit_status_, kernel_, trace_, shape_fit_ :
        As in SVC.
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        self._fit(X, y, sample_weight)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_share()

    def _binary(self, task: Task, weight: Floats, rows: Ints, sides: Ints) -> Part:
        positive = task.signs > 0
        weights = float(weight[positive].sum()), float(weight[~positive].sum())
        total = 0.5 * float(self.nu) * sum(weights)
        if total > min(weights) * (1 + 1e-12):
            self._refuse(task, weights)
        total = min(total, *weights)
        none = np.zeros(len(rows))
        low, high = np.where(positive, 0.0, -weight), np.where(positive, weight, 0.0)
        groups = np.where(positive, 0, 1)
        return Part(
            Loss(none, low, high, none, 0.0), rows, sides, groups, np.array([total, -total])
        )

    def _refuse(self, task: Task, weights: tuple[float, float]) -> None:
        names = [repr(self.classes_.tolist()[k]) for k in (task.positive, task.negative)]
        raise ValueError(
            f"nu={self.nu!r}: the specified nu is infeasible. Classes {names[0]} and {names[1]} "
            f"of weights {weights[0]:g} and {weights[1]:g} allow 0 < nu <= "
            f"{2 * min(weights) / sum(weights):.6g}: lower nu, or balance the classes."
        )

    def _placed(self, problem: Any, result: Result) -> tuple[float, float]:
        above, below = result.certificate.intercepts
        b, rho = 0.5 * (above + below), 0.5 * (below - above)
        sums = float(np.abs(result.point.beta).sum()) * float(problem.gram.diagonal.max())
        # 0 stands for a margin of nothing, by which nothing is divided.
        return (rho, b / rho) if rho > _NOTHING * sums else (0.0, b)

    def _as_stored(self, problems: list[Any], results: list[Result]) -> list[Result]:
        planes = zip(problems, results, self._planes_solved(), strict=True)
        return [
            result
            if self._scales[plane] > 0
            else recertified(problem, result, self._point(plane)[1], float(self.tol))
            for problem, result, plane in planes
        ]

    def _remark(self) -> str:
        if (self._scales > 0).all() or self.status_ is Status.MAX_TIME:
            return ""
        return (
            f" nu={self.nu!r} is so small that the classes meet even when they are shrunk as it "
            "asks: the margin is 0 and scores say nothing. Raise nu, or take another kernel."
        )

    def _point(self, plane: int) -> tuple[float, Any]:
        rho = float(self._scales[plane])
        scale = rho or 1.0
        b = scale * float(self.intercept_[plane])
        return scale, np.array([b - rho, b + rho])
