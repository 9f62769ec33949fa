"""``maxmargin try``: read, diagnose, take what is recommended, search around it, fit, certify.

What is done follows from numbers of rows, columns and classes and from ``--time``, not from how
fast the machine is: the same file gives the same answers anywhere, unless the time runs out, and
then a message says so. If it runs out before the diagnosis has compared planes with kernels, the
search compares them.
"""

import io
import math
import os
import sys
import time
import warnings
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline, make_pipeline

from maxmargin.atomic_write import write_atomically
from maxmargin.cli.load import Trial, TrialRows, describe_rows, load_rows, split_rows
from maxmargin.clock import Clock
from maxmargin.data import Labelled

if TYPE_CHECKING:
    from maxmargin.reports.context import Context

PIPE_WIDTH = 100
REPORT = "maxmargin-report"
MODEL = ".joblib"
OPTIONS = {"max_time": "--time"}  # parameters by their names on the command line
DIAGNOSED, FITTED = 0.5, 0.35  # shares of --time; the search takes what its rows take
HURRIED = 0.25  # of the work that follows, if not even the diagnosis was finished in time
LEAST = 0.1  # share of --time that a fit gets in any case
SEARCHED_ROWS = 2500  # learnt from in a search, if there are 30 seconds
SCORED_ON = 2  # times as many others, if rows are too many to cross-validate
AROUND = 4.0 ** np.arange(-2, 3)  # times what is recommended
KERNEL_WORK = 4e9  # rows² × (columns + 30) of a kernel machine that fit into a second
MAP_WORK = 3e9  # rows × features² of a map with a plane that fit into a second
MAP_FEATURES = (50, 1000)
MAP_WIDTHS, MAP_COSTS = (1.0, 0.25), (1.0, 16.0)  # times those of the kernel machine
SAMPLED_ROWS = 15_000  # of a kernel machine that is fitted to a part of the rows
SLOW_ROWS = 1500  # rows of networks and neighbours that fit into a second
_MATRIX = 8  # classes of a confusion matrix that fits on a screen
_CONFUSIONS = 5  # listed if there are more


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
    data = load_rows(trial)
    _print_data(data, trial, console)
    parts = split_rows(data, trial)
    console.print(f"Training on {len(parts.y_train)} rows, testing on {len(parts.y_test)}.")
    rows = parts.X_train if data.prepare is None else data.prepare.fit_transform(parts.X_train)
    if rows.shape[1] != data.X.shape[1]:
        console.print(
            f"The {data.X.shape[1]} columns learnt from become {rows.shape[1]} of numbers."
        )
    clock = Clock(trial.max_time)
    diagnosis = _diagnose(rows, _column_names(data), parts, trial, console)
    model, search = _search_around(diagnosis, rows, parts.y_train, trial, console)
    model, count = _choose_affordable(model, diagnosis, rows, parts.y_train, trial, console)
    fitted = parts.first(count)
    if count < len(parts.y_train):
        total = len(parts.y_train)
        message = f"Because of --time, the model is fitted to {count} of {total} training rows."
        data = data._replace(remarks=(message, *data.remarks))
    whole = model if data.prepare is None else make_pipeline(data.prepare, *_steps(model))
    _fit(whole, model, rows[:count], fitted.y_train, clock, console)
    with console.status("predicting …"):
        context = _make_context(whole, fitted, data, trial, search)
    _print_figures(context, console)
    _print_certificate(_machine(whole), console)
    if not trial.no_report:
        _print_heading(console, "Report")
        with console.status("drawing …"):
            message = _write_report(context, data, trial, diagnosis)
        _print_indented(console, message)


def _print_data(data: Labelled, trial: Trial, console: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_row("data", Text(Path(trial.file).name if trial.file else data.format))
    if trial.file:
        kind = data.format
        if data.label_name:
            kind += f", label column {data.label_name!r}"
        grid.add_row("format", Text(kind))
    for heading, sentence in describe_rows(data.X, data.y):
        grid.add_row(heading, Text(sentence))
    for number, remark in enumerate(data.remarks):
        grid.add_row("" if number else "remarks", Text(remark))
    console.print(grid)
    console.print()


# ------------------------------------------------------------------- the steps


def _print_heading(console: Console, heading: str) -> None:
    console.print(f"\n[bold]{heading}[/bold]")


def _print_indented(console: Console, message: str) -> None:
    console.print(Padding(Text(message), (0, 0, 0, 4)))


def _column_names(data: Labelled) -> Any:
    """Return the names of the columns that are learnt from, if there are names."""
    if data.prepare is None or data.feature_names is None:
        return data.feature_names
    return data.prepare.get_feature_names_out(data.feature_names).tolist()


def _diagnose(rows: Any, names: Any, parts: TrialRows, trial: Trial, console: Console) -> Any:
    """Return the diagnosis of the training part."""
    import maxmargin as mm

    _print_heading(console, "Diagnosis")
    with console.status("diagnosing …"):
        diagnosis = mm.diagnose(
            rows,
            parts.y_train,
            feature_names=names,
            max_time=DIAGNOSED * trial.max_time,
            random_state=trial.seed,
        )
    _print_indented(console, str(diagnosis).replace("max_time", "--time"))
    return diagnosis


def _search_around(
    diagnosis: Any, rows: Any, y: Any, trial: Trial, console: Console
) -> tuple[Any, Any]:
    """Return the best model around the one that is recommended, and the search that found it.

    If the time ran out before the diagnosis came to kernels, they are searched beside planes.
    """
    _print_heading(console, "Search")
    models = [diagnosis.recommend()]
    if not _make_grid(models[0]):
        name = type(_machine(models[0])).__name__
        _print_indented(console, f"{name} has no C: nothing to search for.")
        return models[0], None
    X, cv, seconds = rows, None, _plan_seconds(diagnosis, trial)
    if len(y) > _count_searched_rows(seconds):
        X, y, cv = _draw_sample(rows, y, seconds, trial.seed)
    if _is_late(diagnosis) and not _has_compared(diagnosis):
        message = "The diagnosis had no time to compare planes with RBF kernels: both are searched."
        _print_indented(console, message)
        models.append(_make_kernel_machine(models[0], X))
    try:
        found = [_search(model, X, y, cv, diagnosis.scoring, console) for model in models]
    except ValueError as too_few:
        _print_indented(
            console, f"Not possible ({too_few}): what is recommended is taken as it is."
        )
        return models[0], None
    best = max(range(len(found)), key=lambda k: found[k].best_score_)  # the plane, of equals
    return models[best].set_params(**found[best].best_params_), found[best]


def _is_late(diagnosis: Any) -> bool:
    """Return whether the time ran out before a question of the diagnosis, as it then says."""
    return any("the time ran out" in rung.answer for rung in diagnosis.rungs if not rung.ran)


def _has_compared(diagnosis: Any) -> bool:
    """Return whether it is known if kernels are better than planes, or that planes will do."""
    tried = {offer.rung for offer in diagnosis.alternatives if offer.score is not None}
    return diagnosis.verdict == "linearly separable" or "kernels" in tried


def _search(model: Any, X: Any, y: Any, cv: Any, scoring: str, console: Console) -> Any:
    """Return a search of costs and widths around those of a model, and print its best."""
    import maxmargin as mm

    search = mm.SVCSearchCV(model, _make_grid(model), scoring=scoring, refit=False, cv=cv)
    begun = time.perf_counter()
    with console.status("searching …"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
        search.fit(X, y)
    candidates = len(search.cv_results_["params"])
    where, spread = f"{search.n_splits_} folds each", ""
    if cv is None:
        spread = f" (± {search.cv_results_['std_test_score'][search.best_index_]:.2%})"
    else:
        fitted, others = map(len, cv[0])
        where = f"fitted to {fitted} sampled rows, scored on {others} others"
    best = ", ".join(f"{k.split('__')[-1]}={v:.3g}" for k, v in search.best_params_.items())
    _print_indented(
        console,
        f"{type(_machine(model)).__name__}: {candidates} candidates, {where}: best {best}, "
        f"{scoring.replace('_', ' ')} {search.best_score_:.2%}{spread}. {_elapsed(begun)}",
    )
    return search


def _make_kernel_machine(plane: Any, X: Any) -> Any:
    """Return an RBF machine on rows prepared as for the plane, as wide as they are spread."""
    import maxmargin as mm

    *before, machine = _steps(plane)
    seen = make_pipeline(*map(clone, before)).fit_transform(X) if before else X
    gamma = mm.kernels.RBF(gamma="scale").resolved(seen).gamma
    weight = machine.get_params().get("class_weight")
    kernel = mm.SVC(gamma=float(f"{gamma:.2g}"), class_weight=weight)
    return make_pipeline(*before, kernel) if before else kernel


def _make_grid(model: Any) -> dict[str, list[float]]:
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


def _plan_seconds(diagnosis: Any, trial: Trial) -> float:
    """Return the seconds that work is planned for: fewer if the diagnosis ran out of time."""
    return trial.max_time * (HURRIED if _is_late(diagnosis) else 1.0)


def _count_searched_rows(seconds: float) -> int:
    return int(SEARCHED_ROWS * min(1.0, math.sqrt(seconds / 30)))


def _draw_sample(X: Any, y: Any, seconds: float, seed: int) -> tuple[Any, Any, Any]:
    """Return some rows, their labels, and one split into those to fit to and those to score on."""
    from maxmargin.diagnosis.inputs import draw_rows

    rng, classes = np.random.default_rng(seed), np.unique(y, return_inverse=True)[1]
    learnt = draw_rows(classes, min(_count_searched_rows(seconds), len(y) // 2), rng)
    others = np.setdiff1d(np.arange(len(y)), learnt)
    held_out = others[draw_rows(classes[others], SCORED_ON * len(learnt), rng)]
    some = np.concatenate([learnt, held_out])
    places = np.arange(len(some))
    return X[some], y[some], [(places[: len(learnt)], places[len(learnt) :])]


def _choose_affordable(
    model: Any, diagnosis: Any, rows: Any, y: Any, trial: Trial, console: Console
) -> tuple[Any, int]:
    """Return the model and how many rows to fit it to: all that can be done within --time.

    Which ones follows from the numbers of rows and columns and from --time.
    """
    from maxmargin.estimators import SVC

    n, d = rows.shape
    seconds = FITTED * _plan_seconds(diagnosis, trial)
    name = type(_machine(model)).__name__
    if isinstance(_machine(model), SVC):
        if n**2 * (d + 30) <= KERNEL_WORK * seconds:
            return model, n
        kernel = model
    elif name not in ("MLPClassifier", "KNeighborsClassifier") or n <= SLOW_ROWS * seconds:
        return model, n
    else:
        offers = {offer.rung: offer for offer in diagnosis.alternatives}
        kernel = offers["kernels"].estimator
        if offers["kernels"].score is None:
            return offers["planes"].estimator, n
    _print_indented(
        console, f"{name} on {n} rows would take longer than --time {trial.max_time:g}."
    )
    with console.status("comparing …"):
        mapped, message = _approximate(kernel, rows, y, seconds, diagnosis.scoring, trial)
    if mapped is not None:
        _print_indented(console, f"{message}: these features and a plane replace it.")
        return mapped, n
    count = int(min(n, SAMPLED_ROWS, math.sqrt(KERNEL_WORK * seconds / (d + 30))))
    count = max(count, min(n, _count_searched_rows(seconds / FITTED)))
    _print_indented(console, f"{message}: the kernel is kept, and fitted to {count} of the rows.")
    return kernel, count


def _approximate(
    kernel: Any, rows: Any, y: Any, seconds: float, scoring: str, trial: Trial
) -> tuple[Any, str]:
    """Return features of a kernel with a plane if they do as well on a sample, and a message.

    Both are fitted to the same few rows. Features that do as well there do better with all rows.
    """
    X, y, ((learnt, others),) = _draw_sample(rows, y, seconds / FITTED, trial.seed)
    scorer = get_scorer(scoring)

    def fit_and_score(model: Any) -> float:
        fitted = clone(model).fit(X[learnt], y[learnt])
        return float(scorer(fitted, X[others], y[others]))

    count = int(np.clip(math.sqrt(MAP_WORK * seconds / rows.shape[0]), *MAP_FEATURES))
    maps = [
        _make_map(kernel, count, width, cost, trial.seed)
        for width in MAP_WIDTHS
        for cost in MAP_COSTS
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounded iterations: the score says what they are worth
        exact, scores = fit_and_score(kernel), [fit_and_score(model) for model in maps]
    best = int(np.argmax(scores))
    noise = 2 * math.sqrt(exact * (1 - exact) / len(others))  # two standard errors
    message = (
        f"Fitted to {len(learnt)} rows and scored on {len(others)} others, {count} features of the "
        f"kernel with a plane have {scoring.replace('_', ' ')} {scores[best]:.2%}, the kernel "
        f"itself {exact:.2%}"
    )
    return (maps[best] if scores[best] >= exact - noise else None), message


def _make_map(kernel: Any, count: int, width: float, cost: float, seed: int) -> Pipeline:
    """Return features of a kernel machine's kernel, and a plane."""
    import maxmargin as mm

    *before, machine = _steps(kernel)
    gamma, C = (float(f"{value:.3g}") for value in (width * machine.gamma, cost * machine.C))
    features_of = mm.Nystroem(n_components=count, gamma=gamma, random_state=seed)
    plane = mm.LinearSVC(C=C, class_weight=machine.class_weight)
    return make_pipeline(*before, features_of, plane)


def _fit(whole: Any, model: Any, rows: Any, y: Any, clock: Clock, console: Console) -> None:
    """Fit the model, the last steps of the whole, in the time that is left; print how it ended."""
    from maxmargin.inspection.code import describe

    _print_heading(console, "Fit")
    *before, machine = _steps(model)
    begun = time.perf_counter()
    with console.status("fitting …"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stop_reason_ says the same
        seen = make_pipeline(*before).fit_transform(rows, y) if before else rows
        limited = "max_time" in machine.get_params()
        if limited:
            machine.set_params(max_time=max(clock.left, LEAST * clock.max_time))
        machine.fit(seen, y)
    reason = getattr(machine, "stop_reason_", "")
    if limited and "max_time" not in reason:
        machine.set_params(max_time=None)  # it made no difference
    _print_indented(console, f"{describe(whole)} {_elapsed(begun)}")
    if reason:
        _print_indented(console, reason.replace("max_time", "--time"))


def _print_certificate(machine: Any, console: Console) -> None:
    """Print what is proved."""
    _print_heading(console, "Certificate")
    certificate = getattr(machine, "certificate_", None)
    if certificate is None:
        _print_indented(console, f"none: {type(machine).__name__} does not prove how good it is.")
    else:
        _print_indented(console, str(certificate))


def _print_figures(context: "Context", console: Console) -> None:
    """Print the figures of the test and of the training rows, as the report has them."""
    from maxmargin.reports.quality import quality_of

    _print_heading(console, "How good is it?")
    test, train = (quality_of(part, context.machine) for part in context.parts)
    seen = {figure.name: figure for figure in train.figures()}
    grid = Table.grid(padding=(0, 2))
    grid.add_row("", "test rows", "95 % interval", "training rows", style="bold")
    for figure in test.figures():
        grid.add_row(figure.name, str(figure), figure.interval, str(seen.get(figure.name, "")))
    console.print(Padding(grid, (0, 0, 0, 4)))
    for part in context.parts:
        if part.sampled:
            _print_indented(console, f"({part.sampled}.)")
    _print_indented(console, "")
    _print_confusions(test, console)


def _print_confusions(quality: Any, console: Console) -> None:
    """Print which class is taken for which: a matrix, or the most frequent mistakes."""
    labels = [str(label)[:20] for label in quality.labels]
    if len(labels) <= _MATRIX:
        grid = Table.grid(padding=(0, 2))
        grid.add_row("", *(f"says {label}" for label in labels), style="bold")
        for label, counts in zip(labels, quality.counts, strict=True):
            grid.add_row(f"is {label}", *map(str, counts))
        console.print(Padding(grid, (0, 0, 0, 4)))
        return
    pairs = quality.confusions(_CONFUSIONS)
    listed = ", ".join(f"{labels[i]} as {labels[j]}: {quality.counts[i, j]}" for i, j in pairs)
    _print_indented(
        console,
        f"Most frequent mistakes (a row of the first is called the second): {listed or 'none'}.",
    )


def _elapsed(begun: float) -> str:
    return f"[{time.perf_counter() - begun:.1f} s]"


# ------------------------------------------------------------------- the report


def _make_context(
    model: Any, parts: TrialRows, data: Labelled, trial: Trial, search: Any
) -> "Context":
    """Return what is printed and reported: the model, and its scores of the rows."""
    # Imported here: it takes as long as everything else that is imported.
    from maxmargin.reports.context import Wording, make_context

    names = data.feature_names if len(data.feature_names or ()) == data.X.shape[1] else None
    return make_context(
        model,
        parts.X_train,
        parts.y_train,
        X_test=parts.X_test,
        y_test=parts.y_test,
        search=search,
        title=Path(trial.file).name if trial.file else data.format,
        feature_names=names,
        rows=parts.numbers_train,
        rows_test=parts.numbers_test,
        wording=Wording(data.numbered, data.label_name or "label", OPTIONS, data.remarks),
    )


def _write_report(context: "Context", data: Labelled, trial: Trial, diagnosis: Any) -> str:
    """Write the report, and the model beside it; return a sentence on where they are.

    By default no file is replaced.
    """
    import joblib

    from maxmargin.reports.write import write_page

    try:
        path = Path(trial.report) if trial.report else find_free_path(Path())
        write_page(path, context, diagnosis, script=_write_script(context, data, trial))
        write_atomically(path.with_suffix(MODEL), partial(joblib.dump, context.model))
    except OSError as impossible:
        if trial.report:
            raise
        return f"Not written here ({impossible}): choose a place with --report PATH."
    source = "mm.data.read_labelled(FILE).X" if trial.file else "load_breast_cancer().data"
    return (
        f"{path} has all this and more: open it in a browser. {path.with_suffix(MODEL)} is the "
        "fitted model: joblib.load reads it, and its predict takes rows as "
        f"{source} gives them."
    )


def find_free_path(folder: Path) -> Path:
    """Return the first of maxmargin-report.html, maxmargin-report-2.html, … that does not exist.

    A path is also skipped if a model of that name exists.
    """
    names = (folder / f"{REPORT}{'' if k == 1 else f'-{k}'}.html" for k in count(1))
    taken = os.path.lexists
    return next(path for path in names if not taken(path) and not taken(path.with_suffix(MODEL)))


def _write_script(context: "Context", data: Labelled, trial: Trial) -> str:
    """Return a program that reads the same rows, splits them, fits the model and prints figures."""
    from maxmargin.inspection.code import write_code
    from maxmargin.reports.provenance import figures_code, program

    made, count = write_code(context.model), len(context.y)
    assert context.test is not None
    some = f"[:{count}]" if count + context.test.total < len(data.y) else ""
    lines = [
        *made.imports,
        *_reading_code(data, trial),
        "from sklearn.model_selection import train_test_split",
        "",
        "X_train, X_test, y_train, y_test = train_test_split(",
        f"    X, y, test_size={trial.test_fraction!r}, stratify=y, random_state={trial.seed}",
        ")",
        f"model = {made.expression}",
        f"model.fit(X_train{some}, y_train{some})",
        *figures_code(context.model, "X_test", "y_test"),
    ]
    return program(lines)


def _reading_code(data: Labelled, trial: Trial) -> list[str]:
    """Return the lines of the program that read the rows."""
    if trial.file is None:
        return [
            "from sklearn.datasets import load_breast_cancer",
            "",
            "data = load_breast_cancer()",
            "X, y = data.data, data.target_names[data.target]",
        ]
    label = "" if trial.label is None else f", {trial.label!r}"
    lines = [
        "import maxmargin as mm",
        "",
        f"data = mm.data.read_labelled({os.path.abspath(trial.file)!r}{label})",
        "X, y = data.X, data.y",
    ]
    if data.format.startswith("svmlight") and not sp.issparse(data.X):
        lines.append("X = X.toarray()  # dense enough")
    return lines
