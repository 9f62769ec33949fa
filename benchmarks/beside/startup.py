"""Start-up in fresh processes: imports, the first fit with cached loops, and a cold compile.

For a cold compile the package is copied to a folder of its own, and numba is given an empty cache
for every fit.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import contest
from benchmarks.children import CHILDREN, ROOT, run_python
from benchmarks.contest import Contest, Outcome, Results
from benchmarks.measure import spread, timed
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report

TINY = "[[0.0, 1.0], [1.0, 0.0], [2.0, 0.5], [0.5, 2.0]], [0, 1, 1, 0]"
BASE = "import sklearn"
WARM = {
    "nothing": "pass",
    BASE: "import sklearn",
    "import what we use of sklearn": ("import sklearn.utils.validation, sklearn.utils.multiclass"),
    "import maxmargin": "import maxmargin",
    "Perceptron fit": f"import maxmargin as mm; mm.Perceptron().fit({TINY})",
    "KernelPerceptron fit": f"import maxmargin as mm; mm.KernelPerceptron().fit({TINY})",
    "SVC fit": f"import maxmargin as mm; mm.SVC().fit({TINY})",
    "LinearSVC fit": f"import maxmargin as mm; mm.LinearSVC().fit({TINY})",
    "scikit-learn's Perceptron fit": (
        f"from sklearn.linear_model import Perceptron; Perceptron().fit({TINY})"
    ),
}
# Seconds beyond `import sklearn`.
TARGETS = {
    "import maxmargin": 0.15,
    "Perceptron fit": 0.4,
    "KernelPerceptron fit": 0.4,
    "SVC fit": 0.4,
    "LinearSVC fit": 0.4,
}
COLD = {
    "Perceptron": "mm.Perceptron().fit(X, y)",
    "Perceptron, sparse": "mm.Perceptron().fit(sp.csr_array(X), y)",
    "KernelPerceptron": "mm.KernelPerceptron().fit(X, y)",
    "SVC": "mm.SVC().fit(X, y)",
    "LinearSVC": "mm.LinearSVC().fit(X, y)",
    "search": "mm.SVCSearchCV(mm.SVC(), {'C': [1.0, 10.0]}, cv=2).fit(X, y)",
    "diagnosis": "mm.diagnose(X, y)",
}
COLD_TARGET = 10.0  # seconds for a perceptron
# Counts what the loops found in a cache.
CHILD = """
import json, sys, time
import numpy as np, scipy.sparse as sp
import maxmargin as mm
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
wall, cpu = time.perf_counter(), time.process_time()
{fit}
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
loops = [
    loop
    for name, module in list(sys.modules.items()) if name.startswith("maxmargin.loops.")
    for loop in vars(module).values()
    if not isinstance(loop, type) and getattr(loop, "signatures", None) and loop.__module__ == name
]
signatures = sum(len(loop.signatures) for loop in loops)
cached = sum(sum(loop.stats.cache_hits.values()) for loop in loops)
print(json.dumps(dict(wall=wall, cpu=cpu, signatures=signatures, cached=cached)))
"""


def run(options: Options) -> Report:
    """Measure everything asked for."""
    chosen = options.chosen(("warm", "cold"))
    with tempfile.TemporaryDirectory() as folder:
        report, outcomes = contest.run("startup", _contests(chosen, Path(folder)), options)
    report.checks += [check for outcome in outcomes for check in _targets(outcome)]
    return report


def _contests(chosen: list[str], folder: Path) -> Iterator[Contest]:
    if "warm" in chosen:
        calls = {name: partial(_new_process, code) for name, code in WARM.items()}
        _new_process(WARM["KernelPerceptron fit"])  # the loops are compiled from here on
        yield Contest("warm", "a new process", calls, base=BASE)
    if "cold" in chosen:
        copy = copied(ROOT / "src", folder)
        fits = {name: partial(cold, fit, copy) for name, fit in COLD.items()}
        yield Contest("cold", "nothing compiled", fits, "Perceptron", facts=facts, checks=is_cold)


def _new_process(code: str) -> dict[str, float]:
    return timed(partial(run_python, ["-c", code]), CHILDREN)()._asdict()


def cold(fit: str, environment: Mapping[str, str]) -> Any:
    """Fit in a new process that has no compiled loops; return what it says of itself."""
    shutil.rmtree(environment["NUMBA_CACHE_DIR"], ignore_errors=True)
    return json.loads(run_python(["-c", CHILD.format(fit=fit)], environment))


def copied(source: Path, folder: Path) -> dict[str, str]:
    """Copy a package, and return the environment in which the copy is imported."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source / "maxmargin", folder / "lib" / "maxmargin", ignore=ignored)
    environment = {"PYTHONPATH": str(folder / "lib"), "NUMBA_CACHE_DIR": str(folder / "cache")}
    # Python's own compilation is not what is measured; and make sure the copy is what is imported.
    where = run_python(["-c", "import maxmargin; print(maxmargin.__file__)"], environment)
    if not Path(where.strip()).is_relative_to(folder):
        raise RuntimeError("the copied package is shadowed by the installed one")
    return environment


def facts(name: str, said: Any) -> dict[str, Cell]:
    """Return how many loops were compiled."""
    return {"signatures compiled": said["signatures"]}


def is_cold(results: Results) -> list[Check]:
    """Check that nothing was compiled before."""
    found = sum(said["cached"] for said in results.values())
    return [Check("same problem", "no loop came from a cache", found == 0, f"{found} did")]


def _targets(outcome: Outcome) -> list[Check]:
    timings, checks = outcome.timings, []
    if outcome.contest.name == "warm":
        for name, most in TARGETS.items():
            beyond = spread(timings.wall(name) - timings.wall(BASE)).median
            cpu = spread(timings.cpu(name) - timings.cpu(BASE)).median
            claim = f"{name}: at most {most} s beyond {BASE}"
            found = f"{beyond:.2f} s, CPU {cpu:.2f} s"
            checks.append(Check("target", claim, bool(beyond <= most), found))
        return checks
    for name in (name for name in COLD if "Perceptron" in name):
        seconds = timings.seconds(name).median
        claim = f"{name}, nothing compiled: at most {COLD_TARGET:g} s"
        checks.append(Check("target", claim, bool(seconds <= COLD_TARGET), f"{seconds:.1f} s"))
    return checks
