"""The part of KernelPCA that goes back to rows."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array

from maxmargin.estimators.kernel_pca_inverse import Ridge, fixed_point, ridge
from maxmargin.estimators.kernel_pca_results import FeatureExpansion
from maxmargin.kernels import RBF, Linear


class KernelPCAInverting:
    """Pre-images: exact, by ridge regression, or by fixed points."""

    inverse: str
    fit_inverse_transform: bool
    alpha: float

    def _fit_inverse(self: Any, X: Any) -> None:
        """Learn what needs the training rows."""
        if not self.fit_inverse_transform or self._inverts_exactly():
            return
        self._refuse_inverse(X)
        Z = self._expansion.of(X, self._threads())
        self._ridge: Ridge = ridge(self.kernel_, Z, X, float(self.alpha), self._rng())
        self.X_transformed_fit_, self.dual_coef_ = self._ridge.Z, self._ridge.B

    def _inverts_exactly(self: Any) -> bool:
        return type(self.kernel_) is Linear and self.inverse == "auto"

    def _row_directions(self: Any) -> tuple[Any, Any]:
        """Return x̄ and u, of which row x has the projection (x − x̄)·u."""
        if isinstance(self._expansion, FeatureExpansion):
            return self._expansion.mean, self._expansion.directions
        rows = self.X_fit_.T
        return np.asarray(rows @ self._base), np.asarray(rows @ self._expansion.coefficients)

    def _refuse_inverse(self: Any, X: Any) -> None:
        if self.kernel_.takes_gram or self.kernel_.takes_objects:
            raise ValueError(
                "fit_inverse_transform=True needs rows of numbers: a precomputed kernel, or one of "
                "objects, has none to go back to."
            )
        if sp.issparse(X):
            raise TypeError(
                "fit_inverse_transform=True makes dense rows: pass X.toarray(), or leave it False."
            )

    def _inverted(self: Any, Z: Any) -> Any:
        Z = check_array(Z, dtype=[np.float64, np.float32], input_name="X")
        if Z.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {Z.shape[1]} columns, but inverse_transform needs one for each of the "
                f"{self.n_components_} components."
            )
        wide = Z.astype(np.float64, copy=False)
        if self.inverse == "fixed_point":
            rows = self._fixed_points(wide)
        elif self._inverts_exactly():
            mean, directions = self._row_directions()
            rows = wide @ directions.T + mean
        elif hasattr(self, "_ridge"):
            rows = self._ridge.of(wide)
        else:
            raise NotFittedError(
                "inverse_transform needs KernelPCA(fit_inverse_transform=True) when fitting, the "
                "linear kernel with inverse='auto', or the RBF kernel with inverse='fixed_point'."
            )
        return rows.astype(Z.dtype, copy=False)

    def _fixed_points(self: Any, Z: Any) -> Any:
        if type(self.kernel_) is not RBF:
            raise ValueError(
                f"inverse='fixed_point' is for the RBF kernel, got {self.kernel_!r}: choose "
                "inverse='ridge' with fit_inverse_transform=True."
            )
        trained = self._expansion.of(self.X_fit_, self._threads())
        coefficients = self._expansion.coefficients
        return fixed_point(self.kernel_, Z, self.X_fit_, coefficients, self._base, trained)
