"""Kernel principal components: the data, and their projections on the first three directions.

    projection of x:  [k − 1ᵀK/n] H vₘ/√λₘ,    HKH = V Λ Vᵀ,    H = I − 11ᵀ/n

The three components are drawn in pairs. A picture proves nothing: ``mm.separate`` says whether
planes separate the classes in them.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import get_tags

from maxmargin._typing import Floats
from maxmargin.plots import planar, style
from maxmargin.plots.style import scatter
from maxmargin.validation.data import check_labels

_PAIRS = ((0, 1), (0, 2), (1, 2))


@dataclass(eq=False, repr=False)
class KernelPCADisplay(style.Display):
    """Four panels: the data, and the pairs of their first three principal components.

    Parameters
    ----------
    points : ndarray of shape (n, 2) or None
        Two columns of the data; None if they have no columns.
    projections : ndarray of shape (n, 3)
        The first three components.
    y : ndarray of shape (n,) or None, default=None
        Labels.
    shares : ndarray of shape (3,) or None, default=None
        Share of the variance that each component explains.
    names : pair of str, default=("x₁", "x₂")
        Names of the two columns.

    Attributes
    ----------
    points_ : list of list
        The artists of each panel, one per class.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(200, radii=(0.25, 1.0), random_state=0)
    >>> model = mm.KernelPCA(3, kernel="rbf", gamma=1.0).fit(X)
    >>> display = mm.plots.KernelPCADisplay.from_estimator(model, X, y)
    >>> display.ax_.shape
    (2, 2)
    """

    points: Floats | None
    projections: Floats
    y: npt.NDArray[Any] | None = None
    _: KW_ONLY
    shares: Floats | None = None
    names: Sequence[str] = ("x₁", "x₂")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        ax: Any = None,
    ) -> Self:
        """Project rows by a fitted kernel PCA, and draw.

        Parameters
        ----------
        estimator : fitted KernelPCA
            With at least three components. Other transformers work too; shares of the variance
            are shown if they have ``explained_variance_ratio_``.
        X : matrix of shape (n, d)
            Rows for ``estimator.transform``; the first panel shows their first two columns.
        y : array-like of shape (n,) or None, default=None
            Labels of any number of classes.
        ax : array of four axes or None, default=None
            Where to draw; None: a new figure.
        """
        if not hasattr(estimator, "transform"):
            raise TypeError(f"estimator={estimator!r} has no transform: give a fitted KernelPCA.")
        Z = np.asarray(estimator.transform(X), dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] < 3:
            raise ValueError(
                f"estimator has {Z.shape[-1]} components, and three are drawn: fit KernelPCA(3)."
            )
        labels = None if y is None else check_labels(y, len(Z))
        points, names = _choose_columns(estimator, X)
        shares = getattr(estimator, "explained_variance_ratio_", None)
        if shares is not None:
            shares = np.asarray(shares[:3], dtype=np.float64)
        found = cls(points, Z[:, :3], labels, shares=shares, names=names)
        return found.plot(ax)

    def _axes(self, ax: Any) -> Any:
        return style.panels(ax, 2, 2, (6.6, 6.4))

    def _draw(self, axes: Any) -> None:
        shown = style.thin(len(self.projections))
        y = np.zeros(len(self.projections)) if self.y is None else self.y
        classes = np.unique(y).tolist()
        size = 14.0 if len(shown) <= style.RASTER_FROM else 4.0
        first, *others = axes.flat
        first.set_title("The data")
        if self.points is None:
            self.points_: list[list[Any]] = [[]]
            first.set_axis_off()
            first.text(0.5, 0.5, "no columns:\nkernel values", ha="center", va="center")
        else:
            self.points_ = [scatter(first, self.points[shown], y[shown], classes, size)]
            style.label_axes(first, self.names)
        names = ["PC1", "PC2", "PC3"]
        if self.shares is not None:
            names = [f"{names[k]} ({self.shares[k]:.1%} var.)" for k in range(3)]
        for panel, (i, j) in zip(others, _PAIRS, strict=True):
            pair = self.projections[shown][:, [i, j]]
            self.points_.append(scatter(panel, pair, y[shown], classes, size))
            panel.set(xlabel=names[i], ylabel=names[j])
            panel.set_aspect("equal", adjustable="datalim")  # distances in feature space
            panel.set_title(f"PC{i + 1} and PC{j + 1}")
        if self.y is not None:
            style.legend_under(axes, self.points_[1])
        lines = ["The first three principal components", style.sampled(len(shown), len(y))]
        first.figure.suptitle("\n".join(filter(None, lines)))


def _choose_columns(estimator: Any, X: Any) -> tuple[Floats | None, Sequence[str]]:
    """Return the first two columns and their names; a single one is drawn along a line."""
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    objects = len(X.shape) != 2 or getattr(getattr(X, "dtype", None), "kind", "") == "O"
    if objects or get_tags(estimator).input_tags.pairwise:
        return None, ("", "")
    names = [*style.column_names(X, X.shape[1]), ""][:2]
    points = planar.columns(X, range(min(2, X.shape[1])))
    return points if X.shape[1] > 1 else np.hstack([points, np.zeros_like(points)]), names
