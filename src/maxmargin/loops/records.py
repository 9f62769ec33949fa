"""Records that go in and out of compiled loops; nothing here is compiled."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin._typing import Floats, Ints


def read_only(array: Any) -> Any:
    """Return a C-contiguous read-only view: loops are compiled once for all arrays."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


class Rule(NamedTuple):
    """What decides a perceptron's update, and what is kept of it."""

    eta: float = 1.0
    margin: float = 0.0
    fit_intercept: bool = True
    averaged: bool = False
    logged: bool = False


class Updates(NamedTuple):
    """A perceptron's updates in the order made: which row, by how much, after how many visits.

    With several classes ``label`` gained what ``rival`` lost.
    """

    row: Ints
    step: Floats
    clock: Floats
    label: Ints
    rival: Ints

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return uninitialised space for ``size`` updates."""
        types = (np.int64, np.float64, np.float64, np.int64, np.int64)
        return cls._make(np.empty(size, dtype) for dtype in types)

    def first(self, count: int) -> "Updates":
        """Return a copy of the first ``count`` updates."""
        return Updates._make(column[:count].copy() for column in self)

    @classmethod
    def joined(cls, parts: Iterable["Updates"]) -> Self:
        """Return the updates of all parts, one after the other."""
        columns = zip(*[cls.empty(0), *parts], strict=True)
        return cls(*(np.concatenate(column) for column in columns))


class Variables(NamedTuple):
    """Dual variables x with what belongs to them, and the scores f of their rows."""

    target: Floats
    low: Floats
    high: Floats
    shift: Floats
    group: Ints  # −1 where there is none
    x: Floats
    at: Ints  # the row of each, in f
    f: Floats


class Loss(NamedTuple):
    """One convex loss per dual variable, as a maximum over this variable β.

    ℓᵢ(f) = max over lowᵢ ≤ β ≤ highᵢ of  β(targetᵢ − f) − epsilon·|β| − ½ quadraticᵢ β²

    Hinge, ε-insensitive, their squares and the hard margin are all of this form: a loss is data
    for the loops, not a branch in them. ``maxmargin.problems.losses`` makes them.
    """

    target: Floats
    low: Floats
    high: Floats
    quadratic: Floats
    epsilon: float

    def scaled(self, ratio: float | Floats) -> "Loss":
        """Return ``ratio`` times the losses, or each with its own: C becomes C·ratio."""
        low, high, quadratic = self.low * ratio, self.high * ratio, self.quadratic / ratio
        return Loss(self.target, low, high, quadratic, self.epsilon)

    def take(self, rows: Ints | slice) -> "Loss":
        """Return some of the losses."""
        target, low, high, quadratic = (part[rows] for part in self[:4])
        return Loss(target, low, high, quadratic, self.epsilon)


class Hinges(NamedTuple):
    """Terms max(low(kink − f), high(kink − f)) of a sum, and their rows (see ``active_set``)."""

    Z: Floats
    kink: Floats
    low: Floats
    high: Floats


class Descent(NamedTuple):
    """Where a descent by active sets stands, and what it computes with."""

    w: Floats
    sums: Floats  # b, and Σβ of all rows that are no members
    u: Floats  # Σβz of these
    f: Floats
    beta: Floats
    inside: Any  # whether a row is a member
    members: Ints
    inverse: Floats
    p: Floats  # the direction of a step
    q: Floats  # the change of f along it
    right: Floats
    multipliers: Floats
    shares: Floats  # what each multiplier loses as b grows
    times: Floats  # at which rows are on their kinks
    order: Ints

    @classmethod
    def at(
        cls, w: Floats, sums: Floats, u: Floats, f: Floats, beta: Floats, members: Ints, most: int
    ) -> Self:
        """Return a descent with some members, of which there may be so many."""
        inside, joined = np.zeros(len(f), bool), np.zeros(most, np.int64)
        inside[members], joined[: len(members)] = True, members
        inverse, (right, multipliers, shares) = np.zeros((most, most)), np.zeros((3, most))
        q, times, order = np.empty(len(f)), np.empty(len(f)), np.empty(len(f), np.int64)
        return cls(
            w, sums, u, f, beta, inside, joined, inverse, np.zeros(len(w)), q, right, multipliers,
            shares, times, order,
        )  # fmt: skip


class DescentRule(NamedTuple):
    """What a descent by active sets goes by."""

    free: bool  # whether there is a free intercept
    shift: float  # added to all products of rows: if b is free it changes nothing but conditions
    flat: float  # squared step that is none
    aim: float  # gap that is none
    limit: int  # steps


class Path(NamedTuple):
    """By cost: coefficients of rows, scores of rows to be judged, how it was solved, the duals."""

    coefficients: Floats
    scores: Floats
    intercepts: Floats
    gaps: Floats
    rounds: Ints
    duals: Floats


class ChainState(NamedTuple):
    """Where a chain of paths through a truncated Gaussian stands (see ``truncated_gaussian``)."""

    z: Floats
    v: Floats
    p: Floats  # products of the walls with z
    q: Floats  # and with v
    side: Floats
    start: Floats  # of the path under way
    times: Floats
    counts: Ints

    @classmethod
    def at(cls, z: Floats, n_walls: int) -> Self:
        """Return a chain that begins at z."""
        along, ahead, side = np.zeros((3, n_walls))
        v, start, times = np.zeros(len(z)), np.zeros(len(z)), np.zeros(2)
        return cls(z.copy(), v, along, ahead, side, start, times, np.zeros(6, np.int64))
