"""Another checkout of the library beside this one, to see whether anything became slower.

``python -m benchmarks.run kernel --against PATH``, where PATH is another checkout (or its ``src``
folder), makes the same fits with both. Each fit has warm processes of its own in each checkout, and
the two take turns. Ratios are taken within a round, and count only if both certificates hold and
agree.
"""

import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contest, machine
from benchmarks.children import ROOT, Answer, Child, FailedError, SlowError, peak_megabytes
from benchmarks.contest import Contest, Outcome, Results
from benchmarks.measure import Clock
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report

OLD, NEW = "old", "new"
LEAST_MEAN, LEAST = 1.0, 0.9  # what the ratios old/new should reach, in the mean and each
MOST_MEMORY = 1.05  # times the old peak
SAMPLE, MOST_TIMES = 0.3, 50  # a sample is so many seconds of fits, and at most so many of them
EACH = 3  # samples of a process
WARMING = 900.0  # seconds: the first fit of a checkout compiles


@dataclass(frozen=True)
class Trial:
    """One fit that both checkouts make."""

    name: str
    estimator: str  # a public class of maxmargin
    settings: Mapping[str, Any]
    X: Any
    y: Any = None
    tol: float = 1e-4  # the relative gap (for kernel PCA, residual) that both must prove
    apart: float = 0.0  # how far results may differ, relative; 0: what two proofs leave open

    @property
    def size(self) -> str:
        """The number of rows and columns."""
        return "×".join(map(str, self.X.shape))


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
        gap = float(model.cv_results_["max_relative_gap"][model.best_index_])
        return {"gap": gap, "results": [float(model.best_score_)]}
    if hasattr(model, "eigenvalues_"):
        return {"gap": float(np.max(model.residuals_)), "results": model.eigenvalues_.tolist()}
    proof = model.certificate_
    parts = proof.parts or (proof,)
    return {
        "gap": max(float(part.relative_gap) for part in parts),
        "results": [float(part.primal) for part in parts],
    }


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
    failed: list[Check] = []
    contests = _contests(trials, trees, options, failed)
    report, outcomes = contest.run(f"{name}-against", contests, options)
    report.checks += [*failed, *targets(outcomes)]
    commits = {tree: machine.commit(folder) for tree, folder in trees.items()}
    report.notes.append(f"old is commit {commits[OLD]}, new is {commits[NEW]}")
    return report


def _contests(
    trials: Iterable[Trial], trees: Mapping[str, Path], options: Options, failed: list[Check]
) -> Iterator[Contest]:
    """Yield a contest of two warm processes for each trial; note what cannot be fitted."""
    for trial in trials:
        with ExitStack() as stack:
            fits = {
                tree: stack.enter_context(Fits(trial, folder, options.threads or 1))
                for tree, folder in trees.items()
            }
            try:
                slowest = max(each.first() for each in fits.values())
            except (SlowError, FailedError) as reason:
                claim = f"{trial.name}: both checkouts can fit it"
                failed.append(Check("same problem", claim, False, str(reason)))
                continue
            times = int(np.clip(math.ceil(SAMPLE / max(slowest, 1e-6)), 1, MOST_TIMES))
            calls = {tree: partial(each.sample, times) for tree, each in fits.items()}
            checks = partial(agreement, trial)
            yield Contest(trial.name, trial.size, calls, NEW, facts=_cells, checks=checks)


class Fits(ExitStack):
    """Fits of one trial with one checkout, in a warm process that is replaced now and then.

    Where a process has its memory is a matter of luck, and worth some per cent of its time.
    """

    def __init__(self, trial: Trial, folder: Path, threads: int) -> None:
        super().__init__()
        self._folder = folder
        self._new = partial(Child, Fitting, {"trial": trial}, threads, folder)
        self._child: Child | None = None
        self._made = 0

    def first(self) -> float:
        """Compile whatever the fit needs, in a process of its own; return the seconds of a fit."""
        with self._new() as child:
            if not Path(child.ask("where")["file"]).is_relative_to(self._folder):
                raise FailedError(f"{self._folder.parent.name} is shadowed by another maxmargin")
            child.ask("fit", WARMING)
            return float(child.ask("fit", WARMING)["wall"])

    def sample(self, times: int) -> Answer:
        """Fit so many times; return seconds of one of them, and what came out."""
        if self._child is None or self._made % EACH == 0:
            self.close()
            self._child = self.enter_context(self._new())
            self._child.ask("fit", WARMING)
        self._made += 1
        answer: Answer = self._child.ask("fit", WARMING, times=times)
        return answer


def _cells(tree: str, answer: Answer) -> dict[str, Cell]:
    return {"peak MB": float(answer["peak"]), "gap": float(answer["gap"])}


def agreement(trial: Trial, results: Results) -> list[Check]:
    """Check that both proved their answer, and that the answers agree."""
    old, new = (np.array(results[tree]["results"]) for tree in (OLD, NEW))
    gaps = {tree: float(results[tree]["gap"]) for tree in (OLD, NEW)}
    apart = math.inf
    if old.shape == new.shape:
        apart = float(np.abs(old - new).max(initial=0.0) / max(np.abs(old).max(initial=0), 1e-300))
    proved = {tree: gap <= trial.tol for tree, gap in gaps.items()}
    holds: bool | None = proved[NEW] and apart <= (trial.apart or 2 * trial.tol)
    if not any(proved.values()):
        holds = None  # what neither could prove says nothing of the change
    found = (
        f"results differ by {apart:.1e}, gaps {gaps[OLD]:.1e} (old) and {gaps[NEW]:.1e} (new), "
        f"tol {trial.tol:.0e}"
    )
    return [Check("same problem", f"{trial.name}: both proved the same", holds, found)]


def targets(outcomes: Sequence[Outcome]) -> list[Check]:
    """Check that nothing is slower than before, or takes more memory."""
    if not outcomes:
        return []
    checks = []
    clocks: tuple[Clock, ...] = ("cpu", "wall")
    for clock in clocks:
        times = {o.contest.name: o.timings.times(OLD, NEW, clock) for o in outcomes}
        logs = np.log([each.median for each in times.values()])
        mean, error = logs.mean(), logs.std() / math.sqrt(max(1, len(logs) - 1))
        claim = f"{clock} time: old/new is at least {LEAST_MEAN:g} in the geometric mean"
        # A mean whose error reaches the target may be noise.
        near = mean + 2 * error >= math.log(LEAST_MEAN)
        holds = True if mean >= math.log(LEAST_MEAN) else (None if near else False)
        low, middle, high = np.exp([mean - 2 * error, mean, mean + 2 * error])
        found = f"{middle:.3f}, and {low:.3f} to {high:.3f} with two standard errors"
        checks.append(Check("target", claim, holds, found))
        below = {name: each for name, each in times.items() if each.median < LEAST}
        claim = f"{clock} time: old/new is at least {LEAST:g} in every trial"
        said = ", ".join(f"{n} {s.median:.2f} ({s.low:.2f}–{s.high:.2f})" for n, s in below.items())
        # A trial whose quartiles reach the limit may be noise.
        certain = any(each.high < LEAST for each in below.values())
        holds = True if not below else (False if certain else None)
        checks.append(Check("target", claim, holds, said or "all of them"))
    peaks = {o.contest.name: o.results[NEW]["peak"] / o.results[OLD]["peak"] for o in outcomes}
    more = [f"{name} {times:.2f}" for name, times in peaks.items() if times > MOST_MEMORY]
    claim = f"peak memory is at most {MOST_MEMORY:g} times the old one"
    checks.append(Check("target", claim, not more, ", ".join(more) or "everywhere"))
    return checks
