"""The families of rules that are compared: their settings, and their nested cross-validation.

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
from threadpoolctl import threadpool_limits

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.diagnosis.inputs import Sample
from maxmargin.diagnosis.learners import (
    Candidate,
    FoldLearner,
    Lesson,
    fit_each,
    fit_kernels,
    fit_neighbours,
    fit_planes,
    learn_all,
    score_fresh,
)
from maxmargin.diagnosis.significance import Metric

N_FOLDS = 5


@dataclass(frozen=True)
class Scored:
    """A family of rules after cross-validation."""

    name: str  # what it is called in sentences
    best: Candidate  # the setting with the best score over all inner folds
    scores: Floats  # of each class (columns) for rows not fitted to: out of fold, or fresh
    metric: Metric  # by which families are compared
    table: dict[Candidate, float]  # the score of each setting on inner folds, summed over folds

    @property
    def right(self) -> Flags:
        """Where the class with the best score is the true one."""
        return np.asarray(self.scores.argmax(axis=1) == self.metric.y)

    @property
    def score(self) -> float:
        """Score by the metric, on rows that were not fitted to."""
        return self.metric.score(self.right)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {
            "method": self.name,
            self.metric.name: self.score,
            "interval": list(self.metric.interval(self.right)),
            "accuracy": float(self.right.mean()),
            "errors": int((~self.right).sum()),
            "rows": len(self.right),
            "best": self.best.to_dict(),
            "settings": len(self.table),
        }


# ------------------------------------------------------------------- nested cross-validation


def make_folds(y: Ints, group: Ints, rng: np.random.Generator) -> Ints:
    """Return a fold for each row: classes evenly spread, equal rows always together.

    A copy of a row in the training part would give its answer away. Where most rows have equals,
    columns have few values, such as words, and new rows will have equals too: then any row may be
    in any fold.
    """
    if len(np.unique(group)) < len(group) / 2:
        group = np.arange(len(group))
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
    scores = np.empty((len(sample.compared.y), sample.n_classes))
    if sample.y_fresh is not None:
        found = learn_all(score_fresh, sample, [Lesson([best], ())])
        if found is None:
            return None
        scores[:] = found[0][0]
        return Scored(name, best, scores, sample.compared, table)
    chosen = inner.argmax(axis=1)
    order = np.argsort(chosen, kind="stable").tolist()  # folds of one setting share its matrix
    found = learn_all(learn, sample, [Lesson([settings[chosen[k]]], (k,)) for k in order])
    if found is None:
        return None
    for k, (own,) in zip(order, found, strict=True):
        scores[sample.folds == k] = own
    return Scored(name, best, scores, sample.compared, table)


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
    pairs = list(combinations(range(n_folds), 2))
    if ring and n_folds > 2:
        pairs = [(k, (k + 1) % n_folds) for k in range(n_folds)]
    alike = groupby(range(len(settings)), key=lambda s: settings[s].shared)
    groups = [list(group) for _, group in alike]
    todo = [(group, pair) for group in groups for pair in pairs]
    lessons = [Lesson([settings[s] for s in group], pair) for group, pair in todo]
    every = learn_all(learn, sample, lessons)
    if every is None:
        return None
    for (group, (j, k)), found in zip(todo, every, strict=True):
        test = np.flatnonzero((folds == j) | (folds == k))
        for s, scores in zip(group, found, strict=True):
            gained = metric.gained(scores, test)
            inner[k, s] += gained[folds[test] == j].sum()
            inner[j, s] += gained[folds[test] == k].sum()
    return np.round(inner, 12)  # equal scores stay equal, whatever the order of the sums


# ------------------------------------------------------------------- the families
#
# Costs and widths are relative to the spread of the rows. Where the metric is balanced accuracy,
# every learner that can weighs rows by the inverse share of their class.

_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_FEW_COSTS = (1.0, 10.0, 0.1)
_KERNEL_COSTS = (1.0, 10.0, 100.0, 1000.0)
_WIDTHS = (0.03, 0.125, 0.5, 2.0, 8.0, 32.0)
_SMALL = 300  # rows up to which every two folds are left out together
_NEIGHBOURS = (1, 3, 5, 9, 15, 25, 51)
_PAIRWISE = 12  # classes up to which planes between every two of them are tried
_TREE_COLUMNS = 10_000  # trees times columns that are affordable
_WEIGHTED = ("linear", "kernel", "gradient boosting")  # learners that can weigh classes


def score_planes(sample: Sample) -> Scored | None:
    """Cross-validate planes: hard margin where the classes are separable, and soft ones.

    Two classes: hinge and squared hinge. More: squared hinge against the rest, and hinge between
    every two classes, which is what kernel machines do.
    """
    squared = {"loss": "squared_hinge"}
    losses: list[tuple[dict[str, str], tuple[float, ...]]]
    if sample.wide:
        losses = [({**squared, "intercept": "penalized"}, _FEW_COSTS)]
    elif sample.n_classes == 2:
        losses = [({}, _COSTS), (squared, _FEW_COSTS)]
    else:
        losses = [(squared, _FEW_COSTS)]
        if sample.n_classes <= _PAIRWISE:
            losses.append(({"multi_class": "ovo"}, _FEW_COSTS))
    settings: list[Candidate] = []
    for scaled in sample.forms:
        if sample.separable and sample.X.shape[1] * sample.n_classes**2 <= 1000:
            settings.append(_candidate(sample, "hard margin", scaled))
        size = sample.spread(scaled)
        for loss, costs in losses:
            for cost in costs[1::2] if _is_rival(sample, scaled) else costs:
                C = _round(cost / size)
                settings.append(_candidate(sample, "linear", scaled, C=C, **loss))
    return _score("a plane", fit_planes, settings, sample)


def score_kernels(sample: Sample) -> Scored | None:
    """Cross-validate RBF kernel machines over costs and widths."""
    settings = []
    for scaled in sample.forms:
        size = sample.spread(scaled)
        for width in _WIDTHS[2:5] if _is_rival(sample, scaled) else _WIDTHS:
            gamma = _round(width / size)
            settings += [
                _candidate(sample, "kernel", scaled, C=cost, gamma=gamma) for cost in _KERNEL_COSTS
            ]
    return _score("an RBF kernel", fit_kernels, settings, sample)


def refine_kernel(sample: Sample, found: Scored) -> Candidate:
    """Return the best kernel machine around the best one found, at half the steps."""
    best = found.best
    C, gamma = best.get("C"), best.get("gamma")
    settings = [
        _candidate(sample, "kernel", best.scaled, C=_round(C * c), gamma=_round(gamma * g))
        for g in (1.0, 0.5, 2.0)
        for c in (0.3, 1.0, 3.0)
        if (c, g) != (1.0, 1.0)
    ]
    with threadpool_limits(1):
        inner = inner_scores(fit_kernels, settings, sample, len(sample.y) > _SMALL)
    if inner is None or inner.sum(axis=0).max() <= found.table[best] + 1e-9:
        return best
    return settings[int(inner.sum(axis=0).argmax())]


def score_networks(sample: Sample) -> Scored | None:
    """Cross-validate small networks with one hidden layer."""
    tried: list[dict[str, Any]] = [
        {"hidden_layer_sizes": (32,), "solver": "lbfgs", "alpha": alpha, "max_iter": 100}
        for alpha in (1.0, 0.01)
    ]
    if sample.X.shape[0] * sample.X.shape[1] > 60_000 or sample.n_classes > 3:
        tried = [{"hidden_layer_sizes": (64,), "learning_rate_init": 0.005, "max_iter": 40}]
    seed = sample.seed
    settings = [_candidate(sample, "network", True, **one, random_state=seed) for one in tried]
    return _score("a network", fit_each, settings, sample, ring=True)


def score_gradient_boosting(sample: Sample) -> Scored | None:
    """Cross-validate boosted trees, the yardstick from outside the ladder.

    With many columns and classes, fewer trees that learn faster have to do.
    """
    n_trees = sample.X.shape[1] * (1 if sample.n_classes == 2 else sample.n_classes)
    count = int(np.clip(_TREE_COLUMNS / n_trees, 10, 100))
    faster: dict[str, Any] = {}
    if count < 100:
        faster = {"max_iter": count, "learning_rate": _round(0.1 * np.sqrt(100 / count))}
    settings = [_candidate(sample, "gradient boosting", False, **faster, random_state=0)]
    return _score("gradient boosting", fit_each, settings, sample)


def score_neighbours(sample: Sample) -> Scored | None:
    """Cross-validate k nearest neighbours."""
    settings = [
        _candidate(sample, "k-NN", scaled, n_neighbors=k)
        for scaled in sample.forms
        for k in _NEIGHBOURS
        if k <= len(sample.y) // 2
    ]
    return _score("k-NN", fit_neighbours, settings, sample)


def score_nearest(sample: Sample, scaled: bool) -> Scored | None:
    """Cross-validate the single nearest neighbour, whose error brackets the least possible."""
    settings = [_candidate(sample, "k-NN", scaled, n_neighbors=1)]
    return _score("1-NN", fit_neighbours, settings, sample)


def score_naive_bayes(sample: Sample) -> Scored | None:
    """Cross-validate naive Bayes: multinomial for wide rows that count, else Gaussian."""
    prior: dict[str, Any] = {}
    if not sample.wide:
        if _is_balanced(sample):
            prior = {"priors": (1.0 / sample.n_classes,) * sample.n_classes}
        settings = [_candidate(sample, "Gaussian naive Bayes", False, **prior)]
    elif sample.X.min() < 0:
        return None
    else:
        prior = {"fit_prior": False} if _is_balanced(sample) else {}
        settings = [
            _candidate(sample, "multinomial naive Bayes", False, alpha=alpha, **prior)
            for alpha in (1.0, 0.1, 0.01)
        ]
    return _score("naive Bayes", fit_each, settings, sample)


def _round(value: float) -> float:
    """Return the value to two digits: more would be noise in a recommendation."""
    return float(f"{value:.1e}")


def _is_rival(sample: Sample, scaled: bool) -> bool:
    """Return whether these are the rows as they are, tried beside scaled ones."""
    return sample.uneven and not scaled


def _is_balanced(sample: Sample) -> bool:
    return sample.metric.name == "balanced_accuracy"


def _candidate(sample: Sample, kind: str, scaled: bool, **settings: Any) -> Candidate:
    if kind in _WEIGHTED and _is_balanced(sample):
        settings["class_weight"] = "balanced"
    return Candidate(kind, tuple(settings.items()), scaled, sample.sparse, sample.wide)


def _score(
    name: str, learn: FoldLearner, settings: list[Candidate], sample: Sample, ring: bool = False
) -> Scored | None:
    with threadpool_limits(1):  # the matrices are small: threads would only wait for each other
        return cross_validate(name, learn, settings, sample, ring or len(sample.y) > _SMALL)
