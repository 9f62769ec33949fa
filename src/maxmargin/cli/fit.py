"""``maxmargin fit``: a pipeline fitted to a file, saved with its certificate."""

from typing import Any

import click

from maxmargin.cli.blocks import (
    are_several,
    block_options,
    choose_place,
    fit_blocks,
    take_block_options,
)
from maxmargin.cli.inputs import (
    OUTLIERS,
    Dataset,
    files_options,
    read_data,
    refuse_labels,
    split_rows,
)
from maxmargin.cli.models import DETECTORS, find_task, make_machine, model_options
from maxmargin.cli.output import Exit, Output, command
from maxmargin.cli.stream import fit_stream, stream_options, take_stream_options
from maxmargin.cli.training import (
    certificate_of,
    certificate_to_json,
    choose_model,
    describe_model,
    fit_model,
    make_pipeline,
    refuse_to_replace,
    save_model,
    say_saved,
    stop_reason,
)

SCORED_ROWS = 20_000  # of the training rows, since they need not be scored exactly

EXAMPLE = """
$ maxmargin fit iris.csv --C 10 --test 0.3 -o iris.mmg
data            iris.csv: table with commas, with a header, label column 'class'
rows × columns  150 × 4
classes         setosa: 50, versicolor: 50, virginica: 50
task            classification: the label has words
model           SVC(C=10.0) after StandardScaler()
stopped         After 5 iterations (block_smo): the duality gap is below --tol.
certificate     The objective 101.3964 is within 1.9e-10 (relative 1.9e-12) of the best possible.
training rows   105: accuracy 96.19% ± 1.84%, balanced accuracy 96.19% ± 1.85%
test rows       45: accuracy 97.78% ± 2.22%, balanced accuracy 97.78% ± 2.27%
saved           iris.mmg
"""


@command(
    "fit",
    example=EXAMPLE,
    exits=tuple(Exit),
    see_also=("search", "predict", "score", "certify", "inspect", "diagnose"),
)
@files_options
@click.option(
    "-o",
    "--output",
    "path",
    metavar="MODEL",
    type=click.Path(),
    help="Where to save the model. Default: here, with DATA's name and the ending .mmg.",
)
@click.option("--force", is_flag=True, help="Replace MODEL even if it is some other file.")
@model_options()
@click.option(
    "--test",
    "test_fraction",
    metavar="FRACTION",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Hold back this part of the rows, and score the model on it. Default: none.",
)
@block_options
@stream_options
def fit(
    output: Output,
    data: tuple[str, ...],
    path: str | None,
    force: bool,
    model: str | None,
    scale: str | None,
    test_fraction: float | None,
    label: str | None,
    task: str | None,
    zero_based: bool,
    data_format: str | None,
    **options: Any,
) -> Exit:
    """Fit a model to labelled data, and save it with a proof of how good the fit is.

    DATA is a table (CSV, TSV, JSON lines, Parquet) or svmlight (LIBSVM) text, also packed as .xz,
    .gz or .bz2; - is standard input. Columns may have words, dates and missing cells.

    The model file holds the whole pipeline: how columns become numbers, how they are scaled, the
    machine, its certificate, and which columns a file needs for predictions. It is written
    completely or not at all, and loading it never runs code.

    --model auto takes what the diagnosis of the data recommends.

    Several files, a pattern in quotes or a folder (Parquet, CSV, TSV or svmlight text, numbers in
    all columns but the label) are read in blocks, so that they may be larger than memory; so is one
    file with --memory, --checkpoint or --cluster. The model is that of the same rows in memory. By
    default it is linear-svc, or linear-svr for regression.

    --stream learns from rows as they come: from standard input, or with --follow from a file that
    grows.

    Ctrl-C stops the fit, and the best model reached so far is saved; a second Ctrl-C aborts.
    """
    streaming, blocked = take_stream_options(options), take_block_options(options)
    saved_as = choose_place(path, data)
    refuse_to_replace(saved_as, force)
    reading: dict[str, Any] = {
        "label": label,
        "task": task,
        "zero_based": zero_based,
        "data_format": data_format,
    }
    asked: dict[str, Any] = {"model": model, "scale": scale, "options": options}
    in_blocks = are_several(data) or blocked.first_option is not None
    if streaming is not None or in_blocks:
        refuse_together(data, streaming is not None, blocked.first_option, test_fraction)
    if streaming is not None:
        return fit_stream(output, data[0], saved_as, streaming, reading, **asked)
    if in_blocks:
        return fit_blocks(output, data, saved_as, blocked, reading, **asked)
    dataset = read_data(data[0], **{**reading, "task": find_task(model, task)})
    if model not in DETECTORS:
        refuse_labels(dataset)
    kind = OUTLIERS if model in DETECTORS else dataset.task
    train, test = split_rows(dataset.y, kind, test_fraction, options["seed"])
    part = dataset.taken(train)
    pipeline, why = make_model(part, model, scale, options)
    chosen = [("chosen", why)] if why else []
    output.facts([*dataset.facts(), *chosen, ("model", describe_model(pipeline))])
    code = fit_model(pipeline, part.X, part.y)
    if code == Exit.INTERRUPTED:
        output.note(f"Interrupted: saving what was reached to {saved_as}; Ctrl-C again aborts.")
    save_model(pipeline, saved_as, dataset)  # first: a second Ctrl-C may follow
    machine = pipeline[-1] if hasattr(pipeline, "steps") else pipeline
    output.facts([("stopped", stop_reason(machine)), ("certificate", certificate_of(machine))])
    scores = {
        "training": score_part(pipeline, part, options["seed"]),
        "test": score_part(pipeline, dataset.taken(test), options["seed"]) if len(test) else None,
    }
    output.facts([(f"{name} rows", line) for name, s in scores.items() if (line := sentence(s))])
    say_saved(output, saved_as, code, machine)
    return output.finish(
        code,
        data=dataset.to_json(),
        model=describe_model(pipeline),
        stop_reason=stop_reason(machine),
        certificate=certificate_to_json(
            getattr(machine, "certificate_", None), getattr(machine, "tol", None)
        ),
        scores={name: to_json(found) for name, found in scores.items()},
        saved=str(saved_as),
    )


def refuse_together(
    data: tuple[str, ...], streaming: bool, block_option: str | None, test: float | None
) -> None:
    """Refuse what streams, and rows in blocks, do not take."""
    if streaming and block_option is not None:
        raise click.UsageError(f"{block_option} is not for --stream, which needs little memory.")
    if streaming and are_several(data):
        raise click.UsageError("--stream reads one file, or standard input (-).")
    if streaming and test is not None:
        raise click.UsageError("--test is not for --stream: all rows are predicted, then learnt.")
    if test is not None:
        raise click.UsageError(
            "--test is not for rows in blocks: leave out some files, and let maxmargin score read "
            "these."
        )


def make_model(
    dataset: Dataset, model: str | None, scale: str | None, options: dict[str, Any]
) -> tuple[Any, str]:
    """Return the pipeline that is asked for, and why it is that one if the data decide."""
    if model == "auto":
        return choose_model(dataset, scale, options)
    machine = make_machine(model, dataset.task, dataset.y, options)
    return make_pipeline(dataset, machine, scale), ""


def score_part(model: Any, part: Dataset, seed: int) -> Any:
    """Return the scores of a model on rows, of some of them if they are many."""
    import numpy as np

    from maxmargin.cli.figures import score_rows

    if len(part.y) > SCORED_ROWS:
        some = np.random.default_rng(seed).permutation(len(part.y))[:SCORED_ROWS]
        part = part.taken(np.sort(some))
    if not (hasattr(model, "classes_") or part.task == "regression"):
        return float(np.mean(model.predict(part.X) > 0)), len(part.y)
    return score_rows(model, part.X, part.y, (), part.task)


def sentence(found: Any) -> str:
    """Return scores in words."""
    if not found:
        return ""
    if isinstance(found, tuple):
        share, rows = found
        return f"{rows}: {share:.2%} are inside, the others are outliers"
    return f"{found[0].rows}: {', '.join(map(str, found))}"


def to_json(found: Any) -> Any:
    """Return scores for programs."""
    if not found:
        return None
    if isinstance(found, tuple):
        return {"rows": found[1], "share_inside": found[0]}
    scores = {s.name: {"value": s.value, "standard_error": s.error} for s in found}
    return {"rows": found[0].rows, **scores}
