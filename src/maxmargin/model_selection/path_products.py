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
    """A kernel that knows some products; all else it computes."""

    def __init__(self, kernel: Any, coefficients: Floats, products: Floats) -> None:
        self._kernel, self._coefficients, self._products = kernel, coefficients, products

    def combine(self, a: Any, b: Any, weights: Floats, threads: int | None = None) -> Any:
        """Return K(a, b) @ weights."""
        if len(a) == len(self._products) and np.array_equal(weights, self._coefficients):
            return self._products
        return self._kernel.combine(a, b, weights, threads)

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
    bound = first.gram.exact[rows]
    unique, place = np.unique(columns, axis=1, return_inverse=True)
    products = first.gram.kernel.combine(
        bound, bound[used], np.ascontiguousarray(unique[used]), first.gram.threads
    )[:, np.ravel(place)]
    found = []
    for k, problem in enumerate(problems):
        mine = slice(2 * k, 2 * k + 2)
        some = columns[columns[:, mine].any(axis=1), mine]
        kernel = _Remembering(problem.gram.kernel, some, products[:, mine])
        gram: Any = SimpleNamespace(
            kernel=kernel, exact=first.gram.exact, threads=first.gram.threads
        )
        found.append(replace(problem, gram=gram))
    return found, [products[at, 2 * k] for k in range(len(problems))]
