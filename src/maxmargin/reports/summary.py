"""What the model is, in words, and how often it is right."""

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from maxmargin.html import Html, html, joined, table, tag, visible
from maxmargin.reports.subject import Part, Subject

NAME = 40  # characters of a label or of a column's name
_CLASSES = 10  # listed
_Z = 1.96  # two-sided 95 %

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


def summary(subject: Subject) -> Html:
    """Return a sentence on the model, and a table of the data and of what is right."""
    remarks = [tag("p", part.sampled, ": accuracies are of these.") for part in _sampled(subject)]
    return joined(
        [
            tag("p", in_words(subject)),
            table(["", ""], _facts(subject)),
            *(remarks if subject.classifies else ()),
            _confusion(subject),
        ]
    )


def in_words(subject: Subject) -> str:
    """Return what the model is: its kind, its kernel, what comes before it."""
    machine = subject.machine
    name = type(machine).__name__
    words = _KINDS.get(name, f"{name}, a model of {type(machine).__module__.partition('.')[0]}.")
    kernel = getattr(machine, "kernel_", None)
    if kernel is not None and hasattr(kernel, "gram"):
        words += f" Kernel: {short_numbers(placeless(repr(kernel)))}."
    cost = machine.get_params().get("C")
    if isinstance(cost, int | float):
        words += f" C = {cost:.4g}."
    steps = getattr(subject.model, "steps", [])[:-1]
    if steps:
        words += " Before it: " + ", ".join(type(step).__name__ for _, step in steps) + "."
    return words


def short_numbers(words: str) -> str:
    """Return a text with four digits of its longer numbers."""
    found = r"\d+\.\d{4,}(e[+-]?\d+)?"
    return re.sub(found, lambda number: f"{float(number[0]):.4g}", words)


def placeless(words: str) -> str:
    """Return a text without where functions lie in memory, which is another place each time."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", words)


def _sampled(subject: Subject) -> list[Part]:
    return [part for part in subject.parts if part.sampled]


def _facts(subject: Subject) -> Iterator[tuple[Any, Any]]:
    rows, columns = subject.train.total, len(subject.names)
    yield "data", f"{rows} training rows" + (f", {columns} columns" if columns else "")
    if subject.test:
        yield "held out", f"{subject.test.total} test rows"
    if subject.classifies:
        yield "classes", joined(_class_counts(subject))
        for part in subject.parts:
            yield f"right, {part.name} rows", _accuracy(part)
        yield "for comparison", _largest_class(subject)
    elif subject.regresses:
        for part in subject.parts:
            yield f"fit to {part.name} rows", _fit(part)
    else:
        for part in subject.parts:
            out = int((~part.scores.right).sum())
            yield f"outliers, {part.name} rows", f"{out} of {len(part.rows)} ({_share(out, part)})"


def _share(count: int, part: Part) -> str:
    return f"{count / max(1, len(part.rows)):.2%}"


def _class_counts(subject: Subject) -> Iterator[Html]:
    labels, counts = np.unique(np.asarray(subject.y), return_counts=True)
    for k, (label, count) in enumerate(zip(labels[:_CLASSES], counts, strict=False)):
        yield joined([", " if k else "", tag("b", visible(label, NAME)), f": {count}"])
    if len(labels) > _CLASSES:
        yield html(f", … ({len(labels)} in all)")


def _accuracy(part: Part) -> str:
    n, right = len(part.rows), int(part.scores.right.sum())
    words = f"{right / n:.2%} ({right} of {n})"
    if part.name != "test":
        return words + ": rows that it has seen, so too good to expect of new ones"
    low, high = wilson(right, n)
    return words + f"; of new rows like these, between {low:.1%} and {high:.1%} (95 % interval)"


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of which ``right`` of n were seen."""
    share, z2 = right / n, _Z**2 / n
    middle = (share + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n)) / (1 + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


def _largest_class(subject: Subject) -> str:
    labels, counts = np.unique(np.asarray(subject.y), return_counts=True)
    best = labels[counts.argmax()]
    y = subject.parts[0].y
    share = float(np.mean(np.asarray(y) == best))
    where = subject.parts[0].name
    return f"always saying {visible(best, NAME)!r} is right in {share:.2%} of the {where} rows"


def _fit(part: Part) -> str:
    off, y = part.scores.values, np.asarray(part.y, dtype=np.float64)
    spread = float(((y - y.mean()) ** 2).sum())
    fit = f"R² = {1 - float((off**2).sum()) / spread:.4f}, " if spread > 0 else ""
    return f"{fit}mean error {np.abs(off).mean():.4g}, largest {np.abs(off).max():.4g}"


def _confusion(subject: Subject) -> Html:
    """Return how often which class is taken for which, if the classes are few."""
    part, said = subject.parts[0], subject.parts[0].scores.predicted
    labels = np.unique(np.concatenate([part.y, said])) if subject.classifies else np.empty(0)
    if not 2 <= len(labels) <= _CLASSES:
        return Html("")
    names = [visible(label, NAME) for label in labels]
    lines = [
        [name, *(int(((part.y == one) & (said == other)).sum()) for other in labels)]
        for name, one in zip(names, labels, strict=True)
    ]
    caption = f"Labels of the {part.name} rows, and what the model says of them."
    return table(["label", *(f"says {name}" for name in names)], lines, caption)
