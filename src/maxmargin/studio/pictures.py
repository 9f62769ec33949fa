"""From a scene to a picture: the model is built and fitted, and what it found is drawn.

``build`` is the one place that turns a choice on the page into an estimator. ``draw`` fits it and
sends pictures: lines in data coordinates, a field of scores or regions, what every point has to do
with the solution, and what there is to say about it in sentences and numbers. A model that refuses
its data is a picture, too: one with a message.
"""

import base64
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.errors import NotSeparableError
from maxmargin.geometry import Hyperplane, KernelHyperplane, Window, hyperplane, segment
from maxmargin.problems.losses import ON_EDGE
from maxmargin.problems.problem import Status
from maxmargin.separability import Overlap, Separation, separate
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.contours import Grid, find_roots, trace_borders, trace_levels
from maxmargin.studio.kernel_grammar import parse_kernel
from maxmargin.studio.scene import Choice, Scene, View

Send = Callable[[dict[str, Any]], None]
Stop = Callable[[], bool]

KINDS = ("", "margin", "inside", "wrong side", "outside", "mistake")

MAX_TIME = 4.0  # seconds that a fit may take before the best answer so far is drawn
_WITNESS_TIME = 2.0  # seconds to decide whether classes are separable
_VOTES = 5e6  # at all places of the grid, if the model has votes to count
_VOTE_TOL = 1e-5  # accuracy of lines that are decided by votes, as a share of an edge of the grid
_TOL = 1e-8  # that of all others
_FEWEST = (15, 10)  # columns and rows of the grid, then
_FIRST_DRAWS = 200  # of a Bayes point, for the first picture
_SEPARATORS = 20  # sampled ones that are drawn
_COMPONENTS = 3  # of kernel PCA
_LEVELS = 11  # lines of a component
_LONGEST_SLACKS = 400  # more lines would hide the points
_REACH = 3.0  # times the distance at which a straight f would reach its margin
_ROUNDING = 1e-13  # of the sizes of the terms of a score
_NOTHING = 1e-12  # a sum of slacks that is only rounding
_STRONG = 0.98  # the quantile of |f| that has full colour
_PARAMETERS = {"epochs": "max_epochs"}  # names of sliders that are not those of parameters
_WITH_MARGINS = ("HardMarginSVC", "LinearSVC", "SVC", "NuSVC")
_VOTING = ("VotedPerceptron", "BayesPointClassifier")  # f is a vote of planes, and no plane
_WITH_CLASSES = tuple(name for name, model in MODELS.items() if model.most_classes > 1)


class Asked(Protocol):
    """What ``draw`` needs to know of a request."""

    @property
    def seq(self) -> int:
        """The number of the request."""

    @property
    def pane(self) -> int:
        """Where the picture goes."""

    @property
    def scene(self) -> Scene:
        """What is drawn."""

    @property
    def grid(self) -> tuple[int, int]:
        """Columns and rows of the field."""

    @property
    def wants(self) -> Sequence[str]:
        """May contain "separability"."""


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


def draw(request: Asked, stop: Stop, send: Send) -> None:
    """Fit the model of a scene and send one or more pictures; nothing more once ``stop()``."""
    began = time.perf_counter()
    scene = request.scene
    picture = _blank(request)
    if "separability" in request.wants:
        picture["witness"] = find_witness(scene)
    missing = _missing(scene)
    if missing:
        send(picture | {"message": missing})
        return
    for model, final in _stages(scene, stop):
        if stop():
            return
        found = _fit_and_paint(model, request)
        if stop():
            return
        refused = "field" not in found
        found["final"] = final or refused or getattr(model, "status_", None) is Status.MAX_TIME
        if not found["final"]:
            found["message"] = "More separators are being drawn."
        found["seconds"] = time.perf_counter() - began
        send(picture | found)
        if found["final"]:
            return


def _blank(request: Asked) -> dict[str, Any]:
    """Return a picture without anything on it."""
    n = len(request.scene.points)
    return {
        "type": "picture",
        "seq": request.seq,
        "pane": request.pane,
        "model": request.scene.choice.model,
        "seconds": 0.0,
        "final": True,
        "weights": None,
        "intercept": None,
        "lines": [],
        "field": None,
        "rows": {"alpha": [0.0] * n, "kind": [0] * n},
        "slack": [],
        "certificate": None,
        "facts": [],
        "message": "",
        "witness": None,
        "projection": None,
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


def _stages(scene: Scene, stop: Stop) -> Iterator[tuple[Any, bool]]:
    """Return models to be fitted one after the other, each better than the last."""

    def ended(_progress: Any) -> bool:
        return stop()

    if scene.choice.model == "BayesPointClassifier":
        yield build(scene, ended, n_samples=_FIRST_DRAWS), False
    yield build(scene, ended), True


def _fit_and_paint(model: Any, request: Asked) -> dict[str, Any]:
    """Return what a picture shows of a model after its fit, or why there is none."""
    scene = request.scene
    X, y = training_data(scene)
    with recorded_warnings() as said:
        try:
            model.fit(X, y)
        except NotSeparableError as refusal:
            return _refused(refusal, scene)
        except (ValueError, ArithmeticError, MemoryError) as refusal:
            return {"message": explain(refusal, scene), "lines": []}
        try:
            found = _paint(model, scene, request.grid)
        except (ValueError, ArithmeticError, MemoryError) as refusal:
            return {"message": explain(refusal, scene), "lines": []}
    found["certificate"] = _describe_certificate(model)
    found["message"] = " ".join(filter(None, [found.get("message", ""), _report(model, said)]))
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
    window: Window

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
        left, right, bottom, top = scene.view
        window = Window(np.array([left, bottom]), np.array([right, top]), equal=False)
        return cls(model, scene, Grid.of(scene.view, cols, rows), window)

    @property
    def name(self) -> str:
        """Which model of the catalogue it is."""
        return self.scene.choice.model

    @property
    def tol(self) -> float:
        """How accurate lines are, as a share of an edge of the grid."""
        return _VOTE_TOL if self.name in _VOTING else _TOL

    @property
    def points(self) -> Floats:
        """All points, as far as the model sees them."""
        return training_data(self.scene)[0]

    @property
    def labels(self) -> list[int]:
        """Which labels there are."""
        return [int(label) for label in np.unique(self.scene.labels)]

    def clip(self, w: Floats, b: float) -> list[float]:
        """Return both ends of the visible part of the line w·x + b = 0, or nothing."""
        ends = segment(Hyperplane(w, b), self.window)
        return [] if ends is None else ends.ravel().tolist()


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
    found: dict[str, Any] = {
        "field": _encode_scores(grid, values, 1.0 if with_margins else _robust_scale(values)),
        "rows": describe_rows(canvas.model, scores * signs <= 0),
    }
    if hasattr(model, "coef_") and canvas.name not in _VOTING:
        w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
        found["weights"], found["intercept"] = w.tolist(), b
        lines = [[ends] if (ends := canvas.clip(w, b - level)) else [] for level in levels]
        flat = not w.any()
    else:
        flat = _is_flat(model, values, grid)
        traced = trace_levels(
            _quick_scores(model), grid, values, [] if flat else levels, canvas.tol
        )
        lines = [[line.ravel().tolist() for line in of_level] for of_level in traced]
    found["message"] = _FLAT if flat else "" if lines[0] else _UNSEEN
    pair = canvas.labels if len(canvas.labels) == 2 else None
    found["lines"] = [
        {"kind": "margin" if level else "boundary", "level": level, "pair": pair, "at": line}
        for level, of_level in zip(levels, lines, strict=False)  # none at all of what is flat
        for line in of_level
    ]
    found["lines"] += _sampled_separators(canvas)
    if hasattr(model, "slack_"):
        found["slack"] = _slack_ends(canvas, scores, signs if with_margins else 0.0 * signs, signs)
    found["facts"] = _state_facts(canvas, int(np.count_nonzero(scores * signs <= 0)))
    return found


_FLAT = "The model says the same everywhere, so there is no boundary."
_UNSEEN = "There is no boundary in the part of the plane that is seen."


def _is_flat(model: Any, values: Floats, grid: Grid) -> bool:
    """Return whether scores differ by no more than rounding."""
    if not hasattr(model, "dual_coef_"):
        return float(np.ptp(values)) == 0.0
    plane = hyperplane(model)
    assert isinstance(plane, KernelHyperplane)
    kernel: Any = plane.kernel
    # |f| is at most the sum of |aₙ| √K(xₙ, xₙ) √K(x, x), and its rounding a tiny part of that.
    own, other = (np.sqrt(np.abs(kernel.diag(rows))) for rows in (plane.vectors, grid.points()))
    size = np.abs(plane.coefficients) @ own * other.max()
    return float(np.ptp(values)) <= _ROUNDING * float(size)


def _quick_scores(model: Any) -> Callable[[Floats], Floats]:
    """Return the decision function, without checks and with what it needs of the kernel prepared.

    To find a line it is asked a dozen times for a few places, where checking takes most of the
    time.
    """
    if not hasattr(model, "dual_coef_") or not hasattr(model, "support_kind_"):
        return lambda points: np.asarray(model.decision_function(points))
    plane = hyperplane(model)
    assert isinstance(plane, KernelHyperplane)
    kernel: Any = plane.kernel
    vectors = kernel.prepare(plane.vectors)

    def score(points: Floats) -> Floats:
        values = kernel.block(kernel.prepare(points, like=vectors), vectors, threads=1)
        return np.asarray(values @ plane.coefficients + plane.b)

    return score


def _sampled_separators(canvas: Canvas) -> list[dict[str, Any]]:
    """Return some of the lines that a Bayes point averages, if they are lines."""
    model = canvas.model
    if canvas.name != "BayesPointClassifier" or len(model.landmarks_):
        return []
    draws = model.samples_[0]
    some = draws[np.linspace(0, len(draws) - 1, min(_SEPARATORS, len(draws))).astype(int)]
    ends = [canvas.clip(draw[:-1], draw[-1] * model.intercept_scaling) for draw in some]
    return [{"kind": "level", "level": 0.0, "pair": None, "at": each} for each in ends if each]


def _slack_ends(canvas: Canvas, scores: Floats, target: Floats, signs: Floats) -> list[list[Any]]:
    """Return rows with slack, each with the place at which it would end: where f = target.

    From a point of a linear model the way is straight to its margin; otherwise it follows the
    gradient of f at the point, as far as there is a place with f = target in that direction.
    """
    model = canvas.model
    slack = np.where(np.asarray(model.slack_) > 0, (target - scores) * signs, 0.0)
    rows = np.flatnonzero(slack > ON_EDGE)
    rows = rows[np.argsort(-slack[rows], kind="stable")][:_LONGEST_SLACKS]
    if not len(rows):
        return []
    points, lacking = canvas.points[rows], (target - scores)[rows]
    slopes = hyperplane(model).gradient(points)
    steep = np.linalg.norm(slopes, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = slopes * (lacking / steep**2)[:, np.newaxis]
    steps[~np.isfinite(steps)] = 0.0
    if not hasattr(model, "coef_"):
        low, high = canvas.window.low, canvas.window.high
        # Not far beyond what is seen; kernels of histograms take no negative numbers at all.
        low, high = np.where(low >= 0, 0.0, 2 * low - high), 2 * high - low
        inside = ((points + _REACH * steps >= low) & (points + _REACH * steps <= high)).all(axis=1)
        rows, points, steps, lacking = rows[inside], points[inside], steps[inside], lacking[inside]
        steps, reached = _reach(_quick_scores(model), points, steps, target[rows], -lacking)
        rows, points, steps = rows[reached], points[reached], steps[reached]
    return [[int(row), *place] for row, place in zip(rows, (points + steps).tolist(), strict=True)]


def _reach(
    function: Any, points: Floats, steps: Floats, target: Floats, now: Floats
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return steps that end at f = target exactly, and which of them do; ``now`` is f − target."""
    reached = np.zeros(len(points), dtype=bool)
    longest, beyond = np.ones(len(points)), now.copy()
    for factor in (1.0, 0.5 * _REACH, _REACH):
        left = np.flatnonzero(~reached)
        if not len(left):
            break
        there = function(points[left] + factor * steps[left]) - target[left]
        across = there * now[left] <= 0
        hit = left[across]
        reached[hit], longest[hit], beyond[hit] = True, factor, there[across]
    rows = np.flatnonzero(reached)

    def along(share: Floats, chosen: Ints) -> Floats:
        these = rows[chosen]
        places = points[these] + (share * longest[these])[:, np.newaxis] * steps[these]
        return np.asarray(function(places) - target[these])

    share = np.ones(len(points))
    share[rows] = find_roots(along, now[rows], beyond[rows], tol=1e-9)
    return steps * (share * longest)[:, np.newaxis], reached


def _paint_regions(canvas: Canvas) -> dict[str, Any]:
    """Return the regions of more than two classes, and the borders between them."""
    model, grid = canvas.model, canvas.grid
    names = np.asarray(model.classes_)

    def winner(points: Floats) -> npt.NDArray[np.intp]:
        return np.asarray(model.decision_function(points).argmax(axis=1))

    values = model.decision_function(grid.points())
    best = values.argmax(axis=1)
    borders = trace_borders(winner, grid, best.reshape(grid.shape), canvas.tol)
    wrong = names[winner(canvas.points)] != canvas.scene.labels
    return {
        "field": _encode_classes(grid, values, names[best]),
        "rows": describe_rows(canvas.model, wrong),
        "lines": [
            {
                "kind": "boundary",
                "level": 0.0,
                "pair": names[list(border.pair)].tolist(),
                "at": border.line.ravel().tolist(),
            }
            for border in borders
        ],
        "facts": _state_facts(canvas, int(np.count_nonzero(wrong))),
        "message": "" if borders else _UNSEEN,
    }


# ------------------------------------------------------------------- models without classes


def _paint_one_class(canvas: Canvas) -> dict[str, Any]:
    return _paint_score(canvas, [0.0], np.ones(len(canvas.points)))


def _paint_tube(canvas: Canvas) -> dict[str, Any]:
    """Return the curve of a regression and the tube around it."""
    model, epsilon = canvas.model, float(canvas.model.epsilon)
    straight = hasattr(model, "coef_")
    x = np.linspace(canvas.grid.x[0], canvas.grid.x[-1], 2 if straight else 4 * len(canvas.grid.x))
    f = model.predict(x[:, np.newaxis])
    lines = [
        {
            "kind": "tube" if level else "curve",
            "level": level,
            "pair": None,
            "at": np.column_stack([x, f + level]).ravel().tolist(),
        }
        for level in (0.0, -epsilon, epsilon)
    ]
    position, height = canvas.scene.points.T
    off = height - model.predict(canvas.points)
    beyond = np.flatnonzero((np.asarray(model.slack_) > 0) & (np.abs(off) > epsilon))
    ends = height - off + np.sign(off) * epsilon
    found: dict[str, Any] = {
        "lines": lines,
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

    values = component(grid.points()).reshape(grid.shape)
    levels = np.linspace(values.min(), values.max(), _LEVELS + 2)[1:-1].tolist()
    found["field"] = _encode_scores(grid, values, _robust_scale(values))
    found["lines"] = [
        {"kind": "level", "level": level, "pair": None, "at": line.ravel().tolist()}
        for level, lines in zip(levels, trace_levels(component, grid, values, levels), strict=True)
        for line in lines
    ]
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
        ["stopped", _STOPPED.get(model.status_, model.status_.value)],
    ]


_STOPPED = {
    Status.ALL_CORRECT: "a whole epoch without a mistake",
    Status.EPOCHS: "the epochs were used up",
    Status.MAX_EPOCHS: "the epochs were used up",
    Status.MAX_TIME: "the time was used up",
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


def _report(model: Any, said: list[str]) -> str:
    """Return what went otherwise than one would wish, in sentences."""
    status = getattr(model, "status_", None)
    if status is Status.MAX_TIME:
        return f"The fit was stopped after {MAX_TIME:g} seconds: this is the best answer so far."
    if status is Status.MAX_EPOCHS:
        return "The perceptron still makes mistakes after the epochs allowed."
    return " ".join(dict.fromkeys(said))


def explain(refusal: Exception, scene: Scene) -> str:
    """Return why a model refuses its data, for somebody who only knows the page."""
    if scene.choice.model == "NuSVC" and "infeasible" in str(refusal):
        counts = np.unique(scene.labels, return_counts=True)[1]
        largest = min(
            2 * min(a, b) / (a + b) for k, a in enumerate(counts) for b in counts[k + 1 :]
        )
        nu = scene.choice.parameters.get("nu", SLIDERS["nu"].default)
        return (
            f"ν = {nu:.3g} is not possible with classes of these sizes: "
            f"the largest ν is {largest:.4g}."
        )
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
        found = separate(scene.points, scene.labels, max_time=_WITNESS_TIME)
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


def _describe_separator(found: Separation, plane: Hyperplane, scene: Scene) -> dict[str, Any]:
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


# ------------------------------------------------------------------- warnings


class _Recorder:
    """Warnings by thread, while any thread records.

    ``warnings.catch_warnings`` changes what all threads see, and two of them at once may leave it
    changed. Here the first thread that records sets the filters, and the last puts them back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: dict[int, list[str]] = {}
        self._before: Any = None
        self._catching: Any = None

    def begin(self) -> None:
        """Record the warnings of this thread from now on."""
        with self._lock:
            if not self._said:
                self._catching = warnings.catch_warnings()
                self._catching.__enter__()
                warnings.simplefilter("always")
                self._before, warnings.showwarning = warnings.showwarning, self._hear
            self._said[threading.get_ident()] = []

    def end(self) -> None:
        """Record no more, and leave everything as it was if nobody else does."""
        with self._lock:
            self._said.pop(threading.get_ident(), None)
            if not self._said:
                self._catching.__exit__(None, None, None)

    def said(self) -> list[str]:
        """Return the list that warnings of this thread are added to."""
        return self._said[threading.get_ident()]

    def _hear(self, message: Any, category: type[Warning], *more: Any, **named: Any) -> None:
        own = self._said.get(threading.get_ident())
        if own is None:
            self._before(message, category, *more, **named)
        elif issubclass(category, UserWarning):  # what numpy says of numbers is for nobody here
            own.append(str(message))


_RECORDER = _Recorder()


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Return the list of what estimators warn of in this thread, instead of showing it."""
    _RECORDER.begin()
    try:
        yield _RECORDER.said()
    finally:
        _RECORDER.end()
