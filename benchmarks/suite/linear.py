"""Linear SVMs: seconds to a given suboptimality, beside the others; threads, memory, growth.

All minimise the same objective with C = 1, and how near anybody came is computed here: P/D* − 1,
with D* a proved lower bound of the optimum (our dual value at a gap of 1e-9). Ours is one fit with
``tol`` at the target; the others try harder and harder and the first fit that gets there counts.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets import Dataset, UnavailableError, load, one_against_rest, real, sampled
from benchmarks.measure import Spread, spread
from benchmarks.objective import LinearObjective
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table
from benchmarks.solvers.linear import CANDIDATES, LIBSVM_ROWS, Ours, described
from benchmarks.suite import linear_growth, linear_pictures
from benchmarks.suite.linear_race import FACTOR, LEAST, MOST, TARGETS, Race, race

PEERS = [name for name in CANDIDATES if name != Ours.name]
CASES = (
    "dense-float64",
    "dense-float32",
    "kddcup99-10pct",
    "casp",
    "a9a",
    "ijcnn1",
    "news20-binary",
    "reuters-money-fx",
    "20newsgroups-binary",  # its largest class against the rest
)
DENSE = ("dense-float64", "dense-float32", "kddcup99-10pct", "casp")
REGRESSION = ("casp",)
NEWSGROUPS = "20newsgroups-binary"
EXTRAS = ("threads", "memory", "growth")


def run(options: Options) -> Report:
    """Measure everything asked for."""
    report = Report("linear")
    chosen = options.chosen([*CASES, *EXTRAS])
    races: list[Race] = []
    growth: linear_growth.Growth | None = None
    with threadpool_limits(options.threads or 1):
        for dataset in _datasets([name for name in chosen if name in CASES], options):
            for objective in _objectives(dataset):
                print(f"linear: {dataset.name} ({dataset.shape}), {objective}", flush=True)
                races.append(race(dataset, objective, options))
                print(_table(races[-1:]), flush=True)  # a run that is ended has said so much
    if races:
        report.tables += [_table(races), _fits(races), _certificates(races)]
        report.checks += [check for found in races for check in found.checks()]
        report.checks += [_check(found) for found in races]
        report.notes += _notes(races)
    if "threads" in chosen:
        print("linear: threads", flush=True)
        report.tables.append(linear_growth.thread_table(options))
    if "memory" in chosen:
        print("linear: memory", flush=True)
        report.tables.append(linear_growth.memory_table(options))
    if "growth" in chosen:
        print("linear: growth", flush=True)
        growth = linear_growth.measure(options)
        report.tables.append(growth.table())
        report.notes.append(growth.sentence())
    if races or growth:
        report.draw = lambda: linear_pictures.picture(races, growth)
    return report


def _datasets(names: list[str], options: Options) -> Iterator[Dataset]:
    """Yield the sets that can be had as they are raced, and print why the others cannot."""
    for name in names:
        try:
            dataset = _loaded(name, options)
        except UnavailableError as reason:
            print(f"skipped {name}: {reason}")
            continue
        if name in DENSE and dataset.sparse:
            dataset = replace(dataset, X=dataset.X.toarray())
        if name not in REGRESSION:
            dataset = replace(dataset, y=np.where(dataset.y == dataset.y.max(), 1.0, -1.0))
        yield dataset


def _loaded(name: str, options: Options) -> Dataset:
    if name == NEWSGROUPS:
        dataset = one_against_rest(real("20newsgroups-bydate", options.data), name)
    else:
        dataset = load(name, options.data, options.quick)
    return sampled(dataset, 1000) if options.quick else dataset


def _objectives(dataset: Dataset) -> list[LinearObjective]:
    """Return what is raced: LIBLINEAR penalises the intercept, LIBSVM (on few rows) does not."""
    if dataset.name in REGRESSION:
        return [LinearObjective("penalized", epsilon=0.1 * float(np.std(dataset.y)))]
    small = dataset.X.shape[0] <= LIBSVM_ROWS
    return [LinearObjective("penalized")] + ([LinearObjective("free")] if small else [])


def _table(races: list[Race]) -> Table:
    rows: list[list[Cell]] = []
    for found in races:
        for target in TARGETS:
            ours = found.ours(target)
            rows.append(
                [
                    found.name,
                    f"{target:.0e}",
                    _missed(found, target) if ours is None else spread(ours),
                    *(_ratio(found, peer, target) for peer in PEERS),
                ]
            )
    return Table(
        f"Seconds to a relative suboptimality, and the others' divided by ours (≥: not within "
        f"{FACTOR:g} times ours, at least {LEAST:g} s, at most {MOST:g} s; –: takes no part)",
        ("data", "target", "maxmargin s", *(f"{peer} / maxmargin" for peer in PEERS)),
        rows,
    )


def _missed(found: Race, target: float) -> str:
    own = found.own[target]
    return f"{own.status} after {own.wall:.3g}, gap {own.gap:.1e}"


def _ratio(found: Race, peer: str, target: float) -> Cell:
    return found.ratio(peer, target) if peer in found.sweeps else None


def _fits(races: list[Race]) -> Table:
    rows: list[list[Cell]] = []
    for found in races:
        for target in TARGETS:
            for peer, tried in found.sweeps.items():
                point = tried.reached(target)
                unit = CANDIDATES[peer].unit
                rows.append(
                    [
                        found.name,
                        f"{target:.0e}",
                        peer,
                        "–" if point is None else f"{unit} {point.setting:g}",
                        tried.best if point is None else tried.above(point),
                        found.seconds(peer, target),
                        found.ratio(peer, target),
                        found.ratio(peer, target, "cpu"),
                    ]
                )
    return Table(
        "The loosest fit of each that gets there",
        ("data", "target", "solver", "setting", "reached", "s", "ratio, wall", "ratio, CPU"),
        rows,
    )


def _certificates(races: list[Race]) -> Table:
    rows: list[list[Cell]] = []
    for found in races:
        for target in TARGETS:
            own = found.own[target]
            wall, cpu = found.ours(target), found.ours(target, "cpu")
            rows.append(
                [
                    found.name,
                    f"{target:.0e}",
                    own.solver,
                    own.status,
                    own.iterations,
                    own.gap,
                    None if wall is None else spread(wall),
                    None if cpu is None else spread(cpu),
                    found.by_trace(target),
                    spread(found.certifying(target)),
                ]
            )
    return Table(
        "Ours: the whole fit with tol at the target (small sets are polished beyond it), the "
        "solver's own seconds until then in one traced fit, and what checking the answer takes",
        (
            "data",
            "target",
            "solver",
            "status",
            "iterations",
            "certified gap",
            "fit s",
            "fit CPU s",
            "by trace s",
            "certify s",
        ),
        rows,
    )


def _check(found: Race) -> Check:
    """Check that nobody is faster than ours to any target."""
    claim = f"{found.name}: nobody is faster to any target"
    if any(found.ours(target) is None for target in TARGETS):
        return Check("target", claim, False, "ours did not reach all")
    ratios = {
        (peer, target): cell.median
        for peer in found.sweeps
        for target in TARGETS
        if isinstance(cell := found.ratio(peer, target), Spread)
    }
    if not ratios:
        return Check("target", claim, True, "no other got there within the budget")
    peer, target = min(ratios, key=lambda key: ratios[key])
    least = ratios[peer, target]
    said = f"the nearest is {peer}, with {least:.3g} times our time to {target:.0e}"
    return Check("target", claim, bool(least >= 1), said)


def _notes(races: list[Race]) -> list[str]:
    present = [name for name in CANDIDATES if any(name in found.sweeps for found in races)]
    solvers = [described(CANDIDATES[name]) for name in (Ours.name, *present)]
    notes = [f"solvers: {', '.join(solvers)}"]
    absent: dict[str, list[str]] = {}
    for found in races:
        for peer, why in found.skipped.items():
            absent.setdefault(f"{peer} took no part ({why})", []).append(found.name)
    return notes + [f"{said}: {'; '.join(names)}" for said, names in absent.items()]
