"""Support vector regression that finds the width of its tube."""

from typing import Any, Self

from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.formulations import NuSVRForm, SolvedPlane, Training
from maxmargin.estimators.svm.base import KernelRegressor
from maxmargin.solve import Callback
from maxmargin.validation.parameters import check_cost, check_number


class NuSVR(KernelRegressor):
    """Support vector regression whose tube is as wide as a share ν of the rows allows.

    Minimises ½‖w‖² + C Σ max(0, |y − f(x)| − ε) + C ν n ε over f and ε: at most a share ν of the
    rows lies outside the tube, and at least that share are support vectors. Parameters and
    attributes are those of ``sklearn.svm.NuSVR``, and more; ``tol`` is a relative duality gap
    here, and ``max_iter`` is finite.

    Parameters
    ----------
    nu : float, default=0.5
        Share of the rows (of their weight) that may lie outside the tube, in (0, 1].
    C : float, default=1.0
        Cost of errors, > 0.
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
    tol : float, default=1e-4
        Relative duality gap at which the answer is good enough, ≥ 0.
    cache_size : float or None, default=None
        Megabytes for kernel values, > 0; used if memory="auto". None: free memory decides.
    verbose : int or bool, default=False
        Write a line per iteration.
    max_iter : int, default=10000
        Iterations allowed; -1 stands for the default.
    memory : int or "auto", default="auto"
        Bytes that kept kernel values may take; "auto": cache_size, or half of what is free.
        The model does not depend on it, only the time. Up to 3,000 rows all are kept (72 MB).
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
    epsilon_ : float
        Half the width of the tube that was found.

    Examples
    --------
    >>> import numpy as np, maxmargin as mm
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = mm.NuSVR(nu=0.2, C=10.0).fit(X, np.sin(X[:, 0]))
    >>> model.certificate_.holds(1e-4)
    True
    >>> len(model.support_) >= 0.2 * len(X)
    True
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-4,
        cache_size: float | None = None,
        verbose: int | bool = False,
        max_iter: int = 10_000,
        memory: int | str = "auto",
        max_time: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        trace: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
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
        check_number(self, "nu", above=0, at_most=1)

    def _half_width(self) -> float:
        return float(self.epsilon_)

    def _form(self) -> NuSVRForm:
        return NuSVRForm(float(self.nu), float(self.C))

    def _keep_planes(self, data: Training, planes: list[SolvedPlane]) -> None:
        super()._keep_planes(data, planes)
        self.epsilon_ = planes[0].epsilon
