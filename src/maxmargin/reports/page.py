"""The page: a summary, the sections, and how they look."""

import inspect
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import numpy as np

from maxmargin.diagnosis import Diagnosis, diagnose
from maxmargin.diagnosis.significance import amount
from maxmargin.inspection.code import drop_addresses
from maxmargin.plots.style import COLOURS, WRONG, short_numbers
from maxmargin.reports.certificate import Finding, find_certificate, proof
from maxmargin.reports.context import NAME, Context
from maxmargin.reports.figures import figures
from maxmargin.reports.provenance import provenance, search_results
from maxmargin.reports.quality import (
    Quality,
    baseline_error,
    error_figures,
    largest_class,
    part_figures,
    quality,
    quality_of,
    scoring_of,
)
from maxmargin.reports.tables import (
    COLUMNS_SHOWN,
    columns,
    importances,
    notable_rows,
    support,
)
from maxmargin.runtime.html import Html, bullets, html, joined, tag, visible

_SECONDS = 10.0  # for a diagnosis
_CLASSES = 10  # listed
_BEWARE = 6  # sentences
_FEW = 100  # test rows
_OVERFITTED = 0.05  # accuracy lost from rows seen to rows not seen
_OVERFITTED_ERROR = 1.5  # times the error on rows seen
_LOPSIDED = 0.75  # share of one class above which accuracy says little
_UNFOUND = 5  # rows of a class, if none of them is found
# Even if the page held markup that is not ours, a browser would fetch and run nothing.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(context: Context, diagnosis: Diagnosis | None, theme: str, script: str | None) -> str:
    """Return the whole document."""
    main = tag("main", tag("h1", context.title), _body(context, diagnosis, theme, script))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{html(context.title)}</title>\n<style>{style_sheet(theme)}</style>\n</head>\n"
        f"<body>\n{main}\n{tag('footer', tag('p', 'Made by maxmargin.'))}\n</body>\n</html>\n"
    )


def _body(context: Context, diagnosis: Diagnosis | None, theme: str, script: str | None) -> Html:
    """Return the summary, the table of contents, and all sections: address, title, markup."""
    diagnosis, refused = _find_diagnosis(context, diagnosis)
    found, search = find_certificate(context), context.view.search
    mattering = importances(context, scoring_of(context, diagnosis))
    order = range(len(context.names)) if mattering is None else mattering.order.tolist()
    beside = sorted(order[:COLUMNS_SHOWN])
    sections = [
        ("summary", "In short", _summarize(context, diagnosis, found)),
        ("quality", "How good it is", quality(context)),
        ("diagnosis", "What the data allow", _diagnosis(context, diagnosis, refused)),
        ("proof", "What is proved", proof(context, found)),
        ("columns", "Columns that matter", columns(context, mattering)),
        ("pictures", "Pictures", figures(context, theme)),
        ("support", "Support vectors", support(context)),
        ("looking", "Rows worth looking at", notable_rows(context, beside)),
        ("search", "The search", "" if search is None else search_results(search, theme)),
        ("again", "How to reproduce it", provenance(context, script)),
    ]
    sections = [section for section in sections if section[2]]
    links = joined(tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in sections)
    top, *others = (
        tag("section", tag("h2", title), _put_in_boxes(inside), id=name)
        for name, title, inside in sections
    )
    return joined([top, tag("nav", tag("ol", links)), *others])


def _put_in_boxes(inside: str) -> Html:
    """Return markup in which wide tables and code scroll inside boxes, by keyboard too."""
    box = r'<div class="scroll" tabindex="0"><\1\2>'
    opened = re.sub(r"<(table|pre)((?: [^>]*)?)>", box, inside)
    return Html(re.sub(r"</(table|pre)>", r"</\1></div>", opened))


def _find_diagnosis(context: Context, found: Diagnosis | None) -> tuple[Diagnosis | None, str]:
    """Return the diagnosis given, or a new one; or why there is none."""
    if found is not None:
        return found, ""
    if not (context.classifies or context.regresses):
        return None, "The diagnosis is about classes and numbers to be predicted; here are none."
    # Text and missing values in a table are left to the steps before the machine.
    prepared = not context.numeric and bool(context.names)
    rows = context.view.transform(context.X) if prepared else context.X
    names = context.names if context.named and not prepared else None
    task = "regression" if context.regresses else "classification"
    try:
        found = diagnose(rows, context.y, max_time=_SECONDS, task=task, feature_names=names)
        return found, ""
    except (TypeError, ValueError) as refused:
        return None, f"These data cannot be diagnosed: {visible(refused)}"


def _diagnosis(context: Context, found: Diagnosis | None, refused: str) -> Html:
    if found is None:
        return tag("p", refused)
    return Html(found._repr_html_())


# ------------------------------------------------------------ in short
#
# For a reader with one course in machine learning and two minutes.


def _summarize(context: Context, diagnosis: Any, found: Finding) -> Html:
    """Return the key figures and a few sentences."""
    quality = quality_of(context.parts[0], context.machine) if context.classifies else None
    sentences = [
        ("The data", _describe_data(context)),
        ("The model", describe_model(context)),
        ("The proof", found.sentence),
    ]
    if diagnosis is not None:
        sentences.insert(2, ("The diagnosis", f"{diagnosis.verdict.capitalize()}."))
    key_figures = (
        tag("div", tag("dt", name), tag("dd", tag("b", value), tag("small", note)))
        for name, value, note in _key_figures(context, quality, found)
    )
    warned = [*_find_warnings(context, quality, diagnosis)]
    if len(warned) > _BEWARE:
        warned[_BEWARE:] = [f"And {len(warned) - _BEWARE} more, below."]
    return joined(
        [
            tag("dl", *key_figures, class_="strip"),
            *(tag("p", tag("b", f"{lead}. "), sentence) for lead, sentence in sentences),
            tag("div", tag("b", "Beware"), bullets(warned), class_="beware") if warned else "",
        ]
    )


def _key_figures(
    context: Context, quality: Quality | None, found: Finding
) -> Iterator[tuple[str, str, str]]:
    """Yield the key figures: a name, a value and a note."""
    part = context.parts[0]
    where = f"{part.name} rows"
    if quality is not None:
        first, *others = quality.figures()
        right = f"{int(part.scores.right.sum())} of {len(part.rows)} {where}"
        yield first.name, str(first), f"{right}; {first.interval}"
        for figure in others:
            yield figure.name, str(figure), figure.interval or where
        best, share = largest_class(context)
        yield "to beat", f"{share:.2%}", f"always predicting {visible(best, NAME)!r}"
    elif context.regresses:
        for figure in error_figures(part):
            yield figure.name, str(figure), figure.interval or where
        yield "to beat", amount(baseline_error(context)), "error of always predicting the median"
    else:
        yield "outliers", part_figures(part)["share"], where
    if not context.guesses:
        yield "proved", "yes" if found.proved else "no", "on the training rows"


def _describe_data(context: Context) -> str:
    train, columns = context.train.total, len(context.names)
    test = f" to train on and {context.test.total:,} to test on" if context.test else ""
    message = f"{train:,} rows{test}" + (f", {columns:,} columns" if columns else "")
    name = visible(context.wording.label, NAME)
    called = "The label" if name == "label" else f"The label, {name!r},"
    if context.regresses:
        y = np.asarray(context.y, dtype=np.float64)
        low, middle, high = map(amount, (y.min(), float(np.median(y)), y.max()))
        return f"{message}. {called} goes from {low} to {high}, with median {middle}."
    if not context.classifies:
        return f"{message}."
    labels, counts = np.unique(np.asarray(context.y), return_counts=True)
    listed = ", ".join(
        f"{visible(label, NAME)} ({count:,} rows, {count / train:.1%})"
        for label, count in zip(labels[:_CLASSES], counts, strict=False)
    )
    rest = f", and {len(labels) - _CLASSES} more" if len(labels) > _CLASSES else ""
    among = "; among the training rows" if context.test else ""
    return f"{message}. {called} has {len(labels)} classes{among}: {listed}{rest}."


def describe_model(context: Context) -> str:
    """Return what the model is: its kind, its kernel, what comes before it."""
    machine = context.machine
    kind = (inspect.getdoc(machine) or "").partition("\n")[0]
    message = f"{type(machine).__name__}: {kind or 'a model of your own'}"
    kernel = getattr(machine, "kernel_", None)
    if hasattr(kernel, "gram"):
        message += f" Kernel: {short_numbers(drop_addresses(repr(kernel)))}."
    cost = machine.get_params().get("C")
    if isinstance(cost, int | float):
        message += f" C = {cost:.4g}."
    if steps := [type(step).__name__ for step in context.view.steps]:
        message += f" Preprocessing: {', '.join(steps)}."
    return message


def _find_warnings(context: Context, quality: Quality | None, diagnosis: Any) -> Iterator[str]:
    """Yield what could mislead, the gravest first."""
    if context.test is None:
        yield "No rows were held out, so it is not known how good the model is on new ones."
    elif len(context.test.rows) < _FEW:
        yield f"There are only {len(context.test.rows)} test rows, so their figures are rough."
    if context.guesses:
        yield "The model ignores all columns: it is a baseline for others, not a way to predict."
    elif quality is not None:
        yield from _warn_of_classes(context, quality)
    elif context.regresses:
        yield from _warn_of_numbers(context)
    yield from context.wording.messages
    for part in context.parts:
        if part.sampled:
            yield f"There are many rows: figures are about {part.sampled}."
    yield from map(visible, getattr(diagnosis, "warnings", ()))


def _warn_of_numbers(context: Context) -> Iterator[str]:
    part = context.parts[0]
    r2, mean, _ = error_figures(part)
    if not r2.low > 0 and not mean.high < baseline_error(context):
        yield f"On the {part.name} rows it is not clearly better than predicting a constant."
    seen = error_figures(context.train)[1].value
    if context.test is not None and _OVERFITTED_ERROR * seen < mean.low:
        yield (
            f"It is off by {amount(seen)} on the rows it was fitted to, but by {mean} on the test "
            "rows: it has learnt some rows by heart."
        )


def _warn_of_classes(context: Context, quality: Quality) -> Iterator[str]:
    best, share = largest_class(context)
    accuracy = next(quality.figures())
    if share > _LOPSIDED:
        yield (
            f"{share:.1%} of the rows are {visible(best, NAME)!r}, so accuracy alone misleads: "
            "look at the balanced accuracy and at the recall of each class."
        )
    if accuracy.low <= share:
        yield (
            f"Its accuracy is not clearly above the {share:.2%} of always predicting "
            f"{visible(best, NAME)!r}."
        )
    lost = quality.labels[(quality.rows >= _UNFOUND) & (quality.recall == 0)]
    if len(lost):
        names = ", ".join(repr(visible(label, NAME)) for label in lost[:_CLASSES])
        yield f"It finds no row of {names}" + (" and more." if len(lost) > _CLASSES else ".")
    unknown = int((~np.isin(quality.y, quality.classes)).sum())
    if unknown:
        yield f"{unknown} rows have labels that the model has never seen: it gets them wrong."
    if context.test is None:
        return
    seen = float(context.train.scores.right.mean())
    if seen - accuracy.value > _OVERFITTED and seen > accuracy.high:
        yield (
            f"It is right on {seen:.1%} of the rows it was fitted to, but on {accuracy.value:.1%} "
            "of the test rows: it has learnt some rows by heart."
        )


# As in page.css, on a dark background.
_DARK = """:root { --background: #15181c; --foreground: #e8e8e8; --soft: #a9b0b7; --line: #3a4046;
  --shade: #1e2227; --link: #7cc4f5; --good: #3fcf9f; --open: #d9b84a; --hit: 160 168 176; }"""


def style_sheet(theme: str) -> str:
    """Return the style sheet for "light", "dark", or "auto": as the reader's system has it."""
    rules = {
        "light": ":root { color-scheme: light; }",
        "dark": f":root {{ color-scheme: dark; }} {_DARK}",
        "auto": f":root {{ color-scheme: light dark; }}\n"
        f"@media (prefers-color-scheme: dark) {{ {_DARK} }}",
    }
    miss = " ".join(str(int(WRONG[k : k + 2], 16)) for k in (1, 3, 5))
    colours = [f".class-{k} {{ background: {paint}; }}" for k, paint in enumerate(COLOURS)]
    sheet = resources.files("maxmargin.reports").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join([rules[theme], f":root {{ --miss: {miss}; }}", *colours, sheet])
