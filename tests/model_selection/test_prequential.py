"""Streams: each block is predicted, then learnt; what is learnt is that of partial_fit."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.model_selection import Prequential, prequential

Make = Callable[[], Any]
CLASSIFIERS: list[Make] = [mm.Perceptron, mm.AveragedPerceptron, mm.LinearSVC]


def rows(n: int = 3000, classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    X = rng.normal(size=(n, 4))
    X[np.arange(n), y % 4] += 2.0
    return X, y


def blocks(X: Any, y: Any, size: int = 70) -> Iterator[tuple[Any, Any]]:
    for begin in range(0, len(y), size):
        yield X[begin : begin + size], y[begin : begin + size]


def bits(model: Any) -> tuple[bytes, bytes]:
    return model.coef_.tobytes(), model.intercept_.tobytes()


# The definition.


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_partial_fit_and_its_mistakes(make: Make, classes: int, sparse: bool) -> None:
    X, y = rows(1500, classes)
    X = sp.csr_array(X) if sparse else X
    model, other = make(), make()
    found = prequential(model, blocks(X, y), window=300, every=500)
    right: list[bool] = []
    curve = []
    for k, (X_block, y_block) in enumerate(blocks(X, y)):
        if k:
            right.extend(other.predict(X_block) == y_block)
        other.partial_fit(X_block, y_block, classes=np.arange(classes))
        done = min(70 * (k + 1), len(y))
        if done // 500 > (done - len(y_block)) // 500:
            curve.append((done, float(np.mean(right)), float(np.mean(right[-300:]))))
    assert bits(model) == bits(other)
    assert (found.rows, found.blocks, found.weight) == (1500, 22, 1430)
    assert found.score == pytest.approx(np.mean(right), rel=1e-15)
    assert found.recent == pytest.approx(np.mean(right[-300:]), rel=1e-15)
    assert np.allclose(found.curve, curve, rtol=1e-14, atol=0)
    assert "1,500 rows: accuracy" in str(found)


def test_regression_has_absolute_errors() -> None:
    X, _ = rows(600)
    y = X @ [1.0, 2.0, 0.0, -1.0]
    model, other = mm.LinearSVR(), mm.LinearSVR()
    found = prequential(model, blocks(X, y))
    errors: list[float] = []
    for k, (X_block, y_block) in enumerate(blocks(X, y)):
        if k:
            errors.extend(np.abs(other.predict(X_block) - y_block))
        other.partial_fit(X_block, y_block)
    assert found.metric == "mean absolute error"
    assert found.score == pytest.approx(np.mean(errors))
    assert bits(model) == bits(other)


def test_weights_are_repetitions() -> None:
    X, y = rows(400)
    weight = np.random.default_rng(1).integers(0, 3, 400)
    repeated = np.repeat(np.arange(400), weight)

    def weighted() -> Iterator[Any]:
        for begin in range(0, 400, 50):
            part = slice(begin, begin + 50)
            yield X[part], y[part], weight[part]

    def written_out() -> Iterator[Any]:
        for begin in range(0, 400, 50):
            part = repeated[(repeated >= begin) & (repeated < begin + 50)]
            yield X[part], y[part]

    one, other = mm.Perceptron(), mm.Perceptron()
    found, same = prequential(one, weighted()), prequential(other, written_out())
    assert bits(one) == bits(other)
    assert found.weight == same.weight
    assert found.score == pytest.approx(same.score, rel=1e-15)


def test_single_rows_are_blocks_of_one() -> None:
    X, y = rows(120)
    one, other, third = mm.AveragedPerceptron(), mm.AveragedPerceptron(), mm.AveragedPerceptron()
    found = prequential(one, zip(X, y, strict=True), classes=[0, 1])
    same = prequential(other, blocks(X, y, 1), classes=[0, 1])
    lists = prequential(third, zip(X.tolist(), y.tolist(), strict=True), classes=[0, 1])
    assert found == same == lists
    assert found.weight == 119
    assert bits(one) == bits(other) == bits(third)


def test_a_fitted_model_is_scored_from_the_first_block_on() -> None:
    X, y = rows(300)
    model = mm.Perceptron().partial_fit(X[:50], y[:50], classes=[0, 1])
    assert prequential(model, blocks(X[50:], y[50:])).weight == 250


def test_pipelines_learn_their_steps_from_the_first_block() -> None:
    X, y = rows(500)
    X = 100 + 10 * X
    model = make_pipeline(StandardScaler(), mm.AveragedPerceptron())
    prequential(model, blocks(X, y, 100))
    scaler = StandardScaler().fit(X[:100])
    other = mm.AveragedPerceptron()
    prequential(other, blocks(scaler.transform(X), y, 100))
    assert bits(model[-1]) == bits(other)
    assert model.score(X, y) > 0.8


def test_models_of_others_and_sources_in_parts() -> None:
    X, y = rows(500)
    found = prequential(SGDClassifier(random_state=0), blocks(X, y))
    assert found.score > 0.7
    model, other = mm.Perceptron(), mm.Perceptron()
    source = mm.data.open(X, y, rows=100)
    assert prequential(model, source).rows == 500
    prequential(other, [part[:2] for part in map(source.load, range(len(source)))])
    assert bits(model) == bits(other)


def test_the_curve_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["maxmargin.model_selection.prequential"]  # the function has its name
    monkeypatch.setattr(module, "_POINTS", 10)
    X, y = rows(1000)
    found = prequential(mm.Perceptron(), blocks(X, y, 10), every=10)
    places = [point.rows for point in found.curve]
    assert len(places) <= 10
    assert len(set(np.diff(places))) == 1  # still evenly spaced
    assert places[-1] > 800


def test_a_callback_ends_a_stream() -> None:
    X, y = rows(1000)
    seen: list[Prequential] = []

    def call(found: Prequential) -> bool:
        seen.append(found)
        return found.rows >= 400

    found = prequential(mm.Perceptron(), blocks(X, y, 100), every=200, callback=call)
    assert [each.rows for each in seen] == [200, 400]
    assert found == seen[-1]


# Checkpoints.


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("size", [1000, 130])
def test_a_run_that_broke_off_is_resumed_to_the_bit(tmp_path: Path, make: Make, size: int) -> None:
    X, y = rows(4000, 3)
    whole = make()
    expected = prequential(whole, blocks(X, y, size), every=500)

    def broken() -> Iterator[Any]:
        for k, block in enumerate(blocks(X, y, size)):
            if k == 3:
                raise OSError("the disk is gone")
            yield block

    with pytest.raises(OSError, match="the disk is gone"):
        prequential(make(), broken(), every=500, checkpoint=tmp_path / "c")
    for _ in range(2):  # the second time, nothing is left to do
        model = make()
        found = prequential(
            model, blocks(X, y, size), every=500, checkpoint=tmp_path / "c", resume=True
        )
        assert bits(model) == bits(whole)
        assert (found.rows, found.score, found.recent) == (4000, expected.score, expected.recent)
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [
        "model-4000.mmg",
        "stream.json",
    ]


CHILD = """
import numpy as np
import maxmargin as mm
from maxmargin.model_selection import prequential

def call(found):
    print(found.rows, flush=True)

arrays = np.load({rows!r})
X, y = arrays["X"], arrays["y"]
stream = ((X[k : k + 50], y[k : k + 50]) for k in range(0, len(y), 50))
model = mm.{model}()
prequential(model, stream, every=150, checkpoint={folder!r}, resume=True, callback=call)
"""


@pytest.mark.wide
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize(("name", "kills"), [("AveragedPerceptron", [5]), ("LinearSVC", [9, 7])])
def test_a_killed_run_is_resumed_to_the_bit(tmp_path: Path, name: str, kills: list[int]) -> None:
    folder, (X, y), reached = tmp_path / "checkpoint", rows(100_000), 0
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    code = CHILD.format(model=name, folder=str(folder), rows=str(tmp_path / "rows.npz"))
    for lines in kills:
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(lines):
                first = int(process.stdout.readline())
                assert first > reached  # it went on where it was
                reached = first
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
    at = json.loads((folder / "stream.json").read_text())["counts"]["rows"]
    assert reached <= at < 100_000
    X, y = X[: at + 5000], y[: at + 5000]
    model, whole = getattr(mm, name)(), getattr(mm, name)()
    found = prequential(model, blocks(X, y, 50), every=10**6, checkpoint=folder, resume=True)
    expected = prequential(whole, blocks(X, y, 50), every=10**6)
    assert bits(model) == bits(whole)
    assert (found.rows, found.weight, found.score) == (at + 5000, at + 4950, expected.score)
    assert found.recent == expected.recent


def test_a_source_in_parts_is_not_read_again(tmp_path: Path) -> None:
    X, y = rows(600)
    read: list[int] = []

    class Parts:
        def __len__(self) -> int:
            return 6

        def load(self, part: int) -> Any:
            read.append(part)
            return X[100 * part : 100 * part + 100], y[100 * part : 100 * part + 100]

        def describe(self, part: int) -> str:
            return f"part {part}"

        def fingerprint(self) -> str:
            return "these rows"

    def stop(_: Prequential) -> bool:
        return True

    prequential(mm.Perceptron(), Parts(), every=200, checkpoint=tmp_path, callback=stop)
    prequential(mm.Perceptron(), Parts(), every=200, checkpoint=tmp_path, resume=True)
    assert read == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="holds a run of other data"):
        prequential(mm.Perceptron(), blocks(X, y), checkpoint=tmp_path, resume=True)


def test_large_parts_are_learnt_in_blocks(tmp_path: Path) -> None:
    X, y = rows(4200)
    source = mm.data.open(X, y, rows=2100)
    found = prequential(mm.Perceptron(), source)
    assert (found.rows, found.blocks, found.weight) == (4200, 6, 3200)

    def stop(_: Prequential) -> bool:
        return True

    begun = mm.Perceptron()
    prequential(begun, source, every=1000, checkpoint=tmp_path, callback=stop)
    model, whole = mm.Perceptron(), mm.Perceptron()
    again = prequential(model, source, every=1000, checkpoint=tmp_path, resume=True)
    prequential(whole, source)
    assert again.rows == 4200
    assert np.array_equal(model.coef_, whole.coef_)


def test_checkpoints_of_other_runs_are_refused(tmp_path: Path) -> None:
    X, y = rows(300)

    def run(model: Any, stream: Any = None, **named: Any) -> None:
        prequential(model, stream or blocks(X, y), checkpoint=tmp_path / "c", **named)

    run(mm.Perceptron())
    with pytest.raises(ValueError, match="holds a checkpoint of an earlier run: continue it with"):
        run(mm.Perceptron())
    with pytest.raises(
        ValueError, match=r"a run of Perceptron\(\), and the model is Perceptron\(e"
    ):
        run(mm.Perceptron(eta=2.0), resume=True)
    with pytest.raises(ValueError, match="with window=1000, and now it is 5"):
        run(mm.Perceptron(), resume=True, window=5)
    with pytest.raises(ValueError, match="has 100 rows, and the checkpoint was written after 300"):
        run(mm.Perceptron(), blocks(X[:100], y[:100]), resume=True)
    with pytest.raises(ValueError, match="resume=True needs checkpoint"):
        prequential(mm.Perceptron(), blocks(X, y), resume=True)
    (tmp_path / "c/stream.json").write_text("{")
    with pytest.raises(ValueError, match="this is no checkpoint of a stream"):
        run(mm.Perceptron(), resume=True)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
@pytest.mark.parametrize("make", CLASSIFIERS)
def test_ctrl_c_waits_for_the_end_of_a_block(tmp_path: Path, make: Make) -> None:
    X, y = rows(1000)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:

        def pressing() -> Iterator[Any]:
            for k, (X_block, y_block) in enumerate(blocks(X, y, 100)):
                if k == 4:
                    os.kill(os.getpid(), signal.SIGINT)
                yield X_block, y_block

        model = make()
        with pytest.raises(KeyboardInterrupt):
            prequential(model, pressing(), checkpoint=tmp_path)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    other, third = make(), make()
    prequential(other, blocks(X[:400], y[:400], 100))
    assert bits(model) == bits(other)
    prequential(third, blocks(X, y, 100), checkpoint=tmp_path, resume=True)
    whole = make()
    prequential(whole, blocks(X, y, 100))
    assert bits(third) == bits(whole)


# Memory.

STREAM_MUCH = """
import resource
import numpy as np
import maxmargin as mm
from maxmargin.model_selection import prequential

def stream():
    rng = np.random.default_rng(0)
    for k in range(250):  # of 400 kB each
        X = rng.random((1000, 50))
        if k == 50:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        yield X, (X[:, 0] > 0.5).astype(int)

for model in (mm.AveragedPerceptron(), mm.LinearSVC()):
    prequential(model, stream(), every=50_000)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.wide
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in kB on Linux")
def test_memory_is_bounded() -> None:
    command = [sys.executable, "-c", STREAM_MUCH]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    reached = list(map(int, done.stdout.split()))
    for early, late in (reached[:2], reached[2:]):
        assert late - early < 8_000  # kB, of 80 000 that were streamed in between


# What goes wrong.


def test_labels_that_come_too_late_are_named() -> None:
    X, y = rows(300)
    late = y.copy()
    late[250] = 7
    with pytest.raises(
        ValueError, match=r"^Row 251 of the stream: the label 7 is not among .*0, 1"
    ):
        prequential(mm.Perceptron(), blocks(X, late))
    model = mm.Perceptron()
    prequential(model, blocks(X, late), classes=[0, 1, 7])
    assert model.classes_.tolist() == [0, 1, 7]
    with pytest.raises(ValueError, match="first block has rows of one class only"):
        prequential(mm.Perceptron(), [(X[y == 0], y[y == 0])])


def test_rows_that_cannot_be_learnt_are_named() -> None:
    X, y = rows(300)
    X[123, 2] = np.nan
    for make in CLASSIFIERS:
        with pytest.raises(ValueError, match=r"^Row 124 of the stream: column 3 of X is nan"):
            prequential(make(), blocks(X, y))
    narrow = [(X[:50], y[:50]), (X[50:80, :2], y[50:80])]
    with pytest.raises(ValueError, match=r"^Rows 51 to 80 of the stream: X has 2 features"):
        prequential(mm.Perceptron(), narrow)


def test_what_cannot_be_streamed_is_said() -> None:
    X, y = rows(100)
    with pytest.raises(TypeError, match="SVC cannot learn from a stream, as it has no partial_fit"):
        prequential(mm.SVC(), blocks(X, y))
    with pytest.raises(ValueError, match="The stream is empty"):
        prequential(mm.Perceptron(), [])
    with pytest.raises(TypeError, match=r"A stream gives \(X, y\)"):
        prequential(mm.Perceptron(), [3])
    with pytest.raises(ValueError, match="100 rows and 50 labels"):
        prequential(mm.Perceptron(), [(X, y[:50])])
    with pytest.raises(ValueError, match="rows without labels"):
        prequential(mm.Perceptron(), [(X, None)])
    with pytest.raises(ValueError, match="classes are for classifiers"):
        prequential(mm.LinearSVR(), blocks(X, y), classes=[0, 1])
    for wrong in ({"window": 0}, {"every": True}):
        with pytest.raises(ValueError, match="is not valid"):
            prequential(mm.Perceptron(), blocks(X, y), **wrong)


def test_a_linear_machine_can_be_saved_after_any_chunk(tmp_path: Path) -> None:
    X, y = rows(6000)
    model = mm.LinearSVC()
    for X_block, y_block in blocks(X, y, 500):  # its mean begins anew after 1000, 2000, 4000 rows
        model.partial_fit(X_block, y_block, classes=[0, 1])
        mm.save(model, tmp_path / "m.mmg")
        before = bits(model)
        model.partial_fit(X_block, y_block, sample_weight=np.zeros(500))
        assert bits(model) == bits(mm.load(tmp_path / "m.mmg")) == before
