"""Those who are compared, ours and others', behind one small protocol."""

from typing import Any, NamedTuple, Protocol

from benchmarks.datasets import Dataset


class Budget(NamedTuple):
    """How long a solver may work: the benchmark that sets it says in which unit it counts."""

    steps: int


class Solver(Protocol):
    """Someone who can learn from a data set within a budget."""

    @property
    def name(self) -> str:
        """The library, and what is special about the settings."""
        ...

    @property
    def version(self) -> str:
        """The library's version."""
        ...

    def fit(self, dataset: Dataset, budget: Budget) -> Any:
        """Learn from scratch; return a fitted scikit-learn classifier."""
        ...
