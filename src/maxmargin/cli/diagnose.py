"""``maxmargin diagnose``: which kind of model the data need."""

from typing import Any

import click

from maxmargin.cli.inputs import Dataset, data_options, read_data, refuse_labels
from maxmargin.cli.models import option_words, write_command, write_options
from maxmargin.cli.output import Exit, Output, command, in_options

EXAMPLE = """
$ maxmargin diagnose iris.csv
…
Verdict: almost linearly separable
Why: removing 1 of 150 rows makes the classes linearly separable (no fewer will do); …
Use: LinearSVC(C=2.2, multi_class='ovo'): no method is significantly better than a plane; …

To fit it:
  maxmargin fit iris.csv --model linear-svc --C 2.2 --multi-class ovo --scale none
To search for better parameters:
  maxmargin search iris.csv --model linear-svc --multi-class ovo --scale none
"""


@command("diagnose", example=EXAMPLE, see_also=("fit", "search", "separate", "try"))
@data_options
@click.option(
    "--max-time",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    help="Time allowed, compilation aside; more rows are compared if there is more.",
)
@click.option(
    "--thorough",
    is_flag=True,
    help="Ask all questions, including those that cannot change the verdict.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
def diagnose(
    output: Output, data: str, seed: int, max_time: float, thorough: bool, **how: Any
) -> Exit:
    """Say which kind of model the data need, with evidence, and the command that fits it.

    For classes: do identical rows have different labels, does a plane separate the classes, does a
    kernel predict better than a plane, a network better than a kernel, do the classes overlap, or
    is there no signal?

    For numbers: does anything predict better than a constant, a kernel machine better than a plane,
    and boosted trees better than both?

    To predict better means significantly better on held-out rows.
    """
    dataset = read_data(data, **how)
    output.facts(dataset.facts())
    output.text()
    refuse_labels(dataset)
    from maxmargin.cli.training import diagnose as diagnose_dataset

    found = diagnose_dataset(dataset, {"seed": seed, "max_time": max_time, "thorough": thorough})
    output.text(in_options(str(found)))
    options = write_options(found.recommend())
    own = options is not None
    line = write_fit(dataset, options if options is not None else ["--model", "auto"])
    searched = write_search(dataset, options or [])
    output.text()
    others = "That is a model of scikit-learn. To fit the best of maxmargin's own all the same:"
    output.text("To fit it:" if own else others)
    output.command_line(line)
    if searched:
        output.text("To search for better parameters:")
        output.command_line(searched)
    return output.finish(
        data=dataset.to_json(), diagnosis=found.to_dict(), fit=line, search=searched
    )


def write_fit(dataset: Dataset, options: list[str]) -> str:
    """Return the command line that fits a model to the data."""
    return write_command("fit", dataset.source, *option_words(dataset.given), *options)


def write_search(dataset: Dataset, options: list[str]) -> str:
    """Return the command line that searches for C and γ, or nothing if the model has neither."""
    if not {"svc", "linear-svc", "svr", "linear-svr"}.intersection(options):
        return ""
    pairs = zip(options[::2], options[1::2], strict=True)
    kept = [word for pair in pairs if pair[0] not in ("--C", "--gamma") for word in pair]
    return write_command("search", dataset.source, *option_words(dataset.given), *kept)
