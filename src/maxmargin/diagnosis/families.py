"""The families of rules that are compared, and the settings that each is tried with.

Costs and widths are relative to the spread of the rows. Where the metric is balanced accuracy,
every learner that can weighs rows by the inverse share of their class.
"""

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from maxmargin.diagnosis.cross_validation import Scored, cross_validate, inner_scores
from maxmargin.diagnosis.inputs import Sample
from maxmargin.diagnosis.learners import (
    Candidate,
    FoldLearner,
    fit_each,
    fit_kernels,
    fit_neighbours,
    fit_planes,
)

_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_FEW_COSTS = (1.0, 10.0, 0.1)
_KERNEL_COSTS = (1.0, 10.0, 100.0, 1000.0)
_WIDTHS = (0.03, 0.125, 0.5, 2.0, 8.0, 32.0)
_SMALL = 300  # rows up to which every two folds are left out together
_NEIGHBOURS = (1, 3, 5, 9, 15, 25, 51)
_PAIRWISE = 12  # classes up to which planes between every two of them are tried
_TREE_COLUMNS = 10_000  # trees times columns that are affordable
_WEIGHTED = ("linear", "kernel", "gradient boosting")  # learners that can weigh classes


def score_planes(sample: Sample, separable: bool) -> Scored | None:
    """Cross-validate planes: hard margin where the classes are separable, and soft ones.

    Two classes: hinge and squared hinge. More: squared hinge against the rest, and hinge between
    every two classes, which is what kernel machines do.
    """
    settings: list[Candidate] = []
    for scaled in sample.forms:
        if separable and sample.X.shape[1] * sample.n_classes**2 <= 1000:
            settings.append(_candidate(sample, "hard margin", scaled))
        size = sample.spread(scaled)
        for loss, costs in _losses(sample):
            for cost in costs[1::2] if _is_rival(sample, scaled) else costs:
                C = rounded(cost / size)
                settings.append(_candidate(sample, "linear", scaled, C=C, **loss))
    return _score("a plane", fit_planes(sample), settings, sample)


def _losses(sample: Sample) -> list[tuple[dict[str, str], tuple[float, ...]]]:
    """Return losses and ways to tell several classes apart, each with its costs."""
    squared = {"loss": "squared_hinge"}
    if sample.wide:
        return [({**squared, "intercept": "penalized"}, _FEW_COSTS)]
    if sample.n_classes == 2:
        return [({}, _COSTS), (squared, _FEW_COSTS)]
    pairwise = [({"multi_class": "ovo"}, _FEW_COSTS)] if sample.n_classes <= _PAIRWISE else []
    return [(squared, _FEW_COSTS), *pairwise]


def score_kernels(sample: Sample) -> Scored | None:
    """Cross-validate RBF kernel machines over costs and widths."""
    settings = []
    for scaled in sample.forms:
        size = sample.spread(scaled)
        for width in _WIDTHS[2:5] if _is_rival(sample, scaled) else _WIDTHS:
            gamma = rounded(width / size)
            settings += [
                _candidate(sample, "kernel", scaled, C=cost, gamma=gamma) for cost in _KERNEL_COSTS
            ]
    return _score("an RBF kernel", fit_kernels(sample), settings, sample)


def refine_kernel(sample: Sample, found: Scored) -> Candidate:
    """Return the best kernel machine around the best one found, at half the steps."""
    best = found.best
    C, gamma = best.get("C"), best.get("gamma")
    settings = [
        _candidate(sample, "kernel", best.scaled, C=rounded(C * c), gamma=rounded(gamma * g))
        for g in (1.0, 0.5, 2.0)
        for c in (0.3, 1.0, 3.0)
        if (c, g) != (1.0, 1.0)
    ]
    with threadpool_limits(1):
        inner = inner_scores(fit_kernels(sample), settings, sample, len(sample.y) > _SMALL)
    if inner is None or inner.sum(axis=0).max() <= found.table[best] + 1e-9:
        return best
    return settings[int(inner.sum(axis=0).argmax())]


def score_networks(sample: Sample, seed: int) -> Scored | None:
    """Cross-validate small networks with one hidden layer."""
    tried: list[dict[str, Any]] = [
        {"hidden_layer_sizes": (32,), "solver": "lbfgs", "alpha": alpha, "max_iter": 100}
        for alpha in (1.0, 0.01)
    ]
    if sample.X.shape[0] * sample.X.shape[1] > 60_000 or sample.n_classes > 3:
        tried = [{"hidden_layer_sizes": (64,), "learning_rate_init": 0.005, "max_iter": 40}]
    settings = [_candidate(sample, "network", True, **one, random_state=seed) for one in tried]
    return _score("a network", fit_each(sample), settings, sample, ring=True)


def score_gradient_boosting(sample: Sample) -> Scored | None:
    """Cross-validate boosted trees, the yardstick from outside the ladder.

    With many columns and classes, fewer trees that learn faster have to do.
    """
    n_trees = sample.X.shape[1] * (1 if sample.n_classes == 2 else sample.n_classes)
    count = int(np.clip(_TREE_COLUMNS / n_trees, 10, 100))
    faster: dict[str, Any] = {}
    if count < 100:
        faster = {"max_iter": count, "learning_rate": rounded(0.1 * np.sqrt(100 / count))}
    settings = [_candidate(sample, "gradient boosting", False, **faster, random_state=0)]
    return _score("gradient boosting", fit_each(sample), settings, sample)


def score_neighbours(sample: Sample) -> Scored | None:
    """Cross-validate k nearest neighbours."""
    settings = [
        _candidate(sample, "k-NN", scaled, n_neighbors=k)
        for scaled in sample.forms
        for k in _NEIGHBOURS
        if k <= len(sample.y) // 2
    ]
    return _score("k-NN", fit_neighbours(sample), settings, sample)


def score_nearest(sample: Sample, scaled: bool) -> Scored | None:
    """Cross-validate the single nearest neighbour, whose error brackets the least possible."""
    settings = [_candidate(sample, "k-NN", scaled, n_neighbors=1)]
    return _score("1-NN", fit_neighbours(sample), settings, sample)


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
    return _score("naive Bayes", fit_each(sample), settings, sample)


def rounded(value: float) -> float:
    """Return the value to two digits: more would be noise in a recommendation.

    Examples
    --------
    >>> rounded(0.012345)
    0.012
    """
    return float(f"{value:.1e}")


def _is_rival(sample: Sample, scaled: bool) -> bool:
    """Return whether these are the rows as they are, tried beside scaled ones."""
    return sample.uneven and not scaled


def _is_balanced(sample: Sample) -> bool:
    return sample.metric.name == "balanced_accuracy"


def _candidate(sample: Sample, kind: str, scaled: bool, **settings: Any) -> Candidate:
    if kind in _WEIGHTED and _is_balanced(sample):
        settings["class_weight"] = "balanced"
    return Candidate(kind, tuple(settings.items()), scaled, sample.sparse)


def _score(
    name: str, learn: FoldLearner, settings: list[Candidate], sample: Sample, ring: bool = False
) -> Scored | None:
    with threadpool_limits(1):  # the matrices are small: threads would only wait for each other
        return cross_validate(name, learn, settings, sample, ring or len(sample.y) > _SMALL)
