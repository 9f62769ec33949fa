"""Pipelines around a machine, fits that survive Ctrl-C, and where models are saved."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import maxmargin as mm
from maxmargin.cli.command import Exit
from maxmargin.cli.models import read_parameters, scale_of, steps_of, write_options
from maxmargin.cli.printing import Output
from maxmargin.cli.reading import STDIN, Data, are_several
from maxmargin.data.columns import number_equal_rows
from maxmargin.errors import ModelFileError
from maxmargin.inspection.code import describe
from maxmargin.problems.problem import Status

MODEL_ENDING = ".mmg"
_COMPRESSED = (".xz", ".gz", ".bz2", ".zst")


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
        return bool(sp.issparse(dataset.X))
    if not getattr(prepare, "sparse_threshold", 0):
        return False
    return bool(sp.issparse(clone(prepare).fit_transform(dataset.X)))


def describe_model(model: Any) -> str:
    """Return the steps after the preparation of columns, as code in one line."""
    *before, machine = steps_of(model)
    scaled = [step for step in before if scale_of(step)]
    return " after ".join(describe(step) for step in (machine, *reversed(scaled)))


# ------------------------------------------------------------------- a model for the data


def choose_machine(dataset: Data, options: Mapping[str, Any]) -> tuple[Any, Any, str]:
    """Return the machine of ``--model auto``, its scaling, and why it is that one.

    That is what the diagnosis recommends, or the best of what this library has.
    """
    found = diagnose(dataset, options)
    model, why = found.recommend(), f"{found.verdict}: {found.advice}"
    if write_options(model) is None:
        offers = [offer for offer in found.alternatives if offer.rung in ("planes", "kernels")]
        best = max(offers, key=lambda offer: -1.0 if offer.score is None else offer.score)
        model, why = best.estimator, f"{why} The best of maxmargin's own models is taken."
    *before, machine = steps_of(model)
    known = machine.get_params()
    given = read_parameters(options, dataset.y)
    machine.set_params(**{name: value for name, value in given.items() if name in known})
    return machine, (scale_of(before[0]) if before else "none"), why


def diagnose(dataset: Data, options: Mapping[str, Any]) -> Any:
    """Return the diagnosis of the data; rows are equal if they are so in the file."""
    X, names, prepare = dataset.X, dataset.rows.feature_names, dataset.rows.prepare
    if prepare is not None:
        prepare = clone(prepare).fit(X)
        names = None if names is None else prepare.get_feature_names_out(names).tolist()
        X = prepare.transform(X)
    asked = {name: options[name] for name in ("max_time",) if options.get(name)}
    return mm.diagnose(X, dataset.y, feature_names=names, random_state=options["seed"],
                       task=dataset.task, groups=number_equal_rows(dataset.X), **asked)  # fmt: skip


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


def refuse_to_replace(path: Path, force: bool) -> None:
    """Refuse, before the work, a place where a model cannot go."""
    if not path.resolve().parent.is_dir():
        raise click.ClickException(f"{path}: there is no folder {path.resolve().parent}; make it.")
    if force or not path.is_file():
        return
    try:
        mm.files.load_described(path)
    except (ModelFileError, OSError) as other:
        raise click.ClickException(
            f"{path} exists and is no model of maxmargin: choose another place with -o, or replace "
            "it with --force."
        ) from other


def save_model(output: Output, model: Any, path: Path, layout: Any, code: Exit) -> None:
    """Save a model with the columns that it reads."""
    if code == Exit.INTERRUPTED:
        output.note(f"Interrupted: saving what was reached to {path}; Ctrl-C again aborts.")
    mm.save(model, path, layout=layout)


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
