"""Nested cross-validation whose inner fits serve two outer folds at once.

To predict fold k without having seen it, settings are chosen by fits that leave out k and one more
fold j, scored on j. The same fits, scored on k, serve the choice for fold j. So K(K − 1)/2 fits of
each setting are a full nested cross-validation, and the K fits around a ring still score each
setting on two inner folds for every outer one. No label of a fold has any part in what predicts it.

What is fitted follows from numbers of rows and settings, never from the clock: when the time runs
out there is no answer, rather than another one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats, Ints
from maxmargin.diagnosis.inputs import Sample
from maxmargin.diagnosis.learners import Candidate, FoldLearner, score_fresh_rows
from maxmargin.diagnosis.significance import Metric

N_FOLDS = 5


@dataclass(frozen=True)
class Scored:
    """A family of rules after cross-validation.

    Attributes
    ----------
    name : str
        What it is called in sentences.
    best : Candidate
        The setting with the best score over all inner folds.
    scores : ndarray of shape (n, n_classes)
        Scores of the classes for rows that were not fitted to: out of fold, or of fresh rows.
    right : ndarray of bool
        Where the best of them is that of the true class.
    metric : Metric
        By which families are compared.
    table : dict
        The score of each setting on inner folds (a sum over folds).
    """

    name: str
    best: Candidate
    scores: Floats
    right: npt.NDArray[np.bool_]
    metric: Metric
    table: dict[Candidate, float]

    @property
    def score(self) -> float:
        """Score by the metric, on rows that were not fitted to."""
        return self.metric.score(self.right)

    @property
    def errors(self) -> int:
        """Number of rows predicted wrongly."""
        return int((~self.right).sum())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        low, high = self.metric.interval(self.right)
        return {
            "method": self.name,
            self.metric.name: self.score,
            "interval": [low, high],
            "accuracy": float(self.right.mean()),
            "errors": self.errors,
            "rows": len(self.right),
            "best": self.best.to_dict(),
            "settings": len(self.table),
        }


def make_folds(y: Ints, group: Ints, rng: np.random.Generator) -> Ints:
    """Return a fold for each row: classes evenly spread, equal rows always together.

    A copy of a row in the training part would give its answer away.
    """
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    order = rng.permutation(len(first))
    order = order[np.argsort(y[first][order], kind="stable")]
    fold_of_group = np.empty(len(first), dtype=np.int64)
    fold_of_group[order] = np.arange(len(first)) % N_FOLDS
    return np.asarray(fold_of_group[group])


def cross_validate(
    name: str,
    machine: FoldLearner,
    settings: Sequence[Candidate],
    metric: Metric,
    folds: Ints,
    over: Callable[[], bool],
    ring: bool,
) -> Scored | None:
    """Cross-validate a family, choosing its setting inside; None if the time ran out.

    With ``ring``, each outer fold has two inner ones; otherwise all others.
    """
    n_folds = int(folds.max()) + 1
    inner: Floats | None = np.zeros((n_folds, len(settings)))
    if len(settings) > 1:
        inner = inner_scores(machine, settings, metric, folds, over, ring)
    if inner is None:
        return None
    chosen = inner.argmax(axis=1)
    scores = np.empty((len(folds), len(metric.weight)))
    for k in np.argsort(chosen, kind="stable"):
        if over():
            return None
        test, train = np.flatnonzero(folds == k), np.flatnonzero(folds != k)
        scores[test] = machine.scores([settings[chosen[k]]], train, test)[0]
    table = dict(zip(settings, inner.sum(axis=0).tolist(), strict=True))
    best = max(settings, key=lambda setting: table[setting])
    return Scored(name, best, scores, scores.argmax(axis=1) == metric.y, metric, table)


def score_held_out(
    name: str,
    machine: FoldLearner,
    settings: Sequence[Candidate],
    sample: Sample,
    ring: bool,
) -> Scored | None:
    """Choose the setting of a family by cross-validation, and score it on fresh rows.

    None if the time ran out.
    """
    inner: Floats | None = np.zeros((1, len(settings)))
    if len(settings) > 1:
        inner = inner_scores(machine, settings, sample.metric, sample.folds, sample.over, ring)
    if inner is None or sample.over():
        return None
    table = dict(zip(settings, inner.sum(axis=0).tolist(), strict=True))
    best = max(settings, key=lambda setting: table[setting])
    scores = score_fresh_rows(best, sample)
    right = scores.argmax(axis=1) == sample.compared.y
    return Scored(name, best, scores, right, sample.compared, table)


def inner_scores(
    machine: FoldLearner,
    settings: Sequence[Candidate],
    metric: Metric,
    folds: Ints,
    over: Callable[[], bool],
    ring: bool,
) -> Floats | None:
    """Return the score of each setting on its inner folds, for each outer fold (a row each).

    None if the time ran out.
    """
    n_folds = int(folds.max()) + 1
    inner = np.zeros((n_folds, len(settings)))
    weight = metric.weight[metric.y]
    for some in _group_alike(settings):
        for j, k in _pairs(n_folds, ring):
            if over():
                return None
            test = np.flatnonzero((folds == j) | (folds == k))
            train = np.flatnonzero((folds != j) & (folds != k))
            found = machine.scores([settings[s] for s in some], train, test)
            for s, scores in zip(some, found, strict=True):
                gained = weight[test] * (scores.argmax(axis=1) == metric.y[test])
                inner[k, s] += gained[folds[test] == j].sum()
                inner[j, s] += gained[folds[test] == k].sum()
    return np.round(inner, 12)  # equal scores stay equal, whatever the order of the sums


def _pairs(n_folds: int, ring: bool) -> list[tuple[int, int]]:
    if ring and n_folds > 2:
        return [(k, (k + 1) % n_folds) for k in range(n_folds)]
    return list(combinations(range(n_folds), 2))


def _group_alike(settings: Sequence[Candidate]) -> list[list[int]]:
    """Return the positions of settings that can share work, together."""
    keys = [
        (setting.kind, setting.scaled, setting.get("gamma"), setting.get("multi_class"))
        for setting in settings
    ]
    return [list(run) for _, run in groupby(range(len(keys)), key=lambda s: keys[s])]
