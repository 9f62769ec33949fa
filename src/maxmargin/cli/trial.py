"""``maxmargin try``: read, diagnose, take what is recommended, search around it, fit, certify."""

import io
import math
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from maxmargin.cli.facts import facts
from maxmargin.cli.reading import Split, labelled, split
from maxmargin.data import Labelled

PIPE_WIDTH = 100
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
    report: str | None = None
    no_report: bool = False


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
    if trial.report and not Path(trial.report).resolve().parent.is_dir():
        raise click.ClickException(f"--report {trial.report}: there is no such folder; make it.")
    data = labelled(trial)
    _describe(data, trial, console)
    parts = split(data, trial)
    console.print(f"Training on {len(parts.y_train)} rows, testing on {len(parts.y_test)}.")
    diagnosis = _diagnosed(parts, trial, console)
    model, search = _searched(diagnosis.recommend(), parts, trial, console)
    _fitted(model, parts, trial, console)
    if not trial.no_report:
        # Imported here: it takes as long as everything else that is imported.
        from maxmargin.cli.reporting import reported

        _heading(console, "Report")
        with console.status("drawing …"):
            words = reported(model, parts, data, trial, diagnosis=diagnosis, search=search)
        _said(console, words)


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


# ------------------------------------------------------------------- the steps


def _heading(console: Console, words: str) -> None:
    console.print(f"\n[bold]{words}[/bold]")


def _said(console: Console, words: str) -> None:
    console.print(Padding(Text(words), (0, 0, 0, 4)))


def _diagnosed(parts: Split, trial: Trial, console: Console) -> Any:
    """Return the diagnosis of the training part."""
    import maxmargin as mm

    _heading(console, "Diagnosis")
    with console.status("diagnosing …"):
        diagnosis = mm.diagnose(
            parts.X_train, parts.y_train, max_time=trial.max_time, random_state=trial.seed
        )
    _said(console, str(diagnosis))
    return diagnosis


def _searched(model: Any, parts: Split, trial: Trial, console: Console) -> tuple[Any, Any]:
    """Return the best model around the one that is recommended, and the search that found it."""
    import maxmargin as mm

    _heading(console, "Search")
    grid = _grid(model)
    if not grid:
        name = type(_machine(model)).__name__
        _said(console, f"{name} has no C: nothing to search for.")
        return model, None
    X, y = _sampled(parts, trial)
    search = mm.SVCSearchCV(model, grid, refit=False)
    begun = time.perf_counter()
    try:
        with console.status("searching …"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
            search.fit(X, y)
    except ValueError as too_few:
        _said(console, f"Not possible ({too_few}): what is recommended is taken as it is.")
        return model, None
    count = len(search.cv_results_["params"])
    rows = f" on {len(y)} sampled rows" if len(y) < len(parts.y_train) else ""
    spread = search.cv_results_["std_test_score"][search.best_index_]
    best = ", ".join(f"{k.split('__')[-1]}={v:.3g}" for k, v in search.best_params_.items())
    _said(
        console,
        f"{count} candidates, {search.n_splits_} folds each{rows}: best {best}, right in "
        f"{search.best_score_:.2%} (± {spread:.2%}). {_seconds(begun)} {search.sharing_}.",
    )
    return model.set_params(**search.best_params_), search


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
