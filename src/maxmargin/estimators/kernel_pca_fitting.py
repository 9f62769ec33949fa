"""The part of KernelPCA that fits: choose a way, find the eigenpairs, adopt them."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin import clock
from maxmargin._typing import Floats
from maxmargin.estimators.kernel_pca_eigen import Eigenpairs
from maxmargin.estimators.kernel_pca_maps import (
    MOST_FEATURES,
    Explicit,
    Landmarks,
    Moments,
    chunks,
)
from maxmargin.estimators.kernel_pca_parameters import KernelPCAParameters
from maxmargin.estimators.kernel_pca_results import (
    Expansion,
    FeatureExpansion,
    KernelPCAStatus,
    inverse_roots,
    padded,
    signs,
)
from maxmargin.estimators.kernel_pca_solvers import (
    Task,
    direct,
    solve_dense,
    solve_iterative,
    too_few,
)
from maxmargin.kernels import Precomputed
from maxmargin.kernels.blas import one_blas_thread

_SOMETIMES = (
    "eigenvectors_",
    "gamma_",
    "angle_bound_",
    "X_transformed_fit_",
    "dual_coef_",
    "_ridge",
    "_stream",
    "_base",
    "_indefinite",
)  # what a fit may leave, and the next one may not
_LANDMARKS = 1000
_MOMENT = 1e9  # multiplications of rows with landmarks, squared, that take a moment
_LARGEST_MAP = 10 * MOST_FEATURES
_DOUBT = 1000.0  # times rounding: so much more variance than the kernel's shows that it is none


class KernelPCAFitting(KernelPCAParameters):
    """From rows to fitted attributes."""

    n_components: int | None
    eigenvalues_: Floats
    eigenvectors_: Floats
    _expansion: Any

    def _fit(self: Any, X: Any) -> Any:
        self._check_parameters()
        X = self._check_input(X, reset=True)
        n = X.shape[0]
        if self.n_components is not None and self.n_components > n:
            raise ValueError(
                f"n_components={self.n_components} is not valid for {n} rows: ask for at most as "
                "many components as there are rows."
            )
        self._forget()
        self._settle_kernel(X)
        self.solver_ = self._solver(X)
        match self.solver_:
            case "explicit":
                self._fit_explicit(X)
            case "nystroem":
                self._fit_nystroem(X)
            case _:
                self._fit_gram(X)
        self._fit_inverse(X)
        self._warn()
        return X

    def _forget(self) -> None:
        for name in _SOMETIMES:
            self.__dict__.pop(name, None)

    def _settle_kernel(self: Any, X: Any) -> None:
        objects = X.dtype.kind == "O"
        self.kernel_ = self._named_kernel(objects)
        if not objects:
            self.kernel_ = self.kernel_.resolved(X)
        if hasattr(self.kernel_, "gamma"):
            self.gamma_ = float(self.kernel_.gamma)

    def _task(self: Any, X: Any) -> Task:
        count = X.shape[0] if self.n_components is None else int(self.n_components)
        return Task(
            self.kernel_,
            X,
            count,
            float(self.tol),
            int(self.max_iter),
            self.max_time,
            self._bytes(),
            self._threads(),
            self._rng(),
        )

    def _solver(self: Any, X: Any) -> str:
        """Return the way to go: as asked for, or the fastest of the exact ones."""
        if self.eigen_solver == "nystroem":
            return "nystroem"
        features = None if len(X.shape) < 2 else Explicit(self.kernel_).size(X)
        if self.eigen_solver == "explicit":
            self._refuse_many(features)
            return "explicit"
        n, task = X.shape[0], self._task(X)
        few = features is not None and features <= min(MOST_FEATURES, n // 2)
        if self.eigen_solver == "auto" and few:
            return "explicit"
        every = self.eigen_solver == "dense" or self.n_components is None
        small = too_few(task) or (self.eigen_solver == "auto" and direct(task))
        return "dense" if every or small else "iterative"

    def _refuse_many(self: Any, features: int | None) -> None:
        if features is None or features > _LARGEST_MAP:
            known = "none that are known" if features is None else features
            raise ValueError(
                f"eigen_solver='explicit' needs a kernel with at most {_LARGEST_MAP} features, and "
                f"{self.kernel_!r} has {known}: choose 'dense', 'iterative' or 'nystroem'."
            )

    # ------------------------------------------------------------ by the Gram matrix

    def _fit_gram(self: Any, X: Any) -> None:
        solve = solve_dense if self.solver_ == "dense" else solve_iterative
        try:
            found, gram = solve(self._task(X))
        except clock.OutOfTimeError:
            self._fit_in_no_time(X)
            return
        floor = max(gram.floor, 10 * gram.eps * abs(found.lowest))
        self._adopt(found, X.shape[0], gram.trace, floor)
        if self.solver_ == "iterative":
            often = found.n_iter >= int(self.max_iter)
            stopped = KernelPCAStatus.MAX_ITER if often else KernelPCAStatus.MAX_TIME
            self.status_ = KernelPCAStatus.CONVERGED if found.converged else stopped
        else:
            self.status_ = KernelPCAStatus.EXACT
        if self.kernel_.psd is not True and found.lowest < -floor:
            self._note_indefinite("the centred matrix has", found.lowest, float(found.values[0]))
        V = self._oriented(found.vectors)
        a = V * inverse_roots(self.eigenvalues_)
        a -= a.mean(axis=0)
        given = isinstance(self.kernel_, Precomputed)
        self.X_fit_ = np.empty((0, X.shape[0])) if given else X
        self._expansion = Expansion(self.kernel_, self.X_fit_, a, gram.means @ a)
        self._base = np.full(X.shape[0], 1 / X.shape[0])

    def _fit_in_no_time(self: Any, X: Any) -> None:
        """Fall back on so few landmarks that they take a moment."""
        few = int(np.sqrt(_MOMENT / X.shape[0]))
        self.solver_ = "nystroem"
        with one_blas_thread():  # more would wait for each other, if others work as well
            self._fit_nystroem(X, max(few, 2 * (self.n_components or 1)))
        if self.status_ is KernelPCAStatus.APPROXIMATE:
            self.status_ = KernelPCAStatus.MAX_TIME

    def _note_indefinite(self: Any, which: str, lowest: float, highest: float) -> None:
        self.status_ = KernelPCAStatus.INDEFINITE
        self._indefinite = which, lowest, highest

    def _adopt(self: Any, found: Eigenpairs, n: int, trace: float, floor: float) -> None:
        """Set what the eigenvalues say; one that is no larger than its own error is 0."""
        real = found.values > (np.maximum(floor, found.residuals) if found.converged else floor)
        real &= np.cumprod(real).astype(bool)  # in descending order none follows a zero
        count = self._count(found, real)
        self.rank_ = int(real.sum())
        self.n_components_ = count
        self.n_samples_seen_ = n
        values = np.where(real, found.values, 0.0)[:count]
        self.eigenvalues_ = padded(values, count)
        residuals = padded(found.residuals[:count], count) / (self.eigenvalues_[0] or 1.0)
        self.residuals_ = np.where(self.eigenvalues_ > 0, residuals, 0.0)
        self.explained_variance_ = self.eigenvalues_ / max(1, n - 1)
        total = max(trace, float(self.eigenvalues_.sum()))
        self.explained_variance_ratio_ = self.eigenvalues_ / (total if total > 0 else 1.0)
        self.error_bound_ = 0.0
        self.n_iter_ = found.n_iter

    def _count(self: Any, found: Eigenpairs, real: Any) -> int:
        if self.n_components is None:
            return max(1, int(real.sum()))
        return int(self.n_components)

    def _oriented(self: Any, vectors: Floats) -> Floats:
        """Set eigenvectors, zeros for eigenvalue 0, with signs by their largest loading."""
        V = padded(vectors[:, : self.n_components_], self.n_components_)
        V = V * np.where(self.eigenvalues_ > 0, signs(V), 0.0)
        self.eigenvectors_ = V
        return np.asarray(V)

    # ------------------------------------------------------------ by features

    def _fit_explicit(self: Any, X: Any) -> None:
        features = Explicit(self.kernel_)
        size = int(features.size(X) or 0)
        moments = Moments(size, exact=True)
        for rows in chunks(X, size):
            moments.add(features.of(X[rows]))
        found = moments.eigenpairs(self._wanted(size))
        self._adopt(found, X.shape[0], float(np.trace(moments.scatter)), moments.floor)
        self.status_ = KernelPCAStatus.EXACT
        U = padded(found.vectors[:, : self.n_components_], self.n_components_)
        U = U * (self.eigenvalues_ > 0)
        Z = FeatureExpansion(features, moments.mean, U).of(X, None)
        V = Z * inverse_roots(self.eigenvalues_)
        self._expansion = FeatureExpansion(features, moments.mean, U * signs(V))
        self._oriented(V)
        self.X_fit_ = X

    def _wanted(self: Any, size: int) -> int:
        return size if self.n_components is None else min(int(self.n_components), size)

    def _fit_nystroem(self: Any, X: Any, most: int | None = None) -> None:
        self._begin_stream(X, most)
        self._take_in(X)
        Z = self._expansion.of(X, self._threads())
        V = Z * inverse_roots(self.eigenvalues_)
        flip = signs(V)
        self._expansion.coefficients = self._expansion.coefficients * flip
        self._expansion.offset = self._expansion.offset * flip
        self._oriented(V)

    def _fit_chunk(self: Any, X: Any) -> None:
        """Take in a chunk of a stream."""
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
        if first:
            self._forget()
            self._settle_kernel(X)
            self.solver_ = "nystroem"
            self._begin_stream(X)
        self.__dict__.pop("eigenvectors_", None)
        self._take_in(X)
        self._warn()

    def _begin_stream(self: Any, X: Any, most: int | None = None) -> None:
        n = X.shape[0]
        usual = max(_LANDMARKS, 10 * (self.n_components or 0))
        m = min(n, self.n_landmarks or usual, most or n)
        chosen = np.sort(self._rng().choice(n, m, replace=False))
        eps = float(np.finfo(np.float64).eps)
        if isinstance(self.kernel_, Precomputed):
            eps = float(np.finfo(X.dtype).eps)  # rounded before it came here
            self.X_fit_, self._columns = np.empty((0, n)), chosen
            prepared = self.kernel_.prepare(X.astype(np.float64, copy=False))[chosen]
        else:
            self.X_fit_, self._columns = X[chosen], None
            prepared = self.kernel_.prepare(self._wide(self.X_fit_))
        landmarks = Landmarks(self.kernel_, prepared, self._threads(), eps)
        self._stream = landmarks, Moments(landmarks.root.shape[1], eps)
        self._excess, self._surplus = 0.0, 0.0

    def _wide(self: Any, X: Any) -> Any:
        return X if self.kernel_.takes_objects else X.astype(np.float64, copy=False)

    def _take_in(self: Any, X: Any) -> None:
        landmarks, moments = self._stream
        given = isinstance(self.kernel_, Precomputed)
        X = self._wide(X)
        for rows in chunks(X, landmarks.root.shape[0]):
            if given:
                features = X[rows][:, self._columns] @ landmarks.root
                diagonal = X.diagonal()[rows]
            else:
                features = landmarks.of(X[rows])
                diagonal = self.kernel_.diag(X[rows])
            moments.add(features)
            left = diagonal - (features**2).sum(axis=1)
            self._excess += float(left.sum())
            self._surplus -= float(np.minimum(left, 0.0).sum())
        self._adopt_stream(landmarks, moments)

    def _adopt_stream(self: Any, landmarks: Landmarks, moments: Moments) -> None:
        size = len(moments.mean)
        found = moments.eigenpairs(min(self._wanted(size) + 1, size))
        beyond = found.values[self._wanted(size) :]
        trimmed = found._replace(
            values=found.values[: self._wanted(size)],
            vectors=found.vectors[:, : self._wanted(size)],
            residuals=found.residuals[: self._wanted(size)],
        )
        # Below 0 the diagonal of K − K̂ is rounding: as much of it is hidden elsewhere.
        rounding = 2 * self._surplus + moments.floor + moments.count * landmarks.rounding
        bound = self._excess + self._surplus + rounding
        trace = float(np.trace(moments.scatter)) + bound
        self._adopt(trimmed, moments.count, trace, moments.floor)
        self.status_ = KernelPCAStatus.APPROXIMATE
        self.error_bound_ = bound
        gap = float(self.eigenvalues_[-1]) - (float(beyond[0]) if len(beyond) else 0.0) - bound
        self.angle_bound_ = min(1.0, bound / gap) if gap > 0 else 1.0
        if self.kernel_.psd is not True and (
            landmarks.indefinite or self._surplus > _DOUBT * moments.floor
        ):  # K − K̂ is not positive semidefinite, and its trace bounds nothing
            self.error_bound_, self.angle_bound_ = np.inf, 1.0
            self._note_indefinite("the matrix of the landmarks has", *landmarks.range)
        U = padded(trimmed.vectors[:, : self.n_components_], self.n_components_)
        U = U * (self.eigenvalues_ > 0)
        a = landmarks.root @ U
        flip = signs(a)  # of a stream there are no loadings but those of the landmarks
        self._expansion = Expansion(
            self.kernel_, self.X_fit_, a * flip, moments.mean @ U * flip, self._columns
        )
        self._base = landmarks.root @ moments.mean

    def _warn(self: Any) -> None:
        if self.status_ is KernelPCAStatus.INDEFINITE:
            which, lowest, highest = self._indefinite
            warnings.warn(
                f"{self.kernel_!r} is indefinite on these rows: {which} eigenvalues "
                f"from λ_min={lowest:.4g} to λ_max={highest:.4g}. Directions with negative ones "
                "were left out; mm.check_kernel(K).repair() makes the matrix a kernel's.",
                UserWarning,
                stacklevel=4,
            )
        elif self.status_ is KernelPCAStatus.MAX_TIME and self.solver_ == "nystroem":
            warnings.warn(
                f"KernelPCA had no time for a product with the matrix of {self.n_samples_seen_} "
                f"rows: its components are those of a Nyström matrix from {len(self._base)} "
                f"landmarks, which is within error_bound_={self.error_bound_:.4g} of the kernel's. "
                f"Raise max_time={self.max_time:g}, or choose eigen_solver='nystroem'.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif self.status_ in (KernelPCAStatus.MAX_ITER, KernelPCAStatus.MAX_TIME):
            warnings.warn(
                f"KernelPCA {self.status_.value}. The largest residual is "
                f"{self.residuals_.max():.2g} of the largest eigenvalue.",
                ConvergenceWarning,
                stacklevel=4,
            )
