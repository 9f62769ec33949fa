"""Start-up in fresh processes: imports, the first fit with cached loops, and a cold compile."""

from collections.abc import Callable
from functools import partial

from benchmarks import pictures
from benchmarks.children import CHILDREN, run_python
from benchmarks.measure import Series, Timings, interleave, ratio, spread, timed
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table
from benchmarks.suite import cold

TINY = "[[0.0, 1.0], [1.0, 0.0], [2.0, 0.5], [0.5, 2.0]], [0, 1, 1, 0]"
BASE = "import sklearn"
USED = "import what we use of sklearn"
WARM = {
    "nothing": "pass",
    BASE: "import sklearn",
    USED: "import sklearn.utils.validation, sklearn.utils.multiclass",
    "import maxmargin": "import maxmargin",
    "Perceptron fit": f"import maxmargin as mm; mm.Perceptron().fit({TINY})",
    "KernelPerceptron fit": f"import maxmargin as mm; mm.KernelPerceptron().fit({TINY})",
    "scikit-learn's Perceptron fit": (
        f"from sklearn.linear_model import Perceptron; Perceptron().fit({TINY})"
    ),
}
# Seconds beyond `import sklearn`.
TARGETS = {"import maxmargin": 0.15, "Perceptron fit": 1.0, "KernelPerceptron fit": 1.0}
COLD_TARGET = 10.0


def run(options: Options) -> Report:
    """Measure everything asked for."""
    report = Report("startup")
    panels: dict[str, Callable[[], dict[str, pictures.Bar]]] = {}
    chosen = options.chosen(("warm", "cold"))
    if "warm" in chosen:
        print("startup: imports and warm fits", flush=True)
        timings = measure_warm(options.repeats)
        report.tables.append(_warm_table(timings))
        report.checks += [_target(timings, name) for name in TARGETS]
        panels["beyond import sklearn, loops cached"] = partial(_warm_bars, timings)
    if "cold" in chosen:
        print("startup: cold compiles", flush=True)
        compiles = cold.measure(1 if options.quick else options.repeats)
        report.tables.append(cold.table(compiles))
        report.notes.append(cold.signatures(compiles))
        report.checks += [cold.is_cold(compiles), *cold.targets(compiles, COLD_TARGET)]
        panels["the first fit ever, loops compiled"] = partial(cold.bars, compiles, COLD_TARGET)
    report.draw = lambda: pictures.lying_bars(
        {title: bars() for title, bars in panels.items()}, "seconds (black: target)"
    )
    return report


def measure_warm(repeats: int) -> Timings[str]:
    """Time each piece of code in processes of its own, by turns; the first round fills caches."""
    samplers = {
        name: timed(partial(run_python, ["-c", code]), CHILDREN) for name, code in WARM.items()
    }
    return interleave(samplers, repeats)


def _beyond(timings: Timings[str], name: str, base: str = BASE) -> Series:
    return timings.wall(name) - timings.wall(base)


def _cpu_beyond(timings: Timings[str], name: str) -> Series:
    return timings.cpu(name) - timings.cpu(BASE)


def _warm_table(timings: Timings[str]) -> Table:
    rows: list[list[Cell]] = [
        [
            name,
            spread(timings.wall(name)),
            spread(timings.cpu(name)),
            None if name in ("nothing", BASE) else spread(_beyond(timings, name)),
            None if name in ("nothing", BASE) else spread(_cpu_beyond(timings, name)),
            None if name in ("nothing", BASE, USED) else spread(_beyond(timings, name, USED)),
            spread(ratio(timings.wall(name), timings.wall(BASE))),
            TARGETS.get(name),
        ]
        for name in WARM
    ]
    return Table(
        "A new process, loops already compiled",
        (
            "what it does",
            "wall s",
            "CPU s",
            f"s beyond {BASE}",
            "the same in CPU s",
            f"s beyond {USED}",
            f"ratio to {BASE}",
            "target",
        ),
        rows,
    )


def _target(timings: Timings[str], name: str) -> Check:
    found = spread(_beyond(timings, name)).median
    claim = f"{name}: at most {TARGETS[name]} s beyond {BASE}"
    cpu = spread(_cpu_beyond(timings, name)).median
    return Check("target", claim, bool(found <= TARGETS[name]), f"{found:.2f} s, CPU {cpu:.2f} s")


def _warm_bars(timings: Timings[str]) -> dict[str, pictures.Bar]:
    names = [name for name in WARM if name not in ("nothing", BASE)]
    return {name: (spread(_beyond(timings, name)), TARGETS.get(name)) for name in names}
