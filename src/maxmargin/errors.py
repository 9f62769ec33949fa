"""Errors that carry more than a message."""


class NotSeparableError(ValueError):
    """No hyperplane separates the classes; ``witness`` proves it."""

    def __init__(self, message: str, witness: object = None) -> None:
        super().__init__(message)
        self.witness = witness


class DataFileError(ValueError):
    """A data file cannot be read; the message names the file, the line and the way out."""
