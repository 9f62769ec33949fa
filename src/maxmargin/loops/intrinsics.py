"""What numba does not offer, or only at the price of seconds of compilation."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, imputils
from numba.extending import intrinsic

_declared: Any = cgutils.get_or_insert_function
_borrowed: Any = imputils.impl_ret_borrowed
_packed: Any = cgutils.pack_array


def _prefetch(_context: Any, array: Any, position: Any) -> Any:
    """Prefetch the line that holds the element at a flat position of an array, to read it once.

    Rows visited in random order are each waited for; asking some visits ahead takes a quarter off
    the time of a shuffled epoch on sparse rows. An address beyond the array is harmless.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        instruction = _declared(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(instruction, [address, word(0), word(0), word(1)])  # read, once, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _square_view(_context: Any, flat: Any, size: Any) -> Any:
    """View the first size² entries of a flat array as a square matrix, without a check.

    ``reshape`` says the same, and takes a second to compile.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, arguments[0])
        view = context.make_array(signature.return_type)(context, builder)
        size, item = arguments[1], source.itemsize
        view.data, view.meminfo, view.parent = source.data, source.meminfo, source.parent
        view.shape = _packed(builder, [size, size])
        view.strides = _packed(builder, [builder.mul(size, item), item])
        view.nitems, view.itemsize = builder.mul(size, size), item
        return _borrowed(context, builder, signature.return_type, view._getvalue())

    matrix = types.Array(flat.dtype, 2, "C")
    return matrix(flat, types.intp), generate


prefetch: Any = intrinsic(_prefetch)
square_view: Any = intrinsic(_square_view)
