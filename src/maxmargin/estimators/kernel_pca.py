"""Kernel principal component analysis.

    HKH = V Λ Vᵀ,    projection of x:  [k − 1ᵀK/n] H vₘ/√λₘ,    H = I − 11ᵀ/n

Schölkopf, Smola and Müller (Neural Computation 1998).
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.inputs import generator
from maxmargin.estimators.kernel_pca_fitting import KernelPCAFitting
from maxmargin.estimators.kernel_pca_inverting import KernelPCAInverting


def _takes_rows(model: "KernelPCA") -> bool:
    """Raise for a precomputed kernel: a chunk of its matrix has no rows."""
    if model.__sklearn_tags__().input_tags.pairwise:
        raise AttributeError("partial_fit needs rows: kernel='precomputed' has none; use fit.")
    return True


class KernelPCA(
    KernelPCAInverting,
    KernelPCAFitting,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Kernel principal component analysis, with residuals that prove the eigenpairs.

    Parameters
    ----------
    n_components : int or None, default=None
        How many directions, at most as many as rows. Those beyond the rank are zeros. None: all
        with a non-zero eigenvalue (one of zeros, if there is none).
    kernel : str, callable or Kernel, default="linear"
        As in ``SVC``: a name ("linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2",
        "intersection", "precomputed"), a function of two blocks of rows, or a Kernel object.
    gamma : float, "scale", "auto" or None, default=None
        γ of a kernel given by name. None and "auto": 1/n_features; "scale": 1/(n_features·Var X).
    degree : int, default=3
        The power of "poly".
    coef0 : float, default=1.0
        The shift of "poly" and "sigmoid".
    eigen_solver : {"auto", "dense", "iterative", "nystroem", "explicit"}, default="auto"
        "dense": LAPACK on the n×n matrix. "iterative": block Lanczos on products with the centred
        matrix, which is kept if it fits into ``memory`` and else computed anew for each product.
        "explicit": an eigenproblem of the size of the feature space, for kernels with few features
        (linear, cosine, low powers of few columns, ``FromMap``). "nystroem": only K between rows
        and landmarks, with ``error_bound_``. "auto": the fastest of the exact ones.
    n_landmarks : int or None, default=None
        Rows that span Nyström's feature space, drawn at random. None: 1000, or ten times
        n_components if that is more, and never more than there are rows.
    tol : float, default=1e-6
        The iterative solver stops when ‖HKHv − λv‖ ≤ tol·λ₁ for every direction, at least 0.
    max_iter : int, default=200
        Products with a block, at most.
    max_time : float or None, default=None
        Seconds for the iterative solver.
    fit_inverse_transform : bool, default=False
        Whether to learn pre-images by ridge regression. Not needed for the linear kernel, nor for
        ``inverse="fixed_point"``.
    inverse : {"auto", "ridge", "fixed_point"}, default="auto"
        How ``inverse_transform`` finds rows. "auto": exactly for the linear kernel, else "ridge".
        "fixed_point" is for the RBF kernel.
    alpha : float, default=1.0
        The penalty of the ridge, above 0.
    memory : int or "auto", default="auto"
        Bytes for kernel values; "auto": half of what is free.
    random_state : int, Generator, RandomState or None, default=0
        For the start of the iterative solver and for landmarks.
    n_jobs : int or None, default=None
        Threads; None and -1: as many as BLAS would use.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components_,)
        Of HKH, in descending order; exactly 0 where rounding is all there is.
    eigenvectors_ : array of shape (n, n_components_)
        Unit eigenvectors v of HKH, zeros for eigenvalue 0. The largest |loading| is positive.
        Not there after ``partial_fit``.
    explained_variance_ : array of shape (n_components_,)
        λ/(n − 1): the variances of the projections.
    explained_variance_ratio_ : array of shape (n_components_,)
        Shares of the variance in feature space.
    residuals_ : array of shape (n_components_,)
        ‖HKHv − λv‖/λ₁: within this distance, relative to λ₁, there is an eigenvalue. After
        "nystroem" it is about Nyström's matrix.
    error_bound_ : float
        ‖K − K̂‖₂ is at most this: tr(K − K̂), and what rounding may add, for Nyström; 0 for the
        others. So λ̂ ≤ λ ≤ λ̂ + error_bound_. Infinite if Nyström's kernel is indefinite.
    angle_bound_ : float
        After "nystroem": the sine of the largest angle to the exact subspace is at most this
        (Davis and Kahan); 1 where the bound says nothing.
    status_ : KernelPCAStatus
        How it ended; its value is a sentence.
    solver_ : str
        The eigen_solver that was used.
    n_components_, rank_ : int
        Directions, and those among them with a non-zero eigenvalue.
    n_iter_ : int
        Products with a block; 1 for direct solvers.
    kernel_ : Kernel
        With numbers for all parameters; ``gamma_`` is its γ, if it has one.
    X_fit_ : matrix
        The training rows; after "nystroem", the landmarks.
    gamma_ : float
        γ of ``kernel_``, if it has one.
    n_samples_seen_ : int
        How many rows were fitted.
    X_transformed_fit_, dual_coef_ : arrays
        With ``fit_inverse_transform``: projections, and the coefficients of the ridge over them.

    Notes
    -----
    Differences from scikit-learn's KernelPCA. Projections and eigenvalues agree, scale and sign
    included. A direction without variance is zeros in ``fit_transform`` and ``transform`` alike.
    ``inverse_transform`` includes the mean. An indefinite kernel warns, with λ_min and λ_max; the
    iterative solver can tell only by eigenvalues that show in its basis, next to the largest ones
    in size. ``random_state`` is fixed unless you change it. There is no ``kernel_params`` (give a
    ``Kernel`` or a function), no ``remove_zero_eig`` (n_components=None leaves them out), no
    ``iterated_power`` (``tol`` says how exact) and no ``copy_X`` (X is never changed).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(200, radii=(0.25, 1.0), random_state=0)
    >>> model = mm.KernelPCA(3, kernel="rbf", gamma=1.0)
    >>> Z = model.fit_transform(X)
    >>> mm.separate(X, y).separable, mm.separate(Z, y).separable
    (False, True)
    >>> bool(model.residuals_.max() < 1e-12)
    True
    """

    _instead: ClassVar = {
        "kernel_params": "Give a Kernel object, or a function with its parameters bound.",
        "remove_zero_eig": "n_components=None leaves them out.",
        "iterated_power": "tol says how exact the answer is.",
        "copy_X": "X is never changed.",
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        eigen_solver: str = "auto",
        n_landmarks: int | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
        max_time: float | None = None,
        fit_inverse_transform: bool = False,
        inverse: str = "auto",
        alpha: float = 1.0,
        memory: int | str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.eigen_solver = eigen_solver
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.fit_inverse_transform = fit_inverse_transform
        self.inverse = inverse
        self.alpha = alpha
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions of largest variance in feature space.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows, dense or sparse; kernel values for "precomputed"; objects, if the kernel takes
            them.
        y : ignored
            For pipelines.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the projections of the training rows: V√Λ."""
        X = self._fit(X)
        return self._typed(self.eigenvectors_ * np.sqrt(self.eigenvalues_), X)

    @available_if(_takes_rows)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in a chunk of rows by Nyström's method; the first chunk settles the landmarks.

        Needs eigen_solver="nystroem" or "auto".

        Parameters
        ----------
        X : matrix of shape (m, d)
            The next rows.
        y : ignored
            For pipelines.
        """
        self._check_parameters()
        self._fit_chunk(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the projections of rows, exactly: [k − 1ᵀK/n]Hvₘ/√λₘ.

        Parameters
        ----------
        X : matrix of shape (m, d)
            Rows; for "precomputed", K between them and all training rows.
        """
        check_is_fitted(self)
        X = self._check_input(X, reset=False)
        return self._typed(self._expansion.of(X, self._threads()), X)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows whose projections are near the given ones.

        Parameters
        ----------
        X : array of shape (m, n_components_)
            Projections.
        """
        check_is_fitted(self)
        return self._inverted(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def _rng(self) -> np.random.Generator:
        return generator(self.random_state)
