"""One HTML file about a fitted model: what it is, what is proved, and what is worth a look."""

from maxmargin.reports.versions import show_versions
from maxmargin.reports.write import report

__all__ = ["report", "show_versions"]
