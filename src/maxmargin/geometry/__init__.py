"""Hyperplanes, the four margins, and what a margin is worth.

A plane is the set f(x) = w·x + b = 0, or f(x) = w·φ(x) + b = 0 in a kernel's feature space; w is
orthogonal to it and points to the positive class. Four names, never mixed:

- ``signed_distance`` = f/‖w‖, positive on the positive side;
- ``functional_margin`` = y f, positive where the label is right, growing with the scale of w;
- ``geometric_margin`` = y f/‖w‖, positive where the label is right, a length;
- ``absolute_distance`` = |f|/‖w‖, a length.

Labels are −1 and +1, or any two values of which the larger is positive. Data may be dense or
sparse; sparse data stay sparse, and float32 data are widened a block at a time.
"""

from maxmargin.geometry.bounds import (
    kernel_radius,
    mistake_bound,
    multiclass_mistake_bound,
    radius,
)
from maxmargin.geometry.criterion import multiclass_perceptron_criterion, perceptron_criterion
from maxmargin.geometry.lifts import (
    LIFTS,
    Circle,
    Lift,
    LiftedPlane,
    cut_box,
    fit_plane,
    lift_points,
)
from maxmargin.geometry.planes import (
    ClassMargins,
    Hyperplane,
    KernelHyperplane,
    Plane,
    best_offset,
    canonical,
    hyperplane,
    marginal_classifiers,
)
from maxmargin.geometry.windows import Window, pad, segment, window

__all__ = [
    "LIFTS",
    "Circle",
    "ClassMargins",
    "Hyperplane",
    "KernelHyperplane",
    "Lift",
    "LiftedPlane",
    "Plane",
    "Window",
    "best_offset",
    "canonical",
    "cut_box",
    "fit_plane",
    "hyperplane",
    "kernel_radius",
    "lift_points",
    "marginal_classifiers",
    "mistake_bound",
    "multiclass_mistake_bound",
    "multiclass_perceptron_criterion",
    "pad",
    "perceptron_criterion",
    "radius",
    "segment",
    "window",
]
