"""A fitted model or pipeline as a graph, and the same writers for skl2onnx."""

import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.files.onnx.graph import (
    BOOL,
    DOUBLE,
    INT64,
    STRING,
    UNKNOWN,
    Graph,
    GraphInput,
    GraphOutput,
    Outputs,
    as_model,
    import_package,
)
from maxmargin.files.onnx.machines import MAPS, PREDICTORS
from maxmargin.files.onnx.steps import (
    GraphRows,
    is_of_sklearn,
    is_skipped,
    list_inputs,
    transformed,
)
from maxmargin.inspection.model_view import view_model


def to_onnx(model: Any) -> Any:
    """Return a fitted model, or a pipeline that ends in one, as a graph of ONNX.

    The graph consists of standard operators in double precision: in onnxruntime labels are equal
    to those of ``predict``, and scores within 1e-10, relative to the size of their sums.

    Parameters
    ----------
    model : fitted estimator, pipeline or search
        Any machine, perceptron (but the voted one) or feature map of maxmargin whose kernel is not
        a function of your own; a pipeline of them with scalers, imputers, encoders and column
        transformers of scikit-learn, as far as skl2onnx writes these in double precision; of a
        search, its ``best_estimator_``.

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
    graph = Graph("maxmargin.")
    model = _without_searches(model)
    machine = view_model(model).machine
    _refuse_unknown(machine, alone=machine is model)
    check_is_fitted(machine)
    inputs = list_inputs(model, _count_features(model))
    if len(inputs) == 1 and not inputs[0].strings:
        rows = GraphRows(graph, inputs[0].name)
    else:
        rows = GraphRows(graph, columns=tuple(each.name for each in inputs))
    outputs = _write(graph, model, rows)
    _refuse_same_names(inputs, outputs)
    named = {
        name: each._replace(value=graph.name(each.value, name)) for name, each in outputs.items()
    }
    read = {name for node in graph.nodes for name in node.input}
    return as_model(graph, [each for each in inputs if each.name in read], named, _describe(model))


def _refuse_same_names(inputs: list[GraphInput], outputs: Outputs) -> None:
    names = [each.name for each in inputs]
    for name in names:
        if name in outputs or names.count(name) > 1 or name.startswith("maxmargin."):
            raise ValueError(
                f"The column {name!r} cannot be an input of the graph, as another of its values "
                "has this name: rename the column, and fit the pipeline again."
            )


def _without_searches(model: Any) -> Any:
    """Return the model that a search chose; also inside a pipeline."""
    model = view_model(model).model
    if _is_pipeline(model) and view_model(model.steps[-1][1]).search is not None:
        model = copy.copy(model)
        last, search = model.steps[-1]
        model.steps = [*model.steps[:-1], (last, _without_searches(search))]
    return model


def _is_pipeline(model: Any) -> bool:
    return type(model).__name__ == "Pipeline" and is_of_sklearn(model)


def _refuse_unknown(machine: Any, alone: bool) -> None:
    """Raise unless a last step can be written."""
    known = type(machine) in PREDICTORS or type(machine) in MAPS
    if known or (not alone and (hasattr(machine, "transform") or is_skipped(machine))):
        return
    if isinstance(machine, type) or not hasattr(machine, "get_params"):
        raise TypeError(f"{machine!r} is not a fitted estimator: nothing can be exported to ONNX.")
    name = type(machine).__name__
    if type(machine).__module__.startswith("maxmargin."):
        raise TypeError(
            f"{name} cannot be exported to ONNX: save it with mm.save, or fit one of "
            f"{', '.join(sorted(kind.__name__ for kind in PREDICTORS))} instead."
        )
    raise TypeError(
        f"{name} is not an estimator of maxmargin: export it with skl2onnx.to_onnx, after "
        "maxmargin.files.onnx.register_converters() if it contains one."
    )


def _count_features(model: Any) -> int:
    """Return the columns of the rows that a model takes."""
    if _is_pipeline(model):
        first = next(each for _, each in model.steps if not is_skipped(each))
        return _count_features(first)
    if not hasattr(model, "n_features_in_"):
        raise TypeError(
            f"{type(model).__name__} was not fitted to a matrix with a fixed number of columns: it "
            "takes objects or text, for which ONNX has no operators."
            f"{' Export the steps after it: to_onnx(pipeline[1:]).' * is_of_sklearn(model)}"
        )
    return int(model.n_features_in_)


def _write(graph: Graph, model: Any, rows: GraphRows) -> Outputs:
    if _is_pipeline(model):
        for _, step in model.steps[:-1]:
            rows = transformed(graph, step, rows)
        return _write(graph, model.steps[-1][1], rows)
    if type(model) in PREDICTORS:
        return PREDICTORS[type(model)](graph, model, rows.matrix())
    made = transformed(graph, model, rows).matrix()
    return {"transformed": GraphOutput(made, np.float64, getattr(model, "n_components_", UNKNOWN))}


def _describe(model: Any) -> dict[str, str]:
    """Return what a graph says about where it comes from."""
    view = view_model(model)
    steps = [*view.steps, view.machine]
    properties = {"model": ", ".join(type(each).__name__ for each in steps)}
    certificate = getattr(steps[-1], "certificate_", None)
    if certificate is not None:
        properties["certificate gap"] = f"{certificate.relative_gap:.3g}"
    return properties


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
    skl2onnx = import_package("skl2onnx")
    for kind in [*PREDICTORS, *MAPS]:
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
        DOUBLE: data_types.DoubleTensorType,
        INT64: data_types.Int64TensorType,
        STRING: data_types.StringTensorType,
        BOOL: data_types.BooleanTensorType,
    }
    for name, output in _write(Graph(), model, GraphRows(Graph(), "X")).items():
        kind = kinds[output.element_type](output.shape)
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _set_shapes(operator: Any) -> None:
    """Leave shapes as they were declared."""


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the operators of a model to those that skl2onnx has so far."""
    helper = import_package("onnx").helper
    x = operator.inputs[0].full_name
    graph = Graph(scope.get_unique_variable_name("maxmargin") + "_")
    if len(operator.inputs) > 1:
        doubles = [graph.add("Cast", each.full_name, to=DOUBLE) for each in operator.inputs]
        x = graph.add("Concat", *doubles, axis=1)
    else:
        x = graph.add("Cast", x, to=DOUBLE)
    outputs = _write(graph, operator.raw_operator, GraphRows(graph, x))
    if len(operator.outputs) < len(outputs):  # inside ensembles: a label and probabilities
        outputs.pop("decision")
    for output, variable in zip(outputs.values(), operator.outputs, strict=True):
        graph.name(output.value, variable.full_name)
    for (name, value), tensor in zip(graph.constants.items(), graph.tensors(), strict=True):
        flat = value.ravel().tolist() if value.dtype.kind == "O" else tensor
        container.add_initializer(name, tensor.data_type, list(value.shape), flat)
    for node in graph.nodes:
        made = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        container.add_node(
            node.op_type, list(node.input), list(node.output), name=node.name, **made
        )
