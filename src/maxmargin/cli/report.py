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
    test_fraction: float | None,
    seed: int,
    zero_based: bool,
) -> Exit:
    """Run the command."""
    saved = read_model(model)
    if not data:
        if path is not None or test_fraction is not None:
            raise click.UsageError("-o and --test are for a page, which needs DATA.")
        found = _describe(saved)
        output.facts(_list_facts(saved, found))
        return output.finish(**found, rows=None, saved=None)
    (X, y, numbers), held_back = read_training_rows(
        output, saved, data, zero_based, test_fraction, seed
    )
    X_test, y_test, numbers_test = held_back or (None, None, None)
    page = mm.report(
        saved.model, X, y, path or f"{Path(model).stem}.html",
        X_test=X_test, y_test=y_test, title=Path(data[0]).name,
        feature_names=saved.column_names, rows=numbers, rows_test=numbers_test, row_name="line",
        label_name=getattr(saved.layout, "label_name", None) or "label",
    )  # fmt: skip
    output.facts([("saved", f"{page}: open it in a browser")])
    return output.finish(**_describe(saved), rows=len(y), saved=str(page))


def _describe(saved: SavedModel) -> dict[str, Any]:
    """Return what a model file holds; ``None`` for what such a model does not have."""
    machine, layout = saved.machine, saved.layout
    vectors = getattr(machine, "support_vectors_", None)
    params = machine.get_params(deep=False).items()
    return {
        "model": saved.path,
        "format": saved.format,
        "header": {name: value for name, value in saved.header.items() if name != "layout"},
        "steps": [describe(step) for step in steps_of(saved.model)],
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
        "layout": None if layout is None else layout.to_json(),
    }


def _list_facts(saved: SavedModel, found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield headings and texts for people, of what there is."""
    proof = found["certificate"]
    facts = {
        "file": f"{saved.path}: {saved.called}",
        "steps": " → ".join(found["steps"]),
        "classes": found["classes"],
        "kernel": found["kernel"],
        "support vectors": found["support_vectors"],
        "training rows": found["training_rows"],
        "columns": saved.column_names or found["features"],
        "label": getattr(saved.layout, "label_name", None),
        "stopped": found["stop_reason"] or None,
        "certificate": proof and f"{proof['sentence']} (as recorded)",
    }
    for heading, value in facts.items():
        if isinstance(value, str | int):
            yield heading, str(value)
        elif value is not None:
            more = f", … ({len(value)} in all)" if len(value) > SHOWN else ""
            yield heading, ", ".join(map(str, value[:SHOWN])) + more
