"""The page: what is reported, section by section."""

from typing import Any

from maxmargin.diagnosis import Diagnosis, diagnose
from maxmargin.html import Html, html, joined, tag, visible
from maxmargin.reports.figures import figures
from maxmargin.reports.looking import looking
from maxmargin.reports.proof import proof
from maxmargin.reports.reproducing import reproducing
from maxmargin.reports.searching import searching
from maxmargin.reports.sheet import sheet
from maxmargin.reports.subject import (
    Subject,
    as_answers,
    as_rows,
    column_names,
    judged,
    taken_apart,
)
from maxmargin.reports.summary import summary
from maxmargin.reports.support import support

_SECONDS = 10.0  # for a diagnosis
_TITLE = 200  # characters
# Whatever the page might be made to hold, a browser fetches nothing and runs nothing.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def subject_of(
    model: Any, given: tuple[Any, Any], held: tuple[Any, Any], search: Any, title: Any, names: Any
) -> Subject:
    """Return a model and its rows, checked; ``held`` are test rows, or None twice."""
    (X, y), (X_test, y_test) = given, held
    X, X_test = as_rows(X), as_rows(X_test)
    model, machine, search = taken_apart(model, search)
    outliers = not hasattr(machine, "classes_") and hasattr(machine, "offset_")
    if y is None and not outliers:
        raise ValueError(f"y is missing: {type(machine).__name__} learns from labels or targets")
    if (X_test is None) != (y_test is None) and not (outliers and y_test is None):
        raise ValueError("X_test and y_test belong together; give both or neither")
    y = None if outliers else as_answers("y", machine, y)
    y_test = None if outliers or y_test is None else as_answers("y_test", machine, y_test)
    return Subject(
        model,
        machine,
        search,
        X,
        y,
        train=judged("training", model, machine, X, y),
        test=None if X_test is None else judged("test", model, machine, X_test, y_test),
        names=column_names(X, model, names),
        title=visible(title or type(machine).__name__, _TITLE),
    )


def page(subject: Subject, diagnosis: Diagnosis | None, theme: str) -> str:
    """Return the whole document."""
    sections = [
        ("model", "The model", summary(subject)),
        ("diagnosis", "What the data allow", _diagnosed(subject, diagnosis)),
        ("proof", "What is proved", proof(subject)),
        ("pictures", "Pictures", figures(subject, theme)),
        ("support", "Support vectors", support(subject)),
        ("looking", "Rows worth looking at", looking(subject)),
    ]
    if subject.search is not None:
        sections.append(("search", "The search", searching(subject.search, theme)))
    sections.append(("again", "How to get the same again", reproducing(subject)))
    links = joined(tag("li", tag("a", words, href=f"#{name}")) for name, words, _ in sections)
    body = joined(
        tag("section", tag("h2", words), _boxed(inside), id=name)
        for name, words, inside in sections
    )
    main = tag("main", tag("h1", subject.title), tag("nav", tag("ol", links)), body)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{html(subject.title)}</title>\n<style>{sheet(theme)}</style>\n</head>\n"
        f"<body>\n{main}\n{tag('footer', tag('p', 'Made by maxmargin.'))}\n</body>\n</html>\n"
    )


def _boxed(inside: Html) -> Html:
    """Return markup in which wide things scroll in boxes of their own, by keyboard too."""
    for name in ("table", "pre"):
        box = '<div class="scroll" tabindex="0">'
        inside = Html(inside.replace(f"<{name}>", f"{box}<{name}>"))
        inside = Html(inside.replace(f"</{name}>", f"</{name}></div>"))
    return inside


def _diagnosed(subject: Subject, found: Diagnosis | None) -> Html:
    if found is None and not subject.classifies:
        return tag("p", "The ladder of questions is about classes: there are none here.")
    try:
        found = found or diagnose(subject.X, subject.y, max_time=_SECONDS)
    except (TypeError, ValueError) as refused:
        return tag("p", f"These data cannot be diagnosed: {visible(refused)}")
    return Html(found._repr_html_())
