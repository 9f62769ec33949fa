"""``maxmargin search``: the best parameters by cross-validation, and the model they make."""

import warnings
from pathlib import Path
from typing import Any

import click
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import KFold, StratifiedKFold

import maxmargin as mm
from maxmargin.cli import models, reading
from maxmargin.cli.command import Exit
from maxmargin.cli.printing import Output, certificate_to_json
from maxmargin.cli.scores import readable, shown
from maxmargin.errors import did_you_mean

SEARCHED = ("C", "gamma", "nu", "epsilon")
DEFAULT_SCORING = {"classification": "accuracy", "regression": "r2"}
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
NUS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
SHOWN = 10  # of the best candidates; --json has all
WIDTHS = 4.0  # between neighbouring γ by default
NARROWER = range(-3, 3)  # powers of that, times the γ of gamma="scale"


def run(
    output: Output,
    data: str,
    path: str | None,
    model: str | None,
    scale: str | None,
    folds: int,
    scoring: str | None,
    cluster: str | None,
    insecure: bool,
    **parameters: Any,
) -> Exit:
    """Run the command."""
    if scoring and scoring not in (known := get_scorer_names()):
        meant = did_you_mean(scoring, known)
        raise click.UsageError(f"--scoring {scoring} is not a scorer of scikit-learn.{meant}")
    if path is not None:
        models.refuse_to_replace(Path(path))
    how = reading.take_options(parameters)
    how["task"] = models.find_task(model, how["task"])
    dataset = reading.read_data(data, **how)
    reading.refuse_labels(dataset)
    output.facts(dataset.facts())
    grids = {name: parameters.pop(name) for name in SEARCHED}
    machine = models.make_machine(model, dataset.task, dataset.rows.y, parameters)
    pipeline = models.make_pipeline(dataset, machine, scale)
    grid = _make_grid(dataset, pipeline, grids)
    with reading.connected(reading.BlockChoices(None, None, cluster, insecure)) as client:
        asked = {"scoring": scoring, "n_jobs": parameters["jobs"], "client": client}
        found = _search(dataset, pipeline, grid, folds, parameters["seed"], asked)
    best, scoring = found.best_estimator_, scoring or DEFAULT_SCORING[dataset.task]
    rows = _rank(found)
    output.facts([("searched", f"{len(rows)} candidates, {folds} folds")])
    output.table(list(rows[0]), [list(row.values()) for row in rows[:SHOWN]])
    code = Exit.DONE if models.has_converged(models.steps_of(best)[-1]) else Exit.NOT_CONVERGED
    _print_best(output, found, rows, scoring)
    if path is not None:
        mm.save(best, path, layout=dataset.layout)
        models.say_saved(output, Path(path), code)
    line = models.write_command("fit", data, how["label"], best)
    output.text("To fit it without a search:")
    output.command_line(line)
    return output.finish(
        code,
        data=dataset.summary(),
        scoring=scoring,
        best={"params": _own_names(found.best_params_), "score": found.best_score_},
        candidates=rows,
        certificate=certificate_to_json(models.steps_of(best)[-1]),
        fit=line,
        saved=path,
    )


def _make_grid(
    dataset: reading.Data, pipeline: Any, given: dict[str, Any]
) -> dict[str, list[float]]:
    """Return the values to try, by the name of the parameter in the pipeline."""
    machine = models.steps_of(pipeline)[-1]
    known = machine.get_params()
    grids = {name: list(values) for name, values in given.items() if values}
    for name in grids:
        if name not in known:
            raise click.UsageError(f"--{name} is not a parameter of {type(machine).__name__}.")
    if "C" in known and "C" not in grids:
        grids["C"] = [float(f"{machine.C * C:.3g}") for C in COSTS]
    if "nu" in known and "nu" not in grids:
        grids["nu"] = list(NUS)
    if "gamma" in known and "gamma" not in grids and known.get("kernel") != "linear":
        grids["gamma"] = _widths_around(dataset, pipeline)
    prefix = f"{pipeline.steps[-1][0]}__" if hasattr(pipeline, "steps") else ""
    return {f"{prefix}{name}": values for name, values in grids.items()}


def _widths_around(dataset: reading.Data, pipeline: Any) -> list[float]:
    """Return values of γ around the one of gamma="scale" for rows as the machine sees them."""
    X = dataset.rows.X
    if hasattr(pipeline, "steps"):
        X = clone(pipeline[:-1]).fit_transform(X)
    middle = float(mm.kernels.RBF(gamma="scale").resolved(X).gamma)
    return [float(f"{middle * WIDTHS**k:.2g}") for k in NARROWER]


def _search(
    dataset: reading.Data,
    pipeline: Any,
    grid: dict[str, list[float]],
    folds: int,
    seed: int,
    asked: dict[str, Any],
) -> Any:
    """Return the fitted search; folds are drawn by --seed."""
    kind = KFold if dataset.task == "regression" else StratifiedKFold
    cv = kind(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the exit code says it of the best
        return mm.SVCSearchCV(pipeline, grid, cv=cv, **asked).fit(dataset.rows.X, dataset.rows.y)


def _own_names(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a pipeline by the names that they have in its last step."""
    return {name.rpartition("__")[2]: value for name, value in params.items()}


def _rank(found: Any) -> list[dict[str, Any]]:
    """Return the candidates from the best to the worst."""
    results = found.cv_results_
    order = sorted(range(len(results["params"])), key=lambda k: results["rank_test_score"][k])
    return [
        {
            **_own_names(results["params"][k]),
            "score": float(results["mean_test_score"][k]),
            "deviation": float(results["std_test_score"][k]),
        }
        for k in order
    ]


def _print_best(output: Output, found: Any, rows: list[dict[str, Any]], scoring: str) -> None:
    """Print the best candidate, and what is proved of its fit to all rows."""
    best = _own_names(found.best_params_)
    listed = ", ".join(f"{name}={value:g}" for name, value in best.items())
    spread = found.cv_results_["std_test_score"][found.best_index_]
    score = f"{readable(scoring)} {shown(scoring, found.best_score_)}"
    facts = [("best", f"{listed}: {score} (deviation over the folds {shown(scoring, spread)})")]
    for name, value in best.items():
        tried = {row[name] for row in rows}
        if len(tried) > 1 and value in (min(tried), max(tried)):
            side = "smallest" if value == min(tried) else "largest"
            facts.append(("", f"{name}={value:g} is the {side} that was tried: search beyond it."))
    machine = models.steps_of(found.best_estimator_)[-1]
    output.facts([*facts, ("certificate", models.describe_certificate(machine))])
