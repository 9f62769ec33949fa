"""Arguments and options of the commands, each declared once."""

from collections.abc import Callable
from typing import Any

import click

CLASSIFIERS = {
    "svc": "SVC",
    "linear-svc": "LinearSVC",
    "nu-svc": "NuSVC",
    "hard-margin": "HardMarginSVC",
    "perceptron": "Perceptron",
    "averaged-perceptron": "AveragedPerceptron",
    "kernel-perceptron": "KernelPerceptron",
    "bayes-point": "BayesPointClassifier",
}
REGRESSORS = {
    "svr": "SVR",
    "linear-svr": "LinearSVR",
    "nu-svr": "NuSVR",
    "quantile-svr": "QuantileSVR",
}
DETECTORS = {"one-class": "OneClassSVM"}
MODELS = CLASSIFIERS | REGRESSORS | DETECTORS
TASKS = ("classification", "regression")
KERNELS = (
    *("linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "chi2", "intersection"),
)  # fmt: skip
SCALES = ("standard", "minmax", "maxabs", "none")
SEARCHED_MODELS = ("svc", "linear-svc", "nu-svc", "svr", "linear-svr", "nu-svr", "quantile-svr")
_MOST_NUMBERS = 10_000
Decorator = Callable[[Any], Any]
_SECONDS: dict[str, Any] = {"type": click.FloatRange(0, min_open=True), "metavar": "SECONDS"}
_NUMBER: dict[str, Any] = {"type": float, "metavar": "NUMBER"}
_WHOLE: dict[str, Any] = {"type": int, "metavar": "NUMBER"}
FLAG: dict[str, Any] = {"is_flag": True}


def together(*options: Decorator) -> Decorator:
    """Return a decorator that adds options in this order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def declare(options: dict[str, tuple[dict[str, Any], str]]) -> Decorator:
    """Return a decorator with options by name: what they take, and what they are for."""
    return together(*(
        click.option(f"--{name}", name.replace("-", "_"), help=line, **takes)
        for name, (takes, line) in options.items()
    ))  # fmt: skip


# ------------------------------------------------------------------- types


class GridValues(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Numbers separated by commas, or LOW:HIGH:COUNT for a logarithmic scale."""

    name = "grid"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        """Return the numbers.

        >>> GridValues().convert("0.01:100:5", None, None)
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


# ------------------------------------------------------------------- data


data = click.argument(
    "data", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="DATA..."
)
ONE_FILE = click.Path(dir_okay=False, allow_dash=True)
one_file = click.argument("data", type=ONE_FILE, metavar="DATA")
label = declare({
    "label": ({"metavar": "COLUMN"}, "Label column of a table: its name, or its number from 1. "
              "Default: the one named label, target, class or y, else the last."),
})  # fmt: skip
zero_based = declare({"zero-based": (FLAG, "Indices of svmlight text count from 0.")})
task = declare({
    "task": ({"type": click.Choice(TASKS)}, "Default: regression if the labels are numbers with "
             "fractions, or many different whole numbers."),
})  # fmt: skip
reading = together(label, task, zero_based)


def _read_memory(context: Any, option: Any, text: str | None) -> int | None:
    from maxmargin.rows.request import parse_memory

    try:
        return parse_memory(text)
    except ValueError as wrong:
        raise click.BadParameter(f"{wrong}.", context, option) from wrong


memory = declare({
    "memory": ({"metavar": "AMOUNT", "callback": _read_memory}, "Read the rows in blocks, within "
               "so much memory: 2GB, 512MiB. Default for several files: an eighth of what the "
               "machine has."),
})  # fmt: skip
checkpoint = declare({
    "checkpoint": ({"metavar": "FOLDER", "type": click.Path(file_okay=False)}, "Read the rows in "
                   "blocks, and save the fit there every few iterations: after it was killed, the "
                   "same command goes on from there."),
})  # fmt: skip


def cluster(does: str) -> Decorator:
    """Return a decorator with ``--cluster`` and ``--insecure``."""
    return declare({
        "cluster": ({"metavar": "ADDRESS"}, f"Scheduler of a Dask cluster whose workers {does}, "
                    "such as tcp://127.0.0.1:8786; on other machines tls://. Default: this "
                    "process."),
        "insecure": (FLAG, "Let --cluster be another machine without TLS: a trusted one."),
    })  # fmt: skip


# ------------------------------------------------------------------- what commands share


def max_time(default: float | None, help_line: str) -> Decorator:
    """Return ``--max-time``, which every command has that learns or proves."""
    names = ("--max-time", "--time", "max_time")
    return click.option(
        *names, default=default, show_default=default is not None, help=help_line, **_SECONDS
    )


seed = declare({
    "seed": ({"type": click.IntRange(0, 2**32 - 1), "default": 0, "show_default": True},
             "Of everything that is drawn at random."),
})  # fmt: skip


def held_back(help_line: str, default: float | None = None) -> Decorator:
    """Return ``--test``, the part of the rows that is not learnt from."""
    return click.option(
        "--test",
        "test_fraction",
        metavar="FRACTION",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=default,
        show_default=default is not None,
        help=help_line,
    )


# The rows that a fit held back, for commands that read a model and its data.
split = together(held_back("Part of the rows that maxmargin fit held back. Default: none."), seed)


def output(metavar: str, help_line: str, *, dash: bool = False) -> Decorator:
    """Return ``-o``."""
    kind = click.Path(dir_okay=False, allow_dash=dash)
    return click.option("-o", "--output", "path", metavar=metavar, type=kind, help=help_line)


# ------------------------------------------------------------------- models


saved_model = click.argument("model", type=click.Path(dir_okay=False))
# What text models do not hold.
lacking = declare({
    "C": (_NUMBER, "Cost that a LIBSVM or LIBLINEAR model was trained with (-c), which its file "
          "lacks."),
    "epsilon": (_NUMBER, "Its ε (-p), for regression."),
    "nu": (_NUMBER, "Its ν (-n)."),
})  # fmt: skip
_GRID: dict[str, Any] = {"type": GridValues(), "metavar": "LIST|LOW:HIGH:COUNT"}
fixed = declare({
    "C": (_NUMBER, "Cost of slack. Default: 1; for regression the standard deviation of the "
          "targets, as if they were standardized."),
    "gamma": ({"metavar": "NUMBER|scale|auto"}, "Width of the kernel: larger is "
              "narrower. Default: scale, 1/(columns × variance)."),
    "nu": (_NUMBER, "Of nu-svc, nu-svr and one-class, in (0, 1]. Default: 0.5."),
    "epsilon": (_NUMBER, "Errors up to this are free (svr, linear-svr). Default: a tenth of the "
                "targets' standard deviation."),
})  # fmt: skip
searched = declare({
    "C": (_GRID, "Costs to try. Default: 0.01:1000:6; for regression times the targets' "
          "deviation."),
    "gamma": (_GRID, "Widths of the kernel to try. Default: six around that of --gamma scale."),
    "nu": (_GRID, "Values of ν to try (nu-svc, nu-svr). Default: 0.1,0.2,…,0.6."),
    "epsilon": (_GRID, "Values of ε to try. Default: a tenth of the targets' deviation."),
})  # fmt: skip
_machine = declare({
    "kernel": ({"type": click.Choice(KERNELS)}, "Default: rbf, or linear for hard-margin and "
               "bayes-point."),
    "quantile": (_NUMBER, "Of quantile-svr, in (0, 1). Default: 0.5."),
    "class-weight": ({"type": click.Choice(["balanced"])}, "Give small classes the weight of large "
                     "ones."),
    "probability": ({"is_flag": True, "default": None}, "Calibrate probabilities, for predict "
                    "--proba."),
    "tol": (_NUMBER, "Relative duality gap to reach. Default: the model's, mostly 1e-4."),
    "jobs": (_WHOLE, "Threads; -1: all processors. Default: the model's."),
    "param": ({"multiple": True, "metavar": "NAME=VALUE"}, "Any other parameter of the model, as "
              "in Python: loss=squared_hinge, degree=2; may be repeated."),
    "scale": ({"type": click.Choice(SCALES)}, "How columns are scaled. Default: standard; none for "
              "sparse svmlight rows, maxabs for sparse tables."),
})  # fmt: skip


def machine(models: tuple[str, ...]) -> Decorator:
    """Return a decorator with the options that choose a model and set its parameters."""
    listed = f"One of {', '.join(models)}. Default: svc, or svr for regression."
    limit = "Stop each fit after this time with what was reached. Default: no limit."
    chosen = click.option("--model", type=click.Choice(models), metavar="NAME", help=listed)
    return together(chosen, _machine, max_time(None, limit), seed)
