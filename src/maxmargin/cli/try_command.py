"""``maxmargin try``, and the hidden ``warm-up`` that compiles what it needs."""

import contextlib
import io
import logging
import subprocess
import sys
import warnings
from typing import Any

import click

from maxmargin.cli.inputs import refuse_several, task_option, zero_based_option
from maxmargin.cli.output import Exit, Output, command

EXAMPLE = """
$ maxmargin try iris.csv --time 10
…
Report
    maxmargin-report.html has all this and more: open it in a browser. …
"""


@command(
    "try",
    example=EXAMPLE,
    exits=(Exit.DONE, Exit.ERROR, Exit.USAGE, Exit.INTERRUPTED),
    see_also=("diagnose", "search", "fit", "report"),
)
@click.argument("file", required=False, type=click.Path())
@click.option(
    "--label",
    metavar="COLUMN",
    help="Label column of a table: its name, or its number from 1. "
    "Default: the one named label, target, class or y, else the last.",
)
@task_option
@zero_based_option
@click.option(
    "--test",
    "test_fraction",
    metavar="FRACTION",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.3,
    show_default=True,
    help="Part of the rows held back for testing.",
)
@click.option(
    "--time",
    "max_time",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    default=30,
    show_default=True,
    help="Time allowed for learning: diagnosis, search and fit together.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option(
    "--report",
    metavar="PATH",
    type=click.Path(dir_okay=False),
    help="Where to write the report, and beside it the fitted model with the ending .mmg; files "
    "of these names are replaced. "
    "Default: maxmargin-report.html here, with -2, -3, … where that exists.",
)
@click.option("--no-report", is_flag=True, help="Write no report and no model.")
def try_command(output: Output, file: str | None, label: str | None, **options: Any) -> Exit:
    """Diagnose labelled data, take what is recommended, search around it, fit it, certify it.

    If the label is a number with many different values, that is a regression.

    All of it, with pictures, goes into one HTML file that needs no network.

    FILE is svmlight (LIBSVM) text, a table (CSV, TSV, separated by spaces, ARFF, Parquet) or JSON,
    also with .xz, .gz or .bz2 at the end of its name. Columns may have words, dates and missing
    values. Without FILE, scikit-learn's breast cancer data is used.
    """
    from maxmargin.cli.trial import Trial, run

    if file is None and label is not None:
        raise click.UsageError("--label names a column of FILE, and there is no FILE.")
    if file is not None:
        refuse_several(file)
    if options["report"] and options["no_report"]:
        raise click.UsageError("--report and --no-report exclude each other.")
    trial = Trial(file=file, label=label, as_json=output.as_json, **options)
    return output.finish(**run(trial))


@click.command("warm-up", hidden=True)
@click.option("--alone", is_flag=True, help="With one process instead of two.")
@click.option("--last-first", is_flag=True, help="In the opposite order.")
def warm_up_command(alone: bool, last_first: bool) -> None:
    """Compile the loops that fits, searches and diagnoses use, so that later runs need not wait.

    What is compiled follows from the small jobs that are run, so there is no list of loops to
    maintain. Two processes do them in opposite orders: a loop that both need is compiled once.
    """
    import maxmargin as mm

    logging.getLogger("maxmargin").setLevel(logging.ERROR)  # compiling is no news here
    command = [sys.executable, "-m", "maxmargin", "warm-up", "--alone"]
    if not last_first:
        command.append("--last-first")
    nothing = subprocess.DEVNULL
    second = None if alone else subprocess.Popen(command, stdin=nothing, stdout=nothing)
    # What ./try needs for most files. The rest (searches among thousands of rows, sparse rows,
    # perceptrons) would double the work, and is compiled when it is first used.
    for job in ("fit", "try") if last_first else ("try", "fit"):
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if job == "try":
                try_command.main(["--no-report"], standalone_mode=False)
            else:
                X, y = mm.datasets.circles(200, random_state=0)
                mm.SVC().fit(X, y).predict(X)
    if second is not None:
        second.wait()
