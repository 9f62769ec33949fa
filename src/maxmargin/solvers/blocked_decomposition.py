"""Kernel machines whose rows live in blocks: decomposition with a working set in memory.

    max  Σ tβ − ½βᵀKβ    s.t.  low ≤ β ≤ high,  Σβ = 0 if there is an intercept

The working set holds all rows whose β is not 0, and begins as a sample. A round solves the problem
of the working set by the method for rows in memory (``decomposition``), which the other rows have
no part in. The rows with a β then travel to all blocks: each computes their kernel values with its
rows, sets its scores and returns its worst violators, which join the working set. A round is one
pass over the rows, and a dozen rounds usually do, as nearly all rows that end with a β are found in
the first two.

Where a fit stands between two rounds is the working set and a few numbers: a checkpoint.

Vapnik (1982), chunking; Joachims (1998).
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.certificates.blocked import best_intercept_of
from maxmargin.errors import DataFileError
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.blocked import take_rows
from maxmargin.problems.blocked_kernel import (
    BlockedKernelProblem,
    SupportDuals,
    Terms,
    compared,
    costly_rows,
)
from maxmargin.problems.problem import Iterate, KernelProblem, Point
from maxmargin.rows.blocks import Block
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.solvers.decomposition import Decomposition
from maxmargin.validation.data import stacked

# ------------------------------------------------------------------- what blocks do


class Violators(NamedTuple):
    """The rows outside the working set that violate the optimality conditions most."""

    most: int  # that are kept
    violation: Floats
    rows: Ints
    X: Any
    loss: Loss

    def plus(self, other: "Violators") -> "Violators":
        """Return the worst of both; of equal ones those that come first."""
        both = Violators(
            self.most,
            np.concatenate([self.violation, other.violation]),
            np.concatenate([self.rows, other.rows]),
            stacked([self.X, other.X]),
            joined_losses(self.loss, other.loss),
        )
        if len(both.rows) <= both.most:
            return both
        return both.take(worst_of(both.violation, both.most))

    def take(self, at: Ints) -> "Violators":
        """Return some of them."""
        chosen = self.violation[at], self.rows[at], self.X[at], self.loss.take(at)
        return Violators(self.most, *chosen)


def joined_losses(one: Loss, other: Loss) -> Loss:
    """Return the losses of rows one after the other."""
    target, low, high, quadratic = map(np.concatenate, zip(one[:4], other[:4], strict=True))
    return Loss(target, low, high, quadratic, one.epsilon)


def worst_of(violation: Floats, most: int) -> Ints:
    """Return where the largest numbers are, ascending; of equal ones the first are taken."""
    return np.sort(np.argsort(-violation, kind="stable")[:most])


class Message(NamedTuple):
    """What all blocks are told in a round."""

    terms: Terms  # rows with a β
    rows: Ints  # the working set
    beta: Floats
    b: float
    least: float  # violation that counts
    most: int  # violators that may join
    precise: bool


def update(block: Block, message: Message) -> tuple[float, Violators]:
    """Set the scores of a leaf; return βᵀf of its rows, and its worst violators."""
    loss, at = costly_rows(block)
    size, f = block.end - block.begin, block.vectors["score"][block.begin : block.end]
    f[:] = 0.0
    if len(message.terms.coefficients):
        for some, both in compared(block, at, message.terms):
            f[some] = _dot(message.terms, both, message.precise)
    begin, end = np.searchsorted(message.rows, [block.first, block.first + size])
    inside = message.rows[begin:end] - block.first
    residual = loss.target - f - message.b
    violation = np.where(loss.high > 0, residual, 0.0)
    np.maximum(violation, -residual, out=violation, where=loss.low < 0)
    violation[inside] = 0.0
    at = np.flatnonzero(violation > message.least)
    if len(at) > message.most:
        at = at[worst_of(violation[at], message.most)]
    rows, X = block.first + at, block.X[block.begin + at]
    found = Violators(message.most, violation[at], rows, X, loss.take(at))
    return float(message.beta[begin:end] @ f[inside]), found


def _dot(terms: Terms, both: Any, precise: bool) -> Floats:
    """Return Σ aK of rows that come after those with coefficients."""
    count, prepared = len(terms.coefficients), terms.kernel.prepare(both)
    narrow = None if precise else terms.kernel.narrowed(prepared)
    rows = prepared if narrow is None else narrow
    weights = terms.coefficients[:, np.newaxis].astype(rows.dtype)
    return terms.kernel.dot(rows[count:], rows[:count], weights)[:, 0]


def merge_updates(one: Any, other: Any) -> tuple[float, Violators]:
    """Return the sums of two runs of leaves, and the worst violators of both."""
    return one[0] + other[0], one[1].plus(other[1])


def sum_losses(block: Block, b: float) -> float:
    """Return Σ ℓ(score + b) of a leaf."""
    loss, _ = costly_rows(block)
    return float(losses.values(loss, block.vectors["score"][block.begin : block.end] + b).sum())


# ------------------------------------------------------------------- the working set


class WorkingSet:
    """Rows in memory, with their losses and duals."""

    def __init__(self, problem: BlockedKernelProblem, rows: Ints, beta: Floats) -> None:
        self.problem = problem
        X, loss = take_rows(problem.blocks, rows)
        costly = np.flatnonzero(loss.high > loss.low)
        self.rows, self.X, self.loss = rows[costly], X[costly], loss.take(costly)
        self.beta = beta[costly]
        self._stated: KernelProblem | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def duals(self) -> SupportDuals:
        """The duals that are not 0."""
        used = np.flatnonzero(self.beta)
        return SupportDuals(self.rows[used], self.beta[used])

    @property
    def terms(self) -> Terms:
        """The rows with a dual."""
        used = np.flatnonzero(self.beta)
        return Terms(self.problem.kernel, self.X[used], self.beta[used])

    def solve(self, method: Decomposition) -> Iterator[float]:
        """Solve the problem of these rows; yield the intercept after each step."""
        if not len(self):
            return
        if self._stated is None:
            self._stated = self.problem.of_rows(self.X, self.loss)
        for iterate in method.iterates(self._stated, Point(None, 0.0, self.beta)):
            self.beta = iterate.beta
            yield float(iterate.b[0]) if len(iterate.b) else 0.0
            if iterate.finished and iterate.relative_gap <= method.wanted:
                return

    def join(self, found: Violators) -> None:
        """Take violators in."""
        rows = np.concatenate([self.rows, found.rows])
        order, none = np.argsort(rows), np.zeros(len(found.rows))
        loss = joined_losses(self.loss, found.loss).take(order)
        self.rows, self.X, self.loss = rows[order], stacked([self.X, found.X])[order], loss
        self.beta = np.concatenate([self.beta, none])[order]
        self._stated = None

    def leave_idle(self) -> None:
        """Let go of the rows whose duals are 0."""
        used = np.flatnonzero(self.beta)
        self.rows, self.X, self.loss = self.rows[used], self.X[used], self.loss.take(used)
        self.beta, self._stated = self.beta[used], None

    def capacity(self) -> int:
        """Return how many more rows the memory holds, if need be after idle ones left."""
        memory = self.problem.memory
        if memory is None:
            return len(self.problem)
        if self._rows_in(memory) <= len(self):
            self.leave_idle()
        return max(0, self._rows_in(memory) - len(self))

    def refuse(self) -> None:
        """Raise an error that says that there are too many support vectors."""
        raise ValueError(
            f"The {len(self)} support vectors found so far fill the {self.problem.memory} bytes "
            "that are for them, a quarter of the memory, and there are more: open the source with "
            "more memory=, lower gamma, or use Nystroem with LinearSVC, which keeps no rows"
        )

    def _rows_in(self, memory: int) -> int:
        X, n = self.X, max(1, len(self))
        taken = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
        return int(memory // max(8.0, taken / n + 64))


# ------------------------------------------------------------------- the solver


@dataclass(frozen=True)
class BlockedDecomposition:
    """Settings of the method."""

    wanted: float = 1e-4  # relative gap
    precise: bool = False  # kernel values in float64 throughout
    sample: int = 2500  # rows that the working set begins with
    sample_gap: float = 0.05  # relative gap at which the sample is solved
    growth: float = 3.0  # by how many times its rows the working set may grow in a round
    fewest: int = 1000  # violators that may join in any case
    ahead: float = 0.1  # part of the gap of all rows to which the working set is solved next …
    below: float = 0.3  # … but not below this part of the wanted one, at first
    least: float = 0.1  # part of the wanted gap: violations (of a margin of 1) below do not count
    closest: float = 1e-4  # part of these last two at which it gives up

    def iterates(self, problem: BlockedKernelProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each round, and unfinished ones while one is being made."""
        fit = _Fit(self, problem, start)
        yield from fit.repeated()
        while True:
            yield from fit.solve()
            found = fit.update()
            fit.seen.append((fit.best.primal, fit.best.dual))
            yield fit.best
            if not fit.go_on(found):
                break
            fit.save()
        yield replace(fit.best, converged=True)


class _Fit:
    """A problem on its way, and the best iterate so far."""

    def __init__(
        self, method: BlockedDecomposition, problem: BlockedKernelProblem, start: Point
    ) -> None:
        self.method, self.problem = method, problem
        started = start.beta is not None and len(start.beta.rows) > 0
        rows, beta = start.beta if started else self._sample()
        self.target = method.below * method.wanted if started else method.sample_gap
        self.closer, self.b = 1.0, 0.0
        self.seen: list[tuple[float, float]] = []  # bounds after each round
        self.best = Iterate(np.inf, -np.inf, np.zeros(0), 0.0, SupportDuals(rows[:0], beta[:0]))
        if (saved := self._saved()) is not None:
            rows, beta = saved["rows"], saved["beta"]
            self._set(saved)
        self.working = WorkingSet(problem, rows, beta)
        problem.blocks.renew("score")

    def _sample(self) -> tuple[Ints, Floats]:
        seed, n = np.random.default_rng(0), len(self.problem)
        count = min(n, self.method.sample)
        rows = np.arange(n) if count == n else np.unique(seed.integers(n, size=count))
        return rows, np.zeros(len(rows))

    def solve(self) -> Generator[Iterate]:
        """Solve the problem of the working set, yielding unfinished iterates."""
        method = Decomposition(self.target, precise=self.method.precise)
        for b in self.working.solve(method):
            self.b = b
            duals = self.working.duals
            yield replace(self.best, w=duals.values, b=b, beta=duals).unfinished()

    def update(self) -> Violators:
        """Bring all scores up to date, and the best iterate; return the worst violators."""
        method, working, blocks = self.method, self.working, self.problem.blocks
        capacity, least = working.capacity(), method.least * method.wanted * self.closer
        most = max(1, min(max(method.fewest, int(method.growth * len(working))), capacity))
        terms = working.terms
        message = Message(terms, working.rows, working.beta, self.b, least, most, method.precise)
        work = float(blocks.n) * max(1, len(terms.coefficients))
        found: Violators
        norm2, found = blocks.map(
            update, message, writes=("score",), merge=merge_updates, numbers=work
        )
        if len(found.rows) > capacity:
            working.refuse()
        if len(self.problem.totals):
            self.b = best_intercept_of(blocks, self.b)
        paid = blocks.map(sum_losses, self.b, reads_rows=False, numbers=4.0 * blocks.n)
        primal = 0.5 * norm2 + paid
        dual, duals = losses.dual_value(working.loss, working.beta) - 0.5 * norm2, working.duals
        if primal - dual <= self.best.primal - self.best.dual:
            self.best = Iterate(primal, dual, duals.values, self.b, duals)
        return found

    def go_on(self, found: Violators) -> bool:
        """Take violators in, and decide how far to go next; return whether to go on at all."""
        method = self.method
        if len(found.rows):
            self.working.join(found)
        elif self.target <= method.below * method.wanted * self.closer:
            if self.closer <= method.closest:
                return False
            self.closer *= 0.1
        gap = method.ahead * self.best.relative_gap
        self.target = min(self.target, max(gap, method.below * method.wanted * self.closer))
        return True

    # Checkpoints.

    _NUMBERS = "target", "closer", "b"

    def save(self) -> None:
        """Write where the fit stands between two rounds."""
        at, best = self.problem.checkpoint, self.best
        if at is None:
            return
        state = {
            "digest": np.array(at.digest),
            "method": np.array(repr(self.method)),
            "seen": np.array(self.seen),
            "rows": self.working.rows,
            "beta": self.working.beta,
            "numbers": np.array([getattr(self, name) for name in self._NUMBERS]),
            "best": np.array([best.primal, best.dual, best.b]),
            "best_rows": best.beta.rows,
            "best_beta": best.beta.values,
        }
        at.folder.mkdir(parents=True, exist_ok=True)

        def write(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, **state)

        write_atomically(at.folder / _FILE, write)

    def _saved(self) -> dict[str, Any] | None:
        """Return what this method wrote last in a fit of the same problem."""
        at = self.problem.checkpoint
        if at is None or not (at.folder / _FILE).exists():
            return None
        try:
            with (at.folder / _FILE).open("rb") as raw, np.load(raw) as file:
                found = {name: file[name] for name in file.files}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as wrong:
            raise DataFileError(
                f"{at.folder / _FILE}: this checkpoint cannot be read ({wrong}): remove it, or "
                "choose another folder"
            ) from wrong
        if str(found["digest"]) != at.digest:
            raise ValueError(
                f"checkpoint={str(at.folder.parent)!r} holds a fit that was not finished, to other "
                "rows or with other parameters: name another folder, or remove this one if that "
                "fit need not go on."
            )
        return found if str(found["method"]) == repr(self.method) else None

    def _set(self, saved: dict[str, Any]) -> None:
        for name, value in zip(self._NUMBERS, saved["numbers"].tolist(), strict=True):
            setattr(self, name, value)
        primal, dual, b = saved["best"].tolist()
        duals = SupportDuals(saved["best_rows"], saved["best_beta"])
        self.best = Iterate(primal, dual, duals.values, b, duals)
        self.seen = [(primal, dual) for primal, dual in saved["seen"].tolist()]

    def repeated(self) -> Iterator[Iterate]:
        """Yield what the driver saw before the process was killed, so that it counts the same."""
        return (replace(self.best, primal=primal, dual=dual) for primal, dual in list(self.seen))


_FILE = "working-set.npz"
