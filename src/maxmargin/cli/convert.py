"""``maxmargin convert``: data files, or model files, from one format to another."""

from pathlib import Path
from typing import Any

import click

from maxmargin.cli.inputs import (
    MODEL_FORMATS,
    SavedModel,
    is_model,
    read_model,
    zero_based_option,
)
from maxmargin.cli.models import steps_of
from maxmargin.cli.output import Exit, Output, command

TARGETS = (*MODEL_FORMATS, "onnx")
_ENDINGS = {".mmg": "native", ".onnx": "onnx"}

EXAMPLE = """
$ maxmargin convert heart_scale.svm heart.csv
heart.csv is written.
$ maxmargin convert heart.mmg heart.model
heart.model is a LIBSVM model: svm-predict reads it.
"""


@command("convert", example=EXAMPLE, see_also=("inspect", "predict", "scale"))
@click.argument("source", type=click.Path(dir_okay=False))
@click.argument("target", type=click.Path(dir_okay=False))
@click.option(
    "--to",
    "target_format",
    type=click.Choice(TARGETS),
    help="Which model file TARGET is. "
    "Default: native for .mmg, ONNX for .onnx, else LIBLINEAR for linear machines and "
    "LIBSVM for the others.",
)
@click.option(
    "--from",
    "model_format",
    type=click.Choice(MODEL_FORMATS),
    help="Which model file SOURCE is. Default: native for .mmg, else what its first line says.",
)
@click.option("--label", metavar="COLUMN", help="Label column, if SOURCE is a table.")
@zero_based_option
@click.option(
    "-C",
    "--C",
    "C",
    type=float,
    metavar="NUMBER",
    help="Cost that a text model was trained with, which its file lacks; maxmargin certify needs "
    "it.",
)
@click.option("--epsilon", type=float, metavar="NUMBER", help="Its ε, for regression.")
@click.option("--nu", type=float, metavar="NUMBER", help="Its ν.")
def convert(
    output: Output,
    source: str,
    target: str,
    target_format: str | None,
    model_format: str | None,
    label: str | None,
    zero_based: bool,
    **lacking: Any,
) -> Exit:
    """Convert a data file, or a model file; endings of names say from what to what.

    Data: svmlight text (.svm, .libsvm, .svmlight), CSV, TSV and Parquet, also packed as .gz, .xz or
    .bz2.

    Models: those of maxmargin (.mmg), LIBSVM and LIBLINEAR, to each other and to ONNX (.onnx). A
    text model holds the machine alone: columns must be numbers that are scaled already. It has no
    certificate, and neither has a file of maxmargin that it becomes.
    """
    if not (model_format or target_format or is_model(source)):
        return convert_data(output, source, target, label, zero_based)
    saved = read_model(source, model_format, **lacking)
    kind = target_format or choose_format(saved, target)
    save_as(saved, target, kind)
    output.text(f"{target} is a {describe_format(kind)}.")
    return output.finish(source=source, target=target, kind="model", format=kind)


def convert_data(
    output: Output, source: str, target: str, label: str | None, zero_based: bool
) -> Exit:
    """Convert a data file."""
    import maxmargin as mm

    mm.data.convert(source, target, label=label, zero_based=zero_based)
    output.text(f"{target} is written.")
    return output.finish(source=source, target=target, kind="data", format=None)


def choose_format(saved: SavedModel, target: str) -> str:
    """Return the format that the ending stands for, or the one that suits the machine."""
    linear = type(saved.machine).__name__ in ("LinearSVC", "LinearSVR")
    return _ENDINGS.get(Path(target).suffix.lower(), "liblinear" if linear else "libsvm")


def describe_format(kind: str) -> str:
    """Return what a model file is, and who reads it."""
    return {
        "native": "maxmargin model",
        "onnx": "graph of ONNX, with inputs and outputs in double precision",
        "libsvm": "LIBSVM model: svm-predict reads it",
        "liblinear": "LIBLINEAR model: liblinear-predict reads it",
    }[kind]


def save_as(saved: SavedModel, target: str, kind: str) -> None:
    """Write a model in a format."""
    import maxmargin as mm

    if kind == "native":
        mm.save(saved.model, target, layout=saved.layout)
    elif kind == "onnx":
        from maxmargin.runtime.atomic_write import write_atomically

        graph = mm.files.to_onnx(saved.model).SerializeToString()
        write_atomically(target, lambda draft: draft.write_bytes(graph))
    else:
        save = mm.files.save_libsvm if kind == "libsvm" else mm.files.save_liblinear
        save(machine_alone(saved), target)


def machine_alone(saved: SavedModel) -> Any:
    """Return the machine, unless steps before it change the rows."""
    *before, machine = steps_of(saved.model)
    if before:
        raise click.ClickException(
            f"{saved.path} prepares rows with {type(before[0]).__name__} first, which a text "
            "model cannot hold. Prepare the data with maxmargin scale or convert, and fit with "
            "--scale none; or convert to ONNX, which holds all steps."
        )
    return machine
