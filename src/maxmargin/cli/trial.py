"""What ``maxmargin try`` does and prints: fit automatically, score, certify, report, save."""

import os
import shlex
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

import maxmargin as mm
from maxmargin.cli import models, reading
from maxmargin.cli.command import Exit
from maxmargin.cli.printing import Output, certificate_to_json
from maxmargin.cli.scores import readable, shown
from maxmargin.data import Labelled
from maxmargin.diagnosis import AutomaticFit, Diagnosis, fit_automatically
from maxmargin.diagnosis.automatic import Replacement, Tuning, Untuned
from maxmargin.diagnosis.significance import amount
from maxmargin.inspection.code import describe
from maxmargin.reports.context import Wording, make_context
from maxmargin.reports.provenance import default_script, program
from maxmargin.reports.quality import baseline_error, figures_of, quality_of
from maxmargin.reports.write import write_page

REPORT = "maxmargin-report"
MATRIX_CLASSES = 8  # whose confusion matrix fits on a screen
INDENT = 4


class Trial(NamedTuple):
    """What is tried."""

    data: reading.Data
    test_fraction: float
    seed: int
    report: str | None  # where it goes; None: under a fresh name

    @property
    def bundled(self) -> bool:
        """Whether the data is scikit-learn's."""
        return self.data.layout is None


def run(
    output: Output,
    data: str | None,
    test_fraction: float,
    max_time: float,
    seed: int,
    report: str | None,
    no_report: bool,
    **how: Any,
) -> Exit:
    """Run the command."""
    if not data and how["label"] is not None:
        raise click.UsageError("--label names a column of FILE, and there is no FILE.")
    if report and no_report:
        raise click.UsageError("--report and --no-report exclude each other.")
    if report and not Path(report).resolve().parent.is_dir():
        raise click.ClickException(f"--report {report}: there is no such folder; make it.")
    rows = reading.read_data(data, **how) if data else read_bundled(how["task"])
    trial = Trial(rows, test_fraction, seed, report)
    output.facts(rows.facts())
    output.text()
    reading.refuse_labels(rows)
    found, context = _learn(output, trial, max_time)
    figures = [figures_of(context, part) for part in context.parts]
    _print_figures(output, context, *figures)
    output.heading("Certificate")
    output.text(models.describe_certificate(context.machine), INDENT)
    written: list[Path] = []
    if not no_report:
        output.heading("Report")
        with output.console.status("drawing …"):
            message, written = _write_report(trial, found, context)
        output.text(message, INDENT)
    named = zip(("test", "training"), figures, strict=True)
    return output.finish(
        data=rows.summary(),
        verdict=found.diagnosis.verdict,
        model=describe(found.model),
        certificate=certificate_to_json(context.machine),
        scores={name: {one.name: one.value for one in ones} for name, ones in named},
        saved=written,
    )


def read_bundled(task: str | None) -> reading.Data:
    """Return scikit-learn's breast cancer data."""
    bundled = load_breast_cancer()
    names = bundled.target_names[bundled.target]
    features = [str(name) for name in bundled.feature_names]
    rows = np.arange(len(names))
    labelled = Labelled(bundled.data, names, features, "diagnosis", "scikit-learn's", rows, "row")
    return reading.as_data("breast cancer", labelled, task)


def _learn(output: Output, trial: Trial, max_time: float) -> tuple[AutomaticFit, Any]:
    """Return the automatic fit to a part of the rows, and what a report needs."""
    data = trial.data
    parts = reading.split_rows(
        data.rows.y, data.task, trial.test_fraction, trial.seed, ordered=False
    )
    train, test = (data.take(part).rows for part in parts)
    output.text(f"Training on {len(train.y)} rows, testing on {len(test.y)}.")
    with output.console.status("working …"):
        found = fit_automatically(
            train.X, train.y, max_time=max_time, task=data.task, random_state=trial.seed,
            feature_names=train.feature_names, prepare=train.prepare,
            callback=_Printer(output, train.X.shape, max_time),
        )  # fmt: skip
        _print_fit(output, found)
        rows, remarks = found.rows, data.remarks
        if len(rows) < len(train.y):
            message = f"the model is fitted to {len(rows)} of {len(train.y)} training rows."
            remarks = (f"Because of --max-time, {message}", *remarks)
        context = make_context(
            found.model, train.X[rows], train.y[rows], X_test=test.X, y_test=test.y,
            search=found.tuning.search, title=reading.name_files(data.words),
            feature_names=train.feature_names, rows=train.numbers[rows], rows_test=test.numbers,
            wording=Wording(train.numbered, data.label or "label", remarks),
        )  # fmt: skip
    return found, context


# ------------------------------------------------------------------- what is printed


class _Printer:
    """Prints the steps of an automatic fit as they are made."""

    def __init__(self, output: Output, shape: tuple[int, int], max_time: float) -> None:
        self.output, self.shape, self.max_time = output, shape, max_time
        self.scoring = ""

    def __call__(self, step: Diagnosis | Tuning | Replacement) -> None:
        """Print a step."""
        if isinstance(step, Diagnosis):
            self._print_diagnosis(step)
        elif isinstance(step, Tuning):
            self._print_tuning(step)
        else:
            self._print_replacement(step)

    def _print_diagnosis(self, found: Diagnosis) -> None:
        self.scoring = found.scoring
        if found.n_features != self.shape[1]:
            become = "column becomes" if self.shape[1] == 1 else "columns become"
            made = f"{found.n_features} column{'s' * (found.n_features != 1)}"
            self.output.text(f"The {self.shape[1]} {become} {made} of numbers.")
        self.output.heading("Diagnosis")
        self.output.text(str(found), INDENT)

    def _print_tuning(self, found: Tuning) -> None:
        self.output.heading("Search")
        if found.untuned is Untuned.NO_COST:
            self.output.text("The model has no C, so there is nothing to search for.", INDENT)
        elif found.untuned is Untuned.TOO_FEW_ROWS:
            message = f"Not possible ({found.reason}): the recommended model is used as it is."
            self.output.text(message, INDENT)
        if len(found.searches) > 1:
            self.output.text(
                "The diagnosis had no time to compare planes with RBF kernels: both are searched.",
                INDENT,
            )
        for search, seconds in zip(found.searches, found.seconds, strict=True):
            self.output.text(f"{self._describe_search(found, search)} [{seconds:.1f} s]", INDENT)

    def _describe_search(self, found: Tuning, search: Any) -> str:
        results, scoring = search.cv_results_, self.scoring
        where = f"fitted to {found.n_fitted} sampled rows, scored on {found.n_scored} others"
        spread = ""
        if found.n_fitted is None:
            where = f"{search.n_splits_} folds each"
            spread = f" (± {shown(scoring, results['std_test_score'][search.best_index_])})"
        best = ", ".join(f"{k.split('__')[-1]}={v:.3g}" for k, v in search.best_params_.items())
        return (
            f"{type(models.steps_of(search.estimator)[-1]).__name__}: {len(results['params'])} "
            f"candidates, {where}: best {best}, {readable(scoring)} "
            f"{shown(scoring, search.best_score_)}{spread}."
        )

    def _print_replacement(self, found: Replacement) -> None:
        if found.n_features is None:
            outcome = "the best plane replaces it"
        elif found.by_map:
            outcome = f"{found.n_features} features of its kernel and a plane replace it"
        else:
            outcome = f"the kernel is kept, and fitted to {found.n_rows} of the rows"
        limit = f"would take longer than --max-time {self.max_time:g}"
        self.output.text(f"{found.slow} on {self.shape[0]} rows {limit}: {outcome}.", INDENT)


def _print_fit(output: Output, found: AutomaticFit) -> None:
    output.heading("Fit")
    output.text(f"{describe(found.model)} [{found.seconds:.1f} s]", INDENT)
    machine = models.steps_of(found.model)[-1]
    if found.out_of_time:
        output.text("It stopped when --max-time was used up; raise it.", INDENT)
    elif hasattr(machine, "stop_reason_"):
        output.text(machine.stop_reason_, INDENT)


def _print_figures(output: Output, context: Any, test: list[Any], train: list[Any]) -> None:
    """Print the figures of the test and of the training rows, as the report has them."""
    output.heading("How good is it?")
    seen = {figure.name: str(figure) for figure in train}
    rows = [(one.name, str(one), one.interval, seen.get(one.name, "")) for one in test]
    if context.regresses:
        rows.append(("error of the median", amount(baseline_error(context)), "", ""))
    output.table(["", "test rows", "95 % interval", "training rows"], rows, INDENT)
    for part in context.parts:
        if part.sampled:
            output.text(f"({part.sampled}.)", INDENT)
    output.text()
    if not context.regresses and len(context.classes) <= MATRIX_CLASSES:
        confused = quality_of(context.parts[0], context.machine)
        labels = [str(label)[:20] for label in confused.labels]
        counts = np.transpose(confused.counts)
        confusions = zip((f"is {label}" for label in labels), *counts, strict=True)
        output.table(["", *(f"says {label}" for label in labels)], confusions, INDENT)


# ------------------------------------------------------------------- what is written


def _write_report(trial: Trial, found: AutomaticFit, context: Any) -> tuple[str, list[Path]]:
    """Write the report, and the model beside it; return a sentence on where they are, and both.

    By default no file is replaced.
    """
    try:
        path = Path(trial.report) if trial.report else find_free_path(Path())
        write_page(path, context, found.diagnosis, script=_write_script(trial, found, context))
    except OSError as impossible:
        if trial.report:
            raise
        return f"Not written here ({impossible}): choose a place with --report PATH.", []
    page = f"{path} has all this and more: open it in a browser."
    try:
        message, place = _save_model(path, found.model, trial)
    except (OSError, ValueError, TypeError) as impossible:  # the page is there all the same
        return f"{page} The model could not be saved: {impossible}", [path]
    return f"{page} {message}", [path, place]


def _save_model(path: Path, model: Any, trial: Trial) -> tuple[str, Path]:
    """Save the model beside the report; return a sentence on how to use it, and where it is."""
    place = path.with_suffix(models.MODEL_ENDING)
    mm.save(model, place, layout=trial.data.layout)
    if trial.bundled:
        return f"{place} is the fitted model: mm.load reads it.", place
    predict = shlex.join(["maxmargin", "predict", str(place), "FILE"])
    message = f"{place} is the fitted model: {predict} predicts new rows, and mm.load reads it."
    return message, place


def find_free_path(folder: Path) -> Path:
    """Return the first of maxmargin-report.html, maxmargin-report-2.html, … that does not exist.

    A path is also skipped if a model of that name exists.
    """
    names = (folder / f"{REPORT}{'' if k == 1 else f'-{k}'}.html" for k in count(1))
    endings = (".html", models.MODEL_ENDING)
    return next(p for p in names if not any(os.path.lexists(p.with_suffix(e)) for e in endings))


def _write_script(trial: Trial, found: AutomaticFit, context: Any) -> str:
    """Return a program that reads the same rows, splits them, fits the model and prints figures."""
    stratify = "" if context.regresses else " stratify=y,"
    lines = [
        *_write_reading(trial),
        "from sklearn.model_selection import train_test_split",
        "",
        "X, X_test, y, y_test = train_test_split(",
        f"    X, y, test_size={trial.test_fraction!r},{stratify} random_state={trial.seed}",
        ")",
    ]
    if (count := len(found.rows)) + context.test.total < len(trial.data.rows.y):
        lines += [
            "import numpy as np",
            f"some = np.random.default_rng({trial.seed}).permutation(len(y))[:{count}]",
            "X, y = X[some], y[some]",
        ]
    fitted = (line for line in default_script(context).splitlines() if not line.startswith("#"))
    return program([*lines, *fitted])


def _write_reading(trial: Trial) -> list[str]:
    data = trial.data
    if trial.bundled:
        return [
            "from sklearn.datasets import load_breast_cancer",
            "",
            "data = load_breast_cancer()",
            "X, y = data.data, data.target_names[data.target]",
        ]
    given = {name: value for name, value in data.given.items() if value}
    how = "".join(f", {name}={value!r}" for name, value in given.items())
    file = "FILE" if data.words[0] == reading.STDIN else os.path.abspath(data.words[0])
    lines = [
        "import maxmargin as mm",
        "",
        f"data = mm.data.read_labelled({file!r}{how})",
        "X, y = data.X, data.y",
    ]
    if data.format.startswith("svmlight") and not sp.issparse(data.rows.X):
        lines.append("X = X.toarray()  # dense enough")
    return lines
