"""One pass of stochastic subgradient steps with a step size for each column.

Dual averaging: with g the subgradients so far and r the root mean square of a column,

    wⱼ = Σ gⱼ / (rounds + rⱼ √Σ gⱼ²)        gᵢ = βᵢxᵢ,  β attains the loss of the row at its visit

so that the penalty ½‖w‖² counts once for each round over the rows, and columns may have any scale.
The mean of w over visits is kept up to date lazily, column by column, and so is the mean of β.
Duchi, Hazan & Singer (JMLR 2011); Xiao (JMLR 2010).
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from maxmargin.loops.compiled import INNER, compiled
from maxmargin.loops.loss import best_dual
from maxmargin.loops.rows import Csr, row_dot


def row_learn(X: Any, i: int, beta: float, rounds: float, clock: float, state: Any) -> None:
    """Add βxᵢ to the subgradients of the row's columns, and bring their weights up to date."""
    raise NotImplementedError("compiled code only")


@compiled
def learn(state: Any, j: int, g: float, ridge: float, clock: float) -> None:
    """Add g to the subgradients of column j."""
    state.total[j] += state.w[j] * (clock - state.since[j])
    state.since[j] = clock
    state.sums[j] += g
    state.squares[j] += g * g
    size = np.sqrt(state.moments[j] / (clock + 1.0))
    below = ridge + size * np.sqrt(state.squares[j])
    state.w[j] = state.sums[j] / below if below > 0.0 else 0.0


@overload(row_learn, jit_options=INNER)
def _row_learn(X: Any, i: Any, beta: Any, rounds: Any, clock: Any, state: Any) -> Any:
    def csr(X: Any, i: Any, beta: Any, rounds: Any, clock: Any, state: Any) -> Any:
        for k in range(X.indptr[i], X.indptr[i + 1]):
            j = X.indices[k]
            state.moments[j] += X.data[k] * X.data[k]
            learn(state, j, beta * X.data[k], rounds, clock)

    def dense(X: Any, i: Any, beta: Any, rounds: Any, clock: Any, state: Any) -> Any:
        for j in range(X.values.shape[1]):
            x = np.float64(X.values[i, j])
            state.moments[j] += x * x
            learn(state, j, beta * x, rounds, clock)

    return csr if isinstance(X, types.NamedTuple) and X.instance_class is Csr else dense


@compiled
def visit(
    X: Any, loss: Any, order: Any, begin: int, end: int, rounds: float, ridge: float,
    lift: float, clock: float, state: Any, duals: Any,
) -> float:  # fmt: skip
    """Visit order[begin:end]; the last entries of the state belong to the constant feature.

    ``ridge`` is the part of a round's penalty that falls on the constant feature of value ``lift``
    (0 if the intercept is free). Return the clock.
    """
    last = state.w.shape[0] - 1
    for k in range(begin, end):
        i = order[k]
        f = row_dot(X, i, state.w) + lift * state.w[last]
        r = loss.target[i] - f
        beta = best_dual(loss.low[i], loss.high[i], loss.quadratic[i], loss.epsilon, r)
        duals[i] += beta
        row_learn(X, i, beta, rounds, clock, state)
        if lift > 0.0:
            state.moments[last] += lift * lift
            learn(state, last, beta * lift, ridge * rounds, clock)
        clock += 1.0
    return clock
