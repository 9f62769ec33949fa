"""Rows of a source that fit into memory, for machines that need all of them there."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.estimators.kernel_input import count_threads
from maxmargin.estimators.linear.blocked import Opened, as_source
from maxmargin.rows.on_disk import RowsOnDisk
from maxmargin.validation.data import stacked


class Gathered(NamedTuple):
    """All rows of a source."""

    X: Any
    y: Any
    weight: Any


def gather(opened: Opened) -> Gathered | None:
    """Read all rows into memory if they fit; None: they do not, or a cluster holds them."""
    blocks = opened.blocks
    if not (isinstance(blocks, RowsOnDisk) and blocks.keeps_rows):
        return None
    parts = [part for part in opened.source if part.X.shape[0]]
    X = stacked([part.X for part in parts])
    y = None if parts[0].y is None else np.concatenate([part.y for part in parts])
    weight = None if parts[0].weight is None else np.concatenate([part.weight for part in parts])
    return Gathered(X, y, weight)


def gather_source(machine: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Opened, Gathered]:
    """Return all rows of a source in memory, for machines that need them there."""
    source, targets = as_source(X, y, sample_weight), not hasattr(machine, "class_weight")
    opened = Opened.of(source, targets=targets, threads=count_threads(machine.n_jobs))
    found = gather(opened)
    if found is None:
        where = "are on a cluster" if source.options.client is not None else "do not fit into it"
        raise ValueError(
            f"{type(machine).__name__} needs all rows in memory, and these {where}: fit to some of "
            "them, or map them with Nystroem and fit a linear machine."
        )
    return opened, found


def keep_names(machine: Any, opened: Opened) -> None:
    """Let a machine that was fitted to an array know the columns by name, as the source does."""
    if opened.source.feature_names is not None:
        machine.feature_names_in_ = np.array(opened.source.feature_names, dtype=object)
