"""``maxmargin certify``: how near a model is to the optimum, computed anew from the data."""

from typing import Any

import click

import maxmargin as mm
from maxmargin.cli.command import Exit
from maxmargin.cli.printing import Output, certificate_to_json
from maxmargin.cli.saved import read_model, read_training_rows

LOOSE = 1e-3  # for text models, which do not say how precisely they were solved


def run(
    output: Output,
    model: str,
    data: tuple[str, ...],
    tol: float | None,
    max_time: float,
    test_fraction: float | None,
    seed: int,
    zero_based: bool,
    **lacking: Any,
) -> Exit:
    """Run the command."""
    saved = read_model(model, **lacking)
    (X, y, _), _ = read_training_rows(output, saved, data, zero_based, test_fraction, seed)
    try:
        found = mm.certify(saved.model, X, y, max_time=max_time)
    except TypeError as unknown:
        name = type(saved.machine).__name__
        raise click.ClickException(
            f"{model}: a {name} minimises no objective, so there is nothing to certify."
        ) from unknown
    output.facts([("model", saved.title), ("rows", f"{len(y)}")])
    if not isinstance(found, mm.Certificate):
        output.facts([("found", str(found))])
        return output.finish(model=model, rows=len(y), sentence=str(found), certificate=None)
    was_read = hasattr(saved.machine, "origin_")
    tol = tol or (LOOSE if was_read else float(getattr(saved.machine, "tol", LOOSE)))
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
        rows=len(y),
        sentence=str(found),
        certificate=certificate_to_json(found, tol),
    )
