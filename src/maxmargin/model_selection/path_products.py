"""Scores of many solutions from one pass over the kernel values.

A certificate needs Kw and Kβ in float64, computed from the data. For the solutions of a path they
are computed together, each kernel value once, and handed to ``certify`` when it asks for them.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.certify.arithmetic import within_groups
from maxmargin.problem import KernelProblem, Solution

Floats = npt.NDArray[np.float64]


class _Remembering:
    """A kernel that knows some products, and their sizes; all else it computes."""

    def __init__(self, kernel: Any, coefficients: Floats, products: Floats, sizes: Floats) -> None:
        self._kernel, self._coefficients = kernel, coefficients
        self._products, self._sizes = products, sizes

    def dot_with_magnitudes(self, a: Any, b: Any, weights: Floats, **options: Any) -> Any:
        """Return K(a, b) @ weights and |K(a, b)| @ |weights|: rows with a weight come first."""
        count = weights.shape[1]
        used = self._coefficients[:, :count].any(axis=1)
        some = self._coefficients[used, :count]
        if len(a) == len(self._products) and np.array_equal(weights, some):
            order = np.argsort(~used, kind="stable")
            return self._products[order, :count], self._sizes[order, :count]
        return self._kernel.dot_with_magnitudes(a, b, weights, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __repr__(self) -> str:
        return repr(self._kernel)


def with_products(
    problems: list[KernelProblem], solutions: list[Solution]
) -> tuple[list[KernelProblem], list[Floats]]:
    """Return the problems of one machine at several C with the products their solutions need.

    They are for ``certify`` only; and the scores w·φ of each solution, by variable.
    """
    first = problems[0]
    rows, at = np.unique(first.rows, return_inverse=True)
    columns = np.zeros((len(rows), 2 * len(problems)))
    for k, (problem, solution) in enumerate(zip(problems, solutions, strict=True)):
        beta, _ = within_groups(problem.terms, solution.beta, problem.groups, problem.totals)
        np.add.at(columns[:, 2 * k], at, solution.w)
        np.add.at(columns[:, 2 * k + 1], at, beta)
    used = np.flatnonzero(columns.any(axis=1))
    if not len(used):
        return problems, [np.zeros(len(at)) for _ in problems]
    prepared = first.gram.exact[rows]
    unique, place = np.unique(columns, axis=1, return_inverse=True)
    unique = np.ascontiguousarray(unique[used])
    both = first.gram.kernel.dot_with_magnitudes(
        prepared, prepared[used], unique, first.gram.threads
    )
    products, sizes = (part[:, np.ravel(place)] for part in both)
    found = []
    for k, problem in enumerate(problems):
        mine = slice(2 * k, 2 * k + 2)
        known = columns[:, mine], products[:, mine], sizes[:, mine]
        gram: Any = SimpleNamespace(
            kernel=_Remembering(problem.gram.kernel, *known),
            prepared=first.gram.prepared,
            exact=first.gram.exact,
            threads=first.gram.threads,
        )
        found.append(replace(problem, gram=gram))
    return found, [products[at, 2 * k] for k in range(len(problems))]
