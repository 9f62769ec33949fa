"""Ours alone: how seconds and memory grow with the rows, and what a cap on memory costs."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.measure import Sample, Sampler, Spread, Timings, interleave, ratio, spread
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Table
from benchmarks.solvers.kernel import Machine, Ours
from benchmarks.solvers.kernel_worker import Answer, FailedError, SlowError, Worker, store
from benchmarks.suite.kernel_cases import CASES, GROWTH, prepared

ROWS = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
QUICK_ROWS = (100, 200, 400)
LIMIT, QUICK_LIMIT = 1800.0, 20.0  # seconds for one fit
GRACE = 120.0  # seconds beyond max_time before the process is killed
ROUNDS = 60.0  # seconds for all fits of one size: where fits are long there are fewer of them
CAPPED = "magic04"
CAPS = tuple(2**k for k in range(20, 33))
QUICK_CAPS = (2**16, 2**17)
LARGEST_STEP = 2.0
OPTIMAL = "OPTIMAL"


@dataclass(frozen=True)
class Size:
    """Fits to so many rows."""

    rows: int
    samples: list[Sample]
    answer: Answer  # of the last fit
    before: float  # megabytes at the peak, before the first fit
    peak: float

    @property
    def wall(self) -> Spread:
        """Wall seconds."""
        return spread([sample.wall for sample in self.samples])

    @property
    def cpu(self) -> Spread:
        """CPU seconds."""
        return spread([sample.cpu for sample in self.samples])


@dataclass(frozen=True)
class Growth:
    """All sizes that were fitted, and how the last one that was not ended."""

    sizes: list[Size]
    threads: int
    ended: str

    def exponents(self) -> tuple[float, float, float]:
        """Return how wall seconds, CPU seconds and memory grow with rows, as powers."""
        rows = [size.rows for size in self.sizes]
        above = [size.peak - size.before for size in self.sizes]
        walls, cpus = ([getattr(s, clock).median for s in self.sizes] for clock in ("wall", "cpu"))
        return exponent(rows, walls), exponent(rows, cpus), exponent(rows, above)

    def table(self) -> Table:
        """Return seconds and memory by rows; the exponents are in the last row."""
        cells: list[list[Cell]] = [
            [
                f"{size.rows:,}",
                size.wall,
                size.cpu,
                size.answer["vectors"],
                size.answer["status"],
                size.answer["own_gap"],
                size.answer["certifying"],
                size.before,
                size.peak,
            ]
            for size in self.sizes
        ]
        wall, cpu, memory = self.exponents()
        cells.append(["exponent of n", wall, cpu, None, "", None, None, None, memory])
        return Table(
            f"Ours on covtype, class 2 against the rest, {GROWTH.scaling}, {GROWTH.machine}, "
            f"{self.threads} thread(s); the exponent of memory is that of what fits add",
            (
                "rows",
                "fit s",
                "fit CPU s",
                "support vectors",
                "status",
                "certified gap",
                "certificate s",
                "MB before",
                "peak MB",
            ),
            cells,
        )

    def sentence(self) -> str:
        """Say how the time grows, and how far it got."""
        wall, cpu, memory = self.exponents()
        last = f"{self.sizes[-1].rows:,}" if self.sizes else "no"
        return (
            f"growth: seconds ∝ n^{wall:.2f} (CPU n^{cpu:.2f}), memory n^{memory:.2f}; "
            f"{last} rows were fitted{f', then: {self.ended}' if self.ended else ''}"
        )

    def check(self) -> Check:
        """Check that the largest size ended with a proof in time."""
        claim = f"{max(ROWS):,} rows are certified within {LIMIT:g} s"
        last = self.sizes[-1] if self.sizes else None
        if last is None or (last.rows < max(ROWS) and not self.ended):
            return Check("target", claim, None, "so many rows were not asked for")
        done = last.rows == max(ROWS) and last.answer["status"] == OPTIMAL
        said = f"{last.rows:,} rows: {last.answer['status']} after {last.wall.median:.0f} s"
        return Check("target", claim, bool(done and last.wall.median <= LIMIT), said)


def exponent(rows: list[int], values: list[float]) -> float:
    """Return the slope of log value by log rows."""
    known = [(n, v) for n, v in zip(rows, values, strict=True) if np.isfinite(v) and v > 0]
    if len({n for n, _ in known}) < 2:
        return float("nan")
    logs = np.log(np.array(known, dtype=np.float64))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def growth(options: Options, threads: int) -> Growth:
    """Fit more and more rows, each number of them in a new process, until one is too slow."""
    limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
    sizes: list[Size] = []
    for n in QUICK_ROWS if options.quick else ROWS:
        if options.rows is not None and n > options.rows:
            break
        dataset = prepared(GROWTH, options, n)
        try:
            sizes.append(_size(dataset, threads, limit, options.repeats))
        except (SlowError, FailedError) as reason:
            return Growth(sizes, threads, f"{n:,} rows: {reason}")
        print(f"  {n:,} rows: {sizes[-1].wall.median:.3g} s", flush=True)
        if sizes[-1].answer["status"] != OPTIMAL:
            return Growth(sizes, threads, f"{n:,} rows: {sizes[-1].answer['status']}")
    return Growth(sizes, threads, "")


def _size(dataset: Dataset, threads: int, limit: float, repeats: int) -> Size:
    with _worker(dataset, GROWTH.machine, threads) as worker:
        before = worker.ask("peak")["megabytes"]
        fit = partial(worker.ask, "fit", limit + GRACE, max_time=limit)
        answer = fit()
        samples = [_sample(answer)]
        for _ in range(min(repeats, int(ROUNDS / max(samples[0].wall, 1e-3))) - 1):
            answer = fit()
            samples.append(_sample(answer))
        return Size(len(dataset.y), samples, answer, before, float(worker.ask("peak")["megabytes"]))


@contextmanager
def _worker(dataset: Dataset, machine: Machine, threads: int) -> Iterator[Worker]:
    with tempfile.TemporaryDirectory() as folder:
        file = store(Path(folder) / "problem.pickle", dataset, machine)
        with Worker(file, Ours.name, threads) as worker:
            worker.ask("warm")
            yield worker


def _sample(answer: dict[str, Any]) -> Sample:
    return Sample(answer["wall"], answer["cpu"])


# ------------------------------------------------------------ memory


@dataclass(frozen=True)
class Caps:
    """Seconds by bytes that kept rows may take."""

    shape: str
    threads: int
    timings: Timings[int]

    @property
    def caps(self) -> list[int]:
        """The caps, from small to large."""
        return list(self.timings.samples)

    def steps(self) -> list[Spread | None]:
        """Return how many times slower each cap is than the next larger one."""
        pairs = zip(self.caps, self.caps[1:], strict=False)
        found = [spread(ratio(self.timings.wall(a), self.timings.wall(b))) for a, b in pairs]
        return [*found, None]

    def largest_step(self) -> float:
        """Return the largest factor between neighbours, in either direction."""
        medians = [step.median for step in self.steps() if step is not None]
        return max((max(median, 1 / median) for median in medians if median > 0), default=1.0)

    def table(self) -> Table:
        """Return a row a cap."""
        cells: list[list[Cell]] = [
            [
                f"2^{cap.bit_length() - 1}",
                cap / 2**20,
                spread(self.timings.wall(cap)),
                spread(self.timings.cpu(cap)),
                step,
            ]
            for cap, step in zip(self.caps, self.steps(), strict=True)
        ]
        return Table(
            f"Ours on {CAPPED} ({self.shape}) by memory for kept rows, {self.threads} thread(s)",
            ("memory", "MB", "fit s", "fit CPU s", "times the next cap's"),
            cells,
        )

    def check(self) -> Check:
        """Check that memory degrades smoothly."""
        found = self.largest_step()
        claim = f"no step above {LARGEST_STEP:g} between adjacent powers of two"
        return Check("target", claim, found <= LARGEST_STEP, f"the largest is {found:.2f}")


def caps(options: Options, threads: int) -> Caps:
    """Time our fit with one cap after another, by turns."""
    (case,) = (case for case in CASES if case.name == CAPPED)
    dataset = prepared(case, options, case.rows)
    limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
    with _worker(dataset, case.machine, threads) as worker:

        def sampler(cap: int) -> Sampler:
            return lambda: _sample(worker.ask("fit", limit, memory=cap))

        samplers = {cap: sampler(cap) for cap in (QUICK_CAPS if options.quick else CAPS)}
        return Caps(dataset.shape, threads, interleave(samplers, options.repeats))
