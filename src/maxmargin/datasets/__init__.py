"""Small data sets whose truth is known, to test, teach and diagnose with.

Every generator returns ``(X, y)``: float64 rows in random order and integer labels −1 and +1;
where two shapes are named (means, radii), the first is the positive class. The truth is always in
the arguments: you give the plane of ``separable``, the radii of ``circles``, the share of
``conflicts``, the Bayes error of ``overlapping``. ``noise`` is a distance: no point is moved
further than that, so what a docstring says of the classes holds for every seed, not only probably.

``random_state`` is a seed (the same seed gives the same data), a ``numpy.random.Generator`` that
is advanced, or None for fresh randomness. ``balance`` is the share of positive rows, exact to
rounding.
"""

from maxmargin.datasets.linear import conflicts, flipped, gaussians, noise, overlapping, separable
from maxmargin.datasets.planar import circles, moons, spirals, xor

__all__ = [
    "circles",
    "conflicts",
    "flipped",
    "gaussians",
    "moons",
    "noise",
    "overlapping",
    "separable",
    "spirals",
    "xor",
]
