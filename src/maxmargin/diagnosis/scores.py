"""Cross-validated scores: planes, kernels, networks, neighbours and naive Bayes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.diagnosis.candidates import Candidate
from maxmargin.diagnosis.folds import Scored, inner_scores, nested
from maxmargin.diagnosis.sample import Sample, fitted_classes
from maxmargin.kernels import RBF

Ints = npt.NDArray[np.int64]

_COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_FEW_COSTS = (1.0, 10.0, 0.1)
_KERNEL_COSTS = (1.0, 10.0, 100.0, 1000.0)
_WIDTHS = (0.03, 0.125, 0.5, 2.0, 8.0, 32.0)
_SMALL = 300  # rows up to which every two folds are left out together
_NEIGHBOURS = (1, 3, 5, 9, 15, 25, 51)
_KERNEL_GAP = 1e-3  # relative: a smaller one would not predict better


class Learners:
    """Fits every setting by itself."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def predictions(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Ints]:
        """Return the classes that each setting predicts for the test rows."""
        found = []
        for setting in settings:
            X = self._sample.form(setting.scaled, setting.centred)
            learner = setting.learner()
            found.append(fitted_classes(learner, X[train], self._sample.y[train], X[test]))
        return found


class WidePlanes:
    """Fits planes to wide rows by LIBLINEAR, whose objective is that of the settings."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def predictions(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Ints]:
        """Return the classes that each setting predicts for the test rows."""
        from sklearn.svm import LinearSVC

        found = []
        for setting in settings:
            X = self._sample.form(setting.scaled)
            learner = LinearSVC(C=setting.get("C"), tol=1e-3, random_state=0)
            found.append(fitted_classes(learner, X[train], self._sample.y[train], X[test]))
        return found


class KernelMachines:
    """Fits kernel machines that share one matrix of kernel values for all folds and costs."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._key: Any = None
        self._votes: Any = None

    def predictions(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Ints]:
        """Return the classes that each setting predicts for the test rows."""
        costs = np.array([setting.get("C") for setting in settings])
        return list(self._on(settings[0]).predictions(costs, train, test, _KERNEL_GAP))

    def _on(self, setting: Candidate) -> Any:
        from maxmargin.model_selection.fold_votes import FoldVotes

        key = setting.scaled, setting.get("gamma")
        if key != self._key:
            sample, kernel = self._sample, RBF(gamma=key[1])
            self._votes = FoldVotes(kernel, sample.form(key[0]), sample.y, sample.folds)
            self._key = key
        return self._votes


class Neighbours:
    """Finds the nearest rows from one matrix of distances, for every number of neighbours."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._key: bool | None = None
        self._distances: Any = None

    def predictions(self, settings: Sequence[Candidate], train: Ints, test: Ints) -> list[Ints]:
        """Return the classes that each setting predicts for the test rows."""
        far, y = self._matrix(settings[0].scaled)[np.ix_(test, train)], self._sample.y[train]
        wanted = [min(setting.get("n_neighbors"), len(train)) for setting in settings]
        most = max(wanted)
        near = np.argpartition(far, most - 1, axis=1)[:, :most]
        order = np.argsort(np.take_along_axis(far, near, axis=1), axis=1, kind="stable")
        nearest = y[np.take_along_axis(near, order, axis=1)]
        votes = nearest[:, :, np.newaxis] == np.arange(self._sample.n_classes)
        counts = votes.cumsum(axis=1)
        return [counts[:, k - 1].argmax(axis=1) for k in wanted]

    def _matrix(self, scaled: bool) -> Any:
        from sklearn.metrics.pairwise import euclidean_distances

        if scaled is not self._key:
            self._distances = euclidean_distances(self._sample.form(scaled), squared=True)
            self._key = scaled
        return self._distances


def linear_scores(sample: Sample, separable: bool) -> Scored | None:
    """Cross-validate planes: hard margin where the classes are separable, and soft ones."""
    settings = []
    loss: tuple[tuple[str, Any], ...] = ()
    if sample.n_classes > 2 or sample.wide:
        loss = (("loss", "squared_hinge"),)
    if sample.wide:
        loss = (*loss, ("intercept", "penalized"))
    costs = _COSTS if sample.n_classes <= 4 and not sample.wide else _FEW_COSTS
    for scaled in sample.forms:
        if separable and sample.X.shape[1] * sample.n_classes**2 <= 1000:
            settings.append(_candidate(sample, "hard margin", (), scaled))
        size = sample.spread(scaled)
        plain = scaled is False and sample.uneven
        for cost in costs[1::2] if plain else costs:
            chosen = (("C", rounded(cost / size)), *loss)
            settings.append(_candidate(sample, "linear", chosen, scaled))
    machine = WidePlanes(sample) if sample.wide else Learners(sample)
    return _nested("a plane", machine, settings, sample)


def kernel_scores(sample: Sample) -> Scored | None:
    """Cross-validate RBF kernel machines over costs and widths."""
    settings = []
    for scaled in sample.forms:
        size = sample.spread(scaled)
        plain = scaled is False and sample.uneven
        for width in _WIDTHS[2:5] if plain else _WIDTHS:
            for cost in _KERNEL_COSTS:
                chosen = (("C", cost), ("gamma", rounded(width / size)))
                settings.append(_candidate(sample, "kernel", chosen, scaled))
    return _nested("an RBF kernel", KernelMachines(sample), settings, sample)


def refined(sample: Sample, found: Scored) -> Candidate:
    """Return the best kernel machine around the best one found, at half the steps."""
    from threadpoolctl import threadpool_limits

    best = found.best
    C, gamma = best.get("C"), best.get("gamma")
    settings = [
        _candidate(
            sample, "kernel", (("C", rounded(C * c)), ("gamma", rounded(gamma * g))), best.scaled
        )
        for g in (1.0, 0.5, 2.0)
        for c in (0.3, 1.0, 3.0)
        if (c, g) != (1.0, 1.0)
    ]
    ring = len(sample.y) > _SMALL
    with threadpool_limits(1):
        inner = inner_scores(
            KernelMachines(sample), settings, sample.y, sample.folds, sample.hurry, ring
        )
    if inner.sum(axis=0).max() <= found.table[best]:
        return best
    return settings[int(inner.sum(axis=0).argmax())]


def network_scores(sample: Sample, seed: int) -> Scored | None:
    """Cross-validate small networks with one hidden layer."""
    shared = (("max_iter", 100), ("random_state", seed))
    if sample.X.shape[0] * sample.X.shape[1] > 60_000 or sample.n_classes > 3:
        sizes: tuple[tuple[tuple[str, Any], ...], ...] = (
            (("hidden_layer_sizes", (64,)), ("learning_rate_init", 0.005), ("max_iter", 40),
             ("random_state", seed)),
        )  # fmt: skip
    else:
        sizes = tuple(
            (("hidden_layer_sizes", (32,)), ("solver", "lbfgs"), ("alpha", alpha), *shared)
            for alpha in (1.0, 0.01)
        )
    settings = [_candidate(sample, "network", chosen, True) for chosen in sizes]
    return _nested("a network", Learners(sample), settings, sample, ring=True)


def neighbour_scores(sample: Sample) -> Scored | None:
    """Cross-validate k nearest neighbours."""
    settings = [
        _candidate(sample, "k-NN", (("n_neighbors", k),), scaled)
        for scaled in sample.forms
        for k in _NEIGHBOURS
        if k <= len(sample.y) // 2
    ]
    return _nested("k-NN", Neighbours(sample), settings, sample)


def nearest_scores(sample: Sample, scaled: bool) -> Scored | None:
    """Cross-validate the single nearest neighbour, whose error brackets the least possible."""
    settings = [_candidate(sample, "k-NN", (("n_neighbors", 1),), scaled)]
    return _nested("1-NN", Neighbours(sample), settings, sample)


def bayes_scores(sample: Sample) -> Scored | None:
    """Cross-validate naive Bayes: multinomial for wide rows that count, else Gaussian."""
    if not sample.wide:
        settings = [_candidate(sample, "Gaussian naive Bayes", (), False)]
        return _nested("naive Bayes", Learners(sample), settings, sample)
    if sample.X.min() < 0:
        return None
    settings = [
        _candidate(sample, "multinomial naive Bayes", (("alpha", alpha),), False)
        for alpha in (1.0, 0.1, 0.01)
    ]
    return _nested("naive Bayes", Learners(sample), settings, sample)


def rounded(value: float) -> float:
    """Return the value to two digits: more would be noise in a recommendation.

    Examples
    --------
    >>> rounded(0.012345)
    0.012
    """
    return float(f"{value:.1e}")


def _candidate(sample: Sample, kind: str, settings: Any, scaled: bool) -> Candidate:
    return Candidate(kind, settings, scaled, sp.issparse(sample.X) or sample.sparse)


def _nested(
    name: str, machine: Any, settings: list[Candidate], sample: Sample, ring: bool = False
) -> Scored | None:
    from threadpoolctl import threadpool_limits

    ring = ring or len(sample.y) > _SMALL
    with threadpool_limits(1):  # the matrices are small: threads would only wait for each other
        return nested(
            name, machine, settings, sample.y, sample.folds, sample.hurry, sample.over, ring
        )
