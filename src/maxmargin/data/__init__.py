"""Data: labelled files, layouts by which later files are read, and rows handed out in chunks."""

from maxmargin.data.blocks import chunks
from maxmargin.data.columns import Labelled
from maxmargin.data.labelled import read_labelled
from maxmargin.data.layout import Layout, RowBlock, read_rows
from maxmargin.data.svmlight import Svmlight, iterate_svmlight, read_svmlight, write_svmlight

__all__ = [
    "Labelled",
    "Layout",
    "RowBlock",
    "Svmlight",
    "chunks",
    "iterate_svmlight",
    "read_labelled",
    "read_rows",
    "read_svmlight",
    "write_svmlight",
]
