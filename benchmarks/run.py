"""Run one benchmark: ``python -m benchmarks.run NAME [--data DIR] [--quick] …``."""

import argparse
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import against, machine
from benchmarks.options import Options
from benchmarks.report import Report
from benchmarks.suite.trials import TRIALS

# A benchmark is a module with ``run(options) -> Report``; its docstring's first line is its help.
BENCHMARKS = {
    "perceptron": "benchmarks.suite.perceptron",
    "kernel-tiles": "benchmarks.suite.kernel_tiles",
    "startup": "benchmarks.suite.startup",
    "linear": "benchmarks.suite.linear",
    "linear-table": "benchmarks.suite.linear_table",
    "kernel": "benchmarks.suite.kernel",
    "kernel-table": "benchmarks.suite.kernel_table",
    "path": "benchmarks.suite.path",
    "search": "benchmarks.suite.search",
    "recommend": "benchmarks.suite.recommend",
    "maps": "benchmarks.suite.maps",
    "kpca": "benchmarks.suite.kpca",
}
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and save; return 1 if the candidates did not solve the same problem."""
    given = parser().parse_args(arguments)
    options = Options(
        given.data,
        tuple(given.only),
        given.repeats,
        given.quick,
        given.threads,
        given.limit,
        given.rows,
        given.compare,
        given.out,
        given.against,
    )
    before = machine.facts()
    report = _report(given.name, options)
    if options.quick:
        report.notes.append("--quick: the sizes are a trial's, and the figures not worth quoting")
    print(f"\n{report}\n")
    facts = {**before, "load after": machine.load(), "arguments": recorded(given)}
    try:
        written = report.save(given.out, facts)
    except ModuleNotFoundError as missing:
        print(f"no picture: {missing.name} is not installed")
    else:
        print("written:", ", ".join(path.name for path in written))
    return 0 if report.comparable else 1


def _report(name: str, options: Options) -> Report:
    if options.against is None:
        report: Report = importlib.import_module(BENCHMARKS[name]).run(options)
        return report
    if name not in TRIALS:
        known = ", ".join(TRIALS)
        raise SystemExit(f"--against compares {known}; {name} has no trials for two checkouts")
    return against.run(name, TRIALS[name](options), options)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    said = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    said.add_argument("name", metavar="NAME", choices=BENCHMARKS, help=", ".join(BENCHMARKS))
    said.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("MAXMARGIN_DATA") or None,
        help="folder of NAME.svm.xz files (and mnist.npz); default: the variable MAXMARGIN_DATA",
    )
    said.add_argument("--only", nargs="+", default=[], metavar="CASE", help="only these cases")
    said.add_argument("--repeats", type=_count, default=5, help="measured rounds (default 5)")
    said.add_argument("--out", type=Path, default=RESULTS, help="where JSON and PNG go")
    said.add_argument("--quick", action="store_true", help="small sizes: a trial, not a figure")
    said.add_argument("--threads", type=_count, help="threads for BLAS and for us")
    said.add_argument("--limit", type=float, help="kernel: seconds allowed for one fit")
    said.add_argument("--rows", type=_count, help="kernel: at most so many rows of each set")
    said.add_argument("--compare", action="store_true", help="kernel-table: beside LIBSVM")
    said.add_argument(
        "--against",
        type=Path,
        metavar="PATH",
        help=f"compare with another checkout of the library instead ({', '.join(TRIALS)})",
    )
    return said


def recorded(given: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments as they are kept: folders by their last name, they are nobody's."""
    return {
        name: value.name if isinstance(value, Path) else value
        for name, value in vars(given).items()
    }


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1 is needed, got {text!r}")
    return int(text)


if __name__ == "__main__":
    raise SystemExit(main())
