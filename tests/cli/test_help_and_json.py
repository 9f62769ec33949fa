"""What all commands have: help that is quick and complete, JSON, completion, and how they end."""

import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import maxmargin as mm
from maxmargin.cli import commands, main
from maxmargin.cli.command import MEANINGS
from tests.cli.conftest import Run

COMMANDS = [str(each.name) for each in commands.COMMANDS]
HEAVY = ("numpy", "scipy", "sklearn", "numba", "rich", "maxmargin.data", "maxmargin.estimators")
MODULE = [sys.executable, "-m", "maxmargin"]


def command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


# Help.


@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["try", "-h"], ["--version"]])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys\nfrom maxmargin.cli import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        f"print('loaded', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded []"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_a_manual(run: Run, name: str) -> None:
    said = run(name, "--help").stdout
    for section in ("Usage: ", "Options:", "Example:", f"$ maxmargin {name}"):
        assert section in said
    for option in command(name).params:
        if isinstance(option, click.Option) and option.name != "help":
            assert option.help or option.show_default, option.name


def test_every_command_is_listed_and_exists(run: Run) -> None:
    said = run("--help").stdout
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", said, re.MULTILINE)
        assert command(name).name == name
    assert "warm-up" not in said
    assert "Exit codes:" in said


# Completion.


def complete(words: str, count: int) -> list[str]:
    environ = {**os.environ, "_MAXMARGIN_COMPLETE": "bash_complete"}
    environ |= {"COMP_WORDS": f"maxmargin {words}", "COMP_CWORD": str(count)}
    code = "from maxmargin.cli import main; main(prog_name='maxmargin')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=False
    )
    return done.stdout.split()


def test_completion_of_commands_choices_and_files() -> None:
    assert complete("s", 1) == ["plain,search", "plain,studio"]
    assert complete("fit --model qu", 3) == ["plain,quantile-svr"]
    assert complete("fit data.csv --gam", 3) == ["plain,--gamma"]
    assert complete("predict mod", 2) == ["file,mod"]


# JSON.

Jobs = dict[str, tuple[Sequence[object], set[str]]]


@pytest.fixture
def jobs(rings: Path) -> Jobs:
    """A run of every command, and the fields that its object has besides the common ones."""
    data = {"data"}
    return {
        "fit": (
            ["fit", rings.name, "-o", "m.mmg", "--scale", "none"],
            data | {"model", "stop_reason", "certificate", "scores", "saved"},
        ),
        "search": (
            ["search", rings.name, "--C", "1,10", "--gamma", "1"],
            data | {"scoring", "best", "candidates", "certificate", "fit", "saved"},
        ),
        "try": (
            ["try", rings.name, "--max-time", "1", "--no-report"],
            data | {"verdict", "model", "certificate", "scores", "saved"},
        ),
        "predict": (["predict", "m.mmg", rings.name], {"rows", "columns", "predictions"}),
        "predict --score": (
            ["predict", "m.mmg", rings.name, "--score"],
            {"model", "rows", "training_rows", "scores", "classes"},
        ),
        "diagnose": (["diagnose", rings.name], data | {"diagnosis", "fit", "search"}),
        "certify": (
            ["certify", "m.mmg", rings.name],
            {"model", "rows", "sentence", "certificate"},
        ),
        "report": (
            ["report", "m.mmg"],
            {"model", "format", "header", "steps", "task", "classes", "kernel", "support_vectors",
             "training_rows", "features", "params", "stop_reason", "certificate", "layout", "rows",
             "saved"},
        ),
        "convert": (["convert", "m.mmg", "m.model"], {"source", "target", "kind", "format"}),
    }  # fmt: skip


def test_objects_have_the_documented_fields(run_json: Callable[..., Any], jobs: Jobs) -> None:
    for words, fields in jobs.values():
        found = run_json(*words)
        assert (found["schema"], found["command"], found["status"]) == (1, words[0], "done")
        assert set(found) == {"schema", "command", "status", *fields}


def test_fields_are_in_the_documentation(jobs: Jobs) -> None:
    page = Path(__file__).parents[2] / "docs/command-line.md"
    text = page.read_text(encoding="utf-8")
    for name, (_, fields) in jobs.items():
        section = text.split(f"\n### {name}\n")[1].split("\n### ")[0]
        for field in fields:
            assert f"`{field}`" in section, (name, field)
    for code, meaning in MEANINGS.items():
        assert f"| {int(code)} | {meaning}" in text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["fit", "none.csv"], 1),
        (["predict", "none.mmg", "none.csv"], 1),
        (["fit"], 2),
        (["fit", "none.csv", "--C", "x"], 2),
        (["predict", "a", "b", "--none"], 2),
        (["nothing"], 2),
    ],
)
def test_errors_are_objects_too(run_json: Callable[..., Any], words: list[str], code: int) -> None:
    found = run_json(*words, code=code)
    assert found["status"] == "error"
    assert found["command"] == words[0]
    assert found["error"]["message"]


def test_unconverged_fits_say_so(run_json: Callable[..., Any], rings: Path) -> None:
    found = run_json("fit", rings.name, "--kernel", "sigmoid", "-o", "m.mmg", code=3)
    assert found["status"] == "not converged"
    assert found["certificate"]["holds"] is False
    assert found["certificate"]["dual"] == "-inf"
    assert found["saved"] == "m.mmg"


# How commands end.


def test_unexpected_errors_are_one_line_or_a_trace(
    run: Run, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(mm, "diagnose", fail)
    short, long = run("diagnose", rings.name), run("diagnose", rings.name, "--debug")
    assert (short.exit_code, long.exit_code) == (1, 1)
    assert short.stderr.count("\n") == 1
    assert "Traceback" in long.stderr


def test_warnings_are_lines(run: Run, rings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = mm.diagnose

    def warn(*given: Any, **named: Any) -> Any:
        warnings.warn("mind the tol,\n  please", stacklevel=1)
        warnings.warn("not for users", DeprecationWarning, stacklevel=1)
        return real(*given, **named)

    monkeypatch.setattr(mm, "diagnose", warn)
    result = run("diagnose", rings.name)
    assert result.stderr == "warning: mind the tol, please\n"


def test_a_reader_that_leaves_is_no_error(run: Run, rings: Path) -> None:
    run("fit", rings.name, "-o", "m.mmg")
    rings.write_text(rings.read_text() * 200)
    with subprocess.Popen(
        [*MODULE, "predict", "m.mmg", rings.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Error" not in process.stderr.read()
    assert process.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_ctrl_c_keeps_the_best_model(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(4000, 10)), rng.integers(0, 2, 4000)])
    np.savetxt(tmp_path / "noise.csv", rows, fmt="%.4f", delimiter=",")
    words = ["fit", "noise.csv", "--C", "1e6", "--gamma", "0.02", "--tol", "1e-12", "--json"]
    # Even where SIGINT is ignored, as in the background, the command is to get it.
    start = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    start += "from maxmargin.cli import main; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", start, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MAXMARGIN_PROGRESS": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        seen = b""
        while b"gap" not in seen:  # the bar shows that there is something to keep
            chunk = os.read(process.stderr.fileno(), 4096)
            assert chunk, seen
            seen += chunk
        process.send_signal(signal.SIGINT)
        found = json.loads(process.stdout.read())
        said = process.stderr.read().decode()
    assert process.returncode == 130
    assert found["status"] == "interrupted"
    assert "Interrupted: saving what was reached to noise.mmg" in said
    model = mm.load(tmp_path / "noise.mmg")
    assert model.predict(rows[:5, :-1]).shape == (5,)
    assert "interrupted" in model[-1].stop_reason_
