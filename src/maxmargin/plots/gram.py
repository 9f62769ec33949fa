"""The Gram matrix Kᵢⱼ = K(xᵢ, xⱼ) as an image, and its eigenvalues.

Rows are sorted by class, and within a class by the first eigenvector of its centred block: its
first kernel principal component. A kernel that suits the labels shows bright blocks. A positive
semidefinite matrix has no eigenvalues below −n·ε·max |λ|, which is rounding.
"""

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats
from maxmargin.inspection.model_view import view_model
from maxmargin.kernels import as_kernel, check_kernel
from maxmargin.kernels.base import literal
from maxmargin.plots import style
from maxmargin.plots.style import text, thin
from maxmargin.validation.data import check_labels

_APART = 0.06  # share of the matrix: class names nearer to each other would overlap


@dataclass(eq=False, repr=False)
class GramDisplay(style.Display):
    """A Gram matrix sorted by class, beside its spectrum.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Kernel values in the order drawn.
    order : ndarray of shape (m,)
        Which row of the data each one is.
    eigenvalues : ndarray of shape (m,)
        Eigenvalues of the symmetric part, in descending order.
    rounding : float, default=0.0
        Eigenvalues of at most this size count as zeros.
    labels : ndarray of shape (m,) or None, default=None
        Labels in the order drawn, sorted by class.
    name : str, default="K"
        Name of the kernel.
    n_rows : int or None, default=None
        Number of rows before sampling, if it is not m.

    Attributes
    ----------
    image_ : AxesImage
        The matrix.
    boundaries_ : list of lines
        Lines between classes, two for each boundary.
    positive_, negative_ : Line2D
        |λ| against its rank, for positive and for negative eigenvalues.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(60, random_state=0)
    >>> display = mm.plots.GramDisplay.from_kernel(mm.kernels.RBF(gamma=1.0), X, y)
    >>> display.matrix.shape, bool((display.eigenvalues > -display.rounding).all())
    ((60, 60), True)
    """

    matrix: Floats
    order: npt.NDArray[np.intp]
    eigenvalues: Floats
    _: KW_ONLY
    rounding: float = 0.0
    labels: npt.NDArray[Any] | None = None
    name: str = "K"
    n_rows: int | None = None

    @classmethod
    def from_kernel(
        cls, kernel: Any, X: Any, y: Any = None, *, most: int = 400, ax: Any = None
    ) -> Self:
        """Compute the Gram matrix of rows, sort it and draw it.

        Parameters
        ----------
        kernel : Kernel, name or function
            As in ``SVC``; it need not be positive semidefinite.
        X : matrix of shape (n, d)
            Rows; for "precomputed", the square matrix of kernel values.
        y : array-like of shape (n,) or None, default=None
            Labels of any number of classes.
        most : int, default=400
            If there are more rows, a fixed sample is drawn, with each class in it; at least 2.
        ax : array of two axes or None, default=None
            Where to draw; None: a new figure.
        """
        resolved = as_kernel(kernel).resolved(X)
        prepared = resolved.prepare(X)
        if not isinstance(most, int | np.integer) or isinstance(most, bool) or most < 2:
            raise ValueError(f"most={most!r} is not valid: it must be an integer >= 2.")
        labels = np.zeros(len(prepared)) if y is None else check_labels(y, len(prepared))
        classes, firsts = np.unique(labels, return_index=True)
        rows = thin(len(prepared), keep=() if y is None else firsts, most=int(most))
        labels = labels[rows]
        # Both halves are computed: a kernel function that is not symmetric must be visible.
        values = resolved.block(prepared[rows], prepared[rows])
        K, spectrum = np.asarray(values, dtype=np.float64), check_kernel(values).spectrum[0]
        orders = []
        for label in classes:
            own = np.flatnonzero(labels == label)
            block = K[np.ix_(own, own)]
            centred = KernelCenterer().fit_transform((block + block.T) / 2)
            first = np.linalg.eigh(centred)[1][:, -1]
            sign = np.sign(first[np.argmax(np.abs(first))])  # that of an eigenvector is arbitrary
            orders.append(own[np.argsort(sign * first, kind="stable")])
        place = np.concatenate(orders)
        return cls(
            K[np.ix_(place, place)],
            rows[place],
            spectrum[::-1],
            rounding=len(K) * float(np.finfo(values.dtype).eps) * float(abs(spectrum).max()),
            labels=None if y is None else labels[place],
            name=style.short_numbers(literal(resolved)),
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
            With a ``kernel_``, such as SVC, SVR, KernelPCA or KernelPerceptron, or a pipeline or
            a search that ends in one.
        X, y, most, ax
            As in ``from_kernel``.
        """
        view = view_model(estimator)
        check_is_fitted(view.machine)
        if not hasattr(view.machine, "kernel_"):
            raise TypeError(
                f"estimator={view.machine!r} has no kernel_: give the kernel itself to "
                "GramDisplay.from_kernel."
            )
        return cls.from_kernel(view.machine.kernel_, view.transform(X), y, most=most, ax=ax)

    def _axes(self, ax: Any) -> Any:
        return style.panels(ax, 1, 2, (8.0, 4.0)).ravel()

    def _draw(self, axes: Any) -> None:
        self._draw_matrix(axes[0])
        self._draw_classes(axes[0])
        self._draw_spectrum(axes[1])
        style.legend_under(axes, axes[1].get_legend_handles_labels()[0])

    def _draw_matrix(self, ax: Any) -> None:
        low, high = float(self.matrix.min()), float(self.matrix.max())
        options: dict[str, Any] = {"cmap": "cividis", "vmin": 0.0, "vmax": high}
        if low < 0:  # values of both signs get two hues, with 0 in the middle
            size = max(-low, high)
            options = {"cmap": "PuOr_r", "vmin": -size, "vmax": size}
        self.image_ = ax.imshow(self.matrix, interpolation="nearest", rasterized=True, **options)
        ax.figure.colorbar(self.image_, ax=ax, shrink=0.8, pad=0.02)
        drawn = len(self.matrix)
        count = style.sampled(drawn, self.n_rows or drawn, "rows") or f"{drawn:,} rows"
        by = "by their first component" if self.labels is None else "by class"
        ax.set(xlabel=f"{count}, {by}", xticks=[], yticks=[])
        ax.set_title(f"Gram matrix\n{text(self.name)}")

    def _draw_classes(self, ax: Any) -> None:
        self.boundaries_ = []
        if self.labels is None:
            return
        m = len(self.labels)
        starts = np.flatnonzero(np.append(True, self.labels[1:] != self.labels[:-1]))
        # White, whatever the background: the lines are drawn on the image.
        line: dict[str, Any] = {"color": "w", "linewidth": 0.8}
        for edge in starts[1:] - 0.5:
            self.boundaries_ += [ax.axhline(edge, **line), ax.axvline(edge, **line)]
        named: dict[float, str] = {}  # by the middle of the class
        for start, end in pairwise([*starts, m]):
            middle = (start + end - 1) / 2
            if not named or middle - max(named) >= _APART * m:
                named[middle] = text(self.labels[start], 12)
        ax.set_yticks(list(named), named.values())
        ax.tick_params(axis="y", length=0)

    def _draw_spectrum(self, ax: Any) -> None:
        values = self.eigenvalues
        place = np.arange(1, len(values) + 1)
        above, below = values > self.rounding, values < -self.rounding
        dots: dict[str, Any] = {"linestyle": "none", "markersize": 3.0}
        large = {"color": style.GREY, "marker": "o", "label": f"{above.sum()} positive"}
        label = f"{below.sum()} negative" if below.any() else ""
        small = {"color": style.WRONG, "marker": "x", "label": label}
        (self.positive_,) = ax.plot(place[above], values[above], **large, **dots)
        (self.negative_,) = ax.plot(place[below], -values[below], **small, **dots)
        if self.rounding > 0:
            label = f"rounding, {np.count_nonzero(~(above | below))} below"
            line = {"color": style.foreground(ax), "linewidth": 0.8, "linestyle": ":"}
            ax.axhline(self.rounding, label=label, **line)
        if values.any():
            ax.set_yscale("log")
        ax.set(xlabel="rank of λ, from the largest", ylabel="|λ|")
        verdict = "not positive semidefinite" if below.any() else "positive semidefinite"
        ax.set_title(f"Spectrum:\n{verdict}")
