"""One data set and one objective: how long ours and the others take to come near the optimum."""

import pickle
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.datasets import Dataset
from benchmarks.measure import Sampler, Series, Timings, interleave, ratio, spread, timed
from benchmarks.objective import LinearObjective
from benchmarks.options import Options
from benchmarks.pictures import Curve
from benchmarks.report import Cell, Check
from benchmarks.solvers.linear import CANDIDATES, Linear, Ours, warm_up
from benchmarks.solvers.linear_sweep import Point, Sweep, sweep

TARGETS = (1e-3, 1e-4, 1e-6)
REFERENCE = 1e-9  # the gap of the answer that all are compared with
GOOD_REFERENCE = 1e-7  # a reference beyond this cannot judge the tightest target
FACTOR, LEAST, MOST = 10.0, 10.0, 120.0  # a peer's budget: times ours, and seconds
ROUNDS = 240.0  # seconds for all rounds: where fits are long there are fewer of them

CERTIFY = "certify"
Key = tuple[str, float]  # who, and how hard it tried


@dataclass(frozen=True)
class Own:
    """One of our fits: why it stopped, the gap computed anew, and its first time."""

    status: str
    gap: float
    wall: float
    solver: str
    iterations: int


@dataclass(frozen=True)
class Race:
    """What was found on one data set for one objective."""

    dataset: Dataset
    objective: LinearObjective
    bound: float  # on the optimum, from below
    reference_gap: float
    trace: list[tuple[float, float]]
    own: dict[float, Own]
    sweeps: dict[str, Sweep]
    skipped: dict[str, str]
    timings: Timings[Key]

    @property
    def name(self) -> str:
        """The data set, and the intercept where it is not what the others have."""
        free = self.objective.intercept == "free"
        return f"{self.dataset.name}, free intercept" if free else self.dataset.name

    def ours(self, target: float, clock: str = "wall") -> Series | None:
        """Return the seconds of our fits that got there, one a round; None: they did not."""
        if not self.own[target].gap <= target:
            return None
        return self._series((Ours.name, target), clock)

    def theirs(self, peer: str, target: float, clock: str = "wall") -> Series | None:
        """Return the seconds of the loosest fit of a peer that got there; None: none did."""
        point = self.sweeps[peer].reached(target)
        return None if point is None else self._series((peer, point.setting), clock)

    def certifying(self, target: float) -> Series:
        """Return the seconds that checking our answer took."""
        return self._series((CERTIFY, target), "wall")

    def seconds(self, peer: str, target: float) -> Cell:
        """Return a peer's seconds, or how many were not enough."""
        found = self.theirs(peer, target)
        return spread(found) if found is not None else self._missed(peer, 1.0)

    def ratio(self, peer: str, target: float, clock: str = "wall") -> Cell:
        """Return a peer's time divided by ours, or how many times ours were not enough."""
        ours, theirs = self.ours(target, clock), self.theirs(peer, target, clock)
        if ours is None:
            return "ours did not get there"
        if theirs is not None:
            return spread(ratio(theirs, ours))
        # The budget is one of wall time: it says nothing about the other clock.
        return self._missed(peer, spread(ours).median) if clock == "wall" else None

    def by_trace(self, target: float) -> float | None:
        """Return the solver's seconds until its own gap was so small, in one fit to the end."""
        return next((seconds for seconds, gap in self.trace if gap <= target), None)

    def curves(self) -> list[Curve]:
        """Return gap against seconds: our trace, and a point for each fit of the others."""
        shown = [(s, gap) for s, gap in self.trace if np.isfinite(gap) and gap > 0]
        curves = [Curve(Ours.name, [s for s, _ in shown], [gap for _, gap in shown])]
        for peer, found in self.sweeps.items():
            points = [p for p in found.points if found.above(p) > 0]
            walls, above = [p.wall for p in points], [found.above(p) for p in points]
            curves.append(Curve(peer, walls, above))
        return [curve for curve in curves if len(curve.seconds)]

    def checks(self) -> list[Check]:
        """Check that the reference is good, and that nobody went below the proved bound."""
        good = self.reference_gap <= GOOD_REFERENCE
        claim = f"{self.name}: the reference is certified to {GOOD_REFERENCE:.0e}"
        found = f"relative gap {self.reference_gap:.1e}"
        return [
            Check("same problem", claim, True if good else None, found),
            *(self._check(peer) for peer in self.sweeps),
        ]

    def _check(self, peer: str) -> Check:
        best = self.sweeps[peer].best
        claim = f"{self.name}: {peer} minimises the same objective"
        if best is None:
            return Check("same problem", claim, None, "no fit ended within the budget")
        holds = None if best > 1e-2 else bool(best > -1e-9)
        return Check("same problem", claim, holds, f"at best {best:.1e} above the proved bound")

    def _missed(self, peer: str, unit: float) -> str:
        found = self.sweeps[peer]
        if found.cut:
            return f"≥ {found.budget / unit:.3g}"
        return f"never (at best {found.best:.1e})"

    def _series(self, key: Key, clock: str) -> Series:
        return self.timings.wall(key) if clock == "wall" else self.timings.cpu(key)


def race(dataset: Dataset, objective: LinearObjective, options: Options) -> Race:
    """Let all who can take part fit the same rows to the same targets."""
    most = 20.0 if options.quick else MOST
    us = Ours(max_time=most)
    warm_up(us, dataset, objective)
    models = {target: _fit_of_ours(us, dataset, objective, target) for target in TARGETS}
    own = {target: found for target, (found, _) in models.items()}
    tracing = Ours(max_time=5 * most, trace=True)
    reference = tracing.fit(dataset.X, dataset.y, objective, REFERENCE)
    certificate: Any = mm.certify(reference, dataset.X, dataset.y)
    slowest = max(found.wall for found in own.values())
    budget = 2.0 if options.quick else float(np.clip(FACTOR * slowest, LEAST, MOST))
    print(f"  ours took up to {slowest:.3g} s, others may take {budget:.3g} s a fit", flush=True)
    sweeps, skipped = _sweeps(dataset, objective, certificate.dual, budget, options)
    samplers: dict[Key, Sampler] = {}
    for target, (_, model) in models.items():
        fit = partial(us.fit, dataset.X, dataset.y, objective, target)
        samplers[Ours.name, target] = timed(fit)
        samplers[CERTIFY, target] = timed(partial(mm.certify, model, dataset.X, dataset.y))
    samplers |= _fits_of_others(dataset, objective, sweeps)
    one_round = sum(found.wall for found in own.values()) + sum(
        point.wall for found in sweeps.values() for point in found.points if _counts(found, point)
    )
    rounds = int(np.clip(ROUNDS / one_round, 1, options.repeats))
    timings = interleave(samplers, rounds, warm_ups=0)  # all were warmed up, each on few rows
    gap, trace = certificate.relative_gap, list(reference.trace_)
    return Race(dataset, objective, certificate.dual, gap, trace, own, sweeps, skipped, timings)


def _fit_of_ours(
    us: Linear, dataset: Dataset, objective: LinearObjective, target: float
) -> tuple[Own, Any]:
    began = time.perf_counter()
    model = us.fit(dataset.X, dataset.y, objective, target)
    wall = time.perf_counter() - began
    found: Any = mm.certify(model, dataset.X, dataset.y)
    return Own(model.status_.name, found.relative_gap, wall, model.solver_, model.n_iter_), model


def _sweeps(
    dataset: Dataset, objective: LinearObjective, bound: float, budget: float, options: Options
) -> tuple[dict[str, Sweep], dict[str, str]]:
    """Let the others try harder and harder, each in a process of its own; or say why not."""
    sweeps: dict[str, Sweep] = {}
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problem.pickle"
        with file.open("wb") as stored:
            pickle.dump((dataset, objective), stored, protocol=5)
        for name, candidate in CANDIDATES.items():
            if name == Ours.name:
                continue
            if refusal := candidate.refusal(dataset, objective):
                skipped[name] = refusal
                continue
            try:
                found = sweep(file, name, bound, min(TARGETS), budget, options.threads or 1)
            except RuntimeError as error:
                skipped[name] = f"its process failed ({str(error).strip().splitlines()[-1]})"
                print(f"  {name}: {skipped[name]}", flush=True)
                continue
            sweeps[name] = found
            best = "no fit ended" if found.best is None else f"at best {found.best:.1e}"
            print(f"  {name}: {len(found.points)} fits, {best}", flush=True)
    return sweeps, skipped


def _counts(found: Sweep, point: Point) -> bool:
    """Return whether a fit is the first to reach a target."""
    return any(found.reached(target) == point for target in TARGETS)


def _fits_of_others(
    dataset: Dataset, objective: LinearObjective, sweeps: dict[str, Sweep]
) -> dict[Key, Sampler]:
    """Return those fits of the others that reach a target first, to be timed by turns with ours."""
    samplers: dict[Key, Sampler] = {}
    for name, found in sweeps.items():
        candidate = CANDIDATES[name]
        first = [point for point in found.points if _counts(found, point)]
        if first:
            warm_up(candidate, dataset, objective)
            X = candidate.rows(dataset)
            for point in first:
                fit = partial(candidate.fit, X, dataset.y, objective, point.setting)
                samplers[name, point.setting] = timed(fit)
    return samplers
