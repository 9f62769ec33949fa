"""Probabilities of classes."""

import numpy as np

from maxmargin._typing import Floats

_LEAST = 1e-7  # probabilities of pairs keep this far from 0 and 1
_BLOCK = 1 << 22  # numbers in the systems that are solved at a time


def couple_pairs(pairwise: Floats, pairs: list[tuple[int, int]], n_classes: int) -> Floats:
    """Return probabilities of classes, of shape (n, K), from those of pairs, of shape (n, pairs).

    ``pairwise[:, k]`` is r(i, j), the probability of class i if it is either i or j, for the k-th
    pair (i, j). The probabilities p minimise Σ over i ≠ j of (r(j, i) p(i) − r(i, j) p(j))² and
    add up to 1 (Wu, Lin and Weng, JMLR 5, 2004, second method). A class in no pair has p = 0.
    """
    p = np.zeros((len(pairwise), n_classes))
    present = np.unique(np.ravel(pairs)).astype(np.intp)
    place = np.full(n_classes, -1)
    place[present] = np.arange(len(present))
    first, second = place[np.array(pairs).reshape(-1, 2)].T
    rows = max(1, _BLOCK // len(present) ** 2)
    for start in range(0, len(pairwise), rows):
        own = slice(start, start + rows)
        r = np.clip(pairwise[own], _LEAST, 1 - _LEAST)
        p[own, present] = _couple(r, first, second, len(present))
    return p


def _couple(r: Floats, first: Floats, second: Floats, n_classes: int) -> Floats:
    # Qp = λ1 and Σp = 1 at the minimum, with Q(i, i) = Σ r(j, i)², Q(i, j) = −r(j, i) r(i, j);
    # (Q + 11ᵀ)p is a multiple of 1 then, too, and that matrix is positive definite.
    Q = np.ones((len(r), n_classes, n_classes))
    Q[:, first, second] -= r * (1 - r)
    Q[:, second, first] -= r * (1 - r)
    diagonal = np.zeros((len(r), n_classes))
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        diagonal[:, i] += (1 - r[:, k]) ** 2
        diagonal[:, j] += r[:, k] ** 2
    each = np.arange(n_classes)
    Q[:, each, each] += diagonal
    p = np.linalg.solve(Q, np.ones((len(r), n_classes, 1)))[..., 0]
    p = np.maximum(p, 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
