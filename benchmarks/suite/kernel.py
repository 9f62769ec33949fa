"""Kernel SVMs: fits and predictions beside LIBSVM and oneDAL, the limit line, growth, memory.

Others have the tolerance they come with; ours, a relative duality gap, is a little less than the
gap that this leaves them (it is by default 1e-4). How good an answer is says ``mm.certify``, after
the clock has stopped. A fit of ours is timed with its certificate.
"""

import os
from collections.abc import Sequence

from benchmarks.datasets import UnavailableError
from benchmarks.measure import Spread
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table
from benchmarks.solvers.kernel import PEERS, TOOLS, Ours, described
from benchmarks.solvers.kernel_worker import FailedError, SlowError
from benchmarks.suite import kernel_growth, kernel_pictures
from benchmarks.suite.kernel_cases import CASES, cases
from benchmarks.suite.kernel_race import FIT, PREDICT, Race, Ratio, geometric_mean, race

EXTRAS = ("growth", "memory")
WISHED = {FIT: {"oneDAL": 3.0, "LIBSVM": 8.0}, PREDICT: {"oneDAL": 2.0, "LIBSVM": 10.0}}
LEAST = 1.5  # times the better of the others, on every set
MOST_ABOVE = 4.0  # times the limit line


def run(options: Options) -> Report:
    """Measure everything asked for."""
    chosen = options.chosen([*(case.name for case in CASES), *EXTRAS])
    if refusal := TOOLS[Ours.name].refusal():
        raise SystemExit(refusal)
    counts = _thread_counts(options)
    races, failures = _races(chosen, counts, options)
    report = _report(races, counts)
    report.notes += failures
    growth: kernel_growth.Growth | None = None
    caps: kernel_growth.Caps | None = None
    if "growth" in chosen and (growth := _growth(options, max(counts), report.notes)):
        report.tables.append(growth.table())
        report.checks.append(growth.check())
        report.notes.append(growth.sentence())
    if "memory" in chosen and (caps := _caps(options, max(counts), report.notes)):
        report.tables.append(caps.table())
        report.checks.append(caps.check())
    if races or growth or caps:
        report.draw = lambda: kernel_pictures.picture(races, growth, caps)
    _write(report, options)
    return report


def _thread_counts(options: Options) -> list[int]:
    cores = os.cpu_count() or 1
    return [options.threads] if options.threads else [t for t in (1, 2) if t <= cores]


def _races(chosen: list[str], counts: list[int], options: Options) -> tuple[list[Race], list[str]]:
    """Run the cases, each written down as soon as it is known; and say what went wrong."""
    races: list[Race] = []
    failures: list[str] = []
    for case, dataset in cases(chosen, options):
        print(f"kernel: {case.name} ({dataset.shape}), {case.machine}", flush=True)
        try:
            races.append(race(case, dataset, counts, options))
        except (SlowError, FailedError) as reason:
            failures.append(f"{case.name} was given up: {reason}")
            print(f"  {failures[-1]}", flush=True)
            continue
        print(_fits(races[-1:]), flush=True)
        _write(_report(races, counts), options)
    return races, failures


def _growth(options: Options, threads: int, notes: list[str]) -> kernel_growth.Growth | None:
    print("kernel: growth", flush=True)
    try:
        found = kernel_growth.growth(options, threads)
    except UnavailableError as reason:
        notes.append(f"growth was skipped: {reason}")
        return None
    if not found.sizes:
        notes.append(f"growth: {found.ended or 'no number of rows was allowed'}")
        return None
    return found


def _caps(options: Options, threads: int, notes: list[str]) -> kernel_growth.Caps | None:
    print("kernel: memory", flush=True)
    try:
        return kernel_growth.caps(options, threads)
    except (UnavailableError, SlowError, FailedError) as reason:
        notes.append(f"memory was given up: {reason}")
        return None


def _write(report: Report, options: Options) -> None:
    """Write what is known as a text to read: a run that is ended has said so much."""
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "kernel.md").write_text(f"{report}\n", encoding="utf-8")


def _report(races: list[Race], counts: Sequence[int]) -> Report:
    report = Report("kernel")
    if not races:
        return report
    tables = [
        _means(races, counts),
        _fits(races),
        _clocks(races),
        _answers(races),
        _ours(races),
        _predictions(races),
    ]
    report.tables += [table for table in tables if table.rows]  # nobody may have answered
    for found in races:
        report.checks += found.checks()
    for threads in counts:
        report.checks += _targets(races, threads)
    report.notes += _notes(races)
    return report


# ------------------------------------------------------------ tables


def _cell(found: Ratio | None) -> Cell:
    return None if found is None else found.cell


def _means(races: list[Race], counts: Sequence[int]) -> Table:
    rows: list[list[Cell]] = []
    for threads in counts:
        for what in (FIT, PREDICT):
            least = _least(races, threads, what)
            rows.append(
                [
                    what,
                    threads,
                    *(_mean(races, peer, threads, what) for peer in PEERS),
                    _shown(geometric_mean(list(_better(races, threads, what).values()))),
                    "–" if least is None else f"{_shown(least[1])} ({least[0]})",
                ]
            )
    return Table(
        f"Geometric means over {len(races)} sets of the others' seconds divided by ours (≥: with "
        "fits that were killed at the limit, counted as if they had ended then)",
        ("of", "threads", *(f"{p} / maxmargin" for p in PEERS), "better / maxmargin", "least"),
        rows,
    )


def _mean(races: list[Race], peer: str, threads: int, what: str) -> str:
    return _shown(geometric_mean(_ratios(races, peer, threads, what)))


def _shown(found: Ratio | None) -> str:
    if found is None:
        return "–"
    return f"{'≥ ' if found.bounded else ''}{found.values.median:.2f}"


def _ratios(races: list[Race], peer: str, threads: int, what: str) -> list[Ratio]:
    return [r for found in races if (r := found.ratio(peer, threads, what)) is not None]


def _better(races: list[Race], threads: int, what: str) -> dict[str, Ratio]:
    found = {each.name: each.better(threads, what) for each in races}
    return {name: ratio for name, ratio in found.items() if ratio is not None}


def _least(races: list[Race], threads: int, what: str) -> tuple[str, Ratio] | None:
    better = _better(races, threads, what)
    return min(better.items(), key=lambda item: item[1].values.median, default=None)


def _fits(races: list[Race]) -> Table:
    rows: list[list[Cell]] = [
        [
            found.name,
            threads,
            found.seconds(Ours.name, threads),
            *(_cell(found.ratio(peer, threads)) for peer in PEERS),
            _cell(found.better(threads)),
            found.above_bare(threads),
        ]
        for found in races
        for threads in found.counts
    ]
    return Table(
        "Fits: our seconds, certificate included, the others' divided by ours, and ours as a "
        "multiple of the limit line",
        (
            "data",
            "threads",
            "maxmargin s",
            *(f"{peer} / maxmargin" for peer in PEERS),
            "better / maxmargin",
            "times the limit line",
        ),
        rows,
    )


def _clocks(races: list[Race]) -> Table:
    rows: list[list[Cell]] = [
        [
            found.name,
            threads,
            *(
                found.seconds(tool, threads, clock=clock)
                for tool in TOOLS
                for clock in ("wall", "cpu")
            ),
        ]
        for found in races
        for threads in found.counts
    ]
    columns = [f"{tool} {clock}" for tool in TOOLS for clock in ("s", "CPU s")]
    return Table("Fits: seconds of all, by both clocks", ("data", "threads", *columns), rows)


def _answers(races: list[Race]) -> Table:
    rows: list[list[Cell]] = []
    for found in races:
        for (tool, threads), proof in found.proofs.items():
            predicted = found.answers.get((tool, threads, PREDICT), [{}])[-1]
            rows.append(
                [
                    found.name,
                    tool,
                    threads,
                    f"{proof['gap']:.1e}",
                    f"{proof['worst']:.1e}",
                    proof["primal"],
                    proof["vectors"],
                    predicted.get("score"),
                ]
            )
    return Table(
        "What came out, computed anew by mm.certify: the relative gap of the whole and that of the "
        "worst pair of classes; accuracy (or R²) on test rows, training rows where there are none",
        ("data", "solver", "threads", "gap", "worst gap", "objective", "support vectors", "score"),
        rows,
    )


def _ours(races: list[Race]) -> Table:
    rows: list[list[Cell]] = []
    for found in races:
        for threads in found.counts:
            said = found.answers.get((Ours.name, threads, FIT), [{}])[-1]
            proof = found.proofs.get((Ours.name, threads), {})
            rows.append(
                [
                    found.name,
                    found.shape,
                    found.case.scaling,
                    f"{found.case.machine} ({found.case.source})",
                    threads,
                    said.get("status", "–"),
                    said.get("iterations"),
                    found.certifying(threads),
                    proof.get("seconds"),
                    found.seconds(Ours.name, threads, "bare"),
                ]
            )
    return Table(
        "The cases, and ours: seconds of the certificate inside a fit (of its thread; None if it "
        "was not seen there), of mm.certify from outside, and of the limit line: K(X, support "
        "vectors) once, by float32 tiles that are not kept",
        (
            "data",
            "size",
            "columns",
            "parameters",
            "threads",
            "status",
            "iterations",
            "certificate s",
            "mm.certify s",
            "limit line s",
        ),
        rows,
    )


def _predictions(races: list[Race]) -> Table:
    rows: list[list[Cell]] = []
    for found in races:
        for threads in found.counts:
            said = found.answers.get((Ours.name, threads, PREDICT), [{}])[-1]
            rows.append(
                [
                    found.name,
                    said.get("rows"),
                    threads,
                    found.seconds(Ours.name, threads, PREDICT),
                    *(_cell(found.ratio(peer, threads, PREDICT)) for peer in PEERS),
                ]
            )
    return Table(
        "predict: our seconds, and the others' divided by ours",
        ("data", "rows", "threads", "maxmargin s", *(f"{peer} / maxmargin" for peer in PEERS)),
        rows,
    )


# ------------------------------------------------------------ targets


def _targets(races: list[Race], threads: int) -> list[Check]:
    checks = [
        _wish(races, peer, threads, what, wished)
        for what, wishes in WISHED.items()
        for peer, wished in wishes.items()
    ]
    claim = f"{threads} thread(s): no set below {LEAST:g} times the better of the others"
    better = _better(races, threads, FIT)
    below = [f"{name} {_shown(r)}" for name, r in better.items() if r.values.median < LEAST]
    holds = not below if better else None
    checks.append(Check("target", claim, holds, ", ".join(below) or f"{len(better)} sets"))
    above = {found.name: found.above_bare(threads) for found in races}
    known = {name: value for name, value in above.items() if isinstance(value, Spread)}
    over = [f"{name} {v.median:.1f}" for name, v in known.items() if v.median > MOST_ABOVE]
    claim = f"{threads} thread(s): fits take at most {MOST_ABOVE:g} times the limit line"
    checks.append(Check("target", claim, not over if known else None, ", ".join(over) or "all"))
    return checks


def _wish(races: list[Race], peer: str, threads: int, what: str, wished: float) -> Check:
    claim = f"{what}, {threads} thread(s): {wished:g} times as fast as {peer} in the mean"
    found = geometric_mean(_ratios(races, peer, threads, what))
    if found is None:
        return Check("target", claim, None, "not compared")
    reached = found.values.median >= wished
    # A mean of lower bounds that falls short decides nothing.
    holds = True if reached else (None if found.bounded else False)
    return Check("target", claim, holds, _shown(found))


def _notes(races: list[Race]) -> list[str]:
    absent: dict[str, list[str]] = {}
    for found in races:
        for tool, why in found.skipped.items():
            absent.setdefault(f"{tool} took no part ({why})", []).append(found.name)
    limits = sorted({found.limit for found in races})
    return [
        f"solvers: {', '.join(described(name) for name in TOOLS)}",
        "LIBSVM has one thread always: its seconds are compared with ours at every number",
        f"a fit may take {', '.join(f'{limit:g}' for limit in limits)} s",
        *(f"{said}: {', '.join(names)}" for said, names in absent.items()),
    ]
