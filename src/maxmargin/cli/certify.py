"""``maxmargin certify``: how near a model is to the optimum, computed anew from the data."""

from typing import Any

import click

from maxmargin.cli.blocks import (
    Blocked,
    are_several,
    block_options,
    open_training,
    take_block_options,
)
from maxmargin.cli.cluster import connected
from maxmargin.cli.inputs import (
    SavedModel,
    files_argument,
    held_back_options,
    model_argument,
    read_model,
    read_training_rows,
    zero_based_option,
)
from maxmargin.cli.output import Exit, Output, command
from maxmargin.cli.training import certificate_to_json

LOOSE = 1e-3  # for text models, which do not say how precisely they were solved

EXAMPLE = """
$ maxmargin certify iris.mmg iris.csv --test 0.3
model           iris.mmg: SVC, a maxmargin model
rows            105
objective       101.3964 (primal)
lower bound     101.3964 (dual): no choice of weights gets below it
gap             1.99e-13 (relative 2e-15, plus rounding of at most 2e-12)
holds           yes, to 0.0001
in words        The objective 101.3964 is within 1.9e-10 (relative 1.9e-12) of the best possible.
$ maxmargin certify heart.model heart_scale.svm --C 1
"""


@command(
    "certify",
    example=EXAMPLE,
    exits=(Exit.DONE, Exit.ERROR, Exit.USAGE, Exit.NOT_CONVERGED),
    see_also=("fit", "inspect", "report"),
)
@model_argument
@files_argument
@click.option(
    "--tol",
    type=float,
    metavar="NUMBER",
    help="Relative gap to prove. Default: what the "
    f"model was fitted with; {LOOSE:g} for text models.",
)
@click.option(
    "-C",
    "--C",
    "C",
    type=float,
    metavar="NUMBER",
    help="Cost that a LIBSVM or LIBLINEAR model was trained with (-c).",
)
@click.option("--epsilon", type=float, metavar="NUMBER", help="Its ε (-p), for regression.")
@click.option("--nu", type=float, metavar="NUMBER", help="Its ν (-n).")
@click.option(
    "--max-time",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for finding a bound if the model has no dual variables.",
)
@held_back_options
@zero_based_option
@block_options
def certify(
    output: Output,
    model: str,
    model_format: str | None,
    data: tuple[str, ...],
    tol: float | None,
    max_time: float,
    test_fraction: float | None,
    seed: int,
    zero_based: bool,
    **lacking: Any,
) -> Exit:
    """Prove how near a model is to the best possible one, from the data it was fitted to.

    Nothing that the model file says about itself is trusted: the objective is computed from the
    weights, the lower bound from dual variables, both on the rows of DATA. If the model was fitted
    with --test, give the same --test and --seed here.

    Several files, a pattern in quotes or a folder are read in blocks, and so is one file with
    --memory or --cluster: models of linear-svc, linear-svr and svc.

    Models of LIBSVM and LIBLINEAR are certified, too; their files lack C, ε and ν, so these are
    given here.
    """
    import maxmargin as mm

    blocked = take_block_options(lacking)
    saved = read_model(model, model_format, **lacking)
    try:
        if are_several(data) or blocked.first_option:
            if test_fraction is not None:
                raise click.UsageError("--test is not for rows in blocks.")
            found, count = certify_blocks(saved, data, blocked, zero_based, max_time)
        else:
            (X, y, _), _ = read_training_rows(
                output, saved, data[0], zero_based, test_fraction, seed
            )
            found, count = mm.certify(saved.model, X, y, max_time=max_time), len(y)
    except TypeError as unknown:
        name = type(saved.machine).__name__
        raise click.ClickException(
            f"{model}: a {name} minimises no objective, so there is nothing to certify."
        ) from unknown
    output.facts([
        ("model", f"{model}: {type(saved.machine).__name__}, a {saved.called}"),
        ("rows", f"{count}"),
    ])  # fmt: skip
    if not isinstance(found, mm.Certificate):
        output.facts([("found", str(found))])
        return output.finish(model=model, rows=count, sentence=str(found), certificate=None)
    tol = tol or default_tol(saved)
    holds = found.holds(tol)
    output.facts([
        ("objective", f"{found.primal:.8g} (primal)"),
        ("lower bound", f"{found.dual:.8g} (dual): no choice of weights gets below it"),
        ("gap", f"{found.gap:.3g} (relative {found.relative_gap:.2g}, "
                f"plus rounding of at most {found.rounding:.1g})"),
        ("holds", f"{'yes' if holds else 'no'}, to {tol:g}"),
        ("in words", str(found)),
    ])  # fmt: skip
    return output.finish(
        Exit.DONE if holds else Exit.NOT_CONVERGED,
        model=model,
        rows=count,
        sentence=str(found),
        certificate=certificate_to_json(found, tol),
    )


def certify_blocks(
    saved: SavedModel, data: tuple[str, ...], asked: Blocked, zero_based: bool, max_time: float
) -> tuple[Any, int]:
    """Return the certificate of a model on rows that are read in blocks, and their number."""
    import maxmargin as mm
    from maxmargin.rows.reading import counted_reading

    with connected(asked.cluster, asked.insecure) as client, counted_reading() as readers:
        source = open_training(saved, data, zero_based, asked, client)
        found = mm.certify(saved.model, source, max_time=max_time)
        read: Any = readers[-1]
        return found, int(read.survey.n)


def default_tol(saved: SavedModel) -> float:
    """Return the gap that a model was fitted to have."""
    was_read = hasattr(saved.machine, "origin_")
    return LOOSE if was_read else float(getattr(saved.machine, "tol", LOOSE))
