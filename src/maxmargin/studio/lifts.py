"""Points of the plane in three dimensions, where a plane may separate what no line does.

    circle:    z = ‖x − c‖²                  gaussian:    z = exp(−‖x − c‖²/2s²)

The plane between the lifted points has the largest margin, or a soft one if none separates them.
Seen from above it cuts the surface in a circle (circle lift) or another closed curve.
"""

from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.errors import recorded_warnings
from maxmargin.geometry import Lift, LiftedPlane, cut_box, fit_plane, pad
from maxmargin.studio.catalogue import SLIDERS
from maxmargin.studio.scene import Scene

_SIDE = 67  # places along each side of the surface
_DIGITS = 7  # of heights of the surface


def lift(scene: Scene, kind: str) -> dict[str, Any]:
    """Return the points of a scene with a third coordinate, and the plane between their classes.

    ``kind`` is "circle" or "gaussian".
    """
    reply = {
        "type": "lift",
        "kind": kind,
        "x": scene.points[:, 0].tolist(),
        "y": scene.points[:, 1].tolist(),
        "z": [],
        "label": scene.labels.tolist(),
        "plane": None,
        "polygon": [],
        "box": None,
        "surface": None,
        "circle": None,
        "facts": [],
        "message": "Add some points.",
    }
    if not len(scene.points):
        return reply
    chosen = Lift.of(scene.points, kind)
    points = chosen.points(scene.points)
    low, high = pad(points)
    reply |= {
        "z": points[:, 2].tolist(),
        "box": [low.tolist(), high.tolist()],
        "surface": _compute_surface(chosen, low, high),
        "message": "A plane has two sides: it needs points of two classes.",
    }
    if len(np.unique(scene.labels)) != 2:
        return reply
    return reply | _find_plane(chosen, scene, points, (low, high))


def _find_plane(
    chosen: Lift, scene: Scene, points: Floats, box: tuple[Floats, Floats]
) -> dict[str, Any]:
    C = scene.choice.parameters.get("C", SLIDERS["C"].default)
    machines = mm.HardMarginSVC(), mm.LinearSVC(C=C)
    with recorded_warnings():
        plane = fit_plane(chosen, scene.points, scene.labels, *machines)
    return _describe_plane(plane, points, scene.labels, box)


def _compute_surface(chosen: Lift, low: Floats, high: Floats) -> dict[str, Any]:
    """Return the heights over a grid, row by row from the bottom."""
    x, y = np.linspace(low[0], high[0], _SIDE), np.linspace(low[1], high[1], _SIDE)
    heights = chosen.points(np.stack(np.meshgrid(x, y), axis=-1))[..., 2]
    view = [low[0], high[0], low[1], high[1]]
    return {
        "cols": _SIDE,
        "rows": _SIDE,
        "view": [float(edge) for edge in view],
        "z": [float(f"{z:.{_DIGITS}g}") for z in heights.ravel().tolist()],
    }


def _describe_plane(
    plane: LiftedPlane, points: Floats, labels: Ints, box: tuple[Floats, Floats]
) -> dict[str, Any]:
    w, b, circle, separates = plane
    size = float(np.linalg.norm(w))
    if size == 0:
        return {"message": "Equal points cannot be told apart, wherever they are lifted to."}
    wrong = int(np.count_nonzero((points @ w + b > 0) != (labels == labels.max())))
    facts = [["on the wrong side", f"{wrong} of {len(points)}"], ["margin", f"{1 / size:.4g}"]]
    if circle is not None:
        center = ", ".join(f"{at:.4g}" for at in circle.center)
        facts = [["radius", f"{circle.radius:.4g}"], ["centre", f"({center})"], *facts]
    found = {
        "plane": {"w": w.tolist(), "b": b},
        "polygon": cut_box(w, b, *box).tolist(),
        "facts": facts,
        "message": "" if separates else "No plane separates the lifted points: soft margin.",
    }
    if circle is not None:
        found["circle"] = {"center": circle.center.tolist(), "radius": circle.radius}
    return found
