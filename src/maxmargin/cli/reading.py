"""Labelled data for commands: read into memory, or opened in blocks.

One file, or standard input (-), is read into memory. Several files, a pattern or a folder are read
in blocks, by the commands that take them.
"""

import math
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from maxmargin.data import open as open_rows
from maxmargin.data import read_labelled
from maxmargin.data.columns import QUANTITY_NAMES, resembles_measurement
from maxmargin.data.opening import find_files, read_names
from maxmargin.data.table import find_label
from maxmargin.rows.cluster import connect

STDIN = "-"
MANY_CLASSES = 10
# Above this density a dense array is smaller than a sparse one, and faster.
DENSE_FROM = 0.5
DENSE_ENTRIES = 10**8
MAX_COLUMNS = 10**8
_PATTERN = re.compile(r"[*?\[]")


# ------------------------------------------------------------------- files


def are_several(words: Sequence[str]) -> bool:
    """Tell whether DATA means more than one file: several words, a pattern or a folder."""
    path = Path(words[0])
    pattern = bool(_PATTERN.search(words[0])) and not path.exists()
    return len(words) > 1 or path.is_dir() or pattern


def find_data_files(words: Sequence[str]) -> list[str]:
    """Return the files that words mean: paths, patterns, folders; or standard input alone."""
    if STDIN in words:
        if len(words) > 1:
            raise click.UsageError("Standard input (-) stands alone, without files beside it.")
        return list(words)
    return [str(path) for path in find_files(list(words))]


def name_files(files: Sequence[Any]) -> str:
    """Return what files are called in a sentence: without folders, of many the first and last."""
    first, last, count = Path(files[0]).name, Path(files[-1]).name, len(files)
    return first if count == 1 else f"{first} … {last} ({count} files)"


@contextmanager
def as_file(source: str) -> Iterator[str]:
    """Give the path of a file with what is read; messages call standard input by its name."""
    if source != STDIN:
        yield source
        return
    name = "standard input"
    with tempfile.TemporaryDirectory(prefix="maxmargin-") as folder:
        with Path(folder, name).open("wb") as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled)
        with chdir(folder):  # so that messages name the file without the folder
            yield name


# ------------------------------------------------------------------- labelled data


@dataclass
class Data:
    """Labelled rows, in memory or in blocks, and what is to be learnt from them."""

    words: tuple[str, ...]  # as given
    task: str
    why: str  # the task is this one
    format: str
    label: str | None
    remarks: tuple[str, ...]
    layout: Any  # by which later files are read
    rows: Any = None  # Labelled, of rows in memory
    source: Any = None  # RowSource, of rows in blocks
    files: list[Path] = field(default_factory=list)
    given: dict[str, Any] = field(default_factory=dict)  # options that say how it is read

    def take(self, rows: Any) -> "Data":
        """Return some of the rows in memory."""
        part = {name: getattr(self.rows, name)[rows] for name in ("X", "y", "numbers")}
        return replace(self, rows=self.rows._replace(**part))

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield headings and sentences about what is known before rows in blocks are read."""
        name = "standard input" if self.words[0] == STDIN else name_files(self.files or self.words)
        label = f", label column {self.label!r}" if self.label else ""
        yield "data", f"{name}: {self.format}{label}"
        if self.source is None:
            yield from describe_rows(self.rows.X, self.rows.y, self.task)
        else:
            parts = len(self.source)
            columns = f"{self.source.n_columns} columns"
            yield "read in", f"{parts} part{'s' * (parts != 1)} of {columns}"
        yield "task", f"{self.task}: {self.why}" if self.why else self.task
        for k, remark in enumerate(self.remarks):
            yield "" if k else "remarks", remark

    def summary(self, survey: Any = None) -> dict[str, Any]:
        """Return the same for programs; ``survey`` is what a pass over blocks has found."""
        shape = None if survey is None else survey.n, getattr(self.source, "n_columns", None)
        rows, columns = shape if self.rows is None else self.rows.X.shape
        found = {
            "source": " ".join(self.words),
            "format": self.format,
            "rows": rows,
            "columns": columns,
            "label": self.label,
            "task": self.task,
            "remarks": list(self.remarks),
        }
        blocks = {"files": list(map(str, self.files)), "parts": len(self.source or ())}
        return found if self.source is None else {**found, **blocks}


def take_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return what the options say about how data is read, and remove them."""
    return {name: options.pop(name) for name in ("label", "task", "zero_based")}


def read_data(source: str, **how: Any) -> Data:
    """Read labelled rows into memory, as the options say; sparse ones only if that is smaller."""
    with as_file(source) as path, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the remarks say so too
        rows = read_labelled(path, **how)
    _refuse_columns(source, rows.X.shape[1])
    return as_data(source, rows._replace(X=dense_if_smaller(rows.X)), **how)


def as_data(source: str, rows: Any, task: str | None = None, **how: Any) -> Data:
    """Return rows in memory with what is to be learnt from them."""
    chosen, why = (task, "") if task else choose_task(rows.y, rows.label_name)
    facts = (rows.format, rows.label_name, rows.remarks, rows.layout)
    return Data((source,), chosen, why, *facts, rows, given={**how, "task": task})


def _refuse_columns(path: Any, count: int) -> None:
    if count > MAX_COLUMNS:
        raise click.ClickException(
            f"{path} has an index {count}: the weights of that many columns do not fit in memory; "
            "number the features that occur from 1 on."
        )


def join_parts(parts: Sequence[Any]) -> tuple[Any, Any]:
    """Return the rows and the labels of blocks as those of one."""
    pieces = [part.X for part in parts]
    X = sp.vstack(pieces, format="csr") if sp.issparse(pieces[0]) else np.concatenate(pieces)
    return X, np.concatenate([part.y for part in parts])


# ------------------------------------------------------------------- labelled data in blocks


class BlockChoices(NamedTuple):
    """What the options say about rows in blocks."""

    memory: int | None
    checkpoint: str | None
    cluster: str | None
    insecure: bool


def take_block_options(options: dict[str, Any]) -> BlockChoices:
    """Return what the options say about rows in blocks, and remove them."""
    return BlockChoices(**{name: options.pop(name, None) for name in BlockChoices._fields})


@contextmanager
def connected(blocks: BlockChoices) -> Iterator[Any]:
    """Yield a client of the cluster at an address, which is closed at the end; of none, None."""
    cluster = blocks.cluster
    if cluster is None:
        if blocks.insecure:
            raise click.UsageError("--insecure is for --cluster ADDRESS.")
        yield None
        return
    try:
        client = connect(cluster, insecure=blocks.insecure)
    except ValueError:
        raise click.UsageError(
            f"--cluster {cluster} is another machine without TLS: everybody on the network could "
            "read the data and run functions there. Use tls://, or --insecure if you trust them."
        ) from None
    try:
        yield client
    finally:
        client.close()


def open_data(
    words: Sequence[str], reading: dict[str, Any], blocks: BlockChoices, client: Any
) -> Data:
    """Open files as rows in blocks; the first part tells what is to be learnt."""
    if STDIN in words:
        raise click.UsageError(
            "Standard input (-) comes once, and rows in blocks are read again and again: write it "
            "to a file."
        )
    files = find_files(list(words))
    label, remarks = _find_label(files[0], reading["label"])
    source = open_rows(
        files, label=label, memory=blocks.memory, checkpoint=blocks.checkpoint, client=client,
        zero_based=reading["zero_based"],
    )  # fmt: skip
    _refuse_columns(files[0], source.n_columns)
    name = source.layout.label_name
    if (task := reading["task"]) == "regression":
        source = with_label_kind(source, "numbers")
    y = source.load(0).y
    refuse_texts(y, name, f"the first {len(y):,} rows")
    chosen, why = (task, "") if task else choose_task(y, name)
    why = f"{why} (in the first {len(y):,} rows)" if why else ""
    if chosen == "regression":
        source = with_label_kind(source, "numbers")
    source.layout = layout = replace(source.layout, task=task)
    facts = (_describe_format(layout), name, remarks, layout)
    return Data(tuple(words), chosen, why, *facts, source=source, files=files)


def _describe_format(layout: Any) -> str:
    if layout.kind == "svmlight":
        return f"svmlight text, indices from {0 if layout.zero_based else 1}"
    if layout.delimiter is None:
        return "Parquet"
    return f"table {'with' if layout.names else 'without'} a header"


def _find_label(path: Path, label: str | None) -> tuple[Any, tuple[str, ...]]:
    """Return the label column as ``open`` takes it, and a remark if its place decides."""
    names, width = read_names(path)
    if not width:  # svmlight text
        if label is not None:
            raise click.ClickException(
                f"{path}: svmlight text has its label first on each line; leave out --label."
            )
        return None, ()
    if width < 2:
        raise click.ClickException(f"{path}: only one column; a table needs a label and a feature.")
    found = find_label(names, width, label, str(path))
    place = width - 1 if found is None else found
    named: Any = names[place] if names else place + 1
    if found is not None:
        return named, ()
    why = "No column is named label or target" if names else "The file has no header"
    return named, (f"{why}, so the last column, {named!r}, is taken as the label.",)


def with_label_kind(source: Any, kind: str) -> Any:
    """Return rows whose labels are read as such, whatever those of the first rows look like."""
    if source.layout.kind == "table" and source.layout.label is not None:
        label = replace(source.layout.label, kind=kind)
        source.layout = replace(source.layout, label=label)
    return source


# ------------------------------------------------------------------- labels and facts


def choose_task(y: Any, name: str | None = None) -> tuple[str, str]:
    """Return what is to be learnt from labels, and why; many numbers may be so by their name."""
    different = len(np.unique(y))
    if y.dtype.kind not in "iuf":
        return "classification", "the label has words"
    named = different > MANY_CLASSES and (name or "").lower() in QUANTITY_NAMES
    if named or resembles_measurement(y):
        sure = different > len(y) / 2 or (y % 1).any()
        otherwise = "" if sure else "; if they are classes, --task classification"
        return "regression", f"the label has {different:,} different numbers{otherwise}"
    if different > MANY_CLASSES:
        return "classification", (
            f"the label has {different:,} different numbers; if they are measurements, "
            "--task regression"
        )
    return "classification", ""


def describe_rows(X: Any, y: Any, task: str = "classification") -> Iterator[tuple[str, str]]:
    """Yield (heading, sentence) pairs about rows X with labels y."""
    sparse = f", {X.nnz / math.prod(X.shape):.2%} nonzero" if sp.issparse(X) else ""
    yield "rows × columns", f"{X.shape[0]} × {X.shape[1]}{sparse}"
    if task == "regression":
        low, middle, high = np.quantile(np.asarray(y, dtype=np.float64), [0, 0.5, 1])
        yield "targets", describe_targets(low, high, middle, float(np.std(y)))
        return
    yield "classes", list_classes(*np.unique(y, return_counts=True))


def describe_targets(low: float, high: float, middle: float | None, deviation: float) -> str:
    """Return between which numbers targets lie, and how they scatter."""
    median = "" if middle is None else f", median {middle:.6g}"
    return f"{low:.6g} to {high:.6g}{median}, deviation {deviation:.6g}"


def list_classes(classes: Any, counts: Any) -> str:
    """Return classes with the number of their rows; the first ones, if they are many."""
    listed = [f"{label}: {count}" for label, count in zip(classes, counts, strict=True)]
    if len(listed) > MANY_CLASSES:
        listed[MANY_CLASSES:] = [f"… ({len(classes)} in all)"]
    return ", ".join(listed)


def dense_if_smaller(X: Any) -> Any:
    """Return rows as an array if they are sparse in name only."""
    size = math.prod(X.shape)
    dense = sp.issparse(X) and X.nnz >= DENSE_FROM * size and size <= DENSE_ENTRIES
    return X.toarray() if dense else X


def refuse_labels(dataset: Data) -> None:
    """Refuse labels that are all the same, and classes that are texts."""
    y = dataset.rows.y
    if (y == y[0]).all():
        raise click.ClickException(
            f"all {len(y)} rows have the label {y[0]}: there is nothing to learn."
        )
    refuse_texts(y, dataset.label, f"{len(y):,} rows")


def refuse_texts(y: Any, name: str | None, where: str) -> None:
    """Refuse labels that are no classes and no numbers."""
    column, different = f"column {name!r}" if name else "the label column", len(np.unique(y))
    if y.dtype.kind == "b":
        raise click.ClickException(
            f"{column} holds true and false; store it as 0 and 1, or as words."
        )
    if y.dtype.kind not in "iuf" and different > max(MANY_CLASSES, len(y) / 2):
        raise click.ClickException(
            f"{column} has {different:,} different words in {where}: these are texts or names and "
            "not classes. Choose another column with --label."
        )


def split_rows(
    y: Any, task: str, fraction: float | None, seed: int, *, ordered: bool = True
) -> tuple[Any, Any]:
    """Return the numbers of training and of test rows, in the order of the file or as drawn."""
    rows = np.arange(len(y))
    if fraction is None:
        return rows, rows[:0]
    classes = y if task == "classification" else None
    try:
        train, test = train_test_split(
            rows, test_size=fraction, stratify=classes, random_state=seed
        )
    except ValueError as impossible:
        every = "" if classes is None else " with every class on both sides"
        raise click.ClickException(
            f"--test cannot hold back {fraction:.0%} of {len(rows)} rows{every} ({impossible}). "
            "Choose another --test, or leave out the rows of such classes; if the labels are "
            "measurements, say --task regression."
        ) from impossible
    absent: Any = () if classes is None else np.setdiff1d(y, y[test])
    if len(absent):
        raise click.ClickException(
            f"with --test {fraction:g}, no test row has the label {absent[0]}, which only "
            f"{np.count_nonzero(y == absent[0])} of {len(y)} rows have: choose --test nearer to "
            "0.5, or leave those rows out."
        )
    return (np.sort(train), np.sort(test)) if ordered else (train, test)
