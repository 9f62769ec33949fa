"""A candidate tries harder and harder, in a process of its own that is killed at its budget.

The process, ``python -m benchmarks.solvers.linear_sweep FILE CANDIDATE``, reads a pickled data set
and objective, warms up, and prints a line for every fit: how long it took and what it reached.
"""

import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.children import ROOT
from benchmarks.datasets import Dataset
from benchmarks.objective import LinearObjective, suboptimality
from benchmarks.solvers.linear import CANDIDATES, warm_up

LOADING = 300.0  # seconds allowed for reading the data, compiling and warming up


class Point(NamedTuple):
    """One fit: how hard it tried, seconds, and the objective it reached."""

    setting: float
    wall: float
    cpu: float
    value: float


@dataclass(frozen=True)
class Sweep:
    """All fits of one candidate; ``cut`` says that the next one was killed at the budget."""

    points: Sequence[Point]
    bound: float
    budget: float
    cut: bool

    def reached(self, target: float) -> Point | None:
        """Return the first fit that came so near to the optimum."""
        return next((p for p in self.points if self.above(p) <= target), None)

    def above(self, point: Point) -> float:
        """Return the relative suboptimality of a fit."""
        above = suboptimality(point.value, self.bound)
        return above if math.isfinite(above) else math.inf

    @property
    def best(self) -> float | None:
        """The nearest that any fit came to the optimum."""
        return min(map(self.above, self.points), default=None)


def sweep(file: Path, name: str, bound: float, enough: float, budget: float, threads: int) -> Sweep:
    """Let a candidate try harder until it is near enough, or one fit takes longer than allowed."""
    points: list[Point] = []
    command = ["-m", "benchmarks.solvers.linear_sweep", str(file), name]
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    printed = Printed(command, limits, first=LOADING, each=budget)
    for line in printed:
        if line.strip() == "ready":
            continue
        points.append(Point(**json.loads(line)))
        if suboptimality(points[-1].value, bound) <= enough:
            break
    return Sweep(points, bound, budget, printed.cut)


class Printed:
    """The lines a new Python process prints; it is killed where the next one is too long in coming.

    Attributes
    ----------
    cut : bool
        Whether it was killed for that reason.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], first: float, each: float
    ) -> None:
        self._arguments = [sys.executable, *arguments]
        self._environment = {**os.environ, **environment}
        self._first = first
        self._each = each
        self.cut = False

    def __iter__(self) -> Iterator[str]:
        with tempfile.TemporaryFile("w+") as errors:
            child = subprocess.Popen(
                self._arguments,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env=self._environment,
            )
            try:
                yield from self._lines(child)
                if child.wait() and not self.cut:
                    errors.seek(0)
                    raise RuntimeError(f"a child process failed:\n{errors.read()}")
            finally:
                child.kill()
                child.wait()

    def _lines(self, child: subprocess.Popen[str]) -> Iterator[str]:
        assert child.stdout is not None
        with child.stdout:
            limit = self._first
            while line := self._next_line(child, limit):
                yield line
                limit = self._each

    def _next_line(self, child: subprocess.Popen[str], seconds: float) -> str:
        assert child.stdout is not None

        def too_long() -> None:
            self.cut = True
            child.kill()

        timer = threading.Timer(seconds, too_long)
        timer.start()
        try:
            return child.stdout.readline()
        finally:
            timer.cancel()


def points(dataset: Dataset, objective: LinearObjective, name: str) -> Iterator[Point]:
    """Fit with every setting, from loose to tight."""
    candidate = CANDIDATES[name]
    X = candidate.rows(dataset)
    for setting in candidate.settings:
        began = time.perf_counter(), time.process_time()
        try:
            model = candidate.fit(X, dataset.y, objective, setting)
        except (ValueError, ArithmeticError):  # overflow: nothing was reached, the next may do
            model = None
        wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
        value = math.inf
        if model is not None:
            value = objective.value(dataset, *candidate.weights(model))
        yield Point(setting, wall, cpu, value)


def main(file: str, name: str) -> None:
    """Be the child."""
    with open(file, "rb") as stored:
        dataset, objective = pickle.load(stored)
    warm_up(CANDIDATES[name], dataset, objective)
    print("ready", flush=True)
    for point in points(dataset, objective, name):
        print(json.dumps(point._asdict()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
