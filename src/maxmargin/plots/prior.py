"""Functions drawn from a Gaussian process: what a kernel believes before it has seen a label.

    f ~ N(0, K):   the mean is 0, and f(x) lies within ±2√K(x, x) for 95 % of the draws

A kernel is a covariance. How fast its draws wiggle, and how far they go, is what it assumes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels import as_kernel, sample_prior
from maxmargin.plots import style


@dataclass(eq=False, repr=False)
class PriorSamplesDisplay(style.Display):
    """Draws from the priors of kernels, a panel for each, with the mean and two deviations.

    Parameters
    ----------
    x : ndarray of shape (m,)
        Where the functions are drawn, in ascending order.
    samples : sequence of ndarray of shape (n_samples, m)
        For each kernel, its draws.
    deviations : sequence of ndarray of shape (m,)
        For each kernel, √K(x, x).
    names : sequence of str
        Names of the kernels.

    Attributes
    ----------
    lines_ : list of list
        The lines of the draws, for each panel.
    bands_ : list
        The bands of two deviations.

    Examples
    --------
    >>> import maxmargin as mm
    >>> kernels = [mm.kernels.RBF(gamma=1.0), mm.kernels.Laplacian(gamma=1.0)]
    >>> display = mm.plots.PriorSamplesDisplay.from_kernels(kernels, n_samples=3)
    >>> [draws.shape for draws in display.samples]
    [(3, 200), (3, 200)]
    """

    x: Floats
    samples: Sequence[Floats]
    deviations: Sequence[Floats]
    names: Sequence[str]

    @classmethod
    def from_kernels(
        cls,
        kernels: Any,
        x: Any = None,
        *,
        n_samples: int = 4,
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Draw functions from the priors of kernels.

        Parameters
        ----------
        kernels : Kernel, name or function, a list of them, or a dict from titles to them
            Positive semidefinite on x.
        x : array-like of shape (m,) or None, default=None
            Where to draw the functions; None: at 200 points from −3 to 3.
        n_samples : int, default=4
            Functions in each panel, at least 1.
        random_state : int, RandomState or None, default=0
            Seed of the draws.
        ax : axes, array of axes or None, default=None
            One for each kernel; None: a new figure.
        """
        x = np.asarray(np.linspace(-3.0, 3.0, 200) if x is None else x, dtype=np.float64)
        if x.size != len(np.atleast_1d(x)) or x.size < 2 or not np.isfinite(x).all():
            raise ValueError(
                f"x must be two or more finite numbers, got shape {x.shape}: functions of one "
                "variable are drawn."
            )
        x = np.sort(x.ravel())
        rows = x[:, None]
        if isinstance(kernels, Mapping):
            names, members = list(map(str, kernels)), list(kernels.values())
        else:
            members = list(kernels) if isinstance(kernels, list | tuple) else [kernels]
            names = list(map(style.kernel_name, members))
        if not members:
            raise ValueError(f"kernels={kernels!r} is empty: give at least one kernel.")
        resolved = [as_kernel(kernel).resolved(rows) for kernel in members]
        samples = [sample_prior(kernel, rows, n_samples, random_state) for kernel in resolved]
        deviations = [np.sqrt(np.maximum(kernel.diag(rows), 0.0)) for kernel in resolved]
        return cls(x, samples, deviations, names).plot(ax)

    def _axes(self, ax: Any) -> Any:
        return style.small_multiples(len(self.names), (2.9, 2.3), (0.6, 0.5), ax)

    def _draw(self, axes: Any) -> None:
        self.lines_, self.bands_ = [], []
        for panel, draws, sd, name in zip(
            axes, self.samples, self.deviations, self.names, strict=True
        ):
            black = style.foreground(panel)
            band = {"color": black, "alpha": 0.12, "linewidth": 0, "label": "± 2 sd"}
            self.bands_.append(panel.fill_between(self.x, -2 * sd, 2 * sd, **band))
            dashed = {"color": black, "linewidth": 0.8, "linestyle": "--", "label": "mean"}
            mean = panel.axhline(0.0, **dashed)
            curves = [
                panel.plot(self.x, f, color=style.colour(k), linewidth=1.1, label="draws")[0]
                for k, f in enumerate(draws)
            ]
            self.lines_.append(curves)
            panel.set(xlabel="x", ylabel="f(x)", xlim=(self.x[0], self.x[-1]))
            panel.set_title(style.text(name))
        style.legend_under(axes, [curves[0], mean, self.bands_[-1]])
