"""The benchmark of one kind of machine: a race with the other tools on each of several sets."""

from collections.abc import Callable, Iterator, Sequence

from benchmarks.beside import pictures, race
from benchmarks.beside.pictures import Panel
from benchmarks.beside.race import Case, Race
from benchmarks.children import FailedError, SlowError
from benchmarks.datasets import UnavailableError
from benchmarks.options import Options
from benchmarks.report import Check, Report

Cases = Callable[[str, Options], list[Case]]  # the cases of a set, one for each objective


def run(name: str, sets: Sequence[str], cases: Cases, options: Options) -> Report:
    """Race on all sets that are asked for and can be had."""
    many = options.threads is not None and options.threads > 1
    report = Report(f"{name}-{options.threads}-threads" if many else name)
    races = list(_races(name, options.chosen(sets), cases, report, options))
    report.tables += race.tables(races)
    report.checks += [check for found in races for check in found.checks()]
    report.notes += race.notes(races) if races else []
    label = "above the proved bound, relative"
    panels = [Panel(found.case.name, found.curves(), label) for found in races]
    if panels:
        report.draw = lambda: pictures.courses(panels)
    return report


def _races(
    name: str, sets: Sequence[str], cases: Cases, report: Report, options: Options
) -> Iterator[Race]:
    for each in sets:
        try:
            of_set = cases(each, options)
        except UnavailableError as reason:
            print(f"skipped {each}: {reason}")
            continue
        for case in of_set:
            print(f"{name}: {case.name} ({case.dataset.shape}), {case.objective}", flush=True)
            try:
                found = race.race(case, options)
            except (SlowError, FailedError) as reason:
                claim = f"{case.name}: ours fits it"
                report.checks.append(Check("target", claim, False, str(reason)))
                continue
            print(race.to_targets([found]), flush=True)  # An interrupted run has said this much.
            yield found
