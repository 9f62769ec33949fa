"""Support vector regression of quantiles."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.formulations import QuantileForm
from maxmargin.estimators.svm.base import KernelRegressor
from maxmargin.problems.losses import ON_EDGE
from maxmargin.problems.problem import Intercept
from maxmargin.solve import Callback
from maxmargin.validation.parameters import check_cost, check_flag, check_number


class QuantileSVR(KernelRegressor):
    """Regression of a quantile with any kernel, and a proof of how good it is.

    Minimises ½‖w‖² + C Σ max(q·(y − f(x)), (1 − q)·(f(x) − y)) with f(x) = w·φ(x) + b: the pinball
    loss, whose mean is least where a share q of the targets lies below f. With a free intercept
    this holds on the training rows whatever C and the kernel are: the weight of the rows below f is
    at most q times that of all rows, and the weight of those below f or on it is at least that.

    Each quantile is a fit of its own, and the curves of two quantiles may cross where there are few
    rows.

    Parameters
    ----------
    quantile : float, default=0.5
        The share q of the targets that is to lie below f, in (0, 1); 0.5 is the median.
    C : float, default=1.0
        Cost of errors, > 0.
    kernel : str, Kernel or callable, default="rbf"
        As in SVC: a name, any object of ``mm.kernels``, "precomputed", or a function of two blocks.
        "linear" is solved by the method of ``LinearSVR``.
    degree : int, default=3
        For "poly", ≥ 0.
    gamma : float, "scale" or "auto", default="scale"
        For kernels given by name: γ ≥ 0, or 1/(d·Var X), or 1/d. A Kernel object has its own.
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    tol : float, default=1e-4
        Relative duality gap at which the answer is good enough, ≥ 0.
    shrinking : bool, default=True
        Accepted for compatibility with scikit-learn; it has no effect.
    cache_size : float or None, default=None
        Megabytes for kernel values, > 0; used if memory="auto". None: free memory decides.
    verbose : int or bool, default=False
        Write a line per iteration.
    max_iter : int, default=10000
        Iterations allowed; -1 stands for the default.
    fit_intercept : bool, default=True
        Whether there is an intercept b, which costs nothing, or b = 0.
    memory : int or "auto", default="auto"
        Bytes that kept kernel values may take; "auto": cache_size, or half of what is free.
        The model does not depend on it, only the time. Up to 1,500 rows all are kept (18 MB).
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
    support_, support_vectors_, n_support_ : ndarray
        Rows with a dual other than 0, the rows themselves, and how many there are.
    dual_coef_ : ndarray of shape (1, n_support)
        Their duals β: f(x) = Σ βᵢK(xᵢ, x) + b.
    intercept_ : ndarray of shape (1,)
        b.
    coef_ : ndarray of shape (1, n_features)
        w, for the linear kernel only.
    certificate_, status_, stop_reason_, solver_, n_iter_, fit_status_ :
        As in SVC.
    kernel_, trace_, shape_fit_ :
        As in SVC.
    alpha_ : ndarray of shape (n_samples,)
        Dual variables |β|. β is Cq for rows above f, −C(1 − q) for rows below, and between these
        for rows on f: nearly all rows are support vectors.
    slack_ : ndarray of shape (n_samples,)
        Errors |y − f(x)| of the support vectors, each of which costs Cq times itself above f and
        C(1 − q) times itself below; other rows have none at the optimum.
    support_kind_ : ndarray of str, of shape (n_support,)
        "above" f, "below" it, or "on the curve".
    margin_ : float
        1/‖w‖ in feature space.

    Notes
    -----
    ``score`` is R², as of every regressor of scikit-learn, ``QuantileRegressor`` included: it
    judges f as if it were a mean, and is low for q far from 0.5. To compare models of a quantile,
    use the loss itself: ``sklearn.metrics.mean_pinball_loss(y, f, alpha=q)``, or
    ``d2_pinball_score``, which is 1 for a perfect f and 0 for the best constant.

    Examples
    --------
    >>> import numpy as np, maxmargin as mm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (200, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(200)
    >>> model = mm.QuantileSVR(quantile=0.9, C=10.0).fit(X, y)
    >>> model.certificate_.holds(1e-4)
    True
    >>> below, on = model.support_kind_ == "below", model.support_kind_ == "on the curve"
    >>> bool(below.sum() <= 0.9 * 200 <= (below | on).sum())
    True
    """

    _has_linear_machine = True

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        shrinking: bool = True,
        cache_size: float | None = None,
        verbose: int | bool = False,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        memory: int | str = "auto",
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        trace: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.quantile = quantile
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.memory = memory
        self.max_time = max_time
        self.warm_start = warm_start
        self.callback = callback
        self.trace = trace
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows X with targets y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; float32 stays float32, sparse stays sparse. With kernel="precomputed" the square
            matrix of kernel values; with a function, whatever it takes.
        y : array-like of shape (n_samples,)
            Numbers.
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
        check_cost(self)
        check_number(self, "quantile", above=0, below=1)
        check_flag(self, "fit_intercept")

    def _half_width(self) -> float:
        return 0.0

    @property
    def support_kind_(self) -> npt.NDArray[np.str_]:
        """What kind of support vector each is."""
        near = self._slacks <= ON_EDGE * self._spread
        above = self._support_targets > self._products()[:, 0] + self.intercept_[0]
        return np.select([near, above], ["on the curve", "above"], "below")

    def _form(self) -> QuantileForm:
        intercept = Intercept.FREE if self.fit_intercept else Intercept.NONE
        return QuantileForm(float(self.C), float(self.quantile), intercept)
