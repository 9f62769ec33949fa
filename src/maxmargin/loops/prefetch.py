"""One instruction that numba does not offer: ask for a cache line before it is needed.

Rows visited in random order are each waited for; asking some visits ahead takes a quarter off
the time of a shuffled epoch on sparse rows. An address beyond the array is harmless.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_declared: Any = cgutils.get_or_insert_function


def _typed(_context: Any, array: Any, position: Any) -> Any:
    """Prefetch the line that holds the element at a flat position of an array, to read it once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        instruction = _declared(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(instruction, [address, word(0), word(0), word(1)])  # read, once, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Any = intrinsic(_typed)
