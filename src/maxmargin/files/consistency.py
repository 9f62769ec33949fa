"""Whether the parts of a model belong together: what no schema of single attributes can say."""

from typing import Any


def look_closer(value: Any, sizes: dict[str, int]) -> None:
    """Raise ValueError if attributes contradict each other."""
