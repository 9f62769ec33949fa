"""One pass of the mistake-driven learners over rows in a given order.

A row of weight c is visited c times in a row, the last visit counting for the fraction left; so an
integer weight is exactly that many repetitions and a weight of 0 is no visit. A visit that finds
y·f ≤ margin makes one update

    w += η·share·y·x,    b += η·share·y,        share = min(1, what is left of c)

``clock`` counts visits (in units of weight). An update at clock t stands for all visits from t on,
so the mean of (w, b) after each visit is w − lag/clock with lag = Σ t·(update): one more ``axpy``
per mistake, nothing per row. ``log`` remembers (row, step, t, class, rival) of each update.
Freund & Schapire (1999); Collins (2002) for the averaged and the multiclass form.
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import (
    row_axpy,
    row_axpy_column,
    row_dot,
    row_dots,
    row_prefetch,
    row_squared_norm,
)

# Rows visited in random order are prefetched this many visits before they are needed.
_AHEAD = 16


@compiled
def _write(
    log: Any, used: Any, row: int, step: float, clock: float, label: int, rival: int
) -> None:
    at = used[0]
    log.row[at], log.step[at], log.clock[at] = row, step, clock
    log.label[at], log.rival[at] = label, rival
    used[0] = at + 1


@compiled
def _count(counts: Any, clock: float, mistakes: float, updates: float, left: float) -> None:
    # (Assigning a tuple to a slice takes two seconds to compile, because of its error message.)
    counts[0], counts[1], counts[2], counts[3] = clock, mistakes, updates, left


@compiled
def _best_other(scores: Any, label: int) -> int:
    rival = 0 if label != 0 else 1
    for k in range(scores.shape[0]):
        if k != label and scores[k] > scores[rival]:
            rival = k
    return rival


@compiled
def _lead(X: Any, i: int, label: int, W: Any, b: Any, scores: Any) -> Any:
    """Return y f, or by how much the row's own class leads the best other one; and which that is.

    The weights are (d,) for two classes and (d, K) for more, here and below: ``ndim`` is known
    when this is compiled.
    """
    if W.ndim == 1:
        return (2.0 * label - 1.0) * (row_dot(X, i, W) + b[0]), 0
    for k in range(scores.shape[0]):
        scores[k] = b[k]
    row_dots(X, i, W, scores)
    rival = _best_other(scores, label)
    return scores[label] - scores[rival], rival


@compiled
def _measure(X: Any, i: int, radius: Any) -> None:
    """Keep the largest ‖x‖²: as the row is about to be read anyway, that costs next to nothing."""
    if radius.shape[0] > 0:
        square = row_squared_norm(X, i)
        if not square <= radius[0]:
            radius[0] = square if square < np.inf else np.inf  # NaN would be lost in comparisons


@compiled
def _move(X: Any, i: int, step: float, lift: float, W: Any, b: Any, label: int, rival: int) -> None:
    """Add the row to the weights; of several classes, to its own, and take it from the rival."""
    if W.ndim == 1:
        row_axpy(X, i, step, W)
        b[0] += step * lift
    else:
        row_axpy_column(X, i, step, W, label)
        row_axpy_column(X, i, -step, W, rival)
        b[label] += step * lift
        b[rival] -= step * lift


@compiled
def visit(
    X: Any, y: Any, weight: Any, order: Any, rule: Any, W: Any, b: Any, lag: Any, lag_b: Any,
    counts: Any, log: Any, used: Any, radius: Any,
) -> Any:  # fmt: skip
    """Visit rows of class y in order, and return how many of them were completed.

    All state is in the arrays and changes only here, so that it is consistent between calls: W, b
    and lag; counts = (clock, mistakes, updates, what is left of the first row's weight or 0); the
    log and how much of it is used; radius = the largest ‖x‖² so far, infinite if a row is not
    finite (empty if it is not wanted). A pass stops early when the log is full, or when heavy rows
    make it longer than its number of rows suggests.
    """
    lift = 1.0 if rule.fit_intercept else 0.0
    clock, mistakes, updates, left = counts[0], counts[1], counts[2], counts[3]
    first_updates = updates
    scattered = order[-1] - order[0] != order.shape[0] - 1
    scores = np.empty(b.shape[0])
    for t in range(order.shape[0]):
        i = order[t]
        if scattered and t + _AHEAD < order.shape[0]:
            row_prefetch(X, order[t + _AHEAD])
        _measure(X, i, radius)
        left = left if t == 0 and left > 0.0 else weight[i]
        margin, rival = _lead(X, i, y[i], W, b, scores)
        if margin > rule.margin:
            clock += left
            left = 0.0
            continue
        # A row of zeros without intercept stays a mistake: further visits change nothing.
        hopeless = row_squared_norm(X, i) + lift == 0.0
        while left > 0.0 and margin <= rule.margin:
            full = rule.logged and used[0] == log.row.shape[0]
            if full or updates - first_updates > order.shape[0]:
                _count(counts, clock, mistakes, updates, left)
                return t
            share = left if hopeless else min(left, 1.0)
            step = rule.eta * share
            if W.ndim == 1 and y[i] == 0:
                step = -step
            _move(X, i, step, lift, W, b, y[i], rival)
            if rule.averaged:
                _move(X, i, clock * step, lift, lag, lag_b, y[i], rival)
            if rule.logged:
                _write(log, used, i, step, clock, y[i], rival)
            mistakes += share if margin <= 0.0 else 0.0
            updates += share
            clock += share
            left -= share
            if left > 0.0:
                margin, rival = _lead(X, i, y[i], W, b, scores)
        clock += left
        left = 0.0
    _count(counts, clock, mistakes, updates, 0.0)
    return order.shape[0]


@compiled
def move_by(
    difference: Any, share: float, mistaken: bool, margin: float, w: Any, scaled: Any, lag: Any,
    counts: Any,
) -> None:  # fmt: skip
    """Make an update of a structured perceptron: w += share·difference, a single sparse row.

    All state is changed in this one call, as in ``visit``: w, scaled = w/margin (empty if the
    margin is 0), lag (empty if no mean is wanted) and counts = (clock, mistakes, updates).
    """
    clock = counts[0]
    row_axpy(difference, 0, share, w)
    if lag.shape[0] > 0:
        row_axpy(difference, 0, clock * share, lag)
    if scaled.shape[0] > 0:
        for k in range(difference.indptr[0], difference.indptr[1]):
            j = difference.indices[k]
            scaled[j] = w[j] / margin
    counts[0] = clock + share
    counts[1] += share if mistaken else 0.0
    counts[2] += share


@compiled
def visit_block(
    K: Any, y: Any, weight: Any, rule: Any, scores: Any, steps: Any, counts: Any
) -> Any:
    """Visit one block of rows in order, knowing its Gram matrix K and its scores at the start.

    y is a class index. Two classes have one column of scores, which speaks for class 1; more have
    one for each. What each row gains is added to ``steps``; ``scores`` follows within the block.
    """
    clock, mistakes, updates = counts
    lift = 1.0 if rule.fit_intercept else 0.0
    n_rows, n_columns = scores.shape
    change = np.zeros(n_columns)
    for p in range(n_rows):
        left = weight[p]
        while left > 0.0:
            change[:] = 0.0
            if n_columns == 1:
                change[0] = 1.0 if y[p] == 1 else -1.0
                margin = change[0] * scores[p, 0]
            else:
                rival = _best_other(scores[p], y[p])
                change[y[p]] = 1.0
                change[rival] = -1.0
                margin = scores[p, y[p]] - scores[p, rival]
            if margin > rule.margin:
                break
            share = min(left, 1.0)
            if K[p, p] + lift == 0.0:
                share = left  # a row of zeros stays a mistake: further visits change nothing
            for k in range(n_columns):
                step = rule.eta * share * change[k]
                if step != 0.0:
                    steps[p, k] += step
                    for q in range(p, n_rows):
                        scores[q, k] += step * (K[q, p] + lift)
            if margin <= 0.0:
                mistakes += share
            updates += share
            clock += share
            left -= share
        clock += left
    return clock, mistakes, updates


@compiled
def binary_votes(
    G: Any, slot: Any, step: Any, survival: Any, lift: float, f: Any, out: Any
) -> None:
    """Let each vector in turn vote ±survival on each row, given the rows' products with updates.

    f holds the scores of the start vector; G[i, slot[j]] is row i times the row of update j.
    """
    for i in range(G.shape[0]):
        score = f[i]
        votes = survival[0] if score > 0.0 else -survival[0]
        for j in range(slot.shape[0]):
            score += step[j] * (G[i, slot[j]] + lift)
            votes += survival[j + 1] if score > 0.0 else -survival[j + 1]
        out[i] = votes


@compiled
def multiclass_votes(
    G: Any,
    slot: Any,
    step: Any,
    label: Any,
    rival: Any,
    survival: Any,
    lift: float,
    f: Any,
    out: Any,
) -> None:
    """Let each matrix of weights in turn vote for its best class (the first of equals)."""
    for i in range(G.shape[0]):
        scores = f[i].copy()
        out[i, np.argmax(scores)] += survival[0]
        for j in range(slot.shape[0]):
            gain = step[j] * (G[i, slot[j]] + lift)
            scores[label[j]] += gain
            scores[rival[j]] -= gain
            out[i, np.argmax(scores)] += survival[j + 1]


@compiled
def smallest_lead(X: Any, y: Any, rows: Any, W: Any, b: Any) -> float:
    """Return the least y f, or lead over the best other class, of some rows; NaN if one is NaN."""
    scores = np.empty(b.shape[0])
    smallest = np.inf
    for t in range(rows.shape[0]):
        lead = _lead(X, rows[t], y[rows[t]], W, b, scores)[0]
        if not lead >= smallest:
            smallest = lead
            if lead != lead:
                break
    return smallest


@compiled
def weigh_right(X: Any, y: Any, weight: Any, rows: Any, W: Any, b: Any) -> float:
    """Return what those of some rows weigh that are right: y f > 0, or their class leads."""
    scores = np.empty(b.shape[0])
    total = 0.0
    for t in range(rows.shape[0]):
        i = rows[t]
        if _lead(X, i, y[i], W, b, scores)[0] > 0.0:
            total += weight[i]
    return total


@compiled
def compute_scores(X: Any, W: Any, b: Any, out: Any) -> None:
    """Do out[i] = Wᵀxᵢ + b in float64, whatever the type of X, without copying it."""
    for i in range(out.shape[0]):
        if W.ndim == 1:
            out[i, 0] = row_dot(X, i, W) + b[0]
        else:
            for k in range(out.shape[1]):
                out[i, k] = b[k]
            row_dots(X, i, W, out[i])
