"""Pipelines around a machine, fits that survive Ctrl-C, and where models are saved."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from maxmargin.cli.inputs import STDIN, Dataset
from maxmargin.cli.models import read_parameters, scale_of, steps_of, write_options
from maxmargin.cli.output import Exit, Output, in_options

MODEL_ENDING = ".mmg"
_COMPRESSED = (".xz", ".gz", ".bz2", ".zst")


# ------------------------------------------------------------------- the pipeline


def make_pipeline(dataset: Dataset, machine: Any, scale: str | None) -> Any:
    """Return the machine with the steps that the rows need before it, unfitted."""
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    steps: list[tuple[str, Any]] = []
    if dataset.rows.prepare is not None:
        steps.append(("prepare", clone(dataset.rows.prepare)))
    if (step := make_scaler(dataset, scale)) is not None:
        steps.append(("scale", step))
    name = type(machine).__name__.lower()
    return Pipeline([*steps, (name, machine)]) if steps else machine


def make_scaler(dataset: Dataset, scale: str | None) -> Any:
    """Return the step that ``--scale`` asks for; on sparse rows zeros stay zeros."""
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    sparse = is_sparse(dataset)
    if scale is None:
        scale = "standard" if not sparse else "none" if dataset.rows.prepare is None else "maxabs"
    if scale == "minmax" and sparse:
        raise click.UsageError("--scale minmax would fill sparse rows; choose maxabs or standard.")
    if scale == "standard":
        return StandardScaler(with_mean=not sparse)
    return {"minmax": MinMaxScaler, "maxabs": MaxAbsScaler}[scale]() if scale != "none" else None


def is_sparse(dataset: Dataset) -> bool:
    """Tell whether rows are sparse when they come to the scaler."""
    import scipy.sparse as sp
    from sklearn.base import clone

    prepare = dataset.rows.prepare
    if prepare is None:
        return bool(sp.issparse(dataset.X))
    if not getattr(prepare, "sparse_threshold", 0):
        return False
    return bool(sp.issparse(clone(prepare).fit_transform(dataset.X)))


def describe_model(model: Any) -> str:
    """Return the steps after the preparation of columns, as code in one line."""
    from maxmargin.inspection.code import describe

    return " after ".join(describe(step) for step in reversed(without_preparation(model)))


def without_preparation(model: Any) -> list[Any]:
    """Return the steps that ``--scale`` and ``--model`` stand for."""
    *before, machine = steps_of(model)
    return [*(step for step in before if scale_of(step)), machine]


# ------------------------------------------------------------------- a model for the data


def choose_model(
    dataset: Dataset, scale: str | None, options: Mapping[str, Any]
) -> tuple[Any, str]:
    """Return the pipeline of ``--model auto``, and why it is that one."""
    machine, own_scale, why = _choose_machine(dataset, options)
    return make_pipeline(dataset, machine, scale or own_scale), why


def _choose_machine(dataset: Dataset, options: Mapping[str, Any]) -> tuple[Any, Any, str]:
    """Return what the diagnosis recommends, or the best of what this library has."""
    found = diagnose(dataset, options)
    model, why = found.recommend(), f"{found.verdict}: {found.advice}"
    if write_options(model) is None:
        offers = [offer for offer in found.alternatives if offer.rung in ("planes", "kernels")]
        best = max(offers, key=lambda offer: -1.0 if offer.score is None else offer.score)
        model, why = best.estimator, f"{why} The best of maxmargin's own models is taken."
    *before, machine = steps_of(model)
    machine.set_params(**known_parameters(machine, options, dataset.y))
    return machine, (scale_of(before[0]) if before else "none"), why


def diagnose(dataset: Dataset, options: Mapping[str, Any]) -> Any:
    """Return the diagnosis of the data; rows are equal if they are so in the file."""
    import maxmargin as mm
    from maxmargin.data.columns import number_equal_rows

    X, names = prepare_rows(dataset)
    asked = {name: options[name] for name in ("max_time", "thorough") if options.get(name)}
    return mm.diagnose(X, dataset.y, feature_names=names, random_state=options["seed"],
                       task=dataset.task, groups=number_equal_rows(dataset.X), **asked)  # fmt: skip


def prepare_rows(dataset: Dataset) -> tuple[Any, list[str] | None]:
    """Return all rows as numbers, and the names of their columns."""
    from sklearn.base import clone

    X, names, prepare = dataset.X, dataset.rows.feature_names, dataset.rows.prepare
    if prepare is None:
        return X, names
    prepare = clone(prepare).fit(X)
    made = None if names is None else prepare.get_feature_names_out(names).tolist()
    return prepare.transform(X), made


def known_parameters(machine: Any, options: Mapping[str, Any], y: Any) -> dict[str, Any]:
    """Return the parameters given that the machine has."""
    known = machine.get_params()
    return {name: v for name, v in read_parameters(options, y).items() if name in known}


# ------------------------------------------------------------------- the fit


def fit_model(model: Any, X: Any, y: Any) -> Exit:
    """Fit a model; after Ctrl-C or short of ``tol`` it keeps what was reached."""
    from sklearn.exceptions import ConvergenceWarning

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
    from maxmargin.problems.problem import Status

    certificate = getattr(machine, "certificate_", None)
    if certificate is not None and hasattr(certificate, "holds") and hasattr(machine, "tol"):
        return bool(certificate.holds(machine.tol))
    fine = ("OPTIMAL", "ALL_CORRECT", "EPOCHS", "ONE_PASS", "SMALL_CHANGE", "HELD_OUT", "NEAREST",
            "PRECISE", "DRAWN", "STREAM")  # fmt: skip
    status = getattr(machine, "status_", Status.OPTIMAL)
    return getattr(status, "name", "OPTIMAL") in fine


def stop_reason(machine: Any) -> str:
    """Return why the fit of a machine stopped, in the terms of the command line."""
    return in_options(str(getattr(machine, "stop_reason_", "")))


def certificate_of(machine: Any) -> str:
    """Return what is proved of a fitted machine, in a sentence."""
    nothing = f"none: {type(machine).__name__} minimises no objective that could be bounded"
    return str(getattr(machine, "certificate_", nothing))


def certificate_to_json(certificate: Any, tol: float | None = None) -> dict[str, Any] | None:
    """Return the numbers of a certificate."""
    if certificate is None or not hasattr(certificate, "relative_gap"):
        return None
    names = ("primal", "dual", "gap", "relative_gap", "rounding", "infeasibility", "drift")
    numbers = {name: getattr(certificate, name) for name in (*names, "max_kkt_violation")}
    numbers |= {"caveat": certificate.caveat, "sentence": str(certificate)}
    return numbers if tol is None else {**numbers, "tol": tol, "holds": certificate.holds(tol)}


# ------------------------------------------------------------------- the model file


def choose_path(output: str | None, source: str) -> Path:
    """Return where a model goes: by default here, with the name of the data."""
    if output is not None:
        return Path(output)
    if source == STDIN:
        raise click.UsageError("Data from standard input have no name: say where with -o MODEL.")
    name = Path(source).name
    while Path(name).suffix.lower() in _COMPRESSED:
        name = Path(name).stem
    return Path(f"{Path(name).stem or name}{MODEL_ENDING}")


def refuse_to_replace(path: Path, force: bool) -> None:
    """Refuse, before the work, a place where a model cannot go."""
    import maxmargin as mm

    if not path.resolve().parent.is_dir():
        raise click.ClickException(f"{path}: there is no folder {path.resolve().parent}; make it.")
    if path.is_dir():
        raise click.ClickException(f"{path} is a folder; name a file in it.")
    if force or not path.is_file():
        return
    try:
        mm.files.load_described(path)
    except (mm.ModelFileError, OSError) as other:
        raise click.ClickException(
            f"{path} exists and is no model of maxmargin: choose another place with -o, or replace "
            "it with --force."
        ) from other


def save_model(model: Any, path: Path, dataset: Dataset) -> None:
    """Save a model with the columns that it reads."""
    import maxmargin as mm

    mm.save(model, path, layout=dataset.rows.layout)


def say_saved(output: Output, path: Path, code: Exit, machine: Any) -> None:
    """Say where a model is, and what it is worth."""
    remark = ""
    if code == Exit.INTERRUPTED:
        remark = ": the best that was reached before the interruption"
    elif code == Exit.NOT_CONVERGED:
        proved = hasattr(machine, "certificate_")
        short = "its certificate does not hold to --tol" if proved else "it did not converge"
        remark = f", although {short} (exit code {int(code)})"
    output.facts([("saved", f"{path}{remark}")])
