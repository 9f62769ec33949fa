"""Streams: each block is predicted, then learnt; what is learnt is that of partial_fit."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

import maxmargin as mm
from maxmargin.model_selection import prequential

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
    found = prequential(model, blocks(X, y), window=300)
    right: list[bool] = []
    curve = []
    for k, (X_block, y_block) in enumerate(blocks(X, y)):
        if k:
            right.extend(other.predict(X_block) == y_block)
            done = min(70 * (k + 1), len(y))
            curve.append((done, float(np.mean(right)), float(np.mean(right[-300:]))))
        other.partial_fit(X_block, y_block, classes=np.arange(classes))
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


def test_a_fitted_model_is_scored_from_the_first_block_on() -> None:
    X, y = rows(300)
    model = mm.Perceptron().partial_fit(X[:50], y[:50], classes=[0, 1])
    assert prequential(model, blocks(X[50:], y[50:])).weight == 250


def test_models_of_others_and_sources_in_parts() -> None:
    X, y = rows(500)
    found = prequential(SGDClassifier(random_state=0), blocks(X, y))
    assert found.score > 0.7
    model, other = mm.Perceptron(), mm.Perceptron()
    source = mm.data.open(np.tile(X, (5, 1)), np.tile(y, 5), rows=1500)  # learnt by thousands
    assert prequential(model, source).blocks == 3
    parts = [part[:2] for part in map(source.load, range(len(source)))]
    prequential(other, [(parts[0][0][:1000], parts[0][1][:1000]),
                        (parts[0][0][1000:], parts[0][1][1000:]), parts[1]])  # fmt: skip
    assert bits(model) == bits(other)


# What goes wrong.


def test_labels_that_come_too_late_are_refused() -> None:
    X, y = rows(300)
    late = y.copy()
    late[250] = 7
    with pytest.raises(ValueError, match=r"^Rows 211 to 280 of the stream: .*7"):
        prequential(mm.Perceptron(), blocks(X, late))
    model = mm.Perceptron()
    prequential(model, blocks(X, late), classes=[0, 1, 7])
    assert model.classes_.tolist() == [0, 1, 7]
    with pytest.raises(ValueError, match=r"^Rows 1 to .* of the stream: .*class"):
        prequential(mm.Perceptron(), [(X[y == 0], y[y == 0])])


def test_rows_that_cannot_be_learnt_are_named() -> None:
    X, y = rows(300)
    X[123, 2] = np.nan
    for make in CLASSIFIERS:
        with pytest.raises(ValueError, match=r"^Rows 71 to 140 of the stream: .*NaN"):
            prequential(make(), blocks(X, y))
    narrow = [(X[:50], y[:50]), (X[50:80, :2], y[50:80])]
    with pytest.raises(ValueError, match=r"^Rows 51 to 80 of the stream: X has 2 features"):
        prequential(mm.Perceptron(), narrow)


def test_what_cannot_be_streamed_is_refused() -> None:
    X, y = rows(100)
    with pytest.raises(TypeError, match="SVC cannot learn from a stream, as it has no partial_fit"):
        prequential(mm.SVC(), blocks(X, y))
    with pytest.raises(ValueError, match="The stream is empty"):
        prequential(mm.Perceptron(), [])
    with pytest.raises(TypeError, match=r"A stream gives \(X, y\)"):
        prequential(mm.Perceptron(), [3])
    with pytest.raises(ValueError, match="inconsistent"):
        prequential(mm.Perceptron(), [(X, y[:50])])
    with pytest.raises(ValueError, match="rows without labels"):
        prequential(mm.Perceptron(), [(X, None)])
    with pytest.raises(ValueError, match="window=0 is not valid"):
        prequential(mm.Perceptron(), blocks(X, y), window=0)


def test_a_linear_machine_can_be_saved_after_any_chunk(tmp_path: Path) -> None:
    X, y = rows(6000)
    model = mm.LinearSVC()
    for X_block, y_block in blocks(X, y, 500):  # its mean begins anew after 1000, 2000, 4000 rows
        model.partial_fit(X_block, y_block, classes=[0, 1])
        mm.save(model, tmp_path / "m.mmg")
        before = bits(model)
        model.partial_fit(X_block, y_block, sample_weight=np.zeros(500))
        assert bits(model) == bits(mm.load(tmp_path / "m.mmg")) == before
