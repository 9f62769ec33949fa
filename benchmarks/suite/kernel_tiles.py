"""Gaussian Gram blocks in float32 against the bare matrix product, by width and threads."""

import os
import time
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import pictures
from benchmarks.measure import Sample, Sampler, Series, Timings, interleave, ratio, spread, timed
from benchmarks.objective import largest_difference
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table
from benchmarks.solvers import gram_blocks
from benchmarks.solvers.gram_blocks import Block

WIDTHS = (16, 64, 256, 784)
TARGETS = {64: 0.5, 256: 0.7, 784: 0.7}
# float32 rounding of ‖x‖² + ‖z‖² − 2x·z times γ = 1/d, with room for the order of summation.
TOLERANCE = 2e-5
# OpenBLAS's threads spin on for up to a tenth of a second after a product; whoever comes next must
# not pay for that (at 0.06 s it still showed, at 0.15 s no longer).
SETTLING = 0.15

CANDIDATES = {
    "GEMM": gram_blocks.gemm,
    "maxmargin": gram_blocks.ours,
    "maxmargin, binding too": gram_blocks.ours_unbound,
    "scikit-learn": gram_blocks.scikit_learn,
}


class Case(NamedTuple):
    """What was measured for one width and one number of threads."""

    width: int
    threads: int
    flops: float
    timings: Timings[tuple[str, int]]

    def wall(self, name: str) -> Series:
        """Return the seconds of a candidate at this number of threads."""
        return self.timings.wall((name, self.threads))

    def speed(self, name: str) -> Series:
        """Return GFlop/s, counting the multiplications and additions of the product only."""
        return self.flops / 1e9 / self.wall(name)

    def fraction(self, name: str) -> Series:
        """Return the speed as a fraction of the bare product's."""
        return ratio(self.wall("GEMM"), self.wall(name))

    @property
    def gemm_scales(self) -> bool:
        """Whether more threads took a fifth off the product's time; on busy cores they do not."""
        fewer = [t for name, t in self.timings.samples if name == "GEMM" and t < self.threads]
        own = spread(self.wall("GEMM")).median
        return all(own < 0.8 * spread(self.timings.wall(("GEMM", t))).median for t in fewer)


def run(options: Options) -> Report:
    """Measure everything asked for."""
    report = Report("kernel-tiles")
    chosen = options.chosen(f"d={width}" for width in WIDTHS)
    m, n = (1000, 2000) if options.quick else (4000, 8000)
    counts = _thread_counts(options)
    cases: list[Case] = []
    for width in (width for width in WIDTHS if f"d={width}" in chosen):
        block = gram_blocks.random_block(m, n, width)
        report.checks.append(_check_values(block))
        print(f"kernel-tiles: {m}×{n}, d={width}", flush=True)
        samplers = {
            (name, threads): _limited(timed(fill(block)), threads)
            for threads in counts
            for name, fill in CANDIDATES.items()
        }
        timings = interleave(samplers, options.repeats)
        cases += [Case(width, threads, 2.0 * m * n * width, timings) for threads in counts]
    report.tables.append(_table(cases, f"{m}×{n} Gaussian Gram block, float32"))
    report.checks += [_target(case) for case in cases if case.width in TARGETS]
    report.draw = lambda: _picture(cases)
    return report


def _thread_counts(options: Options) -> list[int]:
    cores = os.cpu_count() or 1
    return [options.threads] if options.threads else [t for t in (1, 2) if t <= cores]


def _limited(sample: Sampler, threads: int) -> Sampler:
    def limited() -> Sample:
        time.sleep(SETTLING)
        with threadpool_limits(threads):
            return sample()

    return limited


def _check_values(block: Block) -> Check:
    rows = 200
    reference = gram_blocks.exact(block, rows)
    errors = {
        name: largest_difference(np.asarray(CANDIDATES[name](block)())[:rows, :rows], reference)
        for name in ("maxmargin", "scikit-learn")
    }
    found = ", ".join(f"{name} off by {error:.1e}" for name, error in errors.items())
    claim = f"d={block.A.shape[1]}: values right to {TOLERANCE:.0e}"
    return Check("same problem", claim, max(errors.values()) <= TOLERANCE, found)


def _table(cases: list[Case], title: str) -> Table:
    rows: list[list[Cell]] = [
        [
            case.width,
            case.threads,
            spread(case.speed("GEMM")),
            spread(case.speed("maxmargin")),
            *(spread(case.fraction(name)) for name in CANDIDATES if name != "GEMM"),
        ]
        for case in cases
    ]
    compared = [f"{name} / GEMM" for name in CANDIDATES if name != "GEMM"]
    return Table(title, ("d", "threads", "GEMM GFlop/s", "maxmargin GFlop/s", *compared), rows)


def _target(case: Case) -> Check:
    wished = TARGETS[case.width]
    reached = spread(case.fraction("maxmargin")).median
    claim = f"d={case.width}, {case.threads} thread(s): at least {wished:.0%} of GEMM's speed"
    if not case.gemm_scales:
        why = f"{reached:.0%}, but GEMM itself gained little from its threads: busy cores"
        return Check("target", claim, None, why)
    return Check("target", claim, bool(reached >= wished), f"{reached:.0%}")


def _picture(cases: list[Case]) -> object:
    widths = sorted({case.width for case in cases})
    panels = {
        f"{threads} thread{'s' if threads > 1 else ''}": {
            name: [spread(case.speed(name)) for case in cases if case.threads == threads]
            for name in ("GEMM", "maxmargin", "scikit-learn")
        }
        for threads in sorted({case.threads for case in cases})
    }
    return pictures.bars(panels, [f"d = {width}" for width in widths], "GFlop/s of the product")
