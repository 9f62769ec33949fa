"""Where a hard margin looks for its planes: among the rows themselves, or in feature space."""

from typing import Any, Protocol

from maxmargin.estimators.reductions import Task
from maxmargin.problems.gram import Gram, free_memory
from maxmargin.problems.problem import Intercept
from maxmargin.separability.max_margin import NoPlane, Widest, widest
from maxmargin.separability.max_margin_kernel import (
    MATRICES,
    FeatureRows,
    conflicting,
    widest_by_kernel,
)
from maxmargin.separability.overlap import conflict


class Planes(Protocol):
    """Rows that can be asked for the widest plane of a task."""

    def find(self, task: Task, intercept: Intercept, **budget: Any) -> Widest | NoPlane:
        """Return it, or why there is none; ``budget`` is that of ``widest``."""
        ...


class LinearPlanes:
    """Rows as they are."""

    def __init__(self, X: Any) -> None:
        self._X = X

    def find(self, task: Task, intercept: Intercept, **budget: Any) -> Widest | NoPlane:
        """Return the widest plane, or why there is none."""
        X = self._X if task.rows is None else self._X[task.rows]
        return widest(X, task.signs, intercept, **budget)


class KernelPlanes:
    """Rows in the feature space of a kernel, by their Gram matrix, which is computed here."""

    def __init__(self, gram: Gram, X: Any) -> None:
        refuse_many(len(gram), gram.memory)
        self._rows = FeatureRows.of(gram)
        told_by_values = gram.kernel.takes_gram or gram.kernel.takes_objects
        self._given = self._rows.K if told_by_values else X  # what shows that two rows are the same

    def find(self, task: Task, intercept: Intercept, **budget: Any) -> Widest | NoPlane:
        """Return the widest plane, or why there is none."""
        free = intercept is Intercept.FREE
        given = self._given if task.rows is None else self._given[task.rows]
        rows = self._rows if task.rows is None else self._rows[task.rows]
        pair = conflict(given, task.signs > 0, free)
        if pair is not None:
            return conflicting(pair, rows, task.signs, free)
        return widest_by_kernel(rows, task.signs, intercept, **budget)


def refuse_many(n: int, memory: int | None) -> None:
    """Raise if the Gram matrix of n rows, and what is made of it, would not fit into memory."""
    room = free_memory() if memory is None else memory
    most = int((room / (8 * MATRICES)) ** 0.5)
    if n > most:
        raise ValueError(
            f"HardMarginSVC with a kernel holds {MATRICES} matrices as large as the Gram matrix: "
            f"{n} rows would take {8e-9 * MATRICES * n * n:.3g} GB, and {1e-9 * room:.3g} GB are "
            f"allowed, for {most} rows. Raise memory (in bytes), take fewer rows, or use SVC with "
            "a large C, which holds only parts of it."
        )
