"""First rung: equal inputs with different labels, which no rule can all get right."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

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
