"""Steps of block-coordinate Frank–Wolfe on the cached outputs of examples.

Example i holds the outputs begin[i] … begin[i + 1] − 1, the true one among them: each with a sparse
ψ-difference, a loss and a dual α ≥ 0. The duals of an example sum to its cost, and w is Σ α times
the differences. Products of an example's differences are kept as a square matrix from square[i] on.
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled


@compiled
def _dot(indptr: Any, indices: Any, values: Any, k: int, w: Any) -> float:
    total = 0.0
    for p in range(np.uint64(indptr[k]), np.uint64(indptr[k + 1])):
        total += values[p] * w[np.uint64(indices[p])]
    return total


@compiled
def fill_products(
    begin: Any, indptr: Any, indices: Any, values: Any, square: Any, products: Any,
    source: Any, old_square: Any, old_width: Any, old_products: Any, dense: Any,
) -> None:  # fmt: skip
    """Put the products of each example's differences into ``products``.

    source[k] is the place of output k among the outputs its example had before, −1 if it is new:
    products of two that are not new are copied. ``dense`` is zeros before and after.
    """
    for i in range(begin.shape[0] - 1):
        first, width = begin[i], begin[i + 1] - begin[i]
        for a in range(width):
            fresh = source[first + a] < 0
            filled = False
            for b in range(a + 1):
                if not fresh and source[first + b] >= 0:
                    place = source[first + a] * old_width[i] + source[first + b]
                    product = old_products[old_square[i] + place]
                else:
                    if not filled:
                        filled = True
                        for p in range(indptr[first + a], indptr[first + a + 1]):
                            dense[indices[p]] = values[p]
                    product = _dot(indptr, indices, values, first + b, dense)
                products[square[i] + a * width + b] = product
                products[square[i] + b * width + a] = product
            if filled:
                for p in range(indptr[first + a], indptr[first + a + 1]):
                    dense[indices[p]] = 0.0


@compiled
def sweep(
    order: Any, begin: Any, indptr: Any, indices: Any, values: Any, loss: Any, alpha: Any,
    square: Any, products: Any, w: Any, h: Any, before: Any, steps: int, gaps: Any,
) -> None:  # fmt: skip
    """Visit examples in order; move the duals of each among its outputs, and w with them.

    gaps[i] is what is to gain at example i when it is visited: cost·max H − Σ αH.
    """
    for t in range(order.shape[0]):
        i = order[t]
        first, width = begin[i], begin[i + 1] - begin[i]
        top, held, cost = -np.inf, 0.0, 0.0
        for k in range(width):
            h[k] = loss[first + k] - _dot(indptr, indices, values, first + k, w)
            before[k] = alpha[first + k]
            top = max(top, h[k])
            held += before[k] * h[k]
            cost += before[k]
        gaps[i] = cost * top - held
        if not gaps[i] > 0.0:
            continue
        _move(h, alpha[first : first + width], products, square[i], width, steps)
        for k in range(width):
            change = alpha[first + k] - before[k]
            if change != 0.0:
                for p in range(np.uint64(indptr[first + k]), np.uint64(indptr[first + k + 1])):
                    w[np.uint64(indices[p])] += change * values[p]


@compiled
def _move(h: Any, alpha: Any, products: Any, at: int, width: int, steps: int) -> None:
    """Move duals from outputs with a low H to the one with the highest, pair after pair.

    Each step is exact along its direction (pairwise Frank–Wolfe), and takes from the output where
    that gains most; where two differences are equal, all of its dual.
    """
    for _ in range(steps):
        best = 0
        for k in range(1, width):
            if h[k] > h[best]:
                best = k
        own = products[at + best * width + best]
        giver, most, length = -1, 0.0, 0.0
        for k in range(width):
            slope = h[best] - h[k]
            if alpha[k] > 0.0 and slope > 0.0:
                curvature = own + products[at + k * width + k] - 2 * products[at + best * width + k]
                step = alpha[k] if slope >= alpha[k] * curvature else slope / curvature
                gain = step * (slope - 0.5 * step * max(curvature, 0.0))
                if gain > most:
                    giver, most, length = k, gain, step
        if giver < 0:
            break
        alpha[best] += length
        alpha[giver] -= length
        if alpha[giver] < 0.0:
            alpha[giver] = 0.0
        for k in range(width):
            h[k] -= length * (products[at + k * width + best] - products[at + k * width + giver])
