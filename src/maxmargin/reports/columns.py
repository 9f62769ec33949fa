"""Columns that matter: weights of a linear machine, or what is lost when a column is shuffled.

Weights are per standard deviation of a column as the machine sees it, so that they compare. Of any
other model a column matters as much as its metric loses when the column's values are dealt out anew
among the rows: that treats all models alike, and pipelines in the columns that the user knows.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.utils import _safe_indexing

from maxmargin._typing import Floats
from maxmargin.html import Html, bullets, joined, table, tag, visible
from maxmargin.inspection.model_view import raw_scores
from maxmargin.reports.subject import NAME, Subject

SHOWN = 5  # columns beside a row
_LISTED = 20  # columns in a table of importances
_REPEATS = 5  # shuffles of a column
_ROWS, _TRIED = 1000, 60  # rows dealt among, and columns tried, at most
_FEWEST = 200  # rows dealt among, if the model is slow
_OPERATIONS = 5e9  # of all shuffles
_COST = 10_000  # operations for a row, if unknown: of an ensemble, a network, neighbours
_CLASSES = 6  # weights of so many classes have columns of their own
_VALUE = 24  # characters of a value


class Importance(NamedTuple):
    """What shuffling a column costs: the metric's loss in each repeat, and how far scores move.

    That is the mean change of a score by the standard deviation of the scores.
    """

    column: int
    losses: Floats
    change: float


class Importances(NamedTuple):
    """Columns in order of importance, by how many rows of which part, by which metric."""

    found: list[Importance]
    rows: int
    part: str
    metric: str

    def first(self, count: int) -> list[int]:
        """Return the columns that move the scores most."""
        order = sorted(self.found, key=lambda one: -one.change)
        return [one.column for one in order[:count]]


def importances(subject: Subject, metric: str) -> Importances | None:
    """Return what shuffling each column costs; None if there are no columns to shuffle."""
    part = subject.parts[0]
    X = part.X
    foreign = hasattr(X, "columns") and not hasattr(X, "iloc")  # another frame than pandas'
    if subject.guesses or not subject.names or foreign or _is_pairwise(subject):
        return None
    some = np.sort(np.random.default_rng(0).permutation(len(part.rows))[: _affordable(subject)])
    rows, y = _safe_indexing(X, some), None if part.y is None else part.y[some]
    judge = partial(_judged, subject, y, metric)
    scores, figure = judge(rows)
    spread = float(scores.std()) or 1.0
    found = []
    for j in _candidates(rows, scores, len(subject.names)):
        again = [judge(_dealt(rows, j, seed)) for seed in range(_REPEATS)]
        losses = np.array([figure - value for _, value in again])
        change = np.mean([np.abs(moved - scores).mean() for moved, _ in again]) / spread
        found.append(Importance(int(j), losses, float(change)))
    found.sort(key=lambda one: (-one.losses.mean(), -one.change))
    return Importances(found, len(some), part.name, metric)


def columns(subject: Subject, found: Importances | None) -> Html:
    """Return the section on columns."""
    if subject.guesses:
        name = type(subject.machine).__name__
        return tag("p", f"None: {name} looks at no column, whatever is in them.")
    weights = _weights(subject)
    if weights is not None:
        return weights
    if found is None:
        return tag("p", "The rows have no columns that could be shuffled one at a time.")
    return _losses(subject, found)


# ------------------------------------------------------------ weights


def _weights(subject: Subject) -> Html | None:
    """Return the weights of a linear machine by column, per standard deviation; None of others.

    Nor are weights of components, which are made of all columns, anything that a reader knows.
    """
    machine = subject.machine
    if not hasattr(machine, "coef_") or subject.view.count_operations():
        return None
    coef = np.atleast_2d(_dense(machine.coef_))
    classes = len(subject.classes)
    seen = subject.view.transform(subject.train.X)
    if len(coef) not in (1, classes) or np.ndim(seen) != 2 or seen.shape[1] != coef.shape[1]:
        return None
    weights = coef * _spreads(seen)
    names = inner_names(subject, coef.shape[1])
    strength = np.abs(weights).max(axis=0)
    order = np.argsort(-strength, kind="stable")[:_LISTED]
    heads, pick = _of_classes(subject, weights)
    lines = [
        [visible(names[j], NAME), *pick(j), _bar(strength[j] / (strength.max() or 1.0))]
        for j in order
        if strength[j] > 0
    ]
    used = int((strength > 0).sum())
    caption = (
        f"The {len(lines)} largest of {used} weights that are not 0." if len(lines) < used else ""
    )
    return joined(
        [bullets(_reading(subject, len(coef))), table(["column", *heads, ""], lines, caption)]
    )


def _reading(subject: Subject, planes: int) -> list[str]:
    """Return how weights are to be read."""
    said = ["Weights are per standard deviation of their column, so that they can be compared."]
    if subject.classifies and planes == 1:
        one, other = (visible(label, NAME) for label in subject.classes[:2])
        said.append(f"A positive weight speaks for {other!r}, a negative one for {one!r}.")
    said.append(
        "Columns that go together share their weight: a small weight does not mean that a column "
        "says nothing."
    )
    return said


def _of_classes(subject: Subject, weights: Floats) -> tuple[list[str], Callable[[int], list[str]]]:
    """Return heads, and what stands below them for a column."""
    if len(weights) == 1:
        return ["weight"], lambda j: [f"{weights[0, j]:+.4g}"]
    names = [visible(label, NAME) for label in subject.classes]
    if len(weights) <= _CLASSES:
        heads = [f"for {name}" for name in names]
        return heads, lambda j: [f"{weight:+.4g}" for weight in weights[:, j]]

    def strongest(j: int) -> list[str]:
        k = int(np.abs(weights[:, j]).argmax())
        return [f"{weights[k, j]:+.4g}", names[k]]

    return ["largest weight", "for"], strongest


def inner_names(subject: Subject, width: int) -> list[str]:
    """Return the names of the columns that the machine sees."""
    names: Any = np.asarray(subject.names, dtype=object)
    for step in subject.view.steps:
        try:
            names = step.get_feature_names_out(names)
        except (AttributeError, TypeError, ValueError):
            names = _names_out(step)
        if names is None:
            break
    if names is None or len(names) != width:
        return [f"prepared column {j + 1}" for j in range(width)]
    return [str(name) for name in names]


def _names_out(step: Any) -> Any:
    """Return a step's own names of its columns, where it was fitted to a frame; or None."""
    try:
        return step.get_feature_names_out()
    except (AttributeError, TypeError, ValueError):
        return None


def _spreads(X: Any) -> Any:
    """Return the standard deviation of each column."""
    if not sp.issparse(X):
        return np.asarray(X, dtype=np.float64).std(axis=0)
    rows = sp.csr_array(X, dtype=np.float64)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    square = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
    return np.sqrt(np.maximum(square - mean**2, 0.0))


def _dense(values: Any) -> Any:
    return values.toarray() if sp.issparse(values) else np.asarray(values)


# ------------------------------------------------------------ losses


def _losses(subject: Subject, found: Importances) -> Html:
    """Return what shuffling each column costs, the dearest first."""
    said = (
        f"How much {found.metric} is lost when the values of a column are shuffled among the rows: "
        f"mean and standard deviation of {_REPEATS} shuffles of {found.rows:,} {found.part} rows; "
        "beside it, how far the model's scores move, in standard deviations of the scores. Columns "
        "that say the same stand in for each other, so that each may seem to matter little."
    )
    order, keys = found.found, [one.losses.mean() for one in found.found]
    noise = all(one.losses.mean() <= 2 * one.losses.std() for one in found.found)
    if noise:
        said += " No single column costs more than chance would: the order is that of the scores."
        order = sorted(found.found, key=lambda one: -one.change)
        keys = [one.change for one in order]
    show = "{:.1%}".format if subject.classifies else "{:.3g}".format
    lines = []
    for one, key in list(zip(order, keys, strict=True))[:_LISTED]:
        loss = f"{show(one.losses.mean())} ± {show(one.losses.std())}"
        name = visible(subject.names[one.column], NAME)
        lines.append([name, loss, f"{one.change:.2f}", _bar(key / max(keys[0], 1e-12))])
    heads = ["column", f"{found.metric} lost", "scores move", ""]
    return joined([tag("p", said), table(heads, lines, _tried(subject, found, len(lines)))])


def _tried(subject: Subject, found: Importances, shown: int) -> str:
    tried, width = len(found.found), len(subject.names)
    words = f"The {shown} columns that matter most, of {tried}." if shown < tried else ""
    if tried == width:
        return words
    which = "that go most with the scores" if subject.numeric else "that come first"
    return f"{words} Of {width} columns, the {tried} {which} were tried."


def _bar(share: float) -> Html:
    """Return a bar of a length between 0 and 1."""
    return tag("span", class_="bar", style=f"--share: {100 * min(1.0, max(0.0, share)):.1f}%")


def _judged(subject: Subject, y: Any, metric: str, X: Any) -> tuple[Floats, float]:
    """Return the scores of rows, and the metric of the predictions that go with them."""
    if not subject.classifies:
        judge = subject.model.predict if subject.regresses else subject.model.decision_function
        scores = np.asarray(judge(X), dtype=np.float64)
        return scores, float(r2_score(y, scores)) if subject.regresses else float(scores.mean())
    classes = np.asarray(subject.machine.classes_)
    scores = raw_scores(subject.machine, subject.view.transform(X), classes)[0]
    best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    right = classes[best] == y
    if metric != "balanced accuracy":
        return scores, float(right.mean())
    return scores, float(np.mean([right[y == label].mean() for label in np.unique(y)]))


def _affordable(subject: Subject) -> int:
    """Return how many rows can be scored anew for every column in a few seconds."""
    cost = subject.view.count_operations()
    each = _COST if cost is None else max(cost, 1.0)
    shuffles = _REPEATS * min(_TRIED, max(1, len(subject.names)))
    return int(np.clip(_OPERATIONS / (shuffles * each), _FEWEST, _ROWS))


def _is_pairwise(subject: Subject) -> bool:
    return bool(subject.model.__sklearn_tags__().input_tags.pairwise)


def _candidates(rows: Any, scores: Any, width: int) -> npt.NDArray[np.int64]:
    """Return the columns to try: all, or those that go most with a score, by covariance."""
    words = not sp.issparse(rows) and np.asarray(rows).dtype.kind not in "biuf"
    if width <= _TRIED or words:
        return np.arange(min(width, _TRIED))
    centred = np.reshape(scores, (len(scores), -1))
    centred = centred - centred.mean(axis=0)
    table = rows if sp.issparse(rows) else np.nan_to_num(np.asarray(rows, dtype=np.float64))
    together = np.abs(np.asarray(table.T @ centred)).max(axis=1)
    return np.sort(np.argsort(together, kind="stable")[::-1][:_TRIED])


def _dealt(X: Any, column: int, seed: int) -> Any:
    """Return the rows with the values of one column in another order."""
    n = X.shape[0]
    order = np.random.default_rng([column, seed]).permutation(n)
    if hasattr(X, "iloc"):
        X = X.copy()
        X.isetitem(column, X.iloc[order, column].array)  # which keeps categories
        return X
    if sp.issparse(X):
        X = sp.csc_array(X, copy=True)
        entries = slice(X.indptr[column], X.indptr[column + 1])
        X.indices[entries] = order[X.indices[entries]]  # rows move, values stay in their column
        X.has_sorted_indices = False
        return sp.csr_array(X)
    X = np.array(X)
    X[:, column] = X[order, column]
    return X


# ------------------------------------------------------------ beside a row


def values(X: Any, row: int, columns: list[int]) -> list[str]:
    """Return the values of a row in some columns, as text; an object that is no row as itself."""
    one = _safe_indexing(X, np.array([row]))
    if not columns:
        return [visible(next(iter(one)), 2 * _VALUE)]
    if sp.issparse(one):
        one = sp.csr_array(one)[:, columns].toarray()
        return [f"{value:.5g}" for value in one[0]]
    cells = one.iloc[0, columns].tolist() if hasattr(one, "iloc") else np.asarray(one)[0, columns]
    return [_text(value) for value in cells]


def _text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else visible(value, _VALUE)
