"""Export to ONNX: a fitted model as a plain graph of standard operators, in double precision.

The operators of ONNX that are made for support vector machines keep their numbers in float32, which
is too coarse for scores and, far from the origin, for labels. So machines are written out: rows,
kernel values, sums, votes and probabilities are ordinary arithmetic in float64.

    graph      operators and constants under construction, and how they become a model of ONNX
    kernels    kernel values
    machines   a writer for each family of estimators, and for each feature map
    steps      the steps of a pipeline, most of them written by skl2onnx
    export     ``to_onnx``; ``register_converters`` hands the same writers to skl2onnx
"""

from maxmargin.files.onnx.export import register_converters, to_onnx

__all__ = ["register_converters", "to_onnx"]
