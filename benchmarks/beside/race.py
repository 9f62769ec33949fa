"""One set and one objective: how near to the optimum everybody comes, by seconds.

Every tool tries harder and harder (its tolerance is swept from loose to tight, or its epochs
doubled), in a process of its own. What each fit reached is computed by the benchmark: P/D* − 1,
where D* is the largest dual value that anybody proved, a lower bound of the optimum. That is a
curve of suboptimality against seconds for each tool.

Two comparisons are read off the curves. To a target: the loosest fit of each tool that reaches it.
With the peers as they come: their fits at their default tolerance, and the loosest of ours whose
objective is no worse than the best of theirs. Objectives are recomputed by the benchmark, and
nobody's tolerance is chosen by hand. The fits that count are then timed again in turns, and ratios
are taken within a round.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks import contest
from benchmarks.beside.fitting import Crew
from benchmarks.beside.objective import Objective, suboptimality
from benchmarks.beside.pictures import Curve
from benchmarks.beside.solvers import OURS, PEERS, TOOLS
from benchmarks.children import Answer, FailedError, SlowError
from benchmarks.contest import Contest, Outcome
from benchmarks.datasets import Dataset
from benchmarks.measure import Clock, Sample, Sampler, Spread, Timings, geometric_mean, interleave
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Table

FACTOR, LEAST, MOST = 10.0, 10.0, 120.0  # a peer's budget: times our slowest fit, and seconds
QUICK_MOST = 5.0
AROUND = 2.0  # seconds that are not the fit's: who is killed did work for the whole budget
PATIENCE = 3.0  # times the budget: who was within it once is not killed for being slower now
ROUNDS = 240.0  # seconds for all rounds of a race: where fits are long there are fewer of them
ROUNDING = 1e-9  # relative: what a sum over many rows may be off by
LIMIT_LINE = "limit line"
Key = tuple[str, float]  # a tool, and how hard it tried


class Case(NamedTuple):
    """What is raced: rows as they are learnt from, and what all minimise."""

    name: str
    dataset: Dataset
    objective: Objective
    targets: tuple[float, ...] = (1e-3,)  # relative suboptimalities to be reached
    notes: str = ""


class Point(NamedTuple):
    """One fit: how hard it tried, its seconds, and what it reached."""

    setting: float
    wall: float
    cpu: float
    primal: float
    dual: float | None = None
    gap: float | None = None  # certified, relative
    status: str = ""


@dataclass
class Race:
    """What was found in one case: the fits of each tool from loose to tight, and their timings."""

    case: Case
    threads: int
    budget: float = MOST
    sweeps: dict[str, list[Point]] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)  # whose next fit took too long
    skipped: dict[str, str] = field(default_factory=dict)
    timings: Timings[Key] = field(default_factory=lambda: Timings({}))
    predicted: Outcome | None = None
    anatomy: Answer | None = None

    @property
    def bound(self) -> float:
        """The largest dual value that was proved."""
        points = [point for points in self.sweeps.values() for point in points]
        return max((p.dual for p in points if p.dual is not None), default=-np.inf)

    def above(self, point: Point) -> float:
        """Return the relative suboptimality of a fit."""
        return suboptimality(point.primal, self.bound)

    def best(self, tool: str) -> float:
        """Return the nearest that any fit of a tool came to the optimum."""
        return min(map(self.above, self.sweeps[tool]), default=np.inf)

    def first(self, tool: str, target: float) -> Point | None:
        """Return a tool's loosest fit that reaches a target."""
        return next((p for p in self.sweeps[tool] if self.above(p) <= target), None)

    @property
    def peers(self) -> list[str]:
        """The others who took part."""
        return [name for name in PEERS if name in self.sweeps]

    def as_it_comes(self, peer: str) -> Point | None:
        """Return a peer's fit at its default tolerance."""
        return next((p for p in self.sweeps[peer] if p.setting == TOOLS[peer].default), None)

    def match(self) -> Point | None:
        """Return our loosest fit whose objective is no worse than that of any peer as it comes."""
        theirs = [p.primal for peer in self.peers if (p := self.as_it_comes(peer)) is not None]
        if not theirs:
            return None
        most = min(theirs) + ROUNDING * abs(min(theirs))
        return next((p for p in self.sweeps[OURS.name] if p.primal <= most), None)

    def pair(self, peer: str) -> tuple[Point, Point] | None:
        """Return a peer's fit as it comes, and ours that is compared with it."""
        theirs, ours = self.as_it_comes(peer), self.match()
        return None if theirs is None or ours is None else (theirs, ours)

    def bounded(self) -> bool:
        """Return whether our last fit gives a bound by which the targets can be judged."""
        points = self.sweeps[OURS.name]
        tightest = min(self.case.targets, default=np.inf)
        return bool(points) and points[-1].setting <= 0.1 * tightest

    def matched(self) -> bool:
        """Return whether one of our fits is no worse than those of all peers as they come."""
        return self.match() is not None or not any(map(self.as_it_comes, self.peers))

    def near(self, tool: str) -> bool:
        """Return whether a tool has reached the tightest target; without any, made its one fit."""
        if not self.case.targets:
            return bool(self.sweeps[tool])
        return self.best(tool) <= min(self.case.targets)

    def counting(self) -> dict[Key, Point]:
        """Return the fits that a comparison needs."""
        found: dict[Key, Point] = {}
        for peer in self.peers:
            if pair := self.pair(peer):
                found[peer, pair[0].setting], found[OURS.name, pair[1].setting] = pair
        for tool in self.sweeps:
            for target in self.case.targets:
                if point := self.first(tool, target):
                    found[tool, point.setting] = point
        return found

    def times(self, peer: str, pair: tuple[Point, Point], clock: Clock = "wall") -> Spread:
        """Return the time of a peer's fit divided by that of one of ours."""
        theirs, ours = pair
        return self.timings.times((peer, theirs.setting), (OURS.name, ours.setting), clock)

    def to_target(self, peer: str, target: float) -> Cell:
        """Return a peer's time to a target divided by ours, or why there is no such figure."""
        ours = self.first(OURS.name, target)
        if peer not in self.sweeps:
            return None
        if ours is None:
            return "ours did not get there"
        if theirs := self.first(peer, target):
            return self.times(peer, (theirs, ours))
        if peer in self.cut:
            return f"≥ {self.budget / ours.wall:.3g}"
        return f"never (at best {self.best(peer):.1e})"

    def curves(self) -> list[Curve]:
        """Return suboptimality against seconds for each tool."""
        shown = {
            tool: [(p.wall, self.above(p)) for p in points if 0 < self.above(p) < np.inf]
            for tool, points in self.sweeps.items()
        }
        return [Curve(tool, *zip(*points, strict=True)) for tool, points in shown.items() if points]

    def checks(self) -> list[Check]:
        """Check that the bound is good enough, and that nobody went below it."""
        made = []
        for tightest in sorted(self.case.targets)[:1]:
            best = self.best(OURS.name)
            claim = f"{self.case.name}: the bound is good enough for a target of {tightest:.0e}"
            found = f"ours is at best {best:.1e} above it"
            made.append(
                Check("same problem", claim, True if best <= 0.1 * tightest else None, found)
            )
        for peer in self.peers:
            nearest = self.best(peer)
            claim = f"{self.case.name}: {peer} minimises the same objective"
            holds = None if nearest > 1e-2 else bool(nearest >= -ROUNDING)
            found = f"at best {nearest:.1e} above the proved bound"
            made.append(Check("same problem", claim, holds, found))
        return made


def race(case: Case, options: Options) -> Race:
    """Let all who can take part fit the same rows, harder and harder; then time what counts."""
    if options.defaults:
        case = case._replace(targets=())
    found = Race(case, options.threads or 1)
    most = options.limit or (QUICK_MOST if options.quick else MOST)
    with Crew(case.dataset, case.objective, found.threads) as crew:
        _sweep(crew, OURS.name, found, most, found.bounded)
        if not found.sweeps[OURS.name]:
            raise FailedError(f"none of our fits ended within {most:g} s")
        slowest = max(point.wall for point in found.sweeps[OURS.name])
        found.budget = min(max(FACTOR * slowest, LEAST), most)
        for peer in PEERS:
            if refusal := TOOLS[peer].refusal(case.dataset, case.objective):
                found.skipped[peer] = refusal
            else:
                _sweep(crew, peer, found, found.budget, partial(found.near, peer))
        _sweep(crew, OURS.name, found, most, found.matched)
        counting = found.counting()
        one_round = sum(point.wall for point in counting.values())
        rounds = int(np.clip(ROUNDS / max(one_round, 1e-3), 1, options.repeats))
        samplers = {key: _again(crew, key, found.budget) for key in counting}
        found.timings = interleave(samplers, rounds, warm_ups=0)
        if not case.objective.linear:
            found.predicted = contest.hold(_predictions(crew, found), rounds)
            if ours := found.match():
                fit, line = found.timings, found.predicted.timings
                times = fit.seconds((OURS.name, ours.setting)).median
                found.anatomy = crew.ask(OURS.name, "anatomy", setting=ours.setting) | {
                    "setting": ours.setting,
                    "line": times / line.seconds(LIMIT_LINE).median,
                }
    return found


def _sweep(crew: Crew, name: str, found: Race, budget: float, done: Callable[[], bool]) -> None:
    """Let a tool try harder until that is done, or one fit takes longer than allowed."""
    points, tool = found.sweeps.setdefault(name, []), TOOLS[name]
    known = {point.setting for point in points}
    settings = tool.settings
    if not found.case.targets and name != OURS.name:
        settings = () if tool.default is None else (tool.default,)
    for setting in (setting for setting in settings if setting not in known):
        if name in found.cut or done():
            break
        try:
            fit = crew.ask(name, "fit", budget + AROUND, setting=setting)
            proof = crew.ask(name, "judge")
        except SlowError:
            found.cut.add(name)
        except FailedError as reason:  # overflow, say: the next setting may go better
            found.skipped[f"{name}, {tool.knob}={setting:g}"] = str(reason)
        else:
            reached = proof["primal"], proof.get("dual"), proof.get("gap"), fit.get("status", "")
            points.append(Point(setting, fit["wall"], fit["cpu"], *reached))
    if len(points) > len(known):
        print(f"  {name}: {len(points)} fits, at best {found.best(name):.1e} above D*", flush=True)


def _again(crew: Crew, key: Key, budget: float) -> Sampler:
    def sample() -> Sample:
        fit = crew.ask(key[0], "fit", PATIENCE * budget + AROUND, setting=key[1])
        return Sample(fit["wall"], fit["cpu"])

    return sample


def _predictions(crew: Crew, found: Race) -> Contest:
    """Return a contest of predictions by everybody's last fit, and of the limit line."""
    calls = {
        tool: partial(crew.ask, tool, "predict")
        for tool, points in found.sweeps.items()
        if points and tool not in found.cut
    }
    calls[LIMIT_LINE] = partial(crew.ask, OURS.name, "limit_line")
    case = found.case
    return Contest(
        case.name, case.dataset.shape, calls, OURS.name,
        facts=lambda _, said: {"rows": said.get("rows"), "score": said.get("score")},
    )  # fmt: skip


# ------------------------------------------------------------ tables of several races


def tables(races: Sequence[Race]) -> list[Table]:
    """Return all tables that have rows."""
    title = (
        "Predictions, each by the last fit; the limit line is the kernel between all rows and the "
        "support vectors, computed once in float32"
    )
    rows = [row for found in races if found.predicted for row in found.predicted.rows()]
    found = [
        to_targets(races), as_they_come(races), means(races), anatomies(races), Table(title, rows),
        fits(races),
    ]  # fmt: skip
    return [table for table in found if table.rows]


def present(races: Sequence[Race]) -> list[str]:
    """Return the peers who took part in any race."""
    return [peer for peer in PEERS if any(peer in found.sweeps for found in races)]


def to_targets(races: Sequence[Race]) -> Table:
    """Return seconds to each target: ours, and the others' divided by it."""
    rows: list[dict[str, Cell]] = []
    for found, target in [(race, target) for race in races for target in race.case.targets]:
        ours = found.first(OURS.name, target)
        key = (OURS.name, np.nan if ours is None else ours.setting)
        rows.append(
            {
                "data": found.case.name,
                "target": f"{target:.0e}",
                "maxmargin s": found.timings.seconds(key) if ours else None,
                "CPU s": found.timings.seconds(key, "cpu") if ours else None,
                **{f"{p} / maxmargin": found.to_target(p, target) for p in present(races)},
            }
        )
    title = (
        "Seconds to a relative suboptimality, and the others' divided by ours (≥: not within "
        f"{FACTOR:g} times our slowest fit, at least {LEAST:g} s, at most {MOST:g} s; –: takes no "
        "part)"
    )
    return Table(title, rows)


def _pairs(races: Sequence[Race]) -> Iterator[tuple[Race, str, tuple[Point, Point]]]:
    for found in races:
        for peer in found.peers:
            if pair := found.pair(peer):
                yield found, peer, pair


def as_they_come(races: Sequence[Race]) -> Table:
    """Return each peer at its default tolerance, and our loosest fit no worse than any of them."""
    rows: list[dict[str, Cell]] = [
        {
            "data": found.case.name,
            "peer": peer,
            "its setting": f"{TOOLS[peer].knob} {pair[0].setting:g}",
            "our tol": f"{pair[1].setting:.1e}",
            "peer above D*": f"{found.above(pair[0]):.1e}",
            "ours above D*": f"{found.above(pair[1]):.1e}",
            "maxmargin s": found.timings.seconds((OURS.name, pair[1].setting)),
            "peer / maxmargin": found.times(peer, pair),
            "in CPU time": found.times(peer, pair, "cpu"),
        }
        for found, peer, pair in _pairs(races)
    ]
    title = (
        "The others at their default tolerance, and our loosest fit whose objective is no worse "
        "than any of theirs"
    )
    return Table(title, rows)


def means(races: Sequence[Race]) -> Table:
    """Return geometric means over the sets."""
    ratios: dict[str, list[float]] = {}
    for found, peer, pair in _pairs(races):
        ratios.setdefault(peer, []).append(found.times(peer, pair).median)
    rows: list[dict[str, Cell]] = [
        {"peer": p, "sets": len(r), "geometric mean": geometric_mean(r), "least": min(r)}
        for p, r in ratios.items()
    ]
    return Table("The others' seconds, as they come, divided by ours, over the sets", rows)


def anatomies(races: Sequence[Race]) -> Table:
    """Return what our fits are made of, that the next reader may see what is left."""
    rows: list[dict[str, Cell]] = [
        {
            "data": found.case.name,
            "our tol": f"{found.anatomy['setting']:.1e}",
            "support vectors": found.anatomy["support"],
            "fit / limit line": found.anatomy["line"],
            "kernel values / (rows × support vectors)": found.anatomy["values"],
            "certificate / fit": found.anatomy["certificate"],
        }
        for found in races
        if found.anatomy
    ]
    title = (
        "Our fit that is not worse than any peer's: its seconds by those of the limit line, the "
        "kernel values that it computes, and the part that the certificate takes"
    )
    return Table(title, rows)


def fits(races: Sequence[Race]) -> Table:
    """Return every fit of every sweep: the curves, as figures."""
    rows: list[dict[str, Cell]] = [
        {
            "data": found.case.name,
            "size": found.case.dataset.shape,
            "objective": str(found.case.objective),
            "tool": tool,
            "setting": f"{TOOLS[tool].knob} {point.setting:.2g}",
            "s": point.wall,
            "CPU s": point.cpu,
            "above D*": found.above(point),
            "certified gap": point.gap,
            "status": point.status or "–",
        }
        for found in races
        for tool, points in found.sweeps.items()
        for point in points
    ]
    return Table("Every fit: one each, timed once", rows)


def notes(races: Sequence[Race]) -> list[str]:
    """Say who took part, who did not and why, and how the sets were prepared."""
    absent: dict[str, list[str]] = {}
    for found in races:
        for tool, why in found.skipped.items():
            absent.setdefault(f"{tool} took no part ({why})", []).append(found.case.name)
    described = ", ".join(TOOLS[name].described for name in (OURS.name, *present(races)))
    prepared = [f"{found.case.name}: {found.case.notes}" for found in races if found.case.notes]
    return [
        f"tools: {described}",
        *(f"{why}: {', '.join(where)}" for why, where in absent.items()),
        *prepared,
    ]
