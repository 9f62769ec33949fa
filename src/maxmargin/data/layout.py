"""How the columns of a file became X, so that later files are read as the training file was.

A labelled file is judged as a whole: which columns are numbers, how they are written, which ones
are left out, in which order they stand. For a later file nothing is judged anew; it is read by the
layout of the training file, and what is written differently is refused.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from maxmargin.data.notation import check_notation
from maxmargin.data.tables import DELIMITERS

KINDS = ("table", "svmlight")
TASKS = (None, "classification", "regression")
LABEL_KINDS = ("integers", "numbers", "words")
_MOST_FEATURES = 2**53


class FeatureColumn(NamedTuple):
    """A column of X: where it stands in the file, and how its cells are written."""

    position: int
    """Of the column in the file, from 0."""
    words: bool = False
    """Whether the cells are words; else they are numbers, dates or times."""
    notation: tuple[str, ...] = ()
    """How numbers are written, if not plainly."""


class LabelColumn(NamedTuple):
    """The column of the labels."""

    position: int
    kind: str = "integers"
    """"integers", "numbers" or "words"."""
    notation: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    r"""How the columns of a file become X.

    Made by :func:`read_labelled` (its ``layout``), stored with a model, used by :func:`read_rows`.

    Parameters
    ----------
    kind : {"table", "svmlight"}
        What the file is.
    n_features : int
        The number of X's columns.
    task : {None, "classification", "regression"}
        What the labels are for, if that was said.
    zero_based : bool
        Of svmlight text: whether indices count from 0.
    width : int
        The number of the table's columns, with the label and those that are left out.
    names : tuple of str, optional
        The table's header, if it has one.
    label : LabelColumn, optional
        Where the labels stand, and what they are.
    columns : tuple of FeatureColumn
        The columns of X, in their order.
    delimiter : str, optional
        What stands between the cells of the table, if it is text.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin.data import Layout, read_labelled, read_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "loans.csv")
    ...     _ = path.write_text("rate,city,label\n5%,Rome,1\n7%,Oslo,0\n4.5%,Rome,1\n")
    ...     layout = read_labelled(path).layout
    ...     _ = path.write_text("id,rate,city\n1,3%,Oslo\n2,,Paris\n")
    ...     later = list(read_rows(path, Layout.from_json(layout.to_json())))
    >>> later[0].X.tolist()
    [[3.0, 'Oslo'], [nan, 'Paris']]
    >>> later[0].remarks
    ("Column 'id' was not there in training and is left out.",)
    """

    kind: str
    n_features: int
    task: str | None = None
    zero_based: bool = False
    width: int = 0
    names: tuple[str, ...] | None = None
    label: LabelColumn | None = None
    columns: tuple[FeatureColumn, ...] = ()
    delimiter: str | None = None

    @property
    def label_name(self) -> str | None:
        """The name of the label column, if the file has names."""
        return self.names[self.label.position] if self.names and self.label else None

    @property
    def has_words(self) -> bool:
        """Whether X has columns of words, and so is an array of objects."""
        return any(column.words for column in self.columns)

    def describe(self, index: int, place: int) -> str:
        """Return where a column of X or, at -1, the label stands in a file, and its name."""
        column = self.label if index < 0 else self.columns[index]
        name = self.names[column.position] if self.names and column else ""
        return f"column {place + 1}" + (f" ({name})" if name else "")

    def to_json(self) -> dict[str, Any]:
        """Return the layout as values that JSON has."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "task": self.task,
            "n_features": self.n_features,
        }
        if self.kind == "svmlight":
            return {**found, "zero_based": self.zero_based}
        label = self.label
        return {
            **found,
            "width": self.width,
            "names": None if self.names is None else list(self.names),
            "delimiter": self.delimiter,
            "label": label and {**label._asdict(), "notation": list(label.notation)},
            "columns": [
                {**column._asdict(), "notation": list(column.notation)} for column in self.columns
            ],
        }

    @classmethod
    def from_json(cls, found: Any) -> "Layout":
        """Return the layout that ``to_json`` gave; anything else is a ValueError."""
        svmlight = isinstance(found, dict) and found.get("kind") == "svmlight"
        _check_fields("the layout", found, _SVMLIGHT if svmlight else _TABLE)
        kind, task, n_features = found["kind"], found["task"], found["n_features"]
        _require(kind in KINDS, f"the layout's kind is {kind!r}, not one of {KINDS}")
        _require(task in TASKS, f"the layout's task is {task!r}, not one of {TASKS}")
        _require(1 <= n_features <= _MOST_FEATURES, f"the layout has {n_features} features")
        if svmlight:
            return cls(**found)
        names, width, delimiter = found["names"], found["width"], found["delimiter"]
        if names is not None:
            _require(all(isinstance(n, str) for n in names), "a name in the layout is no text")
            _require(len(names) == width, "the layout's names are not as many as its columns")
        _require(delimiter is None or delimiter in DELIMITERS, f"unknown delimiter {delimiter!r}")
        label = None if found["label"] is None else _label(found["label"])
        columns = tuple(map(_column, found["columns"]))
        _require(len(columns) == n_features, f"{len(columns)} columns, not {n_features} features")
        positions = [column.position for column in columns] + ([label.position] if label else [])
        _require(len(set(positions)) == len(positions), "two columns of the layout are the same")
        _require(
            all(0 <= position < width for position in positions),
            f"a column of the layout is not among the {width} of its table",
        )
        names = None if names is None else tuple(names)
        return cls(**{**found, "names": names, "label": label, "columns": columns})


_SVMLIGHT = {"kind": str, "task": (str, type(None)), "n_features": int, "zero_based": bool}
_TABLE = {
    "kind": str, "task": (str, type(None)), "n_features": int, "width": int,
    "names": (list, type(None)), "delimiter": (str, type(None)), "label": (dict, type(None)),
    "columns": list,
}  # fmt: skip


def _column(found: Any) -> FeatureColumn:
    _check_fields("a column", found, {"position": int, "words": bool, "notation": list})
    notation = _notation(found["notation"])
    _require(not (found["words"] and notation), "a column of words has a notation of numbers")
    return FeatureColumn(found["position"], found["words"], notation)


def _label(found: Any) -> LabelColumn:
    _check_fields("the label", found, {"position": int, "kind": str, "notation": list})
    kind, notation = found["kind"], _notation(found["notation"])
    _require(kind in LABEL_KINDS, f"the label's kind is {kind!r}, not one of {LABEL_KINDS}")
    _require(kind == "numbers" or not notation, "a label that is no number has a notation of one")
    return LabelColumn(found["position"], kind, notation)


def _notation(words: list[Any]) -> tuple[str, ...]:
    _require(all(isinstance(word, str) for word in words), "a notation holds what is no text")
    check_notation(tuple(words))
    return tuple(words)


def _check_fields(what: str, found: Any, fields: dict[str, Any]) -> None:
    _require(isinstance(found, dict), f"{what} must be an object, not {type(found).__name__}")
    wrong = sorted(map(str, fields.keys() ^ found.keys()))
    _require(not wrong, f"{what} has fields that are missing or unknown: {wrong[:5]}")
    for field, kinds in fields.items():
        value = found[field]
        right = isinstance(value, kinds) and not (isinstance(value, bool) and kinds is int)
        _require(right, f"{field!r} of {what} is of a wrong type, {type(value).__name__}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)
