"""``maxmargin try``: read, diagnose, take what is recommended, search around it, fit, certify.

What is done follows from numbers of rows, columns and classes and from ``--time``, not from how
fast the machine is: the same file gives the same answers anywhere, unless the time runs out, which
is said.
"""

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
from sklearn.pipeline import Pipeline, make_pipeline

from maxmargin.cli.facts import facts
from maxmargin.cli.reading import Split, labelled, split
from maxmargin.data import Labelled

PIPE_WIDTH = 100
DIAGNOSED, FITTED = 0.5, 0.35  # shares of --time; the search takes what its rows take
SEARCHED_ROWS = 5000  # when there are 30 seconds; more are sampled for the search
AROUND = 4.0 ** np.arange(-2, 3)  # times what is recommended
KERNEL_WORK = 4e9  # rows² × (columns + 30) of a kernel machine that fit into a second
MAP_WORK = 3e9  # rows × features² of a map with a plane that fit into a second
MAP_FEATURES = (50, 1000)
SLOW_ROWS = 1500  # rows of networks and neighbours that fit into a second
_MATRIX = 8  # classes of a confusion matrix that fits on a screen
_CONFUSIONS = 5  # listed if there are more


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
    rows = parts.X_train if data.prepare is None else data.prepare.fit_transform(parts.X_train)
    diagnosis = _diagnosed(rows, _names(data), parts, trial, console)
    model, search = _searched(diagnosis, rows, parts, trial, console)
    model = _affordable(model, diagnosis, rows.shape, trial, console)
    if data.prepare is not None:
        model = make_pipeline(data.prepare, *_steps(model))
    _fitted(model, parts, trial, console)
    # Imported here: it takes as long as everything else that is imported.
    from maxmargin.cli.reporting import reported, subject

    with console.status("predicting …"):
        judged = subject(model, parts, data, trial, search)
    _judged(judged, console)
    _certified(_machine(model), console)
    if not trial.no_report:
        _heading(console, "Report")
        with console.status("drawing …"):
            words = reported(judged, data, trial, diagnosis)
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
    for number, remark in enumerate(data.remarks):
        grid.add_row("" if number else "remarks", Text(remark))
    console.print(grid)
    console.print()


# ------------------------------------------------------------------- the steps


def _heading(console: Console, words: str) -> None:
    console.print(f"\n[bold]{words}[/bold]")


def _said(console: Console, words: str) -> None:
    console.print(Padding(Text(words), (0, 0, 0, 4)))


def _names(data: Labelled) -> Any:
    """Return the names of the columns that are learnt from, if there are names."""
    if data.prepare is None or data.feature_names is None:
        return data.feature_names
    return data.prepare.get_feature_names_out(data.feature_names).tolist()


def _diagnosed(rows: Any, names: Any, parts: Split, trial: Trial, console: Console) -> Any:
    """Return the diagnosis of the training part."""
    import maxmargin as mm

    _heading(console, "Diagnosis")
    with console.status("diagnosing …"):
        diagnosis = mm.diagnose(
            rows,
            parts.y_train,
            feature_names=names,
            max_time=DIAGNOSED * trial.max_time,
            random_state=trial.seed,
        )
    _said(console, str(diagnosis).replace("max_time", "--time"))
    return diagnosis


def _searched(
    diagnosis: Any, rows: Any, parts: Split, trial: Trial, console: Console
) -> tuple[Any, Any]:
    """Return the best model around the one that is recommended, and the search that found it."""
    import maxmargin as mm

    _heading(console, "Search")
    model = diagnosis.recommend()
    grid = _grid(model)
    if not grid:
        name = type(_machine(model)).__name__
        _said(console, f"{name} has no C: nothing to search for.")
        return model, None
    X, y = _sampled(rows, parts.y_train, trial)
    search = mm.SVCSearchCV(model, grid, scoring=diagnosis.scoring, refit=False)
    begun = time.perf_counter()
    try:
        with console.status("searching …"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
            search.fit(X, y)
    except ValueError as too_few:
        _said(console, f"Not possible ({too_few}): what is recommended is taken as it is.")
        return model, None
    count = len(search.cv_results_["params"])
    drawn = f" on {len(y)} sampled rows" if len(y) < len(parts.y_train) else ""
    spread = search.cv_results_["std_test_score"][search.best_index_]
    best = ", ".join(f"{k.split('__')[-1]}={v:.3g}" for k, v in search.best_params_.items())
    _said(
        console,
        f"{count} candidates, {search.n_splits_} folds each{drawn}: best {best}, "
        f"{diagnosis.scoring.replace('_', ' ')} {search.best_score_:.2%} (± {spread:.2%}). "
        f"{_seconds(begun)}",
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
    return _steps(model)[-1]


def _steps(model: Any) -> list[Any]:
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def _sampled(X: Any, y: Any, trial: Trial) -> tuple[Any, Any]:
    most = int(SEARCHED_ROWS * min(1.0, math.sqrt(trial.max_time / 30)))
    if len(y) <= most:
        return X, y
    some = np.sort(np.random.default_rng(trial.seed).permutation(len(y))[:most])
    return X[some], y[some]


def _affordable(
    model: Any, diagnosis: Any, shape: tuple[int, int], trial: Trial, console: Console
) -> Any:
    """Return the model, or of a kernel on very many rows a map of it with a plane.

    Which one follows from the numbers of rows and columns and from --time.
    """
    from maxmargin.estimators import SVC

    n, d = shape
    seconds = FITTED * trial.max_time
    name = type(_machine(model)).__name__
    if isinstance(_machine(model), SVC):
        if n**2 * (d + 30) <= KERNEL_WORK * seconds:
            return model
        kernel = model
    elif name not in ("MLPClassifier", "KNeighborsClassifier") or n <= SLOW_ROWS * seconds:
        return model
    else:
        offers = {offer.rung: offer for offer in diagnosis.alternatives}
        kernel = offers["kernels"].estimator
        if offers["kernels"].score is None:
            return offers["planes"].estimator
    mapped = _mapped(kernel, n, seconds, trial.seed)
    _said(
        console,
        f"{name} on {n} rows would take longer than --time {trial.max_time:g}: "
        f"{_steps(mapped)[-2].n_components} features of the kernel and a plane take its place.",
    )
    return mapped


def _mapped(kernel: Any, n: int, seconds: float, seed: int) -> Pipeline:
    """Return features of a kernel machine's kernel, and a plane with the machine's cost."""
    import maxmargin as mm

    *before, machine = _steps(kernel)
    features = int(np.clip(math.sqrt(MAP_WORK * seconds / n), *MAP_FEATURES))
    features_of = mm.Nystroem(n_components=features, gamma=machine.gamma, random_state=seed)
    plane = mm.LinearSVC(C=machine.C, class_weight=machine.class_weight)
    return make_pipeline(*before, features_of, plane)


def _fitted(model: Any, parts: Split, trial: Trial, console: Console) -> None:
    """Fit the model, and say how that ended."""
    from maxmargin.estimators.code import described

    _heading(console, "Fit")
    machine = _machine(model)
    limited = "max_time" in machine.get_params()
    if limited:
        machine.set_params(max_time=FITTED * trial.max_time)
    begun = time.perf_counter()
    with console.status("fitting …"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stop_reason_ says the same
        model.fit(parts.X_train, parts.y_train)
    reason = getattr(machine, "stop_reason_", "")
    if limited and "max_time" not in reason:
        machine.set_params(max_time=None)  # it made no difference, so that nobody need know
    _said(console, f"{described(model)} {_seconds(begun)}")
    if reason:
        _said(console, reason.replace("max_time", "--time"))


def _certified(machine: Any, console: Console) -> None:
    """Say what is proved."""
    _heading(console, "Certificate")
    certificate = getattr(machine, "certificate_", None)
    if certificate is None:
        _said(console, f"none: {type(machine).__name__} does not prove how good it is.")
    else:
        _said(console, str(certificate))


def _judged(subject: Any, console: Console) -> None:
    """Print the figures that the report has, of the test and of the training rows."""
    from maxmargin.reports.quality import quality_of

    _heading(console, "How good is it?")
    test, train = (quality_of(part, subject.machine) for part in subject.parts)
    seen = {figure.name: figure for figure in train.figures()}
    grid = Table.grid(padding=(0, 2))
    grid.add_row("", "test rows", "95 % interval", "training rows", style="bold")
    for figure in test.figures():
        grid.add_row(figure.name, str(figure), figure.interval, str(seen.get(figure.name, "")))
    console.print(Padding(grid, (0, 0, 0, 4)))
    for part in subject.parts:
        if part.sampled:
            _said(console, f"({part.sampled}.)")
    _said(console, "")
    _confused(test, console)


def _confused(found: Any, console: Console) -> None:
    """Print which class is taken for which: a matrix, or the most frequent mistakes."""
    labels = [str(label)[:20] for label in found.labels]
    if len(labels) <= _MATRIX:
        grid = Table.grid(padding=(0, 2))
        grid.add_row("", *(f"says {label}" for label in labels), style="bold")
        for label, counts in zip(labels, found.counts, strict=True):
            grid.add_row(f"is {label}", *map(str, counts))
        console.print(Padding(grid, (0, 0, 0, 4)))
        return
    wrong = found.counts - np.diag(found.counts.diagonal())
    most = np.argsort(-wrong, axis=None, kind="stable")[:_CONFUSIONS]
    pairs = [np.unravel_index(place, wrong.shape) for place in most]
    said = [f"{labels[i]} as {labels[j]}: {wrong[i, j]}" for i, j in pairs if wrong[i, j]]
    taken = ", ".join(said) if said else "none"
    _said(console, f"Most frequent mistakes (a row of the first is called the second): {taken}.")


def _seconds(begun: float) -> str:
    return f"[{time.perf_counter() - begun:.1f} s]"
