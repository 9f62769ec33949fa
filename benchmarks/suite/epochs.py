"""One data set, all perceptrons, several numbers of epochs: timed in the same rounds."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.measure import Sampler, Series, Timings, interleave, per_step, spread, timed
from benchmarks.objective import outcome
from benchmarks.pictures import Curve
from benchmarks.solvers import Budget, Solver
from benchmarks.solvers.perceptrons import Ours, ScikitLearn

MANY = 6
CURVE = (1, 2, 3, MANY)
ORDERS = {False: "in order", True: "shuffled"}
AVERAGED = Ours(shuffle=False, averaged=True)
READS: dict[str, Callable[[Any], Any]] = {
    "np.sum(x)": np.sum,
    "np.dot(x, x)": lambda x: np.dot(x, x),
}

Key = tuple[Solver, int] | str


class Epochs:
    """The timings of fits by (solver, epochs), and of plain reads by name."""

    def __init__(self, dataset: Dataset, timings: Timings[Key]) -> None:
        self.dataset = dataset
        self.timings = timings

    def fit(self, solver: Solver, epochs: int = 1) -> Series:
        """Return wall seconds of a whole fit."""
        return self.timings.wall((solver, epochs))

    def epoch(self, solver: Solver, clock: Literal["wall", "cpu"] = "wall") -> Series:
        """Return seconds of one epoch."""
        of = self.timings.wall if clock == "wall" else self.timings.cpu
        return per_step(of((solver, MANY)), of((solver, 1)), MANY)

    def curves(self) -> list[Curve]:
        """Return the training mistakes (in %) after some epochs against the seconds they took."""
        return [self._curve(kind(shuffle=True)) for kind in (Ours, ScikitLearn)]

    def _curve(self, solver: Solver) -> Curve:
        seconds = [spread(self.fit(solver, epochs)).median for epochs in CURVE]
        models = [solver.fit(self.dataset, Budget(epochs)) for epochs in CURVE]
        rates = [100 * outcome(model, self.dataset).mistake_rate for model in models]
        return Curve(f"{solver.name} {solver.version}", seconds, rates)


def measure_epochs(dataset: Dataset, repeats: int) -> Epochs:
    """Time every perceptron on one data set, and for dense rows plain reads of the array."""
    fits: list[tuple[Solver, int]] = [
        (kind(shuffle=True), epochs) for epochs in CURVE for kind in (Ours, ScikitLearn)
    ]
    in_order: list[Solver] = [Ours(shuffle=False), ScikitLearn(shuffle=False), AVERAGED]
    fits += [(solver, epochs) for epochs in (1, MANY) for solver in in_order]
    samplers: dict[Key, Sampler] = {
        (solver, epochs): timed(partial(solver.fit, dataset, Budget(epochs)))
        for solver, epochs in fits
    }
    if not dataset.sparse:
        flat = dataset.X.ravel()
        samplers |= {name: timed(partial(read, flat)) for name, read in READS.items()}
    return Epochs(dataset, interleave(samplers, repeats))
