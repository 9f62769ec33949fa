"""What counts as better: paired tests, Cover's counting theorem, Cover and Hart's bracket."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

LEVEL = 0.01  # how often chance alone may pass for a difference
# For signal, half of that: with 0.01, noise would get another verdict in more than 2 of 100 draws
# about one time in twelve; with 0.005, one time in seventy.
SIGNAL = 0.005


@dataclass(frozen=True)
class Comparison:
    """Two ways to predict, compared row by row on rows that neither was fitted to.

    Attributes
    ----------
    better, worse : str
        What is claimed to be better than what.
    wins, losses : int
        Rows that only the one, and only the other, predicted correctly.
    p_value : float
        Chance of such a lead, or a larger one, if both were equally good: McNemar's test, one-sided
        with the mid-p correction, times ``tests``.
    tests : int
        How many comparisons were made to find this one.
    level : float
        What ``p_value`` must fall below to be significant.
    """

    better: str
    worse: str
    wins: int
    losses: int
    p_value: float
    tests: int = 1
    level: float = LEVEL

    @property
    def significant(self) -> bool:
        """Whether chance is an unlikely explanation: p_value < level."""
        return self.p_value < self.level

    def __str__(self) -> str:
        verb = "beats" if self.significant else "does not beat"
        return (
            f"{self.better} {verb} {self.worse}: right alone on {self.wins} rows, wrong alone on "
            f"{self.losses} (p = {self.p_value:.2g})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings."""
        return {**vars(self), "significant": self.significant}


def compare(
    better: str,
    right: npt.NDArray[np.bool_],
    worse: str,
    rival: npt.NDArray[np.bool_],
    tests: int = 1,
    level: float = LEVEL,
) -> Comparison:
    """Compare two rules by the rows that each predicts correctly.

    Examples
    --------
    >>> right, rival = np.arange(20) < 18, np.arange(20) < 8
    >>> print(compare("a kernel", right, "a plane", rival))
    a kernel beats a plane: right alone on 10 rows, wrong alone on 0 (p = 0.00049)
    """
    wins, losses = int((right & ~rival).sum()), int((rival & ~right).sum())
    p_value = min(1.0, tests * mid_p(wins, losses))
    return Comparison(better, worse, wins, losses, p_value, tests, level)


def mid_p(wins: int, losses: int) -> float:
    """Return P(B > wins) + ½P(B = wins) for B ~ Binomial(wins + losses, ½); 1 if there are none.

    Examples
    --------
    >>> mid_p(3, 0), mid_p(0, 0)
    (0.0625, 1.0)
    """
    from scipy.stats import binom

    n = wins + losses
    if n == 0:
        return 1.0
    return float(binom.sf(wins, n, 0.5) + 0.5 * binom.pmf(wins, n, 0.5))


def hopeless(errors: int, tests: int = 1, level: float = LEVEL) -> bool:
    """Return whether not even a faultless rule could beat one that errs this often.

    Examples
    --------
    >>> hopeless(5), hopeless(6)
    (True, False)
    """
    return tests * mid_p(errors, 0) >= level


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


def bayes_bracket(error: float, n_classes: int) -> tuple[float, float]:
    """Return bounds on the least possible error from that of the nearest neighbour.

    Cover and Hart (1967): with rows without end, R ≤ R₁ ≤ R(2 − R·K/(K − 1)) for K classes.

    Examples
    --------
    >>> bayes_bracket(0.0, 2), bayes_bracket(0.5, 2)
    ((0.0, 0.0), (0.5, 0.5))
    """
    worst = (n_classes - 1) / n_classes
    return worst * (1.0 - float(np.sqrt(max(0.0, 1.0 - error / worst)))), min(error, worst)
