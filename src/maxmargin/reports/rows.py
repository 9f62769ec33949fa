"""Single rows: those that hold the boundary, and those worth looking at.

Support vectors have a kind and a force; worth looking at are confident mistakes, doubtful answers,
large errors and outliers. Rows have the numbers by which the user knows them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from maxmargin._typing import Floats
from maxmargin.html import Html, bullets, joined, table, tag, visible
from maxmargin.inspection.model_view import score_rows
from maxmargin.reports.columns import values
from maxmargin.reports.proof import proved
from maxmargin.reports.subject import NAME, ScoredRows, Subject

SHOWN = 50  # support vectors
LOOKED_AT = 15  # rows of a kind worth looking at
_ROUNDING = 1e-9  # slack below this is none
_KINDS = {  # the most telling first
    "wrong side": "beyond the boundary (slack above 1)",
    "inside": "on their side, but inside the margin",
    "outside": "beyond what costs nothing: outliers, or targets outside of the tube",
    "on the tube": "exactly as far off as costs nothing",
    "margin": "exactly on the edge of the margin: they say where it runs",
}


_FROM_0 = "rows are counted from 0"


def _counted(subject: Subject) -> str:
    """Return what the numbers of rows are."""
    if np.array_equal(subject.numbers, np.arange(len(subject.numbers))):
        return _FROM_0
    name = subject.wording.row
    return "rows have the data's own numbers" if name == "row" else f"rows go by their {name}"


def _shown(numbers: Any) -> list[str]:
    return [visible(number, NAME) for number in numbers]


def support(subject: Subject) -> Html:
    """Return how many support vectors of which kind there are, and a table of some."""
    machine = subject.machine
    rows = getattr(machine, "support_", None)
    if rows is None and subject.guesses:
        return tag("p", "None: no row holds a boundary, since there is no boundary.")
    if rows is None:
        words = f"{type(machine).__name__} keeps no support vectors: there are none to show."
        return tag("p", words)
    if not len(rows):
        return tag("p", "There are none: all rows get the same answer.")
    kinds, slack, alpha = _kinds(machine), _slacks(machine), _alphas(machine)
    order = np.lexsort((np.arange(len(rows)), -alpha, -slack))[:SHOWN]
    return joined(
        [
            tag("p", _said(subject, len(rows))),
            bullets(_counts(kinds)),
            _table(subject, np.asarray(rows), order, kinds, slack, alpha),
        ]
    )


def _said(subject: Subject, count: int) -> str:
    """Return how many there are, and what they mean: only at the optimum do they decide alone."""
    machine = subject.machine
    if hasattr(machine, "mistake_bound_"):
        return f"{count} rows were corrected for, and make up the boundary."
    total = subject.view.count_training_rows()
    share = count / max(1, _num_samples(subject.X) if total is None else total)
    words = f"{count} support vectors, {share:.1%} of the training rows."
    if not hasattr(machine, "certificate_"):
        return words
    if not proved(machine):
        words += " It is not proved that these are the best ones: their kinds and α are as it "
        return words + "stopped, and not exact."
    if hasattr(machine, "nu"):  # a share of all rows
        return words
    kept = ["costs"]
    if not hasattr(machine, "coef_"):
        kept.insert(0, "kernel")
    if machine is not subject.model:
        kept.append("preparation of the columns")
    listed = " and ".join([", ".join(kept[:-1]), kept[-1]] if len(kept) > 1 else kept)
    return (
        f"{words} Fitted to these rows alone, with the same {listed}, the model would be the same."
    )


def _counts(kinds: Any) -> Iterator[str]:
    for kind, meaning in _KINDS.items():
        if kinds is not None and (count := int((kinds == kind).sum())):
            yield f"{count} × {kind}: {meaning}."


def _table(
    subject: Subject, rows: Any, order: Any, kinds: Any, slack: Floats, alpha: Floats
) -> Html:
    matched = subject.view.is_training(subject.X)
    numbers = subject.numbers if matched else np.arange(rows.max() + 1)
    columns: dict[str, list[Any]] = {subject.wording.row: _shown(numbers[rows[order]])}
    if matched:
        columns |= _facts(subject, rows[order])
    if kinds is not None:
        columns["kind"] = kinds[order].tolist()
    columns["α"] = [f"{value:.4g}" for value in alpha[order]]
    if slack.any():
        columns["slack ξ"] = [
            f"{value:.4g}" if value > _ROUNDING else "0" for value in slack[order]
        ]
    order_of = "Largest slack first, then largest α" if slack.any() else "Largest α first"
    caption = f"{order_of}; {_counted(subject) if matched else _FROM_0}."
    if len(order) < len(rows):
        caption = f"{len(order)} of {len(rows)}. {caption}"
    if np.ndim(getattr(subject.machine, "alpha_", 0)) == 2:
        caption += " Of several problems, each row's largest α and slack, and its worst kind."
    shown = table([*columns], zip(*columns.values(), strict=True), caption)
    remark = tag("p", "X is not what the model was fitted to: labels are left out.")
    return shown if matched else joined([remark, shown])


def _facts(subject: Subject, rows: Any) -> dict[str, list[Any]]:
    X, y = _safe_indexing(subject.X, rows), subject.y
    labels = None if y is None else np.asarray(y)[rows]
    scores = score_rows(subject.machine, subject.view.transform(X), labels)
    facts: dict[str, list[Any]] = {}
    if subject.regresses:
        facts["target"] = [f"{value:.5g}" for value in np.asarray(labels)]
        facts["predicted"] = [f"{value:.5g}" for value in scores.predicted]
    elif subject.classifies:
        facts[subject.wording.label] = [visible(label, NAME) for label in np.asarray(labels)]
    facts[scores.unit] = [f"{value:.4g}" for value in scores.values]
    return facts


def _kinds(machine: Any) -> Any:
    """Return the worst kind of each support vector, or None if it has none."""
    kinds = getattr(machine, "support_kind_", None)
    if kinds is None or np.ndim(kinds) == 1:
        return None if kinds is None else np.asarray(kinds)
    ranks = [*_KINDS]
    rank = np.array([[ranks.index(k) if k in ranks else len(ranks) for k in of] for of in kinds])
    return np.array([*ranks, ""])[rank.min(axis=0)]


def _alphas(machine: Any) -> Floats:
    if hasattr(machine, "alpha_"):
        alpha = np.atleast_2d(machine.alpha_)[:, machine.support_]
    else:
        duals = machine.dual_coef_
        alpha = np.abs(duals.toarray() if sp.issparse(duals) else np.atleast_2d(duals))
    return np.asarray(alpha.max(axis=0), dtype=np.float64)


def _slacks(machine: Any) -> Floats:
    slack = getattr(machine, "slack_", None)
    if slack is None:
        return np.zeros(len(machine.support_))
    return np.asarray(np.atleast_2d(slack)[:, machine.support_].max(axis=0), dtype=np.float64)


# ------------------------------------------------------------ worth looking at


def looking(subject: Subject, columns: list[int]) -> Html:
    """Return tables of the rows worth looking at, with the values of some columns."""
    found = joined(
        element for part in subject.parts for element in _of_part(subject, part, columns)
    )
    words = f"{_counted(subject)}.".replace("rows", "Rows", 1)
    if 0 < len(columns) < len(subject.names) and not subject.guesses:
        words += f" Shown are the {len(columns)} columns that move the model's scores most."
    return joined([tag("p", words), found])


def _of_part(subject: Subject, part: ScoredRows, columns: list[int]) -> Iterator[Html]:
    yield tag("h3", f"{part.name} rows".capitalize())
    if part.sampled:
        yield tag("p", f"Among {part.sampled}.")
    if subject.regresses:
        worst = _first(-np.abs(part.scores.values))
        yield _rows(subject, part, worst, columns, "The largest errors")
    elif subject.classifies:
        yield from _of_classes(subject, part, columns)
    else:
        odd = _first(np.where(part.scores.right, np.inf, part.scores.values))
        out = [k for k in odd if not part.scores.right[k]]
        total = int((~part.scores.right).sum())
        caption = f"The farthest of {total} outliers"
        yield _rows(subject, part, out, columns, caption) if out else tag("p", "No outliers.")


def _of_classes(subject: Subject, part: ScoredRows, columns: list[int]) -> Iterator[Html]:
    right, lead = part.scores.right, np.nan_to_num(part.scores.values, nan=-np.inf)
    wrong = int((~right).sum())
    if wrong and subject.guesses:
        yield tag(
            "p", f"{wrong} of {len(right)} are wrong, and the model does not tell them apart."
        )
    elif wrong:
        order = _first(np.where(right, np.inf, lead))
        yield _rows(
            subject,
            part,
            [k for k in order if not right[k]],
            columns,
            f"Wrong, and sure of it: {min(wrong, LOOKED_AT)} of {wrong} mistakes, the farthest on "
            "the wrong side first. Are their labels right?",
        )
    else:
        yield tag("p", f"No mistakes: all {len(right)} are right.")
    if subject.guesses:
        return
    doubtful = [k for k in _first(np.where(right, np.abs(lead), np.inf)) if right[k]]
    if doubtful:
        caption = "Right, but only just: the nearest to the boundary first."
        yield _rows(subject, part, doubtful, columns, caption)


def _first(keys: npt.NDArray[np.float64]) -> list[int]:
    """Return where the smallest keys are."""
    return [int(k) for k in np.argsort(keys, kind="stable")[:LOOKED_AT]]


def _rows(
    subject: Subject, part: ScoredRows, chosen: list[int], columns: list[int], caption: str
) -> Html:
    heads = [subject.wording.row, *_answers(subject), part.scores.unit]
    heads += [visible(subject.names[j], NAME) for j in columns] or ["value"]
    lines = [
        [
            *_shown(part.numbers[[k]]),
            *_given(subject, part, k),
            f"{part.scores.values[k]:.4g}",
            *values(part.X, k, columns),
        ]
        for k in chosen
    ]
    return table(heads, lines, caption)


def _answers(subject: Subject) -> list[str]:
    if subject.regresses:
        return ["target", "predicted"]
    return [subject.wording.label, "predicted"] if subject.classifies else []


def _given(subject: Subject, part: ScoredRows, k: int) -> list[Any]:
    if subject.regresses:
        return [f"{part.y[k]:.5g}", f"{part.scores.predicted[k]:.5g}"]
    if not subject.classifies:
        return []
    return [visible(part.y[k], NAME), visible(part.scores.predicted[k], NAME)]
