"""Many lines that separate two classes: what perceptrons find, and the one of largest margin."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from maxmargin.errors import NotSeparableError
from maxmargin.geometry import Hyperplane
from maxmargin.plots.planar import Planar, Window, signs

Floats = npt.NDArray[np.float64]
_GRID = 61  # places along each side where a query is looked for


def central_line(data: Planar) -> Hyperplane:
    """Return the line of largest margin, with min y f = 1."""
    from maxmargin.estimators.hard_margin import HardMarginSVC

    try:
        model = HardMarginSVC().fit(data.X, data.y)
    except NotSeparableError as error:
        raise NotSeparableError(
            f"{error} There is no separator to draw; mm.separate(X, y) gives the points that "
            "prove it.",
            error.witness,
        ) from error
    return Hyperplane(model.coef_[0], float(model.intercept_[0]))


def perceptron_lines(data: Planar, count: int, random_state: Any) -> list[Hyperplane]:
    """Return the lines of so many perceptrons, without those that gave up before they separated.

    The first starts from zero; the others from random weights, each in its own order of rows. They
    see columns centred and scaled, which maps lines to lines: R̃²/γ̃² may be huge without. They see
    only the corners of the classes' convex hulls, as what separates these separates all.
    """
    from maxmargin.estimators.perceptron import Perceptron

    rng = np.random.default_rng(random_state)
    centre = data.X.mean(axis=0)
    scale = np.abs(data.X - centre).max(axis=0)
    scale[scale == 0] = 1.0
    y, rows = signs(data.y, data.classes), (data.X - centre) / scale
    seen = np.concatenate([_corners(rows, np.flatnonzero(y == sign)) for sign in (-1, 1)])
    lines = []
    for k in range(count):
        start = "zeros" if k == 0 else (2.0 * rng.standard_normal(2), rng.standard_normal())
        model = Perceptron(init=start, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows[seen], y[seen])
        w = model.coef_[0] / scale
        line = Hyperplane(w, float(model.intercept_[0] - w @ centre))
        if line.norm > 0 and line.functional_margin(data.X, y).min() > 0:
            lines.append(line)
    return lines


def _corners(points: Floats, members: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return which of some points are corners of their hull; all if they lie on a line."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(members[ConvexHull(points[members]).vertices])
    except QhullError:
        return members


def disputed(lines: list[Hyperplane], X: Floats, seen: Window) -> Floats | None:
    """Return a place in the window, away from the points, where lines disagree most evenly."""
    from scipy.spatial import cKDTree

    sides = [np.linspace(low, high, _GRID)[3:-3] for low, high in zip(*seen[:2], strict=True)]
    places = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    share = np.mean([line.predict(places) > 0 for line in lines], axis=0)
    size = seen.high - seen.low
    near, _ = cKDTree(X / size).query(places / size)
    # An even vote first; of equal ones, the place nearest to the middle of the data.
    middle = np.linalg.norm((places - X.mean(axis=0)) / size, axis=1)
    cost = np.abs(share - 0.5).round(1) + 0.1 * middle + np.where(near > 0.04, 0.0, 1.0)
    best = int(np.argmin(cost))
    return places[best] if 0.0 < share[best] < 1.0 else None
