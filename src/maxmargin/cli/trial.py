"""``maxmargin try``: read, diagnose, take what is recommended, search around it, fit, certify.

What is done follows from numbers of rows, columns and classes and from ``--time``, not from how
fast the machine is: the same file gives the same answers anywhere, unless the time runs out, and
then a message says so. If it runs out before the diagnosis has compared planes with kernels, the
search compares them.
"""

import math
import os
import shlex
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from maxmargin.cli.figures import readable, remember, score_remembered, shown
from maxmargin.cli.inputs import (
    Dataset,
    choose_task,
    describe_rows,
    load_labelled,
    refuse_labels,
)
from maxmargin.cli.output import PIPE_WIDTH, use_replacements
from maxmargin.cli.training import certificate_of, certificate_to_json
from maxmargin.data import Labelled
from maxmargin.data.columns import number_equal_rows
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.runtime.clock import Clock

if TYPE_CHECKING:
    from maxmargin.reports.context import Context

REPORT = "maxmargin-report"
MODEL, OTHER_MODEL = ".mmg", ".joblib"  # the second for models that only pickles hold
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
MATRIX_CLASSES = 8  # whose confusion matrix fits on a screen
CONFUSIONS = 5  # listed if there are more


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
    zero_based: bool = False
    as_json: bool = False
    task: str | None = None


class TrialRows(NamedTuple):
    """A training and a test part; ``numbers`` say where rows are in the file."""

    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any
    numbers_train: Any
    numbers_test: Any


def run(trial: Trial) -> dict[str, Any]:
    """Do the whole job; bad input ends in a sentence, not a traceback.

    Return what the JSON object says of it.
    """
    try:
        return _TrialRun(trial).run()
    except MemoryError as too_large:
        raise click.ClickException(
            f"not enough memory for this data ({too_large or 'no details'}); "
            "try fewer rows or columns"
        ) from too_large
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as bad_input:
        raise click.ClickException(str(bad_input)) from bad_input


class _TrialRun:
    """One trial: what is asked for, where it is printed, and what is known so far."""

    def __init__(self, trial: Trial) -> None:
        use_replacements(sys.stdout)  # a terminal without × still gets the numbers
        self.trial = trial
        self.console = Console(highlight=False, quiet=trial.as_json)
        if not self.console.is_terminal:
            self.console.width = PIPE_WIDTH

    def run(self) -> dict[str, Any]:
        """Read, diagnose, search, fit, score, certify and report."""
        trial = self.trial
        if trial.report and not Path(trial.report).resolve().parent.is_dir():
            raise click.ClickException(
                f"--report {trial.report}: there is no such folder; make it."
            )
        data = load_rows(trial)
        self.task, why = (trial.task, "") if trial.task else choose_task(data.y, data.label_name)
        self._print_data(data, why)
        parts = split_rows(data, trial, self.task)
        total = len(parts.y_train)
        self.console.print(f"Training on {total} rows, testing on {len(parts.y_test)}.")
        X = parts.X_train if data.prepare is None else data.prepare.fit_transform(parts.X_train)
        if X.shape[1] != data.X.shape[1]:
            before = "column becomes" if data.X.shape[1] == 1 else "columns become"
            after = "column" if X.shape[1] == 1 else "columns"
            self.console.print(f"The {data.X.shape[1]} {before} {X.shape[1]} {after} of numbers.")
        self.X, self.y, clock = X, parts.y_train, Clock(trial.max_time)
        self.groups = number_equal_rows(parts.X_train)
        self._diagnose(data)
        model, search = self._search_around()
        model, count = self._choose_affordable(model)
        if count < total:
            message = f"Because of --time, the model is fitted to {count} of {total} training rows."
            data = data._replace(remarks=(message, *data.remarks))
        whole = model if data.prepare is None else make_pipeline(data.prepare, *_steps(model))
        self._fit(whole, model, count, clock)
        with self.console.status("predicting …"):
            context = _make_context(whole, parts, count, data, trial, search)
        self._print_figures(context)
        self._print_heading("Certificate")
        machine = _steps(whole)[-1]
        self._print(certificate_of(machine))
        written: list[Path] = []
        if not trial.no_report:
            self._print_heading("Report")
            with self.console.status("drawing …"):
                message, written = _write_report(context, data, trial, self.diagnosis)
            self._print(message)
        return self._to_json(data, context, written)

    def _to_json(self, data: Labelled, context: "Context", written: list[Path]) -> dict[str, Any]:
        from maxmargin.inspection.code import describe
        from maxmargin.reports.quality import figures_of

        model, machine = context.model, context.machine
        parts = zip(("test", "training"), context.parts, strict=True)
        found = {name: figures_of(context, part) for name, part in parts}
        certificate = getattr(machine, "certificate_", None)
        return {
            "data": {
                "source": _title(data, self.trial), "format": data.format,
                "rows": data.X.shape[0], "columns": data.X.shape[1], "label": data.label_name,
                "task": self.task, "remarks": data.remarks,
            },
            "verdict": self.diagnosis.verdict,
            "model": describe(model),
            "certificate": certificate_to_json(certificate, getattr(machine, "tol", None)),
            "scores": {name: {each.name: each.value for each in figures}
                       for name, figures in found.items()},
            "saved": written,
        }  # fmt: skip

    def _print_heading(self, heading: str) -> None:
        self.console.print(f"\n[bold]{heading}[/bold]")

    def _print(self, message: str | Table) -> None:
        """Print indented text, or a table."""
        shown = Text(message) if isinstance(message, str) else message
        self.console.print(Padding(shown, (0, 0, 0, 4)))

    def _print_data(self, data: Labelled, why: str) -> None:
        facts = [("data", _title(data, self.trial))]
        if self.trial.file:
            label = f", label column {data.label_name!r}" if data.label_name else ""
            facts.append(("format", data.format + label))
        facts += describe_rows(data.X, data.y, self.task)
        numbers = data.y.dtype.kind in "iuf"  # of words it goes without saying
        facts += [("task", f"{self.task}: {why}")] if why and numbers else []
        facts += [("" if k else "remarks", remark) for k, remark in enumerate(data.remarks)]
        grid = Table.grid(padding=(0, 2))
        for heading, sentence in facts:
            grid.add_row(heading, Text(sentence))
        self.console.print(grid)
        self.console.print()

    def _diagnose(self, data: Labelled) -> None:
        import maxmargin as mm

        names = data.feature_names
        if data.prepare is not None and names is not None:
            names = data.prepare.get_feature_names_out(names).tolist()
        self._print_heading("Diagnosis")
        with self.console.status("diagnosing …"):
            self.diagnosis = found = mm.diagnose(
                self.X,
                self.y,
                feature_names=names,
                task=self.task,
                groups=self.groups,
                max_time=DIAGNOSED * self.trial.max_time,
                random_state=self.trial.seed,
            )
        self._print(_worded(str(found)))
        if self.task == "regression":
            self._print_methods()
        # If the time ran out, the rungs that were not asked say so.
        self.late = any("the time ran out" in rung.answer for rung in found.rungs if not rung.ran)
        # The seconds that work is planned for, and the rows that a search learns from.
        self.seconds = self.trial.max_time * (HURRIED if self.late else 1.0)
        self.searched_rows = int(SEARCHED_ROWS * min(1.0, math.sqrt(self.seconds / 30)))

    def _print_methods(self) -> None:
        """Print what was compared: a regression has no confusions to look at."""
        grid = Table.grid(padding=(0, 2))
        grid.add_row("on held-out rows", "R²", "95 % interval", style="bold")
        for offer in self.diagnosis.alternatives:
            grid.add_row(f"{offer.rung}: {_name(offer.estimator)}", *offer.figures)
        self._print("")
        self._print(grid)

    # --------------------------------------------------------------- the model

    def _search_around(self) -> tuple[Any, Any]:
        """Return the best model around the one that is recommended, and the search that found it.

        If the time ran out before the diagnosis came to kernels, they are searched beside planes.
        """
        self._print_heading("Search")
        models = [self.diagnosis.recommend()]
        if not _make_grid(models[0]):
            self._print(f"{_name(models[0])} has no C, so there is nothing to search for.")
            return models[0], None
        X, y, cv = self.X, self.y, None
        if len(y) > self.searched_rows:
            X, y, cv = self._draw_sample()
        tried = {offer.rung for offer in self.diagnosis.alternatives if offer.score is not None}
        compared = self.diagnosis.verdict == "linearly separable" or "kernels" in tried
        if self.late and not compared:
            self._print(
                "The diagnosis had no time to compare planes with RBF kernels: both are searched."
            )
            models.append(_make_kernel_machine(models[0], X))
        try:
            found = [self._search(model, X, y, cv) for model in models]
        except ValueError as too_few:
            self._print(f"Not possible ({too_few}): the recommended model is used as it is.")
            return models[0], None
        best = max(range(len(found)), key=lambda k: found[k].best_score_)  # the plane, of equals
        return models[best].set_params(**found[best].best_params_), found[best]

    def _search(self, model: Any, X: Any, y: Any, cv: Any) -> Any:
        """Return a search of costs and widths around those of a model, and print its best."""
        import maxmargin as mm

        scoring = self.diagnosis.scoring
        search = mm.SVCSearchCV(model, _make_grid(model), scoring=scoring, refit=False, cv=cv)
        begun = time.perf_counter()
        with self.console.status("searching …"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
            search.fit(X, y)
        candidates = len(search.cv_results_["params"])
        where, spread = f"{search.n_splits_} folds each", ""
        if cv is None:
            deviation = search.cv_results_["std_test_score"][search.best_index_]
            spread = f" (± {shown(scoring, deviation)})"
        else:
            fitted, others = map(len, cv[0])
            where = f"fitted to {fitted} sampled rows, scored on {others} others"
        best = ", ".join(f"{k.split('__')[-1]}={v:.3g}" for k, v in search.best_params_.items())
        self._print(
            f"{_name(model)}: {candidates} candidates, {where}: best {best}, "
            f"{readable(scoring)} {shown(scoring, search.best_score_)}{spread}. {_elapsed(begun)}"
        )
        return search

    def _draw_sample(self) -> tuple[Any, Any, Any]:
        """Return some rows, their labels, and a split into rows to fit to and rows to score on."""
        from maxmargin.diagnosis.inputs import draw_rows

        n, rng = len(self.y), np.random.default_rng(self.trial.seed)
        classes = np.zeros(n, dtype=np.int64)
        if self.task == "classification":
            classes = np.unique(self.y, return_inverse=True)[1]
        learnt = draw_rows(classes, min(self.searched_rows, n // 2), rng)
        others = np.setdiff1d(np.arange(n), learnt)
        held_out = others[draw_rows(classes[others], SCORED_ON * len(learnt), rng)]
        some = np.concatenate([learnt, held_out])
        split = np.split(np.arange(len(some)), [len(learnt)])
        return self.X[some], self.y[some], [split]

    def _choose_affordable(self, model: Any) -> tuple[Any, int]:
        """Return the model and how many rows to fit it to: all that can be done within --time.

        Which ones follows from the numbers of rows and columns and from --time.
        """
        from maxmargin.estimators import SVC, SVR

        n, d = self.X.shape
        seconds = FITTED * self.seconds
        name, kernel = _name(model), model
        if isinstance(_steps(model)[-1], SVC | SVR):
            if n**2 * (d + 30) <= KERNEL_WORK * seconds:
                return model, n
        elif name not in ("MLPClassifier", "KNeighborsClassifier") or n <= SLOW_ROWS * seconds:
            return model, n
        else:
            offers = {offer.rung: offer for offer in self.diagnosis.alternatives}
            if offers["kernels"].score is None:
                return offers["planes"].estimator, n
            kernel = offers["kernels"].estimator
        self._print(f"{name} on {n} rows would take longer than --time {self.trial.max_time:g}.")
        with self.console.status("comparing …"):
            mapped, message = self._approximate(kernel, seconds)
        if mapped is not None:
            self._print(f"{message}: these features and a plane replace it.")
            return mapped, n
        count = int(min(n, SAMPLED_ROWS, math.sqrt(KERNEL_WORK * seconds / (d + 30))))
        count = max(count, min(n, self.searched_rows))
        self._print(f"{message}: the kernel is kept, and fitted to {count} of the rows.")
        return kernel, count

    def _approximate(self, kernel: Any, seconds: float) -> tuple[Any, str]:
        """Return features of a kernel with a plane if they do as well on a sample, and a message.

        Both are fitted to the same few rows. Features that do as well there do better with all
        rows.
        """
        scoring = self.diagnosis.scoring
        X, y, ((learnt, others),) = self._draw_sample()
        count = int(np.clip(math.sqrt(MAP_WORK * seconds / len(self.y)), *MAP_FEATURES))
        maps = [
            _make_map(kernel, count, width, cost, self.trial.seed)
            for width in MAP_WIDTHS
            for cost in MAP_COSTS
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bounded iterations: the score shows their worth
            fitted = (clone(model).fit(X[learnt], y[learnt]) for model in (kernel, *maps))
            exact, *scores = (
                score_remembered(remember(one, X[others]), y[others], scoring) for one in fitted
            )
        best = int(np.argmax([score.value for score in scores]))
        noise = 2 * exact.error  # two standard errors
        message = (
            f"Fitted to {len(learnt)} rows and scored on {len(others)} others, {count} features of "
            f"the kernel with a plane have {readable(scoring)} "
            f"{shown(scoring, scores[best].value)}, the kernel itself "
            f"{shown(scoring, exact.value)}"
        )
        as_good = scores[best].value >= exact.value - noise
        return (maps[best] if as_good else None), message

    def _fit(self, whole: Any, model: Any, count: int, clock: Clock) -> None:
        """Fit the model, the last steps of the whole, in the time left; print how it ended."""
        from maxmargin.inspection.code import describe

        self._print_heading("Fit")
        X, y = self.X[:count], self.y[:count]
        *before, machine = _steps(model)
        begun = time.perf_counter()
        with self.console.status("fitting …"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stop_reason_ says the same
            seen = make_pipeline(*before).fit_transform(X, y) if before else X
            limited = "max_time" in machine.get_params()
            if limited:
                machine.set_params(max_time=max(clock.left, LEAST * clock.max_time))
            machine.fit(seen, y)
        reason = getattr(machine, "stop_reason_", "")
        if limited and "max_time" not in reason:
            machine.set_params(max_time=None)  # it made no difference
        self._print(f"{describe(whole)} {_elapsed(begun)}")
        if reason:
            self._print(_worded(reason))

    def _print_figures(self, context: "Context") -> None:
        """Print the figures of the test and of the training rows, as the report has them."""
        from maxmargin.diagnosis.significance import amount
        from maxmargin.reports.quality import baseline_error, figures_of

        self._print_heading("How good is it?")
        test, train = (figures_of(context, part) for part in context.parts)
        seen = {figure.name: figure for figure in train}
        grid = Table.grid(padding=(0, 2))
        grid.add_row("", "test rows", "95 % interval", "training rows", style="bold")
        for figure in test:
            grid.add_row(figure.name, str(figure), figure.interval, str(seen.get(figure.name, "")))
        if self.task == "regression":
            grid.add_row("error of the median", amount(baseline_error(context)))
        self._print(grid)
        for part in context.parts:
            if part.sampled:
                self._print(f"({part.sampled}.)")
        self._print("")
        if self.task == "classification":
            self._print_confusions(context)

    def _print_confusions(self, context: "Context") -> None:
        """Print which class is taken for which: a matrix, or the most frequent mistakes."""
        from maxmargin.reports.quality import quality_of

        test = quality_of(context.parts[0], context.machine)
        labels = [str(label)[:20] for label in test.labels]
        if len(labels) <= MATRIX_CLASSES:
            grid = Table.grid(padding=(0, 2))
            grid.add_row("", *(f"says {label}" for label in labels), style="bold")
            for label, counts in zip(labels, test.counts, strict=True):
                grid.add_row(f"is {label}", *map(str, counts))
            self._print(grid)
            return
        pairs = test.confusions(CONFUSIONS)
        listed = ", ".join(f"{labels[i]} as {labels[j]}: {test.counts[i, j]}" for i, j in pairs)
        self._print(
            f"Most frequent mistakes (a row of the first is called the second): {listed or 'none'}."
        )


# ------------------------------------------------------------------- the rows


def load_rows(trial: Trial) -> Labelled:
    """Return the rows of the file, or bundled ones; sparse only if that is smaller."""
    if trial.file is None:
        bundled = load_breast_cancer()
        names = bundled.target_names[bundled.target]
        features = [str(name) for name in bundled.feature_names]
        kind = "breast cancer, scikit-learn's"
        rows = np.arange(len(names))
        return Labelled(bundled.data, names, features, "diagnosis", kind, rows, "row")
    found: Labelled = load_labelled(
        trial.file, trial.label, zero_based=trial.zero_based, task=trial.task
    )
    return found


def split_rows(data: Labelled, trial: Trial, task: str = "classification") -> TrialRows:
    """Return a training and a test part with every class on both sides."""
    _refuse_labels(data, task)
    rows, fraction = np.arange(len(data.y)), trial.test_fraction
    classes = data.y if task == "classification" else None
    try:
        train, test = train_test_split(
            rows, test_size=fraction, stratify=classes, random_state=trial.seed
        )
    except ValueError as impossible:
        every = "" if classes is None else " with every class on both sides"
        raise click.ClickException(
            f"cannot hold back {fraction:.0%} of {len(rows)} rows{every} ({impossible}); "
            "choose another --test"
        ) from impossible
    if classes is not None:
        _refuse_absent(data, fraction, train, test)
    parts = [part[side] for part in (data.X, data.y, data.numbers) for side in (train, test)]
    return TrialRows(*parts)


def _refuse_absent(data: Labelled, fraction: float, train: Any, test: Any) -> None:
    for side, taken in (("test", test), ("training", train)):
        absent = np.setdiff1d(data.y, data.y[taken])
        if len(absent):
            raise click.ClickException(
                f"with --test {fraction:g}, no {side} row has the label {absent[0]}, which only "
                f"{np.count_nonzero(data.y == absent[0])} of {len(data.y)} rows have: choose "
                "--test nearer to 0.5, or remove those rows."
            )


def _refuse_labels(data: Labelled, task: str) -> None:
    """Refuse labels that are not classes, and classes that are too small."""
    refuse_labels(Dataset("", data, task))
    classes, counts = np.unique(data.y, return_counts=True)
    if task == "classification" and counts.min() < 2:
        alone = classes[counts < 2]
        few = f"{len(alone)} of {len(classes)} labels occur once only ({alone[0]} is one)"
        few = few if len(alone) > 1 else f"the label {alone[0]} occurs once only"
        these = "those rows" if len(alone) > 1 else "that row"
        numbers = "; if the labels are measurements, say --task regression"
        raise click.ClickException(
            f"{few}: each class needs a row to train on and one to test on. "
            f"Remove {these}{numbers if classes.dtype.kind in 'iuf' else ''}."
        )


# ------------------------------------------------------------------- models


def _steps(model: Any) -> list[Any]:
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def _name(model: Any) -> str:
    return type(_steps(model)[-1]).__name__


def _make_grid(model: Any) -> dict[str, list[float]]:
    """Return costs, and widths of the kernel, around those of a model."""
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    params = _steps(model)[-1].get_params()
    return {
        f"{prefix}{name}": (params[name] * AROUND).tolist()
        for name in ("C", "gamma")
        if isinstance(params.get(name), float) and math.isfinite(params[name])
    }


def _make_kernel_machine(plane: Any, X: Any) -> Any:
    """Return an RBF machine on rows prepared as for the plane, as wide as they are spread."""
    import maxmargin as mm

    *before, machine = _steps(plane)
    seen = make_pipeline(*map(clone, before)).fit_transform(X) if before else X
    gamma = mm.kernels.RBF(gamma="scale").resolved(seen).gamma
    gamma = float(f"{gamma:.2g}")
    kernel: Any = mm.SVC(gamma=gamma, class_weight=machine.get_params().get("class_weight"))
    if isinstance(machine, mm.LinearSVR):
        spread = 10 * machine.epsilon  # of the targets, by which a diagnosis chooses the tube
        kernel = mm.SVR(C=spread, epsilon=machine.epsilon, gamma=gamma)
    return make_pipeline(*before, kernel) if before else kernel


def _make_map(kernel: Any, count: int, width: float, cost: float, seed: int) -> Pipeline:
    """Return features of a kernel machine's kernel, and a plane."""
    import maxmargin as mm

    *before, machine = _steps(kernel)
    gamma, C = (float(f"{value:.3g}") for value in (width * machine.gamma, cost * machine.C))
    features_of = mm.Nystroem(n_components=count, gamma=gamma, random_state=seed)
    if isinstance(machine, mm.SVR):
        plane = mm.LinearSVR(C=C, epsilon=machine.epsilon)
    else:
        plane = mm.LinearSVC(C=C, class_weight=machine.class_weight)
    return make_pipeline(*before, features_of, plane)


_OPTIONS = {"stopped at max_time": "stopped when --time was used up", "max_time": "--time"}


def _worded(sentence: str) -> str:
    """Return a sentence in the terms of the command line."""
    for name, given in _OPTIONS.items():
        sentence = sentence.replace(name, given)
    return sentence


def _elapsed(begun: float) -> str:
    return f"[{time.perf_counter() - begun:.1f} s]"


# ------------------------------------------------------------------- the report


def _title(data: Labelled, trial: Trial) -> str:
    return Path(trial.file).name if trial.file else data.format


def _make_context(
    model: Any, parts: TrialRows, count: int, data: Labelled, trial: Trial, search: Any
) -> "Context":
    """Return what is printed and reported: the model, and its scores of the rows.

    It was fitted to the first rows of the training part, a random sample.
    """
    # Imported here: it takes as long as everything else that is imported.
    from maxmargin.reports.context import Wording, make_context

    return make_context(
        model,
        parts.X_train[:count],
        parts.y_train[:count],
        X_test=parts.X_test,
        y_test=parts.y_test,
        search=search,
        title=_title(data, trial),
        feature_names=data.feature_names,
        rows=parts.numbers_train[:count],
        rows_test=parts.numbers_test,
        wording=Wording(data.numbered, data.label_name or "label", _OPTIONS, data.remarks),
    )


def _write_report(
    context: "Context", data: Labelled, trial: Trial, diagnosis: Any
) -> tuple[str, list[Path]]:
    """Write the report, and the model beside it; return a sentence on where they are, and both.

    By default no file is replaced.
    """
    from maxmargin.reports.write import write_page

    try:
        path = Path(trial.report) if trial.report else find_free_path(Path())
        write_page(path, context, diagnosis, script=_write_script(context, data, trial))
    except OSError as impossible:
        if trial.report:
            raise
        return f"Not written here ({impossible}): choose a place with --report PATH.", []
    page = f"{path} has all this and more: open it in a browser."
    try:
        message, place = _save_model(path, context.model, data, trial)
    except (OSError, ValueError) as impossible:  # the page is there all the same
        return f"{page} The model could not be saved: {impossible}", [path]
    return f"{page} {message}", [path, place]


def _save_model(path: Path, model: Any, data: Labelled, trial: Trial) -> tuple[str, Path]:
    """Save the model beside the report; return a sentence on how to use it, and where it is.

    A network from the diagnosis is no model that a native file holds, and is pickled.
    """
    import joblib

    import maxmargin as mm

    place = path.with_suffix(MODEL)
    try:
        mm.save(model, place, layout=data.layout)
    except TypeError:
        place = path.with_suffix(OTHER_MODEL)
        write_atomically(place, partial(joblib.dump, model))
        source = "mm.data.read_labelled(FILE).X" if trial.file else "load_breast_cancer().data"
        return (
            f"{place} is the fitted model, a pickle, since {_name(model)} is not maxmargin's: "
            f"joblib.load reads it, and its predict takes rows as {source} gives them."
        ), place
    if trial.file is None:
        return f"{place} is the fitted model: mm.load reads it.", place
    predict = shlex.join(["maxmargin", "predict", str(place), "FILE"])
    message = f"{place} is the fitted model: {predict} predicts new rows, and mm.load reads it."
    return message, place


def find_free_path(folder: Path) -> Path:
    """Return the first of maxmargin-report.html, maxmargin-report-2.html, … that does not exist.

    A path is also skipped if a model of that name exists.
    """
    names = (folder / f"{REPORT}{'' if k == 1 else f'-{k}'}.html" for k in count(1))
    endings = (".html", MODEL, OTHER_MODEL)
    return next(
        path
        for path in names
        if not any(os.path.lexists(path.with_suffix(ending)) for ending in endings)
    )


def _write_script(context: "Context", data: Labelled, trial: Trial) -> str:
    """Return a program that reads the same rows, splits them, fits the model and prints figures."""
    from maxmargin.inspection.code import write_code
    from maxmargin.reports.provenance import figures_code, program

    made, count = write_code(context.model), len(context.y)
    assert context.test is not None
    some = f"[:{count}]" if count + context.test.total < len(data.y) else ""
    stratify = "" if context.regresses else " stratify=y,"
    reading = [
        "from sklearn.datasets import load_breast_cancer",
        "",
        "data = load_breast_cancer()",
        "X, y = data.data, data.target_names[data.target]",
    ]
    if trial.file is not None:
        label = "" if trial.label is None else f", {trial.label!r}"
        label += "" if trial.task is None else f", task={trial.task!r}"
        reading = [
            "import maxmargin as mm",
            "",
            f"data = mm.data.read_labelled({os.path.abspath(trial.file)!r}{label})",
            "X, y = data.X, data.y",
        ]
        if data.format.startswith("svmlight") and not sp.issparse(data.X):
            reading.append("X = X.toarray()  # dense enough")
    lines = [
        *made.imports,
        *reading,
        "from sklearn.model_selection import train_test_split",
        "",
        "X_train, X_test, y_train, y_test = train_test_split(",
        f"    X, y, test_size={trial.test_fraction!r},{stratify} random_state={trial.seed}",
        ")",
        f"model = {made.expression}",
        f"model.fit(X_train{some}, y_train{some})",
        *figures_code(context.model, "X_test", "y_test"),
    ]
    return program(lines)
