"""What a report of a problem says about packages and machine."""

import os
import platform
from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.reports import versions


def test_everything_that_is_installed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    versions.show_versions()
    shown = capsys.readouterr().out
    for fact in (platform.python_version(), mm.__version__, np.__version__, str(os.cpu_count())):
        assert fact in shown
    for name in ("scipy", "scikit-learn", "numba", "threadpoolctl", "matplotlib", "openblas"):
        assert name in shown


def test_packages_are_those_of_the_metadata() -> None:
    wanted = versions.required_packages()
    assert {"numpy", "scipy", "scikit-learn", "numba", "matplotlib"} <= set(wanted)
    assert len(wanted) == len(set(wanted))
    assert not {"pytest", "sphinx"} & set(wanted)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert versions.package_version("no-such-package") is None
    monkeypatch.setattr(versions, "requires", lambda _: ["numpy", "nothing>=1; extra == 'plot'"])
    found = versions.collect_versions()["Packages of maxmargin"]
    assert list(found) == ["maxmargin", "numpy", "nothing"]
    assert found["nothing"] == "not installed"


def test_the_folder_of_compiled_loops_is_found() -> None:
    found = versions.compiled_loops()
    assert Path(found["folder"]).name
    assert found["writable"].startswith(("yes", "no"))


def test_without_a_compiler_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.loops import perceptron

    monkeypatch.setattr(perceptron, "visit", lambda: None)
    assert versions.compiled_loops()["folder"].startswith("none")
