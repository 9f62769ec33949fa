"""A diagnosis in a notebook. Every word is escaped: labels and names can hold anything."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maxmargin.diagnose.result import Diagnosis, Rung


def as_html(found: "Diagnosis") -> str:
    """Return a verdict, its reasons and a table of all rungs."""
    warnings = "".join(f"<li>{escape(warning)}</li>" for warning in found.warnings)
    rows = "".join(_row(rung) for rung in found.rungs)
    return (
        f"<div><p><b>{escape(found.verdict.capitalize())}</b> "
        f"({found.n_rows} rows, {found.n_features} columns, {len(found.classes)} classes)</p>"
        f"<p>{escape(found.reason)}</p><p>Use: {escape(found.advice)}</p>"
        + (f"<ul>{warnings}</ul>" if warnings else "")
        + "<table><thead><tr><th>Question</th><th>Answer</th><th>Rows seen</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(rung: "Rung") -> str:
    answer = escape(rung.answer) if rung.ran else f"<i>{escape(rung.answer)}</i>"
    seen = str(rung.rows_seen) if rung.ran else "–"
    return f"<tr><td>{escape(rung.name)}</td><td>{answer}</td><td>{seen}</td></tr>"
