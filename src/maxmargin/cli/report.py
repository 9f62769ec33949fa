"""``maxmargin report``: a page about a model, with pictures."""

from pathlib import Path

import click

from maxmargin.cli.inputs import (
    held_back_options,
    model_argument,
    read_model,
    read_training_rows,
    zero_based_option,
)
from maxmargin.cli.output import Exit, Output, command

EXAMPLE = """
$ maxmargin report iris.mmg iris.csv -o iris.html
saved           iris.html: open it in a browser
"""


@command("report", example=EXAMPLE, see_also=("fit", "certify", "score", "try"))
@model_argument
@click.argument("data", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Where to write the page. Default: here, with MODEL's name and .html.",
)
@click.option("--title", help="Heading of the page. Default: DATA's name.")
@held_back_options
@zero_based_option
def report(
    output: Output,
    model: str,
    model_format: str | None,
    data: str,
    path: str | None,
    title: str | None,
    test_fraction: float | None,
    seed: int,
    zero_based: bool,
) -> Exit:
    """Write one HTML file about a model and its data: figures, pictures and what is proved.

    The file needs no network. DATA are the rows the model was fitted to; if it was fitted with
    --test, give the same --test and --seed, and the rows held back are the test rows of the page.
    """
    import maxmargin as mm

    saved = read_model(model, model_format)
    (X, y, numbers), held_back = read_training_rows(
        output, saved, data, zero_based, test_fraction, seed
    )
    X_test, y_test, numbers_test = held_back or (None, None, None)
    layout = saved.layout
    table = layout is not None and layout.kind == "table"
    names = None
    if table and layout.names is not None:
        names = [layout.names[column.position] for column in layout.columns]
    page = mm.report(
        saved.model, X, y, path or f"{Path(model).stem}.html",
        X_test=X_test, y_test=y_test, title=title or Path(data).name, feature_names=names,
        rows=numbers, rows_test=numbers_test, row_name="line",
        label_name=(layout.label_name if table else None) or "label",
        options={"max_time": "--max-time", "max_iter": "--max-iter", "tol": "--tol"},
    )  # fmt: skip
    output.facts([("saved", f"{page}: open it in a browser")])
    return output.finish(model=model, rows=len(y), saved=str(page))
