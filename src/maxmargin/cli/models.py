"""Models by the names they have on the command line: made from options, and written as options."""

import ast
import shlex
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np

import maxmargin as mm
from maxmargin.cli.options import DETECTORS, MODELS, REGRESSORS
from maxmargin.errors import did_you_mean, parameter_of

# Options that are parameters of another name; the others have the same, with hyphens.
_PARAMETERS = {"seed": "random_state", "jobs": "n_jobs"}
_NOT_WRITTEN = ("random_state", "n_jobs", "max_time", "verbose", "callback")
_FLAGS = (
    *("C", "gamma", "kernel", "degree", "coef0", "nu", "epsilon", "quantile", "class_weight"),
    *("loss", "penalty", "multi_class", "probability", "tol", "max_time", "max_iter"),
)
SPREAD_OF_TUBE = 0.1  # of the targets' standard deviation


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
    for name, value in read_parameters(options, y).items():
        if name not in known:
            if name in ("random_state", "n_jobs"):
                continue  # nothing is drawn, or shared out
            meant = did_you_mean(name, known)
            raise click.UsageError(f"{option_name(name)} is not for --model {model}.{meant}")
        machine.set_params(**{name: value})
    if hasattr(machine, "check_parameters"):
        try:
            machine.check_parameters()
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


def read_parameters(options: Mapping[str, Any], y: Any) -> dict[str, Any]:
    """Return the parameters that options set, by their names in Python."""
    given = {
        _PARAMETERS.get(name, name): value
        for name, value in options.items()
        if value is not None and name not in ("param", "class_weight")
    }
    if isinstance(given.get("gamma"), str):
        given["gamma"] = read_value(given["gamma"])
    if not given.get("random_state"):
        given.pop("random_state", None)  # 0 is what models do by themselves
    weights = options.get("class_weight") or ()
    if weights:
        given["class_weight"] = read_weights(weights, y)
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


def read_weights(entries: Sequence[str], y: Any) -> Any:
    """Return "balanced", or weights by label."""
    if tuple(entries) == ("balanced",):
        return "balanced"
    classes = {str(label): label for label in np.unique(y).tolist()}
    weights = {}
    for entry in entries:
        label, equals, text = entry.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            equals = ""
        if not equals:
            raise click.UsageError(f"--class-weight {entry}: write balanced, or LABEL=WEIGHT.")
        if label not in classes:
            raise click.UsageError(
                f"--class-weight {entry}: no row has the label {label!r}; labels are "
                f"{', '.join(list(classes)[:10])}."
            )
        weights[classes[label]] = weight
    return weights


def option_name(parameter: str) -> str:
    """Return the option that sets a parameter."""
    names = {python: option for option, python in _PARAMETERS.items()}
    known = parameter in _FLAGS or parameter in names
    name = names.get(parameter, parameter).replace("_", "-")
    return f"--{name}" if known else f"--param {parameter}"


# ------------------------------------------------------------------- from a model to options


def write_options(model: Any) -> list[str] | None:
    """Return the options of ``fit`` that make such a model, or None if none do."""
    *before, machine = steps_of(model)
    names = {name: option for option, name in MODELS.items()}
    prepared = ("ColumnTransformer", "SimpleImputer")  # follows from the data
    scales = [scale_of(step) for step in before if type(step).__name__ not in prepared]
    if type(machine).__name__ not in names or len(scales) > 1 or None in scales:
        return None
    written = ["--model", names[type(machine).__name__]]
    defaults = type(machine)().get_params()
    for name, value in machine.get_params(deep=False).items():
        if name in _NOT_WRITTEN or (value is defaults[name] or value == defaults[name]):
            continue
        written += write_option(name, value)
    return [*written, "--scale", *(scales or ["none"])]  # type: ignore[list-item]


def write_option(name: str, value: Any) -> list[str]:
    """Return a parameter as an option."""
    if name == "class_weight" and isinstance(value, dict):
        return [
            word
            for label, weight in value.items()
            for word in ("--class-weight", f"{label}={weight!r}")
        ]
    if value is True and name == "probability":
        return ["--probability"]
    text = value if isinstance(value, str) else repr(value)
    option = option_name(name)
    return ["--param", f"{name}={text}"] if option.startswith("--param") else [option, text]


def write_command(verb: str, *words: Any) -> str:
    """Return a command line as a shell reads it."""
    return shlex.join(["maxmargin", verb, *map(str, words)])


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as words of a command line; those that are not set are left out.

    >>> option_words({"label": "risk", "zero_based": False, "task": None})
    ['--label', 'risk']
    """
    words: list[str] = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [] if not value else [option, str(value)]
    return words


def scale_of(step: Any) -> str | None:
    """Return what ``--scale`` calls a step, or None if it is no scaler."""
    names = {"StandardScaler": "standard", "MinMaxScaler": "minmax", "MaxAbsScaler": "maxabs"}
    return names.get(type(step).__name__)


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or the model as the only one."""
    return [step for _, step in model.steps] if hasattr(model, "steps") else [model]
