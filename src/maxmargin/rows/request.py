"""What is asked for when rows are opened, and how they are worked on."""

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_UNITS = {
    **{"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40},
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", re.IGNORECASE)
_LEAST_MEMORY = 1 << 20
_PART_BYTES = 1 << 25  # size of a part, unless rows or memory ask for another
_PARTS_IN_MEMORY = 16  # parts that memory holds at least


@dataclass(frozen=True)
class BlockOptions:
    """How rows of a source are worked on.

    Attributes
    ----------
    memory : int or None
        Bytes that rows and what belongs to them may take; None: as much as there is.
    checkpoint : Path or None
        A folder to which a fit is saved and from which it goes on.
    client : distributed.Client, str or None
        A client of a Dask cluster, or the address of its scheduler.
    every : int
        Iterations between two checkpoints.
    """

    memory: int | None = None
    checkpoint: Path | None = None
    client: Any = None
    every: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", parse_memory(self.memory))
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", _checked_folder(self.checkpoint))
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise ValueError(
                f"every={self.every!r} must be a whole number of iterations, from 1 on"
            )


def parse_memory(memory: Any) -> int | None:
    """Return a number of bytes for one, or for a text such as "2GB" or "512 MiB".

    >>> parse_memory("1.5 GB"), parse_memory("2GiB"), parse_memory(None)
    (1500000000, 2147483648, None)
    """
    if memory is None:
        return None
    found = _AMOUNT.fullmatch(memory) if isinstance(memory, str) else None
    if found and found[2].lower() in _UNITS:
        amount = float(found[1]) * _UNITS[found[2].lower()]
    elif isinstance(memory, int | float | np.number) and not isinstance(memory, bool):
        amount = float(memory)
    else:
        raise ValueError(
            f"memory={memory!r} is no amount of memory; give bytes as a number, or a text such as "
            '"2GB" or "512MiB"'
        )
    if not math.isfinite(amount) or amount < _LEAST_MEMORY:
        raise ValueError(f"memory={memory!r} is too little to work with; give 1MiB at least")
    return int(amount)


def _checked_folder(folder: Any) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"checkpoint must be the path of a folder, not {type(folder).__name__}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ValueError(f"checkpoint={str(folder)!r} is a file; name a folder")
    return path.absolute()


def rows_per_part(width: int, itemsize: int, rows: int | None, options: BlockOptions) -> int:
    """Return how many rows of so many columns a part has."""
    if rows is not None:
        return rows
    size = _PART_BYTES
    if options.memory is not None:
        size = min(size, options.memory // _PARTS_IN_MEMORY)
    return max(1, size // max(1, width * itemsize))


class Request(NamedTuple):
    """What was asked for when rows were opened."""

    y: Any
    label: Any
    weight: Any
    columns: Any
    rows: int | None
    options: BlockOptions

    def refuse(self, what: str, **ways_out: str) -> None:
        """Raise if something is given that this kind of rows does not take."""
        for name, way_out in ways_out.items():
            if getattr(self, name) is not None:
                shown = "…" if name in ("y", "weight") else repr(getattr(self, name))
                raise ValueError(f"{name}={shown} does not go with {what}; {way_out}")


BY_LABEL = "a table's labels are a column of it: name that with label="
BY_Y = "rows without named columns have their labels in y="
ALL_COLUMNS = "choose the columns before they are passed"
