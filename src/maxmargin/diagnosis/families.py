"""The families of rules that are compared: their settings, and their nested cross-validation.

``Ladder`` draws the rows that they are compared on, and asks the questions of either ladder.

To predict fold k without having seen it, settings are chosen by fits that leave out k and one more
fold j, scored on j. The same fits, scored on k, serve the choice for fold j. So K(K − 1)/2 fits of
each setting are a full nested cross-validation, and the K fits around a ring still score each
setting on two inner folds for every outer one. No label of a fold has any part in what predicts it.

What is fitted follows from numbers of rows and settings, never from the clock: when the time runs
out there is no answer (``OutOfTimeError``), rather than another one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.diagnosis.inputs import (
    DiagnosedTable,
    Sample,
    as_learnt,
    describe_columns,
    draw_rows,
    is_wide,
    measure_columns,
)
from maxmargin.diagnosis.learners import (
    Candidate,
    FoldLearner,
    fit_each,
    fit_kernels,
    fit_neighbours,
    fit_planes,
    learn_fold,
    score_fresh,
)
from maxmargin.diagnosis.result import Rung
from maxmargin.diagnosis.significance import LearningCurve, Metric, has_levelled
from maxmargin.runtime.clock import Clock, OutOfTimeError
from maxmargin.runtime.progress import progress

N_FOLDS = 5
_FRESH = 2  # times as many fresh rows as are cross-validated, on which families are compared
_MOST_FRESH = 10_000
_BEYOND_NOISE = 2.33  # standard deviations: by chance one time in a hundred


@dataclass(frozen=True, eq=False)
class Scored:
    """A family of rules after cross-validation."""

    name: str  # what it is called in sentences
    best: Candidate  # the setting with the best score over all inner folds
    scores: Floats  # of each class (columns) for rows not fitted to: out of fold, or fresh
    metric: Metric  # by which families are compared
    table: dict[Candidate, float]  # the mistakes of each setting, as the metric counts inner folds
    learn: FoldLearner
    chosen: tuple[Candidate, ...]  # the setting of each fold; all alike if there are fresh rows

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


class Ladder:
    """What both ladders have in common: rows, those drawn to compare learners, and answers.

    ``groups`` has the same number for equal rows; ``most`` is how many rows are cross-validated
    when there are 30 seconds.
    """

    def __init__(
        self, table: DiagnosedTable, groups: Ints, clock: Clock, rng: np.random.Generator, most: int
    ) -> None:
        self.table, self.groups, self.clock, self.rng = table, groups, clock, rng
        self.answers: list[Rung] = []
        size = max(100, int(most * np.sqrt(clock.max_time / 30.0)))
        self.rows = draw_rows(table.y, size, rng)
        self.columns = measure_columns(table.X, self.rows)
        self.messages = describe_columns(table, self.columns)
        self.sample: Sample

    def draw_sample(self, target: Any, metric: Any, seed: int = 0) -> None:
        """Draw folds, and others to score on if there are many, none equal to a row in a fold."""
        X, rows, wide = self.table.X, self.rows, is_wide(self.table.X)
        self.sample = Sample(
            X=as_learnt(X[rows], wide),
            y=target[rows],
            folds=make_folds(target[rows], self.groups[rows], self.rng),
            metric=metric,
            sparse=sp.issparse(X),
            wide=wide,
            uneven=self.columns.uneven,
            seed=seed,
            over=lambda: self.clock.over,
        )
        others = np.flatnonzero(~np.isin(self.groups, self.groups[rows]))
        if len(others) >= _FRESH * len(rows):
            fresh = others[draw_rows(self.table.y[others], _MOST_FRESH, self.rng)]
            self.sample.X_fresh, self.sample.y_fresh = as_learnt(X[fresh], wide), target[fresh]

    def ask(self, questions: Mapping[str, Callable[[], Rung]]) -> None:
        """Ask questions by their names, in order; each adds its rung, also if the time runs out."""
        with progress("Diagnosing", len(questions), unit="question", even=False) as bar:
            for done, (name, question) in enumerate(questions.items()):
                bar.update(done, note=name)
                try:
                    self.answers.append(question())
                except OutOfTimeError:
                    late = "the time ran out: raise max_time."
                    self.answers.append(Rung(name, late, ran=False, late=True))

    @property
    def n_compared(self) -> int:
        """How many rows families are compared by."""
        return len(self.sample.compared.y)

    @property
    def late(self) -> list[str]:
        """The questions that the time ran out for."""
        return [rung.name for rung in self.answers if rung.late]

    @property
    def run_out(self) -> str:
        """The same in a sentence."""
        *others, last = self.late
        missing = f"{', '.join(others)} and {last}" if others else last
        return f"the time ran out: raise max_time. Missing: {missing}."

    def describe_rows(self) -> list[str]:
        """Return which rows models were compared on, if not on all."""
        seen, n = len(self.rows), len(self.table.y)
        if self.sample.y_fresh is not None:
            fitted = f"Models were fitted to {seen} of {n} rows"
            return [f"{fitted}, and compared on {self.n_compared} others."]
        return [f"Models were cross-validated on {seen} of {n} rows."] if seen < n else []


def cross_validate(
    name: str, learn: FoldLearner, settings: Sequence[Candidate], sample: Sample, ring: bool
) -> Scored:
    """Cross-validate a family, choosing its setting inside.

    With ``ring``, each outer fold has two inner ones; otherwise all others. If there are fresh
    rows, all folds choose the setting together, and the fresh rows score it.
    """
    with threadpool_limits(1):  # the matrices are small: threads would only wait for each other
        inner = inner_mistakes(learn, settings, sample, ring)
        weight, total = sample.metric.weight, inner.sum(axis=0)
        table = dict(zip(settings, _rounded(total @ weight).tolist(), strict=True))
        best = _best_setting(settings, total, weight)
        chosen = tuple(_best_setting(settings, own, weight) for own in inner)
        if sample.y_fresh is not None:
            chosen = (best,) * len(inner)
        scores = _score_held_out(learn, chosen, sample)
    return Scored(name, best, scores, sample.compared, table, learn, chosen)


def _score_held_out(
    learn: FoldLearner, chosen: Sequence[Candidate], sample: Sample, share: float = 1.0
) -> Floats:
    """Return scores of each held-out row, by fits to a share of the others."""
    if sample.y_fresh is not None:
        return learn_fold(score_fresh, sample, [chosen[0]], (), share)[0]
    # Folds of one setting share its matrix.
    order = sorted(range(len(chosen)), key=lambda k: (chosen[k].scaled, repr(chosen[k].settings)))
    scores = np.empty((len(sample.y), sample.n_classes))
    for k in order:
        (scores[sample.folds == k],) = learn_fold(learn, sample, [chosen[k]], (k,), share)
    return scores


def draw_curve(found: Scored, sample: Sample) -> LearningCurve:
    """Fit a family to a quarter and to half of the rows as well."""
    with threadpool_limits(1):
        some = [_score_held_out(found.learn, found.chosen, sample, share) for share in (0.25, 0.5)]
    quarter, half = (scores.argmax(axis=1) != found.metric.y for scores in some)
    wrong = quarter, half, ~found.right
    fitted = len(sample.y) * (1.0 if sample.y_fresh is not None else 1 - 1 / N_FOLDS)
    rows = tuple(round(share * fitted) for share in (0.25, 0.5, 1.0))
    errors = tuple(1 - found.metric.score(~flags) for flags in wrong)
    return LearningCurve(found.name, rows, errors, has_levelled(*wrong, found.metric))


def _best_setting(settings: Sequence[Candidate], mistakes: Floats, weight: Floats) -> Candidate:
    """Return the setting with the fewest mistakes (in each class, a column), as weighed.

    Where columns are uneven, only a lead beyond noise is a reason not to scale them.
    """
    lost = _rounded(mistakes @ weight)
    forms = [[s for s, one in enumerate(settings) if one.scaled is form] for form in (True, False)]
    leaders = [min(form, key=lambda s: lost[s]) for form in forms if form]
    if len(leaders) == 1:
        return settings[leaders[0]]
    scaled, plain = leaders
    spread = np.sqrt(weight**2 @ (mistakes[scaled] + mistakes[plain] + 1))
    return settings[plain if lost[scaled] - lost[plain] > _BEYOND_NOISE * spread else scaled]


def _rounded(lost: Floats) -> Floats:
    """Return what is equal as equal, whatever the order of the sums."""
    return np.asarray(np.round(lost, 12))


def inner_mistakes(
    learn: FoldLearner, settings: Sequence[Candidate], sample: Sample, ring: bool
) -> Floats:
    """Count mistakes on inner folds: for each outer fold, setting and class.

    Zeros if there is nothing to choose.
    """
    folds = sample.folds
    n_folds = int(folds.max()) + 1
    inner = np.zeros((n_folds, len(settings), sample.n_classes))
    if len(settings) == 1:
        return inner
    pairs = list(combinations(range(n_folds), 2))
    if ring and n_folds > 2:
        pairs = [(k, (k + 1) % n_folds) for k in range(n_folds)]
    alike = groupby(range(len(settings)), key=lambda s: settings[s].shared)
    for group in [list(group) for _, group in alike]:
        for j, k in pairs:
            found = learn_fold(learn, sample, [settings[s] for s in group], (j, k))
            test = np.flatnonzero((folds == j) | (folds == k))
            for s, scores in zip(group, found, strict=True):
                lost = sample.metric.lost(scores, test)
                inner[k, s] += lost[folds[test] == j].sum(axis=0)
                inner[j, s] += lost[folds[test] == k].sum(axis=0)
    return inner


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


def _candidate(sample: Sample, kind: str, scaled: bool, **settings: Any) -> Candidate:
    if kind in _WEIGHTED and _is_balanced(sample):
        settings["class_weight"] = "balanced"
    return Candidate(kind, tuple(settings.items()), scaled, sample.sparse, sample.wide)


def two_digits(value: float) -> float:
    """Return the value to two digits: more would be noise in a recommendation."""
    return float(f"{value:.1e}")


def _is_rival(sample: Sample, scaled: bool) -> bool:
    """Return whether these are the rows as they are, tried beside scaled ones."""
    return sample.uneven and not scaled


def _is_balanced(sample: Sample) -> bool:
    return sample.metric.name == "balanced_accuracy"


def _planes(sample: Sample) -> list[Candidate]:
    """Hard margins where the classes are separable, and soft ones.

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
                C = two_digits(cost / size)
                settings.append(_candidate(sample, "linear", scaled, C=C, **loss))
    return settings


def _kernels(sample: Sample) -> list[Candidate]:
    return [
        _candidate(sample, "kernel", scaled, C=cost, gamma=two_digits(width / size))
        for scaled, size in ((scaled, sample.spread(scaled)) for scaled in sample.forms)
        for width in (_WIDTHS[2:5] if _is_rival(sample, scaled) else _WIDTHS)
        for cost in _KERNEL_COSTS
    ]


def _neighbours(sample: Sample) -> list[Candidate]:
    return [
        _candidate(sample, "k-NN", scaled, n_neighbors=k)
        for scaled in sample.forms
        for k in _NEIGHBOURS
        if k <= len(sample.y) // 2
    ]


def _naive_bayes(sample: Sample) -> list[Candidate]:
    """Multinomial for wide rows that count, else Gaussian; none for wide rows that do not."""
    if not sample.wide:
        priors = (1.0 / sample.n_classes,) * sample.n_classes
        prior: dict[str, Any] = {"priors": priors} if _is_balanced(sample) else {}
        return [_candidate(sample, "Gaussian naive Bayes", False, **prior)]
    if sample.X.min() < 0:
        return []
    prior = {"fit_prior": False} if _is_balanced(sample) else {}
    return [
        _candidate(sample, "multinomial naive Bayes", False, alpha=alpha, **prior)
        for alpha in (1.0, 0.1, 0.01)
    ]


def _networks(sample: Sample) -> list[Candidate]:
    """Small networks with one hidden layer."""
    tried: list[dict[str, Any]] = [
        {"hidden_layer_sizes": (32,), "solver": "lbfgs", "alpha": alpha, "max_iter": 100}
        for alpha in (1.0, 0.01)
    ]
    if sample.X.shape[0] * sample.X.shape[1] > 60_000 or sample.n_classes > 3:
        tried = [{"hidden_layer_sizes": (64,), "learning_rate_init": 0.005, "max_iter": 40}]
    return [_candidate(sample, "network", True, **one, random_state=sample.seed) for one in tried]


def _boosted_trees(sample: Sample) -> list[Candidate]:
    """With many columns and classes, fewer trees that learn faster have to do."""
    n_trees = sample.X.shape[1] * (1 if sample.n_classes == 2 else sample.n_classes)
    count = int(np.clip(_TREE_COLUMNS / n_trees, 10, 100))
    faster: dict[str, Any] = {}
    if count < 100:
        faster = {"max_iter": count, "learning_rate": two_digits(0.1 * np.sqrt(100 / count))}
    return [_candidate(sample, "gradient boosting", False, **faster, random_state=0)]


class Family(NamedTuple):
    """A kind of rule: what it is called, what is tried of it, and what is offered if nothing is."""

    name: str
    rung: str  # the question that it is tried for
    words: str  # what it is called in sentences
    learn: FoldLearner
    settings: Callable[[Sample], list[Candidate]]
    offered: Candidate
    flexible: bool = True  # with enough rows it learns any boundary
    dense: bool = False  # needs rows that are written out

    def score(self, sample: Sample) -> Scored | None:
        """Cross-validate it; None if no setting suits the rows."""
        settings = self.settings(sample)
        ring = self.name == "networks" or len(sample.y) > _SMALL
        return cross_validate(self.words, self.learn, settings, sample, ring) if settings else None


TREES = "gradient boosting"
_NETWORK = Candidate("network", (("hidden_layer_sizes", (64,)),), True)
_BAYES = Candidate("Gaussian naive Bayes")
# The ladder from the simplest on; gradient boosting, the yardstick from outside, comes last.
FAMILIES = (
    Family("planes", "planes", "a plane", fit_planes, _planes, Candidate("linear"), False),
    Family("kernels", "kernels", "an RBF kernel", fit_kernels, _kernels, Candidate("kernel")),
    Family("k-NN", "local rules", "k-NN", fit_neighbours, _neighbours, Candidate("k-NN")),
    Family("naive Bayes", "local rules", "naive Bayes", fit_each, _naive_bayes, _BAYES, False),
    Family("networks", "networks", "a network", fit_each, _networks, _NETWORK, dense=True),
    Family(TREES, TREES, TREES, fit_each, _boosted_trees, Candidate(TREES), dense=True),
)


def refine_kernel(sample: Sample, found: Scored) -> Candidate:
    """Return the best kernel machine around the best one found, at half the steps."""
    best = found.best
    C, gamma = best.get("C"), best.get("gamma")
    settings = [
        _candidate(sample, "kernel", best.scaled, C=two_digits(C * c), gamma=two_digits(gamma * g))
        for g in (1.0, 0.5, 2.0)
        for c in (0.3, 1.0, 3.0)
        if (c, g) != (1.0, 1.0)
    ]
    try:
        with threadpool_limits(1):
            inner = inner_mistakes(fit_kernels, settings, sample, len(sample.y) > _SMALL)
    except OutOfTimeError:
        return best
    lost = _rounded(inner.sum(axis=0) @ sample.metric.weight)
    return settings[int(lost.argmin())] if lost.min() < found.table[best] - 1e-9 else best
