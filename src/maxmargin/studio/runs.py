"""How a model is found, as frames to step through.

- **perceptron**: the line after each update, and how many updates the mistake bound still allows;
- **solver**: the iterates of a solver, and how its duality gap closes;
- **path**: the machine at every cost C, whose duals are piecewise linear in C.

All of it is replayed from what the library records: traces, iterates of solvers and the exact path.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.errors import NotSeparableError
from maxmargin.estimators import HardMarginSVC
from maxmargin.geometry import Hyperplane, hyperplane, mistake_bound
from maxmargin.inspection.model_view import read_trace
from maxmargin.loops.records import Rule
from maxmargin.plots.planar import Window, segment
from maxmargin.separability import separate
from maxmargin.solvers.perceptron import Counts, DualFunction, KernelLearner
from maxmargin.studio.catalogue import MODELS
from maxmargin.studio.contours import Function, Grid, trace_borders, trace_levels
from maxmargin.studio.messages import Run
from maxmargin.studio.pictures import KINDS, build, recorded_warnings
from maxmargin.studio.scene import Scene, View
from maxmargin.validation.data import generator

Frame = dict[str, Any]
Stop = Callable[[], bool]

MOST_FRAMES = 400
LARGEST_REPLY = 950_000  # bytes of the frames of a run
_MOST_CURVED = 80  # frames with curved lines
_ROW_BUDGET = 100_000  # frames times points
_COLUMNS, _ROWS = 48, 36  # of the grid on which curved lines are found
_ARROW = 0.25  # length of the longest arrow, as a share of the shorter side of the view
_MISTAKE = KINDS.index("mistake")
_MOST_BOUNDED = 1000  # rows for which the widest margin of a kernel is found, for its bound
_DIGITS = 5  # of coordinates of curved lines, relative to the size of the view


def step_through(request: Run, stop: Stop) -> dict[str, Any]:
    """Return the frames of a run; if ``stop()`` says so, those until then."""
    steps = {"perceptron": _step_perceptron, "solver": _step_solver, "path": _follow_path}
    refusal = _refuse(request.scene)
    found = Story(message=refusal) if refusal else steps[request.kind](request.scene, stop)
    frames, thinned = _fit_size(found.frames)
    start = int(np.searchsorted([frame["x"] for frame in frames], found.start))
    return {
        "type": "run",
        "seq": request.seq,
        "pane": request.pane,
        "kind": request.kind,
        "title": found.title or MODELS[request.scene.choice.model].title,
        "frames": frames,
        "curves": list(found.curves),
        "axes": found.axes,
        "start": max(0, min(start, len(frames) - 1)),
        "message": " ".join(filter(None, [found.message, found.thinned or thinned])),
    }


class Story(NamedTuple):
    """What a run shows; ``start`` is the position on the axis of x of the frame to begin with."""

    title: str = ""
    frames: Sequence[Frame] = ()
    curves: Sequence[dict[str, Any]] = ()
    axes: dict[str, Any] | None = None
    start: float = 0.0
    message: str = ""
    thinned: str = ""


def _refuse(scene: Scene) -> str:
    """Return why there is nothing to step through, or nothing."""
    model = MODELS[scene.choice.model]
    if not len(scene.labels):
        return "Add some points first."
    if model.most_classes == 1:
        return "" if len(scene.labels) > 1 else "Add a second point."
    count = len(np.unique(scene.labels))
    if count < 2:
        return "Add a point of a second class."
    if count > 2:
        return f"Only two classes can be stepped through, and these are {count}."
    return ""


def _axes(x: str, y: str, x_log: bool = False, y_log: bool = False) -> dict[str, Any]:
    return {"x": x, "y": y, "x_log": x_log, "y_log": y_log}


def _curve(name: str, x: Iterable[float], y: Iterable[float], kind: str) -> dict[str, Any]:
    return {"name": name, "x": [float(at) for at in x], "y": [float(at) for at in y], "kind": kind}


def _pick(count: int, most: int) -> Ints:
    """Return at most so many of the numbers 0 … count − 1, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _say_thinned(shown: int, count: int, what: str) -> str:
    return "" if shown >= count else f"Of {count:,} {what}, {shown:,} are shown."


def _fit_size(frames: Sequence[Frame]) -> tuple[list[Frame], str]:
    """Return as many frames as a reply may have, evenly spaced, and a sentence if some are left."""
    sizes = [len(json.dumps(frame)) for frame in frames]
    kept = np.arange(len(frames))
    while len(kept) > 2 and sum(sizes[k] for k in kept.tolist()) > LARGEST_REPLY:
        kept = kept[_pick(len(kept), max(2, int(0.8 * len(kept))))]
    return [frames[k] for k in kept.tolist()], _say_thinned(len(kept), len(frames), "steps")


# ------------------------------------------------------------------- lines


def _straight(plane: Hyperplane, view: View, levels: Sequence[float] = (0.0,)) -> list[Any]:
    """Return the lines f = level, each by its ends on the edge of the view."""
    low, high = np.array([view.left, view.bottom]), np.array([view.right, view.top])
    found = []
    for level in levels:
        ends = segment(Hyperplane(plane.w, plane.b - level), Window(low, high, False))
        if ends is not None:
            found.append(_line(level, ends.ravel().tolist()))
    return found


def _line(level: float, at: list[float], kind: str = "") -> dict[str, Any]:
    kind = kind or ("margin" if level else "boundary")
    return {"kind": kind, "level": level, "pair": None, "at": at}


class _Curves:
    """Curved lines in a view: the grid on which they are found, and how far they are rounded."""

    def __init__(self, view: View) -> None:
        self.grid = Grid.of(view, _COLUMNS, _ROWS)
        self.points = self.grid.points()
        size = min(view.right - view.left, view.top - view.bottom)
        self.decimals = _DIGITS - math.floor(math.log10(size))

    def levels(self, function: Function, values: Floats, levels: Sequence[float]) -> list[Any]:
        """Return the lines f = level, given f on the grid."""
        found = trace_levels(function, self.grid, values.reshape(self.grid.shape), levels)
        return [
            _line(level, self._rounded(line))
            for level, lines in zip(levels, found, strict=True)
            for line in lines
        ]

    def borders(self, winner: Callable[[Floats], Any]) -> list[Any]:
        """Return the lines between regions of two classes."""
        labels = np.asarray(winner(self.points), dtype=np.intp).reshape(self.grid.shape)
        found = trace_borders(lambda X: np.asarray(winner(X), dtype=np.intp), self.grid, labels)
        return [_line(0.0, self._rounded(border.line)) for border in found]

    def _rounded(self, line: Floats) -> list[float]:
        return np.round(line, self.decimals).ravel().tolist()


def _signs(labels: Ints) -> Floats:
    """Return +1 for the larger of two labels, −1 for the other."""
    return np.where(labels == labels.max(), 1.0, -1.0)


def _mark_mistakes(margins: Floats) -> dict[str, Any]:
    """Return the rows of a frame, from y f: mistakes are those with y f ≤ 0."""
    wrong = np.where(margins <= 0, _MISTAKE, 0)
    return {"alpha": [0] * len(margins), "kind": wrong.tolist()}


# ------------------------------------------------------------------- the perceptron


class _Updates(NamedTuple):
    """The updates of a perceptron: the row of each, y f there before, and how far w turned.

    The angle is in degrees, NaN where there is none as w is 0 before or after.
    """

    row: Ints
    margin: Floats
    turned: Floats


def _step_perceptron(scene: Scene, stop: Stop) -> Story:
    model = build(scene, lambda _: stop(), trace=True)
    with recorded_warnings():  # that it did not converge is said below
        model.fit(scene.points, scene.labels)
    with_kernel = hasattr(model, "kernel_")
    bound = _kernel_bound(model, scene) if with_kernel else float(model.mistake_bound_)
    step = _kernel_updates if with_kernel else _linear_updates
    frames, count = step(model, scene, bound, stop)
    return Story(
        f"{MODELS[scene.choice.model].title}, update by update",
        frames,
        *_count_down(count, bound),
        message=_sum_up(model, scene, bound, count),
        thinned=_say_thinned(len(frames), count + 1, "steps"),
    )


def _kernel_bound(model: Any, scene: Scene) -> float:
    """Return the mistake bound by the widest margin, or by the model itself if that is better."""
    own = float(model.mistake_bound_)
    if len(scene.labels) > _MOST_BOUNDED or not model.kernel_.psd:
        return own
    machine = HardMarginSVC(kernel=model.kernel_, max_time=1.0)
    try:
        with recorded_warnings():
            plane = hyperplane(machine.fit(scene.points, scene.labels))
    except (NotSeparableError, ValueError):
        return own
    margin, eta = float(model.margin), float(model.eta)
    return min(own, mistake_bound(plane, scene.points, scene.labels, margin=margin, eta=eta))


def _linear_updates(model: Any, scene: Scene, bound: float, stop: Stop) -> tuple[list[Frame], int]:
    trace = read_trace(model)
    w, b, y = trace.coef[:, 0], trace.intercept[:, 0], _signs(scene.labels)
    count = len(trace.row)
    before = (w[:-1] * trace.moved).sum(axis=1) + b[:-1]
    made = _Updates(trace.row, y[trace.row] * before, _angles(w))
    longest = float(np.hypot(*w.T).max()) or 1.0
    frames = []
    for k in _pick(count + 1, _most_frames(len(y)) - 1).tolist():
        if stop():
            break
        plane = Hyperplane(w[k], float(b[k]))
        frames.append(
            {
                "lines": _straight(plane, scene.view),
                "rows": _mark_mistakes(y * (scene.points @ w[k] + b[k])),
                "focus": int(made.row[k - 1]) if k else None,
                "arrow": _draw_arrow(plane, scene.view, longest),
                "caption": _describe_update(made, k, bound),
                "x": k,
                "weights": w[k].tolist(),
                "intercept": float(b[k]),
            }
        )
    return [*frames, *_last_of_many(model, scene, count, longest)], count


def _angles(w: Floats) -> Floats:
    """Return by how many degrees each vector differs from the one before; NaN beside zeros."""
    old, new = w[:-1], w[1:]
    across = old[:, 0] * new[:, 1] - old[:, 1] * new[:, 0]
    angle = np.degrees(np.abs(np.arctan2(across, (old * new).sum(axis=1))))
    return np.where(old.any(axis=1) & new.any(axis=1), angle, np.nan)


def _last_of_many(model: Any, scene: Scene, count: int, longest: float) -> list[Frame]:
    """Return a frame with the model itself, if it is not the last line."""
    frame: Frame = {"focus": None, "arrow": None, "x": count}
    if scene.choice.model == "AveragedPerceptron":
        plane = Hyperplane(model.coef_[0], float(model.intercept_[0]))
        frame |= {
            "lines": _straight(plane, scene.view),
            "arrow": _draw_arrow(plane, scene.view, longest),
            "caption": "The model: the mean of w and b over all visits, not the last line.",
            "weights": plane.w.tolist(),
            "intercept": plane.b,
        }
    elif scene.choice.model == "VotedPerceptron":
        high = model.classes_[1]
        frame |= {
            "lines": _Curves(scene.view).borders(lambda X: model.predict(X) == high),
            "caption": "The model: all lines vote, each as often as it was right in a row.",
        }
    else:
        return []
    margins = _signs(scene.labels) * model.decision_function(scene.points)
    return [{**frame, "rows": _mark_mistakes(margins)}]


def _draw_arrow(plane: Hyperplane, view: View, longest: float) -> list[float] | None:
    """Return an arrow along w from the middle of the line that is seen; None if w = 0.

    Of all arrows of a run, that of the longest w has a fixed length.
    """
    if plane.norm == 0:
        return None
    lines = _straight(plane, view)
    corners = lines[0]["at"] if lines else [view.left, view.bottom, view.right, view.top]
    foot = 0.5 * (np.array(corners[:2]) + np.array(corners[2:]))
    side = min(view.right - view.left, view.top - view.bottom)
    return [*foot.tolist(), *(foot + _ARROW * side / longest * plane.w).tolist()]


def _describe_update(made: _Updates, k: int, bound: float) -> str:
    if k == 0:
        return "Start: w = 0, so there is no line yet."
    margin, turned = made.margin[k - 1], made.turned[k - 1]
    if margin < 0:
        where = "on the wrong side"
    elif margin > 0:
        where = "right, but with y f ≤ θ"
    else:
        where = "on neither side"
    said = [f"Update {k:,}: point {made.row[k - 1] + 1:,} was {where}."]
    if math.isfinite(turned):
        said.append(f"w turned by {turned:.3g}°.")
    if math.isfinite(bound):
        left = math.floor(bound) - k
        said.append(f"The bound allows {_write(left) if left else 'no'} more.")
    return " ".join(said)


def _count_down(count: int, bound: float) -> tuple[list[Any], dict[str, Any]]:
    """Return the updates made, and those that the bound allows, as curves with their axes."""
    x = [float(k) for k in _pick(count + 1, MOST_FRAMES)]
    if not math.isfinite(bound):
        return [_curve("updates made", x, x, "line")], _axes("updates", "updates")
    far = bound > 30 * max(count, 1)  # then one of the curves would be flat
    made = x[1:] if far else x  # a log scale has no 0
    return [
        _curve("updates made", made, made, "line"),
        _curve("updates that the bound still allows", x, [bound - k for k in x], "bound"),
    ], _axes("updates", "updates", y_log=far)


def _sum_up(model: Any, scene: Scene, bound: float, count: int) -> str:
    epochs = f"{model.epochs_:,} epoch{'s' * (model.epochs_ != 1)}"
    done = f"{count:,} update{'s' * (count != 1)} in {epochs}."
    if math.isfinite(bound):
        return f"{done} The bound for any order of the points is {_write(math.floor(bound))}."
    if scene.choice.model == "KernelPerceptron":
        return f"{done} No bound is known, as nothing was found that separates the points."
    if separate(scene.points, scene.labels).separable is False:
        return f"{done} No line separates the classes: there is no bound, and mistakes never cease."
    return f"{done} No bound is known, as no line was found that separates the classes."


def _write(count: int) -> str:
    """Return a count, to two digits if it is very large."""
    if count < 10_000_000:
        return f"{count:,}"
    digits, power = f"{count:.1e}".split("e+")
    return f"{digits}·10{power.lstrip('0').translate(_SUPERSCRIPTS)}"


_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _most_frames(points: int, most: int = MOST_FRAMES) -> int:
    """Return how many frames a reply has space for, if each tells something about each point."""
    return max(2, min(most, _ROW_BUDGET // max(1, points)))


# ------------------------------------------------------------------- the perceptron with a kernel


def _kernel_updates(model: Any, scene: Scene, bound: float, stop: Stop) -> tuple[list[Frame], int]:
    row, kernel, X = _replay(model, scene), model.kernel_, scene.points
    y, count = _signs(scene.labels), len(row)
    step = model.eta * y[row]
    K = np.asarray(kernel.gram(X, X), dtype=np.float64)
    shown = set(_pick(count + 1, _most_frames(len(y), _MOST_CURVED)).tolist())
    curves = _Curves(scene.view)
    on_grid = np.asarray(kernel.gram(curves.points, X), dtype=np.float64)
    a, f, b, square = np.zeros(len(y)), np.zeros(len(y)), 0.0, 0.0
    made = _Updates(row, np.zeros(count), np.full(count, np.nan))
    frames: list[Frame] = []
    for k in range(count + 1):
        if stop():
            break
        if k:
            i, s = row[k - 1], step[k - 1]
            made.margin[k - 1] = y[i] * (f[i] + b)
            longer = square + 2 * s * f[i] + s * s * K[i, i]
            if square > 0 and longer > 0:
                cosine = (square + s * f[i]) / math.sqrt(square * longer)
                made.turned[k - 1] = math.degrees(math.acos(min(1.0, max(-1.0, cosine))))
            a[i], f, b, square = a[i] + s, f + s * K[:, i], b + s, longer
        if k in shown:
            lines = curves.levels(_dual_function(kernel, X, a, b), on_grid @ a + b, (0.0,))
            size = np.abs(a) / (np.abs(a).max() or 1.0)
            frames.append(
                {
                    "lines": lines if k else [],
                    "rows": {**_mark_mistakes(y * (f + b)), "alpha": _shares(size)},
                    "focus": int(row[k - 1]) if k else None,
                    "arrow": None,
                    "caption": _describe_update(made, k, bound),
                    "x": k,
                }
            )
    return frames, count


def _replay(model: Any, scene: Scene) -> Ints:
    """Return the row of each update of a fitted kernel perceptron, by running it once more.

    A row is visited once in an epoch, so that the change of its coefficient is its update.
    """
    n = len(scene.labels)
    learner = KernelLearner(
        DualFunction.zero(model.kernel_, 1),
        Rule(float(model.eta), float(model.margin), bool(model.fit_intercept)),
        scene.points,
        (_signs(scene.labels) > 0).astype(np.int64),
        np.ones(n),
        Counts(),
    )
    rng, rows = generator(model.random_state), np.arange(n)
    made = [rows[:0]]
    for _ in range(model.epochs_):
        order, before = rng.permutation(rows) if model.shuffle else rows, learner.now.coefficients
        for _ in learner.visit(order):
            pass
        changed = (learner.now.coefficients != before).any(axis=1)
        made.append(order[changed[order]])
    return np.concatenate(made)


def _dual_function(kernel: Any, X: Floats, a: Floats, b: float) -> Function:
    """Return f(x) = Σ aᵢK(xᵢ, x) + b."""
    used = np.flatnonzero(a)
    support, coefficients = X[used], a[used]

    def f(places: Floats) -> Floats:
        if not len(used):
            return np.full(len(places), b)
        return np.asarray(kernel.gram(places, support) @ coefficients + b, dtype=np.float64)

    return f


def _shares(size: Floats) -> list[float]:
    """Return numbers from 0 to 1, as short as JSON can say them."""
    return [int(s) if s in (0.0, 1.0) else s for s in np.round(size, 3).tolist()]


# ------------------------------------------------------------------- solvers


def _step_solver(scene: Scene, stop: Stop) -> Story:
    return Story(message="This run cannot be stepped through yet.")


def _follow_path(scene: Scene, stop: Stop) -> Story:
    return Story(message="This run cannot be stepped through yet.")
