"""The support vector regressor with any kernel."""

from typing import Any, Self

from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.formulations import EpsilonSVRForm
from maxmargin.estimators.svm.base import KernelRegressor
from maxmargin.problems.problem import Intercept
from maxmargin.solve import Callback
from maxmargin.validation.parameters import check_cost, check_flag, check_number


class SVR(KernelRegressor):
    """Support vector regression with any kernel, and a proof of how good it is.

    Minimises ½‖w‖² + C Σ max(0, |y − f(x)| − ε) with f(x) = w·φ(x) + b. Parameters and attributes
    are those of ``sklearn.svm.SVR``, and more; ``tol`` is a relative duality gap here, and
    ``max_iter`` is finite.

    Parameters
    ----------
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
    C : float, default=1.0
        Cost of errors, > 0.
    epsilon : float, default=0.1
        Half the width of the tube in which errors cost nothing, in the units of y, ≥ 0.
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
        Dual variables |β|; the sign of ``dual_coef_`` says on which side of the tube a row lies.
    slack_ : ndarray of shape (n_samples,)
        Errors beyond ε of the support vectors; other rows have none at the optimum.
    support_kind_ : ndarray of str, of shape (n_support,)
        "on the tube" or "outside".
    margin_ : float
        1/‖w‖ in feature space.

    Examples
    --------
    >>> import numpy as np, maxmargin as mm
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = mm.SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> model.certificate_.holds(1e-4)
    True
    >>> model.predict([[np.pi / 2]]).round(1)
    array([1.])
    """

    _has_linear_machine = True

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        epsilon: float = 0.1,
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
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
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
        check_number(self, "epsilon", at_least=0)
        check_flag(self, "fit_intercept")

    def _half_width(self) -> float:
        return float(self.epsilon)

    def _form(self) -> EpsilonSVRForm:
        intercept = Intercept.FREE if self.fit_intercept else Intercept.NONE
        return EpsilonSVRForm(float(self.C), float(self.epsilon), intercept)
