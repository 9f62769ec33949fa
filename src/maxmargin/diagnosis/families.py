"""The families of rules that are compared: their settings, and their nested cross-validation.

``Ladder`` draws the rows that they are compared on, and asks the questions of either ladder.

To predict fold k without having seen it, settings are chosen by fits that leave out k and one more
fold j, scored on j. The same fits, scored on k, serve the choice for fold j. So the K fits around a
ring score each setting on two inner folds for every outer one. No label of a fold has any part in
what predicts it.

What is fitted follows from numbers of rows and settings, never from the clock: when the time runs
out there is no answer (``OutOfTimeError``), rather than another one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.diagnosis.inputs import (
    DENSE_COLUMNS,
    DiagnosedTable,
    Sample,
    describe_columns,
    draw_rows,
    measure_columns,
)
from maxmargin.diagnosis.learners import (
    Candidate,
    FoldLearner,
    fit_settings,
    learn_fold,
)
from maxmargin.diagnosis.result import Diagnosis, Rung
from maxmargin.diagnosis.significance import (
    Comparison,
    LearningCurve,
    Metric,
    compare,
    has_levelled,
)
from maxmargin.inspection.code import describe
from maxmargin.runtime.clock import Clock, OutOfTimeError
from maxmargin.runtime.progress import progress

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Scored:
    """A family of rules after cross-validation."""

    name: str  # what it is called in sentences
    best: Candidate  # the setting with the best score over all inner folds
    scores: Floats  # of each class (columns), out of fold
    metric: Metric  # by which families are compared
    chosen: tuple[Candidate, ...]  # the setting of each fold

    @property
    def right(self) -> Flags:
        """Where the class with the best score is the true one."""
        return np.asarray(self.scores.argmax(axis=1) == self.metric.y)

    @property
    def score(self) -> float:
        """Score by the metric, on rows that were not fitted to."""
        return self.metric.score(self.right)

    def __str__(self) -> str:
        n = len(self.right)
        if self.metric.name == "accuracy":
            return f"{self.name} is right on {self.score:.2%} of {n} rows"
        return f"{self.name} has a balanced accuracy of {self.score:.2%} on {n} rows"

    def beside(self, rival: "Scored", tests: int) -> Comparison:
        """Compare right answers, row by row."""
        return compare((self.name, self.right), (rival.name, rival.right), self.metric, tests)

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

    families: "tuple[ModelFamily, ...]" = ()
    needed: tuple[str, ...] = ("planes", "kernels")  # else the verdict could be another one

    def __init__(
        self, table: DiagnosedTable, groups: Ints, clock: Clock, rng: np.random.Generator, most: int
    ) -> None:
        self.table, self.groups, self.clock, self.rng = table, groups, clock, rng
        self.answers: list[Rung] = []
        self.scored: dict[str, Any] = {}  # families that were tried, by name
        self.gain: dict[str, Any] = {}  # how each compares with the best before it
        size = max(100, int(most * np.sqrt(clock.max_time / 30.0)))
        self.rows = draw_rows(table.y, size, rng)
        self.columns = measure_columns(table.X)
        self.messages = describe_columns(table, self.columns)
        self.sample: Sample

    def draw_sample(self, target: Any, metric: Any, seed: int = 0) -> None:
        """Draw folds of the rows to compare learners on."""
        X, rows = self.table.X, self.rows
        self.sample = Sample(
            X=X[rows],
            y=target[rows],
            folds=make_folds(target[rows], self.groups[rows], self.rng),
            metric=metric,
            sparse=self.table.sparse,
            uneven=self.columns.uneven,
            seed=seed,
            over=lambda: self.clock.over,
        )

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

    # ------------------------------------------------------------ rules, cross-validated

    @property
    def trials(self) -> dict[str, Callable[[], Rung]]:
        """The questions that try a family, by name."""
        return {family.name: partial(self._try, family) for family in self.families}

    def _try(self, family: "ModelFamily") -> Rung:
        """Cross-validate a family, and compare it with the best below."""
        name, rival, gain = family.name, self.chosen, None
        if obstacle := self.obstacle(family):
            return Rung.skipped(name, obstacle)
        settings = family.settings(self.sample)
        self.scored[name] = found = self.keep(cross_validate(family.words, settings, self.sample))
        message, evidence = str(found), found.to_dict()
        if rival:
            self.gain[name] = gain = self._compare(name, rival)
            message, evidence = f"{message}; {gain}", {**evidence, "comparison": gain.to_dict()}
        return Rung(name, f"{message}.", True, len(self.rows), evidence, gain)

    def keep(self, found: Scored) -> Any:
        """Return what is kept of a family."""
        return found

    def obstacle(self, family: "ModelFamily") -> str:
        """Return why a family is not tried, "" if it is."""
        if family.dense and self.table.X.shape[1] > DENSE_COLUMNS:
            return f"more than {DENSE_COLUMNS} columns take too long."
        if family.name == TREES and self.sample.wide:
            return "the rows are too sparse for it."
        return ""

    def _compare(self, name: str, rival: str) -> Any:
        tests = 1 if name == "kernels" else 2  # the rules that are not large margins
        return self.scored[name].beside(self.scored[rival], tests)

    @property
    def chosen(self) -> str:
        """The rung of the ladder to use: the first, unless a later one is better beyond noise."""
        current = ""
        for name in (family.name for family in self.families if family.name in self.scored):
            if name != TREES and (not current or self._compare(name, current).significant):
                current = name
        return current

    @property
    def outside(self) -> bool:
        """Whether gradient boosting is better than the ladder's best beyond noise."""
        return TREES in self.gain and self.gain[TREES].significant

    @property
    def winner(self) -> str:
        """What to use: the rung of the ladder, unless gradient boosting is better."""
        return TREES if self.outside else self.chosen

    # ------------------------------------------------------------ what it all amounts to

    @property
    def late(self) -> list[str]:
        """The questions that the time ran out for."""
        return [rung.name for rung in self.answers if rung.late]

    @property
    def unfinished(self) -> bool:
        """Whether the time ran out before a question that the verdict rests on."""
        return any(name in self.needed for name in self.late)

    @property
    def run_out(self) -> str:
        """The late questions in a sentence."""
        *others, last = self.late
        missing = f"{', '.join(others)} and {last}" if others else last
        return f"the time ran out: raise max_time. Missing: {missing}."

    def describe_rows(self, verdict: str) -> list[str]:
        """Return which rows models were compared on, if not on all, and what is missing."""
        seen, n, found = len(self.rows), len(self.table.y), []
        if self.scored and seen < n:
            found.append(f"Models were cross-validated on {seen} of {n} rows.")
        if self.late and verdict != "undecided":
            found.append(f"T{self.run_out[1:]}")
        return found

    def conclude(self, candidate: Candidate, because: str, **found: Any) -> Diagnosis:
        """Return the diagnosis, given the verdict and what goes with it."""
        return Diagnosis(
            candidate=candidate,
            advice=f"{describe(candidate.estimator())}: {because}",
            rungs=tuple(self.answers),
            n_rows=self.table.X.shape[0],
            n_features=self.table.X.shape[1],
            seconds=self.clock.seconds,
            **found,
        )


def cross_validate(
    name: str,
    settings: Sequence[Candidate],
    sample: Sample,
    learn: FoldLearner = fit_settings,
) -> Scored:
    """Cross-validate a family, choosing its setting inside."""
    with threadpool_limits(1):  # the matrices are small: threads would only wait for each other
        # Rounded, so that what is equal is so in any order of the sums.
        lost = np.round(inner_mistakes(learn, settings, sample) @ sample.metric.weight, 12)
        best = settings[int(lost.sum(axis=0).argmin())]
        chosen = tuple(settings[s] for s in lost.argmin(axis=1))
        scores = _score_held_out(learn, chosen, sample)
    return Scored(name, best, scores, sample.metric, chosen)


def _score_held_out(
    learn: FoldLearner, chosen: Sequence[Candidate], sample: Sample, share: float = 1.0
) -> Floats:
    """Return scores of each held-out row, by fits to a share of the others."""
    # Folds of one setting share its matrix.
    order = sorted(range(len(chosen)), key=lambda k: repr(chosen[k]))
    scores = np.empty((len(sample.y), sample.n_classes))
    for k in order:
        (scores[sample.folds == k],) = learn_fold(learn, sample, [chosen[k]], (k,), share)
    return scores


def draw_curve(found: Scored, sample: Sample) -> LearningCurve:
    """Fit a family to a quarter and to half of the rows as well."""
    with threadpool_limits(1):
        some = [_score_held_out(fit_settings, found.chosen, sample, s) for s in (0.25, 0.5)]
    quarter, half = (scores.argmax(axis=1) != found.metric.y for scores in some)
    wrong = quarter, half, ~found.right
    fitted = len(sample.y) * (1 - 1 / N_FOLDS)
    rows = tuple(round(share * fitted) for share in (0.25, 0.5, 1.0))
    errors = tuple(1 - found.metric.score(~flags) for flags in wrong)
    return LearningCurve(found.name, rows, errors, has_levelled(*wrong, found.metric))


def inner_mistakes(learn: FoldLearner, settings: Sequence[Candidate], sample: Sample) -> Floats:
    """Count mistakes on inner folds: for each outer fold, setting and class.

    Zeros if there is nothing to choose.
    """
    folds = sample.folds
    n_folds = int(folds.max()) + 1
    inner = np.zeros((n_folds, len(settings), sample.n_classes))
    if len(settings) == 1:
        return inner
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
_NEIGHBOURS = (1, 3, 5, 9, 15, 25, 51)
_PAIRWISE = 12  # classes up to which planes between every two of them are tried
_TREE_COLUMNS = 10_000  # trees times columns that are affordable
_WEIGHTED = ("linear", "kernel", "gradient boosting")  # learners that can weigh classes


def _candidate(sample: Sample, kind: str, scaled: bool, **settings: Any) -> Candidate:
    if kind in _WEIGHTED and sample.metric.name == "balanced_accuracy":
        settings["class_weight"] = "balanced"
    return Candidate(kind, tuple(settings.items()), scaled, sample.sparse, sample.wide)


def two_digits(value: float) -> float:
    """Return the value to two digits: more would be noise in a recommendation."""
    return float(f"{value:.1e}")


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
            for cost in costs:
                C = two_digits(cost / size)
                settings.append(_candidate(sample, "linear", scaled, C=C, **loss))
    return settings


def _kernels(sample: Sample) -> list[Candidate]:
    return [
        _candidate(sample, "kernel", scaled, C=cost, gamma=two_digits(width / size))
        for scaled, size in ((scaled, sample.spread(scaled)) for scaled in sample.forms)
        for width in _WIDTHS
        for cost in _KERNEL_COSTS
    ]


def _neighbours(sample: Sample) -> list[Candidate]:
    return [
        _candidate(sample, "k-NN", scaled, n_neighbors=k)
        for scaled in sample.forms
        for k in _NEIGHBOURS
        if k <= len(sample.y) // 2
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


class ModelFamily(NamedTuple):
    """A kind of rule: what it is called, and what is tried of it."""

    name: str
    words: str  # what it is called in sentences
    settings: Callable[[Sample], list[Candidate]]
    flexible: bool = True  # with enough rows it learns any boundary
    dense: bool = False  # needs rows that are written out


TREES = "gradient boosting"
# The ladder from the simplest on; gradient boosting, the yardstick from outside, comes last.
FAMILIES = (
    ModelFamily("planes", "a plane", _planes, False),
    ModelFamily("kernels", "an RBF kernel", _kernels),
    ModelFamily("k-NN", "k-NN", _neighbours),
    ModelFamily("networks", "a network", _networks, dense=True),
    ModelFamily(TREES, TREES, _boosted_trees, dense=True),
)
