"""Searches that share no matrix: fits one after the other by rising C, each from the last."""

from collections.abc import Iterator
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from maxmargin import clock
from maxmargin.certify import Certificate
from maxmargin.model_selection.search_plan import Family, Split, View


def chain(view: View, family: Family, split: Split, wanted: list[int]
          ) -> Iterator[tuple[int, Any, float, float]]:  # fmt: skip
    """Yield, by rising C, the place of a candidate in its family, its model, seconds and gap."""
    X, y, weight = view.taken(split.train)
    machine = clone(family.machine).set_params(warm_start=_convex(family.machine))
    for k in wanted:
        machine.set_params(C=float(family.costs[k]))
        begun = clock.now()
        machine.fit(X, y, sample_weight=weight)
        yield k, machine, clock.now() - begun, largest_gap(machine.certificate_)


def _convex(machine: Any) -> bool:
    """Return whether the solution is the same from wherever one starts."""
    return not hasattr(machine, "kernel") or machine._named_kernel().psd is True


def largest_gap(certificate: Certificate) -> float:
    """Return the largest relative gap of the problems that a model is made of."""
    return float(max(part.relative_gap for part in certificate.parts or (certificate,)))


def whole(before: Any, name: str, machine: Any) -> Any:
    """Return a machine with the fitted steps that come before it."""
    if not name:
        return machine
    return Pipeline([*([] if before is None else before.steps), (name, machine)])
