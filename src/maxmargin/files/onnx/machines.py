"""Fitted machines and feature maps as operators of ONNX: scores, labels, probabilities."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import PolynomialFeatures

from maxmargin._typing import Floats
from maxmargin.estimators import (
    SVC,
    SVR,
    AveragedPerceptron,
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
    QuantileSVR,
)
from maxmargin.estimators.kernel_pca.operators import FeatureProjection
from maxmargin.estimators.reductions import lay_out
from maxmargin.files.onnx.graph import DOUBLE, INT64, Graph, GraphOutput, Outputs
from maxmargin.files.onnx.kernels import directions, kernel_values
from maxmargin.inspection.model_view import to_dense
from maxmargin.kernels import Cosine, Linear, Polynomial, Precomputed

_LEAST = 1e-7  # probabilities of pairs keep this far from 0 and 1, as in ``couple_pairs``

Pairs = list[tuple[int, int]]


# ------------------------------------------------------------------- scores


def _scores(graph: Graph, model: Any, x: str, coefficients: Floats | None = None) -> str:
    """Write Σ K(x, z) a + b over the support vectors z, for all planes; w·x + b if there is a w."""
    b = np.ravel(np.asarray(model.intercept_, np.float64))
    if type(getattr(model, "kernel_", Linear())) is Linear and hasattr(model, "coef_"):
        return graph.affine(x, np.atleast_2d(model.coef_).T, b)
    if coefficients is None:
        coefficients = np.asarray(model.dual_coef_, np.float64).T
    if isinstance(model.kernel_, Precomputed):
        return graph.affine(graph.take(x, model.support_), coefficients, b)
    vectors = to_dense(model.support_vectors_)
    if not len(vectors):
        vectors = np.zeros((1, vectors.shape[1]))
        coefficients = np.zeros((1, coefficients.shape[1]))
    return graph.affine(kernel_values(graph, model.kernel_, x, vectors), coefficients, b)


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
        won = graph.add("Cast", graph.add("Greater", scores, 0.0), to=DOUBLE)
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
        best = graph.add("Cast", graph.add("Greater", totals, 0.0), to=INT64)
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
    count = graph.sum_rows(graph.add("Cast", above, to=DOUBLE))
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
    n_classes = len(model.classes_)
    layout = lay_out(n_classes, model.class_planes().scheme)
    labels = np.repeat(np.arange(n_classes), model.n_support_)
    coefficients = layout.spread(np.asarray(model.dual_coef_, np.float64), labels).T
    scores = _scores(graph, model, x, coefficients)
    decision = None
    if n_classes > 2 and model.decision_function_shape == "ovo":
        decision = GraphOutput(scores, np.float64, len(layout.pairs))
    return _from_planes(graph, model, scores, decision)


def _from_planes(
    graph: Graph, model: Any, scores: str, decision: GraphOutput | None = None
) -> Outputs:
    """Write labels and probabilities from the scores of all planes."""
    n_classes, found = len(model.classes_), model.class_planes()
    all_solved = len(found.numbers) == len(model.intercept_)
    planes = scores if all_solved else graph.take(scores, found.numbers)
    if n_classes == 2:
        totals = graph.column(planes, 0)
    else:
        totals = _class_scores(graph, planes, found.pairs, n_classes)
    return {
        **_classified(graph, model, totals, decision),
        **_probabilities(graph, model, planes, totals),
    }


def _classifier(graph: Graph, model: Any, x: str) -> Outputs:
    """Other classifiers: linear ones, or with a column of coefficients for each plane."""
    return _from_planes(graph, model, _scores(graph, model, x))


def _regressor(graph: Graph, model: Any, x: str) -> Outputs:
    f = graph.column(_scores(graph, model, x), 0)
    return {"prediction": GraphOutput(f, np.float64)}


def _one_class(graph: Graph, model: Any, x: str) -> Outputs:
    f = graph.column(_scores(graph, model, x), 0)
    inlier = graph.add("GreaterOrEqual", f, 0.0)
    label = graph.add("Where", inlier, np.int64(1), np.int64(-1))
    return {"label": GraphOutput(label, np.int64), "decision": GraphOutput(f, np.float64)}


# ------------------------------------------------------------------- feature maps


def _kernel_pca(graph: Graph, model: Any, x: str) -> str:
    projection = model.projection_
    if isinstance(projection, FeatureProjection):
        kernel = projection.features.kernel
        if type(kernel) not in (Linear, Cosine, Polynomial):
            kernel_values(graph, kernel, x, np.zeros((1, 1)))  # refuses it
        phi = directions(graph, x) if type(kernel) is Cosine else x
        if projection.features.monomials is not None:
            degree, lower, weights = projection.features.monomials
            powers = PolynomialFeatures((0 if lower else degree, degree), include_bias=lower)
            powers.fit(np.zeros((1, model.n_features_in_)))
            phi = monomials(graph, x, powers.powers_, weights)
        return graph.add("MatMul", graph.add("Sub", phi, projection.mean), projection.directions)
    if isinstance(projection.kernel_, Precomputed):
        K = x if projection.columns is None else graph.take(x, projection.columns)
    else:
        rows = to_dense(projection.support_vectors_)
        K = kernel_values(graph, projection.kernel_, x, rows)
    return graph.affine(K, projection.coefficients, -projection.offset)


def _nystroem(graph: Graph, model: Any, x: str) -> str:
    if isinstance(model.kernel_, Precomputed):
        K = graph.take(x, model.landmark_indices_)
    else:
        K = kernel_values(graph, model.kernel_, x, to_dense(model.landmarks_))
    return graph.add("MatMul", K, model.root_)


def monomials(graph: Graph, x: str, powers: Any, weights: Floats) -> str:
    """Write products of columns, by their exponents, times weights."""
    columns = np.full((len(powers), max(1, int(powers.sum(axis=1).max(initial=0)))), -1)
    for own, exponents in zip(columns, powers, strict=True):
        factors = np.repeat(np.arange(len(exponents)), exponents)
        own[: len(factors)] = factors
    with_one = graph.add("Concat", x, graph.filled(x, 1, 1.0), axis=1)
    out = ""
    for chosen in columns.T:
        factor = graph.take(with_one, chosen)
        out = graph.add("Mul", out, factor) if out else factor
    return graph.scale(out, weights)


PREDICTORS: dict[type, Callable[[Graph, Any, str], Outputs]] = {
    **dict.fromkeys((SVC, NuSVC), _svc),
    **dict.fromkeys((HardMarginSVC, LinearSVC), _classifier),
    **dict.fromkeys((Perceptron, AveragedPerceptron, KernelPerceptron), _classifier),
    **dict.fromkeys((SVR, NuSVR, QuantileSVR, LinearSVR), _regressor),
    OneClassSVM: _one_class,
}
MAPS: dict[type, Callable[[Graph, Any, str], str]] = {KernelPCA: _kernel_pca, Nystroem: _nystroem}
