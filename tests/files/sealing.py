"""Native model files taken apart, changed and put together again, with a digest that fits.

The format is written out here once more, from its description: what is made with this module is
refused for what it says, and not because somebody forgot to seal it.
"""

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_CODES = {np.dtype(kind).name: code for code, kind in _TYPES.items()}


class Unsealed(NamedTuple):
    """The JSON document of a native file, and its tensors by name; both may be changed."""

    document: dict[str, Any]
    tensors: dict[str, npt.NDArray[Any]]

    @property
    def state(self) -> dict[str, Any]:
        """Return the state of the model itself."""
        state: dict[str, Any] = self.document["model"]["state"]
        return state

    def array(self, node: dict[str, Any]) -> npt.NDArray[Any]:
        """Return the tensor that a node names."""
        return self.tensors[node["array"]]


class _Parts(NamedTuple):
    header: dict[str, Any]
    payload: bytes


def _take_apart(data: bytes) -> _Parts:
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= len(data) - 8:
        raise ValueError("the header is longer than the file")
    header = json.loads(data[8 : 8 + length])
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__"), dict):
        raise ValueError("there are no metadata")
    return _Parts(header, data[8 + length :])


def _tensor(entry: dict[str, Any], payload: bytes) -> npt.NDArray[Any]:
    begin, end = entry["data_offsets"]
    flat = np.frombuffer(payload[begin:end], dtype=_TYPES[entry["dtype"]])
    return flat.reshape(entry["shape"]).copy()


def _digest(document: str, tensors: dict[str, npt.NDArray[Any]]) -> str:
    found = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        array = tensors[name]
        found.update(f"\n{name} {_CODES[array.dtype.name]} {list(array.shape)}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def unseal(data: bytes) -> Unsealed:
    """Take a native file apart."""
    header, payload = _take_apart(data)
    text = header.pop("__metadata__")["maxmargin"]
    return Unsealed(
        json.loads(text), {name: _tensor(entry, payload) for name, entry in header.items()}
    )


def seal(document: Any, tensors: dict[str, npt.NDArray[Any]]) -> bytes:
    """Put a native file together; the document may also be a text, which need not be JSON."""
    if not isinstance(document, str):
        document = json.dumps(document, separators=(",", ":"))
    metadata = {"maxmargin": document, "sha256": _digest(document, tensors)}
    return write_header(metadata, tensors) + b"".join(a.tobytes() for a in _ordered(tensors))


def _ordered(tensors: dict[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    return sorted(tensors.values(), key=lambda array: -array.itemsize)


def write_header(metadata: dict[str, str], tensors: dict[str, npt.NDArray[Any]]) -> bytes:
    """Return the first bytes of a file, up to the tensors."""
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in sorted(tensors.items(), key=lambda item: -item[1].itemsize):
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": _CODES[array.dtype.name], "shape": list(array.shape),
            "data_offsets": [begin, end],
        }  # fmt: skip
    return frame(json.dumps(header, separators=(",", ":")).encode())


def frame(header: bytes) -> bytes:
    """Return a header with its length before it, filled up with spaces."""
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def reseal(data: bytes) -> bytes | None:
    """Return the bytes with the digest of their content, or None if they have no such content."""
    try:
        header, payload = _take_apart(data)
        metadata = header["__metadata__"]
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        tensors = {name: _tensor(entry, payload) for name, entry in entries.items()}
        metadata["sha256"] = _digest(metadata["maxmargin"], tensors)
        return frame(json.dumps(header).encode()) + payload
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None
