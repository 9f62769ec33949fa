"""``maxmargin path``: the solutions for one C after the other."""

from pathlib import Path
from typing import Any

import click

from maxmargin.cli.inputs import data_options, read_data, refuse_labels
from maxmargin.cli.models import find_task, make_machine, model_options
from maxmargin.cli.output import Exit, Output, command, in_options
from maxmargin.cli.search import Grid, without
from maxmargin.cli.training import make_pipeline

EXAMPLE = """
$ maxmargin path iris.csv --model linear-svc --C 0.01:100:5
…
   C     margin    slack  support vectors  errors          gap
0.01    1.43508  166.677              253      68  1.09388e-14
 0.1   0.612671  115.225              164      44  1.83103e-14
   1    0.28317  95.4792              119      44  2.81782e-14
…
certified       every solution
"""


@command(
    "path",
    example=EXAMPLE,
    exits=(Exit.DONE, Exit.ERROR, Exit.USAGE, Exit.NOT_CONVERGED, Exit.INTERRUPTED),
    see_also=("search", "fit"),
)
@data_options
@click.option(
    "--C",
    "Cs",
    type=Grid(),
    metavar="LIST|LOW:HIGH:COUNT",
    help="Costs to solve for. Default: 20 from one end of the path to the other.",
)
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write the table as CSV. Default: it is only printed.",
)
@without("C", "probability")
@model_options(("linear-svc", "svc", "linear-svr", "svr"))
def path(
    output: Output,
    data: str,
    path: str | None,
    Cs: tuple[float, ...] | None,
    model: str | None,
    scale: str | None,
    task: str | None,
    label: str | None,
    zero_based: bool,
    data_format: str | None,
    **options: Any,
) -> Exit:
    """Solve a machine for one C after the other, every solution with its certificate.

    Each solution starts from the one before, and kernel values are computed once for all. For two
    classes and few rows the path is exact: all values of C where it bends are found.

    The table has the margin 1/‖w‖, the sum of slacks, how many support vectors there are, how many
    training rows are wrong (in regression: outside the tube), and the relative duality gap.
    """
    import maxmargin as mm

    dataset = read_data(
        data, label=label, task=find_task(model, task), zero_based=zero_based,
        data_format=data_format,
    )  # fmt: skip
    refuse_labels(dataset)
    output.facts(dataset.facts())
    machine = make_machine(model, dataset.task, dataset.y, options)
    pipeline = make_pipeline(dataset, machine, scale)
    X = dataset.X
    if hasattr(pipeline, "steps"):
        X = pipeline[:-1].fit_transform(X)
    found = mm.regularization_path(X, dataset.y, machine, Cs=20 if Cs is None else list(Cs))
    rows = make_rows(found)
    output.text()
    output.table(list(rows[0]), [list(row.values()) for row in rows])
    output.text()
    ends = {"small_C": found.small_C_reason, "hard_C": found.hard_C_reason}
    output.facts([
        ("small end", _end(found.small_C, found.small_C_reason)),
        ("large end", _end(found.hard_C, found.hard_C_reason)),
        ("exact path", _exact(found)),
        ("certified", "every solution" if found.certified else f"not all to {found.tol:g}"),
    ])  # fmt: skip
    if path is not None:
        write_table(path, rows)
        output.facts([("saved", path)])
    return output.finish(
        Exit.DONE if found.certified else Exit.NOT_CONVERGED,
        data=dataset.to_json(),
        tol=found.tol,
        points=rows,
        small_C=found.small_C,
        hard_C=found.hard_C,
        reasons={**ends, "exact": found.exact_reason},
        breakpoints=found.breakpoints,
        saved=path,
    )


def _exact(found: Any) -> str:
    bends = 0 if found.breakpoints is None else len(found.breakpoints)
    return f"{bends} breakpoints; {found.exact_reason}" if bends else f"none: {found.exact_reason}"


def _end(C: float | None, reason: str) -> str:
    reason = in_options(reason)
    return reason if C is None else f"C = {C:.6g}: {reason}" if reason else f"C = {C:.6g}"


def make_rows(found: Any) -> list[dict[str, Any]]:
    """Return what the table has for each C; of several problems sums, and the smallest margin."""
    import numpy as np

    def each(values: Any, combine: Any) -> Any:
        values = np.asarray(values)
        return values if values.ndim == 1 else combine(values, axis=1)

    vectors = sum(each(counts, np.sum) for counts in found.support_counts.values())
    columns = {
        "C": found.Cs,
        "margin": each(found.margins, np.min),
        "slack": each(found.slack_sums, np.sum),
        "support vectors": vectors,
        "errors": each(found.training_errors, np.sum),
        "gap": [proved_gap(certificate) for certificate in found.certificates],
    }
    lists = {name: np.asarray(values).tolist() for name, values in columns.items()}
    return [{name: values[k] for name, values in lists.items()} for k in range(len(found.Cs))]


def proved_gap(certificate: Any) -> float:
    """Return the relative gap that is proved, with all rounding to the bad."""
    return float(certificate.proved_gap / certificate.size) if certificate.size else 0.0


def write_table(path: str, rows: list[dict[str, Any]]) -> None:
    """Write records as CSV, with a header."""
    import csv

    from maxmargin.runtime.atomic_write import write_atomically

    def write(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    write_atomically(path, write)
