"""``maxmargin separate``: can a plane separate the classes? With a witness either way."""

from typing import Any

import click

from maxmargin.cli.inputs import data_options, read_data, refuse_labels
from maxmargin.cli.output import Exit, Output, command

SHOWN = 10  # rows, weights and pairs that are printed; --json has all

EXAMPLE = """
$ maxmargin separate iris.csv
…
answer          Not all classes are separable: 6 rows show that convex hulls meet.
witness         lines 79, 85, 108, 125, 135, 150, whose weighted means meet exactly
classes                   separable
setosa and versicolor     yes, margin 0.8176
setosa and virginica      yes, margin 1.567
versicolor and virginica  no
"""


@command("separate", example=EXAMPLE, see_also=("diagnose", "fit"))
@data_options
@click.option(
    "--max-time",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Time allowed for each pair of classes.",
)
@click.option("--no-intercept", is_flag=True, help="Only planes through the origin.")
def separate(output: Output, data: str, max_time: float, no_intercept: bool, **how: Any) -> Exit:
    """Say whether a plane separates the classes, with a witness that can be checked.

    The witness is the plane and its margin; or rows of both classes, with weights that make them
    meet in one point, so that no plane can pass between the classes. Columns of words become
    columns of 0 and 1; nothing is scaled, which would not change the answer.

    Exit code 3 says that it could not be decided at this precision or in the time.
    """
    import maxmargin as mm
    from maxmargin.cli.training import prepare_rows

    dataset = read_data(data, **{**how, "task": "classification"})
    refuse_labels(dataset)
    output.facts(dataset.facts())
    X, names = prepare_rows(dataset)
    found = mm.separate(X, dataset.y, intercept=not no_intercept, max_time=max_time)
    output.facts([("answer", str(found))])
    numbers, what = dataset.rows.numbers, dataset.rows.numbered
    output.facts(_witness_in_words(found, names, numbers, what))
    pairs = {pair: _pair(one) for pair, one in found.pairs.items()}
    if pairs:
        rows = [(f"{a} and {b}", words) for (a, b), words in list(pairs.items())[:SHOWN]]
        output.table(["classes", "separable"], rows)
    code = Exit.NOT_CONVERGED if found.separable is None else Exit.DONE
    return output.finish(
        code,
        data=dataset.to_json(),
        separable=found.separable,
        sentence=str(found),
        classes=found.classes,
        margin=found.margin,
        radius=found.radius,
        mistake_bound=found.mistake_bound,
        witness=witness_to_json(found.witness, numbers, what),
        pairs=[{"classes": pair, "separable": one.separable, "margin": one.margin}
               for pair, one in found.pairs.items()],
    )  # fmt: skip


def _pair(found: Any) -> str:
    if found.separable:
        return f"yes, margin {found.margin:.4g}"
    return "no" if found.separable is False else "undecided"


def _witness_in_words(found: Any, names: Any, numbers: Any, what: str) -> list[tuple[str, str]]:
    """Return a few lines on what proves the answer."""
    import numpy as np

    witness = found.witness
    if hasattr(witness, "rows"):
        some = sorted(numbers[witness.rows].tolist())
        more = f", … ({len(some)} in all)" if len(some) > SHOWN else ""
        listed = ", ".join(map(str, some[:SHOWN])) + more
        exact = "exactly" if witness.exact else f"within {witness.residual:.1g}"
        return [("witness", f"{what}s {listed}, whose weighted means meet {exact}")]
    if witness is None:
        return []
    w = np.asarray(witness.normal if hasattr(witness, "normal") else witness.w).ravel()
    largest = np.argsort(-np.abs(w), kind="stable")[:SHOWN]
    called = names or [f"column {j + 1}" for j in range(len(w))]
    terms = " ".join(f"{w[j]:+.4g}·{called[j]}" for j in largest if w[j])
    more = " + …" if len(w) > SHOWN else ""
    return [("witness", f"the plane {terms}{more} {float(witness.b):+.4g} = 0")]


def witness_to_json(witness: Any, numbers: Any, what: str) -> dict[str, Any] | None:
    """Return the witness for programs."""
    if witness is None:
        return None
    if hasattr(witness, "rows"):
        return {
            "kind": "overlap",
            f"{what}s": numbers[witness.rows],
            "weights": witness.weights,
            "point": witness.point,
            "residual": witness.residual,
            "exact": witness.exact,
        }
    return {"kind": "plane", "w": witness.w, "b": witness.b}
