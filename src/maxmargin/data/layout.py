"""How the columns of a file became X, so that later files are read as the training file was.

A labelled file is judged as a whole: which columns are numbers, how they are written, which ones
are left out, in which order they stand. For a later file nothing is judged anew; it is read by the
layout of the training file, and what is written differently is refused.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from maxmargin.data.notation import check_notation

TASKS = (None, "classification", "regression")

_BOTH = ("kind", "task", "n_features")
_FIELDS = {
    "svmlight": (*_BOTH, "zero_based"),
    "table": (*_BOTH, "width", "names", "delimiter", "label", "columns"),
}
_Place = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True)
class FeatureColumn:
    """A column of X: where it stands in the file, and how its cells are written."""

    position: _Place
    """Of the column in the file, from 0."""
    words: bool = False
    """Whether the cells are words; else they are numbers, dates or times."""
    notation: tuple[str, ...] = ()
    """How numbers are written, if not plainly."""


@dataclass(frozen=True)
class LabelColumn:
    """The column of the labels."""

    position: _Place
    kind: Annotated[str, msgspec.Meta(pattern=r"^(?:integers|numbers|words)\Z")] = "integers"
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

    kind: Annotated[str, msgspec.Meta(pattern=r"^(?:table|svmlight)\Z")]
    n_features: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    task: Annotated[str, msgspec.Meta(pattern=r"^(?:classification|regression)\Z")] | None = None
    zero_based: bool = False
    width: int = 0
    names: tuple[str, ...] | None = None
    label: LabelColumn | None = None
    columns: tuple[FeatureColumn, ...] = ()
    delimiter: Annotated[str, msgspec.Meta(pattern=r"^[;\t|, ]\Z")] | None = None

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
        fields = {name: getattr(self, name) for name in _FIELDS[self.kind]}
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(fields))
        return found

    @classmethod
    def from_json(cls, found: Any) -> "Layout":
        """Return the layout that ``to_json`` gave; anything else is a ValueError."""
        layout = msgspec.convert(found, cls)
        _require(layout.to_json() == found, "fields are missing or unknown")
        if layout.kind == "svmlight":
            return layout
        label, columns, width = layout.label, layout.columns, layout.width
        places = [column.position for column in columns] + ([label.position] if label else [])
        numbers = not any(column.words and column.notation for column in columns)
        numbers &= not label or label.kind == "numbers" or not label.notation
        _require(numbers, "a column that is no number has a notation of one")
        for notation in (*(column.notation for column in columns), label.notation if label else ()):
            check_notation(notation)
        unnamed = layout.names is None
        _require(unnamed or len(layout.names or ()) == width, "there is not a name per column")
        _require(len(columns) == layout.n_features, "there is not a column per feature")
        _require(len(set(places)) == len(places), "two columns are the same")
        _require(max(places) < width, f"a column is not among the {width} of the table")
        return layout


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise ValueError(f"the layout is damaged: {why}")
