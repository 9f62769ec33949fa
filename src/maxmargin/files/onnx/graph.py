"""Operators and constants under construction, and how they become a model of ONNX."""

from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

OPSET = 19  # the first in which strings are compared; onnxruntime reads it since 1.15
IR_VERSION = 9
DOUBLE, INT64, STRING, BOOL = 11, 7, 8, 9  # of onnx.TensorProto
UNKNOWN = -1  # number of columns
_LARGEST = 2**31 - 2**20  # bytes that a message of protobuf, and so a graph, can have


class Graph:
    """Operators and constants under construction, in an order in which they can be computed.

    Whatever is passed as an input is the name of a value, or a constant: an array or a number.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []  # of onnx.NodeProto
        self.constants: dict[str, npt.NDArray[Any]] = {}
        self.domains: dict[str, int] = {"": OPSET}
        self._onnx = import_package("onnx")

    def add(self, op: str, *inputs: Any, **attributes: Any) -> str:
        """Add an operator and return the name of its result."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        return self._append(op, names, f"{self.prefix}{op}{len(self.nodes)}", attributes)

    def constant(self, value: Any) -> str:
        """Add a constant and return its name."""
        name = f"{self.prefix}constant{len(self.constants)}"
        self.constants[name] = np.asarray(value, order="C")
        return name

    def name(self, value: str, output: str) -> str:
        """Give a value another name."""
        return self._append("Identity", [value], output, {})

    def _append(self, op: str, inputs: list[str], output: str, attributes: dict[str, Any]) -> str:
        make = self._onnx.helper.make_node
        self.nodes.append(make(op, inputs, [output], name=output, **attributes))
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

    def tensors(self) -> list[Any]:
        """Return the constants as messages."""
        make = self._onnx.numpy_helper.from_array
        return [make(value, name) for name, value in self.constants.items()]

    def body(self, inputs: dict[str, int], output: str) -> Any:
        """Return the graph as that inside a loop; its inputs are doubles with so many axes."""
        helper = self._onnx.helper
        infos = [
            helper.make_tensor_value_info(name, DOUBLE, [None] * axes)
            for name, axes in {**inputs, output: 2}.items()
        ]
        return helper.make_graph(self.nodes, "loop", infos[:-1], infos[-1:], self.tensors())


class GraphOutput(NamedTuple):
    """What a graph returns under a name: a value, its type, and its columns (None: a vector)."""

    value: str
    dtype: Any  # of numpy; str: strings
    columns: int | None = None

    @property
    def element_type(self) -> int:
        """The type of the value, as ONNX numbers types."""
        return STRING if self.dtype is str else _TYPES[np.dtype(self.dtype)]

    @property
    def shape(self) -> list[Any]:
        """The shape, None for what is not known before."""
        if self.columns is None:
            return [None]
        return [None, None if self.columns == UNKNOWN else self.columns]


_TYPES = {np.dtype(np.float64): DOUBLE, np.dtype(np.int64): INT64, np.dtype(bool): BOOL}
Outputs = dict[str, GraphOutput]


class GraphInput(NamedTuple):
    """What a graph takes under a name: numbers or strings, in so many columns."""

    name: str
    strings: bool
    columns: int


# ------------------------------------------------------------------- messages of protobuf


def import_package(name: str) -> Any:
    """Return a package of the extra ``onnx``."""
    try:
        return import_module(name)
    except ImportError as missing:
        raise ImportError(
            f"Export to ONNX needs the package {name}: pip install onnx skl2onnx"
        ) from missing


def as_model(
    graph: Graph, inputs: list[GraphInput], outputs: Outputs, properties: dict[str, str]
) -> Any:
    """Return a graph as a model of ONNX, which says where it comes from."""
    onnx = import_package("onnx")
    helper = onnx.helper
    size = sum(value.nbytes for value in graph.constants.values())
    if size > _LARGEST:
        raise ValueError(
            f"The graph has constants of {size / 1e9:.3g} GB, and a file of ONNX can have 2 GB: "
            "fit a model with fewer support vectors, or mm.Nystroem and mm.LinearSVC."
        )
    made = helper.make_graph(
        graph.nodes,
        "maxmargin",
        [
            helper.make_tensor_value_info(
                each.name, STRING if each.strings else DOUBLE, ["rows", each.columns]
            )
            for each in inputs
        ],
        [
            helper.make_tensor_value_info(name, each.element_type, ["rows", *each.shape[1:]])
            for name, each in outputs.items()
        ],
        graph.tensors(),
    )
    proto = helper.make_model(
        made,
        producer_name="maxmargin",
        producer_version=version("maxmargin"),
        doc_string="; ".join(f"{key}: {value}" for key, value in properties.items()),
        opset_imports=[helper.make_opsetid(*each) for each in sorted(graph.domains.items())],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(proto, properties)
    onnx.checker.check_model(proto, full_check=True)
    return proto
