"""What counts as better: paired tests, ranking tests, intervals, and what chance alone would do.

Models are compared by a metric that is a weighted share of rows, Σᵢ ωᵢ [row i is right]: accuracy
has ωᵢ = 1/n, balanced accuracy ωᵢ = 1/(K nₖ) for a row of class k. So one test serves both.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Flags, Floats, Ints

LEVEL = 0.01  # how often chance alone may pass for a difference
# For signal, half of that: with 0.01, noise would get another verdict in more than 2 of 100 draws
# about one time in twelve; with 0.005, one time in seventy.
SIGNAL = 0.005
_Z = 1.959964  # two-sided 95 %
_ONE_SIDED = 1.644854  # 95 %
_ORDERS = 20_000  # of labels, drawn at random
_REORDERED_ROWS = 5000  # beyond, the normal distribution is near enough
_TINY = 1e-12  # p that no thick tail explains


@dataclass(frozen=True)
class Metric:
    """A weighted share of rows."""

    name: str  # as scikit-learn calls it: "accuracy" or "balanced_accuracy"
    y: Ints  # the classes of the rows
    weight: Floats  # what a row of each class counts; over all rows this adds up to 1

    @classmethod
    def of(cls, name: str, y: Ints, n_classes: int = 0) -> "Metric":
        """Return the metric of this name for rows of these classes."""
        counts = np.bincount(y, minlength=n_classes)
        if name == "accuracy":
            return cls(name, y, np.full(len(counts), 1.0 / len(y)))
        return cls(name, y, 1.0 / (np.count_nonzero(counts) * np.maximum(counts, 1)))

    def score(self, right: Flags) -> float:
        """Return the weighted share of rows that are right."""
        return float(self.weight @ self.counts(right))

    def counts(self, chosen: Flags) -> Floats:
        """Return how many of the chosen rows each class has."""
        return np.bincount(self.y[chosen], minlength=len(self.weight)).astype(np.float64)

    def lost(self, scores: Floats, rows: Ints) -> Floats:
        """Return a 1 for each mistake in these rows, in the column of the class of the row."""
        y = self.y[rows]
        wrong = scores.argmax(axis=1) != y
        return np.asarray(wrong[:, np.newaxis] & (y[:, np.newaxis] == np.arange(len(self.weight))))

    def interval(self, right: Flags, tests: int = 1) -> tuple[float, float]:
        """Return a 95 % interval of the score: Wilson's, with the rows that the weights amount to.

        Balanced accuracy is a mean of K shares; its variance is that of one share of these rows.
        With ``tests``, it holds for all of so many scores together (Bonferroni).
        """
        from scipy.stats import norm

        n = np.bincount(self.y, minlength=len(self.weight))
        p = (self.counts(right) + 1.0) / (n + 2.0)  # a class without mistakes has a variance too
        mean = float((self.weight * n) @ p)
        size = mean * (1 - mean) / float((self.weight**2 * n * p * (1 - p)).sum())
        return wilson(self.score(right), size, float(norm.isf(0.025 / tests)))


def wilson(share: float, n: float, z: float = _Z) -> tuple[float, float]:
    """Return Wilson's interval (95 % by default) of a share that was seen among n rows.

    Examples
    --------
    >>> low, high = wilson(0.5, 100)
    >>> round(low, 3), round(high, 3)
    (0.404, 0.596)
    """
    z2 = z**2 / n
    middle = (share + z2 / 2) / (1 + z2)
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n)) / (1 + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


class _Test:
    """A p-value, corrected for the number of tests, and the level that it must fall below."""

    p_value: float
    level: float

    @property
    def significant(self) -> bool:
        """Whether chance is an unlikely explanation: p_value < level."""
        return self.p_value < self.level

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {**vars(self), "significant": self.significant}


@dataclass(frozen=True)
class Comparison(_Test):
    """Two ways to predict, compared row by row on rows that neither was fitted to.

    ``p_value`` is the chance of such a lead, or a larger one, if both were equally good: a
    one-sided sign test in which rows count as they do in the metric (for accuracy, McNemar's test
    with the mid-p correction), times ``tests``, the number of comparisons made to find this one.
    """

    better: str
    worse: str
    wins: int  # rows that only the one predicted correctly
    losses: int  # and only the other
    lead: float  # difference of the scores, by the metric
    p_value: float
    tests: int = 1
    level: float = LEVEL
    metric: str = "accuracy"

    def __str__(self) -> str:
        verb = "beats" if self.significant else "is not shown to beat"
        by = f" {100 * self.lead:+.1f} points of balanced accuracy;"
        by = "" if self.metric == "accuracy" else by
        rows = "1 row" if self.wins == 1 else f"{self.wins} rows"
        return (
            f"{self.better} {verb} {self.worse}:{by} only {_definite(self.better)} is right on "
            f"{rows}, only {_definite(self.worse)} on {self.losses} (p = {self.p_value:.2g})"
        )


def _definite(name: str) -> str:
    """Return a name with "the" for "a" or "an"."""
    article, _, noun = name.partition(" ")
    return f"the {noun}" if article in ("a", "an") else name


Rule = tuple[str, Flags]  # its name, and where it predicts correctly


def compare(
    better: Rule, worse: Rule, metric: Metric, tests: int = 1, level: float = LEVEL
) -> Comparison:
    """Compare two rules row by row.

    Examples
    --------
    >>> right, rival = np.arange(20) < 18, np.arange(20) < 8
    >>> metric = Metric.of("accuracy", np.arange(20) % 2)
    >>> print(compare(("a kernel", right), ("a plane", rival), metric))
    a kernel beats a plane: only the kernel is right on 10 rows, only the plane on 0 (p = 0.00049)
    """
    (name, right), (rival, rival_right) = better, worse
    wins, losses = metric.counts(right & ~rival_right), metric.counts(rival_right & ~right)
    p_value = min(1.0, tests * sign_test(wins, losses, metric.weight))
    lead, counts = float(metric.weight @ (wins - losses)), (int(wins.sum()), int(losses.sum()))
    return Comparison(name, rival, *counts, lead, p_value, tests, level, metric.name)


@dataclass(frozen=True)
class ErrorComparison(_Test):
    """Two ways to predict numbers, compared row by row on rows that neither was fitted to.

    ``p_value`` is the chance of such a difference of the mean errors, or a larger one, if both were
    equally good: a one-sided paired t-test, times ``tests``, the number of comparisons made.
    """

    better: str
    worse: str
    error: float  # its mean, and that of the other
    rival: float
    p_value: float
    tests: int = 1
    level: float = LEVEL

    def __str__(self) -> str:
        verb = "beats" if self.significant else "is not shown to beat"
        return (
            f"{self.better} {verb} {self.worse}: the mean absolute error is "
            f"{amount(self.error)} against {amount(self.rival)} (p = {self.p_value:.2g})"
        )


def compare_errors(
    better: tuple[str, Floats], worse: tuple[str, Floats], tests: int = 1, level: float = LEVEL
) -> ErrorComparison:
    """Compare two rules by their absolute errors, row by row.

    Examples
    --------
    >>> e = np.linspace(0.1, 0.9, 20)
    >>> print(compare_errors(("a kernel", e**2), ("a plane", e)))
    a kernel beats a plane: the mean absolute error is 0.3089 against 0.5 (p = 1e-12)
    """
    from scipy.stats import ttest_rel

    (name, own), (rival, other) = better, worse
    p_value = 1.0
    if np.ptp(other - own) > 0:
        p_value = min(1.0, tests * float(ttest_rel(other, own, alternative="greater").pvalue))
    return ErrorComparison(
        name, rival, float(own.mean()), float(other.mean()), p_value, tests, level
    )


def amount(value: float) -> str:
    """Return four digits of a number, without a power of ten where that can be avoided.

    >>> amount(765432.1), amount(0.123456)
    ('765,400', '0.1235')
    """
    short = f"{value:.4g}"
    return f"{float(short):,.0f}" if 1000 <= abs(value) < 1e15 else short


def mean_interval(values: Floats, tests: int = 1) -> tuple[float, float]:
    """Return a 95 % interval of the mean of errors, wide enough for the best of some tests."""
    from scipy.stats import t

    half = t.isf(0.025 / tests, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return max(0.0, float(values.mean() - half)), float(values.mean() + half)


def explained(off: Floats, base: Floats) -> tuple[float, float, float]:
    """Return R², by how much squared errors are less than those of a mean, with a 95 % interval.

    The logarithm of the ratio of both sums is taken to be normal (the delta method).
    """
    own, total = off**2, base**2
    if not (own.any() and total.any()):
        r2 = 1.0 if total.any() else 0.0
        return r2, r2, r2
    ratio = float(own.sum() / total.sum())
    spread = (own / own.mean() - total / total.mean()).std(ddof=1)
    factor = math.exp(min(_Z * spread / math.sqrt(len(off)), 50.0))
    return 1 - ratio, 1 - ratio * factor, 1 - ratio / factor


def hopeless(wrong: Flags, metric: Metric, tests: int = 1, level: float = LEVEL) -> bool:
    """Return whether not even a faultless rule could beat one that is wrong on these rows.

    Examples
    --------
    >>> metric = Metric.of("accuracy", np.arange(20) % 2)
    >>> hopeless(np.arange(20) < 5, metric), hopeless(np.arange(20) < 6, metric)
    (True, False)
    """
    errors = metric.counts(wrong)
    return tests * sign_test(errors, np.zeros_like(errors), metric.weight) >= level


def sign_test(wins: Floats, losses: Floats, weight: Floats) -> float:
    """Return how likely such a lead is by chance, from wins and losses in each class.

    Rows that count alike: P(B > b) + ½P(B = b) for B ~ Binomial(wins + losses, ½), at b wins; 1 if
    the rules never differ. Otherwise T = Σₖ weightₖ(winsₖ − lossesₖ) is compared with a normal
    distribution of variance Σₖ weightₖ²(winsₖ + lossesₖ + 1). The 1 is for classes so small that a
    rule which moved the boundary towards them may have been lucky not to pay for it.

    Examples
    --------
    >>> sign_test(np.array([3.0]), np.array([0.0]), np.ones(1))
    0.0625
    >>> sign_test(np.zeros(2), np.zeros(2), np.ones(2))
    1.0
    """
    from scipy.stats import binom, norm

    n = wins + losses
    if not n.any():
        return 1.0
    if np.allclose(weight, weight[0]):
        won, total = wins.sum(), n.sum()
        return float(binom.sf(won, total, 0.5) + 0.5 * binom.pmf(won, total, 0.5))
    spread = math.sqrt(float(weight**2 @ (n + 1)))
    return float(norm.sf(float(weight @ (wins - losses)) / spread))


@dataclass(frozen=True)
class RankTest(_Test):
    """How well a rule's scores put rows of a class above the others, on rows not fitted to.

    ``auc`` is the area under the ROC curve, of each class against the rest, averaged over classes
    and folds. ``p_value`` is the chance of such a ranking, or a better one, if labels had nothing
    to do with the scores: the rank sum test with folds as strata, times ``tests``.
    """

    method: str
    auc: float
    p_value: float
    tests: int = 1
    level: float = SIGNAL

    def __str__(self) -> str:
        verb = "ranks" if self.significant else "is not shown to rank"
        p_value = f"(p = {self.p_value:.2g})"
        return f"{self.method} {verb} rows better than chance: AUC {self.auc:.3f} {p_value}"


def rank(method: str, scores: Floats, y: Ints, folds: Ints, tests: int = 1) -> RankTest:
    """Test whether scores (a column for each class) rank rows better than chance, fold by fold.

    Within a fold, all orders of its labels are equally likely if they have nothing to do with the
    scores. The statistic, the mean AUC of classes against the rest, then has a known mean and
    variance (Hoeffding's combinatorial central limit theorem), and folds add up. With few rows in
    a class or many ties the normal distribution has too thin a tail: a p-value that is small, but
    not tiny, is counted among random orders of the labels instead.

    Examples
    --------
    >>> f, y = np.linspace(-1, 1, 60), np.repeat([0, 1], 30)
    >>> found = rank("f", np.column_stack([-f, f]), y, np.arange(60) % 5)
    >>> round(float(found.auc), 12), found.p_value < 1e-3
    (1.0, True)
    """
    from scipy.stats import norm

    mixed = [k for k in np.unique(folds) if len(np.unique(y[folds == k])) > 1]
    if not mixed:
        return RankTest(method, 0.5, 1.0, tests)
    parts = [np.flatnonzero(folds == k) for k in mixed]
    total = sum(map(len, parts))
    worth, variance = np.zeros(scores.shape), 0.0
    for rows in parts:
        share, (placed, spread) = len(rows) / total, place(scores[rows], y[rows])
        worth[rows] = share * placed
        variance += share**2 * spread
    lead = float(worth[np.arange(len(y)), y].sum())
    p_value = float(norm.sf(lead / math.sqrt(variance))) if variance > 0 else 1.0
    if _TINY < p_value < SIGNAL and total <= _REORDERED_ROWS:
        p_value = max(p_value, _reordered(worth, y, parts, lead))
    return RankTest(method, 0.5 + lead, min(1.0, tests * p_value), tests)


def _reordered(worth: Floats, y: Ints, parts: list[Ints], lead: float) -> float:
    """Return the share of random orders of the labels, within folds, that rank as well."""
    rng = np.random.default_rng(0)
    as_good = 0
    for _ in range(_ORDERS // 1000):
        found = np.zeros(1000)
        for rows in parts:
            orders = rng.permuted(np.tile(y[rows], (1000, 1)), axis=1)
            found += worth[rows, orders].sum(axis=1)
        as_good += int((found >= lead - 1e-12).sum())
    return (1 + as_good) / (1 + _ORDERS)


def place(scores: Floats, y: Ints) -> tuple[Floats, float]:
    """Rank the rows of a fold by each class.

    Return what a row would add to a mean AUC of ½ if it had a class (a column each), and the
    variance of the sum over all orders of the labels.
    """
    from scipy.stats import rankdata

    n, n_classes = scores.shape
    counts = np.bincount(y, minlength=n_classes).astype(np.float64)
    # Of two classes, the other column says the same.
    ranked = [1] if n_classes == 2 else np.flatnonzero(counts).tolist()
    worth = np.zeros((n, n_classes))
    for k in ranked:
        pairs = counts[k] * (n - counts[k])
        worth[:, k] = (rankdata(scores[:, k]) - (n + 1) / 2) / (pairs * len(ranked))
    mean = worth @ (counts / n)
    return worth, float(counts @ (worth**2).sum(axis=0) - n * (mean**2).sum()) / (n - 1)


def chance_separable(n: int, d: int) -> float:
    """Return the share of all labellings of n points in general position that a plane separates.

    Cover (1965): 2^(1−n) Σ_{k ≤ d} C(n−1, k), which is 1 for n ≤ d + 1 and ½ for n = 2(d + 1).

    Examples
    --------
    >>> chance_separable(3, 2), round(chance_separable(6, 2), 12), chance_separable(200, 2) < 1e-50
    (1.0, 0.5, True)
    """
    from scipy.stats import binom

    return 1.0 if n <= d + 1 else float(binom.cdf(d, n - 1, 0.5))


@dataclass(frozen=True)
class LearningCurve:
    """The errors of a method that was fitted to a quarter, to half and to all of the rows.

    Were its error to vanish with more rows, even as slowly as n^(−1/4), it would be 19 % larger
    with half of the rows, and 41 % larger with a quarter. ``level`` is whether it grows by less
    each time, and over both beyond noise (one-sided, 95 %): the error tends to more than 0.
    """

    method: str
    rows: tuple[int, ...]  # that were fitted to
    errors: tuple[float, ...]  # on the same held-out rows, by the metric
    level: bool

    def __str__(self) -> str:
        *some, most = (f"{error:.1%}" for error in self.errors)
        *few, all_of_them = (str(n) for n in self.rows)
        end = "has levelled off" if self.level else "cannot be shown to have levelled off"
        return (
            f"the learning curve of {self.method} {end} ({', '.join(some)} and {most} errors after "
            f"{', '.join(few)} and {all_of_them} rows)"
        )


def has_levelled(quarter: Flags, half: Flags, every: Flags, metric: Metric) -> bool:
    """Return whether errors (flags of the same rows) rule out a learning curve that falls to 0.

    Examples
    --------
    >>> metric = Metric.of("accuracy", np.arange(400) % 2)
    >>> wrong = np.arange(400) < 100
    >>> has_levelled(wrong, wrong, wrong, metric)
    True
    >>> has_levelled(np.arange(400) < 200, np.arange(400) < 141, wrong, metric)
    False
    """
    grown = [2**0.25 * every - half, 2**0.5 * every - quarter]
    each = metric.weight[metric.y]
    if any(each @ excess <= 0 for excess in grown):
        return False
    excess, counts = sum(grown), np.bincount(metric.y, minlength=len(metric.weight))
    total, squares = (
        np.bincount(metric.y, values, len(counts)) for values in (excess, np.square(excess))
    )
    # The 1 is for classes so small that they may have been lucky.
    spread = squares - total**2 / np.maximum(counts, 1) + 1
    return bool(metric.weight @ total > _ONE_SIDED * math.sqrt(metric.weight**2 @ spread))
