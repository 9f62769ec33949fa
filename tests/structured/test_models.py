"""Decoders, differences and losses of the ready models against lists of all outputs."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import maxmargin as mm
from maxmargin.structured.model import Examples, as_vector


def numbers(rng: Any, shape: Any, coarse: bool) -> Any:
    """Return numbers; coarse ones, of which sums are exact, so that scores are equal often."""
    return rng.integers(-2, 3, shape).astype(float) if coarse else rng.standard_normal(shape)


def case(name: str, seed: int, coarse: bool = False, sparse: bool = False) -> tuple[Any, Any, Any]:
    """Return a prepared model with a few small examples."""
    rng = np.random.default_rng(seed)
    X: Any
    Y: Any
    if name == "chain":
        X = [numbers(rng, (rng.integers(1, 5), 3), coarse) for _ in range(4)]
        model: Any = mm.structured.Chain(3, weight=[1.0, 0.5, 2.0])
        Y = [rng.integers(0, 3, len(x)) for x in X]
        X = [sp.csr_matrix(x) for x in X] if sparse else X
    else:
        X = numbers(rng, (6, 3), coarse)
        cost = rng.integers(0, 4, (3, 3)) * (1 - np.eye(3))
        model, Y = mm.structured.Multiclass(cost=cost), np.array(list("abcabc"))
        X = sp.csr_matrix(X) if sparse else X
    return model.prepare(X, Y), X, Y


def outputs(model: Any, x: Any) -> list[Any]:
    """Return all outputs of an input."""
    if isinstance(model, mm.structured.Chain):
        return [np.array(path) for path in product(range(3), repeat=x.shape[0])]
    return list(model.classes_)


NAMES = ["chain", "multiclass"]
SEEDS = st.integers(0, 2**32 - 1)


def row(X: Any, i: Any) -> Any:
    return X[i : i + 1] if sp.issparse(X) else X[i]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("coarse", [False, True])
@settings(max_examples=10)
@given(seed=SEEDS, sparse=st.booleans())
def test_the_decoder_attains_the_maximum_over_all_outputs(
    name: str, coarse: bool, seed: int, sparse: bool
) -> None:
    model, X, Y = case(name, seed, coarse, sparse)
    w = numbers(np.random.default_rng(seed + 1), model.size_, coarse)
    examples = model.examples(X, Y)
    rows = np.arange(len(examples))
    for augmented in (True, False):
        batch = examples.decode(rows, w, augmented)
        for i in rows:
            x = row(X, i)

            def value(other: Any, x: Any = x, y: Any = Y[i], with_loss: bool = augmented) -> float:
                gained = -float(as_vector(model.difference(x, y, other)) @ w)
                return gained + (model.loss(y, other) if with_loss else 0.0)

            best = max(value(other) for other in outputs(model, x))
            alone = model.decode(x, w, Y[i] if augmented else None)
            assert_allclose(value(alone), best, rtol=1e-12, atol=1e-12)
            assert_allclose(value(batch.outputs[i]), best, rtol=1e-12, atol=1e-12)
            if coarse:
                assert value(alone) == best
    predicted = model.examples(X).predict(w)
    for i in rows:
        assert_array_equal(predicted[i], model.decode(row(X, i), w))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(seed=SEEDS, sparse=st.booleans())
def test_differences_are_those_of_the_features(name: str, seed: int, sparse: bool) -> None:
    model, X, Y = case(name, seed, sparse=sparse)
    for i in range(len(Y)):
        x = row(X, i)
        for other in outputs(model, x)[:20]:
            expected = model.features(x, Y[i]) - model.features(x, other)
            found = as_vector(model.difference(x, Y[i], other))
            assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_passes_over_many_examples_are_those_over_each(name: str) -> None:
    """The compiled passes give what the protocol's own loop in Python gives."""
    model, X, Y = case(name, 7)
    w = np.random.default_rng(8).standard_normal(model.size_)
    packed, plain = model.examples(X, Y), Examples(model, X, Y)
    assert packed.size == plain.size == model.size_
    rows = np.array([2, 0, 3])
    for found, expected in (
        (packed.decode(rows, w), plain.decode(rows, w)),
        (packed.take(rows).decode(np.arange(3), w), plain.decode(rows, w)),
        (packed.cuts(rows, [Y[i] for i in rows]), plain.cuts(rows, [Y[i] for i in rows])),
    ):
        assert_allclose(found.loss, expected.loss, atol=1e-15)
        assert_allclose(
            found.matrix(model.size_).toarray(), expected.matrix(model.size_).toarray(), atol=1e-14
        )
        assert_allclose(found.violations(w), expected.violations(w), atol=1e-12)
        for one, other in zip(found.outputs, expected.outputs, strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("name", NAMES)
def test_long_passes_are_cut_into_calls(name: str) -> None:
    model, X, Y = case(name, 3)
    w = np.random.default_rng(4).standard_normal(model.size_)
    whole, cut = model.examples(X, Y), model.examples(X, Y)
    cut._work = 2.0**24  # two examples a call
    rows = np.arange(len(whole))
    expected, found = whole.decode(rows, w), cut.decode(rows, w)
    assert_array_equal(expected.indptr, found.indptr)
    assert_array_equal(expected.values, found.values)
    for one, other in zip(whole.predict(w), cut.predict(w), strict=True):
        assert_array_equal(one, other)


BAD: list[tuple[Any, Any, Any, str]] = [
    (mm.structured.Chain(2), [np.eye(2), np.eye(3)], [[0, 1], [0, 1, 0]], "Example 1: .*features"),
    (mm.structured.Chain(2), [np.eye(2), np.eye(2)], [[0, 1], [0]], "Example 1: .*one state"),
    (mm.structured.Chain(2), [np.eye(2)], [[0, 2]], "Example 0: .*whole numbers from 0 to 1"),
    (mm.structured.Chain(2), [np.zeros((0, 2))], [[]], "Example 0: .*at least 1"),
    (mm.structured.Chain(), [np.eye(2), [[np.nan, 1]]], [[0, 1], [0]], "Example 1: .*NaN"),
    (mm.structured.Chain(2, weight=[1]), [np.eye(2)], [[0, 1]], "weight"),
    (mm.structured.Chain(2), [np.eye(2)], [[0, 1], [1]], "inconsistent"),
    (mm.structured.Multiclass(), np.eye(2), [0, 0], "only one class"),
    (mm.structured.Multiclass([[0, 1]]), np.eye(2), [0, 1], "cost has shape"),
    (mm.structured.Multiclass([[1, 1], [1, 0]]), np.eye(2), [0, 1], "diagonal"),
    (mm.structured.Multiclass("balanced"), np.eye(2), [0, 1], "cost has shape"),
    (mm.structured.Chain(2, weight="balanced"), [np.eye(2)], [[0, 1]], "weight='balanced'"),
]


@pytest.mark.parametrize(("model", "X", "Y", "message"), BAD)
def test_malformed_examples_are_refused_by_their_number(
    model: Any, X: Any, Y: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        model.prepare(X, Y).examples(X, Y)


def test_iterators_are_refused_as_they_can_be_read_only_once() -> None:
    with pytest.raises(TypeError, match=r"X is an iterator.*list\(X\)"):
        mm.structured.Chain(2).prepare((x for x in [np.eye(2)]), [[0, 1]])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_beyond_the_ends_of_inputs(name: str) -> None:
    """Compiled loops do not check places: what is too short or too long is refused before."""
    model, X, Y = case(name, 0)
    x, y, w = X[0], Y[0], np.zeros(model.size_)
    model.decode(x, w, y)
    for wrong in (w[:-1], np.append(w, 0.0)):
        with pytest.raises(ValueError, match=f"w must hold {model.size_} weights"):
            model.decode(x, wrong, y)
    for wrong in (x[..., :-1], np.concatenate([x, x], axis=-1)):
        with pytest.raises(ValueError, match="features"):
            model.decode(wrong, w)
        with pytest.raises(ValueError, match="features"):
            model.difference(wrong, y, y)
    if name == "chain":
        with pytest.raises(ValueError, match="for each of the"):
            model.decode(x, w, np.append(y, 0))
        with pytest.raises(ValueError, match="for each of the"):
            model.difference(x, np.append(y, 0), y)
        with pytest.raises(ValueError, match="other must hold"):
            model.loss(y, np.append(y, 0))


def test_columns_of_tables_keep_their_order() -> None:
    pandas, model = pytest.importorskip("pandas"), mm.structured.Chain(2)
    X, Y = [pandas.DataFrame(np.eye(2), columns=["a", "b"])] * 2, [[0, 1], [1, 0]]
    ready = model.prepare(X, Y)
    assert ready.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="Example 1: The feature names should match"):
        ready.examples([X[0], X[1][["b", "a"]]])
    with pytest.raises(ValueError, match="Example 1: The feature names should match"):
        model.prepare([X[0], X[1][["b", "a"]]], Y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        ready.examples([np.eye(2)])


def test_labels_unseen_in_training_are_refused() -> None:
    model = mm.structured.Multiclass().prepare(np.eye(2), ["a", "b"])
    with pytest.raises(ValueError, match="'c' is not among the labels"):
        model.examples(np.eye(2), ["a", "c"])
    with pytest.raises(ValueError, match="X has 3 features, but Multiclass is expecting 2"):
        model.examples(np.eye(3))
