"""Data: rows opened wherever they are, labelled files, layouts of later files, and conversion."""

from maxmargin.data.columns import Labelled
from maxmargin.data.conversion import Converted, convert
from maxmargin.data.following import FollowedRows, follow
from maxmargin.data.labelled import read_labelled
from maxmargin.data.layout import Layout
from maxmargin.data.opening import open
from maxmargin.data.rows import RowBlock, read_rows
from maxmargin.data.svmlight import Svmlight, iterate_svmlight, read_svmlight, write_svmlight
from maxmargin.rows.blocks import chunks
from maxmargin.rows.row_source import BlockOptions, Part, RowSource
from maxmargin.rows.scaling import standardize

__all__ = [
    "BlockOptions",
    "Converted",
    "FollowedRows",
    "Labelled",
    "Layout",
    "Part",
    "RowBlock",
    "RowSource",
    "Svmlight",
    "chunks",
    "convert",
    "follow",
    "iterate_svmlight",
    "open",
    "read_labelled",
    "read_rows",
    "read_svmlight",
    "standardize",
    "write_svmlight",
]
