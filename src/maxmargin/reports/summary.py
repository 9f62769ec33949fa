"""The top of the page: what the data are, what the model is, how good, whether proved, and beware.

For a reader with one course in machine learning and two minutes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxmargin.diagnosis.significance import wilson
from maxmargin.html import Html, bullets, html, joined, tag, visible
from maxmargin.inspection.code import drop_addresses
from maxmargin.reports.proof import Finding, short_numbers
from maxmargin.reports.quality import (
    Quality,
    largest_class,
    quality_of,
    r_squared,
)
from maxmargin.reports.subject import NAME, Subject

_CLASSES = 10  # listed
_BEWARE = 6  # sentences
_FEW = 100  # test rows
_OVERFITTED = 0.05  # accuracy lost from rows seen to rows not seen
_LOPSIDED = 0.75  # share of one class from which accuracy says little
_UNFOUND = 5  # rows of a class, none of which is found

_WIDEST = "the boundary with the widest margin between the classes"
_SOFT = f"{_WIDEST}, where rows inside the margin or beyond the boundary cost"
_PERCEPTRON = "a boundary that was corrected at each mistake"
_KINDS = {
    "SVC": f"A support vector classifier: {_SOFT} C times their depth.",
    "LinearSVC": f"A linear support vector classifier: {_SOFT} C times a loss.",
    "HardMarginSVC": f"A hard-margin classifier: {_WIDEST}, with every training row outside of it.",
    "NuSVC": "A support vector classifier in which ν bounds the share of rows inside the margin.",
    "SVR": "A support vector regressor: errors up to ε cost nothing, larger ones C times the rest.",
    "LinearSVR": "A linear support vector regressor: errors up to ε cost nothing, larger ones C "
    "times a loss.",
    "NuSVR": "A support vector regressor in which ν bounds the share of rows outside of the tube.",
    "OneClassSVM": "An outlier detector: a surface around most of the rows; ν bounds the share of "
    "training rows outside of it.",
    "Perceptron": f"A perceptron: {_PERCEPTRON}.",
    "AveragedPerceptron": f"An averaged perceptron: the mean of {_PERCEPTRON}.",
    "VotedPerceptron": f"A voted perceptron: a vote of all stages of {_PERCEPTRON}.",
    "KernelPerceptron": f"A kernel perceptron: {_PERCEPTRON}, in the feature space of a kernel.",
}


def summary(subject: Subject, diagnosis: Any, found: Finding) -> Html:
    """Return the key figures and a few sentences."""
    quality = quality_of(subject.parts[0], subject.machine) if subject.classifies else None
    sentences = [
        ("The data", _data(subject)),
        ("The model", in_words(subject)),
        ("How good", _how_good(subject)),
        *([("The diagnosis", _verdict(subject, diagnosis))] if diagnosis else []),
        ("The proof", found.sentence),
    ]
    warned = [*_beware(subject, quality, diagnosis)]
    kept = warned[:_BEWARE]
    if len(warned) > len(kept):
        kept.append(f"And {len(warned) - len(kept)} more, below.")
    return joined(
        [
            tag("dl", *_strip(subject, quality, found), class_="strip"),
            *(tag("p", tag("b", f"{lead}. "), words) for lead, words in sentences),
            tag("div", tag("b", "Beware"), bullets(kept), class_="beware") if kept else "",
        ]
    )


def _strip(subject: Subject, quality: Quality | None, found: Finding) -> Iterator[Html]:
    """Yield the key figures."""
    where = f"{subject.parts[0].name} rows"
    if quality is not None:
        for figure in quality.figures():
            yield _key(figure.name, str(figure), figure.interval or where)
        best, share = largest_class(subject)
        yield _key("to beat", f"{share:.2%}", f"always saying {visible(best, NAME)!r}")
    elif subject.regresses:
        yield _key("R²", r_squared(subject.parts[0]), where)
        off = np.abs(subject.parts[0].scores.values)
        yield _key("mean error", f"{off.mean():.4g}", where)
    else:
        out = ~subject.parts[0].scores.right
        yield _key("outliers", f"{out.mean():.2%}", where)
    if not subject.guesses:
        yield _key("proved", "yes" if found.kind == "proved" else "no", "on the training rows")


def _key(name: str, value: str, remark: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", tag("b", value), tag("small", remark)))


def _data(subject: Subject) -> Html:
    train, columns = subject.train.total, len(subject.names)
    test = f" to train on and {subject.test.total:,} to test on" if subject.test else ""
    words = f"{train:,} rows{test}" + (f", {columns:,} columns" if columns else "")
    if not subject.classifies:
        return html(f"{words}.")
    labels, counts = np.unique(np.asarray(subject.y), return_counts=True)
    listed = [
        joined([tag("b", visible(label, NAME)), f" ({count:,} rows, {count / train:.1%})"])
        for label, count in zip(labels[:_CLASSES], counts, strict=False)
    ]
    commas = [part for k, one in enumerate(listed) for part in ((", " if k else ""), one)]
    rest = f", and {len(labels) - _CLASSES} more" if len(labels) > _CLASSES else ""
    name = visible(subject.wording.label, NAME)
    called = "The label" if name == "label" else f"The label, {name!r},"
    among = "; among the training rows" if subject.test else ""
    lead = f"{words}. {called} has {len(labels)} classes{among}: "
    return joined([lead, *commas, f"{rest}."])


def in_words(subject: Subject) -> str:
    """Return what the model is: its kind, its kernel, what comes before it."""
    machine = subject.machine
    name = type(machine).__name__
    words = _KINDS.get(name, f"{name}, a model of {type(machine).__module__.partition('.')[0]}.")
    kernel = getattr(machine, "kernel_", None)
    if kernel is not None and hasattr(kernel, "gram"):
        words += f" Kernel: {short_numbers(drop_addresses(repr(kernel)))}."
    cost = machine.get_params().get("C")
    if isinstance(cost, int | float):
        words += f" C = {cost:.4g}."
    steps = subject.view.steps
    if steps:
        words += " Before it: " + ", ".join(type(step).__name__ for step in steps) + "."
    return words


def _how_good(subject: Subject) -> str:
    part = subject.parts[0]
    if subject.regresses:
        off = np.abs(part.scores.values)
        return (
            f"On the {part.name} rows R² = {r_squared(part)} (1 is perfect, 0 is no better than "
            f"their mean); it is off by {off.mean():.4g} on average, by {off.max():.4g} at most."
        )
    n, right = len(part.rows), int(part.scores.right.sum())
    if not subject.classifies:
        return f"It calls {n - right:,} of {n:,} {part.name} rows outliers ({1 - right / n:.2%})."
    best, share = largest_class(subject)
    beaten = f"Always saying {visible(best, NAME)!r} would be right in {share:.2%}."
    if part.name != "test":
        return (
            f"It is right in {right / n:.2%} ({right} of {n}) of the rows that it has seen, which "
            f"is too good to expect of new ones. {beaten}"
        )
    low, high = wilson(right / n, n)
    return (
        f"Of the test rows, which it has not seen, it is right in {right / n:.2%} ({right} of "
        f"{n}); of new rows like these, between {low:.1%} and {high:.1%} (95 % interval). {beaten}"
    )


def _verdict(subject: Subject, diagnosis: Any) -> str:
    short = diagnosis.reason.partition(" What is known: ")[0]  # which is said below
    reason = subject.worded(visible(short), same_columns(subject, diagnosis))
    return f"{diagnosis.verdict.capitalize()}: {reason[:1].lower()}{reason[1:]}"


def same_columns(subject: Subject, diagnosis: Any) -> bool:
    """Return whether the columns that were diagnosed are those of X, and have names."""
    return bool(subject.named and subject.numeric and diagnosis.n_features == len(subject.names))


def _beware(subject: Subject, quality: Quality | None, diagnosis: Any) -> Iterator[str]:
    """Yield what could mislead, the gravest first."""
    if subject.test is None:
        yield "No rows were held out: how good the model is on new ones is not known."
    if subject.guesses:
        yield "The model looks at no column: it is a yardstick for others, not a way to predict."
    elif quality is not None:
        yield from _beware_of_classes(subject, quality)
    yield from subject.wording.messages
    for part in subject.parts:
        if part.sampled:
            yield f"There are many rows: what is said of them is said of {part.sampled}."
    for warning in getattr(diagnosis, "warnings", ()):
        yield subject.worded(visible(warning), same_columns(subject, diagnosis))


def _beware_of_classes(subject: Subject, quality: Quality) -> Iterator[str]:
    best, share = largest_class(subject)
    figures = {figure.name: figure for figure in quality.figures()}
    low = figures["accuracy"].low
    if share > _LOPSIDED:
        yield (
            f"{share:.1%} of the rows are {visible(best, NAME)!r}, so accuracy alone misleads: "
            "look at the balanced accuracy and at the recall of each class."
        )
    if low <= share:
        yield (
            f"Its accuracy is not clearly above the {share:.2%} of always saying "
            f"{visible(best, NAME)!r}."
        )
    lost = [
        visible(label, NAME)
        for label, n, hits in zip(
            quality.labels, quality.rows, quality.counts.diagonal(), strict=True
        )
        if n >= _UNFOUND and not hits
    ]
    if lost:
        names = ", ".join(repr(name) for name in lost[:_CLASSES])
        yield f"It finds no row of {names}" + (" and more." if len(lost) > _CLASSES else ".")
    unknown = int((~np.isin(quality.y, quality.classes)).sum())
    if unknown:
        yield f"{unknown} rows have labels that the model has never seen: it gets them wrong."
    if subject.test is not None:
        yield from _beware_of_test_rows(subject, figures["accuracy"])


def _beware_of_test_rows(subject: Subject, accuracy: Any) -> Iterator[str]:
    seen = float(subject.train.scores.right.mean())
    if seen - accuracy.value > _OVERFITTED and seen > accuracy.high:
        yield (
            f"It is right in {seen:.1%} of the rows it was fitted to, but in {accuracy.value:.1%} "
            "of the test rows: it has learnt some rows by heart."
        )
    count = len(subject.parts[0].rows)
    if count < _FEW:
        yield f"There are only {count} test rows, so figures of them are rough."
