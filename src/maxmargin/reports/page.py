"""The page: what is reported, section by section, and how it looks."""

import re
from typing import Any

import numpy as np

from maxmargin.diagnosis import Diagnosis, diagnose
from maxmargin.html import Html, html, joined, table, tag, visible
from maxmargin.plots.style import COLOURS, WRONG
from maxmargin.reports.columns import SHOWN, columns, importances
from maxmargin.reports.making import making, searching
from maxmargin.reports.pictures import figures
from maxmargin.reports.proof import finding, proof
from maxmargin.reports.quality import quality, scoring_of
from maxmargin.reports.rows import looking, support
from maxmargin.reports.subject import NAME, Subject
from maxmargin.reports.summary import same_columns, summary

_SECONDS = 10.0  # for a diagnosis
_CONFLICTS = 10  # groups of equal rows with different labels
_MEMBERS = 12  # rows of such a group
# Whatever the page might be made to hold, a browser fetches nothing and runs nothing.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(subject: Subject, diagnosis: Diagnosis | None, theme: str, script: str | None) -> str:
    """Return the whole document."""
    main = tag("main", tag("h1", subject.title), _body(subject, diagnosis, theme, script))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{html(subject.title)}</title>\n<style>{sheet(theme)}</style>\n</head>\n"
        f"<body>\n{main}\n{tag('footer', tag('p', 'Made by maxmargin.'))}\n</body>\n</html>\n"
    )


def _body(subject: Subject, diagnosis: Diagnosis | None, theme: str, script: str | None) -> Html:
    """Return the summary, the table of contents, and all sections."""
    diagnosis, refused = _diagnosis(subject, diagnosis)
    proved = finding(subject)
    mattering = importances(subject, scoring_of(subject, diagnosis))
    beside = [*range(len(subject.names))][:SHOWN]
    if mattering is not None and len(subject.names) > SHOWN:
        beside = mattering.first(SHOWN)
    sections = [
        ("quality", "How good it is", quality(subject)),
        ("diagnosis", "What the data allow", _diagnosed(subject, diagnosis, refused)),
        ("proof", "What is proved", proof(subject, proved)),
        ("columns", "Columns that matter", columns(subject, mattering)),
        ("pictures", "Pictures", figures(subject, theme)),
        ("support", "Support vectors", support(subject)),
        ("looking", "Rows worth looking at", looking(subject, beside)),
    ]
    if subject.view.search is not None:
        sections.append(("search", "The search", searching(subject.view.search, theme)))
    sections.append(("again", "How to get the same again", making(subject, script)))
    top = ("summary", "In short", summary(subject, diagnosis, proved))
    links = joined(
        tag("li", tag("a", words, href=f"#{name}")) for name, words, _ in (top, *sections)
    )
    return joined(
        [_section(*top), tag("nav", tag("ol", links)), *(_section(*of) for of in sections)]
    )


def _section(name: str, words: str, inside: Html) -> Html:
    return tag("section", tag("h2", words), _boxed(inside), id=name)


def _boxed(inside: Html) -> Html:
    """Return markup in which wide things scroll in boxes of their own, by keyboard too."""
    box = r'<div class="scroll" tabindex="0"><\1\2>'
    opened = re.sub(r"<(table|pre)((?: [^>]*)?)>", box, inside)
    return Html(re.sub(r"</(table|pre)>", r"</\1></div>", opened))


def _diagnosis(subject: Subject, found: Diagnosis | None) -> tuple[Diagnosis | None, str]:
    """Return the diagnosis given, or a new one; or why there is none."""
    if found is not None:
        return found, ""
    if not subject.classifies:
        return None, "The ladder of questions is about classes: there are none here."
    # Words and gaps in a table are for the steps before the machine to fill in.
    rows = subject.X if subject.numeric or not subject.names else subject.view.transform(subject.X)
    try:
        return diagnose(rows, subject.y, max_time=_SECONDS), ""
    except (TypeError, ValueError) as refused:
        return None, f"These data cannot be diagnosed: {visible(refused)}"


def _diagnosed(subject: Subject, found: Diagnosis | None, refused: str) -> Html:
    if found is None:
        return tag("p", refused)
    shown = subject.worded(Html(found._repr_html_()), same_columns(subject, found))
    width, prepared = len(subject.names), found.n_features
    counted = f"Prepared for learning, the {width} columns are {prepared}: those are diagnosed."
    said = tag("p", counted) if width not in (0, prepared) else ""
    return joined([said, Html(shown), _conflicts(subject, found)])


def _conflicts(subject: Subject, found: Diagnosis) -> Html:
    """Return which rows are equal but have different labels, by the numbers the user knows."""
    witnesses = (found.witness, *(rung.witness for rung in found.rungs))
    groups: Any = next((of.groups for of in witnesses if hasattr(of, "groups")), [])
    if not len(groups) or found.n_rows != len(subject.numbers):
        return Html("")
    lines = []
    for rows in groups[:_CONFLICTS]:
        numbers = ", ".join(visible(n, NAME) for n in subject.numbers[rows[:_MEMBERS]])
        labels, counts = np.unique(np.asarray(subject.y)[rows], return_counts=True)
        each = zip(labels, counts, strict=True)
        said = ", ".join(f"{visible(label, NAME)} × {count}" for label, count in each)
        lines.append([numbers + (" …" if len(rows) > _MEMBERS else ""), said])
    caption = f"Equal rows with different labels: {len(lines)} of {len(groups)} groups."
    return table([f"{subject.wording.row}s", f"{subject.wording.label}s"], lines, caption)


# ------------------------------------------------------------ how it looks

_SHEET = """
:root { --paper: #ffffff; --ink: #1c1f23; --soft: #5a6169; --line: #d5dae0; --shade: #f4f6f8;
  --link: #0060a0; --good: #00694c; --open: #8a6d00; --hit: 90 99 108; --miss: MISS; }
DARK
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.2rem 0 0.3rem; }
#summary h2 { margin-top: 1rem; }
#summary p { margin: 0.5rem 0; }
a { color: var(--link); }
nav ol { columns: 3; padding-left: 1.5rem; margin: 1.5rem 0 0.5rem; }
.strip { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 0.6rem;
  margin: 0.8rem 0; }
.strip div { background: var(--shade); border-radius: 0.4rem; padding: 0.5rem 0.7rem;
  min-width: 0; }
.strip dt, .strip small { color: var(--soft); font-size: 0.8rem; line-height: 1.3; }
.strip dd { margin: 0; }
.strip b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.strip small { display: block; }
.beware { border-left: 4px solid var(--open); background: var(--shade); padding: 0.5rem 0.8rem;
  margin: 0.8rem 0; }
.beware ul { margin: 0.2rem 0 0; padding-left: 1.2rem; }
.scroll { overflow-x: auto; max-width: 100%; margin: 0.8rem 0; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 0.2rem 0; max-width: calc(100vw - 2rem);
  position: sticky; left: 0; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.7rem 0.25rem 0;
  border-bottom: 1px solid var(--line); unicode-bidi: isolate; min-width: 3.5rem;
  max-width: 24rem; }
.confusion { border-collapse: separate; border-spacing: 2px; }
.confusion th, .confusion td { border: 0; padding: 0.25rem 0.5rem; min-width: 2.2rem; }
.confusion td { text-align: right; }
.confusion th[scope="row"] { position: sticky; left: 0; background: var(--paper);
  max-width: 10rem; }
.confusion.upright th, .confusion.upright td { padding: 0.1rem 0.3rem; white-space: nowrap;
  min-width: 1.7rem; }
.confusion.upright thead th { vertical-align: bottom; }
.confusion.upright thead span { writing-mode: vertical-rl; transform: rotate(180deg);
  white-space: nowrap; }
.confusion .none { color: var(--soft); opacity: 0.6; }
.confusion .hit { background: rgb(var(--hit) / var(--depth)); }
.confusion .miss { background: rgb(var(--miss) / calc(0.12 + var(--depth))); }
.bar { display: block; height: 0.8em; margin-top: 0.3em; min-width: 1px; background: var(--soft);
  width: var(--share); border-radius: 2px; }
td:has(> .bar) { min-width: 8rem; }
#diagnosis td:nth-child(4) { min-width: min(12rem, 40vw); }
CLASSES
pre { background: var(--shade); padding: 0.7rem; margin: 0; font-size: 0.85rem; }
pre code { white-space: pre; }
figure { margin: 1rem 0; min-width: 0; }
img { max-width: 100%; height: auto; }
.wide picture { display: block; overflow-x: auto; }
.wide img { min-width: 36rem; }
figcaption, .missing, footer { color: var(--soft); font-size: 0.9rem; }
.missing { border-left: 3px solid var(--open); padding-left: 0.7rem; }
.verdict { font-size: 1.1rem; border-left: 4px solid var(--open); padding: 0.3rem 0 0.3rem 0.8rem;
  background: var(--shade); }
.proved { border-color: var(--good); }
#pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
  gap: 0 1.5rem; align-items: start; }
#pictures h2, #pictures .wide { grid-column: 1 / -1; }
@media (max-width: 30rem) { nav ol { columns: 1; } body { padding: 0.7rem; }
  .strip { grid-template-columns: 1fr 1fr; } }
@media print {
  :root { --paper: #ffffff; --ink: #000000; --soft: #333333; --line: #999999; --shade: #ffffff; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .scroll, .wide picture { overflow: visible; }
  .wide img { min-width: 0; }
  td, th { max-width: none; }
  .confusion td, .bar, i[class] { print-color-adjust: exact; }
  figure, tr, .verdict { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""

_DARK = """:root { --paper: #15181c; --ink: #e8e8e8; --soft: #a9b0b7; --line: #3a4046;
  --shade: #1e2227; --link: #7cc4f5; --good: #3fcf9f; --open: #d9b84a; --hit: 160 168 176; }"""
_SWATCH = """i[class^="class-"] { display: inline-block; width: 0.7em; height: 0.7em;
  margin-right: 0.4em; border-radius: 2px; }
"""


def sheet(theme: str) -> str:
    """Return the style sheet for "light", "dark", or "auto": as the reader's system has it."""
    dark = {
        "light": ":root { color-scheme: light; }",
        "dark": f":root {{ color-scheme: dark; }} {_DARK}",
        "auto": f":root {{ color-scheme: light dark; }}\n"
        f"@media (prefers-color-scheme: dark) {{ {_DARK} }}",
    }
    miss = " ".join(str(int(WRONG[k : k + 2], 16)) for k in (1, 3, 5))
    classes = _SWATCH + "\n".join(
        f".class-{k} {{ background: {paint}; }}" for k, paint in enumerate(COLOURS)
    )
    return _SHEET.replace("DARK", dark[theme]).replace("MISS", miss).replace("CLASSES", classes)
