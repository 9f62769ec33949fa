"""Errors that carry more than a message, and the question for a word that was misspelt."""

from collections.abc import Iterable
from difflib import get_close_matches


class NotSeparableError(ValueError):
    """No hyperplane separates the classes; ``witness`` proves it.

    Parameters
    ----------
    message : str
        What was found, and the way out.
    witness : object, default=None
        Rows and weights that prove it.
    """

    def __init__(self, message: str, witness: object = None) -> None:
        super().__init__(message)
        self.witness = witness


class DataFileError(ValueError):
    """A data file cannot be read; the message names the file, the line and the way out."""


class ModelFileError(ValueError):
    """A model file cannot be read; the message names the file, the place and the way out."""


class DistributedFitError(RuntimeError):
    """A cluster failed; the message names the block of rows and says how to go on."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return the question for a word that is not among those known but close to one; or nothing.

    >>> did_you_mean("rfb", ["linear", "poly", "rbf"])
    " Did you mean 'rbf'?"
    """
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(str(word).lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""
