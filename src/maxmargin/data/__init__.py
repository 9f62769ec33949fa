"""Data: labelled files, and rows handed out in chunks."""

from maxmargin.data.blocks import chunks
from maxmargin.data.columns import Labelled
from maxmargin.data.labelled import read_labelled

__all__ = ["Labelled", "chunks", "read_labelled"]
