"""What counts as better: paired tests, intervals, and what chance alone would do.

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

    ``p_value`` is the chance of such a lead, or a larger one, if both were equally good, times
    ``tests``, the number of comparisons made to find this one. For classes this is a one-sided sign
    test in which rows count as they do in the metric (for accuracy, McNemar's test with the mid-p
    correction), for numbers a one-sided paired t-test of absolute errors.
    """

    better: str
    worse: str
    wins: int  # rows that only the one predicted correctly, or that it is nearer to
    losses: int  # and only the other
    lead: float  # difference of the scores, or of the mean errors
    p_value: float
    tests: int = 1
    level: float = LEVEL
    figures: str = ""  # what was compared, in words

    def __str__(self) -> str:
        verb = "beats" if self.significant else "is not shown to beat"
        return f"{self.better} {verb} {self.worse}: {self.figures} (p = {self.p_value:.2g})"


def _definite(name: str) -> str:
    """Return a name with "the" for "a" or "an"."""
    article, _, noun = name.partition(" ")
    return f"the {noun}" if article in ("a", "an") else name


Rule = tuple[str, Flags]  # its name, and where it predicts correctly


def compare(better: Rule, worse: Rule, metric: Metric, tests: int = 1) -> Comparison:
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
    lead, won, lost = float(metric.weight @ (wins - losses)), int(wins.sum()), int(losses.sum())
    by = "" if metric.name == "accuracy" else f"{100 * lead:+.1f} points of balanced accuracy; "
    rows = "1 row" if won == 1 else f"{won} rows"
    figures = f"{by}only {_definite(name)} is right on {rows}, only {_definite(rival)} on {lost}"
    return Comparison(name, rival, won, lost, lead, p_value, tests, figures=figures)


def compare_errors(
    better: tuple[str, Floats], worse: tuple[str, Floats], tests: int = 1, level: float = LEVEL
) -> Comparison:
    """Compare two rules by their absolute errors, row by row, with a paired t-test.

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
    wins, losses = (int(np.sum(less)) for less in (own < other, other < own))
    means = f"the mean absolute error is {amount(own.mean())} against {amount(other.mean())}"
    lead = float(other.mean() - own.mean())
    return Comparison(name, rival, wins, losses, lead, p_value, tests, level, means)


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


def hopeless(wrong: Flags, metric: Metric) -> bool:
    """Return whether not even a faultless rule could beat one that is wrong on these rows.

    Examples
    --------
    >>> metric = Metric.of("accuracy", np.arange(20) % 2)
    >>> hopeless(np.arange(20) < 5, metric), hopeless(np.arange(20) < 6, metric)
    (True, False)
    """
    errors = metric.counts(wrong)
    return sign_test(errors, np.zeros_like(errors), metric.weight) >= LEVEL


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
class ChanceTest(_Test):
    """Whether a rule names classes better than by chance, on rows that it was not fitted to.

    ``p_value`` is the chance that the rows which it calls a class have so many of that class, or
    more, if labels had nothing to do with the rows: Fisher's exact test, for the class that is
    found best, times the number of classes that could be, times ``tests``.
    """

    method: str
    p_value: float
    tests: int = 1
    level: float = SIGNAL

    def __str__(self) -> str:
        verb = "names" if self.significant else "is not shown to name"
        return f"{self.method} {verb} classes better than by chance (p = {self.p_value:.2g})"


def names_classes(method: str, predicted: Ints, y: Ints, tests: int = 1) -> ChanceTest:
    """Test whether predicted classes have anything to do with the true ones.

    Examples
    --------
    >>> y = np.repeat([0, 1], 10)
    >>> print(names_classes("a plane", y, y))
    a plane names classes better than by chance (p = 5.4e-06)
    """
    from scipy.stats import hypergeom

    n, classes = len(y), np.unique(y)
    named = classes[1:] if len(classes) == 2 else classes  # of two, the other says the same
    chances = []
    for k in named:
        own, called = y == k, predicted == k
        chances.append(hypergeom.sf((own & called).sum() - 1, n, own.sum(), called.sum()))
    return ChanceTest(method, min(1.0, float(tests * len(named) * min(chances))), tests)


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
