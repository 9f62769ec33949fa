"""Rows of Dask collections and of delayed partitions; parts are partitions.

Dask is imported only if there is such a collection.
"""

import copy
from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from maxmargin.rows.chunk_source import ChunkForm, as_part, digests
from maxmargin.rows.cluster import compute
from maxmargin.rows.frames import (
    FrameColumns,
    choose_columns,
    is_frame,
    module_root,
    names_if_texts,
    read_frame,
)
from maxmargin.rows.request import ALL_COLUMNS, BY_Y, BlockOptions, Request
from maxmargin.rows.row_source import Part, RowSource


def is_dask(what: Any) -> bool:
    """Tell whether something is a Dask collection, or a list of delayed partitions."""
    if isinstance(what, list | tuple):
        return bool(len(what)) and all(_is_delayed(item) for item in what)
    return _dask_kind(what) in ("Array", "DataFrame")


def _is_delayed(what: Any) -> bool:
    return _dask_kind(what).startswith("Delayed")  # values that are delayed are a DelayedLeaf


def _dask_kind(what: Any) -> str:
    known = module_root(what) in ("dask", "dask_expr")
    return type(what).__name__ if known else ""


def _row_chunks(collection: Any) -> list[int] | None:
    """Return the rows of each partition, if they are known."""
    if _dask_kind(collection) != "Array" or any(np.isnan(collection.chunks[0])):
        return None
    return [int(rows) for rows in collection.chunks[0]]


class DaskSource(RowSource):
    """Rows of Dask collections."""

    on_dask = True
    slow = True

    def __init__(self, what: Any, request: Request) -> None:
        self.options = request.options
        self.plan: FrameColumns | None = None
        self.sizes: list[int] | None = None
        self.y: list[Any] | None = None
        self.weight: list[Any] | None = None
        self.labelled, self.weighted = request.y is not None, request.weight is not None
        kind = "delayed" if isinstance(what, list | tuple) else _dask_kind(what)
        self.kind = f"dask {kind}"
        if kind == "delayed":
            self._open_delayed(what, request)
        elif kind == "DataFrame":
            self._open_frame(what, request)
        else:
            self._open_array(what, request)
        if kind != "delayed":
            self._open_beside(request)
        self.kept = [k for k in range(len(self.X)) if self.sizes is None or self.sizes[k]]
        self.n_rows = None if self.sizes is None else sum(self.sizes)
        if not self.kept:
            raise ValueError(f"the {self.kind} has no rows; add rows")

    def _open_array(self, X: Any, request: Request) -> None:
        request.refuse("a dask array", label=BY_Y, columns=ALL_COLUMNS)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; rows need two: reshape it")
        if len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        self.sizes = _row_chunks(X)
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.sparse = bool(sp.issparse(getattr(X, "_meta", None)))
        self.X: list[Any] = list(X.to_delayed()[:, 0])
        if np.isnan(X.shape[1]):
            self.n_columns = self._first_form(None).n_columns
        else:
            self.n_columns = int(X.shape[1])

    def _open_frame(self, X: Any, request: Request) -> None:
        named = request if isinstance(request.weight, str | None) else request._replace(weight=None)
        columns = choose_columns(list(X.columns), named, f"the {self.kind}", None)
        kinds = {str(X.dtypes[name]).lower() for name in columns.features}
        self.dtype = np.dtype(np.float32 if kinds == {"float32"} else np.float64)
        self.plan = columns._replace(dtype=self.dtype)
        self.n_columns = len(columns.features)
        self.feature_names = names_if_texts(columns.features)
        self.labelled = self.labelled or columns.label is not None
        self.X = list(X[columns.wanted].to_delayed())

    def _open_delayed(self, what: Sequence[Any], request: Request) -> None:
        way_out = "each of them computes to a tuple (X, y) or (X, y, weight)"
        request.refuse("delayed partitions", y=way_out)
        self.X = list(what)
        vars(self).update(self._first_form(request)._asdict())

    def _first_form(self, request: Request | None) -> ChunkForm:
        """Compute the first partition, where it is, to learn what partitions are."""
        dask: Any = import_module("dask")
        plain = None if request is None else request._replace(options=BlockOptions())
        work = dask.delayed(ChunkForm.of, pure=False)(self.X[0], plain)
        (form,) = compute([work], self.options.client)
        return cast(ChunkForm, form)

    def _open_beside(self, request: Request) -> None:
        """Find the partitions of labels and weights that are not in the frame."""
        if request.y is not None:
            self.y = self._split(request.y, "y")
        in_frame = self.plan is not None and self.plan.weight is not None
        if request.weight is not None and not in_frame:
            self.weight = self._split(request.weight, "weight")

    def _split(self, values: Any, name: str) -> list[Any]:
        kind = _dask_kind(values)
        if not kind:
            return self._split_array(np.asarray(values), name)
        if kind == "Array":
            sizes = _row_chunks(values)
            if self.sizes is not None and sizes is not None:
                self._check_rows(sum(sizes), name)
                values = values.rechunk({0: tuple(self.sizes)})
            if values.ndim == 2 and len(values.chunks[1]) > 1:
                raise ValueError(f"{name} has several columns; a value per row is needed")
        found = list(values.to_delayed().reshape(-1)) if kind == "Array" else values.to_delayed()
        if len(found) != len(self.X):
            raise ValueError(
                f"X has {len(self.X)} partitions, but {name} has {len(found)}; make them alike: "
                "compute_chunk_sizes() of both, or repartition one of them"
            )
        return list(found)

    def _split_array(self, values: Any, name: str) -> list[Any]:
        if self.sizes is None:
            raise ValueError(
                f"{name} is an array, and how many rows the partitions of X have is not known; "
                f"pass {name} as a Dask collection, or call X.compute_chunk_sizes() before"
            )
        self._check_rows(len(values), name)
        return list(np.split(values, np.cumsum(self.sizes)[:-1]))

    def _check_rows(self, count: int, name: str) -> None:
        n = sum(self.sizes or [])
        if count != n:
            raise ValueError(f"X has {n} rows, but {name} has {count}")

    def __len__(self) -> int:
        """Return the number of partitions that may have rows."""
        return len(self.kept)

    def _pieces(self, part: int) -> tuple[Any, Any, Any]:
        k = self.kept[part]
        return (
            self.X[k],
            None if self.y is None else self.y[k],
            None if self.weight is None else self.weight[k],
        )

    def read(self, part: int) -> Part:
        """Compute a partition in this process."""
        dask: Any = import_module("dask")
        pieces = dask.compute(*self._pieces(part), scheduler="sync")
        return self._put_together(*pieces)

    def _put_together(self, X: Any, y: Any, weight: Any) -> Part:
        if self.plan is not None and is_frame(X):
            found = read_frame(X, self.plan)
        elif self.y is None and self.weight is None and self.kind == "dask delayed":
            found = as_part(X, self.plan)
        else:
            found = Part(X, None, None)
        return Part(
            found.X, found.y if y is None else y, found.weight if weight is None else weight
        )

    def _finish(self, part: int, X: Any, y: Any, weight: Any) -> Part:
        return self.named(part, lambda: self.check(part, self._put_together(X, y, weight)))

    def detached(self) -> RowSource:
        """Return the same without the graphs of its partitions."""
        plain = copy.copy(self)
        plain.X, plain.y, plain.weight = [], None, None
        return plain

    def delayed(self, part: int) -> Any:
        """Return a dask ``Delayed`` that computes to a checked Part."""
        dask: Any = import_module("dask")
        finish = DaskSource._finish
        return dask.delayed(finish, pure=False)(self.detached(), part, *self._pieces(part))

    def describe(self, part: int) -> str:
        """Return a part's number, and that of the partition."""
        return f"part {part} ({self.kind}, partition {self.kept[part]})"

    def identity(self) -> Any:
        """Return the sizes of partitions, and digests of the first one."""
        dask: Any = import_module("dask")
        work = dask.delayed(digests, pure=False)(self.delayed(0))
        first = compute([work], self.options.client)
        return (len(self), self.sizes, first)
