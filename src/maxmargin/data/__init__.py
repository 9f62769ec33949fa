"""Data: labelled files, layouts by which later files are read, conversion, and rows in chunks."""

from maxmargin.data.blocks import chunks
from maxmargin.data.columns import Labelled
from maxmargin.data.conversion import Converted, convert
from maxmargin.data.labelled import read_labelled
from maxmargin.data.layout import Layout
from maxmargin.data.rows import RowBlock, read_rows
from maxmargin.data.svmlight import Svmlight, iterate_svmlight, read_svmlight, write_svmlight

__all__ = [
    "Converted",
    "Labelled",
    "Layout",
    "RowBlock",
    "Svmlight",
    "chunks",
    "convert",
    "iterate_svmlight",
    "read_labelled",
    "read_rows",
    "read_svmlight",
    "write_svmlight",
]
