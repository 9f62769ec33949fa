"""Tables of columns and of rows: columns that matter, support vectors, rows worth looking at.

How much a column matters is, for a linear machine, its weight per standard deviation of the column
as the machine sees it, so that weights can be compared; for any other model, what its metric loses
when the values of the column are shuffled among the rows. Shuffling treats all models alike, and
refers to the columns that the user knows even in front of a pipeline.

Worth looking at are confident mistakes, large errors and outliers. Rows have the numbers by which
the user knows them.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin._typing import Floats, Ints
from maxmargin.inspection.model_view import Scores, score_rows, take_rows
from maxmargin.reports.certificate import is_proved
from maxmargin.reports.context import NAME, Context
from maxmargin.runtime.html import Html, bullets, joined, table, tag, visible
from maxmargin.validation.sklearn_private import count_rows

COLUMNS_SHOWN = 5  # columns beside a row
_LISTED = 20  # columns in a table of importances
_REPEATS = 5  # shuffles of a column
_ROWS, _MOST_COLUMNS = 1000, 100  # rows among which values are shuffled, and columns, at most
_FEWEST = 200  # such rows, if the model is slow
_OPERATIONS = 5e9  # of all shuffles
_COST = 10_000  # operations for a row, if unknown: of an ensemble, a network, neighbours
_VALUE = 24  # characters of a value
_MISSING = ("NAType", "NaTType")  # of pandas
SUPPORT_VECTORS = 50  # listed
LOOKED_AT = 15  # rows of a kind worth looking at
_ROUNDING = 1e-9  # slack below this is rounding
_KINDS = {  # the most telling first
    "wrong side": "beyond the boundary (slack above 1)",
    "inside": "on their side, but inside the margin",
    "outside": "outliers, or targets outside the tube",
    "on the tube": "exactly on the edge of the tube",
    "above": "targets above the curve of the quantile",
    "below": "targets below the curve of the quantile",
    "on the curve": "exactly on the curve of the quantile, which they determine",
    "margin": "exactly on the edge of the margin, which they determine",
}

Column = tuple[str, list[Any]]  # a head, and the cells below it


class Importances(NamedTuple):
    """What shuffling columns costs, by how many rows of which part, and by which metric.

    ``losses`` of the metric have a row for each column, and a column for each shuffle.
    """

    losses: Floats
    rows: int
    part: str
    metric: str

    @property
    def order(self) -> Ints:
        """The columns, the largest mean loss first."""
        return np.argsort(-self.losses.mean(axis=1), kind="stable")


def importances(context: Context, metric: str) -> Importances | None:
    """Return what shuffling each column costs; None if there are no columns, or too many."""
    part, width = context.parts[0], len(context.names)
    foreign = hasattr(part.X, "columns") and not hasattr(part.X, "iloc")  # not pandas'
    if context.guesses or foreign or context.pairwise or sp.issparse(part.X):
        return None
    if not 0 < width <= _MOST_COLUMNS:
        return None
    cost = context.view.count_operations()
    affordable = _OPERATIONS / (_REPEATS * width * (_COST if cost is None else max(cost, 1.0)))
    shuffled = np.random.default_rng(0).permutation(len(part.rows))
    some = np.sort(shuffled[: int(np.clip(affordable, _FEWEST, _ROWS))])
    rows, y = take_rows(part.X, some), None if part.y is None else part.y[some]
    scorer: Any = "r2" if context.regresses else metric.replace(" ", "_")
    if not (context.classifies or context.regresses):
        scorer = _mean_score
    found = permutation_importance(
        context.model, rows, y, scoring=scorer, n_repeats=_REPEATS, random_state=0
    )
    return Importances(found.importances, len(some), part.name, metric)


def _mean_score(model: Any, X: Any, _: Any) -> float:
    return float(np.mean(model.decision_function(X)))


def columns(context: Context, found: Importances | None) -> Html:
    """Return the section on columns."""
    if context.guesses:
        return tag("p", f"None: {type(context.machine).__name__} ignores all columns.")
    weights = _weight_table(context)
    if weights is not None:
        return weights
    if found is None:
        return tag(
            "p", "The rows have no columns that could be shuffled one at a time, or too many."
        )
    return _importance_table(context, found)


def _weight_table(context: Context) -> Html | None:
    """Return the weights of a linear machine by column, per standard deviation; None for others.

    Weights of components, which are made of all columns, would mean nothing to a reader.
    """
    machine = context.machine
    if not hasattr(machine, "coef_") or context.view.count_operations():
        return None
    coef = machine.coef_
    coef = np.atleast_2d(coef.toarray() if sp.issparse(coef) else coef)
    classes = len(context.classes)
    seen = context.view.transform(context.train.X)
    if len(coef) not in (1, classes) or np.ndim(seen) != 2 or seen.shape[1] != coef.shape[1]:
        return None
    weights = coef * np.sqrt(StandardScaler(with_mean=False).fit(seen).var_)
    names = inner_names(context, coef.shape[1])
    strength = np.abs(weights).max(axis=0)
    used = int((strength > 0).sum())
    order = np.argsort(-strength, kind="stable")[: min(_LISTED, used)]
    shown: list[Column] = [("column", [visible(names[j], NAME) for j in order])]
    labels = [visible(label, NAME) for label in context.classes]
    best = np.abs(weights[:, order]).argmax(axis=0)
    head = "weight" if len(weights) == 1 else "largest weight"
    shown.append((head, [f"{weight:+.4g}" for weight in weights[best, order]]))
    if len(weights) > 1:
        shown.append(("for", [labels[k] for k in best]))
    shown.append(("", [_bar(strength[j] / strength.max()) for j in order]))
    messages = ["Weights are per standard deviation of their column, so that they can be compared."]
    if context.classifies and len(weights) == 1:
        messages.append(
            f"A positive weight speaks for {labels[1]!r}, a negative one for {labels[0]!r}."
        )
    messages.append(
        "Correlated columns share their weight: a small weight does not mean that a column is "
        "irrelevant."
    )
    caption = f"The {len(order)} largest of {used} nonzero weights." if len(order) < used else ""
    return joined([bullets(messages), _table(shown, caption)])


def _table(columns: list[Column], caption: str) -> Html:
    heads, cells = zip(*columns, strict=True)
    return table(heads, zip(*cells, strict=True), caption)


def inner_names(context: Context, width: int) -> list[str]:
    """Return the names of the columns that the machine sees."""
    names: Any = context.names
    if context.view.steps:
        steps = make_pipeline(*context.view.steps)
        names = ()
        with suppress(AttributeError, TypeError, ValueError):
            names = steps.get_feature_names_out(np.asarray(context.names, dtype=object))
    if len(names) != width:
        return [f"prepared column {j + 1}" for j in range(width)]
    return [str(name) for name in names]


def _importance_table(context: Context, found: Importances) -> Html:
    """Return a table of what shuffling each column costs, the largest loss first."""
    message = (
        f"How much {found.metric} is lost when the values of a column are shuffled among the rows: "
        f"mean and standard deviation of {_REPEATS} shuffles of {found.rows:,} {found.part} rows. "
        "Columns with the same information stand in for each other, so each may seem to matter "
        "little."
    )
    means, deviations = found.losses.mean(axis=1), found.losses.std(axis=1)
    if (means <= 2 * deviations).all():
        message += " No single column matters more than chance would explain."
    largest = max(1e-12, float(means.max()))
    show = "{:.1%}".format if context.classifies else "{:.3g}".format
    lines = [
        [
            visible(context.names[k], NAME),
            f"{show(means[k])} ± {show(deviations[k])}",
            _bar(means[k] / largest),
        ]
        for k in found.order[:_LISTED]
    ]
    caption = f"The {len(lines)} columns that matter most." if len(lines) < len(means) else ""
    return joined(
        [tag("p", message), table(["column", f"{found.metric} lost", ""], lines, caption)]
    )


def _bar(share: float) -> Html:
    """Return a bar of a length between 0 and 1."""
    return tag("span", class_="bar", style=f"--share: {100 * min(1.0, max(0.0, share)):.1f}%")


def _describe_numbers(context: Context) -> str:
    """Return what the numbers of rows are."""
    if np.array_equal(context.numbers, np.arange(len(context.numbers))):
        return "rows are counted from 0"
    name = context.wording.row
    return "rows have the data's own numbers" if name == "row" else f"rows are named by {name}"


def support(context: Context) -> Html:
    """Return how many support vectors of which kind there are, and a table of some."""
    machine = context.machine
    rows = getattr(machine, "support_", None)
    if rows is None:
        return tag("p", f"{type(machine).__name__} keeps no support vectors.")
    if not len(rows):
        return tag("p", "There are none: all rows get the same prediction.")
    by_row = hasattr(machine, "alpha_")
    alpha = _largest(machine.alpha_)[rows] if by_row else _largest(abs(machine.dual_coef_))
    slack = _largest(machine.slack_)[rows] if hasattr(machine, "slack_") else np.zeros(len(rows))
    kinds = _kinds(machine)
    order = np.lexsort((np.arange(len(rows)), -alpha, -slack))[:SUPPORT_VECTORS]
    counts = {kind: np.count_nonzero(kinds == kind) for kind in _KINDS}
    listed = (f"{n} × {kind}: {_KINDS[kind]}." for kind, n in counts.items() if n)
    if context.view.is_training(context.X):
        shown = _support_table(context, np.asarray(rows), order, kinds, slack, alpha)
    else:
        shown = tag("p", "X is not what the model was fitted to, so they are not listed.")
    return joined([tag("p", _describe_support(context, len(rows))), bullets(listed), shown])


def _describe_support(context: Context, count: int) -> str:
    """Return how many there are, and what they mean: only at the optimum do they decide alone."""
    machine = context.machine
    if hasattr(machine, "mistake_bound_"):
        return f"{count} rows were corrected for; together they make up the boundary."
    total = context.view.count_training_rows()
    share = count / max(1, count_rows(context.X) if total is None else total)
    message = f"{count} support vectors, {share:.1%} of the training rows."
    if not hasattr(machine, "certificate_"):
        return message
    if not is_proved(machine):
        return (
            f"{message} It is not proved that these are the right ones: their kinds and α are "
            "those at the moment the solver stopped, and not exact."
        )
    if hasattr(machine, "nu"):  # a share of all rows
        return message
    return f"{message} Fitted in the same way to these rows alone, the model would be the same."


def _support_table(
    context: Context, rows: Any, order: Any, kinds: Any, slack: Floats, alpha: Floats
) -> Html:
    chosen = rows[order]
    y = None if context.y is None else np.asarray(context.y)[chosen]
    inner = context.view.transform(take_rows(context.X, chosen))
    shown = _score_columns(context, y, score_rows(context.machine, inner, y))
    columns: list[Column] = [
        (context.wording.row, [visible(n, NAME) for n in context.numbers[chosen]]),
        # The score of a classifier is negative if its prediction is wrong.
        *(shown[::2] if context.classifies else shown),
    ]
    if kinds is not None:
        columns.append(("kind", kinds[order].tolist()))
    columns.append(("α", [f"{value:.4g}" for value in alpha[order]]))
    if slack.any():
        slacks = [f"{value:.4g}" if value > _ROUNDING else "0" for value in slack[order]]
        columns.append(("slack ξ", slacks))
    order_of = "Largest slack first, then largest α" if slack.any() else "Largest α first"
    caption = f"{order_of}; {_describe_numbers(context)}."
    if len(order) < len(rows):
        caption = f"{len(order)} of {len(rows)}. {caption}"
    if np.ndim(getattr(context.machine, "alpha_", 0)) == 2:
        caption += " Of several problems, each row's largest α and slack, and its worst kind."
    return _table(columns, caption)


def _score_columns(context: Context, y: Any, scores: Scores) -> list[Column]:
    """Return columns of the targets, the predictions and the scores of rows."""
    values = (scores.unit, [f"{value:.4g}" for value in scores.values])
    if not (context.regresses or context.classifies):
        return [values]
    head = "target" if context.regresses else context.wording.label
    true, predicted = (
        [f"{value:.5g}" if context.regresses else visible(value, NAME) for value in each]
        for each in (y, scores.predicted)
    )
    return [(head, true), ("predicted", predicted), values]


def _largest(values: Any) -> Floats:
    """Return the largest value of each row, of several problems if there are any."""
    dense = values.toarray() if sp.issparse(values) else np.atleast_2d(values)
    return np.asarray(dense.max(axis=0), dtype=np.float64)


def _kinds(machine: Any) -> Any:
    """Return the worst kind of each support vector, or None if it has none."""
    if not hasattr(machine, "support_kind_"):
        return None
    ranks = [*_KINDS, ""]
    found = np.atleast_2d(machine.support_kind_)
    return np.array(ranks)[np.vectorize(ranks.index)(found).min(axis=0)]


def notable_rows(context: Context, columns: list[int]) -> Html:
    """Return a table of the rows worth looking at, with the values of some columns."""
    part = context.parts[0]
    right, values = part.scores.right, np.nan_to_num(part.scores.values, nan=-np.inf)
    wrong, order = ~right, np.argsort(values, kind="stable")
    if context.regresses:
        wrong, order = right, np.argsort(-np.abs(values), kind="stable")
    chosen = order[wrong[order]][:LOOKED_AT]
    if not len(chosen):
        nothing = "all are right" if context.classifies else "no outliers"
        return tag("p", f"None among {len(right)} {part.name} rows: {nothing}.")
    if context.guesses:
        return tag(
            "p", f"{wrong.sum()} of {len(right)} are wrong; the model treats all rows alike."
        )
    caption = f"{len(chosen)} of {wrong.sum()} outliers, the farthest first"
    if context.regresses:
        caption = "The largest errors"
    elif context.classifies:
        caption = f"{len(chosen)} of {wrong.sum()} mistakes, the farthest on the wrong side first"
    caption += f"; {part.sampled or f'{part.name} rows'}; {_describe_numbers(context)}."
    message = "Are their labels right?" if context.classifies else ""
    if 0 < len(columns) < len(context.names):
        message += f" Shown are the {len(columns)} columns that matter most."
    y = None if part.y is None else part.y[chosen]
    some = replace(
        part.scores, predicted=part.scores.predicted[chosen], values=part.scores.values[chosen]
    )
    heads = [visible(context.names[j], NAME) for j in columns] or ["value"]
    cells = [row_values(part.X, int(k), columns) for k in chosen]
    shown = [
        (context.wording.row, [visible(n, NAME) for n in part.numbers[chosen]]),
        *_score_columns(context, y, some),
        *zip(heads, map(list, zip(*cells, strict=True)), strict=True),
    ]
    return joined([tag("p", message) if message else "", _table(shown, caption)])


def row_values(X: Any, row: int, columns: list[int]) -> list[str]:
    """Return the values of a row in some columns, as text; an object that is no row as itself."""
    one = take_rows(X, np.array([row]))
    if not columns:
        return [visible(next(iter(one)), 2 * _VALUE)]
    if sp.issparse(one):
        one = one.toarray()
    cells = one.iloc[0, columns].tolist() if hasattr(one, "iloc") else np.asarray(one)[0, columns]
    return [_shown(value) for value in cells]


def _shown(value: Any) -> str:
    number = isinstance(value, float | np.floating)
    if value is None or (number and np.isnan(value)) or type(value).__name__ in _MISSING:
        return "missing"
    return f"{value:.5g}" if number else visible(value, _VALUE)
