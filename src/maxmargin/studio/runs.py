"""How a model is found, as frames to step through.

- **perceptron**: the line after each update, and how many updates the mistake bound still allows;
- **solver**: the iterates of a solver, and how its duality gap closes;
- **path**: the machine at every cost C, whose duals are piecewise linear in C.

All of it is replayed from what the library records: traces, iterates of solvers and the exact path.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate, certify_with_duals
from maxmargin.errors import NotSeparableError
from maxmargin.estimators import HardMarginSVC
from maxmargin.geometry import Hyperplane, Window, hyperplane, mistake_bound, segment
from maxmargin.inspection.model_view import read_trace
from maxmargin.loops.records import Rule
from maxmargin.model_selection import regularization_path
from maxmargin.model_selection.path.exact import ExactSolutions, solve_exactly
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.problem import Point, Status
from maxmargin.separability import separate
from maxmargin.solve import Result
from maxmargin.solvers.decomposition import ON_MATRIX, Decomposition
from maxmargin.solvers.dual_cd import DualCD
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.perceptron import Counts, DualFunction, KernelLearner
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.contours import Function, Grid, Winner, trace_borders, trace_levels
from maxmargin.studio.messages import Run
from maxmargin.studio.pictures import (
    KINDS,
    Canvas,
    build,
    describe_rows,
    explain,
    recorded_warnings,
    training_data,
)
from maxmargin.studio.scene import Scene, View
from maxmargin.validation.data import generator

Frame = dict[str, Any]
Stop = Callable[[], bool]

MOST_FRAMES = 400
LARGEST_REPLY = 950_000  # characters of the frames and curves of a run
_MOST_CURVED = 80  # frames with curved lines
_MOST_MARKED = 1000  # points whose mistakes are marked, on lines that change with every update
_ROW_BUDGET = 100_000  # frames times points
_COLUMNS, _ROWS = 48, 36  # of the grid on which curved lines are found
_ARROW = 0.25  # length of the longest arrow, as a share of the shorter side of the view
_MISTAKE = KINDS.index("mistake")
_MOST_BOUNDED = 1000  # rows for which the widest margin of a kernel is found, for its bound
_BOUND_TIME = 0.4  # seconds to find it
_FLAT = 1e-11  # of the terms of a sum: if it changes by less, that is rounding
_TOL = 1e-5  # of an edge of that grid, to which a line is found
_DIGITS = 5  # of coordinates of curved lines, relative to the size of the view


def step_through(request: Run, stop: Stop) -> dict[str, Any]:
    """Return the frames of a run; if ``stop()`` says so, those until then."""
    steps = {"perceptron": _step_perceptron, "solver": _step_solver, "path": _follow_path}
    scene = request.scene
    found = Story(message=_refuse(scene))
    if not found.message:
        try:
            found = steps[request.kind](scene, stop)
        except (ValueError, ArithmeticError, MemoryError) as refusal:
            found = Story(message=explain(refusal, scene))
    first = _nearest(found.frames, found.start)
    frames, thinned = _fit_size(
        found.frames, LARGEST_REPLY - len(json.dumps(found.curves)), {first}
    )
    return {
        "type": "run",
        "seq": request.seq,
        "pane": request.pane,
        "kind": request.kind,
        "title": found.title or MODELS[scene.choice.model].title,
        "frames": frames,
        "curves": list(found.curves),
        "axes": found.axes,
        "start": _nearest(frames, found.start),
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


def _nearest(frames: Sequence[Frame], x: float) -> int:
    """Return the number of the frame at a position, or nearest to it."""
    return int(np.argmin([abs(frame["x"] - x) for frame in frames])) if frames else 0


def _fit_size(frames: Sequence[Frame], most: int, needed: set[int]) -> tuple[list[Frame], str]:
    """Return as many frames as a reply may have, evenly spaced, and a sentence if some are left."""
    sizes = np.array([len(json.dumps(frame)) for frame in frames])
    kept = np.arange(len(frames))
    while len(kept) > 3 and sizes[kept].sum() > most:
        kept = kept[_pick(len(kept), int(0.8 * len(kept)))]
        kept = np.union1d(kept, [k for k in needed if k < len(frames)])
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

    def __init__(self, view: View, grid: Grid | None = None) -> None:
        self.grid = grid or Grid.of(view, _COLUMNS, _ROWS)
        self.points = self.grid.points()
        size = min(view.right - view.left, view.top - view.bottom)
        self.decimals = _DIGITS - math.floor(math.log10(size))
        self._products: Floats | None = None

    def levels(
        self, kernel: Any, X: Floats, a: Floats, b: float, levels: Sequence[float]
    ) -> list[Any]:
        """Return the lines on which Σ aᵢK(xᵢ, x) + b has some values, always of the same X."""
        if self._products is None:
            self._products = np.asarray(kernel.gram(self.points, X), dtype=np.float64)
        values = self._products @ a + b
        size = float((np.abs(self._products) @ np.abs(a)).max()) + abs(b)
        if np.ptp(values) <= _FLAT * size:
            return []
        values = values.reshape(self.grid.shape)
        found = trace_levels(_dual_function(kernel, X, a, b), self.grid, values, levels, _TOL)
        return [
            _line(level, self._rounded(line))
            for level, lines in zip(levels, found, strict=True)
            for line in lines
        ]

    def borders(self, winner: Winner) -> list[Any]:
        """Return the lines between regions of two classes."""
        labels = winner(self.points).reshape(self.grid.shape)
        found = trace_borders(winner, self.grid, labels, _TOL)
        return [_line(0.0, self._rounded(border.line)) for border in found]

    def _rounded(self, line: Floats) -> list[float]:
        return np.round(line, self.decimals).ravel().tolist()


def _signs(labels: Ints) -> Floats:
    """Return +1 for the larger of two labels, −1 for the other."""
    return np.where(labels == labels.max(), 1.0, -1.0)


def _mark_mistakes(scene: Scene, score: Function) -> dict[str, Any] | None:
    """Return the rows of a frame: mistakes are those with y f ≤ 0. Of many points, nothing."""
    if len(scene.labels) > _MOST_MARKED:
        return None
    wrong = _signs(scene.labels) * score(scene.points) <= 0
    return {"alpha": [0] * len(wrong), "kind": np.where(wrong, _MISTAKE, 0).tolist()}


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
    machine = HardMarginSVC(kernel=model.kernel_, max_time=_BOUND_TIME)
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
    most = _most_frames(len(y)) if len(y) <= _MOST_MARKED else MOST_FRAMES
    for k in _pick(count + 1, most - 1).tolist():
        if stop():
            break
        plane = Hyperplane(w[k], float(b[k]))
        frames.append(
            {
                "lines": _straight(plane, scene.view),
                "rows": _mark_mistakes(scene, plane.decision_function),
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
        # Of many votes the grid is coarser.
        grid = Canvas.of(model, scene, (_COLUMNS, _ROWS)).grid
        frame |= {
            "lines": _Curves(scene.view, grid).borders(
                lambda X: (model.decision_function(X) > 0).astype(np.intp)
            ),
            "caption": "The model: all lines vote, each as often as it was right in a row.",
        }
    else:
        return []
    return [{**frame, "rows": _mark_mistakes(scene, model.decision_function)}]


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
            size = np.abs(a) / (np.abs(a).max() or 1.0)
            frames.append(
                {
                    "lines": curves.levels(kernel, X, a, b, (0.0,)),
                    "rows": {
                        "alpha": _shares(size),
                        "kind": np.where(y * (f + b) <= 0, _MISTAKE, 0).tolist(),
                    },
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
    """Return f(x) = Σ aᵢK(xᵢ, x) + b, of which at least one term is not 0."""
    used = np.flatnonzero(a)
    support, coefficients = kernel.prepare(X[used]), a[used]

    def f(places: Floats) -> Floats:
        values = kernel.block(kernel.prepare(places, like=support), support, threads=1)
        return np.asarray(values @ coefficients + b, dtype=np.float64)

    return f


def _shares(size: Floats) -> list[float]:
    """Return numbers from 0 to 1, as short as JSON can say them."""
    return [int(s) if s in (0.0, 1.0) else s for s in np.round(size, 3).tolist()]


# ------------------------------------------------------------------- models of a run


class _Drawing:
    """How the models of a run are drawn: on the same places, whose kernel values are kept."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.model = scene, scene.choice.model
        self.X = training_data(scene)[0]
        self.curves = _Curves(scene.view)

    def frame(self, model: Any, x: float, caption: str) -> Frame:
        """Return the frame of a model."""
        found: Frame = {"rows": self._rows(model), "focus": None, "arrow": None, "x": x}
        found["caption"] = caption
        if self.model == "SVR":
            return {**found, "lines": self._tube(model)}
        if not len(model.support_) and self.model != "LinearSVC":  # w = 0, and no line
            return {**found, "lines": []}
        plane = hyperplane(model)
        levels = (0.0,) if self.model == "OneClassSVM" else (-1.0, 0.0, 1.0)
        if not isinstance(plane, Hyperplane):
            lines = self._levels(model, plane, levels)
            return {**found, "lines": lines}
        found |= {"weights": plane.w.tolist(), "intercept": plane.b}
        return {**found, "lines": _straight(plane, self.scene.view, levels)}

    def _levels(self, model: Any, plane: Any, levels: Sequence[float]) -> list[Any]:
        a = np.zeros(len(self.X))
        a[model.support_] = plane.coefficients
        return self.curves.levels(plane.kernel, self.X, a, plane.b, levels)

    def _tube(self, model: Any) -> list[Any]:
        view, epsilon = self.scene.view, float(model.epsilon)
        x = np.linspace(view.left, view.right, 2 if hasattr(model, "coef_") else 4 * _COLUMNS)
        f = model.predict(x[:, np.newaxis])
        digits = 16 if len(x) == 2 else self.curves.decimals
        return [
            _line(
                level,
                np.column_stack([x, f + level]).round(digits).ravel().tolist(),
                "tube" if level else "curve",
            )
            for level in (0.0, -epsilon, epsilon)
        ]

    def _rows(self, model: Any) -> dict[str, Any]:
        rows = describe_rows(model, np.zeros(len(self.X), dtype=bool))
        return {**rows, "alpha": _shares(np.array(rows["alpha"]))}


# ------------------------------------------------------------------- solvers


_START_ROUNDS = 60  # of the slow solver
_MORE_ROUNDS = 60  # of the one that goes on from there
_BLOCKS = 25  # of points, that the small working sets of a kernel machine make up
_LEAST_GAP = 1e-16  # a gap of 0 has no place on a log scale


class _Visited(NamedTuple):
    """Where a solver stood, and after which step."""

    point: Point
    step: str


def _step_solver(scene: Scene, stop: Stop) -> Story:
    X, y = training_data(scene)
    model = build(scene, lambda _: stop())
    with recorded_warnings():
        formulated = model.formulate(X, y)
        drawing = _Drawing(scene)
        most = _most_frames(len(X), _MOST_CURVED)
        visited = _visit_all(formulated.problems[0], float(model.tol), stop)
        shown = set(_pick(len(visited), most - 1).tolist())
        frames, gaps = [], []
        for k, (at, certificate) in enumerate(visited):
            gaps.append(certificate.relative_gap)
            if k not in shown or stop():
                continue
            result = Result(at.point, certificate, Status.MAX_ITER, k, 0.0, "")
            model.adopt(formulated, [result])
            frames.append(_solver_frame(drawing, model, k, at.step, certificate))
        fitted = build(scene, lambda _: stop()).fit(X, y)
    end = len(visited)
    frames.append(_solver_frame(drawing, fitted, end, "The model that fit returns", None))
    gaps.append(fitted.certificate_.relative_gap)
    known = {k: max(gap, _LEAST_GAP) for k, gap in enumerate(gaps) if math.isfinite(gap)}
    tol = float(fitted.tol)
    curves = [
        _curve("relative gap of each step", known.keys(), known.values(), "line"),
        _curve("tol", [0, end], [tol, tol], "bound"),
    ]
    return Story(
        _name_solver(formulated.problems[0], scene),
        frames,
        curves,
        _axes("step", "relative gap", y_log=True),
        message=_conclude(fitted),
        thinned=_say_thinned(len(frames), end + 1, "steps"),
    )


def _name_solver(problem: Any, scene: Scene) -> str:
    if isinstance(problem.features, LinearFeatures):
        return "Dual coordinate descent, round by round, then Newton's method"
    return f"Working sets of {_block_size(problem)} points, round by round, then larger ones"


def _block_size(problem: Any) -> int:
    return max(2, len(problem) // _BLOCKS)


def _solver_frame(
    drawing: _Drawing, model: Any, k: int, step: str, certificate: Certificate | None
) -> Frame:
    certificate = certificate or model.certificate_
    primal, dual, gap = certificate.primal, certificate.dual, certificate.relative_gap
    if math.isfinite(gap):
        said = f"primal {primal:.6g}, dual {dual:.6g}, relative gap {max(gap, 0.0):.2g}"
    else:
        said, dual, gap = f"primal {primal:.6g}, and nothing is proved yet", None, None
    frame = drawing.frame(model, k, f"{step}: {said}.")
    return {**frame, "primal": primal, "dual": dual, "relative_gap": gap}


def _conclude(model: Any) -> str:
    certificate, gap = model.certificate_, model.certificate_.relative_gap
    if certificate.holds(model.tol):
        how = "to rounding" if gap < 1e-12 else f"to a relative gap of {gap:.2g}"
        return f"The model that fit returns is proved to be optimal {how}."
    if certificate.caveat:
        return f"Nothing is proved: {certificate.caveat}."
    return f"The fit ended early: {model.status_.value}."


def _visit_all(problem: Any, tol: float, stop: Stop) -> list[tuple[_Visited, Certificate]]:
    """Return where solvers stood on the way to a gap, each point with its certificate."""
    found: list[tuple[_Visited, Certificate]] = []
    linear = isinstance(problem.features, LinearFeatures)
    for way in (_descend, _newton_on) if linear else (_decompose, _decompose_on):
        start = found[-1][0].point if found else Point()
        for visited in way(problem, start, tol):
            certificate, beta = certify_with_duals(problem, visited.point)
            visited = visited._replace(point=replace(visited.point, beta=beta))
            found.append((visited, certificate))
            if stop() or certificate.relative_gap <= tol:
                return found
    return found


def _descend(problem: Any, start: Point, tol: float) -> Iterator[_Visited]:
    # A round ends as soon as no row is worse than before, mostly after a single sweep.
    steps = DualCD(first=1e6, factor=1.0).steps(problem, start)
    for k, (at, _) in enumerate(islice(steps, _START_ROUNDS)):
        point = Point(at.w.copy(), float(np.ravel(at.b)[0]), at.beta.copy())
        yield _Visited(point, f"Coordinate descent, round {k}" if k else "Start")


def _newton_on(problem: Any, start: Point, tol: float) -> Iterator[_Visited]:
    for k, at in enumerate(islice(Newton().iterates(problem, start), _MORE_ROUNDS)):
        yield _Visited(Point(at.w.copy(), at.b, at.beta.copy()), f"Newton's method, step {k + 1}")


def _decompose(problem: Any, start: Point, tol: float) -> Iterator[_Visited]:
    # Active-set steps would solve a small problem at once.
    size = _block_size(problem)
    pace = replace(ON_MATRIX, first_fresh=size, fresh=size, rounds=1)
    method = Decomposition(0.1 * tol, precise=True, most_free=0, pace=pace)
    for k, at in enumerate(islice(method.iterates(problem, start), _START_ROUNDS)):
        yield _Visited(Point(at.w, at.b, at.beta), f"Round {k}" if k else "Start")


def _decompose_on(problem: Any, start: Point, tol: float) -> Iterator[_Visited]:
    method = Decomposition(0.1 * tol, precise=True)
    start = Point(None, 0.0, start.beta)
    for k, at in enumerate(islice(method.iterates(problem, start), _MORE_ROUNDS)):
        if k:
            yield _Visited(Point(at.w, at.b, at.beta), f"Larger working sets, check {k}")


# ------------------------------------------------------------------- along C


_ALONG_C, _ALONG_C_CURVED = 60, 40  # costs on a log scale, and as many breakpoints
_SINGLE, _SINGLE_MOST = (
    25,
    100.0,
)  # costs of a kernel machine without an exact path: each takes time
_DUALS = 40  # that are drawn
_BETWEEN = 50  # places on the line α = C, for log scales
_FAR = 200.0  # times the upper quartile of the breakpoints: beyond that the scale of C is a log one


def _follow_path(scene: Scene, stop: Stop) -> Story:
    X, y = training_data(scene)
    C = float(build(scene).C)
    first, last = SLIDERS["C"].low, SLIDERS["C"].high
    problems = build(scene, C=1.0).formulate(X, y).problems
    exact, reason = solve_exactly(problems, "auto", last)
    breaks = exact.path.breakpoints if exact is not None else np.zeros(0)
    hard = _hard_end(exact)
    if len(breaks):
        first = max(first, min(0.5 * float(breaks[0]), C))
        last = min(last, max(1.5 * (hard if hard else float(breaks[-1])), 1.1 * C))
    count = _ALONG_C if scene.choice.model == "LinearSVC" else _ALONG_C_CURVED
    if exact is None and scene.choice.model != "LinearSVC":
        count, last = _SINGLE, min(last, max(_SINGLE_MOST, 10 * C))
    Cs = _choose_costs(C, (first, max(last, 10 * first)), breaks, count)
    frames = _path_frames(scene, Cs, exact, stop)
    curves = _dual_curves(exact, Cs, C) if exact is not None else []
    log = not len(breaks) or Cs[-1] > _FAR * float(np.quantile(breaks, 0.75))
    return Story(
        f"{MODELS[scene.choice.model].title} along C",
        frames,
        curves,
        _axes("C", "α", x_log=bool(log)),
        start=C,
        message=_describe_ends(exact, hard, reason),
    )


def _hard_end(exact: ExactSolutions | None) -> float | None:
    """Return the C from which on the soft margin is the hard margin, if the path shows it."""
    if exact is None or not exact.path.hard or not len(exact.path.breakpoints):
        return None
    return float(exact.path.breakpoints[-1])


def _choose_costs(C: float, ends: tuple[float, float], breaks: Floats, count: int) -> Floats:
    """Return costs on a log scale with breakpoints among them, and the one of the scene."""
    inside = breaks[(breaks >= ends[0]) & (breaks <= ends[1])]
    some = inside[_pick(len(inside), count)] if len(inside) else inside
    return np.unique(np.concatenate([np.geomspace(*ends, count), some, [C]]))


def _path_frames(scene: Scene, Cs: Floats, exact: ExactSolutions | None, stop: Stop) -> list[Frame]:
    X, y = training_data(scene)
    most = _most_frames(len(X), len(Cs))
    start = float(build(scene).C)
    Cs = np.unique(np.append(Cs[_pick(len(Cs), most - 1)], start))
    drawing = _Drawing(scene)
    frames: list[Frame] = []
    with recorded_warnings():
        model = build(scene, C=1.0)
        steps = exact.steps(Cs, float(model.tol)) if exact is not None else []
        rest = Cs[len(steps) :]
        for step in steps:
            if stop():
                return frames
            model = build(scene, C=step.C)
            model.adopt(model.formulate(X, y), [step.result])
            frames.append(_path_frame(drawing, model, step.C))
        if len(rest) and not stop():
            machine = build(scene, lambda _: stop())
            path = regularization_path(X, y, machine, Cs=rest, exact=False, ends=False)
            frames += [_path_frame(drawing, path.model(C), C) for C in rest.tolist()]
    return frames


def _path_frame(drawing: _Drawing, model: Any, C: float) -> Frame:
    counts = [int((np.asarray(model.support_kind_) == kind).sum()) for kind in _KINDS]
    said = ", ".join(f"{count} {kind}" for count, kind in zip(counts, _PLACES, strict=True))
    margin = f"margin {float(np.ravel(model.margin_)[0]):.4g}"
    return drawing.frame(model, C, f"C = {C:.4g}: {margin}; support vectors: {said}.")


_KINDS = ("margin", "inside", "wrong side")
_PLACES = ("on the margin", "inside it", "on the wrong side")


def _dual_curves(exact: ExactSolutions, Cs: Floats, C: float) -> list[dict[str, Any]]:
    """Return α of some rows against C, by the ends of its straight pieces."""
    path = exact.path
    end = min(float(Cs[-1]), path.end)
    starts = np.array([segment.start for segment in path.segments])
    known = [segment for segment in path.segments if segment.start < end]
    if not known or end <= Cs[0]:
        return []
    at_C, at_end = path.at(min(C, end))[0], path.at(end)[0]
    bound = min(C, end) * exact.hinge.weight
    free = (at_C > 1e-9 * bound) & (at_C < (1 - 1e-9) * bound)
    order = np.lexsort((-at_end, ~free))
    slopes = np.array([segment.slope for segment in known])
    between = np.geomspace(Cs[0], end, _BETWEEN)
    curves = [_curve("α = C", between, between, "bound")]
    for row in order[:_DUALS].tolist():
        turns = 1 + np.flatnonzero(np.diff(slopes[:, row]) != 0)
        places = np.unique(np.concatenate([starts[turns], between[[0, -1]]]))
        places = places[(places >= between[0]) & (places <= between[-1])]
        alpha = [float(path.at(at)[0][row]) for at in places.tolist()]
        if max(alpha) > 0:
            curves.append(_curve(f"point {row + 1}", places, alpha, "dual"))
    return curves


def _describe_ends(exact: ExactSolutions | None, hard: float | None, reason: str) -> str:
    if exact is None:
        return f"No exact path, so only single C were solved: {reason}."
    breaks = exact.path.breakpoints
    if not len(breaks):
        return "α is proportional to C throughout: there is no breakpoint."
    said = [f"Between {len(breaks):,} breakpoints, α is linear in C."]
    if len(breaks) == 1:
        said = ["There is one breakpoint, on either side of which α is linear in C."]
    said.append(f"Up to C = {breaks[0]:.3g}, α/C is constant.")
    if hard is not None:
        said.append(f"From C = {hard:.3g} on, the soft margin is the hard margin.")
    elif exact.path.end < SLIDERS["C"].high:
        said.append(f"Beyond C = {exact.path.end:.3g} single C were solved: {reason}.")
    else:
        said.append(f"Up to C = {exact.path.end:,.0f}, some points stay inside the margin.")
    return " ".join(said)
