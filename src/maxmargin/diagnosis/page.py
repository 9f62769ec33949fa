"""A diagnosis in a notebook."""

from typing import TYPE_CHECKING, Any

from maxmargin.html import Html, bullets, table, tag

if TYPE_CHECKING:
    from maxmargin.diagnosis.result import Diagnosis, Rung


def as_html(found: "Diagnosis") -> Html:
    """Return a verdict, its reasons and a table of all rungs."""
    size = f" ({found.n_rows} rows, {found.n_features} columns, {len(found.classes)} classes)"
    return tag(
        "div",
        tag("p", tag("b", found.verdict.capitalize()), size),
        tag("p", "Why: ", found.reason),
        tag("p", "Use: ", found.advice),
        bullets(found.warnings),
        table(["Question", "Answer", "Rows seen"], map(_row, found.rungs)),
    )


def _row(rung: "Rung") -> tuple[Any, ...]:
    if rung.ran:
        return rung.name, rung.answer, rung.rows_seen
    return rung.name, tag("i", rung.answer), "–"
