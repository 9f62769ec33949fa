"""Who fills a block of a Gaussian Gram matrix, and the bare matrix product it is measured by."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin.kernels import RBF

Floats32 = npt.NDArray[np.float32]
Fill = Callable[[], Any]


class Block(NamedTuple):
    """Rows on the left and on the right, γ, and room for the result."""

    A: Floats32
    B: Floats32
    gamma: float
    out: Floats32


def random_block(m: int, n: int, d: int) -> Block:
    """Return Gaussian rows with γ = 1/d: values around exp(−2)."""
    rng = np.random.default_rng(d)
    A, B = (rng.standard_normal((rows, d), dtype=np.float32) for rows in (m, n))
    return Block(A, B, 1.0 / d, np.empty((m, n), np.float32))


def gemm(block: Block) -> Fill:
    """Do the matrix product alone: A Bᵀ."""
    return lambda: np.matmul(block.A, block.B.T, out=block.out)


def ours(block: Block) -> Fill:
    """Fill our tiles, rows already bound."""
    kernel = RBF(block.gamma)
    b = kernel.prepare(block.B)
    a = kernel.prepare(block.A, like=b)
    return lambda: kernel.block(a, b, out=block.out)


def ours_unbound(block: Block) -> Fill:
    """Fill our tiles, with the binding of both sides (norms, checks) included."""
    kernel = RBF(block.gamma)

    def bind_and_fill() -> object:
        b = kernel.prepare(block.B)
        return kernel.block(kernel.prepare(block.A, like=b), b, out=block.out)

    return bind_and_fill


def scikit_learn(block: Block) -> Fill:
    """Call ``rbf_kernel``: float32 is raised to float64 in chunks, and the result is new memory."""
    return lambda: rbf_kernel(block.A, block.B, gamma=block.gamma)


def exact(block: Block, rows: int) -> npt.NDArray[np.float64]:
    """Return the first rows and columns by the formula, in float64."""
    A, B = block.A[:rows].astype(np.float64), block.B[:rows].astype(np.float64)
    return np.asarray(np.exp(-block.gamma * cdist(A, B, "sqeuclidean")))
