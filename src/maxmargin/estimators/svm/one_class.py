"""What is usual and what is not: a plane between most of the rows and the origin."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.callbacks import with_callbacks
from maxmargin.estimators.formulations import OneClassForm, SolvedPlane, Training
from maxmargin.estimators.svm.base import KernelMachine
from maxmargin.problems.losses import ON_EDGE
from maxmargin.problems.problem import Status
from maxmargin.solve import Callback, Result, recertified
from maxmargin.validation.data import regression_weights
from maxmargin.validation.parameters import check_number

_SMALL = 1000  # rows up to which the boundary is found to rounding
_ROUNDING = 1e-12  # of ρ, in scores
_LIFT, _LIFT_OF_TOL = 1e-9, 0.01  # the largest part of ρ that counts as rounding, or of tol


class OneClassSVM(OutlierMixin, KernelMachine):
    """Outlier detection: the plane in feature space farthest from the origin, below most rows.

    Minimises ½‖w‖² + Σ max(0, ρ − w·φ(x)) − ν n ρ; a row is usual where f(x) = w·φ(x) − ρ ≥ 0.
    At most a share ν of the training rows are outliers, and at least that share are support
    vectors. Parameters and attributes are those of ``sklearn.svm.OneClassSVM``, and more; ``tol``
    is a relative duality gap here, and ``max_iter`` is finite.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        As in SVC: a name, any object of ``mm.kernels``, "precomputed", or a function of two blocks.
    degree : int, default=3
        For "poly", ≥ 0.
    gamma : float, "scale" or "auto", default="scale"
        For kernels given by name: γ ≥ 0, or 1/(d·Var X), or 1/d. A Kernel object has its own.
    coef0 : float, default=0.0
        For "poly" and "sigmoid".
    tol : float, default=1e-4
        Relative duality gap at which the answer is good enough, ≥ 0.
    nu : float, default=0.5
        Share of the rows (of their weight) that may be outliers, in (0, 1].
    shrinking : bool, default=True
        Accepted for compatibility with scikit-learn; it has no effect.
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
        Their duals: w·φ(x) = Σ αᵢK(xᵢ, x).
    intercept_, offset_ : ndarray of shape (1,)
        −ρ, and ρ: ``decision_function = score_samples - offset_``.
    coef_ : ndarray of shape (1, n_features)
        w, for the linear kernel only.
    outlier_fraction_, support_fraction_ : float
        Share of the training rows beyond the boundary, and of support vectors, by their weights:
        ν lies between them.
    certificate_, status_, stop_reason_, solver_, n_iter_, fit_status_ :
        As in SVC.
    kernel_, trace_, shape_fit_ :
        As in SVC.
    alpha_, slack_ : ndarray of shape (n_samples,)
        Dual variables, and by how much f < 0 for support vectors (others have f ≥ 0 at the
        optimum).
    support_kind_ : ndarray of str, of shape (n_support,)
        "margin" or "outside".
    margin_ : float
        1/‖w‖ in feature space; ρ times it is the distance of the plane from the origin.

    Examples
    --------
    >>> import numpy as np, maxmargin as mm
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = mm.OneClassSVM(nu=0.1).fit(X)
    >>> model.certificate_.holds(1e-4)
    True
    >>> model.outlier_fraction_ <= 0.1 <= model.support_fraction_
    True
    >>> model.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        nu: float = 0.5,
        shrinking: bool = True,
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
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
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
        """Learn from rows X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; float32 stays float32, sparse stays sparse. With kernel="precomputed" the square
            matrix of kernel values; with a function, whatever it takes.
        y : ignored
            Present for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            How many times each row counts; a row of weight 0 is absent.

        Returns
        -------
        self
        """
        return self._fit(X, None, sample_weight)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        super().check_parameters()
        check_number(self, "nu", above=0, at_most=1)

    def _check_targets(
        self, y: Any, n_rows: int, sample_weight: Any, reset: bool
    ) -> tuple[None, Floats, Any]:
        del y, reset
        return None, regression_weights(sample_weight, n_rows), 1.0

    def _form(self) -> OneClassForm:
        return OneClassForm(float(self.nu))

    def _keep_support(self, data: Training, problems: list[Any], planes: list[SolvedPlane]) -> Ints:
        used = super()._keep_support(data, problems, planes)
        weight, total = data.weight[used], float(data.weight.sum())
        self.support_fraction_ = float(weight.sum()) / total
        # Outliers have a full dual; of rows on the boundary itself some may be a rounding error
        # below, but they do not.
        self._full = self.dual_coef_[0] >= weight
        self._shares = weight / total
        return used

    def _as_stored(self, problems: list[Any], results: list[Result]) -> tuple[list[Result], str]:
        if results[0].status is Status.NO_MARGIN:
            return results, (
                f" The convex hull of the rows, reduced as nu={self.nu!r} asks, contains the "
                'origin of the kernel\'s space. Raise nu, or take another kernel, such as "rbf".'
            )
        lift = self._lift()
        if not lift > 0 or self.shape_fit_[0] > _SMALL:
            return results, ""
        self.intercept_ = self.intercept_ + lift
        return [recertified(problems[0], results[0], self.intercept_, float(self.tol))], ""

    @property
    def _slacks(self) -> Floats:
        check_is_fitted(self)
        return np.asarray(np.maximum(0.0, -self._products()[:, 0] - self.intercept_[0]))

    @property
    def outlier_fraction_(self) -> float:
        """Share of the training rows beyond the boundary, by their weights."""
        return float(self._shares[self._full & (self._slacks > 0)].sum())

    @property
    def support_kind_(self) -> npt.NDArray[np.str_]:
        """What kind of support vector each is."""
        near = self._slacks <= ON_EDGE * abs(float(self.intercept_[0]))
        return np.where(near, "margin", "outside")

    @property
    def margin_(self) -> float:
        """1/‖w‖ in feature space."""
        return float(self._margins()[0])

    def _lift(self) -> float:
        """Return what rounding leaves below 0 of rows on the boundary itself.

        They count as usual; so no more than a share ν of the training rows do not.
        """
        free = ~self._full
        if not free.any():
            return 0.0
        rho = abs(float(self.intercept_[0]))
        lowest = float(self._products()[free, 0].min()) + float(self.intercept_[0])
        lift = max(0.0, -lowest) + _ROUNDING * rho
        return lift if lift <= max(_LIFT, _LIFT_OF_TOL * float(self.tol)) * rho else 0.0

    @property
    def offset_(self) -> Floats:
        """Minus the intercept: ρ."""
        check_is_fitted(self)
        return np.asarray(-self.intercept_)

    @property
    def alpha_(self) -> Floats:
        """Dual variables of all rows."""
        check_is_fitted(self)
        return self._among_rows(self.dual_coef_[0])

    @property
    def slack_(self) -> Floats:
        """By how much f < 0, for support vectors."""
        return self._among_rows(self._slacks)

    def decision_function(self, X: Any) -> Floats:
        """Return f of each row: below 0 for outliers. For "precomputed", as in SVC."""
        return self.pairwise_scores(X)[:, 0]

    def score_samples(self, X: Any) -> Floats:
        """Return w·φ(x) of each row: the decision function without the offset."""
        return np.asarray(self.decision_function(X) + self.offset_)

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """Return 1 for each row with f ≥ 0, −1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)
