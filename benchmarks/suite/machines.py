"""The benchmark of one kind of machine: races with the others, growth, threads, memory."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks import contest, growth, pictures, race
from benchmarks.children import FailedError, SlowError
from benchmarks.contest import Contest
from benchmarks.datasets import UnavailableError
from benchmarks.measure import exponent
from benchmarks.options import Options
from benchmarks.pictures import Curve, Panel
from benchmarks.race import Case, Race
from benchmarks.report import Check, Report

GROWTH, THREADS, MEMORY = "growth", "threads", "memory"


class Machines(NamedTuple):
    """What a kind of machine is measured on."""

    name: str
    names: tuple[str, ...]  # of the sets that are raced on
    cases: Callable[[str, Options], list[Case]]  # of a set, one for each objective
    grown: Callable[[int, Options], Case]  # of so many rows
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    studied: str  # the set of threads and memory
    caps: tuple[int, ...] = ()  # bytes for kernel values


def run(machines: Machines, options: Options) -> Report:
    """Measure everything asked for."""
    extras = [GROWTH, THREADS, *([MEMORY] if machines.caps else [])]
    chosen = options.chosen([*machines.names, *extras])
    many = options.threads is not None and options.threads > 1
    report = Report(f"{machines.name}-{options.threads}-threads" if many else machines.name)
    races = list(_races(machines, chosen, report, options))
    report.tables += race.tables(races)
    report.checks += [check for found in races for check in found.checks()]
    report.notes += race.notes(races) if races else []
    label = "above the proved bound, relative"
    panels = [Panel(found.case.name, found.curves(), label) for found in races]
    try:
        if GROWTH in chosen:
            panels += _growth(machines, report, options)
        if THREADS in chosen:
            case = machines.cases(machines.studied, options)[0]
            _add(report, f"{machines.name}, {THREADS}", growth.by_threads(case), options)
        if MEMORY in chosen:
            caps = machines.caps[:2] if options.quick else machines.caps
            case = machines.cases(machines.studied, options)[0]
            contests = growth.by_memory(case, caps, options)
            _add(report, f"{machines.name}, {MEMORY}", contests, options)
    except (UnavailableError, SlowError, FailedError) as reason:
        report.notes.append(f"what was to follow was given up: {reason}")
    if panels:
        report.draw = lambda: pictures.courses(panels)
    return report


def _races(
    machines: Machines, chosen: list[str], report: Report, options: Options
) -> Iterator[Race]:
    """Yield the races that can be had, and say why the others cannot."""
    for name in (name for name in machines.names if name in chosen):
        try:
            cases = machines.cases(name, options)
        except UnavailableError as reason:
            print(f"skipped {name}: {reason}")
            continue
        for case in cases:
            size = case.dataset.shape
            print(f"{machines.name}: {case.name} ({size}), {case.objective}", flush=True)
            try:
                found = race.race(case, options)
            except (SlowError, FailedError) as reason:
                claim = f"{case.name}: ours fits it"
                report.checks.append(Check("target", claim, False, str(reason)))
                continue
            print(race.to_targets([found]), flush=True)  # a run that is ended has said so much
            yield found


def _growth(machines: Machines, report: Report, options: Options) -> list[Panel]:
    print(f"{machines.name}: {GROWTH}", flush=True)
    sizes = machines.quick_sizes if options.quick else machines.sizes
    found = growth.growth(lambda n: machines.grown(n, options), sizes, options)
    report.checks.append(found.check())
    if not found.rows:
        return []
    report.tables.append(found.table())
    title = f"seconds ∝ n^{exponent(found.rows, found.seconds):.2f}"
    return [Panel(title, [Curve("maxmargin", found.rows, found.seconds)], "seconds", xlabel="rows")]


def _add(report: Report, name: str, contests: Iterator[Contest], options: Options) -> None:
    found, _ = contest.run(name, contests, options, warm_ups=1)
    report.tables += found.tables
    report.checks += found.checks
