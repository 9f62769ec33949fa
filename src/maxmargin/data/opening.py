"""Opening labelled rows wherever they are: arrays, files, frames, iterables, Dask collections."""

import glob
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.data.parquet_source import open_parquet, table_names
from maxmargin.data.sources import open_svmlight, open_tables, read_start
from maxmargin.data.tables import kind_of
from maxmargin.data.text import JSON_ENDINGS, extension_of, open_source
from maxmargin.errors import DataFileError
from maxmargin.rows.array_source import ArraySource, FrameSource
from maxmargin.rows.chunk_source import IterableSource, SequenceSource, spool
from maxmargin.rows.dask_source import DaskSource, is_dask
from maxmargin.rows.frames import is_frame, module_root
from maxmargin.rows.request import BlockOptions, Request
from maxmargin.rows.row_source import RowSource
from maxmargin.rows.stored_files import FileStamp, is_path, refuse_missing

_NOT_IN_PARTS = {*JSON_ENDINGS, ".arff", ".arrow", ".feather"}
_GLOB = re.compile(r"[*?\[]")


def find_files(what: Any) -> list[Path]:
    """Return the files that a path, a folder, a pattern or a list of these means."""
    if not is_path(what):
        return [path for one in what for path in find_files(one)]
    path = Path(what)
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_"))]
        if not found:
            raise FileNotFoundError(f"the folder {path} has no files; name one that has")
        return sorted(found, key=_natural)
    if path.exists() or not _GLOB.search(str(what)):
        refuse_missing(path)
        return [path]
    found = [Path(name) for name in glob.glob(str(what), recursive=True) if Path(name).is_file()]
    if not found:
        raise FileNotFoundError(f"no file matches {str(what)!r}; the folder is {Path.cwd()}")
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    return [
        (int(piece), "") if piece.isdigit() else (-1, piece)
        for piece in re.split(r"(\d+)", str(path))
    ]


def _open_files(what: Any, request: Request, n_features: int | None, zero_based: bool) -> RowSource:
    paths = find_files(what)
    endings = {extension_of(path) for path in paths}
    if len(endings) > 1:
        raise ValueError(
            f"the files are of different kinds ({', '.join(sorted(endings))}); name files of one "
            "kind"
        )
    ending = endings.pop()
    if ending in (".npy", ".npz"):
        if len(paths) > 1:
            raise ValueError(f"{len(paths)} files of arrays: pass one, or a list of tuples (X, y)")
        return ArraySource(paths[0] if ending == ".npy" else _load_csr(paths[0]), request)
    if ending in (".parquet", ".pq"):
        return open_parquet(paths, request)
    if ending in _NOT_IN_PARTS:
        raise ValueError(
            f"{paths[0]}: such files are not read in parts; save it as Parquet or CSV, for example "
            "with pandas or polars"
        )
    if _is_svmlight(paths[0]):
        return open_svmlight(paths, request, n_features, zero_based)
    return open_tables(paths, request)


def _load_csr(path: Path) -> Any:
    try:
        return sp.load_npz(path).tocsr()
    except (ValueError, OSError, KeyError) as wrong:
        raise DataFileError(
            f"{path}: not a sparse matrix that scipy.sparse.save_npz wrote ({wrong}); save X as "
            ".npy, or pass arrays"
        ) from wrong


def read_names(path: Path) -> tuple[list[str] | None, int]:
    """Return the names of a table's columns, if it has a header, and how many columns it has.

    Of svmlight text, whose labels always come first, that is None and 0.
    """
    ending = extension_of(path)
    if ending in (".parquet", ".pq"):
        names = table_names(FileStamp.of(path))
        return names, len(names)
    if _is_svmlight(path):
        return None, 0
    start = read_start(FileStamp.of(path), None)
    return start.names, start.width


def _is_svmlight(path: Path) -> bool:
    with open_source(path) as opened:
        return kind_of(opened) == "svmlight"


# ------------------------------------------------------------------- open


def open(
    what: Any,
    y: Any = None,
    *,
    label: str | int | None = None,
    weight: Any = None,
    columns: Sequence[str | int] | None = None,
    rows: int | None = None,
    memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    client: Any = None,
    n_features: int | None = None,
    zero_based: bool = False,
) -> RowSource:
    r"""Open labelled rows that may be larger than memory, wherever they are.

    What is opened is a description of rows in parts, which are read when they are needed, again and
    again. Estimators that work on blocks of rows take it in place of X and y.

    Parameters
    ----------
    what : array, CSR, frame, path, list of paths, iterable, callable or Dask collection
        - *In memory*: an array, a CSR matrix, a frame of pandas, polars or pyarrow.
        - *Arrays on disk*: a ``numpy.memmap``, the path of a ``.npy`` file, or of an ``.npz`` file
          that ``scipy.sparse.save_npz`` wrote (this one is loaded).
        - *Files*: a path, a pattern (``"part-*.parquet"``), a folder, or a list of these, of one
          kind: Parquet (parts are row groups), svmlight text (parts are ranges of bytes), or tables
          such as CSV with numbers in all columns but the label. Tables and packed files are read
          once, and go to a scratch folder (``tempfile.gettempdir()``) that is removed with the
          source; they cannot be read on a cluster. ``part-2`` comes before ``part-10``.
        - *Chunks*: a list of tuples ``(X, y)`` or ``(X, y, weight)``, or of callables that return
          such; an object that can be iterated over again and again and gives the same tuples each
          time; or a callable that returns a new iterator. What can be iterated over only once, such
          as a generator, goes to a scratch folder at once.
        - *Dask*: an array, a frame, or a list of delayed partitions, each of which computes to a
          tuple.
    y : array, path of a .npy file or Dask collection, optional
        The labels or targets of rows that are arrays or frames.
    label : str or int, optional
        The column of files and frames that holds the labels: its name, or its number from 1 (-1 is
        the last). Without y and label there are no labels, as for prediction.
    weight : str, or array, optional
        The column that holds the weights of rows; or the weights, for rows that are arrays.
    columns : list of str or int, optional
        The columns of files and frames that X is made of; by default, all but label and weight.
    rows : int, optional
        The most rows in a part, if the kind of rows allows to choose (for svmlight text, about).
        By default parts have 32 MB at most, and a sixteenth of ``memory``.
    memory : int or str, optional
        Bytes that rows and what belongs to them may take: a number, or ``"2GB"``, ``"512MiB"``.
        Python, its libraries and compiled loops come on top: some 200 MB.
    checkpoint : path, optional
        A folder to which fits are saved now and then, and from which they go on.
    client : distributed.Client or str, optional
        The Dask cluster that works on the rows, or the address of its scheduler.
    n_features : int, optional
        The number of columns of svmlight text; by default, the text is read once to find out.
    zero_based : bool, default False
        Whether indices of svmlight text count from 0.

    Returns
    -------
    RowSource
        ``len`` is the number of parts, ``load(part)`` reads one, ``shape`` has the number of rows,
        or None if it is not known yet, and of columns.

    Raises
    ------
    DataFileError
        A file or a part is not what it should be; the message names it. Parts are checked whenever
        they are read: columns, types, finite numbers, a label for each row.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X, y = np.arange(10.0).reshape(5, 2), np.array(["no", "no", "yes", "yes", "yes"])
    >>> source = mm.data.open(X, y, rows=2)
    >>> source
    <RowSource: array, 5 rows x 2 columns in 3 parts, float64 dense, labelled>
    >>> part = source.load(2)
    >>> part.X.tolist(), part.y.tolist()
    ([[8.0, 9.0]], ['yes'])
    """
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise ValueError(f"rows={rows!r} must be a whole number from 1 on, or None")
    if y is not None and label is not None:
        raise ValueError("y= and label= are both given; labels are in one of them")
    options = BlockOptions(memory, checkpoint, client)  # type: ignore[arg-type]
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} must be a list of columns")
    request = Request(y, label, weight, columns, rows, options)
    if is_path(what) or (_is_list(what) and len(what) and all(map(is_path, what))):
        return _open_files(what, request, n_features, zero_based)
    return _open_object(what, request)


def _open_object(what: Any, request: Request) -> RowSource:
    if module_root(what) == "polars" and type(what).__name__ == "LazyFrame":
        raise TypeError("a polars LazyFrame has no rows yet; collect() it, or sink_parquet() it")
    known: list[tuple[Callable[[Any], bool], Callable[[Any, Request], RowSource]]] = [
        (lambda one: isinstance(one, RowSource), _reopen),
        (is_dask, DaskSource),
        (is_frame, FrameSource),
        (lambda one: isinstance(one, np.ndarray) or sp.issparse(one), ArraySource),
        (_is_list, _open_list),
        (
            lambda one: hasattr(one, "__array__"),
            lambda one, asked: ArraySource(np.asarray(one), asked),
        ),
        (_is_sequence, lambda one, asked: SequenceSource(one, asked, type(one).__name__)),
        (lambda one: hasattr(one, "__iter__") and iter(one) is one, spool),
        (lambda one: hasattr(one, "__iter__") or callable(one), IterableSource),
    ]
    for is_such, opener in known:
        if is_such(what):
            return opener(what, request)
    raise TypeError(
        f"rows cannot be opened in a {type(what).__name__}; pass an array, a frame, paths of "
        "files, an iterable of (X, y), or Dask collections"
    )


def _is_list(what: Any) -> bool:
    return isinstance(what, list | tuple)


def _reopen(source: RowSource, request: Request) -> RowSource:
    known = dict.fromkeys(
        ("y", "label", "weight", "columns", "rows"), "it was said when the rows were opened"
    )
    request.refuse("rows that are open", **known)
    changes = {name: getattr(request.options, name) for name in ("memory", "checkpoint", "client")}
    return source.with_options(**{k: v for k, v in changes.items() if v is not None})


def _is_sequence(what: Any) -> bool:
    by_number = hasattr(what, "__len__") and hasattr(what, "__getitem__")
    return by_number and not isinstance(what, dict)


def _open_list(what: Any, request: Request) -> RowSource:
    chunks = all(callable(item) or is_frame(item) or _is_chunk(item) for item in what)
    return SequenceSource(what, request) if chunks and len(what) else ArraySource(what, request)


def _is_chunk(item: Any) -> bool:
    if not (isinstance(item, tuple) and len(item) in (2, 3)):
        return False
    X = item[0]
    return sp.issparse(X) or is_frame(X) or np.ndim(X) == 2
