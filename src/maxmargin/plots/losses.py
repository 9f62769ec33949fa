"""Losses of a row as functions of its functional margin m = y f.

    0/1              1 if m ≤ 0, else 0
    perceptron       max(0, −m)
    hinge            max(0, 1 − m)
    squared hinge    max(0, 1 − m)²
    logistic         log₂(1 + exp(−m)): to the base 2, so that it is 1 at m = 0
    squared          (1 − m)² = (y − f)²

All but the perceptron's are at least the 0/1 loss, so a small sum of them means few mistakes. All
but 0/1 are convex. Hinge losses are 0 from m = 1 on: such rows have no part in the solution. The
logistic loss never is, and the squared one grows again for rows that are right by far.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.plots.display import Display
from maxmargin.plots.style import colour, ink, legend_below, new_axes, text
from maxmargin.problems import losses as known

Floats = npt.NDArray[np.float64]
Loss = Callable[[Floats], Any]

_STYLES = ("-", "--", "-", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def _of(terms: Any, m: Floats) -> Floats:
    one = np.ones(len(m))
    return known.values(terms(one, one), m)


LOSSES: dict[str, Loss] = {
    "0/1": lambda m: (m <= 0).astype(np.float64),
    "perceptron": lambda m: np.maximum(0.0, -m),
    "hinge": lambda m: _of(known.hinge, m),
    "squared hinge": lambda m: _of(known.squared_hinge, m),
    "logistic": lambda m: np.logaddexp(0.0, -m) / np.log(2.0),
    "squared": lambda m: np.square(1.0 - m),
}


class LossDisplay(Display):
    """Losses against the functional margin y f, with marks where it is 0 and 1.

    Parameters
    ----------
    losses : sequence of str, or dict of str to callable, default=None
        Which ones: of "0/1", "perceptron", "hinge", "squared hinge", "logistic" and "squared"; or
        functions of an array of margins, by name. None: those six.
    limits : (float, float), default=(-2.5, 3.0)
        Smallest and largest margin to draw.
    most : float, default=4.0
        Largest loss to draw, > 0.

    Attributes
    ----------
    margins_ : ndarray
        The abscissae.
    lines_ : dict of str to Line2D
        The curves, by name.
    ax_, figure_ :
        Where they were drawn.

    Examples
    --------
    >>> import maxmargin as mm
    >>> display = mm.plots.LossDisplay(["0/1", "hinge"]).plot()
    >>> bool((display.lines_["hinge"].get_ydata() >= display.lines_["0/1"].get_ydata()).all())
    True
    """

    def __init__(
        self,
        losses: Sequence[str] | Mapping[str, Loss] | None = None,
        *,
        limits: tuple[float, float] = (-2.5, 3.0),
        most: float = 4.0,
    ) -> None:
        self.losses = losses
        self.limits = limits
        self.most = most

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where; None: in a new figure.

        Returns
        -------
        self
        """
        curves = _chosen(self.losses)
        low, high = _limits(self.limits)
        if not (np.isfinite(self.most) and self.most > 0):
            raise ValueError(f"most={self.most!r} is not valid: it must be a finite number > 0.")
        ax = new_axes(ax, (4.6, 3.6))
        # 0 and 1 are among the abscissae: there the losses have their kinks.
        kinks = [m for m in (0.0, 1.0) if low <= m <= high]
        self.margins_ = np.union1d(np.linspace(low, high, 401), kinks)
        for m in kinks:
            ax.axvline(m, color=ink(ax), linewidth=0.6, alpha=0.5)
        order = {name: k for k, name in enumerate({**LOSSES, **curves})}
        self.lines_ = {
            name: _drawn(ax, name, order[name], self.margins_, loss)
            for name, loss in curves.items()
        }
        ax.set(xlim=(low, high), ylim=(-0.05 * self.most, self.most))
        ax.set(xlabel="functional margin y f(x)", ylabel="loss of the row")
        ax.set_title("What a row costs, by its margin")
        legend_below(ax)
        return self._drawn(ax)


def _drawn(ax: Any, name: str, k: int, margins: Floats, loss: Loss) -> Any:
    values = np.asarray(loss(margins), dtype=np.float64)
    if values.shape != margins.shape:
        raise ValueError(
            f"losses[{name!r}] returned shape {values.shape} for {len(margins)} margins: it must "
            "return one number for each."
        )
    how: dict[str, Any] = {"color": colour(k), "linestyle": _STYLES[k % len(_STYLES)]}
    if name == "0/1":
        # The step is 1 up to 0, and at 0: a mistake is y f ≤ 0.
        how = {"color": ink(ax), "drawstyle": "steps-pre"}
    wide = {"hinge": 2.4, "squared hinge": 3.0}.get(name, 1.5)  # half of it is under the squared
    return ax.plot(margins, values, linewidth=wide, label=text(name, 20), **how)[0]


def _chosen(losses: Any) -> dict[str, Loss]:
    if losses is None:
        return LOSSES
    if isinstance(losses, Mapping):
        wrong = [name for name, loss in losses.items() if not callable(loss)]
        if wrong:
            raise TypeError(f"losses[{wrong[0]!r}] is not callable: give a function of margins.")
        chosen = {str(name): loss for name, loss in losses.items()}
    else:
        names = [losses] if isinstance(losses, str) else list(losses)
        unknown = [name for name in names if name not in LOSSES]
        if unknown:
            raise ValueError(
                f"losses contains {unknown[0]!r}: choose from {', '.join(map(repr, LOSSES))}, or "
                "give a dict of functions."
            )
        chosen = {name: LOSSES[name] for name in names}
    if not chosen:
        raise ValueError("losses is empty: name at least one, or use None for all.")
    return chosen


def _limits(limits: Any) -> tuple[float, float]:
    low, high = (float(limit) for limit in limits)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(f"limits={limits!r} is not valid: give two finite numbers, low < high.")
    return low, high
