"""The decoder of chains, and their ψ-differences as sparse rows; classes are chains of length 1.

Weights of the columns of x come first, flat from shape (d, K): one weight for each column and each
state; then those of transitions, start and end. Among equal scores the first output wins.
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import row_axpy_column, row_collect, row_dots


@compiled
def decode_chains(
    X: Any, offsets: Any, rows: Any, emissions: Any, transitions: Any, start: Any, stop: Any,
    truth: Any, cost: Any, augmented: bool, longest: int, paths: Any,
) -> None:  # fmt: skip
    """Put the best path of each chain into ``paths``, one after the other (Viterbi).

    Score: Σ emissions·x at its state, transitions[from, to], start, stop; if augmented, a state has
    cost[truth, state] more.
    """
    n_states = emissions.shape[1]
    back = np.zeros((longest, n_states), np.int64)
    score, before = np.empty(n_states), np.empty(n_states)
    out = 0
    for r in range(rows.shape[0]):
        first, length = offsets[rows[r]], offsets[rows[r] + 1] - offsets[rows[r]]
        for t in range(length):
            for k in range(n_states):
                before[k] = score[k]
                score[k] = start[k] if t == 0 else 0.0
            row_dots(X, first + t, emissions, score)
            if augmented:
                for k in range(n_states):
                    score[k] += cost[truth[first + t], k]
            if t > 0:
                _extend(before, transitions, score, back[t])
        for k in range(n_states):
            score[k] += stop[k]
        _trace_back(_first_best(score), back, paths[out : out + length])
        out += length


@compiled
def _trace_back(state: int, back: Any, path: Any) -> None:
    """Put the way to a last state into ``path``."""
    for t in range(path.shape[0] - 1, -1, -1):
        path[t] = state
        state = back[t, state]  # the first has none, and is not used


@compiled
def _extend(before: Any, transitions: Any, score: Any, back: Any) -> None:
    """Add to each state's score the best way to it, and note where it came from."""
    n_states = score.shape[0]
    for k in range(n_states):
        best, origin = before[0] + transitions[0, k], 0
        for j in range(1, n_states):
            reached = before[j] + transitions[j, k]
            if reached > best:
                best, origin = reached, j
        score[k] += best
        back[k] = origin


@compiled
def _first_best(score: Any) -> Any:
    best = 0
    for k in range(1, score.shape[0]):
        if score[k] > score[best]:
            best = k
    return best


@compiled
def chain_differences(
    X: Any, offsets: Any, rows: Any, truth: Any, paths: Any, cost: Any, columns: Any, table: Any,
    loss: Any, indptr: Any, indices: Any, values: Any,
) -> None:  # fmt: skip
    """Put losses and ψ(true path) − ψ(path) of each chain into sparse rows.

    ``columns`` (d, K) and ``table`` (K² + 2K) are zeros before and after. Without a table the order
    of states has no weights.
    """
    n_states = columns.shape[1]
    base, found, out = columns.size, 0, 0
    for r in range(rows.shape[0]):
        first, length = offsets[rows[r]], offsets[rows[r] + 1] - offsets[rows[r]]
        loss[r] = 0.0
        for t in range(length):
            true, state = truth[first + t], paths[out + t]
            if true != state:
                loss[r] += cost[true, state]
                row_axpy_column(X, first + t, 1.0, columns, true)
                row_axpy_column(X, first + t, -1.0, columns, state)
        if table.shape[0] > 0:
            _count_order(truth[first : first + length], 1.0, n_states, table)
            _count_order(paths[out : out + length], -1.0, n_states, table)
        for t in range(length):
            true, state = truth[first + t], paths[out + t]
            if true != state:
                found = row_collect(X, first + t, columns, true, found, indices, values)
                found = row_collect(X, first + t, columns, state, found, indices, values)
        for k in range(table.shape[0]):
            if table[k] != 0.0:
                indices[found], values[found] = base + k, table[k]
                table[k] = 0.0
                found += 1
        out += length
        indptr[r + 1] = found


@compiled
def _count_order(path: Any, sign: float, n_states: int, table: Any) -> None:
    """Add the transitions, the start and the end of a path to a table."""
    length = path.shape[0]
    for t in range(1, length):
        table[path[t - 1] * n_states + path[t]] += sign
    table[n_states * n_states + path[0]] += sign
    table[n_states * n_states + n_states + path[length - 1]] += sign
