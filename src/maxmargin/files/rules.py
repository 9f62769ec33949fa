"""What the rules for model files share: a rule looks at an object, and refuses by an error."""

from collections.abc import Callable
from typing import Any

Sizes = dict[str, int]  # how many rows, columns, classes … a model says it has, by their names
Rule = Callable[[Any, Sizes], None]


def require(holds: Any, complaint: str) -> None:
    """Raise ValueError unless something holds."""
    if not holds:
        raise ValueError(complaint)
