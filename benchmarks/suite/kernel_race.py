"""One case: fits and predictions of ours and the others by turns, each in processes of its own."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.measure import Sample, Sampler, Series, Spread, Timings, interleave, ratio, spread
from benchmarks.options import Options
from benchmarks.report import Cell, Check
from benchmarks.solvers.kernel import PEERS, TOOLS, Ours
from benchmarks.solvers.kernel_worker import (
    LOADING,
    Answer,
    FailedError,
    SlowError,
    Worker,
    store,
)
from benchmarks.suite.kernel_cases import Case

LIMIT, QUICK_LIMIT = 300.0, 20.0  # seconds for one fit
ROUNDS = 600.0  # seconds for all rounds of a case: where fits are long there are fewer of them
AROUND = 2.0  # seconds that are not the fit's: who is killed did work for the whole limit
PATIENCE = 3.0  # times the limit: who was within it once is not killed for being slower now
ROUNDING = 1e-7  # relative: what a sum over many rows may be off by

FIT, PREDICT, BARE = "fit", "predict", "bare"
Who = tuple[str, int]  # a tool, and its threads
Key = tuple[str, int, str]  # and what it does


class Ratio(NamedTuple):
    """A peer's time divided by ours; ``bounded``: at least so much, for it was killed."""

    values: Spread
    bounded: bool

    @property
    def cell(self) -> Cell:
        """The same for a table."""
        return f"≥ {self.values.median:.3g}" if self.bounded else self.values


@dataclass
class Race:
    """What was found in one case."""

    case: Case
    shape: str
    counts: Sequence[int]  # of threads
    limit: float
    timings: Timings[Key] = field(default_factory=lambda: Timings({}))
    answers: dict[Key, list[Answer]] = field(default_factory=dict)
    proofs: dict[Who, Answer] = field(default_factory=dict)
    slow: set[Key] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The set's name."""
        return self.case.name

    def who(self, tool: str, threads: int) -> Who:
        """Return who is compared where there are so many threads: some have one whatever is."""
        return tool, threads if TOOLS[tool].threaded else min(self.counts)

    def seconds(self, tool: str, threads: int, what: str = FIT, clock: str = "wall") -> Cell:
        """Return the seconds of a tool, or how many were not enough."""
        key = (*self.who(tool, threads), what)
        if key in self.slow:
            return f"≥ {self.limit:g}" if clock == "wall" else None
        return spread(self._series(key, clock)) if key in self.timings.samples else None

    def ratio(self, peer: str, threads: int, what: str = FIT, clock: str = "wall") -> Ratio | None:
        """Return a peer's time divided by ours; None where one of them has none."""
        ours, theirs = (Ours.name, threads, what), (*self.who(peer, threads), what)
        if ours not in self.timings.samples:
            return None
        if theirs in self.slow and clock == "wall":
            return Ratio(spread(self.limit / self._series(ours, clock)), True)
        if theirs not in self.timings.samples:
            return None
        return Ratio(spread(ratio(self._series(theirs, clock), self._series(ours, clock))), False)

    def better(self, threads: int, what: str = FIT) -> Ratio | None:
        """Return the ratio to the faster of the others."""
        found = [r for peer in PEERS if (r := self.ratio(peer, threads, what)) is not None]
        return min(found, key=lambda each: each.values.median, default=None)

    def above_bare(self, threads: int) -> Spread | None:
        """Return our fit's time as a multiple of the limit line."""
        fit, bare = (Ours.name, threads, FIT), (Ours.name, threads, BARE)
        if fit not in self.timings.samples or bare not in self.timings.samples:
            return None
        return spread(ratio(self._series(fit, "wall"), self._series(bare, "wall")))

    def certifying(self, threads: int) -> Spread | None:
        """Return the seconds of certificates inside our fits; None if none was seen there."""
        seconds = [said["certifying"] for said in self.answers.get((Ours.name, threads, FIT), [])]
        return spread(seconds) if any(seconds) else None

    def gap(self, tool: str, threads: int) -> float | None:
        """Return the certified relative gap of a tool's answer."""
        proof = self.proofs.get(self.who(tool, threads))
        return None if proof is None else float(proof["gap"])

    def checks(self) -> list[Check]:
        """Check that all solved the same problem, and that our gap is not the worse."""
        found = [self._same(who) for who in self.proofs if who[0] != Ours.name]
        for threads in self.counts:
            ours = self.gap(Ours.name, threads)
            theirs = {p: g for p in PEERS if (g := self.gap(p, threads)) is not None}
            if ours is not None and theirs:
                said = ", ".join(f"{peer} {gap:.1e}" for peer, gap in theirs.items())
                claim = f"{self.name}, {threads} thread(s): our certified gap is not worse"
                holds = ours <= min(theirs.values())
                found.append(Check("target", claim, holds, f"ours {ours:.1e}, {said}"))
        return found

    def _same(self, who: Who) -> Check:
        """Check that what a peer proved does not contradict what we proved."""
        claim = f"{self.name}: {who[0]} with {who[1]} thread(s) minimises the same objective"
        theirs, ours = self.proofs[who], self.proofs.get((Ours.name, self.counts[0]))
        if ours is None:
            return Check("same problem", claim, None, "ours has no certificate")
        room = ROUNDING * abs(ours["primal"])
        consistent = theirs["primal"] >= ours["dual"] - room
        consistent &= theirs["dual"] <= ours["primal"] + room
        found = f"primal {theirs['primal']:.8g}, ours {ours['primal']:.8g}"
        return Check("same problem", claim, bool(consistent), found)

    def _series(self, key: Key, clock: str) -> Series:
        return self.timings.wall(key) if clock == "wall" else self.timings.cpu(key)


def race(case: Case, dataset: Dataset, counts: Sequence[int], options: Options) -> Race:
    """Let all who can take part fit the same rows, by turns."""
    limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
    found = Race(case, dataset.shape, counts, limit)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = store(Path(folder) / "problem.pickle", dataset, case.machine)
        workers = _warm_workers(file, found, stack)
        trial = Timings(_trial(workers, found))
        samplers = {key: _sampler(workers, key, found) for key in trial.samples}
        one_round = sum(sample.wall for (sample,) in trial.samples.values())
        rounds = min(options.repeats, int(ROUNDS / one_round)) if one_round else 0
        if rounds:
            found.answers.clear()
        found.timings = interleave(samplers, rounds, warm_ups=0) if rounds else trial
    return found


def _warm_workers(file: Path, found: Race, stack: ExitStack) -> dict[Who, Worker]:
    workers: dict[Who, Worker] = {}
    for threads in found.counts:
        for name, tool in TOOLS.items():
            if refusal := tool.refusal():
                found.skipped[name] = refusal
            elif found.who(name, threads) == (name, threads):
                worker = stack.enter_context(Worker(file, name, threads))
                try:
                    worker.ask("warm")
                except (FailedError, SlowError) as reason:
                    found.skipped[f"{name} with {threads} thread(s)"] = str(reason)
                else:
                    workers[name, threads] = worker
    return workers


def _trial(workers: Mapping[Who, Worker], found: Race) -> dict[Key, list[Sample]]:
    """Do everything once, with certificates; who is too slow is noted and takes no further part."""
    samples: dict[Key, list[Sample]] = {}
    longer = max(found.limit, LOADING)
    for who, worker in workers.items():
        try:
            samples[*who, FIT] = [_once(worker, (*who, FIT), found, found.limit + AROUND)]
            found.proofs[who] = worker.ask("certify", longer)
            for what in (PREDICT, BARE) if who[0] == Ours.name else (PREDICT,):
                samples[*who, what] = [_once(worker, (*who, what), found, longer)]
        except SlowError:
            done = FIT if (*who, FIT) not in samples else PREDICT
            found.slow.add((*who, done))
            samples = {key: sample for key, sample in samples.items() if key[:2] != who}
        except FailedError as reason:
            found.skipped[f"{who[0]} with {who[1]} thread(s)"] = str(reason)
            samples = {key: sample for key, sample in samples.items() if key[:2] != who}
        print(f"  {_line(found, who)}", flush=True)
    return samples


def _line(found: Race, who: Who) -> str:
    said = found.answers.get((*who, FIT), [{}])[-1]
    fit = f"{said['wall']:.3g} s (CPU {said['cpu']:.3g})" if "wall" in said else "no fit"
    gap = found.gap(*who)
    proved = "no certificate" if gap is None else f"gap {gap:.1e}"
    return f"{who[0]}, {who[1]} thread(s): {fit}, {proved}"


def _once(worker: Worker, key: Key, found: Race, limit: float) -> Sample:
    answer = worker.ask(key[2], limit)
    found.answers.setdefault(key, []).append(answer)
    return Sample(answer["wall"], answer["cpu"])


def _sampler(workers: Mapping[Who, Worker], key: Key, found: Race) -> Sampler:
    limit = PATIENCE * found.limit
    return lambda: _once(workers[key[0], key[1]], key, found, limit)


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio | None:
    """Return the geometric mean of medians; one bound among them makes it a bound."""
    known = [each for each in ratios if each.values.median > 0]
    if not known:
        return None
    mean = float(np.exp(np.mean([np.log(each.values.median) for each in known])))
    whole = Spread(mean, mean, mean, len(known), len(ratios))
    return Ratio(whole, any(each.bounded for each in known))
