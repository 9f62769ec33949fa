"""The first fit ever on a machine: all loops it needs are compiled.

The package is copied to a folder of its own and numba is given an empty cache for every fit.
"""

import json
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import maxmargin
from benchmarks import pictures
from benchmarks.children import CHILDREN, run_python
from benchmarks.measure import Sampler, Timings, interleave, spread, timed
from benchmarks.report import Cell, Check, Table

FITS = {
    "Perceptron, dense": "mm.Perceptron().fit(X, y)",
    "Perceptron, sparse": "mm.Perceptron().fit(sp.csr_array(X), y)",
    "KernelPerceptron": "mm.KernelPerceptron().fit(X, y)",
}

# Counts the machine-code versions of each loop that the fit has asked for.
CHILD = """
import json, sys, time
import numpy as np, scipy.sparse as sp
import maxmargin as mm
X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.5], [0.5, 2.0]]), [0, 1, 1, 0]
start = time.perf_counter()
{fit}
seconds = time.perf_counter() - start
found = [
    (f"{{name.rpartition('.')[2]}}.{{key}}", loop)
    for name, module in list(sys.modules.items()) if name.startswith("maxmargin.loops.")
    for key, loop in vars(module).items()
    if getattr(loop, "signatures", None) and loop.__module__ == name
]
loops = {{key: len(loop.signatures) for key, loop in found}}
cached = sum(sum(loop.stats.cache_hits.values()) for _, loop in found)
print(json.dumps({{"seconds": seconds, "loops": loops, "cached": cached}}))
"""


class Compiles(NamedTuple):
    """Timings of whole processes, and what the last child said of each fit."""

    timings: Timings[str]
    children: dict[str, Any]


def measure(repeats: int) -> Compiles:
    """Make each first fit in a process that has no compiled loops, by turns."""
    children: dict[str, Any] = {name: [] for name in FITS}
    with tempfile.TemporaryDirectory() as folder:
        environment = _copied_package(Path(folder))

        def fit(name: str) -> None:
            code = CHILD.format(fit=FITS[name])
            children[name].append(json.loads(run_python(["-c", code], environment)))

        def sampler(name: str) -> Sampler:
            sample = timed(partial(fit, name), CHILDREN)

            def cold() -> Any:
                shutil.rmtree(environment["NUMBA_CACHE_DIR"], ignore_errors=True)
                return sample()

            return cold

        timings = interleave({name: sampler(name) for name in FITS}, repeats, warm_ups=0)
    return Compiles(timings, children)


def _copied_package(folder: Path) -> dict[str, str]:
    source = Path(maxmargin.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / "lib" / "maxmargin", ignore=ignored)
    environment = {"PYTHONPATH": str(folder / "lib"), "NUMBA_CACHE_DIR": str(folder / "cache")}
    # Python's own compilation is not what is measured; and make sure the copy is what is imported.
    where = run_python(["-c", "import maxmargin; print(maxmargin.__file__)"], environment)
    if not Path(where.strip()).is_relative_to(folder):
        raise RuntimeError("the copied package is shadowed by the installed one")
    return environment


def table(compiles: Compiles) -> Table:
    """Return seconds of the fit alone, of the whole process, and what was compiled."""
    rows: list[list[Cell]] = [
        [
            name,
            spread([child["seconds"] for child in compiles.children[name]]),
            spread(compiles.timings.wall(name)),
            spread(compiles.timings.cpu(name)),
            len(compiles.children[name][-1]["loops"]),
            sum(compiles.children[name][-1]["loops"].values()),
        ]
        for name in FITS
    ]
    return Table(
        "A new process and no compiled loops",
        ("first fit", "fit s", "process wall s", "process CPU s", "loops", "signatures"),
        rows,
    )


def signatures(compiles: Compiles) -> str:
    """Say which loops were compiled for how many argument types."""
    counts = {name: compiles.children[name][-1]["loops"] for name in FITS}
    said = (
        f"{name}: {', '.join(f'{loop} {count}' for loop, count in sorted(loops.items()))}"
        for name, loops in counts.items()
    )
    return "signatures per loop: " + "; ".join(said)


def is_cold(compiles: Compiles) -> Check:
    """Check that no fit found a loop already compiled."""
    found = sum(child["cached"] for children in compiles.children.values() for child in children)
    return Check("same problem", "cold: no loop came from a cache", found == 0, f"{found} did")


def targets(compiles: Compiles, most: float) -> list[Check]:
    """Check each first fit against the target, in seconds of the fit itself."""
    checks = []
    for name in FITS:
        found = spread([child["seconds"] for child in compiles.children[name]]).median
        claim = f"{name}, nothing compiled: at most {most:g} s"
        checks.append(Check("target", claim, bool(found <= most), f"{found:.1f} s"))
    return checks


def bars(compiles: Compiles, most: float) -> dict[str, pictures.Bar]:
    """Return what the picture shows."""
    return {
        name: (spread([child["seconds"] for child in compiles.children[name]]), most)
        for name in FITS
    }
