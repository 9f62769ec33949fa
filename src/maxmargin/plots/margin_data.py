"""From a fitted model and its data to the data of a picture of its margin."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.plots.margin_machines import Machine, Support, read_machine
from maxmargin.plots.margin_rows import as_table, n_rows
from maxmargin.plots.margin_views import View, along_w, two_features
from maxmargin.plots.style import MOST_POINTS, thinned

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

MOST_SUPPORT = 5_000  # support vectors that thinning keeps


def margin_data(
    estimator: Any,
    X: Any,
    y: Any,
    features: Any,
    at: Any,
    view: str,
    pair: tuple[Any, Any] | None,
    resolution: int,
) -> dict[str, Any]:
    """Return what MarginDisplay is made of."""
    _check_choices(view, features, resolution)
    table = as_table(X)
    if view == "auto":
        view = "margin" if features is None and table.shape[1] > 2 else "data"
    machine = read_machine(estimator, table, pair)
    _check_view(machine, view)
    labels = _labels(machine, table, y)
    signs = (labels == machine.classes[-1]) * 1.0 - (labels == machine.classes[0]) * 1.0
    support = machine.support(table, signs)
    rows, sampled = _rows_drawn(np.flatnonzero(np.isin(labels, machine.classes)), support)
    if view == "margin":
        seen = along_w(machine, table, rows)
    else:
        seen = two_features(machine, table, rows, features, at, resolution)
    kinds, slack = _of_rows(rows, len(labels), support)
    return {
        "points": seen.points,
        "labels": labels[rows],
        "classes": machine.classes.tolist(),
        "rows": rows,
        "kinds": kinds,
        "slack": None if machine.one_class else slack,
        "slack_ends": _slack_ends(seen, signs[rows], slack),
        "weights": seen.weights,
        "intercept": seen.intercept,
        "grid": seen.grid,
        "levels": machine.levels,
        "box": seen.box,
        "axis_labels": seen.labels,
        "title": _title(machine, view),
        "remark": "\n".join([*_slice_words(seen, kinds), *sampled, *_unmarked(machine, support)]),
    }


def _check_choices(view: Any, features: Any, resolution: Any) -> None:
    if view not in ("auto", "data", "margin"):
        raise ValueError(f"view must be 'auto', 'data' or 'margin', got {view!r}")
    if view == "margin" and features is not None:
        raise ValueError(
            f"features={features!r:.60} with view='margin': that view is of all features; take "
            "view='data', or features=None"
        )
    if not isinstance(resolution, int | np.integer) or resolution < 2:
        raise ValueError(
            f"grid_resolution must be a whole number of at least 2, got {resolution!r}"
        )


def _check_view(machine: Machine, view: str) -> None:
    if view == "margin" and not machine.binary:
        names = ", ".join(f"{label!r:.20}" for label in machine.classes.tolist()[:8])
        raise ValueError(
            f"view='margin' is of one plane, and there are {len(machine.classes)} classes: choose "
            f"pair=(a, b) among {names}"
        )
    if view == "data" and machine.precomputed:
        raise ValueError(
            "X holds kernel values (kernel='precomputed'), which have no features to draw: take "
            "view='margin'"
        )


def _labels(machine: Machine, X: Any, y: Any) -> npt.NDArray[Any]:
    """Return the label of each row; outlier detectors say it themselves."""
    if machine.one_class:
        return np.asarray(machine.classes[(machine.scores(X) >= 0).astype(int)])
    if y is None:
        raise ValueError("y is None: the labels of the rows of X are needed")
    labels = np.asarray(y)
    if labels.shape != (n_rows(X),):
        raise ValueError(
            f"y must hold one label for each of the {n_rows(X)} rows of X, got shape {labels.shape}"
        )
    unknown = labels[~np.isin(labels, machine.model.classes_)]
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()[0]!r:.60}, which is not a class of the model; draw the "
            "rows of its own classes"
        )
    return labels


def _rows_drawn(members: Rows, support: Support | None) -> tuple[Rows, list[str]]:
    """Return the rows to draw, and words for what is left out."""
    if not len(members):
        raise ValueError("y has no row of the classes to draw")
    if len(members) <= MOST_POINTS:
        return members, []
    vectors = np.array([], dtype=np.intp) if support is None else support.rows
    kept = vectors[thinned(len(vectors), most=MOST_SUPPORT)]
    rows = members[thinned(len(members), keep=np.searchsorted(members, kept))]
    words = f"{len(rows):,} of {len(members):,} points drawn"
    if len(vectors):
        shown = len(np.intersect1d(vectors, rows))
        words += f", {'all' if shown == len(vectors) else f'{shown:,} of'} {len(vectors):,} support"
        words += " vectors"
    return rows, [words]


def _of_rows(
    rows: Rows, total: int, support: Support | None
) -> tuple[npt.NDArray[np.str_] | None, Floats | None]:
    if support is None:
        return None, None
    kinds, slack = np.full(total, "", dtype="<U10"), np.zeros(total)
    kinds[support.rows], slack[support.rows] = support.kinds, support.slacks
    return kinds[rows], slack[rows]


def _slack_ends(seen: View, signs: Floats, slack: Floats | None) -> Floats | None:
    """Return the foot of each point on f = y, if f on paper is f of the points."""
    if slack is None or seen.weights is None or not seen.true:
        return None
    w = seen.weights
    if not w.any():  # nothing is any nearer to a line that is not there
        return None
    missing = signs * np.maximum(0.0, 1.0 - signs * (seen.points @ w + seen.intercept))
    return np.asarray(seen.points + np.outer(missing / float(w @ w), w))


def _slice_words(seen: View, kinds: npt.NDArray[np.str_] | None) -> list[str]:
    if seen.off is None:
        return [seen.words] if seen.words else []
    off, what = seen.off, "points"
    if kinds is not None:
        off, what = off[kinds != ""], "support vectors"
    return [seen.words, f"points projected; {off.sum():,} of {len(off):,} {what} lie off it"]


def _unmarked(machine: Machine, support: Support | None) -> list[str]:
    if support is None and len(machine.levels) > 1:
        return ["not known to be the rows it was fitted to: no support vectors"]
    return []


def _title(machine: Machine, view: str) -> str:
    name = type(machine.model).__name__
    if view == "margin":
        return f"{name}: distances along w"
    if not machine.binary:
        return f"Regions of {name}"
    return f"Boundary and margin of {name}" if len(machine.levels) > 1 else f"Boundary of {name}"
