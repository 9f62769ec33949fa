"""How a model is found, as frames to step through.

- **perceptron**: the line after each update, and how many updates the mistake bound still allows;
- **solver**: the iterates of a solver, and how its duality gap closes;
- **path**: the machine at every cost C, whose duals are piecewise linear in C.

All of it is replayed from what the library records: traces, iterates of solvers and the exact path.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.errors import recorded_warnings
from maxmargin.geometry import Hyperplane, segment
from maxmargin.inspection import SolverStep, solver_steps, update_rows
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.pictures import (
    KINDS,
    Canvas,
    build,
    describe_certificate,
    describe_rows,
    explain,
    explain_missing,
    is_flat,
    training_data,
    write_support,
)
from maxmargin.studio.scene import Scene

Frame = dict[str, Any]
Stop = Callable[[], bool]

MOST_FRAMES = 400
_MOST_CURVED = 80  # frames with curved lines
_ROW_BUDGET = 100_000  # frames times points
_GRID = (64, 48)  # columns and rows of the grid on which curved lines are found
_ARROW = 0.25  # length of the longest arrow, as a share of the shorter side of the view
_MISTAKE = KINDS.index("mistake")


def step_through(scene: Scene, kind: str, stop: Stop) -> dict[str, Any]:
    """Return the frames of a run; if ``stop()`` says so, those until then."""
    steps = {"perceptron": _step_perceptron, "solver": _step_solver, "path": _follow_path}
    found = Animation(message=_refuse(scene))
    if not found.message:
        try:
            found = steps[kind](scene, stop)
        except (ValueError, ArithmeticError, MemoryError) as refusal:
            found = Animation(message=explain(refusal))
    return {
        "type": "run",
        "kind": kind,
        "title": found.title or MODELS[scene.choice.model].title,
        "frames": list(found.frames),
        "curves": list(found.curves),
        "axes": found.axes,
        "start": _nearest(found.frames, found.start),
        "message": found.message,
    }


class Animation(NamedTuple):
    """What a run shows; ``start`` is the position on the axis of x of the frame to begin with."""

    title: str = ""
    frames: Sequence[Frame] = ()
    curves: Sequence[dict[str, Any]] = ()
    axes: dict[str, Any] | None = None
    start: float = 0.0
    message: str = ""


def _refuse(scene: Scene) -> str:
    """Return why there is nothing to step through, or nothing."""
    count = len(np.unique(scene.labels))
    if MODELS[scene.choice.model].most_classes > 1 and count > 2:
        return f"Only two classes can be stepped through, and these are {count}."
    return explain_missing(scene)


def _axes(x: str, y: str, x_log: bool = False, y_log: bool = False) -> dict[str, Any]:
    return {"x": x, "y": y, "x_log": x_log, "y_log": y_log}


def _curve(name: str, x: Iterable[float], y: Iterable[float], kind: str) -> dict[str, Any]:
    return {"name": name, "x": [float(at) for at in x], "y": [float(at) for at in y], "kind": kind}


def _pick(count: int, most: int) -> Ints:
    """Return at most so many of the numbers 0 … count − 1, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _say_thinned(shown: int, count: int) -> str:
    return "" if shown >= count else f" Of {count:,} steps, {shown:,} are shown."


def _nearest(frames: Sequence[Frame], x: float) -> int:
    """Return the number of the frame at a position, or nearest to it."""
    return int(np.argmin([abs(frame["x"] - x) for frame in frames])) if frames else 0


def _signs(labels: Ints) -> Floats:
    """Return +1 for the larger of two labels, −1 for the other."""
    return np.where(labels == labels.max(), 1.0, -1.0)


def _mark_mistakes(scene: Scene, score: Callable[[Floats], Floats]) -> dict[str, Any]:
    """Return the rows of a frame: mistakes are those with y f ≤ 0."""
    wrong = _signs(scene.labels) * score(scene.points) <= 0
    return {"alpha": [0] * len(wrong), "kind": np.where(wrong, _MISTAKE, 0).tolist()}


# ------------------------------------------------------------------- the perceptron


def _step_perceptron(scene: Scene, stop: Stop) -> Animation:
    model = build(scene, lambda _: stop(), trace=True)
    with recorded_warnings():  # that it did not converge is said below
        model.fit(scene.points, scene.labels)
    bound = float(model.mistake_bound_)
    step = _kernel_updates if hasattr(model, "kernel_") else _linear_updates
    frames, count = step(model, scene, stop)
    return Animation(
        f"{MODELS[scene.choice.model].title}, update by update",
        frames,
        *_count_down(count, bound),
        message=_sum_up(model, scene, bound, count) + _say_thinned(len(frames), count + 1),
    )


def _linear_updates(model: Any, scene: Scene, stop: Stop) -> tuple[list[Frame], int]:
    trace = model.trace_
    w, b, count = trace.coef[:, 0], trace.intercept[:, 0], len(trace.row)
    longest = float(np.hypot(*w.T).max()) or 1.0
    frames, canvas = [], Canvas.of(model, scene, _GRID)
    for k in _pick(count + 1, _most_frames(len(scene.labels)) - 1).tolist():
        if stop():
            break
        plane = Hyperplane(w[k], float(b[k]))
        frame = _frame(k, _describe_update(model, trace.row, k), _line_of(plane, canvas, longest))
        frames.append(frame | {"focus": int(trace.row[k - 1]) if k else None})
    return [*frames, *_last_of_many(canvas, count, longest)], count


def _frame(x: float, caption: str, more: Frame) -> Frame:
    """Return a frame at a place on the axis of the run."""
    return {"x": x, "caption": caption, "focus": None, "arrow": None, "rows": None, **more}


def _line_of(plane: Hyperplane, canvas: Canvas, longest: float) -> Frame:
    """Return what a frame shows of one line."""
    return {
        "lines": canvas.straight(plane),
        "rows": _mark_mistakes(canvas.scene, plane.decision_function),
        "arrow": _draw_arrow(plane, canvas, longest),
        "weights": plane.w.tolist(),
        "intercept": plane.b,
    }


def _last_of_many(canvas: Canvas, count: int, longest: float) -> list[Frame]:
    """Return a frame with the model itself, if it is not the last line."""
    model = canvas.model
    if canvas.name == "AveragedPerceptron":
        plane = Hyperplane(model.coef_[0], float(model.intercept_[0]))
        caption = "The model: the mean of w and b over all visits, not the last line."
        return [_frame(count, caption, _line_of(plane, canvas, longest))]
    if canvas.name == "VotedPerceptron":
        votes = model.decision_function
        lines = canvas.trace(votes(canvas.grid.points()), function=votes)
        caption = "The model: all lines vote, each as often as it was right in a row."
        rows = _mark_mistakes(canvas.scene, votes)
        return [_frame(count, caption, {"lines": lines, "rows": rows})]
    return []


def _draw_arrow(plane: Hyperplane, canvas: Canvas, longest: float) -> list[float] | None:
    """Return an arrow along w from the middle of the line that is seen; None if w = 0.

    Of all arrows of a run, that of the longest w has a fixed length.
    """
    if plane.norm == 0:
        return None
    seen = canvas.window
    ends = segment(plane, seen)
    foot = np.mean(seen[:2] if ends is None else ends, axis=0)
    side = float((seen.high - seen.low).min())
    return [*foot.tolist(), *(foot + _ARROW * side / longest * plane.w).tolist()]


def _describe_update(model: Any, rows: Ints, k: int) -> str:
    if k == 0:
        return "Start: w = 0, so there is no line yet."
    caption = f"Update {k:,}: point {rows[k - 1] + 1:,} was a mistake (y f ≤ {model.margin:g})."
    if not math.isfinite(model.mistake_bound_):
        return caption
    return f"{caption} The bound allows {math.floor(model.mistake_bound_) - k:,} more."


def _count_down(count: int, bound: float) -> tuple[list[Any], dict[str, Any]]:
    """Return the updates made, and those that the bound allows, as curves with their axes."""
    x = [float(k) for k in _pick(count + 1, MOST_FRAMES)]
    made = _curve("updates made", x, x, "line")
    if not math.isfinite(bound):
        return [made], _axes("updates", "updates")
    left = _curve("updates that the bound still allows", x, [bound - k for k in x], "bound")
    return [made, left], _axes("updates", "updates")


def _sum_up(model: Any, scene: Scene, bound: float, count: int) -> str:
    epochs = f"{model.epochs_:,} epoch{'s' * (model.epochs_ != 1)}"
    done = f"{count:,} update{'s' * (count != 1)} in {epochs}."
    if math.isfinite(bound):
        return f"{done} The bound for any order of the points is {math.floor(bound):,}."
    straight = scene.choice.model != "KernelPerceptron"
    if straight and mm.separate(scene.points, scene.labels).separable is False:
        return f"{done} No line separates the classes: there is no bound, and mistakes never cease."
    return f"{done} No bound is known, as nothing was found that separates the classes."


def _most_frames(points: int, most: int = MOST_FRAMES) -> int:
    """Return how many frames a reply has space for, if each tells something about each point."""
    return max(2, min(most, _ROW_BUDGET // max(1, points)))


# ------------------------------------------------------------------- the perceptron with a kernel


def _kernel_updates(model: Any, scene: Scene, stop: Stop) -> tuple[list[Frame], int]:
    kernel, X = model.kernel_, scene.points
    row = update_rows(model, X, scene.labels)
    y, count = _signs(scene.labels), len(row)
    step = model.eta * y[row]
    K = np.asarray(kernel.gram(X, X), dtype=np.float64)
    shown = set(_pick(count + 1, _most_frames(len(y), _MOST_CURVED)).tolist())
    canvas = Canvas.of(model, scene, _GRID)
    products = np.asarray(kernel.gram(canvas.grid.points(), X), dtype=np.float64)
    a, f, b = np.zeros(len(y)), np.zeros(len(y)), 0.0
    frames: list[Frame] = []
    for k in range(count + 1):
        if stop():
            break
        if k:
            i, s = row[k - 1], step[k - 1]
            a[i], f, b = a[i] + s, f + s * K[:, i], b + s
        if k in shown:
            values, size = products @ a + b, np.abs(a) / (np.abs(a).max() or 1.0)
            wrong = np.where(y * (f + b) <= 0, _MISTAKE, 0).tolist()
            more = {
                "lines": [] if is_flat(values) else canvas.trace(values),
                "rows": {"alpha": _shares(size), "kind": wrong},
                "focus": int(row[k - 1]) if k else None,
            }
            frames.append(_frame(k, _describe_update(model, row, k), more))
    return frames, count


def _shares(size: Floats) -> list[float]:
    """Return numbers from 0 to 1, as short as JSON can say them."""
    return [int(s) if s in (0.0, 1.0) else s for s in np.round(size, 3).tolist()]


# ------------------------------------------------------------------- models of a run


def _frame_of(model: Any, scene: Scene, x: float, caption: str) -> Frame:
    """Return the frame of a model."""
    canvas = Canvas.of(model, scene, _GRID)
    rows = describe_rows(model, np.zeros(len(scene.points), dtype=bool))
    more: Frame = {"rows": rows | {"alpha": _shares(np.array(rows["alpha"]))}, "lines": []}
    if scene.choice.model == "SVR":
        more["lines"] = canvas.tube()
    elif len(model.support_) or scene.choice.model == "LinearSVC":  # otherwise w = 0, and no line
        levels = (0.0,) if scene.choice.model == "OneClassSVM" else (0.0, -1.0, 1.0)
        more |= canvas.level_lines(levels, fine=False)
        del more["message"]
    return _frame(x, caption, more)


# ------------------------------------------------------------------- solvers


_LEAST_GAP = 1e-16  # a gap of 0 has no place on a log scale
_STEP = "{0.method}, step {0.number}"


def _step_solver(scene: Scene, stop: Stop) -> Animation:
    X, y = training_data(scene)
    with recorded_warnings():
        steps: list[SolverStep] = []
        for step in solver_steps(build(scene, lambda _: stop()), X, y):
            steps.append(step)
            if stop():
                break
        frames = [
            _solver_frame(scene, steps[k].model(), k, _STEP.format(steps[k]), steps[k].certificate)
            for k in _pick(len(steps), _most_frames(len(X), _MOST_CURVED) - 1).tolist()
            if not stop()
        ]
        fitted = build(scene, lambda _: stop()).fit(X, y)
    end, certificate = len(steps), fitted.certificate_
    frames.append(_solver_frame(scene, fitted, end, "The model that fit returns", certificate))
    gaps = [step.certificate.relative_gap for step in steps] + [certificate.relative_gap]
    known = {k: max(gap, _LEAST_GAP) for k, gap in enumerate(gaps) if math.isfinite(gap)}
    tol = float(fitted.tol)
    curves = [
        _curve("relative gap of each step", known.keys(), known.values(), "line"),
        _curve("tol", [0, end], [tol, tol], "bound"),
    ]
    return Animation(
        f"{MODELS[scene.choice.model].title}: the solver, step by step",
        frames,
        curves,
        _axes("step", "relative gap", y_log=True),
        message=describe_certificate(certificate, tol)["sentence"]
        + _say_thinned(len(frames), end + 1),
    )


def _solver_frame(
    scene: Scene, model: Any, k: int, step: str, certificate: mm.Certificate
) -> Frame:
    primal, dual, gap = certificate.primal, certificate.dual, certificate.relative_gap
    known = math.isfinite(gap)
    proof = f", dual {dual:.6g}, relative gap {max(gap, 0.0):.2g}" if known else ""
    caption = (
        f"{step[0].upper()}{step[1:]}: primal {primal:.6g}{proof or ', and nothing is proved yet'}."
    )
    numbers = {"primal": primal, "dual": dual, "relative_gap": gap} if known else {}
    return {**_frame_of(model, scene, k, caption), "primal": primal, **numbers}


# ------------------------------------------------------------------- along C


_ALONG_C, _ALONG_C_CURVED = 60, 40  # costs on a log scale, and as many breakpoints
_SINGLE, _SINGLE_MOST = 25, 100.0  # costs of a kernel machine without an exact path
_EXACT_ROWS = 300  # up to which all breakpoints are found
_DUALS = 40  # that are drawn
_BETWEEN = 50  # places on the line α = C, for log scales
_STRAIGHT = 1e-7  # change of dα/dC at which a line is drawn as straight
_FAR = 200.0  # times the upper quartile of the breakpoints: beyond that the scale of C is a log one


def _follow_path(scene: Scene, stop: Stop) -> Animation:
    X, y = training_data(scene)
    C, first, last = float(build(scene).C), SLIDERS["C"].low, SLIDERS["C"].high
    with recorded_warnings():
        machine, breaks = build(scene, lambda _: stop()), np.zeros(0)
        known: mm.RegularizationPath | None = None
        if len(X) <= _EXACT_ROWS:
            known = mm.regularization_path(X, y, machine, Cs=[last], ends=False)
            breaks = breaks if known.breakpoints is None else known.breakpoints
        exact = known is not None and known.breakpoints is not None
        if known is not None and len(breaks):
            first = max(first, min(0.5 * float(breaks[0]), C))
            last = min(last, max(1.5 * (known.hard_C or float(breaks[-1])), 1.1 * C))
        count = _ALONG_C if scene.choice.model == "LinearSVC" else _ALONG_C_CURVED
        if not exact and scene.choice.model != "LinearSVC":
            count, last = _SINGLE, min(last, max(_SINGLE_MOST, 10 * C))
        Cs = _choose_costs(C, (first, max(last, 10 * first)), breaks, count)
        Cs = np.union1d(Cs[_pick(len(Cs), _most_frames(len(X), len(Cs)) - 1)], [C])
        if stop():
            return Animation()
        path = mm.regularization_path(X, y, machine, Cs=np.union1d(Cs, breaks), ends=False)
        frames = [_path_frame(scene, path.model(cost), cost) for cost in Cs.tolist() if not stop()]
    log = not len(breaks) or Cs[-1] > _FAR * float(np.quantile(breaks, 0.75))
    return Animation(
        f"{MODELS[scene.choice.model].title} along C",
        frames,
        _dual_curves(path, (float(Cs[0]), float(Cs[-1])), C) if exact else [],
        _axes("C", "α", x_log=bool(log)),
        start=C,
        message=_describe_ends(known or path),
    )


def _choose_costs(C: float, ends: tuple[float, float], breaks: Floats, count: int) -> Floats:
    """Return costs on a log scale with breakpoints among them, and the one of the scene."""
    inside = breaks[(breaks >= ends[0]) & (breaks <= ends[1])]
    some = inside[_pick(len(inside), count)] if len(inside) else inside
    return np.unique(np.concatenate([np.geomspace(*ends, count), some, [C]]))


def _path_frame(scene: Scene, model: Any, C: float) -> Frame:
    margin = f"margin {float(np.ravel(model.margin_)[0]):.4g}"
    caption = f"C = {C:.4g}: {margin}; support vectors: {write_support(model)}."
    return _frame_of(model, scene, C, caption)


def _dual_curves(path: Any, ends: tuple[float, float], C: float) -> list[dict[str, Any]]:
    """Return α of some rows against C, by the ends of its straight pieces."""
    first, end = ends[0], min(ends[1], path.exact_until)
    inside = (path.Cs >= first) & (path.Cs <= end)
    places, alphas = path.Cs[inside], path.alphas[inside]
    if len(places) < 2:
        return []
    at_C = alphas[np.argmin(np.abs(places - C))]
    free = (at_C > 1e-9 * C) & (at_C < (1 - 1e-9) * C)
    slopes = np.diff(alphas, axis=0) / np.diff(places)[:, np.newaxis]
    between = np.geomspace(first, end, _BETWEEN)
    curves = [_curve("α = C", between, between, "bound")]
    for row in np.lexsort((-alphas[-1], ~free))[:_DUALS].tolist():
        turned = np.abs(np.diff(slopes[:, row])) > _STRAIGHT
        kept = np.flatnonzero(np.concatenate([[True], turned, [True]]))
        if alphas[kept, row].max() > 0:
            curves.append(_curve(f"point {row + 1}", places[kept], alphas[kept, row], "dual"))
    return curves


def _describe_ends(path: Any) -> str:
    breaks = path.breakpoints
    if breaks is None:
        return f"No exact path, so only single C were solved: {path.exact_reason}."
    if not len(breaks):
        return "α is proportional to C throughout: there is no breakpoint."
    sentence = f"α is linear in C between breakpoints, of which there are {len(breaks):,}."
    sentence += f" Up to C = {breaks[0]:.3g}, α/C is constant."
    if path.hard_C is not None:
        sentence += f" From C = {path.hard_C:.3g} on, the soft margin is the hard margin."
    elif path.exact_until < SLIDERS["C"].high:
        sentence += f" Beyond C = {path.exact_until:.3g}: {path.exact_reason}."
    return sentence
