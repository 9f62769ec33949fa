"""What numba does not offer, or only at the price of seconds of compilation."""

import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, imputils
from numba.extending import intrinsic

_declared: Any = cgutils.get_or_insert_function
_borrowed: Any = imputils.impl_ret_borrowed
_packed: Any = cgutils.pack_array
_unpacked: Any = cgutils.unpack_tuple
_repeated: Any = cgutils.for_range
_allocated: Any = cgutils.alloca_once
_Tuple: Any = types.UniTuple


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


ROWS = 6  # that ``strip_products`` computes at once: with one strip, as many sums as registers
STRIP_BYTES = 64  # of the numbers of a column, side by side in a strip of rows


def _strip_products(
    _context: Any, x: Any, first: Any, strips: Any, begin: Any, end: Any, factor: Any, own: Any,
    others: Any, out: Any,
) -> Any:  # fmt: skip
    """Do out[r, c] = factor·x[first + r]·z[c] − (own[first + r] + others[c]), six rows at a time.

    The rows z come in strips of some rows each, column after column, and c counts from the strip
    ``begin``. All sums stay in registers, which is what no loop of numba's does, and each goes from
    the first column to the last: its bits depend on its two rows alone. What would be beyond the
    last row is that row once more.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def at(pointer: Any, index: Any) -> Any:
            return builder.gep(pointer, [index])

        def load(pointer: Any) -> Any:
            loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
            loaded.align = size
            return loaded

        def spread(value: Any) -> Any:
            first_lane = builder.insert_element(nothing, value, word(0))
            return builder.shuffle_vector(first_lane, nothing, ir.Constant(places, [0] * lanes))

        number, word = context.get_data_type(signature.args[0].dtype), ir.IntType(32)
        size = context.get_abi_sizeof(number)
        lanes = STRIP_BYTES // size
        vector, places = ir.VectorType(number, lanes), ir.VectorType(word, lanes)
        nothing, zero = ir.Constant(vector, ir.Undefined), ir.Constant(vector, [0.0] * lanes)
        add = _declared(
            builder.module,
            ir.FunctionType(vector, [vector] * 3),
            f"llvm.fmuladd.v{lanes}f{8 * size}",
        )

        rows, packed, own, others, out = (
            context.make_array(signature.args[k])(context, builder, arguments[k])
            for k in (0, 2, 6, 7, 8)
        )
        first, begin, end, whole = arguments[1], arguments[3], arguments[4], arguments[1].type
        count, columns = _unpacked(builder, rows.shape)
        stride, width = builder.mul(columns, whole(lanes)), _unpacked(builder, out.shape)[1]
        factor, last = spread(arguments[5]), builder.sub(count, whole(1))
        sums, starts, mine = [], [], []
        for r in range(ROWS):
            row = builder.add(first, whole(r))
            row = builder.select(builder.icmp_signed("<", row, last), row, last)
            sums.append(_allocated(builder, vector))
            starts.append(at(rows.data, builder.mul(row, columns)))
            mine.append(spread(builder.load(at(own.data, row))))
        with _repeated(builder, builder.sub(end, begin), intp=whole) as each:
            strip = builder.add(begin, each.index)
            panel = at(packed.data, builder.mul(strip, stride))
            for r in range(ROWS):
                builder.store(zero, sums[r])
            with _repeated(builder, columns, intp=whole) as column:
                z = load(at(panel, builder.mul(column.index, whole(lanes))))
                for r in range(ROWS):
                    value = spread(builder.load(at(starts[r], column.index)))
                    builder.store(builder.call(add, [value, z, builder.load(sums[r])]), sums[r])
            theirs = load(at(others.data, builder.mul(strip, whole(lanes))))
            place = builder.mul(each.index, whole(lanes))
            for r in range(ROWS):
                less = builder.fneg(builder.fadd(mine[r], theirs))
                found = builder.call(add, [builder.load(sums[r]), factor, less])
                to = at(out.data, builder.add(builder.mul(width, whole(r)), place))
                builder.store(found, builder.bitcast(to, vector.as_pointer())).align = size
        return context.get_dummy_value()

    intp = types.intp
    return types.void(x, intp, strips, intp, intp, factor, own, others, out), generate


prefetch: Any = intrinsic(_prefetch)
strip_products: Any = intrinsic(_strip_products)
square_view: Any = intrinsic(_square_view)


# ------------------------------------------------------------------- words of 64 bits


def _load_word(_context: Any, text: Any, position: Any) -> Any:
    """Return eight bytes of a text as one number, the first byte lowest, without a check."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = ir.IntType(64)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), word.as_pointer())
        loaded = builder.load(place)
        loaded.align = 1
        return loaded if sys.byteorder == "little" else builder.bswap(loaded)

    return types.uint64(text, types.uint64), generate


def _wide_product(_context: Any, a: Any, b: Any) -> Any:
    """Return the upper and the lower half of the product of two numbers of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(factor, wide) for factor in arguments))
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(
            builder, signature.return_type, (upper, builder.trunc(product, word))
        )

    return _Tuple(types.uint64, 2)(types.uint64, types.uint64), generate


def _leading_zeros(_context: Any, word: Any) -> Any:
    """Return the number of bits above the highest 1 of a number that is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


load_word: Any = intrinsic(_load_word)
wide_product: Any = intrinsic(_wide_product)
leading_zeros: Any = intrinsic(_leading_zeros)
