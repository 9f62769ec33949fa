"""``maxmargin fit``: a pipeline fitted to files, saved with its certificate."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from sklearn.preprocessing import StandardScaler

from maxmargin.cli import models, reading
from maxmargin.cli.command import Exit
from maxmargin.cli.options import DETECTORS
from maxmargin.cli.printing import Output, certificate_to_json
from maxmargin.cli.saved import OUTLIERS
from maxmargin.cli.scores import measure
from maxmargin.data import standardize
from maxmargin.rows.reading import counted_reading, describe_bytes
from maxmargin.rows.survey import survey
from maxmargin.runtime.progress import progress

BLOCK_MODELS = ("linear-svc", "linear-svr")


class Asked(NamedTuple):
    """The model that the options ask for, and where it goes."""

    model: str | None
    scale: str | None
    parameters: dict[str, Any]
    path: Path


def run(
    output: Output,
    data: tuple[str, ...],
    path: str | None,
    model: str | None,
    scale: str | None,
    test_fraction: float | None,
    **parameters: Any,
) -> Exit:
    """Run the command."""
    blocks, how = reading.take_block_options(parameters), reading.take_options(parameters)
    how["task"] = models.find_task(model, how["task"])
    asked = Asked(model, scale, parameters, models.choose_path(path, data))
    models.refuse_to_replace(asked.path)
    if any(blocks) or reading.are_several(data):
        _refuse_in_blocks(asked, test_fraction)
        return _fit_blocks(output, asked, data, how, blocks)
    return _fit_rows(output, asked, reading.read_data(data[0], **how), test_fraction)


def _fit_rows(output: Output, asked: Asked, dataset: reading.Data, fraction: float | None) -> Exit:
    """Fit a model to rows in memory."""
    detects = asked.model in DETECTORS
    if not detects:
        reading.refuse_labels(dataset)
    kind = OUTLIERS if detects else dataset.task
    train, test = reading.split_rows(dataset.rows.y, kind, fraction, asked.parameters["seed"])
    part = dataset.take(train)
    machine = models.make_machine(asked.model, dataset.task, part.rows.y, asked.parameters)
    pipeline = models.make_pipeline(part, machine, asked.scale)
    output.facts([*dataset.facts(), ("model", models.describe_model(pipeline))])
    code = models.fit_model(pipeline, part.rows.X, part.rows.y)
    models.save_model(output, pipeline, asked.path, dataset.layout, code)
    output.facts(_describe_end(pipeline))
    scores = {"training": _score(output, "training", pipeline, part.rows), "test": None}
    if len(test):
        scores["test"] = _score(output, "test", pipeline, dataset.take(test).rows)
    return _finish(output, asked.path, code, pipeline, data=dataset.summary(), scores=scores)


def _describe_end(pipeline: Any) -> Iterator[tuple[str, str]]:
    machine = models.steps_of(pipeline)[-1]
    yield "stopped", machine.stop_reason_
    yield "certificate", models.describe_certificate(machine)


def _finish(output: Output, path: Path, code: Exit, pipeline: Any, **fields: Any) -> Exit:
    machine = models.steps_of(pipeline)[-1]
    models.say_saved(output, path, code)
    return output.finish(
        code,
        model=models.describe_model(pipeline),
        stop_reason=machine.stop_reason_,
        certificate=certificate_to_json(machine),
        saved=str(path),
        **fields,
    )


def _score(output: Output, name: str, model: Any, rows: Any) -> dict[str, Any]:
    """Print and return how good a model is on rows."""
    found = measure(model, rows.X, rows.y, name)
    output.facts([(f"{name} rows", str(found))])
    return found.to_json()


# ------------------------------------------------------------------- rows in blocks


def _refuse_in_blocks(asked: Asked, fraction: float | None) -> None:
    """Refuse what rows in blocks cannot do, before anything is read."""
    if fraction is not None:
        raise click.UsageError(
            "--test is not for rows in blocks: leave out some files, and let maxmargin predict "
            "--score read these."
        )
    if asked.model not in (None, *BLOCK_MODELS):
        raise click.UsageError(
            f"--model {asked.model} is not for rows in blocks; {' and '.join(BLOCK_MODELS)} are. "
            "For kernels, fit PartitionedSVC in Python, or Nystroem and LinearSVC."
        )
    if asked.scale not in (None, "standard", "none"):
        raise click.UsageError(
            f"--scale {asked.scale} is not for rows in blocks; standard and none are."
        )


def _fit_blocks(
    output: Output,
    asked: Asked,
    words: tuple[str, ...],
    how: dict[str, Any],
    blocks: reading.BlockChoices,
) -> Exit:
    """Fit a model to rows in blocks; what is said and saved is the same as for rows in memory."""
    with reading.connected(blocks) as client, counted_reading() as readers:
        dataset = reading.open_data(words, how, blocks, client)
        source, machine = dataset.source, _make_machine(dataset, asked)
        scaled = asked.scale == "standard" or (asked.scale is None and not source.sparse)
        scaler = StandardScaler(with_mean=not source.sparse) if scaled else None
        steps = models.describe_model(models.join_steps([("scale", scaler)], machine))
        output.facts([*dataset.facts(), ("model", steps)])
        with progress("Standardizing the columns", even=False, quiet=not scaled):
            view = standardize(source) if scaled else source
        code = models.fit_model(machine, view, None)
    for step in (view.scaler, machine):  # columns of files come without names
        if step is not None:
            vars(step).pop("feature_names_in_", None)
    pipeline = models.join_steps([("scale", view.scaler)], machine)
    models.save_model(output, pipeline, asked.path, dataset.layout, code)
    read: Any = readers[-1]
    output.facts([*_describe_blocks(read, source), *_describe_end(pipeline)])
    return _finish(
        output,
        asked.path,
        code,
        pipeline,
        data=dataset.summary(read.survey),
        scores={"training": None, "test": None},
        passes=read.passes,
        bytes_read=read.bytes_read,
    )


def _make_machine(dataset: reading.Data, asked: Asked) -> Any:
    """Return an unfitted machine; what its defaults depend on is found by a pass over the rows."""
    regression, given = dataset.task == "regression", asked.parameters
    y: Any = np.zeros(1)
    if regression and (given["C"] is None or given["epsilon"] is None):
        spread = survey(dataset.source, targets=True).targets
        assert spread is not None
        y = np.array([-spread.std, spread.std])  # two numbers that scatter as all targets do
    return models.make_machine(asked.model or BLOCK_MODELS[regression], dataset.task, y, given)


def _describe_blocks(read: Any, source: Any) -> Iterator[tuple[str, str]]:
    """Yield headings and sentences about what reading the rows has shown."""
    found = read.survey
    yield "rows × columns", f"{found.n} × {source.n_columns}"
    if (t := found.targets) is not None:
        yield "targets", reading.describe_targets(t.low, t.high, None, t.std)
    elif found.labels is not None:
        yield "classes", reading.list_classes(found.classes, found.counts)
    passes = f"{read.passes} pass{'es' * (read.passes != 1)}"
    yield "read", f"{describe_bytes(read.bytes_read)}; {passes} over the rows"
