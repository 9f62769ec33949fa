"""``maxmargin predict``: rows of any number, in bounded memory.

A thread reads and parses the next blocks while the model predicts the last one; both release
Python's lock where the work is.
"""

import contextlib
import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from maxmargin.cli.inputs import (
    STDIN,
    SavedModel,
    files_argument,
    find_data_files,
    layout_for,
    model_argument,
    read_blocks,
    read_model,
    write_out,
    zero_based_option,
)
from maxmargin.cli.output import Exit, Output, command

PEEKED = (".csv", ".tsv", ".txt", ".parquet")
AHEAD = 4  # blocks that are read before they are needed

EXAMPLE = """
$ maxmargin predict iris.mmg new.csv
setosa
setosa
setosa
$ maxmargin predict iris.mmg new.csv --decision
setosa,versicolor,virginica
2.2302324617975215,0.9324226241939354,-0.22143130267708225
…
"""


@command("predict", example=EXAMPLE, see_also=("fit", "score", "inspect"))
@model_argument
@files_argument
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Where to write the predictions, completely or not at all. Default: standard output.",
)
@click.option("--proba", is_flag=True, help="Write probabilities of the classes as CSV.")
@click.option("--decision", is_flag=True, help="Write values of the decision function as CSV.")
@zero_based_option
def predict(
    output: Output,
    model: str,
    model_format: str | None,
    data: tuple[str, ...],
    path: str | None,
    proba: bool,
    decision: bool,
    zero_based: bool,
) -> Exit:
    """Predict the label of each row with a saved model: one line per row, in their order.

    MODEL is a file of maxmargin fit or search, or a text model of LIBSVM or LIBLINEAR.

    DATA has the columns of the training file, in any order; its label column may be missing and is
    not looked at. - is standard input. Several files, a pattern in quotes or a folder are read one
    file after the other. Rows are read, predicted and written in blocks, so their number does not
    matter.
    """
    if proba and decision:
        raise click.UsageError("--proba and --decision exclude each other.")
    saved = read_model(model, model_format)
    if saved.format != "native":
        output.note(f"{model} is read as a {saved.called}.")
    method = find_method(saved, proba, decision)
    layout = layout_for(saved, zero_based)
    files = find_data_files(data)
    if has_labels(files[0], layout):
        output.note(f"The labels in {files[0]} are not looked at; maxmargin score compares them.")
    blocks = (
        (file, block) for file in files for block in read_blocks(output, file, layout, label=False)
    )
    answers = (answer(saved, method, block, layout, file) for file, block in ReadAhead(blocks))
    counted = Counted(answers)
    header = [] if method == "predict" else column_names(saved, method)
    if output.as_json and path in (None, "-"):
        found = [label for block in counted for label in block.tolist()]
        return output.finish(rows=counted.rows, columns=header or None, predictions=found)
    write_answers(path, header, counted)
    return output.finish(rows=counted.rows, columns=header or None, saved=path)


def answer(saved: SavedModel, method: str, block: Any, layout: Any, data: str) -> Any:
    """Return what a model says about rows; an empty cell that it cannot take is named."""
    import numpy as np

    try:
        return getattr(saved.model, method)(write_out(saved.model, block.X))
    except ValueError as wrong:
        cells = block.X if isinstance(block.X, np.ndarray) else np.zeros((0, 0))
        missing = np.argwhere(cells != cells)
        if "NaN" not in str(wrong) or not len(missing):
            raise
        row, column = missing[0].tolist()
        position = layout.columns[column].position
        name = repr(layout.names[position]) if layout.names else str(position + 1)
        raise click.ClickException(
            f"{data}:{block.numbers[row]}: column {name} is empty, but no cell of the training "
            "file was, so the model has nothing to put there; fill it in, or leave out the row."
        ) from wrong


def find_method(saved: SavedModel, proba: bool, decision: bool) -> str:
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


def column_names(saved: SavedModel, method: str) -> list[str]:
    """Return the names of the columns that are written."""
    classes = [str(label) for label in getattr(saved.model, "classes_", [])]
    if method == "decision_function" and len(classes) <= 2:
        return ["decision"]
    if (
        method == "decision_function"
        and getattr(saved.machine, "decision_function_shape", "") == "ovo"
    ):
        pairs = ((i, j) for i in range(len(classes)) for j in range(i + 1, len(classes)))
        return [f"{classes[i]} against {classes[j]}" for i, j in pairs]
    return classes


def has_labels(source: str, layout: Any) -> bool:
    """Tell whether a table that is cheap to open twice has the label column."""
    from maxmargin.data import read_rows

    if source == STDIN or layout.kind == "svmlight" or Path(source).suffix not in PEEKED:
        return False
    first = next(read_rows(source, layout, rows=1), None)
    return first is not None and first.y is not None


# ------------------------------------------------------------------- reading ahead


class ReadAhead:
    """Blocks that a thread takes from an iterator; an error in it is raised here."""

    def __init__(self, blocks: Iterable[Any]) -> None:
        self.blocks = blocks
        self.ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(AHEAD)
        self.stopped = threading.Event()

    def __iter__(self) -> Iterator[Any]:
        threading.Thread(target=self._read, name="maxmargin-read-ahead", daemon=True).start()
        try:
            while True:
                block, wrong = self.ready.get()
                if wrong is not None:
                    raise wrong
                if block is None:
                    return
                yield block
        finally:
            self.stopped.set()

    def _read(self) -> None:
        try:
            for block in self.blocks:
                self._put(block)
                if self.stopped.is_set():
                    return
        except BaseException as wrong:
            self._put(None, wrong)
        else:
            self._put(None)

    def _put(self, block: Any, wrong: BaseException | None = None) -> None:
        while not self.stopped.is_set():
            with contextlib.suppress(queue.Full):
                self.ready.put((block, wrong), timeout=0.1)
                return


class Counted:
    """Blocks of answers, and the number of rows in those that have passed, which a bar shows."""

    def __init__(self, blocks: Iterable[Any]) -> None:
        self.blocks, self.rows = blocks, 0

    def __iter__(self) -> Iterator[Any]:
        from maxmargin.runtime.progress import progress

        # On a terminal the predictions themselves show how far it is.
        shown = sys.stdout.isatty()
        with progress("Predicting", unit="row", even=False, quiet=shown) as bar:
            for block in self.blocks:
                self.rows += len(block)
                bar.update(self.rows)
                yield block


# ------------------------------------------------------------------- writing


def write_answers(path: str | None, header: list[str], blocks: Iterable[Any]) -> None:
    """Write a line for each row, to standard output or to a file, which is complete or absent."""
    if path in (None, "-"):
        if hasattr(sys.stdout, "reconfigure") and not sys.stdout.isatty():
            sys.stdout.reconfigure(encoding="utf-8")  # as files are, on any system
        write_lines(sys.stdout, header, blocks)
        return
    from maxmargin.runtime.atomic_write import write_atomically

    def write(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            write_lines(file, header, blocks)

    assert path is not None
    write_atomically(path, write)


def write_lines(file: TextIO, header: list[str], blocks: Iterable[Any]) -> None:
    """Write blocks of labels, or of rows of numbers with a header."""
    import csv

    if not header:
        for block in blocks:
            file.write("".join(f"{label}\n" for label in block.tolist()))
        return
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for block in blocks:
        writer.writerows((block if block.ndim == 2 else block[:, None]).tolist())
