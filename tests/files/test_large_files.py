"""Files above 2 GB, and names that are not plain ASCII, for everything that reads or writes."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.data import convert, iterate_svmlight, read_labelled, read_rows, read_svmlight
from maxmargin.data import write_svmlight as write_rows

NAMES = (
    "two words",
    "größe 数据 ñ",
    "emoji 🙂",
    "quote ' \" $HOME",
    "-dash",
    "a%20b #1",
    "x" * 180,
)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    X, y = mm.datasets.separable(30, margin=0.1, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def model(rows: tuple[Any, Any]) -> Any:
    return mm.SVC(kernel="linear").fit(*rows)


def folder(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    return made


def test_models_by_any_name(tmp_path: Path, name: str, rows: Any, model: Any) -> None:
    X, _ = rows
    linear = mm.LinearSVC().fit(*rows)
    files: list[tuple[Any, Callable[..., None], Callable[[Any], Any], str]] = [
        (model, mm.save, mm.load, ".mmg"),
        (model, mm.files.save_libsvm, mm.files.load_libsvm, ".model"),
        (linear, mm.files.save_liblinear, mm.files.load_liblinear, ".linear"),
    ]
    for each, save, load, ending in files:
        path = folder(tmp_path, f"{name}{ending}") / f"{name}{ending}"
        for given in (path, str(path)):
            save(each, given)
            np.testing.assert_array_equal(load(given).predict(X), each.predict(X))
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_labels_beside_a_model_by_any_name(tmp_path: Path, name: str, rows: Any) -> None:
    X, y = rows
    words = mm.SVC(kernel="linear").fit(X, np.where(y > 0, "größer", "kleiner"))
    path = tmp_path / f"{name}.model"
    with pytest.warns(UserWarning, match="labels"):
        mm.files.save_libsvm(words, path)
    np.testing.assert_array_equal(mm.files.load_libsvm(path).predict(X), words.predict(X))


def test_svmlight_by_any_name(tmp_path: Path, name: str, rows: Any) -> None:
    X, y = rows
    path = tmp_path / f"{name}.svm"
    write_rows(path, X, y)
    np.testing.assert_array_equal(read_svmlight(path).X.toarray(), X)
    assert sum(len(block.y) for block in iterate_svmlight(str(path))) == len(y)


def test_tables_by_any_name(tmp_path: Path, name: str, rows: Any) -> None:
    X, y = rows
    source = tmp_path / f"{name}.svm"
    write_rows(source, X, y)
    for ending in (".csv", ".parquet"):
        target = tmp_path / f"{name}{ending}"
        convert(source, target)
        found = read_labelled(target)
        assert found.layout is not None
        assert sum(len(block.X) for block in read_rows(target, found.layout)) == len(y)


def test_commands_by_any_name(tmp_path: Path, name: str, rows: Any) -> None:
    from click.testing import CliRunner

    from maxmargin.cli import main

    X, y = rows
    data, out = tmp_path / f"{name}.svm", tmp_path / f"{name}.out"
    saved = tmp_path / f"{name}.mmg"
    write_rows(data, X, y)
    for words in (
        ["fit", str(data), "-o", str(saved), "--C", "1", "--kernel", "linear"],
        ["predict", str(saved), str(data), "-o", str(out)],
        ["report", str(saved)],
    ):
        ran = CliRunner().invoke(main, words, prog_name="maxmargin")
        assert ran.exit_code == 0, (words, ran.output)
    assert len(out.read_text().split()) >= len(y)


LARGE = """
import resource, sys, time
import numpy as np, maxmargin as mm
from sklearn.preprocessing import StandardScaler
path, n = sys.argv[1], int(sys.argv[2])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
scaler = StandardScaler()  # by hand: it is the file that has to be large
scaler.n_features_in_, scaler.n_samples_seen_ = n, 2
scaler.mean_, scaler.var_, scaler.scale_ = np.zeros(n), np.ones(n), np.ones(n)
scaler.mean_[-1] = 7.0
for array in (scaler.mean_, scaler.var_, scaler.scale_):
    array[::512] += 0.0  # in memory, and not a page of zeros for all
before, started = peak(), time.perf_counter()
mm.save(scaler, path)
saved, saving = time.perf_counter() - started, peak() - before
del scaler, array
started = time.perf_counter()
found = mm.load(path)
loaded = time.perf_counter() - started
assert found.mean_[-1] == 7.0 and found.scale_[-1] == 1.0 and len(found.var_) == n
print(saving, peak() - before, saved, loaded)
"""


@pytest.mark.full
def test_models_above_two_gigabytes(tmp_path: Path) -> None:
    path, n = tmp_path / "large model, größer.mmg", 100_000_000
    try:
        ran = subprocess.run(
            [sys.executable, "-c", LARGE, str(path), str(n)], capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        size = path.stat().st_size
        assert size > 2**31
        saving, loading, _, _ = map(float, ran.stdout.split())
        assert saving < size / 2, ran.stdout  # one array is looked at after the other
        assert loading < size * 1.5, ran.stdout
    finally:
        path.unlink(missing_ok=True)
