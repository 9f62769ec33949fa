"""The steps of a pipeline as operators of ONNX: skl2onnx writes scikit-learn's, in double."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.files.onnx.graph import DOUBLE, OPSET, Graph, GraphInput, import_package
from maxmargin.files.onnx.machines import MAPS, monomials


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


def transformed(graph: Graph, step: Any, rows: GraphRows) -> GraphRows:
    """Write a transformer and return what it makes of rows."""
    if is_skipped(step):
        return rows
    known = _STEPS.get(type(step).__name__) if is_of_sklearn(step) else None
    if known is not None:
        return GraphRows(graph, known(graph, step, rows))
    check_is_fitted(step)
    if type(step) in MAPS:
        return GraphRows(graph, MAPS[type(step)](graph, step, rows.matrix()))
    return GraphRows(graph, _converted(graph, step, rows.matrix()))


def is_skipped(step: Any) -> bool:
    """Return whether a step leaves rows as they are."""
    if step is None or isinstance(step, str):
        return True
    return type(step).__name__ == "FunctionTransformer" and step.func is None


def is_of_sklearn(step: Any) -> bool:
    """Return whether a step is one of scikit-learn."""
    return type(step).__module__.partition(".")[0] == "sklearn"


def _pipeline(graph: Graph, step: Any, rows: GraphRows) -> str:
    for _, each in step.steps:
        rows = transformed(graph, each, rows)
    return rows.matrix()


def _column_transformer(graph: Graph, step: Any, rows: GraphRows) -> str:
    parts = []
    for each, numbers in _fitted_parts(step):
        if each != "drop" and len(numbers):
            parts.append(transformed(graph, each, rows.take(numbers)).matrix())
    if not parts:
        raise ValueError("This ColumnTransformer drops all columns: there is nothing to export.")
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _fitted_parts(step: Any) -> list[tuple[Any, list[int]]]:
    """Return the transformers of a ColumnTransformer, and the numbers of their columns."""
    return [(each, _numbers(step, own)) for _, each, own in step.transformers_]


def _numbers(step: Any, columns: Any) -> list[int]:
    """Return the numbers of columns that are given by number, name, mask or slice."""
    names = list(getattr(step, "feature_names_in_", ()))
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            raise TypeError(
                f"A ColumnTransformer whose columns are {columns!r} cannot be exported to ONNX: "
                "list their names instead, and fit it again."
            )
        return list(range(step.n_features_in_))[columns]
    wanted = np.atleast_1d(np.asarray(columns)).tolist()
    if wanted and all(isinstance(each, bool) for each in wanted):
        return np.flatnonzero(wanted).tolist()
    numbers = [names.index(each) if isinstance(each, str) else each for each in wanted]
    return [number % step.n_features_in_ for number in numbers]


# ------------------------------------------------------------------- what skl2onnx cannot do


def _polynomial_features(graph: Graph, step: Any, rows: GraphRows) -> str:
    """Write products of columns, for which skl2onnx has single precision only."""
    powers = np.asarray(step.powers_)
    return monomials(graph, rows.matrix(), powers, np.ones(len(powers)))


def _simple_imputer(graph: Graph, step: Any, rows: GraphRows) -> str:
    """Write filled columns, of doubles or strings; a missing string is the empty one in ONNX."""
    fill, x = np.asarray(step.statistics_), rows.matrix()
    empty = step.strategy != "constant" and any(map(_is_nan, fill.tolist()))
    if step.add_indicator or empty:
        raise TypeError(
            "SimpleImputer cannot be exported to ONNX with add_indicator=True, or with columns "
            "that have no values: leave these columns out, and fit it with add_indicator=False."
        )
    strings = _has_strings(fill)
    if strings:
        mark = step.missing_values if isinstance(step.missing_values, str) else ""
        missing = graph.add("Equal", x, np.array(mark, object))
    elif _is_nan(step.missing_values):
        missing = graph.add("IsNaN", x)
    else:
        missing = graph.add("Equal", x, float(step.missing_values))
    return graph.add("Where", missing, fill.astype(object if strings else np.float64), x)


def _has_strings(values: Any) -> bool:
    return any(isinstance(each, str) for each in np.ravel(values).tolist())


def _is_nan(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _encoder(graph: Graph, step: Any, rows: GraphRows) -> str:
    """Write an encoder of strings, or of whole numbers; its float32 codes are whole numbers."""
    name, x = type(step).__name__, rows.matrix()
    strings = {_has_strings(own) for own in step.categories_}
    missing = any(_is_nan(each) for own in step.categories_ for each in own.tolist())
    grouped = any(own is not None for own in getattr(step, "infrequent_categories_", None) or ())
    if len(strings) > 1 or missing or grouped:
        raise TypeError(
            f"{name} cannot be exported to ONNX with categories of several kinds, with missing or "
            "with grouped ones: give columns of strings and columns of numbers encoders of their "
            "own, and impute missing values before, and group rare categories before."
        )
    if True not in strings:  # a fraction would be cut off, but is no category
        least = min(float(own.min()) for own in step.categories_)
        is_whole = graph.add("Equal", x, graph.add("Floor", x))
        x = graph.add("Where", is_whole, x, least - 1)
    return graph.add("Cast", _converted(graph, step, x, True in strings), to=DOUBLE)


_STEPS: dict[str, Callable[[Graph, Any, GraphRows], str]] = {
    "ColumnTransformer": _column_transformer,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "Pipeline": _pipeline,
    "PolynomialFeatures": _polynomial_features,
    "SimpleImputer": _simple_imputer,
}


# ------------------------------------------------------------------- by skl2onnx

_TEXT = (
    "no runtime cuts text into words as it does. Export the steps after it, to_onnx(pipeline[1:]), "
    "and give the graph what it returns"
)
_REFUSED = {
    **dict.fromkeys(("CountVectorizer", "HashingVectorizer", "TfidfVectorizer"), _TEXT),
    "FeatureUnion": "use a ColumnTransformer, in which several steps take the same columns",
}
_SCALERS = {"MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler"}
_WHOLE = {"OneHotEncoder", "OrdinalEncoder"}  # whose codes float32 holds exactly


def _converted(graph: Graph, step: Any, x: str, strings: bool = False) -> str:
    """Write a step as skl2onnx does, if it computes in double throughout."""
    onnx, skl2onnx = import_package("onnx"), import_package("skl2onnx")
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    name = type(step).__name__
    if name in _REFUSED:
        raise TypeError(f"{name} cannot be exported to ONNX: {_REFUSED[name]}.")
    if name == "MaxAbsScaler" and getattr(step, "clip", False):
        raise TypeError("MaxAbsScaler(clip=True) cannot be exported to ONNX: use clip=False.")
    kind = StringTensorType if strings else DoubleTensorType
    width = int(getattr(step, "n_features_in_", 0)) or None
    try:
        made = skl2onnx.convert_sklearn(
            step, initial_types=[("X", kind([None, width]))],
            target_opset={"": OPSET, "ai.onnx.ml": 3},
        )  # fmt: skip
    except Exception as reason:  # of many kinds, some of them private
        first = next(iter(str(reason).splitlines()), type(reason).__name__)
        raise TypeError(
            f"The step {name} cannot be exported to ONNX, as skl2onnx does not convert it "
            f"({first.rstrip('.')}): leave it out of the exported pipeline, and "
            "give the graph what it returns."
        ) from reason
    if name not in _WHOLE:
        _refuse_float32(onnx, name, made)
    prefix = f"{graph.prefix}{name}{len(graph.nodes)}_"
    inner = onnx.compose.add_prefix(made, prefix).graph
    graph.name(x, inner.input[0].name)
    for tensor in inner.initializer:
        value = onnx.numpy_helper.to_array(tensor)
        if name in _SCALERS and value.size == 1 and _is_factor(inner, tensor.name):
            graph.name(graph.filled(x, 1, float(value.ravel()[0])), tensor.name)  # see Graph.scale
        else:
            graph.constants[tensor.name] = value
    graph.nodes.extend(inner.node)
    for each in made.opset_import:
        graph.domains[each.domain] = max(each.version, graph.domains.get(each.domain, 0))
    return str(inner.output[0].name)


def _is_factor(inner: Any, name: str) -> bool:
    return any(name in node.input for node in inner.node if node.op_type in ("Mul", "Div"))


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


# ------------------------------------------------------------------- inputs


def _string_columns(step: Any, numbers: list[int]) -> set[int]:
    """Return which of the columns that enter a step must be strings."""
    kind = type(step).__name__
    if kind == "Pipeline":
        first = next((each for _, each in step.steps if not is_skipped(each)), None)
        return _string_columns(first, numbers)
    if kind == "ColumnTransformer":
        found = set()
        for each, own in _fitted_parts(step):
            found |= _string_columns(each, [numbers[k] for k in own])
        return found
    if kind in ("OneHotEncoder", "OrdinalEncoder"):
        values = step.categories_
    elif kind == "SimpleImputer":
        values = [[each] for each in step.statistics_]
    else:
        return set()
    return {k for k, own in zip(numbers, values, strict=True) if _has_strings(own)}


def list_inputs(model: Any, width: int) -> list[GraphInput]:
    """Return the input X, or a column for each feature if some are strings."""
    strings = _string_columns(model, list(range(width)))
    if not strings:
        return [GraphInput("X", False, width)]
    names = getattr(model, "feature_names_in_", [f"x{k}" for k in range(width)])
    return [GraphInput(str(name), k in strings, 1) for k, name in enumerate(names)]
