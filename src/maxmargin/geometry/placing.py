"""Where to put a plane among labelled points, and how to write it down."""

from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from maxmargin.geometry.inputs import signs
from maxmargin.geometry.planes import Hyperplane, Plane

P = TypeVar("P", bound=Plane)


def best_offset(w: Plane | npt.ArrayLike, X: Any, y: Any) -> float:
    """Return the b that puts the plane midway between the nearest points of the classes.

    b = −½ (min₊ w·x + max₋ w·x). It maximises min y f, and so the margin if w separates.

    Parameters
    ----------
    w : array-like of shape (d,), or a plane
        Weights; of a plane only the weights are used, never its b.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y : array-like of shape (n,)
        Labels of two classes.

    Examples
    --------
    >>> best_offset([1, 0], [[0, 5], [4, 3], [9, 1]], [-1, 1, 1])
    -2.0
    """
    lowest_positive, highest_negative = _facing(_plane(w), X, y)
    # Halved first, so that the sum cannot overflow; 0 − t, so that b is never −0.
    return 0.0 - (0.5 * lowest_positive + 0.5 * highest_negative)


def canonical(plane: P, X: Any, y: Any) -> P:
    """Return the same plane, scaled so that min y f = 1 and its margin is 1/‖w‖.

    Parameters
    ----------
    plane : Hyperplane or KernelHyperplane
        A plane that separates the classes; if not, a ValueError counts the points in the way.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y : array-like of shape (n,)
        Labels.

    Examples
    --------
    >>> canonical(Hyperplane([4, 0], 0), [[-1, 0], [2, 0]], [-1, 1])
    Hyperplane(w=array([1., 0.]), b=0.0)
    """
    if not isinstance(plane, Plane):
        raise TypeError(_no_plane(plane))
    margins = plane.functional_margin(X, y)
    if wrong := int(np.count_nonzero(margins <= 0)):
        raise ValueError(
            f"plane does not separate the classes: {wrong} of {len(margins)} points are on the "
            "wrong side or on the plane itself"
        )
    return plane.scaled(1.0 / float(margins.min()))


@overload
def marginal_classifiers(plane: P, X: Any, y: Any) -> tuple[P, P]: ...
@overload
def marginal_classifiers(plane: npt.ArrayLike, X: Any, y: Any) -> tuple[Hyperplane, Hyperplane]: ...
def marginal_classifiers(plane: Plane | npt.ArrayLike, X: Any, y: Any) -> tuple[Plane, Plane]:
    """Return the two parallel planes that touch the nearest point of each class.

    Parameters
    ----------
    plane : Hyperplane, KernelHyperplane, or weights of shape (d,)
        The direction; only its weights are used. A ValueError says if no parallel plane separates.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y : array-like of shape (n,)
        Labels of two classes.

    Returns
    -------
    (negative, positive)
        Planes with the same w, touching the negative and the positive class.

    Examples
    --------
    >>> negative, positive = marginal_classifiers([1, 0], [[0, 5], [4, 3]], [-1, 1])
    >>> negative.b, positive.b
    (0.0, -4.0)
    """
    direction = _plane(plane)
    lowest_positive, highest_negative = _facing(direction, X, y)
    if lowest_positive <= highest_negative:
        raise ValueError(
            "no plane with this w separates the classes: w·x reaches "
            f"{highest_negative:g} in the negative and {lowest_positive:g} in the positive class"
        )
    return direction.parallel(0.0 - highest_negative), direction.parallel(0.0 - lowest_positive)


def _plane(w: Plane | npt.ArrayLike) -> Plane:
    # parallel(0): w·x itself, not f − b, which would round twice.
    if isinstance(w, Plane):
        return w.parallel(0.0)
    if hasattr(w, "fit"):
        raise TypeError(_no_plane(w))
    return Hyperplane(np.asarray(w))


def _no_plane(given: Any) -> str:
    return (
        f"{type(given).__name__} is not a plane: pass mm.geometry.Hyperplane(w, b), or of a fitted "
        "model mm.geometry.hyperplane(model)"
    )


def _facing(direction: Plane, X: Any, y: Any) -> tuple[float, float]:
    """Return min w·x over the positive and max w·x over the negative class."""
    products = direction.decision_function(X)
    positive = signs(y, len(products)) > 0
    if positive.all() or not positive.any():
        raise ValueError("y has one class only; a plane between classes needs both")
    return float(products[positive].min()), float(products[~positive].max())
