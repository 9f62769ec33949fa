"""Ours alone, on dense rows: one thread and two, memory beyond the input, growth with the rows."""

import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks.children import peak_megabytes, run_python
from benchmarks.datasets import SEED, dense, load
from benchmarks.measure import Sample, Sampler, Timings, interleave, ratio, spread, timed
from benchmarks.options import Options
from benchmarks.report import Cell, Table

DENSE = ("dense-float64", "dense-float32")
ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
QUICK_ROWS = (300, 1000, 3000)
COLUMNS = 20
TARGET = 1e-4
# OpenBLAS's threads spin on for a while after their work; who comes next must not pay for it.
SETTLING = 0.15


def thread_table(options: Options) -> Table:
    """Time our fits with one thread and with two, by turns."""
    counts = (1, 2)
    rows: list[list[Cell]] = []
    for dataset in (load(name, None, options.quick) for name in DENSE):
        model = mm.LinearSVC(tol=TARGET)
        model.fit(dataset.X[:1000], dataset.y[:1000])
        samplers = {
            threads: _limited(timed(partial(model.fit, dataset.X, dataset.y)), threads)
            for threads in counts
        }
        timings = interleave(samplers, options.repeats)
        rows += [
            [
                dataset.name,
                threads,
                spread(timings.wall(threads)),
                spread(timings.cpu(threads)),
                spread(ratio(timings.wall(1), timings.wall(threads))),
            ]
            for threads in counts
        ]
    return Table(
        f"Ours with a free intercept to {TARGET:.0e}, by threads",
        ("data", "threads", "wall s", "CPU s", "times as fast"),
        rows,
    )


def _limited(sample: Sampler, threads: int) -> Sampler:
    def limited() -> Sample:
        time.sleep(SETTLING)
        with threadpool_limits(threads):
            return sample()

    return limited


def memory_table(options: Options) -> Table:
    """Fit in new processes and say how much memory that took beyond the rows and labels."""
    n, d = (20_000, 50) if options.quick else (500_000, 50)
    rows: list[list[Cell]] = []
    for dtype in ("float64", "float32"):
        command = ["-m", "benchmarks.suite.linear_growth", str(n), str(d), dtype]
        said = json.loads(run_python(command))
        above = said["peak"] - said["before"]
        size = n * d * np.dtype(dtype).itemsize / 2**20
        rows.append([dtype, size, above, above * 2**20 / n, above / size])
    return Table(
        f"Peak memory of our fit beyond its input, {n:,} rows × {d}",
        ("dtype", "input MB", "MB above", "bytes a row", "above / input"),
        rows,
    )


def fit_and_weigh(n: int, d: int, dtype: str) -> dict[str, float]:
    """Be the child: return the peak of memory before a fit and after it."""
    rng = np.random.default_rng(SEED)
    w = rng.standard_normal(d)
    few = rng.standard_normal((1000, d)).astype(dtype)
    model = mm.LinearSVC(tol=TARGET).fit(few, few @ w > 0)  # loads the compiled loops
    X, y = np.empty((n, d), dtype), np.empty(n, np.int64)
    for start in range(0, n, 1000):  # in small pieces: making the rows must not be the peak
        part = rng.standard_normal((min(1000, n - start), d), dtype=np.float32)
        noise = 0.1 * np.sqrt(d) * rng.standard_normal(len(part))
        X[start : start + 1000] = part
        y[start : start + 1000] = np.where(part @ w + noise > 0, 1, -1)
    before = peak_megabytes()
    model.fit(X, y)
    return {"before": before, "peak": peak_megabytes()}


@dataclass(frozen=True)
class Growth:
    """Seconds by rows, and what the last fit of each size said of itself."""

    timings: Timings[int]
    models: dict[int, Any]

    @property
    def rows(self) -> list[int]:
        """The sizes."""
        return list(self.models)

    def seconds(self) -> list[float]:
        """Return the median seconds of each size."""
        return [spread(self.timings.wall(n)).median for n in self.rows]

    def traced(self) -> list[float]:
        """Return the solver's seconds until the gap was small enough, without what follows."""
        return [
            next((s for s, gap in model.trace_ if gap <= TARGET), np.nan)
            for model in self.models.values()
        ]

    def slopes(self) -> tuple[float, float]:
        """Return how seconds grow with rows, as a power: of the whole fit, and by the trace."""
        return _slope(self.rows, self.seconds()), _slope(self.rows, self.traced())

    def table(self) -> Table:
        """Return seconds by rows; the slopes are in the last row."""
        cells: list[list[Cell]] = [
            [
                f"{n:,}",
                spread(self.timings.wall(n)),
                spread(self.timings.cpu(n)),
                traced,
                model.n_iter_,
                model.certificate_.relative_gap,
            ]
            for (n, model), traced in zip(self.models.items(), self.traced(), strict=True)
        ]
        whole, by_trace = self.slopes()
        cells.append(["slope of log s by log n", whole, None, by_trace, None, None])
        return Table(
            f"Ours with a free intercept to {TARGET:.0e} on n rows × {COLUMNS}, float64",
            ("rows", "fit s", "fit CPU s", "by trace s", "iterations", "certified gap"),
            cells,
        )

    def sentence(self) -> str:
        """Say how the time grows."""
        whole, by_trace = self.slopes()
        return f"growth: seconds ∝ n^{whole:.2f} for the whole fit, n^{by_trace:.2f} by the trace"


def measure(options: Options) -> Growth:
    """Time fits to the first n rows of one set, all sizes by turns."""
    sizes = QUICK_ROWS if options.quick else ROWS
    dataset = dense("growth", max(sizes), COLUMNS, "f8")
    models = {n: mm.LinearSVC(tol=TARGET, trace=True) for n in sizes}
    models[min(sizes)].fit(dataset.X[: min(sizes)], dataset.y[: min(sizes)])
    samplers = {
        n: timed(partial(model.fit, dataset.X[:n], dataset.y[:n])) for n, model in models.items()
    }
    with threadpool_limits(options.threads or 1):
        return Growth(interleave(samplers, options.repeats, warm_ups=0), models)


def _slope(rows: list[int], seconds: list[float]) -> float:
    known = [n for n, s in zip(rows, seconds, strict=True) if np.isfinite(s) and s > 0]
    if len(known) < 2:
        return np.nan
    reached = [s for s in seconds if np.isfinite(s) and s > 0]
    return float(np.polyfit(np.log(known), np.log(reached), 1)[0])


if __name__ == "__main__":
    print(json.dumps(fit_and_weigh(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
