"""Labelled rows in parts: a description that can travel, of rows that stay where they are.

A source knows its parts (row groups of Parquet files, ranges of bytes, partitions, chunks) and
reads one at a time. It holds no rows; only sources made of arrays in memory refer to these.
"""

import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import joblib
import numpy as np
import scipy.sparse as sp

from maxmargin.errors import DataFileError
from maxmargin.rows.request import BlockOptions
from maxmargin.runtime import clock
from maxmargin.validation.data import as_labels, as_rows, as_weights

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

    # What kinds of sources define.

    def __len__(self) -> int:
        """Return the number of parts."""
        raise NotImplementedError

    def read(self, part: int) -> Part:
        """Read a part; whatever is wrong with it is raised, and named by ``load``."""
        raise NotImplementedError

    def describe(self, part: int) -> str:
        """Return a part's number and where it is, for messages."""
        return f"part {part}"

    def row_number(self, part: int, row: int) -> int:
        """Return the number by which messages call a row of a part, from 0."""
        del part
        return row

    def identity(self) -> Any:
        """Return what tells this source from others: values whose ``repr`` says all."""
        raise NotImplementedError

    def delayed(self, part: int) -> Any:
        """Return a dask ``Delayed`` that computes to a checked Part, if Dask makes the parts."""
        raise NotImplementedError

    def detached(self) -> "RowSource":
        """Return what checks and describes parts elsewhere, without what their rows are made of."""
        return self

    def rows_between(self, begin: int, end: int) -> Any:
        """Return rows of any parts if they are at hand without a copy, else None."""
        del begin, end
        return None

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
        return self._load(part, finite=True)

    def reload(self, part: int) -> Part:
        """Read a part without a check that its numbers are finite, which a survey makes."""
        return self._load(part, finite=False)

    def _load(self, part: int, *, finite: bool) -> Part:
        count = self.known_length()
        if part < 0 or (count is not None and part >= count):
            raise IndexError(f"part={part} is not one of the {count} parts, which count from 0")
        return self.named(part, lambda: self.check(part, self.read(part), finite=finite))

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
            if y.dtype.kind == "f" and not np.isfinite(y).all():
                row = int(np.argmin(np.isfinite(y)))
                raise DataFileError(
                    f"the label is {y[row]} in {self.numbered} {self.row_number(part, row)}; leave "
                    "out rows without a label"
                )
        if self.weighted:
            if weight is None:
                raise DataFileError("it has no weights, but others have")
            weight = as_weights(weight)
            _check_length("weight", len(weight), n)
        if finite:
            self.refuse_not_finite(part, X)
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
        return _MappedSource(self, transformer)

    def scaled(self, scaler: Any) -> "RowSource":
        """Return a view whose columns are scaled by a fitted scaler when they are read.

        Like ``mapped``, but the columns keep their names and ``scaler`` is kept beside them.
        """
        view = self.mapped(scaler)
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
            facts = repr((*seen, self.labelled, self.weighted, self.identity()))
            self.known_fingerprint = hashlib.sha256(facts.encode()).hexdigest()[:32]
        return self.known_fingerprint

    def __getstate__(self) -> dict[str, Any]:
        # A connection does not travel: those who read parts elsewhere need none.
        return {**self.__dict__, "options": replace(self.options, client=None)}

    # Checks.

    def named(self, part: int, work: Callable[[], Found]) -> Found:
        """Return what work gives; errors begin with the name of the part."""
        try:
            return work()
        except (MemoryError, ImportError, clock.OutOfTimeError):
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

    def refuse_not_finite(self, part: int, X: Any) -> None:
        """Raise if a number in the rows of a part is not finite."""
        numbers = X.data if sp.issparse(X) else X
        with np.errstate(all="ignore"):  # a sum that overflows proves nothing
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


# ------------------------------------------------------------------- rows through a transformer


class _MappedSource(RowSource):
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
        finish = dask.delayed(_MappedSource._finish, pure=False)
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

    def identity(self) -> Any:
        """Return what tells this source from others."""
        return (
            self.source.fingerprint(),
            type(self.transformer).__name__,
            _hash_of(self.transformer),
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


def _hash_of(fitted: Any) -> str:
    """Return a digest of a fitted object; of one that cannot be pickled, its name."""
    try:
        return str(joblib.hash(fitted))
    except Exception:  # whatever its own code raises
        return type(fitted).__name__
