"""Lifts that make a circle linear."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from maxmargin._typing import Floats
from maxmargin.estimators.feature_maps.base import FeatureMap
from maxmargin.validation.parameters import check_choice, check_number


class Circle(NamedTuple):
    """A circle or sphere, and the class inside it: "positive" where f > 0, or "negative"."""

    center: Floats
    radius: float
    inside: str


class CircleMap(FeatureMap):
    """A lift in which a circle (or sphere) is a plane.

    With lift="square" rows become (‖x‖², −2x, 1). A plane there, f = w₀‖x‖² − 2w·x + w₁ + b, is the
    circle around w/w₀ of radius √(‖w‖²/w₀² − (w₁ + b)/w₀): ``circle(model)`` says which.

    With lift="gaussian" rows keep their columns and get one more, r = exp(−‖x − c‖²/2s²): a hill
    over the centre, for pictures. There f = 0 is a circle only where the weights of x are 0.

    Parameters
    ----------
    lift : {"square", "gaussian"}, default="square"
        Which lift.
    center : array-like of shape (n_features,) or None, default=None
        What x is measured from. None: the origin with "square", the mean of the rows with
        "gaussian". If rows are far from the origin, a centre among them loses fewer digits.
    width : float or None, default=None
        s > 0 of lift="gaussian"; None: the root mean square distance from the centre, over √d.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        What x is measured from.
    width_ : float
        s; with lift="square", which has none, NaN.
    n_components_ : int
        Features: d + 2, or d + 1.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(300, 2))
    >>> inside = ((X - [1.0, 0.5]) ** 2).sum(axis=1) < 1.5**2
    >>> lift = mm.CircleMap().fit(X)
    >>> model = mm.LinearSVC(C=1e6).fit(lift.transform(X), inside)
    >>> found = lift.circle(model)
    >>> bool(np.allclose(found.center, [1.0, 0.5], atol=0.1)), round(found.radius, 1), found.inside
    (True, 1.5, 'positive')
    """

    _stays_sparse = True

    def __init__(
        self, lift: str = "square", *, center: Any = None, width: float | None = None
    ) -> None:
        self.lift = lift
        self.center = center
        self.width = width

    def _learn(self, X: Any) -> None:
        check_choice(self, "lift", ("square", "gaussian"))
        check_number(self, "width", above=0, optional=True)
        if self.lift == "square" and self.width is not None:
            raise ValueError(f"width={self.width!r} is for lift='gaussian': leave it at None.")
        center = self._choose_center(X)
        if self.lift == "square" and sp.issparse(X) and center.any():
            raise TypeError(
                "Sparse X with lift='square' needs center=None: x − center is dense. Or pass "
                "X.toarray(), as dense data is required for another center."
            )
        self.center_ = center
        self.width_ = float("nan") if self.width is None else float(self.width)
        if self.lift == "gaussian" and self.width is None:
            mean = float(self._squares(X).mean()) / X.shape[1]
            self.width_ = float(np.sqrt(mean)) if mean > 0 else 1.0
        self.n_components_ = X.shape[1] + (2 if self.lift == "square" else 1)

    def _choose_center(self, X: Any) -> Floats:
        d = X.shape[1]
        if self.center is None:
            if self.lift == "square":
                return np.zeros(d)
            return np.asarray(X.mean(axis=0, dtype=np.float64), dtype=np.float64).ravel()
        try:
            center = np.array(self.center, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            center = np.empty(0)
        if center.shape != (d,) or not np.isfinite(center).all():
            raise ValueError(
                f"center={self.center!r} is not valid for CircleMap: it must be {d} finite "
                "numbers, one for each column of X, or None."
            )
        return center

    def _squares(self, X: Any) -> Floats:
        """Return ‖x − c‖² in float64."""
        if sp.issparse(X):
            wide = X.astype(np.float64)
            squares = (
                row_norms(wide, squared=True)
                - 2 * (wide @ self.center_)
                + self.center_ @ self.center_
            )
            return np.asarray(np.maximum(squares, 0.0))
        away = X.astype(np.float64) - self.center_
        return np.asarray(np.einsum("ij,ij->i", away, away))

    def _hill(self, X: Any) -> Floats:
        return np.asarray(np.exp(-self._squares(X) / (2 * self.width_**2)))

    def _fill(self, X: Any, out: Any) -> None:
        X = X.toarray() if sp.issparse(X) else X
        if self.lift == "gaussian":
            out[:, :-1] = X
            out[:, -1] = self._hill(X)
            return
        out[:, 0] = self._squares(X)
        out[:, 1:-1] = -2 * (X.astype(np.float64) - self.center_)
        out[:, -1] = 1.0

    def _sparse_block(self, X: Any) -> Any:
        kind = type(X)
        if self.lift == "gaussian":
            block = sp.hstack([X, kind(self._hill(X)[:, None].astype(X.dtype))], format="csr")
        elif self.center_.any():
            raise TypeError("Sparse X is not supported with a center: dense data is required.")
        else:
            ones = kind(np.ones((X.shape[0], 1), X.dtype))
            squares = kind(self._squares(X)[:, None].astype(X.dtype))
            block = sp.hstack([squares, -2 * X, ones], format="csr")
        return kind(block)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the features: |x|^2, -2 x0, …, 1; or x0, …, r.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns; by default those of the frame, or x0, x1, …
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self.lift == "gaussian":
            return np.array([*names, "r"], dtype=object)
        return np.array(["|x|^2", *(f"-2 {name}" for name in names), "1"], dtype=object)

    def circle(self, model: Any) -> Circle:
        """Return the circle on which a linear model of the lifted rows is 0.

        Parameters
        ----------
        model : fitted estimator
            With ``coef_`` of one plane in the lifted space, and ``intercept_``.

        Returns
        -------
        Circle
            ``center``, ``radius`` and which class is ``inside``.
        """
        check_is_fitted(self)
        if self.lift != "square":
            raise ValueError("lift='gaussian' has no circle for a plane: use lift='square'.")
        if not hasattr(model, "coef_"):
            raise TypeError(f"model={model!r} has no coef_: give a fitted linear model.")
        w = np.asarray(model.coef_, dtype=np.float64)
        if w.size != self.n_components_:
            raise ValueError(
                f"model.coef_ has shape {w.shape}, but a plane in the lifted space has "
                f"{self.n_components_} weights: fit the model to what transform returns, with two "
                "classes."
            )
        w, b = w.ravel(), float(np.ravel(getattr(model, "intercept_", 0.0))[0])
        if w[0] == 0:
            raise ValueError("The weight of |x|^2 is 0: this plane is a straight line, no circle.")
        center = w[1:-1] / w[0]
        squared = float(center @ center - (w[-1] + b) / w[0])
        if squared < 0:
            raise ValueError(
                f"The plane does not meet the lifted rows: the squared radius is {squared:.3g}. "
                "Every point is in the same class: raise C, or use class weights."
            )
        side = "negative" if w[0] > 0 else "positive"
        return Circle(center + self.center_, float(np.sqrt(squared)), side)
