"""What is on the page: labelled points, a model with its parameters, and a part of the plane."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from maxmargin._typing import Floats, Ints

MOST_POINTS = 5_000
MOST_CLASSES = 5
FARTHEST = 1e6  # coordinates of points and views are at most this large


class View(NamedTuple):
    """The part of the plane that is seen."""

    left: float
    right: float
    bottom: float
    top: float


class Choice(NamedTuple):
    """A model of the catalogue, the positions of its sliders, and an expression for its kernel.

    The expression may name sliders, as in ``RBF(gamma) + 0.5 * Linear()``; it is empty for models
    without a kernel.
    """

    model: str
    parameters: Mapping[str, float]
    kernel: str = ""


@dataclass(frozen=True, eq=False)
class Scene:
    """Points (n, 2), their labels (n,) from 0 to 4, a choice of model, and what is seen."""

    points: Floats
    labels: Ints
    choice: Choice
    view: View
