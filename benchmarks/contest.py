"""Several ways to do the same, by turns: seconds, ratios, what came out, and targets.

This is the benchmark of everything that is not a sweep over tolerances (see ``race``): a grid
search, a path, an import. A contest has candidates, each a call; all are made once a round, and a
candidate's time is divided by that of the ``base`` in the same round.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.children import FailedError, SlowError
from benchmarks.measure import Sample, Sampler, Timings, geometric_mean, interleave, timed
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table

Results = Mapping[str, Any]  # what each candidate's last call returned


@dataclass(frozen=True)
class Contest:
    """One case.

    Each candidate is a call. It is timed here, unless it returns its own ``wall`` and ``cpu``
    seconds, as one that ran in a process of its own does.
    """

    name: str
    size: str
    calls: Mapping[str, Callable[[], Any]]
    base: str  # the candidate by whose time the others' are divided
    least: Mapping[str, float] = field(default_factory=dict)  # targets for a candidate's time,
    most: Mapping[str, float] = field(default_factory=dict)  # as a multiple of the base's
    facts: Callable[[str, Any], dict[str, Cell]] = lambda name, result: {}  # further cells
    checks: Callable[[Results], list[Check]] = lambda results: []  # whether all solved the same


@dataclass(frozen=True)
class Outcome:
    """A contest, its timings and the last results."""

    contest: Contest
    timings: Timings[str]
    results: Results

    def rows(self) -> list[dict[str, Cell]]:
        """Return a row for each candidate."""
        contest, timings = self.contest, self.timings
        return [
            {
                "case": contest.name,
                "size": contest.size,
                "candidate": name,
                "s": timings.seconds(name),
                "CPU s": timings.seconds(name, "cpu"),
                f"/ {contest.base}": timings.times(name, contest.base),
                f"/ {contest.base}, CPU": timings.times(name, contest.base, "cpu"),
                **contest.facts(name, self.results[name]),
            }
            for name in contest.calls
        ]

    def checks(self) -> list[Check]:
        """Return the contest's own checks and its targets."""
        found = self.contest.checks(self.results)
        for word, wishes in (("least", self.contest.least), ("most", self.contest.most)):
            for name, wished in wishes.items():
                wall = self.timings.times(name, self.contest.base).median
                holds = wall >= wished if word == "least" else wall <= wished
                cpu = self.timings.times(name, self.contest.base, "cpu").median
                claim = (
                    f"{self.contest.name}: {name} takes at {word} {wished:.3g} times as long as "
                    f"{self.contest.base}"
                )
                said = f"{wall:.2f} times, {cpu:.2f} in CPU time"
                found.append(Check("target", claim, bool(holds), said))
        return found


def hold(contest: Contest, repeats: int, warm_ups: int = 0) -> Outcome:
    """Make all calls by turns, so many rounds."""
    results: dict[str, Any] = {}

    def sampler(name: str) -> Sampler:
        def sample() -> Sample:
            def call() -> None:
                results[name] = contest.calls[name]()

            outside = timed(call)()
            said = results[name]
            if isinstance(said, Mapping) and "wall" in said:
                return Sample(said["wall"], said["cpu"])
            return outside

        return sample

    timings = interleave({name: sampler(name) for name in contest.calls}, repeats, warm_ups)
    return Outcome(contest, timings, results)


def run(
    name: str, contests: Iterable[Contest], options: Options, warm_ups: int = 0
) -> tuple[Report, list[Outcome]]:
    """Hold all contests; return a report and what it is made of."""
    report, outcomes = Report(name), []
    for contest in contests:
        print(f"{name}: {contest.name} ({contest.size})", flush=True)
        try:
            outcomes.append(hold(contest, options.repeats, warm_ups))
        except (SlowError, FailedError) as reason:
            claim = f"{contest.name}: all can be timed"
            report.checks.append(Check("same problem", claim, False, str(reason)))
            continue
        print(Table("", outcomes[-1].rows()), flush=True)  # a run that is ended has said so much
        report.checks += outcomes[-1].checks()
    if not outcomes:
        report.notes.append("no set could be had")
        return report, outcomes
    by_columns: dict[tuple[str, ...], list[dict[str, Cell]]] = {}
    for row in (row for outcome in outcomes for row in outcome.rows()):
        by_columns.setdefault(tuple(row), []).append(row)
    report.tables += [
        Table(f"{name}: a row for each candidate", rows) for rows in by_columns.values()
    ]
    report.tables.append(means(outcomes))
    return report, outcomes


def means(outcomes: Sequence[Outcome]) -> Table:
    """Return the geometric means over contests of each candidate's time divided by the base's."""
    names = dict.fromkeys(
        (name, outcome.contest.base)
        for outcome in outcomes
        for name in outcome.contest.calls
        if name != outcome.contest.base
    )
    rows: list[dict[str, Cell]] = []
    for name, base in names:
        there = [o for o in outcomes if name in o.contest.calls and o.contest.base == base]
        wall = [o.timings.times(name, base).median for o in there]
        cpu = [o.timings.times(name, base, "cpu").median for o in there]
        rows.append(
            {
                "candidate": f"{name} / {base}",
                "cases": len(there),
                "geometric mean": geometric_mean(wall),
                "in CPU time": geometric_mean(cpu),
                "least": min(wall),
                "least in CPU time": min(cpu),
            }
        )
    return Table("Geometric means over the cases", rows)
