"""Rows worth looking at: confident mistakes, doubtful answers, large errors, outliers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.html import Html, joined, table, tag, visible
from maxmargin.reports.columns import important, values
from maxmargin.reports.subject import Part, Subject
from maxmargin.reports.summary import NAME

SHOWN = 15


def looking(subject: Subject) -> Html:
    """Return tables of the rows worth looking at, of the test and of the training rows."""
    columns = important(subject)
    found = joined(
        element for part in subject.parts for element in _of_part(subject, part, columns)
    )
    few = 0 < len(columns) < len(subject.names)
    words = (
        f"Shown are the {len(columns)} columns that matter most: the scores change most when "
        "their values are dealt out anew among the rows."
    )
    return joined([tag("p", words) if few else "", found])


def _of_part(subject: Subject, part: Part, columns: list[int]) -> Iterator[Html]:
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


def _of_classes(subject: Subject, part: Part, columns: list[int]) -> Iterator[Html]:
    right, lead = part.scores.right, np.nan_to_num(part.scores.values, nan=-np.inf)
    wrong = int((~right).sum())
    if wrong:
        order = _first(np.where(right, np.inf, lead))
        yield _rows(
            subject,
            part,
            [k for k in order if not right[k]],
            columns,
            f"Wrong, and sure of it: {min(wrong, SHOWN)} of {wrong} mistakes, the farthest on the "
            "wrong side first. Are their labels right?",
        )
    else:
        yield tag("p", f"No mistakes: all {len(right)} are right.")
    doubtful = [k for k in _first(np.where(right, np.abs(lead), np.inf)) if right[k]]
    if doubtful:
        caption = "Right, but only just: the nearest to the boundary first."
        yield _rows(subject, part, doubtful, columns, caption)


def _first(keys: npt.NDArray[np.float64]) -> list[int]:
    """Return where the smallest keys are."""
    return [int(k) for k in np.argsort(keys, kind="stable")[:SHOWN]]


def _rows(
    subject: Subject, part: Part, chosen: list[int], columns: list[int], caption: str
) -> Html:
    heads = ["row", *_answers(subject), part.scores.unit]
    heads += [visible(subject.names[j], NAME) for j in columns] or ["value"]
    lines = [
        [
            int(part.rows[k]),
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
    return ["label", "predicted"] if subject.classifies else []


def _given(subject: Subject, part: Part, k: int) -> list[Any]:
    if subject.regresses:
        return [f"{part.y[k]:.5g}", f"{part.scores.predicted[k]:.5g}"]
    if not subject.classifies:
        return []
    return [visible(part.y[k], NAME), visible(part.scores.predicted[k], NAME)]
