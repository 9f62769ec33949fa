"""Losses of a row as functions of its functional margin m = y f.

    0/1              1 if m ≤ 0, else 0
    perceptron       max(0, −m)
    hinge            max(0, 1 − m)
    squared hinge    max(0, 1 − m)²
    logistic         log₂(1 + exp(−m)): to the base 2, so that it is 1 at m = 0
    squared          (1 − m)² = (y − f)²

All but the perceptron's are at least the 0/1 loss, so a small sum of them means few mistakes. All
but 0/1 are convex. Hinge losses are 0 from m = 1 on: such rows do not affect the solution. The
logistic loss is never 0, and the squared one grows again for rows far on the right side.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.plots import style
from maxmargin.plots.style import foreground
from maxmargin.problems import losses as known
from maxmargin.validation.parameters import check_number

LossFunction = Callable[[Floats], Any]

_STYLES = ("-", "--", "-", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def _values(terms: Any, m: Floats) -> Floats:
    one = np.ones(len(m))
    return known.values(terms(one, one), m)


LOSSES: dict[str, LossFunction] = {
    "0/1": lambda m: (m <= 0).astype(np.float64),
    "perceptron": lambda m: np.maximum(0.0, -m),
    "hinge": lambda m: _values(known.hinge, m),
    "squared hinge": lambda m: _values(known.squared_hinge, m),
    "logistic": lambda m: np.logaddexp(0.0, -m) / np.log(2.0),
    "squared": lambda m: np.square(1.0 - m),
}


@dataclass(eq=False, repr=False)
class LossDisplay(style.Display):
    """Losses against the functional margin y f, with vertical lines at 0 and 1.

    Parameters
    ----------
    losses : sequence of str, or dict of str to callable, default=None
        Names among "0/1", "perceptron", "hinge", "squared hinge", "logistic" and "squared"; or
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

    Examples
    --------
    >>> import maxmargin as mm
    >>> display = mm.plots.LossDisplay(["0/1", "hinge"]).plot()
    >>> bool((display.lines_["hinge"].get_ydata() >= display.lines_["0/1"].get_ydata()).all())
    True
    """

    losses: Sequence[str] | Mapping[str, LossFunction] | None = None
    _: KW_ONLY
    limits: tuple[float, float] = (-2.5, 3.0)
    most: float = 4.0
    _size = (4.6, 3.6)

    def _draw(self, ax: Any) -> None:
        curves = _choose_losses(self.losses)
        check_number(self, "most", above=0)
        low, high = (float(limit) for limit in self.limits)
        if not -np.inf < low < high < np.inf:
            raise ValueError(
                f"limits={self.limits!r} is not valid: give two finite numbers, low < high."
            )
        # 0 and 1 are among the abscissae: there the losses have their kinks.
        kinks = [m for m in (0.0, 1.0) if low <= m <= high]
        self.margins_ = np.union1d(np.linspace(low, high, 401), kinks)
        for m in kinks:
            ax.axvline(m, color=foreground(ax), linewidth=0.6, alpha=0.5)
        order = {name: k for k, name in enumerate({**LOSSES, **curves})}
        self.lines_ = {
            name: _draw_curve(ax, name, order[name], self.margins_, loss)
            for name, loss in curves.items()
        }
        ax.set(xlim=(low, high), ylim=(-0.05 * self.most, self.most))
        ax.set(xlabel="functional margin y f(x)", ylabel="loss of the row")
        ax.set_title("What a row costs, by its margin")
        style.legend_below(ax)


def _draw_curve(ax: Any, name: str, k: int, margins: Floats, loss: LossFunction) -> Any:
    values = np.asarray(loss(margins), dtype=np.float64)
    if values.shape != margins.shape:
        raise ValueError(
            f"losses[{name!r}] returned shape {values.shape} for {len(margins)} margins: it must "
            "return one number for each."
        )
    options: dict[str, Any] = {"color": style.colour(k), "linestyle": _STYLES[k % len(_STYLES)]}
    if name == "0/1":
        # The step is 1 up to 0, and at 0: a mistake is y f ≤ 0.
        options = {"color": foreground(ax), "drawstyle": "steps-pre"}
    # Half of the squared hinge is hidden by the squared loss.
    options["linewidth"] = {"hinge": 2.4, "squared hinge": 3.0}.get(name, 1.5)
    return ax.plot(margins, values, label=style.text(name, 20), **options)[0]


def _choose_losses(losses: Any) -> dict[str, LossFunction]:
    """Return the losses to draw by name, given as names, as functions by name, or as None."""
    if losses is None:
        return LOSSES
    if len(losses) == 0:
        raise ValueError("losses is empty: name at least one, or use None for all.")
    if isinstance(losses, Mapping):
        for name, loss in losses.items():
            if not callable(loss):
                raise TypeError(f"losses[{name!r}] is not callable: give a function of margins.")
        return {str(name): loss for name, loss in losses.items()}
    names = [losses] if isinstance(losses, str) else losses
    if unknown := [name for name in names if name not in LOSSES]:
        raise ValueError(
            f"losses contains {unknown[0]!r}: choose from {', '.join(map(repr, LOSSES))}, or give "
            "a dict of functions."
        )
    return {name: LOSSES[name] for name in names}
