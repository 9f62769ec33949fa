"""Searches that share no matrix: fits one after the other by rising C, each from the last."""

import time
import warnings
from collections.abc import Iterator
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from maxmargin.certify import Certificate
from maxmargin.model_selection.search_plan import Family, Split, View


def chain(view: View, family: Family, split: Split, wanted: list[int]
          ) -> Iterator[tuple[int, Any, float, float]]:  # fmt: skip
    """Yield, by rising C, the place of a candidate in its family, its model, seconds and gap."""
    X, y, weight = view.taken(split.train)
    machine = clone(family.machine).set_params(warm_start=True)
    for k in wanted:
        machine.set_params(C=float(family.costs[k]))
        begun = time.perf_counter()
        with warnings.catch_warnings():
            # The gap is in the results.
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(X, y, sample_weight=weight)
        yield k, machine, time.perf_counter() - begun, _gap(machine.certificate_)


def _gap(certificate: Certificate) -> float:
    return float(max(part.relative_gap for part in certificate.parts or (certificate,)))


def whole(before: Any, name: str, machine: Any) -> Any:
    """Return a machine with the fitted steps that come before it."""
    return machine if before is None else Pipeline([*before.steps, (name, machine)])
