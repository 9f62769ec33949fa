"""Data: labelled files read strictly, and rows handed out in chunks."""

from maxmargin.data.in_memory import chunks
from maxmargin.data.labelled import Labelled, read_labelled

__all__ = ["Labelled", "chunks", "read_labelled"]
