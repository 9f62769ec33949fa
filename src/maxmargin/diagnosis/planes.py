"""Second rung: does a plane separate every two classes? With many rows, some of them first."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from maxmargin._typing import Ints
from maxmargin.clock import Clock
from maxmargin.diagnosis.inputs import Table, draw_rows
from maxmargin.geometry import Hyperplane, mistake_bound, radius
from maxmargin.separability import Separation
from maxmargin.separability.decide import decide, verified_plane

# ------------------------------------------------------------------- conflicts
#
# First rung: equal inputs with different labels, which no rule can all get right.


# Two rows in a hundred must be predicted wrongly: with equal rows in pairs, four in a hundred.
FORCED = 0.02


@dataclass(frozen=True)
class Conflicts:
    """Rows with equal inputs and different labels.

    Attributes
    ----------
    groups : list of ndarray
        Row numbers of each set of equal rows with different labels.
    errors : int
        How many rows any rule predicts wrongly: in each group all but the most frequent label.
    share : float
        ``errors`` divided by the number of rows: the least possible training error.
    rows : int
        How many rows are in these groups.
    """

    groups: list[Ints]
    errors: int
    share: float
    rows: int

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
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(sizes)
    groups = [np.sort(order[ends[g] - sizes[g] : ends[g]]) for g in mixed]
    groups.sort(key=lambda rows: int(rows[0]))
    errors = int((sizes - most).sum())
    return Conflicts(groups, errors, errors / len(y), int(sizes[mixed].sum()))


# -------------------------------------------------------------------


_ENOUGH = 4000  # rows of a pair of classes that are asked before all are
_ADDED = 1000  # rows that are added to them in a round
_ROUNDS = 30


@dataclass(frozen=True)
class Planes:
    """What was found about every two classes.

    Attributes
    ----------
    separable : bool or None
        Whether planes separate all pairs; None if some pair is undecided and none overlaps.
    pairs : dict
        The Separation of each pair of class numbers that was looked at.
    rows_seen : int
        How many rows were looked at.
    """

    separable: bool | None
    pairs: dict[tuple[int, int], Separation]
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


def pairs_of(table: Table) -> Iterator[tuple[int, int, Ints]]:
    """Yield every two classes, with the numbers of their rows."""
    for i, j in combinations(range(table.n_classes), 2):
        yield i, j, np.flatnonzero((table.y == i) | (table.y == j))


def find_planes(table: Table, clock: Clock, rng: np.random.Generator, every: bool) -> Planes:
    """Ask about every two classes; unless ``every``, stop at the first that no plane separates."""
    pairs: dict[tuple[int, int], Separation] = {}
    seen = np.zeros(len(table.y), dtype=bool)
    separable: bool | None = True
    for i, j, rows in pairs_of(table):
        if clock.over:
            separable = None if separable else separable
            break
        found, looked_at = _pair(table, i, j, rows, clock, rng)
        pairs[i, j] = found
        seen[looked_at] = True
        if found.separable is False:
            separable = False
            if not every:
                break
        elif found.separable is None and separable:
            separable = None
    return Planes(separable, pairs, int(seen.sum()))


def _pair(
    table: Table, i: int, j: int, rows: Ints, clock: Clock, rng: np.random.Generator
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
            return _with_plane(plane, X, sign, labels), rows
        worst = np.argsort(found.witness.functional_margin(X, sign), kind="stable")[:_ADDED]
        some = np.union1d(some, worst)
    return decide(X, positive, labels, rows, True, clock.left), rows


def _with_plane(plane: Hyperplane, X: Any, sign: Ints, labels: tuple[Any, Any]) -> Separation:
    margin = float(plane.geometric_margin(X, sign).min())
    return Separation(True, plane, labels, margin, radius(X), mistake_bound(plane, X, sign))
