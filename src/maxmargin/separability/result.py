"""The answer whether classes are separable, and the witness that comes with it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.geometry import Hyperplane
from maxmargin.runtime.html import table, tag, visible

_NAME = 60  # characters of a label
_SHOWN = 30  # pairs of classes


@dataclass(frozen=True)
class Overlap:
    """Convex weights of rows of both classes that meet in one point: no plane separates them.

    Attributes
    ----------
    rows, weights : ndarray
        The rows with a weight, and the weights: within each class they sum to 1 (without an
        intercept: signed by class, rows that balance out at 0, all weights summing to 1).
    point : ndarray
        Where the classes meet (0 without an intercept).
    residual : float
        How far apart the two combinations are, divided by the largest of the rows: rounding, or 0.
    exact : bool
        Whether weights that meet exactly are proved to exist: in exact arithmetic, in which case
        these are they, rounded; or by an interval around these. It is always True for rows of
        numbers; ``HardMarginSVC`` with a kernel knows the rows only up to rounding.
    """

    rows: Ints
    weights: Floats
    point: Floats
    residual: float
    exact: bool


@dataclass(frozen=True)
class Separation:
    """Whether two classes, or every two of several, can be separated; ``print`` it for a sentence.

    Attributes
    ----------
    separable : bool or None
        True or False, with a witness that proves it; None if it cannot be decided at this precision
        or in time.
    witness : Hyperplane, Overlap or None
        The plane (positive for the larger class), or the weights that show there is none. For
        several classes it belongs to the pair that decided.
    classes : tuple
        The two labels, the second one positive; or all labels.
    margin : float
        Distance of the nearest row to the plane; NaN without one. It is the largest possible unless
        columns differ in size by more than a thousand or over a thousand rows support the plane
        (``HardMarginSVC`` finds the largest then too). For several classes the smallest.
    radius : float
        Largest norm of a row.
    mistake_bound : float
        Updates that a perceptron makes at most, by this plane; ``inf`` without one.
    pairs : dict
        With several classes: the Separation of each pair of labels.
    """

    separable: bool | None
    witness: Hyperplane | Overlap | None
    classes: tuple[Any, ...]
    margin: float = np.nan
    radius: float = np.nan
    mistake_bound: float = np.inf
    pairs: dict[tuple[Any, Any], "Separation"] = field(default_factory=dict)

    def __str__(self) -> str:
        two = len(self.classes) == 2
        who = " and ".join(map(str, self.classes)) if two else "All classes"
        if self.separable:
            return f"{who} are separable, with margin {self.margin:.4g}."
        if self.separable is None:
            who = who if two else "all classes"
            return f"Whether {who} are separable is undecided at this precision."
        n = len(self.witness.rows) if isinstance(self.witness, Overlap) else 0
        if not two:
            return f"Not all classes are separable: {n} rows show that convex hulls meet."
        return f"{who} are not separable: {n} rows show that their convex hulls meet."

    def _repr_html_(self) -> str:
        title = {True: "Separable", False: "Not separable", None: "Undecided"}[self.separable]
        names = ["Separable", "Margin", "Mistake bound"]
        numbers = table(names, [_answer(self)])
        if self.pairs:
            pairs = list(self.pairs.items())
            more = f"{_SHOWN} of {len(pairs)} pairs" if len(pairs) > _SHOWN else ""
            lines = [
                (*(visible(label, _NAME) for label in labels), *_answer(one))
                for labels, one in pairs[:_SHOWN]
            ]
            numbers = table(["Class", "Class", *names], lines, more)
        return tag("div", tag("p", tag("b", title)), tag("p", str(self)), numbers)


def _answer(found: Separation) -> tuple[str, str, str]:
    if not found.separable:
        return "undecided" if found.separable is None else "no", "–", "–"
    return "yes", f"{found.margin:.4g}", f"{found.mistake_bound:.4g}"
