"""From svmlight text to a table and back: numbers, to the bit."""

import os
from pathlib import Path

import numpy as np

from maxmargin.data.opening import open as open_rows
from maxmargin.data.opening import read_names
from maxmargin.data.svmlight import read_svmlight, write_svmlight
from maxmargin.data.table import find_label
from maxmargin.data.tables import kind_of, require_pyarrow
from maxmargin.data.text import SVMLIGHT_ENDINGS, open_source
from maxmargin.errors import DataFileError
from maxmargin.runtime.atomic_write import write_atomically

_MOST_COLUMNS = 100_000  # of svmlight text that becomes a table
_MOST_ZEROS = 10**8  # cells of a table, if hardly one in a hundred is not 0
_CELLS = 1 << 20  # of a table that are written at a time


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    zero_based: bool = False,
) -> int:
    r"""Convert svmlight text to a table (CSV, Parquet), or a table to svmlight text.

    The name of the target decides (``.svm .libsvm .svmlight``, ``.csv``, ``.parquet``). Numbers are
    the same to the bit, and the target is complete or as it was before. Columns of a table made of
    svmlight text are called ``label, f1, f2, …``, and all zeros are written. A table that becomes
    svmlight text (CSV, TSV, Parquet) may only have numbers, and no gaps. Memory holds all rows. For
    other conversions use pandas, polars or pyarrow.

    Parameters
    ----------
    source : path
        The file.
    target : path
        The file to write.
    label : str or int, optional
        The label column of a table: its name, or its number from 1. By default the column that is
        named so, as for :func:`read_labelled`, or else the last one.
    zero_based : bool, default False
        Whether the indices of svmlight text, of source or target, count from 0.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    DataFileError
        The source cannot be read, or not be written in the target's format; the message has the
        line, the column and the way out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin.data import convert
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, text = pathlib.Path(folder, "a.csv"), pathlib.Path(folder, "a.svm")
    ...     _ = table.write_text("x1,x2,label\n0.5,0,1\n0,-2,-1\n")
    ...     print(convert(table, text))
    ...     print(text.read_text(), end="")
    2
    1 1:0.5
    -1 2:-2
    """
    source, target = Path(source), Path(target)
    with open_source(source) as opened:
        from_svmlight = kind_of(opened) == "svmlight"
    ending = target.suffix.lower()
    if ending not in ((".csv", ".parquet") if from_svmlight else SVMLIGHT_ENDINGS):
        kind = "svmlight text" if from_svmlight else "a table"
        wanted = ".csv or .parquet" if from_svmlight else ".svm, .libsvm or .svmlight"
        raise DataFileError(
            f"{target}: {source} is {kind}, and the name of what it is converted to must end with "
            f"{wanted}; for other formats use pandas, polars or pyarrow"
        )
    if not from_svmlight:
        return _write_svmlight(source, target, label, zero_based)
    if label is not None:
        raise DataFileError(
            f"{source}: svmlight text has its label first on each line; leave out label={label!r}"
        )
    return _write_table(source, target, zero_based)


def _write_svmlight(source: Path, target: Path, label: str | int | None, zero_based: bool) -> int:
    names, width = read_names(source)
    if width < 2:
        raise DataFileError(f"{source}: only one column; svmlight text needs a label and a feature")
    found = find_label(names, width, label, str(source))
    at = width - 1 if found is None else found
    parts = list(open_rows(source, label=names[at] if names else at + 1))
    y = np.concatenate([part.y for part in parts])
    write_svmlight(target, np.vstack([part.X for part in parts]), y, zero_based=zero_based)
    return len(y)


def _write_table(source: Path, target: Path, zero_based: bool) -> int:
    require_pyarrow(str(target))
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    X, y, _, _ = read_svmlight(source, zero_based=zero_based)
    rows, features = map(int, X.shape)
    cells = rows * features
    if not features:
        raise DataFileError(f"{source}: no features, only labels; a row is 'label index:value …'")
    if features > _MOST_COLUMNS or (cells > _MOST_ZEROS and 100 * X.nnz < cells):
        raise DataFileError(
            f"{source}: a table of these rows would have {features:,} columns and {cells:,} cells, "
            "nearly all of them 0; keep it as svmlight text, which every reader here takes"
        )
    kinds = [pa.array(y[:0]).type, *[pa.float64()] * features]
    names = ["label", *(f"f{j}" for j in range(1, features + 1))]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    step = max(1, _CELLS // features)

    def write(draft: Path) -> None:
        options = arrow_csv.WriteOptions(quoting_header="none")
        with (
            pq.ParquetWriter(draft, schema)
            if target.suffix.lower() == ".parquet"
            else arrow_csv.CSVWriter(draft, schema, write_options=options)
        ) as writer:
            for start in range(0, rows, step):
                part, labels = X[start : start + step], y[start : start + step]
                dense = np.zeros(part.shape)  # toarray() would add values to 0, which makes 0 of -0
                dense[part.tocoo().coords] = part.data
                columns = [pa.array(labels), *map(pa.array, dense.T.copy())]
                writer.write_batch(pa.record_batch(columns, schema=schema))

    write_atomically(target, write)
    return rows
