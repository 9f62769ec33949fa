"""Start-up: what importing loads, and how compiled loops are cached."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import maxmargin

HEAVY = ("numba", "matplotlib", "dask", "starlette", "uvicorn", "anywidget", "click", "rich")
FIT = "import maxmargin as mm; mm.Perceptron().fit([[0.0], [1.0]], [0, 1])"


def run(code: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)


def test_importing_loads_nothing_heavy() -> None:
    found = run(f"import maxmargin, sys; print([m for m in {HEAVY} if m in sys.modules])")
    assert found.stdout.strip() == "[]", found.stderr


@pytest.fixture
def copied_package(tmp_path: Path) -> Path:
    """Return a folder holding a copy of the package without compiled loops."""
    source = Path(maxmargin.__file__).parent
    shutil.copytree(
        source, tmp_path / "lib" / "maxmargin", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path / "lib"


@pytest.mark.wide
def test_compilation_is_announced_once_and_then_cached(copied_package: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(copied_package)}
    first = run(FIT, env=environment)
    assert first.stderr.count("compiling numerical loops") == 1, first.stderr
    assert list(copied_package.rglob("*.nbi"))
    assert run(FIT, env=environment).stderr == ""


@pytest.mark.wide
def test_cached_loops_do_without_what_compiling_needs(copied_package: Path) -> None:
    cache = str(copied_package / "cache")
    environment = {**os.environ, "PYTHONPATH": str(copied_package), "NUMBA_CACHE_DIR": cache}
    code = f"{FIT}; import sys; print('numba.np.arraymath' in sys.modules)"
    loaded = [run(code, env=environment).stdout.strip() for _ in range(2)]
    assert loaded == ["True", "False"]


def test_other_peoples_loops_compile_in_peace() -> None:
    code = """
import numba, maxmargin.loops.rows
space = {"numba": numba}
exec("def plus_one(x): return x + 1", space)  # a function without a module
space["plus_one"].__module__ = None
print(numba.njit(space["plus_one"])(1))
"""
    assert run(code).stdout.strip() == "2"


@pytest.mark.wide
def test_cached_loops_go_stale_with_any_file_they_call(copied_package: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(copied_package)}
    run(FIT, env=environment)
    rows = copied_package / "maxmargin" / "loops" / "rows.py"
    rows.write_text(rows.read_text() + "\n# changed\n")
    assert "compiling" in run(FIT, env=environment).stderr


@pytest.mark.wide
@pytest.mark.parametrize("home_is_writable", [True, False])
def test_works_where_the_package_cannot_be_written(
    copied_package: Path, tmp_path: Path, home_is_writable: bool
) -> None:
    # A file where the folder should be stops everybody, root too.
    (copied_package / "maxmargin" / "loops" / "__pycache__").touch()
    home = tmp_path / "home"
    home.mkdir() if home_is_writable else home.touch()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(copied_package),
        "HOME": str(home),
    }
    for attempt in ("first", "second"):
        found = run(FIT, env=environment)
        assert found.returncode == 0, found.stderr
        cached = home_is_writable and attempt == "second"
        assert ("compiling" in found.stderr) is not cached
        assert found.stderr.count("NUMBA_CACHE_DIR") == (0 if home_is_writable else 1)


def test_pictures_say_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = maxmargin.plots.SearchDisplay(
        "C", [1, 2], [0.5, 0.6], (1,)
    )  # holds data, and needs nothing yet
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        display.plot()
