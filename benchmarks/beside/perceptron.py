"""Perceptrons: the time of an epoch beside scikit-learn's, and what averaging costs.

Both do w += y x where y f(x) ≤ 0. scikit-learn slows the intercept down on sparse rows (to a
hundredth), so on sparse rows nobody learns one. A fit is of ten epochs, input checks included.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import sklearn.linear_model
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import contest
from benchmarks.contest import Contest, Results
from benchmarks.datasets import Dataset, available
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report

EPOCHS = 10
SETS = (
    "dense-float64", "dense-float32", "sparse-synthetic", "news20-binary", "20newsgroups-bydate",
)  # fmt: skip
OURS, AVERAGED, THEIRS = "maxmargin", "maxmargin, averaged", "scikit-learn"
# Weights that agree so far came from the same updates, rounding apart.
SAME_WEIGHTS = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-3}
# The last weights of a perceptron are a matter of luck: rates this close say nothing is wrong.
CLOSE_RATES = 0.02


def run(options: Options) -> Report:
    """Measure everything asked for."""
    with threadpool_limits(options.threads or 1):
        report, _ = contest.run("perceptron", _contests(options), options, warm_ups=1)
    report.notes.append(f"a fit is of {EPOCHS} epochs")
    return report


def _contests(options: Options) -> Iterator[Contest]:
    for dataset in available(options.chosen(SETS), options.data, options.quick):
        for shuffle in (False, True):
            fits = {name: partial(fit, name, dataset, shuffle) for name in (OURS, AVERAGED, THEIRS)}
            yield Contest(
                f"{dataset.name}, {'shuffled' if shuffle else 'in order'}",
                dataset.shape,
                fits,
                base=OURS,
                facts=partial(_facts, dataset),
                checks=partial(_checks, dataset, shuffle),
            )


def fit(name: str, dataset: Dataset, shuffle: bool) -> Any:
    """Make exactly so many epochs."""
    common: dict[str, Any] = {"shuffle": shuffle, "fit_intercept": not dataset.sparse}
    if name == THEIRS:
        model = sklearn.linear_model.Perceptron(tol=None, max_iter=EPOCHS, **common)
    else:
        kind = mm.Perceptron if name == OURS else mm.AveragedPerceptron
        model = kind(stop="epochs", max_epochs=EPOCHS, **common)
    return model.fit(dataset.X, dataset.y)


def mistake_rate(model: Any, dataset: Dataset) -> float:
    """Return the share of training rows on the wrong side."""
    return float(np.mean(model.predict(dataset.X) != dataset.y))


def _facts(dataset: Dataset, name: str, model: Any) -> dict[str, Cell]:
    tested = None if dataset.X_test is None else model.score(dataset.X_test, dataset.y_test)
    return {
        "training mistakes %": 100 * mistake_rate(model, dataset),
        "test accuracy %": None if tested is None else 100 * float(tested),
    }


def _checks(dataset: Dataset, shuffle: bool, models: Results) -> list[Check]:
    return [] if shuffle else [same_updates(models[OURS], models[THEIRS], dataset)]


def same_updates(ours: Any, theirs: Any, dataset: Dataset) -> Check:
    """Check that two perceptrons on the same rows in the same order made the same updates."""
    rates = [mistake_rate(model, dataset) for model in (ours, theirs)]
    said = f"training mistakes {rates[0]:.2%} and {rates[1]:.2%}"
    if len(ours.classes_) > 2:
        claim = f"{dataset.name}: ours learns all classes together, scikit-learn each alone"
        return Check("same problem", claim, None, said)
    mine, others = (np.column_stack([model.coef_, model.intercept_]) for model in (ours, theirs))
    difference = float(np.abs(mine - others).max() / max(np.abs(mine).max(), 1e-300))
    allowed = SAME_WEIGHTS[np.dtype(dataset.X.dtype)]
    holds: bool | None = difference <= allowed
    if not holds and abs(rates[0] - rates[1]) <= CLOSE_RATES:
        holds = None  # one visit decided by rounding is enough for another course
    found = f"weights differ by {difference:.1e} of the largest, {allowed:.0e} allowed; {said}"
    return Check("same problem", f"{dataset.name}: in order, the same weights", holds, found)
