"""Small files of several kinds, and the command line run within this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from maxmargin.cli import main

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder of its own; an unexpected exception fails the test."""
    monkeypatch.chdir(tmp_path)

    def invoke(*words: object, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(word) for word in words], input=stdin)

    return invoke


@pytest.fixture
def run_json(run: Run) -> Callable[..., Any]:
    """Run a command with --json; standard output must be one JSON object and nothing else."""

    def invoke(*words: object, code: int = 0, stdin: bytes | None = None) -> Any:
        result = run(*words, "--json", stdin=stdin)
        assert result.exit_code == code, result.output
        assert result.stdout.count("\n") == 1
        return json.loads(result.stdout, parse_constant=pytest.fail)

    return invoke


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A table with words, dates, gaps, numbers of rows and an accent in its name."""
    rng = np.random.default_rng(0)
    age, city = rng.integers(18, 80, 120), rng.choice(["Rome", "Oslo", "São Paulo"], 120)
    risk = np.where(age + 20 * (city == "Oslo") + rng.normal(0, 6, 120) > 60, "high", "low")
    lines = ["id,age,city,joined,risk"]
    for k in range(120):
        shown = "" if k % 17 == 3 else str(age[k])
        town = "" if k % 29 == 5 else city[k]
        lines.append(f"{k + 1},{shown},{town},20{k % 20 + 10}-0{k % 9 + 1}-15,{risk[k]}")
    path = tmp_path / "Leute über 18.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    """Numbers to predict, far from 0 and of large spread."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    price = 5000 + 900 * np.sin(2 * X[:, 0]) + 300 * X[:, 1] + rng.normal(0, 30, 120)
    path = tmp_path / "houses.csv"
    lines = [f"{a:.4f},{b:.4f},{p:.2f}" for (a, b), p in zip(X, price, strict=True)]
    path.write_text("\n".join(["a,b,price", *lines]))
    return path


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    """Svmlight text with whole labels, which LIBSVM reads, too."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 2))
    labels = np.where((X**2).sum(axis=1) > 1.2, 1, -1)
    path = tmp_path / "rings.svm"
    rows = zip(labels, X, strict=True)
    path.write_text("".join(f"{y} 1:{a:.6f} 2:{b:.6f}\n" for y, (a, b) in rows))
    return path
