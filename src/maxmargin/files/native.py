"""The native model file: arrays as safetensors, everything else as JSON in its header.

docs/model-file.md has the format byte for byte. Loading runs no code of the file: it knows a fixed
list of classes, and refuses whatever these could not compute with safely.
"""

import hashlib
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import ModelFileError
from maxmargin.files.checking import check_model
from maxmargin.files.known_classes import known_steps, name_of
from maxmargin.files.nodes import Decoder, Encoder, UnstorableError, dump, parse
from maxmargin.runtime.atomic_write import write_atomically

FORMAT = 1
_KEY, _DIGEST = "maxmargin", "sha256"
_LIBRARIES = ("maxmargin", "numpy", "scipy", "scikit-learn")
_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
    "BOOL": "bool",
}  # fmt: skip
_CODES = {name: code for code, name in _TYPES.items()}
_PIECE = 1 << 24  # bytes written at a time
_LONGEST = 600  # characters of a message of others
_NO_FUNCTIONS = (
    "it holds no functions of yours; use a kernel such as mm.kernels.RBF, or keep the model with "
    "pickle"
)
_WAYS_OUT = {
    "callback": "set_params(callback=None) removes it",
    "client": "set_params(client=None) removes it",
    "kernel": _NO_FUNCTIONS,
    "kernel_": _NO_FUNCTIONS,
    "model": "only the models of mm.structured can be stored; keep yours with pickle",
    "model_": "only the models of mm.structured can be stored; keep yours with pickle",
    "random_state": "set_params(random_state=0), or another int, stands for a generator",
    "memory": "set_params(memory=None) removes it",
    "_skl_callbacks": "set_callbacks() removes them",
}


class Described(NamedTuple):
    """A model, how its data files are laid out, and what the file says about itself.

    Attributes
    ----------
    model : estimator
        The model.
    layout : Layout or None
        How data files are read for it, if the model file says so.
    header : dict
        What the file says about itself.
    """

    model: Any
    layout: Any
    header: dict[str, Any]


# ------------------------------------------------------------------- save


def save(model: Any, path: str | os.PathLike[str], *, layout: Any = None) -> None:
    """Write a fitted model to a file that is safe to load.

    Parameters
    ----------
    model : estimator
        A fitted estimator of maxmargin, or a pipeline of scikit-learn's common steps that ends in
        one. Of a fitted search its ``best_estimator_`` is written.
    path : str or path
        Where to; ``.mmg`` is the usual ending. The file is written completely or not at all.
    layout : maxmargin.data.Layout, optional
        How the columns of a data file become rows of the model, for ``maxmargin predict``.

    Examples
    --------
    >>> import tempfile, numpy as np, maxmargin as mm
    >>> X, y = mm.datasets.separable(40, margin=0.2, random_state=0)
    >>> path = tempfile.mkdtemp() + "/model.mmg"
    >>> mm.save(mm.SVC().fit(X, y), path)
    >>> mm.load(path).certificate_.holds(1e-4)
    True
    """
    model = _best(model)
    encoder = Encoder()
    try:
        node = encoder.node(model, "")
        check_model(model)
    except UnstorableError as refused:
        raise TypeError(_advice(model, refused)) from None
    except ValueError as altered:
        name = type(model).__name__
        raise ValueError(f"This {name} cannot be saved as it is: {altered}") from None
    document = dump(
        {
            "format": FORMAT,
            "versions": _versions(),
            "layout": None if layout is None else layout.to_json(),
            "model": node,
        }
    )
    tensors = {name: _plain(array) for name, array in encoder.tensors.items()}
    metadata = {_KEY: document, _DIGEST: _digest(document, tensors)}
    write_atomically(path, lambda draft: _write(draft, metadata, tensors))


def _best(model: Any) -> Any:
    """Return the fitted model itself; of a search the best one."""
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"save takes a fitted estimator, got {type(model).__name__}.")
    if hasattr(model, "best_params_") or hasattr(model, "cv_results_"):
        if not hasattr(model, "best_estimator_"):
            name = type(model).__name__
            raise ValueError(f"This {name} has no best_estimator_ to save: use refit=True.")
        return model.best_estimator_
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(
            f"This {type(model).__name__} is not fitted yet: a model file holds fitted models."
        ) from None
    return model


def _advice(model: Any, refused: UnstorableError) -> str:
    """Return what cannot be stored, where it is, and the way out."""
    last = refused.place.rpartition(".")[2]
    if isinstance(refused.value, BaseEstimator) and last not in _WAYS_OUT:
        kind = type(refused.value)
        return (
            f"{refused}, which a model file cannot hold. It holds estimators of maxmargin and "
            f"these of scikit-learn: {known_steps()}. Leave {kind.__name__} out, or keep the model "
            "with pickle or skops."
        )
    first = refused.place.partition(".")[0]
    general = _WAYS_OUT.get(first, "keep the model with pickle, or leave it out")
    way_out = _WAYS_OUT.get(last, general)
    return f"{refused}, which a model file cannot hold: {way_out}."


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array as the bytes of a file have it: row by row, and little-endian."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _digest(document: str, tensors: dict[str, npt.NDArray[Any]]) -> str:
    found = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        array = tensors[name]
        found.update(f"\n{name} {_CODES[array.dtype.name]} {list(array.shape)}\n".encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _write(path: Path, metadata: dict[str, str], tensors: dict[str, npt.NDArray[Any]]) -> None:
    """Write the format of safetensors piece by piece: its own writer holds all bytes at once."""
    header: dict[str, Any] = {"__metadata__": metadata}
    # Wide types come first, so that every tensor is aligned.
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, int(name)))
    end = 0
    for name in names:
        array, begin = tensors[name], end
        end = begin + array.nbytes
        header[name] = {
            "dtype": _CODES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            data = tensors[name].reshape(-1).view(np.uint8).data
            for begin in range(0, len(data), _PIECE):
                file.write(data[begin : begin + _PIECE])


# ------------------------------------------------------------------- load


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``save`` has written.

    Nothing of the file is run, and a file that was damaged is refused. What a file claims is not
    proved by loading it: ``mm.certify`` does that, with the training data.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The model, which predicts the same to the last bit.

    Raises
    ------
    ModelFileError
        If this is no model file, if it is of a later version, if it was altered, or if its parts
        do not belong together.
    """
    return load_described(path).model


def load_described(path: str | os.PathLike[str]) -> Described:
    """Read a model together with its layout, and with what the file says about itself.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Described
        ``model``, ``layout`` (a ``maxmargin.data.Layout`` or None) and ``header``: the format's
        version, the versions of the libraries that wrote the file, and its digest.
    """
    path = Path(path)
    header: dict[str, Any] = {}
    try:
        document, tensors, header = _read(path)
        decoder = Decoder(tensors)
        model = decoder.value(document["model"])
        if not isinstance(model, BaseEstimator) or name_of(type(model)) is None:
            raise ValueError("it holds no estimator")
        if decoder.used != set(tensors):
            raise ValueError("it holds tensors that belong to nothing")
        check_model(model)
        layout = _read_layout(document["layout"])
    except ModelFileError:
        raise
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError) as wrong:
        raise ModelFileError(
            f"{path}: this model file was altered or damaged: {_sentence(wrong)} Save the model "
            f"again from where it was fitted.{_other_version(header)}"
        ) from None
    return Described(model, layout, header)


def _cropped(text: str) -> str:
    """Return a message of others, which may quote half a file, in a length that can be read."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _sentence(wrong: Exception) -> str:
    text = _cropped(str(wrong)) or type(wrong).__name__
    return text if text.endswith(".") else f"{text}."


def _other_version(header: dict[str, Any]) -> str:
    """Return a sentence if scikit-learn, whose steps change, is not the one that wrote the file."""
    written = header.get("versions", {}).get("scikit-learn", "")
    present = version("scikit-learn")
    if not written or written.split(".")[:2] == present.split(".")[:2]:
        return ""
    return (
        f" (It was written with scikit-learn {written[:20]}, and this is {present}: if a step of a "
        "pipeline is meant, its attributes may have changed in between.)"
    )


def _read_layout(document: Any) -> Any:
    if document is None:
        return None
    from maxmargin.data.layout import Layout

    return Layout.from_json(document)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the JSON document and the tensors of a file, and what is said of it."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file.")
    raw = _look_at_header(path)
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            if _KEY not in metadata:
                raise ModelFileError(f"{path}: this is a safetensors file, but not of maxmargin.")
            _refuse_repetition(raw, len(file.keys()))
            document = _parse_document(path, metadata[_KEY])
            tensors = {name: _tensor(file, name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as wrong:
        raise ModelFileError(
            f"{path}: this is no model file of maxmargin. It begins with {_beginning(path)!r} "
            f"(safetensors: {_cropped(str(wrong))})."
        ) from None
    found = metadata.get(_DIGEST)
    if found != _digest(metadata[_KEY], tensors):
        raise ModelFileError(
            f"{path}: this file was altered or damaged: its digest is not that of its content."
        )
    header = {"format": document["format"], "versions": document["versions"], _DIGEST: found}
    return document, tensors, header


def _look_at_header(path: Path) -> bytes:
    """Return the bytes of the header, if they are few enough for what they say.

    Quotes within texts of JSON have a backslash; other quotes belong to keys, of which safetensors
    makes objects, and to types.
    """
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > path.stat().st_size:
            return b""  # safetensors says what is wrong
        header = file.read(length)
    quotes = header.count(b'"') - header.count(b'\\"')
    if quotes > 1000 + 10 * header.count(b'"data_offsets"'):
        raise ModelFileError(f"{path}: this is no model file of maxmargin: its header is too long.")
    return header


def _refuse_repetition(header: bytes, tensors: int) -> None:
    """Raise if the header says something twice, of which safetensors takes one."""
    for key, count in (("data_offsets", tensors), ("__metadata__", 1), (_KEY, 1), (_DIGEST, 1)):
        if header.count(f'"{key}"'.encode()) > count:
            raise ValueError(f"its header has {key!r} twice")


def _parse_document(path: Path, text: str) -> dict[str, Any]:
    document = parse(text)
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise ValueError("its header says no format")
    if document["format"] > FORMAT:
        raise ModelFileError(
            f"{path}: this file is of format {document['format']}, written by maxmargin "
            f"{_writer(document)}; maxmargin {version('maxmargin')} reads formats up to {FORMAT}: "
            "install a later version."
        )
    expected = {"format", "versions", "layout", "model"}
    if document["format"] < 1 or set(document) != expected:
        raise ValueError(f"its header does not have {', '.join(sorted(expected))}")
    versions = document["versions"]
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        raise ValueError("its header names no versions")
    return document


def _writer(document: dict[str, Any]) -> str:
    versions = document.get("versions")
    return str(versions.get("maxmargin"))[:40] if isinstance(versions, dict) else "of a later time"


def _tensor(file: Any, name: str) -> npt.NDArray[Any]:
    if file.get_slice(name).get_dtype() not in _TYPES:
        raise ValueError(f"tensor {name[:40]!r} is of a type that no model has")
    return np.asarray(file.get_tensor(name))


def _beginning(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(16)
