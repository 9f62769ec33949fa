"""Rows as a fitted transformer makes them of those of another source."""

import copy
from importlib import import_module
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from maxmargin.rows.row_source import Part, RowSource
from maxmargin.validation.data import as_rows


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
        if self.sparse:
            return before
        own, given = self.n_columns * self.dtype.itemsize, self.source.dtype.itemsize
        return int(before * (1 + own / (self.source.n_columns * given)))

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
