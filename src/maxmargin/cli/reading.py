"""The rows that are tried: read from a file or bundled, and split in two."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from maxmargin.cli.facts import is_sparse
from maxmargin.data import Labelled, read_labelled

if TYPE_CHECKING:
    from maxmargin.cli.trial import Trial

# Above this density a dense array is smaller than a sparse one, and faster.
DENSE_FROM = 0.5
DENSE_ENTRIES = 10**8
MAX_COLUMNS = 10**8


class Split(NamedTuple):
    """A training and a test part."""

    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any


def labelled(trial: "Trial") -> Labelled:
    """Return the rows of the file, or bundled ones; sparse only where that is smaller."""
    if trial.file is None:
        bundled = load_breast_cancer()
        names = bundled.target_names[bundled.target]
        features = [str(name) for name in bundled.feature_names]
        return Labelled(bundled.data, names, features, "diagnosis", "breast cancer, scikit-learn's")
    data = read_labelled(trial.file, trial.label)
    X = data.X
    if X.shape[1] > MAX_COLUMNS:
        raise click.ClickException(
            f"{trial.file} has an index {X.shape[1]}: weights for so many columns do not fit in "
            "memory; number the features that occur from 1 on."
        )
    if is_sparse(X) and X.nnz >= DENSE_FROM * math.prod(X.shape) <= DENSE_FROM * DENSE_ENTRIES:
        return data._replace(X=X.toarray())
    return data


def split(data: Labelled, trial: "Trial") -> Split:
    """Return a training and a test part with every class on both sides."""
    classes, counts = np.unique(data.y, return_counts=True)
    if len(classes) < 2:
        raise click.ClickException(
            f"all {len(data.y)} rows have the label {classes[0]}: there is nothing to separate."
        )
    if counts.min() < 2:
        alone = classes[counts.argmin()]
        raise click.ClickException(
            f"{int((counts < 2).sum())} of {len(classes)} labels occur once ({alone} is one): "
            "each class needs a row to train on and one to test on. "
            "Remove those rows; if the labels are measurements, this is not classification."
        )
    try:
        parts = train_test_split(
            data.X,
            data.y,
            test_size=trial.test_fraction,
            stratify=data.y,
            random_state=trial.seed,
        )
    except ValueError as impossible:
        raise click.ClickException(
            f"cannot hold back {trial.test_fraction:.0%} of {len(data.y)} rows with every class on "
            f"both sides ({impossible}); choose another --test"
        ) from impossible
    return Split(*parts)
