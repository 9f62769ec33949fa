"""``maxmargin report``: what is in a model file; with its data, a page with pictures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import maxmargin as mm
from maxmargin.cli.command import Exit
from maxmargin.cli.models import steps_of
from maxmargin.cli.printing import Output, certificate_to_json
from maxmargin.cli.saved import SavedModel, read_model, read_training_rows
from maxmargin.inspection.code import describe

SHOWN = 12  # classes and columns that are listed; --json has all


def run(
    output: Output,
    model: str,
    data: tuple[str, ...],
    path: str | None,
    title: str | None,
    test_fraction: float | None,
    seed: int,
    zero_based: bool,
) -> Exit:
    """Run the command."""
    saved = read_model(model)
    if not data:
        if path is not None or test_fraction is not None:
            raise click.UsageError("-o and --test are for a page, which needs DATA.")
        output.facts(_describe(saved))
        return output.finish(**_to_json(saved), rows=None, saved=None)
    (X, y, numbers), held_back = read_training_rows(
        output, saved, data, zero_based, test_fraction, seed
    )
    X_test, y_test, numbers_test = held_back or (None, None, None)
    page = mm.report(
        saved.model, X, y, path or f"{Path(model).stem}.html",
        X_test=X_test, y_test=y_test, title=title or Path(data[0]).name,
        feature_names=saved.column_names, rows=numbers, rows_test=numbers_test, row_name="line",
        label_name=getattr(saved.layout, "label_name", None) or "label",
    )  # fmt: skip
    output.facts([("saved", f"{page}: open it in a browser")])
    return output.finish(**_to_json(saved), rows=len(y), saved=str(page))


def _describe(saved: SavedModel) -> Iterator[tuple[str, str]]:
    """Yield headings and sentences about a model."""
    machine = saved.machine
    version = f", format {saved.header['format']}" if "format" in saved.header else ""
    yield "file", f"{saved.path}: {saved.called}{version}"
    yield "steps", " → ".join(_describe_steps(saved))
    if hasattr(saved.model, "classes_"):
        yield "classes", _shorten(list(map(str, saved.model.classes_)))
    if hasattr(machine, "kernel_"):
        yield "kernel", repr(machine.kernel_)
    if hasattr(machine, "support_vectors_"):
        rows = saved.count_training_rows()
        of = f" of {rows} training rows" if rows else ""
        yield "support", f"{machine.support_vectors_.shape[0]} support vectors{of}"
    if hasattr(saved.model, "n_features_in_"):
        yield "columns", _describe_columns(saved)
    if hasattr(machine, "stop_reason_"):
        yield "stopped", machine.stop_reason_
    if hasattr(machine, "certificate_"):
        yield "certificate", f"{machine.certificate_} (as recorded)"
    if "versions" in saved.header:
        named = saved.header["versions"].items()
        yield "versions", ", ".join(f"{name} {number}" for name, number in named)


def _to_json(saved: SavedModel) -> dict[str, Any]:
    machine = saved.machine
    vectors = getattr(machine, "support_vectors_", None)
    params = machine.get_params(deep=False).items()
    return {
        "model": saved.path,
        "format": saved.format,
        "header": {name: value for name, value in saved.header.items() if name != "layout"},
        "steps": _describe_steps(saved),
        "task": saved.task,
        "classes": getattr(saved.model, "classes_", None),
        "kernel": repr(machine.kernel_) if hasattr(machine, "kernel_") else None,
        "support_vectors": None if vectors is None else int(vectors.shape[0]),
        "training_rows": saved.count_training_rows(),
        "features": getattr(saved.model, "n_features_in_", None),
        "params": {
            name: v if isinstance(v, str | int | float | dict | None) else repr(v)
            for name, v in params
        },
        "stop_reason": getattr(machine, "stop_reason_", ""),
        "certificate": certificate_to_json(machine),
        "layout": None if saved.layout is None else saved.layout.to_json(),
    }


def _describe_steps(saved: SavedModel) -> list[str]:
    return [describe(step) for step in steps_of(saved.model)]


def _describe_columns(saved: SavedModel) -> str:
    """Return which columns a data file needs."""
    layout, names = saved.layout, saved.column_names
    if names is not None:
        return _shorten(names) + (f"; label {layout.label_name}" if layout.label_name else "")
    count = f"{saved.model.n_features_in_} columns"
    if layout is None:
        return count
    if layout.kind == "svmlight":
        return f"{count} of svmlight text, indices from {0 if layout.zero_based else 1}"
    return f"{count} of a table without a header"


def _shorten(names: list[str]) -> str:
    more = f", … ({len(names)} in all)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
