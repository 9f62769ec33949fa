"""Another checkout of the library beside this one, to see whether anything became slower.

``python -m benchmarks.run kernel --against PATH``, where PATH is another checkout (or its ``src``
folder), makes the same fits with both. Each fit has a warm process of its own in each checkout,
and the two take turns: first one leads a round, then the other. Ratios are taken within a round.
A ratio counts only if both certificates hold and agree.
"""

import math
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import machine
from benchmarks.children import ROOT, Answer, Child, FailedError, SlowError, peak_megabytes
from benchmarks.measure import Sample, Spread, Timings, ratio, spread
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table

OLD, NEW = "old", "new"
LEAST_MEAN, LEAST = 1.0, 0.9  # what the ratios old/new should reach, in the mean and each
MOST_MEMORY = 1.05  # times the old peak
SAMPLE, MOST_TIMES = 0.3, 50  # a sample is so many seconds of fits, and at most so many of them
WARMING = 900.0  # seconds: the first fit of a checkout compiles


@dataclass(frozen=True)
class Trial:
    """One fit that both checkouts make.

    Attributes
    ----------
    name : str
        What it is called in the table.
    estimator : str
        A public class of maxmargin; for a search, "SVCSearchCV".
    settings : dict
        Its parameters.
    X, y : arrays
        What it is fitted to; y may be None.
    tol : float
        The relative gap (for kernel PCA, residual) that both must prove.
    apart : float
        How far results may differ, relative to the largest of them.
    """

    name: str
    estimator: str
    settings: Mapping[str, Any]
    X: Any
    y: Any = None
    tol: float = 1e-4
    apart: float = field(default=0.0)

    @property
    def allowed(self) -> float:
        """How far apart results may be: by default what two proofs to ``tol`` leave open."""
        return self.apart or 2 * self.tol


class Fitting:
    """In the child: fits one trial with whichever checkout is imported."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def where(self) -> Answer:
        """Return which package this is."""
        import maxmargin

        return {"file": str(Path(maxmargin.__file__).resolve())}

    def fit(self, times: int = 1) -> Answer:
        """Fit so many times; return seconds of one of them, and what came out."""
        with warnings.catch_warnings():  # how a fit ended is in its status
            warnings.simplefilter("ignore")
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(times):
                model = self._model().fit(self._trial.X, self._trial.y)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return {"wall": wall / times, "cpu": cpu / times, "peak": peak_megabytes(), **_facts(model)}

    def _model(self) -> Any:
        import maxmargin as mm

        settings = dict(self._trial.settings)
        if self._trial.estimator == "SVCSearchCV":
            return mm.SVCSearchCV(mm.SVC(tol=self._trial.tol), **settings)
        return getattr(mm, self._trial.estimator)(tol=self._trial.tol, **settings)


def _facts(model: Any) -> Answer:
    """Return what a fitted model proves, and the results that the checkouts must agree on."""
    if hasattr(model, "cv_results_"):
        gap = float(np.max(model.cv_results_["max_relative_gap"]))
        return {"gap": gap, "results": np.ravel(model.cv_results_["mean_test_score"]).tolist()}
    if hasattr(model, "eigenvalues_"):
        return {"gap": float(np.max(model.residuals_)), "results": model.eigenvalues_.tolist()}
    proof = model.certificate_
    parts = proof.parts or (proof,)
    return {
        "gap": max(float(part.relative_gap) for part in parts),
        "results": [float(part.primal) for part in parts],
        "status": model.status_.name,
    }


class Duel(NamedTuple):
    """What was found in one trial: samples of both, and each checkout's last answer."""

    trial: Trial
    timings: Timings[str]
    answers: dict[str, Answer]

    def times(self, clock: str) -> Spread:
        """Return the old checkout's seconds divided by the new one's, taken within rounds."""
        of = self.timings.wall if clock == "wall" else self.timings.cpu
        return spread(ratio(of(OLD), of(NEW)))

    @property
    def memory(self) -> float:
        """The new checkout's peak of memory divided by the old one's."""
        return float(self.answers[NEW]["peak"] / self.answers[OLD]["peak"])

    @property
    def apart(self) -> float:
        """The largest difference of results, relative to the largest result."""
        old, new = (np.array(self.answers[tree]["results"]) for tree in (OLD, NEW))
        if old.shape != new.shape:
            return math.inf
        return float(np.abs(old - new).max(initial=0.0) / max(np.abs(old).max(initial=0.0), 1e-300))

    def check(self) -> Check:
        """Check that both proved their answer, and that the answers agree."""
        gaps = {tree: float(self.answers[tree]["gap"]) for tree in (OLD, NEW)}
        proved = {tree: gap <= self.trial.tol for tree, gap in gaps.items()}
        found = (
            f"results differ by {self.apart:.1e}, gaps {gaps[OLD]:.1e} (old) and "
            f"{gaps[NEW]:.1e} (new), tol {self.trial.tol:.0e}"
        )
        holds = proved[NEW] and self.apart <= self.trial.allowed
        # What the old one could not prove is no reason to doubt the new one.
        verdict = True if holds else (None if not any(proved.values()) else False)
        return Check("same problem", f"{self.trial.name}: both proved the same", verdict, found)


def source(path: Path) -> Path:
    """Return the folder to import from, of a checkout or of its ``src``; refuse any other."""
    for folder in (path / "src", path):
        if (folder / "maxmargin" / "__init__.py").exists():
            return folder.resolve()
    raise SystemExit(f"--against {path}: neither a checkout of maxmargin nor its src folder")


def run(name: str, trials: Iterable[Trial], options: Options) -> Report:
    """Make every trial with both checkouts, by turns, and compare."""
    assert options.against is not None
    trees = {OLD: source(options.against), NEW: ROOT / "src"}
    report = Report(f"{name}-against")
    duels: list[Duel] = []
    for trial in trials:
        try:
            duels.append(duel(trial, trees, options))
        except (SlowError, FailedError) as reason:
            claim = f"{trial.name}: both can fit it"
            report.checks.append(Check("same problem", claim, False, str(reason)))
            continue
        last = duels[-1]
        wall, cpu = (last.times(clock).median for clock in ("wall", "cpu"))
        print(f"  {trial.name}: old/new {cpu:.2f} in CPU time, {wall:.2f} in wall time", flush=True)
    if duels:
        report.tables.append(table(duels))
        report.checks += [each.check() for each in duels]
        report.checks += targets(duels)
    commits = {tree: machine.commit(folder) for tree, folder in trees.items()}
    report.notes.append(f"old is commit {commits[OLD]}, new is {commits[NEW]}")
    report.notes.append(f"{options.threads or 1} thread(s), {options.repeats} rounds")
    return report


def duel(trial: Trial, trees: Mapping[str, Path], options: Options) -> Duel:
    """Make one trial with both checkouts, each in its own warm process, by turns."""
    samples: dict[str, list[Sample]] = {tree: [] for tree in trees}
    answers: dict[str, Answer] = {}
    with ExitStack() as stack:
        children = {
            tree: stack.enter_context(_child(trial, folder, options.threads or 1))
            for tree, folder in trees.items()
        }
        for tree, child in children.items():
            file = child.ask("where")["file"]
            if not Path(file).is_relative_to(trees[tree]):
                raise FailedError(f"the {tree} process imports another copy of maxmargin")
            child.ask("fit", WARMING)
        # Once more, now that all is compiled, to see how many fits make a sample.
        first = max(child.ask("fit", WARMING)["wall"] for child in children.values())
        times = int(np.clip(math.ceil(SAMPLE / max(first, 1e-6)), 1, MOST_TIMES))
        for turn in range(options.repeats):
            for tree in (OLD, NEW) if turn % 2 == 0 else (NEW, OLD):
                answers[tree] = children[tree].ask("fit", WARMING, times=times)
                samples[tree].append(Sample(answers[tree]["wall"], answers[tree]["cpu"]))
    return Duel(trial, Timings(samples), answers)


def _child(trial: Trial, folder: Path, threads: int) -> Child:
    before = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([str(folder), before] if before else [str(folder)])
    return Child("benchmarks.against:Fitting", {"trial": trial}, threads, {"PYTHONPATH": path})


def geometric_mean(values: Iterable[float]) -> float:
    """Return exp of the mean logarithm; NaN of nothing."""
    logs = np.log([value for value in values if value > 0])
    return float(np.exp(logs.mean())) if logs.size else math.nan


def table(duels: list[Duel]) -> Table:
    """Return a row for each trial, and the geometric means as the last one."""
    rows: list[list[Cell]] = [
        [
            each.trial.name,
            "×".join(map(str, each.trial.X.shape)),
            spread(each.timings.cpu(NEW)),
            spread(each.timings.wall(NEW)),
            each.times("cpu"),
            each.times("wall"),
            float(each.answers[NEW]["peak"]),
            each.memory,
            float(each.answers[OLD]["gap"]),
            float(each.answers[NEW]["gap"]),
            each.apart,
        ]
        for each in duels
    ]
    cpu, wall = (geometric_mean(d.times(clock).median for d in duels) for clock in ("cpu", "wall"))
    memory = geometric_mean(each.memory for each in duels)
    mean: list[Cell] = ["geometric mean", "", None, None, cpu, wall, None, memory, None, None, None]
    columns = (
        "trial", "size", "new, CPU s", "new, s", "old/new, CPU", "old/new, wall", "new, peak MB",
        "peak, new/old", "old gap", "new gap", "results apart",
    )  # fmt: skip
    title = "Old seconds divided by new ones: above 1, the new checkout is faster"
    return Table(title, columns, [*rows, mean])


def targets(duels: list[Duel]) -> list[Check]:
    """Check that nothing is slower than before, or takes more memory."""
    checks = []
    for clock in ("cpu", "wall"):
        times = {each.trial.name: each.times(clock).median for each in duels}
        mean = geometric_mean(times.values())
        below = [f"{name} {value:.2f}" for name, value in times.items() if value < LEAST]
        claim = f"{clock} time: old/new is at least {LEAST_MEAN:g} in the geometric mean"
        checks.append(Check("target", claim, mean >= LEAST_MEAN, f"{mean:.3f}"))
        claim = f"{clock} time: old/new is at least {LEAST:g} in every trial"
        checks.append(Check("target", claim, not below, ", ".join(below) or "all of them"))
    more = [f"{d.trial.name} {d.memory:.2f}" for d in duels if d.memory > MOST_MEMORY]
    claim = f"peak memory is at most {MOST_MEMORY:g} times the old one"
    checks.append(Check("target", claim, not more, ", ".join(more) or "everywhere"))
    return checks
