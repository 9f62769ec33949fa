"""Mutants of bytes: bits flipped, parts repeated, moved, cut out, numbers made extreme.

Mutants of native files are also changed as what they are, a tree of values with arrays, and sealed
again: changes of single bytes are mostly noticed by the digest, and so test nothing else. Mutants
of JSON are changed as trees of values, too.
"""

import contextlib
import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.files.sealing import seal, unseal

_TOKENS = (
    *(b"nan", b"inf", b"-inf", b"1e999", b"-0", b"0x1p3", b"1_0", b"1e-400", b"4294967296"),
    *(b"-1", b"0", b"1", b"2147483648", b"9223372036854775808", b"99999999999999999999999"),
    *(b":", b" ", b"\n", b"\r\n", b"\t", b",", b"#", b"\0", b"\xff", b'"', b"{", b"}", b"[", b"]"),
    *(b"null", b"true", b'""', b"qid:", b"0:0", b"1:1 1:1", b"\xef\xbb\xbf", b"\xc3\xa9"),
    *(b"=", b"'", b"(", b")", b"-", b".", b"e", b"%", b"\xd9\xa1", b"\r", b"1e308", b"5e-324"),
)

Mutate = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
Places = list[tuple[Any, Any]]  # where values stand: in what, and at which key


def draw_mutant(seeds: Sequence[bytes], seed: int, number: int, mutate: Mutate) -> bytes:
    """Return one of the mutants of the seeds, after one to four changes."""
    source = random.Random(seed << 40 | number)
    data = source.choice(seeds)
    for _ in range(source.choice((1, 1, 2, 4))):
        data = mutate(data, source, seeds)
    return data


def draw_mutants(
    seeds: Sequence[bytes], count: int, seed: int, mutate: Mutate | None = None
) -> Iterator[bytes]:
    """Yield mutants of the seeds."""
    for number in range(count):
        yield draw_mutant(seeds, seed, number, mutate or mutate_bytes)


# ------------------------------------------------------------------- bytes


def mutate_bytes(data: bytes, source: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return the bytes with one change."""
    at = source.randrange(len(data) + 1)
    end = min(len(data), at + source.choice((1, 1, 2, 4, 16, 64)))
    match source.randrange(8):
        case 0:  # a bit
            return _replaced(data, at, at + 1, bytes([source.randrange(256)]))
        case 1:
            return data[:at] + data[end:]
        case 2:  # twice, or many times
            return data[:end] + data[at:end] * source.choice((1, 1, 1, 40)) + data[end:]
        case 3:
            return _replaced(data, at, end, source.choice(_TOKENS))
        case 4:
            return data[:at] + source.choice(_TOKENS) + data[at:]
        case 5:  # the end of another
            other = source.choice(seeds)
            return data[:at] + other[source.randrange(len(other) + 1) :]
        case 6:  # a word in the place of another
            words = data.split(b" ")
            words[source.randrange(len(words))] = source.choice(words)
            return b" ".join(words)
        case _:  # cut off
            return data[:at]


def _replaced(data: bytes, start: int, end: int, new: bytes) -> bytes:
    return data[:start] + new + data[end:]


# ------------------------------------------------------------------- native files

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, -(2**63), 2**64, 0.5, -0.5, 1e308, -1e308),
    *(5e-324, "", "linear", "rbf", "scale", "auto", "0", "1", "nan", [], {}, {"float": "nan"}),
    *({"float": "inf"}, {"map": {}}, {"dict": []}, {"tuple": []}, {"slice": [None, None, None]}),
    *({"array": "0"}, {"array": "1", "order": "F"}, {"scalar": ["float64", 0.5]}, [[]], [0, 0]),
    *({"text": ["a", "b"], "shape": [2], "width": 1}, {"objects": [None], "shape": [1]}),
    *({"type": "python str"}, {"dtype": "object"}, {"dtype": "float64"}, {"array": "99"}),
    *({"class": "maxmargin.SVC", "state": {}}, {"class": "maxmargin.Linear", "state": {}}),
    *({"enum": ["maxmargin.Status", "OPTIMAL"]}, {"json": "0"}, {"ints": "0"}),
)
_NUMBERS = (0.0, 1.0, -1.0, np.nan, np.inf, 1e308, -1e308, 1e-308, 2.0**31, 2.0**53, 0.5)


def mutate_native(data: bytes, source: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return a native file with one change: mostly of a value, and sealed."""
    if source.random() < 0.1:
        return mutate_bytes(data, source, seeds)
    try:
        found = unseal(data)
    except (ValueError, KeyError, TypeError):
        return mutate_bytes(data, source, seeds)
    document, tensors = found
    if tensors and source.random() < 0.4:
        name = source.choice(sorted(tensors))
        tensors[name] = _mutate_array(tensors[name], source)
    else:
        document = _mutate_tree(document, source, lambda: _others(seeds, source))
    return seal(document, tensors)


def _mutate_array(array: npt.NDArray[Any], source: random.Random) -> npt.NDArray[Any]:
    kind = source.randrange(7)
    if kind < 3 and array.size:
        array = array.copy()
        with np.errstate(all="ignore"):
            value = np.array(source.choice(_NUMBERS))
            if array.dtype.kind != "f":
                value = np.array(source.choice((0, 1, 2, 3, 50, 120, 2**31, 2**63 - 1)))
            changed = value.astype(array.dtype)
        flat = array.reshape(-1)
        flat[source.randrange(flat.size) if kind else slice(None)] = changed
        return array
    if kind == 3:
        return array[: source.randrange(len(array) + 1)] if array.ndim else array
    if kind == 4:
        return np.ascontiguousarray(array.T) if array.ndim > 1 else array[::-1].copy()
    if kind == 5:
        with np.errstate(all="ignore"):
            return array.astype(source.choice(("f8", "f4", "i8", "i4", "u1", "bool", "u4")))
    doubled = np.concatenate([array, array]) if array.ndim else array
    return source.choice((doubled, array.reshape(-1), array[np.newaxis]))


def _mutate_tree(tree: Any, source: random.Random, others: Callable[[], Places]) -> Any:
    """Change one value in a tree of JSON, which is not the tree itself."""
    places = list(_places(tree))
    parent, key = source.choice(places)
    match source.randrange(6):
        case 0:
            del parent[key]
        case 1:
            parent[key] = source.choice(_VALUES)
        case 2:  # what stands elsewhere in this file, or in another
            other, place = source.choice(places if source.random() < 0.7 else others())
            parent[key] = json.loads(json.dumps(other[place]))
        case 3 if isinstance(parent, dict):
            parent[source.choice(("x", "C", "coef_", "_duals", str(key) + "_"))] = parent.pop(key)
        case 4 if isinstance(parent, list):
            parent.insert(0, parent[key])
        case _:
            parent[key] = _near(parent[key], source)
    return tree


def _near(value: Any, source: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + source.choice((-1, 1, 2, 1000))
    if isinstance(value, float):
        return value * source.choice((-1.0, 0.0, 2.0, 1e300, 1e-300))
    if isinstance(value, str):
        return source.choice((value + "x", value[:-1], value.upper()))
    return source.choice(([value], {"tuple": value}, {"map": value}))


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where each value stands: in what, and at which key."""
    keys: Any = tree if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


@cache
def _unsealed(data: bytes) -> Places:
    return list(_places(unseal(data).document))


def _others(seeds: Sequence[bytes], source: random.Random) -> Places:
    return _unsealed(source.choice(seeds))


# ------------------------------------------------------------------- JSON


def mutate_json(data: bytes, source: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return JSON with one change: of a value, or of bytes."""
    tree = None
    if source.random() < 0.7:
        with contextlib.suppress(ValueError, RecursionError):
            tree = json.loads(data)
    if not isinstance(tree, dict | list) or not tree:
        return mutate_bytes(data, source, seeds)
    return json.dumps(_mutate_tree(tree, source, lambda: _parsed(source.choice(seeds)))).encode()


@cache
def _parsed(data: bytes) -> Places:
    return list(_places(json.loads(data)))
