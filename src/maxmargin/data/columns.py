"""From a table to rows that can be learnt from.

Which column is the label, which ones are left out, and how the others become numbers. Only what
needs no training is done here. What is learnt from rows, such as medians and lists of words, is
left to a scikit-learn transformer that is not fitted yet.
"""

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.cells import (
    NO_LABEL,
    NOTATIONS,
    CellError,
    Column,
    finite_number,
    is_infinite,
    label_array,
    plain_numbers,
    read_column,
    whole_numbers,
)
from maxmargin.data.table import LABEL_NAMES, Table
from maxmargin.errors import DataFileError

FEWEST_ROWS = 10  # with fewer rows, chance makes columns constant, or different in every row
CLASSES = 30  # a column with more different values is not taken for a label unasked
MANY_NUMBERS = 20  # more different numbers, if they are fractions, are measurements
VALUES = 30  # columns that a column of words becomes, at most
MANY_MISSING = 0.1  # share of missing cells from which being missing is a feature
RARE = 20  # a value of fewer rows may be absent from a training part
DENSE_COLUMNS = 300
DENSE_ENTRIES = 10**8
SHOWN = 5  # names in a remark

_says_id = re.compile(
    r"(?i:(?:.*[_\s.-])?(?:id|index|idx|row|row[_\s]?(?:id|no|num|number)|uuid|guid|key|#)"
    r"|unnamed: \d+)|.*[a-z](?:Id|ID)"
).fullmatch


class Labelled(NamedTuple):
    """Labelled rows, as read from a file."""

    X: Any
    """float64: an array for tables, a CSR array for svmlight text. An object array, if a column has
    words: floats with NaN for missing cells, strings with None for missing ones."""
    y: Any
    """One label per row: integers where all are, else floats, else strings."""
    feature_names: list[str] | None
    """The names of X's columns, if the file has names, or if not all of its columns are in X."""
    label_name: str | None
    """The label column's name, where there is a header."""
    format: str
    """What the file turned out to be, in words."""
    numbers: Any = None
    """int64: where each row is in the file."""
    numbered: str = "row"
    """What ``numbers`` counts: each "line" of a text from 1, as editors do, the header included;
    each "record" of JSON from 1; or each "row" from 0."""
    prepare: Any = None
    """None if X can be learnt from as it is, else a scikit-learn transformer, not fitted, that
    makes numbers of it; ``prepare.get_feature_names_out(feature_names)`` names its columns."""
    remarks: tuple[str, ...] = ()
    """What was done to the file, in sentences."""


def prepare_table(table: Table) -> Labelled:
    """Return the rows of a table, and how to make numbers of them."""
    label, remarks = _find_label_column(table)
    y, rows = _read_labels(table, label)
    if not rows.all():
        remarks = (*remarks, _without_label(table.numbers[~rows], table.numbered))
    features = [j for j in range(len(table.columns)) if j != label]
    columns = {j: _take_rows(_read_table_column(table, j), rows) for j in features}
    kept, left_out = _choose_columns(table, columns)
    columns = {j: columns[j] for j in kept}
    plan = _Plan(columns)
    names, renamed = _name_columns(table, plan.order, len(features) > len(kept) or plan.needed)
    if names and plan.names_collide(names):
        names = [f"{name} (column {j + 1})" for name, j in zip(names, plan.order, strict=True)]
        renamed.append("Columns are called by name and number, since names alone are ambiguous.")
    remarks = (*table.remarks, *remarks, *renamed, *left_out, *_explain_columns(table, columns))
    return Labelled(
        X=plan.rows(),
        y=y,
        feature_names=names,
        label_name=table.names[label] if table.names else None,
        format=table.format,
        numbers=table.numbers[rows],
        numbered=table.numbered,
        prepare=plan.transformer(),
        remarks=remarks,
    )


def _read_table_column(table: Table, index: int) -> Column:
    cells = table.columns[index]
    if isinstance(cells, np.ndarray):
        return Column(cells)
    try:
        return read_column(cells, table.delimiter)
    except CellError as wrong:
        place = table.file
        if wrong.cell is not None:
            place = table.place(next(i for i, c in enumerate(cells) if c.strip() == wrong.cell))
        raise DataFileError(f"{place}: {table.column(index)}: {wrong}") from wrong


def _take_rows(column: Column, rows: Any) -> Column:
    return column if rows.all() else column._replace(values=column.values[rows])


# ------------------------------------------------------------------- the label


def resembles_measurement(y: Any) -> bool:
    """Tell whether labels are many different numbers, as of a quantity, and not classes."""
    return y.dtype.kind in "iuf" and _are_measured(np.unique(y), len(y))


def _are_measured(different: Any, n: int) -> bool:
    """Tell whether the different numbers of n rows are those of a quantity."""
    fractions = bool(np.any(different != np.trunc(different)))
    return len(different) > MANY_NUMBERS and (fractions or len(different) > n / 2)


class _Kind(NamedTuple):
    """What a column looks like, if it were the label."""

    classes: bool  # few different values, each in several rows
    words: bool
    unfit: str | None  # why it is no label, if it is a measurement or a name, or says nothing


def _kind(column: Any) -> _Kind:
    n, words = len(column), False
    numbers = column if isinstance(column, np.ndarray) else plain_numbers(column)
    if numbers is not None:
        different = whole_numbers(np.unique(numbers[~np.isnan(numbers)]))
    else:
        texts = {text for cell in set(column) if (text := cell.strip()).lower() not in NO_LABEL}
        words = not all(map(finite_number, texts))
        different = np.arange(len(texts)) if words else np.unique(label_array(sorted(texts)))
    unfit = None
    if len(different) > max(MANY_NUMBERS, n / 2) or _are_measured(different, n):
        unfit = "has too many different values for a label"
    elif len(different) < 2:
        unfit = "has one value only" if len(different) else "is empty"
    classes = 2 <= len(different) <= min(CLASSES, n / 2) and different.dtype.kind != "f"
    return _Kind(classes, words, unfit)


def _find_label_column(table: Table) -> tuple[int, tuple[str, ...]]:
    """Return the label column, and a remark if another one could be meant."""
    last = len(table.columns) - 1
    if table.label is not None:
        return table.label, ()
    if len(table.numbers) < FEWEST_ROWS:
        return last, ()
    kinds = [_kind(column) for column in table.columns]
    others = [j for j in range(last) if kinds[j].classes]
    if kinds[last].unfit and others:
        return _instead_of_last(table, others, kinds)
    if (
        not table.names
        and kinds[0].classes
        and [k for k, kind in enumerate(kinds) if kind.words] == [0]
    ):
        raise DataFileError(
            f"{table.file}: the first column has words and the last one numbers, and either could "
            "be the label; say which one it is (label=1 or label=-1; on the command line --label 1 "
            "or --label -1)"
        )
    if not others:
        return last, ()
    why = f"No column is named {_or(LABEL_NAMES[:4])}" if table.names else "The file has no header"
    return last, (f"{why}, so the last column, {_shown(table, last)}, is the label.",)


def _instead_of_last(
    table: Table, others: list[int], kinds: list[_Kind]
) -> tuple[int, tuple[str, ...]]:
    """Return another column than the last, if it is clear which one."""
    why = f"the last column, {_shown(table, len(kinds) - 1)}, {kinds[-1].unfit}"
    chosen = others[0]
    only = len(others) == 1
    if not (only and kinds[chosen].words if table.names else only or chosen == 0):
        names = [table.names[j] if table.names else str(j + 1) for j in others]
        raise DataFileError(
            f"{table.file}: {why}; say which column is the label (label=…, or --label), for "
            f"example {_or(names[:SHOWN])}, or -1 if it is the last one"
        )
    message = f"Column {_shown(table, chosen)} is taken as the label, since {why}."
    warnings.warn(f"{table.file}: {message} To choose another: label=….", stacklevel=5)
    return chosen, (message,)


def _read_labels(table: Table, index: int) -> tuple[Any, Any]:
    """Return the labels of the rows that have one, and a mask of those rows."""
    cells = table.columns[index]
    if isinstance(cells, np.ndarray):
        return whole_numbers(cells), np.ones(len(cells), dtype=bool)
    texts = [cell.strip() for cell in cells]
    missing = {text for text in set(texts) if text.lower() in NO_LABEL}
    rows = np.array([text not in missing for text in texts])
    if not rows.any():
        raise DataFileError(
            f"{table.file}: {table.column(index)} is the label, and it is empty in every row; "
            "name another column (label=…, or --label)"
        )
    infinite = {text for text in set(texts) if is_infinite(text)}
    if infinite:
        row = next(i for i, text in enumerate(texts) if text in infinite)
        raise DataFileError(
            f"{table.place(row)}: {table.column(index)}: the label {texts[row]!r} is not finite; "
            "correct it or remove the row"
        )
    y = label_array([text for text in texts if text not in missing])
    return y, rows


def _without_label(numbers: Any, numbered: str) -> str:
    if len(numbers) == 1:
        return f"The row in {numbered} {numbers[0]} has no label: it is left out."
    listed = _and([str(number) for number in numbers])
    return f"{len(numbers)} rows have no label: they are left out ({numbered}s {listed})."


# ------------------------------------------------------------------- columns left out


def _choose_columns(table: Table, columns: dict[int, Column]) -> tuple[list[int], list[str]]:
    """Return the columns that describe rows, and remarks on the others."""
    verdicts = {j: _reason_to_leave_out(table, j, column) for j, column in columns.items()}
    kept = [j for j, verdict in verdicts.items() if verdict is None]
    counters = [j for j, verdict in verdicts.items() if verdict == "row" and not columns[j].words]
    if not kept and counters:
        what = _subject(table, counters, "numbers rows", "number rows")
        return counters, [f"{what}, but no other column is left to learn from."]
    remarks = [
        f"{_subject(table, group, one, several)}."
        for reason, (one, several) in _LEFT_OUT.items()
        if (group := [j for j in columns if verdicts[j] == reason])
    ]
    if not kept:
        raise DataFileError(
            f"{table.file}: no column is left to learn from. {' '.join(remarks)} Make numbers of "
            "texts first, for example with scikit-learn's TfidfVectorizer; or choose another label "
            "column (label=…, on the command line --label)."
        )
    return kept, remarks


_LEFT_OUT = {
    "row": (
        "is different in every row, so it names rows and does not describe them: it is left out",
        "are different in every row, so they name rows and do not describe them: they are left out",
    ),
    "text": (
        "has different words in most rows, too many to learn from: it is left out",
        "have different words in most rows, too many to learn from: they are left out",
    ),
    "constant": ("has one value only: it is left out", "have one value only: they are left out"),
    "empty": ("is empty: it is left out", "are empty: they are left out"),
}


def _reason_to_leave_out(table: Table, index: int, column: Column) -> str | None:
    """Return why a column is left out, if it is: a key of ``_LEFT_OUT``."""
    name = table.names[index] if table.names else "-"
    present = int(np.count_nonzero(~column.missing))
    if not present:
        return "empty"
    unnamed = not name or name.lower().startswith("unnamed: ")
    if len(column.values) < FEWEST_ROWS and not unnamed:
        return None
    if column.words:
        return _reason_against_words(column.distinct, present, len(column.values))
    if column.values.min() == column.values.max():
        return "constant" if len(column.values) >= FEWEST_ROWS else None
    return "row" if _numbers_rows(column, unnamed or _says_id(name) is not None) else None


def _reason_against_words(different: int, present: int, n: int) -> str | None:
    if different == present > 1:
        return "row"
    if different > max(MANY_NUMBERS, present / 2):
        return "text"
    return "constant" if different == 1 and present == n else None


def _numbers_rows(column: Column, says_so: bool) -> bool:
    """Tell whether whole numbers count rows, or are said to name them and hardly ever repeat."""
    values = column.values[~column.missing]
    if column.notations or np.any(values != np.trunc(values)):
        return False
    span = values.max() - values.min() + 1
    if not says_so and span > 2 * len(values):
        return False
    different = len(np.unique(values))
    if says_so:
        return different >= 0.9 * len(values)
    ascends = bool(np.all(np.diff(values) > 0))
    return different == len(values) and (span == len(values) or ascends)


def _name_columns(
    table: Table, kept: list[int], wanted: bool
) -> tuple[list[str] | None, list[str]]:
    """Return different names of the columns that are kept, and remarks on names that are new."""
    if not table.names:
        return [f"column {j + 1}" for j in kept] if wanted else None, []
    names: dict[str, None] = {}
    renamed: list[str] = []
    for j in kept:
        name = given = table.names[j] or f"column {j + 1}"
        copies = 1
        while name in names:
            copies += 1
            name = f"{given} ({copies})"
        if name != given:
            renamed.append(f"Column {j + 1} has the name of another column: it is called {name!r}.")
        elif not table.names[j]:
            renamed.append(f"Column {j + 1} has no name: it is called {name!r}.")
        names[name] = None
    if len(renamed) > SHOWN:
        renamed = [
            *renamed[:SHOWN],
            f"{len(renamed) - SHOWN} more columns without a name of their own got one.",
        ]
    return list(names), renamed


# ------------------------------------------------------------------- columns made numbers


_STEPS = ("numbers", "gaps", "two_words", "words")  # of a preparation, in the order of its columns


def _step(column: Column) -> str:
    """Return the step of the preparation that a column goes through, if there are words."""
    if column.words:
        return "two_words" if _is_binary(column) else "words"
    return "gaps" if np.mean(column.missing) >= MANY_MISSING else "numbers"


class _Plan:
    """Which columns are prepared how, and in which order they stand in X."""

    def __init__(self, columns: dict[int, Column]) -> None:
        steps = {j: _step(column) for j, column in columns.items()}
        self.order = list(columns)
        self.has_words = not {"words", "two_words"}.isdisjoint(steps.values())
        if self.has_words:
            # Columns of one step stand together, so that a slice of any length prints in full.
            self.order.sort(key=lambda j: _STEPS.index(steps[j]))
        self.columns = [columns[j] for j in self.order]
        self.steps = [steps[j] for j in self.order]
        self.needed = self.has_words or any(column.missing.any() for column in self.columns)
        self.missing = "missing"  # the word for none
        while any(column.words and self.missing in column.values for column in self.columns):
            self.missing = f"({self.missing})"

    def rows(self) -> Any:
        """Return the rows, as floats if all columns are numbers, else as objects."""
        n = len(self.columns[0].values)
        X = np.empty((n, len(self.columns)), dtype=object if self.has_words else np.float64)
        for j, column in enumerate(self.columns):
            X[:, j] = column.values
        return X

    def transformer(self) -> Any:
        """Return what makes numbers of the rows, not fitted; None if they are numbers."""
        if not self.needed:
            return None
        # Imported here: most programs that import maxmargin read no such table.
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OneHotEncoder

        median = SimpleImputer(strategy="median", keep_empty_features=True)
        marked = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        if not self.has_words:
            return marked if "gaps" in self.steps else median
        wide = self._is_wide()
        form = {} if wide else {"sparse_output": False}
        two = OneHotEncoder(drop="if_binary", handle_unknown="ignore", **form)
        more = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=VALUES, **form)
        words = (self._named(step, one) for step, one in (("two_words", two), ("words", more)))
        parts = zip(_STEPS, (median, marked, *words), strict=True)
        return ColumnTransformer(
            [(name, part, self._place(name)) for name, part in parts if name in self.steps],
            sparse_threshold=0.3 if wide else 0,
            verbose_feature_names_out=False,
        )

    def _named(self, step: str, encoder: Any) -> Any:
        """Return an encoder of words that calls missing ones by a word, where there are any."""
        columns = (
            column for column, of in zip(self.columns, self.steps, strict=True) if of == step
        )
        if not any(column.missing.any() for column in columns):
            return encoder
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline

        named = SimpleImputer(missing_values=None, strategy="constant", fill_value=self.missing)
        return make_pipeline(named, encoder)

    def _place(self, step: str) -> slice:
        first = self.steps.index(step)
        return slice(first, first + self.steps.count(step))

    def _is_wide(self) -> bool:
        width = sum(one_hot_columns(column) if column.words else 1 for column in self.columns)
        return width > DENSE_COLUMNS or width * len(self.columns[0].values) > DENSE_ENTRIES

    def names_collide(self, names: list[str]) -> bool:
        """Tell whether names of columns and of words make the same name twice: a + b_c, a_b + c."""
        made = []
        for name, column, step in zip(names, self.columns, self.steps, strict=True):
            values = (
                {value or self.missing for value in column.values.tolist()}
                if column.words
                else {""}
            )
            made += [f"{name}_{value}" if column.words else name for value in values]
            made += [f"{name}_infrequent_sklearn"] if step == "words" else []
            made += [f"missingindicator_{name}"] if step == "gaps" else []
        return len(set(made)) < len(made)


def _is_binary(column: Column) -> bool:
    """Tell whether words are two, both in enough rows to be in every training part."""
    counts = Counter(column.values.tolist())
    return len(counts) == 2 and min(counts.values()) >= RARE


def one_hot_columns(column: Column) -> int:
    """Return how many columns words become if all rows are trained on."""
    return min(column.distinct + bool(column.missing.any()), VALUES)


# ------------------------------------------------------------------- sentences


def _explain_columns(table: Table, columns: dict[int, Column]) -> list[str]:
    """Return sentences on notations, words and missing cells."""
    messages = []
    for notation, (one, several) in NOTATIONS.items():
        group = [j for j, column in columns.items() if notation in column.notations]
        if group:
            messages.append(f"{_subject(table, group, one, several)}.")
    messages += _explain_words(table, {j: column for j, column in columns.items() if column.words})
    n = len(next(iter(columns.values())).values)
    gaps = {j: k for j, column in columns.items() if (k := int(np.count_nonzero(column.missing)))}
    words = {j: gaps[j] for j in gaps if columns[j].words}
    marked = {j: gaps[j] for j in gaps if j not in words and gaps[j] >= MANY_MISSING * n}
    if marked and not any(column.words for column in columns.values()):
        marked = gaps  # one imputer for all columns marks all
    few = {j: gaps[j] for j in gaps if j not in words and j not in marked}
    median = "the median of the training rows takes {} place"
    for some, what in (
        (few, median),
        (marked, f"{median}, and a column of 0 and 1 says where"),
        (words, "that counts as a value of its own"),
    ):
        if some:
            their = "its" if sum(some.values()) == 1 else "their"
            messages.append(f"{_empty_cells(table, some, n)}: {what.format(their)}.")
    return messages


def _explain_words(table: Table, columns: dict[int, Column]) -> list[str]:
    two = [j for j, column in columns.items() if _is_binary(column)]
    many = [j for j, column in columns.items() if column.distinct + column.missing.any() > VALUES]
    some = [j for j in columns if j not in two and j not in many]
    messages = []
    if two:
        what = _subject(table, two, "has two values", "have two values each")
        messages.append(f"{what}: {'it becomes' if len(two) == 1 else 'they become'} 0 and 1.")
    if some:
        what = _subject(table, some, "has words: it becomes", "have words: they become")
        messages.append(
            f"{what} {sum(one_hot_columns(columns[j]) for j in some)} columns of 0 and 1."
        )
    if many:
        what = _subject(table, many, "has", "each have")
        messages.append(
            f"{what} more than {VALUES} different words: the {VALUES - 1} most frequent become "
            "columns of 0 and 1, and the others share one."
        )
    return messages


def _empty_cells(table: Table, gaps: dict[int, int], n: int) -> str:
    if len(gaps) == 1:
        ((j, count),) = gaps.items()
        verb = "is" if count == 1 else "are"
        return f"{count} of {n} cells of column {_shown(table, j)} {verb} empty"
    return (
        f"{sum(gaps.values())} cells of columns {_and([_shown(table, j) for j in gaps])} are empty"
    )


def _subject(table: Table, group: list[int], one: str, several: str) -> str:
    names = [_shown(table, j) for j in group]
    return f"Column {names[0]} {one}" if len(group) == 1 else f"Columns {_and(names)} {several}"


def _shown(table: Table, index: int) -> str:
    """Return a column's name in quotation marks, or its number if it has no name."""
    name = table.names[index] if table.names else ""
    return repr(name) if name else str(index + 1)


def _and(names: Sequence[str]) -> str:
    if len(names) > SHOWN + 1:
        names = [*names[:SHOWN], f"{len(names) - SHOWN} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _or(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
