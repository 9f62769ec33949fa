"""Kernel principal component analysis.

    HKH = V Λ Vᵀ,    projection of x:  [k − 1ᵀK/n] H vₘ/√λₘ,    H = I − 11ᵀ/n

Schölkopf, Smola and Müller (Neural Computation 1998). With weights w as numbers of repetitions,
D = diag(w) and π = w/Σw:

    D^½GKGᵀD^½ = V Λ Vᵀ,    projection of x:  (k − πᵀK) GᵀD^½ vₘ/√λₘ,    G = I − 1πᵀ
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.errors import warn
from maxmargin.estimators.feature_maps.nystroem import KernelRows, cut_blocks, float_type
from maxmargin.estimators.kernel_input import KernelInput, count_threads
from maxmargin.estimators.kernel_pca.eigen import (
    Eigenpairs,
    EigenProblem,
    solve_dense,
    solve_iterative,
    solve_scatter,
)
from maxmargin.estimators.kernel_pca.operators import (
    ExplicitFeatures,
    FeatureProjection,
    KernelProjection,
    Moments,
    NystroemStream,
    centre_columns,
    count_features,
)
from maxmargin.estimators.kernel_pca.preimage import find_fixed_points, learn_ridge
from maxmargin.kernels import Linear, Precomputed
from maxmargin.problems.gram import Gram
from maxmargin.runtime import clock
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.validation.data import LARGEST_PRODUCT, generator, regression_weights
from maxmargin.validation.parameters import (
    NamedParameters,
    check_choice,
    check_flag,
    check_number,
    check_threads,
)

# What a fit may set, and the next one may not.
_OPTIONAL = (
    "eigenvectors_", "gamma_", "angle_bound_", "X_transformed_fit_", "dual_coef_", "_ridge",
    "_stream", "_indefinite",
)  # fmt: skip
_TIE = 1e-6  # relative difference of loadings that count as equally large


@dataclass(frozen=True)
class SolverSettings:
    """When features are few, and how many landmarks Nyström's method gets."""

    few_features: int = 2000  # up to which "auto" chooses "explicit"
    most_features: int = 20_000  # that "explicit" takes
    landmarks: int = 1000
    landmarks_per_component: int = 10  # if that is more
    hurried_work: float = 1e9  # n·m² of m landmarks that take only a moment
    indefinite: float = 1000.0  # times rounding: K̂ beyond K by more shows that K is indefinite


_SETTINGS = SolverSettings()


class KernelPCAStatus(Enum):
    """How kernel PCA ended; the value is a sentence."""

    EXACT = "eigenpairs of the whole matrix, by LAPACK"
    CONVERGED = "every residual is at most tol times the largest eigenvalue"
    APPROXIMATE = "eigenpairs of the Nyström matrix, which is within error_bound_ of the kernel's"
    MAX_ITER = (
        "stopped at max_iter before the residuals were below tol; raise max_iter, or loosen tol"
    )
    MAX_TIME = (
        "stopped at max_time before the residuals were below tol; raise max_time, loosen tol, or "
        "choose eigen_solver='nystroem'"
    )
    INDEFINITE = (
        "the kernel matrix is indefinite: it has no feature space, and directions with negative "
        "eigenvalues were left out; see mm.check_kernel"
    )

    def __reduce__(self) -> Any:  # by its value, for skops, which does not know enums
        return type(self), (self.value,)


@dataclass(frozen=True)
class _Weighted:
    """The rows that have a weight above 0: others are absent."""

    X: Any  # of a precomputed kernel, its values between these rows
    full: Any  # of a precomputed kernel, its values with all rows; else X
    weight: Floats
    kept: Ints  # which of the rows given they are

    @classmethod
    def of(cls, X: Any, weight: Floats, square: bool) -> Self:
        """Return those of the rows given; ``square``: X are kernel values between them."""
        kept = np.flatnonzero(weight > 0)
        if len(kept) == len(weight):
            return cls(X, X, weight, kept)
        full = X[kept]
        return cls(full[:, kept] if square else full, full, weight[kept], kept)

    def __len__(self) -> int:
        return len(self.weight)


def _takes_rows(model: "KernelPCA") -> bool:
    """Raise for a precomputed kernel: a chunk of its matrix has no rows."""
    if model.__sklearn_tags__().input_tags.pairwise:
        raise AttributeError("partial_fit needs rows: kernel='precomputed' has none; use fit.")
    return True


class KernelPCA(
    KernelInput, NamedParameters, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Kernel principal component analysis, with residuals that prove the eigenvalues.

    Parameters
    ----------
    n_components : int or None, default=None
        The number of directions, at most the number of rows. Those beyond the rank are zeros. None:
        all with a non-zero eigenvalue (or one of zeros, if there are none).
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
        matrix, which is kept if it fits into ``memory`` and otherwise computed for each product.
        "explicit": an eigenproblem of the size of the feature space, for kernels with few features
        (linear, cosine, low powers of few columns, ``FromMap``). "nystroem": only K between rows
        and landmarks, with ``error_bound_``. "auto": the fastest of the exact ones.
    n_landmarks : int or None, default=None
        Rows that span Nyström's feature space, drawn at random (as often as their weights say).
        None: 1000, or ten times n_components if that is more, and never more than there are rows.
    tol : float, default=1e-6
        The iterative solver stops when ‖HKHv − λv‖ ≤ tol·λ₁ for every direction, at least 0.
    max_iter : int, default=200
        The largest number of products with a block of n_components/4 columns, at least 16, or more;
        of narrower blocks several count as one.
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
        Of HKH, in descending order; exactly 0 for those that cannot be told from rounding.
    eigenvectors_ : array of shape (n, n_components_)
        Unit eigenvectors v of HKH, zeros for eigenvalue 0. The largest |loading| is positive.
        Missing after ``partial_fit``. With weights those of D^½GKGᵀD^½: v/√w is positive where it
        is largest, and v is 0 for a row of weight 0.
    explained_variance_ : array of shape (n_components_,)
        λ/(n − 1), with weights λ/(Σw − 1): the variances of the projections. NaN if the weights sum
        to 1 or less: then they stand for one row at most.
    explained_variance_ratio_ : array of shape (n_components_,)
        Their shares of the total variance in feature space.
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
        The number of directions, and of those with a non-zero eigenvalue.
    n_iter_ : int
        Products with a block, counted as in ``max_iter``; 1 for direct solvers.
    kernel_ : Kernel
        With numbers for all parameters; ``gamma_`` is its γ, if it has one.
    X_fit_ : matrix
        The training rows (with a weight above 0); after "nystroem", the landmarks.
    gamma_ : float
        γ of ``kernel_``, if it has one.
    n_samples_seen_ : int, or float with fractional weights
        The number of rows fitted, each counted as often as its weight says.
    X_transformed_fit_, dual_coef_ : arrays
        With ``fit_inverse_transform``: projections, and the coefficients of the ridge over them.

    Notes
    -----
    Differences from scikit-learn's KernelPCA. Projections and eigenvalues agree, scale and sign
    included. A direction without variance is zeros in ``fit_transform`` and ``transform`` alike.
    ``inverse_transform`` includes the mean. An indefinite kernel is warned about, with λ_min and
    λ_max; the iterative solver notices only negative eigenvalues that are large enough to show in
    its basis. ``random_state`` is fixed unless you change it. There is no ``kernel_params`` (give a
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

    _kept_rows = "X_fit_"
    _kernel_defaults: ClassVar = {"gamma": None, "degree": 3, "coef0": 1.0}
    _instead: ClassVar = {
        "kernel_params": "Give a Kernel object, or a function with its parameters bound.",
        "remove_zero_eig": "n_components=None leaves them out.",
        "iterated_power": "tol says how exact the answer is.",
        "copy_X": "X is never changed.",
    }
    _projection: KernelProjection | FeatureProjection
    eigenvectors_: Floats

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the directions of largest variance in feature space.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows, dense or sparse; kernel values for "precomputed"; objects, if the kernel takes
            them.
        y : ignored
            For pipelines.
        sample_weight : array-like of shape (n,), optional
            How many times each row counts; a row of weight 0 is absent.
        """
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the projections of the training rows: V√Λ, with weights D^−½V√Λ.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``. Rows of weight 0 are projected, too.
        """
        X, data = self._fit(X, sample_weight)
        roots = np.sqrt(data.weight)[:, np.newaxis]
        projected = self.eigenvectors_[data.kept] / roots * np.sqrt(self.eigenvalues_)
        if len(data) < X.shape[0]:
            absent = np.setdiff1d(np.arange(X.shape[0]), data.kept)
            every = np.empty((X.shape[0], self.n_components_))
            every[data.kept], every[absent] = projected, self._project(X[absent])
            projected = every
        return _cast(projected, X)

    @available_if(_takes_rows)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a chunk of rows by Nyström's method; the first chunk provides the landmarks.

        Needs eigen_solver="nystroem" or "auto".

        Parameters
        ----------
        X : matrix of shape (m, d)
            The next rows.
        y : ignored
            For pipelines.
        sample_weight : array-like of shape (m,), optional
            How many times each row counts; a row of weight 0 is absent.
        """
        self.check_parameters()
        if self.eigen_solver not in ("auto", "nystroem"):
            raise ValueError(
                f"eigen_solver={self.eigen_solver!r} is not valid for partial_fit: chunks need "
                "'nystroem' (or 'auto')."
            )
        first = not hasattr(self, "_stream")
        X = self._check_input(X, reset=first)
        if self.fit_inverse_transform:
            raise ValueError(
                "fit_inverse_transform=True is not valid for partial_fit: the ridge needs all rows "
                "at once. Use fit, or inverse='fixed_point'."
            )
        weight = regression_weights(sample_weight, X.shape[0])
        data = _Weighted.of(X, weight, square=False)
        if first:
            self._forget()
            self._resolve_kernel(data)
            self.solver_ = "nystroem"
            self._begin_stream(data)
        self.__dict__.pop("eigenvectors_", None)
        self._add_to_stream(data)
        self._warn()
        return self

    def transform(self, X: Any) -> Any:
        """Return the projections of rows, exactly: [k − 1ᵀK/n]Hvₘ/√λₘ.

        With weights they are (k − πᵀK)GᵀD^½vₘ/√λₘ.

        Parameters
        ----------
        X : matrix of shape (m, d)
            Rows; for "precomputed", K between them and all training rows.
        """
        check_is_fitted(self)
        X = self._check_input(X, reset=False)
        return _cast(self._project(X), X)

    def inverse_transform(self, X: Any) -> Any:
        """Return rows whose projections are near the given ones.

        Parameters
        ----------
        X : array of shape (m, n_components_)
            Projections.
        """
        check_is_fitted(self)
        Z = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if Z.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {Z.shape[1]} columns, but inverse_transform needs one for each of the "
                f"{self.n_components_} components."
            )
        wide = Z.astype(np.float64, copy=False)
        if self.inverse == "fixed_point":
            threads = count_threads(self.n_jobs)
            rows = find_fixed_points(self.kernel_, self._projection, wide, threads)
        elif self._inverts_exactly():
            mean, directions = self._projection.row_directions()
            rows = wide @ directions.T + mean
        elif hasattr(self, "_ridge"):
            rows = self._ridge.invert(wide)
        else:
            raise NotFittedError(
                "inverse_transform needs KernelPCA(fit_inverse_transform=True) when fitting, the "
                "linear kernel with inverse='auto', or the RBF kernel with inverse='fixed_point'."
            )
        return rows.astype(Z.dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def check_parameters(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        self._named_kernel()
        for name in ("n_components", "n_landmarks"):
            check_number(self, name, at_least=1, integer=True, optional=True)
        solvers = ("auto", "dense", "iterative", "nystroem", "explicit")
        check_choice(self, "eigen_solver", solvers)
        check_choice(self, "inverse", ("auto", "ridge", "fixed_point"))
        check_flag(self, "fit_inverse_transform")
        check_number(self, "tol", at_least=0)
        check_number(self, "max_iter", at_least=1, integer=True)
        check_number(self, "max_time", above=0, optional=True)
        check_number(self, "alpha", above=0)
        if not (isinstance(self.memory, str) and self.memory == "auto"):
            check_number(self, "memory", at_least=1, integer=True)
        check_threads(self)
        generator(self.random_state)

    def _largest_square(self, _X: Any) -> float:
        return LARGEST_PRODUCT

    def _resolve_kernel(self, data: _Weighted) -> None:
        objects = data.X.dtype.kind == "O"
        kernel: Any = self._named_kernel(objects)
        if not objects:
            even = (data.weight == data.weight[0]).all()
            kernel = kernel.resolved(data.X, None if even else data.weight)
        self.kernel_ = kernel
        if hasattr(kernel, "gamma"):
            self.gamma_ = float(kernel.gamma)

    # ------------------------------------------------------------ fitting

    def _fit(self, X: Any, sample_weight: Any) -> tuple[Any, _Weighted]:
        """Return the rows given, and those with a weight above 0."""
        self.check_parameters()
        X = self._check_input(X, reset=True)
        weight = regression_weights(sample_weight, X.shape[0])
        data = _Weighted.of(X, weight, square=self.__sklearn_tags__().input_tags.pairwise)
        n = len(data)
        if self.n_components is not None and self.n_components > n:
            left = f"{n} rows" if n == len(weight) else f"{n} rows with a weight above 0"
            raise ValueError(
                f"n_components={self.n_components} is not valid for {left}: ask for at most as "
                "many components as there are rows."
            )
        self._forget()
        self._resolve_kernel(data)
        self.solver_ = self._choose_solver(data)
        if self.solver_ == "explicit":
            self._fit_explicit(data)
        elif self.solver_ == "nystroem":
            self._fit_nystroem(data)
        else:
            self._fit_gram(data)
        if n < len(weight):
            every = np.zeros((len(weight), self.n_components_))
            every[data.kept] = self.eigenvectors_
            self.eigenvectors_ = every
        if self.fit_inverse_transform and not self._inverts_exactly():
            rng, alpha = generator(self.random_state), float(self.alpha)
            Z = self._project(data.full)
            self._ridge = learn_ridge(self.kernel_, Z, data.X, data.weight, alpha, rng)
            self.X_transformed_fit_, self.dual_coef_ = self._ridge.Z, self._ridge.B
        self._warn()
        return X, data

    def _forget(self) -> None:
        for name in _OPTIONAL:
            self.__dict__.pop(name, None)

    def _choose_solver(self, data: _Weighted) -> str:
        """Return the solver asked for, or the fastest of the exact ones."""
        if self.eigen_solver == "nystroem":
            return "nystroem"
        features = count_features(self.kernel_, data.X)
        if self.eigen_solver == "explicit":
            if features is None or features > _SETTINGS.most_features:
                known = "no known features" if features is None else f"{features} features"
                raise ValueError(
                    "eigen_solver='explicit' needs a kernel with at most "
                    f"{_SETTINGS.most_features} features, and {self.kernel_!r} has {known}: choose "
                    "'dense', 'iterative' or 'nystroem'."
                )
            return "explicit"
        problem = self._eigen_problem(data)
        few = features is not None and features <= min(_SETTINGS.few_features, len(data) // 2)
        if self.eigen_solver == "auto" and few:
            return "explicit"
        every = self.eigen_solver == "dense" or self.n_components is None
        small = problem.too_small or (self.eigen_solver == "auto" and problem.suits_lapack)
        return "dense" if every or small else "iterative"

    def _eigen_problem(self, data: _Weighted) -> EigenProblem:
        memory = None if isinstance(self.memory, str) else int(self.memory)
        return EigenProblem(
            Gram(self.kernel_, data.X, memory=memory, threads=count_threads(self.n_jobs)),
            data.weight,
            len(data) if self.n_components is None else int(self.n_components),
            float(self.tol),
            int(self.max_iter),
            self.max_time,
            generator(self.random_state),
        )

    def _fit_gram(self, data: _Weighted) -> None:
        solve = solve_dense if self.solver_ == "dense" else solve_iterative
        try:
            found, gram = solve(self._eigen_problem(data))
        except clock.OutOfTimeError:
            self._fit_hurriedly(data)
            return
        floor = max(gram.floor, 10 * gram.eps * abs(found.lowest))
        self._adopt(found, float(data.weight.sum()), gram.trace, floor)
        if self.solver_ == "iterative":
            often = found.n_iter >= int(self.max_iter)
            stopped = KernelPCAStatus.MAX_ITER if often else KernelPCAStatus.MAX_TIME
            self.status_ = KernelPCAStatus.CONVERGED if found.converged else stopped
        if self.kernel_.psd is not True and found.lowest < -floor:
            self.status_ = KernelPCAStatus.INDEFINITE
            self._indefinite = "the centred matrix has", found.lowest, float(found.values[0])
        V = self._pad_vectors(found.vectors)
        roots = np.sqrt(data.weight)[:, np.newaxis]
        self.eigenvectors_ = V = V * _find_signs(V / roots)
        a = centre_columns(roots * V * _inverse_roots(self.eigenvalues_), gram.share)
        self._keep_rows(data, data.X)
        self._projection = KernelProjection(
            self.kernel_, self.X_fit_, a, gram.means @ a, gram.share, self._columns(data, data.kept)
        )

    def _fit_explicit(self, data: _Weighted) -> None:
        X = data.X
        features = ExplicitFeatures(self.kernel_, X.shape[1])
        size = count_features(self.kernel_, X) or 0
        moments = Moments(size, exact=True)
        for rows in cut_blocks(len(data), size):
            moments.add(features.compute(X[rows]), data.weight[rows])
        found = solve_scatter(moments, size if self.n_components is None else self.n_components)
        self._adopt(found, moments.weight, moments.trace, moments.floor)
        directions = self._pad_vectors(found.vectors)
        self._projection = FeatureProjection(features, moments.mean, directions)
        self._keep_rows(data, X)
        self._orient_by_rows(data)

    def _fit_nystroem(self, data: _Weighted, most: int | None = None) -> None:
        self._begin_stream(data, most)
        self._add_to_stream(data)
        self._orient_by_rows(data)

    def _fit_hurriedly(self, data: _Weighted) -> None:
        """Use Nyström's method with few enough landmarks to take only a moment."""
        few = int(np.sqrt(_SETTINGS.hurried_work / len(data)))
        self.solver_ = "nystroem"
        with one_blas_thread():  # several would wait for each other, if other processes run
            self._fit_nystroem(data, max(few, 2 * (self.n_components or 1)))
        if self.status_ is KernelPCAStatus.APPROXIMATE:
            self.status_ = KernelPCAStatus.MAX_TIME

    def _begin_stream(self, data: _Weighted, most: int | None = None) -> None:
        """Choose the landmarks."""
        n = len(data)
        per_component = _SETTINGS.landmarks_per_component * (self.n_components or 0)
        usual = max(_SETTINGS.landmarks, per_component)
        count = min(n, self.n_landmarks or usual, most or n)
        rows = KernelRows(self.kernel_, data.X, count_threads(self.n_jobs))
        self._stream = NystroemStream(rows, data.weight, count, generator(self.random_state))
        self._keep_rows(data, self._stream.landmarks.rows)

    def _keep_rows(self, data: _Weighted, rows: Any) -> None:
        """Set ``X_fit_``: of a precomputed kernel, none of as many columns as it was given."""
        given = isinstance(self.kernel_, Precomputed)
        self.X_fit_ = np.empty((0, data.full.shape[1])) if given else rows

    def _columns(self, data: _Weighted, chosen: Ints) -> Ints | None:
        """Return which columns of a precomputed matrix are used; None: all, or there is none."""
        every = len(chosen) == data.full.shape[-1]
        return None if every or not isinstance(self.kernel_, Precomputed) else chosen

    # ------------------------------------------------------------ fitted attributes

    def _adopt(self, found: Eigenpairs, n: float, trace: float, floor: float) -> None:
        """Set what the eigenvalues say; one that is no larger than its own error is 0.

        ``n`` is the weight of all rows: their number, if none has another weight than 1.
        """
        values, residuals = (each[: self.n_components] for each in (found.values, found.residuals))
        real = values > (np.maximum(floor, residuals) if found.converged else floor)
        real &= np.cumprod(real).astype(bool)  # in descending order none follows a zero
        self.rank_ = int(real.sum())
        count = max(1, self.rank_) if self.n_components is None else int(self.n_components)
        self.n_components_ = count
        self.n_samples_seen_ = int(n) if n.is_integer() else n
        self.eigenvalues_ = _pad(np.where(real, values, 0.0)[:count], count)
        residuals = _pad(residuals[:count], count) / (self.eigenvalues_[0] or 1.0)
        self.residuals_ = np.where(self.eigenvalues_ > 0, residuals, 0.0)
        spread = n - 1 if n > 1 else np.nan
        self.explained_variance_ = np.where(self.eigenvalues_ > 0, self.eigenvalues_ / spread, 0.0)
        total = max(trace, float(self.eigenvalues_.sum()))
        self.explained_variance_ratio_ = self.eigenvalues_ / (total if total > 0 else 1.0)
        self.error_bound_ = 0.0
        self.n_iter_ = found.n_iter
        self.status_ = KernelPCAStatus.EXACT

    def _add_to_stream(self, data: _Weighted) -> None:
        """Add rows, and set what all rows so far say."""
        stream, moments = self._stream, self._stream.moments
        stream.add(KernelRows(self.kernel_, data.X, count_threads(self.n_jobs)), data.weight)
        wanted = min(self.n_components or len(moments.mean), len(moments.mean))
        found = solve_scatter(moments, wanted + 1)
        next_one = float(found.values[wanted]) if len(found.values) > wanted else 0.0
        bound = stream.error_bound
        self._adopt(found, moments.weight, moments.trace + bound, moments.floor)
        self.status_ = KernelPCAStatus.APPROXIMATE
        self.error_bound_ = bound
        gap = float(self.eigenvalues_[-1]) - next_one - bound
        self.angle_bound_ = min(1.0, bound / gap) if gap > 0 else 1.0
        lowest, highest = stream.spectrum
        beyond = stream.negative > _SETTINGS.indefinite * moments.floor
        if self.kernel_.psd is not True and (lowest < -stream.noise or beyond):
            # K − K̂ is not positive semidefinite, and its trace bounds nothing.
            self.error_bound_, self.angle_bound_ = np.inf, 1.0
            self.status_ = KernelPCAStatus.INDEFINITE
            self._indefinite = "the matrix of the landmarks has", lowest, highest
        U = self._pad_vectors(found.vectors[:, :wanted])
        columns = None  # a stream of rows is not of a precomputed kernel
        if isinstance(self.kernel_, Precomputed):
            columns = self._columns(data, data.kept[stream.landmarks.indices])
        self._projection = KernelProjection(
            self.kernel_,
            self.X_fit_,
            stream.root @ U,
            moments.mean @ U,
            stream.root @ moments.mean,
            columns,
        )
        # The only loadings that a stream keeps are those of the landmarks.
        self._projection.flip(_find_signs(self._projection.coefficients))

    def _pad_vectors(self, vectors: Floats) -> Floats:
        """Return a vector for each component: zeros for eigenvalue 0."""
        V = _pad(vectors[:, : self.n_components_], self.n_components_)
        return np.asarray(V * (self.eigenvalues_ > 0))

    def _orient_by_rows(self, data: _Weighted) -> None:
        """Set eigenvectors from the projections of the training rows, and the signs of both."""
        V = self._project(data.full) * _inverse_roots(self.eigenvalues_)
        signs = _find_signs(V)
        self._projection.flip(signs)
        self.eigenvectors_ = np.sqrt(data.weight)[:, np.newaxis] * V * signs

    @property
    def projection_(self) -> KernelProjection | FeatureProjection:
        """The components as sums over rows, or over features where the kernel has few."""
        check_is_fitted(self)
        return self._projection

    def _project(self, X: Any) -> Floats:
        return np.asarray(self._projection.project(X, count_threads(self.n_jobs)))

    def _inverts_exactly(self) -> bool:
        return type(self.kernel_) is Linear and self.inverse == "auto"

    def _warn(self) -> None:
        """Warn of an indefinite kernel, or of a search that stopped before it converged."""
        category: type[Warning] = ConvergenceWarning
        if self.status_ is KernelPCAStatus.INDEFINITE:
            category = UserWarning
            which, lowest, highest = self._indefinite
            message = (
                f"{self.kernel_!r} is indefinite on these rows: {which} eigenvalues "
                f"from λ_min={lowest:.4g} to λ_max={highest:.4g}. Directions with negative ones "
                "were left out; mm.check_kernel(K).repair() returns a matrix without them."
            )
        elif self.status_ is KernelPCAStatus.MAX_TIME and self.solver_ == "nystroem":
            message = (
                f"KernelPCA had no time for a product with the matrix of {self.n_samples_seen_} "
                f"rows: its components are those of a Nyström matrix from "
                f"{len(self._stream.root)} landmarks, which is within "
                f"error_bound_={self.error_bound_:.4g} of the kernel's. "
                f"Raise max_time={self.max_time:g}, or choose eigen_solver='nystroem'."
            )
        elif self.status_ in (KernelPCAStatus.MAX_ITER, KernelPCAStatus.MAX_TIME):
            message = (
                f"KernelPCA {self.status_.value}. The largest residual is "
                f"{self.residuals_.max():.2g} of the largest eigenvalue."
            )
        else:
            return
        warn(message, category)


def _cast(values: Floats, X: Any) -> Any:
    """Return projections in the type of the rows."""
    return np.ascontiguousarray(values, float_type(X))


def _find_signs(V: Floats) -> Floats:
    """Return the sign of the largest |loading| of each column, the first of those that tie."""
    if not len(V):
        return np.ones(V.shape[1])
    size = np.abs(V)
    first = np.argmax(size >= (1 - _TIE) * size.max(axis=0), axis=0)
    return np.where(V[first, np.arange(V.shape[1])] < 0, -1.0, 1.0)


def _inverse_roots(values: Floats) -> Floats:
    """Return 1/√λ, and 0 for λ = 0."""
    positive = values > 0
    return np.where(positive, 1 / np.sqrt(np.where(positive, values, 1.0)), 0.0)


def _pad(values: Floats, count: int) -> Floats:
    """Return values, or columns, with zeros up to ``count``."""
    missing = count - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]) if missing else values
