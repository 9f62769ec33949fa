"""A tool at work in a process of its own, which does what it is asked and is killed at a limit.

The process, ``python -m benchmarks.solvers.kernel_worker FILE TOOL THREADS``, reads a pickled data
set and machine, and answers requests, a line of JSON each: fit, certify, predict, bare, peak.
Several such processes wait while one of them works, so that tools can take turns and yet a slow one
can be stopped.
"""

import contextlib
import importlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from benchmarks.children import ROOT, peak_megabytes
from benchmarks.datasets import Dataset
from benchmarks.measure import Sample, interleave, timed
from benchmarks.solvers.kernel import TOOLS, Machine

LOADING = 300.0  # seconds allowed for reading the data, compiling and warming up
WARM_UP = 2500  # rows: with fewer, ours computes in float64, and the other loops are not loaded
PREDICTED = 20_000  # rows
BLOCK = 1 << 22  # kernel values that bare tiles are given room for
SETTLING = 0.15  # seconds: BLAS threads spin on for a while, and who comes next must not pay
Answer = dict[str, Any]


class SlowError(Exception):
    """A request took longer than it was allowed to; the process is no more."""


class FailedError(Exception):
    """A request could not be answered; the message says why."""


# ------------------------------------------------------------ the parent's side


def store(file: Path, dataset: Dataset, machine: Machine) -> Path:
    """Write down what workers read."""
    with file.open("wb") as stored:
        pickle.dump((dataset, machine), stored, protocol=5)
    return file


class Worker:
    """A process that answers requests, used in a ``with`` statement."""

    def __init__(self, file: Path, tool: str, threads: int) -> None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the process is)
        self._child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.solvers.kernel_worker", file, tool, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, **dict.fromkeys(names, str(threads))},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, what: str, limit: float = LOADING, **settings: Any) -> Answer:
        """Return the answer to a request, or raise SlowError or FailedError."""
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either
            self._child.stdin.write(json.dumps({"do": what, **settings}) + "\n")
            self._child.stdin.flush()
        line, slow = self._line(limit)
        if slow:
            raise SlowError(f"more than {limit:g} s")
        if not line:
            self._child.wait()
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or ["no message"]
            raise FailedError(f"its process ended with {self._child.returncode}: {said[-1]}")
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise FailedError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._errors.close()

    def _line(self, seconds: float) -> tuple[str, bool]:
        assert self._child.stdout is not None
        slow = threading.Event()

        def too_long() -> None:
            slow.set()
            self._child.kill()

        timer = threading.Timer(seconds, too_long)
        timer.start()
        try:
            line = self._child.stdout.readline()
        finally:
            timer.cancel()
        return line, slow.is_set() and not line


# ------------------------------------------------------------ the child's side


class Session:
    """A tool, its data and its last model."""

    def __init__(self, dataset: Dataset, machine: Machine, tool: str, threads: int) -> None:
        self.dataset, self.machine, self.threads = dataset, machine, threads
        self.tool = TOOLS[tool]
        self.tool.limit(threads)
        self.model: Any = None

    def answer(self, request: Answer) -> Answer:
        """Do what is asked."""
        requests: dict[str, Callable[..., Answer]] = {
            "warm": self.warm,
            "fit": self.fit,
            "certify": self.certify,
            "predict": self.predict,
            "bare": self.bare,
            "peak": lambda: {"megabytes": peak_megabytes()},
        }
        settings = {name: value for name, value in request.items() if name != "do"}
        return requests[request["do"]](**settings)

    def warm(self, **settings: Any) -> Answer:
        """Fit few rows: whatever is compiled or imported is so afterwards."""
        few = _few(self.dataset, self.machine)
        X, y = self.dataset.X[few], self.dataset.y[few]
        model = self._fitted(self.tool.model(self.machine, self.threads, settings), X, y)
        _quietly(lambda: model.predict(X))
        return {}

    def fit(self, machine: dict[str, Any] | None = None, **settings: Any) -> Answer:
        """Fit from scratch; say how long it took, and how much of that went into the proof."""
        if machine is not None:
            self.machine = Machine(**machine)
        self.model = None  # its memory is free before the next one is made
        model = self.tool.model(self.machine, self.threads, settings)
        with _certifying() as seconds:
            sample = _sampled(lambda: self._fitted(model, self.dataset.X, self.dataset.y))
        self.model = model
        return {**sample._asdict(), "certifying": sum(seconds), **_own(model)}

    def certify(self) -> Answer:
        """Return what is proved of the last model, whoever made it."""
        import maxmargin as mm

        began = time.perf_counter()
        found: Any = mm.certify(self.model, self.dataset.X, self.dataset.y)
        seconds = time.perf_counter() - began
        parts = found.parts or (found,)
        return {
            "gap": found.relative_gap,
            "worst": max(part.relative_gap for part in parts),  # of the pairs of classes
            "primal": found.primal,
            "dual": found.dual,
            "seconds": seconds,
            "vectors": len(self.model.support_),
        }

    def predict(self) -> Answer:
        """Predict the test rows and, up to a number, training rows."""
        rows = predicted_rows(self.dataset)
        predictions: list[Any] = []
        sample = _sampled(lambda: predictions.append(self.model.predict(rows)))
        return {**sample._asdict(), "rows": rows.shape[0], **self._score(predictions[0])}

    def bare(self) -> Answer:
        """Evaluate the kernel between all rows and the support vectors once, and keep nothing."""
        from maxmargin.kernels import RBF

        kernel, X = RBF(self.machine.gamma), self.dataset.X
        rows = kernel.prepare_float32(X) or kernel.prepare(X.astype(np.float32))
        vectors = rows[np.asarray(self.model.support_)]
        step = max(1, BLOCK // max(1, len(vectors)))
        room = np.empty((min(step, len(rows)), len(vectors)), np.float32)

        def tiles() -> None:
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                kernel.block(part, vectors, out=room[: len(part)], threads=self.threads)

        return _sampled(tiles)._asdict()

    def _fitted(self, model: Any, X: Any, y: Any) -> Any:
        return _quietly(lambda: model.fit(X, y))

    def _score(self, predictions: Any) -> Answer:
        y = self.dataset.y if self.dataset.y_test is None else self.dataset.y_test
        n = min(len(y), len(predictions))
        if self.machine.epsilon is None:
            return {"score": float(np.mean(predictions[:n] == y[:n]))}
        unexplained = np.mean((predictions[:n] - y[:n]) ** 2) / max(np.var(y[:n]), 1e-300)
        return {"score": float(1 - unexplained)}


def predicted_rows(dataset: Dataset) -> Any:
    """Return the rows that are predicted: those of the test part, then training rows."""
    if dataset.X_test is None:
        return dataset.X[:PREDICTED]
    stack = sp.vstack if sp.issparse(dataset.X) else np.vstack
    return stack([dataset.X_test, dataset.X])[:PREDICTED]


def _few(dataset: Dataset, machine: Machine) -> Any:
    n = len(dataset.y)
    few = np.linspace(0, n - 1, min(n, WARM_UP)).astype(np.int64)
    if machine.epsilon is None:  # some of each class
        first = [np.flatnonzero(dataset.y == label)[:10] for label in np.unique(dataset.y)]
        few = np.concatenate([few, *first])
    return np.unique(few)


def _sampled(call: Callable[[], object]) -> Sample:
    time.sleep(SETTLING)
    return interleave({0: timed(call)}, repeats=1, warm_ups=0).samples[0][0]


def _quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():  # how a fit ended is what is measured
        warnings.simplefilter("ignore")
        return call()


@contextlib.contextmanager
def _certifying() -> Iterator[list[float]]:
    """Collect the seconds of every certificate of a kernel machine that is made meanwhile.

    They are those of each thread: where pairs of classes are certified side by side, their sum can
    be more than the time that passed.
    """
    # By its name: ``import maxmargin.certificates as …`` would find the function called so.
    room: Any = importlib.import_module("maxmargin.certificates")
    original = room.certify_kernel
    seconds: list[float] = []

    def clocked(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            seconds.append(time.perf_counter() - began)

    room.certify_kernel = clocked
    try:
        yield seconds
    finally:
        room.certify_kernel = original


def _own(model: Any) -> Answer:
    """Return what a model of ours says of itself."""
    if not hasattr(model, "certificate_"):
        return {}
    status = model.status_
    iterations = np.max(model.n_iter_) if np.size(model.n_iter_) else 0
    return {
        "status": getattr(status, "name", str(status)),
        "own_gap": float(model.certificate_.relative_gap),
        "iterations": int(iterations),
        "vectors": len(model.support_),
    }


def main(file: str, tool: str, threads: int) -> None:
    """Be the child: answer until there are no more requests."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    with open(file, "rb") as stored:
        dataset, machine = pickle.load(stored)
    session = Session(dataset, machine, tool, threads)
    for line in sys.stdin:
        try:
            answer = session.answer(json.loads(line))
        except Exception as error:  # the next request may go better
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=float), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
