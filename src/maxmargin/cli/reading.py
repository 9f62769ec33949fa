"""Labelled data for commands: read into memory, or opened in blocks.

DATA is a file, several files, a pattern, a folder, or standard input (-). One file, or standard
input, is read into memory. Several are read in blocks where the command can learn from blocks, and
put together in memory elsewhere.
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

from maxmargin.data import Labelled, read_labelled
from maxmargin.data import open as open_rows
from maxmargin.data.columns import QUANTITY_NAMES, resembles_measurement
from maxmargin.data.opening import find_files, read_names
from maxmargin.data.tables import LABEL_NAMES
from maxmargin.rows.cluster import connect

STDIN = "-"
MANY_CLASSES = 10
MOSTLY = 0.9  # share of nonzero cells above which zeros are not mentioned
# Above this density a dense array is smaller than a sparse one, and faster.
DENSE_FROM = 0.5
DENSE_ENTRIES = 10**8
MAX_COLUMNS = 10**8
MOST_BYTES = 2 * 10**9  # of several files that are put together in memory
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
def as_file(source: str, data_format: str | None) -> Iterator[str]:
    """Give the path of a file with what is read; messages call standard input by its name."""
    if source != STDIN:
        if data_format is not None:
            raise click.UsageError(
                "--format is for standard input (-): files say it by their name."
            )
        yield source
        return
    ending = {None: "", "svmlight": ".svm"}.get(data_format, f".{data_format}")
    with tempfile.TemporaryDirectory(prefix="maxmargin-") as folder:
        name = f"standard input{ending}"
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

    @property
    def X(self) -> Any:  # noqa: N802
        """The rows in memory, as the file has them."""
        return self.rows.X

    @property
    def y(self) -> Any:
        """The labels or targets of rows in memory."""
        return self.rows.y

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
            yield from describe_rows(self.X, self.y, self.task)
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
        rows, columns = shape if self.rows is None else self.X.shape
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


def read_data(
    words: Sequence[str],
    *,
    label: str | None = None,
    task: str | None = None,
    zero_based: bool = False,
    data_format: str | None = None,
) -> Data:
    """Read labelled rows into memory."""
    given = {"label": label, "zero_based": zero_based, "task": task, "format": data_format}
    if are_several(words):
        rows = _load_several(words, {**given, "data_format": data_format})
    else:
        with as_file(words[0], data_format) as path:
            rows = _load(path, label, zero_based=zero_based, task=task)
    return as_data(words, rows, task, given)


def as_data(words: Sequence[str], rows: Any, task: str | None, given: Any = ()) -> Data:
    """Return rows in memory with what is to be learnt from them."""
    chosen, why = (task, "") if task else choose_task(rows.y, rows.label_name)
    facts = (rows.format, rows.label_name, rows.remarks, rows.layout)
    return Data(tuple(words), chosen, why, *facts, rows, given=dict(given))


def _load(path: str, label: str | None, **how: Any) -> Any:
    """Return the rows of a file; sparse only if that is smaller."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the remarks say so too
        found = read_labelled(path, label, **how)
    _refuse_columns(path, found.X.shape[1])
    return found._replace(X=found.X.toarray()) if is_dense_enough(found.X) else found


def _refuse_columns(path: Any, count: int) -> None:
    if count > MAX_COLUMNS:
        raise click.ClickException(
            f"{path} has an index {count}: the weights of that many columns do not fit in memory; "
            "number the features that occur from 1 on."
        )


def _load_several(words: Sequence[str], given: dict[str, Any]) -> Any:
    """Return the rows of several files as those of one."""
    found = open_data(words, given)
    size = sum(path.stat().st_size for path in found.files)
    if size > MOST_BYTES:
        raise click.ClickException(
            f"{name_files(found.files)}: {size / 1e9:.1f} GB are too much for this command, which "
            "reads all rows into memory; maxmargin fit reads them in blocks."
        )
    X, y = join_parts(list(found.source))
    names = found.source.feature_names
    return Labelled(
        X, y, None if names is None else list(names), found.label, found.format, np.arange(len(y)),
        remarks=found.remarks, layout=found.layout,
    )  # fmt: skip


def join_parts(parts: Sequence[Any]) -> tuple[Any, Any]:
    """Return the rows and the labels of blocks as those of one."""
    pieces = [part.X for part in parts]
    X = sp.vstack(pieces, format="csr") if sp.issparse(pieces[0]) else np.concatenate(pieces)
    return X, np.concatenate([part.y for part in parts])


# ------------------------------------------------------------------- labelled data in blocks


class Blocks(NamedTuple):
    """What the options say about rows in blocks."""

    memory: int | None
    checkpoint: str | None
    cluster: str | None
    insecure: bool

    @property
    def asked(self) -> bool:
        """Whether an option asks for blocks."""
        return any(self)


NO_BLOCKS = Blocks(None, None, None, False)


def take_block_options(options: dict[str, Any]) -> Blocks:
    """Return what the options say about rows in blocks, and remove them."""
    return Blocks(**{name: options.pop(name, None) for name in Blocks._fields})


@contextmanager
def connected(blocks: Blocks) -> Iterator[Any]:
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
    words: Sequence[str], reading: dict[str, Any], blocks: Blocks = NO_BLOCKS, client: Any = None
) -> Data:
    """Open files as rows in blocks; the first part tells what is to be learnt."""
    if STDIN in words:
        raise click.UsageError(
            "Standard input (-) comes once, and rows in blocks are read again and again: write it "
            "to a file."
        )
    if reading["data_format"] is not None:
        raise click.UsageError("--format is for standard input (-): files say it by their name.")
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
    names = names or []
    if label in names:
        return label, ()
    if label is not None and label.removeprefix("-").isdecimal():
        return int(label), ()
    if label is not None:
        known = ", ".join(names[:20]) or "the file has no header"
        raise click.ClickException(
            f"{path}: no column is named {label!r} ({known}); name one of them, or give its "
            "number, counted from 1."
        )
    named = [name for name in names if name.lower() in LABEL_NAMES]
    named = [name for name in named if name.lower() in LABEL_NAMES[:2]] or named  # these are sure
    if len(named) > 1:
        raise click.ClickException(
            f"{path}: columns {' and '.join(named)} could both be the label; name one with --label."
        )
    if named:
        return named[0], ()
    why = "No column is named label or target" if names else "The file has no header"
    last: Any = names[-1] if names else width
    return last, (f"{why}, so the last column, {last!r}, is taken as the label.",)


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
    size, cells = " × ".join(map(str, X.shape)), X.data if sp.issparse(X) else X
    if cells.dtype == object:
        words = sum(any(isinstance(cell, str) for cell in column) for column in cells.T)
        missing = np.array([[cell is None or cell != cell for cell in row] for row in cells])
        size += f", words in {words} column" + ("s" if words > 1 else "")
    else:
        missing = np.isnan(cells)
        nonzero = np.count_nonzero(cells) / math.prod(X.shape)
        size += f", {nonzero:.2%} nonzero" if nonzero < MOSTLY else ""
    yield "rows × columns", f"{size}, {missing.mean():.2%} missing" if missing.any() else size
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


def is_dense_enough(X: Any) -> bool:
    """Tell whether sparse rows are better written out."""
    size = math.prod(X.shape)
    return bool(sp.issparse(X) and X.nnz >= DENSE_FROM * size and size <= DENSE_ENTRIES)


def refuse_labels(dataset: Data) -> None:
    """Refuse labels that are all the same, and classes that are texts."""
    y = dataset.y
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
