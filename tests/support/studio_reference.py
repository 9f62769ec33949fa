"""What Python itself draws, to compare with what a page shows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin.studio import pictures
from maxmargin.studio.catalogue import KERNEL_SLIDERS, MODELS, SLIDERS
from maxmargin.studio.scene import Choice, Scene, View


def make_scene(
    points: Sequence[Sequence[float]],
    view: Sequence[float],
    model: str,
    kernel: str = "",
    parameters: Mapping[str, float] | None = None,
) -> Scene:
    """Return a scene with points (x, y, label); sliders that are not given stand at their start."""
    data = np.reshape(np.array(points, dtype=float), (-1, 3))
    names = (*MODELS[model].sliders, *KERNEL_SLIDERS)
    values = {name: SLIDERS[name].default for name in names} | dict(parameters or {})
    choice = Choice(model, values, kernel or MODELS[model].kernel)
    return Scene(data[:, :2], data[:, 2].astype(np.int64), choice, View(*view))


def draw(scene: Scene, grid: Sequence[int], wants: Sequence[str] = ()) -> dict[str, Any]:
    """Return the last picture of a scene, without what differs between two of the same."""
    sent: list[dict[str, Any]] = []
    pictures.draw(scene, (grid[0], grid[1]), wants, lambda: False, sent.append)
    return strip(sent[-1])


def strip(picture: Mapping[str, Any]) -> dict[str, Any]:
    """Return a picture without its number, its pane and its time."""
    return {key: value for key, value in picture.items() if key not in ("seq", "pane", "seconds")}
