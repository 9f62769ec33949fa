"""Points to begin with: drawn anew for each seed, or from the sets that come with scikit-learn."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from maxmargin import datasets
from maxmargin._typing import Floats, Ints
from maxmargin.studio.catalogue import Slider
from maxmargin.studio.scene import View

DECIMALS = 4  # of coordinates: a picture's address stays short, and says exactly what is drawn
_PADDING = 0.12  # of the view on each side, relative to the longer side of the points' box
_TWO = ("negative", "positive")


class Drawn(NamedTuple):
    """Points, labels from 0, the names of the classes and, if there are any, of the axes."""

    points: Floats
    labels: Ints
    names: tuple[str, ...] = _TWO
    axes: tuple[str, str] | None = None


class Preset(NamedTuple):
    """A set of points that the page offers; ``draw`` takes its sliders by name, and a generator.

    ``model`` is the one to begin with, if not just any shows what the set is for.
    """

    title: str
    group: str
    draw: Callable[..., Drawn]
    sliders: Mapping[str, Slider] = {}
    model: str = ""


def describe() -> list[dict[str, Any]]:
    """Return the presets as the page reads them."""
    return [
        {
            "name": name,
            "title": preset.title,
            "group": preset.group,
            "sliders": {key: slider._asdict() for key, slider in preset.sliders.items()},
            "default": {key: slider.default for key, slider in preset.sliders.items()},
            "model": preset.model,
        }
        for name, preset in PRESETS.items()
    ]


def make(name: str, parameters: Mapping[str, float] | None = None, seed: int = 0) -> dict[str, Any]:
    """Draw a preset, and return its points as the page reads them.

    Parameters
    ----------
    name : str
        Which one, see ``describe``.
    parameters : mapping of str to float, optional
        Positions of sliders; the others stand at their defaults.
    seed : int, default 0
        The same seed draws the same points.
    """
    if name not in PRESETS:
        raise ValueError(f"There is no preset {name!r:.60}; choose one of {', '.join(PRESETS)}.")
    preset = PRESETS[name]
    settings = _settings(preset, parameters or {})
    drawn = preset.draw(**settings, rng=np.random.default_rng(seed))
    points = np.round(drawn.points, DECIMALS) + 0.0  # no −0.0
    return {
        "type": "points",
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "label": drawn.labels.tolist(),
        "names": list(drawn.names),
        "axes": list(drawn.axes) if drawn.axes else None,
        "view": list(view_of(points)),
    }


def view_of(points: Floats) -> View:
    """Return a part of the plane that shows all points, with space around them."""
    if not len(points):
        return View(-1.0, 1.0, -1.0, 1.0)
    low, high = points.min(axis=0), points.max(axis=0)
    longer = float((high - low).max()) or 1.0
    # A flat cloud gets some height too, so that there is a plane to draw in.
    half = np.maximum((high - low) / 2.0, longer / 4.0) + _PADDING * longer
    middle = (low + high) / 2.0
    decimals = max(0, 2 - math.floor(math.log10(longer)))
    left, bottom = np.round(middle - half, decimals).tolist()
    right, top = np.round(middle + half, decimals).tolist()
    return View(left, right, bottom, top)


def _settings(preset: Preset, parameters: Mapping[str, float]) -> dict[str, float]:
    """Return the position of every slider, or say which one is wrong."""
    for name, value in parameters.items():
        if name not in preset.sliders:
            known = ", ".join(preset.sliders) or "none"
            raise ValueError(f"{preset.title} has no slider {name!r:.60}; it has {known}.")
        low, high = preset.sliders[name].low, preset.sliders[name].high
        if not low <= value <= high:
            raise ValueError(
                f"{name} of {preset.title} must be between {low:g} and {high:g}, not {value!r:.60}."
            )
    placed = {name: slider.default for name, slider in preset.sliders.items()} | dict(parameters)
    return {
        name: round(value) if preset.sliders[name].whole else float(value)
        for name, value in placed.items()
    }


# ------------------------------------------------------------------- drawn from a seed


def _two(drawn: tuple[Floats, Ints]) -> Drawn:
    points, y = drawn
    return Drawn(points, (y > 0).astype(np.int64))


def _generate(name: str, **names: str) -> Callable[..., Drawn]:
    """Return what draws a set of ``datasets``; ``names`` are its names for some sliders."""

    def draw(rng: np.random.Generator, points: int, **sliders: float) -> Drawn:
        given = {names.get(slider, slider): value for slider, value in sliders.items()}
        return _two(getattr(datasets, name)(points, random_state=rng, **given))

    return draw


def _gaussians(
    distance: float, variance: float, share: float, points: int, rng: np.random.Generator
) -> Drawn:
    mean = distance / math.sqrt(8.0)  # both on the diagonal, on either side of the origin
    means = ((mean, mean), (-mean, -mean))
    return _two(datasets.gaussians(points, means, variance, balance=share, random_state=rng))


def _blobs(
    classes: int, distance: float, variance: float, points: int, rng: np.random.Generator
) -> Drawn:
    labels = rng.permutation(np.arange(points) % classes)
    angle = math.pi / 2.0 + 2.0 * math.pi * labels / classes
    centres = distance * np.column_stack([np.cos(angle), np.sin(angle)])
    spread = math.sqrt(variance) * rng.standard_normal((points, 2))
    return Drawn(centres + spread, labels, tuple(f"class {k + 1}" for k in range(classes)))


def _circles(inner: float, noise: float, points: int, rng: np.random.Generator) -> Drawn:
    return _two(datasets.circles(points, (inner, 2.0), noise, random_state=rng))


def _line(slope: float, wave: float, noise: float, points: int, rng: np.random.Generator) -> Drawn:
    x = rng.uniform(-3.0, 3.0, points)
    height = slope * x + wave * np.sin(2.0 * x) + noise * rng.standard_normal(points)
    return Drawn(np.column_stack([x, height]), np.zeros(points, dtype=np.int64), ("points",))


def _ring(noise: float, points: int, rng: np.random.Generator) -> Drawn:
    ring, _ = datasets.circles(points, (1.5, 1.5), noise, random_state=rng)
    return Drawn(ring, np.zeros(points, dtype=np.int64), ("points",))


def _gate(*truth: int) -> Callable[..., Drawn]:
    """Return what draws the inputs of a neuron, (0, 0), (0, 1), (1, 0), (1, 1), and its outputs."""

    def draw(rng: np.random.Generator) -> Drawn:
        corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        return Drawn(corners, np.array(truth), ("0", "1"), ("first input", "second input"))

    return draw


# ------------------------------------------------------------------- from scikit-learn


def _bundled(loader: str, columns: tuple[str, str]) -> Callable[..., Drawn]:
    """Return what reads two columns of a set, scaled to mean 0 and standard deviation 1."""

    def draw(rng: np.random.Generator) -> Drawn:
        from sklearn import datasets as bundled
        from sklearn.preprocessing import scale

        found = getattr(bundled, loader)()
        chosen = [list(found.feature_names).index(column) for column in columns]
        names = tuple(map(str, found.target_names))
        x, y = (f"{column.removesuffix(' (cm)')} (standardised)" for column in columns)
        return Drawn(scale(found.data[:, chosen]), found.target.astype(np.int64), names, (x, y))

    return draw


# ------------------------------------------------------------------- all of them


def _count(default: float = 100) -> Slider:
    return Slider("n", "How many points are drawn.", 10, 2000, default, True, True)


def _noise(high: float, default: float) -> Slider:
    return Slider("noise", "How far points stray from their shape.", 0.0, high, default)


_DISTANCE = Slider("distance", "How far apart the means are.", 0.0, 6.0, 2.0)
_VARIANCE = Slider("σ²", "Variance of each coordinate.", 0.01, 4.0, 0.3, True)
_SHARE = Slider("share", "Share of the second class.", 0.1, 0.9, 0.5)
_MARGIN = Slider("margin", "Distance of the nearest points from the line.", 0.02, 1.0, 0.3, True)

PRESETS = {
    "gaussians": Preset(
        "Two Gaussians", "Clouds", _gaussians,
        {"distance": _DISTANCE, "variance": _VARIANCE, "share": _SHARE, "points": _count()},
    ),
    "separable": Preset(
        "Separable, with a margin", "Clouds", _generate("separable"),
        {"margin": _MARGIN, "points": _count(60)},
    ),
    "conflicts": Preset(
        "Conflicts: equal points, different labels", "Clouds",
        _generate("conflicts", share="fraction"),
        {
            "share": Slider("share", "Share of points with a twin.", 0.0, 1.0, 0.2),
            "points": _count(60),
        },
    ),
    "blobs": Preset(
        "Three to five clouds", "Clouds", _blobs,
        {
            "classes": Slider("classes", "How many classes there are.", 3, 5, 3, whole=True),
            "distance": Slider("distance", "How far the means are from the centre.", 0.0, 4.0, 1.5),
            "variance": _VARIANCE,
            "points": _count(120),
        },
    ),
    "circles": Preset(
        "Circles", "Shapes", _circles,
        {
            "inner": Slider("radius", "That of the inner circle; the outer has 2.", 0.0, 1.9, 1.0),
            "noise": _noise(1.0, 0.2), "points": _count(),
        },
    ),
    "moons": Preset(
        "Moons", "Shapes", _generate("moons"), {"noise": _noise(0.6, 0.15), "points": _count()}
    ),
    "xor": Preset(
        "XOR clouds", "Shapes", _generate("xor"), {"noise": _noise(1.2, 0.6), "points": _count()}
    ),
    "spirals": Preset(
        "Spirals", "Shapes", _generate("spirals"),
        {
            "turns": Slider("turns", "Turns of each arm.", 0.25, 3.0, 1.25),
            "noise": _noise(0.8, 0.15), "points": _count(160),
        },
    ),
    "line": Preset(
        "A line with noise", "Without classes", _line,
        {
            "slope": Slider("slope", "How steep the line is.", -2.0, 2.0, 0.5),
            "wave": Slider("wave", "Height of a wave along the line.", 0.0, 2.0, 0.0),
            "noise": Slider("noise", "Standard deviation of the height.", 0.0, 1.0, 0.25),
            "points": _count(60),
        },
        "SVR",
    ),
    "ring": Preset(
        "A ring", "Without classes", _ring,
        {"noise": _noise(1.0, 0.3), "points": _count()}, "OneClassSVM",
    ),
    "neuron_and": Preset("AND", "A neuron's inputs", _gate(0, 0, 0, 1), model="Perceptron"),
    "neuron_xor": Preset("XOR", "A neuron's inputs", _gate(0, 1, 1, 0), model="Perceptron"),
    "iris": Preset(
        "Iris flowers", "Real data",
        _bundled("load_iris", ("petal length (cm)", "petal width (cm)")),
    ),
    "breast_cancer": Preset(
        "Breast cancer", "Real data",
        _bundled("load_breast_cancer", ("worst radius", "worst concave points")),
    ),
}  # fmt: skip
