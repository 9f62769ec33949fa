"""Tools at work, each in a process of its own, and what such a process can be asked for."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

from benchmarks.beside.objective import Objective
from benchmarks.beside.solvers import OURS, TOOLS, fitted
from benchmarks.children import LOADING, Answer, Child, FailedError, SlowError
from benchmarks.datasets import Dataset
from benchmarks.measure import Sample, interleave, timed

WARM_UP = 2500  # rows: with fewer, ours computes in float64, and the other loops are not loaded
WARM_UP_TIME = 10.0  # seconds for a fit of ours that is not counted
PREDICTED = 20_000  # rows
TILE = 1 << 22  # kernel values of the limit line that are computed at once
SETTLING = 0.15  # seconds: BLAS threads spin on for a while, and who comes next must not pay


class Crew(ExitStack):
    """A warm process for each tool that is asked for; one that was killed is replaced."""

    def __init__(self, dataset: Dataset, objective: Objective, threads: int) -> None:
        super().__init__()
        self._setup = {"dataset": dataset, "objective": objective, "threads": threads}
        self._threads = threads
        self._children: dict[str, Child] = {}

    def ask(self, tool: str, what: str, limit: float = LOADING, **settings: Any) -> Any:
        """Return a tool's answer, or raise SlowError or FailedError."""
        try:
            if tool not in self._children:
                setup = {"tool": tool, **self._setup}
                child = Child(Fitting, setup, self._threads)
                self._children[tool] = self.enter_context(child)
                child.ask("warm")
            return self._children[tool].ask(what, limit, **settings)
        except (SlowError, FailedError):
            if not self._children[tool].alive:
                self._children.pop(tool).close()
            raise


class Fitting:
    """In the child: a tool, its data and its last model; the public methods are the requests."""

    def __init__(self, dataset: Dataset, objective: Objective, tool: str, threads: int) -> None:
        self.dataset, self.objective, self.threads = dataset, objective, threads
        self.tool = TOOLS[tool]
        self.X = self.tool.rows(dataset)
        self.model: Any = None

    def warm(self) -> Answer:
        """Fit few rows: whatever is compiled or imported is so afterwards."""
        n = len(self.dataset.y)
        few = np.linspace(0, n - 1, min(n, WARM_UP)).astype(np.int64)
        if not self.objective.regression:  # some of each class
            labels = np.unique(self.dataset.y)
            few = np.concatenate([few, *(_first(self.dataset.y == label) for label in labels)])
        few = np.unique(few)
        more = {"max_time": WARM_UP_TIME} if self.tool is OURS else {}
        model = self._model(self.tool.settings[0], more)
        fitted(model, self.X[few], self.dataset.y[few]).predict(self.X[few])
        return {}

    def fit(self, setting: float, objective: dict[str, Any] | None = None, **more: Any) -> Answer:
        """Fit from scratch; say how long it took, and what a model of ours says of itself."""
        if objective is not None:
            self.objective = Objective(**objective)
        self.model = None  # its memory is free before the next one is made
        model = self._model(setting, more)
        answer: Answer = _sampled(lambda: fitted(model, self.X, self.dataset.y))._asdict()
        self.model = model
        if self.tool is OURS:
            answer["status"] = model.status_.name
            answer["gap"] = float(model.certificate_.relative_gap)
            answer["iterations"] = int(np.max(model.n_iter_, initial=0))
        return answer

    def judge(self) -> Answer:
        """Return the objective of the last model and, where it has duals, what they prove."""
        if self.objective.linear and self.tool is not OURS:
            weights = self.tool.weights(self.model)
            return {"primal": self.objective.value(self.dataset, *weights)}
        import maxmargin as mm

        began = time.perf_counter()
        model = self.tool.readable(self.model, self.dataset)
        found: Any = mm.certify(model, self.dataset.X, self.dataset.y)
        return {
            "seconds": time.perf_counter() - began,
            "primal": found.primal,
            "dual": found.dual,
            "gap": max(part.relative_gap for part in found.parts or (found,)),  # the worst
        }

    def predict(self) -> Answer:
        """Predict the test rows and, up to a number, training rows."""
        rows, y = self.dataset.X, self.dataset.y
        if self.dataset.X_test is not None:
            stack = sp.vstack if self.dataset.sparse else np.vstack
            rows, y = stack([self.dataset.X_test, rows]), np.append(self.dataset.y_test, y)
        rows, y = rows[:PREDICTED], y[:PREDICTED]
        predictions: list[Any] = []
        sample = _sampled(lambda: predictions.append(self.model.predict(rows)))
        if self.objective.regression:
            score = 1 - np.mean((predictions[0] - y) ** 2) / max(np.var(y), 1e-300)
        else:
            score = np.mean(predictions[0] == y)
        return {**sample._asdict(), "rows": len(y), "score": float(score)}

    def anatomy(self, setting: float) -> Answer:
        """Fit ours once more, counting kernel values; return these, and what the proof takes.

        The certificate is timed as ``mm.certify`` makes it anew, checks of the rows included.
        """
        from maxmargin.kernels import RBF
        from maxmargin.kernels.stationary import GaussianSums

        sizes: list[int] = []
        fill_tile, add, add_half = RBF.fill_tile, GaussianSums.add, GaussianSums.add_half

        def counting(kernel: Any, a: Any, b: Any, out: Any) -> None:
            sizes.append(out.size)
            fill_tile(kernel, a, b, out)

        def adding(sums: Any, a: Any, out: Any) -> None:
            sizes.append(len(a) * sums.size)
            add(sums, a, out)

        def adding_half(sums: Any, a: Any, top: int, out: Any) -> None:
            sizes.append(len(a) * (sums.size - top))
            add_half(sums, a, top, out)

        with (
            mock.patch.object(RBF, "fill_tile", counting),
            mock.patch.object(GaussianSums, "add", adding),
            mock.patch.object(GaussianSums, "add_half", adding_half),
        ):
            fit = self.fit(setting)
        support = len(self.model.support_)
        possible = max(1, len(self.dataset.y) * support)
        return {
            "support": support,
            "values": sum(sizes) / possible,
            "certificate": self.judge()["seconds"] / fit["wall"],
        }

    def limit_line(self) -> Answer:
        """Evaluate the kernel between all rows and the support vectors once, in float32."""
        from maxmargin.kernels import RBF

        assert self.objective.gamma is not None
        kernel, X = RBF(self.objective.gamma), self.dataset.X.astype(np.float32)
        vectors = X[np.asarray(self.model.support_)]
        step = max(1, TILE // max(1, len(vectors)))

        def tiles() -> None:
            for start in range(0, len(X), step):
                kernel.gram(X[start : start + step], vectors)

        return _sampled(tiles)._asdict()

    def _model(self, setting: float, more: dict[str, Any]) -> Any:
        return self.tool.model(self.dataset, self.objective, setting, self.threads, **more)


def _first(chosen: Any) -> Any:
    return np.flatnonzero(chosen)[:10]


def _sampled(call: Callable[[], object]) -> Sample:
    time.sleep(SETTLING)
    return interleave({0: timed(call)}, repeats=1, warm_ups=0).samples[0][0]
