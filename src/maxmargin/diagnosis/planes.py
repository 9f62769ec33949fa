"""What planes can do: equal rows with different labels, separability, and rows to give up.

How many rows must be given up before planes separate the rest is bounded from both sides. From
below: rows of two classes whose hulls meet cannot all stay, so each of several such witnesses that
share no row costs one row at least. From above: a plane, and the rows on its wrong side.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.diagnosis.inputs import DiagnosedTable, draw_rows, is_wide, scaler
from maxmargin.estimators import LinearSVC
from maxmargin.geometry import Hyperplane, mistake_bound, radius
from maxmargin.runtime.clock import Clock, OutOfTimeError
from maxmargin.separability import Overlap, Separation
from maxmargin.separability.decide import decide, verified_plane

# ------------------------------------------------------------------- conflicts

# Two rows in a hundred must be predicted wrongly: with equal rows in pairs, four in a hundred.
FORCED = 0.02


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
        return self.share >= FORCED

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; of more than 100 groups the first 100."""
        return {
            "groups": [group.tolist() for group in self.groups[:100]],
            "n_groups": len(self.groups),
            "rows": self.rows,
            "errors": self.errors,
            "share": self.share,
        }


def find_conflicts(group: Ints, y: Ints, n_classes: int) -> Conflicts:
    """Find the groups of equal rows with more than one label, exactly and over all rows.

    ``group`` numbers rows from 0 on, equal rows alike.

    Examples
    --------
    >>> found = find_conflicts(np.array([0, 1, 0, 0]), np.array([0, 0, 1, 1]), 2)
    >>> found.groups, found.errors, found.share
    ([array([0, 2, 3])], 1, 0.25)
    """
    sizes = np.bincount(group)
    cells, counts = np.unique(group * np.int64(n_classes) + y, return_counts=True)
    most = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(most, cells // n_classes, counts)
    mixed = np.flatnonzero(most < sizes)
    order, ends = np.argsort(group, kind="stable"), np.cumsum(sizes)
    groups = [order[ends[g] - sizes[g] : ends[g]] for g in mixed]
    errors = int((sizes - most).sum())
    return Conflicts(groups, errors, errors / len(y), int(sizes[mixed].sum()))


# ------------------------------------------------------------------- separability

_ENOUGH = 4000  # rows of a pair of classes that are asked before all are
_ADDED = 1000  # rows that are added to them in a round
_ROUNDS = 30


@dataclass(frozen=True)
class Planes:
    """What was found about every two classes."""

    separable: bool | None  # None if some pair is undecided and none overlaps
    pairs: dict[tuple[int, int], Separation]  # by the numbers of the classes, as far as examined
    rows_seen: int

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


def find_planes(
    table: DiagnosedTable, clock: Clock, rng: np.random.Generator, every: bool
) -> Planes:
    """Ask about every two classes; unless ``every``, stop at the first that no plane separates."""
    pairs: dict[tuple[int, int], Separation] = {}
    seen = np.zeros(len(table.y), dtype=bool)
    separable: bool | None = True
    for i, j, rows in list_pairs(table):
        if clock.over:
            return Planes(None if separable else separable, pairs, int(seen.sum()))
        pairs[i, j], examined = _decide_pair(table, i, j, rows, clock, rng)
        seen[examined] = True
        if pairs[i, j].separable is False:
            separable = False
            if not every:
                break
        elif separable:
            separable = pairs[i, j].separable
    return Planes(separable, pairs, int(seen.sum()))


def _decide_pair(
    table: DiagnosedTable, i: int, j: int, rows: Ints, clock: Clock, rng: np.random.Generator
) -> tuple[Separation, Ints]:
    """Decide about some rows first, and add those on which their plane fails, until there are none.

    What some rows cannot do, all rows cannot do; and a plane that is right on all rows is a proof.
    """
    labels = (table.label(i), table.label(j))
    positive = table.y[rows] == j
    X, sign = table.X[rows], np.where(positive, 1, -1)
    some = draw_rows(positive.astype(np.int64), _ENOUGH, rng)
    for _ in range(_ROUNDS):
        found = decide(X[some], positive[some], labels, rows[some], True, clock.left)
        if len(some) == len(rows) or found.separable is False or clock.over:
            return found, rows[some]
        if not isinstance(found.witness, Hyperplane):
            break  # undecided at this precision
        plane = verified_plane(found.witness.w, X, sign, True)
        if plane is not None:
            margin, bound = plane.geometric_margin(X, sign).min(), mistake_bound(plane, X, sign)
            return Separation(True, plane, labels, float(margin), radius(X), bound), rows
        worst = np.argsort(found.witness.functional_margin(X, sign), kind="stable")[:_ADDED]
        some = np.union1d(some, worst)
    return decide(X, positive, labels, rows, True, clock.left), rows


# ------------------------------------------------------------------- rows to give up

FEW = 0.1  # of the smallest class: so many rows still count as few
_WITNESS_ROUNDS = 30  # searches for a witness, where it is clear that few rows are not enough
_IN_VAIN = 5  # rows in no hull before the search moves on
_ROWS = 2000  # rows among which one witness is searched for
_COSTS = (1.0, 100.0, 10_000.0)
_REPEATS = 4  # times that rows are left out, and given less weight
_MANY = 20_000  # rows that planes are fitted to; the rest only count


@dataclass(frozen=True)
class GivingUp:
    """Bounds on the number of rows to give up, with what proves them."""

    at_least: int
    at_most: int  # as many as there are in ``rows``
    rows: Ints  # without these, planes separate every two classes
    planes: dict[tuple[int, int], Hyperplane]  # that separate the rest of each pair of classes
    overlaps: list[Overlap]  # the disjoint witnesses
    counts: Ints  # rows of each class
    finished: bool  # False if the search ended early, so that the bounds could be closer

    @property
    def few(self) -> bool:
        """Whether no more have to go than a tenth of the smallest class."""
        return bool(self.at_most <= FEW * self.counts.min())

    def __str__(self) -> str:
        fewer = f"fewer than {self.at_least}" if self.at_least < self.at_most else "fewer"
        return (
            f"removing {self.at_most} of {self.counts.sum()} rows makes the classes linearly "
            f"separable (no {fewer} will do)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; of more than 1000 rows the first 1000."""
        return {
            "at_least": self.at_least,
            "at_most": self.at_most,
            "rows": self.rows[:1000].tolist(),
            "witnesses": [overlap.rows.tolist() for overlap in self.overlaps[:100]],
            "finished": self.finished,
        }


def give_up(
    table: DiagnosedTable, clock: Clock, rng: np.random.Generator, worth: Floats
) -> GivingUp:
    """Bound how many rows must go; every pair needs time for a plane at least.

    ``worth`` is what a row of each class counts in fits, on average 1 over all rows. No bound is
    above the number of rows outside the largest class: without these, one class is left.
    """
    if sp.issparse(table.X) and not is_wide(table.X):
        table = replace(table, X=table.X.toarray())
    gone = np.zeros(len(table.y), dtype=bool)
    each, counts = worth[table.y], np.bincount(table.y)
    planes: dict[tuple[int, int], Hyperplane] = {}
    lost: dict[tuple[int, int], Ints] = {}
    for i, j, rows in list_pairs(table):
        if clock.over:
            raise OutOfTimeError
        sign = np.where(table.y[rows] == j, 1, -1)
        planes[i, j], wrong = find_fewest_wrong(table.X[rows], sign, each[rows], clock)
        lost[i, j] = rows[wrong]
        gone[rows[wrong]] = True
    if gone.sum() > len(gone) - counts.max():
        gone, planes = table.y != counts.argmax(), {}
    given_up = np.flatnonzero(gone)
    rounds = _WITNESS_ROUNDS
    if len(given_up) <= FEW * counts.min():
        rounds = min(2 * len(given_up) + _WITNESS_ROUNDS, 200)
    search = _WitnessSearch(table.X, gone, rounds, clock, rng)
    for i, j, rows in list_pairs(table):
        search.search_pair(rows, table.y == j, lost[i, j])
    return GivingUp(
        at_least=len(search.found),
        at_most=len(given_up),
        rows=given_up,
        planes=planes,
        overlaps=search.found,
        counts=counts,
        finished=search.finished,
    )


class _WitnessSearch:
    """Searches for witnesses that share no rows, for a number of rounds."""

    def __init__(
        self, X: Any, gone: Flags, rounds: int, clock: Clock, rng: np.random.Generator
    ) -> None:
        self._X, self._gone, self._rounds, self._clock, self._rng = X, gone, rounds, clock, rng
        self._free = np.ones(len(gone), dtype=bool)
        self.found: list[Overlap] = []
        self.finished = True

    def search_pair(self, rows: Ints, positive: Flags, lost: Ints) -> None:
        """Search among two classes: around each row on the wrong side, then anywhere."""
        in_vain = 0
        for row in lost[self._free[lost]]:
            others = rows[(positive[rows] != positive[row]) & ~self._gone[rows]]
            in_vain += not self._search(np.append(self._draw(others), row), positive)
            if in_vain == _IN_VAIN:
                break
        found = True
        while found:
            kept = self._draw(rows[~self._gone[rows]])
            found = self._search(np.concatenate([kept, lost[self._free[lost]]]), positive)

    def _draw(self, rows: Ints) -> Ints:
        rows = rows[self._free[rows]]
        return rows if len(rows) <= _ROWS else self._rng.choice(rows, _ROWS, replace=False)

    def _search(self, rows: Ints, positive: Flags) -> bool:
        """Take the rows of a witness, and return whether there is one."""
        if self._rounds <= 0 or self._clock.over:
            self.finished = False
            return False
        rows = np.sort(rows)
        if positive[rows].all() or not positive[rows].any():
            return False
        self._rounds -= 1
        seen = decide(self._X[rows], positive[rows], (0, 1), rows, True, self._clock.left)
        if not isinstance(seen.witness, Overlap):
            return False
        self.found.append(seen.witness)
        self._free[seen.witness.rows] = False
        return True


# ------------------------------- planes with few rows on their wrong side, by soft margins


def find_fewest_wrong(X: Any, sign: Ints, worth: Floats, clock: Clock) -> tuple[Hyperplane, Flags]:
    """Return the plane found in time with the fewest rows on its wrong side, and those rows.

    ``worth`` weighs rows in fits, so that a rare class is not given up from the start. To count
    errors instead of summing slacks, the rows furthest on the wrong side are left out,
    half of them per round; then rows with much slack are given less weight, round after round.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    >>> y = np.array([-1, -1, 1, 1, -1])
    >>> plane, wrong = find_fewest_wrong(X, y, np.ones(5), Clock(9.0))
    >>> wrong.tolist()
    [False, False, False, False, True]
    """
    margins, every = _SoftMargins(X, sign, worth, clock), np.ones(len(sign))
    best = margins.fit_plane(_COSTS[0], every)
    for cost in _COSTS[1:]:
        if not clock.over:
            best = min(best, margins.fit_plane(cost, every), key=_rows_lost)
    stays, latest = every.copy(), best
    for _ in range(_REPEATS):
        wrong = np.flatnonzero(latest.wrong & (stays > 0))
        worst = wrong[np.argsort(latest.score[wrong], kind="stable")][: (len(wrong) + 1) // 2]
        stays[worst] = 0.0
        if clock.over or len(worst) == 0 or not margins.has_both_classes(stays):
            break
        latest = margins.fit_plane(100.0, stays)
        best = min(best, latest, key=_rows_lost)
    for _ in range(_REPEATS):
        if clock.over:
            break
        latest = margins.fit_plane(10.0, 1 / (0.1 + np.maximum(0.0, 1 - best.score)))
        if latest.lost >= best.lost:
            break
        best = latest
    return best.plane, best.wrong


class _ScoredPlane(NamedTuple):
    """A plane, the rows on its wrong side, how many they are, and the scores y f."""

    plane: Hyperplane
    wrong: Flags
    lost: int
    score: Floats


def _rows_lost(found: _ScoredPlane) -> int:
    return found.lost


class _SoftMargins:
    """Fits soft margins to scaled columns."""

    def __init__(self, X: Any, sign: Ints, worth: Floats, clock: Clock) -> None:
        self._X, self._sign, self._worth, self._clock = X, sign, worth, clock
        self._fitted = draw_rows((sign > 0).astype(np.int64), _MANY, np.random.default_rng(0))
        scaling = scaler(sparse=True, wide=sp.issparse(X)).fit(X)
        self._scale, self._rows = scaling.scale_, scaling.transform(X[self._fitted])
        self._size = abs(X)

    def has_both_classes(self, weight: Floats) -> bool:
        return len(np.unique(self._sign[self._fitted][weight[self._fitted] > 0])) == 2

    def fit_plane(self, cost: float, weight: Floats) -> _ScoredPlane:
        """Return the best of a soft margin's plane and its two best offsets."""
        weights = (weight * self._worth)[self._fitted]
        with warnings.catch_warnings():
            # Any plane is a bound, optimal or not.
            warnings.simplefilter("ignore")
            machine = LinearSVC(C=cost, tol=1e-3, max_iter=200, max_time=self._clock.left)
            machine.fit(self._rows, self._sign[self._fitted], sample_weight=weights)
        w, b = machine.coef_[0] / self._scale, float(machine.intercept_[0])
        if not w.any():
            w = np.eye(1, self._X.shape[1])[0]  # any direction, as none was found
        planes = ((w, b), (w, self._best_offset(w)), (-w, self._best_offset(-w)))
        return min((self._score(*plane) for plane in planes), key=_rows_lost)

    def _score(self, w: Floats, b: float) -> _ScoredPlane:
        score = self._sign * (np.asarray(self._X @ w) + b)
        relative = 4 * (self._X.shape[1] + 2) * np.finfo(np.float64).eps
        wrong = ~(score > relative * (self._size @ np.abs(w) + abs(b)))
        return _ScoredPlane(Hyperplane(w, b), wrong, int(wrong.sum()), score)

    def _best_offset(self, w: Floats) -> float:
        """Return the offset, midway between two rows, with the fewest rows on the wrong side."""
        place = np.asarray(self._X @ w)
        order = np.argsort(place, kind="stable")
        place, negative = place[order], np.asarray(self._sign[order] < 0)
        # With the cut after row k, positive rows up to k and negative ones beyond are wrong.
        lost = np.cumsum(~negative)[:-1] + negative.sum() - np.cumsum(negative)[:-1]
        lost = np.where(place[:-1] < place[1:], lost, np.inf)
        cut = int(lost.argmin())
        return -float(place[cut] + place[cut + 1]) / 2
