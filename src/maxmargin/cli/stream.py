"""``maxmargin fit --stream``: learning from rows as they come, measured before each is learnt."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from maxmargin.cli.inputs import MAX_COLUMNS, STDIN, Dataset, choose_task
from maxmargin.cli.models import find_task, make_machine, steps_of
from maxmargin.cli.output import SCHEMA, Exit, Output, plain
from maxmargin.cli.training import describe_model, make_pipeline, save_model, stop_reason

MODELS = ("perceptron", "averaged-perceptron", "linear-svc", "linear-svr")
FORMATS = ("csv", "tsv", "svmlight")
LEAST_HEAD = 100  # lines that are looked at to find out what a text is
_POSITIVE = click.IntRange(1)
# Options of a fit that have no meaning where rows come one after the other and are seen once.
_OF_A_FIT = ("tol", "max_time", "max_iter", "jobs", "probability", "penalty", "multi_class")


class Streaming(NamedTuple):
    """What the options say about a stream."""

    follow: bool
    idle: float | None
    rows: int
    every: int
    window: int
    classes: str | None
    columns: int | None
    checkpoint: str | None
    resume: bool


_DEFAULTS = Streaming(False, None, 1000, 10_000, 1000, None, None, None, False)


def stream_options(function: Any) -> Any:
    """Add ``--stream`` and the options that belong to it."""
    for option in reversed(_STREAM):
        function = option(function)
    return function


_STREAM = [
    click.option("--stream", is_flag=True, help="Learn from the rows of a CSV, TSV or svmlight "
                 "text as they come, each once and in bounded memory, and print how well they are "
                 "predicted before that. Models: " + ", ".join(MODELS) + " (the default, or "
                 "linear-svr for regression; both by stochastic subgradient steps)."),
    click.option("--follow", is_flag=True, help="Of --stream: go on when the file grows, until "
                 "Ctrl-C."),
    click.option("--idle", metavar="SECONDS", type=click.FloatRange(0), help="Of --follow: end "
                 "after this time without new rows. Default: never."),
    click.option("--rows", type=_POSITIVE, metavar="NUMBER", help="Of --stream: rows that are "
                 f"predicted, then learnt, at a time. Default: {_DEFAULTS.rows}."),
    click.option("--every", type=_POSITIVE, metavar="ROWS", help="Of --stream: after how many "
                 f"rows to print the score and save the model. Default: {_DEFAULTS.every}."),
    click.option("--window", type=_POSITIVE, metavar="ROWS", help="Of --stream: the last rows "
                 f"that are also scored by themselves. Default: {_DEFAULTS.window}."),
    click.option("--classes", metavar="LABELS", help="Of --stream: all labels that will occur, "
                 "with commas between them. Default: those of the first rows."),
    click.option("--columns", type=_POSITIVE, metavar="NUMBER", help="Of --stream: of svmlight "
                 "text. Default: the largest index in the first rows."),
    click.option("--checkpoint", metavar="FOLDER", type=click.Path(file_okay=False), help="Where "
                 "to keep what --stream --resume needs; or, of rows in blocks, from where the same "
                 "command goes on if it was killed. Default: nowhere."),
    click.option("--resume", is_flag=True, help="Of --stream: continue from --checkpoint, if there "
                 "is one; rows that were learnt are skipped."),
]  # fmt: skip


def take_stream_options(options: dict[str, Any]) -> Streaming | None:
    """Return what the options say about a stream, and remove them; None without ``--stream``."""
    wanted = options.pop("stream")
    given = {name: options.pop(name) for name in Streaming._fields}
    given = {name: value for name, value in given.items() if value not in (None, False)}
    if not wanted:
        options["checkpoint"] = given.pop("checkpoint", None)  # of rows in blocks
        if given:
            raise click.UsageError(f"--{next(iter(given))} is for --stream.")
        return None
    found = _DEFAULTS._replace(**given)
    if found.idle is not None and not found.follow:
        raise click.UsageError("--idle is for --follow: without it, a stream ends with its file.")
    if found.resume and found.checkpoint is None:
        raise click.UsageError("--resume needs --checkpoint FOLDER, that of the run to continue.")
    return found


# ------------------------------------------------------------------- the command


def fit_stream(
    output: Output,
    data: str,
    saved_as: Path,
    asked: Streaming,
    reading: dict[str, Any],
    *,
    model: str | None,
    scale: str | None,
    options: dict[str, Any],
) -> Exit:
    """Learn from a stream; save the model at every report and at the end, also by Ctrl-C."""
    _refuse_options(data, model, asked, reading, options)
    stream, dataset = open_stream(data, asked, model, reading)
    pipeline = make_learner(dataset, model, scale, options)
    classes = None if dataset.task == "regression" else choose_classes(dataset, asked.classes)
    output.facts([*_facts(dataset, classes, asked), ("model", describe_model(pipeline))])
    reporter = Reporter(output, lambda: save_model(pipeline, saved_as, dataset))
    code, found = _learn(pipeline, stream, classes, asked, reporter)
    machine = steps_of(pipeline)[-1]
    if reporter.last is None:  # nothing came after the checkpoint
        save_model(pipeline, saved_as, dataset)
    if code == Exit.INTERRUPTED:
        output.note(f"Interrupted: what was learnt is saved to {saved_as}.")
    output.facts(
        [("learnt", str(found)), ("stopped", stop_reason(machine)), ("saved", str(saved_as))]
    )
    return output.finish(
        code,
        data={**dataset.to_json(), "rows": found.rows},
        model=describe_model(pipeline),
        stop_reason=stop_reason(machine),
        certificate=None,
        scores={"training": None, "test": None},
        prequential=to_json(found) | {"curve": [point._asdict() for point in found.curve]},
        saved=str(saved_as),
    )


class Reporter:
    """Saves the model and says on standard error how well rows were predicted."""

    def __init__(self, output: Output, save: Callable[[], None]) -> None:
        self.last: Any = None
        self._output, self._save = output, save

    def __call__(self, found: Any) -> None:
        """Report what is known by now."""
        self.last = found
        self._save()
        if self._output.as_json:
            line = {"schema": SCHEMA, "command": "fit", "status": "learning", **to_json(found)}
            click.echo(json.dumps(plain(line)), err=True)
        else:
            self._output.note(str(found))


def to_json(found: Any) -> dict[str, Any]:
    """Return the numbers of a run, without its curve."""
    names = ("rows", "metric", "weight", "score", "recent", "window")
    return {name: getattr(found, name) for name in names}


def _learn(
    pipeline: Any, stream: Any, classes: Any, asked: Streaming, reporter: Reporter
) -> tuple[Exit, Any]:
    from maxmargin.model_selection import prequential

    try:
        found = prequential(
            pipeline, stream, classes=classes, window=asked.window, every=asked.every,
            checkpoint=asked.checkpoint, resume=asked.resume, callback=reporter,
        )  # fmt: skip
    except KeyboardInterrupt:
        if reporter.last is None:
            raise
        return Exit.INTERRUPTED, reporter.last
    except ValueError as wrong:
        raise click.ClickException(in_stream_options(str(wrong))) from wrong
    return Exit.DONE, found


def in_stream_options(sentence: str) -> str:
    """Return a sentence of the library with parameters as they are called here."""
    for theirs, ours in (
        ("pass all of them as classes=[…] from the start", "name all of them with --classes"),
        ("with resume=True", "with --resume"),
        ("pass a larger n_features, or None to take as many columns as there are",
         "say how many there are with --columns"),
        ("is beyond n_features=", "is beyond the columns of the stream, "),
        ("checkpoint=", "--checkpoint "),
        ("window=", "--window "),
    ):  # fmt: skip
        sentence = sentence.replace(theirs, ours)
    return sentence


# ------------------------------------------------------------------- the stream and the model


def _refuse_options(
    data: str,
    model: str | None,
    asked: Streaming,
    reading: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """Refuse what a stream cannot do, before anything is read."""
    if model is not None and model not in MODELS:
        raise click.UsageError(
            f"--model {model} cannot learn from a stream; {', '.join(MODELS)} can."
        )
    for name in _OF_A_FIT:
        if options.get(name) is not None:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} is not for --stream, which sees each row once.")
    if "balanced" in (options.get("class_weight") or ()):
        raise click.UsageError("--class-weight balanced needs all rows; give LABEL=WEIGHT.")
    if data == STDIN and asked.follow:
        raise click.UsageError(
            "--follow is for files: standard input is read as it arrives, until it ends."
        )
    data_format = reading["data_format"]
    if data != STDIN and data_format is not None:
        raise click.UsageError("--format is for standard input (-): files say it by their name.")
    if data_format not in (None, *FORMATS):
        raise click.UsageError(f"--format {data_format} is not for --stream: {', '.join(FORMATS)}.")


def open_stream(
    data: str, asked: Streaming, model: str | None, reading: dict[str, Any]
) -> tuple[Any, Dataset]:
    """Return the stream, and what its first lines are."""
    import warnings

    from maxmargin.data import follow

    idle = asked.idle if asked.follow or data == STDIN else 0
    task = find_task(model, reading["task"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the remarks say so too
        stream = follow(
            data, label=reading["label"], task=task, zero_based=reading["zero_based"],
            n_features=asked.columns, format=reading["data_format"], rows=asked.rows,
            head=max(asked.rows, LEAST_HEAD), idle=idle,
        )  # fmt: skip
    head = stream.head
    assert head is not None
    if head.X.shape[1] > MAX_COLUMNS:
        raise click.ClickException(
            f"{stream.name} has an index {head.X.shape[1]}: the weights of that many columns do "
            "not fit in memory; number the features that occur from 1 on."
        )
    chosen, why = (task, "") if task else choose_task(head.y, head.label_name)
    return stream, Dataset(data, head, chosen, why)


def make_learner(
    dataset: Dataset, model: str | None, scale: str | None, options: dict[str, Any]
) -> Any:
    """Return the pipeline, of which all steps but the last are fitted to the first rows."""
    name = model or ("linear-svr" if dataset.task == "regression" else "linear-svc")
    pipeline = make_pipeline(dataset, make_machine(name, dataset.task, dataset.y, options), scale)
    X = dataset.X
    for step in steps_of(pipeline)[:-1]:
        X = step.fit_transform(X)
    return pipeline


def choose_classes(dataset: Dataset, given: str | None) -> Any:
    """Return the labels that may occur: those given, or those of the first rows."""
    import numpy as np

    found = np.unique(dataset.y)
    if given is not None:
        words = [word.strip() for word in given.split(",") if word.strip()]
        found = np.unique(_as_labels(words, found.dtype))
    if len(found) < 2:
        raise click.ClickException(
            f"the first {len(dataset.y):,} rows have the label {found[0]} only: name all labels "
            "that will occur with --classes."
        )
    return found


def _as_labels(words: Sequence[str], dtype: Any) -> Any:
    import numpy as np

    if dtype.kind not in "iuf":
        return np.array(words)
    try:
        return np.array(words).astype(dtype)
    except ValueError as wrong:
        raise click.UsageError(
            f"--classes {','.join(words)}: the labels of these rows are numbers ({wrong})."
        ) from wrong


def _facts(dataset: Dataset, classes: Any, asked: Streaming) -> list[tuple[str, str]]:
    """Return headings and sentences about a stream, of which the first rows are known."""
    found = [fact for fact in dataset.facts() if fact[0] not in ("rows × columns", "classes")]
    found.insert(1, ("columns", str(dataset.X.shape[1])))
    if classes is not None:
        listed = ", ".join(map(str, classes[:10])) + (", …" if len(classes) > 10 else "")
        why = "" if asked.classes else f", as in the first {len(dataset.y):,} rows"
        found.insert(2, ("classes", f"{listed}{why}"))
    return found
