"""``maxmargin search``: the best parameters by cross-validation, and the model they make."""

from pathlib import Path
from typing import Any

import click

from maxmargin.cli.cluster import cluster_options, connected
from maxmargin.cli.inputs import Dataset, data_options, read_data, refuse_labels
from maxmargin.cli.models import (
    find_task,
    make_machine,
    model_options,
    option_words,
    steps_of,
    write_command,
    write_options,
)
from maxmargin.cli.output import Exit, Output, command
from maxmargin.cli.training import (
    certificate_of,
    certificate_to_json,
    has_converged,
    make_pipeline,
    refuse_to_replace,
    save_model,
    say_saved,
)

DEFAULT_SCORING = {"classification": "accuracy", "regression": "r2"}
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
NUS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
SHOWN = 10  # of the best candidates; --json has all
WIDTHS = 4.0  # between neighbouring γ by default
NARROWER = range(-3, 3)  # powers of that, times the γ of gamma="scale"

EXAMPLE = """
$ maxmargin search iris.csv -o best.mmg
…
searched        36 candidates, 5 folds
   C   gamma     score  deviation
  10   0.016  0.966667  0.0210819
…
best            C=10, gamma=0.016: accuracy 96.67% (deviation over the folds 2.11%)
certificate     The objective 292.44118 is within 2e-09 (relative 6.8e-12) of the best possible.
saved           best.mmg
The same model without a search:
  maxmargin fit iris.csv --model svc --C 10.0 --gamma 0.016 --scale standard
"""


_MOST_NUMBERS = 10_000


class Grid(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Numbers separated by commas, or LOW:HIGH:COUNT for a logarithmic scale."""

    name = "grid"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        """Return the numbers.

        >>> Grid().convert("0.01:100:5", None, None)
        (0.01, 0.1, 1.0, 10.0, 100.0)
        """
        if isinstance(value, tuple):
            return value
        try:
            if ":" not in value:
                return tuple(float(text) for text in value.split(","))
            low, high, count = value.split(":")
            start, steps = float(low), int(count) - 1
            if steps >= _MOST_NUMBERS:
                self.fail(f"{value!r} are more than {_MOST_NUMBERS} numbers", param, ctx)
            ratio = (float(high) / start) ** (1 / steps) if steps else 1.0
            return tuple(float(f"{start * ratio**k:.6g}") for k in range(steps + 1))
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            self.fail(f"{value!r} is neither numbers like 0.1,1,10 nor LOW:HIGH:COUNT", param, ctx)


def searched(name: str, help_line: str) -> Any:
    """Return the option for a parameter with several values."""
    return click.option(
        f"--{name}", name, type=Grid(), metavar="LIST|LOW:HIGH:COUNT", help=help_line
    )


def without(*names: str) -> Any:
    """Return a decorator that drops options that are replaced by searched ones."""

    def decorate(function: Any) -> Any:
        params = function.__click_params__
        params[:] = [param for param in params if param.name not in names]
        return function

    return decorate


@command("search", example=EXAMPLE, exits=tuple(Exit), see_also=("fit", "path", "diagnose"))
@data_options
@click.option(
    "-o",
    "--output",
    "path",
    metavar="MODEL",
    type=click.Path(),
    help="Fit the best candidate to all rows, and save it. Default: it is not saved.",
)
@click.option("--force", is_flag=True, help="Replace MODEL even if it is some other file.")
@searched("C", "Costs to try. Default: 0.01:1000:6; for regression times the targets' deviation.")
@searched("gamma", "Widths of the kernel to try. Default: six around that of --gamma scale.")
@searched("nu", "Values of ν to try (nu-svc, nu-svr). Default: 0.1,0.2,…,0.6.")
@searched("epsilon", "Values of ε to try. Default: a tenth of the targets' deviation.")
@without("C", "gamma", "nu", "epsilon")
@model_options(("svc", "linear-svc", "nu-svc", "svr", "linear-svr", "nu-svr", "quantile-svr"))
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option("--scoring", metavar="NAME", help="Scorer of scikit-learn. Default: accuracy, or r2.")
@click.option(
    "--refine",
    type=click.Choice(["contenders", "all"]),
    default="contenders",
    show_default=True,
    help="Which candidates are solved to --tol.",
)
@cluster_options("do the fits")
def search(
    output: Output,
    data: str,
    path: str | None,
    force: bool,
    model: str | None,
    scale: str | None,
    folds: int,
    scoring: str | None,
    refine: str,
    cluster: str | None,
    insecure: bool,
    task: str | None,
    label: str | None,
    zero_based: bool,
    data_format: str | None,
    **options: Any,
) -> Exit:
    """Find the best C, γ and other parameters by cross-validation.

    Candidates on one kernel share one matrix of kernel values, and each C starts from the solution
    of the one before. The columns of each training part are prepared and scaled by themselves.

    Prints the best candidates, and the command that fits the best one without a search.

    With --cluster every kernel setting is a task of a Dask cluster, with the same results. A worker
    that is lost costs time only.

    Ctrl-C ends the search; nothing is saved.
    """
    from maxmargin.cli.figures import check_scoring

    check_scoring((scoring,) if scoring else ())
    if path is not None:
        refuse_to_replace(Path(path), force)
    dataset = read_data(
        data, label=label, task=find_task(model, task), zero_based=zero_based,
        data_format=data_format,
    )  # fmt: skip
    refuse_labels(dataset)
    output.facts(dataset.facts())
    grids = {name: options.pop(name) for name in ("C", "gamma", "nu", "epsilon")}
    machine = make_machine(model, dataset.task, dataset.y, options)
    pipeline = make_pipeline(dataset, machine, scale)
    grid = make_grid(dataset, pipeline, grids)
    with connected(cluster, insecure) as client:
        given = {**options, "client": client}
        found = run_search(dataset, pipeline, grid, folds, scoring, refine, given)
    best = found.best_estimator_
    rows = best_rows(found)
    output.facts([("searched", f"{len(found.cv_results_['params'])} candidates, {folds} folds")])
    output.table(list(rows[0]), [list(row.values()) for row in rows[:SHOWN]])
    code = Exit.DONE if has_converged(steps_of(best)[-1]) else Exit.NOT_CONVERGED
    say_best(output, found, scoring or DEFAULT_SCORING[dataset.task])
    if path is not None:
        save_model(best, Path(path), dataset)
        say_saved(output, Path(path), code, steps_of(best)[-1])
    line = write_command("fit", data, *option_words(dataset.given), *(write_options(best) or ()))
    output.text("The same model without a search:")
    output.command_line(line)
    return output.finish(
        code,
        data=dataset.to_json(),
        scoring=scoring or DEFAULT_SCORING[dataset.task],
        best={"params": best_params(found), "score": found.best_score_},
        candidates=rows,
        certificate=certificate_to_json(getattr(steps_of(best)[-1], "certificate_", None)),
        fit=line,
        saved=path,
    )


def make_grid(dataset: Dataset, pipeline: Any, given: dict[str, Any]) -> dict[str, list[float]]:
    """Return the values to try, by the name of the parameter in the pipeline."""
    machine = steps_of(pipeline)[-1]
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
        grids["gamma"] = widths_around(dataset, pipeline)
    prefix = f"{pipeline.steps[-1][0]}__" if hasattr(pipeline, "steps") else ""
    return {f"{prefix}{name}": values for name, values in grids.items()}


def widths_around(dataset: Dataset, pipeline: Any) -> list[float]:
    """Return values of γ around the one of gamma="scale" for rows as the machine sees them."""
    from sklearn.base import clone

    import maxmargin as mm

    X = dataset.X
    if hasattr(pipeline, "steps"):
        X = clone(pipeline[:-1]).fit_transform(X)
    middle = float(mm.kernels.RBF(gamma="scale").resolved(X).gamma)
    return [float(f"{middle * WIDTHS**k:.2g}") for k in NARROWER]


def run_search(
    dataset: Dataset,
    pipeline: Any,
    grid: dict[str, list[float]],
    folds: int,
    scoring: str | None,
    refine: str,
    options: dict[str, Any],
) -> Any:
    """Return the fitted search; folds are drawn by --seed."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import KFold, StratifiedKFold

    import maxmargin as mm

    kind = KFold if dataset.task == "regression" else StratifiedKFold
    cv = kind(folds, shuffle=True, random_state=options["seed"])
    search = mm.SVCSearchCV(
        pipeline, grid, cv=cv, scoring=scoring, refine=refine, n_jobs=options.get("jobs"),
        client=options.get("client"),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the exit code says it of the best
        return search.fit(dataset.X, dataset.y)


def best_params(found: Any) -> dict[str, Any]:
    """Return the parameters of the best candidate by their own names."""
    return {name.rpartition("__")[2]: value for name, value in found.best_params_.items()}


def best_rows(found: Any) -> list[dict[str, Any]]:
    """Return the candidates from the best to the worst."""
    results = found.cv_results_
    rows = []
    for k in sorted(range(len(results["params"])), key=lambda k: results["rank_test_score"][k]):
        params = {name.rpartition("__")[2]: v for name, v in results["params"][k].items()}
        rows.append({
            **params,
            "score": float(results["mean_test_score"][k]),
            "deviation": float(results["std_test_score"][k]),
        })  # fmt: skip
    return rows


def say_best(output: Output, found: Any, scoring: str) -> None:
    """Print the best candidate, and what is proved of its fit to all rows."""
    from maxmargin.cli.figures import readable, shown

    listed = ", ".join(f"{name}={value:g}" for name, value in best_params(found).items())
    spread = found.cv_results_["std_test_score"][found.best_index_]
    score = f"{readable(scoring)} {shown(scoring, found.best_score_)}"
    machine = steps_of(found.best_estimator_)[-1]
    output.facts([
        ("best", f"{listed}: {score} (deviation over the folds {shown(scoring, spread)})"),
        *edges_of(found),
        ("certificate", certificate_of(machine)),
    ])  # fmt: skip


def edges_of(found: Any) -> list[tuple[str, str]]:
    """Return a line for each parameter whose best value is the first or last that was tried."""
    lines = []
    for name, best in best_params(found).items():
        tried = {row[name] for row in best_rows(found)}
        if len(tried) > 1 and best in (min(tried), max(tried)):
            side = "smallest" if best == min(tried) else "largest"
            lines.append(("", f"{name}={best:g} is the {side} that was tried: search beyond it."))
    return lines
