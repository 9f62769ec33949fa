"""Rows of a Gram matrix, computed once and kept while memory allows."""

from collections import deque
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.kernels import PreparedRows
from maxmargin.kernels.prepared import FloatArray
from maxmargin.problems.gram import Gram
from maxmargin.runtime.threads import share_work, usual_threads

_MOST_ADDED = 0.5  # columns, as a part of those there, beyond which rows are computed anew
_WORTH_THREADS = 1 << 19  # values to be copied or summed
_STRETCH = 1024  # places that are added to at a time: cut elsewhere, the last bits would be others
_AT_ONCE = 4  # rows that are added to scores together, whatever there is room for


class RowCache:
    """Rows of a Gram matrix over some of its columns, computed once and kept while there is room.

    Rows and columns go by their position among ``columns``. Nothing but time depends on the memory:
    what is done with a row depends on whether it is ``known``, that is whether it would be here if
    there were room for all, and values that are computed again are the same to the bit.
    """

    def __init__(self, gram: Gram, prepared: PreparedRows, least: int = 64) -> None:
        self.gram = gram
        self.prepared = prepared
        self._buffer = self._block = np.empty(0, self.prepared.dtype)
        self._least = least
        self._chance = np.random.default_rng(0)
        self.known = np.zeros(len(prepared), bool)
        self._empty()

    def __len__(self) -> int:
        return len(self.prepared)

    def _empty(self) -> None:
        width = max(1, len(self))
        self._lay_out(width, self.gram.memory)
        self._slot = np.full(width, -1)
        self._held = np.full(self.capacity, -1)
        self._next, self._full = 0, False

    def _lay_out(self, width: int, memory: int) -> None:
        """Set how many rows of this width there is room for."""
        itemsize = self.prepared.dtype.itemsize
        room = max(self._least, memory // (itemsize * width))
        self.capacity = int(min(width, room - room % _AT_ONCE))
        if self._buffer.size < self.capacity * width:
            self._buffer = np.empty(self.capacity * width, self.prepared.dtype)
        self.values = self._buffer[: self.capacity * width].reshape(self.capacity, width)

    def _has(self, positions: Ints) -> npt.NDArray[np.bool_]:
        return np.asarray(self._slot[positions] >= 0)

    def slots(self, positions: Ints) -> Ints:
        """Return where in ``values`` the rows are."""
        return np.asarray(self._slot[positions])

    def fetch(self, positions: Ints) -> Ints:
        """Compute the rows that are not here, and return where all of them are."""
        self.known[positions] = True
        missing = positions[~self._has(positions)]
        while len(missing):
            free = self._free_run(len(missing), positions)
            part, missing = missing[: len(free)], missing[len(free) :]
            run = self.values[free[0] : free[-1] + 1]
            rows = self.prepared[part]
            self.gram.kernel.block(rows, self.prepared, out=run, threads=self.gram.threads)
            self._slot[part] = free
            self._held[free] = part
        return self.slots(positions)

    def add_to(
        self, f: Floats, positions: Ints, weights: Floats, keep: npt.NDArray[np.bool_]
    ) -> None:
        """Do f += Σ weights · rows, keeping those rows that are known and those that are to be.

        Most rows are needed once: memory for them would cost more than to compute them.
        """
        kept = keep | self.known[positions]
        passing = self.prepared[positions[~kept]]
        if len(passing):
            some = weights[~kept][:, np.newaxis]
            f += self.gram.kernel.dot(self.prepared, passing, some, self.gram.threads)[:, 0]
        for begin in range(0, int(kept.sum()), self.capacity):
            part = slice(begin, begin + self.capacity)
            self._add_stored(f, positions[kept][part], weights[kept][part])

    def _add_stored(self, f: Floats, positions: Ints, weights: Floats) -> None:
        slots = self.fetch(positions)
        threads = self._threads_for(len(slots) * len(f))
        stretches = -(-len(f) // _STRETCH)
        cuts = (np.linspace(0, stretches, threads + 1).astype(int) * _STRETCH).tolist()
        cuts[-1] = len(f)

        def add(run: Ints) -> None:
            loops.decomposition.add_rows(self.values, slots, weights, run, f)

        runs = deque(np.array([[begin, end, begin]]) for begin, end in pairwise(cuts))
        share_work(add, runs, threads)

    def _free_run(self, count: int, wanted: Ints) -> Ints:
        """Return up to so many consecutive slots: free ones, then those of rows not wanted now."""
        keep = np.zeros(self.capacity, bool)
        keep[self._slot[wanted[self._has(wanted)]]] = True
        if self._next >= self.capacity or self._full:
            # Anywhere: in turn would throw out each row just before it is needed again.
            self._full = True
            self._next = int(self._chance.integers(self.capacity))
        while keep[self._next]:
            self._next = (self._next + 1) % self.capacity
        stop = min(self._next + count, self.capacity)
        kept = np.flatnonzero(keep[self._next : stop])
        if len(kept):
            stop = self._next + int(kept[0])
        run = np.arange(self._next, stop)
        old = self._held[run]
        self._slot[old[old >= 0]] = -1
        self._next = stop
        return run

    def block(self, positions: Ints) -> FloatArray:
        """Return the square of the matrix for some rows, from known rows where possible.

        It is valid until the next one is asked for.
        """
        size, block, threads = len(positions), self.gram.kernel.block, self.gram.threads
        if self._block.size < size**2:
            self._block = np.empty(size**2, self.prepared.dtype)
        out = self._block[: size**2].reshape(size, size)
        known, missing = self.known[positions], np.flatnonzero(~self.known[positions])
        if len(missing) > size // 2 or self.gram.cheap:
            part = self.prepared[positions]
            return block(part, part, out=out, threads=threads)
        part = self.prepared[positions[missing]]
        inner = block(part, part, threads=threads)
        here = self._has(positions)
        gone = np.flatnonzero(known & ~here)
        if len(gone):
            rows, columns = self.prepared[positions[gone]], self.prepared[positions]
            out[gone] = block(rows, columns, threads=threads)
        self._gather(positions, np.flatnonzero(here), missing[:0], missing[:0], inner, out)
        self._gather(positions, missing[:0], np.flatnonzero(known), missing, inner, out)
        return out

    def _gather(self, positions: Ints, here: Ints, known: Ints, missing: Ints, inner: FloatArray,
                out: FloatArray) -> None:  # fmt: skip
        """Assemble parts of a block, in several threads if that is worth while."""
        slots = self.slots(positions)

        def gather(part: Ints) -> None:
            loops.decomposition.gather_block(
                self.values, slots, positions, part, known, missing, inner, out
            )

        threads = self._threads_for(len(here) * len(positions))
        share_work(gather, deque(np.array_split(here, threads)), threads)

    def _threads_for(self, values: int) -> int:
        """Return how many threads are worth while to copy or add so many values."""
        return (self.gram.threads or usual_threads()) if values > _WORTH_THREADS else 1

    def shrink(self, keep: Ints, useful: Ints) -> None:
        """Forget all columns but ``keep`` (ascending), and all rows but the useful among them."""
        width = len(self)
        self.prepared = self.prepared[keep]
        known = np.zeros(width, bool)
        known[useful] = self.known[useful]
        self.known = known[keep]
        if not len(keep):
            self._empty()
            return
        held, values = self._held, self.values
        used = np.flatnonzero(held >= 0)
        place = np.full(width, -1)
        place[keep] = np.arange(len(keep))
        stays = used[np.isin(held[used], useful)]
        loops.decomposition.compact(values, stays, keep, self._buffer)
        self._lay_out(len(keep), self._buffer.nbytes)  # no new one, as this has the rows now
        self._slot = np.full(len(keep), -1)
        self._held = np.full(self.capacity, -1)
        stays = stays[: self.capacity]
        rows = place[held[stays]]
        self._slot[rows] = np.arange(len(stays))
        self._held[: len(stays)] = rows
        self._next, self._full = len(stays), False

    def grow(self, prepared: PreparedRows, place: Ints, useful: Ints) -> None:
        """Add columns: ``prepared`` has them all, those from before at the positions ``place``.

        Rows that were not useful (by their old position) are forgotten.
        """
        held, values = self._held, self.values
        used = np.flatnonzero(np.isin(held, useful))
        added = np.setdiff1d(np.arange(len(prepared)), place, assume_unique=True)
        before, known = self.prepared, self.known
        self.prepared = prepared
        self.known = np.zeros(len(prepared), bool)
        if len(added) <= _MOST_ADDED * len(place):
            self.known[place[useful]] = known[useful]
        if not self.known.any() or not len(used):
            self._empty()
            return
        rest = self.gram.kernel.block(
            before[held[used]], prepared[added], threads=self.gram.threads
        )
        self._buffer = np.empty(0, prepared.dtype)
        self._empty()
        used = used[: self.capacity]
        loops.decomposition.merge(values, used, place, rest, added, self.values)
        rows = place[held[used]]
        self._slot[rows] = np.arange(len(used))
        self._held[: len(used)] = rows
        self._next, self._full = len(used), False
