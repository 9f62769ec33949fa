"""How much is read of rows in blocks, for those who report on a fit."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Reader = Any  # rows in blocks, which count their passes and the bytes_read of them

_reader: "weakref.ref[Reader] | None" = None  # what was read last
_counted: list[Reader] | None = None


def note_reader(reader: Reader) -> None:
    """Let reports say how much is read of these rows, as long as they are there."""
    global _reader
    _reader = weakref.ref(reader)
    if _counted is not None:
        _counted.append(reader)


@contextmanager
def counted_reading() -> Iterator[list[Reader]]:
    """Give a list of the rows in blocks that calls within it read."""
    global _counted
    before, _counted = _counted, []
    try:
        yield _counted
    finally:
        _counted = before


def describe_reading() -> str:
    """Return how much was read of the rows in blocks that a call works on; nothing without such."""
    reader = None if _reader is None else _reader()
    if reader is None or not reader.passes:
        return ""
    passes = f"{reader.passes} pass{'es' * (reader.passes != 1)}"
    return f"{passes}, {describe_bytes(reader.bytes_read)} read"


def describe_bytes(count: float) -> str:
    """Return a number of bytes in words.

    >>> describe_bytes(999), describe_bytes(1_500_000), describe_bytes(2.5e13)
    ('999 bytes', '1.5 MB', '25.0 TB')
    """
    from rich.filesize import decimal  # which `import maxmargin` does without

    return decimal(int(count))
