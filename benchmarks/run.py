"""Run one benchmark: ``python -m benchmarks.run NAME [--data DIR] [--quick] …``."""

import argparse
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.options import RESULTS, Options
from benchmarks.report import Report

# A benchmark is a function of the options that returns a Report; its module says what it is.
BENCHMARKS = {
    "kernel": "benchmarks.beside.kernel:run",
    "linear": "benchmarks.beside.linear:run",
    "search": "benchmarks.beside.search:run",
    "everyday": "benchmarks.beside.everyday:run",
    "kpca": "benchmarks.beside.kpca:run",
    "perceptron": "benchmarks.beside.perceptron:run",
    "startup": "benchmarks.beside.startup:run",
    "reading": "benchmarks.beside.reading:run",
    "scale": "benchmarks.beside.scale:run",
}
# Those that can compare two checkouts of the library.
AGAINST = {
    "kernel": "benchmarks.against.trials:kernel",
    "linear": "benchmarks.against.trials:linear",
    "search": "benchmarks.against.trials:search",
    "kpca": "benchmarks.against.trials:kpca",
    "startup": "benchmarks.against.startup:run",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and save; return 1 if the candidates did not solve the same problem."""
    given = parser().parse_args(arguments)
    options = Options(**{name: value for name, value in vars(given).items() if name != "name"})
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
    if options.against is not None and name not in AGAINST:
        known = ", ".join(AGAINST)
        raise SystemExit(f"--against works with {known}; {name} has nothing to compare")
    module, _, function = (AGAINST if options.against else BENCHMARKS)[name].partition(":")
    report: Report = getattr(importlib.import_module(module), function)(options)
    return report


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
    said.add_argument("--only", nargs="+", default=(), metavar="CASE", help="only these cases")
    said.add_argument("--repeats", type=_count, default=5, help="measured rounds (default 5)")
    said.add_argument("--out", type=Path, default=RESULTS, help="where JSON and PNG go")
    said.add_argument("--quick", action="store_true", help="small sizes: a trial, not a figure")
    said.add_argument("--threads", type=_count, help="threads for BLAS and for us")
    said.add_argument(
        "--defaults",
        action="store_true",
        help="kernel, linear: the others at their default tolerance only, and no targets",
    )
    said.add_argument("--limit", type=float, help="seconds allowed for one fit")
    said.add_argument("--rows", type=_count, help="at most so many rows of each set")
    said.add_argument(
        "--against",
        type=Path,
        metavar="PATH",
        help=f"compare this checkout with another one instead ({', '.join(AGAINST)})",
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
