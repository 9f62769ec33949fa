"""From a labelled file, a table or svmlight text, to rows that can be learnt from.

Which column is the label, which ones are left out, and how the others become numbers. Only what
needs no training is done here. What is learnt from rows, such as medians and lists of words, is
left to a scikit-learn transformer that is not fitted yet.
"""

import os
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.layout import TASKS, FeatureColumn, LabelColumn, Layout
from maxmargin.data.notation import SENTENCES, Column, resembles_value
from maxmargin.data.svmlight import read_svmlight
from maxmargin.data.table import Table, find_label, read_table
from maxmargin.data.tables import LABEL_NAMES, kind_of
from maxmargin.data.text import open_source
from maxmargin.errors import DataFileError, warn

# A last column of numbers with one of these names is the label, although another has classes; and
# many whole numbers are then a quantity to be predicted, although they could count classes.
QUANTITY_NAMES = (
    "price", "cost", "value", "amount", "sales", "revenue", "salary", "income", "charges", "rent",
    "count", "cnt", "medv", "mpg", "yield", "score", "points", "quantity", "demand", "rings",
)  # fmt: skip
FEWEST_ROWS = 10  # with fewer rows, chance makes columns constant, or different in every row
CLASSES = 30  # a column with more different values is not taken for a label unasked
MANY_NUMBERS = 20  # more different whole numbers may be measurements
FEW_ROWS = 10  # of each number on average: fewer are a sign of measurements
MOST_CODES = 100  # more different numbers that do not count classes are measurements
MANY_MISSING = 0.1  # share of missing cells from which being missing is a feature
RARE = 20  # a value of fewer rows may be absent from a training part
DENSE_COLUMNS = 300
DENSE_ENTRIES = 10**8
SHOWN = 5  # names in a remark
_FILL_ROWS = 4096  # of X at a time, so that they stay in a core's cache

_says_id = re.compile(
    r"(?i:(?:.*[_\s.-])?(?:id|index|idx|row|row[_\s]?(?:id|no|num|number)|uuid|guid|key|#)"
    r"|unnamed: \d+)|.*[a-z](?:Id|ID)"
).fullmatch


def number_equal_rows(X: Any) -> Any:
    """Return a number for each row of X as read, the same for equal rows; None for plain numbers.

    Preparation may make different rows equal, since a median takes the place of missing cells.

    Examples
    --------
    >>> number_equal_rows(np.array([[1.0, "a"], [np.nan, "a"], [1.0, "a"]], dtype=object)).tolist()
    [0, 1, 0]
    """
    if not isinstance(X, np.ndarray) or (X.dtype != object and not np.isnan(X).any()):
        return None
    known: dict[Any, int] = {}
    rows = (tuple(None if cell != cell else cell for cell in row) for row in X.tolist())
    return np.array([known.setdefault(row, len(known)) for row in rows])


class Labelled(NamedTuple):
    """Labelled rows, as read from a file.

    Attributes
    ----------
    X : array or sparse array of shape (n_samples, n_features)
        float64: an array for tables, a CSR array for svmlight text. An object array, if a column
        has words: floats with NaN for missing cells, strings with None for missing ones.
    y : array of shape (n_samples,)
        One label per row: integers where all are, else floats, else strings.
    feature_names : list of str or None
        The names of X's columns, if the file has names, or if not all of its columns are in X.
    label_name : str or None
        The label column's name, where there is a header.
    format : str
        What the file turned out to be, in words.
    numbers : array of int64 of shape (n_samples,)
        Where each row is in the file.
    numbered : str
        What ``numbers`` counts: each "line" of a text from 1, as editors do, the header included;
        or each "row" of a file whose columns have types from 0.
    prepare : transformer or None
        None if X can be learnt from as it is, else a scikit-learn transformer, not fitted, that
        makes numbers of it; ``prepare.get_feature_names_out(feature_names)`` names its columns.
    remarks : tuple of str
        What was done to the file, in sentences.
    layout : Layout or None
        How the columns of the file became X, for :func:`maxmargin.data.read_rows` of later files.
    """

    X: Any
    y: Any
    feature_names: list[str] | None
    label_name: str | None
    format: str
    numbers: Any = None
    numbered: str = "row"
    prepare: Any = None
    remarks: tuple[str, ...] = ()
    layout: Layout | None = None


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
    its start, or else Windows-1252. Tables are read by pyarrow: ``pip install pyarrow``.

    **Tables** have commas, semicolons, tabs, bars or spaces between their cells, and may have a
    header. JSON has one record per line. What is in a column is decided over all of its cells:

    - *Numbers* stay numbers, also integer codes. Thousands may be separated (``1,234``, ``1 234``,
      ``1'234``), decimal commas, percent signs and one sign of a currency are understood.
    - *Dates* (``2020-12-31``, ``31/12/2020 18:00``) become days since 1970, times of day become
      hours. If no date tells whether day or month comes first, the column is refused.
    - *Words*, also yes and no, stay words; then X is an array of objects with the columns of
      numbers first, and ``prepare`` makes a column of 0 and 1 for each word.
    - *Missing cells* are empty or say NA, N/A, NaN, null, None, ``?``, ``-`` or ``.``; ``prepare``
      puts the median in their place, or counts them as one more word. Rows without a label are
      left out.
    - *Left out* are columns that are empty or, from ten rows on, have one value only, are words
      that differ in most rows, or number or name the rows.

    Columns of *Parquet*, Arrow, JSON and ARFF files have types, and texts in them are judged like
    cells. ``prepare`` is not fitted: put it first in a pipeline, so that medians and words come
    from the training rows only. ``remarks`` says what was done. **Svmlight text** is read strictly,
    as by :func:`read_svmlight`.

    Parameters
    ----------
    path : path
        The file.
    label : str or int, optional
        The label column of a table: its name, or its number from 1 (-1 is the last). By default the
        column named label or target, else class, y, outcome, diagnosis, species or survived (in any
        case), else the last one. If the last one cannot be a class, the only other column that
        looks like classes and has words is taken with a warning, unless the last one is called
        price, cost, value or so; without a header, the only or first column that looks like
        classes. If that decides nothing, the last one is predicted as a number, or the label must
        be named. In svmlight text the label always comes first.
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
    return _prepare_table(table, find_label(table.names, table.width, label, table.file), task)


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


def _prepare_table(table: Table, named: int | None, task: str | None = None) -> Labelled:
    """Return the rows of a table, and how to make numbers of them; its label may be named."""
    label, remarks = _find_label_column(table, named, task)
    y, rows, notation = _read_labels(table, label, task)
    if task is None and y.dtype.kind == "f" and resembles_measurement(y):
        task = "regression"
    columns = {j: table.column(j) for j in range(table.width) if j != label}
    if not rows.all():
        columns = {j: one._replace(values=one.values[rows]) for j, one in columns.items()}
        lines = table.numbers[~rows].astype(str).tolist()
        sentence = f"{len(lines)} rows have no label and are left out ({table.numbered}s {{}})."
        if len(lines) == 1:
            sentence = f"The row in {table.numbered} {{}} has no label and is left out."
        remarks.append(sentence.format(listed(lines)))
    kept, left_out = _choose_columns(table, columns)
    plan = _Plan({j: columns[j] for j in kept})
    names, renamed = _name_columns(table, plan, len(kept) < len(columns))
    remarks = [
        *table.remarks,
        *remarks,
        *_explain_notations(table, {label: notation}),
        *renamed,
        *left_out,
        *_explain_notations(table, {j: plan.columns[j].notation for j in sorted(plan.columns)}),
        *_explain_steps(table, plan),
    ]
    layout = Layout(
        "table",
        n_features=len(kept),
        task=task,
        width=table.width,
        names=tuple(table.names) if table.names else None,
        label=LabelColumn(label, _LABEL_KINDS[y.dtype.kind], notation),
        columns=tuple(
            FeatureColumn(j, column.words is not None, column.notation)
            for j, column in plan.columns.items()
        ),
        delimiter=table.delimiter,
    )
    return Labelled(
        X=fill_rows([column.cells() for column in plan.columns.values()], plan.has_words),
        y=y,
        feature_names=names,
        label_name=table.names[label] if table.names else None,
        format=table.format,
        numbers=table.numbers[rows],
        numbered=table.numbered,
        prepare=plan.transformer(),
        remarks=tuple(remarks),
        layout=layout,
    )


_LABEL_KINDS = {"i": "integers", "f": "numbers", "U": "words"}


# ------------------------------------------------------------------- the label


def resembles_measurement(y: Any) -> bool:
    """Tell whether labels are numbers to be predicted, and not classes.

    They are if they have fractions, or if there are many different whole numbers: more than 20 (in
    a small table, more than half of the rows, and 5) which do not count classes (0, 1, 2, … or 1,
    2, 3, … without a gap) and have fewer than ten rows each on average, or are more than 100.

    Examples
    --------
    >>> resembles_measurement(np.arange(60) % 30), resembles_measurement(np.arange(60) % 30 * 7)
    (False, True)
    """
    return y.dtype.kind in "iuf" and _are_measured(y)


def _are_measured(values: Any) -> bool:
    n = len(values)
    if np.any(values != np.trunc(values)):
        return True
    different = np.unique(values)
    count = len(different)
    if count <= np.clip(n / 2, 5, MANY_NUMBERS):
        return False
    gapless = different[0] in (0, 1) and different[-1] - different[0] == count - 1
    return not (gapless and count <= n / 2) and (count > n / FEW_ROWS or count > MOST_CODES)


class _Kind(NamedTuple):
    """What a column looks like, if it were the label."""

    classes: bool  # few different values, each in several rows
    words: bool
    quantity: bool  # a measurement that is no date
    unfit: str | None  # why it is no class, if it is a measurement or a name, or says nothing


def _kind(table: Table, index: int) -> _Kind:
    try:
        column = table.column(index)
    except DataFileError:  # which is raised if the column is used
        return _Kind(False, True, False, None)
    n, too_many = len(table.numbers), "has too many different values for a class"
    measured = column.words is None and _are_measured(column.values[~column.missing])
    named = bool(table.names and _says_id(table.names[index]))
    moments = not {"dates", "times"}.isdisjoint(column.notation)
    quantity = measured and not moments and not _numbers_rows(column, named)
    words = column.words is not None or (bool(column.notation) and table.has_texts(index))
    if measured and not words:
        return _Kind(False, False, quantity, too_many)
    different, unfit = column.distinct, None
    if different > n / 2:
        unfit = too_many
    elif different < 2:
        unfit = "has one value only" if different else "is empty"
    return _Kind(2 <= different <= min(CLASSES, n / 2), words, quantity, unfit)


def _find_label_column(table: Table, named: int | None, task: str | None) -> tuple[int, list[str]]:
    last = table.width - 1
    if named is not None:
        by_name = table.names and table.names[named].lower() in LABEL_NAMES
        found = f"Column {_shown(table, named)} is the label by its name, not the last column."
        return named, [found] if by_name and 0 < named < last else []
    why = f"No column is named {listed(LABEL_NAMES[:4], 'or')}"
    why = why if table.names else "The file has no header"
    taken = [f"{why}, so the last column, {_shown(table, last)}, is taken as the label."]
    if task == "regression":
        return last, taken
    if len(table.numbers) < FEWEST_ROWS:
        return last, []
    kinds = [_kind(table, j) for j in range(table.width)]
    others = [j for j in range(last) if kinds[j].classes]
    if kinds[last].unfit and others:
        clear = _is_clear(table, others, kinds)
        if task is None and not clear and kinds[last].quantity:
            return last, taken
        return _take_other(table, others, f"{_shown(table, last)}, {kinds[last].unfit}", clear)
    words = [j for j, kind in enumerate(kinds) if kind.words]
    if not table.names and kinds[0].classes and words == [0]:
        raise DataFileError(
            f"{table.file}: the first column has words and the last one numbers, and either could "
            "be the label; say which one it is (label=1 or label=-1; on the command line --label 1 "
            "or --label -1)"
        )
    return last, taken if others else []


def _is_clear(table: Table, others: list[int], kinds: list[_Kind]) -> bool:
    # With a header the only one that looks like classes, if it has words and the last column's
    # name is not that of a quantity; without a header the only or first one.
    only = len(others) == 1
    if table.names:
        quantity = table.names[-1].lower() in QUANTITY_NAMES
        return only and kinds[others[0]].words and not quantity
    return only or others[0] == 0


def _take_other(table: Table, others: list[int], last: str, clear: bool) -> tuple[int, list[str]]:
    if not clear:
        names = [table.names[j] if table.names else str(j + 1) for j in others]
        raise DataFileError(
            f"{table.file}: the last column, {last}; say which column is the label (label=…, or "
            f"--label), for example {listed(names[:SHOWN], 'or')}, or -1 if it is the last one"
        )
    found = _shown(table, others[0])
    message = f"Column {found} is taken as the label, since the last column, {last}."
    warn(f"{table.file}: {message} To choose another: label=….")
    return others[0], [message]


def _read_labels(table: Table, index: int, task: str | None) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the labels of the rows that have one, a mask of those rows, and the notation."""
    notation: tuple[str, ...] = ()
    if task == "regression":
        column = table.column(index)
        if column.words is not None:
            raise DataFileError(_explain_words(table, index, column.words))
        rows, notation = ~column.missing, column.notation
        y = column.values[rows]
    else:
        y, rows = table.labels(index)
    if not rows.any():
        raise DataFileError(
            f"{table.file}: {table.describe(index)} is the label, and it is empty in every row; "
            "name another column (label=…, or --label)"
        )
    if task != "regression" and not table.has_texts(index) and table.column(index).notation:
        return _read_labels(table, index, "regression")  # dates, for example
    if task is None and y.dtype.kind == "U":
        try:
            table.column(index)
        except DataFileError:  # all but a few are numbers
            if len(np.unique(y)) > len(y) / 2:
                raise
        if _kind(table, index).quantity:
            return _read_labels(table, index, "regression")  # such as prices with their currency
    return y, rows, notation


def _explain_words(table: Table, index: int, found: list[str]) -> str:
    """Return what is wrong with the words of a column that should be the label of a regression."""
    words = [text for text in found if not resembles_value(text)]
    text = (words or found)[0]
    trouble = f"{text!r} is not a number" if words else "they are not all written in one way"
    return (
        f"{table.place(table.find(index, text))}: {table.describe(index)} is the label of a "
        f"regression, and needs numbers, but {trouble}; correct it, name another column (label=…, "
        "or --label), or classify"
    )


# ------------------------------------------------------------------- columns left out


_LEFT_OUT = {
    "row": "Left out {}: values that differ in every row name rows but do not describe them.",
    "text": "Left out {}: different words in most rows are too many to learn from.",
    "constant": "Left out {}: one value only.",
    "empty": "Left out {}: no values.",
}


def _choose_columns(table: Table, columns: dict[int, Column]) -> tuple[list[int], list[str]]:
    reasons = {j: _reason_to_leave_out(table, j, column) for j, column in columns.items()}
    kept = [j for j, reason in reasons.items() if reason is None]
    counters = [j for j, reason in reasons.items() if reason == "row" and columns[j].words is None]
    if not kept and counters:
        named = _name(table, counters)
        return counters, [f"Kept {named}, which only counts rows: there is nothing else."]
    remarks = [
        sentence.format(_name(table, group))
        for reason, sentence in _LEFT_OUT.items()
        if (group := [j for j in columns if reasons[j] == reason])
    ]
    if not kept:
        raise DataFileError(
            f"{table.file}: no column is left to learn from. {' '.join(remarks)} Make numbers of "
            "texts first, for example with scikit-learn's TfidfVectorizer; or choose another label "
            "column (label=…, on the command line --label)."
        )
    return kept, remarks


def _reason_to_leave_out(table: Table, index: int, column: Column) -> str | None:
    name = table.names[index] if table.names else "-"
    n, present = len(column.values), int(np.count_nonzero(~column.missing))
    unnamed = not name or name.lower().startswith("unnamed: ")
    if not present:
        return "empty"
    if n < FEWEST_ROWS and not unnamed:
        return None
    if present == n and bool(np.all(column.values == column.values[0])):
        return "constant" if n >= FEWEST_ROWS else None
    if column.words is None:
        return "row" if _numbers_rows(column, unnamed or _says_id(name) is not None) else None
    if column.distinct == present > 1:
        return "row"
    return "text" if column.distinct > max(MANY_NUMBERS, present / 2) else None


def _numbers_rows(column: Column, says_so: bool) -> bool:
    """Tell whether whole numbers count rows, or are said to name them and hardly ever repeat."""
    values = column.values[~column.missing]
    if column.notation or np.any(values != np.trunc(values)):
        return False
    span = values.max() - values.min() + 1
    if span < 0.9 * len(values) or (not says_so and span > 2 * len(values)):
        return False
    if says_so:
        return column.distinct >= 0.9 * len(values)
    ascends = bool(np.all(np.diff(values) > 0))
    return column.distinct == len(values) and (span == len(values) or ascends)


# ------------------------------------------------------------------- columns made numbers


_STEPS = ("numbers", "gaps", "two_words", "words")  # of a preparation, in the order of its columns


def _step(column: Column) -> str:
    """Return the step of the preparation that a column goes through, if there are words."""
    if column.words is None:
        return "gaps" if np.mean(column.missing) >= MANY_MISSING else "numbers"
    counts = np.bincount(column.values + 1)  # the first of cells that are missing
    # Two words, both in enough rows to be in every training part.
    two = np.count_nonzero(counts) == 2 and counts[counts > 0].min() >= RARE
    return "two_words" if two else "words"


def fill_rows(columns: Sequence[Any], words: bool) -> Any:
    """Return columns as an array: of floats row by row, or of objects column by column."""
    shape = len(columns[0]), len(columns)
    X = np.empty(shape, object, order="F") if words else np.empty(shape)
    step = shape[0] if words else _FILL_ROWS
    for begin in range(0, shape[0], step):
        part = slice(begin, begin + step)
        for j, values in enumerate(columns):
            X[part, j] = values[part]
    return X


class _Plan:
    """Which columns are prepared how, and in which order they stand in X."""

    def __init__(self, columns: dict[int, Column]) -> None:
        self.steps = {j: _step(column) for j, column in columns.items()}
        self.has_words = any(column.words is not None for column in columns.values())
        # Columns of one step stand together, so that a slice of any length prints in full.
        order = sorted(columns, key=lambda j: self.has_words and _STEPS.index(self.steps[j]))
        self.columns = {j: columns[j] for j in order}
        self.gaps = [j for j, column in columns.items() if column.missing.any()]
        self.missing = "missing"  # the word for none
        while any(self.missing in (column.words or ()) for column in columns.values()):
            self.missing = f"({self.missing})"

    def width(self, index: int) -> int:
        """Return how many columns a column becomes if all rows are trained on."""
        column = self.columns[index]
        return 1 if column.words is None else column.distinct + (index in self.gaps)

    def transformer(self) -> Any:
        """Return what makes numbers of the rows, not fitted; None if they are numbers."""
        if not self.has_words and not self.gaps:
            return None
        # Imported here: most programs that import maxmargin read no such table.
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        median = SimpleImputer(strategy="median", keep_empty_features=True)
        marked = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        if not self.has_words:
            return marked if "gaps" in self.steps.values() else median
        width = sum(map(self.width, self.columns))
        n = len(next(iter(self.columns.values())).values)
        wide = width > DENSE_COLUMNS or width * n > DENSE_ENTRIES
        form = {} if wide else {"sparse_output": False}
        two = OneHotEncoder(drop="if_binary", handle_unknown="ignore", **form)
        more = OneHotEncoder(handle_unknown="ignore", **form)
        named = SimpleImputer(missing_values=None, strategy="constant", fill_value=self.missing)
        parts, end = [], 0
        for step, part in zip(_STEPS, (median, marked, two, more), strict=True):
            members = [j for j in self.columns if self.steps[j] == step]
            start, end = end, end + len(members)
            if part in (two, more) and not set(self.gaps).isdisjoint(members):
                part = make_pipeline(named, part)
            parts += [(step, part, slice(start, end))] if members else []
        return ColumnTransformer(
            parts, sparse_threshold=0.3 if wide else 0, verbose_feature_names_out=False
        )


# ------------------------------------------------------------------- names and sentences


def _name_columns(
    table: Table, plan: _Plan, some_left_out: bool
) -> tuple[list[str] | None, list[str]]:
    """Return different names of the columns that are kept, and remarks on names that are new."""
    if not table.names:
        wanted = some_left_out or plan.has_words or plan.gaps
        return [f"column {j + 1}" for j in plan.columns] if wanted else None, []
    names: list[str] = []
    renamed: list[str] = []
    for j in plan.columns:
        given = table.names[j] or f"column {j + 1}"
        copies = (f"{given} ({k})" for k in count(2))
        name = given if given not in names else next(new for new in copies if new not in names)
        why = "its name is that of another column" if name != given else "it has no name"
        if name != table.names[j]:
            renamed.append(f"Column {j + 1} is called {name!r}, since {why}.")
        names.append(name)
    if len(renamed) > SHOWN:
        more = f"{len(renamed) - SHOWN} more columns without a name of their own got one."
        renamed = [*renamed[:SHOWN], more]
    columns = zip(names, plan.columns.values(), strict=True)
    words = [f"{name}_{word}" for name, column in columns for word in column.words or ()]
    if len({*names, *words}) < len(names) + len(words):  # such as a + b_c and a_b + c
        names = [f"{name} (column {j + 1})" for name, j in zip(names, plan.columns, strict=True)]
        renamed.append("Columns are called by name and number, since names alone are ambiguous.")
    return names, renamed


def _explain_notations(table: Table, notations: dict[int, tuple[str, ...]]) -> list[str]:
    found = [
        (sentence, [j for j, notation in notations.items() if not set(words).isdisjoint(notation)])
        for words, sentence in SENTENCES.items()
    ]
    return [sentence.format(_name(table, group)) for sentence, group in found if group]


def _explain_steps(table: Table, plan: _Plan) -> list[str]:
    columns = plan.columns
    two, words = ([j for j in sorted(columns) if plan.steps[j] == step] for step in _STEPS[2:])
    marked = [j for j in plan.gaps if plan.steps[j] == "gaps"]
    if marked and not plan.has_words:
        marked = plan.gaps  # one imputer for all columns marks all
    median = "Empty cells of {} ({} in all) are filled with the median of the training rows"
    found = [
        ("The two words of {} become 0 and 1.", two),
        (f"The words of {{}} become {sum(map(plan.width, words)):,} columns of 0 and 1.", words),
        (f"{median}.", [j for j in plan.gaps if columns[j].words is None and j not in marked]),
        (f"{median}, and columns of 0 and 1 mark them.", marked),
        ("Empty cells of {} ({} in all) count as one more word.",
         [j for j in plan.gaps if columns[j].words is not None]),
    ]  # fmt: skip
    return [
        sentence.format(_name(table, group), sum(columns[j].missing.sum() for j in group))
        for sentence, group in found
        if group
    ]


def _name(table: Table, group: list[int]) -> str:
    noun = "column" if len(group) == 1 else "columns"
    return f"{noun} {listed([_shown(table, j) for j in group])}"


def _shown(table: Table, index: int) -> str:
    name = table.names[index] if table.names else ""
    return repr(name) if name else str(index + 1)


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names in a row, of which the first are shown if there are many."""
    if len(names) > SHOWN + 1:
        names = [*names[:SHOWN], f"{len(names) - SHOWN} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
