"""Data: rows opened wherever they are, labelled files, layouts of later files, and conversion."""

from typing import TYPE_CHECKING, NoReturn

from maxmargin.data.columns import Labelled, read_labelled
from maxmargin.data.convert import convert
from maxmargin.data.later import read_rows
from maxmargin.data.layout import Layout
from maxmargin.data.opening import open
from maxmargin.data.svmlight import iterate_svmlight, read_svmlight, write_svmlight
from maxmargin.data.table import read_table
from maxmargin.errors import no_attribute
from maxmargin.rows.blocks import chunks
from maxmargin.rows.row_source import RowSource
from maxmargin.rows.scaling import standardize

__all__ = [
    "Labelled",
    "Layout",
    "RowSource",
    "chunks",
    "convert",
    "iterate_svmlight",
    "open",
    "read_labelled",
    "read_rows",
    "read_svmlight",
    "read_table",
    "standardize",
    "write_svmlight",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise no_attribute(__name__, name)
