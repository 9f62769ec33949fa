"""The Gram matrix Kᵢⱼ = K(xᵢ, xⱼ) as an image, and its eigenvalues.

Rows are sorted by class, and within a class by the first eigenvector of its centred block: its
first kernel principal component. A kernel that suits the labels shows bright blocks. A positive
semidefinite matrix has no negative eigenvalues beyond rounding, n·ε·max |λ|.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.plots.display import Display
from maxmargin.plots.gram_rows import in_order, sampled
from maxmargin.plots.panels import kernel_name, legend_under, panels
from maxmargin.plots.style import GREY, WRONG, ink, text

Floats = npt.NDArray[np.float64]

_SIZE = (8.0, 4.0)
_ROOM = 0.06  # of the matrix: names of classes that are nearer would overlap


class GramDisplay(Display):
    """A Gram matrix sorted by class, beside its spectrum.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Kernel values in the order drawn.
    order : ndarray of shape (m,)
        The numbers of the rows, in the order drawn.
    eigenvalues : ndarray of shape (m,)
        Of the symmetric part, in descending order.
    rounding : float, default=0.0
        Eigenvalues of at most this size are zeros.
    labels : ndarray of shape (m,) or None, default=None
        Of the rows, in the order drawn: class after class.
    name : str, default="K"
        Of the kernel.
    n_rows : int or None, default=None
        How many rows there were, before a sample was taken; None: m.

    Attributes
    ----------
    image_ : AxesImage
        The matrix.
    boundaries_ : list of lines
        Between classes, two for each boundary.
    positive_, negative_ : Line2D
        |λ| against its place, of positive and of negative eigenvalues.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(60, random_state=0)
    >>> display = mm.plots.GramDisplay.from_kernel(mm.kernels.RBF(gamma=1.0), X, y)
    >>> display.matrix.shape, bool((display.eigenvalues > -display.rounding).all())
    ((60, 60), True)
    """

    image_: Any
    boundaries_: list[Any]
    positive_: Any
    negative_: Any

    def __init__(
        self,
        matrix: Floats,
        order: npt.NDArray[np.intp],
        eigenvalues: Floats,
        *,
        rounding: float = 0.0,
        labels: npt.NDArray[Any] | None = None,
        name: str = "K",
        n_rows: int | None = None,
    ) -> None:
        self.matrix = matrix
        self.order = order
        self.eigenvalues = eigenvalues
        self.rounding = rounding
        self.labels = labels
        self.name = name
        self.n_rows = n_rows

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, y: Any = None, *, most: int = 400, ax: Any = None
    ) -> Self:
        """Compute the matrix of some rows, sort it and draw it.

        Parameters
        ----------
        kernel : Kernel, name or function
            As in ``SVC``; it need not be positive semidefinite.
        X : matrix of shape (n, d)
            Rows; for "precomputed", the square matrix of kernel values.
        y : array-like of shape (n,) or None, default=None
            Labels of any number of classes.
        most : int, default=400
            Of more rows than these a fixed sample is drawn, with a row of every class; at least 2.
        ax : array of two axes or None, default=None
            Where to draw; None: a new figure.
        """
        from maxmargin.kernels import as_kernel, check_kernel

        settled = as_kernel(kernel).resolved(X)
        prepared = settled.prepare(X)
        rows, labels = sampled(len(prepared), y, most)
        part = prepared[rows]
        # The other half is computed as well: a function that is not symmetric must be seen.
        K = settled.block(part, prepared[rows])
        checked = check_kernel(K)
        place = in_order(np.asarray(K, dtype=np.float64), labels)
        return cls(
            np.asarray(K, dtype=np.float64)[np.ix_(place, place)],
            rows[place],
            checked.spectrum[0][::-1],
            rounding=len(K) * float(np.finfo(K.dtype).eps) * float(abs(checked.spectrum[0]).max()),
            labels=None if labels is None else labels[place],
            name=kernel_name(settled),
            n_rows=len(prepared),
        ).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, most: int = 400, ax: Any = None
    ) -> Self:
        """Draw the matrix of a fitted model's kernel.

        Parameters
        ----------
        estimator : fitted model
            With ``kernel_``: SVC, SVR, KernelPCA, KernelPerceptron and their like, or a pipeline
            that ends in one.
        X, y, most, ax
            As in ``from_kernel``.
        """
        from sklearn.pipeline import Pipeline
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
        if isinstance(estimator, Pipeline):
            X, estimator = estimator[:-1].transform(X), estimator[-1]
        if not hasattr(estimator, "kernel_"):
            raise TypeError(
                f"estimator={estimator!r} has no kernel_: give the kernel itself to "
                "GramDisplay.from_kernel."
            )
        return cls.from_kernel(estimator.kernel_, X, y, most=most, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the matrix and its spectrum.

        Parameters
        ----------
        ax : array of two axes or None, default=None
            Where to draw; None: a new figure.
        """
        axes = panels(ax, 1, 2, _SIZE).ravel()
        self._draw_matrix(axes[0])
        self._draw_classes(axes[0])
        self._draw_spectrum(axes[1])
        legend_under(axes, axes[1].get_legend_handles_labels()[0])
        return self._drawn(axes)

    def _draw_matrix(self, ax: Any) -> None:
        low, high = float(self.matrix.min()), float(self.matrix.max())
        size = max(-low, high)
        # Two hues where values have two signs, with 0 in the middle.
        how = {"cmap": "cividis", "vmin": min(low, 0.0), "vmax": high}
        if low < 0:
            how = {"cmap": "PuOr_r", "vmin": -size, "vmax": size}
        self.image_ = ax.imshow(self.matrix, interpolation="nearest", rasterized=True, **how)
        ax.figure.colorbar(self.image_, ax=ax, shrink=0.8, pad=0.02)
        drawn, rows = len(self.matrix), self.n_rows or len(self.matrix)
        count = f"{drawn:,} rows" if drawn == rows else f"{drawn:,} of {rows:,} rows"
        by = "by their first component" if self.labels is None else "by class"
        ax.set(xlabel=f"{count}, {by}", xticks=[], yticks=[])
        ax.set_title(f"Gram matrix\n{text(self.name)}")

    def _draw_classes(self, ax: Any) -> None:
        self.boundaries_ = []
        if self.labels is None:
            return
        m = len(self.labels)
        starts = np.flatnonzero(np.append(True, self.labels[1:] != self.labels[:-1]))
        # On the image, whatever the paper: white with a dark edge is seen on all its colours.
        for start in starts[1:]:
            self.boundaries_.append(ax.axhline(start - 0.5, color="w", linewidth=0.8))
            self.boundaries_.append(ax.axvline(start - 0.5, color="w", linewidth=0.8))
        middles = (starts + np.append(starts[1:], m) - 1) / 2
        named: list[int] = []
        for k, middle in enumerate(middles):
            if not named or middle - middles[named[-1]] >= _ROOM * m:
                named.append(k)
        ax.set_yticks(middles[named], [text(self.labels[starts[k]], 12) for k in named])
        ax.tick_params(axis="y", length=0)

    def _draw_spectrum(self, ax: Any) -> None:
        values = self.eigenvalues
        place = np.arange(1, len(values) + 1)
        above, below = values > self.rounding, values < -self.rounding
        how: dict[str, Any] = {"linestyle": "none", "markersize": 3.0}
        (self.positive_,) = ax.plot(
            place[above],
            values[above],
            color=GREY,
            marker="o",
            label=f"{above.sum()} positive",
            **how,
        )
        (self.negative_,) = ax.plot(
            place[below], -values[below], color=WRONG, marker="x", label="", **how
        )
        if below.any():
            self.negative_.set_label(f"{below.sum()} negative")
        zeros = len(values) - int(above.sum()) - int(below.sum())
        if self.rounding > 0:
            ax.axhline(
                self.rounding,
                color=ink(ax),
                linewidth=0.8,
                linestyle=":",
                label=f"rounding, {zeros} below",
            )
        if above.any() or below.any() or self.rounding > 0:
            ax.set_yscale("log")
        ax.set(xlabel="place of λ, from the largest", ylabel="|λ|")
        verdict = "not positive semidefinite" if below.any() else "positive semidefinite"
        ax.set_title(f"Spectrum:\n{verdict}")
