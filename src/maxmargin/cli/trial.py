"""``maxmargin try``: read, describe, split, fit the perceptron family, compare."""

import io
import math
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from maxmargin.cli.facts import facts, is_sparse, unevenness
from maxmargin.data import Labelled, read_labelled

PIPE_WIDTH = 100
# Predicting takes these a step for each pair of a row and an update: more rows would take long.
MAX_ROWS = {"VotedPerceptron": 50_000, "KernelPerceptron, rbf": 5000}
UNEVEN = 10
# Above this density a dense array is smaller than a sparse one, and faster.
DENSE_FROM = 0.5
DENSE_ENTRIES = 10**8
MAX_COLUMNS = 10**8
UNKNOWN = "–"


@dataclass(frozen=True)
class Trial:
    """What the command line asks for."""

    file: str | None
    label: str | None
    scale: bool
    test_fraction: float
    max_time: float
    seed: int


class Split(NamedTuple):
    """A training and a test part."""

    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any


def run(trial: Trial) -> None:
    """Do the whole job; bad input ends in a sentence, not a traceback."""
    try:
        _run(trial, _console())
    except MemoryError as too_large:
        raise click.ClickException(
            f"not enough memory for this data ({too_large or 'no details'}); "
            "try fewer rows or columns"
        ) from too_large
    except (OSError, ValueError) as bad_input:
        if isinstance(bad_input, BrokenPipeError):
            raise
        raise click.ClickException(str(bad_input)) from bad_input


def _console() -> Console:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without × still gets the numbers
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def _run(trial: Trial, console: Console) -> None:
    data = _read(trial)
    _describe(data, trial, console)
    parts = _split(data, trial)
    parts = _scaled(parts, trial, console)
    console.print(f"Training on {len(parts.y_train)} rows, testing on {len(parts.y_test)}.\n")
    fitted = []
    for name, model in _family(trial):
        if len(parts.y_train) > MAX_ROWS.get(name, math.inf):
            fitted.append((name, None))
            continue
        with console.status(f"fitting {name} …"):
            fitted.append((name, _fit(model, parts)))
    console.print(_table(fitted, parts, console.width))
    console.print(
        "\nmistake bound: in no order of the rows could it have made more mistakes on its way.\n"
        "training margin: the distance of the nearest training row, if all are on their side."
    )
    _print_reasons(fitted, console)


def _read(trial: Trial) -> Labelled:
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


def _describe(data: Labelled, trial: Trial, console: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_row("data", Text(Path(trial.file).name if trial.file else data.format))
    if trial.file:
        kind = data.format
        if data.label_name:
            kind += f", label column {data.label_name!r}"
        grid.add_row("format", Text(kind))
    for heading, sentence in facts(data.X, data.y):
        grid.add_row(heading, Text(sentence))
    console.print(grid)
    console.print()


def _split(data: Labelled, trial: Trial) -> Split:
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


def _scaled(parts: Split, trial: Trial, console: Console) -> Split:
    if trial.file is not None and not trial.scale:
        if unevenness(parts.X_train) > UNEVEN:
            console.print(
                "Advice: columns differ much in size or lie far from 0, which slows perceptrons "
                "down; try again with --scale."
            )
        return parts
    sparse = is_sparse(parts.X_train)
    scaler = MaxAbsScaler() if sparse else StandardScaler()
    scaled = parts._replace(
        X_train=scaler.fit_transform(parts.X_train), X_test=scaler.transform(parts.X_test)
    )
    how = "divided by its largest |x|" if sparse else "shifted to mean 0 and divided by its std"
    console.print(f"Each column is {how}, as found in the training part.")
    return scaled


def _family(trial: Trial) -> list[tuple[str, Any]]:
    import maxmargin as mm

    common: dict[str, Any] = {"random_state": trial.seed, "max_time": trial.max_time}
    return [
        ("Perceptron", mm.Perceptron(keep="last", **common)),
        ("Perceptron, pocket", mm.Perceptron(keep="best", **common)),
        ("AveragedPerceptron", mm.AveragedPerceptron(**common)),
        ("VotedPerceptron", mm.VotedPerceptron(**common)),
        ("KernelPerceptron, rbf", mm.KernelPerceptron(kernel="rbf", gamma="scale", **common)),
    ]


def _fit(model: Any, parts: Split) -> Any:
    with warnings.catch_warnings():
        # stop_reason_ says the same, and is printed.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(parts.X_train, parts.y_train)


def _table(fitted: list[tuple[str, Any]], parts: Split, width: int) -> Table:
    padding = 1 if width >= PIPE_WIDTH else 0
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, padding))
    table.add_column("model", no_wrap=True)
    headings = ("epochs", "mistakes", "mistake\nbound", "training\nmargin")
    for heading in (*headings, "right in\ntraining", "right\nin test"):
        table.add_column(heading, justify="right")
    for name, model in fitted:
        table.add_row(name, *(_cells(model, parts) if model else [UNKNOWN] * 6))
    return table


def _cells(model: Any, parts: Split) -> list[str]:
    bound = float(model.mistake_bound_)
    train = model.score(parts.X_train, parts.y_train)
    # A vote can be wrong where the last voter, whose margin this is, is right.
    separated = train == 1.0 and model.margin_ > 0
    return [
        str(model.epochs_),
        str(model.mistakes_),
        f"{bound:.4g}" if math.isfinite(bound) else "none known",
        f"{model.margin_:.4g}" if separated else UNKNOWN,
        f"{train:.2%}",
        f"{model.score(parts.X_test, parts.y_test):.2%}",
    ]


def _print_reasons(fitted: list[tuple[str, Any]], console: Console) -> None:
    names: dict[str, list[str]] = {}
    for name, model in fitted:
        skipped = f"Skipped: above {MAX_ROWS.get(name)} training rows it would take long."
        names.setdefault(model.stop_reason_ if model else skipped, []).append(name)
    console.print("\nWhy each one stopped:")
    for reason, who in names.items():
        console.print(Text("; ".join(who), style="bold"))
        console.print(Padding(Text(reason), (0, 0, 0, 4)))
