"""The data that are tried: read from a file or bundled, described, and split in two."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from maxmargin.data import Labelled, read_labelled
from maxmargin.data.columns import resembles_measurement

MANY_CLASSES = 10
MOSTLY = 0.9  # share of nonzero cells above which zeros are not mentioned
# Above this density a dense array is smaller than a sparse one, and faster.
DENSE_FROM = 0.5
DENSE_ENTRIES = 10**8
MAX_COLUMNS = 10**8


@dataclass(frozen=True)
class Trial:
    """What the command line asks for."""

    file: str | None
    label: str | None
    test_fraction: float
    max_time: float
    seed: int
    report: str | None = None
    no_report: bool = False


class TrialRows(NamedTuple):
    """A training and a test part."""

    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any
    numbers_train: Any
    """Where the rows are in the file, as ``Labelled.numbers``."""
    numbers_test: Any

    def first(self, count: int) -> "TrialRows":
        """Return the first rows of the training part, a random sample, with the same test part."""
        X, y, numbers = (part[:count] for part in (self.X_train, self.y_train, self.numbers_train))
        return self._replace(X_train=X, y_train=y, numbers_train=numbers)


def load_rows(trial: Trial) -> Labelled:
    """Return the rows of the file, or bundled ones; sparse only if that is smaller."""
    if trial.file is None:
        bundled = load_breast_cancer()
        names = bundled.target_names[bundled.target]
        features = [str(name) for name in bundled.feature_names]
        kind = "breast cancer, scikit-learn's"
        rows = np.arange(len(names))
        return Labelled(bundled.data, names, features, "diagnosis", kind, rows, "row")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the remarks say so too
        data = read_labelled(trial.file, trial.label)
    X = data.X
    if X.shape[1] > MAX_COLUMNS:
        raise click.ClickException(
            f"{trial.file} has an index {X.shape[1]}: the weights of that many columns do not fit "
            "in memory; number the features that occur from 1 on."
        )
    if sp.issparse(X) and X.nnz >= DENSE_FROM * math.prod(X.shape) <= DENSE_FROM * DENSE_ENTRIES:
        return data._replace(X=X.toarray())
    return data


def describe_rows(X: Any, y: Any) -> Iterator[tuple[str, str]]:
    """Yield (heading, sentence) pairs about rows X with labels y."""
    yield "rows × columns", " × ".join(map(str, X.shape)) + _describe_cells(X)
    yield "classes", _describe_classes(y)


def _describe_cells(X: Any) -> str:
    """Return how many columns hold words, or cells are nonzero, and how many cells are missing."""
    cells = X.data if sp.issparse(X) else X
    if cells.dtype == object:
        words = sum(any(isinstance(cell, str) for cell in column) for column in cells.T)
        missing = np.array([[cell is None or cell != cell for cell in row] for row in cells])
        message = f", {words} of words"
    else:
        missing = np.isnan(cells)
        nonzero = np.count_nonzero(cells) / math.prod(X.shape)
        message = f", {nonzero:.2%} nonzero" if nonzero < MOSTLY else ""
    return f"{message}, {missing.mean():.2%} missing" if missing.any() else message


def _describe_classes(y: Any) -> str:
    classes, counts = np.unique(y, return_counts=True)
    shown = ", ".join(
        f"{label}: {count}"
        for label, count in list(zip(classes, counts, strict=True))[:MANY_CLASSES]
    )
    more = f", … ({len(classes)} in all)" if len(classes) > MANY_CLASSES else ""
    return shown + more


def split_rows(data: Labelled, trial: Trial) -> TrialRows:
    """Return a training and a test part with every class on both sides."""
    _refuse_labels(data)
    rows = np.arange(len(data.y))
    try:
        train, test = train_test_split(
            rows, test_size=trial.test_fraction, stratify=data.y, random_state=trial.seed
        )
    except ValueError as impossible:
        raise click.ClickException(
            f"cannot hold back {trial.test_fraction:.0%} of {len(rows)} rows with every class on "
            f"both sides ({impossible}); choose another --test"
        ) from impossible
    _refuse_one_sided(data.y, train, test, trial)
    parts = [part[side] for part in (data.X, data.y, data.numbers) for side in (train, test)]
    return TrialRows(*parts)


def _refuse_labels(data: Labelled) -> None:
    """Refuse labels that are not classes, and classes that are too small."""
    classes, counts = np.unique(data.y, return_counts=True)
    column = f"column {data.label_name!r}" if data.label_name else "the label column"
    if len(classes) < 2:
        raise click.ClickException(
            f"all {len(data.y)} rows have the label {classes[0]}: there is nothing to separate."
        )
    if resembles_measurement(data.y):
        raise click.ClickException(
            f"{column} has {len(classes):,} different numbers: that is a measurement and not a "
            "class, so this is not classification. Choose another column with --label, or make "
            "classes of it, such as low and high."
        )
    if data.y.dtype.kind not in "iufb" and len(classes) > max(MANY_CLASSES, len(data.y) / 2):
        raise click.ClickException(
            f"{column} has {len(classes):,} different words in {len(data.y):,} rows: these are "
            "texts or names and not classes. Choose another column with --label."
        )
    if counts.min() < 2:
        alone = classes[counts.argmin()]
        raise click.ClickException(
            f"{int((counts < 2).sum())} of {len(classes)} labels occur once ({alone} is one): "
            "each class needs a row to train on and one to test on. "
            "Remove those rows; if the labels are measurements, this is not classification."
        )


def _refuse_one_sided(y: Any, train: Any, test: Any, trial: Trial) -> None:
    """Refuse a split that has all rows of a class on one side."""
    for side, rows in (("test", test), ("training", train)):
        absent = np.setdiff1d(y, y[rows])
        if len(absent):
            count = int(np.count_nonzero(y == absent[0]))
            raise click.ClickException(
                f"with --test {trial.test_fraction:g}, no {side} row has the label {absent[0]}, "
                f"which only {count} of {len(y)} rows have: choose --test nearer to 0.5, or remove "
                "those rows."
            )
