"""Export to ONNX: a fitted model as a plain graph of standard operators, in double precision.

The operators of ONNX that are made for support vector machines keep their numbers in float32, which
is too coarse for scores and, far from the origin, for labels. So a kernel is written out: rows,
kernel values, sums, votes and probabilities are ordinary arithmetic in float64.

A ``Graph`` collects operators and constants. ``kernel_values`` writes a kernel, and there is a
writer for each family of estimators and for each step of a pipeline; ``to_onnx`` makes a model of
the graph, and ``register_converters`` hands the same writers to skl2onnx.
"""

import copy
import math
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats
from maxmargin.estimators import (
    SVC,
    SVR,
    AveragedPerceptron,
    BayesPointClassifier,
    CircleMap,
    HardMarginSVC,
    KernelPCA,
    KernelPerceptron,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
    Perceptron,
    PolynomialMap,
    QuantileSVR,
    RandomFourier,
    VotedPerceptron,
)
from maxmargin.estimators.feature_maps.polynomial import list_monomials
from maxmargin.estimators.kernel_pca.operators import FeatureProjection
from maxmargin.estimators.perceptron.voted import Votes
from maxmargin.estimators.reductions import lay_out
from maxmargin.inspection.model_view import view_model
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

OPSET = 19  # the first in which strings are compared; onnxruntime reads it since 1.15
IR_VERSION = 9
# γ‖z‖², z measured from the mean, up to which distances come from norms. Measured errors of scores,
# by Σ|coef·K|: 2e-12 at this bound, and in proportion to γ‖z‖². Beyond it distances are sums of
# differences (6e-16), which take up to 20 times as long.
_FAR = 1e4
_LARGEST = 2**31 - 2**20  # bytes that a message of protobuf, and so a graph, can have
_LEAST = 1e-7  # probabilities of pairs keep this far from 0 and 1, as in ``couple_pairs``

Pairs = list[tuple[int, int]]


# ------------------------------------------------------------------- graphs


class Node(NamedTuple):
    """One operator: what it reads and writes by name."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


class Graph:
    """Operators and constants under construction, in an order in which they can be computed.

    Whatever is passed as an input is the name of a value, or a constant: an array or a number.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []  # Node, or what skl2onnx made
        self.constants: dict[str, npt.NDArray[Any]] = {}
        self.domains: dict[str, int] = {"": OPSET}

    def add(self, op: str, *inputs: Any, **attributes: Any) -> str:
        """Add an operator and return the name of its result."""
        names = tuple(each if isinstance(each, str) else self.constant(each) for each in inputs)
        output = f"{self.prefix}{op}{len(self.nodes)}"
        self.nodes.append(Node(op, names, output, attributes))
        return output

    def constant(self, value: Any) -> str:
        """Add a constant and return its name."""
        name = f"{self.prefix}constant{len(self.constants)}"
        self.constants[name] = np.asarray(value, order="C")
        return name

    def name(self, value: str, output: str) -> str:
        """Give a value another name."""
        self.nodes.append(Node("Identity", (value,), output, {}))
        return output

    def take(self, x: str, columns: Any) -> str:
        """Return some columns of a matrix."""
        return self.add("Gather", x, np.asarray(columns, np.int64), axis=1)

    def column(self, x: str, number: int) -> str:
        """Return a column as a vector."""
        return self.add("Gather", x, np.int64(number), axis=1)

    def sum_rows(self, x: str, keepdims: int = 1) -> str:
        """Return the sum of each row."""
        return self.add("ReduceSum", x, np.array([1]), keepdims=keepdims)

    def affine(self, x: str, weights: Any, offset: Any) -> str:
        """Return x @ weights + offset."""
        return self.add("Add", self.add("MatMul", x, np.asarray(weights, np.float64)), offset)

    def scale(self, x: str, factor: Any, op: str = "Mul") -> str:
        """Return the columns of a matrix times factors, or with "Div" divided by them.

        onnxruntime rounds a single constant factor to float32 where it merges it with a matrix
        product before or after it, or where it looks whether it is 1. So a single factor is one
        for each row, which it cannot tell to be constant.
        """
        factors = np.ravel(np.asarray(factor, np.float64))
        alone = len(factors) == 1
        return self.add(op, x, self.filled(x, 1, float(factors[0])) if alone else factors)

    def filled(self, x: str, columns: int, value: float) -> str:
        """Return a matrix of one value with as many rows as x."""
        rows = self.add("Shape", x, start=0, end=1)
        shape = self.add("Concat", rows, np.array([columns]), axis=0)
        return self.add("Expand", np.full((1, 1), value), shape)


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


# ------------------------------------------------------------------- kernels


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
    return graph.add("MatMul", _directions(graph, x), Z.T)


def _directions(graph: Graph, x: str) -> str:
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


class GraphBody(NamedTuple):
    """The graph inside a loop: what it reads and returns."""

    graph: Graph
    inputs: tuple[tuple[str, int], ...]  # names and numbers of axes
    output: str


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
    inside = GraphBody(body, ((so_far, 2), (own, 1), (other, 1)), body.add("Add", so_far, each))
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


# ------------------------------------------------------------------- scores


class GraphOutput(NamedTuple):
    """What a graph returns under a name: a value, its type, and its columns (None: a vector)."""

    value: str
    dtype: Any  # of numpy; str: strings
    columns: int | None = None


Outputs = dict[str, GraphOutput]


def _expansion(graph: Graph, model: Any, x: str, coefficients: Floats) -> str:
    """Write Σ K(x, z) a + b over the support vectors z."""
    if isinstance(model.kernel_, Precomputed):
        return graph.affine(graph.take(x, model.support_), coefficients, model.intercept_)
    vectors = _dense(model.support_vectors_)
    if not len(vectors):
        vectors = np.zeros((1, vectors.shape[1]))
        coefficients = np.zeros((1, coefficients.shape[1]))
    K = kernel_values(graph, model.kernel_, x, vectors)
    return graph.affine(K, coefficients, np.asarray(model.intercept_, np.float64))


def _machine_scores(graph: Graph, model: Any, x: str, coefficients: Floats) -> str:
    """Write the scores of all planes of a kernel machine, as it computes them itself."""
    if type(model.kernel_) is Linear:
        return graph.affine(x, model.coef_.T, model.intercept_)
    return _expansion(graph, model, x, coefficients)


def _class_scores(graph: Graph, scores: str, pairs: Pairs, n_classes: int) -> str:
    """Write one score per class from those of the subproblems, as ``combined_scores`` does."""
    positive, negative = np.transpose(pairs)
    if (negative < 0).all():
        present = positive
        order = np.argsort(present)
        out = graph.take(scores, order)
    else:
        present = np.unique(pairs)
        sides = np.zeros((len(pairs), n_classes))
        sides[np.arange(len(pairs)), positive] = 1.0
        sides[np.arange(len(pairs)), negative] = -1.0
        sides = sides[:, present]
        lost = np.bincount(negative, minlength=n_classes)[present].astype(np.float64)
        won = graph.add("Cast", graph.add("Greater", scores, 0.0), to=_DOUBLE)
        votes = graph.affine(won, sides, lost)
        sums = graph.add("MatMul", scores, sides)
        size = graph.add("Mul", graph.add("Add", graph.add("Abs", sums), 1.0), 3.0)
        out = graph.add("Add", votes, graph.add("Div", sums, size))
    return _with_absent(graph, out, np.sort(present), n_classes)


def _with_absent(graph: Graph, scores: str, present: Any, n_classes: int) -> str:
    """Write the scores of all classes: those without rows score lower than any other."""
    if len(present) == n_classes:
        return scores
    least = graph.add("ReduceMin", scores, np.array([1]), keepdims=1)
    both = graph.add("Concat", scores, graph.add("Sub", least, 1.0), axis=1)
    place = np.full(n_classes, len(present))
    place[present] = np.arange(len(present))
    return graph.take(both, place)


def _classified(
    graph: Graph, model: Any, totals: str, decision: GraphOutput | None = None
) -> Outputs:
    """Write labels; ``totals`` are f of two classes, a vector, or a score for each class."""
    classes = _as_labels(model)
    if len(classes) == 2:
        best = graph.add("Cast", graph.add("Greater", totals, 0.0), to=_INT64)
    else:
        best = graph.add("ArgMax", totals, axis=1, keepdims=0)
    label = graph.add("Gather", classes, best)
    columns = None if len(classes) == 2 else len(classes)
    kind = str if classes.dtype.kind == "O" else classes.dtype
    return {
        "label": GraphOutput(label, kind),
        "decision": decision or GraphOutput(totals, np.float64, columns),
    }


def _as_labels(model: Any) -> npt.NDArray[Any]:
    """Return the classes as ONNX has them: int64, bool, double or strings."""
    classes = np.asarray(model.classes_)
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    if classes.dtype.kind in "bf":
        return classes.astype(bool if classes.dtype.kind == "b" else np.float64)
    if all(isinstance(each, str) for each in classes.tolist()):
        return classes.astype(object)
    raise TypeError(
        f"{type(model).__name__} has labels that ONNX has no type for: {classes.tolist()!r}. Fit "
        "it with numbers or strings as labels."
    )


_DOUBLE, _INT64, _STRING, _BOOL = 11, 7, 8, 9  # of onnx.TensorProto


# ------------------------------------------------------------------- probabilities


def _probabilities(graph: Graph, model: Any, planes: str, totals: str) -> Outputs:
    """Write ``predict_proba`` from the scores of the planes that were solved for."""
    if not (hasattr(model, "calibration_") and hasattr(model, "predict_proba")):
        return {}
    fit = model.calibration_
    if fit.n_classes == 2:
        p = _two_sides(graph, planes, fit.slope, fit.offset)
    else:
        z = graph.add("Add", graph.scale(planes, fit.slope), fit.offset)
        if all(other >= 0 for _, other in fit.classes):
            p = couple(graph, _sigmoid_of(graph, z), list(fit.classes), fit.n_classes)
        else:
            own = [one for one, _ in fit.classes]
            p = _spread(graph, graph.add("Softmax", z, axis=1), own, fit.n_classes)
        p = _most_probable(graph, p, totals, fit.n_classes)
    return {"probabilities": GraphOutput(p, np.float64, fit.n_classes)}


def _sigmoid_of(graph: Graph, z: str) -> str:
    return graph.add("Div", 1.0, graph.add("Add", graph.add("Exp", graph.add("Neg", z)), 1.0))


def _two_sides(graph: Graph, f: str, slope: Floats, offset: Floats) -> str:
    """Write the probabilities of two classes, the predicted one not below ½."""
    z = graph.add("Add", graph.scale(f, slope), offset)
    p, rest = _sigmoid_of(graph, z), _sigmoid_of(graph, graph.add("Neg", z))
    second, over = graph.add("Greater", f, 0.0), graph.add("Greater", p, 0.5)
    raised = graph.add("And", second, graph.add("Not", over))
    lowered = graph.add("And", graph.add("Not", second), over)
    above = float(np.nextafter(0.5, 1.0))
    both = graph.add("Concat", rest, p, axis=1)
    both = graph.add("Where", raised, np.array([1 - above, above]), both)
    return graph.add("Where", lowered, 0.5, both)


def couple(graph: Graph, pairwise: str, pairs: Pairs, n_classes: int) -> str:
    """Write probabilities of classes from those of pairs, as ``couple_pairs`` does.

    (Q + 11ᵀ)p = 1 is solved by elimination, which needs no pivots as the matrix is positive
    definite: Q(i, i) = Σ r(j, i)², Q(i, j) = −r(j, i) r(i, j).
    """
    present = np.unique(pairs)
    size = len(present)
    first, second = np.searchsorted(present, np.transpose(pairs))
    r = graph.add("Min", graph.add("Max", pairwise, _LEAST), 1 - _LEAST)
    rest = graph.add("Sub", 1.0, r)
    # Rows of these matrices belong to pairs, columns to the entries (i, j) of Q.
    products, won, lost = np.zeros((3, len(pairs), size * size))
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        products[k, [i * size + j, j * size + i]] = -1.0
        won[k, j * size + j] = lost[k, i * size + i] = 1.0
    Q = graph.affine(graph.add("Mul", r, rest), products, np.ones(size * size))
    Q = graph.add("Add", Q, graph.add("MatMul", graph.add("Mul", r, r), won))
    Q = graph.add("Add", Q, graph.add("MatMul", graph.add("Mul", rest, rest), lost))
    Q = graph.add("Reshape", Q, np.array([-1, size, size]))
    ones = graph.add("Gather", graph.add("Mul", Q, 0.0), np.array([0]), axis=2)
    system = graph.add("Concat", Q, graph.add("Add", ones, 1.0), axis=2)
    for k in range(size):
        row = graph.add("Gather", system, np.array([k]), axis=1)
        row = graph.add("Div", row, graph.add("Gather", row, np.array([k]), axis=2))
        factors = graph.add("Gather", system, np.array([k]), axis=2)
        others = graph.add("Sub", system, graph.add("Mul", factors, row))
        system = graph.add("Where", (np.arange(size) == k)[:, np.newaxis], row, others)
    p = graph.add("Max", graph.add("Gather", system, np.int64(size), axis=2), 0.0)
    p = graph.add("Div", p, graph.sum_rows(p))
    return _spread(graph, p, present, n_classes)


def _spread(graph: Graph, p: str, present: Any, n_classes: int) -> str:
    """Write the probabilities of all classes: those without rows have 0."""
    if len(present) == n_classes:
        return p
    places = np.zeros((len(present), n_classes))
    places[np.arange(len(present)), present] = 1.0
    return graph.add("MatMul", p, places)


def _most_probable(graph: Graph, p: str, totals: str, n_classes: int) -> str:
    """Write probabilities among which that of the predicted class is the largest."""
    best = graph.add("ArgMax", totals, axis=1, keepdims=1)
    right = graph.add("Equal", graph.add("ArgMax", p, axis=1, keepdims=1), best)
    is_best = graph.add("Equal", np.arange(n_classes)[np.newaxis], best)
    own = graph.sum_rows(graph.add("Where", is_best, p, 0.0))
    above = graph.add("Or", is_best, graph.add("Greater", p, own))
    count = graph.sum_rows(graph.add("Cast", above, to=_DOUBLE))
    mean = graph.add("Div", graph.sum_rows(graph.add("Where", above, p, 0.0)), count)
    mean = graph.add("Max", mean, own)
    next_float = graph.add("Add", mean, graph.add("Mul", mean, float(np.finfo(np.float64).eps)))
    moved = graph.add("Where", is_best, next_float, graph.add("Where", above, mean, p))
    return graph.add("Where", right, p, moved)


# ------------------------------------------------------------------- estimators


def _svc(graph: Graph, model: Any, x: str) -> Outputs:
    """SVC and NuSVC: planes between classes, votes, probabilities."""
    if model.break_ties and model.decision_function_shape == "ovo":
        raise ValueError(
            "break_ties must be False when decision_function_shape is 'ovo': this model has no "
            "predictions to export."
        )
    private, n_classes = vars(model), len(model.classes_)
    layout = lay_out(n_classes, private.get("_scheme", "ovo"))
    labels = np.repeat(np.arange(n_classes), model.n_support_)
    coefficients = layout.spread(np.asarray(model.dual_coef_, np.float64), labels).T
    scores = _machine_scores(graph, model, x, coefficients)
    solved = private["_solved"]
    planes = scores if len(solved) == len(layout.pairs) else graph.take(scores, solved)
    pairs = [layout.pairs[k] for k in solved]
    decision = None
    if n_classes > 2 and model.decision_function_shape == "ovo":
        decision = GraphOutput(scores, np.float64, len(layout.pairs))
    return _from_planes(graph, model, planes, pairs, decision)


def _from_planes(
    graph: Graph, model: Any, planes: str, pairs: Pairs, decision: GraphOutput | None = None
) -> Outputs:
    n_classes = len(model.classes_)
    if n_classes == 2:
        totals = graph.column(planes, 0)
    else:
        totals = _class_scores(graph, planes, pairs, n_classes)
    return {
        **_classified(graph, model, totals, decision),
        **_probabilities(graph, model, planes, totals),
    }


def _hard_margin(graph: Graph, model: Any, x: str) -> Outputs:
    planes = _machine_scores(graph, model, x, np.asarray(model.dual_coef_, np.float64).T)
    return _from_planes(graph, model, planes, vars(model)["_subproblems"])


def _linear_svc(graph: Graph, model: Any, x: str) -> Outputs:
    planes, pairs = graph.affine(x, model.coef_.T, model.intercept_), vars(model)["_pairs"]
    if len(model.coef_) != len(pairs):  # classes learnt together, one of them without rows
        planes = graph.take(planes, [one for one, _ in pairs])
    return _from_planes(graph, model, planes, pairs)


def _perceptron(graph: Graph, model: Any, x: str) -> Outputs:
    return _by_class(graph, model, graph.affine(x, model.coef_.T, model.intercept_))


def _kernel_perceptron(graph: Graph, model: Any, x: str) -> Outputs:
    return _by_class(graph, model, _expansion(graph, model, x, model.dual_coef_.T))


def _voted_perceptron(graph: Graph, model: Any, x: str) -> Outputs:
    """Add up the updates one by one, as the model does, and count the votes after each."""
    votes = Votes.join(vars(model)["_votes"])
    u = votes.updates
    survival = np.diff(np.concatenate([[0.0], u.clock, [votes.visits]]))
    start = np.reshape(votes.start[0], (model.n_features_in_, -1))
    first = graph.affine(x, start, np.asarray(votes.start[1], np.float64))
    products = graph.take(graph.add("MatMul", x, _dense(votes.rows).T), u.row)
    gains = graph.add("Mul", graph.add("Add", products, float(votes.lift)), u.step)
    if len(model.classes_) == 2:
        scores = graph.add("CumSum", graph.add("Concat", first, gains, axis=1), np.int64(1))
        ballots = graph.add("Where", graph.add("Greater", scores, 0.0), survival, -survival)
        total = graph.sum_rows(ballots)
    else:
        n_classes = len(model.classes_)
        sides = np.eye(n_classes)[u.label] - np.eye(n_classes)[u.rival]
        moved = graph.add("Mul", graph.add("Unsqueeze", gains, np.array([2])), sides)
        first = graph.add("Unsqueeze", first, np.array([1]))
        scores = graph.add("CumSum", graph.add("Concat", first, moved, axis=1), np.int64(1))
        best = graph.add("ArgMax", scores, axis=2, keepdims=1)
        chosen = graph.add("Equal", best, np.arange(n_classes))
        ballots = graph.add("Where", chosen, survival[:, np.newaxis], 0.0)
        total = graph.sum_rows(ballots, keepdims=0)
    return _by_class(graph, model, graph.scale(total, max(float(votes.visits), 1.0), "Div"))


def _by_class(graph: Graph, model: Any, scores: str) -> Outputs:
    """Write labels from one column of scores for two classes, from one per class for more."""
    n_classes = len(model.classes_)
    if n_classes == 2:
        return _classified(graph, model, graph.column(scores, 0))
    seen = np.flatnonzero(vars(model).get("_seen", np.ones(n_classes, bool)))
    if len(seen) < n_classes:
        scores = _with_absent(graph, graph.take(scores, seen), seen, n_classes)
    return _classified(graph, model, scores)


def _bayes_point(graph: Graph, model: Any, x: str) -> Outputs:
    """Let all draws vote; only where they are weights, as with the linear kernel."""
    private = vars(model)
    posteriors, constant = private["_posteriors"], float(private["_constant"])
    if posteriors[0].landmarks is not None:
        raise TypeError(
            f"BayesPointClassifier with kernel={model.kernel!r} on these rows cannot be exported "
            "to ONNX: its votes need the normal distribution function, which runtimes have in "
            "float32 only. With the linear kernel and fewer columns than rows it can be; or export "
            "an SVC."
        )
    if constant:
        x = graph.add("Concat", x, graph.filled(x, 1, constant), axis=1)
    shares = []
    for posterior in posteriors:
        draws = posterior.draws.reshape(-1, posterior.draws.shape[2])
        signs = graph.add("Sign", graph.add("MatMul", x, draws.T))
        shares.append(graph.add("ReduceMean", signs, np.array([1]), keepdims=1))
    votes = graph.add("Concat", *shares, axis=1) if len(shares) > 1 else shares[0]
    noise = float(private["_noise"])
    p = graph.add("Add", graph.add("Mul", votes, 0.5 * (1 - 2 * noise)), 0.5)
    n_classes = len(model.classes_)
    if n_classes == 2:
        p = graph.add("Concat", graph.add("Sub", 1.0, p), p, axis=1)
        totals = graph.add("Sub", graph.column(p, 1), graph.column(p, 0))
    else:
        p = totals = couple(graph, p, private["_pairs"], n_classes)
    found = _classified(graph, model, totals)
    return {**found, "probabilities": GraphOutput(p, np.float64, n_classes)}


def _regressor(graph: Graph, model: Any, x: str) -> Outputs:
    coefficients = np.asarray(model.dual_coef_, np.float64).T
    scores = _machine_scores(graph, model, x, coefficients)
    return {"prediction": GraphOutput(graph.column(scores, 0), np.float64)}


def _linear_svr(graph: Graph, model: Any, x: str) -> Outputs:
    scores = graph.affine(x, np.reshape(model.coef_, (1, -1)).T, np.ravel(model.intercept_))
    return {"prediction": GraphOutput(graph.column(scores, 0), np.float64)}


def _one_class(graph: Graph, model: Any, x: str) -> Outputs:
    scores = _machine_scores(graph, model, x, np.asarray(model.dual_coef_, np.float64).T)
    f = graph.column(scores, 0)
    inlier = graph.add("GreaterOrEqual", f, 0.0)
    label = graph.add("Where", inlier, np.int64(1), np.int64(-1))
    return {"label": GraphOutput(label, np.int64), "decision": GraphOutput(f, np.float64)}


# ------------------------------------------------------------------- feature maps


def _kernel_pca(graph: Graph, model: Any, x: str) -> str:
    projection = vars(model)["_projection"]
    if isinstance(projection, FeatureProjection):
        kernel = projection.features.kernel
        if type(kernel) not in (Linear, Cosine, Polynomial):
            kernel_values(graph, kernel, x, np.zeros((1, 1)))  # refuses it
        phi = _directions(graph, x) if type(kernel) is Cosine else x
        if projection.features.monomials is not None:
            degree, lower, weights = projection.features.monomials
            phi = _monomials(graph, x, list_monomials(model.n_features_in_, degree, lower), weights)
        return graph.add("MatMul", graph.add("Sub", phi, projection.mean), projection.directions)
    if isinstance(projection.kernel_, Precomputed):
        K = x if projection.columns is None else graph.take(x, projection.columns)
    else:
        rows = _dense(projection.support_vectors_)
        K = kernel_values(graph, projection.kernel_, x, rows)
    return graph.affine(K, projection.coefficients, -projection.offset)


def _nystroem(graph: Graph, model: Any, x: str) -> str:
    if isinstance(model.kernel_, Precomputed):
        K = graph.take(x, model.landmark_indices_)
    else:
        K = kernel_values(graph, model.kernel_, x, _dense(model.landmarks_))
    return graph.add("MatMul", K, model.root_)


def _random_fourier(graph: Graph, model: Any, x: str) -> str:
    centred = x if model.center_ is None else graph.add("Sub", x, model.center_)
    phase = graph.add("MatMul", centred, model.frequencies_)
    half, count = model.n_components_ // 2, model.frequencies_.shape[1]
    parts = []
    if half:
        whole = phase if half == count else graph.take(phase, np.arange(half))
        parts = [graph.add("Cos", whole), graph.add("Sin", whole)]
    if half < count:
        last = graph.add("Add", graph.take(phase, [count - 1]), float(model.phase_))
        parts.append(graph.scale(graph.add("Cos", last), math.sqrt(2)))
    return graph.scale(graph.add("Concat", *parts, axis=1), math.sqrt(1 / count))


def _polynomial_map(graph: Graph, model: Any, x: str) -> str:
    return _monomials(graph, x, model.powers_, model.weights_)


def _monomials(graph: Graph, x: str, powers: Any, weights: Floats) -> str:
    """Write products of columns, where −1 stands for none, times their weights."""
    with_one = graph.add("Concat", x, graph.filled(x, 1, 1.0), axis=1)
    out = ""
    for columns in powers.T:
        factor = graph.take(with_one, columns)
        out = graph.add("Mul", out, factor) if out else factor
    return graph.scale(out, weights)


def _circle_map(graph: Graph, model: Any, x: str) -> str:
    away = graph.add("Sub", x, model.center_)
    squares = graph.sum_rows(graph.add("Mul", away, away))
    if model.lift == "gaussian":
        inner = graph.scale(graph.add("Neg", squares), 2 * float(model.width_) ** 2, "Div")
        return graph.add("Concat", x, graph.add("Exp", inner), axis=1)
    scaled = graph.scale(away, -2.0)
    return graph.add("Concat", squares, scaled, graph.filled(x, 1, 1.0), axis=1)


_PREDICTORS: dict[type, Callable[[Graph, Any, str], Outputs]] = {
    SVC: _svc,
    NuSVC: _svc,
    HardMarginSVC: _hard_margin,
    LinearSVC: _linear_svc,
    Perceptron: _perceptron,
    AveragedPerceptron: _perceptron,
    KernelPerceptron: _kernel_perceptron,
    VotedPerceptron: _voted_perceptron,
    BayesPointClassifier: _bayes_point,
    SVR: _regressor,
    NuSVR: _regressor,
    QuantileSVR: _regressor,
    LinearSVR: _linear_svr,
    OneClassSVM: _one_class,
}
_MAPS: dict[type, Callable[[Graph, Any, str], str]] = {
    KernelPCA: _kernel_pca,
    Nystroem: _nystroem,
    RandomFourier: _random_fourier,
    PolynomialMap: _polynomial_map,
    CircleMap: _circle_map,
}


# ------------------------------------------------------------------- pipelines


class GraphRows:
    """Rows on their way through a pipeline: a matrix, or, if some columns are strings, columns."""

    def __init__(self, graph: Graph, matrix: str = "", columns: tuple[str, ...] = ()) -> None:
        self.graph, self._matrix, self._columns = graph, matrix, columns

    def matrix(self) -> str:
        """Return all columns as one matrix."""
        if not self._matrix:
            one = len(self._columns) == 1
            self._matrix = (
                self._columns[0] if one else self.graph.add("Concat", *self._columns, axis=1)
            )
        return self._matrix

    def take(self, numbers: list[int]) -> "GraphRows":
        """Return some of the columns."""
        if self._columns:
            return GraphRows(self.graph, columns=tuple(self._columns[k] for k in numbers))
        return GraphRows(self.graph, self.graph.take(self._matrix, numbers))

    def column(self, number: int) -> str:
        """Return one column, as a matrix."""
        return self.take([number]).matrix()


def _transformed(graph: Graph, step: Any, rows: GraphRows) -> GraphRows:
    """Write a transformer and return what it makes of rows."""
    if _passes(step):
        return rows
    known = _STEPS.get(type(step).__name__) if _is_of_sklearn(step) else None
    if known is not None:
        return GraphRows(graph, known(graph, step, rows))
    if type(step) in _MAPS:
        check_is_fitted(step)
        return GraphRows(graph, _MAPS[type(step)](graph, step, rows.matrix()))
    return GraphRows(graph, _converted_by_skl2onnx(graph, step, rows.matrix()))


def _passes(step: Any) -> bool:
    """Return whether a step leaves rows as they are."""
    if step is None or isinstance(step, str):
        return True
    return type(step).__name__ == "FunctionTransformer" and step.func is None


def _is_of_sklearn(step: Any) -> bool:
    return type(step).__module__.partition(".")[0] == "sklearn"


def _pipeline(graph: Graph, step: Any, rows: GraphRows) -> str:
    for _, each in step.steps:
        rows = _transformed(graph, each, rows)
    return rows.matrix()


def _column_transformer(graph: Graph, step: Any, rows: GraphRows) -> str:
    parts = []
    for each, numbers in _fitted_parts(step):
        if each != "drop" and len(numbers):
            parts.append(_transformed(graph, each, rows.take(numbers)).matrix())
    if not parts:
        raise ValueError("This ColumnTransformer drops all columns: there is nothing to export.")
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _fitted_parts(step: Any) -> list[tuple[Any, list[int]]]:
    """Return the transformers of a ColumnTransformer, and the numbers of their columns."""
    numbers = vars(step)["_transformer_to_input_indices"]
    return [(each, [int(k) for k in numbers[name]]) for name, each, _ in step.transformers_]


def _feature_union(graph: Graph, step: Any, rows: GraphRows) -> str:
    weights, parts = step.transformer_weights or {}, []
    for name, each in step.transformer_list:
        if each != "drop":
            part = _transformed(graph, each, rows).matrix()
            parts.append(graph.scale(part, weights[name]) if name in weights else part)
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


# The arithmetic of these steps is scikit-learn's, in its order: so results are equal to the bit.


def _standard_scaler(graph: Graph, step: Any, rows: GraphRows) -> str:
    x = rows.matrix()
    if step.with_mean:
        x = graph.add("Sub", x, step.mean_)
    return graph.scale(x, step.scale_, "Div") if step.with_std else x


def _robust_scaler(graph: Graph, step: Any, rows: GraphRows) -> str:
    x = rows.matrix()
    if step.with_centering:
        x = graph.add("Sub", x, step.center_)
    return graph.scale(x, step.scale_, "Div") if step.with_scaling else x


def _min_max_scaler(graph: Graph, step: Any, rows: GraphRows) -> str:
    x = graph.add("Add", graph.scale(rows.matrix(), step.scale_), step.min_)
    if step.clip:
        low, high = step.feature_range
        x = graph.add("Min", graph.add("Max", x, float(low)), float(high))
    return x


def _polynomial_features(graph: Graph, step: Any, rows: GraphRows) -> str:
    powers = np.asarray(step.powers_)
    columns = np.full((len(powers), max(1, int(powers.sum(axis=1).max(initial=0)))), -1)
    for own, exponents in zip(columns, powers, strict=True):
        factors = np.repeat(np.arange(len(exponents)), exponents)
        own[: len(factors)] = factors
    return _monomials(graph, rows.matrix(), columns, np.ones(len(powers)))


def _max_abs_scaler(graph: Graph, step: Any, rows: GraphRows) -> str:
    x = graph.scale(rows.matrix(), step.scale_, "Div")
    if getattr(step, "clip", False):
        x = graph.add("Min", graph.add("Max", x, -1.0), 1.0)
    return x


def _simple_imputer(graph: Graph, step: Any, rows: GraphRows) -> str:
    """Write filled columns; a missing string is the empty one, as ONNX has no other."""
    statistics, x = np.asarray(step.statistics_), rows.matrix()
    strings = _has_strings(statistics)
    missing = _is_missing(graph, step.missing_values, x, strings)
    empty = np.zeros(len(statistics), bool)
    if step.strategy != "constant" and not step.keep_empty_features:
        empty = np.array([_is_nan(value) for value in statistics.tolist()])
    kept = np.flatnonzero(~empty)
    fill = statistics.astype(object if strings else np.float64)
    out = graph.add("Where", missing, np.where(empty, "" if strings else 0.0, fill), x)
    out = out if len(kept) == len(fill) else graph.take(out, kept)
    if not step.add_indicator:
        return out
    if strings:
        raise TypeError(
            "SimpleImputer(add_indicator=True) of strings cannot be exported to ONNX: its columns "
            "are strings and numbers. Use a MissingIndicator beside it."
        )
    marks = graph.take(missing, step.indicator_.features_)
    return graph.add("Concat", out, graph.add("Cast", marks, to=_DOUBLE), axis=1)


def _is_missing(graph: Graph, value: Any, x: str, strings: bool) -> str:
    if strings:
        return graph.add("Equal", x, np.array(value if isinstance(value, str) else "", object))
    if _is_nan(value):
        return graph.add("IsNaN", x)
    return graph.add("Equal", x, float(value))


def _encoder(graph: Graph, step: Any, rows: GraphRows) -> str:
    """Compare each column with its categories; what these become is asked of the encoder."""
    parts, start = [], 0
    for number, own in enumerate(step.categories_):
        width = _count_columns(step, number)
        codes = _encode(step, number)[:, start : start + width]
        start += width
        if not np.isfinite(codes).all():
            raise TypeError(
                f"{type(step).__name__} makes NaN of missing values, which cannot be exported to "
                "ONNX: set encoded_missing_value to a number."
            )
        same = graph.add("Cast", _equals(graph, step, rows.column(number), own), to=_DOUBLE)
        part = graph.add("MatMul", same, codes)
        code = _code_of_unknown(step, number, codes)
        if code is not None:
            unknown = graph.add("Sub", 1.0, graph.sum_rows(same))
            part = graph.add("Add", part, graph.add("MatMul", unknown, code))
        parts.append(part)
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _code_of_unknown(step: Any, number: int, codes: Floats) -> Floats | None:
    """Return what an encoder makes of a value that is no category; None: zeros, or an error."""
    if step.handle_unknown == "use_encoded_value":
        return np.array([[step.unknown_value]], np.float64)
    infrequent = _infrequent(step, number)
    if infrequent and step.handle_unknown in ("infrequent_if_exist", "warn"):
        return codes[[step.categories_[number].tolist().index(infrequent[0])]]
    return None


def _infrequent(step: Any, number: int) -> list[Any]:
    groups = getattr(step, "infrequent_categories_", None)
    return [] if groups is None or groups[number] is None else groups[number].tolist()


def _count_columns(step: Any, number: int) -> int:
    """Return how many columns an encoder makes of one."""
    if type(step).__name__ == "OrdinalEncoder":
        return 1
    infrequent = len(_infrequent(step, number))
    dropped = step.drop_idx_ is not None and step.drop_idx_[number] is not None
    return len(step.categories_[number]) - max(infrequent - 1, 0) - int(dropped)


def _encode(step: Any, number: int) -> Floats:
    """Return what an encoder makes of each category of a column."""
    own = step.categories_[number]
    rows = np.empty((len(own), len(step.categories_)), dtype=object)
    for k, categories in enumerate(step.categories_):
        rows[:, k] = own if k == number else categories[0]
    if not any(map(_has_strings, step.categories_)):
        rows = rows.astype(np.float64)
    plain = copy.copy(step)  # without names of columns, and with plain arrays as output
    vars(plain).pop("feature_names_in_", None)
    return _dense(plain.set_output(transform="default").transform(rows))


def _equals(graph: Graph, step: Any, x: str, categories: Any) -> str:
    """Write which category each value is, as a matrix; missing strings are empty."""
    categories = np.asarray(categories)
    if not _has_strings(categories):
        numbers = categories.astype(np.float64)
        same = graph.add("Equal", x, numbers[np.newaxis])
        if np.isnan(numbers).any():
            both = graph.add("And", graph.add("IsNaN", x), np.isnan(numbers)[np.newaxis])
            same = graph.add("Or", same, both)
        return same
    names = ["" if each is None or _is_nan(each) else each for each in categories.tolist()]
    if len(set(names)) < len(names) or not all(isinstance(each, str) for each in names):
        raise TypeError(
            f"{type(step).__name__} has categories that ONNX cannot tell apart, as it has only "
            f"strings for them: {categories.tolist()!r}. Make all of them strings, and give "
            "missing values one name."
        )
    return graph.add("Equal", x, np.array([names], dtype=object))


def _has_strings(values: Any) -> bool:
    return any(isinstance(each, str) for each in np.ravel(values).tolist())


def _is_nan(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


_STEPS: dict[str, Callable[[Graph, Any, GraphRows], str]] = {
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    "MaxAbsScaler": _max_abs_scaler,
    "MinMaxScaler": _min_max_scaler,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "Pipeline": _pipeline,
    "PolynomialFeatures": _polynomial_features,
    "RobustScaler": _robust_scaler,
    "SimpleImputer": _simple_imputer,
    "StandardScaler": _standard_scaler,
}


# ------------------------------------------------------------------- other steps of scikit-learn

_TEXT = {"CountVectorizer", "HashingVectorizer", "TfidfVectorizer"}


def _converted_by_skl2onnx(graph: Graph, step: Any, x: str) -> str:
    """Write a step as skl2onnx does, if it computes in double throughout."""
    onnx = _import("onnx")
    skl2onnx = _import("skl2onnx")
    from skl2onnx.common.data_types import DoubleTensorType

    name = type(step).__name__
    if name in _TEXT:
        raise TypeError(
            f"{name} cannot be exported to ONNX: no runtime cuts text into words as it does. "
            "Export the steps after it, to_onnx(pipeline[1:]), and give the graph what it returns."
        )
    width = int(getattr(step, "n_features_in_", 0)) or None
    try:
        made = skl2onnx.convert_sklearn(
            step, initial_types=[("X", DoubleTensorType([None, width]))],
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        )  # fmt: skip
    except Exception as reason:  # of many kinds, some of them private
        raise TypeError(
            f"The step {name} cannot be exported to ONNX: {reason} Leave it out of the exported "
            "pipeline, and give the graph what it returns."
        ) from reason
    _refuse_float32(onnx, name, made)
    prefix = f"{graph.prefix}{name}{len(graph.nodes)}_"
    inner = onnx.compose.add_prefix(made, prefix).graph
    graph.name(x, inner.input[0].name)
    graph.nodes.extend(inner.node)
    for tensor in inner.initializer:
        graph.constants[tensor.name] = onnx.numpy_helper.to_array(tensor)
    for each in made.opset_import:
        graph.domains[each.domain] = max(each.version, graph.domains.get(each.domain, 0))
    return str(inner.output[0].name)


def _refuse_float32(onnx: Any, name: str, made: Any) -> None:
    """Raise if some value of a graph is in single precision."""
    inferred = onnx.shape_inference.infer_shapes(made).graph
    types = [each.type.tensor_type.elem_type for each in [*inferred.value_info, *inferred.output]]
    types += [tensor.data_type for tensor in inferred.initializer]
    if onnx.TensorProto.FLOAT in types:
        raise TypeError(
            f"The step {name} cannot be exported to ONNX, as skl2onnx writes it in single "
            "precision. Leave it out of the exported pipeline, and give the graph what it returns; "
            "or use skl2onnx itself after maxmargin.files.onnx.register_converters()."
        )


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as missing:
        raise ImportError(
            f"Export to ONNX needs the package {name}: pip install onnx skl2onnx"
        ) from missing


# ------------------------------------------------------------------- inputs


def _string_columns(step: Any, numbers: list[int]) -> set[int]:
    """Return which of the columns that enter a step must be strings."""
    kind = type(step).__name__
    if kind == "Pipeline":
        first = next((each for _, each in step.steps if not _passes(each)), None)
        return _string_columns(first, numbers)
    if kind == "ColumnTransformer":
        found = set()
        for each, own in _fitted_parts(step):
            found |= _string_columns(each, [numbers[k] for k in own])
        return found
    if kind == "FeatureUnion":
        return set().union(*(_string_columns(each, numbers) for _, each in step.transformer_list))
    if kind in ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder"):
        values = step.categories_
    elif kind == "SimpleImputer":
        values = [[each] for each in step.statistics_]
    else:
        return set()
    return {k for k, own in zip(numbers, values, strict=True) if _has_strings(own)}


class Input(NamedTuple):
    """What a graph takes under a name: numbers or strings, in so many columns."""

    name: str
    strings: bool
    columns: int


def _inputs(model: Any, width: int) -> list[Input]:
    """Return the input X, or a column for each feature if some are strings."""
    strings = _string_columns(model, list(range(width)))
    if not strings:
        return [Input("X", False, width)]
    names = getattr(model, "feature_names_in_", [f"x{k}" for k in range(width)])
    return [Input(str(name), k in strings, 1) for k, name in enumerate(names)]


# ------------------------------------------------------------------- models


def to_onnx(model: Any) -> Any:
    """Return a fitted model, or a pipeline that ends in one, as a graph of ONNX.

    The graph consists of standard operators in double precision: in onnxruntime labels are equal
    to those of ``predict``, and scores within 1e-10, relative to the size of their sums.

    Parameters
    ----------
    model : fitted estimator, pipeline or search
        Any classifier, regressor, outlier detector or feature map of maxmargin whose kernel is
        not a function of your own; a pipeline of them with scalers, imputers, encoders and column
        transformers of scikit-learn; of a search, its ``best_estimator_``.

    Returns
    -------
    onnx.ModelProto
        Its input is ``X``, a matrix of doubles (of kernel values, for kernel="precomputed"); if
        some columns are strings, there is an input for each column instead, of shape (n, 1). Its
        outputs are ``label`` and ``decision``, and ``probabilities`` if the model has them; of a
        regressor ``prediction``; of a feature map ``transformed``.

    Raises
    ------
    TypeError
        If a step, a kernel or a model cannot be written in this way; the message says which.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(200, random_state=0)
    >>> graph = mm.files.to_onnx(mm.SVC(C=10.0).fit(X, y))
    >>> [output.name for output in graph.graph.output]
    ['label', 'decision']
    """
    _import("onnx")
    model = _without_searches(model)
    machine = view_model(model).machine
    _refuse_unknown(machine, whole=machine is model)
    check_is_fitted(machine)
    graph = Graph("maxmargin.")
    inputs = _inputs(model, _count_features(model))
    if len(inputs) == 1 and not inputs[0].strings:
        rows = GraphRows(graph, inputs[0].name)
    else:
        rows = GraphRows(graph, columns=tuple(each.name for each in inputs))
    outputs = _write(graph, model, rows)
    _refuse_same_names(inputs, outputs)
    named = {
        name: each._replace(value=graph.name(each.value, name)) for name, each in outputs.items()
    }
    read = {name for node in graph.nodes for name in _inputs_of(node)}
    return _as_model(graph, [each for each in inputs if each.name in read], named, model)


def _refuse_same_names(inputs: list[Input], outputs: Outputs) -> None:
    names = [each.name for each in inputs]
    for name in names:
        if name in outputs or names.count(name) > 1 or name.startswith("maxmargin."):
            raise ValueError(
                f"The column {name!r} cannot be an input of the graph, as another of its values "
                "has this name: rename the column, and fit the pipeline again."
            )


def _inputs_of(node: Any) -> Iterable[str]:
    return node.inputs if isinstance(node, Node) else node.input


def _without_searches(model: Any) -> Any:
    """Return the model that a search chose; also inside a pipeline."""
    model = view_model(model).model
    if _is_pipeline(model) and view_model(model.steps[-1][1]).search is not None:
        model = copy.copy(model)
        last, search = model.steps[-1]
        model.steps = [*model.steps[:-1], (last, _without_searches(search))]
    return model


def _is_pipeline(model: Any) -> bool:
    return type(model).__name__ == "Pipeline" and _is_of_sklearn(model)


def _refuse_unknown(machine: Any, whole: bool) -> None:
    """Raise unless a last step can be written."""
    known = type(machine) in _PREDICTORS or type(machine) in _MAPS
    if known or (not whole and (hasattr(machine, "transform") or _passes(machine))):
        return
    if isinstance(machine, type) or not hasattr(machine, "get_params"):
        raise TypeError(f"{machine!r} is not a fitted estimator: nothing can be exported to ONNX.")
    name = type(machine).__name__
    if type(machine).__module__.startswith("maxmargin.structured."):
        raise TypeError(
            f"{name} cannot be exported to ONNX: what it predicts is found by a search over "
            "outputs, not by a graph of arithmetic. Save it with mm.save."
        )
    if type(machine).__module__.startswith("maxmargin."):
        raise TypeError(f"{name} cannot be exported to ONNX. Save it with mm.save.")
    raise TypeError(
        f"{name} is not an estimator of maxmargin: export it with skl2onnx.to_onnx, after "
        "maxmargin.files.onnx.register_converters() if it contains one."
    )


def _count_features(model: Any) -> int:
    """Return the columns of the rows that a model takes."""
    if _is_pipeline(model):
        first = next(each for _, each in model.steps if not _passes(each))
        return _count_features(first)
    if not hasattr(model, "n_features_in_"):
        raise TypeError(
            f"{type(model).__name__} was not fitted to a matrix with a fixed number of columns: it "
            "takes objects or text, for which ONNX has no operators."
            f"{' Export the steps after it: to_onnx(pipeline[1:]).' * _is_of_sklearn(model)}"
        )
    return int(model.n_features_in_)


def _write(graph: Graph, model: Any, rows: GraphRows) -> Outputs:
    if _is_pipeline(model):
        for _, step in model.steps[:-1]:
            rows = _transformed(graph, step, rows)
        return _write(graph, model.steps[-1][1], rows)
    if type(model) in _PREDICTORS:
        return _PREDICTORS[type(model)](graph, model, rows.matrix())
    made = _transformed(graph, model, rows).matrix()
    return {"transformed": GraphOutput(made, np.float64, getattr(model, "n_components_", _UNKNOWN))}


_UNKNOWN = -1  # number of columns


def _as_model(graph: Graph, inputs: list[Input], outputs: Outputs, model: Any) -> Any:
    onnx = _import("onnx")
    helper = onnx.helper
    size = sum(value.nbytes for value in graph.constants.values())
    if size > _LARGEST:
        raise ValueError(
            f"The graph has constants of {size / 1e9:.3g} GB, and a file of ONNX can have 2 GB: "
            "fit a model with fewer support vectors, or mm.Nystroem and mm.LinearSVC."
        )
    made = helper.make_graph(
        [_as_node(onnx, node) for node in graph.nodes],
        "maxmargin",
        [
            helper.make_tensor_value_info(
                each.name, _STRING if each.strings else _DOUBLE, ["rows", each.columns]
            )
            for each in inputs
        ],
        [_as_value_info(onnx, name, each) for name, each in outputs.items()],
        [_as_tensor(onnx, name, value) for name, value in graph.constants.items()],
    )
    said = _describe(model)
    proto = helper.make_model(
        made,
        producer_name="maxmargin",
        producer_version=version("maxmargin"),
        doc_string="; ".join(f"{key}: {value}" for key, value in said.items()),
        opset_imports=[helper.make_opsetid(*each) for each in sorted(graph.domains.items())],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(proto, said)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def _describe(model: Any) -> dict[str, str]:
    """Return what a graph says about where it comes from."""
    view = view_model(model)
    steps = [*view.steps, view.machine]
    said = {"model": ", ".join(type(each).__name__ for each in steps)}
    certificate = getattr(steps[-1], "certificate_", None)
    if certificate is not None:
        said["certificate gap"] = f"{certificate.relative_gap:.3g}"
    return said


def _as_node(onnx: Any, node: Any) -> Any:
    if not isinstance(node, Node):
        return node
    attributes = {
        key: _as_body(onnx, value) if isinstance(value, GraphBody) else value
        for key, value in node.attributes.items()
    }
    return onnx.helper.make_node(
        node.op, list(node.inputs), [node.output], name=node.output, **attributes
    )


def _as_body(onnx: Any, body: GraphBody) -> Any:
    def double(name: str, axes: int) -> Any:
        return onnx.helper.make_tensor_value_info(name, _DOUBLE, [None] * axes)

    return onnx.helper.make_graph(
        [_as_node(onnx, node) for node in body.graph.nodes],
        "loop",
        [double(*each) for each in body.inputs],
        [double(body.output, 2)],
        [_as_tensor(onnx, name, value) for name, value in body.graph.constants.items()],
    )


def _as_tensor(onnx: Any, name: str, value: npt.NDArray[Any]) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(value, order="C"), name)


_TYPES = {np.dtype(np.float64): _DOUBLE, np.dtype(np.int64): _INT64, np.dtype(bool): _BOOL}


def _as_value_info(onnx: Any, name: str, output: GraphOutput) -> Any:
    shape: list[Any] = ["rows"]
    if output.columns is not None:
        shape.append(_known(output.columns))
    return onnx.helper.make_tensor_value_info(name, _element_type(output), shape)


def _element_type(output: GraphOutput) -> int:
    return _STRING if output.dtype is str else _TYPES[np.dtype(output.dtype)]


def _known(columns: int) -> int | None:
    return None if columns == _UNKNOWN else columns


# ------------------------------------------------------------------- skl2onnx


def register_converters() -> None:
    """Teach skl2onnx to convert the estimators of maxmargin, wherever they are in a pipeline.

    Afterwards ``skl2onnx.to_onnx(pipeline, X[:1])`` works for pipelines with any steps that
    skl2onnx knows. Outputs of classifiers are a label, the decision function and, if there are
    any, probabilities, all in double precision; give rows in float64, or the steps before them
    will compute in float32.

    Examples
    --------
    >>> import maxmargin as mm, skl2onnx
    >>> from maxmargin.files.onnx import register_converters
    >>> X, y = mm.datasets.circles(200, random_state=0)
    >>> register_converters()
    >>> graph = skl2onnx.to_onnx(mm.SVC(C=10.0).fit(X, y), X[:1])
    >>> [output.name for output in graph.graph.output]
    ['label', 'decision']
    """
    skl2onnx = _import("skl2onnx")
    for kind in [*_PREDICTORS, *_MAPS]:
        skl2onnx.update_registered_converter(
            kind, f"MaxMargin{kind.__name__}", _set_shapes, _convert, parser=_parse
        )


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs of a model to skl2onnx."""
    from skl2onnx.common import data_types

    del custom_parsers
    operator = scope.declare_local_operator(f"MaxMargin{type(model).__name__}", model)
    operator.inputs = inputs
    kinds = {
        _DOUBLE: data_types.DoubleTensorType,
        _INT64: data_types.Int64TensorType,
        _STRING: data_types.StringTensorType,
        _BOOL: data_types.BooleanTensorType,
    }
    for name, output in _write(Graph(), model, GraphRows(Graph(), "X")).items():
        shape = [None] if output.columns is None else [None, _known(output.columns)]
        kind = kinds[_element_type(output)](shape)
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _set_shapes(operator: Any) -> None:
    """Leave shapes as they were declared."""


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the operators of a model to those that skl2onnx has so far."""
    onnx = _import("onnx")
    x = operator.inputs[0].full_name
    graph = Graph(scope.get_unique_variable_name("maxmargin") + "_")
    if len(operator.inputs) > 1:
        doubles = [graph.add("Cast", each.full_name, to=_DOUBLE) for each in operator.inputs]
        x = graph.add("Concat", *doubles, axis=1)
    else:
        x = graph.add("Cast", x, to=_DOUBLE)
    outputs = _write(graph, operator.raw_operator, GraphRows(graph, x))
    if len(operator.outputs) < len(outputs):  # inside ensembles: a label and probabilities
        outputs.pop("decision")
    for output, variable in zip(outputs.values(), operator.outputs, strict=True):
        graph.name(output.value, variable.full_name)
    for name, value in graph.constants.items():
        tensor = _as_tensor(onnx, name, value)
        flat = value.ravel().tolist() if value.dtype.kind == "O" else tensor
        container.add_initializer(name, tensor.data_type, list(value.shape), flat)
    for node in graph.nodes:
        made = {key: _as_body(onnx, each) if isinstance(each, GraphBody) else each
                for key, each in node.attributes.items()}  # fmt: skip
        container.add_node(
            node.op, list(node.inputs), [node.output], name=node.output, op_version=None, **made
        )
