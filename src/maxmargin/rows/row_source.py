"""Labelled rows in parts: a description that can travel, of rows that stay where they are.

A source knows its parts (row groups of Parquet files, ranges of bytes, partitions, chunks) and
reads one at a time. It holds no rows; only sources made of arrays in memory refer to these.
"""

import copy
import hashlib
import math
import os
import pickle
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.errors import DataFileError

_UNITS = {
    **{"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40},
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", re.IGNORECASE)
_LEAST_MEMORY = 1 << 20
_PART_BYTES = 1 << 25  # in a part, unless rows or memory say otherwise …
_PARTS_IN_MEMORY = 16  # … of which so many fit at least
_ITERATORS = 3  # that are kept for a source …
_CURSORS = 4  # … and for so many sources that came from elsewhere

Found = TypeVar("Found")


class Part(NamedTuple):
    """Rows of a part.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows, in C order, as float32 or float64.
    y : array of shape (n_rows,), or None
        Labels or targets; None if the source has none.
    weight : array of float64 of shape (n_rows,), or None
        Sample weights; None if the source has none.
    """

    X: Any
    y: Any
    weight: Any


class FileStamp(NamedTuple):
    """A file as it was when a source was opened."""

    path: str
    size: int
    changed: int  # nanoseconds

    @classmethod
    def of(cls, path: Path) -> "FileStamp":
        """Return the stamp of a file as it is now."""
        found = path.stat()
        return cls(os.path.abspath(path), found.st_size, found.st_mtime_ns)

    @property
    def name(self) -> str:
        """The name without its folders, for messages."""
        return os.path.basename(self.path)

    def check(self) -> None:
        """Raise if the file is not there any more, or is not as it was."""
        try:
            now = FileStamp.of(Path(self.path))
        except FileNotFoundError:
            raise DataFileError(
                f"the file {self.path} is not there any more; put it back, or open the data again"
            ) from None
        if now != self:
            raise DataFileError(
                f"the file {self.path} has changed since it was opened (it had {self.size} bytes "
                f"and has {now.size}); open the data again"
            )


@dataclass(frozen=True)
class BlockOptions:
    """How rows of a source are worked on.

    Attributes
    ----------
    memory : int or None
        Bytes that rows and what belongs to them may take; None: as much as there is.
    checkpoint : Path or None
        A folder to which a fit is saved and from which it goes on.
    client : distributed.Client, str or None
        A client of a Dask cluster, or the address of its scheduler.
    every : int
        Iterations between two checkpoints.
    """

    memory: int | None = None
    checkpoint: Path | None = None
    client: Any = None
    every: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", parse_memory(self.memory))
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", _checked_folder(self.checkpoint))
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise ValueError(
                f"every={self.every!r} must be a whole number of iterations, from 1 on"
            )


def parse_memory(memory: Any) -> int | None:
    """Return a number of bytes for one, or for a text such as "2GB" or "512 MiB".

    >>> parse_memory("1.5 GB"), parse_memory("2GiB"), parse_memory(None)
    (1500000000, 2147483648, None)
    """
    if memory is None:
        return None
    found = _AMOUNT.fullmatch(memory) if isinstance(memory, str) else None
    if found and found[2].lower() in _UNITS:
        amount = float(found[1]) * _UNITS[found[2].lower()]
    elif isinstance(memory, int | float | np.number) and not isinstance(memory, bool):
        amount = float(memory)
    else:
        raise ValueError(
            f"memory={memory!r} is no amount of memory; give bytes as a number, or a text such as "
            '"2GB" or "512MiB"'
        )
    if not math.isfinite(amount) or amount < _LEAST_MEMORY:
        raise ValueError(f"memory={memory!r} is too little to work with; give 1MiB at least")
    return int(amount)


def _checked_folder(folder: Any) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"checkpoint must be the path of a folder, not {type(folder).__name__}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ValueError(f"checkpoint={str(folder)!r} is a file; name a folder")
    return path.absolute()


def rows_per_part(width: int, itemsize: int, rows: int | None, options: BlockOptions) -> int:
    """Return how many rows of so many columns a part has."""
    if rows is not None:
        return rows
    size = _PART_BYTES
    if options.memory is not None:
        size = min(size, options.memory // _PARTS_IN_MEMORY)
    return max(1, size // max(1, width * itemsize))


class RowSource:
    """Labelled rows in parts, opened by :func:`maxmargin.data.open`.

    It can be passed wherever X and y can be passed to estimators that work on blocks of rows, and
    it can be pickled. Parts are numbered from 0; ``load`` reads one, ``describe`` names one, and
    iterating over a source loads one after the other.

    Attributes
    ----------
    n_columns : int
        The columns of X.
    n_rows : int or None
        The rows of all parts, if that is known without reading them.
    feature_names : tuple of str, or None
        Their names.
    sparse : bool
        Whether X is CSR.
    dtype : numpy.dtype
        float32 or float64.
    labelled, weighted : bool
        Whether there are labels (or targets), and weights.
    options : BlockOptions
        ``memory``, ``checkpoint``, ``client``, ``every``.
    """

    kind = "rows"
    n_columns: int
    n_rows: int | None = None
    feature_names: tuple[str, ...] | None = None
    sparse: bool = False
    dtype: "np.dtype[Any]" = np.dtype(np.float64)
    labelled: bool = False
    weighted: bool = False
    on_dask: bool = False  # whether parts are made by Dask
    in_memory: bool = False  # whether the rows are in this process
    slow: bool = False  # whether reading takes longer than reading the same numbers from a file
    numbered: str = "row"  # or "line": what row_number counts
    scaler: Any = None  # of a view that scales
    layout: Any = None  # of files: the Layout by which later ones are read as these are
    options: BlockOptions = BlockOptions()
    known_fingerprint: str | None = None

    # What a kind of source says.

    def __len__(self) -> int:
        """Return the number of parts."""
        raise NotImplementedError

    def read(self, part: int) -> Part:
        """Read a part; whatever is wrong with it is raised, and named by ``load``."""
        raise NotImplementedError

    def describe(self, part: int) -> str:
        """Return a part's number and where it is, for messages."""
        return f"part {part}"

    def bytes_of(self, part: int) -> int:
        """Return about how many bytes the rows of a part take."""
        raise NotImplementedError

    def row_number(self, part: int, row: int) -> int:
        """Return the number by which messages call a row of a part, from 0."""
        del part
        return row

    def identity(self) -> Any:
        """Return what tells this source from others: values whose ``repr`` says all."""
        raise NotImplementedError

    def delayed(self, part: int) -> Any:
        """Return a dask ``Delayed`` that computes to a Part."""
        dask: Any = import_module("dask")
        return dask.delayed(self.load, pure=False)(part)

    def detached(self) -> "RowSource":
        """Return what checks and describes parts elsewhere, without what their rows are made of."""
        return self

    # What is the same for all.

    @property
    def shape(self) -> tuple[int | None, int]:
        """The number of rows, or None if it is not known yet, and of columns."""
        return self.n_rows, self.n_columns

    def load(self, part: int) -> Part:
        """Read and check a part.

        Returns
        -------
        Part
            ``X`` (a C-ordered array of ``dtype``, or CSR), ``y`` and ``weight`` (or None).

        Raises
        ------
        DataFileError
            The part cannot be read, or is not like the others; the message begins with
            ``describe(part)``.
        """
        self._check_number(part)
        return self.named(part, lambda: self.check(part, self.read(part)))

    def reload(self, part: int) -> Part:
        """Read a part that was checked before: its numbers are not looked at again."""
        self._check_number(part)
        return self.named(part, lambda: self.check(part, self.read(part), finite=False))

    def check(self, part: int, found: Part, *, finite: bool = True) -> Part:
        """Return the rows of a part as they have to be, or raise."""
        X = self._checked_rows(found.X)
        y, weight = found.y, found.weight
        n = X.shape[0]
        if self.labelled:
            if y is None:
                raise DataFileError("it has no labels, but others have")
            y = as_labels(y)
            _check_length("label", len(y), n)
            _refuse_no_label(y, lambda row: f"{self.numbered} {self.row_number(part, row)}")
        if self.weighted:
            if weight is None:
                raise DataFileError("it has no weights, but others have")
            weight = as_weights(weight)
            _check_length("weight", len(weight), n)
        if finite:
            self._refuse_not_finite(X, part)
        return Part(X, y if self.labelled else None, weight if self.weighted else None)

    def __iter__(self) -> Iterator[Part]:
        """Load one part after the other."""
        return (self.load(part) for part in range(len(self)))

    def __repr__(self) -> str:
        n = "?" if self.n_rows is None else f"{self.n_rows}"
        form = "CSR" if self.sparse else "dense"
        labels = "labelled" if self.labelled else "no labels"
        more = ", weighted" if self.weighted else ""
        parts = self.known_length()
        count = "" if parts is None else f" in {parts} part{'s' * (parts != 1)}"
        return f"<RowSource: {self.kind}, {n} rows x {self.n_columns} columns{count}, " + (
            f"{self.dtype} {form}, {labels}{more}>"
        )

    def known_length(self) -> int | None:
        """Return the number of parts, or None if they have to be read to count them."""
        return len(self)

    def with_options(self, **changes: Any) -> "RowSource":
        """Return the same rows with other options: ``memory``, ``checkpoint``, ``client``, …."""
        other = copy.copy(self)
        other.options = replace(self.options, **changes)
        return other

    def mapped(self, transformer: Any) -> "RowSource":
        """Return a view whose rows are what a fitted transformer makes of these when they are read.

        Parameters
        ----------
        transformer : object with ``transform``
            A fitted scikit-learn transformer: a scaler, ``Nystroem``, ``RBFSampler``. It must
            treat each row by itself.

        Returns
        -------
        RowSource
            As many columns as the transformer makes; labels and weights as they are.
        """
        return MappedSource(self, transformer)

    def scaled(self, scaler: Any) -> "RowSource":
        """Return a view whose columns are scaled by a fitted scaler when they are read.

        Like ``mapped``, but the columns keep their names and ``scaler`` is kept beside them.
        """
        view = MappedSource(self, scaler)
        if view.n_columns != self.n_columns:
            raise ValueError(
                f"scaler={scaler!r} makes {view.n_columns} columns of {self.n_columns}, so it is "
                "not a scaler; use mapped(transformer)"
            )
        view.feature_names, view.scaler = self.feature_names, scaler
        return view

    def fingerprint(self) -> str:
        """Return a digest by which a checkpoint knows that it belongs to these rows."""
        if self.known_fingerprint is None:
            seen = (self.kind, self.n_columns, self.feature_names, str(self.dtype), self.sparse)
            told = repr((*seen, self.labelled, self.weighted, self.identity()))
            self.known_fingerprint = hashlib.sha256(told.encode()).hexdigest()[:32]
        return self.known_fingerprint

    def __getstate__(self) -> dict[str, Any]:
        # A connection does not travel: those who read parts elsewhere need none.
        return {**self.__dict__, "options": replace(self.options, client=None)}

    # Checks.

    def _check_number(self, part: int) -> None:
        count = self.known_length()
        if part < 0 or (count is not None and part >= count):
            raise IndexError(f"part={part} is not one of the {count} parts, which count from 0")

    def named(self, part: int, work: Callable[[], Found]) -> Found:
        """Return what work gives; errors begin with the name of the part."""
        try:
            return work()
        except (MemoryError, ImportError):
            raise
        except Exception as failed:
            name = self.describe(part)
            message = str(failed) or type(failed).__name__
            if isinstance(failed, DataFileError) and message.startswith(name):
                raise
            if not isinstance(failed, ValueError | OSError):
                message = f"{type(failed).__name__}: {message}"
            raise DataFileError(f"{name}: {message}") from failed

    def _checked_rows(self, X: Any) -> Any:
        X = as_rows(X)
        if sp.issparse(X) != self.sparse:
            this, other = ("sparse", "dense") if sp.issparse(X) else ("dense", "sparse")
            raise DataFileError(f"it is {this}, but others are {other}; make all parts alike")
        if X.shape[1] != self.n_columns:
            raise DataFileError(
                f"it has {X.shape[1]} columns, but others have {self.n_columns}; make all parts "
                "alike"
            )
        if X.dtype == np.float64 and self.dtype == np.float32:
            raise DataFileError(
                "it holds float64, but others hold float32; write all parts in the same type"
            )
        return X if X.dtype == self.dtype else X.astype(self.dtype)

    def _refuse_not_finite(self, X: Any, part: int) -> None:
        numbers = X.data if sp.issparse(X) else X
        with np.errstate(all="ignore"):  # what overflows is looked at again
            if np.isfinite(numbers.sum(dtype=X.dtype)) or np.isfinite(numbers).all():
                return
        if sp.issparse(X):
            place = int(np.flatnonzero(~np.isfinite(X.data))[0])
            row, column = int(np.searchsorted(X.indptr, place, side="right")) - 1, X.indices[place]
            value = X.data[place]
        else:
            row, column = np.argwhere(~np.isfinite(X))[0]
            value = X[row, column]
        raise DataFileError(
            f"{self.column_name(int(column))} has {value} in {self.numbered} "
            f"{self.row_number(part, int(row))}, which is not a finite number; correct it, or "
            "leave the row out"
        )

    def column_name(self, j: int) -> str:
        """Return what messages call a column of X."""
        return f"column {self.feature_names[j]!r}" if self.feature_names else f"column {j}"


class MappedSource(RowSource):
    """Rows as a transformer makes them of those of another source."""

    slow = True

    def __init__(self, source: RowSource, transformer: Any) -> None:
        if not hasattr(transformer, "transform"):
            raise TypeError(
                f"{transformer!r} has no method transform; pass a fitted transformer, such as a "
                "StandardScaler"
            )
        self.source, self.transformer = source, _without_names(transformer, source)
        self.options, self.n_rows = source.options, source.n_rows
        self.labelled, self.weighted = source.labelled, source.weighted
        self.in_memory, self.numbered = source.in_memory, source.numbered
        self.on_dask = source.on_dask
        self.kind = f"{source.kind} through {type(transformer).__name__}"
        empty = np.zeros((1, source.n_columns), source.dtype)
        made = self._transform(sp.csr_array(empty) if source.sparse else empty)
        self.n_columns, self.dtype, self.sparse = made.shape[1], made.dtype, sp.issparse(made)
        self.feature_names = _names_out(transformer, source, self.n_columns)

    def _transform(self, X: Any) -> Any:
        return as_rows(self.transformer.transform(X))

    def __len__(self) -> int:
        """Return the number of parts."""
        count = len(self.source)
        self.n_rows = self.source.n_rows  # which may have been counted only now
        return count

    def known_length(self) -> int | None:
        """Return the number of parts, or None if they have to be read to count them."""
        return self.source.known_length()

    def read(self, part: int) -> Part:
        """Read a part."""
        return self._map(self.source.load(part))

    def _map(self, found: Part) -> Part:
        if not found.X.shape[0]:  # which transformers refuse
            form = sp.csr_array if self.sparse else np.empty
            return found._replace(X=form((0, self.n_columns), dtype=self.dtype))
        return found._replace(X=self._transform(found.X))

    def _finish(self, found: Part, part: int) -> Part:
        return self.named(part, lambda: self.check(part, self._map(found)))

    def delayed(self, part: int) -> Any:
        """Return a dask ``Delayed`` that computes to a Part."""
        dask: Any = import_module("dask")
        finish = dask.delayed(MappedSource._finish, pure=False)
        return finish(self.detached(), self.source.delayed(part), part)

    def detached(self) -> RowSource:
        """Return what checks and maps parts elsewhere."""
        plain = copy.copy(self)
        plain.source = self.source.detached()
        return plain

    def describe(self, part: int) -> str:
        """Return a part's number and where it is."""
        return self.source.describe(part)

    def row_number(self, part: int, row: int) -> int:
        """Return the number by which messages call a row of a part."""
        return self.source.row_number(part, row)

    def bytes_of(self, part: int) -> int:
        """Return about how many bytes a part takes while it is made."""
        before = self.source.bytes_of(part)
        wider = (
            self.n_columns
            * self.dtype.itemsize
            / (self.source.n_columns * self.source.dtype.itemsize)
        )
        return before if self.sparse else int(before * (1 + wider))

    def identity(self) -> Any:
        """Return what tells this source from others."""
        return (
            self.source.fingerprint(),
            type(self.transformer).__name__,
            _state(self.transformer),
        )


def _without_names(transformer: Any, source: RowSource) -> Any:
    """Return a transformer that takes arrays without names, after those names were compared."""
    names = getattr(transformer, "feature_names_in_", None)
    if names is None:
        return transformer
    if source.feature_names is not None and list(names) != list(source.feature_names):
        wrong = next(
            (a for a, b in zip(names, source.feature_names, strict=False) if a != b), names[-1]
        )
        raise ValueError(
            f"{type(transformer).__name__} was fitted to other columns than this source has (first "
            f"difference: {wrong!r}); open the source with columns= as in that fit"
        )
    if "feature_names_in_" not in vars(transformer):
        return transformer
    plain = copy.copy(transformer)
    del plain.feature_names_in_
    return plain


def _names_out(transformer: Any, source: RowSource, width: int) -> tuple[str, ...] | None:
    if source.feature_names is None:
        return None
    try:
        names = transformer.get_feature_names_out(np.array(source.feature_names, dtype=object))
    except (AttributeError, ValueError, TypeError):
        return None
    return tuple(map(str, names)) if len(names) == width else None


def _state(fitted: Any) -> list[tuple[str, str]]:
    """Return a fitted object's attributes: numbers as digests, others as they print."""
    found = []
    for name, value in sorted(vars(fitted).items()):
        is_array = isinstance(value, np.ndarray) and value.dtype != object
        plain = isinstance(value, str | int | float | bool | tuple | None)
        found.append(
            (name, digest(value) if is_array else repr(value) if plain else _pickled(value))
        )
    return found


def _pickled(value: Any) -> str:
    """Return a digest of anything that can be pickled; of others, that they cannot."""
    try:
        return hashlib.blake2b(pickle.dumps(value), digest_size=16).hexdigest()
    except Exception:  # whatever its own code raises
        return type(value).__name__


# ------------------------------------------------------------------- rows, labels, weights


def as_rows(X: Any) -> Any:
    """Return rows as a C-ordered array or CSR of float32 or float64, without a copy if they are."""
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        wanted = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        _refuse_no_numbers(X.dtype)
        return X if X.dtype == wanted else X.astype(wanted)
    X = np.asarray(X)
    if X.dtype == object:
        X = _numbers_of_objects(X)
    _refuse_no_numbers(X.dtype)
    if X.ndim != 2:
        raise DataFileError(
            f"X has {X.ndim} dimension{'s' * (X.ndim != 1)}, and rows need two; reshape it to "
            "(rows, columns)"
        )
    wanted = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    return np.ascontiguousarray(X, dtype=wanted)


def _numbers_of_objects(X: Any) -> Any:
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError) as wrong:
        raise DataFileError(f"X holds what is no number ({wrong}); encode it as numbers") from wrong


def _refuse_no_numbers(dtype: Any) -> None:
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise DataFileError(f"X holds {dtype}, which is no number of 64 bits; encode it as numbers")


def as_labels(y: Any) -> Any:
    """Return labels as an array of one dimension: numbers, flags or texts."""
    y = np.asarray(y.toarray() if sp.issparse(y) else y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise DataFileError(f"y has {y.ndim} dimensions; a label per row has one")
    if y.dtype == object:
        y = _labels_of_objects(y)
    if y.dtype.kind == "T":  # numpy's texts of any length
        y = y.astype(str)
    if y.dtype.kind not in "biufU":
        raise DataFileError(f"labels of type {y.dtype} are not known; use numbers or texts")
    return y


def _labels_of_objects(y: Any) -> Any:
    missing = [i for i, label in enumerate(y) if label is None or label is np.ma.masked]
    if missing:
        raise DataFileError(f"there is no label in row {missing[0]}; leave out such rows")
    kinds = {isinstance(label, str) for label in y}
    if len(kinds) > 1:
        raise DataFileError("some labels are texts and some are not; make them all alike")
    return np.array(y.tolist(), dtype=str) if kinds == {True} else np.array(y.tolist())


def as_weights(weight: Any) -> Floats:
    """Return weights as float64, which are finite and at least 0."""
    try:
        found = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as wrong:
        raise DataFileError(f"weights must be numbers ({wrong})") from wrong
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise DataFileError(f"weight has {found.ndim} dimensions; a weight per row has one")
    wrong_ones = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if len(wrong_ones):
        row = wrong_ones[0]
        raise DataFileError(
            f"the weight in row {row} is {found[row]}; weights are finite and at least 0"
        )
    return found


def _refuse_no_label(y: Any, place: Callable[[int], str]) -> None:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataFileError(
            f"the label is {y[row]} in {place(row)}; leave out rows without a label"
        )


def _check_length(noun: str, count: int, n: int) -> None:
    if count != n:
        raise DataFileError(f"X has {n} rows, but there are {count} {noun}s")


def digest(array: Any) -> str:
    """Return a digest of an array's type, shape and bytes.

    >>> import numpy as np
    >>> digest(np.zeros(3)) == digest(np.zeros(3)), digest(np.zeros(3)) == digest(np.ones(3))
    (True, False)
    """
    if sp.issparse(array):
        return " ".join(map(digest, (array.data, array.indices, array.indptr)))
    array = np.asarray(array)
    found = hashlib.blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=16)
    if array.dtype.kind in "OTU":
        found.update(repr(array.tolist()).encode())
    elif array.size:
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def compute(work: list[Any], options: BlockOptions) -> list[Any]:
    """Return what delayed work computes to: by the client if there is one, else in this process."""
    client = options.client
    if client is None:
        dask: Any = import_module("dask")
        return list(dask.compute(*work, scheduler="sync"))
    if isinstance(client, str):
        distributed: Any = import_module("distributed")
        with distributed.Client(client, set_as_default=False) as connected:
            return list(connected.gather(connected.compute(work)))
    return list(client.gather(client.compute(work)))


# ------------------------------------------------------------------- for kinds of sources


class Request(NamedTuple):
    """What was asked for when rows were opened."""

    y: Any
    label: Any
    weight: Any
    columns: Any
    rows: int | None
    options: BlockOptions

    def refuse(self, what: str, **ways_out: str) -> None:
        """Raise if something is given that this kind of rows does not take."""
        for name, way_out in ways_out.items():
            if getattr(self, name) is not None:
                shown = "…" if name in ("y", "weight") else repr(getattr(self, name))
                raise ValueError(f"{name}={shown} does not go with {what}; {way_out}")


BY_LABEL = "a table's labels are a column of it: name that with label="
BY_Y = "rows without named columns have their labels in y="
ALL_COLUMNS = "choose the columns before they are passed"


class Cursor:
    """Iterators that are kept, so that reading on does not begin anew.

    A copy that comes to a process by pickle again and again, as with each task of a worker, is the
    same cursor each time.
    """

    def __init__(self, token: str | None = None) -> None:
        self.token = token or uuid.uuid4().hex
        self.lock = threading.Lock()
        self.begun: list[tuple[Hashable, int, Iterator[Any]]] = []  # key, next position, items

    def take(self, key: Hashable, position: int, begin: Callable[[], Iterator[Any]]) -> Any:
        """Return the item at a position of what ``begin`` begins; StopIteration after the last."""
        at, items = self._nearest(key, position) or (0, begin())
        for _ in range(at, position):
            next(items)
        item = next(items)
        with self.lock:
            self.begun = [*self.begun, (key, position + 1, items)][-_ITERATORS:]
        return item

    def _nearest(self, key: Hashable, position: int) -> tuple[int, Iterator[Any]] | None:
        """Return the iterator that is nearest before a position, which is then no longer kept."""
        with self.lock:
            there = [k for k, one in enumerate(self.begun) if one[0] == key and one[1] <= position]
            if not there:
                return None
            return self.begun.pop(max(there, key=lambda k: self.begun[k][1]))[1:]

    def __reduce__(self) -> Any:
        return (_find_cursor, (self.token,))


_cursors: OrderedDict[str, Cursor] = OrderedDict()  # that came by pickle
_cursors_lock = threading.Lock()


def _find_cursor(token: str) -> Cursor:
    with _cursors_lock:
        cursor = _cursors.setdefault(token, Cursor(token))
        _cursors.move_to_end(token)
        while len(_cursors) > _CURSORS:
            _cursors.popitem(last=False)
        return cursor


def is_path(what: Any) -> bool:
    """Tell whether something is a path."""
    return isinstance(what, str | os.PathLike)


def refuse_missing(path: Path) -> None:
    """Raise if there is no such file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")


def name_files(format: str, stamps: list[FileStamp]) -> str:
    """Return what files are called, for messages."""
    if len(stamps) == 1:
        return f"{format} {stamps[0].name}"
    return f"{format} {stamps[0].name} … {stamps[-1].name} ({len(stamps)} files)"
