"""A grid of C and γ with five folds: SVCSearchCV beside GridSearchCV around the peers.

liquidSVM, which searches by itself, takes part if the environment variable MAXMARGIN_LIQUIDSVM
names a Python interpreter that can import it. It runs in a process of its own, on its own grid of
10 × 10, without intercepts.
"""

import importlib
import importlib.util
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import contest, datasets
from benchmarks.children import FailedError
from benchmarks.contest import Contest, Results
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report

OURS, LIBSVM, ONEDAL = "SVCSearchCV", "GridSearchCV, LIBSVM", "GridSearchCV, oneDAL"
LIQUIDSVM, LIQUIDSVM_PYTHON = "liquidSVM", "MAXMARGIN_LIQUIDSVM"
TARGETS = {LIBSVM: 40.0, ONEDAL: 20.0, LIQUIDSVM: 4.0}
SETS = ("satimage", "usps", "magic04", "ijcnn1")
ROWS = 4000
CS = np.logspace(-2, 3, 10)
GAMMAS = np.logspace(-2, 1, 10)  # times 1/d, for columns of spread 1
JOBS = 2
BEHIND = 2e-3  # of accuracy: a few rows


def run(options: Options) -> Report:
    """Measure every set that can be had."""
    with threadpool_limits(options.threads or JOBS):
        report, _ = contest.run("search", _contests(options), options)
    report.notes.append(f"{len(CS)} C × {len(GAMMAS)} γ × 5 folds")
    if importlib.util.find_spec("sklearnex") is None:
        report.notes.append("oneDAL is left out: scikit-learn-intelex is not installed")
    if not os.environ.get(LIQUIDSVM_PYTHON):
        report.notes.append(
            f"liquidSVM is left out: {LIQUIDSVM_PYTHON} names no Python interpreter that has it"
        )
    return report


def _contests(options: Options) -> Iterator[Contest]:
    for dataset in datasets.available(options.chosen(SETS), options.data, options.quick):
        most = min(options.at_most(ROWS, quick=600), len(dataset.y))
        X, y = prepared(datasets.sampled(dataset, most))
        jobs = options.threads or JOBS
        searches = _searches(X, jobs)
        calls: dict[str, Any] = {
            name: partial(search.fit, X, y) for name, search in searches.items()
        }
        if python := os.environ.get(LIQUIDSVM_PYTHON):
            calls[LIQUIDSVM] = partial(search_by_liquidsvm, python, X, y, jobs)
        _compile(X, y)
        yield Contest(
            dataset.name,
            f"{X.shape[0]}×{X.shape[1]}",
            calls,
            base=OURS,
            least={peer: TARGETS[peer] for peer in calls if peer != OURS},
            facts=_facts,
            checks=partial(_checks, dataset.name),
        )


def _searches(X: Any, jobs: int) -> dict[str, Any]:
    common: dict[str, Any] = {
        "param_grid": {"C": CS.tolist(), "gamma": (GAMMAS / X.shape[1]).tolist()},
        "cv": StratifiedKFold(5, shuffle=True, random_state=0),
        "n_jobs": jobs,
        "refit": False,
    }
    found = {
        OURS: mm.SVCSearchCV(mm.SVC(), **common),
        LIBSVM: GridSearchCV(svm.SVC(), **common),
    }
    if importlib.util.find_spec("sklearnex") is not None:
        found[ONEDAL] = GridSearchCV(importlib.import_module("sklearnex.svm").SVC(), **common)
    return found


# Its import asks for a setting by a name that newer interpreters do not know.
_LIQUIDSVM = """
import json, sys, sysconfig, time, warnings
known = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: known("EXT_SUFFIX" if name == "SO" else name)
warnings.simplefilter("ignore")
import numpy as np
import liquidSVM
given = np.load(sys.argv[1])
wall, cpu = time.perf_counter(), time.process_time()
model = liquidSVM.mcSVM(given["X"], given["y"], threads=int(sys.argv[2]), folds=5, display=0)
spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
best = None
if len(np.unique(given["y"])) == 2:  # of more classes it tells the errors of pairs only
    best = 1 - float(model.errTrain[:, 7].reshape(5, -1).mean(axis=0).min())
print(json.dumps({**spent, "best": best}))
"""


def search_by_liquidsvm(python: str, X: Any, y: Any, jobs: int) -> dict[str, Any]:
    """Return the seconds that liquidSVM takes, and the best mean accuracy of held-out rows."""
    labels = np.unique(y, return_inverse=True)[1] + 1.0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npz"
        np.savez(file, X=np.ascontiguousarray(X, dtype=np.float64), y=labels)
        command = [python, "-c", _LIQUIDSVM, str(file), str(jobs)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise FailedError(f"liquidSVM: {done.stderr[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _compile(X: Any, y: Any) -> None:
    """Search once on few rows, but above 2000 of them: from there kernel values are float32."""
    some = np.random.default_rng(0).permutation(len(y))[:2500]
    mm.SVCSearchCV(mm.SVC(), {"C": [1.0]}, cv=2, refit=False).fit(X[some], y[some])


def prepared(dataset: datasets.Dataset) -> tuple[Any, Any]:
    """Return dense columns of spread 1, and digits as two classes: up to 5 and above."""
    y = np.asarray(dataset.y)
    if dataset.name == "usps":
        y = np.where(y <= np.unique(y)[5], 0, 1)
    return datasets.scaled(dataset, "standardised").X, y


def _facts(name: str, search: Any) -> dict[str, Cell]:
    """Tell the best score, and the gaps of the winner and of the loosest fit."""
    if name == LIQUIDSVM:
        best = search["best"]
        return {"best score": best and f"{best:.4f}", "its gap": None, "largest gap": None}
    gaps = search.cv_results_.get("max_relative_gap")
    return {
        "best score": f"{search.best_score_:.4f}",
        "its gap": None if gaps is None else float(gaps[search.best_index_]),
        "largest gap": None if gaps is None else float(np.max(gaps)),
    }


def _checks(data: str, searches: Results) -> list[Check]:
    """Check that the peers' winners score as well in our results as ours."""
    ours, checks = searches[OURS], []
    for peer, theirs in searches.items():
        if peer == LIQUIDSVM and theirs["best"] is not None:
            behind = float(theirs["best"] - ours.best_score_)
            claim = f"{data}: {peer}, on its own grid, scores no better than ours, up to a few rows"
            checks.append(Check("target", claim, behind <= BEHIND, f"by {behind:.1g}"))
        elif peer not in (OURS, LIQUIDSVM):
            scores = ours.cv_results_["mean_test_score"]
            behind = float(ours.best_score_ - scores[theirs.best_index_])
            claim = f"{data}: the winner of {peer} is ours, up to a few rows"
            found = f"behind by {behind:.1g}"
            checks.append(Check("same problem", claim, bool(behind <= BEHIND), found))
    return checks
