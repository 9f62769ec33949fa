"""A search whose fits are futures on the workers of a Dask cluster.

A future is one kernel setting in one view of the rows: all C, in all splits or in one of them,
whatever keeps the workers busy. Bits do not depend on that: nothing that is computed for one kernel
setting in one split depends on another one. What is learnt of all of them, such as which candidates
are refined, is decided in this process.
"""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from maxmargin._typing import Ints
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.model_selection.search.evaluation import (
    Evaluated,
    SearchFits,
    SparseDuals,
    quietly,
)
from maxmargin.model_selection.search.plan import Family, Split, Stage, View, group
from maxmargin.model_selection.search.run import SearchRun, lay_out_starts
from maxmargin.model_selection.search.shared_gram import state_jobs, suits_matrix
from maxmargin.rows.cluster import Cluster
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.validation.sklearn_private import fit_and_score

_TASKS_PER_THREAD = 2  # fewer would leave workers without work towards the end


class Bundle(NamedTuple):
    """What one task does: families that have a kernel in common, or one without, in some splits."""

    families: list[Family]
    splits: list[Split]  # of the view
    stage: list[Family]  # all families on the same rows that suit a matrix
    gap: float  # to which fits on a matrix are solved, if that is wider than tol
    starts: list[list[SparseDuals] | None]  # by family and split, family by family


class BundleResult(NamedTuple):
    """The results of a task, and how it got them."""

    found: list[Evaluated]
    matrices: int
    why_chains: str


class ClusterRun(SearchRun):
    """The candidates of a search in all its splits, each kernel setting on some worker."""

    def __init__(self, client: Any, fits: SearchFits, candidates: Any, **given: Any) -> None:
        super().__init__(fits, candidates, **given)
        values = [getattr(fits, each.name) for each in fields(fits)]
        self._cluster = Cluster(client)
        self._data = self._cluster.share(SearchFits, *values)  # a future
        self._bundles: list[tuple[Any, Bundle]] = []  # with the future of their view
        self.tasks = 0

    def _evaluate_all(self, pool: Executor) -> None:
        del pool
        todo = [each for stage in group(self.fits.models) for each in self._divide(stage)]
        for (view, bundle), result in zip(todo, self._run(todo), strict=True):
            self.matrices += result.matrices
            if not result.matrices:
                self.why_chains = self.why_chains or result.why_chains
                self.chains += len(bundle.families) * len(bundle.splits)
            elif self.wide > 0.0:
                self._bundles.append((view, bundle))
                for family in bundle.families:
                    self._final[family.candidates] = family.machine.tol >= self.wide
            for found in result.found:
                self._enter(found)

    def _divide(self, stage: Stage) -> Iterator[tuple[Any, Bundle]]:
        """Yield the tasks of families that share the steps before the machine."""
        splits = self.fits.splits
        suited = [family for family in stage.families if suits_matrix(family.machine)]
        kernels: dict[str, list[Family]] = {}
        for family in suited:
            kernels.setdefault(repr(named_kernel(family.machine)), []).append(family)
        enough = _TASKS_PER_THREAD * len(self._cluster.threads())
        views: list[tuple[Any, list[list[Split]]]]
        if stage.steps is None:
            # To compute a matrix for each split again is worth it only for workers without work.
            together = len(kernels) >= enough
            views = [(None, [splits] if together else [[split] for split in splits])]
        else:
            views = [
                (self._cluster.submit(_make_view, self._data, stage.steps, split), [[split]])
                for split in splits
            ]
        alone = [[family] for family in stage.families if family not in suited]
        for view, parts in views:
            for families in kernels.values():
                for some in parts:
                    yield view, self._bundle(families, some, suited, self.wide)
            for families in alone:
                for split in (split for some in parts for split in some):
                    yield view, self._bundle(families, [split], [], 0.0)

    def _bundle(
        self, families: list[Family], splits: list[Split], stage: list[Family], gap: float
    ) -> Bundle:
        starts = [self.starts.take(one, split.number) for one in families for split in splits]
        return Bundle(families, splits, stage, gap, starts)

    def _run(self, todo: list[tuple[Any, Bundle]]) -> Iterator[BundleResult]:
        self.tasks += len(todo)
        arguments = [(self._data, view, bundle) for view, bundle in todo]
        return self._cluster.run(_evaluate, arguments, "a search")

    def _solve_to_tol(self, chosen: Ints, pool: Executor) -> None:
        del pool
        todo = []
        for view, bundle in self._bundles:
            some = [family.take(_places(family, chosen)) for family in bundle.families]
            some = [family for family in some if len(family.costs)]
            if some:
                todo.append((view, self._bundle(some, bundle.splits, bundle.stage, 0.0)))
        for result in self._run(todo):
            for found in result.found:
                self._enter(found)

    @property
    def sharing(self) -> str:
        """A sentence on what was shared."""
        return f"{super().sharing}; {self.tasks} tasks on a cluster"


def _places(family: Family, chosen: Ints) -> list[int]:
    found: list[int] = np.flatnonzero(np.isin(family.candidates, chosen)).tolist()
    return found


# ------------------------------------------------------------------- on a worker


def _make_view(fits: SearchFits, steps: Any, split: Split) -> View:
    return next(fits.views(steps, [split]))


def _evaluate(fits: SearchFits, view: View | None, bundle: Bundle) -> BundleResult:
    """Fit and score the families of a bundle."""
    if view is None:
        view = next(fits.views(None, fits.splits))
    numbers = [split.number for split in bundle.splits]
    splits = [split for split in view.splits if split.number in numbers]  # as rows of the view
    why = fits.objection_to(view)
    with one_blas_thread(), quietly(), ThreadPoolExecutor(fits.threads) as pool:
        if bundle.stage and not why:
            found = _evaluate_on_matrix(fits, view, splits, bundle, pool)
            return BundleResult([each for some in found for each in some], len(found), "")
        chains = [
            fits.follow_chain(view, family, split) for family in bundle.families for split in splits
        ]
    return BundleResult(
        [each for chain in chains for each in chain], 0, why if bundle.stage else ""
    )


def _evaluate_on_matrix(
    fits: SearchFits, view: View, splits: list[Split], bundle: Bundle, pool: Executor
) -> list[list[Evaluated]]:
    """Return the results of each kernel."""
    gram = fits.gram_of(view, bundle.stage)
    keys = [(id(family), split.number) for family in bundle.families for split in splits]
    kept = dict(zip(keys, bundle.starts, strict=True))
    found = []
    for kernel, jobs in state_jobs(replace(view, splits=splits), bundle.families):
        starts = [lay_out_starts(job, kept[id(job.family), job.split.number]) for job in jobs]
        found.append(list(fits.solve(gram, kernel, jobs, pool, bundle.gap, starts)))
    return found


# ------------------------------------------------------------------- memory, and other estimators


def ask_for_memory(client: Any) -> int | None:
    """Return the bytes for kernel values of a task on the smallest worker; None: no limit."""
    limits = [
        worker["memory_limit"] // (2 * max(1, worker["nthreads"]))
        for worker in Cluster(client).workers().values()
        if worker.get("memory_limit")
    ]
    return min(limits, default=None)


class _SearchedRows(NamedTuple):
    X: Any
    y: Any


def fit_each(
    client: Any, estimator: Any, rows: tuple[Any, Any], tasks: list[Any], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return what scikit-learn's search makes of each candidate and split, of any estimator.

    ``tasks`` has parameters, rows to learn from, and rows to score.
    """
    cluster = Cluster(client)
    data = cluster.share(_SearchedRows, *rows)
    arguments = [(data, estimator, *task, options) for task in tasks]
    return list(cluster.run(_fit_one, arguments, "a search"))


def _fit_one(
    rows: _SearchedRows,
    estimator: Any,
    parameters: Any,
    train: Ints,
    test: Ints,
    options: dict[str, Any],
) -> Any:
    return fit_and_score(
        clone(estimator), rows.X, rows.y, train=train, test=test, parameters=parameters, **options
    )
