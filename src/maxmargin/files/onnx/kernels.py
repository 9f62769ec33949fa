"""Kernels as operators of ONNX: values of rows with given rows."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.files.onnx.graph import Graph
from maxmargin.kernels import (
    RBF,
    ChiSquared,
    Columns,
    Constant,
    Cosine,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Power,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
)

# γ‖z‖², z measured from the mean, up to which distances come from norms. Measured errors of scores,
# by Σ|coef·K|: 2e-12 at this bound, and in proportion to γ‖z‖². Beyond it distances are sums of
# differences (6e-16), which take up to 20 times as long.
_FAR = 1e4


def kernel_values(graph: Graph, kernel: Kernel, x: str, Z: Floats) -> str:
    """Write K(x, z) of rows x with given rows Z, and return the name of the (n, m) matrix.

    Only kernels of this very type are known: a subclass may compute other values.
    """
    write = _KERNELS.get(type(kernel))
    if write is None:
        raise TypeError(
            f"The kernel {kernel!r} cannot be exported to ONNX, as it is computed by code that is "
            f"not part of maxmargin. Kernels that can be exported: {', '.join(_KERNEL_NAMES)}; "
            "or fit with kernel='precomputed', and the graph takes kernel values."
        )
    return write(graph, kernel, x, Z)


def _linear(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    del kernel
    return graph.add("MatMul", x, Z.T)


def _polynomial(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    inner = graph.affine(x, float(kernel.gamma) * Z.T, float(kernel.coef0))
    return graph.add("Pow", inner, float(kernel.degree))


def _sigmoid(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    return graph.add("Tanh", graph.affine(x, float(kernel.gamma) * Z.T, float(kernel.coef0)))


def _cosine(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    del kernel
    largest = np.abs(Z).max(axis=1, keepdims=True)
    Z = Z / np.where(largest > 0, largest, 1.0)
    norms = np.linalg.norm(Z, axis=1, keepdims=True)
    Z = Z / np.where(norms > 0, norms, 1.0)
    return graph.add("MatMul", directions(graph, x), Z.T)


def directions(graph: Graph, x: str) -> str:
    """Write x/‖x‖, and 0 for a row of zeros."""
    # Divided by the largest value first, so that squares of tiny or huge rows stay in range.
    largest = graph.add("ReduceMax", graph.add("Abs", x), np.array([1]), keepdims=1)
    scaled = graph.add("Div", x, _nonzero(graph, largest))
    norms = graph.add("Sqrt", graph.sum_rows(graph.add("Mul", scaled, scaled)))
    return graph.add("Div", scaled, _nonzero(graph, norms))


def _nonzero(graph: Graph, lengths: str) -> str:
    return graph.add("Where", graph.add("Greater", lengths, 0.0), lengths, 1.0)


def _rbf(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    gamma, centre = float(kernel.gamma), Z.mean(axis=0)
    centred = Z - centre
    norms = gamma * (centred * centred).sum(axis=1)
    if norms.max(initial=0.0) > _FAR:
        squares = _sum_over_columns(graph, x, Z, _square_of_difference)
        return graph.add("Exp", graph.add("Mul", squares, -gamma))
    near = graph.add("Sub", x, centre)
    own = graph.scale(graph.sum_rows(graph.add("Mul", near, near)), gamma)
    both = graph.add("Sub", graph.affine(near, 2 * gamma * centred.T, -norms), own)
    return graph.add("Exp", graph.add("Min", both, 0.0))


def _laplacian(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    sums = _sum_over_columns(graph, x, Z, _size_of_difference)
    return graph.add("Exp", graph.add("Mul", sums, -float(kernel.gamma)))


def _chi_squared(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    sums = _sum_over_columns(graph, x, Z, _chi_square)
    return graph.add("Exp", graph.add("Mul", sums, -float(kernel.gamma)))


def _intersection(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    del kernel
    return _sum_over_columns(graph, x, Z, lambda body, a, b: body.add("Min", a, b))


def _square_of_difference(body: Graph, a: str, b: str) -> str:
    away = body.add("Sub", a, b)
    return body.add("Mul", away, away)


def _size_of_difference(body: Graph, a: str, b: str) -> str:
    return body.add("Abs", body.add("Sub", a, b))


def _chi_square(body: Graph, a: str, b: str) -> str:
    total = _nonzero(body, body.add("Add", a, b))
    return body.add("Div", _square_of_difference(body, a, b), total)


def _sum_over_columns(
    graph: Graph, x: str, Z: Floats, term: Callable[[Graph, str, str], str]
) -> str:
    """Write Σₖ term(xₖ, zₖ) of all pairs of rows, one column k after the other.

    All columns at once would take n·m·d numbers of memory; the loop takes n·m.
    """
    body = Graph(f"{graph.prefix}loop{len(graph.nodes)}_")
    so_far, own, other = (body.prefix + name for name in ("so_far", "x", "z"))
    each = term(
        body,
        body.add("Unsqueeze", own, np.array([1])),
        body.add("Unsqueeze", other, np.array([0])),
    )
    inside = body.body({so_far: 2, own: 1, other: 1}, body.add("Add", so_far, each))
    start = graph.filled(x, len(Z), 0.0)
    columns = graph.add("Transpose", x, perm=[1, 0])
    return graph.add("Scan", start, columns, Z.T, body=inside, num_scan_inputs=2)


def _sum(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    return _joined(graph, "Add", kernel.terms, x, Z)


def _product(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    return _joined(graph, "Mul", kernel.factors, x, Z)


def _joined(graph: Graph, op: str, members: Iterable[Kernel], x: str, Z: Floats) -> str:
    first, *others = [kernel_values(graph, member, x, Z) for member in members]
    for other in others:
        first = graph.add(op, first, other)
    return first


def _scaled(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    return graph.scale(kernel_values(graph, kernel.kernel, x, Z), kernel.factor)


def _power(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    return graph.add("Pow", kernel_values(graph, kernel.kernel, x, Z), float(kernel.exponent))


def _columns(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    numbers = np.arange(Z.shape[1])[np.asarray(kernel.columns)]
    return kernel_values(graph, kernel.kernel, graph.take(x, numbers), Z[:, numbers])


def _constant(graph: Graph, kernel: Any, x: str, Z: Floats) -> str:
    return graph.filled(x, len(Z), float(kernel.value))


_KERNELS: dict[type, Callable[[Graph, Any, str, Floats], str]] = {
    Linear: _linear,
    Polynomial: _polynomial,
    RBF: _rbf,
    Sigmoid: _sigmoid,
    Cosine: _cosine,
    Laplacian: _laplacian,
    ChiSquared: _chi_squared,
    Intersection: _intersection,
    Sum: _sum,
    Product: _product,
    Scaled: _scaled,
    Power: _power,
    Columns: _columns,
    Constant: _constant,
}
_KERNEL_NAMES = sorted(kernel.__name__ for kernel in [*_KERNELS, Precomputed])
