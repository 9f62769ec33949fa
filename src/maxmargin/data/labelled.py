"""Labelled files: a table, or svmlight text, as rows that can be learnt from."""

import os
from pathlib import Path

import numpy as np

from maxmargin.data.columns import Labelled, prepare_table
from maxmargin.data.layout import TASKS, Layout
from maxmargin.data.svmlight import read_svmlight
from maxmargin.data.table import find_label, read_table
from maxmargin.data.tables import kind_of
from maxmargin.data.text import open_source
from maxmargin.errors import DataFileError


def read_labelled(
    path: str | os.PathLike[str],
    label: str | int | None = None,
    *,
    zero_based: bool = False,
    task: str | None = None,
) -> Labelled:
    r"""Read a labelled file: a table (CSV, TSV, JSON lines, Parquet, …) or svmlight (LIBSVM) text.

    The name's ending decides (``.svm .libsvm .svmlight``, ``.csv``, ``.tsv``, ``.jsonl .ndjson``,
    ``.parquet``, ``.arrow .feather``, ``.arff``), the content where it does not; ``.xz``, ``.gz``,
    ``.bz2`` and ``.zst`` are unpacked on the way. Text is UTF-8, UTF-16 or UTF-32 with a mark at
    its start, or else Windows-1252. Tables are read by pyarrow: ``pip install maxmargin[tables]``.

    **Tables** have commas, semicolons, tabs, bars or spaces between their cells, and may have a
    header. JSON has one record per line. What is in a column is decided over all of its cells:

    - *Numbers* stay numbers, also integer codes. Thousands may be separated (``1,234``, ``1 234``,
      ``1'234``), decimal commas, percent signs and one sign of a currency are understood.
    - *Dates and times* (``2020-12-31``, ``31/12/2020 18:00``, ``31 Dec 2020``) become days since
      1970, times of day become hours. If no date of a column tells whether day or month comes
      first, the column is refused.
    - *Words*, also yes and no, stay words; then X is an array of objects with the columns of
      numbers first, and ``prepare`` makes a column of 0 and 1 for each word.
    - *Missing cells* are empty or say NA, N/A, NaN, null, None, ``?``, ``-`` or ``.``; ``prepare``
      puts the median in their place, or counts them as one more word. Rows without a label are
      left out.
    - *Left out* are columns that are empty or, from ten rows on, have one value only, are words
      that differ in most rows, or number or name the rows (whole numbers that count up or fill a
      range; or a name such as ``id``, and hardly a value twice).

    Columns of *Parquet*, Arrow, JSON and ARFF files have types: numbers, decimals and booleans are
    numbers, dates and times as above, and texts are judged like cells. Others, such as lists, are
    refused.

    ``prepare`` is not fitted: put it first in a pipeline, so that medians and words come from the
    training rows only. ``remarks`` says what was done.

    **Svmlight text** is read strictly, as by :func:`read_svmlight`: finite numbers, with indices
    that ascend and count from 1, or from 0 if ``zero_based`` says so.

    Parameters
    ----------
    path : path
        The file.
    label : str or int, optional
        The label column of a table: its name, or its number from 1 (-1 is the last). By default the
        column named label or target, else class, y, outcome, diagnosis, species or survived (in any
        case), else the last one. If the last one is a measurement (see ``task``), and there is one
        other column that looks like classes and has words, that one is taken with a warning, unless
        the last one is called price, cost, value, amount, sales, revenue, salary, income, charges,
        rent, count, cnt, medv, mpg, yield or score; in a table without a header, the only or first
        column that looks like classes is taken. If the last one cannot be a label, since it names
        rows or has one value only, this goes for it as well, or the label must be named. In
        svmlight text the label always comes first.
    zero_based : bool, default False
        Whether the indices of svmlight text count from 0. By default they count from 1, and an
        index 0 is refused.
    task : {None, "classification", "regression"}, default None
        What the labels are for. For regression they are read as numbers, in any notation that
        features may have, and words are refused; the last column is the label, if none has one of
        the names. None: regression if labels are numbers with fractions, or many different whole
        numbers: more than 20 (in a small table, more than half of the rows, and 5) that do not
        count classes (0, 1, 2, … or 1, 2, 3, … without a gap) and have fewer than ten rows each on
        average, or are more than 100. Anything else is a class.

    Returns
    -------
    Labelled
        ``X``, ``y``, ``feature_names``, ``label_name``, ``format``; ``numbers`` and ``numbered``,
        where each row is in the file; ``prepare``, a transformer to put before the model, or None;
        ``remarks``; and ``layout``, by which :func:`read_rows` reads later files.

    Raises
    ------
    DataFileError
        The content is not what the format allows; the message has the line or the column, and the
        way out.
    OSError
        There is no such file, or it may not be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin.data import read_labelled
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "irises.csv")
    ...     _ = path.write_text("length,width,class\n5.1,3.5,setosa\n6.2,2.9,versicolor\n")
    ...     irises = read_labelled(path)
    >>> irises.X.tolist(), irises.y.tolist(), irises.feature_names
    ([[5.1, 3.5], [6.2, 2.9]], ['setosa', 'versicolor'], ['length', 'width'])

    With words and a missing cell, ``prepare`` goes before the model:

    >>> from sklearn.pipeline import make_pipeline
    >>> from maxmargin import LinearSVC
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("age,city,label\n31,Rome,a\n,Paris,b\n47,Rome,a\n52,Oslo,b\n")
    ...     people = read_labelled(path)
    >>> people.remarks[0]
    "The words of column 'city' become 3 columns of 0 and 1."
    >>> model = make_pipeline(people.prepare, LinearSVC()).fit(people.X, people.y)
    >>> model[0].get_feature_names_out(people.feature_names).tolist()
    ['age', 'missingindicator_age', 'city_Oslo', 'city_Paris', 'city_Rome']
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {TASKS}, not {task!r}")
    path = Path(path)
    with open_source(path) as opened:
        kind = kind_of(opened)
    if kind == "svmlight":
        return _read_svmlight(path, label, zero_based, task)
    table = read_table(path, label)
    if table.width < 2:
        raise DataFileError(
            f"{path}: only one column; a table needs a label and at least one feature, separated "
            "by commas, semicolons, tabs or spaces"
        )
    return prepare_table(table, find_label(table.names, table.width, label, table.file), task)


def _read_svmlight(
    path: Path, label: str | int | None, zero_based: bool, task: str | None
) -> Labelled:
    if label is not None:
        raise DataFileError(
            f"{path}: svmlight text has its label first on each line; "
            f"leave out label={label!r}, or convert the file to CSV"
        )
    X, y, _, numbers = read_svmlight(path, zero_based=zero_based)
    if not X.shape[1]:
        raise DataFileError(f"{path}: no features, only labels; a row is 'label index:value …'")
    kind = f"svmlight text, indices from {0 if zero_based else 1}"
    layout = Layout("svmlight", X.shape[1], task, zero_based=zero_based)
    y = y.astype(np.float64) if task == "regression" else y
    return Labelled(X, y, None, None, kind, numbers, "line", None, (), layout)
