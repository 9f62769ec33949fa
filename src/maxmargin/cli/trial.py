"""``maxmargin try``: read, diagnose, take what is recommended, search around it, fit, certify."""

import io
import math
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from maxmargin.cli.facts import facts, is_sparse
from maxmargin.data import Labelled, read_labelled

PIPE_WIDTH = 100
# Above this density a dense array is smaller than a sparse one, and faster.
DENSE_FROM = 0.5
DENSE_ENTRIES = 10**8
MAX_COLUMNS = 10**8
SEARCHED_ROWS = 5000  # more are sampled for the search
AROUND = 4.0 ** np.arange(-2, 3)  # times what is recommended


@dataclass(frozen=True)
class Trial:
    """What the command line asks for."""

    file: str | None
    label: str | None
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
    console.print(f"Training on {len(parts.y_train)} rows, testing on {len(parts.y_test)}.")
    model = _diagnosed(parts, trial, console)
    model = _searched(model, parts, trial, console)
    _fitted(model, parts, trial, console)


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


# ------------------------------------------------------------------- the steps


def _heading(console: Console, words: str) -> None:
    console.print(f"\n[bold]{words}[/bold]")


def _said(console: Console, words: str) -> None:
    console.print(Padding(Text(words), (0, 0, 0, 4)))


def _diagnosed(parts: Split, trial: Trial, console: Console) -> Any:
    """Diagnose the training part, and return what is recommended for it."""
    import maxmargin as mm

    _heading(console, "Diagnosis")
    with console.status("diagnosing …"):
        diagnosis = mm.diagnose(
            parts.X_train, parts.y_train, max_time=trial.max_time, random_state=trial.seed
        )
    _said(console, str(diagnosis))
    return diagnosis.recommend()


def _searched(model: Any, parts: Split, trial: Trial, console: Console) -> Any:
    """Return the best model around the one that is recommended, by cross-validation."""
    import maxmargin as mm

    _heading(console, "Search")
    grid = _grid(model)
    if not grid:
        name = type(_machine(model)).__name__
        _said(console, f"{name} has no C: nothing to search for.")
        return model
    X, y = _sampled(parts, trial)
    search = mm.SVCSearchCV(model, grid, refit=False)
    begun = time.perf_counter()
    try:
        with console.status("searching …"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
            search.fit(X, y)
    except ValueError as too_few:
        _said(console, f"Not possible ({too_few}): what is recommended is taken as it is.")
        return model
    count = len(search.cv_results_["params"])
    rows = f" on {len(y)} sampled rows" if len(y) < len(parts.y_train) else ""
    spread = search.cv_results_["std_test_score"][search.best_index_]
    best = ", ".join(f"{k.split('__')[-1]}={v:.3g}" for k, v in search.best_params_.items())
    _said(
        console,
        f"{count} candidates, {search.n_splits_} folds each{rows}: best {best}, right in "
        f"{search.best_score_:.2%} (± {spread:.2%}). {_seconds(begun)} {search.sharing_}.",
    )
    return model.set_params(**search.best_params_)


def _grid(model: Any) -> dict[str, list[float]]:
    """Return costs, and widths of the kernel, around those of a model."""
    machine = _machine(model)
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    params = machine.get_params()
    return {
        f"{prefix}{name}": (params[name] * AROUND).tolist()
        for name in ("C", "gamma")
        if isinstance(params.get(name), float) and math.isfinite(params[name])
    }


def _machine(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _sampled(parts: Split, trial: Trial) -> tuple[Any, Any]:
    if len(parts.y_train) <= SEARCHED_ROWS:
        return parts.X_train, parts.y_train
    some = np.random.default_rng(trial.seed).permutation(len(parts.y_train))[:SEARCHED_ROWS]
    return parts.X_train[np.sort(some)], parts.y_train[np.sort(some)]


def _fitted(model: Any, parts: Split, trial: Trial, console: Console) -> None:
    """Fit the model, and say how right it is in both senses."""
    _heading(console, "Fit")
    machine = _machine(model)
    if "max_time" in machine.get_params():
        machine.set_params(max_time=trial.max_time)
    begun = time.perf_counter()
    with console.status("fitting …"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stop_reason_ says the same
        model.fit(parts.X_train, parts.y_train)
    _said(console, f"{model!r}")
    _said(
        console,
        f"Right in {model.score(parts.X_test, parts.y_test):.2%} of the test rows, "
        f"{model.score(parts.X_train, parts.y_train):.2%} of the training rows. {_seconds(begun)}",
    )
    if hasattr(machine, "stop_reason_"):
        _said(console, machine.stop_reason_)
    _heading(console, "Certificate")
    certificate = getattr(machine, "certificate_", None)
    if certificate is None:
        _said(console, f"none: {type(machine).__name__} does not prove how good it is.")
    else:
        _said(console, str(certificate))


def _seconds(begun: float) -> str:
    return f"[{time.perf_counter() - begun:.1f} s]"
