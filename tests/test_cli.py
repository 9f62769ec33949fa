"""The command line: the main job from end to end, and sentences instead of tracebacks."""

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner, Result
from sklearn.dummy import DummyClassifier

from maxmargin.cli import facts, main, trial

MODELS = (
    "Perceptron",
    "Perceptron, pocket",
    "AveragedPerceptron",
    "VotedPerceptron",
    "KernelPerceptron, rbf",
)


class Pretended(DummyClassifier):
    """Fits at once; shows what a separated and an unseparated fit would."""

    def __init__(self, margin: float = 0.125) -> None:
        super().__init__()
        self.margin = margin

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Pretended":
        super().fit(X, y)
        self.epochs_, self.mistakes_, self.updates_ = 3, 41, 42
        self.margin_ = self.margin
        self.mistake_bound_ = 1234.5 if self.margin > 0 else math.inf
        self.stop_reason_ = "an epoch passed without a mistake"
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return 1.0 if self.margin > 0 else 0.5


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["try", *map(str, arguments)])


def columns(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [(name, Pretended(0.125 if name == "Perceptron" else -1.0)) for name in MODELS]
    monkeypatch.setattr(trial, "_family", lambda _trial: models)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    rows = [f"{i % 7},{i * 1000},{'yes' if i % 7 > 3 else 'no'}" for i in range(60)]
    path.write_text("\n".join(["small,large,label", *rows]))
    return path


def test_help_and_import_are_light() -> None:
    code = "import sys, maxmargin.cli; print('numba' in sys.modules, 'sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"
    assert CliRunner().invoke(main, ["--help"]).exit_code == 0


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", "try", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "FILE is svmlight" in done.stdout


def test_bundled_data_end_to_end() -> None:
    result = invoke()
    assert result.exit_code == 0, result.output
    assert "569 × 30" in result.output
    assert "Training on 398 rows, testing on 171." in result.output
    assert all(result.output.count(name) >= 2 for name in MODELS)
    assert max(map(len, result.output.splitlines())) <= trial.PIPE_WIDTH


def test_seed_decides_everything() -> None:
    first, second = invoke("--seed", 3), invoke("--seed", 3)
    assert first.exit_code == 0
    assert first.output == second.output


@pytest.mark.usefixtures("pretended")
def test_table_shows_the_fits(table: Path) -> None:
    result = invoke(table)
    rows = {cells[0]: cells for cells in map(columns, result.output.splitlines()) if cells[5:]}
    assert rows["Perceptron"][1:5] == ["3", "41", "1234", "0.125"]
    assert rows["Perceptron, pocket"][3:5] == ["none known", "–"]
    assert result.output.count("an epoch passed without a mistake") == 1
    assert "; ".join(MODELS) in result.output
    assert "label column 'label'" in result.output


@pytest.mark.usefixtures("pretended")
def test_scaling_is_offered_then_done(table: Path) -> None:
    assert "again with --scale" in " ".join(invoke(table).output.split())
    assert "mean 0" in invoke(table, "--scale").output


@pytest.mark.usefixtures("pretended")
def test_sparse_data_is_scaled_without_shifting(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("\n".join(f"{i % 2} {i + 1}:{i + 1}" for i in range(20)))
    assert "largest |x|" in invoke(path, "--scale").output.replace("factor", "")
    assert "Each column is divided" in invoke(path, "--scale").output


@pytest.mark.usefixtures("pretended")
def test_kernel_is_skipped_on_many_rows(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trial.MAX_ROWS, "KernelPerceptron, rbf", 10)
    assert "Skipped: above 10 training rows" in invoke(table).output


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (None, [], "there is no file"),
        ("", [], "empty"),
        ("a,b,y\n1,red,2\n", [], "a.csv:2: column 2 (b): 'red'"),
        ("a,y\n1,2\n", ["--label", "z"], "no column is named 'z'"),
        ("a,y\n1,2\n3,2\n", [], "nothing to separate"),
        ("a,y\n1,2.5\n3,3.5\n", [], "not classification"),
        ("a,y\n" + "1,u\n2,v\n" * 3, ["--test", "0.01"], "choose another --test"),
        ("1 5000000000:1\n2 1:1\n", [], "do not fit in memory"),
        ("a,y\n1,2\n", ["--test", "1"], "--test"),
        ("a,y\n1,2\n", ["--seed", "-1"], "--seed"),
    ],
)
def test_bad_input_is_a_sentence(
    tmp_path: Path, content: str | None, arguments: list[str], words: str
) -> None:
    path = tmp_path / ("a.svm" if content and ":" in content else "a.csv")
    if content is not None:
        path.write_text(content)
    result = invoke(path, *arguments)
    assert result.exit_code in (1, 2)
    assert isinstance(result.exception, SystemExit)
    assert words in result.output


def test_label_without_a_file_is_refused() -> None:
    assert "there is no FILE" in invoke("--label", "y").output


# Facts about the data.


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_facts_do_not_depend_on_storage(make: Any) -> None:
    X = make(np.array([[0.0, 5, 1e-3], [0, 5, 2e-3], [-0.0, 5, 1e-3], [0, 5, 1e-3]]))
    y = np.array([1, 2, 2, 1])
    assert facts.constant_columns(X) == 2
    assert facts.scale_span(X) == pytest.approx(2500)
    assert facts.conflicting_rows(X, y) == 3
    assert facts.conflicting_rows(X, np.ones(4)) == 0
    said = dict(facts.facts(X, y))
    assert said["rows × columns"] == "4 × 3, 66.67% nonzero"
    assert said["classes"] == "1: 2, 2: 2"


def test_many_classes_are_counted_not_listed() -> None:
    assert "(30 in all)" in dict(facts.facts(np.ones((30, 1)), np.arange(30)))["classes"]
