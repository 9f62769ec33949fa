"""Models: made from options, put into pipelines, fitted in spite of Ctrl-C, and saved."""

import ast
import shlex
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import maxmargin as mm
from maxmargin.cli.command import OPTIONS, Exit
from maxmargin.cli.options import DETECTORS, MODELS, REGRESSORS, SEARCHED_MODELS
from maxmargin.cli.printing import Output
from maxmargin.cli.reading import STDIN, Data, are_several
from maxmargin.errors import ModelFileError, did_you_mean, parameter_of
from maxmargin.inspection.code import describe
from maxmargin.problems.problem import Status

MODEL_ENDING = ".mmg"
PREPARING = ("ColumnTransformer", "SimpleImputer")  # steps that follow from the data
SPREAD_OF_TUBE = 0.1  # of the targets' standard deviation
_COMPRESSED = (".xz", ".gz", ".bz2", ".zst")
# Options that are parameters of another name; the others have the same, with hyphens.
_PARAMETERS = {"seed": "random_state", "jobs": "n_jobs"}


# ------------------------------------------------------------------- from options to a model


def find_task(model: str | None, task: str | None) -> str | None:
    """Return the task that a model is for, or the one that is given; refuse a contradiction."""
    needed = "regression" if model in REGRESSORS else "classification"
    if model is None:
        return task
    if model in DETECTORS:
        return task or "classification"
    if task not in (None, needed):
        raise click.UsageError(f"--model {model} is for {needed}, and --task says {task}.")
    return needed


def make_machine(model: str | None, task: str, y: Any, options: Mapping[str, Any]) -> Any:
    """Return an unfitted estimator with the parameters that are given."""
    model = model or ("svr" if task == "regression" else "svc")
    machine = getattr(mm, MODELS[model])()
    known = machine.get_params()
    if task == "regression":
        machine.set_params(**regression_defaults(machine, y))
    for name, value in read_parameters(options).items():
        if name not in known:
            if name in ("random_state", "n_jobs"):
                continue  # nothing is drawn, or shared out
            meant = did_you_mean(name, known)
            raise click.UsageError(f"{option_name(name)} is not for --model {model}.{meant}")
        machine.set_params(**{name: value})
    try:
        getattr(machine, "check_parameters", bool)()
    except (ValueError, TypeError) as wrong:
        parameter = parameter_of(wrong)
        named = "" if parameter is None else f"{option_name(parameter)}: "
        raise click.UsageError(f"{named}{wrong}") from wrong
    return machine


def regression_defaults(machine: Any, y: Any) -> dict[str, float]:
    """Return C and ε as if targets were standardized: C = 1 and ε = 0.1 of them.

    With targets s times as large, C and ε have to be s times as large for the same function, times
    s.
    """
    spread = float(f"{np.std(y, dtype=np.float64) or 1.0:.3g}")
    known = machine.get_params()
    found = {"C": spread, "epsilon": float(f"{SPREAD_OF_TUBE * spread:.3g}")}
    return {name: value for name, value in found.items() if name in known}


def read_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that options set, by their names in Python."""
    given = {
        _PARAMETERS.get(name, name): value
        for name, value in options.items()
        if value is not None and name != "param"
    }
    if isinstance(given.get("gamma"), str):
        given["gamma"] = read_value(given["gamma"])
    if not given.get("random_state"):
        given.pop("random_state", None)  # 0 is what models do by themselves
    for entry in options.get("param") or ():
        name, equals, text = entry.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--param {entry}: write NAME=VALUE.")
        given[name.strip().replace("-", "_")] = read_value(text)
    return given


def read_value(text: str) -> Any:
    """Return a number, list, True, False or None as in Python; other text is a string."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what resembles a number
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # the last: too deep
        return text


def option_name(parameter: str) -> str:
    """Return the option that sets a parameter."""
    return OPTIONS.get(parameter, f"--param {parameter}")


# ------------------------------------------------------------------- from a model to options


def write_command(verb: str, source: str, label: str | None, model: Any) -> str:
    """Return a short command for such a model, with what matters most of it, or nothing."""
    *before, machine = steps_of(model)
    names = {MODELS[name]: name for name in (SEARCHED_MODELS if verb == "search" else MODELS)}
    name = names.get(type(machine).__name__, "")
    scales = [scale_of(step) or "" for step in before if type(step).__name__ not in PREPARING]
    if not name or len(scales) > 1 or "" in scales:
        return ""
    words = [source, *(["--label", label] if label else []), "--model", name]
    default = type(machine)()
    for name in ("C", "gamma", "kernel", "nu", "epsilon") if verb == "fit" else ("kernel",):
        if getattr(machine, name, None) != getattr(default, name, None):
            words += [f"--{name}", f"{getattr(machine, name)}"]
    return shlex.join(["maxmargin", verb, *words, "--scale", *(scales or ["none"])])


def scale_of(step: Any) -> str | None:
    """Return what ``--scale`` calls a step, or None if it is no scaler."""
    names = {"StandardScaler": "standard", "MinMaxScaler": "minmax", "MaxAbsScaler": "maxabs"}
    return names.get(type(step).__name__)


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or the model as the only one."""
    return [step for _, step in model.steps] if hasattr(model, "steps") else [model]


# ------------------------------------------------------------------- the pipeline


def make_pipeline(dataset: Data, machine: Any, scale: str | None) -> Any:
    """Return the machine with the steps that the rows need before it, unfitted."""
    prepare = dataset.rows.prepare
    steps = [("prepare", None if prepare is None else clone(prepare))]
    return join_steps([*steps, ("scale", _make_scaler(dataset, scale))], machine)


def join_steps(before: Sequence[tuple[str, Any]], machine: Any) -> Any:
    """Return a pipeline of the steps that are not None and a machine, or the machine alone."""
    steps = [(name, step) for name, step in before if step is not None]
    return Pipeline([*steps, (type(machine).__name__.lower(), machine)]) if steps else machine


def _make_scaler(dataset: Data, scale: str | None) -> Any:
    """Return the step that ``--scale`` asks for; on sparse rows zeros stay zeros."""
    sparse = _is_sparse(dataset)
    if scale is None:
        scale = "standard" if not sparse else "none" if dataset.rows.prepare is None else "maxabs"
    if scale == "minmax" and sparse:
        raise click.UsageError("--scale minmax would fill sparse rows; choose maxabs or standard.")
    if scale == "standard":
        return StandardScaler(with_mean=not sparse)
    return {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler}[scale]() if scale != "none" else None


def _is_sparse(dataset: Data) -> bool:
    """Tell whether rows are sparse when they come to the scaler."""
    prepare = dataset.rows.prepare
    if prepare is None:
        return bool(sp.issparse(dataset.rows.X))
    if not getattr(prepare, "sparse_threshold", 0):
        return False
    return bool(sp.issparse(clone(prepare).fit_transform(dataset.rows.X)))


def describe_model(model: Any) -> str:
    """Return the steps after the preparation of columns, as code in one line."""
    *before, machine = steps_of(model)
    scaled = [step for step in before if scale_of(step)]
    return " after ".join(describe(step) for step in (machine, *reversed(scaled)))


# ------------------------------------------------------------------- the fit


def fit_model(model: Any, X: Any, y: Any) -> Exit:
    """Fit a model; after Ctrl-C or short of ``tol`` it keeps what was reached."""
    machine = steps_of(model)[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stop_reason_ says the same
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            if not hasattr(machine, "status_"):
                raise
            return Exit.INTERRUPTED
    return Exit.DONE if has_converged(machine) else Exit.NOT_CONVERGED


def has_converged(machine: Any) -> bool:
    """Tell whether a fitted machine reached what it was asked for."""
    certificate = getattr(machine, "certificate_", None)
    if certificate is not None and hasattr(certificate, "holds") and hasattr(machine, "tol"):
        return bool(certificate.holds(machine.tol))
    fine = ("OPTIMAL", "ALL_CORRECT", "EPOCHS", "ONE_PASS", "SMALL_CHANGE", "HELD_OUT", "NEAREST",
            "PRECISE", "DRAWN", "STREAM")  # fmt: skip
    status = getattr(machine, "status_", Status.OPTIMAL)
    return getattr(status, "name", "OPTIMAL") in fine


def describe_certificate(machine: Any) -> str:
    """Return what is proved of a fitted machine, in a sentence."""
    nothing = f"none: {type(machine).__name__} minimises no objective that could be bounded"
    return str(getattr(machine, "certificate_", nothing))


# ------------------------------------------------------------------- the model file


def choose_path(path: str | None, words: Sequence[str]) -> Path:
    """Return where a model goes: by default here, with the name of the data."""
    if path is not None:
        return Path(path)
    if words[0] == STDIN:
        raise click.UsageError("Data from standard input have no name: say where with -o MODEL.")
    if len(words) > 1 or (are_several(words) and not Path(words[0]).is_dir()):
        raise click.UsageError("Several files have no one name: say where with -o MODEL.")
    name = Path(words[0]).resolve().name
    while Path(name).suffix.lower() in _COMPRESSED:
        name = Path(name).stem
    return Path(f"{Path(name).stem or name}{MODEL_ENDING}")


def refuse_to_replace(path: Path) -> None:
    """Refuse, before the work, a place where a model cannot go."""
    if not path.resolve().parent.is_dir():
        raise click.ClickException(f"{path}: there is no folder {path.resolve().parent}; make it.")
    if not path.is_file():
        return
    try:
        mm.files.load_described(path)
    except (ModelFileError, OSError) as other:
        raise click.ClickException(
            f"{path} exists and is no model of maxmargin: choose another -o, or remove it."
        ) from other


def save_model(output: Output, model: Any, path: Path, layout: Any, code: Exit) -> None:
    """Save a model with the columns that it reads."""
    if code == Exit.INTERRUPTED:
        output.note(f"Interrupted: saving what was reached to {path}; Ctrl-C again aborts.")
    mm.save(model, path, layout=layout)


def say_saved(output: Output, path: Path, code: Exit) -> None:
    """Say where a model is, and what it is worth."""
    remark = ""
    if code == Exit.INTERRUPTED:
        remark = ": the best that was reached before the interruption"
    elif code == Exit.NOT_CONVERGED:
        remark = f", although it has not converged to --tol (exit code {int(code)})"
    output.facts([("saved", f"{path}{remark}")])
