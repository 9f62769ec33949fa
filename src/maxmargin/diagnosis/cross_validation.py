"""Nested cross-validation whose inner fits serve two outer folds at once.

To predict fold k without having seen it, settings are chosen by fits that leave out k and one more
fold j, scored on j. The same fits, scored on k, serve the choice for fold j. So K(K − 1)/2 fits of
each setting are a full nested cross-validation, and the K fits around a ring still score each
setting on two inner folds for every outer one. No label of a fold has any part in what predicts it.

What is fitted follows from numbers of rows and settings, never from the clock: when the time runs
out there is no answer, rather than another one.
"""

from collections.abc import Sequence
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
    """A family of rules after cross-validation."""

    name: str  # what it is called in sentences
    best: Candidate  # the setting with the best score over all inner folds
    scores: Floats  # of each class (columns) for rows not fitted to: out of fold, or fresh
    right: npt.NDArray[np.bool_]  # where the best of them is that of the true class
    metric: Metric  # by which families are compared
    table: dict[Candidate, float]  # the score of each setting on inner folds, summed over folds

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
    name: str, learn: FoldLearner, settings: Sequence[Candidate], sample: Sample, ring: bool
) -> Scored | None:
    """Cross-validate a family, choosing its setting inside; None if the time ran out.

    With ``ring``, each outer fold has two inner ones; otherwise all others. If there are fresh
    rows, all folds choose the setting together, and the fresh rows score it.
    """
    inner = inner_scores(learn, settings, sample, ring)
    if inner is None:
        return None
    table = dict(zip(settings, inner.sum(axis=0).tolist(), strict=True))
    best = max(settings, key=lambda setting: table[setting])
    if sample.y_fresh is None:
        scores = _score_folds(learn, settings, inner.argmax(axis=1), sample)
    else:
        scores = None if sample.over() else score_fresh_rows(best, sample)
    if scores is None:
        return None
    metric = sample.compared
    return Scored(name, best, scores, scores.argmax(axis=1) == metric.y, metric, table)


def _score_folds(
    learn: FoldLearner, settings: Sequence[Candidate], chosen: Ints, sample: Sample
) -> Floats | None:
    """Return the scores of each fold by the setting chosen for it; None if the time ran out."""
    scores = np.empty((len(sample.folds), sample.n_classes))
    for k in np.argsort(chosen, kind="stable"):  # folds of one setting share its matrix
        if sample.over():
            return None
        test, train = np.flatnonzero(sample.folds == k), np.flatnonzero(sample.folds != k)
        scores[test] = learn([settings[chosen[k]]], train, test)[0]
    return scores


def inner_scores(
    learn: FoldLearner, settings: Sequence[Candidate], sample: Sample, ring: bool
) -> Floats | None:
    """Return the score of each setting on its inner folds, for each outer fold (a row each).

    None if the time ran out; zeros if there is nothing to choose.
    """
    folds, metric = sample.folds, sample.metric
    n_folds = int(folds.max()) + 1
    inner = np.zeros((n_folds, len(settings)))
    if len(settings) == 1:
        return inner
    weight = metric.weight[metric.y]
    for some in _group_alike(settings):
        for j, k in _pairs(n_folds, ring):
            if sample.over():
                return None
            test = np.flatnonzero((folds == j) | (folds == k))
            train = np.flatnonzero((folds != j) & (folds != k))
            found = learn([settings[s] for s in some], train, test)
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
