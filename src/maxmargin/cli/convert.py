"""``maxmargin convert``: data files, or model files, from one format to another."""

from pathlib import Path
from typing import Any

import click

import maxmargin as mm
from maxmargin.cli.command import Exit
from maxmargin.cli.models import steps_of
from maxmargin.cli.printing import Output
from maxmargin.cli.saved import SavedModel, find_text_format, read_model
from maxmargin.runtime.atomic_write import write_atomically

_ENDINGS = {".mmg": "native", ".onnx": "onnx"}
DESCRIPTIONS = {
    "native": "maxmargin model",
    "onnx": "graph of ONNX, with inputs and outputs in double precision",
    "libsvm": "LIBSVM model: svm-predict reads it",
    "liblinear": "LIBLINEAR model: liblinear-predict reads it",
}


def run(
    output: Output,
    source: str,
    target: str,
    label: str | None,
    zero_based: bool,
    **lacking: Any,
) -> Exit:
    """Run the command."""
    named = Path(source).suffix.lower() in _ENDINGS
    if not (named or find_text_format(source)):
        return _convert_data(output, source, target, label=label, zero_based=zero_based)
    saved = read_model(source, **lacking)
    linear = type(saved.machine).__name__ in ("LinearSVC", "LinearSVR")
    kind = _ENDINGS.get(Path(target).suffix.lower(), "liblinear" if linear else "libsvm")
    _save_as(saved, target, kind)
    output.text(f"{target} is a {DESCRIPTIONS[kind]}.")
    return output.finish(source=source, target=target, kind="model", format=kind)


def _convert_data(output: Output, source: str, target: str, **reading: Any) -> Exit:
    given = {name: value for name, value in reading.items() if value}
    mm.data.convert(source, target, **given)
    output.text(f"{target} is written.")
    return output.finish(source=source, target=target, kind="data", format=None)


def _save_as(saved: SavedModel, target: str, kind: str) -> None:
    """Write a model in a format."""
    if kind == "native":
        mm.save(saved.model, target, layout=saved.layout)
    elif kind == "onnx":
        graph = mm.files.to_onnx(saved.model).SerializeToString()
        write_atomically(target, lambda draft: draft.write_bytes(graph))
    else:
        save = mm.files.save_libsvm if kind == "libsvm" else mm.files.save_liblinear
        save(_machine_alone(saved), target)


def _machine_alone(saved: SavedModel) -> Any:
    """Return the machine, unless steps before it change the rows."""
    *before, machine = steps_of(saved.model)
    if before:
        raise click.ClickException(
            f"{saved.path} prepares rows with {type(before[0]).__name__} first, which a text "
            "model cannot hold. Scale the columns of the data before, and fit with --scale none; "
            "or convert to ONNX, which holds all steps."
        )
    return machine
