"""One HTML file about a fitted model: what it is, what is proved, and what is worth a look."""

from maxmargin.reports.versions import show_versions
from maxmargin.reports.write import report as report

__all__ = ["show_versions"]
