"""``maxmargin fit --stream``: from standard input and files, to the end, Ctrl-C or an error."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from tests.cli.conftest import Run

RunJson = Callable[..., Any]


def svmlight_of(n: int) -> bytes:
    X = np.random.default_rng(0).normal(size=(n, 3))
    rows = [f"{1 if a + b > 0 else -1} 1:{a:.4f} 2:{b:.4f} 3:{c:.4f}\n" for a, b, c in X]
    return "".join(rows).encode()


def table_of(n: int) -> str:
    X = np.random.default_rng(1).normal(size=(n, 3))
    rows = [f"{a:.3f},{100 * b:.3f},{c:.3f},{'yes' if a + b > 0 else 'no'}" for a, b, c in X]
    return "\n".join(["one,two,three,label", *rows, ""])


def bits(model: Any) -> bytes:
    coefficients: bytes = model.coef_.tobytes()
    return coefficients


# What is learnt, and what is said.


@pytest.mark.parametrize("name", ["perceptron", "averaged-perceptron", "linear-svc"])
def test_standard_input_is_learnt_as_partial_fit_does(
    run_json: RunJson, tmp_path: Path, name: str
) -> None:
    text = svmlight_of(2500)
    words = ["fit", "--stream", "--model", name, "-o", "m.mmg", "-", "--every", "1000"]
    found = run_json(*words, stdin=text)
    (tmp_path / "rows.svm").write_bytes(text)
    rows = mm.data.read_svmlight(tmp_path / "rows.svm")
    classes = {"perceptron": mm.Perceptron, "averaged-perceptron": mm.AveragedPerceptron}
    model, right = classes.get(name, mm.LinearSVC)(), []
    for begin in range(0, 2500, 1000):
        part = slice(begin, begin + 1000)
        if begin:
            right.extend(model.predict(rows.X[part]) == rows.y[part])
        model.partial_fit(rows.X[part], rows.y[part], classes=[-1, 1])
    assert bits(mm.load("m.mmg")) == bits(model)
    measured = found["prequential"]
    assert found["status"] == "done"
    assert measured["score"] == pytest.approx(np.mean(right))
    assert (measured["rows"], measured["metric"], found["data"]["rows"]) == (2500, "accuracy", 2500)
    assert [point["rows"] for point in measured["curve"]] == [1000, 2000, 2500]
    assert set(found) == {
        *("schema", "command", "status", "data", "model", "stop_reason", "certificate", "scores"),
        *("prequential", "saved"),
    }


def test_lines_on_standard_error(run: Run) -> None:
    words = ["fit", "--stream", "-o", "m.mmg", "-", "--every", "500", "--rows", "100"]
    text = svmlight_of(1200)
    said = run(*words, stdin=text)
    assert said.exit_code == 0
    lines = said.stderr.splitlines()
    assert [line.split(" rows: ")[0] for line in lines] == ["500", "1,000", "1,200"]
    assert all("accuracy" in line and "over the last" in line for line in lines)
    objects = list(map(json.loads, run(*words, "--json", stdin=text).stderr.splitlines()))
    assert [found["rows"] for found in objects] == [500, 1000, 1200]
    page = Path(__file__).parents[2].joinpath("docs/command-line.md").read_text(encoding="utf-8")
    section = page.split("\n### fit\n")[1].split("\n### ")[0]
    for field in ("prequential", *objects[0]):
        assert f"`{field}`" in section, field


def test_tables_are_scaled_and_predicted_later(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(table_of(3000))
    said = run("fit", "--stream", "log.csv", "--rows", "200")
    assert said.exit_code == 0, said.output
    assert "LinearSVC() after StandardScaler()" in said.stdout
    assert "no, yes, as in the first" in said.stdout
    model = mm.load("log.mmg")
    rows = mm.data.read_labelled("log.csv")
    scaler = type(model[0])().fit(rows.X[:199])  # of the first 200 lines, one is the header
    assert np.array_equal(model[0].mean_, scaler.mean_)
    assert model.score(rows.X, rows.y) > 0.9
    (tmp_path / "new.csv").write_text("two,three,one\n1000,0,3\n")
    assert run("predict", "log.mmg", "new.csv").stdout == "yes\n"
    assert run("score", "log.mmg", "log.csv").exit_code == 0


def test_regression(run_json: RunJson, houses: Path) -> None:
    found = run_json("fit", "--stream", houses.name, "--rows", "20", "-o", "m.mmg")
    assert found["data"]["task"] == "regression"
    assert found["prequential"]["metric"] == "mean absolute error"
    assert "LinearSVR" in found["model"]


# Growing files, checkpoints, Ctrl-C.


def test_a_file_that_grows_is_followed_until_it_is_idle(run_json: RunJson, tmp_path: Path) -> None:
    (tmp_path / "log.svm").write_bytes(svmlight_of(300) + b"1 1:0.")
    words = ["fit", "log.svm", "--stream", "--follow", "--idle", "1e-6", "--rows", "50"]
    words += ["--checkpoint", "c", "--resume", "--model", "averaged-perceptron"]
    assert run_json(*words)["prequential"]["rows"] == 300
    assert run_json(*words)["prequential"]["rows"] == 300  # nothing new
    (tmp_path / "log.svm").write_bytes(svmlight_of(700))
    assert run_json(*words)["prequential"]["rows"] == 700
    continued = mm.load("log.mmg")
    run_json(*words[:-5], "--model", "averaged-perceptron", "-o", "whole.mmg")
    assert bits(continued) == bits(mm.load("whole.mmg"))


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_ctrl_c_saves_what_was_learnt(tmp_path: Path) -> None:
    (tmp_path / "log.svm").write_bytes(svmlight_of(500))
    words = ["fit", "log.svm", "--stream", "--follow", "--rows", "100", "--every", "300", "--json"]
    # Even where SIGINT is ignored, as in the background, the command is to get it.
    start = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    start += "from maxmargin.cli import main; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", start, *words, "--checkpoint", "c"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = b""
        while b"learning" not in line:  # others may be about compiling
            line = process.stderr.readline()
            assert line
        process.send_signal(signal.SIGINT)
        found = json.loads(process.stdout.read())
        said = process.stderr.read().decode()
    assert process.returncode == 130
    assert found["status"] == "interrupted"
    assert "Interrupted: what was learnt is saved to log.mmg" in said
    learnt = found["prequential"]["rows"]
    assert 300 <= learnt <= 500
    rows = mm.data.read_svmlight(tmp_path / "log.svm")
    model = mm.LinearSVC()
    for begin in range(0, learnt, 100):
        part = slice(begin, begin + 100)
        model.partial_fit(rows.X[part], rows.y[part], classes=[-1, 1])
    assert bits(mm.load(tmp_path / "log.mmg")) == bits(model)
    assert json.loads((tmp_path / "c/stream.json").read_text())["counts"]["rows"] == learnt


# What goes wrong.


def test_wrong_lines_are_named_and_the_model_is_kept(run: Run) -> None:
    text = svmlight_of(1000)
    words = ["fit", "--stream", "-o", "m.mmg", "-", "--rows", "100"]
    said = run(*words, stdin=text + b"1 2:x\n")
    assert said.exit_code == 1
    assert "Error: standard input:1001:3: the value of '2:x' is not a finite number" in said.stderr
    assert mm.load("m.mmg").coef_.shape == (1, 3)
    said = run(*words, stdin=text + b"5 2:1\n")
    assert "Row 1,001 of the stream (line 1001): the label 5 is not among" in said.stderr
    assert "name all of them with --classes" in said.stderr
    assert run(*words, "--classes", "-1, 1, 5", stdin=text + b"5 2:1\n").exit_code == 0
    assert mm.load("m.mmg").classes_.tolist() == [-1, 1, 5]
    said = run(*words, stdin=text + b"1 9:1\n")
    assert "say how many there are with --columns" in said.stderr
    assert run(*words, "--columns", "9", stdin=text + b"1 9:1\n").exit_code == 0
    assert "with --classes" in run(*words, stdin=b"1 1:1\n" * 200).stderr
    gap = table_of(400).encode() + b"1,,1,yes\n"
    assert "(line 402): column 2 of X is nan" in run(*words, stdin=gap).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--follow"], "--follow is for --stream"),
        (["--rows", "5"], "--rows is for --stream"),
        (["--stream", "--idle", "5"], "--idle is for --follow"),
        (["--stream", "--resume"], "--resume needs --checkpoint"),
        (["--stream", "--model", "svc"], "svc cannot learn from a stream"),
        (["--stream", "--model", "kernel-perceptron"], "cannot learn from a stream"),
        (["--stream", "--tol", "1e-3"], "--tol is not for --stream"),
        (["--stream", "--max-time", "1"], "--max-time is not for --stream"),
        (["--stream", "--test", "0.3"], "--test is not for --stream"),
        (["--stream", "--class-weight", "balanced"], "needs all rows"),
        (["--stream", "--format", "csv"], "--format is for standard input"),
        (["--stream", "--classes", "a,b"], "the labels of these rows are numbers"),
    ],
)
def test_options_that_do_not_go_together(
    run: Run, rings: Path, words: list[str], message: str
) -> None:
    said = run("fit", rings.name, *words)
    assert said.exit_code == 2
    assert message in said.stderr


def test_standard_input_needs_no_follow(run: Run) -> None:
    said = run("fit", "-", "--stream", "--follow", "-o", "m.mmg", stdin=b"1 1:1\n")
    assert said.exit_code == 2
    assert "standard input is read as it arrives" in said.stderr
    said = run("fit", "-", "--stream", "--format", "json", "-o", "m.mmg", stdin=b"1 1:1\n")
    assert "--format json is not for --stream" in said.stderr


def test_an_earlier_checkpoint_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.svm").write_bytes(svmlight_of(300))
    words = ["fit", "log.svm", "--stream", "--checkpoint", "c"]
    assert run(*words).exit_code == 0
    said = run(*words)
    assert said.exit_code == 1
    assert "holds a checkpoint of an earlier run: continue it with --resume" in said.stderr
