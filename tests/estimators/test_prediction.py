"""Predictions: labels that float32 decides are those of float64, and its errors are bounded."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.estimators.svm import expansion


@pytest.fixture
def always_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let float32 decide what it can for the smallest inputs, too, block by block."""
    monkeypatch.setattr(expansion, "_WORTH_TWO_PASSES", 0)
    monkeypatch.setattr(expansion, "_FEW_VALUES", 0)


def clouds(n: int, d: int, classes: int, seed: int = 0) -> tuple[Floats, Any]:
    """Return overlapping classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(classes, d))[y] + rng.normal(size=(n, d)), y


def near_boundaries(model: Any, X: Floats, halvings: int) -> Floats:
    """Return points between rows of different labels, nearer and nearer to a boundary."""
    labels = model.classes_.tolist()
    own = np.array([labels.index(label) for label in model.predict(X)])
    low, high = X, X[np.roll(np.arange(len(X)), 1)]
    differ = own != np.roll(own, 1)
    low, high, own = low[differ], high[differ], own[differ]
    for _ in range(halvings):
        middle = (low + high) / 2
        scores = model.decision_function(middle)
        found = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        same = (found == own)[:, np.newaxis]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.vstack([low, high])


SCHEMES = [(2, "ovo"), (4, "ovo"), (4, "ovr")]


@pytest.mark.usefixtures("always_float32")
@pytest.mark.parametrize(("classes", "scheme"), SCHEMES)
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_labels_are_those_of_the_scores(classes: int, scheme: str, C: float) -> None:
    """Rows on the boundary to the last bit are left open by float32 and decided in float64."""
    X, y = clouds(240, 5, classes)
    model = mm.SVC(C=C, gamma=0.2, multi_class=scheme).fit(X, y)
    there = np.vstack([X, 3 * X, *(near_boundaries(model, X, k) for k in (12, 60))])
    scores = model.decision_function(there)
    best = (scores > 0).astype(int) if classes == 2 else scores.argmax(axis=1)
    # Whether sums are made for all rows or for some changes the last bits of scores near 0.
    if scheme == "ovo":
        lead = np.abs(model.pairwise_scores(there)).min(axis=1)
    else:
        lead = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    sure = lead > 1e-9 * C
    assert 0 < (~sure).sum() <= len(sure) / 2
    assert_array_equal(model.predict(there)[sure], model.classes_[best][sure])


@pytest.mark.usefixtures("always_float32")
def test_most_rows_need_no_float64() -> None:
    X, y = load_digits(return_X_y=True)
    model: Any = mm.SVC(C=10.0, gamma=1e-3).fit(X[:900], y[:900])
    rough = model._rough_scores(X[900:])
    decided = model._decided(*rough, model._totals(rough[0]))
    assert decided.mean() > 0.95
    assert_array_equal(
        model.predict(X[900:]), model.classes_[model._votes(rough[0]).argmax(axis=1)]
    )


SHAPES: dict[str, Any] = {
    "around 0": lambda X: X,
    "far from 0": lambda X: X + 1e3,
    "rows of all sizes": lambda X: X * 10.0 ** np.linspace(-3, 1, len(X))[:, np.newaxis],
    "columns of all sizes": lambda X: X * 10.0 ** np.linspace(-4, 1, X.shape[1]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("sparse", [False, True])
def test_errors_of_float32_are_within_their_bounds(shape: str, classes: int, sparse: bool) -> None:
    """The reference computes each kernel value from differences, in extended precision."""
    X, y = clouds(600, 7, classes)
    X = SHAPES[shape](X)
    spread = float(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
    for gamma in (0.1 / spread, 3.0 / spread):
        model = mm.SVC(C=100.0, gamma=gamma, tol=1e-2).fit(sp.csr_matrix(X) if sparse else X, y)
        there = X[::3] + 0.01 * spread**0.5
        asked = sp.csr_matrix(there) if sparse else there
        support = expansion._PREPARED
        narrow, right = support.narrowed(model), support.of(model)
        assert narrow is not None or (sparse and shape == "far from 0")
        if narrow is None:
            continue
        found = expansion.rough_scores(
            model.kernel_, asked, right, narrow, model._blocks(), len(model.intercept_), 1
        )
        if found is None:
            continue
        vectors = model.support_vectors_.toarray() if sparse else model.support_vectors_
        wide = there.astype(np.longdouble)[:, np.newaxis, :] - vectors.astype(np.longdouble)
        K = np.exp(-np.longdouble(gamma) * (wide**2).sum(axis=2))
        exact = K @ model._coefficients()
        allowed = np.zeros(exact.shape)
        for k, block in enumerate(model._blocks()):
            allowed[:, block.scores] += found[1][:, [k]]
        error = np.abs(found[0] - exact)
        assert (error <= allowed).all()
        assert (allowed <= 1e-2 * np.abs(model.dual_coef_).sum()).all()  # and say something


@pytest.mark.usefixtures("always_float32")
def test_predictions_do_not_depend_on_threads() -> None:
    X, y = clouds(400, 6, 7)
    model = mm.SVC(C=3.0, gamma=0.3).fit(X, y)
    found = {}
    for threads in (1, 2, 3):
        model.set_params(n_jobs=threads)
        found[threads] = model.predict(X), model.pairwise_scores(X)
    for threads in (2, 3):
        assert_array_equal(found[threads][0], found[1][0])
        assert_array_equal(found[threads][1], found[1][1])


@pytest.mark.usefixtures("always_float32")
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_a_class_without_weight_is_never_predicted_by_float32(scheme: str) -> None:
    X, y = clouds(300, 4, 4)
    model = mm.SVC(gamma=0.3, multi_class=scheme).fit(X, y, sample_weight=(y != 2).astype(float))
    assert 2 not in model.predict(X)
    assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
