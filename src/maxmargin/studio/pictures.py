"""From a scene to a picture: the model is built and fitted, and what it found is drawn.

``build`` is the one place that turns a choice on the page into an estimator. ``draw`` fits it and
sends pictures: lines in data coordinates, a field of scores or regions, what every point has to do
with the solution, and what there is to say about it in sentences and numbers. A model that refuses
its data is a picture, too: one with a message.
"""

import base64
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.errors import NotSeparableError, recorded_warnings
from maxmargin.geometry import Hyperplane, Window, hyperplane, segment
from maxmargin.separability import Overlap
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.contours import Grid, refine, trace_borders, trace_levels
from maxmargin.studio.expressions import parse_kernel
from maxmargin.studio.scene import Choice, Scene, View

Send = Callable[[dict[str, Any]], None]
Stop = Callable[[], bool]

KINDS = ("", "margin", "inside", "wrong side", "outside", "mistake")

MAX_TIME = 4.0  # seconds that a fit may take before the best answer so far is drawn
_WITNESS_TIME = 2.0  # seconds to decide whether classes are separable
_VOTES = 5e6  # at all places of the grid, if the model has votes to count
_FEWEST = (15, 10)  # columns and rows of the grid, then
_FIRST_DRAWS = 200  # of a Bayes point, for the first picture
_SEPARATORS = 20  # sampled ones that are drawn
_COMPONENTS = 3  # of kernel PCA
_LEVELS = 11  # lines of a component
_LONGEST_SLACKS = 400  # more lines would hide the points
_ON_EDGE = 1e-5  # slack below which a point is on the edge of its margin
_NEWTON = 30  # steps to where a slack ends
_DIGITS = 5  # of coordinates of curved lines, relative to the size of the view
_ROUNDING = 1e-13  # of the sizes of the terms of a score
_NOTHING = 1e-12  # a sum of slacks that is only rounding
_STRONG = 0.98  # the quantile of |f| that has full colour
_PARAMETERS = {"epochs": "max_epochs"}  # names of sliders that are not those of parameters
_WITH_MARGINS = ("HardMarginSVC", "LinearSVC", "SVC", "NuSVC")
_VOTING = ("VotedPerceptron", "BayesPointClassifier")  # f is a vote of planes, and no plane
_WITH_CLASSES = tuple(name for name, model in MODELS.items() if model.most_classes > 1)


# ------------------------------------------------------------------- from a choice to a model


def build(chosen: Scene | Choice, callback: Any = None, **changes: Any) -> Any:
    """Return the estimator, not yet fitted, that a choice stands for.

    Parameters
    ----------
    chosen : Scene or Choice
        A model of the catalogue with its sliders and its kernel.
    callback : callable, optional
        Called after each iteration; the fit ends if it returns True.
    **changes
        Further parameters, such as ``trace=True``, or others instead of those of the page.
    """
    choice = chosen.choice if isinstance(chosen, Scene) else chosen
    offered = MODELS[choice.model]
    values = {name: SLIDERS[name].default for name in SLIDERS} | dict(choice.parameters)
    parameters: dict[str, Any] = {"max_time": MAX_TIME}
    for name in offered.sliders:
        whole = SLIDERS[name].whole
        parameters[_PARAMETERS.get(name, name)] = int(values[name]) if whole else values[name]
    if offered.kernel:
        parameters["kernel"] = parse_kernel(choice.kernel or offered.kernel, values)
    parameters["callback"] = callback
    if choice.model == "KernelPCA":
        del parameters["component"], parameters["callback"]
        n = len(chosen.points) if isinstance(chosen, Scene) else _COMPONENTS
        parameters["n_components"] = max(1, min(_COMPONENTS, n))
    return getattr(mm, choice.model)(**parameters | changes)


def training_data(scene: Scene) -> tuple[Floats, Ints | Floats | None]:
    """Return rows and targets for ``fit``: of one column for SVR, without labels if unused."""
    if scene.choice.model == "SVR":
        return scene.points[:, :1], scene.points[:, 1]
    return scene.points, scene.labels if scene.choice.model in _WITH_CLASSES else None


# ------------------------------------------------------------------- drawing


def draw(scene: Scene, grid: tuple[int, int], wants: Sequence[str], stop: Stop, send: Send) -> None:
    """Fit the model of a scene and send one or more pictures; nothing more once ``stop()``.

    The field has so many columns and rows; ``wants`` may contain "separability".
    """
    began = time.perf_counter()
    picture = _blank(scene)
    if "separability" in wants:
        picture["witness"] = find_witness(scene)
    if missing := _missing(scene):
        send(picture | {"message": missing})
        return
    first = {"n_samples": _FIRST_DRAWS} if scene.choice.model == "BayesPointClassifier" else None
    for changes in ([first] if first else []) + [{}]:
        model = build(scene, lambda _: stop(), **changes)
        found = _fit_and_paint(model, scene, grid) if not stop() else {}
        if stop():
            return
        ended = "field" not in found or _status(model) == "MAX_TIME"
        found["final"] = ended or changes is not first
        if not found["final"]:
            found["message"] = "More separators are being drawn."
        found["seconds"] = time.perf_counter() - began
        send(picture | found)
        if found["final"]:
            return


def _status(model: Any) -> str:
    """Return why the fit of a model ended, such as "MAX_TIME"; nothing if it does not say so."""
    return model.status_.name if hasattr(model, "status_") else ""


def _blank(scene: Scene) -> dict[str, Any]:
    """Return a picture without anything on it."""
    n = len(scene.points)
    nothing = dict.fromkeys(
        ("weights", "intercept", "field", "certificate", "witness", "projection")
    )
    return {
        "type": "picture",
        "model": scene.choice.model,
        "seconds": 0.0,
        "final": True,
        "lines": [],
        "rows": {"alpha": [0.0] * n, "kind": [0] * n},
        "slack": [],
        "facts": [],
        "message": "",
        **nothing,
    }


def _missing(scene: Scene) -> str:
    """Return what has to be added before there is anything to fit, or nothing."""
    if not len(scene.points):
        return "Add some points."
    if scene.choice.model in _WITH_CLASSES and len(np.unique(scene.labels)) < 2:
        return "Add a point of a second class."
    if scene.choice.model in ("SVR", "KernelPCA") and len(scene.points) < 2:
        return "Add a second point."
    return ""


def _fit_and_paint(model: Any, scene: Scene, grid: tuple[int, int]) -> dict[str, Any]:
    """Return what a picture shows of a model after its fit, or why there is none."""
    try:
        with recorded_warnings() as warned, np.errstate(all="ignore"):
            model.fit(*training_data(scene))
            found = _paint(model, scene, grid)
    except NotSeparableError as refusal:
        return _refused(refusal, scene)
    except (ValueError, ArithmeticError, MemoryError) as refusal:
        return {"message": explain(refusal, scene)}
    found["certificate"] = _describe_certificate(model)
    found["message"] = " ".join(filter(None, [found.get("message", ""), _report(model, warned)]))
    return found


def _paint(model: Any, scene: Scene, size: tuple[int, int]) -> dict[str, Any]:
    """Return what there is to see of a fitted model, if need be only where numbers are positive."""
    paint = _PAINTERS.get(scene.choice.model, _paint_classifier)
    try:
        return paint(Canvas.of(model, scene, size))
    except ValueError:
        left, right, bottom, top = scene.view
        if min(left, bottom) >= 0 or min(right, top) <= 0:
            raise
    # Kernels of histograms take no negative numbers, which the points need not have.
    seen = View(max(left, 0.0), right, max(bottom, 0.0), top)
    found = paint(Canvas.of(model, replace(scene, view=seen), size))
    return found | {"message": "This kernel takes no negative numbers: nothing is drawn there."}


class Canvas(NamedTuple):
    """A fitted model, and where it is drawn."""

    model: Any
    scene: Scene
    grid: Grid

    @classmethod
    def of(cls, model: Any, scene: Scene, size: tuple[int, int]) -> "Canvas":
        """Return the canvas for a grid of a size (columns, rows), or of a smaller one."""
        cols, rows = size
        voters = float(getattr(model, "n_samples_", 0))
        if scene.choice.model == "VotedPerceptron":
            voters = float(model.updates_)
        if voters * cols * rows > _VOTES:
            share = math.sqrt(_VOTES / (voters * cols * rows))
            cols = min(cols, max(_FEWEST[0], round(share * cols)))
            rows = min(rows, max(_FEWEST[1], round(share * rows)))
        return cls(model, scene, Grid.of(scene.view, cols, rows))

    @property
    def window(self) -> Window:
        """The part of the plane that is seen."""
        left, right, bottom, top = self.scene.view
        return Window(np.array([left, bottom]), np.array([right, top]), equal=False)

    @property
    def name(self) -> str:
        """Which model of the catalogue it is."""
        return self.scene.choice.model

    @property
    def points(self) -> Floats:
        """All points, as far as the model sees them."""
        return training_data(self.scene)[0]

    @property
    def labels(self) -> list[int]:
        """Which labels there are."""
        return [int(label) for label in np.unique(self.scene.labels)]

    def line(self, at: Floats, level: float = 0.0, kind: str = "") -> dict[str, Any]:
        """Return a line as the page reads it: its vertices one after the other."""
        size = float((self.window.high - self.window.low).min())
        places = np.round(at, _DIGITS - math.floor(math.log10(size))) if len(at) > 2 else at
        kind = kind or ("margin" if level else "boundary")
        return {"kind": kind, "level": level, "at": places.ravel().tolist()}

    def straight(self, plane: Hyperplane, levels: Sequence[float] = (0.0,)) -> list[Any]:
        """Return the visible parts of the lines w·x + b = level."""
        shifted = ((level, Hyperplane(plane.w, plane.b - level)) for level in levels)
        ends = [(level, segment(line, self.window)) for level, line in shifted]
        return [self.line(each, level) for level, each in ends if each is not None]

    def trace(
        self,
        values: Floats,
        levels: Sequence[float] = (0.0,),
        kind: str = "",
        function: Callable[[Floats], Floats] | None = None,
    ) -> list[Any]:
        """Return the lines on which a function with these values on the grid has some values."""
        found = []
        for level, lines in zip(levels, trace_levels(self.grid, values, levels), strict=True):
            if function is not None:
                shifted = partial(_shift, function, level)
                lines = [refine(line, self.grid, shifted) for line in lines]
            found += [self.line(line, level, kind) for line in lines]
        return found

    def level_lines(self, levels: Sequence[float], fine: bool = True) -> dict[str, Any]:
        """Return the lines on which the score f has some values, and w and b if it is straight.

        Where f is the same everywhere, "message" says so.
        """
        score = self.model.decision_function
        if hasattr(self.model, "coef_") and self.name not in _VOTING:
            w, b = np.ravel(self.model.coef_), float(np.ravel(self.model.intercept_)[0])
            flat, lines = not w.any(), self.straight(Hyperplane(w, b), levels)
            found: dict[str, Any] = {"weights": w.tolist(), "intercept": b}
        else:
            values, found = score(self.grid.points()), {}
            flat = _is_flat(self.model, values, self.grid)
            lines = [] if flat else self.trace(values, levels, "", score if fine else None)
        seen = any(line["level"] == levels[0] for line in lines)
        return found | {"lines": lines, "message": _FLAT if flat else "" if seen else _UNSEEN}

    def tube(self) -> list[Any]:
        """Return the curve of a regression and the tube around it."""
        model, epsilon = self.model, float(self.model.epsilon)
        left, right = self.scene.view[:2]
        x = np.linspace(left, right, 2 if hasattr(model, "coef_") else 4 * len(self.grid.x))
        f = model.predict(x[:, np.newaxis])
        names = ((0.0, "curve"), (-epsilon, "tube"), (epsilon, "tube"))
        return [self.line(np.column_stack([x, f + level]), level, kind) for level, kind in names]


# ------------------------------------------------------------------- classifiers


def _paint_classifier(canvas: Canvas) -> dict[str, Any]:
    if len(canvas.labels) > 2:
        return _paint_regions(canvas)
    signs = np.where(canvas.scene.labels == canvas.labels[1], 1.0, -1.0)
    return _paint_score(canvas, _levels(canvas), signs)


def _levels(canvas: Canvas) -> list[float]:
    """Return the levels of f that are drawn: the boundary first, then margins if there are any."""
    if canvas.name in _WITH_MARGINS:
        return [0.0, -1.0, 1.0]
    theta = float(getattr(canvas.model, "margin", 0.0))
    if theta > 0 and canvas.name in ("Perceptron", "KernelPerceptron"):
        return [0.0, -theta, theta]
    return [0.0]


def _paint_score(canvas: Canvas, levels: list[float], signs: Floats) -> dict[str, Any]:
    """Return what there is to see of a model with one score f, positive for signs of +1."""
    model, grid = canvas.model, canvas.grid
    values = model.decision_function(grid.points()).reshape(grid.shape)
    scores = model.decision_function(canvas.points)
    with_margins = canvas.name in _WITH_MARGINS
    wrong = scores * signs <= 0
    found: dict[str, Any] = {
        "field": _encode_scores(grid, values, 1.0 if with_margins else _robust_scale(values)),
        "rows": describe_rows(model, wrong),
        "facts": _state_facts(canvas, int(np.count_nonzero(wrong))),
    }
    found |= canvas.level_lines(levels)
    found["lines"] += _sampled_separators(canvas)
    if hasattr(model, "slack_"):
        target = signs if with_margins else np.zeros(len(signs))
        found["slack"] = _slack_ends(canvas, (target - scores) * signs, target)
    return found


def _shift(function: Callable[[Floats], Floats], level: float, points: Floats) -> Floats:
    return np.asarray(function(points) - level)


_FLAT = "The model says the same everywhere, so there is no boundary."
_UNSEEN = "There is no boundary in the part of the plane that is seen."


def _is_flat(model: Any, values: Floats, grid: Grid) -> bool:
    """Return whether scores differ by no more than rounding."""
    if not hasattr(model, "dual_coef_"):
        return float(np.ptp(values)) == 0.0
    plane: Any = hyperplane(model)
    # |f| is at most the sum of |aₙ| √K(xₙ, xₙ) √K(x, x), and its rounding a tiny part of that.
    rows = plane.vectors, grid.points()
    own, other = (np.sqrt(np.abs(plane.kernel.diag(each))) for each in rows)
    size = np.abs(plane.coefficients) @ own * other.max()
    return float(np.ptp(values)) <= _ROUNDING * float(size)


def _sampled_separators(canvas: Canvas) -> list[dict[str, Any]]:
    """Return some of the lines that a Bayes point averages, if they are lines."""
    model = canvas.model
    if canvas.name != "BayesPointClassifier" or len(model.landmarks_):
        return []
    draws = model.samples_[0]
    some = draws[np.linspace(0, len(draws) - 1, min(_SEPARATORS, len(draws))).astype(int)]
    planes = (Hyperplane(draw[:-1], draw[-1] * model.intercept_scaling) for draw in some)
    lines = [line for plane in planes for line in canvas.straight(plane)]
    return [line | {"kind": "level"} for line in lines]


def _slack_ends(canvas: Canvas, slack: Floats, target: Floats) -> list[list[Any]]:
    """Return rows with slack, each with the place at which it would end: where f = target.

    The way there is straight for a linear model. Otherwise Newton's steps along the gradient of f
    find it, if they do so near the part of the plane that is seen.
    """
    rows = np.flatnonzero((np.asarray(canvas.model.slack_) > 0) & (slack > _ON_EDGE))
    rows = rows[np.argsort(-slack[rows], kind="stable")][:_LONGEST_SLACKS]
    if not len(rows):
        return []
    plane, low, high = hyperplane(canvas.model), *canvas.window[:2]
    # Kernels of histograms take no negative numbers at all.
    low, high = np.where(low >= 0, 0.0, 2 * low - high), 2 * high - low
    places = canvas.points[rows]
    straight = isinstance(plane, Hyperplane)
    for _ in range(1 if straight else _NEWTON):
        slopes = plane.gradient(places)
        steep = np.maximum((slopes**2).sum(axis=1), np.finfo(float).tiny)
        lacking = target[rows] - plane.decision_function(places)
        places = places + slopes * (lacking / steep)[:, np.newaxis]
        places = places if straight else np.clip(places, low, high)
    reached = np.abs(plane.decision_function(places) - target[rows]) <= _ON_EDGE
    ends = zip(rows[reached].tolist(), places[reached].tolist(), strict=True)
    return [[row, *place] for row, place in ends]


def _paint_regions(canvas: Canvas) -> dict[str, Any]:
    """Return the regions of more than two classes, and the borders between them."""
    model, grid = canvas.model, canvas.grid
    names = np.asarray(model.classes_)
    values = model.decision_function(grid.points())
    borders = trace_borders(grid, model.decision_function)
    wrong = names[model.decision_function(canvas.points).argmax(axis=1)] != canvas.scene.labels
    return {
        "field": _encode_classes(grid, values, names[values.argmax(axis=1)]),
        "rows": describe_rows(canvas.model, wrong),
        "lines": [canvas.line(border) for border in borders],
        "facts": _state_facts(canvas, int(np.count_nonzero(wrong))),
        "message": "" if borders else _UNSEEN,
    }


# ------------------------------------------------------------------- models without classes


def _paint_one_class(canvas: Canvas) -> dict[str, Any]:
    return _paint_score(canvas, [0.0], np.ones(len(canvas.points)))


def _paint_tube(canvas: Canvas) -> dict[str, Any]:
    """Return the curve of a regression and the tube around it."""
    model, epsilon = canvas.model, float(canvas.model.epsilon)
    position, height = canvas.scene.points.T
    off = height - model.predict(canvas.points)
    beyond = np.flatnonzero((np.asarray(model.slack_) > 0) & (np.abs(off) > epsilon))
    ends = height - off + np.sign(off) * epsilon
    found: dict[str, Any] = {
        "lines": canvas.tube(),
        "rows": describe_rows(canvas.model, np.zeros(len(off), dtype=bool)),
    }
    found["slack"] = [[int(k), float(position[k]), float(ends[k])] for k in beyond]
    found["facts"] = [
        ["inside the tube", f"{len(off) - len(beyond)} of {len(off)}"],
        _support_fact(model),
        ["Σξ", _write(float(np.sum(model.slack_)))],
        ["mean squared error", _write(float(np.mean(off * off)))],
        ["‖w‖", _write(_norm(model))],
    ]
    return found


def _paint_component(canvas: Canvas) -> dict[str, Any]:
    """Return levels of a principal component, and the points in the plane of the first two."""
    model, grid = canvas.model, canvas.grid
    number = int(canvas.scene.choice.parameters.get("component", SLIDERS["component"].default))
    scores = model.transform(canvas.points)
    shares = np.asarray(model.explained_variance_ratio_)
    names = [f"PC{k + 1} ({100 * shares[k]:.0f} %)" for k in range(len(shares))]
    found: dict[str, Any] = {
        "projection": {
            "x": scores[:, 0].tolist(),
            "y": (scores[:, 1] if scores.shape[1] > 1 else 0.0 * scores[:, 0]).tolist(),
            "names": [*names[:2], "PC2 (0 %)"][:2],
        },
        "facts": [
            ["component", f"{number} of {len(shares)}"],
            *[[f"variance of PC{k + 1}", f"{100 * share:.3g} %"] for k, share in enumerate(shares)],
        ],
        "lines": [],
    }
    if number > model.rank_ or number > scores.shape[1]:
        why = "they are all equal to the kernel"
        if model.rank_:
            why = f"they spread in {model.rank_} direction{'' if model.rank_ == 1 else 's'} only"
        return found | {"message": f"These points have no component {number}: {why}."}

    def component(points: Floats) -> Floats:
        return np.asarray(model.transform(points)[:, number - 1])

    values = component(grid.points())
    levels = np.linspace(values.min(), values.max(), _LEVELS + 2)[1:-1].tolist()
    found["field"] = _encode_scores(grid, values, _robust_scale(values))
    found["lines"] = canvas.trace(values, levels, "level", component)
    found["message"] = "" if found["lines"] else "The component is the same everywhere in sight."
    return found


_PAINTERS = {"OneClassSVM": _paint_one_class, "SVR": _paint_tube, "KernelPCA": _paint_component}


# ------------------------------------------------------------------- fields and rows


def _robust_scale(values: Floats) -> float:
    """Return a size of scores that only a few exceed."""
    return float(np.quantile(np.abs(values), _STRONG)) or 1.0


def _encode_scores(grid: Grid, values: Floats, scale: float) -> dict[str, Any]:
    shares = np.clip(values / scale, -1.0, 1.0)
    return _encode(grid, "score", np.rint(127.5 + 127.5 * shares))


def _encode_classes(grid: Grid, values: Floats, labels: Ints) -> dict[str, Any]:
    """Return 32·label + strength, which is the lead over the second class."""
    ordered = np.partition(values, -2, axis=1)
    lead = ordered[:, -1] - ordered[:, -2]
    strength = np.clip(lead / _robust_scale(lead), 0.0, 1.0)
    return _encode(grid, "classes", 32 * labels + np.rint(31 * strength))


def _encode(grid: Grid, kind: str, values: npt.NDArray[Any]) -> dict[str, Any]:
    """Return numbers of places as bytes, each the middle of a pixel; the view has all of them."""
    (rows, cols), x, y = grid.shape, grid.x, grid.y
    half = 0.5 * (x[1] - x[0]), 0.5 * (y[1] - y[0])
    return {
        "kind": kind,
        "cols": cols,
        "rows": rows,
        "view": [
            *(float(x[0] - half[0]), float(x[-1] + half[0])),
            *(float(y[0] - half[1]), float(y[-1] + half[1])),
        ],
        "values": base64.b64encode(values.astype(np.uint8).tobytes()).decode("ascii"),
    }


def describe_rows(model: Any, wrong: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return how large α of each point is beside its bound, and what kind of point it is.

    Which points are wrong is told only of models without support vectors.
    """
    n = len(wrong)
    alpha, kind = np.zeros(n), np.zeros(n, dtype=int)
    if hasattr(model, "support_kind_"):
        values = np.atleast_2d(model.alpha_)
        bound = float(model.C) if hasattr(model, "C") else float(values.max())
        alpha = values.max(axis=0) / (bound or 1.0)
        kinds = np.atleast_2d(model.support_kind_)
        numbers = np.select([kinds == name for name in _SHOWN_AS], list(_SHOWN_AS.values()), 0)
        kind[model.support_] = numbers.max(axis=0)  # of several planes: the worst
    else:
        if hasattr(model, "dual_coef_"):
            sizes = np.abs(np.atleast_2d(model.dual_coef_)).max(axis=0)
            alpha[model.support_] = sizes / (float(sizes.max(initial=0.0)) or 1.0)
        kind[wrong] = KINDS.index("mistake")
    return {"alpha": np.clip(alpha, 0.0, 1.0).tolist(), "kind": kind.tolist()}


_SHOWN_AS = {kind: KINDS.index(kind) for kind in KINDS[1:5]} | {"on the tube": 1}


# ------------------------------------------------------------------- what there is to say


def _state_facts(canvas: Canvas, errors: int) -> list[list[str]]:
    """Return what is worth knowing about a model with scores, most important first."""
    model, n = canvas.model, len(canvas.points)
    wrong = ["training errors", f"{errors} of {n}"]
    if canvas.name == "OneClassSVM":
        return [
            ["outliers", f"{errors} of {n} ({100 * errors / n:.3g} %)"],
            _support_fact(model),
            ["ν", f"{model.nu:.3g}: at most this share of outliers"],
            ["‖w‖", _write(_norm(model))],
        ]
    if canvas.name == "BayesPointClassifier":
        return [
            wrong,
            ["draws", str(model.n_samples_)],
            ["worth", f"{model.effective_sample_size_:.0f} independent draws"],
            ["standard error", _write(float(model.standard_error_))],
        ]
    if not hasattr(model, "support_kind_"):
        return _perceptron_facts(model, wrong)
    margins = np.ravel(model.margin_)
    unit = "data units" if hasattr(model, "coef_") else "in feature space"
    facts = [["margin", f"{_write(float(margins.min()))} {unit}"], _support_fact(model), wrong]
    if hasattr(model, "slack_"):
        facts.append(["Σξ", _write(float(np.sum(model.slack_)))])
    if len(margins) == 1:
        facts.append(["‖w‖", _write(_norm(model))])
    return facts


def _perceptron_facts(model: Any, wrong: list[str]) -> list[list[str]]:
    bound = float(model.mistake_bound_)
    return [
        ["updates", _write(float(model.updates_))],
        ["bound", f"{bound:.4g} updates" if np.isfinite(bound) else "none: no separator is known"],
        wrong,
        ["epochs", str(model.epochs_)],
        ["stopped", _STOPPED.get(_status(model), model.status_.value)],
    ]


_STOPPED = {
    "ALL_CORRECT": "a whole epoch without a mistake",
    "EPOCHS": "the epochs were used up",
    "MAX_EPOCHS": "the epochs were used up",
    "MAX_TIME": "the time was used up",
}


def _support_fact(model: Any) -> list[str]:
    """Return how many support vectors there are, of which kinds."""
    kinds = np.asarray(model.support_kind_)
    total = len(model.support_)
    if kinds.ndim > 1 or len(set(kinds.tolist())) < 2:
        return ["support vectors", f"{total}"]
    names = ("margin", "on the tube", "inside", "wrong side", "outside")
    counts = [(_PLACES.get(name, name), int(np.count_nonzero(kinds == name))) for name in names]
    places = ", ".join(f"{count} {name}" for name, count in counts if count)
    return ["support vectors", f"{total}: {places}"]


_PLACES = {"margin": "on the margin", "wrong side": "on the wrong side"}


def _norm(model: Any) -> float:
    """Return ‖w‖, in feature space if there is a kernel."""
    margin = float(np.ravel(model.margin_)[0])
    return 1.0 / margin if margin > 0 else math.inf


def _write(number: float) -> str:
    if abs(number) < _NOTHING:
        return "0"
    return f"{number:.4g}" if math.isfinite(number) else "∞" if number > 0 else "–"


def _write_share(share: float) -> str:
    """Return a share in per cent, or as a power of ten if it is tiny.

    >>> _write_share(0.0421), _write_share(3.2e-5), _write_share(2.5e-13)
    ('4.2 %', '0.0032 %', '2.5e-13')
    """
    return f"{100 * share:.2g} %" if share >= 1e-5 else f"{share:.2g}"


def _describe_certificate(model: Any) -> dict[str, Any] | None:
    """Return the bounds on the optimum that the model itself states.

    "proved" is the gap that is proved, the rounding of both bounds included.
    """
    certificate = getattr(model, "certificate_", None)
    if certificate is None:
        return None
    tol = float(model.tol)
    holds = bool(certificate.holds(tol))
    primal, dual = certificate.primal, certificate.dual
    proved = certificate.proved_gap / certificate.size if certificate.size > 0 else 0.0
    if not np.isfinite(dual):
        sentence = f"Nothing is proved: {certificate.caveat or 'there is no bound'}."
    else:
        more = f"; {certificate.caveat}" if certificate.caveat else ""
        sentence = (
            f"No answer is better by more than {_write_share(proved)} of the objective: "
            f"primal {primal:.6g}, dual {dual:.6g}{more}."
        )
    numbers = {
        "proved": proved,
        "relative_gap": certificate.relative_gap,
        "gap": certificate.gap,
        "primal": primal,
        "dual": dual,
    }
    finite = {key: float(x) if np.isfinite(x) else None for key, x in numbers.items()}
    return {"holds": holds, **finite, "tol": tol, "sentence": sentence}


def _report(model: Any, warned: list[str]) -> str:
    """Return what went otherwise than one would wish, in sentences."""
    if _status(model) == "MAX_TIME":
        return f"The fit was stopped after {MAX_TIME:g} seconds: this is the best answer so far."
    if _status(model) == "MAX_EPOCHS":
        return "The perceptron still makes mistakes after the epochs allowed."
    return " ".join(dict.fromkeys(warned))


def explain(refusal: Exception, scene: Scene) -> str:
    """Return why a model refuses its data, for somebody who only knows the page."""
    if scene.choice.model == "NuSVC":
        counts = np.unique(scene.labels, return_counts=True)[1].tolist()
        largest = min((2 * min(pair) / sum(pair) for pair in combinations(counts, 2)), default=1.0)
        nu = scene.choice.parameters.get("nu", SLIDERS["nu"].default)
        if nu > largest:
            sizes = f"ν = {nu:.3g} is not possible with classes of these sizes"
            return f"{sizes}: the largest ν is {largest:.4g}."
    return str(refusal) or "The numbers are too large for this model."


# ------------------------------------------------------------------- witnesses


def _refused(refusal: NotSeparableError, scene: Scene) -> dict[str, Any]:
    """Return the picture of classes that a model cannot separate."""
    straight = not MODELS[scene.choice.model].kernel or _is_linear(scene.choice)
    where = "No line separates" if straight else "Not even with this kernel does a plane separate"
    way_out = "A soft margin (LinearSVC or SVC) allows for slack."
    if scene.choice.model == "BayesPointClassifier":
        way_out = "Raise the share of labels that may be wrong, or choose another kernel."
    found: dict[str, Any] = {"lines": [], "message": f"{where} the classes. {way_out}"}
    if isinstance(refusal.witness, Overlap):
        found["witness"] = _describe_overlap(refusal.witness, scene, straight)
    return found


def _is_linear(choice: Choice) -> bool:
    kernel = build(choice).kernel
    return isinstance(kernel, mm.kernels.Linear)


def find_witness(scene: Scene) -> dict[str, Any] | None:
    """Say whether straight lines separate the classes, with what proves it; None for one class."""
    if len(np.unique(scene.labels)) < 2:
        return None
    try:
        found = mm.separate(scene.points, scene.labels, max_time=_WITNESS_TIME)
    except ValueError as refusal:
        return {"kind": "undecided", "sentence": str(refusal)}
    if isinstance(found.witness, Hyperplane) and found.separable:
        return _describe_separator(found, found.witness, scene)
    if isinstance(found.witness, Overlap):
        return _describe_overlap(found.witness, scene, straight=True)
    return {
        "kind": "undecided",
        "sentence": "Whether a line separates the classes cannot be decided at this precision.",
    }


def _describe_separator(found: mm.Separation, plane: Hyperplane, scene: Scene) -> dict[str, Any]:
    left, right, bottom, top = scene.view
    ends = segment(plane, Window(np.array([left, bottom]), np.array([right, top]), equal=False))
    what = "A straight line separates the classes"
    if len(found.classes) > 2:
        what = "A straight line separates every two of the classes"
    return {
        "kind": "separated",
        "margin": float(found.margin),
        "line": [] if ends is None else ends.ravel().tolist(),
        "sentence": f"{what}, with margin {found.margin:.4g}.",
    }


def _describe_overlap(witness: Overlap, scene: Scene, straight: bool) -> dict[str, Any]:
    """Return the two combinations of points that are the same point."""
    rows, weights = witness.rows, np.abs(witness.weights)
    own = scene.labels[rows]
    first, second = np.unique(own).tolist()[:2]
    sets = []
    for mine in (own == first, own == second):
        # A plane through the origin of (x, 1) is refuted by weights that sum to ½ in each class.
        shares = (weights[mine] / weights[mine].sum()).tolist()
        sets.append([list(pair) for pair in zip(rows[mine].tolist(), shares, strict=True)])
    place = sum(weight * scene.points[row] for row, weight in sets[0])
    who = "The classes" if len(np.unique(scene.labels)) == 2 else "Two of the classes"
    meet = "their convex hulls meet there"
    if not straight:
        meet = "their convex hulls meet in the feature space of the kernel"
    return {
        "kind": "overlap",
        "point": place.tolist() if straight else None,
        "sets": sets,
        "sentence": (
            f"{who} cannot be separated: a weighted mean of "
            f"{_count(sets[0])} equals one of {_count(sets[1])}, so {meet}."
        ),
    }


def _count(members: list[Any]) -> str:
    return "one point" if len(members) == 1 else f"{len(members)} points"
