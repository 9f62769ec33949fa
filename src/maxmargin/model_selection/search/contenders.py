"""Which candidates of a search can still win, if they were solved to a wide gap only.

A fit with an absolute duality gap g is no farther than √(2g) from the optimum, so its score of a
row x is off by at most √(2g·K(x, x)). At gaps worth having that is more than most scores, and it
rules out next to nothing. So the change is measured: the best candidates are solved to ``tol``, and
how much their scores change says how much others may. A candidate is out if it would not win even
if its score rose by twice the largest change seen and three rows more. All that are not out are
solved to ``tol``, which may show larger changes, and so on.
"""

import math

import numpy as np

from maxmargin._typing import Flags, Floats, Ints

_SAFETY = 2.0  # times the largest change seen
_ROWS = 3  # whose weight is added, as few changes may have been seen, and small ones
_FIRST = 0.1  # part of the candidates whose change is measured first
_LEAST = 5  # of them


class Standings:
    """The mean scores of candidates, some solved to ``tol``, others to a wide gap.

    ``unit`` is the weight of one scored row in a mean score.
    """

    def __init__(self, scores: Floats, final: Flags, unit: float) -> None:
        self.scores, self.final, self.unit = scores.copy(), final.copy(), unit
        self._changes: list[float] = []

    def enter(self, candidate: int, score: float) -> None:
        """Note the score of a candidate that has been solved to ``tol`` now."""
        change = abs(score - self.scores[candidate])
        if math.isfinite(change):
            self._changes.append(float(change))
        self.scores[candidate], self.final[candidate] = score, True

    @property
    def margin(self) -> float:
        """By how much the score of a candidate may rise that was solved to a wide gap."""
        return _SAFETY * max(self._changes, default=0.0) + _ROWS * self.unit

    def contenders(self) -> Ints:
        """Return the candidates that may still win and are not solved to ``tol``."""
        wide = np.flatnonzero(~self.final)
        reach = np.nan_to_num(self.scores[wide], nan=np.inf)  # they may have a score at ``tol``
        if not self._changes:
            first = max(_LEAST, math.ceil(_FIRST * len(self.scores)))
            return np.sort(wide[np.argsort(-reach, kind="stable")[:first]])
        leading = np.nan_to_num(self.scores[self.final], nan=-np.inf).max()
        return np.asarray(wide[reach + self.margin >= leading])
