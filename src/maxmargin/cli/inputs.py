"""What commands read: labelled data and models, and what is said about them."""

import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from maxmargin.cli.models import DETECTORS, TASKS, steps_of
from maxmargin.cli.output import Output

STDIN = "-"
SEVERAL = "fit, predict, score and certify"  # commands that read several files
OUTLIERS = "outlier detection"
FORMATS = ("csv", "tsv", "json", "jsonl", "arff", "parquet", "svmlight")
MANY_CLASSES = 10
MOSTLY = 0.9  # share of nonzero cells above which zeros are not mentioned
# Above this density a dense array is smaller than a sparse one, and faster.
DENSE_FROM = 0.5
DENSE_ENTRIES = 10**8
MAX_COLUMNS = 10**8


def data_options(function: Any) -> Any:
    """Add DATA and the options that say how it is read."""
    for option in reversed((*_DATA, *_READING)):
        function = option(function)
    return function


def files_options(function: Any) -> Any:
    """Add DATA, which may be several files, and the options that say how it is read."""
    for option in reversed((files_argument, _DATA[1], *_READING)):
        function = option(function)
    return function


files_argument = click.argument(
    "data", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="DATA..."
)
_DATA = [
    click.argument("data", type=click.Path(dir_okay=False, allow_dash=True)),
    click.option("--label", metavar="COLUMN", help="Label column of a table: its name, or its "
                 "number from 1. Default: the one named label, target, class or y, else the last."),
]  # fmt: skip
zero_based_option = click.option(
    "--zero-based", is_flag=True, help="Indices of svmlight text count from 0."
)
task_option = click.option(
    "--task", type=click.Choice(TASKS), help="Default: regression if the labels are numbers with "
    "fractions, or many different whole numbers.",
)  # fmt: skip
_READING = [
    task_option,
    zero_based_option,
    click.option("--format", "data_format", type=click.Choice(FORMATS), help="Format of standard "
                 "input (DATA is -). Default: decided by its content."),
]  # fmt: skip


# ------------------------------------------------------------------- labelled data


@dataclass
class Dataset:
    """Labelled rows, and what is to be learnt from them."""

    source: str  # as given
    rows: Any  # Labelled
    task: str
    why: str = ""  # the task is this one
    given: dict[str, Any] = field(default_factory=dict)  # options that say how it is read

    @property
    def X(self) -> Any:  # noqa: N802
        """The rows, as the file has them."""
        return self.rows.X

    @property
    def y(self) -> Any:
        """The labels or targets."""
        return self.rows.y

    @property
    def title(self) -> str:
        """The name of the file, without its folder."""
        return "standard input" if self.source == STDIN else Path(self.source).name

    def taken(self, rows: Any) -> "Dataset":
        """Return some of the rows."""
        return replace(self, rows=self.rows._replace(X=self.X[rows], y=self.y[rows]))

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield headings and sentences about the data."""
        label = f", label column {self.rows.label_name!r}" if self.rows.label_name else ""
        yield "data", f"{self.title}: {self.rows.format}{label}"
        yield from describe_rows(self.X, self.y, self.task)
        yield "task", f"{self.task}: {self.why}" if self.why else self.task
        for k, remark in enumerate(self.rows.remarks):
            yield "" if k else "remarks", remark

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "source": self.source,
            "format": self.rows.format,
            "rows": int(self.X.shape[0]),
            "columns": int(self.X.shape[1]),
            "label": self.rows.label_name,
            "task": self.task,
            "remarks": list(self.rows.remarks),
        }


def read_data(
    source: str,
    *,
    label: str | None = None,
    task: str | None = None,
    zero_based: bool = False,
    data_format: str | None = None,
) -> Dataset:
    """Read labelled rows from a file or from standard input."""
    with as_file(source, data_format) as path:
        rows = load_labelled(path, label, zero_based=zero_based, task=task)
    chosen, why = (task, "") if task else choose_task(rows.y, rows.label_name)
    given = {"label": label, "zero_based": zero_based, "task": task, "format": data_format}
    return Dataset(source, rows, chosen, why, given)


def load_labelled(path: str, label: str | None, **how: Any) -> Any:
    """Return the rows of a file; sparse only if that is smaller."""
    import warnings

    from maxmargin.data import read_labelled

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the remarks say so too
        found = read_labelled(path, label, **how)
    if found.X.shape[1] > MAX_COLUMNS:
        raise click.ClickException(
            f"{path} has an index {found.X.shape[1]}: the weights of that many columns do not fit "
            "in memory; number the features that occur from 1 on."
        )
    return found._replace(X=found.X.toarray()) if is_dense_enough(found.X) else found


@contextmanager
def as_file(source: str, data_format: str | None) -> Iterator[str]:
    """Give the path of a file with what is read; messages call standard input by its name."""
    if source != STDIN:
        if data_format is not None:
            raise click.UsageError(
                "--format is for standard input (-): files say it by their name."
            )
        refuse_several(source)
        yield source
        return
    ending = {None: "", "svmlight": ".svm"}.get(data_format, f".{data_format}")
    with tempfile.TemporaryDirectory(prefix="maxmargin-") as folder:
        path = Path(folder, f"stdin{ending}")
        with path.open("wb") as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled)
        try:
            yield str(path)
        except (OSError, ValueError) as wrong:
            message = str(wrong).replace(str(path), "standard input")
            raise click.ClickException(message) from wrong


def refuse_several(source: str) -> None:
    """Refuse a pattern where one file is read."""
    if not Path(source).exists() and any(mark in source for mark in "*?["):
        raise click.UsageError(
            f"{source} is a pattern, and this command reads one file; maxmargin {SEVERAL} read "
            "several."
        )


def find_data_files(words: str | Sequence[str]) -> list[str]:
    """Return the files that words mean: paths, patterns, folders; or standard input alone."""
    from maxmargin.data.opening import find_files

    words = [words] if isinstance(words, str) else list(words)
    if STDIN in words:
        if len(words) > 1:
            raise click.UsageError("Standard input (-) stands alone, without files beside it.")
        return words
    return [str(path) for path in find_files(words)]


def choose_task(y: Any, name: str | None = None) -> tuple[str, str]:
    """Return what is to be learnt from labels, and why; many numbers may be so by their name."""
    import numpy as np

    from maxmargin.data.columns import QUANTITY_NAMES, resembles_measurement

    different = len(np.unique(y))
    if y.dtype.kind not in "iuf":
        return "classification", "the label has words"
    named = different > MANY_CLASSES and (name or "").lower() in QUANTITY_NAMES
    if named or resembles_measurement(y):
        sure = different > len(y) / 2 or (y % 1).any()
        whole = "" if sure else "; if they are classes, --task classification"
        return "regression", f"the label has {different:,} different numbers{whole}"
    if different > MANY_CLASSES:
        return "classification", (
            f"the label has {different:,} different numbers; if they are measurements, "
            "--task regression"
        )
    return "classification", ""


def describe_rows(X: Any, y: Any, task: str = "classification") -> Iterator[tuple[str, str]]:
    """Yield (heading, sentence) pairs about rows X with labels y."""
    import numpy as np
    import scipy.sparse as sp

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
    import scipy.sparse as sp

    size = math.prod(X.shape)
    return bool(sp.issparse(X) and X.nnz >= DENSE_FROM * size and size <= DENSE_ENTRIES)


def refuse_labels(dataset: Dataset) -> None:
    """Refuse labels that are all the same, and classes that are texts."""
    import numpy as np

    y, name = dataset.y, dataset.rows.label_name
    classes = np.unique(y)
    column = f"column {name!r}" if name else "the label column"
    if len(classes) < 2:
        raise click.ClickException(
            f"all {len(y)} rows have the label {classes[0]}: there is nothing to learn."
        )
    if y.dtype.kind not in "iufb" and len(classes) > max(MANY_CLASSES, len(y) / 2):
        raise click.ClickException(
            f"{column} has {len(classes):,} different words in {len(y):,} rows: these are texts or "
            "names and not classes. Choose another column with --label."
        )


# ------------------------------------------------------------------- models


MODEL_FORMATS = ("native", "libsvm", "liblinear")
_FIRST_WORDS = {b"svm_type": "libsvm", b"solver_type": "liblinear"}
_CALLED = {"native": "maxmargin", "libsvm": "LIBSVM", "liblinear": "LIBLINEAR"}


def model_argument(function: Any) -> Any:
    """Add MODEL, and the option that says which program wrote it."""
    for option in reversed(_MODEL):
        function = option(function)
    return function


_MODEL = [
    click.argument("model", type=click.Path(dir_okay=False)),
    click.option("--model-format", type=click.Choice(MODEL_FORMATS), help="Which file MODEL is. "
                 "Default: native if it ends in .mmg, else what its first line says."),
]  # fmt: skip


class SavedModel(NamedTuple):
    """A model from a file, how its data files are laid out, and what the file says of itself."""

    path: str
    format: str
    model: Any
    layout: Any
    header: dict[str, Any]

    @property
    def machine(self) -> Any:
        """The last step of the pipeline."""
        return steps_of(self.model)[-1]

    @property
    def task(self) -> str:
        """What the model is for."""
        if type(self.machine).__name__ in DETECTORS.values():
            return OUTLIERS
        return "classification" if hasattr(self.model, "classes_") else "regression"

    @property
    def called(self) -> str:
        """Which program wrote the file."""
        return f"{_CALLED[self.format]} model"


def read_model(path: str, model_format: str | None = None, **lacking: Any) -> SavedModel:
    """Read a model file; ``lacking`` are parameters that text models do not have, such as C.

    A native file that was converted from a text model may lack them, too.
    """
    import maxmargin as mm

    if not Path(path).is_file():
        raise click.ClickException(f"there is no file {path}")
    kind = model_format or find_model_format(path)
    given = {name: value for name, value in lacking.items() if value is not None}
    if kind == "native":
        saved = SavedModel(path, kind, *mm.files.load_described(path))
        return with_costs(saved, given)
    load = mm.files.load_libsvm if kind == "libsvm" else mm.files.load_liblinear
    return SavedModel(path, kind, load(path, **given), None, {})


def with_costs(saved: SavedModel, given: dict[str, Any]) -> SavedModel:
    """Set parameters that a native file lacks, as it was converted from a text model."""
    for name, value in given.items():
        known = getattr(saved.machine, name, 0)
        if not hasattr(saved.machine, "origin_"):
            raise click.UsageError(f"--{name}: {saved.path} is a model of maxmargin, and knows it.")
        if known not in (None, value):
            raise click.UsageError(
                f"--{name} {value:g}: {saved.path} says {known}; convert the text model with "
                f"--{name} {value:g} for another one."
            )
        saved.machine.set_params(**{name: value})
    return saved


def find_model_format(path: str) -> str:
    """Return which program wrote a model file, by its ending or its first word."""
    if Path(path).suffix.lower() == ".mmg":
        return "native"
    found = _FIRST_WORDS.get(read_first_word(path))
    if found is None:
        raise click.ClickException(
            f"{path}: neither a model of maxmargin by its name (.mmg) nor one of LIBSVM or "
            "LIBLINEAR by its first line; say what it is with --model-format."
        )
    return found


def read_first_word(path: str) -> bytes:
    """Return the first word of a file, as far as it is near the start."""
    if not Path(path).exists():
        raise click.ClickException(f"there is no file {path}")
    with open(path, "rb") as file:
        start = file.read(200).lstrip().split(maxsplit=1)
    return start[0] if start else b""


def is_model(path: str) -> bool:
    """Tell whether a file is a model, by its ending or its first word."""
    return Path(path).suffix.lower() == ".mmg" or read_first_word(path) in _FIRST_WORDS


def layout_for(saved: SavedModel, zero_based: bool) -> Any:
    """Return how data files for a model are laid out; for text models as svmlight text."""
    from maxmargin.data import Layout

    if saved.layout is not None:
        if zero_based and saved.layout.kind != "svmlight":
            raise click.UsageError("--zero-based is for svmlight text; the model reads tables.")
        return replace(saved.layout, zero_based=True) if zero_based else saved.layout
    width = getattr(saved.model, "n_features_in_", None)
    if width is None:
        raise click.ClickException(f"{saved.path}: the model does not say how many columns it has.")
    return Layout("svmlight", n_features=int(width), zero_based=zero_based)


def write_out(model: Any, X: Any) -> Any:
    """Return sparse rows as an array if that is smaller, or if the model takes off their mean."""
    import scipy.sparse as sp

    first = steps_of(model)[0]
    centring = type(first).__name__ == "StandardScaler" and first.with_mean
    return X.toarray() if sp.issparse(X) and (centring or is_dense_enough(X)) else X


def read_blocks(output: Output, source: str, layout: Any, *, label: bool) -> Iterator[Any]:
    """Yield blocks of rows, read as in training; what is worth knowing goes to standard error."""
    from maxmargin.data import read_rows

    where: Any = sys.stdin.buffer if source == STDIN else source
    for block in read_rows(where, layout, label=label):
        for remark in block.remarks:
            output.note(remark)
        yield block


def read_like_training(
    output: Output, saved: SavedModel, sources: str | Sequence[str], zero_based: bool
) -> "GivenRows":
    """Return all rows of labelled files, read as the training file was."""
    import numpy as np
    import scipy.sparse as sp

    layout, files = layout_for(saved, zero_based), find_data_files(sources)
    blocks = [block for file in files for block in read_blocks(output, file, layout, label=True)]
    source = files[0] if len(files) == 1 else f"{files[0]} … {files[-1]}"
    if not blocks:
        raise click.ClickException(f"{source}: there are no rows")
    if any(block.y is None for block in blocks):
        raise click.ClickException(
            f"{source}: there is no label column, which is needed here; only maxmargin predict "
            "does without"
        )
    parts = [block.X for block in blocks]
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    y = np.concatenate([block.y for block in blocks])
    return GivenRows(
        write_out(saved.model, X), y, np.concatenate([block.numbers for block in blocks])
    )


def held_back_options(function: Any) -> Any:
    """Add the options that name the rows a fit held back."""
    for option in reversed(_HELD_BACK):
        function = option(function)
    return function


_HELD_BACK = [
    click.option("--test", "test_fraction", metavar="FRACTION",
                 type=click.FloatRange(0, 1, min_open=True, max_open=True),
                 help="Part of the rows that maxmargin fit held back. Default: none."),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
                 help="By which they were drawn."),
]  # fmt: skip


class GivenRows(NamedTuple):
    """Rows with labels, and where they are in the file."""

    X: Any
    y: Any
    numbers: Any

    def taken(self, rows: Any) -> "GivenRows":
        """Return some of them."""
        return GivenRows(self.X[rows], self.y[rows], self.numbers[rows])


def split_rows(y: Any, task: str, fraction: float | None, seed: int) -> tuple[Any, Any]:
    """Return the numbers of training and of test rows, both in the order of the file."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(y))
    if fraction is None:
        return rows, rows[:0]
    classes = y if task == "classification" else None
    if classes is not None:
        labels, counts = np.unique(classes, return_counts=True)
        if counts.min() < 2:
            raise click.ClickException(
                f"--test needs two rows of each class, and {labels[counts.argmin()]} has one: "
                "leave that row out, or leave out --test."
            )
    try:
        parts = train_test_split(rows, test_size=fraction, stratify=classes, random_state=seed)
    except ValueError as impossible:
        raise click.ClickException(
            f"cannot hold back {fraction:g} of {len(rows)} rows with every class on both sides "
            f"({impossible}); choose another --test."
        ) from impossible
    return np.sort(parts[0]), np.sort(parts[1])


def read_training_rows(
    output: Output,
    saved: SavedModel,
    source: str,
    zero_based: bool,
    fraction: float | None,
    seed: int,
) -> tuple[GivenRows, GivenRows | None]:
    """Return the rows that a model was fitted to, and those that were held back."""
    from maxmargin.inspection.model_view import view_model

    every = read_like_training(output, saved, source, zero_based)
    train, test = split_rows(every.y, saved.task, fraction, seed)
    rows, held_back = every.taken(train), every.taken(test) if len(test) else None
    view = view_model(saved.model)
    count = view.count_training_rows()
    if not hasattr(saved.machine, "origin_") and not view.is_training(rows.X):
        fitted = "other rows" if count in (None, len(rows.y)) else f"{count} rows"
        raise click.ClickException(
            f"{saved.path} was fitted to {fitted}, not to these {len(rows.y)} of {source}. Give "
            "the file it was fitted to; if maxmargin fit held rows back, give the same --test and "
            "--seed."
        )
    return rows, held_back
