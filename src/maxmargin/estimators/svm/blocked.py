"""Kernel machines on rows that are read in blocks: from disk, or by the workers of a cluster.

Rows that fit into the memory are read into it, and fitted there. If they do not fit, or a cluster
holds them, SVC solves its problems on the blocks. Its support vectors must fit into the memory in
any case. The model is the ordinary one, made of the support vectors alone.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.formulations import Training
from maxmargin.estimators.kernel_input import count_threads
from maxmargin.estimators.linear.blocked import (
    KEPT_NUMBERS,
    Opened,
    as_source,
    is_source,
    remove_checkpoints,
    vector_of,
)
from maxmargin.estimators.machine import UNASKED, Formulated, Solved, solver_settings
from maxmargin.estimators.reductions import HingeMultipliers, class_pairs, refuse_other_scheme
from maxmargin.estimators.surveyed import depends_on_columns, resolve_kernel, weigh_columns
from maxmargin.estimators.svm.base import KernelClassifier
from maxmargin.estimators.svm.gathered import gather, keep_names
from maxmargin.problems.blocked import HingeRule
from maxmargin.problems.blocked_kernel import BlockedKernelProblem, SupportDuals
from maxmargin.problems.gram import free_memory
from maxmargin.problems.problem import Intercept, Point
from maxmargin.rows.blocks import Block, join
from maxmargin.rows.on_disk import RowsOnDisk
from maxmargin.runtime import clock
from maxmargin.solve import Budget, Result, solve_all
from maxmargin.validation.data import LARGEST_SQUARE, check_class_weights, name_overflow, stacked

# ------------------------------------------------------------------- SVC on blocks


class FitsBlocks(HingeMultipliers, KernelClassifier):
    """A classifier with the hinge loss that is fitted to rows in memory, or in blocks."""

    C: float
    fit_intercept: bool

    def _fit_source(self, X: Any, y: Any, sample_weight: Any) -> Self:
        began, source = clock.now(), as_source(X, y, sample_weight)
        self.check_parameters()
        opened = Opened.of(source, targets=False, threads=count_threads(self.n_jobs))
        found = gather(opened)
        if found is not None:
            self._fit(*found)
            keep_names(self, opened)
            return self
        self._refuse_in_blocks()
        for name in self._forgotten:  # whatever fails from here on leaves it unfitted
            self.__dict__.pop(name, None)
        opened = self._check_blocks(opened)
        problems = self._blocked_problems(opened)
        starts, budget = [Point()] * len(problems), Budget(self.max_time, began)
        results = solve_all(problems, starts, solver_settings(self), budget)
        self._adopt_blocks(opened, results)
        remove_checkpoints(problems)
        return self

    def solution(self, X: Any, y: Any, sample_weight: Any = None) -> list[Solved]:
        """Return the problems that were solved, and the model as their solutions."""
        if not is_source(X):
            return super().solution(X, y, sample_weight)
        check_is_fitted(self)
        refuse_other_scheme(self, self._scheme)
        self._refuse_unknown_rows()
        self._refuse_altered()
        source = as_source(X, y, sample_weight)
        opened = Opened.of(source, targets=False, threads=count_threads(self.n_jobs))
        opened.check(self, reset=False)
        if (found := gather(opened)) is not None:
            return super().solution(*found)
        if (opened.survey.n, opened.survey.d) != tuple(self.shape_fit_):
            raise ValueError(
                f"{type(self).__name__} was trained on {self.shape_fit_[0]} rows, but the source "
                f"has {opened.survey.n}: certify needs the training rows, all of them."
            )
        planes, order = self._coefficients()[:, self._solved].T, np.argsort(self.support_)
        every, solved = np.arange(opened.survey.n), []
        for problem, beta, b in zip(
            self._blocked_problems(opened), planes, self.intercept_[self._solved], strict=True
        ):
            used = order[beta[order] != 0]
            duals = SupportDuals(self.support_[used], beta[used])
            solved.append(Solved(problem, Point(duals.values, float(b), duals), every))
        return solved

    def _refuse_in_blocks(self) -> None:
        """Raise if a parameter asks for what needs all rows in memory."""
        ways_out = {
            "probability": (self.probability not in UNASKED, "drop it, and calibrate other rows"),
            "warm_start": (self.warm_start, "drop it"),
        }
        for name, (asked, way_out) in ways_out.items():
            if asked:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs all rows in memory, but these are read "
                    f"in blocks: {way_out}."
                )
        kernel = self._named_kernel()
        if kernel.takes_gram or kernel.takes_objects:
            raise ValueError(
                f"kernel={self.kernel!r} is no function of two rows of numbers, as blocks hold "
                "them: choose one that is, or fit to arrays."
            )
        if self._is_linear(kernel):
            raise ValueError(
                f"kernel={self.kernel!r} needs all rows in memory, but these are read in blocks: "
                f"LinearSVC(C={self.C!r}) solves the same problem by blocks."
            )

    def _check_blocks(self, opened: Opened) -> Opened:
        """Note what is known of the rows; return them with blocks that leave memory for others."""
        opened.check(self, reset=True)
        found, options = opened.survey, opened.source.options
        if found.largest_square >= LARGEST_SQUARE:
            columns = found.columns
            names = opened.source.feature_names
            raise ValueError(name_overflow(names, columns.largest_column, columns.largest_value))
        if isinstance(opened.blocks, RowsOnDisk) and options.memory is not None:
            opened = replace(opened, blocks=self._smaller_blocks(opened, options.memory))
        self.shape_fit_, self.classes_ = (found.n, found.d), found.classes
        kernel, columns = self._named_kernel(), found.columns
        if depends_on_columns(kernel):
            columns = weigh_columns(opened.blocks)
        self.kernel_ = resolve_kernel(kernel, columns)
        return opened

    def _smaller_blocks(self, opened: Opened, memory: int) -> RowsOnDisk:
        """Return blocks for half of the memory: the rest is for support vectors and values."""
        half = opened.source.with_options(memory=memory // 2)
        try:
            return RowsOnDisk(half, opened.survey, threads=count_threads(self.n_jobs))
        except ValueError as wrong:
            raise ValueError(
                f"memory={memory} bytes is too little for a kernel machine, of which half is for "
                f"blocks of rows, so that twice as much as this is needed: {wrong}"
            ) from wrong

    def _blocked_problems(self, opened: Opened) -> list[BlockedKernelProblem]:
        factors, left = check_class_weights(self, self.classes_, opened.survey.weights)
        self.class_weight_ = factors
        intercept = Intercept.FREE if self.fit_intercept else Intercept.NONE
        memory = opened.source.options.memory
        share = (free_memory() if memory is None else memory) // 4
        asked, threads = self._bytes(), count_threads(self.n_jobs)
        values = share if asked is None else asked
        found = []
        pairs = class_pairs(left, len(self.classes_), self.multi_class)
        for number, pair in enumerate(pairs):
            rule = HingeRule(float(self.C), "hinge", tuple(factors.tolist()), *pair)
            blocks = opened.blocks.with_loss(rule)
            told = f"{rule!r} {intercept} {self.tol!r} {self.kernel_!r}"
            checkpoint = opened.checkpoint_of(number, told)
            found.append(
                BlockedKernelProblem(
                    blocks, self.kernel_, intercept, share, values, threads, checkpoint
                )
            )
        return found

    def _adopt_blocks(self, opened: Opened, results: list[Result]) -> Self:
        """Become the model of solutions: that of the rows with a dual, which are in memory."""
        blocks, n = opened.blocks, opened.survey.n
        # One row of each class is there in any case, so that all problems have both of theirs.
        firsts = blocks.map(
            _first_rows, len(self.classes_), self.class_weight_, reads_rows=False,
            merge=np.minimum, numbers=2.0 * n,
        )  # fmt: skip
        own = [result.point.beta.rows for result in results]
        rows = np.unique(np.concatenate([*own, firsts[firsts < n]]))
        found = blocks.map(_take_labelled, rows, merge=join)
        X = stacked([part[0] for part in found])
        labels, weight = (np.concatenate([part[k] for part in found]) for k in (1, 2))
        data = Training(X, labels, weight * self.class_weight_[labels], rows, n, self.classes_)
        form = self._form()
        stated = Formulated(data, form, form.problems(data, self._features(data)))
        solved = [
            _on_rows(result, rows[some])
            for result, some in zip(results, form.rows(data), strict=True)
        ]
        try:
            return self.adopt(stated, solved)
        finally:
            self._keep_all_costs(blocks)

    def _keep_all_costs(self, blocks: Any) -> None:
        """Note what a unit of slack costs in each row, unless rows are too many."""
        self.__dict__.pop("_row_costs", None)
        if blocks.n > KEPT_NUMBERS:
            return
        labels, weight = (vector_of(blocks.vector(name)) for name in ("labels", "weight"))
        labels = np.asarray(labels, dtype=np.int64)
        cost = self.C * (weight * self.class_weight_[labels])
        kept = np.flatnonzero(cost > 0)
        self._keep_costs(labels[kept], cost[kept], kept, len(labels))


def _on_rows(result: Result, rows: Ints) -> Result:
    """Return a result with the duals of these rows, among which are all that have one."""
    support, values = result.point.beta
    beta = np.zeros(len(rows))
    beta[np.searchsorted(rows, support)] = values
    point = Point(beta, np.array(result.certificate.intercepts), beta)
    return Result(
        point, result.certificate, result.status, result.iterations, result.seconds, result.solver,
        result.trace,
    )  # fmt: skip


def _first_rows(block: Block, n_classes: int, factors: Floats) -> Ints:
    """Return the first row of each class that counts; a number beyond all rows if none does."""
    own = slice(block.begin, block.end)
    labels, weight = block.vectors["labels"][own], block.vectors["weight"][own]
    first = np.full(n_classes, np.iinfo(np.int64).max)
    at = np.flatnonzero(weight * factors[labels] > 0)
    np.minimum.at(first, labels[at], block.first + at)
    return first


def _take_labelled(block: Block, rows: Ints) -> list[Any]:
    begin, end = np.searchsorted(rows, [block.first, block.first + block.end - block.begin])
    if begin == end:
        return []
    at = rows[begin:end] - block.first + block.begin
    labels, weight = block.vectors["labels"], block.vectors["weight"]
    return [(block.X[at], np.asarray(labels)[at], np.asarray(weight)[at])]
