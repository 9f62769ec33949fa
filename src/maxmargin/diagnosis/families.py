"""The families of rules that are compared, and the settings that each is tried with.

Costs and widths are relative to the spread of the rows. Where the metric is balanced accuracy,
every learner that can weighs rows by the inverse share of their class.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.diagnosis.cross_validation import (
    Scored,
    cross_validate,
    inner_scores,
    score_held_out,
)
from maxmargin.diagnosis.inputs import Sample
from maxmargin.diagnosis.learners import (
    Candidate,
    FoldLearner,
    KernelMachines,
    Learners,
    Neighbours,
    PlaneLearners,
    WidePlaneLearners,
)

_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_FEW_COSTS = (1.0, 10.0, 0.1)
_KERNEL_COSTS = (1.0, 10.0, 100.0, 1000.0)
_WIDTHS = (0.03, 0.125, 0.5, 2.0, 8.0, 32.0)
_SMALL = 300  # rows up to which every two folds are left out together
_NEIGHBOURS = (1, 3, 5, 9, 15, 25, 51)
_PAIRWISE = 12  # classes up to which planes between every two of them are tried
_TREE_COLUMNS = 10_000  # trees times columns that are affordable

Settings = tuple[tuple[str, Any], ...]


def score_planes(sample: Sample, separable: bool) -> Scored | None:
    """Cross-validate planes: hard margin where the classes are separable, and soft ones.

    Two classes: hinge and squared hinge. More: squared hinge against the rest, and hinge between
    every two classes, which is what kernel machines do.
    """
    settings: list[Candidate] = []
    for scaled in sample.forms:
        if separable and sample.X.shape[1] * sample.n_classes**2 <= 1000:
            settings.append(_candidate(sample, "hard margin", (), scaled))
        size = sample.spread(scaled)
        rival = scaled is False and sample.uneven  # rows as they are, beside scaled ones
        for losses, costs in _losses(sample):
            for cost in costs[1::2] if rival else costs:
                chosen = (("C", rounded(cost / size)), *losses, *_balance(sample))
                settings.append(_candidate(sample, "linear", chosen, scaled))
    machine: FoldLearner = WidePlaneLearners(sample) if sample.wide else PlaneLearners(sample)
    return _score("a plane", machine, settings, sample)


def _losses(sample: Sample) -> list[tuple[Settings, tuple[float, ...]]]:
    """Return losses and ways to tell several classes apart, each with its costs."""
    squared = ("loss", "squared_hinge")
    if sample.wide:
        return [((squared, ("intercept", "penalized")), _FEW_COSTS)]
    if sample.n_classes == 2:
        return [((), _COSTS), ((squared,), _FEW_COSTS)]
    found: list[tuple[Settings, tuple[float, ...]]] = [((squared,), _FEW_COSTS)]
    if sample.n_classes <= _PAIRWISE:
        found.append(((("multi_class", "ovo"),), _FEW_COSTS))
    return found


def score_kernels(sample: Sample) -> Scored | None:
    """Cross-validate RBF kernel machines over costs and widths."""
    settings = []
    for scaled in sample.forms:
        size = sample.spread(scaled)
        rival = scaled is False and sample.uneven
        for width in _WIDTHS[2:5] if rival else _WIDTHS:
            for cost in _KERNEL_COSTS:
                chosen = (("C", cost), ("gamma", rounded(width / size)), *_balance(sample))
                settings.append(_candidate(sample, "kernel", chosen, scaled))
    return _score("an RBF kernel", KernelMachines(sample), settings, sample)


def refine_kernel(sample: Sample, found: Scored) -> Candidate:
    """Return the best kernel machine around the best one found, at half the steps."""
    from threadpoolctl import threadpool_limits

    best = found.best
    C, gamma = best.get("C"), best.get("gamma")
    settings = [
        _candidate(
            sample,
            "kernel",
            (("C", rounded(C * c)), ("gamma", rounded(gamma * g)), *_balance(sample)),
            best.scaled,
        )
        for g in (1.0, 0.5, 2.0)
        for c in (0.3, 1.0, 3.0)
        if (c, g) != (1.0, 1.0)
    ]
    machine, ring = KernelMachines(sample), len(sample.y) > _SMALL
    with threadpool_limits(1):
        inner = inner_scores(machine, settings, sample.metric, sample.folds, sample.over, ring)
    if inner is None or inner.sum(axis=0).max() <= found.table[best] + 1e-9:
        return best
    return settings[int(inner.sum(axis=0).argmax())]


def score_networks(sample: Sample, seed: int) -> Scored | None:
    """Cross-validate small networks with one hidden layer."""
    shared = (("max_iter", 100), ("random_state", seed))
    if sample.X.shape[0] * sample.X.shape[1] > 60_000 or sample.n_classes > 3:
        sizes: tuple[Settings, ...] = (
            (("hidden_layer_sizes", (64,)), ("learning_rate_init", 0.005), ("max_iter", 40),
             ("random_state", seed)),
        )  # fmt: skip
    else:
        sizes = tuple(
            (("hidden_layer_sizes", (32,)), ("solver", "lbfgs"), ("alpha", alpha), *shared)
            for alpha in (1.0, 0.01)
        )
    settings = [_candidate(sample, "network", chosen, True) for chosen in sizes]
    return _score("a network", Learners(sample), settings, sample, ring=True)


def score_gradient_boosting(sample: Sample) -> Scored | None:
    """Cross-validate boosted trees, the yardstick from outside the ladder.

    With many columns and classes, fewer trees that learn faster have to do.
    """
    n_trees = sample.X.shape[1] * (1 if sample.n_classes == 2 else sample.n_classes)
    count = int(np.clip(_TREE_COLUMNS / n_trees, 10, 100))
    chosen: Settings = (("random_state", 0), *_balance(sample))
    if count < 100:
        rate = rounded(0.1 * np.sqrt(100 / count))
        chosen = (("max_iter", count), ("learning_rate", rate), *chosen)
    settings = [_candidate(sample, "gradient boosting", chosen, False)]
    return _score("gradient boosting", Learners(sample), settings, sample)


def score_neighbours(sample: Sample) -> Scored | None:
    """Cross-validate k nearest neighbours."""
    settings = [
        _candidate(sample, "k-NN", (("n_neighbors", k),), scaled)
        for scaled in sample.forms
        for k in _NEIGHBOURS
        if k <= len(sample.y) // 2
    ]
    return _score("k-NN", Neighbours(sample), settings, sample)


def score_nearest(sample: Sample, scaled: bool) -> Scored | None:
    """Cross-validate the single nearest neighbour, whose error brackets the least possible."""
    settings = [_candidate(sample, "k-NN", (("n_neighbors", 1),), scaled)]
    return _score("1-NN", Neighbours(sample), settings, sample)


def score_naive_bayes(sample: Sample) -> Scored | None:
    """Cross-validate naive Bayes: multinomial for wide rows that count, else Gaussian."""
    if not sample.wide:
        equal = (1.0 / sample.n_classes,) * sample.n_classes
        chosen: Settings = (("priors", equal),) if _balance(sample) else ()
        settings = [_candidate(sample, "Gaussian naive Bayes", chosen, False)]
        return _score("naive Bayes", Learners(sample), settings, sample)
    if sample.X.min() < 0:
        return None
    prior: Settings = (("fit_prior", False),) if _balance(sample) else ()
    settings = [
        _candidate(sample, "multinomial naive Bayes", (("alpha", alpha), *prior), False)
        for alpha in (1.0, 0.1, 0.01)
    ]
    return _score("naive Bayes", Learners(sample), settings, sample)


def rounded(value: float) -> float:
    """Return the value to two digits: more would be noise in a recommendation.

    Examples
    --------
    >>> rounded(0.012345)
    0.012
    """
    return float(f"{value:.1e}")


def _balance(sample: Sample) -> Settings:
    balanced = sample.metric.name == "balanced_accuracy"
    return (("class_weight", "balanced"),) if balanced else ()


def _candidate(sample: Sample, kind: str, settings: Settings, scaled: bool) -> Candidate:
    return Candidate(kind, settings, scaled, sp.issparse(sample.X) or sample.sparse)


def _score(
    name: str, machine: FoldLearner, settings: list[Candidate], sample: Sample, ring: bool = False
) -> Scored | None:
    from threadpoolctl import threadpool_limits

    ring = ring or len(sample.y) > _SMALL
    with threadpool_limits(1):  # the matrices are small: threads would only wait for each other
        if sample.y_fresh is not None:
            return score_held_out(name, machine, settings, sample, ring)
        return cross_validate(
            name, machine, settings, sample.metric, sample.folds, sample.over, ring
        )
