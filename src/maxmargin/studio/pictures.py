"""From a scene to a picture: the model is built and fitted, and what it found is drawn.

``build`` is the one place that turns a choice on the page into an estimator. ``draw`` fits it and
sends a picture: lines in data coordinates, a field of scores or regions, what every point has to do
with the solution, and what there is to say about it in sentences and numbers. A model that refuses
its data is a picture, too: one with a message.
"""

import base64
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
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
from maxmargin.studio.scene import Choice, Scene

Send = Callable[[dict[str, Any]], None]
Stop = Callable[[], bool]

KINDS = ("", "margin", "inside", "wrong side", "outside", "mistake")

MAX_TIME = 4.0  # seconds that a fit may take before the best answer so far is drawn
_WITNESS_TIME = 2.0  # seconds to decide whether classes are separable
_VOTES = 5e6  # at all places of the grid, if the model has votes to count
_FEWEST = (15, 10)  # columns and rows of the grid, then
_COMPONENTS = 3  # of kernel PCA
_LEVELS = 11  # lines of a component
_LONGEST_SLACKS = 400  # more lines would hide the points
_ON_EDGE = 1e-5  # slack below which a point is on the edge of its margin
_NEWTON = 30  # steps to where a slack ends
_DIGITS = 5  # of coordinates of curved lines, relative to the size of the view
_FLAT_SHARE = 1e-9  # of the largest score: what differs by less is flat
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
    """Fit the model of a scene and send its picture, unless ``stop()``.

    The field has so many columns and rows; ``wants`` may contain "separability".
    """
    began = time.perf_counter()
    picture = _blank(scene)
    if "separability" in wants:
        picture["witness"] = find_witness(scene)
    if missing := explain_missing(scene):
        picture["message"] = missing
    elif not stop():
        picture |= _fit_and_paint(build(scene, lambda _: stop()), scene, grid)
    if not stop():
        send(picture | {"seconds": time.perf_counter() - began})


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
        "lines": [],
        "rows": {"alpha": [0.0] * n, "kind": [0] * n},
        "slack": [],
        "facts": [],
        "message": "",
        **nothing,
    }


def explain_missing(scene: Scene) -> str:
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
            paint = _PAINTERS.get(scene.choice.model, _paint_classifier)
            found = paint(Canvas.of(model, scene, grid))
    except NotSeparableError as refusal:
        return _refused(refusal, scene)
    except (ValueError, ArithmeticError, MemoryError) as refusal:
        return {"message": explain(refusal)}
    if hasattr(model, "certificate_"):
        found["certificate"] = describe_certificate(model.certificate_, float(model.tol))
    found["message"] = " ".join(filter(None, [found.get("message", ""), _report(model, warned)]))
    return found


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
            flat = is_flat(values)
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
        "facts": _state_facts(
            model, "training errors" if hasattr(model, "classes_") else "outliers", wrong
        ),
    }
    found |= canvas.level_lines(levels)
    if hasattr(model, "slack_"):
        target = signs if with_margins else np.zeros(len(signs))
        found["slack"] = _slack_ends(canvas, (target - scores) * signs, target)
    return found


def is_flat(values: Floats) -> bool:
    """Tell whether scores differ by no more than rounding."""
    return float(np.ptp(values)) <= _FLAT_SHARE * float(np.abs(values).max())


def _shift(function: Callable[[Floats], Floats], level: float, points: Floats) -> Floats:
    return np.asarray(function(points) - level)


_FLAT = "The model says the same everywhere, so there is no boundary."
_UNSEEN = "There is no boundary in the part of the plane that is seen."


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
    low, high = 2 * low - high, 2 * high - low
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
        "facts": _state_facts(model, "training errors", wrong),
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
    beyond = (np.asarray(model.slack_) > 0) & (np.abs(off) > epsilon)
    ends = height - off + np.sign(off) * epsilon
    found: dict[str, Any] = {
        "lines": canvas.tube(),
        "rows": describe_rows(canvas.model, np.zeros(len(off), dtype=bool)),
    }
    rows = np.flatnonzero(beyond).tolist()
    found["slack"] = [[k, float(position[k]), float(ends[k])] for k in rows]
    found["facts"] = _state_facts(model, "outside the tube", beyond)
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
        count = f"directions in which they spread: {model.rank_}"
        return found | {"message": f"These points have no component {number} ({count})."}

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


def _state_facts(model: Any, name: str, wrong: npt.NDArray[np.bool_]) -> list[list[str]]:
    """Return what is worth knowing about a model; points that are wrong have a name."""
    facts = [[name, f"{np.count_nonzero(wrong)} of {len(wrong)}"]]
    if hasattr(model, "classes_") and hasattr(model, "margin_"):
        unit = "data units" if hasattr(model, "coef_") else "in feature space"
        facts = [["margin", f"{_write(float(np.min(model.margin_)))} {unit}"], *facts]
    found = ([name, write(model)] for key, name, write in _FACTS if hasattr(model, key))
    return [*facts, *(fact for fact in found if fact[1])]


def write_support(model: Any) -> str:
    """Return how many support vectors there are, of which kinds."""
    kinds = np.asarray(model.support_kind_)
    if kinds.ndim > 1 or len(set(kinds.tolist())) < 2:
        return str(len(model.support_))
    names = ("margin", "on the tube", "inside", "wrong side", "outside")
    counts = [(_PLACES.get(name, name), int(np.count_nonzero(kinds == name))) for name in names]
    places = ", ".join(f"{count} {name}" for name, count in counts if count)
    return f"{len(model.support_)}: {places}"


_PLACES = {"margin": "on the margin", "wrong side": "on the wrong side"}


def _write_norm(model: Any) -> str:
    """Return ‖w‖, in feature space if there is a kernel; nothing if there are several planes."""
    margins = np.ravel(model.margin_).tolist()
    return _write(1.0 / margins[0] if margins[0] > 0 else math.inf) if len(margins) == 1 else ""


def _write_bound(model: Any) -> str:
    bound = float(model.mistake_bound_)
    return f"{bound:.4g} updates" if math.isfinite(bound) else "none: no separator is known"


# Attributes, and what is said of models that have them.
_FACTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("updates_", "updates", lambda model: _write(model.updates_)),
    ("mistake_bound_", "bound", _write_bound),
    ("epochs_", "epochs", lambda model: str(model.epochs_)),
    ("support_kind_", "support vectors", write_support),
    ("slack_", "Σξ", lambda model: _write(float(np.sum(model.slack_)))),
    ("margin_", "‖w‖", _write_norm),
    ("n_samples_", "draws", lambda model: str(model.n_samples_)),
    ("standard_error_", "standard error", lambda model: _write(model.standard_error_)),
)


def _write(number: float) -> str:
    if abs(number) < _NOTHING:
        return "0"
    return f"{number:.4g}" if math.isfinite(number) else "∞" if number > 0 else "–"


def describe_certificate(certificate: mm.Certificate, tol: float) -> dict[str, Any]:
    """Return the bounds on the optimum that a model itself states.

    "proved" is the gap that is proved, the rounding of both bounds included.
    """
    caveat = certificate.caveat
    primal, dual = float(certificate.primal), float(certificate.dual)
    proved = certificate.proved_gap / certificate.size if certificate.size > 0 else 0.0
    sentence = f"Nothing is proved: {caveat or 'there is no bound'}."
    if math.isfinite(dual):
        sentence = (
            f"No answer is better by more than {100 * proved:.2g} % of the objective: "
            f"primal {primal:.6g}, dual {dual:.6g}{f'; {caveat}' if caveat else ''}."
        )
    numbers = {"proved": float(proved), "primal": primal, "dual": dual, "tol": tol}
    finite = {key: x if math.isfinite(x) else None for key, x in numbers.items()}
    return {"holds": bool(certificate.holds(tol)), "sentence": sentence, **finite}


def _report(model: Any, warned: list[str]) -> str:
    """Return what went otherwise than one would wish, in sentences."""
    status = model.status_.name if hasattr(model, "status_") else ""
    if status == "MAX_TIME":
        return f"The fit was stopped after {MAX_TIME:g} seconds: this is the best answer so far."
    if status == "MAX_EPOCHS":
        return "The perceptron still makes mistakes after the epochs allowed."
    return " ".join(dict.fromkeys(warned))


def explain(refusal: Exception) -> str:
    """Return why a model refuses its data, for somebody who only knows the page."""
    return str(refusal) or "The numbers are too large for this model."


# ------------------------------------------------------------------- witnesses


def _refused(refusal: NotSeparableError, scene: Scene) -> dict[str, Any]:
    """Return the picture of classes that a model cannot separate."""
    found: dict[str, Any] = {"message": explain(refusal)}
    if isinstance(refusal.witness, Overlap):
        straight = not MODELS[scene.choice.model].kernel or _is_linear(scene.choice)
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
            f"{who} cannot be separated: weighted means of {len(sets[0])} and of {len(sets[1])} of "
            f"their points are equal, so {meet}."
        ),
    }
