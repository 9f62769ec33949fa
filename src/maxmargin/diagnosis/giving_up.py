"""How many rows must be given up before planes separate the rest.

From below: rows of two classes whose hulls meet cannot all stay, so each of several such witnesses
that share no row costs one row at least. From above: a plane, and the rows on its wrong side.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.diagnosis.clock import Clock
from maxmargin.diagnosis.inputs import Table, is_wide
from maxmargin.diagnosis.planes import pairs_of
from maxmargin.diagnosis.wrong_side import fewest_wrong
from maxmargin.geometry import Hyperplane
from maxmargin.separability import Overlap
from maxmargin.separability.deciding import decide

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FEW = 0.05  # share of the rows that still counts as few
_ROUNDS = 30  # searches for a witness, where it is clear that few rows are not enough
_IN_VAIN = 5  # rows in no hull before looking elsewhere
_ROWS = 2000  # rows that one witness is looked for among


@dataclass(frozen=True)
class GivingUp:
    """Bounds on the number of rows to give up, with what proves them.

    Attributes
    ----------
    at_least, at_most : int
        The bounds; the upper one counts the rows in ``rows``.
    rows : ndarray
        Without these, planes separate every two classes.
    planes : dict
        For each pair of class numbers the plane that separates the rest.
    overlaps : list of Overlap
        The disjoint witnesses.
    n_rows : int
        How many rows there are in all.
    finished : bool
        False if the search ended early, so that the bounds could be closer.
    """

    at_least: int
    at_most: int
    rows: Ints
    planes: dict[tuple[int, int], Hyperplane]
    overlaps: list[Overlap]
    n_rows: int
    finished: bool

    @property
    def few(self) -> bool:
        """Whether at most 5 % of the rows have to go."""
        return self.at_most <= max(1.0, FEW * self.n_rows)

    def __str__(self) -> str:
        if self.at_least == self.at_most:
            count = f"exactly {self.at_most}"
        else:
            count = f"between {self.at_least} and {self.at_most}"
        share = self.at_most / self.n_rows
        return f"{count} of {self.n_rows} rows ({share:.2%}) must be given up for planes to do"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; of more than 1000 rows the first 1000."""
        return {
            "at_least": self.at_least,
            "at_most": self.at_most,
            "rows": self.rows[:1000].tolist(),
            "witnesses": [overlap.rows.tolist() for overlap in self.overlaps[:100]],
            "finished": self.finished,
        }


def give_up(table: Table, clock: Clock, rng: np.random.Generator) -> GivingUp | None:
    """Bound how many rows must go; None if the time ran out before there was a plane a pair."""
    if sp.issparse(table.X) and not is_wide(table.X):
        table = replace(table, X=table.X.toarray())
    gone = np.zeros(len(table.y), dtype=bool)
    planes: dict[tuple[int, int], Hyperplane] = {}
    lost: dict[tuple[int, int], Ints] = {}
    for i, j, rows in pairs_of(table):
        if clock.over:
            return None
        sign = np.where(table.y[rows] == j, 1, -1)
        planes[i, j], wrong = fewest_wrong(table.X[rows], sign, clock)
        lost[i, j] = rows[wrong]
        gone[rows[wrong]] = True
    search = _Search(table, gone, clock, rng)
    finished = True
    for i, j, rows in pairs_of(table):
        finished = search.pair(rows, table.y == j, lost[i, j]) and finished
    given_up = np.flatnonzero(gone)
    return GivingUp(
        len(search.found), len(given_up), given_up, planes, search.found, len(table.y), finished
    )


class _Search:
    """Looks for witnesses that share no rows."""

    def __init__(self, table: Table, gone: Bools, clock: Clock, rng: np.random.Generator) -> None:
        self._X = table.X
        self._gone = gone
        self._free = np.ones(len(gone), dtype=bool)
        self._clock = clock
        self._rng = rng
        count = int(gone.sum())
        few = count <= max(1.0, FEW * len(gone))
        self._rounds = min(2 * count + _ROUNDS, 200) if few else _ROUNDS
        self.found: list[Overlap] = []

    def pair(self, rows: Ints, positive: Bools, lost: Ints) -> bool:
        """Look among two classes: around each row on the wrong side, then anywhere."""
        in_vain = 0
        for row in lost[self._free[lost]]:
            if in_vain == _IN_VAIN:
                break
            others = rows[(positive[rows] != positive[row]) & ~self._gone[rows]]
            before = len(self.found)
            if not self._look(np.append(self._drawn(others), row), positive):
                return False
            in_vain += len(self.found) == before
        while True:
            rest = self._drawn(rows[~self._gone[rows]])
            rest = np.concatenate([rest, lost[self._free[lost]]])
            before = len(self.found)
            if not self._look(rest, positive):
                return False
            if len(self.found) == before:
                return True

    def _drawn(self, rows: Ints) -> Ints:
        rows = rows[self._free[rows]]
        return rows if len(rows) <= _ROWS else self._rng.choice(rows, _ROWS, replace=False)

    def _look(self, rows: Ints, positive: Bools) -> bool:
        """Take the rows of a witness, if there is one; return False when it is time to stop."""
        if self._rounds <= 0 or self._clock.over:
            return False
        rows = np.sort(rows)
        if positive[rows].all() or not positive[rows].any():
            return True
        self._rounds -= 1
        seen = decide(self._X[rows], positive[rows], (0, 1), rows, True, min(2.0, self._clock.left))
        if isinstance(seen.witness, Overlap):
            self.found.append(seen.witness)
            self._free[seen.witness.rows] = False
        return True
