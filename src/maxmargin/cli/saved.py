"""Models from files, and data files that are read as the training file was."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.cli.models import steps_of
from maxmargin.cli.options import DETECTORS
from maxmargin.cli.printing import Output
from maxmargin.cli.reading import (
    STDIN,
    dense_if_smaller,
    find_data_files,
    join_parts,
    name_files,
    split_rows,
)
from maxmargin.data import Layout, read_rows
from maxmargin.inspection.model_view import view_model

OUTLIERS = "outlier detection"
_FIRST_WORDS = {b"svm_type": "libsvm", b"solver_type": "liblinear"}
_CALLED = {"native": "maxmargin", "libsvm": "LIBSVM", "liblinear": "LIBLINEAR"}


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

    @property
    def title(self) -> str:
        """The file, and what is in it."""
        return f"{self.path}: {type(self.machine).__name__}, a {self.called}"

    @property
    def column_names(self) -> list[str] | None:
        """The names of the columns that a table needs."""
        layout = self.layout
        if layout is None or layout.kind != "table" or layout.names is None:
            return None
        return [layout.names[column.position] for column in layout.columns]

    def count_training_rows(self) -> int | None:
        """Return how many rows the model was fitted to, if it knows; text models do not."""
        return view_model(self.model).count_training_rows()


def read_model(path: str, **lacking: Any) -> SavedModel:
    """Read a model file; ``lacking`` are parameters that text models do not have, such as C."""
    if not Path(path).is_file():
        raise click.ClickException(f"there is no file {path}")
    kind = find_text_format(path) or "native"
    given = {name: value for name, value in lacking.items() if value is not None}
    if kind != "native":
        load = mm.files.load_libsvm if kind == "libsvm" else mm.files.load_liblinear
        if kind == "liblinear" and "nu" in given:
            raise click.UsageError(f"--nu: {path} is a model of LIBLINEAR, which has no ν.")
        return SavedModel(path, kind, load(path, **given), None, {})
    saved = SavedModel(path, kind, *mm.files.load_described(path))
    for name, value in given.items():  # that a text model lacked from which it was converted
        if getattr(saved.machine, name, 0) not in (None, value):
            raise click.UsageError(f"--{name}: {path} is a model of maxmargin, and knows it.")
        saved.machine.set_params(**{name: value})
    return saved


def find_text_format(path: str) -> str | None:
    """Return which other program wrote a model file, by its first word; None if none did."""
    with open(path, "rb") as file:
        start = file.read(200).lstrip().split(maxsplit=1)
    return _FIRST_WORDS.get(start[0]) if start else None


# ------------------------------------------------------------------- data for a model


class GivenRows(NamedTuple):
    """Rows with labels, and where they are in the file."""

    X: Any
    y: Any
    numbers: Any

    def take(self, rows: Any) -> "GivenRows":
        """Return some of them."""
        return GivenRows(self.X[rows], self.y[rows], self.numbers[rows])


def layout_for(saved: SavedModel, zero_based: bool) -> Any:
    """Return how data files for a model are laid out; for text models as svmlight text."""
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
    first = steps_of(model)[0]
    centring = type(first).__name__ == "StandardScaler" and first.with_mean
    return X.toarray() if sp.issparse(X) and centring else dense_if_smaller(X)


def read_blocks(output: Output, source: str, layout: Any, *, label: bool) -> Iterator[Any]:
    """Yield blocks of rows, read as in training; what is worth knowing goes to standard error."""
    where: Any = sys.stdin.buffer if source == STDIN else source
    for block in read_rows(where, layout, label=label):
        for remark in block.remarks:
            output.note(remark)
        yield block


def read_labelled_rows(
    output: Output, saved: SavedModel, words: Sequence[str], zero_based: bool
) -> GivenRows:
    """Return all rows of labelled files, read as the training file was."""
    layout, files = layout_for(saved, zero_based), find_data_files(words)
    blocks = [block for file in files for block in read_blocks(output, file, layout, label=True)]
    if not blocks:
        raise click.ClickException(f"{name_files(files)}: there are no rows")
    if any(block.y is None for block in blocks):
        raise click.ClickException(
            f"{name_files(files)}: there is no label column, which is needed here; only maxmargin "
            "predict does without"
        )
    X, y = join_parts(blocks)
    numbers = np.concatenate([block.numbers for block in blocks])
    return GivenRows(write_out(saved.model, X), y, numbers)


def read_training_rows(
    output: Output,
    saved: SavedModel,
    words: Sequence[str],
    zero_based: bool,
    fraction: float | None,
    seed: int,
) -> tuple[GivenRows, GivenRows | None]:
    """Return the rows that a model was fitted to, and those that were held back."""
    every = read_labelled_rows(output, saved, words, zero_based)
    train, test = split_rows(every.y, saved.task, fraction, seed)
    rows, held_back = every.take(train), every.take(test) if len(test) else None
    if not hasattr(saved.machine, "origin_") and not view_model(saved.model).is_training(rows.X):
        count = saved.count_training_rows()
        fitted = "other rows" if count in (None, len(rows.y)) else f"{count} rows"
        raise click.ClickException(
            f"{saved.path} was fitted to {fitted}, not to these {len(rows.y)} of "
            f"{name_files(words)}. Give the file it was fitted to; if maxmargin fit held rows "
            "back, give the same --test and --seed."
        )
    return rows, held_back
