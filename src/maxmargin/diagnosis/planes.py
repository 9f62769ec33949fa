"""What planes can do: equal rows with different labels, separability, and rows to give up."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.cluster import contingency_matrix

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.diagnosis.inputs import DiagnosedTable, draw_rows, scaler
from maxmargin.estimators import LinearSVC
from maxmargin.runtime.clock import Clock, OutOfTimeError
from maxmargin.separability import Separation
from maxmargin.separability.decide import decide

# ------------------------------------------------------------------- conflicts

# Two rows in a hundred must be predicted wrongly: with equal rows in pairs, four in a hundred.
_FORCED = 0.02


@dataclass(frozen=True)
class Conflicts:
    """Rows with equal inputs and different labels."""

    groups: list[Ints]  # row numbers of each set of equal rows with different labels
    errors: int  # rows any rule predicts wrongly: in each group all but the most frequent label
    share: float  # of all rows: the least possible training error
    rows: int  # how many are in the groups

    @property
    def decisive(self) -> bool:
        """Whether they force so many errors that they decide."""
        return self.share >= _FORCED


def find_conflicts(group: Ints, y: Ints) -> Conflicts:
    """Find the groups of equal rows with more than one label, exactly and over all rows.

    ``group`` numbers rows from 0 on, equal rows alike.

    Examples
    --------
    >>> found = find_conflicts(np.array([0, 1, 0, 0]), np.array([0, 0, 1, 1]))
    >>> found.groups, found.errors, found.share
    ([array([0, 2, 3])], 1, 0.25)
    """
    counts = contingency_matrix(group, y, sparse=True, dtype=np.int64)
    sizes, most = np.bincount(group), counts.max(axis=1).toarray().ravel()
    mixed = np.flatnonzero(most < sizes)
    order, ends = np.argsort(group, kind="stable"), np.cumsum(sizes)
    groups = [order[ends[g] - sizes[g] : ends[g]] for g in mixed]
    errors = int((sizes - most).sum())
    return Conflicts(groups, errors, errors / len(y), int(sizes[mixed].sum()))


# ------------------------------------------------------------------- separability


@dataclass(frozen=True)
class Planes:
    """What was found about every two classes."""

    separable: bool | None  # None if some pair is undecided and none overlaps
    pairs: dict[tuple[int, int], Separation]  # by the numbers of the classes, as far as examined

    @property
    def decisive(self) -> Separation | None:
        """The pair that decided: the least margin, or the first that overlaps."""
        found = [pair for pair in self.pairs.values() if pair.separable is self.separable]
        if not found:
            return None
        return min(found, key=lambda pair: pair.margin) if self.separable else found[0]

    @property
    def margin(self) -> float:
        """The least margin of any pair, NaN if some pair has none."""
        return min((pair.margin for pair in self.pairs.values()), default=np.nan)

    @property
    def mistake_bound(self) -> float:
        """The most updates a perceptron makes, for any of the pairs (lifted form)."""
        return max((pair.mistake_bound for pair in self.pairs.values()), default=np.inf)


def list_pairs(table: DiagnosedTable) -> Iterator[tuple[int, int, Ints]]:
    """Yield every two classes, with the numbers of their rows."""
    for i, j in combinations(range(table.n_classes), 2):
        yield i, j, np.flatnonzero((table.y == i) | (table.y == j))


def find_planes(table: DiagnosedTable, clock: Clock) -> Planes:
    """Ask about every two classes, and stop at the first two that no plane separates."""
    pairs: dict[tuple[int, int], Separation] = {}
    separable: bool | None = True
    for i, j, rows in list_pairs(table):
        if clock.over:
            return Planes(None, pairs)
        labels = (table.label(i), table.label(j))
        found = decide(table.X[rows], table.y[rows] == j, labels, rows, True, clock.left)
        pairs[i, j] = found
        if found.separable is not True:
            separable = found.separable
        if separable is False:
            break
    return Planes(separable, pairs)


# ------------------------------------------------------------------- rows to give up

_FEW = 0.1  # of the smallest class: so many rows still count as few
_COSTS = (1.0, 100.0, 10_000.0)
_AGAIN = 1000.0  # the cost when rows are left out
_REPEATS = 5  # times that half of the rows on the wrong side are left out
_NEXT_TO_NOTHING = 1e-9  # weight of a row that is left out
_MANY = 20_000  # rows that planes are fitted to; the rest only count


@dataclass(frozen=True)
class GivingUp:
    """Rows without which planes separate every two classes: fewer may do."""

    rows: Ints
    counts: Ints  # rows of each class

    @property
    def at_most(self) -> int:
        """How many rows have to go at most."""
        return len(self.rows)

    @property
    def few(self) -> bool:
        """Whether no more have to go than a tenth of the smallest class."""
        return bool(self.at_most <= _FEW * self.counts.min())

    def __str__(self) -> str:
        return (
            f"removing {self.at_most} of {self.counts.sum()} rows makes the classes linearly "
            "separable"
        )


def give_up(table: DiagnosedTable, clock: Clock, worth: Floats) -> GivingUp:
    """Bound how many rows must go; every pair needs time for a plane at least.

    ``worth`` is what a row of each class counts in fits, on average 1 over all rows. The bound is
    never above the number of rows outside the largest class: without these, one class is left.
    """
    gone, counts = np.zeros(len(table.y), dtype=bool), np.bincount(table.y)
    for _, j, rows in list_pairs(table):
        if clock.over:
            raise OutOfTimeError
        sign, weight = np.where(table.y[rows] == j, 1, -1), worth[table.y[rows]]
        gone[rows[find_fewest_wrong(table.X[rows], sign, weight, clock)]] = True
    if gone.sum() > len(gone) - counts.max():
        gone = table.y != counts.argmax()
    return GivingUp(np.flatnonzero(gone), counts)


def find_fewest_wrong(X: Any, sign: Ints, worth: Floats, clock: Clock) -> Flags:
    """Return the rows on the wrong side of the plane that has the fewest, of those found in time.

    ``worth`` weighs rows in fits, so that a rare class is not given up from the start. To count
    errors instead of summing slacks, half of the rows on the wrong side, those furthest from the
    plane, are left out, round after round.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    >>> y = np.array([-1, -1, 1, 1, -1])
    >>> find_fewest_wrong(X, y, np.ones(5), Clock(9.0)).tolist()
    [False, False, False, False, True]
    """
    some = draw_rows((sign > 0).astype(np.int64), _MANY, np.random.default_rng(0))
    scaling = scaler(sparse=True, wide=sp.issparse(X)).fit(X)
    rows, size, weight, best = scaling.transform(X[some]), abs(X), worth[some], None
    for cost in (*_COSTS, *(_REPEATS * (_AGAIN,))):
        with warnings.catch_warnings():
            # Any plane is a bound, optimal or not.
            warnings.simplefilter("ignore")
            machine = LinearSVC(C=cost, tol=1e-3, max_iter=200, max_time=clock.left)
            machine.fit(rows, sign[some], sample_weight=weight)
        w = machine.coef_[0] / scaling.scale_
        if not w.any():
            w = np.eye(1, X.shape[1])[0]  # any direction, as none was found
        latest = min((_cut(X, sign, way, size) for way in (w, -w)), key=_rows_lost)
        best = latest if best is None else min(best, latest, key=_rows_lost)
        if cost >= _AGAIN:
            cut = latest if cost == _AGAIN else best
            wrong = np.flatnonzero(cut.wrong[some] & (weight > _NEXT_TO_NOTHING))
            furthest = wrong[np.argsort(cut.score[some][wrong], kind="stable")]
            weight[furthest[: (len(wrong) + 1) // 2]] = _NEXT_TO_NOTHING
        if clock.over:
            break
    assert best is not None
    return best.wrong


class _Cut(NamedTuple):
    """The rows on the wrong side of a plane, and the scores y f."""

    wrong: Flags
    score: Floats


def _rows_lost(cut: _Cut) -> int:
    return int(cut.wrong.sum())


def _cut(X: Any, sign: Ints, w: Floats, size: Any) -> _Cut:
    """Put a plane midway between two rows, with the fewest rows on its wrong side."""
    place = np.asarray(X @ w)
    order = np.argsort(place, kind="stable")
    cuts, negative = place[order], np.asarray(sign[order] < 0)
    # With the cut after row k, positive rows up to k and negative ones beyond are wrong.
    lost = np.cumsum(~negative)[:-1] + negative.sum() - np.cumsum(negative)[:-1]
    k = int(np.where(cuts[:-1] < cuts[1:], lost, np.inf).argmin())
    b = -float(cuts[k] + cuts[k + 1]) / 2
    relative = 4 * (X.shape[1] + 2) * np.finfo(np.float64).eps
    score = sign * (place + b)
    return _Cut(~(score > relative * (size @ np.abs(w) + abs(b))), score)
