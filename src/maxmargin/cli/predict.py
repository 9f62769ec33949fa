"""``maxmargin predict``: rows of any number, in bounded memory; or how good the predictions are."""

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np
from sklearn.metrics import precision_recall_fscore_support

from maxmargin.cli.command import Exit
from maxmargin.cli.models import PREPARING, steps_of
from maxmargin.cli.printing import Output
from maxmargin.cli.reading import find_data_files, split_rows
from maxmargin.cli.saved import (
    OUTLIERS,
    GivenRows,
    SavedModel,
    layout_for,
    read_blocks,
    read_labelled_rows,
    read_model,
    write_out,
)
from maxmargin.cli.scores import measure
from maxmargin.inspection.model_view import view_model
from maxmargin.rows.read_ahead import read_ahead
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.runtime.progress import progress


def run(
    output: Output,
    model: str,
    data: tuple[str, ...],
    path: str | None,
    proba: bool,
    decision: bool,
    score: bool,
    test_fraction: float | None,
    seed: int,
    zero_based: bool,
) -> Exit:
    """Run the command."""
    if proba + decision + score > 1 or (score and path is not None):
        raise click.UsageError("--proba, --decision and --score exclude each other, -o and --score")
    if not score and test_fraction is not None:
        raise click.UsageError("--test is for --score.")
    saved = read_model(model)
    if score:
        if saved.task == OUTLIERS:
            raise click.ClickException(
                f"{model} detects outliers, and learnt no labels; without --score, maxmargin "
                "predict writes 1 for rows inside and -1 for outliers."
            )
        rows = read_labelled_rows(output, saved, data, zero_based)
        test = split_rows(rows.y, saved.task, test_fraction, seed)[1]
        return _score(output, saved, rows.take(test) if len(test) else rows)
    if saved.format != "native":
        output.note(f"{model} is read as a {saved.called}.")
    method = _find_method(saved, proba, decision)
    layout = layout_for(saved, zero_based)
    files = find_data_files(data)
    blocks = (
        (file, block) for file in files for block in read_blocks(output, file, layout, label=False)
    )
    answers = Answers(saved, method, layout, blocks)
    header = [] if method == "predict" else _column_names(saved, method)
    if output.as_json and path in (None, "-"):
        found = [label for block in answers for label in block.tolist()]
        return output.finish(rows=answers.rows, columns=header or None, predictions=found)
    _write_answers(path, header, answers)
    return output.finish(rows=answers.rows, columns=header or None, saved=path)


class Answers:
    """Blocks of answers, and the number of rows in those that have been made, which a bar shows."""

    def __init__(self, saved: SavedModel, method: str, layout: Any, blocks: Iterator[Any]) -> None:
        self.saved, self.method, self.layout, self.blocks = saved, method, layout, blocks
        self.rows = 0

    def __iter__(self) -> Iterator[Any]:
        # On a terminal the predictions themselves show how far it is.
        shown = sys.stdout.isatty()
        with (
            progress("Predicting", unit="row", even=False, quiet=shown) as bar,
            read_ahead(self.blocks) as blocks,
        ):
            for file, block in blocks:
                answer = self._answer(block, file)
                self.rows += len(answer)
                bar.update(self.rows)
                yield answer

    def _answer(self, block: Any, file: str) -> Any:
        """Return what a model says about rows; an empty cell that it cannot take is named."""
        model = self.saved.model
        try:
            return getattr(model, self.method)(write_out(model, block.X))
        except ValueError as wrong:
            prepared = type(steps_of(model)[0]).__name__ in PREPARING
            cells = block.X if isinstance(block.X, np.ndarray) else np.zeros((0, 0))
            missing = np.argwhere(cells != cells)
            if prepared or not len(missing):
                raise
            row, column = missing[0].tolist()
            position = self.layout.columns[column].position
            name = repr(self.layout.names[position]) if self.layout.names else str(position + 1)
            raise click.ClickException(
                f"{file}:{block.numbers[row]}: column {name} is empty, but no cell of the training "
                "file was, so the model has nothing to put there; fill it in, or leave out the row."
            ) from wrong


def _find_method(saved: SavedModel, proba: bool, decision: bool) -> str:
    """Return the method that is asked for, or say why the model does not have it."""
    method = "predict_proba" if proba else "decision_function" if decision else "predict"
    if hasattr(saved.model, method):
        return method
    if proba and hasattr(saved.model, "classes_"):
        raise click.ClickException(
            f"{saved.path} has no probabilities: fit it with --probability, or ask for --decision."
        )
    name, option = type(saved.machine).__name__, "--proba" if proba else "--decision"
    raise click.ClickException(f"{saved.path} is a {name}, for which there is no {option}.")


def _column_names(saved: SavedModel, method: str) -> list[str]:
    classes = [str(label) for label in getattr(saved.model, "classes_", [])]
    if method == "predict_proba":
        return classes
    if len(classes) <= 2:
        return ["decision"]
    if getattr(saved.machine, "decision_function_shape", "") != "ovo":
        return classes
    pairs = ((i, j) for i in range(len(classes)) for j in range(i + 1, len(classes)))
    return [f"{classes[i]} against {classes[j]}" for i, j in pairs]


# ------------------------------------------------------------------- writing


def _write_answers(path: str | None, header: list[str], blocks: Iterable[Any]) -> None:
    """Write a line for each row, to standard output or to a file, which is complete or absent."""
    if path in (None, "-"):
        if hasattr(sys.stdout, "reconfigure") and not sys.stdout.isatty():
            sys.stdout.reconfigure(encoding="utf-8")  # as files are, on any system
        _write_lines(sys.stdout, header, blocks)
        return

    def write(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            _write_lines(file, header, blocks)

    assert path is not None
    write_atomically(path, write)


def _write_lines(file: TextIO, header: list[str], blocks: Iterable[Any]) -> None:
    """Write blocks of labels, or of rows of numbers with a header."""
    if not header:
        for block in blocks:
            file.write("".join(f"{label}\n" for label in block.tolist()))
        return
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for block in blocks:
        writer.writerows((block if block.ndim == 2 else block[:, None]).tolist())


# ------------------------------------------------------------------- scores


def _score(output: Output, saved: SavedModel, rows: GivenRows) -> Exit:
    """Print how good the predictions of labelled rows are."""
    X, y, _ = rows
    seen, found = view_model(saved.model).is_training(X), measure(saved.model, X, y)
    output.facts([
        ("model", saved.title),
        ("rows", f"{len(y)}{', which the model was fitted to: new ones score lower' * seen}"),
        *((one.name, f"{one}  {one.interval}".rstrip()) for one in found.figures),
    ])  # fmt: skip
    classes = None
    if saved.task == "classification":
        predicted = saved.model.predict(X)
        labels = np.unique(np.concatenate([y, predicted]))
        columns = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=0)
        heads = ("label", "precision", "recall", "f1", "rows")
        table = list(zip(labels.tolist(), *(each.tolist() for each in columns), strict=True))
        classes = [dict(zip(heads, row, strict=True)) for row in table]
        output.text()
        output.table(["class", "precision", "recall", "F1", "rows"], table)
    scores = found.to_json()
    return output.finish(
        model=saved.path, rows=len(y), training_rows=seen, scores=scores, classes=classes
    )
