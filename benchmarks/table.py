"""Every set, many settings: whether each of our fits ends with a proof.

A cell is one fit, certified anew from outside; with ``--compare`` LIBSVM fits it too, and the dual
values are compared. A cell is on disk as soon as it is known: a run that was ended goes on where it
was, as long as the package has not changed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from benchmarks.children import FailedError, SlowError
from benchmarks.datasets import COLUMNS, Dataset, available
from benchmarks.fitting import Crew
from benchmarks.objective import Objective
from benchmarks.options import RESULTS, Options
from benchmarks.report import Check, Kept, Report, Table
from benchmarks.solvers import LIBSVM, OURS

GRACE = 120.0  # seconds beyond max_time before a fit is killed
THEIR_TIME = 60.0  # seconds for LIBSVM
ROUNDING = 1e-9  # relative: by so much a dual value may be below another
OPTIMAL = "OPTIMAL"
STATUS, GAP, LEAD, SECONDS = "status", "certified gap", "dual above LIBSVM's", "s"
Found = dict[str, Any]  # a row of the table


class Grid(NamedTuple):
    """What is fitted."""

    name: str
    title: str
    versions: Callable[[Dataset, Options], Iterator[tuple[str, Dataset]]]  # by columns' scaling
    objectives: Callable[[Dataset], dict[str, Objective]]
    tolerances: tuple[float, ...]
    max_time: float  # seconds for one fit


def run(grid: Grid, options: Options) -> Report:
    """Fit everything asked for: ``--only`` takes sets and tolerances, such as tol=1e-6."""
    tolerances = {f"tol={tol:.0e}".replace("e-0", "e-"): tol for tol in grid.tolerances}
    named = options.chosen([*COLUMNS, *tolerances])
    sets = [name for name in named if name in COLUMNS] or list(COLUMNS)
    chosen = [tol for name, tol in tolerances.items() if name in named] or grid.tolerances
    seconds = options.limit or grid.max_time
    sizes = f"{options.rows or 'all'} rows, {seconds:g} s{', quick' * options.quick}"
    kept = Kept((options.out or RESULTS) / f"{grid.name}.cells.jsonl", sizes)
    threads = options.threads or os.cpu_count() or 1
    for dataset in available(sets, options.data):
        for version, problem in grid.versions(dataset, options):
            print(f"{grid.name}: {dataset.name} {version} ({problem.shape})", flush=True)
            objectives = grid.objectives(problem)
            with Crew(problem, next(iter(objectives.values())), threads) as crew:
                for tol in chosen:
                    for label, objective in objectives.items():
                        key = f"{dataset.name} {version}, {label}, tol={tol:g}"
                        found = kept.get(key)
                        if found is None:
                            blank = {
                                "data": dataset.name,
                                "size": problem.shape,
                                "columns": version,
                                "objective": label,
                                "tol": tol,
                            }
                            found = kept.add(key, blank | cell(crew, objective, tol, seconds))
                        if options.compare and not objective.linear and found[LEAD] is None:
                            found = kept.add(key, found | compared(crew, objective, found))
                        print(f"  {line(found)}", flush=True)
    report = Report(grid.name)
    if cells := kept.cells():
        report.tables.append(Table(grid.title, cells))
        report.checks += checks(grid, cells)
        report.notes.append("several classes: the gap is that of the worst subproblem")
    return report


def cell(crew: Crew, objective: Objective, tol: float, max_time: float) -> Found:
    """Fit once, and certify."""
    found: Found = dict.fromkeys(
        (STATUS, GAP, SECONDS, "CPU s", "certify s", "iterations", "dual", "LIBSVM", LEAD)
    )
    setting = {"setting": tol, "max_time": max_time, "objective": asdict(objective)}
    try:
        fit = crew.ask(OURS.name, "fit", max_time + GRACE, **setting)
        proof = crew.ask(OURS.name, "judge")
    except SlowError as reason:
        return found | {STATUS: f"KILLED: {reason}"}
    except FailedError as reason:
        return found | {STATUS: f"FAILED: {reason}"}
    seconds = {SECONDS: fit["wall"], "CPU s": fit["cpu"], "certify s": proof["seconds"]}
    proved = {STATUS: fit["status"], GAP: proof["gap"], "dual": proof["dual"]}
    return found | seconds | proved | {"iterations": fit["iterations"]}


def compared(crew: Crew, objective: Objective, found: Found) -> Found:
    """Return how long LIBSVM takes and by how much our dual value is above its; or why not."""
    setting = {"setting": found["tol"], "objective": asdict(objective)}
    try:
        fit = crew.ask(LIBSVM.name, "fit", THEIR_TIME, **setting)
        theirs = crew.ask(LIBSVM.name, "judge")["dual"]
    except (SlowError, FailedError) as reason:
        return {"LIBSVM": f"none: {reason}"}
    if found["dual"] is None:
        return {"LIBSVM": "none: ours has no dual value"}
    lead = (found["dual"] - theirs) / max(abs(theirs), 1e-300)
    return {"LIBSVM": f"{fit['wall']:.3g} s", LEAD: lead}


def proved(found: Found) -> bool:
    """Return whether the gap is at most what was asked for."""
    return found[GAP] is not None and found[GAP] <= found["tol"]


def line(found: Found) -> str:
    """Return a cell in words."""
    gap, seconds = ("–" if found[k] is None else f"{found[k]:.2g}" for k in (GAP, SECONDS))
    named = f"{found['data']} {found['columns']}, {found['objective']}, tol={found['tol']:g}"
    return f"{named}: {found[STATUS]}, gap {gap}, {seconds} s"


def checks(grid: Grid, cells: Sequence[Found]) -> list[Check]:
    """Check that what is claimed is proved, that all is, and that no dual is below LIBSVM's."""
    false = [line(found) for found in cells if found[STATUS] == OPTIMAL and not proved(found)]
    claim = "no fit claims more than is proved"
    made = [Check("same problem", claim, not false, "; ".join(false) or "none does")]
    for tol in grid.tolerances:
        wanted = [found for found in cells if found["tol"] == tol]
        missed = [line(found) for found in wanted if not proved(found)]
        claim = f"every fit is proved to {tol:g} within {grid.max_time:g} s"
        count = f"{len(wanted) - len(missed)} of {len(wanted)}"
        holds = not missed if wanted else None
        made.append(Check("target", claim, holds, "; not ".join([count, *missed])))
    raced = [found for found in cells if found[LEAD] is not None]
    behind = [f"{line(f)}, {f[LEAD]:.1e}" for f in raced if f[LEAD] < -ROUNDING]
    count = f"{len(raced) - len(behind)} of {len(raced)} compared"
    claim = "at the same tol our dual value is at least LIBSVM's"
    holds = not behind if raced else None
    return [*made, Check("target", claim, holds, "; not ".join([count, *behind]))]
