"""Values as JSON and tensors: what a model's state is made of, and nothing that can run.

A number, a text, a truth value and nothing (null) are themselves, and a list is a list. Everything
else is an object of JSON with a key that says what it is, such as {"tuple": [...]}, {"array": "3"}
for tensor 3, or {"class": "maxmargin.SVC", "state": {...}}; docs/model-file.md lists them all.
"""

import json
import math
from collections.abc import Callable
from enum import Enum
from functools import singledispatchmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.files.known_classes import class_of, make, name_of, state_of
from maxmargin.files.shapes import require

LONG = 1000  # items, from which on a list is a tensor
_MOST_NESTED = 100  # kernels within kernels, steps within steps
_TEXT_IN_JSON = 10_000  # characters of an array of texts; longer ones are tensors
_MOST_DIGITS = 2**64
_ITEMS = 10_000  # that JSON may have without asking how many bytes each of them has
_BYTES_PER_ITEM = 8  # in JSON; each takes some 64 in memory
_SPARSE: dict[str, Any] = {
    kind.__name__: kind for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)
}
_SCALARS = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64",
            "uint8", "uint16", "uint32", "uint64")  # fmt: skip
_TYPES: dict[str, type] = {
    **{name: np.dtype(name).type for name in _SCALARS},
    **{f"python {kind.__name__}": kind for kind in (bool, int, float, str, object)},
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


class UnstorableError(TypeError):
    """A value that no file can hold."""

    def __init__(self, value: Any, place: str, way_out: str = "") -> None:
        super().__init__(f"{place or 'The model'} is {_described(value)}{way_out}")
        self.value, self.place = value, place


# ------------------------------------------------------------------- values to nodes


class Encoder:
    """Turns values into nodes, and keeps their tensors by name."""

    def __init__(self) -> None:
        self.tensors: dict[str, npt.NDArray[Any]] = {}
        self._names: dict[int, str] = {}  # of arrays by identity: what is shared is stored once
        self._kept: list[Any] = []  # so that no identity is used twice

    def node(self, value: Any, place: str) -> Any:
        """Return the node of a value that is found at a place."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int and abs(value) < _MOST_DIGITS:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        return self._special(value, place)

    @singledispatchmethod
    def _special(self, value: Any, place: str) -> Any:
        return self._object(value, place)

    def _object(self, value: Any, place: str) -> Any:
        name = name_of(type(value))
        if name is None:
            raise UnstorableError(value, place)
        start = f"{place}." if place else ""
        state = {key: self.node(each, f"{start}{key}") for key, each in state_of(value).items()}
        return {"class": name, "state": state}

    @_special.register(list)
    def _list(self, value: list[Any], place: str) -> Any:
        if len(value) >= LONG and all(type(each) is int for each in value):
            return {"ints": self.put(np.array(value, dtype=np.int64))}
        return self._long([self.node(each, place) for each in value])

    @_special.register(tuple)
    def _tuple(self, value: tuple[Any, ...], place: str) -> Any:
        if type(value) is not tuple:  # one of our records, with names
            return self._object(value, place)
        if value and isinstance(value[0], str):  # a step, with its name
            place = f"{place}[{value[0]!r}]"
        return {"tuple": self._list(list(value), place)}

    @_special.register(dict)
    def _dict(self, value: dict[Any, Any], place: str) -> Any:
        if type(value) is not dict:
            raise UnstorableError(value, place, ": make it a plain dict")
        if all(type(key) is str for key in value):
            return self._long({"map": {k: self.node(v, place) for k, v in value.items()}})
        pairs = [[self.node(k, place), self.node(v, place)] for k, v in value.items()]
        return self._long({"dict": pairs})

    @_special.register(Enum)
    def _enum(self, value: Enum, place: str) -> Any:
        if (name := name_of(type(value))) is None:
            raise UnstorableError(value, place)
        return {"enum": [name, value.name]}

    @_special.register(slice)
    def _slice(self, value: slice, place: str) -> Any:
        return {"slice": [self.node(v, place) for v in (value.start, value.stop, value.step)]}

    @_special.register(np.dtype)
    def _dtype(self, value: np.dtype[Any], place: str) -> Any:
        if value.kind == "U":
            return {"dtype": f"U{value.itemsize // 4}"}
        return {"dtype": "object" if value.kind == "O" else value.name}

    @_special.register(type)
    def _type(self, value: type, place: str) -> Any:
        if value not in _NAMES:
            raise UnstorableError(value, place)
        return {"type": _NAMES[value]}

    @_special.register(np.generic)
    def _scalar(self, value: np.generic, place: str) -> Any:
        name = "str" if isinstance(value, np.str_) else value.dtype.name
        if name not in (*_SCALARS, "str"):
            raise UnstorableError(value, place)
        return {"scalar": [name, self.node(value.item(), place)]}

    @_special.register(np.ndarray)
    def _array(self, value: npt.NDArray[Any], place: str) -> Any:
        if type(value) not in (np.ndarray, np.memmap):
            raise UnstorableError(value, place, ": make it a plain array")
        if value.dtype.kind == "U":
            return self._texts(value)
        if value.dtype.kind == "O":
            items = [self.node(each, place) for each in value.ravel().tolist()]
            return self._long({"objects": items, "shape": list(value.shape)})
        if value.dtype.name not in _SCALARS:
            raise UnstorableError(value, place, f" of {value.dtype}: use numbers or str")
        if value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous:
            return {"array": self.put(value, transposed=True), "order": "F"}
        return {"array": self.put(value)}

    def _texts(self, value: npt.NDArray[np.str_]) -> Any:
        width = value.dtype.itemsize // 4
        items = value.ravel().tolist() if value.size <= _TEXT_IN_JSON else []
        if value.size * max(width, 1) <= min(_TEXT_IN_JSON, _most_characters(items)):
            return {"text": items, "shape": list(value.shape), "width": width}
        flat = np.ascontiguousarray(value, dtype=f"<U{width}")
        codes = flat.view(np.uint32).reshape(*value.shape, width)
        return {"text": self.put(codes), "width": width}

    @_special.register(sp.sparray)
    @_special.register(sp.spmatrix)
    def _sparse(self, value: Any, place: str) -> Any:
        kind = type(value).__name__
        if _SPARSE.get(kind) is not type(value):
            raise UnstorableError(value, place, ": use csr_array")
        parts = [self._array(each, place) for each in (value.data, value.indices, value.indptr)]
        return {kind: parts, "shape": [int(n) for n in value.shape]}

    def put(self, array: npt.NDArray[Any], transposed: bool = False) -> str:
        """Keep an array as a tensor, once, and return its name."""
        if id(array) not in self._names:
            self._kept.append(array)
            self._names[id(array)] = name = str(len(self.tensors))
            self.tensors[name] = array.T if transposed else array
        return self._names[id(array)]

    def _long(self, node: Any) -> Any:
        """Return a node, as a tensor if it has many items: the header is not to be long."""
        items = node if isinstance(node, list) else next(iter(node.values()))
        if len(items) < LONG:
            return node
        return {"json": self.put(np.frombuffer(dump(node).encode(), dtype=np.uint8))}


def _described(value: Any) -> str:
    if callable(value):
        return f"the {'class' if isinstance(value, type) else 'function'} {_called(value)}"
    return f"of type {type(value).__module__}.{type(value).__qualname__}"


def _called(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))


# ------------------------------------------------------------------- nodes to values


class Decoder:
    """Turns nodes into values. Whatever a node says wrongly is a ValueError."""

    def __init__(self, tensors: dict[str, npt.NDArray[Any]]) -> None:
        self.tensors = tensors
        self.used: set[str] = set()
        self._depth = 0

    def value(self, node: Any) -> Any:
        """Return the value of a node."""
        if not isinstance(node, list | dict):
            if isinstance(node, int) and abs(node) >= _MOST_DIGITS:
                raise ValueError("an integer has more than 64 bits")
            return node
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise ValueError(f"it is nested more than {_MOST_NESTED} deep")
        if isinstance(node, list):
            found: Any = [self.value(each) for each in node]
        else:
            kind = next(iter(node), "")
            read = _READERS.get(kind)
            if read is None:
                raise ValueError(f"{kind[:40]!r} is no kind of value")
            found = read(self, **node)
        self._depth -= 1
        return found

    def tensor(self, name: Any) -> npt.NDArray[Any]:
        """Return a tensor by its name."""
        if not isinstance(name, str) or name not in self.tensors:
            raise ValueError(f"there is no tensor {str(name)[:40]!r}")
        self.used.add(name)
        return self.tensors[name]

    def once(self, name: Any) -> npt.NDArray[Any]:
        """Return a tensor that becomes objects, so that no few bytes become many of them."""
        if name in self.used:
            raise ValueError(f"tensor {name!r:.40} is used more than once")
        return self.tensor(name)


def _read_float(decoder: Decoder, float: str) -> Any:
    if float not in ("nan", "inf", "-inf"):
        raise ValueError(f"{float!r} is no float")
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[float]


def _read_tuple(decoder: Decoder, tuple: Any) -> Any:
    items = decoder.value(tuple)
    require(isinstance(items, list), "a tuple needs a list")
    return (*items,)


def _read_map(decoder: Decoder, map: Any) -> Any:
    require(isinstance(map, dict), "a map needs an object")
    return {key: decoder.value(each) for key, each in map.items()}


def _read_dict(decoder: Decoder, dict: Any) -> Any:
    pairs = decoder.value(dict)
    require(all(isinstance(pair, list) and len(pair) == 2 for pair in pairs), "a dict needs pairs")
    found = {}
    for key, value in pairs:
        require(isinstance(key, str | int | float | np.generic), "a key is a text or a number")
        found[key] = value
    require(len(found) == len(pairs), "a key is there twice")
    return found


def _read_slice(decoder: Decoder, slice: Any) -> Any:
    parts = decoder.value(slice)
    require(len(parts) == 3, "a slice has three parts")
    return _SLICE(*parts)


_SLICE = slice


def _read_scalar(decoder: Decoder, scalar: Any) -> Any:
    name, value = decoder.value(scalar)
    if name == "str":
        require(isinstance(value, str), "a text is needed")
        return np.str_(value)
    require(name in _SCALARS, f"{name!r} is no kind of number")
    require(isinstance(value, bool | int | float), "a number is needed")
    return np.dtype(name).type(value)


def _read_dtype(decoder: Decoder, dtype: Any) -> Any:
    text = isinstance(dtype, str) and dtype[:1] == "U" and dtype[1:].isdecimal()
    require(text or dtype in (*_SCALARS, "object"), f"{dtype!r} is no dtype")
    require(len(dtype) < 10, f"{dtype!r} is no dtype")
    return np.dtype(dtype)


def _read_type(decoder: Decoder, type: Any) -> Any:
    require(isinstance(type, str) and type in _TYPES, f"{type!r} is no type")
    return _TYPES[type]


def _read_enum(decoder: Decoder, enum: Any) -> Any:
    require(isinstance(enum, list) and len(enum) == 2, "an enum has a class and a name")
    kind = class_of(enum[0])
    members = kind.__members__ if issubclass(kind, Enum) else {}
    require(isinstance(enum[1], str) and enum[1] in members, f"{enum[1]!r} is no {kind.__name__}")
    return members[enum[1]]


def _read_array(decoder: Decoder, array: Any, order: str = "C") -> Any:
    require(order in ("C", "F"), f"{order!r} is no order")
    found = decoder.tensor(array)
    return found.T if order == "F" else found


def _read_text(decoder: Decoder, text: Any, width: Any, shape: Any = None) -> Any:
    require(type(width) is int and width >= 0, "a width is an integer")
    if shape is None:
        codes = decoder.tensor(text)
        require(codes.dtype == np.uint32 and codes.shape[-1:] == (width,), "code points do not fit")
        require(bool((codes < 0x110000).all()), "a code point is above 10FFFF")
        return np.ascontiguousarray(codes).view(f"<U{width}")[..., 0]
    texts = isinstance(text, list) and all(isinstance(each, str) for each in text)
    require(texts, "texts do not fit")
    room = min(_TEXT_IN_JSON, _most_characters(text))
    require(len(text) * max(width, 1) <= room, "an array has much more room than its texts need")
    require(max(map(len, text), default=0) <= width, "a text is longer than it says")
    return np.array(text, dtype=f"<U{max(width, 1)}").reshape(_checked_shape(shape, len(text)))


def _most_characters(texts: list[str]) -> int:
    """Return how many characters an array may have room for whose texts are in JSON."""
    return 4 * (sum(map(len, texts)) + 4 * len(texts))


def _read_objects(decoder: Decoder, objects: Any, shape: Any) -> Any:
    items = decoder.value(objects)
    require(isinstance(items, list), "objects are a list")
    found = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        found[i] = item
    return found.reshape(_checked_shape(shape, len(items)))


def _read_sparse(kind: str) -> Callable[..., Any]:
    def read(decoder: Decoder, *, shape: Any, **parts: Any) -> Any:
        data, indices, indptr = (decoder.value(part) for part in parts.pop(kind))
        require(not parts, f"{[*parts]} are unknown")
        whole = (
            isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr)
        )
        require(all(whole), "a sparse matrix needs three arrays")
        for part in (indices, indptr):
            require(part.dtype in (np.int32, np.int64), "indices are int32 or int64")
        require(_is_shape(shape) and len(shape) == 2, "a matrix has two dimensions")
        require(math.prod(shape) < 2**62, "a matrix has more entries than can be counted")
        found = _SPARSE[kind]((data, indices, indptr), shape=tuple(shape))
        found.indices, found.indptr = indices, indptr  # scipy may have narrowed them
        found.check_format(full_check=True)
        return found

    return read


def _read_ints(decoder: Decoder, ints: Any) -> Any:
    found = decoder.once(ints)
    require(found.dtype == np.int64 and found.ndim == 1, "integers are int64")
    return found.tolist()


def _read_json(decoder: Decoder, json: Any) -> Any:
    found = decoder.once(json)
    require(found.dtype == np.uint8 and found.ndim == 1, "JSON is bytes")
    return decoder.value(parse(found.tobytes().decode()))


def _read_class(decoder: Decoder, state: Any, **named: Any) -> Any:
    kind = class_of(named.pop("class"))
    require(not named and isinstance(state, dict), "an object has a class and a state")
    return make(kind, {key: decoder.value(each) for key, each in state.items()})


_READERS: dict[str, Callable[..., Any]] = {
    "float": _read_float,
    "tuple": _read_tuple,
    "map": _read_map,
    "dict": _read_dict,
    "slice": _read_slice,
    "scalar": _read_scalar,
    "dtype": _read_dtype,
    "type": _read_type,
    "enum": _read_enum,
    "array": _read_array,
    "text": _read_text,
    "objects": _read_objects,
    "ints": _read_ints,
    "json": _read_json,
    "class": _read_class,
    **{kind: _read_sparse(kind) for kind in _SPARSE},
}


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**62 for n in shape)


def _checked_shape(shape: Any, size: int) -> tuple[int, ...]:
    require(_is_shape(shape) and math.prod(shape) == size, "a shape does not fit")
    return tuple(shape)


# ------------------------------------------------------------------- strict JSON


def dump(document: Any) -> str:
    """Return JSON in ASCII, without spaces."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def parse(text: str) -> Any:
    """Return what JSON says that has no NaN, no duplicate keys, and is neither deep nor bloated."""
    items = sum(map(text.count, "[{,"))
    if items > _ITEMS and items * _BYTES_PER_ITEM > len(text):
        raise ValueError("its JSON has far more items than a model would write")
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_without_duplicates,
        )
    except RecursionError:
        raise ValueError("its JSON is nested too deep") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is no number that float64 has")
    return number


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found
