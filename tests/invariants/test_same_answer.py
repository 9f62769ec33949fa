"""The same answer with loops compiled or cached, on a machine that is idle or busy.

Every answer is computed in a process of its own, which writes it as JSON:
``python -m tests.invariants.test_same_answer SET …``. Only the seconds may differ.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

import maxmargin as mm
from tests.diagnosis.test_diagnose_verdicts import CASES

ROOT = Path(__file__).parents[2]
BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
SETS = [*CASES, *BUNDLED]
SEED = 1000  # none of the seeds that verdicts are tested with
GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
TIMED = re.compile(r"\[[^]]*\bs\]|\b[\d.,]+ (s|ms|seconds?|minutes?)\b")


def load(name: str) -> tuple[Any, Any]:
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return X[::2], y[::2]
    return CASES[name][1](SEED)


def without_seconds(value: Any) -> Any:
    """Return plain data without what is measured with a clock."""
    if isinstance(value, dict):
        kept = {key: without_seconds(entry) for key, entry in value.items()}
        return {key: entry for key, entry in kept.items() if not re.search("seconds|_time", key)}
    if isinstance(value, list | tuple):
        return [without_seconds(entry) for entry in value]
    return TIMED.sub("", value) if isinstance(value, str) else value


def answers(name: str) -> dict[str, Any]:
    """Return all that a diagnosis and a search say about one set."""
    X, y = load(name)
    found = mm.diagnose(X, y)
    search = mm.SVCSearchCV(mm.SVC(), GRID, cv=3).fit(X, y)
    table = {key: np.asarray(column).tolist() for key, column in search.cv_results_.items()}
    said = {
        "diagnosis": found.to_dict(),
        "printed": str(found),
        "model": repr(found.recommend()),
        "search": [search.best_params_, search.best_score_, table],
    }
    return dict(without_seconds(said))


def run(arguments: Sequence[str], cache: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "COLUMNS": "100"}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(names: Sequence[str], cache: Path) -> dict[str, Any]:
    said = run(["tests.invariants.test_same_answer", *names], cache)
    return dict(json.loads(said, parse_constant=str))  # NaN would differ from itself


@contextmanager
def busy_machine() -> Iterator[None]:
    """Keep as many processes computing as there are cores, and one more."""
    burn = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(burn) for _ in range(1 + (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.wide
def test_cold_and_warm_agree(tmp_path: Path) -> None:
    names = ["circles", "gap", "iris"]
    cold = ask(names, tmp_path)
    assert list(tmp_path.rglob("*.nbi")), "nothing was compiled, so that this tests nothing"
    assert cold["circles"]["diagnosis"]["verdict"] == "non-linearly separable"
    assert ask(names, tmp_path) == cold


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, len(SETS), 6))
def test_cold_warm_and_under_load_agree(first: int, tmp_path: Path) -> None:
    names = SETS[first : first + 6]
    cold = ask(names, tmp_path)
    warm = ask(names, tmp_path)
    with busy_machine():
        loaded = ask(names, tmp_path)
    for name in names:
        assert cold[name] == warm[name], name
        assert loaded[name] == warm[name], name


@pytest.mark.full
@pytest.mark.parametrize("name", ["moons", "breast cancer"])
def test_try_prints_the_same(name: str, tmp_path: Path) -> None:
    X, y = load(name)
    file = tmp_path / "rows.csv"
    header = ",".join([*(f"x{j}" for j in range(X.shape[1])), "label"])
    np.savetxt(file, np.column_stack([X, y]), "%.17g", ",", header=header, comments="")
    command = ["maxmargin", "try", str(file), "--no-report"]

    def printed() -> list[str]:
        return TIMED.sub("", run(command, tmp_path / "cache")).split()  # seconds move line ends

    cold, warm = printed(), printed()
    assert cold == warm
    with busy_machine():
        assert printed() == warm


if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: answers(name) for name in sys.argv[1:]}))
