"""Ours alone: how seconds and memory grow with the rows, what a cap on memory or a thread does."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from benchmarks.children import Answer, FailedError, SlowError
from benchmarks.contest import Contest
from benchmarks.fitting import Crew
from benchmarks.measure import Sample, Timings, exponent
from benchmarks.options import Options
from benchmarks.race import Case
from benchmarks.report import Cell, Check, Table
from benchmarks.solvers import OURS

GRACE = 120.0  # seconds beyond max_time before the process is killed
ROUNDS = 60.0  # seconds for all fits of one size: where fits are long there are fewer of them
LIMIT, QUICK_LIMIT = 1800.0, 20.0  # seconds for one fit
STEP = 2.0  # the most that half the memory may cost
OPTIMAL = "OPTIMAL"


@dataclass
class Growth:
    """Seconds, megabytes above the input and the last answer, by rows."""

    sizes: Sequence[int]  # asked for
    samples: dict[int, list[Sample]] = field(default_factory=dict)
    megabytes: dict[int, float] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    name: str = ""
    ended: str = ""  # why it went no further

    @property
    def rows(self) -> list[int]:
        """The sizes that were fitted."""
        return list(self.answers)

    @property
    def seconds(self) -> list[float]:
        """The median seconds of each size."""
        return [Timings(self.samples).seconds(n).median for n in self.rows]

    def table(self) -> Table:
        """Return seconds and memory by rows; how they grow, as powers of n, is the last row."""
        timings = Timings(self.samples)
        table: list[dict[str, Cell]] = [
            {
                "rows": f"{n:,}",
                "fit s": timings.seconds(n),
                "fit CPU s": timings.seconds(n, "cpu"),
                "iterations": answer["iterations"],
                "status": answer["status"],
                "certified gap": answer["gap"],
                "MB above the input": self.megabytes[n],
                "bytes a row": self.megabytes[n] * 2**20 / n,
            }
            for n, answer in self.answers.items()
        ]
        cpu = [timings.seconds(n, "cpu").median for n in self.rows]
        last: dict[str, Cell] = dict.fromkeys(table[0])
        last |= {"rows": "exponent of n", "status": "", "fit CPU s": exponent(self.rows, cpu)}
        last["fit s"] = exponent(self.rows, self.seconds)
        last["MB above the input"] = exponent(self.rows, list(self.megabytes.values()))
        return Table(f"Ours by rows: {self.name}", [*table, last])

    def check(self) -> Check:
        """Check that the largest size ended with a proof in time."""
        claim = f"{max(self.sizes):,} rows are certified within {LIMIT:g} s"
        done = max(self.sizes) in self.answers and not self.ended
        found = self.ended or f"{len(self.rows)} sizes were fitted"
        return Check("target", claim, done, found)


def growth(make: Callable[[int], Case], sizes: Sequence[int], options: Options) -> Growth:
    """Fit more and more rows, each number of them in a new process, until one is too slow."""
    found = Growth(sizes)
    for n in (n for n in sizes if options.rows is None or n <= options.rows):
        case = make(n)
        found.name = f"{case.name}, {case.objective}, {options.threads or 1} thread(s)"
        try:
            _fit_size(found, n, case, options)
        except (SlowError, FailedError) as reason:
            found.ended = f"{n:,} rows: {reason}"
            break
        print(f"  {n:,} rows: {found.seconds[-1]:.3g} s", flush=True)
        if found.answers[n]["status"] != OPTIMAL:
            found.ended = f"{n:,} rows: {found.answers[n]['status']}"
            break
    return found


def _fit_size(found: Growth, n: int, case: Case, options: Options) -> None:
    limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
    with Crew(case.dataset, case.objective, options.threads or 1) as crew:
        before = crew.ask(OURS.name, "peak")["megabytes"]
        setting = {"setting": OURS.default, "max_time": limit}
        taken: list[Sample] = []
        while not taken or (len(taken) < options.repeats and sum(s.wall for s in taken) < ROUNDS):
            answer = crew.ask(OURS.name, "fit", limit + GRACE, **setting)
            taken.append(Sample(answer["wall"], answer["cpu"]))
        found.megabytes[n] = crew.ask(OURS.name, "peak")["megabytes"] - before
        found.samples[n], found.answers[n] = taken, answer


def by_threads(case: Case) -> Iterator[Contest]:
    """Yield our fit with one thread and with all cores."""
    with ExitStack() as stack:
        calls = {}
        for threads in sorted({1, os.cpu_count() or 1}):
            crew = stack.enter_context(Crew(case.dataset, case.objective, threads))
            calls[f"{threads} thread(s)"] = partial(_fit, crew)
        yield Contest(case.name, case.dataset.shape, calls, base=list(calls)[-1])


def by_memory(case: Case, caps: Sequence[int], options: Options) -> Iterator[Contest]:
    """Yield our fit with each cap on kernel values beside the next larger one."""
    with Crew(case.dataset, case.objective, options.threads or 1) as crew:
        for cap, larger in pairwise(caps):
            calls = {f"{c / 2**20:g} MB": partial(_fit, crew, memory=c) for c in (cap, larger)}
            less, more = calls
            name = f"{case.name}, {less}"
            yield Contest(name, case.dataset.shape, calls, base=more, most={less: STEP})


def _fit(crew: Crew, **more: int) -> Any:
    return crew.ask(OURS.name, "fit", LIMIT, setting=OURS.default, **more)
