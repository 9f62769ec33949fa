"""Which candidates of a search can still win, at the gaps that their fits have been solved to.

A fit with an absolute duality gap g is no farther than √(2g) from the optimum, so its score of a
row x is off by at most √(2g·K(x, x)). At gaps worth having that is more than most scores, and it
rules out next to nothing. So the change is measured: the best candidates are solved to each gap
down to the last one, and how much their scores change on the way says how much others may. A
candidate is out if it would not win even if its score rose by twice the largest change seen, and
that of the best fell as much. What is left is solved to the last gap; so is, at the end, every
candidate that is not out, and the largest score among these wins.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Ints

_SAFETY = 2.0  # times the largest change seen
_FIRST = 0.1  # part of the candidates whose change is measured first
_LEAST = 5  # of them


@dataclass(eq=False)
class Standings:
    """The scores of candidates, each at a level: 0 is the widest gap, the last is ``tol``."""

    count: int  # candidates
    last: int  # level
    unit: float  # the least change of a score: one row of all that are scored
    scores: Floats = field(init=False)
    levels: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.scores = np.full(self.count, np.nan)
        self.levels = np.full(self.count, -1)
        self._changes: list[list[float]] = [[] for _ in range(self.last)]

    def enter(self, candidate: int, level: int, score: float) -> None:
        """Note the score of a candidate at a level."""
        before, self.scores[candidate] = self.scores[candidate], score
        if 0 <= self.levels[candidate] == level - 1 and math.isfinite(score - before):
            self._changes[level - 1].append(abs(score - before))
        self.levels[candidate] = level

    def margins(self) -> Floats:
        """Return, by level, by how much scores may change down to the last."""
        steps = [_SAFETY * max(each, default=math.inf) + self.unit for each in self._changes]
        return np.append(np.cumsum(steps[::-1])[::-1], 0.0)

    def contenders(self) -> Ints:
        """Return the candidates to be solved to the gap of the next level; none: all is settled."""
        open_ = self.levels < self.last
        unmeasured = [level for level, changes in enumerate(self._changes) if not changes]
        if unmeasured:
            at = np.flatnonzero(self.levels == unmeasured[0])
            wanted = max(_LEAST, math.ceil(_FIRST * self.count))
            scores = np.nan_to_num(self.scores[at], nan=np.inf)
            best = at[np.argsort(-scores, kind="stable")[:wanted]]
            if len(best):
                return np.sort(best)
        margin = self.margins()[self.levels]
        known = np.isfinite(self.scores)
        worst = (self.scores - margin)[known].max(initial=-np.inf)
        # What has no score may have one at the last gap.
        can_win = ~known | (self.scores + margin >= worst)
        return np.flatnonzero(open_ & can_win)
