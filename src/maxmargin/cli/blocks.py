"""``maxmargin fit`` and ``certify`` on rows that are read in blocks: files larger than memory.

Rows are read again and again, and never all at once: several files, a pattern, a folder; or one
file, if ``--memory``, ``--checkpoint`` or ``--cluster`` say so.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from maxmargin.cli.cluster import cluster_options, connected
from maxmargin.cli.inputs import (
    MANY_CLASSES,
    MAX_COLUMNS,
    STDIN,
    SavedModel,
    choose_task,
    describe_targets,
    layout_for,
    list_classes,
)
from maxmargin.cli.models import DETECTORS, find_task, make_machine
from maxmargin.cli.output import Exit, Output, in_options
from maxmargin.cli.training import (
    certificate_of,
    certificate_to_json,
    choose_path,
    describe_model,
    fit_model,
    say_saved,
    stop_reason,
)

MODELS = ("linear-svc", "linear-svr", "svc", "nu-svc", "svr", "nu-svr", "quantile-svr")
SCALES = ("standard", "none")
SCORED_ROWS, SCORED_PARTS = 20_000, 8  # of the training rows, since they need not be scored exactly
_PATTERN = re.compile(r"[*?\[]")


class Blocked(NamedTuple):
    """What the options say about rows in blocks."""

    memory: int | None
    checkpoint: str | None
    cluster: str | None
    insecure: bool

    @property
    def first_option(self) -> str | None:
        """The first of the options that is given."""
        return next((f"--{name}" for name in self._fields if getattr(self, name)), None)


def read_memory(context: Any, option: Any, text: str | None) -> int | None:
    """Return the bytes that ``--memory`` stands for."""
    if text is None:
        return None
    from maxmargin.rows.row_source import parse_memory

    try:
        return parse_memory(text)
    except ValueError as wrong:
        said = (
            str(wrong).replace("memory=", "").replace("bytes as a number, or a text", "an amount")
        )
        raise click.BadParameter(f"{said}.", context, option) from wrong


memory_option = click.option(
    "--memory",
    metavar="AMOUNT",
    callback=read_memory,
    help="Read the rows in blocks, within so much memory: 2GB, 512MiB. Default for several files: "
    "an eighth of what the machine has.",
)


def block_options(function: Any) -> Any:
    """Add the options of rows in blocks; ``--checkpoint`` is shared with streams."""
    return memory_option(cluster_options("read the rows in blocks")(function))


def take_block_options(options: dict[str, Any]) -> Blocked:
    """Return what the options say about rows in blocks, and remove them."""
    return Blocked(**{name: options.pop(name, None) for name in Blocked._fields})


def are_several(words: Sequence[str]) -> bool:
    """Tell whether DATA means more than one file: several words, a pattern or a folder."""
    path = Path(words[0])
    return (
        len(words) > 1 or path.is_dir() or (bool(_PATTERN.search(words[0])) and not path.exists())
    )


def choose_place(output: str | None, words: Sequence[str]) -> Path:
    """Return where a model goes: by default here, with the name of the only file or folder."""
    if output is None and (len(words) > 1 or not Path(words[0]).exists()) and are_several(words):
        raise click.UsageError("Several files have no one name: say where with -o MODEL.")
    return choose_path(output, str(Path(words[0]).resolve()) if words[0] != STDIN else STDIN)


# ------------------------------------------------------------------- the rows


class BlockedRows(NamedTuple):
    """Labelled rows in blocks, and what is to be learnt from them."""

    words: tuple[str, ...]  # as given
    files: list[Path]
    source: Any  # RowSource
    label: str | None
    task: str
    why: str  # the task is this one
    remarks: tuple[str, ...]

    @property
    def format(self) -> str:
        """What the files are."""
        from maxmargin.data.tables import DELIMITERS

        layout = self.source.layout
        if layout.kind == "svmlight":
            return f"svmlight text, indices from {0 if layout.zero_based else 1}"
        if layout.delimiter is None:
            return "Parquet"
        header = "with" if layout.names else "without"
        return f"table with {DELIMITERS[layout.delimiter]}, {header} a header"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield headings and sentences about what is known before the rows are read."""
        count, parts = len(self.files), len(self.source)
        names = self.files[0].name + (
            f" … {self.files[-1].name} ({count} files)" if count > 1 else ""
        )
        label = f", label column {self.label!r}" if self.label else ""
        yield "data", f"{names}: {self.format}{label}"
        yield "read in", f"{parts} part{'s' * (parts != 1)} of {self.source.n_columns} columns"
        yield "task", f"{self.task}: {self.why}" if self.why else self.task
        for k, remark in enumerate(self.remarks):
            yield "" if k else "remarks", remark

    def survey_facts(self, found: Any) -> Iterator[tuple[str, str]]:
        """Yield headings and sentences about what reading the rows has shown."""
        yield "rows × columns", f"{found.n} × {self.source.n_columns}"
        if found.targets is not None:
            t = found.targets
            yield "targets", describe_targets(t.low, t.high, None, t.std)
        elif found.labels is not None:
            yield "classes", list_classes(found.classes, found.counts)

    def to_json(self, found: Any) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "source": self.words[0] if len(self.words) == 1 else " ".join(self.words),
            "format": self.format,
            "rows": None if found is None else found.n,
            "columns": self.source.n_columns,
            "label": self.label,
            "task": self.task,
            "remarks": list(self.remarks),
            "files": [str(path) for path in self.files],
            "parts": len(self.source),
        }


def open_files(
    words: Sequence[str], asked: Blocked, reading: dict[str, Any], model: str | None, client: Any
) -> BlockedRows:
    """Open files as rows in blocks; the first part tells what is to be learnt."""
    from maxmargin.data import open as open_rows
    from maxmargin.data.opening import find_files

    files = find_files(list(words))
    label, name, remarks = find_label_column(files[0], reading["label"])
    try:
        source = open_rows(
            files, label=label, memory=asked.memory, checkpoint=asked.checkpoint, client=client,
            zero_based=reading["zero_based"],
        )  # fmt: skip
    except ValueError as wrong:
        raise click.ClickException(in_block_options(str(wrong))) from wrong
    if source.n_columns > MAX_COLUMNS:
        raise click.ClickException(
            f"{files[0]} has an index {source.n_columns}: the weights of that many columns do not "
            "fit in memory; number the features that occur from 1 on."
        )
    given = find_task(model, reading["task"])
    if given == "regression":
        source = with_label_kind(source, "numbers")
    y = source.load(0).y
    refuse_head(y, name)
    task, why = (given, "") if given else choose_task(y, name)
    why = f"{why} (in the first {len(y):,} rows)" if why else ""
    if task == "regression":
        source = with_label_kind(source, "numbers")
    source.layout = replace(source.layout, task=given)
    return BlockedRows(tuple(words), files, source, name, task, why, remarks)


def find_label_column(path: Path, label: str | None) -> tuple[Any, str | None, tuple[str, ...]]:
    """Return the label column as ``open`` takes it, its name, and a remark if its place decides."""
    from maxmargin.data.opening import read_names
    from maxmargin.data.table import find_label

    names, width = read_names(path)
    if not width:  # svmlight text
        if label is not None:
            raise click.ClickException(
                f"{path}: svmlight text has its label first on each line; leave out --label."
            )
        return None, None, ()
    if width < 2:
        raise click.ClickException(f"{path}: only one column; a table needs a label and a feature.")
    found = find_label(names, width, label, str(path))
    place = width - 1 if found is None else found
    remarks: tuple[str, ...] = ()
    name = names[place] if names else None
    if found is None:
        shown = repr(name) if name else str(place + 1)
        why = "No column is named label or target" if names else "The file has no header"
        remarks = (f"{why}, so the last column, {shown}, is taken as the label.",)
    return (name if names else place + 1), name, remarks


def with_label_kind(source: Any, kind: str) -> Any:
    """Return rows whose labels are read as such, whatever those of the first rows look like."""
    if source.layout.kind == "table" and source.layout.label is not None:
        label = source.layout.label._replace(kind=kind)
        source.layout = replace(source.layout, label=label)
    return source


def refuse_head(y: Any, name: str | None) -> None:
    """Refuse labels that are no classes and no numbers, by those of the first part."""
    import numpy as np

    column = f"column {name!r}" if name else "the label column"
    if y.dtype.kind == "b":
        raise click.ClickException(
            f"{column} holds true and false; store it as 0 and 1, or as words."
        )
    different = len(np.unique(y))
    if y.dtype.kind == "U" and different > max(MANY_CLASSES, len(y) / 2):
        raise click.ClickException(
            f"{column} has {different:,} different words in the first {len(y):,} rows: these are "
            "texts or names and not classes. Choose another column with --label."
        )


def in_block_options(sentence: str) -> str:
    """Return a sentence of the library with parameters as they are called here."""
    for theirs, ours in (
        (", or leave it out with columns=", ", or write files without it"),
        (", or choose columns with columns=", ""),
        ("label=", "--label "),
        ("memory=", "--memory "),
        ("Set memory to", "Set --memory to"),
        ("checkpoint=", "--checkpoint "),
        ("leave it out, or fit to arrays", "leave it out, or fit to one file"),
        ("or fit to arrays", "or fit to one file"),
    ):
        sentence = sentence.replace(theirs, ours)
    return in_options(sentence)


# ------------------------------------------------------------------- the fit


def fit_blocks(
    output: Output,
    words: Sequence[str],
    saved_as: Path,
    asked: Blocked,
    reading: dict[str, Any],
    *,
    model: str | None,
    scale: str | None,
    options: dict[str, Any],
) -> Exit:
    """Fit a model to rows in blocks; what is said and saved is what ``fit`` says and saves."""
    from maxmargin.runtime.progress import counted_reading

    _refuse_options(words, model, scale, reading)
    with connected(asked.cluster, asked.insecure) as client, counted_reading() as readers:
        rows = open_files(words, asked, reading, model, client)
        machine = make_block_machine(rows, model, options)
        scaled = scale == "standard" or (scale is None and not rows.source.sparse)
        output.facts([*rows.facts(), ("model", describe_steps(machine, scaled, rows))])
        try:
            view = standardized(rows.source) if scaled else rows.source
            code = fit_model(machine, view, None)
        except ValueError as wrong:
            raise click.ClickException(in_block_options(str(wrong))) from wrong
    pipeline = join_steps(view.scaler, machine)
    if code == Exit.INTERRUPTED:
        output.note(f"Interrupted: saving what was reached to {saved_as}; Ctrl-C again aborts.")
    save_pipeline(pipeline, saved_as, rows)
    read = readers[-1] if readers else None
    survey = getattr(read, "survey", None)
    output.facts([*(rows.survey_facts(survey) if survey else ()), *describe_fit(machine, read)])
    scores = score_some(pipeline, rows, options["seed"])
    output.facts([("training rows", f"{scores[0].rows}: {', '.join(map(str, scores))}")])
    say_saved(output, saved_as, code, machine)
    return output.finish(
        code,
        data=rows.to_json(survey),
        model=describe_model(pipeline),
        stop_reason=stop_reason(machine),
        certificate=certificate_to_json(getattr(machine, "certificate_", None), machine.tol),
        scores={"training": scores_to_json(scores), "test": None},
        passes=None if read is None else read.passes,
        bytes_read=None if read is None else read.bytes_read,
        saved=str(saved_as),
    )


def _refuse_options(
    words: Sequence[str], model: str | None, scale: str | None, reading: dict[str, Any]
) -> None:
    """Refuse what rows in blocks cannot do, before anything is read."""
    if STDIN in words:
        raise click.UsageError(
            "Standard input (-) comes once, and rows in blocks are read again and again: write it "
            "to a file; --stream learns from it as it comes."
        )
    if reading["data_format"] is not None:
        raise click.UsageError("--format is for standard input (-): files say it by their name.")
    if model == "auto" or model in DETECTORS or (model is not None and model not in MODELS):
        raise click.UsageError(
            f"--model {model} is not for rows in blocks; {', '.join(MODELS)} are."
        )
    if scale not in (None, *SCALES):
        raise click.UsageError(f"--scale {scale} is not for rows in blocks; standard and none are.")


def make_block_machine(rows: BlockedRows, model: str | None, options: dict[str, Any]) -> Any:
    """Return an unfitted machine; what its defaults depend on is found by a pass over the rows."""
    import numpy as np

    from maxmargin.rows.survey import survey

    regression = rows.task == "regression"
    name = model or ("linear-svr" if regression else "linear-svc")
    needed = options["C"] is None or options["epsilon"] is None
    y: Any = np.zeros(1)
    if regression and needed:
        spread = survey(rows.source, targets=True).targets
        assert spread is not None
        y = np.array([-spread.std, spread.std])  # two numbers that scatter as all targets do
    elif not regression and options["class_weight"] and "balanced" not in options["class_weight"]:
        y = survey(rows.source).classes
    return make_machine(name, rows.task, y, options)


def standardized(source: Any) -> Any:
    """Return a view of rows with columns of mean 0 and variance 1."""
    from maxmargin.data import standardize
    from maxmargin.runtime.progress import progress

    with progress("Standardizing the columns", even=False):
        return standardize(source)


def describe_steps(machine: Any, scaled: bool, rows: BlockedRows) -> str:
    """Return the steps as code, before they are fitted."""
    from sklearn.preprocessing import StandardScaler

    return describe_model(
        join_steps(StandardScaler(with_mean=not rows.source.sparse) if scaled else None, machine)
    )


def join_steps(scaler: Any, machine: Any) -> Any:
    """Return the model for rows as they are in files, whose columns come without names."""
    from sklearn.pipeline import Pipeline

    for step in (scaler, machine):
        if step is not None:
            vars(step).pop("feature_names_in_", None)
    if scaler is None:
        return machine
    return Pipeline([("scale", scaler), (type(machine).__name__.lower(), machine)])


def save_pipeline(model: Any, path: Path, rows: BlockedRows) -> None:
    """Save a model with the columns that it reads."""
    import maxmargin as mm

    mm.save(model, path, layout=rows.source.layout)


def describe_fit(machine: Any, read: Any) -> Iterator[tuple[str, str]]:
    """Yield why the fit stopped, what is proved, and how much was read."""
    from maxmargin.runtime.progress import describe_bytes

    yield "stopped", stop_reason(machine)
    yield "certificate", certificate_of(machine)
    if read is not None and read.passes:
        passes = f"{read.passes} pass{'es' * (read.passes != 1)}"
        yield "read", f"{describe_bytes(read.bytes_read)}; {passes} over the rows"


def score_some(model: Any, rows: BlockedRows, seed: int) -> Any:
    """Return the scores of a model on some rows of some parts."""
    import numpy as np
    import scipy.sparse as sp

    from maxmargin.cli.figures import score_rows

    rng, source = np.random.default_rng(seed), rows.source
    parts = np.sort(rng.permutation(len(source))[:SCORED_PARTS])
    taken = []
    for part in parts.tolist():
        found = source.load(part)
        some = np.sort(rng.permutation(len(found.y))[: SCORED_ROWS // len(parts)])
        taken.append((found.X[some], found.y[some]))
    pieces, labels = zip(*taken, strict=True)
    X = sp.vstack(pieces, format="csr") if source.sparse else np.concatenate(pieces)
    return score_rows(model, X, np.concatenate(labels), (), rows.task)


def scores_to_json(found: Any) -> dict[str, Any]:
    """Return scores for programs."""
    scores = {s.name: {"value": s.value, "standard_error": s.error} for s in found}
    return {"rows": found[0].rows, **scores}


# ------------------------------------------------------------------- certify


def open_training(
    saved: SavedModel, words: Sequence[str], zero_based: bool, asked: Blocked, client: Any
) -> Any:
    """Return the rows that a model was fitted to, read as in training but in blocks."""
    from maxmargin.data import open as open_rows
    from maxmargin.data.opening import find_files
    from maxmargin.inspection.model_view import view_model

    layout, files = layout_for(saved, zero_based), find_files(list(words))
    shared = {"memory": asked.memory, "client": client}
    if layout.kind == "svmlight":
        source = open_rows(
            files, n_features=layout.n_features, zero_based=layout.zero_based, **shared
        )
    else:
        if layout.has_words or layout.label is None:
            raise click.ClickException(
                f"{saved.path} reads columns of words, and rows in blocks have numbers: certify it "
                "with the one file it was fitted to."
            )
        places = [column.position for column in layout.columns]
        named = layout.names or range(1, layout.width + 1)
        source = open_rows(
            files, label=named[layout.label.position], columns=[named[k] for k in places], **shared
        )
        source = with_label_kind(source, layout.label.kind)
    count = view_model(saved.model).count_training_rows()
    if None not in (count, source.n_rows) and count != source.n_rows:
        raise click.ClickException(
            f"{saved.path} was fitted to {count} rows, not to these {source.n_rows}. Give the "
            "files it was fitted to, in the same order."
        )
    return source
