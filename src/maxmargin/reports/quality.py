"""How good a model is: figures with intervals, figures for each class, and what it confuses."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from sklearn.metrics import (
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
)

from maxmargin._typing import Floats
from maxmargin.diagnosis.inputs import choose_scoring
from maxmargin.diagnosis.significance import amount, explained, mean_interval, wilson
from maxmargin.reports.context import NAME, Context, ScoredRows
from maxmargin.runtime.html import Html, bullets, joined, table, tag, visible

COLOURED = 6  # up to which each class has its own colour in the figures
_Z = 1.96  # two-sided 95 %
_TINY = 1e-12  # of an area: less than a pair of rows
_MATRIX = 60  # classes of a confusion matrix at most: a larger one could not be read
_UPRIGHT = 6  # classes from which on the heads of a confusion matrix stand upright
_NARROW = 16  # characters of such a head
_DEEPEST = 0.6  # opacity of a cell that holds a whole class: its number stays legible


class Figure(NamedTuple):
    """A figure of merit, its 95 % interval if it has one, and what it means."""

    name: str
    value: float
    low: float
    high: float
    meaning: str
    share: bool = True  # of rows or pairs, written in percent

    def __str__(self) -> str:
        return "undefined" if math.isnan(self.value) else self._written(self.value)

    def _written(self, value: float) -> str:
        return (
            f"{value:.2%}" if self.share else f"{value:.4f}" if self.name == "R²" else amount(value)
        )

    @property
    def interval(self) -> str:
        """The interval in words, or nothing."""
        if math.isnan(self.low):
            return ""
        if self.share:
            return f"{self.low:.1%} to {self.high:.1%}"
        return f"{self._written(self.low)} to {self._written(self.high)}"


@dataclass
class Quality:
    """What a classifier's predictions for labelled rows are worth.

    ``raw`` are scores: one number for each row and class, or one for the second of two classes.
    ``labels`` are those that occur, as true ones or as predictions.
    """

    y: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    raw: Floats
    classes: npt.NDArray[Any]

    def __post_init__(self) -> None:
        self.labels = np.unique(np.concatenate([self.y, self.predicted]))
        codes = [np.searchsorted(self.labels, of) for of in (self.y, self.predicted)]
        # How many rows of each label (down) get which prediction (across).
        self.counts = confusion_matrix(*codes)
        # By label, 0 for labels that have no rows or are never predicted.
        by_label = precision_recall_fscore_support(*codes, zero_division=0)
        self.precision, self.recall, self.f1, self.rows = by_label

    def confusions(self, most: int) -> list[tuple[int, int]]:
        """Return the most frequent confusions as positions among ``labels``: true, predicted."""
        wrong = self.counts - np.diag(self.counts.diagonal())
        order = np.argsort(-wrong, axis=None, kind="stable")[: min(most, np.count_nonzero(wrong))]
        true, predicted = np.unravel_index(order, wrong.shape)
        return list(zip(true.tolist(), predicted.tolist(), strict=True))

    def figures(self) -> Iterator[Figure]:
        """Yield accuracy, balanced accuracy, F1, and of scores the area under the ROC curve."""
        right, n = int(self.counts.diagonal().sum()), len(self.y)
        low, high = wilson(right / n, n)
        yield Figure("accuracy", right / n, low, high, "the share of rows that it gets right")
        several = int((self.rows > 0).sum()) > 1
        if several:
            yield self._balanced()
        meaning = "for each class the harmonic mean of precision and recall, then their mean"
        yield Figure("F1, mean of the classes", float(self.f1.mean()), np.nan, np.nan, meaning)
        if several and (auc := self._auc()):
            yield auc

    def _balanced(self) -> Figure:
        """Return the mean recall, with the interval of a mean of shares (Zou and Donner, 2008)."""
        recall, rows = self.recall[self.rows > 0], self.rows[self.rows > 0]
        value = float(recall.mean())
        ends = np.array([wilson(share, n) for share, n in zip(recall, rows, strict=True)])
        low, high = np.sqrt(((ends.T - recall) ** 2).sum(axis=1)) / len(rows)
        meaning = f"the mean of the classes' recalls; guessing gets {1 / len(rows):.0%}"
        return Figure("balanced accuracy", value, value - low, value + high, meaning)

    def _auc(self) -> Figure | None:
        """Return the area under the ROC curve, or None if no scores order rows of two kinds."""
        binary = self.raw.shape[1] == 1
        classes = self.classes[-1:] if binary else self.classes
        if self.raw.shape[1] != len(classes) or not np.ptp(self.raw) > 0:
            return None
        own = self.y[:, np.newaxis] == classes
        mixed = np.flatnonzero(own.any(axis=0) & ~own.all(axis=0))
        if not len(mixed):
            return None
        value = float(np.mean([roc_auc_score(own[:, k], self.raw[:, k]) for k in mixed]))
        if binary:
            low, high = auc_interval(value, int(own.sum()), int((~own).sum()))
            meaning = (
                "how often a row of one class is ranked before one of the other; chance gets 50%"
            )
            return Figure("AUC", value, low, high, meaning)
        meaning = "how well the rows of each class are ranked before the rest, on average"
        return Figure("AUC, each class against the rest", value, np.nan, np.nan, meaning)


def quality_of(part: ScoredRows, machine: Any) -> Quality:
    """Return how good the predictions for a part's rows are."""
    scores = part.scores
    return Quality(part.y, scores.predicted, scores.raw, np.asarray(machine.classes_))


def auc_interval(value: float, m: int, n: int) -> tuple[float, float]:
    """Return a 95 % interval of the area under a ROC curve of m and n rows.

    Its ends are where the area seen is 1.96 standard errors away, by the variance of Hanley and
    McNeil with sizes evened out (Newcombe, 2006, method 5): that has a width at 0 and at 1 too.
    """
    half = (m + n) / 2 - 1

    def beyond(area: float) -> float:
        spread = 1 + half * (1 - area) / (2 - area) + half * area / (1 + area)
        return float((value - area) ** 2 - _Z**2 * area * (1 - area) * spread / (m * n))

    # At 0 and at 1 itself the variance is 0, so that these are no ends of an interval.
    low = brentq(beyond, 0.0, min(value, 1 - _TINY)) if value > 0 else 0.0
    high = brentq(beyond, max(value, _TINY), 1.0) if value < 1 else 1.0
    return float(low), float(high)


def scoring_of(context: Context, diagnosis: Any) -> str:
    """Return the metric that models are compared by: the diagnosis's, or by the same rule."""
    if not context.classifies:
        return "R²" if context.regresses else "mean score"
    stated = getattr(diagnosis, "scoring", None)
    classes = np.unique(np.asarray(context.y), return_inverse=True)[1]
    return str(stated or choose_scoring("auto", classes)).replace("_", " ")


def quality(context: Context) -> Html:
    """Return tables of how good the model is."""
    if not (context.classifies or context.regresses):
        lines = [
            [f"{part.name} rows", len(part.rows), *part_figures(part).values()]
            for part in context.parts
        ]
        return table(["", "rows", "outliers", "share"], lines)
    parts = [_figures(context)]
    parts += [tag("p", f"Of {part.sampled}.") for part in context.parts if part.sampled]
    if not context.test:
        parts.append(tag("p", _SEEN))
    return joined([*parts, *(_of_classes(context) if context.classifies else ())])


def part_figures(part: ScoredRows) -> dict[str, str]:
    """Return how many outliers a detector finds among some rows."""
    out = ~part.scores.right
    return {"outliers": f"{out.sum():,}", "share": f"{out.mean():.2%}"}


def error_figures(part: ScoredRows) -> list[Figure]:
    """Return how far off a regressor is on some rows."""
    y, off = np.asarray(part.y, dtype=np.float64), part.scores.values
    errors, nan = np.abs(off), float("nan")
    r2 = explained(off, y - y.mean()) if np.ptp(y) else (nan, nan, nan)
    interval = mean_interval(errors) if len(errors) > 1 else (nan, nan)
    meaning = "1 is perfect, 0 is no better than predicting the mean of these rows"
    return [
        Figure("R²", *r2, meaning, False),
        Figure("mean absolute error", float(errors.mean()), *interval,
               "how far off predictions are on average", False),
        Figure("largest error", float(errors.max()), nan, nan, "of a single row", False),
    ]  # fmt: skip


def baseline_error(context: Context) -> float:
    """Return the mean absolute error of always predicting the median of the training rows."""
    middle = np.median(np.asarray(context.y, dtype=np.float64))
    return float(np.abs(np.asarray(context.parts[0].y, dtype=np.float64) - middle).mean())


def figures_of(context: Context, part: ScoredRows) -> list[Figure]:
    """Return the figures of a classifier or a regressor for some rows."""
    if context.regresses:
        return error_figures(part)
    return list(quality_of(part, context.machine).figures())


_SEEN = (
    "All of this is about rows that the model was fitted to; expect less of new ones. Hold out "
    "some rows (X_test, y_test) to see how good it is."
)


def _figures(context: Context) -> Html:
    """Return figures of the test rows with intervals, of the training rows, and what they are."""
    known = [{of.name: of for of in figures_of(context, part)} for part in context.parts]
    lines: list[list[Any]] = []
    for name, figure in known[0].items():
        others = [str(of[name]) if name in of else "–" for of in known[1:]]
        lines.append([name, tag("b", str(figure)), figure.interval or "–", *others])
    first, *rest = (f"{part.name} rows" for part in context.parts)
    if context.regresses:
        baseline = "mean absolute error of always predicting the training rows' median"
        reached = amount(baseline_error(context))
    else:
        best, share = largest_class(context)
        baseline = f"accuracy of always predicting {visible(best, NAME)!r}"
        reached = f"{share:.2%}"
    lines.append([baseline, reached, "–", *["–"] * len(rest)])
    meanings = (joined([tag("b", name), f": {of.meaning}."]) for name, of in known[0].items())
    return joined([table(["", first, "95 % interval", *rest], lines), bullets(meanings)])


def _of_classes(context: Context) -> Iterator[Html]:
    part = context.parts[0]
    found = quality_of(part, context.machine)
    yield tag("h3", f"Class by class, {part.name} rows")
    yield tag(
        "p",
        "Precision: the share of the rows given this label that have it. Recall: the share of the "
        "rows with this label that the model finds (with a 95 % interval).",
    )
    yield _by_class(context, found)
    yield tag("h3", f"What is taken for what, {part.name} rows")
    yield _confusions(context, found)


def largest_class(context: Context) -> tuple[Any, float]:
    """Return the most frequent label in training, and its share of the rows that are scored."""
    labels, counts = np.unique(np.asarray(context.y), return_counts=True)
    best = labels[counts.argmax()]
    return best, float(np.mean(np.asarray(context.parts[0].y) == best))


def _by_class(context: Context, found: Quality) -> Html:
    lines = []
    for k, label in enumerate(found.labels):
        n, hits = int(found.rows[k]), int(found.counts[k, k])
        low, high = wilson(hits / n, n) if n else (np.nan, np.nan)
        recall = f"{found.recall[k]:.1%} ({low:.0%} to {high:.0%})" if n else "no rows"
        lines.append(
            [_class(context, label), n, f"{found.precision[k]:.1%}", recall, f"{found.f1[k]:.1%}"]
        )
    return table([context.wording.label, "rows", "precision", "recall", "F1"], lines)


def _class(context: Context, label: Any, longest: int = NAME) -> Html:
    """Return a label with the colour that its class has in the pictures."""
    k = next((k for k, known in enumerate(context.classes) if known == label), COLOURED)
    few = len(context.classes) <= COLOURED
    swatch = tag("i", class_=f"class-{k}") if few and k < COLOURED else Html("")
    return joined([swatch, visible(label, longest)])


def _confusions(context: Context, found: Quality) -> Html:
    if len(found.labels) > _MATRIX:
        return tag("p", f"A table of {len(found.labels)} classes would be too large to read.")
    message = (
        "True labels are down the side, predictions along the top. Grey is right, red is wrong; "
        "the darker a cell, the larger its share of the label's rows."
    )
    return joined([tag("p", message), _matrix(context, found)])


def _matrix(context: Context, found: Quality) -> Html:
    """Return a table in which a cell is the darker, the larger its share of its row."""
    upright = len(found.labels) >= _UPRIGHT
    longest = _NARROW if upright else NAME
    names = [_class(context, label, longest) for label in found.labels]
    heads = [context.wording.label, *(tag("span", name) for name in names)]
    head = tag("tr", *(tag("th", inside, scope="col") for inside in heads))
    rows = []
    for k, name in enumerate(names):
        cells = [tag("th", name, scope="row")]
        for j, count in enumerate(found.counts[k]):
            kind, shade = "none", {}
            if count:
                kind = "hit" if j == k else "miss"
                shade = {"style": f"--depth: {_DEEPEST * count / found.rows[k]:.3f}"}
            cells.append(tag("td", count, class_=kind, **shade))
        rows.append(tag("tr", *cells))
    kind = "confusion upright" if upright else "confusion"
    return tag("table", tag("thead", head), tag("tbody", *rows), class_=kind)
